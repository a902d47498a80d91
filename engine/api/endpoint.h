/*
 * What an endpoint is, and what endpoints share.
 *
 * An endpoint is one file, endpoint_NAME.c, with one llm_api_endpoint_t: the
 * fields of its requests, a reader (body to message), an event writer (event
 * to SSE frames) and a body writer (events to an answer that is not
 * streamed).  A row of the table in endpoints.c says at which path and by
 * which methods it is reached.  Nothing else knows it by name.
 */

#ifndef LLM_API_ENDPOINT_H
#define LLM_API_ENDPOINT_H

#include "engine/api/output.h"
#include "engine/api/transcript.h"

/* most fields of an endpoint, shared ones included */
#define LLM_API_MAX_FIELDS  192


/* ---- the fields of a request's body ---- */

/* the type of a field, and of the struct's member for its value */
typedef enum {
    LLM_FIELD_BOOL,                     /* value in the struct: int */
    LLM_FIELD_INT,                      /* int64_t, min..max */
    LLM_FIELD_PARAM_INT,                /* int32_t, min..max */
    LLM_FIELD_PARAM_NUMBER,             /* float, min..max */
    LLM_FIELD_PARAM_ABOVE,              /* float, above min, to max */
    LLM_FIELD_STRING,                   /* llm_str_t */
    LLM_FIELD_ARRAY,                    /* const llm_flat_t *, and so for the
                                           types below */
    LLM_FIELD_OBJECT,
    LLM_FIELD_ANY,
    LLM_FIELD_REQUIRED,                 /* any type, but not absent or null */
    LLM_FIELD_REFUSED                   /* not supported, and cannot be
                                           ignored */
} llm_api_field_type_t;

#define LLM_FIELD_NOWHERE   ((size_t) -1)   /* checked, not stored */

typedef struct {
    const char            *name;
    llm_api_field_type_t   type;
    size_t                 to;          /* offset of the value in the
                                           endpoint's struct */
    double                 min;
    double                 max;
} llm_api_field_t;

typedef struct {
    const llm_api_field_t  *rows;
    uint32_t                n;
} llm_api_fields_t;

/* max_tokens, where the request names none */
#define LLM_API_UNSET  INT64_MIN

/*
 * The fields that all endpoints have which generate text: given values, or
 * defaults.  An endpoint's own struct begins with this one.  Pointers and
 * strings point into the flat body.
 */

typedef struct {
    llm_str_t          model;
    llm_str_t          cache_salt;
    llm_str_t          user;
    llm_str_t          safety_identifier;

    const llm_flat_t  *metadata;
    const llm_flat_t  *stream_options;
    const llm_flat_t  *stop;
    const llm_flat_t  *stop_token_ids;
    const llm_flat_t  *logit_bias;
    const llm_flat_t  *allowed_token_ids;
    const llm_flat_t  *bad_words;
    const llm_flat_t  *dry_sequence_breakers;
    const llm_flat_t  *samplers;
    const llm_flat_t  *logprobs;
    const llm_flat_t  *seed;
    const llm_flat_t  *priority;

    /* the form that the answer must have; see rule.c */
    const llm_flat_t  *response_format;
    const llm_flat_t  *structured_outputs;
    const llm_flat_t  *json_schema;
    const llm_flat_t  *guided_json;
    const llm_flat_t  *guided_choice;
    llm_str_t          guided_regex;
    llm_str_t          guided_grammar;
    llm_str_t          grammar;

    llm_sampling_t     sampling;        /* only parameters of sampling stages
                                           are set */

    int                texts_biased;    /* logit_bias may have texts; set by
                                           the reader, not by a field */
    int64_t            n;
    int64_t            max_tokens;      /* -1: as many as the context allows;
                                           LLM_API_UNSET: not given */
    int64_t            min_tokens;
    int64_t            min_keep;
    int64_t            mirostat;

    int                stream;
    int                ignore_eos;
    int                return_token_ids;
    int                tokens_as_ids;   /* logprobs name tokens by their ids */
    int                skip_special_tokens;
    int                cache_prompt;
} llm_api_body_t;

/* fields.c: the rows of llm_api_body_t */
extern const llm_api_fields_t  llm_api_shared_fields;
/* and those of them that vectors and scores have, too: whose a request is, and
   for which model */
extern const llm_api_fields_t  llm_api_client_fields;


/* ---- an endpoint ---- */

