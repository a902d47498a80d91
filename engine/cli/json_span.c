/*
 * Spans of JSON text; see json_span.h.
 */

#include "engine/cli/json_span.h"
#include "engine/base/utf8.h"

#include <math.h>
#include <stdio.h>

#define LLM_SPAN_MAX_DEPTH  500


static size_t
llm_span_space(llm_str_t s, size_t i)
{
    while (i < s.len && s.data[i] && strchr(" \t\r\n", s.data[i])) {
        i++;
    }

    return i;
}


/* the index after the string that begins at i; 0: the string is not closed */

static size_t
llm_span_string(llm_str_t s, size_t i)
{
    for (i++; i < s.len && s.data[i] != '"'; i++) {
        i += s.data[i] == '\\';
    }

    return i < s.len ? i + 1 : 0;
}


/* the index after the value that begins at i; 0: not a value */

static size_t
llm_span_value(llm_str_t s, size_t i, int depth)
{
    char    close;
    size_t  start;

    if (i >= s.len || depth > LLM_SPAN_MAX_DEPTH) {
        return 0;
    }

    if (s.data[i] == '"') {
        return llm_span_string(s, i);
    }

    if (s.data[i] != '{' && s.data[i] != '[') {
        for (start = i; i < s.len && s.data[i]
             && !strchr(" \t\r\n,:]}[{\"", s.data[i]); i++)
        {
            /* void */
        }

        return i > start ? i : 0;
    }

    close = s.data[i] == '{' ? '}' : ']';
    i = llm_span_space(s, i + 1);

    if (i < s.len && s.data[i] == close) {
        return i + 1;
    }

    for ( ;; ) {
        if (close == '}') {
            i = i < s.len && s.data[i] == '"' ? llm_span_string(s, i) : 0;
            i = i ? llm_span_space(s, i) : 0;

            if (i == 0 || i >= s.len || s.data[i] != ':') {
                return 0;
            }

            i = llm_span_space(s, i + 1);
        }

        i = llm_span_value(s, i, depth + 1);

        if (i == 0) {
            return 0;
        }

        i = llm_span_space(s, i);

        if (i < s.len && s.data[i] == close) {
            return i + 1;
        }

        if (i >= s.len || s.data[i] != ',') {
            return 0;
        }

        i = llm_span_space(s, i + 1);
    }
}


int
llm_span_check(llm_str_t text)
{
    size_t  i, end;

    i = llm_span_space(text, 0);

    if (i >= text.len || text.data[i] != '{') {
        return 0;
    }

    end = llm_span_value(text, i, 0);

    return end && llm_span_space(text, end) == text.len;
}


/* finds the next value of an object or array, and for an object its key; *at
   is 0 at first, and becomes the index after the value; 0: no more */

static int
llm_span_next(llm_str_t s, size_t *at, llm_str_t *key, llm_str_t *value)
{
    size_t  i, end;

    i = llm_span_space(s, *at);

    if (i < s.len && (s.data[i] == ',' || *at == 0)) {
        i = llm_span_space(s, i + 1);
    }

    if (i >= s.len || s.data[i] == ']' || s.data[i] == '}') {
        return 0;
    }

    if (key) {
        end = llm_span_string(s, i);
        key->data = s.data + i + 1;
        key->len = end - i - 2;
        i = llm_span_space(s, llm_span_space(s, end) + 1);
    }

    end = llm_span_value(s, i, 0);
    value->data = s.data + i;
    value->len = end - i;
    *at = end;

    return end != 0;
}


int
llm_span_member(llm_str_t object, const char *key, llm_str_t *value)
{
    size_t     at;
    llm_str_t  k;

    if (object.len == 0 || object.data[0] != '{') {
        return 0;
    }

    for (at = 0; llm_span_next(object, &at, &k, value); ) {
        if (llm_str_is(k, key)) {
            return 1;
        }
    }

    return 0;
}


int
llm_span_item(llm_str_t array, size_t *at, llm_str_t *item)
{
    return array.len && array.data[0] == '['
           && llm_span_next(array, at, NULL, item);
}


/* ---- writing ---- */

static uint32_t
llm_span_hex(const char *p, size_t n)
{
    char  digits[5];

    memset(digits, 0, sizeof(digits));
    memcpy(digits, p, llm_min(n, 4));

    return (uint32_t) strtoul(digits, NULL, 16);
}


