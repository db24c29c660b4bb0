/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * Findings tell what the bits of an imported filter say: how full it is, and
 * how often it errs.
 *
 * `output` is the image's name, for messages.
 */

#ifndef IMPORT_FINDINGS_H
#define IMPORT_FINDINGS_H

#include <stdint.h>

#include "bloom_foreign.h"


#define IMPORT_FINDINGS_PROBES  1000000  /* random keys asked for */


typedef struct {
    double    fill_ratio;
    double    estimated_fpr;             /* by the bits that are set */
    double    measured_fpr;              /* with random keys */
    uint64_t  found;                     /* of the random keys */
} import_findings_t;


/* Reads the findings from the filter's words; the image gets its items. */
void import_findings_measure(import_findings_t *findings, bloom_foreign_t *f,
    const uint64_t *words);

/* Warns of a filter that is empty, over-full, or errs more than it should. */
void import_findings_warn(const import_findings_t *findings,
    const bloom_foreign_t *f, const char *output);

/* Print the result to standard output. */
void import_findings_json(const import_findings_t *findings,
    const bloom_foreign_t *f, const char *output);
void import_findings_print(const import_findings_t *findings,
    const bloom_foreign_t *f, const char *output);


#endif /* IMPORT_FINDINGS_H */
