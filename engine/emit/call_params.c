/*
 * Finds where the parameters of a call end that stand between marks; see
 * call.h.
 */

#include "engine/emit/call_internal.h"
#include "engine/emit/types.h"

#define LLM_CALL_KEY_MOST  256


int
llm_call_key(llm_call_t *c, llm_str_t text)
{
    size_t      i, len[2];
    llm_str_t   tag;
    llm_mark_t  text_end, end;

    tag = llm_mark_tag(c->form->key_end);

    for (i = c->at; i <= text.len; i++) {
        end = llm_mark_match(c->form->key_end, text.data + i, text.len - i,
                             &len[0]);
        text_end = c->form->key_end_text.len == 0 ? LLM_MARK_NO
                   : llm_mark_match(c->form->key_end_text, text.data + i,
                                    text.len - i, &len[1]);

        if (end == LLM_MARK_WHOLE || text_end == LLM_MARK_WHOLE) {
            c->param.key.off = c->at;
            c->param.key.len = i - c->at;
            c->param.is_text = text_end == LLM_MARK_WHOLE;
            c->param.is_data = c->form->key_end_text.len
                               && !c->param.is_text;
            c->at = i + len[c->param.is_text];
            c->param.value.off = c->at;
            c->seen = c->at;
            c->step = LLM_CALL_VALUE;

            return LLM_OK;
        }

        /* a key with its end mark is complete, even if no value follows */

        if (end == LLM_MARK_NO && tag.len
            && llm_mark_match(tag, text.data + i, text.len - i, &len[0])
               == LLM_MARK_WHOLE)
        {
            break;
        }

        if (end == LLM_MARK_PART || text_end == LLM_MARK_PART
            || i == text.len)
        {
            return LLM_MORE;
        }

        if (i - c->at == LLM_CALL_KEY_MOST || text.data[i] == '\n') {
            break;
        }
    }

    c->at = i;

    return LLM_ERROR;
}


int
llm_call_value(llm_call_t *c, llm_str_t text)
{
    size_t       len;
    const char  *p;
    llm_mark_t   rc;

    for ( ;; ) {
        p = memchr(text.data + c->seen, c->form->value_end.data[0],
                   text.len - c->seen);

        if (p == NULL) {
            c->seen = text.len;
            return LLM_MORE;
        }

        c->seen = (size_t) (p - text.data);
        rc = llm_mark_match(c->form->value_end, p, text.len - c->seen, &len);

        if (rc == LLM_MARK_PART) {
            return LLM_MORE;
        }

        if (rc == LLM_MARK_WHOLE) {
            c->param.value.len = c->seen - c->param.value.off;
            c->at = c->seen + len;
            c->has_param = 1;
            c->step = LLM_CALL_KEY_OR_END;

            return LLM_OK;
        }

        c->seen++;
    }
}


/* does the text at c->at begin with the name of a tool? */

static llm_mark_t
llm_call_names(llm_call_t *c, llm_str_t text)
{
    size_t  end;

    llm_call_skip(c, text);

    for (end = c->at; end < text.len
         && llm_tools_begin(c->tools, text.data + c->at, end + 1 - c->at);
         end++)
    {
        /* void */
    }

    if (end == text.len) {
        return LLM_MARK_PART;
    }

    return llm_tools_find(c->tools, (llm_str_t) { end - c->at,
                                                  text.data + c->at })
           ? LLM_MARK_WHOLE : LLM_MARK_NO;
}


/*
 * The end of a call may lack its last marks if nothing follows, or if the next
 * call follows.
 */

static llm_mark_t
llm_call_short_end(const llm_call_t *c, llm_str_t text, int last, size_t *len)
{
    size_t      n, inner;
    llm_str_t   mark;
    llm_mark_t  rc;
    llm_call_t  next;

    mark = llm_mark_tag(c->form->end);
    *len = 0;

    if (mark.len < c->form->end.len) {
        rc = llm_call_mark(c, mark, text, len);

        if (rc != LLM_MARK_WHOLE) {
            return rc;
        }
    }

    next = *c;
    next.at += *len;
    llm_call_skip(&next, text);

    if (next.at == text.len) {
        return !last ? LLM_MARK_PART : *len ? LLM_MARK_WHOLE : LLM_MARK_NO;
    }

    mark = llm_form_inner(c->form);
    rc = llm_call_mark(&next, c->form->begin, text, &n);

    if (rc != LLM_MARK_WHOLE && mark.len
        && llm_call_mark(&next, mark, text, &inner) > rc)
    {
        rc = llm_call_mark(&next, mark, text, &inner);
        n = inner;
    }

    if (rc == LLM_MARK_WHOLE) {
        next.at += n;
        rc = llm_call_names(&next, text);
    }

    return rc == LLM_MARK_PART && last ? LLM_MARK_NO : rc;
}


