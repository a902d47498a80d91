// web/markdown.js: what it makes of a text, what it never makes, and that a
// text which is still being written looks like the beginning of what it
// becomes.

import { done, is, modules, ok } from "./tap.mjs";

const { address, fromJson, highlight, parse, toJson, toMarkdown }
    = await modules("markdown.js", "inline.js", "code.js", "files.js");

const TAGS = new Set(("p h1 h2 h3 h4 h5 h6 hr ul ol li blockquote div table"
    + " thead tbody tr th td a br code em strong del code-block").split(" "));


// the tree as HTML, to compare

function html(nodes) {
    const escape = s => s.replace(/&/g, "&amp;").replace(/</g, "&lt;");

    return nodes.map(n => {
        if (typeof n === "string") {
            return escape(n);
        }

        const more = (n.cls ? ` class=${n.cls}` : "")
            + (n.href ? ` href=${n.href}` : "")
            + (n.lang ? ` lang=${n.lang}` : "")
            + (n.start > 1 ? ` start=${n.start}` : "");

        return `<${n.tag}${more}>` + (n.kids.length
            ? html(n.kids) + `</${n.tag}>` : "");
    }).join("");
}


const text = nodes => nodes.map(n => typeof n === "string" ? n
    : n.tag === "br" ? "\n" : text(n.kids)).join("");


function walk(nodes, see) {
    for (const n of nodes) {
        see(n);
        if (typeof n !== "string") {
            walk(n.kids, see);
        }
    }
}


// ---- what it makes ----

const cases = [
    ["a *b* **c** ***d*** ~~e~~", "<p>a <em>b</em> <strong>c</strong> <em>"
     + "<strong>d</strong></em> <del>e</del></p>"],
    ["**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"],
    ["snake_case_name and 2*3*4 and 2 * 3", "<p>snake_case_name and 2<em>3"
     + "</em>4 and 2 * 3</p>"],
    ["`a*b*` ``c`d`` `e", "<p><code>a*b*</code> <code>c`d</code> `e</p>"],
    ["a\nb  \nc", "<p>a<br>b<br>c</p>"],
    ["\\*a\\* \\<b>", "<p>*a* &lt;b></p>"],
    ["# A *b*\n###### C ##\n#no", "<h1>A <em>b</em></h1><h6>C</h6>"
     + "<p>#no</p>"],
    ["a\n\n---\n***", "<p>a</p><hr><hr>"],
    ["a\n---\nb", "<p>a</p><hr><p>b</p>"],
    ["> a\n> > b\nc", "<blockquote><p>a</p><blockquote><p>b<br>c</p>"
     + "</blockquote></blockquote>"],
    ["- a\n- b\n  - c\n    d\n- e", "<ul><li>a</li><li>b<ul><li>c<br>d</li>"
     + "</ul></li><li>e</li></ul>"],
    ["3. a\n4. b", "<ol start=3><li>a</li><li>b</li></ol>"],
    ["1. a\n  - b\n2. c", "<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>"],
    ["- a\n\n- b", "<ul><li><p>a</p></li><li><p>b</p></li></ul>"],
    ["- a\n\n  b\n\n\nc", "<ul><li>a<br>b</li></ul><p>c</p>"],
    ["1. a\n   ```js\n   x\n\n   y\n   ```\n2. b", "<ol><li>a<code-block"
     + " lang=js>x\n\ny</code-block></li><li>b</li></ol>"],
    ["- [ ] a\n- [x] b", "<ul><li>\u2610 a</li><li>\u2611 b</li></ul>"],
    ["- a\n* b", "<ul><li>a</li></ul><ul><li>b</li></ul>"],
    ["text\n- a", "<p>text</p><ul><li>a</li></ul>"],
    ["in 1990\n2. no", "<p>in 1990<br>2. no</p>"],
    ["```py\n<b>&\n```\nz", "<code-block lang=py>&lt;b>&amp;</code-block>"
     + "<p>z</p>"],
    ["````\n```\n````", "<code-block>```</code-block>"],
    ["~~~ sh\na\n```\n~~~", "<code-block lang=sh>a\n```</code-block>"],
    ["```\nno end", "<code-block>no end</code-block>"],
    ["| a | b |\n|---|--:|\n| `x|y` | *c* |\n| d |", "<div class=scroll>"
     + "<table><thead><tr><th>a</th><th class=right>b</th></tr></thead><tbody>"
     + "<tr><td><code>x|y</code></td><td class=right><em>c</em></td></tr>"
     + "<tr><td>d</td><td class=right></tr></tbody></table></div>"],
    ["a | b\nno table", "<p>a | b<br>no table</p>"],
    ["[a *b*](https://x.org/a_(b) \"t\")", "<p><a href=https://x.org/a_(b)>a "
     + "<em>b</em></a></p>"],
    ["![alt](https://x.org/i.png)", "<p><a href=https://x.org/i.png>alt</a>"
     + "</p>"],
    ["see https://x.org/a?b=c_d_e, (http://y.org) or <mailto:a@b.c>",
     "<p>see <a href=https://x.org/a?b=c_d_e>https://x.org/a?b=c_d_e</a>, (<a"
     + " href=http://y.org>http://y.org</a>) or <a href=mailto:a@b.c>a@b.c</a>"
     + "</p>"],
    ["[x] and [y][z] and [w]", "<p>[x] and [y][z] and [w]</p>"],
    ["a<br>b &lt;i&gt; &amp;amp;", "<p>a<br>b &lt;i> &amp;amp;</p>"],
    ["\\(a_b*c*\\) and $$x_1$$ and $5 and $6", "<p><code class=math>a_b*c*"
     + "</code> and <code class=math>x_1</code> and $5 and $6</p>"],
    ["", ""],
    ["\0a", "<p>\ufffda</p>"]
];

