/*
 * Requests: the body as a whole, the fields that most endpoints share, and
 * what the log gets of them; see api_case.h.
 */

#include "t/unit/api_case.h"


static const case_t  cases[] = {

    /* what is not given */

    GOOD(CHAT_WITH, "",
         " model=0 kind=1 flags=0 n=1 max=-1 min=0 priority=0 salt=0 "
         "temperature=1 top_p=1 min_p=0 typical_p=1 presence=0 frequency=0 "
         "repetition=1 top_k=0 logprobs=-1 seed=no0 last_n=-1 "
         "dry=0,1.75,2,-1 xtc=0,0.1 sigma=-1 dynatemp=0,1 allowed=[] bad=[] "
         "breakers=[] stops=[] stop_ids=[] bias=[] prompts= chat={'lenient':true,"
         "'messages':[{'role':'user','content':'hi'}],"
         "'add_generation_prompt':true,'continue_final_message':false,"
         "'chat_template_kwargs':{}} "),
    GOOD(COMPL_WITH, "", " model=0 kind=2 flags=0 n=1 max=16 min=0 "),
    GOOD(CHAT_WITH, ",'model':null,'tools':null,'tool_choice':null,"
         "'stream':null,'stream_options':null,'max_tokens':null,'n':null,"
         "'max_completion_tokens':null,'temperature':null,'top_p':null,"
         "'seed':null,'stop':null,'logprobs':null,'top_logprobs':null,"
         "'logit_bias':null,'response_format':null,'metadata':null,"
         "'functions':null,'audio':null,'user':null,'priority':null",
         " kind=1 flags=0 n=1 max=-1 "),
    GOOD(COMPL_WITH, ",'suffix':null,'best_of':null,'echo':null,"
         "'logprobs':null,'stop':null,'max_tokens':null", " max=16 "),
    GOOD(CHAT_WITH, ",'no_such_field':{'a':[1]},'echo':3,'prompt':7",
         " flags=0 "),
    GOOD(COMPL_WITH, ",'messages':7,'tools':7", " flags=0 "),

    /* the body as a whole */

    BAD(CHAT_BODY, "", "", "", "could not parse"),
    BAD(CHAT_BODY, "{'model':'demo'", "", "", "line 1, column 16"),
    BAD(CHAT_BODY, "[]", "", "", "expected an object"),
    BAD(CHAT_BODY, "null", "", "", "expected an object"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':'\xff'}]}", "", "",
        "UTF-8"),
    BAD(CHAT_BODY, "{}", "messages", "missing_required_parameter",
        "Missing required parameter: 'messages'."),
    BAD(CHAT_BODY, "{'messages':null}", "messages", "invalid_type",
        "Invalid type for 'messages': expected an array of objects, but got "
        "null instead."),
    BAD(COMPL_BODY, "{'model':'demo'}", "prompt",
        "missing_required_parameter", ""),
    BAD(COMPL_BODY, "{'prompt':null}", "prompt", "invalid_type", "null"),

    /* the model */

    BAD(CHAT_WITH, ",'model':'nope'", "model", "model_not_found", "'nope'"),
    BAD(CHAT_WITH, ",'model':7", "model", "invalid_type", "a string"),
    GOOD(CHAT_WITH, ",'model':'llm7'", " model=1 "),
    GOOD(CHAT_WITH, ",'model':''", " model=0 "),

    /* numbers */

    GOOD(CHAT_WITH, ",'temperature':0.5", " temperature=0.5 "),
    GOOD(CHAT_WITH, ",'temperature':0", " temperature=0 "),
    GOOD(CHAT_WITH, ",'temperature':2", " temperature=2 "),
    BAD(CHAT_WITH, ",'temperature':'hot'", "temperature", "invalid_type",
        "Invalid type for 'temperature': expected a number, but got a string "
        "instead."),
    BAD(CHAT_WITH, ",'temperature':true", "temperature", "invalid_type",
        "a boolean"),
    BAD(CHAT_WITH, ",'temperature':[1]", "temperature", "invalid_type",
        "an array"),
    BAD(CHAT_WITH, ",'temperature':3", "temperature",
        "decimal_above_max_value",
        "Invalid 'temperature': decimal above maximum value. Expected a "
        "value <= 2, but got 3 instead."),
    BAD(CHAT_WITH, ",'temperature':-0.1", "temperature",
        "decimal_below_min_value", ">= 0, but got -0.1"),
    BAD(CHAT_WITH, ",'temperature':1e999", "", "", "out of range"),
    BAD(CHAT_WITH, ",'typical_p':7,'temperature':7", "temperature",
        "decimal_above_max_value", ""),
    BAD(CHAT_WITH, ",'typical_p':7,'user':7,'top_logprobs':99",
        "top_logprobs", "integer_above_max_value", ""),
    BAD(CHAT_WITH, ",'typical_p':7,'user':7", "user", "invalid_type", ""),
    GOOD(CHAT_WITH, ",'repetition_penalty':2,'repeat_penalty':3",
         " repetition=2 "),
    GOOD(CHAT_WITH, ",'repeat_penalty':3", " repetition=3 "),
    GOOD(CHAT_WITH, ",'top_p':0.25", " top_p=0.25 "),
    GOOD(CHAT_WITH, ",'top_p':0", " top_p=0 "),
    BAD(CHAT_WITH, ",'top_p':-0.01", "top_p", "decimal_below_min_value",
        ">= 0"),
    GOOD(CHAT_WITH, ",'max_tokens':10.0,'n':2e0,'seed':7.0,'top_k':4.0",
         " n=2 max=10 "),
    BAD(CHAT_WITH, ",'max_tokens':10.5", "max_tokens", "invalid_type", ""),
    BAD(CHAT_WITH, ",'max_tokens':1e300", "max_tokens", "invalid_type", ""),
    BAD(CHAT_WITH, ",'max_tokens':18446744073709551616", "max_tokens",
        "integer_above_max_value", "18446744073709551616"),
    BAD(CHAT_WITH, ",'top_p':1.01", "top_p", "decimal_above_max_value", ""),
    GOOD(CHAT_WITH, ",'min_p':0.5,'typical_p':0.75",
         " min_p=0.5 typical_p=0.75 "),
    BAD(CHAT_WITH, ",'min_p':-1", "min_p", "decimal_below_min_value", ""),
    BAD(CHAT_WITH, ",'min_p':2", "min_p", "decimal_above_max_value", ""),
    BAD(CHAT_WITH, ",'typical_p':0", "typical_p", "decimal_below_min_value",
        ""),
    GOOD(CHAT_WITH, ",'presence_penalty':-2,'frequency_penalty':2",
         " presence=-2 frequency=2 "),
    BAD(CHAT_WITH, ",'presence_penalty':2.5", "presence_penalty",
        "decimal_above_max_value", ""),
    BAD(CHAT_WITH, ",'frequency_penalty':-2.5", "frequency_penalty",
        "decimal_below_min_value", ""),
    GOOD(CHAT_WITH, ",'repetition_penalty':1.25", " repetition=1.25 "),
    GOOD(CHAT_WITH, ",'repeat_penalty':1.5", " repetition=1.5 "),
    BAD(CHAT_WITH, ",'repeat_penalty':0", "repeat_penalty",
        "decimal_below_min_value", ">= 0.01"),
    BAD(CHAT_WITH, ",'repetition_penalty':1e-40", "repetition_penalty",
        "decimal_below_min_value", ">= 0.01, but got 1e-40"),
    BAD(CHAT_WITH, ",'repetition_penalty':100.5", "repetition_penalty",
        "decimal_above_max_value", "<= 100"),
    GOOD(CHAT_WITH, ",'repetition_penalty':0.01", " repetition=0.01 "),
    GOOD(CHAT_WITH, ",'top_k':40", " top_k=40 "),
    GOOD(CHAT_WITH, ",'top_k':-1", " top_k=0 "),
    BAD(CHAT_WITH, ",'top_k':-2", "top_k", "integer_below_min_value", ""),
    BAD(CHAT_WITH, ",'top_k':1.5", "top_k", "invalid_type",
        "expected an integer, but got a decimal number"),
    GOOD(CHAT_WITH, ",'seed':42", " seed=42 "),
    GOOD(CHAT_WITH, ",'seed':-1", " seed=no0 "),
    GOOD(CHAT_WITH, ",'seed':-9223372036854775808",
         " seed=-9223372036854775808 "),
    GOOD(CHAT_WITH, ",'seed':9007199254740993", " seed=9007199254740993 "),
    BAD(CHAT_WITH, ",'seed':9223372036854775808", "seed",
        "integer_above_max_value",
        ""),
    BAD(CHAT_WITH, ",'seed':'x'", "seed", "invalid_type", ""),
    GOOD(CHAT_WITH, ",'n':3", " n=3 "),
    BAD(CHAT_WITH, ",'n':0", "n", "integer_below_min_value",
        "Invalid 'n': integer below minimum value. Expected a value >= 1, "
        "but got 0 instead."),
    BAD(CHAT_WITH, ",'n':129", "n", "integer_above_max_value", "<= 128"),
    GOOD(CHAT_WITH, ",'temperature':5,'temperature':1", " temperature=1 "),

    /* how much */

    GOOD(CHAT_WITH, ",'max_tokens':7", " flags=0 n=1 max=7 "),
    GOOD(CHAT_WITH, ",'max_completion_tokens':8", " max=8 "),
    GOOD(CHAT_WITH, ",'max_tokens':7,'max_completion_tokens':8", " max=8 "),
    GOOD(CHAT_WITH, ",'max_tokens':7,'max_completion_tokens':null",
         " max=7 "),
    GOOD(CHAT_WITH, ",'model':'llm7'", " flags=0 n=1 max=200 "),
    GOOD(CHAT_WITH, ",'model':'llm7','max_tokens':300", " max=300 "),
    GOOD(COMPL_WITH, ",'max_tokens':0", " flags=0 n=1 max=0 "),
    GOOD(COMPL_WITH, ",'max_completion_tokens':3", " max=16 "),
    BAD(CHAT_WITH, ",'max_tokens':0", "max_tokens",
        "integer_below_min_value", ">= 1, but got 0"),
    BAD(CHAT_WITH, ",'max_completion_tokens':0", "max_completion_tokens",
        "integer_below_min_value", ""),
    GOOD(CHAT_WITH, ",'max_tokens':-1", " max=-1 "),
    GOOD(CHAT_WITH, ",'model':'llm7','max_tokens':-1", " max=-1 "),
    GOOD(CHAT_WITH, ",'max_completion_tokens':-1", " max=-1 "),
    GOOD(COMPL_WITH, ",'max_tokens':-1,'min_tokens':3", " max=-1 min=3 "),
    BAD(CHAT_WITH, ",'max_tokens':-2", "max_tokens",
        "integer_below_min_value", ">= -1, but got -2"),
    BAD(COMPL_WITH, ",'max_tokens':-2", "max_tokens",
        "integer_below_min_value", ""),
    BAD(CHAT_WITH, ",'max_tokens':10.5", "max_tokens", "invalid_type", ""),
    BAD(CHAT_WITH, ",'max_tokens':99999999999", "max_tokens",
        "integer_above_max_value", ""),
    GOOD(CHAT_WITH, ",'min_tokens':3,'max_tokens':3", " max=3 min=3 "),
    BAD(CHAT_WITH, ",'min_tokens':4,'max_tokens':3", "min_tokens",
        "invalid_value", "'max_tokens'"),
    BAD(CHAT_WITH, ",'min_tokens':-1", "min_tokens",
        "integer_below_min_value", ""),

    /* where to stop */

    GOOD(CHAT_WITH, ",'stop':'x'", " stops=['x'] "),
    GOOD(CHAT_WITH, ",'stop':['ab','c\\u00e9']",
         " stops=['ab''c\xc3\xa9'] "),
    GOOD(CHAT_WITH, ",'stop':[]", " stops=[] "),
    GOOD(CHAT_WITH, ",'stop':['','y']", " stops=['y'] "),
    GOOD(CHAT_WITH, ",'stop':''", " stops=[] "),
    GOOD(CHAT_WITH, ",'stop':['1','2','3','4','5','6','7','8','9','10',"
         "'11','12','13','14','15','16']", "'15''16'] "),
    BAD(CHAT_WITH, ",'stop':['1','2','3','4','5','6','7','8','9','10',"
        "'11','12','13','14','15','16','17']", "stop",
        "array_above_max_length", "maximum length 16, but got an array with "
        "length 17 instead."),
    BAD(CHAT_WITH, ",'stop':7", "stop", "invalid_type",
        "a string or an array of strings"),
    BAD(CHAT_WITH, ",'stop':['a',null]", "stop[1]", "invalid_type", "null"),
    GOOD(CHAT_WITH, ",'stop_token_ids':[1,2,3]", " stop_ids=[1,2,3] "),
    BAD(CHAT_WITH, ",'stop_token_ids':[1,-2]", "stop_token_ids[1]",
        "integer_below_min_value", ""),
    BAD(CHAT_WITH, ",'stop_token_ids':3", "stop_token_ids", "invalid_type",
        ""),
    GOOD(CHAT_WITH, ",'ignore_eos':true", " flags=4 "),

    /* biases */

    GOOD(CHAT_WITH, ",'logit_bias':{'5':-100,'70':0.5}",
         " bias=[(5:-100)(70:0.5)] "),
    GOOD(CHAT_WITH, ",'logit_bias':[[5,-1],['6',2]]",
         " bias=[(5:-1)(6:2)] "),
    GOOD(CHAT_WITH, ",'logit_bias':{}", " bias=[] "),
    BAD(CHAT_WITH, ",'logit_bias':{'5':101}", "logit_bias",
        "decimal_above_max_value", ""),
    BAD(CHAT_WITH, ",'logit_bias':{'5':'a'}", "logit_bias", "invalid_type",
        ""),
    BAD(CHAT_WITH, ",'logit_bias':{'cat':1}", "logit_bias", "invalid_value",
        "token id"),
    BAD(CHAT_WITH, ",'logit_bias':{'':1}", "logit_bias", "invalid_value",
        ""),
    BAD(CHAT_WITH, ",'logit_bias':{'-1':1}", "logit_bias", "invalid_value",
        ""),
    BAD(CHAT_WITH, ",'logit_bias':{'99999999999999999999':1}", "logit_bias",
        "invalid_value", ""),
    BAD(CHAT_WITH, ",'logit_bias':[[1]]", "logit_bias", "invalid_value",
        "pairs"),
    BAD(CHAT_WITH, ",'logit_bias':[1]", "logit_bias", "invalid_value",
        "pairs"),
    BAD(CHAT_WITH, ",'logit_bias':'x'", "logit_bias", "invalid_type", ""),

    /* logprobs */

    GOOD(CHAT_WITH, ",'logprobs':true", " logprobs=0 "),
    GOOD(CHAT_WITH, ",'logprobs':false", " logprobs=-1 "),
    GOOD(CHAT_WITH, ",'logprobs':true,'top_logprobs':20", " logprobs=20 "),
    GOOD(CHAT_WITH, ",'logprobs':false,'top_logprobs':0", " logprobs=-1 "),
    BAD(CHAT_WITH, ",'top_logprobs':2", "top_logprobs", "invalid_value",
        "only allowed when 'logprobs' is enabled"),
    BAD(CHAT_WITH, ",'logprobs':true,'top_logprobs':21", "top_logprobs",
        "integer_above_max_value", ""),
    BAD(CHAT_WITH, ",'logprobs':2", "logprobs", "invalid_type",
        "a boolean"),
    GOOD(COMPL_WITH, ",'logprobs':0", " logprobs=0 "),
    GOOD(COMPL_WITH, ",'logprobs':5", " logprobs=5 "),
    BAD(COMPL_WITH, ",'logprobs':6", "logprobs", "integer_above_max_value",
        ""),
    BAD(COMPL_WITH, ",'logprobs':true", "logprobs", "invalid_type",
        "an integer"),

    /* streams, and how they are asked for */

    GOOD(CHAT_WITH, ",'stream':true", " flags=1 "),
    GOOD(CHAT_WITH, ",'stream':true,'stream_options':{'include_usage':true}",
         " flags=1 "),
    GOOD(CHAT_WITH, ",'stream':true,'stream_options':{'include_usage':null,"
         "'x':1}", " flags=1 "),
    BAD(CHAT_WITH, ",'stream':'true'", "stream", "invalid_type",
        "expected a boolean, but got a string"),
    BAD(CHAT_WITH, ",'stream':1", "stream", "invalid_type", ""),
    BAD(CHAT_WITH, ",'stream_options':{'include_usage':true}",
        "stream_options", "invalid_value", "only allowed when 'stream'"),
    BAD(CHAT_WITH, ",'stream':true,'stream_options':{'include_usage':1}",
        "stream_options.include_usage", "invalid_type", ""),
    BAD(CHAT_WITH, ",'stream':true,'stream_options':true", "stream_options",
        "invalid_type", "an object"),

    /* other switches */

    GOOD(CHAT_WITH, ",'return_token_ids':true", " flags=8 "),
    GOOD(CHAT_WITH, ",'cache_prompt':false", " flags=16 "),
    GOOD(CHAT_WITH, ",'skip_special_tokens':false", " flags=32 "),
    /* 64 says that the client named one, be it 0 */
    GOOD(CHAT_WITH, ",'priority':-100",
         " flags=64 n=1 max=-1 min=0 priority=-100 "),
    GOOD(CHAT_WITH, ",'priority':0",
         " flags=64 n=1 max=-1 min=0 priority=0 "),
    GOOD(CHAT_WITH, ",'metadata':{'priority':'low'}",
         " flags=64 n=1 max=-1 min=0 priority=-10 "),
    GOOD(CHAT_WITH, ",'metadata':{'priority':'high'}", " priority=10 "),
    GOOD(CHAT_WITH, ",'metadata':{'priority':'normal','a':'b'}",
         " flags=64 n=1 max=-1 min=0 priority=0 "),
    GOOD(CHAT_WITH, ",'metadata':{'priority':'low'},'priority':7",
         " priority=7 "),
    GOOD(CHAT_WITH, ",'metadata':{'priority':'urgent'}",
         " flags=0 n=1 max=-1 min=0 priority=0 "),
    BAD(CHAT_WITH, ",'priority':101", "priority", "integer_above_max_value",
        ""),
    BAD(CHAT_WITH, ",'metadata':'x'", "metadata", "invalid_type", ""),
    GOOD(CHAT_WITH, ",'cache_salt':'s'", " salt=1 "),
    BAD(CHAT_WITH, ",'cache_salt':1", "cache_salt", "invalid_type", ""),
    GOOD(CHAT_WITH, ",'user':'u','store':true,'service_tier':'auto',"
         "'verbosity':'low','prediction':{'type':'content','content':''},"
         "'parallel_tool_calls':false,'safety_identifier':'s',"
         "'prompt_cache_key':'k'", " flags=0 "),
    BAD(CHAT_WITH, ",'user':1", "user", "invalid_type", ""),
    BAD(CHAT_WITH, ",'parallel_tool_calls':'no'", "parallel_tool_calls",
        "invalid_type", ""),
};


