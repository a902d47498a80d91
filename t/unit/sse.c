/*
 * Streams: events in, frames out, compared byte by byte and read back with
 * cJSON.
 */

#include "t/unit/sse.h"

#include <cjson/cJSON.h>


static void
test_chat_stream(void)
{
    llm_api_usage_t  u;

    begin(&llm_api_chat, ",'stream':true");
    ok(llm_api_is_stream(a), "it is a stream");

    feed_start();
    is_out(CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "the first delta has the role");

    feed_text("2 + 2\n= \"4\"\xc3\xa9");
    is_out(CHUNK "{\"index\":0,\"delta\":{\"content\":"
           "\"2 + 2\\n= \\\"4\\\"\xc3\xa9\"},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "text");

    feed_text("");
    is_out("", "no text, no frame");

    feed_finish(0, LLM_FINISH_LENGTH);
    is_out(CHUNK "{\"index\":0,\"delta\":{},\"logprobs\":null,"
           "\"finish_reason\":\"length\"}]}\n\n", "the end of a choice");

    feed_done();
    is_out("data: [DONE]\n\n", "the end");

    llm_api_usage(a, &u);
    ok(u.prompt_tokens == 11 && u.cached_tokens == 8
       && u.completion_tokens == 5 && u.queue_us == 1 && u.ttft_us == 2
       && u.total_us == 3 && strcmp(u.finish_reason, "length") == 0,
       "the figures");
    end();

    begin(&llm_api_chat, ",'stream':true,'n':2,"
          "'stream_options':{'include_usage':true}");
    feed_start();
    is_out(CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n"
           CHUNK "{\"index\":1,\"delta\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n",
           "a role for each choice");

    feed_finish(1, LLM_FINISH_STOP);
    is_out(CHUNK "{\"index\":1,\"delta\":{},\"logprobs\":null,"
           "\"finish_reason\":\"stop\"}]}\n\n",
           "usage is in the last chunk alone");

    feed_done();
    is_out(CHUNK "],\"usage\":" USAGE "}\n\ndata: [DONE]\n\n",
           "the figures in a chunk without choices");
    end();
}


static void
test_parts(void)
{
    event_t  e;

    begin(&llm_api_chat, ",'stream':true");

    e = text_event(0, LLM_PART_REASONING, 0, "hm\t");
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\\t\","
           "\"reasoning\":\"hm\\t\"},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "reasoning");

    e = text_event(0, LLM_PART_TOOL_NAME, 1, "get");
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,"
           "\"id\":\"call_deadbeef_0_1\",\"type\":\"function\",\"function\":"
           "{\"name\":\"get\",\"arguments\":\"\"}}]},\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "a call begins");

    e = text_event(0, LLM_PART_TOOL_ARGS, 1, "{\"a\":");
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,"
           "\"function\":{\"arguments\":\"{\\\"a\\\":\"}}]},"
           "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
           "its arguments");

    feed_finish(0, LLM_FINISH_TOOL_CALLS);
    is_out(CHUNK "{\"index\":0,\"delta\":{},\"logprobs\":null,"
           "\"finish_reason\":\"tool_calls\"}]}\n\n", "it ends in calls");
    end();

    begin(&llm_api_chat, "");
    feed_start();
    e = text_event(0, LLM_PART_REASONING, 0, "hm");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_NAME, 0, "get");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_ARGS, 0, "{\"a\":");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_ARGS, 0, "1}");
    feed(&e);
    e = text_event(0, LLM_PART_TOOL_NAME, 1, "put");
    feed(&e);
    feed_finish(0, LLM_FINISH_TOOL_CALLS);
    is_out("", "nothing is said before the end");

    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":null,\"refusal\":null,\"reasoning_content\":\"hm\","
           "\"reasoning\":\"hm\","
           "\"tool_calls\":[{\"id\":\"call_deadbeef_0_0\",\"type\":"
           "\"function\",\"function\":{\"name\":\"get\",\"arguments\":"
           "\"{\\\"a\\\":1}\"}},{\"id\":\"call_deadbeef_0_1\",\"type\":"
           "\"function\",\"function\":{\"name\":\"put\",\"arguments\":\"\"}}"
           "]},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}],"
           "\"usage\":" USAGE "}", "calls and reasoning in a body");
    end();
}


