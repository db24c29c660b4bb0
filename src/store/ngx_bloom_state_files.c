/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The name of a file says what it is, and the file "base" which uploads and
 * checkpoints are used.
 */

#include "ngx_bloom_state_files.h"
#include "ngx_bloom_io.h"


#include <sys/file.h>
#include <sys/random.h>


static u_char *ngx_bloom_state_files_hex(u_char *p, const u_char *build);
static ngx_uint_t ngx_bloom_state_files_image(const char *name);
static ngx_uint_t ngx_bloom_state_files_begins(const char *name,
    const char *prefix);
static ngx_uint_t ngx_bloom_state_files_ends(const char *name,
    const char *end);
static ngx_uint_t ngx_bloom_state_files_number(const char *name,
    const char *kind, const char *ext, uint64_t *instance);
static ngx_uint_t ngx_bloom_state_files_used(ngx_bloom_state_t *state,
    const u_char *name);
static ngx_uint_t ngx_bloom_state_files_left(ngx_bloom_state_t *state,
    const char *name, ngx_bloom_state_files_e which);
static void ngx_bloom_state_files_unlink(ngx_bloom_state_t *state,
    u_char *name);


u_char *
ngx_bloom_state_files_checkpoint(const u_char *build, uint64_t position,
    u_char *path)
{
    u_char  hex[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1];

    *ngx_bloom_state_files_hex(hex, build) = '\0';

    return ngx_bloom_state_name(path, "checkpoint.%s.%016xL.bloom", hex,
                                position);
}


u_char *
ngx_bloom_state_files_upload(const u_char *build, u_char *path)
{
    u_char  hex[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1];

    *ngx_bloom_state_files_hex(hex, build) = '\0';

    return ngx_bloom_state_name(path, "upload.%s.bloom", hex);
}


ngx_int_t
ngx_bloom_state_files_temporary(ngx_bloom_state_t *state, const char *kind,
    const char *ext, u_char *path)
{
    uint64_t  random;

    if (getrandom(&random, sizeof(uint64_t), 0) == -1) {
        return NGX_ERROR;
    }

    ngx_bloom_state_name(path, "%s.%ui.%016xL.%s", kind,
                         state->instance, random, ext);

    return NGX_OK;
}


static u_char *
ngx_bloom_state_files_hex(u_char *p, const u_char *build)
{
    return ngx_hex_dump(p, (u_char *) build, BLOOM_IMAGE_BUILD_ID_LEN);
}


u_char *
ngx_bloom_state_files_path(ngx_bloom_state_t *state, u_char *name,
    u_char *path)
{
    ngx_bloom_print(path, NGX_MAX_PATH, "%V/%s", &state->path, name);

    return path;
}


u_char *
ngx_bloom_state_files_name(u_char *path)
{
    return (u_char *) strrchr((char *) path, '/') + 1;
}


/* Returns 1 if a name is that of an upload or a checkpoint. */
static ngx_uint_t
ngx_bloom_state_files_image(const char *name)
{
    return (ngx_bloom_state_files_begins(name, "checkpoint.")
            || ngx_bloom_state_files_begins(name, "upload."))
           && ngx_bloom_state_files_ends(name, ".bloom");
}


ngx_uint_t
ngx_bloom_state_files_images(ngx_bloom_state_t *state)
{
    DIR            *dir;
    ngx_uint_t      found;
    struct dirent  *entry;

    dir = ngx_bloom_io_list(state->dir);
    if (dir == NULL) {
        return 0;
    }

    found = 0;

    while ((entry = readdir(dir)) != NULL) {
        found |= ngx_bloom_state_files_image(entry->d_name);
    }

    (void) closedir(dir);

    return found;
}


ngx_int_t
ngx_bloom_state_files_aside(ngx_bloom_state_t *state)
{
    DIR            *dir;
    u_char          from[NGX_MAX_PATH], to[NGX_MAX_PATH];
    ngx_int_t       rc;
    struct dirent  *entry;

    dir = ngx_bloom_io_list(state->dir);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_OK;

    while (rc == NGX_OK && (entry = readdir(dir)) != NULL) {

        if (ngx_bloom_state_files_image(entry->d_name)) {
            ngx_bloom_state_name(from, "%s", entry->d_name);
            ngx_bloom_state_name(to, "damaged.%s", entry->d_name);

            rc = ngx_bloom_io_rename(state->dir, from, to);
        }
    }

    (void) closedir(dir);

    return rc;
}


void
ngx_bloom_state_files_sweep(ngx_bloom_state_t *state, const bloom_base_t *base)
{
    DIR            *dir;
    u_char          keep[3][NGX_MAX_PATH], name[NGX_MAX_PATH];
    ngx_uint_t      i;
    struct dirent  *entry;

    ngx_bloom_state_files_checkpoint(base->build_id,
                                     base->checkpoint[0].position, keep[0]);
    ngx_bloom_state_files_checkpoint(base->build_id,
                                     base->checkpoint[1].position, keep[1]);
    ngx_bloom_state_files_upload(base->build_id, keep[2]);

    dir = ngx_bloom_io_list(state->dir);
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {

        if (!ngx_bloom_state_files_image(entry->d_name)) {
            continue;
        }

        ngx_bloom_state_name(name, "%s", entry->d_name);

        for (i = 0; i < 3 && ngx_strcmp(name, keep[i]) != 0; i++) {
            /* void */
        }

        if (i == 3 || (i == 2 && base->kind != BLOOM_BASE_UPLOAD)) {
            ngx_bloom_state_files_unlink(state, name);
        }
    }

    (void) closedir(dir);
}


