/*
 * Responses: requests that are chats in other words; responses_answers.c has
 * the answers.
 */

#include "t/unit/api_talk.h"

#define RESPONSES  (&llm_api_responses)


static void
test_input(void)
{
    size_t  i;

    static const struct {
        const char  *what, *said, *chat;
    } pairs[] = {
        { "a string",
          "{'input':'Hi'}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "instructions and the developer's words",
          "{'instructions':'Be brief.','input':[{'role':'developer',"
          "'content':'Be kind.'},{'type':'message','role':'user','content':"
          "[{'type':'input_text','text':'Hi'}]}]}",
          "{'messages':[{'role':'system','content':[{'type':'text','text':"
          "'Be brief.'},{'type':'text','text':'Be kind.'}]},"
          "{'role':'user','content':'Hi'}]}" },

        { "null counts as absent",
          "{'instructions':null,'input':'Hi','tools':null,'reasoning':null,"
          "'text':null,'include':null,'tool_choice':null,'model':null,"
          "'previous_response_id':null,'max_output_tokens':null,"
          "'metadata':null,'stream':null,'top_logprobs':null}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "what was said, thought, called and answered",
          "{'input':[{'role':'user','content':'Go'},"
          "{'type':'reasoning','id':'rs_1','summary':[],'content':"
          "[{'type':'reasoning_text','text':'Hm.'}]},"
          "{'type':'message','id':'msg_1','role':'assistant','status':"
          "'completed','phase':'commentary','content':[{'type':'output_text',"
          "'text':'One moment.','annotations':[]}]},"
          "{'type':'function_call','id':'fc_1','call_id':'call_1','name':'f',"
          "'arguments':'{}','status':'completed'},"
          "{'type':'function_call','call_id':'call_2','name':'g',"
          "'arguments':'{\\'a\\':[1,2.5]}'},"
          "{'type':'function_call_output','call_id':'call_1','output':'1'},"
          "{'type':'function_call_output','call_id':'call_2','output':"
          "[{'type':'input_text','text':'2'},{'type':'input_text','text':"
          "'3'}]},"
          "{'role':'user','content':'And?'}]}",
          "{'messages':[{'role':'user','content':'Go'},"
          "{'role':'assistant','content':'One moment.','reasoning_content':"
          "'Hm.','tool_calls':[{'id':'call_1','type':'function','function':"
          "{'name':'f','arguments':'{}'}},{'id':'call_2','type':'function',"
          "'function':{'name':'g','arguments':'{\\'a\\':[1,2.5]}'}}]},"
          "{'role':'tool','content':'1','tool_call_id':'call_1'},"
          "{'role':'tool','content':[{'type':'text','text':'2'},"
          "{'type':'text','text':'3'}],'tool_call_id':'call_2'},"
          "{'role':'user','content':'And?'}]}" },

        { "calls alone have no content",
          "{'input':[{'type':'function_call','call_id':'c','name':'f',"
          "'arguments':''},{'type':'function_call_output','call_id':'c',"
          "'output':''}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':"
          "[{'id':'c','type':'function','function':{'name':'f','arguments':"
          "''}}]},{'role':'tool','content':'','tool_call_id':'c'}]}" },

        { "a custom tool's call has its input as an argument",
          "{'input':[{'type':'custom_tool_call','call_id':'c','name':'f',"
          "'input':'a b'},{'type':'custom_tool_call_output','call_id':'c',"
          "'output':'ok'}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':"
          "[{'id':'c','type':'function','function':{'name':'f','arguments':"
          "'{\\'input\\':\\'a b\\'}'}}]},{'role':'tool','content':'ok',"
          "'tool_call_id':'c'}]}" },

        { "an assistant's message at the end is not continued",
          "{'input':[{'role':'user','content':'Hi'},{'role':'assistant',"
          "'content':[{'type':'refusal','refusal':'No.'}]}]}",
          "{'messages':[{'role':'user','content':'Hi'},{'role':'assistant',"
          "'content':'No.'}],'add_generation_prompt':true}" },

        { "parts of turns that were answered: texts and placeholders",
          "{'input':[{'role':'user','content':[{'type':'input_image',"
          "'image_url':'data:'},{'type':'input_file','filename':'a.pdf'},"
          "{'type':'input_text','text':'What?'}]},{'role':'assistant',"
          "'content':[{'type':'output_text','text':'A cat.'}]},{'role':"
          "'user','content':'Thanks.'}]}",
          "{'messages':[{'role':'user','content':[{'type':'text','text':"
          "'[image]'},{'type':'text','text':'[file: a.pdf]'},{'type':'text',"
          "'text':'What?'}]},{'role':'assistant','content':'A cat.'},"
          "{'role':'user','content':'Thanks.'}]}" },

        { "what another server has sealed is passed over",
          "{'input':[{'role':'user','content':'a'},{'type':'reasoning','id':"
          "'rs_1','summary':[],'encrypted_content':'gAAAAABo'},"
          "{'role':'user','content':'b'}]}",
          "{'messages':[{'role':'user','content':'a'},"
          "{'role':'user','content':'b'}]}" },

        { "or its summary is taken",
          "{'input':[{'type':'reasoning','id':'rs_1','summary':[{'type':"
          "'summary_text','text':'x'},{'type':'summary_text','text':'y'}],"
          "'encrypted_content':'gAAAAABo'},"
          "{'role':'assistant','content':'b'},{'role':'user','content':'c'}]}",
          "{'messages':[{'role':'assistant','content':'b',"
          "'reasoning_content':'x\\ny'},{'role':'user','content':'c'}]}" },

        { "what is ours is opened",
          "{'input':[{'type':'reasoning','id':'rs_1','summary':[{'type':"
          "'summary_text','text':'x'}],"
          "'encrypted_content':'bmdpbngtbGxtOkhtLg=='},"
          "{'role':'assistant','content':'b'},{'role':'user','content':'c'}]}",
          "{'messages':[{'role':'assistant','content':'b',"
          "'reasoning_content':'Hm.'},{'role':'user','content':'c'}]}" },

        { "a message with an id, a part as a chat has it",
          "{'input':[{'id':'msg_1','role':'user','content':[{'type':'text',"
          "'text':'Hi'}]}]}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "items that keep the state of another server",
          "{'input':[{'type':'compaction','id':'c','encrypted_content':'g'},"
          "{'type':'compaction_summary','encrypted_content':'g'},"
          "{'type':'context_compaction','encrypted_content':'g'},"
          "{'type':'mcp_list_tools','id':'m','server_label':'s','tools':[]},"
          "{'type':'web_search_call','id':'w','status':'completed','action':"
          "{'type':'search','query':'q'}},{'role':'assistant','content':'a'},"
          "{'type':'ghost_snapshot','ghost_commit':{}},{'type':"
          "'compaction_trigger'},{'type':'next_year','id':'n'},"
          "{'role':'user','content':'Hi'}]}",
          "{'messages':[{'role':'assistant','content':'a'},{'role':'user',"
          "'content':'Hi'}]}" },

        { "a summary that can be read; what is newer, and answered",
          "{'input':[{'type':'compaction','summary':[{'type':'summary_text',"
          "'text':'They met.'}]},{'type':'next_year','content':'x'},"
          "{'role':'assistant','content':'a'},{'role':'user','content':"
          "'Hi'}]}",
          "{'messages':[{'role':'user','content':'They met.'},{'role':"
          "'assistant','content':'a'},{'role':'user','content':'Hi'}]}" },

        { "calls of other tools, and their outputs",
          "{'input':[{'type':'local_shell_call','id':'l','call_id':'c1',"
          "'status':'completed','action':{'type':'exec','command':['ls']}},"
          "{'type':'local_shell_call_output','id':'c1','output':'a\\n'},"
          "{'type':'shell_call','call_id':'c2','action':{'commands':['x']}},"
          "{'type':'shell_call_output','call_id':'c2','output':[{'stdout':"
          "'o','stderr':'','outcome':{'type':'exit','exit_code':0}}]},"
          "{'type':'apply_patch_call','call_id':'c3','operation':{'type':"
          "'delete_file','path':'p'},'status':'completed'},"
          "{'type':'apply_patch_call_output','call_id':'c3','status':"
          "'failed'},"
          "{'type':'program','id':'p','call_id':'c4','code':'f()',"
          "'fingerprint':'g'},"
          "{'type':'program_output','id':'q','call_id':'c4','result':'1',"
          "'status':'completed'},{'role':'user','content':'So?'}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':[{"
          "'id':'c1','type':'function','function':{'name':'local_shell',"
          "'arguments':'{\\'type\\':\\'exec\\',\\'command\\':[\\'ls\\']}'}}]},"
          "{'role':'tool','content':'a\\n','tool_call_id':'c1'},"
          "{'role':'assistant','content':null,'tool_calls':[{'id':'c2',"
          "'type':'function','function':{'name':'shell','arguments':"
          "'{\\'commands\\':[\\'x\\']}'}}]},{'role':'tool','content':"
          "'[{\\'stdout\\':\\'o\\',\\'stderr\\':\\'\\',\\'outcome\\':"
          "{\\'type\\':\\'exit\\',\\'exit_code\\':0}}]','tool_call_id':"
          "'c2'},{'role':'assistant','content':null,'tool_calls':[{'id':'c3',"
          "'type':'function','function':{'name':'apply_patch','arguments':"
          "'{\\'type\\':\\'delete_file\\',\\'path\\':\\'p\\'}'}}]},{'role':"
          "'tool','content':'failed','tool_call_id':'c3'},{'role':"
          "'assistant','content':null,'tool_calls':[{'id':'c4','type':"
          "'function','function':{'name':'program','arguments':"
          "'{\\'code\\':\\'f()\\'}'}}]},{'role':'tool','content':'1',"
          "'tool_call_id':'c4'},{'role':'user','content':'So?'}]}" },

        { "calls that have their output in them",
          "{'input':[{'type':'mcp_call','id':'m1','server_label':'s','name':"
          "'n','arguments':'{\\'a\\': 1}','output':'ok'},"
          "{'type':'mcp_call','id':'m2','server_label':'s','name':'n',"
          "'arguments':'','output':null,'error':'lost'},"
          "{'type':'code_interpreter_call','id':'c1','code':'1','outputs':"
          "[{'type':'logs','logs':'L'},{'type':'image','url':'u'}]},"
          "{'type':'file_search_call','id':'f1','queries':['q'],'status':"
          "'completed','results':[{'filename':'n','text':'t'}]},"
          "{'type':'image_generation_call','id':'i1','result':'iVBOR',"
          "'status':'completed','revised_prompt':'a cat'},"
          "{'role':'user','content':'So?'}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':[{"
          "'id':'m1','type':'function','function':{'name':'n','arguments':"
          "'{\\'a\\': 1}'}}]},{'role':'tool','content':'ok',"
          "'tool_call_id':'m1'},{'role':'assistant','content':null,"
          "'tool_calls':[{'id':'m2','type':'function','function':{'name':"
          "'n','arguments':'{\\'arguments\\':\\'\\'}'}}]},{'role':'tool',"
          "'content':'lost','tool_call_id':'m2'},{'role':'assistant',"
          "'content':null,'tool_calls':[{'id':'c1','type':'function',"
          "'function':{'name':'code_interpreter','arguments':"
          "'{\\'code\\':\\'1\\'}'}}]},{'role':'tool','content':[{'type':"
          "'text','text':'L'},{'type':'text','text':'[image]'}],"
          "'tool_call_id':'c1'},{'role':'assistant','content':null,"
          "'tool_calls':[{'id':'f1','type':'function','function':{'name':"
          "'file_search','arguments':'{\\'queries\\':[\\'q\\']}'}}]},{'role':"
          "'tool','content':'[{\\'filename\\':\\'n\\',\\'text\\':\\'t\\'}]',"
          "'tool_call_id':'f1'},{'role':'assistant','content':null,"
          "'tool_calls':[{'id':'i1','type':'function','function':{'name':"
          "'image_generation','arguments':'{\\'revised_prompt\\':"
          "\\'a cat\\'}'}}]},{'role':'tool','content':'[image]',"
          "'tool_call_id':'i1'},{'role':'user','content':'So?'}]}" },

        { "a call that asks, and the user's word on it; an old screenshot",
          "{'input':[{'type':'mcp_approval_request','id':'r1','name':'n',"
          "'arguments':'{}','server_label':'s'},{'type':"
          "'mcp_approval_response','id':'x','approval_request_id':'r1',"
          "'approve':false,'reason':'No.'},{'type':'computer_call','id':'y',"
          "'call_id':'c','action':{'type':'wait'}},{'type':"
          "'computer_call_output','call_id':'c','output':{'type':"
          "'computer_screenshot','image_url':'data:'}},{'role':'assistant',"
          "'content':'a'},{'role':'user','content':'b'}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':[{"
          "'id':'r1','type':'function','function':{'name':'n','arguments':"
          "'{}'}}]},{'role':'tool','content':[{'type':'text','text':"
          "'Not approved.'},{'type':'text','text':'No.'}],'tool_call_id':"
          "'r1'},{'role':'assistant','content':null,'tool_calls':[{'id':'c',"
          "'type':'function','function':{'name':'computer','arguments':"
          "'{\\'type\\':\\'wait\\'}'}}]},{'role':'tool','content':'[image]',"
          "'tool_call_id':'c'},{'role':'assistant','content':'a'},{'role':"
          "'user','content':'b'}]}" },

        { "items that bring tools, and settings",
          "{'reasoning':{'effort':'low'},'tools':[{'type':'function','name':"
          "'f','parameters':{}}],'input':[{'type':'additional_tools','role':"
          "'developer','tools':[{'type':'function','name':'g','parameters':"
          "{}},{'type':'function','name':'f','description':'another',"
          "'parameters':{}},{'type':'mcp'},{'name':'x'}]},{'type':"
          "'configuration_update','reasoning':{'effort':'high'}},{'type':"
          "'tool_search_call','call_id':'c','execution':'client','arguments':"
          "{'query':'q'}},{'type':'tool_search_output','call_id':'c',"
          "'execution':'client','status':'completed','tools':[{'type':"
          "'function','name':'h','parameters':{}},{'type':'function','name':"
          "'g','parameters':{}}]},{'type':'tool_search_output','call_id':"
          "null,'tools':[]},{'role':'user','content':'Hi'}],'tool_choice':"
          "{'type':'function','name':'h'}}",
          "{'reasoning_effort':'high','tools':[{'type':'function','function':"
          "{'name':'f','parameters':{}}},{'type':'function','function':"
          "{'name':'g','parameters':{}}},{'type':'function','function':"
          "{'name':'h','parameters':{}}}],'messages':[{'role':'assistant',"
          "'content':null,'tool_calls':[{'id':'c','type':'function',"
          "'function':{'name':'tool_search','arguments':"
          "'{\\'query\\':\\'q\\'}'}}]},{'role':'tool','content':"
          "'Tools found: h, g','tool_call_id':'c'},{'role':'tool','content':"
          "'No tools found.','tool_call_id':'call'},{'role':'user','content':"
          "'Hi'}],'tool_choice':{'type':'function','function':{'name':"
          "'h'}}}" },

        { "a schema for the answer",
          "{'input':'Hi','text':{'format':{'type':'json_schema','name':'n',"
          "'schema':{'type':'null'}}}}",
          "{'messages':[{'role':'user','content':'Hi'}],'response_format':"
          "{'type':'json_schema','json_schema':{'name':'n','schema':{'type':"
          "'null'}}}}" },

        { "a strict one",
          "{'input':'Hi','text':{'format':{'type':'json_schema','name':'n',"
          "'strict':true,'schema':{'type':'null'}}}}",
          "{'messages':[{'role':'user','content':'Hi'}],'response_format':"
          "{'type':'json_schema','json_schema':{'name':'n','strict':true,"
          "'schema':{'type':'null'}}}}" },

        { "settings by their other names, and those that both have",
          "{'input':'Hi','max_output_tokens':7,'temperature':0.5,'top_p':0.9,"
          "'stream':true,'seed':3,'top_k':4,'priority':-3,'user':'u',"
          "'cache_salt':'s','reasoning':{'effort':'low','summary':'auto'},"
          "'stream_options':{'include_obfuscation':false},'store':true,"
          "'include':['message.output_text.logprobs','file_search.x'],"
          "'top_logprobs':2,'service_tier':'auto','truncation':'auto',"
          "'prompt_cache_key':'k','safety_identifier':'i','background':false,"
          "'parallel_tool_calls':false,'metadata':{'a':'b'},"
          "'text':{'format':{'type':'text'},'verbosity':'low'},"
          "'messages':[],'logprobs':7,'unknown':{}}",
          "{'messages':[{'role':'user','content':'Hi'}],"
          "'max_completion_tokens':7,'temperature':0.5,'top_p':0.9,"
          "'stream':true,'seed':3,'top_k':4,'priority':-3,"
          "'cache_salt':'s','reasoning_effort':'low','logprobs':true,"
          "'parallel_tool_calls':false,"
          "'top_logprobs':2}" },
    };

    for (i = 0; i < llm_nelems(pairs); i++) {
        same_as_chat(RESPONSES, pairs[i].said, pairs[i].chat, pairs[i].what);
    }
}


