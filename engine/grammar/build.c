/*
 * Makes the nodes of a grammar; see grammar.h.  Errors are kept: a builder
 * that has failed returns LLM_GN_NONE, and llm_gram_finish() reports why.
 */

#include "engine/grammar/internal.h"


llm_gram_build_t *
llm_gram_build(void)
{
    llm_gram_build_t  *b;

    b = calloc(1, sizeof(llm_gram_build_t));
    if (b == NULL) {
        return NULL;
    }

    llm_buf_init(&b->text, LLM_GRAM_MAX_TEXT);
    b->pool = llm_rx_create(LLM_GRAM_MAX_RX);

    if (b->pool == NULL || llm_vec_more(&b->nodes, 2) != LLM_OK) {
        llm_gram_build_free(b);
        return NULL;
    }

    memset(b->nodes.data, 0, 2 * sizeof(llm_node_t));
    b->nodes.n = 2;
    b->nodes.data[LLM_GN_EMPTY].kind = LLM_NODE_EMPTY;

    return b;
}


void
llm_gram_build_free(llm_gram_build_t *b)
{
    if (b == NULL) {
        return;
    }

    llm_rx_free(b->pool);
    free(b->nodes.data);
    free(b->kids.data);
    free(b->named.data);
    free(b->others.data);
    free(b->objects.data);
    free(b->arrays.data);
    free(b->by_key.data);
    free(b->counts.data);
    llm_buf_free(&b->text);
    free(b);
}


llm_rx_pool_t *
llm_gram_pool(llm_gram_build_t *b)
{
    return b->pool;
}


void
llm_gram_pause(llm_gram_build_t *b, int (*pause)(void *data), void *data)
{
    b->pool->pause = pause;
    b->pool->pause_data = data;
}


uint64_t *
llm_gram_spent_us(llm_gram_build_t *b)
{
    return &b->spent_us;
}


static llm_gn_t
llm_gn_fail(llm_gram_build_t *b)
{
    b->failed = 1;

    return LLM_GN_NONE;
}


static llm_gn_t
llm_gn_new(llm_gram_build_t *b, llm_node_kind_t kind, uint32_t x, uint32_t y,
    uint32_t z)
{
    llm_node_t  *n;

    if (b->failed || b->nodes.n >= LLM_GRAM_MAX_NODES
        || llm_vec_more(&b->nodes, 1) != LLM_OK)
    {
        return llm_gn_fail(b);
    }

    n = &b->nodes.data[b->nodes.n];
    memset(n, 0, sizeof(*n));
    n->kind = (uint8_t) kind;
    n->a = x;
    n->b = y;
    n->c = z;

    return b->nodes.n++;
}


/* copies nodes to the kids; returns the index of the first */

static uint32_t
llm_gn_kids(llm_gram_build_t *b, const llm_gn_t *nodes, uint32_t n)
{
    uint32_t  first;

    first = b->kids.n;

    if (n == 0) {
        return first;
    }

    if (n > LLM_GRAM_MAX_NODES || llm_vec_more(&b->kids, n) != LLM_OK) {
        return llm_gn_fail(b);
    }

    memcpy(b->kids.data + first, nodes, n * sizeof(llm_gn_t));
    b->kids.n += n;

    return first;
}


llm_gn_t
llm_gn_text(llm_gram_build_t *b, const char *text, size_t len)
{
    size_t  first;

    if (len == 0) {
        return LLM_GN_EMPTY;
    }

    first = b->text.len;

    if (llm_buf_add(&b->text, text, len) != LLM_OK) {
        return llm_gn_fail(b);
    }

    return llm_gn_new(b, LLM_NODE_TEXT, (uint32_t) first, (uint32_t) len, 0);
}


llm_gn_t
llm_gn_regex(llm_gram_build_t *b, llm_rx_t rx)
{
    if (rx == LLM_RX_NONE || rx == LLM_RX_EMPTY) {
        return rx == LLM_RX_NONE ? LLM_GN_NONE : LLM_GN_EMPTY;
    }

    return llm_gn_new(b, LLM_NODE_REGEX, rx, 0, 0);
}


llm_gn_t
llm_gn_string(llm_gram_build_t *b, llm_rx_t rx)
{
    return rx == LLM_RX_NONE ? LLM_GN_NONE
                             : llm_gn_new(b, LLM_NODE_STRING, rx, 0, 0);
}


llm_gn_t
llm_gn_seq(llm_gram_build_t *b, const llm_gn_t *nodes, uint32_t n)
{
    if (n < 2) {
        return n == 1 ? nodes[0] : LLM_GN_EMPTY;
    }

    return llm_gn_new(b, LLM_NODE_SEQ, llm_gn_kids(b, nodes, n), n, 0);
}


