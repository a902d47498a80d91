/*
 * Requests: fields that make a rule for the answer or for its tokens, fields
 * that are refused, and the bodies of endpoints that are no chats; see
 * api_case.h.
 */

#include "t/unit/api_case.h"


static const case_t  cases[] = {

    /* what cannot be served is not ignored */

    GOOD(CHAT_WITH, ",'response_format':{'type':'text'}", " rule=none "),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_object'}",
         " rule=object of=response_format is= "),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_object','schema':{"
         "'type':'null'}}", " rule=schema of=response_format.schema is="),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_schema',"
         "'json_schema':{'name':'x','strict':false,'schema':true}}",
         " rule=schema of=response_format.json_schema.schema is="),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_schema',"
         "'json_schema':{'name':'x','strict':true,'schema':{}}}",
         " rule=strict of=response_format.json_schema.schema is="),
    GOOD(CHAT_WITH, ",'response_format':{'type':'json_schema',"
         "'json_schema':{'name':'x','strict':null,'schema':{}}}",
         " rule=schema of=response_format.json_schema.schema is="),
    BAD(CHAT_WITH, ",'response_format':{'type':'json_schema',"
        "'json_schema':{'name':'x','strict':'yes','schema':{}}}",
        "response_format.json_schema.strict", "invalid_type", "a boolean"),
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
    BAD(CHAT_WITH, ",'structured_outputs':{'jsn':{'type':'object'}}",
        "structured_outputs.jsn", "unsupported_parameter", ""),
    BAD(CHAT_WITH, ",'structured_outputs':{'regex':'x',"
        "'whitespace_pattern':' *'}", "structured_outputs.whitespace_pattern",
        "unsupported_parameter", ""),
    GOOD(CHAT_WITH, ",'structured_outputs':{'regex':'x','structural_tag':null,"
         "'disable_fallback':true,'disable_any_whitespace':false}",
         " rule=regex of=structured_outputs.regex is=x "),
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
    BAD(CHAT_WITH, ",'web_search_options':{'search_context_size':'low'}",
        "web_search_options", "unsupported_parameter", ""),
    GOOD(CHAT_WITH, ",'web_search_options':{}", " flags=0 "),
    BAD(COMPL_WITH, ",'prompt_logprobs':1", "prompt_logprobs",
        "unsupported_parameter", ""),
    BAD(COMPL_WITH, ",'truncate_prompt_tokens':9", "truncate_prompt_tokens",
        "unsupported_parameter", ""),

    /* what changes nothing here is taken, if it is what it should be */

    GOOD(CHAT_WITH, ",'store':true,'service_tier':'flex','verbosity':'low',"
         "'prompt_cache_key':'k','prediction':{'type':'content','content':"
         "'a'},'unheard_of':{}", " flags=0 "),
    BAD(CHAT_WITH, ",'store':'yes'", "store", "invalid_type", ""),
    BAD(CHAT_WITH, ",'service_tier':1", "service_tier", "invalid_type", ""),
    BAD(CHAT_WITH, ",'verbosity':1", "verbosity", "invalid_type", ""),
    BAD(CHAT_WITH, ",'prompt_cache_key':1", "prompt_cache_key",
        "invalid_type", ""),
    BAD(CHAT_WITH, ",'prompt_cache_retention':1", "prompt_cache_retention",
        "invalid_type", ""),
    BAD(CHAT_WITH, ",'prediction':'a'", "prediction", "invalid_type", ""),
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

    /* whose a request is, where no text is generated */

    GOOD(EMBED_WITH, ",'cache_prompt':false", " flags=16 "),
    GOOD(EMBED_WITH, ",'cache_salt':'x'", " salt=1 "),
    GOOD(EMBED_WITH, ",'priority':7", " priority=7 "),
    GOOD(EMBED_WITH, ",'metadata':{'priority':'high'}", " priority=10 "),
    BAD(EMBED_WITH, ",'user':1", "user", "invalid_type", ""),
    BAD(EMBED_WITH, ",'model':'other'", "model", "model_not_found", ""),
    GOOD(RANK_WITH, ",'cache_prompt':false", " flags=16 "),
    GOOD(RANK_WITH, ",'cache_salt':'x'", " salt=1 "),
    GOOD(RANK_WITH, ",'priority':7", " priority=7 "),
    GOOD(RANK_WITH, ",'metadata':{'priority':'high'}", " priority=10 "),
    BAD(RANK_WITH, ",'user':1", "user", "invalid_type", ""),
    BAD(RANK_WITH, ",'model':'other'", "model", "model_not_found", ""),
    GOOD(SCORE_WITH, ",'cache_prompt':false", " flags=16 "),
    GOOD(SCORE_WITH, ",'cache_salt':'x'", " salt=1 "),
    GOOD(SCORE_WITH, ",'priority':7", " priority=7 "),
    GOOD(SCORE_WITH, ",'metadata':{'priority':'high'}", " priority=10 "),
    BAD(SCORE_WITH, ",'user':1", "user", "invalid_type", ""),
    BAD(SCORE_WITH, ",'model':'other'", "model", "model_not_found", ""),
    BAD(RANK_WITH, ",'raw_scores':true", "raw_scores",
        "unsupported_parameter", ""),
    BAD(RANK_WITH, ",'truncate':true", "truncate", "unsupported_parameter",
        ""),
    BAD(RANK_WITH, ",'truncate_prompt_tokens':9", "truncate_prompt_tokens",
        "unsupported_parameter", ""),
    BAD(SCORE_WITH, ",'truncate_prompt_tokens':9", "truncate_prompt_tokens",
        "unsupported_parameter", ""),

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
    GOOD(TOKENIZE, "{'messages':" HI ",'tools':[" FN "]}", "'tools':[{"),
    GOOD(TOKENIZE, "{'messages':" HI ",'documents':[{'text':'d'}]}",
         "'documents':[{'text':'d'}]"),
    GOOD(TOKENIZE, "{'messages':" HI ",'chat_template_kwargs':{'a':1},"
         "'enable_thinking':true,'reasoning_effort':'low'}",
         "'chat_template_kwargs':{'a':1,'reasoning_effort':'low',"
         "'enable_thinking':true}"),
    GOOD(TOKENIZE, "{'messages':[{'role':'assistant','content':'a'}],"
         "'continue_final_message':false}", "'continue_final_message':false"),
    BAD(TOKENIZE, "{'messages':" HI ",'chat_template':'{{ 1 }}'}",
        "chat_template", "unsupported_parameter", ""),
    BAD(TOKENIZE, "{}", "prompt", "missing_required_parameter", ""),
    BAD(TOKENIZE, "{'content':['a']}", "content", "invalid_type", ""),
    BAD(TOKENIZE, "{'messages':7}", "messages", "invalid_type", ""),
    BAD(TOKENIZE, "{'content':'a','model':'other'}", "model",
        "model_not_found", ""),
    GOOD(DETOKENIZE, "{'tokens':[5,0]}", " task=4 model=0 kind=2 "),
    GOOD(DETOKENIZE, "{'tokens':[5,0]}", " prompts=[5,0] "),
    GOOD(DETOKENIZE, "{'tokens':[]}", " prompts=[] "),
    BAD(DETOKENIZE, "{'tokens':[],'model':'other'}", "model",
        "model_not_found", ""),
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
         "'input_extra':[{'text':'t','filename':'f'},{'text':''}]}",
         " prompts='ac' infill=''['f':'t','tmp':''] "),
    GOOD(INFILL, "{'input_prefix':'','input_suffix':'','n_predict':-1}",
         " max=-1 "),
    GOOD(INFILL, "{'input_prefix':'','input_suffix':'','grammar':'root'}",
         " rule=gbnf of=grammar is=root "),
    BAD(INFILL, "{'input_prefix':'','input_suffix':'','grammar':'a',"
        "'json_schema':{}}", "grammar", "invalid_value", "only one"),
    BAD(INFILL, "{'input_prefix':'','input_suffix':'','n':2}", "n",
        "integer_above_max_value", ""),
    BAD(INFILL, "{'input_prefix':'a'}", "input_suffix",
        "missing_required_parameter", ""),
    BAD(INFILL, "{'input_prefix':'a','input_suffix':null}", "input_suffix",
        "invalid_type", ""),
    BAD(INFILL, "{'input_prefix':'a','input_suffix':'','input_extra':"
        "[{'filename':1,'text':'t'}]}", "input_extra[0].filename",
        "invalid_type", ""),
    BAD(INFILL, "{'input_prefix':'a','input_suffix':'','input_extra':"
        "[{'filename':'f'}]}", "input_extra[0].text",
        "missing_required_parameter", ""),
};


int
main(void)
{
    test_cases(cases);

    return done_testing();
}
