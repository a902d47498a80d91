/*
 * Models made here: logits against an independent implementation in float64
 * (tiny_expected.py), and files that must be refused, each with the file,
 * the field or tensor, and the reason.
 */

#include "t/unit/tap.h"
#include "t/unit/model_run.h"
#include "t/unit/tiny_expected.h"

#include <unistd.h>


static char  path[] = "/tmp/llm-model-XXXXXX";


static int
write_model(const tiny_t *t, const tiny_change_t *change)
{
    int        rc;
    FILE      *f;
    llm_buf_t  b;

    llm_buf_init(&b, 0);
    rc = tiny_gguf(t, change, &b);

    f = fopen(path, "wb");
    rc = rc == LLM_OK && f && fwrite(b.data, 1, b.len, f) == b.len;

    if (f) {
        fclose(f);
    }

    llm_buf_free(&b);

    return rc;
}


static void
set_opts(llm_model_opts_t *o, const char *device, const char *isa)
{
    memset(o, 0, sizeof(llm_model_opts_t));
    o->device = device;
    o->isa = isa;
    o->threads = 2;
    o->max_seqs = 2;
    o->batch = 16;
}


/*
 * For a backend that rounds activations: twice what the fixtures allow on
 * average, since this is one row of few logits.
 */

static double
bound_of(uint32_t type)
{
    if (llm_type_block(type) == 256) {
        return 0.036;
    }

    if (llm_type_block(type) == 32) {
        return 0.025;
    }

    return type == LLM_TYPE_BF16 ? 0.009 : 0.003;
}


static void
check_logits(const tiny_t *t, const char *device, const char *isa,
    double bound)
{
    float             logits[TINY_IDS * TINY_VOCAB];
    double            d;
    int32_t           ids[TINY_IDS];
    uint32_t          i;
    run_seq_t         s;
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, device, isa);
    m = llm_model_load(path, &o, &err);

    if (m == NULL && isa) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s loads on %s", t->name, device)) {
        printf("# %s\n", err.msg);
        return;
    }

    for (i = 0; i < TINY_IDS; i++) {
        ids[i] = tiny_id(i);
    }

    memset(&s, 0, sizeof(s));
    s.ids = ids;
    s.n = TINY_IDS;
    s.logits = logits;

    d = 1;

    if (run_chunks(m, &s, 4, 0, &err) == LLM_OK) {
        d = run_distance(logits + (TINY_IDS - 1) * TINY_VOCAB, t->logits,
                         TINY_VOCAB);
    }

    ok(d <= bound, "%s on %s %s: %.7f of the deviation (at most %g)",
       t->name, device, isa ? isa : "", d, bound);

    llm_model_free(m);
}


static void
test_expected(void)
{
    size_t  i, k;

    static const char  *const isas[] = { "avx2", "avx512", "amx" };

    for (i = 0; i < llm_nelems(tinies); i++) {
        if (!ok(write_model(&tinies[i], NULL), "%s is written",
                tinies[i].name))
        {
            continue;
        }

        check_logits(&tinies[i], "reference", NULL, 1e-5);

        for (k = 0; k < llm_nelems(isas); k++) {
            check_logits(&tinies[i], "cpu", isas[k],
                         bound_of(tinies[i].type));
        }
    }
}


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


