/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests recognize files that are no lists of keys by the bytes that their
 * programs write, and leave lists of unusual keys alone.
 */

#include "unit.h"

#include "bloom_not_keys.h"


#define FILE_MAX  2048

/* A file whose bytes may be zero. */
#define BYTES(text)  text, sizeof(text) - 1


typedef struct {
    const char  *data;
    size_t       len;
    const char  *what;                   /* how the answer begins; NULL: keys */
    unsigned     how;
} case_t;


/* Looks at the bytes in memory that ends where they end. */
static const char *
look(const char *data, size_t len, unsigned how)
{
    uint8_t     *copy;
    const char  *what;

    copy = unit_copy(data, len);
    what = bloom_not_keys(copy, len, how);
    free(copy);

    return what;
}


static void
check(const case_t *c, unsigned how)
{
    const char  *what;

    what = look(c->data, c->len, how);

    if (c->what == NULL) {
        if (what != NULL) {
            print_error("\"%.40s\": %s\n", c->data, what);
        }

        assert_null(what);
        return;
    }

    if (what == NULL || strncmp(what, c->what, strlen(c->what)) != 0) {
        print_error("\"%.40s\": %s, expected: %s\n", c->data,
                    what != NULL ? what : "keys", c->what);
    }

    assert_non_null(what);
    assert_memory_equal(what, c->what, strlen(c->what));
}


TEST(first_bytes)
{
    size_t  i;

    static const case_t  cases[] = {
        { BYTES("\xff\xfe" "a\0\n\0"), "is UTF-16, not a list of keys; \"iconv "
          "-f UTF-16LE -t UTF-8 FILE\" converts it" },
        { BYTES("\xfe\xff\0a\0\n"), "is UTF-16, not a list of keys; \"iconv -f "
          "UTF-16BE" },
        { BYTES("\xff\xfe\0\0a\0\0\0"), "is UTF-32, not a list of keys; \"iconv "
          "-f UTF-32LE" },
        { BYTES("\0\0\xfe\xff\0\0\0a"), "is UTF-32, not a list of keys; \"iconv "
          "-f UTF-32BE" },
        { BYTES("\x1f\x8b\x08\0\0\0\0\0\0\x03"), "is compressed by gzip" },
        { BYTES("BZh91AY&SY\x86"), "is compressed by bzip2" },
        { BYTES("\xfd" "7zXZ\0\0\x04"), "is compressed by xz" },
        { BYTES("\x28\xb5\x2f\xfd\x04\x58"), "is compressed by zstd" },
        { BYTES("\x50\x2a\x4d\x18\x04\0\0\0"), "is compressed by zstd" },
        { BYTES("\x04\x22\x4d\x18\x64\x40"), "is compressed by lz4" },
        { BYTES("\x5d\0\0\x80\0\xff"), "is compressed by lzma" },
        { BYTES("PK\3\4\x14\0"), "is a zip archive" },
        { BYTES("7z\xbc\xaf\x27\x1c\0\4"), "is a 7z archive" },
        { BYTES("Rar!\x1a\7\1\0"), "is a rar archive" },
        { BYTES("Rar!\x1a\7\0\xcf"), "is a rar archive" },
        { BYTES("%PDF-1.4\n%\xe2\xe3"), "is a PDF" },
        { BYTES("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0"), "is a document" },
        { BYTES("SQLite format 3\0\x10\0"), "is an SQLite database" },
        { BYTES("PGDMP\1\x0e\0"), "is a dump that pg_restore reads" },

        /* keys, of which some begin like a magic */

        { BYTES("PK\nBZh9\n") }, { BYTES("BZh91AY") }, { BYTES("7z.example\n") },
        { BYTES("Rar!\n") }, { BYTES("P*M\n") }, { BYTES("%PDF\n") }, { BYTES("\xff\n") },
        { BYTES("\x1f\n\x8b\n") }, { BYTES("(\xb5\n") }, { BYTES("") },
        { BYTES("\xef\xbb\xbf") }, { BYTES("\n\x1f\x8b\n") }
    };

    for (i = 0; i < array_len(cases); i++) {
        check(&cases[i], BLOOM_NOT_KEYS_NUL);
        check(&cases[i], 0);
        check(&cases[i], BLOOM_NOT_KEYS_LINES);
    }
}


