/*
 * The API's endpoints: their paths, their methods, and the scope that an API
 * key needs for them.
 */

#include "engine/api/endpoint.h"


const llm_api_row_t  llm_api_endpoints[] = {
    { "chat/completions", "POST", &llm_api_chat,
      LLM_SCOPE_GENERATE },
    { "chat/completions/input_tokens", "POST", &llm_api_chat_tokens,
      LLM_SCOPE_TOKENIZE },
    { "completions", "POST", &llm_api_completions,
      LLM_SCOPE_GENERATE },
    { "embeddings", "POST", &llm_api_embeddings,
      LLM_SCOPE_EMBED },
    { "load", "GET, HEAD", &llm_api_load,
      LLM_SCOPE_MODELS },
    { "messages", "POST", &llm_api_messages,
      LLM_SCOPE_GENERATE },
    { "messages/count_tokens", "POST", &llm_api_count_tokens,
      LLM_SCOPE_TOKENIZE },
    { "models", "GET, HEAD", &llm_api_models,
      LLM_SCOPE_MODELS },
    { "models/", "GET, HEAD", &llm_api_models,
      LLM_SCOPE_MODELS },
    { "ping", "GET, HEAD, POST", &llm_api_ping,
      LLM_SCOPE_MODELS },
    { "props", "GET, HEAD", &llm_api_props,
      LLM_SCOPE_MODELS },
    { "rerank", "POST", &llm_api_rerank,
      LLM_SCOPE_EMBED },
    { "reranking", "POST", &llm_api_rerank,
      LLM_SCOPE_EMBED },
    { "v2/rerank", "POST", &llm_api_rerank,
      LLM_SCOPE_EMBED },
    { "responses", "POST", &llm_api_responses,
      LLM_SCOPE_GENERATE },
    { "responses/compact", "POST", &llm_api_compact,
      LLM_SCOPE_GENERATE },
    { "responses/input_tokens", "POST", &llm_api_input_tokens,
      LLM_SCOPE_TOKENIZE },
    { "score", "POST", &llm_api_score,
      LLM_SCOPE_EMBED },
    { "tokenize", "POST", &llm_api_tokenize,
      LLM_SCOPE_TOKENIZE },
    { "detokenize", "POST", &llm_api_detokenize,
      LLM_SCOPE_TOKENIZE },
    { "tokenizer_info", "GET, HEAD", &llm_api_tokenizer_info,
      LLM_SCOPE_TOKENIZE },
    { "apply-template", "POST", &llm_api_template,
      LLM_SCOPE_TOKENIZE },
    { "infill", "POST", &llm_api_infill,
      LLM_SCOPE_GENERATE },
    { "version", "GET, HEAD", &llm_api_version,
      LLM_SCOPE_MODELS },
    { NULL, NULL, NULL, 0 }
};
