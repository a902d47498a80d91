/*
 * What reading loosely shares: values in loose_value.c, calls in loose.c, and
 * where one begins and ends in loose_run.c; see loose.h.
 */

#ifndef LLM_LOOSE_INTERNAL_H
#define LLM_LOOSE_INTERNAL_H

#include "engine/emit/loose.h"

/* why there is no more text: an end mark of the call, the end of the turn; 0:
   not known */
#define LLM_LOOSE_MARK  2
#define LLM_LOOSE_TURN  1

/* a reader of values, in loose_value.c */
typedef struct {
    const char        *p;
    const char        *end;
    llm_str_t          quote;           /* quote of the form, or "" */
    const llm_flat_t  *root;            /* the tool's schema, in which
                                           references are looked up */
    llm_buf_t         *out;             /* gets the JSON; NULL: it is dropped */
    unsigned           depth;
    int                bare;            /* 1: the object's keys have no
                                           quotes */
    char               within;          /* bracket that ends what is being
                                           read, or 0 */
    int                closes;          /* LLM_LOOSE_...: if not 0, brackets
                                           that are missing at the end are
                                           added */
    int                more;            /* 1: the text ends in a value */
} llm_loose_t;

void llm_loose_space(llm_loose_t *r);
/* loose_string.c */
/* the word at p that may be a tool's name; "" if there is none */
llm_str_t llm_loose_word_at(const char *p, const char *end);
/* is a key at p, followed by what follows keys?  In a text many words have a
   colon, so a key without quotes counts only among others without quotes */
int llm_loose_is_key(const llm_loose_t *r, const char *p);
/* reads a string in usual quotes, or in the form's own */
int llm_loose_string(llm_loose_t *r);
int llm_loose_quoted(llm_loose_t *r);
/* does the text end in a key, or before its colon? */
int llm_loose_key_cut(const llm_loose_t *r);
/* reads a key without its quotes, and what is between key and value */
int llm_loose_key(llm_loose_t *r, llm_str_t *key);
/* moves on to the next value in brackets after n values; 1 if there is one */
int llm_loose_next(llm_loose_t *r, char close, uint32_t n);
/* reads one value; schema: the value's own, in r->root, or NULL.  LLM_OK;
   LLM_MORE: the text ends first, and out has the beginning; LLM_ERROR */
int llm_loose_value(llm_loose_t *r, const llm_flat_t *schema);
/* reads the members of an object, whose opening bracket has been read, up to
   its closing bracket, which may be ')', or up to the end if close is 0 */
int llm_loose_members(llm_loose_t *r, const llm_flat_t *schema, char close);

/* most calls of one list */
#define LLM_LOOSE_CALLS  256

typedef struct {
    const llm_tool_t  *tool;
    size_t             end;             /* end of the call's arguments in
                                           json */
} llm_loose_call_t;

typedef struct {
    llm_call_t        *c;
    llm_str_t          text;
    llm_loose_t        r;
    llm_buf_t          json;            /* arguments of all calls */
    const llm_tool_t  *tool;            /* tool of the call that is being
                                           read */
    int                has_args;
    int                stopped;         /* 1: what follows does not belong to
                                           the list */
    int                unknown;         /* 1: it calls an unknown tool */
    uint32_t           n;
    llm_loose_call_t   calls[LLM_LOOSE_CALLS];
} llm_loose_list_t;

/* loose.c */

/* most bytes of a name, and of a key */
#define LLM_LOOSE_NAME  64
#define LLM_LOOSE_KEY   256

/* skips white space, and then c; 1 if c was there */
int llm_loose_take(llm_loose_t *r, char c);
/* reads [c->at, end), as llm_loose_run(); closes: why there is no more text,
   LLM_LOOSE_... */
int llm_loose_read(llm_call_t *c, llm_str_t text, size_t end, int closes,
    int last, llm_call_put_pt put, void *data);

/* loose_params.c: reads the parameters of l->tool, between marks */
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
