/*
 * Encoders of sound like Whisper's, which take spectrograms: two convolutions,
 * a table of positions, and layers whose rows see those of their entry, or of
 * their window.  Then several rows become one: side by side (Voxtral), or
 * their average (Qwen2-Audio, Qwen2.5-Omni).  Qwen3's has three convolutions,
 * which are in tower_slices.c, and leaves the rows as they are.
 *
 * The convolutions, three frames wide, are products with rows of three frames
 * side by side, which the host gathers; the second one takes every second
 * frame.  Neither sees beyond a window.
 */

#include "engine/media/rule.h"
#include "engine/model/tower_internal.h"


/* ---- files ---- */

int
llm_tower_convolutions(llm_tower_load_t *l)
{
    llm_tower_t  *t = l->t;

    if (t->kind->sliced) {
        return llm_tower_slice_read(l);
    }

    t->n_convs = 1;
    t->channels[0] = t->width;
    t->conv_cols = 3 * t->info.n_mels;

    return llm_tower_linear(l, &t->conv[0], t->conv_cols, &t->width,
                            "a.conv1d.1") == LLM_OK
           ? llm_tower_linear(l, &t->embed, 3 * t->width, &t->width,
                              "a.conv1d.2")
           : LLM_ERROR;
}


static int
llm_tower_voxtral_read(llm_tower_load_t *l)
{
    uint32_t             n, out;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[0];

    out = t->info.n_embd;

    if (llm_tower_table(l, &n) != LLM_OK
        || llm_tower_linear(l, &m->linear[0], t->cell, &t->mid, "mm.a.mlp.1")
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &m->linear[1], t->mid, &out, "mm.a.mlp.2");
}


/* the norm is of averages */

static int
llm_tower_qwen2a_read(llm_tower_load_t *l)
{
    uint32_t             i, n, out;
    llm_tower_t         *t = l->t;
    llm_tower_merger_t  *m = &t->mergers[0];

    out = t->info.n_embd;

    for (i = 0; t->window && i < t->info.n_layers; i++) {
        t->layers[i].windowed = 1;
    }

    if (llm_tower_table(l, &n) != LLM_OK
        || llm_tower_norm(l, &m->norm, t->cell, 1, "a.post_ln") != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &m->linear[0], t->cell, &out, "mm.a.fc");
}


/* ---- sizes ---- */

uint32_t
llm_tower_rows_of(const llm_tower_t *t, uint32_t frames)
{
    return t->kind->usm ? llm_sound_quartered(frames)
           : t->kind->sliced ? llm_sound_sliced(frames)
                             : llm_sound_halved(frames);
}


uint32_t
llm_tower_heard(const llm_tower_t *t, uint32_t own)
{
    return t->kind->sound ? llm_tower_rows_of(t, own) / t->group : 0;
}


int
llm_tower_listen(const llm_tower_t *t, const llm_tower_entry_t *e,
    llm_tower_shape_t *s, llm_err_t *err)
{
    if (e->samples == NULL || e->w != t->info.n_mels || e->own == 0
        || e->own > e->h || e->h > t->info.max_frames
        || llm_tower_heard(t, e->own) == 0)
    {
        return llm_fail(err, "%s: a spectrogram of %u bands and %u frames, %u "
                        "of them with rows: the tower takes one of %u bands "
                        "and %u to %u frames", llm_gguf_name(t->gguf), e->w,
                        e->h, e->own, t->info.n_mels, 2 * t->group - 1,
                        t->info.max_frames);
    }

    s->patch_rows = llm_tower_rows_of(t, e->own);
    s->patch_cols = 1;
    s->rows = llm_tower_heard(t, e->own);
    s->cols = 1;
    s->n_rows = s->rows;

    return LLM_OK;
}


void
llm_tower_spans(const llm_tower_t *t, uint32_t n, uint32_t *rows,
    uint32_t *windows)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        rows[i] = i;

        if (t->window) {
            windows[2 * i] = i - i % t->window;
            windows[2 * i + 1] = llm_min(windows[2 * i] + t->window, n);
        }
    }
}


