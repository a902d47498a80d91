"""llm, the command: prompts, a conversation, a schema, tools, embeddings;
over chat completions, Responses and completions."""

import json
import os
import pathlib
import subprocess
import sys
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
    """Get the weather of a place."""
    print("called", file=open(%r, "a"))
    return '{"temperature": 21, "sky": "sunny"}'
''' % str(HOME / "calls"))

CHAT = ["demo", "demo-responses"]
SHORT = ["-o", "temperature", "0", "-o", "max_tokens", "100"]


def llm(*args):
    r = subprocess.run([pathlib.Path(sys.executable).parent / "llm", *args],
                       capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if r.returncode:
        raise RuntimeError(f"llm {args}: {r.returncode}\n{r.stdout}{r.stderr}")
    return r.stdout


def prompt():
    for m in CHAT:
        short = SHORT if m == "demo" else SHORT[:2]
        text = llm("-m", m, *short, QUESTION)
        ok(text.strip() and text == llm("-m", m, *short, "--no-stream",
                                        QUESTION),
           f"{m}: streamed and whole", text)
        ok(llm("-m", m, *short, "-c", "And 3 + 3?").strip(),
           f"{m}: the talk goes on")
    ok(llm("-m", "demo-text", "-o", "max_tokens", "5", "The sky is").strip(),
       "completions")


def schema():
    for m in CHAT:
        short = SHORT if m == "demo" else SHORT[:2]
        text = llm("-m", m, *short, "--schema", json.dumps({
            "type": "object", "additionalProperties": False,
            "properties": {"age": {"type": "integer", "maximum": 150}},
            "required": ["age"]}), "Tom is 7 years old.")
        ok(list(json.loads(text)) == ["age"], f"{m}: a schema", text)


def tools():
    for m in CHAT:
        text = llm("-m", m, *SHORT[:2], "--functions", str(TOOL), "--cl", "4",
                   WEATHER)
        ok(text.strip(), f"{m}: tools are offered, an answer comes", text)


run(prompt, schema, tools)
