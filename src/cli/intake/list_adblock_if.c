/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * This file decides the lines !#if, !#else and !#endif of Adblock-style lists.
 */

#include "list_adblock_if.h"

#define NESTED  32                       /* parentheses and ! in a condition */


enum { NO = 0, YES, UNDECIDED };


/* The names that are true in uBlock Origin in Chromium on a desktop, and those
 * that it knows and that are false there. */

static const char *const  true_names[] = {
    "ext_ublock", "env_chromium", "cap_ipaddress", "adguard_ext_chromium",
    "adguard_ext_opera"
};

static const char *const  false_names[] = {
    "false", "ext_ubol", "ext_devbuild", "ext_abp", "env_edge", "env_firefox",
    "env_legacy", "env_mobile", "env_mv3", "env_safari", "adguard",
    "adguard_app_android", "adguard_app_ios", "adguard_app_mac",
    "adguard_app_windows", "adguard_ext_android_cb", "adguard_ext_edge",
    "adguard_ext_firefox", "adguard_ext_safari"
};


static int
is_one_of(const bloom_key_t *name, const char *const *names, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (name->len == strlen(names[i]) && list_begins(name, names[i])) {
            return 1;
        }
    }

    return 0;
}


/* Returns the value of a name. */
static int
value_of(const bloom_key_t *name)
{
    if (is_one_of(name, true_names,
                  sizeof(true_names) / sizeof(true_names[0])))
    {
        return YES;
    }

    /* a capability that is not known is one that is not there */

    return list_begins(name, "cap_")
           || is_one_of(name, false_names,
                        sizeof(false_names) / sizeof(false_names[0]))
           ? NO : UNDECIDED;
}


/* Takes a name from the beginning of a text, and returns its value. */
static int
take_name(bloom_key_t *text)
{
    bloom_key_t  name;

    name = *text;
    name.len = 0;

    while (name.len < text->len
           && (bloom_is_alpha(text->data[name.len])
               || bloom_is_digit(text->data[name.len])
               || text->data[name.len] == '_'))
    {
        name.len++;
    }

    list_skip(text, name.len);

    return value_of(&name);
}


static int  take_condition(bloom_key_t *text, unsigned nested);


/* Takes a name, or what is in parentheses, with any ! before it. */
static int
take_operand(bloom_key_t *text, unsigned nested)
{
    int  value;

    list_trim(text);

    if (nested == NESTED) {
        return UNDECIDED;
    }

    if (list_begins(text, "!")) {
        list_skip(text, 1);
        value = take_operand(text, nested + 1);

        return value == UNDECIDED ? UNDECIDED : !value;
    }

    if (!list_begins(text, "(")) {
        return take_name(text);
    }

    list_skip(text, 1);
    value = take_condition(text, nested + 1);

    if (!list_begins(text, ")")) {
        return UNDECIDED;
    }

    list_skip(text, 1);

    return value;
}


/* Takes operands with && and || between them. */
static int
take_condition(bloom_key_t *text, unsigned nested)
{
    int  value, other, all;

    value = take_operand(text, nested);

    for ( ;; ) {
        list_trim(text);
        all = list_begins(text, "&&");

        if (!all && !list_begins(text, "||")) {
            return value;
        }

        list_skip(text, 2);
        other = take_operand(text, nested);

        if (value == UNDECIDED || other == UNDECIDED) {
            value = UNDECIDED;

        } else {
            value = all ? value && other : value || other;
        }
    }
}


static int
decide(bloom_key_t condition)
{
    int  value;

    value = take_condition(&condition, 0);

    return condition.len == 0 ? value : UNDECIDED;
}


/* Removes the name of a directive.  Returns 0 if the line has another one. */
static int
cut_name(bloom_key_t *line, const char *name)
{
    bloom_key_t  rest;

    if (!list_begins(line, name)) {
        return 0;
    }

    rest = *line;
    list_skip(&rest, strlen(name));

    if (rest.len != 0
        && (bloom_is_alpha(rest.data[0]) || bloom_is_digit(rest.data[0])
            || rest.data[0] == '_'))
    {
        return 0;
    }

    list_trim(&rest);
    *line = rest;

    return 1;
}


static void
leave_out(adblock_if_t *state, int undecided)
{
    state->left_out = state->depth;
    state->undecided = undecided;
}


adblock_if_e
adblock_if_take(adblock_if_t *state, const bloom_key_t *line)
{
    int          value;
    bloom_key_t  rest;

    rest = *line;

    if (!list_begins(&rest, "!#")) {
        return ADBLOCK_IF_NONE;
    }

    if (cut_name(&rest, "!#if")) {
        state->depth++;

        if (state->left_out == 0) {
            value = decide(rest);

            if (value != YES) {
                leave_out(state, value == UNDECIDED);
            }
        }

        return ADBLOCK_IF_TAKEN;
    }

    if (cut_name(&rest, "!#else")) {
        if (state->depth == 0) {
            return ADBLOCK_IF_STRAY;
        }

        if (state->left_out == 0) {
            leave_out(state, 0);

        } else if (state->left_out == state->depth && !state->undecided) {
            state->left_out = 0;
        }

        return ADBLOCK_IF_TAKEN;
    }

    if (cut_name(&rest, "!#endif")) {
        if (state->depth == 0) {
            return ADBLOCK_IF_STRAY;
        }

        if (state->left_out == state->depth) {
            state->left_out = 0;
        }

        state->depth--;

        return ADBLOCK_IF_TAKEN;
    }

    return ADBLOCK_IF_NONE;
}


const char *
adblock_if_why(const adblock_if_t *state)
{
    if (state->left_out == 0) {
        return NULL;
    }

    return state->undecided
           ? "is in an !#if block whose condition cannot be decided"
           : "is in an !#if block that does not apply";
}
