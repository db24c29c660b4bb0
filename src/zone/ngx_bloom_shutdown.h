/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A process that exits synchronises the journals that it has appended to.
 *
 * When nginx stops, the helper exits at once, while workers have requests to
 * finish for as long as those take; and after a reload no helper knows a zone
 * that was removed.  So the end of a journal is not left to the helper alone:
 *
 *     a worker that exits synchronises what it has appended if nobody has done
 *     so within a second, or, where a request waits for it, within a tenth of
 *     a second; and it makes segments in which such a request needs room;
 *     it does so once more before it ends;
 *     the master, which exits last, has a child do it for all of them, which is
 *     the workers' user.
 *
 * Workers otherwise never wait for a disk.  One that exits accepts no requests
 * any more, and those that are left wait for just this.
 */

#ifndef _NGX_BLOOM_SHUTDOWN_H_INCLUDED_
#define _NGX_BLOOM_SHUTDOWN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* To be called in init_process.  `zones` is an array of pointers. */
void ngx_bloom_shutdown_init(ngx_cycle_t *cycle, ngx_array_t *zones);

/* This process has appended to the journal, up to `position`. */
void ngx_bloom_shutdown_appended(ngx_bloom_zone_t *zone, uint64_t position);

/*
 * A request has waited for the helper since ngx_current_msec was `since`: does
 * the helper's work if this process exits and the helper seems to have exited.
 */
void ngx_bloom_shutdown_waits(ngx_bloom_zone_t *zone, ngx_msec_t since);

/*
 * To be called in exit_process, and in exit_master: what was appended is on
 * disk when it returns, or the log says why not.
 */
void ngx_bloom_shutdown_end(ngx_cycle_t *cycle, ngx_array_t *zones);
void ngx_bloom_shutdown_end_master(ngx_cycle_t *cycle, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SHUTDOWN_H_INCLUDED_ */