static void
test_completion_stream(void)
{
    event_t  e;

    begin(&llm_api_completions, ",'stream':true,'return_token_ids':true,"
          "'stream_options':{'include_usage':true}");

    feed_start();
    is_out("", "completions have no role");

    e = prompt_event(0, 1);
    add_id(&e, 5);
    feed(&e);
    is_out("", "half of the prompt's ids");

    e = prompt_event(0, 0);
    add_id(&e, 6);
    feed(&e);
    is_out("", "all of them");

    e = text_event(0, LLM_PART_CONTENT, 0, "a");
    feed(&e);
    is_out(TEXT "{\"index\":0,\"text\":\"a\",\"prompt_token_ids\":[5,6],"
           "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
           "they are in the first chunk");
    feed(&e);
    is_out(TEXT "{\"index\":0,\"text\":\"a\","
           "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
           "and in no other");

    e = prompt_event(1, 0);
    add_id(&e, 7);
    feed(&e);

    e = text_event(1, LLM_PART_CONTENT, 0, " once");
    add_id(&e, 42);
    feed(&e);
    is_out(TEXT "{\"index\":1,\"text\":\" once\",\"prompt_token_ids\":[7],"
           "\"logprobs\":null,\"finish_reason\":null,"
           "\"token_ids\":[42]}]}\n\n",
           "text of the second prompt, with its ids");

    feed_finish(1, LLM_FINISH_STOP);
    is_out(TEXT "{\"index\":1,\"text\":\"\",\"logprobs\":null,"
           "\"finish_reason\":\"stop\",\"token_ids\":[]}]}\n\n",
           "the end of a choice");

    feed_done();
    is_out(TEXT "],\"usage\":" USAGE "}\n\ndata: [DONE]\n\n", "the end");
    end();
}


/* the ids of a chat's prompt are in the first chunk */

static void
test_prompt_ids(void)
{
    event_t  e;

    begin(&llm_api_chat, ",'stream':true,'return_token_ids':true");
    feed_start();
    is_out("", "the role waits for them");

    e = prompt_event(0, 0);
    add_id(&e, 5);
    add_id(&e, 6);
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":null}],\"prompt_token_ids\":[5,6]}\n\n",
           "the role and the ids");

    e = text_event(0, LLM_PART_CONTENT, 0, "a");
    add_id(&e, 7);
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"content\":\"a\"},"
           "\"logprobs\":null,\"finish_reason\":null,"
           "\"token_ids\":[7]}]}\n\n", "text and its ids");

    feed_finish(0, LLM_FINISH_STOP);
    is_out(CHUNK "{\"index\":0,\"delta\":{},\"logprobs\":null,"
           "\"finish_reason\":\"stop\",\"token_ids\":[]}]}\n\n", "the end");
    end();
}


/* usage in every chunk, as vLLM has it: only if it is wanted at all */

#define SO_FAR(n, all)                                                       \
    "{\"prompt_tokens\":11,\"completion_tokens\":" n ",\"total_tokens\":"    \
    all ",\"prompt_tokens_details\":{\"cached_tokens\":8,"                   \
    "\"audio_tokens\":0},\"completion_tokens_details\":{"                    \
    "\"reasoning_tokens\":0,\"audio_tokens\":0,"                             \
    "\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}"

static void
test_continuous_usage(void)
{
    begin(&llm_api_completions, ",'stream':true,'stream_options':"
          "{'continuous_usage_stats':true,'include_usage':true}");
    feed_start();
    feed_text("a");
    is_out(TEXT "{\"index\":0,\"text\":\"a\",\"logprobs\":null,"
           "\"finish_reason\":null}],\"usage\":" SO_FAR("1", "12") "}\n\n",
           "the figures so far");
    feed_text("b");
    is_out(TEXT "{\"index\":0,\"text\":\"b\",\"logprobs\":null,"
           "\"finish_reason\":null}],\"usage\":" SO_FAR("2", "13") "}\n\n",
           "in each chunk");
    feed_done();
    is_out(TEXT "],\"usage\":" USAGE "}\n\ndata: [DONE]\n\n",
           "and all of them in the last");
    end();

    begin(&llm_api_completions, ",'stream':true,'stream_options':"
          "{'continuous_usage_stats':true,'include_usage':false}");
    feed_start();
    feed_text("a");
    is_out(TEXT "{\"index\":0,\"text\":\"a\",\"logprobs\":null,"
           "\"finish_reason\":null}]}\n\n", "none if none are wanted");
    end();
}


