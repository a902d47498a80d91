/*
 * What a row of a table brings with it.  The files that read the tables are
 * compiled once more for this program, with the rows of t/unit/rows behind
 * the engine's own (engine/Makefile): nothing of the engine knows them.
 */

#include "engine/api/api.h"
#include "engine/model/blocks.h"
#include "engine/model/reader.h"
#include "engine/sample/sampler.h"
#include "engine/sample/stages.h"
#include "kernels/cpu/blocks.h"
#include "t/unit/model_run.h"
#include "t/unit/tap.h"
#include "t/unit/tiny_expected.h"

#include <math.h>
#include <unistd.h>

#define N_VOCAB  300


/* ---- stages ---- */

/* the tokens within some standard deviations of the largest logit */

void
llm_stage_near_best(llm_chain_t *c)
{
    double       sum, squares, mean, bound;
    uint32_t     i, kept;
    llm_pick_t  *p;

    sum = 0;
    squares = 0;

    for (i = 0; i < c->n; i++) {
        sum += c->row[i];
    }

    mean = sum / c->n;

    for (i = 0; i < c->n; i++) {
        squares += (c->row[i] - mean) * (c->row[i] - mean);
    }

    bound = c->max - c->params->near_best * sqrt(squares / c->n);

    llm_chain_gather(c);
    p = c->scratch->picks;
    kept = 0;

    for (i = 0; i < c->count; i++) {
        if (p[i].key >= bound) {
            p[kept++] = p[i];
        }
    }

    c->count = kept;
}


void
llm_stage_never_twice(llm_chain_t *c)
{
    uint32_t  i;

    for (i = 0; i < c->n_edits; i++) {
        if (c->edits[i].seen) {
            c->scratch->row[c->edits[i].id] = -INFINITY;
        }
    }
}


/* a request's sampling parameters; LLM_ERROR: it was refused */

static int
parse(const char *params, llm_sampling_t *s, llm_err_t *err)
{
    char             body[256];
    llm_api_t       *a;
    llm_buf_t        msg;
    llm_api_route_t  to;

    static const llm_api_model_t  model = { .name = llm_str("m"),
                                            .is_default = 1,
                                            .max_tokens = -1 };
    static const llm_api_conf_t   conf = { .models = &model, .n_models = 1,
                                           .allowed = 1, .fallback = -1,
                                           .cap = -1, .id = llm_str("1") };

    snprintf(body, sizeof(body), "{\"prompt\": [1]%s}", params);
    memset(err, 0, sizeof(llm_err_t));
    llm_buf_init(&msg, 0);

    (void) llm_api_route(llm_str("completions"), llm_str("POST"), &to);
    a = llm_api_parse(to.endpoint, &conf, body, strlen(body), &msg, err);

    if (a) {
        *s = ((llm_request_t *) (void *) msg.data)->sampling;
    }

    llm_api_free(a);
    llm_buf_free(&msg);

    return a ? LLM_OK : LLM_ERROR;
}


/* n draws; how many were of a logit below bound */

static uint32_t
draws_below(const llm_sampling_t *p, const float *row, uint32_t n,
    float bound)
{
    uint32_t                below;
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampler_scratch_t  *scratch;

    s = llm_sampler_create(p, 0, NULL, 0, N_VOCAB);
    scratch = llm_sampler_scratch_create(N_VOCAB);
    below = 0;

    for ( /* void */ ; n; n--) {
        if (llm_sampler_sample(s, scratch, row, NULL, 0, NULL, &out, &err)
            != LLM_OK)
        {
            break;
        }

        below += row[out.id] < bound;
        llm_sampler_accept(s, out.id);
    }

    llm_sampler_free(s);
    llm_sampler_scratch_free(scratch);

    return n ? UINT32_MAX : below;
}


static int
planned(const llm_sampling_t *p)
{
    int             rc;
    llm_draw_t      draw;
    llm_sampler_t  *s;

    s = llm_sampler_create(p, 0, NULL, 0, N_VOCAB);
    rc = llm_sampler_plan(s, 0, NULL, 0, NULL, &draw);
    llm_sampler_free(s);

    return rc;
}


/* a tent: 0 to 3 and back, so sigma is about 0.87 */

static void
tent(float *row)
{
    int  i;

    for (i = 0; i < N_VOCAB; i++) {
        row[i] = (float) (3 - abs(i - 150) * 0.02);
    }
}


