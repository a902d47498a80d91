#!/usr/bin/env python3
"""Writes pretok_expected.h: where Hugging Face's tokenizers (Oniguruma) cut
texts with the regular expressions that the models' tokenizer.json publish.

    pip install tokenizers
"""

from tokenizers import Regex, pre_tokenizers as P

SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+"
        r"|\s+(?!\S)|\s+")
BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"


def cl100k(digits):
    return (SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + digits +
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL)


def o200k(digits, tail=SHORT + "?", han=""):
    up = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}" + han + "]"
    low = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}" + han + "]"
    pre = r"[^\r\n\p{L}\p{N}]?"
    return (f"{pre}{up}*{low}+{tail}|{pre}{up}+{low}*{tail}|{digits}" +
            r"| ?[^\s\p{L}\p{N}]+[\r\n" + ("" if han else "/") + "]*|" + TAIL)


def deepseek3(punct):
    return ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
            r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+" + punct +
            r"|\s+(?!\S)|\s+")


HAN_KANA = "[一-龥\u3040-ゟ゠-ヿ]+"
DEEPSEEK = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+",
            "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}"]
PUNCT_CONTIGUOUS = r"[\p{P}$+<=>^`|~]+"
SMALL_SPACES = "|".join(r"\s{%d}(?!\S)" % n
                        for n in (512, 256, 128, 64, 32, 16, 8, 4))

# what tokenizer.json has, in its order
ROWS = {
    "gpt-2": [GPT2],
    "llama-bpe": [cl100k(r"\p{N}{1,3}")],
    "qwen2": [cl100k(r"\p{N}")],
    "qwen35": [SHORT + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
               r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + TAIL],
    "minicpm5": [r"\p{N}{1,3}", cl100k(r"\p{N}+")],
    "starcoder": [r"\p{N}", GPT2],
    "falcon": [PUNCT_CONTIGUOUS, GPT2, "[0-9][0-9][0-9]"],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "deepseek-coder": DEEPSEEK,
    "deepseek-v3": [r"\p{N}{1,3}", HAN_KANA,
                    deepseek3(r"[\r\n]*|\s*[\r\n]+")],
    "tekken": [o200k(r"\p{N}", "")],
    "gpt-4o": [o200k(r"\p{N}{1,3}")],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", o200k(r"\p{N}{1,3}")],
    "kimi-k2": [r"[\p{Han}]+|" + o200k(r"\p{N}{1,3}", han=r"&&[^\p{Han}]")],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}"
                   r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "seed-coder": [SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}"
                   r"| ?[^\s\p{L}\p{N}\r\n]+|" + TAIL],
    "exaone-moe": [SHORT + r"|[^\r\n\p{L}\p{N}]?"
                   r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}"
                   r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "jais-2": [SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|" + SMALL_SPACES +
               r"|\s{1,2}(?!\S)|\s{1}"],
    "bloom": [BLOOM],
    "viking": [BLOOM, r"\p{N}"],
}

TEXTS = [
    "Hello world, it's 2024-01-15 and we've GOT'T 1234567.89 €!",
    "  two  spaces\n\n \n\ttab\r\n\r\n end   ",
    "don't DON'T I'Ll he'\u017fs ’s 'Re'VE",
    "HTTPServer camelCase XMLHttpRequest foo_bar ǅ ßS ñandÚ",
    "日本語テスト 中文。한국어 、「x」 漢字かな 〇々⺀ 12三",
    "हिन्दी தமிழ் ไทย العربية עברית é e\u0301\u0302 n\u0303",
    "١٢٣٤٥ १२३४ ½¾ Ⅷ ²³ ①② 1a2b 123456abc 12345",
    "\u00a0nbsp\u2003em\u3000ideo\u180emvs\u200bzw\u0085nel\u2028ls x",
    "🙂👍🏽 👩\u200d👩\u200d👧 🇫🇷 ﬁ © ™ ∑=√2 ~`^|<>$+",
    "a.b/c?d=e&f=g#h //x /*y*/ {\"k\": [1, -2]} </p>\n\n\n",
    "؟ ۔ । “q” ‘s’ … — - -- --- ...\n!!!\r",
    "x" + " " * 20 + "y" + " " * 9,
    "A" * 30 + "b" + "Ж" * 5 + "ж" * 5,
]


def ends(regexes, text):
    """The ends of the pieces, in bytes."""
    steps = P.Sequence([P.Split(Regex(r), "isolated") for r in regexes])
    at = 0
    found = []
    for _, (begin, end) in steps.pre_tokenize_str(text):
        assert begin == at, (regexes, text)
        at = end
        found.append(len(text[:end].encode()))
    assert at == len(text)
    return found


def quoted(text):
    """A C string: bytes that are not printable ASCII in octal."""
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else
                   "\\%03o" % b for b in text.encode())


def wrap(text, first, width):
    """Lines of C strings."""
    lines, line = [], first
    i = 0
    while i < len(text):
        n = 4 if text[i] == "\\" else 1
        if len(line) + n > width:
            lines.append(line + '"')
            line = '    "'
        line += text[i:i + n]
        i += n
    return lines + [line + '"']


def main():
    print("""\
/*
 * Made by pretok_expected.py: not to be edited.
 */


static const char  *pretok_texts[] = {""")
    for i, t in enumerate(TEXTS):
        lines = wrap(quoted(t), '    "', 76)
        print("\n".join(lines) + ("," if i + 1 < len(TEXTS) else ""))
    print("};\n\n\n/* for each text the ends of its pieces, then 0 */\n"
          "static const struct {\n    const char      *name;\n"
          "    const uint16_t  *ends;\n} pretok_rows[] = {")
    for n, (name, regexes) in enumerate(ROWS.items()):
        print('    { "%s", (const uint16_t[]) {' % name)
        line = "       "
        for t in TEXTS:
            for e in ends(regexes, t) + [0]:
                item = f" {e},"
                if len(line) + len(item) > 78:
                    print(line)
                    line = "       "
                line += item
        print(line.rstrip(",") + " } }" + ("," if n + 1 < len(ROWS) else ""))
    print("};")


if __name__ == "__main__":
    main()
