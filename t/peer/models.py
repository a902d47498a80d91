"""The models of archs.py: each family in a smaller and a wider shape.

A row is what make() takes: transformers' class, its fields, the class of its
configuration where it is another one, what config.json says beside them, and
the matrices that are in NVFP4, as ModelOpt writes them.
Values that a GGUF file has no key for are those of the models that there are.
"""

MODELS = {}


def rope(theta=10000.0, **more):
    return dict(rope_theta=theta, rope_type="default", **more)


def yarn(theta, factor, original, **more):
    return dict(rope_type="yarn", rope_theta=theta, factor=factor,
                original_max_position_embeddings=original, beta_fast=32.0,
                beta_slow=1.0, **more)


LLAMA3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0,
              original_max_position_embeddings=64, low_freq_factor=1.0,
              high_freq_factor=4.0)
BOTH = {"sliding_attention": rope(1e4), "full_attention": rope(1e6)}
GRANITE = dict(embedding_multiplier=6.0, logits_scaling=4.0,
               residual_multiplier=0.3, attention_multiplier=0.11)


def add(name, kind, fields, config=None, edit=None, nvfp4=None):
    MODELS[name] = dict(kind=kind, fields=fields, config=config, edit=edit,
                        nvfp4=nvfp4)


class Size:
    """One of two shapes: 6 heads to 2, or 10 to 5; odd widths."""

    def __init__(self, small):
        self.small = small

    def pick(self, a, b):
        return a if self.small else b

    def fields(self, **more):
        """What nearly all have, and more; ... takes a field out."""
        fields = dict(vocab_size=512, hidden_size=192, intermediate_size=352,
                      num_hidden_layers=3, num_attention_heads=6,
                      num_key_value_heads=2, max_position_embeddings=2048,
                      bos_token_id=488, eos_token_id=489, pad_token_id=490,
                      tie_word_embeddings=False)
        if not self.small:
            fields.update(vocab_size=500, hidden_size=320,
                          intermediate_size=896, num_hidden_layers=2,
                          num_attention_heads=10, num_key_value_heads=5)
        fields.update(more)
        return {k: v for k, v in fields.items() if v is not ...}


