/*
 * Finds out how a template renders turns with calls: whether it shows them at
 * all, several calls in a turn, text before calls, and which ids it wants; see
 * probe.c.
 */

#include "engine/text/chat/internal.h"
#include "engine/text/chat/show.h"

#include <stdio.h>

#define LLM_PT_STEPS   2000000
#define LLM_PT_MEMORY  ((size_t) 16 << 20)
#define LLM_PT_NOW     1700000000

/* a conversation: a user's turn, turns with calls, with or without results */
typedef struct {
    const char  *content;               /* content of the first turn with
                                           calls */
    int          null;                  /* 1: the content is null */
    int          first;                 /* 1: there is no user's turn, but
                                           there are tools */
    int          turns;                 /* turns with calls: 1 or 2 */
    int          calls;                 /* calls in each turn: 1 or 2 */
    int          results;
    uint64_t     what;                  /* LLM_CN_... in addition to c->norms */
} llm_pt_talk_t;


static void
llm_pt_turn(llm_buf_t *b, const llm_pt_talk_t *talk, int turn)
{
    int     i;
    size_t  msg, calls;

    msg = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "role", "assistant");
    llm_show_str(b, "content");

    if (talk->null) {
        llm_flat_add_null(b);

    } else {
        llm_show_str(b, turn ? "" : talk->content);
    }

    llm_show_str(b, "tool_calls");
    calls = llm_flat_open(b, LLM_FLAT_ARRAY);

    for (i = 0; i < talk->calls; i++) {
        llm_show_add_call(b, &llm_show_calls[turn + i]);
    }

    llm_flat_close(b, calls, (uint32_t) talk->calls);
    llm_flat_close(b, msg, 3);
}


static void
llm_pt_result(llm_buf_t *b, const char *id)
{
    size_t  msg;

    msg = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "role", "tool");
    llm_show_pair(b, "tool_call_id", id);
    llm_show_pair(b, "content", "ok");
    llm_flat_close(b, msg, 3);
}


static void
llm_pt_request(llm_buf_t *b, const llm_pt_talk_t *talk)
{
    int       turn, i;
    size_t    request, messages, user;
    uint32_t  n;

    request = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_str(b, "messages");
    messages = llm_flat_open(b, LLM_FLAT_ARRAY);

    n = 0;

    if (!talk->first) {
        user = llm_flat_open(b, LLM_FLAT_OBJECT);
        llm_show_pair(b, "role", "user");
        llm_show_pair(b, "content", "Hi");
        llm_flat_close(b, user, 2);
        n = 1;
    }

    for (turn = 0; turn < talk->turns; turn++) {
        llm_pt_turn(b, talk, turn);
        n++;

        for (i = 0; i < talk->calls && talk->results; i++) {
            llm_pt_result(b, llm_show_calls[turn + i].id);
            n++;
        }
    }

    llm_flat_close(b, messages, n);

    if (talk->first) {
        llm_show_str(b, "tools");
        llm_show_tools(b);
    }

    llm_flat_close(b, request, 1 + (talk->first != 0));
}


/* renders the conversation; LLM_ERROR: the template fails */

static int
llm_pt_render(const llm_chat_t *c, const llm_pt_talk_t *talk, llm_prompt_t *p)
{
    int               rc;
    llm_buf_t         b;
    llm_err_t         err;
    llm_jinja_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    opts.max_steps = LLM_PT_STEPS;
    opts.max_memory = LLM_PT_MEMORY;
    opts.now = LLM_PT_NOW;

    llm_buf_init(&b, 0);
    llm_pt_request(&b, talk);

    rc = b.failed ? LLM_ERROR
         : llm_chat_render_as(c, (const llm_flat_t *) b.data,
                              c->norms | talk->what
                              | (c->lenient & LLM_CN_NO_CONTENT),
                              &opts, p, &err);

    llm_buf_free(&b);

    return rc;
}


/* position of the word in the result; -1: not there; -2: the template fails */

static long
llm_pt_find(const llm_chat_t *c, const llm_pt_talk_t *talk, const char *word)
{
    long          at;
    char         *found;
    llm_prompt_t  p;

    if (llm_pt_render(c, talk, &p) != LLM_OK) {
        return -2;
    }

    found = strstr(p.text, word);
    at = found ? found - p.text : -1;
    llm_prompt_free(&p);

    return at;
}


/*
 * Ids.  A template that writes a call's id but not its name needs ids that
 * contain the name.  A template that writes functions.NAME:N itself may write
 * the id with the result: that must then be the same id.
 */

static void
llm_pt_ids(llm_chat_t *c)
{
    char           own[64];
    llm_pt_talk_t  talk = { "", 0, 0, 2, 1, 0, LLM_CN_NULL };

    if (llm_pt_find(c, &talk, llm_show_calls[0].id) >= 0) {

        if (llm_pt_find(c, &talk, llm_show_calls[0].name) == -1) {
            c->lenient |= LLM_CN_NAME_IDS;
        }

        return;
    }

    snprintf(own, sizeof(own), "functions.%s:0", llm_show_calls[0].name);

    if (llm_pt_find(c, &talk, own) < 0) {
        return;
    }

    talk.results = 1;

    if (llm_pt_find(c, &talk, llm_show_calls[0].id) >= 0) {
        c->lenient |= LLM_CN_NAME_IDS;
        snprintf(own, sizeof(own), "functions.%s:0", llm_show_calls[1].name);

        if (llm_pt_find(c, &talk, own) >= 0) {
            c->lenient |= LLM_CN_TURN_IDS;
        }
    }
}


/* a second call of a turn that is dropped, or replaces the first */

