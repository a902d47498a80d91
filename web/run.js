// The answers that are being written, one for each conversation: what is sent,
// how the stream comes into the message, its figures, and waiting for a model
// that is being loaded.

import { ApiError, chat, explain, health } from './api.js';
import { fileText } from './files.js';
import { requestParameters } from './settings.js';
import { drawer } from './thread.js';

const runs = new Map();                 // by conversation


export const runOf = id => runs.get(id);

export const abort = id => runs.get(id)?.controller.abort();


// ---- what is sent ----

function sent(m) {
  if (m.role === 'tool') {
    return { role: 'tool', tool_call_id: m.id, content: m.content };
  }

  if (m.role === 'user') {
    const text = [m.content, ...(m.files ?? []).map(fileText)]
      .filter(Boolean).join('\n\n');

    return { role: 'user', content: m.images?.length ? [
      { type: 'text', text },
      ...m.images.map(url => ({ type: 'image_url', image_url: { url } }))
    ] : text };
  }

  return m.calls?.length ? {
    role: 'assistant', content: m.content,
    ...(m.reasoning ? { reasoning_content: m.reasoning } : {}),
    tool_calls: m.calls.map(c => ({ id: c.id, type: 'function',
      function: { name: c.name, arguments: c.arguments } }))
  } : { role: 'assistant', content: m.content };
}


function body(c) {
  const system = c.system ? [{ role: 'system', content: c.system }] : [];

  return {
    model: c.model || undefined,
    messages: [...system, ...c.messages.filter(
      m => m.role !== 'assistant' || m.content || m.calls?.length)
      .map(sent)],
    stream: true,
    stream_options: { include_usage: true, continuous_usage_stats: true },
    ...requestParameters()
  };
}


// ---- what comes ----

function take(run, chunk) {
  const { message: m, time } = run;
  const delta = chunk.choices?.[0]?.delta ?? {};
  const finish = chunk.choices?.[0]?.finish_reason;
  const thought = delta.reasoning_content ?? delta.reasoning;
  const now = performance.now();

  m.content += delta.content ?? '';
  m.reasoning += thought ?? '';

  for (const d of delta.tool_calls ?? []) {
    const call = m.calls[d.index ?? 0] ??= { id: '', name: '',
        arguments: '' };

    call.id = d.id ?? call.id;
    call.name += d.function?.name ?? '';
    call.arguments += d.function?.arguments ?? '';
  }

  if (delta.content || thought || delta.tool_calls) {
    time.first ??= now;
    time.last = now;
  }

  if (delta.content) {
    time.content ??= now;
  }

  m.finish = finish ?? m.finish;
  m.model = chunk.model ?? m.model;
  figures(m, time, chunk);
}


// times are the browser's, unless the server tells its own (timings)

function figures(m, time, { usage, timings }) {
  const f = m.figures;

  if (usage) {
    f.prompt = usage.prompt_tokens;
    f.completion = usage.completion_tokens;
    f.cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  }

  if (time.first) {
    f.first = (time.first - time.begun) / 1000;
    f.rate = timings?.predicted_per_second
        ?? (f.completion > 2 && time.last > time.first
            ? 1000 * (f.completion - 1) / (time.last - time.first)
            : 0);
  }

  if (m.reasoning && time.first) {
    f.thinking = ((time.content ?? time.last) - time.first) / 1000;
  }
}


// ---- a run ----

// Answers the conversation's last message, or goes on with its last answer.
// on: follow() after drawing, keep() to save, ended(said, wait) with an error
// or none.  Returns the run, or undefined if nothing can be sent.

export function start(c, goOn, on) {
  let request;

  abort(c.id);

  try {
    request = body(c);
  } catch (e) {
    on.ended({ title: e.message, does: 'settings' });
    return;
  }

  const message = goOn ?? { role: 'assistant', content: '', reasoning: '',
      calls: [], model: c.model };

  Object.assign(message, { finish: '', figures: {} });

  if (!goOn) {
    c.messages.push(message);
  }

  const run = { conversation: c, message, controller: new AbortController(),
      time: {}, view: null };

  runs.set(c.id, run);
  go(run, request, on);

  return run;
}


async function go(run, request, on) {
  const { message: m, conversation: c, controller: { signal } } = run;
  const draw = drawer(() => {
    if (m.finish === '' && run.view) {
      run.view.draw(true);
      on.follow();
    }
  });
  const timer = setInterval(() => showLoad(run, timer), 1000);
  let saved = performance.now();
  let said, wait;

  try {
    for (let again = true; again; ) {
      run.time = { begun: performance.now() };
      again = false;

      try {
        await chat(request, signal, chunk => {
          take(run, chunk);
          draw();

          if (performance.now() > saved + 2000) {
            saved = performance.now();
            on.keep();
          }
        });
      } catch (e) {
        if (!(e instanceof ApiError) || explain(e).does !== 'load') {
          throw e;
        }

        await pause(signal);
        again = true;
      }
    }

    m.finish ||= 'stop';
  } catch (e) {
    m.finish = e.name === 'AbortError' ? 'stopped' : 'error';

    if (m.finish === 'error') {
      said = explain(e);
      wait = e.retryAfter;
    }
  }

  clearInterval(timer);

  // a later run of this conversation may have taken its place

  if (runs.get(c.id) === run) {
    runs.delete(c.id);
  }

  // an answer without anything is none

  if (!m.content && !m.reasoning && !m.calls.length && m.finish !== 'stop'
    && c.messages.includes(m))
  {
    c.messages.splice(c.messages.indexOf(m), 1);
  }

  on.ended(said, wait);
  on.keep();
}


// while nothing has come: shows how far the load of a model is

async function showLoad(run, timer) {
  const all = run.time.first ? null : (await health())?.models;
  const of = all?.find(m => m.status === 'loading');

  if (!all) {
    clearInterval(timer);
  } else if (of && !run.time.first && !run.message.finish) {
    const bar = document.createElement('progress');

    bar.value = of.progress;
    run.view?.fail({ title: 'The model is being loaded',
      text: `${of.id}: ${Math.floor(100 * of.progress)} %` }, bar);
  }
}


const pause = signal => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, 1000);

  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    reject(signal.reason);
  }, { once: true });
});
