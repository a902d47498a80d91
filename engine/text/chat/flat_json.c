/*
 * A recursive-descent reader of JSON; see flat_json.h.
 */

#include "engine/text/chat/flat_json.h"
#include "engine/base/utf8.h"

#include <errno.h>

typedef struct {
    llm_buf_t   *b;
    const char  *p;
    const char  *end;
    int          depth;                 /* left */
} llm_fj_t;

static int llm_fj_value(llm_fj_t *j);


static void
llm_fj_space(llm_fj_t *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n'
                             || *j->p == '\r'))
    {
        j->p++;
    }
}


static int
llm_fj_skip(llm_fj_t *j, char c)
{
    llm_fj_space(j);

    if (j->p == j->end || *j->p != c) {
        return 0;
    }

    j->p++;

    return 1;
}


static int
llm_fj_word(llm_fj_t *j, const char *word)
{
    size_t  n;

    n = strlen(word);

    if ((size_t) (j->end - j->p) < n || memcmp(j->p, word, n) != 0) {
        return 0;
    }

    j->p += n;

    return 1;
}


static int
llm_fj_hex(llm_fj_t *j, uint32_t *res)
{
    int       i;
    char      c;
    uint32_t  v;

    if (j->end - j->p < 4) {
        return LLM_ERROR;
    }

    for (i = 0, v = 0; i < 4; i++) {
        c = *j->p++;

        if (c >= '0' && c <= '9') {
            v = v << 4 | (uint32_t) (c - '0');

        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            v = v << 4 | (uint32_t) ((c | 0x20) - 'a' + 10);

        } else {
            return LLM_ERROR;
        }
    }

    *res = v;

    return LLM_OK;
}


/* behind "\u" */

static int
llm_fj_unicode(llm_fj_t *j, uint32_t *res)
{
    uint32_t     c, low;
    const char  *p;

    if (llm_fj_hex(j, &c) != LLM_OK) {
        return LLM_ERROR;
    }

    if (c >= 0xd800 && c < 0xdc00) {
        p = j->p;

        if (llm_fj_word(j, "\\u")) {
            if (llm_fj_hex(j, &low) != LLM_OK) {
                return LLM_ERROR;
            }

            if (low >= 0xdc00 && low < 0xe000) {
                *res = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                return LLM_OK;
            }
        }

        j->p = p;
    }

    *res = (c >= 0xd800 && c < 0xe000) ? 0xfffd : c;

    return LLM_OK;
}


/* behind the quote, up to the other one; out has room for the text's length */

static int
llm_fj_unescape(llm_fj_t *j, char *out, size_t *len)
{
    char              *o, c;
    size_t             n;
    uint32_t           u;
    const char        *q;
    static const char  from[] = "\"\\/bfnrt";
    static const char  to[] = "\"\\/\b\f\n\r\t";

    for (o = out; j->p < j->end && *j->p != '"'; /* void */ ) {
        if ((unsigned char) *j->p < 0x20) {
            return LLM_ERROR;
        }

        if (*j->p != '\\') {
            n = llm_utf8_decode(j->p, (size_t) (j->end - j->p), NULL);

            if (n == 0) {
                return LLM_ERROR;
            }

            memcpy(o, j->p, n);
            o += n;
            j->p += n;
            continue;
        }

        if (++j->p == j->end) {
            return LLM_ERROR;
        }

        c = *j->p++;
        q = c ? strchr(from, c) : NULL;

        if (q) {
            *o++ = to[q - from];

        } else if (c == 'u' && llm_fj_unicode(j, &u) == LLM_OK) {
            o += llm_utf8_encode(o, u);

        } else {
            return LLM_ERROR;
        }
    }

    if (j->p == j->end) {
        return LLM_ERROR;
    }

    j->p++;
    *len = (size_t) (o - out);

    return LLM_OK;
}


