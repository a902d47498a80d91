/*
 * The usage in answers of other servers: each form, in pieces of any size; texts
 * that look like one; objects that are too large, cut off or no usage.
 */

#include "engine/api/proxied.h"

#include "t/unit/tap.h"


static void
test_forms(void)
{
    size_t         i, len, cut;
    int            same;
    llm_proxied_t  p;

    static const struct {
        const char  *name;
        const char  *text;
        uint64_t     prompt;
        uint64_t     cached;
        uint64_t     answer;
        uint64_t     seconds;
        uint64_t     events;
    } forms[] = {
        { "a chat", "{\"choices\":[{\"message\":{\"content\":\"hi\"}}],"
          "\"usage\" : {\"prompt_tokens\":12,\"completion_tokens\": 3,"
          "\"total_tokens\":15,\"prompt_tokens_details\":{\"cached_tokens\":8}}}",
          12, 8, 3, 0, 0 },
        { "a stream", "data: {\"choices\":[],\"usage\":null}\n\n"
          "data:{\"choices\":[],\"usage\":{\"prompt_tokens\":5,"
          "\"completion_tokens\":1}}\n\n: ping\n\nevent: x\n"
          "data: {\"usage\":\n{\"prompt_tokens\":5,\"completion_tokens\":2}}\r\n"
          "\r\ndata: [DONE]\n\n", 5, 0, 2, 0, 3 },
        { "Responses", "event: response.completed\ndata: {\"response\":{"
          "\"tools\":[{\"parameters\":{\"properties\":{\"usage\":{\"type\":"
          "\"string\",\"input_tokens\":{\"type\":\"integer\"}}}}}],\"usage\":"
          "{\"input_tokens\":30,\"input_tokens_details\":{\"cached_tokens\":16},"
          "\"output_tokens\":7}}}\n\n", 30, 16, 7, 0, 1 },
        { "Messages", "event: message_start\ndata: {\"message\":{\"usage\":"
          "{\"input_tokens\":25,\"cache_read_input_tokens\":100,"
          "\"cache_creation_input_tokens\":5,\"output_tokens\":1}}}\n\n"
          "data: {\"usage\":{\"output_tokens\":15}}\n\n", 130, 100, 15, 0, 2 },
        { "a transcription", "{\"text\":\"a\",\"usage\":{\"type\":\"duration\","
          "\"seconds\":7.2}}", 0, 0, 0, 8, 0 },
        { "a text that quotes one", "{\"content\":\"\\\"usage\\\":{"
          "\\\"prompt_tokens\\\":9999}\",\"x\":\"usage\",\"usage\":"
          "{\"prompt_tokens\":1,\"note\":\"} \\\" }\",\"completion_tokens\":2}}",
          1, 0, 2, 0, 0 },
        { "two backslashes before the quote", "{\"a\":\"\\\\\",\"usage\":"
          "{\"prompt_tokens\":4}}", 4, 0, 0, 0, 0 },
        { "a name that begins twice", "{\"usage\"\"usage\":{\"prompt_tokens\":6}}",
          6, 0, 0, 0, 0 }
    };

    for (i = 0; i < llm_nelems(forms); i++) {
        len = strlen(forms[i].text);

        for (cut = 0, same = 1; cut <= len; cut++) {
            llm_proxied_init(&p);
            llm_proxied_read(&p, forms[i].text, cut);
            llm_proxied_read(&p, forms[i].text + cut, len - cut);

            same &= p.found && p.prompt == forms[i].prompt
                    && p.cached == forms[i].cached
                    && p.answer == forms[i].answer
                    && p.seconds == forms[i].seconds
                    && p.events == forms[i].events && p.bytes == len;
        }

        ok(same, "%s, cut anywhere: %u of %u cached, %u, %u s, %u events",
           forms[i].name, (unsigned) p.cached, (unsigned) p.prompt,
           (unsigned) p.answer, (unsigned) p.seconds, (unsigned) p.events);
    }
}


static void
test_others(void)
{
    size_t         i;
    llm_buf_t      b;
    llm_proxied_t  p;

    static const char  *const others[] = {
        "", "{}", "{\"usage\":{}}", "{\"usage\":{\"prompt_tokens\":5",
        "{\"usage\":{\"prompt_tokens\":-5,\"completion_tokens\":1e300}}",
        "{\"usage\":{\"prompt_tokens\":\"5\"}}", "{\"usage\":[{}]}",
        "{\"usage\":{\"prompt_tokens\":}}", "{\\\"usage\":{\"prompt_tokens\":5}}",
        "{\"usage_\":{\"prompt_tokens\":5}}", "{\"usage\"{\"prompt_tokens\":5}}"
    };

    for (i = 0; i < llm_nelems(others); i++) {
        llm_proxied_init(&p);
        llm_proxied_read(&p, others[i], strlen(others[i]));
        ok(!p.found && p.prompt == 0 && p.answer == 0, "no usage: %s",
           others[i]);
    }

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"usage\":{\"prompt_tokens\":5,\"x\":\"");

    while (b.len < LLM_PROXIED_OBJECT + 100) {
        (void) llm_buf_adds(&b, "too long, ");
    }

    (void) llm_buf_adds(&b, "\"},\"usage\":{\"prompt_tokens\":3}}");
    llm_proxied_init(&p);
    llm_proxied_read(&p, b.data, b.len);
    ok(p.found && p.prompt == 3, "an object that is too large is skipped");
    llm_buf_free(&b);
}


int
main(void)
{
    test_forms();
    test_others();

    return done_testing();
}
