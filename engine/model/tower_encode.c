/*
 * Jobs of towers: the encoder's layers over all patches, then the merger of
 * patches to rows, piece by piece; see tower.h.
 *
 * The rows of all entries are numbered through, each entry being a sequence.
 * If they fit into one step, they stay in LLM_TA_X, and a piece is some layers;
 * else they are on the host between pieces, and a piece is one layer of some of
 * the rows, which also writes the keys and values that the next layer needs.
 *
 * A job owns its arrays; entries and results are the caller's.
 */

#include "engine/model/tower_internal.h"

#include <assert.h>

/* how long a piece should take, in microseconds: as long as a step with rows of
   a prompt; and rows that it has at least */
#define LLM_TOWER_PIECE_US  60000
#define LLM_TOWER_LEAST     16

typedef enum {
    LLM_JOB_EMBED = 0,
    LLM_JOB_LAYER,
    LLM_JOB_FINISH,                     /* the norm after the last layer */
    LLM_JOB_PROJECT,
    LLM_JOB_DONE
} llm_job_phase_t;

struct llm_tower_job_s {
    llm_tower_t        *t;
    llm_tower_entry_t   entries[LLM_TOWER_ENTRIES];
    llm_tower_shape_t   shapes[LLM_TOWER_ENTRIES];
    uint32_t            n;
    float              *out;

    uint32_t            first[LLM_TOWER_ENTRIES + 1];   /* encoder row of each
                                           entry */
    uint32_t            cells[LLM_TOWER_ENTRIES + 1];   /* cell of each entry */
    uint32_t            n_rows;         /* of the encoder */
    uint32_t            n_kept;         /* layers kept so far */
    int                 whole;          /* the rows fit into a step */

    llm_job_phase_t     phase;
    uint32_t            layer;
    uint32_t            row;            /* the piece's first row, or cell */
    uint32_t            end;            /* after its last one */

    uint32_t           *patches;        /* [n_rows] in the entry; of a class row
                                           0 */
    uint32_t           *windows;        /* [n_rows][2]; or NULL */
    uint32_t           *pages;          /* [LLM_TOWER_ENTRIES][max_pages] */
    float              *x;              /* [n_parts][n_rows][width] what the
                                           encoder gave, then kept layers */
    float              *merged;         /* [cells][cell * n_parts] */

    /* of a step */
    uint32_t           *tokens;         /* [batch] 0, as int32_t */
    uint32_t           *pos;
    uint32_t           *given;          /* 0, 1 ... */
    uint32_t           *turns;          /* [batch][LLM_TURNS] */
    uint32_t           *sees;           /* [batch][2] */
    uint32_t            seq_rows[LLM_TOWER_ENTRIES + 1];
    uint32_t            kv_len[LLM_TOWER_ENTRIES];
    uint32_t           *step_pages;     /* as pages, of the step's entries */
    float              *rows;           /* [batch][given_cols] */
};


/* columns of a patch's row: its values, the embedding of its position */

static uint32_t
llm_job_cols(const llm_tower_t *t)
{
    return 3 * t->info.patch * t->info.patch + t->width;
}


/* rows times layers that the time of a piece allows, as far as it is known */

static uint32_t
llm_job_work(const llm_tower_job_t *job)
{
    double  row_us = job->t->row_us;

    return row_us * UINT32_MAX <= LLM_TOWER_PIECE_US
           ? UINT32_MAX : (uint32_t) (LLM_TOWER_PIECE_US / row_us);
}


/* chooses the rows of the next piece */

static void
llm_job_choose(llm_tower_job_t *job)
{
    uint32_t  n, most;

    most = job->phase == LLM_JOB_PROJECT ? job->cells[job->n] : job->n_rows;
    n = job->t->batch;

    if (job->phase == LLM_JOB_LAYER && !job->whole) {
        n = llm_min(n, llm_max(llm_job_work(job),
                               (uint32_t) LLM_TOWER_LEAST));
    }

    job->end = llm_min(job->row + n, most);
}


/* learns from the time of a piece */

