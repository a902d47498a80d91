/*
 * GGUF files taken apart into keys and tensors, which can be changed one by
 * one, and put together again, well-formed or not: for tests and fuzz targets
 * that want headers which say something else than was meant.
 *
 * Data of tensors stay where the file has them, which must outlive the edit;
 * values of keys are the edit's own.
 */

#ifndef LLM_T_GGUF_EDIT_H
#define LLM_T_GGUF_EDIT_H

#include "t/unit/gguf_build.h"

#include <math.h>

#define EDIT_KEYS     160
#define EDIT_TENSORS  512
#define EDIT_NAME     96
#define EDIT_ROOM     ((size_t) 1 << 20)    /* bytes of a tensor that a change
                                               makes larger */


typedef struct {
    char         name[EDIT_NAME];
    uint32_t     type, item;
    uint64_t     count;                 /* as the file says it */
    llm_buf_t    value;                 /* of all items */
} edit_key_t;

typedef struct {
    char         name[EDIT_NAME];
    uint32_t     n_dims, type;
    uint64_t     ne[4];
    uint64_t     shift;                 /* of its offset */
    const void  *data;
    size_t       size;                  /* bytes at data */
} edit_tensor_t;

typedef struct {
    char           arch[EDIT_NAME];
    size_t         n_keys, n_tensors;
    edit_key_t     keys[EDIT_KEYS];
    edit_tensor_t  tensors[EDIT_TENSORS];
} edit_file_t;


static const char  *const edit_layer_tensors[] = {
#define LLM_TENSOR(ID, name, in, out)  name,
#define LLM_GLOBAL(ID, name, in, out)
#include "engine/model/tensors.def"
};

static const char  *const edit_fields[] = {
    "attention.causal", "attention.chunk_size", "attention.head_count",
    "attention.head_count_kv", "attention.key_length",
    "attention.key_length_swa", "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon", "attention.scale",
    "attention.shared_kv_layers", "attention.sliding_window",
    "attention.sliding_window_pattern", "attention.temperature_scale",
    "attention.value_length", "attention.value_length_swa",
    "attn_logit_softcapping", "block_count", "context_length",
    "embedding_length", "embedding_length_per_layer_input",
    "embedding_scale", "expert_count", "expert_feed_forward_length",
    "expert_gating_func", "expert_group_count", "expert_group_used_count",
    "expert_shared_count", "expert_shared_feed_forward_length",
    "expert_used_count", "expert_weights_norm", "expert_weights_scale",
    "feed_forward_length", "final_logit_softcapping",
    "interleave_moe_layer_step", "leading_dense_block_count", "logit_scale",
    "nextn_predict_layers", "pooling_type", "residual_scale",
    "rope.dimension_count", "rope.dimension_count_swa", "rope.freq_base",
    "rope.freq_base_swa", "rope.scaling.attn_factor", "rope.scaling.factor",
    "rope.scaling.original_context_length", "rope.scaling.type",
    "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_log_multiplier",
    "use_parallel_residual", "vocab_size", "ssm.conv_kernel",
    "ssm.inner_size", "ssm.state_size", "ssm.group_count",
    "ssm.time_step_rank", "attention.q_lora_rank", "attention.kv_lora_rank",
    "full_attention_interval", "shortconv.l_cache"
};

static const uint64_t  edit_ints[] = {
    0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 255,
    256, 257, 511, 512, 1023, 1024, 4095, 4096, 65535, 65536, 1 << 20,
    0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, 0x100000000,
    0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff
};

static const double  edit_floats[] = {
    0, -0.0, 1, -1, 0.5, 2, 1e-5, 1e-45, 1e-30, 1e6, 1e30, 3e38, -3e38, 1e300,
    NAN, INFINITY, -INFINITY
};


static inline void
edit_copy_name(char *out, llm_str_t s)
{
    snprintf(out, EDIT_NAME, "%.*s",
             (int) llm_min(s.len, (size_t) EDIT_NAME - 1), s.data);
}


