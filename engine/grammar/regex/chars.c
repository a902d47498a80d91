/*
 * Expressions for characters and texts: classes as switches over the bytes of
 * UTF-8, literals as chains of switches; see regex.h.
 */

#include "engine/base/utf8.h"
#include "engine/grammar/regex/internal.h"

static const uint32_t  llm_rx_last[] = { 0, 0x7f, 0x7ff, 0xffff, 0x10ffff };


/*
 * Writes one sequence for the characters from .. to, which have n bytes and
 * differ in such a way that every byte has a range of its own.
 */

static void
llm_rx_utf8_one(uint32_t from, uint32_t to, llm_rx_bytes_t *out)
{
    char    a[4], b[4];
    size_t  i;

    out->n = (uint32_t) llm_utf8_encode(a, from);
    (void) llm_utf8_encode(b, to);

    for (i = 0; i < out->n; i++) {
        out->from[i] = (uint8_t) a[i];
        out->to[i] = (uint8_t) b[i];
    }
}


/*
 * Returns the last character of the first such sequence: where the high bits
 * change on the way, the low bits must run from all zeros to all ones.
 */

static uint32_t
llm_rx_utf8_end(uint32_t from, uint32_t to)
{
    uint32_t  bits, low;

    for (bits = 6; bits <= 18; bits += 6) {
        low = (1u << bits) - 1;

        if (((from ^ to) & ~low) == 0) {
            break;
        }

        if (from & low) {
            to = from | low;
            break;
        }

        if ((to & low) != low) {
            to = (to & ~low) - 1;
            bits = 0;
        }
    }

    return to;
}


static uint32_t
llm_rx_utf8_part(uint32_t from, uint32_t to, llm_rx_bytes_t *out, uint32_t n)
{
    uint32_t  k, end, last;

    for (k = 1; k <= 4; k++) {
        while (from <= to && from <= llm_rx_last[k]) {
            last = llm_min(to, llm_rx_last[k]);
            end = k == 1 ? last : llm_rx_utf8_end(from, last);
            llm_rx_utf8_one(from, end, &out[n++]);
            from = end + 1;
        }
    }

    return n;
}


uint32_t
llm_rx_utf8(uint32_t from, uint32_t to, llm_rx_bytes_t *out)
{
    uint32_t  n;

    to = llm_min(to, 0x10ffff);
    n = 0;

    if (from < 0xd800) {
        n = llm_rx_utf8_part(from, llm_min(to, 0xd7ff), out, n);
    }

    if (to > 0xdfff) {
        n = llm_rx_utf8_part(llm_max(from, 0xe000), to, out, n);
    }

    return n;
}


static llm_rx_t
llm_rx_bytes(llm_rx_pool_t *p, const llm_rx_bytes_t *s)
{
    uint32_t      i;
    llm_rx_t      a;
    llm_rx_arc_t  arc;

    a = LLM_RX_EMPTY;

    for (i = s->n; i > 0; i--) {
        memset(&arc, 0, sizeof(arc));
        arc.from = s->from[i - 1];
        arc.to = s->to[i - 1];
        arc.next = a;
        a = llm_rx_switch(p, &arc, 1, 0);
    }

    return a;
}


llm_rx_t
llm_rx_class(llm_rx_pool_t *p, const llm_rx_range_t *ranges, size_t n)
{
    size_t          i;
    uint32_t        k, count, base;
    llm_rx_t        a;
    llm_rx_bytes_t  seqs[LLM_RX_MAX_BYTES];

    base = p->tmp.n;

    for (i = 0; i < n && !p->failed; i++) {
        if (ranges[i].from > ranges[i].to) {
            continue;
        }

        count = llm_rx_utf8(ranges[i].from, ranges[i].to, seqs);

        for (k = 0; k < count; k++) {
            a = llm_rx_bytes(p, &seqs[k]);
            llm_rx_push(p, a);
        }
    }

    return llm_rx_or_list(p, base);
}


llm_rx_t
llm_rx_literal(llm_rx_pool_t *p, const char *text, size_t len)
{
    llm_rx_t      a;
    llm_rx_arc_t  arc;

    a = LLM_RX_EMPTY;

    while (len > 0) {
        memset(&arc, 0, sizeof(arc));
        arc.from = arc.to = (uint8_t) text[--len];
        arc.next = a;
        a = llm_rx_switch(p, &arc, 1, 0);
    }

    return a;
}


llm_rx_t
llm_rx_literals(llm_rx_pool_t *p, const llm_str_t *texts, size_t n)
{
    llm_rx_t  a, b;

    /* by halves, so that each text is merged log n times */

    if (n == 0) {
        return LLM_RX_NONE;
    }

    if (n == 1) {
        return llm_rx_literal(p, texts[0].data, texts[0].len);
    }

    a = llm_rx_literals(p, texts, n / 2);
    b = llm_rx_literals(p, texts + n / 2, n - n / 2);

    return llm_rx_or(p, a, b);
}
