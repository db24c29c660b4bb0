/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares bloom_audit.  Of the requests that a rule would reject
 * because their key is absent, it lets some through, drawn at random.  The
 * backend's status says whether the filter was right:
 *
 *     2xx                              the key exists: wrong absent
 *     404 or 410, or the statuses      the key does not exist: confirmed
 *       of bloom_feedback if it has any
 *     another status, no response,     unanswered
 *       or a response of nginx itself
 *
 * Each audited request is counted once, as one of the three, at the latest
 * when it ends.
 */

#ifndef _NGX_HTTP_BLOOM_AUDIT_H_INCLUDED_
#define _NGX_HTTP_BLOOM_AUDIT_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_audit_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Marks the zones that take the keys that an audit adds.  Warns once of an
 * audit that lets many requests through which an enforced rule would reject. */
void ngx_http_bloom_audit_merge(ngx_conf_t *cf,
    ngx_http_bloom_loc_conf_t *conf);

/* Audits some of the requests that a rule is about to reject, in dry run, too.
 * Returns 1 if this one passes the rule for that reason. */
ngx_uint_t ngx_http_bloom_audit_takes(ngx_http_request_t *r,
    ngx_http_bloom_loc_conf_t *blcf, ngx_http_bloom_ctx_t *ctx,
    ngx_http_bloom_rule_t *rule, ngx_str_t *key);

/* Counts what the backend's status says about the key of an audited request,
 * if the request is audited; `status` is 0 if the backend sent none. */
void ngx_http_bloom_audit_response(ngx_http_request_t *r,
    ngx_http_bloom_ctx_t *ctx, ngx_uint_t status);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_AUDIT_H_INCLUDED_ */
