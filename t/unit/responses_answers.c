/*
 * Responses: answers of all parts, as a body and as typed events.
 */

#include "t/unit/api_talk.h"

#include <cjson/cJSON.h>

#include <time.h>

#define RESPONSES  (&llm_api_responses)


/* when answers are complete */

time_t
time(time_t *to)
{
    if (to) {
        *to = 1750000009;
    }

    return 1750000009;
}


#define SETTINGS                                                             \
    "{'id':'resp_deadbeef','object':'response','created_at':1750000000,"     \
    "'model':'demo','background':false,'previous_response_id':null,"         \
    "'service_tier':'default','store':false,'temperature':1,'top_p':1,"      \
    "'presence_penalty':0,'frequency_penalty':0,"                            \
    "'instructions':null,'max_output_tokens':null,'max_tool_calls':null,"    \
    "'metadata':{},'parallel_tool_calls':true,'prompt_cache_key':null,"      \
    "'safety_identifier':null,'tool_choice':'auto','top_logprobs':0,"        \
    "'truncation':'disabled','user':null,"                                   \
    "'reasoning':{'effort':null,'summary':null},"                            \
    "'text':{'format':{'type':'text'}},'tools':[],"

#define COMPLETED  "'status':'completed','completed_at':1750000009,"

#define BARE  SETTINGS                                                       \
              "'status':'in_progress','completed_at':null,'error':null,"     \
              "'incomplete_details':null,'output':[],'usage':null}"

#define USAGE "'usage':{'input_tokens':11,'input_tokens_details':"           \
              "{'cached_tokens':8,'cache_write_tokens':0},"                  \
              "'output_tokens':5,'output_tokens_details':"                   \
              "{'reasoning_tokens':2},'total_tokens':16}}"

#define FRAME(type, n)                                                       \
    "event: response." type "\ndata: {'type':'response." type "',"           \
    "'sequence_number':" n ","

#define AT(item, index)                                                      \
    "'item_id':'" item "_deadbeef_" index "','output_index':" index ","

#define REASON(status, text)                                                 \
    "{'id':'rs_deadbeef_0','type':'reasoning','status':'" status "',"        \
    "'summary':[],'content':[" text "]}"

#define SAID(status, text)                                                   \
    "{'id':'msg_deadbeef_1','type':'message','status':'" status "',"         \
    "'role':'assistant','content':[" text "]}"

#define PART(text)                                                           \
    "{'type':'output_text','annotations':[],'text':'" text "','logprobs':[]}"

#define CALL(index, call, status, name, args)                                \
    "{'id':'fc_deadbeef_" index "','type':'function_call','status':'"        \
    status "','call_id':'call_deadbeef_" call "','name':'" name "',"         \
    "'arguments':'" args "'}"

#define OUTPUT                                                               \
    REASON("completed", "{'type':'reasoning_text','text':'Hm, so'}") ","     \
    SAID("completed", PART("a\\nb")) ","                                     \
    CALL("2", "0", "completed", "f", "{\\'a\\':1}") ","                      \
    CALL("3", "1", "completed", "g", "")


static void
test_body(void)
{
    ask(RESPONSES, &conf, "{'input':'Hi'}");
    say_all();
    is_int(out.len, 0, "nothing before the end");
    is_text(body(SIZE_MAX), SETTINGS COMPLETED "'error':null,"
            "'incomplete_details':null,'output':[" OUTPUT "]," USAGE,
            "a body of all parts");
    is_text(body(1), SETTINGS COMPLETED "'error':null,"
            "'incomplete_details':null,'output':[" OUTPUT "]," USAGE,
            "the same in small pieces");
    hang_up();
}


