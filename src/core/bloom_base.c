/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file encodes and decodes the entries of the file "base", checks their
 * values, and finds the entry that counts.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bloom_base.h"
#include "bloom_bytes.h"
#include "bloom_crc.h"


static const uint8_t  magic[8] = { 0x89, 'B', 'L', 'M', 'B', 'A', 'S', 0x0a };

#define ORDER_MARK       0x01020304
#define ORDER_REVERSED   0x04030201

#define POSITION_ALIGN   8

/* Offsets in an entry. */
#define AT_MAGIC         0
#define AT_VERSION       8
#define AT_ORDER         12
#define AT_SIZE          16              /* of the entry */
#define AT_KIND          20
#define AT_NUMBER        24
#define AT_JOURNAL       32
#define AT_BUILD_ID      48
#define AT_REPLACED      64
#define AT_DROPPED       80
#define AT_FLOOR         88
#define AT_LOST          96
#define AT_LOST_KEYS     104
#define AT_FROM          112
#define AT_CHECKPOINTS   240             /* the older one, then the newer one */
#define AT_ACCEPTED      496             /* the last one, then the one before */
#define AT_CHECKSUMS     608             /* of the older checkpoint, then of the
                                            newer one */
#define AT_RESERVED      616
#define AT_CRC           (BLOOM_BASE_ENTRY - 4)

/* Offsets in a point. */
#define AT_POSITION      0
#define AT_SEQUENCE      8
#define AT_TIME          16
#define AT_REMOVED       24              /* keys of removals so far */
#define AT_BYTES         32              /* bytes of these keys */
#define AT_SOURCE        40              /* here the place begins */
#define AT_REACHED       48
#define AT_GAP           64
#define AT_GAP_LOST      80
#define AT_DIGEST        88
#define AT_SINCE         96
#define AT_DUE           112
#define POINT_SIZE       128

/* Offsets in an accepted image. */
#define AT_IMAGE         0
#define AT_KEYS          16
#define AT_AS_OF         24
#define AT_LOADED        32
#define AT_IMAGE_SOURCE  40
#define ACCEPTED_SIZE    56


/* What is not set has zeros in all fields, and nothing between them. */

static const bloom_reached_t     no_place;
static const bloom_point_t     no_point;
static const bloom_accepted_t  none_accepted;
static const uint8_t           no_build_id[BLOOM_IMAGE_BUILD_ID_LEN];

_Static_assert(sizeof(bloom_reached_t) == POINT_SIZE - AT_SOURCE, "no padding");
_Static_assert(sizeof(bloom_point_t) == POINT_SIZE, "no padding");
_Static_assert(sizeof(bloom_accepted_t) == ACCEPTED_SIZE, "no padding");

#define same(a, b)       (memcmp(a, b, sizeof(*(a))) == 0)


static void
put_position(uint8_t *p, bloom_position_t position)
{
    bloom_put64(p, position.high);
    bloom_put64(p + 8, position.low);
}


static bloom_position_t
get_position(const uint8_t *p)
{
    bloom_position_t  position;

    position.high = bloom_get64(p);
    position.low = bloom_get64(p + 8);

    return position;
}


static void
put_point(uint8_t *p, const bloom_point_t *point)
{
    bloom_put64(p + AT_POSITION, point->position);
    bloom_put64(p + AT_SEQUENCE, point->sequence);
    bloom_put64(p + AT_TIME, point->time);
    bloom_put64(p + AT_REMOVED, point->removals.keys);
    bloom_put64(p + AT_BYTES, point->removals.bytes);
    bloom_put64(p + AT_SOURCE, point->place.source);
    put_position(p + AT_REACHED, point->place.position);
    put_position(p + AT_GAP, point->place.gap);
    bloom_put64(p + AT_GAP_LOST, point->place.lost);
    bloom_put64(p + AT_DIGEST, point->place.digest.value);
    put_position(p + AT_SINCE, point->place.digest.since);
    put_position(p + AT_DUE, point->place.due);
}


static void
get_point(bloom_point_t *point, const uint8_t *p)
{
    point->position = bloom_get64(p + AT_POSITION);
    point->sequence = bloom_get64(p + AT_SEQUENCE);
    point->time = bloom_get64(p + AT_TIME);
    point->removals.keys = bloom_get64(p + AT_REMOVED);
    point->removals.bytes = bloom_get64(p + AT_BYTES);
    point->place.source = bloom_get64(p + AT_SOURCE);
    point->place.position = get_position(p + AT_REACHED);
    point->place.gap = get_position(p + AT_GAP);
    point->place.lost = bloom_get64(p + AT_GAP_LOST);
    point->place.digest.value = bloom_get64(p + AT_DIGEST);
    point->place.digest.since = get_position(p + AT_SINCE);
    point->place.due = get_position(p + AT_DUE);
}


