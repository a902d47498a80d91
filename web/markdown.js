// Markdown to a tree of plain objects, which dom.js makes elements of.  Nothing
// here or there makes HTML of text: a node is a string, or
//
//     { tag, cls, href, start, lang, kids }
//
// with a tag of the few below, so raw HTML in an answer stays text.  A link
// has an address only if that is http, https or mailto.  Images are links: the
// page sends no request to another server.
//
// parse(text, true) is for a text that is still being written: what may yet
// become a mark is held back, and what is open is taken as closed at the end.
//
// Not as in CommonMark: a line break is one, a nested list needs two spaces,
// and there are no indented code blocks, reference links and underlined
// headings, which models do not mean when they write them.

import { inline, node } from './inline.js';

// deeper quotes and lists are text
const DEPTH = 16;

const FENCE = /^ *(`{3,}|~{3,}) *([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?: +(.*))?$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}>/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( +)(.*)|)$/;
const DELIMITERS = /^ *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$/;


export function parse(text, open = false) {
  const lines = text.replace(/\r\n?/g, '\n').replace(/\t/g, '    ')
    .replace(/\0/g, '\ufffd').split('\n');

  return blocks(open ? settled(lines) : lines, open, 0);
}


// without what stands at the end of an unfinished text and may become a mark

function settled(lines) {
  const last = lines.at(-1);
  const fence = openFence(lines.slice(0, -1));

  if (fence) {
    return /^ *(`+|~+) *$/.test(last) ? lines.slice(0, -1) : lines;
  }

  return /^[\s>]*([-*_=`~#>+|]+|\d{1,9}[.)]?)\s*$/.test(last)
    ? lines.slice(0, -1) : lines;
}


// the fence that is open after these lines, of a list's item or a quote, too

function openFence(lines) {
  let fence = null;

  for (const line of lines) {
    const bare = line.replace(/^[\s>]*(?:(?:[-*+]|\d{1,9}[.)]) +)?/, '');
    const m = FENCE.exec(fence ? line.replace(/^[\s>]*/, '') : bare);

    if (fence) {
      fence = closes(m, fence) ? null : fence;
    } else if (m) {
      fence = m[1];
    }
  }

  return fence;
}

const closes = (m, fence) => m && !m[2] && m[1][0] === fence[0]
    && m[1].length >= fence.length;


// ---- blocks ----

function starts(line) {
  const item = ITEM.exec(line);

  return FENCE.test(line) || HEADING.test(line) || RULE.test(line)
    || QUOTE.test(line)
    || (item && item[4] && (!/^\d/.test(item[2]) || /^1\D/.test(item[2])));
}


// open: the last of these blocks is still being written

function blocks(lines, open, depth) {
  const out = [];
  let i = 0;

  while (i < lines.length) {
    if (!lines[i].trim()) {
      i++;
      continue;
    }

    const read = depth > DEPTH ? paragraph
      : FENCE.test(lines[i]) ? code
      : HEADING.test(lines[i]) ? heading
      : RULE.test(lines[i]) ? rule
      : QUOTE.test(lines[i]) ? quote
      : ITEM.test(lines[i]) ? list
      : isTable(lines, i, open) ? table : paragraph;

    i = read(lines, i, out, open, depth);
  }

  return out;
}


function code(lines, i, out) {
  const indent = /^ */.exec(lines[i])[0].length;
  const [, fence, info] = FENCE.exec(lines[i]);
  const text = [];
  let end = false;

  for (i++; i < lines.length && !end; i++) {
    end = closes(FENCE.exec(lines[i]), fence);
    end || text.push(lines[i].replace(new RegExp(`^ {0,${indent}}`), ''));
  }

  if (!end && text.at(-1) === '') {
    text.pop();
  }

  out.push(node('code-block', [text.join('\n')],
    { lang: /^[\w+#.-]{0,30}/.exec(info.trim())[0] }));

  return i;
}


function heading(lines, i, out, open) {
  const [, marks, rest] = HEADING.exec(lines[i]);
  const words = (rest ?? '').trim().split(' ');

  // marks at the end are decoration

  if (/^#+$/.test(words.at(-1))) {
    words.pop();
  }

  out.push(node('h' + marks.length,
      inline(words.join(' ').trim(),
          open && i === lines.length - 1)));

  return i + 1;
}


function rule(lines, i, out) {
  out.push(node('hr', []));

  return i + 1;
}


function quote(lines, i, out, open, depth) {
  const inner = [];

  while (i < lines.length && lines[i].trim()
      && (QUOTE.test(lines[i])
        || (inner.at(-1)?.trim() && !starts(lines[i]))))
  {
    inner.push(lines[i++].replace(/^ {0,3}> ?/, ''));
  }

  out.push(node('blockquote', blocks(inner, open && i === lines.length,
      depth + 1)));

  return i;
}


function list(lines, i, out, open, depth) {
  const first = ITEM.exec(lines[i]);
  const base = first[1].length;
  const ordered = /^\d/.test(first[2]);
  const kind = first[2].at(-1);
  const items = [];
  let loose = false;

  while (i < lines.length) {
    const m = ITEM.exec(lines[i]);

    if (!m || m[1].length > base + 1 || m[2].at(-1) !== kind
      || RULE.test(lines[i]))
    {
      break;
    }

    const inner = [m[4] ?? ''];
    const width = m[1].length + m[2].length
        + Math.min((m[3] ?? ' ').length, 4);

    i = item(lines, i + 1, base, width, inner);

    // a blank line between two items, or two blocks of an item

    const after = inner.length;

    while (inner.length > 1 && !inner.at(-1).trim()) {
      inner.pop();
    }

    const next = i < lines.length && ITEM.exec(lines[i]);

    loose ||= inner.length < after && next && next[1].length <= base + 1
        && next[2].at(-1) === kind;

    items.push({ inner, last: i === lines.length });
  }

  const kids = items.map(({ inner, last }) => {
    const task = /^\[([ xX])\] +(.*)/.exec(inner[0]);

    if (task) {
      inner[0] = (task[1] === ' ' ? '\u2610 ' : '\u2611 ') + task[2];
    }

    const of = blocks(inner, open && last, depth + 1);

    return node('li', loose ? of : of.flatMap(
      (b, n) => b.tag === 'p' ? [...(n ? [node('br', [])] : []),
          ...b.kids] : [b]));
  });

  out.push(node(ordered ? 'ol' : 'ul', kids,
      ordered ? { start: parseInt(first[2], 10) } : {}));

  return i;
}


// reads the lines of an item after its first one

function item(lines, i, base, width, inner) {
  let fence = FENCE.exec(inner[0])?.[1];

  for (; i < lines.length; i++) {
    const line = lines[i];
    const indent = line.trim() ? /^ */.exec(line)[0].length : Infinity;

    if (indent === Infinity) {
      if (!inner.at(-1).trim() && inner.length === 1) {
        break;
      }

      inner.push('');
      continue;
    }

    if (fence) {
      if (indent <= base && !closes(FENCE.exec(line), fence)) {
        break;
      }
    } else if (indent < Math.min(width, base + 2)
        && (ITEM.test(line) || starts(line)
            || !inner.at(-1).trim()))
    {
      break;
    }

    const rest = line.slice(Math.min(indent, width));
    const m = FENCE.exec(rest);

    fence = fence ? (closes(m, fence) ? null : fence) : m?.[1];
    inner.push(rest);
  }

  return i;
}


// ---- tables ----

function cells(line) {
  const row = line.trim().replace(/^\|/, '').replace(/\|$/, (m, at, all) =>
    all[at - 1] === '\\' ? m : '');
  const out = [''];
  let ticks = false;

  for (let i = 0; i < row.length; i++) {
    if (row[i] === '\\' && row[i + 1] === '|') {
      out[out.length - 1] += '|';
      i++;
    } else if (row[i] === '|' && !ticks) {
      out.push('');
    } else {
      ticks = row[i] === '`' ? !ticks && row.indexOf('`', i + 1) > 0
          : ticks;
      out[out.length - 1] += row[i];
    }
  }

  return out.map(c => c.trim());
}


function isTable(lines, i, open) {
  if (!lines[i].includes('|')) {
    return false;
  }

  const next = lines[i + 1];

  // a first line that begins like a table's becomes one

  if (open && /^ *\|/.test(lines[i])
    && (next === undefined
      || (i + 2 === lines.length && /^ *\|?[-:| ]*$/.test(next))))
  {
    return true;
  }

  return next !== undefined && next.includes('-') && DELIMITERS.test(next)
    && cells(next).length === cells(lines[i]).length;
}


function table(lines, i, out, open) {
  const head = cells(lines[i]);
  const align = cells(lines[i + 1] ?? '').map(
    c => /^:-+:$/.test(c) ? 'center' : /-:$/.test(c) ? 'right' : '');
  const row = (tag, line, last) => node('tr', head.map((_, n) =>
    node(tag, inline(line[n] ?? '', last && n === line.length - 1),
         align[n] ? { cls: align[n] } : {})));
  const rows = [];

  for (i += 2; i < lines.length && lines[i].trim() && !starts(lines[i]); i++)
  {
    rows.push(row('td', cells(lines[i]),
        open && i === lines.length - 1));
  }

  const kids = [node('thead', [row('th', head, open && i > lines.length)])];

  if (rows.length) {
    kids.push(node('tbody', rows));
  }

  out.push(node('div', [node('table', kids)], { cls: 'scroll' }));

  return Math.min(i, lines.length);
}


function paragraph(lines, i, out, open, depth) {
  const text = [];

  do {
    text.push(lines[i++].trim());
  } while (i < lines.length && lines[i].trim()
      && (depth > DEPTH || (!starts(lines[i])
          && !isTable(lines, i, false))));

  out.push(node('p', inline(text.join('\n'), open && i === lines.length)));

  return i;
}
