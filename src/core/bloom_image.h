/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An image file is a filter with all that is needed to use it.
 *
 *     0       header, one page (4096 bytes)
 *     4096    table: CRC-32C of every chunk, padded with zeros to a page
 *     ...     payload: the filter's bits, to the end of the file
 *
 * Every number is little-endian.  The header holds its own checksum and the
 * table's, the table holds the chunks' (1 MiB of payload, the last may be
 * shorter), so each byte of the file is covered.  docs/image-format.md has
 * each field; t/golden/ freezes them.
 *
 * Nothing here opens, reads, writes or allocates by itself: a reader is given
 * a function that reads at an offset.
 */

#ifndef BLOOM_IMAGE_H
#define BLOOM_IMAGE_H

#include "bloom_form.h"
#include "bloom_layout.h"

#pragma GCC visibility push(hidden)


#define BLOOM_IMAGE_VERSION       1
#define BLOOM_IMAGE_PAGE          4096
#define BLOOM_IMAGE_CHUNK         (1024 * 1024)
#define BLOOM_IMAGE_BUILD_ID_LEN  16
#define BLOOM_IMAGE_ERROR_LEN     256

/* bloom_image_t.flags; a reader refuses flags it does not know. */
#define BLOOM_IMAGE_ESTIMATED     0x1    /* `items` is an estimate */
#define BLOOM_IMAGE_IMPORTED      0x2    /* it has an origin, below */
#define BLOOM_IMAGE_FLAGS         (BLOOM_IMAGE_ESTIMATED | BLOOM_IMAGE_IMPORTED)

/* bloom_image_t.origin: the format it was imported from; never renumbered.
 * 0: made by us. */
#define BLOOM_ORIGIN_GUAVA            1
#define BLOOM_ORIGIN_REDISBLOOM       2
#define BLOOM_ORIGIN_BITMAP           3
#define BLOOM_ORIGIN_DCSO             4
#define BLOOM_ORIGIN_BITS_AND_BLOOMS  5
#define BLOOM_ORIGIN_SPARK            6
#define BLOOM_ORIGIN_LIBBLOOM         7

/* Room in the header for the origin's own header, with no link. */
#define BLOOM_IMAGE_ORIGIN_MAX    3916


typedef struct {
    bloom_geometry_t  geometry;
    bloom_hasher_t    hasher;
    uint32_t          key_form;          /* BLOOM_FORM_... */
    uint32_t          flags;
    uint64_t          capacity;          /* items it was sized for, >= 1 */
    uint64_t          items;             /* distinct keys in it */
    double            fpr;               /* promised at capacity, 0 < fpr < 1 */
    uint64_t          created;           /* ms since 1970-01-01 UTC */
    uint64_t          as_of;             /* complete up to then, in ms too;
                                            0: not stated */
    uint8_t           build_id[BLOOM_IMAGE_BUILD_ID_LEN];
    uint32_t          table_crc;
    uint32_t          origin;            /* BLOOM_ORIGIN_... */
    uint32_t          origin_len;        /* bytes, see bloom_image_origin() */
    uint64_t          origin_items;      /* `items` when it was imported */
} bloom_image_t;


/* The file's parts, in bytes, all derived from the geometry. */
uint64_t bloom_image_payload_size(const bloom_image_t *image);
uint64_t bloom_image_table_size(const bloom_image_t *image);
uint64_t bloom_image_file_size(const bloom_image_t *image);
uint64_t bloom_image_chunks(const bloom_image_t *image);

/* Bytes of a chunk, 0 <= chunk < bloom_image_chunks(). */
size_t bloom_image_chunk_size(const bloom_image_t *image, uint64_t chunk);


/* ---- writing ---- */

/*
 * Fills `table`, bloom_image_table_size() bytes, with the checksums of the
 * payload and sets image->table_crc.  Call it when the bits are final and
 * before bloom_image_encode().
 */
void bloom_image_seal(bloom_image_t *image, const void *payload, void *table);

/*
 * The same piece by piece: each chunk, bloom_image_chunk_size() bytes, in any
 * order, and then the table.
 */
void bloom_image_seal_chunk(const bloom_image_t *image, uint64_t chunk,
    const void *data, void *table);
void bloom_image_seal_table(bloom_image_t *image, void *table);

void bloom_image_encode(const bloom_image_t *image,
    uint8_t header[BLOOM_IMAGE_PAGE]);

/*
 * An imported image keeps what its source had in front of the bits, so that it
 * can be written back: image->origin_len bytes of the header, at most
 * bloom_image_origin_room().  Where they are; after bloom_image_encode() they
 * are zeros.
 */
uint8_t *bloom_image_origin(const bloom_image_t *image,
    uint8_t header[BLOOM_IMAGE_PAGE]);
uint32_t bloom_image_origin_room(const bloom_image_t *image);

/* Renews the checksum of a header into which they have been put. */
void bloom_image_encode_again(uint8_t header[BLOOM_IMAGE_PAGE]);


/* ---- reading ---- */

/* 1 if these bytes, a file's first, begin an image, of whatever version. */
int bloom_image_is(const void *data, size_t len);

/* Returns the size of the file that its header states, which is not checked. */
uint64_t bloom_image_claims(const uint8_t header[BLOOM_IMAGE_PAGE]);

/*
 * Reads exactly `len` bytes at `offset` into `buf`; 0, or -1 if they cannot be
 * had.  It is asked only for what lies within the file's size.
 */
typedef int (*bloom_image_read_pt)(void *ctx, void *buf, size_t len,
    uint64_t offset);

typedef struct {
    bloom_image_t        image;
    uint64_t             next;           /* chunk */
    uint32_t             table_crc;      /* of what was read of it again */
    bloom_image_read_pt  read;
    void                *ctx;
    char                 error[BLOOM_IMAGE_ERROR_LEN];
    uint8_t              page[BLOOM_IMAGE_PAGE];       /* of the table */
} bloom_image_reader_t;


/*
 * Reads and checks header and table of a file of `file_size` bytes.  0, with
 * reader->image filled, or -1 with reader->error, a phrase to follow the
 * file's name ("is truncated: ...").  Lengths are held against the file's size
 * before anything is believed; the image has every value in range after it.
 */
int bloom_image_open(bloom_image_reader_t *reader, bloom_image_read_pt read,
    void *ctx, uint64_t file_size);

/*
 * Reads chunk reader->next into `dst`, which has room for
 * bloom_image_chunk_size() of it, checks it and moves on.  1 if there was one,
 * 0 at the end, -1 with reader->error: then `dst` holds nothing of worth.  If
 * another image is written over the file meanwhile, reading to the end fails.
 */
int bloom_image_next(bloom_image_reader_t *reader, void *dst);

/*
 * Decodes and checks a header alone, of a file of `file_size` bytes; `error`
 * has BLOOM_IMAGE_ERROR_LEN bytes.  0 or -1 as above.
 */
int bloom_image_decode(bloom_image_t *image,
    const uint8_t header[BLOOM_IMAGE_PAGE], uint64_t file_size, char *error);


/*
 * NULL if the two can be merged, otherwise what differs: "layout", "bits",
 * "hash", "seed", "funnel", "k", "links" or "key form".
 */
const char *bloom_image_differs(const bloom_image_t *a,
    const bloom_image_t *b);

/* Returns the name of an origin, such as "guava"; NULL if it is unknown. */
const char *bloom_image_origin_name(uint32_t origin);


#pragma GCC visibility pop

#endif /* BLOOM_IMAGE_H */
