/*
 * JSON values by chance, edges first, and whether the API's table refuses
 * them: what it must refuse is marked in g->want, what may be either way is
 * not.
 */

#include "t/fuzz/http/http.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FZ_IS_NULL,
    FZ_IS_BOOL,
    FZ_IS_NUMBER,
    FZ_IS_STRING,
    FZ_IS_ARRAY,
    FZ_IS_OBJECT
} fz_is_t;


static const char *const  fz_numbers[] = {
    "0", "-0", "-0.0", "0.0", "1", "-1", "1.0", "0.5", "2", "3", "1e0",
    "1e-40", "1e-45", "1e-46", "5e-324", "1e-400", "-1e-40", "1e-7", "1e-3",
    "1.1754943e-38", "1e38", "3.4028235e38", "3.5e38", "1e308", "-1e308",
    "1e400", "-1e400", "0.1", "0.999999999999", "1.0000000001", "0.99999999",
    "127", "128", "129", "255", "256", "1023", "1024", "65535", "65536",
    "2147483646", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "4294967295", "4294967296", "9007199254740991", "9007199254740992",
    "9007199254740993", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "1e19", "1E+2", "100", "99.9", "-2", "-2.0",
    "20", "21", "0.0000000000000000000000000000000000000000000000000001",
    "123456789012345678901234567890123456789012345678901234567890",
    "1e99999999999"
};

/* what looks like a number and is no JSON */
static const char *const  fz_no_numbers[] = {
    "NaN", "Infinity", "-Infinity", "nan", "0x10", "01", "+1", ".5", "1.",
    "1e", "-", "1e+", "--1", "1_000", "0b1", "1,5", "True", "undefined"
};

/* between quotes; the last ones are no UTF-8 */
static const char *const  fz_strings[] = {
    "", "a", " ", "\\n", "\\u0000", "a\\u0000b", "\\ud800", "\\udc00",
    "\\udc00\\ud800", "\\ud83d\\ude00", "\xf0\x9f\x98\x80", "\\u202e\\u202d",
    "\xe2\x80\xae\xe2\x80\xad", "\\u009b31m", "\xc2\x9b\x33\x31m", "\\u001b[2J",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "</think>", "<think>",
    "<tool_call>", "{{ 7 * 7 }}", "{% for i in range(9999) %}a{% endfor %}",
    "%s%n%d", "\\\\", "\\\"", "\\/", "\\ufffe\\uffff", "\\u2028\\u2029",
    "NaN", "1e999", "null", "true", "[]", "../../etc/passwd", "text", "auto",
    "none", "e\\u0301", "\xef\xbb\xbf", "\\ufeff", "\\r\\n\\r\\n",
    "data: [DONE]\\n\\n", "What is 2 + 2?", "low", "high", "demo",
    "\xff\xfe", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f\x98",
    "\x80"
};

#define FZ_NO_UTF8  6

static const char *const  fz_keys[] = {
    "", "a", "type", "text", "role", "content", "name", "\\u0000", "0", "-1",
    "2047", "enable_thinking", "tools", "messages", "loop", "self",
    "__class__", "include_usage", "function", "parameters", "priority"
};


void
fz_string(fz_gen_t *g)
{
    unsigned  i;

    fz_adds(&g->body, "\"");

    if (fz_chance(&g->rand, 30)) {
        fz_repeat(&g->body, fz_chance(&g->rand, 500) ? "a" : "\\u00e9 ",
                  1 + fz_below(&g->rand, fz_chance(&g->rand, 50) ? 70000
                                                                 : 3000));

    } else {
        i = fz_below(&g->rand, fz_nelems(fz_strings));

        /* fewer of those that make the whole body wrong */

        if (i >= fz_nelems(fz_strings) - FZ_NO_UTF8
            && !fz_chance(&g->rand, 250))
        {
            i = 1;
        }

        if (i >= fz_nelems(fz_strings) - FZ_NO_UTF8) {
            g->broken = 1;
        }

        fz_adds(&g->body, fz_strings[i]);

        if (fz_chance(&g->rand, 150)) {
            fz_adds(&g->body, fz_strings[fz_below(&g->rand, 30)]);
        }
    }

    fz_adds(&g->body, "\"");
}


static fz_is_t
fz_nest(fz_gen_t *g)
{
    unsigned  n;

    n = 1 + fz_below(&g->rand, fz_chance(&g->rand, 100) ? 3000 : 60);

    if (fz_chance(&g->rand, 500)) {
        fz_repeat(&g->body, "[", n);
        fz_repeat(&g->body, "]", n);

        return FZ_IS_ARRAY;
    }

    fz_repeat(&g->body, "{\"a\":", n);
    fz_adds(&g->body, "1");
    fz_repeat(&g->body, "}", n);

    return FZ_IS_OBJECT;
}


static fz_is_t
fz_list(fz_gen_t *g, int depth, int object)
{
    unsigned  i, n;

    n = fz_below(&g->rand, 5);

    if (fz_chance(&g->rand, 10)) {
        n = 100 + fz_below(&g->rand, 200);
        depth = 0;
    }

    fz_adds(&g->body, object ? "{" : "[");

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? "," : "");

        if (object) {
            fz_addf(&g->body, "\"%s\":",
                    fz_keys[fz_below(&g->rand, fz_nelems(fz_keys))]);
        }

        fz_any(g, depth - 1);
    }

    fz_adds(&g->body, object ? "}" : "]");

    return object ? FZ_IS_OBJECT : FZ_IS_ARRAY;
}


