/*
 * Turns with calls of tools, and turns that a template refuses: what is
 * mended, and that all else stays in the template's own form.
 *
 * In requests and prompts here ' stands for ".
 */

#include "engine/base/file.h"
#include "t/unit/chat_case.h"

#include <dirent.h>

#define LENIENT(messages)  "{'lenient':true,'messages':[" messages "]}"
#define STRICT(messages)   "{'messages':[" messages "]}"

#define SAY(role, text)    "{'role':'" role "','content':'" text "'}"
#define U                  SAY("user", "Hi")
#define A                  SAY("assistant", "x")

/* args are escaped once more: they are JSON in a string */
#define ONE(id, name, args)                                                  \
    "{'id':'" id "','type':'function','function':{'name':'" name             \
    "','arguments':'" args "'}}"
#define TURN(content, calls)                                                 \
    "{'role':'assistant','content':" content ",'tool_calls':[" calls "]}"
#define C(id, name, args)  TURN("null", ONE(id, name, args))
#define R(id, text)                                                          \
    "{'role':'tool','tool_call_id':'" id "','content':'" text "'}"

#define ARGS_A  "{\\'a\\': 1}"
#define CUT     "{\\'a\\': \\'b"

/* a template: [role|text<name arguments>], behind what it checks */
#define TALK(check)                                                          \
    check "{% for m in messages %}[{{ m.role }}|{{ m.content or '' }}"       \
    "{% for c in m.tool_calls or [] %}<{{ c.function.name }} "               \
    "{{ c.function.arguments | tojson }}>{% endfor %}]{% endfor %}"

#define FIRST  U "," C("c1", "f", ARGS_A) "," R("c1", "20")
#define FIRST_OUT  "[user|Hi][assistant|<f {'a': 1}>][tool|20]"


/* a copy in which ' is " */

static char *
quoted(const char *s)
{
    char  *copy, *p;

    copy = strdup(s);

    for (p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }

    return copy;
}


static void
turns(const char *name, const char *src, const char *request,
    const char *want)
{
    char  *q, *w;

    q = quoted(request);
    w = quoted(want);
    gives(name, src, q, w);
    free(q);
    free(w);
}


static void
mended(const char *want, const char *name)
{
    const char  *text;

    text = llm_chat_mended(&case_mended);
    is_str(text ? text : "nothing", want, "%s: the log", name);

    ok(llm_chat_mended(&case_mended) == NULL, "%s: no more", name);
}


static void
test_arguments(void)
{
#define ITEMS                                                                \
    "{% for m in messages %}[{{ m.role }}|{{ m.content or '' }}"             \
    "{% for c in m.tool_calls or [] %}<{{ c.function.name }}"                \
    "{% for k, v in c.function.arguments | items %} {{ k }}={{ v }}"         \
    "{% endfor %}>{% endfor %}]{% endfor %}"

    turns("arguments that were cut", ITEMS,
          LENIENT(FIRST "," C("c2", "f", CUT) "," R("c2", "bad") "," U),
          "[user|Hi][assistant|<f a=1>][tool|20][assistant|<f "
          "arguments={'a': 'b>][tool|bad][user|Hi]");
    mended("a call whose arguments are no object is told with them in one",
           "arguments that were cut");

    turns("and of a request that is not lenient", ITEMS,
          STRICT(FIRST "," C("c2", "f", CUT)),
          "[user|Hi][assistant|<f a=1>][tool|20][assistant|<f "
          "arguments={'a': 'b>]");
    turns("a list for arguments", ITEMS,
          LENIENT(FIRST "," C("c2", "f", "[1]")),
          "[user|Hi][assistant|<f a=1>][tool|20][assistant|<f "
          "arguments=[1]>]");
    turns("null for arguments", ITEMS,
          LENIENT(FIRST ",{'role':'assistant','content':'','tool_calls':["
                  "{'id':'c2','type':'function','function':{'name':'f',"
                  "'arguments':null}}]}"),
          "[user|Hi][assistant|<f a=1>][tool|20][assistant|<f>]");
    turns("no arguments", ITEMS,
          LENIENT(FIRST ",{'role':'assistant','content':'','tool_calls':["
                  "{'id':'c2','type':'function','function':{'name':'f'}}]}"),
          "[user|Hi][assistant|<f a=1>][tool|20][assistant|<f>]");
    turns("arguments that it would drop",
          "{% for m in messages %}[{{ m.role }}|{{ m.content or '' }}"
          "{% for c in m.tool_calls or [] %}<{{ c.function.name }}"
          "{% if c.function.arguments is mapping %}{% for k, v in "
          "c.function.arguments | items %} {{ k }}={{ v }}{% endfor %}"
          "{% endif %}>{% endfor %}]{% endfor %}",
          LENIENT(FIRST "," C("c2", "f", CUT)),
          "[user|Hi][assistant|<f a=1>][tool|20][assistant|<f "
          "arguments={'a': 'b>]");
    turns("arguments that it would put into braces of its own",
          "{% for m in messages %}[{{ m.role }}|{{ m.content or '' }}"
          "{% for c in m.tool_calls or [] %}<{{ c.function.name + '{' }}"
          "{% if c.function.arguments is mapping %}{% for k, v in "
          "c.function.arguments | items %}{{ k }}:{{ v }}{% endfor %}"
          "{% else %}{{ c.function.arguments }}{% endif %}{{ '}>' }}"
          "{% endfor %}]{% endfor %}",
          LENIENT(FIRST "," C("c2", "f", CUT)),
          "[user|Hi][assistant|<f{a:1}>][tool|20][assistant|<f{"
          "arguments:{'a': 'b}>]");
    turns("a call that is none stays text",
          "{% for m in messages %}{% for c in m.tool_calls or [] %}"
          "{{ c.function.name + '' }}{% endfor %}{% endfor %}" TALK(""),
          LENIENT(FIRST "," TURN("'x'", "{'id':'c2'}") "," U),
          "f" FIRST_OUT "[assistant|x\n<tool_call>\n{'name': null, "
          "'arguments': {}}\n</tool_call>][user|Hi]");
}


