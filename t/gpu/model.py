#!/usr/bin/env python3
"""Predicts the engine's speed from the table of sass.py.

usage: model.py [--table FILE | --check]
       model.py --beside kernels.txt [--peak peak.jsonl]

Prints, for an H200 and Qwen3-8B's shape, the milliseconds of a decode step of
1, 64 and 512 rows and of prompts of 128, 2,048 and 8,192 tokens, with the parts
of a layer, a line for each goal, a prompt of 2,048 tokens with products by our
own kernels alone, and what is gained on several GPUs that share each layer
(split=rows).  Exit status 1: a must is missed.  All of it is
predicted.  --check
prints what the same formulas say of the H100 in t/gpu/results beside what was
measured there, with the table of the code that ran there (run 5); attention,
which changed after its kernels were timed, less what a step gained by that.
--beside prints what is predicted of the kernels of t/gpu/run.sh kernels beside
what that run measured, for a GPU with the rates of its peak.jsonl (an H200).

The time of a kernel of ours is a short kernel's time, and the longest one of

  - its bytes at the rate of copies;
  - its operations at the matrix rate;
  - its loop: a warp takes cycles + WAIT * waits for an iteration, and warps of
    a scheduler take turns; those of products overlap a little (OVERLAP).

A product that cublasLt computed on the H100 keeps its share of what the GPU can
do: bytes at the rate of copies or operations at the matrix rate.  Kernels
without a loop in the table keep their measured time; the part of it that grows
with the rows is bytes.
"""

import argparse
import json
import math
import re
import statistics
import sys
from collections import namedtuple
from pathlib import Path

import sass

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "t/gpu/results/h100-2026-11-27"
RUN5 = RESULTS / "5/sass.txt"           # the table of the code that ran there

Gpu = namedtuple("Gpu", "name copy matrix")

# Rates of the H100: RESULTS/5/peak.jsonl.  Of the H200: copies reach 3.03 of
# the 3.35 TB/s of the H100's data sheet, so 4.3 of 4.8; both data sheets have
# 989 TFLOP/s of bf16, so the matrix rate is the same.
PEAK = json.loads((RESULTS / "5/peak.jsonl").read_text())
H100 = Gpu("H100", PEAK["copy_gb_s"] * 1e9, PEAK["matrix_tflops"] * 1e12)
H200 = Gpu("H200", 4.3e12, H100.matrix)

SMS = 132
# 989.4 TFLOP/s of bf16 (both data sheets) are 4,096 operations of an SM a cycle
CLOCK = 989.4e12 / (SMS * 4096)

# Two constants from the H100; --check prints what they come to.
# WAIT: cycles of a wait; with them the down projection of one row, whose
# schedulers have one warp, takes the time in RESULTS/4/kernels.txt.  OVERLAP:
# the share of their turns that several warps of a scheduler take, by our
# products of 32 rows and more in RESULTS/5/plans.jsonl.  Attention has no such
# share: two warps in a prompt take as long as their turns.
WAIT = 10
OVERLAP = 0.75

# the bench (bench.c): positions cached at the middle of its decoding, tokens of
# a step of a prompt
CACHED = 160
STEP = 2048

# Qwen3-8B
LAYERS, EMBD, FF, VOCAB = 36, 4096, 12288, 151936
HEADS, KV, DIM = 32, 8, 128
GROUP = HEADS // KV
QKV = [(HEADS * DIM, EMBD), (KV * DIM, EMBD), (KV * DIM, EMBD)]
OUT = [(EMBD, HEADS * DIM)]
UP = [(FF, EMBD), (FF, EMBD)]
DOWN = [(EMBD, FF)]
HEAD = [(VOCAB, EMBD)]


# ---- what was measured on the H100 ----

def kernels(file):
    """{(section, kernel, grid): seconds} of kernels.txt; sections are "1
    streams", "prompt of 128" and so on."""
    times, section = {}, None
    for line in file.read_text().split("\n"):
        m = re.match(r"(.*): [\d.]+ ms in \d+ launches", line)
        section = m.group(1) if m else section
        m = re.match(r".* x +([\d.]+) us .* an SM +(\[.*?\]) (.*)", line)
        if m:
            key = (section, m.group(3), m.group(2).replace(" ", ""))
            times.setdefault(key, float(m.group(1)) * 1e-6)
    return times


