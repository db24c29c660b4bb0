/* SPDX-License-Identifier: BSD-2-Clause */

/* CFLAGS: -fsanitize-coverage=trace-pc */

/*
 * These tests check that the work of a key form grows no faster than the length
 * of the key.
 *
 * Work is counted, not timed, so the numbers are the same in every run.  The
 * key forms are compiled here again, such that each basic block reports itself.
 * For functions of the C library, each byte that they move or search counts.
 */

#include "unit.h"

#include <idn2.h>


static uint64_t  work;

#ifdef __clang__
#define NOT_COUNTED  __attribute__((no_sanitize("coverage")))
#else
#define NOT_COUNTED  __attribute__((no_sanitize_coverage))
#endif

/* Each basic block calls this function, since it is compiled with the flag
 * above. */
void __sanitizer_cov_trace_pc(void);


NOT_COUNTED void
__sanitizer_cov_trace_pc(void)
{
    work++;
}


#define counted(len, call)  (work += (len), call)

/* It searches only up to the byte that it finds. */

static void *
counted_memchr(const void *p, int c, size_t len)
{
    uint8_t  *found;

    found = memchr(p, c, len);
    work += found == NULL ? len : (size_t) (found - (uint8_t *) p) + 1;

    return found;
}


static int
counted_idn2_lookup_u8(const uint8_t *text, uint8_t **out, int flags)
{
    work += 64 + strlen((const char *) text);

    return idn2_lookup_u8(text, out, flags);
}


#define memchr                counted_memchr
#define memcpy(d, s, len)     counted(len, (memcpy)(d, s, len))
#define memmove(d, s, len)    counted(len, (memmove)(d, s, len))
#define idn2_lookup_u8        counted_idn2_lookup_u8

/* names that differ from those of the core, which is linked too */

#define bloom_punycode_encode counted_punycode_encode
#define bloom_punycode_decode counted_punycode_decode
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
#define bloom_host_convert    counted_host_convert
#define bloom_host_needs_conversion counted_host_needs_conversion
#define bloom_url_parse       counted_url_parse
#define bloom_url_expand      counted_url_expand
#define bloom_form_name       counted_form_name
#define bloom_form_parse      counted_form_parse
#define bloom_form_room       counted_form_room
#define bloom_form_canonical  counted_form_canonical
#define bloom_form_accept     counted_form_accept
#define bloom_form_expand     counted_form_expand
#define bloom_form_whole      counted_form_whole

#include "../../src/core/bloom_punycode.c"
#include "../../src/core/bloom_idn.c"
#include "../../src/core/bloom_host_convert.c"
#include "../../src/core/bloom_host.c"
#define too_long  form_too_long
#define bad_byte  form_bad_byte
#include "../../src/core/bloom_url.c"
#include "../../src/core/bloom_form.c"


typedef struct {
    const char  *start;
    const char  *piece;                  /* repeated to make a key */
    const char  *end;
} shape_t;


/* Returns the work for a key of at most `size` bytes. */
static uint64_t
work_of(uint32_t form, const shape_t *shape, size_t size)
{
    size_t         len, piece;
    uint8_t       *text, *buf;
    uint64_t       before;
    bloom_key_t    key;
    bloom_form_t   result;

    text = malloc(size);
    buf = malloc(bloom_form_room(form, size));
    assert_true(text != NULL && buf != NULL);

    piece = strlen(shape->piece);
    len = (size_t) sprintf((char *) text, "%s", shape->start);

    while (len + piece + strlen(shape->end) < size) {
        (memcpy)(text + len, shape->piece, piece);
        len += piece;
    }

    len += (size_t) sprintf((char *) text + len, "%s", shape->end);

    key.data = text;
    key.len = len;

    before = work;
    (void) bloom_form_expand(form, &result, &key, buf);
    (void) bloom_form_accept(form, &key, &key, buf);
    before = work - before;

    free(text);
    free(buf);

    return before;
}


