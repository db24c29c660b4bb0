/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The control page is what all instances of a zone share: a file that every
 * process of them maps.
 *
 *     0        what a version is, locks, the end of the journal, failures
 *     4096     the instances
 *     8192     the header of the pending keys, and which keys may be lost
 *     12288    the pending keys
 *
 * All of its bytes have their place on the disk before anybody maps it, so that
 * a full disk refuses none of what is noted here.  Bytes that no field has are
 * zero.  A field that is added there has to mean "not there yet" when it is
 * zero, and to be of no concern to whoever does not know it: so two versions of
 * the module can share a page, and its version stays.
 */

#ifndef _NGX_BLOOM_CONTROL_H_INCLUDED_
#define _NGX_BLOOM_CONTROL_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "bloom_image.h"
#include "ngx_bloom_lock.h"

#pragma GCC visibility push(hidden)


/* "BLOOMCTL" */
#define NGX_BLOOM_CONTROL_MAGIC    0x4c54434d4f4f4c42
#define NGX_BLOOM_CONTROL_VERSION  2

/* Clocks differ by less, and a key may be added so long before what it names is
 * committed; ms. */
#define NGX_BLOOM_CLOCKS_DIFFER  (60 * 60 * 1000)

#define NGX_BLOOM_INSTANCES    64
#define NGX_BLOOM_EARLY        8
#define NGX_BLOOM_PENDING      ((uint64_t) 1 << 63)

/* Required of an instance that nobody tells any more what others append. */
#define NGX_BLOOM_LEFT         UINT64_MAX

/* Bytes of pending keys. */
#define NGX_BLOOM_PENDING_ROOM  (2 * 1024 * 1024)


/* The end of the journal. */
typedef struct {
    uint64_t             tail;           /* of the next record */
    uint64_t             base;           /* of the segment it goes to */
    uint64_t             limit;          /* where that ends; 0: none yet */
    uint64_t             sequence;       /* of the next record */
    uint64_t             time;           /* of the last record */
} ngx_bloom_end_t;


/*
 * Keys that were added and are not in the journal yet, since it could not be
 * written: length (2 bytes), bytes, and so on, from `begin` to `end`.  Both
 * only grow; position p is byte p % room of the memory that the keys are in.
 */
typedef struct {
    pthread_mutex_t      mutex;          /* robust; held for a copy */
    uint64_t             begin;
    uint64_t             end;
    uint64_t             count;          /* keys in it */

    uint64_t             lost_keys;      /* atomic; there was no room for */

    /*
     * Atomic, ms since 1970: keys that were added up to then may be lost; 0:
     * none is.  It only grows, and it is set before anything is done that would
     * hide the loss.  See `complete` in ngx_bloom_zone.h.
     */
    uint64_t             lost;
} ngx_bloom_pending_t;


/* In the file "control".  All atomic, but what a lock guards. */
typedef struct {
    union {
        struct {
            uint64_t             magic;
            uint64_t             version;        /* version 1 had its size
                                                    here */
            uint64_t             size;           /* of this structure */

            pthread_mutex_t      append;         /* guards the end; held for a
                                                    write */
            pthread_mutex_t      keeper;         /* guards segments and files */
            pthread_mutex_t      history;        /* guards segments that are
                                                    replaced; see
                                                    ngx_bloom_replace.h */

            uint64_t             which;          /* end[which & 1] is true */
            ngx_bloom_end_t      end[2];

            uint64_t             begin;          /* base of the oldest
                                                    segment */
            uint64_t             compacted;      /* bytes that the last
                                                    compaction made, or left as
                                                    they were */
            uint64_t             prepared;       /* where the newest one ends */
            uint64_t             synced;
            uint64_t             synced_check;   /* ~synced */
            uint64_t             wanted;         /* somebody waits for it to
                                                    be */
            uint64_t             dropped;        /* time of the newest record
                                                    removed; 0: none ever was */

            /* the last failure, until it has been overcome */
            uint64_t             err;            /* errno */
            uint64_t             failed;         /* NGX_BLOOM_CANNOT_...; 0 */
            uint64_t             rewrite;        /* a synchronisation has
                                                    failed or did not end, and
                                                    what is before it has to be
                                                    written again; 0: none */

            uint64_t             instances;      /* a bit for each that may
                                                    live */

            /* images that said of a time to come that they are complete as of
             * it: see ngx_bloom_as_of.h */
            struct {
                u_char               build_id[BLOOM_IMAGE_BUILD_ID_LEN];
                uint64_t             loaded;     /* first, ms since 1970; 0:
                                                    none */
            } early[NGX_BLOOM_EARLY];
        };

        u_char                   head[4096];
    };

    struct {
        uint64_t                 required;
        uint64_t                 applied;
        uint64_t                 as_of;          /* no record that is appended
                                                    may have an earlier time */
        uint64_t                 reserved[5];
    } instance[NGX_BLOOM_INSTANCES];

    union {
        ngx_bloom_pending_t      pending;
        u_char                   pending_head[4096];
    };

    u_char                       keys[NGX_BLOOM_PENDING_ROOM];
} ngx_bloom_control_t;

_Static_assert(offsetof(ngx_bloom_control_t, instance) == 4096
               && offsetof(ngx_bloom_control_t, pending) == 8192
               && offsetof(ngx_bloom_control_t, keys) == 12288
               && sizeof(ngx_bloom_control_t) == 12288 + NGX_BLOOM_PENDING_ROOM,
               "the parts of a control page are where all versions find them");

#define NGX_BLOOM_CANNOT_WRITE    1
#define NGX_BLOOM_CANNOT_PREPARE  2
#define NGX_BLOOM_CANNOT_SYNC     3


/* What a file "control" is. */
typedef enum {
    NGX_BLOOM_CONTROL_OK = 0,
    NGX_BLOOM_CONTROL_EMPTY,
    NGX_BLOOM_CONTROL_V1,                /* see ngx_bloom_control_v1.h */
    NGX_BLOOM_CONTROL_NEWER,
    NGX_BLOOM_CONTROL_BROKEN,            /* it is cut off, or no such page */
    NGX_BLOOM_CONTROL_UNREADABLE         /* errno says why */
} ngx_bloom_control_e;

ngx_bloom_control_e ngx_bloom_control_look(ngx_fd_t fd);

/*
 * Fills a page of zeros that nobody else has mapped.  Returns NGX_OK, or
 * NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_control_fill(ngx_bloom_control_t *control);

/*
 * Empties a page whose users have all ended, but for `synced`, `rewrite`, the
 * pending keys and `lost`.  Whoever dies here leaves them to the next.  Returns
 * NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_control_renew(ngx_bloom_control_t *control);

/* Raises pending->lost to a time, ms since 1970, if it is less. */
void ngx_bloom_control_lose(ngx_bloom_pending_t *pending, uint64_t time);

static ngx_inline ngx_uint_t
ngx_bloom_pending_empty(ngx_bloom_pending_t *pending)
{
    return __atomic_load_n(&pending->end, __ATOMIC_SEQ_CST)
           == __atomic_load_n(&pending->begin, __ATOMIC_SEQ_CST);
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CONTROL_H_INCLUDED_ */
