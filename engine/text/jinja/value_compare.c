/*
 * Python's equality, order and membership, and sorting by them.
 */

#include "engine/text/jinja/value.h"

#include <math.h>


static int
llm_jv_equal_lists(llm_jrt_t *rt, const llm_jlist_t *a, const llm_jlist_t *b)
{
    int     rc;
    size_t  i;

    if (a->n != b->n) {
        return 0;
    }

    for (i = 0; i < a->n; i++) {
        llm_jtry(llm_jrt_charge(rt, 1));

        rc = llm_jv_equal(rt, &a->v[i], &b->v[i]);
        if (rc != 1) {
            return rc;
        }
    }

    return 1;
}


static int
llm_jv_equal_dicts(llm_jrt_t *rt, const llm_jdict_t *a, const llm_jdict_t *b)
{
    int        rc;
    size_t     i;
    llm_jv_t  *v;

    if (a->n != b->n) {
        return 0;
    }

    for (i = 0; i < a->n; i++) {
        llm_jtry(llm_jrt_charge(rt, 1));
        llm_jtry(llm_jdict_get(rt, b, &a->v[i].key, &v));

        rc = v ? llm_jv_equal(rt, &a->v[i].value, v) : 0;
        if (rc != 1) {
            return rc;
        }
    }

    return 1;
}


/* -1, 0, 1; 2 if one of the numbers is NaN */

static int
llm_jv_compare_numbers(llm_jrt_t *rt, const llm_jv_t *a, const llm_jv_t *b)
{
    int          rc;
    llm_str_t    s, t;
    long double  x, y;

    if (a->type != LLM_J_FLOAT && b->type != LLM_J_FLOAT) {
        return (a->u.i > b->u.i) - (a->u.i < b->u.i);
    }

    x = a->type == LLM_J_FLOAT ? (long double) a->u.f : (long double) a->u.i;
    y = b->type == LLM_J_FLOAT ? (long double) b->u.f : (long double) b->u.i;

    if (x == y && a->big && b->big) {
        s = rt->bigs[a->big - 1];
        t = rt->bigs[b->big - 1];
        rc = memcmp(s.data, t.data, llm_min(s.len, t.len));
        rc = s.len != t.len ? (s.len > t.len) - (s.len < t.len)
                            : (rc > 0) - (rc < 0);

        return x < 0 ? -rc : rc;
    }

    return (isnan(x) || isnan(y)) ? 2 : (x > y) - (x < y);
}


int
llm_jv_equal(llm_jrt_t *rt, const llm_jv_t *a, const llm_jv_t *b)
{
    int  rc;

    if (llm_jv_number(a) && llm_jv_number(b)) {
        return llm_jv_compare_numbers(rt, a, b) == 0;
    }

    if (a->type != b->type) {
        return 0;
    }

    switch (a->type) {

    case LLM_J_MISSING:
    case LLM_J_UNDEF:
    case LLM_J_NONE:
        return 1;

    case LLM_J_STR:
        llm_jtry(a->u.s->len == b->u.s->len && llm_jrt_charge(rt,
                                                              a->u.s->len));

        return llm_js_equal(a->u.s, b->u.s);

    case LLM_J_LIST:
    case LLM_J_TUPLE:
    case LLM_J_DICT:
        if (a->u.list == b->u.list) {
            return 1;
        }

        llm_jtry(llm_jrt_charge(rt, 1));
        llm_jtry(llm_jrt_enter(rt));

        rc = a->type == LLM_J_DICT
             ? llm_jv_equal_dicts(rt, a->u.dict, b->u.dict)
             : llm_jv_equal_lists(rt, a->u.list, b->u.list);

        llm_jrt_leave(rt);

        return rc;

    case LLM_J_RANGE:
        return a->u.range->n == b->u.range->n
               && (a->u.range->n == 0
                   || (a->u.range->start == b->u.range->start
                       && (a->u.range->n == 1
                           || a->u.range->step == b->u.range->step)));

    case LLM_J_FUNC:
        return a->u.func == b->u.func;

    default:
        return a->u.iter == b->u.iter;
    }
}


