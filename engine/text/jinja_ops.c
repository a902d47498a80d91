/*
 * Operators, attributes, items and slices, with Python's rules as far as
 * 64-bit integers go: what would be larger is an error.
 */

#include "engine/text/jinja_ast.h"

#include <math.h>


static int
llm_jop_fail(llm_jrt_t *rt, int op, const llm_jv_t *a, const llm_jv_t *b)
{
    return llm_jrt_fail(rt, "unsupported operand type(s) for %c%s: '%s' and "
                        "'%s'", op & 0xff, op >> 8 == '*' ? "*"
                        : op >> 8 == '/' ? "/" : "",
                        llm_jv_type(a), llm_jv_type(b));
}


static int
llm_jop_overflow(llm_jrt_t *rt)
{
    return llm_jrt_fail(rt, "integer is too large");
}


/* numbers */

static int
llm_jop_int_pow(llm_jrt_t *rt, int64_t a, int64_t n, llm_jv_t *res)
{
    int64_t  r;

    if (n < 0) {
        if (a == 0) {
            return llm_jrt_fail(rt, "0.0 cannot be raised to a negative "
                                "power");
        }

        *res = llm_jv_float(pow((double) a, (double) n));
        return LLM_OK;
    }

    r = 1;

    /* other bases overflow within 63 rounds */

    if (a == 0 || a == 1 || a == -1) {
        r = n == 0 ? 1 : (a == -1 && n % 2 == 0) ? 1 : a;
        n = 0;
    }

    for ( /* void */ ; n; n--) {
        if (__builtin_mul_overflow(r, a, &r)) {
            return llm_jop_overflow(rt);
        }
    }

    *res = llm_jv_int(r);

    return LLM_OK;
}


static int
llm_jop_int(llm_jrt_t *rt, int op, int64_t a, int64_t b, llm_jv_t *res)
{
    int      overflow;
    int64_t  r;

    overflow = 0;
    r = 0;

    switch (op) {

    case '+':
        overflow = __builtin_add_overflow(a, b, &r);
        break;

    case '-':
        overflow = __builtin_sub_overflow(a, b, &r);
        break;

    case '*':
        overflow = __builtin_mul_overflow(a, b, &r);
        break;

    case LLM_JOP_POW:
        return llm_jop_int_pow(rt, a, b, res);

    default:
        if (b == 0) {
            return llm_jrt_fail(rt, op == '/' ? "division by zero"
                                : "integer division or modulo by zero");
        }

        if (op == '/') {
            *res = llm_jv_float((double) a / (double) b);
            return LLM_OK;
        }

        if (b == -1) {
            overflow = op != '%' && __builtin_sub_overflow(0, a, &r);
            break;
        }

        r = op == '%' ? a % b : a / b;

        if (a % b != 0 && (a < 0) != (b < 0)) {
            r = op == '%' ? r + b : r - 1;
        }

        break;
    }

    if (overflow) {
        return llm_jop_overflow(rt);
    }

    *res = llm_jv_int(r);

    return LLM_OK;
}


static int
llm_jop_float(llm_jrt_t *rt, int op, double a, double b, llm_jv_t *res)
{
    double  r, m;

    switch (op) {

    case '+':
        r = a + b;
        break;

    case '-':
        r = a - b;
        break;

    case '*':
        r = a * b;
        break;

    case LLM_JOP_POW:
        if (a == 0 && b < 0) {
            return llm_jrt_fail(rt, "0.0 cannot be raised to a negative "
                                "power");
        }

        r = pow(a, b);

        if (isnan(r) && !isnan(a) && !isnan(b)) {
            return llm_jrt_fail(rt, "the power is a complex number");
        }

        if (isinf(r) && !isinf(a) && !isinf(b)) {
            return llm_jrt_fail(rt, "the power is too large");
        }

        break;

    default:
        if (b == 0) {
            return llm_jrt_fail(rt, op == '/' ? "float division by zero"
                                : op == '%' ? "float modulo"
                                : "float floor division by zero");
        }

        if (op == '/') {
            r = a / b;
            break;
        }

        m = fmod(a, b);

        if (m != 0 && (b < 0) != (m < 0)) {
            m += b;

        } else if (m == 0) {
            m = copysign(0, b);
        }

        if (op == '%') {
            r = m;
            break;
        }

        r = (a - m) / b;
        r = r ? (r - floor(r) > 0.5 ? floor(r) + 1 : floor(r))
              : copysign(0, a / b);
        break;
    }

    *res = llm_jv_float(r);

    return LLM_OK;
}


/* sequences */

