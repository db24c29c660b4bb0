
/*
 * A name is converted by IDNA 2008 without transitional processing, or with it
 * if that refuses the name.
 */

#include <string.h>

#include <idn2.h>

#include "bloom_ascii.h"
#include "bloom_idn.h"


static int
is_name(const uint8_t *p, size_t len)
{
    for ( /* void */ ; len != 0; p++, len--) {
        if (!bloom_is_alpha(*p) && !bloom_is_digit(*p)
            && *p != '-' && *p != '_' && *p != '.')
        {
            return 0;
        }
    }

    return 1;
}


int
bloom_idn_ascii(uint8_t *out, size_t room, const uint8_t *text, size_t len)
{
    int       n;
    size_t    size;
    uint8_t   copy[BLOOM_IDN_MAX + 1], *ascii;

    if (len > BLOOM_IDN_MAX) {
        return -1;
    }

    memcpy(copy, text, len);
    copy[len] = '\0';

    ascii = NULL;

    if (idn2_lookup_u8(copy, &ascii, IDN2_NFC_INPUT|IDN2_NONTRANSITIONAL)
        != IDN2_OK
        && idn2_lookup_u8(copy, &ascii, IDN2_NFC_INPUT|IDN2_TRANSITIONAL)
        != IDN2_OK)
    {
        return -1;
    }

    n = -1;
    size = strlen((char *) ascii);

    if (size <= room && is_name(ascii, size)) {
        memcpy(out, ascii, size);
        n = (int) size;
    }

    idn2_free(ascii);

    return n;
}
