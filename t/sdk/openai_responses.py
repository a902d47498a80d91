"""Responses with the official openai package against a running server.

usage: openai_responses.py BASE_URL   (http://127.0.0.1:PORT/v1)

Prints TAP.  The package itself takes what it gets without a look; here each
response and each event must be what its type says.
"""

import base64
import json
import os
import sys

import openai

BASE = sys.argv[1]
COUNT = 0
FAILED = 0
ASK = {"model": "demo", "temperature": 0, "input": "What is 2 + 2?"}
TOOL = {"type": "function", "name": "add", "description": "Adds.",
        "parameters": {"type": "object", "properties": {
            "a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"], "additionalProperties": False},
        "strict": True}


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
    r = c.responses.create(**ASK, tools=[TOOL], instructions="Be brief.",
                           metadata={"a": "b"}, reasoning={"effort": "low"},
                           include=["message.output_text.logprobs"],
                           top_logprobs=2)
    ok(valid(r) == "", "a response is one by its type", valid(r))
    ok("4" in r.output_text and r.status == "completed", "output_text", r)
    ok(r.instructions == "Be brief." and r.tools[0].name == "add"
       and r.metadata == {"a": "b"} and r.reasoning.effort == "low",
       "settings are repeated", r)
    ok(r.usage.total_tokens == r.usage.input_tokens + r.usage.output_tokens,
       "usage", r.usage)
    ok(len(r.output[0].content[0].logprobs[0].top_logprobs) == 2, "logprobs",
       r.output)
    return r


def check_stream(c):
    whole = c.responses.create(**ASK)
    text, numbers, wrong = "", [], []
    for event in c.responses.create(**ASK, stream=True):
        numbers.append(event.sequence_number)
        wrong += [valid(event)] if valid(event) else []
        if event.type == "response.output_text.delta":
            text += event.delta
        last = event
    ok(wrong == [], "each event is one by its type", wrong)
    ok(numbers == list(range(len(numbers))), "numbers in order", numbers)
    ok(text == whole.output_text, "deltas are the text", text)
    ok(last.type == "response.completed"
       and last.response.output_text == text, "completed has it, too", last)

    with c.responses.stream(**ASK, tools=[TOOL]) as stream:
        kinds = [e.type for e in stream]
        final = stream.get_final_response()
    ok(final.output_text == text and "response.output_text.done" in kinds,
       "the package's own stream gathers it", (kinds, final))


def check_turns(c):
    r = c.responses.create(**ASK)
    again = c.responses.create(model="demo", temperature=0, input=[
        {"role": "user", "content": "What is 2 + 2?"}, *r.output,
        {"role": "user", "content": "Hello!"}])
    ok(again.output_text != "", "an answer's items are taken back", again)

    again = c.responses.create(model="demo", temperature=0, tools=[TOOL],
                               input=[
        {"role": "user", "content": "What is 2 + 2?"},
        {"type": "reasoning", "id": "rs_1", "summary": [
            {"type": "summary_text", "text": "I add."}]},
        {"type": "function_call", "call_id": "call_1", "name": "add",
         "arguments": "{\"a\": 2, \"b\": 2}"},
        {"type": "function_call_output", "call_id": "call_1",
         "output": "4"}])
    ok(again.status == "completed", "so are calls and their results", again)


WEATHER = {"type": "function", "name": "get_weather",
           "description": "Get the weather of a city",
           "parameters": {"type": "object", "properties": {
               "city": {"type": "string"}}, "required": ["city"]}}


def check_tools(c):
    """A call, its result, the answer; streamed and not."""
    said = [{"role": "user", "content": "What is the weather in Paris?"}]
    whole = c.responses.create(model="demo", temperature=0, input=said,
                               tools=[WEATHER])
    wrong, kinds = [], []
    with c.responses.stream(model="demo", temperature=0, input=said,
                            tools=[WEATHER]) as stream:
        for event in stream:
            kinds.append(event.type)
        r = stream.get_final_response()
    for event in c.responses.create(model="demo", temperature=0, input=said,
                                    tools=[WEATHER], stream=True):
        wrong += [valid(event)] if valid(event) else []
    call = r.output[0]
    ok(wrong == [], "each event of a call is one by its type", wrong)
    ok(call.type == "function_call" and call.name == "get_weather"
       and json.loads(call.arguments) == {"city": "Paris"}, "a call", r)
    ok("response.function_call_arguments.done" in kinds, "its events", kinds)
    ok(call.arguments == whole.output[0].arguments, "the same at once",
       whole)
    said += [call.to_dict(), {
        "type": "function_call_output", "call_id": call.call_id,
        "output": "{\"temperature\": 18, \"condition\": \"sunny\"}"}]
    said[1].pop("parsed_arguments", None)
    r = c.responses.create(model="demo", temperature=0, input=said,
                           tools=[WEATHER])
    ok("18" in r.output_text, "the answer from its result", r)


