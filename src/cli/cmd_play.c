
/*
 * ngx-bloom play: a filter small enough to be looked at.  Commands come a line
 * at a time, from a terminal or from anywhere else.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bloom_census.h"
#include "bloom_layout.h"
#include "cli.h"
#include "options.h"
#include "units.h"

#define BITS_MAX  4096                   /* more is no picture any more */
#define ROW_BITS  64
#define BLANKS    " \t\r\n"


typedef struct {
    uint64_t          words[BITS_MAX / 64] __attribute__((aligned(64)));
    bloom_geometry_t  geometry;
    bloom_hasher_t    hasher;
    uint64_t          capacity;
    double            fpr;               /* that it is made for */
    uint64_t          items;             /* additions that changed a bit */
    uint64_t          filled;            /* keys that "fill" has added */
    uint64_t          asked;             /* keys that "ask" has asked for */
    uint64_t          line;              /* of the input */
    int               prompt;            /* a person types */
    int               colours;
    int               errors;
} play_t;

/* What a bit is in the picture of one key. */
typedef enum {
    CLEAR = 0,                           /* not the key's: not set */
    SET,                                 /* and set */
    OWN_SET,                             /* the key's: was set before */
    OWN_NEW,                             /* set by it */
    OWN_CLEAR                            /* not set: the key is absent */
} mark_e;

static const struct {
    char         sign;
    const char  *colour;
} marks[] = {
    { '.', "\033[2m" },
    { '#', "" },
    { 'o', "\033[1;33m" },
    { '+', "\033[1;32m" },
    { 'x', "\033[1;31m" },
};


typedef struct {
    const char  *name;
    const char  *takes;
    const char  *does;
    int        (*run)(play_t *play, char *rest);
} order_t;


static void
usage(void)
{
    printf(
"Usage: ngx-bloom play [OPTION...]\n"
"\n"
"A small filter in the terminal: add keys, ask for others, and see its bits and\n"
"its rates change.  Commands are read from standard input, one a line; \"help\"\n"
"lists them.  The same commands give the same output.\n"
"\n"
"  -n, --capacity N    keys that it is made for (50)\n"
"  -p, --fpr RATE      rate that it is made for, 1e-9 to 0.5, or in %% (0.01)\n"
"      --layout L      blocked or classic (blocked)\n"
"      --hash H        murmur3 or siphash (murmur3)\n"
"      --seed S        murmur3: a number below 2^32; siphash: 32 hexadecimal\n"
"                      digits (0)\n"
"  -h, --help          show this\n"
"\n"
"In the picture \".\" is a bit that is not set and \"#\" one that is; of the key\n"
"of the command, \"+\" is a bit that it has set, \"o\" one that was set before, and\n"
"\"x\" one that is not set, so that the key is absent.  On a terminal they have\n"
"colours, unless NO_COLOR is set.\n"
"\n"
"Exit status: 0; 2 an error, or a command that was not understood.\n"
"\n"
"Examples:\n"
"  ngx-bloom play\n"
"  printf 'fill 50\\nask 10000\\n' | ngx-bloom play --layout classic\n");
}


/* CLI_OK, CLI_ERROR after a message, or -1 if help was asked for. */
static int
parse_options(play_t *play, int argc, char **argv)
{
    int          c, rc;
    uint32_t     layout;
    const char  *seed;

    enum { LAYOUT = 256, HASH, SEED };

    static const struct option  names[] = {
        { "capacity", required_argument, NULL, 'n' },
        { "fpr",      required_argument, NULL, 'p' },
        { "layout",   required_argument, NULL, LAYOUT },
        { "hash",     required_argument, NULL, HASH },
        { "seed",     required_argument, NULL, SEED },
        { "help",     no_argument,       NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };

    play->capacity = 50;
    play->fpr = 0.01;
    play->hasher.kind = BLOOM_HASH_MURMUR3;
    layout = BLOOM_LAYOUT_BLOCKED;
    seed = NULL;

    while ((c = cli_option(argc, argv, ":n:p:h", names)) != -1) {

        rc = CLI_OK;

        switch (c) {

        case 'n':
            rc = option_capacity(optarg, &play->capacity);
            break;

        case 'p':
            rc = option_fpr(optarg, &play->fpr);
            break;

        case LAYOUT:
            rc = option_layout(optarg, &layout);
            break;

        case HASH:
            rc = option_hash(optarg, &play->hasher);
            break;

        case SEED:
            seed = optarg;
            break;

        case 'h':
            usage();
            return -1;

        default:
            return CLI_ERROR;
        }

        if (rc != CLI_OK) {
            return rc;
        }
    }

    if (optind != argc) {
        return cli_misuse("\"%s\" is no option; keys are added by commands",
                          argv[optind]);
    }

    if (seed != NULL && option_seed(seed, &play->hasher) != CLI_OK) {
        return CLI_ERROR;
    }

    if (bloom_geometry_size(&play->geometry, layout, play->capacity,
                            play->fpr) != 0
        || play->geometry.bits > BITS_MAX)
    {
        return cli_misuse("%" PRIu64 " keys at a rate of %g need more than the "
                          "%d bits that can be looked at: take fewer (-n) or a "
                          "higher rate (-p)", play->capacity, play->fpr,
                          BITS_MAX);
    }

    return CLI_OK;
}


/* Says what is wrong with a line. */
static void complain(play_t *play, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));


