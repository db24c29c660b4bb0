/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This header is the C interface by which other code in the same nginx process
 * looks up, adds and removes keys: Lua by LuaJIT's FFI (lua/resty/bloom.lua),
 * or another module.  docs/lua.md describes it.
 *
 * nginx loads modules with RTLD_GLOBAL and is linked with -Wl,-E, so dlsym()
 * with RTLD_DEFAULT, which ffi.C uses, finds these functions whether the module
 * is dynamic or static.
 *
 *   - Call the functions in the main thread of a worker, or of the only process
 *     with "master_process off".  Any other call returns
 *     NGX_HTTP_BLOOM_FFI_E_PROCESS and does nothing: in the master, as in
 *     init_by_lua; in the helper processes; in threads; in a worker that has
 *     run its exit handlers.
 *   - Keys are bytes, NUL bytes among them.  A key of 0 bytes is empty, and its
 *     pointer is not used.  A key of more than 65535 bytes is invalid.
 *   - A zone is named as in its `bloom_zone` directive, by `name_len` bytes.
 *   - The caller keeps all memory that it passes.  Nothing of it is used after
 *     the call.
 *   - No function waits for a disk or takes memory that grows with its calls.
 *     Lookups wait for nothing.  Additions and removals wait for locks: usually
 *     for none, for about 100 ms at most.
 */

#ifndef _NGX_HTTP_BLOOM_FFI_H_INCLUDED_
#define _NGX_HTTP_BLOOM_FFI_H_INCLUDED_

#include <stddef.h>


/*
 * The version of the interface: 1000 times the major number, plus the minor.
 * The minor number grows when something is added.  The major number grows when
 * something is changed or removed.  So code that was written for 1002 works
 * with 1002 to 1999.
 */
#define NGX_HTTP_BLOOM_FFI_VERSION         1000

/* How many keys ngx_http_bloom_ffi_test_many() takes. */
#define NGX_HTTP_BLOOM_FFI_KEYS_MAX        1024


/* Results.  The first five are answers of lookups. */
#define NGX_HTTP_BLOOM_FFI_ABSENT          0  /* definitely; of a removal: the
                                                 key was absent already */
#define NGX_HTTP_BLOOM_FFI_PRESENT         1  /* maybe; of an addition: the key
                                                 was present already */
#define NGX_HTTP_BLOOM_FFI_UNKNOWN         2  /* the zone cannot tell */
#define NGX_HTTP_BLOOM_FFI_INVALID         3  /* in the zone's key form, or too
                                                 long */
#define NGX_HTTP_BLOOM_FFI_EMPTY           4  /* the key has no bytes */
#define NGX_HTTP_BLOOM_FFI_ADDED           5
#define NGX_HTTP_BLOOM_FFI_REMOVED         6

/* Errors.  After E_NOT_SAVED the key is in the filter; after any other error
 * nothing has changed. */
#define NGX_HTTP_BLOOM_FFI_E_ARGUMENT     -1  /* a pointer is NULL, or there
                                                 are too many keys */
#define NGX_HTTP_BLOOM_FFI_E_PROCESS      -2  /* not in this process, or not in
                                                 this thread */
#define NGX_HTTP_BLOOM_FFI_E_ZONE         -3  /* the configuration of this
                                                 process has no such zone */
#define NGX_HTTP_BLOOM_FFI_E_NEVER        -4  /* the configuration does not let
                                                 the zone take such keys */
#define NGX_HTTP_BLOOM_FFI_E_NOT_NOW      -5  /* try again later */
#define NGX_HTTP_BLOOM_FFI_E_NO_ROOM      -6  /* for removed keys */
#define NGX_HTTP_BLOOM_FFI_E_NOT_SAVED    -7  /* the key is in the filter that
                                                 serves and nowhere else: the
                                                 next load loses it */


/* A key of ngx_http_bloom_ffi_test_many(). */
typedef struct {
    const char    *data;                 /* NULL only if len is 0 */
    size_t         len;
} ngx_http_bloom_ffi_key_t;


/* Returns NGX_HTTP_BLOOM_FFI_VERSION of the module that is loaded.  May be
 * called anywhere. */
int ngx_http_bloom_ffi_version(void);

/*
 * Looks up a key as `bloom_lookup` does, and counts the answer.  Returns
 * ABSENT, PRESENT, UNKNOWN, INVALID, EMPTY, E_ARGUMENT, E_PROCESS or E_ZONE.
 */
int ngx_http_bloom_ffi_test(const char *name, size_t name_len, const char *key,
    size_t len);

/*
 * Looks up `n` keys, up to NGX_HTTP_BLOOM_FFI_KEYS_MAX, with their memory
 * requested together, and counts the answers.  Stores in answers[i] the answer
 * for keys[i]: ABSENT, PRESENT, UNKNOWN, INVALID or EMPTY.  Returns 0; or
 * E_ARGUMENT, E_PROCESS or E_ZONE, and stores nothing.
 */
int ngx_http_bloom_ffi_test_many(const char *name, size_t name_len,
    const ngx_http_bloom_ffi_key_t *keys, size_t n, unsigned char *answers);

/*
 * Adds a key as `bloom_add` does: when the call returns ADDED or PRESENT, all
 * workers have the key, and it is in the journal, or waits in shared memory
 * until the journal can take it.  Returns ADDED, PRESENT, INVALID, EMPTY,
 * E_ARGUMENT, E_PROCESS, E_ZONE, E_NEVER or E_NOT_SAVED.
 */
int ngx_http_bloom_ffi_add(const char *name, size_t name_len, const char *key,
    size_t len);

/*
 * Removes a key as `bloom_remove` does: when the call returns REMOVED or
 * ABSENT, the key is absent in all workers, and the removal is in the journal.
 * Returns REMOVED, ABSENT, INVALID, EMPTY, E_ARGUMENT, E_PROCESS, E_ZONE,
 * E_NEVER, E_NOT_NOW or E_NO_ROOM.
 */
int ngx_http_bloom_ffi_remove(const char *name, size_t name_len,
    const char *key, size_t len);

/*
 * Returns why the last call returned UNKNOWN, INVALID, EMPTY or an error, or
 * why one of the keys of test_many() got such an answer: a text for people,
 * null-terminated, which the next call of another function overwrites.  After
 * another result, and in another thread, the text is not meaningful.  Never
 * NULL.
 */
const char *ngx_http_bloom_ffi_reason(void);


#endif /* _NGX_HTTP_BLOOM_FFI_H_INCLUDED_ */
