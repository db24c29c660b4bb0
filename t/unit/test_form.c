/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check what each key form makes of a key, and what must hold for
 * any key.
 */

#include "unit.h"

#include <ctype.h>

#include "bloom_form.h"


/* A key in memory of exactly its size, and its canonical form and
 * expressions. */
typedef struct {
    uint8_t      *data;
    uint8_t      *buf;
    const char   *why;
    const char   *refused;               /* why it cannot be added */
    bloom_key_t   canonical;
    bloom_form_t  expanded;
} made_t;


/* Returns 1 if a canonical key of the form url has a host with a byte that the
 * URL Standard forbids, which may be an escape. */
static int
is_forbidden(const bloom_key_t *key)
{
    size_t  i;

    for (i = 0; key->data[i] != '/'; i++) {
        if (strchr("%<>^|", key->data[i]) != NULL) {
            return 1;
        }
    }

    return 0;
}


/* Returns 1 if a key of the form host has bytes that DNS does not allow. */
static int
is_odd(const bloom_key_t *key)
{
    size_t  i;

    for (i = 0; i < key->len; i++) {
        if (!isalnum(key->data[i]) && strchr("-_.:", key->data[i]) == NULL) {
            return 1;
        }
    }

    return 0;
}


static void
assert_same(const bloom_key_t *a, const bloom_key_t *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}


static void
make(made_t *made, uint32_t form, const void *data, size_t len)
{
    size_t       room;
    uint8_t     *other;
    const char  *why;
    bloom_key_t  key;

    room = bloom_form_room(form, len);

    made->data = unit_copy(data, len);
    made->buf = unit_alloc(room);
    other = unit_alloc(room);

    key.data = made->data;
    key.len = len;

    made->why = bloom_form_expand(form, &made->expanded, &key, other);

    if (made->why == NULL) {
        assert_in_range(made->expanded.n, 1, BLOOM_FORM_EXPRESSIONS);
    }

    free(other);

    why = bloom_form_expand(form, &made->expanded, &key, made->buf);
    assert_ptr_equal(why, made->why);

    other = unit_alloc(room);

    why = bloom_form_canonical(form, &made->canonical, &key, other);
    assert_ptr_equal(why, made->why);

    made->refused = bloom_form_accept(form, &made->canonical, &key, other);

    if (why == NULL && form >= BLOOM_FORM_HOST) {

        if (made->refused != NULL && strstr(made->refused, "scheme") != NULL) {
            assert_non_null(memmem(data, len, "://", 3));

        } else if (made->refused != NULL
                   && strstr(made->refused, "tab") != NULL)
        {
            assert_true(memchr(data, '\t', len) || memchr(data, '\n', len)
                        || memchr(data, '\r', len));

        } else if (form == BLOOM_FORM_HOST
            ? is_odd(&made->expanded.canonical)
              || memchr(data, '@', len) != NULL
            : is_forbidden(&made->expanded.expression[0]))
        {
            assert_string_equal(made->refused,
                                "has a byte that a host cannot have");

        } else {
            assert_null(made->refused);
        }

    } else {
        assert_ptr_equal(made->refused, why);
    }

    if (why == NULL) {
        assert_null(bloom_form_canonical(form, &made->canonical, &key, other));
        assert_same(&made->canonical, &made->expanded.expression[0]);
    }

    free(other);
}


typedef struct {
    enum { HOST = BLOOM_FORM_HOST, URL = BLOOM_FORM_URL }  form;
    const char  *in;
    const char  *out;
} form_case_t;


static void
drop(made_t *made)
{
    free(made->data);
    free(made->buf);
}


/* Returns "canonical: expression, expression", or why a key is invalid. */
static const char *
shown(uint32_t form, const char *text)
{
    size_t       n;
    made_t       made;
    unsigned     i;

    static char  line[4000];

    make(&made, form, text, strlen(text));

    if (made.why != NULL) {
        snprintf(line, sizeof(line), "%s", made.why);

    } else {
        n = (size_t) sprintf(line, "%.*s:",
                             (int) made.expanded.canonical.len,
                             (const char *) made.expanded.canonical.data);

        for (i = 0; i < made.expanded.n; i++) {
            n += (size_t) sprintf(line + n, "%s %.*s", i ? "," : "",
                                  (int) made.expanded.expression[i].len,
                                  (const char *)
                                  made.expanded.expression[i].data);
        }
    }

    drop(&made);

    return line;
}


