#!/usr/bin/env python3
"""llama-server's own tests, of tools/server/tests, against this server.

usage: server.py [pytest's arguments]

LLAMA_CPP is a checkout of llama.cpp (its tests, its chat templates, gguf-py),
of which nothing is changed.  The tests start llama_server.py in place of
llama-server.  Their models come from the Internet, so small ones stand in for
them: the demo model, it with other metadata, random weights with vocabularies
for which the tests' numbers of tokens are right, and files of LLM_FIXTURES.
What a model writes is not compared with what theirs writes: match_regex, which
all of the tests use for that, is true for any text.  Addresses of files on the
Internet are answered from LLM_FIXTURES.  The empty content with which a streamed
chat begins below v1/ is read as null, as llama-server has it.

A test that server.md lists cannot apply, for the reason that stands there: it
is not run.  With PEER_ALL=1 it is.  Nothing of this is part of
`./build.sh test`; it needs pytest and what the tests' requirements.txt names.
"""

import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OBJS = Path(os.environ.get("LLM_OBJS", ROOT / "objs"))
OUT = OBJS / "peer-server"
LLAMA_CPP = Path(os.environ.get("LLAMA_CPP", "/"))
TESTS = LLAMA_CPP / "tools/server/tests"
FIXTURES = Path(os.environ.get("LLM_FIXTURES", ROOT / "../shared/fixtures"))
DEMO = ROOT / "models/demo.gguf"
PICTURES = {"11_truck.png": "img0.png", "91_cat.png": "img1.png"}
POOLINGS = {"none": 0, "mean": 1, "cls": 2, "last": 3, "rank": 4}
IMAGES = ("{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m.role }}\n"
          "{% if m.content is string %}{{ m.content }}{% else %}"
          "{% for p in m.content %}{{ '<start_of_image>' if p.type == 'image' "
          "else p.text }}{% endfor %}{% endif %}<end_of_turn>\n{% endfor %}"
          "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}")
CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
          "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
          "<|im_start|>assistant\n{% endif %}")


# ---- the stand-ins ----

def gguf():
    sys.path.insert(0, str(LLAMA_CPP / "gguf-py"))
    import gguf as module
    return module


def copy_keys(w, reader, but):
    """Copies the metadata of a file, but for keys that begin so."""
    g = gguf()
    for f in reader.fields.values():
        if f.name.startswith(("GGUF.", "general.architecture", *but)):
            continue
        value = f.contents()
        kind = f.types[0]
        sub = f.types[-1] if kind == g.GGUFValueType.ARRAY else None
        w.add_key_value(f.name, value, kind, sub)


def remake(source, name, keys=None, tensors=None, but=()):
    """A model with other metadata (name: type, value), and more tensors."""
    g = gguf()
    r = g.GGUFReader(source)
    arch = r.get_field("general.architecture").contents()
    w = g.GGUFWriter(OUT / name, arch)
    keys = keys or {}
    copy_keys(w, r, [*keys, *but])
    for key, (kind, value) in keys.items():
        if value is not None:
            getattr(w, "add_" + kind)(key, value)
    for t in r.tensors:
        if t.name not in (tensors or {}):
            w.add_tensor(t.name, t.data, raw_dtype=t.tensor_type)
    for tensor, data in (tensors or {}).items():
        w.add_tensor(tensor, data)
    finish(w)


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def pieces():
    """The words of the small vocabulary, the first that are joined first."""
    return json.loads((HERE / "server_words.json").read_text())


