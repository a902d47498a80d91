"""Transcriptions by the official openai package for Python.

usage: openai_audio.py BASE_URL   (http://127.0.0.1:PORT/v1)

Prints TAP.  The server has a model of speech by the name of whisper-1; the file
LLM_MEDIA says what is to come back (t/lib/LLM/Media.pm).
"""

import json
import os
import sys

import openai

BASE = sys.argv[1]
with open(os.environ["LLM_MEDIA"]) as known:
    KNOWN = json.load(known)
FILE = KNOWN["speech"]
COUNT = 0
FAILED = 0
OPTS = {"model": "whisper-1", "temperature": 0.4, "language": "en"}


def ok(good, name, note=""):
    global COUNT, FAILED
    COUNT += 1
    FAILED += not good
    print(("ok" if good else "not ok"), COUNT, "-", name, flush=True)
    if not good and note != "":
        print("#", str(note).replace("\n", "\n# "), flush=True)


def main():
    c = openai.OpenAI(base_url=BASE, api_key="none", max_retries=0,
                      timeout=600)
    audio = c.audio

    def hear(**more):
        with open(FILE, "rb") as f:
            return audio.transcriptions.create(file=f, **OPTS, **more)

    plain = hear()
    ok(plain.text == KNOWN["heard"] and plain.usage.type == "duration"
       and plain.usage.seconds == 2, "json: text and usage", plain)

    r = hear(response_format="verbose_json",
             timestamp_granularities=["word", "segment"])
    ok(r.language == "english" and r.duration == 2, "verbose_json", r)
    ok(r.segments and r.words, "segments and words", r)

    r = hear(response_format="verbose_json",
             timestamp_granularities=["word"])
    ok([w.to_dict() for w in r.words] == KNOWN["words"], "words", r)

    r = hear(response_format="verbose_json")
    ok(r.text == plain.text and r.words is None, "segments alone", r)

    for form in "text", "srt", "vtt":
        r = hear(response_format=form)
        ok(isinstance(r, str) and r
           and (form != "srt" or r == KNOWN["srt"]), form, r)

    r = hear(include=["logprobs"])
    ok(r.logprobs and r.logprobs[0].logprob <= 0, "logprobs", r)

    events = list(hear(stream=True))
    ok(events[-1].type == "transcript.text.done"
       and events[-1].text == plain.text, "a stream's end", events)
    ok("".join(e.delta for e in events[:-1]).strip() == plain.text,
       "a stream's text", events)

    with open(FILE, "rb") as f:
        r = audio.translations.create(file=f, model="whisper-1",
                                      temperature=0.4)
    ok(r.text == KNOWN["translated"], "a translation", r)

    if "recording" in KNOWN:
        with open(KNOWN["recording"], "rb") as f:
            r = audio.transcriptions.create(file=f, model="whisper-1")
        ok(r.text == KNOWN["recorded"], "a browser's recording", r)

    try:
        audio.transcriptions.create(file=("a.wav", b"RIFF"),
                                    model="whisper-1")
        ok(False, "a broken file is an error")
    except openai.BadRequestError as e:
        ok(e.param == "file", "a broken file is BadRequestError", e.body)

    print(f"1..{COUNT}")
    sys.exit(FAILED != 0)


main()
