
/*
 * A file's name says all about it, so that finding one means reading the
 * directory.
 */

#include "ngx_bloom_state_files.h"
#include "ngx_bloom_io.h"

#include <dirent.h>


static u_char *ngx_bloom_state_files_hex(u_char *p, u_char *build);


u_char *
ngx_bloom_state_files_checkpoint(ngx_bloom_state_t *state, u_char *build,
    uint64_t position, u_char *path)
{
    u_char  hex[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1];

    *ngx_bloom_state_files_hex(hex, build) = '\0';

    return ngx_bloom_state_name(state, path, "checkpoint.%s.%016xL.bloom", hex,
                                position);
}


u_char *
ngx_bloom_state_files_upload(ngx_bloom_state_t *state, u_char *build,
    u_char *path)
{
    u_char  hex[2 * BLOOM_IMAGE_BUILD_ID_LEN + 1];

    *ngx_bloom_state_files_hex(hex, build) = '\0';

    return ngx_bloom_state_name(state, path, "upload.%s.bloom", hex);
}


u_char *
ngx_bloom_state_files_snapshot(ngx_bloom_state_t *state, uint64_t ticket,
    u_char *path)
{
    return ngx_bloom_state_name(state, path, "snapshot.%P.%uL.bloom", ngx_pid,
                                ticket);
}


static u_char *
ngx_bloom_state_files_hex(u_char *p, u_char *build)
{
    static u_char  empty[BLOOM_IMAGE_BUILD_ID_LEN];

    return ngx_hex_dump(p, build != NULL ? build : empty,
                        BLOOM_IMAGE_BUILD_ID_LEN);
}


u_char *
ngx_bloom_state_files_name(u_char *path)
{
    return (u_char *) strrchr((char *) path, '/') + 1;
}


ngx_int_t
ngx_bloom_state_files_find(ngx_bloom_state_t *state, u_char *build,
    u_char *path, uint64_t *position)
{
    DIR            *dir;
    char           *end;
    u_char          prefix[64], *p;
    size_t          len;
    uint64_t        at;
    ngx_int_t       rc;
    struct dirent  *entry;

    p = ngx_cpymem(prefix, "checkpoint.", sizeof("checkpoint.") - 1);
    p = ngx_bloom_state_files_hex(p, build);
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

        ngx_bloom_state_name(state, path, "%s", entry->d_name);
        *position = at;
        rc = NGX_OK;
    }

    (void) closedir(dir);

    return rc;
}


void
ngx_bloom_state_files_remove(ngx_bloom_state_t *state, const char *prefix,
    u_char *keep, time_t age)
{
    DIR            *dir;
    u_char          path[NGX_MAX_PATH];
    struct stat     st;
    struct dirent  *entry;

    if (keep != NULL) {
        keep = ngx_bloom_state_files_name(keep);
    }

    dir = opendir((char *) state->path.data);
    if (dir == NULL) {
        return;
    }

    while ((entry = readdir(dir)) != NULL) {

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0
            || (keep != NULL && ngx_strcmp(entry->d_name, keep) == 0))
        {
            continue;
        }

        ngx_bloom_state_name(state, path, "%s", entry->d_name);

        if (age != 0
            && (stat((char *) path, &st) == -1
                || st.st_mtime + age > ngx_time()))
        {
            continue;
        }

        if (ngx_bloom_io_remove(path) != NGX_OK) {
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                          "\"%s\" cannot be removed", path);
        }
    }

    (void) closedir(dir);
}
