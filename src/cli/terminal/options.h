/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A table of options describes a command's options for the parser, --help and
 * the man page.
 *
 * An entry has the names of an option, the kind of its value and the place to
 * store it.  A table ends with an empty entry.  An entry may also stand for a
 * group: a table of options that several commands have.
 */

#ifndef OPTIONS_H
#define OPTIONS_H

#include <stddef.h>
#include <stdint.h>


typedef struct option_s  option_t;

struct option_s {
    char             letter;             /* 0: none */
    const char      *name;
    const char      *value;              /* its name in help; NULL: no value */
    size_t           offset;             /* of its place in the values */

    /* Parses the value.  Returns CLI_OK, or CLI_ERROR by options_wrong(). */
    int            (*take)(const option_t *option, const char *text, void *to);

    const char      *help;               /* a line feed begins a list item */

    const char      *is;                 /* "a rate", for messages */
    uint64_t         least;              /* the range of a number */
    uint64_t         most;
    const char      *needed;             /* "the image to write", for a message
                                            if the option is missing; NULL: it
                                            is not required */

    const option_t  *group;              /* a group's table, whose values begin
                                            at the offset; NULL: an option */
};

#define OPTIONS_GROUP(table, at)  { .group = (table), .offset = (at) }


/* Kinds of values, each with the type of its place: */

int options_take_flag(const option_t *option, const char *text,
    void *to);                                     /* int: 1 */
int options_take_text(const option_t *option, const char *text,
    void *to);                                     /* const char * */
int options_take_count(const option_t *option, const char *text,
    void *to);                                     /* uint64_t */
int options_take_number(const option_t *option, const char *text,
    void *to);                                     /* unsigned */
int options_take_bytes(const option_t *option, const char *text,
    void *to);                                     /* uint64_t */
int options_take_span(const option_t *option, const char *text,
    void *to);                                     /* uint64_t: ms */
int options_take_fpr(const option_t *option, const char *text,
    void *to);                                     /* double */
int options_take_layout(const option_t *option, const char *text,
    void *to);                                     /* uint32_t */
int options_take_hash(const option_t *option, const char *text,
    void *to);                                     /* uint32_t */
int options_take_key_form(const option_t *option, const char *text,
    void *to);                                     /* uint32_t */
int options_take_as_of(const option_t *option, const char *text,
    void *to);                                     /* uint64_t: ms */
int options_take_source(const option_t *option, const char *text,
    void *to);                                     /* bloom_source_t */


/* Entries that several commands have.  `type` is the type of the command's
 * values; it has a member with the option's name. */

#define OPTIONS_QUIET(type)  OPTIONS_QUIET_AS(type, quiet)

#define OPTIONS_QUIET_AS(type, member)                                       \
    { 'q', "quiet", NULL, offsetof(type, member), options_take_flag,         \
      "print only errors" }

#define OPTIONS_JSON(type)                                                   \
    { 0, "json", NULL, offsetof(type, json), options_take_flag,              \
      "print the result as JSON" }

#define OPTIONS_JSON_LINES(type)                                             \
    { 0, "json", NULL, offsetof(type, json), options_take_flag,              \
      "print JSON; with several images, an object per line" }

#define OPTIONS_IMAGE(type)                                                  \
    { 'o', "output", "FILE", offsetof(type, output), options_take_text,      \
      "the image to write; it is written whole or not at all",               \
      .needed = "the image to write" }

#define OPTIONS_FPR(type, text)                                              \
    { 'p', "fpr", "RATE", offsetof(type, fpr), options_take_fpr, text,       \
      .is = "a rate" }

#define OPTIONS_CAPACITY(type, text)                                         \
    { 'n', "capacity", "N", offsetof(type, capacity), options_take_count,    \
      text, .is = "a number of keys", 1, BLOOM_CAPACITY_MAX }

#define OPTIONS_LAYOUT(type, text)                                           \
    { 0, "layout", "NAME", offsetof(type, layout), options_take_layout,      \
      text }

#define OPTIONS_HASH(type)                                                   \
    { 0, "hash", "NAME", offsetof(type, hash), options_take_hash,            \
      "the hash: murmur3, or siphash if people who gain by a false positive " \
      "can choose keys (default: murmur3)" }

#define OPTIONS_KEY_FORM(type, text)                                         \
    { 0, "form", "FORM", offsetof(type, key_form), options_take_key_form,     \
      text }

/* How a time is given, for the text of --as-of. */
#define OPTIONS_TIME                                                         \
    "as 2026-01-31T12:00:00Z, seconds since 1970, or start, the time when "  \
    "this command began"

#define OPTIONS_AS_OF(type, text)                                            \
    { 0, "as-of", "TIME", offsetof(type, as_of), options_take_as_of, text }

#define OPTIONS_SOURCE(type, text)                                           \
    { 0, "source", "NAME=POSITION", offsetof(type, source),                  \
      options_take_source, text }

#define OPTIONS_THREADS(type, member, text)                                  \
    { 'j', "threads", "N", offsetof(type, member), options_take_number,      \
      text, .is = "a number of threads", 1, OPTIONS_THREADS_MAX }

#define OPTIONS_THREADS_MAX  256


/*
 * Parses the options of a command line, whose first word is the command's name,
 * into `values`, and moves them before the operands, which then begin at
 * argv[*first].  Returns CLI_OK; CLI_ERROR after a message; or OPTIONS_HELP if
 * --help is among them.
 */
#define OPTIONS_HELP  -1

int options_parse(const option_t *table, void *values, int argc, char **argv,
    int *first);

/* Prints what is wrong with the value of an option; `fmt` is like "must be a or
 * b".  Returns CLI_ERROR. */
int options_wrong(const option_t *option, const char *text, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* Calls `show` for each option of a table and its groups, in order, and then
 * for --help. */
void options_each(const option_t *table,
    void (*show)(const option_t *option, void *data), void *data);

/* Returns the number of processors, at most OPTIONS_THREADS_MAX. */
unsigned options_processors(void);


#endif /* OPTIONS_H */
