/*
 * Attributes, items and slices.
 */

#include "engine/text/jinja/ast.h"


/*
 * A method, or another attribute of the object; MISSING if there is none.  A
 * method that is refused gives an undefined value, as in the sandbox.
 */

static int
llm_jacc_attribute(llm_jrt_t *rt, const llm_jv_t *obj, const llm_js_t *name,
    llm_jv_t *res)
{
    llm_jv_t           *found;
    const llm_jfunc_t  *f;

    *res = llm_jv_of(LLM_J_MISSING);

    if (obj->type == LLM_J_LOOP) {
        llm_jtry(llm_jloop_attr(rt, obj->u.loop, name, res));

        if (llm_jv_given(res)) {
            return LLM_OK;
        }
    }

    if (obj->type == LLM_J_NS) {
        found = llm_jdict_gets(obj->u.dict, name);
        *res = found ? *found : *res;

        return LLM_OK;
    }

    if (obj->type == LLM_J_MACRO && llm_js_is(name, "name")
        && obj->u.macro->node->value.type == LLM_J_STR)
    {
        *res = obj->u.macro->node->value;
        return LLM_OK;
    }

    f = llm_jinja_method(obj, name);

    if (f == NULL) {
        return LLM_OK;
    }

    if (f->fn == NULL) {
        return llm_jv_undef(rt, "access to this method of a list or dict is "
                            "refused", res);
    }

    *res = llm_jv_of(LLM_J_METHOD);
    llm_jnew(rt, res->u.bound, sizeof(llm_jbound_t));

    res->u.bound->func = f;
    res->u.bound->self = *obj;

    return LLM_OK;
}


/* obj[index] without attributes; MISSING if there is no such item */

static int
llm_jacc_item(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *index,
    llm_jv_t *res)
{
    int64_t    i, n;
    size_t     start, end;
    llm_jv_t  *found;

    *res = llm_jv_of(LLM_J_MISSING);

    if (obj->type == LLM_J_DICT) {
        if (index->type == LLM_J_LIST || index->type == LLM_J_DICT) {
            return LLM_OK;
        }

        llm_jtry(llm_jdict_get(rt, obj->u.dict, index, &found));

        *res = found ? *found : *res;

        return LLM_OK;
    }

    if (!llm_jv_integral(index)
        || !(llm_jv_sequence(obj) || obj->type == LLM_J_RANGE))
    {
        return LLM_OK;
    }

    llm_jtry(llm_jv_count(rt, obj, &n));
    i = index->u.i;
    i += i < 0 ? n : 0;

    if (i < 0 || i >= n) {
        return LLM_OK;
    }

    if (obj->type == LLM_J_RANGE) {
        *res = llm_jv_int(obj->u.range->start + i * obj->u.range->step);
        return LLM_OK;
    }

    if (obj->type != LLM_J_STR) {
        *res = obj->u.list->v[i];
        return LLM_OK;
    }

    start = llm_js_offset(obj->u.s, (size_t) i);
    end = start + 1;

    if (obj->u.s->chars != obj->u.s->len) {
        llm_jtry(llm_jrt_charge(rt, start * LLM_J_DECODED));

        (void) llm_jc_decode(llm_js_data(obj->u.s) + start,
                             llm_js_data(obj->u.s) + obj->u.s->len, &end);
        end += start;
    }

    return llm_js_slice(rt, obj->u.s, start, end, res);
}


/* obj.name: the attribute or else the item */

int
llm_jinja_getattr(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *name,
    llm_jv_t *res)
{
    if (obj->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, obj);
    }

    llm_jtry(llm_jacc_attribute(rt, obj, name->u.s, res));

    if (llm_jv_given(res)) {
        return LLM_OK;
    }

    llm_jtry(llm_jacc_item(rt, obj, name, res));

    return llm_jv_given(res) ? LLM_OK : llm_jv_undef_of(rt, obj, name, res);
}


/* obj[index]: the item or else the attribute */

