#!/usr/bin/env python3
"""Writes unicode_tables.h from the Unicode data of this Python."""

import sys
import unicodedata as u

ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def runs():
    """Code points where the general category changes, with the new one."""
    found = []
    for c in range(0x110000):
        if not found or found[-1][1] != category(c):
            found.append((c, category(c)))
    return found


def lines(head, items):
    """Prints a table, filling lines with items."""
    print("\n\n" + head)
    line = "   "
    for i, item in enumerate(items):
        item += "," if i + 1 < len(items) else ""
        if len(line) + 1 + len(item) > 78:
            print(line)
            line = "   "
        line += " " + item
    print(line + "\n};")


def category(c):
    return u.category(chr(c))


def bases():
    """First characters of canonical decompositions, without Hangul."""
    found = [(c, ord(u.normalize("NFD", chr(c))[0])) for c in ALL
             if not 0xAC00 <= c <= 0xD7A3]
    return [(c, base) for c, base in found if c != base]


def lowers():
    """Runs of code points with a constant distance to their lower case."""
    found = []
    for c in ALL:
        low = chr(c).lower()
        if len(low) > 1 or ord(low) == c:
            continue
        delta = ord(low) - c
        if found:
            run = found[-1]
            step = c - run[1]
            if delta == run[3] and (step == run[2] or
                                    run[0] == run[1] and step in (1, 2)):
                run[1], run[2] = c, step
                continue
        found.append([c, c, 1, delta])
    return found


def main():
    print(f"""\
/*
 * Unicode {u.unidata_version}; written by gen_unicode.py, do not edit.
 */""")
    lines("/* first code point, category; a run ends before the next row */\n"
          "static const llm_unicode_run_t  llm_unicode_runs[] = {",
          ["{ 0x%x, LLM_UC_%s }" % (c, name.upper()) for c, name in runs()])
    lines("/* categories of ASCII, for a faster lookup */\n"
          "static const uint8_t  llm_unicode_ascii[128] = {",
          ["LLM_UC_" + category(c).upper() for c in range(128)])

    lines("/* character, first character of its canonical decomposition */\n"
          "static const llm_unicode_base_t  llm_unicode_bases[] = {",
          ["{ 0x%x, 0x%x }" % b for b in bases()])
    lines("/* from, to, step, distance to the lower case */\n"
          "static const llm_unicode_lower_t  llm_unicode_lowers[] = {",
          ["{ 0x%x, 0x%x, %d, %d }" % tuple(r) for r in lowers()])


if __name__ == "__main__":
    sys.exit(main())
