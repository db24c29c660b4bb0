/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The base is what a zone serves first, in fresh memory: the master opens the
 * zone's state directory, and a child of it that is the workers' user loads the
 * base with the journal behind it.
 *
 * The base of a zone is the image that was uploaded in place of that of file=,
 * if there is one; else the image of file=, or an empty filter.
 */

#ifndef _NGX_BLOOM_BASE_H_INCLUDED_
#define _NGX_BLOOM_BASE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_directory.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Messages for the log, and for a client. */
#define NGX_BLOOM_BASE_NO_DIRECTORY                                           \
    "the directory of bloom_state_path cannot be used; the error log says "   \
    "why: correct that and reload nginx"


/*
 * Opens the zone's state directory, and makes it, if `make` is set and the zone
 * is to have one: then zone->state is set, with nothing but the directory
 * open.  For the master.  Returns NGX_OK, or NGX_ERROR, logged, if it cannot or
 * must not be used.
 */
ngx_int_t ngx_bloom_base_open_directory(ngx_bloom_zone_t *zone,
    ngx_uint_t make);

/* Opens the control page in that directory.  Returns NGX_OK, or NGX_ERROR,
 * logged. */
ngx_int_t ngx_bloom_base_open_state(ngx_bloom_zone_t *zone);

/* Logs why a file of zone->state cannot be used. */
void ngx_bloom_base_log_state(ngx_bloom_zone_t *zone,
    ngx_bloom_failure_t *failure);

/*
 * A child answers with what it has opened, and gives way to others that start;
 * the master takes it over, or notes that there is none.
 */
void ngx_bloom_base_answer_state(ngx_bloom_zone_t *zone,
    ngx_bloom_answer_t *answer);
void ngx_bloom_base_take_state(ngx_bloom_zone_t *zone,
    ngx_bloom_answer_t *answer);

/*
 * Loads the newest checkpoint of the base, else the base, and the journal, into
 * the bank that does not serve.  Returns NGX_OK, or NGX_ERROR, logged;
 * ngx_bloom_load_end() follows either way.
 */
ngx_int_t ngx_bloom_base_load(ngx_bloom_zone_t *zone, ngx_bloom_load_t *load);

/* Reads the journal alone, where the base cannot be loaded.  Returns as the
 * function above. */
ngx_int_t ngx_bloom_base_load_journal(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);

/*
 * Determines where the journal goes on, after it was read to its end.  Returns
 * NGX_OK, or NGX_ERROR, logged.
 */
ngx_int_t ngx_bloom_base_recover(ngx_bloom_zone_t *zone,
    ngx_bloom_load_t *load);

/* Returns 1 if two filters are of the same kind, whatever their seeds. */
ngx_uint_t ngx_bloom_base_alike(bloom_image_t *one, bloom_image_t *other);

/* Notes which file is the zone's from now on: for helpers of every cycle. */
void ngx_bloom_base_note_name(ngx_bloom_zone_t *zone);

/* Notes, besides, that the file has been seen as it is now. */
void ngx_bloom_base_note_file(ngx_bloom_zone_t *zone);

/* Logs why the image of file= is refused, at NGX_LOG_EMERG, or at NGX_LOG_ALERT
 * if the zone may start without it.  Returns NGX_ERROR. */
ngx_int_t ngx_bloom_base_refuse(ngx_bloom_zone_t *zone);

/* Returns what the log calls the base. */
char *ngx_bloom_base_called(ngx_bloom_zone_t *zone, ngx_uint_t uploaded);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BASE_H_INCLUDED_ */
