/*
 * The filter tojson: json.dumps(value, ensure_ascii=False, indent, ...,
 * sort_keys) as transformers has it, Python's defaults for separators
 * included.
 *
 * Strings keep their trust; all other output is untrusted.
 */

#include "engine/text/jinja/builtin.h"

#include <stdio.h>

typedef struct {
    llm_jrt_t       *rt;
    llm_jb_t         b;
    int              ascii;
    int              sort;
    int              lines;             /* 1: indent was given */
    const llm_js_t  *indent;
    const llm_js_t  *item_sep;
    const llm_js_t  *key_sep;
} llm_jjson_t;

static int llm_jjson_value(llm_jjson_t *j, const llm_jv_t *v, size_t level);


static int
llm_jjson_escape(llm_jjson_t *j, uint32_t c, int trusted)
{
    char               buf[16];
    const char        *p;
    static const char  from[] = "\"\\\n\r\t\f\b";
    static const char  to[] = "\"\\nrtfb";

    p = c ? strchr(from, (int) c) : NULL;

    if (c < 0x80 && p) {
        snprintf(buf, sizeof(buf), "\\%c", to[p - from]);

    } else if (c >= 0x10000) {
        c -= 0x10000;
        snprintf(buf, sizeof(buf), "\\u%04x\\u%04x", 0xd800 + (c >> 10),
                 0xdc00 + (c & 0x3ff));

    } else {
        snprintf(buf, sizeof(buf), "\\u%04x", c);
    }

    return llm_jb_adds(&j->b, buf, trusted);
}


static int
llm_jjson_string(llm_jjson_t *j, const llm_js_t *s)
{
    size_t       i, len, from;
    uint32_t     c;
    const char  *p;

    p = llm_js_data(s);

    (void) llm_jb_adds(&j->b, "\"", 0);

    for (i = 0, from = 0; i < s->len; i += len) {
        len = 1;
        c = (unsigned char) p[i];

        if (c >= 0x80 && j->ascii) {
            c = llm_jc_decode(p + i, p + s->len, &len);

        } else if (c >= 0x20 && c != '"' && c != '\\'
                   && !(c == 0x7f && j->ascii))
        {
            continue;
        }

        (void) llm_jb_add_range(&j->b, s, from, i);
        (void) llm_jjson_escape(j, c, llm_js_trusted_at(s, i));
        from = i + len;
    }

    (void) llm_jb_add_range(&j->b, s, from, s->len);

    return llm_jb_adds(&j->b, "\"", 0);
}


static int
llm_jjson_newline(llm_jjson_t *j, size_t level)
{
    if (!j->lines) {
        return LLM_OK;
    }

    (void) llm_jb_adds(&j->b, "\n", 0);

    while (level--) {
        llm_jtry(llm_jb_add_str(&j->b, j->indent));
    }

    return LLM_OK;
}


static int
llm_jjson_array(llm_jjson_t *j, const llm_jlist_t *list, size_t level)
{
    size_t  i;

    if (list->n == 0) {
        return llm_jb_adds(&j->b, "[]", 0);
    }

    (void) llm_jb_adds(&j->b, "[", 0);

    for (i = 0; i < list->n; i++) {
        if (i) {
            (void) llm_jb_add_str(&j->b, j->item_sep);
        }

        llm_jtry(llm_jjson_newline(j, level + 1));
        llm_jtry(llm_jjson_value(j, &list->v[i], level + 1));
    }

    (void) llm_jjson_newline(j, level);

    return llm_jb_adds(&j->b, "]", 0);
}


static int
llm_jjson_key(llm_jjson_t *j, const llm_jv_t *key)
{
    switch (key->type) {

    case LLM_J_STR:
        return llm_jjson_string(j, key->u.s);

    case LLM_J_NONE:
        return llm_jb_adds(&j->b, "\"null\"", 0);

    case LLM_J_BOOL:
    case LLM_J_INT:
    case LLM_J_FLOAT:
        (void) llm_jb_adds(&j->b, "\"", 0);
        (void) llm_jb_add_number(&j->b, key, 0, 1);

        return llm_jb_adds(&j->b, "\"", 0);

    default:
        return llm_jrt_fail(j->rt, "keys must be str, int, float, bool or "
                            "None, not %s", llm_jv_type(key));
    }
}


