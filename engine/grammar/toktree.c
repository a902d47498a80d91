/*
 * The tree of a vocabulary's tokens; see toktree.h.
 */

#include "engine/grammar/lexer.h"
#include "engine/grammar/toktree.h"

#define LLM_TREE_MAX_NODES  (1u << 24)

/* a text that is to be added to a tree */
typedef struct {
    const uint8_t  *p;
    uint32_t        len;
    uint32_t        id;
    uint32_t        chars;
} llm_tree_item_t;


static int
llm_tree_compare(const void *a, const void *b)
{
    int                     rc;
    const llm_tree_item_t  *x, *y;

    x = a;
    y = b;
    rc = memcmp(x->p, y->p, llm_min(x->len, y->len));

    if (rc) {
        return rc;
    }

    if (x->len != y->len) {
        return x->len < y->len ? -1 : 1;
    }

    return x->id < y->id ? -1 : x->id > y->id;
}


static uint32_t
llm_tree_common(const llm_tree_item_t *a, const llm_tree_item_t *b)
{
    uint32_t  i;

    for (i = 0; i < a->len && i < b->len && a->p[i] == b->p[i]; i++) {
        /* void */
    }

    return i;
}


/* LLM_ERROR: no memory, or too many nodes */

static int
llm_tree_build(llm_tree_t *t, llm_tree_item_t *items, uint32_t n, int chars)
{
    size_t     bytes;
    uint32_t   i, k, keep, depth, deepest, *open;

    qsort(items, n, sizeof(llm_tree_item_t), llm_tree_compare);

    bytes = 0;
    deepest = 0;

    for (i = 0; i < n; i++) {
        bytes += items[i].len - (i ? llm_tree_common(&items[i - 1], &items[i])
                                   : 0);
        deepest = llm_max(deepest, items[i].len);
    }

    if (bytes >= LLM_TREE_MAX_NODES) {
        return LLM_ERROR;
    }

    t->nodes = calloc(bytes + 1, sizeof(llm_tree_node_t));
    t->ids = malloc((n + 1) * sizeof(uint32_t));
    t->chars = chars ? malloc((n + 1) * sizeof(uint16_t)) : NULL;
    open = malloc((deepest + 1) * sizeof(uint32_t));

    if (!t->nodes || !t->ids || !open || (chars && !t->chars)) {
        free(open);
        return LLM_ERROR;
    }

    depth = 0;

    for (i = 0; i < n; i++) {
        keep = i ? llm_tree_common(&items[i - 1], &items[i]) : 0;

        while (depth > keep) {
            t->nodes[open[--depth]].end = t->n;
        }

        for (k = depth; k < items[i].len; k++) {
            if (k == 0) {
                t->root[items[i].p[0]] = t->n + 1;
            }

            t->nodes[t->n].byte = items[i].p[k];
            t->nodes[t->n].first = i;
            open[k] = t->n++;
        }

        depth = items[i].len;
        t->ids[i] = items[i].id;

        if (chars) {
            t->chars[i] = (uint16_t) llm_min(items[i].chars, UINT16_MAX);
        }
    }

    while (depth > 0) {
        t->nodes[open[--depth]].end = t->n;
    }

    t->nodes[t->n].end = t->n;
    t->nodes[t->n].first = n;

    free(open);

    return LLM_OK;
}


static void
llm_tree_free(llm_tree_t *t)
{
    free(t->nodes);
    free(t->ids);
    free(t->chars);
}


/* ---- tokens inside strings ---- */

/* what a token does in a string of JSON */
typedef struct {
    int          stays;
    int          leaves;
    uint32_t     at;                    /* leaves: index after the byte that
                                           ends the string */
    uint32_t     chars;                 /* characters begun by then */
} llm_tree_walk_t;


static int
llm_tree_walk(llm_lexer_t *x, uint32_t start, llm_str_t token,
    llm_tree_walk_t *w)
{
    size_t           i;
    uint8_t          byte;
    uint32_t         state;
    const uint32_t  *row;

    memset(w, 0, sizeof(*w));
    state = start;

    for (i = 0; i < token.len; i++) {
        byte = (uint8_t) token.data[i];
        row = llm_lex_row(x, state);

        if (row == NULL) {
            return LLM_ERROR;
        }

        w->chars += state == start && byte != '"';
        state = row[byte];

        if (state == LLM_LEX_DEAD) {
            return LLM_OK;
        }

        if (state == LLM_LEX_FINAL) {
            w->leaves = 1;
            w->at = (uint32_t) i + 1;
            return LLM_OK;
        }
    }

    w->stays = 1;

    return LLM_OK;
}


