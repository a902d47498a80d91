/*
 * Files of the configuration that the master can use and its workers cannot.
 * A model that workers cannot read is not usable, as if its file were missing.
 * Other files cause a warning when the configuration is loaded.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"

#include <grp.h>
#include <sys/fsuid.h>


static ngx_int_t ngx_http_llm_check_models_access(ngx_cycle_t *cycle,
    char *user, ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_check_files(ngx_cycle_t *cycle, char *user,
    ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_check_file(ngx_cycle_t *cycle, char *user,
    const char *kind, ngx_str_t *name, ngx_str_t *path);
static ngx_uint_t ngx_http_llm_is_closed(char *user, ngx_str_t *path,
    llm_err_t *why);
static void ngx_http_llm_check_folder(ngx_cycle_t *cycle, char *user,
    const char *kind, ngx_str_t *path);
static size_t ngx_http_llm_closed_folder(ngx_str_t *path);


ngx_int_t
ngx_http_llm_add_file(ngx_http_llm_main_conf_t *mcf, const char *directive,
    ngx_str_t *name, ngx_str_t *path, ngx_uint_t written)
{
    ngx_http_llm_used_file_t  *f;

    f = ngx_array_push(&mcf->files);
    if (f == NULL) {
        return NGX_ERROR;
    }

    f->directive = directive;
    f->name = *name;
    f->path = *path;
    f->written = written;

    return NGX_OK;
}


const char *
ngx_http_llm_who_writes(ngx_http_llm_main_conf_t *mcf, ngx_str_t *path)
{
    ngx_uint_t                 i;
    ngx_http_llm_used_file_t  *f;

    f = mcf->files.elts;

    for (i = 0; i < mcf->files.nelts; i++) {
        if (f[i].written && f[i].path.len == path->len
            && ngx_memcmp(f[i].path.data, path->data, path->len) == 0)
        {
            return f[i].directive;
        }
    }

    return NULL;
}


/*
 * Worker 0 reads the models; each worker reads the files of keys and writes the
 * files of states.  Workers do not run as root, so they may be unable to do
 * what the master can.  The master therefore tries with the workers' identity
 * for files (setfsuid), without root's privileges.  The kernel then applies
 * modes, groups, access lists and all other rules to the whole path; a check of
 * the modes alone would refuse what an access list allows.  A child process
 * cannot check instead, because the master handles SIGCHLD itself.  Nothing is
 * checked if root may not change its identity.
 */

ngx_int_t
ngx_http_llm_check_access(ngx_cycle_t *cycle)
{
    int                        n;
    gid_t                     *groups;
    ngx_int_t                  rc;
    ngx_core_conf_t           *ccf;
    ngx_http_llm_main_conf_t  *mcf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf == NULL || mcf->models.nelts + mcf->files.nelts == 0
        || ccf->username == NULL || ccf->user == 0 || geteuid() != 0
        || ngx_process == NGX_PROCESS_SIGNALLER)
    {
        return NGX_OK;
    }

    n = getgroups(0, NULL);
    if (n == -1) {
        return NGX_OK;
    }

    groups = ngx_palloc(cycle->pool, (n + 1) * sizeof(gid_t));
    if (groups == NULL || getgroups(n, groups) != n) {
        return NGX_OK;
    }

    if (initgroups(ccf->username, ccf->group) == -1) {
        return NGX_OK;
    }

    (void) setfsgid(ccf->group);
    (void) setfsuid(ccf->user);

    rc = ngx_http_llm_check_models_access(cycle, ccf->username, mcf);

    ngx_http_llm_check_files(cycle, ccf->username, mcf);

    (void) setfsuid(geteuid());
    (void) setfsgid(getegid());

    if (setgroups(n, groups) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      "setgroups() failed");
    }

    return rc;
}


