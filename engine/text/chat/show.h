/*
 * Answers of an assistant as a template writes them, to learn from them how
 * it marks what.  Internal to engine/text/chat/.
 */

#ifndef LLM_CHAT_SHOW_H
#define LLM_CHAT_SHOW_H

#include "engine/text/chat/internal.h"

/* words that stand out; of two calls, in their order */
#define LLM_SHOW_TEXT     "zqxtext"
#define LLM_SHOW_THOUGHT  "zqxthought"

typedef struct {
    const char  *id;
    const char  *name;
    const char  *key;                   /* of a string */
    const char  *value;
    const char  *number_key;
    const char  *number;
} llm_show_call_t;

extern const llm_show_call_t  llm_show_calls[2];

/* what the assistant says */
typedef struct {
    int          text;                  /* LLM_SHOW_TEXT */
    int          thought;               /* LLM_SHOW_THOUGHT */
    uint32_t     calls;                 /* the first so many */
} llm_show_t;

/*
 * How the template writes it: what it puts behind its prompt for an answer,
 * and that prompt, as far as the answer leaves it as it is.  LLM_ERROR: the
 * template cannot, or there is no memory.
 */
typedef struct {
    char        *mem;                   /* owned */
    llm_str_t    text;
    llm_str_t    prompt;
} llm_shown_t;

int llm_show(const llm_chat_t *c, const llm_show_t *show, llm_shown_t *out);
void llm_shown_free(llm_shown_t *s);

/* a string, a key and its string */
void llm_show_str(llm_buf_t *b, const char *s);
void llm_show_pair(llm_buf_t *b, const char *key, const char *value);

/* the tools of the calls, as a request has them, appended to b */
void llm_show_tools(llm_buf_t *b);

/* a call as a message of a request has it */
void llm_show_add_call(llm_buf_t *b, const llm_show_call_t *call);

#endif /* LLM_CHAT_SHOW_H */
