/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file gathers the changes in a request's body, and applies them when the
 * body is complete.
 */

#include "ngx_http_bloom_source.h"
#include "ngx_http_bloom_counts.h"
#include "ngx_http_bloom_query.h"
#include "ngx_bloom_changes.h"


typedef struct {
    ngx_http_bloom_operation_t  op;
    ngx_bloom_changes_t         changes;
    ngx_http_bloom_counts_t     counts;

    size_t                      size;    /* of the keys received, with a sign
                                            and a line end each */
    ngx_uint_t                  applied;
} ngx_http_bloom_source_t;


static ngx_int_t ngx_http_bloom_source_begin_changes(
    ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_source_part(ngx_http_bloom_source_t *source);
static ngx_int_t ngx_http_bloom_source_begin_gap(
    ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_source_begin(ngx_http_bloom_source_t *source,
    const char *const *args, const char *from);
static ngx_int_t ngx_http_bloom_source_position(ngx_http_bloom_operation_t *op,
    const char *name, bloom_position_t *position);
static ngx_int_t ngx_http_bloom_source_take(ngx_http_bloom_operation_t *op,
    ngx_str_t *line);
static ngx_int_t ngx_http_bloom_source_run_changes(
    ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_source_run_gap(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_source_result(ngx_http_bloom_source_t *source,
    ngx_int_t rc);
static ngx_int_t ngx_http_bloom_source_fail(ngx_http_bloom_source_t *source,
    ngx_http_bloom_error_code_e code);
static void ngx_http_bloom_source_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text);
static void ngx_http_bloom_source_end(ngx_http_bloom_operation_t *op);


const ngx_http_bloom_kind_t  ngx_http_bloom_post_changes = {
    .size = sizeof(ngx_http_bloom_source_t),
    .begin = ngx_http_bloom_source_begin_changes,
    .take = ngx_http_bloom_source_take,
    .run = ngx_http_bloom_source_run_changes,
    .put = ngx_http_bloom_source_put,
    .end = ngx_http_bloom_source_end
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_gap = {
    .size = sizeof(ngx_http_bloom_source_t),
    .begin = ngx_http_bloom_source_begin_gap,
    .run = ngx_http_bloom_source_run_gap,
    .put = ngx_http_bloom_source_put,
    .end = ngx_http_bloom_source_end
};


static ngx_int_t
ngx_http_bloom_source_begin_changes(ngx_http_bloom_operation_t *op)
{
    ngx_int_t                 rc;
    ngx_http_bloom_source_t  *source;

    static const char  *const args[] = { "source", "after", "position",
                                         "offset", "more", "decode", "serving",
                                         NULL };

    source = (ngx_http_bloom_source_t *) op;

    rc = ngx_http_bloom_source_begin(source, args, "after");

    if (rc != NGX_OK) {
        return rc;
    }

    if (bloom_position_cmp(source->changes.before, source->changes.after) > 0) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                    "\"position=\" is before \"after=\", and "
                                    "nothing was changed");
    }

    return ngx_http_bloom_source_part(source);
}


/* Reads which part of the changes between the positions the body is. */
static ngx_int_t
ngx_http_bloom_source_part(ngx_http_bloom_source_t *source)
{
    ngx_int_t                n;
    ngx_str_t                value;
    ngx_http_request_t      *r;
    ngx_http_bloom_error_t  *error;

    r = source->op.request;
    error = &source->op.error;

    if (ngx_http_arg(r, (u_char *) "offset", sizeof("offset") - 1, &value)
        == NGX_OK)
    {
        n = ngx_atoi(value.data, value.len);

        if (n == NGX_ERROR) {
            return ngx_http_bloom_error(error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                        "invalid \"offset\" in the query; it "
                                        "must be the number of changes after "
                                        "\"after=\" that earlier requests had");
        }

        source->changes.offset = (uint64_t) n;
    }

    return ngx_http_bloom_query_flag(r, "more", &source->changes.more, error);
}


static ngx_int_t
ngx_http_bloom_source_begin_gap(ngx_http_bloom_operation_t *op)
{
    static const char  *const args[] = { "source", "position", "serving",
                                         NULL };

    return ngx_http_bloom_source_begin((ngx_http_bloom_source_t *) op, args,
                                       NULL);
}


/* Checks the query of both requests.  `from` is the name of the position before
 * the changes; NULL: there are no changes. */
static ngx_int_t
ngx_http_bloom_source_begin(ngx_http_bloom_source_t *source,
    const char *const *args, const char *from)
{
    ngx_int_t                    rc;
    ngx_str_t                    name;
    bloom_position_t             before, after;
    ngx_bloom_zone_t            *zone;
    ngx_http_bloom_operation_t  *op;

    op = &source->op;
    zone = op->zone;

    ngx_memzero(&before, sizeof(bloom_position_t));

    rc = ngx_http_bloom_query_only(op->request, args, &op->error);

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_query_value(op->request, "source", &name,
                                        &op->error);
    }

    if (rc == NGX_OK && from != NULL) {
        rc = ngx_http_bloom_source_position(op, from, &before);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_bloom_source_position(op, "position", &after);
    }

    if (rc != NGX_OK) {
        return rc;
    }

    if (zone->source.len != 0
        && (name.len != zone->source.len
            || ngx_memcmp(name.data, zone->source.data, name.len) != 0))
    {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_SOURCE,
                                    "zone \"%V\" takes its changes from the "
                                    "source \"%V\", not from \"%V\"",
                                    &zone->name, &zone->source, &name);
    }

    rc = ngx_bloom_changes_init(&source->changes, zone, before, after);

    return rc == NGX_OK
           ? NGX_OK
           : ngx_http_bloom_source_fail(source, rc == NGX_DECLINED
                                                ? NGX_HTTP_BLOOM_E_NOT_POSSIBLE
                                                : NGX_HTTP_BLOOM_E_JOURNAL);
}


