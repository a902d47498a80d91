/*
 * Finds why nothing matches a schema: the smallest schema in it that nothing
 * matches by itself, and the keyword of that schema without which something
 * would match.
 *
 * The nodes that this builds stay in the builder, where nothing refers to
 * them.
 */

#include "engine/grammar/schema/internal.h"

#include <stdio.h>

#define LLM_SCHEMA_DEPTH     64         /* most schemas from the root to the
                                           one found */
#define LLM_SCHEMA_KEYWORDS  48         /* most keywords of one schema */

/* a keyword without which something matches its schema */
typedef struct {
    const llm_flat_t  *key;
    const llm_flat_t  *value;
} llm_schema_guess_t;

typedef struct {
    llm_schema_guess_t  items[LLM_SCHEMA_KEYWORDS];
    uint32_t            n;
} llm_schema_guesses_t;


/* does nothing match v by itself? */

static int
llm_schema_dead(llm_schema_t *s, const llm_flat_t *v)
{
    llm_gn_t          node;
    llm_schema_bag_t  bag;

    memset(&bag, 0, sizeof(bag));

    return (v->type == LLM_FLAT_OBJECT || v->type == LLM_FLAT_BOOL)
           && llm_schema_bag_schema(s, &bag, v) == LLM_OK
           && llm_schema_state(s, llm_schema_bag_set(&bag), &node) == LLM_OK
           && llm_schema_build_all(s) == LLM_OK
           && llm_gn_dead(s->b, node);
}


/* the keywords of a schema, each of which is the cause by itself; or, with all,
   each keyword */

static void
llm_schema_guess(llm_schema_t *s, const llm_flat_t *at, int all,
    llm_schema_guesses_t *g)
{
    llm_gn_t                 node;
    const llm_flat_t        *k, *v;
    llm_schema_set_t         set;
    llm_schema_item_t        item;
    const llm_schema_row_t  *row;

    item = llm_schema_item(s, at, 0);
    set.items = &item;
    set.n = 1;
    g->n = 0;

    for (k = llm_flat_first(at); k && g->n < LLM_SCHEMA_KEYWORDS;
         k = llm_flat_next(at, v))
    {
        v = llm_flat_next(at, k);
        row = llm_schema_row(s, llm_flat_str(k));

        if (row == NULL || llm_schema_gone(s, row, v)) {
            continue;
        }

        s->gone.values[s->gone.n++] = v;

        if (all || (llm_schema_build(s, set, llm_str(""), &node) == LLM_OK
                    && llm_schema_build_all(s) == LLM_OK
                    && !llm_gn_dead(s->b, node)))
        {
            g->items[g->n].key = k;
            g->items[g->n++].value = v;
        }

        s->gone.n--;
    }
}


/* ---- inner schemas ---- */

static int
llm_schema_among(const llm_flat_t *list, const llm_flat_t *text)
{
    const llm_flat_t  *c;

    c = list && list->type == LLM_FLAT_ARRAY ? llm_flat_first(list) : NULL;

    for ( /* void */ ; c; c = llm_flat_next(list, c)) {
        if (c->type == LLM_FLAT_STRING
            && llm_str_eq(llm_flat_str(c), llm_flat_str(text)))
        {
            return 1;
        }
    }

    return 0;
}


/* the first schema of a list, or of the required properties, that nothing
   matches; every: only if nothing matches any of them */

static const llm_flat_t *
llm_schema_dead_of(llm_schema_t *s, const llm_flat_t *at,
    const llm_flat_t *list, int every)
{
    uint32_t           n;
    const llm_flat_t  *c, *first, *required;

    n = 0;
    first = NULL;
    required = llm_flat_get(at, "required");

    for (c = llm_flat_first(list); c; c = llm_flat_next(list, c)) {
        if (list->type == LLM_FLAT_OBJECT
            && !llm_schema_among(required, c))
        {
            c = llm_flat_next(list, c);
            continue;
        }

        if (list->type == LLM_FLAT_OBJECT) {
            c = llm_flat_next(list, c);
        }

        if (llm_schema_dead(s, c)) {
            first = first ? first : c;
            n++;
        }
    }

    return every && n < list->count ? NULL : first;
}


