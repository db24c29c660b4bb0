/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A file counts as replaced if its device, its inode or the time of its last
 * change is another one.
 */

#include "ngx_bloom_watch.h"
#include "ngx_bloom_log.h"
#include "ngx_bloom_task.h"


void
ngx_bloom_watch(ngx_bloom_zone_t *zone, ngx_msec_t *looked)
{
    if (zone->watch == 0
        || ngx_current_msec - *looked < zone->watch
        || ngx_strcmp(zone->file.name.data, zone->sh->file_name) != 0)
    {
        return;
    }

    *looked = ngx_current_msec;

    (void) ngx_bloom_watch_file(zone);
}


ngx_int_t
ngx_bloom_watch_file(ngx_bloom_zone_t *zone)
{
    uint64_t               ticket;
    const char            *error;
    ngx_bloom_shctx_t     *sh;
    ngx_bloom_image_id_t   id;

    sh = zone->sh;

    if (!ngx_bloom_watch_id(sh->file_name, &id)) {
        ngx_bloom_log_missing_file(zone, ngx_errno);
        return NGX_DECLINED;
    }

    sh->missing = 0;

    if ((ngx_bloom_image_file_same(&id, &sh->file_id)
         && ngx_bloom_zone_serves_form(zone, sh))
        || ngx_bloom_image_file_same(&id, &sh->refused))
    {
        return NGX_DECLINED;
    }

    return ngx_bloom_task_request(zone, NGX_BLOOM_TASK_LOAD, NULL, 0, &ticket,
                                  &error);
}


ngx_uint_t
ngx_bloom_watch_id(u_char *name, ngx_bloom_image_id_t *id)
{
    struct stat  st;

    if (stat((char *) name, &st) == -1) {
        return 0;
    }

    id->device = st.st_dev;
    id->inode = st.st_ino;
    id->sec = st.st_ctim.tv_sec;
    id->nsec = st.st_ctim.tv_nsec;

    return 1;
}


ngx_uint_t
ngx_bloom_watch_is_loaded(ngx_bloom_zone_t *zone)
{
    ngx_bloom_image_id_t  id;

    return ngx_bloom_watch_id(zone->sh->file_name, &id)
           && ngx_bloom_image_file_same(&id, &zone->sh->loads);
}
