
/*
 * Fuzzes key forms: canonical keys and what keys are looked up by.
 *
 * The input's first byte is the form, and the rest is the key:
 *
 *   - all results lie in the memory given, and there are at most 30 of them,
 *     none twice;
 *   - the first expression is the canonical key;
 *   - every expression, and what is shown of a URL, is its own canonical form;
 *   - a canonical URL has no byte that should have been escaped, a host only
 *     bytes that hosts have.
 */

#include "fuzz.h"

#include "bloom_form.h"


/* A key and a buffer of exactly their sizes, for the sanitizer. */
typedef struct {
    uint8_t      *data;
    uint8_t      *buf;
    size_t        room;
    bloom_key_t   key;
} input_t;


static void
input_make(input_t *in, uint32_t form, const uint8_t *data, size_t len)
{
    in->room = bloom_form_room(form, len);
    in->data = malloc(len);
    in->buf = malloc(in->room + (in->room == 0));
    expect(in->data != NULL && in->buf != NULL);

    memcpy(in->data, data, len);
    in->key.data = in->data;
    in->key.len = len;
}


static void
input_free(input_t *in)
{
    free(in->data);
    free(in->buf);
}


static int
same(const bloom_key_t *a, const bloom_key_t *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}


static int
within(const bloom_key_t *key, const uint8_t *p, size_t len)
{
    return key->data >= p && key->data + key->len <= p + len;
}


static void
its_own_canonical_form(uint32_t form, const bloom_key_t *key, int shown)
{
    input_t       in;
    bloom_form_t  result;

    input_make(&in, form, key->data, key->len);

    expect(bloom_form_expand(form, &result, &in.key, in.buf) == NULL);
    expect(same(key, shown ? &result.canonical : &result.expression[0]));

    input_free(&in);
}


static int
is_clean(uint32_t form, const bloom_key_t *key)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < key->len; i++) {
        c = key->data[i];

        if (form == BLOOM_FORM_URL ? c <= ' ' || c >= 0x7f || c == '#'
            : c <= ' ' || c >= 0x7f || (c >= 'A' && c <= 'Z')
              || strchr("/\\?@[]%#*", c) != NULL)
        {
            return 0;
        }
    }

    return 1;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t        in, other;
    uint32_t       form;
    unsigned       i, j;
    const char    *why;
    bloom_key_t    canonical;
    bloom_form_t   result;

    if (size < 2) {
        return 0;
    }

    form = data[0] % 4;

    input_make(&in, form, data + 1, size - 1);
    input_make(&other, form, data + 1, size - 1);

    why = bloom_form_expand(form, &result, &in.key, in.buf);

    if (why != NULL) {
        expect(form == BLOOM_FORM_HOST || form == BLOOM_FORM_URL);
        expect(bloom_form_canonical(form, &canonical, &other.key, other.buf)
               == why);
        goto done;
    }

    expect(result.n >= 1 && result.n <= BLOOM_FORM_EXPRESSIONS);

    for (i = 0; i < result.n; i++) {
        expect(result.expression[i].len != 0);
        expect(form == BLOOM_FORM_RAW
               ? within(&result.expression[i], in.data, in.key.len)
               : within(&result.expression[i], in.buf, in.room));

        for (j = 0; j < i; j++) {
            expect(!same(&result.expression[i], &result.expression[j]));
        }
    }

    if (bloom_form_canonical(form, &canonical, &other.key, other.buf)
        == NULL)
    {
        expect(same(&canonical, &result.expression[0]));

        for (i = 0; i < result.n; i++) {
            its_own_canonical_form(form, &result.expression[i], 0);
        }

    } else {
        expect(form == BLOOM_FORM_URL);
        expect(result.expression[0].len > BLOOM_FORM_KEY_MAX);
    }

    if (result.canonical.len <= BLOOM_FORM_KEY_MAX) {
        its_own_canonical_form(form, &result.canonical, 1);
    }

    if (form >= BLOOM_FORM_HOST) {
        expect(is_clean(form, &result.canonical));
    }

done:

    input_free(&in);
    input_free(&other);

    return 0;
}
