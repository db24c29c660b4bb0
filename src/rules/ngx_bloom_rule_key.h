/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares how the text of a key is decoded, and how a key is
 * written to a log.
 */

#ifndef _NGX_BLOOM_RULE_KEY_H_INCLUDED_
#define _NGX_BLOOM_RULE_KEY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* The last text that was decoded for a request: several rules often have the
 * same key. */
typedef struct {
    bloom_decode_e      decode;          /* BLOOM_DECODE_OFF: no text was */
    ngx_str_t           from;
    ngx_str_t           text;
} ngx_bloom_rule_decoded_t;

/*
 * Decodes a text into memory of `pool`, unless it is the text that was decoded
 * last.  That text must not have changed since; `last` may be NULL.  Returns
 * NGX_OK, or NGX_ERROR if memory is short.
 */
ngx_int_t ngx_bloom_rule_key_decode(ngx_str_t *text, bloom_decode_e decode,
    ngx_bloom_rule_decoded_t *last, ngx_pool_t *pool);

/*
 * Writes a key for the log: up to NGX_BLOOM_RULE_KEY_LOG_LEN bytes.  Keys come
 * from clients, so each byte that is not printable ASCII, and each quote and
 * backslash, becomes \xHH, and of a long key only the first
 * NGX_BLOOM_RULE_KEY_LOGGED bytes are written.  Returns the end of the text.
 */
#define NGX_BLOOM_RULE_KEY_LOGGED   256
#define NGX_BLOOM_RULE_KEY_LOG_LEN  (NGX_BLOOM_RULE_KEY_LOGGED * 4 + 3)

u_char *ngx_bloom_rule_key_log(u_char *p, const ngx_str_t *key);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RULE_KEY_H_INCLUDED_ */
