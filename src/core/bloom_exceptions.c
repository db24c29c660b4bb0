/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A slot of a line is in use if its h1 is not 0.  h1 is written last and cleared
 * first.  So a lookup that finds an h1 finds the h2 that belongs to it, unless
 * the slot is reused at the same moment, and then the two halves of a hash
 * under a secret do not match.
 */

#include "bloom_exceptions.h"

#include <string.h>

#include "bloom_bytes.h"
#include "bloom_siphash.h"


#define SLOTS          3

#define CELL_LAST      UINT32_MAX        /* `next` of the last cell of a key */

/* the first cell of a key: length, kinds, time, position; then its bytes */
#define AT_LENGTH      0
#define AT_KINDS       2
#define AT_TIME        4
#define AT_POSITION    12
#define FIRST_HEADER   20

#define CELL_DATA      60
#define FIRST_DATA     (CELL_DATA - FIRST_HEADER)

/* an exception in an image: kinds, time; then the key with its length */
#define ENTRY_HEADER   9
#define LENGTH_MAX     3                 /* bytes of a LEB128 length */


struct bloom_exceptions_line_s {
    struct {
        uint64_t  h1;                    /* 0: the slot is free */
        uint64_t  h2;
    } hash[SLOTS];

    uint32_t      cell[SLOTS];           /* first cell of the key */
    uint32_t      elsewhere;             /* keys whose home is this line, but
                                            which are in a later one */
};

struct bloom_exceptions_cell_s {
    uint32_t      next;                  /* 0: the cell is free; CELL_LAST; or 1
                                            + the number of the next cell */
    uint8_t       data[CELL_DATA];
};

_Static_assert(sizeof(bloom_exceptions_line_t) == 64
               && sizeof(bloom_exceptions_cell_t) == 64
               && sizeof(bloom_exceptions_head_t) == 64,
               "all parts of a set are cache lines");


/* Where a key is, or could be. */
typedef struct {
    bloom_hash_t              hash;
    uint32_t                  home;
    bloom_exceptions_line_t  *line;      /* NULL: the key is not in the set */
    unsigned                  slot;
} place_t;


static uint64_t
cells_of(uint64_t n, uint64_t bytes)
{
    /* each key wastes less than one cell, besides the header of its first */

    return n + (bytes + n * FIRST_HEADER + CELL_DATA - 1) / CELL_DATA;
}


size_t
bloom_exceptions_size(uint64_t n, uint64_t bytes)
{
    return n == 0 ? 0 : (size_t) (1 + n + cells_of(n, bytes)) * 64;
}


void
bloom_exceptions_attach(bloom_exceptions_t *set, void *memory, uint64_t n,
    uint64_t bytes)
{
    if (n == 0) {
        memset(set, 0, sizeof(*set));
        return;
    }

    set->head = memory;
    set->lines = (bloom_exceptions_line_t *) ((uint8_t *) memory + 64);
    set->cells = (bloom_exceptions_cell_t *) (set->lines + n);
    set->nlines = (uint32_t) n;
    set->ncells = (uint32_t) cells_of(n, bytes);
}


void
bloom_exceptions_init(bloom_exceptions_t *set,
    const uint8_t secret[BLOOM_HASH_KEY_LEN])
{
    if (set->head != NULL) {
        memcpy(set->head->secret, secret, BLOOM_HASH_KEY_LEN);
    }
}


/* Returns the line that follows, after the last one the first. */
static uint32_t
line_after(const bloom_exceptions_t *set, uint32_t i)
{
    return i + 1 == set->nlines ? 0 : i + 1;
}


/* Finds a hash in a line.  Returns its slot, or SLOTS if it is not there. */
static unsigned
line_find(const bloom_exceptions_line_t *line, bloom_hash_t hash)
{
    unsigned  i;

    for (i = 0; i < SLOTS; i++) {
        if (__atomic_load_n(&line->hash[i].h1, __ATOMIC_ACQUIRE) == hash.h1
            && __atomic_load_n(&line->hash[i].h2, __ATOMIC_RELAXED) == hash.h2)
        {
            break;
        }
    }

    return i;
}


static place_t
find(const bloom_exceptions_t *set, const void *data, size_t len)
{
    uint32_t   i, n;
    place_t    place;

    place.hash = bloom_siphash_128(data, len, set->head->secret, 1, 3);
    place.hash.h1 += (place.hash.h1 == 0);
    place.home = (uint32_t) (((unsigned __int128) place.hash.h2 * set->nlines)
                             >> 64);
    place.line = NULL;

    for (i = place.home, n = 0; n < set->nlines; n++) {
        place.slot = line_find(&set->lines[i], place.hash);

        if (place.slot < SLOTS) {
            place.line = &set->lines[i];
            break;
        }

        if (n == 0
            && __atomic_load_n(&set->lines[i].elsewhere, __ATOMIC_ACQUIRE) == 0)
        {
            break;
        }

        i = line_after(set, i);
    }

    return place;
}


