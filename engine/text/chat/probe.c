/*
 * What a template needs, found out by showing it small conversations with
 * words in them that stand out, and looking for these words in what it
 * makes of them.
 */

#include "engine/text/chat/internal.h"
#include "engine/text/chat/flat_json.h"

#define LLM_CP_STEPS   2000000
#define LLM_CP_MEMORY  ((size_t) 16 << 20)
#define LLM_CP_NOW     1700000000

#define LLM_CP_WORD    "zqxword"
#define LLM_CP_KEY     "zqxkey"

/* what became of the word */
typedef enum {
    LLM_CP_FAILED,                      /* no prompt at all */
    LLM_CP_LOST,                        /* the word is not in it */
    LLM_CP_QUOTED,                      /* it stands behind a quote */
    LLM_CP_PLAIN
} llm_cp_t;


/* the word in what the request renders to */

static llm_cp_t
llm_cp_look(const llm_chat_t *c, const char *request, const char *word,
    unsigned what)
{
    char             *at;
    llm_cp_t          res;
    llm_buf_t         b;
    llm_err_t         err;
    llm_prompt_t      p;
    llm_jinja_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    memset(&err, 0, sizeof(err));
    opts.max_steps = LLM_CP_STEPS;
    opts.max_memory = LLM_CP_MEMORY;
    opts.now = LLM_CP_NOW;

    llm_buf_init(&b, 0);
    res = LLM_CP_FAILED;

    if (llm_flat_add_json(&b, request, strlen(request), LLM_FLAT_MAX_DEPTH)
        == LLM_OK
        && llm_chat_render_as(c, (const llm_flat_t *) b.data, what, &opts,
                              &p, &err) == LLM_OK)
    {
        at = strstr(p.text, word);
        res = at == NULL ? LLM_CP_LOST
              : at > p.text && strchr("'\"", at[-1]) ? LLM_CP_QUOTED
              : LLM_CP_PLAIN;

        llm_prompt_free(&p);
    }

    llm_buf_free(&b);

    return res;
}


/* a call of a tool, and its result */
#define LLM_CP_HISTORY(content, result)                                      \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},"                 \
    "{\"role\":\"assistant\",\"content\":" content ",\"tool_calls\":["       \
    "{\"id\":\"abcdefghi\",\"type\":\"function\",\"function\":"              \
    "{\"name\":\"f\",\"arguments\":{}}}]},"                                  \
    "{\"role\":\"tool\",\"name\":\"f\",\"tool_call_id\":\"abcdefghi\","      \
    "\"content\":" result "}]}"


/* for every role, a conversation with its content as a string, as parts */

static const struct {
    unsigned     join;
    const char  *string;
    const char  *parts;
} llm_cp_contents[] = {
#define LLM_CP_TEXT   "\"" LLM_CP_WORD "\""
#define LLM_CP_PARTS  "[{\"type\":\"text\",\"text\":\"" LLM_CP_WORD "\"}]"

    { LLM_CN_JOIN_USER,
#define LLM_CP_USER(content)                                                 \
      "{\"messages\":[{\"role\":\"user\",\"content\":" content "}]}"

      LLM_CP_USER(LLM_CP_TEXT), LLM_CP_USER(LLM_CP_PARTS) },

    { LLM_CN_JOIN_SYSTEM,
#define LLM_CP_SYSTEM(content)                                               \
      "{\"messages\":[{\"role\":\"system\",\"content\":" content "},"        \
      "{\"role\":\"user\",\"content\":\"Hi\"}]}"

      LLM_CP_SYSTEM(LLM_CP_TEXT), LLM_CP_SYSTEM(LLM_CP_PARTS) },

    { LLM_CN_JOIN_ASSISTANT,
#define LLM_CP_ASSISTANT(content)                                            \
      "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},"               \
      "{\"role\":\"assistant\",\"content\":" content "},"                    \
      "{\"role\":\"user\",\"content\":\"Hi\"}]}"

      LLM_CP_ASSISTANT(LLM_CP_TEXT), LLM_CP_ASSISTANT(LLM_CP_PARTS) },

    { LLM_CN_JOIN_TOOL,
      LLM_CP_HISTORY("\"\"", LLM_CP_TEXT),
      LLM_CP_HISTORY("\"\"", LLM_CP_PARTS) }
};


