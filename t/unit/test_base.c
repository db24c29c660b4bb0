/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that entries of the file "base" are written and read with
 * all their values, as the golden entries of t/golden/base have them, and that
 * the right one of two entries counts, whatever is damaged.
 */

#include <glob.h>

#include "base_files.h"

#define VECTORS   "t/golden/base/*.txt"


TEST(an_entry_is_read_back_with_all_its_values)
{
    int           i, at;
    uint8_t       file[BLOOM_BASE_SIZE];
    uint64_t      seed;
    const char   *wrong;
    bloom_base_t  base;

    seed = 1;

    for (i = 0; i < 20000; i++) {
        any_base(&seed, &base);

        wrong = bloom_base_check(&base);

        if (wrong != NULL) {
            fail_msg("entry %d %s", i, wrong);
        }

        at = i % 2;

        memset(file, 0, sizeof(file));
        memset(file + at * BLOOM_BASE_ENTRY, 0xcc, BLOOM_BASE_ENTRY);
        bloom_base_encode(&base, file + at * BLOOM_BASE_ENTRY);

        counts(file, sizeof(file), at, &base);
    }
}


/* ---- golden entries ---- */


static void
parse_hex(const char *text, uint8_t *bytes, size_t len)
{
    int     n;
    size_t  i;

    for (i = 0; i < len; i++, text += n) {
        assert_int_equal(sscanf(text, " %2hhx%n", &bytes[i], &n), 1);
    }
}


/* Parse a number, or a position, "HIGH-LOW" or "HIGH".  Return its end. */

static const char *
read_number(const char *text, uint64_t *number)
{
    char  *end;

    *number = strtoull(text, &end, 10);
    assert_true(end != text);

    return end;
}


static const char *
read_position(const char *text, bloom_position_t *position)
{
    text = read_number(text, &position->high);

    return *text == '-' ? read_number(text + 1, &position->low) : text;
}


/* Parse the value of a field, as t/golden/README.md describes it. */

static void
parse_number(const char *text, void *number)
{
    read_number(text, number);
}


static void
parse_id(const char *text, void *id)
{
    parse_hex(text, id, 16);
}


static void
parse_kind(const char *text, void *kind)
{
    size_t  i;

    static const char  *const kinds[] = {
        "empty", "file", "upload", "checkpoint"
    };

    for (i = 0; i < array_len(kinds); i++) {
        if (strcmp(text, kinds[i]) == 0) {
            *(bloom_base_e *) kind = (bloom_base_e) i;
            return;
        }
    }

    fail_msg("there is no kind \"%s\"", text);
}


static void
parse_point(const char *text, void *value)
{
    bloom_point_t  *point = value;

    text = read_number(text, &point->position);
    text = read_number(text, &point->sequence);
    text = read_number(text, &point->time);
    text = read_number(text, &point->removals.keys);
    read_number(text, &point->removals.bytes);
}


static void
parse_place(const char *text, void *value)
{
    bloom_reached_t  *place = value;

    text = read_number(text, &place->source);
    text = read_position(text, &place->position);
    text = read_position(text, &place->gap);
    text = read_number(text, &place->lost);
    text = read_number(text, &place->digest.value);
    text = read_position(text, &place->digest.since);
    read_position(text, &place->due);
}


