/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has all of the project's arithmetic: how many bits a filter needs
 * for how many items at which false-positive rate, and back.
 *
 * A geometry says where a key's bits may fall:
 *
 *   classic   k bits anywhere among `bits` (Bloom, 1970);
 *
 *   blocked   the bits are lines of 512 (64 bytes, a cache line).  A key has
 *             `lines` lines, and k/lines bits in each.  A line is cut into
 *             k/lines equal sectors with one bit of the key in each:
 *
 *               k/lines = 8        |64|64|64|64|64|64|64|64|
 *               k/lines = 4        | 128 | 128 | 128 | 128 |
 *
 * Cutting lines into sectors makes the rate exactly computable.  With J keys
 * in a line, a sector of S bits has each of its bits set with probability
 * 1 - (1 - 1/S)^J, sectors are independent given J, and J is binomial: the
 * uneven load of lines (Putze, Sanders, Singler: "Cache-, Hash- and
 * Space-Efficient Bloom Filters", 2007) is counted in and not approximated.
 */

#ifndef BLOOM_GEOMETRY_H
#define BLOOM_GEOMETRY_H

#include <stdint.h>

#pragma GCC visibility push(hidden)


/* Values recorded in image files: never renumbered.  3 is for counting. */
#define BLOOM_LAYOUT_BLOCKED  1
#define BLOOM_LAYOUT_CLASSIC  2

/* Of imported filters; bloom_layout_foreign.h says where a key's bits are. */
#define BLOOM_LAYOUT_DOUBLE    4
#define BLOOM_LAYOUT_DOUBLE63  5
#define BLOOM_LAYOUT_DOUBLE31  6
#define BLOOM_LAYOUT_SPARK2    7
#define BLOOM_LAYOUT_ZIGZAG    8
#define BLOOM_LAYOUT_LEHMER    9
#define BLOOM_LAYOUT_FOUR      10
#define BLOOM_LAYOUT_EACH      11
#define BLOOM_LAYOUT_LINKS     12

#define BLOOM_LINKS_MAX        56

#define BLOOM_LINE_BITS       512
#define BLOOM_LINE_WORDS      8
#define BLOOM_LINES_MAX       3          /* lines of a key */
#define BLOOM_K_MAX           255        /* of any layout */
#define BLOOM_OWN_K_MAX       64         /* of blocked and classic */

#define BLOOM_BITS_MAX        ((uint64_t) 1 << 43)      /* 1 TiB */
#define BLOOM_CAPACITY_MAX    ((uint64_t) 1 << 42)
#define BLOOM_FPR_MIN         1e-9
#define BLOOM_FPR_MAX         0.5


/*
 * One of the filters that an imported scaling filter consists of.  They follow
 * each other, oldest first, each from a multiple of 512 bits on:
 *
 *     |-- link 0 --|....|-- link 1 --------|..|-- link 2 -----------
 *     0                 512 * n            512 * m
 */
typedef struct {
    uint64_t  bits;                      /* from 1 */
    uint32_t  k;
    uint32_t  zero;
} bloom_link_t;


typedef struct {
    uint32_t      layout;                /* BLOOM_LAYOUT_... */
    uint32_t      k;                     /* bits of a key, in all its lines;
                                            links: of the last one */
    uint32_t      lines;                 /* lines of a key; 0 but if blocked */
    uint64_t      bits;                  /* not 0, and a multiple of 512 but if
                                            imported; links: of all, each
                                            rounded up to 512 */
    uint32_t      links;                 /* of layout links alone: 2 to
                                            BLOOM_LINKS_MAX */
    bloom_link_t  link[BLOOM_LINKS_MAX];
} bloom_geometry_t;


/*
 * The smallest geometry whose expected rate with `capacity` items is at most
 * `fpr`, of equally small ones that of the least rate.  The rate alone bounds
 * k, classic: log2(1/fpr) + 1, and says how many lines, blocked: one down to
 * 1e-3, two to 1e-6, then three.  0, or -1 if capacity is not in
 * 1..BLOOM_CAPACITY_MAX, fpr not in BLOOM_FPR_MIN..BLOOM_FPR_MAX, or the result
 * over BLOOM_BITS_MAX.
 */
int bloom_geometry_size(bloom_geometry_t *g, uint32_t layout, uint64_t capacity,
    double fpr);

/*
 * The greatest capacity for which bloom_geometry_size() at `fpr` needs at most
 * `bytes`, with its geometry; 0 if even one item does not fit, or fpr is out of
 * range.
 */
uint64_t bloom_geometry_size_capacity(bloom_geometry_t *g, uint32_t layout,
    uint64_t bytes, double fpr);

/*
 * The least rate for which bloom_geometry_size() at `capacity` needs at most
 * `bytes`, with its geometry; 0 if not even BLOOM_FPR_MAX fits.
 */
double bloom_geometry_size_fpr(bloom_geometry_t *g, uint32_t layout,
    uint64_t bytes, uint64_t capacity);

/* 1 if a filter of this layout is an imported one. */
static inline int
bloom_geometry_is_foreign(uint32_t layout)
{
    return layout > BLOOM_LAYOUT_CLASSIC;
}

/* A number of bits rounded up to whole lines. */
static inline uint64_t
bloom_geometry_whole_lines(uint64_t bits)
{
    return (bits + BLOOM_LINE_BITS - 1) / BLOOM_LINE_BITS * BLOOM_LINE_BITS;
}

/* Bytes of a geometry's bits: a multiple of 64; what is over is zeros. */
uint64_t bloom_geometry_bytes(const bloom_geometry_t *g);

/* 1 if the fields are in range and fit together, 0 if not. */
int bloom_geometry_valid(const bloom_geometry_t *g);

/* 1 if two filters of these geometries can be merged. */
int bloom_geometry_equal(const bloom_geometry_t *a, const bloom_geometry_t *b);

/* The expected false-positive rate with `items` distinct keys added. */
double bloom_geometry_fpr(const bloom_geometry_t *g, uint64_t items);

/* The rate of a classic or imported filter, or of a link of one, with the share
 * `fill` of its bits set. */
double bloom_geometry_classic_fpr(const bloom_geometry_t *g, double fill);

/*
 * The number of distinct keys estimated from the number of bits set
 * (Swamidass and Baldi, 2007): -(bits/k) ln(1 - bits_set/bits).  It holds for
 * both layouts: a line's load being close to Poisson, the expected share of
 * zero bits is e^(-k items/bits) in a blocked filter too.  A filter with no
 * zero bit left gives the estimate for one zero bit.  Of links it is rough, as
 * they are not equally full; bloom_census_items() takes them one by one.
 */
uint64_t bloom_geometry_items(const bloom_geometry_t *g, uint64_t bits_set);

/*
 * The standard error of that estimate where `items` keys were added:
 * sqrt(bits (e^a - 1 - a)) / k with a = k items / bits.
 */
double bloom_geometry_items_error(const bloom_geometry_t *g, uint64_t items);

/*
 * "blocked" or "classic" or the name of an imported filter's layout, NULL if
 * unknown; and back, for the first two, which filters can be made with: 0 if
 * unknown.
 */
const char *bloom_geometry_layout_name(uint32_t layout);
uint32_t bloom_geometry_layout_parse(const char *name, uint64_t len);


#pragma GCC visibility pop

#endif /* BLOOM_GEOMETRY_H */
