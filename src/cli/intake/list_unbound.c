/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the names that a configuration of unbound blocks.
 */

#include "list_names.h"
#include "list_unbound.h"


enum { FIRST = 0, MORE, END };           /* steps */

/* The state of a file. */
typedef struct {
    int  view;                           /* the options are those of a view */
} section_t;

/* A resource record, without its TTL and class. */
typedef struct {
    bloom_key_t  name;
    bloom_key_t  type;
    bloom_key_t  data;                   /* its first word */
} record_t;

/* What a zone does with the names in it. */
typedef enum {
    ALWAYS = 0,                          /* blocks them */
    UNLESS_OWN,                          /* does so, if its own name has no
                                            address of its own */
    UNLESS_OWN_BELOW,                    /* does so, if none of them has */
    EXEMPT,                              /* has them answered as usual */
    UNLESS_BLOCKED,                      /* does so, if none is blocked */
    NOT                                  /* something else */
} effect_e;

/* The types of zones. */
static const struct {
    const char  *type;
    effect_e     effect;
    const char  *why;                    /* NOT: the reason to skip it */
} types[] = {
    { "always_nxdomain", ALWAYS, NULL },
    { "always_refuse", ALWAYS, NULL },
    { "always_nodata", ALWAYS, NULL },
    { "always_deny", ALWAYS, NULL },
    { "always_null", ALWAYS, NULL },
    { "static", UNLESS_OWN_BELOW, NULL },
    { "refuse", UNLESS_OWN, NULL },
    { "deny", UNLESS_OWN, NULL },
    { "redirect", UNLESS_OWN, NULL },
    { "inform_deny", UNLESS_OWN, NULL },
    { "inform_redirect", UNLESS_OWN, NULL },
    { "always_transparent", EXEMPT, NULL },
    { "transparent", UNLESS_BLOCKED, NULL },
    { "typetransparent", UNLESS_BLOCKED, NULL },
    { "inform", UNLESS_BLOCKED, NULL },
    { "block_a", NOT, "blocks only one kind of addresses" },
    { "block_aaaa", NOT, "blocks only one kind of addresses" },
    { "block_a_wdata", NOT, "blocks only one kind of addresses" },
    { "block_aaaa_wdata", NOT, "blocks only one kind of addresses" },
    { "truncate", NOT, "only asks for TCP" },
    { "nodefault", NOT, "only removes a zone that unbound has by default" },
    { "noview", NOT, "is about some clients only" }
};


/* Takes the next word, without its quotes.  Returns 0 at the end of the line,
 * or where a comment begins. */
static int
next_word(bloom_key_t *line, bloom_key_t *word)
{
    uint8_t  quote;

    list_trim(line);

    if (line->len == 0 || line->data[0] == '#') {
        line->len = 0;
        return 0;
    }

    quote = line->data[0];

    if (quote == '"' || quote == '\'') {
        list_skip(line, 1);
        (void) list_until(line, word, (char) quote);
        return 1;
    }

    return list_word(line, word);
}


/* Divides the value of local-data.  Returns 0, or -1 if it is no record. */
static int
divide(record_t *record, bloom_key_t text)
{
    (void) list_word(&text, &record->name);

    do {
        (void) list_word(&text, &record->type);
    } while (list_is_ttl_or_class(&record->type));

    return list_word(&text, &record->data) ? 0 : -1;
}


/* Returns 1 if a record gives its name an address, or another name. */
static int
is_own(const record_t *record)
{
    return list_equals(&record->type, "CNAME")
           || ((list_equals(&record->type, "A")
                || list_equals(&record->type, "AAAA"))
               && !list_is_sink(&record->data));
}


static list_result_e
take_name(list_line_t *at, const bloom_key_t *name, list_result_e result)
{
    if (list_equals(name, ".")) {
        return list_skipped(at, "applies to all names");
    }

    at->key = *name;
    at->why = list_domain(name);

    return at->why == NULL ? result : LIST_SKIPPED;
}


/* Returns the index of a type of zones, or -1. */
static int
find_type(const bloom_key_t *type)
{
    size_t  i;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (list_equals(type, types[i].type)) {
            return (int) i;
        }
    }

    return -1;
}


static list_result_e
take_zone(list_line_t *at, const bloom_key_t *name, const bloom_key_t *type)
{
    int  i;

    i = find_type(type);

    if (i == -1) {
        return list_bad(at, "has a type of local-zone that unbound does not "
                            "have");
    }

    switch (types[i].effect) {

    case ALWAYS:
        return take_name(at, name, LIST_KEY);

    case UNLESS_OWN:
        return list_names_has(at->cancelled, LIST_NAMES_UNBOUND,
                              LIST_NAMES_OWN, name)
               ? list_skipped(at, LIST_NAMES_WHY)
               : take_name(at, name, LIST_KEY);

    case UNLESS_OWN_BELOW:
        return list_names_has(at->cancelled, LIST_NAMES_UNBOUND,
                              LIST_NAMES_OWN_BELOW, name)
               ? list_skipped(at, LIST_NAMES_WHY)
               : take_name(at, name, LIST_KEY);

    case EXEMPT:
        return take_name(at, name, LIST_EXCEPTION);

    case UNLESS_BLOCKED:
        return list_names_has(at->cancelled, LIST_NAMES_UNBOUND,
                              LIST_NAMES_BLOCKED_BELOW, name)
               ? list_skipped(at, "is answered as usual, but has blocked names "
                                  "in it")
               : take_name(at, name, LIST_EXCEPTION);

    default: /* NOT */
        return list_skipped(at, types[i].why);
    }
}


