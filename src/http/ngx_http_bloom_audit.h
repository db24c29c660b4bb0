/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * bloom_audit lets through some of the requests that a rule would reject, since
 * their key is absent; they are drawn at random, and the backend's answer
 * decides:
 *
 *     2xx                       the key exists: a wrong absent
 *     404, 410, or a status     the key does not exist: the filter was right
 *       of bloom_feedback
 *     anything else, nothing,   nobody knows: unanswered
 *       or an answer of nginx
 *
 * Each audited request is counted as one of the three, at the latest when it
 * ends.
 */

#ifndef _NGX_HTTP_BLOOM_AUDIT_H_INCLUDED_
#define _NGX_HTTP_BLOOM_AUDIT_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_audit_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_bloom_audit_merge(ngx_conf_t *cf,
    ngx_http_bloom_loc_conf_t *prev, ngx_http_bloom_loc_conf_t *conf);

/* Returns 1 if a request that is about to be rejected is let through. */
ngx_uint_t ngx_http_bloom_audit_takes(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key);

/* Counts what the backend's status says of an audited key; 0: none. */
void ngx_http_bloom_audit_response(ngx_http_request_t *r,
    ngx_http_bloom_ctx_t *ctx, ngx_uint_t status);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_AUDIT_H_INCLUDED_ */
