/*
 * What a location allows of the images and sound of requests: the module of
 * llm_images, llm_max_image..., llm_max_audio... and llm_fetch.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_media.h"


#define NGX_HTTP_LLM_FETCH_TIMEOUT  10000

/* bounds of a number */

typedef struct {
    uint64_t                     min;
    uint64_t                     max;
} ngx_http_llm_bounds_t;


static ngx_int_t ngx_http_llm_add_media(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_media_init(ngx_conf_t *cf);
static void *ngx_http_llm_create_media_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_media_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_llm_media_number(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_llm_fetch(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_http_llm_bounds_t  ngx_http_llm_images_bounds = {
    1, LLM_MAX_MEDIA
};

static ngx_http_llm_bounds_t  ngx_http_llm_pixels_bounds = {
    1024, (uint64_t) 1 << 32
};

static ngx_http_llm_bounds_t  ngx_http_llm_seconds_bounds = {
    1, 86400
};

static ngx_http_llm_size_min_t  ngx_http_llm_image_size_min = {
    ngx_http_llm_check_size, 1024, 0
};


static ngx_conf_enum_t  ngx_http_llm_images_words[] = {
    { ngx_string("refuse"), 0 },
    { ngx_string("skip"), 1 },
    { ngx_null_string, 0 }
};


static ngx_command_t  ngx_http_llm_media_commands[] = {

    { ngx_string("llm_images"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_media_conf_t, skip),
      &ngx_http_llm_images_words },

    { ngx_string("llm_max_images"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llm_media_number,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_media_conf_t, max_images),
      &ngx_http_llm_images_bounds },

    { ngx_string("llm_max_image_size"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_media_conf_t, max_size),
      &ngx_http_llm_image_size_min },

    { ngx_string("llm_max_image_pixels"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llm_media_number,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_media_conf_t, max_pixels),
      &ngx_http_llm_pixels_bounds },

    { ngx_string("llm_max_audio_size"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_media_conf_t, sound_size),
      &ngx_http_llm_image_size_min },

    { ngx_string("llm_max_audio_seconds"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llm_media_number,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_media_conf_t, max_seconds),
      &ngx_http_llm_seconds_bounds },

    { ngx_string("llm_fetch"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_fetch,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};

static ngx_http_variable_t  ngx_http_llm_media_vars[] = {

    { ngx_string("llm_fetch_url"), NULL, ngx_http_llm_fetch_url, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


static ngx_http_module_t  ngx_http_llm_media_module_ctx = {
    ngx_http_llm_add_media,                /* preconfiguration */
    ngx_http_llm_media_init,               /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_media_conf,        /* create location configuration */
    ngx_http_llm_merge_media_conf          /* merge location configuration */
};


ngx_module_t  ngx_http_llm_media_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_media_module_ctx,        /* module context */
    ngx_http_llm_media_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_media(ngx_conf_t *cf)
{
    if (ngx_http_llm_add_variables(cf, ngx_http_llm_media_vars) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_stage(cf, &ngx_http_llm_media_stage);
}


static ngx_int_t
ngx_http_llm_media_init(ngx_conf_t *cf)
{
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_filter_module);
    rmcf->take = ngx_http_llm_fetch_body;

    return NGX_OK;
}


static void *
ngx_http_llm_create_media_conf(ngx_conf_t *cf)
{
    ngx_http_llm_media_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_media_conf_t));

    if (conf) {
        conf->skip = NGX_CONF_UNSET_UINT;
        conf->max_size = NGX_CONF_UNSET_SIZE;
        conf->max_images = NGX_CONF_UNSET_UINT;
        conf->max_pixels = NGX_CONF_UNSET_SIZE;
        conf->sound_size = NGX_CONF_UNSET_SIZE;
        conf->max_seconds = NGX_CONF_UNSET_SIZE;
        conf->fetch = NGX_CONF_UNSET_PTR;
    }

    return conf;
}


static char *
ngx_http_llm_merge_media_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_media_conf_t *prev = parent;
    ngx_http_llm_media_conf_t *conf = child;

    ngx_http_llm_loc_conf_t  *llcf;

    ngx_conf_merge_uint_value(conf->skip, prev->skip, 0);
    ngx_conf_merge_size_value(conf->max_size, prev->max_size,
                              20 * 1024 * 1024);
    ngx_conf_merge_uint_value(conf->max_images, prev->max_images, 64);
    ngx_conf_merge_size_value(conf->max_pixels, prev->max_pixels,
                              64 * 1024 * 1024);
    ngx_conf_merge_size_value(conf->sound_size, prev->sound_size,
                              25 * 1024 * 1024);
    ngx_conf_merge_size_value(conf->max_seconds, prev->max_seconds, 3600);
    ngx_conf_merge_ptr_value(conf->fetch, prev->fetch, NULL);

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    if (conf->fetch && ngx_http_llm_is_api(llcf)) {
        ngx_http_llm_uri_warn(cf, &conf->fetch->uri, "fetches nothing");
    }

    return NGX_CONF_OK;
}


/* sets a number of 64 bits, which is unset so far */

static char *
ngx_http_llm_media_number(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    size_t                 *to;
    uint64_t                n;
    ngx_str_t              *value;
    ngx_http_llm_bounds_t  *b;

    b = cmd->post;
    value = cf->args->elts;
    to = (size_t *) ((char *) conf + cmd->offset);

    if (*to != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    if (llm_count((char *) value[1].data, value[1].len, b->max, &n) == LLM_OK
        && n >= b->min && n <= b->max)
    {
        *to = n;
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid value \"%V\" of \"%V\", it must be a number "
                       "between %uL and %uL", &value[1], &cmd->name, b->min,
                       b->max);

    return NGX_CONF_ERROR;
}


/* llm_fetch URI [timeout=TIME] | off */

static char *
ngx_http_llm_fetch(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_media_conf_t *lmcf = conf;

    char                  *rv;
    ngx_str_t             *value;
    ngx_http_llm_fetch_t  *fetch;

    if (lmcf->fetch != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        lmcf->fetch = NULL;
        return cf->args->nelts == 2 ? NGX_CONF_OK
                                    : "has parameters besides \"off\"";
    }

    fetch = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_fetch_t));
    if (fetch == NULL) {
        return NGX_CONF_ERROR;
    }

    fetch->timeout = NGX_HTTP_LLM_FETCH_TIMEOUT;

    rv = ngx_http_llm_uri_read(cf, cmd, &fetch->uri);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    lmcf->fetch = fetch;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value[2].data, "timeout=", 8) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "unknown parameter \"%V\"",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    return ngx_http_llm_param_time(cf, &value[2], 8, &fetch->timeout);
}
