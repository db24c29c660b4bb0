/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file gathers changes of a source, the last one of each key, and applies
 * them.
 */

#include "ngx_bloom_changes.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_remove.h"
#include "bloom_siphash.h"

#include <sys/random.h>


/* Room for so many changes at first. */
#define NGX_BLOOM_CHANGES_ROOM  64


static uint32_t *ngx_bloom_changes_find(ngx_bloom_changes_t *changes,
    const bloom_key_t *key, uint32_t hash);
static ngx_int_t ngx_bloom_changes_grow(ngx_bloom_changes_t *changes);
static ngx_int_t ngx_bloom_changes_alive(ngx_bloom_changes_t *changes);
static ngx_int_t ngx_bloom_changes_look(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits);
static ngx_int_t ngx_bloom_changes_judge(ngx_bloom_changes_t *changes);
static void ngx_bloom_changes_compose(ngx_bloom_changes_t *changes);
static void ngx_bloom_changes_make(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, uint64_t time, uint64_t position);
static void ngx_bloom_changes_move(ngx_bloom_changes_t *changes);
static ngx_int_t ngx_bloom_changes_look_gap(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits);
static void ngx_bloom_changes_make_gap(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, uint64_t time, uint64_t position);


static const ngx_bloom_change_kind_t  ngx_bloom_changes_kind = {
    .look = ngx_bloom_changes_look,
    .apply = ngx_bloom_changes_make,
    .source = 1
};

static const ngx_bloom_change_kind_t  ngx_bloom_changes_kind_gap = {
    .look = ngx_bloom_changes_look_gap,
    .apply = ngx_bloom_changes_make_gap,
    .source = 1
};


ngx_int_t
ngx_bloom_changes_init(ngx_bloom_changes_t *changes, ngx_bloom_zone_t *zone,
    bloom_position_t before, bloom_position_t after)
{
    ngx_int_t  rc;

    ngx_memzero(changes, sizeof(ngx_bloom_changes_t));

    changes->zone = zone;
    changes->before = before;
    changes->after = after;

    changes->size = BLOOM_RECORD_CHANGES_MIN;
    bloom_digest_begin(&changes->digest);

    rc = ngx_bloom_batch_begin(&changes->batch, zone, &ngx_bloom_changes_kind,
                               NULL);

    changes->batch.data = changes;

    if (rc == NGX_OK && zone->state == NULL) {
        changes->batch.error = "the zone has no journal, which keeps the "
                               "changes of a source; see the error log";
        rc = NGX_ERROR;
    }

    return rc;
}


void
ngx_bloom_changes_end(ngx_bloom_changes_t *changes)
{
    free(changes->changes);
    free(changes->slots);
    free(changes->keys);
    free(changes->batch.buf);
}


/* ---- gathering ---- */


ngx_int_t
ngx_bloom_changes_put(ngx_bloom_changes_t *changes, ngx_str_t *key,
    ngx_uint_t removed)
{
    size_t               len;
    uint32_t            *slot, hash;
    const char          *why;
    bloom_key_t          k;
    ngx_bloom_change_t  *change;

    static ngx_uint_t    seeded;
    static uint8_t       secret[BLOOM_HASH_KEY_LEN];

    k.data = key->data;
    k.len = key->len;

    bloom_digest_put(&changes->digest, &k, removed != 0);
    changes->received++;

    why = ngx_bloom_write_convert(changes->zone, !removed, &k);

    if (why != NULL) {
        changes->batch.err = 0;
        changes->batch.error = why;
        return NGX_DECLINED;
    }

    if (!seeded) {
        (void) getrandom(secret, BLOOM_HASH_KEY_LEN, GRND_NONBLOCK);
        seeded = 1;
    }

    if ((changes->count == changes->room || changes->keys == NULL)
        && ngx_bloom_changes_grow(changes) != NGX_OK)
    {
        return NGX_ERROR;
    }

    hash = (uint32_t) bloom_siphash_128(k.data, k.len, secret, 1, 3).h1;
    slot = ngx_bloom_changes_find(changes, &k, hash);

    if (*slot != 0) {
        changes->changes[*slot - 1].removed = (uint32_t) removed;
        changes->superseded++;
        return NGX_OK;
    }

    len = k.len + 1 + (k.len > 0x7f) + (k.len > 0x3fff);

    if (len > BLOOM_RECORD_MAX - changes->size) {
        return NGX_DONE;
    }

    changes->size += len;

    change = &changes->changes[changes->count++];
    *slot = changes->count;

    change->offset = (uint32_t) changes->keys_len;
    change->len = (uint32_t) k.len;
    change->hash = hash;
    change->removed = (uint32_t) removed;

    ngx_memcpy(changes->keys + changes->keys_len, k.data, k.len);
    changes->keys_len += k.len;

    return NGX_OK;
}


