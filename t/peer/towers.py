#!/usr/bin/env python3
"""Towers that no fixture has, beside transformers.

usage: towers.py [--device cpu|emu|cuda] [NAME ...]

For each family: random weights, the rows that transformers makes of images
from them in float64, and an mmproj file that llama.cpp's own converter makes
(for LLaVA, whose script needs another transformers, one with the same names).
Then what objs/llm makes of the same images: the pixels have to be Pillow's, the
rows of the reference kernels within 10^-4 of the rows' deviation, of a file in
Q8_0 within 0.02; the device's kernels are shown beside them.

Encoders of sound get samples, and what transformers' feature extractor makes of
them; of Qwen2.5-Omni's file, which has a tower of images, too, the half that is
of sound.  Qwen3-ASR's and Qwen3-Omni's files are written with the converter's
names.

Kimi VL is in no transformers.  Its tower is that of Kimi K2.5, which is, but
for the order of Q and K in files.

LLAMA_CPP is a checkout of llama.cpp.  Nothing is fetched, and nothing of this
is part of `./build.sh test`: see requirements.txt for what it needs, and
Pillow 13.
"""

import argparse
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[2]
OBJS = Path(os.environ.get("LLM_OBJS", ROOT / "objs"))
OUT = OBJS / "peer"
LLAMA_CPP = Path(os.environ.get("LLAMA_CPP", "."))
LIMIT = 1e-4
SIZES = [(150, 100), (31, 77), (224, 224), (300, 40)]

sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]


def fill(model):
    """weights that float16 holds, and in which each part counts"""
    gen = torch.Generator().manual_seed(1)

    with torch.no_grad():
        for p in model.parameters():
            x = torch.randn(p.shape, generator=gen, dtype=torch.float64)
            x = (x * 0.1 + (p if p.ndim < 2 else 0) if p.ndim < 2
                 else x / (20 if p.ndim == 3 else p[0].numel() ** 0.5))
            p.copy_(x.half().double())

    return model.double().eval()


def patches(rgb, mean, std):
    """[3][h][w] of bytes"""
    x = rgb.astype(np.float64) / 255
    return torch.tensor((x - mean) / std).permute(2, 0, 1)


def middle(image, side, mean):
    """LLaVA's processor with do_pad, which the original code does"""
    kind = transformers.models.llava.image_processing_pil_llava
    kind = kind.LlavaImageProcessorPil
    made = kind(do_pad=True, size={"shortest_edge": side}, do_rescale=False,
                crop_size={"height": side, "width": side}, do_normalize=False,
                image_mean=list(mean))(image, return_tensors="np")
    return made["pixel_values"][0].transpose(1, 2, 0).round().astype("u1")


class Llava:
    mean = np.array([0.48145466, 0.4578275, 0.40821073])
    std = np.array([0.26862954, 0.26130258, 0.27577711])

    def __init__(self):
        torch.manual_seed(0)
        self.model = fill(transformers.LlavaModel(transformers.LlavaConfig(
            vision_config=dict(
                model_type="clip_vision_model", hidden_size=64,
                intermediate_size=160, num_hidden_layers=4, image_size=56,
                num_attention_heads=4, patch_size=14, projection_dim=24),
            text_config=dict(
                model_type="llama", hidden_size=96, intermediate_size=128,
                num_hidden_layers=1, num_attention_heads=2, vocab_size=128))))

    def convert(self, folder, path, kind):
        """as the script in llama.cpp's tools/mtmd/legacy-models names things:
        the last layer is left out, and the network's matrices have each
        other's names"""
        import gguf

        v = "clip.vision."
        f = gguf.GGUFWriter(path, "clip")

        for key, x in ("has_text_encoder", 0), ("has_vision_encoder", 1), \
                ("has_llava_projector", 1), ("use_gelu", 0):
            f.add_bool("clip." + key, bool(x))

        f.add_string("clip.projector_type", "mlp")

        for key, x in dict(image_size=56, patch_size=14, embedding_length=64,
                           feed_forward_length=160, projection_dim=24,
                           block_count=3).items():
            f.add_uint32(v + key, x)

        f.add_uint32(v + "attention.head_count", 4)
        f.add_float32(v + "attention.layer_norm_epsilon", 1e-5)
        f.add_array(v + "image_mean", self.mean.tolist())
        f.add_array(v + "image_std", self.std.tolist())

        for k, x in self.model.state_dict().items():
            if "layers.3." in k or "language" in k or "post_layer" in k \
                    or "position_ids" in k:
                continue

            for old, new in (
                    ("vision_tower.", "v."), ("vision_model.", ""),
                    ("multi_modal_projector.linear_1", "mm.0"),
                    ("multi_modal_projector.linear_2", "mm.2"),
                    ("encoder.layers", "blk"), ("embeddings.", ""),
                    ("_proj", ""), ("self_attn.", "attn_"),
                    ("layer_norm", "ln"), ("layrnorm", "ln"),
                    ("mlp.fc1", "ffn_down"), ("mlp.fc2", "ffn_up"),
                    ("embedding", "embd")):
                k = k.replace(old, new)

            x = x.float().numpy()
            half = x.ndim == 4 or (kind == "f16" and x.ndim == 2)
            f.add_tensor(k, x.astype("f2") if half else x)

        f.write_header_to_file()
        f.write_kv_data_to_file()
        f.write_tensors_to_file()
        f.close()

    def pixels(self, image):
        return middle(image, 56, self.mean)

    def rows(self, rgb):
        x = patches(rgb, self.mean, self.std)[None]
        out = self.model.get_image_features(
            x, vision_feature_layer=-2,
            vision_feature_select_strategy="default")
        return out.pooler_output[0]


