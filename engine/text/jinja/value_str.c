/*
 * Strings that know for each byte where it came from; see value.h.
 *
 * A string is a window on llm_jbytes_t.  Joining b to a window that ends where
 * its bytes end, in bytes with room left, appends in place: building a text
 * piece by piece costs its length once, whatever the pieces.
 */

#define _GNU_SOURCE                     /* memmem() */

#include "engine/text/jinja/value.h"
#include "engine/base/utf8.h"


/* UTF-8 */

uint32_t
llm_jc_decode(const char *p, const char *end, size_t *len)
{
    uint32_t  c;

    *len = llm_utf8_decode(p, (size_t) (end - p), &c);

    if (*len == 0) {
        *len = 1;
        c = 0xfffd;
    }

    return c;
}


size_t
llm_jc_encode(uint32_t c, char *out)
{
    return llm_utf8_encode(out, (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
}


size_t
llm_jc_space(const char *p, const char *end)
{
    size_t         len;
    uint32_t       c;
    unsigned char  ch;

    if (p >= end) {
        return 0;
    }

    ch = (unsigned char) *p;

    if (ch < 0x80) {
        return ch == ' ' || (ch >= 9 && ch <= 13) || (ch >= 0x1c && ch <= 0x1f);
    }

    if (ch != 0xc2 && ch != 0xe1 && ch != 0xe2 && ch != 0xe3) {
        return 0;
    }

    c = llm_jc_decode(p, end, &len);

    if (c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a)
        || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f
        || c == 0x3000)
    {
        return len;
    }

    return 0;
}


const char *
llm_jc_prev(const char *start, const char *p)
{
    size_t       len;
    const char  *q;

    q = p - 1;

    while (q > start && p - q < 4 && ((unsigned char) *q & 0xc0) == 0x80) {
        q--;
    }

    (void) llm_jc_decode(q, p, &len);

    return q + len == p ? q : p - 1;
}


/* bytes */

static size_t
llm_jbytes_flips_until(const llm_jbytes_t *b, size_t pos)
{
    size_t  lo, hi, mid;

    lo = 0;
    hi = b->n_flips;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;

        if (b->flips[mid] <= pos) {
            lo = mid + 1;

        } else {
            hi = mid;
        }
    }

    return lo;
}


static int
llm_jbytes_trusted(const llm_jbytes_t *b, size_t pos)
{
    return b->trusted ^ (int) (llm_jbytes_flips_until(b, pos) & 1);
}


static int
llm_jbytes_last(const llm_jbytes_t *b)
{
    return b->trusted ^ (int) (b->n_flips & 1);
}


/* sets the trust of what is added at the end from now on */

static int
llm_jbytes_mark(llm_jrt_t *rt, llm_jbytes_t *b, int trusted)
{
    size_t   cap;
    size_t  *flips;

    if (b->used == 0) {
        b->trusted = trusted;
        b->n_flips = 0;
        return LLM_OK;
    }

    if (llm_jbytes_last(b) == trusted) {
        return LLM_OK;
    }

    if (b->n_flips == b->cap_flips) {
        cap = b->cap_flips ? b->cap_flips * 2 : 8;

        llm_jnew(rt, flips, cap * sizeof(size_t));

        if (b->n_flips) {
            memcpy(flips, b->flips, b->n_flips * sizeof(size_t));
        }

        b->flips = flips;
        b->cap_flips = cap;
    }

    b->flips[b->n_flips++] = b->used;

    return LLM_OK;
}


/* appends a part of other bytes, or of these, for which there is room */

static int
llm_jbytes_append(llm_jrt_t *rt, llm_jbytes_t *b, const llm_jbytes_t *from,
    size_t start, size_t end)
{
    int     trusted;
    size_t  i, n, stop;

    i = llm_jbytes_flips_until(from, start);
    n = from->n_flips;
    trusted = from->trusted ^ (int) (i & 1);

    while (start < end) {
        stop = i < n ? llm_min(from->flips[i], end) : end;

        llm_jtry(llm_jbytes_mark(rt, b, trusted));

        memcpy(b->data + b->used, from->data + start, stop - start);
        b->used += stop - start;

        start = stop;
        trusted = !trusted;
        i++;
    }

    return LLM_OK;
}


static llm_jbytes_t *
llm_jbytes_new(llm_jrt_t *rt, size_t cap)
{
    llm_jbytes_t  *b;

    b = llm_jrt_alloc(rt, sizeof(llm_jbytes_t));
    if (b == NULL) {
        return NULL;
    }

    memset(b, 0, sizeof(*b));

    b->data = llm_jrt_alloc(rt, cap ? cap : 1);
    if (b->data == NULL) {
        return NULL;
    }

    b->cap = cap;

    return b;
}


