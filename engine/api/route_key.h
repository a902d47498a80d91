/*
 * Which requests belong together: a key by which a balancer sends all turns of
 * a conversation to one machine, where their prompt is in the prefix cache.
 * It is made of a body's bytes alone, without a model and without a JSON tree.
 *
 * The key depends on the client, on the model's name as it was sent, and on
 * "prompt_cache_key", by which clients say what belongs together.  Without
 * that it depends on what does not change from turn to turn: "user",
 * "safety_identifier", the beginning of the first message of a user (or, where
 * there is none, of the first one that has a text), of a prompt, or of what is
 * to be embedded or ranked.  What stands before the first message of a user is
 * left out, so that conversations with one system prompt are spread: each
 * machine computes that once.
 *
 * The body is not validated: if it is no JSON, the key is made of what could
 * be read.  Escapes are not decoded, and of equal members the first one
 * counts.  After a certain number of marks (quotes, brackets) reading stops,
 * to bound its time.
 */

#ifndef LLM_ROUTE_KEY_H
#define LLM_ROUTE_KEY_H

#include "engine/base/base.h"

/* hexadecimal digits, without a NUL */
#define LLM_ROUTE_KEY_LEN   32

/* most bytes of a text that count */
#define LLM_ROUTE_MOST      65536

typedef struct llm_route_key_s  llm_route_key_t;

/* message, prompt: bytes that count of a message, and of the text of a prompt,
   which grows from turn to turn and does not show where the first turn ended;
   NULL: no memory */
llm_route_key_t *llm_route_key_create(uint32_t message, uint32_t prompt);
/* adds a piece of the body; LLM_OK: the rest makes no difference; LLM_MORE:
   the rest may */
int llm_route_key_add(llm_route_key_t *k, const char *p, size_t len);
/* the key so far; the client is named by a tenant or a secret, or both are
   empty; LLM_ERROR: no memory */
int llm_route_key_end(llm_route_key_t *k, llm_str_t tenant, llm_str_t secret,
    char hex[LLM_ROUTE_KEY_LEN]);
void llm_route_key_free(llm_route_key_t *k);

#endif /* LLM_ROUTE_KEY_H */
