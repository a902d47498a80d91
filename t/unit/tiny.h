/*
 * Tiny models with weights that anybody can make again: every tensor is a
 * stream of bytes seeded by its name.  tiny_expected.py makes the same ones
 * and says what their logits are.
 */

#ifndef LLM_T_TINY_H
#define LLM_T_TINY_H

#include "engine/base/base.h"
#include "kernels/types.h"

#include <stdio.h>

#define TINY_IDS    9
#define TINY_VOCAB  37

/* a model; metadata that is 0 or NULL is not written */
typedef struct {
    const char  *name;
    const char  *arch;
    uint32_t     type;                  /* of the matrices */
    uint32_t     layers;
    uint32_t     embd;
    uint32_t     heads;
    uint32_t     kv_heads;
    uint32_t     head_k;
    uint32_t     head_v;
    uint32_t     ff;
    uint32_t     rot;
    int          tied;
    int          qk_norm;               /* 2: of whole rows; 3: with weights
                                           for each head */
    int          post;                  /* norms behind the blocks */
    int          no_pre;                /* and none before */
    int          layernorm;             /* 2: with a bias */
    int          parallel;
    int          apart;                 /* falcon: attention's norm is
                                           attn_norm_2 */
    int          fused;                 /* attn_qkv, ffn_up with the gate */
    int          no_gate;
    int          pos;                   /* position_embd.weight */
    uint32_t     window;
    float        cap;
    float        bound;                 /* attention.clamp_kqv */
    int          bare;                  /* norms without weights */
    const char  *ffn_norm;              /* its name, if it is not that */
    float        final_cap;
    float        embd_scale;
    float        residual_scale;
    float        logit_scale;
    int          qkv_bias;
    int          all_bias;              /* of every matrix of a layer */
    int          freqs;                 /* rope_freqs.weight */
    int          factors;               /* rope_factors_long, _short */
    int          swap;                  /* the tensors of rows/tensors.def */
    int          rank;                  /* cls.output.weight, and labels */
    uint32_t     experts;               /* 0: no mixtures */
    uint32_t     used;
    uint32_t     ff_expert;
    uint32_t     ff_shared;
    uint32_t     dense;                 /* layers without, at the beginning */
    uint32_t     gating;                /* expert_gating_func */
    uint32_t     groups;
    uint32_t     groups_used;
    float        weights_scale;
    int          probs_bias;
    int          shared_switch;
    int          expert_bias;           /* of the router, too */
    int          sinks;
    int          late_norm;             /* ffn_norm is called as if it were
                                           behind attention */
    int          gated;                 /* attn_q has gates of the heads */
    int          attn_gate;             /* they are a matrix of their own */
    uint32_t     interval;              /* the last of so many layers has
                                           attention; 0: all */
    const char  *kinds;                 /* nemotron_h: what each layer is:
                                           a(ttention), m(amba), f(eed) */
    uint32_t     conv;                  /* ssm.conv_kernel */
    uint32_t     ssm_inner;
    uint32_t     ssm_heads;
    uint32_t     ssm_groups;
    uint32_t     ssm_state;
    int          mixed;                 /* qwen3next: the products of a
                                           recurrent layer are one matrix */
    uint32_t     shortconv;
    uint32_t     latent;                /* width of the latent; head_k and
                                           head_v are those of the file */
    uint32_t     q_rank;
    uint32_t     plain;                 /* of Q's heads, beside rot */
    uint32_t     head_out;
    int          kv_b;                  /* keys' and values' matrices in one */
    float        yarn_log;
    int          scales;                /* NAME.scale for each NAME.weight */
    int          two_norms;             /* parallel: the feed-forward network
                                           has a norm of its own */
    int          sequential;            /* use_parallel_residual: false */
    int          said;                  /* it is true, and this is not */
    int          norm_last;             /* nothing in the file says it */
    int          output_bias;
    int          sections;              /* rope.dimension_sections */
    float        temp_scale;            /* temperature of attention */
    uint32_t     temp_length;
    float        attn_scale;
    const char  *scaling;
    float        factor;
    float        scale_linear;          /* the old name */
    uint32_t     orig_ctx;
    float        beta_fast;
    float        beta_slow;
    float        ext_factor;
    float        attn_factor;
    float        yarn_attn_factor;
    float        logits[TINY_VOCAB];    /* behind the last id */
} tiny_t;

