/*
 * What a guard is told of a request: all that the client said, once, and the
 * server's word of whose it is.  In bodies ' stands for ".
 */

#include "t/unit/api_conf.h"
#include "t/unit/tap.h"


typedef struct {
    const llm_api_endpoint_t  *ep;
    const char                *tenant;
    const char                *body;
    const char                *want;
    const char                *what;
} told_t;


static const told_t  told[] = {
    { &llm_api_chat, "acme",
      "{'model':'MINI','messages':[{'role':'user','content':'h\\u00e9\\n'}],"
      "'temperature':0.5,'stream':true}",
      "{'request_id':'r-1','endpoint':'chat/completions','model':'demo',"
      "'tenant':'acme','messages':[{'role':'user','content':'h\xc3\xa9\\n'}],"
      "'temperature':0.5,'stream':true}",
      "a chat, by the model's own name" },
    { &llm_api_chat, "",
      "{'messages':[{'role':'user','content':'a'}],"
      "'chat_template_kwargs':{'x':[1,null]},'unknown':{}}",
      "{'request_id':'r-1','endpoint':'chat/completions','model':'demo',"
      "'tenant':null,'messages':[{'role':'user','content':'a'}],"
      "'chat_template_kwargs':{'x':[1,null]},'unknown':{}}",
      "without a tenant; all members, known or not" },
    { &llm_api_completions, "a\"b",
      "{'tenant':'me','request_id':1,'prompt':'no','endpoint':'x',"
      "'prompt':['yes',[]]}", NULL, "a prompt that is refused" },
    { &llm_api_completions, "a\"b",
      "{'tenant':'me','request_id':1,'prompt':'no','endpoint':'x',"
      "'prompt':'yes'}",
      "{'request_id':'r-1','endpoint':'completions','model':'demo',"
      "'tenant':'a\\'b','prompt':'yes'}",
      "the server's word, and of equal keys the one that counts" },
    { &llm_api_messages, "t",
      "{'model':'demo','max_tokens':4,'system':'s',"
      "'messages':[{'role':'user','content':'a'}]}",
      "{'request_id':'r-1','endpoint':'messages','model':'demo',"
      "'tenant':'t','max_tokens':4,'system':'s',"
      "'messages':[{'role':'user','content':'a'}]}",
      "Anthropic's form as it is" },
    { &llm_api_rerank, "t",
      "{'query':'q','documents':['a','b']}",
      "{'request_id':'r-1','endpoint':'rerank','model':'demo',"
      "'tenant':'t','query':'q','documents':['a','b']}",
      "what has several paths, by the first" },
    { &llm_api_tokenize, "t", "{'prompt':'a'}", "",
      "what needs no model: nothing" },
};


static const char *
quotes(const char *text, char *to)
{
    char  *p;

    for (p = to; *text; text++) {
        *p++ = *text == '\'' ? '"' : *text;
    }

    *p = '\0';

    return to;
}


static void
test_told(const told_t *t)
{
    char            body[512], want[512];
    llm_buf_t       msg, head, rest;
    llm_err_t       err;
    llm_str_t       tenant;
    llm_api_t      *a;
    llm_api_conf_t  c;

    llm_buf_init(&msg, 0);
    llm_buf_init(&head, 0);
    llm_buf_init(&rest, 0);

    c = conf;
    c.guard = &rest;

    quotes(t->body, body);
    a = llm_api_parse(t->ep, &c, body, strlen(body), &msg, &err);

    if (t->want == NULL) {
        ok(a == NULL, "%s: refused", t->what);
        goto done;
    }

    if (!ok(a != NULL, "%s: parsed", t->what)) {
        printf("# %s\n", err.msg);
        goto done;
    }

    if (*t->want == '\0') {
        is_int(rest.len, 0, "%s", t->what);
        goto done;
    }

    tenant.data = t->tenant;
    tenant.len = strlen(t->tenant);

    is_int(llm_api_guard_head(a, &c, llm_str("r-1"), tenant, &head), LLM_OK,
           "%s: a head", t->what);

    (void) llm_buf_add(&head, rest.data, rest.len);
    (void) llm_buf_addc(&head, '\0');

    quotes(t->want, want);

    is_str(head.data, want, "%s", t->what);

done:

    llm_api_free(a);
    llm_buf_free(&msg);
    llm_buf_free(&head);
    llm_buf_free(&rest);
}


/* without a guard nothing is written */

static void
test_none(void)
{
    char        body[128];
    llm_buf_t   msg;
    llm_err_t   err;
    llm_api_t  *a;

    llm_buf_init(&msg, 0);
    quotes("{'prompt':'a'}", body);

    a = llm_api_parse(COMPL, &conf, body, strlen(body), &msg, &err);
    ok(a != NULL, "a location without a guard");

    llm_api_free(a);
    llm_buf_free(&msg);
}


int
main(void)
{
    size_t  i;

    for (i = 0; i < llm_nelems(told); i++) {
        test_told(&told[i]);
    }

    test_none();

    return done_testing();
}
