/*
 * Files of heads that draft: what a file is, what the model must keep for it,
 * and opening it; see head.h.
 */

#include "engine/file/source.h"
#include "engine/model/head.h"
#include "engine/model/model_internal.h"

#include <stdio.h>


static llm_gguf_t *
llm_head_open(const char *path, llm_head_kind_t kind, llm_desc_t *d,
    llm_err_t *err)
{
    llm_gguf_t  *g;

    g = llm_source_open_header(path, err);

    if (g && llm_desc_read_head(g, kind, d, err) != LLM_OK) {
        llm_gguf_close(g);
        return NULL;
    }

    return g;
}


int
llm_head_is(const char *path, llm_err_t *err)
{
    int          is;
    llm_gguf_t  *g;

    g = llm_source_open_header(path, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    is = llm_desc_head_kind(g) != LLM_HEAD_NONE;
    llm_gguf_close(g);

    return is ? LLM_OK : LLM_ABSENT;
}


/* was the head made for a model of this width? */

static int
llm_head_check_width(const char *model, const llm_gguf_t *head,
    const llm_desc_t *d, llm_err_t *err)
{
    int          rc;
    llm_desc_t   of;
    llm_gguf_t  *g;

    g = llm_source_open_header(model, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_desc_read(g, &of, err);

    if (rc == LLM_OK) {
        rc = d->head.n_target == of.hp.n_embd ? LLM_OK
             : llm_head_wrong_width(head, d, g, of.hp.n_embd, err);
        llm_desc_free(&of);
    }

    llm_gguf_close(g);

    return rc;
}


int
llm_head_check(const char *model, const char *path, llm_err_t *err)
{
    int          rc;
    llm_desc_t   d;
    llm_gguf_t  *g;

    g = path ? llm_head_open(path, LLM_HEAD_NONE, &d, err)
             : llm_head_open(model, LLM_HEAD_MTP, &d, err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = path ? llm_head_check_width(model, g, &d, err) : LLM_OK;

    llm_desc_free(&d);
    llm_gguf_close(g);

    return rc;
}


int
llm_head_keeps(const char *path, llm_keep_t *keep, llm_err_t *err)
{
    llm_desc_t   d;
    llm_gguf_t  *g;

    memset(keep, 0, sizeof(*keep));
    keep->states = 1;

    if (path == NULL) {
        return LLM_OK;
    }

    g = llm_head_open(path, LLM_HEAD_NONE, &d, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    if (d.head.kind == LLM_HEAD_EAGLE3) {
        keep->states = 0;
        keep->n_layers = LLM_HEAD_TAPS;
        memcpy(keep->layers, d.head.taps, sizeof(keep->layers));
    }

    llm_desc_free(&d);
    llm_gguf_close(g);

    return LLM_OK;
}


llm_model_t *
llm_model_load_head(llm_model_t *of, const char *path,
    const llm_model_opts_t *opts, llm_err_t *err)
{
    llm_load_t    l;
    llm_model_t  *m;

    m = llm_model_create(opts);
    if (m == NULL) {
        (void) llm_fail(err, "no memory for the head that drafts");
        return NULL;
    }

    llm_load_begin(&l, m, opts, err);
    llm_model_draft_begins(of);
    m->of = of;
    m->gguf = path ? llm_source_open(path, err) : of->gguf;

    if (m->gguf == NULL
        || llm_desc_read_head(m->gguf, path ? LLM_HEAD_NONE : LLM_HEAD_MTP,
                              &m->desc, err) != LLM_OK
        || llm_head_fits(m, err) != LLM_OK
        || llm_load_described(&l) != LLM_OK)
    {
        llm_load_failed(&l);
        llm_model_free(m);
        return NULL;
    }

    llm_promise_loaded(m);
    llm_load_log(&l, LLM_LOG_NOTICE, "%s: %s%s drafts for it, %.1f MiB",
                 llm_gguf_name(of->gguf), m->desc.hp.arch,
                 path ? "" : ", its layer for multi-token prediction,",
                 (double) m->desc.hp.n_bytes / (1 << 20));

    return m;
}
