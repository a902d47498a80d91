/*
 * Draws on the device that have no good end: logits and parameters that no
 * model and no request should have, more than a device takes.  All of them
 * end, most with the host's error.  LLM_GPU_DEVICE=cuda: on a GPU instead of
 * the emulator.
 */

#include "t/unit/emu_sample.h"

#include <float.h>
#include <unistd.h>


static void
test_errors(void)
{
    rig_t     r;
    one_t     o[N_SETUPS];
    uint32_t  i, k, wrong;

    static const struct {
        const char  *what;
        float        value;             /* of one, NaN: all as they are */
        int          empty;             /* nothing is allowed */
        uint32_t     status;
    } cases[] = {
        { "NaN", NAN, 0, LLM_DRAWN_NOT_FINITE },
        { "plus infinity", INFINITY, 0, LLM_DRAWN_NOT_FINITE },
        { "all minus infinity", -INFINITY, 0, LLM_DRAWN_NOTHING },
        { "an empty mask", 0, 1, LLM_DRAWN_NOTHING }
    };

    (void) rig_open(&r, 1000);

    for (k = 0; k < llm_nelems(cases); k++) {
        fill_row(&r, ROW_NORMAL);

        for (i = 0; i < r.n && cases[k].value == -INFINITY; i++) {
            r.row[i] = -INFINITY;
        }

        r.row[997] = cases[k].value;

        if (cases[k].empty) {
            memset(r.mask, 0, (r.n + 31) / 32 * sizeof(uint32_t));
        }

        for (i = 0; i < N_SETUPS; i++) {
            one_open(&r, &o[i], &setups[i], i);
        }

        (void) step(&r, o, N_SETUPS, 0);
        wrong = 0;

        for (i = 0; i < N_SETUPS; i++) {
            if (o[i].draw.kind == LLM_DRAW_TOKEN
                && (!cases[k].empty || setups[i].masked))
            {
                wrong += o[i].drawn.status != cases[k].status
                         || one_check(&r, &o[i]);
            }
        }

        is_int(wrong, 0, "%s: the host's error", cases[k].what);
        close_all(o, N_SETUPS);
    }

    rig_close(&r);
}


/* ---- whatever a row is, its draw ends ---- */

static float
broken_logit(void)
{
    static const float  values[] = {
        -INFINITY, FLT_MAX, -FLT_MAX, FLT_MIN, 1e-42f, -1e-42f, 0, -0.0f
    };

    return values[ops_random(&state) % llm_nelems(values)];
}


/* what the sampler's parameters allow, and what they never should */

static void
broken_draw(llm_draw_t *d, uint32_t which, llm_edit_t *edits)
{
    static const float  edges[] = {
        1e-40f, 0, -0.0f, 1e38f, INFINITY, -INFINITY, NAN, -1e38f
    };

    float  edge = edges[which / 4 % llm_nelems(edges)];

    switch (which % 4) {

    case 0:
        d->repetition = edge;
        break;

    case 1:
        d->frequency = edge;
        d->presence = -edge;
        break;

    case 2:
        d->scale = d->scale > 0 ? fabsf(edge) : 0;
        d->min_gap = -edge;
        d->top_p = edge;
        break;

    default:
        memcpy(edits, d->edits, d->n_edits * sizeof(llm_edit_t));
        edits[d->n_edits / 2].bias = edge;
        d->edits = edits;
    }
}


/* the edited row as the device has it: 1 if it has a NaN or plus infinity */

static int
broken_row(rig_t *r, const llm_draw_t *d)
{
    uint32_t  i;

    reference_edit(r, d);

    for (i = 0; i < r->n; i++) {
        if (!(r->row[i] < INFINITY) || !(r->changed[i] < INFINITY)) {
            return 1;
        }
    }

    return 0;
}


/* is it the draw's only right end? */

