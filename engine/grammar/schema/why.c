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

/* a keyword without which something matches its schema, if node is alive */
typedef struct {
    const llm_flat_t  *key;
    const llm_flat_t  *value;
    llm_gn_t           node;
} llm_schema_guess_t;

typedef struct {
    llm_schema_guess_t  items[LLM_SCHEMA_KEYWORDS];
    uint32_t            n;
} llm_schema_guesses_t;


/* does nothing match v by itself?  Many schemas are asked for with look 0
   first, so that all are built when the first is looked at */

static int
llm_schema_dead(llm_schema_t *s, const llm_flat_t *v, int look)
{
    int               trivial;
    llm_gn_t          node;
    llm_schema_bag_t  bag;

    if (v == NULL || (v->type != LLM_FLAT_OBJECT && v->type != LLM_FLAT_BOOL))
    {
        return 0;
    }

    trivial = llm_schema_trivial(s, v);

    if (trivial >= 0) {
        return !trivial;
    }

    memset(&bag, 0, sizeof(bag));

    return llm_schema_bag_schema(s, &bag, v) == LLM_OK
           && llm_schema_state(s, llm_schema_bag_set(&bag), &node) == LLM_OK
           && llm_schema_build_all(s) == LLM_OK
           && look && llm_gn_dead(s->b, node);
}


static const llm_flat_t *
llm_schema_dead_in(llm_schema_t *s, const llm_flat_t *list, uint32_t n,
    int look)
{
    const llm_flat_t  *c;

    c = list && list->type == LLM_FLAT_ARRAY ? llm_flat_first(list) : NULL;

    for ( /* void */ ; c && n; c = llm_flat_next(list, c), n--) {
        if (llm_schema_dead(s, c, look)) {
            return c;
        }
    }

    return NULL;
}


/* the first schema of a list, if nothing matches any of them */

static const llm_flat_t *
llm_schema_dead_all(llm_schema_t *s, const llm_flat_t *list, int look)
{
    const llm_flat_t  *c;

    if (list == NULL || list->type != LLM_FLAT_ARRAY) {
        return NULL;
    }

    for (c = llm_flat_first(list); c; c = llm_flat_next(list, c)) {
        if (!llm_schema_dead(s, c, look) && look) {
            return NULL;
        }
    }

    return look ? llm_flat_first(list) : NULL;
}


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


static const llm_flat_t *
llm_schema_dead_property(llm_schema_t *s, const llm_flat_t *at, int look)
{
    const llm_flat_t  *properties, *required, *k, *v;

    properties = llm_flat_get(at, "properties");
    required = llm_flat_get(at, "required");

    if (properties == NULL || properties->type != LLM_FLAT_OBJECT
        || required == NULL)
    {
        return NULL;
    }

    for (k = llm_flat_first(properties); k; k = llm_flat_next(properties, v)) {
        v = llm_flat_next(properties, k);

        if (llm_schema_dead(s, v, look) && llm_schema_among(required, k)) {
            return v;
        }
    }

    return NULL;
}


static const llm_flat_t *
llm_schema_dead_item(llm_schema_t *s, const llm_flat_t *at, int look)
{
    double             min;
    uint32_t           n, first;
    const llm_flat_t  *v, *list, *items, *dead;

    v = llm_flat_get(at, "minItems");
    min = v && (v->type == LLM_FLAT_INT || v->type == LLM_FLAT_DOUBLE)
          ? llm_flat_double(v) : 0;
    n = min > 0 ? (uint32_t) llm_min(min, 1e6) : 0;

    items = llm_flat_get(at, "items");
    list = s->draft == LLM_DRAFT_2020 ? llm_flat_get(at, "prefixItems")
                                      : items;
    dead = llm_schema_dead_in(s, list, n, look);
    first = list && list->type == LLM_FLAT_ARRAY ? list->count : 0;

    if (dead == NULL && n > first && llm_schema_dead(s, items, look)) {
        dead = items;
    }

    v = llm_flat_get(at, "contains");

    return dead == NULL && v && llm_flat_get(at, "minContains") == NULL
           && llm_schema_dead(s, v, look) ? v : dead;
}


