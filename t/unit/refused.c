/*
 * Files that must be refused: a tensor or a field that is missing, of another
 * shape, or says what cannot be; each with the file, the tensor or field, and
 * the reason.
 */

#include "t/unit/gguf_build.h"
#include "t/unit/tiny_model.h"

#include <math.h>

/* a field of the architecture, and what is said of it */
typedef struct {
    const char  *key;
    uint32_t     value;
    const char  *what;
    const char  *why;
} number_t;


/* a changed model is refused, and the message says what and why */

static void
refused(const char *model, tiny_change_t change, const char *what,
    const char *why)
{
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, "reference", NULL);
    memset(&err, 0, sizeof(err));

    if (!ok(write_model(tiny_named(model), &change), "%s: written", what)) {
        return;
    }

    m = llm_model_load(path, &o, &err);

    if (!ok(m == NULL && strstr(err.msg, path) && strstr(err.msg, what)
            && strstr(err.msg, why), "%s: %s", what, why))
    {
        printf("# %s\n", m ? "it loads" : err.msg);
    }

    llm_model_free(m);
}


/* the tensors are needed, and in their shapes */

static void
needed(const char *model, const char *const *names, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        refused(model, change(.drop = names[i]), names[i], "is missing");
        refused(model, change(.reshape = names[i]), names[i], "its shape is");
    }
}


/* the model's name is its architecture's */

static void
numbers(const char *model, const number_t *all, size_t n)
{
    char    key[64];
    size_t  i;

    for (i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "%s.%s", model, all[i].key);
        refused(model, change(.u32_key = key, .u32 = all[i].value),
                all[i].what, all[i].why);
    }
}


static void
test_tensors(void)
{
    size_t  i;

    static const char  *const needed[] = {
        "token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight",
        "blk.1.attn_q.weight", "blk.1.attn_k.weight", "blk.0.attn_v.weight",
        "blk.1.attn_output.weight", "blk.0.attn_q_norm.weight",
        "blk.1.attn_k_norm.weight", "blk.0.ffn_norm.weight",
        "blk.1.ffn_gate.weight", "blk.0.ffn_up.weight",
        "blk.1.ffn_down.weight"
    };

    static const char  *const biases[] = {
        "blk.0.attn_q.bias", "blk.1.attn_k.bias", "blk.0.attn_v.bias",
        "blk.0.attn_output.bias", "blk.1.ffn_gate.bias",
        "blk.1.ffn_up.bias", "blk.0.ffn_down.bias"
    };

    static const struct {
        const char  *model;
        const char  *name;
        const char  *lacks;
        const char  *why;
    } fused[] = {
        { "phi3", "blk.1.attn_qkv.weight", "blk.1.attn_", "its shape is" },
        { "gpt2", "blk.0.attn_qkv.weight", "blk.0.attn_", "its shape is" },
        { "phi3", "blk.1.ffn_up.weight", "blk.1.ffn_gate.weight",
          "is missing" }
    };

    for (i = 0; i < llm_nelems(needed); i++) {
        refused("qwen3", change(.drop = needed[i]), needed[i], "is missing");

        /* the embedding's rows say how large the vocabulary is */
        refused("qwen3", change(.reshape = needed[i]),
                i ? needed[i] : "output.weight", "its shape is");
    }

    refused("qwen3", change(.reshape = "output.weight"), "output.weight",
            "its shape is [32, 38, 1, 1], not [32, 37]");
    refused("llama, rope_freqs", change(.reshape = "rope_freqs.weight"),
            "rope_freqs.weight", "its shape is");

    for (i = 0; i < llm_nelems(biases); i++) {
        refused("llama, every bias", change(.reshape = biases[i]), biases[i],
                "its shape is");
    }

    refused("qwen3", change(.retype = "output_norm.weight"),
            "output_norm.weight", "a vector of type Q8_0");
    refused("qwen3", change(.extra = "blk.0.attn_sinks.weight"),
            "blk.0.attn_sinks.weight", "has no such tensor");
    refused("llama", change(.extra = "blk.1.attn_q_norm.weight"),
            "blk.1.attn_q_norm.weight", "has no such tensor");
    refused("llama", change(.extra = "blk.2.attn_norm.weight"),
            "blk.2.attn_norm.weight", "has no such tensor");
    refused("llama", change(.extra = "output.bias"), "output.bias",
            "has no such tensor");
    refused("llama", change(.extra = "blk.0.attn_sinks.weight"),
            "blk.0.attn_sinks.weight", "has no such tensor");

    refused("olmo", change(.extra = "output_norm.weight"),
            "output_norm.weight", "has no such tensor");
    refused("olmo", change(.extra = "blk.0.ffn_norm.weight"),
            "blk.0.ffn_norm.weight", "has no such tensor");

    for (i = 0; i < llm_nelems(fused); i++) {
        refused(fused[i].model, change(.drop = fused[i].name), fused[i].lacks,
                "is missing");
        refused(fused[i].model, change(.reshape = fused[i].name),
                fused[i].lacks, fused[i].why);
    }

    refused("phi3, long RoPE", change(.drop = "rope_factors_short.weight"),
            "rope_factors_short.weight", "is missing");
    refused("gpt2", change(.drop = "position_embd.weight"),
            "position_embd.weight", "is missing");
    refused("gpt2", change(.drop = "blk.1.ffn_norm.bias"),
            "blk.1.ffn_norm.bias", "is missing");
    refused("cohere2", change(.drop_key = "cohere2.logit_scale"),
            "cohere2.logit_scale", "is missing");
    refused("command-r, norms of each head",
            change(.drop_key = "command-r.logit_scale"),
            "command-r.logit_scale", "is missing");
    refused("cohere2", change(.drop_key = "cohere2.attention.sliding_window"),
            "cohere2.attention.sliding_window", "is missing");
    refused("gemma3", change(.drop = "blk.5.post_ffw_norm.weight"),
            "blk.5.post_ffw_norm.weight", "is missing");
}


