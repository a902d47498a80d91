/*
 * Statements: text, {{ }}, and the tags that jinja2 knows with the loop
 * controls and transformers' generation block.  Tags that want other
 * templates (include, import, extends) are refused by name.
 *
 * Nodes belong to the template's arena.
 */

#include "engine/text/jinja/ast.h"

#include <stdio.h>

static int llm_jparse_body(llm_jcomp_t *c, llm_jnode_t **body,
    const char *const *ends);


/* from behind a tag's name to the body's end; the end tag's name is eaten,
 * and *which is its place in ends */

static int
llm_jparse_block(llm_jcomp_t *c, llm_jnode_t **body, const char *const *ends,
    int *which)
{
    char         want[96];
    int          i;
    llm_jtok_t  *tok;

    (void) llm_jparse_skip_op(c, ':');

    if (llm_jparse_want(c, LLM_JT_BLOCK_END, "'%}'") != LLM_OK
        || llm_jparse_body(c, body, ends) != LLM_OK)
    {
        return LLM_ERROR;
    }

    tok = llm_jparse_tok(c);

    for (i = 0; ends[i]; i++) {
        if (tok->type == LLM_JT_NAME && llm_jparse_skip_name(c, ends[i])) {
            *which = i;
            return LLM_OK;
        }
    }

    snprintf(want, sizeof(want), "'%s'", ends[i - 1]);

    return llm_jparse_unexpected(c, want);
}


static int
llm_jparse_for(llm_jcomp_t *c, llm_jnode_t *n)
{
    int                        which;
    static const char *const   ends[] = { "else", "endfor", NULL };
    static const char *const   end[] = { "endfor", NULL };

    n->a = llm_jparse_target(c, 0, "in");
    if (n->a == NULL) {
        return LLM_ERROR;
    }

    if (!llm_jparse_skip_name(c, "in")) {
        return llm_jparse_unexpected(c, "'in'");
    }

    n->b = llm_jparse_tuple(c, LLM_JP_NO_COND, "recursive");
    if (n->b == NULL) {
        return LLM_ERROR;
    }

    if (llm_jparse_skip_name(c, "if")) {
        n->c = llm_jparse_expr(c, 0);
        if (n->c == NULL) {
            return LLM_ERROR;
        }
    }

    n->op = llm_jparse_skip_name(c, "recursive");

    c->loops++;

    if (llm_jparse_block(c, &n->d, ends, &which) != LLM_OK) {
        return LLM_ERROR;
    }

    c->loops--;

    if (which == 0) {
        return llm_jparse_block(c, &n->e, end, &which);
    }

    return LLM_OK;
}


