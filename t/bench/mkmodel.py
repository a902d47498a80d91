#!/usr/bin/env python3
"""Writes a GGUF file of a real model's shape with random weights.

usage: mkmodel.py SHAPE TYPE OUT.gguf [--vocab FILE.gguf] [--layers N]
                  [--ctx N]

What such a file says makes no sense, but it takes the time and the memory
that the real model would, and it can be served: the tokenizer is copied from
--vocab (the demo model), padded to the real number with words that no merge
makes: random weights choose them, and every server shows them.

Needs nothing but Python.  Weights are drawn from a pool of a mebibyte of
random blocks, each tensor from another place, so 8 GB take seconds.

Formats: github.com/ggml-org/ggml, docs/gguf.md and src/ggml-common.h.
"""

import argparse
import math
import random
import struct
from pathlib import Path

SHAPES = {
    "tiny": dict(arch="qwen3", embd=256, layers=2, heads=4, kv=2, head=64,
                 ff=512, vocab=0, tied=True, base=1e6, eps=1e-6, ctx=4096),
    "qwen3-0.6b": dict(arch="qwen3", embd=1024, layers=28, heads=16, kv=8,
                       head=128, ff=3072, vocab=151936, tied=True, base=1e6,
                       eps=1e-6, ctx=40960),
    "qwen3-8b": dict(arch="qwen3", embd=4096, layers=36, heads=32, kv=8,
                     head=128, ff=12288, vocab=151936, tied=False, base=1e6,
                     eps=1e-6, ctx=40960),
    "llama-3.2-1b": dict(arch="llama", embd=2048, layers=16, heads=32, kv=8,
                         head=64, ff=8192, vocab=128256, tied=True,
                         base=5e5, eps=1e-5, ctx=131072),
    "llama-3.1-8b": dict(arch="llama", embd=4096, layers=32, heads=32, kv=8,
                         head=128, ff=14336, vocab=128256, tied=False,
                         base=5e5, eps=1e-5, ctx=131072),
}

STD = 0.02                              # of the weights
POOL = 1 << 20                          # bytes of random blocks
ALIGN = 32

U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
I32 = 5
SCALAR = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
          10: "Q", 11: "q", 12: "d"}


# ---- blocks of each type: one with random content ----

def half(x):
    return struct.pack("<e", x)


def block_f32(rng):
    return struct.pack("<f", rng.gauss(0, STD))


def block_f16(rng):
    return half(rng.gauss(0, STD))


def block_bf16(rng):
    return struct.pack("<f", rng.gauss(0, STD))[2:]


def uniform_step(levels):
    """The step with which `levels` equal steps have the deviation STD."""
    return STD / math.sqrt((levels * levels - 1) / 12)


def block_q8_0(rng):
    q = bytes(b if b != 0x80 else 0 for b in rng.randbytes(32))
    return half(uniform_step(255)) + q


def block_q4_0(rng):
    return half(uniform_step(16)) + rng.randbytes(16)


def block_q4_1(rng):
    d = uniform_step(16)
    return half(d) + half(-7.5 * d) + rng.randbytes(16)


def block_q5_0(rng):
    return half(uniform_step(32)) + rng.randbytes(20)


def block_q5_1(rng):
    d = uniform_step(32)
    return half(d) + half(-15.5 * d) + rng.randbytes(20)


def k_scales(rng):
    """Eight scales and the same eight minimums, 6 bits each, in 12 bytes."""
    s = [rng.randrange(32, 64) for _ in range(8)]
    low = [s[i] | (s[i + 4] >> 4) << 6 for i in range(4)]
    high = [s[i + 4] & 15 | (s[i + 4] & 15) << 4 for i in range(4)]
    return bytes(low + low + high)


def block_q4_k(rng):
    d = uniform_step(16) / 48
    return half(d) + half(7.5 * d) + k_scales(rng) + rng.randbytes(128)


