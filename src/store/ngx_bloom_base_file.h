/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * The file "base" says what the zone stands on (bloom_base.h).  The control
 * page has a copy of the entry that counts, which all processes read.  A change
 * is on disk before the copy changes, so a start finds at least what the
 * processes that lived before it have known.
 *
 * A start that finds no other instance reads the file, and compares it with
 * the control page and the segments: all of them name their journal, a segment
 * the entry that counted when it was made, and the page the last one that
 * counted.  If one of the files is missing, damaged, of another journal or
 * older than the others, keys may be lost.
 */

#ifndef _NGX_BLOOM_BASE_FILE_H_INCLUDED_
#define _NGX_BLOOM_BASE_FILE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_state.h"

#pragma GCC visibility push(hidden)


/*
 * Fills the copy in the control page of the only instance, from the file or,
 * in a new directory, from nothing.  In doubt it records that keys up to now
 * may be lost, sets state->doubt to the reason, and moves aside what cannot be
 * believed.  Returns NGX_OK, or NGX_ERROR with *failure.
 */
ngx_int_t ngx_bloom_base_file_start(ngx_bloom_state_t *state,
    ngx_bloom_failure_t *failure);

/* Reads the entry that counts, for "nginx -t" and for a process that maps no
 * control page.  Returns NGX_OK; NGX_DECLINED if there is no file or none that
 * can be believed; NGX_ERROR with *failure if it cannot be used at all. */
ngx_int_t ngx_bloom_base_file_read(ngx_bloom_state_t *state,
    bloom_base_t *base, ngx_bloom_failure_t *failure);

/* Copies the entry that counts.  Takes no lock. */
void ngx_bloom_base_file_get(ngx_bloom_state_t *state, bloom_base_t *base);

/*
 * Makes *base the entry that counts, on disk first.  Its number and its losses
 * are set.  The caller holds the lock control->keeper, and has got the entry
 * under it.  Returns NGX_OK, or NGX_ERROR with errno; then nothing has changed.
 */
ngx_int_t ngx_bloom_base_file_put(ngx_bloom_state_t *state,
    bloom_base_t *base);

/*
 * Makes sure that the file has the entry that counts, before anything is
 * removed that another entry may name: a process may have died, or the disk
 * may have failed, before an entry in the file came to count.  A loss that the
 * control page knows is copied, too.  The caller holds the lock
 * control->keeper.  Returns NGX_OK, or NGX_ERROR with errno.
 */
ngx_int_t ngx_bloom_base_file_settle(ngx_bloom_state_t *state);

/*
 * Copies where the journal begins, for a reader.  Takes no lock.
 */
static ngx_inline uint64_t
ngx_bloom_base_file_begin(ngx_bloom_state_t *state)
{
    uint64_t              based, position;
    ngx_bloom_control_t  *control;

    control = state->control;

    do {
        based = __atomic_load_n(&control->based, __ATOMIC_ACQUIRE);
        position = __atomic_load_n(&control->base[based & 1].from.position,
                                   __ATOMIC_RELAXED);

        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&control->based, __ATOMIC_RELAXED) != based);

    return position;
}


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_BASE_FILE_H_INCLUDED_ */
