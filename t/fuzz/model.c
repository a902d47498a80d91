/*
 * Models of every architecture whose header says something else than was
 * meant: they are refused, or they load and run a few tokens; nothing is read
 * or written beside its place, and nothing takes for ever.
 *
 * A seed is taken apart into keys and tensors, those are changed, and a file
 * is made of them, so that each input reaches what reads an architecture.
 * The first byte of the input chooses a tiny model, or a file of
 * LLM_FIXTURES/models if that is set; the second one the device and whether
 * the architecture's name becomes another; every four more are a change: what,
 * which one, and two bytes of how, or, with the first bit of the first, a byte
 * of the file that is made.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE                     /* memfd_create() */
#endif

#include "engine/model/arch.h"
#include "engine/model/model.h"
#include "t/unit/gguf_build.h"
#include "t/unit/tiny_expected.h"

#include <glob.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_KEYS     160
#define FUZZ_TENSORS  512
#define FUZZ_NAME     96
#define FUZZ_ROOM     ((size_t) 1 << 20)    /* bytes of a tensor that a change
                                               makes larger */
#define FUZZ_SEEDS    128
#define FUZZ_IDS      3
#define FUZZ_HEADER   8192              /* bytes of a file that changes may
                                           hit */
#define FUZZ_RAW      128


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


typedef struct {
    char         name[FUZZ_NAME];
    uint32_t     type, item;
    uint64_t     count;                 /* as the file says it */
    llm_buf_t    value;                 /* of all items */
} fuzz_key_t;

typedef struct {
    char         name[FUZZ_NAME];
    uint32_t     n_dims, type;
    uint64_t     ne[4];
    uint64_t     shift;                 /* of its offset */
    const void  *data;
    size_t       size;                  /* bytes at data */
} fuzz_tensor_t;

typedef struct {
    char           arch[FUZZ_NAME];
    size_t         n_keys, n_tensors;
    fuzz_key_t     keys[FUZZ_KEYS];
    fuzz_tensor_t  tensors[FUZZ_TENSORS];
} fuzz_file_t;


#define LLM_ARCH(ID)  extern const llm_arch_t  llm_arch_##ID;
#include "engine/model/archs.def"

static const llm_arch_t  *const fuzz_archs[] = {
#define LLM_ARCH(ID)  &llm_arch_##ID,
#include "engine/model/archs.def"
};

static const char  *const fuzz_layer_tensors[] = {
#define LLM_TENSOR(ID, name, in, out)  name,
#define LLM_GLOBAL(ID, name, in, out)
#include "engine/model/tensors.def"
};

static const char  *const fuzz_fields[] = {
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

static const uint64_t  fuzz_ints[] = {
    0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 127, 128, 255,
    256, 257, 511, 512, 1023, 1024, 4095, 4096, 65535, 65536, 1 << 20,
    0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff, 0x100000000,
    0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff
};

static const double  fuzz_floats[] = {
    0, -0.0, 1, -1, 0.5, 2, 1e-5, 1e-45, 1e-30, 1e6, 1e30, 3e38, -3e38, 1e300,
    NAN, INFINITY, -INFINITY
};


static size_t       fuzz_n_seeds;
static llm_gguf_t  *fuzz_seeds[FUZZ_SEEDS];


static void
fuzz_copy_name(char *out, llm_str_t s)
{
    snprintf(out, FUZZ_NAME, "%.*s",
             (int) llm_min(s.len, (size_t) FUZZ_NAME - 1), s.data);
}


static void
fuzz_take_key(fuzz_file_t *f, const llm_gguf_kv_t *kv)
{
    uint64_t     i;
    const char  *p;
    fuzz_key_t  *k;

    if (f->n_keys == FUZZ_KEYS - 32
        || (kv->key.len > 10 && memcmp(kv->key.data, "tokenizer.", 10) == 0))
    {
        return;
    }

    k = &f->keys[f->n_keys++];
    fuzz_copy_name(k->name, kv->key);
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
        fuzz_copy_name(f->arch, llm_gguf_next_str(&p));
    }
}


