/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions compute how many bits a filter needs for a capacity and a
 * false-positive rate, and the rate and the number of keys of a given filter.
 *
 * A geometry says where a key's bits may lie:
 *
 *   classic   A key has k bits anywhere among `bits` (Bloom, 1970).
 *
 *   blocked   The filter is divided into lines of 512 bits (64 bytes, a cache
 *             line).  A key has `lines` lines and k/lines bits in each.  A line
 *             is divided into k/lines equal sectors, and the key has one bit in
 *             each sector:
 *
 *               k/lines = 8        |64|64|64|64|64|64|64|64|
 *               k/lines = 4        | 128 | 128 | 128 | 128 |
 *
 *   fuse      A key has three slots of a few bits, whose XOR is its
 *             fingerprint.  All keys must be known when the filter is built:
 *             keys cannot be added, except to layers.  See bloom_fuse.h.
 *
 * A filter of these layouts may have grown: then it has layers, which are
 * blocked filters behind the base, the filter that the geometry begins with.
 * Its parts are the base and the layers, or the links of an imported scaling
 * filter.  See bloom_growth.h.
 *
 * A filter whose keys expire is a ring: its parts are slices, blocked filters
 * of equal dimensions, one behind the other.  See bloom_ring.h.
 *
 * Sectors make the rate of a blocked filter exactly computable.  If a line has
 * J keys, each bit of a sector of S bits is set with probability
 * 1 - (1 - 1/S)^J.  Sectors are independent given J, and J is binomial.  So the
 * uneven load of lines (Putze, Sanders, Singler: "Cache-, Hash- and
 * Space-Efficient Bloom Filters", 2007) is part of the formula, not
 * approximated.
 */

#ifndef BLOOM_GEOMETRY_H
#define BLOOM_GEOMETRY_H

#include <stdint.h>

#include "bloom_fuse_size.h"

#pragma GCC visibility push(hidden)


/* Values recorded in image files: never renumbered.  3 is reserved for
 * counting. */
#define BLOOM_LAYOUT_BLOCKED  1
#define BLOOM_LAYOUT_CLASSIC  2

/* Layouts of imported filters, described in bloom_layout_foreign.h. */
#define BLOOM_LAYOUT_DOUBLE    4
#define BLOOM_LAYOUT_DOUBLE63  5
#define BLOOM_LAYOUT_DOUBLE31  6
#define BLOOM_LAYOUT_SPARK2    7
#define BLOOM_LAYOUT_ZIGZAG    8
#define BLOOM_LAYOUT_LEHMER    9
#define BLOOM_LAYOUT_FOUR      10
#define BLOOM_LAYOUT_EACH      11
#define BLOOM_LAYOUT_LINKS     12

#define BLOOM_LAYOUT_FUSE      13

#define BLOOM_LINKS_MAX        56
#define BLOOM_LAYERS_MAX       16
#define BLOOM_PARTS_MAX        56        /* links, or slices; layers are fewer
                                         */

#define BLOOM_LINE_BITS       512
#define BLOOM_LINE_WORDS      8
#define BLOOM_LINES_MAX       3          /* lines of a key */
#define BLOOM_K_MAX           255        /* in any layout */
#define BLOOM_OWN_K_MAX       64         /* in blocked and classic */

#define BLOOM_BITS_MAX        ((uint64_t) 1 << 43)      /* 1 TiB */
#define BLOOM_CAPACITY_MAX    ((uint64_t) 1 << 42)
#define BLOOM_FPR_MIN         1e-9
#define BLOOM_FPR_MAX         0.5


/*
 * A link is one of the filters that an imported scaling filter consists of.
 * Links are stored one after the other, oldest first, and each begins at a
 * multiple of 512 bits:
 *
 *     |-- link 0 --|....|-- link 1 --------|..|-- link 2 -----------
 *     0                 512 * n            512 * m
 */
typedef struct {
    uint64_t  bits;                      /* at least 1 */
    uint32_t  k;
    uint32_t  zero;
} bloom_link_t;


/* A layer is a blocked filter.  Layers follow the base, in order, without space
 * between them. */
typedef struct {
    uint64_t  bits;                      /* a multiple of 512 */
    uint32_t  k;
    uint32_t  lines;
} bloom_layer_t;


/* The layout of a filter and its dimensions. */
typedef struct {
    uint32_t       layout;               /* BLOOM_LAYOUT_..., of the base */
    uint32_t       k;                    /* bits of a key, over all its lines;
                                            links: in the last link; fuse: 3,
                                            the slots of a key */
    uint32_t       lines;                /* lines of a key; 0 unless blocked */
    uint16_t       layers;               /* behind the base; imported: 0 */
    uint16_t       slices;               /* 0 if the filter is no ring.  Next to
                                            `lines` and `layers`: lookups
                                            compare the three at once */
    uint64_t       bits;                 /* at least 1, and a multiple of 512
                                            unless imported; links: the sum of
                                            all links, each rounded up to a
                                            multiple of 512; slices: the bits of
                                            one slice, as k and lines */
    uint64_t       live;                 /* bit i is 1 if lookups test slice i;
                                            used only with slices */
    uint32_t       open;                 /* the slice to which keys are added;
                                            used only with slices */
    uint32_t       links;                /* 2 to BLOOM_LINKS_MAX; used only by
                                            the layout links */
    bloom_fuse_t   fuse;                 /* used only by the layout fuse; see
                                            bloom_fuse.h */
    bloom_link_t   link[BLOOM_LINKS_MAX];
    bloom_layer_t  layer[BLOOM_LAYERS_MAX];
} bloom_geometry_t;


/*
 * Finds the smallest geometry whose expected rate with `capacity` items is at
 * most `fpr`, and among equally small ones the one with the lowest rate.
 *
 * In the layout classic, k is at most log2(1/fpr) + 1.  In the layout blocked,
 * the rate decides the number of lines: one down to 1e-3, two down to 1e-6,
 * three below.
 *
 * In the layout fuse, `capacity` is the number of keys in the base, and g->fuse
 * gets room for an eighth as many additions, and at least for 1000.  The rate
 * decides the width of the slots.
 *
 * Returns 0, or -1 if capacity is not in 1..BLOOM_CAPACITY_MAX, if fpr is not
 * in BLOOM_FPR_MIN..BLOOM_FPR_MAX, or if the filter would need more than
 * BLOOM_BITS_MAX bits.
 */
int bloom_geometry_size(bloom_geometry_t *g, uint32_t layout, uint64_t capacity,
    double fpr);

/* Does the same for a fuse base, which may also have no keys. */
int bloom_geometry_size_fuse(bloom_geometry_t *g, uint64_t keys, double fpr);

/*
 * Finds the greatest capacity that fits in `bytes` at the rate `fpr`, as
 * bloom_geometry_size() sizes filters, and its geometry.  Returns the capacity;
 * 0 if not even one item fits or fpr is out of range.
 */
uint64_t bloom_geometry_size_capacity(bloom_geometry_t *g, uint32_t layout,
    uint64_t bytes, double fpr);

/*
 * Finds the lowest rate at which `capacity` items fit in `bytes`, as
 * bloom_geometry_size() sizes filters, and its geometry.  Returns the rate; 0
 * if they do not fit even at BLOOM_FPR_MAX.
 */
double bloom_geometry_size_fpr(bloom_geometry_t *g, uint32_t layout,
    uint64_t bytes, uint64_t capacity);

/* Returns 1 if this is a layout of imported filters. */
static inline int
bloom_geometry_is_foreign(uint32_t layout)
{
    return layout > BLOOM_LAYOUT_CLASSIC && layout != BLOOM_LAYOUT_FUSE;
}

/* Returns a number of bits rounded up to whole lines. */
static inline uint64_t
bloom_geometry_whole_lines(uint64_t bits)
{
    return (bits + BLOOM_LINE_BITS - 1) / BLOOM_LINE_BITS * BLOOM_LINE_BITS;
}

/* Returns the bytes that the bits of all parts occupy, a multiple of 64.  Bits
 * after the last one are zero. */
uint64_t bloom_geometry_bytes(const bloom_geometry_t *g);

/* Returns the number of parts; 1 if there are no layers, links or slices. */
uint32_t bloom_geometry_parts(const bloom_geometry_t *g);

/* Returns a part, 0 <= part < bloom_geometry_parts(), as a filter of its own.
 */
bloom_geometry_t bloom_geometry_part(const bloom_geometry_t *g, uint32_t part);

/* Returns 1 if every field is in range and the fields fit together, else 0.
 * `open` and `live` are in range if they name no slice beyond the last one. */
int bloom_geometry_valid(const bloom_geometry_t *g);

/* Returns 1 if two filters of these geometries can be merged, else 0.  `open`
 * and `live` are not compared: they are state, not dimensions. */
int bloom_geometry_equal(const bloom_geometry_t *a, const bloom_geometry_t *b);

/* Returns the expected false-positive rate after `items` distinct keys were
 * added; in the layout fuse, it is the same for any number above 0.  With
 * layers: that of the base; see bloom_growth_fpr().  With slices: that of one
 * slice; see bloom_ring_fpr(). */
double bloom_geometry_fpr(const bloom_geometry_t *g, uint64_t items);

/* Returns the rate of a classic filter, an imported filter other than links, or
 * a single link, with the fill ratio `fill`. */
double bloom_geometry_classic_fpr(const bloom_geometry_t *g, double fill);

/*
 * Estimates the number of distinct keys from the number of bits set, as
 * -(bits/k) ln(1 - bits_set/bits) (Swamidass and Baldi, 2007).
 *
 * The formula holds for classic and for blocked filters: the load of a line is
 * close to Poisson, so the expected share of zero bits is e^(-k items/bits) in
 * both.  A filter without zero bits is counted as if it had one.  For links the
 * result is rough because their fill ratios differ; bloom_census_items()
 * estimates each link separately.  In the layout fuse, the result is the number
 * of keys that the geometry states, whatever the bits are.  With layers: the
 * number of keys in the base; see bloom_growth_items().  With slices: the
 * number of keys in one slice; see bloom_ring_items().
 */
uint64_t bloom_geometry_items(const bloom_geometry_t *g, uint64_t bits_set);

/*
 * Returns the standard error of that estimate after `items` keys were added:
 * sqrt(bits (e^a - 1 - a)) / k with a = k items / bits.
 */
double bloom_geometry_items_error(const bloom_geometry_t *g, uint64_t items);

/* Returns the name of a layout, such as "blocked"; NULL if it is unknown. */
const char *bloom_geometry_layout_name(uint32_t layout);

/* Returns the layout of the name "blocked", "classic" or "fuse", the layouts in
 * which new filters are made; 0 for any other name. */
uint32_t bloom_geometry_layout_parse(const char *name, uint64_t len);


#pragma GCC visibility pop

#endif /* BLOOM_GEOMETRY_H */
