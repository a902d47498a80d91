/*
 * Constrained sequences in the scheduler: what they draw is the best of what
 * their grammar allows, whenever its masks come; who waits for a mask keeps
 * nobody waiting; what is dropped meanwhile is freed.
 *
 * A mask is held up by taking the grammar's lock.
 */

#include "t/unit/sched_rig.h"

#include "engine/grammar/gram.h"

#define N     8
#define GEN   20

static llm_gram_cache_t  *cache;
static uint32_t           n_compiled;


static llm_gram_t *
compile(void *data, const llm_toktree_t *tree, llm_err_t *err)
{
    n_compiled++;

    return llm_gram_regex(data, strlen(data), tree, err);
}


static llm_gram_ref_t *
regex(const char *pattern)
{
    llm_err_t        err;
    llm_gram_ref_t  *ref;

    ref = llm_gram_cache_get(cache, (llm_str_t) { strlen(pattern), pattern },
                             compile, (void *) pattern, &err);
    if (ref == NULL) {
        printf("Bail out! %s: %s\n", pattern, err.msg);
        exit(1);
    }

    return ref;
}


/* the GEN likeliest digits after a prompt */

static void
best_digits(const int32_t *prompt, uint32_t n_prompt, int32_t *digit)
{
    float     row[N_VOCAB];
    int32_t   id;
    uint32_t  i;
    uint64_t  h;

    for (i = 0, h = 0; i < n_prompt; i++) {
        h = hash_token(h, prompt[i], i);
    }

    for (i = 0; i < GEN; i++) {
        fill_row(row, h);

        for (id = digit[i] = '0'; id <= '9'; id++) {
            digit[i] = row[id] > row[digit[i]] ? id : digit[i];
        }

        h = hash_token(h, digit[i], n_prompt + i);
    }
}


/* a request of n choices, with a prompt of its own, and digits to write */

static ask_t *
digits(uint32_t slot, uint32_t n, const char *pattern)
{
    ask_t    *a;
    int32_t   ids[100], best[GEN];
    uint32_t  i, n_ids;

    n_ids = 20 + slot * 9;

    for (i = 0; i < n_ids; i++) {
        ids[i] = (int32_t) ((i * 31 + slot * 7) % 250);
    }

    a = ask(slot, ids, n_ids, n, 2 * GEN, 0);

    if (pattern) {
        a->req->prep.gram = regex(pattern);
    }

    if (pattern && predicting) {
        best_digits(ids, n_ids, best);
        predict(a->req, best, GEN);
    }

    return a;
}


/* GEN digits, each the likeliest one */

static int
is_best(const ask_t *a, uint32_t choice)
{
    int32_t  best[GEN];

    best_digits(a->prompt, a->n_prompt, best);

    return a->n_ids[choice] == GEN
           && memcmp(a->ids[choice], best, sizeof(best)) == 0;
}


static uint32_t
n_best(const ask_t *a)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < a->n; i++) {
        n += is_best(a, i);
    }

    return n;
}


static void
run_until(uint32_t n)
{
    while (n_over < n) {
        step_or_wait(n);
    }
}


/* ---- what they draw ---- */

static void
test_best(uint32_t n_pages, const char *name)
{
    uint32_t  i, n;

    open_all(n_pages, 200, 6, 64, 1 << 18);

    for (i = 0; i < N; i++) {
        add(digits(i, 1 + i % 3, i % 2 ? "[0-9]{20}" : "([0-9]{4}){5}"));
    }

    run_until(N);

    for (i = 0, n = 0; i < N; i++) {
        n += n_best(&asks[i]) == asks[i].n && asks[i].status == 0;
    }

    is_int(n, N, "%s: the likeliest digits, and no more", name);

    close_all();
}


/* the lock is taken and given back at random: a mask is late, a token is
   accepted late, that the text is complete is known late */

