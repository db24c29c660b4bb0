/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone is a filter in shared memory.
 *
 * A zone has two banks, each with room for the filter of one image.  The
 * generation is the number of images that have served so far, with the one that
 * serves now; its lowest bit says which bank serves:
 *
 *     shared memory:   slab header | control block | bank 0 | bank 1
 *
 *     lookup    reads generation g, tests in bank g & 1, and reads the
 *               generation again; if it has changed, the lookup discards its
 *               answer and starts again (ngx_bloom_lookup.h)
 *     load      writes to the idle bank, (g + 1) & 1, which nobody reads, and
 *               then raises the generation to g + 1
 *
 * So a lookup takes no lock, waits for no other process, and takes its answer
 * from one whole generation.  In generation 0 no image serves, and every answer
 * is unknown.
 *
 * The slab header stays as nginx has made it, because nginx's master reads it
 * when a process dies.
 */

#ifndef _NGX_BLOOM_ZONE_H_INCLUDED_
#define _NGX_BLOOM_ZONE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_exceptions.h"
#include "bloom_guard.h"
#include "ngx_bloom_counters.h"
#include "ngx_bloom_hugepages.h"
#include "ngx_bloom_shared.h"

#pragma GCC visibility push(hidden)


/*
 * The condition of a zone.  Unless it is NGX_BLOOM_SERVING, some or all answers
 * are unknown.  The endpoint, the metrics and the documents call it the zone's
 * "state"; in the source, ngx_bloom_state_t is the state directory.
 */
typedef enum {
    NGX_BLOOM_SERVING = 0,
    NGX_BLOOM_NOT_LOADED,
    NGX_BLOOM_STALE,                     /* the image is older than max_age */
    NGX_BLOOM_LATE,                      /* the source gave no sign of life, or
                                            changes of it are missing */
    NGX_BLOOM_BEHIND,                    /* another instance added keys */
    NGX_BLOOM_DAMAGED                    /* keys were lost */
} ngx_bloom_condition_e;


/* How many removed keys a zone has room for unless "removals=" says otherwise,
 * and at most. */
#define NGX_BLOOM_REMOVALS      10000
#define NGX_BLOOM_REMOVALS_MAX  10000000

/* How old the last sign of life of a source may be without "max_lag=", ms. */
#define NGX_BLOOM_MAX_LAG       60000


/* What requests of a worker wait for: ngx_bloom_queue.h. */
typedef enum {
    NGX_BLOOM_QUEUE_ROOM = 0,            /* room for keys in the journal */
    NGX_BLOOM_QUEUE_SYNC,                /* keys being on disk */
    NGX_BLOOM_QUEUES
} ngx_bloom_queue_e;

typedef struct ngx_bloom_queue_s  ngx_bloom_queue_t;


/* Whether a zone writes changes to disk ("journal="). */
enum {
    NGX_BLOOM_JOURNAL_OFF = 0,
    NGX_BLOOM_JOURNAL_AUTO,              /* if the configuration has something
                                            that changes it */
    NGX_BLOOM_JOURNAL_ON
};


/* Where a directive is; file NULL: nowhere. */
typedef struct {
    u_char              *file;
    ngx_uint_t           line;
} ngx_bloom_conf_at_t;


/* What an image has to be like to be accepted; ngx_bloom_guard.h checks it. */
enum {
    NGX_BLOOM_GUARD_HAVE = 0,            /* keys that it must have */
    NGX_BLOOM_GUARD_HAVE_NOT,            /* keys that it must not have */
    NGX_BLOOM_GUARD_FILES
};

typedef struct {
    ngx_str_t            file[NGX_BLOOM_GUARD_FILES];  /* of keys; null-
                                                          terminated; len 0:
                                                          not given */
    uint64_t             min_keys;
    bloom_guard_limits_t max;            /* "max_loss=", "max_growth=" */
} ngx_bloom_guards_t;


/*
 * A zone as a process knows it: allocated from the cycle's pool, and copied by
 * fork().
 */
