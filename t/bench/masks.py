#!/usr/bin/env python3
"""Time of JSON Schemas, and how many are enforced exactly.

usage: masks.py [--llm objs/llm] [--vocab FILE.gguf] [--schemas FILE.jsonl]
                [--runs N]

Each line of the schemas is {"name", "schema", "tests": [{"valid", "data"}]};
`llm match` compiles each schema, checks each instance token by token with the
masks, and prints which were accepted and the time of each step.  A schema has
passed if exactly the valid instances were accepted.  "compile" has a schema's
first mask, "mask" those after it, "slowest" the slowest of these of each
schema.  Times are wall clock times, each the smallest of several runs, as a
busy machine affects that least.

The schemas of MaskBench, which LLGuidance is measured by, are in this format
(github.com/guidance-ai/jsonschemabench).
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT.parent / "shared" / "fixtures"


def run(args):
    """The results of llm match, one per case."""
    with open(args.schemas, "rb") as cases:
        out = subprocess.run([args.llm, "match", args.vocab], stdin=cases,
                             stdout=subprocess.PIPE, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def fastest(runs):
    """The cases of the first run, with the smallest times of all runs."""
    for case, *others in zip(*runs):
        if case["status"] == "ok":
            same = [case, *others]
            case["compile_us"] = min(o["compile_us"] for o in same)
            case["mask_us"] = [min(t) for t in zip(*(o["mask_us"]
                                                     for o in same))]
        yield case


def verdict(case, said):
    """refused, passed, loose (an invalid instance was accepted), or tight (a
    valid one was not)."""
    if said["status"] != "ok":
        return "refused"
    wrong = [t["valid"] for t, accepted in zip(case["tests"],
                                               said["accepted"])
             if t["valid"] != accepted]
    return "loose" if False in wrong else "tight" if wrong else "passed"


def times(name, us):
    us = sorted(us)
    if us:
        print(f"{name:8} us  median {us[len(us) // 2]:.2f}  "
              f"p95 {us[int(len(us) * 0.95)]:.1f}  "
              f"p99 {us[int(len(us) * 0.99)]:.1f}  max {us[-1]:.0f}  "
              f"({len(us)})")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--llm", default=str(ROOT / "objs" / "llm"))
    p.add_argument("--vocab", default=str(
        FIXTURES / "tokenizers" / "ggml-vocab-qwen2.gguf"))
    p.add_argument("--schemas", default=str(
        FIXTURES / "schemas" / "maskbench-dev.jsonl"))
    p.add_argument("--runs", type=int, default=3)
    args = p.parse_args()

    for path in args.vocab, args.schemas:
        if not Path(path).exists():
            sys.exit(f"masks.py: {path}: no such file")

    with open(args.schemas, encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]

    said = list(fastest([run(args) for _ in range(args.runs)]))
    count = {}
    for case, answer in zip(cases, said):
        how = verdict(case, answer)
        count[how] = count.get(how, 0) + 1

    print(f"{len(cases)} schemas: " + ", ".join(
        f"{count.get(how, 0)} {how}"
        for how in ("passed", "refused", "tight", "loose")))

    done = [s for s in said if s["status"] == "ok"]
    times("compile", [s["compile_us"] for s in done])
    times("mask", [us for s in done for us in s["mask_us"]])
    times("slowest", [max(s["mask_us"]) for s in done if s["mask_us"]])


if __name__ == "__main__":
    main()
