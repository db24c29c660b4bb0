/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header has what every unit test needs: cmocka, a main function that runs
 * the tests of the file, random numbers that are the same in each run, and
 * deviations in units of the standard error.
 */

#ifndef BLOOM_UNIT_H
#define BLOOM_UNIT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>


#define array_len(a)  (sizeof(a) / sizeof((a)[0]))

/*
 * Defines a test, which runs because it is defined:
 *
 *     TEST(a_key_is_found)
 *     {
 *         ...
 *     }
 */
#define TEST(name)                                                           \
    static void test_##name(void **state);                                   \
                                                                             \
    static void __attribute__((constructor))                                 \
    unit_add_##name(void)                                                    \
    {                                                                        \
        unit_add((struct CMUnitTest) cmocka_unit_test(test_##name));         \
    }                                                                        \
                                                                             \
    static void                                                              \
    test_##name(void **unit_state __attribute__((unused)))

#define assert_near(a, b, relative)                                          \
    unit_near(a, b, relative, #a, __FILE__, __LINE__)


/* The tests of the file, in the order in which it defines them. */
static struct CMUnitTest  unit_tests[32];
static size_t             unit_ntests;


static inline void
unit_add(struct CMUnitTest test)
{
    if (unit_ntests == array_len(unit_tests)) {
        fprintf(stderr, "unit_tests has no room for %s\n", test.name);
        abort();
    }

    unit_tests[unit_ntests++] = test;
}


int
main(void)
{
    return _cmocka_run_group_tests(__BASE_FILE__, unit_tests, unit_ntests,
                                   NULL, NULL);
}


/* Return memory of exactly that size, so that sanitizers notice an access
 * behind it: any bytes, zeros, or a copy of the data. */

static inline void *
unit_alloc(size_t size)
{
    void  *p;

    p = malloc(size ? size : 1);
    assert_non_null(p);

    return p;
}


static inline void *
unit_zeros(size_t size)
{
    void  *p;

    p = calloc(1, size ? size : 1);
    assert_non_null(p);

    return p;
}


static inline void *
unit_copy(const void *data, size_t size)
{
    return memcpy(unit_alloc(size), data, size);
}


/* Returns a random number: Weyl's sequence through a mixer that is not the code
 * under test. */
static inline uint64_t
unit_random(uint64_t *state)
{
    uint64_t  x;

    x = *state += 0x632be59bd9b4e019;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;

    return x ^ (x >> 31);
}


static inline void
unit_near(double a, double b, double relative, const char *what,
    const char *file, int line)
{
    if (!(fabs(a - b) <= relative * fabs(b))) {
        print_error("%s is %.9g, expected %.9g within %g of it\n",
                    what, a, b, relative);
        _fail(file, line);
    }
}


/* Returns how far `count` of `trials` is from the probability `p`, in standard
 * errors. */
static inline double
unit_sigmas(uint64_t count, double trials, double p)
{
    return ((double) count - trials * p) / sqrt(trials * p * (1 - p));
}


#endif /* BLOOM_UNIT_H */
