#!/usr/bin/env python3
"""Writes states_expected.h: the final states of tiny models, and what a ranker
makes of the last one, in numpy's float64 (see tiny_expected.py).  Run it after
changing a model here or there:

    python3 t/unit/states_expected.py > t/unit/states_expected.h
"""

import numpy as np

from tiny_expected import MODELS, states, tensor, wrap

NAMES = ["llama, tied head", "qwen3", "qwen2, part of a head turns",
         "llama, odd sizes F16", "qwen3, odd blocks Q8_0"]


def numbers(values):
    return [f"{v:.8e}f" for v in values]


def score(m):
    """The probability of the first label against the second."""
    rows = tensor("cls.output.weight", m["type"], 2, m["embd"])
    yes, no = rows @ states(m)[-1]
    return 1 / (1 + np.exp(no - yes))


def main():
    print("/*\n * Made by states_expected.py: do not edit.\n */\n\n"
          "#define STATES_MAX  96\n\n"
          "static const struct {\n    const char  *name;\n"
          "    double       score;\n"
          "    float        states[TINY_IDS][STATES_MAX];\n"
          "} states_expected[] = {")
    for name in NAMES:
        m = MODELS[name]
        print(f'    {{ "{name}", {score(m):.12f}, {{')
        for row in states(m):
            print(f"      {{ {wrap(numbers(row), ' ' * 8)} }},")
        print("    } },")
    print("};")


if __name__ == "__main__":
    main()
