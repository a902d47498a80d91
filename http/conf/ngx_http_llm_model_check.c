/*
 * Checks the files, dates and warm-ups of all models, when the whole
 * configuration is read.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


char *
ngx_http_llm_check_models(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    int                    mmproj;
    char                  *rv;
    llm_err_t              err;
    uint32_t               speech;
    ngx_uint_t             i;
    llm_api_model_t       *api;
    ngx_file_info_t        fi;
    ngx_http_llm_model_t  *model;

    api = ngx_pcalloc(cf->pool, mcf->models.nelts * sizeof(llm_api_model_t));
    if (api == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->api_models = api;
    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {

        api[i].name = ngx_http_llm_text(&model[i].name);
        api[i].aliases = (llm_str_t *) model[i].aliases.elts;
        api[i].n_aliases = model[i].aliases.nelts;
        api[i].is_default = model[i].is_default;
        api[i].max_tokens = model[i].max_tokens;
        api[i].created = ngx_time();
        api[i].weights_fp8 = model[i].engine.weights_fp8 != 0;
        api[i].kv = model[i].engine.kv_fp8 ? 1
                    : model[i].engine.kv_q8 ? 2 : 0;
        api[i].products = model[i].engine.products;
        api[i].idle_s = model[i].engine.idle_s;
        api[i].owner = ngx_http_llm_text(&model[i].owner);
        api[i].deprecated = ngx_http_llm_text(&model[i].deprecated.text);
        api[i].sunset = ngx_http_llm_text(&model[i].sunset.text);
        api[i].sunset_time = model[i].sunset.time;
        api[i].successor = ngx_http_llm_text(&model[i].successor);

        if (ngx_process == NGX_PROCESS_SIGNALLER) {
            continue;
        }

        ngx_memzero(&err, sizeof(llm_err_t));
        mmproj = LLM_OK;
        speech = 0;

        if (model[i].engine.mmproj) {
            mmproj = llm_mmproj_file_check(model[i].engine.mmproj,
                                           &api[i].media, &err);
        }

        if (model[i].engine.added
            || ngx_strncmp(model[i].engine.device, "synthetic", 9) == 0)
        {
            continue;
        }

        if (mmproj == LLM_OK && ngx_http_llm_is_replaced(cf, mcf, i, &speech))
        {
            model[i].replaced = 1;
            api[i].media |= speech;
            continue;
        }

        if (ngx_file_info(model[i].path.data, &fi) != NGX_FILE_ERROR) {
            api[i].created = ngx_file_mtime(&fi);
        }

        if (mmproj != LLM_OK
            || llm_model_file_check(model[i].engine.path, &speech, &err)
               != LLM_OK
            || (speech
                && llm_speech_conf_check(&model[i].engine,
                                         model[i].engine.path, &err)
                   != LLM_OK)
            || llm_draft_file_check(&model[i].engine, &err) != LLM_OK
            || llm_device_check(model[i].engine.device, &err) != LLM_OK)
        {
            if (ngx_http_llm_unusable(cf->cycle, &model[i], err.msg)
                != NGX_OK)
            {
                return NGX_CONF_ERROR;
            }

        } else if (llm_machine_check(&model[i].engine, &err) != LLM_OK) {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0, "model \"%V\": %s",
                          &model[i].name, err.msg);
        }

        api[i].media |= speech;
    }

    for (i = 0; i < mcf->models.nelts; i++) {
        rv = ngx_http_llm_read_warmup(cf, mcf, i);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    ngx_http_llm_added_warmup(mcf);

    return ngx_http_llm_check_sunset(cf, mcf);
}
