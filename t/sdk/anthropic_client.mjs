// The official Anthropic package for JavaScript against a running server.
//
// usage: node anthropic_client.mjs BASE_URL
//
// Prints TAP.

import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.OPENAI_NODE_MODULES + "/");
const Anthropic = require("@anthropic-ai/sdk");

let count = 0;
let failed = 0;

function ok(good, name, note) {
    count++;
    if (!good) {
        failed++;
    }
    console.log(`${good ? "ok" : "not ok"} ${count} - ${name}`);
    if (!good && note !== undefined) {
        console.log("# " + JSON.stringify(note));
    }
}

const client = new Anthropic({
    baseURL: process.argv[2].replace(/\/v1$/, ""), apiKey: "none",
    maxRetries: 0, timeout: 600000,
});
const ask = {
    model: "demo", max_tokens: 100, temperature: 0,
    messages: [{ role: "user", content: "What is 2 + 2?" }],
};

const whole = await client.messages.create(ask);
ok(/4/.test(whole.content[0].text) && whole.stop_reason === "end_turn",
   "a message", whole);
ok(whole.usage.input_tokens > 0 && whole.usage.output_tokens > 0, "usage",
   whole.usage);

const kinds = [];
let text = "";
for await (const event of await client.messages.create(
    { ...ask, stream: true })) {
    kinds.push(event.type);
    text += event.type === "content_block_delta" ? event.delta.text : "";
}
ok(text === whole.content[0].text, "deltas are the text", text);
ok(kinds[0] === "message_start" && kinds.at(-1) === "message_stop",
   "their order", kinds);

const final = await client.messages.stream(ask).finalMessage();
ok(final.content[0].text === text && final.stop_reason === "end_turn"
   && final.usage.output_tokens === whole.usage.output_tokens,
   "the package's own stream gathers it", final);

// what is to come back: t/lib/LLM/Media.pm
const known = JSON.parse(fs.readFileSync(process.env.LLM_MEDIA, "utf8"));
const look = {
    model: "sees", max_tokens: 12, temperature: 0,
    messages: [{ role: "user", content: [
        { type: "image", source: {
            type: "base64", media_type: "image/png",
            data: fs.readFileSync(known.picture).toString("base64") } },
        { type: "text", text: known.question }] }],
};
const seen = await client.messages.create(look);
ok(seen.content[0].text === known.first.said
   && seen.usage.input_tokens + seen.usage.cache_read_input_tokens
      === known.first.tokens, "a picture", seen);
const described = await client.messages.stream(look).finalMessage();
ok(described.content[0].text === known.first.said, "a picture, streamed",
   described);

async function refused(args) {
    try {
        await client.messages.create({ ...ask, ...args });
    } catch (e) {
        return e;
    }
    return null;
}

let e = await refused({ model: "nobody" });
ok(e instanceof Anthropic.NotFoundError
   && e.error.error.type === "not_found_error",
   "NotFoundError for an unknown model", e);
e = await refused({ system: "word ".repeat(20000), stream: true });
ok(e instanceof Anthropic.BadRequestError
   && /prompt is too long/.test(e.message), "too long a prompt", e);

console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
