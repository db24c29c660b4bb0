/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file gathers the changes in a request's body, and applies them when the
 * body is complete.
 */

#include "ngx_http_bloom_counts.h"
#include "ngx_bloom_changes.h"


typedef struct {
    ngx_http_bloom_operation_t  op;
    ngx_bloom_changes_t         changes;
    ngx_http_bloom_counts_t     counts;

    /* of the query */

    ngx_str_t                   name;    /* of the source */
    bloom_position_t            before;
    bloom_position_t            after;
    uint64_t                    offset;
    ngx_uint_t                  more;

    ngx_uint_t                  applied;
} ngx_http_bloom_source_t;


static ngx_int_t ngx_http_bloom_source_begin(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_source_take(ngx_http_bloom_operation_t *op,
    ngx_str_t *line);
static ngx_int_t ngx_http_bloom_source_run(ngx_http_bloom_operation_t *op);
static ngx_int_t ngx_http_bloom_source_fail(ngx_http_bloom_source_t *source,
    ngx_http_bloom_error_code_e code);
static void ngx_http_bloom_source_put(ngx_http_bloom_operation_t *op,
    ngx_http_bloom_text_t *text);
static void ngx_http_bloom_source_end(ngx_http_bloom_operation_t *op);


#define ngx_http_bloom_source_arg(name, type, member, must, required)          \
    { name, type, offsetof(ngx_http_bloom_source_t, member), must, { NULL },  \
      0, NGX_MAX_INT_T_VALUE, required }
#define NGX_HTTP_BLOOM_SOURCE_POSITION                                        \
    "a position such as 15 or 1700000000000-3"

static const ngx_http_bloom_arg_t  ngx_http_bloom_source_args_changes[] = {
    ngx_http_bloom_source_arg("source", NGX_HTTP_BLOOM_ARG_TEXT, name, NULL, 1),
    ngx_http_bloom_source_arg("after", NGX_HTTP_BLOOM_ARG_POSITION, before,
                              NGX_HTTP_BLOOM_SOURCE_POSITION, 1),
    ngx_http_bloom_source_arg("position", NGX_HTTP_BLOOM_ARG_POSITION, after,
                              NGX_HTTP_BLOOM_SOURCE_POSITION, 1),
    ngx_http_bloom_source_arg("offset", NGX_HTTP_BLOOM_ARG_NUMBER, offset,
                              "the number of changes after \"after=\" that "
                              "earlier requests had", 0),
    ngx_http_bloom_arg_flag("more", ngx_http_bloom_source_t, more),
    ngx_http_bloom_arg_decode,
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};

static const ngx_http_bloom_arg_t  ngx_http_bloom_source_args_gap[] = {
    ngx_http_bloom_source_arg("source", NGX_HTTP_BLOOM_ARG_TEXT, name, NULL, 1),
    ngx_http_bloom_source_arg("position", NGX_HTTP_BLOOM_ARG_POSITION, after,
                              NGX_HTTP_BLOOM_SOURCE_POSITION, 1),
    ngx_http_bloom_arg_serving,
    ngx_http_bloom_arg_end
};


const ngx_http_bloom_kind_t  ngx_http_bloom_post_changes = {
    .size = sizeof(ngx_http_bloom_source_t),
    .args = ngx_http_bloom_source_args_changes,
    .begin = ngx_http_bloom_source_begin,
    .take = ngx_http_bloom_source_take,
    .run = ngx_http_bloom_source_run,
    .put = ngx_http_bloom_source_put,
    .end = ngx_http_bloom_source_end
};

const ngx_http_bloom_kind_t  ngx_http_bloom_post_gap = {
    .size = sizeof(ngx_http_bloom_source_t),
    .args = ngx_http_bloom_source_args_gap,
    .begin = ngx_http_bloom_source_begin,
    .run = ngx_http_bloom_source_run,
    .put = ngx_http_bloom_source_put,
    .end = ngx_http_bloom_source_end
};


static ngx_int_t
ngx_http_bloom_source_begin(ngx_http_bloom_operation_t *op)
{
    ngx_int_t                 rc;
    ngx_str_t                *name;
    ngx_bloom_zone_t         *zone;
    ngx_http_bloom_source_t  *source;

    source = (ngx_http_bloom_source_t *) op;
    zone = op->zone;
    name = &source->name;

    if (bloom_position_cmp(source->before, source->after) > 0) {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_QUERY,
                                    "\"position=\" is before \"after=\", and "
                                    "nothing was changed");
    }

    if (zone->source.len != 0
        && (name->len != zone->source.len
            || ngx_memcmp(name->data, zone->source.data, name->len) != 0))
    {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_SOURCE,
                                    "zone \"%V\" takes its changes from the "
                                    "source \"%V\", not from \"%V\"",
                                    &zone->name, &zone->source, name);
    }

    rc = ngx_bloom_changes_init(&source->changes, zone, source->before,
                                source->after);

    source->changes.offset = source->offset;
    source->changes.more = source->more;

    return rc == NGX_OK
           ? NGX_OK
           : ngx_http_bloom_source_fail(source, rc == NGX_DECLINED
                                                ? NGX_HTTP_BLOOM_E_NOT_POSSIBLE
                                                : NGX_HTTP_BLOOM_E_JOURNAL);
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
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_TOO_LARGE,
                                    "the changes are too large in the zone's "
                                    "key form, and nothing was changed; send "
                                    "fewer changes at a time: %d bytes fit "
                                    "unless keys grow in that form",
                                    NGX_BLOOM_CHANGES_MAX);

    default: /* NGX_ERROR */
        return NGX_ERROR;
    }
}


static ngx_int_t
ngx_http_bloom_source_run(ngx_http_bloom_operation_t *op)
{
    char                      text[BLOOM_POSITION_TEXT_MAX];
    ngx_int_t                 rc;
    ngx_bloom_changes_t      *changes;
    ngx_http_bloom_source_t  *source;

    source = (ngx_http_bloom_source_t *) op;
    changes = &source->changes;

    if (op->kind == &ngx_http_bloom_post_gap) {
        rc = ngx_bloom_changes_gap(changes);

    } else if (bloom_position_cmp(changes->before, changes->after) == 0
               && (changes->received != 0 || changes->offset != 0
                   || changes->more))
    {
        return ngx_http_bloom_error(&op->error, NGX_HTTP_BLOOM_E_BAD_BODY,
                                    "\"after=\" and \"position=\" are equal, "
                                    "which is a sign of life, but the request "
                                    "has changes; nothing was changed");

    } else {
        rc = ngx_bloom_changes_apply(changes);
    }

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
