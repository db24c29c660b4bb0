/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file chooses the dimensions of a fuse base.  How many slots are needed
 * has no closed formula for filters of practical size, so it was measured: see
 * t/unit/test_fuse_build.c.
 */

#include <math.h>
#include <string.h>

#include "bloom_fuse_size.h"


/* Additions that the first layer has room for. */
#define ROOM_SHARE  8
#define ROOM_MIN    1000


/*
 * How many windows and slots a number of keys in a shard needs; between two
 * lines, the logarithm of the keys is interpolated.
 *
 * With more windows, less is lost at both ends, but two keys of a shard are
 * more likely to have the same three slots, windows^2 / (2.8 keys), and then
 * the shard needs another salt.
 *
 * Random keys could not be peeled in 4 of 1000 attempts at 300,000 keys, 3 of
 * 500 at 500,000, 1 of 300 at 800,000, 23 of 300 at 1 million, 10 of 300 at 1.2
 * million, none of 200 at 1.5 million, 1 of 150 at 2 million, 1 of 60 at 4
 * million, none of 60 at 8 million, and none of 12 at 17 million.
 */
static const struct {
    double  keys;
    double  windows;
    double  slots;                       /* for each key */
} peeling[] = {
    { 1000,     8,   1.42   },
    { 5000,     20,  1.30   },
    { 20000,    40,  1.215  },
    { 50000,    60,  1.187  },
    { 100000,   80,  1.168  },
    { 300000,   80,  1.152  },
    { 500000,   105, 1.142  },
    { 800000,   130, 1.135  },
    { 950000,   140, 1.132  },
    { 1000000,  160, 1.125  },
    { 1500000,  170, 1.125  },
    { 2000000,  170, 1.1225 },
    { 4194304,  150, 1.119  },
    { 8388608,  140, 1.115  },
    { 16777216, 140, 1.113  },
};

#define LINES  (sizeof(peeling) / sizeof(peeling[0]))

/* Segments have a multiple of so many slots if there are several shards, so
 * that no two shards share a word.  So that few slots are lost by this, the
 * number of windows may differ from the table's by NEAR. */
#define MULTIPLE  64
#define NEAR      5

/*
 * A base of up to SMALL keys may have one window.  Its equations can be peeled
 * if it has 1.23 slots for each key and some more (Botelho, Pagh, Ziviani,
 * "Simple and Space-Efficient Minimal Perfect Hash Functions", 2007).
 */
#define SMALL        32768
#define SMALL_SLOTS  1.23
#define SMALL_MORE   32


/*
 * Returns how many keys a shard has at most.  Shards of 2 to 4 million keys are
 * built fastest, since what a window touches is in the processor's caches.
 * With many shards, larger ones are less likely to fail.
 */
static uint64_t
shard_keys(uint64_t keys)
{
    return (uint64_t) 1 << (keys <= (uint64_t) 1 << 25 ? 22
                            : keys <= (uint64_t) 1 << 29 ? 23 : 24);
}


/* Sets the segments of a shard for `keys` keys. */
static void
choose_segments(bloom_fuse_t *fuse, double keys)
{
    double    share, windows, slots;
    uint64_t  length, least;
    uint32_t  i, segments, multiple, near;

    for (i = 1; i < LINES - 1 && keys > peeling[i].keys; i++) {
        /* void */
    }

    share = log(fmax(keys, peeling[0].keys) / peeling[i - 1].keys)
            / log(peeling[i].keys / peeling[i - 1].keys);
    share = fmin(share, 1);

    windows = peeling[i - 1].windows
              * pow(peeling[i].windows / peeling[i - 1].windows, share);
    slots = peeling[i - 1].slots
            + share * (peeling[i].slots - peeling[i - 1].slots);

    multiple = fuse->shard_bits != 0 ? MULTIPLE : 1;
    near = fuse->shard_bits != 0 ? NEAR : 0;

    segments = (uint32_t) lround(windows) + 2 - near;
    least = UINT64_MAX;

    for (i = 0; i <= 2 * near; i++, segments++) {
        length = (uint64_t) ceil(keys * slots
                                 / ((double) segments * multiple))
                 * multiple;

        if (segments * length < least) {
            least = segments * length;
            fuse->segments = segments;
            fuse->length = (uint32_t) length;
        }
    }
}