static int
llm_jop_repeat(llm_jrt_t *rt, const llm_jv_t *seq, int64_t times,
    llm_jv_t *res)
{
    size_t        i, n, all;
    llm_jb_t      b;
    llm_jlist_t  *l;

    times = llm_max(times, 0);

    if (seq->type == LLM_J_STR) {
        llm_jb_init(&b, rt, 0);

        if (seq->u.s->len == 0) {
            times = 0;
        }

        while (times--) {
            if (llm_jrt_charge(rt, 1) != LLM_OK
                || llm_jb_add_str(&b, seq->u.s) != LLM_OK)
            {
                return LLM_ERROR;
            }
        }

        if (llm_jb_done(&b, res) != LLM_OK) {
            return LLM_ERROR;
        }

        res->u.s->markup = seq->u.s->markup;

        return LLM_OK;
    }

    l = seq->u.list;

    if (llm_mul_overflow(l->n, (size_t) times, &all)) {
        return llm_jrt_limit(rt, "out of memory");
    }

    if (llm_jrt_charge(rt, all) != LLM_OK
        || llm_jv_list(rt, seq->type, all, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (n = 0; n < all; n += l->n) {
        for (i = 0; i < l->n; i++) {
            res->u.list->v[n + i] = l->v[i];
        }
    }

    res->u.list->n = all;

    return LLM_OK;
}


static int
llm_jop_add(llm_jrt_t *rt, const llm_jv_t *a, const llm_jv_t *b,
    llm_jv_t *res)
{
    size_t        n;
    llm_jv_t      x, y;
    llm_jlist_t  *l;

    if (a->type == LLM_J_STR) {
        x = *a;
        y = *b;

        /* Markup takes in other text escaped, from either side */

        if (a->u.s->markup != b->u.s->markup
            && llm_jinja_escape(rt, a->u.s->markup ? b : a,
                                a->u.s->markup ? &y : &x) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (llm_js_concat(rt, x.u.s, y.u.s, res) != LLM_OK) {
            return LLM_ERROR;
        }

        res->u.s->markup = a->u.s->markup || b->u.s->markup;

        return LLM_OK;
    }

    n = a->u.list->n + b->u.list->n;

    if (llm_jrt_charge(rt, n) != LLM_OK
        || llm_jv_list(rt, a->type, n, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    l = res->u.list;

    if (a->u.list->n) {
        memcpy(l->v, a->u.list->v, a->u.list->n * sizeof(llm_jv_t));
    }

    if (b->u.list->n) {
        memcpy(l->v + a->u.list->n, b->u.list->v,
               b->u.list->n * sizeof(llm_jv_t));
    }

    l->n = n;

    return LLM_OK;
}


#define llm_jv_sequence(v)                                                   \
    ((v)->type == LLM_J_STR || (v)->type == LLM_J_LIST                       \
     || (v)->type == LLM_J_TUPLE)


int
llm_jinja_binary(llm_jrt_t *rt, int op, const llm_jv_t *a, const llm_jv_t *b,
    llm_jv_t *res)
{
    int          rc;
    llm_jargs_t  args;

    if (llm_jv_number(a) && llm_jv_number(b)) {
        if (a->type == LLM_J_FLOAT || b->type == LLM_J_FLOAT) {
            rc = llm_jop_float(rt, op, llm_jv_as_double(a),
                               llm_jv_as_double(b), res);

        } else {
            rc = llm_jop_int(rt, op, a->u.i, b->u.i, res);
        }

        res->tainted = a->tainted || b->tainted;

        return rc;
    }

    if (op == '%' && a->type == LLM_J_STR) {
        memset(&args, 0, sizeof(args));
        args.v = (llm_jv_t *) b;
        args.n = 1;

        if (b->type == LLM_J_TUPLE) {
            args.v = b->u.list->v;
            args.n = b->u.list->n;
        }

        return llm_jinja_percent(rt, a, b, &args, res);
    }

    if (a->type == LLM_J_UNDEF || b->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, a->type == LLM_J_UNDEF ? a : b);
    }

    if (op == '+' && a->type == b->type && llm_jv_sequence(a)) {
        return llm_jop_add(rt, a, b, res);
    }

    if (op == '*' && llm_jv_sequence(a) && llm_jv_integral(b)) {
        return llm_jop_repeat(rt, a, b->u.i, res);
    }

    if (op == '*' && llm_jv_sequence(b) && llm_jv_integral(a)) {
        return llm_jop_repeat(rt, b, a->u.i, res);
    }

    if (op == '+' && llm_jv_sequence(a)) {
        return llm_jrt_fail(rt, "can only concatenate %s (not \"%s\") to %s",
                            llm_jv_type(a), llm_jv_type(b), llm_jv_type(a));
    }

    return llm_jop_fail(rt, op, a, b);
}


int
llm_jinja_unary(llm_jrt_t *rt, int op, const llm_jv_t *a, llm_jv_t *res)
{
    int64_t  i;

    if (a->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, a);
    }

    if (!llm_jv_number(a)) {
        return llm_jrt_fail(rt, "bad operand type for unary %c: '%s'", op,
                            llm_jv_type(a));
    }

    if (a->type == LLM_J_FLOAT) {
        *res = llm_jv_float(op == '-' ? -a->u.f : a->u.f);

    } else {
        i = a->u.i;

        if (op == '-' && __builtin_sub_overflow(0, i, &i)) {
            return llm_jop_overflow(rt);
        }

        *res = llm_jv_int(i);
    }

    res->tainted = a->tainted;

    return LLM_OK;
}


/*
 * A method, or what else hangs on the object; MISSING if there is none.  A
 * method that would change the object gives an undefined value, as the
 * sandbox has it.
 */

static int
llm_jop_attribute(llm_jrt_t *rt, const llm_jv_t *obj, const llm_js_t *name,
    llm_jv_t *res)
{
    llm_jv_t           *found;
    const llm_jfunc_t  *f;

    *res = llm_jv_of(LLM_J_MISSING);

    if (obj->type == LLM_J_LOOP) {
        if (llm_jloop_attr(rt, obj->u.loop, name, res) != LLM_OK) {
            return LLM_ERROR;
        }

        if (llm_jv_given(res)) {
            return LLM_OK;
        }
    }

    if (obj->type == LLM_J_NS) {
        found = llm_jdict_gets(obj->u.dict, name);
        *res = found ? *found : *res;

        return LLM_OK;
    }

    if (obj->type == LLM_J_TUPLE && obj->u.list->group
        && (llm_js_is(name, "grouper") || llm_js_is(name, "list")))
    {
        *res = obj->u.list->v[llm_js_is(name, "list")];
        return LLM_OK;
    }

    if (obj->type == LLM_J_CYCLER && llm_js_is(name, "current")) {
        *res = obj->u.cycle->items.v[obj->u.cycle->pos];
        return LLM_OK;
    }

    f = llm_jinja_method(obj, name);

    if (f == NULL) {
        return LLM_OK;
    }

    if (f->forbidden & (1u << obj->type)) {
        return llm_jv_undef(rt, "access to a method that changes a list or "
                            "dict is unsafe", res);
    }

    *res = llm_jv_of(LLM_J_METHOD);
    res->u.bound = llm_jrt_alloc(rt, sizeof(llm_jbound_t));

    if (res->u.bound == NULL) {
        return LLM_ERROR;
    }

    res->u.bound->func = f;
    res->u.bound->self = *obj;

    return LLM_OK;
}


/* obj[index] proper; MISSING if there is none */

static int
llm_jop_item(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *index,
    llm_jv_t *res)
{
    int64_t    i, n;
    size_t     start, end;
    llm_jv_t  *found;

    *res = llm_jv_of(LLM_J_MISSING);

    if (obj->type == LLM_J_DICT) {
        if (!llm_jv_hashable(index)) {
            return LLM_OK;
        }

        if (llm_jdict_get(rt, obj->u.dict, index, &found) != LLM_OK) {
            return LLM_ERROR;
        }

        *res = found ? *found : *res;

        return LLM_OK;
    }

    if (!llm_jv_integral(index)
        || !(llm_jv_sequence(obj) || obj->type == LLM_J_RANGE))
    {
        return LLM_OK;
    }

    i = index->u.i;
    n = llm_jv_len(obj);
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
        if (llm_jrt_charge(rt, start) != LLM_OK) {
            return LLM_ERROR;
        }

        (void) llm_jc_decode(llm_js_data(obj->u.s) + start,
                             llm_js_data(obj->u.s) + obj->u.s->len, &end);
        end += start;
    }

    return llm_js_slice(rt, obj->u.s, start, end, res);
}


/* obj.name: the attribute, else the item */

int
llm_jinja_getattr(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *name,
    llm_jv_t *res)
{
    if (obj->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, obj);
    }

    if (llm_jop_attribute(rt, obj, name->u.s, res) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_jv_given(res)) {
        return LLM_OK;
    }

    if (llm_jop_item(rt, obj, name, res) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jv_given(res) ? LLM_OK : llm_jv_undef_of(rt, obj, name, res);
}


/* obj[index]: the item, else the attribute */

int
llm_jinja_getitem(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *index,
    llm_jv_t *res)
{
    if (obj->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, obj);
    }

    if (llm_jop_item(rt, obj, index, res) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_jv_given(res)) {
        return LLM_OK;
    }

    if (index->type == LLM_J_STR
        && llm_jop_attribute(rt, obj, index->u.s, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_jv_given(res) ? LLM_OK : llm_jv_undef_of(rt, obj, index, res);
}


/* slices */

static int
llm_jop_bound(llm_jrt_t *rt, const llm_jv_t *v, int64_t *res)
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


/* a bound as Python clamps it to a sequence of n */

static int64_t
llm_jop_clamp(int64_t i, int64_t n, int64_t step)
{
    if (i < 0) {
        i = i < -n ? -1 : i + n;

        return i < 0 ? (step < 0 ? -1 : 0) : i;
    }

    return i >= n ? (step < 0 ? n - 1 : n) : i;
}


static int
llm_jop_slice_str(llm_jrt_t *rt, llm_js_t *s, int64_t start, int64_t step,
    int64_t count, llm_jv_t *res)
{
    size_t       from, to, *at, i, n, len;
    llm_jb_t     b;
    const char  *p, *end;

    if (llm_jrt_charge(rt, s->len / 16 + (size_t) count) != LLM_OK) {
        return LLM_ERROR;
    }

    if (step == 1 || count == 0) {
        from = llm_js_offset(s, (size_t) start);
        to = s->chars == s->len ? from + (size_t) count
             : llm_js_offset(s, (size_t) (start + count));

        return llm_js_slice(rt, s, from, count ? to : from, res);
    }

    /* where every character begins */

    n = llm_js_chars(s);

    if (llm_jrt_charge(rt, n) != LLM_OK) {
        return LLM_ERROR;
    }

    at = llm_jrt_alloc(rt, (n + 1) * sizeof(size_t));
    if (at == NULL) {
        return LLM_ERROR;
    }

    p = llm_js_data(s);
    end = p + s->len;

    for (i = 0; p < end; i++, p += len) {
        at[i] = (size_t) (p - llm_js_data(s));
        (void) llm_jc_decode(p, end, &len);
    }

    at[i] = s->len;

    llm_jb_init(&b, rt, 0);

    for ( /* void */ ; count; count--, start += step) {
        if (llm_jb_add_range(&b, s, at[start], at[start + 1]) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (llm_jb_done(&b, res) != LLM_OK) {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}


int
llm_jinja_slice(llm_jrt_t *rt, const llm_jv_t *obj, const llm_jv_t *start,
    const llm_jv_t *stop, const llm_jv_t *step, llm_jv_t *res)
{
    int64_t       n, from, to, by, count, i;
    llm_jrange_t *r;

    if (obj->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, obj);
    }

    if (!llm_jv_sequence(obj) && obj->type != LLM_J_RANGE) {
        return llm_jrt_fail(rt, "'%s' object cannot be sliced",
                            llm_jv_type(obj));
    }

    n = llm_jv_len(obj);
    by = 1;

    if (llm_jop_bound(rt, step, &by) != LLM_OK) {
        return LLM_ERROR;
    }

    if (by == 0) {
        return llm_jrt_fail(rt, "slice step cannot be zero");
    }

    from = by < 0 ? INT64_MAX : 0;
    to = by < 0 ? INT64_MIN : INT64_MAX;

    if (llm_jop_bound(rt, start, &from) != LLM_OK
        || llm_jop_bound(rt, stop, &to) != LLM_OK)
    {
        return LLM_ERROR;
    }

    from = llm_jop_clamp(from, n, by);
    to = llm_jop_clamp(to, n, by);
    by = llm_max(llm_min(by, n + 1), -n - 1);
    count = by > 0 ? (to - from + by - 1) / by : (from - to - by - 1) / -by;
    count = (by > 0 ? to > from : from > to) ? count : 0;

    if (obj->type == LLM_J_STR) {
        return llm_jop_slice_str(rt, obj->u.s, from, by, count, res);
    }

    if (obj->type == LLM_J_RANGE) {
        *res = llm_jv_of(LLM_J_RANGE);
        r = llm_jrt_alloc(rt, sizeof(llm_jrange_t));
        if (r == NULL) {
            return LLM_ERROR;
        }

        /* bounds that are never reached may wrap */

        r->start = (int64_t) ((uint64_t) obj->u.range->start
                   + (uint64_t) from * (uint64_t) obj->u.range->step);
        r->stop = (int64_t) ((uint64_t) obj->u.range->start
                  + (uint64_t) to * (uint64_t) obj->u.range->step);
        r->step = (int64_t) ((uint64_t) obj->u.range->step * (uint64_t) by);
        r->n = count;
        res->u.range = r;

        return LLM_OK;
    }

    if (llm_jrt_charge(rt, (size_t) count) != LLM_OK
        || llm_jv_list(rt, obj->type, (size_t) count, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < count; i++) {
        res->u.list->v[i] = obj->u.list->v[from + i * by];
    }

    res->u.list->n = (size_t) count;

    return LLM_OK;
}
