
#include "ngx_bloom_helper.h"
#include "ngx_bloom_add.h"
#include "ngx_bloom_compact.h"
#include "ngx_bloom_io.h"
#include "ngx_bloom_load.h"
#include "ngx_bloom_save.h"
#include "ngx_bloom_task.h"

#include <ngx_event.h>


/* Times in milliseconds. */
#define NGX_BLOOM_HELPER_SLICE    20         /* of work at a time */
#define NGX_BLOOM_HELPER_IDLE     1000       /* between looks */
#define NGX_BLOOM_HELPER_BUSY     5          /* while others append */
#define NGX_BLOOM_HELPER_SYNC     500        /* at least so often */
#define NGX_BLOOM_HELPER_HOUSE    10000      /* removing, pruning */

/* A snapshot is opened at once by who has asked for it; seconds. */
#define NGX_BLOOM_SNAPSHOT_AGE    60
#define NGX_BLOOM_TMP_AGE         3600

/* Replay takes about a second for each of these; bytes. */
#define NGX_BLOOM_CHECKPOINT_MIN  (64 * 1024 * 1024)

#define NGX_BLOOM_RELEASE         (32 * 1024 * 1024)


/* What a helper does for a zone at the moment. */
typedef enum {
    NGX_BLOOM_HELPER_NOTHING = 0,
    NGX_BLOOM_HELPER_LOADS,
    NGX_BLOOM_HELPER_COPIES,             /* an upload to its place */
    NGX_BLOOM_HELPER_RELEASES,           /* the old bank */
    NGX_BLOOM_HELPER_SAVES,
    NGX_BLOOM_HELPER_COMPACTS            /* a step, between other work */
} ngx_bloom_helper_e;

typedef struct {
    ngx_bloom_zone_t     *zone;
    ngx_bloom_helper_e    does;
    ngx_bloom_task_e      task;          /* and for whom */
    ngx_uint_t            asked;         /* somebody waits for it */
    ngx_uint_t            old;           /* bank to be emptied */

    ngx_bloom_load_t      load;
    ngx_bloom_file_id_t   file_id;       /* of the image that is loaded */
    u_char                path[NGX_MAX_PATH];
    u_char                tmp[NGX_MAX_PATH];
    ngx_fd_t              from;          /* of an upload that is copied */
    ngx_fd_t              to;
    uint64_t              copied;
    ngx_uint_t            saved;         /* it is in its place */

    ngx_bloom_save_t      save;
    uint64_t              save_begun;
    ngx_msec_t            save_failed;

    ngx_bloom_compact_t  *compact;       /* NULL: no run has begun */

    ngx_bloom_file_id_t   refused;       /* the file that was, last */
    ngx_msec_t            looked;        /* at the file */
    ngx_msec_t            synced;
    ngx_msec_t            housed;
    uint64_t              failed;        /* that was logged last */
    uint64_t              ones;          /* bits set when it was last asked
                                            whether the filter is over-full */
} ngx_bloom_work_t;


typedef struct {
    ngx_array_t          *zones;         /* of ngx_bloom_zone_t * */
    ngx_bloom_work_t     *works;
    ngx_connection_t     *c;             /* of the pipe's reading end */
    ngx_event_t           timer;
    ngx_path_t            path;
    ngx_cycle_t          *cycle;
    ngx_uint_t            runs;          /* in this process */
} ngx_bloom_helper_t;


static ngx_int_t ngx_bloom_helper_pipe(ngx_cycle_t *cycle);
static ngx_msec_t ngx_bloom_helper_manager(void *data);
static ngx_int_t ngx_bloom_helper_start(ngx_bloom_helper_t *helper);
static void ngx_bloom_helper_stop(void *data);
static void ngx_bloom_helper_read(ngx_event_t *ev);
static void ngx_bloom_helper_timer(ngx_event_t *ev);
static ngx_msec_t ngx_bloom_helper_zone(ngx_bloom_work_t *work);
static void ngx_bloom_helper_full(ngx_bloom_work_t *work);
static ngx_msec_t ngx_bloom_helper_keep(ngx_bloom_work_t *work);
static ngx_msec_t ngx_bloom_helper_catch_up(ngx_bloom_work_t *work);
static void ngx_bloom_helper_log(ngx_bloom_work_t *work);
static ngx_int_t ngx_bloom_helper_follow(ngx_bloom_zone_t *zone);
static ngx_int_t ngx_bloom_helper_unrequire(ngx_bloom_zone_t *zone);
static void ngx_bloom_helper_look(ngx_bloom_work_t *work);
static void ngx_bloom_helper_choose(ngx_bloom_work_t *work);
static void ngx_bloom_helper_load(ngx_bloom_work_t *work,
    ngx_bloom_task_e task);
static void ngx_bloom_helper_save(ngx_bloom_work_t *work,
    ngx_bloom_task_e task);
