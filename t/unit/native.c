/*
 * Dialects beside OpenAI's, Anthropic's and Ollama's: llama-server's own
 * endpoints, those of Text Embeddings Inference, and which dialect a body at
 * the path of several is in.
 */

#include "t/unit/api_talk.h"

#include <cjson/cJSON.h>

#define NATIVE  (&llm_api_completion)


/* ---- requests ---- */

/* a native request is read as the other one is, and its prompt is shown */

static void
same_as(const char *text, const char *other, const char *what)
{
    char       *got, *want, *flags;
    llm_buf_t   shown;

    got = asked(NATIVE, text);
    want = asked(COMPL, other);
    llm_buf_init(&shown, 0);
    flags = strstr(want, "flags=");

    if (flags) {
        llm_buf_add(&shown, want, (size_t) (flags - want));
        llm_buf_addf(&shown, "flags=%lu",
                     strtoul(flags + 6, &flags, 10) | LLM_REQ_SHOW);
        llm_buf_adds(&shown, flags);
    }

    is_str(got, shown.len ? shown.data : want, "%s", what);
    llm_buf_free(&shown);
    free(got);
    free(want);
}


/* the engine shows the prompt's text */

static void
shows(const char *text)
{
    static struct {
        llm_event_t  ev;
        char         text[64];
    } e;

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_TEXT;
    e.ev.u.text.echo = 1;
    e.ev.u.text.text.off = sizeof(e.ev);
    e.ev.u.text.text.len = (uint32_t) strlen(text);
    memcpy(e.text, text, strlen(text));
    is_int(llm_api_event(a, &e.ev, &out, &err), LLM_OK, "a prompt's text");
}


static void
has(const char *text, const char *part)
{
    char  *got;

    got = asked(NATIVE, text);
    ok(strstr(got, part) != NULL, "%s", text);

    if (strstr(got, part) == NULL) {
        printf("# got %s\n# not %s\n", got, part);
    }

    free(got);
}


static void
test_requests(void)
{
    size_t  i;

    static const struct {
        const char  *body, *param, *words;
    } bad[] = {
        { "{}", "prompt", "Missing" },
        { "{'prompt':{}}", "prompt.prompt_string", "Missing" },
        { "{'prompt':{'prompt_string':'a','multimodal_data':['x']}}",
          "prompt.multimodal_data", "come with chats" },
        { "{'prompt':[1,'a',2.5]}", "prompt[1]", "an integer" },
        { "{'prompt':[1,'a',-1]}", "prompt[2]", ">= 0" },
        { "{'prompt':'a','n_probs':21}", "n_probs", "20" },
        { "{'prompt':'a','response_fields':[5]}", "response_fields[0]",
          "a string" },
        { "{'prompt':{'content':'a'}}", "prompt.content", "an array" },
        { "{'prompt':{'content':[{'type':'image_url'}]}}",
          "prompt.content[0].type", "come with chats" },
        { "{'prompt':'a','logit_bias':{'':1}}", "logit_bias",
          "not a token id" },
        { "{'prompt':'a','logit_bias':[['b',true]]}", "logit_bias",
          "a number" },
        { "{'prompt':'a','logit_bias':[['b',101]]}", "logit_bias",
          "above maximum" },
        { "{'prompt':['a','b'],'n':100}", "n", "2 prompts times n = 100 are "
          "more than 128" }
    };

    same_as("{'prompt':'Hi','n_predict':7,'temperature':0,'stop':['x'],"
            "'grammar':'root ::= \\'a\\''}",
            "{'prompt':'Hi','max_tokens':7,'temperature':0,'stop':['x'],"
            "'grammar':'root ::= \\'a\\''}", "a completion's parameters");
    same_as("{'prompt':'Hi','id_slot':-1,'n_keep':3,'cache_prompt':false}",
            "{'prompt':'Hi','max_tokens':-1,'cache_prompt':false}",
            "no bound; slots and shifts have no effect");
    same_as("{'prompt':{'prompt_string':'Hi'},'n_predict':2}",
            "{'prompt':'Hi','max_tokens':2}", "a prompt in an object");
    same_as("{'prompt':[[1,2],'a'],'n_predict':2,'n_cmpl':2,"
            "'return_tokens':true}",
            "{'prompt':[[1,2],'a'],'max_tokens':2,'n':2,"
            "'return_token_ids':true}", "several prompts, and choices");
    has("{'prompt':[{'content':[{'type':'text','text':'a'},{'type':'text',"
        "'text':'b'}]},{'prompt_string':'c'}]}", " prompts='ab''c' ");
    has("{'prompt':[1,'a',2,3]}", " prompts=([1]'a'[2][3]) ");
    has("{'prompt':['a',5]}", " prompts=('a'[5]) ");
    has("{'prompt':[[1,'a'],'b',[2]]}", " prompts=([1]'a')'b'[2] ");
    has("{'prompt':'a','n_probs':4}", " logprobs=4 ");
    has("{'prompt':'a','n_probs':0}", " logprobs=-1 ");
    has("{'prompt':'a','n_probs':1,'post_sampling_probs':true}",
        " of_draw=1 ");
    has("{'prompt':'a','logit_bias':[[5,-1],[' is ',false],['b',2]]}",
        " bias=[(5:-1)(' is ':-inf)('b':2)] ");
    has("{'prompt':'a','logit_bias':{'5':-1,'b c':2}}",
        " bias=[(5:-1)('b c':2)] ");

    for (i = 0; i < llm_nelems(bad); i++) {
        refused(NATIVE, bad[i].body, bad[i].param, bad[i].words);
    }
}