/* Returns the slot of a key, or the free slot where it would be. */
static uint32_t *
ngx_bloom_changes_find(ngx_bloom_changes_t *changes, const bloom_key_t *key,
    uint32_t hash)
{
    uint32_t             i, mask, *slot;
    ngx_bloom_change_t  *change;

    mask = 2 * changes->room - 1;

    for (i = hash & mask; /* void */ ; i = (i + 1) & mask) {
        slot = &changes->slots[i];

        if (*slot == 0) {
            return slot;
        }

        change = &changes->changes[*slot - 1];

        if (change->hash == hash && change->len == key->len
            && ngx_memcmp(changes->keys + change->offset, key->data, key->len)
               == 0)
        {
            return slot;
        }
    }
}


/* Doubles the room for changes.  Returns NGX_OK, or NGX_ERROR. */
static ngx_int_t
ngx_bloom_changes_grow(ngx_bloom_changes_t *changes)
{
    uint32_t             i, at, mask, room, *slots;
    ngx_bloom_change_t  *more;

    room = changes->room ? 2 * changes->room : NGX_BLOOM_CHANGES_ROOM;

    more = realloc(changes->changes, room * sizeof(ngx_bloom_change_t));

    if (more == NULL) {
        return NGX_ERROR;
    }

    changes->changes = more;

    slots = calloc(2 * (size_t) room, sizeof(uint32_t));

    if (changes->keys == NULL) {
        changes->keys = malloc(BLOOM_RECORD_MAX);
    }

    if (slots == NULL || changes->keys == NULL) {
        free(slots);
        return NGX_ERROR;
    }

    mask = 2 * room - 1;

    for (i = 0; i < changes->count; i++) {
        at = changes->changes[i].hash & mask;

        while (slots[at] != 0) {
            at = (at + 1) & mask;
        }

        slots[at] = i + 1;
    }

    free(changes->slots);

    changes->slots = slots;
    changes->room = room;

    return NGX_OK;
}


/* ---- applying ---- */


ngx_int_t
ngx_bloom_changes_apply(ngx_bloom_changes_t *changes)
{
    ngx_bloom_batch_t  *batch;

    batch = &changes->batch;

    if (bloom_position_cmp(changes->before, changes->after) == 0) {
        return ngx_bloom_changes_alive(changes);
    }

    if (batch->buf == NULL) {
        batch->buf = malloc(BLOOM_RECORD_MAX);

        if (batch->buf == NULL) {
            batch->err = ngx_errno;
            batch->error = "memory is short; try again";
            return NGX_ERROR;
        }
    }

    return ngx_bloom_write(batch);
}


static ngx_int_t
ngx_bloom_changes_look(ngx_bloom_batch_t *batch, ngx_bloom_zone_bits_t *bits)
{
    ngx_int_t             rc;
    const uint8_t        *last;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_changes_t  *changes;

    zone = batch->zone;
    changes = batch->data;

    ngx_bloom_source_read(zone->control, zone->source_id, &changes->place);
    ngx_bloom_source_read_part(zone->control, zone->source_id,
                               changes->place.position, changes->after,
                               &changes->part);

    rc = ngx_bloom_changes_judge(changes);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_bloom_changes_compose(changes);

    if (ngx_bloom_remove_excess(zone, bits, &changes->removals, &last) != 0) {
        batch->err = 0;
        batch->error = "the zone has no room for all keys that are removed; "
                       "load an image that has the changes up to a later "
                       "position, or raise \"removals\" of bloom_zone";
        return NGX_ABORT;
    }

    return NGX_OK;
}


