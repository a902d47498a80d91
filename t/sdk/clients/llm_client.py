"""llm, the command: prompts, a talk, a schema, tools; over chat completions,
Responses and completions."""

import json
import os
import pathlib
import tempfile

from tap import BASE, QUESTION, WEATHER, ok, run

HOME = pathlib.Path(tempfile.mkdtemp(dir=os.environ["HOME"]))
os.environ["LLM_USER_PATH"] = str(HOME)

(HOME / "extra-openai-models.yaml").write_text(json.dumps([
    {"model_id": "demo", "model_name": "demo", "api_base": BASE,
     "supports_tools": True, "supports_schema": True},
    {"model_id": "demo-responses", "model_name": "demo", "api_base": BASE,
     "responses": True, "supports_tools": True, "supports_schema": True},
    {"model_id": "demo-text", "model_name": "demo", "api_base": BASE,
     "completion": True}]))

TOOL = HOME / "tool.py"
TOOL.write_text('''
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    print("called", file=open(%r, "a"))
    return '{"temperature": 21, "sky": "sunny"}'
''' % str(HOME / "calls"))

CHAT = ["demo", "demo-responses"]
# reads LLM_USER_PATH
from click.testing import CliRunner  # noqa: E402
from llm.cli import cli  # noqa: E402

COLD = ["-o", "temperature", "0", "-o", "max_tokens", "200"]


def llm(*args, may_end=None):
    """The command, in this process: to start it takes seconds."""
    r = CliRunner().invoke(cli, args)
    if r.exit_code and (may_end is None or may_end not in r.output):
        raise RuntimeError(f"llm {args}: {r.exit_code}\n{r.output}")
    return r.output


def prompt():
    for m in CHAT:
        text = llm("-m", m, *COLD, QUESTION)
        ok(text.strip() and text == llm("-m", m, *COLD, "--no-stream",
                                        QUESTION),
           f"{m}: streamed and whole", text)
    ok(llm("-c", *COLD, "And 3 + 3?").strip(), "the talk goes on")
    ok(llm("-m", "demo-text", "-o", "max_tokens", "5", "The sky is").strip(),
       "completions")


def schema():
    for m in CHAT:
        text = llm("-m", m, *COLD, "--schema", json.dumps({
            "type": "object", "additionalProperties": False,
            "properties": {"age": {"type": "integer", "maximum": 150}},
            "required": ["age"]}), "Tom is 7 years old.")
        ok(list(json.loads(text)) == ["age"], f"{m}: a schema", text)


def tools():
    for m in CHAT:
        text = llm("-m", m, *COLD, "--functions", str(TOOL), "--cl", "4",
                   WEATHER, may_end="Chain limit")
        ok(text.strip(), f"{m}: an answer where tools are offered", text)


run(prompt, schema, tools)
