/*
 * How a model's answer is written: what marks its reasoning, its content and
 * its tool calls.  engine/text/chat finds it out from the chat template when
 * the template is loaded; answer.c reads answers by it.
 *
 * A mark is text with two freedoms: white space in it stands for any white
 * space (at least some behind a letter or digit, else also none), and
 * LLM_MARK_ANY for up to LLM_MARK_MOST bytes of anything on the same line.
 *
 * A llm_format_t is read-only once it is made and may be used by any number
 * of threads; all its text is in its arena.
 */

#ifndef LLM_FORMAT_H
#define LLM_FORMAT_H

#include "engine/base/base.h"

#define LLM_MARK_ANY     '\001'
#define LLM_MARK_MOST    128

#define LLM_FORMAT_PAIRS  4
#define LLM_FORMAT_TEXTS  6
#define LLM_FORMAT_FORMS  8

/* what stands between a call's begin and its end */
typedef enum {
    /* a JSON object with the name and the arguments in it, or an array of
       such: {"name": "f", "arguments": {"a": 1}} */
    LLM_FORM_OBJECT = 1,
    /* the name, a mark, the arguments as a JSON object: f\n{"a": 1} */
    LLM_FORM_NAMED,
    /* the name, then keys and values between marks:
       f\n<arg_key>a</arg_key><arg_value>1</arg_value> */
    LLM_FORM_PARAMS,
    /* a call as in Python, or a list of such: [f(a=1), g()] */
    LLM_FORM_PYTHON
} llm_form_kind_t;

typedef struct {
    llm_form_kind_t  kind;

    llm_str_t        open;              /* before the first call, and behind
                                           the last: */
    llm_str_t        close;
    llm_str_t        begin;             /* before each call, and behind it */
    llm_str_t        end;
    llm_str_t        between;           /* from a call to one that has no
                                           begin */
    int              chain;             /* there need be nothing between */
    int              bare;              /* an answer may begin with a call
                                           that has neither open nor begin */

    llm_str_t        name_end;          /* NAMED, PARAMS: behind the name */
    llm_str_t        any;               /* what LLM_MARK_ANY in it may begin
                                           with, besides words */

    llm_str_t        name_key;          /* OBJECT: "" if it is a usual one */
    llm_str_t        args_key;
    int              list;              /* OBJECT: it is written in an array,
                                           with those of the other calls */

    llm_str_t        quote;             /* NAMED: what strings stand in, if it
                                           is not JSON's quote; keys have
                                           none then */

    llm_str_t        key;               /* PARAMS: before a key */
    llm_str_t        key_end;           /* to the value */
    llm_str_t        key_end_text;      /* the same before a string, "" if it
                                           is no other */
    llm_str_t        value_end;
    llm_str_t        value_lead;        /* white space that belongs to the */
    llm_str_t        value_tail;        /* marks, not to the value */
} llm_form_t;

typedef struct {
    llm_str_t        open;
    llm_str_t        close;
    llm_str_t        ending;            /* what a model writes to end it: the
                                           close with its white space */
} llm_pair_t;

typedef struct {
    llm_arena_t      arena;

    uint32_t         n_reasoning;
    llm_pair_t       reasoning[LLM_FORMAT_PAIRS];

    /* a content's own begin and end, where it has them, and what an answer
       may have before its parts */
    uint32_t         n_content;
    llm_str_t        content[LLM_FORMAT_TEXTS];
    uint32_t         n_content_end;
    llm_str_t        content_end[LLM_FORMAT_TEXTS];
    uint32_t         n_skipped;
    llm_str_t        skipped[LLM_FORMAT_TEXTS];

    int              harmony;           /* an answer is messages with headers,
                                           which are read in harmony.c; its
                                           calls are in the first form */

    llm_str_t        turn_end;          /* "" if it is not known */

    uint32_t         n_forms;           /* in the order they are tried */
    llm_form_t       forms[LLM_FORMAT_FORMS];
} llm_format_t;

/* what a mark is at the beginning of a text */
typedef enum {
    LLM_MARK_NO,
    LLM_MARK_PART,                      /* the text ends before it does */
    LLM_MARK_WHOLE                      /* *len is its length in the text */
} llm_mark_t;

llm_mark_t llm_mark_match(llm_str_t mark, const char *p, size_t n,
    size_t *len);

/* the tag that a mark begins with, <...> or [...]; "" if it is none */
llm_str_t llm_mark_tag(llm_str_t mark);
/* the tag that it ends with, or what is behind its last bracket */
llm_str_t llm_mark_last_tag(llm_str_t mark);
/* the last tag of a form's begin, if the name stands in it, as in
   <call><function=NAME>; else "" */
llm_str_t llm_form_inner(const llm_form_t *form);

/* the keys of OBJECT as a grammar writes them */
static inline llm_str_t
llm_form_name_key(const llm_form_t *form)
{
    return form->name_key.len ? form->name_key : llm_str("name");
}


static inline llm_str_t
llm_form_args_key(const llm_form_t *form)
{
    return form->args_key.len ? form->args_key : llm_str("arguments");
}


static inline int
llm_mark_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}


static inline int
llm_mark_is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
           || (c >= 'A' && c <= 'Z');
}

#endif /* LLM_FORMAT_H */
