// The official openai package for JavaScript against a running server.
//
// usage: node openai_client.mjs BASE_URL
//
// Prints TAP.  NODE_PATH does not work for ES modules, so the package is
// resolved from the folder that OPENAI_NODE_MODULES names.

import fs from "node:fs";
import buffer from "node:buffer";
import { createRequire } from "node:module";

// Node 18, which Debian 12 has, has no such global
globalThis.File ??= buffer.File;

const require = createRequire(process.env.OPENAI_NODE_MODULES + "/");
const OpenAI = require("openai");
const { zodFunction, zodResponseFormat } = require("openai/helpers/zod");
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
const ask = (text) => [{ role: "user", content: text }];
const create = (args) => client.chat.completions.create(
    { model: "demo", temperature: 0, ...args });

async function refused(args) {
    try {
        await create(args);
    } catch (e) {
        return e;
    }
    return null;
}

const models = await client.models.list();
ok(models.data.some((m) => m.id === "demo"), "models.list", models.data);

const whole = await create({ messages: ask("What is 2 + 2?") });
ok(/4/.test(whole.choices[0].message.content), "chat: an answer", whole);
ok(whole.usage.total_tokens
   === whole.usage.prompt_tokens + whole.usage.completion_tokens,
   "chat: usage adds up", whole.usage);

let text = "";
let roles = 0;
let finish = null;
for await (const chunk of await create(
    { messages: ask("What is 2 + 2?"), stream: true })) {
    const choice = chunk.choices[0];
    roles += choice.delta.role ? 1 : 0;
    text += choice.delta.content ?? "";
    finish = choice.finish_reason ?? finish;
}
ok(text === whole.choices[0].message.content, "stream equals whole",
   [text, whole.choices[0].message.content]);
ok(roles === 1 && finish === "stop", "one role, one finish",
   [roles, finish]);

const runner = client.chat.completions.stream(
    { model: "demo", temperature: 0, messages: ask("What is 2 + 2?") });
const final = await runner.finalChatCompletion();
ok(final.choices[0].message.content === text,
   "the package's stream helper gathers the same text", final);

const several = await create(
    { n: 3, temperature: 1, seed: 1, messages: ask("Hello!") });
ok(several.choices.map((c) => c.index).join() === "0,1,2", "n = 3", several);

const asked = [];
const loop = client.chat.completions.runTools({
    model: "demo", temperature: 0, stream: true,
    messages: ask("What is the weather in Paris?"),
    tools: [{ type: "function", function: {
        name: "get_weather", description: "Get the weather of a place",
        parameters: { type: "object", properties: {
            city: { type: "string", description: "the city" } },
            required: ["city"] },
        parse: JSON.parse,
        function: (args) => {
            asked.push(args.city);
            return '{"temperature": 21, "sky": "sunny"}';
        } } }] });
const told = await loop.finalContent();
ok(asked.join() === "Paris", "runTools calls the tool", asked);
ok(/21/.test(told), "and tells its result", told);

const Sum = z.object({ question: z.string().max(40), sum: z.number().int(),
                      steps: z.array(z.string().max(20)).max(2),
                      sure: z.enum(["yes", "no"]).nullable() });
const sum = { model: "demo", temperature: 0, messages: ask("What is 2 + 2?"),
              response_format: zodResponseFormat(Sum, "sum") };
const parsed = await client.chat.completions.parse(sum);
ok(Number.isInteger(parsed.choices[0].message.parsed.sum)
   && Sum.safeParse(parsed.choices[0].message.parsed).success,
   "parse: an object by a schema", parsed.choices[0].message);
const growing = client.chat.completions.stream(sum);
const grown = (await growing.finalChatCompletion()).choices[0].message.parsed;
ok(JSON.stringify(grown) === JSON.stringify(parsed.choices[0].message.parsed),
   "streamed, the same object", grown);

const called = await client.chat.completions.parse({
    model: "demo", temperature: 0, tool_choice: "required",
    messages: ask("What is the weather in Paris?"),
    tools: [zodFunction({ name: "get_weather",
                          parameters: z.object({ city: z.string() }) })] });
