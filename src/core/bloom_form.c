/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file converts keys to the four key forms; it calls bloom_host.c and
 * bloom_url.c for the forms host and url.
 */

#include <string.h>

#include "bloom_ascii.h"
#include "bloom_bytes.h"
#include "bloom_form.h"

_Static_assert(BLOOM_FORM_EXPRESSIONS >= BLOOM_HOST_EXPRESSIONS
               && BLOOM_FORM_EXPRESSIONS <= 64,
               "bounds of the forms");


static const char *const  names[] = { "raw", "lower", "host", "url" };

#define FORMS  (sizeof(names) / sizeof(names[0]))

static const char  too_long[] = BLOOM_KEY_TOO_LONG;
static const char  bad_byte[] = "has a byte that a host cannot have";
static const char  gap[] = "has a tab or a line end within it";


const char *
bloom_form_name(uint32_t form)
{
    return form < FORMS ? names[form] : NULL;
}


int
bloom_form_parse(const char *name, size_t len)
{
    size_t  i;

    for (i = 0; i < FORMS; i++) {
        if (len == strlen(names[i]) && memcmp(name, names[i], len) == 0) {
            return (int) i;
        }
    }

    return -1;
}


size_t
bloom_form_room(uint32_t form, size_t len)
{
    switch (form) {

    case BLOOM_FORM_LOWER:
        return len;

    case BLOOM_FORM_HOST:
        return BLOOM_HOST_ROOM + (len < BLOOM_KEY_MAX ? len : BLOOM_KEY_MAX);

    case BLOOM_FORM_URL:
        return BLOOM_URL_ROOM(len < BLOOM_KEY_MAX ? len : BLOOM_KEY_MAX);

    default:
        return 0;
    }
}


static void
lower(bloom_key_t *canonical, const bloom_key_t *key, uint8_t *buf)
{
    size_t          i, len;
    const uint8_t  *p;

    p = key->data;
    len = key->len;

    for (i = 0; i + 8 <= len; i += 8) {
        bloom_put64(buf + i, bloom_lower8(bloom_get64(p + i)));
    }

    if (i < len && len >= 8) {

        /* the last eight bytes, which may overlap those done */

        bloom_put64(buf + len - 8, bloom_lower8(bloom_get64(p + len - 8)));
        i = len;
    }

    for ( /* void */ ; i < len; i++) {
        buf[i] = bloom_lower(p[i]);
    }

    canonical->data = buf;
    canonical->len = len;
}


static const char *
parse_host(bloom_host_t *host, const bloom_key_t *key, uint8_t *buf)
{
    if (key->len > BLOOM_KEY_MAX) {
        return too_long;
    }

    return bloom_host_parse_key(host, key->data, key->len,
                                buf + BLOOM_HOST_ROOM);
}


/* Sets *plain to 1 if DNS allows all bytes of the host, else to 0. */
static const char * __attribute__((noinline))
canonical_host(bloom_key_t *canonical, int *plain, const bloom_key_t *key,
    uint8_t *buf)
{
    size_t         offset;
    const char    *why;
    bloom_host_t   host;

    why = parse_host(&host, key, buf);

    if (why != NULL) {
        return why;
    }

    canonical->data = buf;
    *plain = bloom_host_is_plain(&host);

    if (*plain) {
        memcpy(buf, host.text, host.len);
        canonical->len = host.len;

    } else {
        offset = 0;
        canonical->len = (size_t) (bloom_host_write(buf, &host, &offset, 1)
                                   - buf);
    }

    return NULL;
}


const char *
bloom_form_canonical(uint32_t form, bloom_key_t *canonical,
    const bloom_key_t *key, uint8_t *buf)
{
    int           plain;
    bloom_url_t   url;
    const char   *why;

    switch (form) {

    case BLOOM_FORM_LOWER:
        lower(canonical, key, buf);
        return NULL;

    case BLOOM_FORM_HOST:
        return canonical_host(canonical, &plain, key, buf);

    case BLOOM_FORM_URL:
        why = bloom_url_parse(&url, key->data, key->len, buf);

        if (why == NULL) {
            *canonical = url.reading[0].key;
        }

        return why;

    default:
        *canonical = *key;
        return NULL;
    }
}


