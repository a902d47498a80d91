/*
 * Prompts with media in the scheduler: rows are computed once their media is
 * encoded, and all of a span in one step; what was encoded is found in the
 * prefix cache; one piece of the encoder runs between two steps; small media
 * are encoded together, and never more rows are there than were counted; and
 * requests that end, fail or lose their pages while it works.
 */

#include "t/unit/sched_rig.h"

#define PIECES    3                     /* of the encoder, for each media */
#define N_MEDIA   4

static llm_media_t  *encoding;          /* the first; NULL: none */
static uint32_t      n_pieces;          /* of `encoding` so far */
static uint32_t      n_jobs;
static uint32_t      n_encoded;
static uint32_t      n_uncounted;       /* prompts with more rows than were
                                           counted */
static size_t        ahead;             /* of llm_media_most() */
static uint64_t      poison;            /* digest of what cannot be encoded; 0:
                                           none */
static uint32_t      n_stopped;
static uint32_t      in_a_row;          /* pieces since the last step, and the
                                           most of them */
static uint32_t      most_in_a_row;
static int           breaks;            /* the encoder fails */
static uint32_t      n_wrong;           /* rows whose positions, or what they
                                           see, are not as they should be */
static llm_runner_t  runner;


/* a row of media is a number that no token has */

static int32_t
row_of(uint64_t digest, uint32_t i)
{
    return (int32_t) (1000 + digest * 100 + i);
}


static void
give(llm_media_t *m)
{
    uint32_t  i;

    m->row_bytes = m->n * 2 * sizeof(float);
    m->rows = malloc(m->row_bytes);

    for (i = 0; i < m->n; i++) {
        m->rows[2 * i] = (float) row_of(m->digest, i);
        m->rows[2 * i + 1] = (float) i;
    }

    n_encoded++;
}


/* are there no more rows of a prompt than were counted? */

static void
check_held(void)
{
    uint32_t                 i;
    const llm_prompt_ids_t  *p;

    for (i = 0; i < MAX_REQS; i++) {
        if (asks[i].req && asks[i].req->run.n_seqs) {
            p = &asks[i].req->prep.prompts[0];
            n_uncounted += llm_media_held(sched, p) > p->media_bytes;
        }
    }
}


static int
encode(void *encoder, llm_media_t *const *m, uint32_t n, llm_err_t *err)
{
    uint32_t  i, bad;
    uint64_t  now;

    (void) encoder;
    (void) err;

    if (encoding == NULL) {
        n_pieces = 0;
        n_jobs++;
    }

    /* it takes time, however fast the machine is */

    for (now = llm_now_us(); llm_now_us() == now; /* void */ ) { /* void */ }

    check_held();
    encoding = m[0];
    in_a_row++;
    most_in_a_row = llm_max(most_in_a_row, in_a_row);

    for (i = 0, bad = 0; i < n; i++) {
        assert(m[i]->rgb && m[i]->rows == NULL);
        bad |= m[i]->digest == poison;
    }

    if (breaks || bad) {
        encoding = NULL;
        (void) llm_fail(err, "the encoder is on fire");
        return breaks ? LLM_ERROR : LLM_ABSENT;
    }

    if (++n_pieces < PIECES) {
        return LLM_MORE;
    }

    for (i = 0; i < n; i++) {
        give(m[i]);
    }

    encoding = NULL;

    return LLM_OK;
}


static void
encode_stop(void *encoder)
{
    (void) encoder;
    encoding = NULL;
    n_stopped++;
}


/* the rows of media: 3 lines of so many cells */

static llm_media_t
make_media(uint32_t first, uint32_t n, uint64_t digest)
{
    llm_media_t  m;

    memset(&m, 0, sizeof(m));
    m.first = first;
    m.n = n;
    m.lines = 3;
    m.cols = n / 3;
    m.digest = digest;
    m.w = 1;
    m.h = 1;
    m.rgb = calloc(1, 3);

    return m;
}


/* a prompt of n ids, with media in it */

static ask_t *
ask_media(uint32_t slot, uint32_t n_ids, uint32_t seed, const llm_media_t *m,
    uint32_t n_media, uint32_t n, uint32_t max_gen)
{
    ask_t             *a;
    int32_t            ids[1024];
    uint32_t           i, k;
    llm_prompt_ids_t  *p;

    for (i = 0; i < n_ids; i++) {
        ids[i] = (int32_t) ((i * 7 + (i >= 60 ? seed : 0)) % 250);
    }

    for (k = 0; k < n_media; k++) {
        memset(ids + m[k].first, 0, m[k].n * sizeof(*ids));
    }

    a = ask(slot, ids, n_ids, n, max_gen, 0);
    p = &a->req->prep.prompts[0];
    p->media = calloc(n_media, sizeof(llm_media_t));
    p->n_media = n_media;
    memcpy(p->media, m, n_media * sizeof(llm_media_t));
    p->media_bytes = llm_media_most(p, n, &runner, ahead);

    for (k = 0; k < n_media; k++) {
        for (i = 0; i < m[k].n; i++) {
            a->prompt[m[k].first + i] = row_of(m[k].digest, i);
        }
    }

    return a;
}