static void
test_cut(void)
{
    float           row[N_VOCAB];
    llm_err_t       err;
    llm_sampling_t  p;

    tent(row);

    ok(parse(",\"seed\":1", &p, &err) == LLM_OK && p.near_best == 0,
       "a stage's parameter has its default");
    ok(planned(&p) && draws_below(&p, row, 400, 1.9f) > 20,
       "which leaves the draw to a device, and all tokens");

    ok(parse(",\"seed\":1,\"near_best\":1.25", &p, &err) == LLM_OK
       && p.near_best == 1.25f, "a request names it");
    ok(!planned(&p), "its draw is the host's");
    is_int(draws_below(&p, row, 400, 1.9f), 0, "and cuts");
    ok(draws_below(&p, row, 400, 2.5f) > 20, "as far as it should");

    ok(parse(",\"seed\":1,\"near_best\":1.25,\"top_k\":200", &p, &err)
       == LLM_OK, "a cut before it");
    is_int(draws_below(&p, row, 400, 1.9f), 0, "changes nothing of that");

    ok(parse(",\"near_best\":1.25,\"temperature\":0", &p, &err) == LLM_OK
       && planned(&p), "where the best token is taken a device may draw");

    ok(parse(",\"near_best\":101", &p, &err) == LLM_ERROR
       && err.status == 400 && strcmp(err.param, "near_best") == 0
       && strstr(err.msg, "<= 100"), "its range is checked: %s", err.msg);
    ok(parse(",\"near_best\":\"1\"", &p, &err) == LLM_ERROR
       && strcmp(err.code, "invalid_type") == 0, "and its type: %s", err.msg);
}


static void
test_penalty(void)
{
    int                     i;
    float                   row[N_VOCAB];
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    llm_sampler_scratch_t  *scratch;

    static const int  want[] = { 149, 151, 148, 152 };

    tent(row);

    ok(parse(",\"never_twice\":1,\"temperature\":0", &p, &err) == LLM_OK
       && !planned(&p), "a penalty is the host's with a temperature of 0 too");

    s = llm_sampler_create(&p, 0, NULL, 0, N_VOCAB);
    scratch = llm_sampler_scratch_create(N_VOCAB);
    llm_sampler_see_prompt(s, 150);

    for (i = 0; i < 4; i++) {
        out.id = 0;
        (void) llm_sampler_sample(s, scratch, row, NULL, 0, NULL, &out, &err);
        is_int(out.id, want[i], "what was seen does not come again");
        llm_sampler_accept(s, out.id);
    }

    llm_sampler_free(s);
    llm_sampler_scratch_free(scratch);

    ok(parse(",\"never_twice\":2", &p, &err) == LLM_ERROR
       && strcmp(err.param, "never_twice") == 0, "%s", err.msg);
}


/* ---- models ---- */

static char  path[] = "/tmp/llm-rows-XXXXXX";


static int
write_file(const llm_buf_t *b)
{
    int    rc;
    FILE  *f;

    f = fopen(path, "wb");
    rc = f && fwrite(b->data, 1, b->len, f) == b->len;

    if (f) {
        fclose(f);
    }

    return rc;
}


/* the file's logits behind the last of each four tokens, zeros elsewhere; 0:
   the message is err's */

static int
run_file(const llm_buf_t *b, const char *device, const char *isa,
    float *logits, llm_err_t *err)
{
    int               rc;
    int32_t           ids[TINY_IDS];
    uint32_t          i;
    run_seq_t         s;
    llm_model_t      *m;
    llm_model_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.threads = 2;
    o.max_seqs = 2;
    o.batch = 16;

    memset(err, 0, sizeof(llm_err_t));
    memset(logits, 0, TINY_IDS * TINY_VOCAB * sizeof(float));
    m = write_file(b) ? llm_model_load(path, &o, err) : NULL;

    if (m == NULL) {
        return 0;
    }

    for (i = 0; i < TINY_IDS; i++) {
        ids[i] = tiny_id(i);
    }

    memset(&s, 0, sizeof(s));
    s.ids = ids;
    s.n = TINY_IDS;
    s.logits = logits;

    rc = run_chunks(m, &s, 4, 0, err) == LLM_OK;
    llm_model_free(m);

    return rc;
}


