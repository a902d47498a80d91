/*
 * What a model would take of a device's memory: the file's header and an open
 * device are enough to say so, and nothing is loaded.
 */

#include "engine/file/source.h"
#include "engine/model/model_internal.h"
#include "engine/base/machine.h"


static int
llm_plan_device(llm_load_t *l, llm_model_plan_t *p)
{
    llm_model_t  *m = l->m;

    if (llm_load_device(l) != LLM_OK) {
        return LLM_ERROR;
    }

    p->on_gpu = llm_model_on_gpu(m);
    p->ctx = m->ctx;
    p->weights = p->on_gpu ? m->desc.hp.n_bytes : llm_load_weight_bytes(m);
    p->kv = llm_load_seqs_bytes(l, m->max_seqs);
    p->free_bytes = p->on_gpu ? m->ops->memory_free(m->exec)
                              : llm_machine_memory_free("");
    llm_model_device(m, p->device, sizeof(p->device));

    return LLM_OK;
}


int
llm_model_plan(const char *path, const llm_model_opts_t *opts,
    llm_model_plan_t *plan, llm_err_t *err)
{
    int          rc;
    llm_load_t   l;

    memset(&l, 0, sizeof(l));
    memset(plan, 0, sizeof(*plan));

    l.m = llm_model_create(opts);
    l.opts = opts;
    l.err = err;

    if (l.m == NULL) {
        return llm_fail(err, "%s: no memory for the model", path);
    }

    l.m->gguf = llm_source_open_header(path, err);

    rc = l.m->gguf != NULL
         && llm_desc_read(l.m->gguf, &l.m->desc, err) == LLM_OK
         && llm_load_ctx(&l) == LLM_OK && llm_load_sizes(&l) == LLM_OK
         && llm_plan_device(&l, plan) == LLM_OK ? LLM_OK : LLM_ERROR;

    llm_model_free(l.m);

    return rc;
}
