/*
 * Marks of channels in what an assistant has said: which templates refuse
 * them, and what is read of them.  In requests ' stands for ".
 */

#include "engine/api/json.h"
#include "engine/text/chat/internal.h"
#include "t/unit/api_dump.h"
#include "t/unit/tap.h"

#define STRICT                                                               \
    "{% for m in messages %}{% if m.role == 'assistant' and "                \
    "'<|channel|>final<|message|>' in m.content %}"                          \
    "{{ raise_exception('marks') }}{% endif %}[{{ m.content }}]{% endfor %}"


static int
refuses(const char *src)
{
    int          no;
    llm_err_t    err;
    llm_chat_t  *c;

    c = llm_chat_create((llm_str_t) { strlen(src), src }, llm_str(""),
                        llm_str(""), &err);
    no = c ? c->no_marks : -1;
    llm_chat_free(c);

    return no;
}


/* the assistant's message behind one of a user, and what is read of it */

static void
reads(const char *said, const char *want)
{
    char              *text;
    llm_buf_t          flat, b, all, json;
    llm_err_t          err;
    const llm_flat_t  *request;

    llm_buf_init(&all, 0);
    llm_buf_init(&flat, 0);
    llm_buf_init(&b, 0);
    llm_buf_init(&json, 0);

    llm_buf_addf(&all, "{'messages':[{'role':'user','content':"
                 "'<|channel|>final<|message|>'},%s],'x':1}", said);
    text = quoted(all.data);

    ok(llm_json_to_flat(text, strlen(text), NULL, &flat, &err) == LLM_OK,
       "%s", said);
    request = llm_chat_unmark((const llm_flat_t *) flat.data, &b);

    ok(request && (request == (const llm_flat_t *) flat.data
                   || llm_flat_check(b.data, b.len) == LLM_OK), "is sound");
    ok((want == NULL) == (request == (const llm_flat_t *) flat.data),
       "is a copy only where there is something to do");

    free(text);
    all.len = 0;
    llm_buf_addf(&all, "{'messages':[{'role':'user','content':"
                 "'<|channel|>final<|message|>'},%s],'x':1}",
                 want ? want : said);
    text = quoted(all.data);

    llm_json_add_flat(&json, request);
    is_str(json.data, text, "what is read");

    free(text);
    llm_buf_free(&all);
    llm_buf_free(&flat);
    llm_buf_free(&b);
    llm_buf_free(&json);
}


#define SAID(content)  "{'role':'assistant','content':'" content "'}"
#define READ(content, thinking)                                              \
    "{'role':'assistant','content':'" content "','thinking':'" thinking "'}"
#define FINAL     "<|channel|>final<|message|>"
#define ANALYSIS  "<|channel|>analysis<|message|>"
#define NEXT      "<|end|><|start|>assistant"


int
main(void)
{
    is_int(refuses(STRICT), 1, "a template that refuses them");
    is_int(refuses("{% for m in messages %}{{ m.content }}{% endfor %}"), 0,
           "one that does not");
    is_int(refuses("{% for m in messages %}{% if m.role == 'assistant' %}"
                   "{{ raise_exception('no') }}{% endif %}{% endfor %}"), 0,
           "one that refuses all answers");

    reads(SAID("Yes."), NULL);
    reads(SAID(FINAL "Yes."), SAID("Yes."));
    reads(SAID(ANALYSIS "Hm." NEXT FINAL "Yes.<|return|>"),
          READ("Yes.", "Hm."));
    reads(SAID("<|start|>assistant" ANALYSIS "Hm." NEXT ANALYSIS "So." NEXT
               FINAL "Yes." NEXT FINAL "No.<|end|>"),
          READ("Yes.\\nNo.", "Hm.\\nSo."));
    reads(SAID(ANALYSIS "Hm." FINAL "Yes."), READ("Yes.", "Hm."));
    reads(SAID("<|channel|>commentary to=functions.f <|constrain|>json"
               "<|message|>{}<|call|>"), SAID("{}"));
    reads(SAID("<|start|>assistant<|message|>Yes." NEXT FINAL "No."),
          SAID("Yes.\\nNo."));
    reads(SAID(ANALYSIS "Hm."), READ("", "Hm."));
    reads(SAID(ANALYSIS), SAID(""));
    reads(SAID("<|channel|>"), SAID("<|channel|>"));
    reads(SAID("a <|channel|>final b <|end| <|"),
          SAID("a <|channel|>final b <|end| <|"));
    reads(SAID("The <|channel|> is " FINAL "this"),
          SAID("The <|channel|> is \\nthis"));
    reads(SAID("See: " FINAL "this"), SAID("See: \\nthis"));
    reads("{'role':'assistant','content':[{'type':'text','text':'" FINAL
          "a'},{'type':'text','text':'b'}],'tool_calls':[]}",
          "{'role':'assistant','tool_calls':[],'content':'a\\nb'}");
    reads("{'role':'assistant','content':'" ANALYSIS "x" FINAL "a',"
          "'reasoning_content':'Own.'}", READ("a", "Own."));
    reads("{'role':'assistant','content':'a','reasoning_content':'" ANALYSIS
          "b" NEXT "<|channel|>commentary<|message|>c'}", READ("a", "b\\nc"));
    reads("{'role':'assistant','content':null,'thinking':'" ANALYSIS "b'}",
          READ("", "b"));
    reads("{'role':'assistant','content':null}", NULL);
    reads("{'role':'assistant'},7", NULL);
    reads("{'role':'tool','content':'" FINAL "'}", NULL);

    return done_testing();
}
