#!/usr/bin/env python3
"""Writes tower_expected.h: tiny towers and the rows that they give.

An independent implementation: numpy in float64, from Hugging Face
transformers' definitions, patch by patch.  Weights and pixels are numbers of a
hash, which t/unit/tower.c makes, too.  Run it after changing a tower here:

    python3 t/unit/tower_expected.py > t/unit/tower_expected.h
"""

import math

import numpy as np

WIDTH, FF, HEADS, EMBD, MELS = 16, 20, 2, 12, 5
HEAD = WIDTH // HEADS


def hashed(seed, n):
    z = np.uint64(seed) * np.uint64(1 << 32) + np.arange(1, n + 1,
                                                         dtype=np.uint64)
    z = z * np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)

    return z ^ z >> np.uint64(31)


def numbers(seed, n):
    return ((hashed(seed, n) >> np.uint64(40)).astype(np.float32)
            / np.float32(8388608) - 1)


def pixels(seed, w, h):
    return (hashed(seed, w * h * 3) >> np.uint64(56)).astype(
        np.uint8).reshape(h, w, 3)


class Tower:
    def __init__(self, name, projector, patch, layers, eps=1e-6, key="",
                 mean=(0.5, 0.4, 0.3), std=(0.5, 0.25, 0.75), side=0,
                 **fields):
        self.name, self.patch, self.layers, self.eps = name, patch, layers, eps
        self.mean, self.std, self.tensors, self.entries = mean, std, {}, []
        self.rows, self.part = [], "v"
        v = "clip.vision."
        self.fields = {
            "general.architecture": "clip",
            "clip." + key + "projector_type": projector,
            v + "image_size": side or 64, v + "patch_size": patch,
            v + "embedding_length": WIDTH, v + "feed_forward_length": FF,
            v + "block_count": layers, v + "attention.head_count": HEADS,
            v + "projection_dim": EMBD, v + "image_mean": list(mean),
            v + "image_std": list(std),
            v + "attention.layer_norm_epsilon": eps}
        self.fields.update({v + k: x for k, x in fields.items()})

    def tensor(self, name, *shape, scale=0.4, plus=0.0):
        """rows first, as numpy has them"""
        x = numbers(len(self.tensors) + 1, math.prod(shape))
        x = np.float32(plus) + np.float32(scale) * x
        self.tensors[name] = (shape, scale, plus)

        return x.astype(np.float64).reshape(shape)

    def norm(self, name, n=WIDTH, bias=True, eps=None):
        w = self.tensor(name + ".weight", n, scale=0.25, plus=1.0)
        b = self.tensor(name + ".bias", n) if bias else None
        eps = self.eps if eps is None else eps

        def layer(x):
            x = x - x.mean(-1, keepdims=True)
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w + b

        def rms(x):
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w

        return layer if bias else rms

    def linear(self, name, n_out, n_in, bias=True, clamps=False, rows=None):
        w = self.tensor(name + ".weight", *(rows or (n_out, n_in)))
        w = w.reshape(n_out, n_in)
        b = self.tensor(name + ".bias", n_out) if bias else 0
        c = ([self.tensor(f"{name}.{e}", 1, scale=0.1, plus=p)
              for e, p in (("input_min", -1.5), ("input_max", 1.2),
                           ("output_min", -1.1), ("output_max", 1.4))]
             if clamps else [-np.inf, np.inf, -np.inf, np.inf])

        return lambda x: np.clip(np.clip(x, c[0], c[1]) @ w.T + b, c[2], c[3])

    def add(self, seed, w, h, f):
        """an entry, and the rows that f makes of its values [h][w][3]"""
        x = pixels(seed, w, h).astype(np.float64) / 255
        x = (x - np.array(self.mean)) / np.array(self.std)
        self.entries.append((seed, w, h))
        self.rows.append(f(x))


class Ear(Tower):
    """takes spectrograms"""
    def __init__(self, name, projector, layers, positions, key="", mels=MELS,
                 **fields):
        super().__init__(name, projector, 0, layers, eps=1e-5)
        self.part, self.positions, self.mels = "a", positions, mels
        a = "clip.audio."
        self.fields = {
            "general.architecture": "clip",
            "clip." + key + "projector_type": projector,
            "clip.has_vision_encoder": False, "clip.has_audio_encoder": True,
            a + "num_mel_bins": mels, a + "embedding_length": WIDTH,
            a + "feed_forward_length": FF, a + "block_count": layers,
            a + "attention.head_count": HEADS, a + "projection_dim": EMBD,
            a + "attention.layer_norm_epsilon": 1e-5}
        self.fields.update({a + k: x for k, x in fields.items()})

    def hear(self, seed, h, own, f):
        """an entry of h frames, of which some have rows of their own"""
        x = numbers(seed, self.mels * h).astype(np.float64).reshape(-1, h)
        self.entries.append((seed, h, own))
        self.rows.append(f(x, own))


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi)
                                * (x + 0.044715 * x ** 3)))


