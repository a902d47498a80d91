"""The official openai package for Python against a running server.

usage: openai_client.py BASE_URL   (http://127.0.0.1:PORT/v1)

Prints TAP.  Every check is on what the package hands to a program, so a
frame or a body that it cannot parse fails here.
"""

import asyncio
import base64
import json
import os
import sys

import openai

BASE = sys.argv[1]
COUNT = 0
FAILED = 0


def ok(good, name, note=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(("ok" if good else "not ok"), COUNT, "-", name, flush=True)
    if not good and note != "":
        print("#", str(note).replace("\n", "\n# "), flush=True)


def client(**kwargs):
    return openai.OpenAI(base_url=BASE, api_key="none", max_retries=0,
                         timeout=600, **kwargs)


def ask(text):
    return [{"role": "user", "content": text}]


def check_models(c):
    ids = [m.id for m in c.models.list()]
    ok("demo" in ids, "models.list has the model", ids)
    m = c.models.retrieve("demo")
    ok(m.id == "demo" and m.object == "model" and m.owned_by,
       "models.retrieve", m)
    try:
        c.models.retrieve("nobody")
        ok(False, "an unknown model is an error")
    except openai.NotFoundError as e:
        ok(e.code == "model_not_found", "an unknown model is NotFoundError",
           e.body)


def check_chat(c):
    r = c.chat.completions.create(model="demo", temperature=0,
                                  messages=ask("What is 2 + 2?"))
    m = r.choices[0].message
    ok(r.object == "chat.completion" and r.id.startswith("chatcmpl-"),
       "chat: object and id", r)
    ok("4" in (m.content or "") and m.role == "assistant",
       "chat: an answer", m)
    ok(r.choices[0].finish_reason == "stop", "chat: finish_reason",
       r.choices[0])
    u = r.usage
    ok(u.prompt_tokens > 0 and u.completion_tokens > 0
       and u.total_tokens == u.prompt_tokens + u.completion_tokens
       and u.prompt_tokens_details.cached_tokens >= 0, "chat: usage", u)
    ok(bool(r.system_fingerprint) and r.created > 0 and r.model,
       "chat: fingerprint, created, model", r)
    return m.content


def check_stream(c, whole):
    text, roles, last, usage = "", [], None, None
    stream = c.chat.completions.create(
        model="demo", temperature=0, stream=True,
        stream_options={"include_usage": True},
        messages=ask("What is 2 + 2?"))
    for chunk in stream:
        if chunk.usage:
            usage = chunk.usage
            ok(chunk.choices == [], "stream: the usage chunk has no choice",
               chunk)
            continue
        d = chunk.choices[0]
        if d.delta.role:
            roles.append((d.delta.role, text))
        text += d.delta.content or ""
        last = d
    ok(roles == [("assistant", "")], "stream: the role once, first", roles)
    ok(text == whole, "stream: the same text as at once", (text, whole))
    ok(last.finish_reason == "stop" and not last.delta.content,
       "stream: the last delta is empty", last)
    ok(usage is not None and usage.completion_tokens > 0,
       "stream: usage came", usage)


def check_options(c):
    r = c.chat.completions.create(model="demo", n=2, temperature=1.0, seed=7,
                                  messages=ask("Hello!"))
    ok([x.index for x in r.choices] == [0, 1], "n = 2 gives two choices", r)

    r = c.chat.completions.create(model="demo", max_completion_tokens=1,
                                  messages=ask("Count to ten."))
    ok(r.choices[0].finish_reason == "length"
       and r.usage.completion_tokens == 1, "max_completion_tokens", r)

    r = c.chat.completions.create(model="demo", temperature=0, stop=["4"],
                                  messages=ask("What is 2 + 2?"))
    ok("4" not in r.choices[0].message.content
       and r.choices[0].finish_reason == "stop", "stop is never sent", r)

    r = c.chat.completions.create(model="demo", temperature=0, logprobs=True,
                                  top_logprobs=3, max_tokens=4,
                                  messages=ask("What is 2 + 2?"))
    lp = r.choices[0].logprobs.content
    ok(len(lp) == 4 and all(len(x.top_logprobs) >= 3 for x in lp)
       and all(x.token in [t.token for t in x.top_logprobs] for x in lp)
       and "".join(x.token for x in lp) == r.choices[0].message.content,
       "logprobs with the token among the top", lp)

    a, b = [c.chat.completions.create(model="demo", seed=5, temperature=1.2,
                                      messages=ask("Tell me something."))
            .choices[0].message.content for _ in range(2)]
    ok(a == b, "the same seed gives the same text", (a, b))

    parts = [{"type": "text", "text": "What is"},
             {"type": "text", "text": "2 + 2?"}]
    r = c.chat.completions.create(
        model="demo", temperature=0,
        messages=[{"role": "user", "content": parts}])
    ok(r.choices[0].message.content, "content in parts", r)


def check_completions(c):
    r = c.completions.create(model="demo", prompt=["One, two,", "Red and"],
                             max_tokens=4, temperature=0, echo=True)
    ok([x.index for x in r.choices] == [0, 1]
       and r.choices[0].text.startswith("One, two,")
       and r.choices[1].text.startswith("Red and"),
       "completions: two prompts, echo", r)

    r = c.completions.create(model="demo", prompt=[5, 6, 7], max_tokens=3)
    ok(r.usage.prompt_tokens == 3, "completions: token ids", r.usage)

    text = "".join(x.choices[0].text for x in c.completions.create(
        model="demo", prompt="The sky is", max_tokens=5, temperature=0,
        stream=True) if x.choices)
    whole = c.completions.create(model="demo", prompt="The sky is",
                                 max_tokens=5, temperature=0)
    ok(text == whole.choices[0].text, "completions: stream equals whole",
       (text, whole))

    r = c.completions.create(model="demo", prompt="The sky is", logprobs=2,
                             max_tokens=3, temperature=0,
                             extra_body={"min_tokens": 3})
    lp = r.choices[0].logprobs
    ok(len(lp.tokens) == len(lp.token_logprobs) == len(lp.text_offset) == 3,
       "completions: logprobs in their own format", lp)


def check_embeddings(c):
    """Without encoding_format the package asks for base64."""
    texts = ["one two", "red blue", "one two"]
    r = c.embeddings.create(model="demo", input=texts)
    vectors = [d.embedding for d in r.data]
    width = len(vectors[0])
    ok([d.index for d in r.data] == [0, 1, 2] and width > 8
       and vectors[0] == vectors[2] != vectors[1],
       "embeddings: three inputs", [v[:3] for v in vectors])
    ok(abs(sum(v * v for v in vectors[0]) - 1) < 1e-5,
       "embeddings: of length 1")
    ok(r.usage.prompt_tokens == r.usage.total_tokens > 0,
       "embeddings: usage", r.usage)
    r = c.embeddings.create(model="demo", input=texts,
                            encoding_format="float")
    ok(all(abs(a - b) < 1e-7 for d, v in zip(r.data, vectors)
           for a, b in zip(d.embedding, v)),
       "embeddings: the same as numbers")
    r = c.embeddings.create(model="demo", input=[5, 6, 7], dimensions=8)
    ok(len(r.data[0].embedding) == 8, "embeddings: ids, dimensions", r)
    try:
        c.embeddings.create(model="demo", input="a", dimensions=10**6)
        ok(False, "embeddings: too many dimensions are refused")
    except openai.BadRequestError as e:
        ok(e.param == "dimensions", "embeddings: an error", e.body)


def expect(c, error, param, **kwargs):
    args = {"model": "demo", "messages": ask("Hi")}
    args.update(kwargs)
    try:
        c.chat.completions.create(**args)
        ok(False, f"{kwargs} is refused")
    except error as e:
        ok(e.param == param, f"{error.__name__} names {param}", e.body)


def check_errors(c):
    expect(c, openai.BadRequestError, "temperature", temperature=3)
    expect(c, openai.BadRequestError, "messages", messages=[])
    expect(c, openai.BadRequestError, "top_p", top_p="high")
    expect(c, openai.BadRequestError, "max_tokens", max_tokens=-2)
    try:
        c.chat.completions.create(model="demo",
                                  messages=ask("word " * 20000))
        ok(False, "a prompt that is too long is refused")
    except openai.BadRequestError as e:
        ok(e.code == "context_length_exceeded",
           "context_length_exceeded", e.body)
    try:
        for _ in c.chat.completions.create(model="demo", stream=True,
                                           messages=ask("word " * 20000)):
            pass
        ok(False, "in a stream too")
    except openai.BadRequestError as e:
        ok(e.code == "context_length_exceeded",
           "before any event of a stream too", e.body)
    try:
        c.chat.completions.create(model="no-such-thing", messages=ask("Hi"))
        ok(False, "an unknown model is refused")
    except openai.NotFoundError as e:
        ok(e.code == "model_not_found", "model_not_found", e.body)


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather of a place",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "the city"}},
        "required": ["city"]}}}


