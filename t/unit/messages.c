/*
 * Messages: requests that are chats in other words, answers of all parts as a
 * body and as the events of a stream, errors in Anthropic's form.
 */

#include "t/unit/api_talk.h"

#include <cjson/cJSON.h>

#define MESSAGES  (&llm_api_messages)


/* ---- requests ---- */

static void
test_input(void)
{
    size_t  i;

    static const struct {
        const char  *what, *said, *chat;
    } pairs[] = {
        { "a string",
          "{'max_tokens':9,'messages':[{'role':'user','content':'Hi'}]}",
          "{'max_tokens':9,'messages':[{'role':'user','content':'Hi'}]}" },

        { "system as text, blocks with cache_control",
          "{'system':'Be brief.','messages':[{'role':'user','content':"
          "[{'type':'text','text':'Hi','cache_control':{'type':"
          "'ephemeral'}}]}]}",
          "{'messages':[{'role':'system','content':'Be brief.'},"
          "{'role':'user','content':'Hi'}]}" },

        { "a system prompt of accounts alone is none",
          "{'system':[{'type':'text','text':'x-anthropic-billing-header: "
          "cc_version=2;'}],'messages':[{'role':'user','content':'Hi'}]}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "system as blocks, without accounts, and in mid-list",
          "{'system':[{'type':'text','text':'x-anthropic-billing-header: "
          "cc_version=2;'},{'type':'text','text':'a'},"
          "{'type':'text','text':'b',"
          "'cache_control':{'type':'ephemeral'}}],'messages':[{'role':'user',"
          "'content':'Hi'},{'role':'system','content':[{'type':'text',"
          "'text':'c'}]},{'role':'user','content':[{'type':'text','text':'d'},"
          "{'type':'text','text':'e'}]}]}",
          "{'messages':[{'role':'system','content':[{'type':'text','text':"
          "'a'},{'type':'text','text':'b'}]},{'role':'user','content':'Hi'},"
          "{'role':'system','content':'c'},{'role':'user','content':"
          "[{'type':'text','text':'d'},{'type':'text','text':'e'}]}]}" },

        { "thinking, calls, and their results before what the user says",
          "{'messages':[{'role':'user','content':'Go'},"
          "{'role':'assistant','content':[{'type':'thinking','thinking':"
          "'Hm.','signature':'s'},{'type':'redacted_thinking','data':'x'},"
          "{'type':'text','text':'One moment.'},{'type':'tool_use','id':"
          "'toolu_1','name':'f','input':{}},{'type':'tool_use','id':'toolu_2',"
          "'name':'g','input':{'a':[1,2.5,'\xc3\xa4']}}]},"
          "{'role':'user','content':[{'type':'tool_result','tool_use_id':"
          "'toolu_1','content':'1'},{'type':'tool_result','tool_use_id':"
          "'toolu_2','is_error':true,'content':[{'type':'text','text':'2'},"
          "{'type':'text','text':'3'}]},{'type':'text','text':'And?'}]}]}",
          "{'messages':[{'role':'user','content':'Go'},"
          "{'role':'assistant','content':'One moment.','reasoning_content':"
          "'Hm.','tool_calls':[{'id':'toolu_1','type':'function','function':"
          "{'name':'f','arguments':'{}'}},{'id':'toolu_2','type':'function',"
          "'function':{'name':'g','arguments':"
          "'{\\'a\\':[1,2.5,\\'\xc3\xa4\\']}'}}]},"
          "{'role':'tool','content':'1','tool_call_id':'toolu_1'},"
          "{'role':'tool','content':[{'type':'text','text':'2'},"
          "{'type':'text','text':'3'}],'tool_call_id':'toolu_2'},"
          "{'role':'user','content':'And?'}]}" },

        { "a result behind the text; without content",
          "{'messages':[{'role':'assistant','content':[{'type':'tool_use',"
          "'id':'t','name':'f','input':{}}]},{'role':'user','content':"
          "[{'type':'text','text':'So?'},{'type':'tool_result',"
          "'tool_use_id':'t'}]},{'role':'user','content':'x'}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':"
          "[{'id':'t','type':'function','function':{'name':'f','arguments':"
          "'{}'}}]},{'role':'tool','content':'','tool_call_id':'t'},"
          "{'role':'user','content':'So?'},{'role':'user','content':'x'}]}" },

        { "documents, what was found, and references to tools, as text",
          "{'messages':[{'role':'assistant','content':[{'type':'tool_use',"
          "'id':'t','name':'f','input':{}}]},{'role':'user','content':"
          "[{'type':'tool_result','tool_use_id':'t','content':[{'type':"
          "'tool_reference','tool_name':'run'},{'type':'document','title':"
          "'T','source':{'type':'text','media_type':'text/plain','data':"
          "'D'}}]},{'type':'document','context':'C','source':{'type':"
          "'content','content':[{'type':'text','text':'a'},{'type':'text',"
          "'text':'b'}]}},{'type':'search_result','title':'S','source':'u',"
          "'content':[{'type':'text','text':'c'}]}]}]}",
          "{'messages':[{'role':'assistant','content':null,'tool_calls':[{"
          "'id':'t','type':'function','function':{'name':'f','arguments':"
          "'{}'}}]},{'role':'tool','content':[{'type':'text','text':"
          "'Tool found: run'},{'type':'text','text':'T\\nD'}],"
          "'tool_call_id':'t'},{'role':'user','content':[{'type':'text',"
          "'text':'C\\na\\nb'},{'type':'text','text':'S\\nu\\nc'}]}]}" },

        { "placeholders in turns that were answered",
          "{'messages':[{'role':'user','content':[{'type':'image','source':"
          "{}},{'type':'document','title':'T','source':{'type':'base64',"
          "'data':'JVBER'}},{'type':'hologram'}]},{'role':'assistant',"
          "'content':[{'type':'tool_use','id':'t','name':'f','input':{}}]},"
          "{'role':'user','content':[{'type':'tool_result','tool_use_id':'t',"
          "'content':[{'type':'image','source':{}}]}]},{'role':'assistant',"
          "'content':'a'},{'role':'user','content':'b'}]}",
          "{'messages':[{'role':'user','content':[{'type':'text','text':"
          "'[image]'},{'type':'text','text':'[document: T]'},{'type':'text',"
          "'text':'[hologram]'}]},{'role':'assistant','content':null,"
          "'tool_calls':[{'id':'t','type':'function','function':{'name':'f',"
          "'arguments':'{}'}}]},{'role':'tool','content':'[image]',"
          "'tool_call_id':'t'},{'role':'assistant','content':'a'},{'role':"
          "'user','content':'b'}]}" },

        { "tools that another server has, and its summary",
          "{'messages':[{'role':'assistant','content':[{'type':'compaction',"
          "'content':'They met.'},{'type':'server_tool_use','id':'s','name':"
          "'web_search','input':{'query':'q'}},{'type':"
          "'web_search_tool_result','tool_use_id':'s','content':[{'type':"
          "'web_search_result','url':'http://u','title':'t',"
          "'encrypted_content':'x'}]},{'type':'text','text':'a'},{'type':"
          "'mcp_tool_use','id':'m','name':'n','server_name':'z','input':{}},"
          "{'type':'mcp_tool_result','tool_use_id':'m','content':[{'type':"
          "'text','text':'r'}]},{'type':'server_tool_use','id':'c','name':"
          "'code_execution','input':{}},{'type':"
          "'code_execution_tool_result','tool_use_id':'c','content':{'type':"
          "'code_execution_result','stdout':'1'}},{'type':'text','text':"
          "'b'}]},{'role':'user','content':'c'}]}",
          "{'messages':[{'role':'assistant','content':'They met.',"
          "'tool_calls':[{'id':'s','type':'function','function':{'name':"
          "'web_search','arguments':'{\\'query\\':\\'q\\'}'}}]},{'role':'tool',"
          "'content':'http://u','tool_call_id':'s'},{'role':'assistant',"
          "'content':'a','tool_calls':[{'id':'m','type':'function',"
          "'function':{'name':'n','arguments':'{}'}}]},{'role':'tool',"
          "'content':'r','tool_call_id':'m'},{'role':'assistant','content':"
          "null,'tool_calls':[{'id':'c','type':'function','function':"
          "{'name':'code_execution','arguments':'{}'}}]},{'role':'tool',"
          "'content':'{\\'type\\':\\'code_execution_result\\',"
          "\\'stdout\\':\\'1\\'}','tool_call_id':'c'},{'role':'assistant',"
          "'content':'b'},{'role':'user','content':'c'}]}" },

        { "tools that messages add, and what else is no text",
          "{'tools':[{'name':'f','input_schema':{}}],'messages':[{'role':"
          "'assistant','content':[{'type':'fallback','from':{},'to':{}},"
          "{'type':'mcp_tool_listing','mcp_server_name':'m','tools':[]},"
          "{'type':'tool_use','id':'t','name':'f','input':{}}]},{'role':"
          "'user','content':[{'type':'tool_result','tool_use_id':'t',"
          "'content':[{'type':'browser_state','tabs':[]}]},{'type':"
          "'tool_addition','tool':{'type':'tool_definition','definition':"
          "{'name':'g','input_schema':{}}}},{'type':'tool_addition','tool':"
          "{'type':'tool_reference','name':'f'}},{'type':'tool_addition',"
          "'tool':{'type':'tool_definition','definition':{'name':'f',"
          "'input_schema':{}}}},{'type':'text','text':'a'}]}]}",
          "{'tools':[{'type':'function','function':{'name':'f','parameters':"
          "{}}},{'type':'function','function':{'name':'g','parameters':{}}}],"
          "'messages':[{'role':'assistant','content':null,'tool_calls':[{"
          "'id':'t','type':'function','function':{'name':'f','arguments':"
          "'{}'}}]},{'role':'tool','content':'{\\'type\\':"
          "\\'browser_state\\',\\'tabs\\':[]}','tool_call_id':'t'},"
          "{'role':'user','content':'a'}]}" },

        { "a prefill is continued",
          "{'messages':[{'role':'user','content':'Hi'},{'role':'assistant',"
          "'content':'{'}]}",
          "{'messages':[{'role':'user','content':'Hi'},{'role':'assistant',"
          "'content':'{'}]}" },

        { "settings by their other names, and those that both have",
          "{'max_tokens':7,'temperature':0.5,'top_p':0.9,'top_k':4,"
          "'stream':true,'stop_sequences':['a','b'],'seed':3,'min_p':0.25,"
          "'metadata':{'user_id':'u'},'service_tier':'auto','thinking':"
          "{'type':'disabled'},'output_config':{'effort':'high'},"
          "'context_management':{'edits':[]},'container':null,'mcp_servers':"
          "[],'speed':'fast','stop':7,'cache_control':{'type':'ephemeral'},"
          "'messages':[{'role':'user','content':'Hi'}]}",
          "{'max_tokens':7,'temperature':0.5,'top_p':0.9,'top_k':4,"
          "'stream':true,'stop':['a','b'],'seed':3,'min_p':0.25,"
          "'reasoning_effort':'high','enable_thinking':false,"
          "'messages':[{'role':'user','content':'Hi'}]}" },

        { "thinking enabled",
          "{'thinking':{'type':'enabled','budget_tokens':1024},'messages':"
          "[{'role':'user','content':'Hi'}]}",
          "{'enable_thinking':true,'thinking_budget':1024,'messages':[{"
          "'role':'user','content':'Hi'}]}" },

        { "thinking adaptive: as the model likes",
          "{'thinking':{'type':'adaptive'},'messages':[{'role':'user',"
          "'content':'Hi'}]}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "or between calls",
          "{'thinking':{'type':'between_tools'},'messages':[{'role':'user',"
          "'content':'Hi'}]}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "tools, but for those with a type",
          "{'tools':[{'type':'web_search_20250305','name':'web_search'},"
          "{'name':'f','description':'d','input_schema':{'type':'object'},"
          "'cache_control':{'type':'ephemeral'}},{'type':'custom','name':'g',"
          "'input_schema':{},'strict':true}],'tool_choice':{'type':'auto',"
          "'disable_parallel_tool_use':true},'messages':[{'role':'user',"
          "'content':'Hi'}]}",
          "{'tools':[{'type':'function','function':{'name':'f',"
          "'description':'d','parameters':{'type':'object'}}},"
          "{'type':'function','function':{'name':'g','parameters':{},"
          "'strict':true}}],'tool_choice':'auto','parallel_tool_calls':false,"
          "'messages':[{'role':'user','content':'Hi'}]}" },

        { "tool_choice any",
          "{'tools':[{'name':'f','input_schema':{}}],'tool_choice':{'type':"
          "'any'},'messages':[{'role':'user','content':'Hi'}]}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f','parameters':{}}}],"
          "'tool_choice':'required'}" },

        { "a tool by its name",
          "{'tools':[{'name':'f','input_schema':{}}],'tool_choice':{'type':"
          "'tool','name':'f'},'messages':[{'role':'user','content':'Hi'}]}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f','parameters':{}}}],"
          "'tool_choice':{'type':'function','function':{'name':'f'}}}" },

        { "tool_choice none",
          "{'tools':[{'name':'f','input_schema':{}}],'tool_choice':{'type':"
          "'none'},'messages':[{'role':'user','content':'Hi'}]}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f','parameters':{}}}],"
          "'tool_choice':'none'}" },
    };

    for (i = 0; i < llm_nelems(pairs); i++) {
        same_as_chat(MESSAGES, pairs[i].said, pairs[i].chat, pairs[i].what);
    }
}


