/*
 * Template source to tokens, with trim_blocks, lstrip_blocks and the signs -
 * and + of tags.
 *
 * The whole source is copied into the template's arena.  In the copy newlines
 * are "
 *
 * " and one newline at the end is dropped, as in jinja2; tokens point into the
 * copy.
 */

#include "engine/text/jinja/ast.h"

#include <errno.h>
#include <stdio.h>

typedef struct {
    llm_jcomp_t  *c;
    const char   *start;
    const char   *p;
    const char   *end;
    uint32_t      line;
    int           line_start;           /* 1: the last tag was followed by " ",
                                           or nothing precedes */
    char          open[LLM_J_MAX_NESTING];
    uint32_t      n_open;
    llm_jtok_t    spare;                /* used when memory runs out */
} llm_jlex_t;


static llm_jtok_t *
llm_jlex_add(llm_jlex_t *lx, llm_jtok_type_t type)
{
    size_t        cap;
    llm_jtok_t   *v;
    llm_jtoks_t  *toks;

    toks = &lx->c->t->tokens;

    if (toks->n == toks->cap) {
        cap = toks->cap ? toks->cap * 2 : 256;

        v = llm_jcomp_alloc(lx->c, cap * sizeof(llm_jtok_t));
        if (v == NULL) {
            return &lx->spare;
        }

        if (toks->n) {
            memcpy(v, toks->v, toks->n * sizeof(llm_jtok_t));
        }

        toks->v = v;
        toks->cap = cap;
    }

    v = &toks->v[toks->n++];
    memset(v, 0, sizeof(*v));
    v->type = type;
    v->line = lx->line;
    v->text = llm_str("");

    return v;
}


/* moves on to q, counting lines */

static void
llm_jlex_skip(llm_jlex_t *lx, const char *q)
{
    while (lx->p < q) {
        if (*lx->p++ == '\n') {
            lx->line++;
        }
    }
}


static const char *
llm_jlex_spaces(llm_jlex_t *lx, const char *p)
{
    size_t  n;

    while (p < lx->end && (n = llm_jc_space(p, lx->end)) != 0) {
        p += n;
    }

    return p;
}


static int
llm_jlex_at(const llm_jlex_t *lx, const char *p, const char *s)
{
    size_t  n;

    n = strlen(s);

    return (size_t) (lx->end - p) >= n && memcmp(p, s, n) == 0;
}


/* adds the text up to q, where a tag with this sign begins (0: none) */

static void
llm_jlex_data(llm_jlex_t *lx, const char *q, char sign, int lstrip)
{
    size_t       n;
    const char  *end, *prev, *bol;
    llm_jtok_t  *tok;

    end = q;

    if (sign == '-') {
        while (end > lx->p) {
            prev = llm_jc_prev(lx->p, end);
            n = llm_jc_space(prev, end);

            if (n == 0) {
                break;
            }

            end = prev;
        }

    } else if (sign != '+' && lstrip) {
        for (bol = end; bol > lx->p && bol[-1] != '\n'; bol--) { /* void */ }

        if ((bol > lx->p || lx->line_start)
            && llm_jlex_spaces(lx, bol) >= end)
        {
            end = bol;
        }
    }

    if (end > lx->p) {
        tok = llm_jlex_add(lx, LLM_JT_DATA);
        tok->text.data = lx->p;
        tok->text.len = (size_t) (end - lx->p);
    }

    llm_jlex_skip(lx, q);
}


/*
 * The end of a tag at p: its length, including what is removed after it, or 0.
 * mark is "%}", "}}" or "#}".
 */

static size_t
llm_jlex_tag_end(llm_jlex_t *lx, const char *p, const char *mark)
{
    const char  *q;

    if (p < lx->end && *p == '-' && llm_jlex_at(lx, p + 1, mark)) {
        q = llm_jlex_spaces(lx, p + 3);

        return (size_t) (q - p);
    }

    if (mark[0] == '}') {
        return llm_jlex_at(lx, p, mark) ? 2 : 0;
    }

    if (p < lx->end && *p == '+' && llm_jlex_at(lx, p + 1, mark)) {
        return 3;
    }

    if (llm_jlex_at(lx, p, mark)) {
        return (p + 2 < lx->end && p[2] == '\n') ? 3 : 2;
    }

    return 0;
}


static void
llm_jlex_end_tag(llm_jlex_t *lx, size_t len)
{
    llm_jlex_skip(lx, lx->p + len);
    lx->line_start = lx->p[-1] == '\n';
}