/* the endpoint that reads a body at a path */

static const llm_api_endpoint_t *
reads(const char *path, const char *text)
{
    llm_str_t                  p;
    llm_api_route_t            to;
    const llm_api_endpoint_t  *ep;

    p = (llm_str_t) { strlen(path), path };
    (void) llm_api_route(p, llm_str("POST"), &to);
    ep = ask(to.endpoint, &conf, text) == LLM_OK ? a->endpoint : NULL;
    hang_up();

    return ep;
}


static void
test_dialects(void)
{
    size_t  i;

    static const struct {
        const char                *path, *body;
        const llm_api_endpoint_t  *want;
    } cases[] = {
        { "completion", "{'prompt':'a'}", NATIVE },
        { "completions", "{'prompt':'a','n_predict':5}", NATIVE },
        { "completions", "{'prompt':'a','n_probs':5}", NATIVE },
        { "completions", "{'prompt':'a'}", &llm_api_completions_any },
        { "completions", "{'prompt':'a','n_predict':null}",
          &llm_api_completions_any },
        { "v1/completions", "{'prompt':'a','n_predict':5}", COMPL },
        { "/v1/completions", "{'prompt':'a'}", COMPL },
        { "embeddings", "{'input':'a'}", &llm_api_embeddings },
        { "embeddings", "{'content':'a'}", &llm_api_embedding },
        { "embedding", "{'input':'a'}", &llm_api_embedding },
        { "embed", "{'inputs':'a'}", &llm_api_tei_embed },
        { "rerank", "{'query':'q','texts':['a']}", &llm_api_tei_rerank },
        { "v1/rerank", "{'query':'q','texts':['a']}", &llm_api_tei_rerank },
        { "rerank", "{'query':'q','texts':['a'],'documents':['b']}",
          &llm_api_rerank },
        { "rerank", "{'query':'q','texts':null}", NULL }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        ok(reads(cases[i].path, cases[i].body) == cases[i].want, "%s %s",
           cases[i].path, cases[i].body);
    }
}


/* ---- answers ---- */

static void
ends(uint32_t index, uint32_t reason, const char *stop)
{
    static told_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_FINISH;
    e.ev.index = index;
    e.ev.u.finish.reason = reason;
    e.ev.u.finish.completion_tokens = 2;
    e.ev.u.finish.stop.off = offsetof(told_t, text);
    e.ev.u.finish.stop.len = (uint32_t) strlen(stop);
    memcpy(e.text, stop, strlen(stop));
    is_int(llm_api_event(a, &e.ev, &out, &err), LLM_OK, "a choice ends");
}


static void
over(void)
{
    told_t  e;

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_DONE;
    e.ev.u.done.prompt_tokens = 11;
    e.ev.u.done.cached_tokens = 8;
    e.ev.u.done.completion_tokens = 2;
    e.ev.u.done.queue_us = 1000;
    e.ev.u.done.ttft_us = 4000;
    e.ev.u.done.total_us = 9000;
    is_int(llm_api_event(a, &e.ev, &out, &err), LLM_OK, "the end");
}


