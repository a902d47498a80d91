/*
 * Filters that make numbers: int, float, abs, round.  Text is read as
 * Python's int() and float() do.
 */

#include "engine/text/jinja/builtin.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>


/*
 * Writes the number's text to buf, NUL-terminated, without white space around
 * it and without underscores between digits; returns 0 if it cannot be a
 * number.
 */

static int
llm_jnum_text(const llm_js_t *s, char *buf, size_t size)
{
    size_t       i, n, len;
    const char  *p, *end, *q;

    p = llm_js_data(s);
    end = p + s->len;

    while ((n = llm_jc_space(p, end)) != 0) {
        p += n;
    }

    while (end > p) {
        q = llm_jc_prev(p, end);

        if (!llm_jc_space(q, end)) {
            break;
        }

        end = q;
    }

    len = (size_t) (end - p);

    for (i = 0, n = 0; i < len; i++) {
        if (p[i] == '\0' || n + 1 >= size) {
            return 0;
        }

        if (p[i] == '_') {
            if (i == 0 || i + 1 == len || p[i - 1] == '_'
                || strchr("+-.", p[i - 1]) || strchr("+-.", p[i + 1]))
            {
                return 0;
            }

            continue;
        }

        buf[n++] = p[i];
    }

    buf[n] = '\0';

    return n > 0;
}


/* 1; 0 if the text is no integer; LLM_ERROR if it is too large */

static int
llm_jnum_int(llm_jrt_t *rt, const llm_js_t *s, int64_t base, int64_t *res)
{
    char   buf[256], *p, *end;
    int    negative;

    if (!llm_jnum_text(s, buf, sizeof(buf))) {
        return 0;
    }

    p = buf;
    negative = *p == '-';
    p += *p == '-' || *p == '+';

    if (p[0] == '0' && p[1] && ((base == 16 && (p[1] | 0x20) == 'x')
                                || (base == 8 && (p[1] | 0x20) == 'o')
                                || (base == 2 && (p[1] | 0x20) == 'b')))
    {
        p += 2;
    }

    if (*p == '\0' || strspn(p, "0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(p))
    {
        return 0;
    }

    /* puts the sign in front again, in place of a prefix */

    if (negative) {
        *--p = '-';
    }

    errno = 0;
    *res = strtoll(p, &end, (int) base);

    if (*end) {
        return 0;
    }

    return errno ? llm_jrt_fail(rt, "integer is too large") : 1;
}


/* 1; 0 if the text is no float */

static int
llm_jnum_float(const llm_js_t *s, double *res)
{
    char   buf[256], *p, *end;

    if (!llm_jnum_text(s, buf, sizeof(buf))) {
        return 0;
    }

    p = buf + (*buf == '-' || *buf == '+');

    if (strspn(p, "0123456789.eE+-") != strlen(p)
        && strcasecmp(p, "inf") != 0 && strcasecmp(p, "infinity") != 0
        && strcasecmp(p, "nan") != 0)
    {
        return 0;
    }

    *res = strtod(buf, &end);

    return *end == '\0';
}


/* int(float): LLM_ERROR if the number is too large for 64 bits */

static int
llm_jnum_truncate(llm_jrt_t *rt, double f, int64_t *res)
{
    if (isnan(f) || isinf(f)) {
        return 0;
    }

    if (f >= 9223372036854775808.0 || f < -9223372036854775808.0) {
        return llm_jrt_fail(rt, "integer is too large");
    }

    *res = (int64_t) f;

    return 1;
}


int
llm_jfn_int(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int       rc;
    double    f;
    int64_t   base, i;
    llm_jv_t  v;

    v = args->v[0];
    base = llm_jarg_int(args, 2, 10);
    i = 0;
    rc = 0;

    if (base < 2 || base > 36) {
        base = 10;
    }

    if (v.type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, &v);
    }

    if (v.big) {
        *res = v;
        return LLM_OK;
    }

    if (llm_jv_integral(&v)) {
        i = v.u.i;
        rc = 1;

    } else if (v.type == LLM_J_FLOAT) {
        rc = llm_jnum_truncate(rt, v.u.f, &i);

    } else if (v.type == LLM_J_STR) {
        llm_jtry(llm_jrt_charge(rt, v.u.s->len * LLM_J_CLASSIFIED));

        rc = llm_jnum_int(rt, v.u.s, base, &i);

        if (rc == 0 && llm_jnum_float(v.u.s, &f)) {
            rc = llm_jnum_truncate(rt, f, &i);
        }
    }

    if (rc == 0) {
        *res = llm_jv_given(&args->v[1]) ? args->v[1] : llm_jv_int(0);
        return LLM_OK;
    }

    *res = llm_jv_int(i);
    res->tainted = v.tainted || v.type == LLM_J_STR;

    return rc > 0 ? LLM_OK : LLM_ERROR;
}


int
llm_jfn_float(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    double    f;
    llm_jv_t  v;

    v = args->v[0];

    if (v.type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, &v);
    }

    llm_jtry(v.type == LLM_J_STR && llm_jrt_charge(rt, v.u.s->len
                                                   * LLM_J_CLASSIFIED));

    if (llm_jv_number(&v)) {
        *res = llm_jv_float(llm_jv_as_double(&v));

    } else if (v.type == LLM_J_STR && llm_jnum_float(v.u.s, &f)) {
        *res = llm_jv_float(f);

    } else {
        *res = llm_jv_given(&args->v[1]) ? args->v[1] : llm_jv_float(0);
        return LLM_OK;
    }

    res->tainted = v.tainted || v.type == LLM_J_STR;

    return LLM_OK;
}


