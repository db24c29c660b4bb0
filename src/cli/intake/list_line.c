/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file takes texts apart for the readers of lists.
 */

#include "bloom_host.h"
#include "list_line.h"


int
list_equals(const bloom_key_t *text, const char *other)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {
        if (other[i] == '\0'
            || bloom_lower(text->data[i]) != bloom_lower((uint8_t) other[i]))
        {
            return 0;
        }
    }

    return other[i] == '\0';
}


int
list_word(bloom_key_t *text, bloom_key_t *word)
{
    list_trim(text);

    for (word->data = text->data, word->len = 0;
         word->len < text->len && !list_is_blank(text->data[word->len]);
         word->len++)
    {
        /* void */
    }

    list_skip(text, word->len);

    return word->len != 0;
}


int
list_until(bloom_key_t *text, bloom_key_t *part, char delimiter)
{
    const uint8_t  *end;

    *part = *text;
    end = text->len != 0 ? memchr(text->data, delimiter, text->len) : NULL;

    if (end == NULL) {
        list_skip(text, text->len);
        return 0;
    }

    part->len = (size_t) (end - text->data);
    list_skip(text, part->len + 1);

    return 1;
}


void
list_cut_comment(bloom_key_t *text)
{
    const uint8_t  *p, *end;

    p = text->data;
    end = text->data + text->len;

    for ( /* void */ ;
         p < end && (p = memchr(p, '#', (size_t) (end - p))) != NULL;
         p++)
    {
        if (p == text->data || list_is_blank(p[-1])) {
            text->len = (size_t) (p - text->data);
            list_trim(text);
            return;
        }
    }
}


/* Returns 1 if all bytes of a text can be in the name of a host, or are
 * `also`. */
static int
has_name_bytes(const bloom_key_t *text, char also)
{
    size_t   i;
    uint8_t  c;

    for (i = 0; i < text->len; i++) {
        c = text->data[i];

        if (!bloom_is_alpha(c) && !bloom_is_digit(c) && c != '.' && c != '-'
            && c != '_' && c != (uint8_t) also && c < 0x80)
        {
            return 0;
        }
    }

    return 1;
}


int
list_is_name(const bloom_key_t *text)
{
    return has_name_bytes(text, '.');
}


int
list_is_address(const bloom_key_t *text)
{
    bloom_host_t  host;

    return text->len != 0
           && (text->data[0] == ':' || text->data[0] == '['
               || bloom_hex_digit(text->data[0]) != -1)
           && bloom_host_parse(&host, text->data, text->len) == NULL
           && host.kind != BLOOM_HOST_NAME;
}


int
list_is_sink(const bloom_key_t *text)
{
    bloom_key_t   shown;
    bloom_host_t  host;

    /* most lines of a list have one of these */

    if (list_equals(text, "0.0.0.0") || list_equals(text, "127.0.0.1")) {
        return 1;
    }

    if (!list_is_address(text)
        || bloom_host_parse(&host, text->data, text->len) != NULL)
    {
        return 0;
    }

    shown.data = host.text;
    shown.len = host.len;

    return host.kind == BLOOM_HOST_IPV4
           ? list_equals(&shown, "0.0.0.0") || list_begins(&shown, "127.")
           : list_equals(&shown, "::") || list_equals(&shown, "::1");
}


int
list_is_ttl_or_class(const bloom_key_t *word)
{
    return (word->len != 0 && bloom_is_digit(word->data[0]))
           || list_equals(word, "IN") || list_equals(word, "CH")
           || list_equals(word, "HS");
}


size_t
list_scheme(const bloom_key_t *text)
{
    size_t          i, len;
    const uint8_t  *colon;

    colon = text->len > 3 ? memchr(text->data, ':', text->len - 2) : NULL;

    if (colon == NULL || colon == text->data || memcmp(colon, "://", 3) != 0) {
        return 0;
    }

    len = (size_t) (colon - text->data);

    for (i = 0; i < len; i++) {
        if (!bloom_is_alpha(text->data[i])
            && (i == 0 || (!bloom_is_digit(text->data[i])
                           && memchr("+-.", text->data[i], 3) == NULL)))
        {
            return 0;
        }
    }

    return len + 3;
}


void
list_cut_wildcard(bloom_key_t *name)
{
    if (list_begins(name, "*.")) {
        list_skip(name, 1);
    }

    while (name->len > 1 && name->data[0] == '.') {
        list_skip(name, 1);
    }
}


int
list_is_place(const bloom_key_t *text)
{
    bloom_key_t  rest, host;

    rest = *text;
    list_trim(&rest);
    list_cut_wildcard(&rest);

    if (list_scheme(&rest) != 0) {
        return 1;
    }

    if (list_is_address(&rest)) {
        return list_has(&rest, '.') || list_has(&rest, ':');
    }

    (void) list_until(&rest, &host, '/');

    if (!has_name_bytes(&host, ':')) {
        return 0;
    }

    while (list_ends(&host, '.')) {
        host.len--;
    }

    return list_has(&host, '.');
}


const char *
list_domain(const bloom_key_t *name)
{
    bloom_key_t  rest;

    if (list_has(name, '*')) {
        return "has a wildcard";
    }

    rest = *name;

    while (rest.len != 0 && list_ends(&rest, '.')) {
        rest.len--;
    }

    if (!list_has(&rest, '.') && !list_has(&rest, ':')) {
        return "is a whole top-level domain, which no key can stand for";
    }

    return NULL;
}


int
list_bare(const char *why)
{
    const char  *advice;

    advice = strstr(why, LIST_USE_FROM);

    return advice != NULL ? (int) (advice - why) : (int) strlen(why);
}
