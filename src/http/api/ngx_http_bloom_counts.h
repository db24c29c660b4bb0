/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares the counts of a request that changes keys: what became
 * of the keys that it received.
 *
 *     received = added + already_present + removed + absent + superseded
 *                + invalid + refused
 */

#ifndef _NGX_HTTP_BLOOM_COUNTS_H_INCLUDED_
#define _NGX_HTTP_BLOOM_COUNTS_H_INCLUDED_

#include "ngx_http_bloom_operation.h"
#include "ngx_bloom_add.h"

#pragma GCC visibility push(hidden)


typedef struct {
    uint64_t                    received;
    uint64_t                    superseded;
    uint64_t                    invalid;
    uint64_t                    number;  /* of the first invalid key */
    const char                 *why;     /* what is wrong with that key */
} ngx_http_bloom_counts_t;

/*
 * Counts an invalid key, which is left out: a feed of a million lines has some
 * that are not URLs.  The response says how many there are and names the first,
 * which is the one that the body has just given.  batch->error says what is
 * wrong with it.
 */
void ngx_http_bloom_counts_skip(ngx_http_bloom_counts_t *counts,
    ngx_http_bloom_operation_t *op, ngx_bloom_batch_t *batch);

/*
 * Appends the counts to an object: those of keys to add, if `adds`, and of keys
 * to remove, if `removes`.  If the operation has failed, the keys that the
 * batch does not count were refused.
 */
void ngx_http_bloom_counts_put(ngx_http_bloom_counts_t *counts,
    ngx_http_bloom_operation_t *op, const ngx_bloom_batch_t *batch,
    ngx_uint_t adds, ngx_uint_t removes, bloom_json_writer_t *json);

/* Sets op->error: what a failure of the batch means, and the zone's reason.
 * Returns NGX_ERROR. */
ngx_int_t ngx_http_bloom_counts_fail(ngx_http_bloom_operation_t *op,
    const ngx_bloom_batch_t *batch, ngx_http_bloom_error_code_e code,
    const char *meaning);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_COUNTS_H_INCLUDED_ */
