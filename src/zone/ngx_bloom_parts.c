/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_parts.h"


static ngx_uint_t ngx_bloom_parts_next(ngx_str_t *part, u_char **pos,
    u_char *end, u_char separator);


ngx_uint_t
ngx_bloom_parts_cut(ngx_str_t *part, ngx_uint_t most, u_char **pos, u_char *end,
    u_char separator)
{
    ngx_uint_t  n;

    for (n = 0; n < most; n++) {
        if (!ngx_bloom_parts_next(&part[n], pos, end, separator)) {
            break;
        }
    }

    return n;
}


static ngx_uint_t
ngx_bloom_parts_next(ngx_str_t *part, u_char **pos, u_char *end,
    u_char separator)
{
    u_char  *p, *last;

    while (*pos < end) {
        p = *pos;
        last = ngx_strlchr(p, end, separator);

        if (last == NULL) {
            last = end;
        }

        *pos = last + 1;

        while (p < last && (*p == ' ' || *p == '\t')) {
            p++;
        }

        while (p < last && (last[-1] == ' ' || last[-1] == '\t')) {
            last--;
        }

        if (p < last) {
            part->data = p;
            part->len = last - p;
            return 1;
        }
    }

    return 0;
}
