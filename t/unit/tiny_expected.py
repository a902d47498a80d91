#!/usr/bin/env python3
"""Writes tiny_expected.h: tiny models and what their logits are.

An independent implementation: numpy in float64, blocks de-quantised by the
gguf package, RoPE and its scalings written down from the papers and from
Hugging Face transformers' definitions.  Run it after changing a model here:

    python3 t/unit/tiny_expected.py > t/unit/tiny_expected.h
"""

import math
import struct

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.quants import GGML_QUANT_SIZES, dequantize

VOCAB, CTX, EPS, BASE = 37, 256, 1e-5, 10000.0
IDS = [(i * 7 + 3) % VOCAB for i in range(9)]

SCALES = {                              # offset: value of float16 fields
    T.Q8_0: {0: 2**-10}, T.Q4_0: {0: 2**-6}, T.Q4_1: {0: 2**-6, 2: -2**-3},
    T.Q5_0: {0: 2**-7}, T.Q5_1: {0: 2**-7, 2: -2**-3},
    T.Q4_K: {0: 2**-11, 2: 2**-8}, T.Q5_K: {0: 2**-12, 2: 2**-8},
    T.Q6_K: {208: 2**-13},
}

SMALL = dict(type=T.F32, layers=2, embd=32, heads=4, kv_heads=2, head_k=8,
             head_v=8, ff=64, tied=0, qk_norm=0, qkv_bias=0, all_bias=0,
             freqs=0)
QWEN3 = dict(SMALL, arch="qwen3", qk_norm=1)
LLAMA = dict(SMALL, arch="llama")
QWEN2 = dict(SMALL, arch="qwen2", qkv_bias=1)
YARN = dict(QWEN3, scaling="yarn", factor=4.0, orig_ctx=64, head_k=16)
ODD = dict(LLAMA, layers=1, embd=50, heads=5, kv_heads=1, head_k=10,
           head_v=10, ff=70)
BLOCKS = dict(QWEN3, layers=1, embd=96, heads=3, kv_heads=1, head_k=32,
              head_v=32, ff=160)
WIDE = dict(QWEN3, layers=1, embd=256, heads=4, kv_heads=2, head_k=64,
            head_v=64, ff=256)

GEMMA3 = dict(SMALL, arch="gemma3", layers=6, head_k=12, head_v=12,
              qk_norm=1, post=1, window=4, scaling="linear", factor=4.0,
              tied=1)
GEMMA2 = dict(SMALL, arch="gemma2", post=1, window=3, cap=2.0,
              final_cap=1.5, tied=1)
COHERE2 = dict(SMALL, arch="cohere2", layers=4, layernorm=1, parallel=1,
               window=4, logit_scale=0.25, tied=1)
GPT2 = dict(SMALL, arch="gpt2", kv_heads=4, layernorm=2, fused=1, no_gate=1,
            all_bias=1, pos=1)
OLMO2 = dict(SMALL, arch="olmo2", qk_norm=2, post=1, no_pre=1)
EXAONE4 = dict(SMALL, arch="exaone4", layers=4, qk_norm=1, post=1, no_pre=1,
               window=4)
PHI3 = dict(SMALL, arch="phi3", fused=1, window=5)
LONGROPE = dict(PHI3, window=0, factors=1, orig_ctx=64, attn_factor=1.19)
GRANITE = dict(SMALL, arch="granite", embd_scale=3.0, residual_scale=0.4,
               logit_scale=2.0, attn_scale=0.1)

QWEN3MOE = dict(SMALL, arch="qwen3moe", qk_norm=1, experts=6, used=2,
                ff_expert=24)
QWEN2MOE = dict(SMALL, arch="qwen2moe", qkv_bias=1, experts=5, used=3,
                ff_expert=24, ff_shared=40, shared_switch=1)
GLM4 = dict(SMALL, arch="glm4", post=1, qkv_bias=1, rot=4)
GPT_OSS = dict(SMALL, arch="gpt-oss", layers=3, experts=4, used=2,
               ff_expert=32, expert_bias=1, sinks=1, window=4, late_norm=1)
GLM4MOE = dict(SMALL, arch="glm4moe", late_norm=1, experts=8, used=2,
               ff_expert=24, ff_shared=24, dense=1, gating=2, groups=4,
               groups_used=2, weights_scale=1.5, probs_bias=1)

# head_k and head_v are those of the file: latent and rotated part, latent
LITE = dict(SMALL, arch="deepseek2", kv_heads=1, head_k=30, head_v=24,
            latent=24, plain=10, rot=6, head_out=12, experts=6, used=2,
            ff_expert=24, ff_shared=48, dense=1, weights_scale=1.5)
# YaRN whose factor is on the scores
SCORED = dict(scaling="yarn", factor=40.0, orig_ctx=64, yarn_log=0.0707)
DEEPSEEK2 = dict(LITE, q_rank=20, experts=8, groups=4, groups_used=2,
                 probs_bias=1)

LLAMA4 = dict(SMALL, arch="llama4", layers=4, window=4, experts=4, used=1,
              ff_expert=24, ff_shared=24)
FALCON = dict(SMALL, arch="falcon", layernorm=2, parallel=1, apart=1, fused=1,
              no_gate=1)
