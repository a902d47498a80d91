/*
 * Drafts, addresses and references: finds the schema that a "$ref" refers to.
 *
 * A document is one resource or, with inner schemas that have an "$id",
 * several; nothing outside of it is ever read.  Addresses are resolved
 * according to RFC 3986.
 */

#include "engine/grammar/schema/internal.h"

#include <stdio.h>


typedef struct {
    llm_str_t    scheme;                /* including its separator */
    llm_str_t    authority;
    llm_str_t    path;
    llm_str_t    query;
} llm_schema_uri_t;


static llm_str_t
llm_schema_cut(llm_str_t *s, size_t len)
{
    llm_str_t  head;

    head.data = s->data;
    head.len = len;
    s->data += len;
    s->len -= len;

    return head;
}


static size_t
llm_schema_until(llm_str_t s, const char *stops)
{
    size_t  i;

    for (i = 0; i < s.len && strchr(stops, s.data[i]) == NULL; i++) {
        /* void */
    }

    return i;
}


/* splits an address without fragment */

static llm_schema_uri_t
llm_schema_uri(llm_str_t text)
{
    size_t            n;
    llm_schema_uri_t  u;

    memset(&u, 0, sizeof(u));

    n = llm_schema_until(text, ":/?");
    if (n && n < text.len && text.data[n] == ':') {
        u.scheme = llm_schema_cut(&text, n + 1);
    }

    if (text.len >= 2 && memcmp(text.data, "//", 2) == 0) {
        llm_str_t  rest = { text.len - 2, text.data + 2 };

        u.authority = llm_schema_cut(&text,
                                     2 + llm_schema_until(rest, "/?"));
    }

    u.path = llm_schema_cut(&text, llm_schema_until(text, "?"));
    u.query = text;

    return u;
}


/* appends the segments of path, with "." and ".." resolved */

static void
llm_schema_add_path(llm_buf_t *b, llm_str_t path)
{
    size_t     begin, n;
    llm_str_t  seg;

    begin = b->len;

    while (path.len) {
        n = path.data[0] == '/';

        seg.data = path.data + n;
        seg.len = path.len - n;
        seg.len = llm_schema_until(seg, "/");
        n += seg.len;

        if (llm_str_eq(seg, llm_str(".."))) {
            while (b->len > begin && b->data[--b->len] != '/') {
                /* void */
            }

            if (n == path.len) {
                (void) llm_buf_addc(b, '/');
            }

        } else if (llm_str_eq(seg, llm_str("."))) {
            if (n == path.len) {
                (void) llm_buf_addc(b, '/');
            }

        } else {
            (void) llm_buf_add(b, path.data, n);
        }

        (void) llm_schema_cut(&path, n);
    }
}


static int
llm_schema_resolve(llm_schema_t *s, llm_str_t base, llm_str_t ref,
    llm_str_t *out)
{
    size_t            n;
    llm_buf_t         b, path;
    llm_schema_uri_t  u, r;

    u = llm_schema_uri(base);
    r = llm_schema_uri(ref);

    llm_buf_init(&b, 1 << 16);
    llm_buf_init(&path, 1 << 16);

    if (r.scheme.len) {
        u = r;

    } else if (r.authority.len) {
        r.scheme = u.scheme;
        u = r;

    } else if (r.path.len == 0) {
        if (r.query.len) {
            u.query = r.query;
        }

    } else {
        u.query = r.query;

        if (r.path.data[0] != '/') {
            n = u.path.len;
            while (n && u.path.data[n - 1] != '/') {
                n--;
            }

            if (n == 0 && u.authority.len) {
                (void) llm_buf_addc(&path, '/');
            }

            (void) llm_buf_add(&path, u.path.data, n);
        }

        (void) llm_buf_add(&path, r.path.data, r.path.len);
        u.path.data = path.data;
        u.path.len = path.len;
    }

    (void) llm_buf_add(&b, u.scheme.data, u.scheme.len);
    (void) llm_buf_add(&b, u.authority.data, u.authority.len);
    llm_schema_add_path(&b, u.path);
    (void) llm_buf_add(&b, u.query.data, u.query.len);

    out->len = b.len;
    out->data = llm_arena_dup(&s->arena, b.data ? b.data : "", b.len);

    llm_buf_free(&b);
    llm_buf_free(&path);

    return out->data ? LLM_OK : llm_schema_too_large(s);
}


