/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A decoder decompresses a stream of members, which gzip calls members, bzip2
 * and xz streams, and zstd frames.  There is one for each format, and each uses
 * the library of its format.
 *
 * For each member, a caller calls `begin`, sets `in` and `out` and calls
 * `decode` until the member ends, and calls `end`.  The memory of a decoder is
 * limited: a member that needs more is refused before its first byte is
 * decoded.
 */

#ifndef DECODER_H
#define DECODER_H

#include <stddef.h>
#include <stdint.h>

#include <bzlib.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>


/* MiB of the largest window of xz and zstd.  Each level of their programs needs
 * at most this; options such as --long=31 can demand more. */
#define DECODER_WINDOW  128

/* The bytes of the longest magic */
#define DECODER_MAGIC   10


typedef enum {
    DECODER_OK = 0,                      /* `in` is used up or `out` is full */
    DECODER_END,                         /* the member ends */
    DECODER_TRUNCATED,                   /* the file ends within the member */
    DECODER_DAMAGED,
    DECODER_TOO_LARGE                    /* the window would be larger than
                                            DECODER_WINDOW */
} decoder_result_e;

typedef struct decoder_s  decoder_t;

typedef struct {
    const char       *name;
    const char       *command;           /* that decompresses a file to its
                                            standard output */

    /* The bytes that a member begins with; ? is any byte.  The second one is
     * NULL if there is only one way. */
    const char       *magic[2];

    /* Begins a member, with a library state that is 0.  Returns 1, or 0 if
     * there is too little memory. */
    int             (*begin)(decoder_t *decoder);
    decoder_result_e (*decode)(decoder_t *decoder);
    void            (*end)(decoder_t *decoder);
} decoder_format_t;

struct decoder_s {
    const decoder_format_t  *format;     /* NULL: none */
    const uint8_t           *in;
    size_t                   in_len;     /* bytes that are not used up */
    uint8_t                 *out;
    size_t                   out_len;    /* room that is left */
    const char              *why;        /* the library's reason, or NULL */

    union {
        z_stream             gzip;
        bz_stream            bzip2;
        lzma_stream          xz;
        ZSTD_DCtx           *zstd;
    } library;
};


/* Finds the format that begins with these bytes, as far as they go.  If `last`
 * is set, no more bytes follow, and the first few of a magic are not enough.
 * Returns NULL if there is no such format. */
const decoder_format_t *decoder_find(const uint8_t *data, size_t len,
    int last);


#endif /* DECODER_H */