for (const [from, want] of cases) {
    is(html(parse(from)), want, JSON.stringify(from));
}


// ---- what it never makes ----

const hostile = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)><iframe src=javascript:alert(1)>",
    "[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))", "[a](java\nscript:alert(1))",
    "[a](<javascript:alert(1)>)", "[a]( javascript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)", "[a](vbscript:x)",
    "[a](//evil.org)", "[a](\\\\evil.org)", "[a](/admin/models/x/unload)",
    "[a](file:///etc/passwd)", "[a](blob:x)", "<javascript:alert(1)>",
    "![a](javascript:alert(1))", "![a](https://evil.org/track.png)",
    "[a](https://x.org/\" onmouseover=\"alert(1))",
    "`<b>`\n```\"><script>alert(1)</script>\n<b>\n```",
    "| <script> | b |\n|---|---|\n| [a](javascript:x) | <b onclick=x> |",
    "# <h1 onclick=x>\n> <b>\n- <i>", "<a href='javascript:x'>a</a>",
    "[![a](javascript:x)](javascript:y)", "<https://x.org\" onclick=x>",
    "[a](https://x.org/%0ajavascript:x 'onclick=x')"
];

const wrong = nodes => {
    const bad = [];

    walk(nodes, n => {
        if (typeof n === "string") {
            return;
        }
        if (!TAGS.has(n.tag)) {
            bad.push(n.tag);
        }
        if (n.href !== undefined && !/^(?:https?:\/\/|mailto:)/i.test(n.href)) {
            bad.push(n.href);
        }
        if (n.cls && !/^(?:scroll|right|center|math)$/.test(n.cls)) {
            bad.push(n.cls);
        }
        for (const name of Object.keys(n)) {
            if (!["tag", "kids", "cls", "href", "lang", "start"].includes(name)) {
                bad.push(name);
            }
        }
    });

    return bad;
};

for (const from of hostile) {
    is(wrong(parse(from)), [], "harmless: " + JSON.stringify(from));
}

