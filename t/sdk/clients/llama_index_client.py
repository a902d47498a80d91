"""LlamaIndex: chat, stream, completions, tools and an agent's loop, structured
output, Responses, embeddings and an index."""

from tap import BASE, QUESTION, WEATHER, cities, ok, run, weather

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.agent.workflow import (AgentStream, FunctionAgent,
                                             ToolCallResult)
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike, OpenAILikeResponses
from pydantic import BaseModel, Field

SERVER = {"model": "demo", "api_base": BASE, "api_key": "none",
          "temperature": 0, "max_retries": 0, "timeout": 600,
          "context_window": 4096, "is_function_calling_model": True}
ASK = [ChatMessage(QUESTION)]
TOOL = FunctionTool.from_defaults(weather, name="get_weather")


class Person(BaseModel):
    """A person."""
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)


def llms():
    yield "chat", OpenAILike(is_chat_model=True, max_tokens=200,
                             should_use_structured_outputs=True, **SERVER)
    yield "Responses", OpenAILikeResponses(max_output_tokens=200, **SERVER)


def chat():
    for name, llm in llms():
        text = llm.chat(ASK).message.content
        streamed = "".join(r.delta or "" for r in llm.stream_chat(ASK))
        ok(text and text == streamed, f"{name}: streamed and whole",
           (text, streamed))
        ok(llm.complete(QUESTION).text == text, f"{name}: complete")
    llm = OpenAILike(is_chat_model=False, max_tokens=5, **SERVER)
    text = llm.complete("The sky is").text
    ok(text and text == "".join(r.delta for r in
                                llm.stream_complete("The sky is")),
       "completions: streamed and whole", text)


async def async_chat():
    for name, llm in llms():
        r = await llm.astream_chat(ASK)
        text = "".join([x.delta or "" async for x in r])
        ok(text, f"{name}: astream_chat", text)


def tools():
    for name, llm in llms():
        r = llm.chat_with_tools([TOOL], user_msg=WEATHER, tool_required=True)
        calls = llm.get_tool_calls_from_response(r)
        ok(len(calls) == 1 and list(calls[0].tool_kwargs) == ["city"],
           f"{name}: a call", r)
        *_, last = llm.stream_chat_with_tools([TOOL], user_msg=WEATHER,
                                              tool_required=True)
        streamed = llm.get_tool_calls_from_response(last)
        ok([c.tool_kwargs for c in streamed] ==
           [c.tool_kwargs for c in calls], f"{name}: the same streamed",
           streamed)
        r = llm.predict_and_call([TOOL], WEATHER, tool_required=True)
        ok(len(cities()) == 1 and "sunny" in str(r),
           f"{name}: predict_and_call", r)


async def agent():
    """Its agent asks for a first call, and then leaves it to the model."""
    for name, llm in llms():
        a = FunctionAgent(tools=[TOOL], llm=llm, system_prompt="You help.",
                          initial_tool_choice="required",
                          early_stopping_method="generate")
        handler = a.run(WEATHER, max_iterations=5)
        events = [e async for e in handler.stream_events()]
        r = await handler
        results = [e for e in events if isinstance(e, ToolCallResult)]
        ok(len(results) == len(cities()) >= 1 and str(r)
           and any(isinstance(e, AgentStream) for e in events),
           f"{name}: an agent: call, result, answer", (results, r))


def structured():
    ask = "Tom is 7 years old. Give his name and age."
    for name, llm in llms():
        r = llm.as_structured_llm(Person).complete(ask)
        ok(isinstance(r.raw, Person), f"{name}: as_structured_llm", r)
        r = llm.structured_predict(Person, prompt("Who? {ask}"), ask=ask)
        ok(isinstance(r, Person), f"{name}: structured_predict", r)


def prompt(text):
    from llama_index.core.prompts import PromptTemplate
    return PromptTemplate(text)


def index():
    """A vector index: its texts and the query become embeddings."""
    e = OpenAILikeEmbedding(model_name="demo", api_base=BASE, api_key="none",
                            max_retries=0, timeout=600)
    v = e.get_text_embedding_batch(["one two", "red blue", "one two"])
    ok(v[0] == v[2] != v[1] and len(v[0]) > 8, "embeddings",
       [x[:3] for x in v])
    _, llm = next(llms())
    i = VectorStoreIndex.from_documents(
        [Document(text=t) for t in ("The sky is blue.", "Grass is green.")],
        embed_model=e)
    r = i.as_query_engine(llm=llm, similarity_top_k=1).query(
        "What is blue?")
    ok(len(r.source_nodes) == 1 and str(r), "a query of an index", r)


run(chat, async_chat, tools, agent, structured, index)
