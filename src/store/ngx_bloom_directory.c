/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Only two directories ever change their owner: one that root has just created,
 * and the directory of all zones.
 *
 * Directories are opened with O_PATH: it needs no right to read them, and root
 * may lack the capability to read what belongs to the workers' user.
 */

#include "ngx_bloom_directory.h"
#include "ngx_bloom_io.h"


#define NGX_BLOOM_DIRECTORY_FLAGS  (O_PATH|O_DIRECTORY|O_CLOEXEC)


static ngx_int_t ngx_bloom_directory_root(ngx_str_t *root,
    ngx_bloom_user_t *user, ngx_uint_t make, ngx_fd_t *dir, u_char *error);
static ngx_int_t ngx_bloom_directory_take_over(ngx_str_t *root, ngx_fd_t fd,
    struct stat *st, ngx_bloom_user_t *user, ngx_uint_t make, u_char *error);
static ngx_int_t ngx_bloom_directory_zone(ngx_fd_t root, u_char *path,
    ngx_bloom_user_t *user, ngx_uint_t make, ngx_fd_t *dir, u_char *error);
static ngx_int_t ngx_bloom_directory_open_zone(ngx_fd_t root, char *name,
    u_char *path, ngx_uint_t make, ngx_uint_t *made, ngx_fd_t *fd,
    u_char *error);
static ngx_int_t ngx_bloom_directory_hand_over(ngx_fd_t root, char *name,
    u_char *path, ngx_bloom_user_t *user, ngx_fd_t fd, u_char *error);
static void ngx_bloom_directory_foreign(u_char *path, uid_t uid,
    ngx_bloom_user_t *user, u_char *error);
static ngx_int_t ngx_bloom_directory_give(ngx_fd_t fd, uid_t user,
    gid_t group);
static ngx_uint_t ngx_bloom_directory_is_empty(ngx_fd_t fd);
static ngx_int_t ngx_bloom_directory_fails(u_char *error, const char *what,
    u_char *path, ngx_err_t err);


u_char *
ngx_bloom_directory_path(ngx_pool_t *pool, ngx_str_t *root, ngx_str_t *zone)
{
    u_char  c, *path, *p;
    size_t  i;

    path = ngx_pnalloc(pool, root->len + 1 + 3 * zone->len + 1);
    if (path == NULL) {
        return NULL;
    }

    p = ngx_cpymem(path, root->data, root->len);

    if (root->len == 0 || p[-1] != '/') {
        *p++ = '/';
    }

    for (i = 0; i < zone->len; i++) {
        c = zone->data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || (c >= '0' && c <= '9') || c == '_' || c == '-'
            || (c == '.' && i != 0))
        {
            *p++ = c;

        } else {
            p = ngx_sprintf(p, "%%%02Xd", (int) c);
        }
    }

    *p = '\0';

    return path;
}


ngx_int_t
ngx_bloom_directory_open(ngx_str_t *root, u_char *path,
    ngx_bloom_user_t *user, ngx_uint_t make, ngx_fd_t *dir, u_char *error)
{
    ngx_fd_t   fd;
    ngx_int_t  rc;

    *dir = NGX_INVALID_FILE;
    fd = NGX_INVALID_FILE;

    rc = ngx_bloom_directory_root(root, user, make, &fd, error);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_bloom_directory_zone(fd, path, user, make, dir, error);

    (void) ngx_close_file(fd);

    return rc;
}


/* Opens the directory of all zones. */
static ngx_int_t
ngx_bloom_directory_root(ngx_str_t *root, ngx_bloom_user_t *user,
    ngx_uint_t make, ngx_fd_t *dir, u_char *error)
{
    u_char       owner[NGX_BLOOM_USER_LEN];
    ngx_fd_t     fd;
    struct stat  st;

    if (lstat((char *) root->data, &st) == -1) {

        if (ngx_errno != NGX_ENOENT) {
            return ngx_bloom_directory_fails(error, "examine", root->data,
                                             ngx_errno);
        }

        if (!make) {
            return NGX_DECLINED;
        }

        if (mkdir((char *) root->data, 0711) == -1) {
            return ngx_bloom_directory_fails(error, "create", root->data,
                                             ngx_errno);
        }

    } else if (S_ISLNK(st.st_mode) && st.st_uid != 0
               && st.st_uid != geteuid())
    {
        ngx_bloom_print(error, NGX_MAX_ERROR_STR,
                        "\"%V\" is a link that belongs to user %s: set "
                        "bloom_state_path to the directory itself", root,
                        ngx_bloom_unprivileged_called(owner, st.st_uid));
        return NGX_ERROR;
    }

    fd = open((char *) root->data, NGX_BLOOM_DIRECTORY_FLAGS);

    if (fd == NGX_INVALID_FILE) {
        return ngx_bloom_directory_fails(error, "open", root->data, ngx_errno);
    }

    if (fstat(fd, &st) == -1) {
        (void) ngx_bloom_directory_fails(error, "examine", root->data,
                                         ngx_errno);

    } else if (ngx_bloom_directory_take_over(root, fd, &st, user, make, error)
               == NGX_OK)
    {
        *dir = fd;
        return NGX_OK;
    }

    (void) ngx_close_file(fd);

    return NGX_ERROR;
}