def hf_convert(folder, path, kind, name):
    import gguf
    from conversion import ModelBase, ModelType, get_model_class

    logging.disable(logging.INFO)
    types = {"f32": gguf.LlamaFileType.ALL_F32,
             "f16": gguf.LlamaFileType.MOSTLY_F16,
             "q8_0": gguf.LlamaFileType.MOSTLY_Q8_0}

    with torch.inference_mode():
        get_model_class(name, mmproj=True)(folder, types[kind],
                                           path).write()


class Gemma4uv:
    mean, std = np.zeros(3), np.ones(3)

    def __init__(self):
        torch.manual_seed(0)
        c = transformers.Gemma4UnifiedConfig(
            vision_config=dict(patch_size=16, pooling_kernel_size=3,
                               mm_embed_dim=64, mm_posemb_size=60,
                               output_proj_dims=64),
            audio_config=dict(audio_embed_dim=32, output_proj_dims=32),
            text_config=dict(hidden_size=96, num_hidden_layers=1,
                             num_attention_heads=2, num_key_value_heads=1,
                             intermediate_size=64, vocab_size=128,
                             head_dim=32, global_head_dim=32,
                             layer_types=["full_attention"]))
        self.c = c
        kind = transformers.models.gemma4_unified.modeling_gemma4_unified
        self.model = fill(kind.Gemma4UnifiedVisionEmbedder(
            c.vision_config, c.text_config))
        self.audio = fill(kind.Gemma4UnifiedMultimodalEmbedder(
            c.audio_config, c.text_config))

    def convert(self, folder, path, kind):
        said = self.c.to_dict()
        said["architectures"] = ["Gemma4UnifiedForConditionalGeneration"]
        (folder / "config.json").write_text(json.dumps(said, default=str))
        (folder / "preprocessor_config.json").write_text(json.dumps(
            dict(image_mean=[0.0] * 3, image_std=[1.0] * 3)))
        names = {f"model.vision_embedder.{k}"
                 if "multimodal" not in k else
                 k.replace("multimodal_embedder.", "model.embed_vision."): v
                 for k, v in self.model.state_dict().items()}
        names.update({f"model.embed_audio.{k}": v for k, v
                      in self.audio.state_dict().items()})
        save_file({k: v.float().contiguous() for k, v in names.items()},
                  folder / "model.safetensors")
        hf_convert(folder, path, kind, said["architectures"][0])

    def pixels(self, image):
        w, h = image.size
        f = math.sqrt(280 * 48 * 48 / (w * h))
        return np.array(image.resize(
            (int(f * w / 48) * 48, int(f * h / 48) * 48),
            Image.Resampling.BICUBIC))

    def rows(self, rgb):
        h, w = rgb.shape[0] // 48, rgb.shape[1] // 48
        x = torch.tensor(rgb / 255.0).reshape(h, 48, w, 48, 3)
        x = x.permute(0, 2, 1, 3, 4).reshape(1, h * w, -1)
        y, c = [torch.tensor(a.reshape(-1)) for a in np.mgrid[:h, :w]]
        return self.model(x, torch.stack([c, y], 1)[None]).pooler_output[0]


