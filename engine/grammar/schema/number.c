/*
 * Numbers: the texts that the atoms of a branch allow.
 *
 * An integer is written without ".0".  With ".0" it would be an integer for
 * JSON Schema from draft 6 on, but not for many clients.  Large integers may
 * have an exponent.  See decimal.c for the writings.
 */

#include "engine/grammar/schema/decimal.h"

#include <float.h>

/* most digits before the dot in any writing, see decimal.c */
#define LLM_SCHEMA_MOST      308

/* most digits after the dot of a divisor that is not a power of ten */
#define LLM_SCHEMA_DECIMALS  3


/* an alternative costs as much as it has parts, so alternatives with the same
   number of parts are joined: sums[i] is NONE or has 2^i parts */

static int
llm_schema_number_enum(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_rx_t *rx, int *large)
{
    int                one;
    uint32_t           i;
    llm_rx_t           sums[32];
    const llm_flat_t  *c;
    llm_schema_dec_t   d;

    for (i = 0; i < llm_nelems(sums); i++) {
        sums[i] = LLM_RX_NONE;
    }

    one = a->kw == LLM_KW_CONST;
    c = one ? a->value : llm_flat_first(a->value);

    for (; c; c = one ? NULL : llm_flat_next(a->value, c)) {
        if (c->type != LLM_FLAT_INT && c->type != LLM_FLAT_DOUBLE) {
            continue;
        }

        if (llm_lex_now_us() > s->until_us) {
            return llm_schema_too_large(s);
        }

        llm_schema_dec(c, &d);
        *large |= !a->neg && d.point > LLM_SCHEMA_WHOLE;
        *rx = llm_schema_equal(s, &d, a->neg);

        for (i = 0; sums[i] != LLM_RX_NONE; i++) {
            *rx = llm_rx_or(s->pool, *rx, sums[i]);
            sums[i] = LLM_RX_NONE;
        }

        sums[i] = *rx;
    }

    *rx = LLM_RX_NONE;

    for (i = 0; i < llm_nelems(sums); i++) {
        *rx = llm_rx_or(s->pool, *rx, sums[i]);
    }

    return LLM_OK;
}


/* writes the n digits of i after the dot, n at most LLM_SCHEMA_DECIMALS; zeros
   at the end may be left out */

static void
llm_schema_decimals(char *part, uint32_t i, int n)
{
    int  k;

    part[0] = '.';

    for (k = n; k > 0; k--, i /= 10) {
        part[k] = (char) ('0' + i % 10);
    }

    while (part[n] == '0') {
        n--;
    }

    part[n + 1] = '\0';
}


/*
 * Multiples of a * 10^exp, in writings without exponent; a does not end with
 * 0.  If the divisor has digits after the dot, the number's whole part and
 * these digits together must be a multiple of a.
 */

static llm_rx_t
llm_schema_multiples(llm_schema_t *s, uint32_t a, int exp)
{
    char      part[LLM_SCHEMA_DECIMALS + 2];
    llm_rx_t  rx, nat, zeros, whole, behind;
    uint32_t  i, scale, need;

    nat = llm_schema_numbers_rx(s, LLM_NUM_NATURAL);
    zeros = llm_schema_digits(s, '0', '0', 0, LLM_SCHEMA_PART);
    behind = llm_rx_or(s->pool, LLM_RX_EMPTY,
                       llm_rx_cat(s->pool, llm_schema_text(s, ".0"), zeros));

    if (exp >= 0) {
        whole = nat;

        if (exp) {
            whole = llm_rx_and(s->pool, nat,
                               llm_rx_cat(s->pool,
                                   llm_schema_digits(s, '0', '9', 0,
                                                     LLM_RX_NO_MAX),
                                   llm_schema_digits(s, '0', '0',
                                                     (uint32_t) exp,
                                                     (uint32_t) exp)));
            whole = llm_rx_or(s->pool, whole, llm_schema_text(s, "0"));
        }

        if (a > 1) {
            whole = llm_rx_and(s->pool, whole,
                               llm_rx_residue(s->pool, a, 0));
        }

        return llm_rx_cat(s->pool, whole, behind);
    }

    if (a == 1) {
        rx = llm_schema_cat3(s, llm_schema_text(s, "."),
                             llm_schema_digits(s, '0', '9', 1,
                                               (uint32_t) -exp), zeros);

        return llm_rx_cat(s->pool, nat,
                          llm_rx_or(s->pool, LLM_RX_EMPTY, rx));
    }

    for (i = 0, scale = 1; i < (uint32_t) -exp; i++) {
        scale *= 10;
    }

    rx = LLM_RX_NONE;

    for (i = 0; i < scale; i++) {

        /* whole numbers n for which (n * scale + i) mod a == 0 */

        whole = LLM_RX_NONE;

        for (need = 0; need < a; need++) {
            if (((uint64_t) need * scale + i) % a == 0) {
                whole = llm_rx_or(s->pool, whole,
                                  llm_rx_residue(s->pool, a, need));
            }
        }

        if (whole == LLM_RX_NONE) {
            continue;
        }

        whole = llm_rx_and(s->pool, nat, whole);

        if (i == 0) {
            rx = llm_rx_or(s->pool, rx, llm_rx_cat(s->pool, whole, behind));
            continue;
        }

        llm_schema_decimals(part, i, -exp);

        rx = llm_rx_or(s->pool, rx,
                       llm_schema_cat3(s, whole, llm_schema_text(s, part),
                                       zeros));
    }

    return rx;
}