/* the flat parts of a message are sound and inside of it */

static void
test_layout(void)
{
    char           *body;
    llm_api_t      *a;
    llm_buf_t       msg;
    llm_err_t       err;
    llm_request_t  *r;

    body = quoted("{'messages':[{'role':'user','content':'abc'}],'stop':"
                  "['x','yz'],'logit_bias':{'1':2},'stop_token_ids':[3],"
                  "'stream':true}");

    llm_buf_init(&msg, 0);
    a = llm_api_parse(CHAT, &conf, body, strlen(body), &msg, &err);
    r = (llm_request_t *) msg.data;

    ok(a && llm_api_is_stream(a) && llm_api_model(a) == 0, "a stream of 0");
    ok(r->head.size == msg.len && r->head.size % 8 == 0
       && r->head.type == LLM_MSG_REQUEST, "size and type of the message");
    ok(r->chat.off % 8 == 0
       && llm_flat_check(llm_ref_data(r, r->chat), r->chat.len) == LLM_OK,
       "the chat is one sound value");
    ok(r->stops.off % 4 == 0 && r->stop_ids.off % 4 == 0
       && r->logit_bias.off % 4 == 0, "lists are aligned");
    ok(r->weight == 1000 && r->arrival_us != 0 && r->tenant == 0,
       "weight and arrival");

    llm_api_free(a);
    llm_buf_free(&msg);

    memset(&err, 0, sizeof(err));
    llm_buf_init(&msg, 300);
    ok(llm_api_parse(CHAT, &conf, body, strlen(body), &msg, &err) == NULL
       && err.status == 413, "a message beyond the caller's limit: %s",
       err.msg);

    llm_buf_free(&msg);
    free(body);
}


