
/*
 * Processes that go.  When nginx stops, the helper ends at once, while workers
 * have requests to finish for as long as those take; after a reload nobody
 * keeps the journal of a zone that is no more.  So the end of a journal is not
 * left to the helper alone:
 *
 *     a worker that goes synchronises what it has appended if that has not been
 *     done within a second, or where a request waits for it, within a tenth of
 *     one; and makes segments in which such a request needs room;
 *     it does so once more before it ends;
 *     the master, who ends last, does it for all of them.
 *
 * Workers otherwise never wait for a disk.  One that goes accepts no requests
 * any more, and those that are left wait for just this.
 */

#ifndef _NGX_BLOOM_SHUTDOWN_H_INCLUDED_
#define _NGX_BLOOM_SHUTDOWN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* To be called in init_process.  `zones` is an array of pointers. */
void ngx_bloom_leave_init(ngx_cycle_t *cycle, ngx_array_t *zones);

/* This process has appended to the journal, up to `position`. */
void ngx_bloom_leave_appended(ngx_bloom_zone_t *zone, uint64_t position);

/*
 * A request has waited for the helper since ngx_current_msec was `since`: does
 * its work if this process goes and the helper seems to be gone.
 */
void ngx_bloom_leave_waits(ngx_bloom_zone_t *zone, ngx_msec_t since);

/*
 * To be called in exit_process and exit_master: what was appended is on disk
 * when it returns, or the log says why not.
 */
void ngx_bloom_leave_end(ngx_cycle_t *cycle, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SHUTDOWN_H_INCLUDED_ */
