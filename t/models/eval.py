#!/usr/bin/env python3
"""Asks the demo model the held-out questions and prints its score.

    eval.py http://127.0.0.1:8080/v1          a running server
    eval.py ../../models/demo.gguf            the file itself, in torch

The first form needs only Python's standard library.  With --fail-below 0.9 the
exit status is 1 if the total is lower.
"""

import argparse
import collections
import json
import re
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import make_data

MAX_TOKENS = 400
THOUGHT = re.compile(r"^\s*<think>(.*?)</think>\s*", re.S)
CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.S)


# -- targets: each returns text with <think> and <tool_call> ------------------

class Server:
    """A server with the OpenAI API below a URL."""

    def __init__(self, url, args):
        self.url = url.rstrip("/") + "/chat/completions"
        self.args = args

    def answer(self, q):
        body = {"messages": q["messages"], "max_tokens": MAX_TOKENS,
                "temperature": self.args.temperature, "seed": self.args.seed}
        if q.get("tools"):
            body["tools"] = q["tools"]
        if q.get("thinking"):
            body["chat_template_kwargs"] = {"enable_thinking": True}
        if self.args.model:
            body["model"] = self.args.model
        request = urllib.request.Request(
            self.url, json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as reply:
            return self._text(json.load(reply)["choices"][0]["message"])

    @staticmethod
    def _text(message):
        text = message.get("content") or ""
        thought = message.get("reasoning_content")
        if thought:
            text = f"<think>\n{thought}\n</think>\n\n{text}"
        for call in message.get("tool_calls") or []:
            text += ('\n<tool_call>\n{"name": '
                     + json.dumps(call["function"]["name"])
                     + ', "arguments": ' + call["function"]["arguments"]
                     + "}\n</tool_call>")
        return text


class File:
    """The weights of a GGUF file in torch, with its chat template."""

    def __init__(self, path, args):
        import torch
        import chat
        import gguf_io
        import model
        torch.set_num_threads(args.threads)
        self.torch, self.chat, self.generate = torch, chat, model.generate
        self.model, self.tok, source = gguf_io.read(path)
        self.template = chat.compile_template(source)
        self.stop = {self.tok.token_to_id(t)
                     for t in ("<|im_end|>", "<|endoftext|>")}
        self.args = args

    def answer(self, q):
        prompt = self.chat.render(self.template, q["messages"],
                                  q.get("tools"), q.get("thinking"))
        random = self.torch.Generator().manual_seed(self.args.seed)
        ids = self.generate(self.model, self.tok.encode(prompt).ids,
                            self.stop, MAX_TOKENS, self.args.temperature,
                            random)
        return self.tok.decode(ids, skip_special_tokens=False)


# -- judging ------------------------------------------------------------------

def _calls(text):
    try:
        return [json.loads(c) for c in CALL.findall(text)]
    except ValueError:
        return None


def _same_json(got, wanted):
    try:
        return json.loads(got) == json.loads(wanted)
    except ValueError:
        return False


def is_right(q, text):
    """Whether the text answers the question."""
    thought = THOUGHT.match(text)
    body = text[thought.end():] if thought else text
    if q.get("thinking") and not (thought and thought.group(1).strip()):
        return False
    if CALL.search(q["answer"]):
        return _calls(body) == _calls(q["answer"])
    if q["check"]:
        return all(c.lower() in body.lower() for c in q["check"])
    if q["skill"] == "json":
        return _same_json(body, q["answer"])
    return " ".join(body.split()) == " ".join(q["answer"].split())


def _ask(who, q):
    try:
        return who.answer(q)
    except (urllib.error.URLError, OSError, KeyError, ValueError) as e:
        return f"(error: {e})"


def run(who, questions, args):
    """Prints wrong answers as they come; returns the numbers of right answers
    and of questions by skill."""
    right, asked = collections.Counter(), collections.Counter()
    with ThreadPoolExecutor(args.parallel) as pool:
        answers = pool.map(lambda q: _ask(who, q), questions)
        for q, text in zip(questions, answers):
            asked[q["skill"]] += 1
            if is_right(q, text):
                right[q["skill"]] += 1
            elif args.wrong:
                last = q["messages"][-1]["content"]
                print(f"# {q['skill']}: {last!r}\n#   got    {text!r}\n"
                      f"#   wanted {q['answer']!r}", flush=True)
    return right, asked


def report(right, asked):
    """Prints the scores; returns the share of right answers."""
    for skill in asked:
        print(f"{skill:16} {right[skill]:4} / {asked[skill]:4}  "
              f"{100 * right[skill] / asked[skill]:5.1f} %")
    share = sum(right.values()) / sum(asked.values())
    print(f"{'total':16} {sum(right.values()):4} / "
          f"{sum(asked.values()):4}  {100 * share:5.1f} %")
    return share


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("target", help="a URL that ends in /v1, or a GGUF file")
    p.add_argument("--per-skill", type=int, default=60)
    p.add_argument("--temperature", type=float, default=0.0)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--skill", help="ask about one skill only")
    p.add_argument("--model", help="the model's name on the server")
    p.add_argument("--parallel", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--wrong", action="store_true", help="show wrong answers")
    p.add_argument("--fail-below", type=float, default=0.0)
    args = p.parse_args()
    questions = [q for q in make_data.questions(args.per_skill)
                 if args.skill in (None, q["skill"])]
    kind = Server if args.target.startswith("http") else File
    share = report(*run(kind(args.target, args), questions, args))
    sys.exit(share < args.fail_below)


if __name__ == "__main__":
    main()