static void
llm_job_learn(llm_tower_job_t *job, uint32_t layers, uint64_t us)
{
    double  row_us;

    if (job->phase == LLM_JOB_LAYER) {
        row_us = (double) us / ((job->end - job->row) * layers);
        job->t->row_us = job->t->row_us > 0
                         ? (job->t->row_us + row_us) / 2 : row_us;
    }
}


/* ---- what a step is given ---- */

/* the row of a patch, or of the class, for the encoder */

static void
llm_job_patch(const llm_tower_job_t *job, uint32_t entry, uint32_t i,
    float *row)
{
    uint32_t                  n, at, y, x;
    const llm_tower_t        *t = job->t;
    const llm_tower_shape_t  *s = &job->shapes[entry];

    n = 3 * t->info.patch * t->info.patch;
    at = i - job->first[entry];

    if (at < t->n_class) {
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
}


/* the batch of the cells of a piece, which do not depend on each other */

static void
llm_job_merged(llm_tower_job_t *job, llm_batch_t *b)
{
    uint32_t            i, cols;
    const llm_tower_t  *t = job->t;

    cols = t->cell * t->n_parts;
    b->n_tokens = job->end - job->row;
    b->n_seqs = 1;
    b->given_cols = cols;
    b->rows = job->merged + (size_t) job->row * cols;

    for (i = 0; i < b->n_tokens; i++) {
        job->pos[i] = i;
    }

    job->seq_rows[0] = 0;
    job->kv_len[0] = b->n_tokens;
    memcpy(job->step_pages, job->pages, t->max_pages * sizeof(uint32_t));
}


static void
llm_job_batch(llm_tower_job_t *job, llm_batch_t *b)
{
    memset(b, 0, sizeof(llm_batch_t));

    if (job->phase == LLM_JOB_PROJECT) {
        llm_job_merged(job, b);

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


/* ---- a piece ---- */

/* layers of a piece, from job->layer on: not beyond one that is kept */

static uint32_t
llm_job_layers(const llm_tower_job_t *job)
{
    uint32_t            i, n, end;
    const llm_tower_t  *t = job->t;

    n = job->whole ? llm_max(llm_job_work(job) / job->n_rows, 1u) : 1;
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
    const llm_tower_t  *t = job->t;

    if (job->phase == LLM_JOB_PROJECT) {
        t->kind->project(t);
        return 0;
    }

    if (job->phase == LLM_JOB_EMBED) {
        llm_tower_embed(t);
        llm_tower_keys(t, 0);
        return 0;
    }

    if (!job->whole) {
        t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_X]);
    }

    if (job->phase == LLM_JOB_FINISH) {
        llm_tower_normalize(t, &t->post, t->eps, t->act_of[LLM_TA_X],
                            t->act_of[LLM_TA_X], 0);
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

    return at + cell + (job->t->break_row ? cell / s->cols : 0);
}


/* copies the piece's parts to the result */

static void
llm_job_give(llm_tower_job_t *job)
{
    uint32_t                  i, k, e, n;
    float                    *to;
    const float              *from;
    const llm_tower_info_t   *info = &job->t->info;

    n = job->end - job->row;

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

    for (e = 0; t->break_row && e < job->n; e++) {
        s = &job->shapes[e];

        for (r = 0; r + 1 < s->rows; r++) {
            at = llm_job_out_row(job, e, (r + 1) * s->cols) - 1;
            memcpy(job->out + (size_t) at * t->info.n_cols, t->break_row,
                   t->info.n_embd * sizeof(float));
        }
    }
}


/* makes the cells of all entries */

static void
llm_job_merge(llm_tower_job_t *job)
{
    size_t              at;
    uint32_t            e, k;
    const float        *parts[LLM_TOWER_PARTS];
    const llm_tower_t  *t = job->t;

    for (e = 0; e < job->n; e++) {
        at = job->first[e] + t->n_class;

        for (k = 0; k < t->n_parts; k++) {
            parts[k] = job->x + ((size_t) k * job->n_rows + at) * t->width;
        }

        llm_tower_cells(t, &job->shapes[e], job->patches + at, parts,
                        job->merged + (size_t) job->cells[e] * t->cell
                                      * t->n_parts);
    }
}


/* takes the results of a piece whose next layer is `layer`; then the next
   piece */

static void
llm_job_next(llm_tower_job_t *job, uint32_t layer)
{
    int                 last;
    uint32_t            end;
    const llm_tower_t  *t = job->t;

    end = job->end;
    last = end == (job->phase == LLM_JOB_PROJECT ? job->cells[job->n]
                                                 : job->n_rows);

    if (job->phase == LLM_JOB_PROJECT) {
        llm_job_give(job);

    } else if (!job->whole || layer == t->info.n_layers) {
        llm_job_save(job, 0);
    }

    if (job->phase == LLM_JOB_LAYER && t->layers[layer - 1].keeps) {
        llm_job_save(job, job->n_kept + 1);
        job->n_kept += last;
    }

    job->row = last ? 0 : end;

    if (!last) {
        return;
    }

    switch (job->phase) {

    case LLM_JOB_EMBED:
        job->phase = LLM_JOB_LAYER;
        break;

    case LLM_JOB_LAYER:
        job->layer = layer;

        if (layer < t->info.n_layers) {
            break;
        }

        job->phase = LLM_JOB_FINISH;

        if (t->post.w) {
            break;
        }

        /* fall through */

    case LLM_JOB_FINISH:
        llm_job_merge(job);
        job->phase = LLM_JOB_PROJECT;
        break;

    default:
        llm_job_breaks(job);
        job->phase = LLM_JOB_DONE;
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

    llm_job_learn(job, layer - job->layer, llm_now_us() - began);
    llm_job_next(job, layer);

    return job->phase == LLM_JOB_DONE ? LLM_OK : LLM_MORE;
}


/* ---- life ---- */

/* numbers rows, cells and pages */

static int
llm_job_layout(llm_tower_job_t *job, llm_err_t *err)
{
    uint32_t                  e, i, n, page;
    const llm_tower_t        *t = job->t;
    const llm_tower_shape_t  *s;

    for (e = 0; e < job->n; e++) {
        s = &job->shapes[e];

        if (llm_tower_shape(t, job->entries[e].w, job->entries[e].h,
                            &job->shapes[e], err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        n = s->patch_rows * s->patch_cols + t->n_class;

        if (n > t->info.max_patches - job->first[e]) {
            return llm_fail(err, "%s: %u entries have more than %u patches "
                            "together", llm_gguf_name(t->gguf), job->n,
                            t->info.max_patches);
        }

        job->first[e + 1] = job->first[e] + n;
        job->cells[e + 1] = job->cells[e] + s->rows * s->cols;
    }

    job->n_rows = job->first[job->n];
    job->whole = job->n_rows <= t->batch;

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
    uint32_t            e, i, at;
    const llm_tower_t  *t = job->t;

    for (e = 0; e < job->n; e++) {
        at = job->first[e];
        llm_tower_order(t, &job->shapes[e], job->patches + at + t->n_class,
                        job->windows ? job->windows + 2 * at : NULL);
    }

    for (i = 0; i < t->batch; i++) {
        job->given[i] = i;
    }
}


static int
llm_job_arrays(llm_tower_job_t *job, llm_err_t *err)
{
    size_t              n, batch;
    const llm_tower_t  *t = job->t;

    n = job->n_rows;
    batch = t->batch;

    job->patches = calloc(n, sizeof(uint32_t));
    job->windows = t->window ? calloc(n, 2 * sizeof(uint32_t)) : NULL;
    job->x = calloc(n * t->n_parts, t->width * sizeof(float));
    job->merged = calloc((size_t) job->cells[job->n] * t->n_parts,
                         t->cell * sizeof(float));
    job->tokens = calloc(batch, sizeof(uint32_t));
    job->pos = calloc(batch, sizeof(uint32_t));
    job->given = calloc(batch, sizeof(uint32_t));
    job->turns = calloc(batch, LLM_TURNS * sizeof(uint32_t));
    job->sees = calloc(batch, 2 * sizeof(uint32_t));
    job->rows = calloc(batch, llm_job_cols(t) * sizeof(float));

    if (job->patches == NULL || (t->window && job->windows == NULL)
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
    if (job == NULL) {
        return;
    }

    free(job->patches);
    free(job->windows);
    free(job->pages);
    free(job->step_pages);
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
