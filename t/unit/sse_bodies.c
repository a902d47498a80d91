/*
 * Bodies of answers that are not streamed, and the probabilities in them and in
 * frames, compared byte by byte.
 */

#include "t/unit/sse.h"


static void
test_bodies(void)
{
    event_t  e;

    begin(&llm_api_chat, ",'n':2");
    feed_start();
    feed_text("on");
    e = text_event(1, LLM_PART_CONTENT, 0, "tw\"o");
    feed(&e);
    feed_text("e\n");
    feed_finish(1, LLM_FINISH_LENGTH);
    feed_finish(0, LLM_FINISH_STOP);
    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":\"one\\n\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":\"stop\"},{\"index\":1,\"message\":{\"role\":"
           "\"assistant\",\"content\":\"tw\\\"o\",\"refusal\":null},"
           "\"logprobs\":null,\"finish_reason\":\"length\"}],\"usage\":"
           USAGE "}", "a chat body of two choices");
    end();

    begin(&llm_api_chat, "");
    feed_start();
    feed_finish(0, LLM_FINISH_STOP);
    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":\"\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":\"stop\"}],\"usage\":" USAGE "}",
           "nothing said is an empty string");
    end();

    begin(&llm_api_completions, ",'return_token_ids':true");
    feed_start();
    e = prompt_event(0, 1);
    add_id(&e, 5);
    feed(&e);
    e = prompt_event(1, 0);
    add_id(&e, 4);
    feed(&e);
    e = prompt_event(0, 0);
    add_id(&e, 6);
    feed(&e);
    e = text_event(0, LLM_PART_CONTENT, 0, "x");
    add_id(&e, 7);
    add_id(&e, 8);
    feed(&e);
    e = text_event(0, LLM_PART_CONTENT, 0, "");
    add_id(&e, 9);
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_finish(1, LLM_FINISH_LENGTH);
    feed_done();
    is_out(HEAD("cmpl-", "text_completion")
           "{\"index\":0,\"text\":\"x\",\"logprobs\":null,"
           "\"finish_reason\":\"stop\",\"prompt_token_ids\":[5,6],"
           "\"token_ids\":[7,8,9]},"
           "{\"index\":1,\"text\":\"\",\"logprobs\":null,"
           "\"finish_reason\":\"length\",\"prompt_token_ids\":[4],"
           "\"token_ids\":[]}],\"usage\":"
           USAGE "}", "a completion of two prompts, with token ids");
    end();

    begin(&llm_api_chat, ",'return_token_ids':true");
    feed_start();
    e = prompt_event(0, 0);
    add_id(&e, 5);
    add_id(&e, 6);
    feed(&e);
    e = text_event(0, LLM_PART_CONTENT, 0, "x");
    add_id(&e, 7);
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_done();
    is_out(HEAD("chatcmpl-", "chat.completion")
           "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":\"x\",\"refusal\":null},\"logprobs\":null,"
           "\"finish_reason\":\"stop\",\"token_ids\":[7]}],"
           "\"prompt_token_ids\":[5,6],\"usage\":" USAGE "}",
           "a chat with token ids");
    end();
}


/* two tokens: one a whole character, one the half of one */

static event_t
logprob_event(int n_top)
{
    event_t  e;

    e = text_event(0, LLM_PART_CONTENT, 0, "\xc3\xa9h");

    add_token(&e, 5, -0.5f, 0, "\xc3\xa9h");

    if (n_top) {
        add_top(&e, 6, -0.25f, "a\"");
        add_top(&e, 5, -0.5f, "\xc3\xa9h");
    }

    add_token(&e, 9, -3.25f, 3, "x\xe2\x82");

    if (n_top) {
        add_top(&e, 6, -0.25f, "a\"");
        add_top(&e, 7, -INFINITY, "b");
        add_top(&e, 9, -3.25f, "x\xe2\x82");
    }

    return e;
}


#define T5  "\"token\":\"\xc3\xa9h\",\"logprob\":-0.500000000,"              \
            "\"bytes\":[195,169,104]"
#define T6  "\"token\":\"a\\\"\",\"logprob\":-0.250000000,\"bytes\":[97,34]"
#define T9  "\"token\":\"x\\\\xe2\\\\x82\",\"logprob\":-3.250000000,"        \
            "\"bytes\":[120,226,130]"