#define SINGLE                                                               \
    "{% for m in messages %}{% if m.tool_calls and m.tool_calls | length "   \
    "> 1 %}{{ raise_exception('one call') }}{% endif %}{% endfor %}"

static void
test_several(void)
{
#define TWO(content)                                                         \
    TURN(content, ONE("c2", "g", "{}") "," ONE("c3", "h", "{}"))

    turns("two calls where it takes one", TALK(SINGLE),
          LENIENT(FIRST "," TWO("'Both'") "," R("c2", "g") "," R("c3", "h")
                  "," A "," U),
          FIRST_OUT "[assistant|Both<g {}>][tool|g][assistant|<h {}>]"
          "[tool|h][assistant|x][user|Hi]");
    mended("a turn with several calls is told as several turns",
           "two calls where it takes one");

    turns("with results in another order", TALK(SINGLE),
          LENIENT(FIRST "," TWO("null") "," R("c3", "h") "," R("c2", "g")),
          FIRST_OUT "[assistant|<g {}>][tool|g][assistant|<h {}>][tool|h]");
    turns("with one result", TALK(SINGLE),
          LENIENT(FIRST "," TWO("null") "," R("c3", "h") "," U),
          FIRST_OUT "[assistant|<g {}>][assistant|<h {}>][tool|h][user|Hi]");
    turns("with results of nobody's", TALK(SINGLE),
          LENIENT(FIRST "," TWO("null") "," R("z", "1") "," R("c3", "h")
                  "," R("z", "2")),
          FIRST_OUT "[assistant|<g {}>][tool|1][assistant|<h {}>][tool|h]"
          "[tool|2]");
    turns("with results without ids", TALK(SINGLE),
          LENIENT(FIRST "," TWO("null") ",{'role':'tool','content':'g'},"
                  "{'role':'tool','content':'h'}"),
          FIRST_OUT "[assistant|<g {}>][tool|g][assistant|<h {}>][tool|h]");
    turns("reasoning stands once", TALK(SINGLE) "{% for m in messages %}"
          "{{ m.reasoning_content }};{% endfor %}",
          LENIENT(U ",{'role':'assistant','content':null,"
                  "'reasoning_content':'why','tool_calls':["
                  ONE("c2", "g", "{}") "," ONE("c3", "h", "{}") "]}"),
          "[user|Hi][assistant|<g {}>][assistant|<h {}>];why;;");

#define NULL_ALONE                                                           \
    "{% for m in messages %}[{{ m.role }}|{% if m.content is none %}"        \
    "{% for c in m.tool_calls %}<{{ c.function.name }}>{% endfor %}"         \
    "{% else %}{{ m.content + '' }}{% endif %}]{% endfor %}"

    turns("calls that it shows where there is no content alone", NULL_ALONE,
          LENIENT(U "," TURN("''", ONE("c1", "f", "{}")) "," R("c1", "1")
                  "," TURN("'Text'", ONE("c2", "g", "{}")) "," R("c2", "2")
                  ",{'role':'assistant','tool_calls':["
                  ONE("c3", "h", "{}") "]}"),
          "[user|Hi][assistant|<f>][tool|1][assistant|Text][assistant|<g>]"
          "[tool|2][assistant|<h>]");
    turns("as they are for the reference", NULL_ALONE,
          STRICT(U "," TURN("''", ONE("c1", "f", "{}"))),
          "[user|Hi][assistant|]");
    turns("a second call that it drops",
          "{% for m in messages %}[{{ m.role }}|{{ m.content or '' }}"
          "{% if m.tool_calls %}<{{ m.tool_calls[0].function.name }}>"
          "{% endif %}]{% endfor %}",
          LENIENT(U "," TWO("null") "," R("c3", "h") "," R("c2", "g")),
          "[user|Hi][assistant|<g>][tool|g][assistant|<h>][tool|h]");
    turns("not for the reference",
          "{% for m in messages %}[{{ m.role }}|{{ m.content or '' }}"
          "{% if m.tool_calls %}<{{ m.tool_calls[0].function.name }}>"
          "{% endif %}]{% endfor %}",
          STRICT(U "," TWO("null") "," R("c3", "h") "," R("c2", "g")),
          "[user|Hi][assistant|<g>][tool|h][tool|g]");

    turns("results in the order of their calls", TALK(""),
          LENIENT(U "," TWO("null") "," R("c3", "h") "," R("z", "?") ","
                  R("c2", "g") "," U),
          "[user|Hi][assistant|<g {}><h {}>][tool|g][tool|h][tool|?]"
          "[user|Hi]");
    turns("as they are for the reference", TALK(""),
          STRICT(U "," TWO("null") "," R("c3", "h") "," R("c2", "g")),
          "[user|Hi][assistant|<g {}><h {}>][tool|h][tool|g]");
}


