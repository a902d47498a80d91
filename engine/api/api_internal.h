/*
 * What the files of the wire format share: the fields of a request's body
 * as the table in fields.c reads them, and one request's side of the format.
 */

#ifndef LLM_API_INTERNAL_H
#define LLM_API_INTERNAL_H

#include "engine/api/api.h"

#define LLM_API_MAX_BIAS      4096
#define LLM_API_MAX_STOP_IDS  256
#define LLM_API_MAX_STOP_LEN  1024      /* bytes of a stop string */


/*
 * A body's fields: values where they were given, defaults elsewhere.  The
 * pointers and strings are the flat body's.
 */

typedef struct {
    llm_str_t          model;
    llm_str_t          cache_salt;
    llm_str_t          reasoning_effort;
    llm_str_t          suffix;

    const llm_flat_t  *messages;
    const llm_flat_t  *prompt;
    const llm_flat_t  *tools;
    const llm_flat_t  *tool_choice;
    const llm_flat_t  *documents;
    const llm_flat_t  *chat_template_kwargs;
    const llm_flat_t  *response_format;
    const llm_flat_t  *modalities;
    const llm_flat_t  *metadata;
    const llm_flat_t  *stream_options;
    const llm_flat_t  *stop;
    const llm_flat_t  *stop_token_ids;
    const llm_flat_t  *logit_bias;
    const llm_flat_t  *logprobs;
    const llm_flat_t  *seed;
    const llm_flat_t  *priority;

    double             temperature;
    double             top_p;
    double             min_p;
    double             typical_p;
    double             presence_penalty;
    double             frequency_penalty;
    double             repetition_penalty;

    int64_t            n;
    int64_t            best_of;                 /* 0: not given */
    int64_t            max_tokens;              /* -1: not given */
    int64_t            max_completion_tokens;   /* -1: not given */
    int64_t            min_tokens;
    int64_t            top_k;
    int64_t            top_logprobs;            /* -1: not given */

    int                stream;
    int                echo;
    int                ignore_eos;
    int                return_token_ids;
    int                skip_special_tokens;
    int                cache_prompt;
    int                enable_thinking;         /* -1: not given */
    int                add_generation_prompt;   /* -1: not given */
    int                continue_final_message;  /* -1: not given */
} llm_api_body_t;

/* fields.c: reads and checks a body by the table; defaults stand already */
int llm_api_read_fields(const llm_flat_t *root, llm_api_endpoint_t ep,
    llm_api_body_t *b, llm_err_t *err);

/*
 * Where in a body a value stands, as a chain from it to the root; it is put
 * into words ("messages[2].content") only when there is something to say.
 */

typedef struct llm_api_at_s  llm_api_at_t;

struct llm_api_at_s {
    const llm_api_at_t  *parent;
    const char          *key;           /* NULL: an index */
    uint32_t             index;
};

#define llm_api_key(parent, key)  (&(llm_api_at_t) { parent, key, 0 })
#define llm_api_idx(parent, i)    (&(llm_api_at_t) { parent, NULL, i })
#define llm_api_top(key)          llm_api_key(NULL, key)

/* complaints.c: errors in OpenAI's words; all return LLM_ERROR */
int llm_api_bad_type(llm_err_t *err, const llm_api_at_t *at,
    const char *want, const llm_flat_t *got);
int llm_api_bad_value(llm_err_t *err, const llm_api_at_t *at,
    const char *fmt, ...) llm_printf_like(3, 4);
int llm_api_missing(llm_err_t *err, const llm_api_at_t *at);
int llm_api_empty(llm_err_t *err, const llm_api_at_t *at);
int llm_api_too_long(llm_err_t *err, const llm_api_at_t *at, size_t max,
    const llm_flat_t *got);
int llm_api_unsupported(llm_err_t *err, const llm_api_at_t *at,
    const char *why);

/* complaints.c: LLM_OK when v is of the type and within the bounds */
int llm_api_check_type(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, llm_flat_type_t type);
int llm_api_check_int(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, int64_t min, int64_t max);
int llm_api_check_number(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, double min, double max, int above_min);

/* is it a string of these characters?  v may be NULL */
int llm_api_str_is(const llm_flat_t *v, const char *text);
/* the value of a key, NULL also for null; object may be NULL */
const llm_flat_t *llm_api_member(const llm_flat_t *object, const char *key);
/* a required member of that type at object's place, or NULL and *err */
const llm_flat_t *llm_api_need(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *object, const char *key, llm_flat_type_t type);

/* messages.c: checks */
int llm_api_check_messages(const llm_flat_t *messages, llm_err_t *err);
int llm_api_check_tools(const llm_api_body_t *b, llm_err_t *err);

/* chat_object.c: the flat object for llm_chat_render(), of what was checked
   already, appended to msg */
int llm_api_write_chat(const llm_api_body_t *b, llm_buf_t *msg,
    llm_err_t *err);

/* lists.c: arrays of a request, appended to msg; *ref is set */
int llm_api_write_prompts(const llm_api_body_t *b, llm_buf_t *msg,
    llm_ref_t *ref, llm_err_t *err);