static void
parse_accepted(const char *text, void *value)
{
    bloom_accepted_t  *accepted = value;

    parse_hex(text, accepted->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    text += strcspn(text, " ");
    text = read_number(text, &accepted->keys);
    text = read_number(text, &accepted->as_of);
    text = read_number(text, &accepted->loaded);
    read_position(text, &accepted->position);
}


static void
parse_checksum(const char *text, void *value)
{
    *(uint32_t *) value = (uint32_t) strtoul(text, NULL, 16);
}


#define at(member)  offsetof(bloom_base_t, member)

static const struct {
    const char  *name;
    size_t       at;
    void       (*parse)(const char *text, void *value);
} fields[] = {
    { "number", at(number), parse_number },
    { "journal", at(journal), parse_id },
    { "kind", at(kind), parse_kind },
    { "build-id", at(build_id), parse_id },
    { "replaced", at(replaced), parse_id },
    { "dropped", at(dropped), parse_number },
    { "floor", at(floor), parse_number },
    { "lost", at(lost), parse_number },
    { "lost-keys", at(lost_keys), parse_number },
    { "from", at(from), parse_point },
    { "from-place", at(from.place), parse_place },
    { "older", at(checkpoint[0]), parse_point },
    { "older-place", at(checkpoint[0].place), parse_place },
    { "newer", at(checkpoint[1]), parse_point },
    { "newer-place", at(checkpoint[1].place), parse_place },
    { "older-checksum", at(checksum[0]), parse_checksum },
    { "newer-checksum", at(checksum[1]), parse_checksum },
    { "accepted", at(accepted[0]), parse_accepted },
    { "accepted-before", at(accepted[1]), parse_accepted }
};


/* Parses a line, "NAME VALUE". */
static void
parse_line(char *line, bloom_base_t *base)
{
    char    *value;
    size_t   i;

    value = line + strcspn(line, " ");
    assert_int_equal(*value, ' ');
    *value++ = '\0';
    value += strspn(value, " ");

    for (i = 0; i < array_len(fields); i++) {
        if (strcmp(line, fields[i].name) == 0) {
            fields[i].parse(value, (uint8_t *) base + fields[i].at);
            return;
        }
    }

    fail_msg("there is no field \"%s\"", line);
}


static void
read_vector(const char *path, bloom_base_t *base,
    uint8_t entry[BLOOM_BASE_ENTRY])
{
    int     bytes, n;
    char    line[1000];
    FILE   *f;
    size_t  at;

    memset(base, 0, sizeof(*base));
    memset(entry, 0, BLOOM_BASE_ENTRY);

    f = fopen(path, "r");
    assert_non_null(f);

    for (bytes = 0; fgets(line, sizeof(line), f) != NULL; /* void */ ) {
        line[strcspn(line, "\n")] = '\0';

        if (bytes) {
            assert_int_equal(sscanf(line, "%8zx:%n", &at, &n), 1);
            assert_true(at <= BLOOM_BASE_ENTRY - 16);
            parse_hex(line + n, entry + at, 16);

        } else if (strcmp(line, "entry") == 0) {
            bytes = 1;

        } else if (line[0] != '\0' && line[0] != '#') {
            parse_line(line, base);
        }
    }

    fclose(f);

    assert_true(bytes);
}


/* t/tool/golden-base.t compares the same entries with a second writer. */
TEST(the_golden_entries_are_written_and_read)
{
    glob_t        found;
    size_t        i, at;
    uint8_t       file[BLOOM_BASE_SIZE], made[BLOOM_BASE_ENTRY];
    bloom_base_t  base;

    if (glob(VECTORS, 0, NULL, &found) != 0) {
        fail_msg("no " VECTORS " here; run it from the top directory of the "
                 "checkout");
    }

    for (i = 0; i < found.gl_pathc; i++) {
        memset(file, 0, sizeof(file));
        read_vector(found.gl_pathv[i], &base, file);

        memset(made, 0xcc, sizeof(made));
        bloom_base_encode(&base, made);

        for (at = 0; at < BLOOM_BASE_ENTRY; at++) {
            if (made[at] != file[at]) {
                fail_msg("%s: byte %zu is made as 0x%02x, and it is 0x%02x "
                         "there", found.gl_pathv[i], at, made[at], file[at]);
            }
        }

        counts(file, sizeof(file), 0, &base);
    }

    globfree(&found);
}


/* ---- which entry counts ---- */


typedef struct {
    uint8_t       data[BLOOM_BASE_SIZE];
    bloom_base_t  base[2];
} file_t;


/* Makes a file with two valid entries of a journal, with these numbers. */
static void
create(file_t *file, uint64_t seed, uint64_t number0, uint64_t number1)
{
    int  i;

    for (i = 0; i < 2; i++) {
        any_base(&seed, &file->base[i]);
    }

    file->base[0].number = number0;
    file->base[1].number = number1;
    memcpy(file->base[1].journal, file->base[0].journal,
           BLOOM_JOURNAL_ID_LEN);

    for (i = 0; i < 2; i++) {
        bloom_base_encode(&file->base[i], file->data + i * BLOOM_BASE_ENTRY);
    }
}


TEST(the_entry_with_the_greater_number_counts)
{
    size_t  i;
    file_t  file;

    static const uint64_t  number[] = {
        1, 2, 0x7fffffff, 0x80000000, UINT32_MAX, (uint64_t) 1 << 32,
        INT64_MAX, (uint64_t) 1 << 63, UINT64_MAX
    };

    for (i = 1; i < array_len(number); i++) {
        create(&file, i, number[i - 1], number[i]);
        counts(file.data, sizeof(file.data), 1, &file.base[1]);

        create(&file, i, number[i], number[i - 1]);
        counts(file.data, sizeof(file.data), 0, &file.base[0]);
    }

    create(&file, 1, 1, UINT64_MAX);
    counts(file.data, sizeof(file.data), 1, &file.base[1]);
}


TEST(a_single_entry_counts_in_either_place)
{
    int     i;
    file_t  file;

    for (i = 0; i < 2; i++) {
        create(&file, 2, 5, 6);
        memset(file.data + (1 - i) * BLOOM_BASE_ENTRY, 0, BLOOM_BASE_ENTRY);
        counts(file.data, sizeof(file.data), i, &file.base[i]);
    }
}


TEST(a_flipped_byte_leaves_the_other_entry)
{
    int     i, older;
    size_t  at;
    file_t  file;

    for (older = 0; older < 2; older++) {
        create(&file, 3, older == 0 ? 5 : 6, older == 0 ? 6 : 5);

        for (at = 0; at < BLOOM_BASE_SIZE; at++) {
            i = at < BLOOM_BASE_ENTRY;

            file.data[at] ^= 0xff;
            counts(file.data, sizeof(file.data), i, &file.base[i]);
            file.data[at] ^= 0xff;

            file.data[at] ^= 1 << at % 8;
            counts(file.data, sizeof(file.data), i, &file.base[i]);
            file.data[at] ^= 1 << at % 8;
        }

        counts(file.data, sizeof(file.data), 1 - older,
               &file.base[1 - older]);
    }
}


/* Entry 0 counts while entry 1 is written over an older one.  Then the machine
 * stops: the disk has the bytes of one up to some byte, and those of the other
 * behind it. */
TEST(an_interrupted_write_leaves_the_other_entry)
{
    int           i;
    size_t        at;
    file_t        file;
    uint8_t       entry[2][BLOOM_BASE_ENTRY], *torn;
    uint64_t      seed;
    bloom_base_t  before;

    create(&file, 4, 5, 6);

    seed = 40;
    any_base(&seed, &before);
    before.number = 4;
    memcpy(before.journal, file.base[0].journal, BLOOM_JOURNAL_ID_LEN);

    torn = file.data + BLOOM_BASE_ENTRY;

    bloom_base_encode(&before, entry[0]);
    memcpy(entry[1], torn, BLOOM_BASE_ENTRY);

    for (i = 0; i < 2; i++) {
        for (at = 1; at < BLOOM_BASE_ENTRY; at++) {
            memcpy(torn, entry[i], at);
            memcpy(torn + at, entry[1 - i] + at, BLOOM_BASE_ENTRY - at);

            if (memcmp(torn, entry[1], BLOOM_BASE_ENTRY) != 0) {
                counts(file.data, sizeof(file.data), 0, &file.base[0]);
            }
        }
    }
}


TEST(of_a_truncated_file_the_whole_entry_counts)
{
    int     older;
    size_t  len;
    file_t  file;

    for (older = 0; older < 2; older++) {
        create(&file, 5, older == 0 ? 5 : 6, older == 0 ? 6 : 5);

        /* zeros replace what is cut off, so these bytes must be others */

        assert_int_not_equal(file.data[BLOOM_BASE_ENTRY - 1], 0);
        assert_int_not_equal(file.data[BLOOM_BASE_SIZE - 1], 0);

        for (len = 1; len < BLOOM_BASE_ENTRY; len++) {
            refused(file.data, len, BLOOM_BASE_DAMAGED,
                    len < 8 ? "entry 0 is not an entry"
                    : "entry 0 has a wrong checksum, and entry 1 is empty");
        }

        for ( /* void */ ; len < BLOOM_BASE_SIZE; len++) {
            counts(file.data, len, 0, &file.base[0]);
        }

        counts(file.data, len, 1 - older, &file.base[1 - older]);
    }
}


TEST(bytes_behind_both_entries_are_ignored)
{
    file_t   file;
    uint8_t  data[BLOOM_BASE_SIZE + 4096];

    create(&file, 6, 5, 6);
    memset(data, 0xcc, sizeof(data));
    memcpy(data, file.data, BLOOM_BASE_SIZE);

    counts(data, BLOOM_BASE_SIZE + 1, 1, &file.base[1]);
    counts(data, sizeof(data), 1, &file.base[1]);
}


TEST(a_file_without_a_valid_entry_is_damaged)
{
    char          error[BLOOM_BASE_ERROR_LEN];
    size_t        at, i;
    file_t        file;
    uint8_t       zeros[BLOOM_BASE_SIZE] = { 0 };
    unsigned      which;
    bloom_base_t  base;

    assert_int_equal(bloom_base_decode(&base, &which, NULL, 0, error),
                     BLOOM_BASE_DAMAGED);
    assert_string_equal(error, "is empty");

    refused(zeros, sizeof(zeros), BLOOM_BASE_DAMAGED,
            "is damaged: it has 8192 bytes, entry 0 is empty, and entry 1 is "
            "empty");
    refused(zeros, 100, BLOOM_BASE_DAMAGED, "it has 100 bytes");
    refused((const uint8_t *) "BLOOMCTL", 8, BLOOM_BASE_DAMAGED,
            "entry 0 is not an entry");

    for (at = 0; at < BLOOM_BASE_ENTRY; at += 7) {
        create(&file, 7, 5, 6);

        for (i = 0; i < 2; i++) {
            file.data[i * BLOOM_BASE_ENTRY + at] ^= 0x10;
        }

        refused(file.data, sizeof(file.data), BLOOM_BASE_DAMAGED,
                at < 8 ? "entry 1 is not an entry" : "entry 1 has a wrong");
    }

    /* an entry in the wrong place */

    create(&file, 8, 5, 6);
    memmove(file.data + 1, file.data, BLOOM_BASE_SIZE - 1);
    refused(file.data, sizeof(file.data), BLOOM_BASE_DAMAGED,
            "is not an entry");
}


TEST(entries_that_contradict_each_other_are_damaged)
{
    file_t  file;

    create(&file, 9, 5, 6);
    file.base[1].journal[15] ^= 1;
    bloom_base_encode(&file.base[1], file.data + BLOOM_BASE_ENTRY);
    refused(file.data, sizeof(file.data), BLOOM_BASE_DAMAGED,
            "different journals; restore the whole directory");

    create(&file, 10, 5, 5);
    refused(file.data, sizeof(file.data), BLOOM_BASE_DAMAGED,
            "two entries with the number 5");

    /* a copy of the whole entry is no contradiction */

    memcpy(file.data + BLOOM_BASE_ENTRY, file.data, BLOOM_BASE_ENTRY);
    counts(file.data, sizeof(file.data), 0, &file.base[0]);
}


/* ---- versions and byte orders ---- */


TEST(an_entry_of_another_version_is_foreign)
{
    int       i;
    size_t    v;
    file_t    file;
    uint8_t  *entry;

    static const struct {
        uint32_t     version;
        const char  *expected;
    } versions[] = {
        { 0, "has version 0, but this program reads version 1; use the program "
             "that wrote it, or move the directory away and lose its keys" },
        { 2, "has version 2, but this program reads version 1; use a newer "
             "program, or move the directory away" },
        { 256, "has version 256," },
        { UINT32_MAX, "has version 4294967295," }
    };

    for (i = 0; i < 2; i++) {
        for (v = 0; v < array_len(versions); v++) {

            create(&file, 11, 5, 6);
            entry = file.data + i * BLOOM_BASE_ENTRY;
            bloom_put32(entry + AT_VERSION, versions[v].version);

            /* with a wrong checksum, it may have any version */

            counts(file.data, sizeof(file.data), 1 - i, &file.base[1 - i]);

            /* the other entry, which is valid, does not count: it may be the
             * older one */

            make_checksum(entry);
            refused(file.data, sizeof(file.data), BLOOM_BASE_FOREIGN,
                    versions[v].expected);

            /* the other values are those of that version */

            bloom_put32(entry + AT_SIZE, 100);
            memset(entry + AT_KIND, 0xcc, AT_CRC - AT_KIND);
            make_checksum(entry);
            memset(file.data + (1 - i) * BLOOM_BASE_ENTRY, 0,
                   BLOOM_BASE_ENTRY);
            refused(file.data, sizeof(file.data), BLOOM_BASE_FOREIGN,
                    versions[v].expected);
        }
    }
}


TEST(an_entry_of_another_byte_order_or_size_is_damaged)
{
    size_t    i;
    file_t    file;
    uint8_t  *entry;

    static const struct {
        size_t       at;
        uint32_t     value;
        const char  *expected;
    } others[] = {
        { AT_ORDER, 0x04030201, "entry 0 has big-endian byte order" },
        { AT_ORDER, 0x01020305, "entry 0 has an unknown byte order" },
        { AT_ORDER, 0, "entry 0 has an unknown byte order" },
        { AT_SIZE, 0, "entry 0 has another size" },
        { AT_SIZE, 4095, "entry 0 has another size" },
        { AT_SIZE, 8192, "entry 0 has another size" },
        { AT_KIND, 4, "entry 0 has an unknown kind" },
        { AT_KIND, 0x80000000, "entry 0 has an unknown kind" },
        { AT_KIND, UINT32_MAX, "entry 0 has an unknown kind" }
    };

    for (i = 0; i < array_len(others); i++) {
        create(&file, 12, 6, 5);
        entry = file.data;
        bloom_put32(entry + others[i].at, others[i].value);
        make_checksum(entry);

        counts(file.data, sizeof(file.data), 1, &file.base[1]);

        memset(file.data + BLOOM_BASE_ENTRY, 0, BLOOM_BASE_ENTRY);
        refused(file.data, sizeof(file.data), BLOOM_BASE_DAMAGED,
                others[i].expected);
    }

    /* a writer on a big-endian machine that copies its numbers as they are has
     * another checksum, too */

    create(&file, 12, 6, 5);
    bloom_put32(file.data + AT_ORDER, 0x04030201);
    memset(file.data + BLOOM_BASE_ENTRY, 0, BLOOM_BASE_ENTRY);
    refused(file.data, sizeof(file.data), BLOOM_BASE_DAMAGED,
            "entry 0 has big-endian byte order");
}


TEST(a_value_in_a_reserved_byte_is_refused)
{
    size_t  at;
    file_t  file;

    for (at = AT_RESERVED; at < AT_CRC; at++) {
        create(&file, 13, 6, 5);
        file.data[at] = 1;
        make_checksum(file.data);

        counts(file.data, sizeof(file.data), 1, &file.base[1]);
    }
}
