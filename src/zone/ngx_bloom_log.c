/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shared memory records which generation has been logged, so that no other
 * process repeats a message.
 */

#include "ngx_bloom_log.h"
#include "ngx_bloom_io.h"


/* ", as of 2026-01-01 00:00:00 UTC" */
#define NGX_BLOOM_LOG_TIME_LEN  48


static void ngx_bloom_log_full(ngx_bloom_zone_t *zone, uint64_t *bits_set);
static void ngx_bloom_log_stale(ngx_bloom_zone_t *zone);
static u_char *ngx_bloom_log_as_of(u_char *p, bloom_image_t *image);


void
ngx_bloom_log_serves(ngx_bloom_load_t *load, ngx_log_t *log,
    const char *does, const char *name)
{
    u_char             as_of[NGX_BLOOM_LOG_TIME_LEN], *last;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;
    last = ngx_bloom_log_as_of(as_of, &load->image);

    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "bloom zone \"%V\" %s generation %uL: %s with %uL key%s, "
                  "capacity %uL%*s, and %uL key%s of its journal%s, loaded in "
                  "%uL ms",
                  &zone->name, does, zone->sh->generation, name,
                  load->image.items, load->image.items == 1 ? "" : "s",
                  load->image.capacity, (size_t) (last - as_of), as_of,
                  load->keys, load->keys == 1 ? "" : "s",
                  load->position ? " after a checkpoint" : "",
                  ngx_bloom_time() - load->begun);

    if (load->cut == 0 && load->image.as_of > NGX_BLOOM_CLOCKS_DIFFER) {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "bloom zone \"%V\": its image claims to be complete%*s, "
                      "which was in the future when it was first loaded, so "
                      "all keys of the journal are kept; correct this "
                      "machine's clock, or build the image with the time at "
                      "which its keys were read as --as-of",
                      &zone->name, (size_t) (last - as_of), as_of);
    }
}


void
ngx_bloom_log_warnings(ngx_bloom_zone_t *zone, uint64_t *bits_set)
{
    if (zone->sh->generation == 0) {
        return;
    }

    ngx_bloom_log_full(zone, bits_set);
    ngx_bloom_log_stale(zone);
}


static void
ngx_bloom_log_full(ngx_bloom_zone_t *zone, uint64_t *bits_set)
{
    uint64_t            set, items;
    ngx_uint_t          bank;
    bloom_image_t      *image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (sh->full == sh->generation) {
        return;
    }

    bank = sh->generation & 1;
    image = &sh->bank[bank].image;
    set = __atomic_load_n(&sh->bank[bank].bits_set, __ATOMIC_RELAXED);

    if (set == *bits_set) {
        return;
    }

    *bits_set = set;

    if (!ngx_bloom_zone_overfull(zone, &items)) {
        return;
    }

    sh->full = sh->generation;

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "bloom zone \"%V\" has about %uL keys and was made for %uL: "
                  "its false-positive rate is about %.3f %% instead of "
                  "%.3f %%; load an image with more capacity, or raise "
                  "\"capacity\"", &zone->name, items, image->capacity,
                  100 * bloom_geometry_fpr(&image->geometry, items),
                  100 * image->fpr);
}


static void
ngx_bloom_log_stale(ngx_bloom_zone_t *zone)
{
    time_t              age;
    u_char              as_of[NGX_BLOOM_LOG_TIME_LEN], *last;
    bloom_image_t      *image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (zone->max_age == 0 || sh->stale == sh->generation) {
        return;
    }

    image = &sh->bank[sh->generation & 1].image;
    age = ngx_time() - (time_t) (image->as_of / 1000);

    if (age < zone->max_age) {
        return;
    }

    sh->stale = sh->generation;

    last = ngx_bloom_log_as_of(as_of, image);

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "bloom zone \"%V\" is stale: its image%*s, is %T s old, and "
                  "\"max_age\" is %T s; it answers \"unknown\" until a newer "
                  "image is loaded", &zone->name,
                  (size_t) (last - as_of), as_of, age, zone->max_age);
}


void
ngx_bloom_log_missing_file(ngx_bloom_zone_t *zone, ngx_err_t err)
{
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (sh->missing == 2 || ++sh->missing != 2) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, err,
                  "bloom zone \"%V\": its file \"%s\" %s; the image loaded "
                  "from it still serves: %s", &zone->name, sh->file_name,
                  err == NGX_ENOENT ? "is missing" : "cannot be reached",
                  err == NGX_ENOENT
                  ? "put the file back, or nginx refuses to start next time"
                  : "let the workers' user read the file and search the "
                    "directories above it");
}


/* Writes nothing if the image has no as_of. */
static u_char *
ngx_bloom_log_as_of(u_char *p, bloom_image_t *image)
{
    ngx_tm_t  tm;

    if (image->as_of == 0) {
        return p;
    }

    ngx_gmtime((time_t) (image->as_of / 1000), &tm);

    return ngx_sprintf(p, ", as of %4d-%02d-%02d %02d:%02d:%02d UTC",
                       tm.ngx_tm_year, tm.ngx_tm_mon, tm.ngx_tm_mday,
                       tm.ngx_tm_hour, tm.ngx_tm_min, tm.ngx_tm_sec);
}