/* Makes sure that only root can replace the directories of zones. */
static ngx_int_t
ngx_bloom_directory_take_over(ngx_str_t *root, ngx_fd_t fd, struct stat *st,
    ngx_bloom_user_t *user, ngx_uint_t make, u_char *error)
{
    u_char  owner[NGX_BLOOM_USER_LEN];

    if (st->st_uid == 0 || geteuid() != 0) {

        if ((st->st_mode & (S_IWGRP|S_IWOTH))
            && st->st_uid == 0 && geteuid() == 0)
        {
            ngx_bloom_print(error, NGX_MAX_ERROR_STR,
                            "users other than root may write to \"%V\", which "
                            "has the directories of zones: name a directory "
                            "of its own in \"bloom_state_path\" or, if this "
                            "is one, run \"chmod 0711 %V\"", root, root);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (user == NULL) {
        return NGX_OK;                   /* the workers' user is not known */
    }

    if (st->st_uid != user->user) {
        ngx_bloom_print(error, NGX_MAX_ERROR_STR,
                        "\"%V\" belongs to user %s, who could replace the "
                        "directories of zones in it: check that its contents "
                        "are yours, and run \"chown root %V\"",
                        root,
                        ngx_bloom_unprivileged_called(owner, st->st_uid), root);
        return NGX_ERROR;
    }

    if (!make) {
        return NGX_OK;                   /* a later start takes it over */
    }

    if (ngx_bloom_directory_give(fd, 0, 0) != NGX_OK
        || fchmodat(fd, ".", 0711, 0) == -1)
    {
        return ngx_bloom_directory_fails(error, "make root the owner of",
                                         root->data, ngx_errno);
    }

    return NGX_OK;
}


/* Opens the directory of a zone in the directory of all zones. */
static ngx_int_t
ngx_bloom_directory_zone(ngx_fd_t root, u_char *path, ngx_bloom_user_t *user,
    ngx_uint_t make, ngx_fd_t *dir, u_char *error)
{
    char         *name;
    ngx_fd_t      fd;
    ngx_int_t     rc;
    ngx_uint_t    made;
    struct stat   st;

    name = strrchr((char *) path, '/') + 1;

    rc = ngx_bloom_directory_open_zone(root, name, path, make, &made, &fd,
                                       error);

    if (rc != NGX_OK) {
        return rc;
    }

    if (fstat(fd, &st) == -1) {
        (void) ngx_bloom_directory_fails(error, "examine", path, ngx_errno);
        goto failed;
    }

    if (user == NULL || st.st_uid == user->user) {
        *dir = fd;
        return NGX_OK;
    }

    if (made) {

        if (ngx_bloom_directory_hand_over(root, name, path, user, fd, error)
            == NGX_OK)
        {
            *dir = fd;
            return NGX_OK;
        }

        goto failed;
    }

    if (st.st_uid == 0 && geteuid() == 0 && ngx_bloom_directory_is_empty(fd)) {

        /* a master died after it had created the directory, and before it gave
         * it to the workers' user */

        (void) ngx_close_file(fd);

        if (!make) {
            return NGX_DECLINED;
        }

        if (unlinkat(root, name, AT_REMOVEDIR) == -1) {
            return ngx_bloom_directory_fails(error, "remove", path, ngx_errno);
        }

        return ngx_bloom_directory_zone(root, path, user, make, dir, error);
    }

    ngx_bloom_directory_foreign(path, st.st_uid, user, error);

failed:

    (void) ngx_close_file(fd);

    return NGX_ERROR;
}


/*
 * Opens the directory of a zone.  With `make`, creates a missing directory and
 * sets *made to 1.  Returns NGX_OK; NGX_DECLINED if the directory is missing
 * and `make` is 0; NGX_ERROR with an error.
 */
static ngx_int_t
ngx_bloom_directory_open_zone(ngx_fd_t root, char *name, u_char *path,
    ngx_uint_t make, ngx_uint_t *made, ngx_fd_t *fd, u_char *error)
{
    *made = 0;

    *fd = openat(root, name, NGX_BLOOM_DIRECTORY_FLAGS|O_NOFOLLOW);

    if (*fd == NGX_INVALID_FILE && ngx_errno == NGX_ENOENT) {

        if (!make) {
            return NGX_DECLINED;
        }

        if (mkdirat(root, name, 0700) == -1) {
            return ngx_bloom_directory_fails(error, "create", path, ngx_errno);
        }

        *made = 1;
        *fd = openat(root, name, NGX_BLOOM_DIRECTORY_FLAGS|O_NOFOLLOW);
    }

    if (*fd != NGX_INVALID_FILE) {
        return NGX_OK;
    }

    if (ngx_errno == NGX_ELOOP || ngx_errno == NGX_ENOTDIR) {
        ngx_bloom_print(error, NGX_MAX_ERROR_STR,
                        "\"%s\" is not a directory, or is a symbolic "
                        "link: find out who replaced the directory, and "
                        "restore it", path);
        return NGX_ERROR;
    }

    return ngx_bloom_directory_fails(error, "open", path, ngx_errno);
}


/* Makes the workers' user the owner of a directory that was just created.  If
 * that fails, sets the error and removes the directory. */
static ngx_int_t
ngx_bloom_directory_hand_over(ngx_fd_t root, char *name, u_char *path,
    ngx_bloom_user_t *user, ngx_fd_t fd, u_char *error)
{
    if (ngx_bloom_directory_give(fd, user->user, user->group) == NGX_OK) {
        return NGX_OK;
    }

    ngx_bloom_print(error, NGX_MAX_ERROR_STR,
                    "cannot change the owner of \"%s\" (%d: %s): run "
                    "\"install -d -m 0700 -o %d -g %d %s\", or give nginx "
                    "the capability CAP_CHOWN", path, ngx_errno,
                    strerror(ngx_errno), (int) user->user,
                    (int) user->group, path);
    (void) unlinkat(root, name, AT_REMOVEDIR);

    return NGX_ERROR;
}


/* Sets the error for a directory that belongs to another user, `uid`. */
static void
ngx_bloom_directory_foreign(u_char *path, uid_t uid, ngx_bloom_user_t *user,
    u_char *error)
{
    u_char  owner[NGX_BLOOM_USER_LEN], workers[NGX_BLOOM_USER_LEN];

    (void) ngx_bloom_unprivileged_called(owner, uid);
    (void) ngx_bloom_unprivileged_called(workers, user->user);

    if (geteuid() != 0) {
        ngx_bloom_print(error, NGX_MAX_ERROR_STR,
                        "\"%s\" belongs to user %s, and nginx runs as user "
                        "%s, who is not root: start nginx as root, or as user "
                        "%s", path, owner, workers, owner);

    } else {
        ngx_bloom_print(error, NGX_MAX_ERROR_STR,
                        "\"%s\" belongs to user %s, but the workers run as "
                        "user %s: check that its contents are yours, and run "
                        "\"chown -R %d %s\"", path, owner, workers,
                        (int) user->user, path);
    }
}


/* Changes the owner of an open directory.  Returns NGX_OK, or NGX_ERROR with
 * errno. */
static ngx_int_t
ngx_bloom_directory_give(ngx_fd_t fd, uid_t user, gid_t group)
{
    return fchownat(fd, "", user, group, AT_EMPTY_PATH) == 0 ? NGX_OK
                                                             : NGX_ERROR;
}


/* Returns 1 if the directory is empty, else 0. */
static ngx_uint_t
ngx_bloom_directory_is_empty(ngx_fd_t fd)
{
    DIR         *dir;
    ngx_uint_t   n;

    dir = ngx_bloom_io_list(fd);
    if (dir == NULL) {
        return 0;
    }

    for (n = 0; n < 3 && readdir(dir) != NULL; n++) { /* void */ }

    (void) closedir(dir);

    return n < 3;                        /* "." and ".." */
}


ngx_int_t
ngx_bloom_directory_owner(ngx_fd_t dir, ngx_bloom_user_t *user)
{
    struct stat  st;

    ngx_memzero(user, sizeof(ngx_bloom_user_t));

    if (fstat(dir, &st) == -1) {
        return NGX_ERROR;
    }

    user->drops = (geteuid() == 0 && st.st_uid != 0);
    user->user = st.st_uid;
    user->group = st.st_gid;

    return NGX_OK;
}


static ngx_int_t
ngx_bloom_directory_fails(u_char *error, const char *what, u_char *path,
    ngx_err_t err)
{
    const char  *advice;

    switch (err) {

    case NGX_ENOENT:
        advice = "create its parent directory, or the directory that it links "
                 "to";
        break;

    case NGX_ENOTDIR:
        advice = "it or one of its parents is not a directory";
        break;

    case NGX_ENOSPC:
    case EDQUOT:
        advice = "free space on its disk";
        break;

    case NGX_EACCES:
    case NGX_EPERM:
        advice = "start nginx as a user who may do that, or correct the modes "
                 "of the directory and of its parents";
        break;

    default:
        advice = "correct that, or set another bloom_state_path";
    }

    ngx_bloom_print(error, NGX_MAX_ERROR_STR, "cannot %s \"%s\" (%d: %s): %s",
                    what, path, err, strerror(err), advice);

    return NGX_ERROR;
}
