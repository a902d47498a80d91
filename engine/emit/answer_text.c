/*
 * Hands out the text of an answer that is no mark; see answer.h.
 */

#include "engine/emit/answer_internal.h"


void
llm_answer_enter(llm_answer_t *a, llm_state_t state, size_t len)
{
    a->state = state;
    a->pos += len;
    a->lead = 1;
    a->ticks = 0;
    a->spans = 0;
    a->fenced = 0;
    a->space.len = 0;
    a->entry = 0;
    a->failed = 0;
    a->told = 0;
}


int
llm_answer_put(llm_answer_t *a, const char *p, size_t n, size_t at)
{
    llm_part_t  part;

    if (n == 0) {
        return LLM_OK;
    }

    a->at = at;

    part = LLM_PART_CONTENT;

    if (a->state == LLM_STATE_REASONING) {
        if (a->o.flags & LLM_ANSWER_HIDE) {
            return LLM_OK;
        }

        part = LLM_PART_REASONING;
    }

    return a->put(a->data, part, 0, (llm_str_t) { n, p });
}


/* counts backticks: one quotes within a line, three begin and end a block of
   code */

static void
llm_answer_count_ticks(llm_answer_t *a, const char *p, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (p[i] != '`') {
            a->ticks = 0;
            a->spans = p[i] == '\n' ? 0 : a->spans;
            continue;
        }

        a->spans++;

        if (++a->ticks == 3) {
            a->fenced = !a->fenced;
        }
    }
}


size_t
llm_answer_place(const llm_answer_t *a, const char *p)
{
    return a->base + (size_t) (p - a->text.data);
}


int
llm_answer_plain(llm_answer_t *a, const char *p, size_t n, size_t at)
{
    int     rc;
    size_t  body;

    if (a->lead) {
        while (n && llm_mark_is_space(*p)) {
            p++;
            n--;
            at++;
        }
    }

    for (body = n; body && llm_mark_is_space(p[body - 1]); body--) {
        /* void */
    }

    if (body) {
        a->lead = 0;
        llm_answer_count_ticks(a, a->space.data, a->space.len);
        llm_answer_count_ticks(a, p, body);

        if (a->state != LLM_STATE_REASONING) {
            a->state = LLM_STATE_CONTENT;
        }

        rc = llm_answer_put(a, a->space.data, a->space.len, a->space_at);
        a->space.len = 0;

        if (rc == LLM_OK) {
            rc = llm_answer_put(a, p, body, at);
        }

        if (rc != LLM_OK) {
            return rc;
        }
    }

    /* white space is handed out at once where no mark can follow that it might
       belong to */

    if (a->state == LLM_STATE_CONTENT && !(a->o.flags & LLM_ANSWER_TOOLS)
        && a->o.format->n_content_end == 0)
    {
        return llm_answer_put(a, p + body, n - body, at + body);
    }

    if (a->space.len == 0) {
        a->space_at = at + body;
    }

    return llm_buf_add(&a->space, p + body, n - body);
}
