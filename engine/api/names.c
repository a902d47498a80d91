/*
 * Finds models by the names that clients send.
 */

#include "engine/api/api_internal.h"

/* fewest characters of a part that may stand for a whole name: a shorter part
   is more likely a mistake */
#define LLM_API_MIN_PART  3


static int
llm_api_lower(int c)
{
    return (c >= 'A' && c <= 'Z') ? c + 32 : c;
}


/* does part occur in s at an offset of at most last, ignoring case? */

static int
llm_api_finds(llm_str_t s, llm_str_t part, size_t last)
{
    size_t  i, j;

    for (i = 0; i <= last; i++) {
        for (j = 0; j < part.len; j++) {
            if (llm_api_lower(s.data[i + j]) != llm_api_lower(part.data[j])) {
                break;
            }
        }

        if (j == part.len) {
            return 1;
        }
    }

    return 0;
}


/* ways to compare names, the strictest first */

typedef enum {
    BY_NAME,
    BY_ALIAS,
    BY_CASE,
    BY_PART
} llm_api_match_t;


static int
llm_api_match_one(llm_str_t known, llm_str_t name, llm_api_match_t how)
{
    if (how == BY_NAME || how == BY_ALIAS) {
        return llm_str_eq(known, name);
    }

    if (how == BY_CASE) {
        return known.len == name.len && llm_api_finds(known, name, 0);
    }

    return name.len >= LLM_API_MIN_PART && known.len >= name.len
           && llm_api_finds(known, name, known.len - name.len);
}


static int
llm_api_match(const llm_api_model_t *m, llm_str_t name, llm_api_match_t how)
{
    uint32_t  i;

    if (how != BY_ALIAS && llm_api_match_one(m->name, name, how)) {
        return 1;
    }

    if (how == BY_NAME) {
        return 0;
    }

    for (i = 0; i < m->n_aliases; i++) {
        if (llm_api_match_one(m->aliases[i], name, how)) {
            return 1;
        }
    }

    return 0;
}


int
llm_api_allowed(const llm_api_conf_t *conf, uint32_t i)
{
    return ((conf->allowed >> i) & 1) && conf->models[i].name.len;
}


int
llm_api_is_gone(const llm_api_conf_t *conf, uint32_t i)
{
    int64_t  end;

    end = conf->models[i].sunset_time;

    return end && conf->now >= end;
}


/* the model marked as default, or the only one; -1: none */

static int32_t
llm_api_default_model(const llm_api_conf_t *conf)
{
    int32_t   only;
    uint32_t  i, n;

    only = -1;
    n = 0;

    for (i = 0; i < conf->n_models; i++) {
        if (!llm_api_allowed(conf, i)) {
            continue;
        }

        if (conf->models[i].is_default) {
            return (int32_t) i;
        }

        if (!llm_api_is_gone(conf, i)) {
            only = (int32_t) i;
            n++;
        }
    }

    return n == 1 ? only : -1;
}


/* the model that matches the name in this way; -1: none, or the name is a part
   of several */

static int32_t
llm_api_find_one(const llm_api_conf_t *conf, llm_str_t name,
    llm_api_match_t how)
{
    int32_t   found;
    uint32_t  i, n;

    found = -1;
    n = 0;

    for (i = 0; i < conf->n_models; i++) {
        if (llm_api_allowed(conf, i)
            && llm_api_match(&conf->models[i], name, how))
        {
            found = (found < 0) ? (int32_t) i : found;
            n++;
        }
    }

    return n > 1 && how == BY_PART ? -1 : found;
}


int32_t
llm_api_alias_model(const llm_api_conf_t *conf, uint32_t i)
{
    int32_t    found;
    llm_str_t  value;

    value = conf->aliases[i].value;
    found = llm_api_find_one(conf, value, BY_NAME);

    return found >= 0 ? found : llm_api_find_one(conf, value, BY_ALIAS);
}


int32_t
llm_api_alias_index(const llm_api_conf_t *conf, llm_str_t name)
{
    uint32_t  i;

    for (i = 0; i < conf->n_aliases; i++) {
        if (conf->aliases[i].name.data == name.data) {
            return (int32_t) i;
        }
    }

    return -1;
}


/* the matching one of conf->aliases, or NULL */

static const llm_api_alias_t *
llm_api_find_alias(const llm_api_conf_t *conf, llm_str_t name,
    llm_api_match_t how)
{
    uint32_t                i;
    const llm_api_alias_t  *a;

    for (i = 0; i < conf->n_aliases; i++) {
        a = &conf->aliases[i];

        if (a->value.len && llm_api_match_one(a->name, name, how)) {
            return a;
        }
    }

    return NULL;
}


/* stores in *conf->alias which of the model's aliases the name is, unless it
   is the model's name */

static void
llm_api_say_alias(const llm_api_conf_t *conf, int32_t model, llm_str_t name,
    llm_api_match_t how)
{
    uint32_t                i;
    const llm_api_model_t  *m;

    m = &conf->models[model];

    if (conf->alias == NULL || how == BY_PART
        || llm_api_match_one(m->name, name, how))
    {
        return;
    }

    for (i = 0; i < m->n_aliases; i++) {
        if (llm_api_match_one(m->aliases[i], name, how)) {
            *conf->alias = m->aliases[i];
            return;
        }
    }
}


