/*
 * Primary expressions and what may follow them: literals, names, attributes,
 * subscripts, calls, filters, tests.
 *
 * Nodes belong to the template's arena.  Every function returns NULL after
 * it has set the error.
 */

#include "engine/text/jinja/ast.h"


static llm_jnode_t *
llm_jparse_string(llm_jcomp_t *c)
{
    char         *buf;
    size_t        len, n;
    llm_str_t     s;
    llm_jtok_t   *tok;
    llm_jnode_t  *node;

    node = llm_jparse_node(c, LLM_JN_CONST, NULL, NULL);
    if (node == NULL) {
        return NULL;
    }

    tok = llm_jparse_tok(c);
    s = tok->text;
    len = s.len;
    llm_jparse_next(c);

    /* strings side by side are one */

    for (n = 0; tok[n].type == LLM_JT_STR; n++) {
        len = n ? len + tok[n].text.len : len;
    }

    if (n > 1) {
        buf = llm_jcomp_alloc(c, len + 1);
        if (buf == NULL) {
            return NULL;
        }

        s.data = buf;
        s.len = len;

        for (n = 0; tok[n].type == LLM_JT_STR; n++) {
            if (tok[n].text.len) {
                memcpy(buf, tok[n].text.data, tok[n].text.len);
            }

            buf += tok[n].text.len;
        }

        c->pos += n - 1;
    }

    return llm_jcomp_str(c, s, &node->value) == LLM_OK ? node : NULL;
}


/* items up to the closing bracket, which is eaten; pairs for a dict */

