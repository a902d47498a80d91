"""Open WebUI's requests, as its source sends them (0.6, routers/openai.py and
audio.py): the program itself is too large for a test.  A picture that is added
to a chat comes after the text, as a data: URL, by aiohttp; a recording of the
browser is uploaded by requests, with the name and the model alone."""

import json

from tap import BASE, KNOWN, ok, picture, run

import aiohttp
import requests

KEY = {"Authorization": "Bearer none"}


async def chat():
    body = {"stream": True, "model": "sees", "temperature": 0,
            "max_tokens": 12, "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": KNOWN["question"]},
                {"type": "image_url", "image_url": {
                    "url": "data:image/png;base64," + picture()}}]}]}
    text, usage = "", None
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{BASE}/chat/completions",
                                data=json.dumps(body), headers={
                                    "Content-Type": "application/json",
                                    **KEY}) as r:
            kind = r.headers["Content-Type"]
            async for line in r.content:
                line = line.decode().strip().removeprefix("data: ")
                if line and line != "[DONE]":
                    chunk = json.loads(line)
                    usage = chunk.get("usage") or usage
                    for choice in chunk["choices"]:
                        text += choice["delta"].get("content") or ""
    ok("text/event-stream" in kind and text == KNOWN["last"]["said"],
       "a picture in a chat", (kind, text))
    ok(usage["prompt_tokens"] == KNOWN["last"]["tokens"], "its usage", usage)


def upload():
    for sent, want in ("speech", None), ("recording", "recorded"):
        if sent not in KNOWN:
            continue
        name = "0b5e.webm" if want else "0b5e.wav"
        with open(KNOWN[sent], "rb") as f:
            r = requests.post(url=f"{BASE}/audio/transcriptions", headers=KEY,
                              files={"file": (name, f)},
                              data={"model": "whisper-1"}, timeout=600)
        text = r.json().get("text")
        ok(r.status_code == 200 and (text == KNOWN[want] if want else text),
           f"an upload: {name}", r.text)


run(chat, upload)
