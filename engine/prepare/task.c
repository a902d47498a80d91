/*
 * Which tasks a model can do: text, vectors, scores.  A model whose file has a
 * pooling type is an embedder or a ranker.  It does not generate text, which it
 * was not trained for; nor does an encoder, which cannot.  Every other decoder
 * generates, and embeds with the state of the last token.  With the pooling
 * type "none" a decoder generates, and embeds only where a request takes the
 * state of each token.
 */

#include "engine/prepare/prepare.h"


static const char  *const llm_pooling_names[] = {
    [LLM_POOLING_NONE] = "none",
    [LLM_POOLING_MEAN] = "mean",
    [LLM_POOLING_CLS]  = "cls",
    [LLM_POOLING_LAST] = "last",
    [LLM_POOLING_RANK] = "rank"
};


static llm_pooling_t
llm_task_pooling(const llm_prep_env_t *env)
{
    return env->model ? llm_model_hparams(env->model)->pooling
                    : LLM_POOLING_UNSAID;
}


int
llm_prep_whole(const llm_prep_env_t *env)
{
    return env->model && llm_model_hparams(env->model)->encoder;
}


static int
llm_task_refused(const char *does_not, llm_pooling_t pooling, const char *use,
    llm_err_t *err)
{
    return llm_fail_with(err, 400, "unsupported_model", "model",
                         "This model does not %s: by its file's pooling type, "
                         "%s, it is made for %s.", does_not,
                         llm_pooling_names[pooling], use);
}


static int
llm_task_generate(const llm_prep_env_t *env, llm_err_t *err)
{
    llm_pooling_t  pooling;

    pooling = llm_task_pooling(env);

    if (llm_prep_whole(env)) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model does not generate text: it is an "
                             "encoder (%s), made for %s.",
                             llm_model_hparams(env->model)->arch,
                             pooling == LLM_POOLING_RANK ? "rerank"
                                                         : "embeddings");
    }

    switch (pooling) {

    case LLM_POOLING_MEAN:
    case LLM_POOLING_CLS:
    case LLM_POOLING_LAST:
        return llm_task_refused("generate text", pooling, "embeddings", err);

    case LLM_POOLING_RANK:
        return llm_task_refused("generate text", pooling, "rerank", err);

    case LLM_POOLING_NONE:
    case LLM_POOLING_UNSAID:
        break;
    }

    return LLM_OK;
}


static int
llm_task_embed(const llm_prep_env_t *env, const llm_request_t *msg,
    llm_err_t *err)
{
    llm_pooling_t  pooling;

    pooling = llm_task_pooling(env);

    if (env->runner->hidden == NULL) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model does not embed.");
    }

    if (pooling == LLM_POOLING_NONE && !(msg->flags & LLM_REQ_STATES)) {
        return llm_task_refused("give one vector per input", pooling,
                                "one vector per token", err);
    }

    if (pooling == LLM_POOLING_RANK) {
        return llm_task_refused("embed", pooling, "rerank", err);
    }

    if (msg->dimensions > env->runner->n_embd) {
        return llm_fail_with(err, 400, NULL, "dimensions", "Invalid "
                             "'dimensions': this model's vectors have %u "
                             "numbers, not %u.", env->runner->n_embd,
                             msg->dimensions);
    }

    if (msg->truncate > 0 && (uint32_t) msg->truncate > env->runner->ctx) {
        return llm_fail_with(err, 400, NULL, "truncate_prompt_tokens",
                             "Invalid 'truncate_prompt_tokens': %d is more "
                             "than this model's context length, %u.",
                             msg->truncate, env->runner->ctx);
    }

    return LLM_OK;
}


/* a model of speech does nothing else, but that it is described, and no other
   does that */

static int
llm_task_sound(const llm_prep_env_t *env, llm_err_t *err)
{
    return llm_fail_with(err, 400, "unsupported_model", "model",
                         env->speech
                         ? "This model transcribes speech: use "
                           "/v1/audio/transcriptions."
                         : "This model does not transcribe speech: it is one "
                           "of text.");
}


int
llm_prep_task(const llm_prep_env_t *env, const llm_request_t *msg,
    llm_err_t *err)
{
    if ((env->speech != NULL) != (msg->task == LLM_TASK_LISTEN)
        && msg->task != LLM_TASK_PROPS)
    {
        return llm_task_sound(env, err);
    }

    switch (msg->task) {

    case LLM_TASK_LISTEN:
        return LLM_OK;

    case LLM_TASK_GENERATE:
        return llm_task_generate(env, err);

    case LLM_TASK_EMBED:
        return llm_task_embed(env, msg, err);

    case LLM_TASK_SCORE:
        return llm_rank_check(env, err);

    case LLM_TASK_TOKENIZE:
    case LLM_TASK_DETOKENIZE:
    case LLM_TASK_RENDER:
    case LLM_TASK_DESCRIBE:
    case LLM_TASK_PROPS:
        return LLM_OK;
    }

    return llm_fail(err, "malformed request to the engine");
}


void
llm_prep_pool(const llm_prep_env_t *env, llm_pooled_t *pool, uint32_t n)
{
    llm_pooling_t  pooling;

    pooling = llm_task_pooling(env);

    if (pooling == LLM_POOLING_RANK) {
        pooling = llm_model_hparams(env->model)->rank_from;
    }

    switch (pooling) {

    case LLM_POOLING_NONE:
        pool->next = 0;
        pool->end = n;
        pool->count = 0;
        pool->n = n * env->runner->n_embd;
        return;

    case LLM_POOLING_MEAN:
        pool->next = 0;
        pool->end = n;
        break;

    case LLM_POOLING_CLS:
        pool->next = 0;
        pool->end = 1;
        break;

    default:
        pool->next = n - 1;
        pool->end = n;
    }

    pool->count = pool->end - pool->next;
}
