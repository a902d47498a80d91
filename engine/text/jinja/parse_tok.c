/*
 * The parser's access to the tokens: what the current token is, what must come
 * next, and nodes made of tokens.
 */

#include "engine/text/jinja/ast.h"

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


int
llm_jtok_is_name(const llm_jtok_t *tok, const char *name)
{
    return tok->type == LLM_JT_NAME && llm_str_is(tok->text, name);
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


/* describes a token, for messages */

static const char *
llm_jtok_text(const llm_jtok_t *tok, char *buf, size_t size)
{
    static const char *const  words[] = {
        [LLM_JT_EOF] = "the end of the template",
        [LLM_JT_DATA] = "text",
        [LLM_JT_VAR_BEGIN] = "'{{'",
        [LLM_JT_VAR_END] = "'}}'",
        [LLM_JT_BLOCK_BEGIN] = "'{%'",
        [LLM_JT_BLOCK_END] = "'%}'",
        [LLM_JT_STR] = "a string",
        [LLM_JT_INT] = "a number",
        [LLM_JT_FLOAT] = "a number",
        [LLM_JT_OP] = NULL
    };

    if (words[tok->type]) {
        return words[tok->type];
    }

    if (tok->type == LLM_JT_NAME) {
        snprintf(buf, size, "'%.*s'", (int) llm_min(tok->text.len, 40),
                 tok->text.data);

    } else {
        snprintf(buf, size, tok->op >> 8 ? "'%c%c'" : "'%c'", tok->op & 0xff,
                 tok->op >> 8);
    }

    return buf;
}


void
llm_jparse_unexpected(llm_jcomp_t *c, const char *wanted)
{
    char         buf[64];
    llm_jtok_t  *tok;

    tok = llm_jparse_tok(c);

    (void) llm_jcomp_fail(c, tok->line, "expected %s, got %s", wanted,
                          llm_jtok_text(tok, buf, sizeof(buf)));
}


void
llm_jparse_want_op(llm_jcomp_t *c, int op)
{
    char  wanted[8];

    if (!llm_jparse_skip_op(c, op)) {
        snprintf(wanted, sizeof(wanted), "'%c'", op & 0xff);
        llm_jparse_unexpected(c, wanted);
    }
}


llm_jv_t
llm_jparse_want_name(llm_jcomp_t *c)
{
    llm_jtok_t  *tok;

    tok = llm_jparse_tok(c);

    if (tok->type != LLM_JT_NAME) {
        llm_jparse_unexpected(c, "a name");
    }

    llm_jparse_next(c);

    return llm_jcomp_str(c, tok->text);
}


void
llm_jparse_want(llm_jcomp_t *c, llm_jtok_type_t type, const char *what)
{
    if (llm_jparse_tok(c)->type != type) {
        llm_jparse_unexpected(c, what);
    }

    llm_jparse_next(c);
}


void
llm_jparse_deeper(llm_jcomp_t *c)
{
    if (++c->depth > LLM_J_MAX_NESTING) {
        (void) llm_jcomp_fail(c, llm_jparse_tok(c)->line,
                              "nested too deeply");
    }
}


llm_jnode_t *
llm_jparse_node(llm_jcomp_t *c, llm_jkind_t kind, llm_jnode_t *a,
    llm_jnode_t *b)
{
    llm_jnode_t  *n;

    n = llm_jcomp_node(c, kind, llm_jparse_tok(c)->line);
    n->a = a;
    n->b = b;

    return n;
}


llm_jnode_t *
llm_jparse_seal(llm_jcomp_t *c, llm_jnode_t *n)
{
    size_t        i;
    llm_jnode_t  *child[4] = { n->a, n->b, n->c, n->d }, *p;

    n->height = 1;

    for (i = 0; i < llm_nelems(child); i++) {
        for (p = child[i]; p && !c->failed; p = p->next) {
            n->height = llm_max(n->height, p->height + 1);
        }
    }

    if (n->height > LLM_J_MAX_HEIGHT) {
        (void) llm_jcomp_fail(c, n->line, "nested too deeply");
    }

    return n;
}