TEST(form_names_go_both_ways)
{
    uint32_t  form;

    static const char *const  names[] = { "raw", "lower", "host", "url" };

    assert_int_equal(BLOOM_FORM_RAW, 0);
    assert_int_equal(BLOOM_FORM_LOWER, 1);
    assert_int_equal(BLOOM_FORM_HOST, 2);
    assert_int_equal(BLOOM_FORM_URL, 3);

    for (form = 0; form < array_len(names); form++) {
        assert_string_equal(bloom_form_name(form), names[form]);
        assert_int_equal(bloom_form_parse(names[form],
                                          strlen(names[form])), form);
    }

    assert_null(bloom_form_name(4));
    assert_null(bloom_form_name(UINT32_MAX));

    assert_int_equal(bloom_form_parse("raw;", 3), BLOOM_FORM_RAW);
    assert_int_equal(bloom_form_parse("rawx", 4), -1);
    assert_int_equal(bloom_form_parse("ra", 2), -1);
    assert_int_equal(bloom_form_parse("URL", 3), -1);
    assert_int_equal(bloom_form_parse("", 0), -1);
}


TEST(the_raw_form_changes_nothing)
{
    bloom_key_t   key, canonical;
    bloom_form_t  result;

    key.data = (const uint8_t *) "A\0\xff ";
    key.len = 4;

    assert_int_equal(bloom_form_room(BLOOM_FORM_RAW, 1 << 30), 0);

    assert_null(bloom_form_canonical(BLOOM_FORM_RAW, &canonical, &key, NULL));
    assert_ptr_equal(canonical.data, key.data);
    assert_int_equal(canonical.len, 4);

    assert_null(bloom_form_expand(BLOOM_FORM_RAW, &result, &key, NULL));
    assert_int_equal(result.n, 1);
    assert_ptr_equal(result.expression[0].data, key.data);
    assert_int_equal(result.expression[0].len, 4);
}


TEST(keys_expand_to_parent_domains_and_paths)
{
    size_t  i;

    static const form_case_t  cases[] = {
        { HOST, "A.B.Example.COM.:443",
          "a.b.example.com: a.b.example.com, b.example.com, example.com" },
        { HOST, "bad.co.uk", "bad.co.uk: bad.co.uk, co.uk" },
        { HOST, "example.com", "example.com: example.com" },
        { HOST, "com", "com: com" },
        { HOST, ".example.com", "example.com: example.com" },
        { HOST, " \texample.com \t", "example.com: example.com" },
        { HOST, "b\xc3\xbc" "cher.example",
          "xn--bcher-kva.example: xn--bcher-kva.example" },
        { HOST, "0x7f.1", "127.0.0.1: 127.0.0.1" },
        { HOST, "[2001:DB8::1]:443", "2001:db8::1: 2001:db8::1" },

        { HOST, "...", "has no host" },
        { HOST, " ", "has no host" },

        /* keys that an addition refuses, and a lookup finds by their parents */

        { HOST, "*.Example.com", "*.example.com: *.example.com, example.com" },
        { HOST, "a b\x80.example.com",
          "a%20b%80.example.com: a%20b%80.example.com, example.com" },
        { HOST, "a.b@x@Example.com:80", "example.com: example.com" },
        { HOST, "ex%61mple%2ecom", "example.com: example.com" },
        { HOST, "a%2525%2F%3f%5B.example.com",
          "a%25%2F%3F%5B.example.com: a%25%2F%3F%5B.example.com, example.com" },
        { HOST, "x%40example.com", "example.com: example.com" },
        { HOST, "\x01" "ex\tam\r\nple.com\x1f", "example.com: example.com" },
        { HOST, "fe80::1%eb0", "fe80::1: fe80::1" },
        { HOST, "a:b:c@Example.com:80", "example.com: example.com" },
        { HOST, "a:b:c@[::1]", "::1: ::1" },
        { HOST, "x@", "has no host" },
        { HOST, "example.com#", "has a byte that a host cannot have" },
        { HOST, "example.com\\x", "has a byte that a host cannot have" },
        { HOST, "example.com?", "has a byte that a host cannot have" },
        { HOST, "http://example.com/", "has a byte that a host cannot have" },
        { HOST, "example.com/", "has a byte that a host cannot have" },

        { URL, "HTTPS://A.B.c:80/1/%32?x",
          "https://a.b.c/1/2?x: a.b.c/1/2?x, a.b.c/1/2, a.b.c/, a.b.c/1/, "
          "b.c/1/2?x, b.c/1/2, b.c/, b.c/1/" },
        { URL, "/x", "has no host" },
    };

    for (i = 0; i < array_len(cases); i++) {
        assert_string_equal(shown(cases[i].form, cases[i].in), cases[i].out);
    }
}