static void
test_late(void)
{
    int              locked;
    uint32_t         i, n;
    llm_gram_ref_t  *ref;

    ref = regex("[0-9]{20}");
    open_all(24, 200, 6, 64, 1 << 18);

    for (i = 0; i < N; i++) {
        add(digits(i, 1 + i % 3, "[0-9]{20}"));
    }

    for (locked = 0; n_over < N; /* void */ ) {

        if (rnd(3) == 0) {
            locked ? pthread_mutex_unlock(&llm_gram_of(ref)->lock)
                   : pthread_mutex_lock(&llm_gram_of(ref)->lock);
            locked = !locked;
        }

        step_or_wait(locked ? 0 : N);
    }

    if (locked) {
        pthread_mutex_unlock(&llm_gram_of(ref)->lock);
    }

    for (i = 0, n = 0; i < N; i++) {
        n += n_best(&asks[i]) == asks[i].n && asks[i].status == 0;
    }

    is_int(n, N, "masks that come late change nothing");

    close_all();
    llm_gram_release(ref);
}


/* text that the grammar forces is drafted, and costs no steps of its own */

static void
test_forced(void)
{
    uint32_t  i, n;
    uint64_t  accepted;

    static const char  text[] = "abcdefghijklmnopqrst";

    open_all(MAX_PAGES, 200, 2, 64, 1 << 18);
    add(digits(0, 1, text));
    run_until(1);

    for (i = 0, n = 0; i < GEN; i++) {
        n += asks[0].ids[0][i] == text[i];
    }

    accepted = llm_zone_get(zone->models[0].own.accepted[LLM_DRAFT_GRAMMAR]);

    ok(asks[0].n_ids[0] == GEN && n == GEN, "a text that is forced is right");
    ok(accepted >= GEN / 2, "%llu of its tokens were drafted",
       (unsigned long long) accepted);
    ok(n_steps < GEN - accepted + 2, "%u steps for %u tokens", n_steps, GEN);
    close_all();
}


static void
test_drafts(void)
{
    for (predicting = 80; predicting <= 100; predicting += 20) {
        drawing = 0;
        overlapping = 0;
        test_best(MAX_PAGES, "drafts");
        test_best(20, "drafts, few pages");
        test_late();
        test_forced();

        drawing = 1;
        overlapping = 1;
        test_best(24, "drafts, a device that overlaps");
        test_late();
    }

    predicting = 0;
    drawing = 0;
    overlapping = 0;
}


/* ---- who waits ---- */

static void
test_others(void)
{
    uint32_t         i, n;
    llm_gram_t      *g;
    llm_gram_ref_t  *ref;

    ref = regex("[0-9]{20}");
    g = llm_gram_of(ref);
    open_all(MAX_PAGES, 200, N, 64, 1 << 18);

    pthread_mutex_lock(&g->lock);
    atomic_store(&g->mask_us, 1000000);

    for (i = 0; i < N - 2; i++) {
        add(digits(i, 1, "[0-9]{20}"));
    }

    add(digits(N - 2, 1, NULL));
    add(digits(N - 1, 1, "([0-9]{5}){4}"));

    /* all of the first kind are slow: one thread is left for the others */

    run_until(2);

    ok(asks[N - 2].over && asks[N - 1].over,
       "who has no grammar or another one ends while a mask is made");
    ok(n_best(&asks[N - 1]) == 1, "with the right text");

    while (sched->n_held < N - 2) {
        (void) step();
    }

    ok(step() == 0 && !llm_sched_can_draw(sched),
       "those that wait have their logits and nothing to compute");

    /* one of them leaves while a thread has it or it is in the list */

    llm_sched_remove(sched, asks[0].req);
    llm_req_free(asks[0].req);
    llm_sched_remove(sched, asks[3].req);
    llm_req_free(asks[3].req);
    is_int(sched->n_held, N - 4, "two of them leave meanwhile");

    pthread_mutex_unlock(&g->lock);
    run_until(N - 2);

    for (i = 0, n = 0; i < N - 2; i++) {
        n += i != 0 && i != 3 && n_best(&asks[i]) == 1;
    }

    is_int(n, N - 4, "the others go on with the right text");

    close_all();
    llm_gram_release(ref);
}


/* ---- memory ---- */

static llm_gram_t *
long_text(void *data, const llm_toktree_t *tree, llm_err_t *err)
{
    n_compiled++;

    return llm_gram_choice(data, 1, tree, err);
}


