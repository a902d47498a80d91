/*
 * Answers that are a list of items: texts, reasoning, calls.  Responses calls
 * them output items, Messages content blocks.  An item begins where the
 * engine's events change from one part to another.
 *
 * Items and their texts are kept in the answer's arena, within max_answer, in
 * pieces that end with a whole character.  They are written as JSON a little
 * at a time: the endpoint writes what comes before and after an item's texts,
 * output.c the texts.
 */

#ifndef LLM_API_OUTPUT_H
#define LLM_API_OUTPUT_H

#include "engine/api/api_internal.h"
#include "engine/base/base64.h"

typedef struct llm_api_place_s  llm_api_place_t;
typedef struct llm_api_chunk_s  llm_api_chunk_t;
typedef struct llm_api_item_s   llm_api_item_t;

struct llm_api_chunk_s {
    llm_api_chunk_t   *next;
    uint32_t           len;
    uint32_t           cap;
    char               data[];
};

typedef struct {
    llm_api_chunk_t   *first;
    llm_api_chunk_t   *last;
} llm_api_text_t;

struct llm_api_item_s {
    llm_api_item_t    *next;
    uint32_t           part;            /* llm_part_t: CONTENT, REASONING, or
                                           TOOL_NAME for a call */
    uint32_t           index;           /* place in the answer, from 0 */
    uint32_t           call;            /* number of a call, from 0 */
    llm_str_t          name;            /* name of the function that is
                                           called */
    llm_api_text_t     text;            /* an item's text, or a call's
                                           arguments */
    llm_api_text_t     logprobs;        /* the items of the logprobs, JSON */
};

/* how a text is written */
typedef enum {
    LLM_API_AS_STRING = 0,              /* as a JSON string without quotes */
    LLM_API_AS_IS,                      /* unchanged, because it is JSON */
    LLM_API_AS_SEALED                   /* LLM_API_SEAL and the text, in
                                           base64 */
} llm_api_as_t;

/* prefix of text that clients get encoded and send back */
#define LLM_API_SEAL  "nginx-llm:"

typedef struct {
    const llm_api_text_t  *text;
    llm_api_as_t           as;
} llm_api_span_t;

/*
 * Writes what stands before the i-th text of an item: LLM_MORE, and *span is
 * that text; or LLM_OK if it was the end of the item.
 */
typedef int (*llm_api_span_pt)(const llm_api_t *a, const llm_api_item_t *item,
    uint32_t i, llm_api_span_t *span, llm_buf_t *out);

/* how far the items have been written; zeros at first */
typedef struct {
    const llm_api_item_t   *item;
    const llm_api_chunk_t  *chunk;
    uint32_t                span;
    llm_api_as_t            as;
    llm_base64_t            base64;
    unsigned                begun:1;
    unsigned                in_text:1;
} llm_api_walk_t;

/* options of answers with items */
#define LLM_API_OUT_SEALED    1         /* reasoning also as a sealed text */
#define LLM_API_OUT_SUMMARY   2         /* reasoning items have a "summary" */
#define LLM_API_OUT_LOGPROBS  4

/* a part of llm_api_t; zeros at first */
typedef struct {
    uint32_t           sequence;        /* of a stream's events */
    llm_api_item_t    *first;
    llm_api_item_t    *last;
    llm_api_item_t    *open;            /* item that a stream has begun and not
                                           ended, or NULL */
    llm_str_t          stop;            /* stop string that has matched */
    llm_api_walk_t     walk;            /* how far the body has been written */
} llm_api_output_t;

/*
 * Adds a TEXT event to the items, or keeps FINISH's stop string.  With text 0,
 * a TEXT event only begins its item and its text is not kept.  LLM_ERROR: the
 * answer is too large, or no memory.
 */
int llm_api_output_keep(llm_api_t *a, const llm_event_t *ev, int text,
    llm_err_t *err);
/* adds all of s to an item's text; LLM_ERROR as above, with nothing added */
int llm_api_text_add(llm_api_t *a, llm_api_text_t *text, const char *s,
    size_t len, llm_err_t *err);
/* adds an empty item; NULL as above */
llm_api_item_t *llm_api_output_begin(llm_api_t *a, uint32_t part,
    llm_err_t *err);
/* writes a token's logprob as JSON; as item() of llm_api_logprobs_t */
typedef void (*llm_api_logprob_pt)(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev, uint32_t array,
    const llm_token_logprob_t *t);
/* adds an event's logprobs, if there are any, to those of the last item */
int llm_api_output_logprobs(llm_api_t *a, const llm_event_t *ev,
    llm_api_logprob_pt write, llm_err_t *err);

/*
 * output_object.c: makes the text of a call's arguments that of an object.  If
 * it is not a valid one, because the answer was cut or the model has made a
 * mistake, the object has only those members that are complete; without any the
 * item has no text.  LLM_ERROR as above.
 */
int llm_api_output_object(llm_api_t *a, llm_api_item_t *it, llm_err_t *err);

/* write an item, or all items with commas in between, until out has max bytes
   or slightly more: LLM_MORE, LLM_OK, or LLM_ERROR for no memory */
void llm_api_write_item(const llm_api_t *a, const llm_api_item_t *item,
    llm_api_span_pt span, llm_buf_t *out);
int llm_api_write_items(llm_api_t *a, llm_api_span_pt span, size_t max,
    llm_buf_t *out);
/* writes a whole text */
void llm_api_write_text_of(const llm_api_text_t *text, llm_api_as_t as,
    llm_buf_t *out);
/* appends the text of a sealed one to out; LLM_ABSENT: another server has
   sealed it, and out is unchanged */
int llm_api_unseal(llm_str_t sealed, llm_buf_t *out);

#endif /* LLM_API_OUTPUT_H */
