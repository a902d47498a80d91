/*
 * Ollama's dialect: requests that are chats and completions in other words,
 * answers as bodies and as lines of a stream, "context", vectors, lists of
 * models, errors.
 */

#include "t/unit/api_talk.h"

#include <cjson/cJSON.h>

#define CHATS     (&llm_api_ollama_chat)
#define TEXTS     (&llm_api_ollama_generate)
#define LINE      "{'model':'demo','created_at':'2025-06-15T15:06:40Z',"
#define SAID(s)   LINE "'message':{'role':'assistant','content':'" s "'}"
#define WROTE(s)  LINE "'response':'" s "'"
#define TIMES     "'total_duration':9000,'load_duration':1000,"              \
                  "'prompt_eval_count':11,'prompt_eval_duration':3000,"      \
                  "'eval_count':5,'eval_duration':5000}"
#define SCHEMA    "{'type':'object','properties':{'a':{'type':'integer'}}}"


/* ---- requests ---- */

static void
test_chats(void)
{
    size_t  i;

    static const struct {
        const char  *what, *said, *chat;
    } pairs[] = {
        { "a stream, unless it is said otherwise",
          "{'messages':[{'role':'user','content':'Hi'}]}",
          "{'stream':true,'messages':[{'role':'user','content':'Hi'}]}" },

        { "stream, keep_alive and an unknown member",
          "{'model':'demo:latest','stream':false,'keep_alive':'5m','x':1,"
          "'messages':[{'role':'system','content':'S'},"
          "{'role':'user','content':'Hi','images':[]}]}",
          "{'messages':[{'role':'system','content':'S'},"
          "{'role':'user','content':'Hi'}]}" },

        { "options, those about loading without effect",
          "{'stream':false,'messages':[{'role':'user','content':'Hi'}],"
          "'options':{'num_predict':7,'temperature':0.5,'top_k':4,"
          "'top_p':0.9,'min_p':0.1,'repeat_penalty':1.1,'repeat_last_n':9,"
          "'seed':3,'stop':['a','b'],'num_ctx':99,'num_gpu':1,"
          "'messages':5,'typical_p':null}}",
          "{'max_tokens':7,'temperature':0.5,'top_k':4,'top_p':0.9,"
          "'min_p':0.1,'repeat_penalty':1.1,'repeat_last_n':9,'seed':3,"
          "'stop':['a','b'],'messages':[{'role':'user','content':'Hi'}]}" },

        { "no bound",
          "{'stream':false,'messages':[{'role':'user','content':'Hi'}],"
          "'options':{'num_predict':-2}}",
          "{'max_tokens':-1,'messages':[{'role':'user','content':'Hi'}]}" },

        { "parameters of a chat at the top, those of options before them",
          "{'stream':false,'messages':[{'role':'user','content':'Hi'}],"
          "'max_completion_tokens':3,'temperature':1,'min_p':0.5,"
          "'options':{'num_predict':5,'temperature':0}}",
          "{'max_tokens':5,'temperature':0,'min_p':0.5,"
          "'messages':[{'role':'user','content':'Hi'}]}" },

        { "thinking",
          "{'stream':false,'think':false,"
          "'messages':[{'role':'user','content':'Hi'}]}",
          "{'enable_thinking':false,"
          "'messages':[{'role':'user','content':'Hi'}]}" },

        { "an effort",
          "{'stream':false,'think':'low',"
          "'messages':[{'role':'user','content':'Hi'}]}",
          "{'reasoning_effort':'low','enable_thinking':true,"
          "'messages':[{'role':'user','content':'Hi'}]}" },

        { "JSON",
          "{'stream':false,'format':'json',"
          "'messages':[{'role':'user','content':'Hi'}]}",
          "{'response_format':{'type':'json_object'},"
          "'messages':[{'role':'user','content':'Hi'}]}" },

        { "a schema",
          "{'stream':false,'format':" SCHEMA ","
          "'messages':[{'role':'user','content':'Hi'}]}",
          "{'response_format':{'type':'json_schema','json_schema':{'strict':"
          "true,'schema':" SCHEMA "}},'messages':[{'role':'user','content':'Hi'}]}" },

        { "no format",
          "{'stream':false,'format':'',"
          "'messages':[{'role':'user','content':'Hi'}]}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "log probabilities",
          "{'stream':false,'logprobs':true,'top_logprobs':2,"
          "'messages':[{'role':'user','content':'Hi'}]}",
          "{'logprobs':true,'top_logprobs':2,"
          "'messages':[{'role':'user','content':'Hi'}]}" },

        { "tools, calls without ids, and results by the tool's name",
          "{'stream':false,'tools':[" "{'type':'function','function':"
          "{'name':'f','parameters':{}}}" "],'messages':["
          "{'role':'user','content':'Go'},{'role':'assistant','content':'',"
          "'thinking':'Hm.','tool_calls':[{'function':{'name':'f',"
          "'arguments':{'a':1}}},{'function':{'name':'g'}}]},"
          "{'role':'tool','content':'G','tool_name':'g'},"
          "{'role':'tool','content':'F','tool_name':'f'},"
          "{'role':'assistant','tool_calls':[{'id':'own','function':{'name':"
          "'f','arguments':{}}},{'function':{'name':'f','arguments':{}}}]},"
          "{'role':'tool','content':'1'},{'role':'tool','content':'2'}]}",
          "{'tools':[{'type':'function','function':{'name':'f',"
          "'parameters':{}}}],'messages':["
          "{'role':'user','content':'Go'},{'role':'assistant',"
          "'content':null,'reasoning_content':'Hm.','tool_calls':[{'id':"
          "'call_0','type':'function','function':{'name':'f','arguments':"
          "'{\\'a\\':1}'}},{'id':'call_1','type':'function','function':"
          "{'name':'g','arguments':'{}'}}]},"
          "{'role':'tool','content':'G','tool_call_id':'call_1'},"
          "{'role':'tool','content':'F','tool_call_id':'call_0'},"
          "{'role':'assistant','content':null,'tool_calls':[{'id':'own',"
          "'type':'function','function':{'name':'f','arguments':'{}'}},"
          "{'id':'call_3','type':'function','function':{'name':'f',"
          "'arguments':'{}'}}]},"
          "{'role':'tool','content':'1','tool_call_id':'own'},"
          "{'role':'tool','content':'2','tool_call_id':'call_3'}]}" },

        { "a result that names its call",
          "{'stream':false,'messages':[{'role':'assistant','tool_calls':["
          "{'id':'x','function':{'name':'f','arguments':{}}}]},"
          "{'role':'tool','content':'1','tool_call_id':'x'}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':["
          "{'id':'x','type':'function','function':{'name':'f','arguments':"
          "'{}'}}]},{'role':'tool','content':'1','tool_call_id':'x'}]}" },

        { "an image that was answered",
          "{'stream':false,'messages':[{'role':'user','content':'What?',"
          "'images':['iVBO']},{'role':'assistant','content':'A dog.'},"
          "{'role':'user','content':'And?'}]}",
          "{'messages':[{'role':'user','content':[{'type':'text','text':"
          "'[image]'},{'type':'text','text':'What?'}]},{'role':'assistant',"
          "'content':'A dog.'},{'role':'user','content':'And?'}]}" }
    };

    for (i = 0; i < llm_nelems(pairs); i++) {
        same_as_chat(CHATS, pairs[i].said, pairs[i].chat, pairs[i].what);
    }
}


