/*
 * Responses: requests that are chats in other words, and answers of all parts
 * as a body and as typed events.
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


/* ---- requests ---- */

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
                     "'name':'f','parameters':");

        for (i = 0; i < depth; i++) {
            llm_buf_adds(&text, "[");
        }

        for (i = 0; i < depth; i++) {
            llm_buf_adds(&text, "]");
        }

        llm_buf_adds(&text, "}]}");

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


/* ---- answers ---- */

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
    test_input();
    test_refused();
    test_deep();
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
