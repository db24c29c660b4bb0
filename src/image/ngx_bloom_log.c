/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Shared memory records which generation has been logged, so that no other
 * process repeats a message.
 */

#include "ngx_bloom_log.h"
#include "ngx_bloom_layers.h"
#include "ngx_bloom_guard.h"
#include "ngx_bloom_info.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_ring.h"


/* ", as of 2026-01-01 00:00:00 UTC" */
#define NGX_BLOOM_LOG_TIME_LEN  48

/* "1.23e-05 %" */
#define NGX_BLOOM_LOG_RATE_LEN  16

#define NGX_BLOOM_LOG_LEVELS    3

/* An image is warned of if it lacks at least a tenth of the previous image's
 * keys, or has more than twice as many. */
#define NGX_BLOOM_LOG_FEWER     10
#define NGX_BLOOM_LOG_MORE      2

/* A slice is late if it is due for this part of a slice's time: a short delay
 * is usual, since slices are cleared in pieces. */
#define NGX_BLOOM_LOG_LATE      4


static void ngx_bloom_log_change(ngx_bloom_load_t *load, ngx_log_t *log);
static bloom_image_t *ngx_bloom_log_previous(ngx_bloom_load_t *load);
static void ngx_bloom_log_full(ngx_bloom_zone_t *zone, uint64_t *bits_set);
static const char *ngx_bloom_log_remedy(ngx_bloom_zone_t *zone,
    const bloom_image_t *image, uint64_t items);
static void ngx_bloom_log_late(ngx_bloom_zone_t *zone);
static void ngx_bloom_log_percent(u_char *buf, double rate);
static void ngx_bloom_log_stale(ngx_bloom_zone_t *zone);
static void ngx_bloom_log_journal(ngx_bloom_zone_t *zone);
static u_char *ngx_bloom_log_as_of(u_char *p, bloom_image_t *image);


/* How many times its false-positive rate a zone must have to be warned of. */
static const double  ngx_bloom_log_levels[NGX_BLOOM_LOG_LEVELS] = {
    1.5, 10, 100
};


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
                  load->image.items, ngx_bloom_plural(load->image.items),
                  load->image.capacity, (size_t) (last - as_of), as_of,
                  load->replay.keys, ngx_bloom_plural(load->replay.keys),
                  load->point.position ? " after a checkpoint" : "",
                  ngx_bloom_time() - load->begun);

    if (load->cut == 0 && !load->copy
        && load->image.as_of > NGX_BLOOM_CLOCKS_DIFFER)
    {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "bloom zone \"%V\": its image claims to be complete%*s, "
                      "which was in the future when it was first loaded, so "
                      "all keys of the journal are kept; correct this "
                      "machine's clock, or build the image with the time at "
                      "which its keys were read as --as-of",
                      &zone->name, (size_t) (last - as_of), as_of);
    }

    /* a zone whose keys expire has no image */

    if (!load->clears && zone->expire == 0) {
        ngx_bloom_log_change(load, log);
    }
}


/* Warns if the loaded image has another key form than the one before it, or far
 * fewer or far more keys. */
static void
ngx_bloom_log_change(ngx_bloom_load_t *load, ngx_log_t *log)
{
    uint64_t           now, before;
    const char        *was;
    bloom_image_t     *image, *previous;
    bloom_accepted_t   last;
    ngx_bloom_zone_t  *zone;

    zone = load->zone;
    image = &load->image;
    previous = ngx_bloom_log_previous(load);

    /* NULL without such an image, or if the workers' user has forged the
     * memory */

    was = previous ? bloom_form_name(previous->key_form) : NULL;

    if (was != NULL
        && zone->key_form == -1 && image->key_form != previous->key_form)
    {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "bloom zone \"%V\": its image has the key form \"%s\", "
                      "and the image before it had \"%s\"; if that is a "
                      "mistake, build it with \"--form %s\" again, and add "
                      "\"form=%s\" to the zone", &zone->name,
                      bloom_form_name(image->key_form), was, was, was);
    }

    now = image->items;

    if (previous != NULL) {
        before = previous->items;

    } else {
        before = ngx_bloom_guard_last(zone, &last) ? last.keys : 0;
    }

    if (before != 0
        && (now > NGX_BLOOM_LOG_MORE * before
            || (now < before
                && before - now >= (before + NGX_BLOOM_LOG_FEWER - 1)
                                   / NGX_BLOOM_LOG_FEWER)))
    {
        ngx_log_error(NGX_LOG_WARN, log, 0,
                      "bloom zone \"%V\": its image has %uL key%s, and the "
                      "image before it had %uL; check the list that it was "
                      "built from",
                      &zone->name, now, ngx_bloom_plural(now), before);
    }
}