static void
complain(play_t *play, const char *fmt, ...)
{
    char     what[256];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    if (play->prompt) {
        cli_error("%s; \"help\" lists the commands", what);

    } else {
        cli_error("line %" PRIu64 ": %s; \"help\" lists the commands",
                  play->line, what);
    }

    play->errors++;
}


static int
is_set(const play_t *play, uint64_t bit)
{
    return (int) (play->words[bit / 64] >> bit % 64 & 1);
}


static void
draw(const play_t *play, const uint8_t mark[BITS_MAX])
{
    uint64_t     bit;
    const char  *colour, *next;

    colour = "";

    for (bit = 0; bit < play->geometry.bits; bit++) {

        if (bit % ROW_BITS == 0) {
            if (bit != 0 && bit % BLOOM_LINE_BITS == 0
                && play->geometry.layout == BLOOM_LAYOUT_BLOCKED)
            {
                putchar('\n');
            }

            printf("%6" PRIu64 "  ", bit);
        }

        next = play->colours ? marks[mark[bit]].colour : "";

        if (next != colour) {
            printf("%s%s", *colour != '\0' ? "\033[0m" : "", next);
            colour = next;
        }

        putchar(marks[mark[bit]].sign);

        if (bit % ROW_BITS == ROW_BITS - 1) {
            printf("%s\n", *colour != '\0' ? "\033[0m" : "");
            colour = "";
        }
    }
}


static void
mark_all(const play_t *play, uint8_t mark[BITS_MAX])
{
    uint64_t  bit;

    for (bit = 0; bit < play->geometry.bits; bit++) {
        mark[bit] = is_set(play, bit) ? SET : CLEAR;
    }
}


/* How full it is, and what that means. */
static void
print_state(const play_t *play)
{
    char            now[UNITS_LEN], expected[UNITS_LEN], target[UNITS_LEN];
    bloom_census_t  census;

    memset(&census, 0, sizeof(census));
    bloom_census(&census, &play->geometry, play->words,
                 play->geometry.bits / 64);

    printf("%" PRIu64 " of %" PRIu64 " bits set (%.1f %%), %" PRIu64 " of %"
           PRIu64 " keys (the bits look like %" PRIu64 ")\n"
           "false-positive rate: %s of these bits, %s expected of so many "
           "keys, %s at capacity\n",
           census.ones, play->geometry.bits, 100 * bloom_census_fill(&census),
           play->items, play->capacity,
           bloom_census_items(&census, &play->geometry),
           format_rate(now, bloom_census_fpr(&census, &play->geometry)),
           format_rate(expected,
                       bloom_geometry_fpr(&play->geometry, play->items)),
           format_rate(target,
                       bloom_geometry_fpr(&play->geometry, play->capacity)));
}


/* "17 + 40 o 41 x": the bits of a key, and what each is. */
static void
print_bits(const uint64_t *bits, uint32_t k, const uint8_t mark[BITS_MAX])
{
    uint32_t  i;

    for (i = 0; i < k; i++) {
        printf(" %" PRIu64 "%c", bits[i], marks[mark[bits[i]]].sign);
    }

    putchar('\n');
}


