"""Writes and reads the demo model as a GGUF file (Q8_0 matrices, F32 norms).

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import numpy as np
import torch
from gguf import (GGMLQuantizationType, GGUFReader, GGUFWriter, TokenType,
                  dequantize, quantize)

import tokenizer as demo_tokenizer
from chat import TEMPLATE
from model import Config, Qwen3

ARCH = "qwen3"
BLOCK_NAMES = {
    "attn_norm": "attn_norm", "attn.q": "attn_q", "attn.k": "attn_k",
    "attn.v": "attn_v", "attn.o": "attn_output", "attn.q_norm": "attn_q_norm",
    "attn.k_norm": "attn_k_norm", "ffn_norm": "ffn_norm",
    "ffn.gate": "ffn_gate", "ffn.up": "ffn_up", "ffn.down": "ffn_down",
}


def tensor_name(name):
    """The name in GGUF of a parameter of the model."""
    if name == "embed.weight":
        return "token_embd.weight"
    if name == "norm.weight":
        return "output_norm.weight"
    _, layer, rest = name.split(".", 2)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{BLOCK_NAMES[part]}.{kind}"


def _write_config(w, cfg):
    w.add_type("model")
    w.add_name("nginx-llm demo")
    w.add_description("A very small chat model made for ngx_http_llm_module")
    w.add_context_length(cfg.context)
    w.add_rope_scaling_orig_ctx_len(cfg.longest)
    w.add_embedding_length(cfg.dim)
    w.add_block_count(cfg.layers)
    w.add_feed_forward_length(cfg.ffn)
    w.add_head_count(cfg.heads)
    w.add_head_count_kv(cfg.kv_heads)
    w.add_key_length(cfg.head_dim)
    w.add_value_length(cfg.head_dim)
    w.add_rope_freq_base(cfg.rope_base)
    w.add_layer_norm_rms_eps(cfg.eps)
    w.add_vocab_size(cfg.vocab)
    w.add_file_type(7)                                  # mostly Q8_0
    w.add_quantization_version(2)


def _token_type(token):
    if token in demo_tokenizer.CONTROL:
        return TokenType.CONTROL
    if token in demo_tokenizer.USER_DEFINED:
        return TokenType.USER_DEFINED
    return TokenType.NORMAL


def _write_tokenizer(w, tok):
    tokens, merges = demo_tokenizer.to_lists(tok)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types([_token_type(t) for t in tokens])
    w.add_token_merges(merges)
    w.add_bos_token_id(tok.token_to_id(demo_tokenizer.PAD))
    w.add_eos_token_id(tok.token_to_id(demo_tokenizer.EOS))
    w.add_eot_token_id(tok.token_to_id(demo_tokenizer.EOS))
    w.add_pad_token_id(tok.token_to_id(demo_tokenizer.PAD))
    w.add_add_bos_token(False)
    w.add_chat_template(TEMPLATE.read_text(encoding="utf-8"))


def write(path, model, tok):
    """Writes the model and its tokenizer to path."""
    w = GGUFWriter(path, ARCH)
    _write_config(w, model.cfg)
    _write_tokenizer(w, tok)
    for name, p in model.state_dict().items():
        data = p.detach().float().numpy()
        if data.ndim == 2:
            kind = GGMLQuantizationType.Q8_0
            w.add_tensor(tensor_name(name), quantize(data, kind),
                         raw_dtype=kind)
        else:
            w.add_tensor(tensor_name(name), data.astype(np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def _field(reader, key):
    return reader.get_field(key).contents()


def _read_config(r):
    def get(key):
        return _field(r, f"{ARCH}.{key}")

    return Config(
        vocab=len(_field(r, "tokenizer.ggml.tokens")),
        dim=get("embedding_length"), layers=get("block_count"),
        heads=get("attention.head_count"),
        kv_heads=get("attention.head_count_kv"),
        head_dim=get("attention.key_length"),
        ffn=get("feed_forward_length"), context=get("context_length"),
        rope_base=get("rope.freq_base"),
        eps=get("attention.layer_norm_rms_epsilon"))


def read(path):
    """(model, tokenizer, chat template) of a file that write() made."""
    r = GGUFReader(path)
    model = Qwen3(_read_config(r))
    tensors = {t.name: t for t in r.tensors}
    state = {}
    for name in model.state_dict():
        t = tensors.pop(tensor_name(name))
        data = dequantize(t.data, t.tensor_type)
        state[name] = torch.from_numpy(np.array(data, dtype=np.float32))
    if tensors:
        raise ValueError(f"{path}: unexpected tensors {sorted(tensors)}")
    model.load_state_dict(state)
    tok = demo_tokenizer.from_lists(_field(r, "tokenizer.ggml.tokens"),
                                    _field(r, "tokenizer.ggml.merges"))
    return model.eval(), tok, _field(r, "tokenizer.chat_template")