static cJSON *
at(cJSON *v, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(v, name);
}


static double
number(cJSON *v, const char *name)
{
    return at(v, name) ? cJSON_GetNumberValue(at(v, name)) : -99;
}


static const char *
string(cJSON *v, const char *name)
{
    return at(v, name) ? cJSON_GetStringValue(at(v, name)) : "none";
}


/* more names than there are fields */

static void
many_fields(void)
{
    uint32_t   i;
    llm_buf_t  text;

    llm_buf_init(&text, 0);
    llm_buf_adds(&text, "{'prompt':'a','response_fields':['x0'");

    for (i = 1; i < 129; i++) {
        llm_buf_addf(&text, ",'x%u'", i);
    }

    llm_buf_adds(&text, "]}");
    is_int(ask(NATIVE, &conf, text.data), LLM_ERROR, "129 names");
    is_str(err.param, "response_fields", "%s", err.msg);
    hang_up();
    llm_buf_free(&text);
}


static void
test_body(void)
{
    cJSON  *root, *v;

    (void) ask(NATIVE, &conf, "{'prompt':'Hi \\'you\\'','n_predict':5,"
               "'temperature':0.5,'n_probs':1,'seed':7}");
    start();
    shows("<s>Hi ");
    shows("\"you\"");
    content("a\n");
    content("b");
    ends(0, LLM_FINISH_STOP, "end\"");
    over();
    a->cursor.choice = 0;
    root = cJSON_Parse(body(7));
    ok(root != NULL, "a body: %s", out.data);

    is_str(string(root, "content"), "a\nb", "its text");
    is_int(number(root, "index"), 0, "index");
    is_str(string(root, "model"), "demo", "model");
    is_str(string(root, "prompt"), "<s>Hi \"you\"", "prompt");
    is_str(string(root, "stop_type"), "word", "a stop string");
    is_str(string(root, "stopping_word"), "end\"", "which one");
    ok(cJSON_IsTrue(at(root, "has_new_line")), "has_new_line");
    ok(cJSON_IsTrue(at(root, "stop")), "stop");
    is_int(number(root, "tokens_predicted"), 2, "tokens of the answer");
    is_int(number(root, "tokens_evaluated"), 11, "of the prompt");
    is_int(number(root, "tokens_cached"), 8, "of these cached");
    is_int(cJSON_GetArraySize(at(root, "tokens")), 0, "no ids");

    v = at(root, "generation_settings");
    is_int(number(v, "n_predict"), 5, "settings: n_predict");
    ok(number(v, "temperature") == 0.5, "temperature");
    is_int(number(v, "seed"), 7, "seed");
    is_int(number(v, "n_probs"), 1, "n_probs");
    is_int(number(v, "top_k"), 0, "those that were not given");

    v = at(root, "timings");
    is_int(number(v, "prompt_n"), 3, "timings: computed tokens");
    is_int(number(v, "cache_n"), 8, "cached tokens");
    ok(number(v, "prompt_ms") == 3 && number(v, "predicted_ms") == 5, "times");
    ok(number(v, "prompt_per_token_ms") == 1
       && number(v, "prompt_per_second") == 1000
       && number(v, "predicted_per_token_ms") == 5
       && number(v, "predicted_per_second") == 200, "rates");

    v = at(root, "completion_probabilities");
    is_int(cJSON_GetArraySize(v), 2, "probabilities of each token");
    v = cJSON_GetArrayItem(v, 1);
    is_str(string(v, "token"), "b", "its text");
    is_int(number(v, "id"), 0, "its id");
    ok(number(v, "logprob") == -0.5, "its logprob");
    cJSON_Delete(root);
    hang_up();

    /* only what was asked for */

    (void) ask(NATIVE, &conf, "{'prompt':'a','n_predict':9,"
               "'response_fields':['content','generation_settings/n_predict',"
               "'none','timings/cache_n']}");
    start();
    content("x\"y");
    ends(0, LLM_FINISH_LENGTH, "");
    over();
    is_text(body(1), "{'content':'x\\'y','generation_settings/n_predict':9,"
            "'timings/cache_n':8}", "response_fields");
    hang_up();

    (void) ask(NATIVE, &conf, "{'prompt':'a','n':2,'stream':true,"
               "'response_fields':['index','stop_type']}");
    start();
    ends(0, LLM_FINISH_LENGTH, "");
    ends(1, LLM_FINISH_STOP, "");
    over();
    is_text(out.data, "data: {'index':0,'stop_type':'limit'}\n\n"
            "data: {'index':1,'stop_type':'eos'}\n\n", "of a stream's ends");
    hang_up();

    (void) ask(NATIVE, &conf, "{'prompt':'a','n':2,"
               "'response_fields':['index','none']}");
    start();
    ends(0, LLM_FINISH_LENGTH, "");
    ends(1, LLM_FINISH_STOP, "");
    over();
    is_text(body(1), "[{'index':0},{'index':1}]", "of several choices");
    hang_up();

    /* each once: names that are repeated make no answer that is longer than the
       request by as much as the prompt is */

    (void) ask(NATIVE, &conf, "{'prompt':'abc','response_fields':['prompt',"
               "'index','prompt','prompt/','','/prompt','prompt\\u0000prompt',"
               "'index']}");
    start();
    shows("abc");
    ends(0, LLM_FINISH_LENGTH, "");
    over();
    is_text(body(1), "{'prompt':'abc','index':0}", "response_fields once each");
    hang_up();
    many_fields();

    /* two choices are an array */

    (void) ask(NATIVE, &conf, "{'prompt':'a','n':2,'return_tokens':true}");
    start();
    content("x");
    ends(0, LLM_FINISH_LENGTH, "");
    ends(1, LLM_FINISH_STOP, "");
    over();
    root = cJSON_Parse(body(1));
    is_int(cJSON_GetArraySize(root), 2, "choices: %s", out.data);
    is_str(string(cJSON_GetArrayItem(root, 0), "stop_type"), "limit",
           "n_predict");
    v = cJSON_GetArrayItem(root, 1);
    is_str(string(v, "content"), "", "an empty text");
    is_str(string(v, "stop_type"), "eos", "the model's own end");
    is_int(number(v, "index"), 1, "its index");
    ok(at(v, "completion_probabilities") == NULL, "no probabilities");
    cJSON_Delete(root);
    hang_up();
}


