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
    { .name = { 4, "demo" }, .owner = { 5, "nginx" },
      .aliases = demo_aliases, .n_aliases = 2, .is_default = 1,
      .max_tokens = -1, .created = 1700000000 },
    { .name = { 8, "Big-Llm7" }, .owner = { 5, "nginx" }, .max_tokens = 200,
      .created = 1700000001 },
    { .name = { 8, "big-tiny" }, .owner = { 5, "nginx" }, .max_tokens = -1,
      .created = 1700000002 },
    { .name = { 6, "secret" }, .owner = { 5, "nginx" }, .max_tokens = -1,
      .created = 1700000003 }
};

static const llm_api_conf_t  conf = {
    .models = models, .n_models = 4, .allowed = 7, .fallback = -1,
    .cap = -1, .id = { 8, "deadbeef" }, .now = 1750000000
};


#endif /* LLM_API_CONF_H */
