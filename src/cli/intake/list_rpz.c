/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds the names that response policy zones block.
 */

#include "list_rpz.h"


#define NAME_MAX_LEN  255

/* A name without a dot at its end. */
typedef struct {
    uint16_t  len;
    uint8_t   text[NAME_MAX_LEN];
} name_t;

/* The state of a file: what a record depends on. */
typedef struct {
    name_t   zone;                       /* the name of the zone, which is not
                                            part of the names that it blocks */
    name_t   origin;
    name_t   owner;                      /* of the last record */
    int      has_origin;                 /* $ORIGIN was read */
    int      has_zone;                   /* $ORIGIN or SOA was read */
    int      has_owner;
    int      soa;                        /* SOA was read */
} zone_t;

/* A record, without its TTL and class. */
typedef struct {
    bloom_key_t  owner;                  /* empty: that of the last record */
    bloom_key_t  type;                   /* or a directive such as $ORIGIN */
    bloom_key_t  data;                   /* its first word */
} record_t;


/* Returns 1 for a byte that ends a word. */
static int
is_end(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '('
           || c == ')' || c == ';';
}


/* Returns the end of the word, quoted text or comment at p. */
static const uint8_t *
pass(const uint8_t *p, const uint8_t *end)
{
    if (*p == ';') {
        while (p < end && *p != '\n') {
            p++;
        }

        return p;
    }

    if (*p == '"') {
        for (p++; p < end && *p != '"' && *p != '\n'; p++) { /* void */ }

        return p < end && *p == '"' ? p + 1 : p;
    }

    while (p < end && !is_end(*p)) {
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    }

    return p;
}


/* A record ends at a line end that is not within parentheses. */
static const uint8_t *
record_end(const void *state, const uint8_t *p, const uint8_t *end, int *open)
{
    unsigned        depth;
    const uint8_t  *eol;

    (void) state;
    *open = 0;

    eol = p < end ? memchr(p, '\n', (size_t) (end - p)) : NULL;
    eol = eol != NULL ? eol : end;

    if (p == eol || memchr(p, '(', (size_t) (eol - p)) == NULL) {
        return eol;
    }

    for (depth = 0; p < end; /* void */ ) {

        if (*p == '\n' && depth == 0) {
            return p;
        }

        if (*p == '(' || *p == ')') {
            depth = *p == '(' ? depth + 1 : depth != 0 ? depth - 1 : 0;
            p++;

        } else if (is_end(*p) && *p != ';') {
            p++;

        } else {
            p = pass(p, end);
        }
    }

    *open = depth != 0;

    return end;
}


/* Takes the next word of a record.  Returns 0 at the end of the record. */
static int
next_word(bloom_key_t *text, bloom_key_t *word)
{
    const uint8_t  *p, *end;

    p = text->data;
    end = p + text->len;

    while (p < end && is_end(*p)) {
        p = *p == ';' ? pass(p, end) : p + 1;
    }

    word->data = p;
    p = p < end ? pass(p, end) : p;
    word->len = (size_t) (p - word->data);

    text->data = p;
    text->len = (size_t) (end - p);

    return word->len != 0;
}


/* Divides a record; what is missing is empty.  A directive begins its line, as
 * BIND reads it: elsewhere $ORIGIN is no type, and gets no data. */
static void
divide(record_t *record, bloom_key_t text)
{
    memset(record, 0, sizeof(*record));

    if (text.len != 0 && text.data[0] == '$') {
        (void) next_word(&text, &record->type);
        (void) next_word(&text, &record->data);
        return;
    }

    if (text.len != 0 && !is_end(text.data[0])) {
        (void) next_word(&text, &record->owner);
    }

    do {
        (void) next_word(&text, &record->type);
    } while (list_is_ttl_or_class(&record->type));

    if (record->type.len != 0 && record->type.data[0] != '$') {
        (void) next_word(&text, &record->data);
    }
}