static int
llm_js_new(llm_jrt_t *rt, llm_jbytes_t *bytes, size_t start, size_t len,
    llm_jv_t *res)
{
    llm_js_t  *s;

    llm_jnew(rt, s, sizeof(llm_js_t));

    s->bytes = bytes;
    s->start = start;
    s->len = len;
    s->chars = len ? LLM_J_UNCOUNTED : 0;
    s->hash = 0;
    s->markup = 0;

    *res = llm_jv_str(s);

    return LLM_OK;
}


llm_js_t *
llm_js_wrap(llm_arena_t *a, const char *data, size_t len, int trusted)
{
    llm_js_t      *s;
    llm_jbytes_t  *b;

    s = llm_arena_calloc(a, sizeof(llm_js_t) + sizeof(llm_jbytes_t));
    if (s == NULL) {
        return NULL;
    }

    b = (llm_jbytes_t *) (s + 1);
    b->data = (char *) data;            /* cap is 0: data is never written to */
    b->used = len;
    b->trusted = trusted;

    s->bytes = b;
    s->len = len;
    s->chars = LLM_J_UNCOUNTED;

    return s;
}


int
llm_js_lit(llm_jrt_t *rt, const char *literal, llm_jv_t *res)
{
    llm_js_t  *s;

    s = llm_js_wrap(&rt->arena, literal, strlen(literal), 1);
    if (s == NULL) {
        return llm_jrt_limit(rt, "out of memory");
    }

    *res = llm_jv_str(s);

    return LLM_OK;
}


int
llm_js_slice(llm_jrt_t *rt, const llm_js_t *s, size_t start, size_t end,
    llm_jv_t *res)
{
    llm_jtry(llm_js_new(rt, s->bytes, s->start + start, end - start, res));

    res->u.s->markup = s->markup;

    if (s->chars == s->len) {
        res->u.s->chars = end - start;
    }

    return LLM_OK;
}