/* Mistral's way: turns with calls, and results, do not count */

#define ALTERNATE                                                            \
    "{% set ns = namespace(i=0) %}{% for m in messages %}"                   \
    "{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls)" \
    " %}{% if (m.role == 'user') != (ns.i % 2 == 0) %}"                      \
    "{{ raise_exception('must alternate') }}{% endif %}"                     \
    "{% set ns.i = ns.i + 1 %}"                                              \
    "{% if m.role == 'assistant' and not m.content %}"                       \
    "{{ raise_exception('empty') }}{% endif %}{% endif %}{% endfor %}"

static void
test_sides(void)
{
    turns("a user who speaks after a result", TALK(ALTERNATE),
          LENIENT(FIRST "," SAY("user", "So?") "," C("c2", "g", "{}") ","
                  R("c2", "g") "," A "," U),
          FIRST_OUT "[assistant|OK.][user|So?][assistant|<g {}>][tool|g]"
          "[assistant|x][user|Hi]");
    mended("a word is put between the result of a tool and what follows it",
           "a user who speaks after a result");

    turns("of a request that is not lenient", TALK(ALTERNATE),
          STRICT(FIRST "," U), FIRST_OUT "[assistant|OK.][user|Hi]");
    turns("after a call", TALK(ALTERNATE),
          LENIENT(U "," C("c1", "f", ARGS_A) "," U),
          "[user|Hi][assistant|<f {'a': 1}>][assistant|OK.][user|Hi]");
    turns("not where the assistant spoke last", TALK(ALTERNATE),
          LENIENT(U "," A "," C("c1", "f", ARGS_A) "," R("c1", "20") "," U),
          "[user|Hi][assistant|x][assistant|<f {'a': 1}>][tool|20]"
          "[user|Hi]");
    turns("an assistant who spoke before the call", TALK(ALTERNATE),
          LENIENT(U "," A "," C("c1", "f", ARGS_A) "," R("c1", "20") "," A),
          "[user|Hi][assistant|x][assistant|<f {'a': 1}>][tool|20]"
          "[user|Continue.][assistant|x]");
    turns("where a user may not follow a result",
          TALK("{% for m in messages %}{% if m.role == 'user' and "
               "loop.previtem and loop.previtem.role == 'tool' %}"
               "{{ raise_exception('no') }}{% endif %}{% endfor %}"),
          LENIENT(U "," A "," C("c1", "f", ARGS_A) "," R("c1", "20") "," U),
          "[user|Hi][assistant|x][assistant|<f {'a': 1}>][tool|20]"
          "[assistant|OK.][user|Hi]");

    turns("an empty answer", TALK(ALTERNATE),
          LENIENT(FIRST "," A "," SAY("user", "1") "," SAY("assistant", "")
                  "," SAY("user", "2")),
          FIRST_OUT "[assistant|x][user|1\n2]");
    mended("an assistant's turn that says nothing is left out",
           "an empty answer");
    turns("an empty answer of null", TALK(ALTERNATE),
          LENIENT(SAY("user", "1") ",{'role':'assistant','content':null},"
                  SAY("user", "2")), "[user|1\n2]");
    turns("an empty answer of parts", TALK(ALTERNATE),
          LENIENT(SAY("user", "1") ",{'role':'assistant','content':["
                  "{'type':'text','text':''}],'reasoning_content':'r'},"
                  SAY("user", "2")), "[user|1\n2]");
    turns("an empty answer behind a result", TALK(ALTERNATE),
          LENIENT(FIRST "," SAY("assistant", "") "," U),
          FIRST_OUT "[assistant|OK.][user|Hi]");
    turns("an empty answer that it takes", TALK(""),
          LENIENT(U "," SAY("assistant", "") "," U),
          "[user|Hi][assistant|][user|Hi]");
    turns("an assistant who begins", TALK(ALTERNATE), LENIENT(A "," U),
          "[user|Continue.][assistant|x][user|Hi]");
    turns("a call that begins, and would be dropped",
          "{% set ns = namespace(m=messages) %}{% if tools %}"
          "{% set ns.m = messages[1:] %}({{ messages[0].content }} "
          "{{ tools[0].function.name }}){% endif %}"
          "{% for m in ns.m %}[{{ m.role }}|{{ m.content or '' }}"
          "{% for c in m.tool_calls or [] %}<{{ c.function.name }} "
          "{{ c.function.arguments | tojson }}>{% endfor %}]{% endfor %}",
          "{'lenient':true,'tools':[{'type':'function','function':{'name':"
          "'f'}}],'messages':[" C("c1", "f", ARGS_A) "," R("c1", "20") "]}",
          "(Continue. f)[assistant|<f {'a': 1}>][tool|20]");

    turns("what helped is all that was done",
          TALK(ALTERNATE "{% for m in messages %}{% if not loop.first and "
               "m.role == 'system' %}{{ raise_exception('late') }}"
               "{% endif %}{% endfor %}"),
          LENIENT(SAY("system", "S") "," FIRST "," U),
          "[system|S]" FIRST_OUT "[assistant|OK.][user|Hi]");
    turns("an open message stays the last", TALK(ALTERNATE),
          "{'lenient':true,'continue_final_message':true,'messages':["
          FIRST "," U "," SAY("assistant", "") "]}",
          FIRST_OUT "[assistant|OK.][user|Hi][assistant|");
}


