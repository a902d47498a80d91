/*
 * Finds out what a template needs: the template renders small conversations
 * that contain distinctive words, and these words are looked for in the
 * result.
 */

#include "engine/text/chat/internal.h"
#include "engine/text/chat/show.h"

#define LLM_CP_STEPS   2000000
#define LLM_CP_MEMORY  ((size_t) 16 << 20)
#define LLM_CP_NOW     1700000000

#define LLM_CP_WORD    "zqxword"
#define LLM_CP_KEY     "zqxkey"

/* what the template does to the word */
typedef enum {
    LLM_CP_FAILED,                      /* it fails: there is no prompt */
    LLM_CP_LOST,                        /* the prompt does not contain the
                                           word */
    LLM_CP_QUOTED,                      /* the word follows a quote */
    LLM_CP_PLAIN
} llm_cp_t;


/* messages that are being written */
typedef struct {
    llm_buf_t   b;
    uint32_t    count;
} llm_cp_talk_t;

/* writes a conversation, which has two forms */
typedef void (*llm_cp_write_t)(llm_cp_talk_t *t, int form);


static void
llm_cp_str(llm_buf_t *b, const char *s)
{
    llm_flat_add_str(b, s, strlen(s));
}


static void
llm_cp_pair(llm_buf_t *b, const char *key, const char *value)
{
    llm_cp_str(b, key);
    llm_cp_str(b, value);
}


/* adds content: null, a string, or the string as a list of one part */

static void
llm_cp_add_content(llm_buf_t *b, const char *text, int parts)
{
    size_t  array, part;

    llm_cp_str(b, "content");

    if (text == NULL) {
        llm_flat_add_null(b);
        return;
    }

    if (!parts) {
        llm_cp_str(b, text);
        return;
    }

    array = llm_flat_open(b, LLM_FLAT_ARRAY);
    part = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_cp_pair(b, "type", "text");
    llm_cp_pair(b, "text", text);
    llm_flat_close(b, part, 2);
    llm_flat_close(b, array, 1);
}


static void
llm_cp_say(llm_cp_talk_t *t, const char *role, const char *text, int parts)
{
    size_t  msg;

    msg = llm_flat_open(&t->b, LLM_FLAT_OBJECT);
    llm_cp_pair(&t->b, "role", role);
    llm_cp_add_content(&t->b, text, parts);
    llm_flat_close(&t->b, msg, 2);
    t->count++;
}


/* adds arguments as text, or as a mapping of this key; key NULL: an empty
   one */

static void
llm_cp_add_arguments(llm_buf_t *b, const char *text, const char *key)
{
    size_t  mapping;

    llm_cp_str(b, "arguments");

    if (text) {
        llm_cp_str(b, text);
        return;
    }

    mapping = llm_flat_open(b, LLM_FLAT_OBJECT);

    if (key) {
        llm_cp_pair(b, key, "v");
    }

    llm_flat_close(b, mapping, key != NULL);
}


/* adds a tool call of the assistant */

static void
llm_cp_call(llm_cp_talk_t *t, const char *content, const char *text,
    const char *key)
{
    size_t      msg, calls, call, function;
    llm_buf_t  *b;

    b = &t->b;

    msg = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_cp_pair(b, "role", "assistant");
    llm_cp_add_content(b, content, 0);
    llm_cp_str(b, "tool_calls");

    calls = llm_flat_open(b, LLM_FLAT_ARRAY);
    call = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_cp_pair(b, "id", "abcdefghi");
    llm_cp_pair(b, "type", "function");
    llm_cp_str(b, "function");

    function = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_cp_pair(b, "name", "f");
    llm_cp_add_arguments(b, text, key);
    llm_flat_close(b, function, 2);

    llm_flat_close(b, call, 3);
    llm_flat_close(b, calls, 1);
    llm_flat_close(b, msg, 3);
    t->count++;
}


/* adds the tool's result */

