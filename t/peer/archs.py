#!/usr/bin/env python3
"""Architectures in shapes that no fixture has, beside transformers.

usage: archs.py [--device cpu|emu|cuda] [NAME ...]

For each model of models.py whose name contains one of NAMEs (all): random
weights, the logits (an encoder's last states) that transformers computes from
them in float64, and a GGUF file that llama.cpp's own converter makes, so that
names, shapes, permutations and metadata are those of files in the wild.  Then
what objs/llm computes from that file: the reference kernels have to agree
within 10^-4 of the logits' deviation, which leaves no room for another
meaning of a key.  The device's kernels (the CPU's) are shown beside them, and
llama.cpp's where the package llama-cpp-python is: median and nine of ten of
the positions.  They are judged by nothing but that their bytes are the same
for steps of 1, 7, 64 and 512 tokens: in a random mixture two experts may be so
near that rounding turns them over (t/unit/archs.c has the limits).

LLAMA_CPP is a checkout of llama.cpp.  Nothing is fetched, and nothing of this
is part of `./build.sh test`: see requirements.txt for what it needs.
"""

import argparse
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import BPE

ROOT = Path(__file__).resolve().parents[2]
OBJS = Path(os.environ.get("LLM_OBJS", ROOT / "objs"))
OUT = OBJS / "peer"
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
    bpe = Tokenizer(BPE({t: i for i, t in enumerate(tokens)}, merges))
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


def to_nvfp4(w):
    """The tensors that ModelOpt makes of a matrix, and what they are worth."""
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    blocks = w.reshape(len(w), -1, 16)
    scale_2 = w.abs().max() / (6 * 448)
    scale = (blocks.abs().amax(2) / 6 / scale_2).to(torch.float8_e4m3fn)
    unit = scale.float()[..., None] * scale_2
    codes = ((blocks / unit).abs()[..., None] - values).abs().argmin(-1)
    worth = values[codes] * blocks.sign() * unit
    codes += 8 * (blocks < 0)
    packed = codes[..., 0::2] + 16 * codes[..., 1::2]
    return {"weight": packed.reshape(len(w), -1).to(torch.uint8),
            "weight_scale": scale, "weight_scale_2": scale_2,
            "input_scale": torch.tensor(0.01)}, worth.reshape(w.shape)


def quantize(folder, model, names):
    """Matrices with such names become NVFP4; the model with their values."""
    path = folder / "model.safetensors"
    said = load_file(path)
    worth = dict(said)
    for name in filter(re.compile(names + r".*\.weight$").search, worth):
        made, worth[name] = to_nvfp4(said.pop(name))
        said.update((name.replace("weight", t), v) for t, v in made.items())
    save_file(said, path)
    return type(model).from_pretrained(None, config=model.config,
                                       state_dict=worth).double().eval()


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


def make(name, kind, fields, config=None, edit=None, nvfp4=None):
    """Makes NAME.gguf; the ids, what is right, whether it is an encoder."""
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
    model = quantize(folder, model, nvfp4) if nvfp4 else model.double()
    make_tokenizer(folder, c.vocab_size)

    # what config.json of such a model says and transformers does not write
    path = folder / "config.json"
    said = json.loads(path.read_text())
    said["torch_dtype"] = said["dtype"] = "float32"
    said.update(edit(said) if edit else {})
    if nvfp4:
        said["quantization_config"] = dict(quant_method="modelopt",
                                           quant_algo="NVFP4")
    path.write_text(json.dumps(said))

    ids = torch.randint(0, PLAIN_IDS, (1, N_IDS), generator=gen)
    with torch.inference_mode():
        out = model(input_ids=ids)
    right = out.logits if hasattr(out, "logits") else out.last_hidden_state
    convert(folder, OUT / f"{name}.gguf")
    shutil.rmtree(folder)
    return ids[0].tolist(), right[0].numpy(), not hasattr(out, "logits")


def computed(name, ids, encoder, batch, *where):
    command = (["embed", "--pooling", "none"] if encoder
               else ["logits", "--all"])
    run = subprocess.run([OBJS / "llm", command[0], OUT / f"{name}.gguf",
                          *command[1:], "--batch", str(batch), *where],
                         input=" ".join(map(str, ids)).encode(),
                         capture_output=True)
    if run.returncode:
        raise SystemExit(run.stderr.decode().strip())
    return run.stdout


def ours(name, ids, encoder, *where):
    found = {computed(name, ids, encoder, batch, *where)
             for batch in ((N_IDS,) if encoder else (1, 7, 64, 512))}
    if len(found) != 1:
        raise SystemExit(f"{' '.join(where)}: bytes depend on --batch")
    return np.frombuffer(found.pop(), "<f4").astype("f8")


def say_theirs(path):
    from llama_cpp import Llama

    ids = list(map(int, sys.stdin.read().split()))
    llama = Llama(path, n_ctx=512, logits_all=True, verbose=False)
    llama.eval(ids)
    sys.stdout.buffer.write(llama.scores[:len(ids)].astype("<f4").tobytes())


def theirs(name, ids):
    """What llama.cpp computes, or None: it may abort, or not be there."""
    run = subprocess.run([sys.executable, __file__, "--theirs",
                          OUT / f"{name}.gguf"],
                         input=" ".join(map(str, ids)).encode(),
                         env={**os.environ, "GGML_NO_BACKTRACE": "1"},
                         capture_output=True)
    return None if run.returncode else np.frombuffer(run.stdout, "<f4")


def error(got, right):
    got = np.asarray(got, "f8").reshape(right.shape)
    return np.sqrt(((got - right) ** 2).mean(1)) / right.std(1)


def share(e):
    return f"{np.median(e):.6f} {np.quantile(e, 0.9):.6f}"


def check(name, row, device):
    ids, right, encoder = make(name, **row)
    exact = error(ours(name, ids, encoder, "--device", "cpu", "--isa",
                       "reference"), right)
    fast = error(ours(name, ids, encoder, "--device", device), right)
    peer = None if encoder else theirs(name, ids)
    (OUT / f"{name}.gguf").unlink()
    ok = exact.max() <= LIMIT
    print(f"{name:24} {'ok ' if ok else 'BAD'} reference {exact.max():.6f}"
          f"   {device} {share(fast)}"
          + (f"   llama.cpp {share(error(peer, right))}"
             if peer is not None else ""), flush=True)
    return ok


def run_all(names, device):
    """A process for each: the converter's classes keep what a model had."""
    bad = []
    for name in names:
        run = subprocess.run([sys.executable, __file__, "--device", device,
                              "--one", name], capture_output=True, text=True)
        if run.returncode:
            bad.append(name)
        print(run.stdout or f"{name}: "
              f"{(run.stderr.strip().splitlines() or ['?'])[-1]}\n", end="",
              flush=True)
    print(f"wrong: {', '.join(bad)}" if bad else "all right")
    return not bad


def main():
    from models import MODELS

    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--theirs", help=argparse.SUPPRESS)
    parser.add_argument("names", metavar="NAME", nargs="*")
    args = parser.parse_args()

    if args.theirs:
        raise SystemExit(say_theirs(args.theirs))

    names = [m for m in MODELS
             if not args.names or any(n in m for n in args.names)]

    if not LLAMA_CPP:
        raise SystemExit("LLAMA_CPP: where llama.cpp's converter is")
    if not names:
        raise SystemExit(f"no model has {' or '.join(args.names)} in its name")

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)

    raise SystemExit(not (check(args.one, MODELS[args.one], args.device)
                          if args.one else run_all(names, args.device)))


if __name__ == "__main__":
    main()