static void
test_stream(void)
{
    ask(RESPONSES, &conf, "{'input':'Hi','stream':true}");
    say_all();

    is_text(out.data,
        FRAME("created", "0") "'response':" BARE "}\n\n"
        FRAME("in_progress", "1") "'response':" BARE "}\n\n"

        FRAME("output_item.added", "2") "'output_index':0,'item':"
        REASON("in_progress", "") "}\n\n"
        FRAME("content_part.added", "3") AT("rs", "0") "'content_index':0,"
        "'part':{'type':'reasoning_text','text':''}}\n\n"
        FRAME("reasoning_text.delta", "4") AT("rs", "0")
        "'content_index':0,'delta':'Hm,'}\n\n"
        FRAME("reasoning_text.delta", "5") AT("rs", "0")
        "'content_index':0,'delta':' so'}\n\n"
        FRAME("reasoning_text.done", "6") AT("rs", "0")
        "'content_index':0,'text':'Hm, so'}\n\n"
        FRAME("content_part.done", "7") AT("rs", "0") "'content_index':0,"
        "'part':{'type':'reasoning_text','text':'Hm, so'}}\n\n"
        FRAME("output_item.done", "8") "'output_index':0,'item':"
        REASON("completed", "{'type':'reasoning_text','text':'Hm, so'}")
        "}\n\n"

        FRAME("output_item.added", "9") "'output_index':1,'item':"
        SAID("in_progress", "") "}\n\n"
        FRAME("content_part.added", "10") AT("msg", "1")
        "'content_index':0,'part':" PART("") "}\n\n"
        FRAME("output_text.delta", "11") AT("msg", "1")
        "'content_index':0,'delta':'a\\n','logprobs':[]}\n\n"
        FRAME("output_text.delta", "12") AT("msg", "1")
        "'content_index':0,'delta':'b','logprobs':[]}\n\n"
        FRAME("output_text.done", "13") AT("msg", "1")
        "'content_index':0,'text':'a\\nb','logprobs':[]}\n\n"
        FRAME("content_part.done", "14") AT("msg", "1")
        "'content_index':0,'part':" PART("a\\nb") "}\n\n"
        FRAME("output_item.done", "15") "'output_index':1,'item':"
        SAID("completed", PART("a\\nb")) "}\n\n"

        FRAME("output_item.added", "16") "'output_index':2,'item':"
        CALL("2", "0", "in_progress", "f", "") "}\n\n"
        FRAME("function_call_arguments.delta", "17") AT("fc", "2")
        "'delta':'{\\'a\\''}\n\n"
        FRAME("function_call_arguments.delta", "18") AT("fc", "2")
        "'delta':':1}'}\n\n"
        FRAME("function_call_arguments.done", "19") AT("fc", "2")
        "'name':'f','arguments':'{\\'a\\':1}'}\n\n"
        FRAME("output_item.done", "20") "'output_index':2,'item':"
        CALL("2", "0", "completed", "f", "{\\'a\\':1}") "}\n\n"

        FRAME("output_item.added", "21") "'output_index':3,'item':"
        CALL("3", "1", "in_progress", "g", "") "}\n\n"
        FRAME("function_call_arguments.done", "22") AT("fc", "3")
        "'name':'g','arguments':''}\n\n"
        FRAME("output_item.done", "23") "'output_index':3,'item':"
        CALL("3", "1", "completed", "g", "") "}\n\n"

        FRAME("completed", "24") "'response':" SETTINGS
        COMPLETED "'error':null,'incomplete_details':null,"
        "'output':[" OUTPUT "]," USAGE "}\n\n",
        "a stream of all parts");

    hang_up();
}


/* a member of the last frame's response */

static cJSON *
last_response(void)
{
    char   *p, *last;
    cJSON  *json;

    last = NULL;

    for (p = out.data; (p = strstr(p, "data: ")); p += 6) {
        last = p + 6;
    }

    json = cJSON_Parse(last);
    ok(json != NULL, "the last frame is JSON");

    return json;
}


static const cJSON *
at(const cJSON *v, const char *path)
{
    char         key[32];
    size_t       n;
    const char  *p;

    for (p = path; v && *p; p += n + (p[n] == '.')) {
        n = strcspn(p, ".");
        snprintf(key, sizeof(key), "%.*s", (int) n, p);
        v = cJSON_IsArray(v) ? cJSON_GetArrayItem(v, atoi(key))
                             : cJSON_GetObjectItemCaseSensitive(v, key);
    }

    return v;
}


static void
says(const cJSON *json, const char *path, const char *want)
{
    const cJSON  *v;

    v = at(json, path);
    is_str(v && cJSON_IsString(v) ? v->valuestring : NULL, want, "%s", path);
}


static void
test_cut(void)
{
    cJSON  *json;

    ask(RESPONSES, &conf, "{'input':'Hi','stream':true}");
    start();
    reasoning("Hm");
    content("a");
    finish(LLM_FINISH_LENGTH);
    done();

    ok(strstr(out.data, "event: response.incomplete\n") != NULL
       && strstr(out.data, "event: response.completed\n") == NULL,
       "an answer that was cut is incomplete");

    json = last_response();
    says(json, "response.status", "incomplete");
    says(json, "response.incomplete_details.reason", "max_output_tokens");
    says(json, "response.output.0.status", "completed");
    says(json, "response.output.1.status", "incomplete");
    cJSON_Delete(json);
    hang_up();
}


