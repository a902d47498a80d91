/*
 * Whisper's encoder and decoder as one interface; see whisper.h.  Sequence i
 * has the pages from i * n on of the decoder's cache, n for a whole sequence,
 * and state i those of the cache for cross-attention, so nothing is shared out
 * while steps run.
 */

#include "engine/model/ear.h"
#include "engine/model/whisper.h"

#include <assert.h>

/* n_vocab of English models; the tokens after the languages, times included */
#define LLM_WHISPER_EN     51864
#define LLM_WHISPER_TIMES  1501

struct llm_whisper_s {
    llm_model_t         *m;
    llm_whisper_info_t   info;
    uint32_t             n_pages;       /* of a sequence */
    uint32_t             max_pages;     /* stride of the tables of a step */

    /* a step: arrays for the largest one */
    int32_t             *tokens;        /* [batch] */
    uint32_t            *pos;           /* [batch] */
    uint32_t            *out_rows;      /* [max_out] */
    uint32_t            *seq_rows;      /* [max_seqs + 1] */
    uint32_t            *kv_len;        /* [max_seqs] */
    uint32_t            *pages;         /* [max_seqs][max_pages] */
    uint32_t            *cross;         /* [max_seqs][max_pages] */
    uint32_t            *cross_len;     /* [max_seqs] */
};


/* the ids follow from the size of the vocabulary: English models lack the token
   of the last language, and all ids after the text are one less in them */

static void
llm_whisper_ids(llm_whisper_info_t *i)
{
    i->multilingual = i->n_vocab > LLM_WHISPER_EN;
    i->eot = i->multilingual ? 50257 : 50256;
    i->sot = i->eot + 1;
    i->language = i->sot + 1;
    i->timestamp = (int32_t) i->n_vocab - LLM_WHISPER_TIMES;
    i->no_timestamps = i->timestamp - 1;
    i->no_speech = i->timestamp - 2;
    i->sot_prev = i->timestamp - 3;
    i->sot_lm = i->timestamp - 4;
    i->transcribe = i->timestamp - 5;
    i->translate = i->timestamp - 6;
    i->n_languages = i->multilingual
                     ? (uint32_t) (i->translate - i->language) : 1;
}


static int
llm_whisper_describe(const llm_gguf_t *g, const llm_desc_t *d,
    llm_whisper_info_t *i, llm_err_t *err)
{
    memset(i, 0, sizeof(*i));

    i->n_mels = d->ear.n_mels;
    i->n_frames = 2 * d->ear.n_ctx;
    i->n_audio_ctx = d->ear.n_ctx;
    i->n_audio_state = d->ear.n_embd;
    i->n_audio_layers = d->ear.n_layers;
    i->n_text_ctx = d->hp.n_ctx_train;
    i->n_text_state = d->hp.n_embd;
    i->n_text_layers = d->hp.n_layers;
    i->n_vocab = d->hp.n_vocab;
    i->n_align = d->ear.n_align;

    if (i->n_vocab < LLM_WHISPER_EN || i->n_vocab > LLM_WHISPER_EN + 2) {
        return llm_fail(err, "%s: token_embd.weight: %u tokens, and Whisper's "
                        "vocabularies have %d to %d", llm_gguf_name(g),
                        i->n_vocab, LLM_WHISPER_EN, LLM_WHISPER_EN + 2);
    }

    llm_whisper_ids(i);

    return LLM_OK;
}


