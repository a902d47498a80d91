/*
 * Primary expressions and what may follow them: literals, names, attributes,
 * subscripts, calls, filters, tests.
 *
 * Nodes belong to the template's arena.  An error is kept (see llm_jcomp_t);
 * every function returns a node even then.
 */

#include "engine/text/jinja/ast.h"


/* adjacent strings are joined */

static llm_jnode_t *
llm_jparse_string(llm_jcomp_t *c)
{
    char         *buf;
    size_t        i, n, len;
    llm_str_t     s;
    llm_jtok_t   *tok;
    llm_jnode_t  *node;

    node = llm_jparse_node(c, LLM_JN_CONST, NULL, NULL);
    tok = llm_jparse_tok(c);
    s = tok->text;

    for (n = 0, len = 0; tok[n].type == LLM_JT_STR; n++) {
        len += tok[n].text.len;
    }

    if (n > 1) {
        buf = llm_jcomp_alloc(c, len + 1);
        s.data = buf;
        s.len = buf ? len : 0;

        for (i = 0; buf && i < n; i++) {
            memcpy(buf, tok[i].text.data, tok[i].text.len);
            buf += tok[i].text.len;
        }
    }

    while (n--) {
        llm_jparse_next(c);
    }

    node->value = llm_jcomp_str(c, s);

    return node;
}


/* parses items up to the closing bracket, and skips it; pairs for a dict */

static llm_jnode_t *
llm_jparse_items(llm_jcomp_t *c, llm_jkind_t kind, int close)
{
    llm_jnode_t  *node, **tail;

    node = llm_jparse_node(c, kind, NULL, NULL);
    llm_jparse_next(c);
    tail = &node->a;

    while (!c->failed && !llm_jparse_is_op(c, close)) {
        if (node->a) {
            llm_jparse_want_op(c, ',');
        }

        if (llm_jparse_is_op(c, close)) {
            break;
        }

        *tail = llm_jparse_expr(c, 0);
        tail = &(*tail)->next;

        if (kind == LLM_JN_DICT) {
            llm_jparse_want_op(c, ':');
            *tail = llm_jparse_expr(c, 0);
            tail = &(*tail)->next;
        }
    }

    llm_jparse_next(c);

    return llm_jparse_seal(c, node);
}


static llm_jnode_t *
llm_jparse_name(llm_jcomp_t *c, int with_ns)
{
    llm_jtok_t   *tok;
    llm_jnode_t  *n;

    n = llm_jparse_node(c, LLM_JN_CONST, NULL, NULL);
    tok = llm_jparse_tok(c);
    llm_jparse_next(c);

    if (llm_jtok_is_name(tok, "true") || llm_jtok_is_name(tok, "True")) {
        n->value = llm_jv_bool(1);

    } else if (llm_jtok_is_name(tok, "false")
               || llm_jtok_is_name(tok, "False"))
    {
        n->value = llm_jv_bool(0);

    } else if (llm_jtok_is_name(tok, "none") || llm_jtok_is_name(tok, "None"))
    {
        n->value = LLM_J_NONE_V;

    } else {
        n->kind = LLM_JN_NAME;
        n->value = llm_jcomp_str(c, tok->text);

        if (with_ns && llm_jparse_skip_op(c, '.')) {
            n->kind = LLM_JN_NSREF;
            n->attr = llm_jparse_want_name(c);
        }
    }

    return n;
}


llm_jnode_t *
llm_jparse_primary(llm_jcomp_t *c, int with_ns)
{
    llm_jtok_t   *tok;
    llm_jnode_t  *n;

    tok = llm_jparse_tok(c);

    switch (tok->type) {

    case LLM_JT_NAME:
        return llm_jparse_name(c, with_ns);

    case LLM_JT_STR:
        return llm_jparse_string(c);

    case LLM_JT_INT:
    case LLM_JT_FLOAT:
        n = llm_jparse_node(c, LLM_JN_CONST, NULL, NULL);
        n->value = tok->type == LLM_JT_INT ? llm_jv_int(tok->i)
                                           : llm_jv_float(tok->f);
        llm_jparse_next(c);

        return n;

    default:
        break;
    }

    if (llm_jparse_skip_op(c, '(')) {
        n = llm_jparse_tuple(c, LLM_JP_PARENS, NULL);
        llm_jparse_want_op(c, ')');

        return n;
    }

    if (llm_jparse_is_op(c, '[')) {
        return llm_jparse_items(c, LLM_JN_LIST, ']');
    }

    if (llm_jparse_is_op(c, '{')) {
        return llm_jparse_items(c, LLM_JN_DICT, '}');
    }

    llm_jparse_unexpected(c, "an expression");

    return llm_jparse_node(c, LLM_JN_CONST, NULL, NULL);
}