/* Makes a word a full name, in lower case.  Returns -1 if it is too long. */
static int
full_name(name_t *name, const zone_t *zone,
    const bloom_key_t *word)
{
    size_t                  i, len;
    const name_t  *origin;

    origin = &zone->origin;

    if (list_equals(word, "@")) {
        *name = *origin;
        return 0;
    }

    len = word->len;

    if (list_ends(word, '.')) {
        len--;
        origin = NULL;

    } else if (origin->len == 0) {
        origin = NULL;
    }

    if (len + (origin != NULL ? origin->len + 1u : 0) > NAME_MAX_LEN) {
        return -1;
    }

    for (i = 0; i < len; i++) {
        name->text[i] = bloom_lower(word->data[i]);
    }

    if (origin != NULL) {
        name->text[len++] = '.';
        memcpy(name->text + len, origin->text, origin->len);
        len += origin->len;
    }

    name->len = (uint16_t) len;

    return 0;
}


/* Applies what a record says about those after it.  Returns NULL, or the reason
 * why it is invalid. */
static const char *
apply(zone_t *zone, const record_t *record)
{
    name_t  name;

    if (list_equals(&record->type, "$ORIGIN") && record->data.len != 0) {

        if (full_name(&name, zone, &record->data) != 0) {
            return "has a name that is too long";
        }

        zone->origin = name;
        zone->has_origin = 1;

        if (!zone->has_zone && name.len != 0) {
            zone->zone = name;
            zone->has_zone = 1;
        }

        return NULL;
    }

    if (record->owner.len != 0) {
        zone->has_owner = 0;

        if (full_name(&zone->owner, zone, &record->owner) != 0) {
            return "has a name that is too long";
        }

        zone->has_owner = 1;
    }

    /* the SOA record is the first one, and has the name of the zone */

    if (list_equals(&record->type, "SOA") && !zone->soa) {
        zone->soa = 1;

        if (zone->has_origin || list_ends(&record->owner, '.')) {
            zone->zone = zone->owner;
            zone->has_zone = 1;
        }
    }

    return NULL;
}


/* Finds the part of the owner before the zone's name.  Returns NULL, or the
 * reason why the record is skipped. */
static const char *
find_trigger(const zone_t *zone, const record_t *record,
    bloom_key_t *trigger)
{
    bloom_key_t             end;
    const name_t  *apex;

    apex = &zone->zone;

    trigger->data = zone->owner.text;
    trigger->len = zone->owner.len;

    if (!zone->has_zone) {

        if (list_ends(&record->owner, '.')) {
            return "has an absolute name, but the name of its zone is unknown: "
                   "the file has neither $ORIGIN nor a full SOA record";
        }

        return NULL;
    }

    if (apex->len == 0) {
        return NULL;
    }

    if (trigger->len < apex->len) {
        return "is outside its zone";
    }

    end = *trigger;
    list_skip(&end, trigger->len - apex->len);

    if (memcmp(end.data, apex->text, apex->len) != 0
        || (end.len != trigger->len && end.data[-1] != '.'))
    {
        return "is outside its zone";
    }

    trigger->len -= end.len;
    trigger->len -= trigger->len != 0;       /* the dot */

    return NULL;
}


/* Returns the reason why a trigger is not a name, or NULL. */
static const char *
why_no_name(const bloom_key_t *trigger)
{
    size_t       i;
    bloom_key_t  last;

    static const struct {
        const char  *label;
        const char  *why;
    } kinds[] = {
        { "rpz-ip", "is about an address in answers (rpz-ip)" },
        { "rpz-client-ip", "is about a client (rpz-client-ip)" },
        { "rpz-nsip", "is about a name server (rpz-nsip)" },
        { "rpz-nsdname", "is about a name server (rpz-nsdname)" }
    };

    last = *trigger;

    for (i = last.len; i != 0 && last.data[i - 1] != '.'; i--) { /* void */ }

    list_skip(&last, i);

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (list_equals(&last, kinds[i].label)) {
            return kinds[i].why;
        }
    }

    return NULL;
}


/* Returns 1 if a CNAME leads to its own name: an old way to exempt the name. */
static int
is_itself(const bloom_key_t *trigger, const bloom_key_t *data)
{
    size_t  i;

    for (i = 0; i < trigger->len; i++) {
        if (i == data->len || bloom_lower(data->data[i]) != trigger->data[i]) {
            return 0;
        }
    }

    return data->len == i + 1 && data->data[i] == '.';
}