/* an inner schema of a keyword, because of which nothing matches */

static const llm_flat_t *
llm_schema_dead_in(llm_schema_t *s, const llm_flat_t *at,
    const llm_schema_guess_t *of)
{
    const llm_flat_t        *v;
    const llm_schema_row_t  *row;

    v = of->value;
    row = llm_schema_row(s, llm_flat_str(of->key));

    switch (row->kw) {

    case LLM_KW_REF:
    case LLM_KW_DYNAMIC_REF:
    case LLM_KW_RECURSIVE_REF:
        if (llm_schema_target(s, v, row->kw, &v) != LLM_OK) {
            return NULL;
        }

        return llm_schema_dead(s, v) ? v : NULL;

    case LLM_KW_PROPERTIES:
    case LLM_KW_REQUIRED:
        v = llm_flat_get(at, "properties");

        return v && v->type == LLM_FLAT_OBJECT ? llm_schema_dead_of(s, at, v, 0)
                                               : NULL;

    case LLM_KW_ALL_OF:
    case LLM_KW_ANY_OF:
    case LLM_KW_ONE_OF:
    case LLM_KW_PREFIX_ITEMS:
    case LLM_KW_ITEMS:
    case LLM_KW_ADDITIONAL_ITEMS:
    case LLM_KW_CONTAINS:
        if (v->type == LLM_FLAT_ARRAY) {
            return llm_schema_dead_of(s, at, v, row->kw == LLM_KW_ANY_OF
                                                || row->kw == LLM_KW_ONE_OF);
        }

        return llm_schema_dead(s, v) ? v : NULL;

    default:
        return NULL;
    }
}


/* the first inner schema because of which nothing matches; it may be one of
   several */

static const llm_flat_t *
llm_schema_dead_inner(llm_schema_t *s, const llm_flat_t *at,
    const llm_schema_guesses_t *g)
{
    uint32_t               i;
    const llm_flat_t      *inner;
    llm_schema_guesses_t   all;

    if (g->n == 0) {
        llm_schema_guess(s, at, 1, &all);
        g = &all;
    }

    for (i = 0, inner = NULL; i < g->n && inner == NULL; i++) {
        inner = llm_schema_dead_in(s, at, &g->items[i]);
    }

    return inner;
}


/* the innermost schema that nothing matches, and its guesses; where the search
   comes back to a schema on its path, the last one reached */

static const llm_flat_t *
llm_schema_dead_deep(llm_schema_t *s, const llm_flat_t *at,
    llm_schema_guesses_t *g)
{
    uint32_t           i, n;
    const llm_flat_t  *inner, *path[LLM_SCHEMA_DEPTH];

    g->n = 0;

    for (n = 0; at->type == LLM_FLAT_OBJECT && n < LLM_SCHEMA_DEPTH; n++) {
        path[n] = at;
        llm_schema_guess(s, at, 0, g);
        inner = llm_schema_dead_inner(s, at, g);

        for (i = 0; i <= n && path[i] != inner; i++) { /* void */ }

        if (inner == NULL || i <= n) {
            break;
        }

        at = inner;
        g->n = 0;
    }

    return at;
}


/* ---- messages ---- */

static const llm_schema_guess_t *
llm_schema_guessed(const llm_schema_guesses_t *g, const char *name)
{
    uint32_t  i;

    for (i = 0; i < g->n; i++) {
        if (llm_str_is(llm_flat_str(g->items[i].key), name)) {
            return &g->items[i];
        }
    }

    return NULL;
}


static void
llm_schema_number_text(const llm_flat_t *v, char *text, size_t size)
{
    llm_str_t  big;

    big = llm_flat_digits(v);

    if (v->type == LLM_FLAT_INT) {
        snprintf(text, size, "%lld", (long long) llm_flat_int(v));

    } else if (big.len) {
        snprintf(text, size, "%.*s", (int) big.len, big.data);

    } else {
        snprintf(text, size, "%.15g", llm_flat_double(v));
    }
}


