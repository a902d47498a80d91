/*
 * Builds a trie, level by level, from sorted texts, in which those with a
 * common beginning are adjacent; see trie.h.
 */

#include "engine/text/vocab/trie.h"

#include <stdlib.h>
#include <string.h>


/* the range of a node's texts: [low, high) */
typedef struct {
    uint32_t     low;
    uint32_t     high;
} llm_trie_range_t;


static int
llm_trie_order(const void *a, const void *b)
{
    int                     rc;
    size_t                  len;
    const llm_trie_text_t  *x = a, *y = b;

    len = llm_min(x->text.len, y->text.len);
    rc = memcmp(x->text.data, y->text.data, len);

    if (rc == 0) {
        rc = (x->text.len > y->text.len) - (x->text.len < y->text.len);
    }

    return rc ? rc : (x->id > y->id) - (x->id < y->id);
}


/* the number of nodes: each text has one for every byte that it does not share
   with the text before it */

static size_t
llm_trie_count(const llm_trie_text_t *texts, uint32_t n)
{
    size_t    k, len, total;
    uint32_t  i;

    total = 1;

    for (i = 0; i < n; i++) {
        len = i ? llm_min(texts[i].text.len, texts[i - 1].text.len) : 0;

        for (k = 0; k < len
                    && texts[i].text.data[k] == texts[i - 1].text.data[k];
             k++)
        { /* void */ }

        total += texts[i].text.len - k;
    }

    return total;
}


/* adds a node's children, whose texts have one more byte than its `depth`; the
   texts that end at the node come first */

static void
llm_trie_grow(llm_trie_t *t, llm_trie_range_t *ranges,
    const llm_trie_text_t *texts, uint32_t node, size_t depth)
{
    uint32_t           i, end;
    unsigned char      byte;
    llm_trie_node_t   *p, *child;

    p = &t->nodes[node];
    p->id = -1;
    p->first = t->n;
    p->n = 0;
    i = ranges[node].low;
    end = ranges[node].high;

    for ( /* void */ ; i < end && texts[i].text.len == depth; i++) {
        p->id = p->id == -1 ? texts[i].id : p->id;
    }

    while (i < end) {
        byte = (unsigned char) texts[i].text.data[depth];
        child = &t->nodes[t->n];
        child->byte = byte;
        ranges[t->n].low = i;

        for ( /* void */ ; i < end
                           && (unsigned char) texts[i].text.data[depth]
                              == byte; i++)
        { /* void */ }

        ranges[t->n++].high = i;
        p->n++;
    }
}


int
llm_trie_build(llm_trie_t *t, llm_trie_text_t *texts, uint32_t n)
{
    size_t             total, depth;
    uint32_t           node, level;
    llm_trie_range_t  *ranges;

    memset(t, 0, sizeof(*t));
    qsort(texts, n, sizeof(*texts), llm_trie_order);
    total = llm_trie_count(texts, n);

    if (total >= UINT32_MAX) {
        return LLM_ERROR;
    }

    ranges = malloc(total * sizeof(*ranges));
    t->nodes = malloc(total * sizeof(*t->nodes));

    if (ranges == NULL || t->nodes == NULL) {
        free(ranges);
        llm_trie_free(t);
        return LLM_ERROR;
    }

    ranges[0] = (llm_trie_range_t) { 0, n };
    t->nodes[0].byte = 0;
    t->n = 1;
    depth = 0;

    for (node = 0, level = 1; node < t->n; depth++, level = t->n) {
        for ( /* void */ ; node < level; node++) {
            llm_trie_grow(t, ranges, texts, node, depth);
        }
    }

    free(ranges);

    return LLM_OK;
}


void
llm_trie_free(llm_trie_t *t)
{
    free(t->nodes);
    t->nodes = NULL;
    t->n = 0;
}
