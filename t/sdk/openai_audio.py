"""Transcriptions by the official openai package for Python.

usage: openai_audio.py BASE_URL FILE   (http://127.0.0.1:PORT/v1, a sound)

Prints TAP.  The server has a model of speech by the name of whisper-1.
"""

import sys

import openai

BASE, FILE = sys.argv[1:3]
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
    ok(plain.text and plain.usage.type == "duration"
       and plain.usage.seconds == 2, "json: text and usage", plain)

    r = hear(response_format="verbose_json",
             timestamp_granularities=["word", "segment"])
    ok(r.language == "english" and r.duration == 2, "verbose_json", r)
    ok(r.segments and r.words, "segments and words", r)

    r = hear(response_format="verbose_json")
    ok(r.text == plain.text and r.words is None, "segments alone", r)

    for form in "text", "srt", "vtt":
        r = hear(response_format=form)
        ok(isinstance(r, str) and r, form, r)

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
    ok(r.text, "a translation", r)

    try:
        audio.transcriptions.create(file=("a.wav", b"RIFF"),
                                    model="whisper-1")
        ok(False, "a broken file is an error")
    except openai.BadRequestError as e:
        ok(e.param == "file", "a broken file is BadRequestError", e.body)

    print(f"1..{COUNT}")
    sys.exit(FAILED != 0)


main()
