// SPDX-License-Identifier: BSD-2-Clause

// Makes sentences of what rules do about a key, from the facts that `GET keys`
// has.  A sentence is an array of texts, { code } and { zone }, which the page
// shows in different ways.


// Returns the rules that do something about the key, in their order: { word, dry,
// finds, verdict, by, places }.  `word` is the action, `finds` says that the zone
// has the key, `verdict` and `by` are sentences, and `places` are those where it
// happens.

export function effects({ lists, zones }) {
    const byName = new Map(zones.map((zone) => [zone.name, zone]));

    return lists.flatMap(({ places, rules }) => rules
        .filter(({ decided }) => !decided && places.length > 0)
        .flatMap((rule) => actions(rule, places).map((acts) =>
            effect(rule, acts, byName.get(rule.zone)))));
}


// Returns what happens, and where: { action, status, to, places }.

function actions(rule, places) {
    if (rule.effect === 'fires') {
        return [{ ...rule, places }];
    }

    const groups = new Map();

    if (rule.effect === 'unknown') {
        for (const place of places.filter(({ unknown }) => unknown !== 'pass')) {
            const key = JSON.stringify([place.unknown, place.to]);

            groups.set(key, [...groups.get(key) ?? [], place]);
        }
    }

    return [...groups.values()].map((some) => ({
        action: some[0].unknown, status: 503, to: some[0].to, places: some,
    }));
}


function effect(rule, { action, status, to, places }, zone) {
    const dry = rule.dry_run || places.every((place) => place.dry_run);
    const does = action === 'reject' ? `Rejected with ${status}`
        : action === 'route' ? `Routed to ${to}` : 'Passed';
    const at = `${rule.file}:${rule.line}`;

    return {
        word: action,
        dry,
        finds: rule.condition === 'present' && rule.answer === 'present',
        verdict: [dry ? `In dry run: ${does}` : does, ' because zone ',
                  { zone }, ...reason(rule, zone)],
        by: [...rule.rule === at ? ['By the rule at ']
                 : ['By rule ', { code: rule.rule }, ' at '],
             { code: at }, ', if ', { code: rule.key }, ' is this key',
             ...rule.if === undefined ? []
                 : [' and ', { code: `if=${rule.if}` }, ' holds']],
        places,
    };
}


function reason({ answer, entry, exception }, { state, reason: why }) {
    switch (answer) {
    case 'present':
        return [' finds ', { code: entry }];
    case 'invalid':
        return [` calls the key invalid: it ${why}`];
    case 'unknown':
        return [state === undefined ? ' cannot tell'
                    : ` cannot tell: its state is ${state.replace('_', ' ')}`];
    }

    return exception === undefined ? [' does not find it']
        : [' does not find it: ', { code: entry }, ` ${exceptions[exception]}`];
}


const exceptions = {
    removed: 'was removed',
    excepted: 'is an excepted key: the backend did not know it',
    image_excepted: 'is an exception that the builder of the image chose',
};


// Says where rules apply.

export const place = ({ server, file, line, location, modifier,
                        dry_run: dry }) => [
    'In ',
    ...location === null ? []
        : ['location ', { code: written(location, modifier) }, ' of '],
    'server ', { code: server ?? `${file}:${line}` },
    ...dry ? [', in dry run'] : [],
];


const written = (location, modifier) =>
    modifier === undefined ? location
        : /^[a-z]/.test(modifier) ? `${modifier} in ${location}`
        : `${modifier} ${location}`;
