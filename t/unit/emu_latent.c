/*
 * Latent attention by the CUDA backend in the emulator, against the
 * reference: products of heads with a matrix each, of every type, with
 * factors; attention in f16 and in fp8, launched and replayed; the same bits
 * in any steps, and whatever shared memory a GPU has, by which the backend
 * chooses its tiles.  LLM_GPU_DEVICE=cuda: on a GPU instead (t/gpu/run.sh).
 */

#include "t/unit/latent.h"
#include "t/unit/emu_ops.h"

/* Ampere, Ada and Hopper: blocks of 32, 16 and 64 rows are the largest */
static const char  *const capabilities[] = { "80", "89", "90" };


static llm_exec_t *
open_reference(void)
{
    return ops_open(&llm_ops_reference, NULL, 1);
}


/* ---- heads ---- */

static const uint32_t  all_types[] = {
#define LLM_TYPE(NAME, name, number, block, bytes)  LLM_TYPE_##NAME,
#include "kernels/types.def"
};


static void
check_heads(const heads_case_t *c, const void *m, uint32_t bf16,
    llm_act_kind_t kind, int scaled)
{
    int     same;
    char    what[128];
    float  *x, *want, *got, *again, scales[16];
    size_t  i, n;

    static const uint32_t  steps[] = { 1, 19, 33 };

    n = (size_t) c->rows * c->n_heads;
    x = ops_alloc(n * (c->n_in + c->rest) * sizeof(float));
    n *= c->n_out + c->rest;
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));
    again = ops_alloc(n * sizeof(float));

    ops_fill(x, (size_t) c->rows * c->n_heads * (c->n_in + c->rest), 3);
    ops_fill(scales, 16, 5);
    snprintf(what, sizeof(what), "%s, %u heads, %u to %u and %u%s%s",
             llm_type_name(c->type), c->n_heads, c->n_in, c->n_out, c->rest,
             kind == LLM_ACT_VALUE ? ", 16-bit" : "",
             scaled ? ", with factors" : "");

    run_heads(open_reference(), c, LLM_ACT_RESIDUAL, m,
              scaled ? scales : NULL, x, c->rows, want);
    run_heads(open_emu(bf16 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 0, 0), c, kind,
              m, scaled ? scales : NULL, x, c->rows, got);
    compare(got, want, n, bf16 ? 0.006 : 0.001, what);

    for (i = 0, same = 1; i < llm_nelems(steps); i++) {
        run_heads(open_emu(bf16 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 0, 0), c,
                  kind, m, scaled ? scales : NULL, x, steps[i], again);
        same &= memcmp(got, again, n * sizeof(float)) == 0;
    }

    ok(same, "%s: the same bits in any steps", what);

    free(x);
    free(want);
    free(got);
    free(again);
}


static void
test_heads(void)
{
    void    *m;
    size_t   i;

    for (i = 0; i < llm_nelems(heads_cases); i++) {
        m = heads_matrix(&heads_cases[i]);
        check_heads(&heads_cases[i], m,
                    heads_cases[i].type == LLM_TYPE_BF16,
                    i % 2 ? LLM_ACT_VALUE : LLM_ACT_RESIDUAL, i % 3 == 1);
        free(m);
    }
}


static void
test_types(void)
{
    void     *m;
    size_t    i;
    uint32_t  block;

    heads_case_t  c = { .n_heads = 3, .n_out = 37, .rest = 8, .rows = 35 };

    for (i = 0; i < llm_nelems(all_types); i++) {
        block = (uint32_t) llm_type_block(all_types[i]);
        c.type = all_types[i];
        c.n_in = block == 1 ? 150 : block < 256 ? 192 : 256;

        m = matrix(c.type, c.n_heads * c.n_out, c.n_in, i + 1);
        check_heads(&c, m, 0, LLM_ACT_RESIDUAL, i % 2);
        free(m);
    }
}


/* heads in fp8: a row's largest element may be off by half of the last of its
   three bits */