void
llm_tower_grouped(const llm_tower_t *t, uint32_t n, const float *rows,
    float *cells)
{
    float     sum;
    uint32_t  i, k, c;

    if (t->kind->stacks) {
        memcpy(cells, rows, (size_t) n * t->cell * sizeof(float));
        return;
    }

    for (i = 0; i < n; i++, rows += t->group * t->width) {
        for (c = 0; c < t->width; c++) {
            for (k = 0, sum = 0; k < t->group; k++) {
                sum += rows[k * t->width + c];
            }

            *cells++ = sum / (float) t->group;
        }
    }
}


/* ---- convolutions ---- */

uint32_t
llm_tower_convolved(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k)
{
    return t->kind->sliced ? llm_tower_slice_most(t, e, slice, k) : e->h;
}


/* frames before `frame` and after it, within its window of the entry */

static void
llm_tower_around(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t frame, uint32_t *first, uint32_t *end)
{
    uint32_t  window = 2 * t->window;

    *first = window ? frame - frame % window : 0;
    *end = window ? llm_min(*first + window, e->h) : e->h;
}


void
llm_tower_mel(const llm_tower_t *t, const llm_tower_entry_t *e, uint32_t i,
    float *row)
{
    uint32_t  c, k, at, first, end;

    llm_tower_around(t, e, i, &first, &end);

    for (c = 0; c < t->info.n_mels; c++) {
        for (k = 0; k < 3; k++) {
            at = i + k;                 /* number + 1 */
            *row++ = at > first && at <= end
                     ? e->samples[(size_t) c * e->h + at - 1] : 0;
        }
    }
}


void
llm_tower_frame(const llm_tower_t *t, const llm_tower_entry_t *e,
    const float *frames, uint32_t i, float *row)
{
    uint32_t  c, k, at, first, end;

    llm_tower_around(t, e, 2 * i, &first, &end);

    for (c = 0; c < t->width; c++) {
        for (k = 0; k < 3; k++) {
            at = 2 * i + k;             /* number + 1 */
            *row++ = at > first && at <= end
                     ? frames[(size_t) (at - 1) * t->width + c] : 0;
        }
    }

    i = t->window ? i % t->window : i;
    memcpy(row, t->table + (size_t) i * t->width, t->width * sizeof(float));
}


/* ---- projectors ---- */

static void
llm_tower_voxtral_project(const llm_tower_t *t)
{
    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_CELL_H]);
    llm_tower_two(t, &t->mergers[0], 0);
}


static void
llm_tower_qwen2a_project(const llm_tower_t *t)
{
    llm_act_t                 *const *a = t->act_of;
    const llm_tower_merger_t  *m = &t->mergers[0];

    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, a[LLM_TA_CELL]);
    llm_tower_normalize(t, &m->norm, t->eps, a[LLM_TA_CELL], a[LLM_TA_CELL_H],
                        0);
    llm_tower_apply(t, &m->linear[0], a[LLM_TA_CELL_H], a[LLM_TA_PART], 0);
}


const llm_tower_kind_t  llm_tower_voxtral = {
    .projector = "voxtral",
    .sound = 1,
    .group = 4,
    .stacks = 1,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .post_norm = 1,
    .read = llm_tower_voxtral_read,
    .project = llm_tower_voxtral_project
};

const llm_tower_kind_t  llm_tower_qwen2a = {
    .projector = "qwen2a",
    .sound = 1,
    .group = 2,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .read = llm_tower_qwen2a_read,
    .project = llm_tower_qwen2a_project
};

const llm_tower_kind_t  llm_tower_qwen3a = {
    .projector = "qwen3a",
    .sound = 1,
    .group = 1,
    .sliced = 1,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .post_norm = 1,
    .read = llm_tower_voxtral_read,
    .project = llm_tower_voxtral_project
};

const llm_tower_kind_t  llm_tower_qwen25o = {
    .projector = "qwen2.5o",
    .sound = 1,
    .group = 2,
    .window = LLM_SOUND_OMNI,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .read = llm_tower_qwen2a_read,
    .project = llm_tower_qwen2a_project
};
