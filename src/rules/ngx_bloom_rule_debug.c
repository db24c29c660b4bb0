/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes to the debug log what directives do about keys.
 */

#include "ngx_bloom_rule_debug.h"
#include "ngx_bloom_rule_key.h"


#if (NGX_DEBUG)

/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _INVALID, NGX_BLOOM_RULE_EMPTY */
static const char  *ngx_bloom_rule_debug_answers[] = {
    "absent",
    "present",
    "unknown",
    "invalid",
    "empty"
};


void
ngx_bloom_rule_debug_write(ngx_log_t *log, ngx_bloom_rule_t *rule,
    ngx_str_t *key, ngx_uint_t answer, const char *decision)
{
    u_char  *p, buf[NGX_BLOOM_RULE_KEY_LOG_LEN];

    p = (answer != NGX_BLOOM_RULE_EMPTY) ? ngx_bloom_rule_key_log(buf, key)
                                         : buf;

    ngx_log_debug6(NGX_BLOOM_RULE_DEBUG, log, 0,
                   "bloom rule \"%V\" of zone \"%V\": key \"%*s\", answer %s, "
                   "%s", &rule->label, &rule->zone->name, (size_t) (p - buf),
                   buf, ngx_bloom_rule_debug_answers[answer], decision);
}


void
ngx_bloom_rule_debug_write_skip(ngx_log_t *log, ngx_bloom_rule_t *rule,
    ngx_str_t *condition)
{
    ngx_log_debug3(NGX_BLOOM_RULE_DEBUG, log, 0,
                   "bloom rule \"%V\" of zone \"%V\": skipped, since \"%V\" "
                   "is empty or 0", &rule->label, &rule->zone->name, condition);
}


void
ngx_bloom_rule_debug_write_key(ngx_log_t *log, const char *what,
    ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t answer)
{
    u_char  *p, buf[NGX_BLOOM_RULE_KEY_LOG_LEN];

    p = ngx_bloom_rule_key_log(buf, key);

    ngx_log_debug6(NGX_BLOOM_RULE_DEBUG, log, 0,
                   "bloom %s zone \"%V\": key \"%*s\"%s%s", what, &zone->name,
                   (size_t) (p - buf), buf,
                   answer == NGX_BLOOM_ANSWERS ? "" : ", answer ",
                   answer == NGX_BLOOM_ANSWERS
                   ? "" : ngx_bloom_rule_debug_answers[answer]);
}

#endif
