/*
 * Random schemas and instances, drawn from the input's bytes.  A grammar must
 * not accept an instance that the schema refuses, as the small checker below
 * sees it, which shares nothing with the reader but the JSON.
 */

#include "engine/api/json.h"
#include "engine/grammar/grammar.h"
#include "t/unit/tiny_vocab.h"

#include <math.h>
#include <stdio.h>


static const uint8_t  *input;
static size_t          input_len;


static unsigned
draw(unsigned n)
{
    if (input_len == 0) {
        return 0;
    }

    input_len--;

    return *input++ % n;
}


/* ---- an instance ---- */

static void
add_value(llm_buf_t *b, int depth)
{
    unsigned  i, n;

    static const char *const  scalars[] = {
        "null", "true", "false", "0", "1", "2", "3", "5", "7", "12", "-1",
        "1.0", "0.5", "2.5", "-0.0", "1e-05", "1e+16", "\"\"", "\"a\"",
        "\"b\"", "\"ab\"", "\"abc\"", "\"\\u0061\"", "\"2024-02-29\""
    };

    switch (draw(depth > 3 ? 4 : 7)) {

    case 4:
    case 5:
        llm_buf_addc(b, '{');
        n = draw(4);

        for (i = 0; i < n; i++) {
            /* in the order in which schemas name them, mostly */
            llm_buf_addf(b, "%s\"%c\": ", i ? ", " : "",
                         "abcd"[draw(8) ? i : draw(4)]);
            add_value(b, depth + 1);
        }

        llm_buf_addc(b, '}');
        break;

    case 6:
        llm_buf_addc(b, '[');
        n = draw(4);

        for (i = 0; i < n; i++) {
            llm_buf_adds(b, i ? ", " : "");
            add_value(b, depth + 1);
        }

        llm_buf_addc(b, ']');
        break;

    default:
        llm_buf_adds(b, scalars[draw(llm_nelems(scalars))]);
    }
}


/* ---- a schema ---- */

static void add_schema(llm_buf_t *b, int depth);


static void
add_schemas(llm_buf_t *b, int depth)
{
    unsigned  i, n;

    llm_buf_addc(b, '[');
    n = 1 + draw(3);

    for (i = 0; i < n; i++) {
        llm_buf_adds(b, i ? ", " : "");
        add_schema(b, depth + 1);
    }

    llm_buf_addc(b, ']');
}


static void
add_members(llm_buf_t *b, int depth, const char *keys)
{
    unsigned  i, n;

    llm_buf_addc(b, '{');

    for (i = 0, n = 0; keys[i]; i++) {
        if (draw(2)) {
            llm_buf_addf(b, "%s\"%c\": ", n++ ? ", " : "", keys[i]);
            add_schema(b, depth + 1);
        }
    }

    llm_buf_addc(b, '}');
}


static void
add_keyword(llm_buf_t *b, unsigned which, int depth)
{
    unsigned  i, n;

    static const char *const  types[] = {
        "\"null\"", "\"boolean\"", "\"integer\"", "\"number\"", "\"string\"",
        "\"array\"", "\"object\"", "[\"integer\", \"string\"]",
        "[\"object\", \"null\"]"
    };
    static const char *const  counts[] = {
        "minLength", "maxLength", "minItems", "maxItems", "minProperties",
        "maxProperties"
    };
    static const char *const  bounds[] = {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"
    };
    static const char *const  numbers[] = {
        "0", "1", "2.5", "-1", "3", "0.5", "10"
    };
    static const char *const  made[] = { "allOf", "anyOf", "oneOf" };
    static const char *const  single[] = {
        "not", "if", "then", "else", "items", "contains",
        "additionalProperties", "propertyNames"
    };

    switch (which) {

    case 0:
        llm_buf_addf(b, "\"type\": %s", types[draw(llm_nelems(types))]);
        break;

    case 1:
        llm_buf_adds(b, "\"enum\": [");
        n = 1 + draw(3);
        for (i = 0; i < n; i++) {
            llm_buf_adds(b, i ? ", " : "");
            add_value(b, 2);
        }
        llm_buf_addc(b, ']');
        break;

    case 2:
        llm_buf_adds(b, "\"const\": ");
        add_value(b, 2);
        break;

    case 3:
        llm_buf_addf(b, "\"%s\": %u", counts[draw(llm_nelems(counts))],
                     draw(4));
        break;

    case 4:
        llm_buf_addf(b, "\"%s\": %s", bounds[draw(llm_nelems(bounds))],
                     numbers[draw(llm_nelems(numbers))]);
        break;

    case 5:
        llm_buf_addf(b, "\"multipleOf\": %u", 1 + draw(12));
        break;

    case 6:
        llm_buf_adds(b, "\"properties\": ");
        add_members(b, depth, "abcd");
        break;

    case 7:
        llm_buf_adds(b, "\"required\": [");
        for (i = 0, n = 0; i < 4; i++) {
            if (draw(3) == 1) {
                llm_buf_addf(b, "%s\"%c\"", n++ ? ", " : "", "abcd"[i]);
            }
        }
        llm_buf_addc(b, ']');
        break;

    case 8:
        llm_buf_adds(b, "\"prefixItems\": ");
        add_schemas(b, depth);
        break;

    case 9:
        llm_buf_addf(b, "\"uniqueItems\": %s", draw(2) ? "true" : "false");
        break;

    case 10:
        llm_buf_addf(b, "\"$ref\": \"#/$defs/%c\"", "xy"[draw(2)]);
        break;

    case 11:
    case 12:
        llm_buf_addf(b, "\"%s\": ", made[draw(llm_nelems(made))]);
        add_schemas(b, depth);
        break;

    default:
        llm_buf_addf(b, "\"%s\": ", single[draw(llm_nelems(single))]);
        add_schema(b, depth + 1);
    }
}