#define change(...)  ((tiny_change_t) { __VA_ARGS__ })


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
    } numbers[] = {
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
        { "llama.context_length", 100, "its type is" }
    };

    for (i = 0; i < llm_nelems(needed); i++) {
        refused("llama", change(.drop_key = needed[i]), needed[i],
                "is missing");
    }

    for (i = 0; i < llm_nelems(numbers); i++) {
        refused("llama", change(.u32_key = numbers[i].key,
                                .u32 = numbers[i].value),
                i == 2 ? "blk.2." : numbers[i].key, numbers[i].why);
    }

    for (i = 0; i < llm_nelems(floats); i++) {
        refused("llama", change(.f32_key = floats[i].key,
                                .f32 = floats[i].value),
                floats[i].key, floats[i].why);
    }

    refused("llama", change(.str_key = "general.architecture",
                            .str = "mamba"),
            "general.architecture", "\"mamba\" is not supported");
    refused("llama", change(.u32_key = "split.count", .u32 = 3),
            "split.no", "part 1 of 3, and its name does not end in");
    refused("llama", change(.str_key = "llama.rope.scaling.type",
                            .str = "longrope"),
            "llama.rope.scaling.type", "\"longrope\" is not supported");
    refused("llama", change(.str_key = "llama.block_count", .str = "2"),
            "llama.block_count", "its type is");
    refused("qwen3, YaRN",
            change(.f32_key = "qwen3.rope.scaling.yarn_beta_fast",
                   .f32 = -1),
            "yarn_beta", "not above 0");
    refused("qwen3, YaRN",
            change(.u32_key = "qwen3.rope.scaling.original_context_length",
                   .u32 = 0),
            "original_context_length", "0 is no length");
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

    static const struct {
        const char  *key;
        uint32_t     value;
        const char  *what;
        const char  *why;
    } numbers[] = {
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
          "8 groups of the 8" },
        { "expert_group_count", 3, "glm4moe.expert_group_count",
          "3 groups of the 8" },
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

    for (i = 0; i < llm_nelems(tensors); i++) {
        refused("qwen3moe", change(.drop = tensors[i]), tensors[i],
                "is missing");
        refused("qwen3moe", change(.reshape = tensors[i]), tensors[i],
                "its shape is");
    }

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
    refused("gpt-oss", change(.reshape = "blk.0.ffn_up_exps.bias"),
            "blk.0.ffn_up_exps.bias", "its shape is");
    refused("qwen2moe", change(.drop = "blk.0.ffn_gate_inp_shexp.weight"),
            "blk.0.ffn_gate_inp_shexp.weight", "is missing");
    refused("qwen3moe", change(.drop_key = "qwen3moe.expert_used_count"),
            "qwen3moe.expert_used_count", "is missing");
    refused("qwen3moe", change(.f32_key = "qwen3moe.expert_weights_scale",
                               .f32 = NAN),
            "qwen3moe.expert_weights_scale", "not a finite");

    for (i = 0; i < llm_nelems(numbers); i++) {
        char  key[64];

        snprintf(key, sizeof(key), "glm4moe.%s", numbers[i].key);
        refused("glm4moe", change(.u32_key = key, .u32 = numbers[i].value),
                numbers[i].what, numbers[i].why);
    }
}


