/*
 * Defaults of requests: preset_check.c makes them from a text, preset.c adds
 * them to requests.
 */

#ifndef LLM_API_PRESET_H
#define LLM_API_PRESET_H

#include "engine/api/endpoint.h"

#define LLM_PRESET_ENDPOINTS  32
#define LLM_PRESET_MEMBERS    64        /* bits of a mask of members */

struct llm_api_preset_s {
    llm_buf_t                      flat;    /* the members, an object */
    uint32_t                       n;       /* number of members */

    /* masks of the members that requests of an endpoint get */
    struct {
        const llm_api_endpoint_t  *endpoint;
        uint64_t                   mask;
    }                              endpoints[LLM_PRESET_ENDPOINTS];
    uint32_t                       n_endpoints;
};

/* adds those members of preset that are in the mask and that the body does not
   name; flat holds the body, an object, and nothing else */
void llm_api_preset_merge(const llm_flat_t *preset, uint64_t mask,
    llm_buf_t *flat);

#endif /* LLM_API_PRESET_H */
