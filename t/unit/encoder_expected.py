#!/usr/bin/env python3
"""Writes encoder_expected.h: tiny encoders and their final states.

An independent implementation: numpy in float64, from the papers and Hugging
Face transformers' definitions.  Weights are numbers of a hash, which
t/unit/encoders.c makes, too.  Run it after changing a model here:

    python3 t/unit/encoder_expected.py > t/unit/encoder_expected.h
"""

import math

import numpy as np

EMBD, FF, HEADS, LAYERS, VOCAB, CTX = 24, 40, 6, 3, 20, 32
HEAD = EMBD // HEADS
IDS = [(i * 7 + 3) % VOCAB for i in range(13)]
EPS = 1e-5


def numbers(seed, n):
    z = np.uint64(seed) * np.uint64(1 << 32) + np.arange(1, n + 1,
                                                         dtype=np.uint64)
    z = z * np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    z = z ^ z >> np.uint64(31)

    return (z >> np.uint64(40)).astype(np.float32) / np.float32(8388608) - 1


class Model:
    def __init__(self, name, arch, **fields):
        self.name, self.arch, self.fields, self.tensors = name, arch, {}, {}
        self.fields = {"block_count": LAYERS, "context_length": CTX,
                       "embedding_length": EMBD, "feed_forward_length": FF,
                       "attention.head_count": HEADS}
        self.fields.update(fields)

    def tensor(self, name, *shape, scale=0.5, plus=0.0):
        """rows first, as numpy has them"""
        seed = len(self.tensors) + 1
        x = numbers(seed, math.prod(shape))
        x = np.float32(plus) + np.float32(scale) * x
        self.tensors[name] = (shape, scale, plus)

        return x.astype(np.float64).reshape(shape)

    def norm(self, name, bias=True):
        w = self.tensor(name + ".weight", EMBD, scale=0.25, plus=1.0)

        return w, self.tensor(name + ".bias", EMBD) if bias else 0

    def linear(self, name, rows, cols, bias=False):
        w = self.tensor(name + ".weight", rows, cols)
        b = self.tensor(name + ".bias", rows) if bias else 0

        return lambda x: x @ w.T + b


def layer_norm(x, p):
    x = x - x.mean(-1, keepdims=True)

    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * p[0] + p[1]


def rms_norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPS) * w


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi)
                                * (x + 0.044715 * x ** 3)))


def silu(x):
    return x / (1 + np.exp(-x))


