
#include "ngx_bloom_compact.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"

#include "bloom_siphash.h"

#include <dirent.h>
#include <sys/random.h>


/* From how many bytes on; a load reads about so many in a second. */
#ifndef NGX_BLOOM_COMPACT_MIN
#define NGX_BLOOM_COMPACT_MIN   (64 * 1024 * 1024)
#endif

/* Bytes of the journal in a run: its keys have a bit each. */
#define NGX_BLOOM_COMPACT_MAX   (4 * (uint64_t) BLOOM_SEGMENT_MAX)

/* Bytes of the journal in a step, and written between synchronisations. */
#define NGX_BLOOM_COMPACT_STEP  (256 * 1024)
#define NGX_BLOOM_COMPACT_SYNC  (4 * 1024 * 1024)

/* Distinct keys that are told apart in one pass. */
#define NGX_BLOOM_COMPACT_KEYS  1000000

/* Records so far apart in time become one; ms. */
#define NGX_BLOOM_COMPACT_APART  (60 * 1000)

/* Replacing segments takes less; ms. */
#define NGX_BLOOM_COMPACT_WAIT  10000

#define NGX_BLOOM_COMPACT_BUF   (2 * BLOOM_RECORD_MAX)

/* Distinct keys of the sample: an estimate of it is some 2 percent off. */
#define NGX_BLOOM_COMPACT_SAMPLE  8192


typedef enum {
    NGX_BLOOM_COMPACT_COUNTS = 0,
    NGX_BLOOM_COMPACT_MARKS,
    NGX_BLOOM_COMPACT_SIZES,
    NGX_BLOOM_COMPACT_WRITES,
    NGX_BLOOM_COMPACT_REPLACES
} ngx_bloom_compact_e;


/* A key, by its 128-bit hash. */
typedef struct {
    bloom_hash_t           hash;
    uint64_t               value;        /* its bytes, in the sample; then 1 and
                                            which key it was last; 0: no key */
} ngx_bloom_compact_slot_t;


struct ngx_bloom_compact_s {
    ngx_bloom_zone_t          *zone;
    ngx_bloom_compact_e        does;
    uint64_t                   begun;    /* ms since 1970 */

    /* of the journal */
    uint64_t                   begin;
    uint64_t                   end;      /* E; it grows while it is counted */
    uint64_t                   limit;    /* which E does not pass */
    uint64_t                   tail;     /* as it was at the run's begin */
    uint64_t                   sequence; /* of the first record behind E */

    ngx_bloom_reader_t         reader;   /* window NULL: none is open */
    uint64_t                   ordinal;  /* of the next key of this pass */

    uint64_t                   keys;
    uint64_t                   distinct; /* about; when marked, how many */

    u_char                     secret[BLOOM_HASH_KEY_LEN];
    ngx_bloom_compact_slot_t  *table;    /* of distinct keys */
    uint64_t                   slots;
    uint64_t                   used;     /* of them */

    ngx_uint_t                 level;    /* one key of 2^level is sampled */
    uint64_t                   bytes;    /* of those, each with its length */

    uint64_t                   pass;     /* of so many passes */
    uint64_t                   passes;
    uint64_t                  *stays;    /* a bit for each key */

    /* of records that are made; their lengths alone at first */
    bloom_segment_t            segment;
    bloom_record_maker_t       maker;
    uint64_t                   oldest;   /* of the times in it */
    uint64_t                   newest;
    uint64_t                   records;
    uint64_t                   len;      /* of all of them */
    u_char                    *buf;
    size_t                     full;     /* bytes of it to be written */
    uint64_t                   synced;   /* of len */
    ngx_fd_t                   fd;
    u_char                     tmp[NGX_MAX_PATH];
};


