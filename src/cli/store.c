
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cli.h"
#include "store.h"
#include "units.h"


void
store_random(void *buf, size_t len)
{
    if (getrandom(buf, len, 0) != (ssize_t) len) {
        cli_error("no random bytes can be had: %s", strerror(errno));
        exit(CLI_ERROR);
    }
}


void
store_warn_full(const bloom_image_t *image, const char *advice)
{
    char  rate[UNITS_LEN], promised[UNITS_LEN];

    if (image->items <= image->capacity
        || bloom_geometry_fpr(&image->geometry, image->items) <= image->fpr)
    {
        return;
    }

    cli_warn("%" PRIu64 " distinct keys are more than the capacity of %" PRIu64
             ": the false-positive rate will be about %s instead of the "
             "promised %s; %s", image->items, image->capacity,
             format_rate(rate, bloom_geometry_fpr(&image->geometry,
                                                  image->items)),
             format_rate(promised, image->fpr), advice);
}


int
store_image(output_t *out, bloom_image_t *image, const uint64_t *words)
{
    return store_imported(out, image, words, NULL);
}


int
store_imported(output_t *out, bloom_image_t *image, const uint64_t *words,
    const uint8_t *origin)
{
    int              rc;
    void            *table;
    uint8_t          header[BLOOM_IMAGE_PAGE];
    struct timespec  now;

    clock_gettime(CLOCK_REALTIME, &now);

    image->created = (uint64_t) now.tv_sec * 1000
                     + (uint64_t) now.tv_nsec / 1000000;

    store_random(image->build_id, BLOOM_IMAGE_BUILD_ID_LEN);

    table = cli_alloc(bloom_image_table_size(image));

    if (origin == NULL) {
        image->origin_len = 0;
    }

    bloom_image_seal(image, words, table);
    bloom_image_encode(image, header);

    if (image->origin_len != 0) {
        memcpy(bloom_image_origin(image, header), origin, image->origin_len);
        bloom_image_encode_again(header);
    }

    rc = output_write(out, header, sizeof(header)) == 0
         && output_write(out, table, bloom_image_table_size(image)) == 0
         && output_write(out, words, bloom_image_payload_size(image)) == 0
         && output_commit(out) == 0;

    free(table);

    return rc ? CLI_OK : CLI_ERROR;
}
