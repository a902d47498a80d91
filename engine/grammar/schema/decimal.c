/*
 * The texts of numbers that are equal to a decimal, above or below it.
 *
 * A number without an exponent is compared exactly, digit by digit.  A number
 * with an exponent is accepted in any form where its value does not matter.
 * Where there are bounds it must be in its normal form (one digit that is not
 * 0, then the fraction, as Python and JavaScript write it), for which bounds
 * are exact, too.
 */

#include "engine/grammar/schema/decimal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>


/* Exponents are bounded by what doubles hold: a larger one would be read as no
   number, a smaller one as 0.  EXP is for any number before it, LONE for one
   digit and its fraction. */
#define NAT       "(?:0|[1-9][0-9]{0,39})"
#define LARGE     "(?:0|[1-9][0-9]{0,61})"
#define FRACTION  "(?:\\.[0-9]{1,20})?"
#define EXP       "[eE][+-]?0?[0-9]{1,2}"
#define HUNDREDS  "[12][0-9]{2}|30[0-7]"
#define LONE      "[1-9]" FRACTION "[eE][+-]?(?:0{0,2}[0-9]{1,2}|" HUNDREDS ")"
#define SIZE      400                   /* most digits of a number written
                                           out */

typedef struct {
    char         whole[SIZE];
    char         part[SIZE];            /* digits without zeros at the end */
    int          exp;                   /* exponent of the normal form */
    char         lead[2];
    char         rest[64];
} llm_schema_written_t;

#define NUMBERS(nat)                                                       \
    nat FRACTION "(?:" EXP ")?|" LONE,                                     \
    "0(?:\\.0{1,20})?(?:" EXP ")?",                                        \
    "(?:[1-9][0-9]{0,39}" FRACTION "|0\\.[0-9]{0,20}[1-9][0-9]{0,20})"     \
        "(?:" EXP ")?|" LONE,                                              \
    nat "(?:\\.0)?"                                                        \
        "|[1-9](?:\\.[0-9]{1,16})?[eE]\\+?0?(?:1[6-9]|[2-9][0-9]"          \
        "|" HUNDREDS ")",                                                  \
    nat "\\.[0-9]{0,20}[1-9][0-9]{0,20}"                                   \
        "|[1-9]" FRACTION "[eE]-0?(?:[1-9][0-9]?|" HUNDREDS ")",           \
    nat,                                                                   \
    nat FRACTION "|" LONE,                                                 \
    nat FRACTION

static const char *const  llm_schema_numbers[] = {
    NUMBERS(NAT),
    NUMBERS(LARGE),
    "[eE][+-]?0{0,2}(?:[0-9]{1,2}|" HUNDREDS ")"
};


llm_rx_t
llm_schema_numbers_rx(llm_schema_t *s, int i)
{
    const char  *p;

    p = llm_schema_numbers[i];

    if (s->numbers[i] == LLM_RX_NONE
        && llm_rx_parse(s->pool, p, strlen(p), LLM_RX_WHOLE, &s->numbers[i],
                        NULL) != LLM_OK)
    {
        s->numbers[i] = LLM_RX_NONE;
    }

    return s->numbers[i];
}


/* text: digits, with a point after the first one unless whole */

static void
llm_schema_dec_text(const char *text, int whole, int exp, llm_schema_dec_t *d)
{
    int  i;

    memset(d, 0, sizeof(llm_schema_dec_t));
    d->neg = text[0] == '-';
    d->point = exp + 1;

    for (i = d->neg; text[i]; i++) {
        if (text[i] == '.') {
            continue;
        }

        if (d->n == 0 && text[i] == '0') {
            d->point -= !whole;
            continue;
        }

        d->digits[d->n++] = text[i];
    }

    if (whole) {
        d->point = d->n;
    }

    while (d->n && d->digits[d->n - 1] == '0') {
        d->n--;
    }

    d->digits[d->n] = '\0';

    if (d->n == 0) {
        d->neg = 0;
        d->point = 0;
    }
}