static void
test_logprobs(void)
{
    event_t  e;

    begin(&llm_api_chat, ",'stream':true,'logprobs':true,'top_logprobs':2");
    e = logprob_event(1);
    feed(&e);
    is_out(CHUNK "{\"index\":0,\"delta\":{\"content\":\"\xc3\xa9h\"},"
           "\"logprobs\":{\"content\":["
           "{" T5 ",\"top_logprobs\":[{" T6 "},{" T5 "}]},"
           "{" T9 ",\"top_logprobs\":[{" T6 "},{" T9 "}]}],"
           "\"refusal\":null},\"finish_reason\":null}]}\n\n",
           "chat: two rivals each, the sampled token among them");

    feed_text("plain");
    is_out(CHUNK "{\"index\":0,\"delta\":{\"content\":\"plain\"},"
           "\"logprobs\":null,\"finish_reason\":null}]}\n\n",
           "text that has none");
    end();

    begin(&llm_api_chat, ",'logprobs':true");
    e = logprob_event(0);
    feed(&e);
    e = logprob_event(0);
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_done();
    is_out(BODY "{\"index\":0,\"message\":{\"role\":\"assistant\","
           "\"content\":\"\xc3\xa9h\xc3\xa9h\",\"refusal\":null},"
           "\"logprobs\":{\"content\":["
           "{" T5 ",\"top_logprobs\":[]},{" T9 ",\"top_logprobs\":[]},"
           "{" T5 ",\"top_logprobs\":[]},{" T9 ",\"top_logprobs\":[]}],"
           "\"refusal\":null},\"finish_reason\":\"stop\"}],\"usage\":"
           USAGE "}", "chat: gathered in a body");
    end();

    begin(&llm_api_completions, ",'stream':true,'logprobs':2");
    e = logprob_event(1);
    feed(&e);
    is_out(TEXT "{\"index\":0,\"text\":\"\xc3\xa9h\",\"logprobs\":{"
           "\"tokens\":[\"\xc3\xa9h\",\"bytes:\\\\x78\\\\xe2\\\\x82\"],"
           "\"token_logprobs\":[-0.500000000,-3.250000000],"
           "\"top_logprobs\":[{\"\xc3\xa9h\":-0.500000000,"
           "\"a\\\"\":-0.250000000},"
           "{\"bytes:\\\\x78\\\\xe2\\\\x82\":-3.250000000,"
           "\"a\\\"\":-0.250000000,\"b\":-9999.000000000}],"
           "\"text_offset\":[0,2]},\"finish_reason\":null}]}\n\n",
           "completions: four arrays, offsets in characters");

    e = text_event(0, LLM_PART_CONTENT, 0, "zz\xe2\x82\xac!");
    add_token(&e, 1, -1, 3, "zz\xe2\x82\xac");
    add_token(&e, 2, -2, 8, "!");
    feed(&e);
    is_out(TEXT "{\"index\":0,\"text\":\"zz\xe2\x82\xac!\",\"logprobs\":{"
           "\"tokens\":[\"zz\xe2\x82\xac\",\"!\"],"
           "\"token_logprobs\":[-1.000000000,-2.000000000],"
           "\"top_logprobs\":[{\"zz\xe2\x82\xac\":-1.000000000},"
           "{\"!\":-2.000000000}],"
           "\"text_offset\":[2,5]},\"finish_reason\":null}]}\n\n",
           "offsets go on from event to event");
    end();

    begin(&llm_api_completions, ",'logprobs':0,'echo':true");
    e = text_event(0, LLM_PART_CONTENT, 0, "ab");
    add_token(&e, 1, NAN, 0, "a");
    add_token(&e, 2, 0, 1, "b");
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_finish(1, LLM_FINISH_STOP);
    feed_done();
    is_out(HEAD("cmpl-", "text_completion")
           "{\"index\":0,\"text\":\"ab\",\"logprobs\":{"
           "\"tokens\":[\"a\",\"b\"],\"token_logprobs\":[null,0.000000000],"
           "\"top_logprobs\":[null,{\"b\":0.000000000}],"
           "\"text_offset\":[0,1]},\"finish_reason\":\"stop\"},"
           "{\"index\":1,\"text\":\"\",\"logprobs\":{\"tokens\":[],"
           "\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]},"
           "\"finish_reason\":\"stop\"}],\"usage\":" USAGE "}",
           "an echoed prompt's first token has no probability");
    end();
}


/* the prompt's echo, sent once, begins each of its choices */

