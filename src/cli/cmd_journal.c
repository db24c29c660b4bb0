/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom journal` verifies every record in segments of a journal, and shows
 * what they hold, or their keys.
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
#include "keyform.h"
#include "regular_file.h"
#include "units.h"
#include "visible.h"


#define PLURAL(n)  ((n) == 1 ? "" : "s")


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
    uint64_t          broken_at;         /* position of the first */
    uint64_t          missing;           /* records */
} piece_t;

typedef struct {
    int               keys;              /* print these, and nothing else */
    int               null;              /* a zero byte ends each, not LF */
    int               json;
    int               compact;           /* more than one object */
    int               quiet;

    int               checking;          /* the keys, and printing nothing */
    int               refused;           /* a key that cannot be printed */
    uint64_t          printed;           /* keys */

    /* of a directory: what was read before; 0: nothing */
    uint64_t          sequence;          /* of the next record */
    const piece_t    *before;

    uint64_t          records;
    uint64_t          count;             /* of keys */
} journal_t;


static const option_t  options[] = {
    { 0, "keys", NULL, offsetof(journal_t, keys), options_take_flag,
      "print only the keys, one a line, in the order in which they were "
      "added; if a key has a line end, no key is printed, and the exit status "
      "is 2: give -0 or --json" },
    { '0', "null", NULL, offsetof(journal_t, null), options_take_flag,
      "with --keys: end each key with a zero byte instead of a line end, as "
      "-0 of build, add and test reads them; if a key has a zero byte, no key "
      "is printed: give --json" },
    { 'q', "quiet", NULL, offsetof(journal_t, quiet), options_take_flag,
      "print nothing but errors, and the keys with --keys" },
    { 0, "json", NULL, offsetof(journal_t, json), options_take_flag,
      "print JSON; with several segments, an object a line; \"result\" is ok, "
      "damaged or unreadable; with --keys, an object for each key, with "
      "\"key\", \"sequence\" and \"time\" and \"position\" of its record, and "
      "\"key_hex\" if the key is not UTF-8; build and add read these lines "
      "with --from json" },
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
    snprintf(piece->error, sizeof(piece->error), "cannot be read: %s",
             strerror(errno));
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


/* What was cut off counts as zeros: of these, enough to pad a record. */
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


/* The header, and with `all` the rest; what is wrong is told by others. */
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


/* Returns why whoever reads the keys would not get this one as it is, or
 * NULL. */
static const char *
unprintable(const journal_t *journal, const bloom_key_t *key)
{
    if (journal->json) {
        return NULL;
    }

    if (journal->null) {
        return memchr(key->data, '\0', key->len) == NULL ? NULL
               : "has a zero byte, which would end it: give --json instead of "
                 "-0";
    }

    return memchr(key->data, '\n', key->len) == NULL
           && key->data[key->len - 1] != '\r' ? NULL
           : "has a line end in it, which would make it another key: give -0 "
             "(--null) or --json";
}


/* Returns 1 if a file that begins with this key would not be read as keys, or
 * not as this one. */
static int
is_magic(const bloom_key_t *key)
{
    return bloom_key_mark(key->data, key->len) != 0
           || bloom_image_is(key->data, key->len)
           || (key->len >= 2 && key->data[0] == 0x1f && key->data[1] == 0x8b);
}


static void
print_key(journal_t *journal, const piece_t *piece, uint64_t position,
    const bloom_record_t *record, const bloom_key_t *key)
{
    int          end;
    char         time[UNITS_LEN], shown[KEYFORM_SHOWN];
    json_t       json;
    const char  *why;

    why = unprintable(journal, key);

    if (why != NULL && !journal->refused) {
        cli_error("%s: position %" PRIu64 ": the key \"%s\" %s", piece->path,
                  position, keyform_show(shown, key), why);
        journal->refused = 1;
    }

    if (journal->checking || journal->refused) {
        return;
    }

    if (!journal->json) {
        end = journal->null ? '\0' : '\n';

        if (journal->printed++ == 0 && is_magic(key)) {
            putchar(end);                /* an empty key, which counts not */
        }

        visible_data(key->data, key->len);
        putchar(end);
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


/* A segment begins where the one before it ends; "" if it does. */
static void
check_place(const piece_t *piece, const piece_t *before, char *error,
    size_t size)
{
    uint64_t  end;

    error[0] = '\0';
    end = before == NULL ? piece->segment.base
                         : before->segment.base + before->segment.size;

    if (piece->segment.base > end) {
        snprintf(error, size, "the segment before it, from position %" PRIu64
                 " to %" PRIu64 ", is missing", end, piece->segment.base);

    } else if (piece->segment.base < end) {
        snprintf(error, size, "it begins at position %" PRIu64 " and the one "
                 "before it ends at %" PRIu64 ": they are of two journals",
                 piece->segment.base, end);
    }
}


static void
check_records(const piece_t *piece, char *error, size_t size)
{
    int  n;

    n = 0;
    error[0] = '\0';

    if (piece->broken != 0) {
        n = snprintf(error, size, "%" PRIu64 " bytes, the first at position %"
                     PRIu64 ", are no valid record; ", piece->broken,
                     piece->broken_at);
    }

    if (piece->missing != 0) {
        n += snprintf(error + n, size - (size_t) n, "records missing before "
                      "it or in it: %" PRIu64 "; ", piece->missing);
    }

    if (n != 0) {
        snprintf(error + n, size - (size_t) n, "load an image that has their "
                 "keys");
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
        /* nothing follows from the other journal's records */
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
           piece->records, PLURAL(piece->records),
           piece->keys, PLURAL(piece->keys));

    if (piece->records != 0) {
        printf(", sequence %" PRIu64 " to %" PRIu64 ", %s to %s",
               piece->first_sequence, piece->last_sequence,
               format_time(first, piece->first_time),
               format_time(last, piece->last_time));
    }

    if (piece->torn != 0) {
        printf(", then a torn tail of %zu bytes", piece->torn);
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

    /* a check of the keys comes first, and says nothing else */

    if (piece->rc != CLI_OK && !journal->checking) {
        cli_error("%s: %s", piece->path, piece->error);

    } else if (piece->torn != 0 && journal->keys && !journal->quiet
               && !journal->checking)
    {
        cli_warn("%s: a torn tail of %zu bytes is left out", piece->path,
                 piece->torn);
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


/* By position; what has none, since its header is damaged, at the end. */
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


/* A file that is not whole yet, or a segment that a start has put aside. */
static int
is_no_part(const char *name)
{
    size_t  len;

    len = strlen(name);

    return (len > 4 && strcmp(name + len - 4, ".tmp") == 0)
           || strncmp(name, "damaged.", 8) == 0;
}


/*
 * A segment that was compacted counts, and none below its end, from the time
 * that it is named so; what is left of them when a process died is passed over.
 * How many there are then.
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
 * The files of a directory that are segments, or may be ones; how many, or -1
 * having said that it cannot be read, unless the keys are being checked.
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
            cli_error("%s: cannot be opened: %s", directory, strerror(errno));
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
            cli_error("%s: cannot be read: %s", directory, strerror(errno));
        }

        n = 0;

    } else if (n == 0 && !journal->checking) {
        cli_error("%s: has no segment of a journal: no key was added to the "
                  "zone yet, or it is no zone's directory; name "
                  "bloom_state_path/ZONE", directory);
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
               " key%s\n",
               rc == CLI_OK ? "ok" : "damaged", n, PLURAL(n),
               journal->records, PLURAL(journal->records),
               journal->count, PLURAL(journal->count));
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
        return cli_misuse("no segment and no directory is named");
    }

    if (journal->null && (!journal->keys || journal->json)) {
        return cli_misuse("-0 says how --keys end, and JSON has lines");
    }

    journal->compact = n > 1 || is_directory(operands[0]);

    /* all keys or none: who reads them from a pipe does not see the exit
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

const command_t  cmd_journal = {
    .name = "journal",
    .does = "verify a journal and show the keys added to a zone",
    .synopsis = "[OPTION...] SEGMENT...|DIRECTORY...",
    .about =
        "Verifies every record in segments of a journal, which has the keys "
        "added to a zone since its image. Prints for each segment its "
        "position in the journal, how much of it is used, and the number of "
        "records and keys, with the sequence numbers and times of the "
        "records. A directory stands for all segments in it, in order of "
        "position; other files in it are ignored. Segments that are missing "
        "and records that are damaged are reported, and the records before "
        "and after them are shown. nginx may append meanwhile.\n\n"
        "A torn tail, which is a record that was being written when the "
        "machine or the process stopped, is mentioned but is not an error: "
        "its keys were never acknowledged.\n\n"
        "With --keys, whoever reads the keys gets all of them as they were "
        "added, or none: if one cannot be printed, as it has a line end, or, "
        "with -0, a zero byte, no key is printed, and the error tells its "
        "position. JSON has any key. On a terminal, control characters in "
        "keys are shown as \\xNN.",
    .options = options,
    .values = &values,
    .status = "0 all segments are good, with or without torn tails; 1 "
              "something is damaged or missing; 2 some file could not be read "
              "or is not part of a journal.",
    .examples =
        "ngx-bloom journal /var/lib/nginx/bloom/ids\n"
        "ngx-bloom journal --keys -0 DIRECTORY | ngx-bloom build -0 -o "
        "added.bloom\n"
        "ngx-bloom journal --keys --json DIR | ngx-bloom build --from json -o "
        "a.bloom\n",
    .run = run
};