static void
test_refused(void)
{
    size_t  i;

    static const struct {
        const char  *body, *param, *words;
    } bad[] = {
        { "{}", "input", "Missing" },
        { "{'input':null}", "input", "got null" },
        { "{'input':1}", "input", "a string or an array" },
        { "{'input':[]}", "input", "empty array" },
        { "{'input':['a']}", "input[0]", "expected an object" },
        { "{'input':[{}]}", "input[0].role", "Missing" },
        { "{'input':[{'role':'user'}]}", "input[0].content", "Missing" },
        { "{'input':[{'role':'pope','content':'a'}]}", "input[0].role",
          "'pope'" },
        { "{'input':[{'type':3}]}", "input[0].type", "expected a string" },
        { "{'input':[{'type':'web_search_call','id':'ws_1'}]}",
          "input", "None of the items" },
        { "{'input':[{'role':'user','content':'a'},{'type':'input_text',"
          "'text':'b'}]}", "input[1].type", "'input_text'" },
        { "{'input':[{'type':'mesage','role':'user','content':'b'}]}",
          "input[0].type", "'mesage'" },
        { "{'input':[{'role':'user','content':'a'},{'type':"
          "'telepathy_call_output','call_id':'c','output':'x'}]}",
          "input[1].type", "'telepathy_call_output'" },
        { "{'input':[{'type':'computer_call','call_id':'c','action':{}},"
          "{'type':'computer_call_output','call_id':'c','output':{'type':"
          "'computer_screenshot','image_url':'data:'}}]}",
          "input[1].output.type", "text only" },
        { "{'input':[{'role':'user','content':[{'type':'input_image',"
          "'image_url':'data:'}]},{'role':'assistant','content':'Well'}]}",
          "input[0].content[0].type", "text only" },
        { "{'input':[{'role':'user','content':'a'},{'type':"
          "'additional_tools','role':'developer','tools':[{'type':"
          "'function'}]}]}", "input[1].tools[0].name", "Missing" },
        { "{'input':[{'role':'user','content':'a'},{'type':"
          "'additional_tools','tools':5}]}", "input[1].tools",
          "expected an array" },
        { "{'input':[{'role':'user','content':'a'},{'type':"
          "'tool_search_output','call_id':'c','tools':{}}]}",
          "input[1].tools", "expected an array" },
        { "{'input':[{'role':'user','content':'a'},{'type':"
          "'additional_tools','tools':[{'type':'function','name':'f',"
          "'parameters':[]}]}]}", "input[1].tools[0].parameters",
          "expected an object" },
        { "{'input':[{'role':'user','content':'a'},{'type':'item_reference',"
          "'id':'x'}]}", "input[1]", "stores nothing" },
        { "{'input':[{'id':'x'}]}", "input[0]", "stores nothing" },
        { "{'input':[{'role':'user','content':[{'type':'input_image',"
          "'image_url':'data:'}]}]}", "input[0].content[0].type",
          "text only" },
        { "{'input':[{'role':'user','content':[{'type':'input_text'}]}]}",
          "input[0].content[0].text", "Missing" },
        { "{'input':[{'type':'function_call','call_id':'c','name':'f'}]}",
          "input[0].arguments", "Missing" },
        { "{'input':[{'type':'function_call','call_id':'c','name':'',"
          "'arguments':''}]}", "input[0].name", "empty string" },
        { "{'input':[{'type':'function_call_output','call_id':'c'}]}",
          "input[0].output", "Missing" },
        { "{'input':[{'type':'function_call_output','call_id':'c','output':"
          "[{'type':'input_image'}]}]}", "input[0].output[0].type",
          "text only" },
        { "{'input':'a','previous_response_id':'resp_1'}",
          "previous_response_id", "stores nothing" },
        { "{'input':'a','conversation':'conv_1'}", "conversation",
          "not supported" },
        { "{'input':'a','background':true}", "background", "not supported" },
        { "{'input':'a','prompt':{'id':'x'}}", "prompt", "not supported" },
        { "{'input':'a','max_output_tokens':0}", "max_output_tokens",
          "below minimum" },
        { "{'input':'a','n':2}", "n", "above maximum" },
        { "{'input':'a','best_of':2}", "best_of", "above maximum" },
        { "{'input':'a','temperature':3}", "temperature", "above maximum" },
        { "{'input':'a','instructions':[]}", "instructions",
          "expected a string" },
        { "{'input':'a','include':[1]}", "include[0]", "expected a string" },
        { "{'input':'a','tools':[{'name':'f'}]}", "tools[0].type",
          "Missing" },
        { "{'input':'a','tools':[{'type':'function'}]}", "tools[0].name",
          "Missing" },
        { "{'input':'a','tools':[{'type':'mcp','server_label':'s'}]}",
          "tools[0].type", "MCP" },
        { "{'input':'a','return_token_ids':true}", "return_token_ids",
          "not supported" },
        { "{'input':'a','lora':[{'id':1}]}", "lora", "not supported" },
        { "{'input':'a','tool_choice':{'type':'web_search'}}",
          "tool_choice.type", "no tools of its own" },
        { "{'input':'a','tool_choice':{'type':'allowed_tools'}}",
          "tool_choice.mode", "Missing" },
        { "{'input':'a','reasoning':{'effort':'much'}}", "reasoning.effort",
          "'much'" },
        { "{'input':'a','reasoning':{'effort':3}}", "reasoning.effort",
          "expected a string" },
        { "{'input':'a','text':{'format':{'type':'yaml'}}}", "text.format",
          "'text.format" },
        { "{'input':'a','text':{'format':{}}}", "text.format.type",
          "Missing" },
        { "{'input':'a','text':{'format':{'type':'json_schema'}}}",
          "text.format.schema", "Missing" },
    };

    for (i = 0; i < llm_nelems(bad); i++) {
        refused(RESPONSES, bad[i].body, bad[i].param, bad[i].words);
    }
}


/* a chat has a tool's parameters a level deeper: as deep as a body may be,
   they make a message that the engine takes */

static void
test_deep(void)
{
    size_t                i, depth;
    llm_buf_t             text;
    const llm_request_t  *r;

    for (depth = 125; depth < 127; depth++) {
        llm_buf_init(&text, 0);
        llm_buf_adds(&text, "{'input':'a','tools':[{'type':'function',"
                     "'name':'f','parameters':{'a':");

        for (i = 1; i < depth; i++) {
            llm_buf_adds(&text, "[");
        }

        for (i = 1; i < depth; i++) {
            llm_buf_adds(&text, "]");
        }

        llm_buf_adds(&text, "}}]}");

        if (depth == 125) {
            is_int(ask(RESPONSES, &conf, text.data), LLM_OK, "128 levels");

            r = (const llm_request_t *) msg.data;
            is_int(llm_flat_check(llm_ref_data(r, r->chat), r->chat.len),
                   LLM_OK, "a sound message");
            hang_up();

        } else {
            refused(RESPONSES, text.data, "", "deep");
        }

        llm_buf_free(&text);
    }
}


int
main(void)
{
    test_input();
    test_refused();
    test_deep();

    return done_testing();
}