/* the n-th event of a stream */

static cJSON *
event(uint32_t n)
{
    const char  *p;

    for (p = out.data; p && n; n--) {
        p = strstr(p, "\n\n");
        p = p ? p + 2 : NULL;
    }

    return p && strncmp(p, "data: ", 6) == 0
           ? cJSON_ParseWithOpts(p + 6, NULL, 0) : NULL;
}


static void
test_stream(void)
{
    cJSON  *v;

    (void) ask(NATIVE, &conf, "{'prompt':'a','stream':true,"
               "'return_progress':true,'timings_per_token':true,"
               "'n_probs':1}");
    is_int(((llm_request_t *) msg.data)->flags & LLM_REQ_PROGRESS,
           LLM_REQ_PROGRESS, "the engine is to say how far it is");
    start();
    tell(LLM_EV_PROGRESS, 0, 8, "");
    tell(LLM_EV_PROGRESS, 0, 11, "");
    content("x");
    content("y");
    ends(0, LLM_FINISH_LENGTH, "");
    over();

    v = event(0);
    is_int(number(at(v, "prompt_progress"), "processed"), 8,
           "what is cached is processed");
    is_int(number(at(v, "prompt_progress"), "total"), 11, "of the prompt");
    cJSON_Delete(v);
    v = event(1);
    is_int(number(at(v, "prompt_progress"), "processed"), 11, "then all");
    ok(number(at(v, "prompt_progress"), "time_ms") >= 2000,
       "time since the request began to run");
    ok(number(at(v, "timings"), "prompt_ms") >= 2000, "and of the prompt");
    cJSON_Delete(v);

    v = event(2);
    is_str(string(v, "content"), "x", "a piece of text");
    ok(cJSON_IsFalse(at(v, "stop")), "not the last");
    is_int(number(v, "tokens_predicted"), 1, "tokens so far");
    is_int(number(at(v, "timings"), "predicted_n"), 1, "times so far");
    is_int(cJSON_GetArraySize(at(v, "completion_probabilities")), 1,
           "probabilities");
    is_int(((llm_request_t *) msg.data)->flags & LLM_REQ_TOKEN_IDS,
           LLM_REQ_TOKEN_IDS, "with its tokens");
    cJSON_Delete(v);

    v = event(4);
    is_int((long) number(at(v, "generation_settings"), "seed"), 4294967295,
           "a seed that was not given");
    ok(cJSON_IsTrue(at(v, "stop")) && at(v, "generation_settings")
       && at(v, "timings"), "the last event has the figures");
    is_str(string(v, "content"), "", "and no text");
    cJSON_Delete(v);
    ok(event(5) == NULL, "nothing follows");
    hang_up();
}


