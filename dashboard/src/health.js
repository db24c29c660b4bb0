// SPDX-License-Identifier: BSD-2-Clause

// What is wrong with a zone, and what to do: { level, text }, level "bad" or
// "warn".

import { bytes, digits, duration, moment, number, plural, rate }
    from './format.js';

const SILENT = 10_000;                // ms; the helper looks in every second
const ENOUGH = 20;                    // cases that a measured rate rests on
const RECENT = 24 * 3600 * 1000;      // ms that a wrong absent is warned of
const LAYERS = 4;                     // from which on lookups take longer


const states = {
    'not_loaded': ['bad', 'Nothing is loaded: every answer is “unknown”. '
                          + 'The error log says why, and what to do.'],
    'stale': ['bad', 'The image is older than max_age allows: every answer is '
                     + '“unknown” until a newer one is loaded. Build an image '
                     + 'with --as-of, and load it.'],
    'damaged': ['bad', 'Added keys were lost: keys that the filter lacks are '
                       + '“unknown” until an image has them. Build an image '
                       + 'whose --as-of is more than an hour after the loss, '
                       + 'and load it.'],
    'behind': ['warn', 'The zone has not applied all added keys yet: keys that '
                       + 'the filter lacks are “unknown”. If this lasts, look '
                       + 'for a stopped process of nginx, and at the disk of '
                       + 'bloom_state_path.'],
};

// by source.state, of a zone that is late

const sources = {
    waiting: 'The source has given no sign of life since the start: keys that '
             + 'the filter lacks are “unknown”. Look for the follower and its '
             + 'log.',
    late: 'The last sign of life of the source is older than max_lag allows: '
          + 'keys that the filter lacks are “unknown”. Look for the follower '
          + 'and its log.',
    gap: 'The source has lost changes that the zone lacks: keys that the '
         + 'filter lacks are “unknown”. Load an image that is built with '
         + '--source at a position after the gap.',
};

const loads = {
    refused: 'The last load was refused',
    no_room: 'The last load found no room',
    failed: 'The last load failed',
};


