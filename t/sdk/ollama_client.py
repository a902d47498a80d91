"""The official ollama package for Python against a running server.

usage: ollama_client.py BASE_URL   (http://127.0.0.1:PORT/v1)

Prints TAP.  The server has Ollama's paths below the address without "/v1".
"""

import asyncio
import json
import os
import sys

import ollama
from pydantic import BaseModel, Field

HOST = sys.argv[1].removesuffix("/v1")
COUNT = 0
FAILED = 0
ASK = {"model": "demo", "options": {"temperature": 0},
       "messages": [{"role": "user", "content": "What is 2 + 2?"}]}


def ok(good, name, note=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(("ok" if good else "not ok"), COUNT, "-", name, flush=True)
    if not good and note != "":
        print("#", str(note).replace("\n", "\n# "), flush=True)


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first number
        b: the second number

    Returns:
        the sum
    """
    return a + b


class Person(BaseModel):
    name: str = Field(pattern="^[A-Z][a-z]{1,9}$")
    age: int = Field(ge=0, le=99)


def check_chat(c):
    r = c.chat(**ASK)
    ok(r.message.content == "2 + 2 = 4." and r.done, "a chat", r)
    ok(r.done_reason == "stop" and r.eval_count > 0
       and r.prompt_eval_count > 0 and r.total_duration > 0, "its figures", r)
    ok(r["message"]["role"] == "assistant", "members by name", r)

    parts = list(c.chat(**ASK, stream=True))
    ok("".join(p.message.content for p in parts) == "2 + 2 = 4.",
       "a stream", parts)
    ok([p.done for p in parts] == [False] * (len(parts) - 1) + [True],
       "ends with its last part", parts)

    r = c.chat(**ASK, format=Person.model_json_schema())
    ok(isinstance(Person.model_validate_json(r.message.content), Person),
       "a schema", r)
    r = c.chat(**ASK, logprobs=True, top_logprobs=2)
    ok(r.logprobs and r.logprobs[0].token
       and len(r.logprobs[0].top_logprobs) == 2, "log probabilities", r)
    r = c.chat(**{**ASK, "options": {"num_predict": 2}}, keep_alive="5m",
               think=False)
    ok(r.done_reason == "length" and r.eval_count == 2, "options", r)


def check_tools(c):
    r = c.chat(**ASK, tools=[add])
    ok(r.message.content or r.message.tool_calls,
       "a function of Python as a tool", r)

    messages = [*ASK["messages"],
                ollama.Message(role="assistant", tool_calls=[
                    ollama.Message.ToolCall(
                        function=ollama.Message.ToolCall.Function(
                            name="add", arguments={"a": 2, "b": 2}))]),
                {"role": "tool", "tool_name": "add", "content": "4"}]
    r = c.chat(model="demo", messages=messages, tools=[add],
               options={"temperature": 0})
    ok(r.done, "a call and its result", r)


def check_generate(c):
    ask = {"model": "demo", "options": {"temperature": 0}}
    r = c.generate(**ask, prompt="What is 2 + 2?")
    ok(r.response == "2 + 2 = 4.", "a text", r)
    again = c.generate(**ask, prompt="What is 3 + 3?", context=r.context)
    ok(again.response and again.prompt_eval_count > r.prompt_eval_count,
       "goes on by its context", again)
    parts = list(c.generate(**ask, prompt="What is 2 + 2?", stream=True))
    ok("".join(p.response for p in parts) == r.response
       and parts[-1].context == r.context, "a stream", parts)
    raw = c.generate(**{**ask, "options": {"num_predict": 4}},
                     prompt="once", raw=True)
    ok(raw.eval_count == 4 and raw.context is None, "a raw text", raw)
    r = c.generate(model="demo")
    ok(r.done_reason == "load", "loads a model", r)


def check_models(c):
    names = [m.model for m in c.list().models]
    ok("demo:latest" in names, "list", names)
    r = c.show("demo")
    ok(r.modelinfo["general.architecture"] == "qwen3"
       and "completion" in r.capabilities and r.template, "show", r)
    r = c.ps().models
    ok(r and r[0].model == "demo:latest" and r[0].context_length > 0, "ps", r)

    r = c.embed(model="demo", input=["a", "b"])
    ok(len(r.embeddings) == 2 and len(r.embeddings[0]) > 1, "embed", r)
    r = c.embeddings(model="demo", prompt="a")
    ok(len(r.embedding) > 1, "embeddings", r)


def check_errors(c):
    for what, call, status in (
            ("a model that is not there",
             lambda: c.chat(model="none", messages=ASK["messages"]), 404),
            ("a stream of it",
             lambda: list(c.chat(model="none", messages=ASK["messages"],
                                 stream=True)), 404),
            ("an image",
             lambda: c.chat(model="demo", messages=[
                 {"role": "user", "content": "What?",
                  "images": [b"\x89PNG"]}]), 400),
            ("a model to be fetched", lambda: c.pull("demo"), 400)):
        try:
            call()
            ok(False, what)
        except ollama.ResponseError as e:
            ok(e.status_code == status and isinstance(e.error, str)
               and "{" not in e.error, what, repr(e))


def check_picture(c):
    """What is to come back: t/lib/LLM/Media.pm."""
    with open(os.environ["LLM_MEDIA"]) as f:
        known = json.load(f)
    said = known["first"]["said"]
    tokens = known["first"]["tokens"]
    options = {"temperature": 0, "num_predict": 12}
    ask = {"model": "sees", "options": options, "messages": [
        {"role": "user", "content": known["question"],
         "images": [known["picture"]]}]}
    r = c.chat(**ask)
    ok(r.message.content == said and r.prompt_eval_count == tokens,
       "a picture", r)
    text = "".join(part.message.content for part in c.chat(**ask, stream=True))
    ok(text == said, "a picture, streamed", text)
    with open(known["picture"], "rb") as f:
        r = c.generate(model="sees", prompt=known["question"],
                       images=[f.read()], options=options)
    ok(r.response == said and r.prompt_eval_count == tokens,
       "a picture for a text", r)


async def check_async():
    c = ollama.AsyncClient(host=HOST)
    text = ""
    async for part in await c.chat(**ASK, stream=True):
        text += part.message.content
    ok(text == "2 + 2 = 4.", "the client for asyncio", text)


client = ollama.Client(host=HOST)
for check in (check_chat, check_tools, check_generate, check_models,
              check_errors, check_picture):
    check(client)
asyncio.run(check_async())

print(f"1..{COUNT}")
sys.exit(FAILED > 0)