static void
same_text(const char *text, const llm_api_endpoint_t *ep, const char *other,
    const char *what)
{
    char  *got, *want;

    got = asked(TEXTS, text);
    want = asked(ep, other);
    is_str(got, want, "%s", what);
    free(got);
    free(want);
}


static void
test_texts(void)
{
    same_as_chat(TEXTS, "{'stream':false,'prompt':'Hi'}",
                 "{'messages':[{'role':'user','content':'Hi'}]}",
                 "a prompt is a user's message");
    same_as_chat(TEXTS, "{'prompt':'Hi','system':'S','template':'',"
                 "'options':{'temperature':0}}",
                 "{'stream':true,'temperature':0,'messages':["
                 "{'role':'system','content':'S'},"
                 "{'role':'user','content':'Hi'}]}", "with a system prompt");
    same_text("{'stream':false,'raw':true,'prompt':'Hi','options':"
              "{'num_predict':4,'stop':'x'}}", COMPL,
              "{'prompt':'Hi','max_tokens':4,'stop':'x'}",
              "without a template: a completion");
    same_text("{'stream':false,'raw':true,'prompt':'Hi'}", COMPL,
              "{'prompt':'Hi','max_tokens':-1}", "without a bound");
    same_text("{'stream':false,'raw':true,'prompt':'Hi','model':'Big-Llm7'}",
              COMPL, "{'prompt':'Hi','model':'Big-Llm7'}",
              "or with that of the model");
    same_text("{'stream':false,'prompt':'Hi','suffix':'S','format':'json'}",
              COMPL, "{'prompt':'Hi','suffix':'S','max_tokens':-1,"
              "'response_format':{'type':'json_object'}}", "a gap");

    is_int(ask(TEXTS, &conf, "{'raw':true,'prompt':'Hi','logprobs':true,"
               "'top_logprobs':7}"), LLM_OK, "log probabilities of a text");
    is_int(((llm_request_t *) msg.data)->sampling.n_logprobs, 7,
           "more than a completion's");
    hang_up();
}


