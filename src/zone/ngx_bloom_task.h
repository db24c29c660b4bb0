
/*
 * Processes ask the helper for tasks, and learn what came of them.
 *
 * A zone has one task of each kind in its shared memory.  A request draws a
 * ticket; each run of the task serves all tickets drawn before it began, so
 * requests that come at once share a run, and one that comes later gets a run
 * that begins after it.
 *
 * What came of the last few runs is kept, each beside the tickets that it
 * served, so that a process that is slow to ask is not told what came of
 * another's.  It is written under the lock `tasks` and read without one:
 *
 *     helper    writes run (runs + 1) % NGX_BLOOM_TASK_RUNS; then runs + 1
 *     reader    reads `runs`, then any of the others; if `runs` has changed
 *               since, it starts again
 */

#ifndef _NGX_BLOOM_TASK_H_INCLUDED_
#define _NGX_BLOOM_TASK_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_zone.h"

#pragma GCC visibility push(hidden)


/*
 * Asks for a task.  NGX_OK with *ticket.  Without one: NGX_BUSY if another
 * image is being loaded, NGX_DECLINED with *error, a message, if the zone has
 * no such thing (no file to load again, no state directory).
 *
 * `path` is for NGX_BLOOM_TASK_UPLOAD alone: a null-terminated name of an image
 * file that the workers' user can read and that stays until the task is done;
 * the file is copied.
 */
ngx_int_t ngx_bloom_task_request(ngx_bloom_zone_t *zone,
    ngx_bloom_task_e kind, u_char *path, uint64_t *ticket, const char **error);

/*
 * What came of it: NGX_AGAIN while it is not done, then NGX_OK with *result, a
 * copy.  Ask every few milliseconds.  Who asks after NGX_BLOOM_TASK_RUNS - 1
 * further runs, or of a helper that does not live, gets NGX_BLOOM_FAILED and a
 * message that nothing is known of it.
 */
ngx_int_t ngx_bloom_task_result(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    uint64_t ticket, ngx_bloom_result_t *result);


/* ---- for the helper ---- */

/*
 * Begins a run for all tickets drawn so far: NGX_OK, with the path of an
 * upload in `path` of NGX_MAX_PATH bytes if that is not NULL; NGX_DECLINED if
 * nobody waits.  A run that another process left unfinished is begun again.
 */
ngx_int_t ngx_bloom_task_begin(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    u_char *path);

/* Whether anybody waits for any task. */
ngx_uint_t ngx_bloom_task_waits(ngx_bloom_zone_t *zone);

/* Ends it; with `all`, tickets drawn since are served by it as well. */
void ngx_bloom_task_end(ngx_bloom_zone_t *zone, ngx_bloom_task_e kind,
    ngx_bloom_result_t *result, ngx_uint_t all);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_TASK_H_INCLUDED_ */
