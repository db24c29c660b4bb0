/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check the decisions that Google's "URLs and Hashing" leaves open,
 * and what must hold for any URL.  Its examples are in t/golden/key-forms.
 */

#include "unit.h"

#include <ctype.h>

#include "bloom_url.h"


typedef struct {
    const char  *in;
    const char  *out;
} url_case_t;


/* Returns the canonical form, or why a URL is invalid, in reused memory. */
static const char *
canonical(const void *data, size_t len)
{
    uint8_t      *copy, *buf;
    const char   *why;
    bloom_url_t   url;

    static char   text[2000];

    copy = unit_copy(data, len);
    buf = unit_alloc(BLOOM_URL_ROOM(len));

    why = bloom_url_parse(&url, copy, len, buf);

    if (why != NULL) {
        snprintf(text, sizeof(text), "%s", why);

    } else {
        snprintf(text, sizeof(text), "%.*s", (int) url.canonical.len,
                 (const char *) url.canonical.data);
        assert_int_equal(url.canonical.len, strlen(text));
    }

    free(copy);
    free(buf);

    return text;
}


static void
check(const url_case_t *cases, size_t n)
{
    size_t       i, wrong;
    const char  *out;

    for (i = 0, wrong = 0; i < n; i++) {
        out = canonical(cases[i].in, strlen(cases[i].in));

        if (strcmp(out, cases[i].out) != 0) {
            print_error("%s: %s, and not %s\n", cases[i].in, out,
                        cases[i].out);
            wrong++;
        }
    }

    assert_int_equal(wrong, 0);
}


