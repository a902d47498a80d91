/*
 * llm_model: a model and its parameters.  A wrong parameter is an error with
 * file and line.  The model's file is checked in ngx_http_llm_model_check.c.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_model_param.h"
#include "http/conf/ngx_http_llm_param.h"


static char *ngx_http_llm_model_param(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_str_t *value, ngx_uint_t *seen);
static char *ngx_http_llm_model_num(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_size(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_time(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_retry(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_text(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_date(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_range(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value, int64_t n, const char *what, const char *unit);
static char *ngx_http_llm_model_aliases(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_fp8(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_kv(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_products(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_flag(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_unique(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_model_t *model);


/*
 * A parameter of an existing kind needs only a row here.  The engine gets the
 * members of `engine` unchanged.
 */

#define at(field)  offsetof(ngx_http_llm_model_t, field)

static ngx_http_llm_param_t  ngx_http_llm_params[] = {

    { ngx_string("alias="), ngx_http_llm_model_aliases, 0, 0, 0 },

    { ngx_string("ctx="), ngx_http_llm_model_num,
      at(engine.ctx), 1, 1 << 24 },

    { ngx_string("parallel="), ngx_http_llm_model_num,
      at(engine.parallel), 1, 1 << 16 },

    { ngx_string("queue="), ngx_http_llm_model_num,
      at(queue), 0, 1 << 20 },

    { ngx_string("threads="), ngx_http_llm_model_num,
      at(engine.threads), 1, 1024 },

    { ngx_string("device="), ngx_http_llm_model_device, 0, 0, 0 },

    { ngx_string("split="), ngx_http_llm_model_split, 0, 0, 0 },

    { ngx_string("weights="), ngx_http_llm_model_fp8,
      at(engine.weights_fp8), 0, 0 },

    { ngx_string("kv="), ngx_http_llm_model_kv, 0, 0, 0 },

    { ngx_string("products="), ngx_http_llm_model_products,
      at(engine.products), 0, 0 },

    { ngx_string("speculate="), ngx_http_llm_model_speculate, 0, 0, 0 },

    { ngx_string("kv_cache="), ngx_http_llm_model_size,
      at(engine.kv_cache), 65536, (int64_t) 1 << 46 },

    { ngx_string("batch="), ngx_http_llm_model_num,
      at(engine.batch), 1, 1 << 20 },

    { ngx_string("max_tokens="), ngx_http_llm_model_num,
      at(max_tokens), 1, 1 << 24 },

    { ngx_string("template="), ngx_http_llm_model_template, 0, 0, 0 },

    { ngx_string("mmproj="), ngx_http_llm_model_mmproj, 0, 0, 0 },

    { ngx_string("packed="), ngx_http_llm_model_packed, 0, 0, 0 },

    { ngx_string("idle="), ngx_http_llm_model_time,
      at(engine.idle_s), 1, NGX_HTTP_LLM_MOST_S },

    { ngx_string("warmup="), ngx_http_llm_model_warmup, 0, 0, 0 },

    { ngx_string("warmup"), ngx_http_llm_model_flag,
      at(engine.warmup), 0, 0 },

    { ngx_string("retry="), ngx_http_llm_model_retry,
      at(engine.retry_s), 1, 86400 },

    { ngx_string("owner="), ngx_http_llm_model_text,
      at(owner), 0, 0 },

    { ngx_string("deprecated="), ngx_http_llm_model_date,
      at(deprecated), 0, 0 },

    { ngx_string("sunset="), ngx_http_llm_model_date,
      at(sunset), 0, 0 },

    { ngx_string("successor="), ngx_http_llm_model_text,
      at(successor), 0, 0 },

    { ngx_string("required"), ngx_http_llm_model_flag,
      at(required), 0, 0 },

    { ngx_string("lazy"), ngx_http_llm_model_flag,
      at(engine.lazy), 0, 0 },

    { ngx_string("default"), ngx_http_llm_model_flag,
      at(is_default), 0, 0 },

    { ngx_null_string, NULL, 0, 0, 0 }
};

#undef at


void
ngx_http_llm_model_defaults(ngx_http_llm_model_t *model)
{
    ngx_memzero(model, sizeof(ngx_http_llm_model_t));

    model->max_tokens = -1;
    model->queue = -1;
    ngx_str_set(&model->owner, "nginx");

    model->engine.device = "auto";
    model->engine.retry_s = 1;
}


/* llm_model NAME PATH [name=value ...] [lazy] [default] */

