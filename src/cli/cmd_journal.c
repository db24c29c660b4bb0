/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom journal` verifies every record in segments of a journal, and shows
 * a summary or the keys.
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bloom_image.h"
#include "bloom_record.h"
#include "cli.h"
#include "command.h"
#include "json.h"
#include "key_print.h"
#include "keyform.h"
#include "regular_file.h"
#include "units.h"
#include "visible.h"


typedef struct {
    char             *path;
    int               rc;                /* CLI_OK, _NO or _ERROR */
    char              error[2 * BLOOM_RECORD_ERROR_LEN];
    bloom_segment_e   kind;
    bloom_segment_t   segment;           /* if its kind is OK */
    uint8_t          *data;
    size_t            len;

    uint64_t          records;
    uint64_t          keys;
    uint64_t          first_sequence;
    uint64_t          last_sequence;
    uint64_t          first_time;
    uint64_t          last_time;
    size_t            used;              /* bytes, to the last record's end */
    size_t            torn;              /* bytes of a torn tail */

    uint64_t          broken;            /* bytes without a valid record */
    uint64_t          broken_at;         /* position of the first such byte */
    uint64_t          missing;           /* number of records */
} piece_t;

typedef struct {
    int               keys;              /* print only the keys */
    int               null;              /* keys end with a zero byte, not LF */
    int               json;
    int               compact;           /* more than one object */
    int               quiet;

    int               checking;          /* checks all keys, prints nothing */
    int               refused;           /* some key cannot be printed */
    uint64_t          printed;           /* number of keys */

    /* in a directory, what the segments before say: */
    uint64_t          sequence;          /* of the next record; 0: unknown */
    const piece_t    *before;            /* the last segment; NULL: none */

    uint64_t          records;
    uint64_t          count;             /* number of keys */
} journal_t;


static const option_t  options[] = {
    { 0, "keys", NULL, offsetof(journal_t, keys), options_take_flag,
      "print only the keys, one per line, in the order in which they were "
      "added; if a key contains a line end, print an error and no keys" },
    { '0', "null", NULL, offsetof(journal_t, null), options_take_flag,
      "with --keys: end each key with a zero byte instead of a line end; "
      "build, add and test read that with -0; if a key contains a zero byte, "
      "print an error and no keys" },
    { 'q', "quiet", NULL, offsetof(journal_t, quiet), options_take_flag,
      "print only errors and, with --keys, the keys" },
    { 0, "json", NULL, offsetof(journal_t, json), options_take_flag,
      "print JSON: an object for each segment or, with --keys, for each key; "
      "build and add read keys in this form with --from json" },
    { 0 }
};


static int
worse(int a, int b)
{
    return a > b ? a : b;
}


/* ---- files ---- */


static int
unreadable(piece_t *piece)
{
    snprintf(piece->error, sizeof(piece->error), "cannot be read: %s%s",
             strerror(errno), cli_advice(errno));
    piece->rc = CLI_ERROR;

    return -1;
}


static int
read_header(piece_t *piece, int fd, uint64_t size)
{
    uint8_t  header[BLOOM_SEGMENT_HEADER];

    memset(header, 0, sizeof(header));

    if (regular_file_read_at(fd, header, sizeof(header), 0) == -1) {
        return unreadable(piece);
    }

    piece->kind = bloom_segment_decode(&piece->segment, header, size,
                                       piece->error);

    if (piece->kind != BLOOM_SEGMENT_OK) {
        piece->rc = piece->kind == BLOOM_SEGMENT_DAMAGED ? CLI_NO : CLI_ERROR;
        return -1;
    }

    return 0;
}


/* Reads a segment.  It appends zeros to a segment that was cut off, enough to
 * pad a record. */
static int
read_data(piece_t *piece, int fd, size_t size)
{
    piece->len = (size + 7) & ~(size_t) 7;
    piece->data = cli_alloc(piece->len);
    memset(piece->data, 0, piece->len);

    if (regular_file_read_at(fd, piece->data, size, 0) == -1) {
        return unreadable(piece);
    }

    return 0;
}


/* Reads a segment's header and, with `all`, the rest.  The caller prints
 * errors. */
static void
read_segment(piece_t *piece, int all)
{
    int          fd;
    struct stat  st;

    piece->rc = CLI_OK;
    fd = regular_file_open(piece->path, &st, piece->error,
                           sizeof(piece->error),
                           "a segment, or the directory of a journal");

    if (fd == -1) {
        piece->rc = CLI_ERROR;
        return;
    }

    if (read_header(piece, fd, (uint64_t) st.st_size) == 0 && all) {
        (void) read_data(piece, fd, (size_t) st.st_size);
    }

    close(fd);
}


/* ---- records ---- */


static void
print_key(journal_t *journal, const piece_t *piece, uint64_t position,
    const bloom_record_t *record, const bloom_key_t *key)
{
    char         time[UNITS_LEN], shown[KEYFORM_SHOWN];
    json_t       json;
    const char  *why;

    why = journal->json ? NULL : key_print_refused(key, journal->null);

    if (why != NULL && !journal->refused) {
        cli_error("%s: position %" PRIu64 ": the key \"%s\" %s", piece->path,
                  position, keyform_show(shown, key), why);
        journal->refused = 1;
    }

    if (journal->checking || journal->refused) {
        return;
    }

    if (!journal->json) {
        key_print(key, journal->null, journal->printed++ == 0);
        return;
    }

    json_begin(&json, 1);
    json_key(&json, key);

    json_count(&json, "sequence", record->sequence);
    json_text(&json, "time", format_time(time, record->time));
    json_count(&json, "position", position);
    json_end(&json);
}


static void
take_record(journal_t *journal, piece_t *piece, uint64_t position,
    bloom_record_t *record)
{
    bloom_key_t  key;

    if (journal->sequence != 0) {
        piece->missing += record->sequence - journal->sequence;
    }

    if (piece->records == 0) {
        piece->first_sequence = record->sequence;
        piece->first_time = record->time;
    }

    piece->last_sequence = record->sequence;
    piece->last_time = record->time;
    piece->records++;
    piece->keys += record->count;

    journal->sequence = record->sequence + 1;

    while (journal->keys && bloom_record_key(record, &key) == 1) {
        print_key(journal, piece, position, record, &key);
    }
}


static void
read_records(journal_t *journal, piece_t *piece)
{
    size_t          at, n;
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

        take_record(journal, piece, piece->segment.base + at, &record);
    }

    piece->torn = bloom_record_tail(piece->data + at, n);

    journal->records += piece->records;
    journal->count += piece->keys;
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
    }

    read_records(journal, piece);
    check_records(piece, records, sizeof(records));

    if (place[0] != '\0' || records[0] != '\0') {
        piece->rc = CLI_NO;
        snprintf(piece->error, sizeof(piece->error), "is damaged: %s%s%s",
                 place, place[0] != '\0' && records[0] != '\0' ? "; " : "",
                 records);
    }
}


/* ---- output ---- */


static void
print_json(const journal_t *journal, const piece_t *piece)
{
    char    time[UNITS_LEN];
    json_t  json;

    static const char  *const results[] = { "ok", "damaged", "unreadable" };

    json_begin(&json, journal->compact);

    json_text(&json, "file", piece->path);
    json_text(&json, "result", results[piece->rc]);

    if (piece->rc != CLI_OK) {
        json_text(&json, "error", piece->error);
    }

    if (piece->data != NULL && piece->rc != CLI_ERROR) {
        json_count(&json, "base", piece->segment.base);
        json_count(&json, "size", piece->segment.size);
        json_text(&json, "created", format_time(time,
                                                piece->segment.created));
        json_count(&json, "used", piece->used);
        json_count(&json, "torn", piece->torn);
        json_count(&json, "broken", piece->broken);
        json_count(&json, "missing", piece->missing);
        json_count(&json, "records", piece->records);
        json_count(&json, "keys", piece->keys);

        if (piece->records != 0) {
            json_count(&json, "first_sequence", piece->first_sequence);
            json_count(&json, "last_sequence", piece->last_sequence);
            json_text(&json, "first_time", format_time(time,
                                                       piece->first_time));
            json_text(&json, "last_time", format_time(time,
                                                      piece->last_time));
        }
    }

    json_end(&json);
}


static void
print_text(const piece_t *piece)
{
    char  first[UNITS_LEN], last[UNITS_LEN];

    visible_name(piece->path);
    printf(": %s, position %" PRIu64 ", %zu of %" PRIu64 " bytes used, %"
           PRIu64 " record%s, %" PRIu64 " key%s",
           piece->rc == CLI_OK ? "ok" : "damaged", piece->segment.base,
           piece->used, piece->segment.size,
           piece->records, CLI_S(piece->records),
           piece->keys, CLI_S(piece->keys));

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
    read_segment(piece, 1);

    if (piece->rc == CLI_OK) {
        verify(journal, piece);
    }

    /* while keys are checked, errors are not printed; they are later */

    if (piece->rc != CLI_OK && !journal->checking) {
        cli_error("%s: %s", piece->path, piece->error);

    } else if (piece->torn != 0 && journal->keys && !journal->quiet
               && !journal->checking)
    {
        cli_warn("%s: a torn tail of %zu byte%s is left out: its keys were "
                 "never acknowledged", piece->path, piece->torn,
                 CLI_S(piece->torn));
    }

    if (journal->json && !journal->keys) {
        print_json(journal, piece);

    } else if (!journal->keys && !journal->quiet && piece->data != NULL
               && piece->rc != CLI_ERROR)
    {
        print_text(piece);
    }

    free(piece->data);
    piece->data = NULL;

    return piece->rc;
}


/* ---- arguments ---- */


static piece_t
piece_of(char *path)
{
    piece_t  piece;

    memset(&piece, 0, sizeof(piece));

    piece.path = path;
    piece.rc = CLI_OK;
    piece.kind = BLOOM_SEGMENT_DAMAGED;  /* until its header is known */

    return piece;
}


static int
show_file(journal_t *journal, char *path)
{
    piece_t  piece;

    piece = piece_of(path);

    journal->sequence = 0;
    journal->before = NULL;

    return show(journal, &piece);
}


static char *
joined(const char *directory, const char *name)
{
    size_t  size;
    char   *path;

    size = strlen(directory) + 1 + strlen(name) + 1;
    path = cli_alloc(size);
    snprintf(path, size, "%s%s%s", directory,
             directory[strlen(directory) - 1] == '/' ? "" : "/", name);

    return path;
}


/* Compares segments by position; those with a damaged header come last. */
static int
by_position(const void *left, const void *right)
{
    const piece_t  *a = left, *b = right;

    if ((a->kind == BLOOM_SEGMENT_OK) != (b->kind == BLOOM_SEGMENT_OK)) {
        return a->kind == BLOOM_SEGMENT_OK ? -1 : 1;
    }

    if (a->kind == BLOOM_SEGMENT_OK && a->segment.base != b->segment.base) {
        return a->segment.base < b->segment.base ? -1 : 1;
    }

    return strcmp(a->path, b->path);
}


/* Returns 1 for a file that is not complete yet, and for a segment that nginx
 * put aside at its start. */
static int
is_no_part(const char *name)
{
    size_t  len;

    len = strlen(name);

    return (len > 4 && strcmp(name + len - 4, ".tmp") == 0)
           || strncmp(name, "damaged.", 8) == 0;
}


/*
 * Removes segments that a compacted segment replaces: all that begin before its
 * end.  They remain if the process died before it removed them.  Returns how
 * many segments are left.
 */
static size_t
without_replaced(piece_t *pieces, size_t n)
{
    size_t       i, kept;
    uint64_t     end;
    const char  *name;

    for (i = 0, end = 0; i < n; i++) {
        name = strrchr(pieces[i].path, '/') + 1;

        if (strncmp(name, "compact.", 8) == 0
            && pieces[i].kind == BLOOM_SEGMENT_OK)
        {
            end = pieces[i].segment.base + pieces[i].segment.size;
        }
    }

    for (i = 0, kept = 0; i < n; i++) {
        name = strrchr(pieces[i].path, '/') + 1;

        if (pieces[i].kind == BLOOM_SEGMENT_OK
            && pieces[i].segment.base < end
            && strncmp(name, "compact.", 8) != 0)
        {
            free(pieces[i].path);
            continue;
        }

        pieces[kept++] = pieces[i];
    }

    return kept;
}


/*
 * Lists the files of a directory that are segments, or may be damaged ones.
 * Returns how many; or -1 after a message, which is not printed while keys are
 * checked.
 */
static ssize_t
list_directory(const journal_t *journal, const char *directory,
    piece_t **pieces)
{
    DIR            *dir;
    size_t          n, room;
    piece_t         piece;
    struct stat     st;
    struct dirent  *entry;

    dir = opendir(directory);

    if (dir == NULL) {
        if (!journal->checking) {
            cli_error("%s: cannot be opened: %s%s", directory, strerror(errno),
                      cli_advice(errno));
        }

        return -1;
    }

    n = 0;
    room = 0;
    *pieces = NULL;

    while ((errno = 0, entry = readdir(dir)) != NULL) {

        piece = piece_of(joined(directory, entry->d_name));

        if (!is_no_part(entry->d_name)
            && stat(piece.path, &st) == 0 && S_ISREG(st.st_mode))
        {
            read_segment(&piece, 0);

        } else {
            piece.kind = BLOOM_SEGMENT_NONE;
        }

        if (piece.kind == BLOOM_SEGMENT_NONE) {
            free(piece.path);
            continue;
        }

        if (n == room) {
            room = 2 * room + 16;
            *pieces = cli_realloc(*pieces, room * sizeof(piece_t));
        }

        (*pieces)[n++] = piece;
    }

    if (errno != 0) {
        if (!journal->checking) {
            cli_error("%s: cannot be read: %s%s", directory, strerror(errno),
                      cli_advice(errno));
        }

        n = 0;

    } else if (n == 0 && !journal->checking) {
        cli_error("%s: contains no segment of a journal: no key was added to "
                  "the zone yet, or this is not the directory of a zone, which "
                  "is the zone's name under bloom_state_path", directory);
    }

    n = without_replaced(*pieces, n);

    closedir(dir);

    return n != 0 ? (ssize_t) n : -1;
}


static int
show_directory(journal_t *journal, const char *directory)
{
    int       rc;
    ssize_t   i, n;
    piece_t  *pieces;

    n = list_directory(journal, directory, &pieces);

    if (n == -1) {
        return CLI_ERROR;
    }

    qsort(pieces, (size_t) n, sizeof(piece_t), by_position);

    rc = CLI_OK;

    journal->sequence = 0;
    journal->before = NULL;
    journal->records = 0;
    journal->count = 0;

    for (i = 0; i < n; i++) {
        rc = worse(rc, show(journal, &pieces[i]));

        if (pieces[i].kind == BLOOM_SEGMENT_OK) {
            journal->before = &pieces[i];
        }
    }

    if (!journal->keys && !journal->quiet && !journal->json) {
        visible_name(directory);
        printf(": %s, %zd segment%s, %" PRIu64 " record%s, %" PRIu64
               " key%s\n", rc == CLI_OK ? "ok" : "damaged", n, CLI_S(n),
               journal->records, CLI_S(journal->records),
               journal->count, CLI_S(journal->count));
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
    int  i, rc;

    for (i = 0, rc = CLI_OK; i < n; i++) {
        rc = worse(rc, is_directory(operands[i])
                       ? show_directory(journal, operands[i])
                       : show_file(journal, operands[i]));
    }

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

    if (journal->null && (!journal->keys || journal->json)) {
        return cli_misuse("-0 needs --keys, and cannot be used with --json");
    }

    journal->compact = n > 1 || is_directory(operands[0]);

    /* print all keys or none: a reader of a pipe does not see the exit
     * status */

    if (journal->keys && !journal->json) {
        journal->checking = 1;
        (void) show_all(journal, operands, n);
        journal->checking = 0;

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
    { "keys", "the number of keys" },
    { "first_sequence",
      "the sequence number of the first record, if there is one" },
    { "last_sequence",
      "the sequence number of the last record, if there is one" },
    { "first_time", "the time of the first record, if there is one" },
    { "last_time", "the time of the last record, if there is one" },
    { NULL, "with --keys, for each key, an object per line:" },
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
    .does = "verify a journal and show the keys added to a zone",
    .synopsis = "[OPTION...] SEGMENT...|DIRECTORY...",
    .about =
        "Verifies every record in segments of a journal. A journal holds the "
        "keys that were added to a zone after its image was built. For each "
        "segment, the command prints its position in the journal, how many "
        "bytes are used, and how many records and keys it has, with the "
        "sequence numbers and times of the first and the last record.\n\n"
        "A directory means all segments in it, in order of position; other "
        "files there are ignored. If a segment is missing or a record is "
        "damaged, the command reports that and continues with the next "
        "record. It may run while nginx appends to the journal.\n\n"
        "A torn tail is a record that was being written when the process or "
        "the machine stopped. It is reported but is not an error: its keys "
        "were never acknowledged.\n\n"
        "With --keys, the command prints the keys of all valid records exactly "
        "as they were added, or no key. If a key contains the byte that ends "
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