static ngx_int_t ngx_bloom_compact_read(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_rewind(ngx_bloom_compact_t *compact,
    ngx_bloom_compact_e does);
static ngx_int_t ngx_bloom_compact_next(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_count(ngx_bloom_compact_t *compact,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_compact_thin(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_counted(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_table(ngx_bloom_compact_t *compact,
    uint64_t slots);
static ngx_bloom_compact_slot_t *ngx_bloom_compact_slot(
    ngx_bloom_compact_t *compact, bloom_hash_t hash);
static ngx_int_t ngx_bloom_compact_pass(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_mark(ngx_bloom_compact_t *compact,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_compact_again(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_marked(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_pack(ngx_bloom_compact_t *compact,
    bloom_record_t *record);
static ngx_int_t ngx_bloom_compact_flush(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_write(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_sized(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_written(ngx_bloom_compact_t *compact);
static ngx_int_t ngx_bloom_compact_replace(ngx_bloom_compact_t *compact);
static ngx_uint_t ngx_bloom_compact_alone(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_compact_fails(ngx_bloom_compact_t *compact,
    ngx_uint_t level, ngx_err_t err, const char *why);
static ngx_int_t ngx_bloom_compact_finish(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_compact_found(ngx_bloom_state_t *state,
    uint64_t *base, uint64_t *end);
static ngx_int_t ngx_bloom_compact_remove(ngx_bloom_state_t *state,
    uint64_t end);


/* In this process. */
static ngx_uint_t  ngx_bloom_compact_runs;


static uint64_t
ngx_bloom_compact_min(void)
{
#if (NGX_BLOOM_FAULTS)
    if (getenv("NGX_BLOOM_FAULT_COMPACT") != NULL) {
        return strtoull(getenv("NGX_BLOOM_FAULT_COMPACT"), NULL, 10);
    }
#endif

    return NGX_BLOOM_COMPACT_MIN;
}


ngx_bloom_compact_t *
ngx_bloom_compact_begin(ngx_bloom_zone_t *zone)
{
    uint64_t              begin, limit;
    ngx_bloom_end_t       end;
    ngx_bloom_state_t    *state;
    ngx_bloom_compact_t  *compact;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;

    begin = control->begin;
    end = ngx_bloom_state_end(state);

    /*
     * What nobody appends to, nobody has to follow and is on disk; a record
     * behind it says how those before are numbered.
     */

    limit = ngx_min(end.base, control->synced);
    limit = ngx_min(limit, control->instance[state->instance].applied);

    if (limit <= begin || end.tail <= end.base + BLOOM_SEGMENT_HEADER
        || limit - begin < ngx_bloom_compact_min()
        || (limit - begin) / 2 < control->compacted
        || ngx_bloom_compact_runs || zone->sh->generation == 0
        || !ngx_bloom_compact_alone(state))
    {
        return NULL;
    }

    compact = calloc(1, sizeof(ngx_bloom_compact_t));
    if (compact == NULL) {
        return NULL;
    }

    compact->zone = zone;
    compact->begun = ngx_bloom_time();
    compact->begin = begin;
    compact->end = begin;
    compact->limit = ngx_min(limit, begin + NGX_BLOOM_COMPACT_MAX);
    compact->tail = end.tail;
    compact->fd = NGX_INVALID_FILE;

    ngx_bloom_compact_runs = 1;

    if (getrandom(compact->secret, BLOOM_HASH_KEY_LEN, 0) == -1
        || ngx_bloom_compact_table(compact, 2 * NGX_BLOOM_COMPACT_SAMPLE)
           != NGX_OK
        || ngx_bloom_compact_rewind(compact, NGX_BLOOM_COMPACT_COUNTS)
           != NGX_OK)
    {
        ngx_bloom_compact_end(compact);
        return NULL;
    }

    return compact;
}


ngx_int_t
ngx_bloom_compact_step(ngx_bloom_compact_t *compact)
{
    ngx_int_t           rc;
    ngx_bloom_state_t  *state;

    state = compact->zone->state;

    if (!ngx_bloom_compact_alone(state)
        || state->control->begin != compact->begin)
    {
        return NGX_DONE;                         /* begin anew, some day */
    }

    if (compact->does == NGX_BLOOM_COMPACT_REPLACES) {
        return ngx_bloom_compact_replace(compact);
    }

    rc = ngx_bloom_compact_read(compact);

    return rc == NGX_OK ? ngx_bloom_compact_next(compact) : rc;
}


void
ngx_bloom_compact_end(ngx_bloom_compact_t *compact)
{
    if (compact->reader.window != NULL) {
        ngx_bloom_reader_close(&compact->reader);
    }

    if (compact->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(compact->fd);
    }

    if (compact->tmp[0] != '\0') {
        (void) ngx_bloom_io_remove(compact->tmp);
    }

    free(compact->table);
    free(compact->stays);
    free(compact->buf);
    free(compact);

    ngx_bloom_compact_runs = 0;
}


/* The next pass over the journal begins. */
static ngx_int_t
ngx_bloom_compact_rewind(ngx_bloom_compact_t *compact,
    ngx_bloom_compact_e does)
{
    ngx_bloom_state_t  *state;

    state = compact->zone->state;

    if (compact->reader.window != NULL) {
        ngx_bloom_reader_close(&compact->reader);
    }

    if (ngx_bloom_reader_open(&compact->reader, state, compact->begin,
                              compact->tail)
        != NGX_OK)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "no memory to read it");
    }

    if (compact->begin == 0) {
        compact->reader.sequence = 1;
    }

    compact->ordinal = 0;
    compact->does = does;

    return NGX_OK;
}


/* NGX_OK at a pass's end, NGX_AGAIN before, NGX_DONE if the run ends. */
static ngx_int_t
ngx_bloom_compact_read(ngx_bloom_compact_t *compact)
{
    uint64_t             until;
    ngx_int_t            rc;
    bloom_record_t       record;
    ngx_bloom_reader_t  *reader;

    reader = &compact->reader;
    until = reader->position + NGX_BLOOM_COMPACT_STEP;

    do {
        rc = ngx_bloom_reader_next(reader, &record);

        if (rc == NGX_ERROR) {
            return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, reader->err,
                                           (char *) reader->error);
        }

        if (rc == NGX_DONE || reader->lost) {

            /* what is broken stays as it is, so that loads see it */

            return ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                           "it is damaged");
        }

        if (compact->does == NGX_BLOOM_COMPACT_COUNTS) {

            if (reader->next > compact->limit) {
                compact->sequence = record.sequence;
                return NGX_OK;
            }

            compact->end = reader->next;

        } else if (reader->segment.base >= compact->end) {
            return NGX_OK;
        }

        switch (compact->does) {

        case NGX_BLOOM_COMPACT_COUNTS:
            rc = ngx_bloom_compact_count(compact, &record);
            break;

        case NGX_BLOOM_COMPACT_MARKS:
            rc = ngx_bloom_compact_mark(compact, &record);
            break;

        default: /* it sizes or writes */
            rc = ngx_bloom_compact_pack(compact, &record);
            break;
        }

        if (rc != NGX_OK) {
            return rc;
        }

    } while (reader->position < until);

    return NGX_AGAIN;
}


/* Behind a pass: as ngx_bloom_compact_step(). */
static ngx_int_t
ngx_bloom_compact_next(ngx_bloom_compact_t *compact)
{
    switch (compact->does) {

    case NGX_BLOOM_COMPACT_COUNTS:
        return ngx_bloom_compact_counted(compact);

    case NGX_BLOOM_COMPACT_MARKS:
        return ngx_bloom_compact_marked(compact);

    case NGX_BLOOM_COMPACT_SIZES:
        return ngx_bloom_compact_sized(compact);

    default: /* NGX_BLOOM_COMPACT_WRITES */
        return ngx_bloom_compact_written(compact);
    }
}


/*
 * The sample has each key whose hash ends with so many zeros, once.  When it
 * has too many, it is one more zero.  So it is all keys, if there are few, and
 * of many it has the lengths in their true proportions.  (Adaptive sampling, by
 * Wegman; its analysis is Flajolet's, 1990.)
 */
static ngx_int_t
ngx_bloom_compact_count(ngx_bloom_compact_t *compact, bloom_record_t *record)
{
    bloom_key_t                key;
    bloom_hash_t               hash;
    const uint8_t             *p;
    ngx_bloom_compact_slot_t  *slot;

    compact->keys += record->count;

    for (p = record->keys; bloom_record_key(record, &key) == 1;
         p = record->keys)
    {
        hash = bloom_siphash_128(key.data, key.len, compact->secret, 1, 3);

        if (hash.h1 & (((uint64_t) 1 << compact->level) - 1)) {
            continue;
        }

        slot = ngx_bloom_compact_slot(compact, hash);

        if (slot->value != 0) {
            continue;
        }

        slot->hash = hash;
        slot->value = record->keys - p;

        compact->bytes += slot->value;
        compact->used++;

        while (compact->used > NGX_BLOOM_COMPACT_SAMPLE) {
            if (ngx_bloom_compact_thin(compact) != NGX_OK) {
                return NGX_DONE;
            }
        }
    }

    return NGX_OK;
}


/* Halves the sample. */
static ngx_int_t
ngx_bloom_compact_thin(ngx_bloom_compact_t *compact)
{
    uint64_t                   i;
    ngx_bloom_compact_slot_t  *old;

    old = compact->table;
    compact->table = NULL;

    if (ngx_bloom_compact_table(compact, compact->slots) != NGX_OK) {
        free(old);
        return NGX_ERROR;
    }

    compact->bytes = 0;
    compact->level++;

    for (i = 0; i < compact->slots; i++) {

        if (old[i].value == 0
            || old[i].hash.h1 & (((uint64_t) 1 << compact->level) - 1))
        {
            continue;
        }

        *ngx_bloom_compact_slot(compact, old[i].hash) = old[i];

        compact->bytes += old[i].value;
        compact->used++;
    }

    free(old);

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_compact_counted(ngx_bloom_compact_t *compact)
{
    compact->distinct = compact->used << compact->level;

    if (compact->keys == 0) {
        return NGX_DONE;                         /* no segment is synced yet */
    }

    if (compact->bytes << compact->level
        > (compact->end - compact->begin) / 2)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_INFO, 0,
                                       "it would not get much shorter");
    }

    compact->stays = calloc(compact->keys / 64 + 1, sizeof(uint64_t));

    if (compact->stays == NULL) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "no memory for it");
    }

    compact->passes = compact->distinct / NGX_BLOOM_COMPACT_KEYS + 1;
    compact->pass = 0;

    return ngx_bloom_compact_pass(compact);
}


/* A pass begins, with some room to spare in its table. */
static ngx_int_t
ngx_bloom_compact_pass(ngx_bloom_compact_t *compact)
{
    uint64_t  keys;

    keys = compact->distinct / compact->passes;

    if (ngx_bloom_compact_table(compact, keys + keys / 2 + 1024) != NGX_OK
        || ngx_bloom_compact_rewind(compact, NGX_BLOOM_COMPACT_MARKS)
           != NGX_OK)
    {
        return NGX_DONE;
    }

    return NGX_AGAIN;
}


/* An empty table. */
static ngx_int_t
ngx_bloom_compact_table(ngx_bloom_compact_t *compact, uint64_t slots)
{
    free(compact->table);

    compact->table = calloc(slots, sizeof(ngx_bloom_compact_slot_t));
    compact->slots = slots;
    compact->used = 0;

    if (compact->table == NULL) {
        (void) ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "no memory for it");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* A number below n, evenly, of a hash. */
static ngx_inline uint64_t
ngx_bloom_compact_reduce(uint64_t hash, uint64_t n)
{
    return (uint64_t) (((unsigned __int128) hash * n) >> 64);
}


/* Where the key is, or would be: then its value is 0. */
static ngx_bloom_compact_slot_t *
ngx_bloom_compact_slot(ngx_bloom_compact_t *compact, bloom_hash_t hash)
{
    uint64_t                   i;
    ngx_bloom_compact_slot_t  *slot;

    i = ngx_bloom_compact_reduce(hash.h2, compact->slots);
    slot = &compact->table[i];

    while (slot->value != 0
           && (slot->hash.h1 != hash.h1 || slot->hash.h2 != hash.h2))
    {
        if (++i == compact->slots) {
            i = 0;
        }

        slot = &compact->table[i];
    }

    return slot;
}


static ngx_inline void
ngx_bloom_compact_set(ngx_bloom_compact_t *compact, uint64_t ordinal)
{
    compact->stays[ordinal / 64] ^= (uint64_t) 1 << ordinal % 64;
}


static ngx_inline ngx_uint_t
ngx_bloom_compact_stays(ngx_bloom_compact_t *compact, uint64_t ordinal)
{
    return compact->stays[ordinal / 64] >> ordinal % 64 & 1;
}


/* Each key of this pass stays until it comes again. */
static ngx_int_t
ngx_bloom_compact_mark(ngx_bloom_compact_t *compact, bloom_record_t *record)
{
    bloom_key_t                key;
    bloom_hash_t               hash;
    ngx_bloom_compact_slot_t  *slot;

    for ( /* void */ ; bloom_record_key(record, &key) == 1;
          compact->ordinal++)
    {
        hash = bloom_siphash_128(key.data, key.len, compact->secret, 1, 3);

        if (ngx_bloom_compact_reduce(hash.h1, compact->passes)
            != compact->pass)
        {
            continue;
        }

        slot = ngx_bloom_compact_slot(compact, hash);

        if (slot->value != 0) {
            ngx_bloom_compact_set(compact, slot->value - 1);

        } else {
            if (++compact->used > compact->slots / 8 * 7) {
                return ngx_bloom_compact_again(compact);
            }

            slot->hash = hash;
        }

        slot->value = compact->ordinal + 1;
        ngx_bloom_compact_set(compact, compact->ordinal);
    }

    return NGX_OK;
}


/* There are more keys than was estimated: all is marked anew. */
static ngx_int_t
ngx_bloom_compact_again(ngx_bloom_compact_t *compact)
{
    ngx_memzero(compact->stays, (compact->keys / 64 + 1) * sizeof(uint64_t));

    compact->distinct *= 2;
    compact->passes *= 2;
    compact->pass = 0;

    return ngx_bloom_compact_pass(compact);
}


static ngx_int_t
ngx_bloom_compact_marked(ngx_bloom_compact_t *compact)
{
    uint64_t  i;

    if (++compact->pass < compact->passes) {
        return ngx_bloom_compact_pass(compact);
    }

    free(compact->table);
    compact->table = NULL;

    compact->distinct = 0;

    for (i = 0; i <= compact->keys / 64; i++) {
        compact->distinct += __builtin_popcountll(compact->stays[i]);
    }

    compact->buf = malloc(NGX_BLOOM_COMPACT_BUF);

    if (compact->buf == NULL) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "no memory for it");
    }

    bloom_record_begin(&compact->maker, compact->buf, BLOOM_RECORD_MAX);

    return ngx_bloom_compact_rewind(compact, NGX_BLOOM_COMPACT_SIZES) == NGX_OK
           ? NGX_AGAIN : NGX_DONE;
}


/* Puts those keys of a record that stay into the one that is made. */
static ngx_int_t
ngx_bloom_compact_pack(ngx_bloom_compact_t *compact, bloom_record_t *record)
{
    size_t                 len;
    uint64_t               ordinal;
    bloom_key_t            key;
    bloom_record_t         walk;
    const uint8_t         *p;
    bloom_record_maker_t  *maker;

    maker = &compact->maker;
    walk = *record;
    ordinal = compact->ordinal;
    len = 0;

    for (p = walk.keys; bloom_record_key(&walk, &key) == 1; p = walk.keys) {
        if (ngx_bloom_compact_stays(compact, ordinal++)) {
            len += walk.keys - p;
        }
    }

    if (len == 0) {
        compact->ordinal = ordinal;
        return NGX_OK;
    }

    if (maker->count != 0
        && (len > maker->room - maker->len
            || record->time > compact->oldest + NGX_BLOOM_COMPACT_APART)
        && ngx_bloom_compact_flush(compact) != NGX_OK)
    {
        return NGX_DONE;
    }

    if (maker->count == 0) {
        compact->oldest = record->time;
    }

    compact->newest = ngx_max(compact->newest, record->time);

    for ( /* void */ ; bloom_record_key(record, &key) == 1;
          compact->ordinal++)
    {
        if (ngx_bloom_compact_stays(compact, compact->ordinal)) {
            (void) bloom_record_put(maker, &key);
        }
    }

    return NGX_OK;
}


/* Ends the record that is made. */
static ngx_int_t
ngx_bloom_compact_flush(ngx_bloom_compact_t *compact)
{
    size_t                 size;
    bloom_record_maker_t  *maker;

    maker = &compact->maker;

    if (maker->count == 0) {
        return NGX_OK;
    }

    if (compact->does == NGX_BLOOM_COMPACT_WRITES) {
        size = bloom_record_seal(maker, &compact->segment,
                                 compact->segment.base + BLOOM_SEGMENT_HEADER
                                 + compact->len,
                                 compact->segment.sequence + compact->records,
                                 compact->newest);
        compact->full += size;

    } else {
        size = (maker->len + 7) & ~(size_t) 7;
    }

    compact->len += size;
    compact->records++;

    if (compact->full > NGX_BLOOM_COMPACT_BUF - BLOOM_RECORD_MAX
        && ngx_bloom_compact_write(compact) != NGX_OK)
    {
        return NGX_ERROR;
    }

    bloom_record_begin(maker, compact->buf + compact->full, BLOOM_RECORD_MAX);

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_compact_write(ngx_bloom_compact_t *compact)
{
    ngx_int_t  rc;

    rc = ngx_bloom_io_write(compact->fd, compact->buf, compact->full,
                            BLOOM_SEGMENT_HEADER + compact->len
                            - compact->full);

    compact->full = 0;

    /* all at the end would take too long */

    if (rc == NGX_OK
        && compact->len - compact->synced >= NGX_BLOOM_COMPACT_SYNC)
    {
        compact->synced = compact->len;
        rc = ngx_bloom_io_sync(compact->fd);
    }

    if (rc != NGX_OK) {
        (void) ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "a segment cannot be written");
    }

    return rc;
}


static ngx_int_t
ngx_bloom_compact_sized(ngx_bloom_compact_t *compact)
{
    int                 err;
    uint64_t            size;
    bloom_segment_t    *segment;

    (void) ngx_bloom_compact_flush(compact);

    size = ngx_max(BLOOM_SEGMENT_HEADER + compact->len, BLOOM_SEGMENT_MIN);

    if (size > (compact->end - compact->begin) / 4 * 3) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_INFO, 0,
                                       "it would not get much shorter");
    }

    if (size > BLOOM_SEGMENT_MAX) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_NOTICE, 0,
                                       "it has more different keys than fit "
                                       "into a segment; load an image that "
                                       "has them, built with --as-of");
    }

    segment = &compact->segment;

    segment->base = compact->end - size;
    segment->size = size;
    segment->sequence = compact->sequence - compact->records;
    segment->created = ngx_bloom_time();

    ngx_bloom_state_name(compact->zone->state, compact->tmp,
                         "save.compact.%P.tmp", ngx_pid);

    compact->fd = ngx_bloom_io_open(compact->tmp, O_RDWR|O_CREAT|O_TRUNC);

    if (compact->fd != NGX_INVALID_FILE) {

        do {
            err = posix_fallocate(compact->fd, 0, size);
        } while (err == NGX_EINTR);

    } else {
        err = ngx_errno;
    }

    if (err == 0
        && getrandom(segment->salt, BLOOM_SEGMENT_SALT_LEN, 0) == -1)
    {
        err = ngx_errno;
    }

    if (err != 0) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, err,
                                       "a segment cannot be made");
    }

    compact->len = 0;
    compact->records = 0;
    compact->newest = 0;

    return ngx_bloom_compact_rewind(compact, NGX_BLOOM_COMPACT_WRITES)
           == NGX_OK ? NGX_AGAIN : NGX_DONE;
}


