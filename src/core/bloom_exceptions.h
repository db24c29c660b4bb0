/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A set of exceptions: keys that must not be found in a filter, although its
 * bits may say that they are present.  The set is exact.
 *
 * The set lies in memory of the caller, which may be shared by processes:
 *
 *     | head | line | line | ... | cell | cell | ... |
 *
 *     line     64 bytes, one cache line: three hashes of 128 bits, the kinds
 *              and the number of the first cell of each, and how many keys
 *              whose home is this line had to go to a later one, and how far
 *     cell     64 bytes: 4 for the number of the next cell, and 60 of a key,
 *              which in the first cell begin with its length, its time and
 *              its position
 *
 * There are as many lines as keys for which the set has room, so three hashes
 * for each key.  A key's home line follows from its hash, SipHash-1-3 with 128
 * bits under the secret of the set.  A lookup compares hashes only.  It reads
 * one line, and further lines only if the home line has keys elsewhere.  Cells
 * are read only to list the keys.
 *
 * bloom_exceptions_has(), bloom_exceptions_next(), and bloom_exceptions_drop()
 * of all kinds at any position take no lock, and may run at any time in any
 * process.  Only one process at a time may call bloom_exceptions_put() or
 * another bloom_exceptions_drop(); the caller ensures this with a lock.  If a
 * process dies within any of them, the set stays usable: a key is in it or is
 * not, and at worst the room of the one key is not used again.  A lookup that
 * runs at the same time as a change of a key may find the key or not; it finds
 * every key that does not change, and never a key that has not been put.
 */

#ifndef BLOOM_EXCEPTIONS_H
#define BLOOM_EXCEPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "bloom_hasher.h"
#include "bloom_key.h"

#pragma GCC visibility push(hidden)


/* Why a key is an exception; a key may have several kinds.  In images and never
 * renumbered. */
#define BLOOM_EXCEPTION_BUILT     0x1    /* the builder of the image chose it */
#define BLOOM_EXCEPTION_REMOVED   0x2    /* it was removed */
#define BLOOM_EXCEPTION_FEEDBACK   0x4    /* a backend reported it */
#define BLOOM_EXCEPTION_KINDS     0x7

/* The usual bytes for a key when the size of a set is computed: two cells.  A
 * set of such a size takes 255 bytes a key, a line and nearly three cells, so
 * that keys of other lengths with the same sum of bytes fit too. */
#define BLOOM_EXCEPTION_KEY_USUAL 100


/* The beginning of the memory. */
typedef struct {
    uint8_t   secret[BLOOM_HASH_KEY_LEN];
    uint64_t  count;                     /* keys in the set; atomic */
    uint64_t  puts;                      /* atomic; grows before a key appears
                                            in the set, and after it */
    uint64_t  cells_used;                /* atomic */
    uint64_t  free;                      /* atomic; the first cell of a list of
                                            cells that have been freed: its
                                            number + 1; 0: none */
    uint64_t  fresh;                     /* the cells from this one on have
                                            never been used */
    uint64_t  feedback;                  /* atomic; keys of the kind FEEDBACK,
                                            and 2^32 times their cells */
} bloom_exceptions_head_t;

typedef struct bloom_exceptions_line_s  bloom_exceptions_line_t;
typedef struct bloom_exceptions_cell_s  bloom_exceptions_cell_t;

/* A set as a process knows it. */
typedef struct {
    bloom_exceptions_head_t  *head;      /* NULL: the set is always empty */
    bloom_exceptions_line_t  *lines;
    bloom_exceptions_cell_t  *cells;
    uint32_t                  nlines;
    uint32_t                  ncells;
} bloom_exceptions_t;

/* One key of a set, or of the exceptions in an image. */
typedef struct {
    unsigned     kinds;                  /* BLOOM_EXCEPTION_... */
    uint64_t     time;                   /* ms since 1970; 0: not known */
    uint64_t     position;               /* in the journal, after the record
                                            that made it an exception; 0 in an
                                            image, and without a journal */
    bloom_key_t  key;
} bloom_exception_t;


/* Returns the bytes of a set with room for n keys of `bytes` bytes in all,
 * however the bytes are distributed among the keys.  The result is a multiple
 * of 64; it is 0 if n is 0. */
size_t bloom_exceptions_size(uint64_t n, uint64_t bytes);

/*
 * Lets *set be the set at `memory`, which has bloom_exceptions_size(n, bytes)
 * bytes and is aligned to 64.  With n = 0 the set is always empty, and `memory`
 * is not used.
 */
void bloom_exceptions_attach(bloom_exceptions_t *set, void *memory, uint64_t n,
    uint64_t bytes);

/* Makes an empty set of memory that consists of zeros. */
void bloom_exceptions_init(bloom_exceptions_t *set,
    const uint8_t secret[BLOOM_HASH_KEY_LEN]);

