/*
 * A team of two emulated devices (kernels/team.h), asked for what no model asks
 * for: one buffer is collected, written and collected again, with nothing else
 * in between.  Whatever device is late, the bits are those of one.
 */

#include "engine/model/backend.h"
#include "kernels/team.h"
#include "t/unit/ops.h"

#define ROWS    3
#define COLS    96
#define VOCAB   8
#define ROUNDS  5

static float  table[VOCAB * COLS], matrix[COLS * COLS], ones[COLS];


static llm_exec_t *
opened(const char *device)
{
    const char       *objs = getenv("LLM_OBJS");
    llm_err_t         err;
    llm_exec_t       *d;
    llm_exec_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.max_tokens = ROWS;
    o.max_seqs = 1;
    o.max_pages = 1;
    o.max_out = ROWS;
    o.weight_type = LLM_TYPE_F16;
    o.n_kinds = 1;

    if (llm_backend_open(device, objs ? objs : "objs", NULL, &o, &d, &err)
        != LLM_OK)
    {
        printf("# %s\n", err.msg);
        return NULL;
    }

    return d;
}


static void
begin(llm_exec_t *d)
{
    llm_err_t    err;
    llm_batch_t  b;

    static const int32_t   tokens[ROWS] = { 1, 4, 6 };
    static const uint32_t  pos[ROWS] = { 0, 1, 2 };
    static const uint32_t  rows[2] = { 0, ROWS };
    static const uint32_t  len = ROWS, page;

    memset(&b, 0, sizeof(b));
    b.n_tokens = ROWS;
    b.n_seqs = 1;
    b.max_pages = 1;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = rows;
    b.kv_len = &len;
    b.pages[LLM_KV_FULL] = &page;

    if (d->ops->begin(d, &b, &err) != LLM_OK) {
        printf("Bail out! begin: %s\n", err.msg);
        exit(1);
    }
}


/* h = norm(W h), again and again; the result */

static void
run(llm_exec_t *d, float *result)
{
    uint32_t           i;
    llm_err_t          err;
    llm_vec_t         *w;
    llm_act_t         *x, *h, *y;
    llm_norm_t         norm = { .kind = LLM_NORM_RMS, .eps = 1e-5f };
    llm_weight_t      *embd, *m;
    const llm_ops_t   *ops = d->ops;

    if (ops->enter) {
        ops->enter(d);
    }

    embd = ops->weight_create(d, LLM_TYPE_F32, VOCAB, COLS, table,
                              LLM_WEIGHT_EMBED, &err);
    m = ops->weight_create(d, LLM_TYPE_F32, COLS, COLS, matrix,
                           LLM_WEIGHT_LINEAR, &err);
    w = ops->vec_create(d, ones, COLS, &err);
    x = ops->act_create(d, ROWS, COLS, LLM_ACT_RESIDUAL, &err);
    h = ops->act_create(d, ROWS, COLS, LLM_ACT_VALUE, &err);
    y = ops->act_create(d, ROWS, COLS, LLM_ACT_PRODUCT, &err);

    llm_linear_t  out = { m, NULL, y, 0 };

    norm.w = w;
    begin(d);
    ops->embed(d, embd, x);
    ops->norm(d, LLM_ROWS_ALL, x, &norm, h);

    for (i = 0; i < ROUNDS; i++) {
        ops->linear(d, LLM_ROWS_ALL, h, &out, 1);
        ops->norm(d, LLM_ROWS_ALL, y, &norm, h);
    }

    ops->norm(d, LLM_ROWS_ALL, y, &norm, y);

    if (ops->submit(d) != LLM_OK || ops->end(d, &err) != LLM_OK) {
        printf("Bail out! end: %s\n", err.msg);
        exit(1);
    }

    memcpy(result, ops->map(d, y, 0, ROWS), ROWS * COLS * sizeof(float));

    ops->act_free(d, x);
    ops->act_free(d, h);
    ops->act_free(d, y);
    ops->vec_free(d, w);
    ops->weight_free(d, m);
    ops->weight_free(d, embd);
}


static void
test_again(llm_exec_t *team, llm_exec_t *one)
{
    float   want[ROWS * COLS], got[ROWS * COLS];
    size_t  i;

    static const char  *const eager[] = { "0", "1", "0,1", "1,0" };

    run(one, want);

    for (i = 0; i < llm_nelems(eager); i++) {
        (void) setenv("LLM_EMU_EAGER", eager[i], 1);
        run(team, got);
        ok(memcmp(got, want, sizeof(got)) == 0,
           "collected again and again, at once on %s", eager[i]);
    }

    (void) unsetenv("LLM_EMU_EAGER");
}


int
main(void)
{
    uint32_t     i;
    llm_err_t    err;
    llm_exec_t  *devices[2], *one, *team;

    (void) setenv("LLM_EMU_SEED", "5", 0);
    one = opened("emu");

    if (one == NULL) {
        skip("there is no llm_emu.so");
        return done_testing();
    }

    ops_fill(table, VOCAB * COLS, 7);
    ops_fill(matrix, COLS * COLS, 8);

    for (i = 0; i < COLS; i++) {
        ones[i] = 1;
    }

    devices[0] = opened("emu:0");
    devices[1] = opened("emu:1");

    if (ok(devices[0] && devices[1]
           && llm_team_create(devices, 2, &team, &err) == LLM_OK,
           "a team of two"))
    {
        test_again(team, one);
        team->ops->close(team);
    }

    devices[0]->ops->close(devices[0]);
    devices[1]->ops->close(devices[1]);
    one->ops->close(one);

    return done_testing();
}
