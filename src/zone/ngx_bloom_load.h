/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A load puts an image and the journal behind it into the bank that does not
 * serve.
 *
 *     begin     open the image, check its header, see that it fits and may be
 *               loaded; empty the bank
 *     step      a piece: chunks of the image, as long as there is memory for
 *               the rest, then records of the journal, up to where it ends by
 *               then
 *     switch    with appending locked: the records that came meanwhile; then,
 *               with the pending keys locked, these and the generation.
 *               So no key is acknowledged that the new generation lacks.
 *
 * A child of the master does it at a start, the helper while nginx runs; never
 * two for one zone, for which the lock sh->helper is held from begin to end.
 */

#ifndef _NGX_BLOOM_LOAD_H_INCLUDED_
#define _NGX_BLOOM_LOAD_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"
#include "ngx_bloom_journal.h"

#pragma GCC visibility push(hidden)


/* Phrases to follow the name of an image. */
#define NGX_BLOOM_LOAD_NO_AS_OF                                              \
    "does not state its time, and the zone has max_age; build it with --as-of"
#define NGX_BLOOM_LOAD_TOO_OLD                                               \
    "is too old: keys added since were removed from the journal for a newer " \
    "one; build it with --as-of, more than an hour after the last of them"


typedef struct ngx_bloom_load_s {
    ngx_bloom_zone_t       *zone;
    ngx_uint_t              bank;
    uint64_t                begun;       /* ms since 1970 */

    /* the image: what it says of itself, and where its bits come from */
    bloom_image_t           image;
    ngx_bloom_image_file_t  file;        /* name.len 0: an empty filter */
    const char             *about;       /* what it is called; NULL: its name */
    uint64_t                position;    /* a checkpoint's; 0: no checkpoint */
    uint64_t                cut;         /* records older than this, ms, are
                                            not wanted; UINT64_MAX: none are */
    uint64_t                complete;    /* of the zone, when it serves */

    uint64_t                takes;       /* bytes of memory, yet */
    ngx_uint_t              chunks;      /* all are loaded */
    ngx_uint_t              reading;     /* the journal is open */
    uint64_t                records;     /* replayed, and their keys */
    uint64_t                keys;
    ngx_bloom_reader_t      reader;

    /* what came of it, if it failed */
    ngx_bloom_outcome_e     outcome;
    ngx_err_t               err;
    u_char                  error[512];  /* null-terminated; a message that
                                            names the zone */
} ngx_bloom_load_t;


/*
 * Begins to load the image in `file`, which is taken over if it is open; or
 * `image`, which is empty, if file->name.len is 0.  With `position`, the file
 * is a checkpoint made there, and `image` is what it was made from, or NULL if
 * nothing is.  Messages call the image `about`, or by its name if that is
 * NULL.  NGX_OK, or NGX_ERROR with load->error; ngx_bloom_load_end() follows
 * either way.
 */
ngx_int_t ngx_bloom_load_begin(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone, ngx_bloom_image_file_t *file,
    bloom_image_t *image, uint64_t position, const char *about);

/*
 * Checks an image by its header alone, of a file of `size` bytes: NGX_OK, or
 * NGX_ERROR with load->outcome and load->error, those that loading the file
 * would end with.  Any process may call this.
 */
ngx_int_t ngx_bloom_load_check(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone, const u_char header[BLOOM_IMAGE_PAGE],
    uint64_t size, const char *about);

/*
 * Begins to read the journal, and nothing else: no filter comes of it, and it
 * is not switched to.
 */
void ngx_bloom_load_begin_journal(ngx_bloom_load_t *load,
    ngx_bloom_zone_t *zone);

/*
 * NGX_AGAIN: there is more to do; NGX_OK: all is loaded that there is by now;
 * NGX_ERROR with load->error.  A step takes a millisecond or so.
 */
ngx_int_t ngx_bloom_load_step(ngx_bloom_load_t *load);

/*
 * Lets it serve.  NGX_OK, or NGX_ERROR with load->error: the old generation
 * serves on.  `uploaded` says whose place the image takes.
 */
ngx_int_t ngx_bloom_load_switch(ngx_bloom_load_t *load, ngx_uint_t uploaded);

void ngx_bloom_load_end(ngx_bloom_load_t *load);


/* Whether records that the image lacks were removed from the journal. */
ngx_uint_t ngx_bloom_load_too_old(ngx_bloom_load_t *load);

/* Logs that a filter lacks keys that were lost, if that is so with `complete`,
 * and what the reader has seen of it. */
void ngx_bloom_load_log_lost(ngx_bloom_zone_t *zone,
    ngx_bloom_reader_t *reader, uint64_t complete);

/* Gives back to the system at most `max` bytes of a bank that does not serve,
 * from its end on; 1 while there are more. */
ngx_uint_t ngx_bloom_load_release(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    size_t max);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_LOAD_H_INCLUDED_ */
