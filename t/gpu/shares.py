#!/usr/bin/env python3
"""Adds to the results of bench.c the shares of the GPU's rates they reached.

usage: shares.py RESULTS.jsonl SHAPE TYPE < BENCH.jsonl

Standard input is what t/gpu/bench.c printed for a model of t/bench/mkmodel.py.
It is copied to standard output; lines of decoding get their share of the copy
bandwidth (of_copy), lines of prompts their share of the matrix rate
(of_matrix).  The rates are those of the first line of RESULTS.jsonl
(t/gpu/peak.cu); without them, or of one that is 0, nothing is added.

A step of one token for each of n streams reads every matrix once (the embedding
only if it is also the head) and the keys and values of all cached positions.
The first line of bench.c says whether weights and KV are fp8, which is a byte
for each element, and some more for scales.  A prompt takes two operations for
each weight and token (for the head, only for the last token), and four for each
dimension of a query and each position that it sees.
"""

import argparse
import json
import math
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "t" / "bench"))

import mkmodel  # noqa: E402

# mean of the positions cached while bench.c decodes, 128 to 192
CACHED = 160


def step_bytes(s, n_vocab, kind, streams, fp8):
    _, elements, make = mkmodel.TYPES[kind]
    block = len(make(random.Random(1)))
    total = 0
    for name, dims, what in mkmodel.tensors(s, n_vocab):
        if name == "token_embd.weight" and not s["tied"]:
            continue
        if what != "w":
            total += math.prod(dims) * 4
        elif "weights" in fp8 and name.startswith("blk.") and elements == 1:
            total += (dims[0] + 4) * dims[1]
        else:
            total += math.prod(dims) // elements * block
    head = s["head"] + 1 if "kv" in fp8 else 2 * s["head"]
    kv = s["layers"] * s["kv"] * 2 * head
    return total + streams * CACHED * kv


def prompt_flops(s, n_vocab, tokens):
    layers = sum(math.prod(dims)
                 for name, dims, what in mkmodel.tensors(s, n_vocab)
                 if name.startswith("blk.") and what == "w")
    pairs = tokens * (tokens + 1) // 2
    return (2 * layers * tokens + 2 * s["embd"] * n_vocab
            + 4 * s["layers"] * s["heads"] * s["head"] * pairs)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("results", type=Path)
    p.add_argument("shape", choices=mkmodel.SHAPES)
    p.add_argument("type", choices=mkmodel.TYPES)
    args = p.parse_args()
    with open(args.results) as f:
        peak = json.loads(f.readline() or "{}")
    s = mkmodel.SHAPES[args.shape]
    n_vocab = s["vocab"] or mkmodel.tokenizer(
        ROOT / "models" / "demo.gguf", 0)[1]
    fp8 = ""
    for line in sys.stdin:
        d = json.loads(line)
        fp8 = d.get("fp8", fp8)
        if d.get("bench") == "decode" and peak.get("copy_gb_s"):
            rate = step_bytes(s, n_vocab, args.type, d["streams"],
                              fp8) / d["step_ms"] * 1e-6
            d["of_copy"] = round(rate / peak["copy_gb_s"], 4)
        if d.get("bench") == "prompt" and peak.get("matrix_tflops"):
            rate = prompt_flops(s, n_vocab, d["tokens"]) / d["ms"] * 1e-9
            d["of_matrix"] = round(rate / peak["matrix_tflops"], 4)
        print(json.dumps(d), flush=True)


if __name__ == "__main__":
    main()
