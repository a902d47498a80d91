/*
 * Reads GBNF: rules, alternatives, groups, repetitions, literals, classes of
 * characters, comments; see gbnf.h.
 *
 *     root  ::= item ("," item)*    # a comment
 *     item  ::= [a-z]{2,5} | "\"" [^"]* "\""
 */

#include "engine/base/utf8.h"
#include "engine/grammar/gbnf.h"

#define LLM_GBNF_NONE  UINT32_MAX

static uint32_t llm_gbnf_alt(llm_gbnf_t *g, int nested);


static uint32_t
llm_gbnf_none(llm_gbnf_t *g, const char *what)
{
    (void) llm_gbnf_fail(g, what);

    return LLM_GBNF_NONE;
}


/* ---- parts ---- */

static uint32_t
llm_gbnf_part(llm_gbnf_t *g, llm_gbnf_kind_t kind, uint32_t first)
{
    llm_gbnf_part_t  *x;

    if (llm_vec_more(&g->parts, 1) != LLM_OK) {
        return llm_gbnf_none(g, "memory has ended");
    }

    x = &g->parts.data[g->parts.n];
    memset(x, 0, sizeof(*x));
    x->kind = kind;
    x->first = first;

    return g->parts.n++;
}


static uint32_t
llm_gbnf_chars(llm_gbnf_t *g, llm_rx_t rx)
{
    uint32_t  part;

    part = llm_gbnf_part(g, LLM_GBNF_CHARS, 0);

    if (part != LLM_GBNF_NONE) {
        g->parts.data[part].rx = rx;
    }

    return part;
}


static uint32_t
llm_gbnf_literal(llm_gbnf_t *g)
{
    char       bytes[4];
    uint32_t   cp, part;
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    while (!llm_gbnf_skip(g, "\"")) {
        if (llm_gbnf_char(g, &cp) != LLM_OK) {
            llm_buf_free(&b);
            return LLM_GBNF_NONE;
        }

        (void) llm_buf_add(&b, bytes, llm_utf8_encode(bytes, cp));
    }

    part = b.failed ? llm_gbnf_none(g, "memory has ended")
                    : llm_gbnf_chars(g, llm_rx_literal(g->pool, b.data,
                                                       b.len));
    llm_buf_free(&b);

    return part;
}


static uint32_t
llm_gbnf_class(llm_gbnf_t *g)
{
    int                      not;
    uint32_t                 part;
    llm_rx_t                 rx;
    llm_rx_range_t           r;
    llm_vec(llm_rx_range_t)  set;

    memset(&set, 0, sizeof(set));
    not = llm_gbnf_skip(g, "^");

    while (!llm_gbnf_skip(g, "]")) {
        if (llm_gbnf_char(g, &r.from) != LLM_OK) {
            free(set.data);
            return LLM_GBNF_NONE;
        }

        r.to = r.from;

        if (llm_gbnf_peek(g) == '-' && g->at + 1 < g->len
            && g->p[g->at + 1] != ']')
        {
            g->at++;

            if (llm_gbnf_char(g, &r.to) != LLM_OK) {
                free(set.data);
                return LLM_GBNF_NONE;
            }
        }

        if (r.to < r.from || llm_vec_more(&set, 1) != LLM_OK) {
            free(set.data);
            return llm_gbnf_none(g, r.to < r.from
                                    ? "a range ends before it begins"
                                    : "memory has ended");
        }

        set.data[set.n++] = r;
    }

    rx = llm_rx_class(g->pool, set.data, set.n);
    free(set.data);

    if (not) {
        rx = llm_rx_and(g->pool, LLM_RX_CHAR, llm_rx_not(g->pool, rx));
    }

    part = llm_gbnf_chars(g, rx);

    return part;
}


/* the rule of this name, which may be defined later; makes it if needed */

static uint32_t
llm_gbnf_rule(llm_gbnf_t *g, llm_str_t name)
{
    size_t            k;
    uint32_t          hash, i, id;
    llm_gbnf_rule_t  *r;

    hash = 0;

    for (k = 0; k < name.len; k++) {
        hash = llm_hash(hash, (uint8_t) name.data[k]);
    }

    for (i = hash; (id = llm_table_next(&g->names, hash, &i)) != UINT32_MAX; )
    {
        r = &g->rules.data[id];

        if (llm_str_eq(r->name, name)) {
            return id;
        }
    }

    if (g->rules.n == LLM_GBNF_MAX_RULES) {
        return llm_gbnf_none(g, "there are too many rules");
    }

    if (llm_vec_more(&g->rules, 1) != LLM_OK
        || llm_table_add(&g->names, hash, g->rules.n) != LLM_OK)
    {
        return llm_gbnf_none(g, "memory has ended");
    }

    r = &g->rules.data[g->rules.n];
    memset(r, 0, sizeof(*r));
    r->name = name;
    r->line = g->line;

    return g->rules.n++;
}


