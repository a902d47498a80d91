/*
 * Any bytes as a chat template, with a fixed conversation and small limits:
 * it compiles or not, renders or not, but does no harm.
 */

#include "engine/api/arguments.h"
#include "engine/text/chat/chat.h"

#include <stdio.h>

static const char  request[] =
    "{\"messages\":["
    "{\"role\":\"system\",\"content\":\"You are terse.\"},"
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
    "\"Gr\\u00fc\\u00dfe <|im_start|>\"}]},"
    "{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"Hm\","
    "\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\",\"function\":"
    "{\"name\":\"f\",\"arguments\":\"{\\\"a\\\": [1, 2.5, null]}\"}}]},"
    "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"20\"}],"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
    "\"array\"}}}}}],"
    "\"chat_template_kwargs\":{\"x\":3,\"y\":0.5,\"s\":\"a,b c\"}}";


/* the conversation as engine/api leaves it */

static void
fuzz_request(llm_buf_t *b)
{
    llm_buf_t          flat;
    llm_err_t          err;
    llm_json_limits_t  limits = { LLM_FLAT_MAX_DEPTH, LLM_JSON_MAX_VALUES,
                                  0 };

    llm_buf_init(&flat, 0);

    if (llm_json_to_flat(request, sizeof(request) - 1, &limits, &flat, &err)
        != LLM_OK
        || llm_args_add_request((llm_flat_t *) flat.data, &limits, b, &err)
           != LLM_OK)
    {
        abort();
    }

    llm_buf_free(&flat);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t             i, end;
    llm_buf_t          b;
    llm_err_t          err;
    llm_chat_t        *c;
    llm_prompt_t       p;
    llm_jinja_opts_t   opts;

    memset(&opts, 0, sizeof(opts));
    opts.max_steps = 20000;
    opts.max_memory = 4 << 20;
    opts.max_output = 1 << 20;
    opts.now = 1700000000;

    c = llm_chat_create((llm_str_t) { size, (const char *) data },
                        llm_str("<s>"), llm_str("</s>"), &err);
    if (c == NULL) {
        return 0;
    }

    llm_buf_init(&b, 0);
    fuzz_request(&b);

    if (llm_chat_render(c, (llm_flat_t *) b.data, &opts, &p, NULL,
                        &err) == LLM_OK)
    {
        for (i = 0, end = 0; i < p.n_trusted; i++) {
            if (p.trusted[i].start < end
                || p.trusted[i].end <= p.trusted[i].start
                || p.trusted[i].end > p.len)
            {
                abort();
            }

            end = p.trusted[i].end;
        }

        llm_prompt_free(&p);
    }

    llm_buf_free(&b);
    llm_chat_free(c);

    return 0;
}
