#!/usr/bin/env python3
"""Random schemas and instances: what objs/t/schema accepts and refuses is
compared with the package jsonschema.

    schema_random.py BINARY SEED COUNT

A valid instance may be refused for how it is written only: it is tried with
its keys in all orders and its whole numbers without a fraction.  Schemas that
are refused are counted."""

import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from jsonschema import Draft202012Validator

KEYS = "abcd"
SCALARS = [None, True, False, 0, 1, 2, 3, 5, 7, 12, -1, 1.0, 0.5, 2.5, -0.5,
           1e-05, 1e+16, "", "a", "b", "ab", "abc", "é", "2024-02-29"]
NUMBERS = [0, 1, 2.5, -1, 3, 0.5, 10]
PATTERNS = ["^a", "b$", "^[ab]+$", "a|c", "^.{1,2}$"]


def value(r, depth=0):
    kind = r.randrange(8)
    if kind == 6 and depth < 3:
        keys = sorted(r.sample(KEYS, r.randrange(4)))
        return {k: value(r, depth + 1) for k in keys}
    if kind == 7 and depth < 3:
        return [value(r, depth + 1) for _ in range(r.randrange(4))]
    return r.choice(SCALARS)


def schema(r, depth=0, refs=True):
    """refs: a reference here is no circle without a value between"""
    if depth > 4 or r.randrange(8) == 0:
        return r.randrange(4) != 0
    s = {}
    for _ in range(1 + r.randrange(3)):
        keyword(r, s, depth, refs)
    return s


def members(r, depth, keys, refs=True):
    return {k: schema(r, depth + 1, refs) for k in keys if r.randrange(2)}


def keyword(r, s, depth, refs):
    def some(refs):
        return [schema(r, depth + 1, refs)
                for _ in range(1 + r.randrange(3))]

    def names():
        return [k for k in KEYS if r.randrange(3) == 1]

    k = r.randrange(24)
    if k < 3:
        s["type"] = r.choice(["null", "boolean", "integer", "number",
                              "string", "array", "object", "object",
                              ["integer", "string"], ["object", "null"]])
    elif k == 3:
        s["enum"] = [value(r, 1) for _ in range(1 + r.randrange(3))]
    elif k == 4:
        s["const"] = value(r, 1)
    elif k == 5:
        s[r.choice(["minLength", "maxLength", "minItems", "maxItems",
                    "minProperties", "maxProperties"])] = r.randrange(4)
    elif k == 6:
        s[r.choice(["minimum", "maximum", "exclusiveMinimum",
                    "exclusiveMaximum"])] = r.choice(NUMBERS)
    elif k == 7:
        s["multipleOf"] = r.choice([1, 2, 3, 5, 7, 0.5, 2.5])
    elif k in (8, 9, 10):
        s["properties"] = members(r, depth, KEYS)
    elif k == 11:
        s["required"] = names()
    elif k == 12:
        s["prefixItems"] = some(True)
    elif k == 13:
        s["pattern"] = r.choice(PATTERNS)
    elif k == 14 and refs:
        s["$ref"] = "#/$defs/" + r.choice("xy")
    elif k in (15, 16):
        s[r.choice(["allOf", "anyOf", "oneOf"])] = some(refs)
    elif k == 17:
        s["patternProperties"] = members(r, depth, PATTERNS[:3])
    elif k == 18:
        s["dependentRequired"] = {c: names() for c in names()}
    elif k == 19:
        s["dependentSchemas"] = members(r, depth, KEYS[:2], refs)
    elif k == 20:
        s["if"] = schema(r, depth + 1, refs)
        s[r.choice(["then", "else"])] = schema(r, depth + 1, refs)
    elif k == 21:
        s[r.choice(["unevaluatedProperties",
                    "unevaluatedItems"])] = schema(r, depth + 1)
    elif k == 22:
        s["not"] = schema(r, depth + 1, refs)
    else:
        s[r.choice(["items", "contains", "additionalProperties",
                    "propertyNames"])] = schema(r, depth + 1)


def spellings(v):
    if isinstance(v, list):
        for x in itertools.product(*[list(spellings(e)) for e in v]):
            yield list(x)
    elif isinstance(v, dict):
        for keys in itertools.permutations(v):
            for x in itertools.product(*[list(spellings(v[k])) for k in keys]):
                yield dict(zip(keys, x))
    else:
        if isinstance(v, float) and v.is_integer():
            yield int(v)
        yield v


def text(v):
    return json.dumps(v, ensure_ascii=False)


def run(binary, lines):
    """numbers of the lines that did not come out; of refused schemas"""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
        f.write("\n".join(lines) + "\n")
        f.flush()
        out = subprocess.run([binary, f.name], capture_output=True,
                             text=True,
                             errors="replace").stdout.split("\n")
    wrong, refused = [], {}
    for i, line in enumerate(out):
        m = re.match(r"not ok \d+ - line (\d+):", line)
        if m:
            why = out[i + 2] if out[i + 2].startswith("# ") else None
            if why:
                refused[int(m.group(1)) - 1] = why
            else:
                wrong.append(int(m.group(1)) - 1)
    if not any(line.startswith("1..") for line in out):
        sys.exit("it did not end")
    return wrong, refused


def main():
    binary, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    r = random.Random(seed)
    lines, values, schemas, n = [], {}, {}, 0
    for _ in range(count):
        s = {"$defs": {"x": schema(r, 2, False),
                       "y": schema(r, 2, False)},
             "allOf": [schema(r)]}
        check = Draft202012Validator(s)
        lines.append("S " + text(s))
        for _ in range(20):
            v = value(r)
            good = check.is_valid(v)
            values[len(lines)], schemas[len(lines)] = v, s
            lines.append(("+ " if good else "- ") + text(v))
            n += good
    wrong, refused = run(binary, lines)
    bad, again, what = 0, [], []
    for i in wrong:
        if lines[i][0] == "-":
            bad += 1
            print("accepted:", text(schemas[i]), lines[i])
            continue
        again.append("S " + text(schemas[i]))
        for v in itertools.islice(spellings(values[i]), 1000):
            what.append((len(again), i))
            again.append("+ " + text(v))
    lost = set(run(binary, again)[0]) if again else set()
    alive = {i for line, i in what if line not in lost}
    for i in sorted({i for _, i in what} - alive):
        bad += 1
        print("refused:", text(schemas[i]), lines[i])
    whys = {text(schemas[i]): w for i, w in refused.items()}
    print(f"{len(values)} instances, {n} valid, {bad} differ,"
          f" {len(whys)} of {count} schemas refused")
    if os.environ.get("WHY"):
        for w in sorted(whys.values()):
            print(w)
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
