"""The official anthropic package for Python against a running server.

usage: anthropic_client.py BASE_URL   (http://127.0.0.1:PORT/v1)

Prints TAP.  The package itself takes what it gets without a look; here each
message and each event must be what its type says.
"""

import base64
import json
import os
import sys

import anthropic

BASE = sys.argv[1].removesuffix("/v1")
COUNT = 0
FAILED = 0
ASK = {"model": "demo", "max_tokens": 100,
       "extra_body": {"temperature": 0},
       "messages": [{"role": "user", "content": "What is 2 + 2?"}]}
TOOL = {"name": "add", "description": "Adds.", "input_schema": {
    "type": "object", "properties": {"a": {"type": "number"}}}}


def ok(good, name, note=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(("ok" if good else "not ok"), COUNT, "-", name, flush=True)
    if not good and note != "":
        print("#", str(note).replace("\n", "\n# "), flush=True)


def valid(v):
    """What is wrong with a value by its type, or nothing."""
    try:
        type(v).model_validate(v.to_dict())
        return ""
    except Exception as e:
        return f"{type(v).__name__}: {e}"


def check_body(c):
    m = c.messages.create(**ASK, system="Be brief.", tools=[TOOL],
                          thinking={"type": "disabled"},
                          metadata={"user_id": "u"})
    ok(valid(m) == "", "a message is one by its type", valid(m))
    ok("4" in m.content[0].text and m.role == "assistant", "its text", m)
    ok(m.stop_reason == "end_turn" and m.stop_sequence is None,
       "stop_reason", m)
    ok(m.usage.input_tokens > 0 and m.usage.output_tokens > 0, "usage",
       m.usage)

    m = c.messages.create(**{**ASK, "stop_sequences": ["="]})
    ok(m.stop_reason == "stop_sequence" and m.stop_sequence == "=",
       "a stop sequence", m)
    m = c.messages.create(**{**ASK, "max_tokens": 2})
    ok(m.stop_reason == "max_tokens" and m.usage.output_tokens == 2,
       "max_tokens", m)


def check_stream(c):
    whole = c.messages.create(**ASK)
    wrong, kinds, text = [], [], ""
    for event in c.messages.create(**ASK, stream=True):
        wrong += [valid(event)] if valid(event) else []
        kinds.append(event.type)
        if event.type == "content_block_delta":
            text += event.delta.text
        if event.type == "message_start":
            first = event.message
    ok(wrong == [], "each event is one by its type", wrong)
    ok(kinds[0] == "message_start" and kinds[-2:] == [
        "message_delta", "message_stop"], "their order", kinds)
    ok(text == whole.content[0].text, "deltas are the text", text)
    ok(first.usage.input_tokens > 0, "input_tokens at the start", first)

    with c.messages.stream(**ASK) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    ok(text == whole.content[0].text == final.content[0].text
       and final.stop_reason == "end_turn"
       and final.usage.output_tokens == whole.usage.output_tokens,
       "the package's own stream gathers it", final)


def check_turns(c):
    m = c.messages.create(**{**ASK, "messages": [
        *ASK["messages"],
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "I add.", "signature": "s"},
            {"type": "tool_use", "id": "toolu_1", "name": "add",
             "input": {"a": 2}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1",
             "content": [{"type": "text", "text": "4"}]}]}],
        "tools": [TOOL, {"type": "web_search_20250305",
                         "name": "web_search"}]})
    ok(m.type == "message", "calls and their results are taken", m)
    m = c.beta.messages.create(**ASK, betas=["context-management-2025-06-27"],
                               context_management={"edits": []})
    ok(m.type == "message", "so is a beta", m)


WEATHER = {"name": "get_weather",
           "description": "Get the weather of a city",
           "input_schema": {"type": "object", "properties": {
               "city": {"type": "string"}}, "required": ["city"]}}


def check_tools(c):
    """A call, its result, the answer; streamed and not."""
    said = [{"role": "user", "content": "What is the weather in Paris?"}]
    args = {**ASK, "tools": [WEATHER]}
    args.pop("messages")
    whole = c.messages.create(**args, messages=said)
    wrong = []
    for event in c.messages.create(**args, messages=said, stream=True):
        wrong += [valid(event)] if valid(event) else []
    with c.messages.stream(**args, messages=said) as stream:
        m = stream.get_final_message()
    ok(wrong == [], "each event of a call is one by its type", wrong)
    ok(m.stop_reason == "tool_use" and m.content[0].type == "tool_use"
       and m.content[0].name == "get_weather"
       and m.content[0].input == {"city": "Paris"}, "a call", m)
    ok(whole.content[0].input == m.content[0].input, "the same at once",
       whole)
    said += [{"role": "assistant", "content": m.content},
             {"role": "user", "content": [{
                 "type": "tool_result", "tool_use_id": m.content[0].id,
                 "content": "{\"temperature\": 18, "
                            "\"condition\": \"sunny\"}"}]}]
    m = c.messages.create(**args, messages=said)
    ok("18" in m.content[0].text, "the answer from its result", m)


