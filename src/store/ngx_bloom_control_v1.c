/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads control pages of version 1.
 */

#include "ngx_bloom_control_v1.h"
#include "ngx_bloom_io.h"

#include <pthread.h>


/* A control page of version 1. */
typedef struct {
    uint64_t             magic;
    uint64_t             size;           /* of this structure */
    pthread_mutex_t      append;
    pthread_mutex_t      keeper;
    pthread_mutex_t      history;
    uint64_t             which;
    uint64_t             end[2][5];
    uint64_t             begin;
    uint64_t             compacted;
    uint64_t             prepared;
    uint64_t             synced;
    uint64_t             synced_check;   /* ~synced */
    uint64_t             wanted;
    uint64_t             dropped;
    uint64_t             err;
    uint64_t             failed;
    uint64_t             rewrite;
    uint64_t             instances;
    uint64_t             instance[64][8];

    struct {
        pthread_mutex_t      mutex;
        uint64_t             begin;
        uint64_t             end;
        uint64_t             count;
        uint64_t             lost;
        u_char               data[NGX_BLOOM_CONTROL_V1_ROOM];
    } pending;
} ngx_bloom_control_v1_page_t;


uint64_t
ngx_bloom_control_v1_size(void)
{
    return sizeof(ngx_bloom_control_v1_page_t);
}


ngx_int_t
ngx_bloom_control_v1_read(ngx_fd_t fd, ngx_bloom_control_v1_t *v1,
    u_char *keys)
{
    ngx_bloom_control_v1_page_t  *page;

    ngx_memzero(v1, sizeof(ngx_bloom_control_v1_t));

    page = calloc(1, sizeof(ngx_bloom_control_v1_page_t));

    if (page == NULL
        || ngx_bloom_io_read(fd, page, sizeof(ngx_bloom_control_v1_page_t), 0)
           == NGX_ERROR)
    {
        free(page);
        return NGX_ERROR;
    }

    if (page->synced == ~page->synced_check) {
        v1->synced = page->synced;
    }

    v1->rewrite = (page->rewrite != 0);
    v1->lost_keys = page->pending.lost;

    if (page->pending.begin <= page->pending.end
        && page->pending.end <= sizeof(page->pending.data))
    {
        v1->count = page->pending.count;
        v1->len = page->pending.end - page->pending.begin;

        ngx_memcpy(keys, page->pending.data + page->pending.begin, v1->len);

    } else {
        v1->lost_keys++;                 /* their number is not known */
    }

    free(page);

    return NGX_OK;
}
