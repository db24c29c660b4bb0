/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file reads /proc/meminfo and the limits of control groups of version 1
 * and version 2.  A file that cannot be read counts as no limit.
 */

#include "ngx_bloom_memory.h"
#include "ngx_bloom_io.h"


#define NGX_BLOOM_MEMORY_MACHINE  "/proc/meminfo"
#define NGX_BLOOM_MEMORY_ARC      "/proc/spl/kstat/zfs/arcstats"
#define NGX_BLOOM_MEMORY_GROUPS   "/proc/self/cgroup"
#define NGX_BLOOM_MEMORY_V1       "/sys/fs/cgroup/memory"
#define NGX_BLOOM_MEMORY_V2       "/sys/fs/cgroup"

/* Room for the longest of these files. */
#define NGX_BLOOM_MEMORY_BUF      16384

#define NGX_BLOOM_MEMORY_NO_LIMIT  UINT64_MAX


/* The names of a control group's files and fields in one version. */
typedef struct {
    const char  *limit;
    const char  *usage;
    const char  *swap_limit;
    const char  *swap_usage;
    ngx_uint_t   together;               /* 1: the last two count memory and
                                            swap together */
    const char  *given_back[4];          /* fields of memory.stat that count
                                            reclaimable pages; NULL at the
                                            end */
} ngx_bloom_memory_names_t;


static uint64_t ngx_bloom_memory_machine(uint64_t *swap);
static void ngx_bloom_memory_groups(ngx_bloom_memory_t *left, char *path,
    const char *root, const ngx_bloom_memory_names_t *names, uint64_t swap);
static uint64_t ngx_bloom_memory_group(const char *group,
    const ngx_bloom_memory_names_t *names, uint64_t swap);
static uint64_t ngx_bloom_memory_number(const char *group, const char *name);
static uint64_t ngx_bloom_memory_field(const char *text, const char *name,
    ngx_uint_t column);
static const char *ngx_bloom_memory_read(const char *group, const char *name);
static uint64_t ngx_bloom_memory_sum(uint64_t a, uint64_t b);
static uint64_t ngx_bloom_memory_rest(uint64_t all, uint64_t taken);


static const ngx_bloom_memory_names_t  ngx_bloom_memory_v1 = {
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "memory.memsw.limit_in_bytes",
    "memory.memsw.usage_in_bytes",
    1,
    { "total_inactive_file", "total_active_file", NULL }
};

static const ngx_bloom_memory_names_t  ngx_bloom_memory_v2 = {
    "memory.max",
    "memory.current",
    "memory.swap.max",
    "memory.swap.current",
    0,
    { "inactive_file", "active_file", "slab_reclaimable", NULL }
};


void
ngx_bloom_memory_left(ngx_bloom_memory_t *left)
{
    char        *p, *next, *controllers, *path;
    char         lines[NGX_BLOOM_MEMORY_BUF];
    uint64_t     swap;
    const char  *text;

    left->group[0] = '\0';
    left->bytes = ngx_bloom_memory_machine(&swap);

    text = ngx_bloom_memory_read("", NGX_BLOOM_MEMORY_GROUPS);
    if (text == NULL) {
        return;
    }

    ngx_cpystrn((u_char *) lines, (u_char *) text, sizeof(lines));

    /* lines are NUMBER:CONTROLLERS:PATH; version 2 names no controllers */

    for (p = lines; *p != '\0'; p = next) {
        next = p + strcspn(p, "\n");

        if (*next != '\0') {
            *next++ = '\0';
        }

        controllers = strchr(p, ':');
        path = controllers ? strchr(controllers + 1, ':') : NULL;

        if (path == NULL) {
            continue;
        }

        *controllers++ = '\0';
        *path++ = '\0';

        if (*controllers == '\0') {
            ngx_bloom_memory_groups(left, path, NGX_BLOOM_MEMORY_V2,
                                    &ngx_bloom_memory_v2, swap);

        } else if (strstr(controllers, "memory") != NULL) {
            ngx_bloom_memory_groups(left, path, NGX_BLOOM_MEMORY_V1,
                                    &ngx_bloom_memory_v1, swap);
        }
    }
}