static int
llm_jjson_object(llm_jjson_t *j, const llm_jdict_t *d, size_t level)
{
    size_t        i;
    llm_jpair_t  *v;

    if (d->n == 0) {
        return llm_jb_adds(&j->b, "{}", 0);
    }

    v = d->v;

    if (j->sort) {
        llm_jnew(j->rt, v, d->n * sizeof(llm_jpair_t));

        memcpy(v, d->v, d->n * sizeof(llm_jpair_t));

        llm_jtry(llm_jpairs_sort(j->rt, v, d->n, 0));
    }

    (void) llm_jb_adds(&j->b, "{", 0);

    for (i = 0; i < d->n; i++) {
        if (i) {
            (void) llm_jb_add_str(&j->b, j->item_sep);
        }

        llm_jtry(llm_jjson_newline(j, level + 1));
        llm_jtry(llm_jjson_key(j, &v[i].key));
        llm_jtry(llm_jb_add_str(&j->b, j->key_sep));
        llm_jtry(llm_jjson_value(j, &v[i].value, level + 1));
    }

    (void) llm_jjson_newline(j, level);

    return llm_jb_adds(&j->b, "}", 0);
}


static int
llm_jjson_value(llm_jjson_t *j, const llm_jv_t *v, size_t level)
{
    int  rc;

    llm_jtry(llm_jrt_charge(j->rt, 1));
    llm_jtry(llm_jrt_enter(j->rt));

    switch (v->type) {

    case LLM_J_NONE:
        rc = llm_jb_adds(&j->b, "null", 0);
        break;

    case LLM_J_BOOL:
    case LLM_J_INT:
    case LLM_J_FLOAT:
        rc = llm_jb_add_number(&j->b, v, 0, 1);
        break;

    case LLM_J_STR:
        rc = llm_jjson_string(j, v->u.s);
        break;

    case LLM_J_LIST:
    case LLM_J_TUPLE:
        rc = llm_jjson_array(j, v->u.list, level);
        break;

    case LLM_J_DICT:
        rc = llm_jjson_object(j, v->u.dict, level);
        break;

    default:
        rc = llm_jrt_fail(j->rt, "Object of type %s is not JSON "
                          "serializable", llm_jv_type(v));
        break;
    }

    llm_jrt_leave(j->rt);

    return rc;
}


/* the indentation of one level: a string, or a number of spaces */

static int
llm_jjson_indent(llm_jjson_t *j, const llm_jv_t *v)
{
    llm_jb_t  b;
    llm_jv_t  s;

    j->lines = llm_jv_given(v) && v->type != LLM_J_NONE;

    if (!j->lines) {
        return LLM_OK;
    }

    if (v->type == LLM_J_STR) {
        j->indent = v->u.s;
        return LLM_OK;
    }

    if (!llm_jv_integral(v)) {
        return llm_jrt_fail(j->rt, "tojson: indent must be a number or a "
                            "string, not %s", llm_jv_type(v));
    }

    llm_jb_init(&b, j->rt, 0);

    llm_jtry(llm_jb_spaces(&b, v->u.i > 0 ? (size_t) v->u.i : 0, 0));
    llm_jtry(llm_jb_done(&b, &s));

    j->indent = s.u.s;

    return LLM_OK;
}


static int
llm_jjson_separators(llm_jjson_t *j, const llm_jv_t *v)
{
    llm_jlist_t  *l;

    if (llm_jv_given(v) && v->type != LLM_J_NONE) {
        l = v->u.list;

        if ((v->type != LLM_J_LIST && v->type != LLM_J_TUPLE) || l->n != 2
            || l->v[0].type != LLM_J_STR || l->v[1].type != LLM_J_STR)
        {
            return llm_jrt_fail(j->rt, "tojson: separators must be two "
                                "strings");
        }

        j->item_sep = l->v[0].u.s;
        j->key_sep = l->v[1].u.s;

        return LLM_OK;
    }

    j->item_sep = llm_js_wrap(&j->rt->arena, ", ", j->lines ? 1 : 2, 0);
    j->key_sep = llm_js_wrap(&j->rt->arena, ": ", 2, 0);

    if (j->item_sep == NULL || j->key_sep == NULL) {
        return llm_jrt_limit(j->rt, "out of memory");
    }

    return LLM_OK;
}


/* arguments: value; ensure_ascii, indent, separators, sort_keys */

int
llm_jfn_tojson(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jjson_t  j;

    memset(&j, 0, sizeof(j));
    j.rt = rt;
    j.ascii = llm_jv_truth(&args->v[1]);
    j.sort = llm_jv_truth(&args->v[4]);
    llm_jb_init(&j.b, rt, 0);

    llm_jtry(llm_jjson_indent(&j, &args->v[2]));
    llm_jtry(llm_jjson_separators(&j, &args->v[3]));
    llm_jtry(llm_jjson_value(&j, &args->v[0], 0));

    return llm_jb_done(&j.b, res);
}