static int
broken_wrong(rig_t *r, one_t *o)
{
    int            bad;
    llm_err_t      err;
    llm_sampled_t  out;

    bad = broken_row(r, &o->draw);

    if (o->drawn.status == LLM_DRAWN_TOKEN) {
        return bad || (uint32_t) o->drawn.id >= r->n
               || r->changed[o->drawn.id] == -INFINITY;
    }

    /* a scale that is no number, or none, makes no weights */

    return (bad && o->drawn.status != LLM_DRAWN_NOT_FINITE)
           || llm_sampler_drawn(o->sampler, &o->drawn, &out, &err)
              != LLM_ERROR;
}


static void
test_broken(uint32_t n)
{
    enum { ROUNDS = 160 };

    rig_t        r;
    one_t        o[N_SETUPS];
    uint32_t     i, k, round, wrong;
    llm_edit_t   edits[N_SETUPS][64];

    (void) rig_open(&r, n);
    wrong = 0;

    for (round = 0; round < ROUNDS; round++) {
        fill_row(&r, round % N_KINDS);

        for (i = 0; i < n && round % 4 == 1; i++) {
            r.row[i] = broken_logit();
        }

        if (round % 16 == 5) {
            r.row[ops_random(&state) % n] = NAN;
            r.row[ops_random(&state) % n] = -NAN;
            r.row[ops_random(&state) % n] = INFINITY;
        }

        for (i = 0; i < N_SETUPS; i++) {
            one_open(&r, &o[i], &setups[i], round);
            broken_draw(&o[i].draw, round, edits[i]);
        }

        (void) step(&r, o, N_SETUPS, 0);

        for (i = 0; i < N_SETUPS; i++) {
            k = o[i].draw.kind == LLM_DRAW_TOKEN && broken_wrong(&r, &o[i]);
            wrong += k;

            if (k) {
                printf("# %s, round %u: status %u, token %d\n",
                       setups[i].name, round, o[i].drawn.status,
                       o[i].drawn.id);
            }
        }

        close_all(o, N_SETUPS);
    }

    is_int(wrong, 0, "%u tokens: draws of broken rows end", n);
    rig_close(&r);
}


/* what is more than a device takes is the host's */

static void
test_bounds(void)
{
    rig_t          r;
    one_t          o;
    uint32_t       i;
    const setup_t  many = { "", 1, 1, 0, 1, 1.1f, 0, 0, 0, -1, 0, 1, 0 };
    const setup_t  top = { "", 1, 1, 0, 1, 1, 0, 0, 0, LLM_DRAW_TOP + 1, 0,
                           0, 0 };

    (void) rig_open(&r, 5000);
    fill_row(&r, ROW_NORMAL);

    one_open(&r, &o, &top, 1);
    is_int(o.draw.kind, LLM_DRAW_HOST, "more probabilities than it tells");
    llm_sampler_free(o.sampler);

    one_open(&r, &o, &many, 1);

    for (i = 0; o.draw.n_edits + 3 < LLM_DRAW_EDITS; i++) {
        llm_sampler_see_prompt(o.sampler, (int32_t) i);
        (void) llm_sampler_plan(o.sampler, 0, r.banned, 3, NULL, &o.draw);
    }

    is_int(o.draw.kind, LLM_DRAW_TOKEN, "as many edits as it takes");
    (void) step(&r, &o, 1, 0);
    is_int(one_check(&r, &o), 0, "are done");

    llm_sampler_see_prompt(o.sampler, 4999);
    is_int(llm_sampler_plan(o.sampler, 0, r.banned, 3, NULL, &o.draw), 0,
           "and one more");
    llm_sampler_free(o.sampler);

    rig_close(&r);
}


int
main(void)
{
    if (!device_is_there()) {
        return done_without_device();
    }

    test_errors();

    alarm(600);                         /* for a draw that does not end */
    test_broken(70);
    test_broken(1500);
    alarm(0);

    test_bounds();

    return done_testing();
}
