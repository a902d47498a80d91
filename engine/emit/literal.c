/*
 * Values as models write them; see literal.h.
 */

#include "engine/base/utf8.h"
#include "engine/emit/literal.h"

/* what JSON gets in place of an escape that no text may contain */
#define LLM_LIT_REPLACEMENT  "\\ufffd"

/* bytes of one escape, and of a pair of surrogates */
#define LLM_LIT_UNICODE      6
#define LLM_LIT_PAIR         12


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

void
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

    case '\0':
        (void) llm_buf_adds(out, LLM_UTF8_REPLACEMENT);
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


/*
 * The escape \uXXXX at p: its length, including the other half of a pair, and
 * its character, U+FFFD for what no text may contain; 0: it is no escape, or
 * not complete
 */

static size_t
llm_lit_unicode(const char *p, const char *end, unsigned *c)
{
    unsigned  low;

    if (llm_lit_hex(p + 2, end, c) != LLM_OK) {
        return 0;
    }

    if (*c >= 0xd800 && *c < 0xdc00 && end - p >= LLM_LIT_PAIR
        && p[6] == '\\' && p[7] == 'u'
        && llm_lit_hex(p + 8, end, &low) == LLM_OK
        && low >= 0xdc00 && low < 0xe000)
    {
        *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
        return LLM_LIT_PAIR;
    }

    if (*c == 0 || (*c >= 0xd800 && *c < 0xe000)) {
        *c = 0xfffd;
    }

    return LLM_LIT_UNICODE;
}


/* writes the escape again, as JSON */

static void
llm_lit_put_unicode(llm_buf_t *out, const char *p, size_t n, unsigned c)
{
    if (c == 0xfffd) {
        (void) llm_buf_adds(out, LLM_LIT_REPLACEMENT);

    } else {
        (void) llm_buf_add(out, p, n);
    }
}


/* may the rest of the text still become an escape, or a pair? */

static int
llm_lit_unicode_waits(const char *p, const char *end)
{
    size_t    i, n;
    unsigned  c;

    n = (size_t) (end - p);

    for (i = 2; i < llm_min(n, LLM_LIT_UNICODE); i++) {
        if (llm_hex_digit(p[i]) < 0) {
            return 0;
        }
    }

    if (n < LLM_LIT_UNICODE) {
        return 1;
    }

    if (n >= LLM_LIT_PAIR || llm_lit_hex(p + 2, end, &c) != LLM_OK
        || c < 0xd800 || c >= 0xdc00)
    {
        return 0;
    }

    return (n < 7 || p[6] == '\\') && (n < 8 || p[7] == 'u');
}


size_t
llm_lit_pass(llm_str_t s, int last, llm_buf_t *out)
{
    size_t       n;
    unsigned     c;
    const char  *p, *end, *from;

    end = s.data + s.len;
    from = s.data;

    for ( ;; ) {
        p = memchr(from, '\\', (size_t) (end - from));
        p = p ? p : end;

        (void) llm_buf_add(out, from, (size_t) (p - from));

        if (p == end) {
            break;
        }

        if (end - p < 2 || p[1] != 'u') {
            if (end - p < 2 && !last) {
                break;
            }

            n = llm_min((size_t) (end - p), 2);
            (void) llm_buf_add(out, p, n);

        } else {
            if (!last && llm_lit_unicode_waits(p, end)) {
                break;
            }

            n = llm_lit_unicode(p, end, &c);

            if (n) {
                llm_lit_put_unicode(out, p, n, c);

            } else {
                n = 2;
                (void) llm_buf_add(out, p, n);
            }
        }

        from = p + n;
    }

    return (size_t) (p - s.data);
}


/* reads a backslash and what follows; in an escape that JSON does not have,
   the backslash is a character of the text */

static int
llm_lit_escape(llm_lit_t *r)
{
    char      c;
    size_t    n;
    unsigned  value;

    if (r->end - r->p < 2) {
        return LLM_ERROR;
    }

    c = r->p[1];

    if (c == 'u') {
        n = llm_lit_unicode(r->p, r->end, &value);

        if (n == 0) {
            return LLM_ERROR;
        }

        if (r->out) {
            llm_lit_put_unicode(r->out, r->p, n, value);
        }

        r->p += n;

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


/* reads a string in the format's own quotes, which has no escapes */

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


/* finds the value at r->p, as it is written, and skips the comma after it */

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


/* ---- the text of a string ---- */

int
llm_lit_unescape(llm_str_t s, llm_buf_t *out)
{
    char         u[LLM_UTF8_MAX];
    size_t       n;
    unsigned     c;
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
            n = llm_lit_unicode(p, end, &c);

            if (n == 0) {
                return LLM_ERROR;
            }

            (void) llm_buf_add(out, u, llm_utf8_encode(u, c));
            p += n;
            continue;
        }

        at = p[1] ? strchr(names, p[1]) : NULL;
        (void) llm_buf_addc(out, at ? chars[at - names] : p[1]);
        p += 2;
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}