void
ngx_bloom_state_files_clean(ngx_bloom_state_t *state,
    ngx_bloom_state_files_e which)
{
    DIR            *dir;
    u_char          path[NGX_MAX_PATH];
    struct dirent  *entry;

    dir = ngx_bloom_io_list(state->dir);
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {

        if (ngx_bloom_state_files_left(state, entry->d_name, which)) {
            ngx_bloom_state_name(path, "%s", entry->d_name);
            ngx_bloom_state_files_unlink(state, path);
        }
    }

    (void) closedir(dir);
}


/*
 * Returns 1 if a file is temporary and no process needs it.  A file of another
 * instance is needed as long as that instance lives; its age proves nothing,
 * because clocks jump.  For files of this instance, `which` decides; those that
 * workers use are left to ngx_bloom_state_files_unused().
 */
static ngx_uint_t
ngx_bloom_state_files_left(ngx_bloom_state_t *state, const char *name,
    ngx_bloom_state_files_e which)
{
    uint64_t     instance;
    ngx_uint_t   i, shared;

    static const struct {
        const char  *kind;
        const char  *ext;
        ngx_uint_t   shared;                     /* used by workers */
    } kinds[] = {
        { "save.", ".tmp", 0 },
        { "body.", ".tmp", 1 },
        { "snapshot.", ".bloom", 1 }
    };

    for (i = 0; !ngx_bloom_state_files_begins(name, kinds[i].kind)
                || (!ngx_bloom_state_files_ends(name, kinds[i].ext)); i++)
    {
        if (i == sizeof(kinds) / sizeof(kinds[0]) - 1) {
            return 0;
        }
    }

    shared = kinds[i].shared;

    if (which == NGX_BLOOM_STATE_FILES_ALL) {
        return 1;
    }

    if (!ngx_bloom_state_files_number(name, kinds[i].kind, kinds[i].ext,
                                      &instance))
    {
        return 0;
    }

    if (instance != state->instance) {

        /* read after the name: an instance sets its bit before it writes */

        return (__atomic_load_n(&state->control->instances, __ATOMIC_SEQ_CST)
                & ((uint64_t) 1 << instance)) == 0;
    }

    return !shared && which == NGX_BLOOM_STATE_FILES_OWN;
}


/* Reads the number of the instance from a name "KIND.I.R.EXT".  Returns 1, or 0
 * if the name is not of that form. */
static ngx_uint_t
ngx_bloom_state_files_number(const char *name, const char *kind,
    const char *ext, uint64_t *instance)
{
    char  *end;

    *instance = strtoull(name + ngx_strlen(kind), &end, 10);

    return *instance < NGX_BLOOM_INSTANCES
           && ngx_strlen(end) == sizeof(".0123456789abcdef") - 1
                                 + ngx_strlen(ext);
}


ngx_int_t
ngx_bloom_state_files_use(ngx_fd_t fd)
{
    struct stat  st;

    /* on a file system without locks, a file may be removed while in use */

    if (flock(fd, LOCK_SH|LOCK_NB) == -1 && ngx_errno == EWOULDBLOCK) {
        return NGX_DECLINED;
    }

    return (fstat(fd, &st) == 0 && st.st_nlink == 0) ? NGX_DECLINED : NGX_OK;
}


ngx_uint_t
ngx_bloom_state_files_unused(ngx_bloom_state_t *state, const char *prefix,
    const u_char *keep)
{
    DIR            *dir;
    u_char          name[NGX_MAX_PATH];
    uint64_t        instance;
    ngx_uint_t      used;
    const char     *ext;
    struct dirent  *entry;

    dir = ngx_bloom_io_list(state->dir);
    if (dir == NULL) {
        return 0;
    }

    used = 0;

    while ((entry = readdir(dir)) != NULL) {

        if (!ngx_bloom_state_files_begins(entry->d_name, prefix)) {
            continue;
        }

        ext = strrchr(entry->d_name, '.');

        if (!ngx_bloom_state_files_number(entry->d_name, prefix, ext,
                                          &instance)
            || instance != state->instance
            || (keep != NULL && ngx_strcmp(entry->d_name, keep) == 0))
        {
            continue;
        }

        ngx_bloom_state_name(name, "%s", entry->d_name);

        used += ngx_bloom_state_files_used(state, name);
    }

    (void) closedir(dir);

    return used;
}


/* Removes a file unless a process uses it.  Returns 1 if it is in use. */
static ngx_uint_t
ngx_bloom_state_files_used(ngx_bloom_state_t *state, const u_char *name)
{
    ngx_fd_t    fd;
    ngx_uint_t  used;

    fd = ngx_bloom_io_open(state->dir, name, O_RDONLY);

    used = (fd != NGX_INVALID_FILE && flock(fd, LOCK_EX|LOCK_NB) == -1
            && ngx_errno == EWOULDBLOCK);

    if (!used) {
        ngx_bloom_state_files_unlink(state, (u_char *) name);
    }

    ngx_bloom_io_close(&fd);

    return used;
}


static ngx_uint_t
ngx_bloom_state_files_begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}


static ngx_uint_t
ngx_bloom_state_files_ends(const char *name, const char *end)
{
    return strlen(name) >= strlen(end)
           && strcmp(name + strlen(name) - strlen(end), end) == 0;
}


static void
ngx_bloom_state_files_unlink(ngx_bloom_state_t *state, u_char *name)
{
    if (ngx_bloom_io_remove(state->dir, name) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "\"%V/%s\" cannot be removed; correct the owner and mode "
                      "of its directory, or remove the file yourself",
                      &state->path, name);
    }
}
