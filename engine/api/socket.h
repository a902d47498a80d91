/*
 * OpenAI's WebSocket mode of Responses: each text message of the client,
 * "response.create", becomes the body of a POST to the endpoint, and each event
 * of its stream a text message
 * (https://developers.openai.com/api/docs/guides/websocket-mode).
 *
 * A message may name a stream, by `stream_id`: streams run beside each other,
 * the messages of one after each other, and their events have its name.  Each
 * stream has a lane, and so do messages without a name together.  Messages
 * wait while their lane is busy, or all are.
 *
 * A lane remembers its last response: `previous_response_id`, in a message of
 * any lane, stands for the items that were sent and answered before, which the
 * endpoint itself does not store.
 *
 * Invariant: what a lane remembers belongs to the response with the id `last`,
 * or there is none.  A request that fails leaves none.
 *
 * Bounds, with most = the bytes of a body: 2 * most for what is remembered, as
 * much for what runs, most for what waits, or a single message.
 */

#ifndef LLM_API_SOCKET_H
#define LLM_API_SOCKET_H

#include "engine/base/base.h"

/* streams that run, or are remembered, at once */
#define LLM_API_SOCKET_LANES    8
#define LLM_API_SOCKET_NOWHERE  UINT32_MAX      /* no lane */

typedef struct llm_api_socket_s  llm_api_socket_t;

/* can the endpoint at the path be used by a WebSocket?  path: as for
   llm_api_route() */
int llm_api_socket_path(llm_str_t path);

/* most: bytes that a request's body may have, with what is remembered.  NULL:
   no memory */
llm_api_socket_t *llm_api_socket_create(size_t most);
void llm_api_socket_free(llm_api_socket_t *s);

/*
 * Adds the body of the POST that a client's message asks for; its lane is busy
 * from now on.  LLM_FULL: the message waits, and is kept.  LLM_ERROR: it asks
 * for none, see err; then, too, *lane is the message's, or NOWHERE.
 */
int llm_api_socket_ask(llm_api_socket_t *s, llm_str_t text, uint32_t *lane,
    llm_buf_t *body, llm_err_t *err);
/* the same with the first message of those that wait whose turn has come.
   LLM_FULL: there is none */
int llm_api_socket_again(llm_api_socket_t *s, uint32_t *lane, llm_buf_t *body,
    llm_err_t *err);
/* bytes of the messages that wait; is there room for one of len bytes? */
size_t llm_api_socket_waiting(const llm_api_socket_t *s);
int llm_api_socket_room(const llm_api_socket_t *s, size_t len);

/* takes the data of an event of the answer's stream; adds the message for the
   client, or two with a NUL between them, or nothing.  1: it is the last
   event */
int llm_api_socket_event(llm_api_socket_t *s, uint32_t lane, llm_str_t data,
    llm_buf_t *out);

/* the answer was an error, or ended without its last event: adds the message
   for the client.  status, body: of the answer */
void llm_api_socket_failed(llm_api_socket_t *s, uint32_t lane,
    uint32_t status, llm_str_t body, llm_buf_t *out);

/* adds the message for an error of this side */
void llm_api_socket_error(llm_api_socket_t *s, uint32_t lane,
    const llm_err_t *err, llm_buf_t *out);

/* the request has ended, after its last event or an error */
void llm_api_socket_end(llm_api_socket_t *s, uint32_t lane);

#endif /* LLM_API_SOCKET_H */
