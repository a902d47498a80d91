/*
 * What socket.c and socket_events.c share; see socket.h.
 */

#ifndef LLM_API_SOCKET_INTERNAL_H
#define LLM_API_SOCKET_INTERNAL_H

#include "engine/api/api.h"
#include "engine/api/endpoint.h"
#include "engine/api/json.h"
#include "engine/api/socket.h"

#define LLM_API_SOCKET_NAME     128     /* most bytes of a stream_id */
#define LLM_API_SOCKET_WAITING  64      /* most messages that wait */


typedef struct {
    uint32_t     len;                   /* 0: no stream_id was given */
    char         data[LLM_API_SOCKET_NAME];
} llm_api_socket_name_t;

/* a stream of the connection, and its conversation */
typedef struct {
    llm_api_socket_name_t  name;
    uint64_t               used;        /* time of the last use, in uses; 0: the
                                           lane is free */
    int                    busy;        /* a request runs */
    char                   last[96];    /* id of the last response; empty: none
                                           is remembered */
    llm_buf_t              items;       /* owned; what was sent and answered up
                                           to it */
    llm_buf_t              asked;       /* owned; the items of the request that
                                           runs */
    int                    warms;       /* it is to generate nothing */
    uint32_t               sequence;    /* of this side's own events */
} llm_api_lane_t;

/* a message whose turn has not come */
typedef struct llm_api_waiting_s  llm_api_waiting_t;

struct llm_api_waiting_s {
    llm_api_waiting_t     *next;
    llm_api_socket_name_t  name;        /* its stream */
    size_t                 len;
    char                   text[];
};

struct llm_api_socket_s {
    size_t                 most;        /* bytes of a body */
    uint64_t               uses;        /* the clock of `used` */
    llm_api_lane_t         lanes[LLM_API_SOCKET_LANES];
    llm_api_socket_name_t  stray;       /* the stream of the last message, if
                                           that was wrong and it has no lane */
    llm_api_waiting_t     *waiting;     /* owned; in the order in which they
                                           came */
    size_t                 waits;       /* their bytes */
    uint32_t               n_waiting;   /* their number */
};


/* adds the items of a list, or a text as the user's message */
int llm_api_socket_items(llm_buf_t *out, const llm_flat_t *list,
    llm_err_t *err);
void llm_api_socket_forget(llm_api_socket_t *s, llm_api_lane_t *lane);

#endif /* LLM_API_SOCKET_INTERNAL_H */