static void
llm_span_add_char(llm_buf_t *out, uint32_t cp)
{
    char         bytes[4];
    const char  *found;

    static const char  chars[] = "\"\\\b\f\n\r\t";
    static const char  names[] = "\"\\bfnrt";

    found = cp && cp < 0x80 ? strchr(chars, (int) cp) : NULL;

    if (found) {
        (void) llm_buf_addc(out, '\\');
        (void) llm_buf_addc(out, names[found - chars]);

    } else if (cp < 0x20) {
        (void) llm_buf_addf(out, "\\u%04x", cp);

    } else {
        (void) llm_buf_add(out, bytes, llm_utf8_encode(bytes, cp));
    }
}


/* writes the character of the escape at i; returns the index after it */

static size_t
llm_span_dump_escape(llm_str_t s, size_t i, llm_buf_t *out)
{
    uint32_t     cp, low;
    const char  *found;

    static const char  names[] = "bfnrt";
    static const char  chars[] = "\b\f\n\r\t";

    i++;

    if (s.data[i] != 'u') {
        found = strchr(names, s.data[i]);
        llm_span_add_char(out, found && *found
                               ? (uint8_t) chars[found - names]
                               : (uint8_t) s.data[i]);
        return i + 1;
    }

    cp = llm_span_hex(s.data + i + 1, s.len - i - 1);
    i = llm_min(i + 5, s.len);

    if (cp >= 0xd800 && cp <= 0xdbff && s.len - i >= 6
        && s.data[i] == '\\' && s.data[i + 1] == 'u')
    {
        low = llm_span_hex(s.data + i + 2, s.len - i - 2);

        if (low >= 0xdc00 && low <= 0xdfff) {
            cp = 0x10000 + ((cp - 0xd800) << 10) + (low - 0xdc00);
            i += 6;
        }
    }

    llm_span_add_char(out, cp);

    return i;
}


static void
llm_span_dump_string(llm_str_t s, llm_buf_t *out)
{
    size_t  i;

    (void) llm_buf_addc(out, '"');

    for (i = 1; i + 1 < s.len; ) {
        if (s.data[i] == '\\' && i + 2 < s.len) {
            i = llm_span_dump_escape(s, i, out);

        } else {
            (void) llm_buf_addc(out, s.data[i++]);
        }
    }

    (void) llm_buf_addc(out, '"');
}


/* writes a number with a fraction or an exponent, as Python's repr() does */

static void
llm_span_dump_float(const char *text, llm_buf_t *out)
{
    int     n, exponent;
    char    e[40], digits[40];
    char   *p;
    double  v;

    v = strtod(text, NULL);

    if (!isfinite(v)) {
        (void) llm_buf_adds(out, text);
        return;
    }

    n = 0;

    do {
        (void) snprintf(e, sizeof(e), "%.*e", n, v);
    } while (n++ < 17 && strtod(e, NULL) != v);

    p = strchr(e, 'e');
    exponent = atoi(p + 1);

    if (exponent >= -4 && exponent < 16) {
        n = llm_max(n - 1 - exponent, 1);
        (void) snprintf(digits, sizeof(digits), "%.*f", n, v);
        (void) llm_buf_adds(out, digits);
        return;
    }

    (void) llm_buf_addf(out, "%.*se%c%02d", (int) (p - e), e,
                        exponent < 0 ? '-' : '+', abs(exponent));
}


static void
llm_span_dump_scalar(llm_str_t s, llm_buf_t *out)
{
    char  text[400];

    if (s.data[0] == '"') {
        llm_span_dump_string(s, out);
        return;
    }

    if (s.len < sizeof(text) && (s.data[0] == '-' || s.data[0] <= '9')) {
        memcpy(text, s.data, s.len);
        text[s.len] = '\0';

        if (strpbrk(text, ".eE")) {
            llm_span_dump_float(text, out);
            return;
        }

        if (strcmp(text, "-0") == 0) {
            (void) llm_buf_addc(out, '0');
            return;
        }
    }

    (void) llm_buf_add(out, s.data, s.len);
}


int
llm_span_dump(llm_str_t value, llm_buf_t *out)
{
    int        object, n;
    size_t     at;
    llm_str_t  key, item;

    n = 0;
    object = value.data[0] == '{';

    if (!object && value.data[0] != '[') {
        llm_span_dump_scalar(value, out);
        return out->failed ? LLM_ERROR : LLM_OK;
    }

    (void) llm_buf_addc(out, value.data[0]);

    for (at = 0; llm_span_next(value, &at, object ? &key : NULL, &item); ) {
        if (n++) {
            (void) llm_buf_adds(out, ", ");
        }

        if (object) {
            key.data--;
            key.len += 2;
            llm_span_dump_string(key, out);
            (void) llm_buf_adds(out, ": ");
        }

        if (llm_span_dump(item, out) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    (void) llm_buf_addc(out, object ? '}' : ']');

    return out->failed ? LLM_ERROR : LLM_OK;
}
