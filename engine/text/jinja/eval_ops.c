/*
 * Operators, with Python's rules for integers of up to 64 bits: larger results
 * are an error.
 */

#include "engine/text/jinja/ast.h"

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

static int llm_jop_float(llm_jrt_t *rt, int op, double a, double b,
    llm_jv_t *res);


static int
llm_jop_int_pow(llm_jrt_t *rt, int64_t a, int64_t n, llm_jv_t *res)
{
    int64_t  r;

    if (n < 0) {
        return llm_jop_float(rt, LLM_JOP_POW, (double) a, (double) n, res);
    }

    for (r = 1; n; n >>= 1) {
        if (((n & 1) && __builtin_mul_overflow(r, a, &r))
            || (n > 1 && __builtin_mul_overflow(a, a, &a)))
        {
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
            llm_jtry(llm_jrt_charge(rt, 1));
            llm_jtry(llm_jb_add_str(&b, seq->u.s));
        }

        return llm_jb_done_as(&b, seq->u.s, res);
    }

    l = seq->u.list;

    if (llm_mul_overflow(l->n, (size_t) times, &all)) {
        return llm_jrt_limit(rt, "out of memory");
    }

    llm_jtry(llm_jrt_charge(rt, all));
    llm_jtry(llm_jv_list(rt, seq->type, all, res));

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

        /* Markup escapes other text that is joined to it, on either side */

        if (a->u.s->markup != b->u.s->markup) {
            llm_jtry(llm_jinja_escape(rt, a->u.s->markup ? b : a,
                                      a->u.s->markup ? &y : &x));
        }

        llm_jtry(llm_js_concat(rt, x.u.s, y.u.s, res));

        res->u.s->markup = a->u.s->markup || b->u.s->markup;

        return LLM_OK;
    }

    n = a->u.list->n + b->u.list->n;

    llm_jtry(llm_jrt_charge(rt, n));
    llm_jtry(llm_jv_list(rt, a->type, n, res));

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


int
llm_jinja_binary(llm_jrt_t *rt, int op, const llm_jv_t *a, const llm_jv_t *b,
    llm_jv_t *res)
{
    int  rc;

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
