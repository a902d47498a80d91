/*
 * A step launched behind the one before, whose draws are its tokens, gives
 * what steps one after the other give: tokens, probabilities and rivals, to
 * the bit, for every way to draw; with sequences in another order in each
 * step, beside chunks of a prompt (not a captured step then) and alone (a
 * captured one).  In the emulator the device is once as slow as may be, work
 * done when somebody waits, and once as fast; LLM_GPU_DEVICE=cuda: on a GPU.
 */

#include "engine/model/model.h"
#include "engine/sample/sampler.h"
#include "t/unit/emu_dev.h"
#include "t/unit/model_run.h"
#include "t/unit/shallow.h"
#include "t/unit/tap.h"

#define LAYERS    2                     /* one for each device */
#define N         6                     /* sequences, a way to draw each */
#define N_STEPS   16
#define CTX       96
#define N_PAGES   (CTX / LLM_KV_PAGE)
#define CHUNK     5                     /* rows of the prompt beside them */
#define N_TOP     3

static const struct {
    const char  *name;
    float        temperature;
    float        top_p;
    int32_t      top_k;
    float        repetition;
    float        frequency;
    float        presence;
    int32_t      n_logprobs;
    int          biased;
    uint32_t     min_tokens;
} ways[N] = {
    { "the largest", 0, 1, 0, 1, 0, 0, -1, 0, 0 },
    { "dice", 1.2f, 0.9f, 40, 1, 0, 0, 0, 0, 12 },
    { "penalties", 0, 1, 0, 1.4f, 0.3f, 0.2f, N_TOP, 0, 0 },
    /* these want to say the same again, which was just said and is on no
       list yet */
    { "rewards", 0, 1, 0, 1, -1.5f, -4, N_TOP, 0, 0 },
    { "penalties of what is biased", 0.9f, 1, 0, 1.1f, 0.7f, 0, 0, 1, 0 },
    { "dice and rewards", 0.8f, 0.95f, 0, 0.8f, 0, 0, 1, 1, 7 }
};

typedef struct {
    int32_t          id;
    float            logprob;
    uint32_t         n_top;
    llm_candidate_t  top[N_TOP + 1];
} token_t;

/* one step, as the model is given it */
typedef struct {
    llm_batch_t  batch;
    int32_t      tokens[N + CHUNK];
    uint32_t     follows[N + CHUNK];
    uint32_t     pos[N + CHUNK];
    uint32_t     seq_rows[N + 2];
    uint32_t     kv_len[N + 1];
    uint32_t     pages[N + 1][N_PAGES];
    uint32_t     out_rows[N];
    llm_draw_t   draws[N];
    uint32_t     at[N];                 /* which draw is sequence i's */
} step_t;

static const char       *path;
static llm_model_opts_t  opts;
static llm_model_t    *model;
static llm_sampler_t  *samplers[N];
static int32_t         banned[2];
static token_t         want[N_STEPS][N];


static void
samplers_open(void)
{
    uint32_t          i;
    llm_sampling_t    p;
    llm_logit_bias_t  bias[40];

    for (i = 0; i < llm_nelems(bias); i++) {
        bias[i].id = (int32_t) (i * 7 + 3);
        bias[i].bias = (float) (i % 5) * 0.7f;
    }

    for (i = 0; i < N; i++) {
        llm_sampling_default(&p);
        p.temperature = ways[i].temperature;
        p.top_p = ways[i].top_p;
        p.top_k = ways[i].top_k;
        p.repetition_penalty = ways[i].repetition;
        p.frequency_penalty = ways[i].frequency;
        p.presence_penalty = ways[i].presence;
        p.n_logprobs = ways[i].n_logprobs;
        p.has_seed = 1;
        p.seed = 11 + i;

        samplers[i] = llm_sampler_create(&p, 0, bias, ways[i].biased
                                         ? (uint32_t) llm_nelems(bias) : 0,
                                         llm_model_hparams(model)->n_vocab);
        llm_sampler_see_prompt(samplers[i], (int32_t) (20 + i));
    }
}


static void
samplers_close(void)
{
    uint32_t  i;

    for (i = 0; i < N; i++) {
        llm_sampler_free(samplers[i]);
    }
}


/*
 * Step t: each sequence's row, its token known (`last`) or drawn by the step
 * `before`; every fourth step begins with rows of a prompt.
 */

