// The page: which conversation is shown, and what its keys and buttons do.
// Requests are run.js's.

import { openAdmin, watchAdmin } from './admin.js';
import { explain, health, models, takesImages } from './api.js';
import { ask } from './dialogs.js';
import { button, byId, el, iconButton } from './dom.js';
import { fromJson, readFiles, saveAll, saveText, tooLarge } from './files.js';
import { drawList, watchSearch } from './list.js';
import { applyTheme, openSettings } from './options.js';
import { abort, runOf, start } from './run.js';
import { saveSettings, settings } from './settings.js';
import { list, load, newId, openStore, refresh, remove, save, titleOf }
  from './store.js';
import { Message } from './thread.js';

const prompt = byId('prompt');
const scroll = byId('scroll');

let known = [];                         // models
let talk = null;                        // the conversation that is shown
let views = [];                         // a Message for each of its messages
let attached = { files: [], images: [] };
const gone = new Set();                 // deleted conversations
let following = true;                   // the newest text stays in view

const touch = matchMedia('(pointer: coarse)');


// ---- what is said below the messages ----

function note(text, ...buttons) {
  byId('notes').replaceChildren(...(text ? [el('p', text, ...buttons,
    iconButton('close', 'Close', () => note('')))] : []));
}


const failed = e => note(e.message);


// ---- models ----

const model = () => known.find(m => m.id === byId('model').value);


async function loadModels() {
  const select = byId('model');

  try {
    known = await models();
  } catch (e) {
    if (e.status === 401) {
      await askKey();
    } else {
      note(explain(e).title + '. ' + explain(e).text,
           button('Try again', () => {
             note('');
             loadModels();
           }));
    }

    return;
  }

  const option = m => el('option', { value: m.id }, m.id);
  const aliases = known.filter(m => m.alias_of);

  select.replaceChildren(...known.filter(m => !m.alias_of).map(option));

  if (aliases.length) {
    select.append(el('optgroup', { label: 'Aliases' },
        ...aliases.map(option)));
  }

  chooseModel(talk?.model || settings.model);
  watchHealth();
  watchAdmin();
}


function chooseModel(id) {
  if (known.some(m => m.id === id)) {
    byId('model').value = id;
  }

  const m = model();

  byId('about').textContent = m ? [m.alias_of ? `${m.id} is ${m.alias_of}`
    : m.id, m.context_length && m.context_length.toLocaleString('en')
    + ' tokens of context'].filter(Boolean).join(' · ') : '';
}


// says beside the model that it is being loaded, or has failed

let watching = 0;

async function watchHealth() {
  clearTimeout(watching);

  const id = model()?.alias_of ?? model()?.id;
  const of = (await health())?.models?.find(m => m.id === id);
  const bad = of && of.status !== 'ok';

  byId('state').textContent = !bad ? ''
    : of.status === 'loading' ? `loading, ${Math.floor(
      100 * of.progress)} %` : of.reason ?? of.status;

  if (bad) {
    watching = setTimeout(watchHealth, 2000);
  }
}


async function askKey() {
  const key = await ask({ title: 'This server asks for an API key',
    text: 'It is kept in this browser, and sent to this server alone.',
    field: { label: 'API key', type: 'password', value: settings.key },
    ok: 'Use it' });

  if (key === null) {
    note('Without a key this server does not answer.',
         button('Enter a key', () => {
           note('');
           askKey();
         }));
    return false;
  }

  settings.key = key.trim();

  if (!saveSettings()) {
    note('This browser keeps nothing: the key is forgotten when you close'
         + ' the page.');
  }

  await loadModels();

  return true;
}


// ---- conversations ----

const begin = () => ({ id: newId(), title: '', updated: 0,
    model: '', system: settings.system, messages: [] });

const listDoes = {
  rename: async head => {
    const title = (await ask({ title: 'Rename', ok: 'Rename', field: {
      label: 'Title', value: head.title } }))?.trim();

    if (title) {
      const c = head.id === talk.id ? talk
          : await load(head.id);

      c.title = title.slice(0, 200);
      await keep(c, false);
    }
  },
  remove: async head => {
    if (await ask({ title: 'Delete this conversation?', text: head.title,
        ok: 'Delete', danger: true }))
    {
      await forget([head.id]);
    }
  }
};


function draw() {
  document.title = `${talk.title || 'New chat'} · nginx-llm`;
  drawList(talk.id, listDoes);
}


async function forget(ids) {
  for (const id of ids) {
    gone.add(id);
    abort(id);
  }

  await remove(ids).catch(failed);

  if (ids.includes(talk.id)) {
    newChat();
  }

  draw();
}


