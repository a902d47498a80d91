/*
 * A chat request in the making.  Responses and Messages say in words of their
 * own what a chat request says: their readers write one with these functions,
 * and it is then read as if a client had sent it.  So what chats can do, the
 * others can, too.
 *
 * A draft is an object in a buffer of its own.  It begins with those fields
 * of the body that the endpoint's tables do not name: they mean the same in
 * a chat.  Writing fails silently (out.failed); llm_api_draft_message() tells.
 *
 * Messages are written one after another: open a message, add to it.  An
 * assistant's message goes on until one of another role is opened, so text,
 * reasoning and calls that come as items or blocks of their own are one
 * message, as templates expect it.  So are system messages in a row.
 */

#ifndef LLM_API_DRAFT_H
#define LLM_API_DRAFT_H

#include "engine/api/parts.h"

typedef struct {
    llm_buf_t     out;                  /* the object */
    uint32_t      n;                    /* pairs in it */

    size_t        list;                 /* handle of its messages */
    uint32_t      n_messages;
    int           old;                  /* what is being read has been
                                           answered, as in llm_api_part_at_t */
    int           goes_on;              /* at first: may an answer go on from
                                           the last message?  Then the reader's:
                                           what is being read is that message,
                                           as in llm_api_part_at_t */

    const char   *role;                 /* of the open message; NULL: none */
    llm_str_t     call_id;              /* of a tool's message */
    llm_buf_t     parts;                /* flat objects, its texts */
    uint32_t      n_parts;
    llm_buf_t     calls;                /* flat objects */
    uint32_t      n_calls;
    llm_buf_t     reasoning;            /* text */

    uint32_t      n_tools;              /* in the open array of them */
    llm_buf_t     names;                /* of tools, each between NULs */
    size_t        looked;               /* bytes of these that were searched */
    int           once;                 /* a tool of a name that is there is
                                           left out */
    llm_buf_t     schemas;              /* see llm_api_reader_t */
} llm_api_draft_t;

/* fields of a chat that such an endpoint's answer has no place for; its
   .shared */
extern const llm_api_fields_t  llm_api_draft_fields;

/* writes a draft of what an endpoint has read into `body` */
typedef int (*llm_api_draft_pt)(llm_api_reader_t *rd, void *body,
    llm_api_draft_t *d, llm_err_t *err);

/* reads the body's fields into `body`, where the caller has put what they are
   without the client, has a draft written, and reads that to the message */
int llm_api_draft_message(llm_api_reader_t *rd, void *body,
    llm_api_draft_pt write, llm_err_t *err);

/* the key of a field; the caller adds its value to d->out */
void llm_api_draft_key(llm_api_draft_t *d, const char *key);
void llm_api_draft_string(llm_api_draft_t *d, const char *key, llm_str_t s);
/* a copy; nothing if v is NULL */
void llm_api_draft_node(llm_api_draft_t *d, const char *key,
    const llm_flat_t *v);

/* between these two there are messages only; role is a constant */
void llm_api_draft_messages(llm_api_draft_t *d);
void llm_api_draft_open(llm_api_draft_t *d, const char *role);
/* opens the message with what a tool has said */
void llm_api_draft_result(llm_api_draft_t *d, llm_str_t call_id);
/* what follows is another message, whatever its role */
void llm_api_draft_end_message(llm_api_draft_t *d);
void llm_api_draft_text(llm_api_draft_t *d, llm_str_t text);
/* a content part, text or reasoning */
int llm_api_draft_part(llm_api_draft_t *d, const llm_flat_t *part,
    const llm_api_part_at_t *where, const llm_api_at_t *at, llm_err_t *err);
/* JSON text */
void llm_api_draft_json(llm_api_draft_t *d, const llm_flat_t *v);
/* of an assistant's message; arguments are JSON text */
void llm_api_draft_reasoning(llm_api_draft_t *d, llm_str_t text);
void llm_api_draft_call(llm_api_draft_t *d, llm_str_t id, llm_str_t name,
    llm_str_t arguments);
void llm_api_draft_messages_end(llm_api_draft_t *d);

/* reads a tool in the endpoint's own form, an object, and adds it; or adds
   nothing, if the model is not to be told of it */
typedef int (*llm_api_draft_tool_pt)(llm_api_draft_t *d,
    const llm_flat_t *tool, const llm_api_at_t *at, llm_err_t *err);

/* the array of a list's tools, as a value */
int llm_api_draft_tools(llm_api_draft_t *d, const llm_flat_t *list,
    const llm_api_at_t *at, llm_api_draft_tool_pt read, llm_err_t *err);
/* the same of several lists, between begin and end */
size_t llm_api_draft_tools_begin(llm_api_draft_t *d);
int llm_api_draft_tools_of(llm_api_draft_t *d, const llm_flat_t *list,
    const llm_api_at_t *at, llm_api_draft_tool_pt read, llm_err_t *err);
void llm_api_draft_tools_end(llm_api_draft_t *d, size_t handle);
/* an item of the open array; what is a value may be NULL.  at: where the
   client has its parameters */
void llm_api_draft_tool(llm_api_draft_t *d, llm_str_t name,
    const llm_flat_t *description, const llm_flat_t *parameters,
    const llm_flat_t *strict, const llm_api_at_t *at);
/* "tool_choice" that names a function */
void llm_api_draft_choose(llm_api_draft_t *d, llm_str_t name);
/* "response_format" with a schema; all but the schema may be NULL */
void llm_api_draft_schema(llm_api_draft_t *d, const llm_flat_t *name,
    const llm_flat_t *schema, const llm_flat_t *strict);

#endif /* LLM_API_DRAFT_H */
