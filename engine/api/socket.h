/*
 * OpenAI's WebSocket mode of Responses: each text message of the client,
 * "response.create", becomes the body of a POST to the endpoint, and each event
 * of its stream a text message
 * (https://developers.openai.com/api/docs/guides/websocket-mode).
 *
 * The connection remembers its last response: `previous_response_id` stands for
 * the items that were sent and answered before, which the endpoint itself does
 * not store.
 *
 * Invariant: what is remembered belongs to the response with the id `last`, or
 * there is none.  A request that fails leaves none.
 */

#ifndef LLM_API_SOCKET_H
#define LLM_API_SOCKET_H

#include "engine/base/base.h"

typedef struct llm_api_socket_s  llm_api_socket_t;

/* can the endpoint at the path be used by a WebSocket?  path: as for
   llm_api_route() */
int llm_api_socket_path(llm_str_t path);

/* most: bytes that a request's body may have, with what is remembered.  NULL:
   no memory */
llm_api_socket_t *llm_api_socket_create(size_t most);
void llm_api_socket_free(llm_api_socket_t *s);

/* adds the body of the POST that a client's message asks for.  LLM_ERROR: it
   asks for none, see err */
int llm_api_socket_ask(llm_api_socket_t *s, llm_str_t text, llm_buf_t *body,
    llm_err_t *err);

/* takes the data of an event of the answer's stream; adds the message for the
   client, or two with a NUL between them, or nothing.  1: it is the last
   event */
int llm_api_socket_event(llm_api_socket_t *s, llm_str_t data,
    llm_buf_t *out);

/* the answer was an error, or ended without its last event: adds the message
   for the client.  status, body: of the answer */
void llm_api_socket_failed(llm_api_socket_t *s, uint32_t status,
    llm_str_t body, llm_buf_t *out);

/* adds the message for an error of this side */
void llm_api_socket_error(llm_api_socket_t *s, const llm_err_t *err,
    llm_buf_t *out);

#endif /* LLM_API_SOCKET_H */