static void
test_refused(void)
{
    size_t  i;

    static const struct {
        const llm_api_endpoint_t  *ep;
        const char                *body, *param, *words;
    } bad[] = {
        { CHATS, "{'messages':5}", "messages", "expected an array" },
        { CHATS, "{'messages':[5]}", "messages[0]", "expected an object" },
        { CHATS, "{'messages':[{}]}", "messages[0].role", "Missing" },
        { CHATS, "{'messages':[{'role':'bot','content':'a'}]}",
          "messages[0].role", "'tool'" },
        { CHATS, "{'messages':[{'role':'user','content':['a']}]}",
          "messages[0].content", "expected a string" },
        { CHATS, "{'messages':[{'role':'user','content':'a','images':"
          "['iVBO']}]}", "messages[0].images", "text only" },
        { CHATS, "{'messages':[{'role':'assistant','tool_calls':[{}]}]}",
          "messages[0].tool_calls[0].function", "Missing" },
        { CHATS, "{'messages':[{'role':'assistant','tool_calls':[{'function':"
          "{'name':'f','arguments':'{}'}}]}]}",
          "messages[0].tool_calls[0].function.arguments", "an object" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],'format':'x'}",
          "format", "'json'" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],'format':5}",
          "format", "JSON schema" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],'think':5}",
          "think", "boolean" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],'think':'x'}",
          "think", "'x'" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],"
          "'keep_alive':'long'}", "keep_alive", "'5m'" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],"
          "'keep_alive':true}", "keep_alive", "seconds" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],"
          "'options':{'num_predict':'a'}}", "options.num_predict",
          "an integer" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],"
          "'options':{'temperature':3}}", "temperature", "3" },
        { CHATS, "{'messages':[{'role':'user','content':'a'}],"
          "'template':'x'}", "template", "not supported" },
        { TEXTS, "{'prompt':5}", "prompt", "expected a string" },
        { TEXTS, "{'prompt':'a','images':['iVBO']}", "images", "text only" },
        { TEXTS, "{'prompt':'a','context':[1,2]}", "context",
          "has sent" },
        { TEXTS, "{'prompt':'a','context':['a']}", "context", "has sent" },
        { TEXTS, "{'prompt':'a','context':[281474976710656]}", "context",
          "has sent" },
        { TEXTS, "{'prompt':'a','raw':true,'context':[1]}", "context",
          "'raw'" },
        { &llm_api_ollama_embed, "{'input':{}}", "input", "a string" },
        { &llm_api_ollama_embed, "{'input':['a','']}", "input[1]",
          "empty string" },
        { &llm_api_ollama_embeddings, "{'prompt':['a','b']}", "prompt",
          "a string" },
        { &llm_api_ollama_show, "{'model':5}", "model", "a string" }
    };

    for (i = 0; i < llm_nelems(bad); i++) {
        refused(bad[i].ep, bad[i].body, bad[i].param, bad[i].words);
    }

    is_int(ask(CHATS, &conf, "{'model':'none:latest','messages':["
               "{'role':'user','content':'a'}]}"), LLM_ERROR, "no such model");
    is_int(err.status, 404, "is a 404");
    hang_up();
}


/* ---- answers ---- */