/* null counts as absent, whatever the field; fields of one table, each in a
   body of its own, next to what the endpoint needs */

static void
test_nulls(const llm_api_endpoint_t *ep, const llm_api_fields_t *fields,
    const char *with)
{
    char        body[256];
    uint32_t    i, refused;
    llm_api_t  *a;
    llm_buf_t   msg;
    llm_err_t   err;

    refused = 0;
    llm_buf_init(&msg, 0);

    for (i = 0; i < fields->n; i++) {
        if (fields->rows[i].type == LLM_FIELD_REQUIRED) {
            continue;
        }

        snprintf(body, sizeof(body), "{%s,\"%s\":null}", with,
                 fields->rows[i].name);
        a = llm_api_parse(ep, &conf, body, strlen(body), &msg, &err);

        if (a == NULL) {
            printf("# %s: %s\n", body, err.msg);
            refused++;
        }

        llm_api_free(a);
    }

    is_int(refused, 0, "null for each of %u fields", fields->n);
    llm_buf_free(&msg);
}


static const llm_api_field_t  sampling_rows[] = {
#define LLM_PARAM(name, type, otherwise, least, most)  { #name, LLM_FIELD_ANY, 0, 0, 0 },
#define LLM_ALIAS(name, of, type, least, most)         { #name, LLM_FIELD_ANY, 0, 0, 0 },
#include "engine/base/sampling.def"
};

