/*
 * Compiled grammars by their keys; see cache.h.
 */

#include "engine/base/sha256.h"
#include "engine/grammar/cache.h"

#include <pthread.h>
#include <stdatomic.h>


struct llm_gram_ref_s {
    llm_gram_cache_t    *cache;
    llm_gram_t          *gram;
    char                *key;           /* owned */
    size_t               len;
    _Atomic uint32_t     n_held;        /* references held by requests; written
                                           with the lock, read without it by
                                           holders, relaxed */
    uint32_t             n_kept;        /* references held by texts that
                                           outlive their requests */
    llm_gram_ref_t      *next;          /* next older entry */
};

typedef struct {
    unsigned char        bytes[LLM_SHA256_LEN];
} llm_gram_digest_t;

/* a key whose grammar cannot be made, and why */
typedef struct {
    llm_gram_digest_t    key;
    llm_err_t            err;
} llm_gram_error_t;

/* the lock guards all members below except vocab */

struct llm_gram_cache_s {
    const llm_vocab_t   *vocab;
    pthread_mutex_t      lock;
    llm_toktree_t       *tree;          /* made for the first grammar */
    llm_gram_ref_t      *first;         /* entry used last */
    llm_gram_error_t    *errors;        /* [LLM_GRAM_CACHE_ERRORS], owned;
                                           NULL: no error yet */
    uint32_t             n_errors;      /* errors so far; the next one replaces
                                           the oldest */
};


llm_gram_cache_t *
llm_gram_cache_create(const llm_vocab_t *v)
{
    llm_gram_cache_t  *c;

    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }

    c->vocab = v;
    (void) pthread_mutex_init(&c->lock, NULL);

    return c;
}


static void
llm_gram_ref_free(llm_gram_ref_t *ref)
{
    llm_gram_free(ref->gram);
    free(ref->key);
    free(ref);
}


void
llm_gram_cache_free(llm_gram_cache_t *c)
{
    llm_gram_ref_t  *ref;

    if (c == NULL) {
        return;
    }

    while (c->first) {
        ref = c->first;
        c->first = ref->next;
        llm_gram_ref_free(ref);
    }

    llm_toktree_free(c->tree);
    free(c->errors);
    (void) pthread_mutex_destroy(&c->lock);
    free(c);
}


/* finds an entry and moves it to the front; the caller has the lock */

static llm_gram_ref_t *
llm_gram_cache_find(llm_gram_cache_t *c, llm_str_t key)
{
    llm_gram_ref_t  *ref, **at;

    for (at = &c->first; (ref = *at) != NULL; at = &ref->next) {

        if (ref->len == key.len
            && memcmp(ref->key, key.data, key.len) == 0)
        {
            *at = ref->next;
            ref->next = c->first;
            c->first = ref;
            return ref;
        }
    }

    return NULL;
}


/* takes the oldest entries that nobody holds out of the list, except as many
   as the cache keeps, and gives each remaining entry its share of the memory;
   the caller has the lock and frees the entries after releasing it */

static llm_gram_ref_t *
llm_gram_cache_trim(llm_gram_cache_t *c)
{
    size_t           bytes;
    uint32_t         n, all;
    llm_gram_ref_t  *ref, **at, *out;

    n = 0;
    all = 0;
    bytes = 0;
    out = NULL;

    for (at = &c->first; (ref = *at) != NULL; /* void */ ) {

        all++;

        if (ref->n_held || ref->n_kept) {
            at = &ref->next;
            continue;
        }

        bytes += llm_gram_bytes(ref->gram);

        if (n++ < LLM_GRAM_CACHE && bytes <= LLM_GRAM_CACHE_BYTES) {
            at = &ref->next;
            continue;
        }

        *at = ref->next;
        ref->next = out;
        out = ref;
    }

    bytes = llm_max(LLM_GRAM_RUN_BYTES / llm_max(all, 1u),
                    LLM_GRAM_RUN_LEAST);

    for (ref = c->first; ref; ref = ref->next) {
        llm_gram_limit(ref->gram, bytes);
    }

    return out;
}


static void
llm_gram_refs_free(llm_gram_ref_t *ref)
{
    llm_gram_ref_t  *next;

    for ( /* void */ ; ref; ref = next) {
        next = ref->next;
        llm_gram_ref_free(ref);
    }
}


/* the tree of tokens, which is made for the first grammar of a model */

static const llm_toktree_t *
llm_gram_cache_tree(llm_gram_cache_t *c, llm_err_t *err)
{
    const llm_toktree_t  *tree;

    (void) pthread_mutex_lock(&c->lock);

    if (c->tree == NULL) {
        c->tree = llm_toktree_create(c->vocab, err);
    }

    tree = c->tree;

    (void) pthread_mutex_unlock(&c->lock);

    return tree;
}


static llm_gram_ref_t *
llm_gram_ref_create(llm_gram_cache_t *c, llm_str_t key,
    llm_gram_compile_pt compile, void *data, llm_err_t *err)
{
    llm_gram_ref_t       *ref;
    const llm_toktree_t  *tree;

    tree = llm_gram_cache_tree(c, err);
    if (tree == NULL) {
        return NULL;
    }

    ref = calloc(1, sizeof(*ref));

    if (ref == NULL || (ref->key = malloc(key.len + 1)) == NULL) {
        free(ref);
        (void) llm_fail(err, "no memory for a grammar");
        return NULL;
    }

    memcpy(ref->key, key.data, key.len);
    ref->len = key.len;
    ref->cache = c;
    ref->gram = compile(data, tree, err);

    if (ref->gram == NULL) {
        free(ref->key);
        free(ref);
        return NULL;
    }

    return ref;
}


