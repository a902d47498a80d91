/*
 * Expressions: recursive descent with jinja2's precedences, lowest first: x if
 * y else z, or, and, not, comparisons, + -, ~, * / // %, **, unary, postfix
 * and filters (those: parse_primary.c).
 *
 * Nodes belong to the template's arena.  An error is kept (see llm_jcomp_t);
 * every function returns a node even then.
 */

#include "engine/text/jinja/ast.h"


static llm_jnode_t *
llm_jparse_unary(llm_jcomp_t *c, int filters)
{
    llm_jnode_t  *n;

    llm_jparse_deeper(c);

    if (llm_jparse_is_op(c, '-') || llm_jparse_is_op(c, '+')) {
        n = llm_jparse_node(c, LLM_JN_UNARY, NULL, NULL);
        n->op = llm_jparse_tok(c)->op;
        llm_jparse_next(c);
        n->a = llm_jparse_unary(c, 0);
        n = llm_jparse_seal(c, n);

    } else {
        n = llm_jparse_primary(c, 0);
    }

    n = llm_jparse_postfix(c, n);

    while (filters) {
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


/* levels of left-associative operators, lowest precedence first */

static const int  llm_jparse_ops[3][5] = {
    { '+', '-', 0 },
    { '*', '/', LLM_JOP_FDIV, '%', 0 },
    { LLM_JOP_POW, 0 }
};

static llm_jnode_t *llm_jparse_concat(llm_jcomp_t *c);


static llm_jnode_t *
llm_jparse_operand(llm_jcomp_t *c, int level)
{
    return level == 0 ? llm_jparse_concat(c) : llm_jparse_unary(c, 1);
}


static llm_jnode_t *
llm_jparse_binary(llm_jcomp_t *c, int level)
{
    int           i, op;
    llm_jnode_t  *n;

    n = level == 1 ? llm_jparse_binary(c, 2) : llm_jparse_operand(c, level);

    for ( ;; ) {
        for (i = 0; (op = llm_jparse_ops[level][i]) != 0; i++) {
            if (llm_jparse_is_op(c, op)) {
                break;
            }
        }

        if (op == 0) {
            return n;
        }

        n = llm_jparse_node(c, LLM_JN_BINARY, n, NULL);
        n->op = op;
        llm_jparse_next(c);
        n->b = level == 1 ? llm_jparse_binary(c, 2)
                          : llm_jparse_operand(c, level);
        n = llm_jparse_seal(c, n);
    }
}


static llm_jnode_t *
llm_jparse_concat(llm_jcomp_t *c)
{
    llm_jnode_t  *first, *n, *last;

    first = llm_jparse_binary(c, 1);

    if (!llm_jparse_is_op(c, '~')) {
        return first;
    }

    n = llm_jparse_node(c, LLM_JN_CONCAT, first, NULL);

    for (last = first; llm_jparse_skip_op(c, '~'); last = last->next) {
        last->next = llm_jparse_binary(c, 1);
    }

    return llm_jparse_seal(c, n);
}


/* skips the comparison operator at the current token and returns it; 0 if
   there is none */

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
        llm_jparse_next(c);
        llm_jparse_next(c);
        return LLM_JOP_NOTIN;
    }

    return 0;
}


static llm_jnode_t *
llm_jparse_compare(llm_jcomp_t *c)
{
    int           op;
    llm_jnode_t  *n, *operand, **tail;

    n = llm_jparse_binary(c, 0);
    tail = NULL;

    while ((op = llm_jparse_compare_op(c)) != 0) {
        if (tail == NULL) {
            n = llm_jparse_node(c, LLM_JN_COMPARE, n, NULL);
            tail = &n->b;
        }

        operand = llm_jparse_node(c, LLM_JN_OPERAND, NULL, NULL);
        operand->op = op;
        operand->a = llm_jparse_binary(c, 0);

        *tail = llm_jparse_seal(c, operand);
        tail = &operand->next;
    }

    return tail ? llm_jparse_seal(c, n) : n;
}


static llm_jnode_t *
llm_jparse_not(llm_jcomp_t *c)
{
    size_t        nots;
    llm_jnode_t  *n;

    for (nots = 0; llm_jparse_skip_name(c, "not"); nots++) { /* void */ }

    n = llm_jparse_compare(c);

    /* an even number of "not" still gives a bool */

    for (nots = nots > 2 ? 2 - nots % 2 : nots; nots; nots--) {
        n = llm_jparse_seal(c, llm_jparse_node(c, LLM_JN_NOT, n, NULL));
    }

    return n;
}