static void
llm_cp_result(llm_cp_talk_t *t, const char *text, int parts)
{
    size_t  msg;

    msg = llm_flat_open(&t->b, LLM_FLAT_OBJECT);
    llm_cp_pair(&t->b, "role", "tool");
    llm_cp_pair(&t->b, "name", "f");
    llm_cp_pair(&t->b, "tool_call_id", "abcdefghi");
    llm_cp_add_content(&t->b, text, parts);
    llm_flat_close(&t->b, msg, 4);
    t->count++;
}


/* looks for the word in the rendered conversation */

static llm_cp_t
llm_cp_find(const llm_chat_t *c, const llm_flat_t *request, const char *word,
    uint64_t what)
{
    char             *at;
    llm_cp_t          res;
    llm_err_t         err;
    llm_prompt_t      p;
    llm_jinja_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    memset(&err, 0, sizeof(err));
    opts.max_steps = LLM_CP_STEPS;
    opts.max_memory = LLM_CP_MEMORY;
    opts.now = LLM_CP_NOW;

    if (llm_chat_render_as(c, request, what, &opts, &p, &err) != LLM_OK) {
        return LLM_CP_FAILED;
    }

    at = strstr(p.text, word);
    res = at == NULL ? LLM_CP_LOST
          : at > p.text && strchr("'\"", at[-1]) ? LLM_CP_QUOTED
          : LLM_CP_PLAIN;

    llm_prompt_free(&p);

    return res;
}


static llm_cp_t
llm_cp_look(const llm_chat_t *c, llm_cp_write_t write, int form,
    const char *word, uint64_t what)
{
    size_t         request, messages;
    llm_cp_t       res;
    llm_cp_talk_t  t;

    t.count = 0;
    llm_buf_init(&t.b, 0);

    request = llm_flat_open(&t.b, LLM_FLAT_OBJECT);
    llm_cp_str(&t.b, "messages");
    messages = llm_flat_open(&t.b, LLM_FLAT_ARRAY);
    write(&t, form);
    llm_flat_close(&t.b, messages, t.count);
    llm_flat_close(&t.b, request, 1);

    res = t.b.failed ? LLM_CP_FAILED
          : llm_cp_find(c, (const llm_flat_t *) t.b.data, word, what);

    llm_buf_free(&t.b);

    return res;
}


/* for each role: a conversation with content as a string, and as parts */

static void
llm_cp_user(llm_cp_talk_t *t, int parts)
{
    llm_cp_say(t, "user", LLM_CP_WORD, parts);
}


static void
llm_cp_system(llm_cp_talk_t *t, int parts)
{
    llm_cp_say(t, "system", LLM_CP_WORD, parts);
    llm_cp_say(t, "user", "Hi", 0);
}


static void
llm_cp_assistant(llm_cp_talk_t *t, int parts)
{
    llm_cp_say(t, "user", "Hi", 0);
    llm_cp_say(t, "assistant", LLM_CP_WORD, parts);
    llm_cp_say(t, "user", "Hi", 0);
}


static void
llm_cp_tool(llm_cp_talk_t *t, int parts)
{
    llm_cp_say(t, "user", "Hi", 0);
    llm_cp_call(t, "", NULL, NULL);
    llm_cp_result(t, LLM_CP_WORD, parts);
}


static const struct {
    uint64_t         join;
    llm_cp_write_t   write;
} llm_cp_contents[] = {
    { LLM_CN_JOIN_USER, llm_cp_user },
    { LLM_CN_JOIN_SYSTEM, llm_cp_system },
    { LLM_CN_JOIN_ASSISTANT, llm_cp_assistant },
    { LLM_CN_JOIN_TOOL, llm_cp_tool }
};


static void
llm_cp_content(llm_chat_t *c)
{
    size_t    i;
    uint64_t  variables;
    llm_cp_t  string, parts;

    variables = c->norms;

    for (i = 0; i < llm_nelems(llm_cp_contents); i++) {
        string = llm_cp_look(c, llm_cp_contents[i].write, 0, LLM_CP_WORD,
                             variables);
        parts = llm_cp_look(c, llm_cp_contents[i].write, 1, LLM_CP_WORD,
                            variables);

        if (string > LLM_CP_LOST && parts < string) {
            c->norms |= llm_cp_contents[i].join;

        } else if (llm_cp_contents[i].join == LLM_CN_JOIN_USER
                   && string <= LLM_CP_LOST && parts > LLM_CP_LOST)
        {
            c->norms |= LLM_CN_PARTS;
        }
    }
}


