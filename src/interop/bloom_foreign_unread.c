/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each function is_KIND() describes the first bytes of a kind of file.
 */

#include "bloom_foreign_unread.h"
#include "bloom_bytes.h"

/* "MBbloom--" as Redis encodes the name of a module's type: 9 characters of 6
 * bits.  The other 10 bits are the version of the type. */
#define MBBLOOM  (0x3016e5a289bef800 >> 10)


static int
begins(const uint8_t *head, size_t len, const char *with, size_t n)
{
    return len >= n && memcmp(head, with, n) == 0;
}


/* Java's ObjectOutputStream: a magic number, version 5, an object. */
static int
is_java(const uint8_t *head, size_t len, uint64_t size)
{
    (void) size;

    return begins(head, len, "\xac\xed\0\5", 4);
}


static int
is_rdb(const uint8_t *head, size_t len, uint64_t size)
{
    (void) size;

    return begins(head, len, "REDIS0", 6);
}


/* What DUMP writes of a filter of RedisBloom: type 7 (module) or 6 (in old
 * versions), and the module's type as a number of 64 bits. */
static int
is_dumped_module(const uint8_t *head, size_t len, uint64_t size)
{
    (void) size;

    return len >= 10 && (head[0] == 6 || head[0] == 7) && head[1] == 0x81
           && bloom_get64be(head + 2) >> 10 == MBBLOOM;
}


/* Reads a length of an RDB file at *at, of 6, 14 or 32 bits, and moves *at
 * behind it.  The file has 5 bytes there.  Returns 0 or -1. */
static int
read_length(const uint8_t *head, size_t *at, uint64_t *length)
{
    const uint8_t  *p;

    p = head + *at;

    if (p[0] < 0x40) {
        *length = p[0];
        *at += 1;

    } else if (p[0] < 0x80) {
        *length = (uint64_t) (p[0] & 0x3f) << 8 | p[1];
        *at += 2;

    } else if (p[0] == 0x80) {
        *length = bloom_get32be(p + 1);
        *at += 5;

    } else {
        return -1;
    }

    return 0;
}


/* What DUMP writes of a string: type 0; the length and the string, or 0xc3, the
 * lengths when compressed and before, and the compressed string; the version of
 * RDB in 2 bytes, and a checksum of 8 bytes. */
static int
is_dumped_string(const uint8_t *head, size_t len, uint64_t size)
{
    size_t    at;
    uint64_t  string, before;

    if (len < 12 || head[0] != 0) {
        return 0;
    }

    at = head[1] == 0xc3 ? 2 : 1;

    if (read_length(head, &at, &string) != 0
        || (head[1] == 0xc3
            && (len < at + 5 || read_length(head, &at, &before) != 0)))
    {
        return 0;
    }

    if (size != at + string + 10) {
        return 0;
    }

    return size > len || (head[size - 10] != 0 && head[size - 9] == 0);
}


/*
 * The first message of Go's encoding/gob: its length, the number of a type that
 * the program defines (-64 and below), and the type, whose first field is one
 * of seven, each with a name and a number.
 */
static int
is_gob(const uint8_t *head, size_t len, uint64_t size)
{
    size_t  at;

    (void) size;

    /* a number below 128, or the size of a number of one or two bytes */

    at = len == 0 || head[0] < 0x80 ? 1 : head[0] == 0xff ? 2 : 3;

    if (len < at + 4 || head[0] == 0 || (head[0] >= 0x80 && head[0] < 0xfe)) {
        return 0;
    }

    if (head[at] == 0xff && head[at + 1] >= 0x80 && (head[at + 1] & 1)) {
        at += 2;

    } else if (head[at] == 0x7f) {
        at++;

    } else {
        return 0;
    }

    return head[at] >= 1 && head[at] <= 7 && head[at + 1] == 1;
}


/* Python's pickle: the protocol's version; from version 4 on, a frame. */
static int
is_pickle(const uint8_t *head, size_t len, uint64_t size)
{
    (void) size;

    return len >= 3 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5
           && (head[1] < 4 || head[2] == 0x95);
}