int
llm_whisper_check(const llm_gguf_t *g, llm_whisper_info_t *info,
    llm_err_t *err)
{
    int         rc;
    llm_desc_t  d;

    if (llm_desc_read(g, &d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = d.hp.listens ? llm_whisper_describe(g, &d, info, err) : LLM_ABSENT;
    llm_desc_free(&d);

    return rc;
}


static int
llm_whisper_arrays(llm_whisper_t *w)
{
    size_t        tables;
    uint32_t      i, k;
    llm_model_t  *m = w->m;

    tables = (size_t) m->max_seqs * w->max_pages;

    w->tokens = calloc(m->batch, sizeof(*w->tokens));
    w->pos = calloc(m->batch, sizeof(*w->pos));
    w->out_rows = calloc(m->max_out, sizeof(*w->out_rows));
    w->seq_rows = calloc(m->max_seqs + 1, sizeof(*w->seq_rows));
    w->kv_len = calloc(m->max_seqs, sizeof(*w->kv_len));
    w->pages = calloc(tables, sizeof(*w->pages));
    w->cross = calloc(tables, sizeof(*w->cross));
    w->cross_len = calloc(m->max_seqs, sizeof(*w->cross_len));

    if (w->tokens == NULL || w->pos == NULL || w->out_rows == NULL
        || w->seq_rows == NULL || w->kv_len == NULL || w->pages == NULL
        || w->cross == NULL || w->cross_len == NULL)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < m->max_seqs; i++) {
        w->cross_len[i] = w->info.n_audio_ctx;

        for (k = 0; k < w->n_pages; k++) {
            w->pages[i * w->max_pages + k] = i * w->n_pages + k;
        }
    }

    return LLM_OK;
}


static int
llm_whisper_ready(llm_whisper_t *w, const char *path, llm_err_t *err)
{
    llm_model_t  *m = w->m;

    if (!m->desc.hp.listens) {
        return llm_fail(err, "%s: %s is no model of speech", path,
                        m->desc.hp.arch);
    }

    if (llm_whisper_describe(m->gguf, &m->desc, &w->info, err) != LLM_OK) {
        return LLM_ERROR;
    }

    w->n_pages = m->max_pages;
    w->max_pages = llm_max(m->max_pages, m->ear->n_pages);

    if (m->n_pages[LLM_KV_FULL] / w->n_pages < m->max_seqs) {
        return llm_fail(err, "%s: the KV cache has room for %u sequences, and "
                        "%u are wanted: make it larger", path,
                        m->n_pages[LLM_KV_FULL] / w->n_pages, m->max_seqs);
    }

    return llm_whisper_arrays(w) == LLM_OK ? LLM_OK
           : llm_fail(err, "%s: no memory", path);
}


llm_whisper_t *
llm_whisper_load(const char *path, const llm_whisper_opts_t *opts,
    llm_err_t *err)
{
    llm_whisper_t     *w;
    llm_model_opts_t   o = opts->model;

    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        (void) llm_fail(err, "%s: no memory", path);
        return NULL;
    }

    o.ctx = 0;
    o.whole = 1;
    o.n_windows = opts->n_states;
    w->m = llm_model_load(path, &o, err);

    if (w->m == NULL || llm_whisper_ready(w, path, err) != LLM_OK) {
        llm_whisper_free(w);
        return NULL;
    }

    return w;
}


void
llm_whisper_free(llm_whisper_t *w)
{
    if (w == NULL) {
        return;
    }

    llm_model_free(w->m);
    free(w->tokens);
    free(w->pos);
    free(w->out_rows);
    free(w->seq_rows);
    free(w->kv_len);
    free(w->pages);
    free(w->cross);
    free(w->cross_len);
    free(w);
}


const llm_whisper_info_t *
llm_whisper_info(const llm_whisper_t *w)
{
    return &w->info;
}


const llm_model_t *
llm_whisper_model(const llm_whisper_t *w)
{
    return w->m;
}


void
llm_whisper_begin(llm_whisper_t *w, uint32_t state, const float *mel,
    int words)
{
    llm_ear_begin(w->m, state, mel, words);
}


int
llm_whisper_encode(llm_whisper_t *w, llm_err_t *err)
{
    return llm_ear_next(w->m, err);
}


const float *
llm_whisper_states(llm_whisper_t *w)
{
    return w->m->ear->states;
}


/* adds the tokens of r to the step */

