/*
 * The head that drafts from the model's states: what it guesses is what it says
 * of the states and tokens of the sequence, whatever its seat had before:
 * prompts in parts, drafts that were right or wrong, rows that are computed
 * again, the next turn of a conversation, a beginning without states.
 *
 * A state is a hash of the tokens up to its position; what the head says is a
 * hash of the states and tokens of its rows.
 */

#include "engine/sched/draft_head.h"

#include "t/unit/tap.h"

#include <math.h>

#define N_VOCAB  300
#define SEATS    3
#define CTX      600

#include "t/unit/known.h"

typedef struct {
    float     state;
    int32_t   id;
} made_t;

static made_t     seats[SEATS][CTX];
static float      row[N_VOCAB];
static float      own;                  /* the head's state after its last
                                           row */
static uint32_t   n_made, n_steps, head_ctx;
static int        broken, bad;          /* a row is beyond what the seat has */
static uint32_t   last;
static const uint32_t  *saw_pages;

/* the step of the model that ended last */
static int32_t    step_ids[CTX];        /* tokens up to its last row */
static uint32_t   step_pos;             /* position of its first row */


static uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9fb21c651e98df25ull;

    return h ^ h >> 29;
}


/* the model's state at this position */

static float
state_at(const int32_t *ids, uint32_t pos)
{
    uint32_t  i;
    uint64_t  h;

    for (h = 0, i = 0; i <= pos; i++) {
        h = mix(h, (uint32_t) ids[i]);
    }

    return (float) (h >> 44);
}


static void
states(void *data, uint32_t r, uint32_t n, float *to)
{
    uint32_t  i;

    (void) data;

    for (i = 0; i < n; i++) {
        to[i] = state_at(step_ids, step_pos + r + i);
    }
}


/* what n rows say: a token, and the head's own state */

static int32_t
says(const made_t *made, uint32_t n, float *state)
{
    uint32_t  i;
    uint64_t  h;

    for (h = 1, i = last ? n - 1 : 0; i < n; i++) {
        h = mix(mix(h, (uint64_t) made[i].state), (uint32_t) made[i].id);
    }

    *state = (float) (h >> 44);

    return (int32_t) ((h >> 20) % 256);
}


static int
make(const llm_head_at_t *at, const int32_t *ids, const float *s, uint32_t n,
    llm_err_t *err)
{
    uint32_t  i, pos;

    pos = last ? 0 : at->pos;
    n_steps++;
    n_made += n;
    bad |= at->seat >= SEATS || pos + n > head_ctx;
    saw_pages = at->pages[0];

    if (broken || bad) {
        return llm_fail(err, "broken");
    }

    for (i = 0; i < n; i++) {
        seats[at->seat][pos + i] = (made_t) { s[i], ids[i] };
    }

    memset(row, 0, sizeof(row));
    row[says(seats[at->seat], pos + n, &own)] = 30;

    return LLM_OK;
}


static int
rows(void *data, const llm_head_at_t *at, const int32_t *ids, const float *s,
    uint32_t n, llm_err_t *err)
{
    (void) data;

    return make(at, ids, s, n, err);
}


static int
next(void *data, const llm_head_at_t *at, int32_t id, llm_err_t *err)
{
    float  s;

    (void) data;
    s = own;

    return make(at, &id, &s, 1, err);
}


static const float *
logits(void *data)
{
    (void) data;

    return row;
}


/* the head's tokens are numbered from the end */

static int32_t
token(void *data, uint32_t i)
{
    (void) data;

    return N_VOCAB - 1 - (int32_t) i;
}


