/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A list_line_t is a line of a list.  A reader (list_*.c) finds its entries one
 * by one, and these functions take texts apart for the readers.
 *
 * A reader is called again and again for the same line until it returns
 * LIST_END.  Each other result is something that the line has.
 */

#ifndef LIST_LINE_H
#define LIST_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bloom_ascii.h"
#include "bloom_key.h"


typedef enum {
    LIST_KEY = 0,                        /* a key */
    LIST_EXCEPTION,                      /* a key that the list exempts */
    LIST_SKIPPED,                        /* an entry that cannot be a key */
    LIST_BAD,                            /* an invalid line */
    LIST_EMPTY,                          /* nothing: an empty line */
    LIST_COMMENT,                        /* nothing: a comment */
    LIST_END                             /* nothing more */
} list_result_e;

/* What the keys of an image can be. */
typedef enum {
    LIST_ANY = 0,                        /* raw, lower: any text */
    LIST_HOSTS,                          /* hosts, without paths */
    LIST_URLS
} list_keys_e;

typedef struct {
    bloom_key_t   line;                  /* the part that is still to be read */
    list_keys_e   keys;
    int           step;                  /* the reader's own; at first 0 */
    int           mode;                  /* the reader's own; at first 0 */
    uint8_t      *buf;                   /* line.len + LIST_ROOM bytes */
    uint64_t      number;                /* of the line, from 1 */
    void         *state;                 /* of the file: list_reader.h */
    const struct key_set_s  *cancelled;  /* entries that do not count */

    /* set by the reader */

    bloom_key_t   key;                   /* LIST_KEY, LIST_EXCEPTION */
    const char   *why;                   /* LIST_SKIPPED, LIST_BAD: the reason,
                                            a constant phrase that follows
                                            the line in a message */
} list_line_t;

#define LIST_ROOM  512

/* With the name of a format, the end of a reason for which another format of
 * --from is the remedy. */
#define LIST_USE_FROM  "; use --from "


/* Each stores the reason, and returns the result of that name. */

static inline list_result_e
list_skipped(list_line_t *at, const char *why)
{
    at->why = why;

    return LIST_SKIPPED;
}


static inline list_result_e
list_bad(list_line_t *at, const char *why)
{
    at->why = why;

    return LIST_BAD;
}


static inline int
list_is_blank(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}


static inline void
list_skip(bloom_key_t *text, size_t len)
{
    text->data += len;
    text->len -= len;
}


/* Removes the blanks at both ends of a text. */
static inline void
list_trim(bloom_key_t *text)
{
    while (text->len != 0 && list_is_blank(text->data[0])) {
        list_skip(text, 1);
    }

    while (text->len != 0 && list_is_blank(text->data[text->len - 1])) {
        text->len--;
    }
}


static inline int
list_begins(const bloom_key_t *text, const char *with)
{
    return text->len >= strlen(with)
           && memcmp(text->data, with, strlen(with)) == 0;
}


static inline int
list_ends(const bloom_key_t *text, char with)
{
    return text->len != 0 && text->data[text->len - 1] == (uint8_t) with;
}


/* Returns 1 if the text has this byte. */
static inline int
list_has(const bloom_key_t *text, char byte)
{
    return text->len != 0 && memchr(text->data, byte, text->len) != NULL;
}


/* Returns 1 if the text is `other`, with A to Z as a to z. */
int list_equals(const bloom_key_t *text, const char *other);

/* Takes the next word of a text.  Returns 0 if no word is left. */
int list_word(bloom_key_t *text, bloom_key_t *word);

/* Takes what is before the next `delimiter`, or all.  Returns 1 if there was a
 * delimiter, else 0. */
int list_until(bloom_key_t *text, bloom_key_t *part, char delimiter);

/* Cuts off a comment: `#` at the beginning or after a blank, and the rest. */
void list_cut_comment(bloom_key_t *text);

/* Returns 1 if all bytes of a text can be in the name of a host. */
int list_is_name(const bloom_key_t *text);

/* Returns 1 if the text is an IPv4 or IPv6 address. */
int list_is_address(const bloom_key_t *text);

/* Returns 1 for an address that blocks the names that get it: 0.0.0.0, one of
 * 127.0.0.0/8, :: or ::1, in any spelling. */
int list_is_sink(const bloom_key_t *text);

/* Returns 1 for what may be between the name and the type of a DNS record: a
 * class, or a TTL such as 300 or 1h30m. */
int list_is_ttl_or_class(const bloom_key_t *word);

/* Returns the length of a scheme with its colon and slashes, "https://", at the
 * beginning of a text; 0 if the text has no scheme. */
size_t list_scheme(const bloom_key_t *text);

/* Removes "*." and dots from the beginning of a name. */
void list_cut_wildcard(bloom_key_t *name);

/* Returns 1 for text that nothing but a key can be: a name with a dot, an
 * address, or a URL. */
int list_is_place(const bloom_key_t *text);

/*
 * Returns NULL if a lookup of a name or of names below it can find this domain;
 * else the reason why not.  It cannot if the domain is a top-level domain or
 * has a wildcard.
 */
const char *list_domain(const bloom_key_t *name);

/* Returns the length of a reason without LIST_USE_FROM and what follows, for
 * files that --from does not concern. */
int list_bare(const char *why);


#endif /* LIST_LINE_H */
