// Responses with the official openai package for JavaScript against a running
// server.
//
// usage: node openai_responses.mjs BASE_URL
//
// Prints TAP.

import fs from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(process.env.OPENAI_NODE_MODULES + "/");
const OpenAI = require("openai");
const { ResponsesWS } = require("openai/resources/responses/ws");
const { zodTextFormat } = require("openai/helpers/zod");
const { z } = require("zod");

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

const client = new OpenAI({
    baseURL: process.argv[2], apiKey: "none", maxRetries: 0, timeout: 600000,
});
const ask = { model: "demo", temperature: 0, input: "What is 2 + 2?" };

const whole = await client.responses.create(ask);
ok(/4/.test(whole.output_text) && whole.status === "completed",
   "output_text", whole);
ok(whole.usage.total_tokens
   === whole.usage.input_tokens + whole.usage.output_tokens,
   "usage adds up", whole.usage);

let text = "";
let numbers = true;
let next = 0;
let last = null;
for await (const event of await client.responses.create(
    { ...ask, stream: true })) {
    numbers = numbers && event.sequence_number === next++;
    text += event.type === "response.output_text.delta" ? event.delta : "";
    last = event;
}
ok(text === whole.output_text, "deltas are the text", text);
ok(numbers, "numbers in order", next);
ok(last.type === "response.completed"
   && last.response.output[0].content[0].text === text,
   "completed has it, too", last);

const stream = client.responses.stream(ask);
const final = await stream.finalResponse();
ok(final.output[0].content[0].text === text,
   "the package's own stream gathers it", final);

const again = await client.responses.create({
    model: "demo", temperature: 0, input: [
        { role: "user", content: "What is 2 + 2?" }, ...whole.output,
        { role: "user", content: "Hello!" }],
});
ok(again.output_text !== "", "an answer's items are taken back", again);

const Sum = z.object({ question: z.string().max(40), sum: z.number().int() });
const sum = { ...ask, text: { format: zodTextFormat(Sum, "sum") } };
const parsed = await client.responses.parse(sum);
ok(Number.isInteger(parsed.output_parsed.sum), "parse: an object by a schema",
   parsed.output);
const grown = await client.responses.stream(sum).finalResponse();
ok(JSON.stringify(grown.output_parsed)
   === JSON.stringify(parsed.output_parsed), "streamed, the same object",
   grown.output);

// what is to come back: t/lib/LLM/Media.pm
const known = JSON.parse(fs.readFileSync(process.env.LLM_MEDIA, "utf8"));
const look = {
    model: "sees", temperature: 0, max_output_tokens: 12,
    input: [{ role: "user", content: [
        { type: "input_image", detail: "auto",
          image_url: "data:image/png;base64,"
                     + fs.readFileSync(known.picture).toString("base64") },
        { type: "input_text", text: known.question }] }],
};
const seen = await client.responses.create(look);
ok(seen.output_text === known.first.said
   && seen.usage.input_tokens === known.first.tokens, "a picture", seen);
let described = "";
for await (const event of await client.responses.create(
    { ...look, stream: true })) {
    described += event.type === "response.output_text.delta" ? event.delta : "";
}
ok(described === known.first.said, "a picture, streamed", described);

async function refused(args) {
    try {
        await client.responses.create({ ...ask, ...args });
    } catch (e) {
        return e;
    }
    return null;
}

let e = await refused({ model: "nobody" });
ok(e instanceof OpenAI.NotFoundError && e.code === "model_not_found",
   "NotFoundError for an unknown model", e);
e = await refused({ input: "word ".repeat(20000), stream: true });
ok(e instanceof OpenAI.BadRequestError
   && e.code === "context_length_exceeded", "context_length_exceeded", e);

// by a WebSocket: turns one after the other, and streams beside each other

const socket = new ResponsesWS(client);
const messages = socket.stream();

// what is sent at once, by the number of answers: their texts and last events
async function turns(...bodies) {
    const got = {};
    for (const body of bodies) {
        socket.send({ type: "response.create", ...ask, ...body });
    }
    for (let left = bodies.length; left > 0;) {
        const { value, done } = await messages.next();
        if (done || value.type === "close") {
            break;
        }
        if (value.type === "error") {
            value.message = value.error.error ?? value.error;
        }
        const event = value.message;
        if (event === undefined) {
            continue;
        }
        const one = got[event.stream_id ?? ""] ??= { text: "" };
        one.text += event.type === "response.output_text.delta"
                    ? event.delta : "";
        if (event.type === "response.completed" || value.type === "error") {
            one.last = event;
            left--;
        }
    }
    return got;
}

let spoken = (await turns({}))[""];
ok(spoken.text === whole.output_text, "by a WebSocket: the same text", spoken);
const previous = spoken.last.response.id;
spoken = (await turns({ input: "And 3 + 3?",
                        previous_response_id: previous }))[""];
ok(spoken.last.response.usage.input_tokens > whole.usage.input_tokens,
   "with the response before", spoken);
spoken = (await turns({ previous_response_id: previous }))[""];
ok(JSON.stringify(spoken.last).includes("previous_response_not_found"),
   "which is the last alone", spoken);
const beside = await turns({ stream_id: "a" }, { stream_id: "b" });
ok(beside.a?.text === whole.output_text && beside.b?.text === whole.output_text,
   "two streams beside each other", beside);
socket.close();

console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
