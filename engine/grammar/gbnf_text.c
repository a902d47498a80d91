/*
 * The characters of a grammar in GBNF: names, numbers, escapes, white space
 * and comments; see gbnf.h.
 */

#include "engine/base/utf8.h"
#include "engine/grammar/gbnf.h"


int
llm_gbnf_fail(llm_gbnf_t *g, const char *what)
{
    return llm_fail_with(g->err, 400, NULL, NULL, "the grammar, line %u: %s",
                         g->line, what);
}


/* the next byte; 0 at the end: a zero byte in the text begins nothing either */

char
llm_gbnf_peek(const llm_gbnf_t *g)
{
    return g->at < g->len ? g->p[g->at] : 0;
}


int
llm_gbnf_skip(llm_gbnf_t *g, const char *text)
{
    size_t  n;

    n = strlen(text);

    if (g->len - g->at < n || memcmp(g->p + g->at, text, n) != 0) {
        return 0;
    }

    g->at += n;

    return 1;
}


/* skips white space and comments; lines: also line ends */

void
llm_gbnf_space(llm_gbnf_t *g, int lines)
{
    char  c;

    for ( ;; ) {
        c = llm_gbnf_peek(g);

        if (c == '#') {
            while (g->at < g->len && g->p[g->at] != '\n'
                   && g->p[g->at] != '\r')
            {
                g->at++;
            }

        } else if (c == ' ' || c == '\t') {
            g->at++;

        } else if (lines && (c == '\n' || c == '\r')) {
            g->line += c == '\n';
            g->at++;

        } else {
            return;
        }
    }
}


int
llm_gbnf_is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_';
}


llm_str_t
llm_gbnf_name(llm_gbnf_t *g)
{
    llm_str_t  s;

    s.data = g->p + g->at;

    while (g->at < g->len && llm_gbnf_is_name(g->p[g->at])) {
        g->at++;
    }

    s.len = (size_t) (g->p + g->at - s.data);

    return s;
}


static int
llm_gbnf_hex(llm_gbnf_t *g, uint32_t n, uint32_t *cp)
{
    int       digit;
    uint32_t  i;

    *cp = 0;

    for (i = 0; i < n; i++, g->at++) {
        digit = llm_hex_digit(llm_gbnf_peek(g));

        if (digit < 0) {
            return llm_gbnf_fail(g, "a hexadecimal digit is missing");
        }

        *cp = *cp << 4 | (uint32_t) digit;
    }

    if (*cp > 0x10ffff || (*cp >= 0xd800 && *cp <= 0xdfff)) {
        return llm_gbnf_fail(g, "an escape is no character");
    }

    return LLM_OK;
}


/* reads one character of a literal or a class, escapes decoded */

int
llm_gbnf_char(llm_gbnf_t *g, uint32_t *cp)
{
    char    c;
    size_t  n;

    if (!llm_gbnf_skip(g, "\\")) {
        n = llm_utf8_decode(g->p + g->at, g->len - g->at, cp);

        if (n == 0) {
            return llm_gbnf_fail(g, g->at < g->len ? "it is not UTF-8"
                                                   : "a quote or a bracket "
                                                     "is not closed");
        }

        g->line += *cp == '\n';
        g->at += n;

        return LLM_OK;
    }

    c = llm_gbnf_peek(g);
    g->at += g->at < g->len;

    switch (c) {

    case 'x':
        return llm_gbnf_hex(g, 2, cp);

    case 'u':
        return llm_gbnf_hex(g, 4, cp);

    case 'U':
        return llm_gbnf_hex(g, 8, cp);

    case 't':
        *cp = '\t';
        return LLM_OK;

    case 'r':
        *cp = '\r';
        return LLM_OK;

    case 'n':
        *cp = '\n';
        return LLM_OK;

    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^':
        *cp = (uint32_t) c;
        return LLM_OK;

    default:
        return llm_gbnf_fail(g, "an escape is not known");
    }
}


int
llm_gbnf_number(llm_gbnf_t *g, uint32_t *n)
{
    size_t    start;
    uint64_t  v;

    start = g->at;

    for (v = 0; llm_gbnf_peek(g) >= '0' && llm_gbnf_peek(g) <= '9'; g->at++) {
        v = llm_min(v * 10 + (uint64_t) (g->p[g->at] - '0'),
                    LLM_GN_NO_MAX - 1);
    }

    *n = (uint32_t) v;

    return g->at > start;
}
