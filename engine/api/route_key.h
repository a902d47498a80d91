/*
 * Which requests belong together: a key by which a balancer sends all turns of
 * a conversation to one machine, where their prompt is in the prefix cache.
 * It is made of a body's bytes alone, without a model and without a JSON tree.
 *
 * In it are who asks, the model's name as it was sent, and "prompt_cache_key",
 * which says itself what belongs together; without that, what does not change
 * from turn to turn: "user", "safety_identifier", the beginning of the first
 * message of a user (or, where there is none, of the first one that has a
 * text), of a prompt, or of what is to be embedded or ranked.  What stands
 * before the first message of a user is left out, so that conversations with
 * one system prompt are spread: each machine computes that once.
 *
 * It is no check: of what is no JSON the key has what could be read, escapes
 * stay as they were sent, of equal members the first one counts.  Behind so many
 * marks of JSON that it would take too long nothing counts.
 */

#ifndef LLM_ROUTE_KEY_H
#define LLM_ROUTE_KEY_H

#include "engine/base/base.h"

/* hexadecimal digits, without a NUL */
#define LLM_ROUTE_KEY_LEN   32

/* the most that may count of a text */
#define LLM_ROUTE_MOST      65536

typedef struct llm_route_key_s  llm_route_key_t;

/* how many bytes count of a message, and of the text of a prompt, which grows
   from turn to turn without a sign where the first one ended; NULL: there is
   no memory */
llm_route_key_t *llm_route_key_create(uint32_t message, uint32_t prompt);
/* more of the body; LLM_OK: what follows makes no difference; LLM_MORE: it
   may */
int llm_route_key_add(llm_route_key_t *k, const char *p, size_t len);
/* the key so far; who asks is a tenant, or a secret, or empty both; LLM_ERROR:
   there is no memory */
int llm_route_key_end(llm_route_key_t *k, llm_str_t tenant, llm_str_t secret,
    char hex[LLM_ROUTE_KEY_LEN]);
void llm_route_key_free(llm_route_key_t *k);

#endif /* LLM_ROUTE_KEY_H */
