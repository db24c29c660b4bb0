/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file converts keys to the four key forms; it calls bloom_host.c and
 * bloom_url.c for the forms host and url.
 */

#include <string.h>

#include "bloom_ascii.h"
#include "bloom_bytes.h"
#include "bloom_form.h"

_Static_assert(BLOOM_FORM_EXPRESSIONS >= BLOOM_URL_EXPRESSIONS
               && BLOOM_FORM_EXPRESSIONS >= BLOOM_HOST_EXPRESSIONS
               && BLOOM_FORM_KEY_MAX == BLOOM_URL_MAX,
               "bounds of the forms");


static const char *const  names[] = { "raw", "lower", "host", "url" };

#define FORMS  (sizeof(names) / sizeof(names[0]))

static const char  too_long[] = "is longer than 65535 bytes";
static const char  bad_byte[] = "has a byte that a host cannot have";


const char *
bloom_form_name(uint32_t form)
{
    return form < FORMS ? names[form] : NULL;
}


int
bloom_form_parse(const char *name, size_t len)
{
    size_t  i;

    for (i = 0; i < FORMS; i++) {
        if (len == strlen(names[i]) && memcmp(name, names[i], len) == 0) {
            return (int) i;
        }
    }

    return -1;
}


size_t
bloom_form_room(uint32_t form, size_t len)
{
    switch (form) {

    case BLOOM_FORM_LOWER:
        return len;

    case BLOOM_FORM_HOST:
        return BLOOM_HOST_ROOM + (len < BLOOM_FORM_KEY_MAX
                                  ? len : BLOOM_FORM_KEY_MAX);

    case BLOOM_FORM_URL:
        return BLOOM_URL_ROOM(len < BLOOM_URL_MAX ? len : BLOOM_URL_MAX);

    default:
        return 0;
    }
}


static void
lower(bloom_key_t *canonical, const bloom_key_t *key, uint8_t *buf)
{
    size_t          i, len;
    const uint8_t  *p;

    p = key->data;
    len = key->len;

    for (i = 0; i + 8 <= len; i += 8) {
        bloom_put64(buf + i, bloom_lower8(bloom_get64(p + i)));
    }

    if (i < len && len >= 8) {

        /* the last eight bytes, which may overlap those done */

        bloom_put64(buf + len - 8, bloom_lower8(bloom_get64(p + len - 8)));
        i = len;
    }

    for ( /* void */ ; i < len; i++) {
        buf[i] = bloom_lower(p[i]);
    }

    canonical->data = buf;
    canonical->len = len;
}


static const char *
parse_host(bloom_host_t *host, const bloom_key_t *key, uint8_t *buf)
{
    if (key->len > BLOOM_FORM_KEY_MAX) {
        return too_long;
    }

    return bloom_host_parse_key(host, key->data, key->len,
                                buf + BLOOM_HOST_ROOM);
}


/* Mail addresses and patterns are refused: they are not hosts. */
static const char * __attribute__((noinline))
canonical_host(bloom_key_t *canonical, const bloom_key_t *key, uint8_t *buf)
{
    const char    *why;
    bloom_host_t   host;

    why = parse_host(&host, key, buf);

    if (why != NULL) {
        return why;
    }

    if (!bloom_host_is_plain(&host)
        || memchr(key->data, '@', key->len) != NULL)
    {
        return bad_byte;
    }

    canonical->data = memcpy(buf, host.text, host.len);
    canonical->len = host.len;

    return NULL;
}


const char *
bloom_form_canonical(uint32_t form, bloom_key_t *canonical,
    const bloom_key_t *key, uint8_t *buf)
{
    bloom_url_t   url;
    const char   *why;

    switch (form) {

    case BLOOM_FORM_LOWER:
        lower(canonical, key, buf);
        return NULL;

    case BLOOM_FORM_HOST:
        return canonical_host(canonical, key, buf);

    case BLOOM_FORM_URL:
        why = bloom_url_parse(&url, key->data, key->len, buf);

        if (why != NULL) {
            return why;
        }

        /* a lookup accepts it, as its expressions may be shorter */

        if (url.key.len > BLOOM_FORM_KEY_MAX) {
            return "is longer than 65535 bytes in canonical form";
        }

        *canonical = url.key;
        return NULL;

    default:
        *canonical = *key;
        return NULL;
    }
}


const char *
bloom_form_expand(uint32_t form, bloom_form_t *result, const bloom_key_t *key,
    uint8_t *buf)
{
    size_t         offset[BLOOM_HOST_EXPRESSIONS];
    uint8_t       *end;
    unsigned       i;
    bloom_url_t    url;
    const char    *why;
    bloom_host_t   host;

    result->n = 1;

    switch (form) {

    case BLOOM_FORM_HOST:
        why = parse_host(&host, key, buf);

        if (why != NULL) {
            return why;
        }

        result->n = bloom_host_parents(offset, &host, BLOOM_HOST_EXPRESSIONS);
        end = buf + host.len;

        if (bloom_host_is_plain(&host)) {
            memcpy(buf, host.text, host.len);

        } else {
            end = bloom_host_write(buf, &host, offset, result->n);
        }

        for (i = 0; i < result->n; i++) {
            result->expression[i].data = buf + offset[i];
            result->expression[i].len = (size_t) (end - buf) - offset[i];
        }

        result->canonical = result->expression[0];

        return NULL;

    case BLOOM_FORM_URL:
        why = bloom_url_parse(&url, key->data, key->len, buf);

        if (why != NULL) {
            return why;
        }

        result->canonical = url.canonical;
        result->n = bloom_url_expand(result->expression, &url);

        return NULL;

    case BLOOM_FORM_LOWER:
        lower(&result->canonical, key, buf);
        break;

    default:
        result->canonical = *key;
    }

    result->expression[0] = result->canonical;

    return NULL;
}
