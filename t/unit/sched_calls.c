/*
 * Calls that are constrained from where they begin, in the scheduler: the
 * model is a hash, whose text has a mark in it now and then.  Tokens drawn on
 * the host, on the device, a step ahead of what is known, with few pages and
 * with slow readers: all must be the same, and what follows the mark must be
 * what the grammar allows.
 */

#include "t/unit/sched_rig.h"

#define N        24
#define CHOICES  2
#define GEN      180

static const char  grammar[] =
    "root ::= \"2\" call (\";T\" call){0,2}\n"
    "call ::= [fg] \"({\\\"a\\\": [\" [0-9]{1,4} (\",\" [0-9]{1,4}){0,2} "
    "\"]})\"\n";

static llm_tool_t    tool[] = { { { 1, "f" }, NULL, 0, 0 },
                                { { 1, "g" }, NULL, 1, 0 } };
static llm_tools_t   tools = { 2, tool };
static llm_format_t  format = {
    .n_forms = 1,
    .forms = { { .kind = LLM_FORM_NAMED, .begin = { 1, "T" },
                 .name_end = { 1, "(" }, .end = { 1, ")" },
                 .between = { 1, ";" } } }
};

static llm_gram_cache_t  *grams;
static int                began[N];     /* in this run, a call has */

/* of the run on the host */
static int32_t    alone[N][CHOICES][GEN];
static uint32_t   n_alone[N][CHOICES];


static llm_gram_t *
compile(void *data, const llm_toktree_t *tree, llm_err_t *err)
{
    (void) data;

    return llm_gram_gbnf(grammar, strlen(grammar), tree, err);
}


