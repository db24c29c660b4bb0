/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file recognizes what is no list of keys by its first bytes, by how often
 * it has bytes that text does not have, and by its lines.
 */

#include <string.h>

#include "bloom_ascii.h"
#include "bloom_image_decode.h"
#include "bloom_not_keys.h"


#define NOT    ", not a list of keys; "
#define ICONV(from)                                                           \
    NOT "\"iconv -f " from " -t UTF-8 FILE\" converts it"
#define UNPACK(command)  NOT "\"" command "\" decompresses it"
#define LISTS(command)   NOT "\"" command "\" prints the files in it"
#define SQL     NOT "export one column, as with psql -Atc \"SELECT name FROM "  \
                "table\" or mysql -NBe \"SELECT name FROM table\""
#define JSON    NOT "\"jq -r '.[]' FILE\" prints the texts of an array, and "  \
                "\"jq -r '.[].name' FILE\" a member of each object"

#define BLANKS  " \t\r\n"

/* So many bytes tell what kind of bytes a file has. */
#define BYTES_COUNTED  (64 * 1024)

/* A shorter text is not called binary: a few keys may have any bytes. */
#define BINARY_LEAST  64

/* Mean bytes between line ends, which random bytes exceed and keys do not. */
#define BINARY_LINE   100


/*
 * What files of each kind have at their beginning, or behind a first byte that
 * is no delimiter.  Kinds that look like binary data are not named, unless
 * people keep lists in them.
 */
static const struct {
    size_t       at;
    const char  *magic;
    size_t       len;
    const char  *what;
} kinds[] = {

#define KIND(at, magic, what)  { at, magic, sizeof(magic) - 1, what }

    /* UTF-32 first, which begins like UTF-16 */

    KIND(0, "\xff\xfe\0\0", "is UTF-32" ICONV("UTF-32LE")),
    KIND(0, "\0\0\xfe\xff", "is UTF-32" ICONV("UTF-32BE")),
    KIND(0, "\xff\xfe", "is UTF-16" ICONV("UTF-16LE")),
    KIND(0, "\xfe\xff", "is UTF-16" ICONV("UTF-16BE")),

    /* "BZh9" alone may be a key; pzstd begins with a frame to skip */

    KIND(0, "\x1f\x8b", "is compressed by gzip" UNPACK("gunzip -c FILE")),
    KIND(4, "1AY&SY", "is compressed by bzip2" UNPACK("bunzip2 -c FILE")),
    KIND(0, "\xfd" "7zXZ", "is compressed by xz" UNPACK("xz -dc FILE")),
    KIND(0, "\x28\xb5\x2f\xfd", "is compressed by zstd" UNPACK("zstd -dc FILE")),
    KIND(1, "\x2a\x4d\x18", "is compressed by zstd" UNPACK("zstd -dc FILE")),
    KIND(0, "\x04\x22\x4d\x18", "is compressed by lz4" UNPACK("lz4 -dc FILE")),
    KIND(0, "\x5d\0\0", "is compressed by lzma" UNPACK("xz -dc FILE")),

    KIND(0, "PK\3\4", "is a zip archive, or a document that is one"
                      LISTS("unzip -p FILE")),
    KIND(0, "7z\xbc\xaf\x27\x1c", "is a 7z archive" LISTS("7z e -so FILE")),
    KIND(0, "Rar!\x1a\7", "is a rar archive" LISTS("unrar p -inul FILE")),
    KIND(257, "ustar\0", "is a tar archive" LISTS("tar -xOf FILE")),
    KIND(257, "ustar  \0", "is a tar archive" LISTS("tar -xOf FILE")),

    KIND(0, "%PDF-", "is a PDF" NOT "\"pdftotext FILE -\" prints its text"),
    KIND(0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a document of an office "
                                                "program" NOT "export its keys "
                                                "as text"),
    KIND(0, "PGDMP", "is a dump that pg_restore reads" SQL),
    KIND(0, "SQLite format 3\0", "is an SQLite database" NOT "\"sqlite3 FILE "
                                 "'SELECT domain FROM gravity'\" prints a "
                                 "column, here that of Pi-hole's domains")
};

#define KINDS  (sizeof(kinds) / sizeof(kinds[0]))

/* What web pages and XML begin with. */
static const char *const  tags[] = {
    "<!doctype", "<html", "<head", "<?xml", "<!--"
};

#define TAGS  (sizeof(tags) / sizeof(tags[0]))

