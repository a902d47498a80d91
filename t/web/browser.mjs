// What a person does with the page, in headless Chromium.
//
// usage: node browser.mjs SCENE URL [MORE]
//
// Prints TAP.  Scenes are the functions below; see browser.t for the servers.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CTRL, launch, SHIFT } from "./chromium.mjs";
import { done, is, ok } from "./tap.mjs";

const LAST = ".message:last-child";
const THREAD = "document.querySelector('#thread')";


// ---- steps ----

const textOf = selector =>
    `document.querySelector(${JSON.stringify(selector)})?.innerText`;

const many = selector =>
    `document.querySelectorAll(${JSON.stringify(selector)}).length`;


async function open(browser, url) {
    const page = await browser.page();

    await page.goto(url);

    return page;
}


// a page whose models are known, with one of them chosen

async function ready(browser, url, model) {
    const page = await open(browser, url);

    await page.until(`${many("#model option")} > 1`);
    await choose(page, model);

    return page;
}


async function choose(page, model) {
    await page.value(`(() => {
        const s = document.querySelector("#model");
        s.value = "${model}";
        s.dispatchEvent(new Event("change"));
    })()`);
}


async function write(page, text) {
    await page.fill("#prompt", text);
    await page.press("Enter");
}


const ended = page => page.until(
    `!document.querySelector(".live") && ${textOf(LAST + " .figures")}`);


async function say(page, text) {
    await write(page, text);
    await ended(page);
}


async function chooseFiles(page, selector, ...files) {
    const { root } = await page.send("DOM.getDocument");
    const { nodeId } = await page.send("DOM.querySelector",
        { nodeId: root.nodeId, selector });

    await page.send("DOM.setFileInputFiles", { nodeId, files });
}


// what no page may have done

function clean(page, origin) {
    const other = page.requests.filter(u => !u.startsWith(origin)
                                            && !/^(?:data|blob):/.test(u));

    is(other, [], "no request to anywhere else");
    is(page.complaints, [], "no error, nothing against the policy");
    is(page.dialogs, 0, "no alert");
}


const scenes = {};


// ---- chats ----

