/*
 * Unique items: the machine compares items as they come, which it can do only
 * with scalars.  For each array the scalars are looked up once, and the number
 * of different values, because too few of them leave no way to an end.
 */

#include "engine/grammar/unique.h"
#include "engine/grammar/values.h"


/* appends the scalars that a node stands for to the kids; LLM_ERROR: the node
   may stand for something else */

static int
llm_unique_scalars(llm_gram_build_t *b, llm_gn_t node, uint32_t depth)
{
    uint32_t    i;
    llm_node_t  x;

    x = b->nodes.data[node];

    if (depth > 100) {
        return LLM_ERROR;
    }

    switch (x.kind) {

    case LLM_NODE_NONE:
        return LLM_OK;

    case LLM_NODE_REF:
        return llm_unique_scalars(b, x.a, depth + 1);

    case LLM_NODE_ALT:
        for (i = 0; i < x.b; i++) {
            if (llm_unique_scalars(b, b->kids.data[x.a + i], depth + 1)
                != LLM_OK)
            {
                return LLM_ERROR;
            }
        }

        return LLM_OK;

    case LLM_NODE_TEXT:
    case LLM_NODE_STRING:
    case LLM_NODE_REGEX:
        if (llm_vec_more(&b->kids, 1) != LLM_OK) {
            b->failed = 1;
            return LLM_ERROR;
        }

        b->kids.data[b->kids.n++] = node;
        return LLM_OK;

    default:
        return LLM_ERROR;
    }
}


static void
llm_unique_count_one(llm_gram_build_t *b, llm_array_t *a)
{
    a->scalars = b->kids.n;

    if (a->n_prefix > 0 || a->min_contains > 0
        || llm_unique_scalars(b, a->items, 0) != LLM_OK)
    {
        b->kids.n = a->scalars;
        return;
    }

    a->n_scalars = b->kids.n - a->scalars;
    a->counted = 1;

    if (a->min > 1) {
        a->n_values = llm_value_count(b, b->kids.data + a->scalars,
                                      a->n_scalars, a->min);
    }
}


void
llm_unique_count(llm_gram_build_t *b)
{
    for ( /* void */ ; b->n_counted < b->arrays.n; b->n_counted++) {
        if (b->arrays.data[b->n_counted].unique) {
            llm_rx_worked(b->pool);
            llm_unique_count_one(b, &b->arrays.data[b->n_counted]);
        }
    }
}


/* arrays whose items cannot be counted are refused later */

int
llm_unique_enough(const llm_array_t *a)
{
    return a->min < 2 || !a->counted || a->n_values >= a->min;
}


/* ---- items that cannot be compared ---- */

/* nodes that a walk has reached and not looked into yet */
typedef struct {
    llm_gram_build_t  *b;
    uint8_t           *seen;
    llm_gn_t          *items;
    uint32_t           n;
} llm_unique_walk_t;


static void
llm_unique_go(llm_unique_walk_t *w, llm_gn_t node)
{
    if (w->b->nodes.data[node].live && !w->seen[node]) {
        w->seen[node] = 1;
        w->items[w->n++] = node;
    }
}


static void
llm_unique_go_all(llm_unique_walk_t *w, uint32_t first, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        llm_unique_go(w, w->b->kids.data[first + i]);
    }
}


static void
llm_unique_go_object(llm_unique_walk_t *w, const llm_object_t *o)
{
    uint32_t  i;

    for (i = 0; i < o->n_named; i++) {
        llm_unique_go(w, w->b->named.data[o->named + i].value);
    }

    for (i = 0; i < o->n_others; i++) {
        llm_unique_go(w, w->b->others.data[o->others + i].value);
    }
}


/* looks into the node; nonzero: it is an array whose items cannot be
   compared */

static int
llm_unique_look(llm_unique_walk_t *w, const llm_node_t *x)
{
    const llm_array_t  *a;

    switch (x->kind) {

    case LLM_NODE_SEQ:
    case LLM_NODE_ALT:
        llm_unique_go_all(w, x->a, x->b);
        return 0;

    case LLM_NODE_REPEAT:
    case LLM_NODE_REF:
        llm_unique_go(w, x->a);
        return 0;

    case LLM_NODE_OBJECT:
        llm_unique_go_object(w, &w->b->objects.data[x->a]);
        return 0;

    case LLM_NODE_ARRAY:
        a = &w->b->arrays.data[x->a];

        llm_unique_go_all(w, a->prefix, a->n_prefix);
        llm_unique_go(w, a->items);
        llm_unique_go(w, a->contains);

        return a->unique && !a->counted;

    default:
        return 0;
    }
}


llm_gn_t
llm_gn_unknown(llm_gram_build_t *b, llm_gn_t root)
{
    llm_gn_t           node, found;
    llm_unique_walk_t  w;

    w.b = b;
    w.n = 0;
    w.seen = calloc(b->nodes.n, 1);
    w.items = malloc(b->nodes.n * sizeof(llm_gn_t));
    found = LLM_GN_NONE;

    if (w.seen == NULL || w.items == NULL) {
        b->failed = 1;

    } else {
        llm_unique_go(&w, root);
    }

    while (w.n > 0 && found == LLM_GN_NONE) {
        node = w.items[--w.n];

        if (llm_unique_look(&w, &b->nodes.data[node])) {
            found = node;
        }
    }

    free(w.seen);
    free(w.items);

    return found;
}
