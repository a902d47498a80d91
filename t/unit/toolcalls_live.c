/*
 * What answers mean while they come: what is handed out of a call when, and
 * where an answer that may have one call ends.
 */

#include "t/unit/heard.h"


/* what was handed out since the last push */
typedef struct {
    llm_buf_t   text;
    int         part;                   /* of the last of it, or -1 */
    uint32_t    call;
} notes_t;


static int
note(void *data, llm_part_t part, uint32_t call, llm_str_t text)
{
    notes_t  *n;

    static const char *const  names[] = { "", "think:", "name:", "" };

    n = data;

    if (n->part != (int) part || n->call != call) {
        (void) llm_buf_addf(&n->text, "%s%s", n->part < 0 ? "" : " ",
                            names[part]);
        n->part = (int) part;
        n->call = call;
    }

    return llm_buf_add(&n->text, text.data, text.len);
}


/* what is handed out when: | in the text is where it is cut; of the calls that
   have begun it is sure from there on */

static const struct {
    const char  *source;
    const char  *raw;
    const char  *want;
} pieces[] = {
    { TEMPLATE("{{ m.content }}" CALLS("<call>\n" OBJECT "\n</call>", "\n")),
      "Hm. |<call>|\n{\"name\": \"get|_all|\", \"arguments\": |{|\"c\": "
      "\"x|}|\"|}}|\n</call>|<call>\n{\"name\": \"now\", \"arguments\": {}}",
      "Hm.|[2]|||name:get_all|{|\"c\": \"x|}|\"|}||name:now {}|" },
    { TEMPLATE("{{ m.content }}{% if m.tool_calls %}[CALLS]["
               CALLS(OBJECT, ", ") "]{% endif %}"),
      "[CALLS]|[{\"name\": \"now\"|, \"arguments\": {}}, {\"name\": \"get\", "
      "\"arguments\": {\"days\":| 2}}]|",
      "[2]|name:now|{} name:get {\"days\":| 2}|" },
    { TEMPLATE("{{ m.content }}{% if m.tool_calls %}[CALLS]["
               CALLS(OBJECT, ", ") "]{% endif %}"),
      "[CALLS][{\"na|me\": \"now\", \"arguments\": {}}, {\"name\": \"get\"",
      "[2][{\"na|name:now {} name:get|" },
    { TEMPLATE("{{ m.content }}" CALLS("<c>" NAME "[ARGS]" ARGS "</c>", "")),
      "<c>ge|t_al|l[ARG|S]{\"a\"|: [1]}|</c>",
      "[2]ge|||name:get_all {\"a\"|: [1]}||" },
    { TEMPLATE("{{ m.content }}" CALLS("<tool>\n<f=" NAME ">\n"
               PARAMS("<p=", ">\n", "\n</p>\n") "</f>\n</tool>", "\n")),
      "<tool>|\n<f=get>|\n<p=city>\nOs|lo\n</p>|\n<p=days>\n3\n</p>\n</f>"
      "\n</tool>|",
      "[2]|name:get|||{\"city\": \"Oslo\", \"days\": 3}|" },
    { TEMPLATE("{% if m.tool_calls %}" CALLS("{\"name\": \"" NAME
               "\", \"parameters\": " ARGS "}", "")
               "{% else %}{{ m.content }}{% endif %}"),
      "{\"na|me\": \"no|w\"|, \"parameters\": {|}}",
      "||[3]{\"name\": \"now\"|name:now {|}|" },

    /* that escapes what no text may contain */
    { TEMPLATE("{{ m.content }}" CALLS("<call>\n" OBJECT "\n</call>", "\n")),
      "<call>|{\"name\": \"now\", \"arguments\": {\"a\": \"\\|u|0|000x\\|"
      "ud83d|\\ude00\\ud8|00|\\n\\udc00\"|}}|",
      "[2]|name:now {\"a\": \"|||\\ufffdx||\\ud83d\\ude00||"
      "\\ufffd\\n\\ufffd\"|}|" },

    /* that looks like one */
    { TEMPLATE("{% if m.tool_calls %}" CALLS("{\"name\": \"" NAME
               "\", \"parameters\": " ARGS "}", "")
               "{% else %}{{ m.content }}{% endif %}"),
      "{\"name\": \"no|body\"|}", "||{\"name\": \"nobody\"}|" },
    { TEMPLATE("<think>{{ m.reasoning_content }}</think>{{ m.content }}"
               CALLS("<call>\n" OBJECT "\n</call>", "\n")),
      "<think>a <call> |b</think><cal|ling>", "think:a|think: <call> b|<calling>|" },

    /* that is cut short */
    { TEMPLATE("{{ m.content }}" CALLS("<call>\n" OBJECT "\n</call>", "\n")),
      "<call>\n{\"name\"", "[2]\n{\"name\"|" },
    { TEMPLATE("{{ m.content }}" CALLS("<call>\n" OBJECT "\n</call>", "\n")),
      "<call>|{\"name\": \"now\"|", "[2]|name:now|" },
    { TEMPLATE("{{ m.content }}" CALLS("<call>\n" OBJECT "\n</call>", "\n")),
      "<call>|{\"name\": \"now\", \"arguments\": {\"a\": \"\\|",
      "[2]|name:now {\"a\": \"|" }
};


