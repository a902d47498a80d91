/*
 * The values that a template computes with, and the rendering they belong to.
 * Internal to engine/text/jinja/.
 *
 * Invariant: values are immutable, except lists and dictionaries
 * (builtin_change.c, {% set x.y %}), namespaces, loops, iterators and joiners.
 * All memory comes from the rendering's arena and is freed with it; constants
 * are in the template's arena, which is read-only by then.  A string is a
 * window on bytes that many strings may share; bytes only grow at their end,
 * so no window ever changes.
 *
 * Trust: llm_jbytes_t knows for every byte whether it came from the template.
 * A number has the flag "tainted" for that.
 */

#ifndef LLM_JINJA_VALUE_H
#define LLM_JINJA_VALUE_H

#include "engine/text/jinja/jinja.h"

typedef enum {
    LLM_J_MISSING = 0,                  /* no value: an argument that was not
                                           given, or a slot that is not set */
    LLM_J_UNDEF,
    LLM_J_NONE,
    LLM_J_BOOL,
    LLM_J_INT,
    LLM_J_FLOAT,
    LLM_J_STR,
    LLM_J_LIST,
    LLM_J_TUPLE,
    LLM_J_DICT,
    LLM_J_VIEW,                         /* keys(), values(), items() */
    LLM_J_RANGE,
    LLM_J_ITER,                         /* what lazy filters return */
    LLM_J_NS,
    LLM_J_LOOP,
    LLM_J_MACRO,
    LLM_J_FUNC,
    LLM_J_METHOD,
    LLM_J_JOINER
} llm_jtype_t;

typedef struct llm_jrt_s     llm_jrt_t;
typedef struct llm_js_s      llm_js_t;
typedef struct llm_jlist_s   llm_jlist_t;
typedef struct llm_jdict_s   llm_jdict_t;
typedef struct llm_jundef_s  llm_jundef_t;
typedef struct llm_jview_s   llm_jview_t;
typedef struct llm_jrange_s  llm_jrange_t;
typedef struct llm_jiter_s   llm_jiter_t;
typedef struct llm_jloop_s   llm_jloop_t;
typedef struct llm_jmacro_s  llm_jmacro_t;
typedef struct llm_jbound_s  llm_jbound_t;
typedef struct llm_jfunc_s   llm_jfunc_t;
typedef struct llm_jjoiner_s llm_jjoiner_t;
typedef struct llm_jframe_s  llm_jframe_t;
typedef struct llm_jnode_s   llm_jnode_t;

typedef struct {
    uint8_t                type;        /* llm_jtype_t */
    uint8_t                tainted;     /* 1: a number that comes from the
                                           variables */
    uint32_t               big;         /* FLOAT that is an integer beyond 64
                                           bits, from the variables: index,
                                           from 1, of its digits in rt->bigs;
                                           0: other values */

    union {
        int64_t            i;           /* BOOL, INT */
        double             f;
        llm_js_t          *s;
        llm_jlist_t       *list;        /* LIST, TUPLE */
        llm_jdict_t       *dict;        /* DICT, NS */
        llm_jundef_t      *undef;
        llm_jview_t       *view;
        llm_jrange_t      *range;
        llm_jiter_t       *iter;
        llm_jloop_t       *loop;
        llm_jmacro_t      *macro;
        const llm_jfunc_t *func;
        llm_jbound_t      *bound;
        llm_jjoiner_t     *joiner;
    } u;
} llm_jv_t;


/* strings */

typedef struct {
    char        *data;
    size_t       used;
    size_t       cap;                   /* capacity; 0: the bytes are not owned
                                           and cannot grow */
    size_t      *flips;                 /* ascending offsets at which trust
                                           changes */
    size_t       n_flips;
    size_t       cap_flips;
    int          trusted;               /* trust of byte 0 */
} llm_jbytes_t;

#define LLM_J_UNCOUNTED  SIZE_MAX

struct llm_js_s {
    llm_jbytes_t  *bytes;
    size_t         start;
    size_t         len;
    size_t         chars;               /* number of characters, or
                                           LLM_J_UNCOUNTED */
    uint32_t       hash;                /* 0: not computed */
    int            markup;              /* 1: escaped HTML, as from jinja's
                                           |safe */
};

/* a string that is being written */
typedef struct {
    llm_jrt_t     *rt;
    llm_jbytes_t  *bytes;
    size_t         limit;               /* most bytes; 0: only memory is
                                           bounded */
} llm_jb_t;


/* the others */

struct llm_jlist_s {
    llm_jv_t    *v;
    size_t       n;
    size_t       cap;
};

