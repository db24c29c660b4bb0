/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An image file contains a filter and all that is needed to use it.
 *
 *     0       header, one page (4096 bytes)
 *     4096    table: CRC-32C of every chunk, padded with zeros to a page
 *     ...     payload: the filter's bits, those of the base and of each layer
 *     ...     if there are exceptions: their table, one page
 *     ...     the exceptions, padded with zeros to 64 bytes
 *
 * Every number is little-endian.  A chunk is 1 MiB of the payload or of the
 * exceptions; the last one may be shorter.  The header has a checksum of itself
 * and one of each table, and a table has one of each chunk, so every byte of
 * the file is covered.
 *
 * docs/image-format.md describes each field; the files in t/golden/ make sure
 * that none changes.
 *
 * These functions do no I/O and allocate nothing.  bloom_image_reader.h reads
 * whole files.
 */

#ifndef BLOOM_IMAGE_H
#define BLOOM_IMAGE_H

#include "bloom_form.h"
#include "bloom_layout.h"
#include "bloom_source.h"

#pragma GCC visibility push(hidden)


#define BLOOM_IMAGE_VERSION       3
#define BLOOM_IMAGE_PAGE          4096
#define BLOOM_IMAGE_CHUNK         (1024 * 1024)
#define BLOOM_IMAGE_BUILD_ID_LEN  16
#define BLOOM_IMAGE_JOURNAL_LEN   16
#define BLOOM_IMAGE_ERROR_LEN     256

/* bloom_image_t.flags; a reader refuses flags that it does not know. */
#define BLOOM_IMAGE_ESTIMATED     0x1    /* `items` is an estimate */
#define BLOOM_IMAGE_IMPORTED      0x2    /* it has an origin, see below */
#define BLOOM_IMAGE_RING          0x4    /* a checkpoint of a zone whose keys
                                            expire, which nginx alone reads */
#define BLOOM_IMAGE_FLAGS                                                    \
    (BLOOM_IMAGE_ESTIMATED | BLOOM_IMAGE_IMPORTED | BLOOM_IMAGE_RING)

/* bloom_image_t.origin: the format that the filter was imported from, or 0 if
 * it was not imported.  Never renumbered. */
#define BLOOM_ORIGIN_GUAVA            1
#define BLOOM_ORIGIN_REDISBLOOM       2
#define BLOOM_ORIGIN_BITMAP           3
#define BLOOM_ORIGIN_DCSO             4
#define BLOOM_ORIGIN_BITS_AND_BLOOMS  5
#define BLOOM_ORIGIN_SPARK            6
#define BLOOM_ORIGIN_LIBBLOOM         7

/* The most bytes of the source file's header that an imported image can keep if
 * it has no links; see bloom_image_origin_room(). */
#define BLOOM_IMAGE_ORIGIN_MAX    3328

/* The most bytes that the data of the exceptions can have. */
#define BLOOM_IMAGE_EXCEPTIONS_MAX  ((uint64_t) 1 << 28)


/* Where a zone was copied: the point of its journal up to which the image has
 * its changes, as bloom_point_t has it. */
typedef struct {
    uint8_t   journal[BLOOM_IMAGE_JOURNAL_LEN];  /* zeros: it is no copy, and
                                            all of this is 0 */
    uint64_t  position;
    uint64_t  sequence;
    uint64_t  time;
    uint64_t  removed;                   /* removed keys so far */
    uint64_t  removed_bytes;
} bloom_image_copy_t;

/* What the header of an image says. */
typedef struct {
    bloom_geometry_t  geometry;
    bloom_hasher_t    hasher;
    uint32_t          key_form;          /* BLOOM_FORM_... */
    uint32_t          flags;
    uint64_t          capacity;          /* items its base is sized for,
                                            >= 1 */
    uint64_t          items;             /* distinct keys in it */
    double            fpr;               /* promised at capacity, 0 < fpr < 1 */
    uint64_t          created;           /* ms since 1970-01-01 UTC */
    uint64_t          as_of;             /* the time up to which its keys are
                                            complete, in ms; 0: not stated */
    uint8_t           build_id[BLOOM_IMAGE_BUILD_ID_LEN];
    uint32_t          table_crc;
    uint32_t          origin;            /* BLOOM_ORIGIN_... */
    uint32_t          origin_len;        /* bytes of its source's header, see
                                            bloom_image_origin_at() */
    uint64_t          origin_items;      /* `items` when it was imported */

    /* exceptions: keys that are absent although their bits are set */
    uint64_t          exceptions;        /* their number; 0: the image has
                                            none, and all that follows is 0 */
    uint64_t          exceptions_size;   /* bytes of their data */
    uint64_t          built;             /* how many of them the builder of the
                                            image chose */
    uint64_t          built_size;        /* bytes of the data of these */
    uint32_t          exceptions_crc;    /* of their table */

    bloom_source_t    source;            /* its changes up to the position are
                                            in the filter; len 0: no source,
                                            and all of it is 0 */
    bloom_image_copy_t  copy;            /* the zone that it is a copy of */
} bloom_image_t;