#define SAY  "'messages':[{'role':'user','content':'Hi'}]"


/* who it was, for the log */

static void
test_user(void)
{
    ask(MESSAGES, &conf, "{'metadata':{'user_id':'ann'}," SAY "}");
    ok(llm_api_user(a).len == 3 && memcmp(llm_api_user(a).data, "ann", 3) == 0,
       "metadata.user_id is the user");
    hang_up();
}


#define USER(blocks)                                                         \
    "{'messages':[{'role':'user','content':[" blocks "]}]}"

#define ENDS(blocks)                                                         \
    "{'messages':[{'role':'user','content':'a'},{'role':'assistant',"        \
    "'content':[" blocks "]}]"

#define DOCUMENT(source)  "{'type':'document','source':" source "}"


static void
test_refused(void)
{
    size_t  i;

    static const struct {
        const char  *body, *param, *words;
    } bad[] = {
        { "{'max_tokens':9}", "messages", "Missing" },
        { "{'messages':null}", "messages", "got null" },
        { "{'messages':[]}", "messages", "empty array" },
        { "{'messages':['a']}", "messages[0]", "expected an object" },
        { "{'messages':[{'content':'a'}]}", "messages[0].role", "Missing" },
        { "{'messages':[{'role':'user'}]}", "messages[0].content",
          "Missing" },
        { "{'messages':[{'role':'tool','content':'a'}]}", "messages[0].role",
          "'tool'" },
        { "{'messages':[{'role':'user','content':3}]}",
          "messages[0].content", "a string or an array" },
        { "{'messages':[{'role':'user','content':[{'type':'image','source':"
          "{}}]}]}", "messages[0].content[0].type", "text only" },
        { "{'messages':[{'role':'user','content':[{'text':'a'}]}]}",
          "messages[0].content[0].type", "Missing" },
        { "{'messages':[{'role':'user','content':[{'type':'tool_result'}]}]}",
          "messages[0].content[0].tool_use_id", "Missing" },
        { "{'messages':[{'role':'user','content':[{'type':'tool_result',"
          "'tool_use_id':'t','content':[{'type':'document'}]}]}]}",
          "messages[0].content[0].content[0].source", "Missing" },
        { USER(DOCUMENT("{}")), "messages[0].content[0].source.type",
          "Missing" },
        { USER(DOCUMENT("{'type':'text','media_type':'text/plain'}")),
          "messages[0].content[0].source.data", "Missing" },
        { USER(DOCUMENT("{'type':'text','data':7}")),
          "messages[0].content[0].source.data", "got an integer" },
        { USER(DOCUMENT("{'type':'content'}")),
          "messages[0].content[0].source.content", "Missing" },
        { USER(DOCUMENT("{'type':'content','content':[{'type':'text','text':"
          "'a'},{'type':'image'}]}")),
          "messages[0].content[0].source.content[1].type", "'image'" },
        { USER(DOCUMENT("{'type':'content','content':[{'type':'text'}]}")),
          "messages[0].content[0].source.content[0].text", "Missing" },
        { USER(DOCUMENT("{'type':'base64','data':'QQ=='}")),
          "messages[0].content[0].source.type", "'base64'. Of a document" },
        { USER("{'type':'search_result','title':'a'}"),
          "messages[0].content[0].content", "Missing" },
        { ENDS("{'type':'text','text':'a'},{'type':'image'}") "}",
          "messages[1].content[1].type", "'image'. The answer goes on from" },
        { ENDS("{'type':'tool_use','id':'t','name':'f','input':{}},"
          "{'type':'web_search_tool_result','tool_use_id':'t','content':[]},"
          "{'type':'image'}") "}", "messages[1].content[2].type",
          "'image'" },
        { ENDS(DOCUMENT("{'type':'text'}")) "}",
          "messages[1].content[0].source.data", "Missing" },
        { "{'messages':[{'role':'assistant','content':[{'type':'tool_use',"
          "'id':'t','name':'f','input':'x'}]}]}",
          "messages[0].content[0].input", "expected an object" },
        { "{'messages':[{'role':'assistant','content':[{'type':"
          "'server_tool_use'}]}]}", "messages[0].content[0].id",
          "Missing" },
        { "{'messages':[{'role':'user','content':[{'type':'thinking',"
          "'thinking':'a'}]}]}", "messages[0].content[0].type",
          "'thinking'" },
        { "{'messages':[{'role':'user','content':[{'type':'image','source':"
          "{}}]},{'role':'assistant','content':'It'}]}",
          "messages[0].content[0].type", "text only" },
        { "{'messages':[{'role':'user','content':[{'type':'tool_reference'}]}]"
          "}", "messages[0].content[0].tool_name", "Missing" },
        { "{'system':3," SAY "}", "system", "a string or an array" },
        { "{'system':[{'type':'image'}]," SAY "}", "system[0].type",
          "text only" },
        { "{'max_tokens':0," SAY "}", "max_tokens", "below minimum" },
        { "{'max_tokens':-1," SAY "}", "max_tokens", "below minimum" },
        { "{'temperature':1.5," SAY "}", "temperature", "above maximum" },
        { "{'top_p':2," SAY "}", "top_p", "above maximum" },
        { "{'n':2," SAY "}", "n", "above maximum" },
        { "{'best_of':2," SAY "}", "best_of", "above maximum" },
        { "{'stop_sequences':['a',1]," SAY "}", "stop_sequences[1]",
          "expected a string" },
        { "{'stop_sequences':['1','2','3','4','5','6','7','8','9','10','11',"
          "'12','13','14','15','16','17']," SAY "}", "stop_sequences",
          "Invalid 'stop_sequences': array too long" },
        { "{'stop_token_ids':3," SAY "}", "stop_token_ids",
          "'stop_token_ids'" },
        { "{'tools':[{'input_schema':{}}]," SAY "}", "tools[0].name",
          "Missing" },
        { "{'tools':[{'name':'f'}]," SAY "}", "tools[0].input_schema",
          "Missing" },
        { "{'tools':[{'name':'f','input_schema':'x'}]," SAY "}",
          "tools[0].input_schema", "expected an object" },
        { "{'tools':[{'name':'f','strict':true,'input_schema':[]}]," SAY "}",
          "tools[0].input_schema", "expected an object" },
        { "{'tools':[{'name':'f','input_schema':{},'strict':1}]," SAY "}",
          "tools[0].strict", "expected a boolean" },
        { "{'tool_choice':'auto'," SAY "}", "tool_choice",
          "expected an object" },
        { "{'tool_choice':{'type':'some'}," SAY "}", "tool_choice.type",
          "'some'" },
        { "{'tool_choice':{'type':'tool'}," SAY "}", "tool_choice.name",
          "Missing" },
        { "{'mcp_servers':[{'type':'url','url':'https://x'}]," SAY "}",
          "mcp_servers", "not supported" },
        { "{'tools':[{'type':'mcp_toolset','mcp_server_name':'x'}]," SAY "}",
          "tools[0].type", "MCP" },
        { "{'thinking':{'type':'deep'}," SAY "}", "thinking.type",
          "'deep'" },
        { "{'thinking':{'type':'enabled','budget_tokens':0}," SAY "}",
          "thinking.budget_tokens", "below minimum" },
        { "{'output_config':{'format':{'type':'json_schema'}}," SAY "}",
          "output_config.format.schema", "Missing" },
        { "{'output_format':{'type':'yaml'}," SAY "}", "output_format.type",
          "json_schema" },
        { "{'output_config':{'effort':'much'}," SAY "}",
          "output_config.effort", "'much'" },
    };

    for (i = 0; i < llm_nelems(bad); i++) {
        refused(MESSAGES, bad[i].body, bad[i].param, bad[i].words);
    }

    /* an image that nothing goes on from */

    same_as_chat(MESSAGES, ENDS("{'type':'image'}")
                 ",'add_generation_prompt':true}",
                 "{'messages':[{'role':'user','content':'a'},{'role':"
                 "'assistant','content':'[image]'}],"
                 "'add_generation_prompt':true}", "a message that is whole");
    same_as_chat(MESSAGES, ENDS("{'type':'image'},{'type':'tool_use',"
                 "'id':'t','name':'f','input':{}}") "}",
                 "{'messages':[{'role':'user','content':'a'},{'role':"
                 "'assistant','content':'[image]','tool_calls':[{'id':'t',"
                 "'type':'function','function':{'name':'f','arguments':"
                 "'{}'}}]}]}", "or that ends with a call");
}


