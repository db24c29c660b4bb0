/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file looks up the keys of --check in an imported filter.
 */

#include <inttypes.h>

#include "cli.h"
#include "image_lookup.h"
#include "import_check.h"
#include "units.h"

#define SHOWN  3                         /* keys that are not found */


/* The state of a check. */
typedef struct {
    import_check_t        *check;
    const char            *file;
    const bloom_image_t   *image;
    const uint64_t        *words;
    keyform_t              keyform;
} checking_t;


static void
check_key(const bloom_key_t *key, void *data)
{
    char              shown[KEYFORM_SHOWN];
    checking_t       *checking = data;
    import_check_t   *check;
    image_lookup_t    lookup;

    static const bloom_exceptions_t  none;

    if (key->len == 0) {
        return;
    }

    check = checking->check;
    check->keys++;

    image_lookup(&lookup, checking->image, checking->words, &none,
                 &checking->keyform, key);

    if (lookup.expression != NULL) {
        check->found++;

    } else if (check->keys - check->found <= SHOWN) {
        cli_error("%s: \"%s\" %s", checking->file, keyform_show(shown, key),
                  lookup.why != NULL ? lookup.why : "is not found");
    }
}


int
import_check(import_check_t *check, const given_keys_t *given,
    const bloom_image_t *image, const uint64_t *words)
{
    int         rc;
    char        share[UNITS_LEN];
    checking_t  checking;

    check->keys = 0;
    check->found = 0;

    if (given->file == NULL) {
        return CLI_OK;
    }

    checking.check = check;
    checking.file = given->file;
    checking.image = image;
    checking.words = words;
    keyform_begin(&checking.keyform, image->key_form);

    rc = given_keys_each(given, NULL, 0, check_key, &checking);

    keyform_free(&checking.keyform);

    if (rc != CLI_OK) {
        return CLI_ERROR;
    }

    if (check->keys == 0) {
        cli_error("%s: has no keys to check", given->file);
        return CLI_ERROR;
    }

    if (check->found == check->keys) {
        return CLI_OK;
    }

    format_rate(share, (double) check->found / (double) check->keys);

    cli_error("%s: the image finds %" PRIu64 " of %" PRIu64 " key%s, %s, and "
              "is not written; check that the source has these keys, how they "
              "are spelled there, and --scheme, --bits, --hashes, --funnel and "
              "--form", given->file, check->found, check->keys,
              CLI_S(check->keys), share);

    return CLI_NO;
}