/* the shortest decimal that is read as this number */

static void
llm_schema_dec_double(double v, llm_schema_dec_t *d)
{
    int   precision;
    char  text[72], *e;

    for (precision = 14; precision < 17; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }

    e = strchr(text, 'e');

    if (e) {
        *e++ = '\0';
    }

    llm_schema_dec_text(text, 0, e ? atoi(e) : 0, d);
}


void
llm_schema_dec(const llm_flat_t *v, llm_schema_dec_t *d)
{
    char       text[72];
    llm_str_t  big;

    big = llm_flat_digits(v);

    if (v->type == LLM_FLAT_INT) {
        snprintf(text, sizeof(text), "%lld", (long long) llm_flat_int(v));

    } else if (big.len && big.len < 64) {
        snprintf(text, sizeof(text), "%.*s", (int) big.len, big.data);

    } else {
        llm_schema_dec_double(llm_flat_double(v), d);
        return;
    }

    llm_schema_dec_text(text, 1, 0, d);
}


/* stores the double nearest to d, and returns whether it is below d (-1),
   equal or above.  Only integers are given with more digits than doubles
   have */

static int
llm_schema_dec_nearest(const llm_schema_dec_t *d, double *v)
{
    char              text[96];
    llm_schema_dec_t  x;

    snprintf(text, sizeof(text), "%s0.%se%d", d->neg ? "-" : "",
             d->n ? d->digits : "0", d->point);
    *v = strtod(text, NULL);

    if (d->point <= DBL_DIG || d->point > LLM_SCHEMA_LARGE) {
        return 0;
    }

    snprintf(text, sizeof(text), "%.0f", *v);
    llm_schema_dec_text(text, 1, 0, &x);

    return llm_schema_dec_cmp(&x, d);
}


/*
 * A number with a point or an exponent is read as a double, which may be on
 * the other side of a bound.  Moves the bound to one that a double can hold;
 * returns 0 if it is such a bound already, or 0.
 */

int
llm_schema_dec_hold(llm_schema_dec_t *d, int *excl, int lower)
{
    int     c;
    double  v;

    c = llm_schema_dec_nearest(d, &v);

    if (d->n == 0 || (c == 0 && !*excl)) {
        return 0;
    }

    if (c == 0 || (c < 0) == lower) {
        v = nextafter(v, lower ? INFINITY : -INFINITY);
    }

    llm_schema_dec_double(v, d);
    *excl = 0;

    return 1;
}


int
llm_schema_dec_cmp(const llm_schema_dec_t *a, const llm_schema_dec_t *b)
{
    int  c;

    if (a->n == 0 || b->n == 0 || a->neg != b->neg) {
        return (a->n ? (a->neg ? -1 : 1) : 0)
               - (b->n ? (b->neg ? -1 : 1) : 0);
    }

    c = a->point != b->point ? (a->point > b->point ? 1 : -1)
                             : strcmp(a->digits, b->digits);

    return a->neg ? -c : c;
}


/* the ways to write d, without sign */

static void
llm_schema_write(const llm_schema_dec_t *d, llm_schema_written_t *w)
{
    int  i, k, n;

    memset(w, 0, sizeof(llm_schema_written_t));

    for (i = 0; i < d->point && i < SIZE - 1; i++) {
        w->whole[i] = i < d->n ? d->digits[i] : '0';
    }

    if (i == 0) {
        w->whole[0] = '0';
    }

    n = 0;
    for (i = d->point; i < 0 && n < SIZE - 72 && d->n; i++) {
        w->part[n++] = '0';
    }

    for (k = llm_max(d->point, 0); k < d->n; k++) {
        w->part[n++] = d->digits[k];
    }

    w->exp = d->point - 1;
    w->lead[0] = d->n ? d->digits[0] : '0';
    memcpy(w->rest, d->digits + (d->n ? 1 : 0), (size_t) llm_max(d->n, 1));
}


