// Files: what a message takes with it, and conversations as JSON or Markdown.

import { cleanConversation } from './store.js';

// bytes of one file
const LARGEST_TEXT = 1024 * 1024;
const LARGEST_IMAGE = 4 * 1024 * 1024;

// bytes of messages, whose images are sent each time: client_max_body_size is 8m
const MOST = 7e6;

export const tooLarge = messages =>
  new Blob([JSON.stringify(messages)]).size > MOST
    && 'All of a chat is sent with each message, and this is more than 7 MB'
    + ' (5 MB of images): remove files, or begin a new chat.';


// { files, images, problems } of what was chosen, dropped or pasted

export async function readFiles(chosen, withImages) {
  const out = { files: [], images: [], problems: [] };

  for (const file of chosen) {
    const image = /^image\/(?:png|jpeg|gif|webp)$/.test(file.type);

    if (image && !withImages) {
      out.problems.push(`${file.name}: this model takes no images`);
    } else if (file.size > (image ? LARGEST_IMAGE : LARGEST_TEXT)) {
      out.problems.push(`${file.name} is too large: at most `
          + (image ? '4 MB' : '1 MB'));
    } else if (image) {
      out.images.push(await dataUrl(file));
    } else {
      const text = await textOf(file);

      if (text === null) {
        out.problems.push(`${file.name} is not a text file`);
      } else {
        out.files.push({ name: file.name, text });
      }
    }
  }

  return out;
}


async function textOf(file) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(
      await file.arrayBuffer());

    return text.includes('\0') ? null : text;
  } catch {
    return null;
  }
}


const dataUrl = file => new Promise((resolve, reject) => {
  const r = new FileReader();

  r.onload = () => resolve(r.result);
  r.onerror = () => reject(r.error);
  r.readAsDataURL(file);
});


// a fence that the text has not

const fence = text => '`'.repeat(Math.max(3, ...Array.from(
  text.matchAll(/`+/g), m => m[0].length + 1)));


// a file as the model gets it, and as Markdown has it

export function fileText({ name, text }) {
  const marks = fence(text);

  return `File ${name}:\n${marks}\n${text.replace(/\n$/, '')}\n${marks}`;
}


// ---- saving ----

function download(name, text, type) {
  const a = document.createElement('a');

  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name.replace(/[^\p{L}\p{N}._-]+/gu, ' ').trim() || 'chat';
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60000);
}


export const toJson = conversations => JSON.stringify({
  format: 'nginx-llm-conversations', version: 1, conversations }, null, 1);

export const saveAll = all => download('conversations.json', toJson(all),
  'application/json');

export const saveText = c => download(c.title + '.md', toMarkdown(c),
  'text/markdown');


export function toMarkdown(c) {
  const out = ['# ' + c.title];
  const code = (text, lang) => fence(text) + lang + '\n' + text + '\n'
      + fence(text);

  if (c.system) {
    out.push('## System', c.system);
  }

  for (const m of c.messages) {
    if (m.role === 'user') {
      out.push('## You', ...(m.files ?? []).map(fileText), m.content);
    } else if (m.role === 'tool') {
      out.push(`## Result of ${m.name}`, code(m.content, ''));
    } else {
      out.push('## ' + (m.model || 'Answer'));

      if (m.reasoning) {
        out.push(m.reasoning.replace(/^/gm, '> '));
      }

      out.push(m.content, ...(m.calls ?? []).map(
        k => `Calls ${k.name}:\n\n` + code(k.arguments, 'json')));
    }
  }

  return out.filter(Boolean).join('\n\n') + '\n';
}


// conversations of a file's text; throws an Error for a person

export function fromJson(text) {
  let data;

  try {
    data = JSON.parse(text);
  } catch {
    throw new Error('This file is not JSON.');
  }

  const all = Array.isArray(data) ? data
      : data?.conversations ?? [data];
  const found = (Array.isArray(all) ? all : []).map(cleanConversation)
    .filter(Boolean);

  if (!found.length) {
    throw new Error('This file has no conversations.');
  }

  return found;
}