static void
llm_jlex_comment(llm_jlex_t *lx)
{
    size_t       n;
    const char  *q;

    for (q = lx->p; q < lx->end; q++) {
        n = llm_jlex_tag_end(lx, q, "#}");

        if (n) {
            llm_jlex_skip(lx, q);
            llm_jlex_end_tag(lx, n);
            return;
        }
    }

    (void) llm_jcomp_fail(lx->c, lx->line, "missing end of comment tag");
}


/* p is after "{%" and its sign; if this is "raw %}", returns where its text
   begins */

static const char *
llm_jlex_raw(llm_jlex_t *lx, const char *p)
{
    p = llm_jlex_spaces(lx, p);

    if (!llm_jlex_at(lx, p, "raw")) {
        return NULL;
    }

    p = llm_jlex_spaces(lx, p + 3);

    if (llm_jlex_at(lx, p, "-%}")) {
        return llm_jlex_spaces(lx, p + 3);
    }

    return llm_jlex_at(lx, p, "%}") ? p + 2 : NULL;
}


static void
llm_jlex_raw_body(llm_jlex_t *lx)
{
    char         sign;
    size_t       n;
    const char  *q, *p;

    for (q = lx->p; q < lx->end; q++) {
        if (!llm_jlex_at(lx, q, "{%")) {
            continue;
        }

        p = q + 2;
        sign = (p < lx->end && (*p == '-' || *p == '+')) ? *p++ : 0;
        p = llm_jlex_spaces(lx, p);

        if (!llm_jlex_at(lx, p, "endraw")) {
            continue;
        }

        p = llm_jlex_spaces(lx, p + 6);
        n = llm_jlex_tag_end(lx, p, "%}");

        if (n) {
            llm_jlex_data(lx, q, sign, 1);
            llm_jlex_skip(lx, p);
            llm_jlex_end_tag(lx, n);

            return;
        }
    }

    (void) llm_jcomp_fail(lx->c, lx->line, "missing end of raw directive");
}


static int
llm_jlex_hex(const char *p, const char *end, size_t digits, uint32_t *res)
{
    char  buf[16];

    if ((size_t) (end - p) < digits) {
        return LLM_ERROR;
    }

    memcpy(buf, p, digits);
    buf[digits] = '\0';
    *res = (uint32_t) strtoul(buf, NULL, 16);

    return strspn(buf, "0123456789abcdefABCDEF") == digits ? LLM_OK
                                                           : LLM_ERROR;
}


/* reads the escape after a backslash at p; returns its end, or NULL */

static const char *
llm_jlex_escape(const char *p, const char *end, char **out)
{
    size_t              digits;
    uint32_t            c;
    const char         *q;
    static const char   from[] = "\\'\"abfnrtv";
    static const char   to[] = "\\'\"\a\b\f\n\r\t\v";

    q = strchr(from, *p);

    if (*p && q) {
        *(*out)++ = to[q - from];
        return p + 1;
    }

    if (*p == '\n') {
        return p + 1;
    }

    digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;

    if (digits) {
        if (llm_jlex_hex(p + 1, end, digits, &c) != LLM_OK || c > 0x10ffff) {
            return NULL;
        }

        *out += llm_jc_encode(c, *out);

        return p + 1 + digits;
    }

    /* escapes by name or in octal are not supported, because templates do not
       use them */

    if (*p == 'N' || (*p >= '0' && *p <= '7')) {
        return NULL;
    }

    *(*out)++ = '\\';

    return p;
}


static void
llm_jlex_string(llm_jlex_t *lx)
{
    char         quote, *out, *o;
    uint32_t     line;
    const char  *p, *end;
    llm_jtok_t  *tok;

    quote = *lx->p;
    p = lx->p + 1;

    while (p < lx->end && *p != quote) {
        p += (*p == '\\') ? 2 : 1;
    }

    if (p >= lx->end) {
        (void) llm_jcomp_fail(lx->c, lx->line, "unexpected char %s",
                              quote == '"' ? "'\"'" : "\"'\"");
        return;
    }

    line = lx->line;
    tok = llm_jlex_add(lx, LLM_JT_STR);

    end = p;
    p = lx->p + 1;
    llm_jlex_skip(lx, end + 1);

    tok->text.data = p;
    tok->text.len = (size_t) (end - p);

    if (memchr(p, '\\', tok->text.len) == NULL) {
        return;
    }

    out = llm_jcomp_alloc(lx->c, tok->text.len);
    if (out == NULL) {
        return;
    }

    for (o = out; p < end; /* void */ ) {
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }

        p = llm_jlex_escape(p + 1, end, &o);
        if (p == NULL) {
            (void) llm_jcomp_fail(lx->c, line,
                                  "an escape in a string is malformed");
            return;
        }
    }

    tok->text.data = out;
    tok->text.len = (size_t) (o - out);
}