/* what a test does to a model before it is written */
typedef struct {
    const char  *drop;                  /* this tensor is left out */
    const char  *reshape;               /* this one gets a row more */
    const char  *retype;                /* this one is Q8_0 */
    const char  *extra;                 /* a tensor [32] more */
    const char  *drop_key;              /* this key is left out */
    const char  *u32_key;               /* a key more, or instead */
    uint32_t     u32;
    const char  *f32_key;
    float        f32;
    const char  *str_key;
    const char  *str;
} tiny_change_t;

typedef struct {
    llm_buf_t             kv;
    llm_buf_t             infos;
    llm_buf_t             data;
    uint64_t              n_kv;
    uint64_t              n_tensors;
    const tiny_change_t  *change;
    int                   scales;
} tiny_file_t;


/* the ids that the expected logits stand behind */
static inline int32_t
tiny_id(uint32_t i)
{
    return (int32_t) (i * 7 + 3) % TINY_VOCAB;
}


static inline uint8_t
tiny_byte(uint32_t *x)
{
    *x = *x * 1664525 + 1013904223;

    return (uint8_t) (*x >> 24);
}


/* FNV-1a */
static inline uint32_t
tiny_seed(const char *name)
{
    uint32_t  h;

    for (h = 2166136261u; *name; name++) {
        h = (h ^ (uint8_t) *name) * 16777619;
    }

    return h;
}


static inline void
tiny_str(llm_buf_t *b, const char *s)
{
    uint64_t  n;

    n = strlen(s);
    (void) llm_buf_add(b, &n, 8);
    (void) llm_buf_add(b, s, n);
}


static inline int
tiny_is(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}


static inline void
tiny_key(tiny_file_t *f, const char *key, uint32_t type)
{
    tiny_str(&f->kv, key);
    (void) llm_buf_add(&f->kv, &type, 4);
    f->n_kv++;
}


static inline int
tiny_skips_key(const tiny_file_t *f, const char *key)
{
    const tiny_change_t  *c = f->change;

    return c && (tiny_is(c->drop_key, key) || tiny_is(c->u32_key, key)
                 || tiny_is(c->f32_key, key) || tiny_is(c->str_key, key));
}


static inline void
tiny_u32(tiny_file_t *f, const char *arch, const char *name, uint32_t v)
{
    char  key[128];

    snprintf(key, sizeof(key), "%s.%s", arch, name);

    if (v && !tiny_skips_key(f, key)) {
        tiny_key(f, key, 4);
        (void) llm_buf_add(&f->kv, &v, 4);
    }
}


static inline void
tiny_f32(tiny_file_t *f, const char *arch, const char *name, float v)
{
    char  key[128];

    snprintf(key, sizeof(key), "%s.%s", arch, name);

    if (v != 0 && !tiny_skips_key(f, key)) {
        tiny_key(f, key, 6);
        (void) llm_buf_add(&f->kv, &v, 4);
    }
}


/* the scales of a block lie in float16 fields: offset, value; twice */
static inline void
tiny_block_scales(uint32_t type, uint8_t *block)
{
    size_t    i;
    uint16_t  h;

    static const struct {
        uint32_t  type;
        uint32_t  at[2];
        float     v[2];
    } fields[] = {
        { LLM_TYPE_Q8_0, { 0, 0 }, { 0x1p-10f, 0x1p-10f } },
        { LLM_TYPE_Q4_0, { 0, 0 }, { 0x1p-6f, 0x1p-6f } },
        { LLM_TYPE_Q4_1, { 0, 2 }, { 0x1p-6f, -0x1p-3f } },
        { LLM_TYPE_Q5_0, { 0, 0 }, { 0x1p-7f, 0x1p-7f } },
        { LLM_TYPE_Q5_1, { 0, 2 }, { 0x1p-7f, -0x1p-3f } },
        { LLM_TYPE_Q4_K, { 0, 2 }, { 0x1p-11f, 0x1p-8f } },
        { LLM_TYPE_Q5_K, { 0, 2 }, { 0x1p-12f, 0x1p-8f } },
        { LLM_TYPE_Q6_K, { 208, 208 }, { 0x1p-13f, 0x1p-13f } }
    };

    for (i = 0; i < llm_nelems(fields); i++) {
        if (fields[i].type == type) {
            h = llm_f32_to_f16(fields[i].v[0]);
            memcpy(block + fields[i].at[0], &h, 2);
            h = llm_f32_to_f16(fields[i].v[1]);
            memcpy(block + fields[i].at[1], &h, 2);
        }
    }
}