static void
test_memory(void)
{
    char             key;
    size_t           alone, with;
    uint32_t         i, kept;
    llm_err_t        err;
    llm_req_t       *r, *other;
    llm_str_t        text;
    llm_gram_ref_t  *ref;

    text.len = 200000;
    text.data = memset(malloc(text.len), 'a', text.len);
    key = 0;

    r = digits(0, 1, NULL)->req;
    other = digits(1, 1, NULL)->req;
    r->state = other->state = LLM_REQ_SCHEDULED;
    alone = llm_req_bytes(r);

    r->prep.gram = llm_gram_cache_get(cache, (llm_str_t) { 1, &key },
                                      long_text, &text, &err);
    with = llm_req_bytes(r);
    ok(with - alone >= text.len, "a grammar counts in its request's memory");

    other->prep.gram = llm_gram_cache_get(cache, (llm_str_t) { 1, &key },
                                          long_text, &text, &err);
    ok(llm_req_bytes(r) - alone < with - alone
       && llm_req_bytes(r) - alone >= text.len / 2,
       "one that two requests share counts half in each");

    kept = (uint32_t) (LLM_GRAM_CACHE_BYTES / (with - alone));

    llm_req_free(r);
    llm_req_free(other);

    for (i = 1; i <= 10; i++) {
        key = (char) i;
        llm_gram_release(llm_gram_cache_get(cache, (llm_str_t) { 1, &key },
                                            long_text, &text, &err));
    }

    n_compiled = 0;

    for (i = 10; i > 0; i--) {
        key = (char) i;
        ref = llm_gram_cache_get(cache, (llm_str_t) { 1, &key }, long_text,
                                 &text, &err);
        llm_gram_release(ref);
    }

    ok(kept > 0 && kept < 10, "the cache has room for some of ten: %u", kept);
    is_int(n_compiled, 10 - kept, "the others are made again");

    free((void *) text.data);
}


static llm_gram_t *
refuse(void *data, const llm_toktree_t *tree, llm_err_t *err)
{
    (void) tree;

    n_compiled++;
    (void) llm_fail_with(err, *(int *) data, NULL, "field", "refused");

    return NULL;
}


/* what was refused is not compiled again, unless that was our fault */

static void
test_refused(void)
{
    int              status;
    char             key[16];
    uint32_t         i;
    llm_err_t        err;
    llm_str_t        str = { sizeof(key), key };
    llm_gram_ref_t  *ref;

    memset(key, 'r', sizeof(key));
    n_compiled = 0;
    status = 500;

    ok(llm_gram_cache_look(cache, str, &ref, &err) == LLM_ABSENT,
       "nothing is known");

    for (i = 0; i < 3; i++) {
        ok(llm_gram_cache_get(cache, str, refuse, &status, &err) == NULL
           && err.status == 500, "it fails");
    }

    is_int(n_compiled, 3, "what is our fault is tried again");
    status = 400;

    for (i = 0; i < 3; i++) {
        memset(&err, 0, sizeof(err));
        ok(llm_gram_cache_get(cache, str, refuse, &status, &err) == NULL
           && err.status == 400 && strcmp(err.param, "field") == 0,
           "it is refused");
    }

    is_int(n_compiled, 4, "what is the client's is not");
    ok(llm_gram_cache_look(cache, str, &ref, &err) == LLM_ERROR
       && err.status == 400, "which is known without compiling");

    for (i = 0; i < LLM_GRAM_CACHE_ERRORS; i++) {
        key[0] = (char) i;
        (void) llm_gram_cache_get(cache, str, refuse, &status, &err);
    }

    key[0] = 'r';
    ok(llm_gram_cache_look(cache, str, &ref, &err) == LLM_ABSENT,
       "the oldest are forgotten");
}


int
main(void)
{
    llm_err_t  err;

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    (void) sem_init(&masks, 0, 0);
    cache = llm_gram_cache_create(tiny.vocab);

    test_best(MAX_PAGES, "room for all");
    test_best(20, "few pages");

    drawing = 1;
    test_best(24, "a device that draws");

    overlapping = 1;
    test_best(24, "and overlaps");
    test_late();
    drawing = 0;
    overlapping = 0;
    test_late();

    test_drafts();
    test_others();
    test_memory();
    test_refused();

    llm_gram_cache_free(cache);
    tv_close(&tiny);

    return done_testing();
}
