/*
 * The batches of a tower's steps: what the rows of a piece are given, where
 * they are in their entries, and what they see; see tower_job.h.
 */

#include "engine/model/tower_job.h"


uint32_t
llm_job_cols(const llm_tower_t *t)
{
    return llm_max(t->n_values + t->width, t->conv_cols);
}


uint32_t
llm_job_cell_cols(const llm_tower_job_t *job)
{
    return job->heard ? job->t->info.frame : job->t->cell * job->t->n_parts;
}


/* the row of a patch, or of the class, for the encoder */

static void
llm_job_patch(const llm_tower_job_t *job, uint32_t entry, uint32_t i,
    float *row)
{
    uint32_t                  n, at, y, x;
    const llm_tower_t        *t = job->t;
    const llm_tower_shape_t  *s = &job->shapes[entry];

    n = t->n_values;
    at = i - job->first[entry];

    if (t->kind->sliced) {
        llm_tower_slice_row(t, job->frames[t->n_convs - 1], at, row);
        return;
    }

    if (t->kind->sound) {
        llm_tower_frame(t, &job->entries[entry], job->frames[0], at, row);
        return;
    }

    if (at < t->kind->n_class) {
        memset(row, 0, n * sizeof(float));
        memcpy(row + n, t->class_row + (size_t) at * t->width,
               t->width * sizeof(float));
        return;
    }

    y = job->patches[i] / s->patch_cols;
    x = job->patches[i] % s->patch_cols;
    llm_tower_pixels(t, &job->entries[entry], y, x, row);

    if (t->kind->position) {
        t->kind->position(t, s, y, x, row + n);
    }
}


/* position and window of the step's row r, which is row i of the encoder */

static void
llm_job_place(llm_tower_job_t *job, uint32_t entry, uint32_t i, uint32_t r)
{
    uint32_t                  y, x;
    const llm_tower_t        *t = job->t;
    const llm_tower_shape_t  *s = &job->shapes[entry];

    y = job->patches[i] / s->patch_cols;
    x = job->patches[i] % s->patch_cols;

    job->pos[r] = i - job->first[entry];
    job->turns[LLM_TURNS * r] = t->kind->x_first ? x : y;
    job->turns[LLM_TURNS * r + 1] = t->kind->x_first ? y : x;
    job->turns[LLM_TURNS * r + 2] = 0;

    if (job->windows) {
        job->sees[2 * r] = job->windows[2 * i];
        job->sees[2 * r + 1] = job->windows[2 * i + 1];
    }
}


/* the batch of the encoder's rows of a piece */

static void
llm_job_rows(llm_tower_job_t *job, llm_batch_t *b)
{
    uint32_t            i, e, end;
    size_t              size;
    const llm_tower_t  *t = job->t;

    end = job->end;
    size = t->max_pages * sizeof(uint32_t);
    b->n_tokens = end - job->row;
    b->n_seqs = 0;

    for (e = 0; e < job->n; e++) {
        if (job->first[e + 1] <= job->row || job->first[e] >= end) {
            continue;
        }

        i = llm_max(job->first[e], job->row);
        job->seq_rows[b->n_seqs] = i - job->row;
        job->kv_len[b->n_seqs] = job->first[e + 1] - job->first[e];
        memcpy(job->step_pages + b->n_seqs * t->max_pages,
               job->pages + e * t->max_pages, size);
        b->n_seqs++;

        for ( /* void */ ; i < llm_min(job->first[e + 1], end); i++) {
            llm_job_place(job, e, i, i - job->row);

            if (job->phase == LLM_JOB_EMBED) {
                llm_job_patch(job, e, i, job->rows
                                         + (size_t) (i - job->row)
                                           * llm_job_cols(t));
            }
        }
    }

    b->given_cols = job->phase == LLM_JOB_EMBED ? llm_job_cols(t) : t->width;
    b->rows = job->phase == LLM_JOB_EMBED
              ? job->rows : job->x + (size_t) job->row * t->width;
    b->turns = t->rope.n_dims ? job->turns : NULL;
    b->sees = job->windows ? job->sees : NULL;
    b->slots = t->state ? job->slots : NULL;
}


