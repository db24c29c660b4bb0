
/*
 * Deciding about requests: the handler of the PREACCESS phase.
 */

#include "ngx_http_bloom.h"


/* Of a hostile key no more than this goes to the log. */
#define NGX_HTTP_BLOOM_LOGGED_KEY  256


static ngx_int_t ngx_http_bloom_check_list(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule, ngx_str_t *text, ngx_uint_t *answer);
static ngx_int_t ngx_http_bloom_fire(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key);
static void ngx_http_bloom_note(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_str_t *key);
static ngx_inline void ngx_http_bloom_set(ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_status_e status, ngx_http_bloom_rule_t *rule,
    ngx_str_t *key);
static ngx_int_t ngx_http_bloom_route(ngx_http_request_t *r,
    ngx_http_bloom_rule_t *rule);
static void ngx_http_bloom_log(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_rule_t *rule,
    char *doing, char *finding, ngx_str_t *key);
static void ngx_http_bloom_cleanup(void *data);


ngx_int_t
ngx_http_bloom_rules_handler(ngx_http_request_t *r)
{
    ngx_int_t                   rc;
    ngx_str_t                   key;
    ngx_uint_t                  i, answer;
    ngx_http_bloom_ctx_t       *ctx;
    ngx_http_bloom_rule_t      *rule;
    ngx_http_bloom_loc_conf_t  *blcf;

    blcf = ngx_http_get_module_loc_conf(r, ngx_http_bloom_module);

    if (blcf->rules == NULL || r != r->main) {
        return NGX_DECLINED;
    }

    ctx = ngx_http_bloom_get_ctx(r);

    if (ctx == NULL) {
        ctx = ngx_http_bloom_create_ctx(r);
        if (ctx == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ctx->decided
        || ctx->nchecked == sizeof(ctx->checked) / sizeof(ctx->checked[0]))
    {
        return NGX_DECLINED;
    }

    for (i = 0; i < ctx->nchecked; i++) {
        if (ctx->checked[i] == blcf->rules) {
            return NGX_DECLINED;
        }
    }

    ctx->checked[ctx->nchecked++] = blcf->rules;

    rule = blcf->rules->elts;

    for (i = 0; i < blcf->rules->nelts; i++) {

        rc = rule[i].split
             ? ngx_http_bloom_check_list(r, &rule[i], &key, &answer)
             : ngx_http_bloom_check(r, &rule[i].key, &key, &answer);

        if (rc == NGX_ERROR) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (rc == NGX_DECLINED) {
            continue;
        }

        if (answer == rule[i].fires) {
            return ngx_http_bloom_fire(r, blcf, ctx, &rule[i], &key);
        }

        if (answer == NGX_BLOOM_UNPARSABLE) {
            ngx_http_bloom_log(r, blcf, &rule[i], "passing",
                               "unparsable for", &key);
        }

        if (answer != NGX_BLOOM_UNKNOWN) {
            ngx_http_bloom_note(ctx, NGX_HTTP_BLOOM_PASSED, &rule[i], &key);
            continue;
        }

        ngx_http_bloom_note(ctx, NGX_HTTP_BLOOM_UNAVAILABLE, &rule[i], &key);

        if (blcf->unavailable == NGX_HTTP_BLOOM_UNAVAILABLE_PASS) {
            ngx_http_bloom_log(r, blcf, &rule[i], "passing", "undecided in",
                               &key);
            continue;
        }

        ngx_http_bloom_log(r, blcf, &rule[i], "rejecting", "undecided in",
                           &key);

        if (!blcf->dry_run) {
            ngx_http_bloom_set(ctx, NGX_HTTP_BLOOM_UNAVAILABLE, &rule[i],
                               &key);
            ctx->decided = 1;
            ngx_bloom_count(rule[i].key.zone, NGX_BLOOM_COUNT_REJECTED, 1);
            return NGX_HTTP_SERVICE_UNAVAILABLE;
        }
    }

    return NGX_DECLINED;
}


/*
 * What came of a rule that did not fire.  It hides neither that an earlier
 * rule routed the request nor that a zone could not tell.
 */
static void
ngx_http_bloom_note(ngx_http_bloom_ctx_t *ctx, ngx_http_bloom_status_e status,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key)
{
    if (ctx->status == NGX_HTTP_BLOOM_ROUTED
        || (ctx->status == NGX_HTTP_BLOOM_UNAVAILABLE
            && status == NGX_HTTP_BLOOM_PASSED))
    {
        return;
    }

    ngx_http_bloom_set(ctx, status, rule, key);
}


/* What $bloom_status, $bloom_zone and $bloom_key say. */
static ngx_inline void
ngx_http_bloom_set(ngx_http_bloom_ctx_t *ctx, ngx_http_bloom_status_e status,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key)
{
    ctx->status = status;
    ctx->zone = &rule->key.zone->name;
    ctx->key = *key;
}


static ngx_int_t
ngx_http_bloom_fire(ngx_http_request_t *r, ngx_http_bloom_loc_conf_t *blcf,
    ngx_http_bloom_ctx_t *ctx, ngx_http_bloom_rule_t *rule, ngx_str_t *key)
{
    ngx_uint_t  reject;

    /* all but a route, whose target may have rules of its own */

    ctx->decided = (rule->action != NGX_HTTP_BLOOM_ROUTE || blcf->dry_run);

    if (rule->action == NGX_HTTP_BLOOM_PASS) {
        ngx_http_bloom_set(ctx, NGX_HTTP_BLOOM_PASSED, rule, key);
        return NGX_DECLINED;
    }

    reject = (rule->action == NGX_HTTP_BLOOM_REJECT);

    ngx_http_bloom_log(r, blcf, rule, reject ? "rejecting" : "routing",
                       rule->fires == NGX_BLOOM_ABSENT ? "absent from"
                                                       : "maybe present in",
                       key);

    if (blcf->dry_run) {
        ngx_bloom_count(rule->key.zone, NGX_BLOOM_COUNT_DRY_RUN, 1);
        ngx_http_bloom_set(ctx, reject ? NGX_HTTP_BLOOM_REJECTED_DRY_RUN
                                       : NGX_HTTP_BLOOM_ROUTED_DRY_RUN,
                           rule, key);
        return NGX_DECLINED;
    }

    ngx_bloom_count(rule->key.zone, reject ? NGX_BLOOM_COUNT_REJECTED
                                           : NGX_BLOOM_COUNT_ROUTED, 1);
    ngx_http_bloom_set(ctx, reject ? NGX_HTTP_BLOOM_REJECTED
                                   : NGX_HTTP_BLOOM_ROUTED,
                       rule, key);

    return reject ? (ngx_int_t) rule->status : ngx_http_bloom_route(r, rule);
}


static ngx_int_t
ngx_http_bloom_route(ngx_http_request_t *r, ngx_http_bloom_rule_t *rule)
{
    ngx_str_t  to, args;

    if (ngx_http_complex_value(r, &rule->to, &to) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rule->named) {
        (void) ngx_http_named_location(r, &to);

    } else {
        ngx_http_split_args(r, &to, &args);

        (void) ngx_http_internal_redirect(r, &to, &args);
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


ngx_int_t
ngx_http_bloom_check(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text, ngx_uint_t *answer)
{
    ngx_int_t  rc;

    rc = ngx_http_bloom_text(r, key, text);

    if (rc == NGX_OK) {
        *answer = ngx_bloom_zone_test(key->zone, text, r->pool);

        ngx_bloom_count(key->zone, (ngx_bloom_counter_e) *answer, 1);
    }

    return rc;
}


/*
 * The same for a list, and for what makes the rule fire: one part, or all of
 * them.  What may do so and cannot be told makes the whole unknown; what is no
 * key never does.
 */
static ngx_int_t
ngx_http_bloom_check_list(ngx_http_request_t *r, ngx_http_bloom_rule_t *rule,
    ngx_str_t *text, ngx_uint_t *answer)
{
    ngx_int_t   rc;
    ngx_uint_t  i, parts, fires, other, tally[NGX_BLOOM_ANSWERS];

    rc = ngx_http_bloom_text(r, &rule->key, text);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_zone_test_parts(rule->key.zone, text, rule->split, tally,
                              r->pool);

    for (parts = 0, i = 0; i < NGX_BLOOM_ANSWERS; i++) {
        parts += tally[i];
        ngx_bloom_count(rule->key.zone, (ngx_bloom_counter_e) i, tally[i]);
    }

    if (parts == 0) {
        return NGX_DECLINED;
    }

    fires = rule->fires;
    other = (fires == NGX_BLOOM_ABSENT) ? NGX_BLOOM_PRESENT
                                        : NGX_BLOOM_ABSENT;

    if (rule->all ? tally[fires] == parts : tally[fires] != 0) {
        *answer = fires;

    } else if (rule->all
               && (tally[other] != 0 || tally[NGX_BLOOM_UNPARSABLE] != 0))
    {
        *answer = other;

    } else if (tally[NGX_BLOOM_UNKNOWN] != 0) {
        *answer = NGX_BLOOM_UNKNOWN;

    } else {
        *answer = other;
    }

    if (*answer == other && tally[NGX_BLOOM_UNPARSABLE] == parts) {
        *answer = NGX_BLOOM_UNPARSABLE;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_bloom_text(ngx_http_request_t *r, ngx_http_bloom_key_t *key,
    ngx_str_t *text)
{
    u_char                     *p;
    ngx_http_variable_value_t  *v;

    if (key->index != NGX_ERROR) {

        /* nothing to put together, and so nothing to copy */

        v = ngx_http_get_flushed_variable(r, key->index);

        if (v == NULL || v->not_found) {
            return NGX_DECLINED;
        }

        text->data = v->data;
        text->len = v->len;

    } else if (ngx_http_complex_value(r, &key->value, text) != NGX_OK) {
        return NGX_ERROR;
    }

    if (text->len == 0) {
        return NGX_DECLINED;
    }

    if (key->decode != BLOOM_DECODE_OFF) {

        p = ngx_pnalloc(r->pool, text->len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        text->len = bloom_key_decode(p, text->data, text->len, key->decode);
        text->data = p;
    }

    return NGX_OK;
}


/* Keys come from clients: what is not printable ASCII is written as \xHH. */
static void
ngx_http_bloom_log(ngx_http_request_t *r, ngx_http_bloom_loc_conf_t *blcf,
    ngx_http_bloom_rule_t *rule, char *doing, char *finding, ngx_str_t *key)
{
    size_t       i, len;
    u_char       c, *p, buf[NGX_HTTP_BLOOM_LOGGED_KEY * 4];
    ngx_log_t   *log;

    log = r->connection->log;

    if (log->log_level < blcf->log_level) {
        return;
    }

    p = buf;
    len = ngx_min(key->len, NGX_HTTP_BLOOM_LOGGED_KEY);

    for (i = 0; i < len; i++) {
        c = key->data[i];

        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\') {
            p = ngx_sprintf(p, "\\x%02Xi", (ngx_int_t) c);

        } else {
            *p++ = c;
        }
    }

    ngx_log_error(blcf->log_level, log, 0,
                  "%s request%s: key \"%*s%s\" %s bloom zone \"%V\"",
                  doing, blcf->dry_run ? ", dry run" : "",
                  (size_t) (p - buf), buf, len < key->len ? "..." : "",
                  finding, &rule->key.zone->name);
}


ngx_http_bloom_ctx_t *
ngx_http_bloom_get_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t    *cln;
    ngx_http_bloom_ctx_t  *ctx;

    r = r->main;

    ctx = ngx_http_get_module_ctx(r, ngx_http_bloom_module);

    if (ctx == NULL && (r->internal || r->filter_finalize)) {

        /* the context was cleared by an internal redirect */

        for (cln = r->pool->cleanup; cln; cln = cln->next) {
            if (cln->handler == ngx_http_bloom_cleanup) {
                ctx = cln->data;
                ngx_http_set_ctx(r, ctx, ngx_http_bloom_module);
                break;
            }
        }
    }

    return ctx;
}


ngx_http_bloom_ctx_t *
ngx_http_bloom_create_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t    *cln;
    ngx_http_bloom_ctx_t  *ctx;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_bloom_ctx_t));
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_bloom_cleanup;

    ctx = cln->data;
    ngx_memzero(ctx, sizeof(ngx_http_bloom_ctx_t));

    ngx_http_set_ctx(r, ctx, ngx_http_bloom_module);

    return ctx;
}


/* Only a mark by which the context is found again. */
static void
ngx_http_bloom_cleanup(void *data)
{
}