/* Returns the first cell of a key, or NULL if its number is not valid. */
static bloom_exceptions_cell_t *
first_cell(const bloom_exceptions_t *set, const place_t *place)
{
    uint32_t  cell;

    cell = __atomic_load_n(&place->line->cell[place->slot], __ATOMIC_ACQUIRE);

    return cell < set->ncells ? &set->cells[cell] : NULL;
}


int
bloom_exceptions_has(const bloom_exceptions_t *set, const void *data,
    size_t len)
{
    return bloom_exceptions_count(set) != 0
           && find(set, data, len).line != NULL;
}


uint64_t
bloom_exceptions_cells(size_t len)
{
    return (len + FIRST_HEADER + CELL_DATA - 1) / CELL_DATA;
}


uint64_t
bloom_exceptions_free(const bloom_exceptions_t *set)
{
    uint64_t  used;

    if (set->head == NULL) {
        return 0;
    }

    used = __atomic_load_n(&set->head->cells_used, __ATOMIC_RELAXED);

    return used < set->ncells ? set->ncells - used : 0;
}


/* Frees the cells of a chain. */
static void
free_cells(bloom_exceptions_t *set, uint32_t first)
{
    uint32_t  i, n, next;

    for (i = first, n = 0; i < set->ncells && n < set->ncells; n++, i = next) {
        next = __atomic_load_n(&set->cells[i].next, __ATOMIC_RELAXED);

        if (next == 0) {
            break;                       /* garbage: it is free already */
        }

        __atomic_store_n(&set->cells[i].next, 0, __ATOMIC_RELEASE);
        next--;                          /* CELL_LAST becomes no cell */
    }

    __atomic_fetch_sub(&set->head->cells_used, n, __ATOMIC_RELAXED);
}


/*
 * Takes a chain of cells.  Returns the number of its first cell, or UINT32_MAX
 * if there are not enough.  The last cell is taken first, so that each cell
 * names a successor that is taken already.
 */
static uint32_t
take_cells(bloom_exceptions_t *set, uint64_t need)
{
    uint32_t  i, n, next;

    if (need > bloom_exceptions_free(set)) {
        return UINT32_MAX;
    }

    next = CELL_LAST;
    i = (uint32_t) (set->head->hint % set->ncells);

    for (n = 0; need != 0 && n < set->ncells; n++) {

        if (__atomic_load_n(&set->cells[i].next, __ATOMIC_ACQUIRE) == 0) {
            __atomic_store_n(&set->cells[i].next, next, __ATOMIC_RELAXED);
            __atomic_fetch_add(&set->head->cells_used, 1, __ATOMIC_RELAXED);

            next = i + 1;
            need--;
        }

        i = (i + 1 == set->ncells) ? 0 : i + 1;
    }

    set->head->hint = i;

    if (need != 0) {

        /* a process died within a put: there are fewer than was thought */

        free_cells(set, next - 1);
        return UINT32_MAX;
    }

    return next - 1;
}


/* Copies a key and what is known about it into the chain that begins at
 * `first`. */
static void
fill_cells(bloom_exceptions_t *set, uint32_t first,
    const bloom_exception_t *exception)
{
    size_t                    len, n;
    uint8_t                  *p;
    const uint8_t            *data;
    bloom_exceptions_cell_t  *cell;

    cell = &set->cells[first];

    bloom_put16(cell->data + AT_LENGTH, (uint16_t) exception->key.len);
    cell->data[AT_KINDS] = (uint8_t) exception->kinds;
    bloom_put64(cell->data + AT_TIME, exception->time);
    bloom_put64(cell->data + AT_POSITION, exception->position);

    data = exception->key.data;
    len = exception->key.len;
    p = cell->data + FIRST_HEADER;
    n = len < FIRST_DATA ? len : FIRST_DATA;

    for ( ;; ) {
        memcpy(p, data, n);
        data += n;
        len -= n;

        if (len == 0) {
            break;
        }

        cell = &set->cells[cell->next - 1];
        p = cell->data;
        n = len < CELL_DATA ? len : CELL_DATA;
    }
}


