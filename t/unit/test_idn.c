/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests check that the work of libidn2 is bounded for a name and for a
 * list of names, and that the bound is above what any name of DNS needs.  The
 * core is compiled here again, such that it counts what libidn2 is passed.
 */

#include "unit.h"

#include <idn2.h>


static size_t  passed;


static int
counted_idn2_lookup_u8(const uint8_t *text, uint8_t **out, int flags)
{
    passed += strlen((const char *) text);

    return idn2_lookup_u8(text, out, flags);
}


#define idn2_lookup_u8        counted_idn2_lookup_u8

/* names that differ from those of the core, which is linked too */

#define bloom_idn_label       counted_idn_label
#define bloom_idn_begin_name  counted_idn_begin_name
#define bloom_idn_begin_list  counted_idn_begin_list
#define bloom_idn_end_list    counted_idn_end_list
#define bloom_idn_spent       counted_idn_spent
#define bloom_host_parse      counted_host_parse
#define bloom_host_parse_key  counted_host_parse_key
#define bloom_host_write      counted_host_write
#define bloom_host_scan       counted_host_scan
#define bloom_host_is_plain   counted_host_is_plain
#define bloom_host_is_forbidden counted_host_is_forbidden
#define bloom_host_parents    counted_host_parents

#include "../../src/core/bloom_idn.c"
#include "../../src/core/bloom_host.c"


/* Writes `n` copies of a piece of a name.  Returns the length. */
static size_t
repeat(char *text, const char *piece, size_t n)
{
    size_t  i, len;

    len = strlen(piece);

    for (i = 0; i < n; i++) {
        memcpy(text + i * len, piece, len);
    }

    text[n * len] = '\0';

    return n * len;
}


/* Names that make libidn2 work as much as they can. */

static const char  *const hostile[] = {
    "\xef\xb7\xba",                          /* becomes 18 characters */
    "\xef\xb7\xba.",
    "\xe3\x8c\x96",                          /* becomes 6 characters */
    "\xe3\x8c\x96.",
    "\xe3\x8c\x96-",
    "\xc3\xbc",
    "\xc3\xbc.",
    "\xc3\x9c\xe2\x98\x83",
    "\xe2\x98\x83\xe2\x80\x8d",
    "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d\xe2\x98\x83",
    "\xe2\x80\x8d.",
    "\xe2\x80\x8c\xe2\x80\x8d",
    "\xcc\x88.",
    "\xcc\x88-",
    "-\xcc\x88\xe2\x98\x83\xe2\x80\x8d",
    "\xf0\x9c\xb3\x9a.",
    "\xc2\xad.",
};


TEST(a_name_has_a_budget)
{
    char          text[8192 + 1];
    size_t        i;
    uint64_t      before;
    bloom_host_t  host;

    for (i = 0; i < array_len(hostile); i++) {
        passed = 0;
        before = bloom_idn_spent();

        (void) bloom_host_parse(&host, (uint8_t *) text,
                                repeat(text, hostile[i],
                                       8192 / strlen(hostile[i])));

        assert_true(passed <= BLOOM_IDN_MAX);
        assert_true(bloom_idn_spent() - before
                    <= BLOOM_IDN_MAX + TOO_LONG);
        assert_true(bloom_idn_spent() - before >= passed);
    }
}


TEST(labels_that_are_too_long_take_little_work)
{
    char          text[8192 + 1];
    size_t        i;
    bloom_host_t  host;

    static const struct {
        const char  *piece;
        size_t       most;               /* bytes passed */
    } cases[] = {
        { "\xc3\xbc", 1024 },
        { "\xe3\x8c\x96", 1024 },
        { "\xe2\x98\x83\xe2\x80\x8d", 1024 },
        { "\xe3\x8c\x96\xe3\x8c\x96\xe3\x8c\x96\xe3\x8c\x96\xe3\x8c\x96"
          "\xe3\x8c\x96\xe3\x8c\x96\xe3\x8c\x96\xe3\x8c\x96\xe3\x8c\x96"
          "\xe3\x8c\x96\xe3\x8c\x96.", 1024 },
    };

    for (i = 0; i < array_len(cases); i++) {
        passed = 0;

        assert_string_equal(
            bloom_host_parse(&host, (uint8_t *) text,
                             repeat(text, cases[i].piece,
                                    8192 / strlen(cases[i].piece))),
            "has a host name longer than 253 bytes");
        assert_true(passed <= cases[i].most);
    }
}


