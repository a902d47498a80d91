// Conversations in the browser's IndexedDB.  Two tables: what a list shows of
// each conversation, and the conversation.  Where the browser keeps nothing
// (a private window), they live as long as the page.
//
// A conversation is { id, title, updated, model, system, messages };
// a message is one of
//
//     { role: "user", content, files: [{ name, text }], images: [data URL] }
//     { role: "assistant", content, reasoning, model, finish, figures,
//       calls: [{ id, name, arguments }] }
//     { role: "tool", id, name, content }

// bytes of all conversations, about
export const LIMIT = 64 * 1024 * 1024;

let db = null;
const memory = new Map();               // in place of the database
let heads = new Map();


const full = () => new Error('This browser keeps no more conversations: there'
  + ' is no room for this one. It stays until you close the page. Save or'
  + ' delete some.');


const done = r => new Promise((resolve, reject) => {
  r.onsuccess = r.oncomplete = () => resolve(r.result);
  r.onerror = r.onabort = () => reject(r.error);
});


export async function openStore() {
  try {
    const r = indexedDB.open('nginx-llm', 1);

    r.onupgradeneeded = () => {
      r.result.createObjectStore('heads', { keyPath: 'id' });
      r.result.createObjectStore('bodies', { keyPath: 'id' });
    };

    db = await done(r);
    await refresh();
  } catch {
    db = null;
  }

  return db !== null;
}


// reads what other windows have written

export async function refresh() {
  if (db) {
    const all = await done(db.transaction('heads').objectStore('heads')
        .getAll());

    const kept = [...memory.keys()].map(id => heads.get(id));

    heads = new Map([...all, ...kept].map(h => [h.id, h]));
  }
}


// the newest first

export const list = () => [...heads.values()].sort(
  (a, b) => b.updated - a.updated);

export const used = () => [...heads.values()].reduce((n, h) => n + h.size, 0);


export async function load(id) {
  if (memory.has(id)) {
    return structuredClone(memory.get(id));
  }

  return db && done(db.transaction('bodies').objectStore('bodies').get(id));
}


export async function save(conversation) {
  const c = structuredClone(conversation);
  const size = JSON.stringify(c).length;
  const head = { id: c.id, title: c.title, updated: c.updated, size };
  const before = heads.get(c.id)?.size ?? 0;

  heads.set(c.id, head);

  if (!db) {
    memory.set(c.id, c);
    return;
  }

  try {
    if (used() > LIMIT && size > before) {
      throw full();
    }

    const t = db.transaction(['heads', 'bodies'], 'readwrite');

    t.objectStore('heads').put(head);
    t.objectStore('bodies').put(c);
    await done(t);
    memory.delete(c.id);
  } catch (e) {
    memory.set(c.id, c);
    throw e.name === 'QuotaExceededError' ? full() : e;
  }
}


export async function remove(ids) {
  for (const id of ids) {
    heads.delete(id);
    memory.delete(id);
  }

  if (db) {
    const t = db.transaction(['heads', 'bodies'], 'readwrite');

    for (const id of ids) {
      t.objectStore('heads').delete(id);
      t.objectStore('bodies').delete(id);
    }

    await done(t);
  }
}


// ids of the conversations that have all words of a text

export async function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = new Set();

  for (const { id } of list()) {
    const c = await load(id);
    const all = [c?.title, ...(c?.messages ?? []).map(m => m.content)]
      .join('\n').toLowerCase();

    if (words.every(w => all.includes(w))) {
      found.add(id);
    }
  }

  return found;
}


// ---- conversations from files ----

const isText = v => typeof v === 'string';
const isNumber = v => Number.isFinite(v);

export const newId = () => Array.from(
  crypto.getRandomValues(new Uint8Array(12)),
  b => b.toString(16).padStart(2, '0')).join('');


// what is known of a message; null if it is none

function cleanMessage(m) {
  if (!m || !isText(m.content ?? '')) {
    return null;
  }

  const of = { role: m.role, content: m.content ?? '' };
  const objects = v => (Array.isArray(v) ? v : []).filter(
    o => o && typeof o === 'object');

  if (m.role === 'user') {
    of.files = objects(m.files).filter(f => isText(f.name)
        && isText(f.text))
      .map(({ name, text }) => ({ name, text }));
    of.images = (Array.isArray(m.images) ? m.images : []).filter(
      i => isText(i) && /^data:image\/(?:png|jpeg|gif|webp);/.test(i));
    return of;
  }

  if (m.role === 'tool') {
    return { ...of, id: String(m.id ?? m.tool_call_id ?? ''),
        name: String(m.name ?? '') };
  }

  if (m.role !== 'assistant') {
    return null;
  }

  of.reasoning = isText(m.reasoning) ? m.reasoning : '';
  of.calls = objects(m.calls).map(c => ({
    id: String(c.id ?? ''), name: String(c.name ?? ''),
    arguments: String(c.arguments ?? '') }));
  of.model = isText(m.model) ? m.model : '';
  of.finish = isText(m.finish) ? m.finish : 'stop';

  if (m.figures && typeof m.figures === 'object') {
    of.figures = Object.fromEntries(Object.entries(m.figures).filter(
      ([, v]) => isNumber(v)));
  }

  return of;
}


// a conversation with what is known of it alone, and an id of its own; null if
// it is none

export function cleanConversation(c) {
  if (!c || !Array.isArray(c.messages)) {
    return null;
  }

  const messages = c.messages.map(cleanMessage).filter(Boolean);
  const system = c.messages.find(m => m?.role === 'system')?.content;

  return messages.length ? {
    id: newId(),
    title: (isText(c.title) && c.title.slice(0, 200)) || titleOf(messages),
    updated: isNumber(c.updated) ? c.updated : Date.now(),
    model: isText(c.model) ? c.model : '',
    system: isText(c.system) ? c.system : isText(system) ? system : '',
    messages
  } : null;
}


export function titleOf(messages) {
  const first = messages.find(m => m.role === 'user');
  const text = (first?.content || first?.files?.[0]?.name || '')
    .trim().split('\n')[0];

  return text.length > 60 ? text.slice(0, 57).trimEnd() + '…'
      : text || 'New chat';
}
