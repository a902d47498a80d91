/*
 * Describes a model as a flat object, for GET /tokenizer_info and /props.
 */

#include "engine/prepare/prepare.h"
#include "engine/base/version.h"

#include <stdio.h>


static void
llm_describe_key(llm_buf_t *out, const char *key, uint32_t *n)
{
    llm_flat_add_str(out, key, strlen(key));
    (*n)++;
}


static void
llm_describe_text(llm_buf_t *out, const char *key, const char *s,
    uint32_t *n)
{
    llm_describe_key(out, key, n);
    llm_flat_add_str(out, s, strlen(s));
}


static void
llm_describe_bool(llm_buf_t *out, const char *key, int v, uint32_t *n)
{
    llm_describe_key(out, key, n);
    llm_flat_add_bool(out, v);
}


static void
llm_describe_int(llm_buf_t *out, const char *key, int64_t v, uint32_t *n)
{
    llm_describe_key(out, key, n);
    llm_flat_add_int(out, v);
}


static void
llm_describe_template(const llm_prep_env_t *env, llm_buf_t *out, uint32_t *n)
{
    llm_describe_key(out, "chat_template", n);

    if (env->chat) {
        llm_flat_add_str(out, env->template.data, env->template.len);

    } else {
        llm_flat_add_null(out);
    }
}


/* "NAME": the token's text, "NAME_id": its id; null if there is none */

static void
llm_describe_token(const llm_prep_env_t *env, llm_buf_t *out, const char *name,
    const char *name_id, int32_t id, uint32_t *n)
{
    llm_str_t  s;

    llm_describe_key(out, name, n);

    if (id < 0) {
        llm_flat_add_null(out);
        llm_describe_key(out, name_id, n);
        llm_flat_add_null(out);
        return;
    }

    s = llm_vocab_bytes(env->vocab, id);

    llm_flat_add_str(out, s.data, s.len);
    llm_describe_key(out, name_id, n);
    llm_flat_add_int(out, id);
}


/* the texts of all control tokens */

static void
llm_describe_special(const llm_prep_env_t *env, llm_buf_t *out)
{
    size_t     handle;
    int32_t    id;
    uint32_t   n;
    llm_str_t  s;

    n = 0;
    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (id = 0; id < (int32_t) llm_vocab_size(env->vocab); id++) {
        if (llm_vocab_type(env->vocab, id) == LLM_TOKEN_CONTROL) {
            s = llm_vocab_bytes(env->vocab, id);
            llm_flat_add_str(out, s.data, s.len);
            n++;
        }
    }

    llm_flat_close(out, handle, n);
}


/* the members are named as in transformers */

void
llm_describe_tokenizer(const llm_prep_env_t *env, llm_buf_t *out)
{
    size_t              handle;
    uint32_t            n;
    const llm_vocab_t  *v;

    n = 0;
    v = env->vocab;
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    llm_describe_text(out, "tokenizer_class", llm_vocab_kind(v), &n);
    llm_describe_template(env, out, &n);

    llm_describe_token(env, out, "bos_token", "bos_token_id", llm_vocab_bos(v),
                       &n);
    llm_describe_token(env, out, "eos_token", "eos_token_id", llm_vocab_eos(v),
                       &n);
    llm_describe_token(env, out, "pad_token", "pad_token_id", llm_vocab_pad(v),
                       &n);
    llm_describe_token(env, out, "unk_token", "unk_token_id", llm_vocab_unk(v),
                       &n);

    llm_describe_bool(out, "add_bos_token", llm_vocab_add_bos(v), &n);
    llm_describe_bool(out, "add_eos_token", llm_vocab_add_eos(v), &n);
    llm_describe_int(out, "model_max_length", env->runner->ctx, &n);
    llm_describe_int(out, "vocab_size", llm_vocab_size(v), &n);
    llm_describe_key(out, "additional_special_tokens", &n);
    llm_describe_special(env, out);

    llm_flat_close(out, handle, n);
}


/* a float in decimal as it was probably written, without digits beyond its
   precision */

static void
llm_describe_number(llm_buf_t *out, const char *key, float v, uint32_t *n)
{
    char  text[32];

    (void) snprintf(text, sizeof(text), "%.6g", v);
    llm_describe_key(out, key, n);
    llm_flat_add_double(out, strtod(text, NULL));
}


/* the sampling parameters of requests that set none, also by their aliases */

static void
llm_describe_sampling(const llm_sampling_t *s, llm_buf_t *out)
{
    size_t    handle;
    uint32_t  n;

    n = 0;
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

#define LLM_DESCRIBE_NUMBER  llm_describe_number
#define LLM_DESCRIBE_ABOVE   llm_describe_number
#define LLM_DESCRIBE_INT     llm_describe_int

#define LLM_PARAM(name, type, otherwise, least, most)                        \
    LLM_DESCRIBE_##type(out, #name, s->name, &n);
#define LLM_ALIAS(name, of, type, least, most)                               \
    LLM_DESCRIBE_##type(out, #name, s->of, &n);
#include "engine/base/sampling.def"

    llm_flat_close(out, handle, n);
}


