/*
 * A fuzz target of whole requests over HTTP: table.c reads which parameters
 * there are, values.c and body.c make bodies of them (known.c, items.c and
 * rules.c what they are for), script.c makes of a number what one connection
 * sends and how it behaves, check.c and check_more.c judge the answers, main.c
 * drives many connections, health.c asks for /health beside.
 *
 * Invariant: a script depends on the seed, its number and the mask of left
 * out parameters alone, so that whatever was sent can be sent again.
 *
 * Memory: buffers grow and are kept for the next script; no memory ends the
 * program.
 */

#ifndef FZ_HTTP_H
#define FZ_HTTP_H

#include <stddef.h>
#include <stdint.h>

#define FZ_MAX_FIELDS    512
#define FZ_MAX_REQUESTS  8              /* of one script: four, each twice */

/* of a mask: sent at once, in one piece, and read to the end */
#define FZ_PLAIN         (1ull << 63)

/* endpoints: bits, because a field may belong to several */
#define FZ_CHAT          0x001
#define FZ_COMPL         0x002
#define FZ_MESSAGES      0x004
#define FZ_COUNT         0x008          /* messages/count_tokens */
#define FZ_RESPONSES     0x010
#define FZ_EMBED         0x020
#define FZ_RERANK        0x040
#define FZ_SCORE         0x080
#define FZ_TOKENIZE      0x100
#define FZ_DETOKENIZE    0x200
#define FZ_TEMPLATE      0x400
#define FZ_INFILL        0x800

/* those whose answer is a text that the model writes */
#define FZ_WRITES        (FZ_CHAT | FZ_COMPL | FZ_MESSAGES | FZ_RESPONSES   \
                          | FZ_INFILL)

#define fz_nelems(a)     (sizeof(a) / sizeof((a)[0]))

typedef struct {
    char              *data;
    size_t             len;
    size_t             cap;
} fz_buf_t;

typedef struct {
    uint64_t           state;
} fz_rand_t;

/* as in engine/api/endpoint.h and engine/base/sampling.def */
typedef enum {
    FZ_BOOL,
    FZ_INT,
    FZ_NUMBER,
    FZ_ABOVE,
    FZ_STRING,
    FZ_ARRAY,
    FZ_OBJECT,
    FZ_ANY,
    FZ_REQUIRED,
    FZ_REFUSED
} fz_type_t;

typedef struct {
    char               name[64];
    unsigned           endpoints;
    fz_type_t          type;
    double             min;
    double             max;
} fz_field_t;

typedef struct {
    fz_field_t         fields[FZ_MAX_FIELDS];
    unsigned           n_fields;
    unsigned           vocab;           /* tokens of the model */
} fz_table_t;

/* what has to be known of a request to judge its answer; -1: unknown */
typedef struct {
    int                endpoint;        /* FZ_CHAT ..., 0: another */
    int                head;            /* there is no body */
    int                loose;           /* only the status is looked at */
    int                n;               /* choices */
    int                prompts;         /* inputs, documents */
    int                stream;
    int                usage;           /* asked for in the stream */
    int                bad;             /* must be refused ... */
    char               why[64];         /* ... for this parameter */
} fz_want_t;

typedef struct {
    const fz_table_t  *table;
    fz_rand_t          rand;
    uint64_t           mask;            /* parameters to leave out */
    unsigned           member;          /* parameters until now */
    unsigned           broken;          /* not JSON any more */
    fz_want_t          want;
    fz_buf_t           body;
} fz_gen_t;

typedef struct {
    uint64_t           number;
    fz_buf_t           out;
    unsigned           n_requests;
    fz_want_t          want[FZ_MAX_REQUESTS];
    int                loose;           /* nothing has to come */
    int                close;           /* the connection ends with it */
    size_t             piece;           /* bytes of a write, 0: all */
    unsigned           pause;           /* ms between them */
    size_t             leave_sent;      /* go after so many bytes sent ... */
    size_t             leave_got;       /* ... or received; 0: stay */
    int                reset;           /* by a reset */
    int                half;            /* only the side that writes */
    size_t             stall_at;        /* stop reading after so many */
    unsigned           stall_ms;        /* for so long, 0: never stop */
} fz_script_t;