/*
 * Judges whether the batch comes next.  All changes from the place on can be
 * applied again, but not only some of those that the zone has: a later one
 * would be undone.  Returns NGX_OK, or NGX_DONE or NGX_DECLINED as
 * ngx_bloom_changes_apply() does.
 */
static ngx_int_t
ngx_bloom_changes_judge(ngx_bloom_changes_t *changes)
{
    const bloom_reached_t   *place;
    const ngx_bloom_part_t  *part;

    place = &changes->place;
    part = &changes->part;

    changes->reached = place->position;
    changes->has = part->count;

    if (bloom_position_cmp(place->position, changes->after) >= 0) {
        return NGX_DONE;
    }

    if (bloom_position_cmp(place->position, changes->before) != 0) {
        return NGX_DECLINED;
    }

    if (changes->more && changes->offset + changes->received <= part->count) {
        return NGX_DONE;
    }

    return changes->offset == 0 || changes->offset == part->count
           ? NGX_OK : NGX_DECLINED;
}


/* Takes a sign of life, which needs no lock if nothing is due. */
static ngx_int_t
ngx_bloom_changes_alive(ngx_bloom_changes_t *changes)
{
    ngx_int_t             rc;
    ngx_bloom_zone_t     *zone;
    bloom_reached_t       place;
    ngx_bloom_control_t  *control;

    zone = changes->zone;
    control = zone->control;

    ngx_bloom_source_read(control, zone->source_id, &place);
    rc = bloom_position_cmp(place.position, changes->after);

    if (rc == 0 && ngx_bloom_source_due(&place)) {

        rc = ngx_bloom_write_lock(&changes->batch);

        if (rc != NGX_OK) {
            return rc;
        }

        ngx_bloom_source_read(control, zone->source_id, &place);
        rc = bloom_position_cmp(place.position, changes->after);

        if (rc == 0) {
            ngx_memzero(&place.due, sizeof(bloom_position_t));
            ngx_bloom_source_store(control, &place);
        }

        ngx_bloom_zone_unlock(zone);
    }

    changes->reached = place.position;

    if (rc == 0) {
        ngx_bloom_source_sign(control, zone->source_id, changes->after,
                              ngx_current_msec);
    }

    return rc >= 0 ? NGX_DONE : NGX_DECLINED;
}


static void
ngx_bloom_changes_make(ngx_bloom_batch_t *batch, ngx_bloom_zone_bits_t *bits,
    uint64_t time, uint64_t position)
{
    bloom_record_t        *additions;
    ngx_bloom_changes_t   *changes;
    ngx_bloom_set_tally_t  tally;

    changes = batch->data;
    additions = &changes->additions;

    ngx_bloom_add_keys(bits, additions->keys, additions->end, position,
                       &tally);

    ngx_bloom_fault("changes_set");

    ngx_bloom_remove_except(batch, bits, &changes->removals, time, position);

    ngx_bloom_fault("changes_removed");

    ngx_bloom_changes_move(changes);

    ngx_bloom_add_count(batch, &tally, additions->count);
}


/* Stores where the zone is once the batch is applied. */
static void
ngx_bloom_changes_move(ngx_bloom_changes_t *changes)
{
    ngx_bloom_part_t     *part;
    bloom_reached_t      *place;
    ngx_bloom_control_t  *control;

    part = &changes->part;
    place = &changes->place;
    control = changes->zone->control;

    if (!changes->more) {
        place->position = changes->after;
        place->digest = changes->moved;
        ngx_bloom_source_store(control, place);

        changes->reached = place->position;
        changes->has = 0;
        return;
    }

    part->source = place->source;
    part->before = changes->before;
    part->after = changes->after;
    part->count = changes->offset + changes->received;
    part->digest = changes->moved.value;
    ngx_bloom_source_store_part(control, part);

    changes->has = part->count;
}


