#!/usr/bin/env python3
"""Writes kernels/grids.h: the grids of the IQ types, which are data of the
format, from the reference package gguf (pip install gguf)."""

from gguf import quants

# name, class that has it, bits of an element
GRIDS = [("iq1", "IQ1_S", 2), ("iq2_xxs", "IQ2_XXS", 2),
         ("iq2_xs", "IQ2_XS", 2), ("iq2_s", "IQ2_S", 2),
         ("iq3_xxs", "IQ3_XXS", 3), ("iq3_s", "IQ3_S", 3)]

HEAD = """/*
 * The grids of the IQ types, which are data of the format: made by
 * t/unit/grids.py, not to be edited.
 *
 * A row is the elements that one index of a block stands for, the first in
 * the lowest bits: 8 of 2 bits, or 4 of 3 bits (IQ3).  coded.h says what an
 * element is worth.
 */

#ifndef LLM_GRIDS_H
#define LLM_GRIDS_H
"""


def main():
    print(HEAD)
    for name, cls, bits in GRIDS:
        q = getattr(quants, cls)
        q.init_grid()
        worth = {v: i for i, v in enumerate(q.grid_map)}
        rows = q.grid.reshape(q.grid_shape)
        print(f"\nLLM_DATA const uint16_t  llm_grid_{name}"
              f"[{len(rows)}] = {{")
        words = ["0x%04x" % sum(worth[int(v)] << bits * i
                                for i, v in enumerate(row)) for row in rows]
        for i in range(0, len(words), 9):
            end = "," if i + 9 < len(words) else ""
            print("    " + ", ".join(words[i:i + 9]) + end)
        print("};\n")
    print("#endif /* LLM_GRIDS_H */")


if __name__ == "__main__":
    main()
