/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares what is written to logs: keys from clients, decisions,
 * and, at the levels debug_http and debug_stream of an nginx with --with-debug,
 * what each rule found.
 */

#ifndef _NGX_BLOOM_RULE_LOG_H_INCLUDED_
#define _NGX_BLOOM_RULE_LOG_H_INCLUDED_

#include "ngx_bloom_rule.h"

#pragma GCC visibility push(hidden)


/*
 * Writes a key for the log: up to NGX_BLOOM_RULE_LOG_LEN bytes.  Keys come from
 * clients, so each byte that is not printable ASCII, and each quote and
 * backslash, becomes \xHH, and of a long key only the first
 * NGX_BLOOM_RULE_LOG_SHOWN bytes are written.  Returns the end of the text.
 */
#define NGX_BLOOM_RULE_LOG_SHOWN  256
#define NGX_BLOOM_RULE_LOG_LEN    (NGX_BLOOM_RULE_LOG_SHOWN * 4 + 3)

u_char *ngx_bloom_rule_log_key(u_char *p, const ngx_str_t *key);

/*
 * Logs what a rule does, as "rejecting request: key ... absent from bloom zone
 * ...".  `subject` is what the rule decides about, and `answer` is what its
 * zone answered, NGX_BLOOM_ABSENT ... or NGX_BLOOM_RULE_EMPTY.
 */
void ngx_bloom_rule_log(ngx_log_t *log, ngx_uint_t level,
    ngx_bloom_rule_t *rule, const char *doing, const char *subject,
    ngx_uint_t dry_run, ngx_uint_t answer, const ngx_str_t *key);


#if (NGX_DEBUG)

#define NGX_BLOOM_RULE_DEBUG  (NGX_LOG_DEBUG_HTTP|NGX_LOG_DEBUG_STREAM)

/* Logs what a rule found for its key and decided. */
#define ngx_bloom_rule_debug(log, rule, key, answer, decision)                \
    if ((log)->log_level & NGX_BLOOM_RULE_DEBUG)                              \
        ngx_bloom_rule_debug_write(log, rule, key, answer, decision)

void ngx_bloom_rule_debug_write(ngx_log_t *log, ngx_bloom_rule_t *rule,
    ngx_str_t *key, ngx_uint_t answer, const char *decision);

#else

#define ngx_bloom_rule_debug(log, rule, key, answer, decision)

#endif


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RULE_LOG_H_INCLUDED_ */