char *
ngx_http_llm_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_main_conf_t *mcf = conf;

    char                  *rv;
    llm_err_t              err;
    ngx_str_t             *value;
    ngx_uint_t             i, seen;
    ngx_http_llm_model_t  *model;

    if (mcf->models.nelts == LLM_MAX_MODELS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "more than %d models", LLM_MAX_MODELS);
        return NGX_CONF_ERROR;
    }

    model = ngx_array_push(&mcf->models);
    if (model == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_http_llm_model_defaults(model);

    value = cf->args->elts;

    if (value[1].len == 0 || value[2].len == 0) {
        return "has an empty name or path";
    }

    if (!ngx_http_llm_is_text(&value[1])) {
        return "has a name with control characters or invalid UTF-8";
    }

    model->name = value[1];
    model->path = value[2];
    model->file = cf->conf_file->file.name;
    model->line = cf->conf_file->line;

    if (ngx_conf_full_name(cf->cycle, &model->path, 1) != NGX_OK
        || ngx_array_init(&model->aliases, cf->pool, 2, sizeof(ngx_str_t))
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_llm_check_swapped(cf, model, &value[2]) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    model->engine.name = (char *) model->name.data;
    model->engine.path = (char *) model->path.data;

    seen = 0;

    for (i = 3; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_model_param(cf, model, &value[i], &seen);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (model->engine.split_rows
        && ngx_strchr(model->engine.device, ',') == NULL)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "model \"%V\": \"split=rows\" "
                           "needs several devices, as in \"device=cuda:0,1\"",
                           &model->name);
        return NGX_CONF_ERROR;
    }

    if (llm_kv_cache_check(model->engine.device, model->engine.kv_cache, &err)
        != LLM_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "model \"%V\": %s",
                           &model->name, err.msg);
        return NGX_CONF_ERROR;
    }

    return ngx_http_llm_unique(cf, mcf, model);
}


/* seen has a bit for each parameter, because each may be given only once */

static char *
ngx_http_llm_model_param(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *value, ngx_uint_t *seen)
{
    ngx_str_t              v;
    ngx_uint_t             bit;
    ngx_http_llm_param_t  *param;

    for (param = ngx_http_llm_params; param->name.len; param++) {

        if (value->len < param->name.len
            || ngx_memcmp(value->data, param->name.data, param->name.len)
               != 0)
        {
            continue;
        }

        v.data = value->data + param->name.len;
        v.len = value->len - param->name.len;

        /* a flag must be the whole word */

        if (v.len && param->name.data[param->name.len - 1] != '=') {
            continue;
        }

        bit = (ngx_uint_t) 1 << (param - ngx_http_llm_params);

        if (*seen & bit) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate parameter \"%V\" of model \"%V\"",
                               value, &model->name);
            return NGX_CONF_ERROR;
        }

        *seen |= bit;

        return param->set(cf, model, param, &v);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown parameter \"%V\" of model \"%V\"",
                       value, &model->name);

    return NGX_CONF_ERROR;
}


/* sets a uint32_t, or an int32_t */

static char *
ngx_http_llm_model_num(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    int64_t   got;
    uint64_t  n;

    /* -1, not 0, if the value is wrong: some parameters may be 0 */

    got = llm_count((char *) value->data, value->len, param->max, &n) == LLM_OK
          ? (int64_t) n : -1;

    *(uint32_t *) ((char *) model + param->offset) = got;

    return ngx_http_llm_model_range(cf, model, param, value, got,
                                    "a number such as \"512\" or \"8k\"",
                                    "");
}


/* sets a size_t */

static char *
ngx_http_llm_model_size(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    off_t  n;

    n = ngx_parse_offset(value);

    *(size_t *) ((char *) model + param->offset) = n;

    return ngx_http_llm_model_range(cf, model, param, value, n,
                                    "a size such as \"512m\" or \"8g\"",
                                    " bytes");
}


/* sets a uint32_t, in seconds */

static char *
ngx_http_llm_model_time(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    ngx_int_t  n;

    n = ngx_parse_time(value, 1);

    *(uint32_t *) ((char *) model + param->offset) = n;

    return ngx_http_llm_model_range(cf, model, param, value, n,
                                    "a time such as \"90s\", \"5m\" or "
                                    "\"1h\"", " seconds");
}


/* sets a uint32_t, in seconds; 0 for "off" */

static char *
ngx_http_llm_model_retry(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (value->len == 3 && ngx_memcmp(value->data, "off", 3) == 0) {
        *(uint32_t *) ((char *) model + param->offset) = 0;
        return NGX_CONF_OK;
    }

    return ngx_http_llm_model_time(cf, model, param, value);
}


/* sets a ngx_str_t */

