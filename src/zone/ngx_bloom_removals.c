/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * An instance writes its counts in its row of the control page.
 */

#include "ngx_bloom_removals.h"


/* How often a process looks whether another instance has ended, at most, ms. */
#define NGX_BLOOM_REMOVALS_PRUNE  1000


static uint64_t ngx_bloom_removals_left_by_others(ngx_bloom_zone_t *zone);


void
ngx_bloom_removals_applied(ngx_bloom_zone_t *zone, uint64_t applied,
    const bloom_removals_t *removals)
{
    ngx_uint_t            i;
    ngx_bloom_control_t  *control;

    control = zone->state->control;
    i = zone->state->instance;

    /* whoever reads between both counts some removals twice, and none never */

    __atomic_store_n(&control->instance[i].removed,
                     ngx_bloom_removals_count(zone), __ATOMIC_SEQ_CST);
    control->instance[i].counted = *removals;

    __atomic_store_n(&control->instance[i].applied, applied, __ATOMIC_SEQ_CST);

    ngx_bloom_zone_may_remove(zone);
}


uint64_t
ngx_bloom_removals_count(ngx_bloom_zone_t *zone)
{
    uint64_t            generation, built, count;
    bloom_exceptions_t  set;

    generation = __atomic_load_n(&zone->sh->generation, __ATOMIC_SEQ_CST);

    if (generation == 0) {
        return 0;
    }

    ngx_bloom_zone_exceptions(zone, generation & 1, &set);

    count = bloom_exceptions_count(&set);
    built = zone->sh->bank[generation & 1].image.built;

    return count - ngx_min(count, built);
}


uint64_t
ngx_bloom_removals_left(ngx_bloom_zone_t *zone)
{
    uint64_t            left, others, removed;
    ngx_bloom_state_t  *state;

    left = zone->removals;
    removed = ngx_bloom_removals_count(zone);

    state = zone->state;

    if (state == NULL) {
        return left - ngx_min(left, removed);
    }

    removed += ngx_bloom_state_end(state).removals.keys
               - state->control->instance[state->instance].counted.keys;

    left -= ngx_min(left, removed);

    others = ngx_bloom_removals_left_by_others(zone);

    /* one that has ended does not count, and the helper may not know it yet */

    if (others < left
        && ngx_current_msec - state->pruned >= NGX_BLOOM_REMOVALS_PRUNE)
    {
        ngx_bloom_state_prune(state);
        state->pruned = ngx_current_msec;

        others = ngx_bloom_removals_left_by_others(zone);
    }

    return ngx_min(left, others);
}


/* Returns how many more keys may be removed in the other instances. */
static uint64_t
ngx_bloom_removals_left_by_others(ngx_bloom_zone_t *zone)
{
    uint64_t              left, instances, limit, removed;
    ngx_uint_t            i;
    ngx_bloom_end_t       end;
    ngx_bloom_control_t  *control;

    control = zone->state->control;
    end = ngx_bloom_state_end(zone->state);
    left = UINT64_MAX;

    instances = __atomic_load_n(&control->instances, __ATOMIC_SEQ_CST)
                & ~((uint64_t) 1 << zone->state->instance);

    for (i = 0; instances != 0; i++, instances >>= 1) {

        if ((instances & 1) == 0
            || __atomic_load_n(&control->instance[i].required,
                               __ATOMIC_SEQ_CST)
               == NGX_BLOOM_LEFT)
        {
            continue;
        }

        limit = __atomic_load_n(&control->instance[i].removals,
                                __ATOMIC_SEQ_CST);

        if (limit != 0) {
            removed = control->instance[i].removed
                      + (end.removals.keys - control->instance[i].counted.keys);

            limit -= 1;
            left = ngx_min(left, limit - ngx_min(limit, removed));
        }
    }

    return left;
}
