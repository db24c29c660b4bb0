/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file routes requests to other locations.
 */

#include "ngx_http_bloom_route.h"
#include "ngx_http_bloom_conf.h"
#include "ngx_http_bloom_key.h"


static ngx_int_t ngx_http_bloom_route_judge(ngx_http_request_t *r,
    ngx_http_bloom_target_t *target, ngx_str_t *path, ngx_str_t *args);
static ngx_uint_t ngx_http_bloom_route_climbs(ngx_str_t *uri);
static ngx_uint_t ngx_http_bloom_route_has(ngx_str_t *text, u_char up_to);


char *
ngx_http_bloom_route_conf(ngx_conf_t *cf, ngx_str_t *to,
    ngx_http_bloom_target_t *target)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    target->directive = value[0];
    target->conf_file = cf->conf_file->file.name.data;
    target->conf_line = cf->conf_file->line;

    if (ngx_http_bloom_conf_value(cf, to, &target->to) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (to->len > 1 && to->data[0] == '@' && target->to.lengths == NULL) {
        target->named = 1;
        return NGX_CONF_OK;
    }

    if (to->len == 0 || to->data[0] != '/') {
        return ngx_http_bloom_conf_invalid_value(cf, "to=", to,
                                                 "\"@name\" without variables, "
                                                 "or a URI that begins with "
                                                 "\"/\"");
    }

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_bloom_route_check(ngx_conf_t *cf, ngx_http_bloom_target_t *target,
    ngx_http_core_srv_conf_t *server)
{
    ngx_str_t   *to, *name;
    ngx_uint_t   i;

    if (!target->named) {
        return NGX_OK;
    }

    to = &target->to.value;

    /* the type of a named location is nginx's ngx_http_core_loc_conf_t, or
     * Angie's ngx_http_core_loc_t; both have a name */

    for (i = 0;
         server->named_locations != NULL && server->named_locations[i] != NULL;
         i++)
    {
        name = &server->named_locations[i]->name;

        if (to->len == name->len
            && ngx_strncmp(to->data, name->data, to->len) == 0)
        {
            return NGX_OK;
        }
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "unknown location \"%V\" for \"%V\" in %s:%ui: the "
                  "directive applies in the server in %s:%ui, which has no "
                  "\"location %V\"; add one",
                  to, &target->directive, target->conf_file, target->conf_line,
                  server->file_name, server->line, to);

    return NGX_ERROR;
}


void
ngx_http_bloom_route_plan(ngx_http_request_t *r, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_target_t *target)
{
    ctx->route = target;

    /* each internal redirect lowers it */

    ctx->route_changes = r->uri_changes;
}


ngx_int_t
ngx_http_bloom_route_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_str_t                 to, args;
    ngx_http_bloom_ctx_t     *ctx;
    ngx_http_bloom_target_t  *target;

    /* a route was planned after the last internal redirect, which clears the
     * contexts */

    ctx = ngx_http_get_module_ctx(r, ngx_http_bloom_module);

    if (r != r->main || ctx == NULL || ctx->route == NULL
        || ctx->route_changes != r->uri_changes)
    {
        return NGX_DECLINED;
    }

    target = ctx->route;
    ctx->route = NULL;

    if (ngx_http_complex_value(r, &target->to, &to) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_str_null(&args);

    if (!target->named) {
        ngx_http_split_args(r, &to, &args);

        rc = ngx_http_bloom_route_judge(r, target, &to, &args);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    ngx_bloom_count(ctx->decision.zone, NGX_BLOOM_COUNTER_ROUTED, 1);

    if (target->named) {
        (void) ngx_http_named_location(r, &to);

    } else {
        (void) ngx_http_internal_redirect(r, &to, &args);
    }

    ngx_http_finalize_request(r, NGX_DONE);

    return NGX_DONE;
}


/* Refuses a URI that is unsafe: values of a client may be in it.  Returns
 * NGX_OK, or the status of the refusal. */
static ngx_int_t
ngx_http_bloom_route_judge(ngx_http_request_t *r,
    ngx_http_bloom_target_t *target, ngx_str_t *path, ngx_str_t *args)
{
    char       *part, *why;
    u_char     *p, buf[NGX_BLOOM_RULE_LOG_LEN];
    ngx_str_t  *text;

    part = "path";
    text = path;

    if (ngx_http_bloom_route_has(path, 0x1f)) {
        why = "has a control character";

    } else if (ngx_http_bloom_route_climbs(path)) {
        why = "has a segment \"..\"";

    } else if (ngx_http_bloom_route_has(args, ' ')) {
        part = "query";
        text = args;
        why = "has a control character or a space";

    } else {
        return NGX_OK;
    }

    p = ngx_bloom_rule_log_key(buf, text);

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "request not routed: the %s \"%*s\" of the target %s; use an "
                  "escaped variable, such as that of \"bloom_arg\", in \"to=\" "
                  "of \"%V\" in %s:%ui", part, (size_t) (p - buf), buf, why,
                  &target->directive, target->conf_file, target->conf_line);

    return NGX_HTTP_BAD_REQUEST;
}


/* Returns 1 if a path has a segment "..". */
static ngx_uint_t
ngx_http_bloom_route_climbs(ngx_str_t *uri)
{
    u_char  *p, *last;

    last = uri->data + uri->len;

    for (p = uri->data; last - p >= 3; p++) {
        if (p[0] == '/' && p[1] == '.' && p[2] == '.'
            && (p + 3 == last || p[3] == '/'))
        {
            return 1;
        }
    }

    return 0;
}


/* Returns 1 if a text has a byte up to this one, or 0x7f. */
static ngx_uint_t
ngx_http_bloom_route_has(ngx_str_t *text, u_char up_to)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {
        if (text->data[i] <= up_to || text->data[i] == 0x7f) {
            return 1;
        }
    }

    return 0;
}