static void
in_pieces(void)
{
    int                 rc, sure;
    size_t              i;
    notes_t             got;
    llm_buf_t           b;
    llm_err_t           err;
    llm_str_t           rest;
    llm_chat_t         *c;
    llm_tools_t         tools;
    const char         *p, *end;
    llm_begun_t         how;
    llm_answer_t       *a;
    llm_answer_opts_t   o;

    llm_buf_init(&b, 0);

    if (llm_json_to_flat(TOOLS, strlen(TOOLS), NULL, &b, &err) != LLM_OK
        || llm_tools_init(&tools, (const llm_flat_t *) b.data) != LLM_OK)
    {
        ok(0, "the tools: %s", err.msg);
        return;
    }

    for (i = 0; i < llm_nelems(pieces); i++) {
        c = chat("pieces", pieces[i].source, strlen(pieces[i].source));
        llm_buf_init(&got.text, 0);

        o.format = llm_chat_format(c);
        o.tools = &tools;
        o.form = llm_calls_form(o.format);
        o.flags = LLM_ANSWER_REASONING|LLM_ANSWER_TOOLS;
        o.open = -1;

        a = llm_answer_create(&o, note, &got);
        rc = LLM_OK;
        sure = 0;

        for (p = pieces[i].raw; *p && rc == LLM_OK; p = end + (*end == '|')) {
            end = p + strcspn(p, "|");
            got.part = -1;
            rc = llm_answer_push(a, (llm_str_t) { (size_t) (end - p), p });
            how = sure ? LLM_BEGUN_NOT : llm_answer_begun(a, &rest);

            if (how != LLM_BEGUN_NOT) {
                (void) llm_buf_addf(&got.text, "[%d]%.*s", (int) how,
                                    (int) rest.len, rest.data);
                llm_answer_sure(a);
                sure = 1;
            }

            (void) llm_buf_addc(&got.text, '|');
        }

        got.part = -1;
        (void) llm_answer_end(a, LLM_TEXT_CUT);
        ok(is(&got.text, pieces[i].want), "pieces, %zu", i);

        llm_answer_free(a);
        llm_buf_free(&got.text);
        llm_chat_free(c);
    }

    llm_tools_free(&tools);
    llm_buf_free(&b);
}


/* an answer that may have one call ends behind it, however it comes */

static void
single(void)
{
    int                 rc, n;
    size_t              i, at, len;
    unsigned            sure;
    heard_t             h;
    llm_buf_t           b;
    llm_err_t           err;
    llm_chat_t         *c;
    llm_tools_t         tools;
    llm_answer_t       *a;
    llm_answer_opts_t   o;

    static const struct {
        const char  *source;
        const char  *raw;
    } cases[] = {
        { TEMPLATE("{{ m.content }}" CALLS("<c>" OBJECT "</c>", "")),
          "Hm <c>{\"name\": \"get\", \"arguments\": {\"days\": 1}}</c>"
          "<c>{\"name\": \"now\", \"arguments\": {}}</c>" },
        { TEMPLATE("{{ m.content }}{% if m.tool_calls %}[CALLS]["
                   CALLS(OBJECT, ", ") "]{% endif %}"),
          "Hm [CALLS][{\"name\": \"get\", \"arguments\": {\"days\": 1}}, "
          "{\"name\": \"now\", \"arguments\": {}}]" }
    };

    llm_buf_init(&b, 0);

    if (llm_json_to_flat(TOOLS, strlen(TOOLS), NULL, &b, &err) != LLM_OK
        || llm_tools_init(&tools, (const llm_flat_t *) b.data) != LLM_OK)
    {
        ok(0, "the tools: %s", err.msg);
        return;
    }

    for (i = 0; i < 2 * llm_nelems(cases); i++) {
        sure = i % 2 ? LLM_ANSWER_SURE : 0;
        c = chat("single", cases[i / 2].source, strlen(cases[i / 2].source));
        len = strlen(cases[i / 2].raw);

        o.format = llm_chat_format(c);
        o.tools = &tools;
        o.form = sure ? llm_calls_form(o.format) : NULL;
        o.flags = LLM_ANSWER_TOOLS|LLM_ANSWER_SINGLE|sure;
        o.open = -1;

        for (n = 1; n < 100; n += 49) {
            memset(&h, 0, sizeof(h));
            llm_buf_init(&h.content, 0);
            llm_buf_init(&h.calls, 0);

            a = llm_answer_create(&o, hear, &h);
            rc = LLM_OK;

            for (at = 0; at < len && rc == LLM_OK; at += (size_t) n) {
                rc = llm_answer_push(a, (llm_str_t) {
                    llm_min((size_t) n, len - at), cases[i / 2].raw + at });
            }

            ok(rc == LLM_STOPPED && h.n_calls == 1 && is(&h.content, "Hm")
               && is(&h.calls, "get{\"days\": 1}"),
               "one call, case %zu, %d bytes at a time", i, n);

            llm_answer_free(a);
            heard_free(&h);
        }

        llm_chat_free(c);
    }

    llm_tools_free(&tools);
    llm_buf_free(&b);
}


int
main(void)
{
    srand(1);

    in_pieces();
    single();

    return done_testing();
}