static void
test_fields(void)
{
    size_t  i;

    static const char  *const needed[] = {
        "llama.context_length", "llama.embedding_length",
        "llama.block_count", "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon", "general.architecture"
    };

    static const struct {
        const char  *key;
        uint32_t     value;
        const char  *why;
    } ints[] = {
        { "llama.block_count", 0, "not within" },
        { "llama.block_count", 0xffffffff, "not within" },
        { "llama.block_count", 1000, "is missing" },
        { "llama.context_length", 0, "not within" },
        { "llama.context_length", 0x80000000, "not within" },
        { "llama.embedding_length", 0xffffff00, "not within" },
        { "llama.attention.head_count", 0, "not within" },
        { "llama.attention.head_count", 0xffffffff, "not within" },
        { "llama.attention.head_count_kv", 3, "does not divide" },
        { "llama.attention.head_count_kv", 8, "not within" },
        { "llama.attention.key_length", 0x40000000, "not within" },
        { "llama.attention.value_length", 0, "not within" },
        { "llama.rope.dimension_count", 7, "is odd" },
        { "llama.rope.dimension_count", 10, "not within" },
        { "llama.expert_count", 2000, "not within" },
        { "llama.expert_gating_func", 2, "has no such field" },
        { "llama.nextn_predict_layers", 2, "2 of 2 layers" },
        { "llama.depth_of_thought", 2, "has no such field" },
        { "llama.attention.layer_norm_rms_epsilon", 2, "not within" }
    };

    static const struct {
        const char  *key;
        float        value;
        const char  *why;
    } floats[] = {
        { "llama.attention.layer_norm_rms_epsilon", NAN, "not a finite" },
        { "llama.attention.scale", INFINITY, "not a finite number" },
        { "llama.rope.freq_base", 0, "not above 1" },
        { "llama.rope.freq_base", NAN, "not a finite number" },
        { "llama.rope.scaling.factor", -2, "below 0" },
        { "llama.logit_scale", 0.5, "scaled logits" },
        { "llama.final_logit_softcapping", 30, "soft-capping" },
        { "llama.attention.temperature_scale", 0.1f, "has no such field" },
        { "llama.attention.max_alibi_bias", 8, "ALiBi" },
        { "llama.attention.clamp_kqv", 8, "clamped K, Q and V" },
        { "llama.context_length", 100, "its type is" }
    };

    for (i = 0; i < llm_nelems(needed); i++) {
        refused("llama", change(.drop_key = needed[i]), needed[i],
                "is missing");
    }

    for (i = 0; i < llm_nelems(ints); i++) {
        refused("llama", change(.u32_key = ints[i].key,
                                .u32 = ints[i].value),
                i == 2 ? "blk.2." : ints[i].key, ints[i].why);
    }

    for (i = 0; i < llm_nelems(floats); i++) {
        refused("llama", change(.f32_key = floats[i].key,
                                .f32 = floats[i].value),
                floats[i].key, floats[i].why);
    }

    refused("llama", change(.str_key = "general.architecture",
                            .str = "mamba"),
            "general.architecture", "\"mamba\" is not supported");
    refused("llama", change(.str_key = "general.architecture",
                            .str = "qwen9"),
            "general.architecture: \"qwen9\" is not supported (qwen2, ",
            "qwen3, ");
    refused("llama", change(.str_key = "general.architecture",
                            .str = "clip"),
            "general.architecture", "of a multimodal model (mmproj)");
    refused("llama", change(.str_key = "general.architecture",
                            .str = "flux"),
            "general.architecture", "a model of pictures");
    refused("llama", change(.str_key = "general.type", .str = "adapter"),
            "general.type", "this is an adapter (LoRA), not a model");
    refused("llama", change(.str_key = "general.type", .str = "mmproj"),
            "general.type", "of a multimodal model (mmproj)");
    refused("llama", change(.str_key = "general.type", .str = "imatrix"),
            "general.type", "an importance matrix");
    refused("llama", change(.str_key = "adapter.type", .str = "lora"),
            "adapter.type", "this is an adapter (LoRA), not a model");
    refused("llama", change(.u32_key = "split.count", .u32 = 3),
            "split.no", "part 1 of 3, and its name does not end in");
    refused("llama", change(.str_key = "llama.rope.scaling.type",
                            .str = "longrope"),
            "llama.rope.scaling.type", "\"longrope\" is not supported");
    refused("llama", change(.str_key = "llama.block_count", .str = "2"),
            "llama.block_count", "its type is");
    refused("dbrx", change(.f32_key = "dbrx.attention.clamp_kqv", .f32 = -8),
            "dbrx.attention.clamp_kqv", "-8 is below 0");
    refused("qwen3, YaRN",
            change(.f32_key = "qwen3.rope.scaling.yarn_beta_fast",
                   .f32 = -1),
            "yarn_beta", "not above 0");
    refused("qwen3, YaRN",
            change(.u32_key = "qwen3.rope.scaling.original_context_length",
                   .u32 = 0),
            "original_context_length", "0 is no length");
    refused("qwen3, YaRN",
            change(.f32_key = "qwen3.rope.scaling.factor", .f32 = 1e-40f),
            "rope", "angles that are not finite");
    refused("qwen3, YaRN",
            change(.f32_key = "qwen3.rope.scaling.yarn_attn_factor",
                   .f32 = 3e38f),
            "rope.scaling", "more than 1000");
}