/* gpt-oss: reasoning or text, and results belong to the last call */

#define HARMONY                                                              \
    "{% for m in messages %}{% if m.role == 'tool' %}"                       \
    "<|start|>functions.{{ ns.name }}<|message|>{{ m.content }}<|end|>"      \
    "{% elif m.tool_calls %}{% if m.content and m.thinking %}"               \
    "{{ raise_exception('not both') }}{% endif %}"                           \
    "{% if m.content or m.thinking %}<|channel|>analysis<|message|>"         \
    "{{ m.thinking or m.content }}<|end|>{% endif %}"                        \
    "{% set ns.name = m.tool_calls[0].function.name %}<|start|>assistant "   \
    "to=functions.{{ ns.name }}<|message|>"                                  \
    "{{ m.tool_calls[0].function.arguments | tojson }}<|call|>"              \
    "{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>"       \
    "{% endif %}{% endfor %}"

static void
test_voices(void)
{
#define ALL(id)                                                              \
    "{'role':'assistant','content':'Text','reasoning_content':'Why',"        \
    "'tool_calls':[" ONE(id, "f", ARGS_A) "]}"
#define NS  "{% set ns = namespace(name='') %}"

    turns("text, reasoning and a call in one turn", NS HARMONY,
          LENIENT(U "," ALL("c1") "," R("c1", "20")),
          "<|start|>user<|message|>Hi<|end|><|channel|>analysis<|message|>"
          "Why<|end|><|start|>assistant to=functions.f<|message|>{'a': 1}"
          "<|call|><|start|>functions.f<|message|>20<|end|>");
    mended("a turn with text, reasoning and calls is told without the text",
           "text, reasoning and a call in one turn");
    turns("text and a call", NS HARMONY,
          LENIENT(U "," TURN("'Text'", ONE("c1", "f", ARGS_A)) ","
                  R("c1", "20")),
          "<|start|>user<|message|>Hi<|end|><|channel|>analysis<|message|>"
          "Text<|end|><|start|>assistant to=functions.f<|message|>{'a': 1}"
          "<|call|><|start|>functions.f<|message|>20<|end|>");
    turns("a result of its own call", NS HARMONY,
          LENIENT(U "," TURN("null", ONE("c1", "f", "{}") ","
                             ONE("c2", "g", "{}")) "," R("c2", "2") ","
                  R("c1", "1")),
          "<|start|>user<|message|>Hi<|end|><|start|>assistant "
          "to=functions.f<|message|>{}<|call|><|start|>functions.f"
          "<|message|>1<|end|><|start|>assistant to=functions.g<|message|>{}"
          "<|call|><|start|>functions.g<|message|>2<|end|>");
    turns("both where it takes both", TALK("") "{{ messages[1].thinking }}"
          "{{ messages[1].reasoning_content }}",
          LENIENT(U "," ALL("c1")),
          "[user|Hi][assistant|Text<f {'a': 1}>]Why");

    turns("text that it writes behind the call",
          "{% for m in messages %}<turn>{{ m.role }}{% for c in m.tool_calls "
          "or [] %}<call>{{ c.function.name }}</call>{% endfor %}"
          "{{ m.content or '' }}</turn>{% endfor %}",
          LENIENT(U "," TURN("'Text'", ONE("c1", "f", "{}") ","
                             ONE("c2", "g", "{}")) "," R("c1", "1")),
          "<turn>userHi</turn><turn>assistantText</turn><turn>assistant"
          "<call>f</call><call>g</call></turn><turn>tool1</turn>");
}


/* Gemma 4: results, and what is said behind them, belong to the turn */

#define RESPONSES                                                            \
    "{% for m in messages %}<turn>{{ m.role }} {% for c in m.tool_calls or " \
    "[] %}<call:{{ c.function.name }}>{% endfor %}{% for r in "              \
    "m.tool_responses or [] %}<response:{{ r.name }} {{ r.response }}>"      \
    "{% endfor %}{{ m.content or '' }}</turn>{% endfor %}"

