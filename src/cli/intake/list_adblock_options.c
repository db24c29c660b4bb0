/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the options of rules in Adblock-style lists.
 */

#include "list_adblock_options.h"


/* Types of requests. */
enum {
    CSS           = 1 << 0,
    IMAGE         = 1 << 1,
    OBJECT        = 1 << 2,
    SCRIPT        = 1 << 3,
    XHR           = 1 << 4,
    FRAME         = 1 << 5,
    FONT          = 1 << 6,
    MEDIA         = 1 << 7,
    WEBSOCKET     = 1 << 8,
    PING          = 1 << 9,
    OTHER         = 1 << 10,
    NETWORK       = (1 << 11) - 1,       /* all above */
    POPUP         = 1 << 11,
    POPUNDER      = 1 << 12,
    PAGE          = 1 << 13,
    GENERIC_HIDE  = 1 << 14,
    SPECIFIC_HIDE = 1 << 15,
    INLINE_FONT   = 1 << 16,
    INLINE_SCRIPT = 1 << 17,
    CNAME         = 1 << 18,
    GENERIC_BLOCK = 1 << 20,

    HIDE          = GENERIC_HIDE | SPECIFIC_HIDE,
    INLINE        = INLINE_FONT | INLINE_SCRIPT,
    ALL           = NETWORK | POPUP | PAGE | INLINE   /* what $all stands for */
};

/* Options that are no types. */
typedef enum {
    TYPE = 0, EXEMPT_TYPE, IMPORTANT, BADFILTER, FIRST_PARTY, THIRD_PARTY,
    REDIRECT, NARROW
} kind_e;

/* A page is its own first party. */
enum { FIRST = 1, STRICT = 2 };

typedef struct {
    const char  *name;
    const char  *other;                  /* a second name of it, or NULL */
    const char  *why;                    /* the reason to skip a rule */
    kind_e       kind;
    uint32_t     types;
    uint32_t     party;
} option_t;

#define WRONG_NOT  "has ~ before an option that cannot have it"

#define REASON(name)  "has the option $" name
#define HAS(name, other, kind, types)  \
    { name, other, REASON(name), kind, types, 0 }
#define PARTY(name, other, kind, party)  \
    { name, other, REASON(name), kind, 0, party }

/* The first 64 are those that a rule for pages can have. */
static const option_t  table[] = {
    HAS("document", "doc", TYPE, PAGE),
    HAS("all", NULL, TYPE, ALL),
    HAS("important", NULL, IMPORTANT, 0),
    HAS("badfilter", NULL, BADFILTER, 0),
    HAS("stylesheet", "css", TYPE, CSS),
    HAS("image", NULL, TYPE, IMAGE),
    HAS("object", "object-subrequest", TYPE, OBJECT),
    HAS("script", NULL, TYPE, SCRIPT),
    HAS("xmlhttprequest", "xhr", TYPE, XHR),
    HAS("subdocument", "frame", TYPE, FRAME),
    HAS("font", NULL, TYPE, FONT),
    HAS("media", NULL, TYPE, MEDIA),
    HAS("websocket", NULL, TYPE, WEBSOCKET),
    HAS("ping", "beacon", TYPE, PING),
    HAS("other", NULL, TYPE, OTHER),
    HAS("popup", NULL, TYPE, POPUP),
    HAS("popunder", NULL, TYPE, POPUNDER),
    HAS("generichide", "ghide", TYPE, GENERIC_HIDE),
    HAS("specifichide", "shide", TYPE, SPECIFIC_HIDE),
    HAS("elemhide", "ehide", TYPE, HIDE),
    HAS("inline-font", NULL, TYPE, INLINE_FONT),
    HAS("inline-script", NULL, TYPE, INLINE_SCRIPT),
    HAS("cname", NULL, EXEMPT_TYPE, CNAME),
    HAS("genericblock", NULL, EXEMPT_TYPE, GENERIC_BLOCK),
    PARTY("first-party", "1p", FIRST_PARTY, FIRST),
    PARTY("strict1p", NULL, FIRST_PARTY, STRICT),
    PARTY("third-party", "3p", THIRD_PARTY, FIRST),

#define NARROWS(name, other)  HAS(name, other, NARROW, 0)

    NARROWS("strict3p", NULL),
    NARROWS("domain", "from"), NARROWS("to", NULL), NARROWS("denyallow", NULL),
    NARROWS("method", NULL), NARROWS("ipaddress", NULL),
    NARROWS("header", NULL), NARROWS("match-case", NULL),
    NARROWS("csp", NULL), NARROWS("permissions", NULL),
    HAS("redirect", "rewrite", REDIRECT, 0), HAS("empty", NULL, REDIRECT, 0),
    NARROWS("redirect-rule", NULL),
    NARROWS("removeparam", "queryprune"), NARROWS("replace", NULL),
    NARROWS("urlskip", NULL), NARROWS("uritransform", NULL),
    NARROWS("mp4", NULL), NARROWS("webrtc", NULL),

    /* of other blockers; uBlock Origin ignores a rule that has one */

    NARROWS("app", NULL), NARROWS("network", NULL),
    NARROWS("removeheader", NULL), NARROWS("cookie", NULL),
    NARROWS("stealth", NULL), NARROWS("hls", NULL), NARROWS("jsonprune", NULL),
    NARROWS("xmlprune", NULL), NARROWS("dnstype", NULL),
    NARROWS("dnsrewrite", NULL), NARROWS("client", NULL), NARROWS("ctag", NULL),
    NARROWS("content", NULL), NARROWS("jsinject", NULL),
    NARROWS("urlblock", NULL), NARROWS("extension", NULL),
    NARROWS("referrerpolicy", NULL)
};