static void
test_echo(void)
{
    event_t  e;

    begin(&llm_api_completions, ",'logprobs':0,'echo':true,'n':2");
    feed_start();

    e = text_event(0, LLM_PART_CONTENT, 0, "a\xc3\xa9");
    e.ev.u.text.echo = 1;
    add_token(&e, 1, NAN, 0, "a\xc3\xa9");
    feed(&e);

    e = text_event(1, LLM_PART_CONTENT, 0, "c");
    add_token(&e, 3, -1, 3, "c");
    feed(&e);
    e = text_event(0, LLM_PART_CONTENT, 0, "b");
    add_token(&e, 2, -2, 3, "b");
    feed(&e);
    feed_finish(0, LLM_FINISH_STOP);
    feed_finish(1, LLM_FINISH_STOP);
    feed_finish(2, LLM_FINISH_STOP);
    feed_finish(3, LLM_FINISH_STOP);
    feed_done();
    is_out(HEAD("cmpl-", "text_completion")
           "{\"index\":0,\"text\":\"a\xc3\xa9" "b\",\"logprobs\":{"
           "\"tokens\":[\"a\xc3\xa9\",\"b\"],"
           "\"token_logprobs\":[null,-2.000000000],"
           "\"top_logprobs\":[null,{\"b\":-2.000000000}],"
           "\"text_offset\":[0,2]},\"finish_reason\":\"stop\"},"
           "{\"index\":1,\"text\":\"a\xc3\xa9" "c\",\"logprobs\":{"
           "\"tokens\":[\"a\xc3\xa9\",\"c\"],"
           "\"token_logprobs\":[null,-1.000000000],"
           "\"top_logprobs\":[null,{\"c\":-1.000000000}],"
           "\"text_offset\":[0,2]},\"finish_reason\":\"stop\"},"
           "{\"index\":2,\"text\":\"\",\"logprobs\":{\"tokens\":[],"
           "\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]},"
           "\"finish_reason\":\"stop\"},"
           "{\"index\":3,\"text\":\"\",\"logprobs\":{\"tokens\":[],"
           "\"token_logprobs\":[],\"top_logprobs\":[],\"text_offset\":[]},"
           "\"finish_reason\":\"stop\"}],\"usage\":" USAGE "}",
           "an echo that came once is in both choices of its prompt");
    end();
}


/* large bodies: pieces of about the size asked for, together the whole */

static void
test_pieces(void)
{
    char       text[300];
    size_t     i, n, size;
    event_t    e;
    llm_buf_t  whole;

    static const size_t  sizes[] = { 1 << 20, 1, 100, 4096 };

    llm_buf_init(&whole, 0);

    for (n = 0; n < llm_nelems(sizes); n++) {
        piece_size = sizes[n];
        largest = 0;

        begin(&llm_api_completions, ",'logprobs':1,'return_token_ids':true");
        feed_start();

        for (i = 0; i < 2000; i++) {
            size = i % (sizeof(text) - 1);
            memset(text, 'a' + (int) (i % 26), size);
            text[size] = '\0';
            e = text_event(i % 2, LLM_PART_CONTENT, 0, text);
            add_token(&e, 5, -0.5f, 0, "ab");
            add_top(&e, 6, -0.25f, "a\"");
            add_id(&e, (int32_t) i);
            feed(&e);
        }

        feed_finish(0, LLM_FINISH_STOP);
        feed_finish(1, LLM_FINISH_STOP);
        is_int(feed_done(), LLM_OK, "a body in pieces of %zu", piece_size);

        if (n == 0) {
            llm_buf_add(&whole, out.data, out.len);
            ok(whole.len > 400000, "a large body");

        } else {
            ok(out.len == whole.len
               && memcmp(out.data, whole.data, out.len) == 0,
               "the same bytes");
            ok(largest < piece_size + 8192, "no piece is larger by much");
        }

        end();
    }

    llm_buf_free(&whole);
    piece_size = 1 << 20;
}


/* all choices together are bounded, however they share what there is */

static void
test_bound(void)
{
    int      rc;
    size_t   i;
    event_t  e;

    rc = LLM_OK;
    begin(&llm_api_completions, ",'n':64,'logprobs':1");
    feed_start();

    for (i = 0; i < 1000000 && rc == LLM_OK; i++) {
        e = text_event(i % 128, LLM_PART_CONTENT, 0, "x");
        add_token(&e, 5, -0.5f, 0, "x");
        rc = feed(&e);
    }

    is_int(rc, LLM_ERROR, "an answer without an end is refused");
    is_int(err.status, 400, "with 400");
    is_str(err.code, "answer_too_large", "and a code");
    ok(strstr(err.msg, "stream") != NULL, "that says what helps");
    ok(i * sizeof(e) > 15 << 20 && i * sizeof(e) <= 16 << 20,
       "at 16 MB, all choices together");
    end();
}


int
main(void)
{
    test_bodies();
    test_logprobs();
    test_echo();
    test_pieces();
    test_bound();

    return done_testing();
}
