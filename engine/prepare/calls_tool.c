/*
 * A call of one tool as a grammar: its name and arguments that match its
 * schema, in the form that the template uses; and the marks that are parts of
 * calls.
 *
 * Unless it is strict, a tool is not refused because its schema cannot be
 * enforced exactly: the keywords that cannot be enforced are ignored and, if
 * that does not help, everything except the outermost type, an object.  Nor is
 * it refused because no arguments match, unless a call is required.
 */

#include "engine/prepare/calls.h"

#include <stdio.h>

/* what a grammar allows for a mark's LLM_MARK_ANY.  APART: after a letter or
   digit, for instance of a name, so that it does not continue that word; WORD:
   after the text of llm_form_t.any */
#define LLM_CALLS_ANY   "[ A-Za-z0-9_:.-]{0,24}"
#define LLM_CALLS_APART "( [ A-Za-z0-9_:.-]{0,24})?"
#define LLM_CALLS_WORD  "[A-Za-z0-9_]{0,24}"


llm_gn_t
llm_calls_cat(llm_calls_t *c, llm_gn_t a, llm_gn_t b)
{
    llm_gn_t  both[2] = { a, b };

    return llm_gn_seq(c->b, both, 2);
}


llm_gn_t
llm_calls_maybe(llm_gram_build_t *b, llm_gn_t a)
{
    return llm_gn_repeat(b, a, 0, 1);
}


/* makes the node for LLM_MARK_ANY; apart: 1 after a letter or digit */

static int
llm_calls_any(llm_gram_build_t *b, const llm_toktree_t *tree, llm_str_t any,
    int apart, llm_gn_t *node)
{
    llm_gn_t     parts[3], of[2];
    const char  *pattern;

    pattern = apart ? LLM_CALLS_APART : LLM_CALLS_ANY;

    if (llm_gn_pattern(b, pattern, strlen(pattern), &of[0], NULL) != LLM_OK) {
        return LLM_ERROR;
    }

    if (any.len == 0) {
        *node = of[0];
        return LLM_OK;
    }

    parts[0] = llm_calls_maybe(b, llm_gn_text(b, " ", 1));
    parts[1] = llm_gn_special(b, tree, any);

    if (llm_gn_pattern(b, LLM_CALLS_WORD, strlen(LLM_CALLS_WORD), &parts[2],
                       NULL) != LLM_OK)
    {
        return LLM_ERROR;
    }

    of[1] = llm_gn_seq(b, parts, 3);
    *node = llm_gn_alt(b, of, 2);

    return LLM_OK;
}


llm_gn_t
llm_calls_mark(llm_gram_build_t *b, const llm_toktree_t *tree, llm_str_t mark,
    llm_str_t any)
{
    size_t       n;
    uint32_t     k;
    llm_gn_t     parts[2 * LLM_FORMAT_TEXTS];
    const char  *p;

    for (k = 0; mark.len && k + 2 <= llm_nelems(parts); k += 2) {
        p = memchr(mark.data, LLM_MARK_ANY, mark.len);
        n = p ? (size_t) (p - mark.data) : mark.len;

        parts[k] = llm_gn_special(b, tree, (llm_str_t) { n, mark.data });
        parts[k + 1] = LLM_GN_EMPTY;

        if (p) {
            if (llm_calls_any(b, tree, any,
                              n == 0 || llm_mark_is_word(p[-1]),
                              &parts[k + 1])
                != LLM_OK)
            {
                return LLM_GN_NONE;
            }

            n++;
        }

        mark.data += n;
        mark.len -= n;
    }

    return mark.len ? LLM_GN_NONE : llm_gn_seq(b, parts, k);
}


llm_gn_t
llm_calls_of(llm_calls_t *c, llm_str_t mark)
{
    return llm_calls_mark(c->b, c->ctx->tree, mark, c->form->any);
}


int
llm_calls_refuse(llm_calls_t *c, const llm_tool_t *tool, const llm_err_t *why)
{
    char  path[sizeof(why->param)];

    snprintf(path, sizeof(path), "tools[%u].function.parameters%s%.*s",
             tool->index, *why->param ? "." : "", (int) sizeof(path) / 2,
             why->param);

    return llm_fail_with(c->err, 400, NULL, path, "%s", why->msg);
}


/* is a call required, though no arguments match?  It must then be a call of
   another tool; the reason is kept for the first tool */

static int
llm_calls_never(llm_calls_t *c, const llm_tool_t *tool, int rc,
    const llm_err_t *why)
{
    if (rc != LLM_ABSENT || c->ctx->msg->tool_choice != LLM_TOOLS_REQUIRED) {
        return 0;
    }

    if (tool == c->ctx->tools->tool) {
        c->never = *why;
    }

    return 1;
}


