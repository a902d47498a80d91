/*
 * States in expressions and strings of JSON; see lexer.h.
 */

#include "engine/base/utf8.h"
#include "engine/grammar/lexer.h"

#include <time.h>


static uint32_t
llm_lex_intern(llm_lexer_t *x, const llm_lex_state_t *want)
{
    uint32_t          hash, i, id;
    llm_lex_state_t  *s;

    hash = llm_hash(llm_hash(want->rx, want->value),
                    (uint32_t) want->mode | (uint32_t) want->digits << 8
                    | (uint32_t) want->high << 16);

    for (i = hash; (id = llm_table_next(&x->table, hash, &i)) != UINT32_MAX; )
    {
        s = &x->states.data[id];

        if (s->rx == want->rx && s->mode == want->mode
            && s->digits == want->digits && s->value == want->value
            && s->high == want->high)
        {
            return id;
        }
    }

    id = x->states.n;

    if (id >= x->max_states || llm_vec_more(&x->states, 1) != LLM_OK
        || llm_table_add(&x->table, hash, id) != LLM_OK)
    {
        x->failed = 1;
        return LLM_LEX_DEAD;
    }

    x->states.n++;
    s = &x->states.data[id];
    *s = *want;
    s->accepts = s->mode == LLM_LEX_END
                 || (s->mode == LLM_LEX_RAW
                     && llm_rx_nullable(x->pool, s->rx));

    return id;
}


static uint32_t
llm_lex_to(llm_lexer_t *x, llm_rx_t rx, llm_lex_mode_t mode)
{
    llm_lex_state_t  s;

    if (rx == LLM_RX_NONE) {
        return LLM_LEX_DEAD;
    }

    memset(&s, 0, sizeof(s));
    s.rx = rx;
    s.mode = (uint8_t) mode;

    return llm_lex_intern(x, &s);
}


uint32_t
llm_lex_start(llm_lexer_t *x, llm_rx_t rx, llm_lex_mode_t mode)
{
    return llm_rx_alive(x->pool, rx) ? llm_lex_to(x, rx, mode)
                                     : LLM_LEX_DEAD;
}


/* ---- characters that escapes stand for ---- */

/* what may follow after this character, or LLM_RX_NONE */

static llm_rx_t
llm_lex_char(llm_lexer_t *x, llm_rx_t rx, uint32_t cp)
{
    char             bytes[4];
    size_t           i, n;
    const llm_rx_t  *row;

    n = llm_utf8_encode(bytes, cp);

    for (i = 0; i < n && rx != LLM_RX_NONE; i++) {
        row = llm_rx_row(x->pool, rx);
        rx = row ? row[(uint8_t) bytes[i]] : LLM_RX_NONE;
    }

    return rx;
}


static int
llm_lex_any_bytes(llm_lexer_t *x, llm_rx_t rx, const llm_rx_bytes_t *seq,
    uint32_t i)
{
    uint32_t         byte;
    llm_rx_t         last;
    const llm_rx_t  *row;

    if (i == seq->n) {
        return 1;
    }

    row = llm_rx_row(x->pool, rx);
    last = LLM_RX_NONE;

    for (byte = seq->from[i]; row && byte <= seq->to[i]; byte++) {
        if (row[byte] == last) {
            continue;
        }

        last = row[byte];

        if (llm_lex_any_bytes(x, last, seq, i + 1)) {
            return 1;
        }
    }

    return 0;
}


/* may any of the characters from .. to follow? */

static int
llm_lex_any(llm_lexer_t *x, llm_rx_t rx, uint32_t from, uint32_t to)
{
    uint32_t        i, n;
    llm_rx_bytes_t  seqs[LLM_RX_MAX_BYTES];

    n = from <= to ? llm_rx_utf8(from, to, seqs) : 0;

    for (i = 0; i < n; i++) {
        if (llm_lex_any_bytes(x, rx, &seqs[i], 0)) {
            return 1;
        }
    }

    return 0;
}


/*
 * Is the character written as \uXXXX?  Nobody writes ASCII's printable
 * characters like that, and a model that is led to it wastes tokens.
 */

static int
llm_lex_is_hex(uint32_t cp)
{
    return cp < 0x20 || cp > 0x7e;
}


/* may any of the characters from .. to that are written as \uXXXX follow? */