void
ngx_bloom_log_returned(ngx_bloom_zone_t *zone)
{
    uint64_t                cursor, keys;
    ngx_uint_t              idle;
    bloom_exception_t       exception;
    bloom_exceptions_t      before;
    ngx_bloom_shctx_t      *sh;
    ngx_bloom_zone_bits_t   bits;

    static u_char           buf[BLOOM_KEY_MAX];

    sh = zone->sh;
    idle = !(sh->generation & 1);

    if (!sh->bank[idle].filled || ngx_bloom_zone_serving(zone, &bits) == 0
        || sh->bank[idle].image.key_form != bits.form)
    {
        return;
    }

    ngx_bloom_zone_exceptions(zone, idle, &before);

    if (bloom_exceptions_count(&before) == 0) {
        return;
    }

    cursor = 0;
    keys = 0;

    while (bloom_exceptions_next(&before, &cursor, &exception, buf)) {

        if ((exception.kinds & BLOOM_EXCEPTION_REMOVED)
            && ngx_bloom_zone_has(&bits, &exception.key))
        {
            keys++;
        }
    }

    if (keys == 0) {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "bloom zone \"%V\": %uL removed key%s present again, "
                  "because the image is newer than the removals; if this is "
                  "wrong, take the keys out of the list that the image is "
                  "built from, and remove them again", &zone->name, keys,
                  keys == 1 ? " is" : "s are");
}


/* Returns the image that served before a load, or NULL if no memory has it, as
 * at a start. */
static bloom_image_t *
ngx_bloom_log_previous(ngx_bloom_load_t *load)
{
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = load->zone;
    sh = zone->sh;

    if (sh->generation > 1) {
        return &sh->bank[!load->bank].image;
    }

    /* a reload has recreated the memory */

    if (zone->before == NULL || zone->before->sh->generation == 0) {
        return NULL;
    }

    sh = zone->before->sh;

    return &sh->bank[sh->generation & 1].image;
}


void
ngx_bloom_log_warnings(ngx_bloom_zone_t *zone, uint64_t *bits_set)
{
    if (zone->sh->generation == 0) {
        return;
    }

    ngx_bloom_log_full(zone, bits_set);
    ngx_bloom_log_late(zone);
    ngx_bloom_log_stale(zone);
    ngx_bloom_log_journal(zone);
}


