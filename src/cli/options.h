/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A table of options tells the parser, --help and the man page what they are.
 *
 * An entry says how an option is written, what its value is and where that
 * goes.  A table ends with an empty entry; an entry may stand for the whole
 * table of a group that several commands have.
 */

#ifndef OPTIONS_H
#define OPTIONS_H

#include <stddef.h>
#include <stdint.h>


typedef struct option_s  option_t;

struct option_s {
    char             letter;             /* 0: none */
    const char      *name;
    const char      *value;              /* how it is called; NULL: no value */
    size_t           offset;             /* of the value's place */

    /* Reads the value: CLI_OK, or CLI_ERROR after options_wrong(). */
    int            (*take)(const option_t *option, const char *text, void *to);

    const char      *help;               /* LF: a new line */

    const char      *is;                 /* "a rate is", for messages */
    uint64_t         least;              /* the range of a number */
    uint64_t         most;
    const char      *needed;             /* what for; NULL: may be left out */

    const option_t  *group;              /* instead of all but the offset */
};

#define OPTIONS_GROUP(table, at)  { .group = (table), .offset = (at) }


/* Kinds of values, and the type of the place that each goes to: */

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


/* Entries that several commands have.  `type` is that of the command's values,
 * which has a member of this name. */

#define OPTIONS_QUIET(type)                                                  \
    { 'q', "quiet", NULL, offsetof(type, quiet), options_take_flag,          \
      "print nothing but errors" }

#define OPTIONS_JSON(type)                                                   \
    { 0, "json", NULL, offsetof(type, json), options_take_flag,              \
      "print the result as JSON" }

#define OPTIONS_JSON_LINES(type)                                             \
    { 0, "json", NULL, offsetof(type, json), options_take_flag,              \
      "print JSON; with several images, an object a line" }

#define OPTIONS_IMAGE(type)                                                  \
    { 'o', "output", "FILE", offsetof(type, output), options_take_text,      \
      "the image, written whole or not at all",                              \
      .needed = "where the image goes" }

#define OPTIONS_FPR(type, text)                                              \
    { 'p', "fpr", "RATE", offsetof(type, fpr), options_take_fpr, text,       \
      .is = "a rate is" }

#define OPTIONS_CAPACITY(type, text)                                         \
    { 'n', "capacity", "N", offsetof(type, capacity), options_take_count,    \
      text, .is = "a number of keys is a count", 1, BLOOM_CAPACITY_MAX }

#define OPTIONS_LAYOUT(type, text)                                           \
    { 0, "layout", "NAME", offsetof(type, layout), options_take_layout,      \
      text }

#define OPTIONS_HASH(type)                                                   \
    { 0, "hash", "NAME", offsetof(type, hash), options_take_hash,            \
      "the hash: murmur3, or siphash if people who choose keys may attack "  \
      "(default: murmur3)" }

#define OPTIONS_KEY_FORM(type, text)                                         \
    { 0, "key", "FORM", offsetof(type, key_form), options_take_key_form,     \
      text }

#define OPTIONS_AS_OF(type, text)                                            \
    { 0, "as-of", "TIME", offsetof(type, as_of), options_take_as_of, text }

#define OPTIONS_THREADS(type, text)                                          \
    { 'j', "threads", "N", offsetof(type, threads), options_take_number,     \
      text, .is = "threads are", 1, OPTIONS_THREADS_MAX }

#define OPTIONS_THREADS_MAX  256


/*
 * Takes the options of a command line, whose first word is the command's name,
 * into `values` and moves them in front of the operands, which begin at
 * argv[*first] then.  Returns CLI_OK; CLI_ERROR after a message; or
 * OPTIONS_HELP if that was asked for.
 */
#define OPTIONS_HELP  -1

int options_parse(const option_t *table, void *values, int argc, char **argv,
    int *first);

/* Says what is wrong with the value of an option: "must be a or b" or the
 * like.  Returns CLI_ERROR. */
int options_wrong(const option_t *option, const char *text, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* Calls `show` for each option of a table, in its groups too, in their order;
 * the last one is --help. */
void options_each(const option_t *table,
    void (*show)(const option_t *option, void *data), void *data);

/* Returns the number of processors, at most OPTIONS_THREADS_MAX. */
unsigned options_processors(void);


#endif /* OPTIONS_H */
