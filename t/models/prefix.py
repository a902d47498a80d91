"""Long texts to train behind, without computing them in each step.

A few texts of many lengths are run through the model once in a while, and
their keys and values kept.  A batch then stands behind some of a text's keys,
drawn anew each time: the last ones as they are, and few of the others, each
counting for as many as it stands for.  So the softmax has the sum that all of
them would give it, at the price of a short prompt.  Sometimes the batch
stands further away than the text is long: positions up to FURTHEST are seen.
"""

import math

import torch

import long_text

LENGTHS = (1000, 16000)         # tokens of a text
TEXTS = 8                       # kept at a time
NEAR, DRAWN = 64, 192           # keys next to the batch, and of the rest
OLD = 24                        # draws until the oldest text gives way
FURTHEST = 64000                # a batch's first position, at most
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
        """Computes one more text and drops the oldest if there are enough."""
        ids = self._ids(self._length())
        past = [[] for _ in self.model.blocks]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.model.hidden(torch.tensor([ids]), 0, past)
        self.kept = [past] + self.kept[:TEXTS - 1]

    def draw(self):
        """(start, past, weight) for Qwen3.hidden(): the position behind a
        text, keys and values of it, and what is added to their scores."""
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
