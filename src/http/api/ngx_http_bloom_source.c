/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file gathers the changes in a request's body, and applies them when the
 * body is complete.
 */

#include "ngx_http_bloom_source.h"
#include "ngx_http_bloom_body.h"
#include "ngx_http_bloom_ctx.h"
#include "ngx_http_bloom_query.h"
#include "ngx_http_bloom_response.h"
#include "ngx_http_bloom_resume.h"
#include "ngx_bloom_changes.h"


typedef struct {
    ngx_bloom_changes_t         changes;
    ngx_int_t                 (*apply)(ngx_bloom_changes_t *changes);

    ngx_http_bloom_body_t       body;
    ngx_http_bloom_resume_t     resume;
    ngx_http_bloom_error_t      error;   /* of the response */
    ngx_http_request_t         *request;

    size_t                      size;    /* of the keys received, with a sign
                                            and a line end each */
    uint64_t                    invalid; /* of the keys received */
    uint64_t                    number;  /* of the first invalid key */
    const char                 *why;     /* what is wrong with that key */
    ngx_int_t                   rc;      /* of the last apply() */

    unsigned                    gathered:1;        /* the body is complete */
} ngx_http_bloom_source_t;


static ngx_http_bloom_source_t *ngx_http_bloom_source_begin(
    ngx_http_request_t *r, ngx_bloom_zone_t *zone, ngx_uint_t gap,
    ngx_int_t *rc);
static ngx_int_t ngx_http_bloom_source_query(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone, ngx_uint_t gap, bloom_position_t *before,
    bloom_position_t *after, ngx_http_bloom_error_t *error);
static ngx_int_t ngx_http_bloom_source_part(ngx_http_request_t *r,
    uint64_t *offset, ngx_uint_t *more, ngx_http_bloom_error_t *error);
static ngx_int_t ngx_http_bloom_source_position(ngx_http_request_t *r,
    const char *name, bloom_position_t *position,
    ngx_http_bloom_error_t *error);
static ngx_int_t ngx_http_bloom_source_take(void *data, ngx_str_t *key);
static void ngx_http_bloom_source_run(ngx_http_request_t *r);
static ngx_int_t ngx_http_bloom_source_gather(ngx_http_bloom_source_t *source);
static ngx_int_t ngx_http_bloom_source_apply(ngx_http_bloom_source_t *source);
static void ngx_http_bloom_source_fails(ngx_http_bloom_source_t *source,
    ngx_http_bloom_error_code_e code);
static ngx_int_t ngx_http_bloom_source_respond(ngx_http_request_t *r,
    ngx_http_bloom_source_t *source);
static void ngx_http_bloom_source_put_counts(ngx_http_bloom_text_t *text,
    ngx_http_bloom_source_t *source);
static void ngx_http_bloom_source_cleanup(void *data);


ngx_int_t
ngx_http_bloom_source_post_changes(ngx_http_request_t *r,
    ngx_bloom_zone_t *zone)
{
    ngx_int_t                 rc;
    ngx_http_bloom_source_t  *source;

    source = ngx_http_bloom_source_begin(r, zone, 0, &rc);

    if (source == NULL) {
        return rc;
    }

    return ngx_http_bloom_body_start(&source->body, ngx_http_bloom_source_run);
}


ngx_int_t
ngx_http_bloom_source_post_gap(ngx_http_request_t *r, ngx_bloom_zone_t *zone)
{
    ngx_int_t                 rc;
    ngx_http_bloom_source_t  *source;

    source = ngx_http_bloom_source_begin(r, zone, 1, &rc);

    if (source == NULL) {
        return rc;
    }

    source->gathered = 1;

    r->main->count++;

    ngx_http_bloom_source_run(r);

    return NGX_DONE;
}


/* Prepares to take changes, or a gap.  Returns NULL if they are refused; *rc
 * then becomes what the content handler returns. */
