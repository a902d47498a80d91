/*
 * Jobs of towers: the encoder's layers over all patches, then the merger of
 * patches to rows, piece by piece; see tower.h.
 *
 * The rows of all entries are numbered through, each entry being a sequence.
 * If they fit into one step, and a layer of them into the time of a piece, they
 * stay in LLM_TA_X, and a piece is some layers; else they are on the host between
 * pieces, and a piece is one layer of some of the rows, which also writes the keys
 * and values that the next layer needs.
 *
 * How many rows, or layers, follows from the time of earlier pieces.  What a row
 * costs depends on the phase and, by attention, on the size of the image, so each
 * phase of a job begins with few rows, and a piece has at most twice the rows of
 * the one before.
 *
 * What a job has, and how its rows are numbered, is in tower_job.c.
 */

#include "engine/model/tower_job.h"


/* rows, or rows times layers, that the time of a piece allows */

static uint32_t
llm_job_work(double row_us)
{
    return row_us * UINT32_MAX <= LLM_TOWER_PIECE_US
           ? UINT32_MAX : (uint32_t) (LLM_TOWER_PIECE_US / row_us);
}


/* do the rows stay where they are from the embedding to the last layer? */

static int
llm_job_stays(const llm_tower_job_t *job)
{
    return job->whole && job->phase != LLM_JOB_CONVOLVE
           && job->phase != LLM_JOB_PROJECT;
}


/* rows of the phase in all its pieces */

static uint32_t
llm_job_most(const llm_tower_job_t *job)
{
    return job->phase == LLM_JOB_PROJECT ? job->cells[job->n]
           : job->phase == LLM_JOB_CONVOLVE
             ? llm_tower_convolved(job->t, &job->entries[0], job->slice,
                                   job->conv)
             : job->n_rows;
}


/* chooses the rows of the next piece */

static void
llm_job_choose(llm_tower_job_t *job)
{
    uint32_t  n;

    n = job->t->batch;

    if (!llm_job_stays(job)) {
        n = llm_min(n, job->last ? 2 * job->last : LLM_TOWER_FIRST);
        n = llm_min(n, llm_max(llm_job_work(job->row_us), LLM_TOWER_LEAST));
    }

    job->end = llm_min(job->row + n, llm_job_most(job));
}


static double
llm_job_mean(double before, double now)
{
    return before > 0 ? (before + now) / 2 : now;
}


/* learns from the time of a piece whose next layer is `layer` */

static void
llm_job_learn(llm_tower_job_t *job, uint32_t layer, uint64_t us)
{
    double        row_us;
    llm_tower_t  *t = job->t;

    job->last = job->end - job->row;
    row_us = (double) us / job->last;

    if (job->phase == LLM_JOB_LAYER) {
        row_us /= layer - job->layer;
    }

    job->row_us = llm_job_mean(job->row_us, row_us);

    if (job->phase == LLM_JOB_LAYER) {
        t->row_us = llm_job_mean(t->row_us, row_us);
    }
}


/* ---- a piece ---- */

/* layers of a piece, from job->layer on: not beyond one that is kept */

static uint32_t
llm_job_layers(const llm_tower_job_t *job)
{
    uint32_t            i, n, end;
    const llm_tower_t  *t = job->t;

    n = job->whole ? llm_max(llm_job_work(t->row_us) / job->n_rows, 1u) : 1;
    n = t->row_us > 0 ? llm_min(n, t->info.n_layers) : 1;
    end = llm_min(job->layer + n, t->info.n_layers);

    for (i = job->layer; i + 1 < end && !t->layers[i].keeps; i++) {
        /* void */
    }

    return i + 1;
}


/* the operations of a piece; returns the first layer that was not run */

