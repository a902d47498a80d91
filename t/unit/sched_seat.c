/*
 * Samplers belong to seats: who waits or is parked has none, and whoever
 * gets a seat back draws what it would have drawn without losing it.
 */

#include "t/unit/sched_rig.h"

#define N       12
#define CHOICES 3
#define GEN     60

/* of the run with room for all */
static int32_t   alone[N][CHOICES][GEN];


static ask_t *
dice(uint32_t slot)
{
    ask_t           *a;
    int32_t          ids[100];
    uint32_t         i;
    llm_sampling_t  *p;

    for (i = 0; i < 100; i++) {
        ids[i] = (int32_t) ((i * 31 + slot * 7) % 250);
    }

    a = ask(slot, ids, 100, CHOICES, GEN, LLM_REQ_IGNORE_EOS);

    p = &a->req->msg->sampling;
    p->temperature = 4;
    p->repetition_penalty = slot % 3 ? 1.6f : 1;
    p->frequency_penalty = slot % 2 ? 0.7f : 0;
    p->presence_penalty = slot % 4 ? 0 : 0.5f;
    p->n_logprobs = slot % 5 ? -1 : 3;
    p->has_seed = 1;
    p->seed = 17 + slot;

    return a;
}


/* those without a seat that have a sampler, and the other way round */

static uint32_t
misplaced(void)
{
    uint32_t    i, k, n;
    llm_seq_t  *q;

    n = sched->n_samplers + sched->n_running > sched->conf.runner.max_seqs;

    for (i = 0; i < N; i++) {
        for (k = 0; asks[i].req && k < CHOICES; k++) {
            q = &asks[i].req->run.seqs[k];
            n += (q->state == LLM_SEQ_RUNNING) != (q->sampler != NULL);
        }
    }

    return n;
}


static uint32_t
play(uint32_t n_pages, uint32_t seats, int pauses)
{
    uint32_t  i, k, n, wrong, steps;

    open_all(n_pages, 200, seats, 64, 1 << 18);
    wrong = 0;

    for (i = 0; i < N; i++) {
        add(dice(i));
    }

    for (steps = 0; n_over < N && steps < 100000; steps++) {

        for (i = 0; i < N; i++) {
            if (asks[i].req) {
                asks[i].req->out.paused = pauses && steps / 7 % 4 == i % 4;
            }
        }

        (void) step();
        read_events();
        wrong += misplaced();
    }

    is_int(n_over, N, "%u pages, %u seats: all end", n_pages, seats);
    is_int(wrong, 0, "and have a sampler while they have a seat");

    for (i = 0, n = 0; i < N; i++) {
        for (k = 0; k < CHOICES; k++) {
            if (n_pages == MAX_PAGES) {
                memcpy(alone[i][k], asks[i].ids[k], sizeof(alone[i][k]));
            }

            n += asks[i].n_ids[k] == GEN
                 && memcmp(alone[i][k], asks[i].ids[k], sizeof(alone[i][k]))
                    == 0;
        }
    }

    return n;
}


/* one sampler, used again and again, draws what a new one would */

static void
test_restart(void)
{
    float                   row[N_VOCAB];
    uint32_t                i, k, same;
    llm_err_t               err;
    llm_sampled_t           out[2];
    llm_sampler_t          *s[2];
    llm_sampling_t          p;
    llm_logit_bias_t        bias[3] = { { 3, 2 }, { 9, -1 }, { 3, 1 } };
    llm_sampler_scratch_t  *scratch;

    scratch = llm_sampler_scratch_create(N_VOCAB);
    s[0] = NULL;
    same = 0;

    for (i = 0; i < 500; i++) {
        llm_sampling_default(&p);
        p.temperature = 3;
        p.repetition_penalty = i % 3 ? 1.5f : 1;
        p.n_logprobs = (int32_t) (i * 7 % 20) - 1;
        p.seed = i;

        s[1] = llm_sampler_create(&p, i % 4, bias, i % 4, N_VOCAB);

        if (s[0] == NULL) {
            s[0] = llm_sampler_create(&p, i % 4, bias, i % 4, N_VOCAB);

        } else if (llm_sampler_restart(s[0], &p, i % 4, bias, i % 4)
                   != LLM_OK)
        {
            break;
        }

        for (k = 0; k < 8; k++) {
            fill_row(row, (uint64_t) (i * 8 + k) * 0x9fb21c651e98df25ull);
            memset(out, 0, sizeof(out));

            (void) llm_sampler_sample(s[0], scratch, row, NULL, 0, NULL,
                                      &out[0], &err);
            (void) llm_sampler_sample(s[1], scratch, row, NULL, 0, NULL,
                                      &out[1], &err);

            same += out[0].id == out[1].id && out[0].n_top == out[1].n_top
                    && out[0].logprob == out[1].logprob;

            llm_sampler_accept(s[0], out[0].id);
            llm_sampler_accept(s[1], out[1].id);
        }

        llm_sampler_free(s[1]);
    }

    is_int(same, 4000, "a sampler that is used again is as new");

    llm_sampler_free(s[0]);
    llm_sampler_scratch_free(scratch);
}


int
main(void)
{
    llm_err_t  err;

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    is_int(play(MAX_PAGES, N * CHOICES, 0), N * CHOICES, "with room for all");
    close_all();

    is_int(play(40, N * CHOICES, 0), N * CHOICES, "few pages: the same");
    ok(llm_zone_get(zone->models[0].own.preemptions) > 0,
       "some were preempted");
    close_all();

    is_int(play(100, 5, 1), N * CHOICES, "few seats and slow readers: too");
    close_all();

    test_restart();
    tv_close(&tiny);

    return done_testing();
}
