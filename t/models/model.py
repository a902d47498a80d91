"""Qwen3 in plain torch, with only what the demo model needs.

Pre-norm blocks of grouped-query attention with QK-norm and RoPE (rotating
halves), and a SwiGLU feed-forward; the output head is the embedding.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocab: int = 2048
    dim: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 768
    context: int = 4096         # default of servers, in tokens
    longest: int = 65536        # trained up to this position, see prefix.py
    rope_base: float = 100000.0
    eps: float = 1e-6


class RMSNorm(nn.Module):
    """Computed in float32; the result has the type of x."""

    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(x.dtype)


def rope_tables(cfg, length, start=0):
    """cos and sin of each position, [length, head_dim / 2]."""
    half = cfg.head_dim // 2
    freq = cfg.rope_base ** (-torch.arange(half, dtype=torch.float32) / half)
    angle = torch.arange(start, start + length)[:, None] * freq[None]
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    """RoPE on x [batch, length, heads, head_dim], rotating halves."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[None, :, None].to(x.dtype), sin[None, :, None].to(x.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def shares(scores, added, scale):
    """softmax(scores * scale + added), in the type of scores."""
    return torch.softmax(scores.float() * scale + added, -1).to(scores.dtype)


def attend(q, k, v, weight=None):
    """Causal attention of the last positions.  weight [keys], if given, is
    added to the scores of the keys before those of q.  In training, this plain
    form is faster than the backward pass of PyTorch's attention."""
    t, before = q.shape[2], k.shape[2] - q.shape[2]
    if not q.requires_grad and (not before or t == 1):
        return F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
    added = torch.full((t, t), -1e9).triu(1)
    if before:
        if weight is None:
            weight = torch.zeros(before)
        added = torch.cat((weight.expand(t, before), added), dim=1)
    return shares(q @ k.transpose(-1, -2), added, q.shape[-1] ** -0.5) @ v


def compile_parts():
    """Compiles all except matrix products, for any shape."""
    global shares, rotate
    shares = torch.compile(shares, dynamic=True)
    rotate = torch.compile(rotate, dynamic=True)
    for module in RMSNorm, FeedForward:
        module.forward = torch.compile(module.forward, dynamic=True)


class Attention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        kv = cfg.kv_heads * cfg.head_dim
        self.q = nn.Linear(cfg.dim, cfg.heads * cfg.head_dim, bias=False)
        self.k = nn.Linear(cfg.dim, kv, bias=False)
        self.v = nn.Linear(cfg.dim, kv, bias=False)
        self.o = nn.Linear(cfg.heads * cfg.head_dim, cfg.dim, bias=False)
        self.q_norm = RMSNorm(cfg.head_dim, cfg.eps)
        self.k_norm = RMSNorm(cfg.head_dim, cfg.eps)

    def forward(self, x, rope, past=None, weight=None):
        """past, if given, is this layer's list of (k, v), to which those of x
        are appended; weight: see attend(), of the keys in past."""
        b, t, _ = x.shape
        shape = (b, t, -1, self.cfg.head_dim)
        q = rotate(self.q_norm(self.q(x).view(shape)), *rope).transpose(1, 2)
        k = rotate(self.k_norm(self.k(x).view(shape)), *rope).transpose(1, 2)
        v = self.v(x).view(shape).transpose(1, 2)
        if past is not None:
            if past:
                k = torch.cat((past[0].expand(b, -1, -1, -1), k), dim=2)
                v = torch.cat((past[1].expand(b, -1, -1, -1), v), dim=2)
            past[:] = [k, v]
        groups = self.cfg.heads // self.cfg.kv_heads
        k = k.repeat_interleave(groups, dim=1)
        v = v.repeat_interleave(groups, dim=1)
        y = attend(q, k, v, weight)
        return self.o(y.transpose(1, 2).reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gate = nn.Linear(cfg.dim, cfg.ffn, bias=False)
        self.up = nn.Linear(cfg.dim, cfg.ffn, bias=False)
        self.down = nn.Linear(cfg.ffn, cfg.dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attn_norm = RMSNorm(cfg.dim, cfg.eps)
        self.attn = Attention(cfg)
        self.ffn_norm = RMSNorm(cfg.dim, cfg.eps)
        self.ffn = FeedForward(cfg)

    def forward(self, x, rope, past=None, weight=None):
        x = x + self.attn(self.attn_norm(x), rope, past, weight)
        return x + self.ffn(self.ffn_norm(x))


class Qwen3(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.norm = RMSNorm(cfg.dim, cfg.eps)
        self._init_weights()

    def _init_weights(self):
        nn.init.normal_(self.embed.weight, std=0.02)
        for name, p in self.blocks.named_parameters():
            if p.dim() < 2:
                continue
            std = p.shape[1] ** -0.5
            if name.endswith(("attn.o.weight", "ffn.down.weight")):
                std /= (2 * self.cfg.layers) ** 0.5
            nn.init.normal_(p, std=std)

    def hidden(self, ids, start=0, past=None, weight=None):
        """Normed hidden states [batch, length, dim] of ids."""
        x = self.embed(ids)
        if torch.is_autocast_enabled("cpu"):
            x = x.bfloat16()
        rope = rope_tables(self.cfg, ids.shape[1], start)
        for i, block in enumerate(self.blocks):
            x = block(x, rope, past[i] if past is not None else None, weight)
        return self.norm(x)

    def head(self, hidden):
        return F.linear(hidden, self.embed.weight)


@torch.no_grad()
def generate(model, ids, stop, limit=256, temperature=0.0, generator=None):
    """New ids after the prompt `ids`, up to and without a stop id."""
    past = [[] for _ in model.blocks]
    out, step, start = [], list(ids), 0
    while len(out) < limit:
        h = model.hidden(torch.tensor([step]), start, past)[0, -1]
        logits = model.head(h).float()
        start += len(step)
        if temperature > 0:
            p = torch.softmax(logits / temperature, dim=-1)
            token = int(torch.multinomial(p, 1, generator=generator))
        else:
            token = int(logits.argmax())
        if token in stop:
            break
        out.append(token)
        step = [token]
    return out