llm_rx_t
llm_schema_digits(llm_schema_t *s, int from, int to, uint32_t min,
    uint32_t max)
{
    llm_rx_range_t  r;

    if (from > to) {
        return LLM_RX_NONE;
    }

    r.from = (uint32_t) from;
    r.to = (uint32_t) to;

    return llm_rx_repeat(s->pool, llm_rx_class(s->pool, &r, 1), min, max);
}


llm_rx_t
llm_schema_cat3(llm_schema_t *s, llm_rx_t a, llm_rx_t b, llm_rx_t c)
{
    return llm_rx_cat(s->pool, a, llm_rx_cat(s->pool, b, c));
}


llm_rx_t
llm_schema_text(llm_schema_t *s, const char *text)
{
    return llm_rx_literal(s->pool, text, strlen(text));
}


/* whole numbers above `digits` with at most `most` digits (0: the usual
   number, or as many as `digits` if these are more), or below it */

static llm_rx_t
llm_schema_whole(llm_schema_t *s, const char *digits, int above, int most)
{
    int       k, len;
    llm_rx_t  rx, other;

    len = (int) strlen(digits);
    rx = LLM_RX_NONE;

    if (most == 0) {
        most = len < LLM_SCHEMA_WHOLE ? LLM_SCHEMA_WHOLE : LLM_SCHEMA_LARGE;
    }

    for (k = len; k--; /* void */) {
        other = above ? llm_schema_digits(s, digits[k] + 1, '9', 1, 1)
                      : llm_schema_digits(s, k || len == 1 ? '0' : '1',
                                          digits[k] - 1, 1, 1);
        other = llm_rx_cat(s->pool, other,
                           llm_schema_digits(s, '0', '9',
                                             (uint32_t) (len - k - 1),
                                             (uint32_t) (len - k - 1)));
        rx = llm_rx_or(s->pool, other,
                       llm_rx_cat(s->pool,
                                  llm_rx_literal(s->pool, digits + k, 1),
                                  rx));
    }

    if (above) {
        if (len >= most) {
            return rx;
        }

        /* digits are "0" or do not begin with 0 */
        other = llm_rx_cat(s->pool, llm_schema_digits(s, '1', '9', 1, 1),
                           llm_schema_digits(s, '0', '9', (uint32_t) len,
                                             (uint32_t) most - 1));

        return llm_rx_or(s->pool, rx, other);
    }

    if (len > 1) {
        other = llm_rx_cat(s->pool, llm_schema_digits(s, '1', '9', 1, 1),
                           llm_schema_digits(s, '0', '9', 0,
                                             (uint32_t) (len - 2)));
        rx = llm_rx_or(s->pool, rx, other);
        rx = llm_rx_or(s->pool, rx, llm_schema_text(s, "0"));
    }

    return rx;
}


/* fractions above or below .PART, with their dot or empty; equal: .PART is
   included */

static llm_rx_t
llm_schema_part(llm_schema_t *s, const char *part, int above, int equal)
{
    int       k, len;
    llm_rx_t  rx, other, any, zeros;

    len = (int) strlen(part);
    any = llm_schema_digits(s, '0', '9', 0, LLM_SCHEMA_PART);
    zeros = llm_schema_digits(s, '0', '0', 0, LLM_SCHEMA_PART);

    /* after all digits of part; a dot needs at least one digit */

    if (above && !equal) {
        rx = llm_schema_cat3(s, zeros, llm_schema_digits(s, '1', '9', 1, 1),
                             any);
    } else {
        rx = equal ? llm_schema_digits(s, '0', above ? '9' : '0', len == 0,
                                       LLM_SCHEMA_PART)
                   : LLM_RX_NONE;
    }

    for (k = len; k--; /* void */) {
        other = above ? llm_schema_digits(s, part[k] + 1, '9', 1, 1)
                      : llm_schema_digits(s, '0', part[k] - 1, 1, 1);
        other = llm_rx_cat(s->pool, other, any);
        rx = llm_rx_or(s->pool, other,
                       llm_rx_cat(s->pool,
                                  llm_rx_literal(s->pool, part + k, 1), rx));

        if (!above && k) {
            rx = llm_rx_or(s->pool, rx, LLM_RX_EMPTY);
        }
    }

    rx = llm_rx_cat(s->pool, llm_schema_text(s, "."), rx);

    /* the empty fraction */

    if (len == 0 ? equal : !above) {
        rx = llm_rx_or(s->pool, rx, LLM_RX_EMPTY);
    }

    return rx;
}


