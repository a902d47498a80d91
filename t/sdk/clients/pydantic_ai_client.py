"""pydantic-ai: chat, stream, an agent's loop, the three ways of structured
output; over chat completions, Responses and Messages; embeddings."""

from tap import BASE, QUESTION, WEATHER, cities, ok, run, weather

from pydantic import BaseModel, Field
from pydantic_ai import (Agent, Embedder, NativeOutput, Tool,
                         ToolOutput)
from pydantic_ai.capabilities import PrepareOutputTools
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


class Person(BaseModel):
    """A person."""
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)


def models():
    provider = OpenAIProvider(base_url=BASE, api_key="none")
    yield "chat", OpenAIChatModel("demo", provider=provider)
    yield "Responses", OpenAIResponsesModel("demo", provider=provider)
    yield "Messages", AnthropicModel("demo", provider=AnthropicProvider(
        base_url=BASE.removesuffix("/v1"), api_key="none"))


def agent(model, **kwargs):
    return Agent(model, model_settings={"temperature": 0, "max_tokens": 300},
                 retries=0, **kwargs)


async def chat():
    for name, model in models():
        a = agent(model, instructions="You help.")
        whole = await a.run(QUESTION)
        async with a.run_stream(QUESTION) as r:
            text = [t async for t in r.stream_text(delta=True)]
            usage = r.usage
        ok(whole.output and whole.output == "".join(text),
           f"{name}: streamed and whole", (whole.output, text))
        ok(usage.output_tokens > 0, f"{name}: usage of a stream", usage)
        again = await a.run("And 3 + 3?",
                            message_history=whole.all_messages())
        ok(again.output, f"{name}: a second turn", again)


async def once(ctx, tool):
    """The tool is offered in the first step alone."""
    return tool if ctx.run_step <= 1 else None


async def then(ctx, tools):
    return tools if ctx.run_step > 1 else []


async def loop():
    for name, model in models():
        a = agent(model, tools=[Tool(weather, prepare=once)])
        r = await a.run(WEATHER)
        parts = [p for m in r.all_messages() for p in m.parts]
        results = [p for p in parts if isinstance(p, ToolReturnPart)]
        ok(len(cities()) == len(results) and r.output,
           f"{name}: an agent that may call ends", parts)
        a = agent(model, tools=[Tool(weather, prepare=once)],
                  output_type=ToolOutput(Person),
                  capabilities=[PrepareOutputTools(then)])
        r = await a.run(WEATHER)
        kinds = [p.part_kind for m in r.all_messages() for p in m.parts]
        ok(cities() and isinstance(r.output, Person)
           and kinds[:3] == ["user-prompt", "tool-call", "tool-return"],
           f"{name}: a call, its result, an output", r.all_messages())


async def thinking():
    """What the model thought comes apart, and is sent back."""
    _, model = next(models())
    a = Agent(model, model_settings={
        "temperature": 0, "max_tokens": 400, "extra_body": {
            "thinking_budget": 40,
            "chat_template_kwargs": {"enable_thinking": True}}})
    r = await a.run(QUESTION)
    async with a.run_stream("And 3 + 3?",
                            message_history=r.all_messages()) as s:
        await s.get_output()
        parts = [p for m in s.new_messages() for p in m.parts]
    for name, parts in ("whole", r.response.parts), ("streamed", parts):
        kinds = [p.part_kind for p in parts]
        ok("thinking" in kinds, f"thinking, {name}", parts)


async def structured():
    ask = "Tom is 7 years old. Give his name and age."
    for name, model in models():
        for kind in ToolOutput, NativeOutput:
            if name == "Messages" and kind is NativeOutput:
                continue
            r = await agent(model, output_type=kind(Person)).run(ask)
            ok(isinstance(r.output, Person), f"{name}: {kind.__name__}", r)
        a = agent(model, output_type=ToolOutput(Person))
        async with a.run_stream(ask) as r:
            last = await r.get_output()
        ok(isinstance(last, Person), f"{name}: streamed output", last)


async def embeddings():
    e = Embedder(OpenAIEmbeddingModel("demo", provider=OpenAIProvider(
        base_url=BASE, api_key="none")))
    r = await e.embed_documents(["one two", "red blue", "one two"])
    v = r.embeddings
    ok(len(v) == 3 and list(v[0]) == list(v[2]) != list(v[1]), "embeddings",
       r)


run(chat, loop, thinking, structured, embeddings)
