#!/usr/bin/env python3
"""The engine's speed with random weights in the shapes of real models.

usage: shapes.py [SHAPE ...]

For each shape, makes a file in objs/bench, with fewer layers than the real
model, so that it fits into memory (CASES).  Then objs/llm bench and its peers
run each of TESTS ("pp512 tg128"; pp4096, or tg64@4096 behind 4096 tokens), in
turns, REPS times (5), each round in the reverse order of the one before:

  LLAMA_BENCH  llama.cpp's llama-bench
  IK_BENCH     ik_llama.cpp's; with IK_ARGS ("-fa 1 -rtr 1")
  BEFORE       the objs/llm of another build

LLM_ARGS are more arguments of llm bench, as "--isa avx2" or "--products bf16".

Prints the medians of tokens per second, of the ratios of each round with the
least and the greatest, and the share of the machine's read bandwidth that
generation uses.
"""

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OBJS = Path(os.environ.get("LLM_OBJS", ROOT / "objs"))
LLAMA = os.environ.get("LLAMA_BENCH")
IK = os.environ.get("IK_BENCH")
LLM_ARGS = os.environ.get("LLM_ARGS", "").split()
IK_ARGS = os.environ.get("IK_ARGS", "-fa 1 -rtr 1").split()
BEFORE = os.environ.get("BEFORE")
TESTS = os.environ.get("TESTS", "pp512 tg128").split()
REPS = int(os.environ.get("REPS", 5))
THREADS = str(os.cpu_count())

# name: shape, type, more arguments of mkmodel.py
CASES = {
    "qwen3-30b-a3b": ("qwen3-30b-a3b", "q4_k", "--layers", "4"),
    "gpt-oss-20b": ("gpt-oss-20b", "mxfp4", "--rest", "q8_0", "--layers",
                    "3"),
    "qwen3.5-4b": ("qwen3.5-4b", "q4_k", "--layers", "8"),
    "gemma-4-e4b": ("gemma-4-e4b", "q4_k", "--layers", "12"),
    "q8_0": ("qwen3-0.6b", "q8_0"),
    "q4_0": ("qwen3-0.6b", "q4_0"),
    "q4_k": ("qwen3-0.6b", "q4_k"),
    "q6_k": ("qwen3-0.6b", "q6_k"),
    "f16": ("qwen3-0.6b", "f16"),
    "bf16": ("qwen3-0.6b", "bf16"),
    "iq4_nl": ("qwen3-0.6b", "iq4_nl"),
    "iq4_xs": ("qwen3-0.6b", "iq4_xs"),
    "mxfp4": ("qwen3-0.6b", "mxfp4"),
}


def made(name):
    shape, kind, *more = CASES[name]
    path = OBJS / "bench" / f"shape-{name}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([ROOT / "t/bench/mkmodel.py", shape, kind, path,
                        *more], check=True)
    return path


def parsed(test):
    """Kind (pp, tg), number of tokens, and of those before them."""
    m = re.fullmatch(r"(pp|tg)([1-9]\d*)(?:@([1-9]\d*))?", test)
    if m is None:
        raise SystemExit(f"not a test: {test} (pp512, tg128, tg64@4096)")
    return m[1], int(m[2]), int(m[3] or 0)


def ours(llm, path, test):
    """Tokens per second, and the share of the bandwidth in %."""
    kind, n, depth = parsed(test)
    other = {"pp": "tg", "tg": "pp"}[kind]
    out = subprocess.run([llm, "bench", path, "--reps", "1", f"--{kind}",
                          str(n), f"--{other}", "1"]
                         + (["--depth", str(depth)] if depth else [])
                         + LLM_ARGS,
                         check=True, capture_output=True, text=True).stdout
    rate = re.search(rf"\| {kind}{n}(?: @ d{depth})? \| ([0-9.]+) ", out)
    share = re.search(r"(\d+) % of the bandwidth", out)
    return float(rate[1]), share and float(share[1])


def theirs(program, args, path, test):
    """Tokens per second of a llama-bench.  Prompts behind others are llama.cpp's
    alone; ik_llama.cpp generates behind a prompt with -gp."""
    kind, n, depth = parsed(test)
    tests = {"pp": ["-p", str(n), "-n", "0"],
             "tg": ["-p", "0", "-n", str(n)]}[kind]
    if depth and program == IK:
        if kind == "pp":
            return None, None
        tests = ["-p", "0", "-n", "0", "-gp", f"{depth},{n}"]
    elif depth:
        tests += ["-d", str(depth)]
    out = subprocess.run([program, "-m", path, "-t", THREADS, "-r", "1", "-o",
                          "json", *args, *tests], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out[out.index("["):])[-1]["avg_ts"], None


PEERS = [(name, run) for there, name, run in (
    (LLAMA, "llama.cpp", lambda *x: theirs(LLAMA, [], *x)),
    (IK, "ik_llama.cpp", lambda *x: theirs(IK, IK_ARGS, *x)),
    (BEFORE, "before", lambda *x: ours(BEFORE, *x))) if there]


def row(name, test):
    """Prints a row of the table."""
    path = made(name)
    runs = [lambda *x: ours(OBJS / "llm", *x)] + [run for _, run in PEERS]
    rates = [[] for _ in runs]
    shares = []
    for i in range(REPS):
        for k in range(len(runs))[::-1 if i % 2 else 1]:
            rate, share = runs[k](path, test)
            rates[k].append(rate)
            if k == 0:
                shares.append(share)
    share = f"{statistics.median(shares):.0f} %" if test[:2] == "tg" else ""
    cells = [name, test, f"{statistics.median(rates[0]):.1f}", share]
    for other in rates[1:]:
        if None in other:
            cells += ["", ""]
            continue
        ratios = [mine / them for mine, them in zip(rates[0], other)]
        cells += [f"{statistics.median(other):.1f}",
                  f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to "
                  f"{max(ratios):.2f})"]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    names = sys.argv[1:] or list(CASES)
    for name in names:
        if name not in CASES:
            raise SystemExit(f"unknown shape {name} ({', '.join(CASES)})")
    for test in TESTS:
        parsed(test)
    head = ["shape", "test", "tok/s", "bandwidth"]
    for name, _ in PEERS:
        head += [name, "ratio"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head),
          flush=True)
    for name in names:
        for test in TESTS:
            row(name, test)


if __name__ == "__main__":
    main()