static llm_draft_head_t *
create(uint32_t ctx, uint32_t is_last)
{
    llm_err_t           err;
    llm_draft_head_t   *h;
    llm_head_runner_t   run = {
        .n_vocab = N_VOCAB, .n_tokens = N_VOCAB, .width = 1, .ctx = ctx,
        .batch = 64, .seats = SEATS, .last = is_last != 0, .states = states,
        .rows = rows, .next = next, .logits = logits, .token = token
    };

    n_made = 0;
    n_steps = 0;
    broken = 0;
    bad = 0;
    head_ctx = ctx;
    last = is_last;
    memset(seats, 0xff, sizeof(seats));
    h = llm_draft_head_create(&run, CTX, &err);

    if (h == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    return h;
}


/* a step of the model: n rows from `pos` on, the last of which are drafted */

static void
step(llm_draft_head_t *h, known_t *k, uint32_t pos, uint32_t n,
    const int32_t *drafted, uint32_t n_drafted)
{
    llm_draft_rows_t  r;

    memcpy(step_ids, k->ids, (pos + n) * sizeof(int32_t));

    if (n_drafted) {
        memcpy(step_ids + pos + n - n_drafted, drafted,
               n_drafted * sizeof(int32_t));
    }

    step_pos = pos;
    r = (llm_draft_rows_t) { pos, n, 0, step_ids + pos };
    llm_draft_head_take(h, &k->seq, &r);
}


/* how many of n guesses are right, if the seat has states from `base` on */

static uint32_t
guess(llm_draft_head_t *h, const known_t *k, uint32_t base, int32_t *drafts,
    uint32_t n)
{
    float           s;
    double          expected;
    made_t          made[CTX];
    int32_t         want;
    uint32_t        i, m, got, right;
    const uint32_t  *pages[LLM_KV_KINDS] = { (const uint32_t *) &bad };

    got = llm_draft_head_guess(h, &k->seq, pages, 5, drafts, n, 0.05, 1, 0,
                               &expected);

    for (i = base, m = 0; i + 1 < k->prompt.n; i++, m++) {
        made[m] = (made_t) { state_at(k->ids, i), k->ids[i + 1] };
    }

    for (i = 0, right = 0; i < got && m; i++) {
        want = token(NULL, (uint32_t) says(made, m, &s));
        right += drafts[i] == want;
        made[m++] = (made_t) { s, want };
    }

    return right;
}


/* a prompt, in steps of these sizes, the last of which leaves its last token */

static void
prompt(llm_draft_head_t *h, known_t *k, uint32_t from, uint32_t part)
{
    uint32_t  n, to;

    for (to = k->prompt.n; from < to; from += n) {
        n = llm_min(part, to - from);
        step(h, k, from, n, NULL, 0);
    }
}


/* an answer: each step has the rows of the last token and of drafts, the first
   `right` of which the model draws, and a token after them */

static uint32_t
answer(llm_draft_head_t *h, known_t *k, uint32_t base, uint32_t steps,
    int redo)
{
    int32_t   drafts[16];
    uint32_t  i, n, right, good, pos;

    /* the token that the last row of the prompt gave */

    k->ids[k->prompt.n++] = 9;

    for (i = 0, good = 0; i < steps; i++) {
        good += guess(h, k, base, drafts, 6) == 6;
        pos = k->prompt.n - 1;
        right = i % 4 == 3 ? 6 : i % 4;
        step(h, k, pos, 1 + 6, drafts, 6);

        memcpy(k->ids + pos + 1, drafts, right * sizeof(int32_t));
        k->ids[pos + 1 + right] = (int32_t) (i * 31 % 97);
        k->prompt.n = pos + 2 + right;

        /* recurrent layers: known tokens are computed again, without drafts,
           and give one token more */

        if (redo && right < 6) {
            n = k->prompt.n - pos;
            step(h, k, pos, n, NULL, 0);
            k->ids[k->prompt.n++] = (int32_t) (i * 17 % 89);
        }
    }

    return good;
}


static void
test_sequences(void)
{
    known_t            a, b;
    int32_t            drafts[16];
    uint32_t           i, redo;
    llm_draft_head_t  *h;

    static const uint32_t  parts[] = { 1, 7, 64, 512 };

    for (i = 0; i < llm_nelems(parts); i++) {
        for (redo = 0; redo < 2; redo++) {
            h = create(CTX, 0);
            known(&a, 150, 0, (int32_t) i);
            prompt(h, &a, 0, parts[i]);
            is_int(answer(h, &a, 0, 40, (int) redo), 40, "a prompt by %u%s",
                   parts[i], redo ? ", and rows that are computed again" : "");
            llm_draft_head_free(h);
        }
    }

    /* a conversation: the tree has what the first request computed */

    h = create(CTX, 0);
    known(&a, 150, 0, 3);
    prompt(h, &a, 0, 64);
    (void) answer(h, &a, 0, 3, 0);
    llm_draft_head_leave(h, &a.seq);

    b = a;
    b.seq.prompt = &b.prompt;
    b.prompt.ids = b.ids;
    b.prompt.n = a.prompt.n + 30;
    n_made = 0;
    prompt(h, &b, 144, 64);
    is_int(answer(h, &b, 0, 8, 0), 8, "the next turn goes on");
    ok(n_made < 150, "%u rows were computed", n_made);

    /* the beginning was another's */

    known(&a, 200, 0, 5);
    prompt(h, &a, 160, 64);
    is_int(answer(h, &a, 160, 8, 0), 8, "no states of the beginning");

    /* both at once, and a third one that finds no more seats */

    is_int(guess(h, &b, 0, drafts, 4), 4, "the other one's seat is as it was");
    llm_draft_head_free(h);

    /* more rows than the head has */

    h = create(200, 0);
    known(&a, 500, 0, 1);
    prompt(h, &a, 0, 512);
    ok(!bad, "no row is beyond the head's context");
    a.ids[a.prompt.n++] = 9;
    ok(llm_draft_head_guess(h, &a.seq, (const uint32_t *const[2]) { NULL },
                            0, drafts, 6, 0.05, 1, 0, (double[1]) { 0 }) == 6,
       "a head with fewer rows drafts");
    llm_draft_head_free(h);
}


static void
test_limits(void)
{
    known_t            a;
    int32_t            drafts[16];
    llm_draft_head_t  *h;

    h = create(CTX, 0);
    known(&a, 40, 0, 1);
    is_int(guess(h, &a, 0, drafts, 4), 0, "no states, no drafts");
    prompt(h, &a, 0, 16);
    a.ids[a.prompt.n++] = 9;
    a.ids[a.prompt.n++] = 9;
    is_int(guess(h, &a, 0, drafts, 4), 0, "nor without the last one");

    /* a drafted row whose token turns out to be drawn later, as its mask was
       not ready: its state is kept */

    known(&a, 40, 0, 1);
    a.req.failure = NULL;
    llm_draft_head_leave(h, &a.seq);
    prompt(h, &a, 0, 16);
    a.ids[a.prompt.n++] = 9;
    drafts[0] = 5;
    step(h, &a, a.prompt.n - 1, 2, drafts, 1);
    a.ids[a.prompt.n++] = 5;
    a.ids[a.prompt.n++] = 6;
    is_int(guess(h, &a, 0, drafts, 4), 4, "of a token that was drawn later");

    a.ids[a.prompt.n++] = N_VOCAB;
    step(h, &a, a.prompt.n - 2, 1, NULL, 0);
    is_int(guess(h, &a, 0, drafts, 4), 0, "a token that the head lacks");

    known(&a, 40, 0, 2);
    llm_draft_head_leave(h, &a.seq);
    prompt(h, &a, 0, 16);
    a.ids[a.prompt.n++] = 9;
    broken = 1;
    is_int(guess(h, &a, 0, drafts, 4), 0, "the device fails");
    broken = 0;
    step(h, &a, a.prompt.n - 1, 1, NULL, 0);
    a.ids[a.prompt.n++] = 9;
    is_int(guess(h, &a, 0, drafts, 4), 0, "nothing is drafted any more");
    llm_draft_head_free(h);
}


/* a head that keeps nothing: the last state and the model's pages */

static void
test_last(void)
{
    float              s;
    made_t             made;
    known_t            a;
    double             expected;
    int32_t            drafts[16];
    uint32_t           i, good, right, pos;
    uint32_t           table[4] = { 0 };
    const uint32_t    *pages[LLM_KV_KINDS] = { table };
    llm_draft_head_t  *h;

    h = create(CTX, 1);
    known(&a, 100, 0, 1);
    prompt(h, &a, 0, 64);
    is_int(n_made, 0, "prompts cost nothing");
    a.ids[a.prompt.n++] = 9;

    for (i = 0, good = 0; i < 30; i++) {
        saw_pages = NULL;
        pos = a.prompt.n - 1;
        right = llm_draft_head_guess(h, &a.seq, pages, 4, drafts, 4, 0.05, 1,
                                     0, &expected);
        made = (made_t) { state_at(a.ids, pos - 1), a.ids[pos] };
        good += right == 4 && saw_pages == table
                && drafts[0] == token(NULL, (uint32_t) says(&made, 1, &s));

        step(h, &a, pos, 1 + 4, drafts, 4);
        right = i % 5;
        memcpy(a.ids + pos + 1, drafts, right * sizeof(int32_t));
        a.ids[pos + 1 + right] = (int32_t) (i * 31 % 97);
        a.prompt.n = pos + 2 + right;
    }

    is_int(good, 30, "drafts from the last state, with the model's pages");
    llm_draft_head_free(h);
}


int
main(void)
{
    test_sequences();
    test_limits();
    test_last();

    return done_testing();
}