typedef struct ngx_bloom_zone_s {
    ngx_str_t               name;        /* with a zero byte after it */
    ngx_uint_t              number;      /* among the zones of the
                                            configuration, from 0 on */
    ngx_shm_zone_t         *shm_zone;    /* NULL: not declared */
    ngx_bloom_shctx_t      *sh;
    u_char                 *banks;       /* bank 0, followed by bank 1 */
    size_t                  bank_size;
    size_t                  image_room;  /* of each bank, bytes for an image:
                                            its filter and its exceptions */
    ngx_bloom_state_t      *state;       /* NULL: memory only */
    ngx_bloom_control_t    *control;     /* of the state or, without one, in
                                            sh */
    ngx_bloom_clock_t      *clock;       /* in `control`; used if keys expire */
    ngx_uint_t              series;      /* of its counters */
    ngx_uint_t              helper;      /* number of the helper's process that
                                            looks after it, from 0 on */
    uint64_t                helpers;     /* in a helper: sh->helpers when it
                                            began to look after the zone; 0: it
                                            has not begun */

    ngx_pool_t             *pool;        /* of the cycle */
    ngx_core_conf_t        *ccf;         /* has the workers' user */

    /* where the configuration first mentions the zone */
    u_char                 *conf_file;
    ngx_uint_t              conf_line;

    /* parameters of the configuration */
    ngx_str_t               label;       /* what people call the zone; empty:
                                            it has no label */
    ngx_int_t               key_form;    /* BLOOM_FORM_...: images must have it
                                            ("form="); -1: they may have any */
    size_t                  size;        /* 0: as large as the image needs */
    ngx_bloom_image_file_t  file;        /* name.len 0: starts empty */
    bloom_image_t           image;
    ngx_str_t               state_path;  /* the directory of all zones, null-
                                            terminated; len 0: memory only */
    ngx_uint_t              journal;     /* NGX_BLOOM_JOURNAL_... */
    ngx_uint_t              adapts;      /* 1: a directive of the configuration
                                            excepts false positives */
    ngx_uint_t              adds;        /* 1: a directive or an endpoint of
                                            the configuration adds or removes
                                            keys, or "journal=on" says that
                                            something else does */
    ngx_uint_t              removes;     /* 1: a directive removes keys, or
                                            something else may */
    ngx_msec_t              watch;       /* 0: off */
    time_t                  max_age;     /* seconds; 0: off */
    ngx_uint_t              optional;    /* "required=off": nginx starts even
                                            if the zone cannot be loaded */
    ngx_uint_t              removals;    /* how many keys may be removed
                                            ("removals=") */
    ngx_uint_t              removals_room;   /* how many removed keys its banks
                                            have room for: no fewer, and all
                                            that the journal has (I14) */
    uint64_t                max_keys;    /* the filter grows to so many; 0: it
                                            does not grow */
    uint64_t                expire;      /* how long a key lives, ms; 0: until
                                            it is removed */
    uint32_t                slices;      /* of a life; each lasts expire /
                                            slices */
    uint64_t                slice_capacity;        /* keys of a slice */
    ngx_bloom_conf_at_t     zone_at;     /* where bloom_zone is */
    ngx_bloom_guards_t      guards;      /* of bloom_guard */
    ngx_bloom_conf_at_t     guard_at;
    ngx_str_t               source;      /* where changes come from
                                            (bloom_source); len 0: from
                                            anywhere */
    ngx_bloom_conf_at_t     source_at;
    uint64_t                source_id;   /* of ngx_bloom_source_id() */
    ngx_msec_t              max_lag;     /* 0: any lag is accepted */
    const char             *changed_by;  /* a directive that changes the zone;
                                            NULL: none does */

    ngx_uint_t              state_wanted;          /* or exists already */
    ngx_uint_t              has_image;   /* 1: what the zone stands on is in its
                                            state directory, and is needed
                                            besides file= and the journal */

    /* why the state that the configuration wants cannot be used; NULL: it can.
     * The state may have keys, so nothing is loaded without it */
    ngx_err_t               state_err;
    const char             *state_error;

    ngx_uint_t              changed;     /* why the helper will load the file,
                                            as in ngx_bloom_reload.c; 0: it
                                            will not */

    /* the zone of this name in the previous configuration if it has memory of
     * its own, which processes of that configuration still use; or NULL */
    struct ngx_bloom_zone_s *before;
    ngx_uint_t              left;        /* 1 + the number of the instance of
                                            `before`, which no helper keeps up
                                            to date any more; 0: none */

    /* what a lookup needs of the generation last seen */
    uint64_t                generation;
    uint32_t                form;        /* BLOOM_FORM_... */
    uint16_t                raw;         /* 1: keys are raw and do not expire,
                                            and the zone has no source */
    uint16_t                plain;       /* 1: so it is, and the filter does
                                            not grow */
    bloom_geometry_t        geometry;    /* with the layers in use */
    uint32_t                room;        /* layers that it can have, or
                                            slices */
    uint64_t                capacity;    /* of the base */
    const uint64_t         *grown;       /* of its bank, in shared memory */
    uint64_t                seen;        /* *grown when `geometry` was brought
                                            up to date; 0: it was not */
    ngx_bloom_ring_t       *ring;        /* the same; NULL: keys do not
                                            expire */
    uint64_t                drops;       /* of the ring, before `live` was
                                            read */
    bloom_hasher_t          hasher;
    uint64_t               *words;
    bloom_exceptions_t      exceptions;
    time_t                  stale;       /* every answer is unknown from then
                                            on; 0 if there is a ring: then
                                            ngx_bloom_zone_ended() decides */
    bloom_position_t        based;       /* position of its image in the source
                                            of the zone */
    const uint64_t         *required;    /* of this instance, in the control
                                            page: ngx_bloom_state.h */
    const uint64_t         *lost;        /* counts beside loss.lost of the
                                            control page in sh: the one of the
                                            state directory, or sh->lost */

    bloom_geometry_t        idle;        /* of the bank that is being loaded */

    ngx_bloom_queue_t      *queue[NGX_BLOOM_QUEUES];   /* NULL: no request has
                                            waited in it yet */

    ngx_msec_t              stalled;     /* until then a single key does not
                                            wait for the lock */
    uint64_t                applied;     /* of a zone without a state directory:
                                            sh->applied when this process
                                            started, or refused a load because
                                            it had changed */
    struct ngx_bloom_owed_s *owed;       /* keys that this process owes; NULL:
                                            it has owed none yet */
    u_char                  settled[NGX_BLOOM_OWERS];  /* 1: this process has
                                            recorded the loss of the dead one
                                            of this number, and not yet brought
                                            it to disk */

    /* the restoration that the helper applies: see ngx_bloom_catch_up.c */
    struct {
        uint64_t                position;          /* after its record */
        uint64_t                cursor;
        uint64_t                keys;              /* restored so far */
    } restoring;
} ngx_bloom_zone_t;


