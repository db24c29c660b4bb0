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
#include "journal_walk.h"
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
    int                added;            /* print only the keys that are
                                            added */
    int                removed;          /* print only the keys that are
                                            removed */
    int                keys;             /* one of these is set */
    int                null;             /* keys end with a zero byte, not LF */
    int                json;
    int                compact;          /* more than one object */
    int                quiet;

    pass_e             pass;
    int                refused;          /* some key cannot be printed */
    uint64_t           printed;          /* number of keys */
    journal_removed_t  removals;
    uint64_t           from;             /* position of the first record, */
    int                whole;            /* and whether nothing was before it,
                                            or a clear has dropped that */
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

    bloom_json_put_count(&json, "sequence", record->stamp.sequence);
    bloom_json_put_time(&json, "time", record->stamp.time);
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
take_keys(journal_t *journal, const piece_t *piece, uint64_t position,
    bloom_record_t *record)
{
    if (journal->pass == PASS_NOTE) {
        journal_removed_note(&journal->removals, *record, position);

    } else if (journal->keys) {
        print_keys(journal, piece, position, record);
    }
}


static void
take_record(void *data, const piece_t *piece, uint64_t position,
    bloom_record_t *record)
{
    size_t          i;
    journal_t      *journal = data;
    bloom_record_t  part;

    static const uint32_t  parts[] = { BLOOM_RECORD_REMOVE, BLOOM_RECORD_ADD };

    if (record->type != BLOOM_RECORD_CHANGES) {
        take_keys(journal, piece, position, record);
        return;
    }

    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        bloom_record_part(record, parts[i], &part);
        take_keys(journal, piece, position, &part);
    }
}


/* ---- output ---- */


/* Prints the numbers of records and keys, and those of each type unless all are
 * additions. */
static void
print_counts(const journal_counts_t *counts)
{
    char         position[BLOOM_POSITION_TEXT_MAX];
    uint64_t     keys;
    const char  *before;

    keys = counts->added + counts->removed;

    printf("%" PRIu64 " record%s, %" PRIu64 " key%s", counts->records,
           CLI_S(counts->records), keys, CLI_S(keys));

    before = " (";

    if (counts->clears != 0) {
        printf("%scleared at the beginning", before);
        before = ", ";
    }

    if (counts->removed != 0) {
        printf("%s%" PRIu64 " added, %" PRIu64 " removed", before,
               counts->added, counts->removed);
        before = ", ";
    }

    if (counts->restorations != 0) {
        printf("%sall restored %" PRIu64 " time%s", before,
               counts->restorations, CLI_S(counts->restorations));
        before = ", ";
    }

    if (counts->changes != 0) {
        (void) bloom_position_write(counts->reached, position);
        printf("%ssource at %s", before, position);
        before = ", ";
    }

    if (before[0] == ',') {
        putchar(')');
    }
}


static void
json_id(bloom_json_writer_t *json, const char *name,
    const uint8_t id[BLOOM_JOURNAL_ID_LEN])
{
    int   i;
    char  hex[2 * BLOOM_JOURNAL_ID_LEN + 1];

    for (i = 0; i < BLOOM_JOURNAL_ID_LEN; i++) {
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    }

    bloom_json_put_text(json, name, hex);
}


static void
print_found_json(bloom_json_writer_t *json, const journal_found_t *found)
{
    char                     position[BLOOM_POSITION_TEXT_MAX];
    const journal_counts_t  *counts;

    counts = &found->counts;

    bloom_json_put_count(json, "used", found->used);
    bloom_json_put_count(json, "torn", found->torn);
    bloom_json_put_count(json, "broken", found->broken);
    bloom_json_put_count(json, "missing", found->missing);
    bloom_json_put_count(json, "records", counts->records);
    bloom_json_put_count(json, "keys", counts->added + counts->removed);
    bloom_json_put_count(json, "added", counts->added);
    bloom_json_put_count(json, "removed", counts->removed);
    bloom_json_put_count(json, "restorations", counts->restorations);
    bloom_json_put_bool(json, "cleared", counts->clears != 0);

    if (counts->changes != 0) {
        (void) bloom_position_write(counts->reached, position);
        bloom_json_put_text(json, "source_position", position);
    }

    if (counts->records != 0) {
        bloom_json_put_count(json, "first_sequence", found->first.sequence);
        bloom_json_put_count(json, "last_sequence", found->last.sequence);
        bloom_json_put_count(json, "durable_sequence", found->last.durable);
        bloom_json_put_time(json, "first_time", found->first.time);
        bloom_json_put_time(json, "last_time", found->last.time);
        bloom_json_put_count(json, "removed_so_far",
                             found->last.removals.keys);
        bloom_json_put_count(json, "removed_bytes_so_far",
                             found->last.removals.bytes);
    }
}


