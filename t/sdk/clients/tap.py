"""What the clients' scripts share: TAP, the server's address, a tool.

usage of each: NAME_client.py BASE_URL   (http://127.0.0.1:PORT/v1)
LLM_MEDIA names a file of t/lib/LLM/Media.pm.

A script lists its checks for run(); an exception in one is a failed test.
The checks ask for little and do not judge how clever the answer is: they are
about what travels, and hold with any weights.  Where a client can force a call
or a form it does.
"""

import asyncio
import base64
import inspect
import json
import os
import sys
import traceback
from typing import Literal

# nothing may leave the machine, and nothing of the user's is read; HOME is a
# folder that the test removes

os.environ.update({
    "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": sys.argv[1],
    "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false", "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False",
    "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1"})

BASE = sys.argv[1]
QUESTION = "What is 2 + 2?"
WEATHER = "What is the weather in Paris?"

# what a picture and a sound are to be answered
with open(os.environ["LLM_MEDIA"]) as media:
    KNOWN = json.load(media)

count = 0
failed = 0


def ok(good, name, note=""):
    global count, failed
    count += 1
    failed += not good
    print("ok" if good else "not ok", count, "-", name, flush=True)
    if not good:
        print("#", str(note).replace("\n", "\n# "), flush=True)


def picture():
    """The picture in base64."""
    with open(KNOWN["picture"], "rb") as f:
        return base64.b64encode(f.read()).decode()


def weather(city: Literal["Paris", "Rome", "Oslo"]) -> str:
    """Get the weather of a city."""
    CITIES.append(city)
    return '{"temperature": 21, "sky": "sunny"}'


CITIES = []


def cities():
    """The cities that weather() was called for since the last time."""
    asked = CITIES[:]
    CITIES.clear()
    return asked


def run(*checks):
    for check in checks:
        try:
            if inspect.iscoroutinefunction(check):
                asyncio.run(check())
            else:
                check()
        except Exception as e:
            where = traceback.extract_tb(e.__traceback__)[1:]
            ok(False, f"{check.__name__} runs to its end",
               f"{type(e).__name__}: {e}\n" + "".join(
                   traceback.format_list(where[:1] + where[-2:])))
    print(f"1..{count}")
    sys.exit(1 if failed else 0)
