/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file keeps what is found about nodes.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "node_findings.h"


void
node_findings_add(node_findings_t *found, const char *what,
    const char *zone, const char *fmt, ...)
{
    va_list          args;
    node_finding_t  *finding;

    found->findings = cli_realloc(found->findings, (found->n + 1)
                                                   * sizeof(node_finding_t));
    finding = &found->findings[found->n++];
    finding->what = what;
    finding->zone = zone;

    va_start(args, fmt);

    if (vasprintf(&finding->message, fmt, args) == -1) {
        cli_no_memory(0);
    }

    va_end(args);
}


void
node_findings_free(node_findings_t *found)
{
    size_t  i;

    for (i = 0; i < found->n; i++) {
        free(found->findings[i].message);
    }

    free(found->findings);
    free(found->rows);
}