/* the name of a parameter, or its beginning */
typedef struct {
    const char                *theirs;
    const char                *own;
} llm_api_name_t;

/* options of the answer to a chat or a completion: "timings" follow the usage
   and the pieces of a stream, as in llama-server; a stream begins as there */
#define LLM_API_TIMINGS  1
#define LLM_API_LLAMA    2
#define LLM_API_VERBOSE  4              /* "__verbose" follows in a body */

/* usage in a stream: in a chunk after the last one; and, only together with
   that, the figures so far in each chunk */
#define LLM_API_USAGE_LAST  1
#define LLM_API_USAGE_EACH  2

/* a body that is being read to a message */

typedef struct {
    const llm_api_endpoint_t  *endpoint;
    const llm_api_conf_t      *conf;
    const llm_flat_t          *root;    /* the body, an object */
    llm_json_limits_t          limits;  /* bounds of further JSON that is
                                           read */

    llm_request_t              r;       /* request; head and task are already
                                           set */
    llm_buf_t                 *msg;     /* message: room for r, then its
                                           bytes */
    llm_buf_t                  head;    /* beginning of a frame or a body, see
                                           llm_api_write_head() */
    llm_buf_t                  user;        /* for the log, as in llm_api_t */
    llm_buf_t                  metadata;
    llm_buf_t                  own;     /* what the answer needs of the request
                                           beyond that; only the endpoint's own
                                           functions know its form */
    llm_buf_t                  schemas; /* for each tool of a draft, in order,
                                           the path of its schema in the body,
                                           NUL-terminated */
    int                        drafted;     /* root is a draft */
    uint32_t                   takes;   /* LLM_MEDIUM_..., kinds that the model
                                           takes */
    llm_buf_t                  media;   /* llm_media_ref_t, whose texts are
                                           offsets in media_texts until the
                                           message is complete; it owns their
                                           blocks until then */
    llm_buf_t                  media_texts;
    uint32_t                   n_urls;  /* of media, media that are fetched */
    uint32_t                   n_choices;   /* choices of all prompts
                                               together */
    uint32_t                   n_best;      /* choices of each prompt that
                                               remain in the end; 0: all */
    int                        hide_logprobs;   /* logprobs are computed only
                                                   to rank the choices */
    uint32_t                   options;     /* flags of the endpoint, for its
                                               writers */
    unsigned                   usage;   /* of a stream: LLM_API_USAGE_... */
    int                        as_ids;  /* logprobs name tokens by their ids */
} llm_api_reader_t;

/* a member of a body by which the body is another endpoint's */
typedef struct {
    const char                *member;
    const llm_api_endpoint_t  *endpoint;
} llm_api_other_t;

struct llm_api_endpoint_s {
    /* answers at once, needing neither a body nor the engine; if set, all
       members below but error are NULL.  rest is what follows a path that ends
       in a slash */
    int                     (*answer)(const llm_api_conf_t *conf,
                                      llm_str_t rest, llm_buf_t *out,
                                      llm_err_t *err);

    llm_task_t                task;
    int                       bodiless; /* a GET: the request consists of the
                                           model, given as an argument */
    int                       form;     /* the body is a form with a sound,
                                           see sound_form.h; read() and fields
                                           are NULL */
    const llm_api_fields_t   *fields;   /* the endpoint's own */
    const llm_api_fields_t   *shared;   /* shared ones; may be NULL */

    int                     (*read)(llm_api_reader_t *rd, llm_err_t *err);
    /* writes a stream's frames for an event; ERROR events never come here */
    void                    (*event)(llm_api_t *a, const llm_event_t *ev,
                                     llm_buf_t *out);
    /* as llm_api_body_next() */
    int                     (*body)(llm_api_t *a, size_t max,
                                    llm_buf_t *out);

    /* what follows may be NULL */