/* multiples in normal form with an exponent so large that all digits are
   before the dot; then only factors 2 and 5 of a matter */

static llm_rx_t
llm_schema_large_multiples(llm_schema_t *s, uint32_t a, int exp)
{
    int       n, tens;
    uint32_t  rest;
    llm_rx_t  rx, digits;

    rest = 1;

    for (tens = 0; rest % a != 0; tens++) {
        if (tens == 16) {
            return LLM_RX_NONE;
        }

        rest = rest * 10 % a;
    }

    rx = LLM_RX_NONE;

    for (n = 0; n <= 16; n++) {
        digits = llm_rx_cat(s->pool, llm_schema_text(s, "."),
                            llm_schema_digits(s, '0', '9', 1, (uint32_t) n));
        digits = llm_rx_or(s->pool, digits, LLM_RX_EMPTY);
        digits = llm_schema_cat3(s, llm_schema_digits(s, '1', '9', 1, 1),
                                 digits,
                                 llm_schema_exponent(s, n + exp + tens - 1,
                                                     1));
        rx = llm_rx_or(s->pool, rx, digits);
    }

    return rx;
}


static int
llm_schema_multiple_of(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_rx_t *rx)
{
    int               exp;
    uint32_t          m;
    llm_schema_dec_t  d;

    if (a->value->type != LLM_FLAT_INT && a->value->type != LLM_FLAT_DOUBLE) {
        return llm_schema_refuse(s, a->value, "it must be a number");
    }

    llm_schema_dec(a->value, &d);

    if (d.neg || d.n == 0) {
        return llm_schema_refuse(s, a->value, "it must be above 0");
    }

    exp = d.point - d.n;

    if (d.n > 4 || exp > 300 || (d.n == 1 && d.digits[0] == '1'
                                 ? exp < -300 : exp < -LLM_SCHEMA_DECIMALS))
    {
        return llm_schema_refuse(s, a->value, "a divisor of more than 4"
                                 " digits, or of more than 3 digits behind"
                                 " the point, is not supported");
    }

    m = (uint32_t) atoi(d.digits);
    *rx = llm_schema_multiples(s, m, exp);

    *rx = llm_rx_or(s->pool, *rx, llm_schema_large_multiples(s, m, exp));

    *rx = llm_rx_cat(s->pool, llm_rx_or(s->pool, LLM_RX_EMPTY,
                                        llm_schema_text(s, "-")), *rx);

    return LLM_OK;
}


/* keeps the stronger of two lower, or upper, bounds */

static void
llm_schema_bound_in(llm_schema_dec_t *best, int *excl, int *have,
    const llm_schema_dec_t *d, int d_excl, int lower)
{
    int  c;

    if (*have) {
        c = llm_schema_dec_cmp(d, best);
        c = lower ? c : -c;

        if (c < 0 || (c == 0 && !d_excl)) {
            return;
        }
    }

    *best = *d;
    *excl = d_excl;
    *have = 1;
}


typedef struct {
    llm_schema_dec_t  from;
    llm_schema_dec_t  to;
    int               from_excl;
    int               to_excl;
    int               has_from;
    int               has_to;
    llm_rx_t          rx;               /* further constraint */
    int               large;            /* 1: a bound or value has more digits
                                           than unbounded numbers may have */
    int               canonical;        /* 1: a number is excluded, so only
                                           writings that are compared exactly
                                           are allowed */
} llm_schema_number_t;