def dense(t, size):
    f, pick, small = size.fields, size.pick, size.small
    head = pick(32, 64)

    add("llama" + t, "LlamaForCausalLM",
        f(head_dim=head, attention_bias=not small, mlp_bias=small))
    add("llama3" + t, "LlamaForCausalLM", f(head_dim=64,
                                            rope_parameters=LLAMA3))
    add("qwen2" + t, "Qwen2ForCausalLM", f(tie_word_embeddings=not small))
    add("qwen3" + t, "Qwen3ForCausalLM",
        f(head_dim=pick(48, 128), attention_bias=not small))
    add("qwen3-yarn" + t, "Qwen3ForCausalLM",
        f(head_dim=64, rope_parameters=yarn(1e6, 4.0, 48)))
    add("mistral3" + t, "Ministral3ForCausalLM",
        f(head_dim=head, rope_parameters=yarn(
            1e6, 16.0, 32, max_position_embeddings=2048, mscale_all_dim=1.0,
            mscale=1.0, llama_4_scaling_beta=0.1)))
    add("granite" + t, "GraniteForCausalLM", f(**GRANITE))
    add("ernie4_5" + t, "Ernie4_5ForCausalLM",
        f(head_dim=head, use_bias=False))
    add("hunyuan-dense" + t, "HunYuanDenseV1ForCausalLM", f(head_dim=head))
    add("gemma" + t, "GemmaForCausalLM",
        f(head_dim=pick(64, 32), tie_word_embeddings=True))
    add("gemma2" + t, "Gemma2ForCausalLM",
        f(head_dim=head, tie_word_embeddings=True, sliding_window=16,
          query_pre_attn_scalar=head, attn_logit_softcapping=20.0,
          final_logit_softcapping=15.0, num_hidden_layers=4))
    add("gemma3" + t, "Gemma3ForCausalLM",
        f(head_dim=head, tie_word_embeddings=True, sliding_window=16,
          query_pre_attn_scalar=head, num_hidden_layers=7,
          rope_parameters=pick(BOTH, dict(BOTH, full_attention=dict(
              rope_type="linear", factor=8.0, rope_theta=1e6)))))
    four = dict(head_dim=head, global_head_dim=2 * head, sliding_window=16,
                num_hidden_layers=6, tie_word_embeddings=True,
                layer_types=["sliding_attention"] * pick(5, 2)
                + ["full_attention"] + pick([], ["sliding_attention"] * 2
                                            + ["full_attention"]))
    add("gemma4" + t, "Gemma4ForCausalLM",
        f(**four, hidden_size_per_layer_input=pick(16, 64),
          vocab_size_per_layer_input=pick(512, 500),
          num_kv_shared_layers=pick(0, 2), use_double_wide_mlp=not small),
        config="Gemma4TextConfig")
    add("gemma4-experts" + t, "Gemma4ForCausalLM",
        f(**four, hidden_size_per_layer_input=0, num_kv_shared_layers=0,
          attention_k_eq_v=True, num_global_key_value_heads=pick(2, 1),
          enable_moe_block=True, num_experts=12, top_k_experts=3,
          moe_intermediate_size=96), config="Gemma4TextConfig")
    add("phi2" + t, "PhiForCausalLM",
        f(rope_parameters=rope(partial_rotary_factor=0.5),
          num_key_value_heads=pick(6, 10), hidden_act="gelu_new",
          intermediate_size=pick(768, 1280)))
    add("phi3" + t, "Phi3ForCausalLM", f(sliding_window=pick(None, 24)))
    add("phi3-long" + t, "Phi3ForCausalLM",
        f(max_position_embeddings=pick(2048, 64),
          original_max_position_embeddings=64, rope_parameters=dict(
              rope_type="longrope", rope_theta=10000.0,
              short_factor=[1 + 0.05 * i for i in range(16)],
              long_factor=[1.5 + 0.3 * i for i in range(16)],
              original_max_position_embeddings=64)))
    add("olmo" + t, "OlmoForCausalLM", f(clip_qkv=pick(None, 1.5)))
    add("olmo2" + t, "Olmo2ForCausalLM", f())
    add("olmo3" + t, "Olmo3ForCausalLM",
        f(sliding_window=24, num_hidden_layers=4))
    add("smollm3" + t, "SmolLM3ForCausalLM",
        f(num_hidden_layers=5, no_rope_layer_interval=4,
          tie_word_embeddings=True))
    half = rope(partial_rotary_factor=0.5)
    add("glm4" + t, "Glm4ForCausalLM",
        f(head_dim=head, rope_parameters=half, attention_bias=small))
    add("chatglm" + t, "GlmForCausalLM",
        f(head_dim=32, rope_parameters=half, attention_bias=small,
          rms_norm_eps=1e-5))
    add("command-r" + t, "CohereForCausalLM",
        f(logit_scale=0.3, use_qk_norm=not small, tie_word_embeddings=True))
    add("cohere2" + t, "Cohere2ForCausalLM",
        f(logit_scale=0.3, head_dim=32, sliding_window=16,
          num_hidden_layers=pick(8, 5), tie_word_embeddings=True),
        edit=lambda said: dict(rotary_pct=1.0))
    add("starcoder2" + t, "Starcoder2ForCausalLM",
        f(use_bias=True, sliding_window=None, tie_word_embeddings=small))
    add("stablelm" + t, "StableLmForCausalLM",
        f(use_qkv_bias=small, use_parallel_residual=not small,
          rope_parameters=half))
    heads, width = pick((6, 192), (5, 320))
    add("gpt2" + t, "GPT2LMHeadModel",
        dict(vocab_size=512, n_embd=width, n_layer=3, n_head=heads,
             n_positions=256, bos_token_id=488, eos_token_id=489),
        edit=lambda said: dict(n_ctx=256))
    add("starcoder" + t, "GPTBigCodeForCausalLM",
        dict(vocab_size=512, n_embd=width, n_layer=3, n_head=heads,
             n_positions=256, n_inner=4 * width, multi_query=True,
             bos_token_id=488, eos_token_id=489))
    add("falcon" + t, "FalconForCausalLM",
        dict(vocab_size=512, hidden_size=width, num_hidden_layers=3,
             num_attention_heads=pick(6, 10), bos_token_id=488,
             eos_token_id=489, new_decoder_architecture=True,
             num_kv_heads=2, num_ln_in_parallel_attn=2),
        edit=lambda said: dict(n_head_kv=2))
    add("exaone4" + t, "Exaone4ForCausalLM",
        f(num_hidden_layers=pick(6, 2), tie_word_embeddings=True,
          **pick(dict(sliding_window=16, sliding_window_pattern=4),
                 dict(sliding_window=None,
                      layer_types=["full_attention"] * 2))))
    add("seed_oss" + t, "SeedOssForCausalLM",
        f(head_dim=head, attention_bias=True, attention_out_bias=not small))
    add("nemotron" + t, "NemotronForCausalLM",
        f(head_dim=32, rope_parameters=half))
    add("arcee" + t, "ArceeForCausalLM",
        f(head_dim=head, hidden_act="relu2",
          rope_parameters=pick(rope(), yarn(1e4, 20.0, 48, mscale=1.0))))
    add("apertus" + t, "ApertusForCausalLM",
        f(rope_parameters=pick(rope(12e6), LLAMA3)))
    add("jais2" + t, "Jais2ForCausalLM",
        f(head_dim=32, hidden_act="relu2", attention_bias=True, mlp_bias=True))


