/*
 * Values as models write them; see literal.h.
 */

#include "engine/emit/literal.h"


void
llm_lit_init(llm_lit_t *r, llm_str_t text, llm_str_t quote, llm_buf_t *out)
{
    r->p = text.data;
    r->end = text.data + text.len;
    r->quote = quote;
    r->out = out;
    r->depth = 0;
}


static void
llm_lit_put(llm_lit_t *r, const char *s, size_t n)
{
    if (r->out) {
        (void) llm_buf_add(r->out, s, n);
    }
}


static int
llm_lit_take(llm_lit_t *r, char c)
{
    if (r->p == r->end || *r->p != c) {
        return 0;
    }

    llm_lit_put(r, &c, 1);
    r->p++;

    return 1;
}


void
llm_lit_space(llm_lit_t *r)
{
    const char  *start;

    start = r->p;

    while (r->p < r->end
           && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t'
               || *r->p == '\r'))
    {
        r->p++;
    }

    llm_lit_put(r, start, (size_t) (r->p - start));
}


/* ---- strings ---- */

/* one byte of a string, which is not escaped */

static void
llm_lit_char(llm_buf_t *out, char c)
{
    switch (c) {

    case '"':
    case '\\':
        (void) llm_buf_addc(out, '\\');
        (void) llm_buf_addc(out, c);
        return;

    case '\n':
        (void) llm_buf_adds(out, "\\n");
        return;

    case '\t':
        (void) llm_buf_adds(out, "\\t");
        return;

    case '\r':
        (void) llm_buf_adds(out, "\\r");
        return;
    }

    if ((unsigned char) c < 0x20) {
        (void) llm_buf_addf(out, "\\u%04x", (unsigned) (unsigned char) c);
        return;
    }

    (void) llm_buf_addc(out, c);
}


int
llm_lit_quote(llm_str_t s, llm_buf_t *out)
{
    size_t  i;

    (void) llm_buf_addc(out, '"');

    for (i = 0; i < s.len; i++) {
        llm_lit_char(out, s.data[i]);
    }

    return llm_buf_addc(out, '"');
}


static int
llm_lit_hex(const char *p, const char *end, unsigned *value)
{
    int  i, digit;

    if (end - p < 4) {
        return LLM_ERROR;
    }

    for (i = 0, *value = 0; i < 4; i++) {
        digit = llm_hex_digit(p[i]);

        if (digit < 0) {
            return LLM_ERROR;
        }

        *value = *value * 16 + (unsigned) digit;
    }

    return LLM_OK;
}


/* a backslash and what follows; an escape that JSON does not have means the
   backslash itself */

static int
llm_lit_escape(llm_lit_t *r)
{
    char      c;
    unsigned  value;

    if (r->end - r->p < 2) {
        return LLM_ERROR;
    }

    c = r->p[1];

    if (c == 'u') {
        if (llm_lit_hex(r->p + 2, r->end, &value) != LLM_OK) {
            return LLM_ERROR;
        }

        llm_lit_put(r, r->p, 6);
        r->p += 6;

        return LLM_OK;
    }

    if (c && strchr("\"\\/bfnrt", c)) {
        llm_lit_put(r, r->p, 2);

    } else if (c == '\'') {
        llm_lit_put(r, "'", 1);

    } else {
        llm_lit_put(r, "\\\\", 2);
        r->p++;

        return LLM_OK;
    }

    r->p += 2;

    return LLM_OK;
}


static int
llm_lit_string(llm_lit_t *r)
{
    char  q;

    q = *r->p++;
    llm_lit_put(r, "\"", 1);

    while (r->p < r->end && *r->p != q) {

        if (*r->p == '\\') {
            if (llm_lit_escape(r) != LLM_OK) {
                return LLM_ERROR;
            }

        } else {
            if (r->out) {
                llm_lit_char(r->out, *r->p);
            }

            r->p++;
        }
    }

    if (r->p == r->end) {
        return LLM_ERROR;
    }

    r->p++;
    llm_lit_put(r, "\"", 1);

    return LLM_OK;
}


/* between quotes of the format's own, where nothing is escaped */

static int
llm_lit_quoted(llm_lit_t *r)
{
    const char  *end;
    llm_str_t    s;

    s.data = r->p + r->quote.len;
    end = memmem(s.data, (size_t) (r->end - s.data), r->quote.data,
                 r->quote.len);

    if (end == NULL) {
        return LLM_ERROR;
    }

    s.len = (size_t) (end - s.data);
    r->p = end + r->quote.len;

    return r->out ? llm_lit_quote(s, r->out) : LLM_OK;
}


