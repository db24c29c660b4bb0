/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the hosts and URLs that Adblock-style lists block.
 */

#include "list_adblock.h"
#include "list_adblock_if.h"
#include "list_adblock_pattern.h"
#include "list_hosts.h"

#define SEVERAL_LINES  "is part of a rule with several lines"
#define TAKEN_AWAY     "is taken away by a $badfilter rule"


enum { FIRST = 0, SECOND, END };         /* steps */
enum { RULE = 0, EXEMPT, HOSTS };        /* modes */

/* What the lines before the next one say about it. */
typedef struct {
    adblock_if_t  block;
    int           continued;             /* the line before ended with " \" */
} state_t;

/* What a line is, before it is taken apart. */
typedef enum {
    LINE_RULE = 0,
    LINE_DIRECTIVE,                      /* !#if, !#else, !#endif */
    LINE_STRAY,                          /* one of these without its !#if */
    LINE_PART                            /* of a rule with several lines */
} line_e;

/* The parts of a rule. */
typedef struct {
    bloom_key_t        pattern;
    adblock_options_t  options;
    int                exempts;
} rule_t;


/* Returns 1 for an element rule such as example.com##.ad, of any kind. */
static int
is_cosmetic(const bloom_key_t *line)
{
    const uint8_t  *p, *q, *end;

    if (list_begins(line, "[$")) {
        return 1;
    }

    end = line->data + line->len;

    for (p = line->data;
         (p = memchr(p, '#', (size_t) (end - p))) != NULL;
         p++)
    {
        for (q = p + 1; q < end && q - p <= 3 && memchr("@?$%", *q, 4); q++) {
            /* void */
        }

        if (q + 1 < end && *q == '#') {
            return 1;
        }
    }

    return memmem(line->data, line->len, "$$", 2) != NULL
           || memmem(line->data, line->len, "$@$", 3) != NULL;
}


static int
is_comment(const bloom_key_t *line)
{
    if (line->data[0] == '!'
        || (line->data[0] == '[' && !list_begins(line, "[$")))
    {
        return 1;
    }

    return line->data[0] == '#'
           && (line->len == 1 || list_is_blank(line->data[1])
               || list_begins(line, "####") || !is_cosmetic(line));
}


static int
owns(const bloom_key_t *line)
{
    return list_begins(line, "!") || list_begins(line, "||")
           || list_begins(line, "@@") || list_begins(line, "[Ad")
           || list_begins(line, "[uBlock")
           || (line->len != 0 && !is_comment(line) && is_cosmetic(line));
}


/* Takes the next line into the state. */
static line_e
take_line(state_t *state, const bloom_key_t *line)
{
    int           continued;
    size_t        len;
    adblock_if_e  result;

    continued = state->continued && list_begins(line, "    ");
    len = line->len;
    state->continued = len >= 2 && memcmp(line->data + len - 2, " \\", 2) == 0;

    result = adblock_if_take(&state->block, line);

    if (result != ADBLOCK_IF_NONE) {
        return result == ADBLOCK_IF_TAKEN ? LINE_DIRECTIVE : LINE_STRAY;
    }

    return continued ? LINE_PART : LINE_RULE;
}


/* Divides a rule into its parts. */
static void
take_rule(rule_t *rule, bloom_key_t line)
{
    bloom_key_t  options;

    memset(rule, 0, sizeof(*rule));
    list_cut_comment(&line);

    if (list_begins(&line, "@@")) {
        list_skip(&line, 2);
        rule->exempts = 1;
    }

    rule->pattern = line;

    if (adblock_options_cut(&rule->pattern, &options)) {
        adblock_options_read(&rule->options, options, rule->exempts);
    }
}


/* Returns 1 if a part of the rule is left when those that are cancelled are
 * taken away. */
static int
is_left(const key_set_t *cancelled, const rule_t *rule)
{
    uint8_t      buf[ADBLOCK_PATTERN_TWIN];
    unsigned     part, parts;
    bloom_key_t  twin;

    if (cancelled == NULL || cancelled->n == 0) {
        return 1;
    }

    parts = adblock_options_parts(&rule->options);

    for (part = ADBLOCK_PAGES; part <= ADBLOCK_ALL; part <<= 1) {
        if ((parts & part) == 0) {
            continue;
        }

        twin = adblock_pattern_twin(buf, rule->pattern, &rule->options,
                                    rule->exempts, part);

        if (twin.len == 0 || key_set_find(cancelled, &twin) == NULL) {
            return 1;
        }
    }

    return 0;
}


/* Takes the first key of a rule.  at->line gets the key with a slash behind it,
 * in at->buf, if that is the second one. */
