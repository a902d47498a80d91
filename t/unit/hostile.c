/*
 * Models whose header says something that was not meant: every field that an
 * architecture may read, with numbers that no model has, arrays that are too
 * short, and tensors of every type there is.  What is sure to be wrong is
 * refused by name; everything else is refused or loads, and then runs.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE                     /* memfd_create() */
#endif

#include "t/unit/gguf_edit.h"
#include "t/unit/steps.h"
#include "t/unit/tap.h"
#include "t/unit/tiny_expected.h"

#include <sys/mman.h>
#include <unistd.h>

#define IDS  3


static edit_file_t  f;
static llm_gguf_t  *seed;


/* the model as it was meant */

static void
take(const char *name)
{
    llm_err_t         err;
    static llm_buf_t  b;

    edit_free(&f);

    if (seed) {
        llm_gguf_close(seed);
        llm_buf_free(&b);
    }

    llm_buf_init(&b, 0);

    if (tiny_gguf(tiny_named(name), NULL, &b) != LLM_OK
        || (seed = llm_gguf_open_memory(b.data, b.len, name, &err)) == NULL)
    {
        printf("Bail out! %s\n", name);
        exit(1);
    }

    edit_take(&f, seed);
}


/* loads the edit, and runs it; LLM_ERROR without a message is a fault */

static int
load(llm_err_t *err)
{
    int               fd, rc;
    char              path[64];
    llm_buf_t         b;
    llm_model_t      *m;
    llm_model_opts_t  o;

    edit_write(&f, &b);
    fd = memfd_create("model", 0);

    if (fd < 0 || write(fd, b.data, b.len) != (ssize_t) b.len) {
        printf("Bail out! no file in memory\n");
        exit(1);
    }

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    memset(&o, 0, sizeof(o));
    o.device = "cpu";
    o.threads = 1;
    o.ctx = LLM_KV_PAGE;
    o.batch = IDS;
    o.max_seqs = 1;

    memset(err, 0, sizeof(*err));
    m = llm_model_load(path, &o, err);
    rc = m ? steps_run(m, IDS, 1) : LLM_ERROR;

    if (rc == LLM_OK) {
        err->msg[0] = '\0';
    }

    llm_model_free(m);
    close(fd);
    llm_buf_free(&b);

    return rc;
}


/* key becomes a number, or an array of n twos, or is added */

static void
set(const char *field, uint32_t type, double v, int n)
{
    int          i;
    float        d = (float) v;
    size_t       k;
    char         name[EDIT_NAME];
    uint32_t     u = type == LLM_GGUF_F32 ? 0 : (uint32_t) v;
    edit_key_t  *key;

    snprintf(name, sizeof(name), "%.40s.%s", f.arch, field);

    for (k = 0; k < f.n_keys && strcmp(f.keys[k].name, name) != 0; k++) {
        /* void */
    }

    key = &f.keys[k];

    if (k == f.n_keys) {
        f.n_keys++;
        snprintf(key->name, sizeof(key->name), "%s", name);
        llm_buf_init(&key->value, 0);
    }

    key->value.len = 0;
    key->item = type;
    key->type = n < 0 ? type : LLM_GGUF_ARRAY;
    key->count = n < 0 ? 1 : (uint64_t) n;

    for (i = 0; i < (n < 0 ? 1 : n); i++) {
        (void) llm_buf_add(&key->value,
                           type == LLM_GGUF_F32 ? (void *) &d : (void *) &u,
                           type == LLM_GGUF_BOOL ? 1 : 4);
    }
}


