/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom test` looks keys up in an image.
 */

#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "given_keys.h"
#include "image_lookup.h"
#include "image_read.h"
#include "json.h"
#include "keyform.h"
#include "visible.h"


typedef struct {
    given_keys_t   given;
    int            quiet;
    int            json;
    int            count;                /* print only the totals */

    image_read_t   image;
    keyform_t      keyform;
    uint64_t       present;
    uint64_t       absent;
    uint64_t       invalid;
    uint64_t       empty;
} test_t;


static const option_t  options[] = {
    OPTIONS_GROUP(given_keys_options, offsetof(test_t, given)),
    { 'c', "count", NULL, offsetof(test_t, count), options_take_flag,
      "print only how many keys are present, absent and invalid" },
    OPTIONS_QUIET(test_t),
    { 0, "json", NULL, offsetof(test_t, json), options_take_flag,
      "print JSON: for each key an object on a line or, with -c, one object" },
    { 0 }
};


/* Prints the answer for a key.  `expression` is the expression that is present,
 * `why` the reason if the key is invalid; each may be NULL. */
static void
print_key(const test_t *test, const bloom_key_t *key, const char *answer,
    const bloom_key_t *expression, const char *why)
{
    bloom_json_writer_t  json;

    if (!test->json) {
        printf("%s ", answer);
        visible_data(key->data, key->len);
        putchar(test->given.split == BLOOM_SPLIT_NUL ? '\0' : '\n');
        return;
    }

    json_begin(&json, 1);
    json_key(&json, key);
    bloom_json_put_text(&json, "answer", answer);

    if (expression != NULL) {
        bloom_json_put_bytes(&json, "expression", expression->data,
                             expression->len);
    }

    if (why != NULL) {
        bloom_json_put_text(&json, "reason", why);
    }

    json_end(&json);
}


static void
test_key(const bloom_key_t *key, void *data)
{
    test_t               *test = data;
    const char           *answer;
    image_lookup_t        lookup;
    const bloom_image_t  *image;

    if (key->len == 0) {
        test->empty++;
        return;
    }

    image = &test->image.image;

    image_lookup(&lookup, image, test->image.words, &test->image.removed.set,
                 &test->keyform, key);

    if (lookup.why != NULL) {
        test->invalid++;
        answer = "invalid";

    } else if (lookup.expression != NULL) {
        test->present++;
        answer = "present";

    } else {
        test->absent++;
        answer = "absent";
    }

    if (!test->quiet && !test->count) {
        print_key(test, key, answer,
                  image->key_form >= BLOOM_FORM_HOST ? lookup.expression
                                                     : NULL, lookup.why);
    }
}


static void
print_count(const test_t *test)
{
    bloom_json_writer_t  json;

    if (test->json) {
        json_begin(&json, 0);
        bloom_json_put_count(&json, "present", test->present);
        bloom_json_put_count(&json, "absent", test->absent);
        bloom_json_put_count(&json, "invalid", test->invalid);
        bloom_json_put_count(&json, "empty", test->empty);
        json_end(&json);
        return;
    }

    printf("%" PRIu64 " present, %" PRIu64 " absent", test->present,
           test->absent);

    if (test->invalid != 0) {
        printf(", %" PRIu64 " invalid", test->invalid);
    }

    if (test->empty != 0) {
        printf(", %" PRIu64 " empty key%s skipped", test->empty,
               test->empty == 1 ? " was" : "s were");
    }

    putchar('\n');
}


static int
run(char **operands, int n, void *values)
{
    int      rc;
    test_t  *test = values;

    if (n == 0) {
        return cli_misuse("no image is named");
    }

    if (given_keys_check(&test->given, n - 1) != CLI_OK
        || image_read_header(&test->image, operands[0]) != CLI_OK)
    {
        return CLI_ERROR;
    }

    keyform_begin(&test->keyform, test->image.image.key_form);
    rc = image_read_all(&test->image);

    if (rc == CLI_OK) {
        rc = given_keys_each(&test->given, operands + 1, n - 1, test_key, test);
    }

    image_read_free(&test->image);
    keyform_free(&test->keyform);

    if (rc != CLI_OK) {
        return CLI_ERROR;                /* CLI_NO would be an answer */
    }

    if (test->count && !test->quiet) {
        print_count(test);
    }

    if (test->present + test->absent + test->invalid == 0) {
        cli_error("there are no keys to look up: %s",
                  test->empty ? "all keys are empty" : "the input is empty");
        return CLI_ERROR;
    }

    return test->absent + test->invalid ? CLI_NO : CLI_OK;
}


static test_t  values;

static const command_member_t  members[] = {
    { NULL, "for each key, an object per line:" },
    { "key", "the key; each byte that is not valid UTF-8 is shown as U+FFFD" },
    { "key_hex",
      "only if the key is not valid UTF-8: its bytes as hexadecimal digits" },
    { "answer", "the answer: present, absent or invalid" },
    { "expression",
      "key forms host and url, if the key is present: the first expression "
      "that is present" },
    { "reason", "if the key is invalid: why" },
    { NULL, "with -c, one object:" },
    { "present", "the number of keys that are present" },
    { "absent", "the number of keys that are absent" },
    { "invalid", "the number of invalid keys" },
    { "empty", "the number of empty keys, which are skipped" },
    { 0 }
};

const command_t  cmd_test = {
    .name = "test",
    .does = "look keys up in an image",
    .synopsis = "[OPTION...] IMAGE [KEY...]",
    .about =
        "Prints for each key, on a line, whether it is absent or (maybe) "
        "present. Without keys on the command line and without -f, keys are "
        "read from standard input, one per line, and decompressed as by "
        "build. Empty keys are skipped. With -0, each line of the output ends with a zero "
        "byte, too. On a terminal, control characters in keys are shown as "
        "\\xNN.\n\n"
        "Keys are converted to the image's key form before they are looked "
        "up. In key forms host and url, a key is present if any of its "
        "expressions is present and was not removed. A key that cannot be "
        "converted is invalid. "
        "The whole image is checked before the first lookup.",
    .options = options,
    .values = &values,
    .status =
        "0 all keys are (maybe) present; 1 some key is absent or invalid; 2 "
        "an error, or there are no keys.",
    .members = members,
    .examples = "ngx-bloom test ids.bloom 4711 4712\n"
                "ngx-bloom test ids.bloom -- -4711\n"
                "ngx-bloom test -c ids.bloom -f ids.txt.gz\n",
    .run = run
};