int
bloom_exceptions_put(bloom_exceptions_t *set,
    const bloom_exception_t *exception)
{
    uint32_t                  i, n, first;
    unsigned                  slot;
    place_t                   place;
    bloom_exceptions_cell_t  *cell;
    bloom_exceptions_line_t  *line;

    if (set->head == NULL || exception->key.len == 0
        || exception->key.len > BLOOM_EXCEPTION_KEY_MAX)
    {
        return -1;
    }

    place = find(set, exception->key.data, exception->key.len);

    if (place.line != NULL) {
        cell = first_cell(set, &place);

        if (cell == NULL) {
            return -1;
        }

        /* a drop looks at the position: it must not see an old one */

        if (exception->position >= bloom_get64(cell->data + AT_POSITION)) {
            bloom_put64(cell->data + AT_TIME, exception->time);
            bloom_put64(cell->data + AT_POSITION, exception->position);
        }

        __atomic_fetch_or(&cell->data[AT_KINDS], (uint8_t) exception->kinds,
                          __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&set->head->puts, 1, __ATOMIC_SEQ_CST);

        /* if the key was dropped meanwhile, it is put again */

        if (line_find(place.line, place.hash) == place.slot) {
            return 0;
        }
    }

    if (bloom_exceptions_count(set) >= set->nlines) {
        return -1;
    }

    first = take_cells(set, bloom_exceptions_cells(exception->key.len));

    if (first == UINT32_MAX) {
        return -1;
    }

    fill_cells(set, first, exception);

    /* there is a free slot: there are fewer keys than lines */

    for (i = place.home, n = 0; n < set->nlines; n++) {
        line = &set->lines[i];

        for (slot = 0; slot < SLOTS; slot++) {
            if (__atomic_load_n(&line->hash[slot].h1, __ATOMIC_ACQUIRE) == 0) {
                break;
            }
        }

        if (slot < SLOTS) {
            break;
        }

        i = line_after(set, i);
    }

    if (n == set->nlines) {
        free_cells(set, first);
        return -1;
    }

    if (i != place.home) {
        __atomic_fetch_add(&set->lines[place.home].elsewhere, 1,
                           __ATOMIC_SEQ_CST);
    }

    __atomic_fetch_add(&set->head->puts, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&set->head->count, 1, __ATOMIC_SEQ_CST);

    __atomic_store_n(&line->cell[slot], first, __ATOMIC_RELEASE);
    __atomic_store_n(&line->hash[slot].h2, place.hash.h2, __ATOMIC_RELEASE);
    __atomic_store_n(&line->hash[slot].h1, place.hash.h1, __ATOMIC_SEQ_CST);

    return 1;
}


