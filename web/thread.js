// The messages of a conversation as elements.  An answer that is being written
// is drawn once a frame at most, and less often if drawing takes long.

import { button, copyButton, el, icon, iconButton, show } from './dom.js';
import { parse } from './markdown.js';


const number = (n, digits = 0) => n.toLocaleString('en', {
  maximumFractionDigits: digits });

const seconds = s => number(s, s < 10 ? 2 : 0) + ' s';


// tokens per second, time to the first token and the rest, in words

function figuresText({ figures: f, model, finish }) {
  return [
    f?.rate > 0 && `${number(f.rate, f.rate < 100 ? 1 : 0)} tokens/s`,
    f?.first > 0 && `first token ${seconds(f.first)}`,
    f?.completion && `${number(f.completion)} tokens`,
    f?.prompt && `prompt ${number(f.prompt)}`
      + (f.cached ? ` (${number(f.cached)} cached)` : ''),
    finish && model
  ].filter(Boolean).join(' · ');
}


const FINISHED = {
  length: 'The answer was cut: it reached its longest length.',
  stopped: 'You stopped this answer.'
};

const NAMES = { user: 'You', tool: 'Result', assistant: 'Answer' };


export class Message {

  // does: what buttons do, see chat.js

  constructor(message, does) {
    this.message = message;
    this.does = does;
    this.element = el('article.message.' + message.role,
        { 'aria-label': NAMES[message.role] });
    this[message.role]();
  }

  // ---- a user's turn ----

  user() {
    const m = this.message;

    this.element.replaceChildren(
      el('div.body',
         (m.images ?? []).map(src => el('img', { src, alt: 'an image' })),
         (m.files ?? []).map(f => el('details.file',
           el('summary', icon('clip'), f.name),
           el('pre', { tabindex: 0 }, f.text))),
         m.content && el('div.words', m.content)),
      el('footer',
         copyButton('Copy', () => m.content),
         iconButton('edit', 'Edit', () => this.edit()),
         iconButton('bin', 'Delete from here', () => this.does.cut(m))));
  }

  edit() {
    const m = this.message;
    const area = el('textarea', { value: m.content, 'aria-label': 'Edit',
      rows: Math.min(m.content.split('\n').length + 1, 12) });
    const save = () => this.does.edited(m, area.value);
    const cancel = () => {
      this.user();
      this.does.focus();
    };

    area.onkeydown = e => {
      if (e.key === 'Escape') {
        e.stopPropagation();
        cancel();
      } else if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
        e.preventDefault();
        save();
      }
    };

    this.element.replaceChildren(el('div.editor', area,
      el('div.row', button('Cancel', cancel),
         button('Send', save, '.primary'))));
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }

  // ---- a tool's result ----

  tool() {
    const { name, content } = this.message;

    this.element.append(el('details.call',
      el('summary', 'Result of ', el('b', name || 'a tool')),
      el('pre', { tabindex: 0 }, content)));
  }

  // ---- an answer ----

  assistant() {
    this.thought = el('div.text');
    this.summary = el('summary');
    this.reasoning = el('details.reasoning', { hidden: true,
      ontoggle: () => this.draw(this.live) }, this.summary, this.thought);
    this.text = el('div.text');
    this.calls = el('div');
    this.error = el('div');
    this.foot = el('footer');
    this.element.append(this.reasoning, this.text, this.calls, this.error,
        this.foot);
  }

  draw(live) {
    const m = this.message;
    const nothing = !m.content && !m.reasoning && !m.calls?.length;

    this.live = live;
    this.element.classList.toggle('live', live);
    this.element.classList.toggle('wait', live && nothing);

    this.reasoning.hidden = !m.reasoning;
    this.summary.textContent = live && !m.content ? 'Thinking…'
      : 'Reasoning' + (m.figures?.thinking
        ? ', ' + seconds(m.figures.thinking) : '');

    // what is folded is not drawn

    if (this.reasoning.open) {
      show(this.thought, parse(m.reasoning, live && !m.content));
    }

    show(this.text, parse(m.content, live));
    this.drawCalls(live);

    if (live) {
      this.error.replaceChildren();
      this.foot.replaceChildren(el('span.figures', figuresText(m)));
    }
  }

  drawCalls(live) {
    const calls = this.message.calls ?? [];
    const drawn = JSON.stringify([calls, live]);

    if (drawn !== this.drawn) {
      this.drawn = drawn;
      this.calls.replaceChildren(...calls.map(c => el('details.call',
        { open: true }, el('summary', 'Calls ', el('b', c.name)),
        el('pre', { tabindex: 0 }, live ? c.arguments
            : pretty(c.arguments)))));
    }
  }

  // live: it is being written; last: it is the conversation's last message

  set(live, last) {
    const m = this.message;

    if (m.role !== 'assistant' || this.is === `${live} ${last}`) {
      return;
    }

    this.is = `${live} ${last}`;

    if (!live) {
      m.finish ||= 'stopped';
    }

    this.draw(live);
    this.error.replaceChildren();

    if (live) {
      return;
    }

    const cut = ['stopped', 'length', 'error'].includes(m.finish);

    this.foot.replaceChildren(...[
      copyButton('Copy', () => m.content),
      last && iconButton('redo', 'Answer again', () => this.does.again(m)),
      last && cut && m.content && !m.calls?.length
        && iconButton('go', 'Go on', () => this.does.goOn(m)),
      el('span.figures', figuresText(m))].filter(Boolean));

    if (FINISHED[m.finish]) {
      this.error.append(el('p.finished', FINISHED[m.finish]));
    }

    if (last && m.calls?.length && !cut) {
      this.error.append(this.results(m.calls));
    }
  }

  // asks for what the tools that were called return

  results(calls) {
    const areas = calls.map(c => el('textarea', { rows: 2,
      placeholder: `Result of ${c.name}`,
      'aria-label': `Result of ${c.name}` }));

    return el('div.results',
      el('p', 'This page runs no tools: you may answer for them.'), areas,
      button('Send the results', () => this.does.results(calls.map((c, i) => ({
        role: 'tool', id: c.id, name: c.name, content: areas[i].value })))));
  }

  // said: { title, text }; kids: buttons and the like

  fail(said, ...kids) {
    this.element.classList.remove('live', 'wait');
    this.error.replaceChildren(el('div.error', { role: 'alert' },
      el('b', said.title), said.text && el('p', said.text),
      el('div.row', kids)));
  }
}


function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}


// a function that asks for drawing, which takes at most a quarter of the time

export function drawer(draw) {
  let asked = false;
  let free = 0;

  return () => {
    if (asked) {
      return;
    }

    asked = true;
    setTimeout(() => requestAnimationFrame(() => {
      const began = performance.now();

      asked = false;
      draw();
      free = 4 * performance.now() - 3 * began;
    }), free - performance.now());
  };
}