def check_reasoning(c):
    args = {"model": "demo", "temperature": 0, "input": "What is 17 + 25?",
            "include": ["reasoning.encrypted_content"],
            "extra_body": {"chat_template_kwargs": {"enable_thinking": True}}}
    r = c.responses.create(**args)
    ok(r.output[0].type == "reasoning" and r.output[0].content[0].text
       and r.output[0].encrypted_content, "reasoning is an item", r)
    ok(r.usage.output_tokens_details.reasoning_tokens > 0, "and counted",
       r.usage)
    wrong, text = [], ""
    for event in c.responses.create(**args, stream=True,
                                    reasoning={"summary": "auto"}):
        wrong += [valid(event)] if valid(event) else []
        if event.type == "response.reasoning_summary_text.delta":
            text += event.delta
    ok(wrong == [] and text == r.output[0].content[0].text,
       "or a summary, streamed", (wrong, text))
    again = c.responses.create(model="demo", temperature=0, input=[
        {"role": "user", "content": args["input"]}, *r.output,
        {"role": "user", "content": "And 2 + 2?"}])
    ok(again.status == "completed", "it is taken back", again)


def check_errors(c):
    for name, error, code, args in (
            ("previous_response_id", openai.BadRequestError,
             "invalid_value", {"previous_response_id": "resp_1"}),
            ("a long prompt", openai.BadRequestError,
             "context_length_exceeded", {"input": "word " * 20000}),
            ("a model", openai.NotFoundError, "model_not_found",
             {"model": "nobody"})):
        for stream in (False, True):
            try:
                c.responses.create(**{**ASK, **args}, stream=stream)
                ok(False, f"{name} is refused")
            except error as e:
                ok(e.code == code, f"{name}: {code}", e.body)


def turn(conn, **args):
    """The text of an answer by a WebSocket, and its last event."""
    conn.response.create(**{**ASK, **args})
    text = ""
    for event in conn:
        if event.type == "response.output_text.delta":
            text += event.delta
        if event.type in ("response.completed", "error"):
            return text, event


def check_socket(c):
    want = c.responses.create(**ASK)
    with c.responses.connect() as conn:
        text, event = turn(conn)
        ok(text == want.output_text, "by a WebSocket: the same text", text)
        first = event.response.id
        text, event = turn(conn, input="And 3 + 3?",
                           previous_response_id=first)
        ok(text and event.response.usage.input_tokens
           > want.usage.input_tokens, "with the response before", event)
        text, event = turn(conn, previous_response_id=first)
        ok(event.type == "error" and event.to_dict()["error"]["code"]
           == "previous_response_not_found", "which is the last alone", event)
        ok(turn(conn)[0] == want.output_text, "and goes on")


def check_picture(c):
    """What is to come back: t/lib/LLM/Media.pm."""
    with open(os.environ["LLM_MEDIA"]) as f:
        known = json.load(f)
    with open(known["picture"], "rb") as f:
        url = "data:image/png;base64," + base64.b64encode(f.read()).decode()
    args = {"model": "sees", "temperature": 0, "max_output_tokens": 12,
            "input": [{"role": "user", "content": [
                {"type": "input_image", "image_url": url, "detail": "auto"},
                {"type": "input_text", "text": known["question"]}]}]}
    want = known["first"]
    r = c.responses.create(**args)
    ok(r.output_text == want["said"]
       and r.usage.input_tokens == want["tokens"], "a picture", r)
    text = "".join(e.delta for e in c.responses.create(**args, stream=True)
                   if e.type == "response.output_text.delta")
    ok(text == want["said"], "a picture, streamed", text)


def main():
    c = openai.OpenAI(base_url=BASE, api_key="none", max_retries=0,
                      timeout=600)
    check_body(c)
    check_stream(c)
    check_turns(c)
    check_tools(c)
    check_reasoning(c)
    check_errors(c)
    check_picture(c)
    check_socket(c)
    print(f"1..{COUNT}")
    sys.exit(1 if FAILED else 0)


main()
