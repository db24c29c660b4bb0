/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone is a filter in shared memory.
 *
 * A zone has two banks, each with room for one image.  The generation counts
 * the images that have served; its lowest bit says which bank serves:
 *
 *     shared memory:   slab header | control block | bank 0 | bank 1
 *
 *     lookup    read generation g; test in bank g & 1; read the generation
 *               again: if it changed, the answer is thrown away and the lookup
 *               starts again (ngx_bloom_lookup.h)
 *     load      write bank (g + 1) & 1, which nobody reads; then g + 1
 *
 * So a lookup takes no lock and waits for nobody, and is answered from one
 * whole generation.  Generation 0 serves nothing: every answer is unknown.
 *
 * The slab header stays as nginx made it: its master reads it when a process
 * dies.
 */

#ifndef _NGX_BLOOM_ZONE_H_INCLUDED_
#define _NGX_BLOOM_ZONE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include <pthread.h>

#include "ngx_bloom_counters.h"
#include "ngx_bloom_image_file.h"
#include "ngx_bloom_hugepages.h"
#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/*
 * The condition of a zone.  In all but NGX_BLOOM_SERVING some or all of its
 * answers are unknown.  In the endpoint, in metrics and in documents it is the
 * zone's "state"; ngx_bloom_state_t is the state directory.
 */
typedef enum {
    NGX_BLOOM_SERVING = 0,
    NGX_BLOOM_NOT_LOADED,
    NGX_BLOOM_STALE,                     /* the image is older than max_age */
    NGX_BLOOM_BEHIND,                    /* another instance added keys */
    NGX_BLOOM_DAMAGED                    /* keys were lost */
} ngx_bloom_condition_e;


/* Bytes of pending keys where a zone has no state directory. */
#define NGX_BLOOM_ZONE_PENDING  (256 * 1024)


/* What the helper does when asked: see ngx_bloom_task.h. */
typedef enum {
    NGX_BLOOM_TASK_LOAD = 0,             /* the file= again */
    NGX_BLOOM_TASK_UPLOAD,               /* another image */
    NGX_BLOOM_TASK_CHECKPOINT,
    NGX_BLOOM_TASK_SNAPSHOT,             /* the zone as an image file */
    NGX_BLOOM_TASKS
} ngx_bloom_task_e;

typedef enum {
    NGX_BLOOM_DONE = 0,
    NGX_BLOOM_REFUSED,                   /* the image is bad, or too old */
    NGX_BLOOM_NO_ROOM,                   /* it does not fit the zone */
    NGX_BLOOM_FAILED                     /* the system refused something */
} ngx_bloom_outcome_e;

typedef struct {
    ngx_bloom_outcome_e  outcome;
    uint64_t             generation;     /* that serves after it */
    uint64_t             started_at;     /* ms since 1970 */
    uint64_t             duration;       /* ms */
    u_char               message[512];   /* null-terminated; why not */
    u_char               name[80];       /* null-terminated; of a snapshot, in
                                            the state directory */
} ngx_bloom_result_t;

typedef struct {
    uint64_t             asked;          /* tickets drawn */
    uint64_t             begun;          /* the last that the last run serves */
    uint64_t             served;         /* the last that has its result */
    uint64_t             running;        /* when a run began, ms since 1970;
                                            0: none is unfinished */
    uint64_t             generation;     /* that served when it began */
    ngx_bloom_result_t   result;         /* of the last run */
    u_char               path[NGX_MAX_PATH];           /* of an upload */
} ngx_bloom_task_t;


/* What requests of a worker wait for: see ngx_bloom_queue.h. */
typedef enum {
    NGX_BLOOM_QUEUE_ROOM = 0,            /* for keys in the journal */
    NGX_BLOOM_QUEUE_SYNC,                /* until keys are on disk */
    NGX_BLOOM_QUEUES
} ngx_bloom_queue_e;

typedef struct ngx_bloom_queue_s  ngx_bloom_queue_t;