static void
fill(step_t *st, uint32_t t, const token_t *last, const step_t *before)
{
    uint32_t  i, j, k, s, row;

    memset(st, 0, sizeof(*st));
    row = 0;
    s = 0;

    if (t % 4 == 3) {
        for ( /* void */ ; row < CHUNK; row++) {
            st->tokens[row] = (int32_t) (60 + t + row);
            st->follows[row] = LLM_NO_DRAW;
            st->pos[row] = t / 4 * CHUNK + row;
        }

        st->kv_len[s] = st->pos[row - 1] + 1;
        st->seq_rows[++s] = row;

        for (k = 0; k < N_PAGES; k++) {
            st->pages[0][k] = N * N_PAGES + k;
        }
    }

    for (k = 0; k < N; k++, row++) {
        i = t % 3 == 1 ? N - 1 - k : (k + t) % N;

        st->tokens[row] = before ? 0
                                 : last ? last[i].id : (int32_t) (40 + i);
        st->follows[row] = before ? before->at[i] : LLM_NO_DRAW;
        st->pos[row] = t;
        st->kv_len[s] = t + 1;
        st->out_rows[k] = row;
        st->at[i] = k;

        for (j = 0; j < N_PAGES; j++) {
            st->pages[s][j] = i * N_PAGES + j;
        }

        (void) llm_sampler_plan(samplers[i], before != NULL, banned,
                                t < ways[i].min_tokens ? 2 : 0, NULL,
                                &st->draws[k]);
        st->seq_rows[++s] = row + 1;
    }

    st->batch.n_tokens = row;
    st->batch.n_seqs = s;
    st->batch.n_out = N;
    st->batch.max_pages = N_PAGES;
    st->batch.tokens = st->tokens;
    st->batch.follows = st->follows;
    st->batch.pos = st->pos;
    st->batch.seq_rows = st->seq_rows;
    st->batch.kv_len = st->kv_len;
    st->batch.pages[LLM_KV_FULL] = st->pages[0];
    st->batch.out_rows = st->out_rows;
    st->batch.draws = st->draws;
}


static void
must(int rc, const llm_err_t *err)
{
    if (rc != LLM_OK) {
        printf("Bail out! %s\n", err->msg);
        exit(1);
    }
}


/* what the step that ended has drawn; its tokens are accepted */

static void
take(const step_t *st, token_t *out)
{
    uint32_t       i;
    llm_err_t      err;
    llm_drawn_t    drawn;
    llm_sampled_t  token;

    for (i = 0; i < N; i++) {
        llm_model_drawn(model, st->at[i], &drawn);
        must(llm_sampler_drawn(samplers[i], &drawn, &token, &err), &err);
        llm_sampler_accept(samplers[i], token.id);

        memset(&out[i], 0, sizeof(out[i]));
        out[i].id = token.id;
        out[i].logprob = token.logprob;
        out[i].n_top = token.n_top;
        memcpy(out[i].top, token.top, token.n_top * sizeof(*token.top));
    }
}


static void
one_by_one(void)
{
    uint32_t   t;
    llm_err_t  err;

    static step_t  st;

    samplers_open();

    for (t = 0; t < N_STEPS; t++) {
        fill(&st, t, t ? want[t - 1] : NULL, NULL);
        must(llm_model_forward(model, &st.batch, &err), &err);
        take(&st, want[t]);
    }

    samplers_close();
}


static void
check_ahead(const char *how, uint32_t n_steps)
{
    uint32_t   t, i, good[N];
    token_t    got[N];
    llm_err_t  err;

    static step_t  steps[2];

    memset(good, 0, sizeof(good));
    samplers_open();

    for (t = 0; t < n_steps; t++) {

        if (t == 0) {
            fill(&steps[0], 0, NULL, NULL);
            must(llm_model_submit(model, &steps[0].batch, &err), &err);
        }

        if (t + 1 < n_steps) {
            fill(&steps[(t + 1) % 2], t + 1, NULL, &steps[t % 2]);
            must(llm_model_submit(model, &steps[(t + 1) % 2].batch, &err),
                 &err);
        }

        must(llm_model_wait(model, &err), &err);
        take(&steps[t % 2], got);

        for (i = 0; i < N; i++) {
            good[i] += memcmp(&got[i], &want[t][i], sizeof(got[i])) == 0;
        }
    }

    for (i = 0; i < N; i++) {
        is_int(good[i], n_steps, "%s: %s", how, ways[i].name);
    }

    samplers_close();
}


/*
 * The last step's rows are for the host, though their tokens are drawn: the
 * largest logit is what is drawn where that is all there is to it.
 */