typedef struct {
    llm_jv_t     key;
    llm_jv_t     value;
    uint32_t     hash;
} llm_jpair_t;

struct llm_jdict_s {
    llm_jpair_t  *v;                    /* in order of insertion */
    size_t        n;
    size_t        cap;
    uint32_t     *index;                /* position + 1; NULL while small */
    size_t        index_cap;            /* a power of two */
};

struct llm_jundef_s {
    const char  *hint;                  /* the whole message, or NULL */
    llm_jv_t     name;
    llm_jv_t     object;                /* object without the attribute;
                                           MISSING for a variable */
};

typedef enum {
    LLM_J_KEYS,
    LLM_J_VALUES,
    LLM_J_ITEMS
} llm_jview_kind_t;

struct llm_jview_s {
    llm_jdict_t      *dict;
    llm_jview_kind_t  kind;
};

struct llm_jrange_s {
    int64_t      start;
    int64_t      stop;
    int64_t      step;
    int64_t      n;
};

struct llm_jiter_s {
    llm_jlist_t  list;
    size_t       pos;
    const char  *type;                  /* "generator", for messages */
};

struct llm_jmacro_s {
    const llm_jnode_t  *node;
    llm_jframe_t       *frame;          /* frame in which it was defined */
};

struct llm_jbound_s {
    const llm_jfunc_t  *func;
    llm_jv_t            self;
};

struct llm_jjoiner_s {
    llm_jv_t            sep;
    int                 used;           /* 1: called before, so it joins */
};

/* an iteration over an iterable; LLM_J_ITER uses the value's own position */
typedef struct {
    llm_jv_t            over;
    size_t              pos;
} llm_jcur_t;

struct llm_jloop_s {
    const llm_jnode_t  *node;
    llm_jframe_t       *outer;          /* frame around the loop */
    llm_jframe_t       *test;           /* frame of the condition; NULL until
                                           needed */
    llm_jcur_t          cur;
    llm_jlist_t        *rest;           /* items read ahead for loop.length */
    size_t              rest_pos;
    int64_t             index0;
    int64_t             length;         /* -1: not known yet */
    int64_t             depth0;
    llm_jv_t            after;          /* next item, read ahead; MISSING: not
                                           read */
    llm_jv_t            current;
    llm_jv_t            before;
};


/* functions */

typedef struct {
    llm_jv_t           *v;              /* positional arguments */
    size_t              n;
    llm_jpair_t        *kw;             /* keyword arguments; keys are
                                           strings */
    size_t              n_kw;
    const llm_jfunc_t  *f;              /* the builtin that is called */
} llm_jargs_t;

typedef int llm_jfn_t(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res);

/*
 * A builtin.  With params, args->v has one value for each parameter (MISSING
 * if it is optional and absent) and n_kw is 0; without params (NULL), the
 * arguments are passed as given.  The subject of a filter, a test or a method
 * is v[0] and is not in params.
 *
 * "a:i b:S?" are two parameters; "?" means optional, "/" in front of all means
 * that none may be given by keyword.  Types: i an integer, s a string; I and S
 * the same or None, which counts as absent; t any value, converted to text.
 */
struct llm_jfunc_s {
    const char  *name;
    llm_jfn_t   *fn;                    /* NULL: calls are refused */
    const char  *params;
    unsigned     on;                    /* types of subjects, as bits 1 <<
                                           type */
    int          how;                   /* option of fn, with a meaning of its
                                           own */
};

/* in `on` of filters and tests: the subject is converted to text, keeping
   markup or not */
#define LLM_J_TEXT   (1u << 30)
#define LLM_J_PLAIN  (1u << 31)

#define LLM_J_MAX_PARAMS  8


/* one rendering, used by one thread */

struct llm_jframe_s {
    llm_jframe_t  *up;
    llm_jv_t       slots[];
};

struct llm_jrt_s {
    llm_arena_t         arena;
    llm_err_t          *err;
    int                 failed;         /* LLM_ERROR once err is set */
    uint64_t            steps;          /* steps left */
    uint32_t            depth;          /* depth of nested evaluation */
    uint32_t            line;
    int64_t             now;
    size_t              max_output;
    const char *const  *trusted_roles;
    llm_jdict_t        *context;        /* variables and globals */
    llm_jb_t           *out;            /* current target of output */
    llm_str_t          *bigs;           /* digits, in the arena */
    uint32_t            n_bigs;
    uint32_t            cap_bigs;
};

#define LLM_J_MAX_DEPTH   1500
#define LLM_J_MAX_RANGE   100000


