#!/usr/bin/env python3
"""Writes a GGUF file of a model that says what it is told to: for tests of
what a client does with an answer, whatever the demo model has learnt.

usage: mkscript.py SCRIPT.json OUT.gguf

SCRIPT.json is {"LINE": "what is said", ...}.  Each line is given a control
token, <|say:LINE|>, and a prompt that ends in it is answered with the line's
text, token by token, at any temperature; which of them a prompt ends in, the
chat template decides (template.jinja beside this file).  After any other token
all tokens are equally likely.

A line ends with the demo model's own end.  With {"says": TEXT, "end": TOKEN}
it ends with a control token of that name, behind which the model would say
more if it were asked to.

It is a real model with real weights: one block that adds nothing, and between
the embedding and the output a table of which token follows which.  Each token
that follows another has a code of its own, random signs: it is the output's
row of that token, and the embedding of every token before it, so that however
many lines have one end, no token comes near the one that follows.  The
tokenizer is the demo model's with these tokens behind it, each of them some
text of a line.

Formats: github.com/ggml-org/ggml, docs/gguf.md.
"""

import argparse
import json
import math
import random
import re
import struct
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "t" / "bench"))

import mkmodel  # noqa: E402

SHAPE = dict(arch="qwen3", embd=256, layers=1, heads=1, kv=1, head=64, ff=64,
             tied=False, base=1e6, eps=1e-6, ctx=131072)
LOGIT = 64.0                            # of the token that follows

NORMAL, CONTROL = 1, 3


def byte_letters():
    """What the tokenizer writes for each byte, as GPT-2 did."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain},
            **{b: chr(256 + i) for i, b in enumerate(rest)}}


def plan(script, known, end):
    """The new tokens, (text, type), and the pairs of ids that follow."""
    letters = byte_letters()
    first = len(known)
    ids = {text: i for i, text in enumerate(known)}
    tokens, follows = [], []

    def say(text, last):
        for piece in re.findall(r"\w+|\W", text):
            piece = "".join(letters[b] for b in piece.encode())
            follows.append((first + len(tokens) - 1, first + len(tokens)))
            tokens.append((piece.encode(), NORMAL))
        follows.append((first + len(tokens) - 1, last))

    for line, said in script.items():
        last = end
        if isinstance(said, dict):
            name = said["end"].encode()
            if name not in ids:
                ids[name] = first + len(tokens)
                tokens.append((name, CONTROL))
                say(" And on.", end)
            last = ids[name]
            said = said["says"]
        tokens.append((f"<|say:{line}|>".encode(), CONTROL))
        say(said, last)
    return tokens, follows


def rows(n_vocab, chosen):
    """n_vocab rows of floats, zeros but for the chosen."""
    zero = bytes(4 * SHAPE["embd"])
    for i in range(n_vocab):
        row = chosen.get(i)
        yield struct.pack(f"<{len(row)}f", *row) if row else zero


def write(path, script):
    kv = {k: v for k, v in mkmodel.Reader(ROOT / "models/demo.gguf").kv.items()
          if k.startswith("tokenizer.")}
    texts = kv["tokenizer.ggml.tokens"][1][1]
    end = kv["tokenizer.ggml.eos_token_id"][1]
    tokens, follows = plan(script, texts, end)

    rng = random.Random(1)
    codes = {}
    for after in dict.fromkeys(after for _, after in follows):
        codes[after] = [rng.choice((-1.0, 1.0)) for _ in range(SHAPE["embd"])]
    embd = {before: codes[after] for before, after in follows}
    out = {after: [c * LOGIT / SHAPE["embd"] for c in code]
           for after, code in codes.items()}

    texts.extend(text for text, _ in tokens)
    kv["tokenizer.ggml.token_type"][1][1].extend(kind for _, kind in tokens)
    if "tokenizer.ggml.scores" in kv:
        kv["tokenizer.ggml.scores"][1][1].extend(0.0 for _ in tokens)
    n_vocab = len(texts)

    pairs = (mkmodel.config(SHAPE, "script", n_vocab)
             + [mkmodel.pair(k, *v) for k, v in kv.items()])
    tensors = list(mkmodel.tensors(SHAPE, n_vocab))
    table, at = [], 0
    for name, dims, _ in tensors:
        table.append(mkmodel.string(name) + struct.pack(
            f"<I{len(dims)}QIQ", len(dims), *dims, 0, at))
        at += mkmodel.align(math.prod(dims) * 4)

    with open(path, "wb") as f:
        f.write(struct.pack("<4sIQQ", b"GGUF", 3, len(table), len(pairs)))
        f.writelines(pairs)
        f.writelines(table)
        for name, dims, what in tensors:
            f.write(bytes(mkmodel.align(f.tell()) - f.tell()))
            if name == "token_embd.weight":
                f.writelines(rows(n_vocab, embd))
            elif name == "output.weight":
                f.writelines(rows(n_vocab, out))
            else:
                number = 0 if what == "w" else what
                f.write(struct.pack("<f", number) * math.prod(dims))
        f.write(bytes(mkmodel.align(f.tell()) - f.tell()))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("script")
    p.add_argument("out")
    args = p.parse_args()
    write(args.out, json.loads(Path(args.script).read_text()))


if __name__ == "__main__":
    main()