static llm_rx_t
llm_schema_signed(llm_schema_t *s, llm_rx_t rx)
{
    return llm_rx_cat(s->pool, llm_rx_or(s->pool, LLM_RX_EMPTY,
                                         llm_schema_text(s, "-")), rx);
}


static int
llm_schema_number_atom(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_schema_number_t *n)
{
    int                  lower, excl;
    llm_rx_t             one, some;
    const llm_flat_t    *v;
    llm_schema_dec_t     d;
    llm_schema_range_t   below;

    one = LLM_RX_NONE;

    switch (a->kw) {

    case LLM_KW_ENUM:
    case LLM_KW_CONST:
        if (llm_schema_number_enum(s, a, &one, &n->large) != LLM_OK) {
            return LLM_ERROR;
        }
        break;

    case LLM_KW_MULTIPLE_OF:
        if (llm_schema_multiple_of(s, a, &one) != LLM_OK) {
            return LLM_ERROR;
        }
        break;

    case LLM_KW_MINIMUM:
    case LLM_KW_MAXIMUM:
    case LLM_KW_EXCLUSIVE_MINIMUM:
    case LLM_KW_EXCLUSIVE_MAXIMUM:
        lower = a->kw == LLM_KW_MINIMUM || a->kw == LLM_KW_EXCLUSIVE_MINIMUM;
        excl = a->kw == LLM_KW_EXCLUSIVE_MINIMUM
               || a->kw == LLM_KW_EXCLUSIVE_MAXIMUM;

        if (excl && a->value->type == LLM_FLAT_BOOL) {
            return LLM_OK;
        }

        if (a->value->type != LLM_FLAT_INT
            && a->value->type != LLM_FLAT_DOUBLE)
        {
            return llm_schema_refuse(s, a->value, "it must be a number");
        }

        if (!excl) {
            v = llm_flat_get(a->schema, lower ? "exclusiveMinimum"
                                              : "exclusiveMaximum");
            excl = v && v->type == LLM_FLAT_BOOL && llm_flat_int(v);
        }

        if (a->neg) {
            lower = !lower;
            excl = !excl;
        }

        llm_schema_dec(a->value, &d);

        if (d.point > LLM_SCHEMA_MOST && lower == !d.neg) {
            return llm_schema_refuse(s, a->value, "a bound beyond 1e308 is not"
                                     " supported: no number would be left");
        }

        if (d.point > LLM_SCHEMA_MOST) {
            return LLM_OK;
        }

        n->large |= d.point >= LLM_SCHEMA_WHOLE;

        if (lower) {
            llm_schema_bound_in(&n->from, &n->from_excl, &n->has_from, &d,
                                excl, 1);
        } else {
            llm_schema_bound_in(&n->to, &n->to_excl, &n->has_to, &d, excl,
                                0);
        }

        return LLM_OK;

    default:
        return LLM_OK;
    }

    if (a->neg) {
        n->canonical = 1;
        one = llm_rx_not(s->pool, one);

        if (a->kw == LLM_KW_MULTIPLE_OF) {
            /* the multiples in writings with an exponent are not all known; of
               these only numbers below the divisor are allowed */

            llm_schema_dec(a->value, &d);
            below.from = NULL;
            below.to = &d;
            below.to_excl = 1;
            some = llm_rx_or(s->pool, llm_schema_side(s, &below),
                             llm_schema_numbers_rx(s, LLM_NUM_PLAIN));
            one = llm_rx_and(s->pool, one, llm_schema_signed(s, some));
        }
    }

    n->rx = llm_rx_and(s->pool, n->rx, one);

    return LLM_OK;
}


/* numbers of both signs in the range */

static llm_rx_t
llm_schema_signs(llm_schema_t *s, const llm_schema_number_t *n)
{
    llm_rx_t             rx;
    llm_schema_dec_t     from, to;
    llm_schema_range_t   r;

    r.from = n->has_from ? &n->from : NULL;
    r.from_excl = n->from_excl;
    r.to = n->has_to ? &n->to : NULL;
    r.to_excl = n->to_excl;

    rx = llm_schema_side(s, &r);

    from = n->to;
    to = n->from;
    from.neg = from.n && !from.neg;
    to.neg = to.n && !to.neg;

    r.from = n->has_to ? &from : NULL;
    r.from_excl = n->to_excl;
    r.to = n->has_from ? &to : NULL;
    r.to_excl = n->from_excl;

    return llm_rx_or(s->pool, rx,
                     llm_rx_cat(s->pool, llm_schema_text(s, "-"),
                                llm_schema_side(s, &r)));
}


