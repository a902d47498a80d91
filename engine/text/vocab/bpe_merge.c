/*
 * Merging; see bpe_merge.h.
 *
 * A heap entry is rank << 32 | node.  An entry is stale, and skipped, if its
 * node has another rank by now.  Duplicate entries do no harm.
 */

#include "engine/text/vocab/bpe_merge.h"

#define LLM_MERGE_SHORT  24


typedef struct {
    llm_tok_t          *tok;
    const char         *text;
    llm_merge_node_t   *nodes;
    llm_merge_rank_pt   rank;
    uint64_t           *heap;
    size_t              len;
} llm_merge_t;


llm_merge_node_t *
llm_merge_nodes(llm_tok_t *t, size_t n)
{
    t->nodes.len = 0;

    return (llm_merge_node_t *) llm_buf_reserve(&t->nodes,
                                           n * sizeof(llm_merge_node_t));
}


static void
llm_merge_rank(llm_merge_t *m, uint32_t i)
{
    llm_merge_node_t  *node;

    node = &m->nodes[i];

    node->rank = node->next == LLM_MERGE_END
                 ? LLM_NO_RANK
                 : m->rank(m->tok->vocab, m->text, node,
                           &m->nodes[node->next], &node->result);
}


/* joins node i and the next one; the ranks next to it must then be computed
   again */

static void
llm_merge_join(llm_merge_t *m, uint32_t i)
{
    llm_merge_node_t  *node, *right;

    node = &m->nodes[i];
    right = &m->nodes[node->next];

    node->sym = node->result;
    node->end = right->end;
    node->next = right->next;
    right->rank = LLM_NO_RANK;

    if (node->next != LLM_MERGE_END) {
        m->nodes[node->next].prev = i;
    }

    llm_merge_rank(m, i);

    if (node->prev != LLM_MERGE_END) {
        llm_merge_rank(m, node->prev);
    }
}


static void
llm_merge_short(llm_merge_t *m)
{
    uint32_t  i, best, rank;

    for ( ;; ) {
        best = 0;
        rank = LLM_NO_RANK;

        for (i = 0; i != LLM_MERGE_END; i = m->nodes[i].next) {
            if (m->nodes[i].rank < rank) {
                rank = m->nodes[i].rank;
                best = i;
            }
        }

        if (rank == LLM_NO_RANK) {
            return;
        }

        llm_merge_join(m, best);
    }
}


static void
llm_merge_sift(uint64_t *heap, size_t n, size_t i)
{
    size_t    child;
    uint64_t  v;

    v = heap[i];

    while ((child = 2 * i + 1) < n) {

        if (child + 1 < n && heap[child + 1] < heap[child]) {
            child++;
        }

        if (heap[child] >= v) {
            break;
        }

        heap[i] = heap[child];
        i = child;
    }

    heap[i] = v;
}


static int
llm_merge_push(llm_merge_t *m, uint32_t node)
{
    size_t      i, up;
    uint64_t    v;
    llm_buf_t  *b;

    if (node == LLM_MERGE_END || m->nodes[node].rank == LLM_NO_RANK) {
        return LLM_OK;
    }

    b = &m->tok->heap;
    b->len = m->len * sizeof(v);

    if (llm_buf_reserve(b, sizeof(v)) == NULL) {
        return llm_tok_no_memory(m->tok);
    }

    m->heap = (uint64_t *) b->data;
    v = (uint64_t) m->nodes[node].rank << 32 | node;

    for (i = m->len++; i > 0; i = up) {
        up = (i - 1) / 2;

        if (m->heap[up] <= v) {
            break;
        }

        m->heap[i] = m->heap[up];
    }

    m->heap[i] = v;

    return LLM_OK;
}


static int
llm_merge_long(llm_merge_t *m, size_t n)
{
    size_t      i;
    uint32_t    node;
    uint64_t    v;
    llm_buf_t  *b;

    b = &m->tok->heap;
    b->len = 0;

    if (llm_buf_reserve(b, n * sizeof(v)) == NULL) {
        return llm_tok_no_memory(m->tok);
    }

    m->heap = (uint64_t *) b->data;
    m->len = 0;

    for (i = 0; i < n; i++) {
        if (m->nodes[i].rank != LLM_NO_RANK) {
            m->heap[m->len++] = (uint64_t) m->nodes[i].rank << 32 | i;
        }
    }

    for (i = m->len / 2; i-- > 0; /* void */) {
        llm_merge_sift(m->heap, m->len, i);
    }

    while (m->len) {
        v = m->heap[0];
        m->heap[0] = m->heap[--m->len];
        llm_merge_sift(m->heap, m->len, 0);

        node = (uint32_t) v;

        if (m->nodes[node].rank != v >> 32) {
            continue;
        }

        llm_merge_join(m, node);

        if (llm_merge_push(m, node) != LLM_OK
            || llm_merge_push(m, m->nodes[node].prev) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_merge(llm_tok_t *t, const char *text, size_t n, llm_merge_rank_pt rank)
{
    uint32_t     i;
    llm_merge_t  m;

    m.tok = t;
    m.text = text;
    m.nodes = (llm_merge_node_t *) t->nodes.data;
    m.rank = rank;

    for (i = 0; i < n; i++) {
        m.nodes[i].prev = i ? i - 1 : LLM_MERGE_END;
        m.nodes[i].next = i + 1 < n ? i + 1 : LLM_MERGE_END;
    }

    for (i = 0; i < n; i++) {
        llm_merge_rank(&m, i);
    }

    if (n > LLM_MERGE_SHORT) {
        return llm_merge_long(&m, n);
    }

    llm_merge_short(&m);

    return LLM_OK;
}