/* The next word of a line, NULL if there is none. */
static char *
next_word(char **rest)
{
    char  *word;

    *rest += strspn(*rest, BLANKS);
    word = *rest;
    *rest += strcspn(*rest, BLANKS);

    if (*rest == word) {
        return NULL;
    }

    if (**rest != '\0') {
        *(*rest)++ = '\0';
    }

    return word;
}


/* Marks the bits of a key, those that are not set as `clear`; how many. */
static uint32_t
mark_key(const play_t *play, const char *key, uint8_t clear,
    bloom_hash_t *hash, uint64_t *bits, uint8_t *mark)
{
    uint32_t  i, k;

    *hash = bloom_hash(&play->hasher, key, strlen(key));
    k = bloom_layout_bits(&play->geometry, *hash, bits);
    mark_all(play, mark);

    for (i = 0; i < k; i++) {
        mark[bits[i]] = is_set(play, bits[i]) ? OWN_SET : clear;
    }

    return k;
}


static int
run_add(play_t *play, char *rest)
{
    char          *key;
    uint8_t        mark[BITS_MAX];
    uint32_t       k;
    uint64_t       bits[BLOOM_K_MAX];
    bloom_hash_t   hash;

    key = next_word(&rest);

    if (key == NULL) {
        complain(play, "add wants keys");
        return 0;
    }

    do {
        k = mark_key(play, key, OWN_NEW, &hash, bits, mark);

        if (bloom_layout_add(&play->geometry, play->words, hash)) {
            play->items++;
            printf("added \"%s\":", key);

        } else {
            printf("\"%s\" may be present already, nothing changes:", key);
        }

        print_bits(bits, k, mark);

        key = next_word(&rest);
    } while (key != NULL);

    draw(play, mark);
    print_state(play);

    return 0;
}


static int
run_test(play_t *play, char *rest)
{
    char          *key;
    uint8_t        mark[BITS_MAX];
    uint32_t       k;
    uint64_t       bits[BLOOM_K_MAX];
    bloom_hash_t   hash;

    key = next_word(&rest);

    if (key == NULL) {
        complain(play, "test wants keys");
        return 0;
    }

    do {
        k = mark_key(play, key, OWN_CLEAR, &hash, bits, mark);

        printf("\"%s\" is %s:", key,
               bloom_layout_test(&play->geometry, play->words, hash)
               ? "maybe present" : "absent");
        print_bits(bits, k, mark);

        key = next_word(&rest);
    } while (key != NULL);

    draw(play, mark);

    return 0;
}


/* The number behind "fill" and "ask"; 0 after a complaint. */
static uint64_t
take_number(play_t *play, const char *order, char *rest)
{
    char      *word;
    uint64_t   n;

    enum { MOST = 10000000 };

    word = next_word(&rest);

    if (word == NULL || parse_count(word, &n) != 0 || n == 0 || n > MOST
        || next_word(&rest) != NULL)
    {
        complain(play, "%s wants a number from 1 to %d", order, MOST);
        return 0;
    }

    return n;
}


static bloom_hash_t
hash_numbered(const play_t *play, const char *name, uint64_t n)
{
    int   len;
    char  key[64];

    len = snprintf(key, sizeof(key), "%s%" PRIu64, name, n);

    return bloom_hash(&play->hasher, key, (size_t) len);
}


static int
run_fill(play_t *play, char *rest)
{
    uint8_t   mark[BITS_MAX];
    uint64_t  i, n;

    n = take_number(play, "fill", rest);

    for (i = 0; i < n; i++) {
        play->items += (uint64_t)
            bloom_layout_add(&play->geometry, play->words,
                             hash_numbered(play, "key", ++play->filled));
    }

    if (n != 0) {
        printf("added key%" PRIu64 " to key%" PRIu64 "\n",
               play->filled - n + 1, play->filled);
        mark_all(play, mark);
        draw(play, mark);
        print_state(play);
    }

    return 0;
}