static void ngx_bloom_helper_step(ngx_bloom_work_t *work);
static void ngx_bloom_helper_loaded(ngx_bloom_work_t *work);
static ngx_int_t ngx_bloom_helper_copy(ngx_bloom_work_t *work);
static void ngx_bloom_helper_close(ngx_bloom_work_t *work);
static ngx_int_t ngx_bloom_helper_rebase(ngx_bloom_work_t *work,
    ngx_uint_t uploaded);
static void ngx_bloom_helper_switch(ngx_bloom_work_t *work);
static void ngx_bloom_helper_refused(ngx_bloom_work_t *work);
static void ngx_bloom_helper_saved(ngx_bloom_work_t *work, ngx_int_t rc);
static void ngx_bloom_helper_done(ngx_bloom_work_t *work,
    ngx_bloom_result_t *result, uint64_t begun);
static void ngx_bloom_helper_house(ngx_bloom_work_t *work);
static ngx_uint_t ngx_bloom_helper_file_id(u_char *name,
    ngx_bloom_file_id_t *id);


/* Of this process: its cycle's. */
static ngx_bloom_helper_t  *ngx_bloom_helper;

/* When a failure to follow was last logged: it is tried again at once. */
static time_t  ngx_bloom_follow_logged;

/* One for the life of a master: workers of old cycles wake the new helper. */
static ngx_fd_t  ngx_bloom_pipe[2] = { NGX_INVALID_FILE, NGX_INVALID_FILE };


