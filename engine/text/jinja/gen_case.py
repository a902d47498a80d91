#!/usr/bin/env python3
"""Writes case_tables.h: what Python's own str says of every character.

usage: gen_case.py > case_tables.h
"""

import sys
import unicodedata

MAX = 0x110000


def chars():
    for c in range(MAX):
        if not 0xd800 <= c < 0xe000:
            yield c


def ranges(test):
    """Characters for which test holds, as (first, last, step) with step 1
    or 2."""
    out = []
    for c in range(MAX):
        if not test(chr(c)):
            continue
        if out:
            first, last, step = out[-1]
            gap = c - last
            if gap in (1, 2) and (first == last or gap == step):
                out[-1] = (first, c, gap)
                continue
        out.append((c, c, 1))
    return out


def mappings(method, other):
    """(first, last, step, delta) runs of simple mappings; specials apart.
    What other does alike is left out."""
    runs, special = [], []
    for c in chars():
        to = method(chr(c))
        if to == (other(chr(c)) if other else chr(c)):
            continue
        if len(to) > 1:
            special.append((c, to))
            continue
        delta = ord(to) - c
        if runs and runs[-1][3] == delta:
            first, last, step, _ = runs[-1]
            gap = c - last
            if gap in (1, 2) and (first == last or gap == step):
                runs[-1][1] = c
                runs[-1][2] = gap
                continue
        runs.append([c, c, 1, delta])
    return runs, special


def table(kind, name, rows):
    print('static const %s  %s[] = {' % (kind, name))
    line = '   '
    for i, row in enumerate(rows):
        item = ' ' + row + (',' if i + 1 < len(rows) else '')
        if len(line) + len(item) > 79:
            print(line)
            line = '   '
        line += item
    print(line)
    print('};\n')


def class_table(name, test):
    table('llm_jc_range_t', 'llm_jc_' + name,
          ['{0x%x,0x%x,%d}' % r for r in ranges(test)])


def map_table(name, method, other=None):
    runs, special = mappings(method, other)
    table('llm_jc_run_t', 'llm_jc_to_' + name,
          ['{0x%x,0x%x,%d,%d}' % tuple(r) for r in runs])
    rows = []
    for c, to in special:
        codes = [ord(x) for x in to] + [0]
        rows.append('{0x%x,{%s}}'
                    % (c, ','.join('0x%x' % x for x in codes[:3])))
    table('llm_jc_special_t', 'llm_jc_to_%s_special' % name, rows)


def main():
    print('/* written by gen_case.py from Unicode %s; do not edit */\n'
          % unicodedata.unidata_version)
    class_table('alpha', str.isalpha)
    class_table('decimal', str.isdecimal)
    class_table('digit', str.isdigit)
    class_table('numeric', str.isnumeric)
    class_table('upper_case', str.isupper)
    class_table('lower_case', str.islower)
    class_table('title_case', lambda s: unicodedata.category(s) == 'Lt')
    class_table('hidden', lambda s: not s.isprintable())
    map_table('upper', str.upper)
    map_table('title', str.title, str.upper)
    map_table('lower', str.lower)
    return 0


if __name__ == '__main__':
    sys.exit(main())
