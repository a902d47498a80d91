/*
 * Parameters of llm_model that name files and devices, and how a model is on
 * these.
 */

#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_model_param.h"


char *
ngx_http_llm_model_template(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    llm_err_t  err;

    if (value->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "empty \"template=\" of model \"%V\"",
                           &model->name);
        return NGX_CONF_ERROR;
    }

    model->template_path = *value;

    if (ngx_conf_full_name(cf->cycle, &model->template_path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (llm_template_file_check((char *) model->template_path.data, &err)
        != LLM_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "template of model \"%V\": %s",
                           &model->name, err.msg);
        return NGX_CONF_ERROR;
    }

    model->engine.template_path = (char *) model->template_path.data;

    return NGX_CONF_OK;
}


/* the file is checked with the model's, in ngx_http_llm_model_check.c */

char *
ngx_http_llm_model_mmproj(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (value->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "empty \"mmproj=\" of model \"%V\"",
                           &model->name);
        return NGX_CONF_ERROR;
    }

    model->mmproj = *value;

    if (ngx_conf_full_name(cf->cycle, &model->mmproj, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    model->engine.mmproj = (char *) model->mmproj.data;

    return NGX_CONF_OK;
}


char *
ngx_http_llm_model_warmup(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (value->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "empty \"warmup=\" of model \"%V\"",
                           &model->name);
        return NGX_CONF_ERROR;
    }

    model->warmup = *value;
    model->engine.warmup = 1;

    return ngx_conf_full_name(cf->cycle, &model->warmup, 1) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* nginx creates the folder, and gives it to the user of its workers */

char *
ngx_http_llm_model_packed(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    ngx_path_t       *path;
    ngx_file_info_t   fi;

    if (value->len == 3 && ngx_strncmp(value->data, "off", 3) == 0) {
        return NGX_CONF_OK;
    }

    if (value->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "empty \"packed=\" of model \"%V\"",
                           &model->name);
        return NGX_CONF_ERROR;
    }

    path = ngx_pcalloc(cf->pool, sizeof(ngx_path_t));
    if (path == NULL) {
        return NGX_CONF_ERROR;
    }

    path->name = *value;

    if (path->name.data[path->name.len - 1] == '/' && path->name.len > 1) {
        path->name.len--;
        path->name.data[path->name.len] = '\0';
    }

    if (ngx_conf_full_name(cf->cycle, &path->name, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (ngx_file_info(path->name.data, &fi) != NGX_FILE_ERROR
        && !ngx_is_dir(&fi))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"packed=%V\" of model \"%V\" is not a folder",
                           value, &model->name);
        return NGX_CONF_ERROR;
    }

    model->engine.packed = (char *) path->name.data;

    path->conf_file = cf->conf_file->file.name.data;
    path->line = cf->conf_file->line;

    return ngx_add_path(cf, &path) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}


char *
ngx_http_llm_model_device(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    ngx_uint_t  i;
    ngx_str_t   rest;
    llm_err_t   err;

    static struct {
        ngx_str_t   name;
        ngx_uint_t  listed;             /* ":N,N..." may follow */
        ngx_uint_t  numbered;           /* a ":N" may follow */
    } devices[] = {
        { ngx_string("auto"), 0, 0 },
        { ngx_string("cpu"), 0, 0 },
        { ngx_string("cuda"), 1, 0 },
        { ngx_string("emu"), 1, 0 },
#ifdef LLM_TEST
        { ngx_string("synthetic"), 0, 1 },
#endif
        { ngx_null_string, 0, 0 }
    };

    err.msg[0] = '\0';

    for (i = 0; devices[i].name.len; i++) {

        if (ngx_strncmp(value->data, devices[i].name.data,
                        devices[i].name.len)
            != 0)
        {
            continue;
        }

        rest.data = value->data + devices[i].name.len;
        rest.len = value->len - devices[i].name.len;

        if (rest.len == 0
            || (devices[i].numbered && rest.data[0] == ':'
                && ngx_atoi(rest.data + 1, rest.len - 1) != NGX_ERROR)
            || (devices[i].listed && rest.data[0] == ':'
                && llm_device_name_check((char *) value->data, &err)
                   == LLM_OK))
        {
            model->engine.device = (char *) value->data;
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"device=%V\" of model \"%V\", it must "
                       "be \"auto\", \"cpu\", \"cuda\", \"cuda:N\", "
                       "\"cuda:N,N\" or \"emu\"%s%s", value, &model->name,
                       err.msg[0] ? ": " : "", err.msg);

    return NGX_CONF_ERROR;
}


char *
ngx_http_llm_model_split(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "rows") == 0) {
        model->engine.split_rows = 1;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value->data, "layers") == 0) {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"split=%V\" of model \"%V\", it must be "
                       "\"layers\" or \"rows\"", value, &model->name);

    return NGX_CONF_ERROR;
}