ok(text(parse(hostile[0])) === hostile[0], "raw HTML is text");

for (const url of ["javascript:x", "data:x", " https://x", "https://a b",
                   "https:x", "//x", "", "HTTPS://x\\y", "http://\u0001"])
{
    is(address(url), null, "no address: " + JSON.stringify(url));
}

is(address("HTTPS://x.org"), "HTTPS://x.org", "an address");


// pieces in any order

{
    const pieces = ["*", "**", "_", "~~", "`", "```", "\n", "\n\n", "- ", "1. ",
        "> ", "# ", "|", "|-|", "[", "](", ")", "(", "<", ">", "!", "\\", "$$",
        "\\(", "&amp;", "https://x.org", "javascript:", "a", " ", "    ", "\t",
        "<br>", "---", "é", "\ud83d\ude00", "\ud83d", '"'];
    let seed = 7;
    const next = n => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
    let bad = [];

    for (let i = 0; i < 4000 && !bad.length; i++) {
        let from = "";

        for (let k = next(40); k >= 0; k--) {
            from += pieces[next(pieces.length)];
        }
        try {
            bad = [...wrong(parse(from)), ...wrong(parse(from, true))];
        } catch (e) {
            bad = [String(e)];
        }
        bad = bad.length ? [from, ...bad] : [];
    }

    is(bad, [], "4000 random texts");
}


// these would take hours if anything were done for each pair of characters

for (const piece of ["*a ", "**a", "_a", "`", "`a``b", "[", "[](", "[a](b",
                     "![", "> ", ">", "- ", "# ", "<", "\\(", "$$", "&", "|",
                     "| a |\n|---|\n", "https://", "~~", "*_", "a**b_",
                     "\n> - ", "  - a\n", "))", " "])
{
    const from = piece.repeat(Math.ceil(200000 / piece.length));

    parse(from);
    parse(from, true);
    ok(true, "200 kB of " + JSON.stringify(piece));
}

parse("https://x.org/" + ")".repeat(200000));
parse("#" + " ".repeat(200000) + "x");
highlight("\"".repeat(50000), "js");
highlight("<!--".repeat(10000), "html");
ok(true, "and of others");


// ---- while it is being written ----

const whole = `# A title

Some **bold words**, *soft* ones, \`code()\` and a [link](https://x.org/a).

1. first
   - nested **b**
   - more
2. second \`x\`

\`\`\`js
const a = \`t\`;
if (a < 1) { "**no**" }
\`\`\`

| a | b |
|---|--:|
| 1 | **2** |
| 3 | \`4\` |

> A quote with ~~old~~ text.

---

The end, ***both***.`;

{
    const end = text(parse(whole));
    const bad = [];
    let last = "";

    for (let i = 1; i <= whole.length; i++) {
        const now = text(parse(whole.slice(0, i), true));

        if (!end.startsWith(now)) {
            bad.push([whole.slice(Math.max(0, i - 30), i), now.slice(-30)]);
        }
        if (now.length < last.length) {
            bad.push(["shorter", whole.slice(Math.max(0, i - 30), i)]);
        }
        last = now;
    }

    is(bad.slice(0, 3), [], "each beginning shows a beginning of the whole");
    is(html(parse(whole, true)), html(parse(whole)), "and its end is the whole");
}

// each step keeps the elements before it: the tags up to the last but one

{
    const tags = nodes => {
        const all = [];
        walk(nodes, n => typeof n === "string" || all.push(n.tag));
        return all;
    };
    const end = tags(parse(whole));
    const bad = [];

    for (let i = 1; i <= whole.length; i++) {
        const now = tags(parse(whole.slice(0, i), true));

        if (now.some((t, n) => t !== end[n])) {
            bad.push([whole.slice(Math.max(0, i - 30), i), now.slice(-4)]);
        }
    }

    is(bad.slice(0, 3), [], "no element becomes another one");
}

