#!/usr/bin/env python3
"""Compares logits with transformers' in float64, on random small models.

usage: parity.py FOLDER [--device cuda] [--models 8] [--seed N]

FOLDER has llm and the backends' shared objects.  t/bench/mkmodel.py writes each
model, a GGUF file of random shape, Qwen3 or Llama, F16 or BF16; transformers
gets the weights of that file, and both get the same tokens.  The exit status is
1 if the root mean square of a model's errors is more than 0.0015 (F16) or
0.0045 (BF16) of the logits' standard deviation.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "t" / "bench"))

import mkmodel  # noqa: E402

BOUND = {"f16": 0.0015, "bf16": 0.0045}


def shape(rng):
    head = rng.choice((32, 64, 96, 128))
    kv = rng.choice((1, 2, 3))
    heads = kv * rng.choice((1, 2, 4, 5))
    return dict(arch=rng.choice(("qwen3", "llama")),
                embd=heads * rng.randrange(2, 6) * 16,
                layers=rng.randrange(1, 4), heads=heads, kv=kv, head=head,
                ff=rng.randrange(3, 12) * 32, vocab=0,
                tied=rng.random() < 0.5, base=rng.choice((1e4, 5e5, 1e6)),
                eps=1e-6, ctx=1024)


def weights(path, s, kind, n_vocab):
    """{name: float64 array}, read from the end of the file, its tensors."""
    data = path.read_bytes()
    places, off = [], 0
    for name, dims, what in mkmodel.tensors(s, n_vocab):
        row, rows = dims[0], dims[1] if what == "w" else 0
        size = row * rows * 2 if rows else row * 4
        places.append((name, row, rows, off, size))
        off += mkmodel.align(size)
    base = len(data) - off
    out = {}
    for name, row, rows, off, size in places:
        raw = data[base + off:base + off + size]
        if not rows:
            v = np.frombuffer(raw, "<f4")
        elif kind == "f16":
            v = np.frombuffer(raw, "<f2").reshape(rows, row)
        else:
            v = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
            v = v.reshape(rows, row)
        out[name] = v.astype(np.float64)
    return out


def turned(w, head):
    """Converts the order of rotated pairs from GGUF's to transformers'."""
    rows, cols = w.shape
    return (w.reshape(rows // head, head // 2, 2, cols).swapaxes(1, 2)
            .reshape(rows, cols))


def reference(s, w, n_vocab, ids):
    name = "Qwen3" if s["arch"] == "qwen3" else "Llama"
    conf = getattr(transformers, name + "Config")(
        vocab_size=n_vocab, hidden_size=s["embd"],
        intermediate_size=s["ff"], num_hidden_layers=s["layers"],
        num_attention_heads=s["heads"], num_key_value_heads=s["kv"],
        head_dim=s["head"], rms_norm_eps=s["eps"],
        rope_parameters={"rope_type": "default", "rope_theta": s["base"]},
        rope_theta=s["base"], max_position_embeddings=s["ctx"],
        tie_word_embeddings=s["tied"], attention_bias=False)
    model = getattr(transformers, name + "ForCausalLM")(conf).double().eval()
    layer = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj",
             "attn_q_norm": "self_attn.q_norm",
             "attn_k_norm": "self_attn.k_norm",
             "ffn_norm": "post_attention_layernorm",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj"}
    state = {"model.embed_tokens.weight": w["token_embd.weight"],
             "model.norm.weight": w["output_norm.weight"],
             "lm_head.weight": w.get("output.weight",
                                     w["token_embd.weight"])}
    for key, v in w.items():
        if key.startswith("blk."):
            _, i, what, _ = key.split(".")
            if s["arch"] == "llama" and what in ("attn_q", "attn_k"):
                v = turned(v, s["head"])
            state[f"model.layers.{i}.{layer[what]}.weight"] = v
    model.load_state_dict({k: torch.from_numpy(np.ascontiguousarray(v))
                           for k, v in state.items()}, strict=True)
    # transformers computes the rotary frequencies in float32
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("folder", type=Path)
    p.add_argument("--device", default="cuda")
    p.add_argument("--models", type=int, default=8)
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args()
    rng = random.Random(args.seed)
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for i in range(args.models):
            s, kind = shape(rng), rng.choice(("f16", "bf16"))
            path = Path(tmp) / "model.gguf"
            mkmodel.write(path, s, "random", {"w": kind, "e": kind},
                          ROOT / "models" / "demo.gguf")
            n_vocab = mkmodel.tokenizer(ROOT / "models" / "demo.gguf", 0)[1]
            ids = [rng.randrange(n_vocab)
                   for _ in range(rng.choice((1, 17, 70, 300)))]
            want = reference(s, weights(path, s, kind, n_vocab), n_vocab, ids)
            got = subprocess.run(
                [args.folder / "llm", "logits", path, "--all", "--ctx",
                 "512", "--device", args.device],
                input=" ".join(map(str, ids)).encode(), check=True,
                stdout=subprocess.PIPE).stdout
            got = np.frombuffer(got, "<f4").reshape(want.shape)
            off = np.sqrt(np.mean((got - want) ** 2)) / want.std()
            ok = off <= BOUND[kind]
            bad += not ok
            print(f"{'ok' if ok else 'NOT OK'} {off:.6f} of the deviation: "
                  f"{s['arch']} {kind}, {len(ids)} tokens, {s}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
