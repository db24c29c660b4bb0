/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file recognizes what is no list of keys by its first bytes, and text by
 * its lines.
 */

#include <string.h>

#include "bloom_ascii.h"
#include "bloom_image.h"
#include "bloom_not_keys.h"
#include "bloom_utf8.h"


#define NOT    ", not a list of keys; "
#define ICONV(from)                                                           \
    NOT "\"iconv -f " from " -t UTF-8 FILE\" converts it"
#define UNPACK(command)  NOT "\"" command "\" decompresses it"
#define LISTS(command)   NOT "\"" command "\" prints the files in it"
#define EXPORT  NOT "export its keys as text, one on each line"
#define SQL     NOT "export one column, as with psql -Atc \"SELECT name FROM "  \
                "table\" or mysql -NBe \"SELECT name FROM table\""
#define JSON    NOT "\"jq -r '.[]' FILE\" prints the texts of an array, and "  \
                "\"jq -r '.[].name' FILE\" a member of each object"

/* A shorter text is not called binary: a few keys may have any bytes. */
#define BINARY_LEAST   64

/* Mean bytes between line ends, which random bytes exceed and keys do not. */
#define BINARY_LINE    100

/* How much of a line is searched. */
#define STATEMENT_MAX  4096

#define TAR_HEADER     512


/* What files of each kind begin with. */
static const struct {
    const char  *magic;
    size_t       len;
    const char  *what;
} kinds[] = {

#define KIND(magic, what)  { magic, sizeof(magic) - 1, what }

    /* UTF-32 first, which begins like UTF-16 */

    KIND("\xff\xfe\0\0", "is UTF-32" ICONV("UTF-32LE")),
    KIND("\0\0\xfe\xff", "is UTF-32" ICONV("UTF-32BE")),
    KIND("\xff\xfe", "is UTF-16" ICONV("UTF-16LE")),
    KIND("\xfe\xff", "is UTF-16" ICONV("UTF-16BE")),

    KIND("\x1f\x8b", "is compressed by gzip" UNPACK("gunzip -c FILE")),
    KIND("\xfd" "7zXZ\0", "is compressed by xz" UNPACK("xz -dc FILE")),
    KIND("\x28\xb5\x2f\xfd", "is compressed by zstd" UNPACK("zstd -dc FILE")),
    KIND("\x04\x22\x4d\x18", "is compressed by lz4" UNPACK("lz4 -dc FILE")),
    KIND("\x02\x21\x4c\x18", "is compressed by lz4" UNPACK("lz4 -dc FILE")),
    KIND("\x5d\0\0", "is compressed by lzma" UNPACK("xz -dc FILE")),
    KIND("LZIP\1", "is compressed by lzip" UNPACK("lzip -dc FILE")),
    KIND("\x89LZO\0\r\n", "is compressed by lzop" UNPACK("lzop -dc FILE")),
    KIND("\x1f\x9d", "is compressed by compress" UNPACK("gunzip -c FILE")),

    KIND("PK\3\4", "is a zip archive, or a document that is one"
                   LISTS("unzip -p FILE")),
    KIND("PK\5\6", "is an empty zip archive" NOT "copy the file again"),
    KIND("PK\7\10", "is a part of a zip archive" NOT "put the parts together "
                    "with \"zip -s 0 FILE --out WHOLE\""),
    KIND("7z\xbc\xaf\x27\x1c", "is a 7z archive" LISTS("7z e -so FILE")),
    KIND("Rar!\x1a\7", "is a rar archive" LISTS("unrar p -inul FILE")),
    KIND("MSCF\0\0\0\0", "is a cabinet archive" LISTS("cabextract -p FILE")),
    KIND("!<arch>\n", "is an ar archive" LISTS("ar p FILE")),

    KIND("%PDF-", "is a PDF" NOT "\"pdftotext FILE -\" prints its text"),
    KIND("{\\rtf", "is an RTF document" EXPORT),
    KIND("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is a document of an office "
                                             "program" EXPORT),
    KIND("SQLite format 3\0", "is an SQLite database" NOT "\"sqlite3 FILE "
                              "'SELECT domain FROM gravity'\" prints a column, "
                              "here that of Pi-hole's domains"),
    KIND("PGDMP", "is a dump that pg_restore reads" SQL),
    KIND("PAR1\x15", "is a Parquet file" EXPORT),
    KIND("\x7f" "ELF", "is a program" NOT "check the name")
};

