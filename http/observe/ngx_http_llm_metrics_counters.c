/*
 * Counters of requests: a table in shared memory, to which workers add without
 * a lock.
 *
 * A cell counts one combination of owner, kind, word and status, which it gets
 * when that first occurs and keeps for good.  Combinations that find no cell
 * are counted together in `lost`.
 */

#include "http/observe/ngx_http_llm_metrics.h"


/* most cells that are examined for a combination */
#define NGX_HTTP_LLM_TALLY_TRIES  64


static ngx_uint_t ngx_http_llm_tally_cells(ngx_uint_t nowners,
    ngx_uint_t each);
static int ngx_libc_cdecl ngx_http_llm_tally_cmp(const void *one,
    const void *two);


/* number of cells: a power of two */

static ngx_uint_t
ngx_http_llm_tally_cells(ngx_uint_t nowners, ngx_uint_t each)
{
    ngx_uint_t  n;

    for (n = 1024; n < nowners * each; n *= 2) { /* void */ }

    return n;
}


size_t
ngx_http_llm_tally_size(ngx_uint_t nowners, ngx_uint_t each)
{
    return nowners * sizeof(ngx_http_llm_tokens_t)
           + ngx_http_llm_tally_cells(nowners, each)
             * sizeof(ngx_http_llm_cell_t)
           + 2 * ngx_pagesize;
}


ngx_int_t
ngx_http_llm_tally_init(ngx_http_llm_tally_t *t, ngx_slab_pool_t *shpool,
    ngx_uint_t nowners, ngx_uint_t each)
{
    ngx_uint_t  n;

    n = ngx_http_llm_tally_cells(nowners, each);

    t->nowners = nowners;
    t->mask = n - 1;
    t->tokens = ngx_slab_calloc(shpool,
                                nowners * sizeof(ngx_http_llm_tokens_t));
    t->cells = ngx_slab_calloc(shpool, n * sizeof(ngx_http_llm_cell_t));

    return t->tokens && t->cells ? NGX_OK : NGX_ERROR;
}


/* from the highest bits: kind, owner, word, status; never 0, because no kind is
   0 */

static ngx_atomic_uint_t
ngx_http_llm_tally_key(ngx_uint_t owner, ngx_http_llm_tally_e kind,
    ngx_uint_t word, ngx_uint_t status)
{
    return (ngx_atomic_uint_t) kind << 60 | (ngx_atomic_uint_t) owner << 32
           | (ngx_atomic_uint_t) word << 16 | status;
}


void
ngx_http_llm_tally_add(ngx_http_llm_tally_t *t, ngx_uint_t owner,
    ngx_http_llm_tally_e kind, ngx_uint_t word, ngx_uint_t status)
{
    ngx_uint_t            i, k;
    ngx_atomic_uint_t     key;
    ngx_http_llm_cell_t  *c;

    key = ngx_http_llm_tally_key(owner, kind, word, status);
    i = ngx_murmur_hash2((u_char *) &key, sizeof(key));

    for (k = 0; k < NGX_HTTP_LLM_TALLY_TRIES; k++) {
        c = &t->cells[(i + k) & t->mask];

        if (c->key == key
            || (c->key == 0 && ngx_atomic_cmp_set(&c->key, 0, key))
            || c->key == key)           /* another worker was faster */
        {
            (void) ngx_atomic_fetch_add(&c->n, 1);
            return;
        }
    }

    (void) ngx_atomic_fetch_add(&t->lost, 1);
}


void
ngx_http_llm_tally_clear(ngx_http_llm_tally_t *t, ngx_uint_t owner)
{
    ngx_uint_t            i;
    ngx_http_llm_cell_t  *c;

    ngx_memzero(&t->tokens[owner], sizeof(ngx_http_llm_tokens_t));

    for (i = 0; i <= t->mask; i++) {
        c = &t->cells[i];

        if (c->key && (c->key >> 32 & 0xffff) == owner) {
            c->n = 0;
        }
    }
}


ngx_http_llm_counted_t *
ngx_http_llm_tally_read(ngx_http_llm_tally_t *t, ngx_pool_t *pool,
    ngx_uint_t *n)
{
    ngx_uint_t               i, most;
    ngx_atomic_uint_t        key;
    ngx_http_llm_cell_t     *c;
    ngx_http_llm_counted_t  *all;

    most = 0;

    for (i = 0; i <= t->mask; i++) {
        most += (t->cells[i].n != 0);
    }

    all = ngx_palloc(pool, (most + 1) * sizeof(ngx_http_llm_counted_t));
    if (all == NULL) {
        return NULL;
    }

    *n = 0;

    for (i = 0; i <= t->mask && *n < most; i++) {
        c = &t->cells[i];
        key = c->key;

        if (c->n == 0) {
            continue;
        }

        all[*n].kind = key >> 60;
        all[*n].owner = key >> 32 & 0xffff;
        all[*n].word = key >> 16 & 0xffff;
        all[*n].status = key & 0xffff;
        all[*n].n = c->n;
        (*n)++;
    }

    ngx_qsort(all, *n, sizeof(ngx_http_llm_counted_t),
              ngx_http_llm_tally_cmp);

    return all;
}


static int ngx_libc_cdecl
ngx_http_llm_tally_cmp(const void *one, const void *two)
{
    const ngx_http_llm_counted_t *a = one;
    const ngx_http_llm_counted_t *b = two;

    ngx_atomic_uint_t  x, y;

    x = ngx_http_llm_tally_key(a->owner, a->kind, a->word, a->status);
    y = ngx_http_llm_tally_key(b->owner, b->kind, b->word, b->status);

    return (x > y) - (x < y);
}
