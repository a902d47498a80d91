/*
 * Markup: the filters safe and escape, and what else has to do with HTML and
 * URLs.  Chat templates do not escape by themselves; safe only marks text so
 * that joining it to other text escapes that.
 */

#define _GNU_SOURCE                     /* memmem() */

#include "engine/text/jinja/filter.h"

#include <stdio.h>


static int
llm_jhtml_mark(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res)
{
    llm_jv_t  s;

    if (llm_jv_tostr(rt, v, &s) != LLM_OK
        || llm_js_slice(rt, s.u.s, 0, s.u.s->len, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    res->u.s->markup = 1;

    return LLM_OK;
}


static int
llm_jhtml_add_escaped(llm_jb_t *b, const llm_js_t *s)
{
    size_t                     i, from;
    const char                *p, *q;
    static const char          from_chars[] = "&<>'\"";
    static const char *const   to[] = {
        "&amp;", "&lt;", "&gt;", "&#39;", "&#34;"
    };

    p = llm_js_data(s);

    for (i = 0, from = 0; i < s->len; i++) {
        q = p[i] ? strchr(from_chars, p[i]) : NULL;

        if (q == NULL) {
            continue;
        }

        if (llm_jb_add_range(b, s, from, i) != LLM_OK
            || llm_jb_adds(b, to[q - from_chars], llm_js_trusted_at(s, i))
               != LLM_OK)
        {
            return LLM_ERROR;
        }

        from = i + 1;
    }

    return llm_jb_add_range(b, s, from, s->len);
}


int
llm_jinja_escape(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res)
{
    llm_jb_t  b;
    llm_jv_t  s;

    if (v->type == LLM_J_STR && v->u.s->markup) {
        *res = *v;
        return LLM_OK;
    }

    llm_jb_init(&b, rt, 0);

    if (llm_jv_tostr(rt, v, &s) != LLM_OK
        || llm_jhtml_add_escaped(&b, s.u.s) != LLM_OK
        || llm_jb_done(&b, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    res->u.s->markup = 1;

    return LLM_OK;
}


static int
llm_jf_safe(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jhtml_mark(rt, &args->v[0], res);
}


static int
llm_jf_escape(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jinja_escape(rt, &args->v[0], res);
}


static int
llm_jf_forceescape(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  s;

    if (llm_jv_tostr(rt, &args->v[0], &s) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jinja_escape(rt, &s, res);
}


/*
 * The end of a comment or tag that begins at i, or i.  *open has a bit for
 * what has no end from here on: it is not looked for again.
 */

#define LLM_JHTML_NO_COMMENT  1
#define LLM_JHTML_NO_TAG      2

static size_t
llm_jhtml_tag_end(const llm_js_t *s, size_t i, unsigned *open)
{
    const char  *p, *end, *q;

    p = llm_js_data(s) + i;
    end = llm_js_data(s) + s->len;

    if (!(*open & LLM_JHTML_NO_COMMENT) && end - p >= 4
        && memcmp(p, "<!--", 4) == 0)
    {
        q = memmem(p, (size_t) (end - p), "-->", 3);

        if (q) {
            return i + (size_t) (q - p) + 3;
        }

        *open |= LLM_JHTML_NO_COMMENT;
    }

    if (*p == '<' && !(*open & LLM_JHTML_NO_TAG)) {
        q = memchr(p, '>', (size_t) (end - p));

        if (q) {
            return i + (size_t) (q - p) + 1;
        }

        *open |= LLM_JHTML_NO_TAG;
    }

    return i;
}


static int
llm_jhtml_add_entity(llm_jb_t *b, const llm_js_t *s, size_t i, size_t *len)
{
    size_t                    k, n;
    const char               *p;
    static const char *const  names[] = {
        "&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#34;"
    };
    static const char         chars[] = "&<>\"'\"";

    p = llm_js_data(s) + i;

    for (k = 0; k < llm_nelems(names); k++) {
        n = strlen(names[k]);

        if (s->len - i >= n && memcmp(p, names[k], n) == 0) {
            *len = n;
            return llm_jb_add(b, &chars[k], 1, llm_js_trusted_at(s, i));
        }
    }

    (void) llm_jc_decode(p, llm_js_data(s) + s->len, len);

    return llm_jb_add_range(b, s, i, i + *len);
}


/* without comments and tags, runs of white space as one space */

static int
llm_jf_striptags(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          space, some;
    size_t       i, len, end;
    unsigned     open;
    llm_jb_t     b;
    llm_jv_t     v;
    llm_js_t    *s;

    if (llm_jv_tostr(rt, &args->v[0], &v) != LLM_OK) {
        return LLM_ERROR;
    }

    s = v.u.s;
    space = 0;
    some = 0;
    open = 0;
    llm_jb_init(&b, rt, 0);

    for (i = 0; i < s->len; i += len) {
        if (llm_jrt_charge(rt, 1) != LLM_OK) {
            return LLM_ERROR;
        }

        end = llm_jhtml_tag_end(s, i, &open);
        len = end - i;

        if (len) {
            continue;
        }

        len = llm_jc_space(llm_js_data(s) + i, llm_js_data(s) + s->len);

        if (len) {
            space = 1;
            continue;
        }

        if ((space && some && llm_jb_adds(&b, " ", 1) != LLM_OK)
            || llm_jhtml_add_entity(&b, s, i, &len) != LLM_OK)
        {
            return LLM_ERROR;
        }

        space = 0;
        some = 1;
    }

    return llm_jb_done(&b, res);
}


static int
llm_jhtml_add_quoted(llm_jb_t *b, const llm_jv_t *v, int query)
{
    char          buf[8];
    size_t        i;
    llm_jv_t      s;
    const char   *p;

    if (llm_jv_tostr(b->rt, v, &s) != LLM_OK
        || llm_jrt_charge(b->rt, s.u.s->len * 4 * LLM_J_CLASSIFIED)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    p = llm_js_data(s.u.s);

    for (i = 0; i < s.u.s->len; i++) {
        if ((p[i] >= '0' && p[i] <= '9')
            || ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'z')
            || (p[i] && strchr("_.-~", p[i])) || (p[i] == '/' && !query))
        {
            snprintf(buf, sizeof(buf), "%c", p[i]);

        } else if (p[i] == ' ' && query) {
            snprintf(buf, sizeof(buf), "+");

        } else {
            snprintf(buf, sizeof(buf), "%%%02X", (unsigned char) p[i]);
        }

        if (llm_jb_adds(b, buf, llm_js_trusted_at(s.u.s, i)) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_jf_urlencode(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          rc, more;
    llm_jb_t     b;
    llm_jv_t     item, view;
    llm_jcur_t   cur;
    llm_jlist_t  pair;
    llm_jview_t  items;

    llm_jb_init(&b, rt, 0);

    if (args->v[0].type == LLM_J_STR || !llm_jv_iterable(&args->v[0])) {
        if (llm_jhtml_add_quoted(&b, &args->v[0], 0) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_jb_done(&b, res);
    }

    view = args->v[0];

    if (view.type == LLM_J_DICT) {
        items.dict = view.u.dict;
        items.kind = LLM_J_ITEMS;
        view = llm_jv_of(LLM_J_VIEW);
        view.u.view = &items;
    }

    if (llm_jcur_init(rt, &cur, &view) != LLM_OK) {
        return LLM_ERROR;
    }

    for (more = 0; (rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK; more = 1)
    {
        if (llm_jv_items(rt, &item, &pair) != LLM_OK) {
            return LLM_ERROR;
        }

        if (pair.n != 2) {
            return llm_jrt_fail(rt, "urlencode: expected pairs");
        }

        if ((more && llm_jb_adds(&b, "&", 1) != LLM_OK)
            || llm_jhtml_add_quoted(&b, &pair.v[0], 1) != LLM_OK
            || llm_jb_adds(&b, "=", 1) != LLM_OK
            || llm_jhtml_add_quoted(&b, &pair.v[1], 1) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return rc == LLM_AGAIN ? llm_jb_done(&b, res) : LLM_ERROR;
}


static int
llm_jf_xmlattr(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           space;
    size_t        i, k;
    llm_jb_t      b;
    llm_jv_t      key, value;
    llm_js_t     *s;
    llm_jdict_t  *d;

    if (args->v[0].type != LLM_J_DICT) {
        return llm_jrt_fail(rt, "xmlattr: expected a mapping");
    }

    d = args->v[0].u.dict;
    space = !llm_jv_given(&args->v[1]) || llm_jv_truth(&args->v[1]);
    llm_jb_init(&b, rt, 0);

    for (i = 0; i < d->n; i++) {
        if (d->v[i].value.type == LLM_J_NONE
            || d->v[i].value.type == LLM_J_UNDEF)
        {
            continue;
        }

        if (llm_jarg_str(rt, &d->v[i].key, "xmlattr", &s) != LLM_OK) {
            return LLM_ERROR;
        }

        for (k = 0; k < s->len; k++) {
            if (llm_js_data(s)[k] && strchr(" \t\n\r\f\v/>=",
                                            llm_js_data(s)[k]))
            {
                return llm_jrt_fail(rt, "Invalid character in attribute "
                                    "name");
            }
        }

        if ((space && llm_jb_adds(&b, " ", 1) != LLM_OK)
            || llm_jinja_escape(rt, &d->v[i].key, &key) != LLM_OK
            || llm_jinja_escape(rt, &d->v[i].value, &value) != LLM_OK
            || llm_jb_add_str(&b, key.u.s) != LLM_OK
            || llm_jb_adds(&b, "=\"", 1) != LLM_OK
            || llm_jb_add_str(&b, value.u.s) != LLM_OK
            || llm_jb_adds(&b, "\"", 1) != LLM_OK)
        {
            return LLM_ERROR;
        }

        space = 1;
    }

    return llm_jb_done(&b, res);
}


static const llm_jfunc_t  llm_jf_html_table[] = {
    { "safe", llm_jf_safe, "", 0, 0 },
    { "escape", llm_jf_escape, "", 0, 0 },
    { "e", llm_jf_escape, "", 0, 0 },
    { "forceescape", llm_jf_forceescape, "", 0, 0 },
    { "striptags", llm_jf_striptags, "", 0, 0 },
    { "urlencode", llm_jf_urlencode, "", 0, 0 },
    { "xmlattr", llm_jf_xmlattr, "autospace?", 0, 0 }
};

const llm_jfilters_t  llm_jf_html = {
    llm_jf_html_table, llm_nelems(llm_jf_html_table)
};