/* ---- types ---- */

static void
turned(const uint8_t *from, uint8_t *to)
{
    uint32_t  i;

    for (i = 0; i < LLM_BYTES_R4_0; i++) {
        to[i] = from[LLM_BYTES_R4_0 - 1 - i];
    }
}


void
llm_block_r4_0(const uint8_t *b, float *dst)
{
    uint8_t  block[LLM_BYTES_Q4_0];

    turned(b, block);
    llm_block_q4_0(block, dst);
}


void
llm_pack_r4_0(const uint8_t *p, uint32_t i, llm_pack_block_t *b)
{
    uint8_t  block[LLM_BYTES_Q4_0];

    turned(p, block);
    llm_pack_q4_0(block, i, b);
}


/* where the tensor's data lie in the bytes that b's file was written from */

static size_t
place_of(const llm_gguf_t *g, const llm_buf_t *b,
    const llm_gguf_tensor_t *t)
{
    size_t                    all;
    const char               *first;
    const llm_gguf_tensor_t  *last;

    first = llm_gguf_tensor(g, 0)->data;
    last = llm_gguf_tensor(g, llm_gguf_n_tensors(g) - 1);
    all = (size_t) ((const char *) last->data - first) + last->size;

    return b->len - llm_align(all, 32)
           + (size_t) ((const char *) t->data - first);
}


/* a model in Q4_0, and the same values in the other type */

static void
make_pair(const tiny_t *t, llm_buf_t *plain, llm_buf_t *other)
{
    tiny_t                    u;
    size_t                    i, k, at;
    llm_err_t                 err;
    llm_gguf_t               *g;
    const llm_gguf_tensor_t  *w;

    u = *t;
    u.type = LLM_TYPE_R4_0;
    llm_buf_init(plain, 0);
    llm_buf_init(other, 0);
    (void) tiny_gguf(t, NULL, plain);
    (void) tiny_gguf(&u, NULL, other);

    if (!write_file(plain) || (g = llm_gguf_open(path, &err)) == NULL) {
        return;
    }

    for (i = 0; i < llm_gguf_n_tensors(g); i++) {
        w = llm_gguf_tensor(g, i);

        if (w->type != LLM_TYPE_Q4_0) {
            continue;
        }

        at = place_of(g, plain, w);

        for (k = at; k < at + w->size; k += LLM_BYTES_R4_0) {
            turned((uint8_t *) plain->data + k, (uint8_t *) other->data + k);
        }
    }

    llm_gguf_close(g);
}


static void
test_type(void)
{
    float          want[TINY_IDS * TINY_VOCAB], got[TINY_IDS * TINY_VOCAB];
    size_t         i;
    llm_buf_t      plain, other;
    llm_err_t      err;
    const tiny_t  *t;

    static const struct {
        const char  *device;
        const char  *isa;
    } on[] = {
        { "reference", NULL }, { "cpu", "avx2" }, { "cpu", "avx512" },
        { "cpu", "amx" }
    };

    is_str(llm_type_name(200), "R4_0", "a type has its name");
    is_int(llm_type_row_size(200, 96), 54, "and its size");
    ok(llm_type_name(199) == NULL && llm_type_name(201) == NULL,
       "the numbers beside it have none");

    t = tiny_named("qwen3 Q4_0");
    make_pair(t, &plain, &other);

    ok(plain.len == other.len && memcmp(plain.data, other.data, plain.len),
       "two files of the same model");

    for (i = 0; i < llm_nelems(on); i++) {
        if (!run_file(&plain, on[i].device, on[i].isa, want, &err)) {

            if (run_lacks(&err)) {
                skip(err.msg);

            } else {
                ok(0, "runs on %s: %s", on[i].device, err.msg);
            }

            continue;
        }

        if (!ok(run_file(&other, on[i].device, on[i].isa, got, &err)
                && memcmp(got, want, sizeof(got)) == 0,
                "have the same logits, %s %s", on[i].device,
                on[i].isa ? on[i].isa : ""))
        {
            printf("# %s\n", err.msg);
        }

        ok(run_distance(want + (TINY_IDS - 1) * TINY_VOCAB, t->logits,
                        TINY_VOCAB) < 0.03, "which are right");
    }

    llm_buf_free(&plain);
    llm_buf_free(&other);
}


