/*
 * POST /responses: its tools as those of a chat request, and calls of functions
 * that stand in a namespace.
 */

#include "t/unit/api_talk.h"

#define RESPONSES  (&llm_api_responses)

/* a namespace of two functions, and a tool that is skipped */
#define SPACE(name)                                                          \
    "{'type':'namespace','name':'" name "','description':'d','tools':["      \
    "{'type':'function','name':'f','parameters':{'type':'object'},"          \
    "'defer_loading':true},{'type':'custom','name':'h'},"                    \
    "{'type':'function','name':'g','strict':true}]}"

#define SPACE_TOOLS(name)                                                    \
    "{'type':'function','function':{'name':'" name "f',"                     \
    "'parameters':{'type':'object'}}},{'type':'function','function':"        \
    "{'name':'" name "g','strict':true}}"

#define TOOLS                                                                \
    "{'type':'function','name':'h','namespace':'mcp'},"                      \
    "{'type':'function','name':'k','namespace':''},"                         \
    "{'type':'function','name':'mcp__g_more'}," SPACE("mcp") "," SPACE("x__")

#define TALK  "'messages':[{'role':'user','content':'Hi'}]"


static void
test_tools(void)
{
    size_t  i;

    static const struct {
        const char  *what, *said, *chat;
    } pairs[] = {
        { "functions are flat, tools of other types are skipped",
          "{'input':'Hi','tools':[{'type':'web_search'},{'type':'function',"
          "'name':'f','description':'d','parameters':{'type':'object'},"
          "'strict':true},{'type':'namespace','name':'n','tools':[]},"
          "{'type':'custom','name':'apply_patch','format':{}},"
          "{'type':'local_shell'},{'type':'function','name':'g',"
          "'parameters':null}],'tool_choice':'auto'}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':["
          "{'type':'function','function':{'name':'f','description':'d',"
          "'parameters':{'type':'object'},'strict':true}},"
          "{'type':'function','function':{'name':'g'}}]}" },

        { "no tools are left",
          "{'input':'Hi','tools':[{'type':'web_search'}]}",
          "{'messages':[{'role':'user','content':'Hi'}]}" },

        { "tool_choice none",
          "{'input':'Hi','tools':[{'type':'function','name':'f'}],"
          "'tool_choice':'none'}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f'}}],'tool_choice':'none'}" },

        { "tool_choice required",
          "{'input':'Hi','tools':[{'type':'function','name':'f'}],"
          "'tool_choice':'required'}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f'}}],'tool_choice':'required'}" },

        { "a function by its name",
          "{'input':'Hi','tools':[{'type':'function','name':'f'}],"
          "'tool_choice':{'type':'function','name':'f'}}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f'}}],'tool_choice':{'type':"
          "'function','function':{'name':'f'}}}" },

        { "some of the tools",
          "{'input':'Hi','tools':[{'type':'function','name':'f'},{'type':"
          "'function','name':'g'}],'tool_choice':{'type':'allowed_tools',"
          "'mode':'required','tools':[{'type':'function','name':'g'},"
          "{'type':'web_search'}]}}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f'}},{'type':'function','function':"
          "{'name':'g'}}],'tool_choice':{'type':'allowed_tools',"
          "'allowed_tools':{'mode':'required','tools':[{'type':'function',"
          "'function':{'name':'g'}}]}}}" },

        { "tool_choice auto",
          "{'input':'Hi','tools':[{'type':'function','name':'f'}],"
          "'tool_choice':'auto','parallel_tool_calls':true}",
          "{'messages':[{'role':'user','content':'Hi'}],'tools':[{'type':"
          "'function','function':{'name':'f'}}],'tool_choice':'auto',"
          "'parallel_tool_calls':true}" },

        { "functions of a namespace",
          "{'input':'Hi','tools':[{'type':'function','name':'f'},"
          SPACE("mcp") "," SPACE("mcp__x__") "]}",
          "{" TALK ",'tools':[{'type':'function','function':{'name':'f'}},"
          SPACE_TOOLS("mcp__") "," SPACE_TOOLS("mcp__x__") "]}" },

        { "one of them by its name",
          "{'input':'Hi','tools':[" SPACE("mcp") "],'tool_choice':"
          "{'type':'function','name':'g','namespace':'mcp'}}",
          "{" TALK ",'tools':[" SPACE_TOOLS("mcp__") "],'tool_choice':"
          "{'type':'function','function':{'name':'mcp__g'}}}" },

        { "some of them",
          "{'input':'Hi','tools':[" SPACE("mcp") "],'tool_choice':"
          "{'type':'allowed_tools','mode':'auto','tools':[{'type':'function',"
          "'name':'g','namespace':'mcp'}]}}",
          "{" TALK ",'tools':[" SPACE_TOOLS("mcp__") "],'tool_choice':"
          "{'type':'allowed_tools','allowed_tools':{'mode':'auto','tools':"
          "[{'type':'function','function':{'name':'mcp__g'}}]}}}" },

        { "calls of them that were made",
          "{'input':[{'role':'user','content':'a'},{'type':'function_call',"
          "'call_id':'c1','name':'f','namespace':'mcp','arguments':'{}'},"
          "{'type':'function_call_output','call_id':'c1','output':'r'},"
          "{'role':'user','content':'b'}]}",
          "{'messages':[{'role':'user','content':'a'},{'role':'assistant',"
          "'content':null,'tool_calls':[{'id':'c1','type':'function',"
          "'function':{'name':'mcp__f','arguments':'{}'}}]},"
          "{'role':'tool','content':'r','tool_call_id':'c1'},"
          "{'role':'user','content':'b'}]}" },
    };

    for (i = 0; i < llm_nelems(pairs); i++) {
        same_as_chat(RESPONSES, pairs[i].said, pairs[i].chat, pairs[i].what);
    }
}