/* exponents, including the e, that are above, equal to or below exp */

llm_rx_t
llm_schema_exponent(llm_schema_t *s, int exp, int side)
{
    int       len;
    char      digits[16];
    llm_rx_t  plus, minus, zeros, rx;

    zeros = llm_schema_digits(s, '0', '0', 0, LLM_SCHEMA_EXPONENT - 1);
    plus = llm_rx_or(s->pool, LLM_RX_EMPTY, llm_schema_text(s, "+"));
    minus = llm_schema_text(s, "-");

    len = snprintf(digits, sizeof(digits), "%d", exp < 0 ? -exp : exp);
    rx = llm_rx_literal(s->pool, digits, (size_t) len);

    if (side) {
        rx = llm_schema_whole(s, digits, (side > 0) == (exp >= 0),
                              LLM_SCHEMA_EXPONENT);
    }

    if (exp < 0 || (exp == 0 && side < 0)) {
        if (exp == 0) {
            rx = llm_schema_whole(s, digits, 1, LLM_SCHEMA_EXPONENT);
        }

        rx = llm_schema_cat3(s, minus, zeros, rx);

        if (side > 0) {
            rx = llm_rx_or(s->pool, rx,
                           llm_rx_cat(s->pool, plus,
                                      llm_schema_digits(s, '0', '9', 1,
                                                        LLM_SCHEMA_EXPONENT)));
        }

    } else {
        if (exp == 0 && side == 0) {
            plus = llm_rx_or(s->pool, plus, minus);
        }

        rx = llm_schema_cat3(s, plus, zeros, rx);

        if (side < 0) {
            rx = llm_rx_or(s->pool, rx,
                           llm_rx_cat(s->pool, minus,
                                      llm_schema_digits(s, '0', '9', 1,
                                                        LLM_SCHEMA_EXPONENT)));
        }
    }

    rx = llm_rx_cat(s->pool, llm_rx_or(s->pool, llm_schema_text(s, "e"),
                                       llm_schema_text(s, "E")), rx);

    return side ? llm_rx_and(s->pool, rx,
                             llm_schema_numbers_rx(s, LLM_NUM_EXPONENT))
                : rx;
}


/* unsigned numbers above or below d, which is greater than 0 */

static llm_rx_t
llm_schema_beyond(llm_schema_t *s, const llm_schema_dec_t *d, int above,
    int equal)
{
    llm_rx_t              rx, any, lead;
    llm_schema_written_t  w;

    llm_schema_write(d, &w);

    any = llm_rx_or(s->pool, LLM_RX_EMPTY,
                    llm_rx_cat(s->pool, llm_schema_text(s, "."),
                               llm_schema_digits(s, '0', '9', 1,
                                                 LLM_SCHEMA_PART)));

    rx = llm_schema_whole(s, w.whole, above, 0);
    rx = llm_rx_cat(s->pool, rx, any);
    rx = llm_rx_or(s->pool, rx,
                   llm_rx_cat(s->pool, llm_schema_text(s, w.whole),
                              llm_schema_part(s, w.part, above, equal)));

    /* normal form with an exponent */

    lead = above ? llm_schema_digits(s, w.lead[0] + 1, '9', 1, 1)
                 : llm_schema_digits(s, '1', w.lead[0] - 1, 1, 1);
    lead = llm_rx_cat(s->pool, lead, any);
    lead = llm_rx_or(s->pool, lead,
                     llm_rx_cat(s->pool, llm_schema_text(s, w.lead),
                                llm_schema_part(s, w.rest, above, equal)));
    lead = llm_rx_cat(s->pool, lead, llm_schema_exponent(s, w.exp, 0));

    rx = llm_rx_or(s->pool, rx, lead);

    return llm_rx_or(s->pool, rx,
                     llm_schema_cat3(s, llm_schema_digits(s, '1', '9', 1, 1),
                                     any,
                                     llm_schema_exponent(s, w.exp,
                                                         above ? 1 : -1)));
}