/* Adds `n` to a counter of the zone in this process's own row. */
static ngx_inline void
ngx_bloom_count(ngx_bloom_zone_t *zone, ngx_bloom_counter_e what, uint64_t n)
{
    ngx_bloom_counters_count(zone->series, what, n);
}


/* ---- within this layer ---- */

/* The smallest size of a zone, as of limit_req's and other zones of nginx. */
#define NGX_BLOOM_ZONE_MIN    (8 * ngx_pagesize)

/* How long to wait for sh->tasks, in ms; it is held only for a copy. */
#define NGX_BLOOM_TASK_WAIT  100

/* How long a job waits for sh->applying, ms.  Its holder reads the journal. */
#define NGX_BLOOM_APPLYING_WAIT  60000

/*
 * Copies what lookups need of a new generation into `zone`.  Returns NGX_OK, or
 * NGX_AGAIN if the generation changed meanwhile: the copy may be torn then and
 * must not be used.
 */
ngx_int_t ngx_bloom_zone_refresh(ngx_bloom_zone_t *zone, uint64_t generation);

/* Returns the number in sh->bank[].grown that says how many layers are in use
 * in a generation, and how many that are. */
static ngx_inline uint64_t
ngx_bloom_zone_grown(uint64_t generation, uint32_t layers)
{
    return generation << 8 | layers;
}

static ngx_inline uint32_t
ngx_bloom_zone_layers(uint64_t grown)
{
    return (uint32_t) (grown & 0xff);
}

/* Updates a process's own geometry, in which up to `room` layers are planned,
 * to the layers that are in use; or, with a ring, to the slices that are live.
 * */
