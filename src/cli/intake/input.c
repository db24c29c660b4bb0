/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads the bytes of a file or of standard input, and passes those of
 * a compressed file through its decoder.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "input.h"


#define RAW_SIZE   (256 * 1024)
#define PIPE_SIZE  (1024 * 1024)


static int
is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}


/* Reads bytes of the file, before they are decompressed.  Returns how many; 0
 * at the end; or -1 after a message. */
static ssize_t
read_stored(input_t *in, void *buf, size_t size)
{
    ssize_t  n;

    do {
        n = read(in->fd, buf, size);
    } while (n == -1 && errno == EINTR);

    if (n == -1) {
        cli_error("%s: byte %" PRIu64 ": cannot be read: %s%s", in->name,
                  in->offset, strerror(errno), cli_advice(errno));
        return -1;
    }

    in->offset += (uint64_t) n;

    return n;
}


/* Reads the first bytes, and finds out how they are compressed.  Returns 0, or
 * -1 after a message. */
static int
read_magic(input_t *in)
{
    int         more;
    ssize_t     n;
    decoder_t  *decoder;

    decoder = &in->decoder;
    in->raw = cli_alloc(RAW_SIZE);

    do {
        n = read_stored(in, in->raw + in->raw_len, RAW_SIZE - in->raw_len);

        if (n == -1) {
            return -1;
        }

        in->raw_len += (size_t) n;
        decoder->format = decoder_find(in->raw, in->raw_len, &more);

    } while (n != 0 && more && decoder->format == NULL);

    if (n == 0 && decoder->format == NULL) {
        decoder->format = decoder_find_last(in->raw, in->raw_len);
    }

    if (decoder->format != NULL) {
        decoder->in = in->raw;
        decoder->in_len = in->raw_len;
        decoder->format->begin(decoder);
    }

    return 0;
}


int
input_open(input_t *in, const char *path)
{
    struct stat  st;

    memset(in, 0, sizeof(*in));

    in->name = is_stdin(path) ? "standard input" : path;
    in->fd = is_stdin(path) ? STDIN_FILENO : open(path, O_RDONLY|O_CLOEXEC);

    if (in->fd == -1 || fstat(in->fd, &st) == -1) {
        cli_error("%s: cannot be opened: %s%s", in->name, strerror(errno),
                  cli_advice(errno));
        input_close(in);
        return -1;
    }

    if (S_ISDIR(st.st_mode)) {
        cli_error("%s: is a directory; name a file in it", in->name);
        input_close(in);
        return -1;
    }

    if (S_ISREG(st.st_mode)) {
        in->size = (uint64_t) st.st_size;
    }

    if (isatty(in->fd)) {
        fprintf(stderr, "reading keys from the terminal; press Ctrl-D after "
                "the last one\n");
    }

#ifdef F_SETPIPE_SZ
    (void) fcntl(in->fd, F_SETPIPE_SZ, PIPE_SIZE);
#endif

    if (read_magic(in) != 0) {
        input_close(in);
        return -1;
    }

    return 0;
}


void
input_close(input_t *in)
{
    if (in->fd > STDERR_FILENO) {
        (void) close(in->fd);
    }

    if (in->decoder.format != NULL) {
        in->decoder.format->end(&in->decoder);
        free(in->decoder.library);
    }

    free(in->raw);
    memset(in, 0, sizeof(*in));
    in->fd = -1;
}


/* Reads more bytes behind those that the decoder has not used.  Returns as
 * read_stored() does. */
static ssize_t
read_more(input_t *in)
{
    ssize_t     n;
    decoder_t  *decoder;

    decoder = &in->decoder;

    if (decoder->in_len != 0) {
        memmove(in->raw, decoder->in, decoder->in_len);
    }

    decoder->in = in->raw;
    n = read_stored(in, in->raw + decoder->in_len, RAW_SIZE - decoder->in_len);

    if (n > 0) {
        decoder->in_len += (size_t) n;
    }

    return n;
}


static ssize_t
truncated(const input_t *in)
{
    cli_error("%s: byte %" PRIu64 ": the %s data is truncated; copy the file "
              "again", in->name, in->offset, input_format(in));

    return -1;
}


/* Skips the padding between members.  Returns 1 if another member begins; 0 at
 * the end; or -1 after a message. */
