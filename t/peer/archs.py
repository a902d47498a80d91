#!/usr/bin/env python3
"""Architectures in shapes that no fixture has, beside transformers.

usage: archs.py [NAME ...]

For each model of models.py whose name contains one of NAMEs (all): random
weights, the logits (an encoder's last states) that transformers computes from
them in float64, and a GGUF file that llama.cpp's own converter makes, so that
names, shapes, permutations and metadata are those of files in the wild.  Then
what objs/llm computes from that file: the reference kernels have to agree
within 10^-4 of the logits' deviation, which leaves no room for another
meaning of a key.  The kernels of this CPU are shown beside them and judged by
nothing but that their bytes are the same for steps of 1, 7, 64 and 512
tokens: in a random mixture two experts may be so near that rounding turns
them over, as in llama.cpp (t/unit/archs.c has the limits).

LLAMA_CPP is a checkout of llama.cpp.  Nothing is fetched, and nothing of this
is part of `./build.sh test`: see requirements.txt for what it needs.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

ROOT = Path(__file__).resolve().parents[2]
LLM = Path(os.environ.get("LLM_OBJS", ROOT / "objs")) / "llm"
OUT = Path(os.environ.get("LLM_OBJS", ROOT / "objs")) / "peer"
LLAMA_CPP = os.environ.get("LLAMA_CPP")

N_IDS, PLAIN_IDS = 96, 480
LIMIT = 1e-4


def make_tokenizer(folder, size):
    """A BPE tokenizer of `size` tokens: bytes, pairs of letters, ends."""
    tokens = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = "etaoinshrdlucmfwypvbgkqxjz"
    pairs = [(a, b) for a in letters for b in letters]
    merges = pairs[:size - 4 - len(tokens)]
    tokens += [a + b for a, b in merges]
    bpe = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    ends = ["<s>", "</s>", "<pad>", "<unk>"]
    bpe.add_special_tokens(ends)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=ends[0], eos_token=ends[1],
        pad_token=ends[2], unk_token=ends[3]).save_pretrained(folder)


def fill(model, gen):
    """Weights that float16 holds; each block counts beside the residual."""
    def normal(p):
        return torch.randn(p.shape, generator=gen, dtype=torch.float64)

    for name, p in model.named_parameters():
        if any(s in name for s in ("A_log", "alpha", "beta")) \
                or name.endswith(".D"):
            p.add_(normal(p) * 0.05)
        elif "sinks" in name:
            p.copy_(normal(p))
        elif p.ndim >= 2:
            # embeddings are small, so that the blocks are most of the stream
            embeds = any(s in name for s in ("embed", "wte", "word_emb"))
            p.copy_(normal(p) / (20 if embeds else p.shape[-1] ** 0.5))
        else:
            p.add_(normal(p) * 0.1)
        p.copy_(p.half().double())

    for name, b in model.named_buffers():
        if "correction" in name or "expert_bias" in name:
            b.copy_(normal(b) * 0.1)


def convert(folder, path):
    """What convert_hf_to_gguf.py does, with the tokenizer's kind given."""
    sys.path[:0] = [LLAMA_CPP, os.path.join(LLAMA_CPP, "gguf-py")]
    logging.disable(logging.INFO)
    from conversion import (ModelBase, ModelType, TextModel,
                            get_model_architecture, get_model_class)
    import gguf

    ModelBase.no_mtp = True
    TextModel.get_vocab_base_pre = lambda self, tokenizer: "qwen2"
    known = ModelBase.load_hparams(folder, False)
    kind = get_model_class(get_model_architecture(known, ModelType.TEXT))
    kind.set_vocab = kind._set_vocab_gpt2
    with torch.inference_mode():
        kind(folder, gguf.LlamaFileType.MOSTLY_F16, path).write()


def make(name, kind, fields, config=None, edit=None):
    """The model's file, its ids and what transformers says; the ids."""
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    gen = torch.Generator().manual_seed(0)
    torch.manual_seed(0)

    kind = getattr(transformers, kind)
    c = (getattr(transformers, config) if config
         else kind.config_class)(**fields)
    c._attn_implementation = c._experts_implementation = "eager"
    model = kind(c).double().eval()
    with torch.no_grad():
        fill(model, gen)
    model.float().save_pretrained(folder)
    model.double()
    make_tokenizer(folder, c.vocab_size)

    # what config.json of such a model says and transformers does not write
    path = folder / "config.json"
    said = json.loads(path.read_text())
    said["torch_dtype"] = said["dtype"] = "float32"
    said.update(edit(said) if edit else {})
    path.write_text(json.dumps(said))

    ids = torch.randint(0, PLAIN_IDS, (1, N_IDS), generator=gen)
    with torch.inference_mode():
        out = model(input_ids=ids)
    right = out.logits if hasattr(out, "logits") else out.last_hidden_state
    convert(folder, OUT / f"{name}.gguf")
    shutil.rmtree(folder)
    return ids[0].tolist(), right[0].numpy(), not hasattr(out, "logits")


def computed(name, ids, encoder, isa, batch):
    command = (["embed", "--pooling", "none"] if encoder
               else ["logits", "--all"])
    run = subprocess.run([LLM, command[0], OUT / f"{name}.gguf", *command[1:],
                          "--device", "cpu", "--batch", str(batch), *isa],
                         input=" ".join(map(str, ids)).encode(),
                         capture_output=True)
    if run.returncode:
        raise SystemExit(run.stderr.decode().strip())
    return run.stdout


def error(data, right):
    got = np.frombuffer(data, "<f4").astype("f8").reshape(right.shape)
    return np.sqrt(((got - right) ** 2).mean(1)) / right.std(1)


def check(name, row):
    ids, right, encoder = make(name, **row)
    batches = (N_IDS,) if encoder else (1, 7, 64, 512)
    shown = []
    for isa in (["--isa", "reference"], []):
        bytes_of = {computed(name, ids, encoder, isa, b) for b in batches}
        if len(bytes_of) != 1:
            raise SystemExit(f"{' '.join(isa)}: bytes depend on --batch")
        shown.append(error(bytes_of.pop(), right))
    (OUT / f"{name}.gguf").unlink()
    ok = shown[0].max() <= LIMIT
    print(f"{name:22} {'ok ' if ok else 'BAD'} reference: max "
          f"{shown[0].max():.6f}   this CPU: median {np.median(shown[1]):.6f} "
          f"nine of ten {np.quantile(shown[1], 0.9):.6f}", flush=True)
    return ok


def main():
    from models import MODELS

    if not LLAMA_CPP:
        raise SystemExit("LLAMA_CPP: where llama.cpp's converter is")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)

    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        raise SystemExit(not check(sys.argv[2], MODELS[sys.argv[2]]))

    # one process for each: the converter keeps what a model had in its classes
    bad = []
    for name in MODELS:
        if len(sys.argv) > 1 and not any(a in name for a in sys.argv[1:]):
            continue
        run = subprocess.run([sys.executable, __file__, "--one", name],
                             capture_output=True, text=True)
        print(run.stdout, end="", flush=True)
        if run.returncode:
            bad.append(name)
            print(f"{name}: {run.stderr.strip().splitlines()[-1:]}"
                  if not run.stdout else "", flush=True)
    print(f"wrong: {', '.join(bad)}" if bad else "all right")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
