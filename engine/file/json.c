/*
 * The JSON reader; see json.h.
 */

#include "engine/base/utf8.h"
#include "engine/file/json.h"

#define LLM_JSON_DEPTH  64


void
llm_json_begin(llm_json_reader_t *r, llm_str_t s, const char *name,
    size_t limit, llm_err_t *err)
{
    memset(r, 0, sizeof(*r));
    r->p = s.data;
    r->start = s.data;
    r->end = s.data + s.len;
    r->name = name;
    r->err = err;
    llm_buf_init(&r->text, limit);
}


void
llm_json_close(llm_json_reader_t *r)
{
    llm_buf_free(&r->text);
}


int
llm_json_wrong(llm_json_reader_t *r, const char *what)
{
    if (!r->failed) {
        r->failed = 1;
        (void) llm_fail(r->err, "%s: byte %zu: %s", r->name,
                        (size_t) (r->p - r->start), what);
    }

    return LLM_ERROR;
}


static void
llm_json_space(llm_json_reader_t *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t'
                             || *r->p == '\r'))
    {
        r->p++;
    }
}


int
llm_json_next(llm_json_reader_t *r)
{
    llm_json_space(r);

    if (r->failed || r->p == r->end) {
        return -1;
    }

    switch (*r->p) {

    case '{': case '[': case '"': case 't': case 'f': case 'n':
        return *r->p;

    case '-': case '0': case '1': case '2': case '3': case '4': case '5':
    case '6': case '7': case '8': case '9':
        return 0;

    default:
        return -1;
    }
}


int
llm_json_done(llm_json_reader_t *r)
{
    llm_json_space(r);

    if (r->failed) {
        return LLM_ERROR;
    }

    return r->p == r->end ? LLM_OK : llm_json_wrong(r, "text after the end");
}


static int
llm_json_char(llm_json_reader_t *r, char c, const char *what)
{
    llm_json_space(r);

    if (r->failed || r->p == r->end || *r->p != c) {
        return llm_json_wrong(r, what);
    }

    r->p++;

    return LLM_OK;
}


int
llm_json_enter(llm_json_reader_t *r, char open)
{
    r->fresh = 1;

    return llm_json_char(r, open, open == '{' ? "an object is expected"
                                              : "an array is expected");
}


/* moves to the next member or item; LLM_END: after the closing character */

static int
llm_json_step(llm_json_reader_t *r, char closing)
{
    int  fresh;

    fresh = r->fresh;
    r->fresh = 0;
    llm_json_space(r);

    if (r->failed || r->p == r->end) {
        return llm_json_wrong(r, "the text ends inside a value");
    }

    if (*r->p == closing) {
        r->p++;
        return LLM_END;
    }

    return fresh ? LLM_OK
                 : llm_json_char(r, ',', "a comma or the end is expected");
}


int
llm_json_item(llm_json_reader_t *r)
{
    return llm_json_step(r, ']');
}


int
llm_json_member(llm_json_reader_t *r, llm_str_t *key)
{
    int  rc;

    rc = llm_json_step(r, '}');

    if (rc != LLM_OK) {
        return rc;
    }

    if (llm_json_string(r, key) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_json_char(r, ':', "a colon is expected");
}


static int
llm_json_hex(llm_json_reader_t *r, uint32_t *cp)
{
    int  i, d;

    for (i = 0, *cp = 0; i < 4; i++) {
        d = r->p < r->end ? llm_hex_digit((unsigned char) *r->p) : -1;

        if (d < 0) {
            return llm_json_wrong(r, "four hexadecimal digits are expected");
        }

        *cp = *cp << 4 | (uint32_t) d;
        r->p++;
    }

    return LLM_OK;
}


/* after "\u" */

static int
llm_json_unicode(llm_json_reader_t *r)
{
    char      c[LLM_UTF8_MAX];
    uint32_t  cp, low;

    if (llm_json_hex(r, &cp) != LLM_OK) {
        return LLM_ERROR;
    }

    if (cp >= 0xd800 && cp < 0xdc00 && r->end - r->p >= 6
        && r->p[0] == '\\' && r->p[1] == 'u')
    {
        r->p += 2;

        if (llm_json_hex(r, &low) != LLM_OK) {
            return LLM_ERROR;
        }

        if (low < 0xdc00 || low > 0xdfff) {
            return llm_json_wrong(r, "half of a surrogate pair");
        }

        cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
    }

    if (cp >= 0xd800 && cp < 0xe000) {
        return llm_json_wrong(r, "half of a surrogate pair");
    }

    return llm_buf_add(&r->text, c, llm_utf8_encode(c, cp));
}


static int
llm_json_escape(llm_json_reader_t *r)
{
    char                 c;
    const char          *at;
    static const char    from[] = "\"\\/bfnrt";
    static const char    to[] = "\"\\/\b\f\n\r\t";

    c = r->p < r->end ? *r->p++ : '\0';

    if (c == 'u') {
        return llm_json_unicode(r);
    }

    at = c ? strchr(from, c) : NULL;

    return at ? llm_buf_addc(&r->text, to[at - from])
              : llm_json_wrong(r, "an unknown escape");
}


int
llm_json_string(llm_json_reader_t *r, llm_str_t *s)
{
    int          rc;
    const char  *from;

    if (llm_json_char(r, '"', "a string is expected") != LLM_OK) {
        return LLM_ERROR;
    }

    r->text.len = 0;
    rc = llm_buf_add(&r->text, "", 0);

    for ( ;; ) {
        from = r->p;

        while (r->p < r->end && *r->p != '"' && *r->p != '\\'
               && (unsigned char) *r->p >= 0x20)
        {
            r->p++;
        }

        if (rc == LLM_OK) {
            rc = llm_buf_add(&r->text, from, (size_t) (r->p - from));
        }

        if (r->p == r->end || (unsigned char) *r->p < 0x20) {
            return llm_json_wrong(r, "the string does not end");
        }

        if (*r->p++ == '"') {
            break;
        }

        if (llm_json_escape(r) != LLM_OK && r->failed) {
            return LLM_ERROR;
        }
    }

    if (rc != LLM_OK || r->text.failed) {
        return llm_json_wrong(r, "the string is too long");
    }

    s->data = r->text.len ? r->text.data : "";
    s->len = r->text.len;

    if (llm_utf8_valid(s->data, s->len) != s->len) {
        return llm_json_wrong(r, "the string is not UTF-8");
    }

    return LLM_OK;
}


int
llm_json_uint(llm_json_reader_t *r, uint64_t *v)
{
    int          d;
    const char  *from;

    llm_json_space(r);
    from = r->p;
    *v = 0;

    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        d = *r->p - '0';

        if (*v > (UINT64_MAX - 9) / 10) {
            return llm_json_wrong(r, "the number is too large");
        }

        *v = *v * 10 + (uint64_t) d;
        r->p++;
    }

    if (r->failed || r->p == from || (r->p - from > 1 && *from == '0')
        || (r->p < r->end && memchr(".eE", *r->p, 3)))
    {
        return llm_json_wrong(r, "a whole number is expected");
    }

    return LLM_OK;
}


