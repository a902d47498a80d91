#!/usr/bin/env python3
"""Transcriptions and image encoders, with random weights in real shapes.

usage: media.py [CASE ...]
       media.py --make CASE

The second one makes the file of a case and prints its name.

For each case (CASES), makes a file in objs/bench: whisper.cpp's file of a
Whisper model, or llama.cpp's of an encoder of images (mmproj).  objs/llm bench
takes turns with a peer, REPS times (5), after one round that is not counted:

  WHISPER_CLI  whisper.cpp's whisper-cli: the same 30 seconds of sound, once,
               and CLIPS (4) times, which it transcribes one after the other
  TOWER_PEER   a command that is given an mmproj file and the width and the
               height of an image, and prints the milliseconds of encoding it:
               of clip_image_encode() of llama.cpp's mtmd
  BEFORE       the objs/llm of another build

RUN is put before each command (such as "chrt -f 1", so that other programs do
not disturb it).  Prints medians of seconds, and of the ratios of each round.

The text of a window is made to be TOKENS (100) tokens long: the decoder's
embedding of a position is a multiple of that of the token to come, which
outweighs what the layers add.
"""

import math
import os
import random
import re
import shlex
import statistics
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import mkmodel                                              # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
OBJS = Path(os.environ.get("LLM_OBJS", ROOT / "objs"))
WHISPER = os.environ.get("WHISPER_CLI")
TOWER = shlex.split(os.environ.get("TOWER_PEER", ""))
BEFORE = os.environ.get("BEFORE")
RUN = shlex.split(os.environ.get("RUN", ""))
REPS = int(os.environ.get("REPS", 5))
CLIPS = int(os.environ.get("CLIPS", 4))
TOKENS = int(os.environ.get("TOKENS", 100))
THREADS = str(os.cpu_count())

SECONDS = 30
VOCAB, TEXT = 51865, 50257
EOT, TIME = 50257, 50364                # <|endoftext|>, <|0.00|>
PROMPT = 3                              # <|startoftranscript|><|en|>
                                        # <|transcribe|>

# name: width, heads, layers of the encoder and of the decoder
WHISPERS = {"base": (512, 8, 6), "small": (768, 12, 12)}

# side: pixels of the table of positions; image: of the sides of the image;
# deep: layers that have a merger of their own
TOWERS = {
    "qwen3-vl-2b": dict(embd=1024, layers=24, heads=16, ff=4096, out=2048,
                        patch=16, side=768, image=512, deep=(5, 11, 17)),
}

CASES = [f"{name}-{kind}" for name in list(WHISPERS) + list(TOWERS)
         for kind in ("f16", "q8_0")]


# ---- files ----

class Weights:
    """Random tensors of the type `kind`, of float16 and of float32."""

    def __init__(self, kind):
        rng = random.Random(1)
        self.kind = kind
        self.pools = {k: mkmodel.Pool(k, rng)
                      for k in sorted({kind, "f16", "f32"})}

    def pool(self, kind, row):
        """That of a type, or of float16 where rows are no whole blocks."""
        pool = self.pools[kind]
        return self.pools["f16"] if row % pool.elements else pool


def floats(x, n):
    return struct.pack("<f", x) * n


def values(kind, data):
    """The elements of a row, for the types of this bench."""
    if kind == "f16":
        return struct.unpack(f"<{len(data) // 2}e", data)
    out = []
    for at in range(0, len(data), 34):
        d, *q = struct.unpack_from("<e32b", data, at)
        out += [d * x for x in q]
    return out