/*
 * A call's arguments as text and as a mapping.  A template that wants a
 * mapping fails on text, loses it, puts braces of its own around it, or writes
 * it as a JSON string, in which a backslash precedes the key's quote.
 */

static void
llm_cp_arguments_as(llm_cp_talk_t *t, int mapping)
{
    llm_cp_say(t, "user", "Hi", 0);
    llm_cp_call(t, "", mapping ? NULL : "{\"" LLM_CP_KEY "\": \"v\"}",
                LLM_CP_KEY);
    llm_cp_result(t, "ok", 0);
}


static void
llm_cp_arguments(llm_chat_t *c)
{
    llm_cp_t  text, value, escaped, doubled;

    text = llm_cp_look(c, llm_cp_arguments_as, 0, LLM_CP_KEY, c->norms);
    value = llm_cp_look(c, llm_cp_arguments_as, 1, LLM_CP_KEY, c->norms);
    escaped = llm_cp_look(c, llm_cp_arguments_as, 0, "\\\"" LLM_CP_KEY,
                          c->norms);

    doubled = llm_cp_look(c, llm_cp_arguments_as, 0, "{{\"" LLM_CP_KEY,
                          c->norms);

    if (text > LLM_CP_LOST && value <= LLM_CP_LOST) {
        c->never |= LLM_CN_ARGS;
    }

    if (value > LLM_CP_LOST
        && (text <= LLM_CP_LOST || escaped > LLM_CP_LOST
            || doubled > LLM_CP_LOST))
    {
        c->norms |= LLM_CN_ARGS;

        /* arguments that are no object fare the same or worse */

        if (text == LLM_CP_LOST || doubled > LLM_CP_LOST) {
            c->lenient |= LLM_CN_OBJECTS;
        }
    }
}


/* some templates require the variable tools, or functions */

static void
llm_cp_variables(llm_chat_t *c)
{
    size_t  i;

    static const uint64_t  variables[] = { LLM_CN_NO_TOOLS, LLM_CN_FUNCTIONS };

    if (llm_cp_look(c, llm_cp_user, 0, LLM_CP_WORD, 0) != LLM_CP_FAILED) {
        return;
    }

    for (i = 0; i < llm_nelems(variables); i++) {
        if (llm_cp_look(c, llm_cp_user, 0, LLM_CP_WORD, variables[i])
            > LLM_CP_LOST)
        {
            c->norms |= variables[i];
            return;
        }
    }
}


/* if a developer's message gets lost, it is given as the system's */

static void
llm_cp_developer_says(llm_cp_talk_t *t, int parts)
{
    llm_cp_say(t, "developer", LLM_CP_WORD, parts);
    llm_cp_say(t, "user", "Hi", 0);
}


static void
llm_cp_developer(llm_chat_t *c)
{
    if (llm_cp_look(c, llm_cp_developer_says, 0, LLM_CP_WORD, c->norms)
        == LLM_CP_LOST
        && llm_cp_look(c, llm_cp_developer_says, 0, LLM_CP_WORD,
                       c->norms | LLM_CN_DEVELOPER) > LLM_CP_LOST)
    {
        c->norms |= LLM_CN_DEVELOPER;
    }
}


/*
 * What the template does to a call without content, and to results of tools:
 * the word is in a result, and "None" is what Python writes for null.
 */

static void
llm_cp_call_of(llm_cp_talk_t *t, int null)
{
    llm_cp_say(t, "user", "Hi", 0);
    llm_cp_call(t, null ? NULL : "", NULL, NULL);
    llm_cp_result(t, LLM_CP_WORD, 0);
}


