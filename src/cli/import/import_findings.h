/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Findings are measured from the bits of an imported filter: how full it is,
 * and how often it answers "present" for an absent key.
 *
 * `output` is the image's name, for messages.
 */

#ifndef IMPORT_FINDINGS_H
#define IMPORT_FINDINGS_H

#include <stdint.h>

#include "bloom_foreign.h"
#include "import_check.h"


#define IMPORT_FINDINGS_PROBES  1000000  /* random keys looked up */


typedef struct {
    double    fill_ratio;
    double    estimated_fpr;             /* from the bits that are set */
    double    measured_fpr;              /* with random keys */
    uint64_t  found;                     /* random keys that are present */
} import_findings_t;


/* Measures the filter and sets the number of items in its image. */
void import_findings_measure(import_findings_t *findings, bloom_foreign_t *f,
    const uint64_t *words);

/* Warns if the filter is empty, over-full, or has a higher false-positive rate
 * than its bits imply or its source promised. */
void import_findings_warn(const import_findings_t *findings,
    const bloom_foreign_t *f, const char *output);

/* Each prints the result to standard output. */
void import_findings_json(const import_findings_t *findings,
    const import_check_t *check, const bloom_foreign_t *f, const char *output);
void import_findings_print(const import_findings_t *findings,
    const import_check_t *check, const bloom_foreign_t *f, const char *output);


#endif /* IMPORT_FINDINGS_H */
