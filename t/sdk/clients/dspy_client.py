"""DSPy: a language model, programs with its JSON adapter, tools,
embeddings."""

from typing import Literal

from tap import BASE, QUESTION, WEATHER, cities, ok, run, weather

import dspy

# it takes a model for one that can be held to a schema by its name
LM = {"model": "openai/gpt-4o-mini", "api_base": BASE, "api_key": "none",
      "temperature": 0, "max_tokens": 150, "cache": False, "num_retries": 0}


def lm():
    for kind in "chat", "responses", "text":
        m = dspy.LM(**{**LM, "model_type": kind})
        r = m(QUESTION)
        ok(len(r) == 1 and r[0], f"{kind}: an answer", r)


def program():
    class Mood(dspy.Signature):
        """Say how a text sounds."""
        text: str = dspy.InputField()
        mood: Literal["good", "bad"] = dspy.OutputField()
        sure: int = dspy.OutputField(ge=0, le=100)

    with dspy.context(lm=dspy.LM(**LM), adapter=dspy.JSONAdapter()):
        r = dspy.Predict(Mood)(text="I like it.")
        ok(r.mood in ("good", "bad") and isinstance(r.sure, int),
           "Predict with the JSON adapter", r)


async def stream():
    with dspy.context(lm=dspy.LM(**LM), adapter=dspy.JSONAdapter()):
        p = dspy.streamify(dspy.Predict("text -> mood: bool"))
        last = [x async for x in p(text="I like it.")][-1]
        ok(isinstance(last, dspy.Prediction) and isinstance(last.mood, bool),
           "streamify", last)


def tools():
    """DSPy says of a tool nothing about other arguments: a small model may
    write some until it is cut, and then there is no call."""
    class Act(dspy.Signature):
        question: str = dspy.InputField()
        tools: list[dspy.Tool] = dspy.InputField()
        calls: dspy.ToolCalls = dspy.OutputField()

    with dspy.context(lm=dspy.LM(**LM), adapter=dspy.ChatAdapter(
            use_native_function_calling=True)):
        r = dspy.Predict(Act)(question=WEATHER, tools=[dspy.Tool(weather)],
                              config={"tool_choice": "required"})
    calls = r.calls.tool_calls if r.calls else []
    results = [c.execute() for c in calls]
    ok(len(results) == len(cities()) and all(c.name == "weather"
                                             for c in calls),
       "native calls are those that were offered", r)


def loop():
    """A program that says what to call, and one that answers."""
    class Act(dspy.Signature):
        question: str = dspy.InputField()
        city: Literal["Paris", "Rome", "Oslo"] = dspy.OutputField()

    with dspy.context(lm=dspy.LM(**LM), adapter=dspy.JSONAdapter()):
        r = dspy.Predict(Act)(question=WEATHER)
        result = weather(r.city)
        r = dspy.Predict("question, result -> answer: float")(
            question=WEATHER, result=result)
        ok(cities() and isinstance(r.answer, float),
           "a call, its result, an answer", r)


def embeddings():
    e = dspy.Embedder("openai/demo", api_base=BASE, api_key="none",
                      caching=False)
    v = e(["one two", "red blue", "one two"])
    ok(v.shape[0] == 3 and (v[0] == v[2]).all() and (v[0] != v[1]).any(),
       "embeddings", v[:, :3])


run(lm, program, stream, tools, loop, embeddings)