static uint32_t
llm_gbnf_group(llm_gbnf_t *g)
{
    uint32_t  part;

    if (g->depth == LLM_GBNF_MAX_DEPTH) {
        return llm_gbnf_none(g, "groups are nested too deeply");
    }

    g->depth++;
    llm_gbnf_space(g, 1);
    part = llm_gbnf_alt(g, 1);
    g->depth--;

    if (part != LLM_GBNF_NONE && !llm_gbnf_skip(g, ")")) {
        return llm_gbnf_none(g, "a ) is missing");
    }

    return part;
}


static uint32_t
llm_gbnf_atom(llm_gbnf_t *g)
{
    char      c;
    uint32_t  rule;

    c = llm_gbnf_peek(g);

    if (llm_gbnf_is_name(c)) {
        rule = llm_gbnf_rule(g, llm_gbnf_name(g));
        return rule == LLM_GBNF_NONE ? rule
                                     : llm_gbnf_part(g, LLM_GBNF_RULE, rule);
    }

    g->at++;

    switch (c) {

    case '"':
        return llm_gbnf_literal(g);

    case '[':
        return llm_gbnf_class(g);

    case '(':
        return llm_gbnf_group(g);

    case '.':
        return llm_gbnf_chars(g, LLM_RX_CHAR);

    case '<':
    case '!':
        return llm_gbnf_none(g, "tokens by their name or number are not "
                             "supported: a grammar is about text here");

    default:
        return llm_gbnf_none(g, "there is something that is neither a rule, "
                             "a literal, a class nor a group");
    }
}


/* ---- repetitions ---- */

/* reads an operator: 1: there is one; 0: none; LLM_ERROR */

static int
llm_gbnf_times(llm_gbnf_t *g, uint32_t *min, uint32_t *max)
{
    int  has_min;

    *min = 0;
    *max = LLM_GN_NO_MAX;

    if (llm_gbnf_skip(g, "*")) {
        return 1;
    }

    if (llm_gbnf_skip(g, "+")) {
        *min = 1;
        return 1;
    }

    if (llm_gbnf_skip(g, "?")) {
        *max = 1;
        return 1;
    }

    if (!llm_gbnf_skip(g, "{")) {
        return 0;
    }

    llm_gbnf_space(g, 0);
    has_min = llm_gbnf_number(g, min);
    *max = *min;
    llm_gbnf_space(g, 0);

    if (llm_gbnf_skip(g, ",")) {
        llm_gbnf_space(g, 0);

        if (!llm_gbnf_number(g, max)) {
            *max = LLM_GN_NO_MAX;
        }

        llm_gbnf_space(g, 0);
        has_min |= *max != LLM_GN_NO_MAX;
    }

    if (!has_min || *min > *max || !llm_gbnf_skip(g, "}")) {
        return llm_gbnf_fail(g, "a repetition in braces is not one of {n}, "
                             "{n,} and {n,m}");
    }

    return 1;
}


static uint32_t
llm_gbnf_item(llm_gbnf_t *g, int nested)
{
    int       rc;
    uint32_t  n, part, min, max;

    part = llm_gbnf_atom(g);

    for (n = 0; n < LLM_GBNF_MAX_DEPTH; n++) {
        llm_gbnf_space(g, nested);

        if (part == LLM_GBNF_NONE) {
            return part;
        }

        rc = llm_gbnf_times(g, &min, &max);

        if (rc != 1) {
            return rc == 0 ? part : LLM_GBNF_NONE;
        }

        part = llm_gbnf_part(g, LLM_GBNF_REPEAT, part);

        if (part != LLM_GBNF_NONE) {
            g->parts.data[part].min = min;
            g->parts.data[part].max = max;
        }
    }

    return llm_gbnf_none(g, "too many repetitions of one thing");
}


/* ---- lists ---- */

typedef llm_vec(uint32_t)  llm_gbnf_list_t;


/* makes a part of the list; takes over its memory */