async function keep(c, changed = true) {
  if (gone.has(c.id)) {
    return;
  }

  c.title ||= titleOf(c.messages);
  c.updated = changed ? Date.now() : c.updated;
  await save(c).catch(failed);
  draw();
}


function newChat() {
  history.pushState(null, '', location.pathname + location.search);
  show(begin());
  side(false);
}


async function open() {
  const id = location.hash.slice(1);

  if (id === talk?.id) {
    return;
  }

  const c = runOf(id)?.conversation
    || id && await load(id).catch(() => null) || begin();

  // meanwhile another one may have been opened
  if (id === location.hash.slice(1) && id !== talk?.id) {
    show(c);
    side(false);
  }
}


function show(c) {
  talk = c;
  byId('system').value = c.system;
  byId('system-box').open = false;
  chooseModel(c.model);
  note('');
  render();
  draw();
  toEnd();

  if (!touch.matches) {
    prompt.focus();
  }
}


// elements of messages that are shown already stay

function render() {
  const run = runOf(talk.id);
  const all = talk.messages;
  const old = new Map(views.map(v => [v.message, v]));
  const send = byId('send');

  views = all.map((m, i) => {
    const v = old.get(m) ?? new Message(m, does);
    const live = run?.message === m;

    if (live) {
      run.view = v;
    }

    v.set(live, i === all.length - 1);

    return v;
  });

  const shown = new Set(views.map(v => v.element));

  for (const e of [...byId('thread').children]) {
    shown.has(e) || e.remove();
  }

  byId('thread').append(...[...shown].filter(e => !e.isConnected));
  byId('thread').setAttribute('aria-busy', run !== undefined);
  byId('empty').hidden = all.length > 0;
  byId('export').hidden = all.length === 0;
  byId('system-box').classList.toggle('set', talk.system !== '');

  send.title = run ? 'Stop' : 'Send';
  send.setAttribute('aria-label', send.title);
  send.classList.toggle('stop', run !== undefined);
  send.firstChild.firstChild.setAttribute('href', run ? '#i-stop' : '#i-send');
}


// ---- scrolling ----

function toEnd() {
  following = true;
  scroll.scrollTop = scroll.scrollHeight;
}


function follow() {
  if (following) {
    scroll.scrollTop = scroll.scrollHeight;
  }
}


// ---- asking ----

// goOn: the message that is continued

function answer(goOn) {
  const c = talk;

  c.model = byId('model').value;
  settings.model = c.model;
  saveSettings();

  const run = start(c, goOn, {
    follow,
    keep: () => keep(c),
    ended: (said, wait) => {
      if (c === talk) {
        render();
        follow();
        said && fail(said, wait);
      }
    }
  });

  if (run) {
    render();
    toEnd();
    keep(c);
    history.replaceState(null, '', '#' + c.id);
  }
}


// an error after the last message; wait: seconds that the server asks for

function fail(said, wait) {
  const view = new Message({ role: 'assistant', content: '' }, does);
  const help = (text, does) => button(text, () => {
    view.element.remove();
    does();
  });
  const again = () => {
    const last = talk.messages.at(-1);

    if (last.role === 'assistant') {
      cutBefore(last);
    }

    answer();
  };
  const retry = help('Try again', again);
  const tick = () => {
    retry.textContent = wait > 0 ? `Try again (${wait--} s)` : 'Try again';

    if (retry.isConnected && wait >= 0) {
      setTimeout(tick, 1000);
    }
  };

  if (wait) {
    said.text += ` The server asks to wait ${wait} s.`;
  }

  view.fail(said, said.does === 'retry' && retry,
    said.does === 'key'
      && help('Enter a key', async () => await askKey() && again()),
    said.does === 'settings'
      && help('Settings', () => openSettings(settingsDo)));
  byId('thread').append(view.element);
  tick();
  toEnd();
}


function send() {
  const content = prompt.value.trim();

  if (runOf(talk.id)) {
    abort(talk.id);
    return;
  }

  if (!content && !attached.files.length && !attached.images.length) {
    return;
  }

  const message = { role: 'user', content, ...attached };
  const why = tooLarge([...talk.messages, message]);

  if (why) {
    note(why);
    return;
  }

  talk.messages.push(message);
  attached = { files: [], images: [] };
  prompt.value = '';
  grow();
  drawAttached();
  note('');
  answer();
}


function cutBefore(message, ...more) {
  abort(talk.id);

  const all = talk.messages;

  all.splice(all.indexOf(message), Infinity, ...more);
}


// what a message's buttons do