def plans(run):
    """{(n_out, n_in, rows): (cublasLt's seconds, ours)}, with events around"""
    found = {}
    for line in (RESULTS / run / "plans.jsonl").read_text().split("\n"):
        if line:
            d = json.loads(line)
            lt = d["ms"] * 1e-3 if d["same_bits"] else math.inf
            found[d["n_out"], d["n_in"], d["rows"]] = lt, d["ours_ms"] * 1e-3
    return found


def speed(run):
    """{section of kernels.txt: seconds of a step, or of a prompt}"""
    found = {}
    for line in (RESULTS / run / "speed.jsonl").read_text().split("\n"):
        d = json.loads(line or "{}")
        if d.get("bench") == "decode":
            found[f"{d['streams']} streams"] = d["step_ms"] * 1e-3
        elif d.get("bench") == "prompt":
            found[f"prompt of {d['tokens']}"] = d["ms"] * 1e-3
    return found


TIMES = kernels(RESULTS / "4/kernels.txt")
SPEED = {run: speed(run) for run in "45"}
PLANS = plans("5")


def seen(section, kernel, grid):
    return TIMES[section, kernel, grid]


# a kernel of one block that waits for memory twice, or once and for a sum of
# its warps: launch, latency, end
SHORT = seen("1 streams", "llm_k_norm_row<4>", "[1,1,1]")

# what events add to a kernel's time: plans.jsonl less kernels.txt of the same
# product, gate or up with 64 and with 2,048 rows
EVENTS = min(
    PLANS[FF, EMBD, 64][0]
    - seen("64 streams", "nvjet_sm90_tss_112x64_64x9_4x1_v_bz_TNN",
           "[4,28,1]"),
    PLANS[FF, EMBD, 2048][0]
    - seen("prompt of 2048", "nvjet_sm90_tss_128x256_64x4_2x1_v_bz_coopA_TNN",
           "[2,66,1]"))

# Kernels that are not in the table: seconds with 1 row and with many.
RUN5_OTHERS = {
    "embed": (seen("1 streams", "llm_k_embed", "[1,1,1]"),
              2048, seen("prompt of 2048", "llm_k_embed", "[2048,1,1]")),
    "norm": (SHORT, 2048,
             seen("prompt of 2048", "llm_k_norm_row<4>", "[2048,1,1]")),
    "rope": (seen("1 streams", "llm_k_rope_kv", "[1,10,1]"), 2048,
             seen("prompt of 2048", "llm_k_rope_kv", "[2048,10,1]")),
    "glu": (seen("1 streams", "llm_k_glu_4", "[12,1,1]"), 2048,
            seen("prompt of 2048", "llm_k_glu_4", "[24576,1,1]")),
    "gather": (seen("1 streams", "llm_k_gather", "[1,1,1]"), 512,
               seen("512 streams", "llm_k_gather", "[512,1,1]")),
    "parts": (seen("1 streams", "llm_k_draw_parts", "[38,1,1]"), 512,
              seen("512 streams", "llm_k_draw_parts", "[38,512,1]")),
    "draw": (seen("1 streams", "llm_k_draw", "[1,1,1]"), 512,
             seen("512 streams", "llm_k_draw", "[512,1,1]")),
}


# What changed since these were measured, with one row.  Threads of embed and
# gather have four values, whose loads do not wait for one another; they had a
# row's 256th part.  RoPE computes angles and finds the page before the kernel
# before it has ended, so then it waits for memory once, and for the sum of a
# norm; it waited for seven loads, one after another.
OTHERS = {name: (SHORT if name in ("embed", "gather", "rope") else one, most,
                 many)
          for name, (one, most, many) in RUN5_OTHERS.items()}


def other(gpu, code, name, rows):
    one, most, many = (RUN5_OTHERS if code.run5 else OTHERS)[name]
    return one + (many - one) * rows / most * H100.copy / gpu.copy


# ---- our kernels ----

def threads(kernel):
    """of a block"""
    few = re.match(r"llm_k_linear_(?:few|glu)<(\d+), (\d+),", kernel)
    return (32 * int(few.group(1)) * int(few.group(2)) if few
            else sass.launch(kernel)[0])


