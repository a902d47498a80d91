// Requests to the server that this page is from: models, health, figures, chats
// as streams; and errors in words for a person.

import { settings } from './settings.js';

// "v1" and the others are siblings of the page
const url = path => new URL(path, document.baseURI);


export class ApiError extends Error {
  constructor(status, body, retryAfter) {
    const e = body?.error ?? {};

    super(typeof e.message === 'string' ? e.message : '');
    this.status = status;
    this.code = e.code ?? e.type ?? '';
    this.retryAfter = retryAfter;
  }
}


export async function request(path, { method = 'GET', body, signal,
    headers = {} } = {}) {
  const key = settings.key.trim();
  let response;

  if (key) {
    headers = { ...headers, Authorization: 'Bearer ' + key };
  }

  if (body !== undefined) {
    headers = { ...headers, 'Content-Type': 'application/json' };
    body = JSON.stringify(body);
  }

  try {
    response = await fetch(url(path), { method, body, signal, headers,
        cache: 'no-store' });
  } catch (e) {
    throw e.name === 'AbortError' ? e : new ApiError(0);
  }

  // /health says why it is not well by a 503 with a body

  if (!response.ok && !(path === 'health' && response.status === 503)) {
    throw new ApiError(response.status,
        await response.json().catch(() => null),
        Number(response.headers.get('Retry-After')) || 0);
  }

  return response;
}


export const getJson = async (path, options) =>
  (await request(path, options)).json();


// ---- models ----

export const models = async () => (await getJson('v1/models')).data ?? [];


// does a model take images?  Said by the names that servers have for it.

export function takesImages(model) {
  const of = [model?.architecture?.input_modalities,
      model?.capabilities];

  return of.some(o => Array.isArray(o)
    && o.some(c => /^(?:image|vision|multimodal)$/.test(c)));
}


// null where there is no llm_health, or it may not be asked

export async function health() {
  try {
    return await getJson('health');
  } catch {
    return null;
  }
}


// ---- chats ----

// Sends a chat, and calls take() with each chunk of its stream.  Ends with the
// stream; throws ApiError, or AbortError by the signal.

export async function chat(body, signal, take) {
  const response = await request('v1/chat/completions',
      { method: 'POST', body, signal });
  let ended = false;

  for await (const data of events(response.body)) {
    if (data === '[DONE]') {
      ended = true;
      continue;
    }

    const chunk = JSON.parse(data);

    if (chunk.error) {
      throw new ApiError(chunk.error.status ?? 500, chunk);
    }

    take(chunk);
  }

  if (!ended) {
    throw new ApiError(0, { error: { code: 'cut', message: '' } });
  }
}


// the data of server-sent events

async function* events(stream) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = '';

  for (;;) {
    const { done, value } = await reader.read().catch(e => {
      throw e.name === 'AbortError' ? e
        : new ApiError(0, { error: { code: 'cut', message: '' } });
    });

    rest += done ? '' : decoder.decode(value, { stream: true });

    let end;

    while ((end = /\r?\n\r?\n/.exec(rest))) {
      const lines = rest.slice(0, end.index).split(/\r?\n/);

      rest = rest.slice(end.index + end[0].length);

      const data = lines.filter(l => l.startsWith('data:'))
        .map(l => l.slice(5).trimStart()).join('\n');

      if (data) {
        yield data;
      }
    }

    if (done) {
      return;
    }
  }
}


// ---- errors ----

// What is said of an error, { title, text, does }: does is what helps, "key" (a
// key has to be entered), "retry", "load" (a model is being loaded) or nothing.

const SAID = {
  0: ['The server does not answer', 'retry',
      'Is it running, and can this computer reach it?'],
  401: ['This server asks for an API key', 'key'],
  403: ['This is not allowed', 'key'],
  404: ['There is no such model here'],
  413: ['The message is too large for the server'],
  429: ['Too many requests', 'retry'],
  503: ['The model cannot answer now', 'retry'],
  504: ['The answer took too long', 'retry']
};

const CODES = {
  cut: ['The connection was lost', 'retry',
        'The answer may be incomplete.'],
  context_length_exceeded: ['This conversation is too long for the model', '',
    'Start a new chat, or edit an earlier'
      + ' message to make it shorter.'],
  queue_full: ['The server is busy', 'retry'],
  overloaded: ['The server is busy', 'retry'],
  model_loading: ['The model is being loaded', 'load'],
  model_idle: ['The model is being loaded', 'load'],
  not_ready: ['The model is being loaded', 'load'],
  engine_restarting: ['The model is being loaded', 'load'],
  model_stopped: ['The model has been unloaded', 'retry'],
  model_draining: ['The model takes no new requests', 'retry'],
  model_failed: ['The model could not be loaded', 'retry']
};


export function explain(e) {
  if (!(e instanceof ApiError)) {
    return { title: 'Something went wrong in this page', does: 'retry',
        text: e.message };
  }

  const [title, does, more] = CODES[e.code] ?? SAID[e.status]
    ?? (e.status < 500 ? ['The server refused the request']
        : ['The server could not answer', 'retry']);

  return { title, does, text: [e.message, more].filter(Boolean).join(' ') };
}