static void
add_schema(llm_buf_t *b, int depth)
{
    unsigned  i, n;

    n = draw(8);

    if (depth > 4 || n == 0) {
        llm_buf_adds(b, draw(4) ? "true" : "false");
        return;
    }

    llm_buf_addc(b, '{');
    n = 1 + n % 3;

    for (i = 0; i < n; i++) {
        llm_buf_adds(b, i ? ", " : "");
        add_keyword(b, draw(16), depth);
    }

    llm_buf_addc(b, '}');
}


/* ---- the checker ---- */

static const llm_flat_t  *document;
static int                unsure;       /* references without end */

static int valid(const llm_flat_t *s, const llm_flat_t *v, int depth);


static int
is_number(const llm_flat_t *v)
{
    return v->type == LLM_FLAT_INT || v->type == LLM_FLAT_DOUBLE;
}


static int
is_whole(const llm_flat_t *v)
{
    return is_number(v) && floor(llm_flat_double(v)) == llm_flat_double(v);
}


static int
same(const llm_flat_t *a, const llm_flat_t *b)
{
    char               key[8];
    llm_str_t          k;
    const llm_flat_t  *x, *y;

    if (is_number(a) && is_number(b)) {
        return llm_flat_double(a) == llm_flat_double(b);
    }

    if (a->type != b->type || a->count != b->count) {
        return 0;
    }

    switch (a->type) {

    case LLM_FLAT_BOOL:
        return llm_flat_int(a) == llm_flat_int(b);

    case LLM_FLAT_STRING:
        return memcmp(llm_flat_str(a).data, llm_flat_str(b).data, a->count)
               == 0;

    case LLM_FLAT_ARRAY:
        x = llm_flat_first(a);
        for (y = llm_flat_first(b); y; y = llm_flat_next(b, y)) {
            if (!same(x, y)) {
                return 0;
            }
            x = llm_flat_next(a, x);
        }
        return 1;

    case LLM_FLAT_OBJECT:
        for (x = llm_flat_first(a); x; x = llm_flat_next(a, x)) {
            k = llm_flat_str(x);
            snprintf(key, sizeof(key), "%.*s", (int) k.len, k.data);
            x = llm_flat_next(a, x);
            y = llm_flat_get(b, key);
            if (y == NULL || !same(x, y)) {
                return 0;
            }
        }
        return 1;

    default:
        return 1;
    }
}


static int
is_type(const llm_flat_t *name, const llm_flat_t *v)
{
    static const char *const  names[] = {
        "null", "boolean", "integer", "number", "string", "array", "object"
    };
    const char  *text = llm_flat_str(name).data;
    size_t       len = llm_flat_str(name).len;

    if (len == 6 && memcmp(text, "number", 6) == 0) {
        return is_number(v);
    }

    if (len == 7 && memcmp(text, "integer", 7) == 0) {
        return is_whole(v);
    }

    return !is_number(v) && strlen(names[v->type]) == len
           && memcmp(names[v->type], text, len) == 0;
}