static void
check_host(void)
{
    uint32_t      i, k, best, n_vocab;
    token_t       got[N];
    llm_err_t     err;
    const float  *row;

    static step_t  steps[2];

    n_vocab = llm_model_hparams(model)->n_vocab;
    samplers_open();

    fill(&steps[0], 0, NULL, NULL);
    must(llm_model_submit(model, &steps[0].batch, &err), &err);
    fill(&steps[1], 1, NULL, &steps[0]);

    for (i = 0; i < N; i++) {
        steps[1].draws[i].kind = LLM_DRAW_HOST;
    }

    must(llm_model_submit(model, &steps[1].batch, &err), &err);
    must(llm_model_wait(model, &err), &err);
    take(&steps[0], got);
    must(llm_model_wait(model, &err), &err);

    row = llm_model_logits(model, steps[1].at[0]);

    for (k = 1, best = 0; k < n_vocab; k++) {
        best = row[k] > row[best] ? k : best;
    }

    is_int(best, want[1][0].id, "rows of logits behind a draw");

    samplers_close();
}


/* what the device says of its graphs */

static uint32_t  n_graph_logs;

static void
count_log(void *data, int level, const char *msg)
{
    (void) data;
    (void) level;

    n_graph_logs += strstr(msg, "graph of a step: out of memory") != NULL
                    || strstr(msg, "graph of a step: operation failed")
                       != NULL;
}


/* a graph that finds no memory, when it is made or launched: its step is
   launched, and so are those behind it */

static void
check_graphs(void)
{
    char       value[16], what[64];
    uint32_t   i;
    llm_err_t  err;

    opts.log = count_log;

    for (i = 1; i <= 2; i++) {
        llm_model_free(model);
        model = llm_model_load(path, &opts, &err);
        must(model ? LLM_OK : LLM_ERROR, &err);

        n_graph_logs = 0;
        snprintf(value, sizeof(value), "%u", i);
        snprintf(what, sizeof(what), "graph call %u finds no memory", i);
        (void) setenv("LLM_EMU_FAIL_GRAPH", value, 1);
        check_ahead(what, N_STEPS / 3);
        (void) unsetenv("LLM_EMU_FAIL_GRAPH");
        is_int(n_graph_logs, 1, "and it is said once");
    }

    opts.log = NULL;
}


/* two devices: layers on each, of which the last one draws what the first one
   follows; or rows of every matrix, of which the first one draws for both */

static void
check_two_devices(const char *split)
{
    char          what[64];
    size_t        i;
    llm_err_t     err;
    llm_model_t  *one;

    static const char  *const eager[] = { "0", "0,1", "1,0" };

    /* kernels are launched early, too */

    (void) setenv("LLM_EMU_CAPABILITY", "90", 1);
    one = model;
    opts.device = "emu:0,1";
    opts.split_rows = strcmp(split, "rows") == 0;
    model = llm_model_load(path, &opts, &err);
    opts.device = "emu";
    opts.split_rows = 0;

    if (ok(model != NULL, "%s on two devices: loads", split)) {
        ok(llm_model_overlaps(model), "%s: they overlap steps", split);

        for (i = 0; i < llm_nelems(eager); i++) {
            (void) setenv("LLM_EMU_EAGER", eager[i], 1);
            snprintf(what, sizeof(what), "%s, at once on %s", split, eager[i]);
            check_ahead(what, N_STEPS);
        }

        (void) unsetenv("LLM_EMU_EAGER");

        (void) setenv("LLM_EMU_FAIL_GRAPH", "3", 1);
        snprintf(what, sizeof(what), "%s, a graph finds no memory", split);
        check_ahead(what, N_STEPS / 3);
        (void) unsetenv("LLM_EMU_FAIL_GRAPH");
    }

    llm_model_free(model);
    model = one;
    (void) unsetenv("LLM_EMU_CAPABILITY");
}


/* a capture of two devices that becomes invalid, from one of the first calls
   that it gets to one in the middle of a step: which fails the calls behind it,
   and not the step, which is launched */