/* rows of a piece that do not depend on each other */

static void
llm_job_apart(llm_tower_job_t *job, llm_batch_t *b)
{
    uint32_t  i;

    b->n_tokens = job->end - job->row;
    b->n_seqs = 1;

    for (i = 0; i < b->n_tokens; i++) {
        job->pos[i] = i;
    }

    job->seq_rows[0] = 0;
    job->kv_len[0] = b->n_tokens;
    memcpy(job->step_pages, job->pages, job->t->max_pages * sizeof(uint32_t));
}


uint32_t
llm_job_conv_cols(const llm_tower_job_t *job)
{
    return job->t->kind->sliced && job->conv == 0 ? LLM_TOWER_AROUND
                                                  : job->t->conv_cols;
}


/* the batch of a convolution's rows of a piece */

static void
llm_job_spectrogram(llm_tower_job_t *job, llm_batch_t *b)
{
    float              *row;
    uint32_t            i, cols;
    const llm_tower_t  *t = job->t;

    cols = llm_job_conv_cols(job);
    llm_job_apart(job, b);
    b->given_cols = cols;
    b->rows = job->rows;

    for (i = 0; i < b->n_tokens; i++) {
        row = job->rows + (size_t) i * cols;

        if (t->kind->sliced) {
            llm_tower_slice_gather(t, &job->entries[0], job->slice, job->conv,
                                   job->conv ? job->frames[job->conv - 1]
                                             : NULL, job->row + i, row);

        } else {
            llm_tower_mel(t, &job->entries[0], job->row + i, row);
        }
    }
}


/* the piece's cells of images */

static void
llm_job_cells(llm_tower_job_t *job)
{
    float              *to;
    size_t              first;
    uint32_t            c, e, k;
    const llm_tower_t  *t = job->t;

    to = job->merged;

    for (c = job->row, e = 0; c < job->end; c++) {
        while (c >= job->cells[e + 1]) {
            e++;
        }

        for (k = 0; k < t->n_parts; k++, to += t->cell) {
            first = (size_t) k * job->n_rows + job->first[e];
            llm_tower_cell(t, &job->shapes[e], c - job->cells[e],
                           job->row_of + job->first[e],
                           job->x + first * t->width, to);
        }
    }
}


/* the batch of the cells of a piece */

static void
llm_job_merged(llm_tower_job_t *job, llm_batch_t *b)
{
    const llm_tower_t  *t = job->t;

    llm_job_apart(job, b);
    b->given_cols = llm_job_cell_cols(job);
    b->rows = job->merged;

    if (job->heard) {
        llm_tower_frames(t, &job->entries[0], job->row, b->n_tokens,
                         job->merged);

    } else if (t->kind->sound) {
        llm_tower_grouped(t, b->n_tokens,
                          job->x + (size_t) job->row * t->group * t->width,
                          job->merged);

    } else {
        llm_job_cells(job);
    }
}


void
llm_job_batch(llm_tower_job_t *job, llm_batch_t *b)
{
    memset(b, 0, sizeof(llm_batch_t));

    if (job->phase == LLM_JOB_PROJECT) {
        llm_job_merged(job, b);

    } else if (job->phase == LLM_JOB_CONVOLVE) {
        llm_job_spectrogram(job, b);

    } else {
        llm_job_rows(job, b);
    }

    job->seq_rows[b->n_seqs] = b->n_tokens;
    b->gives = LLM_GIVES_HIDDEN;
    b->max_pages = job->t->max_pages;
    b->tokens = (const int32_t *) job->tokens;
    b->pos = job->pos;
    b->seq_rows = job->seq_rows;
    b->kv_len = job->kv_len;
    b->pages[LLM_KV_FULL] = job->step_pages;
    b->given = job->given;
    b->n_given = b->n_tokens;
}