    /* the chat's names of parameters with the endpoint's own names, for
       errors; the last is NULL */
    const llm_api_name_t     *names;
    /* header in which the endpoint's clients look for the request's id */
    const char               *id_header;
    /* keeps what is needed of an event, streamed or not, before event() gets
       it; ERROR events never come here.  If NULL, TEXT events are kept for
       body() unless the answer is streamed */
    int                     (*keep)(llm_api_t *a, const llm_event_t *ev,
                                    llm_err_t *err);
    /* writes an error's body, or its frames in a stream that has begun; NULL:
       the form is OpenAI's.  id is the request's */
    void                    (*error)(const llm_err_t *err, llm_str_t id,
                                     llm_buf_t *out);
    void                    (*fail)(llm_api_t *a, const llm_err_t *err,
                                    llm_buf_t *out);
    /* adds the answer's text so far; NULL: TEXT events have it */
    void                    (*text)(const llm_api_t *a, llm_buf_t *out);
    /* media type of a body; NULL: application/json */
    const char             *(*body_type)(const llm_api_t *a);
    /* media type of a stream; NULL: text/event-stream */
    const char               *stream_type;
    /* writes a frame that says nothing; NULL: a comment */
    void                    (*heartbeat)(const llm_api_t *a, llm_buf_t *out);
    /* endpoints of other dialects at the same path; the last member is NULL.
       Errors found before the body is read have the form of this endpoint */
    const llm_api_other_t    *others;
    /* the endpoint at the path after "v1/", where it is no other dialect's;
       NULL: this one */
    const llm_api_endpoint_t *v1;
};

typedef struct {
    const char                *path;    /* if it ends in a slash, all paths
                                           that begin with it, too */
    const char                *methods;     /* as in Allow: "GET, HEAD" */
    const llm_api_endpoint_t  *endpoint;
    uint32_t                   scope;   /* LLM_SCOPE_... of an API key */
} llm_api_row_t;

/* endpoints.c: the table; the last path is NULL */
extern const llm_api_row_t  llm_api_endpoints[];

extern const llm_api_endpoint_t  llm_api_chat;
extern const llm_api_endpoint_t  llm_api_chat_any;
extern const llm_api_endpoint_t  llm_api_completions;
extern const llm_api_endpoint_t  llm_api_completions_any;
extern const llm_api_endpoint_t  llm_api_chat_tokens;
extern const llm_api_endpoint_t  llm_api_compact;
extern const llm_api_endpoint_t  llm_api_count_tokens;
extern const llm_api_endpoint_t  llm_api_embeddings;
extern const llm_api_endpoint_t  llm_api_input_tokens;
extern const llm_api_endpoint_t  llm_api_load;
extern const llm_api_endpoint_t  llm_api_messages;
extern const llm_api_endpoint_t  llm_api_models;
extern const llm_api_endpoint_t  llm_api_ping;
extern const llm_api_endpoint_t  llm_api_props;
extern const llm_api_endpoint_t  llm_api_rerank;
extern const llm_api_endpoint_t  llm_api_responses;
extern const llm_api_endpoint_t  llm_api_score;
extern const llm_api_endpoint_t  llm_api_tokenize;
extern const llm_api_endpoint_t  llm_api_detokenize;
extern const llm_api_endpoint_t  llm_api_template;
extern const llm_api_endpoint_t  llm_api_tokenizer_info;
extern const llm_api_endpoint_t  llm_api_infill;
extern const llm_api_endpoint_t  llm_api_version;
extern const llm_api_endpoint_t  llm_api_completion;
extern const llm_api_endpoint_t  llm_api_embedding;
extern const llm_api_endpoint_t  llm_api_slots;
extern const llm_api_endpoint_t  llm_api_transcriptions;
extern const llm_api_endpoint_t  llm_api_translations;
extern const llm_api_endpoint_t  llm_api_tei_embed;
extern const llm_api_endpoint_t  llm_api_tei_rerank;
extern const llm_api_endpoint_t  llm_api_ollama_chat;
extern const llm_api_endpoint_t  llm_api_ollama_embed;
extern const llm_api_endpoint_t  llm_api_ollama_embeddings;
extern const llm_api_endpoint_t  llm_api_ollama_generate;
extern const llm_api_endpoint_t  llm_api_ollama_none;
extern const llm_api_endpoint_t  llm_api_ollama_ps;
extern const llm_api_endpoint_t  llm_api_ollama_show;
extern const llm_api_endpoint_t  llm_api_ollama_tags;
extern const llm_api_endpoint_t  llm_api_ollama_version;


/* error.c: replaces a chat's names of parameters in an error by the
   endpoint's */
void llm_api_own_names(const llm_api_endpoint_t *ep, llm_err_t *err);
/* the same for an error in a tool's schema, with the paths of
   llm_api_reader_t's schemas; does nothing for a chat, which has no such
   paths */
void llm_api_own_schema(llm_str_t schemas, llm_err_t *err);

