"""LiteLLM: chat, stream, tools, structured output, completions, embeddings,
rerank, Responses, Messages, pictures, transcriptions; its exceptions."""

import json

from tap import (BASE, KNOWN, QUESTION, WEATHER, cities, ok, picture, run,
                 weather)

import litellm
from pydantic import BaseModel, ConfigDict, Field

SERVER = {"api_base": BASE, "api_key": "none", "num_retries": 0}
CHAT = {"model": "openai/demo", "temperature": 0, "max_tokens": 200, **SERVER}
ASK = [{"role": "user", "content": QUESTION}]
TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather of a place",
    "parameters": {"type": "object", "properties": {
        "city": {"enum": ["Paris", "Rome", "Oslo"]}},
        "required": ["city"], "additionalProperties": False}}}


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)


def chat():
    for model in "openai/demo", "hosted_vllm/demo":
        args = {**CHAT, "model": model}
        r = litellm.completion(messages=ASK, **args)
        chunks = list(litellm.completion(
            messages=ASK, stream=True,
            stream_options={"include_usage": True}, **args))
        whole = litellm.stream_chunk_builder(chunks, messages=ASK)
        text = r.choices[0].message.content
        ok(text and text == whole.choices[0].message.content,
           f"{model}: streamed and whole", whole)
        ok(r.usage.total_tokens > 0
           and r.usage.completion_tokens == whole.usage.completion_tokens,
           f"{model}: usage", (r.usage, whole.usage))
    r = litellm.text_completion(model="text-completion-openai/demo",
                                prompt="The sky is", max_tokens=5, **SERVER)
    ok(r.choices[0].text, "text_completion", r)


async def async_chat():
    r = await litellm.acompletion(messages=ASK, stream=True, **CHAT)
    text = "".join([c.choices[0].delta.content or "" async for c in r])
    ok(text, "acompletion, streamed", text)


def tools():
    messages = [{"role": "user", "content": WEATHER}]
    r = litellm.completion(messages=messages, tools=[TOOL],
                           tool_choice="required", **CHAT)
    m = r.choices[0].message
    ok(r.choices[0].finish_reason == "tool_calls" and m.tool_calls,
       "a call", r)
    whole = litellm.stream_chunk_builder(list(litellm.completion(
        messages=messages, tools=[TOOL], tool_choice="required", stream=True,
        **CHAT)))
    ok([c.function.arguments for c in whole.choices[0].message.tool_calls]
       == [c.function.arguments for c in m.tool_calls], "the same streamed",
       whole)
    messages.append(m)
    for c in m.tool_calls:
        messages.append({"role": "tool", "tool_call_id": c.id,
                         "content": weather(**json.loads(
                             c.function.arguments))})
    r = litellm.completion(messages=messages, tools=[TOOL],
                           tool_choice="none", **CHAT)
    ok(cities() and r.choices[0].message.content, "the result is answered", r)


def structured():
    ask = [{"role": "user", "content": "Tom is 7 years old. Who?"}]
    for model in "openai/demo", "hosted_vllm/demo":
        r = litellm.completion(messages=ask, response_format=Person,
                               **{**CHAT, "model": model})
        ok(Person.model_validate_json(r.choices[0].message.content),
           f"{model}: response_format", r)


def without_text():
    r = litellm.embedding(model="openai/demo", input=["one two", "red blue"],
                          **SERVER)
    ok(len(r.data) == 2 and len(r.data[0]["embedding"]) > 8, "embedding", r)


def responses():
    args = {"model": "openai/demo", "temperature": 0,
            "max_output_tokens": 100, **SERVER}
    r = litellm.responses(input=QUESTION, **args)
    events = list(litellm.responses(input=QUESTION, stream=True, **args))
    text = "".join(e.delta for e in events
                   if e.type == "response.output_text.delta")
    ok(text and text == r.output_text
       and events[-1].type == "response.completed",
       "Responses: streamed and whole", (r, text))


def messages():
    """Both ways: its Anthropic client, and its Messages in front of a chat."""
    r = litellm.completion(model="anthropic/demo", messages=ASK, max_tokens=50,
                           api_base=BASE.removesuffix("/v1"), api_key="none",
                           num_retries=0)
    ok(r.choices[0].message.content and r.usage.completion_tokens > 0,
       "Messages", r)
    text = "".join(c.choices[0].delta.content or "" for c in
                   litellm.completion(
                       model="anthropic/demo", messages=ASK, max_tokens=50,
                       api_base=BASE.removesuffix("/v1"), api_key="none",
                       stream=True))
    ok(text, "Messages: streamed", text)


def pictures():
    ask = [{"role": "user", "content": [
        {"type": "image_url", "image_url": {
            "url": "data:image/png;base64," + picture()}},
        {"type": "text", "text": KNOWN["question"]}]}]
    for model, base in (("openai/sees", BASE), ("hosted_vllm/sees", BASE),
                        ("anthropic/sees", BASE.removesuffix("/v1"))):
        r = litellm.completion(model=model, messages=ask, temperature=0,
                               max_tokens=12, **{**SERVER, "api_base": base})
        m = r.choices[0].message
        text = m.content
        if m.get("reasoning_content"):
            # it looks for the marks itself, and takes them out
            text = f"<think>{m.reasoning_content}</think>{text}"
        ok(text == KNOWN["first"]["said"]
           and r.usage.prompt_tokens == KNOWN["first"]["tokens"],
           f"{model}: a picture", r)


def transcriptions():
    args = {"model": "openai/whisper-1", "language": "en", "temperature": 0.4,
            **SERVER}
    with open(KNOWN["speech"], "rb") as f:
        r = litellm.transcription(file=f, **args)
        ok(r.text == KNOWN["heard"], "transcription", r)
        f.seek(0)
        r = litellm.transcription(file=f, response_format="verbose_json",
                                  timestamp_granularities=["word"], **args)
        ok(r.text == KNOWN["worded"]
           and [w["start"] for w in r["words"]]
           == [w["start"] for w in KNOWN["words"]], "transcription: words", r)
        f.seek(0)
        r = litellm.transcription(file=f, response_format="srt", **args)
        ok(r.text == KNOWN["srt"], "transcription: srt", r)


def errors():
    for error, args in (
            (litellm.BadRequestError, {"messages": ASK, "temperature": 3}),
            (litellm.NotFoundError, {"messages": ASK, "model": "openai/none"}),
            (litellm.ContextWindowExceededError, {"messages": [
                {"role": "user", "content": "word " * 20000}]})):
        try:
            litellm.completion(**{**CHAT, **args})
            ok(False, f"{error.__name__} is raised")
        except Exception as e:
            ok(type(e) is error, f"{error.__name__} is raised", repr(e))


run(chat, async_chat, tools, structured, without_text, responses, messages,
    pictures, transcriptions, errors)