/*
 * In shared memory, which the workers' user can write: there are no addresses
 * in it, and root does not believe it.
 */
typedef struct {
    /* read by every lookup */
    uint64_t              generation;    /* atomic; 0: nothing serves */
    uint64_t              applied;       /* atomic; position in the journal:
                                            what others appended before it is
                                            in the filter */
    uint64_t              complete;      /* atomic, ms since 1970: what was
                                            lost before then is in the filter
                                            that serves; see below */
    uint64_t              instance;      /* random: of this memory */
    size_t                huge_bytes;    /* atomic; on huge pages when
                                            they were last counted */

    struct {
        ngx_uint_t           filled;     /* 0: nothing in it */
        size_t               held;       /* bytes, while it is emptied */
        bloom_image_t        image;
        uint64_t             bits_set;   /* atomic */
        u_char               header[BLOOM_IMAGE_PAGE]; /* of an imported image:
                                                          its origin */
    } bank[2];

    /* the image of file=, whichever serves, as it was last seen to be whole */
    ngx_uint_t            file;          /* 0: the zone starts empty */
    u_char                file_name[NGX_MAX_PATH];     /* null-terminated */
    ngx_bloom_image_id_t  file_id;
    u_char                file_build[BLOOM_IMAGE_BUILD_ID_LEN];
    ngx_uint_t            uploaded;      /* an uploaded image serves */
    ngx_bloom_image_id_t  loads;         /* the file that the last load of
                                            file= read */
    ngx_bloom_image_id_t  refused;       /* the one whose load was refused, or
                                            killed its process: not watched */
    uint64_t              based;         /* the generation of which a start
                                            would begin: its image is named
                                            the base, and is on disk */

    pthread_mutex_t       helper;        /* robust; who loads and follows */
    pthread_mutex_t       tasks;         /* robust; held for a copy */
    ngx_bloom_task_t      task[NGX_BLOOM_TASKS];
    ngx_bloom_result_t    loaded;        /* the last load, whoever wanted it */
    uint64_t              load_done;     /* bytes of the load that runs */
    uint64_t              load_total;    /* 0: none is */
    uint64_t              heartbeat;     /* of the helper, ms since 1970 */
    uint64_t              checkpoint;    /* position of the last one */
    ngx_msec_t            checkpoint_tried; /* when one that nobody asked for
                                            was begun and not finished; 0 */
    uint64_t              full;          /* the last warning of too many keys:
                                            its level, 1 to 3, and 4 times its
                                            generation */
    uint64_t              stale;         /* the generation last said to be too
                                            old */
    uint64_t              missing;       /* looks in a row at a watched file
                                            that was not there */
    uint64_t              learned;       /* atomic, monotonic, microseconds: up
                                            to when keys have used the rate at
                                            which keys are learned */
    ngx_uint_t            left_told;     /* the instance before this memory was
                                            told that it is left */

    ngx_bloom_pending_t   pending;       /* where there is no state, */
    u_char                keys[NGX_BLOOM_ZONE_PENDING];    /* and these keys */
} ngx_bloom_shctx_t;

/*
 * Which keys of a zone may be lost is said by one time for all its instances,
 * pending->lost, which outlives them: keys that were added up to then.  Each
 * instance has another time, sh->complete: what was lost before then is in the
 * filter that serves all the same.
 *
 *     lost < complete     the filter has all keys
 *     lost >= complete    it may lack some, and says "unknown" for "absent"
 *
 * An image has what was added more than an hour before its as_of, so complete
 * becomes that when it comes to serve: 1 if the image does not tell.  It is 0
 * where the filter lacks keys whatever was lost.  It changes under the lock of
 * the pending keys.
 *
 * A worker that adds a key for which there is no room raises `lost` to a time
 * that no loss had before, and then complete behind that, if the filter had all
 * keys until then: it has this one as well.  So only the next load leaves it
 * behind, while other instances lack it at once.
 */