static const llm_api_fields_t  sampling_fields = {
    sampling_rows, llm_nelems(sampling_rows)
};


/* what the log gets of the client's own words */

static void
test_log(void)
{
    size_t      i;
    char       *body;
    llm_api_t  *a;
    llm_buf_t   msg;
    llm_err_t   err;
    llm_str_t   s;

    static const struct {
        const char  *body;
        const char  *user;
        const char  *metadata;
    } logs[] = {
        { "{'prompt':''}", "", "" },
        { "{'prompt':'','user':'ann','safety_identifier':'x'}", "ann", "" },
        { "{'prompt':'','user':'','safety_identifier':'x'}", "x", "" },
        { "{'prompt':'','user':'a\\nb'}", "a\\x0ab", "" },
        { "{'prompt':'','metadata':{}}", "", "" },
        { "{'prompt':'','metadata':{'a':'\\n','b':-1,'c':[null,true]}}", "",
          "{'a':'\\n','b':-1,'c':[null,true]}" },
        { "{'prompt':'','metadata':{'a':{'b':[0.1,1e300,2.5]}}}", "",
          "{'a':{'b':[0.1,1e+300,2.5]}}" },
    };

    llm_buf_init(&msg, 0);

    for (i = 0; i < llm_nelems(logs); i++) {
        body = quoted(logs[i].body);
        a = llm_api_parse(COMPL, &conf, body, strlen(body), &msg, &err);
        free(body);

        s = llm_api_user(a);
        ok(s.len == strlen(logs[i].user)
           && memcmp(s.data, logs[i].user, s.len) == 0, "user: %.*s",
           (int) s.len, s.data);

        body = quoted(logs[i].metadata);
        s = llm_api_metadata(a);
        ok(s.len == strlen(body) && memcmp(s.data, body, s.len) == 0,
           "metadata: %.*s", (int) s.len, s.data);
        free(body);

        llm_api_free(a);
    }

    llm_buf_free(&msg);
}