is(html(parse("a\n``", true)), "<p>a</p>", "half a fence is not shown");
is(html(parse("```js\nx\n``", true)), "<code-block lang=js>x</code-block>",
   "nor half of its end");
is(html(parse("a `b", true)), "<p>a <code>b</code></p>", "open code");
is(html(parse("a **b", true)), "<p>a <strong>b</strong></p>", "open bold");
is(html(parse("a **b*", true)), "<p>a <strong>b</strong></p>", "half closed");
is(html(parse("a [b](htt", true)), "<p>a b</p>", "half a link");
is(html(parse("| a | b", true)).includes("<table>"), true, "half a table");
is(html(parse("a **b")), "<p>a **b</p>", "at the end a mark is a mark");


// ---- code ----

const classes = (code, lang) => highlight(code, lang).map(
    t => typeof t === "string" ? t : `${t.cls}:${t.kids[0]}`);

is(classes("let a = 'x'; // b", "js"),
   ["word:let", " a = ", "string:'x'", "; ", "comment:// b"], "JavaScript");
is(classes("x = 0x1F # c", "python"), ["x = ", "number:0x1F", " ",
                                        "comment:# c"], "Python");
is(classes("SELECT a -- b", "sql"), ["word:SELECT", " a ", "comment:-- b"],
   "SQL");
is(classes("+a\n-b\n c", "diff"), ["added:+a\n", "removed:-b\n", " c"],
   "a diff");
is(classes("let a", "nothing"), ["let a"], "an unknown language");
is(highlight("<b>\"x\"</b>", "html").map(t => t.kids?.[0] ?? t).join(""),
   "<b>\"x\"</b>", "no character is lost");


// ---- conversations in files ----

const talk = { title: "T", system: "S", model: "m", updated: 2,
    messages: [
        { role: "user", content: "hi", images: [], files: [
            { name: "a.txt", text: "x ``` y" }] },
        { role: "assistant", content: "yo", reasoning: "hm", model: "m",
          finish: "stop", figures: { rate: 2 },
          calls: [{ id: "1", name: "f", arguments: "{}" }] },
        { role: "tool", id: "1", name: "f", content: "r" }] };
const back = fromJson(toJson([talk]))[0];

is({ ...back, id: 0 }, { ...talk, id: 0 }, "JSON there and back");
is(fromJson('{"messages": [{"role": "system", "content": "s"},'
            + '{"role": "user", "content": "q"}]}').map(
    c => [c.title, c.system, c.messages.length]), [["q", "s", 1]],
   "messages as of the API");

for (const bad of ["", "{}", "[]", "[null]", '{"messages": 1}',
                   '{"messages": [{"role": "x", "content": "y"}]}',
                   '{"messages": [{"role": "user", "content": {}}]}'])
{
    let said = "";
    try {
        fromJson(bad);
    } catch (e) {
        said = e.message;
    }
    ok(/^This file /.test(said), "not taken: " + bad, said);
}

{
    const evil = fromJson(JSON.stringify({ messages: [
        { role: "user", content: "", images: ["javascript:x", "https://x/y",
          "data:image/svg+xml;base64,x", "data:image/png;base64,x"] },
        { role: "assistant", content: "a", __proto__: { x: 1 }, extra: 1,
          figures: { rate: "x", first: 1 }, calls: "no" }] }))[0].messages;

    is(evil[0].images, ["data:image/png;base64,x"], "images are data alone");
    is(evil[1], { role: "assistant", content: "a", reasoning: "", calls: [],
                  model: "", finish: "stop", figures: { first: 1 } },
       "of a message what is known");
}

is(toMarkdown(back), "# T\n\n## System\n\nS\n\n## You\n\nFile a.txt:\n````\n"
   + "x ``` y\n````\n\nhi\n\n## m\n\n> hm\n\nyo\n\nCalls f:\n\n```json\n{}\n"
   + "```\n\n## Result of f\n\n```\nr\n```\n", "Markdown");

done();
