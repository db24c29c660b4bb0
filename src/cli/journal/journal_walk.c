/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads and counts the records of segments, and says what is wrong
 * with a segment.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "journal_walk.h"


void
journal_walk_begin(journal_walk_t *walk, piece_t *pieces, size_t n,
    journal_take_pt take, void *data)
{
    memset(walk, 0, sizeof(*walk));

    walk->pieces = pieces;
    walk->n = n;
    walk->take = take;
    walk->data = data;
}


/* ---- the end ---- */


static int
same_journal(const piece_t *piece, const piece_t *other)
{
    return memcmp(piece->segment.journal, other->segment.journal,
                  BLOOM_JOURNAL_ID_LEN) == 0;
}


/* Returns the greatest sequence that a record of the segment says was on
 * disk. */
static uint64_t
durable_in(const piece_t *piece)
{
    size_t          at;
    uint64_t        durable;
    bloom_record_t  record;

    durable = 0;
    at = BLOOM_SEGMENT_HEADER;

    for ( ;; ) {
        at += bloom_record_find(&record, &piece->segment,
                                piece->segment.base + at, 0, piece->data + at,
                                piece->len - at);

        if (at == piece->len) {
            return durable;
        }

        if (record.stamp.durable > durable) {
            durable = record.stamp.durable;
        }

        at += record.size;
    }
}


/* Reads all segments of the journal, and returns the greatest sequence that
 * their records say was on disk. */
static uint64_t
find_durable(const journal_walk_t *walk)
{
    size_t    i;
    piece_t   piece;
    uint64_t  durable, greatest;

    greatest = 0;

    for (i = 0; i < walk->n; i++) {
        piece = walk->pieces[i];
        piece.data = NULL;
        journal_files_read(&piece, 1);

        if (piece.rc == CLI_OK && same_journal(&piece, walk->first)) {
            durable = durable_in(&piece);
            greatest = durable > greatest ? durable : greatest;
        }

        free(piece.data);
    }

    return greatest;
}


/*
 * Returns 1 if some record says that the next one, which is missing, was on
 * disk.  It does not matter where that record is, because a record says so only
 * of records before it.
 */
static int
was_durable(journal_walk_t *walk)
{
    if (walk->durable == 0) {
        walk->durable = find_durable(walk);
    }

    return walk->sequence <= walk->durable;
}


/* ---- records ---- */


static void
count(journal_counts_t *counts, const bloom_record_t *record)
{
    counts->records++;

    switch (record->type) {

    case BLOOM_RECORD_ADD:
        counts->added += record->count;
        break;

    case BLOOM_RECORD_REMOVE:
        counts->removed += record->count;
        break;

    case BLOOM_RECORD_RESTORE:
        counts->restorations++;
        break;

    case BLOOM_RECORD_CLEAR:
        counts->clears++;
        break;

    case BLOOM_RECORD_CHANGES:
        counts->added += record->count - record->removals;
        counts->removed += record->removals;
        counts->changes++;
        counts->reached = bloom_record_reached(record);
        break;
    }
}


void
journal_walk_sum(journal_counts_t *sum, const journal_counts_t *counts)
{
    sum->records += counts->records;
    sum->added += counts->added;
    sum->removed += counts->removed;
    sum->restorations += counts->restorations;
    sum->clears += counts->clears;
    sum->changes += counts->changes;

    if (counts->changes != 0) {
        sum->reached = counts->reached;
    }
}


/* Says that a record is of a newer program. */
static void
refuse_record(piece_t *piece, uint64_t position, const bloom_record_t *record)
{
    snprintf(piece->error, sizeof(piece->error), "has a record of type %"
             PRIu32 " at position %" PRIu64 ", which this program does not "
             "know; use a newer program", record->type, position);
    piece->rc = CLI_ERROR;
}


static void
begin_journal(journal_walk_t *walk, const piece_t *piece)
{
    size_t  at;

    at = BLOOM_SEGMENT_HEADER;

    /* the header of a torn record tells which one it was */

    walk->sequence = bloom_record_torn(&piece->segment,
                                       piece->segment.base + at,
                                       piece->data + at, piece->len - at);
    walk->exact = (walk->sequence != 0);

    if (!walk->exact) {
        walk->sequence = piece->segment.sequence;
    }

    walk->from = piece->segment.base + at;
    walk->whole = (piece->segment.sequence == 1);
}


/*
 * Returns the sequence of the first record in the segment that follows; or
 * UINT64_MAX if that segment has none.  A record with this sequence or a
 * greater one does not count in the segment before: its writer died before it
 * counted, and the next writer took its number.
 */
static uint64_t
next_begins(const journal_walk_t *walk, const piece_t *piece)
{
    piece_t         next;
    uint64_t        sequence;
    bloom_record_t  record;

    if (walk->next == walk->n) {
        return UINT64_MAX;
    }

    next = walk->pieces[walk->next];
    next.data = NULL;
    journal_files_read(&next, 1);

    sequence = UINT64_MAX;

    if (next.rc == CLI_OK
        && same_journal(&next, walk->first)
        && next.segment.base == piece->segment.base + piece->segment.size
        && bloom_record_find(&record, &next.segment,
                             next.segment.base + BLOOM_SEGMENT_HEADER, 0,
                             next.data + BLOOM_SEGMENT_HEADER,
                             next.len - BLOOM_SEGMENT_HEADER)
           != next.len - BLOOM_SEGMENT_HEADER)
    {
        sequence = record.stamp.sequence;
    }

    free(next.data);

    return sequence;
}