static char *
ngx_http_llm_model_text(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (value->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "empty \"%V\" of model \"%V\"", &param->name,
                           &model->name);
        return NGX_CONF_ERROR;
    }

    if (!ngx_http_llm_is_text(value)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"%V\" of model \"%V\" has control characters or "
                           "invalid UTF-8", &param->name, &model->name);
        return NGX_CONF_ERROR;
    }

    *(ngx_str_t *) ((char *) model + param->offset) = *value;

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_model_date(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (ngx_http_llm_read_date(value, (ngx_http_llm_date_t *)
                                      ((char *) model + param->offset))
        == NGX_OK)
    {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V%V\" of model \"%V\", it must be "
                       "a date such as \"2026-12-31\" or "
                       "\"2026-12-31T12:00:00Z\"",
                       &param->name, value, &model->name);

    return NGX_CONF_ERROR;
}


/* n is NGX_ERROR, below every minimum, if the value could not be parsed */

static char *
ngx_http_llm_model_range(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value, int64_t n,
    const char *what, const char *unit)
{
    if (n >= param->min && n <= param->max) {
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V%V\" of model \"%V\", it must be "
                       "%s, between %L and %L%s",
                       &param->name, value, &model->name, what, param->min,
                       param->max, unit);

    return NGX_CONF_ERROR;
}


/* sets an int */

static char *
ngx_http_llm_model_flag(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    *(int *) ((char *) model + param->offset) = 1;

    return NGX_CONF_OK;
}


/* sets an int; "fp8" is the only value */

static char *
ngx_http_llm_model_fp8(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (value->len == 3 && ngx_memcmp(value->data, "fp8", 3) == 0) {
        *(int *) ((char *) model + param->offset) = 1;
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V%V\" of model \"%V\", it must be "
                       "\"fp8\"", &param->name, value, &model->name);

    return NGX_CONF_ERROR;
}


/* sets a string to a word of the engine's */

static char *
ngx_http_llm_model_products(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    const char  *word;

    word = llm_products_word((char *) value->data, value->len);

    if (word) {
        *(const char **) ((char *) model + param->offset) = word;
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V%V\" of model \"%V\", it must be "
                       LLM_PRODUCTS_WORDS, &param->name, value, &model->name);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_llm_model_kv(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    if (value->len == 3 && ngx_memcmp(value->data, "fp8", 3) == 0) {
        model->engine.kv_fp8 = 1;
        return NGX_CONF_OK;
    }

    if (value->len == 4 && ngx_memcmp(value->data, "q8_0", 4) == 0) {
        model->engine.kv_q8 = 1;
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V%V\" of model \"%V\", it must be "
                       "\"fp8\" or \"q8_0\"", &param->name, value,
                       &model->name);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_llm_model_aliases(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    u_char     *p, *last, *comma;
    ngx_str_t  *alias;

    if (!ngx_http_llm_is_text(value)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "an alias of model \"%V\" has control characters "
                           "or invalid UTF-8", &model->name);
        return NGX_CONF_ERROR;
    }

    p = value->data;
    last = p + value->len;

    for ( ;; ) {
        comma = ngx_strlchr(p, last, ',');
        if (comma == NULL) {
            comma = last;
        }

        if (comma == p) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "empty alias of model \"%V\"", &model->name);
            return NGX_CONF_ERROR;
        }

        alias = ngx_array_push(&model->aliases);
        if (alias == NULL) {
            return NGX_CONF_ERROR;
        }

        alias->data = p;
        alias->len = comma - p;

        if (comma == last) {
            return NGX_CONF_OK;
        }

        p = comma + 1;
    }
}


/* names and aliases must be unique, and only one model may be the default */

static char *
ngx_http_llm_unique(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_model_t *model)
{
    ngx_str_t             *alias, *name;
    ngx_int_t              owner;
    ngx_uint_t             i, n;
    ngx_http_llm_model_t  *models;

    alias = model->aliases.elts;
    models = mcf->models.elts;

    /* find_model() must also search this model's aliases, but only those
       before the alias that is being checked */

    n = model->aliases.nelts;
    model->aliases.nelts = 0;

    for (i = 0; i <= n; i++) {
        name = (i == 0) ? &model->name : &alias[i - 1];
        owner = ngx_http_llm_find_model(mcf, name);

        if (owner >= 0 && !(i == 0 && &models[owner] == model)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "duplicate model name or alias \"%V\"", name);
            return NGX_CONF_ERROR;
        }

        model->aliases.nelts = i;
    }

    model->aliases.nelts = n;

    for (i = 0; model->is_default && i < mcf->models.nelts - 1; i++) {
        if (models[i].is_default) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "models \"%V\" and \"%V\" are both default",
                               &models[i].name, &model->name);
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}
