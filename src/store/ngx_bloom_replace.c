/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Each step of a replacement can be repeated, so any process can finish a
 * replacement that another one has left unfinished.
 */

#include "ngx_bloom_replace.h"
#include "ngx_bloom_io.h"


/* How long to wait for the lock `history`, ms.  A replacement takes less. */
#define NGX_BLOOM_REPLACE_WAIT  10000


static ngx_int_t ngx_bloom_replace_finish(ngx_bloom_state_t *state);
static ngx_int_t ngx_bloom_replace_found(ngx_bloom_state_t *state,
    uint64_t *base, uint64_t *end);


ngx_uint_t
ngx_bloom_replace_allowed(ngx_bloom_state_t *state, uint64_t begin)
{
    return __atomic_load_n(&state->control->instances, __ATOMIC_SEQ_CST)
           == (uint64_t) 1 << state->instance
           && state->control->begin == begin;
}


ngx_int_t
ngx_bloom_replace(ngx_bloom_state_t *state, const u_char *tmp, uint64_t begin,
    uint64_t base, uint64_t end)
{
    u_char                name[NGX_MAX_PATH];
    ngx_int_t             rc;
    ngx_err_t             err;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_lock(&control->history, 0) != NGX_OK) {
        return NGX_DECLINED;
    }

    rc = NGX_DECLINED;

    /* an instance that appears from now on waits for the lock before it reads
     * the journal */

    if (ngx_bloom_replace_finish(state) == NGX_OK
        && ngx_bloom_replace_allowed(state, begin))
    {
        ngx_bloom_state_name(name, "compact.%016xL.%016xL", base, end);

        rc = ngx_bloom_io_rename(state->dir, tmp, name);

        if (rc == NGX_OK) {
            rc = ngx_bloom_replace_finish(state);
        }
    }

    err = ngx_errno;
    ngx_bloom_unlock(&control->history);
    ngx_set_errno(err);

    return rc;
}


ngx_int_t
ngx_bloom_replace_settle(ngx_bloom_state_t *state)
{
    ngx_int_t             rc;
    ngx_err_t             err;
    ngx_bloom_control_t  *control;

    control = state->control;

    if (ngx_bloom_lock(&control->history, NGX_BLOOM_REPLACE_WAIT) != NGX_OK) {
        ngx_set_errno(NGX_EBUSY);
        return NGX_ERROR;
    }

    rc = ngx_bloom_replace_finish(state);

    err = ngx_errno;
    ngx_bloom_unlock(&control->history);
    ngx_set_errno(err);

    return rc;
}


/* Finishes a replacement.  The caller holds the lock control->history. */
static ngx_int_t
ngx_bloom_replace_finish(ngx_bloom_state_t *state)
{
    u_char     from[NGX_MAX_PATH], to[NGX_MAX_PATH];
    uint64_t   base, end;
    ngx_int_t  rc;

    rc = ngx_bloom_replace_found(state, &base, &end);

    if (rc != NGX_OK) {
        return rc == NGX_DECLINED ? NGX_OK : NGX_ERROR;
    }

    /* the new name must be on disk before anything is removed */

    if (ngx_bloom_io_sync_directory(state->dir) != NGX_OK) {
        return NGX_ERROR;
    }

    __atomic_store_n(&state->control->begin, base, __ATOMIC_SEQ_CST);

    ngx_bloom_state_name(from, "compact.%016xL.%016xL", base, end);
    ngx_bloom_segment_name(to, base);

    /* writing the mark synchronises the directory too */

    if (ngx_bloom_segment_remove(state, end) != NGX_OK
        || ngx_bloom_state_write_mark(state, "dropped",
                                      state->control->dropped, base)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_bloom_io_rename(state->dir, from, to);
}


/* Finds compact.BASE.END.  Returns NGX_OK, NGX_DECLINED if no such file exists,
 * or NGX_ERROR with errno. */
static ngx_int_t
ngx_bloom_replace_found(ngx_bloom_state_t *state, uint64_t *base,
    uint64_t *end)
{
    int             len;
    DIR            *dir;
    ngx_int_t       rc;
    struct dirent  *entry;

    dir = ngx_bloom_io_list(state->dir);
    if (dir == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_DECLINED;

    while (rc == NGX_DECLINED && (entry = readdir(dir)) != NULL) {

        if (strncmp(entry->d_name, "compact.", 8) == 0
            && strlen(entry->d_name) == 41
            && sscanf(entry->d_name + 8, "%16" SCNx64 ".%16" SCNx64 "%n", base,
                      end, &len) == 2
            && len == 33)
        {
            rc = NGX_OK;
        }
    }

    (void) closedir(dir);

    return rc;
}
