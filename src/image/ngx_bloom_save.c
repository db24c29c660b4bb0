/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A save copies each chunk before it writes it, because workers set bits
 * meanwhile and the checksum has to match what is written.
 */

#include "ngx_bloom_save.h"
#include "bloom_growth.h"
#include "ngx_bloom_layers.h"
#include "bloom_exceptions_image.h"
#include "bloom_image_seal.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_catch_up.h"
#include "ngx_bloom_checkpoint.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_journal.h"
#include "ngx_bloom_lost.h"
#include "ngx_bloom_place.h"
#include "ngx_bloom_ring_image.h"
#include "ngx_bloom_state_files.h"

#include <sys/random.h>


/* How long to wait for another process's synchronisation, ms. */
#define NGX_BLOOM_SAVE_KEEPER          1000

/* How long to wait for the lock `append`, ms. */
#define NGX_BLOOM_SAVE_APPEND          1000

/* How long the zone may lack records of another instance, ms. */
#define NGX_BLOOM_SAVE_PATIENCE        1000

/* The pause between attempts to apply them, ms. */
#define NGX_BLOOM_SAVE_PAUSE           5


static ngx_int_t ngx_bloom_save_has_all(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_sync(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_applied(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_begin(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_create(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_chunk(ngx_bloom_save_t *save, uint64_t chunk);
static void ngx_bloom_save_copy(ngx_bloom_save_t *save, uint64_t offset,
    size_t len);
static ngx_int_t ngx_bloom_save_list(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_put(ngx_bloom_save_t *save,
    const bloom_exception_t *exception, size_t *room);
static ngx_int_t ngx_bloom_save_exceptions(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_finish(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_place(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_fails(ngx_bloom_save_t *save,
    const char *error);
static ngx_int_t ngx_bloom_save_point(ngx_bloom_save_t *save);
static void ngx_bloom_save_copy_of(ngx_bloom_save_t *save);


const char *
ngx_bloom_save_lacks(ngx_bloom_zone_t *zone)
{
    if (ngx_bloom_zone_damaged(zone)) {
        return "is that of a damaged zone: an image would lack added keys, and "
               "could not say so; first load an image that has them "
               "(\"lost_at\" of the zone's state says up to when keys may be "
               "lost), or clear the zone";
    }

    if (ngx_bloom_zone_owing(zone)) {
        return "lacks keys of a process that waits for the lock of the zone; "
               "try again";
    }

    return NULL;
}


ngx_int_t
ngx_bloom_save(ngx_bloom_save_t *save, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind)
{
    uint64_t   chunk;
    ngx_int_t  rc;

    ngx_memzero(save, sizeof(ngx_bloom_save_t));

    save->zone = zone;
    save->kind = kind;
    save->fd = NGX_INVALID_FILE;
    ngx_bloom_state_name(save->tmp, "journal");

    if (zone->sh->generation == 0) {
        save->error = "cannot be used for a copy: the zone is not loaded; "
                      "load an image";
        return NGX_ERROR;
    }

    if (ngx_bloom_save_has_all(save) != NGX_OK
        || ngx_bloom_save_sync(save) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_bloom_fault("prepared");

    rc = ngx_bloom_save_applied(save);

    if (rc == NGX_OK) {
        rc = ngx_bloom_save_begin(save);
        ngx_bloom_unlock(&zone->sh->applying);
    }

    if (rc != NGX_OK || ngx_bloom_save_create(save) != NGX_OK) {
        return NGX_ERROR;
    }

    for (chunk = 0; chunk < bloom_image_chunks(&save->image); chunk++) {

        if (ngx_bloom_save_chunk(save, chunk) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (ngx_bloom_save_list(save) != NGX_OK
        || ngx_bloom_save_exceptions(save) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_bloom_save_finish(save);
}


/* Refuses a snapshot that would lack keys. */
static ngx_int_t
ngx_bloom_save_has_all(ngx_bloom_save_t *save)
{
    const char  *lacks;

    lacks = (save->kind == NGX_BLOOM_TASK_SNAPSHOT)
            ? ngx_bloom_save_lacks(save->zone) : NULL;

    if (lacks == NULL) {
        return NGX_OK;
    }

    save->error = lacks;
    save->damaged = ngx_bloom_zone_damaged(save->zone);
    ngx_bloom_state_name(save->tmp, "control");

    return NGX_ERROR;
}


/* Synchronises the journal up to what the filter has now. */
static ngx_int_t
ngx_bloom_save_sync(ngx_bloom_save_t *save)
{
    ngx_int_t             rc;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = save->zone;
    control = zone->state->control;

    if (ngx_bloom_lock(&control->keeper, NGX_BLOOM_SAVE_KEEPER) != NGX_OK) {

        /* the process that holds it may have synchronised enough already */

        if (__atomic_load_n(&control->synced, __ATOMIC_ACQUIRE)
            >= zone->sh->applied)
        {
            return NGX_OK;
        }

        save->error = "is being synchronised by another process, which takes "
                      "too long; check the disk, and try again";
        return NGX_ERROR;
    }

    rc = ngx_bloom_journal_sync(zone->state);

    if (rc != NGX_OK) {
        rc = ngx_bloom_save_fails(save, "cannot be synchronised, which a copy "
                                  "of the zone needs");
    }

    ngx_bloom_lost_by_disk(zone);

    ngx_bloom_unlock(&control->keeper);

    return rc;
}


/*
 * Sees to it that the filter has all records up to the journal's end.  Returns
 * NGX_OK, with the lock `applying` held; or NGX_ERROR with the reason.
 */
static ngx_int_t
ngx_bloom_save_applied(ngx_bloom_save_t *save)
{
    ngx_msec_t         begun;
    ngx_bloom_zone_t  *zone;

    zone = save->zone;

    ngx_time_update();
    begun = ngx_current_msec;

    for ( ;; ) {

        if (ngx_bloom_lock(&zone->sh->applying, NGX_BLOOM_APPLYING_WAIT)
            != NGX_OK)
        {
            save->error = "is being applied by another process, which takes "
                          "too long; try again";
            return NGX_ERROR;
        }

        save->error = "has keys that the zone has not applied yet; try again, "
                      "and see the error log if that does not help";

        if (ngx_bloom_catch_up(zone) == NGX_OK
            && ngx_bloom_save_point(save) == NGX_OK)
        {
            return NGX_OK;
        }

        ngx_bloom_unlock(&zone->sh->applying);

        ngx_time_update();

        if (ngx_current_msec - begun >= NGX_BLOOM_SAVE_PATIENCE) {
            return NGX_ERROR;
        }

        ngx_msleep(NGX_BLOOM_SAVE_PAUSE);
    }
}


/* Notes what the filter is now.  The caller holds the lock `applying`. */
static ngx_int_t
ngx_bloom_save_begin(ngx_bloom_save_t *save)
{
    uint64_t            bits_set[BLOOM_PARTS_MAX];
    ngx_uint_t          bank;
    bloom_image_t      *image;
    bloom_source_t      source;
    ngx_bloom_zone_t   *zone;

    zone = save->zone;

    if (ngx_bloom_save_has_all(save) != NGX_OK) {
        return NGX_ERROR;
    }

    save->generation = zone->sh->generation;

    bank = save->generation & 1;
    image = &save->image;

    /* every key that was added before the point is in a layer in use */

    ngx_bloom_layers_image(zone, bank, image);

    source = image->source;

    if (ngx_bloom_place_save(zone, save->kind == NGX_BLOOM_TASK_CHECKPOINT,
                             &source)
        != NGX_OK)
    {
        save->error = "has changes that the zone cannot apply yet; try again";
        return NGX_ERROR;
    }

    bloom_image_set_source(image, &source);

    save->bits_set = ngx_bloom_layers_bits_set(zone, bank, bits_set);
    save->excepted = ngx_bloom_save_excepted(zone);

    image->items = bloom_growth_items(&image->geometry, bits_set);
    image->flags |= BLOOM_IMAGE_ESTIMATED;

    if (image->geometry.slices != 0) {
        image->flags |= BLOOM_IMAGE_RING;
        ngx_bloom_ring_image_save(zone, bank, &save->ring);
    }

    image->exceptions = 0;
    image->exceptions_size = 0;
    image->exceptions_crc = 0;
    ngx_memzero(&image->copy, sizeof(bloom_image_copy_t));
    image->built = 0;
    image->built_size = 0;

    return NGX_OK;
}


/* Names the file and creates it. */
static ngx_int_t
ngx_bloom_save_create(ngx_bloom_save_t *save)
{
    bloom_image_t      *image;
    ngx_bloom_state_t  *state;

    state = save->zone->state;
    image = &save->image;

    if (ngx_bloom_state_files_temporary(state, "save", "tmp", save->tmp)
        != NGX_OK)
    {
        ngx_cpystrn(save->tmp, state->path.data, NGX_MAX_PATH);
        return ngx_bloom_save_fails(save, "cannot get a new file: getrandom() "
                                    "failed");
    }

    if (save->kind == NGX_BLOOM_TASK_CHECKPOINT) {

        if (ngx_bloom_checkpoint_name(save->zone, save->point.position,
                                      save->name)
            != NGX_OK)
        {
            save->error = "cannot be used for a checkpoint: the image that "
                          "serves is not known to be on disk, or is not the "
                          "one that a start would load; see the error log, and "
                          "load the image again";
            return NGX_ERROR;
        }

    } else {
        /* a later load does not know when the image was first loaded */

        image->as_of = ngx_bloom_as_of_complete(state, image);
        image->created = ngx_bloom_time();

        ngx_bloom_save_copy_of(save);

        if (getrandom(image->build_id, BLOOM_IMAGE_BUILD_ID_LEN, 0) == -1) {
            return ngx_bloom_save_fails(save, "cannot get a build id: "
                                        "getrandom() failed");
        }

        if (ngx_bloom_state_files_temporary(state, "snapshot", "bloom",
                                            save->name)
            != NGX_OK)
        {
            return ngx_bloom_save_fails(save, "cannot get a new name: "
                                        "getrandom() failed");
        }
    }

    save->buf = malloc(BLOOM_IMAGE_CHUNK);
    save->table = malloc(bloom_image_table_size(image));

    if (save->buf == NULL || save->table == NULL) {
        return ngx_bloom_save_fails(save, "cannot be written");
    }

    save->fd = ngx_bloom_io_open(state->dir, save->tmp,
                                 O_RDWR|O_CREAT|O_TRUNC);

    return save->fd != NGX_INVALID_FILE
           ? NGX_OK : ngx_bloom_save_fails(save, "cannot be created");
}


ngx_bloom_save_exceptions_t
ngx_bloom_save_excepted(ngx_bloom_zone_t *zone)
{
    bloom_exceptions_t           set;
    ngx_bloom_save_exceptions_t  excepted;

    ngx_bloom_zone_exceptions(zone, zone->sh->generation & 1, &set);

    ngx_memzero(&excepted, sizeof(ngx_bloom_save_exceptions_t));

    if (set.head != NULL) {
        excepted.puts = __atomic_load_n(&set.head->puts, __ATOMIC_ACQUIRE);
        excepted.count = __atomic_load_n(&set.head->count, __ATOMIC_ACQUIRE);
    }

    return excepted;
}


/* Finds out where the journal ends, and what its records come to.  The filter
 * that serves has all of them.  Returns NGX_OK, or NGX_ERROR with the reason.
 */
static ngx_int_t
ngx_bloom_save_point(ngx_bloom_save_t *save)
{
    uint64_t            required;
    bloom_point_t      *point;
    ngx_bloom_end_t     end;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_state_t  *state;

    zone = save->zone;
    state = zone->state;
    point = &save->point;

    if (ngx_bloom_zone_lock(zone, NGX_BLOOM_SAVE_APPEND) != NGX_OK) {
        save->error = "is being written by another process, which takes too "
                      "long; try again";
        return NGX_ERROR;
    }

    end = ngx_bloom_state_end(state);
    required = __atomic_load_n(zone->required, __ATOMIC_SEQ_CST);

    ngx_bloom_source_place(state->control, &point->place);

    ngx_bloom_zone_unlock(zone);

    if (required > __atomic_load_n(&zone->sh->applied, __ATOMIC_SEQ_CST)) {
        save->error = "has changes of another instance that the zone has not "
                      "applied yet; try again";
        return NGX_ERROR;
    }

    point->position = end.tail;
    point->sequence = end.sequence;
    point->time = end.time;
    point->removals = end.removals;

    return NGX_OK;
}


/* Says in the image where the zone was copied, so that the zone takes its own
 * copy again, whatever has been removed from the journal before. */
static void
ngx_bloom_save_copy_of(ngx_bloom_save_t *save)
{
    bloom_image_copy_t  *copy;

    copy = &save->image.copy;

    ngx_memcpy(copy->journal, save->zone->state->control->journal,
               BLOOM_JOURNAL_ID_LEN);
    copy->position = save->point.position;
    copy->sequence = save->point.sequence;
    copy->time = save->point.time;
    copy->removed = save->point.removals.keys;
    copy->removed_bytes = save->point.removals.bytes;
}


/* Saves a chunk of the filter. */
static ngx_int_t
ngx_bloom_save_chunk(ngx_bloom_save_t *save, uint64_t chunk)
{
    size_t    len;
    uint64_t  offset;

    /* copy the chunk, so that the checksum matches what is written */

    offset = chunk * BLOOM_IMAGE_CHUNK;
    len = bloom_image_chunk_size(&save->image, chunk);

    ngx_bloom_fault("saving");

    ngx_bloom_save_copy(save, offset, len);

    bloom_image_seal_chunk(&save->image, chunk, save->buf, save->table);

    if (save->image.geometry.slices == 0) {
        ngx_bloom_layers_count_words(&save->image.geometry,
                                     (uint64_t *) save->buf,
                                     offset / sizeof(uint64_t),
                                     len / sizeof(uint64_t), save->written);
    }

    offset += BLOOM_IMAGE_PAGE + bloom_image_table_size(&save->image);

    return ngx_bloom_io_write_slice(save->fd, save->buf, len, offset,
                                    &save->unsynced)
           == NGX_OK
           ? NGX_OK : ngx_bloom_save_fails(save, "cannot be written");
}


/* Copies a part of the filter into the buffer.  Slices of a ring that are not
 * live have no keys, and perhaps no memory. */
static void
ngx_bloom_save_copy(ngx_bloom_save_t *save, uint64_t offset, size_t len)
{
    size_t     n, slice;
    u_char    *p, *bank;
    uint64_t   at;

    bank = ngx_bloom_zone_bank(save->zone, save->generation & 1);

    if (save->image.geometry.slices == 0) {
        ngx_memcpy(save->buf, bank + offset, len);
        return;
    }

    slice = save->image.geometry.bits / 8;

    for (at = offset, p = save->buf; len != 0; at += n, p += n, len -= n) {
        n = ngx_min(len, slice - at % slice);

        if (save->ring.live >> at / slice & 1) {
            ngx_memcpy(p, bank + at, n);

        } else {
            ngx_memzero(p, n);
        }
    }
}


/*
 * Lists the exceptions.  What happens to them meanwhile is in the journal after
 * the position of this save, and a load replays it.
 */
static ngx_int_t
ngx_bloom_save_list(ngx_bloom_save_t *save)
{
    size_t                 size, room;
    u_char                *data;
    uint64_t               cursor;
    bloom_exception_t      exception;
    ngx_bloom_zone_bits_t  bits;

    static u_char          key[BLOOM_KEY_MAX];

    ngx_bloom_zone_bits(save->zone, save->generation & 1, &bits);

    cursor = 0;
    room = 0;

    while (bloom_exceptions_next(&bits.exceptions, &cursor, &exception, key)) {

        if (ngx_bloom_save_put(save, &exception, &room) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (save->image.exceptions == 0) {
        return NGX_OK;
    }

    size = bloom_image_exceptions_padded(&save->image);
    data = realloc(save->data, size);

    save->exceptions_table =
                    malloc(bloom_image_exceptions_table_size(&save->image));

    if (data != NULL) {
        save->data = data;
    }

    if (data == NULL || save->exceptions_table == NULL) {
        return ngx_bloom_save_fails(save, "cannot be written");
    }

    ngx_memzero(data + save->image.exceptions_size,
                size - save->image.exceptions_size);

    return NGX_OK;
}


/* Adds an exception to the list, which has room for *room bytes. */
static ngx_int_t
ngx_bloom_save_put(ngx_bloom_save_t *save, const bloom_exception_t *exception,
    size_t *room)
{
    size_t   size;
    u_char  *data;

    size = bloom_exception_size(exception);

    if (save->image.exceptions_size + size > BLOOM_IMAGE_EXCEPTIONS_MAX) {
        ngx_set_errno(EFBIG);
        return ngx_bloom_save_fails(save, "cannot be written, because the "
                                    "removed keys have too many bytes; load an "
                                    "image without these keys");
    }

    if (*room - save->image.exceptions_size < size) {
        data = realloc(save->data, 2 * *room + size);

        if (data == NULL) {
            return ngx_bloom_save_fails(save, "cannot be written");
        }

        save->data = data;
        *room = 2 * *room + size;
    }

    (void) bloom_exception_write(exception, save->data
                                 + save->image.exceptions_size);

    bloom_exception_count(&save->image, exception);

    return NGX_OK;
}


/* Saves the exceptions. */
static ngx_int_t
ngx_bloom_save_exceptions(ngx_bloom_save_t *save)
{
    size_t    len;
    u_char   *data;
    uint64_t  i, offset;

    offset = bloom_image_exceptions_part(&save->image).data;
    data = save->data;

    for (i = 0; i < bloom_image_exceptions_chunks(&save->image); i++) {
        len = bloom_image_exceptions_chunk_size(&save->image, i);

        bloom_image_seal_exceptions_chunk(&save->image, i, data,
                                          save->exceptions_table);

        if (ngx_bloom_io_write_slice(save->fd, data, len, offset,
                                     &save->unsynced)
            != NGX_OK)
        {
            return ngx_bloom_save_fails(save, "cannot be written");
        }

        data += BLOOM_IMAGE_CHUNK;
        offset += BLOOM_IMAGE_CHUNK;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_save_finish(ngx_bloom_save_t *save)
{
    u_char      header[BLOOM_IMAGE_PAGE];
    size_t      at;
    ngx_uint_t  bank;

    if (save->image.exceptions != 0) {
        bloom_image_seal_exceptions_table(&save->image, save->exceptions_table);

        if (ngx_bloom_io_write(save->fd, save->exceptions_table,
                               bloom_image_exceptions_table_size(&save->image),
                               bloom_image_exceptions_part(&save->image).table)
            != NGX_OK)
        {
            return ngx_bloom_save_fails(save, "cannot be written");
        }
    }

    bloom_image_seal_table(&save->image, save->table);

    /* keys that were added meanwhile may be in the file */

    if (save->image.geometry.slices == 0) {
        save->image.items = bloom_growth_items(&save->image.geometry,
                                               save->written);
    }

    bloom_image_encode(&save->image, header);

    if (save->image.flags & BLOOM_IMAGE_RING) {
        bloom_image_put_ring(&save->image, &save->ring, header);
    }

    if (save->image.origin_len != 0) {

        /* keep the origin of an imported image, so that it can be exported */

        bank = save->generation & 1;
        at = bloom_image_origin_at(&save->image);

        ngx_memcpy(header + at, save->zone->sh->bank[bank].header + at,
                   save->image.origin_len);
        bloom_image_encode_again(header);
    }

    save->checksum = bloom_image_checksum(header);

    if (ngx_bloom_io_write(save->fd, save->table,
                           bloom_image_table_size(&save->image),
                           BLOOM_IMAGE_PAGE)
        != NGX_OK
        || ngx_bloom_io_write(save->fd, header, BLOOM_IMAGE_PAGE, 0) != NGX_OK
        || ngx_bloom_io_sync(save->fd) != NGX_OK
        || ngx_bloom_io_sync(save->zone->state->fd) != NGX_OK
        || ngx_bloom_save_place(save) != NGX_OK)
    {
        return ngx_bloom_save_fails(save, "cannot be written");
    }

    save->tmp[0] = '\0';

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_save_place(ngx_bloom_save_t *save)
{
    return save->kind == NGX_BLOOM_TASK_CHECKPOINT
           ? ngx_bloom_checkpoint_place(save->zone, &save->point,
                                        save->checksum, save->tmp, save->name)
           : ngx_bloom_io_rename(save->zone->state->dir, save->tmp, save->name);
}


void
ngx_bloom_save_report(ngx_bloom_save_t *save, ngx_bloom_result_t *result)
{
    const char        *remedy;
    ngx_bloom_zone_t  *zone;

    zone = save->zone;

    ngx_time_update();

    result->outcome = save->damaged ? NGX_BLOOM_LACKS : NGX_BLOOM_FAILED;

    if (save->err != 0) {
        remedy = (save->err == ENOSPC || save->err == EDQUOT)
                 ? "free space on its disk" : "correct that";

        ngx_bloom_print(result->message, sizeof(result->message),
                        "\"%V/%s\" %s (%d: %s); %s, and try again",
                        &zone->state->path, save->tmp, save->error, save->err,
                        strerror(save->err), remedy);

    } else {
        ngx_bloom_print(result->message, sizeof(result->message),
                        "\"%V/%s\" %s", &zone->state->path, save->tmp,
                        save->error);
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "bloom zone \"%V\": %s",
                  &zone->name, result->message);
}


void
ngx_bloom_save_end(ngx_bloom_save_t *save)
{
    if (save->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(save->fd);
        save->fd = NGX_INVALID_FILE;

        if (save->tmp[0] != '\0') {
            (void) ngx_bloom_io_remove(save->zone->state->dir, save->tmp);
        }
    }

    free(save->buf);
    free(save->table);
    free(save->data);
    free(save->exceptions_table);

    save->buf = NULL;
    save->table = NULL;
    save->data = NULL;
    save->exceptions_table = NULL;
}


static ngx_int_t
ngx_bloom_save_fails(ngx_bloom_save_t *save, const char *error)
{
    save->err = ngx_errno;
    save->error = error;

    return NGX_ERROR;
}
