/*
 * Calls the hooks of the subjects when models, zones and workers begin, change
 * or end; see ngx_http_llm_life_t.
 */

#include "http/conf/ngx_http_llm_conf.h"


ngx_int_t
ngx_http_llm_add_life(ngx_conf_t *cf, const ngx_http_llm_life_t *life)
{
    ngx_http_llm_main_conf_t       *mcf;
    const ngx_http_llm_life_t  **s;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    s = ngx_array_push(&mcf->lives);
    if (s == NULL) {
        return NGX_ERROR;
    }

    *s = life;

    return NGX_OK;
}


size_t
ngx_http_llm_lives_each(ngx_http_llm_main_conf_t *mcf)
{
    size_t                          each;
    ngx_uint_t                      i;
    const ngx_http_llm_life_t  **s;

    s = mcf->lives.elts;
    each = 0;

    for (i = 0; i < mcf->lives.nelts; i++) {
        each += s[i]->each;
    }

    return each;
}


ngx_int_t
ngx_http_llm_on_zone(ngx_http_llm_main_conf_t *mcf, ngx_slab_pool_t *shpool,
    ngx_log_t *log)
{
    ngx_uint_t                      i;
    const ngx_http_llm_life_t  **s;

    s = mcf->lives.elts;

    for (i = 0; i < mcf->lives.nelts; i++) {
        if (s[i]->zone && s[i]->zone(mcf, shpool, log) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_llm_on_renamed(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model)
{
    ngx_uint_t                      i;
    const ngx_http_llm_life_t  **s;

    s = mcf->lives.elts;

    for (i = 0; i < mcf->lives.nelts; i++) {
        if (s[i]->renamed) {
            s[i]->renamed(mcf, model);
        }
    }
}


void
ngx_http_llm_on_quit(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t                      i;
    const ngx_http_llm_life_t  **s;

    s = mcf->lives.elts;

    for (i = 0; i < mcf->lives.nelts; i++) {
        if (s[i]->quit) {
            s[i]->quit(mcf);
        }
    }
}


ngx_uint_t
ngx_http_llm_is_replaced(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model, uint32_t *media)
{
    ngx_uint_t                      i;
    const ngx_http_llm_life_t  **s;

    s = mcf->lives.elts;

    for (i = 0; i < mcf->lives.nelts; i++) {
        if (s[i]->replaces && s[i]->replaces(cf, mcf, model, media)) {
            return 1;
        }
    }

    return 0;
}


ngx_int_t
ngx_http_llm_set_aliases(ngx_http_llm_main_conf_t *mcf, ngx_pool_t *pool,
    llm_admin_alias_t **list, ngx_uint_t *n)
{
    ngx_uint_t                      i;
    const ngx_http_llm_life_t  **s;

    s = mcf->lives.elts;
    *list = NULL;
    *n = 0;

    for (i = 0; *n == 0 && i < mcf->lives.nelts; i++) {
        if (s[i]->aliases && s[i]->aliases(mcf, pool, list, n) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
