
#include "ngx_bloom_save.h"
#include "ngx_bloom_io.h"

#include <dirent.h>
#include <sys/random.h>


u_char  ngx_bloom_save_empty[BLOOM_IMAGE_BUILD_ID_LEN];


static ngx_int_t ngx_bloom_save_finish(ngx_bloom_save_t *save);
static ngx_int_t ngx_bloom_save_fails(ngx_bloom_save_t *save,
    const char *error);
static u_char *ngx_bloom_save_base(ngx_bloom_zone_t *zone, ngx_uint_t bank);


ngx_int_t
ngx_bloom_save_begin(ngx_bloom_save_t *save, ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, uint64_t ticket)
{
    u_char              hex[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1], *p;
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
    image->items = bloom_geometry_items(&image->geometry, sh->bank[bank].ones);
    image->flags |= BLOOM_IMAGE_ESTIMATED;

    if (kind == NGX_BLOOM_TASK_CHECKPOINT) {
        p = ngx_hex_dump(hex, ngx_bloom_save_base(zone, bank),
                         BLOOM_IMAGE_BUILD_ID_LEN);
        *p = '\0';

        ngx_bloom_state_name(zone->state, save->name,
                             "checkpoint.%s.%016xL.bloom", hex,
                             save->position);

    } else {
        image->created = ngx_bloom_time();

        if (getrandom(image->build_id, BLOOM_IMAGE_BUILD_ID_LEN, 0) == -1) {
            return ngx_bloom_save_fails(save, "has no build id");
        }

        ngx_bloom_state_name(zone->state, save->name, "snapshot.%P.%uL.bloom",
                             ngx_pid, ticket);
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


/* By which image a checkpoint is found again. */
static u_char *
ngx_bloom_save_base(ngx_bloom_zone_t *zone, ngx_uint_t bank)
{
    return (zone->file.name.len != 0 || zone->sh->uploaded)
           ? zone->sh->bank[bank].image.build_id : ngx_bloom_save_empty;
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
    u_char      header[BLOOM_IMAGE_PAGE], *name;
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

        name = (u_char *) strrchr((char *) save->name, '/') + 1;
        ngx_bloom_save_remove(save->zone->state, "checkpoint.", name, 0);
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


ngx_int_t
ngx_bloom_save_find(ngx_bloom_state_t *state, u_char *build, u_char *name,
    uint64_t *position)
{
    DIR            *dir;
    char           *end;
    u_char          prefix[64], *p;
    size_t          len;
    uint64_t        at;
    ngx_int_t       rc;
    struct dirent  *entry;

    p = ngx_cpymem(prefix, "checkpoint.", sizeof("checkpoint.") - 1);
    p = ngx_hex_dump(p, build, BLOOM_IMAGE_BUILD_ID_LEN);
    *p++ = '.';
    len = p - prefix;

    dir = opendir((char *) state->path.data);
    if (dir == NULL) {
        return NGX_DECLINED;
    }

    rc = NGX_DECLINED;

    while ((entry = readdir(dir)) != NULL) {

        if (ngx_strncmp(entry->d_name, prefix, len) != 0) {
            continue;
        }

        at = strtoull(entry->d_name + len, &end, 16);

        if (strcmp(end, ".bloom") != 0 || (rc == NGX_OK && at <= *position)) {
            continue;
        }

        ngx_bloom_state_name(state, name, "%s", entry->d_name);
        *position = at;
        rc = NGX_OK;
    }

    (void) closedir(dir);

    return rc;
}


void
ngx_bloom_save_remove(ngx_bloom_state_t *state, const char *prefix,
    u_char *keep, time_t age)
{
    DIR            *dir;
    u_char          name[NGX_MAX_PATH];
    struct stat     st;
    struct dirent  *entry;

    dir = opendir((char *) state->path.data);
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0
            || (keep != NULL && strcmp(entry->d_name, (char *) keep) == 0))
        {
            continue;
        }

        ngx_bloom_state_name(state, name, "%s", entry->d_name);

        if (age != 0
            && (stat((char *) name, &st) == -1
                || st.st_mtime + age > ngx_time()))
        {
            continue;
        }

        if (ngx_bloom_io_remove(name) != NGX_OK) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                          "\"%s\" cannot be removed", name);
        }
    }

    (void) closedir(dir);
}


u_char *
ngx_bloom_save_upload_name(ngx_bloom_state_t *state, u_char *build,
    u_char *name)
{
    u_char  hex[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1];

    *ngx_hex_dump(hex, build, BLOOM_IMAGE_BUILD_ID_LEN) = '\0';

    return ngx_bloom_state_name(state, name, "upload.%s.bloom", hex);
}