llm_gn_t
llm_gn_alt(llm_gram_build_t *b, const llm_gn_t *nodes, uint32_t n)
{
    if (n < 2) {
        return n == 1 ? nodes[0] : LLM_GN_NONE;
    }

    return llm_gn_new(b, LLM_NODE_ALT, llm_gn_kids(b, nodes, n), n, 0);
}


llm_gn_t
llm_gn_repeat(llm_gram_build_t *b, llm_gn_t node, uint32_t min, uint32_t max)
{
    if (min > max) {
        return LLM_GN_NONE;
    }

    if (max == 0) {
        return LLM_GN_EMPTY;
    }

    if (min == 1 && max == 1) {
        return node;
    }

    return llm_gn_new(b, LLM_NODE_REPEAT, node, min, max);
}


/* ---- objects ---- */

/* appends a key as JSON writes it in the shortest way, with its colon */

static void
llm_gn_key(llm_buf_t *b, llm_str_t key)
{
    size_t        i;
    uint8_t       c;
    const char   *found;

    static const char  chars[] = "\"\\\b\f\n\r\t";
    static const char  names[] = "\"\\bfnrt";

    (void) llm_buf_addc(b, '"');

    for (i = 0; i < key.len; i++) {
        c = (uint8_t) key.data[i];
        found = c ? strchr(chars, c) : NULL;

        if (found) {
            (void) llm_buf_addc(b, '\\');
            (void) llm_buf_addc(b, names[found - chars]);

        } else if (c < 0x20) {
            (void) llm_buf_addf(b, "\\u%04x", c);

        } else {
            (void) llm_buf_addc(b, (char) c);
        }
    }

    (void) llm_buf_adds(b, "\":");
}


static int
llm_gn_named(llm_gram_build_t *b, const llm_gn_object_t *o)
{
    size_t        first;
    uint32_t      i;
    llm_named_t  *n;

    if (o->n_named > LLM_GRAM_MAX_NODES
        || llm_vec_more(&b->named, o->n_named) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < o->n_named; i++) {
        first = b->text.len;
        llm_gn_key(&b->text, o->named[i].key);

        n = &b->named.data[b->named.n++];
        memset(n, 0, sizeof(*n));
        n->text = (uint32_t) first;
        n->len = (uint32_t) (b->text.len - first);
        n->value = o->named[i].value;
        n->required = o->named[i].required != 0;
    }

    return b->text.failed ? LLM_ERROR : LLM_OK;
}


llm_gn_t
llm_gn_object(llm_gram_build_t *b, const llm_gn_object_t *o)
{
    llm_object_t  *x;

    if (b->failed || o->n_others > LLM_GRAM_MAX_NODES
        || llm_vec_more(&b->objects, 1) != LLM_OK
        || llm_vec_more(&b->others, o->n_others) != LLM_OK)
    {
        return llm_gn_fail(b);
    }

    x = &b->objects.data[b->objects.n];
    memset(x, 0, sizeof(*x));
    x->named = b->named.n;
    x->n_named = o->n_named;
    x->others = b->others.n;
    x->n_others = o->n_others;
    x->min = o->min;
    x->max = o->max;

    if (o->n_others) {
        memcpy(b->others.data + b->others.n, o->others,
               o->n_others * sizeof(llm_gn_others_t));
        b->others.n += o->n_others;
    }

    if (llm_gn_named(b, o) != LLM_OK) {
        return llm_gn_fail(b);
    }

    return llm_gn_new(b, LLM_NODE_OBJECT, b->objects.n++, 0, 0);
}


llm_gn_t
llm_gn_array(llm_gram_build_t *b, const llm_gn_array_t *a)
{
    llm_array_t  *x;

    if (b->failed || llm_vec_more(&b->arrays, 1) != LLM_OK) {
        return llm_gn_fail(b);
    }

    x = &b->arrays.data[b->arrays.n];
    memset(x, 0, sizeof(*x));
    x->prefix = llm_gn_kids(b, a->prefix, a->n_prefix);
    x->n_prefix = a->n_prefix;
    x->items = a->items;
    x->contains = a->min_contains ? a->contains : LLM_GN_NONE;
    x->min_contains = a->min_contains;
    x->min = a->min;
    x->max = a->max;
    x->unique = a->unique;

    return llm_gn_new(b, LLM_NODE_ARRAY, b->arrays.n++, 0, 0);
}


/* ---- references ---- */

llm_gn_t
llm_gn_ref(llm_gram_build_t *b)
{
    return llm_gn_new(b, LLM_NODE_REF, LLM_GN_NONE, 0, 0);
}


void
llm_gn_define(llm_gram_build_t *b, llm_gn_t ref, llm_gn_t node)
{
    if (!b->failed) {
        b->nodes.data[ref].a = node;
    }
}