/* Returns the number of keys in the set. */
static inline uint64_t
bloom_exceptions_count(const bloom_exceptions_t *set)
{
    return set->head == NULL
           ? 0 : __atomic_load_n(&set->head->count, __ATOMIC_ACQUIRE);
}

/* Returns the number of keys of the kind BLOOM_EXCEPTION_FEEDBACK. */
static inline uint64_t
bloom_exceptions_feedback(const bloom_exceptions_t *set)
{
    return set->head == NULL
           ? 0 : (uint32_t) __atomic_load_n(&set->head->feedback,
                                            __ATOMIC_ACQUIRE);
}

/* Returns how many cells the keys of the kind BLOOM_EXCEPTION_FEEDBACK take. */
static inline uint64_t
bloom_exceptions_feedback_cells(const bloom_exceptions_t *set)
{
    return set->head == NULL
           ? 0 : __atomic_load_n(&set->head->feedback, __ATOMIC_ACQUIRE) >> 32;
}

/* Returns the kinds of a key; 0 if it is not in the set.  The set must not be
 * one that is always empty. */
unsigned bloom_exceptions_find(const bloom_exceptions_t *set, const void *data,
    size_t len);

/* Returns the kinds of a key; 0 if it is not in the set.  The hash is computed
 * only if there are keys in the set. */
static inline unsigned
bloom_exceptions_has(const bloom_exceptions_t *set, const void *data,
    size_t len)
{
    return bloom_exceptions_count(set) == 0
           ? 0 : bloom_exceptions_find(set, data, len);
}

/* Returns the hash of a key, for the function below.  The set must not be one
 * that is always empty. */
bloom_hash_t bloom_exceptions_hash(const bloom_exceptions_t *set,
    const void *data, size_t len);

/* Requests the home line of a key, whose hash is given, from memory, so that a
 * later call for the key need not wait for it. */
void bloom_exceptions_prefetch(const bloom_exceptions_t *set,
    bloom_hash_t hash);

/* Returns 1 if a key is in the set, with kinds or without; else 0. */
int bloom_exceptions_contains(const bloom_exceptions_t *set, const void *data,
    size_t len);

/*
 * Puts a key of 1 to BLOOM_KEY_MAX bytes into the set.  A key that is in the
 * set already gets the kinds in addition, and the time and the position unless
 * its own position is greater.  Returns 1 if the key is new; 0 if it was there;
 * -1 if there is no room.
 *
 * A key may be put without kinds.  Such a key only takes its place: lookups and
 * lists do not find it until bloom_exceptions_confirm() gives it kinds.
 */
int bloom_exceptions_put(bloom_exceptions_t *set,
    const bloom_exception_t *exception);

/* Gives a key in the set further kinds; the caller's lock has been held since
 * the key was put.  Returns 1, or 0 if the key has been dropped meanwhile. */
int bloom_exceptions_confirm(bloom_exceptions_t *set, const void *data,
    size_t len, unsigned kinds);

/* Returns how many cells a key of `len` bytes takes, how many n keys of `bytes`
 * bytes in all take at most, and how many are free. */
uint64_t bloom_exceptions_cells(size_t len);
uint64_t bloom_exceptions_cells_most(uint64_t n, uint64_t bytes);
uint64_t bloom_exceptions_free(const bloom_exceptions_t *set);

/*
 * Takes kinds from a key whose position is less than `before`, which is
 * UINT64_MAX for any position.  A key without kinds is no longer in the set.
 * Returns 1 if the key is no longer in the set because of this call, else 0.
 */
int bloom_exceptions_drop(bloom_exceptions_t *set, const void *data, size_t len,
    unsigned kinds, uint64_t before);

/*
 * Lists the keys.  *cursor is 0 at first.  Copies the next key into `buf`,
 * which has BLOOM_KEY_MAX bytes, and fills in *exception.  Returns 1;
 * 0 after the last key; -1 if there is no key in the next `lines` lines, at
 * least 1: the next call goes on behind them.  A key that is put or dropped
 * meanwhile may be listed or not; all others are listed once.  A key is never
 * listed wrongly: it is compared with its hash.
 */
int bloom_exceptions_next_within(const bloom_exceptions_t *set,
    uint64_t *cursor, uint64_t lines, bloom_exception_t *exception,
    uint8_t *buf);

/* Lists the keys as above.  Returns 1, or 0 after the last key.  In a large set
 * with few keys a call reads much memory, so event loops use the function
 * above. */
static inline int
bloom_exceptions_next(const bloom_exceptions_t *set, uint64_t *cursor,
    bloom_exception_t *exception, uint8_t *buf)
{
    return bloom_exceptions_next_within(set, cursor, UINT64_MAX, exception,
                                        buf);
}


#pragma GCC visibility pop

#endif /* BLOOM_EXCEPTIONS_H */
