/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions log at the levels debug_http and debug_stream what directives
 * do about keys.  In an nginx without --with-debug they are macros that do
 * nothing.
 */

#ifndef _NGX_BLOOM_RULE_DEBUG_H_INCLUDED_
#define _NGX_BLOOM_RULE_DEBUG_H_INCLUDED_

#include "ngx_bloom_rule.h"

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_RULE_DEBUG  (NGX_LOG_DEBUG_HTTP|NGX_LOG_DEBUG_STREAM)

#if (NGX_DEBUG)

/* Logs what a rule found for its key and decided. */
#define ngx_bloom_rule_debug(log, rule, key, answer, decision)                \
    if ((log)->log_level & NGX_BLOOM_RULE_DEBUG)                              \
        ngx_bloom_rule_debug_write(log, rule, key, answer, decision)

/* Logs that a rule is skipped: the value of `condition`, which is "if=", is empty
 * or 0. */
#define ngx_bloom_rule_debug_skip(log, rule, condition)                       \
    if ((log)->log_level & NGX_BLOOM_RULE_DEBUG)                              \
        ngx_bloom_rule_debug_write_skip(log, rule, condition)

/* Logs what is done with a key: `what` is a phrase that a zone's name follows,
 * and `answer` is NGX_BLOOM_ABSENT ..., or NGX_BLOOM_ANSWERS for none. */
#define ngx_bloom_rule_debug_key(log, what, zone, key, answer)                \
    if ((log)->log_level & NGX_BLOOM_RULE_DEBUG)                              \
        ngx_bloom_rule_debug_write_key(log, what, zone, key, answer)

void ngx_bloom_rule_debug_write(ngx_log_t *log, ngx_bloom_rule_t *rule,
    ngx_str_t *key, ngx_uint_t answer, const char *decision);
void ngx_bloom_rule_debug_write_skip(ngx_log_t *log, ngx_bloom_rule_t *rule,
    ngx_str_t *condition);
void ngx_bloom_rule_debug_write_key(ngx_log_t *log, const char *what,
    ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t answer);

#else

#define ngx_bloom_rule_debug(log, rule, key, answer, decision)
#define ngx_bloom_rule_debug_skip(log, rule, condition)
#define ngx_bloom_rule_debug_key(log, what, zone, key, answer)

#endif


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_RULE_DEBUG_H_INCLUDED_ */