/* In a process's own memory: of a cycle's pool, copied by fork. */
typedef struct ngx_bloom_zone_s {
    ngx_str_t               name;
    ngx_shm_zone_t         *shm_zone;    /* NULL: not declared */
    ngx_bloom_shctx_t      *sh;
    u_char                 *banks;       /* both */
    size_t                  bank_size;
    ngx_uint_t              hugepages_got;         /* ngx_bloom_hugepages_e */
    ngx_bloom_state_t      *state;       /* NULL: memory only */
    ngx_bloom_pending_t    *pending;     /* keys: of the state, or of sh */
    ngx_uint_t              series;      /* of its counters */

    ngx_pool_t             *pool;        /* of the cycle */
    ngx_core_conf_t        *ccf;         /* whose user the workers are */

    /* where the configuration first speaks of it */
    u_char                 *conf_file;
    ngx_uint_t              conf_line;

    /* what the configuration wants */
    size_t                  size;        /* 0: a fitting one */
    ngx_bloom_image_file_t  file;        /* name.len 0: starts empty */
    bloom_image_t           image;
    ngx_str_t               state_path;  /* the directory of all zones, null-
                                            terminated; len 0: memory only */
    ngx_uint_t              journal;     /* 0: "journal=off" */
    ngx_uint_t              adds;        /* something in the configuration adds
                                            keys: directive or endpoint */
    ngx_msec_t              watch;       /* 0: off */
    time_t                  max_age;     /* seconds; 0: off */
    ngx_uint_t              optional;    /* "required=off": nginx starts if the
                                            zone cannot */
    ngx_uint_t              hugepages;   /* ngx_bloom_hugepages_e: wanted */

    ngx_uint_t              state_wanted;          /* or there already */
    ngx_uint_t              has_upload;  /* in it */

    /* why there is no state though the configuration wants one: there may be
     * keys in it, and nothing is loaded without them; NULL: there is */
    ngx_err_t               state_err;
    const char             *state_error;

    ngx_uint_t              changed;     /* why the file will be loaded, as in
                                            ngx_bloom_reload.c; 0: not */

    /* of the same name in the configuration before, with memory of its own,
     * that processes of that configuration still use; NULL: none */
    struct ngx_bloom_zone_s *before;
    ngx_uint_t              left;        /* 1 and the number of its instance,
                                            which nobody tells any more what
                                            others append; 0: none */

    /* what a lookup needs of the generation last seen */
    uint64_t                generation;
    uint32_t                form;        /* BLOOM_FORM_... */
    bloom_geometry_t        geometry;
    bloom_hasher_t          hasher;
    uint64_t               *words;
    time_t                  stale;       /* from then on all is unknown */
    const uint64_t         *required;    /* of this instance; see state */

    ngx_bloom_queue_t      *queue[NGX_BLOOM_QUEUES];       /* NULL: nobody has
                                            waited in it yet */

    ngx_msec_t              stalled;     /* until then keys that cannot wait are
                                            not to wait for the journal */
} ngx_bloom_zone_t;


/* Counts `n` more of something in this process's own row. */
static ngx_inline void
ngx_bloom_count(ngx_bloom_zone_t *zone, ngx_bloom_counter_e what, uint64_t n)
{
    ngx_bloom_counters_count(zone->series, what, n);
}


/* ---- within this layer ---- */

/* As small as a zone's memory may be; limit_req and others have the same. */
#define NGX_BLOOM_ZONE_MIN    (8 * ngx_pagesize)

/* Short: what is done under sh->tasks is a copy. */
#define NGX_BLOOM_TASK_WAIT  100

/*
 * Copies what lookups need of a new generation into `zone`.  Returns NGX_OK, or
 * NGX_AGAIN if the generation changed meanwhile: then the copy may be torn, and
 * is not used.
 */
ngx_int_t ngx_bloom_zone_refresh(ngx_bloom_zone_t *zone, uint64_t generation);

