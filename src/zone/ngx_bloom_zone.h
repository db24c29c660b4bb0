
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
    NGX_BLOOM_DAMAGED                    /* the journal lost records */
} ngx_bloom_condition_e;


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
    uint64_t             after;          /* it served the tickets after that */
    uint64_t             upto;           /* and up to that one */
    ngx_bloom_result_t   result;
} ngx_bloom_run_t;

/* One of them may be written at any time: all others are known. */
#define NGX_BLOOM_TASK_RUNS  8

typedef struct {
    uint64_t             asked;          /* tickets drawn */
    uint64_t             begun;          /* of which a run serves */
    uint64_t             runs;           /* atomic; that have ended */
    ngx_bloom_run_t      run[NGX_BLOOM_TASK_RUNS];  /* the last ones: the n-th
                                            is at n % NGX_BLOOM_TASK_RUNS */
    u_char               path[NGX_MAX_PATH];           /* of an upload */
} ngx_bloom_task_t;


/* In shared memory. */
typedef struct {
    /* read by every lookup */
    uint64_t              generation;    /* atomic; 0: nothing serves */
    uint64_t              applied;       /* atomic; position in the journal:
                                            what others appended before it is
                                            in the filter */
    uint64_t              damaged;       /* atomic; 0, or keys added up to then
                                            may be lost, ms since 1970 */
    uint64_t              instance;      /* random: of this memory */
    size_t                bank_size;
    u_char               *banks;         /* the same address everywhere */
    ngx_uint_t            hugepages;     /* ngx_bloom_hugepages_e: got */
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
    uint64_t              based;         /* the generation of which a start
                                            would begin: its image is named
                                            the base on disk */

    pthread_mutex_t       helper;        /* robust; who loads and follows */
    pthread_mutex_t       tasks;         /* robust; held for a copy */
    ngx_bloom_task_t      task[NGX_BLOOM_TASKS];
    ngx_bloom_result_t    loaded;        /* the last load, whoever wanted it */
    uint64_t              load_done;     /* bytes of the load that runs */
    uint64_t              load_total;    /* 0: none is */
    uint64_t              heartbeat;     /* of the helper, ms since 1970 */
    uint64_t              checkpoint;    /* position of the last one */
    uint64_t              full;          /* the generation last said to have
                                            more keys than it was made for, */
    uint64_t              stale;         /* or to be too old */
    uint64_t              missing;       /* looks in a row at a watched file
                                            that was not there */

    ngx_bloom_pending_t   pending;       /* keys, where there is no state */
    uint64_t              lost;          /* atomic; when a key last came that
                                            found no room among these or the
                                            state's, ms since 1970; 0: none */
    uint64_t              lost_noted;    /* on disk; the helper's */
    uint64_t              switches;      /* atomic; a load is about to, so a
                                            key that is lost now damages */
} ngx_bloom_shctx_t;


/* In a process's own memory: of a cycle's pool, copied by fork. */
typedef struct {
    ngx_str_t               name;
    ngx_shm_zone_t         *shm_zone;    /* NULL: not declared */
    ngx_bloom_shctx_t      *sh;
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
    ngx_uint_t              hugepages;   /* ngx_bloom_hugepages_e: wanted */

    /* why there is no state though the configuration wants one */
    ngx_err_t               state_err;
    const char             *state_error;

    /* until the configuration that is read has been accepted */
    ngx_uint_t              resized;     /* it was there in another size */
    ngx_uint_t              changed;     /* the file did: to be loaded */
    ngx_uint_t              prepared;    /* loaded, and serves from then on */
    ngx_uint_t              uploaded;    /* by an uploaded image */
    ngx_uint_t              joins;       /* the filter that serves goes on, and
                                            gets the keys of the journal */
    struct ngx_bloom_load_s *load;

    /* what a lookup needs of the generation last seen */
    uint64_t                generation;
    uint32_t                form;        /* BLOOM_FORM_... */
    bloom_geometry_t        geometry;
    bloom_hasher_t          hasher;
    uint64_t               *words;
    time_t                  stale;       /* from then on all is unknown */
    const uint64_t         *required;    /* of this instance; see state */
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

/* Measures how much of the banks lies on huge pages; takes a while. */
void ngx_bloom_zone_measure_hugepages(ngx_bloom_zone_t *zone);

/* Returns the size of a zone whose banks have room for `bank` bytes each. */
size_t ngx_bloom_zone_needs(uint64_t bank);

static ngx_inline u_char *
ngx_bloom_zone_bank(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    return zone->sh->banks + bank * zone->sh->bank_size;
}

/*
 * Whether keys may be missing in the filter: another instance has appended
 * what this one has not applied, or the journal has lost records.
 */
static ngx_inline ngx_uint_t
ngx_bloom_zone_behind(ngx_bloom_zone_t *zone)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    return __atomic_load_n(zone->required, __ATOMIC_ACQUIRE)
           > __atomic_load_n(&sh->applied, __ATOMIC_ACQUIRE)
           || __atomic_load_n(&sh->damaged, __ATOMIC_RELAXED) != 0;
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ZONE_H_INCLUDED_ */
