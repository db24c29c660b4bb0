/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An explanation says how a lookup comes to its answer: by which expressions,
 * bits and exceptions.
 */

#ifndef _NGX_BLOOM_EXPLAIN_H_INCLUDED_
#define _NGX_BLOOM_EXPLAIN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_form.h"
#include "ngx_bloom_answer.h"

#pragma GCC visibility push(hidden)


/* How a lookup came to its answer. */
typedef struct {
    uint64_t            generation;      /* 0: nothing serves, and no member
                                            below is set */
    uint32_t            form;            /* BLOOM_FORM_... */
    const char         *why;             /* why the key is invalid, a phrase
                                            that follows the key; NULL: it is
                                            valid */
    bloom_form_t        keys;            /* the expressions that were looked
                                            up; set if `why` is NULL */
    ngx_uint_t          behind;          /* 1: the zone may not have applied a
                                            key that it does not find */
    uint64_t            matches;         /* bit i: keys.expression[i] is maybe
                                            present */
    u_char              kinds[BLOOM_FORM_EXPRESSIONS];   /* not 0: all bits of
                                            keys.expression[i] are set, but it
                                            is an exception of these kinds,
                                            BLOOM_EXCEPTION_..., and thus
                                            absent */
    uint32_t            k;               /* number of bits per key */
    uint64_t            bits[BLOOM_K_MAX];   /* places of the bits of the
                                                canonical key,
                                                keys.expression[0]; if keys
                                                expire, those in the slice
                                                that is open */
    u_char              set[BLOOM_K_MAX];    /* 1: that bit is set */
} ngx_bloom_explain_t;

/* Looks up a key as ngx_bloom_lookup() does, and stores how the answer came
 * about.  Does not change *key. */
ngx_uint_t ngx_bloom_explain(ngx_bloom_zone_t *zone, ngx_str_t *key,
    ngx_bloom_explain_t *how, ngx_pool_t *pool);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_EXPLAIN_H_INCLUDED_ */