int
llm_jv_order(llm_jrt_t *rt, const llm_jv_t *a, const llm_jv_t *b,
    const char *op, int *res)
{
    int     rc;
    size_t  i, n;

    if (llm_jv_number(a) && llm_jv_number(b)) {
        *res = llm_jv_compare_numbers(rt, a, b);
        return LLM_OK;
    }

    if (a->type == LLM_J_UNDEF || b->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, a->type == LLM_J_UNDEF ? a : b);
    }

    if (a->type == LLM_J_STR && b->type == LLM_J_STR) {
        n = llm_min(a->u.s->len, b->u.s->len);

        llm_jtry(llm_jrt_charge(rt, n));

        *res = memcmp(llm_js_data(a->u.s), llm_js_data(b->u.s), n);

        if (*res == 0) {
            *res = (a->u.s->len > n) - (b->u.s->len > n);
        }

        return LLM_OK;
    }

    if ((a->type == LLM_J_LIST || a->type == LLM_J_TUPLE)
        && a->type == b->type)
    {
        n = llm_min(a->u.list->n, b->u.list->n);

        for (i = 0; i < n; i++) {
            rc = llm_jv_equal(rt, &a->u.list->v[i], &b->u.list->v[i]);

            if (rc < 0 || llm_jrt_charge(rt, 1) != LLM_OK) {
                return LLM_ERROR;
            }

            if (rc) {
                continue;
            }

            llm_jtry(llm_jrt_enter(rt));

            rc = llm_jv_order(rt, &a->u.list->v[i], &b->u.list->v[i], op, res);
            llm_jrt_leave(rt);

            return rc;
        }

        *res = (a->u.list->n > n) - (b->u.list->n > n);

        return LLM_OK;
    }

    return llm_jrt_fail(rt, "'%s' not supported between instances of '%s' "
                        "and '%s'", op, llm_jv_type(a), llm_jv_type(b));
}


int
llm_jv_contains(llm_jrt_t *rt, const llm_jv_t *seq, const llm_jv_t *item)
{
    int         rc;
    llm_jv_t    v, *found;
    llm_jcur_t  cur;

    if (seq->type == LLM_J_STR) {
        if (item->type != LLM_J_STR) {
            return llm_jrt_fail(rt, "'in <string>' requires string as left "
                                "operand, not %s", llm_jv_type(item));
        }

        llm_jtry(llm_jrt_charge_search(rt, seq->u.s->len, item->u.s));

        return llm_js_find(seq->u.s, item->u.s, 0) != SIZE_MAX;
    }

    if (seq->type == LLM_J_DICT
        || (seq->type == LLM_J_VIEW && seq->u.view->kind == LLM_J_KEYS))
    {
        llm_jtry(llm_jdict_get(rt, seq->type == LLM_J_DICT ? seq->u.dict
                               : seq->u.view->dict, item, &found));

        return found != NULL;
    }

    if (!llm_jv_iterable(seq)) {
        return llm_jrt_fail(rt, "argument of type '%s' is not iterable",
                            llm_jv_type(seq));
    }

    llm_jtry(llm_jcur_init(rt, &cur, seq));

    while ((rc = llm_jcur_next(rt, &cur, &v)) == LLM_OK) {
        rc = llm_jv_equal(rt, &v, item);
        if (rc) {
            return rc;
        }
    }

    return rc == LLM_END ? 0 : LLM_ERROR;
}


int
llm_jpairs_sort(llm_jrt_t *rt, llm_jpair_t *v, size_t n, int reverse)
{
    int           cmp;
    size_t        width, i, left, right, middle, end;
    llm_jpair_t  *from, *to, *t;

    from = v;
    to = n > 1 ? llm_jrt_alloc(rt, n * sizeof(llm_jpair_t)) : NULL;

    if (n > 1 && to == NULL) {
        return LLM_ERROR;
    }

    for (width = 1; width < n; width *= 2) {
        for (i = 0; i < n; i = end) {
            left = i;
            middle = llm_min(i + width, n);
            right = middle;
            end = llm_min(middle + width, n);

            for (t = to + i; t < to + end; t++) {
                cmp = 0;

                if (left < middle && right < end
                    && (llm_jrt_charge(rt, 1) != LLM_OK
                        || llm_jv_order(rt, &from[right].key, &from[left].key,
                                        "<", &cmp) != LLM_OK))
                {
                    return LLM_ERROR;
                }

                cmp = reverse ? -cmp : cmp;

                *t = left < middle && (right == end || cmp >= 0)
                     ? from[left++] : from[right++];
            }
        }

        t = from;
        from = to;
        to = t;
    }

    if (from != v) {
        memcpy(v, from, n * sizeof(llm_jpair_t));
    }

    return LLM_OK;
}