static void
test_bad_experts(void)
{
    size_t  i;

    static const char  *const tensors[] = {
        "blk.1.ffn_gate_inp.weight", "blk.0.ffn_gate_exps.weight",
        "blk.0.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight"
    };

    static const char  *const shared[] = {
        "blk.1.ffn_gate_shexp.weight", "blk.1.ffn_up_shexp.weight",
        "blk.1.ffn_down_shexp.weight", "blk.1.exp_probs_b.bias"
    };

    static const number_t  odd[] = {
        { "expert_count", 0, "glm4moe.expert_feed_forward_length",
          "has no such field" },
        { "expert_count", 7, "glm4moe.expert_group_count", "4 groups" },
        { "expert_count", 1, "glm4moe.expert_used_count", "not within" },
        { "expert_count", 1025, "glm4moe.expert_count", "not within" },
        { "expert_count", 16, "blk.1.ffn_gate_inp.weight", "not [32, 16]" },
        { "expert_used_count", 0, "glm4moe.expert_used_count",
          "not within" },
        { "expert_used_count", 9, "glm4moe.expert_used_count",
          "not within" },
        { "expert_used_count", 5, "glm4moe.expert_group_used_count",
          "fewer than the 5" },
        { "expert_group_count", 0, "glm4moe.expert_group_count",
          "not within" },
        { "expert_group_count", 8, "glm4moe.expert_group_count",
          "8 experts in 8 groups" },
        { "expert_group_count", 3, "glm4moe.expert_group_count",
          "8 experts in 3 groups" },
        { "expert_group_used_count", 0, "glm4moe.expert_group_used_count",
          "not within" },
        { "expert_group_used_count", 5, "glm4moe.expert_group_used_count",
          "not within" },
        { "expert_gating_func", 4, "glm4moe.expert_gating_func",
          "is not supported" },
        { "expert_feed_forward_length", 0,
          "glm4moe.expert_feed_forward_length", "not within" },
        { "expert_feed_forward_length", 0xffffffff,
          "glm4moe.expert_feed_forward_length", "not within" },
        { "expert_shared_feed_forward_length", 0xfffffff0,
          "glm4moe.expert_shared_count", "at most" },
        { "leading_dense_block_count", 0, "blk.0.ffn_gate_inp.weight",
          "is missing" },
        { "leading_dense_block_count", 2, "blk.1.ffn_gate.weight",
          "is missing" }
    };

    needed("qwen3moe", tensors, llm_nelems(tensors));

    for (i = 0; i < llm_nelems(shared); i++) {
        refused("glm4moe", change(.reshape = shared[i]), shared[i],
                "its shape is");
    }

    refused("qwen3moe, scaled weights",
            change(.reshape = "blk.0.attn_q.scale"), "blk.0.attn_q.scale",
            "its shape is");
    refused("qwen3moe, scaled weights",
            change(.reshape = "blk.1.ffn_up_exps.scale"),
            "blk.1.ffn_up_exps.scale", "not [6, 1]");
    refused("qwen3moe, scaled weights", change(.reshape = "output.scale"),
            "output.scale", "its shape is");
    refused("qwen3moe", change(.extra = "blk.0.attn_norm.scale"),
            "blk.0.attn_norm.scale", "has no such tensor");
    refused("gpt-oss", change(.drop_key = "gpt-oss.attention.sliding_window"),
            "gpt-oss.attention.sliding_window", "is missing");
    refused("gpt-oss", change(.reshape = "blk.0.ffn_up_exps.bias"),
            "blk.0.ffn_up_exps.bias", "its shape is");
    refused("qwen2moe", change(.drop = "blk.0.ffn_gate_inp_shexp.weight"),
            "blk.0.ffn_gate_inp_shexp.weight", "is missing");
    refused("qwen3moe", change(.drop_key = "qwen3moe.expert_used_count"),
            "qwen3moe.expert_used_count", "is missing");
    refused("glm4moe", change(.drop_key = "glm4moe.feed_forward_length"),
            "glm4moe.feed_forward_length", "is missing");
    refused("qwen3moe", change(.drop_key =
                               "qwen3moe.expert_feed_forward_length",
                               .drop = "blk.0.ffn_down_exps.weight"),
            "blk.0.ffn_gate_exps.weight", "not [32, 64, 6]");
    refused("qwen3moe", change(.f32_key = "qwen3moe.expert_weights_scale",
                               .f32 = NAN),
            "qwen3moe.expert_weights_scale", "not a finite");

    numbers("glm4moe", odd, llm_nelems(odd));
}