static int
llm_json_word(llm_json_reader_t *r, const char *word)
{
    size_t  n;

    n = strlen(word);
    llm_json_space(r);

    if (r->failed || (size_t) (r->end - r->p) < n
        || memcmp(r->p, word, n) != 0)
    {
        return LLM_ABSENT;
    }

    r->p += n;

    return LLM_OK;
}


static size_t
llm_json_digits(llm_json_reader_t *r)
{
    const char  *from;

    for (from = r->p; r->p < r->end && *r->p >= '0' && *r->p <= '9';
         r->p++) { /* void */ }

    return (size_t) (r->p - from);
}


/* skips a number */

static int
llm_json_number(llm_json_reader_t *r)
{
    size_t       n;
    const char  *from;

    r->p += *r->p == '-';
    from = r->p;
    n = llm_json_digits(r);

    if (n == 0 || (n > 1 && *from == '0')) {
        return llm_json_wrong(r, "no number");
    }

    if (r->p < r->end && *r->p == '.') {
        r->p++;

        if (llm_json_digits(r) == 0) {
            return llm_json_wrong(r, "no number");
        }
    }

    if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
        r->p++;
        r->p += r->p < r->end && (*r->p == '+' || *r->p == '-');

        if (llm_json_digits(r) == 0) {
            return llm_json_wrong(r, "no number");
        }
    }

    return LLM_OK;
}


/* skips a value without members */

static int
llm_json_skip_plain(llm_json_reader_t *r)
{
    llm_str_t  s;

    switch (llm_json_next(r)) {

    case '"':
        return llm_json_string(r, &s);

    case 't': case 'f': case 'n':
        return llm_json_word(r, "null") == LLM_OK
               || llm_json_word(r, "true") == LLM_OK
               || llm_json_word(r, "false") == LLM_OK
               ? LLM_OK : llm_json_wrong(r, "no value");

    case 0:
        return llm_json_number(r);

    default:
        return llm_json_wrong(r, "a value is expected");
    }
}


int
llm_json_skip(llm_json_reader_t *r)
{
    int        rc, n;
    char       open[LLM_JSON_DEPTH];
    uint32_t   depth;
    llm_str_t  key;

    for (depth = 0; ; ) {
        n = llm_json_next(r);

        if (n == '{' || n == '[') {
            if (depth == LLM_JSON_DEPTH) {
                return llm_json_wrong(r, "values are nested too deeply");
            }

            open[depth++] = (char) n;
            rc = llm_json_enter(r, (char) n);

        } else {
            rc = llm_json_skip_plain(r);
        }

        if (rc != LLM_OK) {
            return rc;
        }

        /* to the next value, or out of all that have ended */

        for ( ;; ) {
            if (depth == 0) {
                return LLM_OK;
            }

            rc = open[depth - 1] == '{' ? llm_json_member(r, &key)
                                        : llm_json_item(r);
            if (rc != LLM_END) {
                break;
            }

            depth--;
        }

        if (rc != LLM_OK) {
            return rc;
        }
    }
}