static llm_jnode_t *
llm_jparse_items(llm_jcomp_t *c, llm_jkind_t kind, int close)
{
    llm_jnode_t  *node, *item, **tail;

    node = llm_jparse_node(c, kind, NULL, NULL);
    if (node == NULL) {
        return NULL;
    }

    llm_jparse_next(c);
    tail = &node->a;

    while (!llm_jparse_is_op(c, close)) {
        if (node->a && llm_jparse_want_op(c, ',') != LLM_OK) {
            return NULL;
        }

        if (llm_jparse_is_op(c, close)) {
            break;
        }

        item = llm_jparse_expr(c, 0);
        if (item == NULL) {
            return NULL;
        }

        *tail = item;
        tail = &item->next;

        if (kind == LLM_JN_DICT) {
            if (llm_jparse_want_op(c, ':') != LLM_OK) {
                return NULL;
            }

            item = llm_jparse_expr(c, 0);
            if (item == NULL) {
                return NULL;
            }

            *tail = item;
            tail = &item->next;
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
    if (n == NULL) {
        return NULL;
    }

    tok = llm_jparse_tok(c);
    llm_jparse_next(c);

    if (llm_jtok_is_name(tok, "true") || llm_jtok_is_name(tok, "True")) {
        n->value = llm_jv_bool(1);
        return n;
    }

    if (llm_jtok_is_name(tok, "false") || llm_jtok_is_name(tok, "False")) {
        n->value = llm_jv_bool(0);
        return n;
    }

    if (llm_jtok_is_name(tok, "none") || llm_jtok_is_name(tok, "None")) {
        n->value = LLM_J_NONE_V;
        return n;
    }

    n->kind = LLM_JN_NAME;

    if (llm_jcomp_str(c, tok->text, &n->value) != LLM_OK) {
        return NULL;
    }

    if (with_ns && llm_jparse_skip_op(c, '.')) {
        n->kind = LLM_JN_NSREF;

        if (llm_jparse_want_name(c, &n->attr) != LLM_OK) {
            return NULL;
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

        if (n) {
            n->value = tok->type == LLM_JT_INT ? llm_jv_int(tok->i)
                                               : llm_jv_float(tok->f);
        }

        llm_jparse_next(c);

        return n;

    case LLM_JT_OP:
        if (tok->op == '(') {
            llm_jparse_next(c);
            n = llm_jparse_tuple(c, LLM_JP_PARENS, NULL);

            return (n && llm_jparse_want_op(c, ')') == LLM_OK) ? n : NULL;
        }

        if (tok->op == '[') {
            return llm_jparse_items(c, LLM_JN_LIST, ']');
        }

        if (tok->op == '{') {
            return llm_jparse_items(c, LLM_JN_DICT, '}');
        }

        break;

    default:
        break;
    }

    (void) llm_jparse_unexpected(c, "an expression");

    return NULL;
}


/* inside "[ ]": an index, or up to three bounds with colons */

static llm_jnode_t *
llm_jparse_subscript(llm_jcomp_t *c, llm_jnode_t *object)
{
    int           i, colons;
    llm_jnode_t  *n, *part[3] = { NULL, NULL, NULL };

    n = llm_jparse_node(c, LLM_JN_GETITEM, object, NULL);
    if (n == NULL) {
        return NULL;
    }

    llm_jparse_next(c);
    colons = 0;

    for (i = 0; i < 3; i++) {
        if (!llm_jparse_is_op(c, ':') && !llm_jparse_is_op(c, ']')) {
            part[i] = llm_jparse_expr(c, 0);
            if (part[i] == NULL) {
                return NULL;
            }
        }

        if (i == 2 || !llm_jparse_skip_op(c, ':')) {
            break;
        }

        colons = 1;
    }

    if (!colons && part[0] == NULL) {
        (void) llm_jparse_unexpected(c, "an expression");
        return NULL;
    }

    n->b = part[0];

    if (colons) {
        n->kind = LLM_JN_SLICE;
        n->c = part[1];
        n->d = part[2];
    }

    if (llm_jparse_want_op(c, ']') != LLM_OK) {
        return NULL;
    }

    return llm_jparse_seal(c, n);
}


static llm_jnode_t *
llm_jparse_attribute(llm_jcomp_t *c, llm_jnode_t *object)
{
    llm_jtok_t   *tok;
    llm_jnode_t  *n;

    n = llm_jparse_node(c, LLM_JN_GETATTR, object, NULL);
    if (n == NULL) {
        return NULL;
    }

    llm_jparse_next(c);
    tok = llm_jparse_tok(c);

    if (tok->type == LLM_JT_INT) {
        n->kind = LLM_JN_GETITEM;
        n->b = llm_jparse_primary(c, 0);

        return n->b ? llm_jparse_seal(c, n) : NULL;
    }

    if (llm_jparse_want_name(c, &n->value) != LLM_OK) {
        return NULL;
    }

    return llm_jparse_seal(c, n);
}


/* one argument; *seen is which kinds were before, as bits 1 << kind */

static llm_jnode_t *
llm_jparse_arg(llm_jcomp_t *c, unsigned *seen)
{
    unsigned      kw, star, starstar;
    llm_jtok_t   *tok, *look;
    llm_jnode_t  *n;

    kw = 1u << LLM_JN_KEYWORD;
    star = 1u << LLM_JN_STAR;
    starstar = 1u << LLM_JN_STARSTAR;

    tok = llm_jparse_tok(c);
    look = llm_jparse_look(c);

    n = llm_jparse_node(c, LLM_JN_KEYWORD, NULL, NULL);
    if (n == NULL) {
        return NULL;
    }

    if (llm_jparse_is_op(c, '*')) {
        n->kind = LLM_JN_STAR;
        llm_jparse_next(c);

    } else if (llm_jparse_is_op(c, LLM_JOP_POW)) {
        n->kind = LLM_JN_STARSTAR;
        llm_jparse_next(c);

    } else if (tok->type == LLM_JT_NAME && look->type == LLM_JT_OP
               && look->op == '=')
    {
        if (llm_jcomp_str(c, tok->text, &n->value) != LLM_OK) {
            return NULL;
        }

        c->pos += 2;

    } else {
        n = NULL;
    }

    if ((n == NULL && *seen)
        || (n && n->kind == LLM_JN_STAR && (*seen & (star | starstar)))
        || (n && n->kind != LLM_JN_STAR && (*seen & starstar)))
    {
        (void) llm_jcomp_fail(c, tok->line,
                              "invalid syntax for function call expression");
        return NULL;
    }

    if (n == NULL) {
        return llm_jparse_expr(c, 0);
    }

    *seen |= n->kind == LLM_JN_KEYWORD ? kw
             : n->kind == LLM_JN_STAR ? star : starstar;
    n->a = llm_jparse_expr(c, 0);

    return n->a ? llm_jparse_seal(c, n) : NULL;
}


/* "(" arguments ")" into *list */

static int
llm_jparse_args(llm_jcomp_t *c, llm_jnode_t **list)
{
    unsigned      seen;
    uint32_t      count;
    llm_jnode_t  *arg, *other, **tail;

    if (llm_jparse_want_op(c, '(') != LLM_OK) {
        return LLM_ERROR;
    }

    seen = 0;
    count = 0;
    tail = list;

    while (!llm_jparse_is_op(c, ')')) {
        if (tail != list) {
            if (llm_jparse_want_op(c, ',') != LLM_OK) {
                return LLM_ERROR;
            }

            if (llm_jparse_is_op(c, ')')) {
                break;
            }
        }

        arg = llm_jparse_arg(c, &seen);
        if (arg == NULL) {
            return LLM_ERROR;
        }

        if (count++ == LLM_J_MAX_ARGS) {
            return llm_jcomp_fail(c, arg->line, "more than %d arguments",
                                  LLM_J_MAX_ARGS);
        }

        for (other = *list; other && arg->kind == LLM_JN_KEYWORD;
             other = other->next)
        {
            if (other->kind == LLM_JN_KEYWORD
                && llm_js_equal(other->value.u.s, arg->value.u.s))
            {
                return llm_jcomp_fail(c, arg->line,
                                      "keyword argument repeated: %.*s",
                                      (int) arg->value.u.s->len,
                                      llm_js_data(arg->value.u.s));
            }
        }

        *tail = arg;
        tail = &arg->next;
    }

    llm_jparse_next(c);

    return LLM_OK;
}


llm_jnode_t *
llm_jparse_call(llm_jcomp_t *c, llm_jnode_t *callee)
{
    llm_jnode_t  *n;

    n = llm_jparse_node(c, LLM_JN_CALL, callee, NULL);

    if (n == NULL || llm_jparse_args(c, &n->b) != LLM_OK) {
        return NULL;
    }

    return llm_jparse_seal(c, n);
}


llm_jnode_t *
llm_jparse_postfix(llm_jcomp_t *c, llm_jnode_t *n)
{
    while (n) {
        if (llm_jparse_is_op(c, '.')) {
            n = llm_jparse_attribute(c, n);

        } else if (llm_jparse_is_op(c, '[')) {
            n = llm_jparse_subscript(c, n);

        } else if (llm_jparse_is_op(c, '(')) {
            n = llm_jparse_call(c, n);

        } else {
            break;
        }
    }

    return n;
}


/* a name with dots in it, as filters and tests may have */

static int
llm_jparse_dotted(llm_jcomp_t *c, llm_jv_t *name)
{
    llm_str_t  s;
    llm_jv_t   part;

    if (llm_jparse_want_name(c, name) != LLM_OK) {
        return LLM_ERROR;
    }

    while (llm_jparse_skip_op(c, '.')) {
        if (llm_jparse_want_name(c, &part) != LLM_OK) {
            return LLM_ERROR;
        }

        s.data = llm_js_data(name->u.s);
        s.len = (size_t) (llm_js_data(part.u.s) + part.u.s->len - s.data);

        if (llm_jcomp_str(c, s, name) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* the parser stands behind the "|" */

llm_jnode_t *
llm_jparse_filter(llm_jcomp_t *c, llm_jnode_t *subject)
{
    llm_js_t     *name;
    llm_jnode_t  *n;

    for ( ;; ) {
        n = llm_jparse_node(c, LLM_JN_FILTER, subject, NULL);
        if (n == NULL || llm_jparse_dotted(c, &n->value) != LLM_OK) {
            return NULL;
        }

        if (llm_jparse_is_op(c, '(')
            && llm_jparse_args(c, &n->b) != LLM_OK)
        {
            return NULL;
        }

        name = n->value.u.s;
        n->func = llm_jinja_filter(llm_js_data(name), name->len);

        if (llm_jparse_seal(c, n) == NULL) {
            return NULL;
        }

        if (!llm_jparse_skip_op(c, '|')) {
            return n;
        }

        subject = n;
    }
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
    llm_js_t     *name;
    llm_jnode_t  *n;

    llm_jparse_next(c);
    negated = llm_jparse_skip_name(c, "not");

    n = llm_jparse_node(c, LLM_JN_TEST, subject, NULL);
    if (n == NULL || llm_jparse_dotted(c, &n->value) != LLM_OK) {
        return NULL;
    }

    name = n->value.u.s;
    n->func = llm_jinja_test(llm_js_data(name), name->len);

    if (llm_jparse_is_op(c, '(')) {
        if (llm_jparse_args(c, &n->b) != LLM_OK) {
            return NULL;
        }

    } else if (llm_jparse_test_arg(c)) {
        if (llm_jparse_is_name(c, "is")) {
            (void) llm_jcomp_fail(c, n->line,
                                  "you cannot chain multiple tests with is");
            return NULL;
        }

        n->b = llm_jparse_primary(c, 0);
        n->b = n->b ? llm_jparse_postfix(c, n->b) : NULL;

        if (n->b == NULL) {
            return NULL;
        }
    }

    n = llm_jparse_seal(c, n);

    if (n && negated) {
        n = llm_jparse_node(c, LLM_JN_NOT, n, NULL);
        n = n ? llm_jparse_seal(c, n) : NULL;
    }

    return n;
}
