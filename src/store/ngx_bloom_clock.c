/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Linux names each boot of a machine by a random UUID, in the file boot_id.
 */

#include "ngx_bloom_clock.h"
#include "ngx_bloom_io.h"
#include "bloom_crc.h"

#include <time.h>


#define NGX_BLOOM_CLOCK_BOOT_ID  "/proc/sys/kernel/random/boot_id"
#define NGX_BLOOM_CLOCK_UUID     36      /* its characters */

/* A record is newer than the saved time by at most the time for which the
 * system keeps written pages in memory, and this is more, ms. */
#define NGX_BLOOM_CLOCK_UNSAVED  (60 * 60 * 1000)


static void ngx_bloom_clock_look(void);
static ngx_uint_t ngx_bloom_clock_goes(const ngx_bloom_clock_t *clock);
static uint64_t ngx_bloom_clock_since_boot(void);
static uint64_t ngx_bloom_clock_checksum(const ngx_bloom_clock_t *clock);
static uint64_t ngx_bloom_clock_saved(const ngx_bloom_clock_t *clock);


/* The boot of the machine in which this process runs. */
static u_char      ngx_bloom_clock_boot[NGX_BLOOM_BOOT_LEN];
static ngx_uint_t  ngx_bloom_clock_looked;       /* 1: it is known */


/* Finds out which boot of the machine this is.  If the system does not say it,
 * all boots count as one: then the clock may stand still after a reboot until
 * the machine is up as long as before. */
static void
ngx_bloom_clock_look(void)
{
    u_char      text[NGX_BLOOM_CLOCK_UUID];
    ssize_t     n;
    ngx_fd_t    fd;
    ngx_int_t   digit;
    ngx_uint_t  i, digits;

    ngx_bloom_clock_looked = 1;

    fd = open(NGX_BLOOM_CLOCK_BOOT_ID, O_RDONLY|O_CLOEXEC);

    if (fd == NGX_INVALID_FILE) {
        return;
    }

    n = ngx_bloom_io_read(fd, text, sizeof(text), 0);

    (void) ngx_close_file(fd);

    for (i = 0, digits = 0; n == sizeof(text) && i < sizeof(text); i++) {

        digit = ngx_hextoi(&text[i], 1);

        if (digit != NGX_ERROR && digits < 2 * sizeof(ngx_bloom_clock_boot)) {
            ngx_bloom_clock_boot[digits / 2] =
                (u_char) (ngx_bloom_clock_boot[digits / 2] << 4 | digit);
            digits++;
        }
    }
}


/* Returns the time since the machine was booted, with the time that it slept,
 * in ms. */
static uint64_t
ngx_bloom_clock_since_boot(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_BOOTTIME, &ts);

    return (uint64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


void
ngx_bloom_clock_boot_id(u_char boot[NGX_BLOOM_BOOT_LEN])
{
    if (!ngx_bloom_clock_looked) {
        ngx_bloom_clock_look();
    }

    ngx_memcpy(boot, ngx_bloom_clock_boot, NGX_BLOOM_BOOT_LEN);
}


static uint64_t
ngx_bloom_clock_checksum(const ngx_bloom_clock_t *clock)
{
    return bloom_crc32c(0, clock, offsetof(ngx_bloom_clock_t, check));
}


void
ngx_bloom_clock_check(ngx_bloom_clock_t *clock)
{
    if (clock->check != ngx_bloom_clock_checksum(clock)) {
        ngx_memzero(clock, offsetof(ngx_bloom_clock_t, saved));
    }
}


/* Returns 1 if the clock was started since the machine was booted. */
static ngx_uint_t
ngx_bloom_clock_goes(const ngx_bloom_clock_t *clock)
{
    u_char  boot[NGX_BLOOM_BOOT_LEN];

    ngx_bloom_clock_boot_id(boot);

    return clock->time != 0
           && ngx_memcmp(clock->boot, boot, NGX_BLOOM_BOOT_LEN) == 0
           && clock->since <= ngx_bloom_clock_since_boot();
}


/* Returns the time that was saved last; 0 if none is known. */
static uint64_t
ngx_bloom_clock_saved(const ngx_bloom_clock_t *clock)
{
    uint64_t    time, saved;
    ngx_uint_t  i;

    saved = 0;

    for (i = 0; i < 2; i++) {
        time = __atomic_load_n(&clock->saved[i].time, __ATOMIC_RELAXED);

        if (clock->saved[i].check == ~time) {
            saved = ngx_max(saved, time);
        }
    }

    return saved;
}


/*
 * In doubt, the clock starts at the earlier time: keys that were added at later
 * times live longer.
 */
void
ngx_bloom_clock_start(ngx_bloom_clock_t *clock, uint64_t newest)
{
    uint64_t  time, saved;

    if (ngx_bloom_clock_goes(clock)) {
        return;
    }

    saved = ngx_bloom_clock_saved(clock);

    if (clock->time == 0 && saved == 0) {
        time = ngx_bloom_time();

        if (newest != 0) {
            time = ngx_min(time, newest);
        }

    } else {
        time = ngx_max(clock->time, saved);

        if (newest > time && newest - time <= NGX_BLOOM_CLOCK_UNSAVED) {
            time = newest;
        }
    }

    clock->time = 0;

    ngx_bloom_clock_boot_id(clock->boot);
    clock->since = ngx_bloom_clock_since_boot();
    __atomic_store_n(&clock->time, time, __ATOMIC_SEQ_CST);
    clock->check = ngx_bloom_clock_checksum(clock);

    ngx_bloom_clock_save(clock);
}


uint64_t
ngx_bloom_clock_now(const ngx_bloom_clock_t *clock)
{
    uint64_t  time;

    time = __atomic_load_n(&clock->time, __ATOMIC_ACQUIRE);

    if (time == 0) {
        return 0;
    }

    return ngx_bloom_clock_goes(clock)
           ? time + (ngx_bloom_clock_since_boot() - clock->since)
           : ngx_max(time, ngx_bloom_clock_saved(clock));
}


uint64_t
ngx_bloom_clock_expiry(const ngx_bloom_clock_t *clock)
{
    return ngx_min(ngx_bloom_clock_now(clock),
                   ngx_bloom_time() + NGX_BLOOM_CLOCKS_DIFFER);
}


void
ngx_bloom_clock_save(ngx_bloom_clock_t *clock)
{
    uint64_t    now, time;
    ngx_uint_t  i;

    now = ngx_bloom_clock_now(clock);
    time = ngx_bloom_time();

    if (now == 0) {
        return;
    }

    /* the other entry stays as it was: a process may die here */

    i = (clock->saved[0].time <= clock->saved[1].time) ? 0 : 1;

    __atomic_store_n(&clock->saved[i].time, now, __ATOMIC_SEQ_CST);
    __atomic_store_n(&clock->saved[i].check, ~now, __ATOMIC_SEQ_CST);

    if (time > now && time - now > clock->behind) {
        __atomic_store_n(&clock->behind, time - now, __ATOMIC_RELAXED);
    }
}
