/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The control block of a zone: what its processes share while they live.
 */

#ifndef _NGX_BLOOM_SHARED_H_INCLUDED_
#define _NGX_BLOOM_SHARED_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include <pthread.h>

#include "ngx_bloom_image_file.h"
#include "ngx_bloom_recent.h"
#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/* The kinds of work that a process can ask of the helper: ngx_bloom_task.h. */
typedef enum {
    NGX_BLOOM_TASK_LOAD = 0,             /* load file= again */
    NGX_BLOOM_TASK_UPLOAD,               /* load an uploaded image */
    NGX_BLOOM_TASK_CLEAR,                /* drop what was added, removed and
                                            uploaded */
    NGX_BLOOM_TASK_RESTORE,              /* restore the removed keys */
    NGX_BLOOM_TASK_FORGET,               /* forget the excepted keys */
    NGX_BLOOM_TASK_CHECKPOINT,
    NGX_BLOOM_TASK_SNAPSHOT,             /* write the zone to an image file */
    NGX_BLOOM_TASKS
} ngx_bloom_task_e;

typedef enum {
    NGX_BLOOM_DONE = 0,
    NGX_BLOOM_REFUSED,                   /* the image is bad, or too old */
    NGX_BLOOM_NO_ROOM,                   /* the zone, the memory or the disk
                                            has too little room */
    NGX_BLOOM_FAILED,                    /* something else failed */
    NGX_BLOOM_LACKS                      /* a snapshot would lack lost keys */
} ngx_bloom_outcome_e;

/* How one run of a task ended. */
typedef struct {
    ngx_bloom_outcome_e  outcome;
    uint64_t             generation;     /* that serves after the run */
    uint64_t             started_at;     /* ms since 1970 */
    uint64_t             duration;       /* ms */
    u_char               message[512];   /* why it failed; null-terminated */
    u_char               name[80];       /* snapshot: its file in the state
                                            directory; null-terminated */
} ngx_bloom_result_t;

/* The last snapshot of a zone (ngx_bloom_snapshot.h); guarded by sh->helper. */
typedef struct {
    uint64_t             generation;     /* that it was made of */
    uint64_t             position;       /* of the journal when it was begun */
    uint64_t             bits_set;       /* in the filter when it was begun */
    uint64_t             puts;           /* how often keys had become exceptions
                                            then */
    uint64_t             excepted;       /* exceptions then */
    ngx_msec_t           ended;
    ngx_msec_t           next;           /* earliest time for another one; 0:
                                            at once */
    u_char               name[80];       /* null-terminated; empty: no
                                            snapshot */
} ngx_bloom_snapshot_t;

/* One kind of task of a zone; guarded by sh->tasks. */
typedef struct {
    uint64_t             asked;          /* number of tickets drawn */
    uint64_t             begun;          /* last ticket that the last run
                                            serves */
    uint64_t             served;         /* last ticket that `result` answers */
    uint64_t             running;        /* when the unfinished run began, ms
                                            since 1970; 0: no run is
                                            unfinished */
    uint64_t             forced;         /* last ticket that lets any change of
                                            the number of keys pass */
    uint64_t             generation;     /* that served when the last run
                                            began */
    ngx_bloom_result_t   result;         /* of the last run */
    u_char               path[NGX_MAX_PATH];           /* upload: its file */
} ngx_bloom_task_t;


/* The slices of a bank, if keys expire: ngx_bloom_ring.h.  Bit i of a bitmap
 * belongs to slice i.  All fields are atomic. */
typedef struct {
    uint64_t             turn;           /* which slice is open, and which ones
                                            are ready */
    uint64_t             live;           /* bitmap: lookups test them */
    uint64_t             full;           /* bitmap of the live ones that were
                                            closed because they were full */
    uint64_t             final;          /* bitmap of those whose time in
                                            `closed` has been reached when they
                                            were closed for sure; set by the
                                            helper, and by a load */
    uint64_t             drops;          /* raised before a slice is cleared */
    uint64_t             opened[BLOOM_PARTS_MAX];    /* time of its first key;
                                            0: it has none */
    uint64_t             closed[BLOOM_PARTS_MAX];    /* if it is final, it has
                                            no later key */
} ngx_bloom_ring_t;


/*
 * The control block of a zone, in shared memory.  The workers' user can write
 * to it, so it contains no addresses, and root does not trust it.
 */
