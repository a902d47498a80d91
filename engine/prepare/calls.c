/*
 * Tool calls as a grammar: what a model may write, in the form in which its
 * template shows calls (engine/emit/format.h), with arguments that match each
 * tool's schema (calls_tool.c).  engine/emit reads what these grammars allow.
 *
 * A required call is the whole answer.  An optional call is constrained from
 * where it has begun (engine/sched/trigger.c): its grammar begins with a byte
 * that says how it has begun, '0' + LLM_BEGUN_..., and continues after the sign
 * of the beginning (llm_answer_sign()).
 */

#include "engine/prepare/calls.h"

/* white space where a mark has some; SOME: after a letter or digit */
#define LLM_CALLS_GAP   "[ \t\r\n]{0,16}"
#define LLM_CALLS_SOME  "[ \t\r\n]{1,16}"

/* the end of a line, with spaces and newlines around it */
#define LLM_CALLS_LINE  "[ \n]{0,3}"


static llm_gn_t
llm_calls_list(llm_calls_t *c, llm_gn_t call)
{
    llm_gn_array_t  a;

    memset(&a, 0, sizeof(a));
    a.items = call;
    a.min = 1;
    a.max = c->ctx->msg->tool_single ? 1 : LLM_GN_NO_MAX;

    return llm_gn_array(c->b, &a);
}


/*
 * Handles tools whose arguments nothing seems to match.  A strict tool is
 * refused.  For other tools the schema is used without being closed, because it
 * may require a property that it does not name; if that does not help, any
 * object is allowed.  Exception: if a call is required and it is certain that
 * no arguments match, the tool cannot be called; if that holds for all tools,
 * the first one is refused.
 */