STABLELM = dict(SMALL, arch="stablelm", layernorm=2, qk_norm=3, parallel=1,
                rot=4)

# of the same computation as another, but for the pairs that turn
NORM_ROPE = ("llama", "granite", "granitehybrid", "cohere2", "command-r",
             "deepseek2", "mistral4", "plm", "deepseek", "internlm2",
             "chatglm", "baichuan", "xverse", "minicpm", "bailingmoe",
             "maincoder", "glm4", "mistral3", "olmo", "llama4")
NORMALIZED = ("qwen3moe", "qwen3vlmoe", "gpt-oss", "mellum", "dbrx",
              "qwen3next")

GPTNEOX = dict(GPT2, arch="gptneox", pos=0, rot=4, parallel=1, two_norms=1)
MINICPM = dict(SMALL, arch="minicpm")
MINICPM3 = dict(SMALL, arch="minicpm3", kv_b=1, q_rank=20, latent=24,
                plain=10, rot=6, head_out=8, head_k=16, kv_heads=4)
PLM = dict(SMALL, arch="plm", kv_b=1, latent=24, plain=10, rot=6,
           head_out=12, head_k=16, head_v=12, kv_heads=4, no_gate=1)
DOTS1 = dict(SMALL, arch="dots1", qk_norm=1, experts=6, used=2, ff_expert=24,
             ff_shared=48, dense=1, probs_bias=1, weights_scale=2.5)
EXAONE_MOE = dict(DOTS1, arch="exaone-moe", layers=4, window=4, gating=2)
OLMO = dict(SMALL, arch="olmo", layernorm=1, bare=1)
DBRX = dict(SMALL, arch="dbrx", layernorm=1, fused=1, experts=6, used=3,
            ff_expert=24, bound=0.6, ffn_norm="attn_output_norm.weight")
AFMOE = dict(DOTS1, arch="afmoe", layers=4, window=4, gating=2, post=1,
             attn_gate=1)
QWEN35 = dict(SMALL, arch="qwen35", qk_norm=1, late_norm=1, rot=4, gated=1,
              interval=2, conv=3, ssm_inner=20, ssm_heads=4, ssm_groups=2,
              ssm_state=6)
QWEN3NEXT = dict(QWEN35, arch="qwen3next", experts=6, used=2, ff_expert=24,
                 ff_shared=40, shared_switch=1)
LFM2 = dict(SMALL, arch="lfm2", qk_norm=1, interval=2, shortconv=3, tied=1)
GRANITEHYBRID = dict(SMALL, arch="granitehybrid", interval=2, conv=4,
                     ssm_inner=24, ssm_heads=4, ssm_groups=2, ssm_state=10,
                     residual_scale=0.4, logit_scale=2.0)

NEMOTRON_H = dict(SMALL, arch="nemotron_h", layers=4, kinds="mfam", conv=4,
                  ssm_inner=24, ssm_heads=4, ssm_groups=2, ssm_state=10,
                  no_gate=1)