class Kimi:
    mean = std = np.full(3, 0.5)

    def __init__(self):
        torch.manual_seed(0)
        k25 = transformers.models.kimi_k25
        c = k25.configuration_kimi_k25.Kimi_K25VisionConfig(
            hidden_size=64, intermediate_size=160, num_hidden_layers=3,
            num_attention_heads=2, pos_emb_height=9, pos_emb_width=9)
        c._attn_implementation = "eager"
        self.model = fill(k25.modeling_kimi_k25.Kimi_K25VisionModel(c))
        self.projector = fill(torch.nn.ModuleDict(dict(
            pre_norm=torch.nn.LayerNorm(64),
            linear_1=torch.nn.Linear(256, 256),
            linear_2=torch.nn.Linear(256, 96))))

    def convert(self, folder, path, kind):
        name = "KimiVLForConditionalGeneration"
        (folder / "config.json").write_text(json.dumps(dict(
            architectures=[name], text_config=dict(hidden_size=96),
            vision_config=dict(
                model_type="moonvit", hidden_size=64, intermediate_size=160,
                num_hidden_layers=3, num_attention_heads=2, patch_size=14,
                init_pos_emb_height=9, init_pos_emb_width=9,
                merge_kernel_size=[2, 2]))))
        (folder / "preprocessor_config.json").write_text(json.dumps(
            dict(image_mean=[0.5] * 3, image_std=[0.5] * 3)))
        said = {}

        def neighbours(x):
            """pairs that are half a head apart, side by side"""
            x = x.reshape(2, 2, 16, -1).transpose(1, 2)
            return x.reshape(64, -1)

        for k, v in self.model.state_dict().items():
            k = k.replace("layers.", "encoder.blocks.")
            k = k.replace("norm2.", "norm1x.").replace("norm1.", "norm0.")
            k = k.replace("norm1x.", "norm1.").replace("attn.proj.", "wo.")
            k = k.replace("mlp.fc1.", "mlp.fc0.x").replace(
                "mlp.fc2.", "mlp.fc1.").replace("fc0.x", "fc0.")
            k = k.replace("final_layernorm", "encoder.final_layernorm")
            k = k.replace("pos_emb.position_embeddings", "pos_emb.weight")
            said["vision_tower." + k] = v

        for i in range(3):
            b = f"vision_tower.encoder.blocks.{i}."
            for end in "weight", "bias":
                q, k, v = [said.pop(f"{b}attn.{n}_proj.{end}") for n in "qkv"]
                q, k = [neighbours(x).reshape(x.shape) for x in (q, k)]
                said[f"{b}wqkv.{end}"] = torch.cat([q, k, v])

        said.update({f"multi_modal_projector.{k}": v for k, v
                     in self.projector.state_dict().items()})
        save_file({k: v.float().contiguous() for k, v in said.items()},
                  folder / "model.safetensors")
        hf_convert(folder, path, kind, name)

    def pixels(self, image):
        w, h = image.size
        whole = Image.new("RGB", (w + -w % 28, h + -h % 28))
        whole.paste(image, (0, 0))
        return np.array(whole)

    def rows(self, rgb):
        h, w = rgb.shape[0] // 14, rgb.shape[1] // 14
        x = patches(rgb, self.mean, self.std)
        x = x.reshape(3, h, 14, w, 14).permute(1, 3, 0, 2, 4)
        p = self.projector
        y = self.model(x.reshape(h * w, 3, 14, 14),
                       torch.tensor([[1, h, w]])).pooler_output
        y = p["pre_norm"](y).reshape(-1, 256)
        y = torch.nn.functional.gelu(p["linear_1"](y))
        return p["linear_2"](y)


