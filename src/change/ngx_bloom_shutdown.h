/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An exiting process synchronises the journals that it has appended to.
 *
 * When nginx stops, the helper exits at once, but workers first finish their
 * requests; and after a reload no helper knows a zone that was removed.  So
 * journals do not rely on the helper alone:
 *
 *   - An exiting worker synchronises what it has appended if nobody has done so
 *     within a second, or within a tenth of a second if a request waits for it.
 *     It also creates a segment if such a request needs room.
 *   - It synchronises once more just before it exits.
 *   - The master, which exits last, has a child that runs as the workers' user
 *     synchronise all journals.
 *
 * Otherwise workers never wait for a disk.  An exiting worker may, because it
 * accepts no requests any more and its last ones wait for just this.
 */

#ifndef _NGX_BLOOM_SHUTDOWN_H_INCLUDED_
#define _NGX_BLOOM_SHUTDOWN_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/* Prepares a worker.  Called in init_process.  `zones` is an array of
 * pointers. */
void ngx_bloom_shutdown_init(ngx_cycle_t *cycle, ngx_array_t *zones);

/* Records that this process has appended to the journal up to `position`. */
void ngx_bloom_shutdown_appended(ngx_bloom_zone_t *zone, uint64_t position);

/*
 * Does the helper's work for a request that has waited for it since
 * ngx_current_msec was `since`.  Does nothing unless this process is exiting
 * and the request has waited so long that the helper has probably exited.
 */
void ngx_bloom_shutdown_waits(ngx_bloom_zone_t *zone, ngx_msec_t since);

/*
 * Synchronise what this process, or for the master all processes, have
 * appended.  Called in exit_process and in exit_master.  On failure the log
 * says why.
 */
void ngx_bloom_shutdown_end(ngx_cycle_t *cycle, ngx_array_t *zones);
void ngx_bloom_shutdown_end_master(ngx_cycle_t *cycle, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_SHUTDOWN_H_INCLUDED_ */
