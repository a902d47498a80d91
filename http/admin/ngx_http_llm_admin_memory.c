/*
 * The shared memory of llm_admin, which all workers use and a reload keeps.
 *
 * The process that creates the memory reads the file of state=: the master, or
 * nginx -t.  A broken file is logged and not used, and is kept as FILE.bad.
 */

#include "http/admin/ngx_http_llm_admin.h"


static void ngx_http_llm_admin_load(ngx_http_llm_admin_t *admin,
    ngx_log_t *log);


ngx_int_t
ngx_http_llm_init_admin_zone(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_llm_admin_t *old = data;

    ngx_http_llm_admin_t  *admin;

    admin = shm_zone->data;
    admin->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (old) {
        admin->sh = old->sh;
        return NGX_OK;
    }

    if (shm_zone->shm.exists) {
        admin->sh = admin->shpool->data;
        return NGX_OK;
    }

    admin->sh = ngx_slab_calloc(admin->shpool,
                                sizeof(ngx_http_llm_admin_shared_t));
    if (admin->sh == NULL) {
        return NGX_ERROR;
    }

    admin->shpool->data = admin->sh;
    admin->sh->place = admin->place;

    ngx_http_llm_admin_load(admin, shm_zone->shm.log);

    return NGX_OK;
}


static void
ngx_http_llm_admin_load(ngx_http_llm_admin_t *admin, ngx_log_t *log)
{
    char             *path;
    llm_err_t         err;
    ngx_file_info_t   fi;

    path = (char *) admin->state.data;

    if (admin->state.len == 0
        || (ngx_file_info(path, &fi) == NGX_FILE_ERROR
            && ngx_errno == NGX_ENOENT))
    {
        return;
    }

    llm_keys_which(path, &admin->sh->file);

    if (llm_admin_read_file(&admin->sh->copies[0], path, &err) != LLM_OK) {
        ngx_log_error(NGX_LOG_ERR, log, 0,
                      "the state of \"llm_admin\" in \"%s\" is not used: %s",
                      path, err.msg);
        admin->sh->bad_file = 1;
    }

    admin->sh->known = admin->sh->copies[0];
}


void
ngx_http_llm_admin_lock(ngx_http_llm_admin_t *admin)
{
    ngx_shmtx_lock(&admin->shpool->mutex);
}


void
ngx_http_llm_admin_unlock(ngx_http_llm_admin_t *admin)
{
    ngx_shmtx_unlock(&admin->shpool->mutex);
}


llm_admin_state_t *
ngx_http_llm_admin_state(ngx_http_llm_admin_t *admin)
{
    return &admin->sh->copies[admin->sh->active];
}


llm_admin_state_t *
ngx_http_llm_admin_change(ngx_http_llm_admin_t *admin)
{
    llm_admin_state_t  *st;

    st = &admin->sh->copies[!admin->sh->active];
    *st = *ngx_http_llm_admin_state(admin);

    return st;
}


void
ngx_http_llm_admin_changed(ngx_http_llm_admin_t *admin)
{
    ngx_memory_barrier();
    admin->sh->active = !admin->sh->active;
    ngx_memory_barrier();
    admin->sh->version++;
}