static void
test_refused(void)
{
    size_t     i;
    llm_err_t  err;

    static const struct {
        const char  *model;
        const char  *field;
        uint32_t     type;
        double       value;
        int          n;                 /* items of an array, or -1 */
    } cases[] = {
        { "qwen3moe", "expert_used_count", LLM_GGUF_U32, 99, -1 },
        { "qwen3moe", "expert_used_count", LLM_GGUF_U32, 0, -1 },
        { "qwen3moe", "expert_count", LLM_GGUF_U32, 3, -1 },
        { "qwen3moe", "expert_count", LLM_GGUF_U32, 4294967295.0, -1 },
        { "glm4moe", "expert_group_count", LLM_GGUF_U32, 0, -1 },
        { "glm4moe", "expert_group_count", LLM_GGUF_U32, 3, -1 },
        { "glm4moe", "expert_group_used_count", LLM_GGUF_U32, 77, -1 },
        { "glm4moe", "expert_gating_func", LLM_GGUF_U32, 9, -1 },
        { "glm4moe", "expert_weights_scale", LLM_GGUF_F32, NAN, -1 },
        { "glm4moe", "leading_dense_block_count", LLM_GGUF_U32, 9, -1 },
        { "gemma2", "attn_logit_softcapping", LLM_GGUF_F32, NAN, -1 },
        { "gemma2", "final_logit_softcapping", LLM_GGUF_F32, INFINITY, -1 },
        { "gpt-oss", "attention.sliding_window_pattern", LLM_GGUF_U32, 1, 1 },
        { "gemma3", "attention.head_count_kv", LLM_GGUF_U32, 2, 1 },
        { "gemma3", "attention.head_count_kv", LLM_GGUF_U32, 0, -1 },
        { "gemma3", "feed_forward_length", LLM_GGUF_U32, 64, 1 },
        { "llama", "feed_forward_length", LLM_GGUF_U32, 64, 0 },
        { "llama", "rope.dimension_count", LLM_GGUF_U32, 0, -1 },
        { "llama", "rope.dimension_count", LLM_GGUF_U32, 7, -1 },
        { "granite", "residual_scale", LLM_GGUF_F32, NAN, -1 },
        { "granite", "attention.scale", LLM_GGUF_F32, INFINITY, -1 },
        { "phi3, long RoPE", "rope.dimension_count", LLM_GGUF_U32, 4, -1 },
        { "deepseek2", "attention.causal", LLM_GGUF_BOOL, 0, -1 }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        take(cases[i].model);
        set(cases[i].field, cases[i].type, cases[i].value, cases[i].n);
        ok(load(&err) == LLM_ERROR && err.msg[0], "%s: %s=%g is refused: %s",
           cases[i].model, cases[i].field, cases[i].value, err.msg);
    }
}


static edit_tensor_t *
find(const char *name)
{
    size_t  i;

    for (i = 0; i < f.n_tensors; i++) {
        if (strcmp(f.tensors[i].name, name) == 0) {
            return &f.tensors[i];
        }
    }

    printf("Bail out! no tensor %s\n", name);
    exit(1);
}


static void
drop(const char *name)
{
    *find(name) = f.tensors[--f.n_tensors];
}


/* a tensor of zeros more, of a layer; sizes that are 0 are not there */

static void
add(uint32_t layer, const char *name, uint64_t row, uint64_t rows,
    uint64_t stack)
{
    edit_tensor_t  *t = &f.tensors[f.n_tensors++];

    memset(t, 0, sizeof(*t));
    snprintf(t->name, sizeof(t->name), "blk.%u.%s", layer, name);
    t->n_dims = stack ? 3 : rows ? 2 : 1;
    t->ne[0] = row;
    t->ne[1] = rows;
    t->ne[2] = stack;
}


/* the first layer has no experts: the buffers for the others' are there */

static void
test_late_mixture(void)
{
    uint32_t   i;
    llm_err_t  err;

    take("gemma3");
    edit_rename(&f, "gemma4");
    set("expert_count", LLM_GGUF_U32, 4, -1);
    set("expert_used_count", LLM_GGUF_U32, 2, -1);
    set("expert_feed_forward_length", LLM_GGUF_U32, 32, -1);
    set("leading_dense_block_count", LLM_GGUF_U32, 1, -1);

    for (i = 1; i < 6; i++) {
        add(i, "post_ffw_norm_1.weight", 32, 0, 0);
        add(i, "post_ffw_norm_2.weight", 32, 0, 0);
        add(i, "pre_ffw_norm_2.weight", 32, 0, 0);
        add(i, "ffn_gate_inp.weight", 32, 4, 0);
        add(i, "ffn_gate_inp.scale", 32, 0, 0);
        add(i, "ffn_gate_exps.weight", 32, 32, 4);
        add(i, "ffn_up_exps.weight", 32, 32, 4);
        add(i, "ffn_down_exps.weight", 32, 32, 4);
    }

    ok(load(&err) == LLM_OK, "gemma4: mixtures behind a layer without: %s",
       err.msg);
}


/* the last layer has fewer, larger heads than the one whose keys it reads */