static void
llm_tree_set(uint32_t *set, uint32_t id)
{
    set[id / 32] |= (uint32_t) 1 << id % 32;
}


/* notes that a token of this many characters stays or leaves */

static void
llm_toktree_within(uint32_t **within, uint32_t id, uint32_t chars)
{
    uint32_t  k;

    for (k = chars; k <= LLM_TREE_LENGTHS; k++) {
        llm_tree_set(within[k], id);
    }
}


static void
llm_toktree_longer(llm_toktree_t *t, uint32_t id, uint32_t chars)
{
    uint32_t  k;

    chars = llm_min(chars, UINT16_MAX);

    for (k = t->n_longer++; k > 0 && t->longer_chars[k - 1] > chars; k--) {
        t->longer[k] = t->longer[k - 1];
        t->longer_chars[k] = t->longer_chars[k - 1];
    }

    t->longer[k] = id;
    t->longer_chars[k] = (uint16_t) chars;
}


static int
llm_toktree_view(llm_toktree_t *t, llm_lexer_t *x, llm_tree_item_t *items,
    llm_tree_view_t *v, llm_lex_mode_t mode)
{
    uint32_t         i, id, n, start;
    llm_str_t        s;
    llm_tree_walk_t  w;

    start = llm_lex_start(x, LLM_RX_TEXT, mode);
    n = 0;

    for (i = 0; i < t->all.nodes[t->all.n].first; i++) {
        id = t->all.ids[i];
        s = llm_toktree_text(t, id);

        if (llm_tree_walk(x, start, s, &w) != LLM_OK) {
            return LLM_ERROR;
        }

        if (w.stays) {
            llm_tree_set(v->stays, id);

        } else if (w.leaves) {
            llm_tree_set(v->leaves, id);
            items[n].p = (const uint8_t *) s.data + w.at;
            items[n].len = (uint32_t) s.len - w.at;
            items[n].id = id;
            items[n++].chars = w.chars;
        }

        if (mode != LLM_LEX_INSIDE) {
            if (w.stays || w.leaves) {
                t->quoted_longest = llm_max(t->quoted_longest,
                                            (uint32_t) s.len);
            }

            continue;
        }

        if (w.stays || w.leaves) {
            t->longest = llm_max(t->longest, w.chars);
            llm_toktree_within(w.stays ? t->stays : t->leaves, id, w.chars);
        }

        if (w.stays && w.chars > LLM_TREE_LENGTHS) {
            llm_toktree_longer(t, id, w.chars);
        }
    }

    return llm_tree_build(&v->exits, items, n, 1);
}


/*
 * Builds the paths: a copy of the tree with only those subtrees in which a
 * string ends.  Returns whether a string ends below the nodes from .. to in
 * this state.
 */

static int
llm_toktree_paths(llm_toktree_t *t, llm_lexer_t *x, uint32_t state,
    uint32_t from, uint32_t to)
{
    int               any;
    uint32_t          i, at, next;
    const uint32_t   *row;
    llm_tree_node_t  *node;

    any = 0;
    row = llm_lex_row(x, state);

    for (i = from; row && i < to; i = llm_tree_end(&t->all, i)) {
        next = row[t->all.nodes[i].byte];

        if (next == LLM_LEX_DEAD) {
            continue;
        }

        at = t->paths.n++;
        t->paths.ids[at] = i;

        if (next != LLM_LEX_FINAL
            && !llm_toktree_paths(t, x, next, i + 1,
                                  llm_tree_end(&t->all, i)))
        {
            t->paths.n = at;
            continue;
        }

        node = &t->paths.nodes[at];
        node->byte = t->all.nodes[i].byte;
        node->end = t->paths.n;
        node->first = at;
        any = 1;
    }

    return any;
}


