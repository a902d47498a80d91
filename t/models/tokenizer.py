"""The demo model's tokenizer: byte-level BPE with qwen2's pre-tokenizer.

Order of the ids: the 256 bytes, the merges, the special tokens.
"""

import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

VOCAB_SIZE = 2048

CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<think>", "</think>", "<tool_call>", "</tool_call>",
                "<tool_response>", "</tool_response>"]
EOS, PAD = "<|im_end|>", "<|endoftext|>"

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def _assemble(model):
    tok = Tokenizer(model)
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN2), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    return tok


def _add_specials(tok):
    tok.add_special_tokens([AddedToken(t, normalized=False) for t in CONTROL])
    tok.add_tokens([AddedToken(t, normalized=False) for t in USER_DEFINED])
    return tok


def train(texts):
    """Trains a tokenizer of VOCAB_SIZE ids on an iterable of strings."""
    tok = _assemble(BPE())
    trainer = BpeTrainer(
        vocab_size=VOCAB_SIZE - len(CONTROL) - len(USER_DEFINED),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False)
    tok.train_from_iterator(texts, trainer)
    return _add_specials(tok)


def from_lists(tokens, merges):
    """The tokenizer of the lists in a GGUF file."""
    specials = set(CONTROL + USER_DEFINED)
    vocab = {t: i for i, t in enumerate(tokens) if t not in specials}
    pairs = [tuple(m.split(" ")) for m in merges]
    return _add_specials(_assemble(BPE(vocab=vocab, merges=pairs)))


def to_lists(tok):
    """(tokens by id, merges as "left right"), in the form of GGUF."""
    size = tok.get_vocab_size()
    tokens = [tok.id_to_token(i) for i in range(size)]
    merges = json.loads(tok.to_str())["model"]["merges"]
    return tokens, [m if isinstance(m, str) else " ".join(m) for m in merges]