/* llm_max_tokens */

static void
test_cap(void)
{
    size_t          i;
    char           *body;
    llm_api_t      *a;
    llm_buf_t       msg;
    llm_err_t       err;
    llm_api_conf_t  c;

    static const struct {
        const llm_api_endpoint_t  *ep;
        const char                *body;
        int32_t                    cap, want;
    } caps[] = {
        { CHAT, "{'messages':" HI "}", 100, 100 },
        { CHAT, "{'messages':" HI ",'max_tokens':99}", 100, 99 },
        { CHAT, "{'messages':" HI ",'max_tokens':999}", 100, 100 },
        { CHAT, "{'messages':" HI ",'model':'llm7'}", 100, 100 },
        { CHAT, "{'messages':" HI ",'model':'llm7'}", 300, 200 },
        { COMPL, "{'prompt':''}", 100, 16 },
        { COMPL, "{'prompt':''}", 10, 10 },
        { COMPL, "{'prompt':'','max_tokens':0}", 10, 0 },
    };

    llm_buf_init(&msg, 0);

    for (i = 0; i < llm_nelems(caps); i++) {
        c = conf;
        c.cap = caps[i].cap;
        body = quoted(caps[i].body);

        a = llm_api_parse(caps[i].ep, &c, body, strlen(body), &msg, &err);
        is_int(a ? ((llm_request_t *) msg.data)->max_tokens : -2,
               caps[i].want, "%s under a cap of %d", body, c.cap);

        llm_api_free(a);
        free(body);
    }

    llm_buf_free(&msg);
}


int
main(void)
{
    test_cases(cases);
    test_layout();
    test_nulls(CHAT, &llm_api_chat_fields, "\"messages\":[{\"role\":"
               "\"user\",\"content\":\"a\"}]");
    test_nulls(CHAT, &llm_api_shared_fields, "\"messages\":[{\"role\":"
               "\"user\",\"content\":\"a\"}]");
    test_nulls(COMPL, COMPL->fields, "\"prompt\":\"a\"");
    test_nulls(COMPL, &sampling_fields, "\"prompt\":\"a\"");
    test_nulls(&llm_api_tokenize, llm_api_tokenize.fields,
               "\"content\":\"a\",\"prompt\":\"a\"");
    test_nulls(&llm_api_infill, llm_api_infill.fields,
               "\"input_prefix\":\"\",\"input_suffix\":\"\"");
    test_log();
    test_cap();

    return done_testing();
}