/* Returns why a key cannot be added, or "added". */
static const char *
added(uint32_t form, const char *text)
{
    made_t       made;
    const char  *why;

    make(&made, form, text, strlen(text));
    why = made.refused != NULL ? made.refused : "added";
    drop(&made);

    return why;
}


TEST(junk_cannot_be_added)
{
    int     c;
    char    text[64];
    size_t  i;

    static const char  bad_byte[] = "has a byte that a host cannot have";
    static const char  gap[] = "has a tab or a line end within it";
    static const char  scheme[] = "has other text before its scheme";

    /* the URL Standard's forbidden domain code points, but those that end a
     * host or the URL, surround the host, or are dropped */

    static const char  forbidden[] = " :<>[]^|";

    static const form_case_t  cases[] = {
        /* a fragment is not a part of the key */

        { URL, "a.example#http://b.example", "added" },
        { URL, "a.example#,://", "added" },

        { URL, "a%00.example", bad_byte },
        { URL, "a%7f.example", bad_byte },
        { URL, "a%.example", bad_byte },
        { URL, "a%25.example", bad_byte },
        { URL, "a%5b.example", bad_byte },
        { URL, "a]b.example", bad_byte },
        { URL, "a b.example", bad_byte },
        { URL, "http://\x80.example", bad_byte },

        /* lines of files that are not lists of URLs */

        { URL, "||evil.example^", bad_byte },
        { URL, "||evil.example^$all", bad_byte },
        { URL, "@@||good.example^", bad_byte },
        { URL, "0.0.0.0 evil.example", bad_byte },
        { URL, "0.0.0.0\tevil.example", gap },
        { HOST, "0.0.0.0\tevil.example", gap },
        { URL, "http://a.example/\tphish", gap },
        { URL, "\tevil.example\r", "added" },
        { HOST, "\tevil.example\r", "added" },
        { URL, "evil.example # seen today", bad_byte },
        { URL, "# a comment", "has no host" },
        { URL, "<html>502 Bad Gateway</html>", bad_byte },
        { URL, "{\"url\":\"evil.example\"}",
          "has a port that is not a number" },
        { URL, "[\"evil.example\",", bad_byte },

        { URL, "\"http://evil.example/x\"", scheme },
        { URL, "1,http://evil.example/x", scheme },
        { URL, "1http://evil.example/x", scheme },
        { URL, " a+1.-://evil.example/x", "added" },
        { URL, "evil.example/?u=1://x", "added" },
        { URL, "//evil.example://x", "added" },
        { URL, "1.evil.example:/x", "added" },

        /* what browsers accept in a host, elsewhere in a URL, and addresses */

        { URL, "a!$&'()*+,;=`{}~\"_b.example", "added" },
        { URL, "http://u|^@a.example/<|>^% ?<|>^% #<|>^% ", "added" },
        { URL, "http://[::1]:80/", "added" },
        { URL, "b\xc3\xbc" "cher.example", "added" },
    };

    for (c = 0x21; c < 0x7f; c++) {

        if (strchr("#/:?@[\\]%", c) != NULL) {
            continue;
        }

        sprintf(text, "http://a%c.example/", c);
        assert_string_equal(added(BLOOM_FORM_URL, text),
                            strchr(forbidden, c) ? bad_byte : "added");

        sprintf(text, "http://a%%%02x.example/", (unsigned) c);
        assert_string_equal(added(BLOOM_FORM_URL, text),
                            strchr(forbidden, c) ? bad_byte : "added");
    }

    for (c = 1; c <= 0x20; c++) {
        sprintf(text, "http://a%%%02x.example/", (unsigned) c);
        assert_string_equal(added(BLOOM_FORM_URL, text), bad_byte);
        assert_string_equal(added(BLOOM_FORM_HOST, text + 7), bad_byte);
    }

    for (i = 0; i < array_len(cases); i++) {
        assert_string_equal(added(cases[i].form, cases[i].in), cases[i].out);
    }
}


