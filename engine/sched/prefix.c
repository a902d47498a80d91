/*
 * The prefix cache: sequences that begin with the same tokens share the pages
 * of these tokens, which they find in the prefix tree; see pages.h.
 *
 * Pages of the tree have keys and values, but no results, so a prompt shares
 * only pages before the first position whose result is wanted
 * (llm_seq_sharable()).  Nor do they have the state of recurrent layers: for a
 * model with such layers, a sequence continues only after a page with a
 * snapshot (state.c).  If layers have a window, it continues only where the
 * pages of the whole window before are present.
 */

#include "engine/sched/sched_internal.h"


static void
llm_sched_block(const llm_seq_t *q, uint32_t i, uint64_t *keys)
{
    uint32_t  k;

    for (k = 0; k < LLM_KV_PAGE; k++) {
        keys[k] = llm_seq_key(q, i * LLM_KV_PAGE + k);
    }
}


/*
 * Can a sequence continue after the first n nodes of a path in the tree?
 * page: the last of them; present: how many of them, up to the last, have all
 * their pages.
 */

static int
llm_sched_is_entry(const llm_sched_t *s, uint32_t n, uint32_t page,
    uint32_t present)
{
    return present >= n - llm_sched_first_page(s, llm_sched_leaving(s),
                                               n * LLM_KV_PAGE)
           && (s->slots == NULL
               || llm_state_slots_find(s->slots, page) != LLM_SLOT_NONE);
}


/* writes the path of a sequence's tokens in the tree to its table, not held;
   sets *n: the nodes after which the sequence can continue */

static int
llm_sched_path(llm_sched_t *s, llm_seq_t *q, uint32_t *n)
{
    uint64_t  keys[LLM_KV_PAGE];
    uint32_t  i, most, page, parent, present;

    *n = 0;
    most = llm_seq_sharable(q) / LLM_KV_PAGE;
    present = 0;
    parent = LLM_PAGE_NONE;

    for (i = 0; i < most; i++) {
        llm_sched_block(q, i, keys);

        page = llm_pages_find(s->pages, parent, &q->req->prep.salt, keys);
        if (page == LLM_PAGE_NONE) {
            break;
        }

        if (llm_sched_reserve(s, q, i + 1) != LLM_OK) {
            return LLM_ERROR;
        }

        q->pages[i] = page;
        present++;

        if (llm_pages_number(s->pages, page, llm_sched_leaving(s))
            == LLM_PAGE_NONE)
        {
            present = 0;
        }

        if (llm_pages_number(s->pages, page, LLM_KV_FULL)
            == LLM_PAGE_NONE)
        {
            llm_pages_use(s->pages, page);
        }

        if (llm_sched_is_entry(s, i + 1, page, present)
            && !llm_media_splits(s, q, (i + 1) * LLM_KV_PAGE))
        {
            *n = i + 1;
        }

        parent = page;
    }

    /* nodes after *n are a beginning that several sequences have if the last
       node has children; otherwise they are the end of an answer */

    q->branch = i > *n && !llm_pages_is_leaf(s->pages, parent)
                ? i * LLM_KV_PAGE : 0;

    return LLM_OK;
}


/* takes the pages of the longest prefix in the tree after which the sequence
   can continue; LLM_ERROR: no memory */

int
llm_sched_lookup(llm_sched_t *s, llm_seq_t *q)
{
    int       rc;
    uint32_t  i, k, n;

    if (!llm_seq_caches(q)) {
        return LLM_OK;
    }

    rc = llm_sched_path(s, q, &n);

    if (rc != LLM_OK) {
        n = 0;
    }

    q->n_tree = n;
    q->n_kv = n * LLM_KV_PAGE;
    q->entry = q->n_kv;

    for (k = 0; k < s->n_kinds; k++) {
        q->n_pages[k] = n;
        q->n_gone[k] = llm_sched_first_page(s, k, q->n_kv);

        for (i = q->n_gone[k]; i < n; i++) {
            llm_pages_hold(s->pages, q->pages[i], k);
        }
    }

    for (i = 0; i < q->n_gone[LLM_KV_FULL]; i++) {
        q->pages[i] = LLM_PAGE_NONE;
    }

    return rc;
}