static int
llm_schema_may_be(const llm_flat_t *at, const char *type)
{
    llm_str_t          name;
    const llm_flat_t  *v, *c;

    v = llm_flat_get(at, "type");
    name.data = type;
    name.len = strlen(type);

    if (v == NULL || v->type == LLM_FLAT_STRING) {
        return v == NULL || llm_str_eq(llm_flat_str(v), name);
    }

    c = v->type == LLM_FLAT_ARRAY ? llm_flat_first(v) : NULL;

    for ( /* void */ ; c; c = llm_flat_next(v, c)) {
        if (c->type == LLM_FLAT_STRING && llm_str_eq(llm_flat_str(c), name)) {
            return 1;
        }
    }

    return 0;
}


/* an inner schema that nothing matches, so that nothing matches this one */

static const llm_flat_t *
llm_schema_dead_inner(llm_schema_t *s, const llm_flat_t *at, int look)
{
    const llm_flat_t  *v, *ref;

    ref = llm_flat_get(at, "$ref");

    if (ref && ref->type == LLM_FLAT_STRING
        && llm_schema_target(s, ref, LLM_KW_REF, &v) == LLM_OK
        && llm_schema_dead(s, v, look))
    {
        return v;
    }

    v = llm_schema_dead_in(s, llm_flat_get(at, "allOf"), UINT32_MAX, look);

    if (v == NULL) {
        v = llm_schema_dead_all(s, llm_flat_get(at, "anyOf"), look);
    }

    if (v == NULL) {
        v = llm_schema_dead_all(s, llm_flat_get(at, "oneOf"), look);
    }

    if (v == NULL && llm_schema_may_be(at, "object")) {
        v = llm_schema_dead_property(s, at, look);
    }

    return v == NULL && llm_schema_may_be(at, "array")
           ? llm_schema_dead_item(s, at, look) : v;
}


/* the innermost such schema; where the search comes back to a schema on its
   path, the last one reached */

static const llm_flat_t *
llm_schema_dead_deep(llm_schema_t *s, const llm_flat_t *at)
{
    uint32_t           i, n;
    const llm_flat_t  *inner, *path[LLM_SCHEMA_DEPTH];

    for (n = 0; at->type == LLM_FLAT_OBJECT && n < LLM_SCHEMA_DEPTH; n++) {
        path[n] = at;
        (void) llm_schema_dead_inner(s, at, 0);
        inner = llm_schema_dead_inner(s, at, 1);

        if (inner == NULL) {
            break;
        }

        for (i = 0; i <= n; i++) {
            if (path[i] == inner) {
                return at;
            }
        }

        at = inner;
    }

    return at;
}


/* the keywords of a schema, each of which may be the cause */

static void
llm_schema_guess(llm_schema_t *s, const llm_flat_t *at,
    llm_schema_guesses_t *g)
{
    uint32_t             i, n;
    const llm_flat_t    *k, *v;
    llm_schema_set_t     set;
    llm_schema_item_t    item;
    llm_schema_guess_t  *one;

    item = llm_schema_item(s, at, 0);
    set.items = &item;
    set.n = 1;
    n = 0;

    for (k = llm_flat_first(at); k && n < LLM_SCHEMA_KEYWORDS;
         k = llm_flat_next(at, v))
    {
        v = llm_flat_next(at, k);
        one = &g->items[n];

        if (llm_schema_row(s, llm_flat_str(k)) == NULL) {
            continue;
        }

        s->gone.values[s->gone.n++] = v;

        if (llm_schema_build(s, set, llm_str(""), &one->node) == LLM_OK
            && llm_schema_build_all(s) == LLM_OK)
        {
            one->key = k;
            one->value = v;
            n++;
        }

        s->gone.n--;
    }

    for (i = 0; i < n; i++) {
        if (!llm_gn_dead(s->b, g->items[i].node)) {
            g->items[g->n++] = g->items[i];
        }
    }
}


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

    g.n = 0;
    at = llm_schema_dead_deep(s, part);

    if (at->type == LLM_FLAT_OBJECT) {
        llm_schema_guess(s, at, &g);
    }

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