/* has the tool no schema, or an empty one? */

static int
llm_calls_untyped(const llm_tool_t *tool)
{
    return tool->schema == NULL || tool->schema->type != LLM_FLAT_OBJECT
           || tool->schema->count == 0;
}


/* the arguments of a tool as a JSON object */

static int
llm_calls_args(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    int                rc;
    llm_err_t          err;
    const llm_flat_t  *type, *schema;

    /* without a type they are an object, too */

    type = llm_calls_untyped(tool) ? NULL : llm_flat_get(tool->schema, "type");

    if (type == NULL || type->type != LLM_FLAT_STRING
        || llm_flat_str(type).len != 6)
    {
        if (tool->strict && !llm_calls_untyped(tool)) {
            (void) llm_fail_with(&err, 400, NULL, "type", "The parameters of "
                                 "a strict tool must have the type "
                                 "'object'.");
            return llm_calls_refuse(c, tool, &err);
        }

    } else if (c->how != LLM_CALLS_LOOSE) {

        if (c->closed && llm_gn_schema(c->b, c->closed, node, NULL) == LLM_OK)
        {
            return LLM_OK;
        }

        rc = llm_gn_schema(c->b, tool->schema, node, &err);

        if (rc == LLM_OK) {
            return LLM_OK;
        }

        if (tool->strict) {
            return llm_calls_refuse(c, tool, &err);
        }

        if (llm_calls_never(c, tool, rc, &err)) {
            *node = LLM_GN_NONE;
            return LLM_OK;
        }

        schema = c->closed ? c->closed : tool->schema;

        if (llm_gn_schema_near(c->b, schema, schema, llm_str(""), node, NULL)
            == LLM_OK)
        {
            return LLM_OK;
        }
    }

    return llm_gn_json_object(c->b, node, c->err);
}


/* ---- {"name": "f", "arguments": {...}} ---- */

/* the name as a JSON string without needless escapes, as it is read back */

static int
llm_calls_quoted(llm_calls_t *c, llm_str_t name, llm_gn_t *node)
{
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    if (llm_lit_quote(name, &b) != LLM_OK) {
        return llm_fail(c->err, "no memory for a grammar");
    }

    *node = llm_gn_text(c->b, b.data, b.len);
    llm_buf_free(&b);

    return LLM_OK;
}


static int
llm_calls_object(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    llm_gn_object_t    o;
    llm_gn_property_t  of[2];

    memset(&o, 0, sizeof(o));
    memset(of, 0, sizeof(of));

    of[0].key = llm_form_name_key(c->form);
    of[0].required = 1;
    of[1].key = llm_form_args_key(c->form);
    of[1].required = 1;

    if (llm_calls_quoted(c, tool->name, &of[0].value) != LLM_OK
        || llm_calls_args(c, tool, &of[1].value) != LLM_OK)
    {
        return LLM_ERROR;
    }

    o.named = of;
    o.n_named = 2;
    o.max = 2;

    *node = llm_gn_object(c->b, &o);

    return LLM_OK;
}


/* ---- the name, then the arguments ---- */

static int
llm_calls_named(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    llm_gn_t  parts[3];

    parts[0] = llm_gn_text(c->b, tool->name.data, tool->name.len);
    parts[1] = llm_calls_of(c, c->form->name_end);

    if (llm_calls_args(c, tool, &parts[2]) != LLM_OK) {
        return LLM_ERROR;
    }

    *node = llm_gn_seq(c->b, parts, 3);

    return LLM_OK;
}


/* ---- the name, then keys and values ---- */

/* text without the mark that ends a value */

static llm_gn_t
llm_calls_text(llm_calls_t *c)
{
    llm_rx_t        rx;
    llm_str_t       end;
    llm_rx_pool_t  *p;

    p = llm_gram_pool(c->b);

    /* not (anything, mark, anything) */

    end = c->form->value_end;
    rx = llm_rx_literal(p, end.data, end.len);
    rx = llm_rx_cat(p, LLM_RX_TEXT, llm_rx_cat(p, rx, LLM_RX_TEXT));

    return llm_gn_regex(c->b, llm_rx_not(p, rx));
}


static int
llm_calls_required(const llm_flat_t *schema, llm_str_t key)
{
    const llm_flat_t  *v, *list;

    list = llm_flat_get(schema, "required");

    if (list == NULL || list->type != LLM_FLAT_ARRAY) {
        return 0;
    }

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        if (v->type == LLM_FLAT_STRING && llm_str_eq(llm_flat_str(v), key)) {
            return 1;
        }
    }

    return 0;
}