/* rendering: errors, limits, memory (jinja.c) */

/* "line N: ..." with status 500; always LLM_ERROR */
int llm_jrt_fail(llm_jrt_t *rt, const char *fmt, ...) llm_printf_like(2, 3);
/* the same for a limit that is reached */
int llm_jrt_limit(llm_jrt_t *rt, const char *fmt, ...) llm_printf_like(2, 3);
void *llm_jrt_alloc(llm_jrt_t *rt, size_t size);

/*
 * Nearly every step may fail, and an error ends the rendering.  These macros
 * return LLM_ERROR from the calling function if x is not LLM_OK, or if p is
 * NULL for lack of memory.  All memory is in the arena, so nothing has to be
 * freed.
 */
#define llm_jtry(x)                                                          \
    do {                                                                     \
        if ((x) != LLM_OK) {                                                 \
            return LLM_ERROR;                                                \
        }                                                                    \
    } while (0)

#define llm_jnew(rt, p, size)                                                \
    do {                                                                     \
        (p) = llm_jrt_alloc(rt, size);                                       \
                                                                             \
        if ((p) == NULL) {                                                   \
            return LLM_ERROR;                                                \
        }                                                                    \
    } while (0)

/*
 * Counts work, 1 for a step; LLM_ERROR when the budget is used up.  Bytes that
 * are copied or compared count 1 each; bytes that are decoded, or mapped and
 * classified, count as many times as below.
 */
int llm_jrt_charge(llm_jrt_t *rt, size_t work);
#define LLM_J_DECODED     8
#define LLM_J_CLASSIFIED  32
#define LLM_J_FLOAT_TEXT  16384         /* work to convert a float to digits or
                                           back */
/* work to look for sub in len bytes, whatever they contain */
int llm_jrt_charge_search(llm_jrt_t *rt, size_t len, const llm_js_t *sub);
/* one level deeper; LLM_ERROR at the limit; every successful enter needs a
   leave */
int llm_jrt_enter(llm_jrt_t *rt);
#define llm_jrt_leave(rt)  ((rt)->depth--)


/* strings (value_str.c) */

static inline const char *
llm_js_data(const llm_js_t *s)
{
    return s->bytes->data + s->start;
}

/* a string of bytes that are not copied: data must outlive the rendering */
llm_js_t *llm_js_wrap(llm_arena_t *a, const char *data, size_t len,
    int trusted);
/* a window on s; byte offsets relative to s */
int llm_js_slice(llm_jrt_t *rt, const llm_js_t *s, size_t start, size_t end,
    llm_jv_t *res);
int llm_js_concat(llm_jrt_t *rt, const llm_js_t *a, const llm_js_t *b,
    llm_jv_t *res);
/* number of characters, counted once */
size_t llm_js_chars(llm_js_t *s);
/* byte offset of a character */
size_t llm_js_offset(llm_js_t *s, size_t chars);
int llm_js_equal(const llm_js_t *a, const llm_js_t *b);
int llm_js_is(const llm_js_t *s, const char *literal);
int llm_js_trusted_at(const llm_js_t *s, size_t pos);
/* first occurrence at or after `from`, or SIZE_MAX */
size_t llm_js_find(const llm_js_t *s, const llm_js_t *sub, size_t from);
size_t llm_js_rfind(const llm_js_t *s, const llm_js_t *sub, size_t end);

/* after the rendering has failed these only return LLM_ERROR */
void llm_jb_init(llm_jb_t *b, llm_jrt_t *rt, size_t limit);
int llm_jb_add(llm_jb_t *b, const char *data, size_t len, int trusted);
int llm_jb_adds(llm_jb_t *b, const char *s, int trusted);
int llm_jb_add_range(llm_jb_t *b, const llm_js_t *s, size_t start,
    size_t end);
int llm_jb_add_str(llm_jb_t *b, const llm_js_t *s);
int llm_jb_spaces(llm_jb_t *b, size_t n, int trusted);
int llm_jb_done(llm_jb_t *b, llm_jv_t *res);
/* the result is markup if s is */
int llm_jb_done_as(llm_jb_t *b, const llm_js_t *s, llm_jv_t *res);
/* a string literal of this source as a value */
int llm_js_lit(llm_jrt_t *rt, const char *literal, llm_jv_t *res);

/* decodes one character; *len: its bytes; each invalid byte counts as one */
uint32_t llm_jc_decode(const char *p, const char *end, size_t *len);
size_t llm_jc_encode(uint32_t c, char *out);
/* length of the white space at p, 0 if there is none (Python's str.isspace) */
size_t llm_jc_space(const char *p, const char *end);
/* start of the character that ends before p */
const char *llm_jc_prev(const char *start, const char *p);


