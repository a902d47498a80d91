// What the page remembers beside conversations, in localStorage: the key, the
// theme, the model, the system prompt of new chats and parameters.  A member
// that is empty is not sent, so the server's default holds.

const NAME = 'nginx-llm-settings';

const DEFAULTS = {
  key: '', theme: '', model: '', system: '', parameters: {}
};

// the parameters of docs/api.md that have a field; step, least, most

export const PARAMETERS = [
  ['temperature', 'any', 0, 2, 'Temperature', '0: always the likeliest'],
  ['top_p', 'any', 0, 1, 'Top p', 'share of the probability'],
  ['top_k', 1, -1, 1e6, 'Top k', 'likeliest tokens'],
  ['min_p', 'any', 0, 1, 'Min p', 'share of the likeliest'],
  ['max_tokens', 1, -1, 1e9, 'Longest answer', 'tokens'],
  ['thinking_budget_tokens', 1, -1, 1e9, 'Longest reasoning', 'tokens'],
  ['repetition_penalty', 'any', 0.01, 100, 'Repetition penalty', '1: off'],
  ['seed', 1, 0, 2 ** 53 - 1, 'Seed', 'random']
];

export const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high'];


export const settings = { ...DEFAULTS, ...read() };


function read() {
  try {
    const kept = JSON.parse(localStorage.getItem(NAME)) ?? {};

    return Object.fromEntries(Object.entries(kept).filter(
      ([name, v]) => typeof v === typeof DEFAULTS[name] && v !== null));
  } catch {
    return {};
  }
}


// false if the browser keeps nothing

export function saveSettings() {
  try {
    localStorage.setItem(NAME, JSON.stringify(settings));
    return true;
  } catch {
    return false;
  }
}


// Members of a request; throws an Error for JSON that is none.  "more" is last,
// so it can set what has no field here.

export function requestParameters() {
  const p = settings.parameters;
  const out = {};

  for (const [name] of PARAMETERS) {
    if (Number.isFinite(p[name])) {
      out[name] = p[name];
    }
  }

  if (p.reasoning_effort) {
    out.reasoning_effort = p.reasoning_effort;
  }

  if (p.stop) {
    out.stop = p.stop.split('\n').filter(Boolean);
  }

  return { ...out, ...moreParameters(p.more) };
}


export function moreParameters(text) {
  if (!text?.trim()) {
    return {};
  }

  let more;

  try {
    more = JSON.parse(text);
  } catch (e) {
    throw new Error('More parameters: this is not JSON: ' + e.message);
  }

  if (typeof more !== 'object' || more === null || Array.isArray(more)) {
    throw new Error('More parameters: this has to be an object, {…}');
  }

  return more;
}
