/*
 * Finds the models of a configuration by name, and decides what happens if a
 * model cannot be used.
 *
 * A model file that is missing or broken is not an error of the configuration,
 * unless the model is `required`: the reason is logged, nginx serves the other
 * models, and requests for this one get 503 with the reason.  But a reload
 * fails if the running configuration serves the model.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


static ngx_uint_t ngx_http_llm_served_now(ngx_cycle_t *cycle,
    ngx_http_llm_model_t *model, ngx_uint_t *same);


ngx_int_t
ngx_http_llm_find_model(ngx_http_llm_main_conf_t *mcf, ngx_str_t *name)
{
    ngx_str_t             *alias;
    ngx_uint_t             i, j;
    ngx_http_llm_model_t  *model;

    model = mcf->models.elts;

    for (i = 0; name->len && i < mcf->models.nelts; i++) {

        if (model[i].name.len == name->len
            && ngx_memcmp(model[i].name.data, name->data, name->len) == 0)
        {
            return i;
        }

        alias = model[i].aliases.elts;

        for (j = 0; j < model[i].aliases.nelts; j++) {
            if (alias[j].len == name->len
                && ngx_memcmp(alias[j].data, name->data, name->len) == 0)
            {
                return i;
            }
        }
    }

    return -1;
}


llm_str_t
ngx_http_llm_text(ngx_str_t *s)
{
    llm_str_t  text;

    text.len = s->len;
    text.data = (char *) s->data;

    return text;
}


static ngx_uint_t
ngx_http_llm_is_gguf(ngx_str_t *s)
{
    return s->len > 5
           && ngx_strncasecmp(s->data + s->len - 5, (u_char *) ".gguf", 5)
              == 0;
}


char *
ngx_http_llm_check_swapped(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *path)
{
    ngx_file_info_t   fi;

    if ((!ngx_http_llm_is_gguf(&model->name) && model->name.data[0] != '/')
        || ngx_http_llm_is_gguf(path)
        || ngx_file_info(model->path.data, &fi) != NGX_FILE_ERROR)
    {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "a model's name comes before its path, and there is no "
                       "file \"%V\": did you mean \"llm_model %V %V\"?",
                       &model->path, path, &model->name);

    return NGX_CONF_ERROR;
}


ngx_int_t
ngx_http_llm_unusable(ngx_cycle_t *cycle, ngx_http_llm_model_t *model,
    const char *why)
{
    ngx_uint_t  served, same;

    served = ngx_http_llm_served_now(cycle, model, &same);

    if (served && (same || !model->required)) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "model \"%V\" is not usable any more, the running "
                      "configuration continues with the loaded one: %s",
                      &model->name, why);
        return NGX_ERROR;
    }

    if (model->required) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "model \"%V\" is required and not usable: %s in %V:%ui",
                      &model->name, why, &model->file, model->line);
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_ERR, cycle->log, 0,
                  "model \"%V\" is not usable: %s", &model->name, why);

    return NGX_OK;
}


ngx_http_llm_main_conf_t *
ngx_http_llm_old_conf(ngx_cycle_t *cycle)
{
    ngx_uint_t    i;
    ngx_cycle_t  *old;

    old = cycle->old_cycle;

    if (ngx_is_init_cycle(old) || old->modules == NULL) {
        return NULL;
    }

    /* the old configuration may not have loaded this module */

    for (i = 0; old->modules[i] != &ngx_http_llm_module; i++) {
        if (old->modules[i] == NULL) {
            return NULL;
        }
    }

    return ngx_http_cycle_get_module_main_conf(old, ngx_http_llm_module);
}


/*
 * Is the model ready in the configuration that a reload would replace, or still
 * loading there without an error, for instance soon after another reload?  The
 * models are compared by name, which is what clients ask for; same: both have
 * the same file.
 */

static ngx_uint_t
ngx_http_llm_served_now(ngx_cycle_t *cycle, ngx_http_llm_model_t *model,
    ngx_uint_t *same)
{
    ngx_uint_t                 i;
    llm_model_status_t         st;
    ngx_http_llm_model_t      *m;
    ngx_http_llm_main_conf_t  *mcf;

    *same = 0;
    mcf = ngx_http_llm_old_conf(cycle);

    if (mcf == NULL || mcf->zone == NULL || !llm_zone_alive(mcf->zone)) {
        return 0;
    }

    m = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts - mcf->nadded; i++) {

        if (m[i].name.len == model->name.len
            && ngx_memcmp(m[i].name.data, model->name.data,
                          model->name.len) == 0)
        {
            *same = m[i].path.len == model->path.len
                    && ngx_memcmp(m[i].path.data, model->path.data,
                                  model->path.len) == 0;
            llm_zone_status(mcf->zone, i, &st);

            return st.state == LLM_MODEL_READY
                   || (st.state == LLM_MODEL_LOADING && st.error[0] == '\0');
        }
    }

    return 0;
}