ngx_int_t
ngx_bloom_helper_init(ngx_cycle_t *cycle, ngx_array_t *zones)
{
    ngx_path_t          **path;
    ngx_uint_t            i, single;
    ngx_pool_cleanup_t   *cln;
    ngx_bloom_helper_t   *helper;

    single = 0;

    if (ngx_bloom_helper != NULL && ngx_bloom_helper->runs) {

        /* "master_process off", and the configuration is read again */

        single = 1;
        ngx_bloom_helper_stop(ngx_bloom_helper);
    }

    if (zones->nelts == 0 || ngx_test_config) {
        return NGX_OK;
    }

    helper = ngx_pcalloc(cycle->pool, sizeof(ngx_bloom_helper_t));
    cln = ngx_pool_cleanup_add(cycle->pool, 0);

    if (helper == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    helper->works = ngx_pcalloc(cycle->pool,
                                zones->nelts * sizeof(ngx_bloom_work_t));
    if (helper->works == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < zones->nelts; i++) {
        helper->works[i].zone = ((ngx_bloom_zone_t **) zones->elts)[i];
        helper->works[i].from = NGX_INVALID_FILE;
        helper->works[i].to = NGX_INVALID_FILE;
    }

    helper->zones = zones;
    helper->cycle = cycle;

    if (ngx_bloom_helper_pipe(cycle) != NGX_OK) {
        return NGX_ERROR;
    }

    cln->handler = ngx_bloom_helper_stop;
    cln->data = helper;

    /*
     * nginx starts a process for the managers of the paths that are in the
     * cycle by now.  The directories of all paths have been made before, so
     * this one, which has none, leaves no trace in the file system.
     */

    ngx_str_set(&helper->path.name, "bloom");
    helper->path.manager = ngx_bloom_helper_manager;
    helper->path.data = helper;

    path = ngx_array_push(&cycle->paths);
    if (path == NULL) {
        return NGX_ERROR;
    }

    *path = &helper->path;

    ngx_bloom_helper = helper;

    return single ? ngx_bloom_helper_start(helper) : NGX_OK;
}


static ngx_int_t
ngx_bloom_helper_pipe(ngx_cycle_t *cycle)
{
    ngx_uint_t  i;

    if (ngx_bloom_pipe[0] != NGX_INVALID_FILE) {
        return NGX_OK;
    }

    if (pipe(ngx_bloom_pipe) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno, "pipe() failed");
        return NGX_ERROR;
    }

    for (i = 0; i < 2; i++) {
        if (ngx_nonblocking(ngx_bloom_pipe[i]) == -1
            || fcntl(ngx_bloom_pipe[i], F_SETFD, FD_CLOEXEC) == -1)
        {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "fcntl() failed");
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_bloom_helper_process(ngx_cycle_t *cycle)
{
    if (ngx_process != NGX_PROCESS_SINGLE || ngx_bloom_helper == NULL) {
        return NGX_OK;
    }

    return ngx_bloom_helper_start(ngx_bloom_helper);
}


static ngx_msec_t
ngx_bloom_helper_manager(void *data)
{
    ngx_bloom_helper_t *helper = data;

    if (!helper->runs && ngx_bloom_helper_start(helper) != NGX_OK) {
        return NGX_BLOOM_HELPER_IDLE;
    }

    return 60 * 60 * 1000;
}


static ngx_int_t
ngx_bloom_helper_start(ngx_bloom_helper_t *helper)
{
    ngx_connection_t  *c;

    helper->timer.handler = ngx_bloom_helper_timer;
    helper->timer.log = helper->cycle->log;
    helper->timer.cancelable = 1;
    helper->runs = 1;

    c = ngx_get_connection(ngx_bloom_pipe[0], helper->cycle->log);

    if (c != NULL) {
        c->read->handler = ngx_bloom_helper_read;
        c->read->log = helper->cycle->log;
        c->data = helper;
        helper->timer.data = c;

        if (ngx_add_event(c->read, NGX_READ_EVENT, 0) != NGX_OK) {
            ngx_free_connection(c);
            c = NULL;
        }
    }

    helper->c = c;

    if (c == NULL) {
        helper->runs = 0;
        return NGX_ERROR;
    }

    ngx_add_timer(&helper->timer, 0);

    return NGX_OK;
}


static void
ngx_bloom_helper_stop(void *data)
{
    ngx_bloom_helper_t *helper = data;

    ngx_uint_t         i;
    ngx_bloom_work_t  *work;

    if (helper->runs) {
        helper->runs = 0;

        if (helper->timer.timer_set) {
            ngx_del_timer(&helper->timer);
        }

        (void) ngx_del_event(helper->c->read, NGX_READ_EVENT, 0);
        ngx_free_connection(helper->c);

        for (i = 0; i < helper->zones->nelts; i++) {
            work = &helper->works[i];

            if (work->does == NGX_BLOOM_HELPER_SAVES) {
                ngx_bloom_save_end(&work->save);

            } else if (work->does == NGX_BLOOM_HELPER_COPIES) {
                ngx_bloom_helper_close(work);
                ngx_bloom_load_end(&work->load);

            } else if (work->does != NGX_BLOOM_HELPER_NOTHING) {
                ngx_bloom_load_end(&work->load);
            }

            if (work->does != NGX_BLOOM_HELPER_NOTHING) {
                work->does = NGX_BLOOM_HELPER_NOTHING;
                ngx_bloom_unlock(&work->zone->sh->helper);
            }

            if (work->compact != NULL) {
                ngx_bloom_compact_end(work->compact);
                work->compact = NULL;
            }
        }
    }

    if (ngx_bloom_helper == helper) {
        ngx_bloom_helper = NULL;
    }
}


void
ngx_bloom_helper_wake(void)
{
    u_char  c;

    if (ngx_bloom_pipe[1] == NGX_INVALID_FILE) {
        return;
    }

    /* if the pipe is full, it will wake up */

    c = 0;
    (void) !write(ngx_bloom_pipe[1], &c, 1);
}


static void
ngx_bloom_helper_read(ngx_event_t *ev)
{
    u_char               buf[256];
    ssize_t              n;
    ngx_connection_t    *c;
    ngx_bloom_helper_t  *helper;

    c = ev->data;
    helper = c->data;

    do {
        n = read(c->fd, buf, sizeof(buf));
    } while (n == (ssize_t) sizeof(buf) || (n == -1 && ngx_errno == NGX_EINTR));

    ev->ready = 0;
    (void) ngx_handle_read_event(ev, 0);

    if (helper->timer.timer_set) {
        ngx_del_timer(&helper->timer);           /* a new time would be put off */
    }

    ngx_bloom_helper_timer(&helper->timer);
}


static void
ngx_bloom_helper_timer(ngx_event_t *ev)
{
    ngx_msec_t           next, delay;
    ngx_uint_t           i;
    ngx_connection_t    *c;
    ngx_bloom_helper_t  *helper;

    c = ev->data;
    helper = c->data;
    next = NGX_BLOOM_HELPER_IDLE;

    for (i = 0; i < helper->zones->nelts; i++) {

        if (ngx_quit || ngx_terminate) {
            return;
        }

        delay = ngx_bloom_helper_zone(&helper->works[i]);
        next = ngx_min(next, delay);
    }

    ngx_add_timer(ev, next);
}


/* A slice of a zone's work; when to come again, in ms. */
static ngx_msec_t
ngx_bloom_helper_zone(ngx_bloom_work_t *work)
{
    ngx_msec_t          next, delay, begun;
    ngx_bloom_shctx_t  *sh;

    sh = work->zone->sh;
    next = NGX_BLOOM_HELPER_IDLE;

    __atomic_store_n(&sh->heartbeat, ngx_bloom_time(), __ATOMIC_RELAXED);

    /* not even the master's loading holds this up */

    if (work->zone->state != NULL) {
        next = ngx_bloom_helper_keep(work);
    }

    if (work->does == NGX_BLOOM_HELPER_NOTHING
        && ngx_bloom_lock(&sh->helper, 0) != NGX_OK)
    {
        return NGX_BLOOM_HELPER_BUSY;            /* the one before still does */
    }

    if (work->zone->state != NULL) {
        delay = ngx_bloom_helper_catch_up(work);
        next = ngx_min(next, delay);
    }

    if (work->does == NGX_BLOOM_HELPER_NOTHING) {
        ngx_bloom_helper_look(work);
        ngx_bloom_helper_choose(work);
    }

    begun = ngx_current_msec;

    while (work->does != NGX_BLOOM_HELPER_NOTHING) {

        ngx_bloom_helper_step(work);
        ngx_time_update();

        if (ngx_current_msec - begun >= NGX_BLOOM_HELPER_SLICE) {
            break;
        }
    }

    if (work->does != NGX_BLOOM_HELPER_NOTHING) {
        return 0;
    }

    ngx_bloom_helper_full(work);

    ngx_bloom_unlock(&sh->helper);

    if (ngx_bloom_task_waits(work->zone)) {
        return 0;
    }

    if (work->compact != NULL) {
        return 1;
    }

    if (work->zone->watch != 0) {
        next = ngx_min(next, work->zone->watch);
    }

    return next;
}


/* Says once for each generation that it has more keys than it was sized for. */
static void
ngx_bloom_helper_full(ngx_bloom_work_t *work)
{
    uint64_t            ones, items;
    ngx_uint_t          bank;
    bloom_image_t      *image;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = work->zone;
    sh = zone->sh;

    if (sh->generation == 0 || sh->full == sh->generation) {
        return;
    }

    bank = sh->generation & 1;
    image = &sh->bank[bank].image;
    ones = __atomic_load_n(&sh->bank[bank].ones, __ATOMIC_RELAXED);

    if (ones == work->ones) {
        return;
    }

    work->ones = ones;

    items = bloom_geometry_items(&image->geometry, ones);

    /* the estimate is as sure as its standard error, of which three */

    if (items <= image->capacity
        + (uint64_t) (3 * bloom_geometry_items_error(&image->geometry, items))
        || bloom_geometry_fpr(&image->geometry, items) <= image->fpr)
    {
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


/* Segments and disks, for whichever instance. */
static ngx_msec_t
ngx_bloom_helper_keep(ngx_bloom_work_t *work)
{
    uint64_t              tail;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = work->zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->keeper, 0) != NGX_OK) {
        return NGX_BLOOM_HELPER_BUSY;            /* another does */
    }

    (void) ngx_bloom_journal_prepare(state);

    tail = ngx_bloom_state_tail(state);

    if (control->synced < tail
        && (control->wanted > control->synced
            || ngx_current_msec - work->synced >= NGX_BLOOM_HELPER_SYNC))
    {
        (void) ngx_bloom_journal_sync(state);

        ngx_time_update();
        work->synced = ngx_current_msec;
    }

    ngx_bloom_unlock(&control->keeper);

    ngx_bloom_helper_log(work);

    return control->synced < ngx_bloom_state_tail(state)
           ? NGX_BLOOM_HELPER_BUSY : NGX_BLOOM_HELPER_IDLE;
}


/* What others have appended, and keys that were kept. */
static ngx_msec_t
ngx_bloom_helper_catch_up(ngx_bloom_work_t *work)
{
    ngx_msec_t            next;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = work->zone;
    control = zone->state->control;
    next = NGX_BLOOM_HELPER_IDLE;

    if (ngx_bloom_kept_drain(zone) != NGX_OK) {
        next = NGX_BLOOM_HELPER_IDLE / 10;
    }

    if (ngx_bloom_helper_follow(zone) != NGX_OK) {
        next = NGX_BLOOM_HELPER_BUSY;
    }

    if (work->does == NGX_BLOOM_HELPER_NOTHING
        && ngx_current_msec - work->housed >= NGX_BLOOM_HELPER_HOUSE
        && ngx_bloom_lock(&control->keeper, 0) == NGX_OK)
    {
        ngx_bloom_helper_house(work);
        work->housed = ngx_current_msec;

        ngx_bloom_unlock(&control->keeper);
    }

    /* another's worker cannot wake this process */

    if (control->instances & ~((uint64_t) 1 << zone->state->instance)) {
        next = ngx_min(next, NGX_BLOOM_HELPER_BUSY);
    }

    return next;
}


/* Says once that the journal fails, and once that it does not any more. */
static void
ngx_bloom_helper_log(ngx_bloom_work_t *work)
{
    uint64_t              failed;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_control_t  *control;

    zone = work->zone;
    control = zone->state->control;
    failed = __atomic_load_n(&control->failed, __ATOMIC_ACQUIRE);

    if (failed == work->failed) {
        return;
    }

    work->failed = failed;

    if (failed == 0) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "bloom zone \"%V\": the journal in \"%V\" can be "
                      "written again", &zone->name, &zone->state->path);
        return;
    }

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, (ngx_err_t) control->err,
                  "bloom zone \"%V\": %s (\"%V\")", &zone->name,
                  ngx_bloom_state_error(failed, (ngx_err_t) control->err),
                  &zone->state->path);
}


