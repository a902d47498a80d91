/*
 * Compiled grammars by the bytes of their rules; see cache.h.
 */

#include "engine/grammar/cache.h"

#include <pthread.h>
#include <stdio.h>


struct llm_gram_ref_s {
    llm_gram_cache_t    *cache;
    llm_gram_t          *gram;
    llm_rule_t           kind;
    char                *rule;          /* owned */
    size_t               len;
    uint32_t             n_held;        /* references that are out */
    llm_gram_ref_t      *next;          /* the next older one */
};

/* the lock guards all below but vocab */

struct llm_gram_cache_s {
    const llm_vocab_t   *vocab;
    pthread_mutex_t      lock;
    llm_toktree_t       *tree;          /* made for the first rule */
    llm_gram_ref_t      *first;         /* used last */
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
    free(ref->rule);
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
    (void) pthread_mutex_destroy(&c->lock);
    free(c);
}


/* finds an entry and moves it to the front; the caller has the lock */

static llm_gram_ref_t *
llm_gram_cache_find(llm_gram_cache_t *c, llm_rule_t kind, llm_str_t rule)
{
    llm_gram_ref_t  *ref, **at;

    for (at = &c->first; (ref = *at) != NULL; at = &ref->next) {

        if (ref->kind == kind && ref->len == rule.len
            && (rule.len == 0 || memcmp(ref->rule, rule.data, rule.len) == 0))
        {
            *at = ref->next;
            ref->next = c->first;
            c->first = ref;
            return ref;
        }
    }

    return NULL;
}


/* takes the oldest entries that nobody holds out of the list, but for as many
   as are kept; the caller has the lock and frees them without it */

static llm_gram_ref_t *
llm_gram_cache_trim(llm_gram_cache_t *c)
{
    uint32_t         n;
    llm_gram_ref_t  *ref, **at, *out;

    n = 0;
    out = NULL;

    for (at = &c->first; (ref = *at) != NULL; /* void */ ) {

        if (ref->n_held || n++ < LLM_GRAM_CACHE) {
            at = &ref->next;
            continue;
        }

        *at = ref->next;
        ref->next = out;
        out = ref;
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


static llm_gram_t *
llm_gram_compile_choice(llm_str_t rule, const llm_toktree_t *tree,
    llm_err_t *err)
{
    uint32_t           n;
    llm_str_t         *texts;
    llm_gram_t        *g;
    const llm_flat_t  *v, *list;

    list = (const llm_flat_t *) rule.data;

    texts = calloc(llm_max(list->count, 1u), sizeof(*texts));
    if (texts == NULL) {
        (void) llm_fail(err, "no memory for the choices");
        return NULL;
    }

    n = 0;

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        if (v->type == LLM_FLAT_STRING) {
            texts[n++] = llm_flat_str(v);
        }
    }

    g = llm_gram_choice(texts, n, tree, err);
    free(texts);

    return g;
}


static llm_gram_t *
llm_gram_compile(llm_rule_t kind, llm_str_t rule, const llm_toktree_t *tree,
    llm_err_t *err)
{
    switch (kind) {

    case LLM_RULE_OBJECT:
        return llm_gram_json_object(tree, err);

    case LLM_RULE_GBNF:
        return llm_gram_gbnf(rule.data, rule.len, tree, err);

    case LLM_RULE_REGEX:
        return llm_gram_regex(rule.data, rule.len, tree, err);

    case LLM_RULE_SCHEMA:
    case LLM_RULE_CHOICE:
        if (llm_flat_check(rule.data, rule.len) == LLM_OK) {
            return kind == LLM_RULE_SCHEMA
                   ? llm_gram_schema((const llm_flat_t *) rule.data, tree,
                                     err)
                   : llm_gram_compile_choice(rule, tree, err);
        }

        break;

    default:
        break;
    }

    (void) llm_fail(err, "malformed request to the engine");

    return NULL;
}


/* the client's field before the path in its value */

static void
llm_gram_name_error(llm_str_t name, llm_err_t *err)
{
    char  path[sizeof(err->param)];

    if (err->status >= 500) {
        return;
    }

    memcpy(path, err->param, sizeof(path));

    snprintf(err->param, sizeof(err->param), "%.*s%s%.*s",
             (int) llm_min(name.len, sizeof(path) / 2), name.data,
             *path ? "." : "", (int) sizeof(path) / 2, path);
}


/* the tree of tokens, which is made for the first rule of a model */

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
llm_gram_ref_create(llm_gram_cache_t *c, llm_rule_t kind, llm_str_t rule,
    llm_err_t *err)
{
    llm_gram_ref_t       *ref;
    const llm_toktree_t  *tree;

    tree = llm_gram_cache_tree(c, err);
    if (tree == NULL) {
        return NULL;
    }

    ref = calloc(1, sizeof(*ref));

    if (ref == NULL || (ref->rule = malloc(rule.len + 1)) == NULL) {
        free(ref);
        (void) llm_fail(err, "no memory for a grammar");
        return NULL;
    }

    memcpy(ref->rule, rule.data, rule.len);
    ref->len = rule.len;
    ref->kind = kind;
    ref->cache = c;

    ref->gram = llm_gram_compile(kind, rule, tree, err);

    if (ref->gram == NULL) {
        free(ref->rule);
        free(ref);
        return NULL;
    }

    return ref;
}


llm_gram_ref_t *
llm_gram_cache_get(llm_gram_cache_t *c, llm_rule_t kind, llm_str_t rule,
    llm_str_t name, llm_err_t *err)
{
    llm_gram_ref_t  *ref, *mine, *old;

    mine = NULL;

    (void) pthread_mutex_lock(&c->lock);
    ref = llm_gram_cache_find(c, kind, rule);

    if (ref == NULL) {
        (void) pthread_mutex_unlock(&c->lock);

        mine = llm_gram_ref_create(c, kind, rule, err);

        if (mine == NULL) {
            llm_gram_name_error(name, err);
            return NULL;
        }

        /* another thread may have been faster */

        (void) pthread_mutex_lock(&c->lock);
        ref = llm_gram_cache_find(c, kind, rule);

        if (ref == NULL) {
            ref = mine;
            ref->next = c->first;
            c->first = ref;
            mine = NULL;
        }
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


void
llm_gram_release(llm_gram_ref_t *ref)
{
    llm_gram_ref_t    *old;
    llm_gram_cache_t  *c;

    if (ref == NULL) {
        return;
    }

    c = ref->cache;

    (void) pthread_mutex_lock(&c->lock);
    ref->n_held--;
    old = llm_gram_cache_trim(c);
    (void) pthread_mutex_unlock(&c->lock);

    llm_gram_refs_free(old);
}
