/*
 * The stages that depend on the order of the tokens so far: DRY, and the window
 * of the other penalties; see stages.h.
 *
 * DRY ("don't repeat yourself", p-e-w, 2024; llama.cpp has the same
 * parameters): if the last `length` tokens occurred before, the logit of the
 * token that followed them there is reduced by
 * multiplier * base^(length - allowed_length), if length >= allowed_length.
 * A repetition ends at a sequence breaker, and the logits of breakers
 * themselves are not reduced.
 */

#include "engine/sample/stages.h"

#include <float.h>
#include <math.h>


/*
 * same[i]: how many tokens that end i tokens before *end equal the last tokens.
 * This is the Z function of the reversed tokens (Gusfield, 1997): the part
 * [left, right) is known to be equal to the beginning.
 */

static void
llm_dry_lengths(const int32_t *end, uint32_t n, uint32_t *same)
{
    uint32_t  i, k, left, right;

    left = 0;
    right = 0;
    same[0] = n;

    for (i = 1; i < n; i++) {
        k = (i < right) ? llm_min(same[i - left], right - i) : 0;

        while (i + k < n && end[-(int64_t) k] == end[-(int64_t) (i + k)]) {
            k++;
        }

        same[i] = k;

        if (i + k > right) {
            left = i;
            right = i + k;
        }
    }
}


static int
llm_dry_is_breaker(const llm_filter_t *filter, int32_t id)
{
    uint32_t   i;
    llm_str_t  s, b;

    if (filter == NULL || filter->n_breakers == 0) {
        return 0;
    }

    s = filter->bytes(filter->vocab, id);

    for (i = 0; i < filter->n_breakers; i++) {
        b = filter->breakers[i];

        if (b.len && s.len && memmem(s.data, s.len, b.data, b.len)) {
            return 1;
        }
    }

    return 0;
}


/* reduces the logit for a repetition of this length, unless the token has a
   breaker */

static void
llm_dry_penalise(llm_chain_t *c, int32_t id, uint32_t length)
{
    double                 penalty;
    const llm_sampling_t  *p;

    if (llm_dry_is_breaker(c->filter, id)) {
        return;
    }

    p = c->params;
    penalty = p->dry_multiplier
              * pow(p->dry_base, length - (uint32_t) p->dry_allowed_length);

    c->scratch->row[id] -= (float) llm_min(penalty, (double) FLT_MAX / 4);
}


void
llm_stage_dry(llm_chain_t *c)
{
    int32_t               id;
    uint32_t              i, n, limit, length, allowed, *repeats;
    const int32_t        *end;
    const llm_history_t  *h;

    h = c->history;
    n = h->n;
    allowed = (uint32_t) c->params->dry_allowed_length;
    limit = n - h->broken;

    if (c->params->dry_penalty_last_n > 0) {
        n = llm_min(n, (uint32_t) c->params->dry_penalty_last_n);
        limit = llm_min(limit, n);
    }

    if (n <= allowed || limit < allowed) {
        return;
    }

    end = h->ids + h->n - 1;
    repeats = c->scratch->repeats;

    llm_dry_lengths(end, n, h->same);

    /* a token may continue several repetitions: the longest one counts */

    for (i = 1; i < n; i++) {
        length = llm_min(h->same[i], limit);
        id = end[1 - (int64_t) i];

        if (length >= allowed && id >= 0 && (uint32_t) id < c->n) {
            repeats[id] = llm_max(repeats[id], length + 1);
        }
    }

    for (i = 1; i < n; i++) {
        id = end[1 - (int64_t) i];

        if (id >= 0 && (uint32_t) id < c->n && repeats[id]) {
            llm_dry_penalise(c, id, repeats[id] - 1);
            repeats[id] = 0;
        }
    }
}


/* counts the edits' tokens again, only in the last repeat_last_n tokens */

void
llm_stage_window(llm_chain_t *c)
{
    uint32_t              i, from;
    llm_edit_t           *e;
    const llm_history_t  *h;

    h = c->history;
    from = h->n - llm_min(h->n, (uint32_t) c->params->repeat_last_n);

    for (i = 0; i < c->n_edits; i++) {
        c->edits[i].seen = 0;
    }

    for (i = from; i < h->n; i++) {

        if (h->ids[i] < 0 || (uint32_t) h->ids[i] >= c->n
            || c->place[h->ids[i]] == 0)
        {
            continue;
        }

        e = &c->edits[c->place[h->ids[i]] - 1];
        e->seen = (e->seen + (i >= h->n_prompt)) | LLM_EDIT_SEEN;
    }
}