static ngx_inline void
ngx_bloom_zone_follow(bloom_geometry_t *geometry, const uint64_t *grown,
    const ngx_bloom_ring_t *ring, uint64_t generation, uint32_t room)
{
    uint64_t  now;

    if (room == 0) {
        return;
    }

    if (ring != NULL) {
        geometry->live = __atomic_load_n(&ring->live, __ATOMIC_ACQUIRE)
                         & (((uint64_t) 1 << room) - 1);
        return;
    }

    now = __atomic_load_n(grown, __ATOMIC_ACQUIRE);

    if (now >> 8 == generation && ngx_bloom_zone_layers(now) <= room) {
        geometry->layers = (uint16_t) ngx_bloom_zone_layers(now);
    }
}

/* Does so for the generation of which the process has a copy.  The function
 * with "_room" is called only if there are layers or slices. */
void ngx_bloom_zone_follow_room(ngx_bloom_zone_t *zone);

/*
 * Ends a lookup in an image that is too old, or in a ring.  In the first case
 * returns NGX_DECLINED.  In a ring, a slice may have been cleared whose keys
 * were added again to a slice that the lookup has not tested: returns NGX_AGAIN
 * to start again, or NGX_OK if no slice has been cleared since the lookup
 * began.  The caller has set a fence after it read the bits.
 */
ngx_int_t ngx_bloom_zone_ended(ngx_bloom_zone_t *zone);

/* Does so in a zone with layers and no ring. */
static ngx_inline void
ngx_bloom_zone_follow_layers(ngx_bloom_zone_t *zone)
{
    if (__atomic_load_n(zone->grown, __ATOMIC_ACQUIRE) != zone->seen) {
        ngx_bloom_zone_follow_room(zone);
    }
}

static ngx_inline void
ngx_bloom_zone_follow_serving(ngx_bloom_zone_t *zone)
{
    if (zone->room != 0) {
        ngx_bloom_zone_follow_room(zone);
    }
}

/* The bits and the exceptions of one bank, with what is needed to set the bits
 * of a key. */
typedef struct {
    uint32_t                 form;       /* BLOOM_FORM_... */
    bloom_geometry_t        *geometry;   /* with the layers in use, a copy of
                                            this process */
    uint32_t                 room;       /* layers that it can have */
    uint64_t                 capacity;   /* of the base */
    uint64_t                 generation; /* in which the bank serves, or is
                                            going to serve */
    const bloom_hasher_t    *hasher;
    uint64_t                *words;
    uint64_t                *grown;      /* atomic */
    ngx_bloom_ring_t        *ring;       /* NULL: keys do not expire */
    uint64_t                 expire;     /* of the zone */
    uint64_t                 slice;      /* how long a slice is open, ms */
    uint64_t                 slice_capacity;       /* of the zone */
    const ngx_bloom_clock_t *clock;      /* of the zone */
    uint64_t                 time;       /* when the keys were added that are
                                            put; 0: now */
    ngx_uint_t               alone;      /* 1: no other process changes the bits
                                            that matters */
    uint64_t                *bits_set;   /* atomic; of each part */
    bloom_exceptions_t       exceptions;
    ngx_bloom_recent_t      *recent;     /* remembers added keys; NULL: the bank
                                            does not serve, or no key is
                                            excepted */
} ngx_bloom_zone_bits_t;

/*
 * Fills in the bits of a bank.  The caller is the one that loads this bank, or
 * holds sh->helper or sh->applying, so that the bank's image does not change.
 */
void ngx_bloom_zone_bits(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    ngx_bloom_zone_bits_t *bits);

/*
 * Fills in the bits of the generation that serves.  Returns that generation, or
 * 0 if none serves.  Another generation may serve before the caller uses them.
 */
uint64_t ngx_bloom_zone_serving(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits);

/* How many keys' cache lines are requested before the first is used. */
#define NGX_BLOOM_ZONE_GROUP  32

/* Reads the next keys of a record, `most` at most.  Returns how many; fewer
 * than `most` if they are the last. */
ngx_uint_t ngx_bloom_zone_keys(bloom_record_t *record, bloom_key_t *keys,
    ngx_uint_t most);

/*
 * Requests from memory what a search for n keys, NGX_BLOOM_ZONE_GROUP at most,
 * reads of the exceptions.  If a key is not in the image's key form, the wrong
 * memory is requested, which does no harm.
 */