static void
ends(void)
{
    told_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_DONE;
    e.ev.u.done.prompt_tokens = 11;
    e.ev.u.done.cached_tokens = 8;
    e.ev.u.done.completion_tokens = 5;
    e.ev.u.done.queue_us = 1;
    e.ev.u.done.ttft_us = 4;
    e.ev.u.done.total_us = 9;
    is_int(llm_api_event(a, &e.ev, &out, &err), LLM_OK, "the end");
}


/* an answer of all parts; arguments on several lines, and cut ones */

static void
talk(uint32_t why)
{
    start();
    reasoning("Hm,");
    reasoning(" so");
    content("a\n");
    content("b");
    name(0, "f");
    args(0, "{\"a\":\n");
    args(0, " 1}");
    name(1, "g");
    name(2, "h");
    args(2, "{\"b\":2,\"c");
    finish(why);
    ends();
}


static void
test_stream(void)
{
    (void) ask(CHATS, &conf, "{'messages':[{'role':'user','content':'Hi'}]}");
    is_str(llm_api_stream_type(a), "application/x-ndjson", "lines of JSON");
    talk(LLM_FINISH_TOOL_CALLS);

    is_text(out.data,
            SAID("','thinking':'Hm,") ",'done':false}\n"
            SAID("','thinking':' so") ",'done':false}\n"
            SAID("a\\n") ",'done':false}\n"
            SAID("b") ",'done':false}\n"
            LINE "'message':{'role':'assistant','content':'','tool_calls':["
            "{'id':'call_deadbeef_0','function':{'index':0,'name':'f',"
            "'arguments':{'a':1}}}]},'done':false}\n"
            LINE "'message':{'role':'assistant','content':'','tool_calls':["
            "{'id':'call_deadbeef_1','function':{'index':1,'name':'g',"
            "'arguments':{}}}]},'done':false}\n"
            LINE "'message':{'role':'assistant','content':'','tool_calls':["
            "{'id':'call_deadbeef_2','function':{'index':2,'name':'h',"
            "'arguments':{'b':2}}}]},'done':false}\n"
            SAID("") ",'done':true,'done_reason':'stop'," TIMES "\n",
            "a chat's lines");

    out.len = 0;
    is_int(llm_api_heartbeat(a, &out), LLM_OK, "a heartbeat");
    is_text(out.data, SAID("") ",'done':false}\n", "is a line without text");
    hang_up();

    (void) ask(CHATS, &conf, "{'messages':[{'role':'user','content':'Hi'}]}");
    start();
    broken("It \"broke\".");
    is_text(out.data, "{'error':'It \\'broke\\'.'}\n", "an error is a line");
    hang_up();

    (void) ask(TEXTS, &conf, "{'raw':true,'prompt':'Hi','logprobs':true,"
               "'top_logprobs':1}");
    start();
    content("a");
    finish(LLM_FINISH_LENGTH);
    ends();
    is_text(out.data,
            WROTE("a") ",'logprobs':[{'token':'a','logprob':-0.500000000,"
            "'bytes':[97],'top_logprobs':[]}],'done':false}\n"
            WROTE("") ",'done':true,'done_reason':'length'," TIMES "\n",
            "a text's lines, with log probabilities");
    hang_up();
}


static void
test_body(void)
{
    size_t  i;

    static const size_t  pieces[] = { 100000, 1, 17 };

    (void) ask(CHATS, &conf, "{'stream':false,'messages':[{'role':'user',"
               "'content':'Hi'}]}");
    talk(LLM_FINISH_TOOL_CALLS);
    is_int(out.len, 0, "nothing is sent before the end");

    for (i = 0; i < llm_nelems(pieces); i++) {
        a->cursor.member = 0;
        is_text(body(pieces[i]),
                LINE "'message':{'role':'assistant','content':'a\\nb',"
                "'thinking':'Hm, so','tool_calls':["
                "{'id':'call_deadbeef_0','function':{'index':0,'name':'f',"
                "'arguments':{'a':1}}},"
                "{'id':'call_deadbeef_1','function':{'index':1,'name':'g',"
                "'arguments':{}}},"
                "{'id':'call_deadbeef_2','function':{'index':2,'name':'h',"
                "'arguments':{'b':2}}}]},'done':true,'done_reason':'stop',"
                TIMES, "a chat's body");
    }

    hang_up();

    (void) ask(TEXTS, &conf, "{'stream':false,'raw':true,'prompt':'Hi',"
               "'logprobs':true}");
    start();
    content("a");
    content("b");
    finish(LLM_FINISH_LENGTH);
    ends();
    is_text(body(100000),
            WROTE("ab") ",'logprobs':[{'token':'a','logprob':-0.500000000,"
            "'bytes':[97],'top_logprobs':[]},{'token':'b','logprob':"
            "-0.500000000,'bytes':[98],'top_logprobs':[]}],'done':true,"
            "'done_reason':'length'," TIMES, "a text's body");
    hang_up();
}


