/*
 * A request on its way: from its location through the body and the engine to
 * the bytes that its client gets.
 * ngx_http_llm_module.h includes it, behind the types that are used here.
 */

#ifndef NGX_HTTP_LLM_ANSWER_H
#define NGX_HTTP_LLM_ANSWER_H


/* ngx_http_llm_count.c */

/* a handler of the rewrite and the preaccess phase, which counts requests as
   soon as they are in a llm_api location */
ngx_int_t ngx_http_llm_count_handler(ngx_http_request_t *r);
/* has it been in a llm_api location? */
ngx_uint_t ngx_http_llm_is_counted(ngx_http_request_t *r);

/* ngx_http_llm_names.c */

/* where the location's aliases lead for this request; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_make_aliases(ngx_http_llm_ctx_t *ctx,
    llm_api_conf_t *conf);
/* the request asked for this alias, or for none */
void ngx_http_llm_asked(ngx_http_llm_ctx_t *ctx, const llm_api_conf_t *conf,
    llm_str_t name);

/* ngx_http_llm_slot.c */

ngx_int_t ngx_http_llm_take_slot(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_free_slot(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_api.c */

char *ngx_http_llm_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_llm_handler.c */

ngx_int_t ngx_http_llm_api_handler(ngx_http_request_t *r);
/* a request's state, from here to its end */
ngx_http_llm_ctx_t *ngx_http_llm_create_ctx(ngx_http_request_t *r);
/* what follows "/v1/" in a URI, or else all of it */
llm_str_t ngx_http_llm_api_path(ngx_str_t *uri);
/* the path of the API in the request's URI; NGX_DECLINED: it has none */
ngx_int_t ngx_http_llm_path(ngx_http_request_t *r,
    ngx_http_llm_loc_conf_t *llcf, llm_str_t *path);
/* finds the endpoint; NGX_DECLINED: there is none */
ngx_int_t ngx_http_llm_route(ngx_http_request_t *r,
    ngx_http_llm_loc_conf_t *llcf, llm_api_route_t *to);
/* fills conf with what the request may use, for the parser, which leaves in
   alias what was asked for; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_api_conf(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf,
    llm_str_t *alias);
/* the body was parsed: submits the request, or answers why not */
void ngx_http_llm_parsed(ngx_http_llm_body_t *body);
/* a subject that has taken the request over at the stage `parsed` gives it
   back: the next ones are asked, then it is submitted; NGX_ERROR: it is
   refused, see body->err and body->retry_after */
void ngx_http_llm_go_on(ngx_http_llm_body_t *body, ngx_int_t rc);
/* see ngx_http_llm_reply_main_conf_t */
void ngx_http_llm_failed_reply(ngx_http_request_t *r);

/* ngx_http_llm_no_route.c */

/* there is no such endpoint, or, if allow is not empty, it has these methods */
ngx_int_t ngx_http_llm_send_no_route(ngx_http_request_t *r, const char *allow);

/* ngx_http_llm_identity.c */

/* the tenant that the request counts for, as far as it is known by now;
   NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_find_tenant(ngx_http_llm_ctx_t *ctx);
/* model, tenant and priority of a request that was parsed; NGX_ERROR: no
   memory, see body->err */
ngx_int_t ngx_http_llm_identify(ngx_http_llm_body_t *body);
/* the highest that a location's request may turn out to have: variables are not
   looked at before the body is there, as they may depend on it */
ngx_int_t ngx_http_llm_highest_priority(ngx_http_llm_loc_conf_t *conf);
void ngx_http_llm_set_deadlines(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);

/* ngx_http_llm_body.c */

void ngx_http_llm_init_bodies(void);
/* the body has been read: parses it, at once or in a thread */
void ngx_http_llm_body_handler(ngx_http_request_t *r);
/* counts what a request that waits holds from now on, 0: nothing; NGX_ERROR
   and body->err, which says why: it is more than there is room for */
ngx_int_t ngx_http_llm_hold(ngx_http_llm_body_t *body, size_t size,
    const char *why);
/* likewise, of its message and what else it holds */
ngx_int_t ngx_http_llm_hold_message(ngx_http_llm_body_t *body,
    const char *why);

/* ngx_http_llm_coding.c */

/* before the body is read: NGX_OK, or for another coding NGX_ERROR and *err */
ngx_int_t ngx_http_llm_coding(ngx_http_request_t *r, ngx_uint_t *gzip,
    llm_err_t *err);
/* the most bytes of one that is unpacked */
size_t ngx_http_llm_unpacked(ngx_http_llm_ctx_t *ctx);
/* unpacks a whole body, in any thread: NGX_OK, or NGX_ERROR and *err */
ngx_int_t ngx_http_llm_gunzip(u_char *p, size_t size, size_t max,
    llm_buf_t *out, llm_err_t *err);

/* ngx_http_llm_task.c */

ngx_int_t ngx_http_llm_init_tasks(ngx_http_llm_tasks_t *t, int fd,
    ngx_log_t *log);
ngx_int_t ngx_http_llm_run_task(ngx_http_llm_tasks_t *t,
    ngx_http_llm_task_t *task, ngx_log_t *log);
void ngx_http_llm_finish_tasks(ngx_http_llm_tasks_t *t);
void ngx_http_llm_stop_tasks(ngx_http_llm_tasks_t *t);

/* ngx_http_llm_event.c */

/* sets how many bytes of a stream may be unread in the ring */
void ngx_http_llm_set_window(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);
/* takes an event of the engine; it only gathers output and never finalizes */
void ngx_http_llm_event(void *data, const llm_event_t *ev);
/* gathers what was written into the worker's scratch */
void ngx_http_llm_take_scratch(ngx_http_llm_ctx_t *ctx);
/* the request has something to send, or ends */
void ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx);
/* ends the request with an error of our own; it is marked dirty */
void ngx_http_llm_fail(ngx_http_llm_ctx_t *ctx, int status,
    const char *code, const char *msg);
/* after each output: a paused sequence goes on if its client caught up */
void ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_cleanup(void *data);
void ngx_http_llm_pool_cleanup(void *data);

/* ngx_http_llm_post_action.c */

/* a handler of the rewrite phase */
ngx_int_t ngx_http_llm_post_action_handler(ngx_http_request_t *r);
/* if nginx has moved the request on by post_action: runs this cleanup of it */
void ngx_http_llm_detach(ngx_http_request_t *r, ngx_http_cleanup_pt cleanup);

/* ngx_http_llm_stream.c */

/* a request waits: for its client to leave, and for its timer, which the
   caller sets */
void ngx_http_llm_watch(ngx_http_llm_ctx_t *ctx, char *action,
    ngx_event_handler_pt handler, void *data);
/* the request is submitted: wait for events, watch the client */
void ngx_http_llm_wait(ngx_http_llm_ctx_t *ctx);
/* sends the output that events have left in each dirty request */
void ngx_http_llm_send_dirty(ngx_http_llm_worker_t *w);

/* ngx_http_llm_output.c */

/* adds output; NGX_ERROR: no memory, a part may have been added */
ngx_int_t ngx_http_llm_gather(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
/* bytes gathered and not handed over yet */
off_t ngx_http_llm_gathered(ngx_http_llm_ctx_t *ctx);
/* passes all that was gathered to nginx; last: it is the answer's end */
ngx_int_t ngx_http_llm_hand_over(ngx_http_llm_ctx_t *ctx, ngx_uint_t last);
/* frees what nginx has sent; called after each output */
void ngx_http_llm_free_sent(ngx_http_llm_ctx_t *ctx);
/* frees all blocks, when nothing points to the bytes any more */
void ngx_http_llm_free_blocks(ngx_http_llm_ctx_t *ctx);


#endif /* NGX_HTTP_LLM_ANSWER_H */