static ssize_t
next_member(input_t *in)
{
    size_t            zeros;
    ssize_t           n;
    decoder_t        *decoder;
    decoder_magic_e   magic;

    decoder = &in->decoder;
    zeros = 0;

    for ( ;; ) {

        while (decoder->format->padding != 0 && decoder->in_len != 0
               && decoder->in[0] == 0)
        {
            decoder->in++;
            decoder->in_len--;
            zeros++;
        }

        magic = decoder->format->is(decoder->in, decoder->in_len);

        if (magic != DECODER_MAYBE) {
            break;
        }

        n = read_more(in);

        if (n == -1) {
            return -1;
        }

        if (n == 0 && decoder->in_len != 0) {
            return truncated(in);
        }

        if (n == 0) {
            break;
        }
    }

    if (magic == DECODER_NO
        || (zeros != 0 && zeros % decoder->format->padding != 0))
    {
        cli_error("%s: byte %" PRIu64 ": the %s data ends here, and what "
                  "follows is not %s; cut the file off here, or copy it again",
                  in->name, input_used(in) - zeros, input_format(in),
                  input_format(in));
        return -1;
    }

    if (magic == DECODER_MAYBE) {
        return 0;
    }

    in->between = 0;
    decoder->format->begin(decoder);

    return 1;
}


/* Prints why the decoder refuses the data.  Returns -1. */
static ssize_t
refuse(const input_t *in, decoder_result_e result)
{
    const char       *format;
    const decoder_t  *decoder;

    decoder = &in->decoder;
    format = input_format(in);

    if (result == DECODER_TOO_LARGE) {
        cli_error("%s: byte %" PRIu64 ": the %s data has a window of more than "
                  "%d MiB; use \"%s FILE | ngx-bloom %s ... -\", or compress "
                  "the file again with a smaller window", in->name,
                  input_used(in), format, DECODER_WINDOW,
                  decoder->format->large, cli_command);

    } else {
        cli_error("%s: byte %" PRIu64 ": the %s data is damaged%s%s; copy the "
                  "file again", in->name, input_used(in), format,
                  decoder->why != NULL ? ": " : "",
                  decoder->why != NULL ? decoder->why : "");
    }

    return -1;
}


static ssize_t
read_decoded(input_t *in, uint8_t *buf, size_t size)
{
    ssize_t            n;
    decoder_t         *decoder;
    decoder_result_e   result;

    decoder = &in->decoder;
    decoder->out = buf;
    decoder->out_len = size < RAW_SIZE ? size : RAW_SIZE;
    size = decoder->out_len;

    while (decoder->out_len == size) {

        if (in->between) {
            n = next_member(in);

            if (n != 1) {
                return n;
            }
        }

        if (decoder->in_len == 0 && !in->pending) {
            n = read_more(in);

            if (n == -1) {
                return -1;
            }

            if (n == 0) {
                return truncated(in);
            }
        }

        result = decoder->format->decode(decoder);

        in->pending = decoder->out_len == 0 && result == DECODER_OK;

        if (result == DECODER_END) {
            in->between = 1;

        } else if (result != DECODER_OK) {
            return refuse(in, result);
        }
    }

    return (ssize_t) (size - decoder->out_len);
}


ssize_t
input_read(input_t *in, uint8_t *buf, size_t size)
{
    size_t  n;

    if (in->decoder.format != NULL) {
        return read_decoded(in, buf, size);
    }

    if (in->raw_pos < in->raw_len) {
        n = in->raw_len - in->raw_pos;
        n = n < size ? n : size;

        memcpy(buf, in->raw + in->raw_pos, n);
        in->raw_pos += n;

        return (ssize_t) n;
    }

    return read_stored(in, buf, size);
}


const char *
input_format(const input_t *in)
{
    return in->decoder.format != NULL ? in->decoder.format->name : NULL;
}


uint64_t
input_used(const input_t *in)
{
    return in->offset - (in->decoder.format != NULL ? in->decoder.in_len : 0);
}


int64_t
input_total(char **paths, int n)
{
    int          i, known;
    int64_t      total;
    struct stat  st;

    total = 0;
    known = 1;

    for (i = 0; i < n; i++) {

        if ((is_stdin(paths[i]) ? fstat(STDIN_FILENO, &st)
                                : stat(paths[i], &st)) == -1)
        {
            cli_error("%s: cannot be opened: %s%s",
                      is_stdin(paths[i]) ? "standard input" : paths[i],
                      strerror(errno), cli_advice(errno));
            return -1;
        }

        if (S_ISREG(st.st_mode)) {
            total += st.st_size;

        } else {
            known = 0;
        }
    }

    return known ? total : 0;
}