/* ---- answers ---- */

#define HEAD                                                                 \
    "{'id':'msg_deadbeef','type':'message','role':'assistant',"              \
    "'model':'demo',"

#define USAGE(n, thinking)                                                   \
    "'usage':{'input_tokens':3,'cache_creation_input_tokens':0,"             \
    "'cache_read_input_tokens':8,'output_tokens':" n ","                     \
    "'output_tokens_details':{'thinking_tokens':" thinking "},"              \
    "'service_tier':'standard'}"

#define FRAME(type)   "event: " type "\ndata: {'type':'" type "'"

#define BEGIN(i, block)                                                      \
    FRAME("content_block_start") ",'index':" i ",'content_block':" block     \
    "}\n\n"

#define DELTA(i, delta)                                                      \
    FRAME("content_block_delta") ",'index':" i ",'delta':{'type':" delta     \
    "}}\n\n"

#define STOP(i)  FRAME("content_block_stop") ",'index':" i "}\n\n"


static void
test_body(void)
{
    int  i;

    ask(MESSAGES, &conf, "{" SAY "}");
    say_all();
    is_int(out.len, 0, "nothing before the end");

    for (i = 0; i < 2; i++) {
        is_text(body(i ? 1 : SIZE_MAX),
                HEAD "'content':["
                "{'type':'thinking','thinking':'Hm, so','signature':"
                "'sig_deadbeef'},"
                "{'type':'text','text':'a\\nb'},"
                "{'type':'tool_use','id':'toolu_deadbeef_0','name':'f',"
                "'input':{'a':1}},"
                "{'type':'tool_use','id':'toolu_deadbeef_1','name':'g',"
                "'input':{}}],'stop_reason':'tool_use',"
                "'stop_sequence':null," USAGE("5", "2") "}",
                i ? "the same in small pieces" : "a body of all parts");
    }

    hang_up();
}


