/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A check looks up keys that the source of an import has.  A filter that was
 * read with a wrong scheme looks as good as any other, and finds none of them.
 */

#ifndef IMPORT_CHECK_H
#define IMPORT_CHECK_H

#include "bloom_image.h"
#include "given_keys.h"


typedef struct {
    uint64_t  keys;                      /* that were looked up; 0: no check */
    uint64_t  found;
} import_check_t;


/*
 * Looks up the keys of a file, if one was given, as nginx does.  Returns CLI_OK
 * if all are found; CLI_NO after a message that names the first others; or
 * CLI_ERROR after a message, if the file cannot be read or has no key.
 */
int import_check(import_check_t *check, const given_keys_t *given,
    const bloom_image_t *image, const uint64_t *words);


#endif /* IMPORT_CHECK_H */