scenes.chats = async (browser, url) => {
    const page = await ready(browser, url, "script");

    is(await page.value("[...document.querySelectorAll('#model option')].map("
        + "o => o.value)"), ["demo", "script", "sees", "gpt-4o-mini", "mini"],
       "the models and aliases");

    // an answer

    await say(page, "plain");
    is(await page.value(textOf(LAST + " .text:not(.reasoning .text)")),
       "It is done, by code.", "and comes");
    is(await page.value(many(LAST + " .text strong")), 1, "as Markdown");
    ok(/tokens\/s · first token [\d.]+ s · \d+ tokens · prompt \d+.* · script$/
       .test(await page.value(textOf(LAST + " .figures"))),
       "with its figures", await page.value(textOf(LAST + " .figures")));

    // an answer and a question that want to do harm

    await say(page, "hostile");
    is(await page.value(`${THREAD}.querySelectorAll("script, img, iframe,`
        + ` svg:not(button svg), [onerror], [onload], [onmouseover]").length`),
       0, "nothing of it is an element");
    is(await page.value(`[...${THREAD}.querySelectorAll("a")].map(`
        + "a => a.href).filter(h => !/^https:/.test(h))"), [],
       "nor an address that is more than one");
    is(await page.value("window.pwned"), undefined, "nothing was run");
    is(await page.value(textOf(LAST + " h1")), "A <b>title</b>",
       "it is text");
    is(await page.value(many(LAST + " table") + "+" + many(LAST + " .code")
        + "+" + many(LAST + " li li")), 3, "a table, code, a list in a list");

    await say(page, "<img src=x onerror='window.pwned=1'>");
    is(await page.value(textOf(".user:nth-last-child(2) .words")),
       "<img src=x onerror='window.pwned=1'>", "a question is text");
    is(await page.value("window.pwned"), undefined, "and is not run");

    // the policy holds, whatever the page does

    is(await page.value("(() => { try { document.body.innerHTML = '<i>';"
        + " } catch (e) { return e.name } })()"), "TypeError",
       "no HTML of text");
    is(await page.value("fetch('http://127.0.0.1:9/').catch(e => e.name)"),
       "TypeError", "no request elsewhere");
    page.complaints = page.complaints.filter(
        c => !/TrustedHTML|127\.0\.0\.1:9\//.test(c));
    page.requests = page.requests.filter(u => !u.includes(":9/"));

    // stopping, by Esc and by the button; again, and on

    await write(page, "long");
    await page.until(`${textOf(".live")}?.includes("word20")`);
    await page.press("Escape");
    ok(await page.until(`${textOf(LAST)}?.includes("You stopped")`),
       "Esc stops");
    is(await page.value(`${textOf(LAST)}.includes("word1500")`), false,
       "before the end");

    const before = await page.value(textOf(LAST + " .text:not(:empty)"));

    await page.click(LAST + " [aria-label='Go on']");
    await page.until(`${textOf(LAST)}.length > ${before.length + 20}`);
    is(JSON.parse(page.posts.at(-1)).messages.at(-1).content.trim(), before,
       "it goes on where it was");
    await page.press("Escape");
    await page.until(`${many(".live")} === 0`);

    await page.click(LAST + " [aria-label='Answer again']");
    ok(await page.until(`${textOf(".live")}?.includes("word5")`), "again");
    ok(await page.value(`${textOf(".live")}.length < ${before.length}`),
       "from the beginning");
    await page.click("#send");
    ok(await page.until(`${textOf(LAST)}?.includes("You stopped")`),
       "the button stops");

    // a line break, and editing the last message

    await page.fill("#prompt", "one");
    await page.press("Enter", SHIFT);
    await page.type("two");
    is(await page.value("document.querySelector('#prompt').value"),
       "one\ntwo", "Shift+Enter begins a line");
    await page.fill("#prompt", "");
    await page.press("ArrowUp");
    is(await page.until(`document.querySelector(".editor textarea")?.value`),
       "long", "Up edits the last message");

    const count = await page.value(many(".message"));

    await page.fill(".editor textarea", "think");
    await page.press("Enter");
    await ended(page);
    is(await page.value(many(".message")), count, "in its place");

    // reasoning

    is(await page.value(`document.querySelector("${LAST} .reasoning").open`),
       false, "reasoning is folded");
    ok(/^Reasoning/.test(await page.value(textOf(LAST + " summary"))),
       "by its name");
    await page.click(LAST + " summary");
    is(await page.until(textOf(LAST + " .reasoning .text")),
       "It may be seven.", "and unfolds");
    is(await page.value(`${many(LAST + " .reasoning em")}`), 1,
       "as Markdown, too");

    // calls

    await page.click("#settings-open");
    await page.fill("[name=more]", JSON.stringify({ tools: [{ type: "function",
        function: { name: "weather", parameters: { type: "object",
            properties: { city: { type: "string" } } } } }] }));
    await page.press("Tab");
    await page.press("Escape");
    await write(page, "call");
    ok(await page.until(many(".results")), "a call");
    is(await page.value(textOf(LAST + " .call b")), "weather", "its name");
    ok((await page.value(textOf(LAST + " .call pre"))).includes('"Rome"'),
       "its arguments");
    await page.fill(".results textarea", "28 degrees");
    await page.click(".results button");
    ok(await page.until(`${textOf(LAST)}?.includes("It is warm.")`),
       "the result is used");
    is(JSON.parse(page.posts.at(-1)).messages.slice(-2).map(m => m.role),
       ["assistant", "tool"], "as the API has it");

    clean(page, url);
};


// ---- images ----

scenes.images = async (browser, url, picture) => {
    const page = await ready(browser, url, "demo");

    await chooseFiles(page, "#file", picture);
    ok(await page.until(`${textOf("#notes")}?.includes("takes no images")`),
       "a model without an encoder");
    is(await page.value(many(".chip")), 0, "nothing is attached");

    await choose(page, "sees");
    await chooseFiles(page, "#file", picture);
    ok(await page.until(many(".chip img")), "one with an encoder takes it");
    await say(page, "What is this?");

    const parts = JSON.parse(page.posts.at(-1)).messages.at(-1).content;

    is(parts.map(p => p.type).sort(), ["image_url", "text"],
       "the question and its image");
    is(parts.find(p => p.image_url).image_url.url,
       "data:image/png;base64," + readFileSync(picture, "base64"),
       "byte for byte");
    ok(await page.value(many(".message img")), "it is shown");

    // more than servers take: nothing is sent, and nothing is lost

    const dir = mkdtempSync(join(tmpdir(), "llm-web-"));
    const large = ["one.png", "two.png"].map(name => join(dir, name));
    const posts = page.posts.length;

    large.forEach(file => writeFileSync(file, Buffer.alloc(3600000, 1)));
    await chooseFiles(page, "#file", ...large);
    await page.until(`${many(".chip img")} === 2`);
    await write(page, "And these?");
    ok(await page.until(`${textOf("#notes")}?.includes("more than 7 MB")`),
       "too many images for a request");
    is(page.posts.length, posts, "are not sent");
    is(await page.value("document.querySelector('#prompt').value"),
       "And these?", "the question stays");

    for (const left of [1, 0]) {
        await page.click(".chip [aria-label=Remove]");
        is(await page.value(many(".chip")), left, "one less");
    }
    await page.click("#prompt");
    await page.press("Enter");
    await ended(page);
    is(page.posts.length, posts + 1, "and goes without them");
    is(await page.value(many("#notes p")), 0, "with no more to say");

    rmSync(dir, { recursive: true });
    clean(page, url);
};


// ---- copying ----

scenes.copies = async (browser, url) => {
    const page = await ready(browser, url, "script");
    const copied = () => page.value("window.copied.pop()");
    const clipboard = what => page.value(`Object.defineProperty(navigator,`
        + ` "clipboard", { configurable: true, value: ${what} }), 0`);

    // presses a button, which says how it went, and then what it is again

    const press = async (button, label, says) => {
        const inside = `document.querySelector(${JSON.stringify(button)})`;

        await page.value(`${inside}.querySelector("[aria-label='${label}']")`
            + `.setAttribute("data-pressed", ""), 0`);
        await page.click("[data-pressed]");
        ok(await page.until(`${inside}.querySelector("[data-pressed]")`
            + `.getAttribute("aria-label") === "${says}"`), says);
        ok(await page.until(`${inside}.querySelector("[data-pressed]")`
            + `.getAttribute("aria-label") === "${label}"`), "for a moment");
        await page.value(`${inside}.querySelector("[data-pressed]")`
            + `.removeAttribute("data-pressed"), 0`);
    };

    await say(page, "hostile");
    await page.value("window.copied = [], 0");

    await clipboard("{ writeText: async text => { copied.push(text); } }");
    await press(LAST + " .code", "Copy the code", "Copied");
    is((await copied()).trim(),
       '<iframe src="javascript:parent.pwned=1"></iframe>', "the code");
    await press(LAST + " > footer", "Copy", "Copied");

    const all = await copied();

    ok(all.startsWith("# A <b>title</b>\n\n<script>")
       && all.includes("| **x** |"), "a message as the model wrote it", all);
    await press(".user", "Copy", "Copied");
    is(await copied(), "hostile", "and as its user did");

    await clipboard("{ writeText: async () => { throw new Error(); } }");
    await press(".user", "Copy", "Copying failed");

    // without https

    await clipboard("undefined");
    await page.value(`document.addEventListener("copy",`
        + ` e => copied.push(e.target.value)), 0`);
    await press(".user", "Copy", "Copied");
    is(await copied(), "hostile", "without a clipboard for scripts");
    is(await page.value(many("body > textarea")), 0, "with nothing left of it");

    clean(page, url);
};


// ---- conversations ----

scenes.conversations = async (browser, url) => {
    const page = await ready(browser, url, "demo");
    const dir = mkdtempSync(join(tmpdir(), "llm-web-"));
    // the system prompt and parameters of a request

    await page.click("#system-box summary");
    await page.fill("#system", "Be brief.");
    await page.click("#settings-open");

    for (const [name, value] of [["temperature", "0"], ["top_p", "0.9"],
                                 ["top_k", "40"], ["min_p", "0.05"],
                                 ["max_tokens", "30"], ["seed", "7"]])
    {
        await page.fill(`[name=${name}]`, value);
    }

    await page.fill("[name=stop]", "###\nEND");
    await page.press("Tab");
    await page.press("Escape");
    await say(page, "What is 2 + 2?");

    const sent = JSON.parse(page.posts.at(-1));

    is(sent.messages, [{ role: "system", content: "Be brief." },
                       { role: "user", content: "What is 2 + 2?" }],
       "the system prompt is sent");
    is([sent.temperature, sent.top_p, sent.top_k, sent.min_p, sent.max_tokens,
        sent.seed, sent.stop], [0, 0.9, 40, 0.05, 30, 7, ["###", "END"]],
       "the parameters are");
    ok(!("presence_penalty" in sent) && !("reasoning_effort" in sent),
       "others are not");

    // what stays

    await page.goto(url);
    await page.until(`${many("#model option")} > 1`);
    is(await page.value(many(".message")), 0, "the page begins with a new chat");
    await page.click("#list a");
    ok(await page.until(`${textOf(".user")}?.includes("What is 2 + 2?")`),
       "the list has the conversation");
    await page.send("Page.reload");
    ok(await page.until(`${textOf(".user")}?.includes("What is 2 + 2?")`
                        + ` && ${many(LAST + " .figures")}`),
       "which stays when the page is loaded again");
    is(await page.value("document.querySelector('#system').value"),
       "Be brief.", "with its system prompt");

    // another one, search, names

    await page.until(`${many("#model option")} > 1`);
    await page.press("k", CTRL);
    ok(await page.until(`${many(".message")} === 0`), "Ctrl+K: a new chat");
    await say(page, "What is the capital of France?");
    is(await page.until(`${many("#list li")} === 2 && 2`), 2, "two of them");
    await page.fill("#search", "capital france");
    ok(await page.until(`${many("#list li")} === 1`), "a search");
    await page.fill("#search", "nowhere");
    ok(await page.until(`${textOf("#list")} === "Nothing found"`), "in vain");
    await page.fill("#search", "");
    await page.until(`${many("#list li")} === 2`);
    await page.value(`document.querySelector("#list li:last-child`
                     + ` [aria-label=Rename]").click()`);
    await page.fill("#ask-field", "Sums");
    await page.press("Enter");
    ok(await page.until(`${textOf("#list")}.includes("Sums")`), "a new name");

    // out and in again

    await page.value(`(() => {
        window.saved = [];
        const make = URL.createObjectURL;
        URL.createObjectURL = b => {
            b.text().then(t => window.saved.push(t));
            return make.call(URL, b);
        };
    })()`);
    await page.click("#export");
    ok((await page.until("window.saved[0]")).startsWith(
        "# What is the capital of France?\n\n## You\n\nWhat is"),
       "one as Markdown");
    await page.click("#settings-open");
    await page.value(`[...document.querySelectorAll("#settings button")].find(`
        + `b => b.textContent === "Save all as JSON").click()`);

    const json = await page.until("window.saved[1]");

    is(JSON.parse(json).conversations.map(c => c.title),
       ["What is the capital of France?", "Sums"], "all as JSON");
    await page.value(`[...document.querySelectorAll("#settings button")].find(`
        + `b => b.textContent === "Delete all…").click()`);
    await page.click("#ask .danger");
    ok(await page.until(`${many("#list li")} === 0`), "all deleted");
    writeFileSync(join(dir, "all.json"), json);
    writeFileSync(join(dir, "bad.json"), "{}");
    await chooseFiles(page, "#import-file", join(dir, "bad.json"));
    ok(await page.until(`${textOf("#notes")}?.includes("no conversations")`),
       "a file without any");
    await chooseFiles(page, "#import-file", join(dir, "all.json"));
    ok(await page.until(`${many("#list li")} === 2 && ${many(".message")} > 1`),
       "imported");

    // a file in the prompt

    writeFileSync(join(dir, "note.txt"), "The word is lilac.\n");
    writeFileSync(join(dir, "bytes.bin"), Buffer.from([0, 255, 254]));
    await page.press("k", CTRL);
    await chooseFiles(page, "#file", join(dir, "note.txt"), join(dir, "bytes.bin"));
    is(await page.until(textOf(".chip")), "note.txt", "a text is attached");
    ok((await page.value(textOf("#notes"))).includes("bytes.bin is not a text"),
       "another file is not");
    await say(page, "Which word?");
    is(JSON.parse(page.posts.at(-1)).messages.at(-1).content, "Which word?\n\n"
       + "File note.txt:\n```\nThe word is lilac.\n```", "as the model gets it");
    is(await page.value(textOf(".file summary")), "note.txt", "as it is shown");

    // a browser that is full

    await page.value("IDBObjectStore.prototype.put = () => {"
        + " throw new DOMException('full', 'QuotaExceededError') }");
    await say(page, "What is 3 + 3?");
    ok(await page.until(`${textOf("#notes")}?.includes("no more conv")`),
       "no room: that is said");
    is(await page.value(many(".message")), 4, "and the chat goes on");

    rmSync(dir, { recursive: true });
    clean(page, url);
};


// ---- looks ----

// of two colours, as WCAG has it

const CONTRAST = `(a, b) => {
    const light = c => {
        const [r, g, b] = c.match(/[\\d.]+/g).map(v => {
            v = v / 255;
            return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
}`;

const PAIRS = [["--text", "--page"], ["--soft", "--page"], ["--soft", "--box"],
               ["--text", "--box"], ["--text", "--side"], ["--soft", "--side"],
               ["--accent", "--page"], ["--on", "--accent"],
               ["--bad", "--page"], ["--text", "--bad-box"],
               ["--c-comment", "--box"], ["--c-string", "--box"],
               ["--c-number", "--box"], ["--c-word", "--box"]];

const weak = page => page.value(`(() => {
    const contrast = ${CONTRAST};
    const probe = document.createElement("span");
    document.body.append(probe);
    const colour = name => {
        probe.style.color = "var(" + name + ")";
        return getComputedStyle(probe).color;
    };
    const bad = ${JSON.stringify(PAIRS)}.map(([a, b]) => [a, b,
        contrast(colour(a), colour(b))]).filter(p => !(p[2] >= 4.5));
    probe.remove();
    return bad;
})()`);

const background = "getComputedStyle(document.body).backgroundColor";


scenes.looks = async (browser, url) => {
    const page = await ready(browser, url, "script");

    // dark and light

    await page.prefers({ "prefers-color-scheme": "light" });
    is(await page.value(background), "rgb(255, 255, 255)", "light");
    is(await weak(page), [], "which can be read");
    await page.prefers({ "prefers-color-scheme": "dark" });

    const dark = await page.value(background);

    ok(/^rgb\([12]?\d, [12]?\d, [12]?\d\)$/.test(dark), "dark", dark);
    is(await weak(page), [], "which can be read, too");
    await page.click("#theme");
    is(await page.value(background), "rgb(255, 255, 255)", "the switch");
    await page.send("Page.reload");
    await page.until(`${many("#model option")} > 1`);
    is(await page.value(background), "rgb(255, 255, 255)", "which stays");
    await page.prefers({ "prefers-color-scheme": "light" });
    await page.click("#theme");
    is(await page.value(background), dark, "dark against the system");

    // names of what can be used

    const nameless = `[...document.querySelectorAll("button, input, select,`
        + ` textarea")].filter(e => !e.hidden && !(e.labels?.length`
        + ` || e.getAttribute("aria-label") || e.innerText?.trim()))`
        + `.map(e => e.outerHTML.slice(0, 80))`;

    await say(page, "hostile");
    is(await page.value(nameless), [], "all have a name");
    await page.click("#settings-open");
    is(await page.value(nameless), [], "those of the settings, too");
    is(await page.value("document.activeElement.name"), "key",
       "the focus is in the dialog");
    await page.press("Escape");
    is(await page.value("document.activeElement.id"), "settings-open",
       "and returns");
    is(await page.value(`${THREAD}.getAttribute("aria-live")`), "polite",
       "answers are announced");
    is(await page.value(`${THREAD}.getAttribute("aria-busy")`), "false",
       "when they are complete");

    // a phone

    await page.size(360, 740, { mobile: true });

    const wide = "document.documentElement.scrollWidth > innerWidth";

    is(await page.value(wide), false, "a phone: nothing is too wide");
    is(await page.value("document.querySelector('#scroll').scrollWidth >"
        + " document.querySelector('#scroll').clientWidth"), false,
       "neither are messages");
    is(await page.value("getComputedStyle(document.querySelector('#side'))"
        + ".visibility"), "hidden", "the list is aside");
    await page.click("#side-open");
    ok(await page.until("getComputedStyle(document.querySelector('#side'))"
        + ".visibility === 'visible'"), "and comes");
    await page.until("document.querySelector('#side').getBoundingClientRect()"
                     + ".left === 0");
    await page.click("#side-close");
    ok(await page.until("getComputedStyle(document.querySelector('#side'))"
        + ".visibility === 'hidden'"), "and goes");
    await page.fill("#prompt", "a");
    await page.press("Enter");
    is(await page.value("document.querySelector('#prompt').value"), "a\n",
       "Enter begins a line there");

    clean(page, url);
};


// ---- the server ----

scenes.server = async (browser, url, other) => {
    const page = await ready(browser, url, "demo");
    const state = model => `[...document.querySelectorAll(".model")].find(`
        + `m => m.querySelector("b").textContent === "${model}")`
        + `?.querySelector(".badge").textContent`;

    ok(await page.until("!document.querySelector('#admin-open').hidden"),
       "the server may be looked at");
    await page.click("#admin-open");
    is(await page.until(state("demo")), "ready", "a model is ready");
    ok(/running\s.*waiting/s.test(await page.value(textOf("#admin .figures"))),
       "figures", await page.value(textOf("#admin .figures")));
    await page.click("[aria-label='Unload demo']");
    await page.click("#ask .danger");
    ok(await page.until(`${state("demo")} === "stopped"`), "unloaded");
    await page.press("Escape");
    await page.until(`${many("dialog[open]")} === 0`);
    await write(page, "What is 2 + 2?");
    ok(await page.until(`${textOf(".error")}?.includes("has been unloaded")`),
       "a chat says so");
    await page.click("#admin-open");
    await page.click("[aria-label='Load demo']");
    ok(await page.until(`${state("demo")} === "ready"`), "loaded again");
    await page.fill("#admin [aria-label=Name]", "new");
    await page.fill("#admin form [required]:nth-of-type(2)", "x.gguf");
    await page.press("Enter");
    ok(await page.until(`${textOf("#admin [role=status]")}?.length > 10`),
       "what cannot be done is said",
       await page.value(textOf("#admin [role=status]")));
    await page.press("Escape");
    await page.until(`${many("dialog[open]")} === 0`);
    await page.click(".error button");
    ok(await page.until(`${textOf(LAST)}?.includes("4")`
                        + ` && ${many(".error")} === 0`), "trying again helps");
    clean(page, url);

    const without = await open(browser, other);

    await without.until(many("dialog[open]"));
    is(await without.value("document.querySelector('#admin-open').hidden"),
       true, "without a key there is no view of the server");
};


// ---- keys ----

scenes.keys = async (browser, url, secret) => {
    const page = await open(browser, url);
    const asked = `document.querySelector("#ask[open]") !== null`;

    ok(await page.until(asked), "401: the page asks for a key");
    await page.fill("#ask-field", "sk-wrong");
    await page.press("Enter");
    ok(await page.until(`${asked} &&`
        + ` document.querySelector("#ask-field")?.value === "sk-wrong"`),
       "a wrong one: again");
    await page.fill("#ask-field", secret);
    await page.press("Enter");
    ok(await page.until(`${many("#model option")} > 1`), "the right one");
    await choose(page, "script");
    await say(page, "plain");
    ok((await page.value(textOf(LAST))).includes("It is done"), "answers");
    await page.send("Page.reload");
    ok(await page.until(`${many("#model option")} > 1`), "it is kept");

    // a key that is no longer valid

    await page.click("#settings-open");
    await page.fill("[name=key]", "sk-old");
    await page.press("Tab");
    await page.until(asked);
    await page.press("Escape");
    await page.until(`!(${asked})`);
    await page.press("Escape");
    await write(page, "plain");
    ok(await page.until(`${textOf(".error")}?.includes("API key")`),
       "a chat without a key says what is missing");
    await page.click(".error button");
    await page.fill("#ask-field", secret);
    await page.press("Enter");
    ok(await page.until(`${many(".error")} === 0`
        + ` && ${textOf(LAST)}?.includes("It is done")`), "and goes on with it");

    clean(page, url);
};


// ---- a quota ----

scenes.quota = async (browser, url) => {
    const page = await ready(browser, url, "script");

    await say(page, "plain");
    await write(page, "plain");
    ok(await page.until(`/asks to wait \\d+ s/.test(${textOf(".error")})`),
       "429: how long to wait", await page.value(textOf(".error")));
    ok(/^Try again \(\d+ s\)$/.test(await page.value(textOf(".error button"))),
       "and a button", await page.value(textOf(".error button")));
    await page.click(".error button");
    ok(await page.until(`/asks to wait \\d+ s/.test(${textOf(".error")})`),
       "which asks again");
    is(await page.value(many(".message")), 4, "no message was lost or added");

    clean(page, url);
};


// ---- a model that is being loaded ----

scenes.loading = async (browser, url) => {
    const page = await ready(browser, url, "demo");

    await write(page, "What is 2 + 2?");
    ok(await page.until(`/being loaded/.test(${textOf(".error")})`
                        + ` && /\\d %/.test(${textOf(".error")})`
                        + ` && ${many("progress")}`),
       "a chat says how far the load is");
    await ended(page);
    ok((await page.value(textOf(LAST))).includes("4"), "which is answered then");
    is(await page.value(many(".error")), 0, "and nothing else is said");
    clean(page, url);

    // a page that is opened meanwhile: /health as it is for a while

    const other = await browser.page();

    await other.send("Page.addScriptToEvaluateOnNewDocument", { source: `
        const real = fetch;
        window.loaded = false;
        window.fetch = (url, ...rest) => String(url).endsWith("/health")
            && !window.loaded
            ? Promise.resolve(new Response(JSON.stringify({ models: [{
                id: "demo", status: "loading", progress: 0.25 }] }),
                { status: 503 }))
            : real(url, ...rest);` });
    await other.goto(url);
    ok(await other.until(`${textOf("#state")} === "loading, 25 %"`),
       "a page says so, too");
    await other.value("window.loaded = true");
    ok(await other.until(`${textOf("#state")} === ""`), "until it is there");
};


// ---- screenshots for the documentation ----

scenes.shots = async (browser, url, to) => {
    const page = await ready(browser, url, "demo");
    const shot = async name => {
        await page.value("document.activeElement.blur()");
        const png = await page.screenshot();
        writeFileSync(join(to, name), png);
        ok(png.length < 61440, `${name}: ${png.length} bytes`);
    };
    const talk = { title: "Streams in nginx", model: "demo", messages: [
        { role: "user", content: "How do tokens get to a client?" },
        { role: "assistant", model: "demo", reasoning: "They ask about"
          + " server-sent events.", content: "Each token is an **event** of"
          + " a response that stays open; `ngx_http_output_filter()` sends it"
          + " at once:\n\n```c\nwhile ((ev = llm_ring_next(ring)) != NULL) {\n"
          + "    rc = send_event(r, ev, \"data: \");   /* a chunk */\n}\n"
          + "```\n\n| part | where | time |\n|---|---|--:|\n| engine | a"
          + " thread | 21 ms |\n",
          figures: { rate: 47.3, first: 0.18, completion: 214, prompt: 32,
                     cached: 16, thinking: 1.4 } }] };
    const others = ["A haiku about queues", "Why is the sky blue?"].map(
        title => ({ title, messages: [{ role: "user", content: title }],
                    updated: 1 }));

    const dir = mkdtempSync(join(tmpdir(), "llm-web-"));

    writeFileSync(join(dir, "all.json"), JSON.stringify([talk, ...others]));

    const { root } = await page.send("DOM.getDocument");
    const { nodeId } = await page.send("DOM.querySelector",
        { nodeId: root.nodeId, selector: "#import-file" });

    await page.send("DOM.setFileInputFiles",
                    { nodeId, files: [join(dir, "all.json")] });
    await page.until(`${many("#list li")} === 3 && ${many(".message")} > 1`);
    rmSync(dir, { recursive: true });
    await page.size(850, 600);
    await page.click("#prompt");        // where the mouse is
    await shot("light.png");
    await page.value("document.documentElement.dataset.theme = 'dark'");
    await shot("dark.png");
    await page.click("#admin-open");
    await page.until(many(".model"));
    await page.until(many("#admin .figures div"));
    await shot("server.png");
    await page.press("Escape");
    await page.value("document.documentElement.dataset.theme = 'light'");
    await page.size(380, 640, { mobile: true });
    await shot("phone.png");
};


const [scene, ...args] = process.argv.slice(2);
const browser = await launch();

try {
    await scenes[scene](browser, ...args);
} catch (e) {
    ok(false, `the scene "${scene}" runs to its end`, e.stack);
} finally {
    await browser.close();
}

done();
