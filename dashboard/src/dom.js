// SPDX-License-Identifier: BSD-2-Clause

// Makes elements.  Text becomes text nodes and nothing else: what comes from
// outside is never read as markup.

export function h(tag, props = {}, ...children) {
    return fill(document.createElement(tag), props, children);
}


export function svg(tag, props = {}, ...children) {
    return fill(document.createElementNS('http://www.w3.org/2000/svg', tag),
                props, children);
}


function fill(node, props, children) {
    for (const [name, value] of Object.entries(props)) {
        if (name.startsWith('on')) {
            node.addEventListener(name.slice(2), value);

        } else if (value === true) {
            node.setAttribute(name, '');

        } else if (value !== false && value !== undefined) {
            node.setAttribute(name, value);
        }
    }

    node.append(...children.flat().filter((child) => child !== undefined));

    return node;
}


export const byId = (id) => document.getElementById(id);


// Only what differs is written, so that what a reader has selected, or a
// screen reader is at, stays.

export function setText(node, text) {
    if (node.textContent !== text) {
        node.textContent = text;
    }
}


export function setAttribute(node, name, value) {
    if (node.getAttribute(name) !== value) {
        node.setAttribute(name, value);
    }
}


// Makes a node's children from a list of data again if the data changed.

export function setChildren(node, data, make) {
    const key = JSON.stringify(data);

    if (made.get(node) !== key) {
        made.set(node, key);
        node.replaceChildren(...data.map(make));
    }
}

const made = new WeakMap();