/* the innermost resource that contains v */

static const llm_schema_resource_t *
llm_schema_resource(const llm_schema_t *s, const llm_flat_t *v)
{
    uint32_t           i;
    const llm_flat_t  *r;

    for (i = s->n_resources; i > 1; i--) {
        r = s->resources[i - 1].v;

        if (v >= r && (const char *) v < (const char *) r + r->size) {
            return &s->resources[i - 1];
        }
    }

    return &s->resources[0];
}


static int
llm_schema_add_anchor(llm_schema_t *s, const llm_flat_t *v,
    llm_str_t name, int dynamic, uint32_t *room)
{
    llm_schema_anchor_t  *a;

    if (llm_schema_grow(s, &s->anchors, s->n_anchors, room,
                        sizeof(llm_schema_anchor_t)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    a = &s->anchors[s->n_anchors++];
    a->name = name;
    a->v = v;
    a->dynamic = dynamic;

    return LLM_OK;
}


/* records a schema's own address and anchors; resources are in preorder, so an
   inner one comes after its outer one */

static int
llm_schema_names(llm_schema_t *s, const llm_flat_t *v, uint32_t *rooms)
{
    size_t                        n;
    llm_str_t                     id, uri, name;
    const llm_flat_t             *x;
    const llm_schema_resource_t  *base;

    x = llm_flat_get(v, s->draft == LLM_DRAFT_4 ? "id" : "$id");

    if (x && x->type == LLM_FLAT_STRING
        && (s->draft >= LLM_DRAFT_2019 || llm_flat_get(v, "$ref") == NULL))
    {
        id = llm_flat_str(x);
        uri = id;
        uri.len = llm_schema_until(id, "#");
        name.data = id.data + uri.len + 1;
        name.len = id.len > uri.len ? id.len - uri.len - 1 : 0;

        if (name.len && name.data[0] != '/' && s->draft < LLM_DRAFT_2019
            && llm_schema_add_anchor(s, v, name, 0, &rooms[1]) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (uri.len) {
            base = llm_schema_resource(s, v);

            if (llm_schema_resolve(s, base->uri, uri, &uri) != LLM_OK) {
                return LLM_ERROR;
            }

            if (v == s->root) {
                s->resources[0].uri = uri;

            } else {
                if (llm_schema_grow(s, &s->resources, s->n_resources,
                                    &rooms[0],
                                    sizeof(llm_schema_resource_t))
                    != LLM_OK)
                {
                    return LLM_ERROR;
                }

                s->resources[s->n_resources].uri = uri;
                s->resources[s->n_resources++].v = v;
            }
        }
    }

    if (s->draft < LLM_DRAFT_2019) {
        return LLM_OK;
    }

    for (n = 0; n < 2; n++) {
        x = llm_flat_get(v, n ? "$dynamicAnchor" : "$anchor");

        if (x && x->type == LLM_FLAT_STRING
            && llm_schema_add_anchor(s, v, llm_flat_str(x), (int) n,
                                     &rooms[1]) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_schema_among(llm_str_t key, const char *const *names, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (llm_str_is(key, names[i])) {
            return 1;
        }
    }

    return 0;
}


/* finds the addresses and anchors in v; of: v is no schema, but a list or map
   of schemas */

static int
llm_schema_walk(llm_schema_t *s, const llm_flat_t *v, int of, uint32_t *rooms)
{
    int                       map;
    llm_str_t                 key;
    const llm_flat_t         *c;
    static const char *const  values[] = { "enum", "const", "default",
                                           "example", "examples" };
    static const char *const  maps[] = { "properties", "patternProperties",
                                         "$defs", "definitions",
                                         "dependencies",
                                         "dependentSchemas" };

    if (v->type == LLM_FLAT_OBJECT && !of
        && llm_schema_names(s, v, rooms) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        map = 0;

        if (v->type == LLM_FLAT_OBJECT) {
            key = llm_flat_str(c);
            c = llm_flat_next(v, c);

            if (!of && llm_schema_among(key, values, llm_nelems(values))) {
                continue;
            }

            map = !of && llm_schema_among(key, maps, llm_nelems(maps));
        }

        if ((c->type == LLM_FLAT_OBJECT || c->type == LLM_FLAT_ARRAY)
            && llm_schema_walk(s, c, map, rooms) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* without "$schema" the newest draft applies */

static int
llm_schema_draft(llm_schema_t *s)
{
    size_t             i;
    llm_str_t          name;
    const llm_flat_t  *v;

    static const struct {
        const char          *name;
        llm_schema_draft_t   draft;
    } drafts[] = {
        { "json-schema.org/draft-03/schema", 0 },
        { "json-schema.org/draft-04/schema", LLM_DRAFT_4 },
        { "json-schema.org/draft-06/schema", LLM_DRAFT_6 },
        { "json-schema.org/draft-07/schema", LLM_DRAFT_7 },
        { "json-schema.org/draft/2019-09/schema", LLM_DRAFT_2019 },
    };

    s->draft = LLM_DRAFT_2020;

    v = s->root->type == LLM_FLAT_OBJECT ? llm_flat_get(s->root, "$schema")
                                         : NULL;
    if (v == NULL || v->type != LLM_FLAT_STRING
        || llm_schema_gone(s, NULL, v))
    {
        return LLM_OK;
    }

    name = llm_flat_str(v);
    i = llm_schema_until(name, ":");

    if (i + 3 > name.len || memcmp(name.data + i, "://", 3) != 0) {
        return LLM_OK;
    }

    (void) llm_schema_cut(&name, i + 3);
    name.len = llm_schema_until(name, "#");

    for (i = 0; i < llm_nelems(drafts); i++) {
        if (llm_schema_among(name, &drafts[i].name, 1)) {
            if (drafts[i].draft == 0) {
                return llm_schema_refuse(s, v, "draft 3 is not supported");
            }

            s->draft = drafts[i].draft;
        }
    }

    return LLM_OK;
}


int
llm_schema_open(llm_schema_t *s)
{
    uint32_t  rooms[2] = { 0, 0 };

    if (llm_schema_draft(s) != LLM_OK
        || llm_schema_grow(s, &s->resources, 0, &rooms[0],
                           sizeof(llm_schema_resource_t)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    s->resources[0].v = s->root;
    s->resources[0].uri = llm_str("");
    s->n_resources = 1;

    return llm_schema_walk(s, s->root, 0, rooms);
}


/* decodes one segment of a pointer: %XX, then ~0 and ~1 */

static size_t
llm_schema_segment(llm_str_t seg, char *out)
{
    size_t    i, n;
    unsigned  c;
    char      hex[3] = { 0, 0, 0 };

    for (i = 0, n = 0; i < seg.len; i++, n++) {
        out[n] = seg.data[i];

        if (seg.data[i] == '%' && i + 2 < seg.len) {
            memcpy(hex, seg.data + i + 1, 2);

            if (strspn(hex, "0123456789abcdefABCDEF") == 2) {
                (void) sscanf(hex, "%x", &c);
                out[n] = (char) c;
                i += 2;
            }
        }
    }

    seg.len = n;

    for (i = 0, n = 0; i < seg.len; i++, n++) {
        out[n] = out[i];

        if (out[i] == '~' && i + 1 < seg.len
            && (out[i + 1] == '0' || out[i + 1] == '1'))
        {
            out[n] = out[++i] == '0' ? '~' : '/';
        }
    }

    return n;
}


static const llm_flat_t *
llm_schema_child(const llm_flat_t *v, llm_str_t key)
{
    uint32_t           i, at;
    const llm_flat_t  *c;

    if (v->type == LLM_FLAT_OBJECT) {
        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            if (llm_str_eq(llm_flat_str(c), key)) {
                return llm_flat_next(v, c);
            }

            c = llm_flat_next(v, c);
        }

        return NULL;
    }

    if (v->type != LLM_FLAT_ARRAY || key.len == 0 || key.len > 9) {
        return NULL;
    }

    for (i = 0, at = 0; i < key.len; i++) {
        if (key.data[i] < '0' || key.data[i] > '9') {
            return NULL;
        }

        at = at * 10 + (uint32_t) (key.data[i] - '0');
    }

    c = llm_flat_first(v);
    while (c && at--) {
        c = llm_flat_next(v, c);
    }

    return c;
}


/* pointer begins with "/" */

static const llm_flat_t *
llm_schema_pointer(llm_schema_t *s, const llm_flat_t *v, llm_str_t pointer)
{
    char       *text;
    llm_str_t   seg, key;

    text = llm_schema_alloc(s, pointer.len + 1);
    if (text == NULL) {
        return NULL;
    }

    while (v && pointer.len) {
        (void) llm_schema_cut(&pointer, 1);
        seg = llm_schema_cut(&pointer, llm_schema_until(pointer, "/"));

        key.data = text;
        key.len = llm_schema_segment(seg, text);
        v = llm_schema_child(v, key);
    }

    return v;
}


static const llm_flat_t *
llm_schema_anchor(const llm_schema_t *s, const llm_schema_resource_t *r,
    llm_str_t name, int dynamic)
{
    uint32_t           i, n;
    const llm_flat_t  *v;

    v = NULL;

    for (i = 0, n = 0; i < s->n_anchors; i++) {
        if (!llm_str_eq(s->anchors[i].name, name)) {
            continue;
        }

        if (dynamic && s->anchors[i].dynamic) {
            n++;
        }

        if (v == NULL && llm_schema_resource(s, s->anchors[i].v) == r) {
            v = s->anchors[i].v;
        }
    }

    /* with several anchors, the right one depends on the path of evaluation */
    return n > 1 ? NULL : v;
}


static const llm_flat_t *
llm_schema_find(llm_schema_t *s, const llm_flat_t *ref, int dynamic)
{
    uint32_t                      i;
    llm_str_t                     text, uri, name;
    const llm_schema_resource_t  *r;

    text = llm_flat_str(ref);
    uri = text;
    uri.len = llm_schema_until(text, "#");
    name.data = text.data + uri.len + 1;
    name.len = text.len > uri.len ? text.len - uri.len - 1 : 0;

    r = llm_schema_resource(s, ref);

    if (uri.len) {
        if (llm_schema_resolve(s, r->uri, uri, &uri) != LLM_OK) {
            return NULL;
        }

        r = NULL;

        for (i = 0; i < s->n_resources; i++) {
            if (llm_str_eq(s->resources[i].uri, uri)) {
                r = &s->resources[i];
                break;
            }
        }

        if (r == NULL) {
            return NULL;
        }
    }

    if (name.len == 0) {
        return r->v;
    }

    if (name.data[0] == '/') {
        return llm_schema_pointer(s, r->v, name);
    }

    return llm_schema_anchor(s, r, name, dynamic);
}


int
llm_schema_target(llm_schema_t *s, const llm_flat_t *ref,
    llm_schema_kw_t kw, const llm_flat_t **target)
{
    char       name[128];
    uint32_t   at;
    uint64_t   key;
    llm_str_t  text;

    key = (uint64_t) llm_schema_item(s, ref, 0) + 1;

    if (llm_schema_map_get(&s->targets, key, &at) == LLM_OK) {
        *target = llm_schema_flat(s, at);
        return LLM_OK;
    }

    if (llm_schema_is(s, ref, LLM_FLAT_STRING) != LLM_OK) {
        return LLM_ERROR;
    }

    if (kw == LLM_KW_RECURSIVE_REF && s->n_resources > 1) {
        return llm_schema_refuse(s, ref, "what it stands for depends on the"
                                         " way that led to it");
    }

    *target = llm_schema_find(s, ref, kw == LLM_KW_DYNAMIC_REF);

    if (*target == NULL) {
        text = llm_flat_str(ref);
        llm_clean(name, sizeof(name), text.data, text.len);

        return llm_schema_refuse(s, ref, "there is no one schema \"%s\" in"
                                         " the document, and no other"
                                         " document is read", name);
    }

    return llm_schema_map_put(s, &s->targets, key,
                              llm_schema_item(s, *target, 0));
}