/* settings are told with all members, as schemas of answers want them */

static void
test_settings(void)
{
    char    *text;
    size_t   i;

    static const char *const  wanted[] = {
        "'presence_penalty':0.5,'frequency_penalty':-1,",
        "'tools':[{'type':'function','name':'f','description':null,"
            "'parameters':null,'strict':false},"
            "{'type':'function','name':'g','description':'Gee','parameters':"
            "{'type':'object'},'strict':true,'x':18446744073709551616},"
            "{'type':'web_search'}],",
        "'reasoning':{'effort':'low','summary':null,'x':[1]},",
        "'text':{'format':{'type':'json_schema','name':'n','description':null,"
            "'schema':{'const':18446744073709551617},'strict':false},"
            "'verbosity':'low'},",
        "'metadata':{'n':-9223372036854775809},"
    };

    ask(RESPONSES, &conf, "{'input':'Hi','presence_penalty':0.5,"
        "'frequency_penalty':-1,'metadata':{'n':-9223372036854775809},"
        "'reasoning':{'x':[1],'effort':'low'},'text':{'verbosity':'low',"
        "'format':{'type':'json_schema','name':'n',"
        "'schema':{'const':18446744073709551617}}},"
        "'tools':[{'name':'f','type':'function'},"
        "{'type':'function','name':'g','description':'Gee',"
        "'x':18446744073709551616,'strict':true,'parameters':"
        "{'type':'object'}},{'type':'web_search'}]}");
    say_all();
    (void) body(SIZE_MAX);

    for (i = 0; i < llm_nelems(wanted); i++) {
        text = quoted(wanted[i]);
        ok(strstr(out.data, text) != NULL, "it says %s", text);
        free(text);
    }

    hang_up();

    ask(RESPONSES, &conf, "{'input':'Hi','text':{'verbosity':'low'}}");
    say_all();
    (void) body(SIZE_MAX);
    ok(strstr(out.data, "\"text\":{\"format\":{\"type\":\"text\"},"
              "\"verbosity\":\"low\"}") != NULL, "a format where none was");
    hang_up();
}


static void
test_nothing(void)
{
    cJSON  *json;

    ask(RESPONSES, &conf, "{'input':'Hi','stream':true}");
    start();
    content("");
    finish(LLM_FINISH_STOP);
    done();
    json = last_response();
    says(json, "response.output.0.content.0.text", "");
    says(json, "response.output.0.status", "completed");
    cJSON_Delete(json);
    hang_up();
}


static void
test_failed(void)
{
    cJSON  *json;

    ask(RESPONSES, &conf, "{'input':'Hi','stream':true}");
    is_int(broken("no GPU"), LLM_ERROR, "before it begins: an error's status");
    is_int(err.status, 503, "503");
    is_int(out.len, 0, "and no event");

    start();
    content("half");
    is_int(broken("no GPU"), LLM_OK, "in mid-stream: an event");

    json = last_response();
    says(json, "type", "response.failed");
    says(json, "response.status", "failed");
    says(json, "response.error.code", "server_error");
    says(json, "response.error.message", "no GPU");
    says(json, "response.output.0.content.0.text", "half");
    says(json, "response.output.0.status", "incomplete");
    cJSON_Delete(json);
    hang_up();
}


/* what goes out sealed is taken back */

static void
test_sealed(void)
{
    char         *text;
    cJSON        *json;
    llm_buf_t     back;
    const cJSON  *v;

    ask(RESPONSES, &conf, "{'input':'Hi','stream':true,"
        "'reasoning':{'summary':'auto'},"
        "'include':['reasoning.encrypted_content']}");
    start();
    reasoning("I must \xc3\xa4");
    reasoning("sk.");
    content("a");
    finish(LLM_FINISH_STOP);
    done();

    ok(strstr(out.data, "response.reasoning_summary_part.added")
       && strstr(out.data, "response.reasoning_summary_text.delta")
       && strstr(out.data, "response.reasoning_summary_text.done")
       && strstr(out.data, "response.reasoning_summary_part.done")
       && strstr(out.data, "reasoning_text.delta\",\"sequence_number\":4")
          == NULL, "reasoning as the summary that was asked for");

    json = last_response();
    says(json, "response.output.0.summary.0.text", "I must \xc3\xa4sk.");
    ok(at(json, "response.output.0.content") == NULL, "and not twice");
    v = at(json, "response.output.0.encrypted_content");
    text = v ? strdup(v->valuestring) : NULL;
    cJSON_Delete(json);
    hang_up();

    llm_buf_init(&back, 0);
    is_int(llm_api_unseal((llm_str_t) { strlen(text), text }, &back), LLM_OK,
           "%s is ours", text);
    is_str(back.data, "I must \xc3\xa4sk.", "and the text");
    llm_buf_free(&back);
    free(text);
}