/* texts after the sign of numbers in the range */

llm_rx_t
llm_schema_side(llm_schema_t *s, const llm_schema_range_t *r)
{
    llm_rx_t                 rx, to;
    const llm_schema_dec_t  *d;

    d = r->to;

    if (d && (d->neg || (d->n == 0 && r->to_excl))) {
        return LLM_RX_NONE;
    }

    if (d && d->n == 0) {
        to = llm_schema_numbers_rx(s, LLM_NUM_ZERO);

    } else if (d) {
        to = llm_rx_or(s->pool, llm_schema_beyond(s, d, 0, !r->to_excl),
                       llm_schema_numbers_rx(s, LLM_NUM_ZERO));

    } else {
        to = llm_schema_numbers_rx(s, LLM_NUM_ANY);
    }

    d = r->from;

    if (d == NULL || d->neg || (d->n == 0 && !r->from_excl)) {
        return to;
    }

    rx = d->n ? llm_schema_beyond(s, d, 1, !r->from_excl)
              : llm_schema_numbers_rx(s, LLM_NUM_NONZERO);

    return r->to ? llm_rx_and(s->pool, rx, to) : rx;
}


/* the fraction .PART and more zeros; without digits one zero is enough, unless
   all writings are asked for */

static llm_rx_t
llm_schema_same_part(llm_schema_t *s, const char *part, int all)
{
    llm_rx_t  rx;
    uint32_t  none;

    none = part[0] == '\0';
    rx = llm_schema_cat3(s, llm_schema_text(s, "."),
                         llm_schema_text(s, part),
                         llm_schema_digits(s, '0', '0', none,
                                           all ? LLM_SCHEMA_PART : none));

    return !none ? rx : llm_rx_or(s->pool, LLM_RX_EMPTY, rx);
}


/* the writings of a number: all that the other expressions have, or the usual
   ones.  If a double cannot hold the number, only the writing without point
   and exponent */

llm_rx_t
llm_schema_equal(llm_schema_t *s, const llm_schema_dec_t *d, int all)
{
    double                v;
    llm_rx_t              rx, sign;
    llm_schema_written_t  w;

    sign = d->neg ? llm_schema_text(s, "-") : LLM_RX_EMPTY;

    if (d->n == 0) {
        sign = llm_rx_or(s->pool, sign, llm_schema_text(s, "-"));

        return llm_rx_cat(s->pool, sign,
                          llm_schema_numbers_rx(s, LLM_NUM_ZERO));
    }

    llm_schema_write(d, &w);

    if (!all && llm_schema_dec_nearest(d, &v) != 0) {
        return llm_rx_cat(s->pool, sign, llm_schema_text(s, w.whole));
    }

    rx = llm_schema_cat3(s, llm_schema_text(s, w.lead),
                         llm_schema_same_part(s, w.rest, all),
                         llm_schema_exponent(s, w.exp, 0));
    rx = llm_rx_or(s->pool, rx,
                   llm_rx_cat(s->pool, llm_schema_text(s, w.whole),
                              llm_schema_same_part(s, w.part, all)));

    return llm_rx_cat(s->pool, sign, rx);
}