def features(samples, n, **how):
    """what Whisper's feature extractor makes of samples, filled up to n"""
    kind = transformers.WhisperFeatureExtractor(feature_size=128, **how)
    made = kind(samples, sampling_rate=16000, truncation=False,
                padding="max_length", max_length=n, return_tensors="np",
                return_attention_mask=True)
    return (torch.tensor(made["input_features"]).double(),
            int(made["attention_mask"].sum()))


class Ear:
    """an encoder of sound; LEN: samples that are encoded at once"""
    LEN = 480000
    SECONDS = [0.05, 3.1234, 30, 33.3]
    audio = dict(num_mel_bins=128, max_source_positions=1500)
    text = dict(hidden_size=96, intermediate_size=128, num_hidden_layers=1,
                num_attention_heads=2, num_key_value_heads=2, vocab_size=128)

    def convert(self, folder, path, kind):
        said = self.model.config.to_dict()
        said["architectures"] = [self.name]
        (folder / "config.json").write_text(json.dumps(said, default=str))
        (folder / "preprocessor_config.json").write_text("{}")
        save_file({k.removeprefix("model."): v.float().contiguous()
                   for k, v in self.model.state_dict().items()
                   if "language" not in k and "lm_head" not in k},
                  folder / "model.safetensors")
        hf_convert(folder, path, kind, self.name)


def write_ear(path, kind, parts, projector, sees, names):
    """the file of an encoder of which llama.cpp's converter makes a part of
    another one's, or none"""
    import gguf

    f = gguf.GGUFWriter(path, "clip")
    f.add_string("clip.audio.projector_type" if "3" in projector
                 else "clip.projector_type", projector)
    f.add_bool("clip.has_vision_encoder", sees)
    f.add_bool("clip.has_audio_encoder", True)

    for key, x in dict(num_mel_bins=128, embedding_length=64,
                       feed_forward_length=160, block_count=3,
                       projection_dim=96).items():
        f.add_uint32("clip.audio." + key, x)

    f.add_uint32("clip.audio.attention.head_count", 4)
    f.add_float32("clip.audio.attention.layer_norm_epsilon", 1e-5)
    said = dict(parts)
    said["position_embd.weight"] = sinusoids(1500, 64)

    for k, x in said.items():
        for old, new in (
                ("layers.", "blk."), ("self_attn_layer_norm", "ln1"),
                ("final_layer_norm", "ln2"), ("self_attn.", "attn_"),
                ("out_proj", "out"), ("_proj", ""), ("fc1", "ffn_up"),
                ("fc2", "ffn_down"), ("ln_post", "post_ln"), *names):
            k = k.replace(old, new)

        if "audio_bos" in k or "positional_embedding" in k:
            continue

        k = k if k.startswith("mm.") else "a." + k
        x = x.float().numpy()
        x = x.reshape(-1, 1, 1) if "conv2d" in k and x.ndim == 1 else x
        half = "conv" in k and k.endswith("weight")
        half = half or (kind == "f16" and x.ndim == 2 and "posi" not in k)
        f.add_tensor(k, x.astype("f2") if half else x)

    f.write_header_to_file()
    f.write_kv_data_to_file()
    f.write_tensors_to_file()
    f.close()


