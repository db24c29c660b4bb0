/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks for capital letters in URLs.
 */

#include <inttypes.h>
#include <string.h>

#include "cli.h"
#include "letter_case.h"

/* Of so many pages of the web, some have a capital letter in their URLs. */
#define PAGES_MIN  200


void
letter_case_see(letter_case_t *letters, const bloom_key_t *url)
{
    const uint8_t  *p, *end;

    end = url->data + url->len;
    p = memchr(url->data, '/', url->len);

    if (p == NULL || p + 1 == end) {
        return;
    }

    letters->pages++;

    while (!letters->capitals && p < end) {

        if (*p == '%') {                 /* an escape such as %2F */
            p += 3;
            continue;
        }

        letters->capitals = (*p >= 'A' && *p <= 'Z');
        p++;
    }
}


void
letter_case_add(letter_case_t *letters, const letter_case_t *other)
{
    letters->pages += other->pages;
    letters->capitals |= other->capitals;
}


void
letter_case_warn(const letter_case_t *letters)
{
    if (letters->pages >= PAGES_MIN && !letters->capitals) {
        cli_warn("none of the %" PRIu64 " pages has a capital letter: if the "
                 "publisher has changed the URLs to lower case, the original "
                 "ones are not found; use a list with the original spelling",
                 letters->pages);
    }
}
