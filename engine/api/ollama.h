/*
 * What the files of Ollama's dialect share.  A chat and a generated text are
 * read as chat requests (draft.h), except for a text without a template, which
 * is read as a completion; their answers are lists of items (output.h).
 *
 * Streams are lines of JSON.  The lines of a stream have the time of the
 * request as created_at, which is a part of the prepared head.
 */

#ifndef LLM_API_OLLAMA_H
#define LLM_API_OLLAMA_H

#include "engine/api/draft.h"

/* options of an answer */
#define LLM_API_OL_CHAT     1           /* "message", not "response" */
#define LLM_API_OL_LOAD     2           /* there was no prompt: nothing is
                                           generated */
#define LLM_API_OL_CONTEXT  4           /* the answer ends with "context" */
#define LLM_API_OL_UNLOAD   8           /* with LOAD: by "keep_alive" of 0 */

typedef struct {
    llm_str_t          model;
    llm_str_t          prompt;
    llm_str_t          suffix;
    llm_str_t          system;

    const llm_flat_t  *messages;
    const llm_flat_t  *context;
    const llm_flat_t  *format;
    const llm_flat_t  *images;
    const llm_flat_t  *keep_alive;
    const llm_flat_t  *options;
    const llm_flat_t  *think;
    const llm_flat_t  *tools;

    int64_t            top_logprobs;
    int                logprobs;
    int                raw;
    int                stream;
} llm_api_ollama_t;

/* ollama_options.c: writes what chat and generate have in common to the
   draft */
int llm_api_ollama_options(const llm_api_ollama_t *b, llm_api_draft_t *d,
    llm_err_t *err);
/* checks keep_alive: a number, or a time such as "5m"; it has no effect, since
   a model is unloaded as its configuration says */
int llm_api_ollama_keep_alive(const llm_flat_t *v, llm_err_t *err);
/* is it 0, which asks for the model to be unloaded?  v may be NULL */
int llm_api_ollama_is_zero(const llm_flat_t *v);
/* adds an answer's beginning, {"model":...,"created_at":..., left open */
void llm_api_ollama_head(llm_api_reader_t *rd);
/* adds a time, in quotes; seconds since 1970 */
void llm_api_ollama_time(llm_buf_t *out, int64_t seconds);
/* "details" of a model; family: its architecture, empty if it is not known */
void llm_api_ollama_details(llm_buf_t *out, llm_str_t family,
    uint64_t n_params);

/* ollama_input.c: adds images to the open message, or refuses them; images may
   be NULL, old as in llm_api_part_at_t.  Writes a chat's messages to the
   draft */
int llm_api_ollama_images(llm_api_draft_t *d, const llm_flat_t *images,
    int old, const llm_api_at_t *at, llm_err_t *err);
int llm_api_ollama_messages(const llm_api_ollama_t *b, llm_api_draft_t *d,
    llm_err_t *err);

/*
 * ollama_context.c: "context", by which a generated text goes on from an
 * earlier one.  To clients it is a list of numbers that they send back.  Each
 * number holds six bytes of a text: a mark, and the JSON of the conversation's
 * messages, so that the template writes them as it writes those of a chat.
 */

/* writes the messages of a context, and this request's, to the draft, and to
   rd->own what the answer's context begins with */
int llm_api_ollama_recall(llm_api_reader_t *rd, const llm_api_ollama_t *b,
    llm_api_draft_t *d, llm_err_t *err);
/* adds the numbers of the conversation with the answer's texts */
void llm_api_ollama_remember(const llm_api_t *a, llm_buf_t *out);

/* ollama_output.c: as in llm_api_endpoint_t */
int llm_api_ollama_keep(llm_api_t *a, const llm_event_t *ev, llm_err_t *err);
void llm_api_ollama_event(llm_api_t *a, const llm_event_t *ev,
    llm_buf_t *out);
int llm_api_ollama_body(llm_api_t *a, size_t max, llm_buf_t *out);
void llm_api_ollama_heartbeat(const llm_api_t *a, llm_buf_t *out);
void llm_api_ollama_error(const llm_err_t *err, llm_str_t id,
    llm_buf_t *out);
void llm_api_ollama_fail(llm_api_t *a, const llm_err_t *err, llm_buf_t *out);

/* names of a chat's parameters here */
extern const llm_api_name_t  llm_api_ollama_names[];

#define LLM_API_NDJSON  "application/x-ndjson"

#endif /* LLM_API_OLLAMA_H */
