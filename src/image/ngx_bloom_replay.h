/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A replay applies records of the journal to the bank that a load fills.
 *
 * An addition sets bits, which the image may have set as well, and which cannot
 * be cleared.  So a load replays the journal twice:
 *
 *     judge     while the bank has the bits of the image alone: find out which
 *               keys the journal has removed in the end
 *     set       set the bits of additions
 *
 * The order of the records decides about a key.  A removal that is newer than
 * the image makes the key an exception.  If a removal is older, the image
 * decides.  If the image has the key, the key was added again.  If the image
 * lacks it, an addition from before the removal must not bring it back, even if
 * the image does not cover that addition.  Such a key is *covered*: it becomes
 * an exception if the bits that the second replay sets make it present.
 *
 * Records that are appended after the judging are newer than the image.  They
 * are judged when their bits have been set.
 *
 * Changes of the zone's source are compared with the image by their position,
 * whatever the time: those up to the position of the image are left out, and
 * all others are newer than the image.
 */

#ifndef _NGX_BLOOM_REPLAY_H_INCLUDED_
#define _NGX_BLOOM_REPLAY_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_journal.h"
#include "ngx_bloom_source.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


typedef struct {
    ngx_bloom_zone_t       *zone;

    /* set by the caller after ngx_bloom_replay_begin() */
    ngx_bloom_zone_bits_t   bits;        /* of the bank */
    uint64_t                cut;         /* the image covers additions older
                                            than this time, ms since 1970;
                                            UINT64_MAX: there is no bank, and
                                            the journal is only read */
    uint64_t                truth;       /* the image is the truth about
                                            removals up to this time */
    bloom_point_t           point;       /* where a checkpoint was made, which
                                            has what the journal says before; or
                                            all zeros */
    bloom_position_t        start;       /* of the image or the checkpoint, in
                                            the zone's source */

    bloom_reached_t         place;       /* the bank's place in the source */
    bloom_position_t        seen;        /* the last one that was read */
    ngx_uint_t              hole;        /* 1: changes after `start` are not in
                                            the journal */
    ngx_uint_t              newer;       /* 1: the record is newer than the
                                            image, whatever its time */

    uint64_t                records;     /* records of additions replayed */
    uint64_t                keys;        /* keys of these records */

    ngx_uint_t              judging;     /* 1: the first of the two replays */
    uint64_t                judged;      /* records before this position of the
                                            journal have been judged */
    ngx_uint_t              reading;     /* 1: the reader is open */
    ngx_uint_t              begun;       /* 1: `begin` is set */
    uint64_t                begin;       /* position at which the first of the
                                            two replays began */
    ngx_bloom_reader_t      reader;

    bloom_exceptions_t      covered;
    void                   *memory;      /* of `covered`; NULL: none */
    uint64_t                room;        /* keys that `covered` has room for */

    /* the last failure */
    uint64_t                cleared;     /* position of a clear record: the load
                                            has to begin again behind it; 0:
                                            none */
    ngx_uint_t              full;        /* 1: there is no room for the removed
                                            keys */
    ngx_err_t               err;
    u_char                  error[NGX_MAX_PATH + BLOOM_RECORD_ERROR_LEN];
} ngx_bloom_replay_t;


/* Initialises a replay of the zone's journal. */
void ngx_bloom_replay_begin(ngx_bloom_replay_t *replay,
    ngx_bloom_zone_t *zone);

/*
 * Replays the journal up to its present end, in a zone that has one; may be
 * called again for what has been appended since.  Returns NGX_OK; or NGX_ERROR
 * with `full`, or with `err` and `error`.
 */
ngx_int_t ngx_bloom_replay_run(ngx_bloom_replay_t *replay);

/* Replays what was appended since.  The caller holds the lock
 * `append`.  Returns NGX_OK or NGX_ERROR. */
ngx_int_t ngx_bloom_replay_rest(ngx_bloom_replay_t *replay);

/* Closes the reader and frees memory; may be called at any time. */
void ngx_bloom_replay_end(ngx_bloom_replay_t *replay);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_REPLAY_H_INCLUDED_ */
