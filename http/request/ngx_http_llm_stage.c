/*
 * Calls the hooks of the subjects at each stage of a request's life; see
 * ngx_http_llm_stage.h.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


/* array of pointers that ends with NULL */

#define ngx_http_llm_stages(mcf)  ((mcf)->stages.elts)


ngx_int_t
ngx_http_llm_add_stage(ngx_conf_t *cf, ngx_http_llm_stage_t *stage)
{
    ngx_http_llm_stage_t      **s;
    ngx_http_llm_main_conf_t   *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    s = ngx_array_push(&mcf->stages);
    if (s == NULL) {
        return NGX_ERROR;
    }

    s[0] = NULL;
    s[-1] = stage;

    stage->index = mcf->stages.nelts - 2;

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_create_data(ngx_http_llm_ctx_t *ctx)
{
    ctx->data = ngx_pcalloc(ctx->request->pool,
                            ctx->main->stages.nelts * sizeof(void *));

    return ctx->data ? NGX_OK : NGX_ERROR;
}


ngx_int_t
ngx_http_llm_on_begin(ngx_http_llm_ctx_t *ctx, llm_err_t *err)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->begin && (*s)->begin(ctx, err) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_llm_on_allow(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->allow) {
            (*s)->allow(ctx, conf);
        }
    }
}


void
ngx_http_llm_on_tenant(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->tenant) {
            (*s)->tenant(ctx);
        }
    }
}


ngx_int_t
ngx_http_llm_on_body(ngx_http_llm_body_t *body)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(body->ctx->main); *s; s++) {
        if ((*s)->body && (*s)->body(body) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_llm_on_input(ngx_http_llm_body_t *body, u_char *p, size_t len)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(body->ctx->main); *s; s++) {
        if ((*s)->input) {
            (*s)->input(body, p, len);
        }
    }
}


ngx_int_t
ngx_http_llm_on_parsed(ngx_http_llm_body_t *body)
{
    ngx_int_t               rc;
    ngx_http_llm_stage_t  **s, *stage;

    s = ngx_http_llm_stages(body->ctx->main);

    for (rc = NGX_OK; rc == NGX_OK && s[body->stage]; ) {
        stage = s[body->stage++];
        rc = stage->parsed ? stage->parsed(body) : NGX_OK;
    }

    return rc;
}


void
ngx_http_llm_on_returned(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->returned) {
            (*s)->returned(ctx);
        }
    }
}


ngx_int_t
ngx_http_llm_on_prepared(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev,
    llm_err_t *err)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->prepared && (*s)->prepared(ctx, ev, err) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


void
ngx_http_llm_on_event(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {

        if (ev->type == LLM_EV_START && (*s)->start) {
            (*s)->start(ctx, ev);

        } else if (ev->type == LLM_EV_TEXT && (*s)->text) {
            (*s)->text(ctx, ev);

        } else if ((ev->type == LLM_EV_DONE || ev->type == LLM_EV_ERROR)
                   && (*s)->end)
        {
            (*s)->end(ctx, ev);
        }
    }
}


void
ngx_http_llm_on_end(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->end) {
            (*s)->end(ctx, NULL);
        }
    }
}


void
ngx_http_llm_on_bytes(ngx_http_llm_ctx_t *ctx, const char *data, size_t len)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->bytes) {
            (*s)->bytes(ctx, data, len);
        }
    }
}


void
ngx_http_llm_on_whole(ngx_http_llm_ctx_t *ctx, ngx_uint_t ok)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->whole) {
            (*s)->whole(ctx, ok);
        }
    }
}


void
ngx_http_llm_on_cleanup(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_stage_t  **s;

    for (s = ngx_http_llm_stages(ctx->main); *s; s++) {
        if ((*s)->cleanup) {
            (*s)->cleanup(ctx);
        }
    }
}


ngx_int_t
ngx_http_llm_on_headers(ngx_http_request_t *r)
{
    ngx_http_llm_stage_t      **s;
    ngx_http_llm_main_conf_t   *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    for (s = ngx_http_llm_stages(mcf); *s; s++) {
        if ((*s)->headers && (*s)->headers(r) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}