/* n elements: 1 + b / 512 for norms, b / 512 else, b a signed byte */
static inline void
tiny_fill(llm_buf_t *out, const char *name, uint32_t type, size_t n)
{
    float      v, middle;
    size_t     i, k, size, count;
    uint8_t    block[256];
    uint16_t   h;
    uint32_t   x;

    x = tiny_seed(name);
    size = llm_type_block_size(type);
    count = llm_type_block(type);
    middle = strstr(name, "norm") || strstr(name, "rope_f")
             || strstr(name, "scale");

    for (i = 0; i < n; i += count) {
        if (count > 1) {
            for (k = 0; k < size; k++) {
                block[k] = tiny_byte(&x);
            }

            tiny_block_scales(type, block);

        } else {
            v = (float) (int8_t) tiny_byte(&x) / 512 + middle;
            h = type == LLM_TYPE_F16 ? llm_f32_to_f16(v) : llm_f32_to_bf16(v);
            memcpy(block, type == LLM_TYPE_F32 ? (void *) &v : (void *) &h,
                   size);
        }

        (void) llm_buf_add(out, block, size);
    }
}


/* experts are 0 for a tensor of two dimensions */
static inline void
tiny_tensor_3(tiny_file_t *f, const char *name, uint32_t type, uint64_t row,
    uint64_t rows, uint64_t experts)
{
    char      scale[96];
    uint32_t  n_dims;
    uint64_t  off;

    if (f->change) {
        if (tiny_is(f->change->drop, name)) {
            return;
        }

        if (tiny_is(f->change->reshape, name)) {
            rows = rows ? rows + 1 : 2;
        }

        if (tiny_is(f->change->retype, name)) {
            type = LLM_TYPE_Q8_0;
        }
    }

    while (f->data.len % 32) {
        (void) llm_buf_addc(&f->data, 0);
    }

    n_dims = experts ? 3 : rows ? 2 : 1;
    off = f->data.len;

    tiny_str(&f->infos, name);
    (void) llm_buf_add(&f->infos, &n_dims, 4);
    (void) llm_buf_add(&f->infos, &row, 8);

    if (rows) {
        (void) llm_buf_add(&f->infos, &rows, 8);
    }

    if (experts) {
        (void) llm_buf_add(&f->infos, &experts, 8);
    }

    (void) llm_buf_add(&f->infos, &type, 4);
    (void) llm_buf_add(&f->infos, &off, 8);
    f->n_tensors++;

    tiny_fill(&f->data, name, type,
              row * (rows ? rows : 1) * (experts ? experts : 1));

    if (f->scales && rows && strstr(name, ".weight")
        && !strstr(name, "token_embd") && !strstr(name, "gate_inp"))
    {
        snprintf(scale, sizeof(scale), "%.*s.scale",
                 (int) (strlen(name) - strlen(".weight")), name);
        tiny_tensor_3(f, scale, LLM_TYPE_F32, experts ? experts : 1, 0, 0);
        memcpy(scale + strlen(scale) - 5, "input_scale", 12);
        tiny_tensor_3(f, scale, LLM_TYPE_F32, experts ? experts : 1, 0, 0);
    }
}


/* rows are 0 for a vector */
static inline void
tiny_tensor(tiny_file_t *f, const char *name, uint32_t type, uint64_t row,
    uint64_t rows)
{
    tiny_tensor_3(f, name, type, row, rows, 0);
}


/* a ranker's metadata; rank 2: "no" is the first label */
static inline void
tiny_rank(tiny_file_t *f, const tiny_t *t)
{
    char      key[64];
    uint32_t  item = 8;
    uint64_t  n = 2;

    tiny_u32(f, t->arch, "pooling_type", 4);
    snprintf(key, sizeof(key), "%s.classifier.output_labels", t->arch);
    tiny_key(f, key, 9);
    (void) llm_buf_add(&f->kv, &item, 4);
    (void) llm_buf_add(&f->kv, &n, 8);
    tiny_str(&f->kv, t->rank == 2 ? "no" : "yes");
    tiny_str(&f->kv, t->rank == 2 ? "yes" : "no");
}


