/*
 * Tasks that need only the vocabulary and the template.  A preparation thread
 * makes the whole answer: a text or a flat object in prep.answer, or the tokens
 * of the only prompt.  The scheduler's thread sends it.  These requests have no
 * sequence, no page and no place in the scheduler.
 */

#include "engine/prepare/prepare.h"


static int
llm_answer_text(llm_req_t *r, llm_err_t *err)
{
    return r->prep.answer.failed ? llm_fail(err, "no memory for the answer")
                                 : LLM_OK;
}


static int
llm_answer_detokenize(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    int                rc;
    uint32_t           i;
    llm_str_t          s;
    llm_detok_t        d;
    llm_prompt_ids_t  *p;

    p = &r->prep.prompts[0];

    llm_detok_init(&d, env->vocab, 1, 1);

    for (i = 0; i < p->n; i++) {
        s = llm_detok_push(&d, p->ids[i]);
        (void) llm_buf_add(&r->prep.answer, s.data, s.len);
    }

    s = llm_detok_flush(&d, 1);
    (void) llm_buf_add(&r->prep.answer, s.data, s.len);

    rc = d.failed ? llm_fail(err, "no memory for the answer")
                  : llm_answer_text(r, err);

    llm_detok_free(&d);

    return rc;
}


static int
llm_answer_render(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    llm_prompt_t  prompt;

    if (llm_prep_render(env, r, how, &prompt, err) != LLM_OK) {
        return LLM_ERROR;
    }

    (void) llm_buf_add(&r->prep.answer, prompt.text, prompt.len);
    llm_prompt_free(&prompt);

    return llm_answer_text(r, err);
}


int
llm_prep_answer(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    int             rc;
    llm_request_t  *msg;

    msg = r->msg;

    switch (msg->task) {

    case LLM_TASK_RENDER:
        rc = msg->kind == LLM_KIND_CHAT
             ? llm_answer_render(env, r, how, err)
             : llm_fail(err, "malformed request to the engine");
        break;

    case LLM_TASK_DESCRIBE:
        llm_describe_tokenizer(env, &r->prep.answer);
        rc = llm_answer_text(r, err);
        break;

    case LLM_TASK_PROPS:
        llm_describe_props(env, &r->prep.answer);
        rc = llm_answer_text(r, err);
        break;

    default:
        rc = msg->kind == LLM_KIND_CHAT ? llm_prep_chat(env, r, how, err)
                                        : llm_prep_completion(env, r, err);

        if (rc == LLM_OK && msg->task == LLM_TASK_DETOKENIZE) {
            rc = llm_answer_detokenize(env, r, err);
        }

        r->prep.prompt_tokens = r->prep.prompts[0].n;
    }

    return rc;
}
