/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A worker adds keys to the bank that serves without a lock.  If it is stopped
 * meanwhile, two loads may pass, and it then sets bits in a bank that has been
 * filled anew.  In most layouts a bit more does no harm, but a fuse base loses
 * keys.  So a process says to which bank it is writing, and the load of a fuse
 * image waits until no process writes to the bank that it fills.
 *
 *     worker   says that it writes to bank g & 1, and then reads whether
 *              generation g still serves; if not, it writes nothing
 *     load     begins when generation g + 1 serves: all that write to its bank
 *              have said so before that
 *
 * A process that dies while it writes is not waited for.
 */

#ifndef _NGX_BLOOM_WRITERS_H_INCLUDED_
#define _NGX_BLOOM_WRITERS_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Says that this process writes to the bank of a generation.  Returns NGX_OK;
 * or NGX_AGAIN if the generation serves no longer: then the process must not
 * write to the bank.  In both cases ngx_bloom_writers_leave() follows.
 */
ngx_int_t ngx_bloom_writers_enter(ngx_bloom_zone_t *zone, uint64_t generation);

/* Says that this process writes to no bank. */
void ngx_bloom_writers_leave(void);

/*
 * Waits until no process writes to the idle bank, a second at most, before it
 * is filled with an image of this geometry.  Returns 0, or the id of a process
 * that still writes to it.  Does not wait if the geometry is not fuse.
 */
ngx_pid_t ngx_bloom_writers_wait(ngx_bloom_zone_t *zone, ngx_uint_t bank,
    const bloom_geometry_t *geometry);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_WRITERS_H_INCLUDED_ */
