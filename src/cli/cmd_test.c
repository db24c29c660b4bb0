
/*
 * ngx-bloom test: asks an image about keys.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bloom_utf8.h"
#include "cli.h"
#include "keystream.h"
#include "json.h"
#include "keyform.h"
#include "image_read.h"


typedef struct {
    bloom_split_e   split;
    int             quiet;
    int             json;
    int             count;               /* print the totals alone */

    loaded_t        loaded;
    keyform_t       keyform;
    uint64_t        present;
    uint64_t        absent;
    uint64_t        unparsable;
    uint64_t        empty;
} test_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom test [OPTION...] IMAGE [KEY...]\n"
"\n"
"Says of each key whether it is absent or (maybe) present, a line each.  Without\n"
"keys and without -f they are read from standard input, one a line; what gzip\n"
"compressed is read as it is.  Empty lines are skipped.  A key is looked up as\n"
"the image's key form has it; one that has no such form is unparsable.\n"
"\n"
"  -f, --file FILE     read keys from a file, \"-\" for standard input\n"
"  -0, --null          keys in a file end with a zero byte instead of a line's\n"
"                      end, and so do lines of the output\n"
"  -c, --count         print only how many are present and absent\n"
"  -q, --quiet         print nothing but errors\n"
"      --json          print JSON, an object a line; with host and url it says\n"
"                      which \"expression\" is present; a key that is not UTF-8\n"
"                      is in hexadecimal too, as \"key_hex\"\n"
"  -h, --help          show this\n"
"\n"
"Exit status: 0 all are present; 1 some is absent or unparsable; 2 an error, or\n"
"no key.\n"
"\n"
"Examples:\n"
"  ngx-bloom test ids.bloom 4711 4712\n"
"  ngx-bloom test ids.bloom -- -4711\n"
"  ngx-bloom test -c ids.bloom -f ids.txt.gz\n");
}


/* `expression` is what is present, `why` says that the key is unparsable; both
 * may be NULL. */
static void
print_key(const test_t *test, const bloom_key_t *key, const char *result,
    const bloom_key_t *expression, const char *why)
{
    json_t  json;

    if (test->json) {
        json_begin(&json, 1);
        json_bytes(&json, "key", key->data, key->len);

        if (!bloom_utf8_valid(key->data, key->len)) {
            json_hex(&json, "key_hex", key->data, key->len);
        }

        json_text(&json, "result", result);

        if (expression != NULL) {
            json_bytes(&json, "expression", expression->data,
                       expression->len);
        }

        if (why != NULL) {
            json_text(&json, "reason", why);
        }

        json_end(&json);
        return;
    }

    printf("%s ", result);
    fwrite(key->data, 1, key->len, stdout);
    putchar(test->split == BLOOM_SPLIT_NUL ? '\0' : '\n');
}


static void
test_key(test_t *test, const bloom_key_t *key)
{
    unsigned              i;
    const char           *why, *result;
    bloom_form_t          form;
    bloom_hash_t          hash[BLOOM_FORM_EXPRESSIONS];
    const bloom_key_t    *expression;
    const bloom_image_t  *image;

    if (key->len == 0) {
        test->empty++;
        return;
    }

    image = &test->loaded.image;
    expression = NULL;

    why = keyform_expand(&test->keyform, &form, key);

    if (why != NULL) {
        test->unparsable++;
        result = "unparsable";

    } else {

        for (i = 0; i < form.n; i++) {
            hash[i] = bloom_hash(&image->hasher, form.expression[i].data,
                                 form.expression[i].len);
        }

        i = bloom_layout_test_any(&image->geometry, test->loaded.words, hash,
                                  form.n);

        if (i < form.n) {
            test->present++;
            result = "present";
            expression = &form.expression[i];

        } else {
            test->absent++;
            result = "absent";
        }
    }

    if (!test->quiet && !test->count) {
        print_key(test, key, result,
                  image->key_form >= BLOOM_FORM_HOST ? expression : NULL, why);
    }
}