static inline void
edit_take_key(edit_file_t *f, const llm_gguf_kv_t *kv)
{
    uint64_t     i;
    const char  *p;
    edit_key_t  *k;

    if (f->n_keys == EDIT_KEYS - 32
        || (kv->key.len > 10 && memcmp(kv->key.data, "tokenizer.", 10) == 0))
    {
        return;
    }

    k = &f->keys[f->n_keys++];
    edit_copy_name(k->name, kv->key);
    k->type = kv->type;
    k->item = kv->item;
    k->count = kv->count;
    llm_buf_init(&k->value, 0);

    for (i = 0, p = kv->data; kv->item == LLM_GGUF_STR && i < kv->count; i++) {
        (void) llm_gguf_next_str(&p);
    }

    if (kv->item != LLM_GGUF_STR) {
        static const uint8_t  sizes[] = {
            1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8
        };

        p += kv->count * sizes[kv->item];
    }

    (void) llm_buf_add(&k->value, kv->data, (size_t) (p - kv->data));

    if (strcmp(k->name, "general.architecture") == 0) {
        p = kv->data;
        edit_copy_name(f->arch, llm_gguf_next_str(&p));
    }
}


static inline void
edit_take(edit_file_t *f, const llm_gguf_t *g)
{
    size_t                    i;
    edit_tensor_t            *out;
    const llm_gguf_tensor_t  *t;

    f->n_keys = 0;
    f->n_tensors = 0;
    f->arch[0] = '\0';

    for (i = 0; i < llm_gguf_n_kv(g); i++) {
        edit_take_key(f, llm_gguf_kv(g, i));
    }

    for (i = 0; i < llm_gguf_n_tensors(g) && i < EDIT_TENSORS - 32; i++) {
        t = llm_gguf_tensor(g, i);
        out = &f->tensors[f->n_tensors++];
        memset(out, 0, sizeof(*out));
        edit_copy_name(out->name, t->name);
        out->n_dims = t->n_dims;
        out->type = t->type;
        memcpy(out->ne, t->ne, sizeof(out->ne));
        out->data = t->data;
        out->size = t->size;
    }
}


static inline uint64_t
edit_int(uint8_t how, uint64_t old)
{
    switch (how >> 6) {

    case 0:
        return edit_ints[how % llm_nelems(edit_ints)];

    case 1:
        return old + (how & 63) + 1;

    case 2:
        return old - (how & 63) - 1;

    default:
        return how & 1 ? old * 2 : old / 2;
    }
}


/* changes item i of a key's value, whatever its type */

static inline void
edit_set_item(edit_key_t *k, size_t i, uint8_t how)
{
    float     f;
    double    d;
    size_t    size;
    uint64_t  v;

    if (k->item == LLM_GGUF_F32 || k->item == LLM_GGUF_F64) {
        d = edit_floats[how % llm_nelems(edit_floats)];
        f = (float) d;
        size = k->item == LLM_GGUF_F32 ? 4 : 8;

        if (k->value.len >= size) {
            i %= k->value.len / size;
            memcpy(k->value.data + i * size,
                   size == 4 ? (void *) &f : (void *) &d, size);
        }

        return;
    }

    size = k->item == LLM_GGUF_BOOL || k->item <= LLM_GGUF_I8 ? 1
           : k->item <= LLM_GGUF_I16 ? 2 : k->item <= LLM_GGUF_I32 ? 4 : 8;

    if (k->value.len >= size) {
        i %= k->value.len / size;
        v = 0;
        memcpy(&v, k->value.data + i * size, size);
        v = k->item == LLM_GGUF_BOOL ? how : edit_int(how, v);
        memcpy(k->value.data + i * size, &v, size);
    }
}


/* an array of n % 9 twos and one other number, or one that says so */