uint32_t
llm_sched_ahead(const llm_sched_t *s, const llm_seq_t *q)
{
    uint64_t  keys[LLM_KV_PAGE];
    uint32_t  i, n, page, found;

    n = llm_seq_sharable(q) / LLM_KV_PAGE;
    page = q->n_tree ? q->pages[q->n_tree - 1] : LLM_PAGE_NONE;
    found = q->n_tree;

    for (i = q->n_tree; i < n; i++) {
        llm_sched_block(q, i, keys);

        page = llm_pages_find(s->pages, page, &q->req->prep.salt, keys);
        if (page == LLM_PAGE_NONE
            || llm_pages_number(s->pages, page, llm_sched_leaving(s))
               == LLM_PAGE_NONE)
        {
            break;
        }

        if (llm_sched_is_entry(s, i + 1, page, i + 1)
            && !llm_media_splits(s, q, (i + 1) * LLM_KV_PAGE))
        {
            found = i + 1;
        }
    }

    return found - q->n_tree;
}


/* takes the next node of the tree into the sequence's table, which has room for
   it, and drops the sequence's own node in its place, if there is one */

static void
llm_sched_exchange(llm_sched_t *s, llm_seq_t *q)
{
    uint64_t  keys[LLM_KV_PAGE];
    uint32_t  i, k, own, page;

    i = q->n_tree++;
    llm_sched_block(q, i, keys);

    page = llm_pages_find(s->pages, i ? q->pages[i - 1] : LLM_PAGE_NONE,
                          &q->req->prep.salt, keys);

    for (k = 0; k < s->n_kinds; k++) {
        llm_pages_hold(s->pages, page, k);
    }

    own = i < q->n_pages[LLM_KV_FULL] ? q->pages[i] : LLM_PAGE_NONE;
    q->pages[i] = page;

    while (k-- > 0) {
        if (i < q->n_pages[k]) {
            llm_pages_drop(s->pages, own, k);

        } else {
            q->n_pages[k]++;
        }
    }
}


/*
 * Takes pages that other sequences have put into the tree since this one was
 * admitted: if several prompts with the same beginning arrive together, only
 * one of them computes the beginning.
 */

void
llm_sched_extend(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  i, n, refund;

    if (!llm_seq_caches(q) || q->n_kv != q->n_tree * LLM_KV_PAGE) {
        return;
    }

    n = llm_sched_ahead(s, q);

    if (n == 0 || llm_sched_reserve(s, q, q->n_tree + n) != LLM_OK) {
        return;
    }

    for (i = 0; i < n; i++) {
        llm_sched_exchange(s, q);
    }

    n *= LLM_KV_PAGE;
    q->n_kv += n;
    q->entry = q->n_kv;

    if (s->slots) {
        llm_state_load(s, q);
    }

    llm_sched_leave(s, q, q->n_kv);

    refund = llm_min(q->advance, n);
    q->advance -= refund;
    llm_sched_set_todo(s, q, q->advance);
    llm_shares_refund(&q->req->run.tenant->share, refund);

    if (q->n_gen == 0) {
        llm_zone_add(s->counters->prefix_hits, n);

        if (q->index % q->req->msg->n == 0) {
            q->req->out.cached_tokens += n;
        }
    }
}


/* puts the full pages below position n_kv into the tree; they are computed */

void
llm_sched_commit(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv)
{
    uint64_t  keys[LLM_KV_PAGE];
    uint32_t  i, parent;

    if (!llm_seq_caches(q)) {
        return;
    }

    while (q->n_tree < n_kv / LLM_KV_PAGE) {
        i = q->n_tree++;
        parent = i ? q->pages[i - 1] : LLM_PAGE_NONE;

        llm_sched_block(q, i, keys);
        q->pages[i] = llm_pages_commit(s->pages, q->pages[i], parent,
                                       &q->req->prep.salt, keys);
    }
}
