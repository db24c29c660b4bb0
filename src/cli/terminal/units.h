/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * These functions parse and format numbers with units, times and hexadecimal
 * digits.
 *
 * A parser returns 0, or -1 if the text is invalid; the caller prints the
 * message, as it knows the option.
 */

#ifndef UNITS_H
#define UNITS_H

#include <stddef.h>
#include <stdint.h>


/* Numbers are written as in nginx.conf (bloom_units.h): 10m is a count of
 * 10,000,000, but a size of 10,485,760 bytes; a rate is 0.001, 1e-3 or 0.1%. */
int parse_count(const char *text, uint64_t *value);
int parse_bytes(const char *text, uint64_t *value);
int parse_rate(const char *text, double *value);

/* 20% or 0.5%, of any size, to 0.2 or 0.005. */
int parse_percent(const char *text, double *share);

/* 2026-11-21T10:00:00Z (RFC 3339) or Unix seconds, to milliseconds. */
int parse_time(const char *text, uint64_t *ms);

/* 24h, 1d 12h or 90 (seconds), as nginx.conf has times, with the units w, d, h,
 * m, s and ms, to milliseconds. */
int parse_span(const char *text, uint64_t *ms);

/* Parses 2 * len hexadecimal digits to `len` bytes. */
int parse_hex(const char *text, uint8_t *bytes, size_t len);


#define UNITS_LEN  64                    /* enough for each of these: */

/* 104 KiB, 1.21 GiB */
const char *format_bytes(char text[UNITS_LEN], uint64_t bytes);

/* 0.1 % */
const char *format_rate(char text[UNITS_LEN], double rate);

/* 2026-11-21T10:00:00.123Z */
const char *format_time(char text[UNITS_LEN], uint64_t ms);

/* 950, 12.3 k, 4.56 M */
const char *format_count(char text[UNITS_LEN], double count);

/* 9 s, 2:05, 1:00:00 */
const char *format_duration(char text[UNITS_LEN], double seconds);

/* 7d 21h, 27h, 33m 45s, 500ms: as parse_span() reads it. */
const char *format_span(char text[UNITS_LEN], uint64_t ms);

/* Writes 2 * len digits and a zero byte to `text`. */
const char *format_hex(char *text, const uint8_t *bytes, size_t len);


#endif /* UNITS_H */
