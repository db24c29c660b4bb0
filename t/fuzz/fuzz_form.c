/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Fuzzes key forms: canonical keys, and the expressions of a lookup.
 *
 * The input's first byte is the form, and the rest is the key:
 *
 *   - all results lie in the memory given, and there are at most 30 of them, or
 *     55 of a URL with two readings, none twice;
 *   - the first expression is the canonical key, the first reading;
 *   - every expression belongs to a reading, and those of the first one come
 *     first.  Each is a stretch of the reading's whole key that begins it or
 *     behind a dot, and, with what is shown of a URL, its own canonical form;
 *   - both readings have the same host, and the expression that is this host
 *     with the path "/";
 *   - a canonical key has no byte that should have been escaped, and is no
 *     longer than its form allows;
 *   - a new key is refused only if a lookup refuses it, or because of a byte in
 *     its host, a tab or a line end, what is before its scheme, or as too long;
 *     otherwise the result is the canonical key.
 */

#include "fuzz.h"

#include <ctype.h>

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

        if (c <= ' ' || c >= 0x7f || c == '#') {
            return 0;
        }

        if (c == '%') {

            if (key->len - i < 3 || !isxdigit(key->data[i + 1])
                || !isxdigit(key->data[i + 2]))
            {
                return 0;
            }

            i += 2;
            continue;
        }

        if (form == BLOOM_FORM_HOST
            && ((c >= 'A' && c <= 'Z') || strchr("/\\?@[]", c) != NULL))
        {
            return 0;
        }
    }

    return 1;
}


/* Only what DNS or an address could have. */
static int
is_plain(const bloom_key_t *key)
{
    size_t  i;

    for (i = 0; i < key->len; i++) {
        if (!islower(key->data[i]) && !isdigit(key->data[i])
            && strchr("-_.:", key->data[i]) == NULL)
        {
            return 0;
        }
    }

    return 1;
}


/* A host with a byte that the URL Standard forbids, which may be an escape. */
static int
is_forbidden(const bloom_key_t *key)
{
    size_t  i;

    for (i = 0; i < key->len && key->data[i] != '/'; i++) {
        if (strchr("%<>^|", key->data[i]) != NULL) {
            return 1;
        }
    }

    return 0;
}


/* A tab or a line end anywhere but at the ends. */
static int
has_gap(const bloom_key_t *key)
{
    size_t  i;

    for (i = 1; i + 1 < key->len; i++) {
        if (strchr("\t\r\n", key->data[i]) != NULL && key->data[i] != '\0') {
            return 1;
        }
    }

    return 0;
}


/* Each expression is a stretch of the key of one of the readings. */
static void
stretches(const bloom_form_t *result)
{
    size_t              at;
    unsigned            i, k;
    const bloom_key_t  *key, *e;

    for (i = 0; i < result->n; i++) {
        e = &result->expression[i];

        for (k = 0; k < 2; k++) {
            key = &result->expression[k == 0 ? 0 : result->second];

            for (at = 0; at + e->len <= key->len; at++) {
                if ((at == 0 || key->data[at - 1] == '.')
                    && memcmp(key->data + at, e->data, e->len) == 0)
                {
                    break;
                }
            }

            if (at + e->len <= key->len) {
                break;
            }
        }

        expect(k < 2);
    }
}


/* The length of a URL's host, with the slash behind it. */
static size_t
host_len(const bloom_key_t *key)
{
    const uint8_t  *slash;

    slash = memchr(key->data, '/', key->len);
    expect(slash != NULL);

    return (size_t) (slash + 1 - key->data);
}


static void
readings(uint32_t form, const bloom_form_t *result)
{
    size_t              len;
    unsigned            i, root;
    const bloom_key_t  *first, *second;

    expect(result->second < result->n);

    if (result->second == 0) {
        expect(result->n <= 30);
        return;
    }

    expect(form == BLOOM_FORM_URL);

    first = &result->expression[0];
    second = &result->expression[result->second];

    len = host_len(first);
    expect(len == host_len(second));
    expect(memcmp(first->data, second->data, len) == 0);

    for (i = 0, root = 0; i < result->n; i++) {
        root += result->expression[i].len == len
                && memcmp(result->expression[i].data, first->data, len) == 0;
    }

    expect(root == 1);
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
        expect(bloom_form_accept(form, &canonical, &other.key, other.buf)
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

    expect(bloom_form_canonical(form, &canonical, &other.key, other.buf)
           == NULL);
    expect(same(&canonical, &result.expression[0]));

    why = bloom_form_accept(form, &canonical, &other.key, other.buf);

    if (why == NULL) {
        expect(same(&canonical, &result.expression[0]));
        expect(form != BLOOM_FORM_HOST || is_plain(&canonical));
        expect(form != BLOOM_FORM_URL || !is_forbidden(&canonical));

    } else if (form == BLOOM_FORM_URL) {
        expect(result.expression[0].len > BLOOM_KEY_MAX
               || is_forbidden(&result.expression[0])
               || strcmp(why, "has other text before its scheme") == 0
               || has_gap(&in.key));

    } else {
        expect(form == BLOOM_FORM_HOST);
        expect(!is_plain(&result.canonical)
               || memchr(in.data, '@', in.key.len) != NULL
               || has_gap(&in.key));
    }

    if (result.expression[0].len <= BLOOM_KEY_MAX) {
        for (i = 0; i < result.n; i++) {
            its_own_canonical_form(form, &result.expression[i], 0);
        }
    }

    readings(form, &result);
    stretches(&result);

    expect(result.canonical.len <= (form == BLOOM_FORM_URL
                                    ? BLOOM_URL_ROOM(in.key.len)
                                    : form == BLOOM_FORM_HOST ? BLOOM_HOST_ROOM
                                    : in.key.len));

    if (result.canonical.len <= BLOOM_KEY_MAX) {
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