/* an error() where the path is llama-server's */
void llm_api_llama_error(const llm_err_t *err, llm_str_t id, llm_buf_t *out);

/* adds an error's message, without quotes, for a form that has no member for
   the parameter: begins with its name where the message does not say it */
void llm_api_error_text(const llm_err_t *err, llm_buf_t *out);


/* ---- for readers ---- */

/* fields.c: reads and checks the fields of a body, by the rows of its
   endpoint, into to, which holds the defaults */
int llm_api_read_fields(const llm_api_reader_t *rd, void *to,
    llm_err_t *err);

/* how an endpoint treats a field of this name */
typedef enum {
    LLM_API_UNKNOWN = 0,
    LLM_API_CHECKED,                    /* known, without effect */
    LLM_API_READ,                       /* read, but the endpoint runs no
                                           model */
    LLM_API_RUN
} llm_api_known_t;

llm_api_known_t llm_api_knows(const llm_api_endpoint_t *ep, llm_str_t name);

/* preset.c: adds defaults that the body does not name; flat holds the body, an
   object, and nothing else */
void llm_api_preset_apply(const llm_api_preset_t *p,
    const llm_api_endpoint_t *ep, llm_buf_t *flat);

/* guard_members.c: appends the members of a body and the closing brace, for a
   guard */
void llm_api_guard_rest(const llm_flat_t *root, llm_buf_t *out);

/* request.c: an empty reader, of an empty message; and its end, refused: with
   the media that were taken, which no message owns */
void llm_api_reader_init(llm_api_reader_t *rd, const llm_api_endpoint_t *ep,
    const llm_api_conf_t *conf, llm_buf_t *msg);
void llm_api_reader_free(llm_api_reader_t *rd, int refused);
/* request.c: the steps of a reader, in the order in which errors are reported;
   b is the struct of the endpoint's fields */
void llm_api_defaults(llm_api_body_t *b);
/* reads the fields, the model, and the form of the answer */
int llm_api_read_body(llm_api_reader_t *rd, llm_api_body_t *b,
    llm_err_t *err);
/* the same for endpoints that generate nothing: the fields of to, and the
   model, whose name is one of these fields */
int llm_api_read_plain(llm_api_reader_t *rd, void *to, const llm_str_t *model,
    llm_err_t *err);
/* samplers.c: turns off the stages that the list, if there is one, has not */
int llm_api_read_samplers(llm_sampling_t *s, const llm_flat_t *v,
    llm_err_t *err);
int llm_api_read_sampling(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err);
/* param names the request's own limit and max is its value, or -1; usual is
   the endpoint's default if the model has none, or -1 */
int llm_api_read_limits(llm_api_reader_t *rd, const llm_api_body_t *b,
    const char *param, int64_t max, int64_t usual, llm_err_t *err);
int llm_api_read_priority(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err);

/* lists.c: appends a string to the message */
llm_ref_t llm_api_write_string(llm_buf_t *msg, llm_str_t s);
/* appends stops, stop_token_ids, logit_bias, allowed tokens, bad
   words and sequence breakers to the message */
int llm_api_write_lists(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err);
/* at most max prompts: a string, a list of token ids, or an array of these;
   appends llm_prompt_ref_t[len] */
int llm_api_write_prompts(const llm_flat_t *v, const llm_api_at_t *at,
    uint32_t max, llm_buf_t *msg, llm_ref_t *ref, llm_err_t *err);
/* the same with other forms of a prompt, as in llama-server: an object with a
   text; or that, or a list of strings and token ids */
#define LLM_API_OBJECTS  1
#define LLM_API_MIXED    2
int llm_api_write_forms(const llm_flat_t *v, unsigned forms,
    const llm_api_at_t *at, uint32_t max, llm_buf_t *msg, llm_ref_t *ref,
    llm_err_t *err);
/* rule.c: appends the form that the answer must have to the message */
int llm_api_write_rule(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err);
/* do the fields, which may be invalid, ask for JSON? */
int llm_api_wants_json(const llm_api_body_t *b);
/* lists.c: appends a list of token ids */
int llm_api_write_ids(const llm_flat_t *list, const llm_api_at_t *at,
    llm_buf_t *msg, llm_ref_t *ref, llm_err_t *err);

/* own of a transcription's answer: form.c sets the form's part, the rest is
   endpoint_transcriptions.c's and begins with zeros */
