/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A zone whose keys expire has a clock of its own.  It goes with the time since
 * the machine was booted, which nobody can set, and stands still while the
 * machine is off.  So it may be behind the system's clock, and a key may live
 * longer than it should, but never less.
 *
 * The clock lies in shared memory or in the control page of a state directory.
 * There it survives every process.  After a reboot it goes on from the time at
 * which it was last saved, or from the last record of the journal.
 *
 * Keys are stamped with this clock alone, however far the system's is set back:
 * if it followed, keys that are added then would expire early once that one is
 * right again.  But in a zone with a state directory nothing expires by a time
 * that is more than an hour ahead of the system's clock: this clock may be
 * damaged, or that of another machine or time namespace.  In doubt keys live
 * longer.
 */

#ifndef _NGX_BLOOM_CLOCK_H_INCLUDED_
#define _NGX_BLOOM_CLOCK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#pragma GCC visibility push(hidden)


#define NGX_BLOOM_BOOT_LEN  16

/* The most by which clocks are assumed to differ, ms.  It also covers the time
 * between the addition of a key and the commit of the object that the key
 * names. */
#define NGX_BLOOM_CLOCKS_DIFFER  (60 * 60 * 1000)


/* Times are ms since 1970-01-01 UTC, as the clock had it when it was first
 * started. */
typedef struct {
    u_char               boot[NGX_BLOOM_BOOT_LEN];   /* which boot of the
                                            machine */
    uint64_t             since;          /* ms from that boot to `time` */
    uint64_t             time;           /* 0: the clock was never started, or
                                            its start is not known */
    uint64_t             check;          /* checksum of the three, or they are
                                            not known */

    /* the clock's time when it was last saved; the later one of those that
     * have the right check counts */
    struct {
        uint64_t             time;       /* atomic */
        uint64_t             check;      /* ~time */
    } saved[2];

    uint64_t             behind;         /* the most by which it was behind the
                                            system's clock then, ms; atomic */
} ngx_bloom_clock_t;


/* Writes the id of this boot of the machine.  If the system does not say it, it
 * is all zeros. */
void ngx_bloom_clock_boot_id(u_char boot[NGX_BLOOM_BOOT_LEN]);

/* Forgets when the clock was started if its checksum is wrong: a process may
 * have died meanwhile.  It starts again at a time that was saved, or earlier.
 */
void ngx_bloom_clock_check(ngx_bloom_clock_t *clock);


/*
 * Starts a clock that was never started, or not since the machine was booted.
 * A clock that goes is left alone.  `newest` is the time of the last record of
 * the journal, or 0.  No other process starts the same clock at the same time.
 */
void ngx_bloom_clock_start(ngx_bloom_clock_t *clock, uint64_t newest);

/* Returns the clock's time, or 0 if it was never started.  Before a clock is
 * started again after a reboot, this is the time at which it was last saved. */
uint64_t ngx_bloom_clock_now(const ngx_bloom_clock_t *clock);

/* Returns the time by which keys expire: the clock's, but at most an hour ahead
 * of the system's; 0 if the clock was never started. */
uint64_t ngx_bloom_clock_expiry(const ngx_bloom_clock_t *clock);

/* Saves the clock's time for after a reboot; call this about once a second. */
void ngx_bloom_clock_save(ngx_bloom_clock_t *clock);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_CLOCK_H_INCLUDED_ */