TEST(the_names_of_a_list_share_a_budget)
{
    char          text[256];
    size_t        i, n, len;
    bloom_host_t  host;
    const char   *why;

    for (i = 0; i < array_len(hostile); i++) {

        len = repeat(text, hostile[i], 12);
        passed = 0;

        bloom_idn_begin_list();

        for (n = 0; n < 8192; n += len) {
            (void) bloom_host_parse(&host, (uint8_t *) text, len);
        }

        assert_true(passed <= BLOOM_IDN_MAX);
        bloom_idn_end_list();
    }

    /* the names behind those that use it up are invalid, unless libidn2 is not
     * needed for them; afterwards each name has its own budget again */

    bloom_idn_begin_list();

    for (n = 0, why = NULL; why == NULL; n++) {
        why = bloom_host_parse(&host, (const uint8_t *) "\xc3\xbc.b", 4);
    }

    assert_string_equal(why, "has a host name longer than 253 bytes");
    assert_true(n > 400 && n < 800);
    assert_null(bloom_host_parse(&host, (const uint8_t *) "evil.example", 12));
    assert_null(bloom_host_parse(&host, (const uint8_t *) "e!vil.ex", 8));
    assert_non_null(bloom_host_parse(&host, (const uint8_t *) "\xc3\xbc", 2));

    bloom_idn_end_list();

    for (n = 0; n < 2000; n++) {
        assert_null(bloom_host_parse(&host, (const uint8_t *) "\xc3\xbc", 2));
    }
}


/* Names that DNS resolves must not be invalid: with one as a subdomain, every
 * URL would pass. */
TEST(no_name_of_dns_needs_more)
{
    char          text[8192], label[2048];
    size_t        i, n, len;
    uint64_t      before, most;
    bloom_host_t  host;

    static const char  *const pieces[] = {
        "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8",  /* a syllable of three jamo */
        "\xe0\xa5\x8d\xe2\x80\x8d",              /* a virama and a joiner */
        "\xe0\xa4\x95\xe0\xa5\x8d\xe2\x80\x8d",
        "\xe0\xa5\x8d\xe2\x80\x8c",
        "\xc3\x9f\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8",
        "\xce\xb1\xcc\x93\xcc\x80",
        "\xe2\x98\x83",
        "\xc3\x9f",
    };

    for (i = 0, most = 0; i < array_len(pieces); i++) {

        /* four labels as long as the name has room for, each with a symbol,
         * for which libidn2 refuses the label at first */

        for (n = 100; n > 0; n--) {
            len = repeat(label, "\xe2\x98\x83", 1);
            len += repeat(label + len, pieces[i], n);
            label[len++] = '.';
            label[len] = '\0';

            before = bloom_idn_spent();

            if (bloom_host_parse(&host, (uint8_t *) text,
                                 repeat(text, label, 4))
                == NULL)
            {
                break;
            }

            assert_true(bloom_idn_spent() - before < BLOOM_IDN_MAX);
        }

        assert_true(n >= 8);
        assert_true(host.len > 200);
        most = bloom_idn_spent() - before > most
               ? bloom_idn_spent() - before : most;
    }

    assert_true(most > BLOOM_IDN_MAX / 4);
    assert_true(most < BLOOM_IDN_MAX * 7 / 8);
    print_message("the most that a name of DNS has cost: %llu\n",
                  (unsigned long long) most);
}