/* Returns the memory that the machine has left; *swap becomes the free swap
 * that is included. */
static uint64_t
ngx_bloom_memory_machine(uint64_t *swap)
{
    uint64_t     available, cache, least;
    const char  *text;

    *swap = 0;

    text = ngx_bloom_memory_read("", NGX_BLOOM_MEMORY_MACHINE);
    if (text == NULL) {
        return NGX_BLOOM_MEMORY_NO_LIMIT;
    }

    available = ngx_bloom_memory_field(text, "MemAvailable:", 1);
    *swap = ngx_bloom_memory_field(text, "SwapFree:", 1);

    if (available == NGX_BLOOM_MEMORY_NO_LIMIT) {
        return NGX_BLOOM_MEMORY_NO_LIMIT;       /* a kernel before 3.14 */
    }

    *swap = (*swap == NGX_BLOOM_MEMORY_NO_LIMIT) ? 0 : *swap * 1024;
    available = available * 1024 + *swap;

    /* MemAvailable does not include the cache of ZFS, which is reclaimable */

    text = ngx_bloom_memory_read("", NGX_BLOOM_MEMORY_ARC);

    if (text != NULL) {
        cache = ngx_bloom_memory_field(text, "size", 2);
        least = ngx_bloom_memory_field(text, "c_min", 2);

        if (cache != NGX_BLOOM_MEMORY_NO_LIMIT && cache > least) {
            available += cache - least;
        }
    }

    return available;
}


/*
 * Checks a group and all groups above it.  In a container the paths may be
 * those of the machine while the container's own group is at the root, so
 * groups that do not exist are skipped.
 */
static void
ngx_bloom_memory_groups(ngx_bloom_memory_t *left, char *path, const char *root,
    const ngx_bloom_memory_names_t *names, uint64_t swap)
{
    char       *p;
    uint64_t    bytes;
    char        group[NGX_MAX_PATH];

    if (strlen(root) + strlen(path) >= sizeof(group)) {
        return;
    }

    for ( ;; ) {

        /* strip slashes at the end, so that no group is checked twice */

        for (p = path + strlen(path); p != path && p[-1] == '/'; p--) {
            p[-1] = '\0';
        }

        ngx_bloom_print((u_char *) group, sizeof(group), "%s%s", root, path);

        bytes = ngx_bloom_memory_group(group, names, swap);

        if (bytes < left->bytes) {
            left->bytes = bytes;
            ngx_cpystrn(left->group, (u_char *) group, NGX_MAX_PATH);
        }

        p = strrchr(path, '/');

        if (p == NULL) {
            break;
        }

        *p = '\0';
    }
}


static uint64_t
ngx_bloom_memory_group(const char *group,
    const ngx_bloom_memory_names_t *names, uint64_t swap)
{
    uint64_t     rest, given_back, swap_limit, swap_rest, bytes;
    ngx_uint_t   i;
    const char  *text;

    rest = ngx_bloom_memory_rest(ngx_bloom_memory_number(group, names->limit),
                                 ngx_bloom_memory_number(group, names->usage));

    swap_limit = ngx_bloom_memory_number(group, names->swap_limit);
    swap_rest = ngx_bloom_memory_rest(swap_limit,
                                      ngx_bloom_memory_number(group,
                                                          names->swap_usage));
    given_back = 0;
    text = ngx_bloom_memory_read(group, "memory.stat");

    for (i = 0; text != NULL && names->given_back[i] != NULL; i++) {
        bytes = ngx_bloom_memory_field(text, names->given_back[i], 1);
        given_back += (bytes == NGX_BLOOM_MEMORY_NO_LIMIT) ? 0 : bytes;
    }

    rest = ngx_bloom_memory_sum(rest, given_back);

    if (names->together) {
        return ngx_min(ngx_bloom_memory_sum(rest, swap),
                       ngx_bloom_memory_sum(swap_rest, given_back));
    }

    return ngx_bloom_memory_sum(rest, ngx_min(swap_rest, swap));
}