static int
run_ask(play_t *play, char *rest)
{
    char      rate[UNITS_LEN];
    uint64_t  i, n, found;

    n = take_number(play, "ask", rest);
    found = 0;

    for (i = 0; i < n; i++) {
        found += (uint64_t)
            bloom_layout_test(&play->geometry, play->words,
                              hash_numbered(play, "absent", ++play->asked));
    }

    if (n != 0) {
        printf("asked for absent%" PRIu64 " to absent%" PRIu64 ": %" PRIu64
               " maybe present, which is wrong: %s\n", play->asked - n + 1,
               play->asked, found,
               format_rate(rate, (double) found / (double) n));
        print_state(play);
    }

    return 0;
}


static int
run_show(play_t *play, char *rest)
{
    uint8_t  mark[BITS_MAX];

    (void) rest;

    mark_all(play, mark);
    draw(play, mark);
    print_state(play);

    return 0;
}


static int
run_clear(play_t *play, char *rest)
{
    memset(play->words, 0, sizeof(play->words));
    play->items = 0;
    play->filled = 0;
    play->asked = 0;

    return run_show(play, rest);
}


static int
run_quit(play_t *play, char *rest)
{
    (void) play;
    (void) rest;

    return -1;
}


static int run_help(play_t *play, char *rest);

static const order_t  orders[] = {
    { "add",   "KEY...", "add keys, which are words",               run_add },
    { "test",  "KEY...", "ask for keys",                            run_test },
    { "fill",  "N",      "add N more keys: key1, key2...",          run_fill },
    { "ask",   "N",      "ask for N keys that are not in it: absent1, "
                         "absent2...",                              run_ask },
    { "show",  "",       "show the bits and the rates",             run_show },
    { "clear", "",       "begin again",                             run_clear },
    { "help",  "",       "show this",                               run_help },
    { "quit",  "",       "end; so does the end of the input",       run_quit },
};

#define ORDERS  (sizeof(orders) / sizeof(orders[0]))


static int
run_help(play_t *play, char *rest)
{
    size_t  i;

    (void) play;
    (void) rest;

    for (i = 0; i < ORDERS; i++) {
        printf("  %-5s %-7s %s\n", orders[i].name, orders[i].takes,
               orders[i].does);
    }

    printf("the first letter will do.  Bits: . not set, # set; of the key of "
           "the command:\n+ set by it, o set before, x not set\n");

    return 0;
}


/* -1: no more. */
static int
run_line(play_t *play, char *line)
{
    char    *word;
    size_t   i;

    play->line++;
    word = next_word(&line);

    if (word == NULL || *word == '#') {
        return 0;
    }

    for (i = 0; i < ORDERS; i++) {
        if (strcmp(word, orders[i].name) == 0
            || (word[1] == '\0' && word[0] == orders[i].name[0]))
        {
            return orders[i].run(play, line);
        }
    }

    complain(play, "there is no command \"%s\"", word);

    return 0;
}


static void
print_prompt(const play_t *play)
{
    if (play->prompt) {
        printf("> ");
    }

    fflush(stdout);
}


int
cmd_play(int argc, char **argv)
{
    int          rc;
    char        *line;
    size_t       size;
    play_t       play;
    const char  *no_colour, *terminal;

    memset(&play, 0, sizeof(play));

    rc = parse_options(&play, argc, argv);

    if (rc != CLI_OK) {
        return rc == -1 ? CLI_OK : rc;
    }

    /* no-color.org: set, and not empty */

    no_colour = getenv("NO_COLOR");
    terminal = getenv("TERM");

    play.prompt = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    play.colours = isatty(STDOUT_FILENO)
                   && (no_colour == NULL || *no_colour == '\0')
                   && (terminal == NULL || strcmp(terminal, "dumb") != 0);

    printf("%s, %s, %" PRIu32 " bits a key; \"help\" lists the commands\n",
           bloom_geometry_layout_name(play.geometry.layout),
           bloom_hasher_name(play.hasher.kind), play.geometry.k);
    (void) run_show(&play, NULL);

    line = NULL;
    size = 0;

    print_prompt(&play);

    while (getline(&line, &size, stdin) != -1 && run_line(&play, line) == 0) {
        print_prompt(&play);
    }

    if (ferror(stdin)) {
        cli_error("standard input: cannot be read: %s", strerror(errno));
        play.errors++;
    }

    if (play.prompt && feof(stdin)) {
        putchar('\n');
    }

    free(line);

    return play.errors != 0 && !play.prompt ? CLI_ERROR : CLI_OK;
}
