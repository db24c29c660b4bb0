/* SPDX-License-Identifier: BSD-2-Clause */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "findings.h"


void
findings_add(findings_t *found, const char *what, const char *zone,
    const char *fmt, ...)
{
    va_list     args;
    finding_t  *finding;

    found->list = cli_realloc(found->list, (found->n + 1) * sizeof(finding_t));
    finding = &found->list[found->n++];
    finding->what = what;
    finding->zone = zone;

    va_start(args, fmt);

    if (vasprintf(&finding->message, fmt, args) == -1) {
        cli_no_memory(0);
    }

    va_end(args);
}


void
findings_free(findings_t *found)
{
    size_t  i;

    for (i = 0; i < found->n; i++) {
        free(found->list[i].message);
    }

    free(found->list);
    free(found->sampled);
    free(found->rows);
}
