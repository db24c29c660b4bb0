/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Counters count events for each zone and each rule.
 *
 * They have shared memory of their own, because they outlive the memory of a
 * zone, which is recreated when the zone's size changes.  The counters of one
 * zone or rule are a *series*.  Each process counts in a row of its own, in
 * cache lines that no other process writes:
 *
 *     shared memory:   slab header | names of series | row 0 | row 1 | ...
 *     row:             series 0 | series 1 | ...          (four lines each)
 *
 * A counter's value is the sum over all rows.  When a process dies, the process
 * that nginx starts in its place continues the row.  So until nginx ends no
 * count is lost, and no value decreases.
 *
 * A configuration claims each series by the name of what it counts, so the same
 * zone or rule keeps its series at a reload.  If all series are in use, a new
 * name gets a series that the last two configurations did not claim.  If there
 * is no such series, the zone or rule counts in series 0, together with all
 * others that found no series.
 */

#ifndef _NGX_BLOOM_COUNTERS_H_INCLUDED_
#define _NGX_BLOOM_COUNTERS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_SERIES        256
#define NGX_BLOOM_SERIES_OTHER  0          /* shared when no other is left */

#define NGX_BLOOM_COUNTERS      32         /* of a series */


/* The counters of a zone. */
typedef enum {
    NGX_BLOOM_COUNTER_ABSENT = 0,        /* lookups, in the order of
                                            NGX_BLOOM_ABSENT ... */
    NGX_BLOOM_COUNTER_PRESENT,
    NGX_BLOOM_COUNTER_UNKNOWN,
    NGX_BLOOM_COUNTER_INVALID,           /* lookups and additions */

    NGX_BLOOM_COUNTER_REJECTED,          /* requests */
    NGX_BLOOM_COUNTER_ROUTED,            /* requests that took their route */
    NGX_BLOOM_COUNTER_DRY_RUN,           /* requests that a rule on trial would
                                            have rejected or routed */

    NGX_BLOOM_COUNTER_ADDED,             /* added keys that changed a bit */
    NGX_BLOOM_COUNTER_ALREADY_PRESENT,   /* added keys that changed none */

    NGX_BLOOM_COUNTER_REMOVED,           /* removed keys that were present */
    NGX_BLOOM_COUNTER_REMOVED_ABSENT,    /* removed keys that were absent */
    NGX_BLOOM_COUNTER_NOT_REMOVED,       /* keys that bloom_remove could not
                                            remove */

    NGX_BLOOM_COUNTER_FEEDBACK_ABSENT,   /* requests with bloom_feedback whose
                                            key was absent; the next one is
                                            a part of them */
    NGX_BLOOM_COUNTER_EXCEPTED_REJECTED, /* absent only because the key is
                                            an excepted one */
    NGX_BLOOM_COUNTER_FALSE_POSITIVE,    /* requests with bloom_feedback whose
                                            key was maybe present, but does
                                            not exist */

    NGX_BLOOM_COUNTER_FEEDBACK_EXCEPTED, /* what became of them with except=on,
                                            in the order of
                                            ngx_bloom_adapt_e */
    NGX_BLOOM_COUNTER_FEEDBACK_DOUBT,
    NGX_BLOOM_COUNTER_FEEDBACK_FULL,
    NGX_BLOOM_COUNTER_FEEDBACK_FAST,

    NGX_BLOOM_COUNTER_AUDITED,           /* requests that bloom_audit let
                                            through; once one is answered, one
                                            of the next 3 counts it, too */
    NGX_BLOOM_COUNTER_CONFIRMED,         /* the backend has no such key */
    NGX_BLOOM_COUNTER_WRONG_ABSENT,      /* the backend has the key */
    NGX_BLOOM_COUNTER_UNANSWERED,        /* the backend did not say */
    NGX_BLOOM_COUNTER_AUDIT_ADDED,       /* wrong absents that were added */
    NGX_BLOOM_COUNTER_AUDIT_NOT_ADDED,   /* wrong absents that were not added:
                                            impossible, or beyond the rate */

    NGX_BLOOM_COUNTER_LOAD_OK,           /* loads of jobs, in the order of
                                            ngx_bloom_outcome_e */
    NGX_BLOOM_COUNTER_LOAD_REFUSED,
    NGX_BLOOM_COUNTER_LOAD_NO_ROOM,
    NGX_BLOOM_COUNTER_LOAD_FAILED,
    NGX_BLOOM_COUNTER_LOAD_MS            /* duration of all these loads, ms */
} ngx_bloom_counter_e;


typedef struct {
    uint64_t            n[NGX_BLOOM_COUNTERS];
} __attribute__((aligned(64))) ngx_bloom_counters_t;

/* The rows, indexed by ngx_process_slot, which is -1 in a job; NULL: nothing is
 * counted. */
extern ngx_bloom_counters_t  (*ngx_bloom_counters_rows)[NGX_BLOOM_SERIES];


/* Adds `n` to a counter of a series in this process's own row. */
static ngx_inline void
ngx_bloom_counters_count(ngx_uint_t series, ngx_uint_t what, uint64_t n)
{
    ngx_bloom_counters_rows[ngx_process_slot][series].n[what] += n;
}

/* Lets this process, which was forked for a job, count in the row of jobs. */
void ngx_bloom_counters_job(void);

/* Sums up each counter of a series over all processes. */
void ngx_bloom_counters_sums(ngx_uint_t series,
    uint64_t sums[NGX_BLOOM_COUNTERS]);

/* Sets and returns when a series counted its last wrong absent, ms since 1970;
 * 0: it has counted none. */
void ngx_bloom_counters_set_wrong_at(ngx_uint_t series, uint64_t ms);
uint64_t ngx_bloom_counters_wrong_at(ngx_uint_t series);


/* Declares the shared memory of the counters while a configuration is read.
 * Further calls do nothing.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_counters_declare(ngx_conf_t *cf);

/*
 * Begins to claim series for a configuration that has been accepted, in the
 * process that has read it.
 */
void ngx_bloom_counters_begin(void);

/* Claims the series of a name, which may have any bytes, for the configuration.
 * Called after ngx_bloom_counters_begin().  Returns the series. */
ngx_uint_t ngx_bloom_counters_claim(ngx_str_t *name);

/* Prepares a process to count.  Called once in each process. */
void ngx_bloom_counters_process(void);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_COUNTERS_H_INCLUDED_ */