/* two bounds that exclude each other; LLM_ABSENT: they are not the cause */

static int
llm_schema_why_bounds(llm_schema_t *s, const llm_schema_guesses_t *g)
{
    size_t                     i;
    char                       low[72], high[72];
    const llm_schema_guess_t  *min, *max;

    static const char *const  pairs[][2] = {
        { "minLength", "maxLength" }, { "minItems", "maxItems" },
        { "minProperties", "maxProperties" }, { "minimum", "maximum" },
        { "minimum", "exclusiveMaximum" }, { "exclusiveMinimum", "maximum" },
        { "exclusiveMinimum", "exclusiveMaximum" }
    };

    for (i = 0; i < llm_nelems(pairs); i++) {
        min = llm_schema_guessed(g, pairs[i][0]);
        max = llm_schema_guessed(g, pairs[i][1]);

        if (min && max) {
            llm_schema_number_text(min->value, low, sizeof(low));
            llm_schema_number_text(max->value, high, sizeof(high));

            return llm_schema_refuse(s, min->value, "no text matches: %s %s "
                                     "%s %s %s%s", pairs[i][0], low,
                                     llm_flat_double(min->value)
                                     > llm_flat_double(max->value)
                                     ? "is above" : "and", pairs[i][1], high,
                                     llm_flat_double(min->value)
                                     > llm_flat_double(max->value)
                                     ? "" : " leave nothing");
        }
    }

    return LLM_ABSENT;
}


/* there are too few different items */

static int
llm_schema_why_unique(llm_schema_t *s, const llm_schema_guesses_t *g)
{
    char                       low[72];
    const llm_schema_guess_t  *min, *unique;

    min = llm_schema_guessed(g, "minItems");
    unique = llm_schema_guessed(g, "uniqueItems");

    if (min == NULL || unique == NULL) {
        return LLM_ABSENT;
    }

    llm_schema_number_text(min->value, low, sizeof(low));

    return llm_schema_refuse(s, min->value, "no text matches: minItems %s is "
                             "above the number of different items that there "
                             "are for uniqueItems", low);
}


/* the keyword to report: "required" first; then the last one that is neither
   "type" nor "additionalProperties"; otherwise the first */

static const llm_schema_guess_t *
llm_schema_blamed(const llm_schema_guesses_t *g)
{
    uint32_t                   i;
    const llm_schema_guess_t  *one, *best;

    best = llm_schema_guessed(g, "required");

    for (i = g->n; i-- && best == NULL; /* void */) {
        one = &g->items[i];

        if (!llm_str_is(llm_flat_str(one->key), "type")
            && !llm_str_is(llm_flat_str(one->key), "additionalProperties"))
        {
            best = one;
        }
    }

    return best || g->n == 0 ? best : &g->items[0];
}


int
llm_schema_why(llm_schema_t *s, const llm_flat_t *part)
{
    int                        rc;
    const llm_flat_t          *at;
    llm_schema_guesses_t       g;
    const llm_schema_guess_t  *one;

    at = llm_schema_dead_deep(s, part, &g);
    rc = llm_schema_why_bounds(s, &g);

    if (rc == LLM_ABSENT) {
        rc = llm_schema_why_unique(s, &g);
    }

    if (rc != LLM_ABSENT) {
        return rc;
    }

    one = llm_schema_blamed(&g);

    if (one == NULL) {
        return llm_schema_refuse(s, at, at->type == LLM_FLAT_BOOL
                                 ? "no text matches \"false\""
                                 : "no text matches it");
    }

    return llm_schema_refuse(s, one->value, llm_str_is(llm_flat_str(one->key),
                                                       "required")
                             ? "no text matches: one of these must be there,"
                               " and may not"
                             : one->value->count == 0
                               && one->value->type == LLM_FLAT_ARRAY
                             ? "no text matches: it is empty"
                             : "no text matches it and what stands beside it");
}
