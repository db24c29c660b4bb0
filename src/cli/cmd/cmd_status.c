/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * `ngx-bloom status` asks the endpoints of several nodes for the states of
 * their zones, and says what is wrong and in what they disagree.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "command.h"
#include "node_ask.h"
#include "node_compare.h"
#include "status_print.h"

#define TIMEOUT  5                       /* seconds */
#define PAUSE    1                       /* seconds until nodes are asked
                                            again */


typedef struct {
    http_settings_t  http;
    unsigned         timeout;            /* seconds */
    int              json;
} status_t;


static const option_t  options[] = {
    { 0, "timeout", "SECONDS", offsetof(status_t, timeout),
      options_take_number,
      "how long each response of a node may take (default: 5)",
      .is = "a number of seconds", 1, 3600 },
    OPTIONS_GROUP(http_options, offsetof(status_t, http)),
    OPTIONS_JSON(status_t),
    { 0 }
};


static node_t *
create_nodes(char **urls, size_t n)
{
    size_t   i;
    node_t  *nodes;

    nodes = cli_alloc(n * sizeof(node_t));
    memset(nodes, 0, n * sizeof(node_t));

    for (i = 0; i < n; i++) {
        nodes[i].url = urls[i];
    }

    return nodes;
}


/* Returns CLI_OK, or CLI_ERROR after a message. */
static int
check_urls(char **urls, int n)
{
    int    i;
    char  *shown;

    if (n < 1) {
        return cli_misuse("no URL is given");
    }

    if (n > NODE_ASK_MAX) {
        return cli_misuse("there are %d URLs; give at most %d", n,
                          NODE_ASK_MAX);
    }

    for (i = 0; i < n; i++) {
        if (!http_url_valid(urls[i])) {
            shown = http_url_shown(urls[i]);
            (void) cli_misuse("%s: must be %s", shown, HTTP_URL);
            free(shown);
            return CLI_ERROR;
        }
    }

    return CLI_OK;
}


static int
run(char **urls, int n, void *data)
{
    size_t            count;
    node_t           *nodes, *before;
    status_t         *status = data;
    node_findings_t   found;

    if (check_urls(urls, n) != CLI_OK
        || tls_check(&status->http.tls) != CLI_OK)
    {
        return CLI_ERROR;
    }

    status->http.timeout = 1000 * status->timeout;
    count = (size_t) n;

    nodes = create_nodes(urls, count);
    node_ask(nodes, count, &status->http);
    node_compare(&found, nodes, count);

    if (found.moving) {

        /* changes may have been on their way */

        node_findings_free(&found);
        before = nodes;

        (void) sleep(PAUSE);

        nodes = create_nodes(urls, count);
        node_ask(nodes, count, &status->http);
        node_compare_before(nodes, before, count);
        node_compare(&found, nodes, count);

        node_ask_free(before, count);
        free(before);
    }

    if (status->json) {
        status_print_json(&found, nodes, count);

    } else {
        status_print(&found, nodes, count);
    }

    n = found.n == 0 ? CLI_OK : CLI_NO;

    node_findings_free(&found);
    node_ask_free(nodes, count);
    free(nodes);

    return n;
}


static status_t  values = { .timeout = TIMEOUT };

static const command_member_t  members[] = {
    { "ok", "true if nothing is wrong and the nodes agree" },
    { "nodes",
      "an array of the nodes in the order of their URLs; each has url (without "
      "its password), version (of the module; null if unknown) and error (why "
      "it has no state, or null)" },
    { "zones",
      "an array of the zones of each node, ordered by name; each has node (a "
      "URL), name, state, generation, build_id, form, items, "
      "estimated_items, max_items, fill_ratio, bits_set, removed, excepted, "
      "source, source_state, position, digest, digest_since, lag_ms, "
      "journal_error, lost_keys, as the endpoint has them, and "
      "helper_silence_ms (the time since the helper's last sign of life); a "
      "value that the node does not tell is null" },
    { "problems",
      "an array of what is wrong or disagrees; each has what (a word, such as "
      "no_answer, state or build_id), zone (null: all zones) and message" },
    { 0 }
};

const command_t  cmd_status = {
    .name = "status",
    .does = "compare the zones of several nodes",
    .synopsis = "[OPTION...] URL...",
    .about =
        "Asks the endpoints (bloom_api) of up to 256 nodes for the states of "
        "their zones, all at the same time, and prints a table. A mark * "
        "follows each value that is wrong or in which zones of the same name "
        "disagree. Below, a sentence for each problem says what to do. URL is "
        "that of an endpoint, such as http://10.0.0.1:8080/bloom/, or of one "
        "zone, such as http://10.0.0.1:8080/bloom/zones/ids.\n\n"
        "Wrong are: a node that does not answer, a state other than serving, "
        "lost keys, a journal that fails, a failed load, a helper that is "
        "silent for more than 10 seconds by the clock of its node, and a "
        "source that is not current. Nodes disagree if their versions, "
        "images, key forms, sizes or settings differ, or the numbers of bits "
        "set or of removed keys. If only such a number differs, the nodes are "
        "asked again after a second, because changes may have been on their "
        "way.\n\n"
        "Zones with a source are compared by the digest of its changes "
        "instead, if they are at the same position and began to count at the "
        "same one.\n\n"
        "Equal numbers of bits do not prove that the filters are equal. "
        "Filters that started empty or have layers are compared by their "
        "estimated numbers of keys, and only large differences count. Excepted "
        "keys and keys that expire are not compared.",
    .options = options,
    .values = &values,
    .status = "0 nothing is wrong and the nodes agree; 1 something is wrong, "
              "or the nodes disagree; 2 an error.",
    .members = members,
    .examples =
        "ngx-bloom status http://10.0.0.1:8080/bloom/ "
        "http://10.0.0.2:8080/bloom/\n"
        "ngx-bloom status --json http://127.0.0.1:8080/bloom/zones/ids\n",
    .run = run
};
