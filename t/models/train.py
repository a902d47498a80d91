#!/usr/bin/env python3
"""Trains the demo model and writes it as a GGUF.

    make_data.py --count 600000 --out data.jsonl
    train.py --data data.jsonl --work DIR --minutes 55 --gguf demo.gguf

The work folder keeps the tokenizer, the token ids of the data and one
checkpoint; a run started again with --resume goes on from that checkpoint.
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional as F

import chat
import gguf_io
import tokenizer as demo_tokenizer
from model import Config, Qwen3
from muon import Muon

MICRO_TOKENS = 8192             # tokens of one forward pass, padding included
PAD_TO = 16                     # lengths are rounded up to a multiple of this
BUFFER = 8192                   # samples sorted by length at a time
MAX_TOKENS = 1100               # longer samples are left out
PROMPT_LOSS = 0.08              # share of samples that also learn the prompt


# -- data ---------------------------------------------------------------------

def load_texts(path):
    """(prompt, answer) of every line of the generator's output."""
    template = chat.compile_template()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            s = json.loads(line)
            if "prompt" in s:
                yield s["prompt"], s["answer"]
            else:
                yield chat.render(template, s["messages"], s.get("tools"),
                                  s.get("thinking")), s["answer"]


def make_tokenizer(data, path, sample=60000):
    """The tokenizer at path, trained on the first samples if missing."""
    if not path.exists():
        texts = []
        for prompt, answer in load_texts(data):
            texts.append(prompt + answer)
            if len(texts) == sample:
                break
        demo_tokenizer.train(texts).save(str(path))
    return Tokenizer.from_file(str(path))


class Corpus:
    """All samples as one array of ids, with each one's start and answer."""

    def __init__(self, data, tok, cache):
        if not cache.exists():
            self._encode(data, tok, cache)
        z = np.load(cache)
        self.ids, self.starts, self.answers = z["ids"], z["starts"], z["answers"]
        self.lengths = np.diff(self.starts)
        self.turn = tok.token_to_id("<|im_start|>")

    @staticmethod
    def _encode(data, tok, cache):
        eos = tok.token_to_id(demo_tokenizer.EOS)
        ids, starts, answers = [], [0], []
        batch = []

        def flush():
            prompts = tok.encode_batch([p for p, _ in batch])
            replies = tok.encode_batch([a for _, a in batch])
            for p, r in zip(prompts, replies):
                one = p.ids + r.ids + [eos]
                if len(one) <= MAX_TOKENS:
                    ids.append(np.array(one, dtype=np.uint16))
                    starts.append(starts[-1] + len(one))
                    answers.append(len(p.ids))
            batch.clear()

        for pair in load_texts(data):
            batch.append(pair)
            if len(batch) == 2000:
                flush()
        flush()
        np.savez(cache, ids=np.concatenate(ids), starts=np.array(starts),
                 answers=np.array(answers))

    def batches(self, rng):
        """Micro-batches of samples of like length, in random order."""
        order = list(range(len(self.lengths)))
        while True:
            rng.shuffle(order)
            for at in range(0, len(order), BUFFER):
                part = sorted(order[at:at + BUFFER],
                              key=lambda i: self.lengths[i])
                groups = list(self._groups(part))
                rng.shuffle(groups)
                for group in groups:
                    yield self._tensors(group, rng)

    def _groups(self, part):
        group = []
        for i in part:
            width = -(-self.lengths[i] // PAD_TO) * PAD_TO
            if group and width * (len(group) + 1) > MICRO_TOKENS:
                yield group
                group = []
            group.append(i)
        if group:
            yield group

    def _learn_from(self, i, rng):
        """The first position of sample i that is learned: its answer's, or
        now and then 1.  Talks of several turns only teach their answer, for
        the template writes earlier ones without their <think> block."""
        if rng.random() < PROMPT_LOSS:
            ids = self.ids[self.starts[i]:self.starts[i + 1]]
            if np.count_nonzero(ids == self.turn) <= 3:
                return 1
        return max(self.answers[i], 1)

    def _tensors(self, group, rng):
        """ids [n, width] and the mask of positions whose next id counts."""
        width = -(-max(self.lengths[i] for i in group) // PAD_TO) * PAD_TO
        ids = np.zeros((len(group), width), dtype=np.int64)
        mask = np.zeros((len(group), width), dtype=bool)
        for row, i in enumerate(group):
            n = self.lengths[i]
            ids[row, :n] = self.ids[self.starts[i]:self.starts[i] + n]
            mask[row, self._learn_from(i, rng) - 1:n - 1] = True
        return torch.from_numpy(ids), torch.from_numpy(mask)


# -- optimisation -------------------------------------------------------------

def make_optimizers(model, lr):
    """Muon for the blocks' matrices, AdamW for the embedding and the norms."""
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    norms = [p for p in model.parameters() if p.dim() == 1]
    return [
        Muon(matrices, lr),
        torch.optim.AdamW([
            {"params": [model.embed.weight], "weight_decay": 0.01},
            {"params": norms, "weight_decay": 0.0}],
            lr=lr, betas=(0.9, 0.98), fused=True)]


def lr_at(progress, warmup=0.02, floor=0.02):
    """Share of the full learning rate at a progress of 0..1."""
    if progress < warmup:
        return progress / warmup + 1e-3
    x = (progress - warmup) / (1 - warmup)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(x, 1)))