/* what two matrices are made of has no scale; a header alone tells */

static void
test_scaled_latent(void)
{
    tiny_t          t;
    llm_err_t       err;
    llm_gguf_t     *g;
    llm_hparams_t   hp;

    t = *tiny_named("deepseek2, older file");
    t.scales = 1;
    err.msg[0] = '\0';

    g = write_model(&t, NULL) ? llm_gguf_open_header(path, &err) : NULL;
    ok(g && llm_model_check(g, &hp, &err) == LLM_ERROR
       && strstr(err.msg, "blk.0.attn_kv_b.scale: this scale"),
       "a scale of K and V in one: %s", err.msg);
    llm_gguf_close(g);
}


static void
test_bad_latent(void)
{
    size_t  i;

    static const char  *const tensors[] = {
        "blk.0.attn_q_a.weight", "blk.0.attn_q_a_norm.weight",
        "blk.1.attn_q_b.weight", "blk.0.attn_kv_a_mqa.weight",
        "blk.1.attn_kv_a_norm.weight", "blk.0.attn_k_b.weight",
        "blk.1.attn_v_b.weight", "blk.0.attn_output.weight"
    };

    static const number_t  odd[] = {
        { "attention.kv_lora_rank", 0, "attention.kv_lora_rank",
          "not within" },
        { "attention.kv_lora_rank", 1020, "attention.kv_lora_rank",
          "not within" },
        { "attention.kv_lora_rank", 25, "blk.0.attn_kv_a_mqa.weight",
          "its shape is" },
        { "attention.q_lora_rank", 0, "attention.q_lora_rank",
          "not within" },
        { "attention.key_length_mla", 6, "attention.key_length_mla",
          "not within" },
        { "attention.key_length_mla", 0xffffffff,
          "attention.key_length_mla", "not within" },
        { "attention.key_length_mla", 0, "blk.0.attn_q_b.weight",
          "its shape is" },
        { "attention.value_length_mla", 0, "attention.value_length_mla",
          "not within" },
        { "attention.value_length_mla", 1025, "attention.value_length_mla",
          "not within" },
        { "rope.dimension_count", 16, "attention.key_length_mla",
          "not within" }
    };

    for (i = 0; i < llm_nelems(tensors); i++) {
        refused("deepseek2", change(.reshape = tensors[i]), tensors[i],
                "its shape is");

        /* without the first, Q is said to be one matrix */
        refused("deepseek2", change(.drop = tensors[i]),
                i ? tensors[i] : "blk.0.attn_q.weight", "is missing");
    }

    refused("deepseek2, older file", change(.drop = "blk.1.attn_kv_b.weight"),
            "blk.1.attn_kv_b.weight", "is missing");
    refused("deepseek2, older file",
            change(.reshape = "blk.0.attn_kv_b.weight"),
            "blk.0.attn_kv_b.weight", "its shape is");
    test_scaled_latent();
    refused("baichuan", change(.u32_key = "baichuan.block_count",
                               .u32 = 40), "baichuan.block_count", "ALiBi");
    refused("deepseek2", change(.f32_key = "deepseek2.attention.scale",
                                .f32 = NAN),
            "deepseek2.attention.scale", "not a finite");
    refused("deepseek2",
            change(.f32_key = "deepseek2.attention.temperature_scale",
                   .f32 = 0.1f),
            "deepseek2.attention.temperature_length", "is missing");

    numbers("deepseek2", odd, llm_nelems(odd));
}