/* of arguments that are not an object the members that are whole are the
   input, and none that was not written */

static void
test_bad_arguments(void)
{
    size_t        i;
    char         *input;
    cJSON        *json;
    const cJSON  *v;

    static const struct {
        const char  *args;
        const char  *input;
    } bad[] = {
        { "{\"a\":", "{}" }, { "[1]", "{}" }, { "\"text\"", "{}" },
        { "{}}", "{}" }, { "{\"a\":1} {", "{\"a\":1}" },
        { "tru\"e\\", "{}" }, { "{\"a\":\"\xff\"}", "{}" },
        { "{", "{}" }, { "{\"a\"", "{}" }, { "{\"a\": \"rm -rf /ho", "{}" },
        { "{\"a\": 12", "{}" }, { "{\"a\": 12, \"b", "{\"a\":12}" },
        { "{\"a\": \"x\"", "{\"a\":\"x\"}" },
        { "{\"a\": [1, {\"b\": 2}], \"c\": {\"d\": 1",
          "{\"a\":[1,{\"b\":2}]}" },
        { "{\"a\": {\"b\": \"}\\\"\"}, \"c\": tr",
          "{\"a\":{\"b\":\"}\\\"\"}}" },
        { "{\"a\": [1, 2], \"b\": [", "{\"a\":[1,2]}" },
        { "{\"a\": 1, \"b\": [[1], [", "{\"a\":1}" },
        { "{\"a\": 1, \"b\": \"", "{\"a\":1}" },
        { "{\"a\": 1, \"b\": \"x\\\"", "{\"a\":1}" },
        { "{\"a\": 1, \"b\": \"x\\\"}", "{\"a\":1}" }
    };

    for (i = 0; i < llm_nelems(bad); i++) {
        ask(MESSAGES, &conf, "{" SAY "}");
        start();
        name(0, "f");
        args(0, bad[i].args);
        finish(LLM_FINISH_LENGTH);
        done();

        json = cJSON_Parse(body(64));
        ok(json != NULL, "JSON around '%s'", bad[i].args);

        v = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "content"), 0);
        v = cJSON_GetObjectItem(v, "input");
        input = cJSON_PrintUnformatted(v);
        is_str(input, bad[i].input, "what is whole is its input");

        cJSON_free(input);
        cJSON_Delete(json);
        hang_up();
    }
}