/* how many schemas of a list, or values of it, fit */

static unsigned
fit(const llm_flat_t *list, const llm_flat_t *v, int depth, char what)
{
    unsigned           n;
    const llm_flat_t  *c;

    for (n = 0, c = llm_flat_first(list); c; c = llm_flat_next(list, c)) {
        n += what == 't' ? is_type(c, v) : what == 'v' ? same(c, v)
             : valid(c, v, depth);
    }

    return n;
}


static size_t
length(const llm_flat_t *v)
{
    size_t     i, n;
    llm_str_t  s = llm_flat_str(v);

    for (i = 0, n = 0; i < s.len; i++) {
        n += (s.data[i] & 0xc0) != 0x80;
    }

    return n;
}


static int
in_range(const llm_flat_t *s, double d, const char *min, const char *max)
{
    const llm_flat_t  *lo = llm_flat_get(s, min), *hi = llm_flat_get(s, max);

    return (lo == NULL || d >= llm_flat_double(lo))
           && (hi == NULL || d <= llm_flat_double(hi));
}


static int
valid_number(const llm_flat_t *s, const llm_flat_t *v)
{
    double             d = llm_flat_double(v);
    const llm_flat_t  *x;

    x = llm_flat_get(s, "exclusiveMinimum");
    if (x && d <= llm_flat_double(x)) {
        return 0;
    }

    x = llm_flat_get(s, "exclusiveMaximum");
    if (x && d >= llm_flat_double(x)) {
        return 0;
    }

    x = llm_flat_get(s, "multipleOf");
    if (x && fmod(d, llm_flat_double(x)) != 0) {
        return 0;
    }

    return in_range(s, d, "minimum", "maximum");
}


static int
valid_object(const llm_flat_t *s, const llm_flat_t *v, int depth)
{
    char               key[8];
    llm_str_t          k;
    const llm_flat_t  *c, *p, *names, *props, *more;

    props = llm_flat_get(s, "properties");
    more = llm_flat_get(s, "additionalProperties");
    names = llm_flat_get(s, "propertyNames");

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        k = llm_flat_str(c);
        snprintf(key, sizeof(key), "%.*s", (int) k.len, k.data);

        if (names && !valid(names, c, depth)) {
            return 0;
        }

        c = llm_flat_next(v, c);
        p = props ? llm_flat_get(props, key) : NULL;
        p = p ? p : more;

        if (p && !valid(p, c, depth)) {
            return 0;
        }
    }

    p = llm_flat_get(s, "required");

    for (c = p ? llm_flat_first(p) : NULL; c; c = llm_flat_next(p, c)) {
        k = llm_flat_str(c);
        snprintf(key, sizeof(key), "%.*s", (int) k.len, k.data);

        if (llm_flat_get(v, key) == NULL) {
            return 0;
        }
    }

    return in_range(s, v->count, "minProperties", "maxProperties");
}


static int
valid_array(const llm_flat_t *s, const llm_flat_t *v, int depth)
{
    unsigned           n;
    const llm_flat_t  *c, *d, *p, *prefix, *items, *contains;

    prefix = llm_flat_get(s, "prefixItems");
    items = llm_flat_get(s, "items");
    contains = llm_flat_get(s, "contains");
    p = prefix ? llm_flat_first(prefix) : NULL;
    n = 0;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (p || items) {
            if (!valid(p ? p : items, c, depth)) {
                return 0;
            }
        }

        p = p ? llm_flat_next(prefix, p) : NULL;
        n += contains && valid(contains, c, depth);
        d = llm_flat_get(s, "uniqueItems");

        if (d && llm_flat_int(d)) {
            for (d = llm_flat_next(v, c); d; d = llm_flat_next(v, d)) {
                if (same(c, d)) {
                    return 0;
                }
            }
        }
    }

    return (contains == NULL || n)
           && in_range(s, v->count, "minItems", "maxItems");
}


