/*
 * The API's endpoints: their paths and methods.
 */

#include "engine/api/endpoint.h"


const llm_api_row_t  llm_api_endpoints[] = {
    { "chat/completions", "POST",      &llm_api_chat },
    { "completions",      "POST",      &llm_api_completions },
    { "embeddings",       "POST",      &llm_api_embeddings },
    { "messages",         "POST",      &llm_api_messages },
    { "messages/count_tokens",
                          "POST",      &llm_api_count_tokens },
    { "models",           "GET, HEAD", &llm_api_models },
    { "models/",          "GET, HEAD", &llm_api_models },
    { "props",            "GET, HEAD", &llm_api_props },
    { "rerank",           "POST",      &llm_api_rerank },
    { "reranking",        "POST",      &llm_api_rerank },
    { "v2/rerank",        "POST",      &llm_api_rerank },
    { "responses",        "POST",      &llm_api_responses },
    { "responses/input_tokens",
                          "POST",      &llm_api_input_tokens },
    { "score",            "POST",      &llm_api_score },
    { "tokenize",         "POST",      &llm_api_tokenize },
    { "detokenize",       "POST",      &llm_api_detokenize },
    { "tokenizer_info",   "GET, HEAD", &llm_api_tokenizer_info },
    { "apply-template",   "POST",      &llm_api_template },
    { "infill",           "POST",      &llm_api_infill },
    { NULL,               NULL,        NULL }
};