/* What lines of dumps begin with, and have behind that. */
static const struct {
    const char  *begin;
    const char  *then;
} statements[] = {
    { "COPY ", " FROM stdin;" },
    { "CREATE TABLE ", "(" },
    { "INSERT INTO ", " VALUES" }
};

#define STATEMENTS  (sizeof(statements) / sizeof(statements[0]))


static void
skip(bloom_key_t *text, size_t len)
{
    text->data += len;
    text->len -= len;
}


/* Returns 1 if a text has `word` at its beginning, with A to Z as a to z. */
static int
begins(const bloom_key_t *text, const char *word)
{
    size_t  i;

    for (i = 0; word[i] != '\0'; i++) {
        if (i == text->len
            || bloom_lower(text->data[i]) != bloom_lower((uint8_t) word[i]))
        {
            return 0;
        }
    }

    return 1;
}


/* Returns 1 if a text begins with one of these characters. */
static int
begins_with(const bloom_key_t *text, const char *characters)
{
    return text->len != 0
           && memchr(characters, text->data[0], strlen(characters)) != NULL;
}


static void
skip_all(bloom_key_t *text, const char *characters)
{
    while (begins_with(text, characters)) {
        skip(text, 1);
    }
}


static const char *
by_magic(const uint8_t *data, size_t len)
{
    size_t  i;

    if (bloom_image_is(data, len)) {
        return "is an image" NOT "use \"ngx-bloom merge\" to combine images";
    }

    for (i = 0; i < KINDS; i++) {
        if (len >= kinds[i].at + kinds[i].len
            && (kinds[i].at == 0 || data[0] > ' ')
            && memcmp(data + kinds[i].at, kinds[i].magic, kinds[i].len) == 0)
        {
            return kinds[i].what;
        }
    }

    return NULL;
}


/*
 * Recognizes data by bytes that text does not have.
 *
 * UTF-16 in one byte order has zero bytes at every second place, such as in
 * ASCII characters, and in line ends.  Keys that are put together with zero
 * bytes, such as "a\0b", have other line ends.
 *
 * In random bytes, one of nine is a control character, one of 256 is a line
 * end, and half are above 0x7f.  Keys of such bytes have more line ends.
 */
static const char *
by_bytes(const uint8_t *data, size_t all)
{
    size_t   i, len, ends, returns, controls, high, zeros[2], wide_ends[2];
    uint8_t  c, last;

    len = all < BYTES_COUNTED ? all : BYTES_COUNTED;

    ends = 0;
    returns = 0;
    controls = 0;
    high = 0;
    memset(zeros, 0, sizeof(zeros));
    memset(wide_ends, 0, sizeof(wide_ends));

    for (i = 0, last = 'x'; i < len; i++, last = c) {
        c = data[i];
        ends += c == '\n';
        returns += c == '\r';
        controls += c < '\t' || (c > '\r' && c < ' ') || c == 0x7f;
        high += c > 0x7f;
        zeros[i & 1] += c == '\0';
        wide_ends[0] += last == '\0' && c == '\n';
        wide_ends[1] += last == '\n' && c == '\0';
    }

    for (i = 0; i < 2; i++) {
        if (wide_ends[i] != 0 && zeros[i] >= len / 16
            && zeros[1 - i] <= zeros[i] / 16)
        {
            return i == 0 ? "is UTF-16" ICONV("UTF-16BE")
                   : "is UTF-16" ICONV("UTF-16LE");
        }
    }

    if (len >= BINARY_LEAST
        && (controls > len / 3
            || (controls >= len / 16 && high >= len / 8
                && len / (ends + 1) >= BINARY_LINE)))
    {
        return "is binary data" NOT "export its keys as text, or use -0 if "
               "each key ends with a zero byte";
    }

    if (returns > 1 && ends == 0) {
        return "has CR in place of line ends; \"tr '\\r' '\\n' < FILE\" "
               "converts it";
    }

    return zeros[0] + zeros[1] > 1 && ends == 0 && data[all - 1] == '\0'
           ? "has zero bytes in place of line ends; use -0 if each key ends "
             "with a zero byte, or convert it with \"tr '\\0' '\\n' < FILE\""
           : NULL;
}


/* Takes a string of JSON with its quotes.  Returns 0 if the text does not begin
 * with a string. */
static int
next_string(bloom_key_t *text)
{
    size_t  i;

    if (!begins(text, "\"")) {
        return 0;
    }

    for (i = 1; i < text->len && text->data[i] >= ' '; i++) {

        if (text->data[i] == '"') {
            skip(text, i + 1);
            return 1;
        }

        i += text->data[i] == '\\';
    }

    return 0;
}


