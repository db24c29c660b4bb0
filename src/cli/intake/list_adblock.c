/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the hosts and URLs that Adblock-style lists block.
 */

#include "list_adblock.h"
#include "list_hosts.h"

/* The root and three directories in it: the directories of a URL that are
 * looked up (bloom_url.h). */
#define DIRECTORIES  4


enum { FIRST = 0, SECOND, END };         /* steps */
enum { RULE = 0, EXEMPT, HOSTS };        /* modes */

/* The parts of a rule. */
typedef struct {
    bloom_key_t  host;
    bloom_key_t  path;                   /* with its slash and query */
    int          whole;                  /* the pattern ends with ^ */
    int          ended;                  /* the pattern ends with | */
    int          query;                  /* it needs a query, of any text */
} rule_t;


/* The options that narrow a rule, with the reason to skip it. */

#define NARROW(option)  { option, "has the option $" option }

static const struct {
    const char  *option;
    const char  *why;
} narrow[] = {
    NARROW("badfilter"), NARROW("third-party"), NARROW("first-party"),
    NARROW("strict1p"), NARROW("strict3p"), NARROW("domain"), NARROW("from"),
    NARROW("to"), NARROW("denyallow"), NARROW("method"), NARROW("app"),
    NARROW("ipaddress"), NARROW("header"), NARROW("match-case"),
    NARROW("script"), NARROW("image"), NARROW("stylesheet"), NARROW("object"),
    NARROW("xmlhttprequest"), NARROW("subdocument"), NARROW("ping"),
    NARROW("websocket"), NARROW("webrtc"), NARROW("font"), NARROW("media"),
    NARROW("other"), NARROW("popup"), NARROW("popunder"),
    NARROW("inline-script"), NARROW("inline-font"), NARROW("network"),
    NARROW("csp"), NARROW("permissions"), NARROW("redirect"),
    NARROW("redirect-rule"), NARROW("rewrite"), NARROW("removeparam"),
    NARROW("removeheader"), NARROW("urlskip"), NARROW("uritransform"),
    NARROW("replace"), NARROW("cookie"), NARROW("stealth"), NARROW("hls"),
    NARROW("jsonprune"), NARROW("empty"), NARROW("mp4"),
    NARROW("dnstype"), NARROW("dnsrewrite"), NARROW("client"), NARROW("ctag"),
    NARROW("elemhide"), NARROW("generichide"), NARROW("specifichide"),
    NARROW("genericblock"), NARROW("content"), NARROW("jsinject"),
    NARROW("urlblock"), NARROW("extension"), NARROW("cname")
};

/* Other names of these options. */
static const char *const  aliases[][2] = {
    { "3p", "third-party" }, { "1p", "first-party" }, { "css", "stylesheet" },
    { "frame", "subdocument" }, { "xhr", "xmlhttprequest" },
    { "beacon", "ping" }, { "ehide", "elemhide" }, { "ghide", "generichide" },
    { "shide", "specifichide" }, { "queryprune", "removeparam" },
    { "object-subrequest", "object" }
};


/* Returns 1 for an element rule such as example.com##.ad, of any kind. */
static int
is_cosmetic(const bloom_key_t *line)
{
    const uint8_t  *p, *q, *end;

    end = line->data + line->len;

    for (p = line->data;
         (p = memchr(p, '#', (size_t) (end - p))) != NULL;
         p++)
    {
        for (q = p + 1; q < end && q - p <= 3 && memchr("@?$%", *q, 4); q++) {
            /* void */
        }

        if (q < end && *q == '#') {
            return 1;
        }
    }

    return memmem(line->data, line->len, "$$", 2) != NULL
           || memmem(line->data, line->len, "$@$", 3) != NULL;
}


static int
is_comment(const bloom_key_t *line)
{
    size_t  i;

    if (line->data[0] == '!' || line->data[0] == '[') {
        return 1;
    }

    for (i = 0; i < line->len && line->data[i] == '#'; i++) { /* void */ }

    if (i == 0 || line->len == i) {
        return i != 0;
    }

    /* "##.ad" and "#@#.ad" are element rules */

    return i >= 4 || (i == 1 && memchr("@?$%", line->data[1], 4) == NULL)
           || list_is_blank(line->data[i]);
}


static int
owns(const bloom_key_t *line)
{
    return list_begins(line, "!") || list_begins(line, "||") || list_begins(line, "@@")
           || list_begins(line, "[Ad") || list_begins(line, "[uBlock")
           || (line->len != 0 && !is_comment(line) && is_cosmetic(line));
}


/* Returns the length of an option's name at the beginning of a text; 0 if the
 * text has no option there. */
static size_t
option_name(const bloom_key_t *text)
{
    size_t  i;

    for (i = 0; i < text->len; i++) {
        if (!bloom_is_alpha(text->data[i]) && !bloom_is_digit(text->data[i])
            && text->data[i] != '-' && text->data[i] != '_'
            && !(i == 0 && text->data[i] == '~'))
        {
            break;
        }
    }

    return i == text->len || text->data[i] == ',' || text->data[i] == '='
           ? i : 0;
}