/* without messages or a prompt the model is loaded */

static void
test_load(void)
{
    size_t  i;

    static const struct {
        const llm_api_endpoint_t  *ep;
        const char                *body, *want;
    } loads[] = {
        { CHATS, "{'model':'demo'}",
          SAID("") ",'done':true,'done_reason':'load'}" },
        { CHATS, "{'messages':[],'keep_alive':-1}",
          SAID("") ",'done':true,'done_reason':'load'}" },
        { TEXTS, "{'stream':true,'keep_alive':60}",
          WROTE("") ",'done':true,'done_reason':'load'}" },
        { TEXTS, "{'prompt':''}",
          WROTE("") ",'done':true,'done_reason':'load'}" },
        { &llm_api_ollama_embed, "{'input':''}",
          "{'model':'demo','embeddings':[],'total_duration':9000,"
          "'load_duration':1000,'prompt_eval_count':0}" },
        { &llm_api_ollama_embed, "{}",
          "{'model':'demo','embeddings':[],'total_duration':9000,"
          "'load_duration':1000,'prompt_eval_count':0}" },
        { &llm_api_ollama_embeddings, "{'prompt':''}", "{'embedding':[]}" }
    };

    for (i = 0; i < llm_nelems(loads); i++) {
        is_int(ask(loads[i].ep, &conf, loads[i].body), LLM_OK, "%s",
               loads[i].body);
        is_int(((llm_request_t *) msg.data)->task, LLM_TASK_PROPS,
               "asks for a description");
        start();
        content("0123456789abcdef");
        finish(LLM_FINISH_STOP);
        ends();
        ok(!llm_api_is_stream(a), "and is no stream");
        is_text(body(100000), loads[i].want, "which is not sent");
        hang_up();
    }
}


/* ---- context ---- */

/* the context of a text, as JSON; the caller frees it */

static char *
told_context(const char *json)
{
    char   *text;
    cJSON  *root;

    root = cJSON_Parse(json);
    text = cJSON_PrintUnformatted(cJSON_GetObjectItem(root, "context"));
    cJSON_Delete(root);

    return text;
}


static void
test_context(void)
{
    char        *first, *second, *text, *again;
    const char  *last;

    (void) ask(TEXTS, &conf, "{'stream':false,'prompt':'My name is "
               "\xc3\x84nn.','system':'S'}");
    start();
    reasoning("Hm");
    content("Hi \"");
    content("\xc3\x84nn\".");
    finish(LLM_FINISH_STOP);
    ends();
    first = told_context(body(100000));
    hang_up();

    ok(first && strncmp(first, "[121390681058413,", 17) == 0,
       "a context of numbers: %.60s", first ? first : "none");

    text = malloc(strlen(first) + 200);
    sprintf(text, "{'stream':false,'prompt':'Who?','context':%s}", first);
    same_as_chat(TEXTS, text, "{'messages':[{'role':'system','content':'S'},"
                 "{'role':'user','content':'My name is \xc3\x84nn.'},"
                 "{'role':'assistant','content':'Hi \\'\xc3\x84nn\\'.'},"
                 "{'role':'user','content':'Who?'}]}",
                 "goes on with the conversation");

    sprintf(text, "{'stream':true,'system':'T','prompt':'Who?',"
            "'context':%s}", first);
    same_as_chat(TEXTS, text, "{'stream':true,'messages':["
                 "{'role':'system','content':'T'},"
                 "{'role':'user','content':'My name is \xc3\x84nn.'},"
                 "{'role':'assistant','content':'Hi \\'\xc3\x84nn\\'.'},"
                 "{'role':'user','content':'Who?'}]}",
                 "a new system prompt replaces the old one");

    /* a stream's context is that of a body */

    (void) ask(TEXTS, &conf, text);
    start();
    content("You.");
    finish(LLM_FINISH_STOP);
    ends();
    last = strstr(out.data, "\n");
    second = told_context(last ? last + 1 : "");
    hang_up();

    sprintf(text, "{'stream':false,'system':'T','prompt':'Who?',"
            "'context':%s}", first);
    (void) ask(TEXTS, &conf, text);
    start();
    content("You.");
    finish(LLM_FINISH_STOP);
    ends();
    again = told_context(body(100000));
    is_str(second ? second : "none", again ? again : "no", "in a stream, too");
    hang_up();

    /* the client may change it */

    sprintf(text, "{'prompt':'a','context':[121390681058413%s",
            strchr(strchr(first, ',') + 1, ','));
    strcat(text, "}");
    refused(TEXTS, text, "context", "has sent");

    free(first);
    free(second);
    free(again);
    free(text);
}