/* ---- architectures ---- */

/* an operation, in the tables of both backends that are compiled with its
   row */

static uint32_t  n_flips[2];            /* of the reference, of the CPU */


void
llm_ref_flip(llm_exec_t *exec, llm_rows_t rows, llm_act_t *x)
{
    n_flips[0]++;
    exec->ops->scale(exec, rows, -1, x, 0, x);
}


void
llm_cpu_flip(llm_exec_t *exec, llm_rows_t rows, llm_act_t *x)
{
    n_flips[1]++;
    exec->ops->scale(exec, rows, -1, x, 0, x);
}


/* x -= W norm(x), by a buffer of its own */

static void
block_swap(const llm_pass_t *p)
{
    llm_model_t   *m = p->m;
    llm_linear_t   out = { p->l->w[LLM_LT_SWAP], NULL, m->act[LLM_MA_SWAPPED],
                           0 };

    llm_pass_norm(p, p->x, LLM_LT_SWAP_NORM, LLM_LT_N, m->act[LLM_MA_H]);
    m->ops->linear(m->exec, p->rows, m->act[LLM_MA_H], &out, 1);
    m->ops->flip(m->exec, p->rows, out.y);
    llm_pass_join(p, out.y, LLM_LT_N);
}


static const llm_tensor_want_t  swap_tensors[] = {
    { LLM_LT_SWAP_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_SWAP, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  swap_buffers[] = {
    { LLM_MA_SWAPPED, LLM_DIM_SWAP },
    { LLM_MA_N, LLM_DIM_NONE }
};


static const llm_block_t  block_of_swap = {
    .forward = block_swap,
    .needs = LLM_CAN_FLIP,
    .tensors = swap_tensors,
    .buffers = swap_buffers
};


/* the blocks in another order, and one of its own between them, which a field
   of its own may turn off in the first layers */

static int
swap_read(llm_reader_t *r)
{
    uint32_t  i, from;

    static const llm_block_t  *const without[] = {
        &llm_block_ffn, &llm_block_attention
    };

    from = 0;

    if (llm_read_u32(r, "swap_from", &from) == LLM_ERROR) {
        return LLM_ERROR;
    }

    for (i = 0; i < llm_min(from, r->d->hp.n_layers); i++) {
        llm_desc_chain(&r->d->layers[i], without, 2);
        r->d->layers[i].want[LLM_LT_SWAP] = LLM_WANT_NONE;
        r->d->layers[i].want[LLM_LT_SWAP_NORM] = LLM_WANT_NONE;
    }

    return LLM_OK;
}


const llm_arch_t  llm_arch_swap = {
    .name = "swap",
    .blocks = { &llm_block_ffn, &block_of_swap, &llm_block_attention },
    .read = swap_read
};


/* data of a tensor become those of another of its shape, or 0 */

static void
set_tensor(llm_buf_t *b, const char *name, const char *from)
{
    char                     *to;
    llm_err_t                 err;
    llm_gguf_t               *g;
    const llm_gguf_tensor_t  *t;

    g = write_file(b) ? llm_gguf_open(path, &err) : NULL;
    t = g ? llm_gguf_find_tensor(g, name) : NULL;

    if (t == NULL) {
        printf("Bail out! no tensor %s\n", name);
        exit(1);
    }

    to = b->data + place_of(g, b, t);

    if (from) {
        memcpy(to, b->data + place_of(g, b, llm_gguf_find_tensor(g, from)),
               t->size);
    } else {
        memset(to, 0, t->size);
    }

    llm_gguf_close(g);
}


/*
 * Two layers of llama, A F A F, and of the other architecture, F A F A, are
 * the same A F A where the last F and the first F do nothing.
 */

static void
make_swapped(llm_buf_t *plain, llm_buf_t *other)
{
    size_t  i;
    char    to[64], from[64];
    tiny_t  t, u;

    static const char  *const ffn[] = {
        "ffn_norm", "ffn_gate", "ffn_up", "ffn_down"
    };

    t = *tiny_named("llama, odd sizes F16");
    t.type = LLM_TYPE_F32;
    t.layers = 2;

    u = t;
    u.arch = "swap";
    u.swap = 1;

    llm_buf_init(plain, 0);
    llm_buf_init(other, 0);
    (void) tiny_gguf(&t, NULL, plain);
    (void) tiny_gguf(&u, NULL, other);

    for (i = 0; i < llm_nelems(ffn); i++) {
        snprintf(to, sizeof(to), "blk.1.%s.weight", ffn[i]);
        snprintf(from, sizeof(from), "blk.0.%s.weight", ffn[i]);
        set_tensor(other, to, from);
    }

    set_tensor(plain, "blk.1.ffn_down.weight", NULL);
    set_tensor(other, "blk.0.ffn_down.weight", NULL);
}


/* what needs the operation, and who has it */

static void
test_op(void)
{
    llm_ops_t    ops;
    llm_buf_t    plain, other;
    llm_err_t    err;
    llm_desc_t   d;
    llm_gguf_t  *g;

    make_swapped(&plain, &other);
    g = write_file(&other) ? llm_gguf_open(path, &err) : NULL;

    if (ok(g && llm_desc_read(g, &d, &err) == LLM_OK, "a description")) {
        is_int(llm_desc_needs(&d, 64) & LLM_CAN_FLIP, LLM_CAN_FLIP,
               "needs what its blocks need");
        llm_desc_free(&d);
    }

    llm_gguf_close(g);
    llm_buf_free(&plain);
    llm_buf_free(&other);

    ok(llm_ops_cpu.flip == llm_cpu_flip
       && llm_ops_reference.flip == llm_ref_flip,
       "an operation is in the tables of both backends");
    ok((llm_ops_cpu.can & LLM_CAN_FLIP) && llm_ops_lacks(&llm_ops_cpu) == NULL,
       "which can do it");

    ops = llm_ops_cpu;
    ops.flip = NULL;
    is_str(llm_ops_lacks(&ops), "flip (dense)", "one without it is not whole");
    ops.can &= ~(uint32_t) LLM_CAN_FLIP;
    ok(llm_ops_lacks(&ops) == NULL, "unless it says so");
}


static void
test_arch(void)
{
    float      want[TINY_IDS * TINY_VOCAB], got[TINY_IDS * TINY_VOCAB];
    tiny_t     t;
    llm_buf_t  plain, other;
    llm_err_t  err;

    make_swapped(&plain, &other);

    ok(run_file(&plain, "reference", NULL, want, &err)
       && run_file(&other, "reference", NULL, got, &err),
       "an architecture loads and runs");
    ok(n_flips[0] > 0, "with the operation of its block");
    ok(run_distance(got, want, TINY_IDS * TINY_VOCAB) > 0.1,
       "its own block counts");

    ok(run_file(&other, "cpu", "avx2", want, &err)
       ? n_flips[1] > 0 && run_distance(got, want, TINY_IDS * TINY_VOCAB) < 0.03
       : run_lacks(&err), "on the CPU, too: %s", err.msg);
    (void) run_file(&plain, "reference", NULL, want, &err);

    set_tensor(&other, "blk.0.swap.weight", NULL);
    set_tensor(&other, "blk.1.swap.weight", NULL);

    ok(run_file(&other, "reference", NULL, got, &err)
       && run_distance(got, want, TINY_IDS * TINY_VOCAB) == 0,
       "and the others run in the order of its chain");

    llm_buf_free(&plain);
    llm_buf_free(&other);

    t = *tiny_named("llama, odd sizes F16");
    t.arch = "swap";
    llm_buf_init(&other, 0);
    (void) tiny_gguf(&t, NULL, &other);
    ok(!run_file(&other, "reference", NULL, got, &err)
       && strstr(err.msg, "blk.0.swap_norm.weight: the tensor is missing"),
       "a layer must have what its blocks need: %s", err.msg);
    llm_buf_free(&other);

    t.arch = "swop";
    llm_buf_init(&other, 0);
    (void) tiny_gguf(&t, NULL, &other);
    ok(!run_file(&other, "reference", NULL, got, &err)
       && strstr(err.msg, "\"swop\" is not supported"),
       "whoever asks for another is told of it: %s", err.msg);
    llm_buf_free(&other);
}


int
main(void)
{
    int  fd;

    fd = mkstemp(path);

    if (fd < 0) {
        printf("Bail out! no file in /tmp\n");
        return 1;
    }

    close(fd);

    test_cut();
    test_penalty();
    test_type();
    test_op();
    test_arch();

    unlink(path);

    return done_testing();
}
