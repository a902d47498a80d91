// What stands within a line of Markdown: emphasis, code, links, formulas (shown
// as they are written).  See markdown.js.

export const node = (tag, kids, more) => ({ tag, kids, ...more });

const PUNCTUATION = /[!-/:-@[-`{-~]/;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: '\u00a0',
    '#39': "'" };
const URL_TEXT = /https?:\/\/[^\s<>"'`\u0000-\u001f]{1,2000}/y;


// a link's address, or null

export function address(url) {
  return /^(?:https?:\/\/|mailto:)[^\s\u0000-\u001f\\]+$/i.test(url)
    ? url : null;
}


function link(url, kids) {
  const href = address(url);

  return href ? [node('a', kids, { href })] : kids;
}


// the place of the bracket that closes each one

function brackets(text) {
  const stack = [];
  const close = new Map();

  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') {
      i++;
    } else if (text[i] === '[') {
      stack.push(i);
    } else if (text[i] === ']' && stack.length) {
      close.set(stack.pop(), i);
    }
  }

  return close;
}


export function inline(text, open = false, depth = 0) {
  const s = {
    text: open ? settled(text) : text,
    open, depth, parts: [], buffer: '',
    close: brackets(text), unclosed: new Set()
  };

  for (s.i = 0; s.i < s.text.length; ) {
    const c = s.text[s.i];

    if (!(c in MARKS && MARKS[c](s))) {
      s.buffer += c;
      s.i++;
    }
  }

  flush(s);

  return emphasis(s.parts, open);
}


// without the marks at its end

function settled(text) {
  let end = text.length;

  while (end && '*_~`'.includes(text[end - 1])) {
    end--;
  }

  return text.slice(0, end);
}


function flush(s) {
  if (s.buffer) {
    s.parts.push(s.buffer);
    s.buffer = '';
  }
}


function push(s, to, ...nodes) {
  flush(s);
  s.parts.push(...nodes);
  s.i = to;

  return true;
}


// each returns true if it has read something at s.i

