// The functions of njs.conf

// The key of the zone: the ID in lower case, without its prefix.

function key(r) {
    const id = r.uri.slice('/item/'.length);

    return id.replace(/^id-/, '').toLowerCase();
}

// A handler that decides at once. "0" is definitely absent, and "1" may be present.
// "" is unknown, or the key is empty or invalid: such a request passes.

function item(r) {
    if (r.variables.known === '0') {
        r.return(404);
        return;
    }

    r.internalRedirect('@backend');
}

// An asynchronous handler: it asks the backend only for a known ID, and sends it
// the ID that was checked. A request without one ID gets 404, too.

async function title(r) {
    if (r.variables.known_arg === '0' || !r.variables.id) {
        r.return(404);
        return;
    }

    const reply = await r.subrequest('/backend/title',
                                     `id=${r.variables.id_escaped}`);

    r.return(reply.status, `the title: ${reply.responseText}`);
}

export default { item, key, title };
