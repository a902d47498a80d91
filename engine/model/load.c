/*
 * Loads a model: checks the file, opens a device, gives it the weights; see
 * model.h.  All memory that a step needs is allocated during the load: buffers
 * by acts.c, KV pages and states by caches.c.
 */

#include "engine/file/source.h"
#include "engine/model/ear.h"
#include "engine/base/machine.h"

#include <stdio.h>


int
llm_load_described(llm_load_t *l)
{
    llm_model_t  *m = l->m;

    if (llm_load_ctx(l) != LLM_OK
        || llm_load_sizes(l) != LLM_OK
        || llm_keep_check(l) != LLM_OK
        || llm_load_device(l) != LLM_OK
        || llm_beside_read(l) != LLM_OK
        || llm_packed_open(l) != LLM_OK
        || (!llm_model_on_gpu(m) && llm_promise(l) != LLM_OK)
        || llm_load_weights(l) != LLM_OK
        || llm_load_globals(l) != LLM_OK
        || llm_load_acts(l) != LLM_OK
        || llm_load_choice(l) != LLM_OK
        || llm_load_ear(l) != LLM_OK
        || llm_parts_link(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (m->desc.head.kind == LLM_HEAD_ASSISTANT
        ? llm_load_head_caches(l) != LLM_OK : llm_load_caches(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_gguf_intact(m->gguf, l->err) == LLM_OK
           ? llm_packed_intact(m, l->err) : LLM_ERROR;
}


void
llm_load_begin(llm_load_t *l, llm_model_t *m, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    l->m = m;
    l->opts = opts;
    l->done = 0;
    l->memory = 0;
    l->promised = 0;
    memset(&l->beside, 0, sizeof(l->beside));
    l->err = err;
    l->progress.began_us = llm_now_us();
    l->progress.said_us = l->progress.began_us;
}


void
llm_load_failed(const llm_load_t *l)
{
    llm_err_t  *err = l->err;

    if (l->memory && strcmp(err->code, LLM_DEVICE_LOST) != 0
        && strcmp(err->code, LLM_DEVICE_ERROR) != 0
        && strcmp(err->code, LLM_FILE_ERROR) != 0)
    {
        snprintf(err->code, sizeof(err->code), "%s", LLM_MEMORY_ERROR);
    }
}


llm_model_t *
llm_model_load(const char *path, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    char          device[256];
    uint32_t      i;
    llm_load_t    l;
    llm_model_t  *m;

    m = llm_model_create(opts);
    if (m == NULL) {
        (void) llm_fail(err, "%s: no memory for the model", path);
        return NULL;
    }

    llm_load_begin(&l, m, opts, err);
    m->gguf = llm_source_open(path, err);

    if (m->gguf == NULL
        || llm_desc_read(m->gguf, &m->desc, err) != LLM_OK
        || llm_load_described(&l) != LLM_OK)
    {
        llm_load_failed(&l);

        /* the reason may be pages of the file that cannot be read, which are
           zeros in the mapping: then err says that instead */

        if (m->gguf) {
            (void) llm_gguf_intact(m->gguf, err);
        }

        llm_model_free(m);
        return NULL;
    }

    llm_promise_loaded(m);
    llm_packed_keep(m);

    if (m->desc.unused) {
        llm_load_log(&l, LLM_LOG_WARN, "%s: %.*s: an unknown tensor, not "
                     "used", path, (int) m->desc.unused->name.len,
                     m->desc.unused->name.data);
    }

    if (m->n_kinds > 1) {
        llm_load_log(&l, LLM_LOG_NOTICE, "%s: %u separate KV pages for "
                     "layers with a window of %u tokens", path,
                     m->n_pages[LLM_KV_WINDOW], m->window);
    }

    if (m->n_slots) {
        llm_load_log(&l, LLM_LOG_NOTICE, "%s: %u recurrent states of %.1f "
                     "MiB", path, m->n_slots,
                     (double) m->slot_bytes / (1 << 20));
    }

    for (i = 0; m->n_parts > 1 && i < m->n_parts; i++) {
        llm_load_log(&l, LLM_LOG_NOTICE, "%s: layers %u to %u%s%s on %s", path,
                     m->parts[i].first, m->parts[i].end - 1,
                     i == 0 ? ", and the embeddings," : "",
                     i == m->n_parts - 1 ? ", and the head," : "",
                     m->parts[i].name);
    }

    if (m->n_members) {
        llm_load_log(&l, LLM_LOG_NOTICE, "%s: %u devices share each layer",
                     path, m->n_members);
    }

    llm_model_device(m, device, sizeof(device));
    llm_load_log(&l, LLM_LOG_NOTICE, "%s: %s, %u layers, %.1f MiB (%.0f "
                 "MiB/s), ctx %u, %u KV pages of %u tokens, on %s", path,
                 m->desc.hp.arch, m->desc.hp.n_layers,
                 (double) m->desc.hp.n_bytes / (1 << 20),
                 llm_progress_speed(&l.progress, llm_now_us(),
                                    m->desc.hp.n_bytes),
                 m->ctx, m->n_pages[LLM_KV_FULL], LLM_KV_PAGE, device);

    return m;
}


int
llm_model_fits(const llm_gguf_t *g, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    int           rc;
    llm_load_t    l;
    llm_model_t  *m;

    m = llm_model_create(opts);
    if (m == NULL) {
        return llm_fail(err, "%s: no memory for the model", llm_gguf_name(g));
    }

    memset(&l, 0, sizeof(l));
    l.m = m;
    l.opts = opts;
    l.err = err;

    rc = llm_desc_read(g, &m->desc, err);

    if (rc == LLM_OK) {
        m->gguf = (llm_gguf_t *) g;
        m->ops = &llm_ops_cpu;

        if (llm_load_ctx(&l) != LLM_OK
            || llm_load_sizes(&l) != LLM_OK
            || llm_beside_read(&l) != LLM_OK
            || llm_load_kv_fits(&l) != LLM_OK
            || llm_load_fits_at_all(&l, llm_machine_memory("")) != LLM_OK)
        {
            rc = LLM_ERROR;
        }

        /* the file is the caller's */

        m->gguf = NULL;
    }

    llm_model_free(m);

    return rc;
}
