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


/* Reads more bytes behind those that have not been used.  Returns as
 * read_stored() does. */
static ssize_t
read_more(input_t *in)
{
    ssize_t     n;
    decoder_t  *decoder;

    decoder = &in->decoder;

    memmove(in->raw, decoder->in, decoder->in_len);
    decoder->in = in->raw;
    n = read_stored(in, in->raw + decoder->in_len, RAW_SIZE - decoder->in_len);

    if (n > 0) {
        decoder->in_len += (size_t) n;
    }

    return n;
}


/*
 * Begins the next member, and reads no more bytes than it takes to know its
 * format: keys from a pipe are answered as they come.  Returns 1; 0 at the end,
 * or if the file is not compressed; or -1 after a message.
 */
static int
next_member(input_t *in)
{
    ssize_t                  n;
    decoder_t               *decoder;
    const decoder_format_t  *format;

    decoder = &in->decoder;
    n = 1;

    for ( ;; ) {
        format = decoder_find(decoder->in, decoder->in_len, n == 0);

        if (format == NULL || decoder->in_len >= DECODER_MAGIC || n == 0) {
            break;
        }

        n = read_more(in);

        if (n == -1) {
            return -1;
        }
    }

    if (decoder->in_len == 0 || (format == NULL && decoder->format == NULL)) {
        return 0;
    }

    if (decoder->format != NULL && format != decoder->format) {
        cli_error("%s: byte %" PRIu64 ": the %s data ends here, and what "
                  "follows is not %s; cut the file off here, or copy it again",
                  in->name, input_used(in), input_format(in),
                  input_format(in));
        return -1;
    }

    decoder->format = format;
    memset(&decoder->library, 0, sizeof(decoder->library));

    if (!format->begin(decoder)) {
        cli_no_memory(0);
    }

    in->member = 1;

    return 1;
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

    in->raw = cli_alloc(RAW_SIZE);
    in->decoder.in = in->raw;

    if (next_member(in) == -1) {
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

    if (in->member) {
        in->decoder.format->end(&in->decoder);
    }

    free(in->raw);
    memset(in, 0, sizeof(*in));
    in->fd = -1;
}


/* Prints why the data is refused.  Returns -1. */
static int
refuse(const input_t *in, decoder_result_e result)
{
    const char       *format, *why;
    const decoder_t  *decoder;

    decoder = &in->decoder;
    format = input_format(in);
    why = decoder->why != NULL ? decoder->why : "";

    if (result == DECODER_TOO_LARGE) {
        cli_error("%s: byte %" PRIu64 ": the %s data has a window of more than "
                  "%d MiB; use \"%s FILE | ngx-bloom %s ... -\", or compress "
                  "the file again with a smaller window", in->name,
                  input_used(in), format, DECODER_WINDOW,
                  decoder->format->command, cli_command);

    } else {
        cli_error("%s: byte %" PRIu64 ": the %s data is %s%s%s; copy the file "
                  "again", in->name, input_used(in), format,
                  result == DECODER_TRUNCATED ? "truncated" : "damaged",
                  why[0] != '\0' ? ": " : "", why);
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

    do {
        n = in->member ? 1 : next_member(in);

        if (n != 1) {
            return n;
        }

        result = decoder->format->decode(decoder);

        if (result == DECODER_OK && decoder->out == buf
            && decoder->in_len == 0)
        {
            n = read_more(in);

            if (n == -1) {
                return -1;
            }

            result = n == 0 ? DECODER_TRUNCATED : DECODER_OK;
        }

        if (result == DECODER_END) {
            in->member = 0;
            decoder->format->end(decoder);

        } else if (result != DECODER_OK) {
            return refuse(in, result);
        }

    } while (decoder->out == buf);

    return decoder->out - buf;
}


ssize_t
input_read(input_t *in, uint8_t *buf, size_t size)
{
    decoder_t  *decoder;

    decoder = &in->decoder;

    if (decoder->format != NULL) {
        return read_decoded(in, buf, size);
    }

    if (decoder->in_len == 0) {
        return read_stored(in, buf, size);
    }

    size = decoder->in_len < size ? decoder->in_len : size;

    memcpy(buf, decoder->in, size);
    decoder->in += size;
    decoder->in_len -= size;

    return (ssize_t) size;
}


const char *
input_format(const input_t *in)
{
    return in->decoder.format != NULL ? in->decoder.format->name : NULL;
}


uint64_t
input_used(const input_t *in)
{
    return in->offset - in->decoder.in_len;
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
