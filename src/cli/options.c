
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "bloom_geometry.h"
#include "cli.h"
#include "options.h"
#include "units.h"


int
option_capacity(const char *text, uint64_t *capacity)
{
    if (parse_count(text, capacity) != 0 || *capacity == 0
        || *capacity > BLOOM_CAPACITY_MAX)
    {
        return cli_misuse("-n \"%s\": a number of keys is a count from 1 to "
                          "%" PRIu64 ", with k, m or g", text,
                          BLOOM_CAPACITY_MAX);
    }

    return CLI_OK;
}


int
option_fpr(const char *text, double *fpr)
{
    if (parse_rate(text, fpr) != 0 || *fpr < BLOOM_FPR_MIN
        || *fpr > BLOOM_FPR_MAX)
    {
        return cli_misuse("-p \"%s\": a rate is from 1e-9 to 0.5", text);
    }

    return CLI_OK;
}


int
option_layout(const char *text, uint32_t *layout)
{
    *layout = bloom_geometry_layout_parse(text, strlen(text));

    if (*layout == 0) {
        return cli_misuse("--layout \"%s\": there are blocked and classic",
                          text);
    }

    return CLI_OK;
}


int
option_hash(const char *text, bloom_hasher_t *hasher)
{
    hasher->kind = bloom_hasher_parse(text, strlen(text));

    if (hasher->kind == 0) {
        return cli_misuse("--hash \"%s\": there are murmur3 and siphash", text);
    }

    return CLI_OK;
}


int
option_seed(const char *text, bloom_hasher_t *hasher)
{
    uint64_t  seed;

    if (hasher->kind == BLOOM_HASH_SIPHASH) {
        if (parse_hex(text, hasher->key, BLOOM_HASH_KEY_LEN) != 0) {
            return cli_misuse("--seed \"%s\": siphash wants 32 hexadecimal "
                              "digits", text);
        }

        return CLI_OK;
    }

    if (parse_count(text, &seed) != 0 || seed > UINT32_MAX) {
        return cli_misuse("--seed \"%s\": murmur3 wants a number from 0 to "
                          "%" PRIu32, text, UINT32_MAX);
    }

    bloom_hasher_murmur3(hasher, (uint32_t) seed);

    return CLI_OK;
}


int
option_threads(const char *text, unsigned *threads)
{
    uint64_t  n;

    if (parse_count(text, &n) != 0 || n == 0 || n > OPTION_THREADS_MAX) {
        return cli_misuse("-j \"%s\": threads are from 1 to %d", text,
                          OPTION_THREADS_MAX);
    }

    *threads = (unsigned) n;

    return CLI_OK;
}


unsigned
option_default_threads(void)
{
    long  processors;

    processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors < 1 ? 1
           : processors > OPTION_THREADS_MAX ? OPTION_THREADS_MAX
           : (unsigned) processors;
}
