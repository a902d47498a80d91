/*
 * Files of the configuration that the master can use and its workers cannot:
 * they are warned of before anything is served.
 */

#include "http/ngx_http_llm_admin.h"
#include "http/ngx_http_llm_quota.h"

#include <grp.h>
#include <sys/fsuid.h>


static void ngx_http_llm_check_files(ngx_cycle_t *cycle, char *user,
    ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_check_file(ngx_cycle_t *cycle, char *user,
    const char *kind, ngx_str_t *name, ngx_str_t *path);
static void ngx_http_llm_check_folder(ngx_cycle_t *cycle, char *user,
    const char *kind, ngx_str_t *path);
static size_t ngx_http_llm_closed_folder(ngx_str_t *path);


/*
 * Worker 0 reads the models, each worker the files of keys, and writes those of
 * states, and not as root: they may be unable to do what this process can.  So
 * this process checks with the workers' identity for files (setfsuid), without
 * root's privileges.  A child process could do it, too, but for the master's
 * handler of SIGCHLD.  If root may not change identities nothing is checked.
 */

void
ngx_http_llm_check_access(ngx_cycle_t *cycle)
{
    int                        n;
    gid_t                     *groups;
    ngx_core_conf_t           *ccf;
    ngx_http_llm_main_conf_t  *mcf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf == NULL || mcf->models.nelts + mcf->keyfiles.nelts == 0
        || ccf->username == NULL || ccf->user == 0 || geteuid() != 0
        || ngx_process == NGX_PROCESS_SIGNALLER)
    {
        return;
    }

    n = getgroups(0, NULL);
    if (n == -1) {
        return;
    }

    groups = ngx_palloc(cycle->pool, (n + 1) * sizeof(gid_t));
    if (groups == NULL || getgroups(n, groups) != n) {
        return;
    }

    if (initgroups(ccf->username, ccf->group) == -1) {
        return;
    }

    (void) setfsgid(ccf->group);
    (void) setfsuid(ccf->user);

    ngx_http_llm_check_files(cycle, ccf->username, mcf);

    (void) setfsuid(geteuid());
    (void) setfsgid(getegid());

    if (setgroups(n, groups) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      "setgroups() failed");
    }
}


static void
ngx_http_llm_check_files(ngx_cycle_t *cycle, char *user,
    ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t                i;
    ngx_http_llm_model_t     *model;
    ngx_http_llm_quota_t    **q;
    ngx_http_llm_keyfile_t  **keys;

    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {
        ngx_http_llm_check_file(cycle, user, "model", &model[i].name,
                                &model[i].path);

        if (model[i].template_path.len) {
            ngx_http_llm_check_file(cycle, user, "model", &model[i].name,
                                    &model[i].template_path);
        }
    }

    if (mcf->admin && mcf->admin->models.len) {
        ngx_http_llm_check_file(cycle, user, "llm_admin",
                                &mcf->admin->models_text,
                                &mcf->admin->models);
    }

    if (mcf->admin && mcf->admin->state.len) {
        ngx_http_llm_check_folder(cycle, user, "llm_admin",
                                  &mcf->admin->state);
    }

    q = mcf->quotas.elts;

    for (i = 0; i < mcf->quotas.nelts; i++) {
        if (q[i]->state.len) {
            ngx_http_llm_check_folder(cycle, user, "llm_token_zone",
                                      &q[i]->state);
        }
    }

    keys = mcf->keyfiles.elts;

    for (i = 0; i < mcf->keyfiles.nelts; i++) {
        ngx_http_llm_check_file(cycle, user, "llm_api_keys", &keys[i]->path,
                                &keys[i]->path);
    }
}


static void
ngx_http_llm_check_file(ngx_cycle_t *cycle, char *user, const char *kind,
    ngx_str_t *name, ngx_str_t *path)
{
    size_t     len;
    ngx_fd_t   fd;

    fd = ngx_open_file(path->data, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(fd);
        return;
    }

    if (ngx_errno != NGX_EACCES) {
        return;
    }

    len = ngx_http_llm_closed_folder(path);

    if (len) {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "%s \"%V\": nginx's workers run as user \"%s\", "
                      "which cannot read \"%V\": it may not enter \"%*s\"",
                      kind, name, user, path, len, path->data);

    } else {
        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "%s \"%V\": nginx's workers run as user \"%s\", "
                      "which cannot read \"%V\"",
                      kind, name, user, path);
    }
}


/* may a file be created beside this one?  One without a name leaves nothing */

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


/* the length of the first folder of the path that may not be searched; 0: all
   folders may be */

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
