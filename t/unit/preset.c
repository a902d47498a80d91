/*
 * Defaults of requests (llm_defaults): which are refused when the
 * configuration is read, and what requests get.  In bodies ' stands for ".
 */

#include "engine/api/preset.h"
#include "t/unit/api_conf.h"
#include "t/unit/tap.h"


static const char *
quoted(const char *text)
{
    size_t       i;
    static char  out[4096];

    for (i = 0; text[i] && i < sizeof(out) - 1; i++) {
        out[i] = text[i] == '\'' ? '"' : text[i];
    }

    out[i] = '\0';

    return out;
}


static llm_api_preset_t *
preset(const char *text, llm_err_t *err)
{
    const char  *json;

    memset(err, 0, sizeof(*err));
    json = quoted(text);

    return llm_api_preset_create(json, strlen(json), err);
}


/* ---- the check ---- */

typedef struct {
    const char  *text;
    const char  *why;                   /* NULL: it is taken */
} check_t;

static const check_t  checks[] = {
    { "{}", NULL },
    { "{'temperature':0.7,'top_p':0.9,'max_tokens':500}", NULL },
    { "{'stop':['a','b'],'seed':1,'logit_bias':{'5':-100}}", NULL },
    { "{'stream_options':{'include_usage':true}}", NULL },
    { "{'stream':true,'stream_options':{'include_usage':true}}", NULL },
    { "{'chat_template_kwargs':{'a':[1]},'reasoning_effort':'low'}", NULL },
    { "{'response_format':{'type':'json_object'}}", NULL },
    { "{'logprobs':true,'top_logprobs':3}", NULL },
    { "{'logprobs':3}", NULL },
    { "{'dimensions':64}", NULL },
    { "{'top_n':3}", NULL },
    { "{'system':'Be brief.'}", NULL },
    { "{'max_output_tokens':9}", NULL },
    { "{'thinking':{'type':'disabled'}}", NULL },

    { "", "JSON" },
    { "[1]", "it is not an object" },
    { "{'temperature':0.7", "JSON" },
    { "{'temperature':3}", "temperature" },
    { "{'temperature':'hot'}", "temperature" },
    { "{'temprature':1}", "no member \"temprature\"" },
    { "{'top_p':0.5,'min_tokens':-1}", "min_tokens" },
    { "{'model':'demo'}", "\"model\" cannot have a default" },
    { "{'messages':[]}", "\"messages\" cannot have a default" },
    { "{'prompt':'x'}", "\"prompt\" cannot have a default" },
    { "{'top_k':null}", "\"top_k\" is null" },
    { "{'stop':7}", "stop" },
    { "{'stop':['a',7]}", "stop" },
    { "{'logit_bias':{'5':1000}}", "logit_bias" },
    { "{'response_format':{'type':'sonnet'}}", "response_format" },
    { "{'stream_options':{'include_usage':1}}", "stream_options" },
    { "{'max_tokens':5,'min_tokens':6}", "min_tokens" },
    { "{'web_search_options':{'a':1}}", "web_search_options" },
};


static void
test_check(void)
{
    size_t             i;
    llm_err_t          err;
    llm_api_preset_t  *p;

    for (i = 0; i < llm_nelems(checks); i++) {
        p = preset(checks[i].text, &err);

        if (checks[i].why == NULL) {
            ok(p != NULL, "taken: %s %s", checks[i].text, err.msg);

        } else {
            ok(p == NULL && strstr(err.msg, checks[i].why) != NULL,
               "refused: %s: %s", checks[i].text, err.msg);
        }

        llm_api_preset_free(p);
    }
}


/* ---- what a request gets ---- */

typedef struct {
    const llm_api_endpoint_t  *ep;
    const char                *defaults;
    const char                *body;
    const char                *same;    /* the body that says all that it is
                                           to mean */
} got_t;

#define MSG  "'messages':[{'role':'user','content':'a'}]"