static uint32_t
llm_gbnf_list(llm_gbnf_t *g, llm_gbnf_kind_t kind, llm_gbnf_list_t *list)
{
    uint32_t  part;

    if (list->n == 1) {
        part = list->data[0];
        free(list->data);
        return part;
    }

    part = LLM_GBNF_NONE;

    if (llm_vec_more(&g->kids, list->n) != LLM_OK) {
        (void) llm_gbnf_fail(g, "memory has ended");

    } else {
        part = llm_gbnf_part(g, kind, g->kids.n);
    }

    if (part != LLM_GBNF_NONE && list->n) {
        g->parts.data[part].count = list->n;
        memcpy(g->kids.data + g->kids.n, list->data,
               list->n * sizeof(uint32_t));
        g->kids.n += list->n;
    }

    free(list->data);

    return part;
}


static int
llm_gbnf_add(llm_gbnf_t *g, llm_gbnf_list_t *list, uint32_t part)
{
    if (part == LLM_GBNF_NONE) {
        return LLM_ERROR;
    }

    if (llm_vec_more(list, 1) != LLM_OK) {
        return llm_gbnf_fail(g, "memory has ended");
    }

    list->data[list->n++] = part;

    return LLM_OK;
}


static uint32_t
llm_gbnf_seq(llm_gbnf_t *g, int nested)
{
    char             c;
    llm_gbnf_list_t  list;

    memset(&list, 0, sizeof(list));

    while ((c = llm_gbnf_peek(g)) != 0 && c != '|' && c != ')' && c != '\n'
           && c != '\r')
    {
        if (llm_gbnf_add(g, &list, llm_gbnf_item(g, nested)) != LLM_OK) {
            free(list.data);
            return LLM_GBNF_NONE;
        }
    }

    return llm_gbnf_list(g, LLM_GBNF_SEQ, &list);
}


/* a line that begins with | continues the alternatives before it */

static int
llm_gbnf_more(llm_gbnf_t *g, int nested)
{
    size_t    at;
    uint32_t  line;

    at = g->at;
    line = g->line;
    llm_gbnf_space(g, 1);

    if (llm_gbnf_skip(g, "|")) {
        llm_gbnf_space(g, 1);
        return 1;
    }

    if (!nested) {
        g->at = at;
        g->line = line;
    }

    return 0;
}


static uint32_t
llm_gbnf_alt(llm_gbnf_t *g, int nested)
{
    llm_gbnf_list_t  list;

    memset(&list, 0, sizeof(list));

    do {
        if (llm_gbnf_add(g, &list, llm_gbnf_seq(g, nested)) != LLM_OK) {
            free(list.data);
            return LLM_GBNF_NONE;
        }

    } while (llm_gbnf_more(g, nested));

    return llm_gbnf_list(g, LLM_GBNF_ALT, &list);
}


/* ---- rules ---- */

static int
llm_gbnf_define(llm_gbnf_t *g)
{
    uint32_t   rule, part;
    llm_str_t  name;

    name = llm_gbnf_name(g);

    if (name.len == 0) {
        return llm_gbnf_fail(g, "the name of a rule is missing");
    }

    rule = llm_gbnf_rule(g, name);
    if (rule == LLM_GBNF_NONE) {
        return LLM_ERROR;
    }

    if (g->rules.data[rule].defined) {
        return llm_fail_with(g->err, 400, NULL, NULL, "the grammar, line %u: "
                             "the rule \"%.*s\" is there already, on line %u",
                             g->line, (int) llm_min(name.len, 100), name.data,
                             g->rules.data[rule].line);
    }

    g->rules.data[rule].line = g->line;
    g->rules.data[rule].defined = 1;
    llm_gbnf_space(g, 0);

    if (!llm_gbnf_skip(g, "::=")) {
        return llm_gbnf_fail(g, "a ::= is missing behind the name of a rule");
    }

    llm_gbnf_space(g, 1);
    part = llm_gbnf_alt(g, 0);

    if (part == LLM_GBNF_NONE) {
        return LLM_ERROR;
    }

    g->rules.data[rule].part = part;

    if (g->at < g->len && llm_gbnf_peek(g) != '\n'
        && llm_gbnf_peek(g) != '\r')
    {
        return llm_gbnf_fail(g, "a rule does not end with the line");
    }

    return LLM_OK;
}


int
llm_gbnf_parse(llm_gbnf_t *g)
{
    g->line = 1;

    for (llm_gbnf_space(g, 1); g->at < g->len; llm_gbnf_space(g, 1)) {
        if (llm_gbnf_define(g) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


void
llm_gbnf_free(llm_gbnf_t *g)
{
    free(g->parts.data);
    free(g->kids.data);
    free(g->rules.data);
    llm_table_clear(&g->names);
}
