/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads a stream of keys, inflates it if it is gzip, and divides it
 * into blocks of whole keys.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bloom_image.h"
#include "cli.h"
#include "keystream.h"


#define RAW_SIZE  (256 * 1024)


static int
is_stdin(const char *path)
{
    return strcmp(path, "-") == 0;
}


/* Reads bytes of the file, before they are inflated.  Returns how many; 0 at
 * the end; or -1 after a message. */
static ssize_t
read_stored(keystream_t *in, void *buf, size_t size)
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


int
keystream_open(keystream_t *in, const char *path, bloom_split_e split)
{
    ssize_t      n;
    struct stat  st;

    memset(in, 0, sizeof(*in));

    in->name = is_stdin(path) ? "standard input" : path;
    in->split = split;
    in->fd = is_stdin(path) ? STDIN_FILENO : open(path, O_RDONLY|O_CLOEXEC);

    if (in->fd == -1 || fstat(in->fd, &st) == -1) {
        cli_error("%s: cannot be opened: %s%s", in->name, strerror(errno),
                  cli_advice(errno));
        keystream_close(in);
        return -1;
    }

    if (S_ISDIR(st.st_mode)) {
        cli_error("%s: is a directory; name a file in it", in->name);
        keystream_close(in);
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
    (void) fcntl(in->fd, F_SETPIPE_SZ, KEYSTREAM_BLOCK);
#endif

    in->raw = cli_alloc(RAW_SIZE);

    while (in->raw_len < 2) {
        n = read_stored(in, in->raw + in->raw_len, RAW_SIZE - in->raw_len);

        if (n == -1) {
            keystream_close(in);
            return -1;
        }

        if (n == 0) {
            break;
        }

        in->raw_len += (size_t) n;
    }

    if (in->raw_len >= 2 && in->raw[0] == 0x1f && in->raw[1] == 0x8b) {

        if (inflateInit2(&in->z, 16 + MAX_WBITS) != Z_OK) {
            cli_no_memory(RAW_SIZE);
        }

        in->gzip = 1;
        in->members = 1;
        in->z.next_in = in->raw;
        in->z.avail_in = (uInt) in->raw_len;
    }

    return 0;
}


void
keystream_close(keystream_t *in)
{
    if (in->fd > STDERR_FILENO) {
        (void) close(in->fd);
    }

    if (in->gzip) {
        (void) inflateEnd(&in->z);
    }

    free(in->raw);
    free(in->tail);
    memset(in, 0, sizeof(*in));
    in->fd = -1;
}


static ssize_t
inflate_error(keystream_t *in)
{
    uint64_t  at;

    at = in->offset - in->z.avail_in;

    if (in->members > 1 && in->z.total_out == 0 && in->z.total_in <= 10) {
        cli_error("%s: byte %" PRIu64 ": the gzip data ends here, and what "
                  "follows is not gzip; cut the file off here, or copy it "
                  "again", in->name, at - in->z.total_in);

    } else {
        cli_error("%s: byte %" PRIu64 ": the gzip data is damaged%s%s; copy "
                  "the file again", in->name, at, in->z.msg ? ": " : "",
                  in->z.msg ? in->z.msg : "");
    }

    return -1;
}


static ssize_t
read_gzip(keystream_t *in, uint8_t *buf, size_t size)
{
    int      rc;
    ssize_t  n;

    in->z.next_out = buf;
    in->z.avail_out = (uInt) (size < RAW_SIZE ? size : RAW_SIZE);
    size = in->z.avail_out;

    while (in->z.avail_out == size) {

        if (in->z.avail_in == 0) {
            n = read_stored(in, in->raw, RAW_SIZE);

            if (n == -1) {
                return -1;
            }

            if (n == 0 && in->between) {
                return 0;
            }

            if (n == 0) {
                cli_error("%s: byte %" PRIu64 ": the gzip data is truncated; "
                          "copy the file again", in->name, in->offset);
                return -1;
            }

            in->z.next_in = in->raw;
            in->z.avail_in = (uInt) n;
        }

        if (in->between) {
            (void) inflateReset(&in->z);
            in->between = 0;
            in->members++;
        }

        rc = inflate(&in->z, Z_NO_FLUSH);

        if (rc == Z_STREAM_END) {
            in->between = 1;

        } else if (rc == Z_MEM_ERROR) {
            cli_no_memory(RAW_SIZE);

        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return inflate_error(in);
        }
    }

    return (ssize_t) (size - in->z.avail_out);
}


ssize_t
keystream_read(keystream_t *in, uint8_t *buf, size_t size)
{
    size_t  n;

    if (in->gzip) {
        return read_gzip(in, buf, size);
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


static int
too_long(const keystream_t *in)
{
    const char  *what, *advice;

    what = "line";
    advice = "put one key on each line, or use -0 if keys end with a zero byte";

    if (in->split == BLOOM_SPLIT_NUL) {
        what = "key";
        advice = "with -0, each key must end with a zero byte";
    }

    /* the line fills the block; bytes of gzip are counted before inflating */

    if (in->gzip) {
        cli_error("%s: byte %" PRIu64 " of the gzip data: a %s reaches 1 MiB "
                  "here; %s", in->name, in->offset - in->z.avail_in, what,
                  advice);

    } else {
        cli_error("%s: byte %" PRIu64 ": a %s of 1 MiB or more begins here; "
                  "%s", in->name, in->offset - KEYSTREAM_BLOCK, what, advice);
    }

    return -1;
}


/* Keeps the bytes after the block's last delimiter for the next block. */
static void
carry_over(keystream_t *in, keystream_block_t *block, size_t whole)
{
    in->tail_len = block->len - whole;

    if (in->tail_len != 0) {
        in->tail = cli_realloc(in->tail, in->tail_len);
        memcpy(in->tail, block->data + whole, in->tail_len);
    }

    block->len = whole;
}


int
keystream_next(keystream_t *in, keystream_block_t *block, int eager)
{
    int       delimiter;
    size_t    searched, skip;
    ssize_t   n;
    uint8_t  *end;

    block->len = 0;
    block->last = 0;

    if (in->ended) {
        return 0;
    }

    if (block->data == NULL) {
        block->data = cli_alloc(KEYSTREAM_BLOCK);
    }

    if (in->tail_len != 0) {
        memcpy(block->data, in->tail, in->tail_len);
        block->len = in->tail_len;
    }

    delimiter = in->split == BLOOM_SPLIT_NUL ? '\0' : '\n';
    searched = block->len;               /* the tail has no delimiter */

    for ( ;; ) {

        if (block->len == KEYSTREAM_BLOCK) {
            return too_long(in);
        }

        n = keystream_read(in, block->data + block->len,
                           KEYSTREAM_BLOCK - block->len);

        if (n == -1) {
            return -1;
        }

        if (n == 0) {
            in->ended = 1;
            block->last = 1;
            break;
        }

        block->len += (size_t) n;

        if (block->len < KEYSTREAM_BLOCK && !eager) {
            continue;
        }

        end = memrchr(block->data + searched, delimiter,
                      block->len - searched);

        if (end != NULL) {
            break;
        }

        searched = block->len;
    }

    if (!in->begun && bloom_image_is(block->data, block->len)) {
        cli_error("%s: is an image, not a list of keys; use \"ngx-bloom "
                  "merge\" to combine images", in->name);
        return -1;
    }

    if (!in->begun && in->split == BLOOM_SPLIT_LINES) {
        skip = bloom_key_mark(block->data, block->len);
        block->len -= skip;
        memmove(block->data, block->data + skip, block->len);
    }

    in->begun = 1;

    if (in->divide(in->divide_data, block, &searched) != 0) {
        return -1;
    }

    if (!block->last) {

        if (searched == 0) {
            return too_long(in);
        }

        carry_over(in, block, searched);
    }

    return 1;
}


int64_t
keystream_total(char **paths, int n)
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