static uint32_t
llm_job_run(llm_tower_job_t *job)
{
    uint32_t            i, end;
    llm_act_t          *x;
    const llm_tower_t  *t = job->t;

    if (job->phase == LLM_JOB_PROJECT) {
        if (job->heard) {
            llm_tower_hear(t);

        } else {
            t->kind->project(t);
        }

        return 0;
    }

    if (job->phase == LLM_JOB_CONVOLVE) {
        x = llm_tower_buffer(t, LLM_TA_FRAME, llm_job_conv_cols(job));
        t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, x);
        llm_tower_convolve(t, &t->conv[job->conv], &t->conv_norm[job->conv], x,
                           t->channels[job->conv]);

        return 0;
    }

    if (job->phase == LLM_JOB_EMBED) {
        llm_tower_embed(t);

        if (t->info.n_layers) {
            llm_tower_keys(t, 0);
        }

        return 0;
    }

    if (!job->whole) {
        t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_X]);
    }

    if (job->phase == LLM_JOB_FINISH) {
        llm_tower_normalize(t, &t->post, t->eps, t->act_of[LLM_TA_X],
                            t->act_of[LLM_TA_X], 0);

        if (t->merged.w) {
            llm_tower_normalize(t, &t->merged, t->merge_eps,
                                t->act_of[LLM_TA_X], t->act_of[LLM_TA_X], 0);
        }

        return t->info.n_layers;
    }

    end = llm_job_layers(job);

    for (i = job->layer; i < end; i++) {
        llm_tower_layer(t, i);

        if (i + 1 < t->info.n_layers) {
            llm_tower_keys(t, i + 1);
        }
    }

    return end;
}


/* copies the piece's rows of LLM_TA_X to part `part` of x */

static void
llm_job_save(llm_tower_job_t *job, uint32_t part)
{
    uint32_t            n;
    const float        *x;
    const llm_tower_t  *t = job->t;

    n = job->end - job->row;
    x = t->ops->map(t->exec, t->act_of[LLM_TA_X], 0, n);
    memcpy(job->x + ((size_t) part * job->n_rows + job->row) * t->width, x,
           (size_t) n * t->width * sizeof(float));
}


/* copies what a convolution gave in a piece */

static void
llm_job_save_frames(llm_tower_job_t *job)
{
    float              *to;
    uint32_t            n, cols;
    const llm_tower_t  *t = job->t;

    n = job->end - job->row;
    cols = t->channels[job->conv];
    to = job->frames[job->conv]
         + (t->kind->sliced ? llm_tower_slice_at(t, job->slice, job->conv)
                            : 0);
    memcpy(to + (size_t) job->row * cols,
           t->ops->map(t->exec, t->act_of[LLM_TA_OUT], 0, n),
           (size_t) n * cols * sizeof(float));
}


/* the row of the result that cell i of an entry becomes */

static uint32_t
llm_job_out_row(const llm_tower_job_t *job, uint32_t entry, uint32_t cell)
{
    uint32_t                  k, at;
    const llm_tower_shape_t  *s;

    for (k = 0, at = 0; k < entry; k++) {
        at += job->shapes[k].n_rows;
    }

    s = &job->shapes[entry];

    return at + cell + (job->t->break_row && !job->heard ? cell / s->cols
                                                         : 0);
}


/* copies the piece's parts to the result; a sound has one */

static void
llm_job_give(llm_tower_job_t *job)
{
    float                    *to;
    size_t                    rest;
    uint32_t                  i, k, e, n;
    const float              *from;
    const llm_tower_info_t   *info = &job->t->info;

    n = job->end - job->row;
    rest = (info->n_cols - job->t->n_parts * info->n_embd) * sizeof(float);

    for (k = 0; k < job->t->n_parts; k++) {
        from = job->t->ops->map(job->t->exec, job->t->act_of[LLM_TA_PART + k],
                                0, n);

        for (i = 0, e = 0; i < n; i++) {
            while (job->row + i >= job->cells[e + 1]) {
                e++;
            }

            to = job->out + (size_t) llm_job_out_row(job, e, job->row + i
                                                             - job->cells[e])
                            * info->n_cols;
            memcpy(to + (size_t) k * info->n_embd,
                   from + (size_t) i * info->n_embd,
                   info->n_embd * sizeof(float));
            memset(to + (size_t) job->t->n_parts * info->n_embd, 0, rest);
        }
    }
}