static void
test_no_summary(void)
{
    cJSON  *json;

    ask(RESPONSES, &conf, "{'input':'Hi','stream':true,"
        "'reasoning':{'summary':'none'}}");
    start();
    reasoning("Hm.");
    content("a");
    finish(LLM_FINISH_STOP);
    done();

    json = last_response();
    says(json, "response.output.0.content.0.text", "Hm.");
    ok(strstr(out.data, "reasoning_summary") == NULL,
       "no summary where none is asked for");
    cJSON_Delete(json);
    hang_up();
}


static void
test_logprobs(void)
{
    cJSON        *json;
    const cJSON  *v;

    ask(RESPONSES, &conf, "{'input':'Hi','stream':true,"
        "'include':['message.output_text.logprobs']}");
    start();
    content("a");
    content("b");
    finish(LLM_FINISH_STOP);
    done();

    ok(strstr(out.data, "\"delta\":\"b\",\"logprobs\":[{\"token\":\"b\","
              "\"logprob\":-0.500000000,\"bytes\":[98],\"top_logprobs\":[]}]}")
       != NULL, "logprobs of a delta");

    json = last_response();
    v = at(json, "response.output.0.content.0.logprobs");
    is_int(cJSON_GetArraySize(v), 2, "those of the whole text");
    says(v, "1.token", "b");
    cJSON_Delete(json);
    hang_up();
}


/* texts longer than a piece, cut between characters; and than an answer may
   be */

static void
test_long(void)
{
    int              i, rc;
    char             text[1001];
    cJSON           *json;
    llm_buf_t        want;
    const cJSON     *v;
    llm_api_conf_t   small;

    llm_buf_init(&want, 0);

    for (i = 0; i < 1000; i += 4) {
        memcpy(text + i, i % 3 ? "\xf0\x9f\x98\x80" : "a\xe2\x82\xac", 4);
    }

    text[1000] = '\0';

    ask(RESPONSES, &conf, "{'input':'Hi'}");
    start();

    for (i = 0; i < 60; i++) {
        content(text + (i % 2 ? 0 : 4));
        llm_buf_adds(&want, text + (i % 2 ? 0 : 4));
    }

    finish(LLM_FINISH_STOP);
    done();

    json = cJSON_Parse(body(100));
    v = at(json, "output.0.content.0.text");
    ok(v && strcmp(v->valuestring, want.data) == 0,
       "%zu bytes of long characters", want.len);
    cJSON_Delete(json);
    hang_up();

    small = conf;
    small.max_answer = 20000;

    for (i = 0; i < 2; i++) {
        ask(RESPONSES, &small, i ? "{'input':'Hi','stream':true}"
                                 : "{'input':'Hi'}");
        start();

        do {
            rc = content(text);
        } while (rc == LLM_OK);

        ok(rc == LLM_ERROR && strcmp(err.code, "answer_too_large") == 0
           && a->gathered <= 20000, "an answer has its bound");
        hang_up();
    }

    /* what is kept until then is JSON */

    ask(RESPONSES, &small, "{'input':'Hi','stream':true,"
        "'include':['message.output_text.logprobs']}");
    start();

    do {
        rc = content("some words");
    } while (rc == LLM_OK);

    is_int(llm_api_error_frame(a, &err, &out), LLM_OK, "a stream's last word");
    json = last_response();
    v = at(json, "response.output.0.content.0.logprobs");
    ok(cJSON_GetArraySize(v) > 10, "with all that was kept before");
    cJSON_Delete(json);
    hang_up();

    llm_buf_free(&want);
}


int
main(void)
{
    test_body();
    test_stream();
    test_cut();
    test_settings();
    test_nothing();
    test_failed();
    test_sealed();
    test_no_summary();
    test_logprobs();
    test_long();

    return done_testing();
}