/* is the key of another of the tool's parameters, with its marks, at p?  Its
   value begins after *len bytes */

static int
llm_call_other_key(const llm_call_t *c, const llm_tool_t *tool, llm_str_t s,
    llm_str_t *key, size_t *len)
{
    size_t  i, n;

    if (llm_mark_match(c->form->key, s.data, s.len, &n) != LLM_MARK_WHOLE) {
        return 0;
    }

    for (i = n; i < s.len && i - n <= LLM_CALL_KEY_MOST; i++) {
        if (llm_mark_match(c->form->key_end, s.data + i, s.len - i, len)
            == LLM_MARK_WHOLE)
        {
            *key = (llm_str_t) { i - n, s.data + n };
            *len += i;

            return llm_type_schema(tool->schema, tool->schema, *key) != NULL;
        }
    }

    return 0;
}


/*
 * A value that contains another parameter, up to that one's end, is two: the
 * first value's end mark is missing.
 */

static int
llm_call_split(llm_call_t *c, llm_str_t text)
{
    size_t             i, n, end;
    llm_str_t          key, s;
    const llm_tool_t  *tool;

    tool = llm_tools_find(c->tools, (llm_str_t) { c->name.len,
                                                  text.data + c->name.off });
    end = c->param.value.off + c->param.value.len;

    if (tool == NULL || c->form->key_end_text.len || c->form->key.len < 5
        || memmem(text.data + c->param.value.off, c->param.value.len,
                  c->form->value_end.data, c->form->value_end.len))
    {
        return LLM_OK;
    }

    for (i = c->param.value.off; i < end; i++) {
        s = (llm_str_t) { end - i, text.data + i };

        if (s.data[0] != c->form->key.data[0]
            || !llm_call_other_key(c, tool, s, &key, &n))
        {
            continue;
        }

        c->param.value.len = i - c->param.value.off;

        if (llm_buf_add(&c->params, &c->param, sizeof(c->param)) != LLM_OK) {
            return LLM_ERROR;
        }

        c->param.key.off = (size_t) (key.data - text.data);
        c->param.key.len = key.len;
        c->param.value.off = i + n;
        c->param.value.len = end - i - n;
        i += n - 1;
    }

    return LLM_OK;
}


/*
 * After a value another key or the end of the call must follow.  Otherwise
 * what looked like the value's end was part of the value.
 */

int
llm_call_key_or_end(llm_call_t *c, llm_str_t text, int last)
{
    size_t      key_len, end_len, short_len;
    llm_mark_t  key, end, shorter;

    llm_call_skip(c, text);

    key = llm_call_mark(c, c->form->key, text, &key_len);
    end = c->form->end.len == 0 ? LLM_MARK_NO
          : llm_call_mark(c, c->form->end, text, &end_len);

    if (key == LLM_MARK_NO && end != LLM_MARK_WHOLE && !c->needs_end
        && c->form->end.len
        && c->form->begin.len)
    {
        shorter = llm_call_short_end(c, text, last, &short_len);

        if (shorter > end) {
            end = shorter;
            end_len = short_len;
        }
    }

    if (key != LLM_MARK_WHOLE && end != LLM_MARK_WHOLE
        && (key == LLM_MARK_PART || end == LLM_MARK_PART) && !last)
    {
        return LLM_MORE;
    }

    if (key != LLM_MARK_WHOLE && end != LLM_MARK_WHOLE
        && c->form->end.len
        && !(last == LLM_TEXT_DONE && c->has_param && !c->needs_end
             && c->at == text.len))
    {
        if (!c->has_param) {
            return LLM_ERROR;
        }

        c->has_param = 0;
        c->seen++;
        c->step = LLM_CALL_VALUE;

        return LLM_OK;
    }

    if (c->has_param && llm_call_split(c, text) != LLM_OK) {
        return LLM_ERROR;
    }

    if (c->has_param
        && llm_buf_add(&c->params, &c->param, sizeof(c->param)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    c->has_param = 0;

    if (key == LLM_MARK_WHOLE) {
        c->at += key_len;
        c->step = LLM_CALL_KEY;

        return LLM_OK;
    }

    c->at += end == LLM_MARK_WHOLE ? end_len : 0;
    c->step = 0;

    return LLM_OK;
}