static list_result_e
take_data(list_line_t *at, const bloom_key_t *value)
{
    record_t  record;

    if (divide(&record, *value) != 0) {
        return list_bad(at, "has no record such as bad.example A 0.0.0.0");
    }

    if (is_own(&record)) {
        return list_skipped(at, list_equals(&record.type, "CNAME")
                                ? "is answered with another name"
                                : "has an address of its own");
    }

    return list_equals(&record.type, "A") || list_equals(&record.type, "AAAA")
           ? take_name(at, &record.name, LIST_KEY)
           : list_skipped(at, "has data of its own");
}


/* Returns 1 for an option that begins a section, and stores which it is. */
static int
is_section(section_t *section, const bloom_key_t *option)
{
    size_t  i;

    static const char *const  sections[] = {
        "view:", "server:", "remote-control:", "stub-zone:", "forward-zone:",
        "auth-zone:", "rpz:", "python:", "dynlib:", "dnscrypt:", "cachedb:",
        "ipset:", "dnstap:"
    };

    for (i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (list_equals(option, sections[i])) {
            section->view = i == 0;
            return 1;
        }
    }

    return 0;
}


/* Takes the next option of a line that begins no section. */
static list_result_e
take_option(list_line_t *at)
{
    section_t   *section;
    bloom_key_t  option, value, type;

    section = at->state;

    do {
        if (!next_word(&at->line, &option)) {
            return LIST_END;
        }
    } while (is_section(section, &option));

    if (!list_ends(&option, ':')) {
        return list_bad(at, "is not an option of unbound such as "
                            "local-zone: \"bad.example\" always_nxdomain");
    }

    if (list_begins(&option, "include")) {
        at->line.len = 0;
        return list_skipped(at, "includes another file");
    }

    if (list_equals(&option, "local-zone:")) {

        if (!next_word(&at->line, &value) || !next_word(&at->line, &type)) {
            return list_bad(at, "has no type of local-zone");
        }

        return section->view ? list_skipped(at, "is about some clients only")
                             : take_zone(at, &value, &type);
    }

    if (list_equals(&option, "local-data:")) {

        if (!next_word(&at->line, &value)) {
            return list_bad(at, "has no record such as bad.example A 0.0.0.0");
        }

        return section->view ? list_skipped(at, "is about some clients only")
                             : take_data(at, &value);
    }

    at->line.len = 0;

    return list_skipped(at, "is another option of unbound");
}


static list_result_e
next(list_line_t *at)
{
    list_result_e  result;

    if (at->step == END) {
        return LIST_END;
    }

    if (at->step == FIRST) {
        list_trim(&at->line);

        if (at->line.len == 0 || at->line.data[0] == '#') {
            at->step = END;
            return at->line.len == 0 ? LIST_EMPTY : LIST_COMMENT;
        }
    }

    result = take_option(at);

    if (result == LIST_END && at->step == FIRST) {
        result = LIST_COMMENT;               /* "server:" alone */
    }

    at->step = result == LIST_BAD || result == LIST_END
               || result == LIST_COMMENT ? END : MORE;

    return result;
}


/* Remembers the name of a record, if it decides what its zone means. */
static void
keep_data(key_set_t *cancelled, const bloom_key_t *value)
{
    record_t     record;
    bloom_key_t  zone, label;

    if (divide(&record, *value) != 0) {
        return;
    }

    if (is_own(&record)) {
        list_names_add_own(cancelled, LIST_NAMES_UNBOUND, &record.name);
        return;
    }

    for (zone = record.name;
         zone.len != 0;
         (void) list_until(&zone, &label, '.'))
    {
        if (list_names_has(cancelled, LIST_NAMES_UNBOUND,
                           LIST_NAMES_ZONE, &zone))
        {
            list_names_add(cancelled, LIST_NAMES_UNBOUND,
                           LIST_NAMES_BLOCKED_BELOW, &zone);
        }
    }
}


/* Remembers names of zones and of local-data.  A zone is before its data: to
 * remember all blocked names would take much memory, for few zones. */
static void
pass(void *state, key_set_t *cancelled, const uint8_t *data, size_t len)
{
    int          i;
    section_t   *section;
    bloom_key_t  text, line, word, type;

    section = state;
    text.data = data;
    text.len = len;

    while (text.len != 0) {
        (void) list_until(&text, &line, '\n');

        while (next_word(&line, &word)) {

            if (is_section(section, &word) || section->view) {
                continue;
            }

            if (list_equals(&word, "local-data:")) {

                if (next_word(&line, &word)) {
                    keep_data(cancelled, &word);
                }

            } else if (list_equals(&word, "local-zone:")
                       && next_word(&line, &word) && next_word(&line, &type))
            {
                i = find_type(&type);

                if (i != -1 && types[i].effect == UNLESS_BLOCKED) {
                    list_names_add(cancelled, LIST_NAMES_UNBOUND,
                                   LIST_NAMES_ZONE, &word);
                }
            }
        }
    }
}


static int
owns(const bloom_key_t *line)
{
    return list_begins(line, "local-") || list_begins(line, "server:");
}


const list_reader_t  list_unbound = {
    .name = "unbound",
    .state = sizeof(section_t),
    .next = next,
    .owns = owns,
    .names = 1,
    .pass = pass
};