/* times in each piece of a stream, and progress before them; text: the member
   of a choice that has the text */

static void
test_pieces(const llm_api_endpoint_t *ep, const char *prompt, const char *text)
{
    char    body[256];
    cJSON  *v, *choice;

    snprintf(body, sizeof(body), "{%s,'stream':true,'return_progress':true,"
             "'timings_per_token':true}", prompt);
    (void) ask(ep, &conf, body);
    is_int(((llm_request_t *) msg.data)->flags & LLM_REQ_PROGRESS,
           LLM_REQ_PROGRESS, "the engine is to say how far it is");

    start();
    out.len = 0;
    tell(LLM_EV_PROGRESS, 0, 11, "");
    content("x");
    content("y");
    finish(LLM_FINISH_STOP);

    v = event(0);
    choice = cJSON_GetArrayItem(at(v, "choices"), 0);
    is_int(number(at(v, "prompt_progress"), "processed"), 11, "progress");
    ok(at(v, "timings") && at(choice, text), "with times, and without text");
    cJSON_Delete(v);

    v = event(2);
    is_int(number(at(v, "timings"), "predicted_n"), 2, "times in a piece");
    ok(number(at(v, "timings"), "prompt_ms") >= 2000, "of the prompt, too");
    cJSON_Delete(v);

    v = event(3);
    choice = cJSON_GetArrayItem(at(v, "choices"), 0);
    ok(at(v, "timings") && cJSON_IsString(at(choice, "finish_reason")),
       "and in the last one");
    cJSON_Delete(v);
    hang_up();
}


/* a chat has the figures, too, if they are asked for */

static void
test_chat(void)
{
    (void) ask(CHAT, &conf, "{'messages':[{'role':'user','content':'a'}],"
               "'timings_per_token':true}");
    start();
    content("x");
    finish(LLM_FINISH_STOP);
    over();
    memset(&a->cursor, 0, sizeof(a->cursor));
    ok(strstr(body(1000), "}},\"timings\":{\"cache_n\":8,"), "timings: %s",
       out.data);
    hang_up();

    (void) ask(CHAT, &conf, "{'messages':[{'role':'user','content':'a'}],"
               "'stream':true,'stream_options':{'include_usage':true},"
               "'timings_per_token':true}");
    start();
    content("x");
    finish(LLM_FINISH_STOP);
    over();
    ok(strstr(out.data, "}},\"timings\":{\"cache_n\":8,"), "in a stream");
    hang_up();

    test_pieces(CHAT, "'messages':[{'role':'user','content':'a'}]", "delta");
    test_pieces(&llm_api_completions, "'prompt':'a'", "text");
}


/* ---- vectors ---- */

