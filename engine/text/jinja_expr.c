/*
 * Expressions: recursive descent with jinja2's precedences, lowest first:
 * x if y else z, or, and, not, comparisons, + -, ~, * / // %, **, unary,
 * postfix and filters.
 *
 * Nodes belong to the template's arena.  Every function returns NULL after
 * it has set the error.
 */

#include "engine/text/jinja_ast.h"

#include <stdio.h>


llm_jtok_t *
llm_jparse_tok(llm_jcomp_t *c)
{
    return &c->t->tokens.v[c->pos];
}


llm_jtok_t *
llm_jparse_look(llm_jcomp_t *c)
{
    llm_jtoks_t  *toks;

    toks = &c->t->tokens;

    return &toks->v[llm_min(c->pos + 1, toks->n - 1)];
}


void
llm_jparse_next(llm_jcomp_t *c)
{
    if (c->pos + 1 < c->t->tokens.n) {
        c->pos++;
    }
}


int
llm_jparse_is_op(llm_jcomp_t *c, int op)
{
    llm_jtok_t  *tok;

    tok = llm_jparse_tok(c);

    return tok->type == LLM_JT_OP && tok->op == op;
}


static int
llm_jtok_is_name(const llm_jtok_t *tok, const char *name)
{
    return tok->type == LLM_JT_NAME && tok->text.len == strlen(name)
           && memcmp(tok->text.data, name, tok->text.len) == 0;
}


int
llm_jparse_is_name(llm_jcomp_t *c, const char *name)
{
    return llm_jtok_is_name(llm_jparse_tok(c), name);
}


int
llm_jparse_skip_op(llm_jcomp_t *c, int op)
{
    if (!llm_jparse_is_op(c, op)) {
        return 0;
    }

    llm_jparse_next(c);

    return 1;
}


int
llm_jparse_skip_name(llm_jcomp_t *c, const char *name)
{
    if (!llm_jparse_is_name(c, name)) {
        return 0;
    }

    llm_jparse_next(c);

    return 1;
}


/* a token in words, for messages */

static const char *
llm_jtok_text(const llm_jtok_t *tok, char *buf, size_t size)
{
    switch (tok->type) {

    case LLM_JT_EOF:
        return "the end of the template";

    case LLM_JT_DATA:
        return "text";

    case LLM_JT_VAR_BEGIN:
        return "'{{'";

    case LLM_JT_VAR_END:
        return "'}}'";

    case LLM_JT_BLOCK_BEGIN:
        return "'{%'";

    case LLM_JT_BLOCK_END:
        return "'%}'";

    case LLM_JT_NAME:
        snprintf(buf, size, "'%.*s'", (int) llm_min(tok->text.len, 40),
                 tok->text.data);
        return buf;

    case LLM_JT_STR:
        return "a string";

    case LLM_JT_INT:
    case LLM_JT_FLOAT:
        return "a number";

    case LLM_JT_OP:
        break;
    }

    snprintf(buf, size, "'%c%s'", tok->op & 0xff,
             tok->op >> 8 == '=' ? "=" : tok->op >> 8 == '*' ? "*"
             : tok->op >> 8 == '/' ? "/" : "");

    return buf;
}


int
llm_jparse_unexpected(llm_jcomp_t *c, const char *wanted)
{
    char         buf[64];
    llm_jtok_t  *tok;

    tok = llm_jparse_tok(c);

    return llm_jcomp_fail(c, tok->line, "expected %s, got %s", wanted,
                          llm_jtok_text(tok, buf, sizeof(buf)));
}


int
llm_jparse_want_op(llm_jcomp_t *c, int op)
{
    char  wanted[8];

    if (llm_jparse_skip_op(c, op)) {
        return LLM_OK;
    }

    snprintf(wanted, sizeof(wanted), "'%c'", op & 0xff);

    return llm_jparse_unexpected(c, wanted);
}


int
llm_jparse_want_name(llm_jcomp_t *c, llm_jv_t *name)
{
    llm_jtok_t  *tok;

    tok = llm_jparse_tok(c);

    if (tok->type != LLM_JT_NAME) {
        return llm_jparse_unexpected(c, "a name");
    }

    llm_jparse_next(c);

    return llm_jcomp_str(c, tok->text, name);
}


