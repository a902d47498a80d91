/*
 * Default members for the requests of a location (llm_defaults).  They are
 * added to the body before it is read, so they mean and cost the same as if
 * the client had sent them.
 */

#include "engine/api/preset.h"


/* members that mean the same, or exclude each other: a request that has one of
   them gets none of the others */
static const char *const  llm_preset_alike[][10] = {
    { "max_tokens", "max_completion_tokens", "max_output_tokens",
      "n_predict" },
    { "response_format", "structured_outputs", "json_schema", "guided_json",
      "guided_choice", "guided_regex", "guided_grammar", "grammar", "text",
      "output_config" },
    { "response_format", "output_format" },
    { "reasoning_effort", "reasoning", "enable_thinking", "thinking" },
    { "thinking_budget", "reasoning_budget", "thinking_budget_tokens",
      "thinking_token_budget" },
    { "stop", "stop_sequences" },
    { "tools", "functions" },
    { "tool_choice", "function_call" },
    { "normalize", "embd_normalize" },
    { "user", "safety_identifier" },
#define LLM_ALIAS(name, of, type, least, most)  { #name, #of },
#define LLM_PARAM(name, type, otherwise, least, most)
#include "engine/base/sampling.def"
};


/* has the request this member, with a value other than null? */

static int
llm_preset_has(const llm_flat_t *root, const char *name)
{
    return llm_api_member(root, name) != NULL;
}


/* has the request this member, or one that stands for it?  name is
   NUL-terminated */

static int
llm_preset_is_named(const llm_flat_t *root, const char *name)
{
    int          in;
    size_t       i, k;
    const char  *const *set;

    if (llm_preset_has(root, name)) {
        return 1;
    }

    for (i = 0; i < llm_nelems(llm_preset_alike); i++) {
        set = llm_preset_alike[i];
        in = 0;

        for (k = 0; k < llm_nelems(llm_preset_alike[0]) && set[k]; k++) {
            in |= strcmp(set[k], name) == 0;
        }

        for (k = 0; in && k < llm_nelems(llm_preset_alike[0]) && set[k]; k++) {
            if (llm_preset_has(root, set[k])) {
                return 1;
            }
        }
    }

    return 0;
}


/* options of a stream have no effect without a stream */

static int
llm_preset_is_idle(const llm_flat_t *root, const llm_flat_t *preset,
    const char *name)
{
    const llm_flat_t  *v;

    if (strcmp(name, "stream_options") != 0) {
        return 0;
    }

    v = llm_api_member(root, "stream");
    v = v ? v : llm_api_member(preset, "stream");

    return v == NULL || v->type != LLM_FLAT_BOOL || llm_flat_int(v) == 0;
}


/* flat holds an object and nothing else, so pairs can be added at its end */

void
llm_api_preset_merge(const llm_flat_t *preset, uint64_t mask, llm_buf_t *flat)
{
    char               name[64];
    uint32_t           i, n;
    uint64_t           wanted;
    llm_str_t          s;
    const llm_flat_t  *key, *v, *root;

    wanted = 0;
    root = (const llm_flat_t *) flat->data;
    n = root->count;

    for (key = llm_flat_first(preset), i = 0;
         key;
         key = llm_flat_next(preset, v), i++)
    {
        v = llm_flat_next(preset, key);
        s = llm_flat_str(key);

        if (s.len >= sizeof(name)) {
            continue;
        }

        memcpy(name, s.data, s.len);
        name[s.len] = '\0';

        if ((mask & (uint64_t) 1 << i) && !llm_preset_is_named(root, name)
            && !llm_preset_is_idle(root, preset, name))
        {
            wanted |= (uint64_t) 1 << i;
            n++;
        }
    }

    for (key = llm_flat_first(preset), i = 0;
         key;
         key = llm_flat_next(preset, v), i++)
    {
        v = llm_flat_next(preset, key);

        if (wanted & (uint64_t) 1 << i) {
            llm_flat_add_node(flat, key);
            llm_flat_add_node(flat, v);
        }
    }

    llm_flat_close(flat, 0, n);
}


void
llm_api_preset_apply(const llm_api_preset_t *p, const llm_api_endpoint_t *ep,
    llm_buf_t *flat)
{
    uint32_t  i;

    for (i = 0; i < p->n_endpoints; i++) {
        if (p->endpoints[i].endpoint == ep) {
            llm_api_preset_merge((const llm_flat_t *) p->flat.data,
                                 p->endpoints[i].mask, flat);
            return;
        }
    }
}


void
llm_api_preset_free(llm_api_preset_t *p)
{
    if (p) {
        llm_buf_free(&p->flat);
        free(p);
    }
}
