#!/usr/bin/env python3
"""Writes a GGUF file with random weights in the shape of a real model.

usage: mkmodel.py SHAPE TYPE OUT.gguf [--rest TYPE] [--vocab FILE.gguf]
                  [--layers N] [--ctx N] [--hole]

TYPE is the type of a mixture's experts, and of all other matrices unless
--rest gives theirs.  With --hole, weights are holes of a sparse file, zeros
without disk space: the model may be larger than the disk.

The model's output makes no sense, but it takes the time and memory of the
real model, and it can be served: the tokenizer is copied from --vocab (the
demo model), and padded to the real number of tokens with words that no merge
makes; random weights do choose them, and every server can show them.

Needs only Python.  The weights of each tensor are read from another place of
1 MiB of random blocks, so that 8 GB take seconds.

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
    "qwen3-30b-a3b": dict(arch="qwen3moe", embd=2048, layers=48, heads=32,
                          kv=4, head=128, ff=6144, vocab=151936, tied=False,
                          base=1e6, eps=1e-6, ctx=40960, experts=128, used=8,
                          ff_expert=768),
    "gpt-oss-20b": dict(arch="gpt-oss", embd=2880, layers=24, heads=64, kv=8,
                        head=64, ff=2880, vocab=201088, tied=False,
                        base=150000.0, eps=1e-5, ctx=131072, experts=32,
                        used=4, ff_expert=2880, window=128),
    "qwen3.5-4b": dict(arch="qwen35", embd=2560, layers=32, heads=16, kv=4,
                       head=256, ff=9216, vocab=248320, tied=True, base=1e7,
                       eps=1e-6, ctx=262144, rot=64, interval=4, conv=4,
                       state=128, groups=16, ranks=32),
    "qwen3-vl-2b": dict(arch="qwen3vl", embd=2048, layers=28, heads=16, kv=8,
                        head=128, ff=6144, vocab=151936, tied=True, base=5e6,
                        eps=1e-6, ctx=262144, deep=3),
    "gemma-4-e4b": dict(arch="gemma4", embd=2560, layers=42, heads=8, kv=2,
                        head=512, head_swa=256, ff=10240, vocab=262144,
                        tied=True, base=1e6, eps=1e-6, ctx=131072,
                        window=512, interval=6, input=256, shared=18),
}

STD = 0.02                              # standard deviation of the weights
POOL = 1 << 20                          # bytes of random blocks
ALIGN = 32

U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
I32 = 5
SCALAR = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?",
          10: "Q", 11: "q", 12: "d"}


# ---- a random block of each type ----

def half(x):
    return struct.pack("<e", x)


def block_f32(rng):
    return struct.pack("<f", rng.gauss(0, STD))


def block_f16(rng):
    return half(rng.gauss(0, STD))


def block_bf16(rng):
    return struct.pack("<f", rng.gauss(0, STD))[2:]


def uniform_step(levels):
    """The step for which `levels` equally likely values have the standard
    deviation STD."""
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
    """Eight scales, and eight equal minimums, of 6 bits, in 12 bytes."""
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


def block_mxfp4(rng):
    # in halves, the 16 values of a code have a standard deviation of 2.8
    return bytes([127 + round(math.log2(STD / 2.8)) + 1]) + rng.randbytes(16)


def block_iq4_nl(rng):
    return half(STD / 68) + rng.randbytes(16)


def block_iq4_xs(rng):
    # eight scales of 6 bits, of which 32 means 0; the values of a code have a
    # standard deviation of 68
    high, low = 0, [rng.randrange(16) for _ in range(8)]
    for i in range(8):
        high |= 3 << 2 * i
    packed = bytes(low[2 * i] | low[2 * i + 1] << 4 for i in range(4))
    return (half(STD / 68 / 24) + struct.pack("<H", high) + packed
            + rng.randbytes(128))


# type: number in GGUF, elements of a block, function that makes a random block
TYPES = {
    "f32": (0, 1, block_f32), "f16": (1, 1, block_f16),
    "bf16": (30, 1, block_bf16), "q8_0": (8, 32, block_q8_0),
    "q4_0": (2, 32, block_q4_0), "q4_1": (3, 32, block_q4_1),
    "q5_0": (6, 32, block_q5_0), "q5_1": (7, 32, block_q5_1),
    "q4_k": (12, 256, block_q4_k), "q5_k": (13, 256, block_q5_k),
    "q6_k": (14, 256, block_q6_k), "iq4_nl": (20, 32, block_iq4_nl),
    "iq4_xs": (23, 256, block_iq4_xs), "mxfp4": (39, 32, block_mxfp4),
}


class Pool:
    """Random blocks of one type; each tensor begins at a random one."""

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
    """The key-value pairs of a file's tokenizer, padded to n_vocab tokens (0:
    not padded), and the number of tokens."""
    kv = {k: v for k, v in Reader(path).kv.items()
          if k.startswith("tokenizer.")}
    tokens = kv["tokenizer.ggml.tokens"][1][1]
    n = len(tokens)
    n_vocab = n_vocab or n
    if n > n_vocab:
        raise SystemExit(f"{path}: {n} tokens are more than the shape's "
                         f"{n_vocab}")
    pad = {"tokenizer.ggml.tokens": lambda i: b"\xc4\xa0word%d" % i,
           "tokenizer.ggml.token_type": lambda i: 1,
           "tokenizer.ggml.scores": lambda i: 0.0}
    for key, fill in pad.items():
        if key in kv:
            kv[key][1][1].extend(fill(i) for i in range(n, n_vocab))
    return [pair(k, *v) for k, v in kv.items()], n_vocab


def is_full(s, i):
    """Has layer i full attention?  Each layer number `interval` has."""
    return (i + 1) % s["interval"] == 0


def own_fields(s):
    """Fields that only this architecture has: (name, type, value)."""
    if "experts" in s:
        yield "expert_count", U32, s["experts"]
        yield "expert_used_count", U32, s["used"]
        yield "expert_feed_forward_length", U32, s["ff_expert"]
    if "window" in s:
        yield "attention.sliding_window", U32, s["window"]
    if s["arch"] == "gpt-oss":
        yield "rope.scaling.type", STRING, "yarn"
        yield "rope.scaling.factor", F32, 32.0
        yield "rope.scaling.original_context_length", U32, 4096
    if s["arch"] == "qwen35":
        yield "rope.dimension_sections", ARRAY, (I32, [11, 11, 10, 0])
        yield "full_attention_interval", U32, s["interval"]
        yield "ssm.conv_kernel", U32, s["conv"]
        yield "ssm.state_size", U32, s["state"]
        yield "ssm.group_count", U32, s["groups"]
        yield "ssm.time_step_rank", U32, s["ranks"]
        yield "ssm.inner_size", U32, s["ranks"] * s["state"]
    if s["arch"] == "qwen3vl":
        yield "rope.dimension_sections", ARRAY, (I32, [24, 20, 20, 0])
        yield "n_deepstack_layers", U32, s["deep"]
    if s["arch"] == "gemma4":
        yield "rope.freq_base_swa", F32, 10000.0
        yield "rope.dimension_count_swa", U32, s["head_swa"]
        yield "attention.key_length_swa", U32, s["head_swa"]
        yield "attention.value_length_swa", U32, s["head_swa"]
        yield "final_logit_softcapping", F32, 30.0
        yield "attention.shared_kv_layers", U32, s["shared"]
        yield "embedding_length_per_layer_input", U32, s["input"]
        yield ("attention.sliding_window_pattern", ARRAY,
               (BOOL, [not is_full(s, i) for i in range(s["layers"])]))


def config(s, name, n_vocab):
    a = s["arch"]
    sizes = {
        "context_length": s["ctx"], "embedding_length": s["embd"],
        "block_count": s["layers"], "feed_forward_length": s["ff"],
        "attention.head_count": s["heads"],
        "attention.head_count_kv": s["kv"],
        "attention.key_length": s["head"],
        "attention.value_length": s["head"],
        "rope.dimension_count": s.get("rot", s["head"]),
        "vocab_size": n_vocab,
    }
    return ([pair("general.architecture", STRING, a),
             pair("general.name", STRING, name)]
            + [pair(f"{a}.{k}", U32, v) for k, v in sizes.items()]
            + [pair(f"{a}.{k}", *v) for k, *v in own_fields(s)]
            + [pair(f"{a}.rope.freq_base", F32, s["base"]),
               pair(f"{a}.attention.layer_norm_rms_epsilon", F32, s["eps"])])


# Tensors: (name, dimensions, contents).  Contents: "w" weights, "e" weights of
# experts, "r" random float32, a number: all elements.

def attention(s, i):
    embd, head = s["embd"], s["head"]
    if "head_swa" in s and not is_full(s, i):
        head = s["head_swa"]
    q, kv = s["heads"] * head, s["kv"] * head
    has_kv = i < s["layers"] - s.get("shared", 0)
    twice = 2 if s["arch"] == "qwen35" else 1   # with a gate of each head
    yield "attn_norm.weight", (embd,), 1
    yield "attn_q.weight", (embd, q * twice), "w"
    if has_kv:
        yield "attn_k.weight", (embd, kv), "w"
        yield "attn_v.weight", (embd, kv), "w"
    yield "attn_output.weight", (q, embd), "w"
    if s["arch"] in ("qwen3", "qwen3moe", "qwen3vl", "qwen35", "gemma4"):
        yield "attn_q_norm.weight", (head,), 1
        if has_kv:
            yield "attn_k_norm.weight", (head,), 1
    if s["arch"] == "gpt-oss":
        yield "attn_q.bias", (q,), 0
        yield "attn_k.bias", (kv,), 0
        yield "attn_v.bias", (kv,), 0
        yield "attn_output.bias", (embd,), 0
        yield "attn_sinks.weight", (s["heads"],), 0


def delta_net(s):
    embd, inner = s["embd"], s["ranks"] * s["state"]
    mixed = 2 * s["groups"] * s["state"] + inner
    yield "attn_norm.weight", (embd,), 1
    yield "attn_qkv.weight", (embd, mixed), "w"
    yield "attn_gate.weight", (embd, inner), "w"
    yield "ssm_conv1d.weight", (s["conv"], mixed), "r"
    yield "ssm_dt.bias", (s["ranks"],), 0
    yield "ssm_a", (s["ranks"],), -1
    yield "ssm_alpha.weight", (embd, s["ranks"]), "w"
    yield "ssm_beta.weight", (embd, s["ranks"]), "w"
    yield "ssm_norm.weight", (s["state"],), 1
    yield "ssm_out.weight", (inner, embd), "w"


def feed_forward(s):
    embd, ff = s["embd"], s["ff"]
    after = s["arch"] in ("gpt-oss", "qwen35")
    yield ("post_attention_norm" if after else "ffn_norm") + ".weight", \
        (embd,), 1
    if "experts" in s:
        n, ff = s["experts"], s["ff_expert"]
        yield "ffn_gate_inp.weight", (embd, n), "r"
        for name, row, rows in (("gate", embd, ff), ("up", embd, ff),
                                ("down", ff, embd)):
            yield f"ffn_{name}_exps.weight", (row, rows, n), "e"
            if s["arch"] == "gpt-oss":
                yield f"ffn_{name}_exps.bias", (rows, n), 0
        if s["arch"] == "gpt-oss":
            yield "ffn_gate_inp.bias", (n,), 0
        return
    yield "ffn_gate.weight", (embd, ff), "w"
    yield "ffn_up.weight", (embd, ff), "w"
    yield "ffn_down.weight", (ff, embd), "w"
    if s["arch"] == "gemma4":
        yield "inp_gate.weight", (embd, s["input"]), "w"
        yield "proj.weight", (s["input"], embd), "w"
        yield "layer_output_scale.weight", (1,), 1
        for name in ("post_attention_norm", "post_ffw_norm", "post_norm"):
            yield name + ".weight", (embd,), 1


def tensors(s, n_vocab):
    embd = s["embd"]
    yield "token_embd.weight", (embd, n_vocab), "w"
    yield "output_norm.weight", (embd,), 1
    if not s["tied"]:
        yield "output.weight", (embd, n_vocab), "w"
    if s["arch"] == "gemma4":
        inputs = s["layers"] * s["input"]
        yield "rope_freqs.weight", (s["head"] // 2,), 1
        yield "per_layer_token_embd.weight", (inputs, n_vocab), "w"
        yield "per_layer_model_proj.weight", (embd, inputs), "w"
        yield "per_layer_proj_norm.weight", (s["input"],), 1
    for i in range(s["layers"]):
        linear = s["arch"] == "qwen35" and not is_full(s, i)
        for part in (delta_net(s) if linear else attention(s, i),
                     feed_forward(s)):
            for name, *rest in part:
                yield f"blk.{i}.{name}", *rest


def align(n):
    return (n + ALIGN - 1) // ALIGN * ALIGN


def write(path, shape, name, kinds, vocab, hole=False):
    """Writes the file; kinds: the types of "w" and "e"."""
    rng = random.Random(1)
    pools = {k: Pool(v, rng) for k, v in kinds.items()}
    pools["r"] = Pool("f32", rng)
    tok, n_vocab = tokenizer(vocab, shape["vocab"])
    kv = config(shape, name, n_vocab) + tok
    table, off = [], 0
    plan = list(tensors(shape, n_vocab))
    for tensor, dims, what in plan:
        pool = pools.get(what, pools["r"])
        if dims[0] % pool.elements:
            raise SystemExit(f"{tensor}: a row of {dims[0]} elements is not a "
                             "multiple of its type's block")
        table.append(string(tensor) + struct.pack(
            f"<I{len(dims)}QIQ", len(dims), *dims, pool.number, off))
        off += align(pool.bytes_of(math.prod(dims)))
    with open(path, "wb") as out:
        out.write(struct.pack("<4sIQQ", b"GGUF", 3, len(table), len(kv)))
        out.writelines(kv)
        out.writelines(table)
        for _, dims, what in plan:
            out.write(bytes(align(out.tell()) - out.tell()))
            if what in pools and hole:
                out.seek(pools[what].bytes_of(math.prod(dims)), 1)
            elif what in pools:
                pools[what].write(out, math.prod(dims))
            else:
                out.write(struct.pack("<f", what) * math.prod(dims))
        out.write(bytes(align(out.tell()) - out.tell()))
        out.truncate()


def shared(whole, layers):
    """The number of `layers` that share keys and values, in the same proportion
    as in the whole model.

    The last two layers that do not share must be one with and one without a
    sliding window, as in the real model: llama.cpp asserts that.
    """
    own = 1 - whole["shared"] / whole["layers"]
    interval = whole["interval"]
    return layers - max(1, round(own * layers / interval)) * interval


def main():
    demo = Path(__file__).resolve().parents[2] / "models" / "demo.gguf"
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("shape", choices=SHAPES)
    p.add_argument("type", choices=TYPES)
    p.add_argument("out")
    p.add_argument("--rest", choices=TYPES)
    p.add_argument("--vocab", default=demo)
    p.add_argument("--layers", type=int)
    p.add_argument("--ctx", type=int)
    p.add_argument("--hole", action="store_true")
    args = p.parse_args()
    shape = dict(SHAPES[args.shape])
    if args.layers:
        shape["layers"] = args.layers
        if "shared" in shape:
            shape["shared"] = shared(SHAPES[args.shape], args.layers)
    if args.ctx:
        shape["ctx"] = args.ctx
    write(args.out, shape, f"{args.shape} {args.type} (random)",
          {"w": args.rest or args.type, "e": args.type}, args.vocab, args.hole)


if __name__ == "__main__":
    main()
