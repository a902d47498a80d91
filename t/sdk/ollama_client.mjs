// The official ollama package for JavaScript against a running server.
//
// usage: node ollama_client.mjs BASE_URL
//
// Prints TAP.

import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.OPENAI_NODE_MODULES + "/");
const { Ollama } = require("ollama");

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

const client = new Ollama({ host: process.argv[2].replace(/\/v1$/, "") });
const ask = {
    model: "demo", options: { temperature: 0 },
    messages: [{ role: "user", content: "What is 2 + 2?" }],
};

const whole = await client.chat({ ...ask, stream: false });
ok(whole.message.content === "2 + 2 = 4." && whole.done_reason === "stop",
   "a chat", whole);
ok(whole.eval_count > 0 && whole.prompt_eval_count > 0
   && whole.total_duration > 0, "its figures", whole);

let text = "";
let last;
for await (const part of await client.chat({ ...ask, stream: true })) {
    text += part.message.content;
    last = part;
}
ok(text === whole.message.content && last.done, "a stream", last);

const formed = await client.chat({
    ...ask, stream: false, format: {
        type: "object", properties: { a: { type: "integer", enum: [3] } },
        required: ["a"],
    },
});
ok(JSON.parse(formed.message.content).a === 3, "a schema", formed);

const tools = [{
    type: "function", function: {
        name: "add", description: "Adds.",
        parameters: { type: "object", properties: {
            a: { type: "number", description: "a number" } } },
    },
}];
const called = await client.chat({
    ...ask, stream: false, tools, messages: [
        ...ask.messages,
        { role: "assistant", content: "", tool_calls: [
            { function: { name: "add", arguments: { a: 4 } } }] },
        { role: "tool", content: "4", tool_name: "add" },
    ],
});
ok(called.done, "tools, a call and its result", called);

const written = await client.generate({
    model: "demo", prompt: "What is 2 + 2?", options: { temperature: 0 },
    stream: false });
ok(written.response === "2 + 2 = 4." && written.context.length > 0, "a text",
   written);
const next = await client.generate({
    model: "demo", prompt: "What is 3 + 3?", context: written.context,
    options: { temperature: 0 }, stream: false });
ok(next.prompt_eval_count > written.prompt_eval_count,
   "goes on by its context", next);

const names = (await client.list()).models.map((m) => m.name);
ok(names.includes("demo:latest"), "list", names);
const shown = await client.show({ model: "demo" });
ok(shown.capabilities.includes("completion")
   && shown.model_info["general.architecture"] === "qwen3", "show", shown);
const running = (await client.ps()).models;
ok(running.length > 0 && running[0].name === "demo:latest", "ps", running);
const vectors = await client.embed({ model: "demo", input: ["a", "b"] });
ok(vectors.embeddings.length === 2, "embed", vectors);
const vector = await client.embeddings({ model: "demo", prompt: "a" });
ok(vector.embedding.length > 1, "embeddings", vector);
const version = await client.version();
ok(/^\d+\./.test(version.version), "version", version);

// what is to come back: t/lib/LLM/Media.pm
const known = JSON.parse(fs.readFileSync(process.env.LLM_MEDIA, "utf8"));
const seen = await client.chat({
    model: "sees", stream: false, options: { temperature: 0, num_predict: 12 },
    messages: [{ role: "user", content: known.question,
                 images: [new Uint8Array(fs.readFileSync(known.picture))] }] });
ok(seen.message.content === known.first.said
   && seen.prompt_eval_count === known.first.tokens, "a picture", seen);

async function refused(what, status, call) {
    try {
        await call();
        ok(false, what);
    } catch (e) {
        ok(e.status_code === status && typeof e.error === "string"
           && !e.error.includes("{"), what, { e, text: String(e) });
    }
}

await refused("a model that is not there", 404,
              () => client.chat({ ...ask, model: "none" }));
await refused("a model to be fetched", 400,
              () => client.pull({ model: "demo" }));

const stream = await client.generate({
    model: "demo", prompt: "Count to a thousand.", stream: true,
    options: { num_predict: 400 } });
try {
    for await (const part of stream) {
        stream.abort();
    }
    ok(true, "a stream that is aborted");
} catch (e) {
    ok(e.name === "AbortError", "a stream that is aborted", String(e));
}

console.log(`1..${count}`);
process.exit(failed > 0 ? 1 : 0);