int
llm_jparse_want(llm_jcomp_t *c, llm_jtok_type_t type, const char *what)
{
    if (llm_jparse_tok(c)->type != type) {
        return llm_jparse_unexpected(c, what);
    }

    llm_jparse_next(c);

    return LLM_OK;
}


/* a node of the current line; with a and b, both needed, if given */

static llm_jnode_t *
llm_jparse_node(llm_jcomp_t *c, llm_jkind_t kind, llm_jnode_t *a,
    llm_jnode_t *b)
{
    llm_jnode_t  *n;

    n = llm_jcomp_node(c, kind, llm_jparse_tok(c)->line);
    if (n) {
        n->a = a;
        n->b = b;
    }

    return n;
}


/* a node whose children are all there: bounds how deep evaluation goes */

static llm_jnode_t *
llm_jparse_seal(llm_jcomp_t *c, llm_jnode_t *n)
{
    size_t        i;
    uint32_t      height;
    llm_jnode_t  *child[4] = { n->a, n->b, n->c, n->d }, *p;

    height = 0;

    for (i = 0; i < llm_nelems(child); i++) {
        for (p = child[i]; p; p = p->next) {
            height = llm_max(height, p->height);
        }
    }

    n->height = height + 1;

    if (n->height > LLM_J_MAX_HEIGHT) {
        (void) llm_jcomp_fail(c, n->line, "nested too deeply");
        return NULL;
    }

    return n;
}


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


static llm_jnode_t *
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
    llm_jnode_t  *arg, *other, **tail;

    if (llm_jparse_want_op(c, '(') != LLM_OK) {
        return LLM_ERROR;
    }

    seen = 0;
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


static llm_jnode_t *
llm_jparse_call(llm_jcomp_t *c, llm_jnode_t *callee)
{
    llm_jnode_t  *n;

    n = llm_jparse_node(c, LLM_JN_CALL, callee, NULL);

    if (n == NULL || llm_jparse_args(c, &n->b) != LLM_OK) {
        return NULL;
    }

    return llm_jparse_seal(c, n);
}


static llm_jnode_t *
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


static llm_jnode_t *
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


static llm_jnode_t *
llm_jparse_unary(llm_jcomp_t *c, int filters)
{
    llm_jnode_t  *n;

    if (++c->depth > LLM_J_MAX_NESTING) {
        (void) llm_jcomp_fail(c, llm_jparse_tok(c)->line,
                              "nested too deeply");
        return NULL;
    }

    if (llm_jparse_is_op(c, '-') || llm_jparse_is_op(c, '+')) {
        n = llm_jparse_node(c, LLM_JN_UNARY, NULL, NULL);

        if (n) {
            n->op = llm_jparse_tok(c)->op;
            llm_jparse_next(c);
            n->a = llm_jparse_unary(c, 0);
            n = n->a ? llm_jparse_seal(c, n) : NULL;
        }

    } else {
        n = llm_jparse_primary(c, 0);
    }

    n = n ? llm_jparse_postfix(c, n) : NULL;

    while (n && filters) {
        if (llm_jparse_skip_op(c, '|')) {
            n = llm_jparse_filter(c, n);

        } else if (llm_jparse_is_name(c, "is")) {
            n = llm_jparse_test(c, n);

        } else if (llm_jparse_is_op(c, '(')) {
            n = llm_jparse_call(c, n);

        } else {
            break;
        }
    }

    c->depth--;

    return n;
}


/* levels of left-associative operators, loosest first */

static const int  llm_jparse_ops[3][5] = {
    { '+', '-', 0 },
    { '*', '/', LLM_JOP_FDIV, '%', 0 },
    { LLM_JOP_POW, 0 }
};

static llm_jnode_t *llm_jparse_concat(llm_jcomp_t *c);


