/*
 * What answers mean: for every way of writing calls a template and answers
 * to it, right, broken, and such that only look like calls.
 */

#include "engine/emit/loose_internal.h"
#include "t/unit/heard.h"

typedef struct {
    const char  *raw;
    const char  *content;
    const char  *reasoning;
    const char  *calls;                 /* name and arguments of each */
} answer_t;

#define ANSWERS  16

typedef struct {
    const char  *name;
    const char  *source;                /* of the template */
    const char  *prompt;                /* the end of one */
    answer_t     answers[ANSWERS];
} family_t;

static const family_t  families[] = {

    { "objects between tags",
      TEMPLATE("{{ m.content }}"
               CALLS("<call>\n" OBJECT "\n</call>", "\n")), "",
      { { "It is 5; see {\"x\": 1} or <b>.",
          "It is 5; see {\"x\": 1} or <b>.", "", "" },
        { "<call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Oslo\"}}\n"
          "</call>", "", "", "get{\"city\": \"Oslo\"}" },
        { "Look.\n\n<call>{\"name\":\"now\",\"arguments\":{}}</call>\n"
          "<call>\n{\"arguments\": {\"days\": 1e2}, \"name\": \"get\"}"
          "</call> Done.",
          "Look.Done.", "", "now{}get{\"days\": 1e2}" },
        { "<call>\n{\"name\": \"now\"}\n</call>", "", "", "now{}" },
        { "<call>\n{\"name\": \"now\", \"arguments\": \"{\\\"a\\\": "
          "\\\"\\u00e9\\\\n\\\"}\"}\n</call>", "", "",
          "now{\"a\": \"\303\251\\n\"}" },
        { "<call>\n{\"name\": \"get\", \"arguments\": {\"city\": "
          "\"a\\u0000b\\ud800\\ud83d\\ude00\\u00e9\\udc00\"}}\n</call>", "",
          "", "get{\"city\": \"a\\ufffdb\\ufffd\\ud83d\\ude00\\u00e9"
          "\\ufffd\"}" },
        { "<call>\n{'name': 'get', 'arguments': {'city': 'L\"A', 'deep': "
          "{'a': [True, None]}}}\n</call>", "", "",
          "get{\"city\": \"L\\\"A\", \"deep\": {\"a\": [true, null]}}" },

        /* that is cut */
        { "<call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Os",
          "", "", "get{\"city\": \"Os" },

        /* no calls: text, and what is left without its marks */
        { "<call> is a tag.", "<call> is a tag.", "", "" },
        { "<call>\n{\"name\": \"other\", \"arguments\": {}}\n</call>",
          "{\"name\": \"other\", \"arguments\": {}}", "", "" },
        { "<call>\n{\"name\": \"get\", \"arguments\": [1]}\n</call>",
          "{\"name\": \"get\", \"arguments\": [1]}", "", "" },
        { "<cal", "<cal", "", "" },

        /* broken, then right; no end */
        { "<call>{\"name\": <call>{\"name\": \"now\", \"arguments\": {}}",
          "<call>{\"name\":", "", "now{}" },
        { "<call><call>{\"name\": \"now\", \"arguments\": {}}</call>",
          "", "", "now{}" },
        { "<call>{\"name\": \"now\", \"arguments\": {}}<call>{\"name\": "
          "\"now\", \"arguments\": {}}</call>", "", "", "now{}now{}" },
        { "<call>{\"name\": \"get\", \"arguments\": {\"city\": "
          "\"</call>{\\\"\"}}</call>", "", "",
          "get{\"city\": \"</call>{\\\"\"}" } } },

    { "an array behind a mark",
      TEMPLATE("{{ m.content }}{% if m.tool_calls %}[CALLS]["
               CALLS(OBJECT, ", ") "]{% endif %}"), "",
      { { "[CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"name\": "
          "\"get\", \"arguments\": {\"days\": 2}, \"id\": \"x\"}]", "", "",
          "now{}get{\"days\": 2}" },
        { "Hm [CALLS] [ {\"name\": \"now\", \"arguments\": {}} ] ", "Hm", "",
          "now{}" },
        { "[CALLS][]", "[]", "", "" },
        { "[CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"name\": "
          "\"x\", \"arguments\": {}}]",
          "[{\"name\": \"now\", \"arguments\": {}}, {\"name\": "
          "\"x\", \"arguments\": {}}]", "", "" },
        { "[CALLS", "[CALLS", "", "" } } },

    { "other keys", TEMPLATE("{{ m.content }}{% if m.tool_calls %}<act>"
               CALLS("{\"fn\": \"" NAME "\", \"with\": " ARGS "}", "\n")
               "</act>{% endif %}"), "",
      { { "<act>{\"fn\": \"get\", \"with\": {\"city\": \"A\"}}\n{\"fn\": "
          "\"now\", \"with\": {}}</act>", "", "",
          "get{\"city\": \"A\"}now{}" } } },

    { "the name is the key", TEMPLATE("{{ m.content }}"
               "{% if m.tool_calls %}<calls>["
               CALLS("{\"" NAME "\": " ARGS "}", ", ") "]</calls>{% endif %}"),
      "",
      { { "<calls>[{\"get\": {\"city\": \"A\"}}, {\"now\": {}}]</calls>", "",
          "", "get{\"city\": \"A\"}now{}" },
        { "<calls>[{\"got\": {}}]</calls>", "[{\"got\": {}}]", "", "" } } },

    { "a name, then an object", TEMPLATE("{{ m.content }}"
               "{% if m.tool_calls %}<|calls|>"
               CALLS("<|call|>f." NAME ":{{ loop.index0 }}<|args|>" ARGS
                     "<|call_end|>", "")
               "<|calls_end|>{% endif %}"), "",
      { { "<|calls|><|call|>f.get:0<|args|>{\"city\": \"<|call_end|>\"}"
          "<|call_end|><|call|>f.now:1<|args|>{}<|call_end|><|calls_end|>",
          "", "", "get{\"city\": \"<|call_end|>\"}now{}" },
        { "A <|calls|>\n<|call|>f.get_all:12<|args|> {} <|call_end|>", "A",
          "", "get_all{}" },
        { "<|call|>f.now:0<|args|>{}<|call_end|>", "", "", "now{}" },
        { "<|calls|><|call|>f.nowhere:0<|args|>{}<|call_end|>",
          "<|calls|><|call|>f.nowhere:0<|args|>{}<|call_end|>", "", "" },
        { "<|calls|>", "", "", "" } } },

    { "a name, a line, an object",
      "{% for m in messages %}{% if m.role == 'user' %}U{{ m.content }}"
      "{% else %}A{% if m.content %}>>>all\n{{ m.content }}{% endif %}"
      CALLS(">>>" NAME "\n" ARGS, "") "{% endif %}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}A>>>{% endif %}", "A>>>",
      { { "all\nallow me", "allow me", "", "" },
        { "get\n{\"city\": \"A\"}>>>now\n{}", "", "",
          "get{\"city\": \"A\"}now{}" },
        { "all\nLook:>>>now\n{}", "Look:", "", "now{}" },
        { "get to it", "get to it", "", "" } } },

    { "keys and values in tags", TEMPLATE("{{ m.content }}"
               CALLS("<call>\n<fn=" NAME ">\n"
                     PARAMS("<p=", ">\n", "\n</p>\n") "</fn>\n</call>",
                     "\n")), "",
      { { "<call>\n<fn=get>\n<p=city>\n 5\n\n</p>\n<p=days>\n5\n</p>\n"
          "<p=note>\nnull\n</p>\n<p=deep>\n{\"a\": 1}\n</p>\n<p=any>\n7\n</p>"
          "\n<p=yes>\nTrue\n</p>\n</fn>\n</call>", "", "",
          "get{\"city\": \" 5\\n\", \"days\": 5, \"note\": null, \"deep\": "
          "{\"a\": 1}, \"any\": 7, \"yes\": true}" },
        { "<call><fn=get><p=note>5</p><p=days>five</p></fn></call>", "", "",
          "get{\"note\": \"5\", \"days\": \"five\"}" },
        { "So:\n<call>\n<fn=now>\n</fn>\n</call>\n<call>\n<fn=get>\n<p=city>"
          "\nA</p> and </fn>\n</call>B\n</p>\n</fn>\n</call>", "So:", "",
          "now{}get{\"city\": \"A</p> and </fn>\\n</call>B\"}" },
        { "<call>\n<fn=get>\n<p=city>\nOslo", "", "", "get" },
        { "<call>\n<fn=gets>\n</fn>\n</call>", "gets>", "", "" },
        { "<call> <fn=", "", "", "" } } },

    { "keys and values that say what they are", TEMPLATE("{{ m.content }}"
               "{% if m.tool_calls %}<X>"
               CALLS("<f n=\"" NAME "\">{% for k, v in "
                     "c.function.arguments.items() %}<p n=\"{{ k }}\" s=\""
                     "{{ 'yes' if v is string else 'no' }}\">{{ v if v is "
                     "string else v | tojson }}</p>{% endfor %}</f>", "\n")
               "</X>{% endif %}"), "",
      { { "<X><f n=\"get\"><p n=\"days\" s=\"yes\">5</p><p n=\"city\" "
          "s=\"no\">5</p></f>\n<f n=\"now\"></f></X>", "", "",
          "get{\"days\": \"5\", \"city\": 5}now{}" } } },

    { "quotes of their own", TEMPLATE("{{ m.content }}"
               CALLS("<|c>" NAME "{% raw %}{{% endraw %}"
                     "{% for k, v in c.function.arguments.items() %}{{ k }}:"
                     "{{ '<|q|>' + v + '<|q|>' if v is string else v }}"
                     "{% if not loop.last %},{% endif %}{% endfor %}"
                     "{% raw %}}{% endraw %}<c|>", "")), "",
      { { "<|c>get{city:<|q|>\"A\"}\n<|q|>,days:2,deep:{a:[<|q|><|q|>]}}<c|>",
          "", "", "get{\"city\":\"\\\"A\\\"}\\n\",\"days\":2,\"deep\":{\"a\":"
          "[\"\"]}}" },
        { "<|c>now{}<c|><|c>get{city:<|q|>", "", "",
          "now{}get{\"city\":\"" } } },

    { "as in Python", TEMPLATE("{{ m.content }}{% if m.tool_calls %}<|c|>["
               CALLS(NAME "({% for k, v in c.function.arguments.items() %}"
                     "{{ k }}={{ v | tojson }}{% if not loop.last %}, "
                     "{% endif %}{% endfor %})", ", ")
               "]<|/c|>{% endif %}"), "",
      { { "<|c|>[get(city='A\\'s', days=3, deep={'a': (\"]\")}), now()]"
          "<|/c|>", "[get(city='A\\'s', days=3, deep={'a': (\"]\")}), "
          "now()]", "", "" },
        { "<|c|>[get(city='A\\'s', days=3, deep={'a': [\"]\"]}), now( )]"
          "<|/c|>", "", "", "get{\"city\": \"A's\", \"days\": 3, \"deep\": "
          "{\"a\": [\"]\"]}}now{}" },
        { "<|c|>[get(3)]<|/c|>", "[get(3)]", "", "" } } },

    { "nothing but an object", TEMPLATE("{% if m.tool_calls %}"
               CALLS("{\"name\": \"" NAME "\", \"parameters\": " ARGS "}",
                     "; ") "{% else %}{{ m.content }}{% endif %}"), "",
      { { "{\"name\": \"now\", \"parameters\": {}}", "", "", "now{}" },
        { "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"get\", "
          "\"parameters\": {\"days\": 1}}", "", "",
          "now{}get{\"days\": 1}" },
        { "{\"city\": \"Oslo\"}", "{\"city\": \"Oslo\"}", "", "" },
        { "{\"name\": \"Oslo\"}", "{\"name\": \"Oslo\"}", "", "" },
        { "{\"name\": \"now\"}", "{\"name\": \"now\"}", "", "" },
        { "As {\"name\": \"now\", \"parameters\": {}}",
          "As {\"name\": \"now\", \"parameters\": {}}", "", "" } } },

    { "no calls at all: what any model may use",
      TEMPLATE("{{ m.content }}"), "",
      { { "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
          "", "", "now{}" },
        { "<|tool_call_start|>[now()]<|tool_call_end|>", "", "", "now{}" },
        { "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]", "", "",
          "now{}" },
        { "<function=now>{}</function>", "", "", "now{}" },
        { "{\"name\": \"now\", \"arguments\": {}}", "", "", "now{}" },
        { "<think>x</think>y", "<think>x</think>y", "", "" } } },

    { "Llama's ways", TEMPLATE("{# <|python_tag|> #}{{ m.content }}"), "",
      { { "<|python_tag|>{\"name\": \"now\", \"parameters\": {}}", "", "",
          "now{}" },
        { "<|python_tag|>get.call(city=\"A\")", "", "",
          "get{\"city\": \"A\"}" },
        { "[get(days=1), now()]", "", "", "get{\"days\": 1}now{}" },
        { "[1, 2]", "[1, 2]", "", "" },
        { "get (it)", "get (it)", "", "" } } },

    { "DeepSeek, Mistral and Kimi by name",
      TEMPLATE("{# <｜tool▁call▁begin｜> [TOOL_CALLS] <|tool_call_begin|> "
               "#}{{ m.content }}"), "",
      { { "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>"
          "now\n```json\n{}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>"
          "function<｜tool▁sep｜>get\n```json\n{\"days\": 1}\n```"
          "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", "",
          "now{}get{\"days\": 1}" },
        { "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}"
          "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "", "", "now{}" },
        { "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}]", "", "",
          "now{}" },
        { "[TOOL_CALLS]now[ARGS]{}", "", "", "now{}" },
        { "[TOOL_CALLS]now[CALL_ID]123456789[ARGS]{}[TOOL_CALLS]get"
          "[ARGS]{}", "", "", "now{}get{}" },
        { "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0"
          "<|tool_call_argument_begin|>{}<|tool_call_end|>"
          "<|tool_calls_section_end|>", "", "", "now{}" } } },

    { "GLM, MiniMax and Qwen3-Coder by name",
      TEMPLATE("{# <arg_key> <parameter= minimax:tool_call #}"
               "{{ m.content }}"), "",
      { { "<tool_call>get\n<arg_key>city</arg_key>\n<arg_value>A</arg_value>"
          "\n</tool_call>", "", "", "get{\"city\": \"A\"}" },
        { "<tool_call>\n<function=get>\n<parameter=days>\n1\n</parameter>\n"
          "</function>\n</tool_call>", "", "", "get{\"days\": 1}" },
        { "<minimax:tool_call>\n<invoke name=\"get\">\n<parameter "
          "name=\"days\">1</parameter>\n</invoke>\n</minimax:tool_call>", "",
          "", "get{\"days\": 1}" } } },

    { "Granite, functionary and LFM by name",
      TEMPLATE("{# <|tool_call|> <function= <|tool_list_start|> #}"
               "{{ m.content }}"), "",
      { { "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}, "
          "{\"name\": \"get\", \"arguments\": {\"days\": 1}}]", "", "",
          "now{}get{\"days\": 1}" },
        { "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]"
          "<|/tool_call|>", "", "", "now{}" },
        { "<function=get>{\"days\": 1}</function>", "", "",
          "get{\"days\": 1}" },
        { "<|tool_call_start|>[get(days=1), now()]<|tool_call_end|>", "", "",
          "get{\"days\": 1}now{}" },
        { "{\"name\": \"now\", \"arguments\": {}}",
          "{\"name\": \"now\", \"arguments\": {}}", "", "" } } },

    { "Cohere's and functools by name",
      TEMPLATE("{# <|START_ACTION|> Action: ```json functools #}"
               "{{ m.content }}"), "",
      { { "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": "
          "\"now\", \"parameters\": {}}]<|END_ACTION|>", "", "", "now{}" },
        { "Action: ```json\n[{\"tool_name\": \"get\", \"parameters\": "
          "{\"days\": 1}}]\n```", "", "", "get{\"days\": 1}" },
        { "functools[{\"name\": \"now\", \"arguments\": {}}]", "", "",
          "now{}" },
        { "An Action: it is done.", "An Action: it is done.", "", "" } } },

    { "Llama's ways, by the role of its results",
      TEMPLATE("{# ipython #}{{ m.content }}"), "",
      { { "<|python_tag|>{\"name\": \"now\", \"parameters\": {}}", "", "",
          "now{}" },
        { "<|python_tag|>get.call(city=\"A\")", "", "",
          "get{\"city\": \"A\"}" } } },

    { "Qwen3-Coder's, and JSON between the same tags",
      TEMPLATE("{{ m.content }}"
               CALLS("<tool_call>\n<function=" NAME ">\n"
                     PARAMS("<parameter=", ">\n", "\n</parameter>\n")
                     "</function>\n</tool_call>", "\n")), "",
      { { "<tool_call>\n<function=get>\n<parameter=days>\n1\n</parameter>\n"
          "</function>\n</tool_call>", "", "", "get{\"days\": 1}" },
        { "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n"
          "</tool_call>", "", "", "now{}" },
        { "<tool_call> it", "<tool_call> it", "", "" } } },

    { "Mistral's of several years",
      TEMPLATE("{{ m.content }}" CALLS("[TOOL_CALLS]" NAME "[ARGS]" ARGS,
                                       "")), "",
      { { "[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]get[ARGS]{\"days\": 1}", "", "",
          "now{}get{\"days\": 1}" },
        { "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}]", "", "",
          "now{}" } } },

    { "harmony", TEMPLATE("{# <|channel|>analysis<|message|> #}"
                          "{{ m.content }}"), "",
      { { "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
          "<|channel|>final<|message|>Yes.", "Yes.", "Hm.", "" },
        { "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
          "<|channel|>commentary to=functions.get <|constrain|>json<|message|>"
          "{\"days\": 1}<|call|>", "", "Hm.", "get{\"days\": 1}" },
        { "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant "
          "to=functions.now<|channel|>commentary json<|message|>{}",
          "I look.", "", "now{}" } } },

    { "reasoning", TEMPLATE("<think>\n{{ m.reasoning_content }}\n</think>\n\n"
               "{{ m.content }}" CALLS("<call>" OBJECT "</call>", "")), "",
      { { "<think>\nHm.\n\nSo.\n</think>\n\nYes.\n", "Yes.\n", "Hm.\n\nSo.",
          "" },
        { "<think>\n\n</think>\n\n<call>{\"name\": \"now\", \"arguments\": {}}"
          "</call>", "", "", "now{}" },
        { "<think>I <call>{\"name\": \"now\", \"arguments\": {}}</call>"
          "</think><call>{\"name\": \"now\", \"arguments\": {}}</call>", "",
          "I <call>{\"name\": \"now\", \"arguments\": {}}</call>", "now{}" },
        { "No <think>, no </think>.", "No <think>, no </think>.", "", "" },
        { "<think>cut sh", "", "cut sh", "" },
        { "<think>a</thin", "", "a</thin", "" } } },

    { "reasoning that the prompt has opened",
      TEMPLATE("{{ '' if m.content is none else '' }}<think>\n"
               "{{ m.reasoning_content }}\n</think>\n\n{{ m.content }}")
      "{% if add_generation_prompt %}<think>\n{% endif %}", "<think>\n",
      { { "\nHm.\n</think>\n\nYes.", "Yes.", "Hm.", "" },
        { "</think>Yes.", "Yes.", "", "" },
        { "Hm.", "", "Hm.", "" } } },

    { "a form of its own, and the one that it is told of in text",
      "{# <|tool_list_start|> #}" TEMPLATE("{{ m.content }}"), "",
      { { "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
          "", "", "now{}" },
        { "<|tool_call_start|>[now()]<|tool_call_end|>", "", "",
          "now{}" } } },

    { "content with marks of its own",
      TEMPLATE("{% if m.reasoning_content %}<|T|>{{ m.reasoning_content }}"
               "<|/T|>{% endif %}{% if m.tool_calls %}<|A|>["
               CALLS(OBJECT, ",") "]<|/A|>{% else %}<|R|>{{ m.content }}"
               "<|/R|>{% endif %}"), "",
      { { "<|T|>Hm.<|/T|><|R|>Yes.<|/R|><|end|>", "Yes.", "Hm.", "" },
        { "<|R|>Yes.", "Yes.", "", "" },
        { "<|T|>Hm.<|/T|><|A|>[{\"name\": \"now\", \"arguments\": {}}]<|/A|>"
          "<|end|><|user|>", "", "Hm.", "now{}" } } }
};


/* ---- whole answers ---- */

static void
own_cases(void)
{
    size_t              i, k;
    heard_t             h;
    llm_buf_t           b;
    llm_err_t           err;
    llm_str_t           raw;
    llm_chat_t         *c;
    llm_tools_t         tools;
    const answer_t     *a;
    llm_answer_opts_t   o;

    llm_buf_init(&b, 0);

    if (llm_json_to_flat(TOOLS, strlen(TOOLS), NULL, &b, &err) != LLM_OK
        || llm_tools_init(&tools, (const llm_flat_t *) b.data) != LLM_OK)
    {
        ok(0, "the tools: %s", err.msg);
        return;
    }

    for (i = 0; i < llm_nelems(families); i++) {
        c = chat(families[i].name, families[i].source,
                 strlen(families[i].source));

        if (!ok(c != NULL, "%s: the template", families[i].name)) {
            continue;
        }

        o.format = llm_chat_format(c);
        o.tools = &tools;
        o.form = NULL;
        o.flags = LLM_ANSWER_REASONING|LLM_ANSWER_TOOLS;
        o.open = llm_answer_open(o.format,
                                 (llm_str_t) { strlen(families[i].prompt),
                                               families[i].prompt });

        for (k = 0; k < ANSWERS && families[i].answers[k].raw; k++) {
            a = &families[i].answers[k];
            raw = (llm_str_t) { strlen(a->raw), a->raw };

            listen(&o, raw, (int) raw.len, &h);
            ok(!h.wrong && is(&h.content, a->content)
               && is(&h.reasoning, a->reasoning) && is(&h.calls, a->calls)
               && cuts_agree(&o, raw, &h),
               "%s, %zu: %.40s", families[i].name, k, a->raw);
            heard_free(&h);
        }

        llm_chat_free(c);
    }

    llm_tools_free(&tools);
    llm_buf_free(&b);
}


/* ---- pieces of calls ---- */

/* what is looked for, and what is handed out of it */

static void
flags(void)
{
    size_t             i;
    heard_t            h;
    llm_chat_t        *c;
    llm_tools_t        tools = { 0, NULL };
    llm_answer_opts_t  o;

    static const char  source[] =
        TEMPLATE("<think>{{ m.reasoning_content }}</think>{{ m.content }}"
                 CALLS("<call>" OBJECT "</call>", ""));
    static const char  raw[] =
        "<think> a </think> b <call>{\"name\": \"now\", \"arguments\": {}}";

    static const struct {
        unsigned     flags;
        const char  *content;
        const char  *reasoning;
    } cases[] = {
        { 0, raw, "" },
        { LLM_ANSWER_REASONING, "b <call>{\"name\": \"now\", \"arguments\": "
          "{}}", "a" },
        { LLM_ANSWER_REASONING|LLM_ANSWER_HIDE,
          "b <call>{\"name\": \"now\", \"arguments\": {}}", "" },
        { LLM_ANSWER_TOOLS, "<think> a </think> b {\"name\": \"now\", "
          "\"arguments\": {}}", "" }
    };

    c = chat("flags", source, strlen(source));

    if (!ok(c != NULL, "a template with reasoning and calls")) {
        return;
    }

    o.format = llm_chat_format(c);
    o.tools = &tools;
    o.form = NULL;
    o.open = -1;

    for (i = 0; i < llm_nelems(cases); i++) {
        o.flags = cases[i].flags;
        listen(&o, llm_str(raw), 7, &h);
        ok(!h.wrong && is(&h.content, cases[i].content)
           && is(&h.reasoning, cases[i].reasoning) && is(&h.calls, ""),
           "what is looked for, %zu", i);
        heard_free(&h);
    }

    ok(llm_answer_knows(o.format, LLM_ANSWER_REASONING, llm_str("<think>")),
       "a token of a mark is known");
    ok(llm_answer_knows(o.format, LLM_ANSWER_TOOLS, llm_str("<call>")),
       "of a mark of calls, too");
    ok(!llm_answer_knows(o.format, LLM_ANSWER_REASONING, llm_str("<call>")),
       "unless calls are not looked for");
    ok(!llm_answer_knows(o.format, LLM_ANSWER_TOOLS, llm_str("<|pad|>")),
       "another is not");

    llm_chat_free(c);
}


/* a schema whose lists refer to each other is looked at for a while only */

static void
many_types(void)
{
    int          i;
    llm_buf_t    b, flat;
    llm_err_t    err;
    llm_tool_t   tool;

    llm_buf_init(&b, 0);
    llm_buf_init(&flat, 0);
    (void) llm_buf_adds(&b, "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/l\"},"
                        "\"s\":{\"anyOf\":[{\"$ref\":\"#/$defs/s\"}]}},"
                        "\"$defs\":{\"s\":{\"type\":\"string\"},"
                        "\"l\":{\"anyOf\":[");

    for (i = 0; i < 40; i++) {
        (void) llm_buf_adds(&b, i ? ",{\"$ref\":\"#/$defs/l\"}"
                                : "{\"$ref\":\"#/$defs/s\"}");
    }

    (void) llm_buf_adds(&b, "]}}}");

    ok(llm_json_to_flat(b.data, b.len, NULL, &flat, &err) == LLM_OK,
       "a schema of lists of itself");

    memset(&tool, 0, sizeof(tool));
    tool.schema = (const llm_flat_t *) flat.data;

    ok(llm_tool_takes_text(&tool, llm_str("a"))
       && llm_tool_takes_text(&tool, llm_str("s")), "has strings in it");

    llm_buf_free(&flat);
    llm_buf_free(&b);
}


/* what is read loosely has its types from the whole schema */

static void
loose_types(void)
{
    size_t       i;
    llm_buf_t    flat, out;
    llm_err_t    err;
    llm_loose_t  r;

    static const char  schema[] =
        "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/s\"},"
        "\"o\":{\"properties\":{\"n\":{\"$ref\":\"#/$defs/s\"}}},"
        "\"p\":{\"$ref\":\"#/$defs/p\"},"
        "\"l\":{\"items\":{\"$ref\":\"#/$defs/p\"}}},"
        "\"$defs\":{\"s\":{\"type\":\"string\"},"
        "\"p\":{\"properties\":{\"n\":{\"$ref\":\"#/$defs/s\"}}}}}";

    static const char *const  cases[][2] = {
        { "{a: two words}", "{\"a\": \"two words\"}" },
        { "{o: {n: two words}}", "{\"o\": {\"n\": \"two words\"}}" },
        { "{p: {n: two words}}", "{\"p\": {\"n\": \"two words\"}}" },
        { "{l: [{n: two words}]}", "{\"l\": [{\"n\": \"two words\"}]}" }
    };

    llm_buf_init(&flat, 0);
    llm_buf_init(&out, 0);
    (void) llm_json_to_flat(schema, strlen(schema), NULL, &flat, &err);

    for (i = 0; i < llm_nelems(cases); i++) {
        out.len = 0;
        memset(&r, 0, sizeof(r));
        r.p = cases[i][0];
        r.end = r.p + strlen(r.p);
        r.out = &out;
        r.closes = LLM_LOOSE_MARK;
        r.root = (const llm_flat_t *) flat.data;

        is_int(llm_loose_value(&r, r.root), LLM_OK, "%s", cases[i][0]);
        (void) llm_buf_add(&out, "", 1);
        is_str(out.data, cases[i][1], "%s: what it means", cases[i][0]);
    }

    llm_buf_free(&flat);
    llm_buf_free(&out);
}


int
main(void)
{
    srand(1);

    own_cases();
    flags();
    many_types();
    loose_types();

    return done_testing();
}