static void
test_refused(void)
{
    char    text[256];
    size_t  i;

    static const struct {
        const char  *tool, *param, *words;
    } bad[] = {
        { "{'type':'namespace','tools':[]}", "tools[0].name", "Missing" },
        { "{'type':'namespace','name':'n'}", "tools[0].tools", "Missing" },
        { "{'type':'namespace','name':'n','tools':{}}", "tools[0].tools",
          "expected an array" },
        { "{'type':'namespace','name':'n','tools':['f']}",
          "tools[0].tools[0]", "expected an object" },
        { "{'type':'namespace','name':'n','tools':[{'name':'f'}]}",
          "tools[0].tools[0].type", "Missing" },
        { "{'type':'namespace','name':'n','tools':[{'type':'custom'},"
          "{'type':'function'}]}", "tools[0].tools[1].name", "Missing" },
        { "{'type':'namespace','name':'n','tools':[{'type':'function',"
          "'name':''}]}", "tools[0].tools[0].name", "empty string" },
        { "{'type':'function','name':'f','namespace':3}",
          "tools[0].namespace", "expected a string" },
        { "{'type':'function','name':'f','strict':'yes'}",
          "tools[0].strict", "expected a boolean" },
        { "{'type':'namespace','name':'n','tools':[{'type':'function',"
          "'name':'f','strict':1}]}",
          "tools[0].tools[0].strict", "expected a boolean" },
        { "{'type':'function','name':'f','parameters':'x'}",
          "tools[0].parameters", "expected an object" },
        { "{'type':'function','name':'f','strict':true,'parameters':[]}",
          "tools[0].parameters", "expected an object" },
        { "{'type':'function','name':'f','parameters':false}",
          "tools[0].parameters", "expected an object" },
        { "{'type':'namespace','name':'n','tools':[{'type':'function',"
          "'name':'f','parameters':5}]}",
          "tools[0].tools[0].parameters", "expected an object" },
    };

    for (i = 0; i < llm_nelems(bad); i++) {
        snprintf(text, sizeof(text), "{'input':'a','tools':[%s]}",
                 bad[i].tool);
        refused(RESPONSES, text, bad[i].param, bad[i].words);
    }
}


static void
has(const char *got, const char *want, const char *what)
{
    char  *text;

    text = quoted(want);
    ok(strstr(got, text) != NULL, "%s: %s", what, text);
    free(text);
}


/* a call of this name is this item, in a body and in a stream, which has
   another event with its own name when its arguments are whole */

static void
test_called(const char *full, const char *item, const char *whole)
{
    ask(RESPONSES, &conf, "{'input':'Hi','tools':[" TOOLS "]}");
    start();
    name(0, full);
    args(0, "{}");
    finish(LLM_FINISH_TOOL_CALLS);
    done();
    has(body(SIZE_MAX), item, full);
    hang_up();

    ask(RESPONSES, &conf, "{'input':'Hi','stream':true,'tools':[" TOOLS "]}");
    start();
    name(0, full);
    args(0, "{}");
    finish(LLM_FINISH_TOOL_CALLS);
    done();
    has(out.data, item, "in a stream");
    has(out.data, whole, "when it is whole");
    hang_up();
}


int
main(void)
{
    test_tools();
    test_refused();

    test_called("mcp__g", "'name':'g','namespace':'mcp','arguments':'{}'",
           "'output_index':0,'name':'g','arguments':'{}'}");
    test_called("x__f", "'name':'f','namespace':'x__','arguments':'{}'",
           "'output_index':0,'name':'f','arguments':'{}'}");
    test_called("mcp__h", "'name':'h','namespace':'mcp','arguments':'{}'",
           "'output_index':0,'name':'h','arguments':'{}'}");
    test_called("k", "'name':'k','arguments':'{}'",
           "'output_index':0,'name':'k','arguments':'{}'}");
    test_called("mcp__g_more", "'name':'mcp__g_more','arguments':'{}'",
           "'output_index':0,'name':'mcp__g_more','arguments':'{}'}");

    return done_testing();
}