/* digits of integers are compared as they are written; other writings by the
   double that they are read as */

static llm_rx_t
llm_schema_range(llm_schema_t *s, uint32_t types,
    const llm_schema_number_t *n)
{
    int                  moved;
    llm_rx_t             digits, rx;
    llm_schema_number_t  held;

    held = *n;
    moved = 0;

    /* only large integers have other writings */

    if (n->has_from
        && ((types & LLM_SCHEMA_FRACTION) || n->from.point > DBL_DIG))
    {
        moved |= llm_schema_dec_hold(&held.from, &held.from_excl, 1);
    }

    if (n->has_to
        && ((types & LLM_SCHEMA_FRACTION) || n->to.point > DBL_DIG))
    {
        moved |= llm_schema_dec_hold(&held.to, &held.to_excl, 0);
    }

    rx = llm_schema_signs(s, n);

    if (moved) {
        digits = llm_schema_signed(s,
                     llm_schema_numbers_rx(s, LLM_NUM_NATURAL
                                              + LLM_NUM_LARGE));
        rx = llm_rx_or(s->pool, llm_rx_and(s->pool, rx, digits),
                       llm_rx_and(s->pool, llm_schema_signs(s, &held),
                                  llm_rx_not(s->pool, digits)));
    }

    return rx;
}


/* the writings of all numbers of the types */

static llm_rx_t
llm_schema_number_domain(llm_schema_t *s, uint32_t types,
    const llm_schema_number_t *n)
{
    int       of;
    llm_rx_t  rx, nat, plain;

    of = n->large ? LLM_NUM_LARGE : 0;

    if ((types & LLM_SCHEMA_NUMBER) == LLM_SCHEMA_NUMBER) {
        of += n->canonical ? LLM_NUM_CANONICAL : LLM_NUM_ANY;
        rx = llm_schema_numbers_rx(s, of);

    } else if (types & LLM_SCHEMA_INT) {
        rx = llm_schema_numbers_rx(s, of + LLM_NUM_NATURAL);

        if (s->draft != LLM_DRAFT_4) {
            plain = llm_schema_numbers_rx(s, of + LLM_NUM_PLAIN);
            rx = llm_rx_or(s->pool, rx, llm_rx_and(s->pool,
                     llm_schema_numbers_rx(s, of + LLM_NUM_INTEGER),
                     llm_rx_not(s->pool, plain)));
        }

    } else if (s->draft == LLM_DRAFT_4) {
        nat = llm_schema_numbers_rx(s, of + LLM_NUM_NATURAL);
        rx = llm_rx_and(s->pool,
                        llm_schema_numbers_rx(s, of + LLM_NUM_CANONICAL),
                        llm_rx_not(s->pool, nat));

    } else {
        rx = llm_schema_numbers_rx(s, of + LLM_NUM_FRACTION);
    }

    return llm_schema_signed(s, rx);
}


int
llm_schema_number(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_rx_t *rx)
{
    llm_rx_t                  domain;
    llm_schema_number_t       n;
    const llm_schema_atom_t  *a;

    memset(&n, 0, sizeof(n));
    n.rx = LLM_RX_TEXT;

    for (a = b->atoms; a; a = a->prev) {
        if (llm_schema_number_atom(s, a, &n) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    domain = llm_schema_number_domain(s, b->types, &n);

    if (n.has_from || n.has_to) {
        *rx = llm_schema_range(s, b->types, &n);

        if ((b->types & LLM_SCHEMA_NUMBER) != LLM_SCHEMA_NUMBER
            || n.canonical)
        {
            *rx = llm_rx_and(s->pool, *rx, domain);
        }

    } else {
        *rx = domain;
    }

    *rx = llm_rx_and(s->pool, *rx, n.rx);

    if (n.large) {
        *rx = llm_rx_and(s->pool, *rx,
                         llm_rx_repeat(s->pool, LLM_RX_CHAR, 1,
                                       LLM_SCHEMA_LARGE));
    }

    return LLM_OK;
}
