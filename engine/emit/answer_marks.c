/*
 * A format's marks in prompts and tokens; see answer.h.
 */

#include "engine/emit/answer.h"


static const char *
llm_answer_last(llm_str_t s, llm_str_t mark)
{
    size_t      len, i;

    for (i = s.len; mark.len && i-- > 0; /* void */ ) {
        if (s.data[i] == mark.data[0]
            && llm_mark_match(mark, s.data + i, s.len - i, &len)
               == LLM_MARK_WHOLE)
        {
            return s.data + i;
        }
    }

    return NULL;
}


/* has a new message begun after a part that ends at p?  Then the part belongs
   to an earlier answer */

static int
llm_answer_goes_on(const llm_format_t *f, llm_str_t tail, const char *p)
{
    size_t       n, len;
    uint32_t     i;
    const char  *end;

    end = tail.data + tail.len;

    while (p < end && llm_mark_is_space(*p)) {
        p++;
    }

    n = p < end ? (size_t) (end - p) : 0;

    for (i = 0; i < f->n_skipped; i++) {
        if (llm_mark_match(f->skipped[i], p, n, &len) == LLM_MARK_WHOLE) {
            return 1;
        }
    }

    return 0;
}


int
llm_answer_open(const llm_format_t *f, llm_str_t tail)
{
    int          open;
    uint32_t     i;
    const char  *at, *close, *best;

    open = LLM_ANSWER_UNOPENED;
    best = NULL;

    for (i = 0; i < f->n_reasoning; i++) {
        at = llm_answer_last(tail, f->reasoning[i].open);
        close = llm_answer_last(tail, f->reasoning[i].close);

        if (at && (close == NULL || close < at) && (best == NULL || at > best))
        {
            best = at;
            open = (int) i;

        } else if (close && best == NULL
                   && !llm_answer_goes_on(f, tail,
                                          close + f->reasoning[i].close.len))
        {
            open = LLM_ANSWER_CLOSED;
        }
    }

    return open;
}


static int
llm_answer_begins(llm_str_t mark, llm_str_t with)
{
    return mark.len >= with.len
           && memcmp(mark.data, with.data, with.len) == 0;
}


size_t
llm_answer_sign(const llm_format_t *f, llm_str_t mark)
{
    uint32_t   i;
    llm_str_t  tag;

    while (mark.len && llm_mark_is_space(mark.data[mark.len - 1])) {
        mark.len--;
    }

    tag = llm_mark_tag(mark);

    if (tag.len == 0 || memchr(tag.data, LLM_MARK_ANY, tag.len)
        || llm_answer_begins(f->turn_end, tag))
    {
        return mark.len;
    }

    for (i = 0; i < f->n_reasoning; i++) {
        if (llm_answer_begins(f->reasoning[i].open, tag)) {
            return mark.len;
        }
    }

    for (i = 0; i < LLM_FORMAT_TEXTS; i++) {
        if ((i < f->n_content && llm_answer_begins(f->content[i], tag))
            || (i < f->n_content_end
                && llm_answer_begins(f->content_end[i], tag))
            || (i < f->n_skipped && llm_answer_begins(f->skipped[i], tag)))
        {
            return mark.len;
        }
    }

    return tag.len;
}


static int
llm_answer_in(llm_str_t mark, llm_str_t token)
{
    return mark.len >= token.len
           && memmem(mark.data, mark.len, token.data, token.len) != NULL;
}


int
llm_answer_knows(const llm_format_t *f, unsigned flags, llm_str_t token)
{
    uint32_t           i;
    const llm_form_t  *m;

    if (token.len == 0) {
        return 0;
    }

    for (i = 0; i < f->n_reasoning
         && (flags & (LLM_ANSWER_REASONING|LLM_ANSWER_MARKED)); i++)
    {
        if (llm_answer_in(f->reasoning[i].open, token)
            || llm_answer_in(f->reasoning[i].close, token))
        {
            return 1;
        }
    }

    for (i = 0; i < LLM_FORMAT_TEXTS; i++) {
        if ((i < f->n_content && llm_answer_in(f->content[i], token))
            || (i < f->n_content_end
                && llm_answer_in(f->content_end[i], token))
            || (i < f->n_skipped && llm_answer_in(f->skipped[i], token)))
        {
            return 1;
        }
    }

    for (i = 0; i < f->n_forms && (flags & LLM_ANSWER_TOOLS); i++) {
        m = &f->forms[i];

        if (llm_answer_in(m->open, token) || llm_answer_in(m->close, token)
            || llm_answer_in(m->begin, token) || llm_answer_in(m->end, token)
            || llm_answer_in(m->between, token)
            || llm_answer_in(m->name_end, token)
            || llm_answer_in(m->any, token)
            || llm_answer_in(m->quote, token) || llm_answer_in(m->key, token)
            || llm_answer_in(m->key_end, token)
            || llm_answer_in(m->key_end_text, token)
            || llm_answer_in(m->value_end, token))
        {
            return 1;
        }
    }

    return 0;
}
