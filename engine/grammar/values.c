/*
 * Values of JSON as expressions; see values.h.
 */

#include "engine/base/utf8.h"
#include "engine/grammar/values.h"

/* longer numbers are equal only if they are written in the same way */
#define LLM_VALUE_MAX_DIGITS  300


static int
llm_value_hex(const char *p, uint32_t *value)
{
    int  i;

    *value = 0;

    for (i = 0; i < 4; i++) {
        *value = *value << 4 | (uint32_t) llm_hex_digit(p[i]);
    }

    return 6;
}


/* one character of the inside of a well-formed string; appends it to out */

static size_t
llm_value_char(const char *p, size_t len, llm_buf_t *out)
{
    char        u[4];
    size_t      n;
    uint32_t    cp, low;
    const char  *found;

    static const char  names[] = "bfnrt";
    static const char  chars[] = "\b\f\n\r\t";

    if (p[0] != '\\' || len < 2) {
        (void) llm_buf_addc(out, p[0]);
        return 1;
    }

    if (p[1] != 'u' || len < 6) {
        found = strchr(names, p[1]);
        (void) llm_buf_addc(out, found && *found ? chars[found - names]
                                                 : p[1]);
        return 2;
    }

    n = (size_t) llm_value_hex(p + 2, &cp);

    if (cp >= 0xd800 && cp <= 0xdbff && len >= 12) {
        n += (size_t) llm_value_hex(p + 8, &low);
        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
    }

    (void) llm_buf_add(out, u, llm_utf8_encode(u, cp));

    return n;
}


llm_rx_t
llm_value_string(llm_rx_pool_t *p, const char *text, size_t len)
{
    size_t     i;
    llm_rx_t   rx;
    llm_buf_t  b;

    llm_buf_init(&b, len + 1);

    for (i = 0; i < len; i += llm_value_char(text + i, len - i, &b)) {
        /* void */
    }

    rx = b.failed ? LLM_RX_NONE : llm_rx_literal(p, b.data, b.len);
    llm_buf_free(&b);

    return rx;
}


/* ---- numbers ---- */

/* 0.digits times 10^point; digits neither begin nor end with 0 */
typedef struct {
    char         digits[LLM_VALUE_MAX_DIGITS];
    int          n;
    int          point;
    int          negative;
} llm_value_number_t;


/* LLM_ERROR: it is no number, or too long */

static int
llm_value_number(const char *text, size_t len, llm_value_number_t *v)
{
    int     exponent, sign, behind, digits;
    size_t  i;

    memset(v, 0, sizeof(*v));
    v->negative = len > 0 && text[0] == '-';
    behind = 0;
    digits = 0;

    for (i = (size_t) v->negative; i < len; i++) {
        if (text[i] == '.') {
            behind = 1;
            continue;
        }

        if (text[i] < '0' || text[i] > '9') {
            break;
        }

        digits++;

        if (v->n == 0 && text[i] == '0') {
            v->point -= behind;
            continue;
        }

        if (v->n == LLM_VALUE_MAX_DIGITS) {
            return LLM_ERROR;
        }

        v->digits[v->n++] = text[i];
        v->point += !behind;
    }

    exponent = 0;
    sign = 1;

    if (i < len && (text[i] == 'e' || text[i] == 'E')) {
        i++;

        if (i < len && (text[i] == '-' || text[i] == '+')) {
            sign = text[i++] == '-' ? -1 : 1;
        }

        for ( /* void */ ; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
            exponent = llm_min(exponent * 10 + text[i] - '0', 100000);
        }
    }

    while (v->n > 0 && v->digits[v->n - 1] == '0') {
        v->n--;
    }

    v->point += sign * exponent;

    return i == len && digits ? LLM_OK : LLM_ERROR;
}


static llm_rx_t
llm_value_pattern(llm_rx_pool_t *p, llm_buf_t *b)
{
    llm_rx_t  rx;

    rx = LLM_RX_NONE;

    if (b->failed
        || llm_rx_parse(p, b->data, b->len, LLM_RX_WHOLE, &rx, NULL)
           != LLM_OK)
    {
        rx = LLM_RX_NONE;
    }

    llm_buf_free(b);

    return rx;
}


/* writings without an exponent */

