/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A foreign filter is a filter that another system wrote, in one of several
 * formats.  This header defines what a format is, and declares what the formats
 * share.  Each file bloom_foreign_FORMAT.c describes one format, and reads and
 * writes its headers.  bloom_foreign_formats.h finds a format.
 *
 * A source consists of a header and the filter's bits:
 *
 *     | header |  link 0  |  link 1  | ...   (only RedisBloom has several)
 *     0        payload
 *
 * A parser gets the first bytes of the source and its size.  It finds where the
 * bits are, how they are stored, and the header of the image to be made.  It
 * trusts nothing: each number is checked against the size or a bound before it
 * is used.  These functions do no I/O and allocate nothing.
 */

#ifndef BLOOM_FOREIGN_H
#define BLOOM_FOREIGN_H

#include "bloom_image.h"

#pragma GCC visibility push(hidden)


#define BLOOM_FOREIGN_HEAD       4096    /* first bytes passed to a parser, at
                                            most */
#define BLOOM_FOREIGN_ERROR_LEN  256
#define BLOOM_FOREIGN_UNKNOWN    UINT64_MAX

/* How a source stores bits.  An image stores them as BLOOM_ORDER_LE. */
typedef enum {
    BLOOM_ORDER_LE = 0,                  /* words of 64 bits, little-endian */
    BLOOM_ORDER_BE,                      /* words of 64 bits, big-endian */
    BLOOM_ORDER_MSB                      /* bytes, highest bit first */
} bloom_order_e;


/* A source that is being imported. */
typedef struct {

    /* what the user states; 0: not stated */

    uint32_t       funnel;               /* BLOOM_FUNNEL_... */
    uint32_t       layout;               /* of a bitmap's scheme */
    uint32_t       hash;                 /* of a bitmap's scheme */
    uint64_t       bits;                 /* of a bitmap */
    uint32_t       k;                    /* of a bitmap */

    /* what the parser finds */

    bloom_image_t  image;                /* without times, build id and items */
    bloom_order_e  order;
    uint64_t       payload;              /* offset of the first bit */
    uint64_t       bytes;                /* size of all links, from there */
    uint64_t       link_bytes[BLOOM_LINKS_MAX];
    uint64_t       claimed;              /* items that the source has counted,
                                            or BLOOM_FOREIGN_UNKNOWN */
    int            promised;             /* capacity and fpr are the source's,
                                            not derived from bits and k */
    size_t         lost_len;             /* bytes of the source's header, if
                                            the image has no room for them; 0:
                                            it has */
    int            may_be_short;         /* missing bytes are zeros */
    int            may_be_long;          /* other data may follow the bits */

    char           error[BLOOM_FOREIGN_ERROR_LEN];
} bloom_foreign_t;


/* A source that is being written: its header, and what follows the header. */
typedef struct {
    uint8_t        head[BLOOM_FOREIGN_HEAD];
    size_t         head_len;
    bloom_order_e  order;
    uint64_t       link_bytes[BLOOM_LINKS_MAX];
    uint64_t       items;                /* estimated; set by the caller */
    const uint8_t *tail;                 /* data after the bits, in `origin` */
    size_t         tail_len;
    char           error[BLOOM_FOREIGN_ERROR_LEN];
} bloom_foreign_out_t;


/* A format. */
typedef struct {
    const char  *name;
    uint32_t     origin;                 /* BLOOM_ORIGIN_... */
    const char  *title;                  /* "a Guava file" */

    /*
     * Reads the header of a source.  `head` has its first `len` bytes, at most
     * BLOOM_FOREIGN_HEAD; `size` is its whole size, or BLOOM_FOREIGN_UNKNOWN.
     * Returns 0, or -1 with f->error, a phrase to follow the source's name.
     */
    int        (*parse)(bloom_foreign_t *f, const uint8_t *head, size_t len,
                     uint64_t size);

    /*
     * Makes the header of a source from an image.  `origin` has the
     * image->origin_len bytes that the image keeps of its source's header,
     * which are not trusted.  No link gets more bytes than the image has for
     * it.  Returns 0, or -1 with out->error.  NULL: the format cannot be
     * written.
     */
    int        (*write)(bloom_foreign_out_t *out, const bloom_image_t *image,
                     const uint8_t *origin);
} bloom_foreign_format_t;


/* Converts bits between an order and BLOOM_ORDER_LE, in either direction and in
 * place.  For BLOOM_ORDER_BE, `len` is a multiple of 8. */
