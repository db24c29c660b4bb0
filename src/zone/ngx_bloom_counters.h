/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Counters say how often something has happened, for each zone and each rule.
 *
 * They are in shared memory of their own, since they outlive that of a zone,
 * which is recreated when its size changes.  What is counted is a *series*;
 * each process counts in a row of its own, in cache lines that no other writes:
 *
 *     shared memory:   slab header | names of series | row 0 | row 1 | ...
 *     row:             series 0 | series 1 | ...          (three lines each)
 *
 * A sum is over all rows.  A process that dies leaves its row to the next that
 * nginx starts in its place, so nothing is lost and nothing goes backwards
 * until nginx ends.
 *
 * A configuration claims its series by what they are about: that of the one
 * before goes on where it was.  A series that two configurations in a row have
 * not claimed is given away when there is no other.  Once none is left, what is
 * left counts in series 0, all together.
 */

#ifndef _NGX_BLOOM_COUNTERS_H_INCLUDED_
#define _NGX_BLOOM_COUNTERS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_SERIES        256
#define NGX_BLOOM_SERIES_OTHER  0          /* of those that found no room */

#define NGX_BLOOM_COUNTERS      24         /* of a series */


/* Of a zone. */
typedef enum {
    NGX_BLOOM_COUNTER_ABSENT = 0,        /* answers: as NGX_BLOOM_ABSENT ... */
    NGX_BLOOM_COUNTER_PRESENT,
    NGX_BLOOM_COUNTER_UNKNOWN,
    NGX_BLOOM_COUNTER_INVALID,           /* asked for, or to be added */

    NGX_BLOOM_COUNTER_REJECTED,          /* requests */
    NGX_BLOOM_COUNTER_ROUTED,
    NGX_BLOOM_COUNTER_DRY_RUN,           /* that would have been either */

    NGX_BLOOM_COUNTER_ADDED,             /* keys that changed a bit */
    NGX_BLOOM_COUNTER_ALREADY_PRESENT,   /* keys that did not */

    NGX_BLOOM_COUNTER_FEEDBACK_ABSENT,   /* requests under bloom_feedback: key
                                            absent, */
    NGX_BLOOM_COUNTER_FALSE_POSITIVE,    /* maybe present, but it is not */

    NGX_BLOOM_COUNTER_AUDITED,           /* requests let through, of which */
    NGX_BLOOM_COUNTER_CONFIRMED,         /* the backend has no such key */
    NGX_BLOOM_COUNTER_WRONG_ABSENT,      /* it has */
    NGX_BLOOM_COUNTER_UNANSWERED,        /* it did not say */
    NGX_BLOOM_COUNTER_LEARNED,           /* wrong ones that were added, */
    NGX_BLOOM_COUNTER_NOT_LEARNED,       /* or could not be, or too fast */

    NGX_BLOOM_COUNTER_LOAD_OK,           /* loads by the helper, as
                                            ngx_bloom_outcome_e */
    NGX_BLOOM_COUNTER_LOAD_REFUSED,
    NGX_BLOOM_COUNTER_LOAD_NO_ROOM,
    NGX_BLOOM_COUNTER_LOAD_FAILED,
    NGX_BLOOM_COUNTER_LOAD_MS            /* all of them took */
} ngx_bloom_counter_e;


typedef struct {
    uint64_t            n[NGX_BLOOM_COUNTERS];
} __attribute__((aligned(64))) ngx_bloom_counters_t;

/* One for each process, by ngx_process_slot; NULL: nothing is counted. */
extern ngx_bloom_counters_t  (*ngx_bloom_counters_rows)[NGX_BLOOM_SERIES];


/* Counts `n` more of something in this process's own row. */
static ngx_inline void
ngx_bloom_counters_count(ngx_uint_t series, ngx_uint_t what, uint64_t n)
{
    ngx_bloom_counters_rows[ngx_process_slot][series].n[what] += n;
}

/* The sums over all processes. */
void ngx_bloom_counters_sums(ngx_uint_t series,
    uint64_t sums[NGX_BLOOM_COUNTERS]);

/* Sets and returns when a series counted its last wrong absent, ms since 1970;
 * 0: it has counted none. */
void ngx_bloom_counters_set_wrong_at(ngx_uint_t series, uint64_t ms);
uint64_t ngx_bloom_counters_wrong_at(ngx_uint_t series);


/* Declares the memory while a configuration is read, if nobody has. */
ngx_int_t ngx_bloom_counters_declare(ngx_conf_t *cf);

/*
 * When a configuration has been accepted, in the process that read it: begins
 * to claim series, and claims that of a name, in any bytes.
 */
void ngx_bloom_counters_begin(void);
ngx_uint_t ngx_bloom_counters_claim(ngx_str_t *name);

/* In each process, before it counts. */
void ngx_bloom_counters_process(void);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COUNTERS_H_INCLUDED_ */
