/*
 * Files that clients of llm_admin name: only files below the folder of models=.
 *
 * A name may have no part "." or "..", and the file that it leads to, over any
 * links, must be below the folder.  The engine gets the path without links and
 * opens it later.  A user who can write to the folder can replace the file
 * until then; the engine checks the new file as any other, but not where it
 * is.  So only users who may load models should be able to write to the folder.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


static int ngx_http_llm_admin_check_file(const char *name, llm_err_t *err);
static int ngx_http_llm_admin_real(ngx_str_t *dir, const char *name,
    char *path, llm_err_t *err);
static ngx_uint_t ngx_http_llm_admin_is_configured(
    ngx_http_llm_model_t *model, const char *path);


/* runs in any thread, or before there are threads */

int
ngx_http_llm_admin_resolve(ngx_http_llm_main_conf_t *mcf, ngx_uint_t i,
    const char *name, char *path, uint32_t *media, llm_err_t *err)
{
    uint32_t               takes;
    llm_err_t              why;
    ngx_http_llm_model_t  *model;

    takes = 0;
    model = mcf->models.elts;
    model += i;

    if (*name == '\0') {
        (void) ngx_snprintf((u_char *) path, LLM_MAX_FILE, "%V%Z",
                            &model->path);

    } else if (ngx_http_llm_admin_check_file(name, err) != LLM_OK
               || ngx_http_llm_admin_real(&ngx_http_llm_admin_of(mcf)->models,
                                          name, path,
                                          err)
                  != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (ngx_strncmp(model->engine.device, "synthetic", 9) != 0
        && llm_model_file_check(path, &takes, &why) != LLM_OK)
    {
        llm_hide_folder(why.msg, path);
        return llm_fail_with(err, 400, "unusable_model", "file",
                             "The file cannot be used: %.400s", why.msg);
    }

    if (media) {
        *media = takes;
    }

    /* the configuration's own file, under another name */

    if (ngx_http_llm_admin_is_configured(model, path)) {
        (void) ngx_snprintf((u_char *) path, LLM_MAX_FILE, "%V%Z",
                            &model->path);
    }

    return LLM_OK;
}


static int
ngx_http_llm_admin_check_file(const char *name, llm_err_t *err)
{
    size_t       len;
    const char  *p;

    if (strlen(name) >= LLM_MAX_FILE) {
        return llm_fail_with(err, 400, "invalid_file", "file",
                             "'file' is too long.");
    }

    if (strstr(name, "://")) {
        return llm_fail_with(err, 400, "invalid_file", "file",
                             "'file' is a URL; it must be a path below the "
                             "folder of models=, to which the file has been "
                             "downloaded.");
    }

    for (p = name; /* void */ ; p += len + 1) {
        len = strcspn(p, "/");

        if (len == 0 || (len == 1 && *p == '.')
            || (len == 2 && p[0] == '.' && p[1] == '.'))
        {
            return llm_fail_with(err, 400, "invalid_file", "file",
                                 "'file' must be a path below the folder of "
                                 "models=, without \".\" and \"..\".");
        }

        if (p[len] == '\0') {
            return LLM_OK;
        }
    }
}


/* resolves links; path gets the result */

static int
ngx_http_llm_admin_real(ngx_str_t *dir, const char *name, char *path,
    llm_err_t *err)
{
    int    rc;
    char   full[NGX_MAX_PATH], *real;

    if (dir->len == 0) {
        return llm_fail_with(err, 403, "files_not_allowed", "file",
                             "No other file can be loaded: \"llm_admin\" has "
                             "no models= here.");
    }

    if (dir->len + strlen(name) + 2 > sizeof(full)) {
        return llm_fail_with(err, 400, "invalid_file", "file",
                             "'file' is too long.");
    }

    (void) ngx_snprintf((u_char *) full, sizeof(full), "%V/%s%Z", dir, name);

    real = realpath(full, NULL);

    if (real == NULL) {
        return ngx_errno == NGX_ENOENT || ngx_errno == NGX_ENOTDIR
               ? llm_fail_with(err, 404, "file_not_found", "file",
                               "There is no such file below the folder of "
                               "models=.")
               : llm_fail_with(err, 400, "invalid_file", "file",
                               "The file cannot be accessed: %s.",
                               strerror(ngx_errno));
    }

    rc = LLM_OK;

    if (llm_admin_below((char *) dir->data, real) == real) {
        rc = llm_fail_with(err, 400, "invalid_file", "file",
                           "'file' leads out of the folder of models=.");

    } else if (strlen(real) >= LLM_MAX_FILE) {
        rc = llm_fail_with(err, 400, "invalid_file", "file",
                           "'file' is too long.");

    } else {
        ngx_memcpy(path, real, strlen(real) + 1);
    }

    free(real);

    return rc;
}


static ngx_uint_t
ngx_http_llm_admin_is_configured(ngx_http_llm_model_t *model,
    const char *path)
{
    char        *real;
    ngx_uint_t   same;

    real = realpath((char *) model->path.data, NULL);
    same = real && strcmp(real, path) == 0;
    free(real);

    return same;
}