static int
llm_calls_possible(llm_calls_t *c, llm_gn_t *of)
{
    int                 rc;
    uint32_t            i, n;
    llm_err_t           why, first;
    const llm_tool_t   *tool;
    const llm_tools_t  *tools;

    tools = c->ctx->tools;

    for (i = 0, n = 0; i < tools->n; i++) {
        tool = &tools->tool[i];

        if (llm_gn_alive(c->b, of[i], &why) == LLM_OK) {
            continue;
        }

        if (tool->strict) {
            return llm_calls_refuse(c, tool, &why);
        }

        if (llm_calls_tool(c, tool, LLM_CALLS_OPEN, &of[i]) != LLM_OK) {
            return LLM_ERROR;
        }

        rc = llm_gn_alive(c->b, of[i], &why);

        if (rc == LLM_OK) {
            continue;
        }

        if (rc == LLM_ABSENT
            && c->ctx->msg->tool_choice == LLM_TOOLS_REQUIRED)
        {
            first = n++ ? first : *c->never.msg ? c->never : why;
            continue;
        }

        if (llm_calls_tool(c, tool, LLM_CALLS_LOOSE, &of[i]) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return n && n == tools->n ? llm_calls_refuse(c, &tools->tool[0], &first)
                              : LLM_OK;
}


/* one call of any of the tools that may be called, or a list of calls */

static int
llm_calls_one(llm_calls_t *c, llm_gn_t *node)
{
    int                 rc;
    uint32_t            i;
    llm_gn_t           *of;
    const llm_tools_t  *tools;

    tools = c->ctx->tools;

    of = calloc(llm_max(tools->n, 1u), sizeof(*of));
    if (of == NULL) {
        return llm_fail(c->err, "no memory for a grammar");
    }

    for (i = 0; i < tools->n; i++) {
        if (llm_calls_tool(c, &tools->tool[i], LLM_CALLS_CLOSED, &of[i])
            != LLM_OK)
        {
            free(of);
            return LLM_ERROR;
        }
    }

    rc = llm_calls_possible(c, of);
    *node = llm_gn_alt(c->b, of, tools->n);
    free(of);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    if (c->form->list) {
        *node = llm_calls_list(c, *node);
    }

    return LLM_OK;
}


const llm_form_t *
llm_calls_form(const llm_format_t *f)
{
    uint32_t           i;
    const llm_form_t  *form;

    for (i = 0; f && i < f->n_forms; i++) {
        form = &f->forms[i];

        if (form->kind != LLM_FORM_PYTHON && form->quote.len == 0
            && (form->kind != LLM_FORM_PARAMS || form->value_end.len))
        {
            return form;
        }
    }

    return NULL;
}


/*
 * White space that is allowed around an object, which a form does not record.
 * Most templates write the object on a line of its own.  A model that must not
 * begin that line, or has to close the object with another token than it has
 * learnt, writes things that it would not write otherwise.
 */

static int
llm_calls_gap(llm_calls_t *c)
{
    c->gap = LLM_GN_EMPTY;

    return c->form->kind == LLM_FORM_OBJECT
           ? llm_gn_pattern(c->b, LLM_CALLS_LINE, sizeof(LLM_CALLS_LINE) - 1,
                            &c->gap, c->err)
           : LLM_OK;
}


/* what follows the first call: more calls, then the mark after the last */

static llm_gn_t
llm_calls_rest(llm_calls_t *c, llm_gn_t one)
{
    llm_gn_t  close, parts[3];

    close = llm_calls_of(c, c->form->close);

    if (c->ctx->msg->tool_single || c->form->list
        || !(c->form->between.len || c->form->begin.len || c->form->end.len))
    {
        return close;
    }

    parts[0] = c->gap;
    parts[1] = llm_calls_of(c, c->form->between);
    parts[2] = one;

    return llm_calls_cat(c, llm_gn_repeat(c->b, llm_gn_seq(c->b, parts, 3), 0,
                                          LLM_GN_NO_MAX),
                         close);
}


/* *one: a call with its marks; *call: a call without them */

static int
llm_calls_marked(llm_calls_t *c, llm_gn_t *call, llm_gn_t *one)
{
    llm_gn_t  parts[3];

    if (llm_calls_gap(c) != LLM_OK || llm_calls_one(c, call) != LLM_OK) {
        return LLM_ERROR;
    }

    if (c->form->open.len || c->form->begin.len) {
        *call = llm_calls_cat(c, c->gap, *call);
    }

    if (c->form->end.len || c->form->close.len) {
        *call = llm_calls_cat(c, *call, c->gap);
    }

    parts[0] = llm_calls_of(c, c->form->begin);
    parts[1] = *call;
    parts[2] = llm_calls_of(c, c->form->end);
    *one = llm_gn_seq(c->b, parts, 3);

    return LLM_OK;
}


int
llm_calls_node(const llm_rule_env_t *ctx, llm_gram_build_t *b, llm_gn_t *node,
    llm_err_t *err)
{
    llm_gn_t     call, one, parts[3];
    llm_calls_t  c = { ctx, b, llm_calls_form(ctx->format), err, 0, NULL,
                         LLM_CALLS_CLOSED, { 0 } };

    if (llm_calls_marked(&c, &call, &one) != LLM_OK) {
        return LLM_ERROR;
    }

    parts[0] = llm_calls_of(&c, c.form->open);
    parts[1] = one;
    parts[2] = llm_calls_rest(&c, one);
    *node = llm_gn_seq(b, parts, 3);

    return LLM_OK;
}


/* ---- a call that has begun ---- */

/* the rest of a mark after its sign, see llm_answer_sign() */

static int
llm_calls_behind(llm_calls_t *c, llm_str_t mark, llm_gn_t *node)
{
    size_t       n;
    llm_gn_t     gap;
    const char  *pattern;

    n = llm_answer_sign(c->ctx->format, mark);
    gap = LLM_GN_EMPTY;

    if (n < mark.len && llm_mark_is_space(mark.data[n])) {
        pattern = llm_mark_is_word(mark.data[n - 1]) ? LLM_CALLS_SOME
                                                     : LLM_CALLS_GAP;

        if (llm_gn_pattern(c->b, pattern, strlen(pattern), &gap, c->err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        while (n < mark.len && llm_mark_is_space(mark.data[n])) {
            n++;
        }
    }

    mark.data += n;
    mark.len -= n;
    *node = llm_calls_cat(c, gap, llm_calls_of(c, mark));

    return LLM_OK;
}


/* one way to begin: its byte, the rest of its mark, the calls */

static llm_gn_t
llm_calls_way(llm_calls_t *c, llm_begun_t how, llm_gn_t mark, llm_gn_t first,
    llm_gn_t rest)
{
    char      byte;
    llm_gn_t  parts[4];

    byte = (char) ('0' + how);
    parts[0] = llm_gn_text(c->b, &byte, 1);
    parts[1] = mark;
    parts[2] = first;
    parts[3] = rest;

    return llm_gn_seq(c->b, parts, 4);
}


int
llm_calls_begun(const llm_rule_env_t *ctx, llm_gram_build_t *b,
    llm_gn_t *node, llm_err_t *err)
{
    uint32_t     n;
    llm_gn_t     call, one, end, rest, mark, of[3];
    llm_calls_t  c = { ctx, b, llm_calls_form(ctx->format), err, 0, NULL,
                         LLM_CALLS_CLOSED, { 0 } };

    if (llm_calls_marked(&c, &call, &one) != LLM_OK) {
        return LLM_ERROR;
    }

    n = 0;
    end = llm_calls_of(&c, c.form->end);
    rest = llm_calls_rest(&c, one);

    if (c.form->open.len) {
        if (llm_calls_behind(&c, c.form->open, &mark) != LLM_OK) {
            return LLM_ERROR;
        }

        of[n++] = llm_calls_way(&c, LLM_BEGUN_OPEN, mark, one, rest);
    }

    if (c.form->begin.len) {
        if (llm_calls_behind(&c, c.form->begin, &mark) != LLM_OK) {
            return LLM_ERROR;
        }

        of[n++] = llm_calls_way(&c, LLM_BEGUN_BEGIN, mark,
                                llm_calls_cat(&c, call, end), rest);
    }

    if (c.form->bare) {
        of[n++] = llm_calls_way(&c, LLM_BEGUN_BARE, LLM_GN_EMPTY,
                                llm_calls_cat(&c, call,
                                              llm_calls_maybe(b, end)), rest);
    }

    *node = llm_gn_alt(b, of, n);

    return LLM_OK;
}