static void
test_vectors(void)
{
    const llm_request_t  *r;

    (void) ask(&llm_api_embedding, &conf, "{'content':['a','b'],"
               "'embd_normalize':-1}");
    is_int(((llm_request_t *) msg.data)->normalize, -1, "not normalised");
    start();
    vector(0, 0.5, -1);
    vector(1, 0, 2);
    over();
    is_text(body(1), "[{'index':0,'embedding':[[0.5,-1]]},"
            "{'index':1,'embedding':[[0,2]]}]", "llama-server's vectors");
    hang_up();

    (void) ask(&llm_api_tei_embed, &conf, "{'inputs':'a','truncate':true,"
               "'truncation_direction':'Right','dimensions':2}");
    r = (const llm_request_t *) msg.data;
    ok(r->truncate == -1 && r->dimensions == 2
       && r->normalize == LLM_NORMALIZE_L2, "TEI's parameters");
    start();
    vector(0, 3, 4);
    over();
    is_text(body(1), "[[3,4]]", "a plain array");
    hang_up();

    (void) ask(&llm_api_tei_embed, &conf, "{'inputs':['a'],"
               "'normalize':false}");
    r = (const llm_request_t *) msg.data;
    ok(r->normalize == LLM_NORMALIZE_NONE && r->truncate == 0,
       "not normalised, never cut");
    hang_up();

    (void) ask(&llm_api_embedding, &conf, "{'content':[[1,'a'],'b',"
               "{'prompt_string':'c'}]}");
    is_int(((llm_request_t *) msg.data)->prompts.len, 3, "mixed inputs");
    hang_up();
    refused(&llm_api_embeddings, "{'input':[1,'a']}", "input[1]", "");

    refused(&llm_api_embedding, "{}", "content", "Missing");
    refused(&llm_api_embedding, "{'content':''}", "content", "empty string");
    refused(&llm_api_tei_embed, "{'inputs':['']}", "inputs[0]",
            "empty string");
    refused(&llm_api_tei_embed, "{'inputs':'a','truncation_direction':'Up'}",
            "truncation_direction", "'Left'");

    (void) ask(&llm_api_rerank, &conf, "{'query':'q','texts':['a'],"
               "'truncate':true,'truncation_direction':'Left',"
               "'raw_scores':true,'return_text':true}");
    r = (const llm_request_t *) msg.data;
    ok(r->task == LLM_TASK_SCORE && r->truncate == -1
       && r->flags == (LLM_REQ_RAW|LLM_REQ_CUT_HEAD), "TEI's scores");
    start();
    vector(0, -3, 4);
    over();
    is_text(body(1), "[{'index':0,'score':-3,'text':'a'}]", "a raw score");
    hang_up();

    (void) ask(&llm_api_rerank, &conf, "{'query':'q','texts':['a'],"
               "'truncate':false,'truncation_direction':'Right',"
               "'raw_scores':false}");
    r = (const llm_request_t *) msg.data;
    ok(r->truncate == 0 && r->flags == 0, "by default neither");
    hang_up();

    refused(&llm_api_rerank, "{'query':'q','texts':['a'],"
            "'truncation_direction':'Up'}", "truncation_direction", "'Left'");
    refused(&llm_api_rerank, "{'query':'q','texts':['a'],'raw_scores':1}",
            "raw_scores", "");

    llm_buf_init(&out, 0);
    (void) llm_fail_with(&err, 503, NULL, NULL, "Busy.");
    (void) llm_api_error_body(&llm_api_tei_embed, llm_str(""), &err, &out);
    is_text(out.data, "{'error':'Busy.','error_type':'Overloaded'}",
            "TEI's errors");
    out.len = 0;
    (void) llm_fail_with(&err, 400, "invalid_value", "x", "Invalid value.");
    (void) llm_api_error_body(&llm_api_tei_embed, llm_str(""), &err, &out);
    is_text(out.data, "{'error':'x: Invalid value.',"
            "'error_type':'Validation'}", "which name the parameter");
    llm_buf_free(&out);
}


/* ---- slots ---- */

static void
test_slots(void)
{
    llm_buf_t     flat;
    llm_event_t  *ev;

    static const char  told[] =
        "{\"total_slots\":2,\"default_generation_settings\":{\"n_ctx\":64}}";

    llm_buf_init(&flat, 0);
    (void) llm_json_to_flat(told, sizeof(told) - 1, NULL, &flat, &err);
    ev = calloc(1, sizeof(*ev) + flat.len);
    ev->size = (uint32_t) (sizeof(*ev) + flat.len);
    ev->type = LLM_EV_TEXT;
    ev->u.text.text.off = sizeof(*ev);
    ev->u.text.text.len = (uint32_t) flat.len;
    memcpy(ev + 1, flat.data, flat.len);

    (void) ask(&llm_api_slots, &conf, "");
    is_int(llm_api_event(a, ev, &out, &err), LLM_OK, "a description");
    is_text(body(1000), "[{'id':0,'n_ctx':64,'speculative':false,"
            "'is_processing':false},{'id':1,'n_ctx':64,'speculative':false,"
            "'is_processing':false}]", "slots");
    hang_up();
    free(ev);
    llm_buf_free(&flat);
}


int
main(void)
{
    test_requests();
    test_dialects();
    test_body();
    test_stream();
    test_chat();
    test_vectors();
    test_slots();

    return done_testing();
}
