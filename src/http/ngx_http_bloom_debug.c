/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes to the debug log what directives do about keys.
 */

#include "ngx_http_bloom_debug.h"
#include "ngx_http_bloom_key.h"


#if (NGX_DEBUG)

/* by NGX_BLOOM_ABSENT, _PRESENT, _UNKNOWN, _INVALID, NGX_HTTP_BLOOM_EMPTY */
static const char  *ngx_http_bloom_debug_answers[] = {
    "absent",
    "present",
    "unknown",
    "invalid",
    "empty"
};


void
ngx_http_bloom_debug_write_rule(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key, ngx_uint_t answer,
    const char *decision)
{
    u_char  *p, buf[NGX_HTTP_BLOOM_KEY_LOG_LEN];

    p = (answer != NGX_HTTP_BLOOM_EMPTY) ? ngx_http_bloom_key_log(buf, key)
                                         : buf;

    ngx_log_debug6(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "bloom rule \"%V\" of zone \"%V\": key \"%*s\", answer %s, "
                   "%s", &rule->label, &rule->key.zone->name,
                   (size_t) (p - buf), buf,
                   ngx_http_bloom_debug_answers[answer], decision);
}


void
ngx_http_bloom_debug_write_skip(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule)
{
    ngx_log_debug3(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "bloom rule \"%V\" of zone \"%V\": skipped, since \"%V\" "
                   "is empty or 0", &rule->label, &rule->key.zone->name,
                   &rule->filter->value);
}


void
ngx_http_bloom_debug_write_lookup(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_str_t *key, ngx_uint_t answer)
{
    u_char  *p, buf[NGX_HTTP_BLOOM_KEY_LOG_LEN];

    p = ngx_http_bloom_key_log(buf, key);

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "bloom lookup of zone \"%V\": key \"%*s\", answer %s",
                   &zone->name, (size_t) (p - buf), buf,
                   ngx_http_bloom_debug_answers[answer]);
}


void
ngx_http_bloom_debug_write_change(ngx_http_request_t *r, const char *does,
    ngx_bloom_zone_t *zone, ngx_str_t *key)
{
    u_char  *p, buf[NGX_HTTP_BLOOM_KEY_LOG_LEN];

    p = ngx_http_bloom_key_log(buf, key);

    ngx_log_debug4(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "bloom %s zone \"%V\": key \"%*s\"",
                   does, &zone->name, (size_t) (p - buf), buf);
}

#endif