/* the only media of the tests with turns: rows 20 to 49, 3 lines of 10 cells */

static void
check_turns(const llm_batch_t *b)
{
    uint32_t         i, k, pos, want[LLM_TURNS];
    const uint32_t  *got;

    in_a_row = 0;

    for (i = 0; i < b->n_tokens; i++) {
        pos = b->pos[i];

        for (k = 0; k < LLM_TURNS; k++) {
            want[k] = pos < 20 ? pos : pos < 50 ? 20 : pos - 20;
        }

        if (pos >= 20 && pos < 50) {
            want[1] += (pos - 20) / 10;
            want[2] += (pos - 20) % 10;
        }

        got = b->turns ? b->turns + LLM_TURNS * i : NULL;

        for (k = 0; k < LLM_TURNS; k++) {
            n_wrong += (got ? got[k] : pos) != want[k];
        }

        n_wrong += (pos >= 20 && pos < 50)
                   != (b->given && b->given[i] != LLM_NOT_GIVEN);
    }
}


/* rows 20 to 49 are of a sound: they turn as text does */

static void
check_sound(const llm_batch_t *b)
{
    uint32_t  i, k;

    in_a_row = 0;

    for (i = 0; i < b->n_tokens; i++) {
        for (k = 0; b->turns && k < LLM_TURNS; k++) {
            n_wrong += b->turns[LLM_TURNS * i + k] != b->pos[i];
        }
    }
}


/* rows 20 to 49 see each other, and are in one step */

static void
check_spans(const llm_batch_t *b)
{
    uint32_t  i, n, pos;

    in_a_row = 0;

    for (i = 0, n = 0; i < b->n_tokens; i++) {
        pos = b->pos[i];
        n += pos >= 20 && pos < 50;

        if (b->sees) {
            n_wrong += b->sees[2 * i] != 0
                       || b->sees[2 * i + 1]
                          != (pos >= 20 && pos < 50 ? 50 : pos + 1);
        }

        n_wrong += pos >= 20 && pos < 50 && b->sees == NULL;
    }

    n_wrong += n % 30 != 0;
}


static void
count_steps(const llm_batch_t *b)
{
    (void) b;
    in_a_row = 0;
}


static void
begin(int turns, int spans, void (*look)(const llm_batch_t *b),
    uint32_t n_pages, uint32_t chunk)
{
    memset(&runner, 0, sizeof(runner));
    runner.n_given = 2;
    runner.turns = turns;
    runner.spans = spans;
    runner.encode = encode;
    runner.encode_stop = encode_stop;
    media = &runner;
    look_at = look;
    n_jobs = 0;
    n_encoded = 0;
    n_uncounted = 0;
    ahead = 0;
    poison = 0;
    n_stopped = 0;
    n_wrong = 0;
    most_in_a_row = 0;
    breaks = 0;
    runner.encoded_bytes = 1 << 16;
    open_all(n_pages, llm_min(512u, n_pages * LLM_KV_PAGE), 4, chunk, 1 << 17);
}


static void
end(void)
{
    close_all();
    media = NULL;
    look_at = NULL;
}


static void
test_one(int turns, int spans, void (*look)(const llm_batch_t *b),
    const char *what)
{
    uint32_t     i;
    llm_media_t  m;

    begin(turns, spans, look, 128, 32);

    for (i = 0; i < 3; i++) {
        m = make_media(20, 30, i == 2 ? 8 : 7);

        if (look == check_sound) {
            m.heard = 1;
            m.lines = m.n;
            m.cols = 1;
        }

        (void) ask_media(i, 90, i, &m, 1, 1, 12);
        add(&asks[i]);
        ok(run() == LLM_OK && asks[i].over && is_right(&asks[i], 0, 12),
           "%s, request %u: the answer", what, i);
    }

    is_int(n_encoded, 2, "%s: each image was encoded once", what);
    is_int(asks[1].cached, spans ? 16 : 48, "%s: found with what is before "
           "it", what);
    ok(asks[2].cached <= 20, "%s: another image is not it: %u", what,
       asks[2].cached);
    is_int(n_wrong, 0, "%s: positions, and what rows see", what);
    end();
}