static int
llm_fj_string(llm_fj_t *j)
{
    int          rc;
    char        *out;
    size_t       len;
    const char  *q;

    if (!llm_fj_skip(j, '"')) {
        return LLM_ERROR;
    }

    /* an escape is never shorter than what it stands for */

    for (q = j->p; q < j->end && *q != '"'; q += *q == '\\' ? 2 : 1) {
        /* void */
    }

    if (q >= j->end) {
        return LLM_ERROR;
    }

    out = malloc((size_t) (q - j->p) + 4);
    if (out == NULL) {
        j->b->failed = 1;
        return LLM_ERROR;
    }

    rc = llm_fj_unescape(j, out, &len);

    if (rc == LLM_OK) {
        llm_flat_add_str(j->b, out, len);
    }

    free(out);

    return rc;
}


/* how many */

static size_t
llm_fj_digits(llm_fj_t *j)
{
    const char  *p;

    for (p = j->p; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++) {
        /* void */
    }

    return (size_t) (j->p - p);
}


static int
llm_fj_number(llm_fj_t *j)
{
    int          whole;
    char         buf[512];
    size_t       n;
    int64_t      i;
    const char  *start, *first;

    whole = 1;
    start = j->p;
    j->p += *j->p == '-';
    first = j->p;
    n = llm_fj_digits(j);

    if (n == 0 || (*first == '0' && n > 1)) {
        return LLM_ERROR;
    }

    if (j->p < j->end && *j->p == '.') {
        whole = 0;
        j->p++;

        if (llm_fj_digits(j) == 0) {
            return LLM_ERROR;
        }
    }

    if (j->p < j->end && (*j->p | 0x20) == 'e') {
        whole = 0;
        j->p++;
        j->p += j->p < j->end && (*j->p == '+' || *j->p == '-');

        if (llm_fj_digits(j) == 0) {
            return LLM_ERROR;
        }
    }

    n = (size_t) (j->p - start);

    if (n >= sizeof(buf)) {
        return LLM_ERROR;
    }

    memcpy(buf, start, n);
    buf[n] = '\0';
    errno = 0;
    i = whole ? strtoll(buf, NULL, 10) : 0;

    if (whole && errno == 0) {
        llm_flat_add_int(j->b, i);

    } else {
        llm_flat_add_double(j->b, strtod(buf, NULL));
    }

    return LLM_OK;
}


static int
llm_fj_list(llm_fj_t *j, llm_flat_type_t type, char close)
{
    size_t    handle;
    uint32_t  count;

    j->p++;

    if (j->depth-- == 0) {
        return LLM_ERROR;
    }

    handle = llm_flat_open(j->b, type);
    count = 0;

    while (!llm_fj_skip(j, close)) {
        if (count && !llm_fj_skip(j, ',')) {
            return LLM_ERROR;
        }

        if (type == LLM_FLAT_OBJECT
            && (llm_fj_string(j) != LLM_OK || !llm_fj_skip(j, ':')))
        {
            return LLM_ERROR;
        }

        if (llm_fj_value(j) != LLM_OK) {
            return LLM_ERROR;
        }

        count++;
    }

    llm_flat_close(j->b, handle, count);
    j->depth++;

    return LLM_OK;
}


static int
llm_fj_value(llm_fj_t *j)
{
    llm_fj_space(j);

    if (j->p == j->end || j->b->failed) {
        return LLM_ERROR;
    }

    switch (*j->p) {

    case '{':
        return llm_fj_list(j, LLM_FLAT_OBJECT, '}');

    case '[':
        return llm_fj_list(j, LLM_FLAT_ARRAY, ']');

    case '"':
        return llm_fj_string(j);

    case 't':
    case 'f':
        llm_flat_add_bool(j->b, *j->p == 't');
        return llm_fj_word(j, *j->p == 't' ? "true" : "false") ? LLM_OK
                                                               : LLM_ERROR;

    case 'n':
        llm_flat_add_null(j->b);
        return llm_fj_word(j, "null") ? LLM_OK : LLM_ERROR;

    default:
        return llm_fj_number(j);
    }
}


int
llm_flat_add_json(llm_buf_t *b, const char *text, size_t len, int max_depth)
{
    size_t    before;
    llm_fj_t  j;

    before = b->len;
    j.b = b;
    j.p = text;
    j.end = text + len;
    j.depth = max_depth;

    if (llm_fj_value(&j) == LLM_OK) {
        llm_fj_space(&j);

        if (j.p == j.end && !b->failed) {
            return LLM_OK;
        }
    }

    b->len = before;

    return LLM_ERROR;
}