static ngx_int_t
ngx_bloom_compact_written(ngx_bloom_compact_t *compact)
{
    u_char  header[BLOOM_SEGMENT_HEADER];

    if (ngx_bloom_compact_flush(compact) != NGX_OK
        || (compact->full != 0 && ngx_bloom_compact_write(compact) != NGX_OK))
    {
        return NGX_DONE;
    }

    /* the header last: before it, the file is no segment to anybody */

    bloom_segment_encode(&compact->segment, header);

    if (ngx_bloom_io_write(compact->fd, header, BLOOM_SEGMENT_HEADER, 0)
        != NGX_OK
        || ngx_bloom_io_sync(compact->fd) != NGX_OK)
    {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, ngx_errno,
                                       "a segment cannot be written");
    }

    compact->does = NGX_BLOOM_COMPACT_REPLACES;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_bloom_compact_replace(ngx_bloom_compact_t *compact)
{
    u_char                name[NGX_MAX_PATH];
    ngx_int_t             rc;
    ngx_err_t             err;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = compact->zone;
    control = zone->state->control;

    if (compact->sequence - compact->segment.sequence != compact->records
        || compact->len > compact->segment.size - BLOOM_SEGMENT_HEADER
        || ngx_bloom_lock(&control->history, 0) != NGX_OK)
    {
        return NGX_DONE;
    }

    /* whoever has come since then waits for the lock, and reads behind it */

    if (ngx_bloom_compact_finish(zone->state) != NGX_OK
        || !ngx_bloom_compact_alone(zone->state)
        || control->begin != compact->begin)
    {
        ngx_bloom_unlock(&control->history);
        return NGX_DONE;
    }

    ngx_bloom_state_name(zone->state, name, "compact.%016xL.%016xL",
                         compact->segment.base, compact->end);

    rc = ngx_bloom_io_rename(zone->state->path.data, compact->tmp, name);

    if (rc == NGX_OK) {
        rc = ngx_bloom_compact_finish(zone->state);
    }

    err = ngx_errno;
    ngx_bloom_unlock(&control->history);

    if (rc != NGX_OK) {
        return ngx_bloom_compact_fails(compact, NGX_LOG_ERR, err,
                                       "its segments cannot be replaced");
    }

    compact->tmp[0] = '\0';
    control->compacted = compact->segment.size;

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "bloom zone \"%V\": %uL bytes of the journal became %uL: of "
                  "%uL keys %uL were different, in %uL records now; it took "
                  "%uL ms", &zone->name, compact->end - compact->begin,
                  compact->segment.size, compact->keys, compact->distinct,
                  compact->records, ngx_bloom_time() - compact->begun);

    return NGX_DONE;
}