/*
 * Applies what other instances have appended.  The lock sh->helper is held, so
 * no other generation comes to serve meanwhile.
 */
static ngx_int_t
ngx_bloom_helper_follow(ngx_bloom_zone_t *zone)
{
    uint64_t              tail, added;
    ngx_int_t             rc;
    bloom_record_t        record;
    ngx_bloom_bits_t      bits;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_state_t    *state;
    ngx_bloom_reader_t    reader;

    sh = zone->sh;
    state = zone->state;

    /*
     * The end first: what others appended before it was required before it was
     * published.
     */

    tail = ngx_bloom_state_tail(state);

    if (tail <= sh->applied) {

        if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied) {
            return ngx_bloom_helper_unrequire(zone);
        }

        return NGX_OK;
    }

    if (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > sh->applied) {

        if (ngx_bloom_reader_open(&reader, state, sh->applied, tail)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        /* the lock sh->helper is held: no other generation comes to serve */

        ngx_bloom_zone_bits(zone, sh->generation & 1, &bits);

        while ((rc = ngx_bloom_reader_next(&reader, &record)) == NGX_OK) {
            (void) ngx_bloom_zone_set(&bits, record.keys, record.end, &added);
        }

        if (rc == NGX_DONE && reader.lost != 0) {
            __atomic_store_n(&sh->doubt,
                             ngx_bloom_load_doubt(zone, &reader, 0),
                             __ATOMIC_SEQ_CST);
        }

        if (rc == NGX_ERROR && ngx_bloom_follow_logged != ngx_time()) {
            ngx_bloom_follow_logged = ngx_time();
            ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, reader.err,
                          "bloom zone \"%V\": %s", &zone->name, reader.error);
        }

        ngx_bloom_reader_close(&reader);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    __atomic_store_n(&sh->applied, tail, __ATOMIC_SEQ_CST);
    __atomic_store_n(&state->control->instance[state->instance].applied, tail,
                     __ATOMIC_SEQ_CST);

    return (__atomic_load_n(zone->required, __ATOMIC_SEQ_CST) > tail)
           ? ngx_bloom_helper_unrequire(zone) : NGX_OK;
}