static const char *
llm_jlex_digits(const char *p, const char *end)
{
    while (p < end && ((*p >= '0' && *p <= '9')
                       || (*p == '_' && p + 1 < end
                           && p[1] >= '0' && p[1] <= '9')))
    {
        p++;
    }

    return p;
}


#define llm_jlex_digit(p, end)  ((p) < (end) && *(p) >= '0' && *(p) <= '9')


/* the end of a float at p, or NULL */

static const char *
llm_jlex_float_end(const llm_jlex_t *lx, const char *p)
{
    const char  *q, *e;

    if (p > lx->start && p[-1] == '.') {
        return NULL;
    }

    q = llm_jlex_digits(p, lx->end);
    e = NULL;

    if (q < lx->end && *q == '.' && llm_jlex_digit(q + 1, lx->end)) {
        q = llm_jlex_digits(q + 1, lx->end);
        e = q;
    }

    if (q < lx->end && (*q == 'e' || *q == 'E')) {
        q++;

        if (q < lx->end && (*q == '+' || *q == '-')) {
            q++;
        }

        if (llm_jlex_digit(q, lx->end)) {
            e = llm_jlex_digits(q, lx->end);
        }
    }

    return e;
}


static void
llm_jlex_number(llm_jlex_t *lx)
{
    char         buf[128], *stop;
    size_t       n;
    const char  *p, *end;
    llm_jtok_t  *tok;

    tok = llm_jlex_add(lx, LLM_JT_INT);
    p = lx->p;
    end = llm_jlex_float_end(lx, p);

    if (end) {
        tok->type = LLM_JT_FLOAT;

    } else if (*p == '0') {
        end = p + strspn(p, "0_");

    } else {
        end = llm_jlex_digits(p, lx->end);
    }

    for (n = 0; p < end && n < sizeof(buf) - 1; p++) {
        if (*p != '_') {
            buf[n++] = *p;
        }
    }

    buf[n] = '\0';
    errno = 0;

    if (tok->type == LLM_JT_FLOAT) {
        tok->f = strtod(buf, &stop);
        errno = 0;

    } else {
        tok->i = strtoll(buf, &stop, 10);
    }

    if (p < end || n == 0 || *stop || errno) {
        (void) llm_jcomp_fail(lx->c, lx->line,
                              "number is malformed or too large");
    }

    llm_jlex_skip(lx, end);
}


static int
llm_jlex_is_name(const llm_jlex_t *lx, const char *p)
{
    unsigned char  ch;

    ch = (unsigned char) *p;

    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_'
           || (ch >= '0' && ch <= '9')
           || (ch >= 0x80 && !llm_jc_space(p, lx->end));
}


static void
llm_jlex_operator(llm_jlex_t *lx)
{
    char         ch, want;
    const char  *p;
    llm_jtok_t  *tok;

    p = lx->p;

    if (*p == '\0' || strchr("+-/*%~[](){}=<>.:|,;!", *p) == NULL
        || (*p == '!' && !llm_jlex_at(lx, p, "!=")))
    {
        (void) llm_jcomp_fail(lx->c, lx->line,
                              (*p >= 0x20 && *p < 0x7f)
                              ? "unexpected char '%c'"
                              : "unexpected char 0x%02x",
                              (unsigned char) *p);
        return;
    }

    ch = *p;

    if (ch == '(' || ch == '[' || ch == '{') {
        if (lx->n_open == LLM_J_MAX_NESTING) {
            (void) llm_jcomp_fail(lx->c, lx->line, "nested too deeply");
            return;
        }

        lx->open[lx->n_open++] = ch == '(' ? ')' : ch == '[' ? ']' : '}';

    } else if (ch == ')' || ch == ']' || ch == '}') {
        if (lx->n_open == 0) {
            (void) llm_jcomp_fail(lx->c, lx->line, "unexpected '%c'", ch);
            return;
        }

        want = lx->open[--lx->n_open];

        if (want != ch) {
            (void) llm_jcomp_fail(lx->c, lx->line,
                                  "unexpected '%c', expected '%c'", ch, want);
        }
    }

    tok = llm_jlex_add(lx, LLM_JT_OP);
    tok->op = ch;

    if (llm_jlex_at(lx, p, "**") || llm_jlex_at(lx, p, "//")
        || llm_jlex_at(lx, p, "==") || llm_jlex_at(lx, p, "!=")
        || llm_jlex_at(lx, p, ">=") || llm_jlex_at(lx, p, "<="))
    {
        tok->op = LLM_JOP(p[0], p[1]);
        p++;
    }

    llm_jlex_skip(lx, p + 1);
}


