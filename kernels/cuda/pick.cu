/*
 * Data of draws: what a step copies to the GPU for drawing from its logits, and
 * what is copied back: drawn tokens, requested probabilities, and the rows of
 * logits that the host reads.
 *
 * Invariant: addresses are fixed when the logits are created, so draws can be
 * part of a captured step; every array has room for the most that a step may
 * need, so a row's result does not depend on its neighbours.
 */

#include "kernels/cuda/internal.h"


/* on failure all is freed again; pointers that are not set yet are NULL */

int
llm_cuda_pick_room(llm_cuda_t *d, uint32_t max_rows, uint32_t n,
    llm_err_t *err)
{
    int                failed;
    size_t             rows, seqs, logits;
    uint32_t           i;
    llm_cuda_host_t   *host;
    llm_cuda_draws_t  *w = &d->draws;

    failed = 0;
    rows = max_rows;
    seqs = d->opts.max_seqs;
    logits = rows * n * sizeof(float);

    w->n_parts = llm_cuda_draw_parts(n);
    w->mask_words = (n + 31) / 32;

#define LLM_ROOM(field, count)                                               \
    llm_cuda_alloc((void **) &w->field, (count) * sizeof(*w->field),         \
                   "draws", err)
#define LLM_PINNED(field, count)                                             \
    cudaMallocHost(&host->field, (count) * sizeof(*host->field))

    for (i = 0; i < 2; i++) {
        host = &d->hosts[i];
        host->wants = (uint8_t *) calloc(rows, 1);

        failed |= host->wants == NULL
                  || LLM_PINNED(edits, seqs * LLM_DRAW_EDITS) != cudaSuccess
                  || LLM_PINNED(masks, seqs * w->mask_words) != cudaSuccess
                  || LLM_PINNED(drawn, rows) != cudaSuccess
                  || LLM_PINNED(top, rows * LLM_DRAW_TOP) != cudaSuccess;
    }

    if (LLM_ROOM(edits, seqs * LLM_DRAW_EDITS) != LLM_OK
        || LLM_ROOM(before, seqs * LLM_DRAW_EDITS) != LLM_OK
        || LLM_ROOM(masks, seqs * w->mask_words) != LLM_OK
        || LLM_ROOM(parts, rows * w->n_parts) != LLM_OK
        || LLM_ROOM(drawn, rows) != LLM_OK
        || LLM_ROOM(top, rows * LLM_DRAW_TOP) != LLM_OK)
    {
        llm_cuda_pick_free(d);
        return LLM_ERROR;
    }

    if (failed || cudaMallocHost(&d->host_logits, logits) != cudaSuccess) {
        (void) cudaGetLastError();
        llm_cuda_pick_free(d);
        return llm_fail(err, "CUDA: %zu bytes of pinned memory for logits: "
                        "out of memory", logits);
    }

#undef LLM_ROOM
#undef LLM_PINNED

    return LLM_OK;
}


void
llm_cuda_pick_free(llm_cuda_t *d)
{
    uint32_t           i;
    llm_cuda_host_t   *host;
    llm_cuda_draws_t  *w = &d->draws;

    llm_cuda_free(d, w->edits);
    llm_cuda_free(d, w->before);
    llm_cuda_free(d, w->masks);
    llm_cuda_free(d, w->parts);
    llm_cuda_free(d, w->drawn);
    llm_cuda_free(d, w->top);
    memset(w, 0, sizeof(*w));

    for (i = 0; i < 2; i++) {
        host = &d->hosts[i];
        free(host->wants);

        if (llm_cuda_alive(d->gpu)) {
            (void) cudaFreeHost(host->edits);
            (void) cudaFreeHost(host->masks);
            (void) cudaFreeHost(host->drawn);
            (void) cudaFreeHost(host->top);
        }

        host->wants = NULL;
        host->edits = NULL;
        host->masks = NULL;
        host->drawn = NULL;
        host->top = NULL;
    }

    if (llm_cuda_alive(d->gpu)) {
        (void) cudaFreeHost(d->host_logits);
    }

    d->host_logits = NULL;
}


/* appends a draw's edits, then its bans, and its mask to the step's */

static void
llm_cuda_pick_lists(llm_cuda_t *d, const llm_draw_t *from,
    llm_cuda_draw_t *to)
{
    uint32_t           i;
    llm_edit_t        *ban;
    llm_cuda_draws_t  *w = &d->draws;

    to->edit = w->n_edits;

    if (from->n_edits) {
        memcpy(d->host->edits + w->n_edits, from->edits,
               from->n_edits * sizeof(llm_edit_t));
        w->n_edits += from->n_edits;
    }

    for (i = 0; i < from->n_banned; i++) {
        ban = &d->host->edits[w->n_edits++];
        ban->id = from->banned[i];
        ban->bias = 0;
        ban->seen = 0;
    }

    if (from->mask) {
        to->mask = w->n_masks++;
        memcpy(d->host->masks + (size_t) to->mask * w->mask_words, from->mask,
               w->mask_words * sizeof(uint32_t));
    }
}


