
/*
 * ngx-bloom expand: a key in its canonical form, and what it is looked up by.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "keystream.h"
#include "json.h"
#include "keyform.h"


typedef struct {
    bloom_split_e  split;
    int            json;
    keyform_t      keyform;
    uint64_t       shown;
    uint64_t       unparsable;
} expand_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom expand [OPTION...] [KEY...]\n"
"\n"
"Shows what keys are looked up by in an image of a key form: the canonical form\n"
"on a line, then every expression, one a line; a blank line between keys.  It\n"
"answers why a URL is blocked.  Without keys and without -f they are read from\n"
"standard input, one a line.\n"
"\n"
"      --key FORM      url, host, lower or raw (url)\n"
"  -f, --file FILE     read keys from a file, \"-\" for standard input\n"
"  -0, --null          keys in a file end with a zero byte instead of a line's\n"
"                      end\n"
"      --json          print JSON, an object a line: \"canonical\" and\n"
"                      \"expressions\"; null and none, with a \"reason\", where\n"
"                      there is nothing to look up\n"
"  -h, --help          show this\n"
"\n"
"Exit status: 0 all can be looked up; 1 some cannot; 2 an error, or no key.\n"
"\n"
"Examples:\n"
"  ngx-bloom expand 'http://a.b.example/1/2.html?x=1'\n"
"  ngx-bloom expand --key host www.example.co.uk\n");
}


static void
print_json(const bloom_form_t *form, const char *why)
{
    json_t  json;

    json_begin(&json, 1);

    if (why != NULL) {
        json_null(&json, "canonical");
        json_texts(&json, "expressions", NULL, 0);
        json_text(&json, "reason", why);

    } else {
        json_bytes(&json, "canonical", form->canonical.data,
                   form->canonical.len);
        json_texts(&json, "expressions", form->expression, form->n);
    }

    json_end(&json);
}


static void
print_line(const bloom_key_t *text)
{
    fwrite(text->data, 1, text->len, stdout);
    putchar('\n');
}


static void
expand_key(expand_t *expand, const bloom_key_t *key)
{
    char           text[KEYFORM_SHOWN];
    unsigned       i;
    const char    *why;
    bloom_form_t   form;

    /* an empty key is never looked up */

    why = key->len == 0 ? "is empty"
          : keyform_expand(&expand->keyform, &form, key);

    if (why != NULL) {
        expand->unparsable++;
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


/* How many keys there were, or -1 having said why it cannot be read. */
static int64_t
expand_file(expand_t *expand, const char *name)
{
    int             rc;
    int64_t         n;
    input_t         input;
    bloom_key_t     key;
    input_block_t   block;
    const uint8_t  *pos;

    if (input_open(&input, name, expand->split) != 0) {
        return -1;
    }

    n = 0;
    memset(&block, 0, sizeof(block));

    while ((rc = input_next(&input, &block, 1)) == 1) {

        for (pos = block.data;
             bloom_key_next(&key, &pos, block.data + block.len, expand->split,
                            block.last)
             == 1;
             n++)
        {
            expand_key(expand, &key);
        }

        if (fflush(stdout) != 0) {
            break;
        }
    }

    free(block.data);
    input_close(&input);

    return rc == -1 ? -1 : n;
}


int
cmd_expand(int argc, char **argv)
{
    int           c, i, form;
    int64_t       n;
    expand_t      expand;
    const char   *file;
    bloom_key_t   key;

    enum { KEY = 256, JSON };

    static const struct option  names[] = {
        { "key",   required_argument, NULL, KEY },
        { "file",  required_argument, NULL, 'f' },
        { "null",  no_argument,       NULL, '0' },
        { "json",  no_argument,       NULL, JSON },
        { "help",  no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(&expand, 0, sizeof(expand));
    form = BLOOM_FORM_URL;
    file = NULL;

    while ((c = cli_option(argc, argv, ":f:0h", names)) != -1) {

        switch (c) {

        case KEY:
            form = keyform_parse(optarg);

            if (form == -1) {
                return CLI_ERROR;
            }

            break;

        case 'f':
            file = optarg;
            break;

        case '0':
            expand.split = BLOOM_SPLIT_NUL;
            break;

        case JSON:
            expand.json = 1;
            break;

        case 'h':
            usage();
            return CLI_OK;

        default:
            return CLI_ERROR;
        }
    }

    if (file != NULL && optind < argc) {
        return cli_misuse("keys come from -f %s or from the command line, not "
                          "both", file);
    }

    keyform_begin(&expand.keyform, (uint32_t) form);

    n = argc - optind;

    for (i = optind; i < argc; i++) {
        key.data = (const uint8_t *) argv[i];
        key.len = strlen(argv[i]);
        expand_key(&expand, &key);
    }

    if (n == 0) {
        n = expand_file(&expand, file ? file : "-");
    }

    keyform_free(&expand.keyform);

    if (n == 0) {
        cli_error("there are no keys to show: the input has none");
    }

    if (n <= 0) {
        return CLI_ERROR;
    }

    return expand.unparsable ? CLI_NO : CLI_OK;
}