#define KINDS  (sizeof(kinds) / sizeof(kinds[0]))

/* How the first tag of a web page begins, without "<". */
static const char *const  tags[] = {
    "!doctype", "html", "head", "body", "script", "title", "meta", "?xml"
};

#define TAGS  (sizeof(tags) / sizeof(tags[0]))

/* The comments with which dumps begin. */
static const char *const  dumps[] = {
    "-- PostgreSQL database dump", "-- MySQL dump", "-- MariaDB dump",
    "-- phpMyAdmin SQL Dump"
};

#define DUMPS  (sizeof(dumps) / sizeof(dumps[0]))


static int
is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}


static void
skip(bloom_key_t *text, size_t len)
{
    text->data += len;
    text->len -= len;
}


static void
skip_blanks(bloom_key_t *text)
{
    while (text->len != 0 && is_blank(text->data[0])) {
        skip(text, 1);
    }
}


/* Takes the next line without the blanks at its ends.  Returns 0 if no line is
 * left.  A line without an end is one only if `last`. */
static int
next_line(bloom_key_t *text, bloom_key_t *line, int last)
{
    const uint8_t  *pos;

    pos = text->data;

    if (!bloom_key_next(line, &pos, text->data + text->len, BLOOM_SPLIT_LINES,
                        last))
    {
        return 0;
    }

    skip(text, (size_t) (pos - text->data));
    skip_blanks(line);

    while (line->len != 0 && is_blank(line->data[line->len - 1])) {
        line->len--;
    }

    return 1;
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


/* Returns 1 if a text has `word` at its end, with A to Z as a to z. */
static int
ends(const bloom_key_t *text, const char *word)
{
    bloom_key_t  end;

    if (text->len < strlen(word)) {
        return 0;
    }

    end = *text;
    skip(&end, text->len - strlen(word));

    return begins(&end, word);
}


/* ---- files that their first bytes tell ---- */

/* Checks the sum of a tar header, as "ustar" alone may be in a key. */
static int
is_tar(const uint8_t *data, size_t len)
{
    size_t    i;
    unsigned  sum, stated;

    if (len < TAR_HEADER || memcmp(data + 257, "ustar", 5) != 0) {
        return 0;
    }

    for (i = 0, sum = 0; i < TAR_HEADER; i++) {
        sum += i >= 148 && i < 156 ? ' ' : data[i];
    }

    for (i = 148, stated = 0; i < 156; i++) {
        if (data[i] >= '0' && data[i] <= '7') {
            stated = stated * 8 + (data[i] - '0');
        }
    }

    return sum == stated;
}


/* "BZh9" alone may be a key: a block follows, or the end of the data. */
static int
is_bzip2(const uint8_t *data, size_t len)
{
    return len >= 10 && memcmp(data, "BZh", 3) == 0
           && data[3] >= '1' && data[3] <= '9'
           && (memcmp(data + 4, "\x31\x41\x59\x26\x53\x59", 6) == 0
               || memcmp(data + 4, "\x17\x72\x45\x38\x50\x90", 6) == 0);
}


/* A frame that decoders skip, as pzstd writes it first. */
static int
is_zstd_skipped(const uint8_t *data, size_t len)
{
    return len >= 4 && (data[0] & 0xf0) == 0x50
           && memcmp(data + 1, "\x2a\x4d\x18", 3) == 0;
}


static const char *
by_magic(const uint8_t *data, size_t len)
{
    size_t  i;

    if (bloom_image_is(data, len)) {
        return "is an image" NOT "use \"ngx-bloom merge\" to combine images";
    }

    for (i = 0; i < KINDS; i++) {
        if (len >= kinds[i].len
            && memcmp(data, kinds[i].magic, kinds[i].len) == 0)
        {
            return kinds[i].what;
        }
    }

    return is_tar(data, len) ? "is a tar archive" LISTS("tar -xOf FILE")
           : is_bzip2(data, len) ? "is compressed by bzip2"
                                   UNPACK("bunzip2 -c FILE")
           : is_zstd_skipped(data, len) ? "is compressed by zstd"
                                          UNPACK("zstd -dc FILE")
           : NULL;
}


/* ---- bytes that text does not have ---- */

/* How many zero bytes are at each position modulo 4, and how many line ends of
 * UTF-16 there are. */
typedef struct {
    size_t  zero[4];
    size_t  ends;                        /* all LF */
    size_t  little;
    size_t  big;
} zeros_t;


static void
count_zeros(zeros_t *n, const uint8_t *data, size_t len)
{
    size_t  i;

    memset(n, 0, sizeof(*n));

    for (i = 0; i < len; i++) {
        n->zero[i & 3] += data[i] == '\0';

        if (data[i] == '\n') {
            n->ends++;
            n->little += (i & 1) == 0 && i + 1 < len && data[i + 1] == '\0';
            n->big += (i & 1) == 1 && data[i - 1] == '\0';
        }
    }
}


/* Recognizes UTF-16 in one byte order: zero bytes at every other place, such as
 * in ASCII characters and in line ends.  A short text has only the line ends. */
static int
is_wide(const zeros_t *n, size_t len, size_t high, size_t low, size_t line_ends)
{
    size_t  pairs;

    pairs = len / 2;

    return high != 0 && high >= pairs / 8 && low <= high / 16
           && (line_ends != 0 || (n->ends == 0 && high == pairs && pairs > 1));
}


static const char *
by_zeros(const uint8_t *data, size_t len)
{
    size_t   quads, even, odd;
    zeros_t  n;

    if (memchr(data, '\0', len) == NULL) {
        return NULL;
    }

    count_zeros(&n, data, len & ~(size_t) 3);
    quads = len / 4;

    if (quads > 1 && n.zero[3] == quads && n.zero[0] == 0
        && n.zero[2] >= quads - quads / 8)
    {
        return "is UTF-32" ICONV("UTF-32LE");
    }

    if (quads > 1 && n.zero[0] == quads && n.zero[3] == 0
        && n.zero[1] >= quads - quads / 8)
    {
        return "is UTF-32" ICONV("UTF-32BE");
    }

    count_zeros(&n, data, len);
    even = n.zero[0] + n.zero[2];
    odd = n.zero[1] + n.zero[3];

    if (is_wide(&n, len, odd, even, n.little)) {
        return "is UTF-16" ICONV("UTF-16LE");
    }

    return is_wide(&n, len, even, odd, n.big)
           ? "is UTF-16" ICONV("UTF-16BE") : NULL;
}


/* Returns how many bytes are no part of a character in UTF-8. */
static size_t
count_invalid(const uint8_t *data, size_t len)
{
    size_t  i, n, invalid;

    for (i = 0, invalid = 0; i < len; i += n != 0 ? n : 1) {
        n = bloom_utf8_len(data + i, len - i);
        invalid += n == 0;
    }

    return invalid;
}


/*
 * Recognizes data that no magic tells.  In random bytes, one of nine is a
 * control character, one of 256 is a line end, and most bytes from 0x80 on are
 * not valid UTF-8.  Keys of such bytes have more line ends, and keys that are
 * put together with zero bytes, such as "a\0b", have other characters.
 */
static const char *
by_controls(const uint8_t *data, size_t len)
{
    size_t  i, zeros, returns, ends, controls;

    for (i = 0, zeros = 0, returns = 0, ends = 0, controls = 0; i < len; i++) {
        zeros += data[i] == '\0';
        returns += data[i] == '\r';
        ends += data[i] == '\n';
        controls += (data[i] < ' ' && !is_blank(data[i])) || data[i] == 0x7f;
    }

    if (len >= BINARY_LEAST
        && (controls > len / 3
            || (controls >= len / 16 && len / (ends + 1) >= BINARY_LINE
                && count_invalid(data, len) >= len / 8)))
    {
        return "is binary data" NOT "export its keys as text, or use -0 if "
               "each key ends with a zero byte";
    }

    if (returns > 1 && ends == 0) {
        return "has CR in place of line ends; \"tr '\\r' '\\n' < FILE\" "
               "converts it";
    }

    return zeros > 1 && ends == 0 && data[len - 1] == '\0'
           ? "has zero bytes in place of line ends; use -0 if each key ends "
             "with a zero byte, or convert it with \"tr '\\0' '\\n' < FILE\""
           : NULL;
}


/* ---- texts ---- */

static const char *
by_tag(const bloom_key_t *text)
{
    size_t       i;
    bloom_key_t  tag;

    if (!begins(text, "<")) {
        return NULL;
    }

    if (begins(text, "<!--")) {
        return "is a web page or XML" NOT "check the address that it is from";
    }

    for (i = 0; i < TAGS; i++) {
        tag = *text;
        skip(&tag, 1);

        if (!begins(&tag, tags[i])) {
            continue;
        }

        skip(&tag, strlen(tags[i]));

        if (tag.len == 0 || is_blank(tag.data[0]) || tag.data[0] == '>') {
            return "is a web page or XML" NOT "check the address that it is "
                   "from";
        }
    }

    return NULL;
}


/* Takes a string of JSON with its quotes.  Returns 0 if there is none. */
static int
next_string(bloom_key_t *text)
{
    size_t  i;

    if (text->len == 0 || text->data[0] != '"') {
        return 0;
    }

    for (i = 1; i < text->len && text->data[i] != '"'; i++) {

        if (text->data[i] < ' ') {
            return 0;
        }

        i += text->data[i] == '\\';
    }

    if (i >= text->len) {
        return 0;
    }

    skip(text, i + 1);
    skip_blanks(text);

    return 1;
}


/* Tells whether the first value of an array, and what follows it, is JSON.
 * "[2001:db8::1]" and "[1] text" may be keys. */
static int
is_array(bloom_key_t text)
{
    if (next_string(&text)) {
        return begins(&text, ",") || begins(&text, "]");
    }

    if (begins(&text, "{") || begins(&text, "[")) {
        skip(&text, 1);
        skip_blanks(&text);

        return begins(&text, "\"") || begins(&text, "{") || begins(&text, "[")
               || begins(&text, "]") || begins(&text, "}")
               || (text.len != 0 && bloom_is_digit(text.data[0]));
    }

    if (text.len == 0 || (text.data[0] != '-' && !bloom_is_digit(text.data[0])))
    {
        return 0;
    }

    while (text.len != 0 && (bloom_is_digit(text.data[0])
                             || memchr("+-.eE", text.data[0], 5) != NULL))
    {
        skip(&text, 1);
    }

    skip_blanks(&text);

    return begins(&text, ",");
}


/* Recognizes a document by its first name or value. */
static const char *
by_json(const bloom_key_t *file, unsigned how)
{
    int          array, is;
    bloom_key_t  text;

    text = *file;
    array = begins(&text, "[");

    if (!array && !begins(&text, "{")) {
        return NULL;
    }

    if (begins(&text, "{\"key\":")) {
        return how & BLOOM_NOT_KEYS_JSON ? NULL
               : "has JSON in its lines; read what \"ngx-bloom journal --keys "
                 "--json\" prints with \"--from json\", or print a member with "
                 "\"jq -r .key FILE\"";
    }

    skip(&text, 1);
    skip_blanks(&text);

    if (begins(&text, array ? "]" : "}")) {
        skip(&text, 1);
        skip_blanks(&text);

        is = text.len == 0 && (how & BLOOM_NOT_KEYS_WHOLE);

    } else if (array) {
        is = is_array(text);

    } else {
        is = next_string(&text) && begins(&text, ":");
    }

    return is ? "is JSON" JSON : NULL;
}


/* Tells whether a line is a statement, or a comment, of a dump. */
static int
is_statement(const bloom_key_t *line)
{
    size_t       i;
    bloom_key_t  rest;

    for (i = 0; i < DUMPS; i++) {
        if (begins(line, dumps[i])) {
            return 1;
        }
    }

    if (begins(line, "COPY ")) {
        return ends(line, " FROM stdin;");
    }

    if (begins(line, "CREATE TABLE ")) {
        return ends(line, "(") || ends(line, ");");
    }

    if (!begins(line, "INSERT INTO ")) {
        return 0;
    }

    rest = *line;

    while (rest.len != 0 && line->len - rest.len < STATEMENT_MAX) {

        if (begins(&rest, " VALUES")) {
            skip(&rest, sizeof(" VALUES") - 1);
            skip_blanks(&rest);

            return rest.len == 0 || rest.data[0] == '(';
        }

        skip(&rest, 1);
    }

    return 0;
}


static const char *
by_statements(bloom_key_t text)
{
    bloom_key_t  line;

    while (next_line(&text, &line, 1)) {
        if (line.len != 0 && memchr("-CcIi", line.data[0], 5) != NULL
            && is_statement(&line))
        {
            return "is a dump of a database" SQL;
        }
    }

    return NULL;
}


/* Returns 1 if a line is only a rule, such as "----+----". */
static int
is_rule(const bloom_key_t *line, const char *with)
{
    size_t  i;

    for (i = 0; i < line->len; i++) {
        if (line->data[i] != (uint8_t) with[0]
            && line->data[i] != (uint8_t) with[1])
        {
            return 0;
        }
    }

    return line->len > 2;
}


/* Recognizes what psql and mysql print for people: a rule below the names of
 * the columns, which have blanks around them, or a rule above. */
static const char *
by_rule(bloom_key_t text)
{
    int          blank;
    bloom_key_t  first, second;

    blank = text.len != 0 && text.data[0] == ' ';

    if (!next_line(&text, &first, 0) || !next_line(&text, &second, 0)
        || !((blank && is_rule(&second, "-+"))
             || (is_rule(&first, "-+") && begins(&first, "+-")
                 && begins(&second, "| "))))
    {
        return NULL;
    }

    return "is a table as a client of a database prints it for people" SQL;
}


/* Recognizes a CSV by quotes around nearly all lines. */
static const char *
by_quotes(bloom_key_t text, unsigned how)
{
    int          whole;
    size_t       quoted, others, comments;
    bloom_key_t  line;

    whole = (how & BLOOM_NOT_KEYS_WHOLE) != 0;
    quoted = 0;
    others = 0;
    comments = 0;

    while (next_line(&text, &line, whole)) {

        if (line.len == 0) {
            continue;
        }

        if (line.len > 1 && line.data[0] == '"'
            && line.data[line.len - 1] == '"')
        {
            quoted++;

        } else if (line.data[0] == '#') {
            comments++;

        } else {
            others++;
        }
    }

    return (quoted > 2 && quoted >= 9 * others)
           || (whole && quoted != 0 && others + comments == 0)
           ? "has nearly all lines in double quotes, as a CSV has them; read "
             "the first column with \"--from csv:1\", or remove the quotes"
           : NULL;
}


const char *
bloom_not_keys(const uint8_t *data, size_t len, unsigned how)
{
    size_t        mark;
    const char   *what;
    bloom_key_t   text, page;

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

    page = text;
    skip_blanks(&page);

    what = by_tag(&page);

    if (what == NULL) {
        what = by_json(&text, how);
    }

    if (what == NULL) {
        what = by_zeros(data, len);
    }

    if (what == NULL) {
        what = by_controls(data, len);
    }

    if (what == NULL) {
        what = by_statements(text);
    }

    if (what == NULL) {
        what = by_rule(text);
    }

    if (what == NULL && (how & BLOOM_NOT_KEYS_LINES)) {
        what = by_quotes(text, how);
    }

    return what;
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