/* a span in the middle of which a page ends is not continued there */

static void
test_inside(void)
{
    uint32_t     i;
    llm_media_t  m;

    begin(0, 1, check_spans, 128, 32);

    for (i = 0; i < 2; i++) {
        m = make_media(20, 30, 7);
        (void) ask_media(i, 52 + i, 0, &m, 1, 1, 5);
        add(&asks[i]);
        ok(run() == LLM_OK && is_right(&asks[i], 0, 5), "a short prompt, %u",
           i);
    }

    is_int(asks[1].cached, 16, "continued before the span");
    is_int(n_encoded, 1, "whose rows are still there");
    is_int(n_wrong, 0, "and computed in one step");
    end();
}


static void
test_together(void)
{
    uint32_t     i, n;
    llm_media_t  m[N_MEDIA];

    begin(0, 0, count_steps, 128, 32);

    for (i = 0; i < 3; i++) {
        m[0] = make_media(20, 30, 7);
        (void) ask_media(i, 90, i, m, 1, 1, 12);
        add(&asks[i]);
    }

    ok(run() == LLM_OK, "three requests end");

    for (i = 0, n = 0; i < 3; i++) {
        n += is_right(&asks[i], 0, 12);
    }

    is_int(n, 3, "they are right");
    is_int(n_encoded, 1, "their image was encoded once");
    end();

    /* several in a prompt, several choices, next to one another */

    begin(1, 0, count_steps, 128, 32);

    for (i = 0; i < N_MEDIA; i++) {
        m[i] = make_media(10 + 33 * i + (i > 1), 33, i % 3 + 1);
    }

    (void) ask_media(0, 160, 3, m, N_MEDIA, 3, 9);
    add(&asks[0]);
    ok(run() == LLM_OK && is_right(&asks[0], 0, 9) && is_right(&asks[0], 1, 9)
       && is_right(&asks[0], 2, 9), "four images, three choices");
    is_int(n_encoded, 3, "of which two are the same");
    end();

    /* more than may be kept */

    begin(0, 0, count_steps, 128, 32);
    sched->conf.runner.encoded_bytes = 2 * 30 * 2 * sizeof(float);

    for (i = 0; i < 4; i++) {
        m[0] = make_media(20, 30, i % 3 + 1);
        (void) ask_media(i, 90, i, m, 1, 1, 2);
        add(&asks[i]);
        (void) run();
        ok(is_right(&asks[i], 0, 2), "image %u of three, two are kept", i);
    }

    is_int(n_encoded, 4, "the oldest is encoded again");
    end();
}


/* a stream goes on, step by step, between the pieces */

