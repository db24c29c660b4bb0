/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions write JSON (RFC 8259).  The writer keeps the commas, the
 * quotes and the brackets, and passes the bytes to its sink.
 *
 * The output is always valid UTF-8: each byte of a text that is not part of a
 * valid character becomes U+FFFD.  Characters that terminals obey instead of
 * showing them (bloom_utf8_is_hidden()) are escaped.
 *
 * A value has a name in an object, and NULL as its name in an array and
 * outermost.  Names are C strings, which are escaped as texts are.
 */

#ifndef BLOOM_JSON_WRITER_H
#define BLOOM_JSON_WRITER_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)


#define BLOOM_JSON_DEPTH_MAX  64         /* objects and arrays in each other */


/* Takes bytes of the output, in order.  A sink that fails remembers it: the
 * writer does not ask. */
typedef void (*bloom_json_sink_t)(void *data, const void *bytes, size_t len);

typedef struct {
    bloom_json_sink_t  sink;
    void              *data;             /* of the sink */
    int                lines;            /* a line for each member of the
                                            outermost object; otherwise all is
                                            on one line */

    /* private */

    unsigned           depth;
    uint64_t           arrays;           /* bit i: depth i is an array */
    int                comma;            /* before the next value */
} bloom_json_writer_t;


void bloom_json_writer_init(bloom_json_writer_t *json, bloom_json_sink_t sink,
    void *data);

/* Begin and end an object or an array, at most BLOOM_JSON_DEPTH_MAX deep. */
void bloom_json_put_object(bloom_json_writer_t *json, const char *name);
void bloom_json_put_array(bloom_json_writer_t *json, const char *name);
void bloom_json_put_end(bloom_json_writer_t *json);

/* Write a text and bytes as a string; a text that is NULL as null. */
void bloom_json_put_text(bloom_json_writer_t *json, const char *name,
    const char *text);
void bloom_json_put_bytes(bloom_json_writer_t *json, const char *name,
    const void *data, size_t len);

/* Writes bytes as a string of lower-case hexadecimal digits. */
void bloom_json_put_hex(bloom_json_writer_t *json, const char *name,
    const void *data, size_t len);

void bloom_json_put_count(bloom_json_writer_t *json, const char *name,
    uint64_t value);

/* Writes a number with at least 6 digits and as few as are read as the same
 * number; null if it is not finite. */
void bloom_json_put_number(bloom_json_writer_t *json, const char *name,
    double value);

/* Writes a number with 6 digits: an estimate or a rate; null if it is not
 * finite. */
void bloom_json_put_rate(bloom_json_writer_t *json, const char *name,
    double value);

/* Writes a duration of `ms` milliseconds in seconds, with three decimals if it
 * is no whole number. */
void bloom_json_put_seconds(bloom_json_writer_t *json, const char *name,
    uint64_t ms);

/* Writes a time, in ms since 1970, as a string in the format of RFC 3339, in
 * UTC and with three decimals; null if it is 0 or after the year 9999. */
void bloom_json_put_time(bloom_json_writer_t *json, const char *name,
    uint64_t ms);

void bloom_json_put_bool(bloom_json_writer_t *json, const char *name,
    int value);
void bloom_json_put_null(bloom_json_writer_t *json, const char *name);


#pragma GCC visibility pop

#endif /* BLOOM_JSON_WRITER_H */
