/*
 * The API's endpoints: their paths and methods.
 */

#include "engine/api/endpoint.h"


const llm_api_row_t  llm_api_endpoints[] = {
    { "chat/completions", "POST",      &llm_api_chat },
    { "completions",      "POST",      &llm_api_completions },
    { "messages",         "POST",      &llm_api_messages },
    { "messages/count_tokens",
                          "POST",      &llm_api_count_tokens },
    { "models",           "GET, HEAD", &llm_api_models },
    { "models/",          "GET, HEAD", &llm_api_models },
    { "responses",        "POST",      &llm_api_responses },
    { "tokenize",         "POST",      &llm_api_tokenize },
    { "detokenize",       "POST",      &llm_api_detokenize },
    { "tokenizer_info",   "GET, HEAD", &llm_api_tokenizer_info },
    { "apply-template",   "POST",      &llm_api_template },
    { "infill",           "POST",      &llm_api_infill },
    { NULL,               NULL,        NULL }
};
