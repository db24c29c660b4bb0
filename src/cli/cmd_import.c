
/*
 * ngx-bloom import makes an image of a filter that another system made.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bloom_foreign.h"
#include "bloom_foreign_formats.h"
#include "bloom_foreign_json.h"
#include "bloom_hash_foreign.h"
#include "bloom_layout_foreign.h"
#include "bloom_scheme.h"
#include "cli.h"
#include "image_write.h"
#include "import_findings.h"
#include "key_options.h"
#include "source.h"
#include "units.h"

#define GROWS_BY   (64 * 1024 * 1024)
#define GO_ZERO_K  14


typedef struct {
    const char                    *output;
    const bloom_foreign_format_t  *format;
    uint64_t                       shard;    /* bits; 0: not sharded */
    uint64_t                       capacity;
    double                         fpr;
    uint64_t                       as_of;
    int                            quiet;
    int                            json;
    bloom_foreign_t                f;
} options_t;


/* The bits as they come; grows where the source's size is not known. */
typedef struct {
    uint8_t   *data;
    uint64_t   size;
    uint64_t   total;
} bits_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom import --from FORMAT -o FILE [OPTION...] SOURCE...\n"
"\n"
"Makes an image of a filter that another system made.  It answers exactly as\n"
"that system does, and keys can be added to it.  A source is a file, plain or\n"
"gzip, \"-\" for standard input, or a key of a Redis server:\n"
"\n"
"  redis://[[USER:]PASSWORD@]HOST[:PORT]/DATABASE/KEY       (rediss:// with TLS)\n"
"\n"
"  -o, --output FILE   the image; written whole or not at all\n"
"      --from FORMAT   guava: BloomFilter.writeTo()\n"
"                      redisbloom: a key of BF.*, or the chunks of BF.SCANDUMP\n"
"                      in files, in their order\n"
"                      bitmap: a Redis string; go-zero, redisson: the same, of\n"
"                      these libraries (Redisson with StringCodec)\n"
"                      dcso: DCSO's bloom\n"
"                      bits-and-blooms: WriteTo() or JSON, for Go\n"
"                      spark: Spark's BloomFilter, versions 1 and 2\n"
"                      libbloom: bloom_save() of version 2\n"
"      --funnel F      what the source hashes of a key: bytes (also UTF-8 text),\n"
"                      utf16, long or int; guava has all, spark bytes and long\n"
"                      (bytes)\n"
"      --bits N        bitmap: bits of the filter; all digits or with k, m, g\n"
"      --hashes N      bitmap: bits of a key\n"
"      --scheme S      bitmap: guava64, guava32, go-zero, redisson, redisbloom,\n"
"                      double, dcso, bits-and-blooms, spark1, spark2 or libbloom\n"
"      --shard N       bitmap: it is split; each source has N bits of it, in\n"
"                      their order\n"
"  -n, --capacity N    keys that the filter was made for, where the source does\n"
"                      not say\n"
"  -p, --fpr RATE      the rate it was made for, likewise\n"
"      --as-of TIME    the keys are complete up to then: 2026-01-31T12:00:00Z\n"
"                      or seconds since 1970\n"
"  -q, --quiet         print nothing but errors\n"
"      --json          print the result as JSON\n"
"  -h, --help          show this\n"
"\n"
"The rate is measured with a million random keys.\n"
"\n"
"Examples:\n"
"  ngx-bloom import --from guava -o ids.bloom ids.guava\n"
"  ngx-bloom import --from guava --funnel long -o ids.bloom ids.guava\n"
"  ngx-bloom import --from redisbloom -o ids.bloom redis://localhost/0/ids\n"
"  ngx-bloom import --from go-zero --bits 20m -o u.bloom redis://localhost/0/u\n");
}