static list_result_e
take_keys(list_line_t *at)
{
    size_t             len;
    rule_t             rule;
    adblock_pattern_t  pattern;

    take_rule(&rule, at->line);

    if (rule.options.badfilter && rule.options.why == NULL) {
        return list_skipped(at, "takes another rule away ($badfilter)");
    }

    at->why = rule.options.why;

    if (at->why == NULL) {
        at->why = adblock_pattern_read(&pattern, rule.pattern, at->keys);
    }

    if (at->why == NULL && !is_left(at->cancelled, &rule)) {
        at->why = TAKEN_AWAY;
    }

    if (at->why != NULL) {
        return LIST_SKIPPED;
    }

    at->mode = rule.exempts ? EXEMPT : RULE;
    at->key = pattern.host;

    if (pattern.path.len > 1) {
        at->key.len += pattern.path.len;
        len = at->key.len;

        if (!list_ends(&pattern.path, '/') && !list_has(&pattern.path, '?')) {
            memcpy(at->buf, at->key.data, len);
            at->buf[len] = '/';
            at->line.data = at->buf;
            at->line.len = len + 1;
            at->step = SECOND;
        }
    }

    return at->mode == EXEMPT ? LIST_EXCEPTION : LIST_KEY;
}


/* Takes the name of a line of a hosts file. */
static list_result_e
next_host(list_line_t *at)
{
    rule_t         rule;
    list_result_e  result;

    result = list_hosts_next(at);

    if (result == LIST_KEY) {
        memset(&rule, 0, sizeof(rule));
        rule.pattern = at->key;

        if (!is_left(at->cancelled, &rule)) {
            return list_skipped(at, TAKEN_AWAY);
        }
    }

    return result;
}


/* Returns 1 for a line of a hosts file: an address and a host. */
static int
is_hosts_line(bloom_key_t line)
{
    bloom_key_t  address, host;

    list_cut_comment(&line);

    if (!list_word(&line, &address) || !list_word(&line, &host)
        || !list_is_address(&address))
    {
        return 0;
    }

    list_trim(&line);

    return line.len == 0 && list_is_name(&host)
           && !list_ends(&host, '.');
}


static list_result_e
begin(list_line_t *at)
{
    line_e       kind;
    state_t     *state;
    const char  *why;

    state = at->state;
    kind = take_line(state, &at->line);
    list_trim(&at->line);

    if (at->line.len == 0) {
        return LIST_EMPTY;
    }

    if (kind == LINE_DIRECTIVE) {
        return LIST_COMMENT;
    }

    if (kind == LINE_STRAY) {
        return list_skipped(at, "has no !#if before it");
    }

    why = adblock_if_why(&state->block);

    if (list_begins(&at->line, "!#include")) {
        return list_skipped(at, why != NULL ? why : "includes another file");
    }

    if (is_comment(&at->line)) {
        return LIST_COMMENT;
    }

    if (why != NULL) {
        return list_skipped(at, why);
    }

    if (kind == LINE_PART) {
        return list_skipped(at, SEVERAL_LINES);
    }

    if (is_cosmetic(&at->line)) {
        return list_skipped(at, "is about elements of pages");
    }

    if (state->continued) {
        return list_skipped(at, SEVERAL_LINES);
    }

    if (is_hosts_line(at->line)) {
        at->step = 0;
        at->mode = HOSTS;
        return next_host(at);
    }

    return take_keys(at);
}


static list_result_e
next(list_line_t *at)
{
    if (at->mode == HOSTS) {
        return next_host(at);
    }

    switch (at->step) {

    case FIRST:
        at->step = END;
        return begin(at);

    case SECOND:
        at->step = END;
        at->key = at->line;
        return at->mode == EXEMPT ? LIST_EXCEPTION : LIST_KEY;

    default:
        return LIST_END;
    }
}


/* Adds what a $badfilter rule cancels to the set. */
static void
cancel(key_set_t *cancelled, const bloom_key_t *line)
{
    size_t       index;
    rule_t       rule;
    uint8_t      buf[ADBLOCK_PATTERN_TWIN];
    unsigned     part, parts;
    bloom_key_t  twin;

    if (line->len == 0 || is_comment(line) || is_cosmetic(line)) {
        return;
    }

    take_rule(&rule, *line);

    if (!rule.options.badfilter || rule.options.why != NULL) {
        return;
    }

    parts = adblock_options_parts(&rule.options);

    for (part = ADBLOCK_PAGES; part <= ADBLOCK_ALL; part <<= 1) {
        if ((parts & part) == 0) {
            continue;
        }

        twin = adblock_pattern_twin(buf, rule.pattern, &rule.options,
                                    rule.exempts, part);

        if (twin.len != 0) {
            (void) key_set_add(cancelled, &twin, NULL, &index);
        }
    }
}


static void
pass(void *data, key_set_t *cancelled, const uint8_t *text, size_t len)
{
    line_e        kind;
    state_t      *state;
    bloom_key_t   rest, line;

    state = data;
    rest.data = text;
    rest.len = len;

    while (rest.len != 0) {
        (void) list_until(&rest, &line, '\n');

        if (list_ends(&line, '\r')) {
            line.len--;
        }

        kind = take_line(state, &line);

        /* a rule that may be cancelled is not enforced */

        if (kind == LINE_RULE && !state->continued
            && (adblock_if_why(&state->block) == NULL || state->block.undecided)
            && memmem(line.data, line.len, "badfilter", 9) != NULL)
        {
            list_trim(&line);
            cancel(cancelled, &line);
        }
    }
}


const list_reader_t  list_adblock = {
    .name = "adblock",
    .state = sizeof(state_t),
    .next = next,
    .owns = owns,
    .pass = pass
};