static void
print_json(const journal_t *journal, const piece_t *piece,
    const journal_found_t *found)
{
    bloom_json_writer_t  json;

    static const char  *const results[] = { "ok", "damaged", "unreadable" };

    json_begin(&json, journal->compact);

    bloom_json_put_text(&json, "file", piece->path);
    bloom_json_put_text(&json, "result", results[piece->rc]);

    if (piece->rc != CLI_OK) {
        bloom_json_put_text(&json, "error", piece->error);
    }

    if (found->valid) {
        bloom_json_put_count(&json, "base", piece->segment.base);
        bloom_json_put_count(&json, "size", piece->segment.size);
        bloom_json_put_time(&json, "created", piece->segment.created);
        json_id(&json, "journal", piece->segment.journal);
        bloom_json_put_count(&json, "entry", piece->segment.entry);
        print_found_json(&json, found);
    }

    json_end(&json);
}


static void
print_text(const piece_t *piece, const journal_found_t *found)
{
    char  first[UNITS_LEN], last[UNITS_LEN];

    visible_name(piece->path);
    printf(": %s, position %" PRIu64 ", %zu of %" PRIu64 " bytes used, ",
           piece->rc == CLI_OK ? "ok" : "damaged", piece->segment.base,
           found->used, piece->segment.size);
    print_counts(&found->counts);

    if (found->counts.records != 0) {
        printf(", sequence %" PRIu64 " to %" PRIu64 ", %s to %s",
               found->first.sequence, found->last.sequence,
               format_time(first, found->first.time),
               format_time(last, found->last.time));
    }

    if (found->torn != 0) {
        printf(", then a torn tail of %zu byte%s", found->torn,
               CLI_S(found->torn));
    }

    putchar('\n');
}


static void
print_segment(const journal_t *journal, const piece_t *piece,
    const journal_found_t *found)
{
    if (piece->rc != CLI_OK) {
        cli_error("%s: %s", piece->path, piece->error);

    } else if (found->torn != 0 && journal->keys && !journal->quiet) {
        cli_warn("%s: a torn tail of %zu byte%s is left out: its keys were "
                 "never promised to be on disk", piece->path, found->torn,
                 CLI_S(found->torn));
    }

    if (journal->keys) {
        return;
    }

    if (journal->json) {
        print_json(journal, piece, found);

    } else if (!journal->quiet && found->valid) {
        print_text(piece, found);
    }
}


/* ---- arguments ---- */


/* Walks through segments of a journal.  `sum` gets the sum of their counts. */
static int
walk(journal_t *journal, piece_t *pieces, size_t n, journal_counts_t *sum)
{
    int              rc;
    const piece_t   *piece;
    journal_walk_t   through;
    journal_found_t  found;

    rc = CLI_OK;
    journal_walk_begin(&through, pieces, n, take_record, journal);

    while ((piece = journal_walk_next(&through, &found)) != NULL) {
        rc = worse(rc, piece->rc);
        journal_walk_sum(sum, &found.counts);

        if (journal->pass == PASS_PRINT) {
            print_segment(journal, piece, &found);
        }
    }

    journal->from = through.from;
    journal->whole = through.whole;

    return rc;
}


/* Walks through the segments of a directory, which are `linked`: each follows
 * the one before.  Other segments are read one by one. */
static int
walk_all(journal_t *journal, piece_t *pieces, size_t n, int linked,
    journal_counts_t *sum)
{
    int     rc;
    size_t  i;

    memset(sum, 0, sizeof(*sum));

    if (linked) {
        return walk(journal, pieces, n, sum);
    }

    rc = CLI_OK;

    for (i = 0; i < n; i++) {
        rc = worse(rc, walk(journal, &pieces[i], 1, sum));
    }

    return rc;
}


