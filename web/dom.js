// Elements: made by el(), and from Markdown's tree by show(), which changes
// only what is different from the tree that the element showed before, so that
// a text that grows keeps its selection and its place.  Texts come into the
// page as text alone: nothing sets HTML.

import { highlight } from './code.js';

const TAGS = new Set(['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'ul',
    'ol', 'li', 'blockquote', 'div', 'table', 'thead',
    'tbody', 'tr', 'th', 'td', 'a', 'br', 'code', 'em',
    'strong', 'del', 'span']);

const shown = new WeakMap();            // element: the nodes that it shows


export const byId = id => document.getElementById(id);


// el('button.small', { onclick, title, disabled }, ...children); the properties
// may be left out, and what is false among the children is

export function el(what, ...kids) {
  const props = kids[0]?.constructor === Object ? kids.shift() : {};
  const [tag, ...classes] = what.split('.');
  const e = document.createElement(tag);

  e.classList.add(...classes);

  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) {
      e.addEventListener(name.slice(2), value);
    } else if (typeof value === 'boolean' || name === 'value') {
      e[name] = value;
    } else if (value !== undefined && value !== null) {
      e.setAttribute(name, value);
    }
  }

  e.append(...kids.flat().filter(Boolean));

  return e;
}


// an icon of index.html

export function icon(name) {
  const of = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(of, 'svg');
  const use = document.createElementNS(of, 'use');

  use.setAttribute('href', '#i-' + name);
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.append(use);

  return svg;
}

document.querySelectorAll('[data-icon]').forEach(
  b => b.prepend(icon(b.dataset.icon)));


export const button = (text, onclick, cls = '') =>
  el('button' + cls, { type: 'button', onclick }, text);


export const iconButton = (name, label, onclick) =>
  el('button.icon', { type: 'button', title: label, 'aria-label': label,
      onclick }, icon(name));


// ---- copying ----

// a button that copies what text() returns

export function copyButton(label, text) {
  const b = iconButton('copy', label, async () => {
    const use = b.querySelector('use');
    const done = await navigator.clipboard?.writeText(text()).then(
      () => true, () => false) ?? copyOld(text());

    use.setAttribute('href', done ? '#i-check' : '#i-close');
    b.setAttribute('aria-label', done ? 'Copied' : 'Copying failed');
    setTimeout(() => {
      use.setAttribute('href', '#i-copy');
      b.setAttribute('aria-label', label);
    }, 1500);
  });

  return b;
}


// without https there is no navigator.clipboard, but on localhost

function copyOld(text) {
  const area = el('textarea.hidden', { value: text });

  document.body.append(area);
  area.select();

  const done = document.execCommand('copy');

  area.remove();

  return done;
}


// ---- Markdown ----

function same(a, b) {
  return typeof a === 'string' ? typeof b === 'string'
      : a.tag === b.tag && a.cls === b.cls;
}


function make(node) {
  if (typeof node === 'string') {
    return document.createTextNode(node);
  }

  const e = node.tag === 'code-block' ? codeBlock()
      : document.createElement(TAGS.has(node.tag) ? node.tag : 'span');

  if (node.cls) {
    e.className = node.cls;
  }

  update(e, {}, node);

  return e;
}


function update(e, old, node) {
  if (typeof node === 'string') {
    if (node.startsWith(old)) {
      e.appendData(node.slice(old.length));
    } else {
      e.data = node;
    }

    return;
  }

  if (node.tag === 'code-block') {
    if (node.kids[0] !== old.kids?.[0] || node.lang !== old.lang) {
      e.firstChild.firstChild.textContent = node.lang || 'text';
      show(e.lastChild.firstChild, highlight(node.kids[0], node.lang));
    }

    return;
  }

  if (node.tag === 'a' && node.href !== old.href) {
    e.href = node.href;
    e.target = '_blank';
    e.rel = 'noopener noreferrer';
  }

  if (node.tag === 'ol' && node.start !== old.start) {
    e.start = node.start;
  }

  show(e, node.kids);
}


// shows nodes in an element, in place of what show() put there before

export function show(parent, nodes) {
  const old = shown.get(parent) ?? [];

  for (let i = 0; i < nodes.length; i++) {
    const there = parent.childNodes[i];

    if (i < old.length && same(old[i], nodes[i])) {
      update(there, old[i], nodes[i]);
    } else if (i < old.length) {
      there.replaceWith(make(nodes[i]));
    } else {
      parent.append(make(nodes[i]));
    }
  }

  while (parent.childNodes.length > nodes.length) {
    parent.lastChild.remove();
  }

  shown.set(parent, nodes);
}


function codeBlock() {
  const code = el('code');

  return el('div.code',
      el('div.bar', el('span'),
          copyButton('Copy the code', () => code.textContent)),
      el('pre', { tabindex: 0 }, code));
}
