/*
 * The pieces of a tower's jobs: how many rows each has, which bounds what others
 * wait for (tower_encode.c), and that their results do not depend on it.
 */

#include "engine/model/tower_job.h"
#include "t/unit/tower_rig.h"

/* the largest square that the tower takes */

static int
largest(const llm_tower_t *t, llm_tower_entry_t *e, llm_tower_shape_t *s)
{
    llm_err_t  err;

    for (e->w = 400; e->w; e->w--) {
        e->h = e->w;

        if (llm_tower_shape(t, e->w, e->h, s, &err) == LLM_OK) {
            return 1;
        }
    }

    return 0;
}


/* encodes the entry in pieces, as if a row took row_us microseconds, or as long
   as it takes; counts those that have more rows than they may, or whose time is
   not learnt; *pieces: all */

static int
too_large(llm_tower_t *t, const llm_tower_entry_t *e, float *out,
    double row_us, uint32_t *pieces)
{
    int               rc, wrong;
    uint32_t          row, last, rows, conv;
    llm_err_t         err;
    llm_job_phase_t   phase;
    llm_tower_job_t  *job;

    t->row_us = row_us;
    job = llm_tower_begin(t, e, 1, out, &err);

    if (job == NULL) {
        printf("# %s\n", err.msg);
        return -1;
    }

    last = 0;
    wrong = 0;
    *pieces = 0;

    do {
        if (row_us > 0) {
            job->row_us = row_us;
        }

        phase = job->phase;
        conv = job->conv;
        row = job->row;
        rc = llm_tower_step(job, &err);
        rows = job->end - row;
        wrong += !job->whole
                 && (rows > (last ? 2 * last : LLM_TOWER_FIRST)
                     || (row_us > 0 && rows > llm_max(LLM_TOWER_LEAST,
                                                      LLM_TOWER_PIECE_US
                                                      / row_us)));

        if (phase != job->phase || conv != job->conv) {
            rows = 0;

        } else if (last == 0 && row_us == 0) {

            /* what a phase's first piece has taken are whole microseconds */

            wrong += job->row_us > 0 && job->row_us * rows < 0.5;
        }

        last = rows;
        (*pieces)++;
    } while (rc == LLM_MORE);

    llm_tower_end(job);

    return rc == LLM_OK ? wrong : -1;
}


static void
test(const tower_tiny_t *tiny)
{
    float              *first, *again;
    size_t              size;
    uint32_t            many, few;
    llm_err_t           err;
    llm_tower_t        *t;
    llm_tower_entry_t   e = { .rgb = NULL };
    llm_tower_shape_t   s;

    t = load("cpu", NULL, 0, &err);

    if (!ok(t != NULL, "%s: it loads", tiny->name)) {
        printf("# %s\n", err.msg);
        return;
    }

    if (!ok(largest(t, &e, &s), "%s: an image of %u pixels", tiny->name, e.w)) {
        llm_tower_free(t);
        return;
    }

    e.rgb = calloc((size_t) e.w * e.h, 3);
    size = (size_t) s.n_rows * llm_tower_info(t)->n_cols;
    first = calloc(size, sizeof(float));
    again = calloc(size, sizeof(float));

    is_int(too_large(t, &e, first, 0, &few), 0,
           "%s: a piece has twice the rows of the one before at most",
           tiny->name);
    is_int(too_large(t, &e, again, 1e6, &many), 0,
           "%s: and the least where a row takes a second", tiny->name);
    ok(memcmp(first, again, size * sizeof(float)) == 0,
       "%s: which gives the same rows", tiny->name);
    ok(s.patch_rows * s.patch_cols <= LLM_TOWER_FIRST || many > few,
       "%s: in %u pieces for %u", tiny->name, many, few);

    free(first);
    free(again);
    free((void *) e.rgb);
    llm_tower_free(t);
}


/* an image that fits into a step stays there only if a layer of it is known to
   take no longer than a piece */

static void
test_whole(void)
{
    float               out[1];
    size_t              k;
    llm_err_t           err;
    llm_tower_t        *t;
    llm_tower_job_t    *job;
    llm_tower_entry_t   e = { .rgb = (const uint8_t *) "" };
    llm_tower_shape_t   s;

    static const struct {
        double       row_us;
        int          whole;
        const char  *what;
    } known[] = {
        { 0, 0, "whose time is not known" },
        { 1, 1, "of a microsecond each" },
        { 1000, 0, "of a millisecond each" }
    };

    t = load("cpu", NULL, 0, &err);

    for (k = 0; t && largest(t, &e, &s) && k < llm_nelems(known); k++) {
        t->row_us = known[k].row_us;
        job = llm_tower_begin(t, &e, 1, out, &err);
        ok(job && job->n_rows <= t->batch && job->whole == known[k].whole,
           "rows %s stay in a step: %d", known[k].what, known[k].whole);
        llm_tower_end(job);
    }

    ok(t != NULL, "it loads");
    llm_tower_free(t);
}


int
main(void)
{
    size_t  i;

    if (!make_path()) {
        return done_testing();
    }

    for (i = 0; i < llm_nelems(tower_tiny); i++) {
        if (ok(write_tower(&tower_tiny[i], NULL), "%s: a file",
               tower_tiny[i].name))
        {
            test(&tower_tiny[i]);
        }
    }

    if (ok(write_tower(&tower_tiny[0], NULL), "a file")) {
        test_whole();
    }

    unlink(path);

    return done_testing();
}