static void
test_bad_states(void)
{
    static const char  *const tensors[] = {
        "blk.0.attn_qkv.weight", "blk.0.attn_gate.weight",
        "blk.0.ssm_alpha.weight", "blk.0.ssm_beta.weight",
        "blk.0.ssm_conv1d.weight", "blk.0.ssm_a", "blk.0.ssm_dt.bias",
        "blk.0.ssm_norm.weight", "blk.0.ssm_out.weight"
    };

    static const char  *const mamba[] = {
        "blk.0.ssm_in.weight", "blk.0.ssm_conv1d.weight", "blk.0.ssm_a",
        "blk.0.ssm_d", "blk.0.ssm_norm.weight", "blk.0.ssm_out.weight"
    };

    static const char  *const shortconv[] = {
        "blk.0.shortconv.in_proj.weight", "blk.0.shortconv.conv.weight",
        "blk.0.shortconv.out_proj.weight", "token_embd_norm.weight"
    };

    static const number_t  odd[] = {
        { "ssm.conv_kernel", 0, "qwen35.ssm.conv_kernel", "not within" },
        { "ssm.conv_kernel", 33, "qwen35.ssm.conv_kernel", "not within" },
        { "ssm.conv_kernel", 4, "blk.0.ssm_conv1d.weight", "its shape is" },
        { "ssm.inner_size", 0, "qwen35.ssm.inner_size", "not within" },
        { "ssm.inner_size", 0xffffffff, "qwen35.ssm.inner_size",
          "not within" },
        { "ssm.inner_size", 22, "qwen35.ssm.time_step_rank",
          "4 does not divide 22" },
        { "ssm.inner_size", 24, "blk.0.attn_qkv.weight", "its shape is" },
        { "ssm.state_size", 0, "qwen35.ssm.state_size", "not within" },
        { "ssm.state_size", 0x80000000, "qwen35.ssm.state_size",
          "not within" },
        { "ssm.time_step_rank", 0, "qwen35.ssm.time_step_rank",
          "not within" },
        { "ssm.time_step_rank", 5, "qwen35.ssm.group_count",
          "2 does not divide 5" },
        { "ssm.group_count", 0, "qwen35.ssm.group_count", "not within" },
        { "ssm.group_count", 3, "qwen35.ssm.group_count",
          "3 does not divide 4" },
        { "ssm.group_count", 5, "qwen35.ssm.group_count", "not within" },
        { "full_attention_interval", 1, "blk.0.attn_qkv.weight",
          "its shape is" },
        { "full_attention_interval", 0, "blk.0.attn_qkv.weight",
          "its shape is" },
        { "attention.head_count_kv", 0, "blk.1.attn_qkv.weight",
          "is missing" }
    };

    needed("qwen35", tensors, llm_nelems(tensors));
    needed("granitehybrid", mamba, llm_nelems(mamba));
    needed("lfm2", shortconv, llm_nelems(shortconv));
    numbers("qwen35", odd, llm_nelems(odd));

    refused("lfm2", change(.u32_key = "lfm2.shortconv.l_cache", .u32 = 0),
            "lfm2.shortconv.l_cache", "not within");
    refused("qwen35", change(.u32_key = "qwen35.attention.value_length",
                             .u32 = 4),
            "qwen35.attention.value_length", "a gate of 8");
}


