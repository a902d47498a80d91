/*
 * A sequence of known tokens, for tests of what drafts.  CTX is the test's.
 */

#ifndef T_UNIT_KNOWN_H
#define T_UNIT_KNOWN_H

#include <string.h>


typedef struct {
    llm_seq_t         seq;
    llm_req_t         req;
    llm_prompt_ids_t  prompt;
    int32_t           ids[CTX];
} known_t;


/* a prompt of n tokens; those from number `same` on are others for each salt */

static void
known(known_t *k, uint32_t n, uint32_t same, int32_t salt)
{
    uint32_t  i;

    memset(k, 0, sizeof(*k));

    for (i = 0; i < CTX; i++) {
        k->ids[i] = (int32_t) (i * 37 % 251) + (i < same ? 0 : salt);
    }

    k->seq.req = &k->req;
    k->seq.prompt = &k->prompt;
    k->prompt.ids = k->ids;
    k->prompt.n = n;
}

#endif /* T_UNIT_KNOWN_H */