static ngx_http_bloom_source_t *
ngx_http_bloom_source_begin(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_uint_t gap, ngx_int_t *rc)
{
    uint64_t                  offset;
    ngx_int_t                 ready;
    ngx_uint_t                more;
    bloom_position_t          before, after;
    ngx_pool_cleanup_t       *cln;
    ngx_http_bloom_source_t  *source;

    *rc = NGX_HTTP_INTERNAL_SERVER_ERROR;

    source = ngx_pcalloc(r->pool, sizeof(ngx_http_bloom_source_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);

    if (source == NULL || cln == NULL) {
        return NULL;
    }

    source->request = r;
    source->apply = gap ? ngx_bloom_changes_gap : ngx_bloom_changes_apply;

    ready = ngx_http_bloom_source_query(r, zone, gap, &before, &after,
                                        &source->error);

    offset = 0;
    more = 0;

    if (ready == NGX_OK && !gap) {
        ready = ngx_http_bloom_source_part(r, &offset, &more, &source->error);
    }

    if (ready == NGX_OK && !gap) {
        ready = ngx_http_bloom_body_init(&source->body, r,
                                         ngx_http_bloom_source_take, source);

        if (ready == NGX_DECLINED) {
            source->error = source->body.error;
        }
    }

    if (ready != NGX_OK) {

        if (ready == NGX_DECLINED) {
            *rc = ngx_http_bloom_response_refuse_error(r, &source->error);
        }

        return NULL;
    }

    if (ngx_http_bloom_ctx_set_operation(r, source) != NGX_OK
        || ngx_http_bloom_resume_init(&source->resume, r,
                                      ngx_http_bloom_source_run)
           != NGX_OK)
    {
        return NULL;
    }

    cln->handler = ngx_http_bloom_source_cleanup;
    cln->data = source;

    ready = ngx_bloom_changes_init(&source->changes, zone, before, after);
    source->changes.offset = offset;
    source->changes.more = more;

    if (ready != NGX_OK) {
        ngx_http_bloom_source_fails(source, ready == NGX_DECLINED
                                            ? NGX_HTTP_BLOOM_E_NOT_POSSIBLE
                                            : NGX_HTTP_BLOOM_E_JOURNAL);

        *rc = ngx_http_bloom_response_refuse_error(r, &source->error);
        return NULL;
    }

    return source;
}


/* Reads and checks the query.  Returns NGX_OK, NGX_DECLINED with an error, or
 * NGX_ERROR. */
static ngx_int_t
ngx_http_bloom_source_query(ngx_http_request_t *r, ngx_bloom_zone_t *zone,
    ngx_uint_t gap, bloom_position_t *before, bloom_position_t *after,
    ngx_http_bloom_error_t *error)
{
    ngx_int_t  rc;
    ngx_str_t  name;

    static const char  *const of_gap[] = { "source", "position", "serving",
                                           NULL };
    static const char  *const of_changes[] = { "source", "after", "position",
                                               "offset", "more", "decode",
                                               "serving", NULL };

    ngx_memzero(before, sizeof(bloom_position_t));

    rc = ngx_http_bloom_query_only(r, gap ? of_gap : of_changes, error);

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_query_value(r, "source", &name, error);
    }

    if (rc == NGX_OK && !gap) {
        rc = ngx_http_bloom_source_position(r, "after", before, error);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_source_position(r, "position", after, error);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (zone->source.len != 0
        && (name.len != zone->source.len
            || ngx_memcmp(name.data, zone->source.data, name.len) != 0))
    {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_SOURCE,
                             "zone \"%V\" takes its changes from the source "
                             "\"%V\", not from \"%V\"", &zone->name,
                             &zone->source, &name);
        return NGX_DECLINED;
    }

    if (!gap && bloom_position_cmp(*before, *after) > 0) {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                             "\"position=\" is before \"after=\", and nothing "
                             "was changed");
        return NGX_DECLINED;
    }

    return NGX_OK;
}


/* Reads which part of the changes between the positions the body is.  Returns
 * as ngx_http_bloom_source_query() does. */
static ngx_int_t
ngx_http_bloom_source_part(ngx_http_request_t *r, uint64_t *offset,
    ngx_uint_t *more, ngx_http_bloom_error_t *error)
{
    ngx_int_t  n;
    ngx_str_t  value;

    if (ngx_http_arg(r, (u_char *) "offset", sizeof("offset") - 1, &value)
        == NGX_OK)
    {
        n = ngx_atoi(value.data, value.len);

        if (n == NGX_ERROR) {
            ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                 "invalid \"offset\" in the query; it must be "
                                 "the number of changes after \"after=\" that "
                                 "earlier requests had");
            return NGX_DECLINED;
        }

        *offset = (uint64_t) n;
    }

    return ngx_http_bloom_query_flag(r, "more", more, error);
}


static ngx_int_t
ngx_http_bloom_source_position(ngx_http_request_t *r, const char *name,
    bloom_position_t *position, ngx_http_bloom_error_t *error)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_bloom_query_value(r, name, &value, error);

    if (rc == NGX_OK
        && bloom_position_parse(position, value.data, value.len) != 0)
    {
        ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                             "invalid \"%s\" in the query; it must be a "
                             "position such as 15 or 1700000000000-3", name);
        return NGX_DECLINED;
    }

    return rc;
}


