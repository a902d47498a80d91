// Colours of code: comments, strings, numbers and words that most languages
// share: a guess, by the name after the fence.

const WORDS = new Set((`abstract and as async await begin bool boolean break
case catch char class const continue def default defer del do double elif else
end enum except export extends false False fi final finally float fn for from
func function if impl implements import in int interface is lambda let local
long match mod module mut namespace new nil None not null nullptr of or package
pass private protected pub public raise return self static string struct super
switch then this throw trait true True try type typedef undefined unless
unsigned until use using var virtual void while with yield add alter by create
delete desc distinct drop exists group having index inner insert into join key
left like limit on order primary select set table update values where`)
  .split(/\s+/));

const STRING = '"(?:\\\\.|[^"\\\\\\n])*"?|\'(?:\\\\.|[^\'\\\\\\n])*\'?';
const NUMBER = '\\b(?:0[xXbB][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)';
const WORD = '[A-Za-z_$][\\w$]*';

const C = '\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)';
const HASH = '(?<![\\w$&{])#[^\\n]*';
const DASH = '--[^\\n]*';
const XML = '<!--[^]*?(?:-->|$)';

const rules = (comment, string, words) => ({
  words,
  regex: new RegExp(`(${comment})|(${string})|(${NUMBER})|(${WORD})`, 'g')
});

const TICKS = '`(?:\\\\.|[^`\\\\])*`?|' + STRING;
const TRIPLE = '"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$)|' + STRING;

const like = {
  c: rules(C, TICKS, WORDS),
  hash: rules(HASH, TRIPLE, WORDS),
  sql: rules(`${DASH}|${C}`, STRING, WORDS),
  xml: rules(XML, STRING, new Set())
};

const LANGUAGES = {
  c: `c cc cpp c++ h hpp cs csharp css cuda dart go java javascript js json
    jsx kotlin less php proto rs rust scala scss swift ts tsx typescript zig`,
  hash: `bash cmake console dockerfile ini make makefile nginx perl pl py
    python r rb ruby sh shell toml yaml yml zsh`,
  sql: 'haskell lua mysql postgresql sql sqlite',
  xml: 'xml html svg vue'
};

const kinds = new Map(Object.entries(LANGUAGES).flatMap(
  ([kind, names]) => names.trim().split(/\s+/).map(n => [n, like[kind]])));

// longer texts have one colour
const LONGEST = 60000;


const span = (cls, text) => ({ tag: 'span', cls, kids: [text] });


export function highlight(text, language) {
  const name = (language ?? '').toLowerCase();

  if (text.length > LONGEST) {
    return [text];
  }

  if (name === 'diff' || name === 'patch') {
    return text.split(/^/m).map(
      line => line[0] === '+' ? span('added', line)
          : line[0] === '-' ? span('removed', line) : line);
  }

  const kind = kinds.get(name);

  if (!kind) {
    return [text];
  }

  const { regex, words } = kind;
  const known = w => words.has(kind === like.sql ? w.toLowerCase() : w);
  const out = [];
  let from = 0;

  for (const m of text.matchAll(regex)) {
    const cls = m[1] ? 'comment' : m[2] ? 'string' : m[3] ? 'number'
        : known(m[4]) ? 'word' : null;

    if (cls && m[0]) {
      if (m.index > from) {
        out.push(text.slice(from, m.index));
      }

      out.push(span(cls, m[0]));
      from = m.index + m[0].length;
    }
  }

  if (from < text.length) {
    out.push(text.slice(from));
  }

  return out;
}