/*
 * Something is required that is not there yet: it is being published, or who
 * was about to publish it has died, and then it never will be.
 */
static ngx_int_t
ngx_bloom_helper_unrequire(ngx_bloom_zone_t *zone)
{
    uint64_t              old, tail, *required;
    ngx_bloom_state_t    *state;
    ngx_bloom_control_t  *control;

    state = zone->state;
    control = state->control;

    if (ngx_bloom_lock(&control->append, NGX_BLOOM_TASK_WAIT) != NGX_OK) {
        return NGX_AGAIN;
    }

    required = &control->instance[state->instance].required;
    old = __atomic_load_n(required, __ATOMIC_SEQ_CST);
    tail = ngx_bloom_state_tail(state);

    if (old > tail
        && ((old & NGX_BLOOM_KEPT) == 0
            || ngx_bloom_kept_empty(&control->kept)))
    {
        (void) __atomic_compare_exchange_n(required, &old, tail, 0,
                                           __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    }

    ngx_bloom_unlock(&control->append);

    return NGX_OK;
}


/* Has the file been replaced? */
static void
ngx_bloom_helper_look(ngx_bloom_work_t *work)
{
    uint64_t              ticket;
    const char           *error;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_shctx_t    *sh;
    ngx_bloom_file_id_t   id;

    zone = work->zone;
    sh = zone->sh;

    if (zone->watch == 0
        || ngx_current_msec - work->looked < zone->watch
        || ngx_strcmp(zone->file.name.data, sh->file_name) != 0)
    {
        return;
    }

    work->looked = ngx_current_msec;

    if (!ngx_bloom_helper_file_id(sh->file_name, &id)
        || ngx_bloom_file_same(&id, &sh->file_id)
        || ngx_bloom_file_same(&id, &work->refused))
    {
        return;
    }

    (void) ngx_bloom_task_request(zone, NGX_BLOOM_TASK_LOAD, NULL, &ticket,
                                  &error);
}


static ngx_uint_t
ngx_bloom_helper_file_id(u_char *name, ngx_bloom_file_id_t *id)
{
    struct stat  st;

    if (stat((char *) name, &st) == -1) {
        return 0;
    }

    id->device = st.st_dev;
    id->inode = st.st_ino;
    id->sec = st.st_ctim.tv_sec;
    id->nsec = st.st_ctim.tv_nsec;

    return 1;
}


/* What to do next, if anything. */
static void
ngx_bloom_helper_choose(ngx_bloom_work_t *work)
{
    uint64_t              behind, limit;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_shctx_t    *sh;

    zone = work->zone;
    sh = zone->sh;

    work->asked = 1;

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_UPLOAD, work->path)
        == NGX_OK)
    {
        ngx_bloom_helper_load(work, NGX_BLOOM_TASK_UPLOAD);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_LOAD, NULL) == NGX_OK) {
        ngx_bloom_helper_load(work, NGX_BLOOM_TASK_LOAD);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_CHECKPOINT, NULL)
        == NGX_OK)
    {
        ngx_bloom_helper_save(work, NGX_BLOOM_TASK_CHECKPOINT);
        return;
    }

    if (ngx_bloom_task_begin(zone, NGX_BLOOM_TASK_SNAPSHOT, NULL) == NGX_OK) {
        ngx_bloom_helper_save(work, NGX_BLOOM_TASK_SNAPSHOT);
        return;
    }

    if (zone->state == NULL) {
        return;
    }

    /* would a start take long? */

    behind = ngx_max(sh->checkpoint, zone->state->control->begin);
    limit = ngx_max(NGX_BLOOM_CHECKPOINT_MIN,
                    bloom_image_payload_size(&sh->bank[sh->generation & 1]
                                              .image));

    if (sh->generation != 0
        && sh->applied > behind && sh->applied - behind > limit
        && ngx_current_msec - work->save_failed >= NGX_BLOOM_HELPER_HOUSE)
    {
        work->asked = 0;
        ngx_bloom_helper_save(work, NGX_BLOOM_TASK_CHECKPOINT);
        return;
    }

    if (work->compact == NULL) {
        work->compact = ngx_bloom_compact_begin(zone);
    }

    if (work->compact != NULL) {
        work->does = NGX_BLOOM_HELPER_COMPACTS;
    }
}