def loss_of(model, ids, mask):
    """Mean loss on the masked positions of a micro-batch."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model.hidden(ids)[:, :-1][mask[:, :-1]]
        logits = model.head(hidden)
    return F.cross_entropy(logits.float(), ids[:, 1:][mask[:, :-1]])


# -- the run ------------------------------------------------------------------

class Run:
    def __init__(self, args):
        self.args = args
        self.work = Path(args.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.tok = make_tokenizer(args.data, self.work / "tokenizer.json")
        self.corpus = Corpus(args.data, self.tok,
                             self.work / f"{Path(args.data).stem}.npz")
        self.model = Qwen3(Config(vocab=self.tok.get_vocab_size()))
        self.checkpoint = self.work / "checkpoint.pt"
        if args.resume:
            self.model.load_state_dict(torch.load(self.checkpoint))
        for block in self.model.blocks:
            block.compile(dynamic=True)

    def save(self):
        torch.save(self.model.state_dict(), self.checkpoint)
        gguf_io.write(self.args.gguf, self.model, self.tok)

    def train(self):
        args = self.args
        optimizers = make_optimizers(self.model, args.lr)
        batches = self.corpus.batches(random.Random(args.seed))
        began, step, tokens, mean = time.time(), 0, 0, None
        saved = began
        while True:
            progress = (time.time() - began) / (args.minutes * 60)
            if args.steps:
                progress = step / args.steps
            if progress >= 1:
                break
            loss, n = self.step(optimizers, batches, lr_at(progress))
            tokens += n
            step += 1
            mean = loss if mean is None else 0.98 * mean + 0.02 * loss
            if step in (1, 10) or step % 50 == 0:
                print(f"step {step} {progress:.3f} loss {mean:.4f} "
                      f"{tokens / (time.time() - began):.0f} tok/s", flush=True)
            if time.time() - saved > 300:
                self.save()
                saved = time.time()
        self.save()

    def step(self, optimizers, batches, scale):
        """One update from args.accumulate micro-batches."""
        total, tokens = 0.0, 0
        for _ in range(self.args.accumulate):
            ids, mask = next(batches)
            loss = loss_of(self.model, ids, mask)
            loss = loss / self.args.accumulate
            loss.backward()
            total += float(loss.detach())
            tokens += ids.numel()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for o in optimizers:
            for g in o.param_groups:
                g["lr"] = self.args.lr * scale
            o.step()
            o.zero_grad(set_to_none=True)
        return total, tokens


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--data", required=True)
    p.add_argument("--work", required=True)
    p.add_argument("--gguf", required=True)
    p.add_argument("--minutes", type=float, default=55)
    p.add_argument("--steps", type=int, default=0,
                   help="a fixed number of steps instead of the time")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--accumulate", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--resume", action="store_true")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    Run(args).train()


if __name__ == "__main__":
    main()