/* The decisions of docs/key-forms.md. */
TEST(undecided_urls_follow_the_documented_decisions)
{
    static const url_case_t  cases[] = {

        /* userinfo, and userinfo that looks like a host */
        { "http://user:pass@evil.com/a", "http://evil.com/a" },
        { "http://good.com%2F@evil.com/", "http://evil.com/" },
        { "http://good.com%5C@evil.com/", "http://evil.com/" },
        { "http://a@b@evil.com/", "http://evil.com/" },
        { "http://evil.com/@good.com", "http://evil.com/@good.com" },
        { "http://evil.com?@good.com", "http://evil.com/?@good.com" },
        { "http://evil.com#@good.com", "http://evil.com/" },
        { "http://evil.com\\@good.com", "http://evil.com/@good.com" },
        { "http://user%40evil.com/", "http://evil.com/" },

        /* slashes and backslashes, as many as browsers accept */
        { "http:/evil.com/a", "http://evil.com/a" },
        { "http:evil.com/a", "http://evil.com/a" },
        { "http:////evil.com/a", "http://evil.com/a" },
        { "http:\\\\evil.com\\a\\b?c\\d", "http://evil.com/a/b?c\\d" },
        { "HTTPS:\\/evil.com", "https://evil.com/" },
        { "//evil.com/a", "http://evil.com/a" },
        { "/\\evil.com/a", "http://evil.com/a" },
        { "\\\\evil.com", "http://evil.com/" },
        { "ht\ntp://evil.com", "http://evil.com/" },
        { "http%3A%2F%2Fevil.com%3a80/", "http://evil.com/" },
        { "%2f%2fevil.com%3a80/", "http://evil.com/" },

        /* after slashes comes a host, which is not a scheme */
        { "//evil.com:/a", "http://evil.com/a" },
        { "//evil.com://good.com/", "http://evil.com/good.com/" },
        { "\\\\evil.com:\\\\good.com", "http://evil.com/good.com" },
        { "/\\evil.com%3a//good.com/", "http://evil.com/good.com/" },
        { "//http://evil.com/", "http://http/evil.com/" },
        { "//foo:/evil.com/", "http://foo/evil.com/" },

        /* other schemes, and URLs without a scheme */
        { "FTP://ftp.example.com/a", "ftp://ftp.example.com/a" },
        { "foo://bar.example/a", "foo://bar.example/a" },
        { "evil.com:80/a", "http://evil.com/a" },
        { "evil.com:80", "http://evil.com/" },
        { "evil.com:80?a", "http://evil.com/?a" },
        { "evil.com:/a", "http://evil.com/a" },
        { "evil.com:", "http://evil.com/" },
        { "wss:evil.com", "wss://evil.com/" },
        { "httpx://evil.com/", "httpx://evil.com/" },

        /* paths */
        { "http://a.b/./c", "http://a.b/c" },
        { "http://a.b/c/.", "http://a.b/c/" },
        { "http://a.b/c/./", "http://a.b/c/" },
        { "http://a.b/../../c", "http://a.b/c" },
        { "http://a.b/c/d/..", "http://a.b/c/" },
        { "http://a.b/c/%2e%2E/d", "http://a.b/d" },
        { "http://a.b/c\\..\\d", "http://a.b/d" },
        { "http://a.b/c%5c..%5cd", "http://a.b/c/%252E%252E/d" },
        { "http://a.b/c%2f..%2fd", "http://a.b/c/%252E%252E/d" },
        { "http://a.b/c//../d", "http://a.b/c/d" },
        { "http://a.b/c//..//../d", "http://a.b/c/d" },
        { "http://a.b/.../..c/c../.d", "http://a.b/.../..c/c../.d" },
        { "http://a.b/c?d/../e", "http://a.b/c?d/../e" },
        { "http://a.b/c%3fd/../e", "http://a.b/e" },
        { "http://a.b?c", "http://a.b/?c" },
        { "http://a.b%3fc", "http://a.b/?c" },
        { "http://a.b%2fc", "http://a.b/c" },
        { "http://a.b/%00", "http://a.b/%00" },
        { "http://a.b/\x7f\xff%fF", "http://a.b/%7F%FF%FF" },
        { "http://a.b/%zz%4", "http://a.b/%25zz%254" },
        { "http://a.b/%2%35%34%31", "http://a.b/A" },
        { "http://a.b/ #c", "http://a.b/%20" },
        { "http://a.b/c;d=1/..", "http://a.b/" },

        /* hosts */
        { "http://W!eird<>Ho$^.com/", "http://w!eird<>ho$^.com/" },
        { "http://..google..com./", "http://google.com/" },
        { "http://[2001:0DB8::0:1]:80/a", "http://[2001:db8::1]/a" },
        { "http://[::ffff:1.2.3.4]/a", "http://1.2.3.4/a" },
        { "http://[fe80::1%25eth0]/", "http://[fe80::1]/" },
        { "http://0x7f.1/", "http://127.0.0.1/" },
        { "http://www.\xc3\xbcmlat.com/", "http://www.xn--mlat-zra.com/" },
        { "http://www.%C3%BCmlat.com/", "http://www.xn--mlat-zra.com/" },
        { "http://a.b:/c", "http://a.b/c" },
        { "http://ab--c\xe3\x80\x82" "evil.com/", "http://ab--c.evil.com/" },
        { "http://ab--c%EF%BC%8E-a%EF%BD%A1" "a-.evil.com/",
          "http://ab--c.-a.a-.evil.com/" },
        { "http://!~*=;\xe3\x80\x82" "evil.com/", "http://!~*=;.evil.com/" },
        { "http://a%00b.evil.com/", "http://a%00b.evil.com/" },
        { "http://a[b]\x80.evil.com/", "http://a%5Bb%5D%80.evil.com/" },
        { "http://[a.evil.com/", "http://%5Ba.evil.com/" },
        { "http://a\xff\xe3\x80\x82" "evil.com/", "http://a%FF.evil.com/" },

        /* no host */
        { "", "has no host" },
        { "  ", "has no host" },
        { ":", "has no host" },
        { "/a", "has no host" },
        { "/a//b", "has no host" },
        { "#a", "has no host" },
        { "?a", "has no host" },
        { "http://", "has no host" },
        { "http://#a", "has no host" },
        { "http://?a", "has no host" },
        { "http://@/", "has no host" },
        { "http://./", "has no host" },
        { "http://:80/", "has no host" },
        { "foo:///a", "has no host" },
        { "mailto:someone@evil.com", "has no host" },
        { "javascript:alert(1)", "has no host" },
        { "data:text/html,a", "has no host" },
        { "http://a:b/", "has a port that is not a number" },
        { "http://a.b:8o/", "has a port that is not a number" },
        { "http://1.2.3.256/", "has an invalid IPv4 address" },
        { "http://[::1/", "has an invalid IPv6 address" },
    };

    check(cases, array_len(cases));

    /* a zero byte is treated like any other byte */

    assert_string_equal(canonical("\0http://a.b/\0", 13), "http://a.b/");
    assert_string_equal(canonical("http://a.b/#\0", 13), "http://a.b/");
    assert_string_equal(canonical("http://a.b/\0c", 13), "http://a.b/%00c");
    assert_string_equal(canonical("http://a\0b.c/", 13), "http://a%00b.c/");
    assert_string_equal(canonical("http:\0//a.b/", 12),
                        "http://%00/a.b/");
}