def block_q5_k(rng):
    d = uniform_step(32) / 48
    return half(d) + half(15.5 * d) + k_scales(rng) + rng.randbytes(160)


def block_q6_k(rng):
    scales = bytes(rng.randrange(64, 128) for _ in range(16))
    return rng.randbytes(192) + scales + half(uniform_step(64) / 96)


# type: its number, elements of a block, a random block
TYPES = {
    "f32": (0, 1, block_f32), "f16": (1, 1, block_f16),
    "bf16": (30, 1, block_bf16), "q8_0": (8, 32, block_q8_0),
    "q4_0": (2, 32, block_q4_0), "q4_1": (3, 32, block_q4_1),
    "q5_0": (6, 32, block_q5_0), "q5_1": (7, 32, block_q5_1),
    "q4_k": (12, 256, block_q4_k), "q5_k": (13, 256, block_q5_k),
    "q6_k": (14, 256, block_q6_k),
}


class Pool:
    """Random blocks of one type, given out from ever other places."""

    def __init__(self, name, rng):
        self.number, self.elements, make = TYPES[name]
        self.size = len(make(rng))
        self.data = b"".join(make(rng) for _ in range(POOL // self.size))
        self.rng = rng

    def bytes_of(self, n):
        return n // self.elements * self.size

    def write(self, out, n):
        left = self.bytes_of(n)
        blocks = len(self.data) // self.size
        start = self.rng.randrange(blocks) * self.size
        turned = self.data[start:] + self.data[:start]
        while left > 0:
            out.write(turned[:left])
            left -= len(turned)


# ---- GGUF ----

def string(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def pair(key, kind, value):
    if kind == STRING:
        body = string(value)
    elif kind == ARRAY:
        item, values = value
        body = struct.pack("<IQ", item, len(values))
        if item == STRING:
            body += b"".join(map(string, values))
        else:
            body += struct.pack(f"<{len(values)}{SCALAR[item]}", *values)
    else:
        body = struct.pack("<" + SCALAR[kind], value)
    return string(key) + struct.pack("<I", kind) + body


class Reader:
    """The metadata of a GGUF file: {key: (type, value)}."""

    def __init__(self, path):
        self.data = Path(path).read_bytes()
        self.pos = 0
        magic, _, _, n = self.take("<4sIQQ")
        if magic != b"GGUF":
            raise SystemExit(f"{path}: not a GGUF file")
        self.kv = {}
        for _ in range(n):
            key = self.string().decode()
            kind, = self.take("<I")
            self.kv[key] = (kind, self.value(kind))

    def take(self, fmt):
        v = struct.unpack_from(fmt, self.data, self.pos)
        self.pos += struct.calcsize(fmt)
        return v

    def string(self):
        n, = self.take("<Q")
        self.pos += n
        return self.data[self.pos - n:self.pos]

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.take("<" + SCALAR[kind])[0]
        item, n = self.take("<IQ")
        if item == STRING:
            return item, [self.string() for _ in range(n)]
        return item, list(self.take(f"<{n}{SCALAR[item]}"))


def tokenizer(path, n_vocab):
    """The pairs of a file's tokenizer, padded; and how many tokens."""
    kv = {k: v for k, v in Reader(path).kv.items()
          if k.startswith("tokenizer.")}
    tokens = kv["tokenizer.ggml.tokens"][1][1]
    n = len(tokens)
    n_vocab = n_vocab or n
    if n > n_vocab:
        raise SystemExit(f"{path}: {n} tokens, the shape has {n_vocab}")
    pad = {"tokenizer.ggml.tokens": lambda i: b"\xc4\xa0word%d" % i,
           "tokenizer.ggml.token_type": lambda i: 1,
           "tokenizer.ggml.scores": lambda i: 0.0}
    for key, fill in pad.items():
        if key in kv:
            kv[key][1][1].extend(fill(i) for i in range(n, n_vocab))
    return [pair(k, *v) for k, v in kv.items()], n_vocab


def config(s, name, n_vocab):
    a = s["arch"]
    sizes = {
        "context_length": s["ctx"], "embedding_length": s["embd"],
        "block_count": s["layers"], "feed_forward_length": s["ff"],
        "attention.head_count": s["heads"],
        "attention.head_count_kv": s["kv"],
        "attention.key_length": s["head"],
        "attention.value_length": s["head"],
        "rope.dimension_count": s["head"], "vocab_size": n_vocab,
    }
    return ([pair("general.architecture", STRING, a),
             pair("general.name", STRING, name)]
            + [pair(f"{a}.{k}", U32, v) for k, v in sizes.items()]
            + [pair(f"{a}.rope.freq_base", F32, s["base"]),
               pair(f"{a}.attention.layer_norm_rms_epsilon", F32, s["eps"])])


def tensors(s, n_vocab):
    """(name, row length, rows); rows of a vector are 0."""
    embd, q, kv = s["embd"], s["heads"] * s["head"], s["kv"] * s["head"]
    yield "token_embd.weight", embd, n_vocab
    yield "output_norm.weight", embd, 0
    if not s["tied"]:
        yield "output.weight", embd, n_vocab
    for i in range(s["layers"]):
        b = f"blk.{i}."
        yield b + "attn_norm.weight", embd, 0
        yield b + "attn_q.weight", embd, q
        yield b + "attn_k.weight", embd, kv
        yield b + "attn_v.weight", embd, kv
        yield b + "attn_output.weight", q, embd
        if s["arch"] == "qwen3":
            yield b + "attn_q_norm.weight", s["head"], 0
            yield b + "attn_k_norm.weight", s["head"], 0
        yield b + "ffn_norm.weight", embd, 0
        yield b + "ffn_gate.weight", embd, s["ff"]
        yield b + "ffn_up.weight", embd, s["ff"]
        yield b + "ffn_down.weight", s["ff"], embd


def align(n):
    return (n + ALIGN - 1) // ALIGN * ALIGN


def write(path, shape, name, kind, vocab):
    pool = Pool(kind, random.Random(1))
    tok, n_vocab = tokenizer(vocab, shape["vocab"])
    kv = config(shape, name, n_vocab) + tok
    table, off = [], 0
    plan = list(tensors(shape, n_vocab))
    for tensor, row, rows in plan:
        dims = (row, rows) if rows else (row,)
        number = pool.number if rows else 0
        if rows and row % pool.elements:
            raise SystemExit(f"{tensor}: rows of {row} are no whole blocks "
                             f"of {kind}")
        table.append(string(tensor) + struct.pack(
            f"<I{len(dims)}QIQ", len(dims), *dims, number, off))
        off += align(pool.bytes_of(row * rows) if rows else row * 4)
    with open(path, "wb") as out:
        out.write(struct.pack("<4sIQQ", b"GGUF", 3, len(table), len(kv)))
        out.writelines(kv)
        out.writelines(table)
        for _, row, rows in plan:
            out.write(bytes(align(out.tell()) - out.tell()))
            if rows:
                pool.write(out, row * rows)
            else:
                out.write(struct.pack("<f", 1) * row)
        out.write(bytes(align(out.tell()) - out.tell()))


def main():
    demo = Path(__file__).resolve().parents[2] / "models" / "demo.gguf"
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("shape", choices=SHAPES)
    p.add_argument("type", choices=TYPES)
    p.add_argument("out")
    p.add_argument("--vocab", default=demo)
    p.add_argument("--layers", type=int)
    p.add_argument("--ctx", type=int)
    args = p.parse_args()
    shape = dict(SHAPES[args.shape])
    if args.layers:
        shape["layers"] = args.layers
    if args.ctx:
        shape["ctx"] = args.ctx
    write(args.out, shape, f"{args.shape} {args.type} (random)", args.type,
          args.vocab)


if __name__ == "__main__":
    main()
