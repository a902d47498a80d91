/*
 * What a row of a table brings with it.  The files that read the tables are
 * compiled once more for this program, with the rows of t/unit/rows behind
 * the engine's own (engine/Makefile): nothing of the engine knows them.
 */

#include "engine/api/api.h"
#include "engine/sample/sampler.h"
#include "engine/sample/stages.h"
#include "t/unit/tap.h"

#include <math.h>

#define N_VOCAB  300


/* ---- stages ---- */

/* the tokens within some standard deviations of the largest logit */

void
llm_stage_top_n_sigma(llm_chain_t *c)
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

    bound = c->max - c->params->top_n_sigma * sqrt(squares / c->n);

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

    ok(parse(",\"seed\":1", &p, &err) == LLM_OK && p.top_n_sigma == 0,
       "a stage's parameter has its default");
    ok(planned(&p) && draws_below(&p, row, 400, 1.9f) > 20,
       "which leaves the draw to a device, and all tokens");

    ok(parse(",\"seed\":1,\"top_n_sigma\":1.25", &p, &err) == LLM_OK
       && p.top_n_sigma == 1.25f, "a request names it");
    ok(!planned(&p), "its draw is the host's");
    is_int(draws_below(&p, row, 400, 1.9f), 0, "and cuts");
    ok(draws_below(&p, row, 400, 2.5f) > 20, "as far as it should");

    ok(parse(",\"seed\":1,\"top_n_sigma\":1.25,\"top_k\":200", &p, &err)
       == LLM_OK, "a cut before it");
    is_int(draws_below(&p, row, 400, 1.9f), 0, "changes nothing of that");

    ok(parse(",\"top_n_sigma\":1.25,\"temperature\":0", &p, &err) == LLM_OK
       && planned(&p), "where the best token is taken a device may draw");

    ok(parse(",\"top_n_sigma\":101", &p, &err) == LLM_ERROR
       && err.status == 400 && strcmp(err.param, "top_n_sigma") == 0
       && strstr(err.msg, "<= 100"), "its range is checked: %s", err.msg);
    ok(parse(",\"top_n_sigma\":\"1\"", &p, &err) == LLM_ERROR
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


int
main(void)
{
    test_cut();
    test_penalty();

    return done_testing();
}