static void
test_responses(void)
{
    turns("results and the answer in the turn", RESPONSES,
          LENIENT(U "," TURN("'Text'", ONE("c1", "f", "{}") ","
                             ONE("c2", "g", "{}")) "," R("c2", "2") ","
                  R("c1", "1") "," A "," U),
          "<turn>user Hi</turn><turn>assistant Text</turn><turn>assistant "
          "<call:f><call:g><response:f 1><response:g 2>x</turn><turn>user "
          "Hi</turn>");
    turns("no answer yet", RESPONSES,
          LENIENT(U "," C("c1", "f", "{}") ",{'role':'tool','tool_call_id':"
                  "'z','content':[{'type':'text','text':'1'},{'type':'text',"
                  "'text':'2'}]}," R("y", "3") "," C("c2", "g", "{}") ","
                  R("c2", "2")),
          "<turn>user Hi</turn><turn>assistant <call:f><response:f 1\n2>"
          "<response:unknown 3></turn><turn>assistant <call:g><response:g 2>"
          "</turn>");
    turns("an answer that is left open", RESPONSES,
          "{'lenient':true,'continue_final_message':true,'messages':["
          U "," C("c1", "f", "{}") "," R("c1", "1") "," A "]}",
          "<turn>user Hi</turn><turn>assistant <call:f><response:f 1>x");
    turns("not for the reference", RESPONSES,
          STRICT(U "," C("c1", "f", "{}") "," R("c1", "1") "," A),
          "<turn>user Hi</turn><turn>assistant <call:f></turn><turn>tool 1"
          "</turn><turn>assistant x</turn>");
    turns("a result whose name it needs",
          "{% for m in messages %}[{{ m.role }}|{% if m.role == 'tool' %}"
          "{{ m.name + '=' }}{% endif %}{{ m.content or '' }}"
          "{% for c in m.tool_calls or [] %}<{{ c.function.name }}>"
          "{% endfor %}]{% endfor %}",
          LENIENT(U "," C("c1", "f", "{}") "," R("c1", "1")),
          "[user|Hi][assistant|<f>][tool|f=1]");
}


#define ID_ALONE                                                             \
    "{% for m in messages %}{% if m.role == 'tool' %}## Return of "          \
    "{{ m.tool_call_id }} {{ m.content }}{% else %}{{ m.content or '' }}"    \
    "{% for c in m.tool_calls or [] %}<{{ c.id }}>{% endfor %}{% endif %};"  \
    "{% endfor %}"

#define ID_OWN(number)                                                       \
    "{% set ns = namespace(n=0) %}"                                          \
    "{% for m in messages %}{% if m.role == 'tool' %}## Return of "          \
    "{{ m.tool_call_id }} {{ m.content }}{% else %}{{ m.content or '' }}"    \
    "{% for c in m.tool_calls or [] %}<functions.{{ c.function.name }}:"     \
    "{{ " number " }}>{% set ns.n = ns.n + 1 %}{% endfor %}{% endif %};"     \
    "{% endfor %}"

static void
test_ids(void)
{
#define IDS                                                                  \
    U "," C("c1", "f", "{}") "," R("c1", "1") ","                            \
    TURN("null", ONE("c1", "g", "{}") "," ONE("c2", "f", "{}")) ","          \
    R("c2", "3") "," R("c1", "2") "," U "," R("c2", "4")

    turns("ids where the template writes them alone", ID_ALONE, LENIENT(IDS),
          "Hi;<functions.f:0>;## Return of functions.f:0 1;"
          "<functions.g:1><functions.f:2>;## Return of functions.g:1 2;"
          "## Return of functions.f:2 3;Hi;## Return of functions.f:2 4;");
    turns("as they are for the reference", ID_ALONE, STRICT(IDS),
          "Hi;<c1>;## Return of c1 1;<c1><c2>;## Return of c2 3;"
          "## Return of c1 2;Hi;## Return of c2 4;");
    turns("ids of the model's own stay", ID_ALONE,
          LENIENT(C("functions.f:7", "f", "{}") "," R("functions.f:7", "1")
                  "," C("x", "f", "{}") "," R("x", "2")),
          "<functions.f:7>;## Return of functions.f:7 1;<functions.f:8>;"
          "## Return of functions.f:8 2;");
    turns("not of another function", ID_ALONE,
          LENIENT(C("functions.g:7", "f", "{}") ","
                  C("functions.f:", "f", "{}") ","
                  C("functions.f:1x", "f", "{}")),
          "<functions.f:0>;<functions.f:1>;<functions.f:2>;");
    turns("results without an id", ID_ALONE,
          LENIENT(C("x", "f", "{}") ",{'role':'tool','content':'1'}"),
          "<functions.f:0>;## Return of functions.f:0 1;");
    turns("calls without an id", ID_ALONE,
          LENIENT("{'role':'assistant','content':'','tool_calls':[{'type':"
                  "'function','function':{'name':'f','arguments':'{}'}}]},"
                  "{'role':'tool','content':'1'}"),
          "<functions.f:0>;## Return of functions.f:0 1;");
    turns("ids that the template makes, over all", ID_OWN("ns.n"),
          LENIENT(IDS),
          "Hi;<functions.f:0>;## Return of functions.f:0 1;"
          "<functions.g:1><functions.f:2>;## Return of functions.g:1 2;"
          "## Return of functions.f:2 3;Hi;## Return of functions.f:2 4;");
    turns("ids that the template makes, in each turn",
          ID_OWN("loop.index0"), LENIENT(IDS),
          "Hi;<functions.f:0>;## Return of functions.f:0 1;"
          "<functions.g:0><functions.f:1>;## Return of functions.g:0 2;"
          "## Return of functions.f:1 3;Hi;## Return of functions.f:1 4;");
    turns("a queue of ids",
          "{% set q = namespace(ids=[]) %}{% for m in messages %}"
          "{% for c in m.tool_calls or [] %}<{{ c.function.name }}>"
          "{% set _ = q.ids.append(c.function.name) %}{% endfor %}"
          "{% if m.role == 'tool' %}{{ q.ids.pop(0) }}={% endif %}"
          "{{ m.content or '' }};{% endfor %}", LENIENT(IDS),
          "Hi;<f>;f=1;<g><f>;g=2;f=3;Hi\n<tool_response>\n4\n"
          "</tool_response>;");
}