def check_tools(c):
    messages = ask("What is the weather in Paris?")
    r = c.chat.completions.create(model="demo", temperature=0,
                                  messages=messages, tools=[WEATHER])
    m = r.choices[0].message
    calls = m.tool_calls or []
    ok(r.choices[0].finish_reason == "tool_calls" and len(calls) == 1
       and calls[0].function.name == "get_weather"
       and json.loads(calls[0].function.arguments) == {"city": "Paris"},
       "tools: a call", r.choices[0])

    with c.chat.completions.stream(model="demo", temperature=0,
                                   messages=messages, tools=[WEATHER]) as s:
        kinds = [e.type for e in s]
        final = s.get_final_completion().choices[0].message
    ok("tool_calls.function.arguments.done" in kinds
       and final.tool_calls[0].function.arguments
           == calls[0].function.arguments,
       "tools: the stream helper gathers the same", (kinds, final))

    messages += [m, {"role": "tool", "tool_call_id": calls[0].id,
                     "content": '{"temperature": 21, "sky": "sunny"}'}]
    r = c.chat.completions.create(model="demo", temperature=0,
                                  messages=messages, tools=[WEATHER])
    ok(r.choices[0].finish_reason == "stop"
       and "21" in r.choices[0].message.content,
       "tools: the result is answered", r.choices[0])


