// The dialog of settings.  What is changed counts at once.

import { ask, openDialog } from './dialogs.js';
import { button, byId, el } from './dom.js';
import { EFFORTS, moreParameters, PARAMETERS, saveSettings, settings }
  from './settings.js';
import { LIMIT, list, used } from './store.js';


export function applyTheme() {
  document.documentElement.dataset.theme = settings.theme;

  const dark = settings.theme ? settings.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches;
  const b = byId('theme');

  b.title = `Change to ${dark ? 'light' : 'dark'}`;
  b.setAttribute('aria-label', b.title);
  b.onclick = () => {
    settings.theme = dark ? 'light' : 'dark';
    saveSettings();
    applyTheme();
  };
}


let count = 0;

// a label and a field

function field(label, input, hint) {
  input.id = 'field-' + ++count;

  return el('div.field', el('label', { for: input.id }, label), input,
      hint && el('small', hint));
}


// a field whose value is kept in an object; more: attributes

function kept(what, of, name, more, then) {
  const input = el(what, { name, value: of[name] ?? '', ...more,
    onchange: () => {
      if (input.reportValidity()) {
        of[name] = input.type === 'number' && input.value !== ''
          ? Number(input.value) : input.value.trim();
        saveSettings();
        then?.();
      }
    } });

  return input;
}


function choice(of, name, values, then) {
  const s = kept('select', of, name, {}, then);

  s.append(...values.map(([v, text]) => el('option', { value: v }, text)));
  s.value = of[name] ?? '';

  return s;
}


function parameters() {
  const p = settings.parameters;
  const more = kept('textarea.mono', p, 'more', {
    rows: 3, spellcheck: 'false', placeholder: '{"tools": []}',
    oninput: () => {
      try {
        moreParameters(more.value);
        more.setCustomValidity('');
      } catch (e) {
        more.setCustomValidity(e.message);
      }
    } });

  return [
    el('div.grid',
       ...PARAMETERS.map(([name, step, min, max, label, hint]) => field(label,
         kept('input', p, name, { type: 'number', min, max, step,
             placeholder: 'default' }), hint)),
       field('Reasoning effort', choice(p, 'reasoning_effort',
         [['', 'default'], ...EFFORTS.map(e => [e, e])]),
             'if the model reasons')),
    field('Stop at', kept('textarea', p, 'stop', { rows: 2 }),
          'one text in each line'),
    field('More parameters, as JSON', more, 'members of the request')];
}


// does: models() after a change of the key, newSystem(), exportAll(),
// importFile(), deleteAll()

export function openSettings(does) {
  const mb = n => (n / 1048576).toFixed(1) + ' MB';
  const key = kept('input', settings, 'key', {
    type: 'password', autocomplete: 'off' }, does.models);

  openDialog('settings', 'Settings', el('div.content',
    field('API key', key, 'Sent to this server alone; kept in this browser.'),
    field('Appearance', choice(settings, 'theme', [
      ['', 'As the system'], ['light', 'Light'], ['dark', 'Dark']],
          applyTheme)),
    field('System prompt of new chats', kept('textarea', settings, 'system',
        { rows: 3 }, does.newSystem)),
    el('h3', 'Parameters'),
    ...parameters(),
    button('Back to the defaults', () => {
      settings.parameters = {};
      saveSettings();
      openSettings(does);
    }),
    el('h3', 'Conversations'),
    el('p', `${list().length} in this browser, ${mb(used())} of ${
      mb(LIMIT)}.`),
    el('div.row',
       button('Save all as JSON', does.exportAll),
       button('Import…', does.importFile),
       button('Delete all…', async () => {
         if (await ask({ title: 'Delete all conversations?', ok: 'Delete',
             text: 'They cannot be restored.', danger: true }))
         {
           does.deleteAll();
         }
       }, '.danger'))));
  key.focus();
}
