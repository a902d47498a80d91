/*
 * Adapts messages to a template: flat values in, flat values out.  Internal to
 * engine/text/chat/.
 */

#ifndef LLM_CHAT_NORM_H
#define LLM_CHAT_NORM_H

#include "engine/text/chat/chat.h"

/* bits of a uint64_t */

/* parts become one string, in messages of one role */
#define LLM_CN_JOIN_SYSTEM     0x001
#define LLM_CN_JOIN_USER       0x002
#define LLM_CN_JOIN_ASSISTANT  0x004
#define LLM_CN_JOIN_TOOL       0x008
#define LLM_CN_JOIN            0x00f
/* strings become parts, for templates that take nothing else */
#define LLM_CN_PARTS           0x010
/* arguments of tool calls become the object that their JSON text stands for */
#define LLM_CN_ARGS            0x020
/* null or missing content becomes "" */
#define LLM_CN_NULL            0x040
/* ids of tool calls get nine letters or digits, as Mistral wants them */
#define LLM_CN_IDS             0x080
/* the role "developer" becomes "system" */
#define LLM_CN_DEVELOPER       0x100
/* tool calls and results become text of the messages */
#define LLM_CN_TOOL_TEXT       0x200
/* reasoning_content is also given as thinking */
#define LLM_CN_THINKING        0x400
/* SIDES: consecutive messages of one side become one, and a system message
   that is not the first becomes a user's; NO_SYSTEM: the first one, too.  Only
   for lenient requests */
#define LLM_CN_SIDES           0x2000
#define LLM_CN_NO_SYSTEM       0x4000
/* LLM_CHAT_TAG is added to the last message's content */
#define LLM_CN_TAG             0x800

/* for llm_chat_render_as(): without tools, the template gets an empty list */
#define LLM_CN_NO_TOOLS        0x1000
/* functions and datetime are variables, too, as firefunction's template needs
   them */
#define LLM_CN_FUNCTIONS       0x8000
/* tools without description, parameters or properties get empty ones */
#define LLM_CN_WHOLE_TOOLS     0x10000
/* the system message describes the tools; the template gets none.  Only for
   lenient requests */
#define LLM_CN_TELL_TOOLS      0x20000

/* turns with calls, and their results (turns.c) */

/* ids become functions.NAME:N, for templates that show only the id.  N counts
   the calls of the conversation or, with TURN_IDS, of the turn */
#define LLM_CN_NAME_IDS        0x40000
#define LLM_CN_TURN_IDS        0x80000
/* results are put in the order of their calls */
#define LLM_CN_ORDER           0x100000
/* results get the name of the function */
#define LLM_CN_RESULT_NAMES    0x200000
/* each call becomes a turn of its own, followed by its results */
#define LLM_CN_ONE_CALL        0x400000
/* text before calls becomes a turn of its own */
#define LLM_CN_TEXT_TURN       0x800000
/* of text and reasoning before calls only the reasoning is kept */
#define LLM_CN_ONE_VOICE       0x1000000
/* arguments that are no object are put into one, for LLM_CN_ARGS */
#define LLM_CN_OBJECTS         0x2000000
/* a word is added between calls or results and a following message of the side
   that spoke last before them; with FILL_ALL wherever a user speaks after
   them */
#define LLM_CN_FILL            0x4000000
#define LLM_CN_FILL_ALL        0x8000000
/* results become tool_responses of their turn, and the answer after them its
   content, as Gemma 4's template wants it */
#define LLM_CN_RESPONSES       0x80000000ull
/* turns with calls have null content; their text becomes a turn of its own */
#define LLM_CN_NO_CONTENT      0x100000000ull
/* calls become text of their turn; results stay unchanged */
#define LLM_CN_CALL_TEXT       0x40000000
/* a user's word is added before the first turn of an assistant */
#define LLM_CN_FIRST           0x20000000

/* empty turns of an assistant are left out */
#define LLM_CN_EMPTY           0x10000000