static void
ngx_bloom_helper_load(ngx_bloom_work_t *work, ngx_bloom_task_e task)
{
    ngx_int_t          rc;
    ngx_str_t          name;
    ngx_bloom_zone_t  *zone;

    zone = work->zone;

    work->does = NGX_BLOOM_HELPER_LOADS;
    work->task = task;
    work->old = zone->sh->generation & 1;
    work->saved = 0;

    /* not zone->file: that may be of the cycle before */

    if (task == NGX_BLOOM_TASK_LOAD) {
        ngx_cpystrn(work->path, zone->sh->file_name, NGX_MAX_PATH);
    }

    name.data = work->path;
    name.len = ngx_strlen(work->path);

    rc = ngx_bloom_load_begin(&work->load, zone, &name, NULL, 0,
                              task == NGX_BLOOM_TASK_UPLOAD
                              ? "the uploaded image" : NULL);

    work->file_id = work->load.file.id;

    if (rc != NGX_OK) {
        ngx_bloom_helper_refused(work);
    }
}


static void
ngx_bloom_helper_save(ngx_bloom_work_t *work, ngx_bloom_task_e task)
{
    ngx_int_t           rc;
    ngx_bloom_zone_t   *zone;

    zone = work->zone;

    work->does = NGX_BLOOM_HELPER_SAVES;
    work->task = task;
    work->save_begun = ngx_bloom_time();

    rc = (zone->sh->generation != 0) ? ngx_bloom_helper_follow(zone)
                                     : NGX_ERROR;

    if (rc == NGX_OK
        && ngx_bloom_lock(&zone->state->control->keeper, 1000) == NGX_OK)
    {
        rc = ngx_bloom_journal_sync(zone->state);
        ngx_bloom_unlock(&zone->state->control->keeper);
    }

    if (rc != NGX_OK) {
        ngx_memzero(&work->save, sizeof(ngx_bloom_save_t));
        work->save.fd = NGX_INVALID_FILE;
        ngx_bloom_state_name(zone->state, work->save.tmp, "journal");
        work->save.err = ngx_errno;
        work->save.error = "cannot be synchronised, as a copy of the zone needs";

    } else {
        rc = ngx_bloom_save_begin(&work->save, zone, task,
                                  zone->sh->task[task].begun);
    }

    if (rc != NGX_OK) {
        ngx_bloom_helper_saved(work, rc);
    }
}


static void
ngx_bloom_helper_step(ngx_bloom_work_t *work)
{
    ngx_int_t  rc;

    switch (work->does) {

    case NGX_BLOOM_HELPER_LOADS:
        rc = ngx_bloom_load_step(&work->load);

        if (rc == NGX_ERROR) {
            ngx_bloom_helper_refused(work);

        } else if (rc == NGX_OK) {
            ngx_bloom_helper_loaded(work);
        }

        break;

    case NGX_BLOOM_HELPER_COPIES:
        rc = ngx_bloom_helper_copy(work);

        if (rc == NGX_ERROR) {
            ngx_bloom_helper_refused(work);

        } else if (rc == NGX_OK) {

            /* what was added meanwhile */

            work->saved = 1;
            work->does = NGX_BLOOM_HELPER_LOADS;
        }

        break;

    case NGX_BLOOM_HELPER_RELEASES:

        if (!ngx_bloom_load_release(work->zone, work->old,
                                    NGX_BLOOM_RELEASE))
        {
            work->does = NGX_BLOOM_HELPER_NOTHING;
        }

        break;

    case NGX_BLOOM_HELPER_SAVES:
        rc = ngx_bloom_save_step(&work->save);

        if (rc != NGX_AGAIN) {
            ngx_bloom_helper_saved(work, rc);
        }

        break;

    case NGX_BLOOM_HELPER_COMPACTS:

        /* whatever else there is to do comes between its steps */

        if (ngx_bloom_compact_step(work->compact) == NGX_DONE) {
            ngx_bloom_compact_end(work->compact);
            work->compact = NULL;
        }

        work->does = NGX_BLOOM_HELPER_NOTHING;
        break;

    default: /* NGX_BLOOM_HELPER_NOTHING */
        break;
    }
}