/* Returns the expressions of a URL, one on each line. */
static const char *
expressions(const char *in)
{
    size_t        len;
    uint8_t      *buf;
    unsigned      i, n, second;
    bloom_key_t   expression[BLOOM_URL_EXPRESSIONS];
    bloom_url_t   url;

    static char   text[4000];

    len = strlen(in);
    buf = unit_alloc(BLOOM_URL_ROOM(len));
    assert_null(bloom_url_parse(&url, (const uint8_t *) in, len, buf));

    n = bloom_url_expand(expression, &second, &url);

    assert_in_range(second, 0, n - 1);
    assert_int_equal(second == 0, url.readings == 1);

    for (i = 0, len = 0; i < n; i++) {
        memcpy(text + len, expression[i].data, expression[i].len);
        len += expression[i].len;

        /* the whole key of the second reading */

        if (i != 0 && i == second) {
            text[len++] = ' ';
            text[len++] = '=';
        }

        text[len++] = '\n';
    }

    text[len] = '\0';
    free(buf);

    return text;
}


TEST(urls_have_the_right_expressions)
{
    const char  *text;
    unsigned     lines;

    assert_string_equal(expressions("http://b/"), "b/\n");
    assert_string_equal(expressions("http://a.b/?"), "a.b/?\na.b/\n");
    assert_string_equal(expressions("http://a.b/c/?d/e"),
                        "a.b/c/?d/e\na.b/c/\na.b/\n");
    assert_string_equal(expressions("http://[::1]/a/b"),
                        "[::1]/a/b\n[::1]/\n[::1]/a/\n");
    assert_string_equal(expressions("http://a b.c d.e.f/"),
                        "a%20b.c%20d.e.f/\nc%20d.e.f/\ne.f/\n");
    assert_string_equal(expressions("http://a.b/1/2/3/4/5/"),
                        "a.b/1/2/3/4/5/\na.b/\na.b/1/\na.b/1/2/\n"
                        "a.b/1/2/3/\n");
    assert_string_equal(expressions("http://a.b/1/2/3/"),
                        "a.b/1/2/3/\na.b/\na.b/1/\na.b/1/2/\n");

    text = expressions("http://1.b.c.d.e.f.g/1/2/3/4/5?6");

    for (lines = 0; *text != '\0'; text++) {
        lines += *text == '\n';
    }

    assert_int_equal(lines, BLOOM_URL_HOSTS * BLOOM_URL_PATHS);

    text = expressions("http://1.b.c.d.e.f.g/1/2/3/4/..%2f%2fa/b/c/d/e/f?6");

    for (lines = 0; *text != '\0'; text++) {
        lines += *text == '\n';
    }

    assert_int_equal(lines, BLOOM_URL_HOSTS * (BLOOM_URL_PATHS + 2));

    text = expressions("http://1.b.c.d.e.f.g/1/2/3/4/..%2f..%2f..%2f..%2fa/b/c"
                       "/d/e?6");

    for (lines = 0; *text != '\0'; text++) {
        lines += *text == '\n';
    }

    assert_int_equal(lines, BLOOM_URL_EXPRESSIONS);
}


/* Each URL, the expressions of the browser's reading, and those that only the
 * server's reading has, as the URL Standard and RFC 3986 give them. */
TEST(urls_with_escapes_have_two_readings)
{
    assert_string_equal(expressions("http://a.b/z/x%2Fy/../..%2fm/x"),
                        "a.b/z/%252E%252E/m/x\na.b/\na.b/z/\n"
                        "a.b/z/%252E%252E/\na.b/z/%252E%252E/m/\n"
                        "a.b/m/x =\na.b/m/\n");
    assert_string_equal(expressions("http://a.b/m/%252e%252e/x"),
                        "a.b/m/%252E%252E/x\na.b/\na.b/m/\n"
                        "a.b/m/%252E%252E/\n"
                        "a.b/x =\n");
    assert_string_equal(expressions("http://a.b/m/..%2fx"),
                        "a.b/m/%252E%252E/x\na.b/\na.b/m/\n"
                        "a.b/m/%252E%252E/\n"
                        "a.b/x =\n");
    assert_string_equal(expressions("http://a.b/m/%2e%2Fx?%2f"),
                        "a.b/m/%252E/x?/\na.b/m/%252E/x\na.b/\na.b/m/\n"
                        "a.b/m/%252E/\n"
                        "a.b/m/x?/ =\na.b/m/x\n");
    assert_string_equal(expressions("http://a.b/c%3Fd"),
                        "a.b/c%3Fd\na.b/\n"
                        "a.b/c?d =\na.b/c\n");

    /* the second reading is a directory of the first one */

    assert_string_equal(expressions("http://a.b/m/%252e%252e"),
                        "a.b/m/%252E%252E\na.b/ =\na.b/m/\n");

    /* all of a host before those of its parent */

    assert_string_equal(expressions("http://a.b.c/x/%2e%252Ff?y"),
                        "a.b.c/x/%252E/f?y\na.b.c/x/%252E/f\na.b.c/\na.b.c/x/\n"
                        "a.b.c/x/%252E/\n"
                        "b.c/x/%252E/f?y\nb.c/x/%252E/f\nb.c/\nb.c/x/\n"
                        "b.c/x/%252E/\n"
                        "a.b.c/x/f?y =\na.b.c/x/f\n"
                        "b.c/x/f?y\nb.c/x/f\n");

    /* both are the same */

    assert_string_equal(expressions("http://a.b/x%2Fy/../f/m.exe"),
                        "a.b/f/m.exe\na.b/\na.b/f/\n");
    assert_string_equal(expressions("http://a.b/x%5cy/%2E%2e/f"),
                        "a.b/f\na.b/\n");
    assert_string_equal(expressions("http://a.b/x%253Fy/../f"),
                        "a.b/f\na.b/\n");
    assert_string_equal(expressions("http://a.b/%2e%2e/c%2Fd?e%3Ff"),
                        "a.b/c/d?e?f\na.b/c/d\na.b/\na.b/c/\n");
    assert_string_equal(expressions("http://a.b\\c\\..\\d"),
                        "a.b/d\na.b/\n");

    /* browsers refuse these */

    assert_string_equal(expressions("http://a.b%2Fx%2Fy/../z"),
                        "a.b/x/z\na.b/\na.b/x/\n");
    assert_string_equal(expressions("http%3A%2F%2Fa.b/x%2Fy/../z"),
                        "a.b/x/z\na.b/\na.b/x/\n");
}