def turn(x, base, neighbours):
    dim = x.shape[-1]
    angle = (np.arange(len(x))[:, None]
             * base ** (-np.arange(0, dim, 2) / dim))
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    y = np.empty_like(x)
    a, b = ((slice(0, None, 2), slice(1, None, 2)) if neighbours
            else (slice(0, dim // 2), slice(dim // 2, None)))
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., a] * sin + x[..., b] * cos

    return y


def mixture(m, b, x, experts, used):
    """Networks without gates; weights are the softmax of all, not scaled."""
    router = m.tensor(b + "ffn_gate_inp.weight", experts, EMBD)
    up = m.tensor(b + "ffn_up_exps.weight", experts, FF, EMBD)
    down = m.tensor(b + "ffn_down_exps.weight", experts, EMBD, FF)
    y = np.zeros_like(x)

    for r, row in enumerate(x):
        p = np.exp(router @ row)
        p /= p.sum()

        for e in np.argsort(-p)[:used]:
            y[r] += p[e] * (down[e] @ gelu(up[e] @ row))

    return y


def attend(q, k, v, base=0, neighbours=False, window=0, slopes=None,
           norms=None, kv_heads=HEADS):
    n = len(q)
    q = q.reshape(n, HEADS, -1)
    k, v = k.reshape(n, kv_heads, -1), v.reshape(n, kv_heads, -1)

    if norms:
        q, k = rms_norm(q, norms[0]), rms_norm(k, norms[1])

    if base:
        q, k = turn(q, base, neighbours), turn(k, base, neighbours)

    k, v = (np.repeat(t, HEADS // kv_heads, 1) for t in (k, v))
    far = abs(np.arange(n)[:, None] - np.arange(n))
    s = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[-1])

    if slopes is not None:
        s = s - slopes[:, None, None] * far

    if window:
        s = np.where(far <= window // 2, s, -np.inf)

    s = np.exp(s - s.max(-1, keepdims=True))
    s /= s.sum(-1, keepdims=True)

    return np.einsum("hij,jhd->ihd", s, v).reshape(n, -1)


def bert(name, arch, pos=False, base=0, gated=None, slopes=None, code=False,
         fused=False, **fields):
    """code: Jina's second for code, whose "up" has its gate behind it; fused:
    before it.  Fields that say experts are of every second layer."""
    m = Model(name, arch, **{"attention.layer_norm_epsilon": EPS}, **fields)
    x = m.tensor("token_embd.weight", VOCAB, EMBD, scale=1.0)[IDS]
    x = x + m.tensor("token_types.weight", 2, EMBD)[0]

    if pos:
        x = x + m.tensor("position_embd.weight", CTX, EMBD)[:len(IDS)]

    if base:
        m.fields["rope.freq_base"] = float(base)

    x = layer_norm(x, m.norm("token_embd_norm"))

    for i in range(LAYERS):
        b = f"blk.{i}."
        q, k, v = (m.linear(b + "attn_" + c, EMBD, EMBD, True)(x)
                   for c in "qkv")

        if code:
            q, k = (layer_norm(y, m.norm(b + f"attn_{c}_norm"))
                    for y, c in ((q, "q"), (k, "k")))

        y = attend(q, k, v, base, slopes=slopes)
        y = x + m.linear(b + "attn_output", EMBD, EMBD, True)(y)
        y = layer_norm(y, m.norm(b + "attn_output_norm"))
        x = layer_norm(y + x, m.norm(b + "attn_norm_2")) if code else y

        if i % 2 and "expert_count" in fields:
            y = mixture(m, b, x, fields["expert_count"],
                        fields["expert_used_count"])
            x = layer_norm(x + y, m.norm(b + "layer_output_norm"))
            continue

        if code:
            up, gate = np.split(m.linear(b + "ffn_up", 2 * FF, EMBD)(x), 2, 1)
            y = up * gelu(gate)
        elif fused:
            gate, up = np.split(m.linear(b + "ffn_up", 2 * FF, EMBD)(x), 2, 1)
            y = gated(gate) * up
        elif gated:
            y = gated(m.linear(b + "ffn_gate", FF, EMBD)(x))
            y = y * m.linear(b + "ffn_up", FF, EMBD)(x)
        else:
            y = gelu(m.linear(b + "ffn_up", FF, EMBD, True)(x))

        x = x + m.linear(b + "ffn_down", EMBD, FF, True)(y)
        x = layer_norm(x, m.norm(b + "layer_output_norm"))

    return m, x


def modern_bert(name="ModernBERT", **fields):
    m = Model(name, "modern-bert", **fields, **{
        "attention.layer_norm_rms_epsilon": EPS, "rope.freq_base": 160000.0,
        "rope.freq_base_swa": 10000.0, "attention.sliding_window": 6,
        "attention.sliding_window_pattern": 2})
    x = m.tensor("token_embd.weight", VOCAB, EMBD, scale=1.0)[IDS]
    x = layer_norm(x, m.norm("token_embd_norm", False))

    for i in range(LAYERS):
        b = f"blk.{i}."
        h = layer_norm(x, m.norm(b + "attn_norm", False)) if i else x
        q, k, v = np.split(m.linear(b + "attn_qkv", 3 * EMBD, EMBD)(h), 3, 1)
        y = (attend(q, k, v, 10000.0, window=6) if i % 2
             else attend(q, k, v, 160000.0))
        x = x + m.linear(b + "attn_output", EMBD, EMBD)(y)
        h = layer_norm(x, m.norm(b + "ffn_norm", False))
        gate, up = np.split(m.linear(b + "ffn_up", 2 * FF, EMBD)(h), 2, 1)
        x = x + m.linear(b + "ffn_down", EMBD, FF)(gelu(gate) * up)

    return m, layer_norm(x, m.norm("output_norm", False))


def neo_bert():
    m = Model("NeoBERT", "neo-bert", **{
        "attention.layer_norm_rms_epsilon": EPS})
    x = m.tensor("token_embd.weight", VOCAB, EMBD, scale=1.0)[IDS]

    for i in range(LAYERS):
        b = f"blk.{i}."
        h = rms_norm(x, m.norm(b + "attn_norm", False)[0])
        q, k, v = np.split(m.linear(b + "attn_qkv", 3 * EMBD, EMBD)(h), 3, 1)
        y = attend(q, k, v, 10000.0, True)
        x = x + m.linear(b + "attn_output", EMBD, EMBD)(y)
        h = rms_norm(x, m.norm(b + "ffn_norm", False)[0])
        gate, up = np.split(m.linear(b + "ffn_up", 2 * FF, EMBD)(h), 2, 1)
        x = x + m.linear(b + "ffn_down", EMBD, FF)(silu(gate) * up)

    return m, rms_norm(x, m.norm("enc.output_norm", False)[0])


def euro_bert(name="EuroBERT", act=silu, said=None):
    m = Model(name, "eurobert", **{
        "attention.layer_norm_rms_epsilon": EPS, "rope.freq_base": 250000.0})

    if said:
        m.fields["hidden_activation"] = said

    x = m.tensor("token_embd.weight", VOCAB, EMBD, scale=1.0)[IDS]

    for i in range(LAYERS):
        b = f"blk.{i}."
        h = rms_norm(x, m.norm(b + "attn_norm", False)[0])
        q, k, v = (m.linear(b + "attn_" + c, EMBD, EMBD)(h) for c in "qkv")
        y = attend(q, k, v, 250000.0)
        x = x + m.linear(b + "attn_output", EMBD, EMBD)(y)
        h = rms_norm(x, m.norm(b + "ffn_norm", False)[0])
        y = act(m.linear(b + "ffn_gate", FF, EMBD)(h))
        y = y * m.linear(b + "ffn_up", FF, EMBD)(h)
        x = x + m.linear(b + "ffn_down", EMBD, FF)(y)

    return m, rms_norm(x, m.norm("output_norm", False)[0])


def gemma_embedding(name="EmbeddingGemma", **fields):
    kv = 2
    m = Model(name, "gemma-embedding", **fields, **{
        "attention.layer_norm_rms_epsilon": EPS, "rope.freq_base": 1000000.0,
        "attention.sliding_window": 16, "attention.head_count_kv": kv,
        "attention.key_length": 8, "attention.value_length": 8})
    x = m.tensor("token_embd.weight", VOCAB, EMBD, scale=1.0)[IDS]
    x = x * math.sqrt(EMBD)

    for i in range(LAYERS):
        b = f"blk.{i}."
        h = rms_norm(x, m.norm(b + "attn_norm", False)[0])
        q = m.linear(b + "attn_q", HEADS * 8, EMBD)(h)
        k = m.linear(b + "attn_k", kv * 8, EMBD)(h)
        v = m.linear(b + "attn_v", kv * 8, EMBD)(h)
        norms = [m.tensor(b + f"attn_{c}_norm.weight", 8, scale=0.25,
                          plus=1.0) for c in "qk"]
        last = i == LAYERS - 1
        y = attend(q, k, v, 1000000.0 if last else 10000.0, norms=norms,
                   window=0 if last else 16, kv_heads=kv)
        y = m.linear(b + "attn_output", EMBD, HEADS * 8)(y)
        x = x + rms_norm(y, m.norm(b + "post_attention_norm", False)[0])
        h = rms_norm(x, m.norm(b + "ffn_norm", False)[0])
        y = gelu_tanh(m.linear(b + "ffn_gate", FF, EMBD)(h))
        y = y * m.linear(b + "ffn_up", FF, EMBD)(h)
        y = m.linear(b + "ffn_down", EMBD, FF)(y)
        x = x + rms_norm(y, m.norm(b + "post_ffw_norm", False)[0])

    return m, rms_norm(x, m.norm("output_norm", False)[0])


def ranker():
    """ModernBERT's head, on the mean: GELU and a norm before its output."""
    m, x = modern_bert("ModernBERT, a ranker", pooling_type=4)
    h = gelu(m.linear("cls", EMBD, EMBD)(x.mean(0)))
    h = layer_norm(h, m.norm("cls.norm", False))
    m.score = 1 / (1 + np.exp(-m.linear("cls.output", 1, EMBD, True)(h)[0]))

    return m, x


def dense():
    """EmbeddingGemma with two matrices more, for a sequence's mean."""
    m, x = gemma_embedding("EmbeddingGemma, two matrices more",
                           dense_2_feat_in=EMBD, dense_2_feat_out=FF,
                           dense_3_feat_in=FF, dense_3_feat_out=EMBD)
    m.vector = m.linear("dense_2", FF, EMBD)(x.mean(0))
    m.vector = m.linear("dense_3", EMBD, FF)(m.vector)

    return m, x


def slopes(bias):
    """Six heads: four slopes of four heads, two of those of eight."""
    return np.array([2 ** (-bias * (i + 1) / 4) for i in range(4)]
                    + [2 ** (-bias * (2 * i + 1) / 8) for i in range(2)])


SLOPES = slopes(8)

MODELS = [
    bert("BERT", "bert", pos=True),
    bert("Nomic's", "nomic-bert", base=1000.0, gated=silu),
    bert("Jina's second", "jina-bert-v2", gated=gelu, slopes=SLOPES),
    bert("Jina's third", "jina-bert-v3", base=20000.0),
    modern_bert(), neo_bert(), gemma_embedding(),
    bert("Jina's second for code", "jina-bert-v2", slopes=SLOPES, code=True),
    euro_bert(),
    bert("Jina's second, one matrix", "jina-bert-v2", gated=gelu, fused=True,
         slopes=slopes(4), **{"attention.max_alibi_bias": 4.0}),
    bert("Jina's second, no gate", "jina-bert-v2", slopes=SLOPES),
    bert("Nomic's mixture", "nomic-bert-moe", base=1000.0, expert_count=5,
         expert_used_count=2, moe_every_n_layers=2),
    euro_bert("EuroBERT, another activation", gelu_tanh, "gelu_new"),
    dense(), ranker()
]


def field(arch, name, value):
    kind, whole, real, text = "ENC_U32", "0", "0", "NULL"

    if isinstance(value, float):
        kind, real = "ENC_F32", f"{value!r}f"
    elif isinstance(value, str):
        kind, text = "ENC_STR", f'"{value}"'
    else:
        whole = str(value)

    return f'    {{ "{arch}.{name}", {kind}, {whole}, {real}, {text} }},'


def numbers_of(name, values):
    flat = [f"{v:.6g}f" if "." in f"{v:.6g}" or "e" in f"{v:.6g}"
            else f"{v:.6g}.0f" for v in values]
    print(f"\nstatic const float  {name}[{len(flat)}] = {{")

    for at in range(0, len(flat), 6):
        print("    " + ", ".join(flat[at:at + 6]) + ",")

    print("};")


def main():
    print("/* made by encoder_expected.py; see there */\n")
    print(f"#define ENC_EMBD   {EMBD}\n#define ENC_VOCAB  {VOCAB}\n"
          f"#define ENC_IDS    {len(IDS)}\n")
    ids = ", ".join(map(str, IDS))
    print(f"static const int32_t  enc_ids[ENC_IDS] = {{\n    {ids}\n}};")

    for i, (m, states) in enumerate(MODELS):
        print(f"\nstatic const enc_field_t  enc_fields_{i}[] = {{")

        for name, value in m.fields.items():
            print(field(m.arch, name, value))

        print("    { NULL, ENC_U32, 0, 0, NULL }\n};")
        print(f"\nstatic const enc_tensor_t  enc_tensors_{i}[] = {{")

        for name, (shape, scale, plus) in m.tensors.items():
            ne = ", ".join(map(str, (list(shape[::-1]) + [0, 0])[:3]))
            print(f'    {{ "{name}", {{ {ne} }}, {scale}f, {plus}f }},')

        print("    { NULL, { 0, 0, 0 }, 0, 0 }\n};")
        numbers_of(f"enc_states_{i}", states.reshape(-1))

        if hasattr(m, "vector"):
            numbers_of(f"enc_vector_{i}", m.vector)

    print("\nstatic const enc_model_t  enc_models[] = {")

    for i, (m, _) in enumerate(MODELS):
        print(f'    {{ "{m.name}", "{m.arch}", enc_fields_{i}, '
              f'enc_tensors_{i},\n      enc_states_{i}, '
              + (f"enc_vector_{i}" if hasattr(m, "vector") else "NULL")
              + f", {getattr(m, 'score', 0):.9g} }},")

    print("};")


main()
