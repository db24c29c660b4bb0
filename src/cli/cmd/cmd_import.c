/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom import` makes an image from a filter that another system made.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bloom_foreign_formats.h"
#include "bloom_foreign_json.h"
#include "bloom_foreign_unread.h"
#include "bloom_scheme.h"
#include "cli.h"
#include "command.h"
#include "given_keys.h"
#include "guards.h"
#include "image_write.h"
#include "import_check.h"
#include "import_findings.h"
#include "key_options.h"
#include "import_source.h"
#include "units.h"
#include "bloom_image_decode.h"

#define GROWS_BY   (64 * 1024 * 1024)
#define GO_ZERO_K  14

#define TIMEOUT      60                  /* seconds */
#define TIMEOUT_MAX  86400


typedef struct {
    const char                    *output;
    const bloom_foreign_format_t  *format;
    uint64_t                       shard;    /* bits; 0: not sharded */
    uint64_t                       capacity;
    double                         fpr;
    uint64_t                       as_of;
    uint32_t                       key_form;
    given_keys_t                   check;    /* keys that the source has */
    redis_settings_t               redis;
    guards_t                       guards;
    int                            quiet;
    int                            json;
    bloom_foreign_t                f;
} import_t;


/* A buffer for the bits; it grows if the source's size is unknown. */
typedef struct {
    uint8_t   *data;
    uint64_t   size;
    uint64_t   total;
} bits_t;


/* Takes the name of a format, or of a scheme that stands for a bitmap. */
static int
take_format(const option_t *option, const char *text, void *to)
{
    import_t  *import = to;

    import->format = bloom_foreign_formats_find(text);

    if (import->format != NULL) {
        return CLI_OK;
    }

    if (strcmp(text, "go-zero") != 0 && strcmp(text, "redisson") != 0) {
        return options_wrong(option, text, "must be guava, redisbloom, "
                             "bitmap, go-zero, redisson, dcso, "
                             "bits-and-blooms, spark or libbloom");
    }

    import->format = &bloom_foreign_bitmap;
    (void) bloom_scheme_parse(text, strlen(text), &import->f.layout,
                              &import->f.hash);

    if (strcmp(text, "go-zero") == 0) {
        import->f.k = GO_ZERO_K;
    }

    return CLI_OK;
}


static int
take_funnel(const option_t *option, const char *text, void *to)
{
    int  funnel;

    funnel = bloom_hasher_funnel_parse(text, strlen(text));

    if (funnel == -1) {
        return options_wrong(option, text, "must be bytes, utf16, long or int");
    }

    *(uint32_t *) to = (uint32_t) funnel;

    return CLI_OK;
}


static int
take_scheme(const option_t *option, const char *text, void *to)
{
    bloom_foreign_t  *f = to;

    if (bloom_scheme_parse(text, strlen(text), &f->layout, &f->hash) != 0) {
        return options_wrong(option, text, "must be guava64, guava32, "
                             "go-zero, redisson, redisbloom, double, dcso, "
                             "bits-and-blooms, spark1, spark2 or libbloom");
    }

    return CLI_OK;
}


static int
take_shard(const option_t *option, const char *text, void *to)
{
    uint64_t  *bits = to;

    if (parse_count(text, bits) != 0 || *bits == 0 || *bits % 8 != 0) {
        return options_wrong(option, text, "must be a number of bits, and a "
                             "multiple of 8");
    }

    return CLI_OK;
}


static int
take_any_rate(const option_t *option, const char *text, void *to)
{
    if (parse_rate(text, to) != 0) {
        return options_wrong(option, text, "must be a rate between 0 and 1, "
                             "such as 0.001 or 0.1%%");
    }

    return CLI_OK;
}


static const option_t  options[] = {
    OPTIONS_IMAGE(import_t),
    { 0, "from", "FORMAT", 0, take_format,
      "the format of the source\n"
      "guava: a file of BloomFilter.writeTo(), of either strategy\n"
      "redisbloom: a key of BF.* commands in RedisBloom or Redis 8, or files "
      "with the chunks of BF.SCANDUMP, in order; up to 56 links\n"
      "bitmap: a Redis string; needs --scheme, --bits and --hashes\n"
      "go-zero: a Redis string of the Go library go-zero; needs --bits\n"
      "redisson: a Redis string of Redisson's RBloomFilter with StringCodec; "
      "its configuration is read from the same server\n"
      "dcso: a file of DCSO's bloom, version 1\n"
      "bits-and-blooms: a file of WriteTo() of the Go library "
      "bits-and-blooms/bloom, or its JSON\n"
      "spark: a file of Spark's BloomFilter.writeTo(), version 1 or 2\n"
      "libbloom: a file of bloom_save() of libbloom 2",
      .needed = "the format of the source" },
    { 0, "funnel", "NAME", offsetof(import_t, f.funnel), take_funnel,
      "how the source hashes a key: as bytes (also UTF-8 text), utf16, long "
      "or int; guava may use any of them and does not record which, spark may "
      "use bytes or long (default: bytes)" },
    { 0, "bits", "N", offsetof(import_t, f.bits), options_take_count,
      "for a bitmap: the number of bits in the filter; it cannot be known from "
      "a Redis string, which ends with the last bit that is set",
      .is = "a number of bits", 1, BLOOM_BITS_MAX },
    { 0, "hashes", "N", offsetof(import_t, f.k), options_take_number,
      "for a bitmap: the number of bits that a key sets",
      .is = "a number", 1, BLOOM_K_MAX },
    { 0, "scheme", "NAME", offsetof(import_t, f), take_scheme,
      "for a bitmap: where the bits of a key are; guava64, guava32, go-zero, "
      "redisson, redisbloom, dcso, bits-and-blooms, spark1, spark2, libbloom "
      "or double\n"
      "double: at (h1 + i h2) mod bits, with the halves h1 and h2 of "
      "MurmurHash3 x64 128" },
    { 0, "shard", "N", offsetof(import_t, shard), take_shard,
      "for a bitmap that is split: each source has N bits, in order, and the "
      "last one has the rest" },
    { 'n', "capacity", "N", offsetof(import_t, capacity), options_take_count,
      "the number of keys that the filter was made for, if the source does "
      "not record it (default: the best number for its bits and hashes)",
      .is = "a number of keys", 1, BLOOM_CAPACITY_MAX },
    { 'p', "fpr", "RATE", offsetof(import_t, fpr), take_any_rate,
      "the false-positive rate that the filter was made for, if the source "
      "does not record it" },
    OPTIONS_KEY_FORM(import_t,
      "the key form in whose canonical form the source's keys were written: "
      "lower, host or url, as \"ngx-bloom expand\" prints them; requests are "
      "then looked up by all expressions of their key (default: raw)"),
    { 0, "check", "FILE", offsetof(import_t, check.file), options_take_text,
      "a file of keys that the source has, one on a line: print how many of "
      "them the image finds, and write no image unless it finds all" },
    OPTIONS_AS_OF(import_t,
      "state that the filter has every key that existed at that time, "
      OPTIONS_TIME ", which is right for a filter on a server that gets every "
      "new key at once (default: not stated)"),
    { 0, "timeout", "SECONDS", offsetof(import_t, redis.timeout),
      options_take_number,
      "how long a Redis server may take for each of these: to accept the "
      "connection, for the TLS handshake, and for one answer of up to 64 MiB "
      "(default: 60)",
      .is = "a number of seconds", 1, TIMEOUT_MAX },
    OPTIONS_GROUP(tls_options, offsetof(import_t, redis.tls)),
    OPTIONS_GROUP(guards_options, offsetof(import_t, guards)),
    OPTIONS_QUIET(import_t),
    OPTIONS_JSON(import_t),
    { 0 }
};


/* Checks that options and sources go together. */
static int
check_options(const import_t *import, int sources)
{
    const bloom_foreign_t  *f;

    f = &import->f;

    if (sources == 0) {
        return cli_misuse("no source is named");
    }

    if (import->format != &bloom_foreign_bitmap
        && (f->bits != 0 || f->k != 0 || f->layout != 0 || import->shard != 0))
    {
        return cli_misuse("--bits, --hashes, --scheme and --shard are only for "
                          "bitmaps; leave them out, as a %s source has these "
                          "values in its header", import->format->name);
    }

    if (import->key_form != BLOOM_FORM_RAW
        && (f->funnel == BLOOM_FUNNEL_LONG || f->funnel == BLOOM_FUNNEL_INT))
    {
        return cli_misuse("--form %s: with --funnel %s, the source's keys are "
                          "numbers, which have no other form; leave out --form",
                          bloom_form_name(import->key_form),
                          bloom_hasher_funnel_name(f->funnel));
    }

    if (sources > 1 && import->shard == 0
        && import->format != &bloom_foreign_redisbloom)
    {
        return cli_misuse("name one source; only redisbloom reads several "
                          "files (chunks), and --shard several pieces of a "
                          "bitmap");
    }

    return CLI_OK;
}


/* Makes room for `size` bytes; new bytes are zero. */
static void
need(bits_t *bits, uint64_t size)
{
    void      *data;
    uint64_t   grown;

    if (size <= bits->size) {
        return;
    }

    grown = bits->size * 2 > GROWS_BY ? bits->size * 2 : GROWS_BY;
    grown = grown > size ? grown : size;
    grown = grown < bits->total ? grown : bits->total;

    if (bits->data == NULL) {
        data = mmap(NULL, grown, PROT_READ|PROT_WRITE,
                    MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    } else {
        data = mremap(bits->data, bits->size, grown, MREMAP_MAYMOVE);
    }

    if (data == MAP_FAILED) {
        cli_no_memory(grown);
    }

    (void) madvise(data, grown, MADV_HUGEPAGE);

    bits->data = data;
    bits->size = grown;
}


/* Reads `size` bytes of the source to the offset `at`; fewer only if the format
 * allows that. */
static int
read_bits(import_source_t *source, bits_t *bits, const bloom_foreign_t *f,
    uint64_t at, uint64_t size)
{
    int64_t   n;
    uint64_t  part, done;

    for (done = 0; done < size; done += (uint64_t) n) {

        part = size - done < GROWS_BY ? size - done : GROWS_BY;
        need(bits, at + done + part);

        n = import_source_read(source, bits->data + at + done, part);

        if (n == -1) {
            return CLI_ERROR;
        }

        /* pieces are whole words, except the last, so each can be reordered */

        bloom_foreign_order(f->order, bits->data + at + done, (size_t) n);

        if ((uint64_t) n < part) {

            if (f->may_be_short) {
                return CLI_OK;
            }

            cli_error("%s: is truncated: it has %" PRIu64 " of the filter's %"
                      PRIu64 " byte%s; copy it again", source->name,
                      done + (uint64_t) n, size, CLI_S(size));
            return CLI_ERROR;
        }
    }

    return CLI_OK;
}


/* Reads what follows the bits: nothing or, if the format allows it, other data,
 * which the image keeps if it is short. */
static int
read_tail(import_source_t *source, import_t *import, uint8_t *origin)
{
    int64_t         n;
    uint8_t         more;
    uint32_t        room;
    bloom_image_t  *image;

    image = &import->f.image;

    if (!import->f.may_be_long) {

        n = import_source_read(source, &more, 1);

        if (n == 1) {
            cli_error("%s: is longer than its header says: %s", source->name,
                      source->redis ? "it changed while it was read; try again"
                                    : "cut off the bytes after the filter");
        }

        return n == 0 ? CLI_OK : CLI_ERROR;
    }

    room = bloom_image_origin_room(image);
    n = import_source_read(source, origin + image->origin_len,
                           room - image->origin_len);

    if (n == -1) {
        return CLI_ERROR;
    }

    if (image->origin_len + (uint32_t) n == room
        && import_source_read(source, &more, 1) == 1)
    {
        cli_warn("%s: more than %" PRId64 " bytes of other data follow the "
                 "filter; they are left out, and an export will not have them",
                 source->name, n);
        return CLI_OK;
    }

    image->origin_len += (uint32_t) n;

    return CLI_OK;
}


/* Says what the source is, or why it is refused and which format it may
 * have. */
static int
refuse(const import_t *import, const import_source_t *source,
    const uint8_t *head, size_t len)
{
    const bloom_foreign_unread_t  *unread;
    const bloom_foreign_format_t  *other;

    unread = bloom_foreign_unread(head, len, source->size);

    if (unread != NULL) {
        cli_error("%s: is %s; %s", source->name, unread->title,
                  unread->instead);
        return CLI_ERROR;
    }

    if (bloom_image_is(head, len)) {
        cli_error("%s: is already an image of ngx-bloom; use it as it is",
                  source->name);
        return CLI_ERROR;
    }

    other = bloom_foreign_formats_guess(head, len, source->size);

    if (other != NULL && other != import->format) {
        cli_error("%s: %s; it looks like %s: try --from %s", source->name,
                  import->f.error, other->title, other->name);

    } else {
        cli_error("%s: %s", source->name, import->f.error);
    }

    return CLI_ERROR;
}


/* Reads a source in JSON and replaces it with its binary form. */
static int
read_json(import_source_t *source)
{
    char      error[BLOOM_FOREIGN_ERROR_LEN];
    int64_t   len;
    uint8_t  *data;

    len = import_source_all(source, &data);

    if (len == -1) {
        return CLI_ERROR;
    }

    len = bloom_foreign_json(data, data, (size_t) len, error);

    if (len == -1) {
        cli_error("%s: %s", source->name, error);
        free(data);
        return CLI_ERROR;
    }

    import_source_replace(source, data, (size_t) len);
    source->size = (uint64_t) len;

    return CLI_OK;
}


static int
read_source(import_t *import, import_source_t *source, bits_t *bits,
    uint8_t *origin)
{
    int               rc;
    int64_t           len;
    uint32_t          i;
    uint64_t          offset;
    uint8_t           skipped[BLOOM_FOREIGN_HEAD];
    const uint8_t    *head;
    bloom_foreign_t  *f;

    const bloom_foreign_unread_t  *unread;

    f = &import->f;
    len = import_source_peek(source, BLOOM_FOREIGN_HEAD, &head);

    if (len == -1) {
        return CLI_ERROR;
    }

    unread = bloom_foreign_unread(head, (size_t) len, source->size);

    /* any bytes are a bitmap, so its parser does not refuse these */

    if (unread != NULL && unread->never_bits
        && import->format == &bloom_foreign_bitmap)
    {
        return refuse(import, source, head, (size_t) len);
    }

    /* the binary form begins with a zero byte, as it has less than 2^56 bits */

    if (import->format == &bloom_foreign_bits_and_blooms && unread == NULL
        && len > 0 && head[0] != 0 && strchr("{ \t\r\n", head[0]) != NULL)
    {
        rc = read_json(source);

        if (rc != CLI_OK) {
            return rc;
        }

        len = import_source_peek(source, BLOOM_FOREIGN_HEAD, &head);
    }

    if (import->format->parse(f, head, (size_t) len, source->size) != 0) {
        return refuse(import, source, head, (size_t) len);
    }

    memcpy(origin, head, f->image.origin_len);

    bits->total = bloom_image_payload_size(&f->image);

    if (source->size != BLOOM_FOREIGN_UNKNOWN) {
        need(bits, bits->total);
    }

    if (import_source_read(source, skipped, f->payload)
        != (int64_t) f->payload)
    {
        return CLI_ERROR;
    }

    for (i = 0; i < bloom_foreign_links(&f->image.geometry); i++) {

        (void) bloom_foreign_link(&f->image.geometry, i, &offset);

        rc = read_bits(source, bits, f, offset, f->link_bytes[i]);

        if (rc != CLI_OK) {
            return rc;
        }
    }

    need(bits, bits->total);

    return read_tail(source, import, origin);
}


/* Reads bits and k of a Redisson filter, which are in another Redis key. */
static int
ask_redisson(import_t *import, import_source_t *source)
{
    uint64_t          k;
    bloom_foreign_t  *f;

    f = &import->f;

    if (source->redis == NULL || f->layout != BLOOM_LAYOUT_ZIGZAG
        || f->bits != 0 || f->k != 0)
    {
        return CLI_OK;
    }

    if (redis_redisson(source->redis, &f->bits, &k, &import->capacity,
                       &import->fpr) != 0)
    {
        return CLI_ERROR;
    }

    f->k = k <= BLOOM_K_MAX ? (uint32_t) k : 0;

    return CLI_OK;
}


/* Reads a bitmap in pieces of --shard bits. */
static int
read_shards(import_t *import, char **paths, int n, bits_t *bits)
{
    int               i, rc;
    import_source_t   source;
    uint64_t          bytes, at, size;
    bloom_foreign_t  *f;

    f = &import->f;

    if (f->bits == 0) {
        return cli_misuse("--bits N is missing; --shard needs the number of "
                          "bits in the whole filter");
    }

    if ((f->bits + import->shard - 1) / import->shard != (uint64_t) n) {
        return cli_misuse("%d source%s of %" PRIu64 " bits cannot make %" PRIu64
                          " bit%s; correct --bits or --shard, or name all "
                          "sources", n, CLI_S(n), import->shard, f->bits,
                          CLI_S(f->bits));
    }

    if (import->format->parse(f, NULL, 0, BLOOM_FOREIGN_UNKNOWN) != 0) {
        cli_error("%s: %s", import_source_shown(paths[0]), f->error);
        return CLI_ERROR;
    }

    bits->total = bloom_image_payload_size(&f->image);
    bytes = import->shard / 8;
    rc = CLI_OK;

    for (i = 0; i < n && rc == CLI_OK; i++) {

        if (import_source_open(&source, paths + i, 1, 0, &import->redis) != 0)
        {
            return CLI_ERROR;
        }

        at = (uint64_t) i * bytes;
        size = f->bytes - at < bytes ? f->bytes - at : bytes;

        if (source.size != BLOOM_FOREIGN_UNKNOWN && source.size > size) {
            cli_error("%s: has %" PRIu64 " bytes, but the shard has %" PRIu64
                      "; correct --shard, or cut off the line end that "
                      "redis-cli appends", source.name, source.size, size);
            rc = CLI_ERROR;

        } else {
            rc = read_bits(&source, bits, f, at, size);
        }

        import_source_close(&source);
    }

    need(bits, bits->total);

    return rc;
}


static int
read_all(import_t *import, char **paths, int n, bits_t *bits,
    uint8_t *origin)
{
    int              rc;
    import_source_t  source;

    if (import->shard != 0) {
        rc = read_shards(import, paths, n, bits);

    } else {
        if (import_source_open(&source, paths, n,
                               import->format == &bloom_foreign_redisbloom,
                               &import->redis)
            != 0)
        {
            return CLI_ERROR;
        }

        rc = ask_redisson(import, &source);

        if (rc == CLI_OK) {
            rc = read_source(import, &source, bits, origin);
        }

        import_source_close(&source);
    }

    if (rc == CLI_OK
        && !bloom_foreign_padded(&import->f.image.geometry,
                                 (uint64_t *) bits->data))
    {
        cli_error("%s: bits after the filter's last one are set; %s",
                  import_source_shown(paths[0]),
                  import->format == &bloom_foreign_bitmap
                  ? "correct --bits" : "copy it again");
        rc = CLI_ERROR;
    }

    return rc;
}


static int
run(char **operands, int n, void *values)
{
    int                 rc;
    bits_t              bits;
    uint8_t             origin[BLOOM_FOREIGN_HEAD];
    import_t           *import = values;
    output_t            out;
    import_check_t      check;
    bloom_image_t      *image;
    import_findings_t   findings;

    image = &import->f.image;

    if (check_options(import, n) != CLI_OK
        || tls_check(&import->redis.tls) != CLI_OK
        || output_open(&out, import->output) != 0)
    {
        return CLI_ERROR;
    }

    memset(&bits, 0, sizeof(bits));

    rc = key_options_spare(&out, operands, n, "the filter that is imported");

    if (rc == CLI_OK) {
        rc = read_all(import, operands, n, &bits, origin);
    }

    if (rc == CLI_OK) {
        if (import->capacity != 0) {
            image->capacity = import->capacity;
        }

        if (import->fpr > 0 && import->fpr < 1) {
            image->fpr = import->fpr;
            import->f.promised = 1;
        }

        image->as_of = import->as_of;
        image->key_form = import->key_form;

        import_findings_measure(&findings, &import->f, (uint64_t *) bits.data);

        rc = guards_check(&import->guards, out.name, image, import->quiet);
    }

    if (rc == CLI_OK) {
        rc = import_check(&check, &import->check, image,
                          (uint64_t *) bits.data);
    }

    if (rc == CLI_OK) {
        rc = image_write(&out, image, (uint64_t *) bits.data, origin,
                         NULL);
    }

    if (rc == CLI_OK && !import->quiet) {
        import_findings_warn(&findings, &import->f, import->output);
    }

    if (rc == CLI_OK && import->json) {
        import_findings_json(&findings, &check, &import->f, import->output);

    } else if (rc == CLI_OK && !import->quiet) {
        import_findings_print(&findings, &check, &import->f, import->output);
    }

    output_discard(&out);

    return rc;
}


static import_t  values = { .redis.timeout = TIMEOUT };

static const command_member_t  members[] = {
    { NULL, "all members that info has for an image, and:" },
    { "items_claimed",
      "the number of keys that the source says it has; null if it does not "
      "say" },
    { "promised",
      "true if \"fpr\" is known from the source or -p, false if it follows "
      "from the bits" },
    { "fill_ratio", "the part of the bits that is set, from 0 to 1" },
    { "measured_fpr", "the part of a million random keys that is present" },
    { "checked",
      "the number of keys in the file of --check, all of which are found; null "
      "without --check" },
    { 0 }
};

const command_t  cmd_import = {
    .name = "import",
    .does = "make an image from another system's filter",
    .synopsis = "--from FORMAT -o FILE [OPTION...] SOURCE...",
    .about =
        "Makes an image from a filter that another system made. The image "
        "keeps that system's hash and layout, so it gives exactly the same "
        "answers, and keys can be added to it. A source is the name of a "
        "file, plain or compressed by gzip, bzip2, xz or zstd; \"-\", which "
        "means standard input; or the address of a key on a Redis server (rediss:// for TLS, unix:// for "
        "a Unix socket):\n\n"
        "  redis://[[USER:]PASSWORD@]HOST[:PORT]/DATABASE/KEY\n"
        "  unix://[[USER:]PASSWORD@]/PATH?db=DATABASE&key=KEY\n\n"
        "In a password or a key, write an @ as %40; in a password, write a / "
        "as %2F. Everybody on the machine can see a password in the list of "
        "processes: put it into the environment variable REDISCLI_AUTH "
        "instead.\n\n"
        "The command prints the image's fill ratio, the number of keys "
        "estimated from it, and the false-positive rate measured with a "
        "million random keys. It warns if that rate is more than twice the "
        "rate that the bits imply or the source promised, and if the filter "
        "is over-full.\n\n"
        "An import with a wrong --scheme, --bits, --hashes or --funnel "
        "succeeds all the same, and its image finds nothing. So does one "
        "whose source spells keys otherwise than requests do. Always give "
        "--check with keys that the source has, spelled as in requests.\n\n"
        "None of these hashes has a secret: people who choose "
        "keys can find keys that pass.",
    .options = options,
    .values = &values,
    .members = members,
    .status = "0 success, 1 --check, --min-keys, --max-loss or --max-growth "
              "refused the image, 2 an error",
    .examples =
        "ngx-bloom import --from guava -o ids.bloom ids.guava\n"
        "ngx-bloom import --from guava --funnel long -o ids.bloom ids.guava\n"
        "ngx-bloom import --from redisbloom -o ids.bloom "
        "redis://localhost/0/ids\n"
        "ngx-bloom import --from go-zero --bits 20m -o u.bloom "
        "--check u.txt \\\n    redis://localhost/0/u\n",
    .run = run
};