int llm_api_write_stops(const llm_api_body_t *b, llm_buf_t *msg,
    llm_ref_t *ref, llm_err_t *err);
int llm_api_write_stop_ids(const llm_api_body_t *b, llm_buf_t *msg,
    llm_ref_t *ref, llm_err_t *err);
int llm_api_write_bias(const llm_api_body_t *b, llm_buf_t *msg,
    llm_ref_t *ref, llm_err_t *err);

/* keeps what is appended to a message at multiples of 8 bytes */


/* arrays of the "logprobs" member: chat has one, completions have four */
#define LLM_API_LOGPROB_ARRAYS  4

/* how much text of a choice there was before an event */
typedef struct {
    size_t             bytes;
    size_t             chars;
} llm_api_place_t;

/* an event that is kept; the memory is the arena's */
typedef struct llm_api_piece_s  llm_api_piece_t;

struct llm_api_piece_s {
    llm_api_piece_t   *next;
    llm_event_t        ev[];
};

typedef struct {
    llm_api_piece_t   *first;
    llm_api_piece_t   *last;
} llm_api_list_t;

/* one choice of an answer; events are kept without streaming only */

typedef struct {
    uint32_t           finish;          /* llm_finish_t */
    uint32_t           n_tokens;        /* that were told of */
    uint32_t           n_calls;         /* tool calls begun */
    unsigned           has_content:1;
    unsigned           has_reasoning:1;
    llm_api_place_t    place;           /* in a stream */
    llm_api_list_t     own;
    llm_api_list_t     echo;            /* of the prompt; of the first choice
                                           of each prompt only */
} llm_api_choice_t;

/* how far a body is written; see body.c */

typedef struct {
    uint32_t                choice;
    uint32_t                member;
    uint32_t                array;      /* of the logprobs */
    uint32_t                at;         /* in the piece: a byte, or a token */
    unsigned                opened:1;   /* the member has begun */
    unsigned                some:1;     /* and has an item */
    unsigned                in_echo:1;  /* the piece is the prompt's */
    const llm_api_piece_t  *piece;      /* NULL: no more */
    llm_api_place_t         place;      /* before it */
} llm_api_cursor_t;

struct llm_api_s {
    uint32_t           is_chat;
    uint32_t           model;
    uint32_t           n;               /* choices of each prompt */
    uint32_t           n_choices;       /* of all */
    int32_t            n_logprobs;      /* -1: none */

    unsigned           stream:1;
    unsigned           include_usage:1;
    unsigned           token_ids:1;
    unsigned           started:1;       /* START was seen */

    uint32_t           reasoning_tokens;
    llm_api_usage_t    usage;

    llm_str_t          id;              /* of the request, without prefix */
    llm_str_t          head;            /* of a frame or a body, up to the
                                           first choice's index */
    llm_api_choice_t  *choices;

    llm_arena_t        kept;            /* events, without streaming */
    size_t             gathered;        /* bytes of these */
    size_t             max_answer;      /* and their bound */
    llm_api_cursor_t   cursor;
};

/* answer.c; conf's bytes are copied; NULL: no memory */
llm_api_t *llm_api_create(const llm_api_conf_t *conf, const llm_request_t *r,
    uint32_t n_choices, int include_usage);

/* body.c: keeps an event; LLM_ERROR: the answer is too large, or no memory */
int llm_api_gather(llm_api_t *a, const llm_event_t *ev, llm_err_t *err);

/* pieces.c: what frames and bodies have in common */
const char *llm_api_finish_name(uint32_t finish);
void llm_api_add_uint(llm_buf_t *out, uint64_t v);
/* {"prompt_tokens": ...} */
void llm_api_add_usage(llm_buf_t *out, const llm_api_t *a);
/* {"index":0,"id":"call_...","type":"function","function":{"name":"x",
   "arguments":" without the index for bodies, left open */
void llm_api_add_call(llm_buf_t *out, const llm_api_t *a,
    const llm_event_t *ev);
/* the event's token ids, comma-separated */
void llm_api_add_ids(llm_buf_t *out, const llm_event_t *ev);
void llm_api_add_event_text(llm_buf_t *out, const llm_event_t *ev);

/*
 * logprobs.c: the "logprobs" member has arrays of items, an item a token;
 * chat has one array, completions have four.  The place is that before the
 * event.
 */
void llm_api_add_logprob_item(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev, uint32_t array,
    uint32_t i);
uint32_t llm_api_logprob_arrays(const llm_api_t *a);
/* what stands before the items of an array, and behind the last array's */
void llm_api_open_logprobs(llm_buf_t *out, const llm_api_t *a,
    uint32_t array);
void llm_api_close_logprobs(llm_buf_t *out, const llm_api_t *a);
/* the value of the member: of an event; null without any */
void llm_api_add_logprobs(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev);
/* does the array need the place?  Then count the event's text behind it */
int llm_api_counts_chars(const llm_api_t *a, uint32_t array);
void llm_api_count_text(llm_api_place_t *place, const llm_event_t *ev);

#endif /* LLM_API_INTERNAL_H */
