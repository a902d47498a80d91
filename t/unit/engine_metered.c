/*
 * Metered requests: each says how large it is and runs when its worker agrees;
 * what it generates is told token by token.
 */

#include "t/unit/engine_rig.h"


static void
metered(uint32_t slot, const char *text, uint32_t n, int32_t max_tokens,
    uint32_t flags)
{
    llm_buf_t  b;

    rig_req(&b, slot);
    rig_text(&b, text);
    rig_msg(&b)->n = n;
    rig_msg(&b)->max_tokens = max_tokens;
    rig_msg(&b)->flags = LLM_REQ_METERED|LLM_REQ_IGNORE_EOS|flags;
    send_or_die(0, &b);
}


static void
wait_prepared(uint32_t slot)
{
    uint64_t  end;

    end = llm_now_us() + (uint64_t) 20000 * SLOW * 1000;

    while (!rig.answers[0][slot].prepared && !rig.answers[0][slot].over
           && llm_now_us() < end)
    {
        rig_poll(&rig, 0, 20);
    }
}


static void
tell(uint32_t slot, llm_msg_type_t type)
{
    llm_client_signal(rig.clients[0], type, slot,
                      rig.answers[0][slot].ticket);
}


static void
test_grant(void)
{
    rig_answer_t  *a;

    open_rig(512, 4, 0, 0, 8);
    a = rig.answers[0];

    metered(0, "Count: one, two,", 3, 20, LLM_REQ_STREAM);
    wait_prepared(0);

    ok(a[0].prepared, "it says that it is prepared");
    is_int(a[0].answer_tokens, 60, "three choices of 20 tokens");
    ok(a[0].prompt_tokens > 3, "behind a prompt of %u", a[0].prompt_tokens);

    metered(1, "x", 1, -1, 0);
    wait_prepared(1);
    is_int(a[1].answer_tokens, 512 - a[1].prompt_tokens,
           "without a bound it is what the context leaves");

    /* others run meanwhile */

    metered(2, "Count: one, two,", 1, 8, 0);
    wait_prepared(2);
    tell(2, LLM_MSG_GRANT);
    is_int(rig_wait(&rig, 0, 2, 20000 * SLOW), LLM_OK, "one that may runs");
    is_int(a[2].completion_tokens, 8, "to its end");
    ok(!a[0].started && !a[1].started, "the others wait for their worker");
    is_int(stats().generation_tokens, 8, "and no token is computed for them");

    tell(1, LLM_MSG_CANCEL);
    tell(0, LLM_MSG_GRANT);
    tell(0, LLM_MSG_GRANT);
    is_int(rig_wait(&rig, 0, 0, 20000 * SLOW), LLM_OK, "then it runs");
    is_int(a[0].completion_tokens, 60, "all of it");
    is_int(a[0].wrong, 0, "its events come in order, each once");
    ok(!a[1].over && !a[1].started, "no event for one that went away");

    ok(all_gone(), "all places are free");
    is_int(stats().kv_used, 0, "no page is held");

    rig_close(&rig);
}


/* an answer that is not streamed: its text comes in lots, its tokens do not */

static void
test_count(void)
{
    uint32_t       n;
    llm_buf_t      b;
    rig_answer_t  *a;

    open_rig(512, 4, 0, 0, 8);
    a = rig.answers[0];

    metered(0, "Count: one, two,", 1, 40, 0);
    wait_prepared(0);
    tell(0, LLM_MSG_GRANT);
    is_int(rig_wait(&rig, 0, 0, 20000 * SLOW), LLM_OK, "a whole answer");

    n = a[0].n_events[0];

    is_int(a[0].n_tokens[0], 40, "each token is counted once");
    ok(n >= 40, "as it comes: %u events", n);

    rig_req(&b, 1);
    rig_text(&b, "Count: one, two,");
    rig_msg(&b)->max_tokens = 40;
    rig_msg(&b)->flags = LLM_REQ_IGNORE_EOS;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 1, 20000 * SLOW);

    ok(!a[1].prepared && a[1].n_events[0] < 10, "one that is not metered comes "
       "in %u", a[1].n_events[0]);
    ok(a[0].text[0].len == a[1].text[0].len
       && memcmp(a[0].text[0].data, a[1].text[0].data, a[0].text[0].len) == 0,
       "and has the same text");

    rig_close(&rig);
}


/* deadlines pass, and the engine ends, while workers say nothing */

static void
test_silence(void)
{
    llm_buf_t      b;
    rig_answer_t  *a;

    open_rig(512, 4, 0, 0, 8);
    a = rig.answers[0];

    rig_req(&b, 0);
    rig_text(&b, "x");
    rig_msg(&b)->flags |= LLM_REQ_METERED;
    rig_msg(&b)->queue_deadline_us = llm_now_us() + 300000;
    send_or_die(0, &b);

    is_int(rig_wait(&rig, 0, 0, 20000 * SLOW), LLM_OK,
           "one that waits too long for its worker");
    is_str(a[0].code, "queue_timeout", "has the queue's error");

    rig_req(&b, 1);
    rig_text(&b, "x");
    rig_msg(&b)->flags |= LLM_REQ_METERED;
    rig_msg(&b)->deadline_us = llm_now_us() + 300000;
    send_or_die(0, &b);

    is_int(rig_wait(&rig, 0, 1, 20000 * SLOW), LLM_OK, "or altogether");
    is_str(a[1].code, "timeout", "has that of its time");

    tell(0, LLM_MSG_GRANT);
    ok(all_gone(), "all places are free");

    metered(2, "x", 1, 8, 0);
    wait_prepared(2);
    llm_engine_stop(rig.engine);
    rig.engine = NULL;
    (void) rig_poll(&rig, 0, 0);
    is_str(a[2].code, "shutting_down", "one that waits when the engine ends");

    rig_close(&rig);
}


int
main(void)
{
    test_grant();
    test_count();
    test_silence();

    return done_testing();
}
