/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom journal` verifies every record in segments of a journal, and shows
 * a summary or the keys.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bloom_image.h"
#include "bloom_record.h"
#include "cli.h"
#include "command.h"
#include "journal_files.h"
#include "journal_removed.h"
#include "json.h"
#include "key_print.h"
#include "keyform.h"
#include "units.h"
#include "visible.h"


/* What is done with the records.  Keys are read twice, since a later record may
 * remove a key. */
typedef enum {
    PASS_PRINT = 0,
    PASS_CHECK,                          /* check that all keys can be
                                            printed */
    PASS_NOTE                            /* find the keys that were removed */
} pass_e;

typedef struct {
    int               added;             /* print only the keys that are
                                            added */
    int               removed;           /* print only the keys that are
                                            removed */
    int               keys;              /* one of these is set */
    int               null;              /* keys end with a zero byte, not LF */
    int               json;
    int               compact;           /* more than one object */
    int               quiet;

    pass_e            pass;
    int               refused;           /* some key cannot be printed */
    uint64_t          printed;           /* number of keys */

    /* in a directory, what the segments before say: */
    uint64_t          sequence;          /* of the next record; 0: unknown */
    uint64_t          torn;              /* of a tail before the first record;
                                            0: none or unknown */
    const piece_t    *before;            /* the last segment; NULL: none */

    piece_t           all;               /* the sum of records and keys */
    journal_removed_t  removals;
} journal_t;


static const option_t  options[] = {
    { 0, "keys", NULL, offsetof(journal_t, added), options_take_flag,
      "print only the keys that were added and not removed or cleared later, "
      "one per line, in the order in which they were added; if a key contains "
      "a line end, print an error and no keys" },
    { 0, "removed", NULL, offsetof(journal_t, removed), options_take_flag,
      "print only the keys that were removed and not restored, added or "
      "cleared later, as --keys prints keys" },
    { '0', "null", NULL, offsetof(journal_t, null), options_take_flag,
      "with --keys or --removed: end each key with a zero byte instead of a "
      "line end; build, add and test read that with -0; if a key contains a "
      "zero byte, print an error and no keys" },
    { 'q', "quiet", NULL, offsetof(journal_t, quiet), options_take_flag,
      "print only errors and, with --keys or --removed, the keys" },
    { 0, "json", NULL, offsetof(journal_t, json), options_take_flag,
      "print JSON: an object for each segment or, with --keys or --removed, "
      "for each key; build and add read keys in this form with --from json" },
    { 0 }
};


static int
worse(int a, int b)
{
    return a > b ? a : b;
}


/* ---- records ---- */


static void
print_key(journal_t *journal, const piece_t *piece, uint64_t position,
    const bloom_record_t *record, const bloom_key_t *key)
{
    char                 shown[KEYFORM_SHOWN];
    bloom_json_writer_t  json;
    const char          *why;

    why = journal->json ? NULL : key_print_refused(key, journal->null);

    if (why != NULL && !journal->refused) {
        cli_error("%s: position %" PRIu64 ": the key \"%s\" %s", piece->path,
                  position, keyform_show(shown, key), why);
        journal->refused = 1;
    }

    if (journal->pass != PASS_PRINT || journal->refused) {
        return;
    }

    if (!journal->json) {
        key_print(key, journal->null, journal->printed++ == 0);
        return;
    }

    json_begin(&json, 1);
    json_key(&json, key);

    bloom_json_put_count(&json, "sequence", record->sequence);
    bloom_json_put_time(&json, "time", record->time);
    bloom_json_put_count(&json, "position", position);
    json_end(&json);
}


/* Prints the keys of a record that are to be printed. */
static void
print_keys(journal_t *journal, const piece_t *piece, uint64_t position,
    bloom_record_t *record)
{
    uint32_t     index;
    bloom_key_t  key;

    if (record->type != (journal->removed ? BLOOM_RECORD_REMOVE
                                          : BLOOM_RECORD_ADD))
    {
        return;
    }

    for (index = 0; bloom_record_key(record, &key) == 1; index++) {
        if (journal_removed_counts(&journal->removals, record, position, index,
                                   &key))
        {
            print_key(journal, piece, position, record, &key);
        }
    }
}


static void
take_keys(journal_t *journal, piece_t *piece, uint64_t position,
    bloom_record_t *record)
{
    piece->keys[record->type] += record->count;

    if (journal->pass == PASS_NOTE) {
        journal_removed_note(&journal->removals, *record, position);

    } else if (journal->keys) {
        print_keys(journal, piece, position, record);
    }
}


static void
take_record(journal_t *journal, piece_t *piece, uint64_t position,
    bloom_record_t *record)
{
    size_t          i;
    bloom_record_t  part;

    static const uint32_t  parts[] = { BLOOM_RECORD_REMOVE, BLOOM_RECORD_ADD };

    if (journal->sequence != 0) {
        piece->missing += record->sequence - journal->sequence;

    } else if (journal->torn != 0 && record->sequence > journal->torn) {

        /* a record that was never acknowledged gives its number to the next */

        piece->missing += record->sequence - journal->torn;
    }

    if (piece->records == 0) {
        piece->first_sequence = record->sequence;
        piece->first_time = record->time;
    }

    piece->last_sequence = record->sequence;
    piece->last_time = record->time;
    piece->records++;
    piece->restorations += (record->type == BLOOM_RECORD_RESTORE);
    piece->cleared |= (record->type == BLOOM_RECORD_CLEAR);

    journal->sequence = record->sequence + 1;

    if (record->type != BLOOM_RECORD_CHANGES) {
        take_keys(journal, piece, position, record);
        return;
    }

    piece->changes++;
    piece->reached = bloom_record_reached(record);

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        bloom_record_part(record, parts[i], &part);
        take_keys(journal, piece, position, &part);
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
read_records(journal_t *journal, piece_t *piece)
{
    size_t          at, n, type;
    bloom_record_t  record;

    for (at = BLOOM_SEGMENT_HEADER; /* void */ ; at += record.size) {

        piece->used = at;

        n = bloom_record_find(&record, &piece->segment,
                              piece->segment.base + at, journal->sequence,
                              piece->data + at, piece->len - at);

        if (n == piece->len - at) {
            break;
        }

        if (n != 0 && piece->broken == 0) {
            piece->broken_at = piece->segment.base + at;
        }

        piece->broken += n;
        at += n;

        if (!bloom_record_known(record.type)) {
            refuse_record(piece, piece->segment.base + at, &record);
            journal->sequence = record.sequence + 1;
            return;
        }

        take_record(journal, piece, piece->segment.base + at, &record);
    }

    piece->torn = bloom_record_tail(piece->data + at, n);

    if (journal->sequence == 0 && journal->torn == 0) {
        journal->torn = bloom_record_torn(&piece->segment,
                                          piece->segment.base + at,
                                          piece->data + at, n);
    }

    journal->all.records += piece->records;
    journal->all.restorations += piece->restorations;
    journal->all.cleared |= piece->cleared;
    journal->all.changes += piece->changes;

    if (piece->changes != 0) {
        journal->all.reached = piece->reached;
    }

    for (type = 0; type < BLOOM_RECORD_TYPES; type++) {
        journal->all.keys[type] += piece->keys[type];
    }
}


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
                 "segment before it ends at %" PRIu64 ", so they belong to "
                 "different journals", piece->segment.base, end);
    }
}


static void
check_records(const piece_t *piece, char *error, size_t size)
{
    int  n;

    n = 0;
    error[0] = '\0';

    if (piece->broken != 0) {
        n = snprintf(error, size, "%" PRIu64 " byte%s from position %" PRIu64
                     " on contain%s no valid record; ", piece->broken,
                     CLI_S(piece->broken), piece->broken_at,
                     piece->broken == 1 ? "s" : "");
    }

    if (piece->missing != 0) {
        n += snprintf(error + n, size - (size_t) n, "%" PRIu64 " record%s "
                      "before it or in it %s missing; ", piece->missing,
                      CLI_S(piece->missing),
                      piece->missing == 1 ? "is" : "are");
    }

    if (n != 0) {
        snprintf(error + n, size - (size_t) n, "load an image that has the "
                 "lost keys");
    }
}


static void
verify(journal_t *journal, piece_t *piece)
{
    char  place[160], records[256];

    check_place(piece, journal->before, place, sizeof(place));

    if (journal->before != NULL
        && piece->segment.base < journal->before->segment.base
                                 + journal->before->segment.size)
    {
        /* the sequence of another journal says nothing about this one */
        journal->sequence = 0;
        journal->torn = 0;
    }

    read_records(journal, piece);

    if (piece->rc != CLI_OK) {
        return;
    }

    check_records(piece, records, sizeof(records));

    if (place[0] != '\0' || records[0] != '\0') {
        piece->rc = CLI_NO;
        snprintf(piece->error, sizeof(piece->error), "is damaged: %s%s%s",
                 place, place[0] != '\0' && records[0] != '\0' ? "; " : "",
                 records);
    }
}


/* ---- output ---- */


static uint64_t
count_keys(const piece_t *piece)
{
    return piece->keys[BLOOM_RECORD_ADD] + piece->keys[BLOOM_RECORD_REMOVE];
}


/* Prints the numbers of records and keys, and those of each type unless all are
 * additions. */
static void
print_counts(const piece_t *piece)
{
    char         position[BLOOM_POSITION_TEXT_MAX];
    uint64_t     keys;
    const char  *before;

    keys = count_keys(piece);

    printf("%" PRIu64 " record%s, %" PRIu64 " key%s", piece->records,
           CLI_S(piece->records), keys, CLI_S(keys));

    if (piece->keys[BLOOM_RECORD_ADD] == keys && piece->restorations == 0
        && !piece->cleared && piece->changes == 0)
    {
        return;
    }

    before = " (";

    if (piece->cleared) {
        printf("%scleared at the beginning", before);
        before = ", ";
    }

    if (piece->keys[BLOOM_RECORD_ADD] != keys) {
        printf("%s%" PRIu64 " added, %" PRIu64 " removed", before,
               piece->keys[BLOOM_RECORD_ADD], piece->keys[BLOOM_RECORD_REMOVE]);
        before = ", ";
    }

    if (piece->restorations != 0) {
        printf("%sall restored %" PRIu64 " time%s", before, piece->restorations,
               CLI_S(piece->restorations));
        before = ", ";
    }

    if (piece->changes != 0) {
        (void) bloom_position_write(piece->reached, position);
        printf("%ssource at %s", before, position);
    }

    putchar(')');
}


static void
print_json(const journal_t *journal, const piece_t *piece)
{
    char                 position[BLOOM_POSITION_TEXT_MAX];
    bloom_json_writer_t  json;

    static const char  *const results[] = { "ok", "damaged", "unreadable" };

    json_begin(&json, journal->compact);

    bloom_json_put_text(&json, "file", piece->path);
    bloom_json_put_text(&json, "result", results[piece->rc]);

    if (piece->rc != CLI_OK) {
        bloom_json_put_text(&json, "error", piece->error);
    }

    if (piece->data != NULL && piece->rc != CLI_ERROR) {
        bloom_json_put_count(&json, "base", piece->segment.base);
        bloom_json_put_count(&json, "version", piece->segment.version);
        bloom_json_put_count(&json, "size", piece->segment.size);
        bloom_json_put_time(&json, "created", piece->segment.created);
        bloom_json_put_count(&json, "used", piece->used);
        bloom_json_put_count(&json, "torn", piece->torn);
        bloom_json_put_count(&json, "broken", piece->broken);
        bloom_json_put_count(&json, "missing", piece->missing);
        bloom_json_put_count(&json, "records", piece->records);
        bloom_json_put_count(&json, "keys", count_keys(piece));
        bloom_json_put_count(&json, "added", piece->keys[BLOOM_RECORD_ADD]);
        bloom_json_put_count(&json, "removed",
                             piece->keys[BLOOM_RECORD_REMOVE]);
        bloom_json_put_count(&json, "restorations", piece->restorations);
        bloom_json_put_bool(&json, "cleared", piece->cleared);

        if (piece->changes != 0) {
            (void) bloom_position_write(piece->reached, position);
            bloom_json_put_text(&json, "source_position", position);
        }

        if (piece->records != 0) {
            bloom_json_put_count(&json, "first_sequence",
                                 piece->first_sequence);
            bloom_json_put_count(&json, "last_sequence", piece->last_sequence);
            bloom_json_put_time(&json, "first_time", piece->first_time);
            bloom_json_put_time(&json, "last_time", piece->last_time);
        }
    }

    json_end(&json);
}


static void
print_text(const piece_t *piece)
{
    char  first[UNITS_LEN], last[UNITS_LEN];

    visible_name(piece->path);
    printf(": %s, position %" PRIu64 ", %zu of %" PRIu64 " bytes used, ",
           piece->rc == CLI_OK ? "ok" : "damaged", piece->segment.base,
           piece->used, piece->segment.size);
    print_counts(piece);

    if (piece->records != 0) {
        printf(", sequence %" PRIu64 " to %" PRIu64 ", %s to %s",
               piece->first_sequence, piece->last_sequence,
               format_time(first, piece->first_time),
               format_time(last, piece->last_time));
    }

    if (piece->torn != 0) {
        printf(", then a torn tail of %zu byte%s", piece->torn,
               CLI_S(piece->torn));
    }

    putchar('\n');
}


/* Reads a segment, verifies and prints it. */
static int
show(journal_t *journal, piece_t *piece)
{
    int  prints;

    journal_files_read(piece, 1);

    if (piece->rc == CLI_OK) {
        verify(journal, piece);
    }

    prints = journal->pass == PASS_PRINT;

    if (prints && piece->rc != CLI_OK) {
        cli_error("%s: %s", piece->path, piece->error);

    } else if (prints && piece->torn != 0 && journal->keys && !journal->quiet) {
        cli_warn("%s: a torn tail of %zu byte%s is left out: its keys were "
                 "never acknowledged", piece->path, piece->torn,
                 CLI_S(piece->torn));
    }

    if (prints && !journal->keys) {
        if (journal->json) {
            print_json(journal, piece);

        } else if (!journal->quiet && piece->data != NULL
                   && piece->rc != CLI_ERROR)
        {
            print_text(piece);
        }
    }

    free(piece->data);
    piece->data = NULL;

    return piece->rc;
}


/* ---- arguments ---- */


/* Shows segments.  If they are linked, they are those of a directory: each
 * follows the one before. */
static int
walk(journal_t *journal, const piece_t *pieces, size_t n, int linked)
{
    int      rc;
    size_t   i;
    piece_t  piece;

    rc = CLI_OK;
    memset(&journal->all, 0, sizeof(piece_t));

    for (i = 0; i < n; i++) {

        if (i == 0 || !linked) {
            journal->sequence = 0;
            journal->torn = 0;
            journal->before = NULL;
        }

        piece = pieces[i];
        rc = worse(rc, show(journal, &piece));

        if (piece.kind == BLOOM_SEGMENT_OK) {
            journal->before = &pieces[i];
        }
    }

    return rc;
}


/* Shows segments of one journal, whose headers were read. */
static int
show_pieces(journal_t *journal, const piece_t *pieces, size_t n, int linked)
{
    size_t  i;
    pass_e  pass;

    journal_removed_free(&journal->removals);

    for (i = 0; journal->keys && i < n; i++) {

        if (pieces[i].kind != BLOOM_SEGMENT_OK
            || pieces[i].segment.version < bloom_record_version(
                                               BLOOM_RECORD_REMOVE))
        {
            continue;
        }

        pass = journal->pass;
        journal->pass = PASS_NOTE;
        (void) walk(journal, pieces, n, linked);
        journal->pass = pass;
        break;
    }

    return walk(journal, pieces, n, linked);
}


static int
show_files(journal_t *journal, char **paths, size_t n)
{
    int       rc;
    size_t    i;
    piece_t  *pieces;

    pieces = cli_alloc(n * sizeof(piece_t));

    for (i = 0; i < n; i++) {
        pieces[i] = journal_files_piece(paths[i]);
        journal_files_read(&pieces[i], 0);
    }

    rc = show_pieces(journal, pieces, n, 0);

    free(pieces);

    return rc;
}


static int
show_directory(journal_t *journal, const char *directory)
{
    int       rc;
    ssize_t   i, n;
    piece_t  *pieces;

    n = journal_files_list(directory, journal->pass != PASS_PRINT, &pieces);

    if (n == -1) {
        return CLI_ERROR;
    }

    rc = show_pieces(journal, pieces, (size_t) n, 1);

    if (!journal->keys && !journal->quiet && !journal->json) {
        visible_name(directory);
        printf(": %s, %zd segment%s, ", rc == CLI_OK ? "ok" : "damaged", n,
               CLI_S(n));
        print_counts(&journal->all);
        putchar('\n');
    }

    for (i = 0; i < n; i++) {
        free(pieces[i].path);
    }

    free(pieces);

    return rc;
}


static int
is_directory(const char *path)
{
    struct stat  st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}


static int
show_all(journal_t *journal, char **operands, int n)
{
    int  i, files, rc;

    for (i = 0, rc = CLI_OK; i < n; i += files) {

        for (files = 0; i + files < n && !is_directory(operands[i + files]);
             files++)
        {
            /* void */
        }

        if (files != 0) {
            rc = worse(rc, show_files(journal, operands + i, (size_t) files));
            continue;
        }

        rc = worse(rc, show_directory(journal, operands[i]));
        files = 1;
    }

    journal_removed_free(&journal->removals);

    return rc;
}


static int
run(char **operands, int n, void *values)
{
    int         rc;
    journal_t  *journal = values;

    if (n == 0) {
        return cli_misuse("no segment or directory is named");
    }

    if (journal->added && journal->removed) {
        return cli_misuse("--keys and --removed cannot be used together");
    }

    journal->keys = journal->added || journal->removed;

    if (journal->null && (!journal->keys || journal->json)) {
        return cli_misuse("-0 needs --keys or --removed, and cannot be used "
                          "with --json");
    }

    journal->compact = n > 1 || is_directory(operands[0]);

    /* print all keys or none: a reader of a pipe does not see the exit
     * status */

    if (journal->keys && !journal->json) {
        journal->pass = PASS_CHECK;
        (void) show_all(journal, operands, n);
        journal->pass = PASS_PRINT;

        if (journal->refused) {
            return CLI_ERROR;
        }
    }

    rc = show_all(journal, operands, n);

    return journal->refused ? CLI_ERROR : rc;
}


static journal_t  values;

static const command_member_t  members[] = {
    { NULL, "for each segment, an object:" },
    { "file", "the name of the segment" },
    { "result", "the verdict: ok, damaged or unreadable" },
    { "error", "unless the result is ok: what is wrong" },
    { NULL, "also, if the segment can be read and its header is valid:" },
    { "base", "the position in the journal at which the segment begins" },
    { "version",
      "the version of the segment: 1, or 2 if it may have removals" },
    { "size",
      "the size of the segment in bytes, which does not depend on how much is "
      "used" },
    { "created", "the time when the segment was created" },
    { "used",
      "the number of bytes up to the end of the last record" },
    { "torn",
      "the number of bytes in the torn tail, or 0 without a torn tail" },
    { "broken", "the number of bytes that contain no valid record" },
    { "missing",
      "the number of records that are missing before or in the segment" },
    { "records", "the number of records" },
    { "keys",
      "the number of keys in the records of the segment, the sum of the next "
      "two members" },
    { "added", "the number of keys that the records add" },
    { "removed", "the number of keys that the records remove" },
    { "restorations",
      "the number of records that restore all keys removed before them" },
    { "cleared",
      "whether the first record clears the zone: nothing before the segment "
      "counts" },
    { "source_position",
      "the position of the zone's source after the last record of changes, if "
      "there is one" },
    { "first_sequence",
      "the sequence number of the first record, if there is one" },
    { "last_sequence",
      "the sequence number of the last record, if there is one" },
    { "first_time", "the time of the first record, if there is one" },
    { "last_time", "the time of the last record, if there is one" },
    { NULL,
      "with --keys or --removed, for each key, an object per line:" },
    { "key", "the key; each byte that is not valid UTF-8 is shown as U+FFFD" },
    { "key_hex",
      "only if the key is not valid UTF-8: its bytes as hexadecimal digits" },
    { "sequence", "the sequence number of its record" },
    { "time", "the time of its record" },
    { "position", "the position of its record in the journal" },
    { 0 }
};

const command_t  cmd_journal = {
    .name = "journal",
    .does = "verify a journal and show the keys added to a zone or removed",
    .synopsis = "[OPTION...] SEGMENT...|DIRECTORY...",
    .about =
        "Verifies every record in segments of a journal. A journal holds the "
        "keys that were added to a zone, and those that were removed from it, "
        "after its image was built. For each segment, the command prints its "
        "position in the journal, how many bytes are used, and how many "
        "records and keys it has, with the sequence numbers and times of the "
        "first and the last record. If records of the segment do anything "
        "but add keys, the command prints how many keys were added and "
        "removed, how often all removed keys were restored, and whether the "
        "zone was cleared.\n\n"
        "A directory means all segments in it, in order of position; other "
        "files there are ignored. If a segment is missing or a record is "
        "damaged, the command reports that and continues with the next "
        "record. It may run while nginx appends to the journal.\n\n"
        "A torn tail is a record that was being written when the process or "
        "the machine stopped. It is reported but is not an error: its keys "
        "were never acknowledged.\n\n"
        "With --keys, the command prints the keys of all valid records exactly "
        "as they were added, or no key. A key is left out if a later record "
        "removes it and none restores it, or if the zone was cleared later. "
        "Segments that are named together are taken for parts of one journal, "
        "in this order. If a key contains the byte that ends "
        "a key (a line end, or a zero byte with -0), it prints an error with "
        "the position of the key instead. With --json it can print any key. "
        "On a terminal, control characters in keys are shown as \\xNN.",
    .options = options,
    .values = &values,
    .status = "0 all segments are good, with or without torn tails; 1 some "
              "segment is damaged or missing; 2 some file cannot be read or "
              "is not a segment, or some key cannot be printed.",
    .members = members,
    .examples =
        "ngx-bloom journal /var/lib/nginx/bloom/ids\n"
        "ngx-bloom journal --keys --json DIRECTORY > added.json\n"
        "ngx-bloom build --from json -o added.bloom added.json\n",
    .run = run
};