#define OPTIONS  (sizeof(table) / sizeof(table[0]))


int
adblock_options_cut(bloom_key_t *rule, bloom_key_t *options)
{
    size_t   i;
    uint8_t  next;

    /* the last $ that can begin options; the others are in patterns */

    for (i = rule->len; i-- != 0; /* void */ ) {
        next = i + 1 < rule->len ? rule->data[i + 1] : '/';

        if (rule->data[i] == '$' && next != '/' && next != '|' && next != ')'
            && (i == 0 || rule->data[i - 1] != '\\'))
        {
            *options = *rule;
            list_skip(options, i + 1);
            rule->len = i;
            return 1;
        }
    }

    return 0;
}


static int
is_named(const bloom_key_t *option, const char *name)
{
    return name != NULL && option->len == strlen(name)
           && list_begins(option, name);
}


/* Returns the index of an option, or OPTIONS. */
static size_t
find(const bloom_key_t *name)
{
    size_t  i;

    for (i = 0; i < OPTIONS; i++) {
        if (is_named(name, table[i].name) || is_named(name, table[i].other)) {
            break;
        }
    }

    return i;
}


/* Returns 1 for _, which stands for nothing. */
static int
is_filler(const bloom_key_t *option)
{
    size_t  i;

    for (i = 0; i < option->len && option->data[i] == '_'; i++) { /* void */ }

    return i != 0 && i == option->len;
}


/* What was read of a rule's options. */
typedef struct {
    adblock_options_t  *to;
    const char         *narrow;          /* the reason of the first option that
                                            narrows the rule, or NULL */
    const char         *redirect;        /* the reason of $redirect, or NULL */
    uint64_t            seen;            /* a bit for each option */
    uint32_t            types;           /* all that were named, with ~ too */
    int                 exempts;
} reading_t;


/* Takes an option with a type.  Returns NULL, or why uBlock Origin ignores a
 * rule with it. */
static const char *
take_type(reading_t *reading, const option_t *option, int is_not)
{
    int  is_all, hides, is_inline;

    is_all = option->types == ALL;
    hides = (option->types & HIDE) != 0;
    is_inline = !is_all && (option->types & INLINE) != 0;

    if (is_not && (is_all || hides || option->kind == EXEMPT_TYPE)) {
        return WRONG_NOT;
    }

    if (((reading->types & INLINE) != 0 && (is_all || hides))
        || ((reading->types & HIDE) != 0 && is_inline))
    {
        return "has options that exclude each other";
    }

    if (is_not) {
        reading->to->not_types |= option->types;

    } else {
        reading->to->types |= option->types;
    }

    if (!is_all) {
        reading->types |= option->types;
    }

    return NULL;
}