def gelu_quick(x):
    return x / (1 + np.exp(-1.702 * x))


def silu(x):
    return x / (1 + np.exp(-x))


def patches(x, p):
    """[rows][columns][channel, y, x]"""
    h, w = x.shape[0] // p, x.shape[1] // p

    return x.reshape(h, p, w, p, 3).transpose(0, 2, 4, 1, 3).reshape(h, w, -1)


def turn(x, angle, pairs):
    """x [n][heads][dim]; angle [n][pairs]; pairs: indices of both"""
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    y = x.copy()
    y[..., pairs[0]] = x[..., pairs[0]] * c - x[..., pairs[1]] * s
    y[..., pairs[1]] = x[..., pairs[0]] * s + x[..., pairs[1]] * c

    return y


def angles(h, w, base, every_second=False, x_first=False):
    f = base ** (-np.arange(0, HEAD, 2) / HEAD)
    fa, fb = ((f[::2], f[1::2]) if every_second
              else (base ** (-np.arange(0, HEAD // 2, 2) / (HEAD // 2)),) * 2)
    y, x = [a.reshape(-1, 1) for a in np.mgrid[:h, :w]]
    y, x = (x, y) if x_first else (y, x)

    return np.concatenate([y * fa, x * fb], 1)


HALVES = (np.arange(HEAD // 2), np.arange(HEAD // 2, HEAD))
NEIGHBOURS = (np.arange(0, HEAD, 2), np.arange(1, HEAD, 2))
QUARTERS = (np.r_[0:HEAD // 4, HEAD // 2:HEAD // 4 * 3],
            np.r_[HEAD // 4:HEAD // 2, HEAD // 4 * 3:HEAD])


def block(t, i, act, gate=False, bias=True, qkv_bias=True, fused=False,
          rms=False, qk_norm=False, post=False, scales=False, clamps=False,
          scale=None, names=("ffn_up", "ffn_down"), k_bias=True):
    """a layer: f(x, angle, pairs, mask)"""
    b = f"{t.part}.blk.{i}."
    lin = lambda n, o, k, has: t.linear(b + n, o, k, has, clamps)
    ln1 = t.norm(b + "ln1", bias=not rms)
    ln2 = t.norm(b + "ln2", bias=not rms)

    if fused:
        qkv = lin("attn_qkv", 3 * WIDTH, WIDTH, qkv_bias)
    else:
        q, k, v = [lin("attn_" + n, WIDTH, WIDTH,
                       qkv_bias and (k_bias or n != "k")) for n in "qkv"]
        qkv = lambda x: np.concatenate([q(x), k(x), v(x)], -1)

    out = lin("attn_out", WIDTH, WIDTH, bias)
    up = lin(names[0], FF, WIDTH, bias)
    down = lin(names[1], WIDTH, FF, bias)
    g = lin("ffn_gate", FF, WIDTH, bias) if gate else None
    norms = ([t.norm(f"{b}attn_{n}_norm", HEAD, False) for n in "qk"]
             if qk_norm else [lambda x: x] * 2)
    posts = ([t.norm(f"{b}{n}_post_norm", bias=False) for n in ("attn", "ffn")]
             if post else [lambda x: x] * 2)
    ls = ([t.tensor(f"{b}ls{n}.weight", WIDTH, plus=0.5) for n in (1, 2)]
          if scales else [1, 1])

    def run(x, angle=None, pairs=None, mask=None):
        n = len(x)
        q, k, v = [a.reshape(n, HEADS, HEAD)
                   for a in np.split(qkv(ln1(x)), 3, -1)]
        q, k = norms[0](q), norms[1](k)

        if qk_norm:
            v = v / np.sqrt((v * v).mean(-1, keepdims=True) + t.eps)

        if angle is not None:
            q, k = turn(q, angle, pairs), turn(k, angle, pairs)

        s = np.einsum("qhd,khd->hqk", q, k) * (scale or HEAD ** -0.5)
        s = s if mask is None else np.where(mask, s, -np.inf)
        s = np.exp(s - s.max(-1, keepdims=True))
        s /= s.sum(-1, keepdims=True)
        a = np.einsum("hqk,khd->qhd", s, v).reshape(n, WIDTH)
        x = x + ls[0] * posts[0](out(a))
        y = ln2(x)
        y = act(g(y)) * up(y) if gate else act(up(y))

        return x + ls[1] * posts[1](down(y))

    return run


def cells(x, h, w, m):
    """[cells][dy, dx][width] of x [h * w][width], row by row"""
    x = x.reshape(h // m, m, w // m, m, -1).transpose(0, 2, 1, 3, 4)

    return x.reshape(h * w // m // m, m * m, -1)


def embedding(t, bias=True, frames=1):
    p = t.patch
    shape = (WIDTH, 3, p, p)
    w = t.tensor("v.patch_embd.weight", *shape).reshape(WIDTH, -1)

    if frames == 2:
        w = w + t.tensor("v.patch_embd.weight.1", *shape).reshape(WIDTH, -1)

    b = t.tensor("v.patch_embd.bias", WIDTH) if bias else 0

    return lambda x: patches(x, p).reshape(-1, 3 * p * p) @ w.T + b


def qwen3(towers):
    t = Tower("qwen3vl", "qwen3vl_merger", 4, 3, spatial_merge_size=2,
              is_deepstack_layers=[True, False, True])
    embed = embedding(t, frames=2)
    table = t.tensor("v.position_embd.weight", 25, WIDTH).reshape(5, 5, -1)
    blocks = [block(t, i, gelu_tanh, fused=True) for i in range(3)]
    post = t.norm("v.post_ln")
    main = t.linear("mm.0", 64, 64), t.linear("mm.2", EMBD, 64)
    deep = {i: (t.norm(f"v.deepstack.{i}.norm", 64),
                t.linear(f"v.deepstack.{i}.fc1", 64, 64),
                t.linear(f"v.deepstack.{i}.fc2", EMBD, 64)) for i in (0, 2)}

    def at(i, n):
        p = i * 4 / (n - 1)
        k = min(int(p), 3)
        return k, p - k

    def run(x):
        h, w = x.shape[0] // 4, x.shape[1] // 4
        y = embed(x)

        for r in range(h):
            for c in range(w):
                (i, a), (j, b) = at(r, h), at(c, w)
                y[r * w + c] += (
                    (table[i, j] * (1 - b) + table[i, j + 1] * b) * (1 - a)
                    + (table[i + 1, j] * (1 - b) + table[i + 1, j + 1] * b)
                    * a)

        parts = []

        for i, f in enumerate(blocks):
            y = f(y, angles(h, w, 1e4), HALVES)

            if i in deep:
                n, one, two = deep[i]
                parts.append(two(gelu(one(n(cells(y, h, w, 2).reshape(
                    -1, 64))))))

        y = cells(post(y), h, w, 2).reshape(-1, 64)

        return np.concatenate([main[1](gelu(main[0](y)))] + parts, 1)

    t.add(1, 24, 16, run)
    t.add(2, 16, 40, run)
    towers.append(t)


def qwen25(towers):
    t = Tower("qwen25vl", "qwen2.5vl_merger", 14, 2, n_wa_pattern=2)
    embed = embedding(t, bias=False, frames=2)
    blocks = [block(t, i, silu, gate=True, rms=True) for i in range(2)]
    post = t.norm("v.post_ln", bias=False)
    one, two = t.linear("mm.0", 64, 64), t.linear("mm.2", EMBD, 64)

    def run(x):
        h, w = x.shape[0] // 14, x.shape[1] // 14
        r, c = [a.reshape(-1) // 8 for a in np.mgrid[:h, :w]]
        own = (r[:, None] == r) & (c[:, None] == c)
        y = embed(x)
        y = blocks[0](y, angles(h, w, 1e4), HALVES, own)
        y = blocks[1](y, angles(h, w, 1e4), HALVES)

        return two(gelu(one(cells(post(y), h, w, 2).reshape(-1, 64))))

    t.add(3, 140, 56, run)
    t.add(4, 28, 140, run)
    towers.append(t)


def gemma3(towers):
    t = Tower("gemma3", "gemma3", 4, 2, side=32)
    embed = embedding(t)
    table = t.tensor("v.position_embd.weight", 64, WIDTH)
    blocks = [block(t, i, gelu_tanh) for i in range(2)]
    post = t.norm("v.post_ln")
    norm = t.norm("mm.soft_emb_norm", bias=False)
    proj = t.tensor("mm.input_projection.weight", WIDTH, EMBD)

    def run(x):
        y = embed(x) + table

        for f in blocks:
            y = f(y)

        return norm(cells(post(y), 8, 8, 4).mean(1)) @ proj

    t.add(5, 32, 32, run)
    towers.append(t)


def gemma4(towers):
    t = Tower("gemma4", "gemma4v", 4, 2, key="vision.", mean=(0, 0, 0),
              std=(1, 1, 1))
    embed = embedding(t, bias=False)
    table = t.tensor("v.position_embd.weight", 2, 12, WIDTH)
    blocks = [block(t, i, gelu_tanh, gate=True, bias=False, qkv_bias=False,
                    rms=True, qk_norm=True, post=True, clamps=True, scale=1)
              for i in range(2)]
    shift = t.tensor("v.std_bias", WIDTH)
    factor = t.tensor("v.std_scale", WIDTH, plus=1.0)
    proj = t.linear("mm.input_projection", EMBD, WIDTH, bias=False,
                    clamps=True)

    def run(x):
        h, w = x.shape[0] // 4, x.shape[1] // 4
        r, c = [a.reshape(-1) for a in np.mgrid[:h, :w]]
        y = embed(2 * x - 1) + table[0, c] + table[1, r]

        for f in blocks:
            y = f(y, angles(h, w, 100, x_first=True), QUARTERS)

        y = cells(y, h, w, 3).mean(1) * math.sqrt(WIDTH)
        y = (y - shift) * factor

        return proj(y / np.sqrt((y * y).mean(-1, keepdims=True) + t.eps))

    t.add(6, 36, 24, run)
    t.add(7, 12, 48, run)
    towers.append(t)


def pixtral(towers):
    t = Tower("mistral3", "pixtral", 4, 2, eps=1e-5, spatial_merge_size=2)
    embed = embedding(t, bias=False)
    pre = t.norm("v.pre_ln", bias=False)
    blocks = [block(t, i, silu, gate=True, bias=False, qkv_bias=False,
                    rms=True) for i in range(2)]
    norm = t.norm("mm.input_norm", bias=False)
    merge = t.linear("mm.patch_merger", WIDTH, 64, bias=False)
    one = t.linear("mm.1", EMBD, WIDTH, bias=False)
    two = t.linear("mm.2", EMBD, EMBD, bias=False)
    stop = t.tensor("v.token_embd.img_break", EMBD)

    def run(x):
        h, w = x.shape[0] // 4, x.shape[1] // 4
        y = pre(embed(x))

        for f in blocks:
            y = f(y, angles(h, w, 1e4, every_second=True), NEIGHBOURS)

        y = cells(norm(y), h, w, 2).transpose(0, 2, 1).reshape(-1, 64)
        y = two(gelu(one(merge(y)))).reshape(h // 2, w // 2, EMBD)

        return np.concatenate(
            [np.concatenate([row, stop[None]]) for row in y])[:-1]

    t.add(8, 24, 32, run)
    t.add(9, 16, 8, run)
    towers.append(t)


def idefics3(towers):
    t = Tower("smolvlm", "idefics3", 4, 2, side=16,
              **{"projector.scale_factor": 2})
    embed = embedding(t)
    table = t.tensor("v.position_embd.weight", 16, WIDTH)
    blocks = [block(t, i, gelu_tanh) for i in range(2)]
    post = t.norm("v.post_ln")
    proj = t.linear("mm.model.fc", EMBD, 64, bias=False)

    def run(x):
        y = embed(x) + table

        for f in blocks:
            y = f(y)

        return proj(cells(post(y), 4, 4, 2).reshape(-1, 64))

    t.add(10, 16, 16, run)
    t.add(11, 16, 16, run)
    t.add(12, 16, 16, run)
    towers.append(t)


def internvl(towers):
    t = Tower("internvl", "internvl", 4, 2, side=16,
              **{"projector.scale_factor": 2})
    first = t.tensor("v.class_embd", WIDTH)
    embed = embedding(t)
    table = t.tensor("v.position_embd.weight", 17, WIDTH)
    blocks = [block(t, i, gelu, scales=True) for i in range(2)]
    norm = t.norm("mm.model.mlp.0", 64, eps=1e-5)
    one = t.linear("mm.model.mlp.1", 24, 64)
    two = t.linear("mm.model.mlp.3", EMBD, 24)

    def run(x):
        y = np.concatenate([first[None], embed(x)]) + table

        for f in blocks:
            y = f(y)

        return two(gelu(one(norm(cells(y[1:], 4, 4, 2).reshape(-1, 64)))))

    t.add(13, 16, 16, run)
    t.add(14, 16, 16, run)
    towers.append(t)


def stretched(table, h, w):
    """[h * w][width] of a table [5][5][width], with cubic interpolation"""
    def weight(d):
        a, d = -0.75, abs(d)
        return ((a + 2) * d ** 3 - (a + 3) * d ** 2 + 1 if d <= 1 else
                a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a if d < 2
                else 0)

    y = np.zeros((h * w, WIDTH))

    for r in range(h):
        for c in range(w):
            py, px = (r + 0.5) / h * 5 - 0.5, (c + 0.5) / w * 5 - 0.5

            for i in range(math.floor(py) - 1, math.floor(py) + 3):
                for j in range(math.floor(px) - 1, math.floor(px) + 3):
                    y[r * w + c] += (weight(py - i) * weight(px - j)
                                     * table[min(max(i, 0), 4),
                                             min(max(j, 0), 4)])

    return y


def glm4v(towers):
    t = Tower("glm4v", "glm4v", 4, 2, eps=1e-5)
    embed = embedding(t, frames=2)
    pre = t.norm("v.norm_embd", bias=False)
    table = t.tensor("v.position_embd.weight", 25, WIDTH).reshape(5, 5, -1)
    blocks = [block(t, i, silu, gate=True, bias=False, qkv_bias=False,
                    fused=True, rms=True) for i in range(2)]
    post = t.norm("v.post_ln", bias=False)
    conv = t.linear("mm.patch_merger", EMBD, 64, rows=(EMBD, WIDTH, 2, 2))
    fc = t.linear("mm.model.fc", EMBD, EMBD, bias=False)
    norm = t.norm("mm.post_norm", EMBD, eps=1e-5)
    gate = t.linear("mm.gate", 14, EMBD, bias=False)
    up = t.linear("mm.up", 14, EMBD, bias=False)
    down = t.linear("mm.down", EMBD, 14, bias=False)

    def run(x):
        h, w = x.shape[0] // 4, x.shape[1] // 4
        y = pre(embed(x)) + stretched(table, h, w)

        for f in blocks:
            y = f(y, angles(h, w, 1e4), HALVES)

        y = cells(post(y), h, w, 2).transpose(0, 2, 1).reshape(-1, 64)
        y = gelu(norm(fc(conv(y))))

        return down(silu(gate(y)) * up(y))

    t.add(15, 24, 16, run)
    t.add(16, 8, 40, run)
    towers.append(t)


def llava(towers):
    t = Tower("llava", "mlp", 4, 2, eps=1e-5, side=16, projection_dim=9)
    t.fields["clip.has_llava_projector"] = True
    t.fields["clip.use_gelu"] = False
    first = t.tensor("v.class_embd", WIDTH)
    embed = embedding(t, bias=False)
    table = t.tensor("v.position_embd.weight", 17, WIDTH)
    pre = t.norm("v.pre_ln")
    blocks = [block(t, i, gelu_quick, names=("ffn_down", "ffn_up"))
              for i in range(2)]
    one = t.linear("mm.0", 24, WIDTH)
    two = t.linear("mm.2", EMBD, 24)

    def run(x):
        y = pre(np.concatenate([first[None], embed(x)]) + table)

        for f in blocks:
            y = f(y)

        return two(gelu(one(y[1:])))

    t.add(17, 16, 16, run)
    towers.append(t)


def kimi(towers):
    t = Tower("kimivl", "kimivl", 4, 2, eps=1e-5,
              **{"projector.scale_factor": 2})
    embed = embedding(t)
    table = t.tensor("v.position_embd.weight", 25, WIDTH).reshape(5, 5, -1)
    blocks = [block(t, i, gelu_tanh) for i in range(2)]
    post = t.norm("v.post_ln")
    norm = t.norm("mm.input_norm")
    one = t.linear("mm.1", 64, 64)
    two = t.linear("mm.2", EMBD, 64)

    def run(x):
        h, w = x.shape[0] // 4, x.shape[1] // 4
        y = embed(x) + stretched(table, h, w)
        f = 1e4 ** (-np.arange(0, HEAD, 4) / HEAD)
        r, c = [a.reshape(-1, 1) for a in np.mgrid[:h, :w]]
        angle = np.stack([c * f, r * f], 2).reshape(h * w, -1)

        for f in blocks:
            y = f(y, angle, NEIGHBOURS)

        return two(gelu(one(cells(norm(post(y)), h, w, 2).reshape(-1, 64))))

    t.add(18, 24, 16, run)
    t.add(19, 8, 40, run)
    towers.append(t)


def gemma4uv(towers):
    t = Tower("gemma4uv", "gemma4uv", 2, 0, key="vision.", mean=(0, 0, 0),
              std=(1, 1, 1), feed_forward_length=0,
              **{"attention.head_count": 0})
    t.patch = 6
    first = t.norm("v.patch_norm.1", 108, eps=1e-5)
    w = t.tensor("v.patch_embd.weight", WIDTH, 108)
    b = t.tensor("v.patch_embd.bias", WIDTH)
    second = t.norm("v.patch_norm.2", eps=1e-5)
    table = t.tensor("v.position_embd.weight", 2, 6, WIDTH)
    third = t.norm("v.patch_norm.3", eps=1e-5)
    proj = t.linear("mm.input_projection", EMBD, WIDTH, bias=False)

    def run(x):
        r, c = [a.reshape(-1) for a in np.mgrid[:x.shape[0] // 6,
                                                :x.shape[1] // 6]]
        y = second(first(patches(x, 6).reshape(-1, 108)) @ w.T + b)
        y = third(y + table[0, c] + table[1, r])

        return proj(y / np.sqrt((y * y).mean(-1, keepdims=True) + t.eps))

    t.add(20, 36, 12, run)
    t.add(21, 6, 18, run)

    # frames of 40 samples of a sound
    t.fields.update({"clip.has_audio_encoder": True,
                     "clip.audio.projector_type": "gemma4ua",
                     "clip.audio.attention.layer_norm_epsilon": 1e-6})
    hear = t.linear("mm.a.input_projection", EMBD, 40, bias=False)
    x = np.append(numbers(22, 100), np.zeros(20)).reshape(3, 40)
    t.heard = hear(x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6))
    towers.append(t)


def encoder(t, window=0):
    """Whisper's: the rows of a spectrogram; no frame sees beyond a window"""
    w1 = t.tensor("a.conv1d.1.weight", WIDTH, MELS, 3)
    b1 = t.tensor("a.conv1d.1.bias", WIDTH, 1)
    w2 = t.tensor("a.conv1d.2.weight", WIDTH, WIDTH, 3)
    b2 = t.tensor("a.conv1d.2.bias", WIDTH, 1)
    table = t.tensor("a.position_embd.weight", t.positions, WIDTH)
    blocks = [block(t, i, gelu, k_bias=False) for i in range(t.layers)]

    def conv(x, w, b, stride):
        x = np.pad(x, ((0, 0), (1, 1)))
        return gelu(np.stack([np.einsum("oik,ik->o", w, x[:, i:i + 3])
                              for i in range(0, x.shape[1] - 2, stride)], 1)
                    + b)

    def run(x, own):
        y = np.concatenate([
            (lambda z: z + table[:len(z)])(
                conv(conv(part, w1, b1, 1), w2, b2, 2).T)
            for part in np.split(x, range(window, x.shape[1], window)
                                 if window else [], 1)])[:(own + 1) // 2]
        at = np.arange(len(y)) // (window // 2 or len(y))

        for f in blocks:
            y = f(y, mask=at[:, None] == at)

        return y

    return run


def voxtral(ears):
    t = Ear("voxtral", "voxtral", 2, 12, **{"projector.stack_factor": 4})
    encode = encoder(t)
    post = t.norm("a.post_ln")
    one = t.linear("mm.a.mlp.1", 24, 4 * WIDTH, bias=False)
    two = t.linear("mm.a.mlp.2", EMBD, 24, bias=False)
    t.hear(30, 24, 24, lambda x, own: two(gelu(one(
        post(encode(x, own)).reshape(-1, 4 * WIDTH)))))
    ears.append(t)


def qwen2a(ears, name, projector, positions, window, key, sounds):
    t = Ear(name, projector, 2, positions, key)
    encode = encoder(t, window)
    post = t.norm("a.post_ln")
    fc = t.linear("mm.a.fc", EMBD, WIDTH)

    def run(x, own):
        y = encode(x, own)
        return fc(post(y[:len(y) // 2 * 2].reshape(-1, 2, WIDTH).mean(1)))

    for seed, h, own in sounds:
        t.hear(seed, h, own, run)

    ears.append(t)


def qwen3a(ears):
    """slices of 100 frames, each with positions of its own"""
    t = Ear("qwen3asr", "qwen3a", 2, 14, "audio.", 12)
    convs = [(t.tensor(f"a.conv2d.{k + 1}.weight", 6, 6 if k else 1, 3, 3),
              t.tensor(f"a.conv2d.{k + 1}.bias", 6, 1, 1)) for k in range(3)]
    out = t.linear("a.conv_out", WIDTH, 6 * 2, bias=False)
    table = t.tensor("a.position_embd.weight", 14, WIDTH)
    blocks = [block(t, i, gelu) for i in range(2)]
    post = t.norm("a.post_ln")
    one = t.linear("mm.a.mlp.1", 24, WIDTH)
    two = t.linear("mm.a.mlp.2", EMBD, 24)

    def conv(x, w, b):
        x = np.pad(x, ((0, 0), (1, 1), (1, 1)))
        return gelu(np.array([[np.einsum("oikl,ikl->o", w,
                                         x[:, i:i + 3, k:k + 3])
                               for k in range(0, x.shape[2] - 2, 2)]
                              for i in range(0, x.shape[1] - 2, 2)]
                             ).transpose(2, 0, 1) + b)

    def run(x, own):
        y = []

        for part in np.split(x, range(100, x.shape[1], 100), 1):
            z = part[None]

            for w, b in convs:
                z = conv(z, w, b)

            z = out(z.transpose(2, 0, 1).reshape(z.shape[2], -1))
            y.append(z + table[:len(z)])

        y = np.concatenate(y)[:own // 100 * 13 + (own % 100 + 7) // 8]

        for f in blocks:
            y = f(y)

        return two(gelu(one(post(y))))

    for seed, h, own in (36, 200, 117), (37, 45, 45), (38, 100, 3):
        t.hear(seed, h, own, run)

    ears.append(t)


def silu(x):
    return x / (1 + np.exp(-x))


def conformer(t, n):
    """a layer, in the order of transformers"""
    b = f"a.blk.{n}."

    def half(end):
        pre = t.norm(f"{b}ffn_norm{end}", bias=False)
        up = t.linear(f"{b}ffn_up{end}", FF, WIDTH, bias=False, clamps=True)
        down = t.linear(f"{b}ffn_down{end}", WIDTH, FF, bias=False)
        post = t.norm(f"{b}ffn_post_norm{end}", bias=False)
        return lambda x: x + post(down(silu(up(pre(x))))) / 2

    first, last = half(""), half("_1")
    pre = t.norm(b + "attn_pre_norm", bias=False)
    q, k, v = [t.linear(b + "attn_" + c, WIDTH, WIDTH, bias=False,
                        clamps=n == 0) for c in "qkv"]
    rel = t.linear(b + "attn_k_rel", WIDTH, WIDTH, bias=False)
    dims = t.tensor(b + "per_dim_scale.weight", HEAD, plus=6.0)
    out = t.linear(b + "attn_out", WIDTH, WIDTH, bias=False, clamps=n == 1)
    post = t.norm(b + "attn_post_norm", bias=False)
    conv_pre = t.norm(b + "conv_norm", bias=False)
    start = t.linear(b + "conv_pw1", 2 * WIDTH, WIDTH, bias=False, clamps=True)
    kernel = t.tensor(b + "conv_dw.weight", WIDTH, 5)
    conv_post = t.norm(b + "norm_conv", bias=False)
    end = t.linear(b + "conv_pw2", WIDTH, WIDTH, bias=False)
    norm = t.norm(b + "ln2", bias=False)

    # of distances of 0 to 11 rows
    angle = np.arange(12)[:, None] * np.exp(
        -np.arange(WIDTH // 2) * math.log(10000) / (WIDTH // 2 - 1))
    wave = np.concatenate([np.sin(angle), np.cos(angle)], 1)

    def attend(x):
        y = pre(x)
        heads = (len(x), HEADS, HEAD)
        queries = (q(y) / math.sqrt(HEAD) / math.log(2)).reshape(heads) * dims
        keys = (k(y) * math.log(1 + math.e) / math.log(2)).reshape(heads)
        values, far = v(y).reshape(heads), rel(wave).reshape(12, HEADS, HEAD)
        rows = []

        for i in range(len(x)):
            seen = np.arange(max(i - 11, 0), i + 1)
            s = np.einsum("hd,jhd->hj", queries[i], keys[seen] + far[i - seen])
            s = np.exp(50 * np.tanh(s / 50))
            s /= s.sum(1, keepdims=True)
            rows.append(np.einsum("hj,jhd->hd", s, values[seen]).reshape(-1))

        return x + post(out(np.array(rows)))

    def convolve(x):
        y = start(conv_pre(x))
        y = y[:, :WIDTH] / (1 + np.exp(-y[:, WIDTH:]))
        y = np.pad(y, ((4, 0), (0, 0)))
        y = sum(y[i:i + len(x)] * kernel[:, i] for i in range(5))
        return x + end(silu(conv_post(y)))

    return lambda x: norm(last(convolve(attend(first(x)))))


def gemma4a(ears):
    t = Ear("gemma4e", "gemma4a", 2, 0, "audio.", 12)
    t.fields["clip.audio.attention.layer_norm_epsilon"] = 1e-5  # not believed
    t.eps = 1e-6
    convs = [(t.tensor(f"a.conv1d.{k}.weight", n, c, 3, 3),
              t.tensor(f"a.conv1d.{k}.norm.weight", n, scale=0.25, plus=1.0))
             for k, (n, c) in enumerate(((6, 1), (4, 6)))]
    embed = t.linear("a.input_projection", WIDTH, 3 * 4, bias=False)
    blocks = [conformer(t, i) for i in range(2)]
    one = t.linear("a.pre_encode.out", 24, WIDTH)
    two = t.linear("mm.a.input_projection", EMBD, 24, bias=False)

    def conv(x, w, norm):
        """[channels][frames][bands]"""
        x = np.pad(x, ((0, 0), (1, 1), (1, 1)))
        y = np.array([[np.einsum("oikl,ikl->o", w, x[:, i:i + 3, k:k + 3])
                       for k in range(0, x.shape[2] - 2, 2)]
                      for i in range(0, x.shape[1] - 2, 2)])
        y -= y.mean(-1, keepdims=True)
        y /= np.sqrt((y * y).mean(-1, keepdims=True) + t.eps)
        return np.maximum(y * norm, 0).transpose(2, 0, 1)

    def run(x, own):
        z = x.T[None]

        for w, norm in convs:
            z = conv(z, w, norm)

        y = embed(z.transpose(1, 2, 0).reshape(z.shape[1], -1))

        for f in blocks:
            y = f(y)

        y = one(y)
        return two(y / np.sqrt((y * y).mean(-1, keepdims=True) + t.eps))

    # rows of three slices, of one, and a row of a frame
    for seed, h in (39, 209), (40, 45), (41, 1):
        t.hear(seed, h, h, run)

    ears.append(t)


def field(key, v):
    if isinstance(v, bool):
        return f"TOWER_BOOL, {int(v)}, 0, NULL, {{ 0 }}"

    if isinstance(v, str):
        return f'TOWER_STR, 0, 0, "{v}", {{ 0 }}'

    if isinstance(v, list):
        kind = "BOOLS" if isinstance(v[0], bool) else "F32S"
        return (f"TOWER_{kind}, {len(v)}, 0, NULL, {{ "
                + ", ".join(f"{float(x)}f" for x in v) + " }")

    if isinstance(v, float):
        return f"TOWER_F32, 0, {v}f, NULL, {{ 0 }}"

    return f"TOWER_U32, {v}, 0, NULL, {{ 0 }}"


def floats(name, rows):
    print(f"static const float  {name}[] = {{")

    for i in range(0, len(rows), 6):
        print("    " + ", ".join(f"{x:.6g}f" if "." in f"{x:.6g}"
                                 or "e" in f"{x:.6g}" else f"{x:.6g}.0f"
                                 for x in rows[i:i + 6]) + ",")

    print("};\n")


def write_fields(t, n):
    print(f"static const tower_field_t  tower_fields_{n}[] = {{")

    for key, v in t.fields.items():
        print(f'    {{ "{key}",\n      {field(key, v)} }},')

    print("    { NULL, TOWER_U32, 0, 0, NULL, { 0 } }\n};\n")
    print(f"static const tower_tensor_t  tower_tensors_{n}[] = {{")

    for name, (shape, scale, plus) in t.tensors.items():
        ne = list(shape)[::-1] + [0] * (4 - len(shape))
        print(f'    {{ "{name}", {{ {", ".join(map(str, ne))} }}, '
              f"{scale}f, {plus}f }},")

    print("    { NULL, { 0 }, 0, 0 }\n};\n")
    print(f"static const tower_entry_t  tower_entries_{n}[] = {{")

    for entry in t.entries:
        print(f"    {{ {', '.join(map(str, entry))} }},")

    print("    { 0, 0, 0 }\n};\n")
    floats(f"tower_rows_{n}", np.concatenate(t.rows).reshape(-1))


def write_list(name, towers, first):
    print(f"static const tower_tiny_t  {name}[] = {{")

    for n, t in enumerate(towers, first):
        size = sum(x.size for x in t.rows)
        print(f'    {{ "{t.name}", tower_fields_{n}, tower_tensors_{n},\n'
              f"      tower_entries_{n}, tower_rows_{n}, {size} }},")

    print("};")


def write(towers, ears):
    print("/* made by tower_expected.py; see there */\n")

    for n, t in enumerate(towers + ears):
        write_fields(t, n)

    floats("tower_heard", towers[-1].heard.reshape(-1))
    write_list("tower_tiny", towers, 0)
    print()
    write_list("tower_ears", ears, len(towers))


def main():
    towers, ears = [], []

    for f in (qwen3, qwen25, gemma3, gemma4, pixtral, idefics3, internvl,
              glm4v, llava, kimi, gemma4uv):
        f(towers)

    voxtral(ears)
    qwen2a(ears, "qwen2audio", "qwen2a", 12, 0, "", [(31, 21, 19), (32, 24, 24),
                                                    (33, 5, 3)])
    qwen2a(ears, "qwen25omni", "qwen2.5o", 250, 200, "audio.",
           [(34, 305, 305), (35, 4, 4)])
    qwen3a(ears)
    gemma4a(ears)
    write(towers, ears)


main()