static int
llm_toktree_room(llm_toktree_t *t)
{
    size_t    words;
    uint32_t  k, *sets;

    words = t->words;
    sets = calloc(words * (2 * LLM_TREE_LENGTHS + 6), sizeof(uint32_t));
    t->sets = sets;
    t->longer = malloc((t->n_tokens + 1) * sizeof(uint32_t));
    t->longer_chars = malloc((t->n_tokens + 1) * sizeof(uint16_t));
    t->paths.nodes = malloc((t->all.n + 1) * sizeof(llm_tree_node_t));
    t->paths.ids = malloc((t->all.n + 1) * sizeof(uint32_t));

    if (!sets || !t->longer || !t->longer_chars || !t->paths.nodes
        || !t->paths.ids)
    {
        return LLM_ERROR;
    }

    t->inside.stays = sets;
    t->inside.leaves = sets + words;
    t->quoted.stays = sets + 2 * words;
    t->quoted.leaves = sets + 3 * words;
    sets += 4 * words;

    for (k = 0; k <= LLM_TREE_LENGTHS; k++) {
        t->stays[k] = sets + 2 * k * words;
        t->leaves[k] = sets + (2 * k + 1) * words;
    }

    return LLM_OK;
}


static int
llm_toktree_strings(llm_toktree_t *t, llm_lexer_t *x, llm_tree_item_t *items)
{
    uint32_t  start;

    if (llm_toktree_room(t) != LLM_OK
        || llm_toktree_view(t, x, items, &t->inside, LLM_LEX_INSIDE)
           != LLM_OK
        || llm_toktree_view(t, x, items, &t->quoted, LLM_LEX_QUOTE)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    start = llm_lex_start(x, LLM_RX_TEXT, LLM_LEX_INSIDE);
    (void) llm_toktree_paths(t, x, start, 0, t->all.n);

    return x->failed || llm_rx_failed(x->pool) ? LLM_ERROR : LLM_OK;
}


/* ---- the whole ---- */

/* makes the code of each control token */

static void
llm_toktree_codes(llm_toktree_t *t)
{
    uint32_t             i;
    llm_tree_control_t  *c;

    for (i = 0; i < t->n_tokens; i++) {
        if (llm_vocab_type(t->vocab, (int32_t) i) != LLM_TOKEN_CONTROL) {
            continue;
        }

        c = &t->control[t->n_control++];
        c->id = i;
        c->code[0] = LLM_TOKTREE_CONTROL;
        c->code[1] = (uint8_t) (i >> 16);
        c->code[2] = (uint8_t) (i >> 8);
        c->code[3] = (uint8_t) i;
    }
}


static int
llm_tree_control_compare(const void *a, const void *b)
{
    const llm_tree_control_t  *x, *y;

    x = a;
    y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}


uint32_t
llm_toktree_longest(const llm_toktree_t *t, llm_str_t text, size_t *len)
{
    size_t                  i;
    uint32_t                id, k, end;
    const llm_tree_node_t  *nodes;

    nodes = t->all.nodes;
    id = LLM_TOKTREE_NONE;
    *len = 0;

    if (text.len == 0 || t->all.root[(uint8_t) text.data[0]] == 0) {
        return id;
    }

    k = t->all.root[(uint8_t) text.data[0]] - 1;

    for (i = 1; ; i++) {
        if (nodes[k].first < nodes[k + 1].first) {
            id = t->all.ids[nodes[k].first];
            *len = i;
        }

        end = llm_tree_end(&t->all, k++);

        if (i == text.len) {
            return id;
        }

        while (k < end && nodes[k].byte != (uint8_t) text.data[i]) {
            k = llm_tree_end(&t->all, k);
        }

        if (k >= end) {
            return id;
        }
    }
}


llm_str_t
llm_toktree_text(const llm_toktree_t *t, uint32_t id)
{
    llm_str_t            s;
    llm_tree_control_t   key;
    llm_tree_control_t  *c;

    s = llm_str("");

    if (id >= t->n_tokens || llm_vocab_is_eog(t->vocab, (int32_t) id)) {
        return s;
    }

    switch (llm_vocab_type(t->vocab, (int32_t) id)) {

    case LLM_TOKEN_UNKNOWN:
    case LLM_TOKEN_UNUSED:
        return s;

    case LLM_TOKEN_CONTROL:
        key.id = id;
        c = bsearch(&key, t->control, t->n_control, sizeof(key),
                    llm_tree_control_compare);

        if (c) {
            s.data = (const char *) c->code;
            s.len = sizeof(c->code);
        }

        return s;

    default:
        s = llm_vocab_bytes(t->vocab, (int32_t) id);

        return s.len && memchr(s.data, LLM_TOKTREE_CONTROL, s.len)
               ? llm_str("") : s;
    }
}


static uint32_t
llm_toktree_items(llm_toktree_t *t, llm_tree_item_t *items)
{
    uint32_t   i, n;
    llm_str_t  s;

    n = 0;

    for (i = 0; i < t->n_tokens; i++) {
        if (llm_vocab_is_eog(t->vocab, (int32_t) i)) {
            t->eog[t->n_eog++] = i;
            continue;
        }

        s = llm_toktree_text(t, i);

        if (s.len) {
            items[n].p = (const uint8_t *) s.data;
            items[n].len = (uint32_t) s.len;
            items[n].id = i;
            items[n++].chars = 0;
        }
    }

    return n;
}


static int
llm_toktree_fill(llm_toktree_t *t, llm_tree_item_t *items)
{
    int             rc;
    llm_lexer_t     x;
    llm_rx_pool_t  *pool;

    if (llm_tree_build(&t->all, items, llm_toktree_items(t, items), 0)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    /* an automaton of any string, only used while the sets are made */

    pool = llm_rx_create(4096);
    if (pool == NULL) {
        return LLM_ERROR;
    }

    rc = LLM_ERROR;

    if (llm_lex_init(&x, pool, 1 << 20, 1 << 20) == LLM_OK) {
        rc = llm_toktree_strings(t, &x, items);
        llm_lex_free(&x);
    }

    llm_rx_free(pool);

    return rc;
}


/* the longest control token that the text begins with; NULL: none */

static const llm_tree_control_t *
llm_toktree_control(const llm_toktree_t *t, llm_str_t text, size_t *len)
{
    uint32_t                   i;
    llm_str_t                  s;
    const llm_tree_control_t  *found;

    found = NULL;
    *len = 0;

    for (i = 0; i < t->n_control; i++) {
        s = llm_vocab_bytes(t->vocab, (int32_t) t->control[i].id);

        if (s.len > *len && s.len <= text.len
            && memcmp(s.data, text.data, s.len) == 0)
        {
            found = &t->control[i];
            *len = s.len;
        }
    }

    return found;
}


llm_gn_t
llm_gn_special(llm_gram_build_t *b, const llm_toktree_t *tree, llm_str_t text)
{
    size_t                     n;
    llm_gn_t                   node;
    llm_buf_t                  out;
    const llm_tree_control_t  *c;

    llm_buf_init(&out, 0);

    while (text.len) {
        c = llm_toktree_control(tree, text, &n);

        if (c && llm_vocab_is_eog(tree->vocab, (int32_t) c->id)) {
            break;
        }

        if (c) {
            (void) llm_buf_add(&out, c->code, sizeof(c->code));

        } else {
            n = 1;
            (void) llm_buf_addc(&out, *text.data);
        }

        text.data += n;
        text.len -= n;
    }

    node = out.failed ? LLM_GN_NONE
           : out.len ? llm_gn_text(b, out.data, out.len) : LLM_GN_EMPTY;

    llm_buf_free(&out);

    return node;
}


llm_toktree_t *
llm_toktree_create(const llm_vocab_t *v, llm_err_t *err)
{
    int               rc;
    uint32_t          n;
    llm_toktree_t    *t;
    llm_tree_item_t  *items;

    n = llm_vocab_size(v);
    t = calloc(1, sizeof(llm_toktree_t));
    items = malloc((n + 1) * sizeof(llm_tree_item_t));
    rc = LLM_ERROR;

    if (t && items) {
        t->vocab = v;
        t->n_tokens = n;
        t->words = (n + 31) / 32;
        t->eog = malloc((n + 1) * sizeof(uint32_t));
        t->control = calloc(n + 1, sizeof(llm_tree_control_t));

        if (t->eog && t->control) {
            llm_toktree_codes(t);
            rc = llm_toktree_fill(t, items);
        }
    }

    free(items);

    if (rc != LLM_OK) {
        llm_toktree_free(t);
        (void) llm_fail(err, "no memory for the tree of %u tokens", n);
        return NULL;
    }

    return t;
}


void
llm_toktree_free(llm_toktree_t *t)
{
    if (t == NULL) {
        return;
    }

    llm_tree_free(&t->all);
    llm_tree_free(&t->inside.exits);
    llm_tree_free(&t->quoted.exits);
    llm_tree_free(&t->paths);
    free(t->eog);
    free(t->control);
    free(t->sets);
    free(t->longer);
    free(t->longer_chars);
    free(t);
}
