/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * With bloom_feedback, the backend says which keys do not exist, of those that
 * a rule let pass.
 *
 * A key that is maybe present, and of which the backend says that it does not
 * exist, was a false positive.  A key that does not exist is either such a
 * false positive or was found absent, so the measured rate of a zone is
 *
 *     false positives / (false positives + absent)
 *
 * counted in requests where bloom_feedback is on.  Where several rules let one
 * request pass, any of them may be wrong, and none is counted; nor if one of
 * them did not say "maybe present", as in a dry run or under bloom_audit: the
 * backend's answer may be about that one's key.
 */

#ifndef _NGX_HTTP_BLOOM_FEEDBACK_H_INCLUDED_
#define _NGX_HTTP_BLOOM_FEEDBACK_H_INCLUDED_

#include "ngx_http_bloom.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_feedback_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Notes what a rule under bloom_feedback has answered. */
void ngx_http_bloom_feedback_note(ngx_http_bloom_ctx_t *ctx,
    ngx_array_t *statuses, ngx_http_bloom_rule_t *rule, ngx_uint_t answer);

/* Returns 1 if `status` is one of those that say that a key does not exist. */
ngx_uint_t ngx_http_bloom_feedback_denies(ngx_array_t *statuses,
    ngx_uint_t status);

/*
 * Counts a false positive if the backend's status says that there was one.
 * `status` may also be that of nginx's cache; 0: none.
 */
void ngx_http_bloom_feedback_response(ngx_http_bloom_ctx_t *ctx,
    ngx_uint_t status);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_FEEDBACK_H_INCLUDED_ */