static void
test_fp8_heads(void)
{
    void                *m;
    float               *x, *want, *got;
    size_t               n;
    const heads_case_t  *c = &heads_cases[0];

    n = (size_t) c->rows * c->n_heads;
    x = ops_alloc(n * (c->n_in + c->rest) * sizeof(float));
    want = ops_alloc(n * (c->n_out + c->rest) * sizeof(float));
    got = ops_alloc(n * (c->n_out + c->rest) * sizeof(float));
    ops_fill(x, n * (c->n_in + c->rest), 3);
    m = heads_matrix(c);
    n *= c->n_out + c->rest;

    run_heads(open_reference(), c, LLM_ACT_RESIDUAL, m, NULL, x, c->rows,
              want);
    run_heads(open_emu(LLM_TYPE_F16, 1, 0), c, LLM_ACT_RESIDUAL, m, NULL, x,
              c->rows, got);
    compare(got, want, n, 0.04, "heads in fp8");
    ok(memcmp(got, want, n * sizeof(float)) != 0, "which differ");

    free(m);
    free(x);
    free(want);
    free(got);
}


/* ---- attention ---- */

/* the cases of the CPU, in steps of any size; two splits are enough */

static void
test_steps(latent_case_t c)
{
    int       same;
    float    *want, *got;
    size_t    i, n;
    latent_t  t;

    static const uint32_t  steps[] = { 1, 29 };

    c.n = llm_min(c.n, 330);
    latent_init(&t, &c);
    n = (size_t) c.n * t.out_cols;
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));

    run_latent(open_reference(), &t, OPS_MAX_ROWS, got);
    run_latent(open_emu(LLM_TYPE_F16, 0, 0), &t, OPS_MAX_ROWS, want);
    compare(want, got, n, 0.0015, c.name);

    for (i = 0, same = 1; i < llm_nelems(steps); i++) {
        run_latent(open_emu(LLM_TYPE_F16, 0, 0), &t, steps[i], got);
        same &= memcmp(got, want, n * sizeof(float)) == 0;
    }

    ok(same, "%s: the same bits in any steps", c.name);

    latent_free(&t);
    free(want);
    free(got);
}


static const attention_t  latents[] = {
    { 3, 1, 576, 512, 64, LLM_ROPE_NORM, .h = { .latent = 1 } },
    { 16, 1, 80, 64, 16, LLM_ROPE_NORM, .h = { .latent = 1 } },
    { 70, 1, 40, 32, 8, LLM_ROPE_NORM, .h = { .latent = 1 } },
    { 6, 2, 35, 20, 14, LLM_ROPE_NORM,
      .h = { .latent = 1, .temp_scale = 0.1f, .temp_floor = 16 } },
    { 20, 1, 48, 32, 16, LLM_ROPE_NEOX, .sinks = 1,
      .h = { .latent = 1, .window = 250, .softcap = 3 } }
};


/* as `life`, but with a shorter prompt, which only fills the cache, for there
   are many heads */

