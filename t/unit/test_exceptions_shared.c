/* SPDX-License-Identifier: BSD-2-Clause */
/* LDLIBS: -lpthread */

/*
 * These tests change a set of exceptions while other threads and processes use
 * it, and kill processes within a change.
 */

#include "unit.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bloom_exceptions.h"

#define STABLE_MAX  100
#define KILLS       300


/* How many keys never change, and how many are in the set at times.  Further
 * keys, as many as the stable ones, are never put. */
static unsigned  stable, changing;


static const uint8_t  secret[BLOOM_HASH_KEY_LEN] = "a secret of test";


/* A key, which is made of its number, and has 1 to 3 cells. */
static size_t
key_of(unsigned number, uint8_t key[160])
{
    size_t  len;

    len = 4 + number * 7 % 150;
    memset(key, (int) number, 160);
    memcpy(key, &number, sizeof(number));

    return len;
}


/* Returns the number of a key, or UINT_MAX if it is not valid. */
static unsigned
number_of(const bloom_key_t *key)
{
    size_t    len;
    uint8_t   expected[160];
    unsigned  number;

    if (key->len < sizeof(number)) {
        return UINT_MAX;
    }

    memcpy(&number, key->data, sizeof(number));

    len = key_of(number, expected);

    return len == key->len && memcmp(key->data, expected, len) == 0
           ? number : UINT_MAX;
}


static int
put(bloom_exceptions_t *set, unsigned number)
{
    uint8_t            key[160];
    bloom_exception_t  exception;

    exception.kinds = BLOOM_EXCEPTION_REMOVED;
    exception.time = number;
    exception.position = 0;
    exception.key.data = key;
    exception.key.len = key_of(number, key);

    return bloom_exceptions_put(set, &exception);
}


/* Makes a set with the stable keys, and room for all others that are put. */
static void
make(bloom_exceptions_t *set)
{
    void      *memory;
    unsigned   number;
    uint64_t   n, bytes;

    n = stable + changing;
    bytes = n * BLOOM_EXCEPTION_KEY_USUAL;

    memory = mmap(NULL, bloom_exceptions_size(n, bytes),
                  PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);

    bloom_exceptions_attach(set, memory, n, bytes);
    bloom_exceptions_init(set, secret);

    for (number = 0; number < stable; number++) {
        assert_int_equal(put(set, number), 1);
    }
}


static int
drop(bloom_exceptions_t *set, unsigned number)
{
    uint8_t  key[160];
    size_t   len;

    len = key_of(number, key);

    return bloom_exceptions_drop(set, key, len, BLOOM_EXCEPTION_KINDS,
                                 UINT64_MAX);
}


static int
has(bloom_exceptions_t *set, unsigned number)
{
    uint8_t  key[160];
    size_t   len;

    len = key_of(number, key);

    return bloom_exceptions_has(set, key, len) == BLOOM_EXCEPTION_REMOVED;
}


/* Lists the keys.  Returns how many stable ones there are; -1 if a key is wrong
 * or a stable key is listed twice. */
static int
list(bloom_exceptions_t *set)
{
    int                listed;
    uint8_t            buf[BLOOM_KEY_MAX], seen[STABLE_MAX];
    unsigned           number;
    uint64_t           cursor;
    bloom_exception_t  exception;

    memset(seen, 0, sizeof(seen));
    listed = 0;
    cursor = 0;

    while (bloom_exceptions_next(set, &cursor, &exception, buf)) {
        number = number_of(&exception.key);

        if (number >= stable + changing
            || exception.kinds != BLOOM_EXCEPTION_REMOVED)
        {
            return -1;
        }

        if (number < stable) {
            if (seen[number]++ || exception.time != number) {
                return -1;
            }

            listed++;
        }
    }

    return listed;
}


/* ---- threads ---- */


typedef struct {
    bloom_exceptions_t  *set;
    uint64_t             random;
    int                  stop;           /* atomic */
    uint64_t             done;
    uint64_t             wrong;
} job_t;


/* Keys that are never put are not found, stable ones always. */
static void *
look_up(void *data)
{
    job_t  *job = data;

    unsigned  number;

    while (!__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
        number = (unsigned) (unit_random(&job->random)
                             % (2 * stable + changing));

        if (number < stable) {
            job->wrong += !has(job->set, number);

        } else if (number >= stable + changing) {
            job->wrong += has(job->set, number);

        } else {
            (void) has(job->set, number);
        }

        job->done++;
    }

    return NULL;
}


static void *
drop_keys(void *data)
{
    job_t  *job = data;

    unsigned  number;

    while (!__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
        number = stable + (unsigned) (unit_random(&job->random)
                                      % changing);
        job->done += (uint64_t) drop(job->set, number);
    }

    return NULL;
}


