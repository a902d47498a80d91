/*
 * The tokens of a choice and their probabilities: which tokens have given
 * content, and which part of their text.
 */

#include "engine/emit/emit_internal.h"


int
llm_emit_add_prob(llm_buf_t *probs, const llm_sampled_t *token,
    uint32_t start, uint32_t end)
{
    llm_emit_prob_t  prob;

    memset(&prob, 0, sizeof(prob));
    prob.id = token->id;
    prob.logprob = token->logprob;
    prob.start = start;
    prob.end = end;
    prob.flags = LLM_PROB_CONTENT;
    prob.n_top = token->n_top;

    (void) llm_buf_add(probs, &prob, sizeof(prob));

    return llm_buf_add(probs, token->top,
                       token->n_top * sizeof(llm_candidate_t));
}


size_t
llm_emit_prob_size(const llm_emit_prob_t *prob)
{
    return sizeof(*prob) + prob->n_top * sizeof(llm_candidate_t);
}


void
llm_emit_mark(llm_emit_t *e, size_t at, size_t n)
{
    size_t            off, from, to;
    llm_emit_prob_t  *prob;

    for (off = e->settled; off < e->probs.len;
         off += llm_emit_prob_size(prob))
    {
        prob = (llm_emit_prob_t *) (e->probs.data + off);

        from = llm_max((size_t) prob->from, at);
        to = llm_min((size_t) prob->to, at + n);

        if (from < to) {
            if (!(prob->flags & LLM_PROB_CONTENT)) {
                prob->flags |= LLM_PROB_CONTENT;
                prob->said_from = (uint32_t) from;
            }

            prob->said_to = (uint32_t) to;
        }
    }
}


void
llm_emit_cut(llm_emit_t *e, size_t to)
{
    size_t            off;
    llm_emit_prob_t  *prob;

    for (off = 0; off < e->probs.len; off += llm_emit_prob_size(prob)) {
        prob = (llm_emit_prob_t *) (e->probs.data + off);

        if (prob->said_to > to) {
            prob->said_to = llm_max(prob->said_from, (uint32_t) to);
        }
    }
}


void
llm_emit_settle(llm_emit_t *e, size_t decided)
{
    size_t            off, size;
    llm_emit_prob_t  *prob;

    for (off = e->settled; off < e->probs.len; off += size) {
        prob = (llm_emit_prob_t *) (e->probs.data + off);
        size = llm_emit_prob_size(prob);

        /* a token without bytes that nothing follows belongs to the same part
           as the token before it */

        if ((prob->flags & LLM_PROB_MUTE)
            || (decided == SIZE_MAX && prob->from >= e->fed))
        {
            prob->flags |= e->said ? LLM_PROB_CONTENT : 0;

        } else if (prob->to > decided) {
            if (!(prob->flags & LLM_PROB_CONTENT)) {
                break;
            }

            /* white space at the end, which may never become content, is not
               waited for */

            prob->said_to = e->hit < 0 ? prob->to : prob->said_to;
        }

        e->said = prob->flags & LLM_PROB_CONTENT;

        if (e->said) {
            memmove(e->probs.data + e->settled, prob, size);
            e->settled += size;
        }
    }

    if (off > e->settled) {
        e->probs.len -= off - e->settled;
        memmove(e->probs.data + e->settled, e->probs.data + off,
                e->probs.len - e->settled);
    }
}


void
llm_emit_note(llm_emit_t *e, const llm_sampled_t *token, size_t n,
    uint32_t flags)
{
    size_t            off;
    uint32_t          at;
    llm_emit_prob_t  *prob;

    if (!(e->flags & LLM_EMIT_PROBS)) {
        return;
    }

    at = e->sent + (uint32_t) e->text.len;
    off = e->probs.len;

    if (llm_emit_add_prob(&e->probs, token, at, at) == LLM_OK) {
        prob = (llm_emit_prob_t *) (e->probs.data + off);
        prob->from = (uint32_t) e->fed;
        prob->to = (uint32_t) (e->fed + llm_max(n, (size_t) 1));
        prob->said_from = prob->from;
        prob->said_to = prob->to;
        prob->flags = flags | (e->answer ? 0 : LLM_PROB_CONTENT);
    }
}


llm_str_t
llm_emit_prob_text(const llm_emit_t *e, const llm_emit_prob_t *prob,
    int32_t id)
{
    llm_str_t  s;

    s = llm_vocab_bytes(e->vocab, id);

    if (id != prob->id) {
        return s;
    }

    if (prob->flags & (LLM_PROB_MUTE|LLM_PROB_SILENT)) {
        return llm_str("");
    }

    if ((prob->flags & LLM_PROB_FIRST) && s.len && s.data[0] == ' ') {
        s.data++;
        s.len--;
    }

    /* bytes of an incomplete character are reported with the token that
       completes it */

    if (s.len == prob->to - prob->from) {
        s.data += prob->said_from - prob->from;
        s.len = prob->said_to - prob->said_from;
    }

    return s;
}


void
llm_emit_mute_cut(llm_emit_t *e)
{
    size_t            off;
    uint32_t          end;
    llm_emit_prob_t  *prob;

    if (e->hit < 0) {
        return;
    }

    end = e->sent + (uint32_t) e->text.len;

    for (off = 0; off < e->probs.len; off += llm_emit_prob_size(prob)) {
        prob = (llm_emit_prob_t *) (e->probs.data + off);

        if (prob->start >= end) {
            prob->start = end;
            prob->end = end;
            prob->flags |= LLM_PROB_MUTE;
        }
    }
}