MODELS = {
    "llama": LLAMA,
    "llama, tied head": dict(LLAMA, tied=1),
    "llama, every bias": dict(LLAMA, all_bias=1),
    "llama, rope_freqs": dict(LLAMA, freqs=1),
    "llama, part of a head turns": dict(LLAMA, rot=4),
    "llama, one head of keys, wide values": dict(LLAMA, kv_heads=1,
                                                 head_v=24),
    "llama, its own attention scale": dict(LLAMA, attn_scale=0.25),
    "llama, linear scaling": dict(LLAMA, scaling="linear", factor=4.0),
    "llama, scale_linear": dict(LLAMA, scale_linear=8.0),
    "llama, scaling none": dict(LLAMA, scaling="none", factor=4.0),
    "qwen2": QWEN2,
    "qwen2, heads of 6": dict(QWEN2, head_k=6, head_v=6, heads=3,
                              kv_heads=3),
    "qwen2, part of a head turns": dict(QWEN2, rot=4),
    "qwen2, heads of 100": dict(QWEN2, head_k=100, head_v=100, heads=2,
                                kv_heads=1),
    "qwen3": QWEN3,
    "qwen3, tied head": dict(QWEN3, tied=1),
    "qwen3, YaRN": YARN,
    "qwen3, YaRN from the trained context": dict(YARN, orig_ctx=0),
    "qwen3, YaRN with its betas": dict(YARN, beta_fast=8.0, beta_slow=2.0),
    "qwen3, YaRN with attn_factor": dict(YARN, attn_factor=0.5),
    "qwen3, YaRN with transformers' attention_factor":
        dict(YARN, yarn_attn_factor=1.25),
    "qwen3, YaRN with half of extrapolation": dict(YARN, ext_factor=0.5),
    "qwen3, YaRN with extrapolation as usual": dict(YARN, ext_factor=-1.0),
    "qwen3, YaRN of many turns": dict(YARN, orig_ctx=0, beta_fast=8.0),
    "gemma2": GEMMA2,
    "gemma2, of the first files":
        dict(SMALL, arch="gemma2", post=1, tied=1, attn_scale=9.0),
    "gemma3": GEMMA3,
    "cohere2": COHERE2,
    "command-r, norms of each head":
        dict(SMALL, arch="command-r", layernorm=1, parallel=1, qk_norm=3,
             logit_scale=0.25, tied=1),
    "gpt2": GPT2,
    "olmo2": OLMO2,
    "exaone4": EXAONE4,
    "exaone4, no windows": dict(EXAONE4, window=0),
    "olmo": OLMO,
    "olmo, bounded": dict(OLMO, bound=0.5, tied=1, kv_heads=1),
    "phi3": PHI3,
    "phi3, long RoPE": LONGROPE,
    "phi3, long RoPE within its context": dict(LONGROPE, orig_ctx=CTX),
    "phi3, long RoPE by name": dict(LONGROPE, scaling="longrope"),
    "granite": GRANITE,
    "falcon, the large ones": FALCON,
    "stablelm": STABLELM,
    "stablelm, not to be believed": dict(STABLELM, parallel=0, said=1),
    "qwen3moe": QWEN3MOE,
    "qwen2moe": QWEN2MOE,
    "qwen2moe, weights of the chosen": dict(QWEN2MOE, gating=3),
    "mistral3, sharper queries without YaRN":
        dict(SMALL, arch="mistral3", temp_scale=0.1, orig_ctx=4),
    "mistral3, sharper queries beyond training":
        dict(SMALL, arch="mistral3", temp_scale=0.1),
    "gpt-oss": GPT_OSS,
    "gpt-oss, YaRN": dict(GPT_OSS, head_k=16, scaling="yarn", factor=32.0,
                          orig_ctx=64),
    "gpt-oss, YaRN as in the published ones":
        dict(GPT_OSS, head_k=16, scaling="yarn", factor=32.0, orig_ctx=4096),
    "glm4": GLM4,
    "glm4, positions of images": dict(GLM4, sections=1),
    "glm4moe": GLM4MOE,
    "glm4moe, scores not said": dict(GLM4MOE, gating=0),
    "llama4": LLAMA4,
    "internlm2": dict(SMALL, arch="internlm2"),
    "chatglm": dict(SMALL, arch="chatglm", fused=1, qkv_bias=1, rot=4),
    "baichuan": dict(SMALL, arch="baichuan"),
    "xverse": dict(SMALL, arch="xverse"),
    "exaone": dict(SMALL, arch="exaone", freqs=1),
    "gptneox": GPTNEOX,
    "gptneox, one after the other": dict(GPTNEOX, parallel=0, two_norms=0,
                                         sequential=1),
    "orion": dict(SMALL, arch="orion", layernorm=2),
    "minicpm": dict(MINICPM, embd_scale=3.0, residual_scale=0.4,
                    logit_scale=2.0),
    "minicpm, factors not said": MINICPM,
    "minicpm, long RoPE by name": dict(MINICPM, factors=1,
                                       scaling="longrope"),
    "minicpm3": MINICPM3,
    "minicpm3, long RoPE": dict(MINICPM3, factors=1),
    "minicpm3, long RoPE by name": dict(MINICPM3, factors=1,
                                        scaling="longrope"),
    "minicpm3, YaRN": dict(MINICPM3, **SCORED),
    "plm": PLM,
    "plm, YaRN": dict(PLM, **SCORED),
    "qwen2vl": dict(QWEN2, arch="qwen2vl", sections=1),
    "qwen3vl": dict(QWEN3, arch="qwen3vl", sections=1),
    "qwen3vlmoe": dict(QWEN3MOE, arch="qwen3vlmoe", sections=1),
    "deepseek": dict(SMALL, arch="deepseek", experts=6, used=3, ff_expert=24,
                     ff_shared=48, dense=1),
    "dots1": DOTS1,
    "bailingmoe2": dict(DOTS1, arch="bailingmoe2", fused=1, gating=2,
                        experts=8, groups=4, groups_used=2, rot=4),
    "exaone-moe": EXAONE_MOE,
    "dbrx": DBRX,
    "afmoe": AFMOE,
    "afmoe, no windows": dict(AFMOE, window=0, kv_heads=1),
    "bailingmoe": dict(SMALL, arch="bailingmoe", experts=6, used=3,
                       ff_expert=24, ff_shared=24),
    "mellum": dict(QWEN3MOE, arch="mellum", layers=4, window=4,
                   scaling="yarn", factor=4.0, orig_ctx=64, head_k=16),
    "maincoder": dict(QWEN3, arch="maincoder", norm_last=1),
    "pangu-embedded": dict(SMALL, arch="pangu-embedded", all_bias=1,
                           output_bias=1),
    "starcoder": dict(GPT2, arch="starcoder", kv_heads=1),
    "codeshell": dict(GPT2, arch="codeshell", kv_heads=2, pos=0),
    "jais2": dict(GPT2, arch="jais2", kv_heads=2, pos=0, fused=0),
    "glm4moe, positions of images": dict(GLM4MOE, sections=1),
    "mistral4": dict(LITE, arch="mistral4", q_rank=20, temp_scale=0.1,
                     temp_length=4),
    "qwen3moe, scaled weights": dict(QWEN3MOE, scales=1),
    "deepseek2": DEEPSEEK2,
    "deepseek2, scaled weights": dict(DEEPSEEK2, scales=1),
    "deepseek2, lite": LITE,
    "deepseek2, groups by the largest": dict(LITE, groups=3, groups_used=2,
                                             heads=5),
    "deepseek2, older file": dict(LITE, kv_b=1, kv_heads=4, head_k=16,
                                  head_v=12),
    "deepseek2, a window": dict(LITE, window=4),
    "deepseek2, YaRN": dict(LITE, **SCORED),
    "mistral4, YaRN": dict(LITE, arch="mistral4", **SCORED),
    "deepseek2, no experts": dict(LITE, experts=0, used=0, ff_shared=0,
                                  dense=0),
    "qwen35": QWEN35,
    "qwen35, recurrent at the end": dict(QWEN35, layers=3),
    "qwen3next": QWEN3NEXT,
    "qwen3next, older file": dict(QWEN3NEXT, mixed=1),
    "lfm2": LFM2,
    "lfm2, recurrent at the end": dict(LFM2, layers=3),
    "granitehybrid": GRANITEHYBRID,
    "nemotron_h": NEMOTRON_H,
    "llama, odd sizes": ODD,
    **{f"llama, odd sizes {t.name}": dict(ODD, type=t)
       for t in (T.F16, T.BF16)},
    **{f"qwen3, odd blocks {t.name}": dict(BLOCKS, type=t)
       for t in (T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1)},
    **{f"qwen3 {t.name}": dict(WIDE, type=t)
       for t in (T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1,
                 T.Q4_K, T.Q5_K, T.Q6_K)},
}