/* what no remedy knows of: that exchange is text, and no other */

#define BOOM                                                                 \
    "{% for m in messages %}{% for c in m.tool_calls or [] %}"               \
    "{% if c.function.name == 'boom' %}{{ raise_exception('boom') }}"        \
    "{% endif %}{% endfor %}{% endfor %}"

#define BOOM_OUT                                                             \
    "[assistant|<tool_call>\n{'name': 'boom', 'arguments': {}}\n"            \
    "</tool_call>][user|<tool_response>\nb\n</tool_response>]"

static void
test_text(void)
{
    turns("an exchange that is refused", TALK(BOOM),
          LENIENT(FIRST "," C("c2", "boom", "{}") "," R("c2", "b") ","
                  C("c3", "f", ARGS_A) "," R("c3", "20") "," A "," U),
          FIRST_OUT BOOM_OUT "[assistant|<f {'a': 1}>][tool|20]"
          "[assistant|x][user|Hi]");
    mended("calls and their results are told as text",
           "an exchange that is refused");

    turns("of a request that is not lenient", TALK(BOOM),
          STRICT(FIRST "," C("c2", "boom", "{}") "," R("c2", "b")),
          FIRST_OUT BOOM_OUT);
    turns("two of them, and other faults", TALK(BOOM ALTERNATE SINGLE),
          LENIENT(C("c0", "boom", "{}") "," R("c0", "b") "," A ","
                  FIRST "," C("c2", "boom", "{}") "," R("c2", "b") "," A ","
                  U "," TURN("null", ONE("c4", "f", ARGS_A) ","
                             ONE("c5", "f", ARGS_A)) "," R("c5", "20") ","
                  R("c4", "20") "," SAY("user", "So?")),
          "[user|Continue.]" BOOM_OUT "[assistant|x]" FIRST_OUT BOOM_OUT
          "[assistant|x][user|Hi][assistant|<f {'a': 1}>][tool|20]"
          "[assistant|<f {'a': 1}>][tool|20][assistant|OK.][user|So?]");
    turns("calls that it drops, with results that it shows",
          "{% for m in messages %}[{{ m.role }}|{{ m.content or '' }}]"
          "{% endfor %}",
          LENIENT(U "," TURN("'Text'", ONE("c1", "f", ARGS_A)) ","
                  R("c1", "20") "," A),
          "[user|Hi][assistant|Text\n<tool_call>\n{'name': 'f', "
          "'arguments': {'a': 1}}\n</tool_call>][tool|20][assistant|x]");
    turns("a result that follows no call",
          TALK("{% for m in messages %}{% if m.role == 'tool' and (not "
               "loop.previtem or not loop.previtem.tool_calls) %}"
               "{{ raise_exception('no call') }}{% endif %}{% endfor %}"),
          LENIENT(FIRST "," A "," R("c9", "b") "," U),
          FIRST_OUT "[assistant|x][user|<tool_response>\nb\n"
          "</tool_response>\nHi]");
}


/* one of many: as little text as will do, in a bounded number of tries */

static void
test_many(void)
{
    int           i, text, native;
    char         *p, *src;
    llm_buf_t     b;
    llm_err_t     err;
    llm_prompt_t  out;

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"lenient\":true,\"messages\":[");

    for (i = 0; i < 400; i++) {
        (void) llm_buf_addf(&b, "%s{\"role\":\"user\",\"content\":\"Hi\"},"
                            "{\"role\":\"assistant\",\"content\":\"\","
                            "\"tool_calls\":[{\"id\":\"c%d\",\"type\":"
                            "\"function\",\"function\":{\"name\":\"%s\","
                            "\"arguments\":\"{}\"}}]},{\"role\":\"tool\","
                            "\"tool_call_id\":\"c%d\",\"content\":\"1\"},"
                            "{\"role\":\"assistant\",\"content\":\"x\"}",
                            i ? "," : "", i, i % 200 == 77 ? "boom" : "f", i);
    }

    (void) llm_buf_adds(&b, "]}");
    src = TALK(BOOM);

    if (b.failed || render(src, b.data, &out, &err) != LLM_OK) {
        ok(0, "400 exchanges: %s", err.msg);

    } else {
        for (p = out.text, text = 0; (p = strstr(p, "<tool_call>")); p++) {
            text++;
        }

        for (p = out.text, native = 0; (p = strstr(p, "<f {}>")); p++) {
            native++;
        }

        is_int(text, 2, "of 400 exchanges two are text");
        is_int(native, 398, "and the others are not");
        llm_prompt_free(&out);
    }

    llm_buf_free(&b);
}


/*
 * The shared templates: each of these conversations gives a prompt, and the
 * call in it that no template has anything against stands there as it does in
 * a conversation that has nothing else.
 */