static void
test_bad_latent(void)
{
    char    key[64];
    size_t  i;

    static const char  *const tensors[] = {
        "blk.0.attn_q_a.weight", "blk.0.attn_q_a_norm.weight",
        "blk.1.attn_q_b.weight", "blk.0.attn_kv_a_mqa.weight",
        "blk.1.attn_kv_a_norm.weight", "blk.0.attn_k_b.weight",
        "blk.1.attn_v_b.weight", "blk.0.attn_output.weight"
    };

    static const struct {
        const char  *key;
        uint32_t     value;
        const char  *what;
        const char  *why;
    } numbers[] = {
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
    refused("baichuan", change(.u32_key = "baichuan.block_count",
                               .u32 = 40), "baichuan.block_count", "ALiBi");
    refused("deepseek2", change(.f32_key = "deepseek2.attention.scale",
                                .f32 = NAN),
            "deepseek2.attention.scale", "not a finite");
    refused("deepseek2",
            change(.f32_key = "deepseek2.attention.temperature_scale",
                   .f32 = 0.1f),
            "deepseek2.attention.temperature_length", "is missing");

    for (i = 0; i < llm_nelems(numbers); i++) {
        snprintf(key, sizeof(key), "deepseek2.%s", numbers[i].key);
        refused("deepseek2", change(.u32_key = key,
                                    .u32 = numbers[i].value),
                numbers[i].what, numbers[i].why);
    }
}


static void
test_bad_states(void)
{
    size_t  i;

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

    static const struct {
        const char  *key;
        uint32_t     value;
        const char  *what;
        const char  *why;
    } numbers[] = {
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

    for (i = 0; i < llm_nelems(tensors); i++) {
        refused("qwen35", change(.drop = tensors[i]), tensors[i],
                "is missing");
        refused("qwen35", change(.reshape = tensors[i]), tensors[i],
                "its shape is");
    }

    for (i = 0; i < llm_nelems(mamba); i++) {
        refused("granitehybrid", change(.drop = mamba[i]), mamba[i],
                "is missing");
        refused("granitehybrid", change(.reshape = mamba[i]), mamba[i],
                "its shape is");
    }

    for (i = 0; i < llm_nelems(shortconv); i++) {
        refused("lfm2", change(.drop = shortconv[i]), shortconv[i],
                "is missing");
        refused("lfm2", change(.reshape = shortconv[i]), shortconv[i],
                "its shape is");
    }

    for (i = 0; i < llm_nelems(numbers); i++) {
        char  key[64];

        snprintf(key, sizeof(key), "qwen35.%s", numbers[i].key);
        refused("qwen35", change(.u32_key = key, .u32 = numbers[i].value),
                numbers[i].what, numbers[i].why);
    }

    refused("lfm2", change(.u32_key = "lfm2.shortconv.l_cache", .u32 = 0),
            "lfm2.shortconv.l_cache", "not within");
    refused("qwen35", change(.u32_key = "qwen35.attention.value_length",
                             .u32 = 4),
            "qwen35.attention.value_length", "a gate of 8");
}


static char  last_log[1024];


static void
keep_log(void *data, int level, const char *msg)
{
    if (level <= LLM_LOG_WARN) {
        snprintf(data, sizeof(last_log), "%s", msg);
    }
}


static llm_model_t *
load_with(llm_model_opts_t *o, const tiny_change_t *change, llm_err_t *err)
{
    last_log[0] = '\0';
    memset(err, 0, sizeof(llm_err_t));
    o->log = keep_log;
    o->log_data = last_log;

    if (!write_model(tiny_named("qwen3"), change)) {
        return NULL;
    }

    return llm_model_load(path, o, err);
}


static void
count_progress(void *data, int permille)
{
    int  *last = data;

    *last = permille >= *last && permille <= 1000 ? permille : -1;
}


static void
test_options(void)
{
    int               last, cancel;
    char              device[128];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, "reference", NULL);
    last = 0;
    o.progress = count_progress;
    o.progress_data = &last;
    m = load_with(&o, NULL, &err);

    ok(m && llm_model_ctx(m) == 256, "ctx is the trained one");
    ok(m && llm_model_n_pages(m) == 32, "pages for two sequences");
    ok(m && llm_model_max_out(m) == 16, "every row may give logits");
    is_int(last, 1000, "progress only rises, to the end");

    if (m) {
        llm_model_device(m, device, sizeof(device));
        ok(strstr(device, "reference"), "the device is named: %s", device);
    }

    llm_model_free(m);

    cancel = 1;
    o.cancel = &cancel;
    m = load_with(&o, NULL, &err);
    ok(m == NULL && strstr(err.msg, "given up"), "a load can be given up");
    o.cancel = NULL;

    o.ctx = 100;
    m = load_with(&o, NULL, &err);
    ok(m && llm_model_ctx(m) == 100 && llm_model_n_pages(m) == 14,
       "ctx=100 takes 7 pages a sequence");
    llm_model_free(m);

    o.ctx = 512;
    m = load_with(&o, NULL, &err);
    ok(m && strstr(last_log, "trained for 256"), "a warning beyond training");
    llm_model_free(m);

    /* a page: 2 layers, 16 tokens, 2 heads of 8 and 8 floats */
    o.ctx = 256;
    o.kv_bytes = 15 * 2 * 16 * 2 * 16 * sizeof(float);
    m = load_with(&o, NULL, &err);
    ok(m == NULL && strstr(err.msg, "ctx=256"),
       "15 pages are too few for ctx=256: %s", err.msg);
    llm_model_free(m);

    o.ctx = 0;
    m = load_with(&o, NULL, &err);
    ok(m && llm_model_ctx(m) == 240 && llm_model_n_pages(m) == 15
       && strstr(last_log, "ctx is 240 of 256"), "ctx gives way to them");
    llm_model_free(m);
    o.kv_bytes = 0;

    m = load_with(&o, &change(.u32_key = "qwen3.attention.sliding_window",
                              .u32 = 64), &err);
    ok(m && llm_model_ctx(m) == 256, "a sliding window leaves ctx as it is");
    llm_model_free(m);

    o.ctx = 0;
    m = load_with(&o, &change(.extra = "mystery"), &err);
    ok(m && strstr(last_log, "mystery"), "an unknown tensor is named");
    llm_model_free(m);
}


static void
test_devices(void)
{
    size_t            i;
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    static const struct {
        const char  *device;
        const char  *why;
    } devices[] = {
        { "gpu", "is unknown" }, { "", "is unknown" },
        { "cuda:", "is unknown" }, { "cuda:x", "is unknown" },
        { "cuda:1x", "is unknown" }, { "cuda:99999", "is unknown" },
        { "cuda", "there is no /nowhere/llm_cuda.so" },
        { "cuda:0", "there is no /nowhere/llm_cuda.so" },
        { "emu", "there is no /nowhere/llm_emu.so" }
    };

    for (i = 0; i < llm_nelems(devices); i++) {
        set_opts(&o, devices[i].device, NULL);
        o.backend_dir = "/nowhere";
        m = load_with(&o, NULL, &err);

        ok(m == NULL && strstr(err.msg, devices[i].why),
           "device \"%s\": %s", devices[i].device, err.msg);
        llm_model_free(m);
    }

    set_opts(&o, "cpu", "reference");
    m = load_with(&o, NULL, &err);
    ok(m != NULL, "cpu with isa=reference");
    llm_model_free(m);
}


/* layers that predict more tokens are in the file, and nothing of them runs */

static void
test_skipped(void)
{
    tiny_t         t;
    tiny_change_t  change;

    t = *tiny_named("llama");
    t.name = "llama with a layer that predicts more";
    t.layers = 3;
    change = change(.u32_key = "llama.nextn_predict_layers", .u32 = 1);

    if (ok(write_model(&t, &change), "%s is written", t.name)) {
        check_logits(&t, "reference", NULL, 1e-5);
    }
}


/* a page copied is the same cache */

static void
test_copy_page(void)
{
    float             logits[2][TINY_IDS * TINY_VOCAB];
    int32_t           ids[TINY_IDS];
    uint32_t          i, take;
    run_seq_t         s[2];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, "reference", NULL);
    m = load_with(&o, NULL, &err);

    for (i = 0; i < TINY_IDS; i++) {
        ids[i] = tiny_id(i);
    }

    memset(s, 0, sizeof(s));
    memset(logits, 0, sizeof(logits));

    for (i = 0; i < 2; i++) {
        s[i].ids = ids;
        s[i].n = TINY_IDS;
        s[i].logits = logits[i];
        s[i].page = i;
    }

    if (ok(m && run_chunks(m, &s[0], TINY_IDS, 1, &err) == LLM_OK,
           "a sequence in page 0"))
    {
        llm_model_copy_page(m, 0, 1);
        s[1].done = TINY_IDS - 1;
        take = 1;

        ok(run_step(m, &s[1], &take, 1, 1, &err) == LLM_OK
           && memcmp(logits[0] + (TINY_IDS - 1) * TINY_VOCAB,
                     logits[1] + (TINY_IDS - 1) * TINY_VOCAB,
                     TINY_VOCAB * sizeof(float)) == 0,
           "the last token again, on a copy of the page: the same bits");
    }

    llm_model_free(m);
}


