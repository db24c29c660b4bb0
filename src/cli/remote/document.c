/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file finds values in documents.
 */

#include <string.h>

#include "document.h"

#define VALUES_MAX  1000000
#define NAME_MAX    64                   /* of a part of a path, with a null
                                            byte */


json_t *
document_parse(const char *text, size_t len)
{
    size_t  i, values;

    /* each value but the first follows one of these.  Jansson has no limit, and
     * takes some hundred bytes of memory for an empty object */

    for (values = 1, i = 0; i < len; i++) {
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    }

    return values <= VALUES_MAX ? json_loadb(text, len, JSON_DECODE_ANY, NULL)
                                : NULL;
}


json_t *
document_member(const json_t *object, const char *path)
{
    char     name[NAME_MAX];
    size_t   len;
    json_t  *member;

    for ( ;; ) {
        len = strcspn(path, ".");

        if (len >= NAME_MAX) {
            return NULL;
        }

        memcpy(name, path, len);
        name[len] = '\0';
        member = json_object_get(object, name);

        if (member == NULL || path[len] == '\0') {
            return member;
        }

        object = member;
        path += len + 1;
    }
}


const char *
document_text(const json_t *object, const char *path)
{
    return json_string_value(document_member(object, path));
}


int
document_count(const json_t *object, const char *path, uint64_t *count)
{
    const json_t  *member;

    member = document_member(object, path);

    if (!json_is_integer(member) || json_integer_value(member) < 0) {
        return -1;
    }

    *count = (uint64_t) json_integer_value(member);

    return 0;
}


int
document_flag(const json_t *object, const char *path)
{
    const json_t  *member;

    member = document_member(object, path);

    return json_is_boolean(member) ? json_is_true(member) : -1;
}