/* A phrase to follow the name of an image with BLOOM_IMAGE_RING. */
#define BLOOM_IMAGE_IS_RING                                                  \
    "is a checkpoint of a zone whose keys expire, and only that zone can "    \
    "load it; use another image"

/* The slices of a ring, see bloom_ring.h; bit i of a bitmap belongs to slice i.
 * Times are ms since 1970 of the zone's clock. */
typedef struct {
    uint32_t  open;                      /* the open slice, which is live */
    uint64_t  live;                      /* the others have no keys */
    uint64_t  full;                      /* live ones that were closed because
                                            they were full */
    uint64_t  opened[BLOOM_PARTS_MAX];   /* when the first key was added; 0:
                                            none was */
    uint64_t  closed[BLOOM_PARTS_MAX];   /* no key is later; 0 if it is not
                                            closed, or not live */
} bloom_image_ring_t;

/* A part of the file whose chunks have their checksums in a table. */
typedef struct {
    uint64_t  table;                     /* offset of the table */
    uint64_t  data;                      /* offset of the data; here the table
                                            ends */
    uint64_t  size;                      /* bytes of data */
    uint64_t  chunks;
    uint32_t  table_crc;
} bloom_image_part_t;


/*
 * Sets image->source; `source` may be NULL for no source.
 */
void bloom_image_set_source(bloom_image_t *image,
    const bloom_source_t *source);

/* Returns how many keys the filter is sized for, with its layers. */
uint64_t bloom_image_capacity(const bloom_image_t *image);

/* Returns 1 if the image is a copy of a zone, else 0. */
int bloom_image_is_copy(const bloom_image_t *image);

/* Returns the expected false-positive rate with `items` distinct keys. */
double bloom_image_fpr(const bloom_image_t *image, uint64_t items);

/* Returns the standard error that image->items has if it was estimated from the
 * bits. */
double bloom_image_items_error(const bloom_image_t *image);

/* Returns the rate that is promised up to that capacity: `fpr`, or, if its
 * layers were added to an image with that rate, their rate and it. */
double bloom_image_promised(const bloom_image_t *image);

/* Return the sizes of the file's parts in bytes, and the number of its chunks.
 * All of them follow from the geometry; the size of the file follows from the
 * exceptions, too. */
uint64_t bloom_image_payload_size(const bloom_image_t *image);
uint64_t bloom_image_table_size(const bloom_image_t *image);
uint64_t bloom_image_file_size(const bloom_image_t *image);
uint64_t bloom_image_chunks(const bloom_image_t *image);

/* Returns the bytes of a chunk, 0 <= chunk < bloom_image_chunks(). */
size_t bloom_image_chunk_size(const bloom_image_t *image, uint64_t chunk);

/* Return the same of the exceptions, which are all 0 if the image has none.
 * The chunks are those of the padded data. */
uint64_t bloom_image_exceptions_table_size(const bloom_image_t *image);
uint64_t bloom_image_exceptions_padded(const bloom_image_t *image);
uint64_t bloom_image_exceptions_chunks(const bloom_image_t *image);
size_t bloom_image_exceptions_chunk_size(const bloom_image_t *image,
    uint64_t chunk);

/* Return where both parts are in the file. */
bloom_image_part_t bloom_image_payload_part(const bloom_image_t *image);
bloom_image_part_t bloom_image_exceptions_part(const bloom_image_t *image);


/* ---- writing ---- */

/* Writes the header of a sealed image; see bloom_image_seal.h. */
void bloom_image_encode(const bloom_image_t *image,
    uint8_t header[BLOOM_IMAGE_PAGE]);

/*
 * Return at which byte of the header an imported image keeps the header of its
 * source file, and how many bytes there are at most: BLOOM_IMAGE_ORIGIN_MAX,
 * less 16 for each link.  These image->origin_len bytes make it possible to
 * export the filter again.  bloom_image_encode() leaves zeros there.
 */
uint32_t bloom_image_origin_at(const bloom_image_t *image);
uint32_t bloom_image_origin_room(const bloom_image_t *image);

/* Writes the slices of a ring into the header of an image with the flag
 * BLOOM_IMAGE_RING, and updates the header's checksum. */
void bloom_image_put_ring(const bloom_image_t *image,
    const bloom_image_ring_t *ring, uint8_t header[BLOOM_IMAGE_PAGE]);

/* Returns the checksum at the end of a header that was encoded.  It depends on
 * every byte of the file. */
uint32_t bloom_image_checksum(const uint8_t header[BLOOM_IMAGE_PAGE]);

/* Updates the header's checksum after those bytes have been copied into it. */
void bloom_image_encode_again(uint8_t header[BLOOM_IMAGE_PAGE]);


/*
 * Returns NULL if the two images can be merged, else the name of what differs:
 * "layout", "bits", "k", "links", "layers", "hash", "funnel", "seed" or "key
 * form".
 */
const char *bloom_image_differs(const bloom_image_t *a,
    const bloom_image_t *b);

/* Returns the name of an origin, such as "guava"; NULL if it is unknown. */
const char *bloom_image_origin_name(uint32_t origin);


#pragma GCC visibility pop

#endif /* BLOOM_IMAGE_H */