static void
llm_whisper_add(llm_whisper_t *w, llm_batch_t *b, const llm_whisper_rows_t *r)
{
    uint32_t      i, k, s;
    llm_model_t  *m = w->m;

    assert(r->seq < m->max_seqs && r->state < m->ear->n_states);
    assert(r->n && r->n_out <= r->n && r->pos + r->n <= w->info.n_text_ctx);
    assert(b->n_seqs < m->max_seqs && b->n_tokens + r->n <= m->batch);
    assert(b->n_out + r->n_out <= m->max_out);

    s = b->n_seqs++;
    w->kv_len[s] = r->pos + r->n;

    for (k = 0; k < w->n_pages; k++) {
        w->pages[s * w->max_pages + k] = r->seq * w->n_pages + k;
    }

    for (k = 0; k < m->ear->n_pages; k++) {
        w->cross[s * w->max_pages + k] = r->state * m->ear->n_pages + k;
    }

    for (i = 0; i < r->n; i++) {
        w->tokens[b->n_tokens] = r->tokens[i];
        w->pos[b->n_tokens] = r->pos + i;

        if (i >= r->n - r->n_out) {
            w->out_rows[b->n_out++] = b->n_tokens;
        }

        b->n_tokens++;
    }

    w->seq_rows[s + 1] = b->n_tokens;
}


static int
llm_whisper_run(llm_whisper_t *w, const llm_whisper_rows_t *rows, uint32_t n,
    llm_err_t *err)
{
    uint32_t     i;
    llm_batch_t  b;

    memset(&b, 0, sizeof(b));
    b.max_pages = w->max_pages;
    b.tokens = w->tokens;
    b.pos = w->pos;
    b.seq_rows = w->seq_rows;
    b.kv_len = w->kv_len;
    b.cross = w->cross;
    b.cross_len = w->cross_len;
    b.out_rows = w->out_rows;

    /* a step that keeps queries has other operations than a decode step, which
       the device may have captured */

    b.gives = w->m->ear->keeps ? LLM_GIVES_BOTH : LLM_GIVES_LOGITS;

    for (i = 0; i < LLM_KV_KINDS; i++) {
        b.pages[i] = w->pages;
    }

    for (i = 0; i < n; i++) {
        llm_whisper_add(w, &b, &rows[i]);
    }

    return llm_model_forward(w->m, &b, err);
}


int
llm_whisper_step(llm_whisper_t *w, const llm_whisper_rows_t *rows, uint32_t n,
    llm_err_t *err)
{
    w->m->ear->keeps = 0;

    return llm_whisper_run(w, rows, n, err);
}


const float *
llm_whisper_logits(llm_whisper_t *w, uint32_t i)
{
    return llm_model_logits(w->m, i);
}


void
llm_whisper_fork(llm_whisper_t *w, uint32_t from, uint32_t to, uint32_t n)
{
    uint32_t  i, pages;

    assert(from < w->m->max_seqs && to < w->m->max_seqs && from != to);

    pages = (n + LLM_KV_PAGE - 1) / LLM_KV_PAGE;

    for (i = 0; i < pages; i++) {
        llm_model_copy_page(w->m, LLM_KV_FULL, from * w->n_pages + i,
                            to * w->n_pages + i);
    }
}


size_t
llm_whisper_queries(const llm_whisper_t *w, uint32_t n)
{
    return (size_t) w->m->desc.ear.n_align * n * w->m->desc.hp.head_dim_k;
}


int
llm_whisper_look(llm_whisper_t *w, const llm_whisper_rows_t *r, uint32_t *at,
    float *queries, llm_err_t *err)
{
    int                  rc;
    llm_ear_t           *s = w->m->ear;
    llm_whisper_rows_t   part = *r;

    assert(s->keys[r->state] && *at < r->n);

    part.pos = r->pos + *at;
    part.tokens = r->tokens + *at;
    part.n = llm_min(r->n - *at, s->rows);

    /* a row with a result, as the last layer is not computed without */

    part.n_out = 1;
    s->keeps = 1;
    rc = llm_whisper_run(w, &part, 1, err);
    s->keeps = 0;

    if (rc != LLM_OK) {
        return rc;
    }

    llm_ear_take_queries(w->m, part.n, *at, r->n, queries);
    *at += part.n;

    return *at < r->n ? LLM_MORE : LLM_OK;
}


void
llm_whisper_weigh(const llm_whisper_t *w, const llm_whisper_rows_t *r,
    uint32_t head, const float *queries, float *weights)
{
    llm_ear_weigh(w->m, r->state, head, r->n, queries, weights);
}