/* A key is read as it was written, and its first expression is itself. */
TEST(keys_of_readings_stay_as_they_are)
{
    char    in[60], first[4000], again[4000];
    int     i, two;
    size_t  k, len;
    uint64_t  seed;

    static const char *const  pieces[] = {
        "/", "/", "/", "..", ".", "%2e", "%2E%2e", "%252e", "%2f", "%5C",
        "%3f", "?", "%", "25", "a", "\\", "%25", "%32", "%23"
    };

    seed = 11;
    two = 0;

    for (i = 0; i < 200000; i++) {
        len = (size_t) sprintf(in, "a.b/");

        while (len < 40 && unit_random(&seed) % 16 != 0) {
            k = unit_random(&seed) % (sizeof(pieces) / sizeof(pieces[0]));
            len += (size_t) sprintf(in + len, "%s", pieces[k]);
        }

        strcpy(first, expressions(in));
        two += strchr(first, '=') != NULL;
        *strchr(first, '\n') = '\0';

        if (strchr(first, ' ') != NULL) {
            fail_msg("%s: %s", in, first);
        }

        strcpy(again, expressions(first));
        *strchr(again, '\n') = '\0';

        if (strcmp(first, again) != 0) {
            fail_msg("%s: %s, then %s", in, first, again);
        }
    }

    assert_in_range(two, 10000, 190000);
}


/* Decodes escapes in repeated passes, as the document describes it. */
static size_t
unescape_repeatedly(char *text, size_t len)
{
    char    hex[3] = { 0 };
    size_t  i, n, before;

    do {
        before = len;

        for (i = 0, n = 0; i < len; n++) {
            if (text[i] == '%' && len - i > 2
                && isxdigit((unsigned char) text[i + 1])
                && isxdigit((unsigned char) text[i + 2]))
            {
                memcpy(hex, text + i + 1, 2);
                text[n] = (char) strtoul(hex, NULL, 16);
                i += 3;

            } else {
                text[n] = text[i++];
            }
        }

        len = n;

    } while (len != before);

    return len;
}


/* Random escapes of escapes, in a query, where nothing else changes them. */
TEST(nested_escapes_are_decoded_completely)
{
    char      in[80], text[80], expected[300];
    int       i, nested;
    size_t    k, len, n;
    uint8_t   c;
    uint64_t  seed;

    static const char  alphabet[] = "%%%%22225531aAfx";

    seed = 7;
    nested = 0;

    memcpy(in, "//h/?", 5);

    for (i = 0; i < 100000; i++) {
        len = 5 + (size_t) (unit_random(&seed) % 60);

        for (k = 5; k < len; k++) {
            in[k] = alphabet[unit_random(&seed) % (sizeof(alphabet) - 1)];
        }

        memcpy(text, in + 5, len - 5);
        k = unescape_repeatedly(text, len - 5);
        nested += k + 6 < len - 5;

        for (n = (size_t) sprintf(expected, "http://h/?"), c = 0; k != 0;
             k--, c++)
        {
            n += (size_t) sprintf(expected + n,
                                  text[c] > ' ' && text[c] < 0x7f
                                  && text[c] != '%' && text[c] != '#'
                                  ? "%c" : "%%%02X", (uint8_t) text[c]);
        }

        assert_string_equal(canonical(in, len), expected);
    }

    assert_in_range(nested, 1000, 100000);
}