/* ---- models ---- */

static const char *
answer(const llm_api_endpoint_t *ep)
{
    static llm_err_t  why;

    llm_buf_free(&out);
    llm_buf_init(&out, 0);

    return llm_api_answer(ep, &conf, llm_str(""), &out, &why) == LLM_OK
           ? out.data : why.msg;
}


static void
test_models(void)
{
    cJSON        *root, *list, *m;
    llm_api_t    *kept;
    const char   *text;
    llm_event_t  *ev;

    static const char  told[] =
        "{\"chat_template\":\"T\",\"capabilities\":[\"completion\"],"
        "\"model_info\":{\"general.architecture\":\"qwen3\","
        "\"general.parameter_count\":134500000},"
        "\"default_generation_settings\":{\"params\":{\"temperature\":0.5}}}";

    llm_buf_init(&out, 0);
    root = cJSON_Parse(answer(&llm_api_ollama_tags));
    list = cJSON_GetObjectItem(root, "models");
    is_int(cJSON_GetArraySize(list), 5, "models and their aliases");
    m = cJSON_GetArrayItem(list, 0);
    is_str(cJSON_GetStringValue(cJSON_GetObjectItem(m, "name")),
           "demo:latest", "by name and tag");
    is_str(cJSON_GetStringValue(cJSON_GetObjectItem(m, "model")),
           "demo:latest", "under both names");
    is_str(cJSON_GetStringValue(cJSON_GetObjectItem(m, "modified_at")),
           "2023-11-14T22:13:20Z", "their time");
    is_int(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(m, "digest"))), 64,
           "a digest");
    ok(strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(m, "digest")),
              cJSON_GetStringValue(cJSON_GetObjectItem(
                  cJSON_GetArrayItem(list, 3), "digest"))) != 0,
       "another one of another model");
    cJSON_Delete(root);

    is_str(answer(&llm_api_ollama_ps), "{\"models\":[]}",
           "none is known to be loaded");
    ok(strstr(answer(&llm_api_ollama_version), "\"version\":\""), "a version");
    ok(strstr(answer(&llm_api_ollama_none), "configuration"),
       "models are not changed");

    /* what the engine says of a model is one flat object */

    llm_buf_free(&out);
    (void) ask(&llm_api_ollama_show, &conf, "{'name':'demo:latest'}");
    is_int(((llm_request_t *) msg.data)->model, 0, "found by its older name");
    llm_buf_init(&out, 0);
    (void) llm_json_to_flat(told, sizeof(told) - 1, NULL, &out, &err);
    ev = calloc(1, sizeof(*ev) + out.len);
    ev->size = (uint32_t) (sizeof(*ev) + out.len);
    ev->type = LLM_EV_TEXT;
    ev->u.text.text.off = sizeof(*ev);
    ev->u.text.text.len = (uint32_t) out.len;
    memcpy(ev + 1, out.data, out.len);
    out.len = 0;
    kept = a;
    is_int(llm_api_event(kept, ev, &out, &err), LLM_OK, "a description");
    free(ev);
    text = body(100000);
    is_text(text, "{'modified_at':'2023-11-14T22:13:20Z','modelfile':'',"
            "'details':{'parent_model':'','format':'gguf','family':'qwen3',"
            "'families':['qwen3'],'parameter_size':'134.5M',"
            "'quantization_level':''},'parameters':'temperature"
            "                    0.5','template':'T','capabilities':"
            "['completion'],'model_info':{'general.architecture':'qwen3',"
            "'general.parameter_count':134500000}}", "as Ollama has it");
    hang_up();
}


