/*
 * Messages made to fit a template: flat values in, flat values out.
 * Internal to engine/text/chat/.
 */

#ifndef LLM_CHAT_NORM_H
#define LLM_CHAT_NORM_H

#include "engine/text/chat/chat.h"

/* bits of a uint64_t */

/* parts joined to a string, for messages of one role */
#define LLM_CN_JOIN_SYSTEM     0x001
#define LLM_CN_JOIN_USER       0x002
#define LLM_CN_JOIN_ASSISTANT  0x004
#define LLM_CN_JOIN_TOOL       0x008
#define LLM_CN_JOIN            0x00f
/* strings made parts, for a template that takes nothing else */
#define LLM_CN_PARTS           0x010
/* arguments of tool calls: the object that their JSON text says */
#define LLM_CN_ARGS            0x020
/* null or missing content made "" */
#define LLM_CN_NULL            0x040
/* ids of tool calls made nine letters or digits, as Mistral wants them */
#define LLM_CN_IDS             0x080
/* developer is system */
#define LLM_CN_DEVELOPER       0x100
/* tool calls and results told in the text of the messages */
#define LLM_CN_TOOL_TEXT       0x200
/* reasoning_content is also thinking */
#define LLM_CN_THINKING        0x400
/* messages of one side in a row made one; a system message that is not the
   first said by the user; and the first, too.  Only for lenient requests */
#define LLM_CN_SIDES           0x2000
#define LLM_CN_NO_SYSTEM       0x4000
/* LLM_CHAT_TAG behind the last message's content */
#define LLM_CN_TAG             0x800

/* for llm_chat_render_as(): no tools are an empty list of them */
#define LLM_CN_NO_TOOLS        0x1000
/* functions and datetime are variables, too, as firefunction's template has
   them */
#define LLM_CN_FUNCTIONS       0x8000
/* a description, parameters and properties where a tool has none */
#define LLM_CN_WHOLE_TOOLS     0x10000
/* tools are told in the system message; the template sees none.  Only for
   lenient requests */
#define LLM_CN_TELL_TOOLS      0x20000

/* turns with calls, and their results (turns.c) */

/* ids are functions.NAME:N, where the template shows the id alone; N counts
   the calls of the conversation, or with TURN_IDS those of the turn */
#define LLM_CN_NAME_IDS        0x40000
#define LLM_CN_TURN_IDS        0x80000
/* results stand in the order of their calls */
#define LLM_CN_ORDER           0x100000
/* results have the name of the function */
#define LLM_CN_RESULT_NAMES    0x200000
/* a turn for each call, its results behind it */
#define LLM_CN_ONE_CALL        0x400000
/* the text before calls is a turn of its own */
#define LLM_CN_TEXT_TURN       0x800000
/* of text and reasoning before calls, the reasoning alone */
#define LLM_CN_ONE_VOICE       0x1000000
/* arguments that are no object are told in one, for LLM_CN_ARGS */
#define LLM_CN_OBJECTS         0x2000000
/* a word between calls or results and a message of the side that spoke last
   before them; and wherever a user speaks behind them */
#define LLM_CN_FILL            0x4000000
#define LLM_CN_FILL_ALL        0x8000000
/* results stand in their turn as tool_responses, and the answer behind them
   in its content, as Gemma 4's template wants them */
#define LLM_CN_RESPONSES       0x80000000ull
/* the content of turns with calls is null, their text a turn of its own */
#define LLM_CN_NO_CONTENT      0x100000000ull
/* calls are told in the text of their turn, results stay as they are */
#define LLM_CN_CALL_TEXT       0x40000000
/* a word of the user before the first turn of an assistant */
#define LLM_CN_FIRST           0x20000000

/* turns of an assistant that say nothing are left out */
#define LLM_CN_EMPTY           0x10000000

/* where a message that is left open ends; what transformers uses */
#define LLM_CHAT_TAG  "CONTINUE_FINAL_MESSAGE_TAG "

/* messages that LLM_CN_TOOL_TEXT is for: the last n of them, one byte each */
typedef struct {
    const uint8_t  *v;
    uint32_t        n;
} llm_chat_told_t;

/*
 * Appends the array of messages to out; what does not apply is copied.  told
 * may be NULL: all are.
 */
int llm_chat_normalise(const llm_flat_t *messages, uint64_t what,
    const llm_chat_told_t *told, llm_buf_t *out, llm_err_t *err);

/* what tooltext.c does, before all else */
#define LLM_CN_AS_TEXT                                                       \
    (LLM_CN_TOOL_TEXT | LLM_CN_SIDES | LLM_CN_NO_SYSTEM | LLM_CN_EMPTY)

/* tooltext.c: the step for LLM_CN_AS_TEXT alone */
int llm_chat_as_text(const llm_flat_t *messages, uint64_t what,
    const llm_chat_told_t *told, llm_buf_t *out, llm_err_t *err);

/* a call as text, behind what there is of its turn */
int llm_chat_add_call(llm_buf_t *out, const llm_flat_t *call);

/* what turns.c does, behind that */
#define LLM_CN_TURNS                                                         \
    (LLM_CN_NAME_IDS | LLM_CN_ORDER | LLM_CN_RESULT_NAMES | LLM_CN_ONE_CALL  \
     | LLM_CN_TEXT_TURN | LLM_CN_ONE_VOICE | LLM_CN_OBJECTS | LLM_CN_FILL    \
     | LLM_CN_FILL_ALL | LLM_CN_FIRST | LLM_CN_CALL_TEXT     \
     | LLM_CN_RESPONSES | LLM_CN_NO_CONTENT)

/* turns.c: the step for LLM_CN_TURNS alone */
int llm_chat_turns(const llm_flat_t *messages, uint64_t what, llm_buf_t *out,
    llm_err_t *err);

/* tools.c */

/* the value of the variable tools; tools may be NULL */
void llm_chat_add_tools(const llm_flat_t *tools, uint64_t what,
    llm_buf_t *out);
/* the variables of LLM_CN_FUNCTIONS: their number; now as in
   llm_jinja_opts_t */
uint32_t llm_chat_add_functions(const llm_flat_t *tools, int64_t now,
    llm_buf_t *out);

/* appends the array of messages with the tools in the first of them */
int llm_chat_tell_tools(const llm_flat_t *messages, const llm_flat_t *tools,
    llm_buf_t *out, llm_err_t *err);

/* content.c */

int llm_chat_add_json(llm_buf_t *out, const llm_flat_t *v);

/* appends the texts of parts with newlines between; a string as it is */
int llm_chat_add_text(llm_buf_t *out, const llm_flat_t *content);

/* appends the members of an object, but for those of these names (or NULL):
   how many */
uint32_t llm_chat_add_members(llm_buf_t *out, const llm_flat_t *object,
    const char *but, const char *or);

/* has the object a member of this name that is true? */
int llm_chat_flag(const llm_flat_t *request, const char *key);

/* is it a string, and this one? v may be NULL */
int llm_chat_is(const llm_flat_t *v, const char *s);

#endif /* LLM_CHAT_NORM_H */