/* ---- why a key has no grammar ---- */

/* the caller has the lock */

static const llm_err_t *
llm_gram_cache_error(const llm_gram_cache_t *c, const llm_gram_digest_t *d)
{
    uint32_t  i, n;

    n = llm_min(c->n_errors, (uint32_t) LLM_GRAM_CACHE_ERRORS);

    for (i = 0; i < n; i++) {
        if (memcmp(&c->errors[i].key, d, sizeof(*d)) == 0) {
            return &c->errors[i].err;
        }
    }

    return NULL;
}


/* keeps an error that is the client's fault and would occur again; does
   nothing without memory */

static void
llm_gram_cache_refuse(llm_gram_cache_t *c, const llm_gram_digest_t *d,
    const llm_err_t *err)
{
    llm_gram_error_t  *e;

    if (err->status != 400) {
        return;
    }

    (void) pthread_mutex_lock(&c->lock);

    if (c->errors == NULL) {
        c->errors = calloc(LLM_GRAM_CACHE_ERRORS, sizeof(*c->errors));
    }

    if (c->errors && llm_gram_cache_error(c, d) == NULL) {
        e = &c->errors[c->n_errors++ % LLM_GRAM_CACHE_ERRORS];
        e->key = *d;
        e->err = *err;
    }

    (void) pthread_mutex_unlock(&c->lock);
}


/* ---- the interface ---- */

static int
llm_gram_cache_find_digest(llm_gram_cache_t *c, llm_str_t key,
    const llm_gram_digest_t *d, llm_gram_ref_t **ref, llm_err_t *err)
{
    int               rc;
    llm_gram_ref_t   *old;
    const llm_err_t  *why;

    rc = LLM_ABSENT;
    old = NULL;

    (void) pthread_mutex_lock(&c->lock);
    *ref = llm_gram_cache_find(c, key);

    if (*ref) {
        (*ref)->n_held++;
        old = llm_gram_cache_trim(c);
        rc = LLM_OK;

    } else if ((why = llm_gram_cache_error(c, d)) != NULL) {
        *err = *why;
        rc = LLM_ERROR;
    }

    (void) pthread_mutex_unlock(&c->lock);

    llm_gram_refs_free(old);

    return rc;
}


static int
llm_gram_cache_digest(llm_str_t key, llm_gram_digest_t *d, llm_err_t *err)
{
    return llm_sha256(key.data, key.len, d->bytes) == LLM_OK
           ? LLM_OK : llm_fail(err, "no memory for a grammar");
}


int
llm_gram_cache_look(llm_gram_cache_t *c, llm_str_t key, llm_gram_ref_t **ref,
    llm_err_t *err)
{
    llm_gram_digest_t  d;

    *ref = NULL;

    if (llm_gram_cache_digest(key, &d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_gram_cache_find_digest(c, key, &d, ref, err);
}


llm_gram_ref_t *
llm_gram_cache_get(llm_gram_cache_t *c, llm_str_t key,
    llm_gram_compile_pt compile, void *data, llm_err_t *err)
{
    int                rc;
    llm_gram_ref_t    *ref, *mine, *old;
    llm_gram_digest_t  d;

    if (llm_gram_cache_digest(key, &d, err) != LLM_OK) {
        return NULL;
    }

    rc = llm_gram_cache_find_digest(c, key, &d, &ref, err);

    if (rc != LLM_ABSENT) {
        return rc == LLM_OK ? ref : NULL;
    }

    mine = llm_gram_ref_create(c, key, compile, data, err);

    if (mine == NULL) {
        llm_gram_cache_refuse(c, &d, err);
        return NULL;
    }

    /* another thread may have made the grammar meanwhile */

    (void) pthread_mutex_lock(&c->lock);
    ref = llm_gram_cache_find(c, key);

    if (ref == NULL) {
        ref = mine;
        ref->next = c->first;
        c->first = ref;
        mine = NULL;
    }

    ref->n_held++;
    old = llm_gram_cache_trim(c);

    (void) pthread_mutex_unlock(&c->lock);

    if (mine) {
        llm_gram_ref_free(mine);
    }

    llm_gram_refs_free(old);

    return ref;
}


llm_gram_t *
llm_gram_of(const llm_gram_ref_t *ref)
{
    return ref->gram;
}


size_t
llm_gram_share(const llm_gram_ref_t *ref)
{
    uint32_t  n;

    n = atomic_load_explicit(&ref->n_held, memory_order_relaxed);

    return llm_gram_bytes(ref->gram) / llm_max(n, 1u);
}


/* drops a reference of either kind */

static void
llm_gram_let_go(llm_gram_ref_t *ref, int kept)
{
    llm_gram_ref_t    *old;
    llm_gram_cache_t  *c;

    c = ref->cache;

    (void) pthread_mutex_lock(&c->lock);

    if (kept) {
        ref->n_kept--;

    } else {
        ref->n_held--;
    }

    old = llm_gram_cache_trim(c);
    (void) pthread_mutex_unlock(&c->lock);

    llm_gram_refs_free(old);
}


void
llm_gram_release(llm_gram_ref_t *ref)
{
    if (ref) {
        llm_gram_let_go(ref, 0);
    }
}


void
llm_gram_keep(llm_gram_ref_t *ref)
{
    (void) pthread_mutex_lock(&ref->cache->lock);
    ref->n_kept++;
    (void) pthread_mutex_unlock(&ref->cache->lock);
}


void
llm_gram_unkeep(llm_gram_ref_t *ref)
{
    llm_gram_let_go(ref, 1);
}
