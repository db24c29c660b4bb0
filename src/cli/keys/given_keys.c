/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file passes keys to a command one by one, from its command line, a file
 * or standard input.
 */

#include <stdio.h>
#include <string.h>

#include "given_keys.h"
#include "cli.h"
#include "intake.h"


const option_t  given_keys_options[] = {
    { 'f', "file", "FILE", offsetof(given_keys_t, file), options_take_text,
      "read keys from a file; \"-\" is standard input" },
    { '0', "null", NULL, offsetof(given_keys_t, split), options_take_flag,
      "keys in the file end with a zero byte instead of a line end" },
    { 0 }
};


int
given_keys_check(const given_keys_t *given, int n)
{
    if (given->file != NULL && n != 0) {
        return cli_misuse("-f %s cannot be used together with keys on the "
                          "command line", given->file);
    }

    return CLI_OK;
}


/* The data of the sink. */
typedef struct {
    void  (*answer)(const bloom_key_t *key, void *data);
    void   *data;
} answers_t;


/* Each line is a key, also an empty one. */
static list_result_e
next(list_line_t *at)
{
    if (at->step++ != 0) {
        return LIST_END;
    }

    at->key = at->line;

    return LIST_KEY;
}


static const list_reader_t  lines = { .name = "keys", .next = next };


static const char *
take(void *own, const bloom_key_t *key, size_t n, const place_t *place)
{
    answers_t  *answers = own;

    (void) n;                            /* 1, as the sink does not take many */
    (void) place;
    answers->answer(key, answers->data);

    return NULL;
}


/* Shows the answers so far.  Returns 0 if they cannot be written. */
static int
show(void *own)
{
    (void) own;

    return fflush(stdout) == 0;
}


static int
read_keys(const given_keys_t *given, answers_t *answers)
{
    int               rc;
    char             *name;
    intake_t          intake;
    intake_sink_t     sink;
    intake_counts_t   counts;

    memset(&intake, 0, sizeof(intake));
    intake.split = given->split;
    intake.format.reader = &lines;
    intake.threads = 1;
    intake.quiet = 1;
    intake.any = 1;
    intake.eager = 1;                    /* answer a key as soon as it is read */

    memset(&sink, 0, sizeof(sink));
    sink.take = take;
    sink.pause = show;
    sink.data = answers;
    sink.as_given = 1;

    name = given->file != NULL ? (char *) given->file : "-";

    memset(&counts, 0, sizeof(counts));
    rc = intake_read(&intake, &sink, &name, 1, &counts);
    intake_free(&counts);

    return rc;
}


int
given_keys_each(const given_keys_t *given, char **keys, int n,
    void (*answer)(const bloom_key_t *key, void *data), void *data)
{
    answers_t    answers;
    bloom_key_t  key;

    if (n == 0) {
        answers.answer = answer;
        answers.data = data;

        return read_keys(given, &answers);
    }

    for ( /* void */ ; n != 0; n--, keys++) {
        key.data = (const uint8_t *) *keys;
        key.len = strlen(*keys);

        answer(&key, data);
    }

    return CLI_OK;
}
