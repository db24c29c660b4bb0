/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes keys and decisions to logs.
 */

#include "ngx_bloom_rule_log.h"


u_char *
ngx_bloom_rule_log_key(u_char *p, const ngx_str_t *key)
{
    u_char  c;
    size_t  i, len;

    len = ngx_min(key->len, NGX_BLOOM_RULE_LOG_SHOWN);

    for (i = 0; i < len; i++) {
        c = key->data[i];

        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            p = ngx_sprintf(p, "\\x%02Xi", (ngx_int_t) c);

        } else {
            *p++ = c;
        }
    }

    return len < key->len ? ngx_cpymem(p, "...", 3) : p;
}


void
ngx_bloom_rule_log(ngx_log_t *log, ngx_uint_t level, ngx_bloom_rule_t *rule,
    const char *doing, const char *subject, ngx_uint_t dry_run,
    ngx_uint_t answer, const ngx_str_t *key)
{
    u_char  *p, buf[NGX_BLOOM_RULE_LOG_LEN + sizeof("key \"\" ") - 1];

    /* by `answer` */

    static const char  *findings[] = {
        "absent from", "maybe present in", "unknown in", "invalid for",
        "no key for"
    };

    p = buf;

    if (answer != NGX_BLOOM_RULE_EMPTY) {
        p = ngx_cpymem(p, "key \"", 5);
        p = ngx_bloom_rule_log_key(p, key);
        p = ngx_cpymem(p, "\" ", 2);
    }

    ngx_log_error(level, log, 0, "%s %s%s: %*s%s bloom zone \"%V\"", doing,
                  subject, dry_run ? ", dry run" : "", (size_t) (p - buf), buf,
                  findings[answer], &rule->zone->name);
}


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
    u_char  *p, buf[NGX_BLOOM_RULE_LOG_LEN];

    p = (answer != NGX_BLOOM_RULE_EMPTY) ? ngx_bloom_rule_log_key(buf, key)
                                         : buf;

    ngx_log_debug6(NGX_BLOOM_RULE_DEBUG, log, 0,
                   "bloom rule \"%V\" of zone \"%V\": key \"%*s\", answer %s, "
                   "%s", &rule->label, &rule->zone->name, (size_t) (p - buf),
                   buf, ngx_bloom_rule_debug_answers[answer], decision);
}

#endif