static void
test_shared_heads(void)
{
    size_t      k;
    llm_err_t   err;
    uint32_t    heads[] = { 4, 4, 4, 4, 4, 2 };

    take("gemma3");
    edit_rename(&f, "gemma4");

    for (k = 0; k < f.n_keys; k++) {
        if (strstr(f.keys[k].name, "sliding_window")
            || strstr(f.keys[k].name, "key_length")
            || strstr(f.keys[k].name, "value_length"))
        {
            edit_drop_key(&f, k--);
        }
    }

    for (k = 0; k < f.n_tensors; k++) {
        if (strstr(f.tensors[k].name, "attn_q.")
            || strstr(f.tensors[k].name, "attn_output."))
        {
            f.tensors[k].ne[0] = 32;
            f.tensors[k].ne[1] = 32;

        } else if (strstr(f.tensors[k].name, "attn_k.")
                   || strstr(f.tensors[k].name, "attn_v."))
        {
            f.tensors[k].ne[1] = 16;

        } else if (strstr(f.tensors[k].name, "attn_q_norm")
                   || strstr(f.tensors[k].name, "attn_k_norm"))
        {
            f.tensors[k].ne[0] = strstr(f.tensors[k].name, "blk.5.") ? 16 : 8;
        }
    }

    drop("blk.5.attn_k.weight");
    drop("blk.5.attn_v.weight");
    drop("blk.5.attn_k_norm.weight");
    set("attention.shared_kv_layers", LLM_GGUF_U32, 1, -1);
    set("attention.head_count", LLM_GGUF_U32, 4, 6);

    for (k = 0; strcmp(f.keys[k].name, "gemma4.attention.head_count"); k++) {
        /* void */
    }

    memcpy(f.keys[k].value.data, heads, sizeof(heads));

    ok(load(&err) == LLM_ERROR
       && strstr(err.msg, "no layer has the keys of layer 5"),
       "gemma4: heads of two sizes on the same keys: %s", err.msg);

    /* in a file that is right but for the heads */

    memcpy(f.keys[k].value.data + 20, heads, sizeof(heads[0]));
    find("blk.5.attn_q_norm.weight")->ne[0] = 8;
    ok(load(&err) == LLM_OK, "heads of the same size: %s", err.msg);
}


/* the tiny model of each architecture that comes first */

static const char *
first_of(size_t i)
{
    size_t  k;

    for (k = 0; k < i; k++) {
        if (strcmp(tinies[k].arch, tinies[i].arch) == 0) {
            return NULL;
        }
    }

    return tinies[i].name;
}


/* every field with every odd value */

static void
test_fields(void)
{
    int          bad;
    size_t       i, k, v, n, runs;
    llm_err_t    err;
    const char  *name;

    static const struct {
        uint32_t  type;
        double    value;
        int       n;
    } values[] = {
        { LLM_GGUF_U32, 0, -1 }, { LLM_GGUF_U32, 3, -1 },
        { LLM_GGUF_U32, 4294967295.0, -1 }, { LLM_GGUF_F32, NAN, -1 },
        { LLM_GGUF_F32, -1, -1 }, { LLM_GGUF_U32, 2, 1 },
        { LLM_GGUF_BOOL, 0, -1 }
    };

    for (i = 0; i < llm_nelems(tinies); i++) {
        name = first_of(i);

        if (name == NULL) {
            continue;
        }

        for (k = 0, n = 0, runs = 0, bad = 0; k < llm_nelems(edit_fields);
             k++)
        {
            for (v = 0; v < llm_nelems(values); v++, n++) {
                take(name);
                set(edit_fields[k], values[v].type, values[v].value,
                    values[v].n);

                if (load(&err) == LLM_OK) {
                    runs++;

                } else if (err.msg[0] == '\0') {
                    bad++;
                }
            }
        }

        ok(bad == 0 && runs > 0 && runs < n, "%s: %zu odd fields, %zu of "
           "them are refused with a message", name, n, n - runs);
    }
}


/* matrices of all types, one after another: as many bytes as they need are
   there */

static void
test_types(void)
{
    int        bad;
    size_t     i, runs;
    uint32_t   type;
    llm_err_t  err;

    for (type = 0, runs = 0, bad = 0; type < 44; type++) {

        for (i = 0; ; i++) {
            take("qwen3 Q8_0");

            if (i == f.n_tensors) {
                break;
            }

            f.tensors[i].type = type;

            if (load(&err) == LLM_OK) {
                runs++;

            } else if (err.msg[0] == '\0') {
                bad++;
            }
        }
    }

    ok(bad == 0 && runs > 26 * 8, "tensors of every type: %zu load and run",
       runs);
}


int
main(void)
{
    test_refused();
    test_late_mixture();
    test_shared_heads();
    test_fields();
    test_types();

    edit_free(&f);
    llm_gguf_close(seed);

    return done_testing();
}
