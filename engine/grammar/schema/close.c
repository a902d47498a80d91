/*
 * Schemas as OpenAI's strict mode wants them: an object has no other
 * properties than those that it names.  In strict mode a schema must say so
 * itself; here additionalProperties false is added if it says nothing about
 * other properties.
 *
 * If several schemas describe the same object together (allOf, not, if ..., a
 * reference or an anyOf together with properties or with each other, patterns
 * together with names), they cannot be closed one by one: each would forbid
 * what the others name.  Strict mode does not allow such schemas.  If there is
 * one anywhere, only the outermost object is closed.
 *
 * An object that must have more properties than it names describes other
 * properties, too, so it stays open.
 */

#include "engine/grammar/grammar.h"

/* form of a keyword's value */
typedef enum {
    LLM_CLOSE_OTHER = 0,
    LLM_CLOSE_SCHEMAS,                  /* a schema, or a list of schemas */
    LLM_CLOSE_NAMED,                    /* an object of schemas by name */
    LLM_CLOSE_CHOICE,                   /* a list of schemas, each of which
                                           describes the whole value if there
                                           are no other keywords */
    LLM_CLOSE_SHARED,                   /* a further description of the same
                                           object */
    LLM_CLOSE_ASIDE                     /* the same, but it names no properties
                                           that the object may have */
} llm_close_kind_t;

typedef struct {
    llm_buf_t                 *out;
    int                        deep;
    int                        shared;  /* 1: several schemas describe one
                                           object */
    uint32_t                   n;       /* number of objects closed */
} llm_close_t;


static void llm_close_schema(llm_close_t *c, const llm_flat_t *v);


static llm_close_kind_t
llm_close_kind(const llm_flat_t *key)
{
    size_t     i;
    llm_str_t  s;

    static const struct {
        llm_str_t         name;
        llm_close_kind_t  kind;
    } rows[] = {
        { llm_str("properties"), LLM_CLOSE_NAMED },
        { llm_str("patternProperties"), LLM_CLOSE_NAMED },
        { llm_str("$defs"), LLM_CLOSE_NAMED },
        { llm_str("definitions"), LLM_CLOSE_NAMED },
        { llm_str("items"), LLM_CLOSE_SCHEMAS },
        { llm_str("prefixItems"), LLM_CLOSE_SCHEMAS },
        { llm_str("additionalProperties"), LLM_CLOSE_SCHEMAS },
        { llm_str("anyOf"), LLM_CLOSE_CHOICE },
        { llm_str("oneOf"), LLM_CLOSE_CHOICE },
        { llm_str("$ref"), LLM_CLOSE_CHOICE },
        { llm_str("$dynamicRef"), LLM_CLOSE_SHARED },
        { llm_str("$recursiveRef"), LLM_CLOSE_SHARED },
        { llm_str("allOf"), LLM_CLOSE_SHARED },
        { llm_str("if"), LLM_CLOSE_SHARED },
        { llm_str("unevaluatedProperties"), LLM_CLOSE_SHARED },
        { llm_str("dependentSchemas"), LLM_CLOSE_SHARED },
        { llm_str("dependencies"), LLM_CLOSE_SHARED },
        { llm_str("contains"), LLM_CLOSE_ASIDE },
        { llm_str("not"), LLM_CLOSE_ASIDE }
    };

    s = llm_flat_str(key);

    for (i = 0; i < llm_nelems(rows); i++) {
        if (llm_str_eq(s, rows[i].name)) {
            return rows[i].kind;
        }
    }

    return LLM_CLOSE_OTHER;
}


static int
llm_close_compare(const void *a, const void *b)
{
    int               rc;
    const llm_str_t  *s = a, *t = b;

    rc = memcmp(s->data, t->data, llm_min(s->len, t->len));

    return rc ? rc : (s->len > t->len) - (s->len < t->len);
}


/* are all strings of a list among these sorted names? */

static int
llm_close_has_all(const llm_str_t *names, uint32_t n, const llm_flat_t *list)
{
    llm_str_t          s;
    const llm_flat_t  *v;

    if (list == NULL || list->type != LLM_FLAT_ARRAY) {
        return 1;
    }

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        if (v->type != LLM_FLAT_STRING) {
            continue;
        }

        s = llm_flat_str(v);

        if (bsearch(&s, names, n, sizeof(llm_str_t), llm_close_compare)
            == NULL)
        {
            return 0;
        }
    }

    return 1;
}


/* must an object have properties other than the named ones? */

static int
llm_close_asks_more(const llm_flat_t *v, const llm_flat_t *properties)
{
    int                more;
    uint32_t           n;
    llm_str_t         *names;
    const llm_flat_t  *k, *least, *list;

    least = llm_flat_get(v, "minProperties");

    if (least && (least->type == LLM_FLAT_INT
                  || least->type == LLM_FLAT_DOUBLE)
        && llm_flat_double(least) > properties->count)
    {
        return 1;
    }

    names = malloc(properties->count * sizeof(llm_str_t));
    if (names == NULL) {
        return 1;
    }

    for (k = llm_flat_first(properties), n = 0; k; n++) {
        names[n] = llm_flat_str(k);
        k = llm_flat_next(properties, llm_flat_next(properties, k));
    }

    qsort(names, n, sizeof(llm_str_t), llm_close_compare);

    more = !llm_close_has_all(names, n, llm_flat_get(v, "required"));
    list = llm_flat_get(v, "dependentRequired");
    k = list && list->type == LLM_FLAT_OBJECT ? llm_flat_first(list) : NULL;

    while (k && !more) {
        k = llm_flat_next(list, k);
        more = !llm_close_has_all(names, n, k);
        k = llm_flat_next(list, k);
    }

    free(names);

    return more;
}


