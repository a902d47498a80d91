"""instructor: every mode that an OpenAI server can have, whole and in parts;
over chat completions and Responses."""

from typing import Literal

from tap import BASE, ok, run

import instructor
import openai
from pydantic import BaseModel, ConfigDict, Field


class Closed(BaseModel):
    """No members but its own: a schema that does not say so lets a model
    add what it likes, and a small one never ends."""
    model_config = ConfigDict(extra="forbid")


class Person(Closed):
    """A person."""
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)
    kind: Literal["child", "adult"]


ASK = {"model": "demo", "max_retries": 0, "messages": [
    {"role": "user", "content": "Tom is 7 years old. Give his name and age."}]}
SHORT = {**ASK, "temperature": 0, "max_tokens": 300}

SERVER = {"base_url": BASE, "api_key": "none", "max_retries": 0}


def modes():
    for mode in (instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT,
                 instructor.Mode.JSON_SCHEMA):
        c = instructor.from_openai(openai.OpenAI(**SERVER), mode=mode)
        r, raw = c.chat.completions.create_with_completion(
            response_model=Person, **SHORT)
        ok(isinstance(r, Person) and raw.usage.completion_tokens > 0,
           f"{mode.name}: a model", r)
        parts = list(c.chat.completions.create_partial(
            response_model=Person, **SHORT))
        ok(parts and Person.model_validate(parts[-1].model_dump()),
           f"{mode.name}: in parts, at last whole", parts[-1:])


def nested():
    class Team(Closed):
        people: list[Person] = Field(min_length=2, max_length=2)

    c = instructor.from_openai(openai.OpenAI(**SERVER),
                               mode=instructor.Mode.JSON_SCHEMA)
    r = c.chat.completions.create(response_model=Team,
                                     **{**SHORT, "max_tokens": 800})
    ok(len(r.people) == 2, "a list of models", r)


def responses():
    c = instructor.from_openai(openai.OpenAI(**SERVER),
                               mode=instructor.Mode.RESPONSES_TOOLS)
    r = c.responses.create(model="demo", input=ASK["messages"][0]["content"],
                           response_model=Person, max_retries=0,
                           temperature=0, max_output_tokens=300)
    ok(isinstance(r, Person), "Responses: a model", r)


async def async_model():
    c = instructor.from_openai(openai.AsyncOpenAI(**SERVER))
    r = await c.chat.completions.create(response_model=Person, **SHORT)
    ok(isinstance(r, Person), "asynchronous", r)


run(modes, nested, responses, async_model)