/* an answer as it comes */
typedef struct {
    int                state;
    int                status;
    int                chunked;
    int                close;
    int                stream;          /* text/event-stream */
    int                json;
    int                allow;           /* the header is there */
    int                retry;
    int                whole;
    int64_t            length;          /* -1: until the end */
    fz_buf_t           body;
    fz_buf_t           line;
} fz_answer_t;


/* util.c */
void fz_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void fz_add(fz_buf_t *b, const void *data, size_t len);
void fz_adds(fz_buf_t *b, const char *s);
void fz_addf(fz_buf_t *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void fz_repeat(fz_buf_t *b, const char *s, size_t n);
void fz_seed(fz_rand_t *r, uint64_t seed, uint64_t number);
uint64_t fz_rand(fz_rand_t *r);
unsigned fz_below(fz_rand_t *r, unsigned n);
/* true in so many of a thousand cases */
int fz_chance(fz_rand_t *r, unsigned permille);
void fz_print(const char *data, size_t len, size_t max);

/* table.c */
void fz_table_read(fz_table_t *t, const char *folder);
/* the endpoint by a number below FZ_ENDPOINTS */
#define FZ_ENDPOINTS     12
int fz_endpoint(unsigned i, const char **path);

/* values.c: a value of any kind, of a field's type, a string */
void fz_any(fz_gen_t *g, int depth);
void fz_value(fz_gen_t *g, const fz_field_t *f);
void fz_string(fz_gen_t *g);
void fz_edge(fz_gen_t *g, const fz_field_t *f);

/* known.c: a value that is what the parameter is for; false: none known */
int fz_known(fz_gen_t *g, const char *name);

void fz_content(fz_gen_t *g);
void fz_messages(fz_gen_t *g);
void fz_ids(fz_gen_t *g, unsigned n);

/* items.c: what Messages, Responses and the endpoints without a text take */
void fz_blocks_messages(fz_gen_t *g);
void fz_system(fz_gen_t *g);
void fz_blocks_tools(fz_gen_t *g);
void fz_blocks_choice(fz_gen_t *g);
void fz_thinking(fz_gen_t *g);
void fz_items(fz_gen_t *g);
void fz_items_tools(fz_gen_t *g);
void fz_include(fz_gen_t *g);
void fz_inputs(fz_gen_t *g);
void fz_documents(fz_gen_t *g);
void fz_detokenize(fz_gen_t *g);
void fz_extra(fz_gen_t *g);

/* rules.c: what an answer must look like */
void fz_schema(fz_gen_t *g, int depth);
void fz_schema_field(fz_gen_t *g);
void fz_format(fz_gen_t *g);
void fz_format_text(fz_gen_t *g);
void fz_structured(fz_gen_t *g);
void fz_regex(fz_gen_t *g);
void fz_grammar(fz_gen_t *g);

/* body.c */
void fz_body(fz_gen_t *g, int endpoint);
void fz_break(fz_gen_t *g);

/* script.c */
void fz_script(fz_script_t *s, const fz_table_t *t, uint64_t seed,
    uint64_t number, uint64_t mask);

/* check.c: how many bytes of data were the answer's; *err is NULL or why
 * this is no answer; end: no more bytes will come */
size_t fz_answer_read(fz_answer_t *a, const fz_want_t *w, const char *data,
    size_t len, int end, const char **err);
void fz_answer_reset(fz_answer_t *a);
/* NULL or what is wrong with a whole answer */
const char *fz_check(const fz_answer_t *a, const fz_want_t *w);
/* strict where cJSON is not; NULL: *err says why */
struct cJSON *fz_json(const char *data, size_t len, const char **err);
const char *fz_wrong(const char *what, const char *more);
const char *fz_check_error(const fz_answer_t *a, const fz_want_t *w);

/* check_more.c: as fz_check(), a 200 of the other endpoints */
const char *fz_check_more(const fz_answer_t *a, const fz_want_t *w);

/* health.c */
struct sockaddr_in;
void fz_health_start(const struct sockaddr_in *addr);
void fz_health_stop(void);

#endif /* FZ_HTTP_H */
