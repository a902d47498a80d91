/*
 * Requests: messages, tools, and what templates are told; see api_case.h.
 */

#include "t/unit/api_case.h"


static const case_t  cases[] = {

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

    /* parts of other dialects, and of turns that were answered */

    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':[{'type':"
         "'input_text','text':'a'}]},{'role':'assistant','content':[{'type':"
         "'thinking','thinking':'t'},{'type':'reasoning','summary':[{'type':"
         "'summary_text','text':'u'}]},{'type':'redacted_thinking','data':"
         "'x'},{'type':'output_text','text':'b'}]},{'role':'user','content':"
         "'c'}]}",
         "[{'role':'user','content':[{'type':'text','text':'a'}]},"
         "{'role':'assistant','content':[{'type':'text','text':'b'}],"
         "'reasoning_content':'t\nu'},{'role':'user','content':'c'}]"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':[{'type':"
         "'thinking','thinking':[{'type':'text','text':'t'}]}]},{'role':"
         "'user','content':'c'}]}",
         "[{'role':'assistant','content':'','reasoning_content':'t'},"
         "{'role':'user','content':'c'}]"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'assistant','content':[{'type':"
         "'thinking','thinking':'t'}],'reasoning_content':'r'},{'role':"
         "'user','content':'c'}]}",
         "{'role':'assistant','content':'','reasoning_content':'r'}"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':[{'type':'text',"
         "'text':'a','cache_control':{}},{'type':'image_url','image_url':"
         "{'url':'data:'}},{'type':'file','file':{'filename':'f'}},{'type':"
         "'what','text':'w'}]},{'role':'assistant','content':'b'},{'role':"
         "'user','content':[{'type':'document','source':{'type':'text',"
         "'data':'d'}}]}]}",
         "[{'role':'user','content':[{'type':'text','text':'a',"
         "'cache_control':{}},{'type':'text','text':'[image]'},{'type':"
         "'text','text':'[file: f]'},{'type':'text','text':'w'}]},{'role':"
         "'assistant','content':'b'},{'role':'user','content':[{'type':"
         "'text','text':'d'}]}]"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':'a'},{'role':"
        "'assistant','content':'b'},{'role':'user','content':[{'type':"
        "'image_url'}]}]}", "messages[2].content[0].type", "invalid_value",
        "text only"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':[{'type':"
        "'image_url'}]},{'role':'assistant','content':'It is'}]}",
        "messages[0].content[0].type", "invalid_value", "text only"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':'a'},{'role':"
        "'assistant','content':[{'type':'text','text':'b'},{'type':"
        "'image_url'}]}]}", "messages[1].content[1].type", "invalid_value",
        "'image_url'. The answer goes on from"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':'a'},{'role':"
        "'assistant','content':[{'type':'image_url'}]}],"
        "'continue_final_message':true,'add_generation_prompt':false}",
        "messages[1].content[0].type", "invalid_value", "goes on from"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'a'},{'role':"
         "'assistant','content':[{'type':'image_url'}]}],"
         "'continue_final_message':false}",
         "{'role':'assistant','content':[{'type':'text','text':'[image]'}]}]"),
    BAD(CHAT_BODY, "{'messages':[{'role':'user','content':[{'type':"
        "'thinking','thinking':'t'}]}]}", "messages[0].content[0].type",
        "invalid_value", "text only"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'a'},{'role':"
         "'assistant','content':[{'type':'thinking','thinking':'t'}]}]}",
         "'add_generation_prompt':true,'continue_final_message':false,"),

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
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'a'},"
         "{'role':'assistant','content':'b','tool_calls':[{'id':'c','type':"
         "'function','function':{'name':'f','arguments':'{}'}}]}]}",
         "'add_generation_prompt':true,'continue_final_message':false,"),
    GOOD(CHAT_BODY, "{'messages':[{'role':'user','content':'a'},"
         "{'role':'assistant','content':'b','reasoning':'x',"
         "'reasoning_content':'y'},{'role':'user','content':'c'}]}",
         "'content':'b','reasoning':'x','reasoning_content':'y'}"),
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
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':'any'",
         " tools=2 single=0 names=[] "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'function',"
         "'function':{'name':'f'}}", " tools=2 single=1 names=['f'] "),
    GOOD(CHAT_WITH, ",'tools':[" FN "],'tool_choice':{'type':'function',"
         "'name':'f'}", " tools=2 single=1 names=['f'] "),
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
    GOOD(CHAT_WITH, ",'reasoning_budget':0", " flags=4096 "),
    GOOD(CHAT_WITH, ",'thinking_token_budget':0", " flags=4096 "),
    GOOD(CHAT_WITH, ",'reasoning_budget':-1", " flags=0 "),
    BAD(CHAT_WITH, ",'thinking_budget':7,'reasoning_format':'none'",
        "reasoning_format", "invalid_value", "bound of reasoning"),
    GOOD(CHAT_WITH, ",'thinking_budget':-1,'reasoning_format':'none'",
         " flags=128 "),
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
    BAD(CHAT_WITH, ",'tools':[{'type':'function','function':{'name':'f'}},"
        "{'type':'function','function':{'name':'g','strict':1}}]",
        "tools[1].function.strict", "invalid_type", "a boolean"),
    BAD(CHAT_WITH, ",'tools':[{'type':'function','function':{'name':'f',"
        "'parameters':{}}},{'type':'function','function':{'name':'g',"
        "'parameters':'x'}}]",
        "tools[1].function.parameters", "invalid_type", "an object"),
    BAD(CHAT_WITH, ",'tools':[{'type':'function','function':{'name':'f',"
        "'strict':true,'parameters':[]}}]",
        "tools[0].function.parameters", "invalid_type", "an array"),
    BAD(CHAT_WITH, ",'tools':[{'type':'function','function':{'name':'f',"
        "'parameters':true}}]",
        "tools[0].function.parameters", "invalid_type", "a boolean"),
    GOOD(CHAT_WITH, ",'tools':[{'type':'function','function':{'name':'f',"
         "'parameters':null}}]", "'tools':["),
    BAD(CHAT_WITH, ",'functions':[{'name':'f','parameters':5}]",
        "functions[0].parameters", "invalid_type", "an object"),
    BAD(CHAT_WITH, ",'functions':[{'name':'f','strict':'no'}]",
        "functions[0].strict", "invalid_type", "a boolean"),
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
    BAD(CHAT_WITH, ",'documents':[{},5]", "documents[1]", "invalid_type",
        "an object"),
    BAD(CHAT_WITH, ",'documents':[[]]", "documents[0]", "invalid_type", ""),
    BAD(CHAT_WITH, ",'documents':[null]", "documents[0]", "invalid_type", ""),
    BAD(CHAT_WITH, ",'documents':['d']", "documents[0]", "invalid_type", ""),
    BAD(CHAT_WITH, ",'chat_template_kwargs':{'bos_token':'<s>'}",
        "chat_template_kwargs", "invalid_value", "'bos_token'"),
    BAD(CHAT_WITH, ",'chat_template_kwargs':{'messages':[]}",
        "chat_template_kwargs", "invalid_value", "'messages'"),
    BAD(CHAT_WITH, ",'chat_template_kwargs':[]", "chat_template_kwargs",
        "invalid_type", ""),
};


int
main(void)
{
    test_cases(cases);

    return done_testing();
}