/* the inside of {% %} or {{ }}, the end included */

static void
llm_jlex_inside(llm_jlex_t *lx, const char *mark)
{
    size_t       n;
    const char  *p;
    llm_jtok_t  *tok;

    lx->n_open = 0;

    while (lx->p < lx->end && !lx->c->failed) {
        n = lx->n_open ? 0 : llm_jlex_tag_end(lx, lx->p, mark);

        if (n) {
            (void) llm_jlex_add(lx, mark[0] == '%' ? LLM_JT_BLOCK_END
                                                   : LLM_JT_VAR_END);
            llm_jlex_end_tag(lx, n);
            return;
        }

        if (llm_jc_space(lx->p, lx->end)) {
            llm_jlex_skip(lx, llm_jlex_spaces(lx, lx->p));

        } else if (*lx->p >= '0' && *lx->p <= '9') {
            llm_jlex_number(lx);

        } else if (llm_jlex_is_name(lx, lx->p)) {
            for (p = lx->p; p < lx->end && llm_jlex_is_name(lx, p); p++) {
                /* void */
            }

            tok = llm_jlex_add(lx, LLM_JT_NAME);
            tok->text.data = lx->p;
            tok->text.len = (size_t) (p - lx->p);
            lx->p = p;

        } else if (*lx->p == '\'' || *lx->p == '"') {
            llm_jlex_string(lx);

        } else {
            llm_jlex_operator(lx);
        }
    }
}


/* reads a tag at q, and the text before it */

static void
llm_jlex_tag(llm_jlex_t *lx, const char *q)
{
    char         sign;
    const char  *p, *raw;

    p = q + 2;
    sign = (p < lx->end && (*p == '-' || *p == '+')) ? *p++ : 0;

    llm_jlex_data(lx, q, sign, q[1] != '{');

    raw = q[1] == '%' ? llm_jlex_raw(lx, p) : NULL;

    if (raw) {
        llm_jlex_skip(lx, raw);
        lx->line_start = raw[-1] == '\n';
        llm_jlex_raw_body(lx);
        return;
    }

    llm_jlex_skip(lx, p);

    if (q[1] == '#') {
        llm_jlex_comment(lx);
        return;
    }

    (void) llm_jlex_add(lx, q[1] == '%' ? LLM_JT_BLOCK_BEGIN
                                        : LLM_JT_VAR_BEGIN);
    llm_jlex_inside(lx, q[1] == '%' ? "%}" : "}}");
}


/* converts all newlines to " " and drops one at the end */

static int
llm_jlex_source(llm_jlex_t *lx, const char *src, size_t len)
{
    char    *out;
    size_t   i, n;

    out = llm_jcomp_alloc(lx->c, len + 1);
    if (out == NULL) {
        return LLM_ERROR;
    }

    for (i = 0, n = 0; i < len; i++) {
        if (src[i] == '\r') {
            out[n++] = '\n';

            if (i + 1 < len && src[i + 1] == '\n') {
                i++;
            }

        } else {
            out[n++] = src[i];
        }
    }

    if (n && out[n - 1] == '\n') {
        n--;
    }

    out[n] = '\0';
    lx->start = out;
    lx->p = out;
    lx->end = out + n;

    return LLM_OK;
}


int
llm_jinja_lex(llm_jcomp_t *c, const char *src, size_t len)
{
    llm_jlex_t   lx;
    const char  *q;

    memset(&lx, 0, sizeof(lx));
    lx.c = c;
    lx.line = 1;
    lx.line_start = 1;

    if (llm_jlex_source(&lx, src, len) != LLM_OK) {
        return LLM_ERROR;
    }

    while (lx.p < lx.end && !c->failed) {
        for (q = lx.p; q < lx.end; q++) {
            if (*q == '{' && q + 1 < lx.end
                && (q[1] == '{' || q[1] == '%' || q[1] == '#'))
            {
                break;
            }
        }

        if (q == lx.end) {
            llm_jlex_data(&lx, q, '+', 0);

        } else {
            llm_jlex_tag(&lx, q);
        }
    }

    (void) llm_jlex_add(&lx, LLM_JT_EOF);

    return c->failed;
}
