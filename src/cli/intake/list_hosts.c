/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the names in hosts files.
 */

#include "list_hosts.h"


enum { FIRST = 0, NAMES, ADDRESS_BOOK, KEYS, END };


/* Returns 1 for a name that hosts files have for the machine itself. */
static int
is_local(const bloom_key_t *name)
{
    size_t  i;

    static const struct {
        size_t       len;
        const char  *name;
    } names[] = {

#define NAME(name)  { sizeof(name) - 1, name }

        NAME("localhost"), NAME("localhost.localdomain"), NAME("local"),
        NAME("localhost4"), NAME("localhost4.localdomain4"),
        NAME("localhost6"), NAME("localhost6.localdomain6"),
        NAME("broadcasthost"), NAME("ip6-localhost"), NAME("ip6-loopback"),
        NAME("ip6-localnet"), NAME("ip6-mcastprefix"), NAME("ip6-allnodes"),
        NAME("ip6-allrouters"), NAME("ip6-allhosts"), NAME("0.0.0.0")
    };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].len == name->len && list_equals(name, names[i].name)) {
            return 1;
        }
    }

    return 0;
}


/* Takes the address at the beginning of the line, and stores the next step. */
static list_result_e
take_address(list_line_t *at)
{
    bloom_key_t     address;
    const uint8_t  *comment;

    list_trim(&at->line);

    if (at->line.len == 0) {
        return LIST_EMPTY;
    }

    comment = memchr(at->line.data, '#', at->line.len);

    if (comment == at->line.data) {
        return LIST_COMMENT;
    }

    if (comment != NULL) {
        at->line.len = (size_t) (comment - at->line.data);
    }

    (void) list_word(&at->line, &address);

    if (!list_is_address(&address)) {
        return list_bad(at, "does not begin with an address");
    }

    list_trim(&at->line);

    if (at->line.len == 0) {
        return list_bad(at, "has an address but no name");
    }

    at->step = list_is_sink(&address) ? NAMES : ADDRESS_BOOK;

    return LIST_KEY;
}


list_result_e
list_hosts_next(list_line_t *at)
{
    list_result_e  result;

    if (at->step == FIRST) {
        at->step = END;
        result = take_address(at);

        if (result != LIST_KEY) {
            return result;
        }
    }

    while (at->step != END && list_word(&at->line, &at->key)) {

        if (is_local(&at->key)) {
            continue;
        }

        if (at->step == ADDRESS_BOOK) {
            at->step = END;
            return list_skipped(at, "gives a host its address, and blocks "
                                    "nothing");
        }

        at->step = KEYS;

        return list_is_address(&at->key)
               ? list_skipped(at, "names an address, which nobody resolves")
               : LIST_KEY;
    }

    if (at->step == NAMES || at->step == ADDRESS_BOOK) {
        at->step = END;
        return list_skipped(at, "has only names for the machine itself");
    }

    return LIST_END;
}


/* Returns 1 for a line that begins with an address, and not with a number, as
 * the lines of a table may. */
static int
owns(const bloom_key_t *line)
{
    bloom_key_t  rest, address;

    rest = *line;
    (void) list_word(&rest, &address);

    return list_is_address(&address)
           && (list_has(&address, '.') || list_has(&address, ':')
               || list_equals(&address, "0"));
}


const list_reader_t  list_hosts = {
    .name = "hosts",
    .next = list_hosts_next,
    .owns = owns,
    .names = 1
};
