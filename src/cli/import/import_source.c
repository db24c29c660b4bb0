/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads an imported filter's bytes, whether they come from files or
 * from a Redis server.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bloom_foreign.h"
#include "cli.h"
#include "import_source.h"
#include "redis_url.h"
#include "url.h"

#define PIECE  (1024 * 1024)


const char *
import_source_shown(const char *path)
{
    static char  *shown;

    if (!redis_url_is(path) && strstr(path, "://") == NULL) {
        return path;
    }

    free(shown);
    shown = url_shown(path);

    return shown;
}


/* Opens the next file.  Returns 1, 0 after the last file, or -1 after a
 * message. */
static int
next_file(import_source_t *source)
{
    if (source->open) {
        input_close(&source->input);
        source->open = 0;
    }

    if (source->n == 0) {
        return 0;
    }

    if (strstr(*source->paths, "://") != NULL
        && access(*source->paths, F_OK) != 0)
    {
        cli_error("%s: is neither a file nor an address of a Redis key, which "
                  "begins with redis://, rediss:// or unix://; check the name",
                  import_source_shown(*source->paths));
        return -1;
    }

    if (input_open(&source->input, *source->paths) != 0) {
        return -1;
    }

    source->name = source->input.name;
    source->open = 1;
    source->paths++;
    source->n--;

    return 1;
}


int
import_source_open(import_source_t *source, char **paths, int n, int dump,
    const redis_settings_t *settings)
{
    int  i;

    memset(source, 0, sizeof(*source));

    source->size = BLOOM_FOREIGN_UNKNOWN;

    for (i = 0; n != 1 && i < n; i++) {
        if (redis_url_is(paths[i])) {
            return cli_misuse("%s: a Redis key must be the only source, unless "
                              "--shard is used",
                              import_source_shown(paths[i])), -1;
        }
    }

    if (redis_url_is(paths[0])) {

        source->redis = redis_open(paths[0], dump, settings);

        if (source->redis == NULL) {
            return -1;
        }

        source->name = redis_name(source->redis);

        if (!dump) {
            source->size = redis_size(source->redis);
        }

        return 0;
    }

    source->paths = paths;
    source->n = n;

    if (next_file(source) != 1) {
        return -1;
    }

    if (n == 1 && input_format(&source->input) == NULL
        && source->input.size != 0)
    {
        source->size = source->input.size;
    }

    return 0;
}


void
import_source_close(import_source_t *source)
{
    if (source->open) {
        input_close(&source->input);
    }

    redis_close(source->redis);
    free(source->memory);

    memset(source, 0, sizeof(*source));
}


static int64_t
read_some(import_source_t *source, uint8_t *buf, uint64_t size)
{
    int      rc;
    size_t   n;
    ssize_t  got;

    n = source->memory_len - source->memory_pos;

    if (n != 0) {
        n = n < size ? n : size;
        memcpy(buf, source->memory + source->memory_pos, n);
        source->memory_pos += n;
        return (int64_t) n;
    }

    if (source->redis != NULL) {
        return redis_read(source->redis, buf, size);
    }

    while (source->open) {
        got = input_read(&source->input, buf,
                         size < 0x40000000 ? size : 0x40000000);

        if (got != 0) {
            return got;
        }

        rc = next_file(source);

        if (rc == -1) {
            return -1;
        }
    }

    return 0;
}


int64_t
import_source_read(import_source_t *source, void *buf, uint64_t size)
{
    int64_t   n;
    uint64_t  done;

    for (done = 0; done < size; done += (uint64_t) n) {
        n = read_some(source, (uint8_t *) buf + done, size - done);

        if (n == -1) {
            return -1;
        }

        if (n == 0) {
            break;
        }
    }

    return (int64_t) done;
}


int64_t
import_source_peek(import_source_t *source, size_t n, const uint8_t **data)
{
    size_t    there;
    int64_t   got;
    uint8_t  *head;

    there = source->memory_len - source->memory_pos;

    if (there != 0) {
        *data = source->memory + source->memory_pos;
        return (int64_t) (there < n ? there : n);
    }

    head = cli_alloc(n);
    got = import_source_read(source, head, n);

    if (got == -1) {
        free(head);
        return -1;
    }

    import_source_replace(source, head, (size_t) got);
    *data = head;

    return got;
}


int64_t
import_source_all(import_source_t *source, uint8_t **data)
{
    int64_t  n;
    size_t   len, size;

    *data = NULL;
    size = 0;
    len = 0;

    do {
        if (len == size) {
            size = size ? 2 * size : PIECE;
            *data = cli_realloc(*data, size);
        }

        n = import_source_read(source, *data + len, size - len);

        if (n == -1) {
            free(*data);
            return -1;
        }

        len += (size_t) n;

    } while (len == size);

    return (int64_t) len;
}


void
import_source_replace(import_source_t *source, uint8_t *data, size_t len)
{
    free(source->memory);

    source->memory = data;
    source->memory_pos = 0;
    source->memory_len = len;
}
