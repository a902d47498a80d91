/*
 * What reading loosely shares: values in loose_value.c, calls in loose.c, and
 * where one begins and ends in loose_run.c; see loose.h.
 */

#ifndef LLM_LOOSE_INTERNAL_H
#define LLM_LOOSE_INTERNAL_H

#include "engine/emit/loose.h"

/* why there is no more text: a mark of the call's end, the end of the turn; 0:
   that is not known */
#define LLM_LOOSE_MARK  2
#define LLM_LOOSE_TURN  1

/* a reader of values, in loose_value.c */
typedef struct {
    const char        *p;
    const char        *end;
    llm_str_t          quote;           /* the form's own, or "" */
    const llm_flat_t  *root;            /* of the tool's schema, in which
                                           references are looked up */
    llm_buf_t         *out;             /* NULL: what is read is dropped */
    unsigned           depth;
    int                bare;            /* the object's keys have no quotes */
    char               within;          /* the bracket that ends what is being
                                           read, or 0 */
    int                closes;          /* brackets that are missing at the
                                           end are added: LLM_LOOSE_... */
    int                more;            /* the text ends in a value */
} llm_loose_t;

void llm_loose_space(llm_loose_t *r);
/* loose_string.c */
/* the word at p that may be a tool's name; "" if there is none */
llm_str_t llm_loose_word_at(const char *p, const char *end);
/* is there a key, and what follows keys?  In a text many a word has a colon
   behind it, so one without quotes counts only beside others of that kind */
int llm_loose_is_key(const llm_loose_t *r, const char *p);
/* a string in usual quotes, or in the form's own */
int llm_loose_string(llm_loose_t *r);
int llm_loose_quoted(llm_loose_t *r);
/* does the text end in a key, or before its colon? */
int llm_loose_key_cut(const llm_loose_t *r);
/* a key without its quotes, and what is between it and its value */
int llm_loose_key(llm_loose_t *r, llm_str_t *key);
/* goes on to the next of the values in brackets, n have been read: 1 if there
   is another one */
int llm_loose_next(llm_loose_t *r, char close, uint32_t n);
/* one value; schema is its own, in r->root, or NULL: LLM_OK; LLM_MORE: the text ends
   first, and out has what there is of it; LLM_ERROR */
int llm_loose_value(llm_loose_t *r, const llm_flat_t *schema);
/* the members of an object up to its closing bracket, which may be ')', or up
   to the end if it is 0; the opening one has been read */
int llm_loose_members(llm_loose_t *r, const llm_flat_t *schema, char close);

/* calls of one list */
#define LLM_LOOSE_CALLS  256

typedef struct {
    const llm_tool_t  *tool;
    size_t             end;             /* of its arguments in json */
} llm_loose_call_t;

typedef struct {
    llm_call_t        *c;
    llm_str_t          text;
    llm_loose_t        r;
    llm_buf_t          json;            /* the arguments of all */
    const llm_tool_t  *tool;            /* of the call that is being read */
    int                has_args;
    int                stopped;         /* what follows is no part of it */
    int                unknown;         /* it calls a tool that there is not */
    uint32_t           n;
    llm_loose_call_t   calls[LLM_LOOSE_CALLS];
} llm_loose_list_t;

/* loose.c */

/* a longer name than this, a longer key */
#define LLM_LOOSE_NAME  64
#define LLM_LOOSE_KEY   256

/* goes over white space, and then c: 1 if it is there */
int llm_loose_take(llm_loose_t *r, char c);
/* what stands in [c->at, end): as llm_loose_run(); closes: why there is no
   more, LLM_LOOSE_... */
int llm_loose_read(llm_call_t *c, llm_str_t text, size_t end, int closes,
    int last, llm_call_put_pt put, void *data);

/* loose_params.c: the parameters of l->tool, between marks */
int llm_loose_params(llm_loose_list_t *l);


static inline void
llm_loose_put(llm_loose_t *r, const char *s, size_t n)
{
    if (r->out) {
        (void) llm_buf_add(r->out, s, n);
    }
}


static inline const char *
llm_loose_skip(const llm_loose_t *r, const char *p)
{
    while (p < r->end && llm_mark_is_space(*p)) {
        p++;
    }

    return p;
}


static inline int
llm_loose_is_quote(const llm_loose_t *r, const char *p)
{
    return r->quote.len && (size_t) (r->end - p) >= r->quote.len
           && memcmp(p, r->quote.data, r->quote.len) == 0;
}


static inline int
llm_loose_is_name(char c)
{
    return llm_mark_is_word(c) || c == '_' || c == '-' || c == '.' || c == '$';
}


static inline int
llm_loose_is_closer(char c)
{
    return c == '}' || c == ']' || c == ')';
}


static inline int
llm_loose_begins_value(char c)
{
    return c == '-' || (c >= '0' && c <= '9')
           || (c && strchr("\"'{[tfnTFN", c));
}


static inline llm_mark_t
llm_loose_mark(const llm_loose_list_t *l, llm_str_t mark, const char *p,
    size_t *len)
{
    return mark.len == 0 ? LLM_MARK_NO
           : llm_mark_match(mark, p, (size_t) (l->r.end - p), len);
}

#endif /* LLM_LOOSE_INTERNAL_H */