/* marks the end of a message that is left open; the same text as in
   transformers */
#define LLM_CHAT_TAG  "CONTINUE_FINAL_MESSAGE_TAG "

/* messages that LLM_CN_TOOL_TEXT applies to: one byte for each of the last n
   messages */
typedef struct {
    const uint8_t  *v;
    uint32_t        n;
} llm_chat_told_t;

/*
 * Appends the array of messages to out; what needs no change is copied.  told
 * NULL: all messages are told as text.
 */
int llm_chat_normalise(const llm_flat_t *messages, uint64_t what,
    const llm_chat_told_t *told, llm_buf_t *out, llm_err_t *err);

/* applied by tooltext.c, before everything else */
#define LLM_CN_AS_TEXT                                                       \
    (LLM_CN_TOOL_TEXT | LLM_CN_SIDES | LLM_CN_NO_SYSTEM | LLM_CN_EMPTY)

/* tooltext.c: applies LLM_CN_AS_TEXT only */
int llm_chat_as_text(const llm_flat_t *messages, uint64_t what,
    const llm_chat_told_t *told, llm_buf_t *out, llm_err_t *err);

/* appends a call as text, after the text of its turn so far */
int llm_chat_add_call(llm_buf_t *out, const llm_flat_t *call);

/* applied by turns.c, after that */
#define LLM_CN_TURNS                                                         \
    (LLM_CN_NAME_IDS | LLM_CN_ORDER | LLM_CN_RESULT_NAMES | LLM_CN_ONE_CALL  \
     | LLM_CN_TEXT_TURN | LLM_CN_ONE_VOICE | LLM_CN_OBJECTS | LLM_CN_FILL    \
     | LLM_CN_FILL_ALL | LLM_CN_FIRST | LLM_CN_CALL_TEXT     \
     | LLM_CN_RESPONSES | LLM_CN_NO_CONTENT)

/* turns.c: applies LLM_CN_TURNS only */
int llm_chat_turns(const llm_flat_t *messages, uint64_t what, llm_buf_t *out,
    llm_err_t *err);

/* tools.c */

/* appends the value of the variable tools; tools may be NULL */
void llm_chat_add_tools(const llm_flat_t *tools, uint64_t what,
    llm_buf_t *out);
/* appends the variables of LLM_CN_FUNCTIONS and returns their number; now as
   in llm_jinja_opts_t */
uint32_t llm_chat_add_functions(const llm_flat_t *tools, int64_t now,
    llm_buf_t *out);

/* appends the array of messages, the first of which describes the tools */
int llm_chat_tell_tools(const llm_flat_t *messages, const llm_flat_t *tools,
    llm_buf_t *out, llm_err_t *err);

/* media.c */

/* writes the indices of the media in messages, in order, to list, `most` at
   most; returns how many there are */
uint32_t llm_chat_find_media(const llm_flat_t *messages, uint32_t *list,
    uint32_t most);
/* LLM_ERROR and err: messages that were adapted to a template have lost media */
int llm_chat_keeps_media(const llm_flat_t *before, const llm_flat_t *after,
    llm_err_t *err);
/* sets out->media to those of the messages that were rendered */
int llm_chat_note_media(const llm_flat_t *messages, llm_prompt_t *out,
    llm_err_t *err);

/* content.c */

int llm_chat_add_json(llm_buf_t *out, const llm_flat_t *v);

/* appends the texts of parts with newlines between them; a string unchanged */
int llm_chat_add_text(llm_buf_t *out, const llm_flat_t *content);

/* appends an object's members other than these two (NULL: none); returns their
   number */
uint32_t llm_chat_add_members(llm_buf_t *out, const llm_flat_t *object,
    const char *but, const char *or);

/* has the object this member, with the value true? */
int llm_chat_flag(const llm_flat_t *request, const char *key);

/* is v this string?  v may be NULL */
int llm_chat_is(const llm_flat_t *v, const char *s);

#endif /* LLM_CHAT_NORM_H */