/* A format, or a name for a bitmap of one scheme. */
static int
parse_from(options_t *options, const char *name)
{
    options->format = bloom_foreign_formats_find(name);

    if (options->format != NULL) {
        return CLI_OK;
    }

    if (strcmp(name, "go-zero") == 0 || strcmp(name, "redisson") == 0) {
        options->format = &bloom_foreign_bitmap;
        (void) bloom_scheme_parse(name, strlen(name), &options->f.layout,
                                  &options->f.hash);

        if (strcmp(name, "go-zero") == 0) {
            options->f.k = GO_ZERO_K;
        }

        return CLI_OK;
    }

    return cli_misuse("--from \"%s\": there are guava, redisbloom, bitmap, "
                      "go-zero, redisson, dcso, bits-and-blooms, spark and "
                      "libbloom", name);
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(options_t *options, int argc, char **argv)
{
    int       c, funnel, bitmap;
    uint64_t  n;

    enum { FROM = 256, FUNNEL, BITS, HASHES, SCHEME, SHARD, AS_OF, JSON };

    static const struct option  names[] = {
        { "output",   required_argument, NULL, 'o' },
        { "from",     required_argument, NULL, FROM },
        { "funnel",   required_argument, NULL, FUNNEL },
        { "bits",     required_argument, NULL, BITS },
        { "hashes",   required_argument, NULL, HASHES },
        { "scheme",   required_argument, NULL, SCHEME },
        { "shard",    required_argument, NULL, SHARD },
        { "capacity", required_argument, NULL, 'n' },
        { "fpr",      required_argument, NULL, 'p' },
        { "as-of",    required_argument, NULL, AS_OF },
        { "quiet",    no_argument,       NULL, 'q' },
        { "json",     no_argument,       NULL, JSON },
        { "help",     no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    memset(options, 0, sizeof(*options));
    bitmap = 0;

    while ((c = cli_option(argc, argv, ":o:n:p:qh", names)) != -1) {

        switch (c) {

        case 'o':
            options->output = optarg;
            break;

        case FROM:
            if (parse_from(options, optarg) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case FUNNEL:
            funnel = bloom_hasher_funnel_parse(optarg, strlen(optarg));

            if (funnel == -1) {
                return cli_misuse("--funnel \"%s\": there are bytes, utf16, "
                                  "long and int", optarg);
            }

            options->f.funnel = (uint32_t) funnel;
            break;

        case BITS:
            bitmap = 1;

            if (parse_count(optarg, &options->f.bits) != 0
                || options->f.bits == 0 || options->f.bits > BLOOM_BITS_MAX)
            {
                return cli_misuse("--bits \"%s\": bits are a count from 1 to "
                                  "%" PRIu64, optarg, BLOOM_BITS_MAX);
            }

            break;

        case HASHES:
            bitmap = 1;

            if (parse_count(optarg, &n) != 0 || n == 0
                || n > BLOOM_K_MAX)
            {
                return cli_misuse("--hashes \"%s\": they are from 1 to %d",
                                  optarg, BLOOM_K_MAX);
            }

            options->f.k = (uint32_t) n;
            break;

        case SCHEME:
            bitmap = 1;

            if (bloom_scheme_parse(optarg, strlen(optarg), &options->f.layout,
                                   &options->f.hash) != 0)
            {
                return cli_misuse("--scheme \"%s\": there are guava64, "
                                  "guava32, go-zero, redisson, redisbloom, "
                                  "double, dcso, bits-and-blooms, spark1, "
                                  "spark2 and libbloom", optarg);
            }

            break;

        case SHARD:
            bitmap = 1;

            if (parse_count(optarg, &options->shard) != 0
                || options->shard == 0 || options->shard % 8 != 0)
            {
                return cli_misuse("--shard \"%s\": the bits of a shard are a "
                                  "multiple of 8", optarg);
            }

            break;

        case 'n':
            if (parse_count(optarg, &options->capacity) != 0
                || options->capacity == 0
                || options->capacity > BLOOM_CAPACITY_MAX)
            {
                return cli_misuse("-n \"%s\": a capacity is a count from 1 "
                                  "to %" PRIu64 ", with k, m or g", optarg,
                                  BLOOM_CAPACITY_MAX);
            }

            break;

        case 'p':
            if (parse_rate(optarg, &options->fpr) != 0) {
                return cli_misuse("-p \"%s\": a rate is between 0 and 1",
                                  optarg);
            }

            break;

        case AS_OF:
            if (intake_as_of(optarg, &options->as_of) != CLI_OK) {
                return CLI_ERROR;
            }

            break;

        case 'q':
            options->quiet = 1;
            break;

        case JSON:
            options->json = 1;
            break;

        case 'h':
            usage();
            return -1;

        default:
            return CLI_ERROR;
        }
    }

    if (options->output == NULL) {
        return cli_misuse("-o FILE is missing: where the image goes");
    }

    if (options->format == NULL) {
        return cli_misuse("--from FORMAT is missing: what made the filter");
    }

    if (optind == argc) {
        return cli_misuse("no source is named");
    }

    if (bitmap && options->format != &bloom_foreign_bitmap) {
        return cli_misuse("--bits, --hashes, --scheme and --shard are for "
                          "bitmaps: %s has them in its header",
                          options->format->name);
    }

    if (argc - optind > 1 && options->shard == 0
        && options->format != &bloom_foreign_redisbloom)
    {
        return cli_misuse("name one source; several are chunks of redisbloom, "
                          "or shards of a bitmap with --shard");
    }

    return CLI_OK;
}


/* Room for `size` bytes, zeros where nothing has been written yet. */
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


/* `size` bytes of the source to `at`; fewer only if it may be short. */
static int
read_bits(source_t *source, bits_t *bits, const bloom_foreign_t *f,
    uint64_t at, uint64_t size)
{
    int64_t   n;
    uint64_t  part, done;

    for (done = 0; done < size; done += (uint64_t) n) {

        part = size - done < GROWS_BY ? size - done : GROWS_BY;
        need(bits, at + done + part);

        n = source_read(source, bits->data + at + done, part);

        if (n == -1) {
            return CLI_ERROR;
        }

        /* whole words but at the end, so that pieces can be turned */

        bloom_foreign_order(f->order, bits->data + at + done, (size_t) n);

        if ((uint64_t) n < part) {

            if (f->may_be_short) {
                return CLI_OK;
            }

            cli_error("%s: is truncated: %" PRIu64 " of the filter's %" PRIu64
                      " bytes are there; copy it again", source->name,
                      done + (uint64_t) n, size);
            return CLI_ERROR;
        }
    }

    return CLI_OK;
}


/* What follows the bits: nothing, or data of someone that is kept if it is
 * little. */
static int
read_tail(source_t *source, options_t *options, uint8_t *origin)
{
    int64_t         n;
    uint8_t         more;
    uint32_t        room;
    bloom_image_t  *image;

    image = &options->f.image;

    if (!options->f.may_be_long) {

        n = source_read(source, &more, 1);

        if (n == 1) {
            cli_error("%s: is longer than it says%s", source->name,
                      source->redis ? ": it changed meanwhile; try again"
                                    : ": bytes follow the filter's last; cut "
                                      "them off");
        }

        return n == 0 ? CLI_OK : CLI_ERROR;
    }

    room = bloom_image_origin_room(image);
    n = source_read(source, origin + image->origin_len,
                    room - image->origin_len);

    if (n == -1) {
        return CLI_ERROR;
    }

    if (image->origin_len + (uint32_t) n == room
        && source_read(source, &more, 1) == 1)
    {
        cli_warn("%s: more than %" PRId64 " bytes of data follow the filter; "
                 "they are left out, and an export will not have them",
                 source->name, n);
        return CLI_OK;
    }

    image->origin_len += (uint32_t) n;

    return CLI_OK;
}


static int
refuse(const options_t *options, const source_t *source, const uint8_t *head,
    size_t len)
{
    const bloom_foreign_format_t  *other;

    if (bloom_image_is(head, len)) {
        cli_error("%s: is an image already; there is nothing to import",
                  source->name);
        return CLI_ERROR;
    }

    other = bloom_foreign_formats_guess(head, len, source->size);

    if (other != NULL && other != options->format) {
        cli_error("%s: %s; this looks like %s: try --from %s", source->name,
                  options->f.error, other->title, other->name);

    } else {
        cli_error("%s: %s", source->name, options->f.error);
    }

    return CLI_ERROR;
}


/* JSON becomes the binary form it stands for. */
static int
read_json(source_t *source)
{
    char      error[BLOOM_FOREIGN_ERROR_LEN];
    int64_t   len;
    uint8_t  *data;

    len = source_all(source, &data);

    if (len == -1) {
        return CLI_ERROR;
    }

    len = bloom_foreign_json(data, data, (size_t) len, error);

    if (len == -1) {
        cli_error("%s: %s", source->name, error);
        free(data);
        return CLI_ERROR;
    }

    source_replace(source, data, (size_t) len);
    source->size = (uint64_t) len;

    return CLI_OK;
}


static int
read_source(options_t *options, source_t *source, bits_t *bits,
    uint8_t *origin)
{
    int               rc;
    int64_t           len;
    uint32_t          i;
    uint64_t          offset;
    uint8_t           skipped[BLOOM_FOREIGN_HEAD];
    const uint8_t    *head;
    bloom_foreign_t  *f;

    f = &options->f;
    len = source_peek(source, BLOOM_FOREIGN_HEAD, &head);

    if (len == -1) {
        return CLI_ERROR;
    }

    /* a binary one begins with a zero byte: it has less than 2^56 bits */

    if (options->format == &bloom_foreign_bits_and_blooms && len > 0
        && head[0] != 0 && strchr("{ \t\r\n", head[0]) != NULL)
    {
        rc = read_json(source);

        if (rc != CLI_OK) {
            return rc;
        }

        len = source_peek(source, BLOOM_FOREIGN_HEAD, &head);
    }

    if (options->format->parse(f, head, (size_t) len, source->size) != 0) {
        return refuse(options, source, head, (size_t) len);
    }

    memcpy(origin, head, f->image.origin_len);

    bits->total = bloom_image_payload_size(&f->image);

    if (source->size != BLOOM_FOREIGN_UNKNOWN) {
        need(bits, bits->total);
    }

    if (source_read(source, skipped, f->payload) != (int64_t) f->payload) {
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

    return read_tail(source, options, origin);
}


/* Redisson has bits and k beside the bitmap. */
static int
ask_redisson(options_t *options, source_t *source)
{
    uint64_t          k;
    bloom_foreign_t  *f;

    f = &options->f;

    if (source->redis == NULL || f->layout != BLOOM_LAYOUT_ZIGZAG
        || f->bits != 0 || f->k != 0)
    {
        return CLI_OK;
    }

    if (redis_redisson(source->redis, &f->bits, &k, &options->capacity,
                       &options->fpr) != 0)
    {
        return CLI_ERROR;
    }

    f->k = k <= BLOOM_K_MAX ? (uint32_t) k : 0;

    return CLI_OK;
}


/* A bitmap in pieces of --shard bits. */
static int
read_shards(options_t *options, char **paths, int n, bits_t *bits)
{
    int               i, rc;
    source_t          source;
    uint64_t          bytes, at, size;
    bloom_foreign_t  *f;

    f = &options->f;

    if (f->bits == 0 || (f->bits + options->shard - 1) / options->shard
                        != (uint64_t) n)
    {
        return cli_misuse("%d sources of %" PRIu64 " bits are no %" PRIu64
                          " bits; give the right --bits and --shard", n,
                          options->shard, f->bits);
    }

    if (options->format->parse(f, NULL, 0, BLOOM_FOREIGN_UNKNOWN) != 0) {
        cli_error("%s: %s", source_shown(paths[0]), f->error);
        return CLI_ERROR;
    }

    bits->total = bloom_image_payload_size(&f->image);
    bytes = options->shard / 8;
    rc = CLI_OK;

    for (i = 0; i < n && rc == CLI_OK; i++) {

        if (source_open(&source, paths + i, 1, 0) != 0) {
            return CLI_ERROR;
        }

        at = (uint64_t) i * bytes;
        size = f->bytes - at < bytes ? f->bytes - at : bytes;

        if (source.size != BLOOM_FOREIGN_UNKNOWN && source.size > size) {
            cli_error("%s: has %" PRIu64 " bytes, and a shard %" PRIu64
                      "; give the right --shard, or cut off the line's end "
                      "that redis-cli writes", source.name, source.size, size);
            rc = CLI_ERROR;

        } else {
            rc = read_bits(&source, bits, f, at, size);
        }

        source_close(&source);
    }

    need(bits, bits->total);

    return rc;
}


static int
read_all(options_t *options, char **paths, int n, bits_t *bits,
    uint8_t *origin)
{
    int       rc;
    source_t  source;

    if (options->shard != 0) {
        rc = read_shards(options, paths, n, bits);

    } else {
        if (source_open(&source, paths, n,
                        options->format == &bloom_foreign_redisbloom) != 0)
        {
            return CLI_ERROR;
        }

        rc = ask_redisson(options, &source);

        if (rc == CLI_OK) {
            rc = read_source(options, &source, bits, origin);
        }

        source_close(&source);
    }

    if (rc == CLI_OK
        && !bloom_foreign_padded(&options->f.image.geometry,
                                 (uint64_t *) bits->data))
    {
        cli_error("%s: bits behind the filter's last one are set; %s",
                  source_shown(paths[0]),
                  options->format == &bloom_foreign_bitmap
                  ? "give the right --bits" : "copy it again");
        rc = CLI_ERROR;
    }

    return rc;
}


int
cmd_import(int argc, char **argv)
{
    int                rc;
    bits_t             bits;
    output_t           out;
    uint8_t            origin[BLOOM_FOREIGN_HEAD];
    options_t          options;
    import_findings_t  findings;

    rc = parse_options(&options, argc, argv);

    if (rc != CLI_OK) {
        return rc == -1 ? CLI_OK : rc;
    }

    if (output_open(&out, options.output) != 0) {
        return CLI_ERROR;
    }

    memset(&bits, 0, sizeof(bits));

    rc = intake_spare(&out, argv + optind, argc - optind,
                      "the filter that is imported");

    if (rc == CLI_OK) {
        rc = read_all(&options, argv + optind, argc - optind, &bits, origin);
    }

    if (rc == CLI_OK) {
        if (options.capacity != 0) {
            options.f.image.capacity = options.capacity;
        }

        if (options.fpr > 0 && options.fpr < 1) {
            options.f.image.fpr = options.fpr;
            options.f.promised = 1;
        }

        options.f.image.as_of = options.as_of;

        import_findings_measure(&findings, &options.f,
                                (uint64_t *) bits.data);

        rc = store_imported(&out, &options.f.image, (uint64_t *) bits.data,
                            origin);
    }

    if (rc == CLI_OK && !options.quiet) {
        import_findings_warn(&findings, &options.f, options.output);
    }

    if (rc == CLI_OK && options.json) {
        import_findings_json(&findings, &options.f, options.output,
                             options.format->name);

    } else if (rc == CLI_OK && !options.quiet) {
        import_findings_print(&findings, &options.f, options.output);
    }

    output_discard(&out);

    return rc;
}