static void
llm_pt_several(llm_chat_t *c)
{
    int            i;
    llm_pt_talk_t  talk = { "", 0, 0, 1, 2, 1, LLM_CN_NULL };

    for (i = 0; i < 2; i++) {
        if (llm_pt_find(c, &talk, llm_show_calls[i].name) != -1) {
            continue;
        }

        talk.what |= LLM_CN_ONE_CALL;

        if (llm_pt_find(c, &talk, llm_show_calls[0].name) >= 0
            && llm_pt_find(c, &talk, llm_show_calls[1].name) >= 0)
        {
            c->lenient |= LLM_CN_ONE_CALL;
        }

        return;
    }
}


/* text that the model writes before its calls, but the template after them */

static void
llm_pt_text(llm_chat_t *c)
{
    long           text, call;
    llm_pt_talk_t  talk = { LLM_SHOW_TEXT, 0, 0, 1, 1, 1, LLM_CN_NULL };

    text = llm_pt_find(c, &talk, LLM_SHOW_TEXT);
    call = llm_pt_find(c, &talk, llm_show_calls[0].name);

    if (text < 0 || call < 0 || text < call) {
        return;
    }

    talk.what |= LLM_CN_TEXT_TURN;
    text = llm_pt_find(c, &talk, LLM_SHOW_TEXT);
    call = llm_pt_find(c, &talk, llm_show_calls[0].name);

    if (text >= 0 && text < call) {
        c->lenient |= LLM_CN_TEXT_TURN;
    }
}


/* how often the word occurs in the result; -1: the template fails */

static int
llm_pt_count(const llm_chat_t *c, const llm_pt_talk_t *talk, const char *word)
{
    int            n;
    char          *at;
    llm_prompt_t   p;

    if (llm_pt_render(c, talk, &p) != LLM_OK) {
        return -1;
    }

    for (at = p.text, n = 0; (at = strstr(at, word)) != NULL; at++) {
        n++;
    }

    llm_prompt_free(&p);

    return n;
}


/* whether it takes results as a part of the turn, with the function's name */

static void
llm_pt_responses(llm_chat_t *c)
{
    llm_pt_talk_t  talk = { "", 0, 0, 1, 1, 1, LLM_CN_NULL };

    if (!llm_jinja_uses(c->template, "tool_responses")
        || llm_pt_count(c, &talk, llm_show_calls[0].name) > 1)
    {
        return;
    }

    talk.what |= LLM_CN_RESPONSES;

    if (llm_pt_count(c, &talk, llm_show_calls[0].name) > 1) {
        c->lenient |= LLM_CN_RESPONSES;
    }
}


/* missing content, if the template fails on null */

static void
llm_pt_null(llm_chat_t *c)
{
    llm_pt_talk_t  talk = { "", 1, 0, 1, 1, 1, 0 };

    if (llm_pt_find(c, &talk, llm_show_calls[0].name) != -2) {
        return;
    }

    talk.what = LLM_CN_NULL;

    if (llm_pt_find(c, &talk, llm_show_calls[0].name) >= 0) {
        c->lenient |= LLM_CN_NULL;
    }
}


/* a first turn that is dropped because it is not a user's */

static void
llm_pt_first(llm_chat_t *c)
{
    llm_pt_talk_t  talk = { "", 0, 1, 1, 1, 1, LLM_CN_NULL };

    if (llm_pt_find(c, &talk, llm_show_calls[0].value) != -1) {
        return;
    }

    talk.what |= LLM_CN_FIRST;

    if (llm_pt_find(c, &talk, llm_show_calls[0].value) >= 0) {
        c->lenient |= LLM_CN_FIRST;
    }
}


/* calls that the template accepts and does not show */

static void
llm_pt_dropped(llm_chat_t *c, llm_pt_talk_t *talk)
{
    if (c->calls || llm_pt_find(c, talk, llm_show_calls[0].name) != -1) {
        return;
    }

    talk->what |= LLM_CN_CALL_TEXT;

    if (llm_pt_find(c, talk, llm_show_calls[0].name) >= 0) {
        c->lenient |= LLM_CN_CALL_TEXT;
    }
}


/* calls that the template shows only without content */

static void
llm_pt_no_content(llm_chat_t *c, llm_pt_talk_t *talk)
{
    talk->what &= ~(uint64_t) LLM_CN_NULL;
    talk->null = 1;

    c->calls = llm_pt_find(c, talk, llm_show_calls[0].name) >= 0;

    if (c->calls) {
        c->never |= LLM_CN_NULL;
        c->lenient &= ~(uint64_t) LLM_CN_NULL;
        c->lenient |= LLM_CN_NO_CONTENT;
    }

    talk->what |= LLM_CN_NULL;
    talk->null = 0;
}


void
llm_chat_probe_turns(llm_chat_t *c)
{
    llm_pt_talk_t  talk = { "", 0, 0, 1, 1, 1,
                            LLM_CN_NULL | LLM_CN_RESULT_NAMES };

    c->calls = llm_pt_find(c, &talk, llm_show_calls[0].name) >= 0;

    if (!c->calls) {
        llm_pt_no_content(c, &talk);
    }

    if (!c->calls) {
        talk.results = 0;
        c->calls = llm_pt_find(c, &talk, llm_show_calls[0].id) >= 0;

        llm_pt_dropped(c, &talk);
    }

    if (c->calls) {
        c->lenient |= LLM_CN_ORDER;
        llm_pt_null(c);
        llm_pt_first(c);
        llm_pt_ids(c);
        llm_pt_several(c);
        llm_pt_text(c);
        llm_pt_responses(c);
    }
}