/* what a step of one token reads: no table of embeddings that is not the
   head, and of the six experts the two that are used */

static void
test_step_bytes(void)
{
    size_t                i;
    uint64_t              all, step, a_third;
    llm_err_t             err;
    llm_model_t          *m;
    llm_gguf_t           *g;
    llm_model_opts_t      o;

    const llm_gguf_tensor_t  *t;

    set_opts(&o, "reference", NULL);

    if (!ok(write_model(tiny_named("qwen3moe"), NULL), "a mixture")) {
        return;
    }

    m = llm_model_load(path, &o, &err);
    g = llm_gguf_open(path, &err);

    for (i = 0, all = 0, a_third = 0; g && i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);
        all += t->size;
        a_third += t->n_dims == 3 ? t->size : 0;
    }

    step = all - a_third + a_third / 6 * 2;

    if (g && llm_gguf_find_tensor(g, "output.weight")) {
        step -= llm_gguf_find_tensor(g, "token_embd.weight")->size;
    }

    ok(m && g && a_third && llm_model_hparams(m)->n_bytes == all
       && llm_model_hparams(m)->n_bytes_step == step,
       "a step reads %llu of %llu bytes", (unsigned long long) step,
       (unsigned long long) all);

    llm_gguf_close(g);
    llm_model_free(m);
}


/* a width that says nothing more is no reason to refuse a file */

static void
test_hybrid_dense(void)
{
    const tiny_t   *t = tiny_named("granitehybrid");
    tiny_change_t   change;

    change = change(.u32_key = "granitehybrid"
                               ".expert_shared_feed_forward_length",
                    .u32 = t->ff);

    if (ok(write_model(t, &change), "%s, its width twice", t->name)) {
        check_logits(t, "reference", NULL, 1e-5);
    }
}