/* Takes a change of the body. */
static ngx_int_t
ngx_http_bloom_source_take(void *data, ngx_str_t *line)
{
    ngx_http_bloom_source_t *source = data;

    ngx_str_t  key;

    if (line->len == 0 || (line->data[0] != '+' && line->data[0] != '-')) {
        ngx_http_bloom_error(&source->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                             "change %uL is neither +KEY nor -KEY, and nothing "
                             "was changed",
                             ngx_http_bloom_body_number(&source->body));
        return NGX_ERROR;
    }

    key.data = line->data + 1;
    key.len = line->len - 1;

    source->size += key.len + 2;

    if (source->size > NGX_BLOOM_CHANGES_MAX) {
        ngx_http_bloom_error(&source->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                             "the body has more than %d bytes of changes, and "
                             "nothing was changed; send fewer changes at a "
                             "time", NGX_BLOOM_CHANGES_MAX);
        return NGX_ERROR;
    }

    switch (ngx_bloom_changes_put(&source->changes, &key,
                                  line->data[0] == '-'))
    {

    case NGX_OK:
        return NGX_OK;

    case NGX_DECLINED:

        if (source->invalid++ == 0) {
            source->number = ngx_http_bloom_body_number(&source->body);
            source->why = source->changes.batch.error;
        }

        return NGX_OK;

    case NGX_DONE:
        ngx_http_bloom_error(&source->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                             "the changes are too large in the zone's key "
                             "form, and nothing was changed; send fewer "
                             "changes at a time");
        return NGX_ERROR;

    default: /* NGX_ERROR */
        ngx_http_bloom_error(&source->error, NGX_HTTP_BLOOM_E_FAILED,
                             "nginx has no memory for the changes, and nothing "
                             "was changed; try again later");
        return NGX_ERROR;
    }
}


/* Runs the request until it has to wait, or is finished. */
static void
ngx_http_bloom_source_run(ngx_http_request_t *r)
{
    ngx_http_bloom_source_t  *source;

    source = ngx_http_bloom_ctx_operation(r);

    if (!source->gathered) {
        r->read_event_handler = ngx_http_bloom_source_run;

        if (ngx_http_bloom_source_gather(source) == NGX_AGAIN) {
            return;
        }

        source->gathered = 1;
    }

    r->read_event_handler = ngx_http_block_reading;

    if (source->error.code == NGX_HTTP_BLOOM_E_NONE
        && bloom_position_cmp(source->changes.before, source->changes.after)
           == 0
        && (source->changes.received != 0 || source->changes.offset != 0
            || source->changes.more))
    {
        ngx_http_bloom_error(&source->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                             "\"after=\" and \"position=\" are equal, which "
                             "is a sign of life, but the request has changes; "
                             "nothing was changed");
    }

    if (source->error.code == NGX_HTTP_BLOOM_E_NONE && !source->body.gone
        && ngx_http_bloom_source_apply(source) == NGX_AGAIN)
    {
        return;
    }

    ngx_http_finalize_request(r, ngx_http_bloom_source_respond(r, source));
}


/* Reads the body.  Returns NGX_OK at its end, with an error if it is wrong; or
 * NGX_AGAIN if the request has to wait. */
static ngx_int_t
ngx_http_bloom_source_gather(ngx_http_bloom_source_t *source)
{
    switch (ngx_http_bloom_body_read(&source->body)) {

    case NGX_AGAIN:
        return NGX_AGAIN;

    case NGX_DONE:
        ngx_http_bloom_resume_soon(&source->resume);
        return NGX_AGAIN;

    case NGX_ERROR:
        source->error = source->body.error;
        return NGX_OK;

    default: /* NGX_OK, NGX_ABORT */
        return NGX_OK;
    }
}


static ngx_int_t
ngx_http_bloom_source_apply(ngx_http_bloom_source_t *source)
{
    u_char                  text[BLOOM_POSITION_TEXT_MAX];
    ngx_bloom_changes_t    *changes;
    ngx_bloom_add_batch_t  *batch;

    changes = &source->changes;
    batch = &changes->batch;

    source->rc = source->apply(changes);

    switch (source->rc) {

    case NGX_AGAIN:
        ngx_http_bloom_resume_in_queue(&source->resume, changes->zone,
                                       NGX_BLOOM_QUEUE_ROOM);
        return NGX_AGAIN;

    case NGX_OK:
        ngx_bloom_count(changes->zone, NGX_BLOOM_COUNTER_ADDED, batch->added);
        ngx_bloom_count(changes->zone, NGX_BLOOM_COUNTER_ALREADY_PRESENT,
                        batch->already_present);
        ngx_bloom_count(changes->zone, NGX_BLOOM_COUNTER_REMOVED,
                        batch->removed);
        ngx_bloom_count(changes->zone, NGX_BLOOM_COUNTER_REMOVED_ABSENT,
                        batch->absent);
        ngx_bloom_count(changes->zone, NGX_BLOOM_COUNTER_INVALID,
                        source->invalid);
        break;

    case NGX_DONE:
        break;

    case NGX_DECLINED:
        (void) bloom_position_write(changes->reached, (char *) text);
        ngx_http_bloom_error(&source->error, NGX_HTTP_BLOOM_E_POSITION,
                             "zone \"%V\" is at position %s of its source, and "
                             "has %uL changes after it; send the changes that "
                             "follow", &changes->zone->name, text,
                             changes->has);
        break;

    case NGX_ABORT:
        ngx_http_bloom_source_fails(source, NGX_HTTP_BLOOM_E_NO_ROOM);
        break;

    default: /* NGX_ERROR */
        ngx_http_bloom_source_fails(source, NGX_HTTP_BLOOM_E_JOURNAL);
    }

    return NGX_OK;
}


