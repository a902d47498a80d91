/*
 * The directives with parameters of their own: llm_model, llm_api,
 * llm_queue, llm_tenant, and the checks that need the whole configuration.
 *
 * A wrong configuration fails here with file and line.  A model file that is
 * missing or broken is not one: it is logged, nginx serves on, and requests
 * for the model get 503 with the reason.
 */

#include "ngx_http_llm_module.h"


typedef enum {
    NGX_HTTP_LLM_NUM = 0,
    NGX_HTTP_LLM_SIZE,
    NGX_HTTP_LLM_TIME
} ngx_http_llm_param_type_e;

/* a parameter "name=value" of llm_model that is a number */

typedef struct {
    ngx_str_t                    name;          /* with its "=" */
    ngx_http_llm_param_type_e    type;
    size_t                       offset;
    int64_t                      min;
    int64_t                      max;
} ngx_http_llm_param_t;


static char *ngx_http_llm_model_param(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_str_t *value, ngx_uint_t *seen);
static char *ngx_http_llm_model_number(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_http_llm_param_t *param,
    ngx_str_t *value);
static char *ngx_http_llm_model_aliases(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_str_t *value);
static char *ngx_http_llm_model_template(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_str_t *value);
static char *ngx_http_llm_model_device(ngx_conf_t *cf,
    ngx_http_llm_model_t *model, ngx_str_t *value);
static char *ngx_http_llm_unique(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_model_t *model);
static ngx_int_t ngx_http_llm_find_model(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
static char *ngx_http_llm_use(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    ngx_http_handler_pt handler);
static size_t ngx_http_llm_prefix(ngx_http_core_loc_conf_t *clcf);
static char *ngx_http_llm_check_use(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);


static ngx_http_llm_param_t  ngx_http_llm_params[] = {

    { ngx_string("ctx="), NGX_HTTP_LLM_NUM,
      offsetof(ngx_http_llm_model_t, ctx), 1, 1 << 24 },

    { ngx_string("parallel="), NGX_HTTP_LLM_NUM,
      offsetof(ngx_http_llm_model_t, parallel), 1, 1 << 16 },

    { ngx_string("threads="), NGX_HTTP_LLM_NUM,
      offsetof(ngx_http_llm_model_t, threads), 1, 1024 },

    { ngx_string("batch="), NGX_HTTP_LLM_NUM,
      offsetof(ngx_http_llm_model_t, batch), 1, 1 << 20 },

    { ngx_string("max_tokens="), NGX_HTTP_LLM_NUM,
      offsetof(ngx_http_llm_model_t, max_tokens), 1, 1 << 24 },

    { ngx_string("kv_cache="), NGX_HTTP_LLM_SIZE,
      offsetof(ngx_http_llm_model_t, kv_cache), 65536, (int64_t) 1 << 46 },

    { ngx_string("idle="), NGX_HTTP_LLM_TIME,
      offsetof(ngx_http_llm_model_t, idle), 1, 1 << 30 },

    { ngx_null_string, 0, 0, 0, 0 }
};


/* llm_model NAME PATH [name=value ...] [lazy] [default] */

char *
ngx_http_llm_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_main_conf_t *mcf = conf;

    char                  *rv;
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

    ngx_memzero(model, sizeof(ngx_http_llm_model_t));

    value = cf->args->elts;

    if (value[1].len == 0 || value[2].len == 0) {
        return "has an empty name or path";
    }

    model->name = value[1];
    model->path = value[2];
    model->parallel = 16;
    model->max_tokens = -1;
    ngx_str_set(&model->device, "auto");

    if (ngx_conf_full_name(cf->cycle, &model->path, 1) != NGX_OK
        || ngx_array_init(&model->aliases, cf->pool, 2, sizeof(ngx_str_t))
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    seen = 0;

    for (i = 3; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_model_param(cf, model, &value[i], &seen);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return ngx_http_llm_unique(cf, mcf, model);
}


/* seen has a bit for each kind of parameter: none comes twice */

static char *
ngx_http_llm_model_param(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *value, ngx_uint_t *seen)
{
    ngx_str_t              v;
    ngx_uint_t             i, n;
    ngx_http_llm_param_t  *param;

    static struct {
        ngx_str_t   name;
        char     *(*set)(ngx_conf_t *cf, ngx_http_llm_model_t *model,
                         ngx_str_t *value);
    } texts[] = {
        { ngx_string("alias="), ngx_http_llm_model_aliases },
        { ngx_string("device="), ngx_http_llm_model_device },
        { ngx_string("template="), ngx_http_llm_model_template }
    };

    if (ngx_strcmp(value->data, "default") == 0) {
        if (model->is_default) {
            return "is told \"default\" twice";
        }

        model->is_default = 1;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value->data, "lazy") == 0) {
        if (model->lazy) {
            return "is told \"lazy\" twice";
        }

        model->lazy = 1;
        return NGX_CONF_OK;
    }

    n = sizeof(texts) / sizeof(texts[0]);
    param = ngx_http_llm_params;

    for (i = 0; i < n; i++) {
        if (ngx_strncmp(value->data, texts[i].name.data, texts[i].name.len)
            == 0)
        {
            break;
        }
    }

    if (i == n) {
        for ( /* void */ ; param->name.len; param++, i++) {
            if (ngx_strncmp(value->data, param->name.data, param->name.len)
                == 0)
            {
                break;
            }
        }

        if (param->name.len == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown parameter \"%V\" of model \"%V\"",
                               value, &model->name);
            return NGX_CONF_ERROR;
        }
    }

    if (*seen & (1 << i)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate parameter \"%V\"", value);
        return NGX_CONF_ERROR;
    }

    *seen |= 1 << i;

    v = *value;

    if (i >= n) {
        v.data += param->name.len;
        v.len -= param->name.len;
        return ngx_http_llm_model_number(cf, model, param, &v);
    }

    v.data += texts[i].name.len;
    v.len -= texts[i].name.len;

    return texts[i].set(cf, model, &v);
}