/* A tar file has "ustar" in its header, and a zero byte behind it, which text
 * does not have at this place. */
TEST(tar)
{
    char    tar[FILE_MAX];
    size_t  i;

    memset(tar, 0, sizeof(tar));
    strcpy(tar, "ids.txt");
    strcpy(tar + 100, "0000644");
    memcpy(tar + 257, "ustar\00000", 8);

    assert_non_null(strstr(look(tar, sizeof(tar), 0), "tar archive"));

    memcpy(tar + 257, "ustar  ", 8);     /* as GNU tar writes it */

    assert_non_null(strstr(look(tar, sizeof(tar), 0), "tar archive"));
    assert_non_null(strstr(look(tar, 512, BLOOM_NOT_KEYS_NUL), "tar archive"));

    for (i = 0; i < sizeof(tar); i++) {
        tar[i] = i % 16 == 15 ? '\n' : 'k';
    }

    memcpy(tar + 257, "ustar", 5);
    assert_null(look(tar, sizeof(tar), 0));
}


/* Text in UTF-16 without a byte order mark */
TEST(wide_text)
{
    size_t  i;

    static const case_t  cases[] = {
        { BYTES("a\0.\0b\0\r\0\n\0c\0"), "is UTF-16, not a list of keys; "
          "\"iconv -f UTF-16LE" },
        { BYTES("\0a\0.\0b\0\n\0c\0"), "is UTF-16, not a list of keys; \"iconv "
          "-f UTF-16BE" },

        /* Cyrillic: only the dot and the line end have zero bytes */

        { BYTES("\x3f\x04\x40\x04.\0\x40\x04\x44\x04\n\0"), "is UTF-16, not a "
          "list of keys; \"iconv -f UTF-16LE" },
        { BYTES("\x04\x3f\x04\x40\0.\x04\x40\x04\x44\0\n"), "is UTF-16, not a "
          "list of keys; \"iconv -f UTF-16BE" },

        /* keys with zero bytes in them */

        { BYTES("a\0b\n") }, { BYTES("a\0b\nsecond\n") },
        { BYTES("\0zero\0\n") }, { BYTES("a\0\n") }, { BYTES("a\0") },
        { BYTES("ab\0cd\nef\0gh\nij\0kl\n") },
        { BYTES("user1\0item1\nuser2\0item20\n") },

        { BYTES("a\0b\0c.example\0"), "has zero bytes in place of line ends" },
        { BYTES("a\rb\r"), "has CR in place of line ends" },
        { BYTES("a\rb") }, { BYTES("a\rb\r\n") }
    };

    for (i = 0; i < array_len(cases); i++) {
        check(&cases[i], BLOOM_NOT_KEYS_LINES | BLOOM_NOT_KEYS_WHOLE);
        assert_null(look(cases[i].data, cases[i].len, BLOOM_NOT_KEYS_NUL));
    }
}


