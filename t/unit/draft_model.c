/*
 * The small model that drafts: what it guesses is what its model says after the
 * sequence's tokens, whatever the seat had before, with windows or without.
 *
 * The model is a hash of the tokens that a row sees through its page table.
 */

#include "engine/sched/draft_model.h"

#include "t/unit/tap.h"

#include <math.h>

#define N_VOCAB    300
#define SEATS      3
#define CTX        400
#define BATCH      64
#define MAX_PAGES  128

#include "t/unit/known.h"

static int32_t    pages[MAX_PAGES][LLM_KV_PAGE];
static uint32_t   window;               /* positions that a row sees; 0: all */
static float      row[N_VOCAB];
static uint32_t   n_rows, n_steps;
static int        broken;
static int        strange;              /* a step had a token that the model
                                           lacks */


static uint64_t
mix(uint64_t h, int32_t id, uint32_t pos)
{
    h = (h ^ (uint32_t) id ^ (uint64_t) pos << 32) * 0x9fb21c651e98df25ull;

    return h ^ h >> 29;
}


static int32_t
said(uint64_t h)
{
    return (int32_t) ((h >> 20) % 256);
}


static int
submit(void *data, const llm_batch_t *b, llm_err_t *err)
{
    uint32_t  i, k, pos;
    uint64_t  h;

    (void) data;

    if (broken) {
        return llm_fail(err, "broken");
    }

    n_steps++;
    n_rows += b->n_tokens;

    for (i = 0; i < b->n_tokens; i++) {
        strange |= (uint32_t) b->tokens[i] >= N_VOCAB;
        pos = b->pos[i];
        pages[b->pages[0][pos / LLM_KV_PAGE]][pos % LLM_KV_PAGE] =
            b->tokens[i];
    }

    pos = b->kv_len[0];

    for (h = 0, k = window && pos > window ? pos - window : 0; k < pos; k++) {
        h = mix(h, pages[b->pages[0][k / LLM_KV_PAGE]][k % LLM_KV_PAGE], k);
    }

    for (k = 0; k < N_VOCAB; k++) {
        row[k] = 0;
    }

    row[said(h)] = 30;

    return LLM_OK;
}


static int
wait_step(void *data, llm_err_t *err)
{
    (void) data;
    (void) err;

    return LLM_OK;
}


static const float *
logits(void *data, uint32_t i)
{
    (void) data;
    (void) i;

    return row;
}


/* what the model says after these tokens */

static int32_t
after(const int32_t *ids, uint32_t n)
{
    uint32_t  k;
    uint64_t  h;

    for (h = 0, k = window && n > window ? n - window : 0; k < n; k++) {
        h = mix(h, ids[k], k);
    }

    return said(h);
}