static void
ngx_bloom_log_full(ngx_bloom_zone_t *zone, uint64_t *bits_set)
{
    double              fpr, times;
    u_char              now[NGX_BLOOM_LOG_RATE_LEN];
    u_char              meant[NGX_BLOOM_LOG_RATE_LEN];
    uint64_t            set, items, generation, capacity;
    uint64_t            parts[BLOOM_PARTS_MAX];
    ngx_uint_t          bank, level;
    bloom_image_t       image;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    generation = sh->generation;
    bank = generation & 1;
    set = ngx_bloom_layers_bits_set(zone, bank, parts);

    if (set == *bits_set) {
        return;
    }

    *bits_set = set;

    if (!ngx_bloom_layers_overfull(zone, &items)) {

        if (zone->expire != 0) {
            sh->full = 0;                /* the next time is another one */
        }

        return;
    }

    capacity = bloom_image_capacity(&sh->bank[bank].image);
    ngx_bloom_layers_image(zone, bank, &image);

    if (zone->expire != 0) {
        capacity = ngx_max(capacity, zone->max_keys);
    }

    fpr = ngx_bloom_layers_fpr(&image, parts);
    times = fpr / bloom_image_promised(&image);

    for (level = 0; level < NGX_BLOOM_LOG_LEVELS; level++) {
        if (times < ngx_bloom_log_levels[level]) {
            break;
        }
    }

    if (level == 0
        || sh->full >= generation * (NGX_BLOOM_LOG_LEVELS + 1) + level)
    {
        return;
    }

    sh->full = generation * (NGX_BLOOM_LOG_LEVELS + 1) + level;

    ngx_bloom_log_percent(now, fpr);
    ngx_bloom_log_percent(meant, bloom_image_promised(&image));

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "bloom zone \"%V\" has about %uL keys%s and was made for "
                  "%uL: its false-positive rate is about %s, %.1f times the %s "
                  "that it was made for; %s %uL%s", &zone->name, items,
                  zone->expire != 0 ? " that have not expired" : "",
                  capacity, now, times, meant,
                  ngx_bloom_log_remedy(zone, &image, items), items,
                  zone->state == NULL && zone->file.name.len == 0
                  ? " (without a journal, the zone starts empty then)" : "");
}


/* Returns what to do about so many keys: a phrase that their number follows. */
static const char *
ngx_bloom_log_remedy(ngx_bloom_zone_t *zone, const bloom_image_t *image,
    uint64_t items)
{
    if (zone->max_keys != 0
        && (zone->expire == 0
            || items < bloom_ring_max_keys(image->capacity, zone->slices)))
    {
        return "raise its \"max_keys\" above";
    }

    return zone->file.name.len != 0 || zone->sh->uploaded
           ? "build its next image with \"-n\" greater than"
           : "raise its \"capacity\" above";
}


static void
ngx_bloom_log_late(ngx_bloom_zone_t *zone)
{
    uint64_t            late;
    ngx_bloom_shctx_t  *sh;

    if (zone->expire == 0) {
        return;
    }

    sh = zone->sh;
    late = ngx_bloom_ring_late(zone);

    if (sh->late == sh->generation) {

        if (late == 0) {
            sh->late = 0;

            ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                          "bloom zone \"%V\" opens slices in time again",
                          &zone->name);
        }

        return;
    }

    if (late < zone->expire / zone->slices / NGX_BLOOM_LOG_LATE) {
        return;
    }

    sh->late = sh->generation;

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                  "bloom zone \"%V\" has had to open another slice for %uL s, "
                  "and none is ready: its keys live longer than \"expire\" and "
                  "a slice, and its false-positive rate rises; if this lasts, "
                  "raise its \"max_keys\", which gives it more slices",
                  &zone->name, late / 1000);
}


/* Writes a rate with three significant digits, however small the rate is. */
static void
ngx_bloom_log_percent(u_char *buf, double rate)
{
    (void) snprintf((char *) buf, NGX_BLOOM_LOG_RATE_LEN, "%.3g %%",
                    100 * rate);
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


static void
ngx_bloom_log_journal(ngx_bloom_zone_t *zone)
{
    const char         *why;
    ngx_bloom_shctx_t  *sh;

    sh = zone->sh;

    if (sh->grows == sh->generation) {
        return;
    }

    why = ngx_bloom_info_journal_grows(zone);

    if (why == NULL) {
        return;
    }

    sh->grows = sh->generation;

    ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0, "bloom zone \"%V\": %s",
                  &zone->name, why);
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
                  "bloom zone \"%V\": its file \"%s\" %s; %s: %s",
                  &zone->name, sh->file_name,
                  err == NGX_ENOENT ? "is missing" : "cannot be reached",
                  sh->generation != 0 ? "the image loaded from it still serves"
                                      : "no image serves",
                  err == NGX_ENOENT
                  ? zone->optional
                    ? "put the file back"
                    : "put the file back, or nginx refuses to start next time"
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
