/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The parts of a list, such as "a, b", are the keys that a rule with split=
 * looks up.
 */

#ifndef _NGX_BLOOM_PARTS_H_INCLUDED_
#define _NGX_BLOOM_PARTS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


/*
 * Cuts off the next parts of a list, at most `most`, and moves *pos behind
 * them.  Splits at each `separator`, strips spaces and tabs around a part, and
 * skips empty parts.  Returns the number of parts, which is less than `most` at
 * the end of the list.
 */
ngx_uint_t ngx_bloom_parts_cut(ngx_str_t *part, ngx_uint_t most, u_char **pos,
    u_char *end, u_char separator);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_PARTS_H_INCLUDED_ */