/* pages that take no memory: as many as the sequences need */

static void
test_no_attention(void)
{
    float             logits[2][TINY_IDS * TINY_VOCAB];
    tiny_t            t;
    int32_t           ids[TINY_IDS];
    uint32_t          i;
    run_seq_t         s[2];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    t = *tiny_named("granitehybrid");
    t.interval = t.layers + 1;
    set_opts(&o, "cpu", NULL);
    o.max_seqs = 2;
    o.kv_bytes = 1 << 20;

    m = write_model(&t, NULL) ? llm_model_load(path, &o, &err) : NULL;

    if (!ok(m != NULL, "a model without attention loads")) {
        return;
    }

    ok(llm_model_n_pages(m) == 2 * ((llm_model_ctx(m) + LLM_KV_PAGE - 1)
                                    / LLM_KV_PAGE),
       "with %u pages", llm_model_n_pages(m));

    for (i = 0; i < TINY_IDS; i++) {
        ids[i] = tiny_id(i);
    }

    memset(s, 0, sizeof(s));

    for (i = 0; i < 2; i++) {
        s[i].ids = ids;
        s[i].n = TINY_IDS;
        s[i].logits = logits[i];
        s[i].page = i;
    }

    ok(run_chunks(m, &s[0], TINY_IDS, 1, &err) == LLM_OK
       && run_chunks(m, &s[1], 1, 1, &err) == LLM_OK
       && memcmp(logits[0], logits[1], sizeof(logits[0])) == 0,
       "and gives the same bits token by token");

    llm_model_free(m);
}


/* slots for running sequences and for snapshots, and a copied one */

static void
test_slots(void)
{
    float             logits[2][TINY_IDS * TINY_VOCAB];
    int32_t           ids[TINY_IDS];
    uint32_t          i, slots, pages, take;
    run_seq_t         s[2];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, "reference", NULL);
    o.max_seqs = 3;

    if (!write_model(tiny_named("qwen35"), NULL)) {
        return;
    }

    o.kv_bytes = 1;
    m = llm_model_load(path, &o, &err);
    ok(m == NULL && strstr(err.msg, "the recurrent states of 3 sequences"),
       "too little memory for states: %s", err.msg);
    llm_model_free(m);

    o.kv_bytes = 1 << 20;
    m = llm_model_load(path, &o, &err);

    if (!ok(m != NULL, "memory for states")) {
        return;
    }

    slots = llm_model_n_slots(m);
    pages = llm_model_n_pages(m);
    ok(slots > 4 && slots - 3 <= pages, "%u slots, %u pages", slots, pages);

    for (i = 0; i < TINY_IDS; i++) {
        ids[i] = tiny_id(i);
    }

    memset(s, 0, sizeof(s));
    memset(logits, 0, sizeof(logits));

    for (i = 0; i < 2; i++) {
        s[i].ids = ids;
        s[i].n = TINY_IDS;
        s[i].logits = logits[i];
        s[i].page = i;
    }

    take = TINY_IDS - 2;
    ok(run_step(m, &s[0], &take, 1, 1, &err) == LLM_OK, "a sequence");

    /* the other goes on from copies of its page and slot */

    llm_model_copy_page(m, 0, 1);
    llm_model_copy_slot(m, 0, 1);
    s[1].done = TINY_IDS - 2;
    take = 2;

    ok(run_step(m, &s[0], &take, 1, 1, &err) == LLM_OK
       && run_step(m, &s[1], &take, 1, 1, &err) == LLM_OK
       && memcmp(logits[0] + (TINY_IDS - 2) * TINY_VOCAB,
                 logits[1] + (TINY_IDS - 2) * TINY_VOCAB,
                 2 * TINY_VOCAB * sizeof(float)) == 0,
       "a copy of its page and slot: the same bits");

    llm_model_free(m);
}


int
main(void)
{
    int  fd;

    fd = mkstemp(path);

    if (!ok(fd >= 0, "a temporary file")) {
        return done_testing();
    }

    close(fd);

    test_expected();
    test_tensors();
    test_fields();
    test_bad_experts();
    test_bad_states();
    test_bad_latent();
    test_options();
    test_devices();
    test_skipped();
    test_copy_page();
    test_step_bytes();
    test_hybrid_dense();
    test_no_attention();
    test_slots();

    unlink(path);

    return done_testing();
}