/* inside "[ ]": an index, or up to three bounds with colons */

static llm_jnode_t *
llm_jparse_subscript(llm_jcomp_t *c, llm_jnode_t *object)
{
    int           i;
    llm_jnode_t  *n, *part[3] = { NULL, NULL, NULL };

    n = llm_jparse_node(c, LLM_JN_GETITEM, object, NULL);
    llm_jparse_next(c);

    for (i = 0; i < 3; i++) {
        if (!llm_jparse_is_op(c, ':') && !llm_jparse_is_op(c, ']')) {
            part[i] = llm_jparse_expr(c, 0);
        }

        if (i == 2 || !llm_jparse_skip_op(c, ':')) {
            break;
        }

        n->kind = LLM_JN_SLICE;
    }

    if (n->kind == LLM_JN_GETITEM && part[0] == NULL) {
        llm_jparse_unexpected(c, "an expression");
    }

    n->b = part[0];
    n->c = part[1];
    n->d = part[2];
    llm_jparse_want_op(c, ']');

    return llm_jparse_seal(c, n);
}


static llm_jnode_t *
llm_jparse_attribute(llm_jcomp_t *c, llm_jnode_t *object)
{
    llm_jnode_t  *n;

    n = llm_jparse_node(c, LLM_JN_GETATTR, object, NULL);
    llm_jparse_next(c);

    if (llm_jparse_tok(c)->type == LLM_JT_INT) {
        n->kind = LLM_JN_GETITEM;
        n->b = llm_jparse_primary(c, 0);

    } else {
        n->value = llm_jparse_want_name(c);
    }

    return llm_jparse_seal(c, n);
}


/* parses one argument; *seen: kinds of arguments before it, as bits 1 <<
   kind */

static llm_jnode_t *
llm_jparse_arg(llm_jcomp_t *c, unsigned *seen)
{
    unsigned      bad;
    llm_jtok_t   *tok, *look;
    llm_jkind_t   kind;
    llm_jnode_t  *n;

    tok = llm_jparse_tok(c);
    look = llm_jparse_look(c);
    kind = LLM_JN_CONST;
    bad = ~0u;                          /* nothing but plain arguments may
                                           precede a plain one */

    if (llm_jparse_is_op(c, '*')) {
        kind = LLM_JN_STAR;
        bad = 1u << LLM_JN_STAR | 1u << LLM_JN_STARSTAR;

    } else if (llm_jparse_is_op(c, LLM_JOP_POW)) {
        kind = LLM_JN_STARSTAR;
        bad = 1u << LLM_JN_STARSTAR;

    } else if (tok->type == LLM_JT_NAME && look->type == LLM_JT_OP
               && look->op == '=')
    {
        kind = LLM_JN_KEYWORD;
        bad = 1u << LLM_JN_STARSTAR;
    }

    if (*seen & bad) {
        (void) llm_jcomp_fail(c, tok->line,
                              "invalid syntax for function call expression");
    }

    if (kind == LLM_JN_CONST) {
        return llm_jparse_expr(c, 0);
    }

    *seen |= 1u << kind;
    n = llm_jparse_node(c, kind, NULL, NULL);
    llm_jparse_next(c);

    if (kind == LLM_JN_KEYWORD) {
        n->value = llm_jcomp_str(c, tok->text);
        llm_jparse_next(c);
    }

    n->a = llm_jparse_expr(c, 0);

    return llm_jparse_seal(c, n);
}


static void
llm_jparse_not_twice(llm_jcomp_t *c, llm_jnode_t *list, llm_jnode_t *arg)
{
    if (arg->kind != LLM_JN_KEYWORD) {
        return;
    }

    for ( /* void */ ; list && !c->failed; list = list->next) {
        if (list->kind == LLM_JN_KEYWORD
            && llm_js_equal(list->value.u.s, arg->value.u.s))
        {
            (void) llm_jcomp_fail(c, arg->line,
                                  "keyword argument repeated: %.*s",
                                  (int) arg->value.u.s->len,
                                  llm_js_data(arg->value.u.s));
        }
    }
}