static int
test_file(test_t *test, const char *name)
{
    int             rc;
    input_t         input;
    bloom_key_t     key;
    input_block_t   block;
    const uint8_t  *pos;

    if (input_open(&input, name, test->split) != 0) {
        return CLI_ERROR;
    }

    memset(&block, 0, sizeof(block));

    /* who asks key by key is answered key by key; and there is no use in going
     * on when nobody gets the answers */

    while ((rc = input_next(&input, &block, 1)) == 1) {

        pos = block.data;

        while (bloom_key_next(&key, &pos, block.data + block.len, test->split,
                              block.last)
               == 1)
        {
            test_key(test, &key);
        }

        if (fflush(stdout) != 0) {
            break;
        }
    }

    free(block.data);
    input_close(&input);

    return rc == -1 ? CLI_ERROR : CLI_OK;
}


static int
test_arguments(test_t *test, char **keys, int n)
{
    bloom_key_t  key;

    for ( /* void */ ; n != 0; n--, keys++) {
        key.data = (const uint8_t *) *keys;
        key.len = strlen(*keys);

        test_key(test, &key);
    }

    return CLI_OK;
}


static void
print_count(const test_t *test)
{
    json_t  json;

    if (test->json) {
        json_begin(&json, 0);
        json_count(&json, "present", test->present);
        json_count(&json, "absent", test->absent);
        json_count(&json, "unparsable", test->unparsable);
        json_count(&json, "empty", test->empty);
        json_end(&json);
        return;
    }

    printf("%" PRIu64 " present, %" PRIu64 " absent", test->present,
           test->absent);

    if (test->unparsable != 0) {
        printf(", %" PRIu64 " unparsable", test->unparsable);
    }

    if (test->empty != 0) {
        printf(", %" PRIu64 " empty keys were skipped", test->empty);
    }

    putchar('\n');
}


int
cmd_test(int argc, char **argv)
{
    int          c, rc;
    test_t       test;
    const char  *file;

    enum { JSON = 256 };

    static const struct option  names[] = {
        { "file",  required_argument, NULL, 'f' },
        { "null",  no_argument,       NULL, '0' },
        { "count", no_argument,       NULL, 'c' },
        { "quiet", no_argument,       NULL, 'q' },
        { "json",  no_argument,       NULL, JSON },
        { "help",  no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(&test, 0, sizeof(test));
    file = NULL;

    while ((c = cli_option(argc, argv, ":f:0cqh", names)) != -1) {

        switch (c) {

        case 'f':
            file = optarg;
            break;

        case '0':
            test.split = BLOOM_SPLIT_NUL;
            break;

        case 'c':
            test.count = 1;
            break;

        case 'q':
            test.quiet = 1;
            break;

        case JSON:
            test.json = 1;
            break;

        case 'h':
            usage();
            return CLI_OK;

        default:
            return CLI_ERROR;
        }
    }

    if (optind == argc) {
        return cli_misuse("no image is named");
    }

    if (file != NULL && argc - optind > 1) {
        return cli_misuse("keys come from -f %s or from the command line, not "
                          "both", file);
    }

    if (load_header(argv[optind], &test.loaded) != CLI_OK) {
        return CLI_ERROR;
    }

    keyform_begin(&test.keyform, test.loaded.image.key_form);
    rc = load_words(&test.loaded);

    if (rc != CLI_OK) {
        rc = CLI_ERROR;                  /* no answer of no */

    } else if (argc - optind > 1) {
        rc = test_arguments(&test, argv + optind + 1, argc - optind - 1);

    } else {
        rc = test_file(&test, file ? file : "-");
    }

    load_free(&test.loaded);
    keyform_free(&test.keyform);

    if (rc != CLI_OK) {
        return rc;
    }

    if (test.count && !test.quiet) {
        print_count(&test);
    }

    if (test.present + test.absent + test.unparsable == 0) {
        cli_error("there are no keys to ask about: %s",
                  test.empty ? "all are empty" : "the input has none");
        return CLI_ERROR;
    }

    return test.absent + test.unparsable ? CLI_NO : CLI_OK;
}