#define TOOLS                                                                \
    "'tools':[{'type':'function','function':{'name':'run','description':"    \
    "'runs','parameters':{'type':'object','properties':{'cmd':{'type':"      \
    "'string'},'n':{'type':'integer'}},'required':['cmd']}}},{'type':"       \
    "'function','function':{'name':'look','description':'looks',"            \
    "'parameters':{'type':'object','properties':{'cmd':{'type':'string'}},"  \
    "'required':['cmd']}}}]"

#define S_ARGS(word)  "{\\'cmd\\': \\'" word "\\'}"
#define S_ONE(id)     ONE(id, "run", S_ARGS("alpha"))
#define S_CALL        TURN("null", S_ONE("call_1")) "," R("call_1", "okay")
#define S_FIRST       U "," S_CALL
#define S_REST        A "," SAY("user", "Ho")
#define S_PAIR        ONE("call_2", "look", S_ARGS("beta")) ","              \
                      ONE("call_3", "run", S_ARGS("gamma"))
#define S_WITH(more)                                                         \
    "{'role':'assistant'," more "'tool_calls':[" S_ONE("call_1") "]}"

static const struct {
    const char  *name;
    const char  *messages;
} talks[] = {
    { "nothing else", S_FIRST "," S_REST },
    { "arguments cut", S_FIRST "," C("call_2", "run", "{\\'cmd\\': \\'b") ","
      R("call_2", "bad") "," S_REST },
    { "arguments of a list", S_FIRST "," C("call_2", "run", "[1]") ","
      R("call_2", "bad") "," S_REST },
    { "arguments of a number", S_FIRST "," C("call_2", "run", "5") ","
      R("call_2", "bad") "," S_REST },
    { "arguments that are text", S_FIRST "," C("call_2", "run", "hello") ","
      R("call_2", "bad") "," S_REST },
    { "no arguments", S_FIRST "," C("call_2", "run", "") ","
      R("call_2", "bad") "," S_REST },
    { "two calls", S_FIRST "," TURN("null", S_PAIR) "," R("call_2", "2") ","
      R("call_3", "3") "," S_REST },
    { "two calls, results in another order", S_FIRST ","
      TURN("null", S_PAIR) "," R("call_3", "3") "," R("call_2", "2") ","
      S_REST },
    { "two calls, one result", S_FIRST "," TURN("null", S_PAIR) ","
      R("call_3", "3") "," S_REST },
    { "a user behind a result", S_FIRST "," SAY("user", "Ho") },
    { "users behind results", S_FIRST "," U "," C("call_2", "look", "{}") ","
      R("call_2", "2") "," U "," S_REST },
    { "two users", U "," S_FIRST "," S_REST },
    { "two answers", S_FIRST "," A "," S_REST },
    { "an answer before the call", U "," A "," S_CALL "," S_REST },
    { "an empty answer", U "," SAY("assistant", "") "," S_FIRST "," S_REST },
    { "an answer of null", U ",{'role':'assistant','content':null},"
      S_FIRST "," S_REST },
    { "an empty answer behind a result", S_FIRST ","
      SAY("assistant", "") "," SAY("user", "Ho") },
    { "no result", U "," TURN("null", S_ONE("call_1")) "," U },
    { "no result at the end", U "," TURN("null", S_ONE("call_1")) },
    { "a result of no call", S_FIRST "," A "," R("call_9", "9") "," U },
    { "a result that begins", R("call_9", "9") "," U "," A "," S_FIRST ","
      S_REST },
    { "a system message behind a result", S_FIRST ","
      SAY("system", "Be brief") "," S_REST },
    { "a system message behind an answer", S_FIRST "," A ","
      SAY("system", "Be brief") "," U },
    { "a developer", SAY("developer", "Be brief") "," S_FIRST "," S_REST },
    { "a developer in mid-list", S_FIRST "," A ","
      SAY("developer", "Be brief") "," U },
    { "an answer that begins", A "," S_FIRST "," S_REST },
    { "a call that begins", S_CALL "," S_REST },
    { "text and a call", U "," S_WITH("'content':'Text',") ","
      R("call_1", "okay") "," S_REST },
    { "text, reasoning and a call", U ","
      S_WITH("'content':'Text','reasoning_content':'Why',") ","
      R("call_1", "okay") },
    { "text, reasoning and a call, long ago", U ","
      S_WITH("'content':'Text','reasoning_content':'Why',") ","
      R("call_1", "okay") "," S_REST },
    { "content that is not there", U "," S_WITH("") "," R("call_1", "okay")
      "," S_REST },
    { "content that is empty", U "," S_WITH("'content':'',") ","
      R("call_1", "okay") "," S_REST },
    { "a result of parts", U "," TURN("null", S_ONE("call_1")) ",{'role':"
      "'tool','tool_call_id':'call_1','content':[{'type':'text','text':"
      "'okay'},{'type':'text','text':'more'}]}," S_REST },
    { "all at once", S_FIRST ","
      C("call_2", "run", "{\\'cmd\\': \\'b") "," R("call_2", "bad") "," U ","
      TURN("null", S_PAIR) "," R("call_3", "3") "," R("call_2", "2") ","
      SAY("assistant", "") "," U "," R("call_9", "9") ","
      SAY("system", "Be brief") "," U }
};

#define S_TEXT  "<tool_call>\n{\"name\": \"run\", \"arguments\": "           \
                "{\"cmd\": \"alpha\"}}\n</tool_call>"


