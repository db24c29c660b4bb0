/* SPDX-License-Identifier: BSD-2-Clause */

#include "ngx_bloom_load_checks.h"
#include "ngx_bloom_as_of.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_memory.h"
#include "ngx_bloom_unprivileged.h"

#include <grp.h>


ngx_int_t
ngx_bloom_load_unopened(ngx_bloom_load_t *load)
{
    char               error[512];
    u_char             path[NGX_MAX_PATH], *what, owner[NGX_BLOOM_USER_LEN];
    struct stat        st;
    struct group      *group;
    ngx_core_conf_t   *ccf;

    ccf = load->zone->ccf;

    if (load->about == NULL && load->file.err == NGX_ENOENT) {
        return ngx_bloom_load_refuse(load, NGX_ENOENT,
                                     "cannot be opened; put an image there");
    }

    what = (load->about == NULL && load->file.err == NGX_EACCES)
           ? ngx_bloom_image_file_barrier(&load->file.name, path) : NULL;

    if (what == NULL || stat((char *) what, &st) == -1) {
        return ngx_bloom_load_refuse(load, load->file.err, load->file.error);
    }

    group = getgrgid(st.st_gid);

    snprintf(error, sizeof(error),
             "%s: correct the owner or the mode of \"%s\", which user \"%s\" "
             "cannot access: it has user %s, group %u (%s) and mode %04o",
             load->file.error, (char *) what,
             ccf->username ? ccf->username : "unknown",
             (char *) ngx_bloom_unprivileged_called(owner, st.st_uid),
             (unsigned) st.st_gid, group ? group->gr_name : "unknown",
             (unsigned) (st.st_mode & 07777));

    return ngx_bloom_load_refuse(load, load->file.err, error);
}


ngx_int_t
ngx_bloom_load_admit(ngx_bloom_load_t *load)
{
    uint64_t           size;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;
    size = ngx_bloom_layers_need(&load->image, 0, zone->removals_room);

    if (!ngx_bloom_layers_extensible(&load->image)) {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_NO_LAYER);
    }

    if (size > zone->image_room) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_NO_ROOM, 0,
                                    "bloom zone \"%V\" is too small: it has "
                                    "room for an image of %uzk, and this one "
                                    "has %uLk; %swrite \"zone=%V:%uzk\"",
                                    &zone->name, zone->image_room / 1024,
                                    (size + 1023) / 1024,
                                    load->about == NULL
                                    ? "reload nginx, or, if the zone's size "
                                      "is given, " : "",
                                    &zone->name,
                                    (ngx_bloom_zone_needs(size) + 1023)
                                    / 1024);
    }

    if (zone->max_age != 0 && load->image.as_of == 0) {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_NO_AS_OF);
    }

    if (!load->clears && ngx_bloom_load_too_old(load)) {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_TOO_OLD);
    }

    /* a start has nothing else to serve; there the image covers nothing */

    if (load->guarded && zone->sh->generation != 0
        && ngx_bloom_as_of_ahead(zone->state, &load->image))
    {
        return ngx_bloom_load_refuse(load, 0, NGX_BLOOM_LOAD_AHEAD);
    }

    if (load->guarded
        && ngx_bloom_guard_header(&load->guard, zone, &load->image,
                                  load->force)
           != NGX_OK)
    {
        return ngx_bloom_load_refuse(load, 0, load->guard.error);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_bloom_load_too_old(ngx_bloom_load_t *load)
{
    /* a checkpoint has what was dropped; an empty filter is loaded if it is all
     * that is left */

    return !load->empty && load->point.position == 0 && !load->copy
           && ngx_bloom_as_of_too_old(load->zone->state, &load->image);
}


const char *
ngx_bloom_load_lacks(ngx_bloom_load_t *load)
{
    if (ngx_bloom_load_too_old(load)) {
        return NGX_BLOOM_LOAD_TOO_OLD;
    }

    /* if records are lost, the zone answers "unknown" instead */

    return load->replay.hole && load->replay.reader.lost == 0
           ? NGX_BLOOM_LOAD_TOO_EARLY : NULL;
}


ngx_int_t
ngx_bloom_load_busy(ngx_bloom_load_t *load)
{
    return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, 0,
                                "bloom zone \"%V\" is busy with additions; "
                                "try again", &load->zone->name);
}


ngx_int_t
ngx_bloom_load_knows(ngx_bloom_load_t *load)
{
    uint64_t  applied;

    applied = __atomic_load_n(&load->zone->sh->applied, __ATOMIC_SEQ_CST);

    if (applied == load->zone->applied) {
        return NGX_OK;
    }

    load->zone->applied = applied;

    return ngx_bloom_load_fails(load, NGX_BLOOM_FAILED, 0,
                                "bloom zone \"%V\" has been changed by workers "
                                "of another configuration, with a journal, "
                                "which this load does not know; load the image "
                                "again",
                                &load->zone->name);
}


ngx_int_t
ngx_bloom_load_refuse(ngx_bloom_load_t *load, ngx_err_t err,
    const char *error)
{
    if (load->about != NULL) {
        return ngx_bloom_load_fails(load, NGX_BLOOM_REFUSED, err,
                                    "%s for bloom zone \"%V\" %s",
                                    load->about, &load->zone->name, error);
    }

    return ngx_bloom_load_fails(load, NGX_BLOOM_REFUSED, err,
                                "image \"%V\" of bloom zone \"%V\" %s",
                                &load->file.name, &load->zone->name, error);
}


ngx_int_t
ngx_bloom_load_fails(ngx_bloom_load_t *load, ngx_bloom_outcome_e outcome,
    ngx_err_t err, const char *fmt, ...)
{
    u_char   *p, *last;
    va_list   args;

    load->outcome = outcome;
    load->err = err;

    last = load->error + sizeof(load->error) - 1;

    va_start(args, fmt);
    p = ngx_vslprintf(load->error, last, fmt, args);
    va_end(args);

    if (err != 0) {
        p = ngx_slprintf(p, last, " (%d: %s)", err, strerror(err));
    }

    *p = '\0';

    ngx_log_debug2(NGX_LOG_DEBUG_CORE, load->zone->shm_zone->shm.log, 0,
                   "bloom zone \"%V\": load fails: %s",
                   &load->zone->name, load->error);

    return NGX_ERROR;
}
