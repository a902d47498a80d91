/*
 * Can anything satisfy a set, or a branch?  Sets that nothing satisfies need
 * not be negated against each other, and such branches are left out.
 *
 * Invariant: what is reported as empty is empty.  The search is bounded; if it
 * finds nothing, the result is "not empty".
 */

#include "engine/grammar/schema/internal.h"


#define LLM_SCHEMA_EMPTY_WORK      4000 /* steps of one search */
#define LLM_SCHEMA_EMPTY_BRANCHES  128
#define LLM_SCHEMA_EMPTY_BUDGET    500  /* derivatives of one expression */


static int  llm_schema_set_empty(llm_schema_t *s, llm_schema_set_t set,
    uint32_t types, int depth);


static int
llm_schema_object_empty(llm_schema_t *s, const llm_schema_branch_t *b,
    int depth)
{
    int                    rc;
    uint32_t               i;
    llm_schema_object_t    o;
    llm_schema_branches_t  split;

    if (llm_schema_object_plan(s, b, &o) != LLM_OK) {
        return LLM_ERROR;
    }

    if (o.dead) {
        return 1;
    }

    for (i = 0; i < o.n_keys && depth; i++) {
        if (o.keys[i].required && o.keys[i].value.n > 1) {
            rc = llm_schema_set_empty(s, llm_schema_bag_set(&o.keys[i].value),
                                      LLM_SCHEMA_ANY, depth - 1);
            if (rc) {
                return rc;
            }
        }
    }

    if (o.some == NULL) {
        return 0;
    }

    if (llm_schema_object_split(s, b, &o, &split) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < split.n; i++) {
        rc = llm_schema_object_empty(s, &split.items[i], depth);
        if (rc != 1) {
            return rc;
        }
    }

    return 1;
}


static int
llm_schema_array_empty(llm_schema_t *s, const llm_schema_branch_t *b,
    int depth)
{
    int                 rc;
    uint32_t            i;
    llm_schema_bag_t   *bag;
    llm_schema_array_t  p;

    if (llm_schema_array_plan(s, b, &p) != LLM_OK) {
        return LLM_ERROR;
    }

    if (p.dead) {
        return 1;
    }

    for (i = 0; i < p.min && i <= p.n_prefix && depth; i++) {
        bag = i < p.n_prefix ? &p.prefix[i] : &p.items;

        if (bag->n > 1) {
            rc = llm_schema_set_empty(s, llm_schema_bag_set(bag),
                                      LLM_SCHEMA_ANY, depth - 1);
            if (rc) {
                return rc;
            }
        }
    }

    return 0;
}


/* checks the types one after another, cheap ones first */

static int
llm_schema_types_empty(llm_schema_t *s, const llm_schema_branch_t *b,
    int depth)
{
    int                  rc;
    llm_rx_t             rx;
    llm_schema_branch_t  one;

    if (b->types & (LLM_SCHEMA_NULL|LLM_SCHEMA_TRUE|LLM_SCHEMA_FALSE_T)) {
        return 0;
    }

    if (b->types & LLM_SCHEMA_NUMBER) {
        one = *b;
        one.types &= LLM_SCHEMA_NUMBER;

        if (llm_schema_number(s, &one, &rx) != LLM_OK) {
            return LLM_ERROR;
        }

        if (llm_rx_is_none(s->pool, rx, LLM_SCHEMA_EMPTY_BUDGET) != 1) {
            return 0;
        }
    }

    if (b->types & LLM_SCHEMA_STRING) {
        if (llm_schema_string(s, b, &rx) != LLM_OK) {
            return LLM_ERROR;
        }

        if (llm_rx_is_none(s->pool, rx, LLM_SCHEMA_EMPTY_BUDGET) != 1) {
            return 0;
        }
    }

    if (b->types & LLM_SCHEMA_OBJECT) {
        rc = llm_schema_object_empty(s, b, depth);
        if (rc != 1) {
            return rc;
        }
    }

    return b->types & LLM_SCHEMA_ARRAY ? llm_schema_array_empty(s, b, depth)
                                       : 1;
}


static int
llm_schema_set_empty(llm_schema_t *s, llm_schema_set_t set, uint32_t types,
    int depth)
{
    int                    rc;
    uint32_t               i;
    llm_schema_branches_t  branches;

    if (set.n == 1 && set.items[0] == LLM_SCHEMA_FALSE) {
        return 1;
    }

    if (llm_schema_expand(s, set, types, &branches) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < branches.n; i++) {
        rc = llm_schema_types_empty(s, &branches.items[i], depth);
        if (rc != 1) {
            return rc;
        }
    }

    return 1;
}


/* runs a search.  An error in it is not an error of the document, or will be
   found again when the document is read */

typedef struct {
    uint32_t     max_work;
    uint32_t     max_branches;
    int          loose;
} llm_schema_search_t;


static void
llm_schema_begin(llm_schema_t *s, llm_schema_search_t *saved)
{
    saved->max_work = s->max_work;
    saved->max_branches = s->max_branches;
    saved->loose = s->loose;

    if (!s->loose) {
        s->max_work = llm_min(s->max_work, s->work + LLM_SCHEMA_EMPTY_WORK);
        s->max_branches = LLM_SCHEMA_EMPTY_BRANCHES;
        s->loose = 1;
    }
}


static int
llm_schema_end(llm_schema_t *s, const llm_schema_search_t *saved, int rc)
{
    s->max_work = saved->max_work;
    s->max_branches = saved->max_branches;
    s->loose = saved->loose;

    if (rc != LLM_ERROR) {
        return rc;
    }

    s->err->msg[0] = '\0';

    return 0;
}


int
llm_schema_branch_empty(llm_schema_t *s, const llm_schema_branch_t *b,
    int depth)
{
    int                  rc;
    llm_schema_search_t  saved;

    llm_schema_begin(s, &saved);
    rc = llm_schema_types_empty(s, b, depth);

    return llm_schema_end(s, &saved, rc);
}


/*
 * Can no value of these types satisfy both schemas?  The result is remembered
 * for objects, for arrays, and for all types.
 */

int
llm_schema_apart(llm_schema_t *s, const llm_flat_t *a, const llm_flat_t *b,
    uint32_t types)
{
    int                  rc;
    uint32_t             known;
    uint64_t             key;
    llm_schema_set_t     set;
    llm_schema_item_t    items[2];
    llm_schema_search_t  saved;

    if (types != LLM_SCHEMA_OBJECT && types != LLM_SCHEMA_ARRAY) {
        types = LLM_SCHEMA_ANY;
    }

    /* an item has 30 bits and two flags */

    items[0] = llm_schema_item(s, a < b ? a : b, 0);
    items[1] = llm_schema_item(s, a < b ? b : a, 0);
    key = (uint64_t) items[0] << 32 | items[1] | (types == LLM_SCHEMA_OBJECT)
          | (uint64_t) (types == LLM_SCHEMA_ARRAY) << 1;

    if (llm_schema_map_get(&s->pairs, key, &known) == LLM_OK) {
        return (int) known;
    }

    set.items = items;
    set.n = 2;

    llm_schema_begin(s, &saved);
    rc = llm_schema_set_empty(s, set, types, 3);
    rc = llm_schema_end(s, &saved, rc);

    if (llm_schema_map_put(s, &s->pairs, key, (uint32_t) rc) != LLM_OK) {
        return LLM_ERROR;
    }

    return rc;
}


int
llm_schema_contradicts(llm_schema_t *s, const llm_schema_branch_t *b)
{
    return llm_schema_branch_empty(s, b, 1) == 1;
}