/*
 * BF.SCANDUMP of RedisBloom 1 and 2.0, whose header has no growth, and a number
 * of entries of 32 bits:
 *
 *     0   size, 8 bytes      8   number of links, 4      12  options, 4
 *     16  links of 49 bytes each:
 *             0   bytes, 8       8   bits, 8        40  k, 4     48  n2, 1
 */
static int
is_old_redisbloom(const uint8_t *head, size_t len, uint64_t size)
{
    uint32_t        i, links;
    uint64_t        bytes, all;
    const uint8_t  *p;

    const size_t  before = 16, link = 49;

    if (len < before + link) {
        return 0;
    }

    links = bloom_get32(head + 8);

    if (links == 0 || links > (len - before) / link
        || bloom_get32(head + 12) > 15)
    {
        return 0;
    }

    all = before + links * link;

    for (i = 0; i < links; i++) {
        p = head + before + i * link;
        bytes = bloom_get64(p);

        if (bytes == 0 || bytes > BLOOM_BITS_MAX / 8
            || bloom_get64(p + 8) > 8 * bytes
            || bloom_get32(p + 40) - 1 >= BLOOM_K_MAX || p[48] > 63)
        {
            return 0;
        }

        all += bytes;
    }

    /* a file has the header, with or without the bits */

    return size == BLOOM_FOREIGN_UNKNOWN || size == all
           || size == before + links * link;
}


/* BF.SCANDUMP of Dragonfly: version 1, and the growth factor, a double. */
static int
is_dragonfly(const uint8_t *head, size_t len, uint64_t size)
{
    double  growth;

    (void) size;

    if (len < 12 || bloom_get32(head) != 1) {
        return 0;
    }

    memcpy(&growth, head + 4, 8);

    return growth >= 1 && growth <= 1024;
}


/* The answer to BF.SCANDUMP as redis-cli writes it to a file: the iterator on a
 * line of its own, then the chunk. */
static int
is_redis_cli(const uint8_t *head, size_t len, uint64_t size)
{
    size_t           at;
    bloom_foreign_t  f;

    (void) size;

    for (at = 0; at < len && head[at] >= '0' && head[at] <= '9'; at++) {
        /* void */
    }

    if (at == 0 || at == len || head[at] != '\n') {
        return 0;
    }

    at++;
    memset(&f, 0, sizeof(f));

    return bloom_foreign_redisbloom.parse(&f, head + at, len - at,
                                          BLOOM_FOREIGN_UNKNOWN) == 0;
}


#define NAME_THE_KEY  "name the key on the server instead, as in " \
                      "redis://HOST/DATABASE/KEY"

static const bloom_foreign_unread_t  kinds[] = {
    { "a serialised Java object",
      "save the filter with its writeTo() instead", 1, is_java },
    { "an RDB file of Redis",
      "load it into a Redis, and " NAME_THE_KEY, 1, is_rdb },
    { "the result of DUMP for a filter of RedisBloom", NAME_THE_KEY, 1,
      is_dumped_module },
    { "the result of DUMP for a string of Redis", NAME_THE_KEY, 1,
      is_dumped_string },
    { "a Go gob",
      "save the filter with its WriteTo() instead, or as JSON", 0, is_gob },
    { "a Python pickle",
      "save each chunk of the filter to a file of its own instead", 0,
      is_pickle },
    { "a dump of RedisBloom 1 or 2.0",
      "load the server's RDB file into a Redis with a newer RedisBloom, and "
      NAME_THE_KEY, 0, is_old_redisbloom },
    { "a dump of Dragonfly, which has filters of another kind",
      "build an image from the keys instead", 0, is_dragonfly },
    { "what redis-cli prints of a chunk",
      "cut off the line with the iterator, and the line end that follows the "
      "chunk", 0, is_redis_cli }
};


const bloom_foreign_unread_t *
bloom_foreign_unread(const uint8_t *head, size_t len, uint64_t size)
{
    size_t  i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].is(head, len, size)) {
            return &kinds[i];
        }
    }

    return NULL;
}