void ngx_bloom_zone_prefetch(const ngx_bloom_zone_bits_t *bits,
    const bloom_key_t *keys, ngx_uint_t n);

/* Returns how often keys have become exceptions of the bank so far. */
uint64_t ngx_bloom_zone_puts(const ngx_bloom_zone_bits_t *bits);

/* Drops those exceptions of a record's keys that the journal has before
 * `position`.  The caller holds the lock of the zone. */
void ngx_bloom_zone_lift(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, uint64_t position);

/*
 * Takes kinds from all exceptions whose position is not less than `from`, and
 * less than `before`, in the next lines of the set, which take about a
 * millisecond.  *cursor is 0 at first; adds to *keys how many keys are
 * exceptions no longer.  Returns NGX_OK after the last line; NGX_AGAIN if there
 * is more to do.  The caller holds the lock of the zone.
 */
ngx_int_t ngx_bloom_zone_restore(ngx_bloom_zone_bits_t *bits, unsigned kinds,
    uint64_t from, uint64_t before, uint64_t *cursor, uint64_t *keys);

/*
 * Makes the keys of a record exceptions.  `position` is where the record ends
 * in the journal.  Drops all excepted keys if their room is needed.  Returns
 * NGX_OK; NGX_DECLINED if there is no room for all of them.  The caller holds
 * the lock of the zone.
 */
ngx_int_t ngx_bloom_zone_except(ngx_bloom_zone_bits_t *bits,
    const bloom_record_t *record, uint64_t position);

/*
 * Puts an exception into the set of a bank, and drops all excepted keys if
 * their room is needed.  Returns what bloom_exceptions_put() returns.
 */
int ngx_bloom_zone_except_key(ngx_bloom_zone_bits_t *bits,
    const bloom_exception_t *exception);

/* Takes kinds from all exceptions of a set whose position is not less than
 * `from`, and whose time, in ms since 1970, is not after `until`. */
void ngx_bloom_zone_drop_all(bloom_exceptions_t *set, unsigned kinds,
    uint64_t from, uint64_t until);

/* Returns 1 if a key, in the image's key form, is present, else 0. */
ngx_uint_t ngx_bloom_zone_has(const ngx_bloom_zone_bits_t *bits,
    const bloom_key_t *key);

/* Fills in the exceptions of a bank.  The caller ensures that the bank's image
 * does not change, or checks the generation afterwards. */
void ngx_bloom_zone_exceptions(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    bloom_exceptions_t *set);

/*
 * Returns the bytes that a bank needs for an image, with room for this many
 * removed keys.  The removed and the excepted keys of the image take this room;
 * if there are more of them, they have room, and no others.
 */
uint64_t ngx_bloom_zone_bank_needs(const bloom_image_t *image,
    ngx_uint_t removals);

/* Returns the bytes of the room for this many removed keys in a bank. */
size_t ngx_bloom_zone_removals_size(ngx_uint_t removals);

/* Returns the bytes that a zone has beside its size: for this many removed keys
 * in each bank, and for the memory of recent additions. */
size_t ngx_bloom_zone_beside(ngx_uint_t removals);

/*
 * Each converts a key to a key form, in a static buffer that the next call
 * overwrites: ngx_bloom_zone_accept() a new key, ngx_bloom_zone_canonical() a
 * key that was added before (bloom_form.h).  Each returns NULL, or the reason
 * why the key is invalid: a phrase that follows the key.  In every form, an
 * empty key and one of more than BLOOM_KEY_MAX bytes are invalid.
 */
const char *ngx_bloom_zone_accept(uint32_t form, bloom_key_t *key);
const char *ngx_bloom_zone_canonical(uint32_t form, bloom_key_t *key);

/*
 * Gives the memory of the idle bank back to the system, if it is filled: a load
 * calls this when another bank serves, or when it has failed.
 */
void ngx_bloom_zone_release(ngx_bloom_zone_t *zone, ngx_uint_t bank);

/* Measures how much of the banks is on huge pages.  Takes some milliseconds per
 * GiB. */
void ngx_bloom_zone_measure_hugepages(ngx_bloom_zone_t *zone);

/*
 * Describes the filter of a zone that starts empty, as configured, with a seed
 * and a build id of its own.  Returns NGX_OK, or NGX_ERROR with errno if the
 * system has no random bytes.
 */