/* Sets the error: the reason why the zone refuses changes. */
static void
ngx_http_bloom_source_fails(ngx_http_bloom_source_t *source,
    ngx_http_bloom_error_code_e code)
{
    u_char                  buf[NGX_MAX_ERROR_STR], *p;
    ngx_bloom_add_batch_t  *batch;

    batch = &source->changes.batch;

    p = buf;

    if (batch->err != 0) {
        p = ngx_log_errno(p, buf + sizeof(buf), batch->err);
    }

    ngx_http_bloom_error(&source->error, code, "zone \"%V\": nothing was "
                         "changed: %s%*s", &source->changes.zone->name,
                         batch->error, (size_t) (p - buf), buf);
}


/* Responds.  Returns what ngx_http_finalize_request() takes. */
static ngx_int_t
ngx_http_bloom_source_respond(ngx_http_request_t *r,
    ngx_http_bloom_source_t *source)
{
    char                   position[BLOOM_POSITION_TEXT_MAX];
    ngx_http_bloom_text_t  text;

    ngx_http_bloom_resume_stop(&source->resume);

    if (source->body.gone) {
        return NGX_HTTP_CLIENT_CLOSED_REQUEST;
    }

    ngx_http_bloom_text_init(&text, r->pool);

    ngx_http_bloom_text_printf(&text, "{");

    if (source->error.code != NGX_HTTP_BLOOM_E_NONE) {
        ngx_http_bloom_error_put(&text, &source->error);

        if (source->error.code == NGX_HTTP_BLOOM_E_POSITION) {
            ngx_http_bloom_text_printf(&text, ",");
        }
    }

    if (source->error.code == NGX_HTTP_BLOOM_E_NONE
        && source->apply == ngx_bloom_changes_apply)
    {
        ngx_http_bloom_text_printf(&text, "\"applied\":%s,",
                                   source->rc == NGX_OK ? "true" : "false");
    }

    if (source->error.code == NGX_HTTP_BLOOM_E_NONE
        || source->error.code == NGX_HTTP_BLOOM_E_POSITION)
    {
        (void) bloom_position_write(source->changes.reached, position);
        ngx_http_bloom_text_printf(&text, "\"position\":\"%s\"", position);

        if (source->changes.has != 0) {
            ngx_http_bloom_text_printf(&text, ",\"offset\":%uL",
                                       source->changes.has);
        }
    }

    if (source->rc == NGX_OK && source->error.code == NGX_HTTP_BLOOM_E_NONE
        && source->apply == ngx_bloom_changes_apply)
    {
        ngx_http_bloom_source_put_counts(&text, source);
    }

    ngx_http_bloom_text_printf(&text, "}");

    return ngx_http_bloom_response_json(r,
                               ngx_http_bloom_error_status(&source->error),
                               &text);
}


static void
ngx_http_bloom_source_put_counts(ngx_http_bloom_text_t *text,
    ngx_http_bloom_source_t *source)
{
    ngx_bloom_add_batch_t  *batch;

    batch = &source->changes.batch;

    ngx_http_bloom_text_printf(text, ",\"received\":%uL,\"added\":%uL,"
                               "\"already_present\":%uL,\"removed\":%uL,"
                               "\"absent\":%uL,\"superseded\":%uL,"
                               "\"invalid\":%uL", source->changes.received,
                               batch->added, batch->already_present,
                               batch->removed, batch->absent,
                               source->changes.superseded, source->invalid);

    if (source->invalid != 0) {
        ngx_http_bloom_text_printf(text,
                                   ",\"first_invalid\":{\"number\":%uL,"
                                   "\"reason\":\"%s\"}", source->number,
                                   source->why);
    }
}


static void
ngx_http_bloom_source_cleanup(void *data)
{
    ngx_http_bloom_source_t *source = data;

    ngx_bloom_changes_end(&source->changes);
}
