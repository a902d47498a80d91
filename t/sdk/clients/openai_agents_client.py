"""openai-agents (the Agents SDK): runs, streamed runs, tools, handoffs,
output types; over Responses, its default, and chat completions."""

from tap import BASE, CITIES, QUESTION, WEATHER, cities, ok, run, weather

from agents import (Agent, ModelSettings, OpenAIChatCompletionsModel,
                    OpenAIResponsesModel, RunConfig, Runner, SQLiteSession,
                    function_tool)
from openai import AsyncOpenAI
from pydantic import BaseModel, ConfigDict, Field

# one call a run: then the model has to answer

get_weather = function_tool(weather, name_override="get_weather",
                            is_enabled=lambda context, agent: not CITIES)


class Person(BaseModel):
    """A person."""
    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)


def models():
    client = AsyncOpenAI(base_url=BASE, api_key="none", max_retries=0)
    yield "Responses", OpenAIResponsesModel("demo", client)
    yield "chat", OpenAIChatCompletionsModel("demo", client)


def agent(model, name="helper", **kwargs):
    choice = kwargs.pop("tool_choice", None)
    return Agent(name=name, model=model, instructions="You help.",
                 model_settings=ModelSettings(temperature=0, max_tokens=300,
                                              tool_choice=choice), **kwargs)


CONFIG = RunConfig(tracing_disabled=True)


async def chat():
    for name, model in models():
        session = SQLiteSession("1")
        r = await Runner.run(agent(model), QUESTION, run_config=CONFIG,
                             session=session)
        ok(r.final_output, f"{name}: an answer", r)
        r = await Runner.run(agent(model), "And 3 + 3?", run_config=CONFIG,
                             session=session)
        ok(r.final_output and len(await session.get_items()) >= 4,
           f"{name}: the second turn of a session", r)
        s = Runner.run_streamed(agent(model), QUESTION, run_config=CONFIG)
        text = "".join([e.data.delta async for e in s.stream_events()
                        if e.type == "raw_response_event"
                        and e.data.type == "response.output_text.delta"])
        ok(text and text == s.final_output, f"{name}: a streamed run",
           (text, s.final_output))


async def tools():
    """After a call the SDK itself sets tool_choice back to auto."""
    for name, model in models():
        a = agent(model, tools=[get_weather], tool_choice="required")
        r = await Runner.run(a, WEATHER, run_config=CONFIG, max_turns=6)
        kinds = [i.type for i in r.new_items]
        asked = cities()
        ok(kinds[0] == "tool_call_item" and kinds[-1] == "message_output_item"
           and len(asked) == kinds.count("tool_call_output_item") >= 1
           and r.final_output, f"{name}: call, result, answer", kinds)
        s = Runner.run_streamed(a, WEATHER, run_config=CONFIG, max_turns=6)
        names = [e.name async for e in s.stream_events()
                 if e.type == "run_item_stream_event"]
        ok("tool_called" in names and "tool_output" in names
           and names[-1] == "message_output_created" and cities(),
           f"{name}: the same streamed", names)


async def handoff():
    for name, model in models():
        other = agent(model, "german", handoff_description="Speaks German")
        a = agent(model, "first", handoffs=[other],
                  tool_choice="transfer_to_german")
        r = await Runner.run(a, "Guten Tag!", run_config=CONFIG, max_turns=6)
        ok(r.last_agent.name == "german" and r.final_output,
           f"{name}: a handoff", r)


async def output_type():
    for name, model in models():
        r = await Runner.run(agent(model, output_type=Person),
                             "Tom is 7 years old. Give his name and age.",
                             run_config=CONFIG)
        ok(isinstance(r.final_output, Person), f"{name}: output_type", r)


run(chat, tools, handoff, output_type)
