/*
 * Calls of tools as a grammar: what a model may write, in the way in which
 * its template shows calls (engine/emit/format.h), with arguments as each
 * tool's schema wants them.  What this writes, engine/emit reads.
 *
 * Of a schema that cannot be kept to exactly only the outermost type is kept,
 * an object: a tool that a client offers is not refused for that, unless it
 * asks to be strict.
 */

#include "engine/serve/engine.h"

#define LLM_CALLS_MAX  256              /* tools */

/* what a mark's LLM_MARK_ANY may be when we write it */
#define LLM_CALLS_ANY  "[ A-Za-z0-9_:.-]{0,24}"


typedef struct {
    const llm_rule_ctx_t  *ctx;
    llm_gram_build_t      *b;
    const llm_form_t      *form;
    llm_err_t             *err;
} llm_calls_t;


/* two nodes, one behind the other */

static llm_gn_t
llm_calls_cat(llm_calls_t *c, llm_gn_t a, llm_gn_t b)
{
    llm_gn_t  both[2] = { a, b };

    return llm_gn_seq(c->b, both, 2);
}


static llm_gn_t
llm_calls_maybe(llm_gram_build_t *b, llm_gn_t a)
{
    return llm_gn_repeat(b, a, 0, 1);
}


llm_gn_t
llm_calls_mark(llm_gram_build_t *b, const llm_toktree_t *tree, llm_str_t mark)
{
    char         any[] = LLM_CALLS_ANY;
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
            if (llm_gn_pattern(b, any, sizeof(any) - 1, &parts[k + 1], NULL)
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


static llm_gn_t
llm_calls_of(llm_calls_t *c, llm_str_t mark)
{
    return llm_calls_mark(c->b, c->ctx->tree, mark);
}


/* the arguments of a tool as an object of JSON */

static int
llm_calls_args(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    llm_err_t          err;
    const llm_flat_t  *type;

    type = tool->schema ? llm_flat_get(tool->schema, "type") : NULL;

    /* without a type they are an object all the same */

    if (type && type->type == LLM_FLAT_STRING
        && llm_flat_str(type).len == 6
        && llm_gn_schema(c->b, tool->schema, node, &err) == LLM_OK)
    {
        return LLM_OK;
    }

    return llm_gn_json_object(c->b, node, c->err);
}


/* ---- {"name": "f", "arguments": {...}} ---- */

static int
llm_calls_object(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    llm_rx_t           name;
    llm_gn_object_t    o;
    llm_gn_property_t  of[2];

    memset(&o, 0, sizeof(o));
    memset(of, 0, sizeof(of));

    name = llm_rx_literal(llm_gram_pool(c->b), tool->name.data,
                          tool->name.len);

    of[0].key = c->form->name_key.len ? c->form->name_key : llm_str("name");
    of[0].value = llm_gn_string(c->b, name);
    of[0].required = 1;
    of[1].key = c->form->args_key.len ? c->form->args_key
                                      : llm_str("arguments");
    of[1].required = 1;

    if (llm_calls_args(c, tool, &of[1].value) != LLM_OK) {
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

/* text up to what ends a value */

static llm_gn_t
llm_calls_text(llm_calls_t *c)
{
    llm_rx_t        rx;
    llm_str_t       end;
    llm_rx_pool_t  *p;

    p = llm_gram_pool(c->b);

    /* the mark must not be in it: not (anything, mark, anything) */

    end = c->form->value_end;
    rx = llm_rx_literal(p, end.data, end.len);
    rx = llm_rx_cat(p, LLM_RX_TEXT, llm_rx_cat(p, rx, LLM_RX_TEXT));

    return llm_gn_regex(c->b, llm_rx_not(p, rx));
}


static int
llm_calls_is_text(const llm_flat_t *schema)
{
    llm_str_t          s;
    const llm_flat_t  *type;

    type = schema->type == LLM_FLAT_OBJECT ? llm_flat_get(schema, "type")
                                           : NULL;
    if (type == NULL || type->type != LLM_FLAT_STRING) {
        return 0;
    }

    s = llm_flat_str(type);

    return s.len == 6 && memcmp(s.data, "string", 6) == 0;
}


/* a string of a few texts is one of these */

static int
llm_calls_enum(llm_calls_t *c, const llm_flat_t *schema, llm_gn_t *node)
{
    uint32_t           n;
    llm_str_t          texts[LLM_CALLS_MAX];
    const llm_flat_t  *v, *list;

    list = llm_flat_get(schema, "enum");

    if (list == NULL || list->type != LLM_FLAT_ARRAY || list->count == 0
        || list->count > LLM_CALLS_MAX)
    {
        return 0;
    }

    n = 0;

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        if (v->type != LLM_FLAT_STRING) {
            return 0;
        }

        texts[n++] = llm_flat_str(v);
    }

    *node = llm_gn_choice(c->b, texts, n);

    return 1;
}


static int
llm_calls_param(llm_calls_t *c, llm_str_t key, const llm_flat_t *schema,
    llm_gn_t *node)
{
    int        is_text;
    llm_gn_t   parts[7];
    llm_err_t  err;

    is_text = llm_calls_is_text(schema);

    parts[0] = llm_calls_of(c, c->form->key);
    parts[1] = llm_gn_text(c->b, key.data, key.len);
    parts[2] = llm_calls_of(c, is_text && c->form->key_end_text.len
                               ? c->form->key_end_text : c->form->key_end);
    parts[3] = llm_calls_of(c, c->form->value_lead);
    parts[5] = llm_calls_of(c, c->form->value_tail);
    parts[6] = llm_calls_of(c, c->form->value_end);

    if (is_text) {
        if (!llm_calls_enum(c, schema, &parts[4])) {
            parts[4] = llm_calls_text(c);
        }

    } else if (llm_gn_schema(c->b, schema, &parts[4], &err) != LLM_OK) {
        parts[4] = llm_calls_text(c);
    }

    *node = llm_gn_seq(c->b, parts, 7);

    return LLM_OK;
}


static int
llm_calls_required(const llm_flat_t *schema, llm_str_t key)
{
    llm_str_t          s;
    const llm_flat_t  *v, *list;

    list = llm_flat_get(schema, "required");

    if (list == NULL || list->type != LLM_FLAT_ARRAY) {
        return 0;
    }

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        if (v->type == LLM_FLAT_STRING) {
            s = llm_flat_str(v);

            if (s.len == key.len && memcmp(s.data, key.data, s.len) == 0) {
                return 1;
            }
        }
    }

    return 0;
}


static int
llm_calls_params(llm_calls_t *c, const llm_tool_t *tool, llm_gn_t *node)
{
    llm_gn_t           one;
    llm_str_t          key;
    const llm_flat_t  *k, *v, *of;

    *node = llm_calls_cat(c, llm_gn_text(c->b, tool->name.data,
                                         tool->name.len),
                          llm_calls_of(c, c->form->name_end));

    of = tool->schema ? llm_flat_get(tool->schema, "properties") : NULL;

    if (of == NULL || of->type != LLM_FLAT_OBJECT) {
        return LLM_OK;
    }

    for (k = llm_flat_first(of); k; k = llm_flat_next(of, v)) {
        v = llm_flat_next(of, k);
        key = llm_flat_str(k);

        if (llm_calls_param(c, key, v, &one) != LLM_OK) {
            return LLM_ERROR;
        }

        if (!llm_calls_required(tool->schema, key)) {
            one = llm_calls_maybe(c->b, one);
        }

        *node = llm_calls_cat(c, *node, one);
    }

    return LLM_OK;
}


/* ---- all tools ---- */

/* one call, of any of the tools that may be called */

static int
llm_calls_one(llm_calls_t *c, llm_gn_t *node)
{
    int                 rc;
    uint32_t            i, n;
    llm_gn_t            of[LLM_CALLS_MAX];
    const llm_tools_t  *tools;

    tools = c->ctx->tools;
    n = 0;

    for (i = 0; i < tools->n && n < LLM_CALLS_MAX; i++) {
        switch (c->form->kind) {

        case LLM_FORM_OBJECT:
            rc = llm_calls_object(c, &tools->tool[i], &of[n++]);
            break;

        case LLM_FORM_NAMED:
            rc = llm_calls_named(c, &tools->tool[i], &of[n++]);
            break;

        default:
            rc = llm_calls_params(c, &tools->tool[i], &of[n++]);
            break;
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    *node = llm_gn_alt(c->b, of, n);

    return LLM_OK;
}


/* the form to write, or NULL: the first that we can */

static const llm_form_t *
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


int
llm_calls_can(const llm_format_t *f)
{
    return llm_calls_form(f) != NULL;
}


int
llm_calls_node(const llm_rule_ctx_t *ctx, llm_gram_build_t *b, llm_gn_t *node,
    llm_err_t *err)
{
    llm_gn_t     one, more, parts[4];
    llm_calls_t  c;

    c.ctx = ctx;
    c.b = b;
    c.form = llm_calls_form(ctx->format);
    c.err = err;

    if (llm_calls_one(&c, &one) != LLM_OK) {
        return LLM_ERROR;
    }

    parts[0] = llm_calls_of(&c, c.form->begin);
    parts[1] = one;
    parts[2] = llm_calls_of(&c, c.form->end);
    one = llm_gn_seq(b, parts, 3);

    parts[0] = llm_calls_of(&c, c.form->open);
    parts[1] = one;
    parts[2] = LLM_GN_EMPTY;
    parts[3] = llm_calls_of(&c, c.form->close);

    if (!ctx->msg->tool_single
        && (c.form->between.len || c.form->begin.len || c.form->end.len))
    {
        more = llm_calls_cat(&c, llm_calls_of(&c, c.form->between), one);
        parts[2] = llm_gn_repeat(b, more, 0, LLM_GN_NO_MAX);
    }

    *node = llm_gn_seq(b, parts, 4);

    return LLM_OK;
}