static void
test_beside(void)
{
    uint32_t     i, before;
    int32_t      ids[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    llm_media_t  m;

    begin(0, 0, count_steps, 128, 32);
    (void) ask(0, ids, 8, 1, 60, 0);
    add(&asks[0]);

    for (i = 0; i < 6; i++) {
        (void) step();
        read_events();
    }

    m = make_media(20, 30, 7);
    (void) ask_media(1, 90, 1, &m, 1, 1, 5);
    add(&asks[1]);
    before = asks[0].n_ids[0];

    for (i = 0; n_encoded == 0 && i < 100; i++) {
        (void) step();
        read_events();
    }

    ok(asks[0].n_ids[0] >= before + PIECES - 1, "%u tokens of a stream while "
       "an image is encoded in %d pieces", asks[0].n_ids[0] - before, PIECES);
    is_int(most_in_a_row, 1, "one piece between two steps");
    ok(run() == LLM_OK && is_right(&asks[0], 0, 60)
       && is_right(&asks[1], 0, 5), "both are right");
    end();
}


static void
test_ends(void)
{
    int          rc = LLM_OK;
    uint32_t     i;
    llm_err_t    err;
    llm_media_t  m;

    /* cancelled while its image is encoded */

    begin(0, 0, count_steps, 128, 32);
    m = make_media(20, 30, 7);
    (void) ask_media(0, 90, 1, &m, 1, 1, 5);
    add(&asks[0]);

    for (i = 0; encoding == NULL && i < 100; i++) {
        (void) step();
    }

    (void) llm_fail(&err, "enough");
    llm_sched_fail(sched, asks[0].req, &err, 0);
    llm_sched_assert(sched);
    is_int(n_stopped, 1, "the encoder was told");
    ok(run() == LLM_OK && asks[0].over, "the request ends");

    /* the encoder fails */

    poison = 7;
    m = make_media(20, 30, 7);
    (void) ask_media(1, 90, 1, &m, 1, 1, 5);
    add(&asks[1]);
    ok(run() == LLM_OK && asks[1].over, "a request whose image cannot be "
       "encoded ends");
    is_int(asks[1].status, 500, "with an error");
    poison = 0;

    /* its device does, of which the engine must know */

    breaks = 1;
    m = make_media(20, 30, 7);
    (void) ask_media(4, 90, 1, &m, 1, 1, 5);
    add(&asks[4]);

    for (i = 0; i < 100 && (rc = step()) != LLM_ERROR; i++) { /* void */ }

    is_int(rc, LLM_ERROR, "a failed device is an error of the step, too");
    ok(run() == LLM_OK && asks[4].over && asks[4].status == 500,
       "and of the request");
    breaks = 0;

    m = make_media(20, 30, 7);
    (void) ask_media(2, 90, 1, &m, 1, 1, 5);
    add(&asks[2]);
    ok(run() == LLM_OK && is_right(&asks[2], 0, 5), "the next one is right");

    /* an image at the end */

    m = make_media(20, 30, 9);
    (void) ask_media(3, 50, 1, &m, 1, 1, 5);
    add(&asks[3]);
    ok(run() == LLM_OK && asks[3].over && asks[3].status,
       "a prompt that ends with an image is refused");
    end();

    /* a span that does not fit into a step */

    begin(0, 1, count_steps, 128, 16);
    m = make_media(20, 30, 7);
    (void) ask_media(0, 90, 1, &m, 1, 1, 5);
    add(&asks[0]);
    ok(run() == LLM_OK && asks[0].over && asks[0].status,
       "so is a span longer than a step");
    end();

    /* a model without */

    open_all(128, 512, 4, 32, 1 << 17);
    m = make_media(20, 30, 7);
    (void) ask_media(0, 90, 1, &m, 1, 1, 5);
    add(&asks[0]);
    ok(run() == LLM_OK && asks[0].over && asks[0].status,
       "and an image for a model that takes none");
    close_all();
}


/* few pages: sequences lose them, and their images are encoded again */

static void
test_storm(int spans)
{
    uint32_t     i, n, k, at, n_media;
    llm_media_t  m[N_MEDIA];

    begin(!spans, spans, count_steps, 24, 40);
    sched->conf.runner.encode_pixels = 3;

    for (i = 0; i < 24; i++) {
        ahead = rnd(400);
        n_media = rnd(N_MEDIA);

        for (k = 0, at = 5 + rnd(30); k < n_media; k++) {
            m[k] = make_media(at, 3 + 3 * rnd(9), rnd(5) + 1);
            at += m[k].n + rnd(20);
        }

        (void) ask_media(i, at + 1 + rnd(40), rnd(3), m, n_media,
                         1 + rnd(2), 10 + rnd(20));
        asks[i].req->msg->priority = (int32_t) rnd(3);
        add(&asks[i]);

        for (k = rnd(6); k > 0; k--) {
            (void) step();
            read_events();
        }
    }

    ok(run() == LLM_OK, "all end");

    for (i = 0, n = 0; i < 24; i++) {
        for (k = 0; k < asks[i].n; k++) {
            n += !asks[i].over || asks[i].status
                 || !is_right(&asks[i], k, asks[i].n_ids[k])
                 || asks[i].n_ids[k] < 10;
        }
    }

    is_int(n, 0, "with few pages%s all are right", spans ? " and spans" : "");
    is_int(n_uncounted, 0, "and no more rows were there than were counted");
    end();
}


/* images of a prompt and of several that are encoded together */

static void
test_shared(void)
{
    uint32_t     i, n;
    size_t       row = 2 * sizeof(float);
    llm_err_t    err;
    llm_media_t  m[N_MEDIA];

    begin(0, 0, count_steps, 128, 32);
    sched->conf.runner.encode_pixels = 3;
    ahead = 2 * 33 * row;

    for (i = 0; i < 2; i++) {
        for (n = 0; n < N_MEDIA; n++) {
            m[n] = make_media(8 + 60 * n, 33, 4 * i + n + 1);
        }

        (void) ask_media(i, 250, i, m, N_MEDIA, 1, 5);
        add(&asks[i]);
    }

    is_int(asks[0].req->prep.prompts[0].media_bytes, 2 * 33 * row,
           "two images of a prompt may be there");
    ok(run() == LLM_OK && is_right(&asks[0], 0, 5)
       && is_right(&asks[1], 0, 5), "two prompts with four images each");
    is_int(n_encoded, 8, "all were encoded");
    ok(n_jobs < 6, "in %u jobs of three at most", n_jobs);
    is_int(n_uncounted, 0, "none before it was counted");

    /* one of three that are encoded together leaves */

    n_jobs = n_encoded = 0;

    for (i = 2; i < 5; i++) {
        m[0] = make_media(8, 33, 20 + i);
        (void) ask_media(i, 90, i, m, 1, 1, 5);
        add(&asks[i]);
    }

    while (sched->encodes.n < 3) {
        (void) step();
    }

    (void) llm_fail(&err, "enough");
    llm_sched_fail(sched, asks[2].req, &err, 0);
    llm_sched_assert(sched);
    is_int(n_stopped, 0, "one of three leaves, and the encoder goes on");
    ok(run() == LLM_OK && is_right(&asks[3], 0, 5)
       && is_right(&asks[4], 0, 5), "the others are right");
    is_int(n_encoded, 3, "with what was begun");

    m[0] = make_media(8, 33, 22);
    (void) ask_media(5, 90, 2, m, 1, 1, 5);
    add(&asks[5]);
    ok(run() == LLM_OK && is_right(&asks[5], 0, 5) && n_encoded == 3,
       "whose rows were kept, too");

    /* one of them cannot be encoded */

    poison = 31;

    for (i = 6; i < 9; i++) {
        m[0] = make_media(8, 33, 24 + i);
        (void) ask_media(i, 90, i, m, 1, 1, 5);
        add(&asks[i]);
    }

    ok(run() == LLM_OK && is_right(&asks[6], 0, 5) && asks[7].status == 500
       && is_right(&asks[8], 0, 5), "of three one fails, alone");
    end();
}


/* what is counted of a request before its images are encoded, and after */

static void
test_bytes(void)
{
    size_t            before, all, row = 2 * sizeof(float);
    llm_media_t       m[3];
    llm_forecast_t    with, without;
    llm_prompt_ids_t  p;

    begin(0, 0, count_steps, 128, 32);
    m[0] = make_media(3, 10, 1);
    m[1] = make_media(14, 20, 2);
    m[2] = make_media(64, 25, 3);
    memset(&p, 0, sizeof(p));
    p.media = m;
    p.n_media = 3;
    is_int(llm_media_most(&p, 1, &runner, 0), 30 * row,
           "two images in a page are there together");
    is_int(llm_media_most(&p, 1, &runner, 45 * row), 45 * row,
           "those before their turn as far as is allowed");
    is_int(llm_media_most(&p, 1, &runner, 1 << 20), 55 * row, "or all");
    is_int(llm_media_most(&p, 2, &runner, 0), 55 * row,
           "all for several choices");

    (void) ask_media(0, 100, 0, m, 3, 1, 40);
    asks[0].req->state = LLM_REQ_SCHEDULED;
    before = llm_req_bytes(asks[0].req);
    asks[0].req->prep.prompts[0].media_bytes = 0;
    all = before - llm_req_bytes(asks[0].req);
    is_int(all, 30 * row, "they count before they are encoded");
    asks[0].req->prep.prompts[0].media_bytes = all;

    llm_sched_forecast(sched, asks[0].req, &without);
    sched->speed.pixel_us = 1000;
    llm_sched_forecast(sched, asks[0].req, &with);
    is_int((uint64_t) (with.wait_us - without.wait_us), 3000,
           "the time of the encoder is in the forecast");
    add(&asks[0]);
    llm_sched_forecast(sched, NULL, &with);
    sched->speed.pixel_us = 0;
    llm_sched_forecast(sched, NULL, &without);
    is_int((uint64_t) (with.wait_us - without.wait_us), 3000,
           "and in that of who comes behind it");

    while (asks[0].n_ids[0] == 0) {
        (void) step();
        read_events();
    }

    before = llm_req_bytes(asks[0].req);
    asks[0].req->prep.prompts[0].media_bytes = 0;
    is_int(llm_req_bytes(asks[0].req), before, "not once they are computed");
    ok(run() == LLM_OK && is_right(&asks[0], 0, 40), "the answer");
    ok(sched->speed.pixel_us > 0, "and the time of a pixel is known");
    end();
}


int
main(void)
{
    int        i;
    llm_err_t  err;

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    test_one(0, 0, count_steps, "rows");
    test_one(1, 0, check_turns, "turns");
    test_one(1, 0, check_sound, "turns of a sound");
    test_one(0, 1, check_spans, "spans");
    test_inside();
    test_together();
    test_beside();
    test_shared();
    test_bytes();
    test_ends();

    for (i = 0; i < 6; i++) {
        drawing = i % 3 > 0;
        overlapping = i % 3 > 1;
        test_storm(i / 3);
    }

    tv_close(&tiny);

    return done_testing();
}
