/*
 * Parameters of llm_admin, which are the same in all locations that have it.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"


static char *ngx_http_llm_admin_state_file(ngx_conf_t *cf,
    ngx_http_llm_admin_t *admin, ngx_str_t *s);
static char *ngx_http_llm_admin_folder(ngx_conf_t *cf,
    ngx_http_llm_admin_t *admin, ngx_str_t *s);
static char *ngx_http_llm_admin_new(ngx_conf_t *cf,
    ngx_http_llm_admin_t *admin, ngx_str_t *s);
static char *ngx_http_llm_admin_like(ngx_conf_t *cf,
    ngx_http_llm_admin_t *admin, ngx_str_t *s);


char *
ngx_http_llm_admin_param(ngx_conf_t *cf, ngx_http_llm_admin_t *admin,
    ngx_str_t *value)
{
    ngx_str_t  s;

    if (ngx_strncmp(value->data, "state=", 6) == 0) {
        s.data = value->data + 6;
        s.len = value->len - 6;

        return ngx_http_llm_admin_state_file(cf, admin, &s);
    }

    if (ngx_strncmp(value->data, "models=", 7) == 0) {
        s.data = value->data + 7;
        s.len = value->len - 7;

        return ngx_http_llm_admin_folder(cf, admin, &s);
    }

    if (ngx_strncmp(value->data, "new=", 4) == 0) {
        s.data = value->data + 4;
        s.len = value->len - 4;

        return ngx_http_llm_admin_new(cf, admin, &s);
    }

    if (ngx_strncmp(value->data, "like=", 5) == 0) {
        s.data = value->data + 5;
        s.len = value->len - 5;

        return ngx_http_llm_admin_like(cf, admin, &s);
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "unknown parameter \"%V\"",
                       value);

    return NGX_CONF_ERROR;
}


/* 1: the parameter is empty, or had another value before, which was logged */

static ngx_uint_t
ngx_http_llm_admin_differs(ngx_conf_t *cf, const char *name, ngx_str_t *old,
    ngx_str_t *now)
{
    if (now->len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "empty \"%s=\"", name);
        return 1;
    }

    if (old->len == 0
        || (old->len == now->len
            && ngx_memcmp(old->data, now->data, now->len) == 0))
    {
        return 0;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"%s=%V\" here, but \"%s=%V\" in another "
                       "\"llm_admin\": it must be the same in all",
                       name, now, name, old);

    return 1;
}


static char *
ngx_http_llm_admin_state_file(ngx_conf_t *cf, ngx_http_llm_admin_t *admin,
    ngx_str_t *s)
{
    u_char                     c, *slash;
    ngx_int_t                  rc;
    ngx_str_t                  path;
    ngx_file_info_t            fi;
    const char                *writer;
    ngx_http_llm_main_conf_t  *mcf;

    if (ngx_http_llm_admin_differs(cf, "state", &admin->state_text, s)) {
        return NGX_CONF_ERROR;
    }

    path = *s;

    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    /* the name of the temporary file is a little longer */

    if (path.len + NGX_INT_T_LEN + 8 > NGX_MAX_PATH) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"state=%V\" is too long",
                           s);
        return NGX_CONF_ERROR;
    }

    slash = path.data + path.len;
    while (slash[-1] != '/') { slash--; }

    c = *slash;
    *slash = '\0';
    rc = ngx_file_info(path.data, &fi);
    *slash = c;

    if (rc == NGX_FILE_ERROR || !ngx_is_dir(&fi)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf,
                           rc == NGX_FILE_ERROR ? ngx_errno : 0,
                           "there is no folder for \"state=%V\"", s);
        return NGX_CONF_ERROR;
    }

    if (ngx_file_info(path.data, &fi) != NGX_FILE_ERROR
        && !ngx_is_file(&fi))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"state=%V\" is not a regular file", s);
        return NGX_CONF_ERROR;
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    writer = ngx_http_llm_who_writes(mcf, &path);

    if (writer && ngx_strcmp(writer, "llm_admin") != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "a \"%s\" has the same file: \"state=%V\"",
                           writer, s);
        return NGX_CONF_ERROR;
    }

    if (writer == NULL
        && ngx_http_llm_add_file(mcf, "llm_admin", &path, &path, 1) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    admin->state_text = *s;
    admin->state = path;
    admin->place = ngx_crc32_long(path.data, path.len);

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_admin_folder(ngx_conf_t *cf, ngx_http_llm_admin_t *admin,
    ngx_str_t *s)
{
    char             *real;
    size_t            len;
    ngx_str_t         path;
    ngx_file_info_t   fi;

    if (ngx_http_llm_admin_differs(cf, "models", &admin->models_text, s)) {
        return NGX_CONF_ERROR;
    }

    path = *s;

    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    real = realpath((char *) path.data, NULL);

    if (real == NULL || ngx_file_info(real, &fi) == NGX_FILE_ERROR
        || !ngx_is_dir(&fi))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, real ? 0 : ngx_errno,
                           "there is no folder \"models=%V\"", s);
        free(real);
        return NGX_CONF_ERROR;
    }

    len = ngx_strlen(real);

    admin->models_text = *s;
    admin->models.len = len;
    admin->models.data = ngx_pnalloc(cf->pool, len + 1);

    if (admin->models.data) {
        ngx_memcpy(admin->models.data, real, len + 1);
    }

    free(real);

    return admin->models.data ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* the sum with the configuration's models is checked when all are known */

static char *
ngx_http_llm_admin_new(ngx_conf_t *cf, ngx_http_llm_admin_t *admin,
    ngx_str_t *s)
{
    ngx_int_t                  n;
    ngx_http_llm_main_conf_t  *mcf;

    if (ngx_http_llm_admin_differs(cf, "new", &admin->new_text, s)) {
        return NGX_CONF_ERROR;
    }

    n = ngx_atoi(s->data, s->len);

    if (n == NGX_ERROR || n >= LLM_MAX_MODELS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of models \"new=%V\", it must be "
                           "between 0 and %d", s, LLM_MAX_MODELS - 1);
        return NGX_CONF_ERROR;
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    admin->new_text = *s;
    mcf->places.n = n;
    mcf->places.file = cf->conf_file->file.name;
    mcf->places.line = cf->conf_file->line;

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_admin_like(ngx_conf_t *cf, ngx_http_llm_admin_t *admin,
    ngx_str_t *s)
{
    ngx_http_llm_places_t     *places;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);
    places = &mcf->places;

    if (ngx_http_llm_admin_differs(cf, "like", &places->like, s)) {
        return NGX_CONF_ERROR;
    }

    places->like = *s;

    if (places->line == 0) {
        places->file = cf->conf_file->file.name;
        places->line = cf->conf_file->line;
    }

    return NGX_CONF_OK;
}
