"""LangChain and LangGraph: chat, stream, batch, tools and an agent's loop,
structured output, embeddings, Responses, Messages and pictures."""

from tap import (BASE, KNOWN, QUESTION, WEATHER, cities, ok, picture, run,
                 weather)

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel, Field

get_weather = tool("get_weather")(weather)


class Person(BaseModel):
    """A person."""
    name: str = Field(description="the name", max_length=20)
    age: int = Field(ge=0, le=150)


def llm(**kwargs):
    return ChatOpenAI(model="demo", base_url=BASE, api_key="none",
                      temperature=0, max_tokens=200, max_retries=0, **kwargs)


def chat():
    r = llm().invoke(QUESTION)
    ok(r.content
       and r.response_metadata["finish_reason"] in ("stop", "length")
       and r.usage_metadata["total_tokens"] == r.usage_metadata["input_tokens"]
       + r.usage_metadata["output_tokens"], "invoke", r)
    whole = None
    for chunk in llm(stream_usage=True).stream(QUESTION):
        whole = chunk if whole is None else whole + chunk
    ok(whole.content == r.content
       and whole.usage_metadata["output_tokens"]
       == r.usage_metadata["output_tokens"],
       "stream: the same text and figures", whole)
    both = llm().batch([QUESTION, "Hello!"])
    ok(len(both) == 2 and both[0].content == r.content, "batch", both)
    r = llm().bind(logprobs=True, top_logprobs=2).invoke(QUESTION)
    lp = r.response_metadata["logprobs"]["content"]
    ok("".join(x["token"] for x in lp) == r.content
       and all(len(x["top_logprobs"]) >= 2 for x in lp), "logprobs", lp)


async def async_stream():
    kinds = [e["event"] async for e in
             llm().astream_events(QUESTION, version="v2")]
    ok(kinds[0] == "on_chat_model_start" and kinds[-1] == "on_chat_model_end"
       and "on_chat_model_stream" in kinds, "astream_events", kinds)


def completion():
    c = OpenAI(model="demo", base_url=BASE, api_key="none", temperature=0,
               max_tokens=5, max_retries=0)
    text = c.invoke("The sky is")
    ok(text and text == "".join(c.stream("The sky is")),
       "completions: the same streamed and whole", text)


def tools():
    bound = llm().bind_tools([get_weather], tool_choice="get_weather")
    ai = bound.invoke(WEATHER)
    ok(len(ai.tool_calls) == 1 and not ai.invalid_tool_calls
       and ai.tool_calls[0]["name"] == "get_weather"
       and list(ai.tool_calls[0]["args"]) == ["city"],
       "bind_tools: a call of the named tool", ai)
    whole = None
    for chunk in bound.stream(WEATHER):
        whole = chunk if whole is None else whole + chunk
    ok([c["args"] for c in whole.tool_calls]
       == [c["args"] for c in ai.tool_calls], "the same streamed", whole)
    call = ai.tool_calls[0]
    r = llm().bind_tools([get_weather]).invoke(
        [HumanMessage(WEATHER), ai,
         ToolMessage(get_weather.invoke(call["args"]),
                     tool_call_id=call["id"])])
    ok(cities() == [call["args"]["city"]] and (r.content or r.tool_calls),
       "the result is answered", r)


def structured():
    ask = "Tom is 7 years old. Give his name and age."
    for method in "json_schema", "function_calling":
        r = llm().with_structured_output(Person, method=method).invoke(ask)
        ok(isinstance(r, Person), f"with_structured_output: {method}", r)
    r = llm().with_structured_output(Person, method="json_schema", strict=True,
                                     include_raw=True).invoke(ask)
    ok(isinstance(r["parsed"], Person) and r["parsing_error"] is None,
       "with_structured_output: strict", r)
    r = llm().bind(response_format={"type": "json_object"}).invoke(
        "Write JSON with the name Tom.").content
    ok(r.startswith("{"), "json_object", r)
    parts = list(llm().with_structured_output(
        Person, method="json_schema").stream(ask))
    ok(isinstance(parts[-1], Person), "with_structured_output: stream", parts)


def graph():
    """LangGraph by hand: the first turn has to call, the next is free."""
    def model(state):
        first = not any(isinstance(m, ToolMessage) for m in state["messages"])
        bound = llm().bind_tools([get_weather],
                                 tool_choice="required" if first else "none")
        return {"messages": [bound.invoke(state["messages"])]}

    g = StateGraph(MessagesState)
    g.add_node("model", model)
    g.add_node("tools", ToolNode([get_weather]))
    g.add_edge(START, "model")
    g.add_conditional_edges("model", tools_condition)
    g.add_edge("tools", "model")
    app = g.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    r = app.invoke({"messages": [HumanMessage(WEATHER)]}, config)
    kinds = [m.type for m in r["messages"]]
    asked = cities()
    ok(kinds[:2] == ["human", "ai"] and kinds[-2:] == ["tool", "ai"]
       and len(asked) == kinds.count("tool") >= 1
       and r["messages"][-1].content, "LangGraph: call, result, answer", r)
    kinds = [type(m).__name__ for m, _ in app.stream(
        {"messages": [HumanMessage(QUESTION)]}, config,
        stream_mode="messages")]
    ok("AIMessageChunk" in kinds, "LangGraph: the next turn, streamed", kinds)