static int
llm_lex_any_hex(llm_lexer_t *x, llm_rx_t rx, uint32_t from, uint32_t to)
{
    return llm_lex_any(x, rx, from, llm_min(to, 0x1f))
           || llm_lex_any(x, rx, llm_max(from, 0x7f), to);
}


/* the state after some digits of a \uXXXX */

static uint32_t
llm_lex_hex(llm_lexer_t *x, llm_rx_t rx, uint32_t digits, uint32_t value,
    uint32_t high)
{
    int              any;
    uint32_t         from, to, pair;
    llm_lex_state_t  s;

    if (digits == 4 && high) {
        if (value < 0xdc00 || value > 0xdfff) {
            return LLM_LEX_DEAD;
        }

        value = 0x10000 + ((high - 0xd800) << 10) + (value - 0xdc00);

        return llm_lex_to(x, llm_lex_char(x, rx, value), LLM_LEX_INSIDE);
    }

    if (digits == 4 && !llm_lex_is_hex(value)) {
        return LLM_LEX_DEAD;
    }

    if (digits == 4 && (value < 0xd800 || value > 0xdfff)) {
        return llm_lex_to(x, llm_lex_char(x, rx, value), LLM_LEX_INSIDE);
    }

    from = value << 4 * (4 - digits);
    to = from + (1u << 4 * (4 - digits)) - 1;

    if (high) {
        pair = 0x10000 + ((high - 0xd800) << 10);
        from = llm_max(from, 0xdc00);
        to = llm_min(to, 0xdfff);

        any = from <= to && llm_lex_any(x, rx, pair + (from - 0xdc00),
                                        pair + (to - 0xdc00));

    } else {
        any = digits < 4 && llm_lex_any_hex(x, rx, from, to);

        from = llm_max(from, 0xd800);
        to = llm_min(to, 0xdbff);

        if (!any && from <= to) {
            any = llm_lex_any(x, rx, 0x10000 + ((from - 0xd800) << 10),
                              0x103ff + ((to - 0xd800) << 10));
        }
    }

    if (!any) {
        return LLM_LEX_DEAD;
    }

    memset(&s, 0, sizeof(s));
    s.rx = rx;

    if (digits == 4) {
        s.mode = LLM_LEX_LOW;
        s.high = (uint16_t) value;

    } else {
        s.mode = LLM_LEX_HEX;
        s.digits = (uint8_t) digits;
        s.value = (uint16_t) value;
        s.high = (uint16_t) high;
    }

    return llm_lex_intern(x, &s);
}


/* ---- rows ---- */

static void
llm_lex_fill_raw(llm_lexer_t *x, llm_rx_t rx, uint32_t *row,
    llm_lex_mode_t mode)
{
    uint32_t         byte, state;
    llm_rx_t         last;
    const llm_rx_t  *next;

    next = llm_rx_row(x->pool, rx);
    last = LLM_RX_NONE;
    state = LLM_LEX_DEAD;

    for (byte = 0; next && byte < 256; byte++) {
        if (next[byte] != last) {
            last = next[byte];
            state = llm_lex_to(x, last, mode);
        }

        row[byte] = state;
    }
}


static void
llm_lex_fill_inside(llm_lexer_t *x, llm_rx_t rx, uint32_t *row)
{
    llm_lex_fill_raw(x, rx, row, LLM_LEX_INSIDE);

    memset(row, 0, 0x20 * sizeof(uint32_t));
    row['"'] = llm_rx_nullable(x->pool, rx) ? LLM_LEX_FINAL : LLM_LEX_DEAD;

    /* escapes come between characters */

    row['\\'] = llm_lex_any_hex(x, rx, 0, 0x10ffff)
                || llm_lex_any(x, rx, '"', '"') || llm_lex_any(x, rx, '/', '/')
                || llm_lex_any(x, rx, '\\', '\\')
                ? llm_lex_to(x, rx, LLM_LEX_ESCAPE) : LLM_LEX_DEAD;
}


static void
llm_lex_fill_escape(llm_lexer_t *x, llm_rx_t rx, uint32_t *row)
{
    size_t  i;

    static const char  names[] = "\"\\/bfnrt";
    static const char  chars[] = "\"\\/\b\f\n\r\t";

    for (i = 0; names[i]; i++) {
        row[(uint8_t) names[i]] =
            llm_lex_to(x, llm_lex_char(x, rx, (uint8_t) chars[i]),
                       LLM_LEX_INSIDE);
    }

    row['u'] = llm_lex_hex(x, rx, 0, 0, 0);
}


