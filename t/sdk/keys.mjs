// The same as keys.py with OpenAI's and Anthropic's JavaScript clients.

import { createRequire } from 'node:module';

const require = createRequire(`${process.env.OPENAI_NODE_MODULES}/`);
const { OpenAI } = require('openai');
const Anthropic = require('@anthropic-ai/sdk').Anthropic;

const [url, good, narrow] = process.argv.slice(2);
let count = 0;

const ok = (good, name) =>
    console.log(`${good ? 'ok' : 'not ok'} ${++count} - ${name}`);

const raised = async (kind, call, name) => {
    try {
        await call();
    } catch (e) {
        ok(e instanceof kind, name);
        return e;
    }

    ok(false, name);
    return null;
};

const theirs = (apiKey) => new OpenAI({ baseURL: url, apiKey, maxRetries: 0 });
const ours = (how) => new Anthropic({ baseURL: url.replace(/\/v1$/, ''),
                                      maxRetries: 0, ...how });

const ask = { model: 'demo', max_tokens: 1,
              messages: [{ role: 'user', content: 'a' }] };
const chat = (client) => client.chat.completions.create(ask);
const message = (client) => client.messages.create(ask);

ok((await chat(theirs(good))).choices.length === 1, 'openai: a key');

let e = await raised(OpenAI.AuthenticationError,
                     () => chat(theirs(`${good}x`)), 'openai: a wrong key');

ok(e?.code === 'invalid_api_key', 'invalid_api_key');

e = await raised(OpenAI.PermissionDeniedError, () => chat(theirs(narrow)),
                 'openai: a model');
ok(e?.code === 'model_not_allowed', 'model_not_allowed');

ok((await message(ours({ apiKey: good }))).content, 'anthropic: a key');
ok((await message(ours({ apiKey: null, authToken: good }))).content,
   'anthropic: a bearer token');
await raised(Anthropic.AuthenticationError,
             () => message(ours({ apiKey: `${good}x` })),
             'anthropic: a wrong key');
await raised(Anthropic.PermissionDeniedError,
             () => message(ours({ apiKey: narrow })), 'anthropic: a model');

console.log(`1..${count}`);