typedef struct llm_api_record_s  llm_api_record_t;
typedef struct {
    llm_transcript_format_t  format;
    unsigned                 has;       /* LLM_TRANSCRIPT_... */
    llm_api_record_t        *first;     /* records of segments, in the arena */
    llm_api_record_t        *last;
    const llm_api_record_t  *told;      /* last one that was streamed; NULL:
                                           none */
    int                      begun;     /* a text was streamed */
    llm_str_t                body;      /* in the arena; data NULL: not written
                                           yet */
    size_t                   at;        /* bytes of the body so far */
} llm_api_heard_t;

/* frames.c: {"id":"PREFIX...","object":... up to the first choice's index,
   to rd->head; chunk is the object of a stream */
void llm_api_write_head(llm_api_reader_t *rd, const char *prefix,
    const char *object, const char *chunk);


/* ---- an answer ---- */

/* the length of a choice's text before an event */
struct llm_api_place_s {
    size_t             bytes;
    size_t             chars;
};

/* a kept event; the arena owns its memory */
typedef struct llm_api_piece_s  llm_api_piece_t;

struct llm_api_piece_s {
    llm_api_piece_t   *next;
    llm_event_t        ev[];
};

typedef struct {
    llm_api_piece_t   *first;
    llm_api_piece_t   *last;
} llm_api_list_t;

/* one choice of an answer; events are kept only if it is not streamed */

typedef struct {
    uint32_t           finish;          /* llm_finish_t */
    uint32_t           n_tokens;        /* tokens of the events so far */
    uint32_t           n_reasoning;     /* reasoning tokens of the events so
                                           far */
    uint32_t           n_calls;         /* tool calls begun */
    unsigned           has_content:1;
    unsigned           has_reasoning:1;
    unsigned           hit:1;           /* a stop string ended the choice */
    unsigned           told:1;          /* a stream has sent the prompt's ids */
    llm_api_place_t    place;           /* position in a stream */
    llm_api_list_t     own;
    llm_api_list_t     echo;            /* events of the prompt's echo; only in
                                           the first choice of each prompt */
    llm_api_list_t     shown;           /* the same of its text that is shown */
} llm_api_choice_t;

/* how far a body has been written; see body.c */

typedef struct {
    uint32_t                choice;
    uint32_t                member;
    uint32_t                array;      /* array of the logprobs */
    uint32_t                at;         /* position in the piece: a byte, or a
                                           token */
    unsigned                opened:1;   /* the member has begun */
    unsigned                some:1;     /* the member has an item already */
    unsigned                in_echo:1;  /* the piece belongs to the echo */
    const llm_api_piece_t  *piece;      /* NULL: there are no more pieces */
    llm_api_place_t         place;      /* position before the piece */
} llm_api_cursor_t;

struct llm_api_s {
    const llm_api_endpoint_t  *endpoint;

    uint32_t           model;
    uint32_t           n;               /* choices of each prompt */
    uint32_t           n_choices;       /* choices of all prompts */
    uint32_t           n_best;          /* choices of each prompt that remain
                                           when all have ended; 0: all */
    int32_t            n_logprobs;      /* logprobs per token; -1: none */

    unsigned           stream:1;
    unsigned           token_ids:1;
    unsigned           shown:1;         /* LLM_REQ_SHOW, streamed or not */
    unsigned           as_ids:1;        /* as in the reader */
    unsigned           due:1;           /* a chat's stream sends the roles
                                           later, with the prompt's ids */
    unsigned           started:1;       /* START has come */

    unsigned           show_usage;      /* in a stream: LLM_API_USAGE_... */
    uint32_t           options;         /* as in the reader */
    uint32_t           ctx;             /* context of the model, once START has
                                           come */
    uint64_t           start_us;        /* time when the request began to run,
                                           which is START's; 0: it has not */
    uint64_t           first_us;        /* when the first text came; 0: none */
    llm_api_usage_t    usage;

    llm_str_t          id;              /* the request's id, without prefix */
    llm_str_t          user;            /* without control characters */
    llm_str_t          metadata;        /* JSON, or empty */
    llm_str_t          head;            /* see llm_api_write_head() */
    void              *own;             /* as in the reader */
    llm_str_t          schemas;         /* as in the reader */
    llm_api_choice_t  *choices;

