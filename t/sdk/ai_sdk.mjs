// The Vercel AI SDK (the package "ai") against a running server, by each of
// its providers: @ai-sdk/openai by Responses, which is its default, and by
// chat completions, @ai-sdk/openai-compatible and @ai-sdk/anthropic.
//
// usage: node ai_sdk.mjs BASE_URL
//
// Prints TAP.  Answers are the demo model's, and where reasoning and a text
// come before calls, those of a script (t/agents); all requests are greedy.

import fs from "node:fs";
import buffer from "node:buffer";
import { createRequire } from "node:module";

// Node 18, which Debian 12 has, has no such global
globalThis.File ??= buffer.File;

const require = createRequire(process.env.OPENAI_NODE_MODULES + "/");
const ai = require("ai");
const { createAnthropic } = require("@ai-sdk/anthropic");
const { createOpenAI } = require("@ai-sdk/openai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
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

const baseURL = process.argv[2];
const openai = createOpenAI({ baseURL, apiKey: "none" });
const compatible = createOpenAICompatible({
    name: "nginx", baseURL, includeUsage: true,
    supportsStructuredOutputs: true,
});
const anthropic = createAnthropic({ baseURL, apiKey: "none" });

// the package warns of what it leaves out for a model that it does not know
globalThis.AI_SDK_LOG_WARNINGS = false;

// what a client would refer to by its id is sent: nothing is stored here
const providerOptions = { openai: { store: false } };

const asked = [];
const tools = {
    get_weather: ai.tool({
        description: "Get the weather of a place",
        inputSchema: z.object({ city: z.string().describe("the city") }),
        execute: async ({ city }) => {
            asked.push(city);
            return { temperature: 21, sky: "sunny" };
        },
    }),
};
// pictures and speech; what is to come back: t/lib/LLM/Media.pm
const known = JSON.parse(fs.readFileSync(process.env.LLM_MEDIA, "utf8"));
const picture = fs.readFileSync(known.picture);
const sum = z.object({ question: z.string().max(40), sum: z.number().int() });

async function parts(stream) {
    const types = [];
    for await (const part of stream) {
        if (types.at(-1) !== part.type) {
            types.push(part.type);
        }
        if (part.type === "error") {
            throw part.error;
        }
    }
    return types;
}

// thinks: reasoning goes in both directions, with these options

async function provider(name, of, thinks) {
    const greedy = { model: of("demo"), temperature: 0, maxRetries: 0,
                     maxOutputTokens: 200, providerOptions };

    const whole = await ai.generateText(
        { ...greedy, prompt: "What is 2 + 2?" });
    ok(/4/.test(whole.text) && whole.finishReason === "stop",
       `${name}: generateText`, whole.text);
    ok(whole.usage.inputTokens > 0
       && whole.usage.totalTokens
          === whole.usage.inputTokens + whole.usage.outputTokens,
       `${name}: usage adds up`, whole.usage);

    const streamed = ai.streamText({ ...greedy, prompt: "What is 2 + 2?" });
    const types = await parts(streamed.fullStream);
    ok(await streamed.text === whole.text, `${name}: streamText, the same`,
       await streamed.text);
    ok(types.join() === "start,start-step,text-start,text-delta,text-end,"
                        + "finish-step,finish",
       `${name}: the parts of its stream`, types);
    ok((await streamed.usage).outputTokens === whole.usage.outputTokens,
       `${name}: and its usage`, await streamed.usage);

    asked.length = 0;
    const loop = await ai.generateText({
        ...greedy, tools, stopWhen: ai.stepCountIs(3),
        prompt: "What is the weather in Paris?" });
    ok(asked.join() === "Paris" && loop.steps.length === 2,
       `${name}: generateText runs a tool`, [asked, loop.steps.length]);
    ok(loop.steps[0].finishReason === "tool-calls" && /21/.test(loop.text),
       `${name}: and tells its result`, loop.text);

    asked.length = 0;
    const running = ai.streamText({
        ...greedy, tools, stopWhen: ai.stepCountIs(3),
        prompt: "What is the weather in Paris?" });
    const steps = await parts(running.fullStream);
    ok(asked.join() === "Paris"
       && ["tool-input-start", "tool-input-delta", "tool-input-end",
           "tool-call", "tool-result"].every((t) => steps.includes(t)),
       `${name}: streamText runs a tool`, steps);
    ok(await running.text === loop.text, `${name}: and tells the same`,
       await running.text);

    const commands = [];
    const shell = ai.tool({
        description: "Run a command",
        inputSchema: z.object({ command: z.string() }),
        execute: async ({ command }) => {
            commands.push(command);
            return command === "cat note.txt" ? "lilac" : "";
        },
    });
    const ended = ai.streamText({
        model: of("script"), maxRetries: 0, tools: { bash: shell },
        providerOptions: thinks ?? providerOptions,
        stopWhen: ai.stepCountIs(3), prompt: "Read note.txt." });
    const kinds = await parts(ended.fullStream);
    const step = (await ended.steps)[0];
    ok((!thinks || step.reasoningText === "The file will tell.")
       && step.text === "I will look.", `${name}: reasoning and a text`, kinds);
    ok(commands.join() === "cat note.txt > copy.txt,cat note.txt",
       `${name}: two calls in one answer`, commands);
    ok(await ended.text === (thinks ? "The file says lilac, as I thought."
                                    : "The file says lilac."),
       `${name}: all of which goes back`, await ended.text);

    const chosen = await ai.generateText({
        ...greedy, tools, prompt: "Hello!",
        toolChoice: { type: "tool", toolName: "get_weather" } });
    ok(chosen.toolCalls.length === 1
       && typeof chosen.toolCalls[0].input.city === "string",
       `${name}: a chosen tool is called`, chosen.toolCalls);

    const object = await ai.generateText({
        ...greedy, output: ai.Output.object({ schema: sum }),
        prompt: "What is 2 + 2?" });
    ok(Number.isInteger(object.output.sum), `${name}: an object by a schema`,
       object.output);

    const growing = ai.streamText({
        ...greedy, output: ai.Output.object({ schema: sum }),
        prompt: "What is 2 + 2?" });
    let last;
    for await (const partial of growing.partialOutputStream) {
        last = partial;
    }
    ok(JSON.stringify(last) === JSON.stringify(object.output),
       `${name}: streamed, the same object`, last);

    const choice = await ai.generateText({
        ...greedy, output: ai.Output.choice({ options: ["warm", "cold"] }),
        prompt: "Is fire warm or cold?" });
    ok(["warm", "cold"].includes(choice.output), `${name}: a choice`,
       choice.output);

    const cut = await ai.generateText(
        { ...greedy, prompt: "Count to fifty.", maxOutputTokens: 5 });
    ok(cut.finishReason === "length" && cut.usage.outputTokens === 5,
       `${name}: maxOutputTokens`, [cut.finishReason, cut.usage]);

    const seen = await ai.generateText({
        ...greedy, model: of("sees"), maxOutputTokens: 12,
        messages: [{ role: "user", content: [
            { type: "image", image: picture },
            { type: "text", text: known.question }] }] });
    ok(seen.text === known.first.said
       && seen.usage.inputTokens === known.first.tokens,
       `${name}: a picture`, [seen.text, seen.usage]);

    const abort = new AbortController();
    let deltas = 0;
    for await (const part of ai.streamText(
        { ...greedy, prompt: "Count to fifty.",
          abortSignal: abort.signal }).fullStream) {
        if (part.type === "text-delta" && ++deltas === 2) {
            abort.abort();
        }
    }
    ok(deltas >= 2, `${name}: a stream can be aborted`, deltas);

    let e = null;
    try {
        await ai.generateText({ ...greedy, prompt: "word ".repeat(20000) });
    } catch (caught) {
        e = caught;
    }
    ok(ai.APICallError.isInstance(e) && e.statusCode === 400
       && !e.isRetryable && /context/.test(e.message),
       `${name}: a prompt that is too long`, e && e.message);
}

await provider("openai", openai, { openai: {
    store: false, forceReasoning: true, reasoningSummary: "auto" } });
await provider("openai, chat", openai.chat);
await provider("openai-compatible", compatible, {});
await provider("anthropic", anthropic, {});

const completion = await ai.generateText({
    model: openai.completion("demo"), temperature: 0, maxOutputTokens: 4,
    maxRetries: 0, prompt: "The sky is" });
ok(completion.text !== "", "completions", completion.text);

const texts = ["one two", "red blue"];
for (const [name, model] of [["openai", openai.embedding("demo")],
                             ["openai-compatible",
                              compatible.embeddingModel("demo")]]) {
    const made = await ai.embedMany({ model, values: texts, maxRetries: 0 });
    ok(made.embeddings.length === 2
       && Math.abs(ai.cosineSimilarity(made.embeddings[0],
                                       made.embeddings[0]) - 1) < 1e-6
       && made.usage.tokens > 0, `${name}: embedMany`, made.usage);
}

const heard = await ai.experimental_transcribe({
    model: openai.transcription("whisper-1"), maxRetries: 0,
    audio: fs.readFileSync(known.speech), providerOptions: { openai: {
        language: "en", temperature: 0.4,
        timestampGranularities: ["word"] } } });
ok(heard.text === known.worded && heard.durationInSeconds === 2
   && JSON.stringify(heard.segments.map((s) => s.startSecond))
      === JSON.stringify(known.words.map((w) => w.start)),
   "openai: transcribe, with words", heard);
if (known.recording) {
    const recorded = await ai.experimental_transcribe({
        model: openai.transcription("whisper-1"), maxRetries: 0,
        audio: fs.readFileSync(known.recording), providerOptions: {
            openai: { temperature: 0 } } });
    ok(recorded.text === known.recorded, "openai: a browser's recording",
       recorded);
}

const talk = async (options) => {
    const greedy = { model: openai("demo"), temperature: 0, maxRetries: 0,
                     providerOptions: options };
    const first = await ai.generateText({
        ...greedy, tools, stopWhen: ai.stepCountIs(3),
        prompt: "What is the weather in Paris?" });
    return ai.generateText({
        ...greedy, messages: [...first.response.messages,
                              { role: "user", content: "What is 2 + 2?" }] });
};

const whole = await talk(providerOptions);
ok(/4/.test(whole.text), "openai: a talk goes on", whole.text);

let refused = null;
try {
    await talk({});
} catch (e) {
    refused = e;
}
ok(refused && refused.statusCode === 400
   && /"store": false/.test(refused.message),
   "openai: with items of which only the id is sent it does not",
   refused && refused.message);

console.log(`1..${count}`);
process.exit(failed ? 1 : 0);