static void *
list_keys(void *data)
{
    job_t  *job = data;

    while (!__atomic_load_n(&job->stop, __ATOMIC_RELAXED)) {
        job->wrong += list(job->set) != (int) stable;
        job->done++;
    }

    return NULL;
}


static void
run_threads(unsigned changes)
{
    unsigned            i, number;
    uint64_t            random, put_keys, dropped;
    pthread_t           thread[4];
    job_t               job[4];
    bloom_exceptions_t  set;

    static void  *(*start[4])(void *) = {
        look_up, drop_keys, drop_keys, list_keys
    };

    make(&set);

    memset(job, 0, sizeof(job));

    for (i = 0; i < 4; i++) {
        job[i].set = &set;
        job[i].random = i;
        assert_int_equal(pthread_create(&thread[i], NULL, start[i], &job[i]),
                         0);
    }

    random = 99;
    put_keys = 0;

    for (i = 0; i < changes; i++) {
        number = stable + (unsigned) (unit_random(&random) % changing);
        put_keys += put(&set, number) == 1;
    }

    for (i = 0; i < 4; i++) {
        __atomic_store_n(&job[i].stop, 1, __ATOMIC_RELAXED);
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(job[i].wrong, 0);
    }

    dropped = job[1].done + job[2].done;

    for (number = stable; number < stable + changing; number++) {
        dropped += (uint64_t) drop(&set, number);
    }

    assert_int_equal(dropped, put_keys);
    assert_int_equal(bloom_exceptions_count(&set), stable);
    assert_int_equal(list(&set), stable);

    for (number = 0; number < stable; number++) {
        assert_int_equal(drop(&set, number), 1);
    }

    assert_int_equal(set.head->cells_used, 0);
}


TEST(threads_look_up_list_and_drop_while_one_puts)
{
    stable = 100;
    changing = 200;
    run_threads(300000);
}


/* Slots and cells are used again at once. */
TEST(threads_that_change_few_keys)
{
    stable = 1;
    changing = 2;
    run_threads(3000000);
}


/* ---- processes that are killed ---- */


/* Puts and drops keys until it is killed.  tried[i] says what was begun last
 * for a key, and done[i] what has ended. */
static void
change(bloom_exceptions_t *set, uint64_t random, uint8_t *tried, uint8_t *done)
{
    unsigned  number;

    for ( ;; ) {
        number = stable + (unsigned) (unit_random(&random) % changing);

        if (unit_random(&random) & 1) {
            __atomic_store_n(&tried[number], 1, __ATOMIC_SEQ_CST);

            if (put(set, number) == -1) {
                __atomic_store_n(&tried[number], done[number],
                                 __ATOMIC_SEQ_CST);
                continue;
            }

            __atomic_store_n(&done[number], 1, __ATOMIC_SEQ_CST);

        } else {
            __atomic_store_n(&tried[number], 0, __ATOMIC_SEQ_CST);
            (void) drop(set, number);
            __atomic_store_n(&done[number], 0, __ATOMIC_SEQ_CST);
        }
    }
}


TEST(killed_processes_leave_a_set_that_can_be_used)
{
    int                 status;
    pid_t               pid;
    uint8_t            *tried, *done;
    unsigned            i, number, keys;
    uint64_t            random, lost, count;
    bloom_exceptions_t  set;

    stable = 100;
    changing = 200;
    make(&set);

    keys = stable + changing;
    tried = mmap(NULL, 2 * keys, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(tried != MAP_FAILED);
    done = tried + keys;

    random = 5;
    lost = 0;

    for (i = 0; i < KILLS; i++) {
        pid = fork();
        assert_true(pid >= 0);

        if (pid == 0) {
            change(&set, i, tried, done);
        }

        usleep(100 + (unsigned) (unit_random(&random) % 2000));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

        assert_int_equal(list(&set), stable);

        for (number = 0, count = 0; number < keys; number++) {
            if (number < stable) {
                assert_int_equal(has(&set, number), 1);

            } else if (tried[number] == done[number]) {
                assert_int_equal(has(&set, number), done[number]);

            } else {
                tried[number] = done[number] = (uint8_t) has(&set, number);
            }

            count += (uint64_t) has(&set, number);
        }

        /* the counter may only be too high, by one for each death */

        lost = bloom_exceptions_count(&set) - count;
        assert_true(lost <= i + 1);
    }

    /* the room that is left can be used */

    for (number = stable; number < keys; number++) {
        (void) drop(&set, number);
    }

    assert_int_equal(bloom_exceptions_count(&set), stable + lost);

    for (number = stable; bloom_exceptions_count(&set) < keys; number++) {
        if (put(&set, number) == -1) {
            assert_true(bloom_exceptions_free(&set)
                        < bloom_exceptions_cells(160));
            break;
        }
    }

    munmap(tried, 2 * keys);
}