/* the architecture is judged before the types of its tensors: who reads the
   message gets to know what would not help */

static void
test_order(void)
{
    size_t         i;
    uint64_t       ne = 32;
    llm_buf_t      b;
    llm_err_t      err;
    llm_gguf_t    *g;
    llm_hparams_t  hp;

    static const struct {
        const char  *key;
        const char  *value;
        const char  *why;
    } cases[] = {
        { "general.architecture", "deepseek4",
          "\"deepseek4\" is not supported (deepseek2, deepseek are; " },
        { "general.architecture", "cohere",
          "\"cohere\" is not supported (cohere2 is; " },
        { "general.architecture", "nobody-knows",
          "\"nobody-knows\" is not supported (\"llm help\" lists all " },
        { "general.architecture", "llama",
          "f: t: tensors of type I32 are not supported" },
        { "general.type", "imatrix", "an importance matrix" },
        { "any.key", "", "general.architecture: it is missing" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        gguf_begin(&b, 3, 1, 1);
        gguf_kv_str(&b, cases[i].key, cases[i].value);
        gguf_tensor(&b, "t", 1, &ne, 26, 0);
        gguf_pad(&b, 32);

        err.msg[0] = '\0';
        g = llm_gguf_open_memory(b.data, b.len, "f", &err);
        ok(g && llm_model_check(g, &hp, &err) == LLM_ERROR
           && strstr(err.msg, cases[i].why), "%s: %s", cases[i].value,
           err.msg);

        llm_gguf_close(g);
        llm_buf_free(&b);
    }
}


int
main(void)
{
    if (!tiny_begin()) {
        return done_testing();
    }

    test_tensors();
    test_fields();
    test_bad_experts();
    test_bad_states();
    test_bad_latent();

    tiny_end();
    test_order();

    return done_testing();
}
