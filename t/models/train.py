#!/usr/bin/env python3
"""Trains the demo model and writes it as a GGUF.

    make_data.py --count 600000 --out data.jsonl
    train.py --data data.jsonl --work DIR --minutes 55 --gguf demo.gguf

The work folder has the tokenizer, the token ids of the data and one
checkpoint.  --resume starts with the weights of that checkpoint, --start
FILE.gguf with the weights and the tokenizer of that file.

Some batches follow a long text (prefix.py), as an agent's question follows its
prompt.
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
from model import Config, Qwen3, compile_parts
from muon import Muon
from prefix import Prefixes

MICRO_TOKENS = 8192             # tokens of one forward pass, padding included
PAD_TO = 16                     # lengths are rounded up to a multiple of this
BUFFER = 8192                   # samples that are sorted by length together
MAX_TOKENS = 1100               # longer samples are left out
LONGEST_STEP = 5.0              # seconds; longer steps include a pause
BEHIND_TEXT = 0.35              # share of micro-batches after a long text
PROMPT_LOSS = 0.04              # share of samples with loss on the prompt, too


# -- data ---------------------------------------------------------------------

def load_texts(path):
    """(prompt, answer) of each line that make_data.py wrote."""
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
    """The tokenizer at path; trained on the first samples if it is missing."""
    if not path.exists():
        texts = []
        for prompt, answer in load_texts(data):
            texts.append(prompt + answer)
            if len(texts) == sample:
                break
        demo_tokenizer.train(texts).save(str(path))
    return Tokenizer.from_file(str(path))


def earlier_answers(ids, turn, assistant, end):
    """Marks the ids of earlier assistant turns in a prompt that have a loss:
    those of each turn, with its <|im_end|>, except the first one, because the
    template writes earlier turns without the <think> block before it."""
    marks = np.zeros(len(ids), dtype=bool)
    ids = np.asarray(ids)
    ends = np.flatnonzero(ids == end)
    for at in np.flatnonzero(ids[:-1] == turn):
        if ids[at + 1] == assistant:
            stop = ends[ends > at]
            if len(stop):
                marks[at + 4:stop[0] + 1] = True
    return marks


class Corpus:
    """All samples as one array of ids, with marks of the ids that have a loss,
    and the start of each sample."""

    def __init__(self, data, tok, cache):
        if not cache.exists():
            self._encode(data, tok, cache)
        z = np.load(cache)
        self.ids, self.marks, self.starts = z["ids"], z["marks"], z["starts"]
        self.lengths = np.diff(self.starts)
        self.turn = tok.token_to_id("<|im_start|>")

    @staticmethod
    def _encode(data, tok, cache):
        eos = tok.token_to_id(demo_tokenizer.EOS)
        turn = tok.token_to_id("<|im_start|>")
        assistant = tok.encode("assistant").ids[0]
        ids, marks, starts = [], [], [0]
        batch = []

        def flush():
            prompts = tok.encode_batch([p for p, _ in batch])
            replies = tok.encode_batch([a for _, a in batch])
            for p, r in zip(prompts, replies):
                one = p.ids + r.ids + [eos]
                if len(one) <= MAX_TOKENS:
                    ids.append(np.array(one, dtype=np.uint16))
                    starts.append(starts[-1] + len(one))
                    marks.append(earlier_answers(p.ids, turn, assistant, eos))
                    marks.append(np.ones(len(r.ids) + 1, dtype=bool))
            batch.clear()

        for pair in load_texts(data):
            batch.append(pair)
            if len(batch) == 2000:
                flush()
        flush()
        np.savez(cache, ids=np.concatenate(ids), starts=np.array(starts),
                 marks=np.concatenate(marks))

    def batches(self, rng):
        """Micro-batches of samples of similar lengths, in random order."""
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

    def _learned(self, i, rng):
        """The marks of sample i without its first id: its answers, or
        sometimes, for a conversation of one turn, all ids."""
        at, end = self.starts[i], self.starts[i + 1]
        if rng.random() < PROMPT_LOSS and np.count_nonzero(
                self.ids[at:end] == self.turn) <= 3:
            return True
        return self.marks[at + 1:end]

    def _tensors(self, group, rng):
        """ids [n, width], and the mask of positions whose next id has a
        loss."""
        width = -(-max(self.lengths[i] for i in group) // PAD_TO) * PAD_TO
        ids = np.zeros((len(group), width), dtype=np.int64)
        mask = np.zeros((len(group), width), dtype=bool)
        for row, i in enumerate(group):
            n = self.lengths[i]
            ids[row, :n] = self.ids[self.starts[i]:self.starts[i] + n]
            mask[row, :n - 1] = self._learned(i, rng)
        return torch.from_numpy(ids), torch.from_numpy(mask)


# -- optimisation -------------------------------------------------------------

def make_optimizers(model, lr):
    """Muon for matrices of the blocks, AdamW for the embedding and norms."""
    matrices = [p for p in model.blocks.parameters() if p.dim() == 2]
    norms = [p for p in model.parameters() if p.dim() == 1]
    return [
        Muon(matrices, lr),
        torch.optim.AdamW([
            {"params": [model.embed.weight], "weight_decay": 0.01},
            {"params": norms, "weight_decay": 0.0}],
            lr=lr, betas=(0.9, 0.98), fused=True)]


def lr_at(progress, warmup=0.02, floor=0.02):
    """Factor of the learning rate at a progress of 0..1."""
    if progress < warmup:
        return progress / warmup + 1e-3
    x = (progress - warmup) / (1 - warmup)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(x, 1)))


def loss_of(model, ids, mask, behind):
    """Mean loss at the masked positions of a micro-batch; behind: the result
    of Prefixes.draw(), or empty."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = model.hidden(ids, *behind)[:, :-1][mask[:, :-1]]
        logits = model.head(hidden)
    return F.cross_entropy(logits.float(), ids[:, 1:][mask[:, :-1]])