/* Cuts the options off a rule.  They begin at the first $ that the name of an
 * option follows.  Returns 1 if there are options. */
static int
cut_options(bloom_key_t *rule, bloom_key_t *options)
{
    size_t          at;
    const uint8_t  *dollar;

    *options = *rule;

    while (options->len != 0
           && (dollar = memchr(options->data, '$', options->len)) != NULL)
    {
        at = (size_t) (dollar - options->data);
        list_skip(options, at + 1);

        if (option_name(options) != 0) {
            rule->len = (size_t) (dollar - rule->data);
            return 1;
        }
    }

    return 0;
}


static const char *
why_narrow(bloom_key_t option)
{
    size_t       i;
    const char  *name;

    name = NULL;

    if (list_begins(&option, "~")) {
        list_skip(&option, 1);
    }

    for (i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (list_equals(&option, aliases[i][0])) {
            name = aliases[i][1];
        }
    }

    for (i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++) {
        if (name != NULL ? strcmp(narrow[i].option, name) == 0
                         : list_equals(&option, narrow[i].option))
        {
            return narrow[i].why;
        }
    }

    return "has an unknown option";
}


static int
is_always(const bloom_key_t *option)
{
    return list_equals(option, "all") || list_equals(option, "document")
           || list_equals(option, "doc") || list_equals(option, "important");
}


/* Returns NULL if a rule with these options applies to every request; else the
 * reason why not. */
static const char *
narrowed(bloom_key_t options)
{
    int          more;
    const char  *why;
    bloom_key_t  option;

    why = NULL;

    do {
        more = list_until(&options, &option, ',');

        if (why == NULL && !is_always(&option)) {
            option.len = option_name(&option);
            why = why_narrow(option);
        }

    } while (more);

    return why;
}


/* Returns 1 for a line that is only a host, which stands for ||host^. */
static int
is_bare_host(const bloom_key_t *line)
{
    size_t   i;
    uint8_t  c;

    if (list_is_address(line)) {
        return 1;
    }

    for (i = 0; i < line->len; i++) {
        c = line->data[i];

        if (!bloom_is_alpha(c) && !bloom_is_digit(c) && c != '.' && c != '-'
            && c != '_' && c < 0x80)
        {
            return 0;
        }
    }

    return line->len >= 3 && list_has(line, '.') && line->data[0] != '.'
           && line->data[0] != '-' && line->data[0] != '_'
           && !list_ends(line, '.') && !list_ends(line, '-')
           && !list_ends(line, '_');
}


/* Removes the anchor of a pattern.  Returns 0 if the pattern does not begin
 * with a host. */
static int
cut_anchor(rule_t *rule, bloom_key_t *pattern, int options)
{
    if (list_begins(pattern, "||")) {
        list_skip(pattern, 2);
        list_skip(pattern, list_scheme(pattern));
        return 1;
    }

    if (list_begins(pattern, "|http://") || list_begins(pattern, "|https://")) {
        list_skip(pattern, 1);
        list_skip(pattern, list_scheme(pattern));
        return 1;
    }

    list_cut_comment(pattern);
    rule->whole = 1;

    return !options && is_bare_host(pattern);
}


/* Removes what may follow the URL of a pattern: *, | and ^. */
static void
cut_end(rule_t *rule, bloom_key_t *pattern)
{
    while (list_ends(pattern, '*')) {
        pattern->len--;
    }

    if (list_ends(pattern, '|')) {
        pattern->len--;
        rule->ended = 1;
    }

    if (list_ends(pattern, '^')) {
        pattern->len--;
        rule->whole = 1;
    }
}


/* Divides a pattern into host and path. */
static void
divide(rule_t *rule, const bloom_key_t *pattern)
{
    size_t  i;

    for (i = 0; i < pattern->len; i++) {
        if (pattern->data[i] == '/' || pattern->data[i] == '?') {
            break;
        }
    }

    rule->host = *pattern;
    rule->host.len = i;
    rule->path = *pattern;
    list_skip(&rule->path, i);

    /* any query, which is what a key without a query stands for */

    if (list_ends(&rule->path, '?')) {
        rule->path.len--;
        rule->query = 1;
    }
}


/* Checks the host of a rule.  Returns NULL, or the reason to skip it. */
static const char *
check_host(rule_t *rule)
{
    size_t       i;
    bloom_key_t  last;
    const char  *why;

    if (list_begins(&rule->host, "*.")) {
        list_cut_wildcard(&rule->host);
    }

    if (rule->host.len == 0) {
        return "does not begin with a host";
    }

    if (rule->path.len == 0 && !rule->whole && !rule->ended) {

        /* the beginning of a host: it may be all of it, or not */

        for (i = rule->host.len;
             i != 0 && rule->host.data[i - 1] != '.';
             i--)
        {
            /* void */
        }

        last = rule->host;
        list_skip(&last, i);

        if (last.len < 2 || list_ends(&last, '-')
            || bloom_is_digit(last.data[0]))
        {
            return "is only the beginning of a host";
        }
    }

    why = list_domain(&rule->host);

    return why != NULL && !rule->whole && rule->path.len == 0
           ? "is only the beginning of a host" : why;
}