static llm_jnode_t *
llm_jparse_binary(llm_jcomp_t *c, int level)
{
    int           i, op;
    llm_jnode_t  *n, *right;

    n = NULL;

    for ( ;; ) {
        right = level == 0 ? llm_jparse_concat(c)
                : level == 1 ? llm_jparse_binary(c, 2)
                : llm_jparse_unary(c, 1);

        if (right == NULL) {
            return NULL;
        }

        if (n == NULL) {
            n = right;

        } else {
            n->b = right;

            if (llm_jparse_seal(c, n) == NULL) {
                return NULL;
            }
        }

        for (i = 0; (op = llm_jparse_ops[level][i]) != 0; i++) {
            if (llm_jparse_is_op(c, op)) {
                break;
            }
        }

        if (op == 0) {
            return n;
        }

        n = llm_jparse_node(c, LLM_JN_BINARY, n, NULL);
        if (n == NULL) {
            return NULL;
        }

        n->op = op;
        llm_jparse_next(c);
    }
}


static llm_jnode_t *
llm_jparse_concat(llm_jcomp_t *c)
{
    llm_jnode_t  *first, *n, *last;

    first = llm_jparse_binary(c, 1);

    if (first == NULL || !llm_jparse_is_op(c, '~')) {
        return first;
    }

    n = llm_jparse_node(c, LLM_JN_CONCAT, first, NULL);
    if (n == NULL) {
        return NULL;
    }

    for (last = first; llm_jparse_skip_op(c, '~'); last = last->next) {
        last->next = llm_jparse_binary(c, 1);

        if (last->next == NULL) {
            return NULL;
        }
    }

    return llm_jparse_seal(c, n);
}


/* the comparison operator at hand, eaten; 0 if there is none */

static int
llm_jparse_compare_op(llm_jcomp_t *c)
{
    size_t             i;
    static const int   ops[] = { LLM_JOP_EQ, LLM_JOP_NE, LLM_JOP_LE,
                                 LLM_JOP_GE, '<', '>' };

    for (i = 0; i < llm_nelems(ops); i++) {
        if (llm_jparse_skip_op(c, ops[i])) {
            return ops[i];
        }
    }

    if (llm_jparse_skip_name(c, "in")) {
        return LLM_JOP_IN;
    }

    if (llm_jparse_is_name(c, "not")
        && llm_jtok_is_name(llm_jparse_look(c), "in"))
    {
        c->pos += 2;
        return LLM_JOP_NOTIN;
    }

    return 0;
}


static llm_jnode_t *
llm_jparse_compare(llm_jcomp_t *c)
{
    int           op;
    llm_jnode_t  *n, *first, *operand, **tail;

    first = llm_jparse_binary(c, 0);
    n = first;
    tail = NULL;

    while (n && (op = llm_jparse_compare_op(c)) != 0) {
        if (tail == NULL) {
            n = llm_jparse_node(c, LLM_JN_COMPARE, first, NULL);
            if (n == NULL) {
                return NULL;
            }

            tail = &n->b;
        }

        operand = llm_jparse_node(c, LLM_JN_OPERAND, NULL, NULL);
        if (operand == NULL) {
            return NULL;
        }

        operand->op = op;
        operand->a = llm_jparse_binary(c, 0);

        if (operand->a == NULL) {
            return NULL;
        }

        if (llm_jparse_seal(c, operand) == NULL) {
            return NULL;
        }

        *tail = operand;
        tail = &operand->next;
    }

    return n && tail ? llm_jparse_seal(c, n) : n;
}


static llm_jnode_t *
llm_jparse_not(llm_jcomp_t *c)
{
    size_t        nots;
    llm_jnode_t  *n;

    for (nots = 0; llm_jparse_skip_name(c, "not"); nots++) { /* void */ }

    n = llm_jparse_compare(c);

    /* an even number of them still makes a bool */

    for (nots = nots > 2 ? 2 - nots % 2 : nots; n && nots; nots--) {
        n = llm_jparse_node(c, LLM_JN_NOT, n, NULL);
        n = n ? llm_jparse_seal(c, n) : NULL;
    }

    return n;
}


static llm_jnode_t *
llm_jparse_and(llm_jcomp_t *c)
{
    llm_jnode_t  *n, *right;

    n = llm_jparse_not(c);

    while (n && llm_jparse_skip_name(c, "and")) {
        right = llm_jparse_not(c);
        n = right ? llm_jparse_node(c, LLM_JN_AND, n, right) : NULL;
        n = n ? llm_jparse_seal(c, n) : NULL;
    }

    return n;
}


