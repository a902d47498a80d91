/*
 * The API's endpoints: their paths and methods.
 */

#include "engine/api/endpoint.h"


const llm_api_row_t  llm_api_endpoints[] = {
    { "chat/completions", "POST",      &llm_api_chat },
    { "completions",      "POST",      &llm_api_completions },
    { "models",           "GET, HEAD", &llm_api_models },
    { "models/",          "GET, HEAD", &llm_api_models },
    { NULL,               NULL,        NULL }
};