static void
test_stream(void)
{
    ask(MESSAGES, &conf, "{'stream':true," SAY "}");
    say_all();

    is_text(out.data,
        FRAME("message_start") ",'message':" HEAD "'content':[],"
        "'stop_reason':null,'stop_sequence':null," USAGE("0", "0") "}}\n\n"
        FRAME("ping") "}\n\n"

        BEGIN("0", "{'type':'thinking','thinking':'','signature':''}")
        DELTA("0", "'thinking_delta','thinking':'Hm,'")
        DELTA("0", "'thinking_delta','thinking':' so'")
        DELTA("0", "'signature_delta','signature':'sig_deadbeef'")
        STOP("0")

        BEGIN("1", "{'type':'text','text':''}")
        DELTA("1", "'text_delta','text':'a\\n'")
        DELTA("1", "'text_delta','text':'b'")
        STOP("1")

        BEGIN("2", "{'type':'tool_use','id':'toolu_deadbeef_0','name':'f',"
              "'input':{}}")
        DELTA("2", "'input_json_delta','partial_json':'{\\'a\\''")
        DELTA("2", "'input_json_delta','partial_json':':1}'")
        STOP("2")

        BEGIN("3", "{'type':'tool_use','id':'toolu_deadbeef_1','name':'g',"
              "'input':{}}")
        STOP("3")

        FRAME("message_delta") ",'delta':{'stop_reason':'tool_use',"
        "'stop_sequence':null}," USAGE("5", "2") "}\n\n"
        FRAME("message_stop") "}\n\n",
        "a stream of all parts");

    ok(a->output.first->text.first == NULL, "which keeps no text");

    hang_up();
}


