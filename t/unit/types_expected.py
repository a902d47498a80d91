#!/usr/bin/env python3
"""Writes types_expected.h: blocks of random bytes and what they stand for,
by the reference package gguf (pip install gguf)."""

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize

# name, bytes of a block, where its f16 scales are
BLOCKS = [("Q4_0", 18, [0]), ("Q4_1", 20, [0, 2]), ("Q5_0", 22, [0]),
          ("Q5_1", 24, [0, 2]), ("Q8_0", 34, [0]), ("Q4_K", 144, [0, 2]),
          ("Q5_K", 176, [0, 2]), ("Q6_K", 210, [208]), ("BF16", 2, [])]


def table(kind, name, values):
    print(f"\n\nstatic const {kind}  {name}[] = {{")
    line = "   "
    for v in values:
        if len(line) + len(v) + 2 > 78:
            print(line)
            line = "   "
        line += f" {v},"
    print(line.rstrip(",") + "\n};")


def main():
    print("/*\n * Made by types_expected.py: not to be edited.\n */")
    rng = np.random.default_rng(1)
    for name, size, scales in BLOCKS:
        n = 16 if name == "BF16" else 2 if size < 100 else 1
        raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
        for at in scales:
            d = rng.normal(0, 0.05, n).astype(np.float16)
            raw[:, at:at + 2] = d.view(np.uint8).reshape(n, 2)
        if name == "BF16":
            f = rng.normal(0, 3, n).astype(np.float32)
            raw = (f.view(np.uint32) >> 16).astype(np.uint16)
            raw = raw.view(np.uint8).reshape(n, 2)
        out = dequantize(raw, T[name]).astype(np.float32)
        table("uint8_t", f"{name.lower()}_bytes",
              ["%d" % b for b in raw.reshape(-1)])
        table("float", f"{name.lower()}_floats",
              [float(x).hex() + "f" for x in out.reshape(-1)])


if __name__ == "__main__":
    main()