static void
fuzz_take(fuzz_file_t *f, const llm_gguf_t *g)
{
    size_t                    i;
    fuzz_tensor_t            *out;
    const llm_gguf_tensor_t  *t;

    f->n_keys = 0;
    f->n_tensors = 0;
    f->arch[0] = '\0';

    for (i = 0; i < llm_gguf_n_kv(g); i++) {
        fuzz_take_key(f, llm_gguf_kv(g, i));
    }

    for (i = 0; i < llm_gguf_n_tensors(g) && i < FUZZ_TENSORS - 32; i++) {
        t = llm_gguf_tensor(g, i);
        out = &f->tensors[f->n_tensors++];
        memset(out, 0, sizeof(*out));
        fuzz_copy_name(out->name, t->name);
        out->n_dims = t->n_dims;
        out->type = t->type;
        memcpy(out->ne, t->ne, sizeof(out->ne));
        out->data = t->data;
        out->size = t->size;
    }
}


static void
fuzz_add_seed(llm_gguf_t *g)
{
    if (g && fuzz_n_seeds < FUZZ_SEEDS) {
        fuzz_seeds[fuzz_n_seeds++] = g;
    }
}


/* opened models to begin with, kept for all inputs */

static void
fuzz_open_seeds(void)
{
    size_t     i;
    glob_t     files;
    char       path[512];
    llm_buf_t  b;
    llm_err_t  err;

    for (i = 0; i < llm_nelems(tinies); i++) {
        if (tinies[i].type == LLM_TYPE_F32) {
            llm_buf_init(&b, 0);

            if (tiny_gguf(&tinies[i], NULL, &b) != LLM_OK) {
                abort();
            }

            fuzz_add_seed(llm_gguf_open_memory(b.data, b.len, "tiny", &err));
        }
    }

    if (getenv("LLM_FIXTURES") == NULL) {
        return;
    }

    snprintf(path, sizeof(path), "%s/models/*-f16.gguf",
             getenv("LLM_FIXTURES"));

    if (glob(path, 0, NULL, &files) == 0) {
        for (i = 0; i < files.gl_pathc; i++) {
            fuzz_add_seed(llm_gguf_open(files.gl_pathv[i], &err));
        }

        globfree(&files);
    }
}


static uint64_t
fuzz_int(uint8_t how, uint64_t old)
{
    switch (how >> 6) {

    case 0:
        return fuzz_ints[how % llm_nelems(fuzz_ints)];

    case 1:
        return old + (how & 63) + 1;

    case 2:
        return old - (how & 63) - 1;

    default:
        return how & 1 ? old * 2 : old / 2;
    }
}


/* changes item i of a key's value, whatever its type */

static void
fuzz_set_item(fuzz_key_t *k, size_t i, uint8_t how)
{
    float     f;
    double    d;
    size_t    size;
    uint64_t  v;

    if (k->item == LLM_GGUF_F32 || k->item == LLM_GGUF_F64) {
        d = fuzz_floats[how % llm_nelems(fuzz_floats)];
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
        v = k->item == LLM_GGUF_BOOL ? how : fuzz_int(how, v);
        memcpy(k->value.data + i * size, &v, size);
    }
}


/* an array of n numbers, or one that says so */

static void
fuzz_set_array(fuzz_key_t *k, uint8_t n, uint8_t how)
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
        fuzz_set_item(k, n, how);
    }

    if (how == 255) {
        k->count = (uint64_t) 1 << 40;
    }
}