static void
stops(uint32_t reason, const char *stop, const char *want)
{
    int   i;
    char *text;

    text = quoted(want);

    for (i = 0; i < 2; i++) {
        ask(MESSAGES, &conf, i ? "{'stream':true," SAY "}" : "{" SAY "}");
        start();
        content("a");
        tell(LLM_EV_FINISH, reason, 0, stop);
        done();
        ok(strstr(i ? out.data : body(SIZE_MAX), text) != NULL, "%s, %s",
           want, i ? "streamed" : "in a body");
        hang_up();
    }

    free(text);
}


static void
test_stops(void)
{
    stops(LLM_FINISH_STOP, "", "'stop_reason':'end_turn','stop_sequence':"
          "null");
    stops(LLM_FINISH_LENGTH, "", "'stop_reason':'max_tokens',"
          "'stop_sequence':null");
    stops(LLM_FINISH_STOP, "\n#", "'stop_reason':'stop_sequence',"
          "'stop_sequence':'\\n#'");
    stops(LLM_FINISH_TOOL_CALLS, "", "'stop_reason':'tool_use',"
          "'stop_sequence':null");
    stops(LLM_FINISH_TOOL_CALLS, "#", "'stop_reason':'tool_use',"
          "'stop_sequence':null");
}


/* an answer without text has no blocks */