/* Returns the number in a file of a group, or NGX_BLOOM_MEMORY_NO_LIMIT. */
static uint64_t
ngx_bloom_memory_number(const char *group, const char *name)
{
    uint64_t     n;
    const char  *text;

    text = ngx_bloom_memory_read(group, name);

    if (text == NULL || *text < '0' || *text > '9') {
        return NGX_BLOOM_MEMORY_NO_LIMIT;               /* "max" */
    }

    n = strtoull(text, NULL, 10);

    /* in version 1 "no limit" is the highest possible number of pages */

    return n >= (uint64_t) 1 << 62 ? NGX_BLOOM_MEMORY_NO_LIMIT : n;
}


/* Returns the number in a column of the line that begins with `name`, which is
 * column 0.  Returns NGX_BLOOM_MEMORY_NO_LIMIT without such a line. */
static uint64_t
ngx_bloom_memory_field(const char *text, const char *name, ngx_uint_t column)
{
    char        *end;
    size_t       len;
    uint64_t     n;
    const char  *p;

    len = strlen(name);

    for (p = text; p != NULL; p = strchr(p, '\n')) {
        p += (*p == '\n');

        if (strncmp(p, name, len) != 0 || p[len] != ' ') {
            continue;
        }

        for (p += len, n = 0; column != 0; column--, p = end) {
            n = strtoull(p, &end, 10);

            if (end == p) {
                return NGX_BLOOM_MEMORY_NO_LIMIT;
            }
        }

        return n;
    }

    return NGX_BLOOM_MEMORY_NO_LIMIT;
}


/* Returns the contents of a file, null-terminated and valid until the next
 * call; or NULL. */
static const char *
ngx_bloom_memory_read(const char *group, const char *name)
{
    u_char         path[2 * NGX_MAX_PATH];
    size_t         len;
    ssize_t        n;
    ngx_fd_t       fd;
    const char    *root;

    static u_char  buf[NGX_BLOOM_MEMORY_BUF];

    root = "";

#if (NGX_BLOOM_FAULTS)

    /* a test provides its own files */

    if (getenv("NGX_BLOOM_FAULT_MEMORY") != NULL) {
        root = getenv("NGX_BLOOM_FAULT_MEMORY");
    }

#endif

    ngx_bloom_print(path, sizeof(path), "%s%s%s%s", root, group,
                    *group ? "/" : "", name);

    fd = ngx_open_file(path, NGX_FILE_RDONLY|O_CLOEXEC, NGX_FILE_OPEN, 0);
    if (fd == NGX_INVALID_FILE) {
        return NULL;
    }

    for (len = 0; len < sizeof(buf) - 1; len += n) {
        n = read(fd, buf + len, sizeof(buf) - 1 - len);

        if (n <= 0) {
            break;
        }
    }

    (void) ngx_close_file(fd);

    buf[len] = '\0';

    return (char *) buf;
}


static uint64_t
ngx_bloom_memory_sum(uint64_t a, uint64_t b)
{
    return a > NGX_BLOOM_MEMORY_NO_LIMIT - b ? NGX_BLOOM_MEMORY_NO_LIMIT
                                             : a + b;
}


static uint64_t
ngx_bloom_memory_rest(uint64_t all, uint64_t taken)
{
    if (all == NGX_BLOOM_MEMORY_NO_LIMIT || taken == NGX_BLOOM_MEMORY_NO_LIMIT)
    {
        return NGX_BLOOM_MEMORY_NO_LIMIT;
    }

    return all > taken ? all - taken : 0;
}
