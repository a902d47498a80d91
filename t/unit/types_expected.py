#!/usr/bin/env python3
"""Writes types_expected.h: blocks of random bytes and what they stand for,
by the reference package gguf (pip install gguf)."""

import re

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize

# name, bytes of a block, where its f16 scales are; other scales: see fill()
BLOCKS = [("Q4_0", 18, [0]), ("Q4_1", 20, [0, 2]), ("Q5_0", 22, [0]),
          ("Q5_1", 24, [0, 2]), ("Q8_0", 34, [0]), ("Q4_K", 144, [0, 2]),
          ("Q5_K", 176, [0, 2]), ("Q6_K", 210, [208]), ("BF16", 2, []),
          ("Q2_K", 84, [80, 82]), ("Q3_K", 110, [108]),
          ("IQ2_XXS", 66, [0]), ("IQ2_XS", 74, [0]), ("IQ3_XXS", 98, [0]),
          ("IQ1_S", 50, [0]), ("IQ4_NL", 18, [0]), ("IQ3_S", 110, [0]),
          ("IQ2_S", 82, [0]), ("IQ4_XS", 136, [0]), ("IQ1_M", 56, []),
          ("TQ1_0", 54, [52]), ("TQ2_0", 66, [64]), ("MXFP4", 17, []),
          ("NVFP4", 36, [])]


def fill(name, raw):
    """Scales that are not f16: the edges of the format, and some between."""
    if name == "MXFP4":
        raw[:, 0] = [0, 1, 2, 120, 253, 254, 255][:len(raw)]
    if name == "NVFP4":
        raw[0, :4] = [0, 127, 1, 126]
        raw[1, :4] = [128, 255, 8, 61]
    if name == "IQ1_M":  # the f16 lies in four nibbles: no NaN, please
        raw[:, 55] = raw[:, 55] & 15 | 0x20


def table(kind, name, values):
    print(f"\n\nstatic const {kind}  {name}[] = {{")
    line = "   "
    for v in values:
        if len(line) + len(v) + 2 > 78:
            print(line)
            line = "   "
        line += f" {v},"
    print(line.rstrip(",") + "\n};")


def literal(x):
    if np.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return re.sub(r"\.?0*p", "p", x.hex()) + "f"


def main():
    print("/*\n * Made by types_expected.py: not to be edited.\n */\n\n"
          "#include <math.h>")
    rng = np.random.default_rng(1)
    for name, size, scales in BLOCKS:
        n = 16 if name == "BF16" else 7 if name == "MXFP4" \
            else 2 if size < 49 else 1
        raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
        for at in scales:
            d = rng.normal(0, 0.05, n).astype(np.float16)
            raw[:, at:at + 2] = d.view(np.uint8).reshape(n, 2)
        fill(name, raw)
        if name == "BF16":
            f = rng.normal(0, 3, n).astype(np.float32)
            raw = (f.view(np.uint32) >> 16).astype(np.uint16)
            raw = raw.view(np.uint8).reshape(n, 2)
        out = dequantize(raw, T[name]).astype(np.float32)
        table("uint8_t", f"{name.lower()}_bytes",
              ["%d" % b for b in raw.reshape(-1)])
        table("float", f"{name.lower()}_floats",
              [literal(float(x)) for x in out.reshape(-1)])


if __name__ == "__main__":
    main()
