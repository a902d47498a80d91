"""lm-eval: log-likelihoods, rolling ones and generation, through the server's
tokenizer and with text; the command on a task of our own."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tap import BASE, ok, run

from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI

HERE = pathlib.Path(__file__).parent


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
    ask = "What is 2 + 2?"
    text, = lm.generate_until(requests(
        "generate_until", (ask, {"max_gen_toks": 8, "until": ["\n\n"]})),
        disable_tqdm=True)
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


def command():
    out = tempfile.mkdtemp(dir=os.environ["HOME"])
    r = subprocess.run(
        [sys.executable, "-m", "lm_eval", "run", "--model",
         "local-completions", "--model_args",
         f"model=demo,base_url={BASE}/completions,max_length=1024,"
         "num_concurrent=2,max_retries=1", "--include_path",
         str(HERE / "lm_eval_tasks"), "--tasks", "colours",
         "--output_path", out],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
        cwd=HERE / "lm_eval_tasks")
    files = list(pathlib.Path(out).rglob("results*.json"))
    result = json.loads(files[0].read_text())["results"] if files else {}
    ok(r.returncode == 0 and 0 <= result["colours"]["acc,none"] <= 1,
       "lm_eval run: a task with choices", r.stdout + r.stderr)


run(loglikelihood, greedy, rolling, command)
