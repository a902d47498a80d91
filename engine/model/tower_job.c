/*
 * What a job of a tower has: the sizes of its entries, the numbers of their
 * rows and pages, and its arrays, which it owns; see tower.h and tower_job.h.
 * Entries and results are the caller's.
 */

#include "engine/model/tower_job.h"

#include <assert.h>


/* a sound, whose frames are cells */

static int
llm_job_sound(llm_tower_job_t *job, llm_err_t *err)
{
    const llm_tower_t        *t = job->t;
    const llm_tower_entry_t  *e = &job->entries[0];

    if (t->sound.w == NULL || e->w != t->info.frame || job->n != 1
        || e->h == 0)
    {
        return llm_fail(err, "%s: a sound in frames of %u samples: the tower "
                        "takes one with frames of %u", llm_gguf_name(t->gguf),
                        e->w, t->info.frame);
    }

    job->heard = 1;
    job->phase = LLM_JOB_PROJECT;
    job->shapes[0].rows = e->h;
    job->shapes[0].cols = 1;
    job->shapes[0].n_rows = e->h;
    job->cells[1] = e->h;

    return LLM_OK;
}


/* the sizes of an entry; a spectrogram is the only one */

static int
llm_job_shape(llm_tower_job_t *job, uint32_t e, llm_err_t *err)
{
    const llm_tower_t        *t = job->t;
    const llm_tower_entry_t  *entry = &job->entries[e];

    if (!t->kind->sound) {
        return llm_tower_shape(t, entry->w, entry->h, &job->shapes[e], err);
    }

    if (job->n > 1) {
        return llm_fail(err, "%s: %u sounds: a job has one",
                        llm_gguf_name(t->gguf), job->n);
    }

    return llm_tower_listen(t, entry, &job->shapes[e], err);
}


/* numbers rows, cells and pages */

static int
llm_job_layout(llm_tower_job_t *job, llm_err_t *err)
{
    uint32_t                  e, i, n, page;
    const llm_tower_t        *t = job->t;
    const llm_tower_shape_t  *s;

    job->phase = t->kind->sound ? LLM_JOB_CONVOLVE : LLM_JOB_EMBED;

    if (job->entries[0].samples && !t->kind->sound) {
        return llm_job_sound(job, err);
    }

    for (e = 0; e < job->n; e++) {
        s = &job->shapes[e];

        if (llm_job_shape(job, e, err) != LLM_OK) {
            return LLM_ERROR;
        }

        n = s->patch_rows * s->patch_cols + t->kind->n_class;

        if (n > t->info.max_patches - job->first[e]) {
            return llm_fail(err, "%s: %u entries have more than %u patches "
                            "together", llm_gguf_name(t->gguf), job->n,
                            t->info.max_patches);
        }

        job->first[e + 1] = job->first[e] + n;
        job->cells[e + 1] = job->cells[e] + s->rows * s->cols;
    }

    job->n_rows = job->first[job->n];
    job->whole = job->n_rows <= t->batch
                 && (job->n_rows <= LLM_TOWER_FIRST
                     || (t->row_us > 0
                         && job->n_rows * t->row_us <= LLM_TOWER_PIECE_US));

    for (e = 0, page = 0; e < job->n; e++) {
        n = (job->first[e + 1] - job->first[e] + LLM_KV_PAGE - 1)
            / LLM_KV_PAGE;

        for (i = 0; i < n; i++) {
            job->pages[e * t->max_pages + i] = page++;
        }
    }

    assert(page <= t->n_pages);

    return LLM_OK;
}


static void
llm_job_order(llm_tower_job_t *job)
{
    uint32_t            e, i, at, n_class;
    const llm_tower_t  *t = job->t;

    n_class = t->kind->n_class;

    if (t->kind->sound) {
        llm_tower_spans(t, job->n_rows, job->patches, job->windows);
    }

    for (e = 0; e < job->n && !job->heard && !t->kind->sound; e++) {
        at = job->first[e];
        llm_tower_order(t, &job->shapes[e], job->patches + at + n_class,
                        job->windows ? job->windows + 2 * at : NULL);

        for (i = n_class; i < job->first[e + 1] - at; i++) {
            job->row_of[at + job->patches[at + i]] = i;
        }
    }

    for (i = 0; i < t->batch; i++) {
        job->given[i] = i;
    }
}


