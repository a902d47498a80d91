/*
 * Statements: text, {{ }}, and the tags that jinja2 knows with the loop
 * controls and transformers' generation block.  Tags that want other
 * templates (include, import, extends) are refused by name.
 *
 * Nodes belong to the template's arena.  An error is remembered (see
 * llm_jcomp_t), and the tokens are at their end from then on.
 */

#include "engine/text/jinja/ast.h"

#include <stdio.h>

static llm_jnode_t *llm_jparse_body(llm_jcomp_t *c, const char *const *ends);


/* parses from after a tag's name to the body's end and skips the end tag's
   name; *which: its index in ends */

static llm_jnode_t *
llm_jparse_block(llm_jcomp_t *c, const char *const *ends, int *which)
{
    char          want[96];
    int           i;
    llm_jnode_t  *body;

    (void) llm_jparse_skip_op(c, ':');

    llm_jparse_want(c, LLM_JT_BLOCK_END, "'%}'");
    body = llm_jparse_body(c, ends);

    for (i = 0; ends[i]; i++) {
        if (llm_jparse_skip_name(c, ends[i])) {
            *which = i;
            return body;
        }
    }

    *which = i - 1;
    snprintf(want, sizeof(want), "'%s'", ends[i - 1]);
    llm_jparse_unexpected(c, want);

    return body;
}


/* the same with a single end tag, which all statements but "for" and "if"
   have */

static void
llm_jparse_until(llm_jcomp_t *c, llm_jnode_t *n, const char *end)
{
    int          which;
    const char  *ends[] = { end, NULL };

    n->d = llm_jparse_block(c, ends, &which);
}


static void
llm_jparse_for(llm_jcomp_t *c, llm_jnode_t *n)
{
    int                       which;
    static const char *const  ends[] = { "else", "endfor", NULL };

    n->a = llm_jparse_target(c, 0, "in");

    if (!llm_jparse_skip_name(c, "in")) {
        llm_jparse_unexpected(c, "'in'");
    }

    n->b = llm_jparse_tuple(c, LLM_JP_NO_COND, "recursive");

    if (llm_jparse_skip_name(c, "if")) {
        n->c = llm_jparse_expr(c, 0);
    }

    n->op = llm_jparse_skip_name(c, "recursive");

    c->loops++;
    n->d = llm_jparse_block(c, ends, &which);
    c->loops--;

    if (which == 0) {
        n->e = llm_jparse_block(c, ends + 1, &which);
    }
}


static void
llm_jparse_if(llm_jcomp_t *c, llm_jnode_t *n)
{
    int                       which;
    static const char *const  ends[] = { "elif", "else", "endif", NULL };

    for ( ;; ) {
        n->a = llm_jparse_tuple(c, LLM_JP_NO_COND, NULL);
        n->b = llm_jparse_block(c, ends, &which);

        if (which == 1) {
            n->c = llm_jparse_block(c, ends + 2, &which);
            return;
        }

        if (which == 2) {
            return;
        }

        n->c = llm_jparse_node(c, LLM_JN_IF, NULL, NULL);
        n = n->c;
    }
}


static void
llm_jparse_set(llm_jcomp_t *c, llm_jnode_t *n)
{
    n->a = llm_jparse_target(c, 1, "");

    if (llm_jparse_skip_op(c, '=')) {
        n->b = llm_jparse_tuple(c, 0, NULL);
        return;
    }

    n->kind = LLM_JN_SETBLOCK;

    if (llm_jparse_skip_op(c, '|')) {
        n->b = llm_jparse_filter(c, NULL);
    }

    llm_jparse_until(c, n, "endset");
}


/* "(a, b=1)" */

static void
llm_jparse_signature(llm_jcomp_t *c, llm_jnode_t *n)
{
    int           defaults;
    uint32_t      count;
    llm_jnode_t  *p, **tail;

    llm_jparse_want_op(c, '(');

    defaults = 0;
    tail = &n->a;

    for (count = 0; !c->failed && !llm_jparse_is_op(c, ')'); count++) {
        if (n->a) {
            llm_jparse_want_op(c, ',');
        }

        p = llm_jparse_node(c, LLM_JN_PARAM, NULL, NULL);
        p->value = llm_jparse_want_name(c);

        if (count == LLM_J_MAX_ARGS) {
            (void) llm_jcomp_fail(c, p->line, "more than %d parameters",
                                  LLM_J_MAX_ARGS);
        }

        if (llm_jparse_skip_op(c, '=')) {
            defaults = 1;
            p->a = llm_jparse_expr(c, 0);

        } else if (defaults) {
            (void) llm_jcomp_fail(c, p->line, "non-default argument follows "
                                  "default argument");
        }

        *tail = p;
        tail = &p->next;
    }

    llm_jparse_next(c);
}


/* parses the body of a function, from which loops outside cannot be left */

static void
llm_jparse_function(llm_jcomp_t *c, llm_jnode_t *n, const char *end)
{
    uint32_t  loops;

    loops = c->loops;
    c->loops = 0;
    llm_jparse_until(c, n, end);
    c->loops = loops;
}


static void
llm_jparse_macro(llm_jcomp_t *c, llm_jnode_t *n)
{
    n->value = llm_jparse_want_name(c);
    llm_jparse_signature(c, n);
    llm_jparse_function(c, n, "endmacro");
}


static void
llm_jparse_callblock(llm_jcomp_t *c, llm_jnode_t *n)
{
    if (llm_jparse_is_op(c, '(')) {
        llm_jparse_signature(c, n);
    }

    n->b = llm_jparse_expr(c, 0);

    if (n->b->kind != LLM_JN_CALL) {
        (void) llm_jcomp_fail(c, n->line, "expected a call");
    }

    llm_jparse_function(c, n, "endcall");
}


