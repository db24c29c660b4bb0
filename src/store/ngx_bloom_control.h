/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The control page is the file "control" of a state directory, which every
 * process of every instance of the zone maps.  Through it, instances agree on
 * the end of the journal and on what each of them still has to apply.  The
 * shared memory of a zone has a control page of its own besides: a zone without
 * a directory uses that one, and its journal has no end (I10).
 *
 *     0        version, locks, the end of the journal, the last failure
 *     4096     the instances
 *     8192     what was lost, and who owes keys
 *
 * All of its blocks are allocated on disk before a process maps it, so that
 * facts can be recorded here even if the disk is full.
 *
 * Bytes that belong to no field are zero.  A new field may be added in their
 * place if zero means "not set" and a program that does not know the field can
 * ignore it.  Then two versions of the module can share a page, and the version
 * number stays.
 *
 * A start that finds no other instance fills the page again.  It keeps a few
 * facts, each with a check.  If the check is wrong, a process has died between
 * both, or a loss of power or another program has changed one of them: then the
 * start takes what promises less.
 */

#ifndef _NGX_BLOOM_CONTROL_H_INCLUDED_
#define _NGX_BLOOM_CONTROL_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_base.h"
#include "ngx_bloom_clock.h"
#include "ngx_bloom_lock.h"

#pragma GCC visibility push(hidden)


/* "BLOOMCTL" */
#define NGX_BLOOM_CONTROL_MAGIC    0x4c54434d4f4f4c42
#define NGX_BLOOM_CONTROL_VERSION  4

#define NGX_BLOOM_INSTANCES    64

/* `required` of an instance whose helper has ended; other instances ignore this
 * instance. */
#define NGX_BLOOM_LEFT         UINT64_MAX

/* How many processes can owe keys at a time: the workers of a large machine,
 * before and after a reload. */
#define NGX_BLOOM_OWERS  256


/* The end of the journal: where the next record is appended. */
typedef struct {
    uint64_t             tail;           /* end of the last record */
    uint64_t             base;           /* base of the segment of the next one;
                                            if it is behind `tail`, that segment
                                            has no record yet */
    uint64_t             limit;          /* end of that segment; 0: there is no
                                            segment yet */
    uint64_t             sequence;       /* of the next record */
    uint64_t             time;           /* the greatest of all records */
    bloom_removals_t     removals;       /* of all records */
} ngx_bloom_end_t;


/*
 * Keys that were added and are not in the journal.  Lost ones are only in the
 * filter that served then.  Owed ones are in the memory of a process that could
 * not get the lock `append`, and that appends them later (ngx_bloom_owed.h).
 */
typedef struct {
    uint64_t             lost_keys;      /* how many were lost; atomic */

    /*
     * The time, ms since 1970, up to which added keys may be lost; 0: no key is
     * lost.  Atomic.  It only grows, and it is set before anything is done that
     * would hide the loss.  See `complete` in ngx_bloom_shared.h.
     */
    uint64_t             lost;
    uint64_t             lost_check;     /* ~lost, unless one of both is
                                            wrong */

    uint64_t             owing;          /* odd while a process owes keys;
                                            grows whenever a bit of `owes` is
                                            set, or all are clear; atomic */
    uint64_t             owes[NGX_BLOOM_OWERS / 64];
                                         /* bitmap of the numbers of processes
                                            that owe keys; atomic */
    pthread_mutex_t      ower[NGX_BLOOM_OWERS];      /* robust; held by the
                                            process that has the number.  If it
                                            has died, what it owed is lost */
} ngx_bloom_loss_t;


/* Changes after the place that the zone has already: see
 * ngx_bloom_source.h. */
typedef struct {
    uint64_t             source;         /* identifies its name */
    bloom_position_t     before;         /* where the zone is, */
    bloom_position_t     after;          /* and will be when it has all
                                            changes */
    uint64_t             count;          /* changes that it has; 0: none */
    uint64_t             digest;         /* after them */
} ngx_bloom_part_t;

/* A sign of life.  Each number is atomic; no lock guards them. */
typedef struct {
    uint64_t             source;         /* which source gave it */
    bloom_position_t     position;       /* where the zone was */
    uint64_t             time;           /* ngx_current_msec; 0: there was
                                            none */
} ngx_bloom_sign_t;

typedef struct {
    uint64_t             which;          /* place[which & 1] is valid */
    bloom_reached_t      place[2];
    ngx_bloom_sign_t     sign;           /* the last one */
} ngx_bloom_places_t;


/* The contents of the file "control".  Fields that no lock guards are
 * atomic. */
