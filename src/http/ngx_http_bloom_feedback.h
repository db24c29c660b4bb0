/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header declares bloom_feedback, which measures the false-positive rate
 * of a zone by the statuses of the backend.
 *
 * If the filter answers "present" and the backend says that the key does not
 * exist, the answer was a false positive.  A key that does not exist is either
 * found absent or a false positive, so the measured rate of a zone is
 *
 *     false positives / (false positives + absent)
 *
 * counted in requests where bloom_feedback is on.  With except=on, some keys
 * are absent only because they are excepted keys.  Without except=on, each
 * request for such a key would be a false positive, and the measured rate
 *
 *     (false positives + excepted rejected) / (false positives + absent)
 *
 * If several rules on "absent" let the same request pass, nobody knows which of
 * their answers was wrong, and no false positive is counted.  The same is true
 * if one of these rules let the request pass in spite of another answer than
 * "present", as in a dry run or under bloom_audit: the backend may have meant
 * the key of that rule.  A rule on trial is left out: it must not change what
 * the enforced rules measure.
 */

#ifndef _NGX_HTTP_BLOOM_FEEDBACK_H_INCLUDED_
#define _NGX_HTTP_BLOOM_FEEDBACK_H_INCLUDED_

#include "ngx_http_bloom.h"
#include "ngx_bloom_lookup.h"

#pragma GCC visibility push(hidden)


char *ngx_http_bloom_feedback_conf(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* Marks the zones that except keys. */
void ngx_http_bloom_feedback_merge(ngx_http_bloom_loc_conf_t *conf);

/* Prepares to note the answer of a rule, before the zone is asked. */
static ngx_inline void
ngx_http_bloom_feedback_begin(ngx_http_bloom_feedback_t *feedback,
    ngx_http_bloom_rule_t *rule, ngx_bloom_adapt_mark_t *mark)
{
    ngx_bloom_lookup_excepted = NULL;

    if (feedback->except) {
        ngx_bloom_adapt_mark(rule->key.zone, mark);
    }
}

/* Notes the answer that a rule under bloom_feedback got about a key, and when
 * the zone was asked. */
void ngx_http_bloom_feedback_note(ngx_http_request_t *r,
    ngx_http_bloom_ctx_t *ctx, ngx_http_bloom_feedback_t *feedback,
    ngx_http_bloom_rule_t *rule, ngx_uint_t answer, ngx_str_t *key,
    ngx_bloom_adapt_mark_t *mark);

/* Returns 1 if `status` is one of the statuses of a bloom_feedback, by which
 * the backend says that a key does not exist. */
ngx_uint_t ngx_http_bloom_feedback_denies(ngx_http_bloom_feedback_t *feedback,
    ngx_uint_t status);

/*
 * Returns 1 if the backend may have read another path than the rules: the
 * client wrote it with escapes, "//" or "..", and the backend got it as it was
 * written.  Its status then says nothing about the checked key.  The key may
 * come from elsewhere, but the path chooses what the backend does with it.
 */
ngx_uint_t ngx_http_bloom_feedback_path_differs(ngx_http_request_t *r);

/*
 * Counts a false positive if the backend's status says that there was one, and
 * excepts the key if that is wanted.  `status` is 0 if no backend answered.
 */
void ngx_http_bloom_feedback_response(ngx_http_request_t *r,
    ngx_http_bloom_ctx_t *ctx, ngx_uint_t status);


#pragma GCC visibility pop

#endif /* _NGX_HTTP_BLOOM_FEEDBACK_H_INCLUDED_ */
