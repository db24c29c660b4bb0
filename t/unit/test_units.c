/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests parse counts, sizes and rates as people write them.
 */

#include "unit.h"

#include "bloom_units.h"


static const struct {
    const char  *text;
    uint64_t     count;
    uint64_t     bytes;
} numbers[] = {
    { "0",         0,            0 },
    { "1",         1,            1 },
    { "007",       7,            7 },
    { "1k",        1000,         1024 },
    { "1K",        1000,         1024 },
    { "10m",       10000000,     10485760 },
    { "10M",       10000000,     10485760 },
    { "3g",        3000000000,   3221225472 },
    { "3G",        3000000000,   3221225472 },
    { "0g",        0,            0 },
};


TEST(counts_and_bytes_are_parsed)
{
    size_t    i, len;
    uint64_t  value;

    for (i = 0; i < array_len(numbers); i++) {
        len = strlen(numbers[i].text);

        value = 99;
        assert_int_equal(bloom_units_count(numbers[i].text, len, &value), 0);
        assert_int_equal(value, numbers[i].count);

        value = 99;
        assert_int_equal(bloom_units_bytes(numbers[i].text, len, &value), 0);
        assert_int_equal(value, numbers[i].bytes);
    }
}


/* Tests the greatest number that fits, and the next one. */
TEST(numbers_that_do_not_fit_are_refused)
{
    uint64_t  value;

#define count(text)  bloom_units_count(text, strlen(text), &value)
#define bytes(text)  bloom_units_bytes(text, strlen(text), &value)

    assert_int_equal(count("18446744073709551615"), 0);
    assert_int_equal(value, UINT64_MAX);
    assert_int_equal(count("18446744073709551616"), -1);
    assert_int_equal(count("99999999999999999999"), -1);

    assert_int_equal(count("18446744073g"), 0);
    assert_int_equal(value, 18446744073000000000u);
    assert_int_equal(count("18446744074g"), -1);

    assert_int_equal(bytes("17179869183g"), 0);
    assert_int_equal(value, 18446744072635809792u);
    assert_int_equal(bytes("17179869184g"), -1);
    assert_int_equal(bytes("18014398509481984k"), -1);
}


TEST(texts_that_are_not_numbers_are_refused)
{
    size_t    i, len;
    uint64_t  value;

    static const char *const  texts[] = {
        "", "k", "m", "g", "-1", "+1", " 1", "1 ", "1.5", "1e6", "1kk", "1km",
        "k1", "1t", "1b", "1kb", "0x10", "1_000", "1,000", "ten", "1\n"
    };

    for (i = 0; i < array_len(texts); i++) {
        len = strlen(texts[i]);
        value = 99;

        assert_int_equal(bloom_units_count(texts[i], len, &value), -1);
        assert_int_equal(bloom_units_bytes(texts[i], len, &value), -1);
        assert_int_equal(value, 99);
    }

    /* all of the bytes count, also after a zero byte */

    assert_int_equal(bloom_units_count("1\0k", 3, &value), -1);
    assert_int_equal(bloom_units_count("1", 2, &value), -1);
    assert_int_equal(value, 99);

    /* bytes after the length do not count */

    assert_int_equal(bloom_units_count("12m", 2, &value), 0);
    assert_int_equal(value, 12);
}


static const struct {
    const char  *text;
    double       rate;
} good_rates[] = {
    { "0.001",   0.001 },
    { ".001",    0.001 },
    { "1e-3",    0.001 },
    { "1E-3",    0.001 },
    { "100e-5",  0.001 },
    { "0.1%",    0.001 },
    { "1e-1%",   0.001 },
    { "99.9%",   0.999 },
    { "0.5",     0.5 },
    { "50%",     0.5 },
    { "1e-300",  1e-300 },
};


TEST(rates_are_parsed_or_refused)
{
    size_t  i;
    double  rate;

    static const char *const  bad[] = {
        "", "0", "0.0", "1", "1.0", "100%", "200%", "0%", "-0.1", "+0.1",
        " 0.1", "0.1 ", "%", "e-3", "0.1%%", "0.1x", "1e", "1e-", "0x1p-3",
        "nan", "inf", "infinity", "0.1.2", "1/1000", "0,1", "1e-999", "-",
        "0.1% ", "%0.1",

        /* a rate has fewer than 64 bytes */

        "0.10000000000000000000000000000000000000000000000000000000000000"
    };

    for (i = 0; i < array_len(good_rates); i++) {
        assert_int_equal(bloom_units_rate(good_rates[i].text,
                                          strlen(good_rates[i].text), &rate),
                         0);
        assert_near(rate, good_rates[i].rate, 1e-15);
    }

    for (rate = 99, i = 0; i < array_len(bad); i++) {
        assert_int_equal(bloom_units_rate(bad[i], strlen(bad[i]), &rate), -1);
        assert_true(rate == 99);
    }

    assert_int_equal(bloom_units_rate("0.1\0", 4, &rate), -1);
    assert_int_equal(bloom_units_rate("0.1%", 3, &rate), 0);
    assert_near(rate, 0.1, 1e-15);
}


TEST(percentages_are_parsed)
{
    size_t  i;
    double  part;

    static const struct {
        const char  *text;
        double       part;
    } good[] = {
        { "20%", 0.2 }, { "0.5%", 0.005 }, { "0%", 0 }, { "300%", 3 },
        { "1.%", 0.01 }, { "1000000%", 10000 },
    };

    static const char  *bad[] = {
        "", "%", "20", "20%%", ".5%", "1e2%", "-5%", "+5%", " 5%", "5 %",
        "1.2.3%", "%5", "5%x",
    };

    for (i = 0; i < array_len(good); i++) {
        assert_int_equal(bloom_units_percent(good[i].text,
                                             strlen(good[i].text), &part), 0);
        assert_true(part == good[i].part);
    }

    for (i = 0; i < array_len(bad); i++) {
        assert_int_equal(bloom_units_percent(bad[i], strlen(bad[i]), &part),
                         -1);
    }
}
