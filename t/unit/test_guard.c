/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These tests find the keys in files for guards, and compare numbers of keys.
 */

#include "unit.h"

#include "bloom_guard.h"


static void
test_lines_have_keys(void **state)
{
    size_t          i;
    uint64_t        line;
    bloom_key_t     key;
    const uint8_t  *pos, *end;

    static const char  text[] =
        "first\n"
        "\n"
        " \t a key # a comment \r\n"
        "# a comment\n"
        " ! a comment\n"
        "a#key!\n"
        "#\n"
        "\xef\xbb\xbf\n"
        "\0\n"
        "last";

    static const struct {
        const char  *data;
        size_t       len;
    } keys[] = {
        { "first", 5 }, { "", 0 }, { "a key", 5 }, { "", 0 }, { "", 0 },
        { "a#key!", 6 }, { "", 0 }, { "\xef\xbb\xbf", 3 }, { "\0", 1 },
        { "last", 4 },
    };

    (void) state;

    pos = (const uint8_t *) text;
    end = pos + sizeof(text) - 1;
    line = 0;

    for (i = 0; i < array_len(keys); i++) {
        assert_int_equal(bloom_guard_next(&key, &pos, end, &line), 1);
        assert_int_equal(line, i + 1);
        assert_int_equal(key.len, keys[i].len);
        assert_memory_equal(key.data, keys[i].data, keys[i].len);
    }

    assert_int_equal(bloom_guard_next(&key, &pos, end, &line), 0);
    assert_int_equal(line, array_len(keys));
}


static void
test_changes_are_compared(void **state)
{
    (void) state;

    assert_true(bloom_guard_change(0, 5) == 0);
    assert_true(bloom_guard_change(5, 5) == 0);
    assert_true(bloom_guard_change(10, 0) == 1);
    assert_true(bloom_guard_change(10, 30) == 2);

    /* exactly the allowed part passes, although 0.2 is no binary fraction */

    assert_false(bloom_guard_exceeds(bloom_guard_change(1000, 1200), 0.2));
    assert_false(bloom_guard_exceeds(bloom_guard_change(1000, 800), 0.2));
    assert_true(bloom_guard_exceeds(bloom_guard_change(1000, 1201), 0.2));
    assert_true(bloom_guard_exceeds(bloom_guard_change(1000, 799), 0.2));
    assert_true(bloom_guard_exceeds(bloom_guard_change(UINT64_C(1) << 42,
                                                       (UINT64_C(1) << 42)
                                                       + 44), 1e-11));
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_lines_have_keys),
        cmocka_unit_test(test_changes_are_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
