// SPDX-License-Identifier: BSD-2-Clause

// Creates elements.  Text becomes text nodes only: text from outside is never
// parsed as markup.

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


// These write only what differs, so that a selection and the position of a
// screen reader stay.

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


// Replaces a node's children by those that `make` returns for each element of
// `data`, if the data has changed.

export function setChildren(node, data, make) {
    const key = JSON.stringify(data);

    if (made.get(node) !== key) {
        made.set(node, key);
        node.replaceChildren(...data.map(make));
    }
}

const made = new WeakMap();