static llm_jnode_t *
llm_jparse_or(llm_jcomp_t *c)
{
    llm_jnode_t  *n, *right;

    n = llm_jparse_and(c);

    while (n && llm_jparse_skip_name(c, "or")) {
        right = llm_jparse_and(c);
        n = right ? llm_jparse_node(c, LLM_JN_OR, n, right) : NULL;
        n = n ? llm_jparse_seal(c, n) : NULL;
    }

    return n;
}


llm_jnode_t *
llm_jparse_expr(llm_jcomp_t *c, int flags)
{
    llm_jnode_t  *n, *cond;

    if (++c->depth > LLM_J_MAX_NESTING) {
        (void) llm_jcomp_fail(c, llm_jparse_tok(c)->line,
                              "nested too deeply");
        return NULL;
    }

    n = llm_jparse_or(c);

    while (n && !(flags & LLM_JP_NO_COND) && llm_jparse_skip_name(c, "if")) {
        cond = llm_jparse_node(c, LLM_JN_COND, NULL, n);
        if (cond == NULL) {
            return NULL;
        }

        cond->a = llm_jparse_or(c);
        if (cond->a == NULL) {
            return NULL;
        }

        if (llm_jparse_skip_name(c, "else")) {
            cond->c = llm_jparse_expr(c, 0);
            if (cond->c == NULL) {
                return NULL;
            }
        }

        n = llm_jparse_seal(c, cond);
    }

    c->depth--;

    return n;
}


/* expressions with commas between; end is the name that may follow */

llm_jnode_t *
llm_jparse_tuple(llm_jcomp_t *c, int flags, const char *end)
{
    int           comma;
    llm_jtok_t   *tok;
    llm_jnode_t  *tuple, *item, **tail;

    tuple = llm_jparse_node(c, LLM_JN_TUPLE, NULL, NULL);
    if (tuple == NULL) {
        return NULL;
    }

    comma = 0;
    tail = &tuple->a;

    for ( ;; ) {
        tok = llm_jparse_tok(c);

        if (tok->type == LLM_JT_VAR_END || tok->type == LLM_JT_BLOCK_END
            || llm_jparse_is_op(c, ')')
            || (end && llm_jparse_is_name(c, end)))
        {
            break;
        }

        item = llm_jparse_expr(c, flags & LLM_JP_NO_COND);
        if (item == NULL) {
            return NULL;
        }

        *tail = item;
        tail = &item->next;

        if (!llm_jparse_skip_op(c, ',')) {
            break;
        }

        comma = 1;
    }

    if (comma) {
        return llm_jparse_seal(c, tuple);
    }

    if (tuple->a) {
        return tuple->a;
    }

    if (flags & LLM_JP_PARENS) {
        return tuple;
    }

    (void) llm_jparse_unexpected(c, "an expression");

    return NULL;
}


static int
llm_jparse_assignable(llm_jcomp_t *c, llm_jnode_t *n)
{
    llm_jnode_t  *item;

    if (n->kind == LLM_JN_TUPLE) {
        for (item = n->a; item; item = item->next) {
            if (llm_jparse_assignable(c, item) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        return LLM_OK;
    }

    if (n->kind == LLM_JN_NAME || n->kind == LLM_JN_NSREF) {
        return LLM_OK;
    }

    return llm_jcomp_fail(c, n->line, "can't assign to this expression");
}


llm_jnode_t *
llm_jparse_target(llm_jcomp_t *c, int with_ns, const char *end)
{
    int           comma;
    llm_jnode_t  *tuple, *item, **tail;

    tuple = llm_jparse_node(c, LLM_JN_TUPLE, NULL, NULL);
    if (tuple == NULL) {
        return NULL;
    }

    comma = 0;
    tail = &tuple->a;

    while (!(comma && (llm_jparse_is_name(c, end) || llm_jparse_is_op(c, '=')
                       || llm_jparse_tok(c)->type == LLM_JT_BLOCK_END)))
    {
        item = llm_jparse_primary(c, with_ns);
        if (item == NULL || llm_jparse_assignable(c, item) != LLM_OK) {
            return NULL;
        }

        *tail = item;
        tail = &item->next;

        if (!llm_jparse_skip_op(c, ',')) {
            break;
        }

        comma = 1;
    }

    return comma ? tuple : tuple->a;
}
