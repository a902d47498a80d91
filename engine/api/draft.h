/*
 * A chat request that an endpoint writes.  Responses and Messages have other
 * words for what a chat request says: their readers translate a request into a
 * chat request with these functions, and it is then read as if a client had
 * sent it.  So whatever chats support, they support, too.
 *
 * A draft is an object in a buffer of its own.  It begins with those fields of
 * the body that the endpoint's tables do not name: they mean the same in a
 * chat.  Writing fails silently (out.failed); llm_api_draft_message() reports
 * it.
 *
 * Messages are written one after another: open a message, add to it.  An
 * assistant's message stays open until a message of another role is opened, so
 * text, reasoning and calls that come as separate items or blocks are one
 * message, as templates expect it.  Consecutive system messages are one
 * message, too.
 */

#ifndef LLM_API_DRAFT_H
#define LLM_API_DRAFT_H

#include "engine/api/parts.h"

typedef struct {
    llm_api_reader_t  *rd;
    llm_buf_t     out;                  /* the chat request, an object */
    uint32_t      n;                    /* pairs in the object */
    const llm_api_endpoint_t  *as;      /* endpoint whose request it is; NULL: a
                                           chat's */

    size_t        list;                 /* handle of the array of messages */
    uint32_t      n_messages;
    int           old;                  /* 1 while a part is read that has been
                                           answered, see llm_api_part_at_t */
    int           goes_on;              /* before reading: may the answer
                                           continue the last message?  While
                                           reading: is this that message, see
                                           llm_api_part_at_t? */

    const char   *role;                 /* of the open message; NULL: none */
    llm_str_t     call_id;              /* id of the call that a tool's message
                                           answers */
    llm_buf_t     parts;                /* texts and media of the open message,
                                           flat objects */
    uint32_t      n_parts;
    llm_buf_t     calls;                /* calls of the open message, flat
                                           objects */
    uint32_t      n_calls;
    llm_buf_t     reasoning;            /* reasoning of the open message */

    uint32_t      n_tools;              /* tools in the open array */
    llm_buf_t     names;                /* names of tools, each between NULs */
    size_t        looked;               /* bytes of names searched so far */
    int           once;                 /* 1: a tool is left out if there is
                                           one of the same name */
    llm_buf_t     schemas;              /* see llm_api_reader_t */
} llm_api_draft_t;

/* fields of a chat that these endpoints' answers have no place for; used as
   .shared */
extern const llm_api_fields_t  llm_api_draft_fields;

/* writes a draft of a request, whose fields are in `body` */
typedef int (*llm_api_draft_pt)(llm_api_reader_t *rd, void *body,
    llm_api_draft_t *d, llm_err_t *err);

/* reads the body's fields into `body`, which holds their defaults, has a draft
   written by write(), and reads the draft to the message; the reader of d->as
   writes the beginning of its own answer to rd->head */
int llm_api_draft_message(llm_api_reader_t *rd, void *body,
    llm_api_draft_pt write, llm_err_t *err);

/* the key of a field; the caller adds its value to d->out */
void llm_api_draft_key(llm_api_draft_t *d, const char *key);
void llm_api_draft_string(llm_api_draft_t *d, const char *key, llm_str_t s);
/* adds a copy of v; nothing if v is NULL */
void llm_api_draft_node(llm_api_draft_t *d, const char *key,
    const llm_flat_t *v);

/* begin and end the messages: between the two calls only messages are written.
   role is a constant */
void llm_api_draft_messages(llm_api_draft_t *d);
void llm_api_draft_open(llm_api_draft_t *d, const char *role);
/* opens a tool's message, the result of a call */
void llm_api_draft_result(llm_api_draft_t *d, llm_str_t call_id);
/* ends the open message: the next one is separate, even if it has the same
   role */
void llm_api_draft_end_message(llm_api_draft_t *d);
void llm_api_draft_text(llm_api_draft_t *d, llm_str_t text);
/* adds an image or sound that was read; at: the place of its part */
int llm_api_draft_media(llm_api_draft_t *d, llm_api_media_t *m,
    const llm_api_at_t *at, llm_err_t *err);
/* adds a content part: text, reasoning or media */
int llm_api_draft_part(llm_api_draft_t *d, const llm_flat_t *part,
    const llm_api_part_at_t *where, const llm_api_at_t *at, llm_err_t *err);
/* adds v as JSON text */
void llm_api_draft_json(llm_api_draft_t *d, const llm_flat_t *v);
/* add to an assistant's message; arguments are JSON text */
void llm_api_draft_reasoning(llm_api_draft_t *d, llm_str_t text);
void llm_api_draft_call(llm_api_draft_t *d, llm_str_t id, llm_str_t name,
    llm_str_t arguments);
void llm_api_draft_messages_end(llm_api_draft_t *d);

/* reads an object, a tool in the endpoint's own form, and adds it; adds
   nothing if the model is not to be told of the tool */
typedef int (*llm_api_draft_tool_pt)(llm_api_draft_t *d,
    const llm_flat_t *tool, const llm_api_at_t *at, llm_err_t *err);

/* adds the array of a list's tools, as a value */
int llm_api_draft_tools(llm_api_draft_t *d, const llm_flat_t *list,
    const llm_api_at_t *at, llm_api_draft_tool_pt read, llm_err_t *err);
/* the same for several lists, between begin and end */
size_t llm_api_draft_tools_begin(llm_api_draft_t *d);
int llm_api_draft_tools_of(llm_api_draft_t *d, const llm_flat_t *list,
    const llm_api_at_t *at, llm_api_draft_tool_pt read, llm_err_t *err);
void llm_api_draft_tools_end(llm_api_draft_t *d, size_t handle);
/* adds a tool to the open array; values may be NULL.  at: place of the
   parameters in the client's body */
void llm_api_draft_tool(llm_api_draft_t *d, llm_str_t name,
    const llm_flat_t *description, const llm_flat_t *parameters,
    const llm_flat_t *strict, const llm_api_at_t *at);
/* adds a "tool_choice" that names a function */
void llm_api_draft_choose(llm_api_draft_t *d, llm_str_t name);
/* adds a "response_format" with a schema; all arguments but the schema may be
   NULL */
void llm_api_draft_schema(llm_api_draft_t *d, const llm_flat_t *name,
    const llm_flat_t *schema, const llm_flat_t *strict);

#endif /* LLM_API_DRAFT_H */