/* parts of a head whose positions are those of an image */
static inline void
tiny_sections(tiny_file_t *f, const tiny_t *t)
{
    char      key[64];
    uint32_t  item = 5;
    uint64_t  n = 4;

    /* all pairs of a head that are rotated: 4, or 2 of them */
    static const int32_t  all[] = { 2, 1, 1, 0 }, half[] = { 1, 1, 0, 0 };

    snprintf(key, sizeof(key), "%s.rope.dimension_sections", t->arch);
    tiny_key(f, key, 9);
    (void) llm_buf_add(&f->kv, &item, 4);
    (void) llm_buf_add(&f->kv, &n, 8);
    (void) llm_buf_add(&f->kv, t->rot == 4 ? half : all, sizeof(all));

    if (strstr(t->arch, "qwen3vl")) {
        tiny_u32(f, t->arch, "n_deepstack_layers", 1);
    }
}


/* a number of the layers of one kind, 0 of all others */
static inline void
tiny_of_kind(tiny_file_t *f, const tiny_t *t, const char *name, char kind,
    uint32_t v)
{
    char        key[64];
    uint32_t    i, item = 4, none = 0;
    uint64_t    n = t->layers;

    snprintf(key, sizeof(key), "%s.%s", t->arch, name);
    tiny_key(f, key, 9);
    (void) llm_buf_add(&f->kv, &item, 4);
    (void) llm_buf_add(&f->kv, &n, 8);

    for (i = 0; i < n; i++) {
        (void) llm_buf_add(&f->kv, t->kinds[i] == kind ? &v : &none, 4);
    }
}