static void
fuzz_add_key(fuzz_file_t *f, uint8_t which, uint8_t n, uint8_t how)
{
    size_t       i;
    uint32_t     v = n;
    char         name[FUZZ_NAME];
    fuzz_key_t  *k;

    snprintf(name, sizeof(name), "%.40s.%s", f->arch,
             fuzz_fields[which % llm_nelems(fuzz_fields)]);

    for (i = 0; i < f->n_keys && strcmp(f->keys[i].name, name) != 0; i++) {
        /* void */
    }

    if (i == FUZZ_KEYS) {
        return;
    }

    k = &f->keys[i];

    if (i == f->n_keys) {
        f->n_keys++;
        snprintf(k->name, sizeof(k->name), "%s", name);
        llm_buf_init(&k->value, 0);
    }

    if (how & 128) {
        fuzz_set_array(k, n, how & 127);
        return;
    }

    k->type = how & 1 ? LLM_GGUF_F32 : LLM_GGUF_U32;
    k->item = k->type;
    k->count = 1;
    k->value.len = 0;
    (void) llm_buf_add(&k->value, &v, sizeof(v));

    if (how & 3) {
        fuzz_set_item(k, 0, n);
    }
}


static void
fuzz_drop_key(fuzz_file_t *f, size_t i)
{
    llm_buf_free(&f->keys[i].value);
    f->keys[i] = f->keys[--f->n_keys];
}


static void
fuzz_add_tensor(fuzz_file_t *f, uint8_t which, uint8_t like, uint8_t how)
{
    fuzz_tensor_t  *t;

    if (f->n_tensors == FUZZ_TENSORS || f->n_tensors == 0) {
        return;
    }

    t = &f->tensors[f->n_tensors++];
    *t = f->tensors[like % (f->n_tensors - 1)];
    snprintf(t->name, sizeof(t->name), "blk.%u.%s", how & 3,
             fuzz_layer_tensors[which % llm_nelems(fuzz_layer_tensors)]);
}


static void
fuzz_change(fuzz_file_t *f, const uint8_t *c)
{
    fuzz_key_t     *k;
    fuzz_tensor_t  *t;

    k = f->n_keys ? &f->keys[c[1] % f->n_keys] : NULL;
    t = f->n_tensors ? &f->tensors[(c[1] | (c[2] & 1u) << 8) % f->n_tensors]
                     : NULL;

    switch (c[0] % 12) {

    case 0:
    case 1:
    case 2:
        if (k && k->item != LLM_GGUF_STR) {
            fuzz_set_item(k, c[2], c[3]);
        }

        return;

    case 3:
        if (k) {
            fuzz_set_array(k, c[2], c[3]);
        }

        return;

    case 4:
        if (k && f->n_keys > 1) {
            fuzz_drop_key(f, (size_t) (k - f->keys));
        }

        return;

    case 5:
    case 6:
        fuzz_add_key(f, c[1], c[2], c[3]);
        return;

    case 7:
        if (t) {
            t->ne[c[2] >> 1 & 3] = fuzz_int(c[3], t->ne[c[2] >> 1 & 3]);
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
            t->shift = fuzz_int(c[3], 0);
        }

        return;

    case 10:
        fuzz_add_tensor(f, c[1], c[2], c[3]);
        return;

    default:
        if (t) {
            t->n_dims = c[3] % 6;
        }
    }
}


/* the same file by the name of another architecture */