static ask_t *
caller(uint32_t slot)
{
    ask_t              *a;
    int32_t             ids[40];
    uint32_t            i;
    llm_err_t           err;
    llm_answer_opts_t   reads = { &format, &tools, LLM_ANSWER_TOOLS, -1,
                                  format.forms };

    for (i = 0; i < 40; i++) {
        ids[i] = (int32_t) ((i * 31 + slot * 7) % 250);
    }

    a = ask(slot, ids, 40, CHOICES, GEN, LLM_REQ_IGNORE_EOS);
    a->req->prep.call_gram = llm_gram_cache_get(grams, llm_str("calls"),
                                                compile, NULL, &err);

    if (a->req->prep.call_gram == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    for (i = 0; i < CHOICES; i++) {
        llm_emit_read(&a->req->run.seqs[i].emit, &reads);
    }

    if (predicting) {
        predict(a->req, alone[slot][0], n_alone[slot][0]);
    }

    return a;
}


/* sequences that have masks and no call, or the other way round */

static uint32_t
misplaced(void)
{
    uint32_t    i, k, n;
    llm_seq_t  *q;

    n = 0;

    for (i = 0; i < N; i++) {
        for (k = 0; asks[i].req && k < CHOICES; k++) {
            q = &asks[i].req->run.seqs[k];
            began[i] |= q->begun.len != 0;
            n += q->state == LLM_SEQ_RUNNING
                 && (q->masked != NULL) != (q->begun.len != 0);
        }
    }

    return n;
}


/* returns how many choices are as they were on the host */

static uint32_t
play(const char *name, uint32_t n_pages, uint32_t seats, int pauses)
{
    uint32_t  i, k, n, wrong, steps;

    open_all(n_pages, 300, seats, 64, 1 << 18);
    wrong = 0;
    memset(began, 0, sizeof(began));

    for (i = 0; i < N; i++) {
        add(caller(i));
    }

    for (steps = 0; n_over < N && steps < 100000; steps++) {

        for (i = 0; i < N; i++) {
            if (asks[i].req) {
                asks[i].req->out.paused = pauses && steps / 7 % 4 == i % 4;
            }
        }

        step_or_wait(N);
        wrong += misplaced();
    }

    is_int(n_over, N, "%s: all end", name);
    is_int(wrong, 0, "%s: constrained is who has begun a call", name);

    for (i = 0, n = 0; i < N; i++) {
        wrong += asks[i].status != 0;

        for (k = 0; k < CHOICES; k++) {
            n += asks[i].n_ids[k] == n_alone[i][k]
                 && memcmp(alone[i][k], asks[i].ids[k],
                           n_alone[i][k] * sizeof(int32_t)) == 0;
        }
    }

    is_int(wrong, 0, "%s: none fails", name);

    return n;
}


/* does it go on like the grammar?  whole: and has it come to an end? */

static int
fits(const int32_t *ids, uint32_t n, int whole)
{
    char            text[GEN + 1];
    uint32_t        i;
    llm_err_t       err;
    llm_matcher_t  *m;
    llm_gram_ref_t *ref;

    text[0] = '2';
    ref = llm_gram_cache_get(grams, llm_str("calls"), compile, NULL, &err);
    m = llm_matcher_create(llm_gram_of(ref), &err);

    for (i = 0; i < n; i++) {
        text[i + 1] = (char) ids[i];
    }

    i = llm_matcher_push(m, (llm_str_t) { n + 1, text }, &err) == LLM_OK
        && (!whole || llm_matcher_may_end(m));

    llm_matcher_free(m);
    llm_gram_release(ref);

    return (int) i;
}


/* the first mark of each text, and what follows it */

static void
check_host(void)
{
    uint32_t  i, k, at, n, calls, fit, whole;

    calls = 0;
    fit = 0;
    whole = 0;

    for (i = 0; i < N; i++) {
        for (k = 0; k < CHOICES; k++) {
            n = asks[i].n_ids[k];
            memcpy(alone[i][k], asks[i].ids[k], n * sizeof(int32_t));
            n_alone[i][k] = n;

            for (at = 0; at < n && alone[i][k][at] != 'T'; at++) { /* void */ }

            if (at < n) {
                calls++;
                fit += fits(alone[i][k] + at + 1, n - at - 1, n < GEN);
                whole += n < GEN;
            }
        }
    }

    ok(calls >= 4, "%u choices begin a call", calls);
    is_int(fit, calls, "and go on as the grammar says");
    ok(whole > 0, "%u of them have come to its end", whole);
}


/* the same with drafts, which pass the place where a call begins */

static void
test_drafts(void)
{
    uint64_t  accepted;

    for (predicting = 80; predicting <= 100; predicting += 10) {
        printf("# predictions right in %u %%\n", predicting);
        drawing = 0;
        overlapping = 0;
        is_int(play("drafts", MAX_PAGES, N * CHOICES, 0), N * CHOICES,
               "drafts: the same");
        accepted = llm_zone_get(zone->models[0].own
                                    .accepted[LLM_DRAFT_PREDICTION]);
        ok(accepted > 0, "%llu tokens were drafted and drawn",
           (unsigned long long) accepted);
        close_all();

        is_int(play("drafts, few pages", 40, N * CHOICES, 1), N * CHOICES,
               "few pages, slow readers: the same");
        close_all();

        drawing = 1;
        is_int(play("drafts, device", MAX_PAGES, 4, 0), N * CHOICES,
               "drawn on the device: the same");
        close_all();

        overlapping = 1;
        is_int(play("drafts, ahead", MAX_PAGES, 4, 0), N * CHOICES,
               "a step ahead: the same");
        close_all();

        recurrent = 10;
        is_int(play("drafts, recurrent", MAX_PAGES, 3, 0), N * CHOICES,
               "recurrent layers: the same");
        close_all();
        recurrent = 0;
    }
}


int
main(void)
{
    uint32_t   i, n;
    llm_err_t  err;

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK
        || (grams = llm_gram_cache_create(tiny.vocab)) == NULL)
    {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    drawing = 0;
    (void) play("host", MAX_PAGES, N * CHOICES, 0);
    check_host();
    close_all();

    drawing = 1;
    is_int(play("device", MAX_PAGES, N * CHOICES, 0), N * CHOICES,
           "drawn on the device: the same");
    close_all();

    overlapping = 1;
    is_int(play("ahead", MAX_PAGES, N * CHOICES, 0), N * CHOICES,
           "a step ahead: the same");
    close_all();

    /* one at a time: nobody else's draws keep it from being ahead */

    is_int(play("alone", MAX_PAGES, 1, 0), N * CHOICES, "one seat: the same");

    for (i = 0, n = 0; i < N; i++) {
        n += (uint32_t) began[i];
    }

    ok(n > 0 && n_behind > 100, "%u requests begin a call, %u steps ahead", n,
       n_behind);
    close_all();

    is_int(play("few pages", 40, N * CHOICES, 0), N * CHOICES,
           "few pages: the same");
    ok(llm_zone_get(zone->models[0].own.preemptions) > 0,
       "some were preempted");
    close_all();

    is_int(play("few seats", 100, 5, 1), N * CHOICES,
           "few seats and slow readers: the same");
    close_all();

    /* what a step ahead has drawn for nothing must not be in the state */

    recurrent = 10;
    is_int(play("recurrent", MAX_PAGES, 1, 0), N * CHOICES,
           "recurrent layers: the same");
    close_all();

    is_int(play("recurrent, few pages", 40, N * CHOICES, 0), N * CHOICES,
           "on few pages: the same");
    close_all();
    recurrent = 0;

    test_drafts();

    llm_gram_cache_free(grams);
    tv_close(&tiny);

    return done_testing();
}
