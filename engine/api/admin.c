/*
 * Requests to llm_admin: their paths and bodies; see admin.h.
 */

#include "engine/api/admin.h"
#include "engine/api/json.h"

#include <stdio.h>


static const struct {
    const char        *word;
    const char        *methods;
} llm_admin_all[] = {
    [LLM_ADMIN_LIST_MODELS] = { "models", "GET, HEAD" },
    [LLM_ADMIN_MODEL] = { "model", "GET, HEAD, PUT, DELETE" },
    [LLM_ADMIN_LOAD] = { "load", "POST" },
    [LLM_ADMIN_UNLOAD] = { "unload", "POST" },
    [LLM_ADMIN_DRAIN] = { "drain", "POST" },
    [LLM_ADMIN_RESUME] = { "resume", "POST" },
    [LLM_ADMIN_LIST_ALIASES] = { "aliases", "GET, HEAD" },
    [LLM_ADMIN_ALIAS] = { "alias", "GET, HEAD, PUT, DELETE" },
    [LLM_ADMIN_USAGE] = { "usage", "GET, HEAD" }
};


const char *
llm_admin_methods(llm_admin_what_t what)
{
    return llm_admin_all[what].methods;
}


const char *
llm_admin_word(llm_admin_what_t what)
{
    return llm_admin_all[what].word;
}


/* ---- paths ---- */

/* *rest: what follows "NAME/"; returns 0 if the path is not below "NAME/" */

static int
llm_admin_starts(llm_str_t path, const char *name, llm_str_t *rest)
{
    size_t  len;

    len = strlen(name);

    if (path.len <= len + 1 || memcmp(path.data, name, len) != 0
        || path.data[len] != '/')
    {
        return 0;
    }

    rest->data = path.data + len + 1;
    rest->len = path.len - len - 1;

    return 1;
}


/* a model's name may have slashes itself */

static void
llm_admin_route_model(llm_admin_route_t *to)
{
    llm_str_t         last;
    const char       *slash;
    llm_admin_what_t  what;

    to->what = LLM_ADMIN_MODEL;

    slash = memrchr(to->whole.data, '/', to->whole.len);

    if (slash == NULL || slash == to->whole.data) {
        return;
    }

    last.data = slash + 1;
    last.len = (size_t) (to->whole.data + to->whole.len - last.data);

    for (what = LLM_ADMIN_LOAD; what <= LLM_ADMIN_RESUME; what++) {
        if (llm_str_is(last, llm_admin_all[what].word)) {
            to->what = what;
            to->name.len = (size_t) (slash - to->whole.data);
        }
    }
}


int
llm_admin_route(llm_str_t path, llm_admin_route_t *to)
{
    memset(to, 0, sizeof(llm_admin_route_t));

    if (llm_str_is(path, "models")) {
        to->what = LLM_ADMIN_LIST_MODELS;

    } else if (llm_str_is(path, "aliases")) {
        to->what = LLM_ADMIN_LIST_ALIASES;

    } else if (llm_str_is(path, "usage")) {
        to->what = LLM_ADMIN_USAGE;

    } else if (llm_admin_starts(path, "aliases", &to->name)) {
        to->what = LLM_ADMIN_ALIAS;
        to->whole = to->name;

    } else if (llm_admin_starts(path, "models", &to->name)) {
        to->whole = to->name;
        llm_admin_route_model(to);

    } else {
        return LLM_ERROR;
    }

    return LLM_OK;
}


int
llm_admin_route_router(llm_admin_route_t *to)
{
    llm_admin_what_t  what;

    if (to->what != LLM_ADMIN_MODEL) {
        return 0;
    }

    for (what = LLM_ADMIN_LOAD; what <= LLM_ADMIN_UNLOAD; what++) {
        if (llm_str_is(to->whole, llm_admin_all[what].word)) {
            to->what = what;
            to->name.len = 0;
            return 1;
        }
    }

    return 0;
}


/* ---- bodies ---- */

static int
llm_admin_is_blank(const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (strchr(" \t\r\n", text[i]) == NULL || text[i] == '\0') {
            return 0;
        }
    }

    return 1;
}


/* an unknown member is refused: otherwise it would be ignored silently */

static int
llm_admin_read_member(llm_admin_body_t *b, llm_str_t key,
    const llm_flat_t *v, const char *name, llm_err_t *err)
{
    char  shown[LLM_ADMIN_NAME];

    if (name == NULL || !llm_str_is(key, name)) {
        (void) llm_clean(shown, sizeof(shown), key.data,
                         llm_min(key.len, (size_t) 64));
        return llm_fail_with(err, 400, "unknown_parameter", shown,
                             name ? "There is no '%s' here, only '%s'."
                                  : "There is no '%s' here: no body is "
                                    "needed.", shown, name);
    }

    b->given = 1;
    b->null = v->type == LLM_FLAT_NULL;

    if (b->null) {
        return LLM_OK;
    }

    if (v->type != LLM_FLAT_STRING) {
        return llm_fail_with(err, 400, "invalid_type", name,
                             "'%s' must be a string.", name);
    }

    b->value = llm_flat_str(v);

    if (b->value.len == 0) {
        return llm_fail_with(err, 400, "invalid_value", name,
                             "'%s' must not be empty.", name);
    }

    return LLM_OK;
}


int
llm_admin_read_body(llm_admin_body_t *b, const char *text, size_t len,
    const char *name, llm_err_t *err)
{
    size_t              mark;
    llm_str_t           key;
    const llm_flat_t   *root, *k, *v;
    llm_json_limits_t   limits = { 4, 64, 0 };

    memset(b, 0, sizeof(llm_admin_body_t));
    llm_buf_init(&b->flat, 0);

    /* as in requests to llm_api, except that names are never mended */

    mark = llm_json_mark(text, len);
    text += mark;
    len -= mark;

    if (llm_admin_is_blank(text, len)) {
        return LLM_OK;
    }

    if (llm_json_to_flat(text, len, &limits, &b->flat, err) != LLM_OK) {
        return LLM_ERROR;
    }

    root = (const llm_flat_t *) b->flat.data;

    if (root->type != LLM_FLAT_OBJECT) {
        return llm_fail_with(err, 400, "invalid_type", NULL,
                             "The body must be a JSON object.");
    }

    for (k = llm_flat_first(root); k; k = llm_flat_next(root, v)) {
        v = llm_flat_next(root, k);
        key = llm_flat_str(k);

        if (llm_admin_read_member(b, key, v, name, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
