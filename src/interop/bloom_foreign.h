/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A foreign filter is one that another system wrote, in one of several formats.
 * This header says what a format is, and has what formats share; each is in a
 * file bloom_foreign_FORMAT.c that says how its files are read and written
 * again.  bloom_foreign_formats.h finds a format.
 *
 * A source is a header, which a format describes, and the filter's bits:
 *
 *     | header |  link 0  |  link 1  | ...   (one link, but for RedisBloom)
 *     0        payload
 *
 * A parser gets the first bytes of it and its size, and says where the bits
 * are, in which order, and what image they make.  It believes nothing: every
 * number is held against the size, or a bound, before it is used.  Nothing
 * here reads or allocates.
 */

#ifndef BLOOM_FOREIGN_H
#define BLOOM_FOREIGN_H

#include "bloom_image.h"

#pragma GCC visibility push(hidden)


#define BLOOM_FOREIGN_HEAD       4096    /* as many of the first bytes as a
                                            parser may want */
#define BLOOM_FOREIGN_ERROR_LEN  256
#define BLOOM_FOREIGN_UNKNOWN    UINT64_MAX

/* How bits are stored; an image has them as LE. */
typedef enum {
    BLOOM_ORDER_LE = 0,                  /* words of 64 bits, little-endian */
    BLOOM_ORDER_BE,                      /* words of 64 bits, big-endian */
    BLOOM_ORDER_MSB                      /* bytes, from their highest bit */
} bloom_order_e;


typedef struct {

    /* what the user says; 0 where nothing is said */

    uint32_t       funnel;               /* BLOOM_FUNNEL_... */
    uint32_t       layout;               /* a bitmap's scheme */
    uint32_t       hash;
    uint64_t       bits;                 /* a bitmap's */
    uint32_t       k;

    /* what the parser finds */

    bloom_image_t  image;                /* without times, build id and items */
    bloom_order_e  order;
    uint64_t       payload;              /* offset of the first bit */
    uint64_t       bytes;                /* of all links, from there */
    uint64_t       link_bytes[BLOOM_LINKS_MAX];
    uint64_t       claimed;              /* items that the source counted, or
                                            BLOOM_FOREIGN_UNKNOWN */
    int            promised;             /* capacity and fpr are the source's
                                            and not derived from bits and k */
    int            may_be_short;         /* missing bytes are zeros */
    int            may_be_long;          /* data of others may follow */

    char           error[BLOOM_FOREIGN_ERROR_LEN];
} bloom_foreign_t;


/* How a filter begins that is written, and what follows. */
typedef struct {
    uint8_t        head[BLOOM_FOREIGN_HEAD];
    size_t         head_len;
    bloom_order_e  order;
    uint64_t       link_bytes[BLOOM_LINKS_MAX];
    uint64_t       items;                /* estimated; the caller's */
    const uint8_t *tail;                 /* behind the bits, in `origin` */
    size_t         tail_len;
    char           error[BLOOM_FOREIGN_ERROR_LEN];
} bloom_foreign_out_t;


typedef struct {
    const char  *name;
    uint32_t     origin;                 /* BLOOM_ORIGIN_... */
    const char  *title;                  /* "a Guava file" */

    /*
     * Reads the header.  `head` has the source's first `len` bytes, up to
     * BLOOM_FOREIGN_HEAD; `size` is that of all, or BLOOM_FOREIGN_UNKNOWN.
     * 0, or -1 with f->error, a phrase to follow the source's name.
     */
    int        (*parse)(bloom_foreign_t *f, const uint8_t *head, size_t len,
                     uint64_t size);

    /*
     * Makes the header of an image; `origin` are the bytes that it keeps of
     * its source's, image->origin_len of them, whatever they are.  A link has
     * no more bytes then than the image has for it.  0, or -1 with out->error.
     * NULL: is not written.
     */
    int        (*write)(bloom_foreign_out_t *out, const bloom_image_t *image,
                     const uint8_t *origin);
} bloom_foreign_format_t;


/* Turns bits from an order to LE or back, in place; `len` is a multiple of 8
 * where words are turned. */
void bloom_foreign_order(bloom_order_e order, void *bits, size_t len);

/* The number of links, 1 where there are none; the i-th one, and the byte of
 * an image's payload with which it begins. */
uint32_t bloom_foreign_links(const bloom_geometry_t *g);
bloom_link_t bloom_foreign_link(const bloom_geometry_t *g, uint32_t i,
    uint64_t *offset);

/* 1 if no bit behind the last one of any link is set. */
int bloom_foreign_padded(const bloom_geometry_t *g, const uint64_t *words);


/* ---- for the formats ---- */

#define bloom_foreign_fail(x, ...)                                           \
    (snprintf((x)->error, BLOOM_FOREIGN_ERROR_LEN, __VA_ARGS__), -1)

/*
 * What most have: sets geometry and hasher of f->image, and checks them; `k`
 * and `bits` are as the source has them.
 */
int bloom_foreign_geometry(bloom_foreign_t *f, uint32_t layout, uint64_t bits,
    uint64_t k);
int bloom_foreign_hasher(bloom_foreign_t *f, uint32_t kind, uint32_t seed);

/*
 * Capacity and rate that the source states, or, where they are not of worth,
 * what bits and k are best for: bits ln 2 / k keys at 2^-k.
 */
void bloom_foreign_promise(bloom_foreign_t *f, uint64_t capacity, double fpr);

/* Keeps `len` bytes of the source's header, if there is room for them. */
void bloom_foreign_keep(bloom_foreign_t *f, uint32_t origin, size_t len);

/* Holds payload and bytes against the source's size. */
int bloom_foreign_size(bloom_foreign_t *f, uint64_t size);

/* -1 if the image is not of this scheme: for write. */
int bloom_foreign_scheme(bloom_foreign_out_t *out, const bloom_image_t *image,
    const char *format, uint32_t layout, uint32_t hash);

/*
 * The header that the image's source had, for write: 1 with what `format` finds
 * in it, 0 if there is none of this format, or -1 with out->error if it is that
 * of another filter.  Checksums do not say who made an image: not a number of
 * it is to be used before it is known to be the image's own.
 */
int bloom_foreign_origin(bloom_foreign_out_t *out,
    const bloom_foreign_format_t *format, const bloom_image_t *image,
    const uint8_t *origin, bloom_foreign_t *f);

/* What the source had counted, and the keys that were added since. */
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

/* One for each file bloom_foreign_FORMAT.c. */

extern const bloom_foreign_format_t  bloom_foreign_guava;
extern const bloom_foreign_format_t  bloom_foreign_redisbloom;
extern const bloom_foreign_format_t  bloom_foreign_bitmap;
extern const bloom_foreign_format_t  bloom_foreign_dcso;
extern const bloom_foreign_format_t  bloom_foreign_bits_and_blooms;
extern const bloom_foreign_format_t  bloom_foreign_spark;
extern const bloom_foreign_format_t  bloom_foreign_libbloom;


#pragma GCC visibility pop

#endif /* BLOOM_FOREIGN_H */