/* operands with "and" or "or" between them, left-associative */

static llm_jnode_t *
llm_jparse_logic(llm_jcomp_t *c, llm_jkind_t kind)
{
    llm_jnode_t  *n, *right;

    n = kind == LLM_JN_OR ? llm_jparse_logic(c, LLM_JN_AND)
                          : llm_jparse_not(c);

    while (llm_jparse_skip_name(c, kind == LLM_JN_OR ? "or" : "and")) {
        right = kind == LLM_JN_OR ? llm_jparse_logic(c, LLM_JN_AND)
                                  : llm_jparse_not(c);
        n = llm_jparse_seal(c, llm_jparse_node(c, kind, n, right));
    }

    return n;
}


llm_jnode_t *
llm_jparse_expr(llm_jcomp_t *c, int flags)
{
    llm_jnode_t  *n;

    llm_jparse_deeper(c);

    n = llm_jparse_logic(c, LLM_JN_OR);

    while (!(flags & LLM_JP_NO_COND) && llm_jparse_skip_name(c, "if")) {
        n = llm_jparse_node(c, LLM_JN_COND, NULL, n);
        n->a = llm_jparse_logic(c, LLM_JN_OR);

        if (llm_jparse_skip_name(c, "else")) {
            n->c = llm_jparse_expr(c, 0);
        }

        n = llm_jparse_seal(c, n);
    }

    c->depth--;

    return n;
}


/* parses expressions separated by commas; end: a name that may follow */

llm_jnode_t *
llm_jparse_tuple(llm_jcomp_t *c, int flags, const char *end)
{
    int           comma;
    llm_jtok_t   *tok;
    llm_jnode_t  *tuple, **tail;

    tuple = llm_jparse_node(c, LLM_JN_TUPLE, NULL, NULL);
    tail = &tuple->a;

    for (comma = 0; !c->failed; comma = 1) {
        tok = llm_jparse_tok(c);

        if (tok->type == LLM_JT_VAR_END || tok->type == LLM_JT_BLOCK_END
            || llm_jparse_is_op(c, ')')
            || (end && llm_jparse_is_name(c, end)))
        {
            break;
        }

        *tail = llm_jparse_expr(c, flags & LLM_JP_NO_COND);
        tail = &(*tail)->next;

        if (!llm_jparse_skip_op(c, ',')) {
            break;
        }
    }

    if (comma) {
        return llm_jparse_seal(c, tuple);
    }

    if (tuple->a == NULL && !(flags & LLM_JP_PARENS)) {
        llm_jparse_unexpected(c, "an expression");
    }

    return tuple->a ? tuple->a : tuple;
}


static void
llm_jparse_assignable(llm_jcomp_t *c, llm_jnode_t *n)
{
    llm_jnode_t  *item;

    if (n->kind == LLM_JN_TUPLE) {
        for (item = n->a; item && !c->failed; item = item->next) {
            llm_jparse_assignable(c, item);
        }

    } else if (n->kind != LLM_JN_NAME && n->kind != LLM_JN_NSREF) {
        (void) llm_jcomp_fail(c, n->line, "can't assign to this expression");
    }
}


llm_jnode_t *
llm_jparse_target(llm_jcomp_t *c, int with_ns, const char *end)
{
    int           comma;
    llm_jnode_t  *tuple, **tail;

    tuple = llm_jparse_node(c, LLM_JN_TUPLE, NULL, NULL);
    tail = &tuple->a;

    for (comma = 0; !c->failed; comma = 1) {
        if (comma && (llm_jparse_is_name(c, end) || llm_jparse_is_op(c, '=')
                      || llm_jparse_tok(c)->type == LLM_JT_BLOCK_END))
        {
            break;
        }

        *tail = llm_jparse_primary(c, with_ns);
        llm_jparse_assignable(c, *tail);
        tail = &(*tail)->next;

        if (!llm_jparse_skip_op(c, ',')) {
            break;
        }
    }

    return comma || tuple->a == NULL ? tuple : tuple->a;
}