def agent():
    a = create_agent(llm(), [get_weather], system_prompt="You help.",
                     middleware=[ModelCallLimitMiddleware(
                         run_limit=4, exit_behavior="end")])
    r = a.invoke({"messages": [HumanMessage(WEATHER)]})
    kinds = [m.type for m in r["messages"]]
    ok(kinds[0] == "human" and kinds[-1] == "ai"
       and not r["messages"][-1].tool_calls
       and len(cities()) == kinds.count("tool"),
       "create_agent: ends with an answer", r)
    for strategy in ProviderStrategy, ToolStrategy:
        a = create_agent(llm(), [], response_format=strategy(Person))
        r = a.invoke({"messages": [HumanMessage("Tom is 7 years old.")]})
        ok(isinstance(r["structured_response"], Person),
           f"create_agent: {strategy.__name__}", r)


def embeddings():
    e = OpenAIEmbeddings(model="demo", base_url=BASE, api_key="none",
                         check_embedding_ctx_length=False)
    v = e.embed_documents(["one two", "red blue", "one two"])
    q = e.embed_query("one two")
    ok(len(v) == 3 and len(v[0]) > 8 and v[0] == v[2] != v[1]
       and max(abs(a - b) for a, b in zip(v[0], q)) < 1e-6, "embeddings",
       [x[:3] for x in v])


def responses():
    c = llm(use_responses_api=True, output_version="responses/v1")
    r = c.invoke(QUESTION)
    whole = None
    for chunk in c.stream(QUESTION):
        whole = chunk if whole is None else whole + chunk
    ok(r.text and r.text == whole.text, "Responses: streamed and whole",
       (r, whole))
    ai = c.bind_tools([get_weather], tool_choice="required").invoke(WEATHER)
    ok(ai.tool_calls and not ai.invalid_tool_calls, "Responses: a call", ai)
    call = ai.tool_calls[0]
    r = c.bind_tools([get_weather], tool_choice="none").invoke(
        [HumanMessage(WEATHER), ai,
         ToolMessage(get_weather.invoke(call["args"]),
                     tool_call_id=call["id"])])
    cities()
    ok(r.text, "Responses: the result is answered", r)
    r = c.with_structured_output(Person).invoke("Tom is 7 years old.")
    ok(isinstance(r, Person), "Responses: with_structured_output", r)


def messages():
    c = ChatAnthropic(model="demo", base_url=BASE.removesuffix("/v1"),
                      api_key="none", temperature=0, max_tokens=100,
                      max_retries=0)
    r = c.invoke(QUESTION)
    whole = None
    for chunk in c.stream(QUESTION):
        whole = chunk if whole is None else whole + chunk
    ok(r.text and r.text == whole.text, "Messages: streamed and whole",
       (r, whole))
    ai = c.bind_tools([get_weather], tool_choice="any").invoke(WEATHER)
    ok(ai.tool_calls, "Messages: a call", ai)
    call = ai.tool_calls[0]
    r = c.bind_tools([get_weather]).invoke(
        [HumanMessage(WEATHER), ai,
         ToolMessage(get_weather.invoke(call["args"]),
                     tool_call_id=call["id"])])
    cities()
    ok(r.text or r.tool_calls, "Messages: the result is answered", r)


def pictures():
    args = {"model": "sees", "api_key": "none", "temperature": 0,
            "max_tokens": 12, "max_retries": 0}
    own = {"type": "image", "base64": picture(), "mime_type": "image/png"}
    openai = {"type": "image_url", "image_url": {
        "url": "data:image/png;base64," + picture()}}
    for name, model, image in (
            ("chat", ChatOpenAI(base_url=BASE, **args), own),
            ("chat, OpenAI's block", ChatOpenAI(base_url=BASE, **args),
             openai),
            ("Responses", ChatOpenAI(base_url=BASE, use_responses_api=True,
                                     output_version="responses/v1", **args),
             own),
            ("Messages", ChatAnthropic(base_url=BASE.removesuffix("/v1"),
                                       **args), own)):
        r = model.invoke([HumanMessage([
            image, {"type": "text", "text": KNOWN["question"]}])])
        ok(r.text == KNOWN["first"]["said"]
           and r.usage_metadata["input_tokens"] == KNOWN["first"]["tokens"],
           f"a picture: {name}", r)


run(chat, async_stream, completion, tools, structured, graph, agent,
    embeddings, responses, messages, pictures)
