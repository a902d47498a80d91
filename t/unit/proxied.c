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
          6, 0, 0, 0, 0 },
        { "what a client has sent", "data: {\"response\":{\"tools\":[{"
          "\"parameters\":{\"properties\":{\"usage\":{\"output_tokens\":900}}}}],"
          "\"usage\":null}}\n\ndata: {\"response\":{\"x\":[{\"usage\":"
          "{\"output_tokens\":800}}],\"usage\":{\"output_tokens\":5}}}\n\n",
          0, 0, 5, 0, 2 },
        { "Ollama's chat", "{\"model\":\"a\",\"message\":{\"role\":"
          "\"assistant\",\"content\":\"hi\",\"tool_calls\":[{\"function\":{"
          "\"arguments\":{\"eval_count\":900,\"usage\":{\"prompt_tokens\":"
          "90}}}}]},\"done_reason\":\"stop\",\"done\":true,"
          "\"prompt_eval_count\":26,\"prompt_eval_duration\":130079000,"
          "\"eval_count\" : 5 }", 26, 0, 5, 0, 0 },
        { "Ollama's stream", "{\"response\":\"\\\"eval_count\\\":7,\","
          "\"done\":false}\n{\"response\":\"eval_count\",\"done\": false}\r\n"
          "{\"response\":\"\",\"done\":true,\"context\":[1,2,{\"eval_count\":"
          "8}],\"prompt_eval_count\":11,\"eval_count\":20}\n",
          11, 0, 20, 0, 2 },
        { "Ollama's embeddings", "{\"embeddings\":[[0.5,1e-3],[1,2]],"
          "\"load_duration\":1019500,\"prompt_eval_count\":8}",
          8, 0, 0, 0, 0 },
        { "an Ollama that has loaded a model", "{\"response\":\"\","
          "\"done\":true,\"done_reason\":\"load\"}", 0, 0, 0, 0, 0 },
        { "a completion of llama-server", "{\"index\":0,\"content\":\"a\","
          "\"stop\":true,\"tokens_predicted\":8,\"tokens_evaluated\":30,"
          "\"generation_settings\":{\"stop\":[],\"tokens_evaluated\":99},"
          "\"timings\":{\"cache_n\":20,\"prompt_n\":10,\"predicted_n\":8}}",
          30, 20, 8, 0, 0 },
        { "its stream", "data: {\"content\":\"a\",\"stop\":false,"
          "\"tokens_predicted\":1,\"tokens_evaluated\":30}\n\n"
          "data: {\"content\":\"\",\"stop\":true,\"timings\":{\"cache_n\":50},"
          "\"tokens_evaluated\":30,\"tokens_predicted\":4}\n\n",
          30, 30, 4, 0, 2 },
        { "of two prompts", "[{\"stop\":true,\"tokens_predicted\":3,"
          "\"tokens_evaluated\":10,\"timings\":{\"cache_n\":2}},{\"x\":["
          "{\"eval_count\":70}],\"tokens_evaluated\":5,"
          "\"tokens_predicted\":4}]", 15, 2, 7, 0, 0 },
        { "streams of two prompts", "data: {\"index\":0,\"stop\":true,"
          "\"tokens_predicted\":3,\"tokens_evaluated\":10}\n\ndata: {\"index\":"
          "1,\"stop\":false,\"tokens_predicted\":2,\"tokens_evaluated\":5}\n\n"
          "data: {\"index\":1,\"stop\":true,\"tokens_predicted\":4,"
          "\"tokens_evaluated\":5}\n\n", 15, 0, 7, 0, 3 },
        { "a chat of llama-server", "{\"usage\":{\"prompt_tokens\":9,"
          "\"completion_tokens\":2},\"timings\":{\"cache_n\":4},"
          "\"__verbose\":{\"tokens_evaluated\":99,\"stop\":true}}",
          9, 0, 2, 0, 0 },
        { "an event that breaks off", "data: {\"a\":[[[\"x\n\ndata: {\"usage\":"
          "{\"output_tokens\":6}}\n\n", 0, 0, 6, 0, 2 }
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

        llm_proxied_init(&p);

        for (cut = 0; cut < len; cut++) {
            llm_proxied_read(&p, forms[i].text + cut, 1);
        }

        same &= p.found && p.prompt == forms[i].prompt
                && p.cached == forms[i].cached && p.answer == forms[i].answer
                && p.events == forms[i].events;

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
        "{\"usage\":{\"prompt_tokens\":}}", 
        "{\"usage_\":{\"prompt_tokens\":5}}", "{\"usage\"{\"prompt_tokens\":5}}",
        "{\"a\":{\"b\":{\"usage\":{\"prompt_tokens\":5}}}}",
        "{\"done\":false}\n", "{\"done\":\"true\"}", "{\"stop\":true}",
        "{\"eval_count\":\"5\"}", "{\"eval_count\":-5}",
        "{\"eval_count\":5", "{\"eval_count\":{\"a\":5},\"x\":[5]}",
        "{\"eval_count\":99999999999999999999999999999}",
        "{\"message\":{\"eval_count\":5}}", "[[{\"eval_count\":5}]]",
        "{\"eval_counts\":5}", "{\"eval_coun\":5}", "{\"eval_count\",5}",
        "{\"the_name_of_a_member_that_is_long_eval_count\":5}",
        "{\"timings\":{\"prompt_n\":5,\"cache_n\":5}}"
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

    b.len = 0;
    (void) llm_buf_adds(&b, "{\"response\":\"eval_count");

    while (b.len < 4 * LLM_PROXIED_OBJECT) {
        (void) llm_buf_adds(&b, " a long line");
    }

    (void) llm_buf_adds(&b, "\",\"eval_count\":");

    while (b.len < 6 * LLM_PROXIED_OBJECT) {
        (void) llm_buf_adds(&b, "0");
    }

    (void) llm_buf_adds(&b, "9,\"prompt_eval_count\":3,\"done\":true}\n");
    llm_proxied_init(&p);
    llm_proxied_read(&p, b.data, b.len);
    ok(p.found && p.prompt == 3 && p.answer == 0,
       "lines may have any length, their numbers not");
    llm_buf_free(&b);
}


int
main(void)
{
    test_forms();
    test_others();

    return done_testing();
}