int
llm_js_concat(llm_jrt_t *rt, const llm_js_t *a, const llm_js_t *b,
    llm_jv_t *res)
{
    size_t         start, len;
    llm_jbytes_t  *bytes;

    bytes = a->bytes;
    start = a->start;
    len = a->len + b->len;

    llm_jtry(llm_jrt_charge(rt, b->len));

    if (bytes->cap == 0 || start + a->len != bytes->used
        || bytes->cap - bytes->used < b->len)
    {
        llm_jtry(llm_jrt_charge(rt, a->len));

        bytes = llm_jbytes_new(rt, len + len / 2 + 32);
        start = 0;

        if (bytes == NULL
            || llm_jbytes_append(rt, bytes, a->bytes, a->start,
                                 a->start + a->len) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    llm_jtry(llm_jbytes_append(rt, bytes, b->bytes, b->start, b->start
                               + b->len));
    llm_jtry(llm_js_new(rt, bytes, start, len, res));

    if (a->chars != LLM_J_UNCOUNTED && b->chars != LLM_J_UNCOUNTED) {
        res->u.s->chars = a->chars + b->chars;
    }

    return LLM_OK;
}


size_t
llm_js_chars(llm_js_t *s)
{
    size_t       n, len;
    const char  *p, *end;

    if (s->chars == LLM_J_UNCOUNTED) {
        p = llm_js_data(s);
        end = p + s->len;

        for (n = 0; p < end; n++) {
            (void) llm_jc_decode(p, end, &len);
            p += len;
        }

        s->chars = n;
    }

    return s->chars;
}


size_t
llm_js_offset(llm_js_t *s, size_t chars)
{
    size_t       len;
    const char  *p, *end;

    if (llm_js_chars(s) == s->len) {
        return chars;
    }

    p = llm_js_data(s);
    end = p + s->len;

    for ( /* void */ ; chars && p < end; chars--) {
        (void) llm_jc_decode(p, end, &len);
        p += len;
    }

    return (size_t) (p - llm_js_data(s));
}


int
llm_js_equal(const llm_js_t *a, const llm_js_t *b)
{
    return a->len == b->len
           && (a == b || memcmp(llm_js_data(a), llm_js_data(b), a->len) == 0);
}


int
llm_js_is(const llm_js_t *s, const char *literal)
{
    return s->len == strlen(literal)
           && memcmp(llm_js_data(s), literal, s->len) == 0;
}


int
llm_js_trusted_at(const llm_js_t *s, size_t pos)
{
    return llm_jbytes_trusted(s->bytes, s->start + pos);
}


size_t
llm_js_find(const llm_js_t *s, const llm_js_t *sub, size_t from)
{
    const char  *p;

    if (from > s->len) {
        return SIZE_MAX;
    }

    if (sub->len == 0) {
        return from;
    }

    p = memmem(llm_js_data(s) + from, s->len - from, llm_js_data(sub),
               sub->len);

    return p ? (size_t) (p - llm_js_data(s)) : SIZE_MAX;
}


/* the last occurrence that ends at or before end */

size_t
llm_js_rfind(const llm_js_t *s, const llm_js_t *sub, size_t end)
{
    size_t       i;
    const char  *p;

    if (sub->len > end) {
        return SIZE_MAX;
    }

    p = llm_js_data(s);

    for (i = end - sub->len + 1; i-- > 0; /* void */ ) {
        if (memcmp(p + i, llm_js_data(sub), sub->len) == 0) {
            return i;
        }
    }

    return SIZE_MAX;
}


/* the builder */

void
llm_jb_init(llm_jb_t *b, llm_jrt_t *rt, size_t limit)
{
    b->rt = rt;
    b->bytes = NULL;
    b->limit = limit;
}


/* makes room for len more bytes; the old bytes stay where they are, unused */

static int
llm_jb_reserve(llm_jb_t *b, size_t len)
{
    char    *data;
    size_t   cap, used;

    used = b->bytes ? b->bytes->used : 0;
    llm_jtry(b->rt->failed);

    if (b->limit && (len > b->limit || used > b->limit - len)) {
        return llm_jrt_limit(b->rt, "output exceeds %zu bytes", b->limit);
    }

    if (b->bytes && b->bytes->cap - used >= len) {
        return LLM_OK;
    }

    cap = llm_max(used * 2, used + len);
    cap = llm_max(cap, 64);

    if (b->bytes == NULL) {
        b->bytes = llm_jbytes_new(b->rt, cap);
        return b->bytes ? LLM_OK : LLM_ERROR;
    }

    llm_jnew(b->rt, data, cap);
    memcpy(data, b->bytes->data, used);
    b->bytes->data = data;
    b->bytes->cap = cap;

    return LLM_OK;
}


int
llm_jb_add(llm_jb_t *b, const char *data, size_t len, int trusted)
{
    if (len == 0) {
        return b->rt->failed;
    }

    llm_jtry(llm_jb_reserve(b, len));
    llm_jtry(llm_jbytes_mark(b->rt, b->bytes, trusted));

    memcpy(b->bytes->data + b->bytes->used, data, len);
    b->bytes->used += len;

    return LLM_OK;
}


int
llm_jb_adds(llm_jb_t *b, const char *s, int trusted)
{
    return llm_jb_add(b, s, strlen(s), trusted);
}


int
llm_jb_add_range(llm_jb_t *b, const llm_js_t *s, size_t start, size_t end)
{
    if (start >= end) {
        return b->rt->failed;
    }

    llm_jtry(llm_jb_reserve(b, end - start));
    llm_jtry(llm_jrt_charge(b->rt, end - start));

    return llm_jbytes_append(b->rt, b->bytes, s->bytes, s->start + start,
                             s->start + end);
}


int
llm_jb_add_str(llm_jb_t *b, const llm_js_t *s)
{
    return llm_jb_add_range(b, s, 0, s->len);
}


int
llm_jb_spaces(llm_jb_t *b, size_t n, int trusted)
{
    llm_jtry(llm_jrt_charge(b->rt, n));
    llm_jtry(llm_jb_reserve(b, n));

    for ( /* void */ ; n; n--) {
        llm_jtry(llm_jb_add(b, " ", 1, trusted));
    }

    return LLM_OK;
}


int
llm_jb_done(llm_jb_t *b, llm_jv_t *res)
{
    llm_jbytes_t  *bytes;

    llm_jtry(llm_jb_reserve(b, 0));

    bytes = b->bytes;
    b->bytes = NULL;

    return llm_js_new(b->rt, bytes, 0, bytes->used, res);
}


int
llm_jb_done_as(llm_jb_t *b, const llm_js_t *s, llm_jv_t *res)
{
    llm_jtry(llm_jb_done(b, res));

    res->u.s->markup = s->markup;

    return LLM_OK;
}