/* the rows after rows of cells */

static void
llm_job_breaks(llm_tower_job_t *job)
{
    uint32_t                  e, r, at;
    const llm_tower_t        *t = job->t;
    const llm_tower_shape_t  *s;

    for (e = 0; t->break_row && !job->heard && e < job->n; e++) {
        s = &job->shapes[e];

        for (r = 0; r + 1 < s->rows; r++) {
            at = llm_job_out_row(job, e, (r + 1) * s->cols) - 1;
            memcpy(job->out + (size_t) at * t->info.n_cols, t->break_row,
                   t->info.n_embd * sizeof(float));
        }
    }
}


/* the next convolution, or the first one of the next slice */

static void
llm_job_convolved(llm_tower_job_t *job)
{
    if (++job->conv < job->t->n_convs) {
        return;
    }

    job->conv = 0;

    if (!job->t->kind->sliced
        || ++job->slice == llm_tower_slices(job->t, &job->entries[0]))
    {
        job->phase = LLM_JOB_EMBED;
    }
}


/* takes the results of a piece whose next layer is `layer` */

static void
llm_job_take(llm_tower_job_t *job, uint32_t layer, int last)
{
    const llm_tower_t  *t = job->t;

    if (job->phase == LLM_JOB_PROJECT) {
        llm_job_give(job);

    } else if (job->phase == LLM_JOB_CONVOLVE) {
        llm_job_save_frames(job);

    } else if (!job->whole || layer == t->info.n_layers) {
        llm_job_save(job, 0);
    }

    if (job->phase == LLM_JOB_LAYER && t->layers[layer - 1].keeps) {
        llm_job_save(job, job->n_kept + 1);
        job->n_kept += last;
    }
}


/* what comes after the last piece of a convolution, of a layer, or of another
   phase */

static void
llm_job_advance(llm_tower_job_t *job, uint32_t layer)
{
    const llm_tower_t  *t = job->t;

    if (job->phase == LLM_JOB_LAYER && layer < t->info.n_layers) {
        job->layer = layer;
        return;
    }

    job->last = 0;
    job->row_us = 0;

    switch (job->phase) {

    case LLM_JOB_CONVOLVE:
        llm_job_convolved(job);
        break;

    case LLM_JOB_EMBED:
        job->phase = LLM_JOB_LAYER;

        if (t->info.n_layers) {
            break;
        }

        /* fall through */

    case LLM_JOB_LAYER:
        job->layer = layer;
        job->phase = LLM_JOB_FINISH;

        if (t->post.w) {
            break;
        }

        /* fall through */

    case LLM_JOB_FINISH:
        job->phase = LLM_JOB_PROJECT;
        break;

    default:
        llm_job_breaks(job);
        job->phase = LLM_JOB_DONE;
    }
}


/* takes the results of a piece; then the next piece */

static void
llm_job_next(llm_tower_job_t *job, uint32_t layer)
{
    int  last;

    last = job->end == llm_job_most(job);
    llm_job_take(job, layer, last);
    job->row = last ? 0 : job->end;

    if (last) {
        llm_job_advance(job, layer);
    }
}


int
llm_tower_step(llm_tower_job_t *job, llm_err_t *err)
{
    uint32_t      layer;
    uint64_t      began;
    llm_batch_t   b;
    llm_tower_t  *t = job->t;

    if (job->phase == LLM_JOB_DONE) {
        return LLM_OK;
    }

    began = llm_now_us();
    llm_job_choose(job);
    llm_job_batch(job, &b);

    if (t->ops->enter) {
        t->ops->enter(t->exec);
    }

    if (t->ops->begin(t->exec, &b, err) != LLM_OK) {
        return LLM_ERROR;
    }

    layer = llm_job_run(job);

    if (t->ops->end(t->exec, err) != LLM_OK
        || llm_gguf_intact(t->gguf, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_job_learn(job, layer, llm_now_us() - began);
    llm_job_next(job, layer);

    return job->phase == LLM_JOB_DONE ? LLM_OK : LLM_MORE;
}