void bloom_foreign_order(bloom_order_e order, void *bits, size_t len);

/* Returns the number of links; 1 if the layout is not links. */
uint32_t bloom_foreign_links(const bloom_geometry_t *g);

/* Returns the i-th link, and its offset in the image's payload in *offset.  A
 * filter of another layout counts as one link. */
bloom_link_t bloom_foreign_link(const bloom_geometry_t *g, uint32_t i,
    uint64_t *offset);

/* Returns 1 if no bit after the last one of any link is set, else 0. */
int bloom_foreign_padded(const bloom_geometry_t *g, const uint64_t *words);


/* ---- for the formats ---- */

#define bloom_foreign_fail(x, ...)                                           \
    (snprintf((x)->error, BLOOM_FOREIGN_ERROR_LEN, __VA_ARGS__), -1)

/*
 * Check and set the geometry and the hasher of f->image; `bits` and `k` are the
 * numbers in the source.  Return 0, or -1 with f->error.
 */
int bloom_foreign_geometry(bloom_foreign_t *f, uint32_t layout, uint64_t bits,
    uint64_t k);
int bloom_foreign_hasher(bloom_foreign_t *f, uint32_t kind, uint32_t seed);

/*
 * Sets the capacity and the rate of f->image to those that the source states.
 * If these are out of range or 0, sets them to what bits and k are best for:
 * bits ln 2 / k keys at a rate of 2^-k.
 */
void bloom_foreign_promise(bloom_foreign_t *f, uint64_t capacity, double fpr);

/* Makes the image keep `len` bytes of the source's header.  If there is no room
 * for them, it keeps none, and f->lost_len is their number. */
void bloom_foreign_keep(bloom_foreign_t *f, uint32_t origin, size_t len);

/* Checks payload and bytes against the source's size.  Returns 0, or -1 with
 * f->error. */
int bloom_foreign_size(bloom_foreign_t *f, uint64_t size);

/* Checks, for write(), that the image is of this scheme.  Returns 0, or -1 with
 * out->error. */
int bloom_foreign_scheme(bloom_foreign_out_t *out, const bloom_image_t *image,
    const char *format, uint32_t layout, uint32_t hash);

/*
 * Parses, for write(), the header that the image keeps of its source.  Returns
 * 1 with the result in *f; 0 if the image keeps no header of this format; -1
 * with out->error if the header belongs to another filter.
 *
 * A checksum does not prove who made an image.  So no number of the header may
 * be used before this function has compared it with the image.
 */
int bloom_foreign_origin(bloom_foreign_out_t *out,
    const bloom_foreign_format_t *format, const bloom_image_t *image,
    const uint8_t *origin, bloom_foreign_t *f);

/* Returns the number of keys for a header: `claimed`, which the source had
 * counted, plus the keys that were added since. */
uint64_t bloom_foreign_count(const bloom_foreign_out_t *out,
    const bloom_image_t *image, uint64_t claimed);

static inline uint32_t
bloom_get32be(const void *p)
{
    const uint8_t  *b = p;

    return (uint32_t) b[0] << 24 | (uint32_t) b[1] << 16
           | (uint32_t) b[2] << 8 | b[3];
}

static inline uint64_t
bloom_get64be(const void *p)
{
    return (uint64_t) bloom_get32be(p) << 32
           | bloom_get32be((const uint8_t *) p + 4);
}

static inline void
bloom_put32be(void *p, uint32_t v)
{
    uint8_t  *b = p;

    b[0] = (uint8_t) (v >> 24);
    b[1] = (uint8_t) (v >> 16);
    b[2] = (uint8_t) (v >> 8);
    b[3] = (uint8_t) v;
}

static inline void
bloom_put64be(void *p, uint64_t v)
{
    bloom_put32be(p, (uint32_t) (v >> 32));
    bloom_put32be((uint8_t *) p + 4, (uint32_t) v);
}

/* The formats, one for each file bloom_foreign_FORMAT.c. */

extern const bloom_foreign_format_t  bloom_foreign_guava;
extern const bloom_foreign_format_t  bloom_foreign_redisbloom;
extern const bloom_foreign_format_t  bloom_foreign_bitmap;
extern const bloom_foreign_format_t  bloom_foreign_dcso;
extern const bloom_foreign_format_t  bloom_foreign_bits_and_blooms;
extern const bloom_foreign_format_t  bloom_foreign_spark;
extern const bloom_foreign_format_t  bloom_foreign_libbloom;


#pragma GCC visibility pop

#endif /* BLOOM_FOREIGN_H */