int
bloom_exceptions_drop(bloom_exceptions_t *set, const void *data, size_t len,
    unsigned kinds, uint64_t before)
{
    uint8_t                   left;
    uint32_t                  first;
    uint64_t                  h1;
    place_t                   place;
    bloom_exceptions_cell_t  *cell;

    if (bloom_exceptions_count(set) == 0) {
        return 0;
    }

    place = find(set, data, len);

    if (place.line == NULL) {
        return 0;
    }

    first = __atomic_load_n(&place.line->cell[place.slot], __ATOMIC_ACQUIRE);
    cell = first_cell(set, &place);

    if (cell == NULL
        || (before != UINT64_MAX
            && bloom_get64(cell->data + AT_POSITION) >= before))
    {
        return 0;
    }

    if ((kinds & BLOOM_EXCEPTION_KINDS) != BLOOM_EXCEPTION_KINDS) {
        left = __atomic_and_fetch(&cell->data[AT_KINDS], (uint8_t) ~kinds,
                                  __ATOMIC_SEQ_CST);

        if (left != 0) {
            return 0;
        }
    }

    h1 = place.hash.h1;

    if (!__atomic_compare_exchange_n(&place.line->hash[place.slot].h1, &h1, 0,
                                     0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    {
        return 0;                        /* another process has dropped it */
    }

    /* only this process has the key now */

    __atomic_fetch_sub(&set->head->count, 1, __ATOMIC_SEQ_CST);

    if (place.line != &set->lines[place.home]) {
        __atomic_fetch_sub(&set->lines[place.home].elsewhere, 1,
                           __ATOMIC_SEQ_CST);
    }

    free_cells(set, first);

    return 1;
}


/* Copies the key of a slot.  Returns 1, or 0 if the slot has no key, or another
 * one meanwhile. */
static int
copy_key(const bloom_exceptions_t *set, bloom_exceptions_line_t *line,
    unsigned slot, bloom_exception_t *exception, uint8_t *buf)
{
    size_t                    len, n, done;
    uint32_t                  next;
    place_t                   place;
    const uint8_t            *p;
    bloom_hash_t              hash;
    bloom_exceptions_cell_t  *cell;

    hash.h1 = __atomic_load_n(&line->hash[slot].h1, __ATOMIC_ACQUIRE);
    hash.h2 = __atomic_load_n(&line->hash[slot].h2, __ATOMIC_ACQUIRE);

    place.line = line;
    place.slot = slot;

    cell = first_cell(set, &place);

    if (hash.h1 == 0 || cell == NULL) {
        return 0;
    }

    len = bloom_get16(cell->data + AT_LENGTH);

    exception->kinds = __atomic_load_n(&cell->data[AT_KINDS], __ATOMIC_ACQUIRE)
                       & BLOOM_EXCEPTION_KINDS;
    exception->time = bloom_get64(cell->data + AT_TIME);
    exception->position = bloom_get64(cell->data + AT_POSITION);
    exception->key.data = buf;
    exception->key.len = len;

    p = cell->data + FIRST_HEADER;
    n = len < FIRST_DATA ? len : FIRST_DATA;

    for (done = 0; /* void */ ; p = cell->data) {
        memcpy(buf + done, p, n);
        done += n;

        if (done == len) {
            break;
        }

        next = __atomic_load_n(&cell->next, __ATOMIC_ACQUIRE) - 1;

        if (next >= set->ncells) {
            return 0;
        }

        cell = &set->cells[next];
        n = len - done < CELL_DATA ? len - done : CELL_DATA;
    }

    place = find(set, buf, len);

    return exception->kinds != 0 && place.hash.h1 == hash.h1
           && place.hash.h2 == hash.h2 && place.line == line;
}


int
bloom_exceptions_next(const bloom_exceptions_t *set, uint64_t *cursor,
    bloom_exception_t *exception, uint8_t *buf)
{
    uint64_t  i;

    while (*cursor < (uint64_t) set->nlines * SLOTS) {
        i = (*cursor)++;

        if (copy_key(set, &set->lines[i / SLOTS], i % SLOTS, exception, buf)) {
            return 1;
        }
    }

    return 0;
}


size_t
bloom_exception_size(const bloom_exception_t *exception)
{
    size_t  len;

    len = exception->key.len;

    return ENTRY_HEADER + (len < 1 << 7 ? 1 : len < 1 << 14 ? 2 : 3) + len;
}


uint8_t *
bloom_exception_write(const bloom_exception_t *exception, uint8_t *p)
{
    size_t  len;

    *p++ = (uint8_t) exception->kinds;
    bloom_put64(p, exception->time);
    p += 8;

    for (len = exception->key.len; len > 0x7f; len >>= 7) {
        *p++ = (uint8_t) (len | 0x80);
    }

    *p++ = (uint8_t) len;

    memcpy(p, exception->key.data, exception->key.len);

    return p + exception->key.len;
}


int
bloom_exception_read(const uint8_t **pos, const uint8_t *end,
    bloom_exception_t *exception)
{
    size_t          len;
    unsigned        shift;
    const uint8_t  *p;

    p = *pos;

    if (p == end) {
        return 0;
    }

    if (end - p < ENTRY_HEADER + 2) {
        return -1;
    }

    exception->kinds = *p;
    exception->time = bloom_get64(p + 1);
    exception->position = 0;
    p += ENTRY_HEADER;

    if (exception->kinds == 0
        || (exception->kinds & ~(unsigned) BLOOM_EXCEPTION_KINDS) != 0)
    {
        return -1;
    }

    for (len = 0, shift = 0; /* void */ ; shift += 7) {

        if (p == end || shift == 7 * LENGTH_MAX) {
            return -1;
        }

        len |= (size_t) (*p & 0x7f) << shift;

        if ((*p++ & 0x80) == 0) {
            break;
        }
    }

    /* a last byte of zero is an empty key or a needlessly long length */

    if (p[-1] == 0 || len > BLOOM_EXCEPTION_KEY_MAX
        || len > (size_t) (end - p))
    {
        return -1;
    }

    exception->key.data = p;
    exception->key.len = len;

    *pos = p + len;

    return 1;
}


const char *
bloom_exceptions_check(const uint8_t *data, size_t size, uint64_t n)
{
    int                rc;
    uint64_t           count;
    const uint8_t     *p;
    bloom_exception_t  exception;

    p = data;
    count = 0;

    while ((rc = bloom_exception_read(&p, data + size, &exception)) == 1) {
        count++;
    }

    if (rc == -1) {
        return "is invalid: one of its removed keys is not valid";
    }

    return count == n ? NULL : "is invalid: it has more or fewer removed keys "
                               "than its header says";
}