static void
test_nothing(void)
{
    ask(MESSAGES, &conf, "{" SAY "}");
    start();
    content("");
    finish(LLM_FINISH_STOP);
    done();
    ok(strstr(body(SIZE_MAX), "\"content\":[],") != NULL, "no blocks");
    hang_up();

    /* all of the prompt was in the cache: some input nevertheless */

    ask(MESSAGES, &conf, "{'stream':true," SAY "}");
    a->usage.cached_tokens = 11;
    a->usage.prompt_tokens = 11;
    MESSAGES->event(a, &(llm_event_t) { .type = LLM_EV_START }, &out);
    ok(strstr(out.data, "\"input_tokens\":1,\"cache_creation_input_tokens\":"
              "0,\"cache_read_input_tokens\":10") != NULL, "all is cached");
    hang_up();
}


static void
test_errors(void)
{
    size_t     i;
    llm_buf_t  text;
    llm_err_t  e;

    static const struct {
        int          status;
        const char  *code, *type, *words;
    } errors[] = {
        { 400, NULL, "invalid_request_error", "" },
        { 400, "context_length_exceeded", "invalid_request_error",
          "prompt is too long: " },
        { 401, NULL, "authentication_error", "" },
        { 403, NULL, "permission_error", "" },
        { 404, "model_not_found", "not_found_error", "" },
        { 405, NULL, "invalid_request_error", "" },
        { 413, NULL, "request_too_large", "" },
        { 429, NULL, "rate_limit_error", "" },
        { 500, NULL, "api_error", "" },
        { 503, NULL, "overloaded_error", "" },
        { 504, "timeout", "timeout_error", "" }
    };

    for (i = 0; i < llm_nelems(errors); i++) {
        (void) llm_fail_with(&e, errors[i].status, errors[i].code, "model",
                             "say \"%s\"", "what");
        llm_buf_init(&text, 0);
        llm_buf_init(&out, 0);

        is_int(llm_api_error_body(MESSAGES, llm_str("id1"), &e, &out),
               LLM_OK, "an error of %d", errors[i].status);
        llm_buf_addf(&text, "{\"type\":\"error\",\"error\":{\"type\":\"%s\","
                     "\"message\":\"%ssay \\\"what\\\"\"},"
                     "\"request_id\":\"id1\"}", errors[i].type,
                     errors[i].words);
        is_str(out.data, text.data, "in Anthropic's form");

        llm_buf_free(&text);
        llm_buf_free(&out);
    }

    is_int(ask(MESSAGES, &conf, "{'messages':[{'role':'user','content':"
               "[{'type':'text','text':'a'},{'type':'image'}]}]}"),
           LLM_ERROR, "what is wrong in a message");
    llm_buf_init(&text, 0);
    (void) llm_api_error_body(MESSAGES, llm_str("id1"), &err, &text);
    ok(strstr(text.data, "\"message\":\"messages[0].content[1].type: Invalid "
                         "value: 'image'.") != NULL, "where: %s", text.data);
    llm_buf_free(&text);
    hang_up();

    ask(MESSAGES, &conf, "{'stream':true," SAY "}");
    is_int(broken("no GPU"), LLM_ERROR, "before it begins: an error's status");
    start();
    content("half");
    out.len = 0;
    is_int(broken("no GPU"), LLM_OK, "in mid-stream: an event");
    is_text(out.data, "event: error\ndata: {'type':'error','error':{'type':"
            "'overloaded_error','message':'no GPU'},'request_id':"
            "'deadbeef'}\n\n", "of Anthropic's form");
    hang_up();
}


int
main(void)
{
    test_input();
    test_user();
    test_refused();
    test_body();
    test_bad_arguments();
    test_stream();
    test_stops();
    test_nothing();
    test_errors();

    return done_testing();
}