static void
llm_jparse_filterblock(llm_jcomp_t *c, llm_jnode_t *n)
{
    n->b = llm_jparse_filter(c, NULL);
    llm_jparse_until(c, n, "endfilter");
}


static void
llm_jparse_with(llm_jcomp_t *c, llm_jnode_t *n)
{
    llm_jnode_t  **target, **value;

    target = &n->a;
    value = &n->b;

    while (!c->failed && llm_jparse_tok(c)->type != LLM_JT_BLOCK_END) {
        if (n->a) {
            llm_jparse_want_op(c, ',');
        }

        *target = llm_jparse_target(c, 0, "");
        llm_jparse_want_op(c, '=');
        *value = llm_jparse_expr(c, 0);

        target = &(*target)->next;
        value = &(*value)->next;
    }

    llm_jparse_until(c, n, "endwith");
}


static void
llm_jparse_generation(llm_jcomp_t *c, llm_jnode_t *n)
{
    llm_jparse_function(c, n, "endgeneration");
}


static void
llm_jparse_loop_control(llm_jcomp_t *c, llm_jnode_t *n)
{
    if (c->loops == 0) {
        (void) llm_jcomp_fail(c, n->line, "'%s' outside of a loop",
                              n->kind == LLM_JN_BREAK ? "break" : "continue");
    }
}


typedef struct {
    const char   *name;
    llm_jkind_t   kind;
    void        (*parse)(llm_jcomp_t *c, llm_jnode_t *n);
} llm_jtag_t;

static const llm_jtag_t  llm_jparse_tags[] = {
    { "for", LLM_JN_FOR, llm_jparse_for },
    { "if", LLM_JN_IF, llm_jparse_if },
    { "set", LLM_JN_SET, llm_jparse_set },
    { "macro", LLM_JN_MACRO, llm_jparse_macro },
    { "call", LLM_JN_CALLBLOCK, llm_jparse_callblock },
    { "filter", LLM_JN_FILTERBLOCK, llm_jparse_filterblock },
    { "with", LLM_JN_WITH, llm_jparse_with },
    { "generation", LLM_JN_SCOPE, llm_jparse_generation },
    { "break", LLM_JN_BREAK, llm_jparse_loop_control },
    { "continue", LLM_JN_CONTINUE, llm_jparse_loop_control }
};

static const char *const  llm_jparse_refused[] = {
    "include", "import", "from", "extends", "block", "autoescape"
};


static llm_jnode_t *
llm_jparse_statement(llm_jcomp_t *c)
{
    size_t             i;
    llm_jtok_t        *tok;
    llm_jnode_t       *n;
    const llm_jtag_t  *tag;

    tok = llm_jparse_tok(c);
    n = llm_jparse_node(c, LLM_JN_DATA, NULL, NULL);

    for (i = 0; i < llm_nelems(llm_jparse_tags); i++) {
        tag = &llm_jparse_tags[i];

        if (llm_jparse_skip_name(c, tag->name)) {
            n->kind = tag->kind;
            tag->parse(c, n);
            llm_jparse_want(c, LLM_JT_BLOCK_END, "'%}'");

            return n;
        }
    }

    for (i = 0; i < llm_nelems(llm_jparse_refused); i++) {
        if (llm_jparse_is_name(c, llm_jparse_refused[i])) {
            (void) llm_jcomp_fail(c, tok->line, "the tag '%s' has no place "
                                  "in a chat template",
                                  llm_jparse_refused[i]);
        }
    }

    if (tok->type != LLM_JT_NAME) {
        llm_jparse_unexpected(c, "a tag's name");
    }

    (void) llm_jcomp_fail(c, tok->line, "encountered unknown tag '%.*s'",
                          (int) llm_min(tok->text.len, 40), tok->text.data);

    return n;
}


static int
llm_jparse_at_end(llm_jcomp_t *c, const char *const *ends)
{
    for ( /* void */ ; ends && *ends; ends++) {
        if (llm_jparse_is_name(c, *ends)) {
            return 1;
        }
    }

    return 0;
}


/* parses up to one of the end tags, and skips its "{%"; or to the template's
   end */

static llm_jnode_t *
llm_jparse_body(llm_jcomp_t *c, const char *const *ends)
{
    llm_jtok_t   *tok;
    llm_jnode_t  *n, *body, **tail;

    llm_jparse_deeper(c);
    body = NULL;
    tail = &body;

    while ((tok = llm_jparse_tok(c))->type != LLM_JT_EOF) {
        llm_jparse_next(c);

        if (tok->type == LLM_JT_DATA) {
            n = llm_jcomp_node(c, LLM_JN_DATA, tok->line);
            n->value = llm_jcomp_str(c, tok->text);

        } else if (tok->type == LLM_JT_VAR_BEGIN) {
            n = llm_jcomp_node(c, LLM_JN_OUTPUT, tok->line);
            n->a = llm_jparse_tuple(c, 0, NULL);
            llm_jparse_want(c, LLM_JT_VAR_END, "'}}'");

        } else if (llm_jparse_at_end(c, ends)) {
            break;

        } else {
            n = llm_jparse_statement(c);
        }

        *tail = n;
        tail = &n->next;
    }

    c->depth--;

    return body;
}


int
llm_jinja_parse(llm_jcomp_t *c)
{
    c->t->body = llm_jparse_body(c, NULL);

    return c->failed;
}
