// The list of conversations: search, rename, delete.

import { byId, el, iconButton } from './dom.js';
import { list, search } from './store.js';

let found = null;                       // ids that a search has found, or null


// current: the id of the conversation that is shown; does: open, rename,
// remove

export function drawList(current, does) {
  const heads = list().filter(h => !found || found.has(h.id));
  const items = heads.map(h => item(h, h.id === current, does));

  byId('list').replaceChildren(...(items.length || !found ? items
    : [el('li.none', 'Nothing found')]));
}


function item(head, current, does) {
  return el(current ? 'li.current' : 'li', {},
    el('a', { href: '#' + head.id, title: head.title,
        'aria-current': current ? 'page' : null }, head.title),
    iconButton('edit', 'Rename', () => does.rename(head)),
    iconButton('bin', 'Delete', () => does.remove(head)));
}


// draw: draws the list again

export function watchSearch(draw) {
  const input = byId('search');
  let last = 0;

  input.oninput = async () => {
    const mine = ++last;
    const text = input.value.trim();
    const ids = text ? await search(text) : null;

    // only the newest search counts

    if (mine === last) {
      found = ids;
      draw();
    }
  };
}