def check_thinking(c):
    args = {**ASK, "max_tokens": 300,
            "thinking": {"type": "enabled", "budget_tokens": 200},
            "messages": [{"role": "user", "content": "What is 17 + 25?"}]}
    whole = c.messages.create(**args)
    wrong = []
    for event in c.messages.create(**args, stream=True):
        wrong += [valid(event)] if valid(event) else []
    with c.messages.stream(**args) as stream:
        m = stream.get_final_message()
    ok(wrong == [], "each event of thinking is one by its type", wrong)
    ok([b.type for b in m.content] == ["thinking", "text"]
       and m.content[0].signature
       and m.content[0].thinking == whole.content[0].thinking
       and m.content[1].text == whole.content[1].text,
       "thinking and text, the same at once", (m, whole))
    again = c.messages.create(**{**args, "messages": args["messages"] + [
        {"role": "assistant", "content": m.content},
        {"role": "user", "content": "And 2 + 2?"}]})
    ok(again.stop_reason == "end_turn", "they are taken back", again)


def check_count(c):
    n = c.messages.count_tokens(model="demo", messages=ASK["messages"],
                                tools=[TOOL])
    m = c.messages.create(**ASK, tools=[TOOL])
    ok(n.input_tokens == m.usage.input_tokens
       + m.usage.cache_read_input_tokens, "count_tokens", (n, m.usage))


def check_errors(c):
    for name, error, kind, args in (
            ("no messages", anthropic.BadRequestError,
             "invalid_request_error", {"messages": []}),
            ("a long prompt", anthropic.BadRequestError,
             "invalid_request_error", {"system": "word " * 20000}),
            ("a model", anthropic.NotFoundError, "not_found_error",
             {"model": "nobody"})):
        for stream in (False, True):
            try:
                c.messages.create(**{**ASK, **args}, stream=stream)
                ok(False, f"{name} is refused")
            except error as e:
                ok(e.body["error"]["type"] == kind and e.body["request_id"],
                   f"{name}: {kind}", e.body)


def check_picture(c):
    """What is to come back: t/lib/LLM/Media.pm."""
    with open(os.environ["LLM_MEDIA"]) as f:
        known = json.load(f)
    with open(known["picture"], "rb") as f:
        data = base64.b64encode(f.read()).decode()
    image = {"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": data}}
    ask = {"model": "sees", "messages": [{"role": "user", "content": [
        image, {"type": "text", "text": known["question"]}]}]}
    greedy = {"max_tokens": 12, "extra_body": {"temperature": 0}}
    want = known["first"]
    m = c.messages.create(**ask, **greedy)
    ok(valid(m) == "" and m.content[0].text == want["said"]
       and m.usage.input_tokens + m.usage.cache_read_input_tokens
       == want["tokens"], "a picture", m)
    with c.messages.stream(**ask, **greedy) as stream:
        text = "".join(stream.text_stream)
    ok(text == want["said"], "a picture, streamed", text)
    n = c.messages.count_tokens(**ask).input_tokens
    ok(n == want["tokens"], "a picture, counted", n)

    ask["messages"] = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "add", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [
                {"type": "text", "text": "A picture:"}, image]}]}]
    n = [c.messages.count_tokens(**ask, tools=[TOOL]).input_tokens]
    ask["messages"][2]["content"][0]["content"].pop()
    n.append(c.messages.count_tokens(**ask, tools=[TOOL]).input_tokens)
    ok(n[0] > n[1] + 3, "a picture in the result of a tool", n)


def main():
    c = anthropic.Anthropic(base_url=BASE, api_key="none", max_retries=0,
                            timeout=600)
    check_body(c)
    check_stream(c)
    check_turns(c)
    check_tools(c)
    check_thinking(c)
    check_count(c)
    check_errors(c)
    check_picture(c)
    print(f"1..{COUNT}")
    sys.exit(1 if FAILED else 0)


main()
