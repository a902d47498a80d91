"""lm-eval: log-likelihoods, rolling ones and generation, through the server's
tokenizer and without one; a task of our own."""

import json
import os
import pathlib

from tap import BASE, ok, run

import lm_eval
from lm_eval.api.instance import Instance
from lm_eval.models.api_models import JsonChatStr
from lm_eval.models.openai_completions import (LocalChatCompletion,
                                               LocalCompletionsAPI)
from lm_eval.tasks import TaskManager

TASKS = pathlib.Path(__file__).parent / "lm_eval_tasks"
os.chdir(TASKS)


def model(**kwargs):
    return LocalCompletionsAPI(model="demo", base_url=f"{BASE}/completions",
                               max_length=1024, max_retries=1, **kwargs)


def requests(kind, *args):
    return [Instance(kind, {}, a, i) for i, a in enumerate(args)]


def loglikelihood():
    """The chain rule: together as likely as one after the other."""
    lm = model()
    ok(lm.tokenizer_backend == "remote",
       "the server's tokenizer is found", lm.tokenizer_backend)
    a, b, ab = [ll for ll, _ in lm.loglikelihood(requests(
        "loglikelihood", ("What is", " two"), ("What is two", " and two?"),
        ("What is", " two and two?")), disable_tqdm=True)]
    ok(a < 0 and b < 0 and abs(a + b - ab) < 1e-3, "loglikelihood",
       (a, b, ab))
    many = lm.loglikelihood(requests(
        "loglikelihood", *[("The sky", f" is {c}") for c in
                           ("blue", "green", "red", "loud")]),
        disable_tqdm=True)
    ok(len(many) == 4 and len({x for x, _ in many}) == 4, "many", many)


def greedy():
    """What is generated is what it says it would have generated."""
    lm = model()
    ask = "The sky is"
    text, = lm.generate_until(requests(
        "generate_until", (ask, {"max_gen_toks": 1, "until": ["\n\n"],
                                 "min_tokens": 1})), disable_tqdm=True)
    ids = lm.tok_encode(ask)
    (_, same), = lm._loglikelihood_tokens(
        [((ask, text), ids, lm.tok_encode(text))], disable_tqdm=True)
    ok(text and same, "generate_until is greedy", text)


def rolling():
    lm = model()
    text = "The sky is blue. The grass is green."
    whole, = lm.loglikelihood_rolling(
        requests("loglikelihood_rolling", (text,)), disable_tqdm=True)
    ok(whole < 0, "loglikelihood_rolling", whole)


def task():
    r = lm_eval.simple_evaluate(
        model="local-completions",
        model_args=f"model=demo,base_url={BASE}/completions,max_length=1024,"
                   "num_concurrent=2,max_retries=1",
        tasks=["colours"], task_manager=TaskManager(
            include_path=str(TASKS), include_defaults=False))
    n = r["n-samples"]["colours"]["effective"]
    ok(n == 3 and 0 <= r["results"]["colours"]["acc,none"] <= 1,
       "a task with choices", r["results"])


def text():
    """Without a tokenizer, and over chat completions."""
    args = "The sky is", {"max_gen_toks": 4, "until": ["\n\n"]}
    a, = model(tokenizer_backend=None).generate_until(
        requests("generate_until", args), disable_tqdm=True)
    b, = LocalChatCompletion(
        model="demo", base_url=f"{BASE}/chat/completions", max_retries=1
    ).generate_until(requests("generate_until", (
        JsonChatStr(json.dumps([{"role": "user", "content": "Hello!"}])),
        args[1])), disable_tqdm=True)
    ok(isinstance(a, str) and isinstance(b, str), "text and chats", (a, b))


run(loglikelihood, greedy, rolling, task, text)