/* the value of a parameter; an optional parameter is left out if no value
   matches its schema */

static int
llm_calls_value(llm_calls_t *c, const llm_tool_t *tool,
    const llm_flat_t *document, llm_str_t key, const llm_flat_t *schema,
    llm_str_t end, llm_gn_t *node)
{
    int        rc;
    llm_err_t  err;

    if (c->how == LLM_CALLS_LOOSE) {
        *node = llm_calls_text(c);
        return LLM_OK;
    }

    rc = llm_gn_schema_part(c->b, document, schema, end, node, &err);

    if (rc == LLM_OK) {
        return LLM_OK;
    }

    if (rc == LLM_ABSENT && !llm_calls_required(tool->schema, key)) {
        *node = LLM_GN_NONE;
        return LLM_OK;
    }

    if (tool->strict) {
        return llm_calls_refuse(c, tool, &err);
    }

    if (llm_calls_never(c, tool, rc, &err)) {
        *node = LLM_GN_NONE;
        return LLM_OK;
    }

    if (llm_gn_schema_near(c->b, document, schema, end, node, NULL)
        != LLM_OK)
    {
        *node = llm_calls_text(c);
    }

    return LLM_OK;
}


static int
llm_calls_param(llm_calls_t *c, const llm_tool_t *tool,
    const llm_flat_t *document, llm_str_t key, const llm_flat_t *schema,
    llm_gn_t *node)
{
    int                is_text;
    llm_gn_t           parts[7];
    llm_str_t          end;
    const llm_form_t  *f;

    f = c->form;
    is_text = llm_tool_takes_text(tool, key);

    parts[0] = llm_calls_of(c, f->key);
    parts[1] = llm_gn_text(c->b, key.data, key.len);
    parts[2] = llm_calls_of(c, is_text && f->key_end_text.len
                               ? f->key_end_text : f->key_end);
    parts[3] = llm_calls_of(c, f->value_lead);
    parts[5] = llm_calls_of(c, f->value_tail);
    parts[6] = llm_calls_of(c, f->value_end);

    /* where strings have a mark of their own before them, a value after the
       other mark is JSON, even if it is a string among other types */

    end = is_text || f->key_end_text.len == 0 ? f->value_end : llm_str("");

    if (llm_calls_value(c, tool, document, key, schema, end, &parts[4])
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    *node = llm_gn_seq(c->b, parts, 7);

    return LLM_OK;
}


static int
llm_calls_params(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    llm_gn_t           one;
    llm_str_t          key;
    const llm_flat_t  *k, *v, *of, *schema;

    schema = c->closed ? c->closed : tool->schema;

    *node = llm_calls_cat(c, llm_gn_text(c->b, tool->name.data,
                                         tool->name.len),
                          llm_calls_of(c, c->form->name_end));

    of = schema ? llm_flat_get(schema, "properties") : NULL;

    if (of == NULL || of->type != LLM_FLAT_OBJECT) {
        return LLM_OK;
    }

    for (k = llm_flat_first(of); k; k = llm_flat_next(of, v)) {
        v = llm_flat_next(of, k);
        key = llm_flat_str(k);

        if (llm_calls_param(c, tool, schema, key, v, &one) != LLM_OK) {
            return LLM_ERROR;
        }

        if (!llm_calls_required(tool->schema, key)) {
            one = llm_calls_maybe(c->b, one);
        }

        *node = llm_calls_cat(c, *node, one);
    }

    return LLM_OK;
}


/* ---- one tool ---- */

static int
llm_calls_in_form(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    switch (c->form->kind) {

    case LLM_FORM_OBJECT:
        return llm_calls_object(c, tool, node);

    case LLM_FORM_NAMED:
        return llm_calls_named(c, tool, node);

    default:
        return llm_calls_params(c, tool, node);
    }
}


/* a function gets only the parameters that its schema names; if it is strict,
   the same holds for all objects inside them */

int
llm_calls_tool(llm_calls_t *c, const llm_tool_t *tool, llm_calls_how_t how,
    llm_gn_t *node)
{
    int        rc;
    llm_buf_t  closed;

    c->how = c->ctx->loose ? LLM_CALLS_LOOSE : how;
    c->closed = NULL;
    llm_buf_init(&closed, 0);

    if (how == LLM_CALLS_CLOSED && !llm_calls_untyped(tool)
        && llm_schema_close(tool->schema, tool->strict, &closed) == LLM_OK)
    {
        c->closed = (const llm_flat_t *) closed.data;
    }

    rc = llm_calls_in_form(c, tool, node);
    llm_buf_free(&closed);

    return rc;
}
