/*
 * A step's begin(), submit() and end().  The step's arrays are copied to the
 * GPU in one piece from pinned memory; a decode step is captured once for each
 * bucket and replayed afterwards; then the results are copied back.  All of
 * this goes through one stream in order, so the next step may be enqueued while
 * this one runs; only the host's buffers exist twice.  A step of a team
 * (team.cu) is one of each of its devices; its first one captures for all.
 *
 * A failed launch or copy is remembered (error.cu) and reported by end();
 * nothing waits for the device before that.
 *
 * Graphs only save time: if one fails, for instance for lack of memory, the
 * step is launched kernel by kernel.
 */

#include "kernels/cuda/internal.h"

#include <assert.h>
#include <stdio.h>

/* ---- the step's arrays ---- */

size_t
llm_cuda_step_layout(llm_cuda_t *d, uint8_t *base, llm_cuda_step_t *st)
{
    size_t    off;
    uint32_t  kinds = llm_max(d->opts.n_kinds, 1u);

#define LLM_STEP_ARRAY(field, type, n)                                       \
    st->field = (type *) (base + off);                                       \
    off += llm_align((size_t) (n) * sizeof(type), 256)

    off = 0;
    LLM_STEP_ARRAY(counts, uint32_t, LLM_N_ALL_COUNTS);
    LLM_STEP_ARRAY(tokens, int32_t, d->opts.max_tokens);
    LLM_STEP_ARRAY(follows, uint32_t, d->opts.max_tokens);
    LLM_STEP_ARRAY(pos, uint32_t, d->opts.max_tokens);
    LLM_STEP_ARRAY(turns, uint32_t, d->opts.max_tokens * (size_t) LLM_TURNS);
    LLM_STEP_ARRAY(sees, uint32_t, d->opts.max_tokens * (size_t) 2);
    LLM_STEP_ARRAY(given, uint32_t, d->opts.max_tokens);
    LLM_STEP_ARRAY(row_seq, uint32_t, d->opts.max_tokens);
    LLM_STEP_ARRAY(seq_rows, uint32_t, d->opts.max_seqs + 1);
    LLM_STEP_ARRAY(kv_len, uint32_t, d->opts.max_seqs);
    LLM_STEP_ARRAY(slots, uint32_t, d->opts.max_seqs);
    LLM_STEP_ARRAY(out_rows, uint32_t, d->opts.max_out);
    LLM_STEP_ARRAY(draws, llm_cuda_draw_t, d->opts.max_out);
    LLM_STEP_ARRAY(split_base, uint32_t, d->opts.max_seqs);
    LLM_STEP_ARRAY(items, llm_cuda_item_t, llm_cuda_max_items(d));
    LLM_STEP_ARRAY(merges, uint32_t, d->opts.max_tokens);
    LLM_STEP_ARRAY(cross_len, uint32_t, d->opts.max_seqs);
    LLM_STEP_ARRAY(cross_items, llm_cuda_item_t, llm_cuda_max_items(d));
    LLM_STEP_ARRAY(page_first, uint32_t, (kinds + 1) * d->opts.max_seqs);
    d->step_size = off;
    LLM_STEP_ARRAY(pages, uint32_t,
                   (size_t) (kinds + 1) * d->opts.max_seqs
                   * d->opts.max_pages);

#undef LLM_STEP_ARRAY

    return off;
}


/* appends the page numbers that a sequence uses in each kind of cache */

