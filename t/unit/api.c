/*
 * Requests: a table of bodies, each with what becomes of it: a part of the
 * flat request, or the error's param, code and words.
 *
 * In bodies ' stands for ".
 */

#include "engine/api/chat.h"
#include "t/unit/api_conf.h"
#include "t/unit/api_dump.h"
#include "t/unit/tap.h"

/* fields put into an otherwise good body */
#define CHAT_WITH   1
#define COMPL_WITH  2
#define CHAT_BODY   3
#define COMPL_BODY  4
#define TOKENIZE    5
#define DETOKENIZE  6
#define TEMPLATE    7
#define INFILL      8


typedef struct {
    int          how;
    const char  *body;
    const char  *param;                 /* NULL: a good one */
    const char  *code;                  /* good ones: part of the dump */
    const char  *msg;                   /* a part of it */
} case_t;

#define GOOD(how, body, dump)             { how, body, NULL, dump, NULL }
#define BAD(how, body, param, code, msg)  { how, body, param, code, msg }

#define HI  "[{'role':'user','content':'hi'}]"
#define FN  "{'type':'function','function':{'name':'f','parameters':{}}}"


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
    BAD(CHAT_WITH, ",'top_p':0", "top_p", "decimal_below_min_value", "> 0"),
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
    GOOD(CHAT_WITH, ",'seed':-9223372036854775808",
         " seed=-9223372036854775808 "),
    GOOD(CHAT_WITH, ",'seed':9007199254740993", " seed=9007199254740993 "),
    BAD(CHAT_WITH, ",'seed':9223372036854775808", "seed", "invalid_type",
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
    /* 128 says that the client named one, be it 0 */
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

    /* what cannot be served is not ignored */

    GOOD(CHAT_WITH, ",'response_format':{'type':'text'}", " rule=none "),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_object'}",
         " rule=object of=response_format is= "),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_object','schema':{"
         "'type':'null'}}", " rule=schema of=response_format.schema is="),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_schema',"
         "'json_schema':{'name':'x','strict':false,'schema':true}}",
         " rule=schema of=response_format.json_schema.schema is="),
    BAD(CHAT_WITH, ",'response_format':{'type':'json_schema',"
        "'json_schema':{}}", "response_format.json_schema.schema",
        "missing_required_parameter", ""),
    BAD(CHAT_WITH, ",'response_format':{'type':'json_schema'}",
        "response_format.json_schema", "missing_required_parameter", ""),
    BAD(CHAT_WITH, ",'response_format':{'type':'json_schema',"
        "'json_schema':{'schema':5}}", "response_format.json_schema.schema",
        "invalid_type", "schema"),
    BAD(CHAT_WITH, ",'response_format':{'type':'xml'}", "response_format",
        "unsupported_parameter", "'json_schema'"),
    BAD(CHAT_WITH, ",'response_format':{}", "response_format.type",
        "missing_required_parameter", ""),
    BAD(CHAT_WITH, ",'response_format':'text'", "response_format",
        "invalid_type", ""),
    GOOD(CHAT_WITH, ",'grammar':'root ::= a'",
         " rule=gbnf of=grammar is=root ::= a "),
    GOOD(CHAT_WITH, ",'grammar':'','guided_regex':''", " rule=none "),
    GOOD(CHAT_WITH, ",'guided_grammar':'root'", " of=guided_grammar is=root "),
    GOOD(CHAT_WITH, ",'guided_regex':'a+'", " rule=regex of=guided_regex is=a+ "),
    GOOD(COMPL_WITH, ",'guided_choice':['a','b']",
         " rule=choice of=guided_choice is="),
    BAD(CHAT_WITH, ",'guided_choice':[]", "guided_choice", "empty_array", ""),
    BAD(CHAT_WITH, ",'guided_choice':['a',1]", "guided_choice[1]",
        "invalid_type", ""),
    GOOD(COMPL_WITH, ",'guided_json':'{}'", " rule=schema of=guided_json is="),
    GOOD(CHAT_WITH, ",'json_schema':{'type':'object'}",
         " rule=schema of=json_schema is="),
    BAD(CHAT_WITH, ",'guided_json':'{'", "guided_json", "invalid_value",
        "no JSON"),
    BAD(CHAT_WITH, ",'guided_json':'5'", "guided_json", "invalid_type",
        "schema"),
    BAD(CHAT_WITH, ",'guided_json':[]", "guided_json", "invalid_type",
        "schema"),
    GOOD(CHAT_WITH, ",'structured_outputs':{'json_object':true}",
         " rule=object of=structured_outputs.json_object is= "),
    GOOD(CHAT_WITH, ",'structured_outputs':{'regex':'x'}",
         " rule=regex of=structured_outputs.regex is=x "),
    GOOD(CHAT_WITH, ",'structured_outputs':{'json':null,'choice':['x']}",
         " rule=choice of=structured_outputs.choice is="),
    BAD(CHAT_WITH, ",'structured_outputs':{'grammar':1}",
        "structured_outputs.grammar", "invalid_type", ""),
    BAD(CHAT_WITH, ",'structured_outputs':{'structural_tag':'x'}",
        "structured_outputs.structural_tag", "unsupported_parameter", ""),
    BAD(CHAT_WITH, ",'guided_regex':'a','grammar':'b'", "grammar",
        "invalid_value", "only one"),
    GOOD(CHAT_WITH, ",'functions':[],'use_beam_search':false,"
         "'bad_words':[],'samplers':[]", " flags=0 "),
    GOOD(CHAT_WITH, ",'modalities':['text']", " flags=0 "),
    BAD(CHAT_WITH, ",'modalities':['text','audio']", "modalities",
        "unsupported_parameter", ""),
    BAD(CHAT_WITH, ",'audio':{'voice':'x'}", "audio",
        "unsupported_parameter", ""),
    BAD(CHAT_WITH, ",'use_beam_search':true", "use_beam_search",
        "unsupported_parameter", ""),
    BAD(CHAT_WITH, ",'chat_template':'{{ 1 }}'", "chat_template",
        "unsupported_parameter", ""),
    GOOD(COMPL_WITH, ",'suffix':'end'", " infill='end'[] "),
    BAD(COMPL_WITH, ",'suffix':'end','echo':true", "echo",
        "unsupported_parameter",
        ""),
    GOOD(COMPL_WITH, ",'suffix':''", " flags=0 "),
    GOOD(COMPL_WITH, ",'n':2,'best_of':2", " n=2 "),
    GOOD(COMPL_WITH, ",'n':1,'best_of':3", " n=3 "),
    GOOD(COMPL_WITH, ",'n':1,'best_of':3", " logprobs=0 "),
    GOOD(COMPL_WITH, ",'n':1,'best_of':3,'logprobs':2", " logprobs=2 "),
    GOOD(COMPL_WITH, ",'best_of':128", " n=128 "),
    GOOD(COMPL_WITH, ",'n':2,'best_of':2,'stream':true", " n=2 "),
    BAD(COMPL_WITH, ",'n':3,'best_of':2", "best_of", "invalid_value",
        "less than 'n'"),
    BAD(COMPL_WITH, ",'best_of':0", "best_of", "integer_below_min_value",
        ">= 1"),
    BAD(COMPL_WITH, ",'best_of':129", "best_of", "integer_above_max_value",
        "<= 128"),
    BAD(COMPL_WITH, ",'best_of':2,'stream':true", "best_of",
        "invalid_value", "stream"),
    BAD(COMPL_BODY, "{'prompt':['a','b'],'best_of':65}", "best_of",
        "invalid_value", "2 prompts times best_of = 65"),

    /* rules */

    GOOD(CHAT_WITH, ",'allowed_token_ids':[3,0]", " allowed=[3,0] "),
    GOOD(CHAT_WITH, ",'allowed_token_ids':null,'bad_words':null,"
         "'dry_sequence_breakers':null", " allowed=[] bad=[] breakers=[] "),
    BAD(CHAT_WITH, ",'allowed_token_ids':[]", "allowed_token_ids",
        "empty_array", ""),
    BAD(CHAT_WITH, ",'allowed_token_ids':[-1]", "allowed_token_ids[0]",
        "integer_below_min_value", ""),
    BAD(CHAT_WITH, ",'allowed_token_ids':{'a':1}", "allowed_token_ids",
        "invalid_type", "an array"),
    BAD(CHAT_WITH, ",'allowed_token_ids':[1.5]", "allowed_token_ids[0]",
        "invalid_type", ""),
    GOOD(CHAT_WITH, ",'bad_words':['no','',' way']", " bad=['no'' way'] "),
    BAD(CHAT_WITH, ",'bad_words':'no'", "bad_words", "invalid_type",
        "an array"),
    BAD(CHAT_WITH, ",'bad_words':['a',7]", "bad_words[1]", "invalid_type",
        ""),
    GOOD(CHAT_WITH, ",'dry_multiplier':0.8", " breakers=['\n'':''\"''*'] "),
    GOOD(CHAT_WITH, ",'dry_multiplier':0.8,'dry_sequence_breakers':['ab']",
         " breakers=['ab'] "),
    GOOD(CHAT_WITH, ",'dry_multiplier':0.8,'dry_sequence_breakers':[]",
         " breakers=[] "),
    BAD(CHAT_WITH, ",'dry_sequence_breakers':[[]]",
        "dry_sequence_breakers[0]", "invalid_type", ""),
    BAD(CHAT_WITH, ",'dry_sequence_breakers':['1','2','3','4','5','6','7',"
        "'8','9','a','b','c','d','e','f','g','h']", "dry_sequence_breakers",
        "array_above_max_length", "16"),

    /* llama.cpp's names */

    GOOD(CHAT_WITH, ",'penalty_last_n':7", " last_n=7 "),
    GOOD(CHAT_WITH, ",'repeat_last_n':-1", " last_n=-1 "),
    BAD(CHAT_WITH, ",'repeat_last_n':-2", "repeat_last_n",
        "integer_below_min_value", ">= -1"),
    GOOD(CHAT_WITH, ",'dry_multiplier':100,'dry_base':0,"
         "'dry_allowed_length':0,'dry_penalty_last_n':0",
         " dry=100,0,0,0 "),
    BAD(CHAT_WITH, ",'dry_multiplier':-0.1", "dry_multiplier",
        "decimal_below_min_value", ">= 0"),
    GOOD(CHAT_WITH, ",'xtc_probability':1,'xtc_threshold':0.25",
         " xtc=1,0.25 "),
    BAD(CHAT_WITH, ",'xtc_probability':1.01", "xtc_probability",
        "decimal_above_max_value", "<= 1"),
    GOOD(CHAT_WITH, ",'top_n_sigma':-1,'dynatemp_range':2,"
         "'dynatemp_exponent':0", " sigma=-1 dynatemp=2,0 "),
    BAD(CHAT_WITH, ",'dynatemp_range':2.5", "dynatemp_range",
        "decimal_above_max_value", ""),
    GOOD(CHAT_WITH, ",'mirostat':0,'mirostat_tau':5,'mirostat_eta':0.1",
         " flags=0 "),
    BAD(CHAT_WITH, ",'mirostat':2", "mirostat", "unsupported_parameter",
        "turns it off"),
    BAD(CHAT_WITH, ",'mirostat':3", "mirostat", "integer_above_max_value",
        ""),
    GOOD(CHAT_WITH, ",'min_keep':1", " flags=0 "),
    BAD(CHAT_WITH, ",'min_keep':2", "min_keep", "unsupported_parameter", ""),
    BAD(CHAT_WITH, ",'samplers':['top_k']", "samplers",
        "unsupported_parameter", ""),
    GOOD(COMPL_WITH, ",'n_predict':3", " max=3 "),
    GOOD(COMPL_WITH, ",'n_predict':-1", " max=-1 "),
    GOOD(CHAT_WITH, ",'prompt_cache_retention':'24h','stream':true,"
         "'stream_options':{'include_obfuscation':true}", " flags=1 "),
    BAD(CHAT_WITH, ",'stream':true,'stream_options':"
        "{'include_obfuscation':1}", "stream_options.include_obfuscation",
        "invalid_type", ""),

    /* prompts */

    GOOD(COMPL_BODY, "{'prompt':'once'}", " prompts='once' "),
    GOOD(COMPL_BODY, "{'prompt':''}", " prompts='' "),
    GOOD(COMPL_BODY, "{'prompt':['a','b']}", " prompts='a''b' "),
    GOOD(COMPL_BODY, "{'prompt':[1,2,3]}", " prompts=[1,2,3] "),
    GOOD(COMPL_BODY, "{'prompt':[[1],[2,3]]}", " prompts=[1][2,3] "),
    GOOD(COMPL_BODY, "{'prompt':'x','echo':true}", " flags=2 "),
    GOOD(COMPL_BODY, "{'prompt':['a','b'],'n':64}", " n=64 "),
    BAD(COMPL_BODY, "{'prompt':['a','b'],'n':65}", "n", "invalid_value",
        "more than 128"),
    BAD(COMPL_BODY, "{'prompt':[]}", "prompt", "empty_array", ""),
    BAD(COMPL_BODY, "{'prompt':[[1],[]]}", "prompt[1]", "empty_array", ""),
    BAD(COMPL_BODY, "{'prompt':7}", "prompt", "invalid_type", ""),
    BAD(COMPL_BODY, "{'prompt':{'a':1}}", "prompt", "invalid_type", ""),
    BAD(COMPL_BODY, "{'prompt':['a',7]}", "prompt[1]", "invalid_type", ""),
    BAD(COMPL_BODY, "{'prompt':[1,'a']}", "prompt[1]", "invalid_type", ""),
    BAD(COMPL_BODY, "{'prompt':[1,2.5]}", "prompt[1]", "invalid_type", ""),
    BAD(COMPL_BODY, "{'prompt':[1,-2]}", "prompt[1]",
        "integer_below_min_value", ""),
    BAD(COMPL_BODY, "{'prompt':[[1,[2]]]}", "prompt[0][1]", "invalid_type",
        ""),
    BAD(COMPL_BODY, "{'prompt':[null]}", "prompt[0]", "invalid_type", ""),

    /* messages */

    BAD(CHAT_BODY, "{'messages':[]}", "messages", "empty_array",
        "Invalid 'messages': empty array."),
    BAD(CHAT_BODY, "{'messages':'hi'}", "messages", "invalid_type", ""),
    BAD(CHAT_BODY, "{'messages':{}}", "messages", "invalid_type", ""),
    BAD(CHAT_BODY, "{'messages':['hi']}", "messages[0]", "invalid_type", ""),
    BAD(CHAT_BODY, "{'messages':[{'content':'x'}]}", "messages[0].role",
        "missing_required_parameter", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':'x'},"
        "{'role':'robot','content':'x'}]}", "messages[1].role",
        "invalid_value", "'robot'"),
    BAD(CHAT_BODY, "{'messages':[{'role':'function','content':'x'}]}",
        "messages[0].name", "missing_required_parameter", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':7,'content':'x'}]}",
        "messages[0].role", "invalid_type", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'user'}]}", "messages[0].content",
        "missing_required_parameter", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':null}]}",
        "messages[0].content", "invalid_type", "null"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':7}]}",
        "messages[0].content", "invalid_type", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':['x']}]}",
        "messages[0].content[0]", "invalid_type", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':[{'text':'x'}]}]}",
        "messages[0].content[0].type", "missing_required_parameter", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':"
        "[{'type':'text','text':'x'},{'type':'text'}]}]}",
        "messages[0].content[1].text", "missing_required_parameter", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':"
        "[{'type':'image_url','image_url':{'url':'data:'}}]}]}",
        "messages[0].content[0].type", "invalid_value", "text only"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':"
        "[{'type':'wat'}]}]}", "messages[0].content[0].type",
        "invalid_value", "'wat'"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':'x','name':1}]}",
        "messages[0].name", "invalid_type", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'assistant','content':'x',"
        "'function_call':{'name':''}}]}", "messages[0].function_call.name",
        "invalid_value", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'assistant','content':'x',"
        "'function_call':'f'}]}", "messages[0].function_call",
        "invalid_type", ""),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'u'},"
         "{'role':'assistant','content':null,'function_call':{'name':'f',"
         "'arguments':'{\\'a\\':1}'}},{'role':'function','name':'f',"
         "'content':'7'}]}",
         "{'role':'assistant','content':null,'tool_calls':[{'id':'call_f',"
         "'type':'function','function':{'name':'f','arguments':'{\"a\":1}',"
         "'arguments, read':{'a':1}}}]},{'role':'tool','tool_call_id':"
         "'call_f','name':'f','content':'7'}]"),
    BAD(CHAT_BODY, "{'messages':[{'role':'assistant','tool_calls':"
        "[{'type':'function','function':{}}]}]}",
        "messages[0].tool_calls[0].function.name",
        "missing_required_parameter", ""),
    BAD(CHAT_BODY, "{'messages':[{'role':'assistant','tool_calls':{}}]}",
        "messages[0].tool_calls", "invalid_type", ""),
    GOOD(CHAT_BODY, "{'messages':[{'role':'developer','content':'d'},"
         "{'role':'system','content':'s'},{'role':'user','content':'u'}]}",
         "{'role':'developer','content':'d'},{'role':'system','content':'s'},"
         "{'role':'user','content':'u'}]"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','name':null,'content':"
         "[{'type':'text','text':'a'},{'type':'text','text':'b'}]}]}",
         "{'role':'user','content':[{'type':'text','text':'a'},"
         "{'type':'text','text':'b'}]}]"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'q'},"
         "{'role':'assistant','content':null,'refusal':null,'tool_calls':"
         "[{'id':'c','type':'function','function':{'name':'f',"
         "'arguments':'{}'}}]},{'role':'tool','tool_call_id':'c',"
         "'content':'r'}]}",
         "{'role':'assistant','content':null,'tool_calls':[{'id':'c',"
         "'type':'function','function':{'name':'f','arguments':'{}',"
         "'" LLM_CHAT_ARGS "':{}}}]},"
         "{'role':'tool','tool_call_id':'c','content':'r'}],"
         "'add_generation_prompt':true,'continue_final_message':false,"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'q'},"
         "{'role':'assistant','tool_calls':[{'function':{'name':'f'}}]},"
         "{'role':'tool','content':'r'}]}",
         "'tool_calls':[{'function':{'name':'f'}}],'content':null}"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':"
         "[{'type':'refusal','refusal':'no'}],'tool_calls':[],"
         "'reasoning':'r'},{'role':'user','content':'q'}]}",
         "{'role':'assistant','content':[{'type':'text','text':'no'}],"
         "'reasoning':'r','reasoning_content':'r'}"),

    /* a trailing assistant message */

    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'q'},"
         "{'role':'assistant','content':'Once'}]}",
         "'add_generation_prompt':false,'continue_final_message':true,"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':'Once'}],"
         "'continue_final_message':false}",
         "'add_generation_prompt':true,'continue_final_message':false,"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':'Once'}],"
         "'add_generation_prompt':true}",
         "'add_generation_prompt':true,'continue_final_message':false,"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':'Once'}],"
         "'continue_final_message':true,'add_generation_prompt':false}",
         "'add_generation_prompt':false,'continue_final_message':true,"),
    GOOD(CHAT_BODY, "{'messages':" HI ",'add_generation_prompt':false}",
         "'add_generation_prompt':false,'continue_final_message':false,"),
    BAD(CHAT_BODY, "{'messages':[{'role':'assistant','content':'Once'}],"
        "'continue_final_message':true,'add_generation_prompt':true}",
        "continue_final_message", "invalid_value", "cannot both"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':null}]}",
         "'add_generation_prompt':true,'continue_final_message':false,"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':''}]}",
         "'add_generation_prompt':true,'continue_final_message':false,"),
    BAD(CHAT_BODY, "{'messages':[{'role':'assistant'}],"
        "'continue_final_message':true}", "continue_final_message",
        "invalid_value", "with content"),
    BAD(CHAT_BODY, "{'messages':" HI ",'continue_final_message':true}",
        "continue_final_message", "invalid_value", "assistant"),

    /* tools and what templates are told */

    GOOD(CHAT_WITH, ",'tools':[" FN "]", "'tools':[" FN "]} "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':'auto'", "'tools':["),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':'none'",
         "'chat_template_kwargs':{}} "),
    GOOD(CHAT_WITH, ",'tools':[]", "'chat_template_kwargs':{}} "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':'none'",
         " tools=1 single=0 names=[] "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':'required',"
         "'parallel_tool_calls':false", " tools=2 single=1 names=[] "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'function',"
         "'function':{'name':'f'}}", " tools=2 single=0 names=['f'] "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'function',"
         "'name':'f'}", " tools=2 single=0 names=['f'] "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'allowed_tools',"
         "'allowed_tools':{'mode':'auto','tools':[{'type':'function',"
         "'function':{'name':'f'}}]}}", " tools=0 single=0 names=['f'] "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'allowed_tools',"
         "'mode':'required','tools':[{'type':'function','name':'f'}]}",
         " tools=2 single=0 names=['f'] "),
    BAD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'function',"
        "'function':{'name':'g'}}", "tool_choice.function.name",
        "invalid_value", "'g'"),
    BAD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'allowed_tools',"
        "'allowed_tools':{'mode':'auto','tools':[]}}",
        "tool_choice.allowed_tools.tools", "empty_array", ""),
    BAD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'allowed_tools',"
        "'allowed_tools':{'mode':'never','tools':[{'name':'f'}]}}",
        "tool_choice.allowed_tools.mode", "invalid_value", ""),
    BAD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'custom'}",
        "tool_choice.type", "invalid_value", ""),
    BAD(CHAT_WITH, ",'tool_choice':'required'", "tool_choice",
        "invalid_value", "'tools'"),
    GOOD(CHAT_WITH, ",'functions':[{'name':'f','parameters':{}}]",
         "'tools':[" FN "]} "),
    GOOD(CHAT_WITH, ",'functions':[{'name':'f'}],'function_call':"
         "{'name':'f'}", " tools=2 single=1 names=['f'] "),
    GOOD(CHAT_WITH, ",'functions':[{'name':'f'}],'function_call':'none'",
         "'chat_template_kwargs':{}} "),
    BAD(CHAT_WITH, ",'functions':[{'name':'f'}],'tools':[" FN "]",
        "functions", "invalid_value", ""),
    BAD(CHAT_WITH, ",'functions':[{}]", "functions[0].name",
        "missing_required_parameter", ""),
    GOOD(CHAT_WITH, ",'reasoning_format':'none'", " flags=128 "),
    GOOD(CHAT_WITH, ",'reasoning_format':'auto'", " flags=0 "),
    GOOD(CHAT_WITH, ",'include_reasoning':false", " flags=256 "),
    GOOD(CHAT_WITH, ",'thinking_budget_tokens':0", " flags=4096 "),
    GOOD(CHAT_WITH, ",'reasoning_budget':-1", " flags=0 "),
    BAD(CHAT_WITH, ",'thinking_budget':-2", "thinking_budget",
        "integer_below_min_value", ""),
    BAD(CHAT_WITH, ",'reasoning_format':'some'", "reasoning_format",
        "invalid_value", "'some'"),
    BAD(CHAT_WITH, ",'tool_choice':'maybe'", "tool_choice", "invalid_value",
        ""),
    BAD(CHAT_WITH, ",'tool_choice':7", "tool_choice", "invalid_type", ""),
    BAD(CHAT_WITH, ",'tools':{}", "tools", "invalid_type", ""),
    BAD(CHAT_WITH, ",'tools':[1]", "tools[0]", "invalid_type", ""),
    BAD(CHAT_WITH, ",'tools':[{'type':'web_search'}]", "tools[0].type",
        "invalid_value", "'web_search'"),
    BAD(CHAT_WITH, ",'tools':[{'type':'function'}]", "tools[0].function",
        "missing_required_parameter", ""),
    BAD(CHAT_WITH, ",'tools':[{'type':'function','function':{'name':''}}]",
        "tools[0].function.name", "invalid_value", ""),
    GOOD(CHAT_WITH, ",'chat_template_kwargs':{'enable_thinking':true,"
         "'x':[1.5]}", "'chat_template_kwargs':{'enable_thinking':true,"
         "'x':[d1.5]}}"),
    GOOD(CHAT_WITH, ",'enable_thinking':false",
         "'chat_template_kwargs':{'enable_thinking':false}}"),
    GOOD(CHAT_WITH, ",'reasoning_effort':'low'",
         "'chat_template_kwargs':{'reasoning_effort':'low'}}"),
    GOOD(CHAT_WITH, ",'reasoning_effort':'none'",
         "'chat_template_kwargs':{'reasoning_effort':'none',"
         "'enable_thinking':false}}"),
    GOOD(CHAT_WITH, ",'reasoning_effort':'none','chat_template_kwargs':"
         "{'enable_thinking':true,'reasoning_effort':'high'}",
         "'chat_template_kwargs':{'enable_thinking':true,"
         "'reasoning_effort':'high'}}"),
    GOOD(CHAT_WITH, ",'documents':[{'text':'d'}]",
         "'documents':[{'text':'d'}]}"),
    BAD(CHAT_WITH, ",'chat_template_kwargs':{'bos_token':'<s>'}",
        "chat_template_kwargs", "invalid_value", "'bos_token'"),
    BAD(CHAT_WITH, ",'chat_template_kwargs':{'messages':[]}",
        "chat_template_kwargs", "invalid_value", "'messages'"),
    BAD(CHAT_WITH, ",'chat_template_kwargs':[]", "chat_template_kwargs",
        "invalid_type", ""),

    /* what needs no model */

    GOOD(TOKENIZE, "{'content':'a b'}", " task=3 model=0 kind=2 flags=0 "),
    GOOD(TOKENIZE, "{'content':'a b'}", " prompts='a b' "),
    GOOD(TOKENIZE, "{'content':'a','add_special':true}", " flags=512 "),
    GOOD(TOKENIZE, "{'content':'a','parse_special':false,"
         "'with_pieces':true}", " flags=3072 "),
    GOOD(TOKENIZE, "{'prompt':'a'}", " flags=512 "),
    GOOD(TOKENIZE, "{'prompt':'a','add_special_tokens':false,"
         "'return_token_strs':true}", " flags=2048 "),
    GOOD(TOKENIZE, "{'content':null,'prompt':'','messages':null}",
         " prompts='' "),
    GOOD(TOKENIZE, "{'messages':" HI "}", " kind=1 "),
    GOOD(TOKENIZE, "{'messages':" HI ",'add_generation_prompt':false}",
         "'add_generation_prompt':false,"),
    BAD(TOKENIZE, "{}", "prompt", "missing_required_parameter", ""),
    BAD(TOKENIZE, "{'content':['a']}", "content", "invalid_type", ""),
    BAD(TOKENIZE, "{'messages':7}", "messages", "invalid_type", ""),
    BAD(TOKENIZE, "{'content':'a','model':'other'}", "model",
        "model_not_found", ""),
    GOOD(DETOKENIZE, "{'tokens':[5,0]}", " task=4 model=0 kind=2 "),
    GOOD(DETOKENIZE, "{'tokens':[5,0]}", " prompts=[5,0] "),
    GOOD(DETOKENIZE, "{'tokens':[]}", " prompts=[] "),
    BAD(DETOKENIZE, "{'tokens':null}", "tokens", "invalid_type", ""),
    BAD(DETOKENIZE, "{'tokens':['5']}", "tokens[0]", "invalid_type", ""),
    GOOD(TEMPLATE, "{'messages':" HI ",'n':3}", " task=5 model=0 kind=1 "),
    GOOD(TEMPLATE, "{'messages':" HI "}", "'messages':" HI ","),
    BAD(TEMPLATE, "{'messages':" HI ",'top_p':7}", "top_p",
        "decimal_above_max_value", ""),
    BAD(TEMPLATE, "{'messages':" HI ",'add_generation_prompt':true,"
        "'continue_final_message':true}", "continue_final_message",
        "invalid_value", ""),
    GOOD(INFILL, "{'input_prefix':'a','input_suffix':'b'}",
         " prompts='a' infill='b'[] "),
    GOOD(INFILL, "{'input_prefix':'a','input_suffix':'','prompt':'c',"
         "'input_extra':[{'text':'t','filename':'f'},{}]}",
         " prompts='ac' infill=''['f':'t','tmp':''] "),
    GOOD(INFILL, "{'input_prefix':'','input_suffix':'','n_predict':-1}",
         " max=-1 "),
    BAD(INFILL, "{'input_prefix':'a'}", "input_suffix",
        "missing_required_parameter", ""),
    BAD(INFILL, "{'input_prefix':'a','input_suffix':null}", "input_suffix",
        "invalid_type", ""),
    BAD(INFILL, "{'input_prefix':'a','input_suffix':'','input_extra':"
        "[{'filename':1}]}", "input_extra[0].filename", "invalid_type", ""),
};


