"""outlines: its OpenAI model (JSON Schema), its vLLM model (JSON Schema,
regular expression, choice), streamed too."""

import re
from typing import Literal

from tap import BASE, QUESTION, ok, run

import openai
import outlines
from outlines.types import Regex
from pydantic import BaseModel, Field


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=150)


ASK = "Tom is 7 years old. Give his name and age."
MORE = {"temperature": 0, "max_tokens": 200}
CLIENT = openai.OpenAI(base_url=BASE, api_key="none", max_retries=0)


def openai_model():
    m = outlines.from_openai(CLIENT, "demo")
    text = m(QUESTION, **MORE)
    ok(text and text == "".join(m.stream(QUESTION, **MORE)),
       "OpenAI: streamed and whole", text)
    text = m(ASK, Person, **MORE)
    ok(Person.model_validate_json(text), "OpenAI: a schema", text)
    text = m("Write JSON with the name Tom.", dict, **MORE)
    ok(text.startswith("{"), "OpenAI: json_object", text)


def vllm_model():
    m = outlines.from_vllm(CLIENT, "demo")
    text = m(ASK, Person, **MORE)
    ok(Person.model_validate_json(text)
       and text == "".join(m.stream(ASK, Person, **MORE)),
       "vLLM: a schema, streamed and whole", text)
    text = m("When?", Regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), **MORE)
    ok(re.fullmatch(r"\d{4}-\d\d-\d\d", text), "vLLM: a regex", text)
    text = m("Is the sky blue?", Literal["yes", "no"], **MORE)
    ok(text in ("yes", "no"), "vLLM: a choice", text)
    text = m("How many?", int, **MORE)
    ok(re.fullmatch(r"[+-]?\d+", text), "vLLM: a number", text)


async def async_model():
    m = outlines.from_vllm(openai.AsyncOpenAI(base_url=BASE, api_key="none"),
                           "demo")
    text = await m(ASK, Person, **MORE)
    ok(Person.model_validate_json(text), "asynchronous", text)


run(openai_model, vllm_model, async_model)