/* Recognizes JSON by its first name or value and what follows it.
 * "[2001:db8::1]", "[1] text" and "{user}" may be keys. */
static int
is_json(bloom_key_t text, unsigned how)
{
    int  array, depth;

    array = 0;

    for (depth = 0; begins_with(&text, "[{"); depth++) {
        array = begins_with(&text, "[");
        skip(&text, 1);
        skip_all(&text, BLANKS);
    }

    if (next_string(&text)) {
        skip_all(&text, BLANKS);
        return depth != 0 && begins_with(&text, array ? ",]" : ":");
    }

    skip_all(&text, array ? "+-.eE0123456789" BLANKS : BLANKS);

    if (!begins_with(&text, array ? "]" : "}")) {
        return array && begins_with(&text, ",");
    }

    skip(&text, 1);
    skip_all(&text, BLANKS);

    return depth > 1
           || (depth == 1 && text.len == 0 && (how & BLOOM_NOT_KEYS_WHOLE));
}


/* Recognizes a document by its beginning.  An empty line hides JSON: then the
 * first line is a key. */
static const char *
by_beginning(bloom_key_t text, unsigned how)
{
    size_t  i;

    if (begins(&text, "{\"key\":")) {
        return how & BLOOM_NOT_KEYS_LINES
               ? "has JSON in its lines; read what \"ngx-bloom journal --keys "
                 "--json\" prints with \"--from json\", or print a member with "
                 "\"jq -r .key FILE\""
               : NULL;
    }

    if (is_json(text, how)) {
        return "is JSON" JSON;
    }

    skip_all(&text, BLANKS);

    for (i = 0; i < TAGS; i++) {
        if (begins(&text, tags[i])) {
            return "is a web page or XML" NOT "check the address that it is "
                   "from";
        }
    }

    return NULL;
}


static int
is_statement(const bloom_key_t *line)
{
    size_t       i;
    bloom_key_t  rest;

    for (i = 0; i < STATEMENTS; i++) {

        if (!begins(line, statements[i].begin)) {
            continue;
        }

        for (rest = *line; rest.len != 0; skip(&rest, 1)) {
            if (begins(&rest, statements[i].then)) {
                return 1;
            }
        }
    }

    return 0;
}


/* Recognizes a dump by a statement, and a CSV by quotes around nearly all
 * lines. */
static const char *
by_lines(const uint8_t *pos, const uint8_t *end, unsigned how)
{
    size_t       quoted, others;
    bloom_key_t  line;

    quoted = 0;
    others = 0;

    while (bloom_key_next(&line, &pos, end, BLOOM_SPLIT_LINES, 1)) {

        if (is_statement(&line)) {
            return "is a dump of a database" SQL;
        }

        if (line.len > 1 && line.data[0] == '"'
            && line.data[line.len - 1] == '"')
        {
            quoted++;

        } else if (line.len != 0) {
            others++;
        }
    }

    if (!(how & BLOOM_NOT_KEYS_LINES)) {
        return NULL;
    }

    return (quoted > 2 && quoted >= 9 * others)
           || ((how & BLOOM_NOT_KEYS_WHOLE) && quoted != 0 && others == 0)
           ? "has nearly all lines in double quotes, as a CSV has them; read "
             "the first column with \"--from csv:1\", or remove the quotes"
           : NULL;
}


const char *
bloom_not_keys(const uint8_t *data, size_t len, unsigned how)
{
    size_t        mark;
    const char   *what;
    bloom_key_t   text;

    if (len > BLOOM_NOT_KEYS_BYTES) {
        len = BLOOM_NOT_KEYS_BYTES;
        how &= ~BLOOM_NOT_KEYS_WHOLE;
    }

    what = by_magic(data, len);

    if (what != NULL || len == 0 || (how & BLOOM_NOT_KEYS_NUL)) {
        return what;
    }

    mark = bloom_key_mark(data, len);
    text.data = data + mark;
    text.len = len - mark;

    what = by_beginning(text, how);

    if (what == NULL) {
        what = by_bytes(data, len);
    }

    return what != NULL ? what : by_lines(text.data, data + len, how);
}


const char *
bloom_not_key(const bloom_key_t *key)
{
    if (key->len != 2 || key->data[0] != '\\') {
        return NULL;
    }

    switch (key->data[1]) {

    case 'N':
        return "is how databases write NULL, not a key; leave these rows out "
               "of the query";

    case '.':
        return "ends the data of COPY, and is not a key";

    default:
        return NULL;
    }
}
