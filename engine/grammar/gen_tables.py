#!/usr/bin/env python3
"""Writes regex_tables.h from the Unicode data of this Python."""

import sys
import unicodedata as u

LONG = {
    "L": "Letter", "Lu": "Uppercase_Letter", "Ll": "Lowercase_Letter",
    "Lt": "Titlecase_Letter", "Lm": "Modifier_Letter", "Lo": "Other_Letter",
    "M": "Mark", "Mn": "Nonspacing_Mark", "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark", "N": "Number", "Nd": "Decimal_Number",
    "Nl": "Letter_Number", "No": "Other_Number", "P": "Punctuation",
    "Pc": "Connector_Punctuation", "Pd": "Dash_Punctuation",
    "Ps": "Open_Punctuation", "Pe": "Close_Punctuation",
    "Pi": "Initial_Punctuation", "Pf": "Final_Punctuation",
    "Po": "Other_Punctuation", "S": "Symbol", "Sm": "Math_Symbol",
    "Sc": "Currency_Symbol", "Sk": "Modifier_Symbol", "So": "Other_Symbol",
    "Z": "Separator", "Zs": "Space_Separator", "Zl": "Line_Separator",
    "Zp": "Paragraph_Separator", "C": "Other", "Cc": "Control",
    "Cf": "Format", "Co": "Private_Use", "Cn": "Unassigned",
}


def ranges(has):
    """The sorted ranges of scalar values for which has() holds."""
    found = []
    for c in range(0x110000):
        if 0xD800 <= c <= 0xDFFF or not has(c):
            continue
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def main():
    category = [u.category(chr(c)) for c in range(0x110000)]
    rows, table = [], []
    for name, alias in LONG.items():
        found = ranges(lambda c: category[c].startswith(name))
        rows.append((name, alias, len(table), len(found)))
        table += found

    print(f"""\
/*
 * Unicode {u.unidata_version}, made by gen_tables.py: not to be edited.
 */

typedef struct {{
    const char  *name;
    const char  *alias;
    uint32_t     first;                 /* of llm_rx_ranges */
    uint32_t     n;
}} llm_rx_named_t;


static const llm_rx_named_t  llm_rx_names[] = {{""")
    print(",\n".join('    { "%s", "%s", %d, %d }' % r for r in rows))
    print("};\n\n\nstatic const llm_rx_range_t  llm_rx_ranges[] = {")
    line = "   "
    for i, (a, b) in enumerate(table):
        item = f" {{ 0x{a:x}, 0x{b:x} }}" + ("," if i + 1 < len(table) else "")
        if len(line) + len(item) > 78:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


if __name__ == "__main__":
    sys.exit(main())