ok(called.choices[0].message.tool_calls[0].function.parsed_arguments.city
   === "Paris", "parse: a call's arguments", called.choices[0].message);

const aborted = await create(
    { messages: ask("Count to fifty."), stream: true });
let seen = 0;
for await (const chunk of aborted) {
    seen += chunk.choices.length;
    if (seen === 2) {
        aborted.controller.abort();
    }
}
ok(seen >= 2, "a stream can be aborted", seen);

let e = await refused({ messages: ask("Hi"), top_p: 2 });
ok(e instanceof OpenAI.BadRequestError && e.param === "top_p",
   "BadRequestError names top_p", e);
e = await refused({ model: "nobody-knows", messages: ask("Hi") });
ok(e instanceof OpenAI.NotFoundError && e.code === "model_not_found",
   "NotFoundError for an unknown model", e);
e = await refused({ messages: ask("word ".repeat(20000)) });
ok(e instanceof OpenAI.BadRequestError
   && e.code === "context_length_exceeded", "context_length_exceeded", e);

const completion = await client.completions.create(
    { model: "demo", prompt: "The sky is", max_tokens: 4, temperature: 0,
      echo: true });
ok(completion.choices[0].text.startsWith("The sky is"), "completions: echo",
   completion);

const texts = ["one two", "red blue"];
const embedded = await client.embeddings.create(
    { model: "demo", input: texts });
const floats = await client.embeddings.create(
    { model: "demo", input: texts, encoding_format: "float" });
ok(embedded.data.length === 2 && embedded.data[1].index === 1
   && embedded.data[0].embedding.length > 8
   && embedded.data.every((d, i) => d.embedding.every(
       (v, k) => Math.abs(v - floats.data[i].embedding[k]) < 1e-7)),
   "embeddings, as base64 and as numbers", embedded.usage);

// pictures and speech; what is to come back: t/lib/LLM/Media.pm

const known = JSON.parse(fs.readFileSync(process.env.LLM_MEDIA, "utf8"));
const url = "data:image/png;base64,"
            + fs.readFileSync(known.picture).toString("base64");
const look = {
    model: "sees", max_tokens: 12, messages: [{ role: "user", content: [
        { type: "image_url", image_url: { url } },
        { type: "text", text: known.question }] }],
};
const pictured = await create(look);
ok(pictured.choices[0].message.content === known.first.said
   && pictured.usage.prompt_tokens === known.first.tokens, "a picture",
   pictured);
let described = "";
for await (const chunk of await create({ ...look, stream: true })) {
    described += chunk.choices[0]?.delta.content ?? "";
}
ok(described === known.first.said, "a picture, streamed", described);

const hear = (args) => client.audio.transcriptions.create({
    file: fs.createReadStream(known.speech), model: "whisper-1",
    temperature: 0.4, language: "en", ...args });

const heard = await hear({});
ok(heard.text === known.heard, "a transcription", heard);
const timed = await hear({ response_format: "verbose_json",
                           timestamp_granularities: ["word"] });
const flat = (words) => words.map((w) => [w.word, w.start, w.end]).join();
ok(flat(timed.words) === flat(known.words) && timed.text === known.worded
   && timed.duration === 2, "words", timed);
ok(await hear({ response_format: "srt" }) === known.srt, "srt");
let spoken = "";
let end;
for await (const event of await hear({ stream: true })) {
    spoken += event.delta ?? "";
    end = event;
}
ok(end.type === "transcript.text.done" && end.text === known.heard
   && spoken.trim() === known.heard, "a transcription, streamed", end);
const translated = await client.audio.translations.create({
    file: fs.createReadStream(known.speech), model: "whisper-1",
    temperature: 0.4 });
ok(translated.text === known.translated, "a translation", translated);
if (known.recording) {
    const recorded = await client.audio.transcriptions.create({
        file: await OpenAI.toFile(fs.readFileSync(known.recording),
                                  "recording.webm"), model: "whisper-1" });
    ok(recorded.text === known.recorded, "a browser's recording", recorded);
}

console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