int
llm_jfn_abs(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  *v;

    v = &args->v[0];

    if (!llm_jv_number(v)) {
        return llm_jrt_fail(rt, "bad operand type for abs(): '%s'",
                            llm_jv_type(v));
    }

    return llm_jinja_unary(rt, llm_jv_as_double(v) < 0
                           || (v->type == LLM_J_FLOAT && signbit(v->u.f))
                           ? '-' : '+', v, res);
}


/* rounds half to even, exactly in decimal, as printf does */

static double
llm_jnum_round(double f, int64_t digits)
{
    char    buf[512];
    double  scale;

    if (isnan(f) || isinf(f) || digits > 30) {
        return f;
    }

    if (digits >= 0) {
        snprintf(buf, sizeof(buf), "%.*f", (int) digits, f);
        return strtod(buf, NULL);
    }

    if (digits < -308) {
        return copysign(0, f);
    }

    scale = pow(10, (double) -digits);

    return nearbyint(f / scale) * scale;
}


static int
llm_jnum_round_int(llm_jrt_t *rt, int64_t i, int64_t digits, llm_jv_t *res)
{
    int64_t  scale, r;

    scale = 1;

    for ( /* void */ ; digits < 0; digits++) {
        if (__builtin_mul_overflow(scale, 10, &scale)) {
            *res = llm_jv_int(0);
            return LLM_OK;
        }
    }

    r = i % scale;
    r += r < 0 ? scale : 0;
    i -= r;

    if (r > scale - r || (r == scale - r && scale > 1 && (i / scale) % 2)) {
        if (__builtin_add_overflow(i, scale, &i)) {
            return llm_jrt_fail(rt, "integer is too large");
        }
    }

    *res = llm_jv_int(i);

    return LLM_OK;
}


int
llm_jfn_round(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    double     f, scale;
    int64_t    digits;
    llm_jv_t   v;
    llm_js_t  *method;

    v = args->v[0];
    digits = llm_jarg_int(args, 1, 0);
    method = llm_jarg_str(args, 2);

    llm_jtry(llm_jrt_charge(rt, LLM_J_FLOAT_TEXT));

    if (!llm_jv_number(&v)) {
        return llm_jrt_fail(rt, "type %s doesn't define __round__ method",
                            llm_jv_type(&v));
    }

    if (method && !llm_js_is(method, "common")) {
        if (!llm_js_is(method, "ceil") && !llm_js_is(method, "floor")) {
            return llm_jrt_fail(rt, "method must be common, ceil or floor");
        }

        scale = pow(10, (double) digits);
        f = llm_jv_as_double(&v) * scale;

        if (isnan(f) || isinf(f)) {
            return llm_jrt_fail(rt, "cannot convert float to integer");
        }

        *res = llm_jv_float((llm_js_is(method, "ceil") ? ceil(f) : floor(f))
                            / scale);

    } else if (v.type == LLM_J_FLOAT) {
        *res = llm_jv_float(llm_jnum_round(v.u.f, digits));

    } else if (llm_jnum_round_int(rt, v.u.i, digits, res) != LLM_OK) {
        return LLM_ERROR;
    }

    res->tainted = v.tainted;

    return LLM_OK;
}