static int
sweep_render(const llm_chat_t *c, const char *messages, llm_prompt_t *p,
    llm_err_t *err)
{
    int        rc;
    char      *request;
    llm_buf_t  text, flat;

    llm_buf_init(&text, 0);
    llm_buf_init(&flat, 0);
    memset(p, 0, sizeof(*p));

    (void) llm_buf_addf(&text, "{'lenient':true," TOOLS ",'messages':[%s]}",
                        messages);
    request = quoted(text.data);

    rc = llm_json_to_flat(request, strlen(request), NULL, &flat, err);

    if (rc == LLM_OK) {
        rc = render_flat(c, (llm_flat_t *) flat.data, NULL, p, err);
    }

    free(request);
    llm_buf_free(&text);
    llm_buf_free(&flat);

    return rc;
}


/* the call as it is written there: from its name to its argument; owned */

static char *
sweep_call(const char *prompt)
{
    const char  *p, *at, *from;

    for (p = prompt, at = NULL; (p = strstr(p, "alpha")); p++) {
        at = p;
    }

    for (p = prompt, from = NULL; at && (p = strstr(p, "run")) && p < at;
         p++)
    {
        from = p;
    }

    return from ? strndup(from, (size_t) (at - from) + strlen("alpha"))
                : NULL;
}


static int
sweep_talk(const llm_chat_t *c, const char *file, size_t i, const char *call,
    int told)
{
    int            good;
    llm_err_t      err;
    llm_prompt_t   p;

    if (sweep_render(c, talks[i].messages, &p, &err) != LLM_OK) {
        printf("# %s: %s: %s\n", file, talks[i].name, err.msg);
        return 0;
    }

    good = strstr(p.text, call) && (told || strstr(p.text, S_TEXT) == NULL);

    if (!good) {
        printf("# %s: %s: not its own form: %s\n", file, talks[i].name,
               p.text);
    }

    llm_prompt_free(&p);

    return good;
}


static void
sweep_file(const char *dir, const char *file)
{
    int            bad, told;
    char           path[2048], *call;
    size_t         i;
    llm_buf_t      src;
    llm_err_t      err;
    llm_chat_t    *c;
    llm_prompt_t   p;

    snprintf(path, sizeof(path), "%s/%s", dir, file);
    llm_buf_init(&src, 0);
    c = llm_file_read(path, &src, &err) == LLM_OK ? chat(src.data, src.len)
                                                  : NULL;

    if (c == NULL || sweep_render(c, talks[0].messages, &p, &err) != LLM_OK) {
        ok(0, "%s: %s", file, err.msg);

    } else {
        call = sweep_call(p.text);
        told = strstr(p.text, S_TEXT) != NULL;
        llm_prompt_free(&p);

        for (i = 0, bad = 0; call && i < llm_nelems(talks); i++) {
            bad += !sweep_talk(c, file, i, call, told);
        }

        ok(call && bad == 0, "%s: a prompt, and its own form of calls",
           file);
        free(call);
    }

    llm_chat_free(c);
    llm_buf_free(&src);
}


static void
test_sweep(void)
{
    int             n;
    DIR            *d;
    char            dir[1100];
    size_t          len;
    struct dirent  *e;

    if (tap_fixtures() == NULL) {
        skip("the shared fixtures are not here");
        return;
    }

    snprintf(dir, sizeof(dir), "%s/chat-templates", tap_fixtures());
    d = opendir(dir);

    for (n = 0; d && (e = readdir(d)); /* void */ ) {
        len = strlen(e->d_name);

        if (len > 6 && strcmp(e->d_name + len - 6, ".jinja") == 0) {
            sweep_file(dir, e->d_name);
            n++;
        }
    }

    if (d) {
        (void) closedir(d);
    }

    ok(n >= 27, "%d templates", n);
}


/* a template whose work grows with the square: an error, or a prompt, but not
   for ever */

static void
test_slow(void)
{
    int           i, rc;
    char         *src;
    llm_buf_t     b;
    llm_err_t     err;
    llm_prompt_t  p;

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"lenient\":true,\"messages\":[");

    for (i = 0; i < 300; i++) {
        (void) llm_buf_addf(&b, "%s{\"role\":\"assistant\",\"content\":\"\","
                            "\"tool_calls\":[{\"id\":\"c\",\"function\":"
                            "{\"name\":\"%s\",\"arguments\":\"{}\"}}]}",
                            i ? "," : "", i % 2 ? "boom" : "f");
    }

    (void) llm_buf_adds(&b, "]}");
    src = TALK("{% for m in messages %}{% for k in messages %}"
               "{% for i in range(messages | length) %}{% endfor %}"
               "{% endfor %}{% endfor %}" BOOM);

    rc = b.failed ? LLM_ERROR : render(src, b.data, &p, &err);

    ok(rc != LLM_OK, "work that grows with the cube has an end");
    is_str(err.code, LLM_JINJA_LIMIT, "and says so");
    llm_prompt_free(&p);
    llm_buf_free(&b);
}


int
main(void)
{
    test_slow();
    test_arguments();
    test_several();
    test_sides();
    test_voices();
    test_responses();
    test_ids();
    test_text();
    test_many();
    test_sweep();

    return done_testing();
}