def make_llama(name, tokens, scores, types, embd):
    """A llama with random weights and these words."""
    g = gguf()
    rng = np.random.default_rng(11)
    heads, ff, layers = 4, 2 * embd, 2
    w = g.GGUFWriter(OUT / name, "llama")
    w.add_name("llama-server's tests")
    w.add_context_length(8192)
    w.add_embedding_length(embd)
    w.add_block_count(layers)
    w.add_feed_forward_length(ff)
    w.add_head_count(heads)
    w.add_head_count_kv(heads)
    w.add_rope_dimension_count(embd // heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_vocab_size(len(tokens))
    w.add_tokenizer_model("llama")
    w.add_token_list(tokens)
    w.add_token_scores(scores)
    w.add_token_types(types)
    w.add_bos_token_id(1)
    w.add_eos_token_id(2)
    w.add_unk_token_id(0)
    w.add_add_bos_token(True)
    w.add_chat_template(CHATML)

    def matrix(name, rows, columns, size):
        w.add_tensor(name, rng.normal(0, size, (rows, columns))
                     .astype(np.float32))

    def ones(name):
        w.add_tensor(name, np.ones(embd, np.float32))

    matrix("token_embd.weight", len(tokens), embd, 1.0)
    output = rng.normal(0, 0.2, (len(tokens), embd)).astype(np.float32)
    output[:259] = 0                    # bytes and control tokens are rare
    w.add_tensor("output.weight", output)
    ones("output_norm.weight")
    for i in range(layers):
        at = f"blk.{i}."
        ones(at + "attn_norm.weight")
        ones(at + "ffn_norm.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"{at}{part}.weight", embd, embd, 0.12)
        matrix(at + "ffn_gate.weight", ff, embd, 0.12)
        matrix(at + "ffn_up.weight", ff, embd, 0.12)
        matrix(at + "ffn_down.weight", embd, ff, 0.12)
    finish(w)


def make_text():
    """512 tokens, as many in the tests' texts as the tests have counted."""
    words = pieces()
    letters = [chr(c) for c in range(33, 127)] + ["\u2581"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)]
    scores = [0.0] * len(tokens)
    types = [2, 3, 3] + [6] * 256
    for i, word in enumerate(words + letters):
        tokens.append(word)
        scores.append(-float(i))
        types.append(1)
    while len(tokens) < 512:
        tokens.append(f"\u2581unused{len(tokens)}")
        scores.append(-1000.0 - len(tokens))
        types.append(1)
    make_llama("text.gguf", tokens, scores, types, 64)


def make_large():
    """The vocabulary of Llama 2, for a model and for one that drafts."""
    r = gguf().GGUFReader(FIXTURES / "tokenizers/ggml-vocab-llama-spm.gguf")
    make_llama("moe.gguf", *(
        r.get_field("tokenizer.ggml." + key).contents()
        for key in ("tokens", "scores", "token_type")), 32)


def make_encoder():
    """A BERT with random weights and bge-small's vocabulary, for each way of
    pooling."""
    g = gguf()
    small = FIXTURES / "models/bert-f16.gguf"
    vocab = g.GGUFReader(FIXTURES / "tokenizers/ggml-vocab-bert-bge.gguf")
    rng = np.random.default_rng(12)
    embd = rng.normal(0, 1, (30522, 128)).astype(np.float16)
    for pooling, number in {"": 2, **POOLINGS}.items():
        w = g.GGUFWriter(
            OUT / ("encoder" + (f"-{pooling}" if pooling else "") + ".gguf"),
            "bert")
        r = g.GGUFReader(small)
        copy_keys(w, r, ["tokenizer.", "bert.pooling_type",
                         "bert.context_length"])
        copy_keys(w, vocab, ["general.", "bert."])
        w.add_uint32("bert.context_length", 1024)
        w.add_uint32("bert.pooling_type", number)
        for t in r.tensors:
            if t.name == "token_embd.weight":
                w.add_tensor(t.name, embd)
            elif t.name == "position_embd.weight":
                w.add_tensor(t.name, np.concatenate([t.data, t.data]))
            else:
                w.add_tensor(t.name, t.data, raw_dtype=t.tensor_type)
        finish(w)


def make_ranker():
    rng = np.random.default_rng(13)
    head = rng.normal(0, 1, (2, 256)).astype(np.float32)
    remake(DEMO, "ranker.gguf", {
        "qwen3.pooling_type": ("uint32", POOLINGS["rank"]),
        "qwen3.classifier.output_labels": ("array", ["yes", "no"]),
        "tokenizer.chat_template.rerank": (
            "string", "{query}\n{document}\n")},
        {"cls.output.weight": head})


def make_all():
    OUT.mkdir(parents=True, exist_ok=True)
    make_text()
    make_large()
    make_encoder()
    make_ranker()
    shutil.copy(DEMO, OUT / "chat.gguf")
    shutil.copy(OUT / "moe.gguf", OUT / "draft.gguf")
    remake(DEMO, "infill.gguf", {
        f"tokenizer.ggml.fim_{name}_token_id": ("uint32", i)
        for i, name in enumerate(("pre", "suf", "mid"), 3)})
    vision = FIXTURES / "vision/gemma3"
    shutil.copy(vision / "text.gguf", OUT / "vision.gguf")
    shutil.copy(vision / "mmproj.gguf", OUT / "mmproj.gguf")
    (OUT / "vision.jinja").write_text(IMAGES)
    (OUT / "pictures").mkdir(exist_ok=True)
    (OUT / "pictures/page.html").write_text("<!doctype html>\n")
    for name, file in PICTURES.items():
        shutil.copy(vision / file, OUT / "pictures" / name)
    subprocess.run(
        ["perl", f"-I{ROOT}/t/lib", "-MLLM::GGUF", "-e",
         "LLM::GGUF::split(@ARGV)", DEMO, OUT / "split", "3"], check=True)


# ---- pytest's plugin ----

def rows():
    """Patterns of tests that cannot apply, with the reason."""
    text = (HERE / "server.md").read_text()
    return re.findall(r"^\| `(.+?)` \| (.+?) \|$", text, re.M)


def pytest_configure(config):
    sys.path.insert(0, str(TESTS))
    import requests
    import utils
    import wget

    utils.match_regex = lambda regex, text: True
    utils.ServerPreset.load_all = staticmethod(lambda: None)
    get = requests.get

    def local(url, *args, **more):
        name = url.rsplit("/", 1)[-1]
        if not url.startswith("https://") or name not in PICTURES:
            return get(url, *args, **more)
        answer = requests.Response()
        answer.status_code = 200
        answer._content = (OUT / "pictures" / name).read_bytes()
        return answer

    def download(url, out=None, **_):
        shutil.copy(OUT / "draft.gguf", out)

    requests.get = local
    wget.download = download
    utils.ServerProcess.make_stream_request = streamed(
        utils.ServerProcess.make_stream_request)


def streamed(request):
    """Below v1/ the first chunk of a chat has OpenAI's empty content, where
    llama-server has null, which its tests of streamed calls insist on."""

    def read(*args, **more):
        for i, chunk in enumerate(request(*args, **more)):
            for choice in chunk.get("choices", []) if i == 0 else []:
                if choice.get("delta", {}).get("content") == "":
                    choice["delta"]["content"] = None
            yield chunk

    return read


def pytest_collection_modifyitems(config, items):
    import pytest

    if os.environ.get("PEER_ALL"):
        return
    unused = dict(rows())
    for item in items:
        for pattern, reason in rows():
            name = item.nodeid.removeprefix("unit/")
            if fnmatch.fnmatch(re.sub(r"[\[\]]", "~", name),
                               re.sub(r"[\[\]]", "~", pattern)):
                item.add_marker(pytest.mark.skip(reason=reason))
                unused.pop(pattern, None)
                break
    if len(items) > 300:
        for pattern in unused:
            print(f"server.md: no test is {pattern}", file=sys.stderr)


def main():
    make_all()
    (TESTS / "tmp").mkdir(exist_ok=True)
    env = dict(
        os.environ, PEER_MODELS=str(OUT), PYTHONPATH=str(HERE),
        PEER_TEMPLATES=str(FIXTURES / "chat-templates"),
        LLAMA_SERVER_BIN_PATH=str(HERE / "llama_server.py"))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "server", *sys.argv[1:]],
        cwd=TESTS, env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