/* does the schema name properties, and say nothing about others? */

static int
llm_close_is_open(const llm_flat_t *v)
{
    llm_close_kind_t   kind;
    const llm_flat_t  *k, *of;

    of = llm_flat_get(v, "properties");

    if (of == NULL || of->type != LLM_FLAT_OBJECT || of->count == 0
        || llm_flat_get(v, "additionalProperties")
        || llm_flat_get(v, "patternProperties")
        || llm_flat_get(v, "enum") || llm_flat_get(v, "const"))
    {
        return 0;
    }

    for (k = llm_flat_first(v); k; k = llm_flat_next(v, k)) {
        kind = llm_close_kind(k);

        if (kind == LLM_CLOSE_CHOICE || kind == LLM_CLOSE_SHARED) {
            return 0;
        }

        k = llm_flat_next(v, k);
    }

    return !llm_close_asks_more(v, of);
}


/* do several schemas describe one object, though none of their keywords does
   by itself: choices with other keywords, and patterns that may match a name
   or another pattern's keys? */

static int
llm_close_is_shared(const llm_flat_t *v)
{
    uint32_t           n;
    const llm_flat_t  *k, *patterns;

    n = llm_flat_get(v, "properties") != NULL;
    patterns = llm_flat_get(v, "patternProperties");

    if (patterns && patterns->count > !n) {
        return 1;
    }

    for (k = llm_flat_first(v); k; k = llm_flat_next(v, k)) {
        n += llm_close_kind(k) == LLM_CLOSE_CHOICE;
        k = llm_flat_next(v, k);
    }

    return n > 1;
}


static void
llm_close_named(llm_close_t *c, const llm_flat_t *v)
{
    size_t             handle;
    const llm_flat_t  *k;

    handle = llm_flat_open(c->out, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(v); k; k = llm_flat_next(v, k)) {
        llm_flat_add_node(c->out, k);
        k = llm_flat_next(v, k);
        llm_close_schema(c, k);
    }

    llm_flat_close(c->out, handle, v->count);
}


static void
llm_close_list(llm_close_t *c, const llm_flat_t *v)
{
    size_t             handle;
    const llm_flat_t  *item;

    handle = llm_flat_open(c->out, LLM_FLAT_ARRAY);

    for (item = llm_flat_first(v); item; item = llm_flat_next(v, item)) {
        llm_close_schema(c, item);
    }

    llm_flat_close(c->out, handle, v->count);
}


static void
llm_close_value(llm_close_t *c, const llm_flat_t *key, const llm_flat_t *v)
{
    llm_close_kind_t  kind;

    kind = llm_close_kind(key);

    c->shared |= kind == LLM_CLOSE_SHARED || kind == LLM_CLOSE_ASIDE;

    if (c->deep && kind == LLM_CLOSE_NAMED && v->type == LLM_FLAT_OBJECT) {
        llm_close_named(c, v);

    } else if (c->deep && v->type == LLM_FLAT_ARRAY
               && (kind == LLM_CLOSE_SCHEMAS || kind == LLM_CLOSE_CHOICE))
    {
        llm_close_list(c, v);

    } else if (c->deep && kind == LLM_CLOSE_SCHEMAS) {
        llm_close_schema(c, v);

    } else {
        llm_flat_add_node(c->out, v);
    }
}


static void
llm_close_schema(llm_close_t *c, const llm_flat_t *v)
{
    int                open;
    size_t             handle;
    const llm_flat_t  *key, *value;

    if (v->type != LLM_FLAT_OBJECT) {
        llm_flat_add_node(c->out, v);
        return;
    }

    open = llm_close_is_open(v);
    c->shared |= llm_close_is_shared(v);
    handle = llm_flat_open(c->out, LLM_FLAT_OBJECT);

    for (key = llm_flat_first(v); key; key = llm_flat_next(v, value)) {
        value = llm_flat_next(v, key);
        llm_flat_add_node(c->out, key);
        llm_close_value(c, key, value);
    }

    if (open) {
        llm_flat_add_str(c->out, "additionalProperties", 20);
        llm_flat_add_bool(c->out, 0);
        c->n++;
    }

    llm_flat_close(c->out, handle, v->count + (uint32_t) open);
}


int
llm_schema_close(const llm_flat_t *schema, int deep, llm_buf_t *out)
{
    llm_close_t  c;

    memset(&c, 0, sizeof(c));
    c.out = out;
    c.deep = deep;
    llm_close_schema(&c, schema);

    if (deep && c.shared) {
        out->len = 0;
        return llm_schema_close(schema, 0, out);
    }

    return out->failed ? LLM_ERROR : c.n ? LLM_OK : LLM_ABSENT;
}