static ngx_uint_t
ngx_bloom_compact_alone(ngx_bloom_state_t *state)
{
    return __atomic_load_n(&state->control->instances, __ATOMIC_SEQ_CST)
           == (uint64_t) 1 << state->instance;
}


/* The next run is when there is twice as much.  NGX_DONE. */
static ngx_int_t
ngx_bloom_compact_fails(ngx_bloom_compact_t *compact, ngx_uint_t level,
    ngx_err_t err, const char *why)
{
    ngx_bloom_zone_t  *zone;

    zone = compact->zone;

    zone->state->control->compacted = compact->tail - compact->begin;

    ngx_log_error(level, ngx_cycle->log, err,
                  "bloom zone \"%V\": the journal is not compacted: %s",
                  &zone->name, why);

    return NGX_DONE;
}


ngx_int_t
ngx_bloom_compact_settle(ngx_bloom_state_t *state)
{
    ngx_int_t             rc;
    ngx_err_t             err;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_lock(&control->history, NGX_BLOOM_COMPACT_WAIT) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    rc = ngx_bloom_compact_finish(state);

    err = ngx_errno;
    ngx_bloom_unlock(&control->history);
    ngx_set_errno(err);

    return rc;
}


/* Under the lock control->history. */
static ngx_int_t
ngx_bloom_compact_finish(ngx_bloom_state_t *state)
{
    u_char     from[NGX_MAX_PATH], to[NGX_MAX_PATH];
    uint64_t   base, end;
    ngx_int_t  rc;

    rc = ngx_bloom_compact_found(state, &base, &end);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
    }

    /* its name has to be on disk before anything is removed */

    if (ngx_bloom_io_sync_directory(state->path.data) != NGX_OK) {
        return NGX_ERROR;
    }

    __atomic_store_n(&state->control->begin, base, __ATOMIC_SEQ_CST);

    ngx_bloom_state_name(state, from, "compact.%016xL.%016xL", base, end);
    ngx_bloom_state_name(state, to, "journal.%016xL", base);

    /* the mark synchronises the directory as well */

    if (ngx_bloom_compact_remove(state, end) != NGX_OK
        || ngx_bloom_state_write_mark(state, "dropped",
                                      state->control->dropped, base)
           != NGX_OK
        || ngx_bloom_io_rename(state->path.data, from, to) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* NGX_OK; NGX_DECLINED if there is none; NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_compact_found(ngx_bloom_state_t *state, uint64_t *base,
    uint64_t *end)
{
    DIR            *dir;
    char           *p;
    ngx_int_t       rc;
    struct dirent  *entry;

    dir = opendir((char *) state->path.data);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_DECLINED;

    while (rc == NGX_DECLINED && (entry = readdir(dir)) != NULL) {

        if (strncmp(entry->d_name, "compact.", 8) != 0
            || strlen(entry->d_name) != 41)
        {
            continue;
        }

        *base = strtoull(entry->d_name + 8, &p, 16);

        if (*p == '.') {
            *end = strtoull(p + 1, &p, 16);

            if (*p == '\0') {
                rc = NGX_OK;
            }
        }
    }

    (void) closedir(dir);

    return rc;
}


/* Removes the segments below a position. */
static ngx_int_t
ngx_bloom_compact_remove(ngx_bloom_state_t *state, uint64_t end)
{
    u_char     name[NGX_MAX_PATH];
    uint64_t   base;
    ngx_int_t  rc;

    for ( ;; ) {
        rc = ngx_bloom_segment_find(state, 0, &base);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (rc == NGX_DONE || base >= end) {
            return NGX_OK;
        }

        ngx_bloom_state_name(state, name, "journal.%016xL", base);

        if (ngx_bloom_io_remove(name) != NGX_OK) {
            return NGX_ERROR;
        }
    }
}
