// Dialogs: a question with one field or none, and the frame of the larger ones.

import { button, byId, el, iconButton } from './dom.js';


// fills a <dialog> and opens it

export function openDialog(id, title, ...content) {
  const d = byId(id);

  d.replaceChildren(
    el('header', el('h2', { id: id + '-title' }, title),
       iconButton('close', 'Close', () => d.close())),
    ...content);

  // a click on what is around it

  d.onclick = e => {
    if (e.target === d) {
      d.close();
    }
  };

  if (!d.open) {
    d.showModal();
  }

  return d;
}


// Asks; resolves with true or the field's value, or with null if the person
// does not want to.  field: { label, value, type }

export function ask({ title, text, ok = 'OK', danger = false, field }) {
  return new Promise(resolve => {
    const input = field && el('input', {
      id: 'ask-field', type: field.type ?? 'text',
      value: field.value ?? '', autocomplete: 'off',
      spellcheck: 'false' });
    let answer = null;

    const form = el('form', { onsubmit: e => {
      e.preventDefault();
      answer = input ? input.value : true;
      d.close();
    } },
      text && el('p', text),
      input && el('label', { for: 'ask-field' }, field.label),
      input,
      el('div.row',
         button('Cancel', () => d.close()),
         el(danger ? 'button.danger' : 'button.primary', {}, ok)));

    const d = openDialog('ask', title, form);

    d.onclose = () => resolve(answer);
    (input ?? form.querySelector('.row button:last-child')).focus();
  });
}