static void
llm_lex_fill_hex(llm_lexer_t *x, const llm_lex_state_t *s, uint32_t *row)
{
    uint32_t  d, state;

    for (d = 0; d < 16; d++) {
        state = llm_lex_hex(x, s->rx, s->digits + 1u,
                            (uint32_t) s->value << 4 | d, s->high);

        if (d < 10) {
            row['0' + d] = state;

        } else {
            row['a' + d - 10] = state;
            row['A' + d - 10] = state;
        }
    }
}


static void
llm_lex_fill(llm_lexer_t *x, const llm_lex_state_t *s, uint32_t *row)
{
    llm_lex_state_t  next;

    switch (s->mode) {

    case LLM_LEX_RAW:
        llm_lex_fill_raw(x, s->rx, row, LLM_LEX_RAW);
        return;

    case LLM_LEX_QUOTE:
        row['"'] = llm_lex_to(x, s->rx, LLM_LEX_INSIDE);
        return;

    case LLM_LEX_INSIDE:
        llm_lex_fill_inside(x, s->rx, row);
        return;

    case LLM_LEX_ESCAPE:
        llm_lex_fill_escape(x, s->rx, row);
        return;

    case LLM_LEX_HEX:
        llm_lex_fill_hex(x, s, row);
        return;

    case LLM_LEX_LOW:
        next = *s;
        next.mode = LLM_LEX_LOW_U;
        row['\\'] = llm_lex_intern(x, &next);
        return;

    case LLM_LEX_LOW_U:
        row['u'] = llm_lex_hex(x, s->rx, 0, 0, s->high);
        return;

    default:
        return;
    }
}


/* CPU time, not real time: a busy machine must not make a grammar fail */

uint64_t
llm_lex_now_us(void)
{
    struct timespec  t;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}


/* most texts make no rows, so the clock is rarely read */

int
llm_lex_late(llm_lexer_t *x)
{
    uint64_t  now;

    if (x->limit_us == 0) {
        return 0;
    }

    now = llm_lex_now_us();

    if (x->until_us == 0) {
        x->until_us = now + x->limit_us;
    }

    return now > x->until_us;
}


const uint32_t *
llm_lex_row(llm_lexer_t *x, uint32_t state)
{
    uint32_t         *row, byte;
    llm_lex_state_t   s;

    s = x->states.data[state];

    if (s.row) {
        return s.row;
    }

    row = x->n_rows >= x->max_rows || llm_lex_late(x)
          ? NULL : calloc(256, sizeof(uint32_t));

    if (row == NULL) {
        x->failed = 1;
        return NULL;
    }

    llm_lex_fill(x, &s, row);

    if (x->failed || llm_rx_failed(x->pool)) {
        free(row);
        return NULL;
    }

    for (byte = 0; byte < 256; byte++) {
        if (row[byte] != LLM_LEX_DEAD) {
            s.first[byte / 64] |= (uint64_t) 1 << byte % 64;
        }
    }

    s.row = row;
    x->states.data[state] = s;
    x->n_rows++;

    return row;
}


/* ---- the lexer ---- */

int
llm_lex_init(llm_lexer_t *x, llm_rx_pool_t *pool, uint32_t max_states,
    uint32_t max_rows)
{
    memset(x, 0, sizeof(*x));
    x->pool = pool;
    x->max_states = max_states;
    x->max_rows = max_rows;

    /* numbers 0 and 1 are the dead and the final state */

    if (llm_vec_more(&x->states, 2) != LLM_OK) {
        return LLM_ERROR;
    }

    memset(x->states.data, 0, 2 * sizeof(llm_lex_state_t));
    x->states.n = 2;
    x->states.data[0].mode = LLM_LEX_END;
    x->states.data[1].mode = LLM_LEX_END;
    x->states.data[1].accepts = 1;

    return LLM_OK;
}


void
llm_lex_free(llm_lexer_t *x)
{
    uint32_t  i;

    for (i = 0; i < x->states.n; i++) {
        free(x->states.data[i].row);
    }

    free(x->states.data);
    llm_table_clear(&x->table);
    memset(x, 0, sizeof(*x));
}
