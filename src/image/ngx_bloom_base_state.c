/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_base_state.h"
#include "ngx_bloom_base_file.h"
#include "ngx_bloom_io.h"


ngx_int_t
ngx_bloom_base_state_directory(ngx_bloom_zone_t *zone, ngx_uint_t make)
{
    u_char            *path, error[NGX_MAX_ERROR_STR];
    ngx_fd_t           dir;
    ngx_int_t          rc;
    ngx_log_t         *log;
    ngx_bloom_user_t   user;

    if (zone->state_path.len == 0 || !zone->journal) {
        return NGX_OK;
    }

    log = zone->shm_zone->shm.log;
    user = ngx_bloom_unprivileged_workers(zone->ccf);

    path = ngx_bloom_directory_path(zone->pool, &zone->state_path, &zone->name);

    if (path == NULL) {
        return NGX_ERROR;
    }

    /* earlier configurations may have added keys, even if this one does not */

    rc = ngx_bloom_directory_open(&zone->state_path, path, &user,
                                  make && zone->adds, &dir, error);

    switch (rc) {

    case NGX_OK:
        zone->state = ngx_palloc(zone->pool, sizeof(ngx_bloom_state_t));

        if (zone->state == NULL) {
            (void) ngx_close_file(dir);
            return NGX_ERROR;
        }

        ngx_bloom_state_init(zone->state, path, dir);
        zone->state->expire = zone->expire;

        return NGX_OK;

    case NGX_DECLINED:
        return NGX_OK;

    default:
        ngx_log_error(ngx_bloom_zone_level(zone), log, 0,
                      "%s; bloom zone \"%V\" keeps added keys there",
                      error, &zone->name);

        zone->state_error = NGX_BLOOM_BASE_NO_DIRECTORY;

        return NGX_ERROR;
    }
}


ngx_int_t
ngx_bloom_base_state_open(ngx_bloom_zone_t *zone)
{
    ngx_bloom_failure_t  failure;

    if (ngx_bloom_state_open(zone->state, &failure) != NGX_OK) {
        ngx_bloom_base_state_log(zone, &failure);
        return NGX_ERROR;
    }

    ngx_bloom_zone_use(zone);

    /* from now on, the others leave room for what they remove */

    ngx_bloom_zone_may_remove(zone);

    if (!zone->state->alone) {
        return NGX_OK;
    }

    if (ngx_bloom_base_file_start(zone->state, &failure) != NGX_OK) {
        failure.err = ngx_errno;
        ngx_bloom_base_state_log(zone, &failure);
        return NGX_ERROR;
    }

    if (zone->state->doubt != NULL) {
        ngx_log_error(NGX_LOG_ALERT, zone->shm_zone->shm.log, 0,
                      "in the directory \"%V\" of bloom zone \"%V\", %s: keys "
                      "that were added or removed up to now may be lost; "
                      "restore the whole directory from a backup, or load an "
                      "image that was built after now",
                      &zone->state->path, &zone->name, zone->state->doubt);
    }

    return NGX_OK;
}


void
ngx_bloom_base_state_reply(ngx_bloom_zone_t *zone, ngx_bloom_reply_t *reply)
{
    ngx_bloom_state_t  *state;

    state = zone->state;
    reply->rc = NGX_OK;

    if (state == NULL) {
        return;
    }

    ngx_bloom_state_ready(state);

    reply->value = state->instance;
    reply->fd[0] = state->fd;
    reply->fd[1] = state->lock;
}


void
ngx_bloom_base_state_take(ngx_bloom_zone_t *zone, ngx_bloom_reply_t *reply)
{
    ngx_bloom_state_t  *state;

    state = zone->state;

    if (state == NULL) {
        return;
    }

    if (reply->fd[0] != NGX_INVALID_FILE && reply->fd[1] != NGX_INVALID_FILE)
    {
        state->fd = reply->fd[0];
        state->lock = reply->fd[1];
        state->instance = reply->value % NGX_BLOOM_INSTANCES;
        return;
    }

    ngx_bloom_io_close(&reply->fd[0]);
    ngx_bloom_io_close(&reply->fd[1]);
    ngx_bloom_state_close(state);

    zone->state = NULL;
    zone->state_error = NGX_BLOOM_BASE_NO_DIRECTORY;
}


void
ngx_bloom_base_state_log(ngx_bloom_zone_t *zone, ngx_bloom_failure_t *failure)
{
    u_char  then[256];

    if (failure->holder != 0) {
        ngx_bloom_print(then, sizeof(then),
                        ": process %P has locked it; find out which process "
                        "that is, and end it", failure->holder);

    } else if (failure->then != NULL) {
        ngx_bloom_print(then, sizeof(then), ": %s", failure->then);

    } else {
        ngx_bloom_print(then, sizeof(then), "%s",
                        ngx_bloom_io_advice(failure->err));
    }

    ngx_log_error(ngx_bloom_zone_level(zone),
                  zone->shm_zone->shm.log, failure->err,
                  "cannot %s \"%V/%s\" in the state directory of bloom zone "
                  "\"%V\"%s", failure->what, &zone->state->path,
                  failure->name, &zone->name, then);
}