static char *
body_of(const case_t *c)
{
    size_t      size;
    char       *body, *all;

    static const char *const  wraps[] = {
        "", "{'messages':" HI "%s}", "{'prompt':'once'%s}", "%s", "%s", "%s",
        "%s", "%s", "%s"
    };

    body = quoted(wraps[c->how]);
    size = strlen(body) + strlen(c->body) + 1;
    all = malloc(size);

    snprintf(all, size, body, c->body);
    free(body);

    body = quoted(all);
    free(all);

    return body;
}


static void
test_case(const case_t *c)
{
    char                      *body, *copy;
    size_t                     len;
    llm_api_t                 *a;
    llm_buf_t                  msg, dump;
    llm_err_t                  err;
    const llm_api_endpoint_t  *ep;

    static const llm_api_endpoint_t *const  endpoints[] = {
        NULL, CHAT, COMPL, CHAT, COMPL, &llm_api_tokenize,
        &llm_api_detokenize, &llm_api_template, &llm_api_infill
    };

    ep = endpoints[c->how];

    body = body_of(c);
    len = strlen(body);
    copy = malloc(len ? len : 1);
    memcpy(copy, body, len);

    memset(&err, 0, sizeof(err));
    llm_buf_init(&msg, 0);
    llm_buf_init(&dump, 0);

    a = llm_api_parse(ep, &conf, copy, len, &msg, &err);

    if (a && c->param == NULL) {
        dump_request((llm_request_t *) msg.data, &dump);

        ok(strstr(dump.data, c->code) != NULL, "%s", body);

        if (strstr(dump.data, c->code) == NULL) {
            printf("# got  %s\n# want %s\n", dump.data, c->code);
        }

    } else if (a) {
        ok(0, "not refused: %s", body);

    } else if (c->param == NULL) {
        ok(0, "refused: %s", body);
        printf("# %s\n", err.msg);

    } else {
        ok(strcmp(err.param, c->param) == 0
           && strcmp(err.code, c->code) == 0
           && err.status == (strcmp(c->code, "model_not_found") ? 400 : 404)
           && strstr(err.msg, c->msg), "refused: %s", body);

        if (strcmp(err.param, c->param) || strcmp(err.code, c->code)) {
            printf("# %d '%s' '%s' %s\n", err.status, err.param, err.code,
                   err.msg);
        }
    }

    llm_api_free(a);
    llm_buf_free(&msg);
    llm_buf_free(&dump);
    free(copy);
    free(body);
}


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
    size_t  i;

    for (i = 0; i < llm_nelems(cases); i++) {
        test_case(&cases[i]);
    }

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
