/*
 * Finds the tools of a request by name; see call.h.
 */

#include "engine/emit/call_internal.h"


int
llm_tools_init(llm_tools_t *t, const llm_flat_t *list)
{
    uint32_t           i;
    const llm_flat_t  *v, *f, *name, *strict;

    t->n = 0;
    t->tool = NULL;

    if (list == NULL || list->type != LLM_FLAT_ARRAY || list->count == 0) {
        return LLM_OK;
    }

    t->tool = malloc(list->count * sizeof(*t->tool));
    if (t->tool == NULL) {
        return LLM_ERROR;
    }

    i = 0;

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v), i++) {
        f = v->type == LLM_FLAT_OBJECT ? llm_flat_get(v, "function") : NULL;
        f = f && f->type == LLM_FLAT_OBJECT ? f : v;
        name = f->type == LLM_FLAT_OBJECT ? llm_flat_get(f, "name") : NULL;

        if (name && name->type == LLM_FLAT_STRING && name->count) {
            strict = llm_flat_get(f, "strict");

            t->tool[t->n].name = llm_flat_str(name);
            t->tool[t->n].index = i;
            t->tool[t->n].strict = strict && strict->type == LLM_FLAT_BOOL
                                   && llm_flat_int(strict);
            t->tool[t->n++].schema = llm_flat_get(f, "parameters");
        }
    }

    return LLM_OK;
}


void
llm_tools_free(llm_tools_t *t)
{
    free(t->tool);
    t->tool = NULL;
    t->n = 0;
}


const llm_tool_t *
llm_tools_find(const llm_tools_t *t, llm_str_t name)
{
    uint32_t  i;

    for (i = 0; i < t->n; i++) {
        if (llm_str_eq(t->tool[i].name, name)) {
            return &t->tool[i];
        }
    }

    return NULL;
}


/* namespaces that some models write before a name */

static const llm_str_t  llm_tools_spaces[] = {
    { 10, "functions." }, { 9, "function." }, { 6, "tools." }, { 5, "tool." },
    { 12, "default_api." }
};


size_t
llm_tools_space(const char *p, size_t n, int *part)
{
    size_t     i;
    llm_str_t  s;

    *part = n == 0;

    for (i = 0; i < llm_nelems(llm_tools_spaces) && n; i++) {
        s = llm_tools_spaces[i];

        if (memcmp(p, s.data, llm_min(n, s.len)) == 0) {
            if (n >= s.len) {
                return s.len;
            }

            *part = 1;
        }
    }

    return 0;
}


const llm_tool_t *
llm_tools_named(const llm_tools_t *t, llm_str_t name)
{
    int                part;
    size_t             n;
    const llm_tool_t  *tool;

    tool = llm_tools_find(t, name);

    /* Llama's own tools: search.call(query="x") */

    if (tool == NULL && name.len > 5
        && memcmp(name.data + name.len - 5, ".call", 5) == 0)
    {
        name.len -= 5;
        tool = llm_tools_find(t, name);
    }

    if (tool == NULL) {
        n = llm_tools_space(name.data, name.len, &part);
        tool = n ? llm_tools_find(t, (llm_str_t) { name.len - n,
                                                   name.data + n }) : NULL;
    }

    return tool;
}


int
llm_tools_begin(const llm_tools_t *t, const char *p, size_t n)
{
    uint32_t  i;

    for (i = 0; i < t->n; i++) {
        if (t->tool[i].name.len >= n
            && memcmp(t->tool[i].name.data, p, n) == 0)
        {
            return 1;
        }
    }

    return 0;
}