/* Sets the width of the slots and how many of them are wide. */
static void
choose_widths(bloom_fuse_t *fuse, double fpr)
{
    double    share;
    uint64_t  windows, all, wide;

    windows = fuse->segments - 2;
    all = windows << fuse->shard_bits;

    fuse->width = (uint32_t) fmax(1, floor(-log2(fpr)));
    share = 2 * (1 - ldexp(fpr, (int) fuse->width));
    wide = (uint64_t) fmin((double) all,
                           fmax(0, ceil(share * (double) all)));

    if (wide == all) {
        fuse->width++;
        wide = 0;
    }

    fuse->wide = wide / windows * bloom_fuse_slots(fuse);

    if (wide % windows != 0) {
        fuse->wide += (wide % windows + 2) * fuse->length;
    }
}


void
bloom_fuse_size(bloom_fuse_t *fuse, uint64_t keys, double fpr)
{
    double        mean, fullest;
    bloom_fuse_t  small;

    memset(fuse, 0, sizeof(*fuse));

    fuse->keys = keys;
    fuse->room = keys / ROOM_SHARE > ROOM_MIN ? keys / ROOM_SHARE : ROOM_MIN;

    while (keys >> fuse->shard_bits > shard_keys(keys)) {
        fuse->shard_bits++;
    }

    small = *fuse;

    /* of 2^b shards with a Poisson number of keys, the fullest one has about
     * sqrt(2 ln 2^b) standard deviations more than the mean */

    mean = ldexp((double) keys, -(int) fuse->shard_bits);
    fullest = mean + sqrt(mean) * (sqrt(2 * M_LN2 * fuse->shard_bits)
                                   + (fuse->shard_bits != 0));

    choose_segments(fuse, fullest);
    choose_widths(fuse, fpr);

    if (keys > SMALL) {
        return;
    }

    small.segments = BLOOM_FUSE_K;
    small.length = (uint32_t) ceil(((double) keys * SMALL_SLOTS + SMALL_MORE)
                                   / BLOOM_FUSE_K);
    choose_widths(&small, fpr);

    /* with several windows, the slots may have two widths */

    if (keys < peeling[0].keys
        || bloom_fuse_bits(&small) <= bloom_fuse_bits(fuse))
    {
        *fuse = small;
    }
}


double
bloom_fuse_fpr(const bloom_fuse_t *fuse)
{
    double    windows;
    uint64_t  wide, rest;

    if (fuse->keys == 0) {
        return 0;
    }

    windows = fuse->segments - 2;
    wide = fuse->wide / bloom_fuse_slots(fuse);
    rest = fuse->wide % bloom_fuse_slots(fuse) / fuse->length;

    return ldexp(1 - 0.5 * ((double) wide * windows
                            + (rest > 2 ? (double) rest - 2 : 0))
                         / ldexp(windows, (int) fuse->shard_bits),
                 -(int) fuse->width);
}


int
bloom_fuse_valid(const bloom_fuse_t *fuse)
{
    uint64_t  slots;

    if (fuse->room == 0
        || fuse->length == 0 || fuse->length > BLOOM_FUSE_LENGTH_MAX
        || fuse->segments < BLOOM_FUSE_K
        || fuse->segments > BLOOM_FUSE_SLOTS_MAX / fuse->length
        || fuse->shard_bits > BLOOM_FUSE_SHARD_BITS
        || fuse->width == 0 || fuse->width > BLOOM_FUSE_WIDTH_MAX)
    {
        return 0;
    }

    slots = bloom_fuse_slots(fuse) << fuse->shard_bits;

    return fuse->keys <= slots
           && fuse->wide <= slots && fuse->wide % fuse->length == 0
           && (fuse->shard_bits == 0 || fuse->length % MULTIPLE == 0);
}