static void
check_captures(const char *split)
{
    char          value[16], what[64];
    size_t        i;
    llm_err_t     err;
    llm_model_t  *one;

    static const uint32_t  at[] = { 1, 2, 3, 4, 25 };

    one = model;
    opts.device = "emu:0,1";
    opts.split_rows = strcmp(split, "rows") == 0;
    opts.log = count_log;

    for (i = 0; i < llm_nelems(at); i++) {
        model = llm_model_load(path, &opts, &err);
        must(model ? LLM_OK : LLM_ERROR, &err);

        n_graph_logs = 0;
        snprintf(value, sizeof(value), "%u", at[i]);
        snprintf(what, sizeof(what), "%s, call %u of a capture fails", split,
                 at[i]);
        (void) setenv("LLM_EMU_FAIL_CAPTURE", value, 1);
        check_ahead(what, N_STEPS / 3);
        (void) unsetenv("LLM_EMU_FAIL_CAPTURE");
        is_int(n_graph_logs, 1, "and it is said once");
        llm_model_free(model);
    }

    opts.log = NULL;
    opts.device = "emu";
    opts.split_rows = 0;
    model = one;
}


/* a step under way beside another model's, whose kernel fails */

static llm_model_t *
fail_beside(step_t *st)
{
    llm_err_t     err;
    llm_model_t  *other;

    static step_t  more;

    fill(st, 0, NULL, NULL);
    must(llm_model_submit(model, &st->batch, &err), &err);

    other = llm_model_load(path, &opts, &err);

    fill(&more, 0, NULL, NULL);
    (void) setenv("LLM_EMU_FAIL_LAUNCH", "1", 1);
    ok(other && llm_model_forward(other, &more.batch, &err) == LLM_ERROR,
       "another model's step fails");
    (void) unsetenv("LLM_EMU_FAIL_LAUNCH");
    is_str(err.code, getenv("LLM_EMU_STICKY") ? LLM_DEVICE_LOST
                                              : LLM_DEVICE_ERROR, "its code");

    return other;
}


/*
 * An error that sticks costs all models on the GPU what they have there: the
 * step under way, all that come later, and loads.
 */

static void
check_lost(void)
{
    llm_err_t     err;
    llm_model_t  *other;

    static step_t  st;

    samplers_open();

    other = fail_beside(&st);
    is_int(llm_model_wait(model, &err), LLM_OK, "this one goes on");
    llm_model_free(other);

    (void) setenv("LLM_EMU_STICKY", "1", 1);
    other = fail_beside(&st);
    llm_model_free(other);

    err.code[0] = '\0';
    is_int(llm_model_wait(model, &err), LLM_ERROR,
           "the context is lost under a step");
    is_str(err.code, LLM_DEVICE_LOST, "and said to be");
    is_int(llm_model_submit(model, &st.batch, &err), LLM_ERROR,
           "nothing is taken any more");

    llm_model_free(model);
    samplers_close();

    err.code[0] = '\0';
    model = llm_model_load(path, &opts, &err);
    ok(model == NULL, "nor loaded: %s", err.msg);
    is_str(err.code, LLM_DEVICE_LOST, "as long as the process lives");
}


/* do rewards find tokens that were just drawn? */

static void
check_rewards(void)
{
    uint32_t  t, same;

    for (t = 1, same = 0; t < N_STEPS; t++) {
        same += want[t][3].id == want[t - 1][3].id;
    }

    ok(same > N_STEPS / 2, "rewards: %u times the same again", same);
}


int
main(void)
{
    llm_err_t    err;
    const char  *device, *objs;

    (void) setenv("LLM_EMU_SEED", "17", 0);

    device = getenv("LLM_GPU_DEVICE");
    objs = getenv("LLM_OBJS");

    opts.device = device ? device : "emu";
    opts.backend_dir = objs ? objs : "objs";
    opts.ctx = CTX;
    opts.batch = 64;
    opts.max_seqs = N + 1;

    path = shallow_model(LAYERS);
    model = llm_model_load(path, &opts, &err);

    if (model == NULL && run_lacks(&err)) {
        printf("# %s\n", err.msg);
        return done_without_device();
    }

    if (!ok(model != NULL, "the model loads")) {
        printf("# %s\n", err.msg);
        return done_testing();
    }

    ok(llm_model_overlaps(model), "the device overlaps steps");
    ok(llm_model_n_pages(model, LLM_KV_FULL) >= (N + 1) * N_PAGES,
       "pages for all");

    banned[0] = 5;
    banned[1] = 9;

    one_by_one();
    check_rewards();

    check_ahead("late", N_STEPS);
    (void) setenv("LLM_EMU_EAGER", "1", 1);
    check_ahead("at once", N_STEPS);
    (void) unsetenv("LLM_EMU_EAGER");

    check_host();

    if (device == NULL || strcmp(device, "emu") == 0) {
        check_two_devices("layers");
        check_two_devices("rows");
        check_captures("rows");
        check_graphs();
        check_lost();
    }

    llm_model_free(model);

    return done_testing();
}