/* values (value.c) */

#define llm_jv_of(t)     ((llm_jv_t) { .type = (t) })
#define llm_jv_int(n)    ((llm_jv_t) { .type = LLM_J_INT, .u.i = (n) })
#define llm_jv_bool(b)   ((llm_jv_t) { .type = LLM_J_BOOL, .u.i = (b) != 0 })
#define llm_jv_float(x)  ((llm_jv_t) { .type = LLM_J_FLOAT, .u.f = (x) })
#define llm_jv_str(p)    ((llm_jv_t) { .type = LLM_J_STR, .u.s = (p) })

#define LLM_J_NONE_V        llm_jv_of(LLM_J_NONE)
#define llm_jv_given(v)     ((v)->type != LLM_J_MISSING)
#define llm_jv_integral(v)  ((v)->type == LLM_J_INT || (v)->type == LLM_J_BOOL)
#define llm_jv_number(v)    (llm_jv_integral(v) || (v)->type == LLM_J_FLOAT)
#define llm_jv_sequence(v)                                                   \
    ((v)->type == LLM_J_STR || (v)->type == LLM_J_LIST                       \
     || (v)->type == LLM_J_TUPLE)
#define llm_jv_as_double(v)                                                  \
    ((v)->type == LLM_J_FLOAT ? (v)->u.f : (double) (v)->u.i)

/* Python's name of the type */
const char *llm_jv_type(const llm_jv_t *v);
int llm_jv_truth(const llm_jv_t *v);
int llm_jv_callable(const llm_jv_t *v);

/* an undefined value; the message is made when the value is used */
int llm_jv_undef(llm_jrt_t *rt, const char *hint, llm_jv_t *res);
/* object: NULL for a variable */
int llm_jv_undef_of(llm_jrt_t *rt, const llm_jv_t *object,
    const llm_jv_t *name, llm_jv_t *res);
/* a macro's parameter that was not given */
int llm_jv_undef_param(llm_jrt_t *rt, const llm_jv_t *name, llm_jv_t *res);
/* the error of using an undefined value; always LLM_ERROR */
int llm_jv_undef_fail(llm_jrt_t *rt, const llm_jv_t *v);

int llm_jv_list(llm_jrt_t *rt, llm_jtype_t type, size_t cap, llm_jv_t *res);
int llm_jlist_push(llm_jrt_t *rt, llm_jlist_t *list, const llm_jv_t *v);
void llm_jlist_reverse(llm_jlist_t *list);
/* an iterator over known items; takes over the list's items */
int llm_jv_iter(llm_jrt_t *rt, const llm_jlist_t *list, const char *type,
    llm_jv_t *res);

int llm_jv_dict(llm_jrt_t *rt, llm_jtype_t type, llm_jv_t *res);
/* *found: NULL if absent; it is an error if the key has an unsuitable type */
int llm_jdict_get(llm_jrt_t *rt, const llm_jdict_t *d, const llm_jv_t *key,
    llm_jv_t **found);
int llm_jdict_set(llm_jrt_t *rt, llm_jdict_t *d, const llm_jv_t *key,
    const llm_jv_t *value);
llm_jv_t *llm_jdict_gets(const llm_jdict_t *d, const llm_js_t *key);
/* sets all pairs of another dictionary */
int llm_jdict_update(llm_jrt_t *rt, llm_jdict_t *d, const llm_jdict_t *from);
/* removes the pair of a value that llm_jdict_get() has found */
int llm_jdict_take(llm_jrt_t *rt, llm_jdict_t *d, const llm_jv_t *found);
void llm_jdict_clear(llm_jdict_t *d);

/* not 0; the string stores it */
uint32_t llm_js_hash(llm_js_t *s);
/* 1, 0 or LLM_ERROR (too deep, out of steps) */
int llm_jv_equal(llm_jrt_t *rt, const llm_jv_t *a, const llm_jv_t *b);
/* *res: < 0, 0 or > 0; op ("<") is for the message */
int llm_jv_order(llm_jrt_t *rt, const llm_jv_t *a, const llm_jv_t *b,
    const char *op, int *res);
/* Python's "item in seq": 1, 0 or LLM_ERROR */
int llm_jv_contains(llm_jrt_t *rt, const llm_jv_t *seq,
    const llm_jv_t *item);

