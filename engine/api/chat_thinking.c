/*
 * How much a chat's model is to think.  There are several fields for that:
 * enable_thinking and reasoning_effort; "thinking", an object of the Messages
 * API that vendors of models have in their chats, too; and OpenRouter's
 * "reasoning".  A separate field takes precedence over a member of these
 * objects.
 */

#include "engine/api/chat.h"


/* takes the budget from a member, unless there is one already */

static int
llm_api_ct_budget(llm_api_chat_t *b, const llm_flat_t *object,
    const char *field, const char *key, llm_err_t *err)
{
    const llm_flat_t  *v;

    v = llm_api_member(object, key);

    if (v == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_int(err, llm_api_key(llm_api_top(field), key), v, -1,
                          INT32_MAX)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (b->thinking_budget == -1) {
        b->thinking_budget = llm_flat_int(v);
    }

    return LLM_OK;
}


/* {"type": "enabled", "budget_tokens": n}; with "adaptive", "auto" and
   "between_tools" the model decides itself, as without the field */

static int
llm_api_ct_thinking(llm_api_chat_t *b, llm_err_t *err)
{
    int                  on;
    const llm_flat_t    *v, *type;
    const llm_api_at_t  *at;

    v = b->thinking;
    at = llm_api_top("thinking");

    if (v == NULL) {
        return LLM_OK;
    }

    if (v->type == LLM_FLAT_BOOL) {
        on = (int) llm_flat_int(v);

    } else {
        if (v->type != LLM_FLAT_OBJECT) {
            return llm_api_bad_type(err, at, "an object or a boolean", v);
        }

        type = llm_api_need(err, at, v, "type", LLM_FLAT_STRING);
        if (type == NULL) {
            return LLM_ERROR;
        }

        on = llm_api_str_is(type, "enabled") ? 1
             : llm_api_str_is(type, "disabled") ? 0 : -1;

        if (on == -1 && !llm_api_str_is(type, "adaptive")
            && !llm_api_str_is(type, "auto")
            && !llm_api_str_is(type, "between_tools"))
        {
            return llm_api_bad_word(err, llm_api_key(at, "type"),
                                    llm_flat_str(type), "Supported are "
                                    "'enabled', 'disabled', 'adaptive', "
                                    "'auto' and 'between_tools'.");
        }

        if (on != 0 && llm_api_ct_budget(b, v, "thinking", "budget_tokens",
                                         err)
                       != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (b->enable_thinking == -1) {
        b->enable_thinking = on;
    }

    return LLM_OK;
}


/* reads a boolean member; -1: not given */

static int
llm_api_ct_bool(const llm_flat_t *object, const char *key, int *to,
    llm_err_t *err)
{
    const llm_flat_t  *v;

    v = llm_api_member(object, key);
    *to = v && v->type == LLM_FLAT_BOOL ? (int) llm_flat_int(v) : -1;

    return v ? llm_api_check_type(err, llm_api_key(llm_api_top("reasoning"),
                                                   key), v, LLM_FLAT_BOOL)
             : LLM_OK;
}


/* effort words that only one template knows belong in chat_template_kwargs */

static int
llm_api_ct_effort(llm_str_t effort, const llm_api_at_t *at, llm_err_t *err)
{
    size_t  i;

    static const char *const  words[] = {
        "none", "minimal", "low", "medium", "high", "xhigh", "max"
    };

    for (i = 0; i < llm_nelems(words); i++) {
        if (llm_str_is(effort, words[i])) {
            return LLM_OK;
        }
    }

    return llm_api_bad_word(err, at, effort, "Supported values are: 'none', "
                            "'minimal', 'low', 'medium', 'high', 'xhigh', "
                            "and 'max'.");
}


/* {"enabled": true, "effort": "low", "max_tokens": n, "exclude": false} */

static int
llm_api_ct_reasoning(llm_api_chat_t *b, llm_err_t *err)
{
    int                on, hide;
    const llm_flat_t  *effort;

    if (b->reasoning == NULL) {
        return LLM_OK;
    }

    effort = llm_api_member(b->reasoning, "effort");

    if (llm_api_ct_bool(b->reasoning, "enabled", &on, err) != LLM_OK
        || llm_api_ct_bool(b->reasoning, "exclude", &hide, err) != LLM_OK
        || (effort && llm_api_check_type(err,
                                         llm_api_key(llm_api_top("reasoning"),
                                                     "effort"), effort,
                                         LLM_FLAT_STRING)
                      != LLM_OK)
        || (effort && llm_api_ct_effort(llm_flat_str(effort),
                                        llm_api_key(llm_api_top("reasoning"),
                                                    "effort"), err)
                      != LLM_OK)
        || (on != 0 && llm_api_ct_budget(b, b->reasoning, "reasoning",
                                         "max_tokens", err) != LLM_OK))
    {
        return LLM_ERROR;
    }

    if (b->enable_thinking == -1) {
        b->enable_thinking = on;
    }

    if (effort && b->reasoning_effort.len == 0) {
        b->reasoning_effort = llm_flat_str(effort);
    }

    if (hide == 1 && b->include_reasoning == -1) {
        b->include_reasoning = 0;
    }

    return LLM_OK;
}


int
llm_api_chat_thinking(llm_api_chat_t *b, llm_err_t *err)
{
    if (b->reasoning_effort.len
        && llm_api_ct_effort(b->reasoning_effort,
                             llm_api_top("reasoning_effort"), err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_api_ct_thinking(b, err) == LLM_OK
           ? llm_api_ct_reasoning(b, err) : LLM_ERROR;
}


/* llama.cpp's reasoning_format, vLLM's include_reasoning, and the budget */

int
llm_api_chat_reasons(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err)
{
    size_t     i;
    llm_str_t  s;

    static const char *const  formats[] = {
        "none", "auto", "deepseek", "deepseek-legacy"
    };

    if (b->include_reasoning == 0) {
        rd->r.flags |= LLM_REQ_THINK_HIDE;
    }

    if (b->thinking_budget >= 0) {
        rd->r.flags |= LLM_REQ_THINK_MOST;
        rd->r.think_tokens = (uint32_t) b->thinking_budget;
    }

    s = b->reasoning_format;

    for (i = 0; i < llm_nelems(formats) && s.len; i++) {
        if (llm_str_is(s, formats[i])) {
            rd->r.flags |= i == 0 ? LLM_REQ_THINK_TEXT : 0;

            return i == 0 && (rd->r.flags & LLM_REQ_THINK_MOST)
                   ? llm_api_bad_value(err, llm_api_top("reasoning_format"),
                                       "'none' cannot be combined with a "
                                       "bound of reasoning, for reasoning is "
                                       "not looked for.")
                   : LLM_OK;
        }
    }

    return s.len == 0 ? LLM_OK
           : llm_api_bad_word(err, llm_api_top("reasoning_format"), s,
                              "Supported values are: 'none' (reasoning stays "
                              "in the content) and 'auto'.");
}