def sinusoids(n, width):
    f = np.exp(-np.log(10000) / (width // 2 - 1) * np.arange(width // 2))
    x = np.arange(n)[:, None] * f
    return torch.tensor(np.concatenate([np.sin(x), np.cos(x)], 1))


class Voxtral(Ear):
    name = "VoxtralForConditionalGeneration"

    def __init__(self):
        torch.manual_seed(0)
        c = transformers.VoxtralConfig(
            audio_config=dict(self.audio, hidden_size=64,
                              intermediate_size=256, num_hidden_layers=3,
                              num_attention_heads=4),
            text_config=dict(self.text, model_type="llama"))
        c._attn_implementation = "eager"
        self.model = fill(transformers.VoxtralForConditionalGeneration(c))

    def hear(self, samples):
        x, _ = features(samples, -(-len(samples) // self.LEN) * self.LEN)
        x = x.reshape(128, -1, 3000).transpose(0, 1)
        return self.model.get_audio_features(x).pooler_output.reshape(-1, 96)


class Qwen2Audio(Ear):
    name = "Qwen2AudioForConditionalGeneration"

    def __init__(self):
        torch.manual_seed(0)
        c = transformers.Qwen2AudioConfig(
            audio_config=dict(self.audio, d_model=64, encoder_layers=3,
                              encoder_attention_heads=4, encoder_ffn_dim=160),
            text_config=dict(self.text, model_type="qwen2"))
        c._attn_implementation = "eager"
        self.model = fill(transformers.Qwen2AudioForConditionalGeneration(c))

    def hear(self, samples):
        """30 seconds are encoded by themselves, but for the loudest frame"""
        x, n = features(samples, -(-len(samples) // self.LEN) * self.LEN)
        core = self.model.model
        rows = []

        for i in range(0, n, 3000):
            own = (min(n - i, 3000) + 1) // 2
            mask = torch.zeros(1, 1, 1500, 1500, dtype=torch.double)
            mask[..., own:] = -math.inf
            out = core.audio_tower(x[..., i:i + 3000], attention_mask=mask)
            rows.append(core.multi_modal_projector(
                out.last_hidden_state)[0, :own // 2])

        return torch.cat(rows)


class Qwen25Omni(Ear):
    def __init__(self):
        torch.manual_seed(0)
        kind = transformers.models.qwen2_5_omni
        c = kind.configuration_qwen2_5_omni.Qwen2_5OmniAudioEncoderConfig(
            **self.audio, d_model=64, encoder_layers=3, output_dim=96,
            encoder_attention_heads=4, encoder_ffn_dim=160, n_window=100)
        c._attn_implementation = "eager"
        self.model = fill(
            kind.modeling_qwen2_5_omni.Qwen2_5OmniAudioEncoder(c))

    def convert(self, folder, path, kind):
        write_ear(path, kind, self.model.state_dict(), "qwen2.5o", False,
                  (("proj.", "mm.a.fc."), ("conv", "conv1d.")))

    def hear(self, samples):
        x, n = features(samples, -(-len(samples) // self.LEN) * self.LEN)
        return self.model(x[0, :, :n],
                          feature_lens=torch.tensor([n])).last_hidden_state


class Qwen3(Ear):
    """sounds of any length; one that sees has another processor"""
    SECONDS = [0.05, 0.13, 0.3, 0.505, 0.9301, 1, 1.0125, 1.5, 3.1234, 8,
               8.0101, 8.5, 12.34, 24, 24.08, 35.0421]
    names = (("proj1", "mm.a.mlp.1"), ("proj2", "mm.a.mlp.2"),
             ("linear_", "mm.a.mlp."), ("conv2d", "conv2d."))
    sizes = dict(num_mel_bins=128, d_model=64, encoder_layers=3, output_dim=96,
                 encoder_attention_heads=4, encoder_ffn_dim=160,
                 downsample_hidden_size=24)

    def convert(self, folder, path, kind):
        write_ear(path, kind, self.parts, "qwen3a", self.sees, self.names)


class Qwen3ASR(Qwen3):
    sees = False

    def __init__(self):
        torch.manual_seed(0)
        q = transformers.models.qwen3_asr
        c = q.configuration_qwen3_asr.Qwen3ASRConfig(
            audio_config=dict(self.sizes))
        c.audio_config._attn_implementation = "eager"
        kind = q.modeling_qwen3_asr
        self.tower = fill(kind.Qwen3ASREncoder(c.audio_config))
        self.projector = fill(kind.Qwen3ASRMultiModalProjector(c))
        self.parts = {**self.tower.state_dict(), **self.projector.state_dict()}

    def hear(self, samples):
        q = transformers.models.qwen3_asr
        made = q.feature_extraction_qwen3_asr.Qwen3ASRFeatureExtractor()(
            samples, sampling_rate=16000, padding=True, truncation=False,
            return_tensors="pt", return_attention_mask=True)
        rows = self.projector(self.tower(
            made["input_features"].double(),
            made["attention_mask"]).last_hidden_state)
        count = q.processing_qwen3_asr.Qwen3ASRProcessor._get_audio_token_length
        assert [len(rows)] == count(None, made["attention_mask"].sum(-1))
        return rows


class Qwen3Omni(Qwen3):
    sees = True

    def __init__(self):
        torch.manual_seed(0)
        q = transformers.models.qwen3_omni_moe
        c = q.configuration_qwen3_omni_moe.Qwen3OmniMoeAudioEncoderConfig(
            **self.sizes)
        c._attn_implementation = "eager"
        self.model = fill(
            q.modeling_qwen3_omni_moe.Qwen3OmniMoeAudioEncoder(c))
        self.parts = self.model.state_dict()

    def hear(self, samples):
        made = transformers.WhisperFeatureExtractor(feature_size=128)(
            samples, sampling_rate=16000, truncation=False, padding=True,
            return_tensors="pt", return_attention_mask=True)
        n = made["attention_mask"].sum(-1)
        return self.model(made["input_features"][0].double(),
                          feature_lens=n).last_hidden_state


class Gemma4a(Ear):
    """beside an encoder of images; of more than 30 seconds, which transformers
    cuts off, the frames in pieces"""
    SECONDS = [0.005, 0.0101, 0.05, 0.1, 0.13, 0.4701, 1, 1.0125, 3.1234, 8.5,
               29.99, 30, 30.02, 33.3]
    name = "Gemma4ForConditionalGeneration"

    def __init__(self):
        torch.manual_seed(0)
        c = transformers.Gemma4Config(
            vision_config=dict(
                hidden_size=64, intermediate_size=96, num_hidden_layers=1,
                num_attention_heads=2, num_key_value_heads=2, head_dim=32,
                global_head_dim=32, patch_size=16, pooling_kernel_size=3),
            audio_config=dict(
                hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
                subsampling_conv_channels=[128, 8], output_proj_dims=48),
            text_config=dict(
                hidden_size=96, num_hidden_layers=1, num_attention_heads=2,
                num_key_value_heads=1, intermediate_size=64, vocab_size=128,
                head_dim=32, global_head_dim=32,
                layer_types=["full_attention"]))
        c.audio_config._attn_implementation = "eager"
        kind = transformers.Gemma4ForConditionalGeneration
        self.model = fill(kind(c)).float()      # as its attention demands
        core = self.model.model
        gen = torch.Generator().manual_seed(2)

        for k, x in core.audio_tower.named_buffers():
            if k.endswith(("_min", "_max")):
                x.copy_((torch.rand((), generator=gen) + 1).half()
                        * (-1 if k.endswith("_min") else 1))

        # scores that reach the cap, and distances that count
        for k, x in core.audio_tower.named_parameters():
            if k.endswith(("q_proj.linear.weight", "relative_k_proj.weight",
                           "per_dim_scale")):
                with torch.no_grad():
                    x.mul_(2)

    def convert(self, folder, path, kind):
        said = self.model.config.to_dict()
        said["architectures"] = [self.name]
        (folder / "config.json").write_text(json.dumps(said, default=str))
        (folder / "preprocessor_config.json").write_text(json.dumps(
            dict(image_mean=[0.0] * 3, image_std=[1.0] * 3)))
        save_file({k: v.float().contiguous()
                   for k, v in self.model.state_dict().items()
                   if "language" not in k and "lm_head" not in k},
                  folder / "model.safetensors")
        hf_convert(folder, path, kind, self.name)

    def hear(self, samples):
        kind = transformers.models.gemma4
        made = kind.feature_extraction_gemma4.Gemma4AudioFeatureExtractor()(
            [np.pad(samples, (0, max(161 - len(samples), 0)))
             .astype(np.float64)],
            sampling_rate=16000, truncation=False, return_tensors="pt")
        mask = made["input_features_mask"]
        rows = []

        for i in range(0, int(mask.sum()), 3000):
            out = self.model.model.get_audio_features(
                made["input_features"][:, i:i + 3000], mask[:, i:i + 3000])
            rows.append(out.pooler_output[out.attention_mask])

        rows = torch.cat(rows)
        count = kind.processing_gemma4.Gemma4Processor.replace_audio_token
        told = count(argparse.Namespace(boa_token="", audio_token=".",
                                        eoa_token=""), made, 0)
        assert len(told) == len(rows)
        return rows


FAMILIES = {"llava": Llava, "kimivl": Kimi, "gemma4uv": Gemma4uv,
            "voxtral": Voxtral, "qwen2a": Qwen2Audio, "qwen25o": Qwen25Omni,
            "qwen3asr": Qwen3ASR, "qwen3omni": Qwen3Omni, "gemma4a": Gemma4a}

def llm(image, path, *args, what="image"):
    run = subprocess.run([OBJS / "llm", what, image, "--mmproj", path,
                          *args], capture_output=True)
    if run.returncode:
        raise SystemExit(run.stderr.decode().strip())
    return run.stdout


def sounds(family, folder):
    """a file of 16 bits, its samples, and how it is called"""
    for i, seconds in enumerate(family.SECONDS):
        n = int(16000 * seconds)
        t = np.arange(n) / 16000
        x = np.random.default_rng(i).normal(size=n) * 0.05
        x += 0.4 * np.sin(2 * np.pi * (200 + 300 * np.sin(t)) * t)
        x = np.round(np.clip(x, -1, 1) * 32767).astype("<i2")

        with wave.open(str(folder / "sound.wav"), "wb") as f:
            f.setparams((1, 2, 16000, n, "NONE", ""))
            f.writeframes(x.tobytes())

        yield (folder / "sound.wav", (x / 32768).astype("f4"),
               f"{seconds} s")


def check_sound(name, family, device):
    good = True

    for kind in ("f32", "f16"):
        folder, path = OUT / name, OUT / f"{name}.gguf"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        family.convert(folder, path, kind)

        for file, samples, said in sounds(family, folder):
            with torch.no_grad():
                right = family.hear(samples).numpy()

            off = []
            for where in (("--device", "cpu", "--isa", "reference"),
                          ("--device", device)):
                rows = np.frombuffer(llm(file, path, "--rows", *where,
                                         what="sound"), "<f4").astype("f8")
                off.append(np.sqrt(((rows.reshape(right.shape) - right)
                                    ** 2).mean()) / right.std())

            tokens = json.loads(llm(file, path, what="sound"))["tokens"]
            ok = tokens == len(right) and off[0] <= LIMIT
            good = good and ok
            print(f"{name:9} {kind:5} {said:9} {len(right)} rows "
                  f"{'ok ' if ok else 'BAD'} reference {off[0]:.7f}, {device} "
                  f"{off[1]:.6f}", flush=True)

        path.unlink()
        shutil.rmtree(folder)

    return good


def check(name, device):
    family = FAMILIES[name]()
    good = True

    if isinstance(family, Ear):
        return check_sound(name, family, device)

    for kind in ("f32", "f16") if name == "llava" else ("f32", "f16", "q8_0"):
        folder, path = OUT / name, OUT / f"{name}.gguf"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        family.convert(folder, path, kind)

        for i, (w, h) in enumerate(SIZES):
            rgb = np.random.default_rng(i).integers(0, 256, (h, w, 3), "u1")
            rgb[: h // 2] = np.linspace(0, 255, w)[None, :, None]
            image = Image.fromarray(rgb)
            image.save(folder / "image.png")
            pixels = family.pixels(image)
            got = llm(folder / "image.png", path, "--pixels")
            same = got == pixels.tobytes()

            with torch.no_grad():
                right = family.rows(pixels).numpy()

            off = []
            for where in (("--device", "cpu", "--isa", "reference"),
                          ("--device", device)):
                rows = np.frombuffer(llm(folder / "image.png", path, "--rows",
                                         *where), "<f4").astype("f8")
                off.append(np.sqrt(((rows.reshape(right.shape) - right)
                                    ** 2).mean()) / right.std())

            ok = same and off[0] <= (0.02 if kind == "q8_0" else LIMIT)
            good = good and ok
            print(f"{name:9} {kind:5} {w}x{h} to {pixels.shape[1]}x"
                  f"{pixels.shape[0]} {'ok ' if ok else 'BAD'} pixels "
                  f"{'equal' if same else 'differ'}, rows: reference "
                  f"{off[0]:.7f}, {device} {off[1]:.6f}", flush=True)

        path.unlink()
        shutil.rmtree(folder)

    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("names", metavar="NAME", nargs="*")
    args = parser.parse_args()
    good = [check(n, args.device) for n in args.names or FAMILIES]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
