/*
 * How a model writes its answers: the marks of reasoning, content and tool
 * calls.  engine/text/chat derives it from the chat template when the template
 * is loaded; answer.c reads answers by it.
 *
 * A mark is text with two freedoms: white space in it stands for any white
 * space (at least one character after a letter or digit, otherwise possibly
 * none), and LLM_MARK_ANY stands for up to LLM_MARK_MOST bytes of anything on
 * the same line.
 *
 * A llm_format_t is read-only once it is made and may be used by any number of
 * threads; all its text is in its arena.
 */

#ifndef LLM_FORMAT_H
#define LLM_FORMAT_H

#include "engine/base/base.h"

#define LLM_MARK_ANY     '\001'
#define LLM_MARK_MOST    128

#define LLM_FORMAT_PAIRS  4
#define LLM_FORMAT_TEXTS  6
#define LLM_FORMAT_FORMS  8

/* what is between a call's begin and its end */
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

    llm_str_t        open;              /* marks before the first call and
                                           after the last */
    llm_str_t        close;
    llm_str_t        begin;             /* marks before and after each call */
    llm_str_t        end;
    llm_str_t        between;           /* mark between a call and one that has
                                           no begin */
    int              chain;             /* 1: there may be nothing between
                                           calls */
    int              bare;              /* an answer may begin with a call
                                           that has neither open nor begin */

    llm_str_t        name_end;          /* NAMED, PARAMS: mark after the name */
    llm_str_t        any;               /* what LLM_MARK_ANY in name_end may
                                           begin with, besides words */

    llm_str_t        name_key;          /* OBJECT: keys; "" for the usual
                                           ones */
    llm_str_t        args_key;
    int              list;              /* OBJECT: 1: calls are items of an
                                           array */

    llm_str_t        quote;             /* NAMED: quote of strings if it is not
                                           JSON's; keys have no quotes then */

    llm_str_t        key;               /* PARAMS: mark before a key */
    llm_str_t        key_end;           /* mark between key and value */
    llm_str_t        key_end_text;      /* the same before a string; "" if it
                                           does not differ */
    llm_str_t        value_end;
    llm_str_t        value_lead;        /* white space that belongs to the */
    llm_str_t        value_tail;        /* marks, not to the value */
} llm_form_t;

typedef struct {
    llm_str_t        open;
    llm_str_t        close;
    llm_str_t        ending;            /* end that a model writes: close with
                                           its white space */
} llm_pair_t;

typedef struct {
    llm_arena_t      arena;

    uint32_t         n_reasoning;
    llm_pair_t       reasoning[LLM_FORMAT_PAIRS];

    /* begin and end of content, if it has any, and texts that may precede the
       parts of an answer */
    uint32_t         n_content;
    llm_str_t        content[LLM_FORMAT_TEXTS];
    uint32_t         n_content_end;
    llm_str_t        content_end[LLM_FORMAT_TEXTS];
    uint32_t         n_skipped;
    llm_str_t        skipped[LLM_FORMAT_TEXTS];

    int              harmony;           /* 1: an answer consists of messages
                                           with headers, see harmony.c; calls
                                           are in the first form */

    llm_str_t        turn_end;          /* "": not known */

    uint32_t         n_forms;           /* in the order in which they are
                                           tried */
    llm_form_t       forms[LLM_FORMAT_FORMS];
} llm_format_t;

/* how a text begins with a mark */
typedef enum {
    LLM_MARK_NO,
    LLM_MARK_PART,                      /* the text ends within the mark */
    LLM_MARK_WHOLE                      /* *len is its length in the text */
} llm_mark_t;

llm_mark_t llm_mark_match(llm_str_t mark, const char *p, size_t n,
    size_t *len);

/* the tag that a mark begins with, <...> or [...]; "" if there is none */
llm_str_t llm_mark_tag(llm_str_t mark);
/* the tag that a mark ends with, or what follows its last bracket */
llm_str_t llm_mark_last_tag(llm_str_t mark);
/* the last tag of a form's begin, if it contains the name, as in
   <call><function=NAME>; otherwise "" */
llm_str_t llm_form_inner(const llm_form_t *form);

/* the keys of OBJECT as a grammar has them */
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
