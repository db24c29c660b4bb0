/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions log at the level debug_http what directives do about keys.
 * In an nginx without --with-debug they are macros that do nothing.
 */

#ifndef _NGX_HTTP_BLOOM_DEBUG_H_INCLUDED_
#define _NGX_HTTP_BLOOM_DEBUG_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


#if (NGX_DEBUG)

#define ngx_http_bloom_debug(r, call)                                         \
    if ((r)->connection->log->log_level & NGX_LOG_DEBUG_HTTP) call

/* Logs what a rule found for its key and decided. */
#define ngx_http_bloom_debug_rule(r, rule, key, answer, decision)             \
    ngx_http_bloom_debug(r, ngx_http_bloom_debug_write_rule(r, rule, key,     \
                                                            answer, decision))

/* Logs that a rule is skipped because of "if=". */
#define ngx_http_bloom_debug_skip(r, rule)                                    \
    ngx_http_bloom_debug(r, ngx_http_bloom_debug_write_skip(r, rule))

/* Logs the answer of a zone to bloom_lookup. */
#define ngx_http_bloom_debug_lookup(r, zone, key, answer)                     \
    ngx_http_bloom_debug(r, ngx_http_bloom_debug_write_lookup(r, zone, key,   \
                                                              answer))

/* Logs a key that bloom_add adds or bloom_remove removes: `does` is "add to" or
 * "remove from". */
#define ngx_http_bloom_debug_change(r, does, zone, key)                       \
    ngx_http_bloom_debug(r, ngx_http_bloom_debug_write_change(r, does, zone,  \
                                                              key))

void ngx_http_bloom_debug_write_rule(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key, ngx_uint_t answer,
    const char *decision);
void ngx_http_bloom_debug_write_skip(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule);
void ngx_http_bloom_debug_write_lookup(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t answer);
void ngx_http_bloom_debug_write_change(ngx_http_request_t *r, const char *does,
    ngx_bloom_zone_t *zone, ngx_str_t *key);

#else

#define ngx_http_bloom_debug_rule(r, rule, key, answer, decision)
#define ngx_http_bloom_debug_skip(r, rule)
#define ngx_http_bloom_debug_lookup(r, zone, key, answer)
#define ngx_http_bloom_debug_change(r, does, zone, key)

#endif


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_DEBUG_H_INCLUDED_ */