/* sorts by key, stably, as Python's sorted() */
int llm_jpairs_sort(llm_jrt_t *rt, llm_jpair_t *v, size_t n, int reverse);

/* len(): -1 without an error if the value has none */
int64_t llm_jv_len(const llm_jv_t *v);
int llm_jv_iterable(const llm_jv_t *v);
int llm_jcur_init(llm_jrt_t *rt, llm_jcur_t *c, const llm_jv_t *v);
int llm_jcur_next(llm_jrt_t *rt, llm_jcur_t *c, llm_jv_t *item);
/* copies all items of an iterable to a new list */
int llm_jv_items(llm_jrt_t *rt, const llm_jv_t *v, llm_jlist_t *list);

/* the same number, counting characters if necessary */
int llm_jv_count(llm_jrt_t *rt, const llm_jv_t *v, int64_t *n);

/* values of a request; strings point into the flat bytes */
int llm_jv_from_pairs(llm_jrt_t *rt, const llm_flat_t *f, int trusted,
    const char *const *trusted_keys, llm_jdict_t *d);


/* text of values (value_text.c) */

/* in the form of Python's repr(), or of JSON */
int llm_jb_add_number(llm_jb_t *b, const llm_jv_t *v, int trusted, int json);
int llm_jb_add_value(llm_jb_t *b, const llm_jv_t *v);       /* str() */
int llm_jb_add_repr(llm_jb_t *b, const llm_jv_t *v);        /* repr() */
int llm_jv_tostr(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res);


/* operators (eval_ops.c, eval_access.c) */

int llm_jinja_binary(llm_jrt_t *rt, int op, const llm_jv_t *a,
    const llm_jv_t *b, llm_jv_t *res);
/* op is a comparison: 1, 0 or LLM_ERROR */
int llm_jinja_relation(llm_jrt_t *rt, int op, const llm_jv_t *a,
    const llm_jv_t *b);
int llm_jinja_unary(llm_jrt_t *rt, int op, const llm_jv_t *a, llm_jv_t *res);
int llm_jinja_getattr(llm_jrt_t *rt, const llm_jv_t *obj,
    const llm_jv_t *name, llm_jv_t *res);
int llm_jinja_getitem(llm_jrt_t *rt, const llm_jv_t *obj,
    const llm_jv_t *index, llm_jv_t *res);
/* a bound that is NONE counts as left out */
int llm_jinja_slice(llm_jrt_t *rt, const llm_jv_t *obj,
    const llm_jv_t *start, const llm_jv_t *stop, const llm_jv_t *step,
    llm_jv_t *res);
/* v as markup, which it may be already (builtin_str.c) */
int llm_jinja_escape(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res);


/* functions (eval_call.c) and the tables of them (builtin.c) */

const llm_jfunc_t *llm_jinja_filter(const llm_js_t *name);
const llm_jfunc_t *llm_jinja_test(const llm_js_t *name);
/* the method of a value's type, or NULL */
const llm_jfunc_t *llm_jinja_method(const llm_jv_t *obj,
    const llm_js_t *name);
/* calls with the subject, unless NULL, as the first argument */
int llm_jinja_call_func(llm_jrt_t *rt, const llm_jfunc_t *f,
    const llm_jv_t *subject, const llm_jargs_t *args, llm_jv_t *res);
/* calls anything callable */
int llm_jinja_call(llm_jrt_t *rt, const llm_jv_t *callee,
    const llm_jargs_t *args, llm_jv_t *res);
int llm_jinja_globals(llm_jrt_t *rt, llm_jdict_t *context);


/* statements that are called back (eval_stmt.c, eval_loop.c) */

/* sets an attribute; names that begin with "_" are refused */
int llm_jinja_ns_set(llm_jrt_t *rt, const llm_jv_t *ns, const llm_jv_t *name,
    const llm_jv_t *value);
int llm_jinja_call_macro(llm_jrt_t *rt, llm_jmacro_t *m,
    const llm_jargs_t *args, llm_jv_t *res);
int llm_jinja_call_loop(llm_jrt_t *rt, llm_jloop_t *loop,
    const llm_jargs_t *args, llm_jv_t *res);
/* LLM_OK, LLM_END at the end, LLM_ERROR */
int llm_jloop_next(llm_jrt_t *rt, llm_jloop_t *loop, llm_jv_t *item);
/* loop.index and so on; *res: MISSING if there is no such attribute */
int llm_jloop_attr(llm_jrt_t *rt, llm_jloop_t *loop, const llm_js_t *name,
    llm_jv_t *res);

#endif /* LLM_JINJA_VALUE_H */