static int
llm_jparse_if(llm_jcomp_t *c, llm_jnode_t *n)
{
    int                        which;
    static const char *const   ends[] = { "elif", "else", "endif", NULL };
    static const char *const   end[] = { "endif", NULL };

    for ( ;; ) {
        n->a = llm_jparse_tuple(c, LLM_JP_NO_COND, NULL);

        if (n->a == NULL
            || llm_jparse_block(c, &n->b, ends, &which) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (which == 2) {
            return LLM_OK;
        }

        if (which == 1) {
            return llm_jparse_block(c, &n->c, end, &which);
        }

        n->c = llm_jcomp_node(c, LLM_JN_IF, llm_jparse_tok(c)->line);
        if (n->c == NULL) {
            return LLM_ERROR;
        }

        n = n->c;
    }
}


static int
llm_jparse_set(llm_jcomp_t *c, llm_jnode_t *n)
{
    int                        which;
    static const char *const   end[] = { "endset", NULL };

    n->a = llm_jparse_target(c, 1, "");
    if (n->a == NULL) {
        return LLM_ERROR;
    }

    if (llm_jparse_skip_op(c, '=')) {
        n->b = llm_jparse_tuple(c, 0, NULL);
        return n->b ? LLM_OK : LLM_ERROR;
    }

    n->kind = LLM_JN_SETBLOCK;

    if (llm_jparse_skip_op(c, '|')) {
        n->b = llm_jparse_filter(c, NULL);
        if (n->b == NULL) {
            return LLM_ERROR;
        }
    }

    return llm_jparse_block(c, &n->d, end, &which);
}


/* "(a, b=1)" */

static int
llm_jparse_signature(llm_jcomp_t *c, llm_jnode_t *n)
{
    int           defaults;
    uint32_t      count;
    llm_jnode_t  *p, **tail;

    if (llm_jparse_want_op(c, '(') != LLM_OK) {
        return LLM_ERROR;
    }

    defaults = 0;
    count = 0;
    tail = &n->a;

    while (!llm_jparse_is_op(c, ')')) {
        if (n->a && llm_jparse_want_op(c, ',') != LLM_OK) {
            return LLM_ERROR;
        }

        p = llm_jcomp_node(c, LLM_JN_PARAM, llm_jparse_tok(c)->line);
        if (p == NULL || llm_jparse_want_name(c, &p->value) != LLM_OK) {
            return LLM_ERROR;
        }

        if (count++ == LLM_J_MAX_ARGS) {
            return llm_jcomp_fail(c, p->line, "more than %d parameters",
                                  LLM_J_MAX_ARGS);
        }

        if (llm_jparse_skip_op(c, '=')) {
            defaults = 1;
            p->a = llm_jparse_expr(c, 0);
            if (p->a == NULL) {
                return LLM_ERROR;
            }

        } else if (defaults) {
            return llm_jcomp_fail(c, p->line, "non-default argument follows "
                                  "default argument");
        }

        *tail = p;
        tail = &p->next;
    }

    llm_jparse_next(c);

    return LLM_OK;
}


/* the body of what becomes a function: loops outside are out of reach */

static int
llm_jparse_function(llm_jcomp_t *c, llm_jnode_t *n, const char *const *end)
{
    int       which;
    uint32_t  loops;

    loops = c->loops;
    c->loops = 0;

    if (llm_jparse_block(c, &n->d, end, &which) != LLM_OK) {
        return LLM_ERROR;
    }

    c->loops = loops;

    return LLM_OK;
}


static int
llm_jparse_macro(llm_jcomp_t *c, llm_jnode_t *n)
{
    static const char *const  end[] = { "endmacro", NULL };

    if (llm_jparse_want_name(c, &n->value) != LLM_OK
        || llm_jparse_signature(c, n) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_jparse_function(c, n, end);
}


static int
llm_jparse_callblock(llm_jcomp_t *c, llm_jnode_t *n)
{
    static const char *const  end[] = { "endcall", NULL };

    if (llm_jparse_is_op(c, '(') && llm_jparse_signature(c, n) != LLM_OK) {
        return LLM_ERROR;
    }

    n->b = llm_jparse_expr(c, 0);
    if (n->b == NULL) {
        return LLM_ERROR;
    }

    if (n->b->kind != LLM_JN_CALL) {
        return llm_jcomp_fail(c, n->line, "expected a call");
    }

    return llm_jparse_function(c, n, end);
}


static int
llm_jparse_filterblock(llm_jcomp_t *c, llm_jnode_t *n)
{
    int                        which;
    static const char *const   end[] = { "endfilter", NULL };

    n->b = llm_jparse_filter(c, NULL);
    if (n->b == NULL) {
        return LLM_ERROR;
    }

    return llm_jparse_block(c, &n->d, end, &which);
}


static int
llm_jparse_with(llm_jcomp_t *c, llm_jnode_t *n)
{
    int                        which;
    llm_jnode_t              **target, **value;
    static const char *const   end[] = { "endwith", NULL };

    target = &n->a;
    value = &n->b;

    while (llm_jparse_tok(c)->type != LLM_JT_BLOCK_END) {
        if (n->a && llm_jparse_want_op(c, ',') != LLM_OK) {
            return LLM_ERROR;
        }

        *target = llm_jparse_target(c, 0, "");
        if (*target == NULL || llm_jparse_want_op(c, '=') != LLM_OK) {
            return LLM_ERROR;
        }

        *value = llm_jparse_expr(c, 0);
        if (*value == NULL) {
            return LLM_ERROR;
        }

        target = &(*target)->next;
        value = &(*value)->next;
    }

    return llm_jparse_block(c, &n->d, end, &which);
}


static int
llm_jparse_generation(llm_jcomp_t *c, llm_jnode_t *n)
{
    static const char *const  end[] = { "endgeneration", NULL };

    return llm_jparse_function(c, n, end);
}


static int
llm_jparse_loop_control(llm_jcomp_t *c, llm_jnode_t *n)
{
    if (c->loops == 0) {
        return llm_jcomp_fail(c, n->line, "'%s' outside of a loop",
                              n->kind == LLM_JN_BREAK ? "break" : "continue");
    }

    return LLM_OK;
}


/* {% print a, b %}: an OUTPUT for each, chained */

static int
llm_jparse_print(llm_jcomp_t *c, llm_jnode_t *n)
{
    for ( ;; ) {
        n->a = llm_jparse_expr(c, 0);
        if (n->a == NULL) {
            return LLM_ERROR;
        }

        if (!llm_jparse_skip_op(c, ',')) {
            return LLM_OK;
        }

        n->next = llm_jcomp_node(c, LLM_JN_OUTPUT, n->line);
        if (n->next == NULL) {
            return LLM_ERROR;
        }

        n = n->next;
    }
}


typedef struct {
    const char   *name;
    llm_jkind_t   kind;
    int         (*parse)(llm_jcomp_t *c, llm_jnode_t *n);
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
    { "continue", LLM_JN_CONTINUE, llm_jparse_loop_control },
    { "print", LLM_JN_OUTPUT, llm_jparse_print }
};

static const char *const  llm_jparse_refused[] = {
    "include", "import", "from", "extends", "block", "autoescape"
};


static int
llm_jparse_statement(llm_jcomp_t *c, llm_jnode_t **res)
{
    size_t             i;
    llm_jtok_t        *tok;
    const llm_jtag_t  *tag;

    tok = llm_jparse_tok(c);

    if (tok->type != LLM_JT_NAME) {
        return llm_jparse_unexpected(c, "a tag's name");
    }

    for (i = 0; i < llm_nelems(llm_jparse_tags); i++) {
        tag = &llm_jparse_tags[i];

        if (!llm_jparse_skip_name(c, tag->name)) {
            continue;
        }

        *res = llm_jcomp_node(c, tag->kind, tok->line);

        if (*res == NULL || tag->parse(c, *res) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_jparse_want(c, LLM_JT_BLOCK_END, "'%}'");
    }

    for (i = 0; i < llm_nelems(llm_jparse_refused); i++) {
        if (llm_jparse_is_name(c, llm_jparse_refused[i])) {
            return llm_jcomp_fail(c, tok->line, "the tag '%s' has no place "
                                  "in a chat template",
                                  llm_jparse_refused[i]);
        }
    }

    return llm_jcomp_fail(c, tok->line, "encountered unknown tag '%.*s'",
                          (int) llm_min(tok->text.len, 40), tok->text.data);
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


/* up to one of the end tags, whose "{%" is eaten; or to the template's end */

static int
llm_jparse_body(llm_jcomp_t *c, llm_jnode_t **body, const char *const *ends)
{
    llm_jtok_t   *tok;
    llm_jnode_t  *n;

    if (++c->depth > LLM_J_MAX_NESTING) {
        return llm_jcomp_fail(c, llm_jparse_tok(c)->line,
                              "nested too deeply");
    }

    for ( ;; ) {
        tok = llm_jparse_tok(c);

        if (tok->type == LLM_JT_EOF) {
            break;
        }

        n = NULL;
        llm_jparse_next(c);

        if (tok->type == LLM_JT_DATA) {
            n = llm_jcomp_node(c, LLM_JN_DATA, tok->line);

            if (n == NULL || llm_jcomp_str(c, tok->text, &n->value) != LLM_OK)
            {
                return LLM_ERROR;
            }

        } else if (tok->type == LLM_JT_VAR_BEGIN) {
            n = llm_jcomp_node(c, LLM_JN_OUTPUT, tok->line);
            if (n == NULL) {
                return LLM_ERROR;
            }

            n->a = llm_jparse_tuple(c, 0, NULL);

            if (n->a == NULL
                || llm_jparse_want(c, LLM_JT_VAR_END, "'}}'") != LLM_OK)
            {
                return LLM_ERROR;
            }

        } else {
            if (llm_jparse_at_end(c, ends)) {
                break;
            }

            if (llm_jparse_statement(c, &n) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        *body = n;

        while (n->next) {
            n = n->next;
        }

        body = &n->next;
    }

    c->depth--;

    return LLM_OK;
}


int
llm_jinja_parse(llm_jcomp_t *c)
{
    return llm_jparse_body(c, &c->t->body, NULL);
}
