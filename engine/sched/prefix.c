/*
 * The prefix cache: sequences that begin with the same tokens share the pages
 * of these tokens, which they find in the prefix tree; see pages.h.
 *
 * Pages of the tree have keys and values, but no results.  So a prompt shares
 * only pages before the first position whose result is wanted:
 * llm_seq_sharable().
 */

#include "engine/sched/sched_internal.h"


static void
llm_sched_block(const llm_seq_t *q, uint32_t i, int32_t *tokens)
{
    uint32_t  k;

    for (k = 0; k < LLM_KV_PAGE; k++) {
        tokens[k] = llm_seq_token(q, i * LLM_KV_PAGE + k);
    }
}


/* takes the pages of the longest prefix that is in the tree */

int
llm_sched_lookup(llm_sched_t *s, llm_seq_t *q)
{
    int32_t   tokens[LLM_KV_PAGE];
    uint32_t  i, n, page, parent;

    if (q->req->msg->flags & LLM_REQ_NO_CACHE) {
        return LLM_OK;
    }

    n = llm_seq_sharable(q) / LLM_KV_PAGE;

    parent = LLM_PAGE_NONE;

    for (i = 0; i < n; i++) {
        llm_sched_block(q, i, tokens);

        page = llm_pages_find(s->pages, parent, &q->req->prep.salt, tokens);
        if (page == LLM_PAGE_NONE) {
            break;
        }

        llm_pages_hold(s->pages, page);

        if (llm_sched_add_page(s, q, page) != LLM_OK) {
            llm_pages_drop(s->pages, page);
            return LLM_ERROR;
        }

        parent = page;
    }

    q->n_tree = i;
    q->n_kv = i * LLM_KV_PAGE;

    return LLM_OK;
}


/*
 * Takes pages that other sequences have put into the tree since this one was
 * admitted: of prompts with the same beginning that arrive together only one
 * computes it.
 */

void
llm_sched_extend(llm_sched_t *s, llm_seq_t *q)
{
    int32_t   tokens[LLM_KV_PAGE];
    uint32_t  i, n, page;

    if (q->req->msg->flags & LLM_REQ_NO_CACHE) {
        return;
    }

    for ( ;; ) {
        i = q->n_tree;

        if (q->n_kv != i * LLM_KV_PAGE
            || (i + 1) * LLM_KV_PAGE > llm_seq_sharable(q))
        {
            return;
        }

        llm_sched_block(q, i, tokens);

        page = llm_pages_find(s->pages, i ? q->pages[i - 1] : LLM_PAGE_NONE,
                              &q->req->prep.salt, tokens);
        if (page == LLM_PAGE_NONE) {
            return;
        }

        llm_pages_hold(s->pages, page);
        llm_pages_drop(s->pages, q->pages[i]);

        q->pages[i] = page;
        q->n_tree++;
        q->n_kv += LLM_KV_PAGE;

        n = llm_min(q->advance, (uint32_t) LLM_KV_PAGE);
        q->advance -= n;
        llm_queue_refund(q->req->run.tenant, n);

        if (q->n_gen == 0) {
            llm_zone_add(s->figures->prefix_hits, LLM_KV_PAGE);

            if (q->index % q->req->msg->n == 0) {
                q->req->out.cached_tokens += LLM_KV_PAGE;
            }
        }
    }
}


/* puts the full pages below position n_kv, which are computed, into the
   tree */

void
llm_sched_commit(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv)
{
    int32_t   tokens[LLM_KV_PAGE];
    uint32_t  i, parent;

    if (q->req->msg->flags & LLM_REQ_NO_CACHE) {
        return;
    }

    while (q->n_tree < n_kv / LLM_KV_PAGE) {
        i = q->n_tree++;
        parent = i ? q->pages[i - 1] : LLM_PAGE_NONE;

        llm_sched_block(q, i, tokens);
        q->pages[i] = llm_pages_commit(s->pages, q->pages[i], parent,
                                       &q->req->prep.salt, tokens);
    }
}