/* Takes an option about the site that a request comes from.  Returns NULL, or
 * why uBlock Origin ignores a rule with it. */
static const char *
take_party(reading_t *reading, const option_t *option, int is_not)
{
    if (option->party == STRICT && is_not) {
        return WRONG_NOT;
    }

    if (is_not == (option->kind == THIRD_PARTY)) {
        reading->to->party |= option->party;

    } else {
        reading->narrow = option->why;
    }

    return NULL;
}


/* Takes an option that a rule for pages can have.  Returns NULL, or why uBlock
 * Origin ignores a rule with it. */
static const char *
take_option(reading_t *reading, const option_t *option, int is_not)
{
    switch (option->kind) {

    case TYPE:
    case EXEMPT_TYPE:
        return take_type(reading, option, is_not);

    case FIRST_PARTY:
    case THIRD_PARTY:
        return take_party(reading, option, is_not);

    case BADFILTER:
        reading->to->badfilter = 1;
        return is_not ? WRONG_NOT : NULL;

    default: /* IMPORTANT */
        reading->to->important = 1;
        return is_not ? WRONG_NOT
               : reading->exempts ? "is an exception with $important" : NULL;
    }
}


/* Takes one option.  Returns NULL, or why uBlock Origin ignores a rule with
 * it. */
static const char *
take(reading_t *reading, bloom_key_t text)
{
    int              is_not, has_value;
    size_t           i;
    bloom_key_t      name;
    const option_t  *option;

    if (is_filler(&text)) {
        return NULL;
    }

    has_value = list_until(&text, &name, '=');
    is_not = list_begins(&name, "~");

    if (is_not) {
        list_skip(&name, 1);
    }

    i = find(&name);

    if (i == OPTIONS) {
        return "has an unknown option";
    }

    option = &table[i];

    if (option->kind == NARROW
        || (option->kind == EXEMPT_TYPE && !reading->exempts))
    {
        reading->narrow = option->why;
        return NULL;
    }

    if (option->kind == REDIRECT) {
        reading->redirect = option->why;
        return NULL;
    }

    if (has_value) {
        return "has a value for an option that takes none";
    }

    if ((reading->seen & 1ull << i) != 0) {
        return "has an option twice";
    }

    reading->seen |= 1ull << i;

    return take_option(reading, option, is_not);
}


/* Returns why a rule with these types is not for pages. */
static const char *
why_other(const adblock_options_t *options)
{
    size_t  i;

    if ((options->not_types & PAGE) != 0) {
        return "has the option $~document";
    }

    for (i = 0; i < OPTIONS && options->types != 0; i++) {
        if (table[i].types != 0 && (table[i].types & ~options->types) == 0) {
            return table[i].why;
        }
    }

    return "has only types with ~";
}


void
adblock_options_read(adblock_options_t *to, bloom_key_t options, int exempts)
{
    int           more;
    reading_t     reading;
    bloom_key_t   option;

    memset(to, 0, sizeof(*to));
    memset(&reading, 0, sizeof(reading));
    reading.to = to;
    reading.exempts = exempts;

    /* what follows an option that narrows may be its value, with commas */

    do {
        more = list_until(&options, &option, ',');
        to->why = take(&reading, option);
    } while (more && to->why == NULL && reading.narrow == NULL);

    /* $redirect makes another rule of the rule, besides the one that it would
     * be without this option: so with $badfilter it cancels both */

    if (reading.narrow == NULL && (!to->badfilter || exempts)) {
        reading.narrow = reading.redirect;
    }

    if (to->why == NULL) {
        to->why = reading.narrow;
    }

    if (to->why == NULL && adblock_options_parts(to) == 0) {
        to->why = why_other(to);
    }
}


unsigned
adblock_options_parts(const adblock_options_t *options)
{
    uint32_t  types;
    unsigned  parts;

    types = options->types & (~options->not_types | NETWORK);
    parts = (types & PAGE) != 0 ? ADBLOCK_PAGES : 0;

    if (options->not_types == 0
        && (types == 0 || (types & NETWORK) == NETWORK))
    {
        parts |= ADBLOCK_ALL;
    }

    return parts;
}
