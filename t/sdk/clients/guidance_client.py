"""guidance: chat, JSON with and without a schema, tools."""

from tap import BASE, QUESTION, WEATHER, cities, ok, run, weather

import guidance
from guidance import assistant, gen, system, user
from pydantic import BaseModel, Field


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)


def model():
    return guidance.models.OpenAI("demo", echo=False, base_url=BASE,
                                  api_key="none", max_retries=0)


def chat():
    lm = model()
    with system():
        lm += "You help."
    with user():
        lm += QUESTION
    with assistant():
        lm += gen("answer", max_tokens=50, temperature=0.1)
    with user():
        lm += "And 3 + 3?"
    with assistant():
        lm += gen("more", max_tokens=50)
    ok(lm["answer"] and lm["more"], "two turns", str(lm))


def structured():
    lm = model()
    with user():
        lm += "Tom is 7 years old. Give his name and age."
    with assistant():
        lm += guidance.json("person", schema=Person, max_tokens=200)
    ok(Person.model_validate_json(lm["person"]), "a schema", str(lm))
    lm = model()
    with user():
        lm += "Write JSON with the name Tom."
    with assistant():
        lm += guidance.json("any", max_tokens=100)
    ok(lm["any"].startswith("{"), "json_object", str(lm))


def tools():
    """It calls the tool by itself, and leaves the result in the talk."""
    lm = model()
    with user():
        lm += WEATHER
    with assistant():
        lm += gen(tools=[weather], tool_choice="required")
    asked = cities()
    ok(len(asked) >= 1 and "sunny" in str(lm), "a call and its result",
       str(lm))
    with assistant():
        lm += gen("answer", max_tokens=50)
    ok(lm["answer"], "the result is answered", str(lm))


run(chat, structured, tools)
