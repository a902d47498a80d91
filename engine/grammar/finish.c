/*
 * From a builder to a grammar that can run: finds nodes that have no way to an
 * end (a fixed point: a reference only into itself has none), refuses left
 * recursion and grammars that are too large, and gives objects and arrays the
 * counts from which the machine knows what may still follow.
 */

#include "engine/grammar/finish.h"
#include "engine/grammar/unique.h"
#include "engine/grammar/values.h"


/* ---- nodes with a way to their end ---- */

static int
llm_finish_live_object(llm_gram_build_t *b, llm_object_t *o)
{
    uint32_t          i, required, live;
    llm_named_t      *n;
    llm_gn_others_t  *other;

    required = 0;
    live = 0;

    for (i = 0; i < o->n_named; i++) {
        n = &b->named.data[o->named + i];
        n->live = b->nodes.data[n->value].live;

        if (n->required && !n->live) {
            return 0;
        }

        required += n->required;
        live += n->live;
    }

    if (required > o->max || o->min > o->max) {
        return 0;
    }

    o->n_keys = 0;

    for (i = 0; i < o->n_others && o->n_keys < o->min; i++) {
        other = &b->others.data[o->others + i];

        if (b->nodes.data[other->value].live) {
            o->n_keys += llm_value_texts(b->pool, other->key,
                                         o->min - o->n_keys);
        }
    }

    return live + o->n_keys >= o->min;
}


/* how many items can come; without items of their own after the prefix, only
   those that contains requires */

static uint32_t
llm_finish_array_max(const llm_gram_build_t *b, const llm_array_t *a)
{
    uint32_t  n;
    uint64_t  max;

    for (n = 0; n < a->n_prefix; n++) {
        if (!b->nodes.data[b->kids.data[a->prefix + n]].live) {
            return llm_min(n, a->max);
        }
    }

    if (b->nodes.data[a->items].live) {
        return a->max;
    }

    max = n;

    if (a->min_contains > 0 && b->nodes.data[a->contains].live) {
        max += a->min_contains;
    }

    return (uint32_t) llm_min(max, a->max);
}


static int
llm_finish_live_array(llm_gram_build_t *b, llm_array_t *a)
{
    uint32_t  max;

    max = llm_finish_array_max(b, a);

    if (a->min > max) {
        return 0;
    }

    if (a->min_contains > 0
        && (!b->nodes.data[a->contains].live || max < a->n_prefix
            || max - a->n_prefix < a->min_contains))
    {
        return 0;
    }

    return !a->unique || llm_unique_enough(a);
}


static int
llm_finish_live(llm_gram_build_t *b, llm_node_t *x)
{
    uint32_t  i;

    switch (x->kind) {

    case LLM_NODE_EMPTY:
    case LLM_NODE_TEXT:
        return 1;

    case LLM_NODE_REGEX:
    case LLM_NODE_STRING:
        return llm_rx_alive(b->pool, x->a);

    case LLM_NODE_SEQ:
    case LLM_NODE_ALT:
        for (i = 0; i < x->b; i++) {
            if (b->nodes.data[b->kids.data[x->a + i]].live
                != (x->kind == LLM_NODE_SEQ))
            {
                return x->kind == LLM_NODE_ALT;
            }
        }

        return x->kind == LLM_NODE_SEQ;

    case LLM_NODE_REPEAT:
        return x->b == 0 || b->nodes.data[x->a].live;

    case LLM_NODE_OBJECT:
        return llm_finish_live_object(b, &b->objects.data[x->a]);

    case LLM_NODE_ARRAY:
        return llm_finish_live_array(b, &b->arrays.data[x->a]);

    case LLM_NODE_REF:
        return b->nodes.data[x->a].live;

    default:
        return 0;
    }
}


static int
llm_finish_nullable(llm_gram_build_t *b, llm_node_t *x)
{
    uint32_t  i;

    switch (x->kind) {

    case LLM_NODE_EMPTY:
        return 1;

    case LLM_NODE_REGEX:
        return llm_rx_nullable(b->pool, x->a);

    case LLM_NODE_SEQ:
    case LLM_NODE_ALT:
        for (i = 0; i < x->b; i++) {
            if (b->nodes.data[b->kids.data[x->a + i]].nullable
                != (x->kind == LLM_NODE_SEQ))
            {
                return x->kind == LLM_NODE_ALT;
            }
        }

        return x->kind == LLM_NODE_SEQ;

    case LLM_NODE_REPEAT:
        return x->b == 0 || b->nodes.data[x->a].nullable;

    case LLM_NODE_REF:
        return b->nodes.data[x->a].nullable;

    default:
        return 0;
    }
}


/* repeats until nothing changes; most nodes were made after those that they
   refer to.  Nodes before `from` are known, and refer to no later ones */

