/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The base is what a zone serves first in new memory.
 *
 * It is the uploaded image that replaced the image of file=, if there is one;
 * otherwise the image of file=; otherwise an empty filter.  The master opens
 * the zone's state directory.  A loader, a child of the master that runs as the
 * workers' user, loads the base and the journal.
 */

#ifndef _NGX_BLOOM_BASE_H_INCLUDED_
#define _NGX_BLOOM_BASE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_copy.h"
#include "ngx_bloom_directory.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* A message for the log and for clients. */
#define NGX_BLOOM_BASE_NO_DIRECTORY                                           \
    "the directory of bloom_state_path cannot be used; see the error log, "   \
    "correct the cause, and reload nginx"


/*
 * Opens the zone's state directory, in the master.  If it does not exist,
 * creates it if `make` is set and something adds keys to the zone; otherwise
 * leaves zone->state NULL.  Of an opened zone->state only the directory is
 * open.  Returns NGX_OK; or NGX_ERROR, logged, if the directory cannot or must
 * not be used.
 */
ngx_int_t ngx_bloom_base_open_directory(ngx_bloom_zone_t *zone,
    ngx_uint_t make);

/* Opens the control page in that directory, in a loader.  Returns NGX_OK, or
 * NGX_ERROR, logged. */
ngx_int_t ngx_bloom_base_open_state(ngx_bloom_zone_t *zone);

/* Logs why a file of zone->state cannot be used. */
void ngx_bloom_base_log_state(ngx_bloom_zone_t *zone,
    ngx_bloom_failure_t *failure);

/*
 * Hand an opened state from the loader to the master.  The loader calls the
 * first function, which also lets other processes start an instance.  The
 * master calls the second, which takes the open files from the answer, or
 * records that there is no state.
 */
void ngx_bloom_base_answer_state(ngx_bloom_zone_t *zone,
    ngx_bloom_answer_t *answer);
void ngx_bloom_base_take_state(ngx_bloom_zone_t *zone,
    ngx_bloom_answer_t *answer);

/*
 * Loads the base, from its newest checkpoint if it has one, and the journal
 * into the idle bank.  Returns NGX_OK, or NGX_ERROR, logged.  The caller calls
 * ngx_bloom_load_end() in either case.
 */
ngx_int_t ngx_bloom_base_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load);

/*
 * Reads the journal alone, if the base cannot be loaded, so that its end is
 * known.  Returns NGX_OK, or NGX_ERROR, logged.  The caller calls
 * ngx_bloom_load_end() in either case.
 */
ngx_int_t ngx_bloom_base_load_journal(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);

/*
 * Recovers the journal's end after `load` has read the journal: from now on
 * records can be appended.  Returns NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_base_recover(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);

/* Returns 1 if two filters have the same geometry, capacity, rate, key form and
 * kind of hash; their seeds may differ. */
ngx_uint_t ngx_bloom_base_alike(bloom_image_t *one, bloom_image_t *other);

/* Records in shared memory, for the helpers of all cycles, which file is the
 * zone's file= from now on. */
void ngx_bloom_base_note_name(ngx_bloom_zone_t *zone);

/* Does what ngx_bloom_base_note_name() does, and records that the file has been
 * seen as it is now. */
void ngx_bloom_base_note_file(ngx_bloom_zone_t *zone);

/* Records which image file= has, after it was loaded while nginx runs. */
void ngx_bloom_base_note_loaded(ngx_bloom_zone_t *zone, bloom_image_t *image);

/*
 * Makes the image of a load, which serves now, the base of the next start.  If
 * it was uploaded, `upload` is its copy in the state directory, else NULL.
 *
 * After a crash before this the previous image is still the base, the journal
 * still has all records that it needs, and no client has been told otherwise.
 * An upload is on disk already.  The image of file= becomes the base once
 * maintenance has synchronised the file; until then the journal keeps its
 * records.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_base_change(ngx_bloom_load_t *load,
    ngx_bloom_copy_t *upload);

/* Logs why the image of file= is refused, at the level of
 * ngx_bloom_zone_level().  Returns NGX_ERROR. */
ngx_int_t ngx_bloom_base_refuse(ngx_bloom_zone_t *zone);

/* Does the same for an image that a guard refuses, or whose keys cannot be
 * checked. */
ngx_int_t ngx_bloom_base_refuse_by_guard(ngx_bloom_zone_t *zone,
    ngx_bloom_guard_t *guard);

/* Returns what log messages call the base. */
char *ngx_bloom_base_called(ngx_bloom_zone_t *zone, ngx_uint_t uploaded);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BASE_H_INCLUDED_ */