/* Checks the path of a rule.  Returns NULL, or the reason to skip it. */
static const char *
check_path(const rule_t *rule)
{
    size_t              i;
    unsigned            directories;
    const bloom_key_t  *path;

    path = &rule->path;

    /* a key without the query would stand for the whole directory */

    if (rule->query && (path->len == 0 || list_ends(path, '/'))) {
        return "is only the beginning of a query";
    }

    if (path->len < 2) {
        return NULL;
    }

    if (!rule->whole && !rule->ended) {
        if (list_has(path, '?') && !list_has(path, '=')) {
            return "is only the beginning of a query";
        }

        if (memchr("-._=&%~,;:", path->data[path->len - 1], 10) != NULL) {
            return "is only the beginning of a name";
        }
    }

    if (!list_ends(path, '/') || list_has(path, '?') || rule->whole
        || rule->ended)
    {
        return NULL;
    }

    for (i = 0, directories = 0; i < path->len; i++) {
        directories += path->data[i] == '/'
                       && (i == 0 || path->data[i - 1] != '/');
    }

    return directories > DIRECTORIES
           ? "is a directory so deep that no lookup finds what is in it"
           : NULL;
}


/* Takes the parts of a rule.  Returns LIST_KEY or LIST_SKIPPED. */
static list_result_e
take_rule(list_line_t *at, rule_t *rule)
{
    int          with_options;
    bloom_key_t  pattern, options;

    pattern = at->line;
    with_options = cut_options(&pattern, &options);

    if (with_options) {
        at->why = narrowed(options);

        if (at->why != NULL) {
            return LIST_SKIPPED;
        }
    }

    if (!cut_anchor(rule, &pattern, with_options)) {
        return list_skipped(at, "does not begin with a host");
    }

    cut_end(rule, &pattern);

    if (list_has(&pattern, '^') || list_has(&pattern, '|')) {
        return list_skipped(at, "has a wildcard");
    }

    divide(rule, &pattern);

    at->why = list_has(&rule->path, '*') ? "has a wildcard"
                                         : check_host(rule);

    if (at->why == NULL && (rule->path.len > 1 || rule->query)) {
        at->why = at->keys != LIST_URLS ? "has a path; use --form url"
                                        : check_path(rule);
    }

    return at->why == NULL ? LIST_KEY : LIST_SKIPPED;
}


/* Takes the first key of a rule, and writes it to at->buf.  at->line gets the
 * key with a slash behind it, if that is the second one. */
static list_result_e
take_keys(list_line_t *at)
{
    size_t         len;
    rule_t         rule;
    list_result_e  result;

    memset(&rule, 0, sizeof(rule));

    if (list_begins(&at->line, "@@")) {
        list_skip(&at->line, 2);
        at->mode = EXEMPT;
    }

    result = take_rule(at, &rule);

    if (result != LIST_KEY) {
        return result;
    }

    at->key = rule.host;

    if (rule.path.len > 1) {
        at->key.len += rule.path.len;
        len = at->key.len;

        if (!list_ends(&rule.path, '/') && !list_has(&rule.path, '?')
            && !rule.ended)
        {
            memcpy(at->buf, at->key.data, len);
            at->buf[len] = '/';
            at->line.data = at->buf;
            at->line.len = len + 1;
            at->step = SECOND;
        }
    }

    return at->mode == EXEMPT ? LIST_EXCEPTION : LIST_KEY;
}


/* Returns 1 for a regular expression: /.../, also with options. */
static int
is_expression(const bloom_key_t *line)
{
    const uint8_t  *slash;

    if (line->data[0] != '/') {
        return 0;
    }

    slash = memrchr(line->data, '/', line->len);

    return slash != line->data
           && (slash + 1 == line->data + line->len || slash[1] == '$');
}


static list_result_e
begin(list_line_t *at)
{
    bloom_key_t  rest, word;

    list_trim(&at->line);

    if (at->line.len == 0) {
        return LIST_EMPTY;
    }

    if (list_begins(&at->line, "!#include")) {
        return list_skipped(at, "includes another file");
    }

    if (is_comment(&at->line)) {
        return LIST_COMMENT;
    }

    if (is_cosmetic(&at->line)) {
        return list_skipped(at, "is about elements of pages");
    }

    rest = at->line;

    if (list_begins(&rest, "@@")) {
        list_skip(&rest, 2);
    }

    if (rest.len != 0 && is_expression(&rest)) {
        return list_skipped(at, "is a regular expression");
    }

    rest = at->line;

    if (list_word(&rest, &word) && rest.len != 0 && list_is_address(&word)) {
        at->step = 0;
        at->mode = HOSTS;
        return list_hosts_next(at);
    }

    return take_keys(at);
}


static list_result_e
next(list_line_t *at)
{
    if (at->mode == HOSTS) {
        return list_hosts_next(at);
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


const list_reader_t  list_adblock = {
    .name = "adblock",
    .next = next,
    .owns = owns
};