/* tokens are counted as they come: who is cut short has had these */

static void
test_counts(void)
{
    event_t          e;
    llm_api_usage_t  u;

    begin(&llm_api_completions, ",'stream':true");
    feed_start();
    feed_text("a");
    feed_text("b");
    llm_api_usage(a, &u);
    is_int(u.completion_tokens, 2, "two tokens so far");

    feed_finish(0, LLM_FINISH_STOP);
    llm_api_usage(a, &u);
    is_int(u.completion_tokens, 5, "the end of a choice says all of its");

    e = text_event(1, LLM_PART_CONTENT, 0, "c");
    e.ev.u.text.n_tokens = 3;
    feed(&e);
    llm_api_usage(a, &u);
    is_int(u.completion_tokens, 8, "and those of another choice");
    end();
}


static void
test_failures(void)
{
    begin(&llm_api_chat, ",'stream':true");
    ok(feed_error() == LLM_ERROR && err.status == 400 && out.len == 0
       && strcmp(err.code, "context_length_exceeded") == 0
       && strcmp(err.param, "messages") == 0
       && strcmp(err.msg, "too long") == 0,
       "before a stream begins an error is a real one");
    end();

    begin(&llm_api_chat, ",'stream':true");
    feed_start();
    out.len = 0;
    is_int(feed_error(), LLM_OK, "in a stream");
    is_out("data: {\"error\":{\"message\":\"too long\",\"type\":"
           "\"invalid_request_error\",\"param\":\"messages\",\"code\":"
           "\"context_length_exceeded\"}}\n\n", "it is a frame");
    end();

    begin(&llm_api_chat, "");
    feed_start();
    feed_text("x");
    ok(feed_error() == LLM_ERROR && err.status == 400 && out.len == 0,
       "not streaming, it is a real one at any time");
    end();

    begin(&llm_api_chat, ",'stream':true");
    llm_buf_free(&out);
    llm_buf_init(&out, 100);
    ok(feed_start() == LLM_ERROR && err.status == 500, "no room: 500");
    end();
}


/* every frame is JSON behind "data: ", whatever the text */

static void
test_reads_back(void)
{
    char      text[4], *line, *next;
    cJSON    *v, *content;
    size_t    wrong;
    uint32_t  c;

    begin(&llm_api_chat, ",'stream':true");
    wrong = 0;

    for (c = 1; c < 0x80; c++) {
        text[0] = (char) c;
        text[1] = 'z';
        text[2] = '\0';

        out.len = 0;
        feed_text(text);

        line = out.data + 6;
        next = strstr(line, "\n\n");
        v = cJSON_ParseWithLength(line, (size_t) (next - line));
        content = cJSON_GetObjectItem(
                      cJSON_GetObjectItem(
                          cJSON_GetArrayItem(
                              cJSON_GetObjectItem(v, "choices"), 0),
                          "delta"),
                      "content");

        wrong += memcmp(out.data, "data: ", 6) != 0
                 || next != out.data + out.len - 2
                 || strchr(line, '\n') != next
                 || !cJSON_IsString(content)
                 || strcmp(content->valuestring, text) != 0;

        cJSON_Delete(v);
    }

    is_int(wrong, 0, "each character reads back from its frame");
    end();
}


static void
test_speed(void)
{
    uint32_t  i;
    uint64_t  start;
    event_t   e;

    begin(&llm_api_chat, ",'stream':true");
    e = text_event(0, LLM_PART_CONTENT, 0, " token");
    start = llm_now_us();

    for (i = 0; i < 100000; i++) {
        out.len = 0;
        feed(&e);
    }

    printf("# a frame takes %.3f us\n",
           (double) (llm_now_us() - start) / 100000);
    ok(out.len > 200, "many frames");
    end();
}


int
main(void)
{
    test_chat_stream();
    test_parts();
    test_completion_stream();
    test_prompt_ids();
    test_continuous_usage();
    test_counts();
    test_failures();
    test_reads_back();
    test_speed();

    return done_testing();
}