static const got_t  gots[] = {
    { CHAT, "{'temperature':0.5}", "{" MSG "}", "{" MSG ",'temperature':0.5}" },
    { CHAT, "{'temperature':0.5}", "{" MSG ",'temperature':1}",
      "{" MSG ",'temperature':1}" },
    { CHAT, "{'temperature':0.5}", "{" MSG ",'temperature':null}",
      "{" MSG ",'temperature':0.5}" },
    { CHAT, "{'max_tokens':50}", "{" MSG ",'max_completion_tokens':7}",
      "{" MSG ",'max_tokens':7}" },
    { CHAT, "{'max_completion_tokens':50}", "{" MSG ",'max_tokens':7}",
      "{" MSG ",'max_tokens':7}" },
    { COMPL, "{'max_tokens':50}", "{'prompt':'a','n_predict':7}",
      "{'prompt':'a','max_tokens':7}" },
    { COMPL, "{'max_tokens':50,'stop':'z'}", "{'prompt':'a'}",
      "{'prompt':'a','max_tokens':50,'stop':'z'}" },
    { COMPL, "{'repetition_penalty':1.5}",
      "{'prompt':'a','repeat_penalty':1.2}",
      "{'prompt':'a','repeat_penalty':1.2}" },
    { CHAT, "{'response_format':{'type':'json_object'}}",
      "{" MSG ",'guided_regex':'a+'}", "{" MSG ",'guided_regex':'a+'}" },
    { CHAT, "{'stream_options':{'include_usage':true}}", "{" MSG "}",
      "{" MSG "}" },
    { CHAT, "{'stream_options':{'include_usage':true}}",
      "{" MSG ",'stream':true}",
      "{" MSG ",'stream':true,'stream_options':{'include_usage':true}}" },
    { CHAT, "{'logprobs':true,'top_k':3}", "{" MSG "}",
      "{" MSG ",'logprobs':true,'top_k':3}" },
    { COMPL, "{'logprobs':true,'top_k':3}", "{'prompt':'a'}",
      "{'prompt':'a','top_k':3}" },
    { COMPL, "{'logprobs':2}", "{'prompt':'a'}",
      "{'prompt':'a','logprobs':2}" },
    { &llm_api_messages, "{'max_tokens':50,'temperature':1.5}", "{" MSG "}",
      "{" MSG ",'max_tokens':50}" },
    { &llm_api_messages, "{'stop':'z'}",
      "{" MSG ",'max_tokens':9,'stop_sequences':['y']}",
      "{" MSG ",'max_tokens':9,'stop_sequences':['y']}" },
    { &llm_api_responses, "{'max_tokens':50,'top_p':0.5}", "{'input':'a'}",
      "{'input':'a','max_output_tokens':50,'top_p':0.5}" },
    { &llm_api_responses, "{'max_tokens':50}",
      "{'input':'a','max_output_tokens':20}",
      "{'input':'a','max_output_tokens':20}" },
    { &llm_api_embeddings, "{'dimensions':3,'temperature':1}",
      "{'input':'a'}", "{'input':'a','dimensions':3}" },
    { &llm_api_tokenize, "{'add_special':true}", "{'content':'a'}",
      "{'content':'a','add_special':true}" },
};


/* a message without what is never the same */

static int
message(const llm_api_endpoint_t *ep, const char *body,
    const llm_api_preset_t *p, llm_buf_t *msg)
{
    llm_api_t       *a;
    llm_err_t        err;
    const char      *json;
    llm_request_t   *r;
    llm_api_conf_t   c;

    c = conf;
    c.preset = p;
    json = quoted(body);
    llm_buf_init(msg, 0);

    a = llm_api_parse(ep, &c, json, strlen(json), msg, &err);

    if (a == NULL) {
        printf("# %s\n", err.msg);
        return LLM_ERROR;
    }

    llm_api_free(a);

    r = (llm_request_t *) msg->data;
    r->arrival_us = 0;

    return LLM_OK;
}


static void
test_got(void)
{
    int                same;
    size_t             i;
    llm_buf_t          got, want;
    llm_err_t          err;
    const got_t       *g;
    llm_api_preset_t  *p;

    for (i = 0; i < llm_nelems(gots); i++) {
        g = &gots[i];
        p = preset(g->defaults, &err);

        if (!ok(p != NULL, "%s %s", g->defaults, err.msg)) {
            continue;
        }

        same = message(g->ep, g->body, p, &got) == LLM_OK;
        same &= message(g->ep, g->same, NULL, &want) == LLM_OK;

        ok(same && got.len == want.len
           && memcmp(got.data, want.data, got.len) == 0,
           "%s and %s is %s", g->body, g->defaults, g->same);

        llm_buf_free(&got);
        llm_buf_free(&want);
        llm_api_preset_free(p);
    }
}


/* as many members as there may be, and one more */

static void
test_many(void)
{
    size_t             i, n;
    llm_err_t          err;
    llm_buf_t          b;
    llm_api_preset_t  *p;

    for (n = 64; n <= 65; n++) {
        llm_buf_init(&b, 0);
        llm_buf_adds(&b, "{");

        for (i = 0; i < n; i++) {
            llm_buf_addf(&b, "%s\"m%zu\":1", i ? "," : "", i);
        }

        llm_buf_adds(&b, "}");
        p = llm_api_preset_create(b.data, b.len, &err);
        ok(p == NULL && strstr(err.msg, n == 64 ? "no member \"m0\""
                                                : "more than 64") != NULL,
           "%zu members: %s", n, err.msg);
        llm_buf_free(&b);
    }
}


/* each endpoint that takes a body is asked, and its own members are known */

static void
test_all(void)
{
    size_t                i, k;
    llm_err_t             err;
    llm_api_preset_t     *p;
    const llm_api_row_t  *row;

    static const char *const  of_each[] = {
        "{'verbosity':'low'}", "{'echo':true}", "{'normalize':true}",
        "{'stop_sequences':['x']}", "{'return_documents':true}",
        "{'truncation':'auto'}", "{'with_pieces':true}",
        "{'priority':5}", "{'best_of':1}"
    };

    for (i = 0; i < llm_nelems(of_each); i++) {
        p = preset(of_each[i], &err);
        ok(p != NULL, "%s: %s", of_each[i], p ? "taken" : err.msg);
        llm_api_preset_free(p);
    }

    p = preset("{}", &err);

    for (row = llm_api_endpoints; row->path; row++) {
        for (k = 0;
             k < p->n_endpoints && p->endpoints[k].endpoint != row->endpoint;
             k++)
        { /* void */ }

        ok(k < p->n_endpoints || strcmp(row->methods, "POST") != 0
           || row->endpoint->answer || llm_api_takes_form(row->endpoint),
           "%s %s", row->methods, row->path);
    }

    llm_api_preset_free(p);
}


int
main(void)
{
    test_check();
    test_got();
    test_many();
    test_all();

    return done_testing();
}
