/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the domains that a configuration of dnsmasq blocks.
 */

#include "list_dnsmasq.h"
#include "list_names.h"


enum { FIRST = 0, BLOCKED, EXEMPT, END };   /* steps */

/* Modes, as bits: the last domain was found; names below a domain matter. */
enum { LAST = 1, DOMAIN = 2 };


/* Decides by what follows the last slash, `to`, whether the domains before it
 * are blocked. */
static list_result_e
judge(list_line_t *at, const bloom_key_t *option, const bloom_key_t *to)
{
    if (list_equals(option, "address")) {

        if (to->len == 0 || list_equals(to, "#")) {
            return LIST_KEY;
        }

        /* IPv4 addresses are then asked for elsewhere */

        return !list_is_sink(to) ? list_skipped(at, "has an address of its own")
               : list_has(to, ':') ? list_skipped(at, "blocks only IPv6")
               : LIST_KEY;
    }

    if (to->len == 0) {
        at->mode = DOMAIN;
        return LIST_KEY;
    }

    if (list_equals(option, "server") && list_equals(to, "#")) {
        return LIST_EXCEPTION;
    }

    return list_skipped(at, "is forwarded to a server");
}


/* Returns 1 for what may be an option without a value, such as bogus-priv. */
static int
is_flag(const bloom_key_t *text)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {
        if (!bloom_is_alpha(text->data[i]) && !bloom_is_digit(text->data[i])
            && text->data[i] != '-')
        {
            return 0;
        }
    }

    return 1;
}


/* Takes the name of an option, and leaves its value.  Returns 0 if the line has
 * no value. */
static int
cut_option(bloom_key_t *line, bloom_key_t *option)
{
    int  has_value;

    list_trim(line);
    list_cut_comment(line);

    if (list_begins(line, "--")) {
        list_skip(line, 2);
    }

    has_value = list_until(line, option, '=');
    list_trim(option);
    list_trim(line);

    return has_value;
}


/* Takes the domains of a value such as /bad.example/#, and what they have
 * behind the last slash.  Returns 0 if the value names no domain. */
static int
cut_domains(bloom_key_t *value, bloom_key_t *to)
{
    const uint8_t  *slash;

    slash = value->len != 0 ? memrchr(value->data, '/', value->len) : NULL;

    if (slash == NULL || slash == value->data || value->data[0] != '/') {
        return 0;
    }

    list_skip(value, 1);
    to->data = slash + 1;
    to->len = (size_t) (value->data + value->len - to->data);
    value->len = (size_t) (slash - value->data);

    return 1;
}


/* Takes the option, and leaves the domains in at->line. */
static list_result_e
take_option(list_line_t *at)
{
    bloom_key_t  option, to;

    list_trim(&at->line);

    if (at->line.len == 0) {
        return LIST_EMPTY;
    }

    if (list_begins(&at->line, "#")) {
        return LIST_COMMENT;
    }

    if (!cut_option(&at->line, &option)) {
        return is_flag(&option)
               ? list_skipped(at, "is another option of dnsmasq")
               : list_bad(at, "is not an option of dnsmasq such as "
                              "address=/bad.example/");
    }

    if (!list_equals(&option, "address") && !list_equals(&option, "server")
        && !list_equals(&option, "local"))
    {
        return list_skipped(at, list_equals(&option, "conf-file")
                                || list_equals(&option, "conf-dir")
                                || list_equals(&option, "servers-file")
                                || list_equals(&option, "addn-hosts")
                                || list_equals(&option, "hostsdir")
                                ? "includes another file"
                                : "is another option of dnsmasq");
    }

    return cut_domains(&at->line, &to) ? judge(at, &option, &to)
                                       : list_skipped(at, "names no domain");
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

    if (at->step == END || (at->mode & LAST) != 0) {
        return LIST_END;
    }

    if (!list_until(&at->line, &at->key, '/')) {
        at->mode |= LAST;
    }

    if (at->key.len == 0 || list_equals(&at->key, "#")) {
        return list_skipped(at, at->key.len == 0
                                ? "applies to names without a dot"
                                : "applies to all names");
    }

    list_cut_wildcard(&at->key);
    at->why = list_domain(&at->key);

    if (at->why == NULL && at->step == BLOCKED
        && list_names_has(at->cancelled, LIST_NAMES_DNSMASQ,
                          (at->mode & DOMAIN) != 0 ? LIST_NAMES_OWN_BELOW
                                                   : LIST_NAMES_OWN,
                          &at->key))
    {
        at->why = LIST_NAMES_WHY;
    }

    return at->why != NULL ? LIST_SKIPPED
           : at->step == BLOCKED ? LIST_KEY : LIST_EXCEPTION;
}


static int
owns(const bloom_key_t *line)
{
    size_t  i;

    static const char *const  options[] = {
        "address=/", "server=/", "local=/", "host-record=", "cname=", "--"
    };

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (list_begins(line, options[i])) {
            return 1;
        }
    }

    return 0;
}


/* Remembers the names of a line that have addresses of their own. */
static void
keep_own(key_set_t *cancelled, bloom_key_t line)
{
    int          more;
    char         delimiter;
    bloom_key_t  option, to, name;

    if (!cut_option(&line, &option)) {
        return;
    }

    if (list_equals(&option, "address")) {

        if (!cut_domains(&line, &to) || !list_is_address(&to)
            || list_is_sink(&to))
        {
            return;
        }

        delimiter = '/';

    } else if (list_equals(&option, "host-record")
               || list_equals(&option, "cname"))
    {
        delimiter = ',';

    } else {
        return;
    }

    do {
        more = list_until(&line, &name, delimiter);
        list_trim(&name);
        list_cut_wildcard(&name);

        /* the last name of cname= is what the others lead to */

        if (!list_is_address(&name)
            && (more || !list_equals(&option, "cname")))
        {
            list_names_add_own(cancelled, LIST_NAMES_DNSMASQ, &name);
        }
    } while (more);
}


static void
pass(void *state, key_set_t *cancelled, const uint8_t *data, size_t len)
{
    bloom_key_t  text, line;

    (void) state;

    text.data = data;
    text.len = len;

    while (text.len != 0) {
        (void) list_until(&text, &line, '\n');
        keep_own(cancelled, line);
    }
}


const list_reader_t  list_dnsmasq = {
    .name = "dnsmasq",
    .next = next,
    .owns = owns,
    .names = 1,
    .pass = pass
};
