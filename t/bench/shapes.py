#!/usr/bin/env python3
"""The engine's speed with random weights in the shapes of real models.

usage: shapes.py [SHAPE ...]

For each shape, makes a file in objs/bench, with fewer layers than the real
model, so that it fits into memory (CASES).  Then objs/llm bench and, if
LLAMA_BENCH is its path, llama.cpp's llama-bench process a prompt of 512 tokens
and generate 128 tokens, in turns, REPS times (5).  Prints the medians, their
ratios, and the share of the machine's read bandwidth that generation uses.
BEFORE is the objs/llm of another build, which then takes turns, too.
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
BEFORE = os.environ.get("BEFORE")
REPS = int(os.environ.get("REPS", 5))
THREADS = str(os.cpu_count())

# name: shape, type, more arguments of mkmodel.py
CASES = {
    "qwen3-30b-a3b": ("qwen3-30b-a3b", "q4_k", "--layers", "4"),
    "gpt-oss-20b": ("gpt-oss-20b", "mxfp4", "--rest", "q8_0", "--layers",
                    "3"),
    "qwen3.5-4b": ("qwen3.5-4b", "q4_k", "--layers", "8"),
    "gemma-4-e4b": ("gemma-4-e4b", "q4_k", "--layers", "12"),
    "q4_0": ("qwen3-0.6b", "q4_0"),
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


def ours(path, llm):
    """Tokens per second of pp512 and tg128; the share of the bandwidth in %,
    None from older builds, which do not print it."""
    out = subprocess.run([llm, "bench", path, "--reps", "1"],
                         check=True, capture_output=True, text=True).stdout
    rates = re.findall(r"\| (?:pp512|tg128) \| ([0-9.]+) ", out)
    share = re.search(r"(\d+) % of the bandwidth", out)
    return list(map(float, rates)), share and float(share.group(1))


def theirs(path):
    out = subprocess.run([LLAMA, "-m", path, "-t", THREADS, "-p", "512", "-n",
                          "128", "-r", "1", "-o", "json"], check=True,
                         capture_output=True, text=True).stdout
    return [r["avg_ts"] for r in json.loads(out)]


def row(name):
    """Prints a row of the table.  Programs take turns; each round has the
    reverse order of the round before."""
    path = made(name)
    shares = []

    def mine():
        rates, share = ours(path, OBJS / "llm")
        shares.append(share)
        return rates

    runs = [mine]
    if LLAMA:
        runs.append(lambda: theirs(path))
    if BEFORE:
        runs.append(lambda: ours(path, BEFORE)[0])
    rates = [[] for _ in runs]
    for i in range(REPS):
        for k in range(len(runs))[::-1 if i % 2 else 1]:
            rates[k].append(runs[k]())

    medians = [[statistics.median(x) for x in zip(*r)] for r in rates]
    pp, tg = medians[0]
    cells = [name, f"{pp:.1f}", f"{tg:.2f}",
             f"{statistics.median(shares):.0f} %"]
    for other_pp, other_tg in medians[1:]:
        cells += [f"{other_pp:.1f}", f"{other_tg:.2f}",
                  f"{pp / other_pp:.2f}", f"{tg / other_tg:.2f}"]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    names = sys.argv[1:] or list(CASES)
    for name in names:
        if name not in CASES:
            raise SystemExit(f"unknown shape {name} ({', '.join(CASES)})")
    head = ["shape", "pp512", "tg128", "bandwidth"]
    for there, other in ((LLAMA, "llama.cpp"), (BEFORE, "before")):
        if there:
            head += [f"{other} pp512", "tg128", "ratio pp", "ratio tg"]
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head),
          flush=True)
    for name in names:
        row(name)


if __name__ == "__main__":
    main()