const char *
bloom_form_expand(uint32_t form, bloom_form_t *result, const bloom_key_t *key,
    uint8_t *buf)
{
    size_t         offset[BLOOM_HOST_EXPRESSIONS];
    uint8_t       *end;
    unsigned       i;
    bloom_url_t    url;
    const char    *why;
    bloom_host_t   host;

    result->n = 1;
    result->second = 0;

    switch (form) {

    case BLOOM_FORM_HOST:
        why = parse_host(&host, key, buf);

        if (why != NULL) {
            return why;
        }

        result->n = bloom_host_parents(offset, &host, BLOOM_HOST_EXPRESSIONS);
        end = buf + host.len;

        if (bloom_host_is_plain(&host)) {
            memcpy(buf, host.text, host.len);

        } else {
            end = bloom_host_write(buf, &host, offset, result->n);
        }

        for (i = 0; i < result->n; i++) {
            result->expression[i].data = buf + offset[i];
            result->expression[i].len = (size_t) (end - buf) - offset[i];
        }

        result->canonical = result->expression[0];

        return NULL;

    case BLOOM_FORM_URL:
        why = bloom_url_parse(&url, key->data, key->len, buf);

        if (why != NULL) {
            return why;
        }

        result->canonical = url.canonical;
        result->n = bloom_url_expand(result->expression, &result->second,
                                     &url);

        return NULL;

    case BLOOM_FORM_LOWER:
        lower(&result->canonical, key, buf);
        break;

    default:
        result->canonical = *key;
    }

    result->expression[0] = result->canonical;

    return NULL;
}


void
bloom_form_whole(bloom_form_t *whole, const bloom_form_t *keys)
{
    whole->canonical = keys->canonical;
    whole->expression[0] = keys->expression[0];
    whole->n = 1;
    whole->second = 0;

    if (keys->second != 0) {
        whole->expression[1] = keys->expression[keys->second];
        whole->n = 2;
        whole->second = 1;
    }
}


/* Returns 1 if a tab or a line end is within the key: browsers drop it, and in
 * a list it separates fields. */
static int
has_gap(const bloom_key_t *key)
{
    size_t          len;
    const uint8_t  *p;

    p = key->data;
    len = key->len;

    while (len != 0 && *p <= ' ') {
        p++;
        len--;
    }

    while (len != 0 && p[len - 1] <= ' ') {
        len--;
    }

    return memchr(p, '\t', len) != NULL || memchr(p, '\n', len) != NULL
           || memchr(p, '\r', len) != NULL;
}


/*
 * Returns 1 if "://" ends something that is no scheme, as in a line of a CSV
 * file.  The key is then read as a host with an empty port.
 */
static int
has_false_scheme(const bloom_key_t *key)
{
    int             valid;
    const uint8_t  *p, *end;

    p = key->data;
    end = p + key->len;

    while (p < end && *p <= ' ') {
        p++;
    }

    valid = p < end && bloom_is_alpha(*p);

    for ( /* void */ ; p < end; p++) {

        if (*p == '/' || *p == '\\' || *p == '?' || *p == '#') {
            return 0;
        }

        if (*p == ':' && valid) {
            return 0;
        }

        if (*p == ':' && end - p > 2 && p[1] == '/' && p[2] == '/') {
            return 1;
        }

        valid = valid && (bloom_is_alpha(*p) || bloom_is_digit(*p)
                          || *p == '+' || *p == '-' || *p == '.');
    }

    return 0;
}


const char *
bloom_form_accept(uint32_t form, bloom_key_t *canonical, const bloom_key_t *key,
    uint8_t *buf)
{
    int           plain;
    bloom_url_t   url;
    const char   *why;

    switch (form) {

    case BLOOM_FORM_HOST:
        why = canonical_host(canonical, &plain, key, buf);

        if (why != NULL) {
            return why;
        }

        /* mail addresses and patterns are not hosts */

        if (!plain || memchr(key->data, '@', key->len) != NULL) {
            return bad_byte;
        }

        break;

    case BLOOM_FORM_URL:
        why = bloom_url_parse(&url, key->data, key->len, buf);

        if (why != NULL) {
            return why;
        }

        if (bloom_host_is_forbidden(url.reading[0].key.data, url.host_len)) {
            return bad_byte;
        }

        if (has_false_scheme(key)) {
            return "has other text before its scheme";
        }

        /* a lookup accepts it, as its expressions may be shorter */

        if (url.reading[0].key.len > BLOOM_KEY_MAX) {
            return BLOOM_KEY_TOO_LONG " in canonical form";
        }

        *canonical = url.reading[0].key;
        break;

    default:
        return key->len > BLOOM_KEY_MAX
               ? too_long : bloom_form_canonical(form, canonical, key, buf);
    }

    return has_gap(key) ? gap : NULL;
}
