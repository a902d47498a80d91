#!/usr/bin/env python3
"""Compares the cases of schema_cases.txt with the package jsonschema
(t/requirements.txt); prints those that differ."""

import json
import os
import sys

from jsonschema import Draft202012Validator, validators


def main():
    path = os.path.join(os.path.dirname(__file__), "schema_cases.txt")
    schema, n, wrong = None, 0, 0
    for line in open(path, encoding="utf-8"):
        kind, text = line[:1], line[2:].rstrip("\n")
        if kind in "SN":
            schema = json.loads(text)
            near = kind == "N"
        # formats are annotations there; E has no instance; of a schema that
        # is read without what is not supported more is accepted
        if kind not in "+-" or near or "format" in json.dumps(schema):
            continue
        try:
            value = json.loads(text, object_pairs_hook=pairs,
                               parse_constant=int)
        except ValueError:
            value, valid = None, False
        else:
            cls = validators.validator_for(schema, Draft202012Validator)
            valid = cls(schema).is_valid(value)
        n += 1
        if valid != (kind == "+"):
            wrong += 1
            print(json.dumps(schema), line, end="")
    print(f"{n} compared, {wrong} differ")
    return wrong != 0


def pairs(items):
    if len(dict(items)) < len(items):
        raise ValueError("a key twice")
    return dict(items)


if __name__ == "__main__":
    sys.exit(main())
