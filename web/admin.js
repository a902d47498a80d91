// The view of the server: models with what llm_admin can do to them, and
// figures of llm_metrics.  Shown where llm_admin answers.

import { explain, getJson, request } from './api.js';
import { ask, openDialog } from './dialogs.js';
import { byId, el } from './dom.js';

let timer = 0;
let before = null;                      // figures of the last look


// shows the button if this server lets us

export async function watchAdmin() {
  byId('admin-open').hidden = !await getJson('admin/models').catch(() => 0);
}


// changed: called when models have come or gone

export function openAdmin(changed) {
  const state = { said: el('p', { role: 'status' }), changed,
      figures: el('div.figures'), models: el('div') };
  const d = openDialog('admin', 'Server', el('div.content',
    state.figures, state.said, state.models, addition(state)));

  before = null;
  d.onclose = () => clearTimeout(timer);
  look(state);
}


async function look(state) {
  clearTimeout(timer);

  try {
    const [{ data }, text] = await Promise.all([
      getJson('admin/models'),
      request('metrics').then(r => r.text()).catch(() => '')]);

    drawFigures(state, text);
    draw(state.models, data.map(m => model(state, m)));
  } catch (e) {
    say(state, e);
  }

  if (byId('admin').open && state.models.isConnected) {
    timer = setTimeout(() => look(state), 2000);
  }
}


// not while a button is pressed; the one that had the focus has it again

function draw(parent, kids) {
  const label = document.activeElement?.getAttribute('aria-label');

  if (parent.matches(':active')) {
    return;
  }

  parent.replaceChildren(...kids);
  [...parent.querySelectorAll('button')].find(
    b => b.getAttribute('aria-label') === label)?.focus();
}


function say(state, e) {
  const { title, text } = explain(e);

  state.said.textContent = text || title;
}


async function act(state, method, path, body) {
  state.said.textContent = '';

  try {
    await request('admin/' + path, { method, body,
        headers: { 'X-LLM-Admin': '1' } });
  } catch (e) {
    say(state, e);
  }

  await look(state);
  state.changed();
}


// ---- models ----

const size = n => n >= 1e9 ? (n / 1e9).toFixed(1) + ' GB'
    : Math.round(n / 1e6) + ' MB';


function model(state, m) {
  const path = 'models/' + encodeURIComponent(m.id);
  const a = m.action;
  const button = (text, method, what, sure) => el('button', {
    type: 'button', 'aria-label': `${text} ${m.id}`,
    onclick: async () => {
      if (!sure || await ask({ title: `${text} ${m.id}?`, text: sure,
          ok: text, danger: true }))
      {
        act(state, method, path + what);
      }
    } }, text);
  const busy = m.state === 'loading' || a?.state === 'running';
  const out = ['stopped', 'failed', 'idle'].includes(m.state);

  return el('section.model',
    el('div.row', el('b', m.id),
       el('span.badge.' + m.state, {}, m.state),
       busy && el('progress', { value: m.progress ?? a.progress ?? 0,
           'aria-label': 'progress' }),
       el('span.space'),
       out && button('Load', 'POST', '/load'),
       m.state === 'ready' && button('Drain', 'POST', '/drain'),
       m.state === 'draining' && button('Resume', 'POST', '/resume'),
       !out && button('Unload', 'POST', '/unload',
           'Requests get an error until it is loaded again.'),
       m.added && button('Remove', 'DELETE', '', 'Its name is gone then;'
           + ' the file stays.')),
    el('small', [m.file, m.device, m.ctx && `context ${m.ctx}`,
      size(m.memory.weights), m.memory.kv_pages && 'cache '
      + `${Math.round(100 * m.memory.kv_used / m.memory.kv_pages)} %`,
      `${m.running} running`, `${m.waiting} waiting`]
      .filter(Boolean).join(' · ')),
    (m.reason || a?.state === 'failed')
      && el('small.bad', m.reason ?? `${a.command}: ${a.reason}`));
}


function addition(state) {
  const name = el('input', { placeholder: 'name', 'aria-label': 'Name',
      required: true });
  const file = el('input', { placeholder: 'file.gguf', required: true,
      'aria-label': 'File below models=' });

  return el('form.row', { onsubmit: e => {
    e.preventDefault();
    act(state, 'PUT', 'models/' + encodeURIComponent(name.value.trim()),
      { file: file.value.trim() });
  } }, name, file, el('button', 'Add or replace'));
}


// ---- figures ----

// sums of Prometheus' samples by name

function sums(text) {
  const out = {};

  for (const [, name, value] of text.matchAll(
    /^([a-z_:]+)(?:\{[^\n]*\})? ([\d.eE+-]+)$/gm))
  {
    out[name] = (out[name] ?? 0) + Number(value);
  }

  return out;
}


function drawFigures(state, text) {
  const now = sums(text);
  const of = name => now['vllm:' + name] ?? 0;
  const time = performance.now();
  const rate = name => before ? (of(name) - (before.sums['vllm:' + name]
      ?? 0))
          / (time - before.time) * 1000 : 0;
  const share = (a, b) => b ? Math.round(100 * a / b) + ' %' : '–';
  const n = v => v.toLocaleString('en', { maximumFractionDigits: 1 });
  const ttft = 'time_to_first_token_seconds_';

  state.figures.replaceChildren(...(text ? [
    ['running', of('num_requests_running')],
    ['waiting', of('num_requests_waiting')],
    ['tokens/s', n(Math.max(0, rate('generation_tokens_total')))],
    ['tokens written', n(of('generation_tokens_total'))],
    ['prompt from cache', share(of('prefix_cache_hits_total'),
        of('prefix_cache_queries_total'))],
    ['first token, mean', of(ttft + 'count')
      ? (of(ttft + 'sum') / of(ttft + 'count')).toFixed(2) + ' s' : '–'],
    now.llm_gpu_memory_total_bytes && ['memory of GPUs',
      share(now.llm_gpu_memory_used_bytes,
            now.llm_gpu_memory_total_bytes)]
  ] : []).filter(Boolean).map(([label, value]) => el('div',
    el('b', String(value)), label)));
  before = { sums: now, time };
}
