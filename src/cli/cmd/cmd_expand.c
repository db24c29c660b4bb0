/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom expand` shows a key's canonical form and the expressions by which
 * it is looked up.
 */

#include <stdio.h>

#include "cli.h"
#include "command.h"
#include "given_keys.h"
#include "json.h"
#include "keyform.h"
#include "visible.h"


typedef struct {
    given_keys_t   given;
    uint32_t       key_form;
    int            json;
    keyform_t      keyform;
    uint64_t       keys;
    uint64_t       shown;
    uint64_t       invalid;
} expand_t;


static const option_t  options[] = {
    OPTIONS_KEY_FORM(expand_t,
      "the key form: url, host, lower or raw (default: url)"),
    OPTIONS_GROUP(given_keys_options, offsetof(expand_t, given)),
    { 0, "json", NULL, offsetof(expand_t, json), options_take_flag,
      "print JSON: for each key, also an invalid one, an object on a line" },
    { 0 }
};


static void
print_json(const bloom_form_t *form, const char *why)
{
    unsigned             i;
    bloom_json_writer_t  json;

    json_begin(&json, 1);

    if (why != NULL) {
        bloom_json_put_null(&json, "canonical");

    } else {
        bloom_json_put_bytes(&json, "canonical", form->canonical.data,
                             form->canonical.len);
    }

    bloom_json_put_array(&json, "expressions");

    for (i = 0; why == NULL && i < form->n; i++) {
        bloom_json_put_bytes(&json, NULL, form->expression[i].data,
                             form->expression[i].len);
    }

    bloom_json_put_end(&json);

    if (why != NULL) {
        bloom_json_put_text(&json, "reason", why);
    }

    json_end(&json);
}


static void
print_line(const bloom_key_t *text)
{
    visible_data(text->data, text->len);
    putchar('\n');
}


static void
expand_key(const bloom_key_t *key, void *data)
{
    char           text[KEYFORM_SHOWN];
    expand_t      *expand = data;
    unsigned       i;
    const char    *why;
    bloom_form_t   form;

    expand->keys++;

    /* an empty key is never looked up */

    why = key->len == 0 ? "is empty"
          : keyform_expand(&expand->keyform, &form, key);

    if (why != NULL) {
        expand->invalid++;
    }

    if (expand->json) {
        print_json(&form, why);

    } else if (why != NULL) {
        cli_error("\"%s\" %s", keyform_show(text, key), why);

    } else {

        if (expand->shown++ != 0) {
            putchar('\n');
        }

        print_line(&form.canonical);

        for (i = 0; i < form.n; i++) {
            print_line(&form.expression[i]);
        }
    }
}


static int
run(char **operands, int n, void *values)
{
    int        rc;
    expand_t  *expand = values;

    if (given_keys_check(&expand->given, n) != CLI_OK) {
        return CLI_ERROR;
    }

    keyform_begin(&expand->keyform, expand->key_form);
    rc = given_keys_each(&expand->given, operands, n, expand_key, expand);
    keyform_free(&expand->keyform);

    if (rc == CLI_OK && expand->keys == 0) {
        cli_error("there are no keys to expand: the input is empty");
        rc = CLI_ERROR;
    }

    return rc != CLI_OK ? rc : expand->invalid ? CLI_NO : CLI_OK;
}


static expand_t  values = { .key_form = BLOOM_FORM_URL };

static const command_member_t  members[] = {
    { NULL, "for each key, an object per line:" },
    { "canonical",
      "the canonical form of the key; null if the key is invalid" },
    { "expressions",
      "an array of the expressions; empty if the key is invalid" },
    { "reason", "if the key is invalid: why" },
    { 0 }
};

const command_t  cmd_expand = {
    .name = "expand",
    .does = "show the expressions by which a key is looked up",
    .synopsis = "[OPTION...] [KEY...]",
    .about =
        "Shows the expressions by which nginx and \"ngx-bloom test\" look up a "
        "key, for example to find out why a URL is blocked. For each key, it "
        "prints the canonical form and then the expressions, one per line, "
        "with a blank line between keys. On a terminal, control characters "
        "are shown as \\xNN. Without keys on the command line and without -f, "
        "keys are read from standard input, one per line.",
    .options = options,
    .values = &values,
    .status = "0 all keys are valid; 1 some key is invalid; 2 an error, or "
              "there are no keys.",
    .members = members,
    .examples = "ngx-bloom expand 'http://a.b.example/1/2.html?x=1'\n"
                "ngx-bloom expand --form host www.example.co.uk\n",
    .run = run
};