class Code:
    """The loops of the table, by kernel: the one with the most mma."""

    def __init__(self, file):
        self.loops = {}
        # of the code that run 5 measured
        self.run5 = file == RUN5
        for loop in sass.read_table(file)[1].values():
            kernel = loop.name.rsplit(" #", 1)[0]
            if kernel not in self.loops or loop.mma > self.loops[kernel].mma:
                self.loops[kernel] = loop

    def of(self, kernel):
        if kernel not in self.loops:
            sys.exit(f"model.py: no loop of {kernel} in the table")
        return self.loops[kernel]

    def turn(self, kernel):
        """Seconds of a scheduler for a warp's iteration."""
        loop = self.of(kernel)
        return (loop.cycles + WAIT * loop.waits) / CLOCK

    def resident(self, kernel):
        return self.of(kernel).blocks

    def loop(self, kernel, blocks, iterations, overlap=OVERLAP):
        """Seconds of the loops of a product's equal blocks."""
        warps = threads(kernel) / 32 / sass.SCHEDULERS
        slots = SMS * self.resident(kernel)
        turns = blocks // slots * max(
            1, overlap * warps * self.resident(kernel))
        if blocks % slots:
            turns += max(1, overlap * warps * math.ceil(blocks % slots / SMS))
        return turns * iterations * self.turn(kernel)


def bytes_of(weights, rows):
    return sum(n * k * 2 + rows * (k * 2 + n * 4) for n, k in weights)


def roof(gpu, rows, weights):
    operations = 2 * rows * sum(n * k for n, k in weights)
    return max(bytes_of(weights, rows) / gpu.copy, operations / gpu.matrix)


