/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A decoder decompresses a stream of members, which gzip calls members, bzip2
 * and xz streams, and zstd frames.  There is one for each format, and each uses
 * the library of its format.
 *
 * A caller calls `begin` for each member, and then sets `in` and `out` and calls
 * `decode` until the member ends.  The memory of a decoder is limited: a member
 * that needs more is refused before its first byte is decoded.
 */

#ifndef DECODER_H
#define DECODER_H

#include <stddef.h>
#include <stdint.h>


/* MiB of the largest window of xz and zstd.  Each level of their programs needs
 * at most this; options such as --long=31 can demand more. */
#define DECODER_WINDOW  128


typedef enum {
    DECODER_OK = 0,                      /* `in` is used up or `out` is full */
    DECODER_END,                         /* the member ends */
    DECODER_DAMAGED,
    DECODER_TOO_LARGE                    /* the window would be larger than
                                            DECODER_WINDOW */
} decoder_result_e;

/* Whether a stream begins with the magic bytes of a format. */
typedef enum {
    DECODER_NO = 0,
    DECODER_MAYBE,                       /* so far, and more bytes are needed */
    DECODER_YES
} decoder_magic_e;

typedef struct decoder_s  decoder_t;

typedef struct {
    const char       *name;
    const char       *command;           /* that decompresses a file to its
                                            standard output */
    const char       *large;             /* that does so with any window */
    size_t            sure;              /* so many bytes of the magic are
                                            enough if no more follow */
    size_t            padding;           /* zero bytes between members come in
                                            multiples of this; 0: none may
                                            come */
    decoder_magic_e (*is)(const uint8_t *data, size_t len);

    /* Begins a member; the first call also allocates. */
    void            (*begin)(decoder_t *decoder);
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
    void                    *library;    /* the library's state */
};


/* Finds the format that begins with these bytes.  Returns NULL if there is no
 * such format; *more becomes 1 if further bytes could change that, else 0. */
const decoder_format_t *decoder_find(const uint8_t *data, size_t len,
    int *more);

/* Returns the format of a stream that has no further bytes, or NULL. */
const decoder_format_t *decoder_find_last(const uint8_t *data, size_t len);


#endif /* DECODER_H */
