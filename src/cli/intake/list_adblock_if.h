/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An adblock_if_t says whether the next line of an Adblock-style list is read
 * or left out, by the lines !#if, !#else and !#endif before it.
 *
 *     !#if env_chromium && !cap_html_filtering
 *     ||bad.example^
 *     !#endif
 *
 * A condition has names, !, &&, || and parentheses.  && and || are taken from
 * left to right, as uBlock Origin takes them.  The names have the values of
 * uBlock Origin in Chromium on a desktop.  If a condition cannot be decided,
 * for example because it has another name, what is between it and its !#endif
 * is left out.
 *
 * Blocks may be nested.  What follows an !#if without an !#endif is in its
 * block up to the end of the file.
 */

#ifndef LIST_ADBLOCK_IF_H
#define LIST_ADBLOCK_IF_H

#include "list_line.h"


/* All members are 0 at first. */
typedef struct {
    size_t  depth;                       /* blocks around the next line */
    size_t  left_out;                    /* the outermost of them that is left
                                            out, from 1; or 0 */
    int     undecided;                   /* its condition cannot be decided */
} adblock_if_t;

typedef enum {
    ADBLOCK_IF_NONE = 0,                 /* another line */
    ADBLOCK_IF_TAKEN,
    ADBLOCK_IF_STRAY                     /* !#else or !#endif without !#if */
} adblock_if_e;


/* Takes a line if it is !#if, !#else or !#endif. */
adblock_if_e adblock_if_take(adblock_if_t *state, const bloom_key_t *line);

/* Returns NULL if the next line is read, else the reason to skip it. */
const char *adblock_if_why(const adblock_if_t *state);


#endif /* LIST_ADBLOCK_IF_H */