# -- the run ------------------------------------------------------------------

class Run:
    def __init__(self, args):
        self.args = args
        self.work = Path(args.work)
        self.work.mkdir(parents=True, exist_ok=True)
        if args.start:
            self.model, self.tok, _ = gguf_io.read(args.start)
            self.model.train()
        else:
            self.tok = make_tokenizer(args.data, self.work / "tokenizer.json")
            self.model = Qwen3(Config(vocab=self.tok.get_vocab_size()))
        self.corpus = Corpus(args.data, self.tok,
                             self.work / f"{Path(args.data).stem}.npz")
        self.checkpoint = self.work / "checkpoint.pt"
        if args.resume:
            self.model.load_state_dict(torch.load(self.checkpoint))
        if args.compile:
            compile_parts()
        self.rng = random.Random(args.seed + 1)
        self.prefixes = Prefixes(self.model, self.tok, self.rng)

    def save(self):
        torch.save(self.model.state_dict(), self.checkpoint)
        gguf_io.write(self.args.gguf, self.model, self.tok)

    def train(self):
        args = self.args
        optimizers = make_optimizers(self.model, args.lr)
        batches = self.corpus.batches(random.Random(args.seed))
        began, step, tokens, mean = time.time(), 0, 0, None
        saved, progress, end = began, 0.0, began + args.minutes * 60
        while progress < 1 - 1e-4:
            now = time.time()
            loss, n = self.step(optimizers, batches, lr_at(progress))
            progress = self.progress(progress, step + 1, now, end)
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

    def progress(self, before, steps, began, end):
        """The progress after a step that began at the time `began`.  A pause of
        the process is not progress; it makes later steps count for more."""
        if self.args.steps:
            return steps / self.args.steps
        took = min(time.time() - began, LONGEST_STEP)
        return before + (1 - before) * min(took / max(end - began, took), 1)

    def step(self, optimizers, batches, scale):
        """One update from args.accumulate micro-batches."""
        total, tokens = 0.0, 0
        for _ in range(self.args.accumulate):
            ids, mask = next(batches)
            behind = ()
            if self.rng.random() < BEHIND_TEXT:
                behind = self.prefixes.draw()
            loss = loss_of(self.model, ids, mask, behind)
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
    p.add_argument("--start", help="a GGUF to start from")
    p.add_argument("--compile", action=argparse.BooleanOptionalAction,
                   default=True)
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    Run(args).train()


if __name__ == "__main__":
    main()