static void
llm_value_plain(const llm_value_number_t *v, llm_buf_t *b)
{
    int  zeros;

    if (v->point > 0) {
        (void) llm_buf_add(b, v->digits,
                           (size_t) llm_min(v->n, v->point));

        for (zeros = v->point - v->n; zeros > 0; zeros--) {
            (void) llm_buf_addc(b, '0');
        }

    } else {
        (void) llm_buf_addc(b, '0');
    }

    if (v->n <= v->point) {
        (void) llm_buf_adds(b, "(\\.0+)?");
        return;
    }

    (void) llm_buf_adds(b, "\\.");

    for (zeros = v->point; zeros < 0; zeros++) {
        (void) llm_buf_addc(b, '0');
    }

    (void) llm_buf_add(b, v->digits + llm_max(v->point, 0),
                       (size_t) (v->n - llm_max(v->point, 0)));
    (void) llm_buf_adds(b, "0*");
}


/* writings with an exponent: the digits, with a point anywhere */

static void
llm_value_digits(const llm_value_number_t *v, llm_buf_t *b)
{
    int  i;

    (void) llm_buf_addf(b, "(0\\.0*%.*s0*|%.*s0*(\\.0+)?", v->n, v->digits,
                        v->n, v->digits);

    for (i = 1; i < v->n; i++) {
        (void) llm_buf_addf(b, "|%.*s\\.%.*s0*", i, v->digits, v->n - i,
                            v->digits + i);
    }

    (void) llm_buf_adds(b, ")[eE][+-]?[0-9]+");
}


llm_rx_t
llm_value_raw(llm_rx_pool_t *p, const char *text, size_t len)
{
    llm_buf_t           b;
    llm_value_number_t  v;

    if (llm_value_number(text, len, &v) != LLM_OK) {
        return llm_rx_literal(p, text, len);
    }

    llm_buf_init(&b, 0);

    if (v.n == 0) {
        (void) llm_buf_adds(&b, "-?0(\\.0+)?([eE][+-]?[0-9]+)?");
        return llm_value_pattern(p, &b);
    }

    (void) llm_buf_adds(&b, v.negative ? "-(" : "(");

    if (v.point > -LLM_VALUE_MAX_DIGITS && v.point < LLM_VALUE_MAX_DIGITS) {
        llm_value_plain(&v, &b);
        (void) llm_buf_addc(&b, '|');
    }

    llm_value_digits(&v, &b);
    (void) llm_buf_addc(&b, ')');

    return llm_value_pattern(p, &b);
}


/* ---- counting values ---- */

static llm_rx_t
llm_value_minus(llm_rx_pool_t *p, llm_rx_t from, llm_rx_t what)
{
    return llm_rx_and(p, from, llm_rx_compl(p, what));
}


/* counts values by removing examples one after another; raw: an example is
   removed in all its writings */

static uint32_t
llm_value_examples(llm_rx_pool_t *p, llm_rx_t rx, int raw, uint32_t limit)
{
    uint32_t   n;
    llm_rx_t   what;
    llm_buf_t  b;

    for (n = 0; n < limit && llm_rx_alive(p, rx); n++) {
        llm_buf_init(&b, 0);

        if (llm_rx_example(p, rx, &b) != LLM_OK) {
            llm_buf_free(&b);
            break;
        }

        what = raw ? llm_value_raw(p, b.data, b.len)
                   : llm_rx_literal(p, b.data, b.len);
        rx = llm_value_minus(p, rx, what);
        llm_buf_free(&b);
    }

    return n;
}


uint32_t
llm_value_texts(llm_rx_pool_t *p, llm_rx_t rx, uint32_t limit)
{
    return llm_value_examples(p, rx, 0, limit);
}


uint32_t
llm_value_count(llm_gram_build_t *b, const llm_gn_t *nodes, uint32_t n,
    uint32_t limit)
{
    char        *text;
    uint32_t     i;
    llm_rx_t     strings, raw;
    llm_node_t  *x;

    strings = LLM_RX_NONE;
    raw = LLM_RX_NONE;

    for (i = 0; i < n; i++) {
        x = &b->nodes.data[nodes[i]];
        text = b->text.data + x->a;

        if (x->kind == LLM_NODE_STRING) {
            strings = llm_rx_or(b->pool, strings, x->a);

        } else if (x->kind == LLM_NODE_REGEX) {
            raw = llm_rx_or(b->pool, raw, x->a);

        } else if (x->b >= 2 && text[0] == '"') {
            strings = llm_rx_or(b->pool, strings,
                                llm_value_string(b->pool, text + 1,
                                                 x->b - 2));

        } else {
            raw = llm_rx_or(b->pool, raw,
                            llm_rx_literal(b->pool, text, x->b));
        }
    }

    i = llm_value_examples(b->pool, strings, 0, limit);

    return i + llm_value_examples(b->pool, raw, 1, limit - i);
}
