/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Changes come from the source of a zone, in batches: keys that were added and
 * keys that were removed, in order, between two positions of the source.
 *
 * A batch is applied as a whole.  Only the last change of each key counts, so
 * the order within a batch does not matter any more when it is applied, and a
 * batch that is applied a second time, after a crash, changes nothing.  The
 * journal gets one record with the keys and both positions, and the zone's
 * place in the source (ngx_bloom_source.h) moves under the same lock.
 *
 *     die before the record is published     the batch never happened
 *     die before the place has moved         the source sends the batch again
 *     die of the machine                     the place is where the journal
 *                                            ends
 *
 * Changes of one position that are too many for a batch come in parts, each of
 * them a batch.  A part says how many changes came before it, and
 * whether more follow.  The place moves with the last part.
 *
 * No function here waits: if one cannot finish now, it returns NGX_AGAIN, and
 * the caller calls it again later.
 */

#ifndef _NGX_BLOOM_CHANGES_H_INCLUDED_
#define _NGX_BLOOM_CHANGES_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_write.h"
#include "ngx_bloom_source.h"

#pragma GCC visibility push(hidden)


/* The most bytes of a batch: of each key, its length and two more. */
#define NGX_BLOOM_CHANGES_MAX  (120 * 1024)

/* A key of a batch. */
typedef struct {
    uint32_t               offset;       /* of its bytes in `keys` */
    uint32_t               len;
    uint32_t               hash;
    uint32_t               removed;      /* 1: the last change of the key
                                            removes it */
} ngx_bloom_change_t;

/* A batch.  Callers read only the members above the line. */
typedef struct {
    ngx_bloom_zone_t      *zone;
    bloom_position_t       before;
    bloom_position_t       after;
    uint64_t               offset;       /* changes between the positions that
                                            come before this batch */
    ngx_uint_t             more;         /* 1: and others after it.  Set by the
                                            caller, as `offset` */

    uint64_t               received;     /* changes, also the invalid ones */
    uint64_t               superseded;   /* by a later change of the key */
    ngx_bloom_batch_t      batch;        /* its counts, err and error */

    /* once ngx_bloom_changes_apply() has returned NGX_OK, NGX_DONE or
     * NGX_DECLINED: where the zone is, and how many changes from there to
     * `after` it has */
    bloom_position_t       reached;
    uint64_t               has;

    /* ---- */

    bloom_reached_t        place;        /* where the zone is, with the lock */
    ngx_bloom_part_t       part;         /* and what it has of the next one */
    bloom_digest_t         moved;        /* the digest after the batch */
    bloom_record_t         removals;     /* of the record, its keys */
    bloom_record_t         additions;
    size_t                 size;         /* of the record so far */
    bloom_digest_batch_t   digest;       /* of the changes as they came */
    ngx_bloom_change_t    *changes;      /* of ngx_alloc() */
    uint32_t               count;
    uint32_t               room;
    uint32_t              *slots;        /* a hash table of 2 * room slots: 1 +
                                            the number of a change, or 0 */
    u_char                *keys;         /* BLOOM_RECORD_MAX bytes */
    size_t                 keys_len;
} ngx_bloom_changes_t;


/*
 * Initialises an empty batch between two positions, before <= after.  Returns
 * NGX_OK; NGX_DECLINED with batch.error if the zone never takes changes;
 * NGX_ERROR with batch.error if it takes none now.  The caller calls
 * ngx_bloom_changes_end() in any case.
 */
ngx_int_t ngx_bloom_changes_init(ngx_bloom_changes_t *changes,
    ngx_bloom_zone_t *zone, bloom_position_t before, bloom_position_t after);

/*
 * Adds a change to the batch: a key is added or, with `removed`, removed.
 * Returns NGX_OK; NGX_DECLINED if the key is invalid, with the reason in
 * batch.error, a phrase that follows the key; NGX_DONE if the batch has no room
 * for it; NGX_ERROR if memory is short.
 */
ngx_int_t ngx_bloom_changes_put(ngx_bloom_changes_t *changes, ngx_str_t *key,
    ngx_uint_t removed);

/*
 * Applies the batch.  Returns
 *
 *     NGX_OK        it is applied: in this instance, and in the journal
 *     NGX_DONE      the zone is at `after` or later already, or has this part.
 *                   If it is at `after`, and `before` is the same, this is a
 *                   sign of life
 *     NGX_DECLINED  the zone is elsewhere: at `reached`, with `has` changes
 *     NGX_ABORT     there is no room for all removed keys, with batch.error;
 *                   nothing is applied
 *     NGX_AGAIN     not yet: wait in NGX_BLOOM_QUEUE_ROOM and call again
 *     NGX_ERROR     refused, with batch.error; nothing is applied
 */
ngx_int_t ngx_bloom_changes_apply(ngx_bloom_changes_t *changes);

/*
 * Moves the zone to the position `after`, forwards or backwards, although
 * changes before it are missing: it answers "unknown" instead of "absent" until
 * an image at this position or later serves; or, backwards, one that is later
 * than where the zone was.  Returns NGX_OK, NGX_AGAIN or
 * NGX_ERROR like ngx_bloom_changes_apply(); if the journal cannot be written,
 * the zone answers "unknown" all the same.
 */
ngx_int_t ngx_bloom_changes_gap(ngx_bloom_changes_t *changes);

/* Frees the memory of a batch. */
void ngx_bloom_changes_end(ngx_bloom_changes_t *changes);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CHANGES_H_INCLUDED_ */