static void
llm_finish_fix(llm_gram_build_t *b, uint32_t from)
{
    int          changed;
    uint32_t     i;
    llm_node_t  *x;

    llm_unique_count(b);

    do {
        changed = 0;

        for (i = from; i < b->nodes.n; i++) {
            x = &b->nodes.data[i];
            llm_rx_worked(b->pool);

            if (!x->live && llm_finish_live(b, x)) {
                x->live = 1;
                changed = 1;
            }

            if (!x->nullable && llm_finish_nullable(b, x)) {
                x->nullable = 1;
                changed = 1;
            }
        }

    } while (changed);

    b->n_looked = b->nodes.n;
}


/* ---- left recursion ---- */

/* the i-th node that may begin where `node` begins; UINT32_MAX: there are no
   more */

static uint32_t
llm_finish_edge(llm_gram_build_t *b, llm_gn_t node, uint32_t i)
{
    llm_node_t  *x;

    x = &b->nodes.data[node];

    switch (x->kind) {

    case LLM_NODE_ALT:
        return i < x->b ? b->kids.data[x->a + i] : UINT32_MAX;

    case LLM_NODE_SEQ:
        if (i >= x->b
            || (i > 0 && !b->nodes.data[b->kids.data[x->a + i - 1]].nullable))
        {
            return UINT32_MAX;
        }

        return b->kids.data[x->a + i];

    case LLM_NODE_REPEAT:
    case LLM_NODE_REF:
        return i == 0 ? x->a : UINT32_MAX;

    default:
        return UINT32_MAX;
    }
}


/* a step of a depth-first walk */
typedef struct {
    llm_gn_t     node;
    uint32_t     edge;
} llm_finish_step_t;


/* the reference by which a node with which root may begin begins with itself,
   or LLM_GN_NONE.  A node is marked 1 while the walk is inside it, then 2 */

static llm_gn_t
llm_finish_cycle(llm_gram_build_t *b, llm_gn_t root, llm_finish_step_t *stack)
{
    uint32_t            n, next;
    llm_finish_step_t  *s;

    stack[0].node = root;
    stack[0].edge = 0;
    b->nodes.data[root].mark = 1;

    for (n = 1; n > 0; ) {
        s = &stack[n - 1];
        next = llm_finish_edge(b, s->node, s->edge++);

        if (next == UINT32_MAX) {
            b->nodes.data[s->node].mark = 2;
            n--;
            continue;
        }

        if (!b->nodes.data[next].live) {
            continue;
        }

        if (b->nodes.data[next].mark == 1) {

            /* only references lead back */

            while (b->nodes.data[stack[n - 1].node].kind != LLM_NODE_REF) {
                n--;
            }

            return stack[n - 1].node;
        }

        if (b->nodes.data[next].mark == 0) {
            b->nodes.data[next].mark = 1;
            stack[n].node = next;
            stack[n++].edge = 0;
        }
    }

    return LLM_GN_NONE;
}


/* all marks are 0 at first */

static llm_gn_t
llm_finish_cycles(llm_gram_build_t *b)
{
    llm_gn_t            found;
    uint32_t            i;
    llm_finish_step_t  *stack;

    stack = malloc((b->nodes.n + 1) * sizeof(llm_finish_step_t));
    if (stack == NULL) {
        b->failed = 1;
        return LLM_GN_NONE;
    }

    found = LLM_GN_NONE;

    for (i = 0; i < b->nodes.n && found == LLM_GN_NONE; i++) {
        if (b->nodes.data[i].live && b->nodes.data[i].mark == 0) {
            found = llm_finish_cycle(b, i, stack);
        }
    }

    free(stack);

    for (i = 0; i < b->nodes.n; i++) {
        b->nodes.data[i].mark = 0;
    }

    return found;
}


/* ---- tables ---- */

static int
llm_finish_key_compare(const void *a, const void *b, void *data)
{
    int                 rc;
    llm_gram_build_t   *g;
    const llm_named_t  *x, *y;

    g = data;
    x = &g->named.data[*(const uint32_t *) a];
    y = &g->named.data[*(const uint32_t *) b];

    rc = memcmp(g->text.data + x->text, g->text.data + y->text,
                llm_min(x->len, y->len));

    return rc ? rc : x->len < y->len ? -1 : x->len > y->len;
}


