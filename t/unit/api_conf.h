/*
 * A location's models, for the tests of what a request names and gets: the
 * last one is not allowed there.
 */

#ifndef LLM_API_CONF_H
#define LLM_API_CONF_H

#include "engine/api/endpoint.h"

#define CHAT   (&llm_api_chat)
#define COMPL  (&llm_api_completions)


static const llm_str_t  demo_aliases[] = {
    { 11, "gpt-4o-mini" }, { 10, "Qwen/Small" }
};

static const llm_api_model_t  models[] = {
    { { 4, "demo" }, demo_aliases, 2, 1, -1, 1700000000 },
    { { 8, "Big-Llm7" }, NULL, 0, 0, 200, 1700000001 },
    { { 8, "big-tiny" }, NULL, 0, 0, -1, 1700000002 },
    { { 6, "secret" }, NULL, 0, 0, -1, 1700000003 }
};

static const llm_api_conf_t  conf = {
    .models = models, .n_models = 4, .allowed = 7, .fallback = -1,
    .cap = -1, .id = { 8, "deadbeef" }, .now = 1750000000
};


#endif /* LLM_API_CONF_H */