static void
fuzz_rename(fuzz_file_t *f, uint8_t which)
{
    char         to[FUZZ_NAME], name[FUZZ_NAME];
    size_t       i, len;
    uint64_t     n;
    fuzz_key_t  *k;

    len = strlen(f->arch);
    snprintf(to, sizeof(to), "%s",
             fuzz_archs[which % llm_nelems(fuzz_archs)]->name);

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


/* bytes that the tensor should have, FUZZ_ROOM if there are more */

static size_t
fuzz_room(const fuzz_tensor_t *t)
{
    size_t    n;
    uint32_t  i;

    if (llm_type_name(t->type) == NULL) {
        return 0;
    }

    for (i = 0, n = 1; i < t->n_dims && i < 4; i++) {
        if (t->ne[i] == 0 || llm_mul_overflow(n, (size_t) t->ne[i], &n)
            || n > FUZZ_ROOM)
        {
            return FUZZ_ROOM;
        }
    }

    n = n / llm_type_block(t->type) * llm_type_block_size(t->type);

    return llm_min(n, FUZZ_ROOM);
}


static void
fuzz_write(const fuzz_file_t *f, llm_buf_t *b)
{
    size_t                i, n;
    uint64_t              at;
    uint64_t              offsets[FUZZ_TENSORS];
    const fuzz_key_t     *k;
    const fuzz_tensor_t  *t;
    static const char     zeros[FUZZ_ROOM];

    for (i = 0, at = 0; i < f->n_tensors; i++) {
        offsets[i] = at;
        n = fuzz_room(&f->tensors[i]);
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
        n = llm_align(llm_max(fuzz_room(t), (size_t) 1), 32);
        (void) llm_buf_add(b, t->data, llm_min(n, t->size));

        if (n > t->size) {
            (void) llm_buf_add(b, zeros, llm_min(n - t->size, FUZZ_ROOM));
        }
    }
}


/* a step of a few tokens, then two of one */

static void
fuzz_run(llm_model_t *m)
{
    int32_t      ids[FUZZ_IDS];
    uint32_t     i, n, from, pos[FUZZ_IDS], out[FUZZ_IDS], rows[2];
    uint32_t     kv_len, page = 0, slot = 0;
    llm_err_t    err;
    llm_batch_t  b;

    for (from = 0; from < FUZZ_IDS + 2; from += n) {
        n = from ? 1 : FUZZ_IDS;
        kv_len = from + n;
        rows[0] = 0;
        rows[1] = n;

        for (i = 0; i < n; i++) {
            pos[i] = from + i;
            out[i] = i;
            ids[i] = (int32_t) ((from + i) % llm_model_hparams(m)->n_vocab);
        }

        memset(&b, 0, sizeof(b));
        b.n_tokens = n;
        b.n_seqs = 1;
        b.n_out = n;
        b.max_pages = 1;
        b.tokens = ids;
        b.pos = pos;
        b.seq_rows = rows;
        b.kv_len = &kv_len;
        b.pages = &page;
        b.out_rows = out;
        b.slots = &slot;

        if (llm_model_forward(m, &b, &err) != LLM_OK) {
            return;
        }

        (void) llm_model_logits(m, n - 1);
    }
}


static void
fuzz_load(const llm_buf_t *b, const char *device)
{
    int               fd;
    char              path[64];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    fd = memfd_create("model", 0);

    if (fd < 0 || write(fd, b->data, b->len) != (ssize_t) b->len) {
        abort();
    }

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    memset(&o, 0, sizeof(o));
    memset(&err, 0, sizeof(err));
    o.device = device;
    o.threads = 1;
    o.ctx = LLM_KV_PAGE;
    o.batch = FUZZ_IDS;
    o.max_seqs = 1;

    m = llm_model_load(path, &o, &err);

    if (m) {
        fuzz_run(m);
        llm_model_free(m);

    } else if (err.msg[0] == '\0') {
        abort();

    } else if (getenv("LLM_FUZZ_SAY")) {
        fprintf(stderr, "%s\n", err.msg);
    }

    close(fd);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t               i, at;
    llm_buf_t            b;
    static fuzz_file_t   f;

    if (size < 2) {
        return 0;
    }

    if (fuzz_n_seeds == 0) {
        fuzz_open_seeds();
    }

    fuzz_take(&f, fuzz_seeds[data[0] % fuzz_n_seeds]);

    if (data[1] & 1) {
        fuzz_rename(&f, data[1] >> 2);
    }

    for (i = 2; i + 4 <= size; i += 4) {
        if (!(data[i] & FUZZ_RAW)) {
            fuzz_change(&f, data + i);
        }
    }

    fuzz_write(&f, &b);

    for (i = 2; i + 4 <= size; i += 4) {
        if (data[i] & FUZZ_RAW) {
            at = (data[i + 1] | (size_t) data[i + 2] << 8)
                 % llm_min(b.len, (size_t) FUZZ_HEADER);
            b.data[at] = (char) (b.data[at] ^ data[i + 3]);
        }
    }

    fuzz_load(&b, data[1] & 2 ? "reference" : "cpu");

    llm_buf_free(&b);

    for (i = 0; i < f.n_keys; i++) {
        llm_buf_free(&f.keys[i].value);
    }

    return 0;
}