static fz_is_t
fz_pick(fz_gen_t *g, int depth)
{
    switch (fz_below(&g->rand, depth > 0 ? 14 : 10)) {

    case 0:
        fz_adds(&g->body, "null");
        return FZ_IS_NULL;

    case 1:
        fz_adds(&g->body, "true");
        return FZ_IS_BOOL;

    case 2:
        fz_adds(&g->body, "false");
        return FZ_IS_BOOL;

    case 3:
    case 4:
    case 5:
        if (fz_chance(&g->rand, 20)) {
            fz_adds(&g->body,
                    fz_no_numbers[fz_below(&g->rand,
                                           fz_nelems(fz_no_numbers))]);
            g->broken = 1;
            return FZ_IS_NUMBER;
        }

        fz_adds(&g->body,
                fz_numbers[fz_below(&g->rand, fz_nelems(fz_numbers))]);
        return FZ_IS_NUMBER;

    case 6:
        fz_adds(&g->body, "[]");
        return FZ_IS_ARRAY;

    case 7:
        fz_adds(&g->body, "{}");
        return FZ_IS_OBJECT;

    case 10:
    case 11:
        return fz_list(g, depth, 0);

    case 12:
        return fz_list(g, depth, 1);

    case 13:
        if (fz_chance(&g->rand, 100)) {
            g->broken = 1;              /* it may be too deep */
            return fz_nest(g);
        }

        return fz_list(g, depth, 1);

    default:
        fz_string(g);
        return FZ_IS_STRING;
    }
}


void
fz_any(fz_gen_t *g, int depth)
{
    (void) fz_pick(g, depth);
}


static void
fz_bad(fz_gen_t *g, const fz_field_t *f)
{
    g->want.bad = 1;
    strcpy(g->want.why, f->name);
}


/* the table's range holds for the number that was written */

static void
fz_judge_number(fz_gen_t *g, const fz_field_t *f, const char *text)
{
    double  v;

    v = strtod(text, NULL);

    if (v > f->max || v < f->min || (f->type == FZ_ABOVE && v <= f->min)) {
        fz_bad(g, f);
    }
}


static void
fz_judge(fz_gen_t *g, const fz_field_t *f, fz_is_t is, size_t from)
{
    const char  *text;

    text = g->body.data + from;

    if (is == FZ_IS_NULL) {
        return;
    }

    switch (f->type) {

    case FZ_BOOL:
        if (is != FZ_IS_BOOL) {
            fz_bad(g, f);
        }

        break;

    case FZ_INT:
    case FZ_NUMBER:
    case FZ_ABOVE:
        if (is != FZ_IS_NUMBER) {
            fz_bad(g, f);

        } else {
            fz_judge_number(g, f, text);
        }

        break;

    case FZ_STRING:
        if (is != FZ_IS_STRING) {
            fz_bad(g, f);
        }

        break;

    case FZ_ARRAY:
        if (is != FZ_IS_ARRAY) {
            fz_bad(g, f);
        }

        break;

    case FZ_OBJECT:
        if (is != FZ_IS_OBJECT) {
            fz_bad(g, f);
        }

        break;

    case FZ_REFUSED:
        if (is == FZ_IS_NUMBER || strcmp(text, "true") == 0) {
            fz_bad(g, f);
        }

        break;

    case FZ_ANY:
    case FZ_REQUIRED:
        break;
    }
}


/* a number that the table allows, most often at an edge */

static void
fz_number(fz_gen_t *g, const fz_field_t *f)
{
    double       v, max;
    const char  *text;

    max = f->max - f->min < 1e15 ? f->max : 1000;
    text = NULL;

    switch (fz_below(&g->rand, 6)) {

    case 0:
        v = f->min;
        break;

    case 1:
        v = max;
        break;

    case 2:
        v = nextafter(f->min, max);
        break;

    case 3:
        v = f->min + (max - f->min) * (fz_below(&g->rand, 1001) / 1000.0);
        break;

    default:
        text = fz_numbers[fz_below(&g->rand, fz_nelems(fz_numbers))];
        v = strtod(text, NULL);
    }

    if (f->type == FZ_INT) {
        v = floor(v);
    }

    if (!(v >= f->min && v <= max) || (f->type == FZ_ABOVE && v <= f->min)) {
        v = f->type == FZ_ABOVE ? max : f->min;
        text = NULL;
    }

    if (f->type == FZ_INT) {
        fz_addf(&g->body, "%.0f", v == 0 ? 0.0 : v);

    } else if (text) {
        fz_adds(&g->body, text);

    } else {
        fz_addf(&g->body, "%.17g", v);
    }
}


/* a value of the field's type */

void
fz_value(fz_gen_t *g, const fz_field_t *f)
{
    switch (f->type) {

    case FZ_BOOL:
        fz_adds(&g->body, fz_chance(&g->rand, 500) ? "true" : "false");
        break;

    case FZ_INT:
    case FZ_NUMBER:
    case FZ_ABOVE:
        fz_number(g, f);
        break;

    case FZ_STRING:
        fz_string(g);
        break;

    case FZ_ARRAY:
        (void) fz_list(g, 2, 0);
        break;

    case FZ_OBJECT:
        (void) fz_list(g, 2, 1);
        break;

    case FZ_REFUSED:
        fz_adds(&g->body, fz_chance(&g->rand, 500) ? "[]" : "null");
        break;

    case FZ_ANY:
    case FZ_REQUIRED:
        fz_any(g, 2);
    }
}


/* whatever there is */

void
fz_edge(fz_gen_t *g, const fz_field_t *f)
{
    size_t   from;
    fz_is_t  is;

    from = g->body.len;
    is = fz_pick(g, 2);

    fz_judge(g, f, is, from);
}