static int
llm_finish_object(llm_gram_build_t *b, llm_object_t *o)
{
    uint32_t       i;
    llm_named_t   *n;
    llm_counts_t  *c;

    /* once more, now that all values are known to be live or not */

    (void) llm_finish_live_object(b, o);

    o->order = b->by_key.n;
    o->counts = b->counts.n;

    if (llm_vec_more(&b->by_key, o->n_named) != LLM_OK
        || llm_vec_more(&b->counts, o->n_named + 1) != LLM_OK)
    {
        return LLM_ERROR;
    }

    c = &b->counts.data[o->counts + o->n_named];
    c->required = 0;
    c->live = 0;
    c->next = o->n_named;
    b->counts.n += o->n_named + 1;

    for (i = o->n_named; i > 0; i--) {
        n = &b->named.data[o->named + i - 1];
        c--;
        c->required = c[1].required + n->required;
        c->live = c[1].live + n->live;
        c->next = n->required ? i - 1 : c[1].next;

        if (n->live) {
            b->by_key.data[b->by_key.n++] = o->named + i - 1;
        }
    }

    o->n_order = b->by_key.n - o->order;

    if (o->n_order) {
        qsort_r(b->by_key.data + o->order, o->n_order, sizeof(uint32_t),
                llm_finish_key_compare, b);
    }

    return LLM_OK;
}


static int
llm_finish_tables(llm_gram_build_t *b, llm_err_t *err)
{
    uint32_t      i;
    llm_node_t   *x;
    llm_array_t  *a;

    for (i = 0; i < b->objects.n; i++) {
        if (llm_finish_object(b, &b->objects.data[i]) != LLM_OK) {
            return llm_fail(err, "no memory for a grammar");
        }
    }

    for (i = 0; i < b->arrays.n; i++) {
        a = &b->arrays.data[i];
        a->max = llm_finish_array_max(b, a);
    }

    for (i = 0; i < b->nodes.n; i++) {
        x = &b->nodes.data[i];

        if (x->kind != LLM_NODE_REPEAT || !b->nodes.data[x->a].nullable) {
            continue;
        }

        if (x->c != LLM_GN_NO_MAX && x->c > LLM_GRAM_MAX_EMPTY) {
            return llm_fail_with(err, 400, NULL, NULL, "what may be empty "
                                 "is repeated %u times, which is more than "
                                 "%u", x->c, LLM_GRAM_MAX_EMPTY);
        }

        x->b = 0;
    }

    return LLM_OK;
}


/* returns an error for a node without a way to its end; LLM_ABSENT: that is
   certain */

static int
llm_finish_dead(llm_gram_build_t *b, llm_gn_t node, llm_err_t *err)
{
    if (!llm_gn_dead(b, node)) {
        return llm_fail_with(err, 400, NULL, NULL, "the grammar, or a pattern "
                             "in it, is too ambiguous: whether any text "
                             "matches it could not be decided within its "
                             "bounds");
    }

    (void) llm_fail_with(err, 400, NULL, NULL, "no text matches the grammar");

    return LLM_ABSENT;
}


int
llm_gn_dead(llm_gram_build_t *b, llm_gn_t node)
{
    llm_finish_fix(b, b->n_looked);

    return !b->nodes.data[node].live && !b->failed
           && !llm_rx_failed(b->pool) && !b->pool->undecided;
}


int
llm_gn_alive(llm_gram_build_t *b, llm_gn_t node, llm_err_t *err)
{
    if (b->failed || llm_rx_failed(b->pool) || b->text.failed) {
        return LLM_OK;
    }

    llm_finish_fix(b, b->n_looked);

    return b->nodes.data[node].live || b->failed || llm_rx_failed(b->pool)
           ? LLM_OK : llm_finish_dead(b, node, err);
}


llm_gn_t
llm_gn_left(llm_gram_build_t *b)
{
    if (b->failed || llm_rx_failed(b->pool)) {
        return LLM_GN_NONE;
    }

    llm_finish_fix(b, b->n_looked);

    return llm_finish_cycles(b);
}


int
llm_finish(llm_gram_build_t *b, llm_gn_t root, llm_err_t *err)
{
    if (b->failed || llm_rx_failed(b->pool) || b->text.failed) {
        return llm_fail_with(err, 400, NULL, NULL, "the grammar is too "
                             "large");
    }

    llm_finish_fix(b, 0);

    if (b->failed || llm_rx_failed(b->pool)) {
        return llm_fail_with(err, 400, NULL, NULL, "the grammar is too "
                             "large");
    }

    if (!b->nodes.data[root].live) {
        (void) llm_finish_dead(b, root, err);
        return LLM_ERROR;
    }

    if (llm_gn_unknown(b, root) != LLM_GN_NONE) {
        return llm_fail_with(err, 400, NULL, NULL, LLM_UNIQUE_UNKNOWN);
    }

    if (llm_finish_cycles(b) != LLM_GN_NONE) {
        return llm_fail_with(err, 400, NULL, NULL, "the grammar is left-"
                             "recursive: something begins with itself");
    }

    if (b->failed) {
        return llm_fail(err, "no memory for a grammar");
    }

    return llm_finish_tables(b, err);
}