static char *
ngx_http_llm_model_number(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_http_llm_param_t *param, ngx_str_t *value)
{
    char     *field;
    int64_t   n;

    switch (param->type) {

    case NGX_HTTP_LLM_SIZE:
        n = ngx_parse_offset(value);
        break;

    case NGX_HTTP_LLM_TIME:
        n = ngx_parse_time(value, 1);
        break;

    default:
        n = ngx_atoi(value->data, value->len);
    }

    if (n == NGX_ERROR || n < param->min || n > param->max) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V%V\" of model \"%V\", it must "
                           "be between %L and %L",
                           &param->name, value, &model->name,
                           param->min, param->max);
        return NGX_CONF_ERROR;
    }

    field = (char *) model + param->offset;

    switch (param->type) {

    case NGX_HTTP_LLM_SIZE:
        *(size_t *) field = n;
        break;

    case NGX_HTTP_LLM_TIME:
        *(time_t *) field = n;
        break;

    default:
        *(ngx_int_t *) field = n;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_model_aliases(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *value)
{
    u_char     *p, *last, *comma;
    ngx_str_t  *alias;

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


static char *
ngx_http_llm_model_template(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *value)
{
    ngx_fd_t  fd;

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

    fd = ngx_open_file(model->template_path.data, NGX_FILE_RDONLY,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " template \"%V\" of model "
                           "\"%V\" failed",
                           &model->template_path, &model->name);
        return NGX_CONF_ERROR;
    }

    (void) ngx_close_file(fd);

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_model_device(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *value)
{
    ngx_uint_t  i;
    ngx_str_t   rest;

    static struct {
        ngx_str_t   name;
        ngx_uint_t  numbered;           /* a ":N" may follow */
    } devices[] = {
        { ngx_string("auto"), 0 },
        { ngx_string("cpu"), 0 },
        { ngx_string("cuda"), 1 },
        { ngx_string("emu"), 0 },
#ifdef LLM_TEST
        { ngx_string("synthetic"), 1 },
#endif
        { ngx_null_string, 0 }
    };

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
                && ngx_atoi(rest.data + 1, rest.len - 1) != NGX_ERROR))
        {
            model->device = *value;
            return NGX_CONF_OK;
        }
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"device=%V\" of model \"%V\", it must "
                       "be \"auto\", \"cpu\", \"cuda\", \"cuda:N\" or "
                       "\"emu\"", value, &model->name);

    return NGX_CONF_ERROR;
}