/* ---- vectors ---- */

static void
test_vectors(void)
{
    const llm_request_t  *r;

    (void) ask(&llm_api_ollama_embed, &conf, "{'input':['a','b'],"
               "'dimensions':2,'options':{'num_ctx':9},'keep_alive':'1h'}");
    r = (const llm_request_t *) msg.data;
    ok(r->task == LLM_TASK_EMBED && r->dimensions == 2 && r->truncate == -1
       && r->normalize == LLM_NORMALIZE_L2, "longer inputs are cut");
    start();
    vector(0, 0.5, -1);
    vector(1, 0, 2);
    ends();
    is_text(body(1), "{'model':'demo','embeddings':[[0.5,-1],[0,2]],"
            "'total_duration':9000,'load_duration':1000,"
            "'prompt_eval_count':11}", "vectors");
    hang_up();

    (void) ask(&llm_api_ollama_embed, &conf, "{'input':'a',"
               "'truncate':false}");
    is_int(((llm_request_t *) msg.data)->truncate, 0, "or refused");
    hang_up();

    (void) ask(&llm_api_ollama_embeddings, &conf, "{'prompt':'a'}");
    is_int(((llm_request_t *) msg.data)->normalize, LLM_NORMALIZE_NONE,
           "the older form");
    start();
    vector(0, 3, 4);
    ends();
    is_text(body(1), "{'embedding':[3,4]}", "has one vector");
    hang_up();
}


/* ---- paths ---- */

static void
test_paths(void)
{
    size_t           i;
    llm_str_t        path, method;
    llm_buf_t        index;
    llm_api_route_t  to;

    static const struct {
        const char                *method, *path;
        const llm_api_endpoint_t  *want;
    } paths[] = {
        { "POST", "api/chat", CHATS },
        { "POST", "/api/generate", TEXTS },
        { "POST", "api/embeddings", &llm_api_ollama_embeddings },
        { "POST", "api/v1/embeddings", &llm_api_embeddings },
        { "POST", "api/v1/chat/completions", CHAT },
        { "POST", "api/chat/completions", &llm_api_chat_any },
        { "GET", "api/models/demo", &llm_api_models },
        { "GET", "api/tags", &llm_api_ollama_tags },
        { "HEAD", "api/blobs/sha256:1", &llm_api_ollama_none },
        { "DELETE", "api/delete", &llm_api_ollama_none },
        { "POST", "api/v1/generate", NULL },
        { "POST", "api/nothing", NULL },
        { "POST", "api/", NULL },
        { "POST", "generate", NULL }
    };

    for (i = 0; i < llm_nelems(paths); i++) {
        path = (llm_str_t) { strlen(paths[i].path), paths[i].path };
        method = (llm_str_t) { strlen(paths[i].method), paths[i].method };
        (void) llm_api_route(path, method, &to);
        ok(to.endpoint == paths[i].want, "%s %s", paths[i].method,
           paths[i].path);
    }

    (void) llm_api_route(llm_str("api/nothing"), llm_str("GET"), &to);
    llm_buf_init(&index, 0);
    (void) llm_fail_with(&err, 404, NULL, NULL, "There is nothing.");
    (void) llm_api_error_body(to.path, llm_str("x"), &err, &index);
    is_str(index.data, "{\"error\":\"There is nothing.\"}",
           "no path of Ollama's: an error of its form");

    index.len = 0;
    (void) llm_api_index(llm_str("/x/api"), &index);
    ok(strstr(index.data, "\"/x/api/chat\"") && strstr(index.data,
       "\"/x/api/v1/chat/completions\"") && !strstr(index.data, "api/api"),
       "the list below \"/api\"");
    llm_buf_free(&index);

    (void) llm_api_route(llm_str("api/chat"), llm_str("GET"), &to);
    is_str(to.allow, "POST", "methods");
    ok(llm_api_is_root(llm_str("api/")) && !llm_api_is_root(llm_str("apix")),
       "the root");
}


int
main(void)
{
    test_chats();
    test_texts();
    test_refused();
    test_stream();
    test_body();
    test_load();
    test_context();
    test_models();
    test_vectors();
    test_paths();

    return done_testing();
}