static int
llm_lit_is_quoted(const llm_lit_t *r)
{
    return r->quote.len && (size_t) (r->end - r->p) >= r->quote.len
           && memcmp(r->p, r->quote.data, r->quote.len) == 0;
}


static int
llm_lit_key(llm_lit_t *r)
{
    llm_str_t  s;

    if (r->p == r->end) {
        return LLM_ERROR;
    }

    if (llm_lit_is_quoted(r)) {
        return llm_lit_quoted(r);
    }

    if (*r->p == '"' || *r->p == '\'') {
        return llm_lit_string(r);
    }

    if (r->quote.len == 0) {
        return LLM_ERROR;
    }

    s.data = r->p;

    while (r->p < r->end && !strchr(":,{}[] \n\t", *r->p)) {
        r->p++;
    }

    s.len = (size_t) (r->p - s.data);

    if (s.len == 0) {
        return LLM_ERROR;
    }

    return r->out ? llm_lit_quote(s, r->out) : LLM_OK;
}


/* ---- values ---- */

static size_t
llm_lit_digits(llm_lit_t *r)
{
    size_t  n;

    for (n = 0; r->p < r->end && *r->p >= '0' && *r->p <= '9'; n++) {
        r->p++;
    }

    return n;
}


static int
llm_lit_number(llm_lit_t *r)
{
    size_t       n;
    const char  *start;

    start = r->p;
    r->p += *r->p == '-';

    n = (size_t) (r->end - r->p) && *r->p == '0';

    if (llm_lit_digits(r) == 0 || (n && r->p - start > 1 + (*start == '-'))) {
        return LLM_ERROR;
    }

    if (r->p < r->end && *r->p == '.') {
        r->p++;

        if (llm_lit_digits(r) == 0) {
            return LLM_ERROR;
        }
    }

    if (r->p < r->end && (*r->p | 0x20) == 'e') {
        r->p++;
        r->p += r->p < r->end && (*r->p == '+' || *r->p == '-');

        if (llm_lit_digits(r) == 0) {
            return LLM_ERROR;
        }
    }

    llm_lit_put(r, start, (size_t) (r->p - start));

    return LLM_OK;
}


static int
llm_lit_word(llm_lit_t *r)
{
    size_t  i, n;

    static const struct {
        const char  *word;
        const char  *json;
    } words[] = {
        { "true", "true" }, { "false", "false" }, { "null", "null" },
        { "True", "true" }, { "False", "false" }, { "None", "null" }
    };

    for (i = 0; i < llm_nelems(words); i++) {
        n = strlen(words[i].word);

        if ((size_t) (r->end - r->p) >= n
            && memcmp(r->p, words[i].word, n) == 0)
        {
            r->p += n;
            llm_lit_put(r, words[i].json, strlen(words[i].json));

            return LLM_OK;
        }
    }

    return LLM_ERROR;
}


static int
llm_lit_inner(llm_lit_t *r, char close)
{
    r->p++;
    llm_lit_put(r, close == '}' ? "{" : "[", 1);
    llm_lit_space(r);

    if (llm_lit_take(r, close)) {
        return LLM_OK;
    }

    do {
        llm_lit_space(r);

        if (close == '}') {
            if (llm_lit_key(r) != LLM_OK) {
                return LLM_ERROR;
            }

            llm_lit_space(r);

            if (!llm_lit_take(r, ':')) {
                return LLM_ERROR;
            }
        }

        if (llm_lit_value(r) != LLM_OK) {
            return LLM_ERROR;
        }

    } while (llm_lit_take(r, ','));

    return llm_lit_take(r, close) ? LLM_OK : LLM_ERROR;
}


int
llm_lit_value(llm_lit_t *r)
{
    int  rc;

    llm_lit_space(r);

    if (r->p == r->end || r->depth == LLM_LIT_DEPTH) {
        return LLM_ERROR;
    }

    r->depth++;

    if (*r->p == '{' || *r->p == '[') {
        rc = llm_lit_inner(r, *r->p == '{' ? '}' : ']');

    } else if (llm_lit_is_quoted(r)) {
        rc = llm_lit_quoted(r);

    } else if (*r->p == '"' || *r->p == '\'') {
        rc = llm_lit_string(r);

    } else if (*r->p == '-' || (*r->p >= '0' && *r->p <= '9')) {
        rc = llm_lit_number(r);

    } else {
        rc = llm_lit_word(r);
    }

    r->depth--;

    if (rc != LLM_OK || (r->out && r->out->failed)) {
        return LLM_ERROR;
    }

    llm_lit_space(r);

    return LLM_OK;
}