def slaney():
    """Any filters: the program computes its own, and whisper.cpp takes as long
    for all."""
    rows = [[0.02 if k * 80 // 201 == band else 0 for k in range(201)]
            for band in range(80)]
    return struct.pack(f"<{80 * 201}f", *sum(rows, []))


def whisper(path, name, kind):
    width, heads, layers = WHISPERS[name]
    w = Weights(kind)
    ftype = {"f16": 1, "q8_0": 2007}[kind]

    with open(path, "w+b") as out:
        out.write(struct.pack("<12i", 0x67676d6c, VOCAB, 1500, width, heads,
                              layers, 448, width, heads, layers, 80, ftype))
        out.write(struct.pack("<ii", 80, 201) + slaney())
        out.write(struct.pack("<i", TEXT))
        for i in range(TEXT):
            word = bytes([i]) if i < 256 else b" word%d" % i
            out.write(struct.pack("<I", len(word)) + word)

        def head(name, number, dims):
            out.write(struct.pack(f"<3i{len(dims)}i", len(dims), len(name),
                                  number, *dims) + name.encode())

        def matrix(name, *dims, of=kind):
            pool = w.pool(of, dims[0])
            head(name, pool.number, dims)
            at = out.tell()
            pool.write(out, math.prod(dims))
            return at

        def vector(name, x, *dims):
            head(name, 0, dims)
            out.write(floats(x, math.prod(dims)))

        def norm(name):
            vector(f"{name}.weight", 1, width)
            vector(f"{name}.bias", 0, width)

        def linear(name, n_in, n_out, bias=True):
            matrix(f"{name}.weight", n_in, n_out)
            if bias:
                vector(f"{name}.bias", 0, n_out)

        def attention(name):
            for part in ("query", "key", "value", "out"):
                linear(f"{name}.{part}", width, width, part != "key")
            norm(f"{name}_ln")

        def mlp(name):
            linear(f"{name}.mlp.0", width, 4 * width)
            linear(f"{name}.mlp.2", 4 * width, width)
            norm(f"{name}.mlp_ln")

        matrix("encoder.positional_embedding", width, 1500, of="f32")
        matrix("encoder.conv1.weight", 3, 80, width, of="f16")
        vector("encoder.conv1.bias", 0, 1, width)
        matrix("encoder.conv2.weight", 3, width, width, of="f16")
        vector("encoder.conv2.bias", 0, 1, width)
        for i in range(layers):
            attention(f"encoder.blocks.{i}.attn")
            mlp(f"encoder.blocks.{i}")
        norm("encoder.ln_post")

        at = matrix("decoder.token_embedding.weight", width, VOCAB)
        end = out.tell()
        row = (end - at) // VOCAB

        # after the prompt <|0.00|>, text, <|30.00|>, the end
        text = [1000 + 7 * i for i in range(TOKENS - 3)]
        come = ([0] * (PROMPT - 1) + [TIME] + text + [TIME + 1500]
                + [EOT] * 448)[:448]
        head("decoder.positional_embedding", 0, (width, 448))
        table = b""
        for token in come:
            out.seek(at + token * row)
            x = values(w.pool(kind, width) is w.pools["f16"] and "f16" or kind,
                       out.read(row))
            table += struct.pack(f"<{width}f", *(1000 * v for v in x))
        out.seek(0, 2)
        out.write(table)
        for i in range(layers):
            attention(f"decoder.blocks.{i}.attn")
            attention(f"decoder.blocks.{i}.cross_attn")
            mlp(f"decoder.blocks.{i}")
        norm("decoder.ln")


def tower_tensors(s):
    """(name, dimensions, contents) as mkmodel.py has them; "h": float16."""
    embd, ff, patch = s["embd"], s["ff"], s["patch"]

    def linear(name, n_in, n_out):
        yield f"{name}.weight", (n_in, n_out), "w"
        yield f"{name}.bias", (n_out,), 0

    def norm(name, n=embd):
        yield f"{name}.weight", (n,), 1
        yield f"{name}.bias", (n,), 0

    yield "v.patch_embd.weight", (patch, patch, 3, embd), "h"
    yield "v.patch_embd.weight.1", (patch, patch, 3, embd), "h"
    yield "v.patch_embd.bias", (embd,), 0
    yield "v.position_embd.weight", (embd, (s["side"] // patch) ** 2), "r"
    yield from norm("v.post_ln")
    for i in range(s["layers"]):
        b = f"v.blk.{i}"
        yield from norm(f"{b}.ln1")
        yield from norm(f"{b}.ln2")
        yield from linear(f"{b}.attn_qkv", embd, 3 * embd)
        yield from linear(f"{b}.attn_out", embd, embd)
        yield from linear(f"{b}.ffn_up", embd, ff)
        yield from linear(f"{b}.ffn_down", ff, embd)
    for name in [f"v.deepstack.{i}" for i in s["deep"]] + ["mm"]:
        one, two = (".0", ".2") if name == "mm" else (".fc1", ".fc2")
        if name != "mm":
            yield from norm(f"{name}.norm", 4 * embd)
        yield from linear(name + one, 4 * embd, 4 * embd)
        yield from linear(name + two, 4 * embd, s["out"])


def tower_keys(s):
    v = "clip.vision."
    deep = [i in s["deep"] for i in range(s["layers"])]
    half = (mkmodel.F32, [0.5] * 3)
    return [mkmodel.pair(*r) for r in (
        ("general.architecture", mkmodel.STRING, "clip"),
        ("general.type", mkmodel.STRING, "mmproj"),
        ("general.file_type", mkmodel.U32, 1),
        ("clip.has_vision_encoder", mkmodel.BOOL, True),
        ("clip.projector_type", mkmodel.STRING, "qwen3vl_merger"),
        ("clip.use_gelu", mkmodel.BOOL, True),
        (v + "projection_dim", mkmodel.U32, s["out"]),
        (v + "image_size", mkmodel.U32, s["side"]),
        (v + "patch_size", mkmodel.U32, s["patch"]),
        (v + "embedding_length", mkmodel.U32, s["embd"]),
        (v + "feed_forward_length", mkmodel.U32, s["ff"]),
        (v + "block_count", mkmodel.U32, s["layers"]),
        (v + "attention.head_count", mkmodel.U32, s["heads"]),
        (v + "attention.layer_norm_epsilon", mkmodel.F32, 1e-6),
        (v + "image_mean", mkmodel.ARRAY, half),
        (v + "image_std", mkmodel.ARRAY, half),
        (v + "spatial_merge_size", mkmodel.U32, 2),
        (v + "is_deepstack_layers", mkmodel.ARRAY, (mkmodel.BOOL, deep)))]


def tower(path, name, kind):
    s = TOWERS[name]
    w = Weights(kind)
    plan, table, off = [], [], 0
    for tensor, dims, what in tower_tensors(s):
        pool = w.pool({"w": kind, "h": "f16"}.get(what, "f32"), dims[0])
        plan.append((pool, math.prod(dims), what))
        table.append(mkmodel.string(tensor) + struct.pack(
            f"<I{len(dims)}QIQ", len(dims), *dims, pool.number, off))
        off += mkmodel.align(pool.bytes_of(math.prod(dims)))
    keys = tower_keys(s)
    with open(path, "wb") as out:
        out.write(struct.pack("<4sIQQ", b"GGUF", 3, len(table), len(keys)))
        out.writelines(keys + table)
        for pool, n, what in plan:
            out.write(bytes(mkmodel.align(out.tell()) - out.tell()))
            if isinstance(what, str):
                pool.write(out, n)
            else:
                out.write(floats(what, n))
        out.write(bytes(mkmodel.align(out.tell()) - out.tell()))


def made(name, write):
    path = OBJS / "bench" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        write(part)
        part.rename(path)
    return path


def sound(path):
    rng = random.Random(1)
    data = struct.pack(f"<{SECONDS * 16000}h",
                       *(int(rng.gauss(0, 3000))
                         for _ in range(SECONDS * 16000)))
    path.write_bytes(struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1,
        1, 16000, 32000, 2, 16, b"data", len(data)) + data)


def picture(path, side):
    rng = random.Random(1)
    path.write_bytes(b"BM" + struct.pack(
        "<IHHIIiiHHIIiiII", 54 + 3 * side * side, 0, 0, 54, 40, side, side, 1,
        24, 0, 3 * side * side, 2835, 2835, 0, 0)
        + rng.randbytes(3 * side * side))


# ---- runs: each gives a list of seconds ----

def output(*args):
    p = subprocess.run([*RUN, *map(str, args)], check=True,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return p.stdout.decode(errors="replace")


def cells(text):
    return [[c.strip() for c in line.strip("|").split("|")]
            for line in text.splitlines() if line.startswith("| ")]


def ours_speech(llm, model, wav):
    rows = cells(output(llm, "bench", model, "--audio", wav, "--reps", 1,
                        "--clips", CLIPS))[2:]
    for row, n in zip(rows, (1, CLIPS)):
        if int(row[4]) != n * TOKENS:
            raise SystemExit(f"{model}: {row[4]} tokens, not {n * TOKENS}")
    return [float(row[5]) for row in rows]


def theirs_speech(model, wav):
    """The total time without that of loading the model."""
    times = []
    for n in (1, CLIPS):
        text = output(WHISPER, "-m", model, "-t", THREADS, "-l", "en", "-bs",
                      1, "-bo", 1, "-nf", "-mc", 0, *["-f", wav] * n)
        total, load = (float(re.search(rf"{k} time = +([0-9.]+) ms",
                                       text).group(1))
                       for k in ("total", "load"))
        # the first tokens of a window come of the prompt's step
        steps = int(re.search(r"decode time = .*/ +(\d+) runs",
                              text).group(1))
        if steps != n * (TOKENS - 2):
            raise SystemExit(f"{WHISPER}: {steps} steps for {n} times "
                             f"{TOKENS} tokens")
        times.append((total - load) / 1000)
    return times


def ours_tower(llm, mmproj, image):
    return [float(cells(output(llm, "bench", mmproj, "--image", image,
                               "--reps", 1))[2][5])]


def theirs_tower(mmproj, side):
    return [float(re.findall(r"[0-9.]+", output(*TOWER, mmproj, side,
                                                side))[-1]) / 1000]


def turns(runs):
    """Rounds of all runs, each in the reverse order of the one before."""
    times = [[] for _ in runs]
    for i in range(REPS + 1):
        for k in range(len(runs))[::-1 if i % 2 else 1]:
            t = runs[k]()
            if i:
                times[k].append(t)
    return times


def file(name):
    shape, kind = name.rsplit("-", 1)
    if shape in WHISPERS:
        return made(f"whisper-{name}.bin", lambda p: whisper(p, shape, kind))
    return made(f"tower-{name}.gguf", lambda p: tower(p, shape, kind))


def row(name):
    shape = name.rsplit("-", 1)[0]
    llm = OBJS / "llm"
    others = [BEFORE] if BEFORE else []
    model = file(name)
    if shape in WHISPERS:
        wav = made("noise.wav", sound)
        labels = ["1 clip", f"{CLIPS} clips"]
        runs = [lambda o=o: ours_speech(o, model, wav) for o in [llm, *others]]
        if WHISPER:
            runs.append(lambda: theirs_speech(model, wav))
    else:
        side = TOWERS[shape]["image"]
        image = made(f"noise-{side}.bmp", lambda p: picture(p, side))
        labels = [f"{side} x {side}"]
        runs = [lambda o=o: ours_tower(o, model, image)
                for o in [llm, *others]]
        if TOWER:
            runs.append(lambda: theirs_tower(model, side))
    times = turns(runs)
    for i, label in enumerate(labels):
        mine = [t[i] for t in times[0]]
        out = [name, label, f"{statistics.median(mine):.3f}"]
        for other in times[1:]:
            them = [t[i] for t in other]
            ratio = statistics.median(b / a for a, b in zip(mine, them))
            out += [f"{statistics.median(them):.3f}", f"{ratio:.2f}"]
        print("| " + " | ".join(out) + " |", flush=True)


def main():
    make = sys.argv[1:2] == ["--make"]
    names = sys.argv[1 + make:] or CASES
    for name in names:
        if name not in CASES:
            raise SystemExit(f"unknown case {name} ({', '.join(CASES)})")
    if make:
        print(*map(file, names), sep="\n")
        return
    head = ["case", "", "seconds"]
    head += ["before", "ratio"] if BEFORE else []
    head += ["peer", "ratio"] if WHISPER or TOWER else []
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head),
          flush=True)
    for name in names:
        row(name)


if __name__ == "__main__":
    main()
