/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file prints text from outside so that a terminal does not obey it, and
 * removes passwords.
 */

#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bloom_utf8.h"
#include "visible.h"


size_t
visible_next(char dst[VISIBLE_MAX], const uint8_t *p, size_t rest,
    size_t *used)
{
    char    *d;
    size_t   i, len;

    static const char  hex[] = "0123456789abcdef";

    len = bloom_utf8_len(p, rest);
    *used = len != 0 ? len : 1;

    if (len != 0 && !bloom_utf8_is_hidden(p, len)) {
        memcpy(dst, p, len);
        return len;
    }

    for (d = dst, i = 0; i < *used; i++) {
        *d++ = '\\';
        *d++ = 'x';
        *d++ = hex[p[i] >> 4];
        *d++ = hex[p[i] & 0xf];
    }

    return (size_t) (d - dst);
}


void
visible_print(FILE *file, const void *data, size_t len)
{
    char            text[VISIBLE_MAX];
    size_t          used;
    const uint8_t  *p;

    for (p = data; len != 0; p += used, len -= used) {
        fwrite(text, 1, visible_next(text, p, len, &used), file);
    }
}


void
visible_name(const char *name)
{
    visible_print(stdout, name, strlen(name));
}


void
visible_data(const void *data, size_t len)
{
    static int  terminal = -1;

    if (terminal == -1) {
        terminal = isatty(STDOUT_FILENO);
    }

    if (terminal) {
        visible_print(stdout, data, len);

    } else {
        fwrite(data, 1, len, stdout);
    }
}


/* A password may contain any byte, but a blank ends the URL, as a message
 * continues after it.  URLs without a colon or scheme have passwords, too. */
void
visible_without_passwords(char *text)
{
    char    *host, *at, *begin;
    size_t   len;

    static const char  blanks[] = " \t\r\n";

    for (begin = text; *text != '\0'; text++) {

        len = strncasecmp(text, "redis:", 6) == 0 ? 6
              : strncasecmp(text, "rediss:", 7) == 0 ? 7
              : strncasecmp(text, "redis/", 6) == 0 ? 6
              : strncasecmp(text, "rediss/", 7) == 0 ? 7
              : strncasecmp(text, "unix:", 5) == 0 ? 5
              : strncasecmp(text, "unix//", 6) == 0 ? 6
              : *text == ':' && (text == begin || strchr(blanks, text[-1]))
              ? 1 : 0;

        if (len == 0) {
            continue;
        }

        host = text + len + strspn(text + len, "/");
        at = memrchr(host, '@', strcspn(host, blanks));

        if (at != NULL) {
            memmove(host, at + 1, strlen(at + 1) + 1);
        }
    }
}