def check_reasoning(c):
    r = c.chat.completions.create(
        model="demo", temperature=0, messages=ask("What is 2 + 2?"),
        extra_body={"chat_template_kwargs": {"enable_thinking": True}})
    m = r.choices[0].message
    ok(m.reasoning_content and m.reasoning == m.reasoning_content
       and "4" in m.content and "<" not in m.content,
       "reasoning is apart from content", m)
    ok(r.usage.completion_tokens_details.reasoning_tokens > 0,
       "reasoning_tokens", r.usage)


def check_picture(c):
    """What is to come back: t/lib/LLM/Media.pm."""
    with open(os.environ["LLM_MEDIA"]) as f:
        known = json.load(f)
    with open(known["picture"], "rb") as f:
        url = "data:image/png;base64," + base64.b64encode(f.read()).decode()
    args = {"model": "sees", "temperature": 0, "max_tokens": 12, "messages": [
        {"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": known["question"]}]}]}
    want = known["first"]
    r = c.chat.completions.create(**args)
    ok(r.choices[0].message.content == want["said"]
       and r.usage.prompt_tokens == want["tokens"], "a picture", r)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in
                   c.chat.completions.create(**args, stream=True)
                   if chunk.choices)
    ok(text == want["said"], "a picture, streamed", text)


async def check_async():
    c = openai.AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0)

    async def one(i):
        text = ""
        s = await c.chat.completions.create(
            model="demo", temperature=0, stream=True,
            messages=ask(f"What is {i} + 2?"))
        async for chunk in s:
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""
        r = await c.chat.completions.create(
            model="demo", temperature=0, messages=ask(f"What is {i} + 2?"))
        return text == r.choices[0].message.content and text != ""

    good = await asyncio.gather(*[one(i) for i in range(12)])
    ok(all(good), "12 at once, streamed equals whole", good)


def main():
    c = client()
    check_models(c)
    whole = check_chat(c)
    check_stream(c, whole)
    check_options(c)
    check_tools(c)
    check_reasoning(c)
    check_completions(c)
    check_embeddings(c)
    check_errors(c)
    check_picture(c)
    asyncio.run(check_async())
    print(f"1..{COUNT}")
    sys.exit(1 if FAILED else 0)


main()