static llm_draft_model_t *
create(uint32_t n_pages)
{
    llm_err_t           err;
    llm_draft_model_t  *m;
    llm_runner_t        run = {
        .n_vocab = N_VOCAB, .ctx = CTX, .window = window, .batch = BATCH,
        .max_seqs = SEATS, .n_pages = { n_pages }, .submit = submit,
        .wait = wait_step, .logits = logits
    };

    n_rows = 0;
    n_steps = 0;
    broken = 0;
    memset(pages, 0xff, sizeof(pages));
    m = llm_draft_model_create(&run, &err);

    if (m == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    return m;
}


/* asks until the seat has followed; returns how many of the guesses are what
   the model says */

static uint32_t
guess(llm_draft_model_t *m, const known_t *k, uint32_t n, double trust,
    uint32_t *got)
{
    double    expected;
    int32_t   ids[CTX + 16], drafts[16];
    uint32_t  i, right;

    for (i = 0, *got = 0; i < 20 && *got == 0; i++) {
        llm_draft_model_begin(m);
        *got = llm_draft_model_guess(m, &k->seq, drafts, n, 0.05, trust, 0,
                                     &expected);
    }

    memcpy(ids, k->ids, k->prompt.n * sizeof(*ids));

    for (i = 0, right = 0; i < *got; i++) {
        ids[k->prompt.n + i] = after(ids, k->prompt.n + i);
        right += drafts[i] == ids[k->prompt.n + i];
    }

    return right;
}


static void
test_guesses(uint32_t n_pages)
{
    known_t             a, b;
    uint32_t            i, got, good;
    llm_draft_model_t  *m;

    printf("# window %u, %u pages\n", window, n_pages);
    m = create(n_pages);
    known(&a, 200, 200, 0);
    is_int(guess(m, &a, 8, 1, &got), 8, "the model's tokens are guessed");

    /* the answer goes another way, then grows by guesses that were right */

    for (i = 0, good = 0; i < 60; i++) {
        a.ids[a.prompt.n] = i % 4 ? after(a.ids, a.prompt.n) : 7;
        a.prompt.n++;
        good += guess(m, &a, 8, 1, &got) == 8;
    }

    is_int(good, 60, "after each token, too");

    /* another sequence with the same beginning, beside it and after it */

    known(&b, 220, 180, 3);
    is_int(guess(m, &b, 8, 1, &got), 8, "another sequence");
    is_int(guess(m, &a, 8, 1, &got), 8, "and the first one again");

    llm_draft_model_leave(m, &a.seq);
    llm_draft_model_leave(m, &b.seq);
    n_rows = 0;
    known(&a, 240, 180, 3);
    is_int(guess(m, &a, 8, 1, &got), 8, "the next turn of it");
    ok(window ? n_rows < 300 : n_rows < 60, "%u rows were computed", n_rows);

    llm_draft_model_free(m);
}


static void
test_limits(void)
{
    known_t             a;
    double              expected;
    int32_t             ids[16];
    uint32_t            got;
    llm_err_t           err;
    llm_runner_t        run = { .n_slots = 3 };
    llm_draft_model_t  *m;

    m = create(MAX_PAGES);
    known(&a, 100, 100, 0);
    (void) guess(m, &a, 8, 0.5, &got);
    ok(got > 2 && got < 6, "with half of the trust %u are guessed", got);

    llm_draft_model_begin(m);
    known(&a, CTX - 4, 0, 1);
    is_int(llm_draft_model_guess(m, &a.seq, ids, 8, 0.05, 1, 0, &expected), 0,
           "none beyond the context");

    known(&a, 50, 0, 1);
    broken = 1;
    is_int(llm_draft_model_guess(m, &a.seq, ids, 8, 0.05, 1, 0, &expected), 0,
           "none when the device fails");
    broken = 0;
    is_int(llm_draft_model_guess(m, &a.seq, ids, 8, 0.05, 1, 0, &expected), 0,
           "nor any more");
    llm_draft_model_free(m);

    ok(llm_draft_model_create(&run, &err) == NULL, "no recurrent layers");
}


/* prompts that are computed together: one step of the large model has so many
   rows of the small one, whatever the number of sequences */

static void
test_catching_up(void)
{
    known_t             a[SEATS];
    double              expected;
    int32_t             ids[16];
    uint32_t            i, k, got, most;
    llm_draft_model_t  *m;

    m = create(MAX_PAGES);

    for (k = 0; k < SEATS; k++) {
        known(&a[k], 200, 0, (int32_t) k);
    }

    for (i = 0, got = 0, most = 0; i < 20; i++) {
        llm_draft_model_begin(m);
        n_rows = 0;

        for (k = 0; k < SEATS; k++) {
            got |= (llm_draft_model_guess(m, &a[k].seq, ids, 1, 0.05, 1, 0,
                                          &expected) == 1) << k;
        }

        most = llm_max(most, n_rows);
    }

    is_int(got, (1 << SEATS) - 1, "all sequences catch up");
    ok(most <= 64 + SEATS * 17, "at most %u rows in a step", most);

    llm_draft_model_free(m);
}


/* tokens that only the large model has, in the prompt or drawn */

static void
test_larger_vocabulary(void)
{
    known_t             a;
    uint32_t            got;
    llm_draft_model_t  *m;

    m = create(MAX_PAGES);
    known(&a, 100, 100, 0);
    is_int(guess(m, &a, 8, 1, &got), 8, "tokens that both have");

    a.ids[a.prompt.n++] = N_VOCAB;
    (void) guess(m, &a, 8, 1, &got);
    ok(got == 0 && !strange, "nothing is drafted after one that it lacks");

    a.ids[a.prompt.n++] = 1;
    (void) guess(m, &a, 8, 1, &got);
    ok(got == 0 && !strange, "nor later");

    llm_draft_model_leave(m, &a.seq);
    known(&a, 100, 50, 2);
    is_int(guess(m, &a, 8, 1, &got), 8, "another text has drafts");

    llm_draft_model_free(m);
}


int
main(void)
{
    test_guesses(SEATS * CTX / LLM_KV_PAGE);
    test_limits();
    test_catching_up();
    test_larger_vocabulary();

    window = 40;
    test_guesses(SEATS * CTX / LLM_KV_PAGE);
    test_guesses(SEATS * 10);

    return done_testing();
}