/* what the convolutions give */

static int
llm_job_frames(llm_tower_job_t *job)
{
    size_t                    n;
    uint32_t                  k;
    const llm_tower_t        *t = job->t;
    const llm_tower_entry_t  *e = &job->entries[0];

    for (k = 0; k < t->n_convs; k++) {
        n = t->kind->sliced ? llm_tower_slice_room(t, e, k)
                            : (size_t) t->channels[k] * e->h;
        job->frames[k] = calloc(n, sizeof(float));

        if (job->frames[k] == NULL) {
            return 0;
        }
    }

    return 1;
}


static int
llm_job_arrays(llm_tower_job_t *job, llm_err_t *err)
{
    size_t              n, batch;
    const llm_tower_t  *t = job->t;

    n = llm_max(job->n_rows, 1u);
    batch = t->batch;

    job->patches = calloc(n, sizeof(uint32_t));
    job->windows = t->window ? calloc(n, 2 * sizeof(uint32_t)) : NULL;
    job->x = calloc(n * t->n_parts, t->width * sizeof(float));
    job->row_of = t->kind->sound ? NULL : calloc(n, sizeof(uint32_t));
    job->merged = calloc(batch, llm_job_cell_cols(job) * sizeof(float));
    job->tokens = calloc(batch, sizeof(uint32_t));
    job->pos = calloc(batch, sizeof(uint32_t));
    job->given = calloc(batch, sizeof(uint32_t));
    job->turns = calloc(batch, LLM_TURNS * sizeof(uint32_t));
    job->sees = calloc(batch, 2 * sizeof(uint32_t));
    job->rows = calloc(batch, llm_job_cols(t) * sizeof(float));

    if (job->patches == NULL || (t->window && job->windows == NULL)
        || !llm_job_frames(job)
        || (!t->kind->sound && job->row_of == NULL)
        || job->x == NULL || job->merged == NULL || job->tokens == NULL
        || job->pos == NULL || job->given == NULL || job->turns == NULL
        || job->sees == NULL || job->rows == NULL)
    {
        return llm_fail(err, "%s: no memory for %zu patches",
                        llm_gguf_name(t->gguf), n);
    }

    return LLM_OK;
}


llm_tower_job_t *
llm_tower_begin(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    float *out, llm_err_t *err)
{
    size_t            size;
    llm_tower_job_t  *job;

    if (n == 0 || n > LLM_TOWER_ENTRIES) {
        (void) llm_fail(err, "%s: %u entries: a job has 1 to %d",
                        llm_gguf_name(t->gguf), n, LLM_TOWER_ENTRIES);
        return NULL;
    }

    job = calloc(1, sizeof(llm_tower_job_t));

    if (job == NULL) {
        (void) llm_fail(err, "%s: no memory for a job",
                        llm_gguf_name(t->gguf));
        return NULL;
    }

    job->t = t;
    job->n = n;
    job->out = out;
    memcpy(job->entries, e, n * sizeof(llm_tower_entry_t));

    size = (size_t) n * t->max_pages;
    job->pages = calloc(size, sizeof(uint32_t));
    job->step_pages = calloc(size, sizeof(uint32_t));

    if (job->pages == NULL || job->step_pages == NULL) {
        (void) llm_fail(err, "%s: no memory for a job",
                        llm_gguf_name(t->gguf));
        llm_tower_end(job);
        return NULL;
    }

    if (llm_job_layout(job, err) != LLM_OK
        || llm_job_arrays(job, err) != LLM_OK)
    {
        llm_tower_end(job);
        return NULL;
    }

    llm_job_order(job);

    return job;
}


void
llm_tower_end(llm_tower_job_t *job)
{
    uint32_t  k;

    if (job == NULL) {
        return;
    }

    free(job->patches);
    free(job->row_of);
    free(job->windows);
    free(job->pages);
    free(job->step_pages);

    for (k = 0; k < LLM_TOWER_CONVS; k++) {
        free(job->frames[k]);
    }

    free(job->x);
    free(job->merged);
    free(job->tokens);
    free(job->pos);
    free(job->given);
    free(job->turns);
    free(job->sees);
    free(job->rows);
    free(job);
}