/* the model of a name that is not empty, and the one of conf->aliases that it
   was found by, if any; -1 and NULL: there is no such model, -1 and an alias:
   its value is no model */

static int32_t
llm_api_find_named(const llm_api_conf_t *conf, llm_str_t name,
    const llm_api_alias_t **alias)
{
    int32_t          found;
    llm_api_match_t  how;

    for (how = BY_NAME; how <= BY_PART; how++) {
        found = llm_api_find_one(conf, name, how);

        if (found >= 0) {
            llm_api_say_alias(conf, found, name, how);
            return found;
        }

        if (how == BY_ALIAS || how == BY_CASE) {
            *alias = llm_api_find_alias(conf, name, how);
        }

        if (*alias) {
            if (conf->alias) {
                *conf->alias = (*alias)->name;
            }

            return llm_api_alias_model(conf, (uint32_t)
                                             (*alias - conf->aliases));
        }
    }

    return -1;
}


/* Ollama's clients write a name without a tag as "NAME:latest" */

static int32_t
llm_api_find_name(const llm_api_conf_t *conf, llm_str_t name,
    const llm_api_alias_t **alias)
{
    size_t   len;
    int32_t  found;

    static const char  tag[] = ":latest";

    found = llm_api_find_named(conf, name, alias);
    len = sizeof(tag) - 1;

    if (found < 0 && *alias == NULL && name.len > len
        && memcmp(name.data + name.len - len, tag, len) == 0)
    {
        name.len -= len;
        found = llm_api_find_named(conf, name, alias);
    }

    return found >= 0 || *alias ? found : conf->fallback;
}


static int32_t
llm_api_find_model(const llm_api_conf_t *conf, llm_str_t name,
    const llm_api_alias_t **alias, llm_err_t *err)
{
    int32_t  found;

    if (name.len == 0) {
        found = llm_api_default_model(conf);

        if (found >= 0 || conf->fallback >= 0) {
            return found >= 0 ? found : conf->fallback;
        }

        (void) llm_fail_with(err, 404, "model_not_found", "model",
                             "You must name a model: none is the default "
                             "here.");
        return -1;
    }

    found = llm_api_find_name(conf, name, alias);

    if (found >= 0) {
        return found;
    }

    if (*alias) {
        (void) llm_fail_with(err, 404, "model_not_found", "model",
                             "The alias '%.*s' leads to '%.*s', which is not "
                             "a model here.",
                             (int) llm_min((*alias)->name.len, 128),
                             (*alias)->name.data,
                             (int) llm_min((*alias)->value.len, 128),
                             (*alias)->value.data);
        return -1;
    }

    (void) llm_fail_with(err, 404, "model_not_found", "model",
                         "The model '%.*s' does not exist or you do not have "
                         "access to it.", (int) llm_min(name.len, 128),
                         name.data);

    return -1;
}


static int32_t
llm_api_gone(const llm_api_model_t *m, llm_err_t *err)
{
    llm_str_t  next;

    next = m->successor;

    (void) llm_fail_with(err, 404, "model_not_found", "model",
                         "The model '%.*s' is not served since %.*s.%s%.*s%s",
                         (int) llm_min(m->name.len, 128), m->name.data,
                         (int) llm_min(m->sunset.len, 32), m->sunset.data,
                         next.len ? " Use '" : "",
                         (int) llm_min(next.len, 128), next.data,
                         next.len ? "'." : "");
    return -1;
}


int32_t
llm_api_resolve(const llm_api_conf_t *conf, llm_str_t name, llm_err_t *err)
{
    int32_t                 i;
    llm_str_t               found;
    const llm_api_alias_t  *alias;

    alias = NULL;
    i = llm_api_find_model(conf, name, &alias, err);

    if (i < 0) {
        return -1;
    }

    if (!((conf->denied >> i) & 1) || (alias && alias->granted)) {
        return llm_api_is_gone(conf, (uint32_t) i)
               ? llm_api_gone(&conf->models[i], err) : i;
    }

    found = name.len ? name : conf->models[i].name;

    (void) llm_fail_with(err, 403, "model_not_allowed", "model",
                         "Your API key may not use the model '%.*s'.",
                         (int) llm_min(found.len, 128), found.data);

    return -1;
}


uint64_t
llm_api_denied(const llm_key_t *k, const llm_api_model_t *models,
    uint32_t n_models)
{
    int                     good;
    uint32_t                i, j;
    uint64_t                denied;
    const llm_api_model_t  *m;

    denied = 0;

    for (i = 0; !k->any_model && i < n_models; i++) {
        m = &models[i];
        good = llm_key_names_model(k, m->name);

        for (j = 0; !good && j < m->n_aliases; j++) {
            good = llm_key_names_model(k, m->aliases[j]);
        }

        denied |= (uint64_t) !good << i;
    }

    return denied;
}