static inline void
tiny_metadata(tiny_file_t *f, const tiny_t *t)
{
    char         key[64];
    const char  *a = t->arch;

    if (!tiny_skips_key(f, "general.architecture")) {
        tiny_key(f, "general.architecture", 8);
        tiny_str(&f->kv, a);
    }

    tiny_u32(f, a, "context_length", 256);
    tiny_u32(f, a, "embedding_length", t->embd);
    tiny_u32(f, a, "block_count", t->layers);

    if (t->kinds) {
        tiny_of_kind(f, t, "feed_forward_length", 'f', t->ff);
        tiny_of_kind(f, t, "attention.head_count_kv", 'a', t->kv_heads);

    } else {
        tiny_u32(f, a, "feed_forward_length", t->ff);
        tiny_u32(f, a, "attention.head_count_kv", t->kv_heads);
    }

    tiny_u32(f, a, "expert_count", t->experts);
    tiny_u32(f, a, "expert_used_count", t->used);
    tiny_u32(f, a, "expert_feed_forward_length", t->ff_expert);
    tiny_u32(f, a, "expert_shared_feed_forward_length", t->ff_shared);
    tiny_u32(f, a, "leading_dense_block_count", t->dense);
    tiny_u32(f, a, "expert_gating_func", t->gating);
    tiny_u32(f, a, "expert_group_count", t->groups);
    tiny_u32(f, a, "expert_group_used_count", t->groups_used);
    tiny_f32(f, a, "expert_weights_scale", t->weights_scale);
    tiny_u32(f, a, "attention.head_count", t->heads);
    tiny_u32(f, a, "attention.key_length", t->head_k);
    tiny_u32(f, a, "attention.value_length", t->head_v);
    tiny_u32(f, a, "rope.dimension_count", t->rot);
    tiny_f32(f, a, "attention.temperature_scale", t->temp_scale);
    tiny_u32(f, a, "attention.temperature_length", t->temp_length);
    tiny_u32(f, a, "attention.kv_lora_rank", t->latent);
    tiny_u32(f, a, "attention.q_lora_rank", t->q_rank);

    if (t->latent && !t->kv_b) {
        tiny_u32(f, a, "attention.key_length_mla", t->plain + t->rot);
        tiny_u32(f, a, "attention.value_length_mla", t->head_out);
    }

    tiny_u32(f, a, "rope.scaling.original_context_length", t->orig_ctx);
    tiny_f32(f, a, t->layernorm ? "attention.layer_norm_epsilon"
                                : "attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_u32(f, a, "attention.sliding_window", t->window);
    tiny_f32(f, a, "attn_logit_softcapping", t->cap);
    tiny_f32(f, a, "attention.clamp_kqv", t->bound);
    tiny_f32(f, a, "final_logit_softcapping", t->final_cap);
    tiny_f32(f, a, "embedding_scale", t->embd_scale);
    tiny_f32(f, a, "residual_scale", t->residual_scale);
    tiny_f32(f, a, "logit_scale", t->logit_scale);
    tiny_f32(f, a, "attention.scale", t->attn_scale);
    tiny_u32(f, a, "full_attention_interval", t->interval);
    tiny_u32(f, a, "ssm.conv_kernel", t->conv);
    tiny_u32(f, a, "ssm.inner_size", t->ssm_inner);
    tiny_u32(f, a, "ssm.time_step_rank", t->ssm_heads);
    tiny_u32(f, a, "ssm.group_count", t->ssm_groups);
    tiny_u32(f, a, "ssm.state_size", t->ssm_state);
    tiny_u32(f, a, "shortconv.l_cache", t->shortconv);
    tiny_f32(f, a, "rope.freq_base", 10000);
    tiny_f32(f, a, "rope.scaling.factor", t->factor);
    tiny_f32(f, a, "rope.scale_linear", t->scale_linear);
    tiny_f32(f, a, "rope.scaling.attn_factor", t->attn_factor);
    tiny_f32(f, a, "rope.scaling.yarn_beta_fast", t->beta_fast);
    tiny_f32(f, a, "rope.scaling.yarn_beta_slow", t->beta_slow);
    tiny_f32(f, a, "rope.scaling.yarn_ext_factor", t->ext_factor);
    tiny_f32(f, a, "rope.scaling.yarn_attn_factor", t->yarn_attn_factor);
    tiny_f32(f, a, "rope.scaling.yarn_log_multiplier", t->yarn_log);

    if (t->scaling) {
        snprintf(key, sizeof(key), "%s.rope.scaling.type", a);

        if (!tiny_skips_key(f, key)) {
            tiny_key(f, key, 8);
            tiny_str(&f->kv, t->scaling);
        }
    }

    if (t->sections) {
        tiny_sections(f, t);
    }

    if (t->sequential || t->said) {
        snprintf(key, sizeof(key), "%s.use_parallel_residual", a);
        tiny_key(f, key, 7);
        (void) llm_buf_addc(&f->kv, t->said != 0);
    }

    if (t->rank) {
        tiny_rank(f, t);
    }

    if (f->change && f->change->u32_key) {
        tiny_key(f, f->change->u32_key, 4);
        (void) llm_buf_add(&f->kv, &f->change->u32, 4);
    }

    if (f->change && f->change->f32_key) {
        tiny_key(f, f->change->f32_key, 6);
        (void) llm_buf_add(&f->kv, &f->change->f32, 4);
    }

    if (f->change && f->change->str_key) {
        tiny_key(f, f->change->str_key, 8);
        tiny_str(&f->kv, f->change->str);
    }
}


static inline void
tiny_mixture(tiny_file_t *f, const tiny_t *t, uint32_t layer)
{
    size_t  i;
    char    name[64];

    const struct {
        const char  *name;
        uint32_t     row;
        uint32_t     rows;
        uint32_t     experts;
        int          there;
    } all[] = {
        { "ffn_gate_inp.weight", t->embd, t->experts, 0, 1 },
        { "ffn_gate_inp.bias", t->experts, 0, 0, t->expert_bias },
        { "exp_probs_b.bias", t->experts, 0, 0, t->probs_bias },
        { "ffn_gate_exps.weight", t->embd, t->ff_expert, t->experts, 1 },
        { "ffn_up_exps.weight", t->embd, t->ff_expert, t->experts, 1 },
        { "ffn_down_exps.weight", t->ff_expert, t->embd, t->experts, 1 },
        { "ffn_gate_exps.bias", t->ff_expert, t->experts, 0,
          t->expert_bias },
        { "ffn_up_exps.bias", t->ff_expert, t->experts, 0, t->expert_bias },
        { "ffn_down_exps.bias", t->embd, t->experts, 0, t->expert_bias },
        { "ffn_gate_shexp.weight", t->embd, t->ff_shared, 0,
          t->ff_shared != 0 },
        { "ffn_up_shexp.weight", t->embd, t->ff_shared, 0,
          t->ff_shared != 0 },
        { "ffn_down_shexp.weight", t->ff_shared, t->embd, 0,
          t->ff_shared != 0 },
        { "ffn_gate_inp_shexp.weight", t->embd, 1, 0, t->shared_switch }
    };

    for (i = 0; i < llm_nelems(all); i++) {
        if (all[i].there) {
            snprintf(name, sizeof(name), "blk.%u.%s", layer, all[i].name);
            tiny_tensor_3(f, name, LLM_TYPE_F32, all[i].row, all[i].rows,
                          all[i].experts);
        }
    }
}


static inline int
tiny_attends(const tiny_t *t, uint32_t layer)
{
    if (t->kinds) {
        return t->kinds[layer] == 'a';
    }

    return t->interval == 0 || (layer + 1) % t->interval == 0;
}


/* what a layer has instead of attention */
static inline void
tiny_recurrent(tiny_file_t *f, const tiny_t *t, uint32_t layer)
{
    int        delta, mamba, next;
    char       name[64];
    size_t     i;
    uint32_t   channels, groups, heads;

    delta = strncmp(t->arch, "qwen", 4) == 0;
    next = strcmp(t->arch, "qwen3next") == 0;
    mamba = !delta && t->conv;
    heads = llm_max(t->ssm_heads, 1);
    groups = llm_max(t->ssm_groups, 1);
    channels = t->ssm_inner + 2 * t->ssm_groups * t->ssm_state;

    const struct {
        const char  *name;
        uint32_t     row;
        uint32_t     rows;
        int          there;
    } all[] = {
        { "attn_qkv.weight", t->embd, channels, delta && !t->mixed },
        { "attn_gate.weight", t->embd, t->ssm_inner, delta && !t->mixed },
        { "ssm_in.weight", t->embd, channels + t->ssm_inner, t->mixed },
        { "ssm_alpha.weight", t->embd, heads, delta && !next },
        { "ssm_beta.weight", t->embd, heads, delta && !next },
        { "ssm_ba.weight", t->embd, 2 * heads, next },
        { "ssm_a", heads, 0, delta },
        { "ssm_norm.weight", t->ssm_inner / heads, 0, delta },
        { "ssm_in.weight", t->embd, t->ssm_inner + channels + heads, mamba },
        { "ssm_conv1d.bias", channels, 0, mamba },
        { "ssm_a", 1, heads, mamba },
        { "ssm_d", 1, heads, mamba },
        { "ssm_norm.weight", t->ssm_inner / groups, groups, mamba },
        { "ssm_conv1d.weight", t->conv, channels, delta || mamba },
        { "ssm_dt.bias", heads, 0, delta || mamba },
        { "ssm_out.weight", t->ssm_inner, t->embd, delta || mamba },
        { "shortconv.in_proj.weight", t->embd, 3 * t->embd,
          t->shortconv != 0 },
        { "shortconv.conv.weight", t->shortconv, t->embd, t->shortconv != 0 },
        { "shortconv.out_proj.weight", t->embd, t->embd, t->shortconv != 0 }
    };

    for (i = 0; i < llm_nelems(all); i++) {
        if (all[i].there) {
            snprintf(name, sizeof(name), "blk.%u.%s", layer, all[i].name);
            tiny_tensor(f, name, all[i].rows ? t->type : LLM_TYPE_F32,
                        all[i].row, all[i].rows);
        }
    }
}


static inline void
tiny_latent(tiny_file_t *f, const tiny_t *t, uint32_t layer)
{
    size_t    i;
    char      name[64];
    uint32_t  q;

    q = t->heads * (t->plain + t->rot);

    const struct {
        const char  *name;
        uint32_t     row;
        uint32_t     rows;
        uint32_t     heads;
        int          there;
    } all[] = {
        { "attn_q.weight", t->embd, q, 0, t->q_rank == 0 },
        { "attn_q_a.weight", t->embd, t->q_rank, 0, t->q_rank != 0 },
        { "attn_q_a_norm.weight", t->q_rank, 0, 0, t->q_rank != 0 },
        { "attn_q_b.weight", t->q_rank, q, 0, t->q_rank != 0 },
        { "attn_kv_a_mqa.weight", t->embd, t->latent + t->rot, 0, 1 },
        { "attn_kv_a_norm.weight", t->latent, 0, 0, 1 },
        { "attn_k_b.weight", t->plain, t->latent, t->heads, !t->kv_b },
        { "attn_v_b.weight", t->latent, t->head_out, t->heads, !t->kv_b },
        { "attn_kv_b.weight", t->latent,
          t->heads * (t->plain + t->head_out), 0, t->kv_b },
        { "attn_output.weight", t->heads * t->head_out, t->embd, 0, 1 }
    };

    for (i = 0; i < llm_nelems(all); i++) {
        if (all[i].there) {
            snprintf(name, sizeof(name), "blk.%u.%s", layer, all[i].name);
            tiny_tensor_3(f, name, all[i].rows ? t->type : LLM_TYPE_F32,
                          all[i].row, all[i].rows, all[i].heads);
        }
    }
}


static inline void
tiny_layer(tiny_file_t *f, const tiny_t *t, uint32_t layer)
{
    size_t     i;
    char       name[64];
    uint32_t   q, k, v, o, by_row, by_head, fused, feeds, apart, attends;

    q = t->heads * t->head_k;
    k = t->kv_heads * t->head_k;
    v = t->kv_heads * t->head_v;
    o = t->heads * t->head_v;
    by_row = t->qk_norm == 2;
    by_head = t->qk_norm == 3;
    fused = t->fused && !t->no_gate;
    attends = tiny_attends(t, layer);
    apart = !t->fused && !t->latent && attends;
    feeds = t->kinds ? t->kinds[layer] == 'f'
                     : t->experts == 0 || layer < t->dense;

    const struct {
        const char  *name;
        uint32_t     row;
        uint32_t     rows;
        int          there;
    } all[] = {
        { "attn_norm.weight", t->embd, 0, !t->no_pre && !t->bare },
        { "attn_norm.bias", t->embd, 0, t->layernorm == 2 },
        { "attn_norm_2.weight", t->embd, 0, t->apart },
        { "attn_norm_2.bias", t->embd, 0, t->apart },
        { "attn_qkv.weight", t->embd, q + k + v, t->fused },
        { "attn_qkv.bias", q + k + v, 0,
          t->fused && (t->all_bias || t->qkv_bias) },
        { "attn_q.weight", t->embd, t->gated ? 2 * q : q, apart },
        { "attn_k.weight", t->embd, k, apart },
        { "attn_v.weight", t->embd, v, apart },
        { "attn_output.weight", o, t->embd, !t->latent && attends },
        { "attn_q_norm.weight", by_row ? q : t->head_k,
          by_head ? t->heads : 0, t->qk_norm && attends },
        { "attn_k_norm.weight", by_row ? k : t->head_k,
          by_head ? t->kv_heads : 0, t->qk_norm && attends },
        { "attn_q.bias", q, 0, !t->fused && (t->qkv_bias || t->all_bias) },
        { "attn_k.bias", k, 0, !t->fused && (t->qkv_bias || t->all_bias) },
        { "attn_v.bias", v, 0, !t->fused && (t->qkv_bias || t->all_bias) },
        { "attn_output.bias", t->embd, 0, t->all_bias },
        { "attn_sinks.weight", t->heads, 0, t->sinks },
        { "attn_gate.weight", t->embd, o, t->attn_gate },
        { "post_attention_norm.weight", t->embd, 0,
          t->post || t->late_norm },
        { t->ffn_norm ? t->ffn_norm : "ffn_norm.weight", t->embd, 0,
          !t->no_pre && (!t->parallel || t->two_norms) && !t->late_norm
          && !t->bare && !t->kinds },
        { "ffn_norm.bias", t->embd, 0,
          t->layernorm == 2 && (!t->parallel || t->two_norms) },
        { "ffn_gate.weight", t->embd, t->ff,
          !t->fused && !t->no_gate && feeds },
        { "ffn_up.weight", t->embd, fused ? 2 * t->ff : t->ff, feeds },
        { "ffn_down.weight", t->ff, t->embd, feeds },
        { "post_ffw_norm.weight", t->embd, 0, t->post },
        { "ffn_gate.bias", t->ff, 0, t->all_bias && !t->no_gate },
        { "ffn_up.bias", t->ff, 0, t->all_bias },
        { "ffn_down.bias", t->embd, 0, t->all_bias },
        { "swap_norm.weight", t->embd, 0, t->swap },
        { "swap.weight", t->embd, t->embd, t->swap }
    };

    for (i = 0; i < llm_nelems(all); i++) {
        if (all[i].there) {
            snprintf(name, sizeof(name), "blk.%u.%s", layer, all[i].name);
            tiny_tensor(f, name, all[i].rows ? t->type : LLM_TYPE_F32,
                        all[i].row, all[i].rows);
        }
    }

    if (t->kinds ? t->kinds[layer] == 'm' : !attends) {
        tiny_recurrent(f, t, layer);
    }

    if (t->latent) {
        tiny_latent(f, t, layer);
    }

    if (!feeds && t->experts) {
        tiny_mixture(f, t, layer);
    }
}


/* the bytes of the file go to out; change may be NULL */
static inline int
tiny_gguf(const tiny_t *t, const tiny_change_t *change, llm_buf_t *out)
{
    uint32_t     i, version;
    tiny_file_t  f;

    memset(&f, 0, sizeof(f));
    f.change = change;
    f.scales = t->scales;
    llm_buf_init(&f.kv, 0);
    llm_buf_init(&f.infos, 0);
    llm_buf_init(&f.data, 0);

    tiny_metadata(&f, t);
    tiny_tensor(&f, "token_embd.weight", t->type, t->embd, TINY_VOCAB);

    if (!t->bare) {
        tiny_tensor(&f, strcmp(t->arch, "lfm2") ? "output_norm.weight"
                                                : "token_embd_norm.weight",
                    LLM_TYPE_F32, t->embd, 0);
    }

    if (t->layernorm == 2) {
        tiny_tensor(&f, "output_norm.bias", LLM_TYPE_F32, t->embd, 0);
    }

    if (t->pos) {
        tiny_tensor(&f, "position_embd.weight", t->type, t->embd, 256);
    }

    if (!t->tied) {
        tiny_tensor(&f, "output.weight", t->type, t->embd, TINY_VOCAB);
    }

    if (t->output_bias) {
        tiny_tensor(&f, "output.bias", LLM_TYPE_F32, TINY_VOCAB, 0);
    }

    if (t->freqs) {
        tiny_tensor(&f, "rope_freqs.weight", LLM_TYPE_F32,
                    (t->rot ? t->rot : t->head_k) / 2, 0);
    }

    if (t->factors) {
        tiny_tensor(&f, "rope_factors_long.weight", LLM_TYPE_F32,
                    (t->rot ? t->rot : t->head_k) / 2, 0);
        tiny_tensor(&f, "rope_factors_short.weight", LLM_TYPE_F32,
                    (t->rot ? t->rot : t->head_k) / 2, 0);
    }

    if (t->rank) {
        tiny_tensor(&f, "cls.output.weight", t->type, t->embd, 2);
    }

    for (i = 0; i < t->layers; i++) {
        tiny_layer(&f, t, i);
    }

    if (change && change->extra) {
        tiny_tensor(&f, change->extra, LLM_TYPE_F32, 32, 0);
    }

    version = 3;
    (void) llm_buf_adds(out, "GGUF");
    (void) llm_buf_add(out, &version, 4);
    (void) llm_buf_add(out, &f.n_tensors, 8);
    (void) llm_buf_add(out, &f.n_kv, 8);
    (void) llm_buf_add(out, f.kv.data, f.kv.len);
    (void) llm_buf_add(out, f.infos.data, f.infos.len);

    while (out->len % 32) {
        (void) llm_buf_addc(out, 0);
    }

    (void) llm_buf_add(out, f.data.data, f.data.len);

    while (out->len % 32) {
        (void) llm_buf_addc(out, 0);
    }

    llm_buf_free(&f.kv);
    llm_buf_free(&f.infos);
    llm_buf_free(&f.data);

    return out->failed ? LLM_ERROR : LLM_OK;
}

#endif /* LLM_T_TINY_H */