def stream(name, n):
    x = 2166136261
    for c in name.encode():
        x = (x ^ c) * 16777619 & 0xffffffff
    out = bytearray(n)
    for i in range(n):
        x = (x * 1664525 + 1013904223) & 0xffffffff
        out[i] = x >> 24
    return np.frombuffer(bytes(out), np.uint8)


def tensor(name, kind, *shape):
    n = int(np.prod(shape))
    if kind in SCALES:
        block, size = GGML_QUANT_SIZES[kind]
        data = stream(name, n // block * size).reshape(-1, size).copy()
        for at, v in SCALES[kind].items():
            data[:, at:at + 2] = np.frombuffer(struct.pack("<e", v), np.uint8)
        return dequantize(data, kind).astype(np.float64).reshape(shape)
    v = stream(name, n).view(np.int8).astype(np.float64) / 512
    if "norm" in name or "rope_f" in name or "scale" in name:
        v += 1
    return v.reshape(shape)


def rms(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w


def norm(m, x, vector, name):
    """The model's norm of x, by the tensors that vector(name, n) gives."""
    if m.get("bare"):
        return rms(x - x.mean(-1, keepdims=True), 1)
    w = vector(m.get(name, name + ".weight"), m["embd"])
    if not m.get("layernorm"):
        return rms(x, w)
    x = x - x.mean(-1, keepdims=True)
    y = rms(x, w)
    return y + vector(name + ".bias", m["embd"]) \
        if m["layernorm"] == 2 else y


def windowed(m, layer):
    """Of so many layers the last sees everything."""
    period = {"gemma2": 2, "gemma3": 6, "cohere2": 4, "gpt-oss": 2,
              "exaone-moe": 4, "mellum": 4, "afmoe": 4,
              "llama4": 4, "exaone4": 4}.get(m["arch"])
    return bool(m.get("window")) and (not period
                                      or layer % period != period - 1)


def yarn(m, freq, n):
    """arXiv:2309.00071, section 3.2, as transformers computes it."""
    orig = m.get("orig_ctx") or CTX
    factor = m["factor"]

    def pair(turns):
        return (n * np.log(orig / (turns * 2 * np.pi)) / (2 * np.log(BASE)))

    low, high = pair(m.get("beta_fast", 32.0)), pair(m.get("beta_slow", 1.0))
    if m["arch"] != "gpt-oss" or orig != 4096:      # "truncate": false there
        low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, n - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(n // 2) - low) / (high - low), 0, 1)
    keep = (1 - ramp) * abs(m.get("ext_factor", 1.0))
    mscale = m.get("yarn_attn_factor",
                   1 if m.get("yarn_log") else 0.1 * np.log(factor) + 1)
    return (freq / factor * (1 - keep) + freq * keep,
            mscale * m.get("attn_factor", 1.0))


def angles(m, n, layer):
    """cos and sin of every position and pair, scaled."""
    freq = BASE ** (-np.arange(0, n, 2) / n)
    mscale = 1.0
    if m["freqs"]:
        freq = freq / tensor("rope_freqs.weight", T.F32, n // 2)
    if m.get("factors"):
        kind = "long" if m.get("orig_ctx", CTX) < CTX else "short"
        freq = freq / tensor(f"rope_factors_{kind}.weight", T.F32, n // 2)
        mscale = m.get("attn_factor", 1.0)
    if m["arch"] == "mellum" and windowed(m, layer):
        pass
    elif m.get("scaling") == "yarn":
        freq, mscale = yarn(m, freq, n)
    elif m.get("scaling") != "none" and not (m["arch"] == "gemma3"
                                             and windowed(m, layer)):
        freq = freq / m.get("factor", m.get("scale_linear", 1.0))
    a = np.arange(len(IDS))[:, None] * freq[None]
    return np.cos(a) * mscale, np.sin(a) * mscale


def turn(m, x, layer):
    """x [ids, heads, head_k]"""
    if m.get("pos") or (m["arch"] in ("cohere2", "exaone-moe", "exaone4")
                        and m.get("window") and not windowed(m, layer)):
        return x
    if m["arch"] in ("afmoe", "llama4") and layer % 4 == 3:
        return x
    if m.get("kinds"):
        return x
    n = m.get("rot") or m["head_k"]
    cos, sin = (t[:, None] for t in angles(m, n, layer))
    y = x.copy()
    if m["arch"] in NORM_ROPE and not m.get("sections"):
        a, b = slice(0, n, 2), slice(1, n, 2)
    else:
        a, b = slice(0, n // 2), slice(n // 2, n)
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., a] * sin + x[..., b] * cos
    return y


def latent(m, w, x):
    """Keys and values of each head, as arXiv:2405.04434 writes them."""
    n, rot, plain = m["latent"], m["rot"], m["plain"]
    heads, out = m["heads"], m["head_out"]
    q = x
    if m.get("q_rank"):
        q = rms(w("attn_q_a", x, m["q_rank"]),
                w.vector("attn_q_a_norm.weight", m["q_rank"]))
    q = w("attn_q_b" if m.get("q_rank") else "attn_q", q,
          heads * (plain + rot)).reshape(len(IDS), heads, -1)
    c = w("attn_kv_a_mqa", x, n + rot)
    c, k_rot = rms(c[:, :n], w.vector("attn_kv_a_norm.weight", n)), c[:, n:]
    k_rot = turn(m, k_rot[:, None], w.layer)
    if m.get("kv_b"):
        b = w.stack("attn_kv_b", (heads, plain + out, n))
        k_b, v_b = b[:, :plain], b[:, plain:]
    else:
        k_b = w.stack("attn_k_b", (heads, n, plain)).swapaxes(1, 2)
        v_b = w.stack("attn_v_b", (heads, out, n))
    q = np.concatenate([q[..., :plain], turn(m, q[..., plain:], w.layer)], -1)
    if m.get("temp_scale"):
        far = np.floor(np.arange(len(IDS)) / m["temp_length"])
        q = q * (1 + m["temp_scale"] * np.log(1 + far))[:, None, None]
    scale = (plain + rot) ** -0.5
    if m.get("yarn_log"):
        scale *= (m["yarn_log"] * np.log(m["factor"]) + 1) ** 2
    y = []
    for h in range(heads):
        k = np.concatenate([c @ k_b[h].T, k_rot[:, 0]], -1)
        s = q[:, h] @ k.T * scale
        s[np.triu_indices(len(IDS), 1)] = -np.inf
        if windowed(m, w.layer):
            s[np.tril_indices(len(IDS), -m["window"])] = -np.inf
        p = np.exp(s - s.max(-1, keepdims=True))
        y.append(p / p.sum(-1, keepdims=True) @ (c @ v_b[h].T))
    return w("attn_output", np.concatenate(y, -1), m["embd"])


def attention(m, w, x):
    if m.get("latent"):
        return latent(m, w, x)
    sizes = [m["heads"] * m["head_k"], m["kv_heads"] * m["head_k"],
             m["kv_heads"] * m["head_v"]]
    if m.get("fused"):
        q, k, v = np.split(w("attn_qkv", x, sum(sizes)),
                           np.cumsum(sizes)[:2], -1)
    else:
        q, k, v = (w(*a) for a in zip(
            ("attn_q", "attn_k", "attn_v"), (x, x, x),
            [sizes[0] * (2 if m.get("gated") else 1)] + sizes[1:]))
    if m.get("bound"):
        q, k, v = (np.clip(y, -m["bound"], m["bound"]) for y in (q, k, v))
    if m.get("gated"):
        q, gate = (y.reshape(len(IDS), -1) for y in np.split(
            q.reshape(len(IDS), m["heads"], -1), 2, -1))
    if m["qk_norm"] == 2:
        q = rms(q, w.vector("attn_q_norm.weight", sizes[0]))
        k = rms(k, w.vector("attn_k_norm.weight", sizes[1]))
    q = q.reshape(len(IDS), m["heads"], -1)
    k = k.reshape(len(IDS), m["kv_heads"], -1)
    v = v.reshape(len(IDS), m["kv_heads"], -1)
    if m["qk_norm"] == 1 and not m.get("norm_last"):
        q = rms(q, w.vector("attn_q_norm.weight", m["head_k"]))
        k = rms(k, w.vector("attn_k_norm.weight", m["head_k"]))
    if m["qk_norm"] == 3:
        q, k = (rms(x - x.mean(-1, keepdims=True),
                    w.vector(name, x.shape[1:]))
                for x, name in ((q, "attn_q_norm.weight"),
                                (k, "attn_k_norm.weight")))
    q, k = turn(m, q, w.layer), turn(m, k, w.layer)
    if m["arch"] == "llama4" and windowed(m, w.layer):
        q, k = rms(q, 1), rms(k, 1)
    if m.get("norm_last"):
        q = rms(q, w.vector("attn_q_norm.weight", m["head_k"]))
        k = rms(k, w.vector("attn_k_norm.weight", m["head_k"]))
    if m.get("temp_scale"):
        far = np.floor(np.arange(len(IDS)) / m.get("orig_ctx", CTX))
        q = q * (1 + m["temp_scale"] * np.log(1 + far))[:, None, None]
    scale = m.get("attn_scale") or m["head_k"] ** -0.5
    group = m["heads"] // m["kv_heads"]
    out = []
    for h in range(m["heads"]):
        s = q[:, h] @ k[:, h // group].T * scale
        cap = m.get("cap", 50.0 if m["arch"] == "gemma2" else 0)
        if cap:
            s = cap * np.tanh(s / cap)
        s[np.triu_indices(len(IDS), 1)] = -np.inf
        if m["arch"] == "llama4" and windowed(m, w.layer):
            chunk = np.arange(len(IDS)) // m["window"]
            s[chunk[:, None] != chunk] = -np.inf
        elif windowed(m, w.layer):
            s[np.tril_indices(len(IDS), -m["window"])] = -np.inf
        top = s.max(-1, keepdims=True)
        p = np.exp(s - top)
        total = p.sum(-1, keepdims=True)
        if m.get("sinks"):
            total = total + np.exp(w.vector("attn_sinks.weight",
                                            m["heads"])[h] - top)
        out.append(p / total @ v[:, h // group])
    out = np.concatenate(out, -1)
    if m.get("attn_gate"):
        gate = w("attn_gate", x, out.shape[-1])
    if m.get("gated") or m.get("attn_gate"):
        out = out * sigmoid(gate)
    return w("attn_output", out, m["embd"])


def causal(x, kernel):
    """A convolution of each channel of x [ids, channels] by itself."""
    width = kernel.shape[1]
    padded = np.concatenate([np.zeros((width - 1, x.shape[1])), x])
    return sum(padded[i:i + len(x)] * kernel[:, i] for i in range(width))


def silu(x):
    return x * sigmoid(x)


def delta(m, w, x):
    """A gated delta net, arXiv:2412.06464; heads of V are tiled over K's, but
    Qwen3-Next's lie beside each other."""
    heads, groups, rows = m["ssm_heads"], m["ssm_groups"], m["ssm_state"]
    inner, cols = m["ssm_inner"], m["ssm_inner"] // heads
    channels = inner + 2 * groups * rows
    wide = heads // groups
    if m.get("mixed"):
        parts = w("ssm_in", x, channels + inner).reshape(len(x), groups, -1)
        *qkv, gate = (y.reshape(len(x), -1) for y in np.split(
            parts, np.cumsum([rows, rows, wide * cols]), -1))
        qkv = np.concatenate(qkv, -1)
    else:
        qkv, gate = w("attn_qkv", x, channels), w("attn_gate", x, inner)
    if m["arch"] == "qwen3next":
        both = w("ssm_ba", x, 2 * heads).reshape(len(x), groups, 2, wide)
        beta, alpha = (both[:, :, i].reshape(len(x), -1) for i in (0, 1))
        of = [h // wide for h in range(heads)]
    else:
        alpha, beta = w("ssm_alpha", x, heads), w("ssm_beta", x, heads)
        of = [h % groups for h in range(heads)]
    qkv = silu(causal(qkv, w.vector("ssm_conv1d.weight",
                                    (channels, m["conv"]))))
    q, k, v = np.split(qkv, [groups * rows, 2 * groups * rows], -1)
    q, k = (y.reshape(len(x), groups, rows) for y in (q, k))
    q, k = (y / np.sqrt((y * y).sum(-1, keepdims=True) + 1e-6)
            for y in (q, k))
    v = v.reshape(len(x), heads, cols)
    decay = np.exp(w.vector("ssm_a", heads) * np.logaddexp(
        0, alpha + w.vector("ssm_dt.bias", heads)))
    beta = sigmoid(beta)
    y = np.zeros((len(x), heads, cols))
    for h in range(heads):
        s = np.zeros((rows, cols))
        for t in range(len(x)):
            key = k[t, of[h]]
            s = decay[t, h] * s
            s += np.outer(key, beta[t, h] * (v[t, h] - key @ s))
            y[t, h] = q[t, of[h]] @ s / np.sqrt(rows)
    y = rms(y, w.vector("ssm_norm.weight", cols)).reshape(len(x), -1)
    return w("ssm_out", y * silu(gate), m["embd"])


def mamba2(m, w, x):
    """arXiv:2405.21060"""
    heads, groups, rows = m["ssm_heads"], m["ssm_groups"], m["ssm_state"]
    inner, cols = m["ssm_inner"], m["ssm_inner"] // heads
    channels = inner + 2 * groups * rows
    gate, y, dt = np.split(w("ssm_in", x, inner + channels + heads),
                           [inner, inner + channels], -1)
    y = silu(causal(y, w.vector("ssm_conv1d.weight", (channels, m["conv"])))
             + w.vector("ssm_conv1d.bias", channels))
    v, b, c = np.split(y, [inner, inner + groups * rows], -1)
    v = v.reshape(len(x), heads, cols)
    b, c = (a.reshape(len(x), groups, rows) for a in (b, c))
    dt = np.logaddexp(0, dt + w.vector("ssm_dt.bias", heads))
    a, d = w.vector("ssm_a", heads), w.vector("ssm_d", heads)
    y = np.zeros((len(x), heads, cols))
    for h in range(heads):
        s, g = np.zeros((rows, cols)), h // (heads // groups)
        for t in range(len(x)):
            s = np.exp(a[h] * dt[t, h]) * s
            s += np.outer(b[t, g], dt[t, h] * v[t, h])
            y[t, h] = c[t, g] @ s + d[h] * v[t, h]
    y = y.reshape(len(x), -1) * silu(gate)
    y = rms(y.reshape(len(x), groups, -1),
            w.vector("ssm_norm.weight", (groups, inner // groups)))
    return w("ssm_out", y.reshape(len(x), -1), m["embd"])


def shortconv(m, w, x):
    b, c, v = np.split(w("shortconv.in_proj", x, 3 * m["embd"]), 3, -1)
    y = causal(b * v, w.vector("shortconv.conv.weight",
                               (m["embd"], m["shortconv"])))
    return w("shortconv.out_proj", c * y, m["embd"])


def mix(m, w, x):
    """Attention, or what a layer has instead."""
    if m.get("kinds"):
        return {"a": attention, "m": mamba2,
                "f": feed}[m["kinds"][w.layer]](m, w, x)
    if not m.get("interval") or (w.layer + 1) % m["interval"] == 0:
        return attention(m, w, x)
    return {"qwen35": delta, "qwen3next": delta, "lfm2": shortconv,
            "granitehybrid": mamba2}[m["arch"]](m, w, x)


class Layer:
    def __init__(self, m, i):
        self.m, self.layer, self.prefix = m, i, f"blk.{i}."
        self.biased = set()
        if m["qkv_bias"] or m["all_bias"]:
            self.biased |= {"attn_q", "attn_k", "attn_v", "attn_qkv"}
        if m["all_bias"]:
            self.biased |= {"attn_output", "ffn_gate", "ffn_up", "ffn_down"}

    def vector(self, name, n):
        return tensor(self.prefix + name, T.F32, *np.atleast_1d(n))

    def scale(self, name, *shape):
        """The factor on a weight, or on each of a stack."""
        if not self.m.get("scales"):
            return 1
        return tensor(f"{self.prefix}{name}.scale", T.F32, *shape)

    def stack(self, name, shape):
        w = tensor(f"{self.prefix}{name}.weight", self.m["type"], *shape)
        return w * self.scale(name, shape[0], 1, 1)

    def __call__(self, name, x, n):
        w = tensor(f"{self.prefix}{name}.weight", self.m["type"], n,
                   x.shape[-1])
        y = x @ w.T * self.scale(name, 1)
        return y + self.vector(name + ".bias", n) if name in self.biased else y


def feed(m, w, h):
    if m.get("fused") and not m.get("no_gate"):
        g, u = np.split(w("ffn_up", h, 2 * m["ff"]), 2, -1)
    else:
        u = w("ffn_up", h, m["ff"])
        g = u if m.get("no_gate") else w("ffn_gate", h, m["ff"])
    if m["arch"] in ("plm", "jais2", "nemotron_h"):
        g = np.maximum(g, 0) ** 2
    elif m["arch"] in ("gptneox", "falcon"):
        g = g / 2 * (1 + np.vectorize(math.erf)(g / np.sqrt(2)))
    elif m["arch"] in ("gemma2", "gemma3", "gpt2", "starcoder", "codeshell"):
        g = g / 2 * (1 + np.tanh(np.sqrt(2 / np.pi)
                                 * (g + 0.044715 * g ** 3)))
    else:
        g = g / (1 + np.exp(-g))
    return w("ffn_down", g if m.get("no_gate") else g * u, m["embd"])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def choose(m, w, logits):
    """The experts of a row, and their weights."""
    v3 = (m.get("gating") == 2 or m["arch"] in ("llama4", "glm4moe")
          or (m["arch"] in ("deepseek2", "dots1") and m.get("probs_bias")))
    score = sigmoid(logits) if v3 else softmax(logits)
    p = score.copy()
    if m.get("probs_bias"):
        p += w.vector("exp_probs_b.bias", m["experts"])
    if m.get("groups"):
        groups = p.reshape(m["groups"], -1)
        best = np.argsort(-np.sort(groups)[:, -2 if v3 else -1:].sum(-1))
        groups[best[m["groups_used"]:]] = -np.inf
    chosen = np.argsort(-p)[:m["used"]]
    weights = score[chosen]
    if m["arch"] in NORMALIZED or m.get("gating") == 3:
        weights = weights / weights.sum()
    return chosen, weights * m.get("weights_scale", 1.0)


def mixture(m, w, h):
    n, e, f = m["embd"], m["experts"], m["ff_expert"]
    router = w.vector("ffn_gate_inp.weight", (e, n))
    gate = w.stack("ffn_gate_exps", (e, f, n))
    up = w.stack("ffn_up_exps", (e, f, n))
    down = w.stack("ffn_down_exps", (e, n, f))
    bias = [w.vector(f"ffn_{k}.bias", size) if m.get("expert_bias")
            else np.zeros(size) for k, size in
            (("gate_inp", e), ("gate_exps", (e, f)), ("up_exps", (e, f)),
             ("down_exps", (e, n)))]
    y = np.zeros_like(h)
    for r, x in enumerate(h):
        for i, weight in zip(*choose(m, w, router @ x + bias[0])):
            before, behind = 1, weight
            if m["arch"] == "llama4":
                before, behind = weight, 1
            g = gate[i] @ (x * before) + bias[1][i]
            u = up[i] @ (x * before) + bias[2][i]
            if m["arch"] == "gpt-oss":
                g = np.minimum(g, 7)
                a = g * sigmoid(1.702 * g) * (np.clip(u, -7, 7) + 1)
            else:
                a = g * sigmoid(g) * u
            y[r] += behind * (down[i] @ a + bias[3][i])
    if m.get("ff_shared"):
        g, u = (w(f"ffn_{k}_shexp", h, m["ff_shared"])
                for k in ("gate", "up"))
        s = w("ffn_down_shexp", g * sigmoid(g) * u, n)
        if m.get("shared_switch"):
            s *= sigmoid(h @ w.vector("ffn_gate_inp_shexp.weight", (1, n)).T)
        y += s
    return y


def factors(m):
    """On embeddings, residuals and logits."""
    names = ("embd_scale", "residual_scale", "logit_scale")
    usual = (1.0, 1.0, 1.0)
    if m["arch"].startswith("minicpm"):
        usual = (12.0, 1.4 / np.sqrt(m["layers"]), m["embd"] / 256)
    embd, residual, logit = (m.get(n, u) for n, u in zip(names, usual))
    if m["arch"] in ("granite", "granitehybrid", "minicpm", "minicpm3"):
        logit = 1 / logit
    return embd, residual, logit


def states(m):
    """The final state of every position, which the head reads."""
    embd = tensor("token_embd.weight", m["type"], VOCAB, m["embd"])
    x = embd[IDS] * factors(m)[0]
    if m["arch"].startswith("gemma") or m["arch"] == "afmoe":
        x = x * np.sqrt(m["embd"])
    if m.get("pos"):
        x = x + tensor("position_embd.weight", m["type"], CTX,
                       m["embd"])[:len(IDS)]
    scale = factors(m)[1]
    for i in range(m["layers"]):
        w = Layer(m, i)
        h = x if m.get("no_pre") else norm(m, x, w.vector, "attn_norm")
        if m.get("kinds"):
            x = x + mix(m, w, h)
            continue
        y = mix(m, w, norm(m, x, w.vector, "attn_norm_2")
                if m.get("apart") else h)
        if m.get("post"):
            y = norm(m, y, w.vector, "post_attention_norm")
        if m.get("two_norms"):
            h = norm(m, x, w.vector, "ffn_norm")
        x = x + y * scale
        if not m.get("parallel"):
            h = x if m.get("no_pre") else norm(
                m, x, w.vector, "post_attention_norm" if m.get("late_norm")
                else "ffn_norm")
        if m.get("experts") and i >= m.get("dense", 0):
            y = mixture(m, w, h)
        else:
            y = feed(m, w, h)
        if m.get("post"):
            y = norm(m, y, w.vector, "post_ffw_norm")
        x = x + y * scale
    return norm(m, x, lambda name, n: tensor(name, T.F32, n),
                "token_embd_norm" if m["arch"] == "lfm2" else "output_norm")


def logits(m):
    name = "token_embd.weight" if m["tied"] else "output.weight"
    y = states(m)[-1] @ tensor(name, m["type"], VOCAB, m["embd"]).T
    if m.get("scales"):
        y = y * tensor("output.scale", T.F32, 1)
    if m.get("output_bias"):
        y = y + tensor("output.bias", T.F32, VOCAB)
    y = y * factors(m)[2]
    cap = m.get("final_cap", 30.0 if m["arch"] == "gemma2" else 0)
    return cap * np.tanh(y / cap) if cap else y


def c_value(v):
    if isinstance(v, str):
        return f'"{v}"'
    if isinstance(v, T):
        return f"LLM_TYPE_{v.name}"
    return f"{v}f" if isinstance(v, float) else str(v)


def wrap(items, indent):
    lines, line = [], ""
    for item in items:
        if len(indent) + len(line) + len(item) + 2 > 78:
            lines.append(line.rstrip())
            line = ""
        line += item + ", "
    lines.append(line.rstrip(", "))
    return ("\n" + indent).join(lines)


NAMED = """

static inline const tiny_t *
tiny_named(const char *name)
{
    size_t  i;

    for (i = 0; i < llm_nelems(tinies); i++) {
        if (strcmp(tinies[i].name, name) == 0) {
            return &tinies[i];
        }
    }

    abort();
}
"""


def main():
    print("/*\n * Made by tiny_expected.py: do not edit.\n */\n\n"
          '#include "t/unit/tiny.h"\n\nstatic const tiny_t  tinies[] = {')
    for name, m in MODELS.items():
        fields = [f".{k} = {c_value(v)}" for k, v in m.items() if v]
        want = [f"{v:.8g}f" if "." in f"{v:.8g}" or "e" in f"{v:.8g}"
                else f"{v:.1f}f" for v in logits(m)]
        print(f'    {{ .name = "{name}",\n      {wrap(fields, " " * 6)},\n'
              f"      .logits = {{\n        {wrap(want, ' ' * 8)} }} }},")
    print("};")
    print(NAMED, end="")


if __name__ == "__main__":
    main()