/* the value at r->p, as it is written, and the comma behind it */

static int
llm_lit_cut(llm_lit_t *r, char close, llm_str_t *value)
{
    llm_lit_space(r);
    value->data = r->p;

    if (llm_lit_value(r) != LLM_OK) {
        return LLM_ERROR;
    }

    value->len = (size_t) (r->p - value->data);

    if (llm_lit_take(r, ',')) {
        llm_lit_space(r);
        return r->p < r->end && *r->p != close ? LLM_OK : LLM_ERROR;
    }

    return r->p < r->end && *r->p == close ? LLM_OK : LLM_ERROR;
}


int
llm_lit_member(llm_lit_t *r, llm_str_t *key, llm_str_t *value)
{
    size_t  quote;

    llm_lit_space(r);

    if (llm_lit_take(r, '}')) {
        return LLM_END;
    }

    key->data = r->p;
    quote = llm_lit_is_quoted(r) ? r->quote.len
            : r->p < r->end && (*r->p == '"' || *r->p == '\'');

    if (llm_lit_key(r) != LLM_OK) {
        return LLM_ERROR;
    }

    key->data += quote;
    key->len = (size_t) (r->p - key->data) - quote;
    llm_lit_space(r);

    return llm_lit_take(r, ':') ? llm_lit_cut(r, '}', value) : LLM_ERROR;
}


int
llm_lit_item(llm_lit_t *r, llm_str_t *value)
{
    llm_lit_space(r);

    return llm_lit_take(r, ']') ? LLM_END : llm_lit_cut(r, ']', value);
}


/* ---- what a string says ---- */

static void
llm_lit_utf8(llm_buf_t *out, unsigned c)
{
    if (c < 0x80) {
        (void) llm_buf_addc(out, (char) c);
        return;
    }

    if (c < 0x800) {
        (void) llm_buf_addc(out, (char) (0xc0 | c >> 6));

    } else {
        if (c < 0x10000) {
            (void) llm_buf_addc(out, (char) (0xe0 | c >> 12));

        } else {
            (void) llm_buf_addc(out, (char) (0xf0 | c >> 18));
            (void) llm_buf_addc(out, (char) (0x80 | (c >> 12 & 0x3f)));
        }

        (void) llm_buf_addc(out, (char) (0x80 | (c >> 6 & 0x3f)));
    }

    (void) llm_buf_addc(out, (char) (0x80 | (c & 0x3f)));
}


/* \uXXXX at p, two of them for a character beyond 16 bits; half of such a
   pair becomes U+FFFD; returns where it ends, NULL: it is none */

static const char *
llm_lit_unicode(const char *p, const char *end, llm_buf_t *out)
{
    unsigned  c, low;

    if (llm_lit_hex(p + 2, end, &c) != LLM_OK) {
        return NULL;
    }

    p += 6;

    if (c >= 0xd800 && c < 0xdc00 && end - p >= 6 && p[0] == '\\'
        && p[1] == 'u' && llm_lit_hex(p + 2, end, &low) == LLM_OK
        && low >= 0xdc00 && low < 0xe000)
    {
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p += 6;
    }

    llm_lit_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);

    return p;
}


int
llm_lit_unescape(llm_str_t s, llm_buf_t *out)
{
    const char  *p, *end, *at;

    static const char  names[] = "bfnrt";
    static const char  chars[] = "\b\f\n\r\t";

    end = s.data + s.len;

    for (p = s.data; p < end; /* void */ ) {

        if (*p != '\\' || end - p < 2) {
            (void) llm_buf_addc(out, *p++);
            continue;
        }

        if (p[1] == 'u') {
            p = llm_lit_unicode(p, end, out);

            if (p == NULL) {
                return LLM_ERROR;
            }

            continue;
        }

        at = p[1] ? strchr(names, p[1]) : NULL;
        (void) llm_buf_addc(out, at ? chars[at - names] : p[1]);
        p += 2;
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}