/* An image is loaded, checked, and has the journal's keys. */
static void
ngx_bloom_helper_loaded(ngx_bloom_work_t *work)
{
    ngx_bloom_zone_t  *zone;

    zone = work->zone;

    if (work->task == NGX_BLOOM_TASK_UPLOAD && !work->saved) {

        /* it must be there after a restart */

        ngx_bloom_state_name(zone->state, work->tmp, "upload.%P.tmp",
                             ngx_pid);

        work->copied = 0;
        work->from = ngx_bloom_open(work->path, O_RDONLY);
        work->to = ngx_bloom_open(work->tmp, O_RDWR|O_CREAT|O_TRUNC);
        work->does = NGX_BLOOM_HELPER_COPIES;

        return;
    }

    ngx_bloom_helper_switch(work);
}


static ngx_int_t
ngx_bloom_helper_copy(ngx_bloom_work_t *work)
{
    u_char            *buf;
    ssize_t            n;
    ngx_err_t          err;
    ngx_int_t          rc;
    ngx_bloom_zone_t  *zone;

    zone = work->zone;
    rc = NGX_ERROR;
    buf = malloc(BLOOM_IMAGE_CHUNK);

    if (buf == NULL || work->from == NGX_INVALID_FILE
        || work->to == NGX_INVALID_FILE)
    {
        goto done;
    }

    n = ngx_bloom_read(work->from, buf, BLOOM_IMAGE_CHUNK, work->copied);

    if (n > 0 && ngx_bloom_write(work->to, buf, n, work->copied) == NGX_OK) {
        work->copied += n;
        free(buf);
        return NGX_AGAIN;
    }

    if (n == 0 && ngx_bloom_sync(work->to) == NGX_OK) {
        rc = NGX_OK;
    }

done:

    err = ngx_errno;

    free(buf);
    ngx_bloom_helper_close(work);

    if (rc != NGX_OK) {
        (void) ngx_bloom_remove(work->tmp);
    }

    if (rc != NGX_OK) {
        work->load.outcome = NGX_BLOOM_FAILED;
        ngx_bloom_print(work->load.error, sizeof(work->load.error),
                            "the image cannot be kept in \"%V\" (%d: %s)",
                            &zone->state->path, err, strerror(err));
    }

    return rc;
}


static void
ngx_bloom_helper_close(ngx_bloom_work_t *work)
{
    if (work->from != NGX_INVALID_FILE) {
        (void) ngx_close_file(work->from);
        work->from = NGX_INVALID_FILE;
    }

    if (work->to != NGX_INVALID_FILE) {
        (void) ngx_close_file(work->to);
        work->to = NGX_INVALID_FILE;
    }
}


/*
 * Names the image that serves the base: a crash before this is done leaves the
 * one before, and nobody was told otherwise.
 */
static ngx_int_t
ngx_bloom_helper_rebase(ngx_bloom_work_t *work, ngx_uint_t uploaded)
{
    u_char             name[NGX_MAX_PATH];
    uint64_t           position;
    ngx_bloom_zone_t  *zone;

    zone = work->zone;

    if (zone->state == NULL) {
        return NGX_OK;
    }

    if (!uploaded) {
        ngx_bloom_save_remove(zone->state, "upload.", NULL, 0);

        if (ngx_bloom_sync_directory(zone->state->path.data) != NGX_OK) {
            return NGX_ERROR;
        }

    } else {
        ngx_bloom_save_upload_name(zone->state, zone->sh->file
                                   ? zone->sh->file_build
                                   : ngx_bloom_save_empty, name);

        if (ngx_bloom_rename(zone->state->path.data, work->tmp, name)
            != NGX_OK)
        {
            return NGX_ERROR;
        }

        ngx_bloom_save_remove(zone->state, "upload.",
                              (u_char *) strrchr((char *) name, '/') + 1, 0);
    }

    /* a start would use a checkpoint that was made of this image before */

    if (ngx_bloom_save_find(zone->state, work->load.image.build_id, name,
                            &position)
        == NGX_OK)
    {
        zone->sh->checkpoint = position;
    }

    return NGX_OK;
}


static void
ngx_bloom_helper_switch(ngx_bloom_work_t *work)
{
    ngx_uint_t           uploaded;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_shctx_t   *sh;
    ngx_bloom_result_t   result;

    zone = work->zone;
    sh = zone->sh;
    uploaded = (work->task == NGX_BLOOM_TASK_UPLOAD);

    if (ngx_bloom_load_switch(&work->load, uploaded) != NGX_OK) {

        if (uploaded) {
            (void) ngx_bloom_remove(work->tmp);
        }

        ngx_bloom_helper_refused(work);
        return;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));
    result.outcome = NGX_BLOOM_DONE;

    if (ngx_bloom_helper_rebase(work, uploaded) != NGX_OK) {
        result.outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result.message, sizeof(result.message),
                        "the image serves, but after a restart the one before "
                        "will: \"%V\" cannot be written (%d: %s)",
                        &zone->state->path, ngx_errno, strerror(ngx_errno));

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %s", &zone->name, result.message);
    }

    if (!uploaded) {
        sh->file_id = work->file_id;
        ngx_memcpy(sh->file_build, work->load.image.build_id,
                   BLOOM_IMAGE_BUILD_ID_LEN);
    }

    ngx_bloom_load_end(&work->load);

    ngx_bloom_helper_done(work, &result, work->load.begun);

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "bloom zone \"%V\" serves generation %uL: %s, with %uL keys "
                  "of its journal, loaded in %uL ms",
                  &zone->name, sh->generation,
                  uploaded ? "an uploaded image" : (char *) work->path,
                  work->load.keys, result.took);

    work->housed = ngx_current_msec - NGX_BLOOM_HELPER_HOUSE;
    work->does = NGX_BLOOM_HELPER_RELEASES;
}


