/*
 * Numbers of words and tenants in the memory of metrics.
 *
 * Workers look them up without a lock, and add new ones under the zone's lock,
 * which nginx's master releases if a worker dies with it.  So a new entry is
 * completely written before it is counted.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/observe/ngx_http_llm_metrics.h"


static ngx_uint_t
ngx_http_llm_find_word(ngx_http_llm_kept_t *k, const u_char *text, size_t len)
{
    ngx_uint_t            i, n;
    ngx_http_llm_word_t  *w;

    n = k->nwords;

    for (i = 0; i < n; i++) {
        w = &k->words[i];

        if (w->len == len && ngx_memcmp(w->text, text, len) == 0) {
            return i + 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_http_llm_word(ngx_http_llm_main_conf_t *mcf, const u_char *text,
    size_t len)
{
    ngx_uint_t            n;
    ngx_slab_pool_t      *shpool;
    ngx_http_llm_kept_t  *k;
    ngx_http_llm_word_t  *w;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;
    shpool = (ngx_slab_pool_t *) ngx_http_llm_stats(mcf)->shm_zone->shm.addr;
    text = len ? text : (u_char *) "";
    len = ngx_min(len, NGX_HTTP_LLM_WORD);

    n = ngx_http_llm_find_word(k, text, len);

    if (n || k->nwords == NGX_HTTP_LLM_WORDS) {
        return n;
    }

    ngx_shmtx_lock(&shpool->mutex);

    n = ngx_http_llm_find_word(k, text, len);

    if (n == 0 && k->nwords < NGX_HTTP_LLM_WORDS) {
        w = &k->words[k->nwords];
        w->len = len;
        ngx_memcpy(w->text, text, len);
        ngx_memory_barrier();
        n = ++k->nwords;
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return n;
}


void
ngx_http_llm_word_text(ngx_http_llm_main_conf_t *mcf, ngx_uint_t word,
    ngx_str_t *text)
{
    ngx_http_llm_kept_t  *k;

    k = ngx_http_llm_stats(mcf)->shm_zone->data;

    if (word == 0) {
        ngx_str_set(text, "other");
        return;
    }

    text->len = k->words[word - 1].len;
    text->data = k->words[word - 1].text;
}


/* number of a name, or 0; *cell: its cell in the index, or the free one for
   it */

static ngx_uint_t
ngx_http_llm_tenant_number(ngx_http_llm_tenants_t *t, u_char *text,
    size_t len, ngx_atomic_t **cell)
{
    ngx_uint_t             i, n;
    ngx_http_llm_label_t  *name;

    for (i = ngx_murmur_hash2(text, len); /* void */ ; i++) {
        *cell = &t->index[i & t->mask];

        /* read once: another worker may fill it */
        n = **cell;

        if (n == 0) {
            return 0;
        }

        name = &t->names[n - 1];

        if (name->len == len && ngx_memcmp(name->text, text, len) == 0) {
            return n;
        }
    }
}


/*
 * Labels have whole characters, and are escaped as in logs (llm_clean()): a
 * tenant with an escaped character shares the counters of one whose name is the
 * text of that escape.  A label that is too long counts as "other".
 */

ngx_uint_t
ngx_http_llm_tenant_owner(ngx_http_llm_main_conf_t *mcf, ngx_str_t *tenant)
{
    char                     text[NGX_HTTP_LLM_LABEL + 17];
    size_t                   len;
    ngx_uint_t               n;
    ngx_atomic_t            *cell;
    ngx_shm_zone_t          *zone;
    ngx_slab_pool_t         *shpool;
    ngx_http_llm_label_t    *last;
    ngx_http_llm_tenants_t  *t;

    zone = ngx_http_llm_stats(mcf)->tenants_zone;
    t = zone->data;
    shpool = (ngx_slab_pool_t *) zone->shm.addr;

    if (tenant->len == 0) {
        return NGX_HTTP_LLM_NO_TENANT;
    }

    /* text has room for one more character, of 16 bytes at most */

    len = llm_clean(text, sizeof(text), (char *) tenant->data, tenant->len);

    if (len > NGX_HTTP_LLM_LABEL || ngx_strcmp(text, "other") == 0) {
        return NGX_HTTP_LLM_OTHER_TENANT;
    }

    n = ngx_http_llm_tenant_number(t, (u_char *) text, len, &cell);

    if (n == 0 && t->n < t->max) {
        ngx_shmtx_lock(&shpool->mutex);

        /* a worker may have died before it has put the last name into the
           index */

        if (t->n) {
            last = &t->names[t->n - 1];

            if (ngx_http_llm_tenant_number(t, last->text, last->len, &cell)
                == 0)
            {
                *cell = t->n;
            }
        }

        n = ngx_http_llm_tenant_number(t, (u_char *) text, len, &cell);

        if (n == 0 && t->n < t->max) {
            t->names[t->n].len = len;
            ngx_memcpy(t->names[t->n].text, text, len);
            t->n++;
            ngx_memory_barrier();
            n = t->n;
            *cell = n;
        }

        ngx_shmtx_unlock(&shpool->mutex);
    }

    return n ? NGX_HTTP_LLM_FIRST_TENANT + n - 1 : NGX_HTTP_LLM_OTHER_TENANT;
}