/* "(" arguments ")" */

static llm_jnode_t *
llm_jparse_args(llm_jcomp_t *c)
{
    unsigned      seen;
    uint32_t      count;
    llm_jnode_t  *arg, *list, **tail;

    llm_jparse_want_op(c, '(');
    list = NULL;
    tail = &list;
    seen = 0;

    for (count = 0; !c->failed && !llm_jparse_is_op(c, ')'); count++) {
        if (list) {
            llm_jparse_want_op(c, ',');
        }

        if (llm_jparse_is_op(c, ')')) {
            break;
        }

        arg = llm_jparse_arg(c, &seen);

        if (count == LLM_J_MAX_ARGS) {
            (void) llm_jcomp_fail(c, arg->line, "more than %d arguments",
                                  LLM_J_MAX_ARGS);
        }

        llm_jparse_not_twice(c, list, arg);

        *tail = arg;
        tail = &arg->next;
    }

    llm_jparse_next(c);

    return list;
}


llm_jnode_t *
llm_jparse_call(llm_jcomp_t *c, llm_jnode_t *callee)
{
    llm_jnode_t  *n;

    n = llm_jparse_node(c, LLM_JN_CALL, callee, NULL);
    n->b = llm_jparse_args(c);

    return llm_jparse_seal(c, n);
}


llm_jnode_t *
llm_jparse_postfix(llm_jcomp_t *c, llm_jnode_t *n)
{
    for ( ;; ) {
        if (llm_jparse_is_op(c, '.')) {
            n = llm_jparse_attribute(c, n);

        } else if (llm_jparse_is_op(c, '[')) {
            n = llm_jparse_subscript(c, n);

        } else if (llm_jparse_is_op(c, '(')) {
            n = llm_jparse_call(c, n);

        } else {
            return n;
        }
    }
}


llm_jnode_t *
llm_jparse_filter(llm_jcomp_t *c, llm_jnode_t *subject)
{
    llm_jnode_t  *n;

    do {
        n = llm_jparse_node(c, LLM_JN_FILTER, subject, NULL);
        n->value = llm_jparse_want_name(c);

        if (llm_jparse_is_op(c, '(')) {
            n->b = llm_jparse_args(c);
        }

        n->func = llm_jinja_filter(n->value.u.s);
        subject = llm_jparse_seal(c, n);

    } while (llm_jparse_skip_op(c, '|'));

    return n;
}


/* does an argument without parentheses begin here? "x is divisibleby 3" */

static int
llm_jparse_test_arg(llm_jcomp_t *c)
{
    llm_jtok_t  *tok;

    tok = llm_jparse_tok(c);

    if (tok->type == LLM_JT_OP) {
        return tok->op == '[' || tok->op == '{';
    }

    if (tok->type == LLM_JT_NAME) {
        return !llm_jparse_is_name(c, "else") && !llm_jparse_is_name(c, "or")
               && !llm_jparse_is_name(c, "and");
    }

    return tok->type == LLM_JT_STR || tok->type == LLM_JT_INT
           || tok->type == LLM_JT_FLOAT;
}


llm_jnode_t *
llm_jparse_test(llm_jcomp_t *c, llm_jnode_t *subject)
{
    int           negated;
    llm_jnode_t  *n;

    llm_jparse_next(c);
    negated = llm_jparse_skip_name(c, "not");

    n = llm_jparse_node(c, LLM_JN_TEST, subject, NULL);
    n->value = llm_jparse_want_name(c);
    n->func = llm_jinja_test(n->value.u.s);

    if (llm_jparse_is_op(c, '(')) {
        n->b = llm_jparse_args(c);

    } else if (llm_jparse_test_arg(c)) {
        if (llm_jparse_is_name(c, "is")) {
            (void) llm_jcomp_fail(c, n->line,
                                  "you cannot chain multiple tests with is");
        }

        n->b = llm_jparse_postfix(c, llm_jparse_primary(c, 0));
    }

    n = llm_jparse_seal(c, n);

    return negated ? llm_jparse_seal(c, llm_jparse_node(c, LLM_JN_NOT, n,
                                                        NULL)) : n;
}