/* Composes the record of the batch. */
static void
ngx_bloom_changes_compose(ngx_bloom_changes_t *changes)
{
    uint32_t                i, removed;
    bloom_key_t             key;
    const uint8_t          *keys;
    bloom_record_t         *removals, *additions;
    ngx_bloom_change_t     *change;
    bloom_record_maker_t   *maker;

    removals = &changes->removals;
    additions = &changes->additions;

    changes->moved = changes->place.digest;

    if (changes->offset != 0) {
        changes->moved.value = changes->part.digest;
    }

    bloom_digest_extend(&changes->moved, &changes->digest);

    maker = &changes->batch.maker;

    key.data = changes->zone->source.data;
    key.len = changes->zone->source.len;

    bloom_record_begin_changes(maker, changes->batch.buf, BLOOM_RECORD_MAX,
                               &key, changes->before, changes->after,
                               changes->more ? changes->place.digest
                                             : changes->moved);

    maker->part = (uint32_t) changes->more;

    ngx_memzero(removals, sizeof(bloom_record_t));
    ngx_memzero(additions, sizeof(bloom_record_t));

    removals->type = BLOOM_RECORD_REMOVE;
    additions->type = BLOOM_RECORD_ADD;

    for (removed = 1; /* void */ ; removed = 0) {

        keys = maker->buf + maker->len;

        for (i = 0; i < changes->count; i++) {
            change = &changes->changes[i];

            if (change->removed == removed) {
                key.data = changes->keys + change->offset;
                key.len = change->len;

                (void) bloom_record_put(maker, &key);
            }
        }

        if (!removed) {
            break;
        }

        maker->removals = maker->count;

        removals->count = maker->count;
        removals->keys = keys;
        removals->end = maker->buf + maker->len;
    }

    additions->count = maker->count - maker->removals;
    additions->keys = keys;
    additions->end = maker->buf + maker->len;
}


ngx_int_t
ngx_bloom_changes_gap(ngx_bloom_changes_t *changes)
{
    u_char              buf[BLOOM_RECORD_CHANGES_MIN];
    ngx_int_t           rc;
    ngx_bloom_batch_t  *batch;

    batch = &changes->batch;

    changes->before = changes->after;

    batch->kind = &ngx_bloom_changes_kind_gap;
    batch->buf = buf;

    rc = ngx_bloom_write(batch);

    batch->kind = &ngx_bloom_changes_kind;
    batch->buf = NULL;

    return rc;
}


/* Lets the zone answer "unknown", even if the disk is full, and composes the
 * record of the gap. */
static ngx_int_t
ngx_bloom_changes_look_gap(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits)
{
    bloom_key_t           name;
    bloom_digest_t        digest;
    bloom_reached_t      *place;
    bloom_position_t      before;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_changes_t  *changes;

    zone = batch->zone;
    changes = batch->data;
    place = &changes->place;

    ngx_bloom_source_read(zone->control, zone->source_id, place);

    before = place->position;
    digest = place->digest;
    ngx_bloom_source_gap(place, before, changes->after);
    place->position = before;
    place->digest = digest;
    ngx_bloom_source_store(zone->control, place);

    name.data = zone->source.data;
    name.len = zone->source.len;

    bloom_digest_restart(&changes->moved, changes->after);
    bloom_record_begin_changes(&batch->maker, batch->buf,
                               BLOOM_RECORD_CHANGES_MIN, &name, changes->after,
                               changes->after, changes->moved);
    return NGX_OK;
}


static void
ngx_bloom_changes_make_gap(ngx_bloom_batch_t *batch,
    ngx_bloom_zone_bits_t *bits, uint64_t time, uint64_t position)
{
    ngx_bloom_changes_t  *changes;

    changes = batch->data;

    changes->place.position = changes->after;
    changes->place.digest = changes->moved;
    ngx_bloom_source_store(batch->zone->control, &changes->place);

    changes->reached = changes->place.position;
}
