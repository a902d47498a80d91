/*
 * POST /api/chat and /api/generate, Ollama's.  Both become a chat request; a
 * text that is "raw" or has a suffix becomes a completion.  Without messages or
 * a prompt nothing is generated: so a client has the model loaded, which is
 * done by asking the engine for the model's description.
 */

#include "engine/api/ollama.h"

#define AT(f)               offsetof(llm_api_ollama_t, f)


static const llm_api_field_t  llm_api_ollama_chat_rows[] = {
    { "format", LLM_FIELD_ANY, AT(format), 0, 0 },
    { "keep_alive", LLM_FIELD_ANY, AT(keep_alive), 0, 0 },
    { "logprobs", LLM_FIELD_BOOL, AT(logprobs), 0, 0 },
    { "messages", LLM_FIELD_ARRAY, AT(messages), 0, 0 },
    { "model", LLM_FIELD_STRING, AT(model), 0, 0 },
    { "options", LLM_FIELD_OBJECT, AT(options), 0, 0 },
    { "stream", LLM_FIELD_BOOL, AT(stream), 0, 0 },
    { "template", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "think", LLM_FIELD_ANY, AT(think), 0, 0 },
    { "tools", LLM_FIELD_ARRAY, AT(tools), 0, 0 },
    { "top_logprobs", LLM_FIELD_INT, AT(top_logprobs), 0, 20 },
};

static const llm_api_fields_t  llm_api_ollama_chat_fields = {
    llm_api_ollama_chat_rows, llm_nelems(llm_api_ollama_chat_rows)
};

static const llm_api_field_t  llm_api_ollama_generate_rows[] = {
    { "context", LLM_FIELD_ARRAY, AT(context), 0, 0 },
    { "format", LLM_FIELD_ANY, AT(format), 0, 0 },
    { "images", LLM_FIELD_ARRAY, AT(images), 0, 0 },
    { "keep_alive", LLM_FIELD_ANY, AT(keep_alive), 0, 0 },
    { "logprobs", LLM_FIELD_BOOL, AT(logprobs), 0, 0 },
    { "messages", LLM_FIELD_ANY, LLM_FIELD_NOWHERE, 0, 0 },
    { "model", LLM_FIELD_STRING, AT(model), 0, 0 },
    { "options", LLM_FIELD_OBJECT, AT(options), 0, 0 },
    { "prompt", LLM_FIELD_STRING, AT(prompt), 0, 0 },
    { "raw", LLM_FIELD_BOOL, AT(raw), 0, 0 },
    { "stream", LLM_FIELD_BOOL, AT(stream), 0, 0 },
    { "suffix", LLM_FIELD_STRING, AT(suffix), 0, 0 },
    { "system", LLM_FIELD_STRING, AT(system), 0, 0 },
    { "template", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "think", LLM_FIELD_ANY, AT(think), 0, 0 },
    { "top_logprobs", LLM_FIELD_INT, AT(top_logprobs), 0, 20 },
};

static const llm_api_fields_t  llm_api_ollama_generate_fields = {
    llm_api_ollama_generate_rows, llm_nelems(llm_api_ollama_generate_rows)
};


const llm_api_name_t  llm_api_ollama_names[] = {
    { "response_format.json_schema.schema", "format" },
    { "response_format", "format" },
    { "reasoning_effort", "think" },
    { "max_completion_tokens", "options.num_predict" },
    { "max_tokens", "options.num_predict" },
    { NULL, NULL }
};


/* ---- the readers ---- */

/* a request that only has the model loaded; or unloaded, which `idle=` decides
   here: such a request does not count as a use of the model */

static int
llm_api_ollama_load(llm_api_reader_t *rd, const llm_api_ollama_t *b,
    llm_err_t *err)
{
    int32_t  i;

    if (llm_api_ollama_keep_alive(b->keep_alive, err) != LLM_OK) {
        return LLM_ERROR;
    }

    i = llm_api_resolve(rd->conf, b->model, err);
    if (i < 0) {
        return LLM_ERROR;
    }

    rd->r.task = LLM_TASK_PROPS;
    rd->r.kind = LLM_KIND_NONE;
    rd->r.model = (uint32_t) i;
    rd->r.naming = rd->conf->models[i].naming;
    rd->r.sampling.n_logprobs = -1;
    rd->n_choices = 1;
    rd->options |= LLM_API_OL_LOAD;

    if (llm_api_ollama_is_zero(b->keep_alive)) {
        rd->options |= LLM_API_OL_UNLOAD;
        rd->r.flags |= LLM_REQ_PROBE;
    }

    llm_api_ollama_head(rd);

    return LLM_OK;
}


