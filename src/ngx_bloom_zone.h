
/*
 * Zones: filters in shared memory.
 *
 * A zone has two banks, each with room for one image.  The generation counts
 * the images that have served; its lowest bit says which bank serves:
 *
 *     shared memory:   slab header | control block | bank 0 | bank 1
 *
 *     lookup    read generation g; test in bank g & 1; read the generation
 *               again: if it changed, the answer is thrown away and the lookup
 *               begins anew
 *     load      write bank (g + 1) & 1, which nobody reads; then g + 1
 *
 * So a lookup takes no lock and waits for nobody, and is answered from one
 * whole generation.  Generation 0 serves nothing: the zone cannot tell.
 *
 * The slab header stays as nginx made it: its master reads it when a process
 * dies.
 */

#ifndef _NGX_BLOOM_ZONE_H_INCLUDED_
#define _NGX_BLOOM_ZONE_H_INCLUDED_

#include <ngx_config.h>
#include <ngx_core.h>

#include "ngx_bloom_file.h"

#pragma GCC visibility push(hidden)


/* Answers of a zone. */
#define NGX_BLOOM_ABSENT   0
#define NGX_BLOOM_PRESENT  1             /* maybe */
#define NGX_BLOOM_UNKNOWN  2             /* the zone cannot tell */


/* In shared memory.  Written by the master alone, in init and in commit. */
typedef struct {
    uint64_t            generation;      /* atomic; 0: nothing serves */
    size_t              bank_size;
    u_char             *banks;           /* the same address everywhere */

    struct {
        ngx_uint_t           filled;     /* 0: nothing in it */
        bloom_image_t        image;
        ngx_uint_t           file;       /* 1: of a file, 0: started empty */
        ngx_bloom_file_id_t  id;         /* the file last seen to be whole */
    } bank[2];
} ngx_bloom_shctx_t;


/* In a process's own memory: of a cycle's pool, copied by fork. */
typedef struct {
    ngx_str_t           name;
    ngx_shm_zone_t     *shm_zone;        /* NULL: not declared */
    ngx_bloom_shctx_t  *sh;

    /* where the configuration first speaks of it */
    u_char             *conf_file;
    ngx_uint_t          conf_line;

    /* what it is to hold */
    ngx_bloom_file_t    file;            /* name.len 0: starts empty */
    bloom_image_t       image;
    ngx_uint_t          pending;         /* loaded, and serves from commit */

    /* what a lookup needs of the generation last seen */
    uint64_t            generation;
    bloom_geometry_t    geometry;
    bloom_hasher_t      hasher;
    const uint64_t     *words;
} ngx_bloom_zone_t;


/*
 * Whether the zone has the key: NGX_BLOOM_...  Each lookup is answered by one
 * whole generation, that which serves at the time.
 */
ngx_uint_t ngx_bloom_zone_test(ngx_bloom_zone_t *zone, ngx_str_t *key);


/* ---- while a configuration is read: errors are logged with its line ---- */

/*
 * The zone of this name in `zones`, an array of pointers; made, and not yet
 * declared, if there is none.  NULL if memory is short.
 */
ngx_bloom_zone_t *ngx_bloom_zone_get(ngx_conf_t *cf, ngx_array_t *zones,
    ngx_str_t *name);

/*
 * Declares a zone of `size` bytes, or of a fitting size if 0, for the image
 * zone->file.name, or, if that is empty, one that starts empty with the
 * geometry, capacity, rate and kind of hash of zone->image.  `tag` is the
 * module's.
 */
ngx_int_t ngx_bloom_zone_declare(ngx_conf_t *cf, ngx_bloom_zone_t *zone,
    size_t size, void *tag);

/* Refuses zones that were spoken of and not declared. */
ngx_int_t ngx_bloom_zones_check(ngx_conf_t *cf, ngx_array_t *zones);


/* ---- when a configuration has been accepted: cannot fail ---- */

/* Lets the images serve that were loaded while it was not sure yet. */
void ngx_bloom_zones_commit(ngx_cycle_t *cycle, ngx_array_t *zones);


#pragma GCC visibility pop

#endif /* _NGX_BLOOM_ZONE_H_INCLUDED_ */