static void
ngx_bloom_helper_refused(ngx_bloom_work_t *work)
{
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t   result;

    zone = work->zone;

    if (work->task == NGX_BLOOM_TASK_LOAD
        && work->load.outcome != NGX_BLOOM_FAILED)
    {
        work->refused = work->file_id;
    }

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    result.outcome = work->load.outcome;
    ngx_cpystrn(result.message, work->load.error, sizeof(result.message));

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "%s; bloom zone \"%V\" goes on with generation %uL",
                  work->load.error, &zone->name, zone->sh->generation);

    ngx_bloom_load_end(&work->load);
    ngx_bloom_helper_done(work, &result, work->load.begun);

    /* what was loaded of it */

    work->old = work->load.bank;
    work->does = NGX_BLOOM_HELPER_RELEASES;
}


static void
ngx_bloom_helper_saved(ngx_bloom_work_t *work, ngx_int_t rc)
{
    ngx_bloom_save_t    *save;
    ngx_bloom_zone_t    *zone;
    ngx_bloom_result_t   result;

    zone = work->zone;
    save = &work->save;

    ngx_memzero(&result, sizeof(ngx_bloom_result_t));

    if (rc == NGX_OK) {
        ngx_cpystrn(result.path, save->name, sizeof(result.path));

    } else {
        result.outcome = NGX_BLOOM_FAILED;

        ngx_bloom_print(result.message, sizeof(result.message),
                            "\"%s\" %s (%d: %s)", save->tmp,
                            rc == NGX_DECLINED ? "became of no use: another "
                                                 "image serves"
                                               : save->error,
                            save->err, strerror(save->err));

        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "bloom zone \"%V\": %s", &zone->name, result.message);

        work->save_failed = ngx_current_msec;
    }

    ngx_bloom_save_end(save);

    work->does = NGX_BLOOM_HELPER_NOTHING;

    if (work->asked) {
        ngx_bloom_helper_done(work, &result, work->save_begun);
    }
}


static void
ngx_bloom_helper_done(ngx_bloom_work_t *work, ngx_bloom_result_t *result,
    uint64_t begun)
{
    ngx_uint_t            all;
    ngx_bloom_zone_t     *zone;
    ngx_bloom_file_id_t   id;

    zone = work->zone;

    result->generation = zone->sh->generation;
    result->when = begun;
    result->took = ngx_bloom_time() - begun;

    /* who asked for the same file meanwhile has it as well */

    all = (work->task == NGX_BLOOM_TASK_LOAD
           && ngx_bloom_helper_file_id(zone->sh->file_name, &id)
           && ngx_bloom_file_same(&id, &work->file_id));

    ngx_bloom_task_end(zone, work->task, result, all);
}


static void
ngx_bloom_helper_house(ngx_bloom_work_t *work)
{
    u_char              name[NGX_MAX_PATH];
    uint64_t            cut;
    ngx_bloom_zone_t   *zone;
    ngx_bloom_shctx_t  *sh;

    zone = work->zone;
    sh = zone->sh;

    ngx_bloom_state_prune(zone->state);

    ngx_bloom_save_remove(zone->state, "snapshot.", NULL,
                          NGX_BLOOM_SNAPSHOT_AGE);
    ngx_bloom_save_remove(zone->state, "save.", NULL, NGX_BLOOM_TMP_AGE);

    if (zone->state->control->instances
        == (uint64_t) 1 << zone->state->instance)
    {
        /* uploads in place of an image that file= is no more */

        ngx_bloom_save_upload_name(zone->state, sh->file
                                   ? sh->file_build : ngx_bloom_save_empty,
                                   name);

        ngx_bloom_save_remove(zone->state, "upload.",
                              (u_char *) strrchr((char *) name, '/') + 1, 0);
    }

    if (ngx_bloom_compact_settle(zone->state) != NGX_OK) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, ngx_errno,
                      "bloom zone \"%V\": compacting the journal in \"%V\" "
                      "cannot be brought to its end; look at the disk",
                      &zone->name, &zone->state->path);
        return;
    }

    if (sh->generation == 0) {
        return;
    }

    cut = ngx_bloom_load_cut(&sh->bank[sh->generation & 1].image);

    if (cut == 0) {
        return;
    }

    while (ngx_bloom_journal_drop(zone->state, cut) == NGX_OK) {
        ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                      "bloom zone \"%V\": a segment of the journal is not "
                      "needed any more and was removed", &zone->name);
    }
}