TEST(work_grows_linearly_with_the_key)
{
    size_t    i;
    uint32_t  form;
    uint64_t  none, half, whole;

    static const shape_t  shapes[] = {
        { "http://h/", "a", "" },
        { "http://h/", "%41", "" },
        { "http://h/%", "25", "" },
        { "http://h/%", "25", "41" },
        { "http://h/", "%25", "" },
        { "http://h/", "%2525", "41" },
        { "http://h/", "%%3", "" },
        { "http://h/", "%", "" },
        { "http://h/", "/", "" },
        { "http://h/", "\\", "" },
        { "http://h/", "../", "" },
        { "http://h/", "./", "" },
        { "http://h/", "a/", "" },
        { "http://h/", "a/../", "" },
        { "http://h/", "/a/../..", "" },
        { "http://h/", ".", "" },
        { "http://h/", "%2f%2e%2e", "" },
        { "http://h/?", "?", "" },
        { "http://h/", "\t", "" },
        { "http://h/", "#", "" },
        { "http://h/", "\xff", "" },
        { "", " ", "" },
        { "", "/", "" },
        { "http:", "/", "h" },
        { "http://", "@", "h" },
        { "http://", "%40", "h" },
        { "http://", ":", "" },
        { "http://", ":80", "" },
        { "http://", ".", "h" },
        { "http://h", ".", "" },
        { "http://", "a.", "" },
        { "http://", "1.", "" },
        { "http://0x", "0", "1" },
        { "http://[", "0:", "]" },
        { "http://[", ":", "]" },
        { "http://", "[", "" },
        { "http://", "\xc2\xad", "h" },
        { "http://", "\xc2\xad.", "h" },
        { "http://", "\xc3\xa9", "" },
        { "http://", "\xe3\x80\x82", "" },
        { "http://a", "\xcc\xa3\xcc\x81", "" },
        { "http://a", "\xc3\xbc-", "" },
        { "http://a", "-\xcc\x88", "" },
        { "http://a", "\xe2\x98\x83\xc3\x9f", "" },
        { "http://a", "\xe2\x98\x83\xe2\x80\x8d", "" },
        { "http://", "\xe2\x98\x83\xe2\x80\x8d.", "" },
        { "http://", "\xe2\x80\x8d.", "h" },
        { "http://", "\xc2\x80", "" },
        { "http://", "-\xef\xbc\x8f.", "" },
        { "http://", "%C2%AD", "h" },
        { "", "a", "" },
        { "", ".", "" },
        { "", "a.", "" },
        { "", "1", "" },
        { "", "0:", "" },
        { "", "\xc2\xad", "" },
        { "", "\xc2\xad.", "" },
        { "", "\xc3\xa9.", "" },
        { "", "\xc3\xa9-", "" },
        { "", "@", "" },
        { "", "a%40", "" },
        { "", "%2525", "" },
        { "", "\t", "" },
    };

    for (form = BLOOM_FORM_LOWER; form <= BLOOM_FORM_URL; form++) {

        for (i = 0; i < array_len(shapes); i++) {
            none = work_of(form, &shapes[i], 64);
            half = work_of(form, &shapes[i], 32768);
            whole = work_of(form, &shapes[i], 65536);

            /* twice the length makes at most twice the work */

            if (whole > 2 * half + none + 100
                || whole > 150 * 65536)
            {
                print_error("%s: \"%s\" \"%s\"...: %llu, %llu, %llu\n",
                            bloom_form_name(form), shapes[i].start,
                            shapes[i].piece, (unsigned long long) none,
                            (unsigned long long) half,
                            (unsigned long long) whole);
                fail();
            }

            assert_true(half > 0);
        }
    }
}


/* If the counter did not count, everything would seem linear. */
TEST(the_work_counter_counts)
{
    static const shape_t  shape = { "http://h/", "a", "" };

    assert_true(work_of(BLOOM_FORM_URL, &shape, 65536) > 3 * 65536);
    assert_true(work_of(BLOOM_FORM_LOWER, &shape, 65536) > 65536);
}
