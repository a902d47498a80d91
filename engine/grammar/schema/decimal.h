/*
 * Numbers as decimals, and the regular languages of their texts.
 */

#ifndef LLM_SCHEMA_DECIMAL_H
#define LLM_SCHEMA_DECIMAL_H

#include "engine/grammar/schema/internal.h"

/* Most digits of a number that is only bounded by its kind: before the dot,
   after the dot, and in an exponent. */
#define LLM_SCHEMA_WHOLE     40
#define LLM_SCHEMA_LARGE     62         /* with bounds of this size */
#define LLM_SCHEMA_PART      20
#define LLM_SCHEMA_EXPONENT  4

/* 0.DIGITS * 10^point, without zeros at either end; no digits: zero */
typedef struct {
    int          neg;
    int          n;
    int          point;
    char         digits[64];            /* JSON numbers have at most 62 */
} llm_schema_dec_t;

/* range of the number after the sign; NULL: no bound */
typedef struct {
    const llm_schema_dec_t  *from;
    int                      from_excl;
    const llm_schema_dec_t  *to;
    int                      to_excl;
} llm_schema_range_t;

/* expressions that are made once: indexes of s->numbers */
enum {
    LLM_NUM_ANY = 0,                    /* without a sign */
    LLM_NUM_ZERO,
    LLM_NUM_NONZERO,
    LLM_NUM_INTEGER,                    /* with an exponent: large ones only */
    LLM_NUM_FRACTION,
    LLM_NUM_NATURAL,
    LLM_NUM_CANONICAL,
    LLM_NUM_PLAIN,                      /* no exponent */
    LLM_NUM_LARGE,                      /* added to another: for more digits */
    LLM_NUM_EXPONENT = 2 * LLM_NUM_LARGE    /* with the e; exponents that
                                               doubles have */
};

/* decimal.c; expressions have no sign unless stated */
llm_rx_t llm_schema_numbers_rx(llm_schema_t *s, int i);
void llm_schema_dec(const llm_flat_t *v, llm_schema_dec_t *d);
int llm_schema_dec_hold(llm_schema_dec_t *d, int *excl, int lower);
int llm_schema_dec_cmp(const llm_schema_dec_t *a, const llm_schema_dec_t *b);
llm_rx_t llm_schema_digits(llm_schema_t *s, int from, int to, uint32_t min,
    uint32_t max);
llm_rx_t llm_schema_cat3(llm_schema_t *s, llm_rx_t a, llm_rx_t b,
    llm_rx_t c);
llm_rx_t llm_schema_text(llm_schema_t *s, const char *text);
/* exponents, including the e, above (side 1), equal to (0) or below (-1) exp */
llm_rx_t llm_schema_exponent(llm_schema_t *s, int exp, int side);
llm_rx_t llm_schema_side(llm_schema_t *s, const llm_schema_range_t *r);
/* with its sign; in all writings, or in the usual ones */
llm_rx_t llm_schema_equal(llm_schema_t *s, const llm_schema_dec_t *d,
    int all);

#endif /* LLM_SCHEMA_DECIMAL_H */