static void
put_accepted(uint8_t *p, const bloom_accepted_t *accepted)
{
    memcpy(p + AT_IMAGE, accepted->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    bloom_put64(p + AT_KEYS, accepted->keys);
    bloom_put64(p + AT_AS_OF, accepted->as_of);
    bloom_put64(p + AT_LOADED, accepted->loaded);
    put_position(p + AT_IMAGE_SOURCE, accepted->position);
}


static void
get_accepted(bloom_accepted_t *accepted, const uint8_t *p)
{
    memcpy(accepted->build_id, p + AT_IMAGE, BLOOM_IMAGE_BUILD_ID_LEN);
    accepted->keys = bloom_get64(p + AT_KEYS);
    accepted->as_of = bloom_get64(p + AT_AS_OF);
    accepted->loaded = bloom_get64(p + AT_LOADED);
    accepted->position = get_position(p + AT_IMAGE_SOURCE);
}


void
bloom_base_encode(const bloom_base_t *base, uint8_t e[BLOOM_BASE_ENTRY])
{
    size_t  i;

    memset(e, 0, BLOOM_BASE_ENTRY);

    memcpy(e + AT_MAGIC, magic, sizeof(magic));
    bloom_put32(e + AT_VERSION, BLOOM_BASE_VERSION);
    bloom_put32(e + AT_ORDER, ORDER_MARK);
    bloom_put32(e + AT_SIZE, BLOOM_BASE_ENTRY);
    bloom_put32(e + AT_KIND, (uint32_t) base->kind);
    bloom_put64(e + AT_NUMBER, base->number);
    memcpy(e + AT_JOURNAL, base->journal, BLOOM_JOURNAL_ID_LEN);
    memcpy(e + AT_BUILD_ID, base->build_id, BLOOM_IMAGE_BUILD_ID_LEN);
    memcpy(e + AT_REPLACED, base->replaced, BLOOM_IMAGE_BUILD_ID_LEN);
    bloom_put64(e + AT_DROPPED, base->dropped);
    bloom_put64(e + AT_FLOOR, base->floor);
    bloom_put64(e + AT_LOST, base->lost);
    bloom_put64(e + AT_LOST_KEYS, base->lost_keys);

    put_point(e + AT_FROM, &base->from);

    for (i = 0; i < 2; i++) {
        put_point(e + AT_CHECKPOINTS + i * POINT_SIZE, &base->checkpoint[i]);
        put_accepted(e + AT_ACCEPTED + i * ACCEPTED_SIZE, &base->accepted[i]);
        bloom_put32(e + AT_CHECKSUMS + 4 * i, base->checksum[i]);
    }

    bloom_put32(e + AT_CRC, bloom_crc32c(0, e, AT_CRC));
}


void
bloom_base_forget(bloom_base_t *base, unsigned number)
{
    base->checkpoint[number] = no_point;
    base->checksum[number] = 0;
}


/* Returns NULL, or what is wrong with a place, as bloom_base_check() does. */
static const char *
check_place(const bloom_reached_t *place)
{
    if (place->source == 0) {
        return same(place, &no_place) ? NULL : "has a place in no source";
    }

    if ((place->source & 1) == 0) {
        return "has an even number for a source";
    }

    if (place->lost > 1) {
        return "has an unknown kind of gap";
    }

    if (place->lost && bloom_position_is_zero(place->gap)) {
        return "says that a source lost changes, but not up to where";
    }

    if (bloom_position_cmp(place->digest.since, place->position) > 0) {
        return "has a digest that begins behind its place in the source";
    }

    return NULL;
}


/* Does so for a point; `floor` is that of the entry. */
static const char *
check_point(const bloom_point_t *point, uint64_t floor)
{
    uint64_t  keys, bytes;

    keys = point->removals.keys;
    bytes = point->removals.bytes;

    if (point->position % POSITION_ALIGN != 0) {
        return "has a position that is not a multiple of 8";
    }

    if (point->sequence == 0) {
        return "has the sequence 0";
    }

    if (point->time > floor) {
        return "has a time after its floor";
    }

    /* a key has 1 to BLOOM_KEY_MAX bytes */

    if (keys > bytes
        || keys < bytes / BLOOM_KEY_MAX + (bytes % BLOOM_KEY_MAX != 0))
    {
        return "has too few or too many bytes of removed keys";
    }

    return check_place(&point->place);
}


/* Returns 1 if point `b` may be at or behind point `a` of a journal. */
static int
in_order(const bloom_point_t *a, const bloom_point_t *b)
{
    if (a->position == b->position) {
        return a->sequence == b->sequence
               && same(&a->removals, &b->removals);
    }

    return a->position < b->position && a->sequence <= b->sequence
           && a->removals.keys <= b->removals.keys
           && a->removals.bytes <= b->removals.bytes;
}


static const char *
check_checkpoints(const bloom_base_t *base)
{
    size_t                i;
    const char           *wrong;
    const bloom_point_t  *checkpoint;

    for (i = 0; i < 2; i++) {
        checkpoint = &base->checkpoint[i];

        if (checkpoint->position == 0) {
            if (!same(checkpoint, &no_point) || base->checksum[i] != 0) {
                return "has a checkpoint without a position";
            }

            continue;
        }

        wrong = check_point(checkpoint, base->floor);

        if (wrong != NULL) {
            return wrong;
        }

        if (!in_order(&base->from, checkpoint)) {
            return "has a checkpoint before its journal";
        }
    }

    if (base->checkpoint[0].position != 0
        && !in_order(&base->checkpoint[0], &base->checkpoint[1]))
    {
        return "has checkpoints in the wrong order";
    }

    if (base->kind == BLOOM_BASE_CHECKPOINT
        && base->checkpoint[0].position == 0)
    {
        return "stands on an older checkpoint that it lacks";
    }

    return NULL;
}


static const char *
check_accepted(const bloom_base_t *base)
{
    int                      i, none[2];
    const bloom_accepted_t  *accepted;

    for (i = 0; i < 2; i++) {
        accepted = &base->accepted[i];

        none[i] = accepted->loaded == 0;

        if (none[i] && !same(accepted, &none_accepted)) {
            return "has an accepted image that was never loaded";
        }
    }

    if (none[0] && !none[1]) {
        return "has no last accepted image, but one before it";
    }

    return NULL;
}


const char *
bloom_base_check(const bloom_base_t *base)
{
    const char  *wrong;

    if (base->number == 0) {
        return "has the number 0";
    }

    switch (base->kind) {

    case BLOOM_BASE_EMPTY:
        if (!same(&base->build_id, &no_build_id)) {
            return "stands on an empty filter, but names an image";
        }

        break;

    case BLOOM_BASE_FILE:
    case BLOOM_BASE_UPLOAD:
    case BLOOM_BASE_CHECKPOINT:
        break;

    default:
        return "has an unknown kind";
    }

    if (base->kind != BLOOM_BASE_UPLOAD
        && !same(&base->replaced, &no_build_id))
    {
        return "has no upload, but names the image that it replaced";
    }

    if (base->dropped > base->floor) {
        return "has a time after its floor";
    }

    if (base->lost == 0 && base->lost_keys != 0) {
        return "has lost keys, but no time of a loss";
    }

    wrong = check_point(&base->from, base->floor);

    if (wrong == NULL) {
        wrong = check_checkpoints(base);
    }

    return wrong != NULL ? wrong : check_accepted(base);
}


/* Reads and checks an entry.  If the result is not BLOOM_BASE_OK, *wrong is a
 * phrase to follow "entry N". */
static bloom_base_result_e
read_entry(bloom_base_t *base, const uint8_t *e, const char **wrong)
{
    size_t  i;

    if (bloom_all_zero(e, BLOOM_BASE_ENTRY)) {
        *wrong = "is empty";
        return BLOOM_BASE_DAMAGED;
    }

    if (memcmp(e + AT_MAGIC, magic, sizeof(magic)) != 0) {
        *wrong = "is not an entry";
        return BLOOM_BASE_DAMAGED;
    }

    if (bloom_get32(e + AT_ORDER) == ORDER_REVERSED) {
        *wrong = "has big-endian byte order";
        return BLOOM_BASE_DAMAGED;
    }

    if (bloom_get32(e + AT_CRC) != bloom_crc32c(0, e, AT_CRC)) {
        *wrong = "has a wrong checksum";
        return BLOOM_BASE_DAMAGED;
    }

    if (bloom_get32(e + AT_ORDER) != ORDER_MARK) {
        *wrong = "has an unknown byte order";
        return BLOOM_BASE_DAMAGED;
    }

    if (bloom_get32(e + AT_VERSION) != BLOOM_BASE_VERSION) {
        *wrong = "has another version";
        return BLOOM_BASE_FOREIGN;
    }

    if (bloom_get32(e + AT_SIZE) != BLOOM_BASE_ENTRY) {
        *wrong = "has another size";
        return BLOOM_BASE_DAMAGED;
    }

    if (!bloom_all_zero(e + AT_RESERVED, AT_CRC - AT_RESERVED)) {
        *wrong = "has a value in its reserved bytes";
        return BLOOM_BASE_DAMAGED;
    }

    memset(base, 0, sizeof(*base));

    base->kind = (bloom_base_e) bloom_get32(e + AT_KIND);
    base->number = bloom_get64(e + AT_NUMBER);
    memcpy(base->journal, e + AT_JOURNAL, BLOOM_JOURNAL_ID_LEN);
    memcpy(base->build_id, e + AT_BUILD_ID, BLOOM_IMAGE_BUILD_ID_LEN);
    memcpy(base->replaced, e + AT_REPLACED, BLOOM_IMAGE_BUILD_ID_LEN);
    base->dropped = bloom_get64(e + AT_DROPPED);
    base->floor = bloom_get64(e + AT_FLOOR);
    base->lost = bloom_get64(e + AT_LOST);
    base->lost_keys = bloom_get64(e + AT_LOST_KEYS);

    get_point(&base->from, e + AT_FROM);

    for (i = 0; i < 2; i++) {
        get_point(&base->checkpoint[i], e + AT_CHECKPOINTS + i * POINT_SIZE);
        get_accepted(&base->accepted[i], e + AT_ACCEPTED + i * ACCEPTED_SIZE);
        base->checksum[i] = bloom_get32(e + AT_CHECKSUMS + 4 * i);
    }

    *wrong = bloom_base_check(base);

    return *wrong == NULL ? BLOOM_BASE_OK : BLOOM_BASE_DAMAGED;
}


#define refuse(how, ...)                                                     \
    (snprintf(error, BLOOM_BASE_ERROR_LEN, __VA_ARGS__), BLOOM_BASE_##how)


bloom_base_result_e
bloom_base_decode(bloom_base_t *base, unsigned *which, const uint8_t *data,
    size_t len, char *error)
{
    uint8_t              file[BLOOM_BASE_SIZE];
    uint32_t             version;
    unsigned             i;
    const char          *wrong[2];
    bloom_base_t         entry[2];
    bloom_base_result_e  rc[2];

    if (len == 0) {
        return refuse(DAMAGED, "is empty");
    }

    memset(file, 0, sizeof(file));
    memcpy(file, data, len < sizeof(file) ? len : sizeof(file));

    for (i = 0; i < 2; i++) {
        rc[i] = read_entry(&entry[i], file + i * BLOOM_BASE_ENTRY, &wrong[i]);
    }

    /* a program of that version has written after this one */

    for (i = 0; i < 2; i++) {
        if (rc[i] == BLOOM_BASE_FOREIGN) {
            version = bloom_get32(file + i * BLOOM_BASE_ENTRY + AT_VERSION);

            return refuse(FOREIGN, "has version %" PRIu32 ", but this program "
                          "reads version %d; use %s, or move the directory "
                          "away and lose its keys", version,
                          BLOOM_BASE_VERSION, version > BLOOM_BASE_VERSION
                          ? "a newer program" : "the program that wrote it");
        }
    }

    if (rc[0] != BLOOM_BASE_OK && rc[1] != BLOOM_BASE_OK) {
        return refuse(DAMAGED, "is damaged: it has %zu bytes, entry 0 %s, and "
                      "entry 1 %s", len, wrong[0], wrong[1]);
    }

    if (rc[0] == BLOOM_BASE_OK && rc[1] == BLOOM_BASE_OK) {

        if (!same(&entry[0].journal, &entry[1].journal)) {
            return refuse(DAMAGED, "is damaged: its entries are of different "
                          "journals; restore the whole directory from one "
                          "backup");
        }

        if (entry[0].number == entry[1].number
            && memcmp(file, file + BLOOM_BASE_ENTRY, BLOOM_BASE_ENTRY) != 0)
        {
            return refuse(DAMAGED, "is damaged: it has two entries with the "
                          "number %" PRIu64, entry[0].number);
        }

        *which = entry[1].number > entry[0].number;

    } else {
        *which = rc[1] == BLOOM_BASE_OK;
    }

    memcpy(base, &entry[*which], sizeof(*base));

    return BLOOM_BASE_OK;
}