static inline void
edit_set_array(edit_key_t *k, uint8_t n, uint8_t how)
{
    uint32_t  i;

    static const uint32_t  items[] = {
        LLM_GGUF_U32, LLM_GGUF_I32, LLM_GGUF_F32, LLM_GGUF_BOOL
    };

    k->type = LLM_GGUF_ARRAY;
    k->item = items[how & 3];
    k->count = n % 9;
    k->value.len = 0;

    for (i = 0; i < k->count; i++) {
        (void) llm_buf_add(&k->value, "\2\0\0\0",
                           k->item == LLM_GGUF_BOOL ? 1 : 4);
    }

    if (k->count) {
        edit_set_item(k, n, how);
    }

    if (how == 255) {
        k->count = (uint64_t) 1 << 40;
    }
}


static inline void
edit_add_key(edit_file_t *f, uint8_t which, uint8_t n, uint8_t how)
{
    size_t       i;
    uint32_t     v = n;
    char         name[EDIT_NAME];
    edit_key_t  *k;

    snprintf(name, sizeof(name), "%.40s.%s", f->arch,
             edit_fields[which % llm_nelems(edit_fields)]);

    for (i = 0; i < f->n_keys && strcmp(f->keys[i].name, name) != 0; i++) {
        /* void */
    }

    if (i == EDIT_KEYS) {
        return;
    }

    k = &f->keys[i];

    if (i == f->n_keys) {
        f->n_keys++;
        snprintf(k->name, sizeof(k->name), "%s", name);
        llm_buf_init(&k->value, 0);
    }

    if (how & 128) {
        edit_set_array(k, n, how & 127);
        return;
    }

    k->type = how & 4 ? LLM_GGUF_BOOL : how & 1 ? LLM_GGUF_F32
                                                : LLM_GGUF_U32;
    k->item = k->type;
    k->count = 1;
    k->value.len = 0;
    (void) llm_buf_add(&k->value, &v, how & 4 ? 1 : sizeof(v));

    if (how & 3) {
        edit_set_item(k, 0, n);
    }
}


static inline void
edit_drop_key(edit_file_t *f, size_t i)
{
    llm_buf_free(&f->keys[i].value);
    f->keys[i] = f->keys[--f->n_keys];
}


static inline void
edit_add_tensor(edit_file_t *f, uint8_t which, uint8_t like, uint8_t how)
{
    edit_tensor_t  *t;

    if (f->n_tensors == EDIT_TENSORS || f->n_tensors == 0) {
        return;
    }

    t = &f->tensors[f->n_tensors++];
    *t = f->tensors[like % (f->n_tensors - 1)];
    snprintf(t->name, sizeof(t->name), "blk.%u.%s", how & 3,
             edit_layer_tensors[which % llm_nelems(edit_layer_tensors)]);
}


static inline void
edit_change(edit_file_t *f, const uint8_t *c)
{
    edit_key_t     *k;
    edit_tensor_t  *t;

    k = f->n_keys ? &f->keys[c[1] % f->n_keys] : NULL;
    t = f->n_tensors ? &f->tensors[(c[1] | (c[2] & 1u) << 8) % f->n_tensors]
                     : NULL;

    switch (c[0] % 12) {

    case 0:
    case 1:
    case 2:
        if (k && k->item != LLM_GGUF_STR) {
            edit_set_item(k, c[2], c[3]);
        }

        return;

    case 3:
        if (k) {
            edit_set_array(k, c[2], c[3]);
        }

        return;

    case 4:
        if (k && f->n_keys > 1) {
            edit_drop_key(f, (size_t) (k - f->keys));
        }

        return;

    case 5:
    case 6:
        edit_add_key(f, c[1], c[2], c[3]);
        return;

    case 7:
        if (t) {
            t->ne[c[2] >> 1 & 3] = edit_int(c[3], t->ne[c[2] >> 1 & 3]);
            t->n_dims = llm_max(t->n_dims, (c[2] >> 1 & 3u) + 1);
        }

        return;

    case 8:
        if (t) {
            t->type = c[3] % 44;
        }

        return;

    case 9:
        if (t && c[3] & 1) {
            *t = f->tensors[--f->n_tensors];

        } else if (t) {
            t->shift = edit_int(c[3], 0);
        }

        return;

    case 10:
        edit_add_tensor(f, c[1], c[2], c[3]);
        return;

    default:
        if (t) {
            t->n_dims = c[3] % 6;
        }
    }
}


