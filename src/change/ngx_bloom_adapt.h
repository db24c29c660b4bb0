/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone adapts to what its backend says: a key that the filter takes for
 * present, and the backend does not know, becomes an exception, an *excepted*
 * key.
 *
 * A key that was added to the zone must never be excepted, even if the
 * backend's response is late, or if the key was added before the backend had
 * it.  So an excepted key has to pass these checks:
 *
 *     the generation that was asked still serves, and its additions had been
 *     remembered for `after` ms when it was asked
 *     the response came within NGX_BLOOM_ADAPT_LATE
 *     no key with the same place in the zone's memory of recent additions was
 *     added for NGX_BLOOM_RECENT_MS
 *
 * A process that adds a key to the generation that serves
 *
 *     sets the key's bits
 *     remembers the key
 *     drops it from the exceptions; it leaves this out only if the key was none
 *     before, and no exception has been put since then
 *
 * and all of this again if another generation serves meanwhile.  A process that
 * excepts a key holds the lock of the exceptions, and
 *
 *     puts the key among the exceptions, without a kind: no lookup finds it
 *     looks into the memory, and drops the key if it is there
 *     gives the key its kind, unless somebody has dropped it
 *
 * So whichever is later sees the other: either the key is in the memory when
 * the excepting process looks, or it is among the exceptions when the adding
 * process drops it, or finds that one has been put.  The bits come before the
 * memory: if the process stops between the two, for however long, the key is
 * remembered from when the process goes on, and acknowledged only then.
 *
 * The backend may lack a key for `after` ms after the request that adds it
 * began, and the response may be NGX_BLOOM_ADAPT_LATE late.  So the memory
 * reaches back for the sum of both, and for NGX_BLOOM_ADAPT_ADDS more: `after`
 * may be counted from the acknowledgement of an addition that took no longer.
 *
 * The memory of a generation begins when the helper sees that it serves, or
 * with `except=on`.  It may lack additions that began before, because their
 * hashes may be others.  The first check makes up for that: when the backend
 * was asked, it had had `after` ms to get their rows.
 *
 * Excepted keys belong to the image that erred: they are kept when the image is
 * loaded again, and a load of another image forgets them.  They are not in the
 * journal, so no client makes nginx write to the disk; but an image that is
 * saved has them.
 */

#ifndef _NGX_BLOOM_ADAPT_H_INCLUDED_
#define _NGX_BLOOM_ADAPT_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* How late a response may be, the greatest `after`, and how long an addition
 * may wait for the journal and the disk, ms. */
#define NGX_BLOOM_ADAPT_LATE   (5 * 60 * 1000)
#define NGX_BLOOM_ADAPT_AFTER  (10 * 60 * 1000)
#define NGX_BLOOM_ADAPT_ADDS   (60 * 1000)

/* The share of the room for removed keys that excepted keys may use: one of
 * this many.  It is a share of the number of keys, and of the memory for them:
 * clients choose how long a key is. */
#define NGX_BLOOM_ADAPT_SHARE  2

/* When a zone was asked for a key. */
typedef struct {
    uint64_t    generation;              /* that has answered; 0: none */
    ngx_msec_t  time;
} ngx_bloom_adapt_mark_t;

/* What became of a false positive. */
typedef enum {
    NGX_BLOOM_ADAPT_EXCEPTED = 0,
    NGX_BLOOM_ADAPT_DOUBT,               /* the key may have been added */
    NGX_BLOOM_ADAPT_FULL,                /* the share is used up */
    NGX_BLOOM_ADAPT_FAST,                /* the rate is exceeded */
    NGX_BLOOM_ADAPT_OUTCOMES
} ngx_bloom_adapt_e;


/* Notes, before the zone is asked for a key, when that is. */
void ngx_bloom_adapt_mark(ngx_bloom_zone_t *zone,
    ngx_bloom_adapt_mark_t *mark);

/*
 * Excepts a key that the zone called present after `mark` was noted, and that
 * the backend does not know; counts what became of it.  In the key forms that
 * have several expressions only the exact one is excepted.  After a burst the
 * zone excepts one key per `interval`, in microseconds, over all workers.
 * `after` is how long, in ms, the backend may lack a key, from the beginning of
 * the request that adds it to the zone.
 */
ngx_bloom_adapt_e ngx_bloom_adapt(ngx_bloom_zone_t *zone, ngx_str_t *key,
    const ngx_bloom_adapt_mark_t *mark, ngx_uint_t interval, ngx_msec_t after);

/* Returns how many keys of the generation that serves are excepted keys.
 * *limit becomes up to how many keys the zone excepts. */
uint64_t ngx_bloom_adapt_count(ngx_bloom_zone_t *zone, uint64_t *limit);

/*
 * If `image` is the image that serves, copies excepted keys of the generation
 * that serves to the exceptions of `bits`.  The caller has replayed the journal
 * up to `position` onto bits, and will replay the rest.  Keys that cannot be
 * kept are not.  The caller holds sh->helper.
 */
void ngx_bloom_adapt_keep(ngx_bloom_zone_t *zone,
    const bloom_image_t *image, ngx_bloom_zone_bits_t *bits,
    uint64_t position);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ADAPT_H_INCLUDED_ */
