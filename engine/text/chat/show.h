/*
 * Answers of an assistant as a template writes them, from which the template's
 * marks are learnt.  Internal to engine/text/chat/.
 */

#ifndef LLM_CHAT_SHOW_H
#define LLM_CHAT_SHOW_H

#include "engine/text/chat/internal.h"

/* distinctive words; those of two calls are in order */
#define LLM_SHOW_TEXT     "zqxtext"
#define LLM_SHOW_THOUGHT  "zqxthought"

typedef struct {
    const char  *id;
    const char  *name;
    const char  *key;                   /* key of a string parameter */
    const char  *value;
    const char  *number_key;
    const char  *number;
} llm_show_call_t;

extern const llm_show_call_t  llm_show_calls[2];

/* what the assistant says */
typedef struct {
    int          text;                  /* 1: LLM_SHOW_TEXT */
    int          thought;               /* 1: LLM_SHOW_THOUGHT */
    uint32_t     calls;                 /* number of calls, the first of
                                           llm_show_calls */
} llm_show_t;

/*
 * What the template writes for it: the text after the prompt for an answer,
 * and that prompt, as far as the answer leaves it unchanged.  LLM_ERROR: the
 * template cannot render it, or there is no memory.
 */
typedef struct {
    char        *mem;                   /* owned */
    llm_str_t    text;
    llm_str_t    prompt;
} llm_shown_t;

int llm_show(const llm_chat_t *c, const llm_show_t *show, llm_shown_t *out);
void llm_shown_free(llm_shown_t *s);

/* add a string; add a key and its string */
void llm_show_str(llm_buf_t *b, const char *s);
void llm_show_pair(llm_buf_t *b, const char *key, const char *value);

/* appends the tools of the calls in the form of a request */
void llm_show_tools(llm_buf_t *b);

/* appends a call in the form of a request's message */
void llm_show_add_call(llm_buf_t *b, const llm_show_call_t *call);

#endif /* LLM_CHAT_SHOW_H */
