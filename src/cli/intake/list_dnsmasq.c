/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the domains that a configuration of dnsmasq blocks.
 */

#include "list_dnsmasq.h"


enum { FIRST = 0, BLOCKED, EXEMPT, END };   /* steps */
enum { MORE = 0, LAST };                    /* modes: is it the last domain? */


/* Decides by what follows the last slash, `to`, whether the domains before it
 * are blocked. */
static list_result_e
judge(list_line_t *at, const bloom_key_t *option, const bloom_key_t *to)
{
    if (list_equals(option, "address")) {
        return to->len == 0 || list_equals(to, "#") || list_is_sink(to)
               ? LIST_KEY
               : list_skipped(at, "has an address of its own");
    }

    if (to->len == 0) {
        return LIST_KEY;
    }

    if (list_equals(option, "server") && list_equals(to, "#")) {
        return LIST_EXCEPTION;
    }

    return list_skipped(at, "is forwarded to a server");
}


/* Takes the option, and leaves the domains in at->line. */
static list_result_e
take_option(list_line_t *at)
{
    bloom_key_t     option, to;
    const uint8_t  *slash;

    list_trim(&at->line);

    if (at->line.len == 0) {
        return LIST_EMPTY;
    }

    if (list_begins(&at->line, "#")) {
        return LIST_COMMENT;
    }

    list_cut_comment(&at->line);

    if (list_begins(&at->line, "--")) {
        list_skip(&at->line, 2);
    }

    if (!list_until(&at->line, &option, '=')) {
        return list_bad(at, "is not an option of dnsmasq such as "
                            "address=/bad.example/");
    }

    list_trim(&option);
    list_trim(&at->line);

    if (!list_equals(&option, "address") && !list_equals(&option, "server")
        && !list_equals(&option, "local"))
    {
        return list_skipped(at, "is another option of dnsmasq");
    }

    slash = at->line.len != 0 ? memrchr(at->line.data, '/', at->line.len)
                              : NULL;

    if (slash == NULL || slash == at->line.data || at->line.data[0] != '/') {
        return list_skipped(at, "names no domain");
    }

    list_skip(&at->line, 1);
    to.data = slash + 1;
    to.len = (size_t) (at->line.data + at->line.len - to.data);
    at->line.len = (size_t) (slash - at->line.data);

    return judge(at, &option, &to);
}


static list_result_e
next(list_line_t *at)
{
    list_result_e  result;

    if (at->step == FIRST) {
        result = take_option(at);

        at->step = result == LIST_KEY ? BLOCKED
                   : result == LIST_EXCEPTION ? EXEMPT : END;

        if (at->step == END) {
            return result;
        }
    }

    if (at->step == END || at->mode == LAST) {
        return LIST_END;
    }

    if (!list_until(&at->line, &at->key, '/')) {
        at->mode = LAST;
    }

    if (at->key.len == 0 || list_equals(&at->key, "#")) {
        return list_skipped(at, at->key.len == 0
                                ? "applies to names without a dot"
                                : "applies to all names");
    }

    list_cut_wildcard(&at->key);
    at->why = list_domain(&at->key);

    return at->why != NULL ? LIST_SKIPPED
           : at->step == BLOCKED ? LIST_KEY : LIST_EXCEPTION;
}


static int
owns(const bloom_key_t *line)
{
    return list_begins(line, "address=/") || list_begins(line, "server=/")
           || list_begins(line, "local=/");
}


const list_reader_t  list_dnsmasq = {
    .name = "dnsmasq",
    .next = next,
    .owns = owns
};