def mixtures(t, size):
    f, pick, small = size.fields, size.pick, size.small
    head = pick(32, 64)

    def deepseek(**more):
        return f(kv_lora_rank=pick(96, 64), qk_nope_head_dim=48,
                 qk_rope_head_dim=16, v_head_dim=40, n_routed_experts=24,
                 num_experts_per_tok=4, moe_intermediate_size=96,
                 first_k_dense_replace=1, num_key_value_heads=pick(6, 10),
                 **more)

    few = dict(num_experts=10, num_experts_per_tok=3)
    add("mixtral" + t, "MixtralForCausalLM",
        f(num_local_experts=pick(8, 5), num_experts_per_tok=pick(3, 1),
          head_dim=head))
    add("qwen2moe" + t, "Qwen2MoeForCausalLM",
        f(moe_intermediate_size=96, shared_expert_intermediate_size=160,
          norm_topk_prob=False, decoder_sparse_step=1, **few))
    add("qwen3moe" + t, "Qwen3MoeForCausalLM",
        f(moe_intermediate_size=160, head_dim=pick(64, 32),
          norm_topk_prob=True, decoder_sparse_step=1, **few))
    add("olmoe" + t, "OlmoeForCausalLM",
        f(norm_topk_prob=False, **dict(few, intermediate_size=96)))
    add("gpt-oss" + t, "GptOssForCausalLM",
        f(num_local_experts=pick(8, 6), num_experts_per_tok=pick(4, 1),
          head_dim=pick(64, 32), intermediate_size=pick(96, 160),
          sliding_window=pick(16, 40), num_hidden_layers=4,
          rope_parameters=yarn(150000.0, 32.0, pick(4096, 64),
                               truncate=not small)))
    add("granitemoe" + t, "GraniteMoeForCausalLM",
        f(num_local_experts=8, num_experts_per_tok=3, intermediate_size=96,
          **GRANITE))
    add("granitemoe-shared" + t, "GraniteMoeSharedForCausalLM",
        f(num_local_experts=8, num_experts_per_tok=3, intermediate_size=96,
          shared_intermediate_size=160, **GRANITE))
    add("deepseek2-lite" + t, "DeepseekV2ForCausalLM",
        deepseek(q_lora_rank=None, topk_method="greedy", n_shared_experts=2,
                 norm_topk_prob=False, n_group=1, topk_group=1, head_dim=16))
    add("deepseek2-v2" + t, "DeepseekV2ForCausalLM",
        deepseek(q_lora_rank=64, topk_method="group_limited_greedy",
                 n_shared_experts=1, norm_topk_prob=False, n_group=4,
                 topk_group=2, routed_scaling_factor=4.0, head_dim=16))
    add("deepseek2-v3" + t, "DeepseekV3ForCausalLM",
        deepseek(q_lora_rank=pick(64, None), n_shared_experts=1,
                 norm_topk_prob=True, n_group=pick(4, 1),
                 topk_group=pick(2, 1), routed_scaling_factor=2.5))
    add("deepseek2-yarn" + t, "DeepseekV3ForCausalLM",
        deepseek(q_lora_rank=64, n_shared_experts=1, norm_topk_prob=True,
                 n_group=4, topk_group=2, rope_parameters=yarn(
                     1e4, 40.0, 32, mscale_all_dim=1.0, mscale=1.0)))
    add("glm4moe" + t, "Glm4MoeForCausalLM",
        f(head_dim=head, moe_intermediate_size=96, n_routed_experts=12,
          num_experts_per_tok=4, n_shared_experts=pick(1, 2),
          n_group=pick(1, 4), topk_group=pick(1, 2), first_k_dense_replace=1,
          routed_scaling_factor=2.0, use_qk_norm=small, attention_bias=True,
          num_nextn_predict_layers=0,
          rope_parameters=rope(1e6, partial_rotary_factor=0.5)))
    add("ernie4_5-moe" + t, "Ernie4_5_MoeForCausalLM",
        f(moe_intermediate_size=96, moe_k=3, moe_num_experts=10,
          moe_num_shared_experts=pick(2, 3), moe_layer_start_index=1,
          moe_layer_end_index=3, num_hidden_layers=4,
          # the converter's width of those that are shared, times KV heads
          intermediate_size=96 * pick(2 * 2, 3 * 5)))
    add("llama4" + t, "Llama4ForCausalLM",
        f(head_dim=head, intermediate_size=96, intermediate_size_mlp=224,
          num_local_experts=6, num_experts_per_tok=1, num_hidden_layers=5,
          interleave_moe_layer_step=pick(2, 1), no_rope_layer_interval=4,
          rope_parameters=rope(500000.0)), config="Llama4TextConfig")
    add("minimax-m2" + t, "MiniMaxM2ForCausalLM",
        f(head_dim=head, num_local_experts=10, num_experts_per_tok=3,
          intermediate_size=96,
          rope_parameters=rope(5e6, partial_rotary_factor=0.5)),
        edit=lambda said: dict(rotary_dim=head // 2))
    add("hunyuan-moe" + t, "HunYuanMoEV1ForCausalLM",
        f(head_dim=head, num_experts=6, moe_topk=pick(3, 1),
          intermediate_size=160),
        edit=lambda said: dict(moe_intermediate_size=[160] * 3,
                               num_shared_expert=[1] * 3,
                               moe_topk=[said["moe_topk"]] * 3))
    add("dots1" + t, "Dots1ForCausalLM",
        f(head_dim=head, moe_intermediate_size=96, n_routed_experts=12,
          num_experts_per_tok=3, n_shared_experts=2, first_k_dense_replace=1,
          norm_topk_prob=small, routed_scaling_factor=2.5, n_group=1,
          topk_group=1))
    windows = ["sliding_attention"] * 3 + ["full_attention"]
    add("exaone-moe" + t, "ExaoneMoeForCausalLM",
        f(head_dim=head, moe_intermediate_size=96, num_shared_experts=1,
          first_k_dense_replace=1, norm_topk_prob=True, n_group=1,
          topk_group=1, routed_scaling_factor=2.5, sliding_window=16,
          sliding_window_pattern="LLLG", num_hidden_layers=pick(5, 8),
          layer_types=(windows * 2)[:pick(5, 8)], **few))
    add("afmoe" + t, "AfmoeForCausalLM",
        f(head_dim=head, moe_intermediate_size=96, num_shared_experts=1,
          num_dense_layers=1, route_norm=True, route_scale=2.0, n_group=1,
          topk_group=1, sliding_window=16, global_attn_every_n_layers=4,
          num_hidden_layers=pick(5, 8), mup_enabled=True, **few))


def recurrent(t, size):
    f, pick, small = size.fields, size.pick, size.small
    width = pick(192, 320)

    every = pick(4, 3)
    delta = dict(
        linear_conv_kernel_dim=4, linear_key_head_dim=pick(32, 64),
        linear_value_head_dim=pick(32, 64), linear_num_key_heads=pick(2, 3),
        linear_num_value_heads=6, head_dim=pick(32, 64),
        num_hidden_layers=pick(4, 6),
        layer_types=(["linear_attention"] * (every - 1) + ["full_attention"])
        * pick(1, 2))
    experts = dict(moe_intermediate_size=64, num_experts=10,
                   shared_expert_intermediate_size=96, num_experts_per_tok=3)
    sections = rope(1e6, partial_rotary_factor=0.5, mrope_interleaved=True,
                    mrope_section=pick([3, 3, 2], [6, 5, 5]))

    def says(said):
        return dict(full_attention_interval=every, mtp_num_hidden_layers=0)

    add("qwen3next" + t, "Qwen3NextForCausalLM",
        f(**delta, **experts, norm_topk_prob=True,
          rope_parameters=rope(partial_rotary_factor=0.25)), edit=says)
    add("qwen35" + t, "Qwen3_5ForCausalLM",
        f(**delta, tie_word_embeddings=not small, rope_parameters=sections),
        config="Qwen3_5TextConfig", edit=says)
    add("qwen35moe" + t, "Qwen3_5MoeForCausalLM",
        f(**delta, **experts, intermediate_size=..., rope_parameters=sections),
        config="Qwen3_5MoeTextConfig", edit=says)
    add("qwen35moe-nvfp4" + t, "Qwen3_5MoeForCausalLM",
        f(**delta, **experts, intermediate_size=..., rope_parameters=sections),
        config="Qwen3_5MoeTextConfig", edit=says,
        nvfp4=r"(experts\.\d+|_attn)\.(in_proj_(qkv|z)|[a-z]+_proj)")
    mixed = ["mamba", "attention", "mamba", "mamba", "attention"]
    add("granitehybrid" + t, "GraniteMoeHybridForCausalLM",
        f(num_local_experts=pick(6, 0), num_experts_per_tok=pick(2, 0),
          intermediate_size=pick(96, 160), shared_intermediate_size=160,
          position_embedding_type="nope", num_hidden_layers=5,
          layer_types=mixed, mamba_n_heads=2 * width // 32, mamba_d_head=32,
          mamba_n_groups=1, mamba_d_state=pick(32, 64), mamba_d_conv=4,
          mamba_expand=2, tie_word_embeddings=True, **GRANITE),
        edit=lambda said: dict(layer_types=mixed))
    conv = dict(num_hidden_layers=5, conv_L_cache=pick(3, 4),
                layer_types=["conv", "conv", "full_attention", "conv",
                             "full_attention"], tie_word_embeddings=True)
    add("lfm2" + t, "Lfm2ForCausalLM",
        f(block_auto_adjust_ff_dim=small, block_multiple_of=32, **conv))
    add("lfm2moe" + t, "Lfm2MoeForCausalLM",
        f(num_dense_layers=2, num_experts=10, num_experts_per_tok=3,
          moe_intermediate_size=96, use_expert_bias=True, norm_topk_prob=True,
          **conv))
    inner = pick(2, 1) * width
    add("falcon-h1" + t, "FalconH1ForCausalLM",
        f(head_dim=pick(32, 64), mamba_d_ssm=inner, mamba_n_heads=inner // 32,
          mamba_d_head=32, mamba_n_groups=pick(1, 2),
          mamba_d_state=pick(32, 64), mamba_rms_norm=not small,
          mamba_norm_before_gate=False,
          # powers of two: the converter multiplies float16 weights by them
          lm_head_multiplier=0.5, embedding_multiplier=4.0,
          mlp_multipliers=[0.5, 2.0], key_multiplier=0.25,
          attention_out_multiplier=2.0, attention_in_multiplier=0.5,
          ssm_in_multiplier=2.0, ssm_multipliers=[0.5, 0.25, 2.0, 0.5, 1.0],
          ssm_out_multiplier=0.5, rope_parameters=rope(1e11)))
    blocks = pick(["mamba", "moe", "attention", "moe", "mamba", "attention"],
                  ["mamba", "moe", "mamba", "attention"])
    add("nemotron_h_moe" + t, "NemotronHForCausalLM",
        f(head_dim=pick(32, 64), layers_block_type=blocks,
          ssm_state_size=pick(32, 64), mamba_num_heads=8, mamba_head_dim=32,
          n_groups=2, conv_kernel=4, n_routed_experts=10, n_shared_experts=1,
          moe_intermediate_size=96, moe_shared_expert_intermediate_size=160,
          num_experts_per_tok=3, n_group=1, topk_group=1, norm_topk_prob=True,
          routed_scaling_factor=2.5))
    add("mamba2" + t, "Mamba2ForCausalLM",
        dict(vocab_size=512, hidden_size=width, state_size=pick(32, 64),
             num_hidden_layers=3, expand=2, head_dim=32,
             num_heads=2 * width // 32, n_groups=1, bos_token_id=488,
             eos_token_id=489, pad_token_id=490, tie_word_embeddings=small))


def scaled(t, size):
    """NVFP4, where every matrix, and every expert's, has a factor."""
    f, pick = size.fields, size.pick
    some = r"(experts\.\d+|shared_experts|self_attn|mlp)\.[a-z]+_proj"
    experts = dict(moe_intermediate_size=64, num_experts_per_tok=3)

    add("qwen3-nvfp4" + t, "Qwen3ForCausalLM",
        f(head_dim=64, intermediate_size=pick(320, 896)), nvfp4=some)
    add("qwen3moe-nvfp4" + t, "Qwen3MoeForCausalLM",
        f(head_dim=64, norm_topk_prob=True, decoder_sparse_step=1,
          num_experts=pick(10, 16), **experts), nvfp4=some)
    add("glm4moe-nvfp4" + t, "Glm4MoeForCausalLM",
        f(head_dim=64, n_routed_experts=12, n_shared_experts=1,
          intermediate_size=pick(320, 896), first_k_dense_replace=1,
          norm_topk_prob=True, routed_scaling_factor=2.0, n_group=1,
          topk_group=1, num_nextn_predict_layers=0,
          rope_parameters=rope(1e6, partial_rotary_factor=0.5), **experts),
        nvfp4=some)
    add("nemotron_h_moe-nvfp4" + t, "NemotronHForCausalLM",
        f(head_dim=64, layers_block_type=["mamba", "moe", "attention", "moe"],
          num_hidden_layers=4, ssm_state_size=32, mamba_num_heads=8,
          mamba_head_dim=32, n_groups=2, conv_kernel=4, n_routed_experts=10,
          n_shared_experts=1, moe_shared_expert_intermediate_size=128,
          n_group=1, topk_group=1, norm_topk_prob=True,
          routed_scaling_factor=2.5, **experts),
        nvfp4=r"(experts\.\d+|shared_experts|mixer)\.[a-z]+_proj")


def encoders(t, size):
    pick = size.pick

    def f(**more):
        return size.fields(num_attention_heads=pick(6, 5),
                           num_key_value_heads=..., **more)

    add("bert" + t, "BertModel", f(max_position_embeddings=256))
    add("roberta" + t, "XLMRobertaModel",
        f(max_position_embeddings=258, type_vocab_size=1, pad_token_id=1))
    add("distilbert" + t, "DistilBertModel",
        dict(vocab_size=512, dim=pick(192, 320), n_layers=3,
             n_heads=pick(6, 5), hidden_dim=352,
             max_position_embeddings=256))
    add("modern-bert" + t, "ModernBertModel",
        f(num_hidden_layers=6, local_attention=pick(16, 33),
          max_position_embeddings=512, cls_token_id=488, sep_token_id=489,
          layer_types=["full_attention", "sliding_attention",
                       "sliding_attention"] * 2))
    add("gemma-embedding" + t, "Gemma3TextModel",
        size.fields(head_dim=64, query_pre_attn_scalar=64,
                    sliding_window=pick(17, 32), rope_parameters=BOTH,
                    num_hidden_layers=6, use_bidirectional_attention=True),
        edit=lambda said: dict(sliding_window=pick(17, 32)))
    add("qwen3-embedding" + t, "Qwen3Model", size.fields(head_dim=48))


for family in (dense, mixtures, recurrent, scaled, encoders):
    for name, small in (("-small", True), ("-wide", False)):
        family(name, Size(small))