ngx_int_t ngx_bloom_zone_empty(ngx_bloom_zone_t *zone, bloom_image_t *image);

/* Returns the size of a zone whose banks have room for `bank` bytes each,
 * without ngx_bloom_zone_beside(). */
size_t ngx_bloom_zone_needs(uint64_t bank);

/* Computes where the control block and the banks are, from the address and the
 * size of the zone's memory alone. */
void ngx_bloom_zone_attach(ngx_bloom_zone_t *zone);

/*
 * Takes the lock of the zone, under which everything changes that a lookup
 * reads of the generation that serves (I8): `append` in its shared memory and
 * then, if the zone has a state directory, the one of its control page, since
 * the workers of a configuration without a journal take the first alone (I10).
 * Waits `wait` ms for each at most.  Returns NGX_OK or NGX_BUSY.
 */
ngx_int_t ngx_bloom_zone_lock(ngx_bloom_zone_t *zone, ngx_msec_t wait);
void ngx_bloom_zone_unlock(ngx_bloom_zone_t *zone);

/* Takes it unless a process owes keys, which are in no record yet (I12).
 * Returns NGX_OK or NGX_BUSY. */
ngx_int_t ngx_bloom_zone_lock_unowed(ngx_bloom_zone_t *zone, ngx_msec_t wait);

/* Returns 1 if a process owes keys of the zone. */
static ngx_inline ngx_uint_t
ngx_bloom_zone_owing(ngx_bloom_zone_t *zone)
{
    return ngx_bloom_control_owing(&zone->control->loss)
           | ngx_bloom_control_owing(&zone->sh->control.loss);
}

/* Points the zone to the control page that it uses. */
void ngx_bloom_zone_use(ngx_bloom_zone_t *zone);

/*
 * Maps the control page of a zone that this process is going to use.  The
 * process runs as the workers' user.  On failure the log says why, and the zone
 * answers "unknown".
 */
void ngx_bloom_zone_attach_state(ngx_bloom_zone_t *zone);

/*
 * Tells other instances how many removed keys this one may have.  Until it has
 * been loaded, all removals of the journal count, also of keys that were added
 * again, and it has room for as many.
 */
void ngx_bloom_zone_may_remove(ngx_bloom_zone_t *zone);

/* Maps the control pages of all zones of an array of pointers. */
void ngx_bloom_zone_attach_states(ngx_array_t *zones);

/* Returns the level at which the log says that the zone cannot start. */
static ngx_inline ngx_uint_t
ngx_bloom_zone_level(ngx_bloom_zone_t *zone)
{
    return zone->optional ? NGX_LOG_ALERT : NGX_LOG_EMERG;
}

/* Returns 1 if what serves in `sh` has the key form that the zone wants, or if
 * nothing serves. */
static ngx_inline ngx_uint_t
ngx_bloom_zone_serves_form(ngx_bloom_zone_t *zone, ngx_bloom_shctx_t *sh)
{
    return zone->key_form == -1 || sh->generation == 0
           || sh->bank[sh->generation & 1].image.key_form
              == (uint32_t) zone->key_form;
}

/* Returns the time that changes of the zone get now, ms since 1970: see
 * ngx_bloom_state_time(). */
uint64_t ngx_bloom_zone_time(ngx_bloom_zone_t *zone);

/* Returns by how many ms the system's clock is ahead of the clock that
 * ngx_bloom_zone_time() reads; negative: behind it; 0: they are the same. */
int64_t ngx_bloom_zone_shift(ngx_bloom_zone_t *zone);

/* Returns a time of the zone, in ms since 1970, as the system's clock has it
 * now; 0 if it is 0.  `shift` is what ngx_bloom_zone_shift() returned. */
static ngx_inline uint64_t
ngx_bloom_zone_wall(uint64_t time, int64_t shift)
{
    if (time == 0) {
        return 0;
    }

    return shift < 0 && time <= (uint64_t) -shift ? 1 : time + (uint64_t) shift;
}

static ngx_inline u_char *
ngx_bloom_zone_bank(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    return zone->banks + bank * zone->bank_size;
}

/* Returns the time up to which added keys may be lost, ms since 1970; 0: none
 * is lost. */