TEST(binary_data)
{
    char      data[FILE_MAX];
    size_t    i;
    uint64_t  seed;

    seed = 1;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (char) unit_random(&seed);
    }

    data[0] = 'x';
    assert_non_null(strstr(look(data, sizeof(data), 0), "is binary data"));
    assert_null(look(data, sizeof(data), BLOOM_NOT_KEYS_NUL));

    memset(data, 0, sizeof(data));
    assert_non_null(strstr(look(data, sizeof(data), 0), "is binary data"));

    /* keys of random bytes, which have line ends */

    for (i = 0; i < sizeof(data); i++) {
        data[i] = i % 21 == 20 ? '\n' : (char) unit_random(&seed);
        data[i] = data[i] == '\0' ? '\1' : data[i];
    }

    assert_null(look(data, sizeof(data), BLOOM_NOT_KEYS_LINES));

    /* a text in an 8-bit character set, and one with controls */

    for (i = 0; i < sizeof(data); i++) {
        data[i] = i % 8 == 7 ? '\n' : (char) (0xe0 + i % 7);
    }

    assert_null(look(data, sizeof(data), 0));

    for (i = 0; i < sizeof(data); i++) {
        data[i] = i % 8 == 7 ? '\n' : i % 8 == 3 ? '\1' : 'k';
    }

    assert_null(look(data, sizeof(data), 0));
}


#define JOURNAL  "{\"key\":\"a\",\"time\":\"x\"}\n"

TEST(documents)
{
    size_t  i;

    static const case_t  cases[] = {
        { BYTES("<!DOCTYPE html>\n"), "is a web page" },
        { BYTES("\xef\xbb\xbf<!doctype HTML>"), "is a web page" },
        { BYTES("\r\n\n <html lang=de>"), "is a web page" },
        { BYTES("<HTML>\n"), "is a web page" },
        { BYTES("<?xml version=\"1.0\"?>"), "is a web page or XML" },
        { BYTES("<head>"), "is a web page" },
        { BYTES("<!-- x -->"), "is a web page" },
        { BYTES("<user>\n") }, { BYTES("<htm>\n") }, { BYTES("<\n") },
        { BYTES("a\n<html>\n") },

        { BYTES("[\"a\",\"b\"]"), "is JSON" },
        { BYTES("[\n  \"a\"\n]\n"), "is JSON" },
        { BYTES("[{\"id\": 1}, {\"id\": 2}]"), "is JSON" },
        { BYTES("[1001, 1002]"), "is JSON" },
        { BYTES("{\"urls\": []}"), "is JSON" },
        { BYTES("{\n \"a\\\"b\" : 1}"), "is JSON" },
        { BYTES("{\"id\":1}\n{\"id\":2}\n"), "is JSON" },
        { BYTES("[[1,2],[3,4]]"), "is JSON" },
        { BYTES("\xef\xbb\xbf[\"a\"]"), "is JSON" },
        { BYTES("[]\n"), "is JSON", BLOOM_NOT_KEYS_WHOLE },
        { BYTES("{ }"), "is JSON", BLOOM_NOT_KEYS_WHOLE },
        { BYTES("[]\nx\n"), NULL, BLOOM_NOT_KEYS_WHOLE },
        { BYTES("[::1]\n[2001:db8::1]\n") }, { BYTES("[1]\n[2]\n") },
        { BYTES("[192.0.2.1]:80\n") }, { BYTES("{user}:1\n") },
        { BYTES("{\"user\"}\n") }, { BYTES("[\"user\" 1\n") },
        { BYTES("[Adblock Plus 2.0]\n||a.example^\n") },
        { BYTES("{\"key\"") }, { BYTES("[") }, { BYTES("{\"a\\") },
        { BYTES("[" JOURNAL "]"), "is JSON" }
    };

    for (i = 0; i < array_len(cases); i++) {
        check(&cases[i], cases[i].how);
        check(&cases[i], cases[i].how | BLOOM_NOT_KEYS_LINES);
        assert_null(look(cases[i].data, cases[i].len, BLOOM_NOT_KEYS_NUL));
    }

    assert_non_null(strstr(look(BYTES(JOURNAL), BLOOM_NOT_KEYS_LINES),
                           "--from json"));
    assert_null(look(BYTES(JOURNAL), 0));
}