    llm_arena_t        kept;            /* kept events, or texts of items */
    size_t             gathered;        /* bytes that are kept */
    size_t             max_answer;      /* bound of gathered */
    llm_api_cursor_t   cursor;
    llm_api_output_t   output;          /* state of endpoints with items */
};

/* answer.c: copies what it needs of rd and its conf; NULL: no memory */
llm_api_t *llm_api_create(const llm_api_reader_t *rd);

/* vectors may have more bytes than texts: 2,048 inputs of 4,096 numbers are
   allowed where a text is bounded by 16 MB */
#define LLM_API_VECTORS  3              /* times max_answer */

/* best_of.c: keeps only n_best choices of each prompt, once all have ended */
void llm_api_keep_best(llm_api_t *a);

/* body.c: memory for kept parts of the answer; NULL: the answer is too large,
   or no memory */
void *llm_api_keep(llm_api_t *a, size_t size, llm_err_t *err);
/* keeps a TEXT event of a prompt's text that is shown */
int llm_api_gather_shown(llm_api_t *a, const llm_event_t *ev, llm_err_t *err);
/* keeps a TEXT or a VECTOR event; LLM_ERROR: as above */
int llm_api_gather(llm_api_t *a, const llm_event_t *ev, llm_err_t *err);
int llm_api_gather_vector(llm_api_t *a, const llm_event_t *ev,
    llm_err_t *err);


/* ---- for event writers and body writers ---- */

/* body.c: writes the kept texts one after another, for endpoints whose answer
   is not generated; LLM_OK, LLM_MORE or LLM_ERROR, as llm_api_body_next();
   cur->piece is the next one */
int llm_api_write_kept(llm_api_t *a, size_t max, llm_buf_t *out);
/* body.c: the kept texts as one flat value, which they are the pieces of; the
   caller frees it after LLM_OK */
int llm_api_kept_flat(const llm_api_t *a, llm_buf_t *flat);

/* pieces.c */
const char *llm_api_finish_name(uint32_t finish);
void llm_api_add_uint(llm_buf_t *out, uint64_t v);
/* {"prompt_tokens": ...} */
void llm_api_add_usage(llm_buf_t *out, const llm_api_t *a);
/* timings.c: adds ,"timings":{...} if they were asked for */
void llm_api_add_timings(llm_buf_t *out, const llm_api_t *a);
/* are the event's ids those of a prompt? */
int llm_api_is_prompt(const llm_event_t *ev);
/* adds "prompt_token_ids": the kept ids of a choice's prompt */
void llm_api_add_prompt_ids(llm_buf_t *out, const llm_api_t *a,
    uint32_t choice);
/* the event's token ids, comma-separated */
void llm_api_add_ids(llm_buf_t *out, const llm_event_t *ev);
void llm_api_add_event_text(llm_buf_t *out, const llm_event_t *ev);

/*
 * logprobs.c.  The "logprobs" member of a choice has one or several arrays
 * with an item for each token; the endpoint defines what they look like.
 */

typedef struct {
    uint32_t            n_arrays;
    int32_t             offsets;        /* index of the array whose items
                                           depend on place, or -1 */
    const char *const  *before;         /* text before the items of each
                                           array */
    const char         *after;          /* text after the last array's items */

    llm_api_logprob_pt  item;           /* place: position before the event */
} llm_api_logprobs_t;

/* the value of the member for one event; null if it has no logprobs */
void llm_api_add_logprobs(llm_buf_t *out, const llm_api_t *a,
    const llm_api_logprobs_t *format, const llm_api_place_t *place,
    const llm_event_t *ev);
void llm_api_add_logprob(llm_buf_t *out, float logprob);
void llm_api_add_token_id(llm_buf_t *out, int32_t id);
/* characters that begin in s */
size_t llm_api_count_chars(const char *s, size_t len);
/* moves the place past the event's text */
void llm_api_count_text(llm_api_place_t *place, const llm_event_t *ev);

/* frames.c: a frame is the head, the choice's index, what the endpoint adds,
   and an end */
void llm_api_open_frame(const llm_api_t *a, uint32_t index, llm_buf_t *out);
void llm_api_close_frame(const llm_api_t *a, llm_buf_t *out);
/* end of a frame after the choices */
void llm_api_end_frame(const llm_api_t *a, llm_buf_t *out);
/* does a TEXT event make a frame? */
int llm_api_has_frame(const llm_api_t *a, const llm_event_t *ev);
/* adds what follows the text, and the frame's end */
void llm_api_close_text(llm_api_t *a, const llm_event_t *ev,
    const llm_api_logprobs_t *format, llm_buf_t *out);