TEST(keys_longer_than_the_limit_are_refused)
{
    made_t        made;
    uint8_t      *text, *buf;
    size_t        len;
    uint32_t      form;
    bloom_key_t   key, canonical;
    bloom_form_t  result;

    text = unit_alloc(BLOOM_KEY_MAX + 1);
    memset(text, 'a', BLOOM_KEY_MAX + 1);

    memcpy(text, "http://h/", 9);
    make(&made, BLOOM_FORM_URL, text, BLOOM_KEY_MAX);
    assert_null(made.why);
    assert_int_equal(made.canonical.len, BLOOM_KEY_MAX - 7);
    drop(&made);

    make(&made, BLOOM_FORM_URL, text, BLOOM_KEY_MAX + 1);
    assert_string_equal(made.why, "is longer than 65535 bytes");
    drop(&made);

    memset(text, '.', BLOOM_KEY_MAX + 1);
    text[40] = 'a';
    make(&made, BLOOM_FORM_HOST, text, BLOOM_KEY_MAX);
    assert_null(made.why);
    assert_int_equal(made.canonical.len, 1);
    drop(&made);

    make(&made, BLOOM_FORM_HOST, text, BLOOM_KEY_MAX + 1);
    assert_string_equal(made.why, "is longer than 65535 bytes");
    drop(&made);

    /* a longer key of the other forms is never added, but may be looked up */

    for (form = BLOOM_FORM_RAW; form <= BLOOM_FORM_LOWER; form++) {

        buf = unit_alloc(BLOOM_KEY_MAX + 1);

        key.data = text;
        key.len = BLOOM_KEY_MAX;
        assert_null(bloom_form_accept(form, &canonical, &key, buf));
        assert_int_equal(canonical.len, BLOOM_KEY_MAX);

        key.len++;
        assert_string_equal(bloom_form_accept(form, &canonical, &key, buf),
                            "is longer than 65535 bytes");
        assert_null(bloom_form_expand(form, &result, &key, buf));
        assert_int_equal(result.canonical.len, BLOOM_KEY_MAX + 1);

        free(buf);
    }

    /* a URL too long to be added is still found by its host */

    memset(text, ' ', BLOOM_KEY_MAX);
    memcpy(text, "http://h/", 9);
    text[BLOOM_KEY_MAX - 1] = 'a';

    key.data = text;
    key.len = BLOOM_KEY_MAX;
    len = bloom_form_room(BLOOM_FORM_URL, key.len);
    buf = unit_alloc(len);

    assert_string_equal(bloom_form_accept(BLOOM_FORM_URL, &canonical, &key,
                                          buf),
                        "is longer than 65535 bytes in canonical form");
    assert_null(bloom_form_canonical(BLOOM_FORM_URL, &canonical, &key, buf));
    assert_int_equal(canonical.len, 2 + 3 * (BLOOM_KEY_MAX - 10) + 1);
    assert_null(bloom_form_expand(BLOOM_FORM_URL, &result, &key, buf));
    assert_int_equal(result.n, 2);
    assert_int_equal(result.expression[0].len,
                     2 + 3 * (BLOOM_KEY_MAX - 10) + 1);
    assert_int_equal(result.expression[1].len, 2);
    assert_memory_equal(result.expression[1].data, "h/", 2);

    free(buf);
    free(text);
}


/* Tests every byte at every place of short keys. */
TEST(lower_case_changes_ascii_letters_at_every_place)
{
    int       c;
    size_t    len, at;
    made_t    made;
    uint8_t   key[40], expected[40];

    for (len = 1; len <= sizeof(key); len++) {
        for (at = 0; at < len; at++) {
            for (c = 0; c < 256; c++) {
                memset(key, 'A' + (int) (at % 26), len);
                memset(expected, 'a' + (int) (at % 26), len);

                key[at] = (uint8_t) c;
                expected[at] = (uint8_t) (c >= 'A' && c <= 'Z' ? c + 32 : c);

                make(&made, BLOOM_FORM_LOWER, key, len);

                assert_null(made.why);
                assert_int_equal(made.expanded.n, 1);
                assert_int_equal(made.expanded.canonical.len, len);
                assert_memory_equal(made.expanded.canonical.data, expected,
                                    len);
                drop(&made);
            }
        }
    }
}


/*
 * Plain keys take a fast path.  A space before a URL, and a dot after a host,
 * do not change the result, but lead to the slow path.  Both paths must give
 * the same result.
 */
