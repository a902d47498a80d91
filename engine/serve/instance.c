/*
 * Instances are made, placed and freed; see load.h.
 */

#include "engine/serve/engine.h"

#include <stdio.h>


static int
llm_instance_dup(const char **s)
{
    if (*s) {
        *s = strdup(*s);
        return *s ? LLM_OK : LLM_ERROR;
    }

    return LLM_OK;
}


llm_instance_t *
llm_instance_create(llm_engine_t *e, uint32_t index,
    const llm_engine_model_t *conf, const char *file)
{
    int              rc;
    llm_instance_t  *m;

    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }

    m->engine = e;
    m->index = index;
    m->conf = *conf;
    m->parallel = llm_parallel(conf, 0);
    m->file = file;
    llm_jobs_init(&m->held);

    rc = llm_instance_dup(&m->conf.name);
    rc |= llm_instance_dup(&m->conf.path);
    rc |= llm_instance_dup(&m->conf.template_path);
    rc |= llm_instance_dup(&m->conf.device);
    rc |= llm_instance_dup(&m->conf.packed);
    rc |= llm_instance_dup(&m->conf.draft_path);
    rc |= llm_instance_dup(&m->conf.mmproj);
    rc |= llm_instance_dup(&m->file);

    m->env.name = m->conf.name;
    m->env.runner = &m->runner;
    m->env.max_bytes = e->max_bytes;
    m->env.pool = e->media;
    m->env.log = e->log;
    m->env.log_data = e->log_data;
    m->env.mended = &m->mended;

    m->next = e->instances;
    e->instances = m;
    llm_instance_place(m, LLM_INSTANCE_MODEL, 1);

    if (rc != LLM_OK) {
        llm_instance_free(m);
        return NULL;
    }

    return m;
}


void
llm_instance_place(llm_instance_t *m, llm_instance_role_t role, int shown)
{
    llm_zone_model_state_t  *z;

    z = &m->engine->zone->models[m->index];

    m->role = role;
    m->permille[0] = role == LLM_INSTANCE_MODEL ? &z->permille
                                              : &z->command.permille;
    m->permille[1] = role != LLM_INSTANCE_MODEL && shown ? &z->permille : NULL;
}


void
llm_instance_free(llm_instance_t *m)
{
    llm_instance_t  **p;

    for (p = &m->engine->instances; *p != m; p = &(*p)->next) { /* void */ }

    *p = m->next;

    free((char *) m->conf.name);
    free((char *) m->conf.path);
    free((char *) m->conf.template_path);
    free((char *) m->conf.device);
    free((char *) m->conf.packed);
    free((char *) m->conf.draft_path);
    free((char *) m->conf.mmproj);
    free((char *) m->file);
    free(m);
}
