/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An input gives the bytes of a file or of standard input, decompressed.
 *
 * A stream that begins with the magic bytes of a format in decoder.h is
 * decompressed, member after member.  Truncated and damaged data, and bytes
 * that follow the last member, are errors.
 */

#ifndef INPUT_H
#define INPUT_H

#include <sys/types.h>

#include "decoder.h"


typedef struct {
    const char  *name;                   /* for messages */
    int          fd;
    decoder_t    decoder;
    int          member;                 /* a member has begun, and has not
                                            ended */
    uint64_t     offset;                 /* bytes read from the file, before
                                            they are decompressed */
    uint64_t     size;                   /* of a regular file; else 0 */
    uint8_t     *raw;                    /* the first bytes, and all of a
                                            compressed file */
} input_t;


/* Opens a file; "-" is standard input.  Returns 0, or -1 after a message. */
int input_open(input_t *in, const char *path);
void input_close(input_t *in);

/* Reads up to `size` bytes, as soon as there are any.  Returns how many; 0 at
 * the end; or -1 after a message. */
ssize_t input_read(input_t *in, uint8_t *buf, size_t size);

/* Returns the name of the format that is decompressed, or NULL. */
const char *input_format(const input_t *in);

/* Returns how many bytes of the file have been used. */
uint64_t input_used(const input_t *in);

/*
 * Returns the total size of these files, as stored; 0 if it is unknown, as one
 * of them is not a regular file; or -1 after a message, if one of them cannot
 * be opened.
 */
int64_t input_total(char **paths, int n);


#endif /* INPUT_H */