static void
llm_cp_content(llm_chat_t *c)
{
    size_t    i;
    llm_cp_t  string, parts;

    for (i = 0; i < llm_nelems(llm_cp_contents); i++) {
        string = llm_cp_look(c, llm_cp_contents[i].string, LLM_CP_WORD,
                             c->norms & LLM_CN_NO_TOOLS);
        parts = llm_cp_look(c, llm_cp_contents[i].parts, LLM_CP_WORD,
                            c->norms & LLM_CN_NO_TOOLS);

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
 * mapping fails on text, loses it, or writes it as a JSON string: then a
 * backslash stands before the quote of the key.
 */

#define LLM_CP_CALL(arguments)                                               \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},"                 \
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":["              \
    "{\"id\":\"abcdefghi\",\"type\":\"function\",\"function\":"              \
    "{\"name\":\"f\",\"arguments\":" arguments "}}]},"                       \
    "{\"role\":\"tool\",\"name\":\"f\",\"tool_call_id\":\"abcdefghi\","      \
    "\"content\":\"ok\"}]}"


static void
llm_cp_arguments(llm_chat_t *c)
{
    llm_cp_t                  text, value, escaped;
    static const char *const  as_text =
        LLM_CP_CALL("\"{\\\"" LLM_CP_KEY "\\\": \\\"v\\\"}\"");
    static const char *const  as_value =
        LLM_CP_CALL("{\"" LLM_CP_KEY "\": \"v\"}");

    text = llm_cp_look(c, as_text, LLM_CP_KEY, c->norms);
    value = llm_cp_look(c, as_value, LLM_CP_KEY, c->norms);
    escaped = llm_cp_look(c, as_text, "\\\"" LLM_CP_KEY, c->norms);

    if (value > LLM_CP_LOST
        && (text <= LLM_CP_LOST || escaped > LLM_CP_LOST))
    {
        c->norms |= LLM_CN_ARGS;
    }
}


/* some templates for tool use take it for granted that there are tools */

static void
llm_cp_tools(llm_chat_t *c)
{
    const char  *user;

    user = llm_cp_contents[0].string;

    if (llm_cp_look(c, user, LLM_CP_WORD, 0) == LLM_CP_FAILED
        && llm_cp_look(c, user, LLM_CP_WORD, LLM_CN_NO_TOOLS) > LLM_CP_LOST)
    {
        c->norms |= LLM_CN_NO_TOOLS;
    }
}


/* a developer's message that disappears is shown as the system's */

static void
llm_cp_developer(llm_chat_t *c)
{
    static const char *const  developer =
        "{\"messages\":[{\"role\":\"developer\",\"content\":\"" LLM_CP_WORD
        "\"},{\"role\":\"user\",\"content\":\"Hi\"}]}";

    if (llm_cp_look(c, developer, LLM_CP_WORD, c->norms) == LLM_CP_LOST
        && llm_cp_look(c, developer, LLM_CP_WORD,
                       c->norms | LLM_CN_DEVELOPER) > LLM_CP_LOST)
    {
        c->norms |= LLM_CN_DEVELOPER;
    }
}


/*
 * What it does to a call without content, and to the results of tools: the
 * word is in a result, and "None" is what Python writes for null.
 */

static void
llm_cp_history(llm_chat_t *c)
{
    llm_cp_t                  null, empty;
    static const char *const  with_null =
        LLM_CP_HISTORY("null", "\"" LLM_CP_WORD "\"");
    static const char *const  with_empty =
        LLM_CP_HISTORY("\"\"", "\"" LLM_CP_WORD "\"");

    null = llm_cp_look(c, with_null, "None", c->norms);
    empty = llm_cp_look(c, with_empty, "None", c->norms);

    if (null > LLM_CP_LOST && empty == LLM_CP_LOST) {
        c->lenient |= LLM_CN_NULL;
    }

    if (llm_cp_look(c, with_empty, LLM_CP_WORD, c->norms) == LLM_CP_LOST) {
        c->lenient |= LLM_CN_TOOL_TEXT;
    }
}


void
llm_chat_probe(llm_chat_t *c)
{
    llm_cp_tools(c);
    llm_cp_content(c);
    llm_cp_arguments(c);
    llm_cp_developer(c);
    llm_cp_history(c);

    if (llm_jinja_uses(c->template, "thinking")
        && !llm_jinja_uses(c->template, "reasoning_content"))
    {
        c->lenient |= LLM_CN_THINKING;
    }
}