export function problems(zone, now) {
    const found = [];
    const say = (level, text) => found.push({ level, text });

    if (zone.state === 'damaged' && zone.expire !== null) {
        say('bad', 'Added keys were lost: keys that the filter lacks are '
                   + '“unknown” until the lost ones would have expired. Clear '
                   + 'the zone if an “absent” does no harm.');

    } else if (zone.state === 'late') {
        say('bad', sources[zone.source?.state] ?? 'The source is late.');

    } else if (zone.state !== 'serving') {
        say(...states[zone.state] ?? ['bad', `The zone is ${zone.state}.`]);
    }

    const silent = now - Date.parse(zone.helper.heartbeat);

    if (silent > SILENT) {
        say('bad', 'The helper process has been silent for '
                   + `${duration(silent)}: nothing is loaded, saved or `
                   + 'synchronised. Look for “nginx: cache manager process” '
                   + 'and its master; restart nginx if they are gone.');
    }

    if (loads[zone.load.result] !== undefined) {
        say('bad', `${loads[zone.load.result]}`
                   + `${zone.load.message === null ? '' : ': '
                                                   + zone.load.message}.`);
    }

    if (overFull(zone)) {
        const { filter, image } = zone;
        const times = filter.estimated_fpr / filter.promised_fpr;

        say(times > 2 ? 'bad' : 'warn',
            `Over-full: the filter has about ${number(filter.estimated_items)} `
            + `keys${zone.expire === null ? '' : ' that have not expired'}, but `
            + `capacity for ${number(filter.max_items)}. Its `
            + `false-positive rate is ${rate(filter.estimated_fpr)}, `
            + `${digits(times)} times the target. `
            + (zone.file !== null || image.uploaded
                ? 'Build the next image with -n greater than its number of '
                  + 'keys.'
                : filter.max_items > image.capacity
                    ? 'Raise the zone’s max_keys.'
                : 'Raise the zone’s capacity.'));

    } else if (grows(zone)
               && zone.filter.estimated_items > 0.8 * zone.filter.max_items)
    {
        say('warn', 'Nearly full: the filter has about '
                    + `${number(zone.filter.estimated_items)} keys, and can `
                    + `grow to ${number(zone.filter.max_items)}. ${merge(zone)}`
                    + ', or raise max_keys=.');
    }

    if (zone.expire !== null && zone.filter !== null
        && zone.expire.ready === 0)
    {
        say('warn', 'All slices are in use: until one is ready, the open slice '
                    + 'takes all keys, which then live longer, and the '
                    + 'false-positive rate rises. If this lasts, raise '
                    + 'max_keys=, which gives the zone more slices.');
    }

    if (zone.filter?.layers >= LAYERS) {
        say('note', `Grown by ${zone.filter.layers} layers: a lookup reads `
                    + `memory in each of them. ${merge(zone)}.`);
    }

    const { count, limit } = zone.removals;

    if (count > 0 && count > 0.8 * limit) {
        say('warn', `Nearly full of removed keys: the zone has `
                    + `${number(count)}, and room for ${number(limit)}. `
                    + (zone.expire === null
                        ? 'Load an image with --as-of that lacks them, or raise '
                          + 'removals=.'
                        : 'Raise removals=.'));
    }

    const { excepted, excepted_limit: most } = zone.removals;

    if (excepted > 0 && excepted > 0.8 * most) {
        say('warn', `Nearly full of excepted keys: the zone has `
                    + `${number(excepted)}, and excepts up to ${number(most)}. `
                    + (zone.expire === null
                        ? 'Load a newer image, which forgets them, or raise '
                          + 'removals=. If clients collect false positives, '
                          + 'build the image with --hash siphash.'
                        : 'Raise removals=. If clients collect false positives, '
                          + 'use hash=siphash.'));
    }

    if (zone.journal.error !== null) {
        say('bad', `The journal cannot be written: ${zone.journal.error}.`);
    }

    if (zone.journal.lost_keys > 0) {
        say('bad', `${plural(zone.journal.lost_keys, 'added key')} could not `
                   + 'be written to the journal and will be lost with the '
                   + 'next load. Look at the disk of bloom_state_path, and '
                   + 'add the keys again.');
    }

    if (zone.journal.owing_workers > 0) {
        say('warn', `${plural(zone.journal.owing_workers, 'worker')} `
                    + `${zone.journal.owing_workers === 1 ? 'keeps' : 'keep'} `
                    + 'added keys, because another process holds the lock of '
                    + 'the zone: keys that the filter lacks are “unknown”. If '
                    + 'this lasts, look for a stopped process of nginx, and at '
                    + 'the disk of bloom_state_path.');
    }

    if (now - Date.parse(zone.audit.last_wrong_absent) < RECENT) {
        say('bad', `The audit found ${number(zone.audit.wrong_absent)} wrong `
                   + `“absent” in ${plural(zone.audit.audited,
                                           'audited request')}: the backend `
                   + 'has these keys, the filter does not; last at '
                   + `${moment(zone.audit.last_wrong_absent)}. Add the keys that `
                   + 'the error log names, or load an image that has them.');
    }

    if (zone.feedback.false_positives >= ENOUGH && zone.image !== null
        && zone.feedback.measured_fpr > 2 * zone.filter.promised_fpr)
    {
        say('warn', `False positives are measured at `
                    + `${rate(zone.feedback.measured_fpr)}; the target is `
                    + `${rate(zone.filter.promised_fpr)}. They may be deleted keys that `
                    + 'are still asked for: remove them. If no '
                    + 'keys were deleted, a client may be choosing keys on '
                    + 'purpose: use hash=siphash.');
    }

    if (zone.load.in_progress) {
        say('note', zone.load.size_bytes > 0
            ? `Loading: ${bytes(zone.load.done_bytes)} of `
              + `${bytes(zone.load.size_bytes)}.`
            : 'Loading.');
    }

    return found;
}


// Says whether a filter is over-full by the rule of the error log: by more than
// the error of the estimate.

export function overFull({ filter }) {
    if (filter === null) {
        return false;
    }

    const error = Math.hypot(...filter.parts.map(errorOf));

    return filter.estimated_items > filter.max_items + 3 * error
           && filter.estimated_fpr > filter.promised_fpr;
}


// The number of keys in a fuse base is known.

function errorOf({ k, bits, estimated_items: items, fill_ratio: fill }) {
    if (fill === null) {
        return 0;
    }

    const load = k * items / bits;

    return Math.sqrt(bits * (Math.expm1(load) - load)) / k;
}


// Says whether a filter has layers, or can have some.

const grows = ({ filter, image, expire }) =>
    filter !== null && image !== null && expire === null
    && filter.max_items > image.capacity;

const merge = ({ file, image, filter }) =>
    file !== null || image.uploaded
        ? `Build the next image with all keys and -n over ${
            number(filter.estimated_items)}`
        : `Raise the zone’s capacity above ${number(filter.estimated_items)}`;


export function worst(found) {
    return ['bad', 'warn'].find((level) =>
        found.some((problem) => problem.level === level)) ?? 'good';
}