static ngx_int_t
ngx_http_llm_check_models_access(ngx_cycle_t *cycle, char *user,
    ngx_http_llm_main_conf_t *mcf)
{
    llm_err_t              why;
    ngx_uint_t             i;
    ngx_http_llm_model_t  *model;

    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts - mcf->nadded; i++) {

        if ((model[i].replaced
             || !ngx_http_llm_is_closed(user, &model[i].path, &why))
            && (model[i].template_path.len == 0
                || !ngx_http_llm_is_closed(user, &model[i].template_path,
                                           &why))
            && (model[i].draft_path.len == 0
                || !ngx_http_llm_is_closed(user, &model[i].draft_path, &why))
            && (model[i].mmproj.len == 0
                || !ngx_http_llm_is_closed(user, &model[i].mmproj, &why)))
        {
            continue;
        }

        if (ngx_http_llm_unusable(cycle, &model[i], why.msg) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_llm_check_files(ngx_cycle_t *cycle, char *user,
    ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t                 i;
    ngx_http_llm_used_file_t  *f;

    f = mcf->files.elts;

    for (i = 0; i < mcf->files.nelts; i++) {

        if (!f[i].written) {
            ngx_http_llm_check_file(cycle, user, f[i].directive, &f[i].name,
                                    &f[i].path);

        } else if (mcf->models.nelts) {
            ngx_http_llm_check_folder(cycle, user, f[i].directive,
                                      &f[i].path);
        }
    }
}


static void
ngx_http_llm_check_file(ngx_cycle_t *cycle, char *user, const char *kind,
    ngx_str_t *name, ngx_str_t *path)
{
    llm_err_t  why;

    if (ngx_http_llm_is_closed(user, path, &why)) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0, "%s \"%V\": %s", kind,
                      name, why.msg);
    }
}


/* may the workers not read the file, which may be a folder? */

static ngx_uint_t
ngx_http_llm_is_closed(char *user, ngx_str_t *path, llm_err_t *why)
{
    size_t     len;
    ngx_fd_t   fd;

    fd = ngx_open_file(path->data, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
        return 0;
    }

    if (ngx_errno != NGX_EACCES) {
        return 0;
    }

    len = ngx_http_llm_closed_folder(path);

    if (len) {
        llm_fail(why, "nginx's workers run as user \"%s\", which cannot read "
                 "\"%s\": it may not enter \"%.*s\"", user,
                 (char *) path->data, (int) len, (char *) path->data);

    } else {
        llm_fail(why, "nginx's workers run as user \"%s\", which cannot read "
                 "\"%s\"", user, (char *) path->data);
    }

    return 1;
}


/* can workers create a file in the folder of this path?  O_TMPFILE creates one
   without a name, which is gone when it is closed. */

static void
ngx_http_llm_check_folder(ngx_cycle_t *cycle, char *user, const char *kind,
    ngx_str_t *path)
{
    u_char    c, *end;
    ngx_fd_t  fd;

    end = path->data + path->len;
    while (end[-1] != '/') { end--; }

    end -= (end > path->data + 1);

    c = *end;
    *end = '\0';
    fd = open((char *) path->data, O_TMPFILE|O_WRONLY|O_CLOEXEC, 0600);
    *end = c;

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
        return;
    }

    if (ngx_errno == NGX_EACCES) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "%s \"%V\": nginx's workers run as user \"%s\", "
                      "which cannot create files in \"%*s\"",
                      kind, path, user, (size_t) (end - path->data),
                      path->data);
    }
}


/* length of the path of the first folder that may not be entered; 0: none */

static size_t
ngx_http_llm_closed_folder(ngx_str_t *path)
{
    int               rc;
    u_char            c, *p, *last, *folder;
    ngx_file_info_t   fi;

    folder = path->data + 1;            /* "/" */
    last = path->data + path->len;

    for (p = path->data + 1; p <= last; p++) {

        c = *p;

        if (c != '/' && p < last) {
            continue;
        }

        *p = '\0';
        rc = ngx_file_info(path->data, &fi);
        *p = c;

        if (rc == NGX_FILE_ERROR && ngx_errno == NGX_EACCES) {
            return folder - path->data;
        }

        folder = p;
    }

    return 0;
}