/* neither a name nor an alias is taken twice; one default */

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

    /* find_model() looks into this one's aliases too, but for those behind
       the alias in question */

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


/* index of the model with this name or alias, or -1 */

static ngx_int_t
ngx_http_llm_find_model(ngx_http_llm_main_conf_t *mcf, ngx_str_t *name)
{
    ngx_str_t             *alias;
    ngx_uint_t             i, j;
    ngx_http_llm_model_t  *model;

    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {

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


/* llm_queue N [timeout=TIME] */

char *
ngx_http_llm_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_main_conf_t *mcf = conf;

    ngx_str_t  *value, s;

    if (mcf->queue != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    mcf->queue = ngx_atoi(value[1].data, value[1].len);

    if (mcf->queue == NGX_ERROR || mcf->queue > (1 << 20)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of requests \"%V\"", &value[1]);
        return NGX_CONF_ERROR;
    }

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value[2].data, "timeout=", 8) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown parameter \"%V\"", &value[2]);
        return NGX_CONF_ERROR;
    }

    s.data = value[2].data + 8;
    s.len = value[2].len - 8;

    mcf->queue_timeout = ngx_parse_time(&s, 0);

    if (mcf->queue_timeout == (ngx_msec_t) NGX_ERROR
        || mcf->queue_timeout == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid timeout \"%V\"", &value[2]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* llm_tenant $value [weight=$value] */

char *
ngx_http_llm_tenant(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    ngx_str_t                         *value, s;
    ngx_uint_t                         i;
    ngx_http_complex_value_t         **cv;
    ngx_http_compile_complex_value_t   ccv;

    if (llcf->tenant) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        s = value[i];
        cv = &llcf->tenant;

        if (i == 2) {
            if (ngx_strncmp(s.data, "weight=", 7) != 0) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "unknown parameter \"%V\"", &s);
                return NGX_CONF_ERROR;
            }

            s.data += 7;
            s.len -= 7;
            cv = &llcf->weight;
        }

        *cv = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
        if (*cv == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

        ccv.cf = cf;
        ccv.value = &s;
        ccv.complex_value = *cv;

        if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    return NGX_CONF_OK;
}


/* llm_api [MODEL ...] [fallback=MODEL] */

char *
ngx_http_llm_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    char                      *rv;
    ngx_str_t                 *value, *name;
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;

    rv = ngx_http_llm_use(cf, llcf, ngx_http_llm_api_handler);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    name = ngx_palloc(cf->pool, cf->args->nelts * sizeof(ngx_str_t));
    if (name == NULL) {
        return NGX_CONF_ERROR;
    }

    llcf->api = 1;
    llcf->names = name;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "fallback=", 9) != 0) {
            name[llcf->nnames++] = value[i];
            continue;
        }

        if (llcf->fallback_name.len) {
            return "has two \"fallback=\" parameters";
        }

        llcf->fallback_name.data = value[i].data + 9;
        llcf->fallback_name.len = value[i].len - 9;

        if (llcf->fallback_name.len == 0) {
            return "has an empty \"fallback=\" parameter";
        }
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    llcf->prefix = ngx_http_llm_prefix(clcf);

    return NGX_CONF_OK;
}


char *
ngx_http_llm_health(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    return ngx_http_llm_use(cf, conf, ngx_http_llm_health_handler);
}


/* llm_metrics [prometheus | json] */