static void
llm_cp_history(llm_chat_t *c)
{
    llm_cp_t  null, empty;

    null = llm_cp_look(c, llm_cp_call_of, 1, "None", c->norms);
    empty = llm_cp_look(c, llm_cp_call_of, 0, "None", c->norms);

    if (null > LLM_CP_LOST && empty == LLM_CP_LOST) {
        c->lenient |= LLM_CN_NULL;
    }

    if (llm_cp_look(c, llm_cp_call_of, 0, LLM_CP_WORD, c->norms)
        == LLM_CP_LOST)
    {
        c->lenient |= LLM_CN_TOOL_TEXT;
    }
}


/* if the template does not show tools, or fails on them, they are described in
   text */

static void
llm_cp_tools(llm_chat_t *c)
{
    size_t         request, messages;
    llm_cp_t       res;
    llm_cp_talk_t  t;

    t.count = 0;
    llm_buf_init(&t.b, 0);

    request = llm_flat_open(&t.b, LLM_FLAT_OBJECT);
    llm_cp_str(&t.b, "messages");
    messages = llm_flat_open(&t.b, LLM_FLAT_ARRAY);
    llm_cp_user(&t, 0);
    llm_flat_close(&t.b, messages, t.count);
    llm_cp_str(&t.b, "tools");
    llm_show_tools(&t.b);
    llm_flat_close(&t.b, request, 2);

    res = t.b.failed ? LLM_CP_PLAIN
          : llm_cp_find(c, (const llm_flat_t *) t.b.data,
                        llm_show_calls[0].name, c->norms);

    if (res <= LLM_CP_LOST) {
        c->lenient |= LLM_CN_TELL_TOOLS;
    }

    llm_buf_free(&t.b);
}


/* if a later system message gets lost, it is given as a user's */

static void
llm_cp_late_system(llm_cp_talk_t *t, int parts)
{
    llm_cp_say(t, "user", "Hi", 0);
    llm_cp_say(t, "system", LLM_CP_WORD, parts);
    llm_cp_say(t, "user", "Hi", 0);
}


static void
llm_cp_lost_system(llm_chat_t *c, llm_cp_write_t write, uint64_t remedy)
{
    if (llm_cp_look(c, write, 0, LLM_CP_WORD, c->norms) == LLM_CP_LOST
        && llm_cp_look(c, write, 0, LLM_CP_WORD, c->norms | remedy)
           > LLM_CP_LOST)
    {
        c->lenient |= remedy;
    }
}


/* gpt-oss's template refuses an answer that contains marks of channels */

static void
llm_cp_answer(llm_cp_talk_t *t, int marks)
{
    llm_cp_say(t, "user", LLM_CP_WORD, 0);
    llm_cp_say(t, "assistant", marks ? "<|channel|>analysis<|message|>a<|end|>"
               "<|start|>assistant<|channel|>final<|message|>b" : "b", 0);
    llm_cp_say(t, "user", "Hi", 0);
}


static void
llm_cp_marks(llm_chat_t *c)
{
    c->no_marks = llm_cp_look(c, llm_cp_answer, 1, LLM_CP_WORD, c->norms)
                  == LLM_CP_FAILED
                  && llm_cp_look(c, llm_cp_answer, 0, LLM_CP_WORD, c->norms)
                     != LLM_CP_FAILED;
}


void
llm_chat_probe(llm_chat_t *c)
{
    llm_cp_variables(c);
    llm_cp_content(c);
    llm_cp_arguments(c);
    llm_cp_developer(c);
    llm_cp_history(c);
    llm_cp_tools(c);
    llm_cp_marks(c);
    llm_cp_lost_system(c, llm_cp_system, LLM_CN_NO_SYSTEM);
    llm_cp_lost_system(c, llm_cp_late_system, LLM_CN_SIDES);

    c->works = llm_cp_look(c, llm_cp_user, 0, LLM_CP_WORD, c->norms)
               > LLM_CP_LOST;

    if (llm_jinja_uses(c->template, "thinking")
        && !llm_jinja_uses(c->template, "reasoning_content"))
    {
        c->lenient |= LLM_CN_THINKING;
    }

    llm_chat_probe_turns(c);
}