static const rows_t  short_life[llm_nelems(life)][3] = {
    { { 0, 270, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { { 0, 33, 1 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { { 270, 1, 0 }, { 33, 40, 1 }, { 0, 5, 2 } },
    { { 271, 1, 0 }, { 73, 1, 1 }, { 5, 1, 2 } },
    { { 272, 1, 0 }, { 74, 1, 1 }, { 6, 1, 2 } },
    { { 273, 3, 0 }, { 75, 1, 1 }, { 7, 4, 2 } },
    { { 276, 1, 0 }, { 76, 4, 1 }, { 11, 2, 2 } },
    { { 277, 2, 0 }, { 80, 3, 1 }, { 13, 3, 2 } }
};


/* whole numbers of eighths, which an e4m3 has, by a scale that is the same for
   all heads */

static void
eighths(float *x, size_t n, uint32_t dim)
{
    size_t  i;

    for (i = 0; i < n * dim; i++) {
        x[i] = roundf(llm_min(llm_max(x[i], -1.5f), 1.5f) * 8) / 8;
    }
}


/* the same life on GPUs with more shared memory and with less */

static void
test_lives(const attention_t *a, int fp8)
{
    int          same;
    char         what[128];
    float       *q, *out[3];
    size_t       i, k, n;
    llm_exec_t  *d;

    void      (*cook)(float *, size_t, uint32_t) = fp8 ? eighths : NULL;

    n = ATTEND_ROWS * a->heads;
    q = ops_alloc(n * a->dk * sizeof(float));

    for (k = 0; k < 3; k++) {
        out[k] = ops_alloc(n * a->dv * sizeof(float));
    }

    d = open_reference();
    n = attend(d, a, cook, q, out[0]);
    d->ops->close(d);

    for (i = 0, same = 1; i < llm_nelems(capabilities); i++) {

        if (fp8 && i == 0) {
            continue;                   /* Ampere has none */
        }

        (void) setenv("LLM_EMU_CAPABILITY", capabilities[i], 1);
        d = open_emu(LLM_TYPE_F16, 0, fp8);

        if (d == NULL) {
            skip("this GPU has no fp8");
            break;
        }

        k = i > (size_t) fp8 ? 2 : 1;
        attend_replayed = 0;
        (void) attend(d, a, cook, q, out[k]);
        d->ops->close(d);
        is_int(attend_replayed, 1, "a captured step");

        if (k == 1) {
            snprintf(what, sizeof(what), "%u heads of %u and %u, %u of KV%s",
                     a->heads, a->dk, a->dv, a->kv_heads, fp8 ? ", fp8" : "");
            compare(out[1], out[0], n * a->dv, 0.0015, what);

        } else {
            same &= memcmp(out[1], out[2], n * a->dv * sizeof(float)) == 0;
        }
    }

    (void) unsetenv("LLM_EMU_CAPABILITY");
    ok(same, "the same bits by any tile");

    free(q);

    for (k = 0; k < 3; k++) {
        free(out[k]);
    }
}


/* ---- the cache ---- */

static void
test_cache(void)
{
    size_t       once, twice;
    llm_kv_t    *kv;
    llm_exec_t  *d;
    llm_err_t    err;

    llm_kv_layer_t  layer = { 1, 576, 512, 1 };
    llm_kv_opts_t   o = { .n_layers = 1, .n_pages = 4, .n_kv_heads = 1,
                          .head_dim_k = 576, .head_dim_v = 512,
                          .n_heads = 16, .layers = &layer };

    d = open_emu(LLM_TYPE_F16, 0, 0);
    once = d->ops->kv_page_size(d, &o);
    o.layers = NULL;
    twice = d->ops->kv_page_size(d, &o);
    ok(once * (576 + 512) == twice * 576, "a latent page has %zu bytes, not "
       "%zu", once, twice);

    err.msg[0] = '\0';
    o.layers = &layer;
    layer.head_dim_v = o.head_dim_v = 520;
    kv = d->ops->kv_create(d, &o, &err);
    ok(kv == NULL && strstr(err.msg, "a latent of 520"), "%s", err.msg);
    d->ops->kv_free(d, kv);
    d->ops->close(d);
}


int
main(void)
{
    size_t       i;
    llm_exec_t  *d;

    (void) setenv("LLM_EMU_SEED", "19", 0);

    d = open_emu(LLM_TYPE_F16, 0, 0);

    if (d == NULL) {
        return done_without_device();
    }

    d->ops->close(d);
    attend_life = short_life;
    attend_from = 2;

    test_heads();
    test_types();
    test_fp8_heads();
    test_cache();

    for (i = 0; i < llm_nelems(latent_cases); i++) {
        test_steps(latent_cases[i]);
    }

    for (i = 0; i < llm_nelems(latents); i++) {
        test_lives(&latents[i], 0);
        test_lives(&latents[i], 1);
    }

    return done_testing();
}