TEST(the_fast_path_equals_the_slow_path)
{
    char      text[220];
    int       i, readable;
    size_t    len;
    made_t    made, other;
    unsigned  k, pieces;
    uint32_t  form;
    uint64_t  seed;

    static const char *const  piece[] = {
        "http://", "https://", "Http://", "/", "/", "//", "/.", "..", ".", "?",
        "a", "B", "example.com", "Co.Uk", "1", "0x7f", "-", "_", "~", "!", "$",
        "&=", "|", "\x7f", "\"", "@", "[", "{", "^", "`", "com", "q", "a.b.c",
        "d.e.f.g", ":", "%41", "#", "\\", "\xc3\xa9",
        "a-label-that-is-longer-than-those-which-come-before-it",
    };

    for (form = BLOOM_FORM_HOST; form <= BLOOM_FORM_URL; form++) {

        seed = 12;
        readable = 0;

        for (i = 0; i < 100000; i++) {
            pieces = 1 + (unsigned) (unit_random(&seed) % 6);
            text[0] = ' ';

            for (len = 1, k = 0; k < pieces; k++) {
                len += (size_t) sprintf(text + len, "%s",
                                        piece[unit_random(&seed)
                                              % array_len(piece)]);
            }

            make(&made, form, text + 1, len - 1);

            if (form == BLOOM_FORM_HOST) {

                if (strchr(text, ':') != NULL) {
                    drop(&made);
                    continue;
                }

                text[len] = '.';
                make(&other, form, text + 1, len);

            } else {
                make(&other, form, text, len);
            }

            if (made.why != NULL) {
                assert_ptr_equal(made.why, other.why);

            } else {
                assert_null(other.why);
                assert_int_equal(made.expanded.n, other.expanded.n);
                assert_same(&made.expanded.canonical,
                            &other.expanded.canonical);

                for (k = 0; k < made.expanded.n; k++) {
                    assert_same(&made.expanded.expression[k],
                                &other.expanded.expression[k]);
                }
            }

            readable += made.why == NULL;
            drop(&made);
            drop(&other);
        }

        assert_in_range(readable, 10000, 100000);
    }
}


/*
 * Random keys of the parts of URLs and hosts: the canonical form of a canonical
 * key is that key.  The same holds for every expression, or it could never be
 * stored.
 */
TEST(a_canonical_key_is_its_own_canonical_form)
{
    char      text[200];
    int       i, readable;
    size_t    len;
    made_t    made, again;
    unsigned  k, pieces;
    uint32_t  form;
    uint64_t  seed;

    static const char *const  piece[] = {
        "http://", "https:", "//", "/", "\\", "/../", "/./", "..", ".", "?",
        "#", "@", ":", ":80", "%", "%25", "%2525", "%2f", "%2e", "%40", "%3a",
        "%5c", "%3F", "%00", "%20", " ", "\t", "\n", "a", "B", "example.com",
        "co.uk", "1.2.3.4", "0x7f", "017", "[::1]", "[", "]", "\xc3\xa9",
        "%C3%A9", "\x80", "\xc2\xad", "\xe3\x80\x82", "\xef\xbc\x91", "xn--",
        "\xe2\x98\x83", "a.b.c.d.e.f", "2", "5", "-", "_", "&=", "\x7f",
    };

    for (form = BLOOM_FORM_LOWER; form <= BLOOM_FORM_URL; form++) {

        seed = 11;
        readable = 0;

        for (i = 0; i < 40000; i++) {
            pieces = 1 + (unsigned) (unit_random(&seed) % 9);

            for (len = 0, k = 0; k < pieces; k++) {
                len += (size_t) sprintf(text + len, "%s",
                                        piece[unit_random(&seed)
                                              % array_len(piece)]);
            }

            make(&made, form, text, len);

            for (k = 0; made.why == NULL && k < made.expanded.n; k++) {
                make(&again, form, made.expanded.expression[k].data,
                     made.expanded.expression[k].len);

                assert_null(again.why);
                assert_same(&again.expanded.expression[0],
                            &made.expanded.expression[k]);
                drop(&again);
            }

            if (made.why == NULL && form == BLOOM_FORM_URL) {
                make(&again, form, made.expanded.canonical.data,
                     made.expanded.canonical.len);

                assert_null(again.why);
                assert_same(&again.expanded.canonical,
                            &made.expanded.canonical);
                drop(&again);
            }

            readable += made.why == NULL;
            drop(&made);
        }

        assert_in_range(readable, 1000, 40000);
    }
}