static ngx_int_t
ngx_http_bloom_source_position(ngx_http_bloom_operation_t *op,
    const char *name, bloom_position_t *position)
{
    ngx_int_t  rc;
    ngx_str_t  value;

    rc = ngx_http_bloom_query_value(op->request, name, &value, &op->error);

    if (rc == NGX_OK
        && bloom_position_parse(position, value.data, value.len) != 0)
    {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                    "invalid \"%s\" in the query; it must be a "
                                    "position such as 15 or 1700000000000-3",
                                    name);
    }

    return rc;
}


/* Takes a change of the body. */
static ngx_int_t
ngx_http_bloom_source_take(ngx_http_bloom_operation_t *op, ngx_str_t *line)
{
    ngx_str_t                 key;
    ngx_http_bloom_source_t  *source;

    source = (ngx_http_bloom_source_t *) op;

    if (line->len == 0 || (line->data[0] != '+' && line->data[0] != '-')) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                                    "change %uL is neither +KEY nor -KEY, and "
                                    "nothing was changed",
                                    ngx_http_bloom_body_number(&op->body));
    }

    key.data = line->data + 1;
    key.len = line->len - 1;

    source->size += key.len + 2;

    if (source->size > NGX_BLOOM_CHANGES_MAX) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                                    "the body has more than %d bytes of "
                                    "changes, and nothing was changed; send "
                                    "fewer changes at a time",
                                    NGX_BLOOM_CHANGES_MAX);
    }

    switch (ngx_bloom_changes_put(&source->changes, &key,
                                  line->data[0] == '-'))
    {

    case NGX_OK:
        return NGX_OK;

    case NGX_DECLINED:
        ngx_http_bloom_counts_skip(&source->counts, op,
                                   &source->changes.batch);
        return NGX_OK;

    case NGX_DONE:
        ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                             "the changes are too large in the zone's key "
                             "form, and nothing was changed; send fewer "
                             "changes at a time");

        /* fall through */

    default: /* NGX_ERROR */
        return NGX_ERROR;
    }
}