/* Where bits go, and how. */
typedef struct {
    uint32_t                 form;       /* BLOOM_FORM_... */
    const bloom_geometry_t  *geometry;
    const bloom_hasher_t    *hasher;
    uint64_t                *words;
    uint64_t                *bits_set;   /* atomic */
} ngx_bloom_zone_bits_t;

/* Gives those of a bank that the caller alone loads or that is not switched. */
void ngx_bloom_zone_bits(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    ngx_bloom_zone_bits_t *bits);

/*
 * Gives those of the generation that serves.  Returns that, or 0 if none does.
 * When they are used it may serve no more.
 */
uint64_t ngx_bloom_zone_serving(ngx_bloom_zone_t *zone,
    ngx_bloom_zone_bits_t *bits);

/*
 * Adds the keys of a record, from `keys` to `end`, in the image's key form.
 * Returns how many there are, and in *added how many of them changed a bit.
 * Keys that are invalid in that form are left out: nobody can ask for them.
 */
uint64_t ngx_bloom_zone_set(ngx_bloom_zone_bits_t *bits, const uint8_t *keys,
    const uint8_t *end, uint64_t *added);

/*
 * Brings a key to be added into a key form, in memory of its own, which the
 * next call uses again.  Returns NULL, or, if the key is invalid, why: a phrase
 * to follow the key.
 */
const char *ngx_bloom_zone_canonical(uint32_t form, bloom_key_t *key);

/*
 * Returns 1 if the filter that serves has more keys than it was made for, by
 * more than three standard errors of their estimated number, and more false
 * positives than promised.  *items becomes the estimate, 0 if nothing serves.
 */
ngx_uint_t ngx_bloom_zone_overfull(ngx_bloom_zone_t *zone, uint64_t *items);

/* Measures how much of the banks lies on huge pages; takes a while. */
void ngx_bloom_zone_measure_hugepages(ngx_bloom_zone_t *zone);

/* Returns the size of a zone whose banks have room for `bank` bytes each. */
size_t ngx_bloom_zone_needs(uint64_t bank);

/* Finds the parts of the zone's memory, from its address and size alone. */
void ngx_bloom_zone_attach(ngx_bloom_zone_t *zone);

/*
 * Maps the control page, in a process that is the workers' user and is going to
 * use the zone.  If that cannot be, the zone answers "unknown", and the log
 * says why.
 */
void ngx_bloom_zone_attach_state(ngx_bloom_zone_t *zone);

/* The same for all zones of an array of pointers. */
void ngx_bloom_zone_attach_states(ngx_array_t *zones);

/* At which level it is logged that the zone cannot start. */
static ngx_inline ngx_uint_t
ngx_bloom_zone_level(ngx_bloom_zone_t *zone)
{
    return zone->optional ? NGX_LOG_ALERT : NGX_LOG_EMERG;
}

static ngx_inline u_char *
ngx_bloom_zone_bank(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    return zone->banks + bank * zone->bank_size;
}

/* Whether keys were lost that the filter that serves does not have. */
static ngx_inline ngx_uint_t
ngx_bloom_zone_damaged(ngx_bloom_shctx_t *sh, ngx_bloom_pending_t *pending)
{
    return __atomic_load_n(&pending->lost, __ATOMIC_RELAXED)
           >= __atomic_load_n(&sh->complete, __ATOMIC_RELAXED);
}

/*
 * Whether keys may be missing in the filter: another instance has appended
 * what this one has not applied, or keys were lost.
 */
static ngx_inline ngx_uint_t
ngx_bloom_zone_behind(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_pending_t  *pending;

    sh = zone->sh;
    pending = zone->pending;

    return __atomic_load_n(zone->required, __ATOMIC_ACQUIRE)
           > __atomic_load_n(&sh->applied, __ATOMIC_ACQUIRE)
           || ngx_bloom_zone_damaged(sh, pending);
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ZONE_H_INCLUDED_ */