/* Decides by a record's type and data what it does with its name. */
static list_result_e
judge(list_line_t *at, const record_t *record, const bloom_key_t *trigger)
{
    const bloom_key_t  *data;

    data = &record->data;

    if (list_equals(&record->type, "A") || list_equals(&record->type, "AAAA")) {
        return list_is_sink(data) ? LIST_KEY
               : list_skipped(at, "has an address of its own");
    }

    if (!list_equals(&record->type, "CNAME")) {
        return list_skipped(at, "has data of its own");
    }

    if (list_equals(data, ".") || list_equals(data, "*.")
        || list_equals(data, "rpz-drop."))
    {
        return LIST_KEY;
    }

    if (list_equals(data, "rpz-passthru.") || is_itself(trigger, data)) {
        return LIST_EXCEPTION;
    }

    return list_equals(data, "rpz-tcp-only.")
           ? list_skipped(at, "only asks for TCP (rpz-tcp-only)")
           : list_skipped(at, "is answered with another name");
}


static list_result_e
take_record(list_line_t *at, const record_t *record)
{
    bloom_key_t     trigger;
    zone_t     *zone;
    list_result_e   result;

    zone = at->state;

    if (!zone->has_owner) {
        return list_bad(at, "has no name, and no record is before it");
    }

    if (list_equals(&record->type, "SOA") || list_equals(&record->type, "NS")) {
        return LIST_COMMENT;
    }

    at->why = find_trigger(zone, record, &trigger);

    if (at->why != NULL) {
        return LIST_SKIPPED;
    }

    if (trigger.len == 0) {
        return LIST_COMMENT;                 /* about the zone itself */
    }

    at->why = why_no_name(&trigger);

    if (at->why != NULL) {
        return LIST_SKIPPED;
    }

    result = judge(at, record, &trigger);

    if (result == LIST_SKIPPED) {
        return result;
    }

    if (list_equals(&trigger, "*")) {
        return list_skipped(at, "applies to all names");
    }

    list_cut_wildcard(&trigger);
    at->why = list_domain(&trigger);

    if (at->why != NULL) {
        return LIST_SKIPPED;
    }

    memcpy(at->buf, trigger.data, trigger.len);
    at->key.data = at->buf;
    at->key.len = trigger.len;

    return result;
}


static list_result_e
next(list_line_t *at)
{
    record_t     record;
    bloom_key_t  text;

    if (at->step++ != 0) {
        return LIST_END;
    }

    text = at->line;
    list_trim(&text);

    if (text.len == 0) {
        return LIST_EMPTY;
    }

    if (text.data[0] == ';') {
        return LIST_COMMENT;
    }

    divide(&record, at->line);
    at->why = apply(at->state, &record);

    if (at->why != NULL) {
        return LIST_BAD;
    }

    if (record.data.len == 0) {
        return list_bad(at, "is not a record of a zone file");
    }

    if (record.type.data[0] == '$') {

        if (list_equals(&record.type, "$ORIGIN")
            || list_equals(&record.type, "$TTL"))
        {
            return LIST_COMMENT;
        }

        return list_skipped(at, list_equals(&record.type, "$INCLUDE")
                                ? "includes another file"
                                : "is a directive that is not supported");
    }

    return take_record(at, &record);
}


static int
owns(const bloom_key_t *line)
{
    size_t       i;
    record_t     record;

    static const char *const  types[] = {
        "CNAME", "SOA", "NS", "A", "AAAA", "TXT", "$TTL", "$ORIGIN"
    };

    if (line->len == 0) {
        return 0;
    }

    divide(&record, *line);

    for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (list_equals(&record.type, types[i])) {
            return 1;
        }
    }

    return 0;
}


const list_reader_t  list_rpz = {
    .name = "rpz",
    .state = sizeof(zone_t),
    .in_order = 1,
    .end = record_end,
    .opens = "parentheses",
    .next = next,
    .owns = owns,
    .names = 1
};