/* Reads the records of a segment, up to the end of the journal. */
static void
read_records(journal_walk_t *walk, piece_t *piece, journal_found_t *found)
{
    size_t          at, n;
    uint64_t        position, end;
    bloom_record_t  record;

    end = next_begins(walk, piece);
    found->used = BLOOM_SEGMENT_HEADER;

    while (!walk->ended) {

        at = found->used;
        position = piece->segment.base + at;

        n = bloom_record_find(&record, &piece->segment, position,
                              walk->sequence, piece->data + at,
                              piece->len - at);

        if (n == piece->len - at || record.stamp.sequence >= end) {
            break;
        }

        if ((n != 0
             || (walk->exact && record.stamp.sequence != walk->sequence))
            && !was_durable(walk))
        {
            walk->ended = 1;
            break;
        }

        if (n != 0 && found->broken == 0) {
            found->broken_at = position;
        }

        found->broken += n;
        found->used = at + n + record.size;

        if (walk->exact) {
            found->missing += record.stamp.sequence - walk->sequence;
        }

        walk->sequence = record.stamp.sequence + 1;
        walk->exact = 1;

        if (!bloom_record_known(record.type)) {
            refuse_record(piece, position + n, &record);
            break;
        }

        if (found->counts.records == 0) {
            found->first = record.stamp;

            if (piece == walk->first) {
                walk->from = position + n;
                walk->whole = (record.stamp.sequence == 1
                               || record.type == BLOOM_RECORD_CLEAR);
            }
        }

        found->last = record.stamp;
        count(&found->counts, &record);
        walk->take(walk->data, piece, position + n, &record);
    }

    found->torn = bloom_record_tail(piece->data + found->used,
                                    piece->len - found->used);
}


/* ---- segments ---- */


/* Checks that a segment begins where the one before it ends.  `error` gets what
 * is wrong, or "". */
static void
check_place(const piece_t *piece, const piece_t *before, char *error,
    size_t size)
{
    uint64_t  end;

    error[0] = '\0';
    end = before == NULL ? piece->segment.base
                         : before->segment.base + before->segment.size;

    if (piece->segment.base > end) {
        snprintf(error, size, "the segment from position %" PRIu64 " to %"
                 PRIu64 ", which comes before it, is missing", end,
                 piece->segment.base);

    } else if (piece->segment.base < end) {
        snprintf(error, size, "it begins at position %" PRIu64 ", but the "
                 "segment before it ends at %" PRIu64 "; move the wrong one "
                 "away", piece->segment.base, end);
    }
}


static void
check_records(const journal_found_t *found, char *error, size_t size)
{
    int  n;

    n = 0;
    error[0] = '\0';

    if (found->broken != 0) {
        n = snprintf(error, size, "%" PRIu64 " byte%s from position %" PRIu64
                     " on contain%s no valid record; ", found->broken,
                     CLI_S(found->broken), found->broken_at,
                     found->broken == 1 ? "s" : "");
    }

    if (found->missing != 0) {
        n += snprintf(error + n, size - (size_t) n, "%" PRIu64 " record%s "
                      "before it or in it %s missing; ", found->missing,
                      CLI_S(found->missing),
                      found->missing == 1 ? "is" : "are");
    }

    if (n != 0) {
        snprintf(error + n, size - (size_t) n, "load an image that has the "
                 "lost keys");
    }
}


static void
read_segment(journal_walk_t *walk, piece_t *piece, journal_found_t *found)
{
    char  place[160], records[256];

    if (walk->first == NULL) {
        walk->first = piece;
        begin_journal(walk, piece);

    } else if (!same_journal(piece, walk->first)) {
        snprintf(piece->error, sizeof(piece->error), "is damaged: it belongs "
                 "to another journal than %s; move it away", walk->first->path);
        piece->rc = CLI_NO;
        return;
    }

    check_place(piece, walk->before, place, sizeof(place));
    walk->before = piece;

    read_records(walk, piece, found);

    if (piece->rc != CLI_OK) {
        return;
    }

    found->valid = 1;
    check_records(found, records, sizeof(records));

    if (walk->ended && found->counts.records == 0) {
        place[0] = '\0';                 /* behind the end nothing is wrong */
    }

    if (place[0] != '\0' || records[0] != '\0') {
        piece->rc = CLI_NO;
        snprintf(piece->error, sizeof(piece->error), "is damaged: %s%s%s",
                 place, place[0] != '\0' && records[0] != '\0' ? "; " : "",
                 records);
    }
}


const piece_t *
journal_walk_next(journal_walk_t *walk, journal_found_t *found)
{
    piece_t  *piece;

    if (walk->next == walk->n) {
        return NULL;
    }

    memset(found, 0, sizeof(*found));

    piece = &walk->pieces[walk->next++];
    journal_files_read(piece, 1);

    if (piece->rc == CLI_OK) {
        read_segment(walk, piece, found);
    }

    free(piece->data);
    piece->data = NULL;

    return piece;
}