/* adds what follows the text in the frame that ends a choice */
/* a frame of a PROGRESS event; text: the member where text would be */
void llm_api_progress_frame(const llm_api_t *a, const llm_event_t *ev,
    const char *text, llm_buf_t *out);
void llm_api_finish_frame(const llm_api_t *a, const llm_event_t *ev,
    const char *logprobs, llm_buf_t *out);
/* adds usage, if it was asked for, and [DONE] */
void llm_api_last_frames(const llm_api_t *a, llm_buf_t *out);

/*
 * body.c: a choice of a body is a row of members, each in three parts.  open()
 * writes what comes before the items: LLM_MORE if items follow, LLM_OK if that
 * was all of the member.  item() writes a little and returns LLM_MORE, or
 * LLM_OK when there are no more; then the text `behind` is written.
 */

typedef struct {
    int         (*open)(const llm_api_t *a, llm_api_cursor_t *cur,
                        llm_buf_t *out);
    int         (*item)(const llm_api_t *a, llm_api_cursor_t *cur,
                        llm_buf_t *out);
    const char   *behind;
} llm_api_member_t;

/*
 * Writes the body of an endpoint with choices, like llm_api_body_next().  The
 * member `prompt` is written after the choices, for the first choice's prompt;
 * NULL: there is none.
 */
int llm_api_write_choices(llm_api_t *a, const llm_api_member_t *members,
    uint32_t n_members, const llm_api_member_t *prompt, size_t max,
    llm_buf_t *out);
/* moves the cursor to the next piece */
void llm_api_next_piece(const llm_api_t *a, llm_api_cursor_t *cur);

/*
 * list.c: an answer that is a list and has no text.  item() writes a little of
 * the item cursor.choice and returns LLM_MORE, or LLM_OK after its end;
 * cursor.opened tells item() whether the item has begun.
 */

typedef int (*llm_api_item_pt)(llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out);

/* writes {"id":"PREFIX...","object":"list",... up to the items of "MEMBER" to
   rd->head */
void llm_api_write_list_head(llm_api_reader_t *rd, const char *prefix,
    const char *member);
/* writes the head and n items, like llm_api_body_next(), but not the end */
int llm_api_write_array(llm_api_t *a, uint32_t n, llm_api_item_pt item,
    size_t max, llm_buf_t *out);
/* writes a list of n items, like llm_api_body_next() */
int llm_api_write_list(llm_api_t *a, uint32_t n, llm_api_item_pt item,
    size_t max, llm_buf_t *out);
void llm_api_add_float(llm_buf_t *out, float v);

/* vectors.c: reads the inputs to be embedded, a member of this name, and what
   goes with them; forms as for llm_api_write_forms(); vectors are normalised
   unless the caller changes that */
int llm_api_read_inputs(llm_api_reader_t *rd, const llm_api_body_t *b,
    const llm_flat_t *input, const char *param, unsigned forms,
    llm_err_t *err);
/* moves the cursor to the first value of its choice's vector */
void llm_api_first_value(const llm_api_t *a, llm_api_cursor_t *cur);
/* writes some values, as numbers with commas unless base64 is given: LLM_MORE,
   or LLM_OK and nothing after the last */
int llm_api_write_values(llm_api_cursor_t *cur, llm_base64_t *base64,
    llm_buf_t *out);
/* an item() that writes a vector as an array */
int llm_api_write_vector(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out);

/* members that look the same in all bodies */
int llm_api_open_finish(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out);
int llm_api_open_ids(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out);
int llm_api_write_id(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out);
int llm_api_open_prompt_ids(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out);
int llm_api_write_prompt_id(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out);
/* parts that an open() and an item() consist of */
int llm_api_open_logprobs(const llm_api_t *a, const llm_api_logprobs_t *format,
    llm_buf_t *out);
int llm_api_write_logprob(const llm_api_t *a, const llm_api_logprobs_t *format,
    llm_api_cursor_t *cur, llm_buf_t *out);
/* writes one slice of the text of this part */
int llm_api_write_text(const llm_api_t *a, llm_api_cursor_t *cur,
    uint32_t part, llm_buf_t *out);

#endif /* LLM_API_ENDPOINT_H */