typedef struct {
    union {
        struct {
            uint64_t             magic;
            uint64_t             version;
            uint64_t             size;           /* of this structure */

            u_char               journal[BLOOM_JOURNAL_ID_LEN];
                                                 /* which journal it is of */

            pthread_mutex_t      append;         /* guards the end, and all that
                                                    a change changes; held for
                                                    a change */
            pthread_mutex_t      keeper;         /* guards segments and files */

            uint64_t             which;          /* end[which & 1] is valid */
            ngx_bloom_end_t      end[2];

            uint64_t             based;          /* base[based & 1] is valid */
            bloom_base_t         base[2];        /* the entry of the file "base"
                                                    that counts; changes under
                                                    `keeper` */

            uint64_t             prepared;       /* end of the newest segment */
            uint64_t             synced;         /* all before this position is
                                                    on disk */
            uint64_t             synced_check;   /* ~synced, unless one of both
                                                    is wrong */
            uint64_t             durable;        /* and all records up to this
                                                    sequence; it may be late */
            uint64_t             wanted;         /* position that a request
                                                    wants to be synced */

            /* the last failure, until the operation succeeds again */
            uint64_t             err;            /* errno */
            uint64_t             failed;         /* NGX_BLOOM_CANNOT_..., or
                                                    0 */

            uint64_t             rewrite;        /* records before this position
                                                    must be written again,
                                                    because a synchronisation
                                                    up to it has failed or not
                                                    ended; 0: none */
            u_char               boot[NGX_BLOOM_BOOT_LEN];
                                                 /* the boot of the machine in
                                                    which `rewrite` was set */

            uint64_t             instances;      /* a bit for each instance
                                                    that may live */

            /* the last clear, see ngx_bloom_cleared.h */
            struct {
                uint64_t             position;   /* of its record; 0: none is
                                                    known */

                /* loss.lost and lost_keys before the record at this position,
                 * which may never have been published */
                uint64_t             at;
                uint64_t             lost;
                uint64_t             lost_keys;
            } clear;

            ngx_bloom_clock_t        clock;      /* if keys expire, or once
                                                    did */

            ngx_bloom_places_t       source;     /* its places change under
                                                    `append` */
            ngx_bloom_part_t         part;       /* changes under `append` */

            uint64_t                 begun;      /* number of the last entry of
                                                    the file "base" that a
                                                    process began to write */

            uint64_t                 waiting;    /* when a change that cannot be
                                                    refused last waited for
                                                    `append`, monotonic ms */
        };

        u_char                   head[4096];
    };

    struct {
        uint64_t                 required;       /* position that it must apply
                                                    before it says "absent" */
        uint64_t                 applied;        /* position it has applied */
        uint64_t                 as_of;          /* records appended from now
                                                    on are later than this
                                                    time */
        uint64_t                 removals;       /* 1 + the number of removed
                                                    keys that it has room for;
                                                    0: not known */
        uint64_t                 removed;        /* removed keys that it has */
        bloom_removals_t         counted;        /* of all records before
                                                    `applied` */
        uint64_t                 reserved;
    } instance[NGX_BLOOM_INSTANCES];

    union {
        ngx_bloom_loss_t         loss;
        u_char                   loss_pages[12288];
    };
} ngx_bloom_control_t;

_Static_assert(offsetof(ngx_bloom_control_t, instance) == 4096
               && offsetof(ngx_bloom_control_t, loss) == 8192
               && sizeof(ngx_bloom_control_t) == 20480,
               "the parts of a control page have the same offsets everywhere");

#define NGX_BLOOM_CANNOT_WRITE    1
#define NGX_BLOOM_CANNOT_PREPARE  2
#define NGX_BLOOM_CANNOT_SYNC     3


/* What a file "control" contains. */
typedef enum {
    NGX_BLOOM_CONTROL_OK = 0,
    NGX_BLOOM_CONTROL_EMPTY,
    NGX_BLOOM_CONTROL_FOREIGN,           /* it has another version */
    NGX_BLOOM_CONTROL_BROKEN,            /* truncated, or not a control page */
    NGX_BLOOM_CONTROL_UNREADABLE         /* errno says why */
} ngx_bloom_control_e;

/* Finds out what a file contains. */
ngx_bloom_control_e ngx_bloom_control_look(ngx_fd_t fd);

/*
 * Initialises a page of zeros that no other process has mapped.  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_control_fill(ngx_bloom_control_t *control);

/*
 * Resets a page whose users have all ended.  `synced`, `rewrite`, the clock,
 * `lost`, the copy of the entry that counted and `begun` are kept, also if the
 * process dies here.  If a check is wrong, the lesser `synced` of both and the
 * later `lost` of both are kept, and the clock starts again; what a process
 * still owed is lost.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_control_renew(ngx_bloom_control_t *control);

/* Returns 1 if the page was last used since the machine was booted. */
ngx_uint_t ngx_bloom_control_fresh(const ngx_bloom_control_t *control);

/* Returns 1 if a process owes keys. */
static ngx_inline ngx_uint_t
ngx_bloom_control_owing(const ngx_bloom_loss_t *loss)
{
    return __atomic_load_n(&loss->owing, __ATOMIC_SEQ_CST) & 1;
}

/* Stores the check of loss->lost, after that has changed. */
void ngx_bloom_control_check_lost(ngx_bloom_loss_t *loss);

/* Raises loss->lost to a time, ms since 1970, if it is earlier. */
void ngx_bloom_control_lose(ngx_bloom_loss_t *loss, uint64_t time);

/* Lowers loss->lost to a time, ms since 1970, if it is later: no key was lost
 * after that time.  No other process uses the page. */
void ngx_bloom_control_lost_by(ngx_bloom_loss_t *loss, uint64_t time);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CONTROL_H_INCLUDED_ */
