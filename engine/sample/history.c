/*
 * The tokens of a sequence; see history.h.
 */

#include "engine/sample/history.h"


void
llm_history_clear(llm_history_t *h)
{
    h->n = 0;
    h->n_prompt = 0;
    h->broken = 0;
    h->tail_len = 0;
    h->failed = 0;
}


void
llm_history_free(llm_history_t *h)
{
    free(h->ids);
    free(h->same);
}


/* whether a breaker ends in the bytes of s, which follow the tail */

static int
llm_history_breaks(const llm_history_t *h, llm_str_t s, llm_str_t breaker)
{
    char    text[2 * LLM_MAX_BREAKER_LEN];
    size_t  before, behind;

    if (breaker.len == 0 || s.len == 0) {
        return 0;
    }

    if (memmem(s.data, s.len, breaker.data, breaker.len)) {
        return 1;
    }

    /* a breaker across the border of tail and s */

    before = llm_min(breaker.len - 1, (size_t) h->tail_len);
    behind = llm_min(breaker.len - 1, s.len);

    memcpy(text, h->tail + h->tail_len - before, before);
    memcpy(text + before, s.data, behind);

    return memmem(text, before + behind, breaker.data, breaker.len) != NULL;
}


static void
llm_history_text(llm_history_t *h, const llm_filter_t *filter, int32_t id)
{
    size_t     keep;
    uint32_t   i;
    llm_str_t  s;

    s = filter->bytes(filter->vocab, id);

    for (i = 0; i < filter->n_breakers; i++) {
        if (llm_history_breaks(h, s, filter->breakers[i])) {
            h->broken = h->n;
        }
    }

    if (s.len >= sizeof(h->tail)) {
        memcpy(h->tail, s.data + s.len - sizeof(h->tail), sizeof(h->tail));
        h->tail_len = sizeof(h->tail);
        return;
    }

    keep = llm_min((size_t) h->tail_len, sizeof(h->tail) - s.len);

    memmove(h->tail, h->tail + h->tail_len - keep, keep);

    if (s.len) {
        memcpy(h->tail + keep, s.data, s.len);
    }

    h->tail_len = (uint32_t) (keep + s.len);
}


void
llm_history_add(llm_history_t *h, const llm_filter_t *filter, int32_t id)
{
    int32_t   *ids;
    uint32_t   cap, *same;

    if (h->n == h->cap) {
        cap = llm_max(h->cap * 2, 256u);

        ids = realloc(h->ids, cap * sizeof(int32_t));
        if (ids) {
            h->ids = ids;
        }

        same = realloc(h->same, cap * sizeof(uint32_t));
        if (same) {
            h->same = same;
        }

        if (ids == NULL || same == NULL) {
            h->failed = 1;
            return;
        }

        h->cap = cap;
    }

    h->ids[h->n++] = id;

    if (filter && filter->n_breakers) {
        llm_history_text(h, filter, id);
    }
}


int
llm_history_ends(const llm_history_t *h, const int32_t *ids, uint32_t n)
{
    return n <= h->n - h->n_prompt
           && (n == 0 || memcmp(h->ids + h->n - n, ids,
                                n * sizeof(int32_t)) == 0);
}