/* the same file by the name of another architecture */

static inline void
edit_rename(edit_file_t *f, const char *to)
{
    char         name[EDIT_NAME];
    size_t       i, len;
    uint64_t     n;
    edit_key_t  *k;

    len = strlen(f->arch);

    for (i = 0; i < f->n_keys; i++) {
        k = &f->keys[i];

        if (strcmp(k->name, "general.architecture") == 0) {
            n = strlen(to);
            k->value.len = 0;
            (void) llm_buf_add(&k->value, &n, 8);
            (void) llm_buf_add(&k->value, to, n);

        } else if (strncmp(k->name, f->arch, len) == 0
                   && k->name[len] == '.')
        {
            snprintf(name, sizeof(name), "%.40s%.55s", to, k->name + len);
            snprintf(k->name, sizeof(k->name), "%s", name);
        }
    }

    snprintf(f->arch, sizeof(f->arch), "%s", to);
}


/* bytes that the tensor should have, EDIT_ROOM if there are more */

static inline size_t
edit_room(const edit_tensor_t *t)
{
    size_t    n;
    uint32_t  i;

    if (llm_type_name(t->type) == NULL) {
        return 0;
    }

    for (i = 0, n = 1; i < t->n_dims && i < 4; i++) {
        if (t->ne[i] == 0 || llm_mul_overflow(n, (size_t) t->ne[i], &n)
            || n > EDIT_ROOM)
        {
            return EDIT_ROOM;
        }
    }

    n = n / llm_type_block(t->type) * llm_type_block_size(t->type);

    return llm_min(n, EDIT_ROOM);
}


static inline void
edit_write(const edit_file_t *f, llm_buf_t *b)
{
    size_t                i, n;
    uint64_t              at;
    uint64_t              offsets[EDIT_TENSORS];
    const edit_key_t     *k;
    const edit_tensor_t  *t;
    static const char     zeros[EDIT_ROOM];

    for (i = 0, at = 0; i < f->n_tensors; i++) {
        offsets[i] = at;
        n = edit_room(&f->tensors[i]);
        at += llm_align(llm_max(n, (size_t) 1), 32);
    }

    gguf_begin(b, 3, f->n_tensors, f->n_keys);

    for (i = 0; i < f->n_keys; i++) {
        k = &f->keys[i];
        gguf_key(b, k->name, k->type);

        if (k->type == LLM_GGUF_ARRAY) {
            gguf_u32(b, k->item);
            gguf_u64(b, k->count);
        }

        (void) llm_buf_add(b, k->value.data, k->value.len);
    }

    for (i = 0; i < f->n_tensors; i++) {
        t = &f->tensors[i];
        gguf_str(b, t->name, strlen(t->name));
        gguf_u32(b, t->n_dims);

        for (n = 0; n < t->n_dims; n++) {
            gguf_u64(b, t->ne[n & 3]);
        }

        gguf_u32(b, t->type);
        gguf_u64(b, offsets[i] + t->shift);
    }

    gguf_pad(b, 32);

    for (i = 0; i < f->n_tensors; i++) {
        t = &f->tensors[i];
        n = llm_align(llm_max(edit_room(t), (size_t) 1), 32);
        (void) llm_buf_add(b, t->data, llm_min(n, t->size));

        if (n > t->size) {
            (void) llm_buf_add(b, zeros, llm_min(n - t->size, EDIT_ROOM));
        }
    }
}


static inline void
edit_free(edit_file_t *f)
{
    while (f->n_keys) {
        llm_buf_free(&f->keys[--f->n_keys].value);
    }
}

#endif /* LLM_T_GGUF_EDIT_H */