int
llm_jinja_getitem(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *index,
    llm_jv_t *res)
{
    if (obj->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, obj);
    }

    llm_jtry(llm_jacc_item(rt, obj, index, res));

    if (llm_jv_given(res)) {
        return LLM_OK;
    }

    llm_jtry(index->type == LLM_J_STR && llm_jacc_attribute(rt, obj,
                                                            index->u.s, res));

    return llm_jv_given(res) ? LLM_OK : llm_jv_undef_of(rt, obj, index, res);
}


/* slices */

static int
llm_jacc_bound(llm_jrt_t *rt, const llm_jv_t *v, int64_t *res)
{
    if (v->type == LLM_J_NONE) {
        return LLM_OK;
    }

    if (!llm_jv_integral(v)) {
        return llm_jrt_fail(rt, "slice indices must be integers or None");
    }

    *res = v->u.i;

    return LLM_OK;
}


/* a bound, clamped to a sequence of n items as in Python */

static int64_t
llm_jacc_clamp(int64_t i, int64_t n, int64_t step)
{
    if (i < 0) {
        i = i < -n ? -1 : i + n;

        return i < 0 ? (step < 0 ? -1 : 0) : i;
    }

    return i >= n ? (step < 0 ? n - 1 : n) : i;
}


static int
llm_jacc_slice_str(llm_jrt_t *rt, const llm_jv_t *v, int64_t start,
    int64_t step, int64_t count, llm_jv_t *res)
{
    size_t        from, to;
    llm_jb_t      b;
    llm_js_t     *s;
    llm_jlist_t   chars;

    s = v->u.s;
    llm_jtry(llm_jrt_charge(rt, s->len * LLM_J_DECODED + (size_t) count));

    if (count == 0 || step == 1) {
        from = count ? llm_js_offset(s, (size_t) start) : 0;
        to = count ? llm_js_offset(s, (size_t) (start + count)) : 0;

        return llm_js_slice(rt, s, from, to, res);
    }

    llm_jtry(llm_jv_items(rt, v, &chars));
    llm_jb_init(&b, rt, 0);

    for ( /* void */ ; count; count--, start += step) {
        llm_jtry(llm_jb_add_str(&b, chars.v[start].u.s));
    }

    return llm_jb_done_as(&b, s, res);
}


int
llm_jinja_slice(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *start,
    const llm_jv_t *stop, const llm_jv_t *step, llm_jv_t *res)
{
    int64_t  n, from, to, by, count, i;

    if (obj->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, obj);
    }

    if (!llm_jv_sequence(obj)) {
        return llm_jrt_fail(rt, "'%s' object cannot be sliced",
                            llm_jv_type(obj));
    }

    by = 1;
    llm_jtry(llm_jv_count(rt, obj, &n));
    llm_jtry(llm_jacc_bound(rt, step, &by));

    if (by == 0) {
        return llm_jrt_fail(rt, "slice step cannot be zero");
    }

    from = by < 0 ? INT64_MAX : 0;
    to = by < 0 ? INT64_MIN : INT64_MAX;

    llm_jtry(llm_jacc_bound(rt, start, &from));
    llm_jtry(llm_jacc_bound(rt, stop, &to));

    from = llm_jacc_clamp(from, n, by);
    to = llm_jacc_clamp(to, n, by);
    by = llm_max(llm_min(by, n + 1), -n - 1);
    count = by > 0 ? (to - from + by - 1) / by : (from - to - by - 1) / -by;
    count = (by > 0 ? to > from : from > to) ? count : 0;

    if (obj->type == LLM_J_STR) {
        return llm_jacc_slice_str(rt, obj, from, by, count, res);
    }

    llm_jtry(llm_jrt_charge(rt, (size_t) count));
    llm_jtry(llm_jv_list(rt, obj->type, (size_t) count, res));

    for (i = 0; i < count; i++) {
        res->u.list->v[i] = obj->u.list->v[from + i * by];
    }

    res->u.list->n = (size_t) count;

    return LLM_OK;
}