/* Says that a directory has keys that its journal lacks. */
static void
warn_of_rest(const journal_t *journal, const char *directory)
{
    if (journal->whole || journal->quiet) {
        return;
    }

    cli_warn("%s: the journal begins at position %" PRIu64 ": keys that were "
             "added or removed before that are in the image or the checkpoints "
             "of the zone", directory, journal->from);
}


/* Shows segments of one journal: those of a directory, or, if it is NULL, files
 * that were named. */
static int
show_pieces(journal_t *journal, piece_t *pieces, size_t n,
    const char *directory, journal_counts_t *sum)
{
    int     linked;
    pass_e  pass;

    linked = (directory != NULL);

    journal_removed_free(&journal->removals);

    if (journal->keys) {
        pass = journal->pass;
        journal->pass = PASS_NOTE;
        (void) walk_all(journal, pieces, n, linked, sum);
        journal->pass = pass;

        if (linked && pass == PASS_PRINT) {
            warn_of_rest(journal, directory);
        }
    }

    return walk_all(journal, pieces, n, linked, sum);
}


static int
show_files(journal_t *journal, char **paths, size_t n)
{
    int                rc;
    size_t             i;
    piece_t           *pieces;
    journal_counts_t   sum;

    pieces = cli_alloc(n * sizeof(piece_t));

    for (i = 0; i < n; i++) {
        pieces[i] = journal_files_piece(paths[i]);
    }

    rc = show_pieces(journal, pieces, n, NULL, &sum);

    free(pieces);

    return rc;
}


static int
show_directory(journal_t *journal, const char *directory)
{
    int                rc;
    ssize_t            i, n;
    piece_t           *pieces;
    journal_counts_t   sum;

    n = journal_files_list(directory, journal->pass != PASS_PRINT, &pieces);

    if (n == -1) {
        return CLI_ERROR;
    }

    rc = show_pieces(journal, pieces, (size_t) n, directory, &sum);

    if (!journal->keys && !journal->quiet && !journal->json) {
        visible_name(directory);
        printf(": %s, %zd segment%s, ", rc == CLI_OK ? "ok" : "damaged", n,
               CLI_S(n));
        print_counts(&sum);
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
    { NULL,
      "also, if the segment can be read, its header is valid, and it belongs "
      "to the journal:" },
    { "base", "the position in the journal at which the segment begins" },
    { "size",
      "the size of the segment in bytes, which does not depend on how much is "
      "used" },
    { "created", "the time when the segment was created" },
    { "journal",
      "the id of the journal, which all of its segments have: 32 hexadecimal "
      "digits" },
    { "entry",
      "the number of the entry in the file base of the state directory that "
      "counted when the segment was created, or 0 without one" },
    { "used",
      "the number of bytes up to the end of the last record" },
    { "torn",
      "the number of bytes in the torn tail, or 0 without a torn tail" },
    { "broken",
      "the number of bytes that contain no valid record although later records "
      "count" },
    { "missing",
      "the number of records that are missing before or in the segment "
      "although they were on disk" },
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
    { "durable_sequence",
      "the sequence number up to which records were known to be on disk when "
      "the last record was written, if there is one" },
    { "first_time", "the time of the first record, if there is one" },
    { "last_time", "the time of the last record, if there is one" },
    { "removed_so_far",
      "the number of keys that all records of the journal up to the last one "
      "of the segment remove, if there is one" },
    { "removed_bytes_so_far", "the sum of the lengths of these keys" },
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
        "files there are ignored, and a segment of another journal is damage. "
        "The command may run while nginx appends to the journal.\n\n"
        "The journal ends at the first record that is missing or damaged, "
        "unless a later record says that this one was on disk. What follows "
        "the end is a torn tail, which was being written when the process or "
        "the machine stopped. It is reported but is not an error, because its "
        "keys were never promised to be on disk. If the record was on disk, "
        "the command reports the damage and continues with the next record. "
        "So does it if a segment is missing.\n\n"
        "With --keys, the command prints the keys of all valid records exactly "
        "as they were added, or no key. A key is left out if a later record "
        "removes it and none restores it, or if the zone was cleared later. "
        "Segments that are named together are taken for parts of one journal, "
        "in this order. If a key contains the byte that ends "
        "a key (a line end, or a zero byte with -0), it prints an error with "
        "the position of the key instead. With --json it can print any key. "
        "If the journal in a directory does not begin with the first record of "
        "the zone, the command says where it begins: earlier keys are in the "
        "image or the checkpoints of the zone. "
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