static int
valid_made(const llm_flat_t *s, const llm_flat_t *v, int depth)
{
    const llm_flat_t  *x;

    x = llm_flat_get(s, "$ref");
    if (x) {
        /* the fuzzer's references are #/$defs/x and y */
        x = llm_flat_get(llm_flat_get(document, "$defs"),
                         llm_flat_str(x).data[8] == 'x' ? "x" : "y");
        if (x && !valid(x, v, depth)) {
            return 0;
        }
    }

    x = llm_flat_get(s, "allOf");
    if (x && fit(x, v, depth, 's') != x->count) {
        return 0;
    }

    x = llm_flat_get(s, "anyOf");
    if (x && fit(x, v, depth, 's') == 0) {
        return 0;
    }

    x = llm_flat_get(s, "oneOf");
    if (x && fit(x, v, depth, 's') != 1) {
        return 0;
    }

    x = llm_flat_get(s, "not");
    if (x && valid(x, v, depth)) {
        return 0;
    }

    x = llm_flat_get(s, "if");
    if (x) {
        x = llm_flat_get(s, valid(x, v, depth) ? "then" : "else");
        return x == NULL || valid(x, v, depth);
    }

    return 1;
}


static int
valid(const llm_flat_t *s, const llm_flat_t *v, int depth)
{
    const llm_flat_t  *x;

    if (depth > 40) {
        unsure = 1;
        return 1;
    }

    depth++;

    if (s->type == LLM_FLAT_BOOL) {
        return llm_flat_int(s) != 0;
    }

    x = llm_flat_get(s, "type");
    if (x && !(x->type == LLM_FLAT_ARRAY ? fit(x, v, depth, 't') != 0
                                         : (unsigned) is_type(x, v)))
    {
        return 0;
    }

    x = llm_flat_get(s, "enum");
    if (x && fit(x, v, depth, 'v') == 0) {
        return 0;
    }

    x = llm_flat_get(s, "const");
    if (x && !same(x, v)) {
        return 0;
    }

    if ((is_number(v) && !valid_number(s, v))
        || (v->type == LLM_FLAT_STRING
            && !in_range(s, (double) length(v), "minLength", "maxLength"))
        || (v->type == LLM_FLAT_OBJECT && !valid_object(s, v, depth))
        || (v->type == LLM_FLAT_ARRAY && !valid_array(s, v, depth)))
    {
        return 0;
    }

    return valid_made(s, v, depth);
}


/* ---- both ---- */

static int
accepts(llm_matcher_t *m, const llm_buf_t *text)
{
    size_t     i;
    llm_err_t  err;

    llm_matcher_restart(m);

    for (i = 0; i < text->len; i++) {
        if (llm_matcher_accept(m, (unsigned char) text->data[i], &err)
            != LLM_OK)
        {
            return 0;
        }
    }

    return llm_matcher_may_end(m);
}


static void
check(llm_matcher_t *m, const char *schema)
{
    llm_err_t  err;
    llm_buf_t  text, value;

    llm_buf_init(&text, 1 << 16);
    llm_buf_init(&value, 1 << 20);
    add_value(&text, 0);

    if (llm_json_to_flat(text.data, text.len, NULL, &value, &err) == LLM_OK) {
        unsure = 0;

        if (accepts(m, &text)
            && !valid(document, (llm_flat_t *) value.data, 0) && !unsure)
        {
            fprintf(stderr, "%s\naccepts %s\n", schema, text.data);
            abort();
        }
    }

    llm_buf_free(&text);
    llm_buf_free(&value);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned               i;
    llm_buf_t              text, flat;
    llm_err_t              err;
    llm_gram_t            *g;
    llm_matcher_t         *m;
    static tiny_vocab_t    t;
    static llm_toktree_t  *tree;

    if (tree == NULL) {
        if (tv_open(&t, NULL, NULL, 0, &err) != LLM_OK) {
            abort();
        }

        tree = llm_toktree_create(t.vocab, &err);
    }

    input = data;
    input_len = size;

    llm_buf_init(&text, 1 << 16);
    llm_buf_init(&flat, 1 << 20);
    llm_buf_adds(&text, "{\"$defs\": {\"x\": ");
    add_schema(&text, 2);
    llm_buf_adds(&text, ", \"y\": ");
    add_schema(&text, 2);
    llm_buf_adds(&text, "}, \"allOf\": [");
    add_schema(&text, 0);
    llm_buf_adds(&text, "]}");

    if (!text.failed
        && llm_json_to_flat(text.data, text.len, NULL, &flat, &err)
           == LLM_OK)
    {
        document = (llm_flat_t *) flat.data;
        g = llm_gram_schema(document, tree, &err);
        m = g ? llm_matcher_create(g, &err) : NULL;

        for (i = 0; m && i < 20 && input_len; i++) {
            check(m, text.data);
        }

        llm_matcher_free(m);
        llm_gram_free(g);
    }

    llm_buf_free(&text);
    llm_buf_free(&flat);

    return 0;
}
