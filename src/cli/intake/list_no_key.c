/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds ranges of addresses, element rules, and lines of dnsmasq and
 * of CSV.  Each key of a build passes here, so the tests reject most keys by a
 * few bytes or by memchr().
 */

#include "list_no_key.h"


#define MARKER_MAX  3                    /* the bytes within "#@$?#" */


/* Takes an address from the beginning of a text, without a port or brackets.
 * Returns its length in bits, or 0 if the text has none there. */
static unsigned
take_address(bloom_key_t *text)
{
    size_t       i, colons;
    bloom_key_t  address;

    for (i = 0, colons = 0; i < text->len; i++) {
        if (text->data[i] == ':') {
            colons++;

        } else if (text->data[i] != '.' && bloom_hex_digit(text->data[i]) == -1)
        {
            break;
        }
    }

    address.data = text->data;
    address.len = i;

    if (colons == 1 || !list_is_address(&address)) {
        return 0;
    }

    list_skip(text, i);

    return colons != 0 ? 128 : 32;
}


/* Takes a number.  Returns -1 if the text does not begin with one of at most
 * three digits. */
static int
take_number(bloom_key_t *text)
{
    int     number;
    size_t  i;

    for (i = 0, number = 0;
         i < text->len && i < 4 && bloom_is_digit(text->data[i]);
         i++)
    {
        number = number * 10 + text->data[i] - '0';
    }

    list_skip(text, i);

    return i != 0 && i < 4 ? number : -1;
}


/* Returns 1 if nothing but a comment follows a range. */
static int
is_end(const bloom_key_t *rest)
{
    return rest->len == 0 || list_is_blank(rest->data[0])
           || rest->data[0] == ';' || rest->data[0] == '#'
           || rest->data[0] == ',';
}


static int
is_range(bloom_key_t text)
{
    int          number;
    unsigned     bits;
    bloom_key_t  rest;

    bits = take_address(&text);

    if (bits == 0) {
        return 0;
    }

    if (list_begins(&text, "/")) {
        list_skip(&text, 1);
        rest = text;
        number = take_number(&rest);

        return (number != -1 && (unsigned) number <= bits && is_end(&rest))
               || (bits == 32 && list_has(&text, '.')
                   && take_address(&text) == 32 && is_end(&text));
    }

    while (text.len != 0 && list_is_blank(text.data[0])) {
        list_skip(&text, 1);
    }

    if (!list_begins(&text, "-")) {
        return 0;
    }

    list_skip(&text, 1);
    list_trim(&text);

    return take_address(&text) != 0 && is_end(&text);
}


/* Returns 1 if a text may begin with an address. */
static inline int
may_be_range(const bloom_key_t *text)
{
    uint8_t  c;

    c = text->data[0];

    return bloom_is_digit(c)
           || ((c == ':' || bloom_hex_digit(c) != -1)
               && memchr(text->data, ':', text->len < 5 ? text->len : 5)
                  != NULL);
}


/* Returns 1 for a byte of the domains before a marker of element rules. */
static int
is_domain_byte(uint8_t c)
{
    return bloom_is_alpha(c) || bloom_is_digit(c) || c >= 0x80
           || memchr("-._*~,", c, 6) != NULL;
}


/* Returns the length of a marker of element rules; 0 if the text does not begin
 * with one. */
static size_t
marker(const bloom_key_t *text)
{
    size_t  i;

    if (list_begins(text, "$$") || list_begins(text, "$@$")) {
        return text->data[1] == '$' ? 2 : 3;
    }

    for (i = 1; i < text->len && i <= MARKER_MAX; i++) {
        if (memchr("@?$%", text->data[i], 4) == NULL) {
            break;
        }
    }

    return text->len > i && text->data[0] == '#' && text->data[i] == '#'
           ? i + 1 : 0;
}


/* Returns 1 for an element rule whose marker begins at p. */
static int
is_element_rule(bloom_key_t text, const uint8_t *p)
{
    size_t  i, len;

    for (i = 0; text.data + i < p; i++) {
        if (!is_domain_byte(text.data[i])) {
            return 0;
        }
    }

    list_skip(&text, i);
    len = marker(&text);
    list_skip(&text, len);

    /* "## heading" and "#####" are comments */

    return len != 0 && text.len != 0 && !list_is_blank(text.data[0])
           && !(i == 0 && list_begins(&text, "##"));
}


/* Returns 1 for a line such as address=/bad.example/, in which the form url
 * would see a path on the host "address=". */
static int
is_dnsmasq(bloom_key_t text)
{
    if (list_begins(&text, "--")) {
        list_skip(&text, 2);
    }

    return list_begins(&text, "address=/") || list_begins(&text, "server=/")
           || list_begins(&text, "local=/");
}


/* Returns 1 for a name, and a comma or a semicolon in or after it, before any
 * path: the form url would see a host with such a byte, which none has. */
static int
is_csv(const bloom_key_t *text)
{
    size_t  i, separators;

    for (i = 0, separators = 0; i < text->len; i++) {

        if (text->data[i] == ',' || text->data[i] == ';') {
            separators++;

        } else if (memchr("/?#", text->data[i], 3) != NULL) {
            break;

        } else if (!is_domain_byte(text->data[i])) {
            return 0;
        }
    }

    return separators != 0 && text->data[0] != ',' && text->data[0] != ';';
}


const char *
list_no_key(list_keys_e keys, const bloom_key_t *key)
{
    const uint8_t  *p;

    if (keys == LIST_ANY || key->len == 0) {
        return NULL;
    }

    if (may_be_range(key) && is_range(*key)) {
        return "is a range of addresses";
    }

    if (memchr("asl-", key->data[0], 4) != NULL && is_dnsmasq(*key)) {
        return "is a line of dnsmasq" LIST_USE_FROM "dnsmasq";
    }

    p = memchr(key->data, '#', key->len);

    if (p != NULL && is_element_rule(*key, p)) {
        return "is about elements of pages";
    }

    p = memchr(key->data, '$', key->len);

    if (p != NULL && is_element_rule(*key, p)) {
        return "is about elements of pages";
    }

    return (list_has(key, ',') || list_has(key, ';')) && is_csv(key)
           ? "is a line of CSV" LIST_USE_FROM "csv:COLUMN" : NULL;
}