static ngx_inline uint64_t
ngx_bloom_zone_lost(ngx_bloom_zone_t *zone)
{
    uint64_t  memory, lost;

    /* this one first: ngx_bloom_lost_move() moves it to the other */

    memory = __atomic_load_n(&zone->sh->control.loss.lost, __ATOMIC_SEQ_CST);
    lost = __atomic_load_n(zone->lost, __ATOMIC_SEQ_CST);

    return ngx_max(lost, memory);
}

/* Returns 1 if the filter that serves may lack keys that were lost. */
static ngx_inline ngx_uint_t
ngx_bloom_zone_damaged(ngx_bloom_zone_t *zone)
{
    return ngx_bloom_zone_lost(zone)
           >= __atomic_load_n(&zone->sh->complete, __ATOMIC_RELAXED);
}

/* Returns the position of an image in the source of the zone; 0 if the image
 * does not say it. */
bloom_position_t ngx_bloom_zone_position(ngx_bloom_zone_t *zone,
    const bloom_image_t *image);

/* Returns 1 if a record of changes is from the source of the zone. */
static ngx_inline ngx_uint_t
ngx_bloom_zone_is_source(ngx_bloom_zone_t *zone, const bloom_record_t *record)
{
    return zone->source.len == record->source.len
           && ngx_memcmp(zone->source.data, record->source.data,
                         zone->source.len)
              == 0;
}

/* How well a zone knows its source. */
typedef enum {
    NGX_BLOOM_SOURCE_CURRENT = 0,
    NGX_BLOOM_SOURCE_WAITING,            /* no sign of life since the start or
                                            the last clear */
    NGX_BLOOM_SOURCE_LATE,               /* the last one is older than max_lag */
    NGX_BLOOM_SOURCE_GAP                 /* changes are missing */
} ngx_bloom_source_e;

/*
 * Returns how well the zone, with an image at the position `based`, knows its
 * source.  Stores its place there in *place, and the time since the last sign
 * of life in *lag, in ms; UINT64_MAX: there was none.
 */
ngx_bloom_source_e ngx_bloom_zone_source(ngx_bloom_zone_t *zone,
    bloom_position_t based, bloom_reached_t *place, uint64_t *lag);

/* Returns 1 if the generation that serves, of which the process has a copy, may
 * lack changes of the zone's source. */
ngx_uint_t ngx_bloom_zone_late(ngx_bloom_zone_t *zone);

/*
 * Returns 1 if the filter that serves may lack keys: another instance has
 * appended keys that this one has not applied, a process owes keys (I12), or
 * keys were lost.  The source may be late besides: ngx_bloom_zone_late().
 */
static ngx_inline ngx_uint_t
ngx_bloom_zone_behind(ngx_bloom_zone_t *zone)
{
    /* `owing` first: a key that is owed no longer has raised `required` before
     * `owing` was lowered */

    return ngx_bloom_zone_owing(zone)
           || __atomic_load_n(zone->required, __ATOMIC_ACQUIRE)
              > __atomic_load_n(&zone->sh->applied, __ATOMIC_ACQUIRE)
           || ngx_bloom_zone_damaged(zone);
}

/*
 * Ends a lookup.  Returns NGX_OK; NGX_AGAIN to start again, because the
 * generation has changed; NGX_DECLINED if the image is too old, or if there is
 * a ring: then the caller calls ngx_bloom_zone_ended().
 */
static ngx_inline ngx_int_t
ngx_bloom_zone_end_image(ngx_bloom_zone_t *zone)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&zone->sh->generation, __ATOMIC_RELAXED)
        != zone->generation)
    {
        return NGX_AGAIN;
    }

    return ngx_time() < zone->stale ? NGX_OK : NGX_DECLINED;
}

/* Ends a lookup.  Returns NGX_OK; NGX_AGAIN to start again, because the
 * generation has changed or a slice may have been cleared; NGX_DECLINED if the
 * image is too old. */
static ngx_inline ngx_int_t
ngx_bloom_zone_end(ngx_bloom_zone_t *zone)
{
    ngx_int_t  rc;

    rc = ngx_bloom_zone_end_image(zone);

    return rc != NGX_DECLINED ? rc : ngx_bloom_zone_ended(zone);
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ZONE_H_INCLUDED_ */