def wgmma(rows, n_out, cls):
    """A product's kernel in linear_wgmma.cu, its warpgroups, rows of x and
    stages, and its grid.  cls: 0, or that of a packed weight"""
    def grid(xrows, wrows):
        return -(-rows // xrows), -(-n_out // wrows)

    def waves(xrows):
        return -(-math.prod(grid(xrows, 128)) // SMS)

    if math.prod(grid(64, 64)) <= SMS:
        shape = 1, 8, 6 if cls else 8
    elif not cls and 8 * waves(256) <= 5 * waves(128):
        shape = 2, 32, 4
    else:
        shape = 2, 16, 4 if cls else 6
    groups, n, stages = shape
    return (f"llm_k_linear_wgmma<{cls}, {groups}, {n}, {stages}, 1>", groups,
            n * 8, grid(n * 8, groups * 64))


def by_wgmma(gpu, code, rows, weight, cls):
    """A product of more than 64 rows by linear_wgmma.cu, with one block on an
    SM.  Its warpgroups take turns of a scheduler; their products run beside
    that, at the matrix rate, or at four fifths of it where they read shared
    memory too much (llm_lwg_rows_16())."""
    n_out, n_in = weight
    kernel, groups, xrows, grid = wgmma(rows, n_out, cls)
    cols = 128 if cls else 64
    waves = -(-math.prod(grid) // SMS)
    products = 2 * 64 * groups * xrows * cols / (gpu.matrix / SMS)
    products *= 1 if cls or xrows == 256 else 1.25
    loop = waves * -(-n_in // cols) * max(groups * code.turn(kernel), products)
    read = rows * (n_in * 2 + n_out * 4) + n_out * n_in * (
        sass.RECORD[cls] / 2048 if cls else 2)
    return SHORT + max(loop, read / gpu.copy)


# llm_few_rows(): by rows, the kernels for few and for many tiles of 16 rows
FEW = {1: ("1, 1, 1, 1, 256, 8", "1, 1, 1, 1, 256, 8"),
       8: ("1, 1, 1, 8, 128, 12", "4, 1, 1, 8, 128, 4"),
       16: ("1, 1, 2, 16, 128, 9", "4, 1, 2, 16, 128, 3"),
       32: ("1, 2, 2, 32, 128, 6", "4, 2, 2, 32, 128, 4"),
       64: ("1, 4, 2, 64, 128, 4", "4, 4, 2, 64, 128, 3")}
MANY = "llm_k_linear_16<2, 4, 4, 4, 32, 4, 0, 1>"
RUN5_MANY = "llm_k_linear_16<2, 4, 4, 4, 32, 4, 0, 0>"
RUN5_FEW = {8: ("1, 1, 1, 8", "4, 1, 1, 4"), 16: ("1, 1, 2, 6", "4, 1, 2, 4"),
            32: ("1, 2, 2, 6", "4, 2, 2, 4"), 64: ("1, 4, 2, 4", "4, 4, 2, 3")}


def few(code, rows, weights):
    """The kernel, and its number of blocks"""
    small = sum(-(-n // 16) for n, _ in weights) <= (
        528 if rows <= 16 else 264)
    shape = RUN5_FEW if code.run5 else FEW
    name = shape[next(r for r in shape if rows <= r)][0 if small else 1]
    tile = 16 * int(name[0])
    return (f"llm_k_linear_few<{name}, 1>",
            sum(-(-n // tile) for n, _ in weights))


def few_cols(kernel):
    """Columns of an iteration"""
    numbers = re.findall(r"\d+", kernel)
    return int(numbers[4]) if len(numbers) == 7 else 128


def read_early(gpu, code, kernel, blocks, idle):
    """Seconds that reading at the rate of copies takes for what the rings of a
    product hold before it waits for x: what all blocks that are resident
    together ask for while kernels run before it for `idle` seconds that read
    next to nothing.  Half of SHORT of these is for the first answer.  Not in
    the code of run 5, which launched a kernel when the one before it had
    ended."""
    if code.run5:
        return 0
    wm, _, _, _, cols, stages = map(int, re.findall(r"\d+", kernel)[:6])
    ring = (stages - 1) * wm * 16 * cols * 2
    resident = min(blocks, SMS * code.resident(kernel))
    return min(resident * ring / gpu.copy, max(0, idle - SHORT / 2))


def ours(gpu, code, rows, weights, overlap=OVERLAP, idle=0):
    """16-bit weights of a call, all with as many columns"""
    n_in = weights[0][1]
    read = roof(gpu, rows, weights)
    if rows <= 64:
        kernel, blocks = few(code, rows, weights)
        loop = code.loop(kernel, blocks, -(-n_in // few_cols(kernel)), overlap)
        read -= read_early(gpu, code, kernel, blocks, idle)
    else:
        kernel = RUN5_MANY if code.run5 else MANY
        blocks = sum(-(-n // 128) for n, _ in weights) * -(-rows // 128)
        loop = code.loop(kernel, blocks, -(-n_in // 32), overlap)
    return SHORT + max(loop, read)


def cublaslt(gpu, rows, weight):
    bucket = max(1, 1 << (rows - 1).bit_length())
    was = PLANS[weight + (bucket,)][0] - EVENTS - SHORT
    return SHORT + (was * roof(gpu, rows, [weight])
                    / roof(H100, rows, [weight]))


def linear(gpu, code, rows, weights, idle=0):
    """A call of llm_cuda_linear(), after kernels that read little for `idle`
    seconds.  cublasLt has what it was faster at."""
    rest, time = [], 0
    for w in weights:
        bucket = max(1, 1 << (rows - 1).bit_length())
        lt, own = PLANS[w + (bucket,)]
        if lt < own:
            time += cublaslt(gpu, rows, w)
        else:
            rest.append(w)
    # after a product of cublasLt the memory is not idle
    idle = 0 if time else idle
    return time + (ours(gpu, code, rows, rest, idle=idle) if rest else 0)


def quantised(gpu, code, weights):
    """One row by quantised weights, all with as many columns: a launch for each
    class, as llm_linear_one_launch() makes it.  An iteration is a quad of 128
    columns.  Before and after its iterations a block copies the row and adds up
    its warps' sums: about as many instructions as two of them."""
    time, k = 0, weights[0][2]
    for cls in sorted({w[0] for w in weights}):
        row_tiles = [n // 16 for c, n, _ in weights if c == cls]
        tiles = min(8, -(-sum(row_tiles) // 512))
        loop = code.loop(f"llm_k_linear_one<{cls}, 0>",
                         sum(-(-n // tiles) for n in row_tiles),
                         tiles * k / 128 / 8 + 2)
        read = sum(row_tiles) * (k // 128 * sass.RECORD[cls] + 16 * 4)
        time += SHORT + max(loop, read / gpu.copy)
    return time


WGMMA = "llm_k_attention_wgmma"


def many(gpu, code, seqs, rows, cached):
    """attention() of many rows on a GPU with wgmma: blocks of 128 query rows,
    one on an SM.  Its schedulers have two warps, one of each warpgroup, which
    take turns.  A warpgroup's products run while its softmax does, so they are
    not in the turn but in the matrix rate, which bounds the whole."""
    kernel = WGMMA
    tokens = 128 // GROUP
    tiles = [-(-(cached + min(i + tokens, rows)) // 64)
             for i in range(0, rows, tokens)]
    slots = SMS * code.resident(kernel)
    work, number = (n * KV * seqs for n in (sum(tiles), len(tiles)))
    loop = max(work / slots, max(tiles)) if number > slots else max(tiles)
    warps = sass.launch(kernel)[0] // 32 // sass.SCHEDULERS
    pairs = seqs * rows * (cached + (rows + 1) / 2)
    return max(SHORT + loop * warps * code.turn(kernel),
               SHORT + 4 * DIM * HEADS * pairs / gpu.matrix)


def attention(gpu, code, seqs, rows, cached):
    """Of `rows` rows each of `seqs` sequences after `cached` positions."""
    if rows > 8 and rows * GROUP > 64 and WGMMA in code.loops:
        return many(gpu, code, seqs, rows, cached)
    shares = rows * GROUP <= 16
    kernel = f"llm_k_attention<128, 128, 0, 0, {int(shares)}>"
    slots = SMS * code.resident(kernel)
    items = range(0, rows, 64 // GROUP if rows * GROUP <= 64 else 64)
    # positions that the last row of a block sees, in tiles of 64
    blocks = 1 if shares else -(-min(rows, 64) * GROUP // 64)
    tiles = [-(-(cached + min(i + 64, rows)) // 64) for i in items]
    work = sum(tiles) * blocks * KV * seqs
    number = len(tiles) * blocks * KV * seqs
    # with fewer blocks than places on the SMs fewer warps take turns
    turns = max(1, min(code.resident(kernel), number / SMS))
    loop = max(work / slots, max(tiles)) if number > slots else max(tiles)
    read = seqs * (cached + rows) * KV * DIM * 4
    pairs = seqs * rows * (cached + (rows + 1) / 2)
    waves = max(1, math.ceil(number / slots)) if shares else 1
    return max(waves * SHORT + loop * turns * code.turn(kernel),
               SHORT + read / gpu.copy,
               SHORT + 4 * DIM * HEADS * pairs / gpu.matrix)


# ---- steps ----

def gated(gpu, code, rows, idle):
    """Gate, up and the activation in one launch (llm_cuda_linear_glu()); None
    if they are not."""
    kernel, blocks = few(code, rows, UP) if rows <= 16 else (None, 0)
    bucket = max(1, 1 << (rows - 1).bit_length())
    lt, own = PLANS[UP[0] + (bucket,)]
    kernel = kernel and kernel.replace("linear_few", "linear_glu")
    if kernel not in code.loops or lt < own:
        return None
    loop = code.loop(kernel, blocks, -(-EMBD // few_cols(kernel)))
    read = (roof(gpu, rows, UP)
            - read_early(gpu, code, kernel, blocks, idle))
    return SHORT + max(loop, read)


def layer(gpu, code, rows, att, **products):
    """Seconds of a layer's parts."""
    def product(name, weights, idle):
        return products.get(name) or linear(gpu, code, rows, weights, idle)

    norm = other(gpu, code, "norm", rows)
    rope = other(gpu, code, "rope", rows)
    glu = other(gpu, code, "glu", rows)
    if "up" not in products and gated(gpu, code, rows, norm):
        products["up"] = gated(gpu, code, rows, norm)
        glu = 0
    # with many rows these read as much as they can
    idle = [norm, rope + att, norm, glu] if rows <= 16 else [0] * 4

    return {"q, k, v": product("qkv", QKV, idle[0]), "attention": att,
            "o": product("out", OUT, idle[1]),
            "gate, up": product("up", UP, idle[2]),
            "down": product("down", DOWN, idle[3]),
            "others": rope + 2 * norm + glu}


def layers(*args, **products):
    return LAYERS * sum(layer(*args, **products).values())


def end(gpu, code, rows, out, head=None):
    """embedding, head and draw: `rows` of the step, `out` of them drawn"""
    return (other(gpu, code, "embed", rows) + other(gpu, code, "norm", out)
            + other(gpu, code, "gather", out) + other(gpu, code, "parts", out)
            + other(gpu, code, "draw", out)
            + (head or linear(gpu, code, out, HEAD)))


def decode(gpu, code, n, cached=CACHED):
    att = attention(gpu, code, n, 1, cached)
    return layers(gpu, code, n, att) + end(gpu, code, n, n)


def prompt(gpu, code, tokens):
    time = 0
    for at in range(0, tokens, STEP):
        rows = min(STEP, tokens - at)
        att = attention(gpu, code, 1, rows, at)
        time += layers(gpu, code, rows, att) + end(gpu, code, rows, 1)
    return time


def served(gpu, code, n):
    """Tokens a second of n streams, 128 tokens after prompts of 128: all
    prompts, then 128 steps."""
    seqs = STEP // 128
    att = attention(gpu, code, seqs, 128, 0)
    fill = (layers(gpu, code, STEP, att)
            + end(gpu, code, STEP, seqs)) * n / seqs
    return n * 128 / (fill + 128 * decode(gpu, code, n, 192))


def q4_k_m(gpu, code):
    """Seconds of a step of one row; llama.cpp keeps v and down of half of the
    layers, and the head, in Q6_K."""
    def of(cls, weights):
        return [(cls, n, k) for n, k in weights]

    att = attention(gpu, code, 1, 1, CACHED)
    time = 0
    for cls in 4, 6:
        time += layers(
            gpu, code, 1, att,
            qkv=quantised(gpu, code, of(4, QKV[:2]) + of(cls, QKV[2:])),
            out=quantised(gpu, code, of(4, OUT)),
            up=quantised(gpu, code, of(4, UP)),
            down=quantised(gpu, code, of(cls, DOWN))) / 2
    return time + end(gpu, code, 1, 1, quantised(gpu, code, of(6, HEAD)))


def by_mma(gpu, code, rows, weight, cls):
    """The same by linear_16.cu, which other GPUs have."""
    n_out, n_in = weight
    kernel = f"llm_k_linear_16<4, 2, 2, 8, 128, 2, {cls}, 1>" if cls else MANY
    return SHORT + code.loop(kernel, -(-n_out // 128) * -(-rows // 128),
                             -(-n_in // (128 if cls else 32)))


def own_prompt(gpu, code, tokens, cls, product):
    """Seconds of a prompt of one step with products by our kernels alone: 16-bit
    weights, or all of class `cls` but the head, which is of Q6_K then."""
    def all_of(weights):
        return sum(product(gpu, code, tokens, w, cls) for w in weights)

    att = attention(gpu, code, 1, tokens, 0)
    head = quantised(gpu, code, [(6, *HEAD[0])]) if cls else None
    return (layers(gpu, code, tokens, att, qkv=all_of(QKV), out=all_of(OUT),
                   up=all_of(UP), down=all_of(DOWN))
            + end(gpu, code, tokens, 1, head))


# ---- several GPUs that share each layer ----

# Seconds that a collection takes beyond a short kernel of its own: GPUs wait for
# each other by events, as edges of one graph, and a read goes through NVLink and
# back.  Not measured: a guess, and one that is half and one that is twice of it.
WAITS = 2e-6, 4e-6, 8e-6

# bytes a second that a GPU reads of others: NVLink of Hopper has 450 GB/s each
# way (data sheet), of which a guess is reached
LINK = 400e9


def shared(gpu, code, n, wait):
    """Seconds of a step of one row if each of n GPUs has an nth of the rows of
    every matrix; X twice, attention's result and the feed-forward network's
    hidden layer are collected in each layer, and the logits once.  Norms are
    computed on each GPU, and attention of one row takes the same time for fewer
    heads.  No weights are read while a collection is waited for."""
    def part(weights):
        return ours(gpu, code, 1, [(rows // n, k) for rows, k in weights])

    collection = SHORT + wait
    one = layer(gpu, code, 1, attention(gpu, code, 1, 1, CACHED),
                **{name: part(weights) for name, weights in (
                    ("qkv", QKV), ("out", OUT), ("up", UP), ("down", DOWN))})
    return (LAYERS * (sum(one.values()) + 4 * collection) + collection
            + end(gpu, code, 1, 1, part(HEAD)))


def shared_prompt(gpu, code, rows, n, wait):
    """Seconds of a prompt of one step: what is not a norm is shared evenly, and
    a GPU reads what the others have of the rows that are collected."""
    att = attention(gpu, code, 1, rows, 0)
    parts = layer(gpu, code, rows, att)
    norms = 2 * other(gpu, code, "norm", rows)
    work = sum(parts.values()) - norms
    read = rows * (2 * EMBD * 4 + HEADS * DIM * 2 + FF * 2) * (n - 1) / n
    return (LAYERS * (work / n + norms + 4 * (SHORT + wait) + read / LINK)
            + end(gpu, code, rows, 1))


def predict_shared(gpu, code):
    one = decode(gpu, code, 1)
    for n in 2, 4, 8:
        print(f"one stream, {n} GPUs by rows: " + ", ".join(
            f"{1 / time:.0f} tok/s ({one / time:.2f} of one GPU)"
            for time in (shared(gpu, code, n, wait) for wait in WAITS))
            + " predicted, if a collection waits "
            + ", ".join(f"{wait * 1e6:.0f}" for wait in WAITS) + " us")
        time = shared_prompt(gpu, code, STEP, n, WAITS[1])
        print(f"prompt of {STEP}, {n} GPUs by rows: {time * 1e3:.1f} ms "
              f"({prompt(gpu, code, STEP) / time:.2f} of one GPU) predicted")


# ---- goals, and the check ----

def goals(gpu, code):
    """(what, predicted, must, stretch, unit, is more better)"""
    yield ("one stream", 1 / decode(gpu, code, 1), 236, 259, "tok/s", True)
    for n, must, stretch in (64, 8500, 9500), (512, 16000, 18000):
        yield (f"{n} streams 128/128", served(gpu, code, n), must, stretch,
               "tok/s", True)
    for n, must, stretch in (128, 8, 6), (2048, 52, 45), (8192, 240, 200):
        yield (f"first token after {n}", prompt(gpu, code, n) * 1e3, must,
               stretch, "ms", False)
    yield ("Q4_K_M, one stream", 1 / q4_k_m(gpu, code), 350, 450, "tok/s",
           True)


def parts(*args):
    """the end of a line: microseconds of the parts of a layer (of a prompt's
    last step)"""
    return "; a layer, us: " + "; ".join(
        f"{name} {time * 1e6:.0f}" for name, time in layer(*args).items())


def predict(code):
    for n in 1, 64, 512:
        att = attention(H200, code, n, 1, CACHED)
        print(f"{n} row{'s' if n > 1 else ''}: "
              f"{decode(H200, code, n) * 1e3:.2f} ms predicted"
              + parts(H200, code, n, att))
    for n in 128, 2048, 8192:
        rows = min(n, STEP)
        att = attention(H200, code, 1, rows, n - rows)
        print(f"prompt of {n}: {prompt(H200, code, n) * 1e3:.1f} ms predicted"
              + parts(H200, code, rows, att))
    missed = 0
    for what, value, must, stretch, unit, more in goals(H200, code):
        bad = value < must if more else value > must
        reached = value >= stretch if more else value <= stretch
        missed += bad
        print(f"{what}: {value:,.{0 if more else 1}f} {unit} predicted, must "
              f"{must:,}, stretch {stretch:,}"
              + (": missed" if bad else ": stretch" if reached else ""))
    for what, cls in ("without cuBLAS", 0), ("of Q4_K weights", 4):
        own, other = (own_prompt(H200, code, STEP, cls, product) * 1e3
                      for product in (by_wgmma, by_mma))
        print(f"prompt of {STEP} {what}: {own:.1f} ms predicted "
              f"({other:.1f} by mma.sync)")
    predict_shared(H200, code)
    return missed


def wait(code):
    """WAIT as the measured down projection of one row gives it."""
    kernel, blocks = few(code, 1, DOWN)
    loop = code.of(kernel)
    time = seen("1 streams", kernel, f"[{blocks},1,1]") - SHORT
    return (time * CLOCK / (FF / 128) - loop.cycles) / loop.waits


def overlap(code):
    """OVERLAP as our products with several warps of a scheduler give it: the
    median."""
    shares = []
    for (n, k, rows), (_, own) in PLANS.items():
        turns = ours(H100, code, rows, [(n, k)], 1) - SHORT
        alone = ours(H100, code, rows, [(n, k)], 0) - SHORT
        if rows >= 32 and turns > 1.5 * alone:
            shares.append((own - EVENTS - SHORT) / turns)
    return statistics.median(shares)


def check(code):
    def line(what, predicted, measured):
        print(f"| {what} | {predicted:.1f} | {measured:.1f} "
              f"| {100 * (predicted / measured - 1):+.0f} % |")

    print("| kernel | predicted, us | measured, us | off |\n|---|---|---|---|")
    for what, section, rows, weights in (
            ("head, 1 row", "1 streams", 1, HEAD),
            ("gate and up, 1 row", "1 streams", 1, UP),
            ("down, 1 row (gives WAIT)", "1 streams", 1, DOWN),
            ("q, k, v, 1 row", "1 streams", 1, QKV),
            ("k, v, 64 rows", "64 streams", 64, QKV[1:])):
        kernel, blocks = few(code, rows, weights)
        line(what, ours(H100, code, rows, weights) * 1e6,
             seen(section, kernel, f"[{blocks},1,1]") * 1e6)
    for what, grid, shares, att in (
            ("1 streams", "[1,8,1]", 1, attention(H100, code, 1, 1, CACHED)),
            ("512 streams", "[1,8,512]", 1,
             attention(H100, code, 512, 1, CACHED)),
            ("prompt of 2048", "[4,8,32]", 0,
             attention(H100, code, 1, STEP, 0)),
            ("prompt of 8192", "[4,8,32]", 0, statistics.median(
                attention(H100, code, 1, STEP, STEP * i) for i in range(4)))):
        was = seen(what, f"llm_k_attention<128, 128, 0, 0, {shares}>", grid)
        steps = LAYERS * (4 if "8192" in what else 1)
        gain = (SPEED["4"][what] - SPEED["5"][what]) / steps
        what = what.replace("1 streams", "1 row").replace("streams", "rows")
        line(f"attention, {what}", att * 1e6, (was - gain) * 1e6)

    print("\n| step or prompt | predicted, ms | measured, ms | off |\n"
          "|---|---|---|---|")
    for what, time in SPEED["5"].items():
        n = int(re.search(r"\d+", what).group())
        of = decode if "streams" in what else prompt
        what = what.replace("1 streams", "1 row").replace("streams", "rows")
        line(what, of(H100, code, n) * 1e3, time * 1e3)
    print(f"\nWAIT {wait(code):.1f} and OVERLAP {overlap(code):.2f} by this "
          f"table, {WAIT} and {OVERLAP} used")


# ---- beside a run ----

def expected(gpu, code, rows):
    """(what, kernel, grid, seconds) of products by our kernels"""
    for what, weights in (("q, k, v", QKV), ("o", OUT), ("gate, up", UP),
                          ("down", DOWN), ("head", HEAD)):
        if rows <= 64:
            kernel, blocks = few(code, rows, weights)
            time = ours(gpu, code, rows, weights)
            if what == "gate, up" and rows <= 16:
                kernel = kernel.replace("few", "glu")
                time = gated(gpu, code, rows, 0) or time
            yield what, kernel, f"[{blocks},1,1]", time
        elif what != "head":
            # one launch for each weight
            for n_out in sorted({n for n, _ in weights}):
                kernel, _, _, grid = wgmma(rows, n_out, 0)
                yield (what, kernel, f"[{grid[0]},{grid[1]},1]",
                       by_wgmma(gpu, code, rows, (n_out, weights[0][1]), 0))


def beside(code, file, gpu):
    """What cublasLt computed is not in the table."""
    times = kernels(file)
    print("| kernel | predicted, us | measured, us | off |\n|---|---|---|---|")
    for section in dict.fromkeys(s for s, _, _ in times):
        n = int(re.search(r"\d+", section).group())
        rows = min(n, STEP)
        one = "streams" in section
        att = (attention(gpu, code, n, 1, CACHED) if one
               else attention(gpu, code, 1, rows, n - rows))
        kernel = (WGMMA if not one and WGMMA in code.loops and rows * GROUP > 64
                  else f"llm_k_attention<128, 128, 0, 0, {int(one)}>")
        seen_att = [t for (s, k, _), t in times.items()
                    if (s, k) == (section, kernel)]
        lines = [("attention", att, max(seen_att, default=0))]
        lines += [(what, time, times.get((section, name, grid), 0))
                  for what, name, grid, time in expected(gpu, code, rows)]
        for what, predicted, measured in lines:
            if measured:
                print(f"| {section}: {what} | {predicted * 1e6:.1f} "
                      f"| {measured * 1e6:.1f} "
                      f"| {100 * (predicted / measured - 1):+.0f} % |")


def rates(file):
    peak = json.loads(file.read_text().split("\n", 1)[0])
    return Gpu(file.name, peak["copy_gb_s"] * 1e9,
               peak.get("matrix_tflops", H100.matrix / 1e12) * 1e12)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("--table", type=Path)
    p.add_argument("--check", action="store_true")
    p.add_argument("--beside", type=Path)
    p.add_argument("--peak", type=Path)
    args = p.parse_args()
    if args.check:
        check(Code(RUN5))
        return
    code = Code(args.table or sass.TABLE)
    if args.beside:
        beside(code, args.beside, rates(args.peak) if args.peak else H200)
        return
    sys.exit(1 if predict(code) else 0)


if __name__ == "__main__":
    main()
