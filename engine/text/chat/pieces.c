/*
 * Cuts pieces out of what templates write, and makes marks of them; see
 * learn.h.
 */

#include "engine/text/chat/learn.h"


llm_str_t
llm_learn_cut(llm_str_t s, size_t from, size_t to)
{
    return (llm_str_t) { to - from, s.data + from };
}


size_t
llm_learn_find(llm_str_t s, const char *word, size_t from)
{
    const char  *at;

    if (from > s.len) {
        return SIZE_MAX;
    }

    at = memmem(s.data + from, s.len - from, word, strlen(word));

    return at ? (size_t) (at - s.data) : SIZE_MAX;
}


llm_str_t
llm_learn_trim(llm_str_t s)
{
    while (s.len && llm_mark_is_space(s.data[0])) {
        s.data++;
        s.len--;
    }

    while (s.len && llm_mark_is_space(s.data[s.len - 1])) {
        s.len--;
    }

    return s;
}


static int
llm_learn_is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
           || (c >= 'A' && c <= 'Z');
}


llm_str_t
llm_learn_tag(llm_str_t s)
{
    char         close;
    size_t       i;

    if (s.len && (s.data[0] == '<' || s.data[0] == '[')) {
        close = s.data[0] == '<' ? '>' : ']';

        for (i = 1; i < s.len && i < LLM_LEARN_MARK; i++) {
            if (s.data[i] == close && i > 1) {
                return (llm_str_t) { i + 1, s.data };
            }

            if (s.data[i] == '\n' || s.data[i] == s.data[0]
                || (close == ']' && !llm_learn_is_word(s.data[i])
                    && s.data[i] != '/'))
            {
                break;
            }
        }
    }

    return (llm_str_t) { 0, s.data };
}


llm_str_t
llm_learn_tag_in(llm_str_t s, llm_str_t other)
{
    size_t     i;
    llm_str_t  tag;

    for (i = 0; i < s.len; i++) {
        tag = llm_learn_tag(llm_learn_cut(s, i, s.len));

        if (tag.len
            && (other.data == NULL
                || memmem(other.data, other.len, tag.data, tag.len)))
        {
            return tag;
        }
    }

    return (llm_str_t) { 0, "" };
}


llm_str_t
llm_chat_mark(llm_format_t *f, llm_str_t s)
{
    char      *copy;
    llm_str_t  mark;

    mark = llm_learn_trim(s);

    /* text with LLM_MARK_ANY in it cannot become a mark */

    if (mark.len == 0 || mark.len > LLM_LEARN_MARK
        || memchr(mark.data, LLM_MARK_ANY, mark.len))
    {
        return (llm_str_t) { 0, "" };
    }

    if (mark.data + mark.len < s.data + s.len
        && llm_learn_is_word(mark.data[mark.len - 1]))
    {
        mark.len++;
    }

    copy = llm_arena_dup(&f->arena, mark.data, mark.len);

    return (llm_str_t) { copy ? mark.len : 0, copy ? copy : "" };
}


void
llm_chat_add_pair(llm_format_t *f, llm_str_t open, llm_str_t close)
{
    uint32_t     i;
    llm_pair_t  *pair;

    for (i = 0; i < f->n_reasoning; i++) {
        if (llm_str_eq(f->reasoning[i].open, open)) {
            return;
        }
    }

    if (f->n_reasoning < LLM_FORMAT_PAIRS && open.len && close.len) {
        pair = &f->reasoning[f->n_reasoning++];
        pair->open = llm_chat_mark(f, open);
        pair->close = llm_chat_mark(f, close);
        pair->ending = pair->close;
    }
}


void
llm_chat_add_mark(llm_str_t *list, uint32_t *n, llm_str_t mark)
{
    if (mark.len && *n < LLM_FORMAT_TEXTS) {
        list[(*n)++] = mark;
    }
}


llm_str_t
llm_learn_behind(const llm_format_t *f, llm_str_t s)
{
    size_t      i, len;
    uint32_t    k;
    llm_str_t   rest;

    rest = s;

    for (k = 0; k < f->n_reasoning; k++) {
        for (i = 0; i < s.len; i++) {
            if (llm_mark_match(f->reasoning[k].close, s.data + i, s.len - i,
                               &len)
                == LLM_MARK_WHOLE
                && s.data + i + len > rest.data)
            {
                rest = llm_learn_cut(s, i + len, s.len);
            }
        }
    }

    return rest;
}
