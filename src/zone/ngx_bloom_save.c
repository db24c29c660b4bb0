
/*
 * Chunks are copied before they are written, since bits are added meanwhile and
 * the checksum has to fit.
 */

#include "ngx_bloom_save.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_state_files.h"

#include <sys/random.h>


static ngx_int_t ngx_bloom_save_finish(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_fails(ngx_bloom_save_t *save,
    const char *error);
static u_char *ngx_bloom_save_base(ngx_bloom_zone_t *zone, ngx_uint_t bank);


ngx_int_t
ngx_bloom_save_begin(ngx_bloom_save_t *save, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, uint64_t ticket)
{
    ngx_uint_t          bank;
    bloom_image_t      *image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    ngx_memzero(save, sizeof(ngx_bloom_save_t));

    save->zone = zone;
    save->kind = kind;
    save->fd = NGX_INVALID_FILE;
    save->generation = sh->generation;
    save->position = sh->applied;

    bank = save->generation & 1;
    image = &save->image;

    *image = sh->bank[bank].image;
    image->items = bloom_geometry_items(&image->geometry,
                                        sh->bank[bank].bits_set);
    image->flags |= BLOOM_IMAGE_ESTIMATED;

    if (kind == NGX_BLOOM_TASK_CHECKPOINT) {
        ngx_bloom_state_files_checkpoint(zone->state,
                                         ngx_bloom_save_base(zone, bank),
                                         save->position, save->name);

    } else {
        image->created = ngx_bloom_time();

        if (getrandom(image->build_id, BLOOM_IMAGE_BUILD_ID_LEN, 0) == -1) {
            return ngx_bloom_save_fails(save, "has no build id");
        }

        ngx_bloom_state_files_snapshot(zone->state, ticket, save->name);
    }

    ngx_bloom_state_name(zone->state, save->tmp, "save.%P.tmp", ngx_pid);

    save->buf = malloc(BLOOM_IMAGE_CHUNK);
    save->table = malloc(bloom_image_table_size(image));

    if (save->buf == NULL || save->table == NULL) {
        return ngx_bloom_save_fails(save, "cannot be written");
    }

    save->fd = ngx_bloom_io_open(save->tmp, O_RDWR|O_CREAT|O_TRUNC);

    if (save->fd == NGX_INVALID_FILE) {
        return ngx_bloom_save_fails(save, "cannot be made");
    }

    return NGX_OK;
}


/* Returns the build id by which a checkpoint is found again. */
static u_char *
ngx_bloom_save_base(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    return (zone->file.name.len != 0 || zone->sh->uploaded)
           ? zone->sh->bank[bank].image.build_id : NULL;
}


ngx_int_t
ngx_bloom_save_step(ngx_bloom_save_t *save)
{
    size_t              len;
    uint64_t            offset;
    ngx_bloom_shctx_t  *sh;

    sh = save->zone->sh;

    if (save->chunk == bloom_image_chunks(&save->image)) {
        return ngx_bloom_save_finish(save);
    }

    /* a copy: bits are added meanwhile, and the checksum is to fit */

    offset = save->chunk * BLOOM_IMAGE_CHUNK;
    len = bloom_image_chunk_size(&save->image, save->chunk);

    ngx_memcpy(save->buf, ngx_bloom_zone_bank(save->zone,
                                              save->generation & 1) + offset,
               len);

    __atomic_thread_fence(__ATOMIC_ACQUIRE);

    if (__atomic_load_n(&sh->generation, __ATOMIC_RELAXED)
        != save->generation)
    {
        return NGX_DECLINED;
    }

    bloom_image_seal_chunk(&save->image, save->chunk, save->buf, save->table);

    offset += BLOOM_IMAGE_PAGE + bloom_image_table_size(&save->image);

    if (ngx_bloom_io_write(save->fd, save->buf, len, offset) != NGX_OK) {
        return ngx_bloom_save_fails(save, "cannot be written");
    }

    save->chunk++;

    return NGX_AGAIN;
}


static ngx_int_t
ngx_bloom_save_finish(ngx_bloom_save_t *save)
{
    u_char      header[BLOOM_IMAGE_PAGE];
    ngx_uint_t  bank;

    bloom_image_seal_table(&save->image, save->table);
    bloom_image_encode(&save->image, header);

    if (save->image.origin_len != 0) {

        /* what the image was imported from, for whoever exports it again */

        bank = save->generation & 1;

        ngx_memcpy(bloom_image_origin(&save->image, header),
                   bloom_image_origin(&save->image,
                                      save->zone->sh->bank[bank].header),
                   save->image.origin_len);
        bloom_image_encode_again(header);
    }

    if (ngx_bloom_io_write(save->fd, save->table,
                           bloom_image_table_size(&save->image),
                           BLOOM_IMAGE_PAGE)
        != NGX_OK
        || ngx_bloom_io_write(save->fd, header, BLOOM_IMAGE_PAGE, 0) != NGX_OK
        || ngx_bloom_io_sync(save->fd) != NGX_OK
        || ngx_bloom_io_rename(save->zone->state->path.data, save->tmp,
                               save->name)
           != NGX_OK)
    {
        return ngx_bloom_save_fails(save, "cannot be written");
    }

    save->tmp[0] = '\0';

    if (save->kind == NGX_BLOOM_TASK_CHECKPOINT) {
        save->zone->sh->checkpoint = save->position;

        ngx_bloom_state_files_remove(save->zone->state, "checkpoint.",
                                     save->name, 0);
    }

    return NGX_OK;
}


void
ngx_bloom_save_end(ngx_bloom_save_t *save)
{
    if (save->fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(save->fd);
        save->fd = NGX_INVALID_FILE;

        if (save->tmp[0] != '\0') {
            (void) ngx_bloom_io_remove(save->tmp);
        }
    }

    free(save->buf);
    free(save->table);

    save->buf = NULL;
    save->table = NULL;
}


static ngx_int_t
ngx_bloom_save_fails(ngx_bloom_save_t *save, const char *error)
{
    save->err = ngx_errno;
    save->error = error;

    return NGX_ERROR;
}