static void
llm_cuda_step_pages(llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h, uint32_t seq)
{
    uint32_t  i, used, *first, *pages;

    used = (b->kv_len[seq] + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    first = (uint32_t *) h->page_first + seq;
    pages = (uint32_t *) h->pages;

    for (i = 0; i < llm_max(d->opts.n_kinds, 1u); i++) {
        first[i * d->opts.max_seqs] = d->n_pages;
        memcpy(pages + d->n_pages, b->pages[i] + (size_t) seq * b->max_pages,
               used * sizeof(uint32_t));
        d->n_pages += used;
    }

    if (b->cross) {
        used = (b->cross_len[seq] + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
        first[i * d->opts.max_seqs] = d->n_pages;
        memcpy(pages + d->n_pages, b->cross + (size_t) seq * b->max_pages,
               used * sizeof(uint32_t));
        d->n_pages += used;
    }
}


/* the arrays of rows that are not tokens, also for a step without such rows: a
   captured step reads them whatever is replayed */

static void
llm_cuda_step_media(const llm_batch_t *b, const llm_cuda_step_t *h)
{
    uint32_t  i, k, *turns, *sees, *given;

    turns = (uint32_t *) h->turns;
    sees = (uint32_t *) h->sees;
    given = (uint32_t *) h->given;

    for (i = 0; i < b->n_tokens; i++) {
        for (k = 0; k < LLM_TURNS; k++) {
            turns[LLM_TURNS * i + k] = b->turns ? b->turns[LLM_TURNS * i + k]
                                                : b->pos[i];
        }

        sees[2 * i] = b->sees ? b->sees[2 * i] : 0;
        sees[2 * i + 1] = b->sees ? b->sees[2 * i + 1] : b->pos[i] + 1;
        given[i] = b->given ? b->given[i] : LLM_NOT_GIVEN;
    }
}


/* fills the host's copy of the arrays */

static void
llm_cuda_step_fill(llm_cuda_t *d, const llm_batch_t *b)
{
    uint32_t          i, s;
    uint32_t         *counts, *follows, *row_seq;
    llm_cuda_step_t   h;

    (void) llm_cuda_step_layout(d, d->host->arrays, &h);

    counts = (uint32_t *) h.counts;
    follows = (uint32_t *) h.follows;
    row_seq = (uint32_t *) h.row_seq;

    counts[LLM_N_TOKENS] = b->n_tokens;
    counts[LLM_N_SEQS] = b->n_seqs;
    counts[LLM_N_OUT] = b->n_out;

    memcpy(h.tokens, b->tokens, b->n_tokens * sizeof(int32_t));
    memcpy((void *) h.pos, b->pos, b->n_tokens * sizeof(uint32_t));
    llm_cuda_step_media(b, &h);
    memcpy((void *) h.seq_rows, b->seq_rows,
           (b->n_seqs + 1) * sizeof(uint32_t));
    memcpy((void *) h.kv_len, b->kv_len, b->n_seqs * sizeof(uint32_t));

    if (b->cross) {
        memcpy((void *) h.cross_len, b->cross_len,
               b->n_seqs * sizeof(uint32_t));
    }

    if (b->slots) {
        memcpy((void *) h.slots, b->slots, b->n_seqs * sizeof(uint32_t));
    }

    if (b->n_out) {
        memcpy((void *) h.out_rows, b->out_rows,
               b->n_out * sizeof(uint32_t));
    }

    d->follows = 0;

    for (i = 0; i < b->n_tokens; i++) {
        follows[i] = b->follows ? b->follows[i] : LLM_NO_DRAW;
        d->follows |= follows[i] != LLM_NO_DRAW;
    }

    d->n_pages = 0;
    d->max_seq_rows = 0;

    for (s = 0; s < b->n_seqs; s++) {
        for (i = b->seq_rows[s]; i < b->seq_rows[s + 1]; i++) {
            row_seq[i] = s;
        }

        llm_cuda_step_pages(d, b, &h, s);
        d->max_seq_rows = llm_max(d->max_seq_rows,
                                  b->seq_rows[s + 1] - b->seq_rows[s]);
    }

    llm_cuda_items_fill(d, b, &h);

    d->n_tokens = b->n_tokens;
    d->n_seqs = b->n_seqs;
    d->n_out = b->n_out;
    d->gives = b->gives;
    d->host->n_out = b->n_out;
    llm_cuda_pick_fill(d, b, (llm_cuda_draw_t *) h.draws);
    d->replayed = 0;
}


static llm_cuda_graph_t *
llm_cuda_find_graph(llm_cuda_t *d)
{
    uint32_t  i;

    for (i = 0; i < d->n_graphs; i++) {
        if (d->graphs[i].rows == d->rows
            && d->graphs[i].seq_rows == d->max_seq_rows
            && d->graphs[i].merges == d->merges
            && d->graphs[i].items == d->items
            && d->graphs[i].cross_items == d->cross_items)
        {
            return &d->graphs[i];
        }
    }

    return NULL;
}


/*
 * The step's graph, or an entry for a new one; NULL if there is no entry left.
 * *again: the kernels of this bucket were launched before.
 */

static llm_cuda_graph_t *
llm_cuda_graph_of(llm_cuda_t *d, int *again)
{
    llm_cuda_graph_t  *g;

    g = llm_cuda_find_graph(d);
    *again = g != NULL;

    if (g == NULL && d->n_graphs < LLM_CUDA_MAX_GRAPHS) {
        g = &d->graphs[d->n_graphs++];
        g->rows = d->rows;
        g->seq_rows = d->max_seq_rows;
        g->merges = d->merges;
        g->items = d->items;
        g->cross_items = d->cross_items;
    }

    return g;
}


/* no new graphs are made from now on; existing ones are still used */

static void
llm_cuda_no_graphs(llm_cuda_t *d, cudaError_t e)
{
    char  msg[256];

    (void) cudaGetLastError();          /* or the next launch would report e */

    if (d->opts.log && !d->no_graphs) {
        snprintf(msg, sizeof(msg), "CUDA: graph of a step: %s; no more graphs "
                 "are made, steps are launched kernel by kernel",
                 cudaGetErrorString(e));
        d->opts.log(d->opts.log_data, LLM_LOG_WARN, msg);
    }

    d->no_graphs = 1;
}


/* returns nonzero and frees the graph if the launch failed */

static int
llm_cuda_graph_launch(llm_cuda_t *d, llm_cuda_graph_t *g)
{
    cudaError_t  e;

    llm_cuda_team_in(d);
    e = cudaGraphLaunch(g->exec, d->stream);

    if (e == cudaSuccess) {
        llm_cuda_team_out(d);
        return 0;
    }

    (void) cudaGraphExecDestroy(g->exec);
    g->exec = NULL;
    llm_cuda_no_graphs(d, e);

    return 1;
}


/*
 * Called before the device is used.  The context may have been lost through
 * another device on this GPU; this thread may have used another GPU; and the
 * thread that loads a model is not the one that runs it.
 */

static int
llm_cuda_ready(llm_cuda_t *d, llm_err_t *err)
{
    if (!llm_cuda_alive(d->gpu)) {
        llm_cuda_void(d);
        return llm_cuda_fail_lost(err, d->gpu->index,
                                  "another model's error");
    }

    (void) llm_cuda_check(d, cudaSetDevice(d->gpu->index), "device");

    return llm_cuda_report(d, err);
}


/*
 * Coarser buckets for a decode step, because graphs are kept until the device
 * is closed: items become the bucket's sequences times a power of two, at least
 * two if some are split, so that a bucket's rows of any lengths have the shapes
 * of as many rows of one length.  Of the rows whose splits are merged it only
 * matters whether there are any.
 */

static void
llm_cuda_few_graphs(llm_cuda_t *d)
{
    uint32_t  n;

    n = d->merges ? 2 * d->seqs : d->seqs;

    for ( /* void */ ; n < d->items; n *= 2) { /* void */ }

    d->items = n;

    for (n = d->seqs; n < d->cross_items; n *= 2) { /* void */ }

    d->cross_items = d->cross_items ? n : 0;
    d->merges = d->merges ? d->rows : 0;
}


/*
 * A decode step has one row, or a few, for each sequence, and every row needs
 * logits and nothing else.
 */

static int
llm_cuda_decodes(const llm_cuda_t *d, const llm_batch_t *b)
{
    return b->n_out == b->n_tokens && b->gives == LLM_GIVES_LOGITS
           && b->given == NULL
           && b->n_tokens <= LLM_CUDA_GRAPH_ROWS
           && d->max_seq_rows <= LLM_CUDA_GRAPH_SEQ_ROWS;
}


/* copies the rows that a step is given; memory for them grows with the steps,
   because most models are never given any */

static int
llm_cuda_give(llm_cuda_t *d, const llm_batch_t *b, llm_err_t *err)
{
    void    *p;
    size_t   size;

    d->given_cols = b->given ? b->given_cols : 0;
    size = (size_t) b->n_given * d->given_cols * sizeof(float);

    if (size == 0) {
        return LLM_OK;
    }

    if (size > d->given_cap) {
        /* waits for the steps that read the old memory */
        llm_cuda_free(d, d->given);
        d->given = NULL;
        d->given_cap = 0;

        if (llm_cuda_alloc(&p, size, "given rows", err) != LLM_OK) {
            return LLM_ERROR;
        }

        d->given = (float *) p;
        d->given_cap = size;
    }

    (void) llm_cuda_check(d, cudaMemcpyAsync(d->given, b->rows, size,
                                             cudaMemcpyHostToDevice,
                                             d->stream),
                          "upload of given rows");

    return LLM_OK;
}


/* one device's step: its arrays; a decode step is padded to its bucket */

static int
llm_cuda_start(llm_cuda_t *d, const llm_batch_t *b, llm_err_t *err)
{
    size_t  size;

    if (llm_cuda_ready(d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    assert(d->n_submitted == d->n_begun && d->n_begun - d->n_ended < 2);

    d->host = &d->hosts[d->n_begun++ % 2];
    d->ended = NULL;
    d->late = d->received != NULL;
    llm_cuda_step_fill(d, b);

    d->decodes = llm_cuda_decodes(d, b);
    d->rows = b->n_tokens;
    d->seqs = b->n_seqs;
    d->out_rows = b->n_out;

    if (d->decodes) {
        d->max_seq_rows = llm_cuda_bucket(d->max_seq_rows);
        d->rows = llm_min(llm_cuda_bucket(b->n_tokens), d->opts.max_tokens);
        d->seqs = llm_min(d->rows, d->opts.max_seqs);
        d->out_rows = llm_min(d->rows, d->opts.max_out);
        llm_cuda_few_graphs(d);
    }

    size = d->step_size + d->n_pages * sizeof(uint32_t);

    if (llm_cuda_check(d, cudaMemcpyAsync(d->step_dev, d->host->arrays,
                                          size, cudaMemcpyHostToDevice,
                                          d->stream),
                       "upload of a step"))
    {
        return llm_cuda_report(d, err);
    }

    llm_cuda_pick_upload(d);

    return llm_cuda_give(d, b, err);
}


/* the first kernels of a step; if it is not captured, after all that the team
   was given before */

static void
llm_cuda_first(llm_cuda_t *d)
{
    uint32_t     i;
    llm_cuda_t  *one;

    if (!d->capturing) {
        llm_cuda_team_in(d);
    }

    llm_cuda_team_out(d);

    for (i = 0; i < d->n_team; i++) {
        one = d->team[i];

        if (one->decodes || one->follows) {
            llm_cuda_enter(&one->exec);
            llm_cuda_follow(one);
        }
    }
}


static int
llm_cuda_team_failed(const llm_cuda_t *d)
{
    uint32_t  i;

    for (i = 0; i < d->n_team && !d->team[i]->failed; i++) { /* void */ }

    return i < d->n_team;
}


/* a decode step is captured or replayed; after a failed call it is launched, so
   that no failure is from before a capture */

int
llm_cuda_begin(llm_exec_t *exec, const llm_batch_t *b, llm_err_t *err)
{
    int                again;
    uint32_t           i;
    llm_cuda_t        *d = (llm_cuda_t *) exec;
    cudaError_t        e;
    llm_cuda_graph_t  *g;

    for (i = 0; i < d->n_team; i++) {
        if (llm_cuda_start(d->team[i], b, err) != LLM_OK) {
            llm_cuda_void(d);
            return LLM_ERROR;
        }

        assert(d->team[i]->items == d->items);
    }

    g = d->decodes ? llm_cuda_graph_of(d, &again) : NULL;

    if (g && g->exec && llm_cuda_graph_launch(d, g) == 0) {
        d->replayed = 1;
        return LLM_REPLAYED;
    }

    if (g && again && !d->no_graphs && !llm_cuda_team_failed(d)) {
        e = cudaStreamBeginCapture(d->stream,
                                   cudaStreamCaptureModeThreadLocal);

        if (e == cudaSuccess) {
            d->capturing = g;

        } else {
            llm_cuda_no_graphs(d, e);
        }
    }

    llm_cuda_first(d);

    return LLM_OK;
}


/* returns nonzero if the graph could not be made or launched; then no kernel of
   the step has been launched */

static int
llm_cuda_end_capture(llm_cuda_t *d)
{
    cudaError_t        e;
    cudaGraph_t        graph;
    llm_cuda_graph_t  *g = d->capturing;

    llm_cuda_team_in(d);
    d->capturing = NULL;
    graph = NULL;

    e = cudaStreamEndCapture(d->stream, &graph);

    if (e == cudaSuccess) {
        e = cudaGraphInstantiate(&g->exec, graph, 0);
        (void) cudaGraphDestroy(graph);
    }

    if (e != cudaSuccess) {
        g->exec = NULL;
        llm_cuda_no_graphs(d, e);
        return 1;
    }

    return llm_cuda_graph_launch(d, g);
}


/* launches the step whose capture has failed.  That was no step's failure: an
   invalid capture fails each call that it gets. */

static void
llm_cuda_redo(llm_cuda_t *d)
{
    uint32_t  i;

    for (i = 0; i < d->n_team; i++) {
        d->team[i]->failed = 0;
    }

    d->late = d->received != NULL;
    llm_cuda_first(d);
}


int
llm_cuda_submit(llm_exec_t *exec)
{
    uint32_t     i;
    llm_cuda_t  *one, *d = (llm_cuda_t *) exec;

    llm_cuda_enter(exec);

    if (!d->replayed) {
        llm_cuda_draw(d);
    }

    if (d->capturing && llm_cuda_end_capture(d)) {
        llm_cuda_redo(d);
        return LLM_REDO;
    }

    for (i = 0; i < d->n_team; i++) {
        one = d->team[i];
        llm_cuda_enter(&one->exec);
        llm_cuda_pick_read(one);

        (void) llm_cuda_check(one, cudaGetLastError(), "a kernel's launch");
        (void) llm_cuda_check(one, cudaEventRecord(one->host->done,
                                                   one->stream),
                              "end of a step");
        one->n_submitted++;
    }

    return LLM_OK;
}


/* waits for one device's step */

static int
llm_cuda_finish(llm_cuda_t *d, llm_err_t *err)
{
    if (llm_cuda_ready(d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    d->ended = &d->hosts[d->n_ended++ % 2];
    (void) llm_cuda_check(d, cudaEventSynchronize(d->ended->done), "a step");

    return llm_cuda_report(d, err);
}


int
llm_cuda_end(llm_exec_t *exec, llm_err_t *err)
{
    uint32_t     i;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (d->n_submitted < d->n_begun && llm_cuda_submit(exec) == LLM_REDO) {
        llm_cuda_void(d);
        return llm_fail(err, "CUDA: a step's graph failed, and the step was "
                        "not repeated");
    }

    for (i = 0; i < d->n_team; i++) {
        if (llm_cuda_finish(d->team[i], err) != LLM_OK) {
            llm_cuda_void(d);
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