void
llm_cuda_pick_fill(llm_cuda_t *d, const llm_batch_t *b,
    llm_cuda_draw_t *draws)
{
    uint32_t           i;
    llm_cuda_draw_t   *to;
    const llm_draw_t  *from;
    llm_cuda_draws_t  *w = &d->draws;

    w->n_edits = 0;
    w->n_masks = 0;
    w->n_top = 0;

    if (d->logits == NULL) {
        return;
    }

    for (i = 0; i < b->n_out; i++) {
        from = b->draws ? &b->draws[i] : NULL;
        to = &draws[i];

        memset(to, 0, sizeof(*to));
        to->mask = LLM_CUDA_NO_MASK;
        to->kind = from ? from->kind : LLM_DRAW_HOST;

        if (b->gives == LLM_GIVES_HIDDEN) {
            to->kind = LLM_DRAW_NONE;
        }

        d->host->wants[i] = to->kind == LLM_DRAW_HOST;

        if (to->kind != LLM_DRAW_TOKEN) {
            continue;
        }

        to->u = from->u;
        to->scale = from->scale;
        to->min_gap = from->min_gap;
        to->top_k = from->top_k;
        to->top_p = from->top_p;
        to->repetition = from->repetition;
        to->frequency = from->frequency;
        to->presence = from->presence;
        to->n_top = from->n_top;
        to->n_edits = from->n_edits;
        to->n_banned = from->n_banned;

        llm_cuda_pick_lists(d, from, to);

        if (from->n_top > 0) {
            w->n_top = i + 1;
        }
    }
}


void
llm_cuda_pick_upload(llm_cuda_t *d)
{
    llm_cuda_draws_t  *w = &d->draws;

    if (w->n_edits) {
        (void) llm_cuda_check(d,
            cudaMemcpyAsync(w->edits, d->host->edits,
                            w->n_edits * sizeof(llm_edit_t),
                            cudaMemcpyHostToDevice, d->stream),
            "upload of edits");
    }

    if (w->n_masks) {
        (void) llm_cuda_check(d,
            cudaMemcpyAsync(w->masks, d->host->masks,
                            (size_t) w->n_masks * w->mask_words
                            * sizeof(uint32_t),
                            cudaMemcpyHostToDevice, d->stream),
            "upload of masks");
    }
}


static void
llm_cuda_pick_back(llm_cuda_t *d, void *host, const void *exec, size_t size,
    const char *what)
{
    (void) llm_cuda_check(d,
        cudaMemcpyAsync(host, exec, size, cudaMemcpyDeviceToHost, d->stream),
        what);
}


void
llm_cuda_pick_read(llm_cuda_t *d)
{
    size_t             cols;
    uint32_t           i, end, drawn;
    llm_cuda_draws_t  *w = &d->draws;

    if (d->hidden && d->gives != LLM_GIVES_LOGITS && d->n_out) {
        llm_cuda_pick_back(d, d->host_hidden, d->hidden->data,
                           (size_t) d->n_out * d->hidden->cols
                           * sizeof(float), "read of the states");
    }

    if (d->logits == NULL || d->gives == LLM_GIVES_HIDDEN) {
        return;
    }

    cols = d->logits->cols;
    drawn = 0;

    for (i = 0; i < d->n_out; i = end + 1) {
        for (end = i; end < d->n_out && d->host->wants[end]; end++) {
            /* void */
        }

        if (end > i) {
            llm_cuda_pick_back(d, d->host_logits + i * cols,
                               (const float *) d->logits->data + i * cols,
                               (end - i) * cols * sizeof(float),
                               "read of the logits");
        }

        drawn |= end < d->n_out;
    }

    if (drawn) {
        llm_cuda_pick_back(d, d->host->drawn, w->drawn,
                           d->n_out * sizeof(*w->drawn),
                           "read of the tokens");
    }

    if (w->n_top) {
        llm_cuda_pick_back(d, d->host->top, w->top,
                           (size_t) w->n_top * LLM_DRAW_TOP
                           * sizeof(*w->top), "read of probabilities");
    }
}


void
llm_cuda_drawn(llm_exec_t *exec, uint32_t i, llm_drawn_t *out)
{
    llm_cuda_t              *d = (llm_cuda_t *) exec;
    const llm_cuda_drawn_t  *from = &d->ended->drawn[i];

    out->status = from->status;
    out->id = from->id;
    out->logprob = from->logprob;
    out->n_top = from->n_top;
    out->top = d->ended->top + (size_t) i * LLM_DRAW_TOP;
}
