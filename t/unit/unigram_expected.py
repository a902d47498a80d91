#!/usr/bin/env python3
# Trains a unigram vocabulary with the package sentencepiece, writes it as a
# GGUF file, and compares objs/llm tokenize with the package on random texts.
# Not part of the test run: it wants the packages sentencepiece, protobuf and
# gguf.
#
#   t/unit/unigram_expected.py CORPUS [SEED] [--bytes]
#
# The package adds scores in float32, so that it may choose the other of two
# ways that are as good: a few differences of that kind are no error.

import os
import random
import subprocess
import sys
import tempfile

os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

SPACES = [" ", "  ", "\t", "\n", "\u3000", "\u00a0", "\u2003", "  \r\n"]
ODD = ["\ufb01", "\u2460", "A\u030a", "\uff71\uff8a\uff9f", "\u338f", "\u017f",
       "\u2167", "\u2026", "\ufeff", "\u200b", "\u2581", "\u1100\u1161",
       "\ufdfa", "e\u0301\u0308"]
RANGES = [(1, 0x2fff, 800), (0xac00, 0xd7a3, 100), (0x4e00, 0x9fff, 100),
          (0xf900, 0xffff, 300), (0x1f000, 0x1faff, 100)]


def write(model, path):
    m = sentencepiece_model_pb2.ModelProto()
    with open(model, "rb") as f:
        m.ParseFromString(f.read())

    w = gguf.GGUFWriter(path, "bert")
    w.add_tokenizer_model("t5")
    w.add_token_list([p.piece.encode() for p in m.pieces])
    w.add_token_scores([p.score for p in m.pieces])
    w.add_token_types([p.type for p in m.pieces])
    norm = m.normalizer_spec
    w.add_add_space_prefix(norm.add_dummy_prefix)
    w.add_remove_extra_whitespaces(norm.remove_extra_whitespaces)
    w.add_precompiled_charsmap(norm.precompiled_charsmap)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


def text(lines, pool):
    out = []

    for _ in range(random.randrange(1, 30)):
        kind = random.random()
        line = random.choice(lines)
        at = random.randrange(len(line))

        if kind < 0.6:
            out.append(line[at:at + random.randrange(1, 20)])
        elif kind < 0.75:
            out.append(random.choice(pool))
        elif kind < 0.9:
            out.append(random.choice(SPACES))
        else:
            out.append(random.choice(ODD))

    # what looks like a control token would be one to the package alone
    return "".join(out).replace("\0", "").replace("<", "(")


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    random.seed(int(args[1]) if len(args) > 1 else 1)
    llm = os.path.join(os.environ.get("LLM_OBJS", "objs"), "llm")

    with open(args[0], encoding="utf-8", errors="ignore") as f:
        lines = [line.strip() for line in f if line.strip()]

    pool = [chr(random.randrange(*r[:2])) for r in RANGES
            for _ in range(r[2])]
    bad = 0

    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "m")
        sentencepiece.SentencePieceTrainer.train(
            input=args[0], model_prefix=name, vocab_size=4000,
            model_type="unigram", character_coverage=0.98, minloglevel=2,
            byte_fallback="--bytes" in sys.argv, hard_vocab_limit=False,
            normalization_rule_name="nmt_nfkc")
        sp = sentencepiece.SentencePieceProcessor(model_file=name + ".model")
        write(name + ".model", name + ".gguf")

        for _ in range(400):
            t = text(lines, pool)
            got = subprocess.run([llm, "tokenize", name + ".gguf"],
                                 input=t.encode(), capture_output=True,
                                 check=True)
            got = [int(i) for i in got.stdout.split()]

            if got != sp.encode(t):
                bad += 1
                print(repr(t), got, sp.encode(t), sep="\n")

    print(f"{bad} of 400 texts differ")


main()