const does = {
  focus: () => prompt.focus(),
  edited: (m, content) => {
    if (content.trim()) {
      cutBefore(m, { ...m, content: content.trim() });
      answer();
    }
  },
  again: m => {
    cutBefore(m);
    answer();
  },
  goOn: m => answer(m),
  results: all => {
    talk.messages.push(...all);
    answer();
  },
  cut: async m => {
    if (await ask({ title: 'Delete this message and what follows?',
        ok: 'Delete', danger: true }))
    {
      cutBefore(m);
      render();

      await (talk.messages.length ? keep(talk)
          : forget([talk.id]));
    }
  }
};


// ---- files ----

async function attach(chosen) {
  const read = await readFiles(chosen, takesImages(model()));

  attached.files.push(...read.files);
  attached.images.push(...read.images);
  drawAttached();
  note(read.problems.join('; '));
  prompt.focus();
}


function drawAttached() {
  const chip = (of, i, what) => el('span.chip', what,
    iconButton('close', 'Remove', () => {
      of.splice(i, 1);
      drawAttached();
    }));

  byId('attached').replaceChildren(
    ...attached.files.map((f, i) => chip(attached.files, i, f.name)),
    ...attached.images.map((src, i) => chip(attached.images, i,
      el('img', { src, alt: 'image' }))));
}


const settingsDo = {
  models: loadModels,
  newSystem: () => {
    if (!talk.messages.length) {
      talk.system = settings.system;
      byId('system').value = settings.system;
    }
  },
  exportAll: async () => saveAll(
    await Promise.all(list().map(h => load(h.id)))),
  importFile: () => byId('import-file').click(),
  deleteAll: () => forget(list().map(h => h.id))
};


async function importFile([file]) {
  try {
    const all = fromJson(await file.text());

    for (const c of all) {
      await save(c);
    }

    byId('settings').close();
    location.hash = all[0].id;
  } catch (e) {
    failed(e);
  }

  draw();
}


// ---- the page's own elements ----

function grow() {
  prompt.style.height = 'auto';
  prompt.style.height = Math.min(prompt.scrollHeight, innerHeight / 3) + 'px';
  follow();
}


function side(opened) {
  document.body.classList.toggle('side', opened);
  byId('side-open').setAttribute('aria-expanded', opened);
}


function editLast() {
  const view = views.findLast(v => v.message.role === 'user');

  if (view && !runOf(talk.id)) {
    view.edit();
  }
}


prompt.oninput = grow;
prompt.onkeydown = e => {
  if (e.key === 'Enter' && !e.shiftKey && !e.isComposing && !touch.matches) {
    e.preventDefault();

    if (!runOf(talk.id)) {
      send();
    }
  } else if (e.key === 'ArrowUp' && !prompt.value) {
    e.preventDefault();
    editLast();
  }
};
prompt.onpaste = e => {
  if (e.clipboardData.files.length) {
    e.preventDefault();
    attach([...e.clipboardData.files]);
  }
};

document.onkeydown = e => {
  if (e.key.toLowerCase() === 'k' && (e.ctrlKey || e.metaKey)) {
    e.preventDefault();
    newChat();
  } else if (e.key === 'Escape' && !document.querySelector('dialog[open]')) {
    side(false);
    abort(talk.id);
  }
};
document.ondragover = e => e.preventDefault();
document.ondrop = e => {
  e.preventDefault();
  attach([...e.dataTransfer.files]);
};

byId('composer').onsubmit = e => {
  e.preventDefault();
  send();
};
byId('attach').onclick = () => byId('file').click();

for (const [id, take] of [['file', attach], ['import-file', importFile]]) {
  byId(id).onchange = e => {
    take([...e.target.files]);
    e.target.value = '';
  };
}

scroll.onscroll = () => {
  following = scroll.scrollHeight - scroll.scrollTop
      - scroll.clientHeight < 60;
  byId('bottom').hidden = following;
};
byId('bottom').onclick = toEnd;

byId('new').onclick = newChat;
byId('side-open').onclick = () => side(true);
byId('side-close').onclick = byId('shade').onclick = () => side(false);
byId('settings-open').onclick = () => openSettings(settingsDo);
byId('admin-open').onclick = () => openAdmin(loadModels);
byId('export').onclick = () => saveText(talk);
byId('model').onchange = e => {
  chooseModel(e.target.value);
  watchHealth();
};
byId('system').onchange = e => {
  talk.system = e.target.value.trim();
  byId('system-box').classList.toggle('set', talk.system !== '');

  if (talk.messages.length) {
    keep(talk);
  }
};

onhashchange = onpopstate = open;
onresize = follow;
onfocus = () => refresh().then(draw, failed);
matchMedia('(prefers-color-scheme: dark)').onchange = applyTheme;

applyTheme();
watchSearch(() => draw());

const keeps = await openStore();

await open();
loadModels();

if (!keeps) {
  note('This browser keeps no conversations: they are gone when you close'
       + ' the page.');
}