TEST(dumps)
{
    size_t  i;

    static const case_t  cases[] = {
        { BYTES("SET x = 0;\n\nCOPY public.urls (id, url) FROM stdin;\n1\tx\n"),
          "is a dump" },
        { BYTES("a\nb\nCOPY urls FROM STDIN;\r\n"), "is a dump" },
        { BYTES("CREATE TABLE `urls` (\n  `id` int\n);\n"), "is a dump" },
        { BYTES("create table urls(domain text);\n"), "is a dump" },
        { BYTES("INSERT INTO `urls` VALUES (1,'a'),(2,'b');\n"), "is a dump" },
        { BYTES("INSERT INTO urls (id, url) VALUES\n(1,'a');"), "is a dump" },
        { BYTES("copy\ncopy shop\nCOPY x FROM y\n") },
        { BYTES("create table\ninsert into\nINSERT INTO x SELECT\n") },
        { BYTES("id\n----\n") }, { BYTES("-- a comment\n") }
    };

    for (i = 0; i < array_len(cases); i++) {
        check(&cases[i], 0);
        check(&cases[i], BLOOM_NOT_KEYS_LINES | BLOOM_NOT_KEYS_WHOLE);
        assert_null(look(cases[i].data, cases[i].len, BLOOM_NOT_KEYS_NUL));
    }
}


#define QUOTED  "has nearly all lines in double quotes"
#define NINE    "\"1\"\n\"2\"\n\"3\"\n\"4\"\n\"5\"\n\"6\"\n\"7\"\n\"8\"\n\"9\"\n"

TEST(quoted_lines)
{
    size_t  i;

    static const case_t  cases[] = {
        { BYTES("\"1\"\r\n\n\"2\",\"x\"\r\n\"3\"\n"), QUOTED },
        { BYTES("# a\n" NINE), QUOTED },
        { BYTES("id\n" NINE), QUOTED },
        { BYTES("id\nname\n" NINE) },
        { BYTES("\"1\"\n"), QUOTED, BLOOM_NOT_KEYS_WHOLE },
        { BYTES("\"1\"\n\"2\""), QUOTED, BLOOM_NOT_KEYS_WHOLE },
        { BYTES("\"1\"\n") }, { BYTES("\"1\"\n\"2\"") },
        { BYTES("id\n\"2\"\n"), NULL, BLOOM_NOT_KEYS_WHOLE },
        { BYTES("\"\n\"\n\"\n"), NULL, BLOOM_NOT_KEYS_WHOLE },
        { BYTES("\"a\nb\"\n\"c\" d\n"), NULL, BLOOM_NOT_KEYS_WHOLE }
    };

    for (i = 0; i < array_len(cases); i++) {
        check(&cases[i], cases[i].how | BLOOM_NOT_KEYS_LINES);
        assert_null(look(cases[i].data, cases[i].len, cases[i].how));
    }
}


TEST(long_files)
{
    char    *data;
    size_t   len;

    static const char  copy[] = "\nCOPY urls (url) FROM stdin;\n";

    len = 2 * BLOOM_NOT_KEYS_BYTES;
    data = malloc(len);
    memset(data, 'k', len);
    assert_null(look(data, len, BLOOM_NOT_KEYS_WHOLE));

    memcpy(data + BLOOM_NOT_KEYS_BYTES - sizeof(copy), copy, sizeof(copy) - 1);
    assert_non_null(look(data, len, 0));

    memset(data, 'k', len);
    memcpy(data + BLOOM_NOT_KEYS_BYTES, copy, sizeof(copy) - 1);
    assert_null(look(data, len, 0));

    free(data);
}


static const char *
key(const char *text)
{
    bloom_key_t  key;

    key.data = (const uint8_t *) text;
    key.len = strlen(text);

    return bloom_not_key(&key);
}


TEST(null_is_no_key)
{
    assert_non_null(strstr(key("\\N"), "NULL"));
    assert_non_null(strstr(key("\\."), "COPY"));
    assert_null(key("\\n"));
    assert_null(key("N"));
    assert_null(key("\\N "));
    assert_null(key("\\"));
    assert_null(key(""));
    assert_null(key("\\\\"));
}