static ngx_int_t
ngx_http_bloom_source_run_changes(ngx_http_bloom_operation_t *op)
{
    ngx_bloom_changes_t      *changes;
    ngx_http_bloom_source_t  *source;

    source = (ngx_http_bloom_source_t *) op;
    changes = &source->changes;

    if (bloom_position_cmp(changes->before, changes->after) == 0
        && (changes->received != 0 || changes->offset != 0 || changes->more))
    {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                                    "\"after=\" and \"position=\" are equal, "
                                    "which is a sign of life, but the request "
                                    "has changes; nothing was changed");
    }

    return ngx_http_bloom_source_result(source,
                                        ngx_bloom_changes_apply(changes));
}


static ngx_int_t
ngx_http_bloom_source_run_gap(ngx_http_bloom_operation_t *op)
{
    ngx_http_bloom_source_t  *source;

    source = (ngx_http_bloom_source_t *) op;

    return ngx_http_bloom_source_result(source,
                                        ngx_bloom_changes_gap(&source->changes)
                                        );
}


/* Sees to what ngx_bloom_changes_apply() or ngx_bloom_changes_gap() has
 * returned. */
static ngx_int_t
ngx_http_bloom_source_result(ngx_http_bloom_source_t *source, ngx_int_t rc)
{
    char                         text[BLOOM_POSITION_TEXT_MAX];
    ngx_bloom_changes_t         *changes;
    ngx_http_bloom_operation_t  *op;

    op = &source->op;
    changes = &source->changes;

    switch (rc) {

    case NGX_AGAIN:
        return ngx_http_bloom_operation_in_queue(op, NGX_BLOOM_QUEUE_ROOM);

    case NGX_OK:
        source->applied = 1;
        source->counts.received = changes->received;
        source->counts.superseded = changes->superseded;

        ngx_bloom_count(op->zone, NGX_BLOOM_COUNTER_INVALID,
                        source->counts.invalid);

        /* fall through */

    case NGX_DONE:
        return NGX_OK;

    case NGX_DECLINED:
        (void) bloom_position_write(changes->reached, text);
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_POSITION,
                                    "zone \"%V\" is at position %s of its "
                                    "source, and has %uL changes after it; "
                                    "send the changes that follow",
                                    &op->zone->name, text, changes->has);

    case NGX_ABORT:
        return ngx_http_bloom_source_fail(source, NGX_HTTP_BLOOM_E_NO_ROOM);

    default: /* NGX_ERROR */
        return ngx_http_bloom_source_fail(source, NGX_HTTP_BLOOM_E_JOURNAL);
    }
}


/* Sets the error: the reason why the zone refuses changes. */
static ngx_int_t
ngx_http_bloom_source_fail(ngx_http_bloom_source_t *source,
    ngx_http_bloom_error_code_e code)
{
    return ngx_http_bloom_counts_fail(&source->op, &source->changes.batch,
                                      code, "nothing was changed");
}


/* Appends where the zone is, and what became of the changes. */
static void
ngx_http_bloom_source_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text)
{
    char                      position[BLOOM_POSITION_TEXT_MAX];
    ngx_uint_t                counts;
    bloom_json_writer_t      *json;
    ngx_http_bloom_source_t  *source;

    if (op->error.code != NGX_HTTP_BLOOM_E_NONE
        && op->error.code != NGX_HTTP_BLOOM_E_POSITION)
    {
        return;
    }

    source = (ngx_http_bloom_source_t *) op;
    json = &text->json;

    counts = (op->error.code == NGX_HTTP_BLOOM_E_NONE
              && op->kind == &ngx_http_bloom_post_changes);

    if (counts) {
        bloom_json_put_bool(json, "applied", source->applied);
    }

    (void) bloom_position_write(source->changes.reached, position);
    bloom_json_put_text(json, "position", position);

    if (source->changes.has != 0) {
        bloom_json_put_count(json, "offset", source->changes.has);
    }

    if (counts && source->applied) {
        ngx_http_bloom_counts_put(&source->counts, op, &source->changes.batch,
                                  1, 1, json);
    }
}


static void
ngx_http_bloom_source_end(ngx_http_bloom_operation_t *op)
{
    ngx_bloom_changes_end(&((ngx_http_bloom_source_t *) op)->changes);
}
