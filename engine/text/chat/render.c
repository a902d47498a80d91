/*
 * Renders a template once, with the variables that transformers would give it;
 * see internal.h.
 */

#include "engine/text/chat/internal.h"

/* strings of the request that are trusted like the template's own text */
static const char *const  llm_chat_trusted_vars[] = {
    "bos_token", "eos_token", NULL
};

static const char *const  llm_chat_trusted_roles[] = {
    "system", "developer", "user", "assistant", "tool", "function", "model",
    "ipython", "observation", "document", "documents", "context",
    "tool_response", NULL
};


static void
llm_chat_add(llm_buf_t *b, const char *key, const llm_flat_t *v,
    uint32_t *count)
{
    llm_flat_add_str(b, key, strlen(key));
    (*count)++;

    if (v) {
        llm_flat_add_node(b, v);

    } else {
        llm_flat_add_null(b);
    }
}


static void
llm_chat_add_token(llm_buf_t *b, const char *key, const llm_flat_t *v,
    const char *own, uint32_t *count)
{
    if (v && v->type == LLM_FLAT_STRING) {
        llm_chat_add(b, key, v, count);
        return;
    }

    llm_flat_add_str(b, key, strlen(key));
    llm_flat_add_str(b, own, strlen(own));
    (*count)++;
}


/* may chat_template_kwargs set this variable?  Others are the server's */

static int
llm_chat_is_free(const llm_flat_t *key)
{
    static const char *const  taken[] = {
        "messages", "bos_token", "eos_token", "continue_final_message"
    };

    size_t  i;

    for (i = 0; i < llm_nelems(taken); i++) {
        if (llm_chat_is(key, taken[i])) {
            return 0;
        }
    }

    return 1;
}


static int
llm_chat_prompts(const llm_flat_t *request)
{
    const llm_flat_t  *v;

    v = llm_flat_get(request, "add_generation_prompt");

    if (v && v->type == LLM_FLAT_BOOL) {
        return llm_flat_int(v) != 0;
    }

    return !llm_chat_flag(request, "continue_final_message");
}


/* adds the messages, with the tools described in them */

static int
llm_chat_add_telling(const llm_flat_t *request, const llm_flat_t *tools,
    uint64_t what, const llm_chat_told_t *told, llm_buf_t *b, llm_err_t *err)
{
    int        rc;
    llm_buf_t  all;

    llm_buf_init(&all, 0);

    rc = llm_chat_tell_tools(llm_flat_get(request, "messages"), tools, &all,
                             err);

    if (rc == LLM_OK) {
        rc = llm_chat_normalise((const llm_flat_t *) all.data, what, told, b,
                                err);
    }

    llm_buf_free(&all);

    return rc;
}


int
llm_chat_vars(const llm_chat_t *c, const llm_flat_t *request, uint64_t what,
    const llm_chat_told_t *told, int64_t now, llm_buf_t *b, llm_err_t *err)
{
    size_t             handle;
    uint32_t           count;
    const llm_flat_t  *kwargs, *vars, *k, *v;

    count = 0;
    handle = llm_flat_open(b, LLM_FLAT_OBJECT);

    llm_flat_add_str(b, "messages", 8);
    count++;

    v = llm_flat_get(request, "tools");

    if ((what & LLM_CN_TELL_TOOLS) && v && v->type == LLM_FLAT_ARRAY
        && v->count)
    {
        if (llm_chat_add_telling(request, v, what, told, b, err) != LLM_OK) {
            return LLM_ERROR;
        }

        v = NULL;

    } else if (llm_chat_normalise(llm_flat_get(request, "messages"), what,
                                  told, b, err)
               != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_flat_add_str(b, "tools", 5);
    llm_chat_add_tools(v, what, b);
    count++;

    if (what & LLM_CN_FUNCTIONS) {
        count += llm_chat_add_functions(v, now, b);
    }

    llm_chat_add(b, "documents", llm_flat_get(request, "documents"), &count);

    llm_flat_add_str(b, "add_generation_prompt", 21);
    llm_flat_add_bool(b, llm_chat_prompts(request));
    count++;

    llm_chat_add_token(b, "bos_token", llm_flat_get(request, "bos_token"),
                       c->bos, &count);
    llm_chat_add_token(b, "eos_token", llm_flat_get(request, "eos_token"),
                       c->eos, &count);

    kwargs = llm_flat_get(request, "chat_template_kwargs");

    if (kwargs && kwargs->type == LLM_FLAT_OBJECT) {
        for (k = llm_flat_first(kwargs); k; k = llm_flat_next(kwargs, v)) {
            v = llm_flat_next(kwargs, k);

            if (llm_chat_is_free(k)) {
                llm_flat_add_node(b, k);
                llm_flat_add_node(b, v);
                count++;
            }
        }
    }

    llm_flat_close(b, handle, count);

    if (b->failed) {
        return llm_fail(err, "the request is too large for a chat template");
    }

    vars = (const llm_flat_t *) (b->data + handle);

    return llm_chat_keeps_media(llm_flat_get(request, "messages"),
                                llm_flat_get(vars, "messages"), err);
}


int
llm_chat_render_vars(const llm_chat_t *c, const llm_buf_t *vars,
    const llm_jinja_opts_t *opts, llm_prompt_t *out, llm_err_t *err)
{
    llm_jinja_opts_t   o;
    const llm_flat_t  *root;

    memset(&o, 0, sizeof(o));

    if (opts) {
        o = *opts;
    }

    o.trusted_roles = llm_chat_trusted_roles;

    root = (const llm_flat_t *) vars->data;

    if (llm_jinja_render(c->template, root, llm_chat_trusted_vars, &o, out,
                         err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_chat_note_media(llm_flat_get(root, "messages"), out, err)
        != LLM_OK)
    {
        llm_prompt_free(out);
        return LLM_ERROR;
    }

    return LLM_OK;
}


int
llm_chat_render_as(const llm_chat_t *c, const llm_flat_t *request,
    uint64_t what, const llm_jinja_opts_t *opts, llm_prompt_t *out,
    llm_err_t *err)
{
    int        rc;
    llm_buf_t  vars;

    llm_buf_init(&vars, 0);

    rc = llm_chat_vars(c, request, what, NULL, opts ? opts->now : 0, &vars,
                       err);

    if (rc == LLM_OK) {
        rc = llm_chat_render_vars(c, &vars, opts, out, err);
    }

    llm_buf_free(&vars);

    return rc;
}
