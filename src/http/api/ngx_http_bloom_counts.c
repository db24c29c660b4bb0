/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file writes what became of the keys of a request.
 */

#include "ngx_http_bloom_counts.h"


void
ngx_http_bloom_counts_skip(ngx_http_bloom_counts_t *counts,
    ngx_http_bloom_operation_t *op, ngx_bloom_batch_t *batch)
{
    if (counts->invalid++ == 0) {
        counts->number = ngx_http_bloom_body_number(&op->body);
        counts->why = batch->error;
    }
}


void
ngx_http_bloom_counts_put(ngx_http_bloom_counts_t *counts,
    ngx_http_bloom_operation_t *op, const ngx_bloom_batch_t *batch,
    ngx_uint_t adds, ngx_uint_t removes, bloom_json_writer_t *json)
{
    uint64_t  invalid;

    invalid = counts->invalid + batch->invalid;

    bloom_json_put_count(json, "received", counts->received);

    if (adds) {
        bloom_json_put_count(json, "added", batch->added);
        bloom_json_put_count(json, "already_present", batch->already_present);
    }

    if (removes) {
        bloom_json_put_count(json, "removed", batch->removed);
        bloom_json_put_count(json, "absent", batch->absent);
    }

    if (adds && removes) {
        bloom_json_put_count(json, "superseded", counts->superseded);
    }

    bloom_json_put_count(json, "invalid", invalid);

    if (op->error.code != NGX_HTTP_BLOOM_E_NONE) {
        bloom_json_put_count(json, "refused", counts->received - invalid
                             - counts->superseded
                             - batch->added - batch->already_present
                             - batch->removed - batch->absent);
    }

    if (counts->invalid != 0) {
        bloom_json_put_object(json, "first_invalid");
        bloom_json_put_count(json, "number", counts->number);
        bloom_json_put_text(json, "reason", counts->why);
        bloom_json_put_end(json);
    }
}


ngx_int_t
ngx_http_bloom_counts_fail(ngx_http_bloom_operation_t *op,
    const ngx_bloom_batch_t *batch, ngx_http_bloom_error_code_e code,
    const char *meaning)
{
    u_char  buf[NGX_MAX_ERROR_STR], *p;

    p = buf;

    if (batch->err != 0) {
        p = ngx_log_errno(p, buf + sizeof(buf), batch->err);
    }

    ngx_http_bloom_error(&op->error, code, "zone \"%V\": %s: %s%*s",
                         &op->zone->name, meaning, batch->error,
                         (size_t) (p - buf), buf);

    return NGX_ERROR;
}
