/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * A spill file holds data that does not fit into memory.  It is a temporary
 * file without a name, so the system removes it however the program ends.
 *
 * The first reservation creates it.  Any thread may reserve a part of it, and
 * write and read that part.  Each function ends the program with a message if
 * the file cannot be created, written or read.
 */

#ifndef SPILL_FILE_H
#define SPILL_FILE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>


typedef struct {
    const char       *directory;
    int               fd;                /* -1: not yet created */
    uint64_t          size;              /* bytes reserved; atomic */
    pthread_mutex_t   lock;              /* held while it is created */
} spill_file_t;


void spill_file_init(spill_file_t *file, const char *directory);
void spill_file_close(spill_file_t *file);

/* Reserves `len` bytes at the end of the file.  Returns their offset. */
uint64_t spill_file_reserve(spill_file_t *file, size_t len);

void spill_file_write(const spill_file_t *file, const void *data, size_t len,
    uint64_t offset);
void spill_file_read(const spill_file_t *file, void *data, size_t len,
    uint64_t offset);


#endif /* SPILL_FILE_H */
