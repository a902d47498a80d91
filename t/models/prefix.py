"""Trains with long texts before the batches, without computing them each step.

From time to time, a text of random length is run through the model, and its
keys and values are kept.  A batch then attends to some of a text's keys, drawn
anew each time: all of the last ones, and a sample of the others, each weighted
by the number of keys that it represents.  So the softmax has about the sum that
all keys would give, at the cost of a short prompt.  Half of the batches begin
further away than the end of the text, so that positions up to FURTHEST occur.
"""

import math

import torch

import long_text

LENGTHS = (1000, 16000)         # tokens of a text
TEXTS = 8                       # texts that are kept
NEAR, DRAWN = 64, 192           # last keys of a text, and number of the others
OLD = 24                        # draws until the oldest text is replaced
FURTHEST = 64000                # largest first position of a batch
CHARS_A_TOKEN = 1.6


class Prefixes:
    def __init__(self, model, tok, rng):
        self.model, self.tok, self.rng = model, tok, rng
        self.sources = long_text.sources()
        self.kept, self.draws = [], 0

    def _length(self):
        low, high = (math.log(n) for n in LENGTHS)
        return int(math.exp(self.rng.uniform(low, high)))

    def _ids(self, length):
        text = long_text.long_text(self.rng, self.sources,
                                   int(length * CHARS_A_TOKEN * 1.5))
        ids = self.tok.encode("<|im_start|>system\n" + text).ids[:length]
        return ids + self.tok.encode("<|im_end|>\n").ids

    @torch.no_grad()
    def _refresh(self):
        """Computes a text; drops the oldest one if there are TEXTS already."""
        ids = self._ids(self._length())
        past = [[] for _ in self.model.blocks]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.model.hidden(torch.tensor([ids]), 0, past)
        self.kept = [past] + self.kept[:TEXTS - 1]

    def draw(self):
        """(start, past, weight) for Qwen3.hidden(): the position of the batch
        after a text, keys and values of the text, terms of their scores."""
        if self.draws % OLD == 0 or len(self.kept) < min(TEXTS,
                                                         self.draws // 4):
            self._refresh()
        self.draws += 1
        past = self.rng.choice(self.kept)
        length = past[0][0].shape[2]
        near = torch.arange(max(length - NEAR, 0), length)
        far = torch.randperm(length - len(near))[:DRAWN].sort().values
        weight = torch.zeros(len(far) + len(near))
        if len(far):
            weight[:len(far)] = math.log((length - len(near)) / len(far))
        keys = torch.cat((far, near))
        start = length
        if self.rng.random() < 0.5:
            start += self.rng.randrange(FURTHEST - length)
        return start, [[k[:, :, keys], v[:, :, keys]] for k, v in past], weight
