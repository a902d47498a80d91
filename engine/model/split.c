/*
 * split=rows: the devices of a model share each of its layers, as a team
 * (kernels/team.h), which is one device for the rest of the engine.  The model
 * has one part, which is on the team.
 *
 * The model owns the team and its devices.
 */

#include "engine/model/model_internal.h"

#include "kernels/team.h"


static int
llm_split_evenly(llm_load_t *l, uint32_t layer, const char *what, uint32_t of,
    uint32_t n)
{
    if (of % n == 0) {
        return LLM_OK;
    }

    return llm_fail(l->err, "%s: split=rows: the %u %s%s of layer %u cannot be "
                    "divided evenly among the %u devices of device=%s; "
                    "split=layers can divide its layers",
                    llm_gguf_name(l->m->gguf), of, what, of > 1 ? "s" : "",
                    layer, n, l->opts->device);
}


/* each device gets as many heads of keys and values, with the query heads that
   read them, or of latent attention as many query heads; as many heads of a
   recurrent layer; and as many columns of experts */

static int
llm_split_check(llm_load_t *l, uint32_t n)
{
    uint32_t                 i;
    const llm_desc_t        *d = &l->m->desc;
    const llm_layer_desc_t  *layer;

    for (i = 0; i < d->hp.n_layers; i++) {
        layer = &d->layers[i];

        if (llm_split_evenly(l, i, layer->latent ? "query head" : "KV head",
                             layer->latent ? layer->n_heads
                                           : layer->n_kv_heads, n) != LLM_OK
            || llm_split_evenly(l, i, "recurrent head", layer->state.n_heads,
                                n) != LLM_OK
            || (layer->route.n_experts
                && (llm_split_evenly(l, i, "row", d->hp.n_embd, n) != LLM_OK
                    || llm_split_evenly(l, i, "row", layer->n_ff_expert, n)
                       != LLM_OK)))
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_split_open(llm_load_t *l, const llm_backend_list_t *list,
    const llm_exec_opts_t *o)
{
    uint32_t       i;
    llm_exec_t    *execs[LLM_MAX_DEVICES];
    llm_model_t   *m = l->m;
    llm_member_t  *one;

    if (list->n == 1) {
        return llm_fail(l->err, "%s: split=rows: device=%s is a single device; "
                        "cuda:0,1 are two", llm_gguf_name(m->gguf),
                        l->opts->device ? l->opts->device : "auto");
    }

    if (llm_split_check(l, list->n) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < list->n; i++) {
        one = &m->members[i];
        strcpy(one->name, list->name[i]);

        if (llm_backend_open(one->name, l->opts->backend_dir, m->devices, o,
                             &one->exec, l->err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        m->n_members++;
        execs[i] = one->exec;
    }

    if (llm_team_create(execs, list->n, &m->parts[0].exec, l->err) != LLM_OK) {
        return LLM_ERROR;
    }

    m->ops = m->parts[0].exec->ops;

    return LLM_OK;
}


void
llm_split_close(llm_model_t *m)
{
    uint32_t  i;

    if (m->parts[0].exec) {
        m->ops->close(m->parts[0].exec);
    }

    for (i = 0; i < m->n_members; i++) {
        llm_devices_close(m->devices, m->members[i].exec);
    }
}