static int
llm_api_ollama_chat_draft(llm_api_reader_t *rd, void *body,
    llm_api_draft_t *d, llm_err_t *err)
{
    const llm_api_ollama_t *b = body;

    (void) rd;

    if (llm_api_ollama_messages(b, d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_draft_node(d, "tools", b->tools);

    return llm_api_ollama_options(b, d, err);
}


static int
llm_api_ollama_chat_read(llm_api_reader_t *rd, llm_err_t *err)
{
    const llm_flat_t  *v;
    llm_api_ollama_t   b;

    memset(&b, 0, sizeof(llm_api_ollama_t));
    b.stream = 1;
    rd->options = LLM_API_OL_CHAT;
    v = llm_api_member(rd->root, "messages");

    if (v == NULL || (v->type == LLM_FLAT_ARRAY && v->count == 0)) {
        return llm_api_read_fields(rd, &b, err) == LLM_OK
               ? llm_api_ollama_load(rd, &b, err) : LLM_ERROR;
    }

    if (llm_api_draft_message(rd, &b, llm_api_ollama_chat_draft, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_api_ollama_head(rd);

    return LLM_OK;
}


/* the text as it is, or the texts around a gap: a completion, whose reader has
   another bound of the log probabilities */

static int
llm_api_ollama_raw(const llm_api_reader_t *rd, const llm_api_ollama_t *b,
    llm_api_draft_t *d, llm_err_t *err)
{
    llm_api_ollama_t  plain;

    if (b->images && b->images->count) {
        return llm_api_unsupported(err, llm_api_top("images"),
                                   rd->takes & LLM_MEDIUM_IMAGE
                                   ? "not together with 'raw' or 'suffix'"
                                   : "this model takes text only");
    }

    if (b->context && b->context->count) {
        return llm_api_unsupported(err, llm_api_top("context"),
                                   "not together with 'raw' or 'suffix'");
    }

    d->as = &llm_api_completions;
    llm_api_draft_string(d, "prompt", b->prompt);

    if (b->suffix.len) {
        llm_api_draft_string(d, "suffix", b->suffix);
    }

    plain = *b;
    plain.logprobs = 0;
    plain.think = NULL;

    return llm_api_ollama_options(&plain, d, err);
}


static int
llm_api_ollama_generate_draft(llm_api_reader_t *rd, void *body,
    llm_api_draft_t *d, llm_err_t *err)
{
    const llm_api_ollama_t *b = body;

    if (b->raw || b->suffix.len) {
        return llm_api_ollama_raw(rd, b, d, err);
    }

    return llm_api_ollama_recall(rd, b, d, err) == LLM_OK
           ? llm_api_ollama_options(b, d, err) : LLM_ERROR;
}


/* makes a completion's defaults those of a generated text */

static void
llm_api_ollama_unbound(llm_api_reader_t *rd, const llm_api_ollama_t *b)
{
    const llm_flat_t  *v;

    v = llm_api_member(b->options, "num_predict");

    if (v == NULL && llm_api_member(rd->root, "max_tokens") == NULL
        && rd->conf->models[rd->r.model].max_tokens == -1)
    {
        rd->r.max_tokens = rd->conf->cap;
    }

    rd->head.len = 0;
    rd->r.sampling.n_logprobs = b->logprobs ? (int32_t) b->top_logprobs : -1;
}


static int
llm_api_ollama_generate_read(llm_api_reader_t *rd, llm_err_t *err)
{
    const llm_flat_t  *v;
    llm_api_ollama_t   b;

    memset(&b, 0, sizeof(llm_api_ollama_t));
    b.stream = 1;
    v = llm_api_member(rd->root, "prompt");

    if (v == NULL || (v->type == LLM_FLAT_STRING && v->count == 0)) {
        if (llm_api_read_fields(rd, &b, err) != LLM_OK) {
            return LLM_ERROR;
        }

        if (b.suffix.len == 0) {
            return llm_api_ollama_load(rd, &b, err);
        }
    }

    if (llm_api_draft_message(rd, &b, llm_api_ollama_generate_draft, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (b.raw || b.suffix.len) {
        llm_api_ollama_unbound(rd, &b);

    } else {
        rd->options |= LLM_API_OL_CONTEXT;
    }

    llm_api_ollama_head(rd);

    return LLM_OK;
}


const llm_api_endpoint_t  llm_api_ollama_chat = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_ollama_chat_fields,
    .shared = &llm_api_draft_fields,
    .names = llm_api_ollama_names,
    .read = llm_api_ollama_chat_read,
    .event = llm_api_ollama_event,
    .body = llm_api_ollama_body,
    .keep = llm_api_ollama_keep,
    .error = llm_api_ollama_error,
    .fail = llm_api_ollama_fail,
    .stream_type = LLM_API_NDJSON,
    .heartbeat = llm_api_ollama_heartbeat
};

const llm_api_endpoint_t  llm_api_ollama_generate = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_ollama_generate_fields,
    .shared = &llm_api_draft_fields,
    .names = llm_api_ollama_names,
    .read = llm_api_ollama_generate_read,
    .event = llm_api_ollama_event,
    .body = llm_api_ollama_body,
    .keep = llm_api_ollama_keep,
    .error = llm_api_ollama_error,
    .fail = llm_api_ollama_fail,
    .stream_type = LLM_API_NDJSON,
    .heartbeat = llm_api_ollama_heartbeat
};