/* "model_info": the sizes of a model, named as in a GGUF file */

static void
llm_describe_sizes(const llm_hparams_t *hp, llm_buf_t *out, uint32_t *n)
{
    size_t    i, handle;
    char      key[64];
    uint32_t  k;

    struct {
        const char  *name;
        uint64_t     value;
    } sizes[] = {
        { "context_length", hp->n_ctx_train },
        { "embedding_length", hp->n_embd },
        { "block_count", hp->n_layers },
        { "feed_forward_length", hp->n_ff },
        { "attention.head_count", hp->n_heads },
        { "attention.head_count_kv", hp->n_kv_heads },
        { "expert_count", hp->n_experts },
        { "vocab_size", hp->n_vocab }
    };

    k = 0;
    llm_describe_key(out, "model_info", n);
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_describe_text(out, "general.architecture", hp->arch, &k);
    llm_describe_text(out, "general.basename", hp->name, &k);
    llm_describe_int(out, "general.parameter_count", (int64_t) hp->n_params,
                     &k);

    for (i = 0; i < llm_nelems(sizes); i++) {
        if (sizes[i].value) {
            (void) snprintf(key, sizeof(key), "%s.%s", hp->arch,
                            sizes[i].name);
            llm_describe_int(out, key, (int64_t) sizes[i].value, &k);
        }
    }

    llm_flat_close(out, handle, k);
}


/* "capabilities", in Ollama's words */

static void
llm_describe_abilities(const llm_prep_env_t *env, llm_buf_t *out,
    uint32_t *n)
{
    size_t               i, handle;
    uint32_t             k;
    llm_err_t            err;
    llm_request_t        msg;
    const llm_fim_t     *fim;
    const llm_format_t  *f;

    memset(&msg, 0, sizeof(msg));
    fim = llm_vocab_fim(env->vocab);
    f = env->chat ? llm_chat_format(env->chat) : NULL;

    struct {
        const char  *name;
        int          has;
    } words[] = {
        { "completion", llm_prep_task(env, &msg, &err) == LLM_OK },
        { "embedding", env->model && llm_model_hparams(env->model)->pooling
                                     < LLM_POOLING_RANK
                       && llm_model_hparams(env->model)->pooling
                          != LLM_POOLING_NONE },
        { "tools", f && (f->harmony || f->n_forms) },
        { "thinking", f && (f->harmony || f->n_reasoning) },
        { "insert", fim->prefix >= 0 && fim->suffix >= 0 && fim->middle >= 0 }
    };

    k = 0;
    llm_describe_key(out, "capabilities", n);
    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (i = 0; i < llm_nelems(words); i++) {
        if (words[i].has) {
            llm_flat_add_str(out, words[i].name, strlen(words[i].name));
            k++;
        }
    }

    llm_flat_close(out, handle, k);
}


/*
 * The members are named as in llama-server, and are those that its clients
 * read; the last two are for Ollama's.  No path of this machine is shown, so
 * "model_path" is the model's name.
 */

void
llm_describe_props(const llm_prep_env_t *env, llm_buf_t *out)
{
    size_t    handle, inner;
    uint32_t  n, k;

    n = 0;
    k = 0;
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    llm_describe_key(out, "default_generation_settings", &n);
    inner = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_describe_int(out, "n_ctx", env->runner->ctx, &k);
    llm_describe_key(out, "params", &k);
    llm_describe_sampling(&env->advised, out);
    llm_flat_close(out, inner, k);

    llm_describe_int(out, "total_slots", env->runner->max_seqs, &n);
    llm_describe_text(out, "model_alias", env->name, &n);
    llm_describe_text(out, "model_path", env->name, &n);
    llm_describe_template(env, out, &n);
    llm_describe_token(env, out, "bos_token", "bos_token_id",
                       llm_vocab_bos(env->vocab), &n);
    llm_describe_token(env, out, "eos_token", "eos_token_id",
                       llm_vocab_eos(env->vocab), &n);

    k = 0;
    llm_describe_key(out, "modalities", &n);
    inner = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_describe_bool(out, "vision", (env->takes & LLM_MEDIUM_IMAGE) != 0, &k);
    llm_describe_bool(out, "audio", (env->takes & LLM_MEDIUM_AUDIO) != 0, &k);
    llm_flat_close(out, inner, k);

    llm_describe_bool(out, "endpoint_props", 0, &n);
    llm_describe_bool(out, "endpoint_slots", 0, &n);
    llm_describe_bool(out, "endpoint_metrics", 0, &n);
    llm_describe_text(out, "build_info", "nginx-llm-" LLM_VERSION, &n);
    llm_describe_abilities(env, out, &n);

    if (env->model) {
        llm_describe_sizes(llm_model_hparams(env->model), out, &n);
    }

    llm_flat_close(out, handle, n);
}