const MARKS = {

  '\n': s => {
    s.buffer = s.buffer.trimEnd();

    return push(s, s.i + 1, node('br', []));
  },

  '\\': s => {
    const next = s.text[s.i + 1];
    const end = next === '(' ? '\\)' : next === '[' ? '\\]' : null;

    if (end && !s.unclosed.has(end)) {
      const at = s.text.indexOf(end, s.i + 2);

      if (at > 0 || s.open) {
        return math(s, s.i + 2, at);
      }

      s.unclosed.add(end);
    }

    if (next === '\n') {
      s.i++;
      return false;
    }

    if (next && PUNCTUATION.test(next)) {
      s.buffer += next;
      s.i += 2;
      return true;
    }

    return false;
  },

  '$': s => {
    if (s.text[s.i + 1] !== '$') {
      return false;
    }

    const at = s.text.indexOf('$$', s.i + 2);

    return at > 0 && math(s, s.i + 2, at);
  },

  '`': s => {
    const run = /`+/y;
    run.lastIndex = s.i;
    const ticks = run.exec(s.text)[0];
    const from = s.i + ticks.length;

    if (!s.unclosed.has(ticks.length)) {
      for (let at = from; (at = s.text.indexOf(ticks, at)) >= 0; ) {
        run.lastIndex = at;
        const there = run.exec(s.text)[0].length;

        if (there === ticks.length) {
          return push(s, at + there, codeSpan(s.text.slice(from,
              at)));
        }

        at += there;
      }

      s.unclosed.add(ticks.length);

      if (s.open && from < s.text.length) {
        return push(s, s.text.length, codeSpan(s.text.slice(from)));
      }
    }

    s.buffer += ticks;
    s.i = from;

    return true;
  },

  '<': s => {
    const m = /<(?:br *\/?|((?:https?:\/\/|mailto:)[^\s<>]+))>/iy;
    m.lastIndex = s.i;
    const found = m.exec(s.text);

    return found !== null && push(s, m.lastIndex, ...(found[1]
      ? link(found[1], [found[1].replace(/^mailto:/i, '')])
      : [node('br', [])]));
  },

  '&': s => {
    const m = /&(amp|lt|gt|quot|nbsp|#39);/y;
    m.lastIndex = s.i;
    const found = m.exec(s.text);

    if (!found) {
      return false;
    }

    s.buffer += ENTITIES[found[1]];
    s.i = m.lastIndex;

    return true;
  },

  '!': s => s.text[s.i + 1] === '[' && bracket(s, s.i + 1, 'image'),

  '[': s => bracket(s, s.i, ''),

  'h': s => {
    if (s.i && /[\w/]/.test(s.text[s.i - 1])) {
      return false;
    }

    URL_TEXT.lastIndex = s.i;
    let url = URL_TEXT.exec(s.text)?.[0];

    if (!url) {
      return false;
    }

    url = url.replace(/[.,:;!?*_~\]]+$/, '');

    while (url.endsWith(')')
        && url.split(')').length > url.split('(').length)
    {
      url = url.slice(0, -1).replace(/[.,:;!?*_~\]]+$/, '');
    }

    return push(s, s.i + url.length, ...link(url, [url]));
  },

  '*': delimiter, '_': delimiter,

  '~': s => s.text[s.i + 1] === '~' && delimiter(s)
};


function math(s, from, to) {
  const end = to < 0 ? s.text.length : to;

  return push(s, Math.min(end + 2, s.text.length),
      node('code', [s.text.slice(from, end).trim()],
          { cls: 'math' }));
}


function codeSpan(text) {
  text = text.replace(/\n/g, ' ');

  return node('code', [/^ .*\S.* $/.test(text) ? text.slice(1, -1) : text]);
}


// [text](address "title"), at is the place of the bracket

function bracket(s, at, cls) {
  const end = s.close.get(at);
  const kids = () => inline(s.text.slice(at + 1, end), false, s.depth + 1);

  // of an unfinished text: perhaps a link, which is shown without marks

  if (s.open && (end === undefined ? /^.{1,200}$/.test(s.text.slice(at))
      : /^(?:\(\S*)?$/.test(s.text.slice(end + 1)) && !s.text.endsWith(')')))
  {
    return push(s, s.text.length, ...kids());
  }

  if (end === undefined || s.text[end + 1] !== '(' || s.depth > 4) {
    return false;
  }

  const m = /\( *(?:<([^<>\n]*)>|((?:[^\s()]|\([^\s()]*\))*))(?:\s+(?:"[^"]*"|'[^']*'))? *\)/y;
  m.lastIndex = end + 1;
  const found = m.exec(s.text);

  if (!found) {
    return false;
  }

  const url = found[1] ?? found[2];
  const text = cls && end === at + 1 ? [url] : kids();

  return push(s, m.lastIndex, ...link(url, text));
}


// ---- emphasis, as CommonMark's rules say ----

function delimiter(s) {
  const c = s.text[s.i];
  let to = s.i;

  while (s.text[to] === c) {
    to++;
  }

  const before = s.text[s.i - 1] ?? ' ';
  const after = s.text[to] ?? ' ';
  const space = x => /\s/.test(x);
  const mark = x => PUNCTUATION.test(x) || /\p{P}|\p{S}/u.test(x);
  const left = !space(after)
      && (!mark(after) || space(before) || mark(before));
  const right = !space(before)
      && (!mark(before) || space(after) || mark(after));
  const word = c === '_';

  return push(s, to, {
    mark: c, n: to - s.i, size: to - s.i,
    opens: left && (!word || !right || mark(before)),
    closes: right && (!word || !left || mark(after)),
    apart: space(before) || mark(before)
  });
}


const TAGS = { 1: 'em', 2: 'strong' };

function emphasis(parts, open) {
  const stack = [];                   // places in out of what may be closed
  const out = [];

  const close = (from, used, tag) => {
    const d = out[from];
    const kids = plain(out.splice(from + 1));

    d.n -= used;
    out.push(node(tag, kids));

    while (stack.length && stack.at(-1) > from) {
      stack.pop();
    }

    if (d.n === 0) {
      stack.pop();
      out.splice(from, 1);
    }
  };

  // per kind of mark: up to this part nothing is closed by it

  const bottom = {};

  for (const [at, p] of parts.entries()) {
    if (!p.mark) {
      out.push(p);
      continue;
    }

    p.at = at;

    while (p.closes && p.n) {
      const key = p.mark + p.opens + p.size % 3;
      const least = bottom[key] ?? -1;
      let k = stack.length - 1;

      while (k >= 0 && out[stack[k]].at > least
          && !pairs(out[stack[k]], p))
      {
        k--;
      }

      if (k < 0 || out[stack[k]].at <= least) {
        bottom[key] = at - 1;
        break;
      }

      const d = out[stack[k]];
      const used = p.mark === '~' ? 2 : Math.min(2, p.n, d.n);

      close(stack[k], used, p.mark === '~' ? 'del' : TAGS[used]);
      p.n -= used;
    }

    if (p.n) {
      if (p.opens) {
        stack.push(out.length);
      }

      out.push(p);
    }
  }

  while (open && stack.length) {
    const d = out[stack.at(-1)];
    const used = d.mark === '~' ? 2 : Math.min(2, d.n);

    if (stack.at(-1) === out.length - 1 || (used === 1 && !d.apart)) {
      stack.pop();
    } else {
      close(stack.at(-1), used, d.mark === '~' ? 'del' : TAGS[used]);
    }
  }

  return plain(out);
}


function pairs(d, p) {
  if (d.mark !== p.mark || (p.mark === '~' && (d.n < 2 || p.n < 2))) {
    return false;
  }

  return !((d.closes || p.opens) && (d.size + p.size) % 3 === 0
      && (d.size % 3 || p.size % 3));
}


// marks that nothing has closed are text; texts side by side are one

function plain(parts) {
  const out = [];

  for (const p of parts) {
    const text = p.mark ? p.mark.repeat(p.n) : p;

    if (typeof text === 'string' && typeof out.at(-1) === 'string') {
      out[out.length - 1] += text;
    } else {
      out.push(text);
    }
  }

  return out;
}