typedef struct {
    /* read by every lookup */
    uint64_t              generation;    /* atomic; 0: nothing serves */
    uint64_t              applied;       /* atomic; position in the journal:
                                            the filter has what other
                                            instances appended before it */
    uint64_t              complete;      /* atomic, ms since 1970: the filter
                                            that serves has the keys that were
                                            lost before then; see below */
    uint64_t              instance;      /* random number of this memory */
    size_t                huge_bytes;    /* atomic; bytes on huge pages when
                                            last measured */

    struct {
        ngx_uint_t           filled;     /* 0: the bank is empty */
        bloom_image_t        image;      /* with all layers that are planned */
        uint64_t             grown;      /* atomic: how many layers are in use,
                                            see ngx_bloom_zone_grown() */
        uint64_t             bits_set[BLOOM_PARTS_MAX]; /* atomic; in each
                                            part */
        ngx_bloom_ring_t     ring;       /* if keys expire */
        uint64_t             removals;   /* keys that its exceptions have room
                                            for, beside those that the builder
                                            of the image chose */
        u_char               header[BLOOM_IMAGE_PAGE]; /* imported image: its
                                                          origin */
    } bank[2];

    /* the image of file= when it was last found complete; another image may
     * serve */
    ngx_uint_t            file;          /* 0: the zone starts empty */
    u_char                file_name[NGX_MAX_PATH];     /* null-terminated */
    ngx_bloom_image_id_t  file_id;
    u_char                file_build[BLOOM_IMAGE_BUILD_ID_LEN];
    ngx_uint_t            uploaded;      /* 1: an uploaded image serves */
    ngx_bloom_image_id_t  loads;         /* the file that the last load of
                                            file= has read */
    ngx_bloom_image_id_t  refused;       /* the file whose load was refused or
                                            killed its process: "watch" does
                                            not load it again */
    uint64_t              based;         /* generation whose image the next
                                            start would load: it is recorded as
                                            the base, and is on disk */
    uint64_t              standin;       /* generation that a start serves since
                                            it could not load what the zone
                                            stands on; it never becomes the
                                            base.  0: none */

    pthread_mutex_t       helper;        /* robust; held by the process that
                                            loads, saves, or removes files */
    pthread_mutex_t       applying;      /* robust; held by the process that
                                            catches up, lets keys expire,
                                            restores removed keys, notes what a
                                            save has, or lets another generation
                                            serve */
    pthread_mutex_t       tasks;         /* robust; held for a copy only */
    ngx_bloom_task_t      task[NGX_BLOOM_TASKS];
    ngx_bloom_result_t    loaded;        /* last load, whichever process
                                            requested it */
    uint64_t              load_done;     /* bytes that the running load has
                                            read */
    uint64_t              load_total;    /* bytes it reads in all; 0: no load
                                            is running */
    uint64_t              helpers;       /* how many helpers have begun to look
                                            after the zone: the last one, with
                                            the newest configuration, does its
                                            jobs; guarded by `helper` */
    uint64_t              handed;        /* atomic; 1: the process of the run
                                            that has not ended was told to exit,
                                            so the run begins again */
    uint64_t              runner;        /* id of the process of the helper that
                                            has forked the one of the last
                                            run; guarded by `tasks` */
    uint64_t              restored;      /* of the run that restores keys: the
                                            position behind its record; 0: it
                                            has written none */
    ngx_msec_t            heartbeat;     /* of the helper, ngx_current_msec: a
                                            clock that is set has no effect */
    uint64_t              checkpoint;    /* position of the last one */
    ngx_msec_t            checkpoint_tried; /* when an unrequested checkpoint
                                            was begun; 0: it was finished */
    ngx_msec_t            stand_tried;   /* when the image that serves was last
                                            to become the base; 0: try at
                                            once */
    uint64_t              stand_logged;  /* generation for which a failure of
                                            this has been logged */
    ngx_bloom_snapshot_t  snapshot;
    ngx_msec_t            clear_tried;   /* when a load to apply the clear of
                                            another instance was begun; 0: it
                                            was finished */
    uint64_t              full;          /* level of the last warning of too
                                            many keys, 1 to 3, plus 4 times the
                                            generation that it was about */
    uint64_t              late;          /* generation of which the log last
                                            said that no slice is ready; 0: it
                                            said that one is ready again */
    uint64_t              stale;         /* generation that the log last called
                                            older than max_age */
    uint64_t              grows;         /* generation of which the log last
                                            said that its journal grows */
    uint64_t              missing;       /* how many times in a row the watched
                                            file was not there */
    uint64_t              audited;       /* atomic, monotonic, microseconds:
                                            the rate of keys that audits add is
                                            used up to this time */
    uint64_t              adapted;       /* the same for false positives */
    ngx_uint_t            left_told;     /* 1: the instance before this one has
                                            been told that it is abandoned */

    ngx_bloom_recent_t    recent;        /* keys that were added lately */
    uint64_t              accepts;       /* atomic; images accepted so far;
                                            accepted[accepts & 1] is the last */
    bloom_accepted_t      accepted[2];   /* zones without a state directory */
    ngx_bloom_control_t   control;       /* its lock `append`, and `loss`; of a
                                            zone without a state directory, all
                                            of it (I10); else its clock is a
                                            copy */
    uint64_t              lost;          /* atomic; loss.lost of the state
                                            directory when this instance last
                                            knew it: see below */
} ngx_bloom_shctx_t;

/*
 * Two times say whether a filter lacks keys that were lost:
 *
 *     loss.lost        keys that were added up to this time may be lost.  One
 *                      time for all instances of the zone; it outlives them.
 *     sh->complete     the filter that serves nevertheless has the keys that
 *                      were lost before this time.  One for each instance.
 *
 *     lost < complete     the filter has all keys
 *     lost >= complete    the filter may lack some, and the zone answers
 *                         "unknown" instead of "absent"
 *
 * An image has all keys that were added more than an hour before its as_of.  So
 * when it begins to serve, `complete` is set to its as_of less an hour, or to 1
 * if the image has no as_of.  If the filter is known to lack keys, `complete`
 * is 0, whatever `lost` is.  It changes under the lock `append`.
 *
 * A worker that cannot write a key to the journal raises `lost` to a time that
 * no loss had before.  If its filter had all keys until then, it has this one
 * as well, so the worker then raises `complete` beyond `lost`.  Other instances
 * lack the key at once, this one from its next load on.
 *
 * A reload may switch the journal of a zone on or off, and then workers without
 * the control page of the state directory use the same memory as others with
 * it.  So the others also count `loss` of the control page in sh, and the first
 * ones sh->lost.
 */


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SHARED_H_INCLUDED_ */
