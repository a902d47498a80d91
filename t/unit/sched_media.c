/*
 * Prompts with media in the scheduler: rows are computed once their media is
 * encoded, and all of a span in one step; what was encoded is found in the
 * prefix cache; one piece of the encoder runs between two steps; and requests
 * that end, fail or lose their pages while it works.
 */

#include "t/unit/sched_rig.h"

#define PIECES    3                     /* of the encoder, for each media */
#define N_MEDIA   4

static llm_media_t  *encoding;          /* NULL: none */
static uint32_t      n_pieces;          /* of `encoding` so far */
static uint32_t      n_encoded;
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


static int
encode(void *encoder, llm_media_t *m, llm_err_t *err)
{
    uint32_t  i;

    (void) encoder;

    if (encoding != m) {
        assert(encoding == NULL);
        encoding = m;
        n_pieces = 0;
    }

    in_a_row++;
    most_in_a_row = llm_max(most_in_a_row, in_a_row);

    if (breaks) {
        encoding = NULL;
        return llm_fail(err, "the encoder is on fire");
    }

    if (++n_pieces < PIECES) {
        return LLM_MORE;
    }

    m->row_bytes = m->n * 2 * sizeof(float);
    m->rows = malloc(m->row_bytes);

    for (i = 0; i < m->n; i++) {
        m->rows[2 * i] = (float) row_of(m->digest, i);
        m->rows[2 * i + 1] = (float) i;
    }

    encoding = NULL;
    n_encoded++;

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
    n_encoded = 0;
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

    breaks = 1;
    m = make_media(20, 30, 7);
    (void) ask_media(1, 90, 1, &m, 1, 1, 5);
    add(&asks[1]);
    ok(run() == LLM_OK && asks[1].over, "a request whose image cannot be "
       "encoded ends");
    is_int(asks[1].status, 500, "with an error");
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

    for (i = 0; i < 24; i++) {
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
    test_one(0, 1, check_spans, "spans");
    test_inside();
    test_together();
    test_beside();
    test_ends();

    for (i = 0; i < 6; i++) {
        drawing = i % 3 > 0;
        overlapping = i % 3 > 1;
        test_storm(i / 3);
    }

    tv_close(&tiny);

    return done_testing();
}