char *
ngx_http_llm_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    ngx_str_t  *value;

    value = cf->args->elts;

    if (cf->args->nelts == 2) {

        if (ngx_strcmp(value[1].data, "json") == 0) {
            llcf->metrics_json = 1;

        } else if (ngx_strcmp(value[1].data, "prometheus") != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown format \"%V\", it must be "
                               "\"prometheus\" or \"json\"", &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    return ngx_http_llm_use(cf, llcf, ngx_http_llm_metrics_handler);
}


/* a location that needs models; whether there are any is checked later */

static char *
ngx_http_llm_use(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    ngx_http_handler_pt handler)
{
    ngx_str_t                  *value;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_llm_loc_conf_t   **use;
    ngx_http_llm_main_conf_t   *mcf;

    value = cf->args->elts;
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler == handler) {
        return "is duplicate";
    }

    if (clcf->handler) {
        return "meets another content handler in this location";
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    use = ngx_array_push(&mcf->uses);
    if (use == NULL) {
        return NGX_CONF_ERROR;
    }

    *use = llcf;

    llcf->directive = (char *) value[0].data;
    llcf->line = cf->conf_file->line;
    llcf->file = cf->conf_file->file.name;

    llcf->handler = handler;
    llcf->core = clcf;

    clcf->handler = handler;

    return NGX_CONF_OK;
}


/*
 * Bytes of the URI in front of the API's path: the location's prefix, of
 * which "/v1/chat" and the like only count up to the "/v1/".  0 for exact,
 * regex and named locations: there the path is looked for in each URI.
 */

static size_t
ngx_http_llm_prefix(ngx_http_core_loc_conf_t *clcf)
{
    u_char  *v1;

#if (NGX_PCRE)
    if (clcf->regex) {
        return 0;
    }
#endif

    if (clcf->exact_match || clcf->named || clcf->name.len == 0) {
        return 0;
    }

    v1 = ngx_strnstr(clcf->name.data, "/v1/", clcf->name.len);

    return v1 ? (size_t) (v1 + 4 - clcf->name.data) : clcf->name.len;
}


char *
ngx_http_llm_check_uses(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    char                      *rv;
    ngx_uint_t                 i;
    ngx_http_llm_loc_conf_t  **llcf;

    llcf = mcf->uses.elts;

    for (i = 0; i < mcf->uses.nelts; i++) {
        rv = ngx_http_llm_check_use(cf, mcf, llcf[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_check_use(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf)
{
    ngx_int_t    model;
    ngx_str_t   *name;
    ngx_uint_t   i;

    if (mcf->models.nelts == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" without any \"llm_model\" in %V:%ui",
                      llcf->directive, &llcf->file, llcf->line);
        return NGX_CONF_ERROR;
    }

    /* whoever came later has put its own handler there in silence */

    if (llcf->core->handler != llcf->handler) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" meets another content handler in its location "
                      "in %V:%ui",
                      llcf->directive, &llcf->file, llcf->line);
        return NGX_CONF_ERROR;
    }

    llcf->fallback = -1;
    llcf->allowed = ((uint64_t) 1 << mcf->models.nelts) - 1;

    if (llcf->nnames) {
        llcf->allowed = 0;
    }

    for (i = 0; i <= llcf->nnames; i++) {

        if (i < llcf->nnames) {
            name = &llcf->names[i];

        } else if (llcf->fallback_name.len) {
            name = &llcf->fallback_name;

        } else {
            break;
        }

        model = ngx_http_llm_find_model(mcf, name);

        if (model < 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"llm_api\" names \"%V\", but there is no such "
                          "\"llm_model\" in %V:%ui",
                          name, &llcf->file, llcf->line);
            return NGX_CONF_ERROR;
        }

        llcf->allowed |= (uint64_t) 1 << model;

        if (i == llcf->nnames) {
            llcf->fallback = model;
        }
    }

    return NGX_CONF_OK;
}


/* the models as the API shows them; broken files are named in the log */

char *
ngx_http_llm_check_models(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    llm_err_t              err;
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

        /* ngx_str_t and llm_str_t differ in a sign only */

        api[i].name.len = model[i].name.len;
        api[i].name.data = (char *) model[i].name.data;
        api[i].aliases = (llm_str_t *) model[i].aliases.elts;
        api[i].n_aliases = model[i].aliases.nelts;
        api[i].is_default = model[i].is_default;
        api[i].max_tokens = model[i].max_tokens;
        api[i].created = ngx_time();

        if (ngx_process == NGX_PROCESS_SIGNALLER
            || ngx_strncmp(model[i].device.data, "synthetic", 9) == 0)
        {
            continue;
        }

        if (ngx_file_info(model[i].path.data, &fi) != NGX_FILE_ERROR) {
            api[i].created = ngx_file_mtime(&fi);
        }

        ngx_memzero(&err, sizeof(llm_err_t));

        if (llm_model_file_check((char *) model[i].path.data, &err)
            != LLM_OK)
        {
            ngx_log_error(NGX_LOG_ERR, cf->log, 0,
                          "model \"%V\" is not usable: %s",
                          &model[i].name, err.msg);
        }
    }

    return NGX_CONF_OK;
}
