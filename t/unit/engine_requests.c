/*
 * What becomes of requests, with the engine as a whole on the demo model:
 * what is answered, what is refused, what waits, and that every way that a
 * request can end gives its place back.
 */

#include "t/unit/engine_rig.h"


static void
test_cancel(void)
{
    uint32_t            i;
    uint64_t            then;
    llm_buf_t           b;
    llm_model_stats_t   st;

    open_rig(16384, 1, 0, 0, 8);

    /* running, waiting and long prompts go away, long before they could end;
       the last one runs */

    for (i = 0; i < 4; i++) {
        make(&b, i, i, 0);
        rig_msg(&b)->max_tokens = i == 3 ? 20 : 16000;
        send_or_die(0, &b);
    }

    (void) rig_wait_text(&rig, 0, 0, 5000 * SLOW);

    for (i = 0; i < 3; i++) {
        llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, i,
                        rig.answers[0][i].ticket);
    }

    then = stats().generation_tokens;
    is_int(rig_wait(&rig, 0, 3, 30000 * SLOW), LLM_OK, "the last one runs");
    ok(!rig.answers[0][1].over && !rig.answers[0][2].started,
       "no event for those that went away");

    ok(all_gone(), "all places are free");

    llm_zone_model_stats(rig.zone, NULL, 0, &st);
    is_int(st.kv_used, 0, "no page is held");
    is_int(st.finished[LLM_FINISH_CANCELLED], 3, "three were cancelled");
    ok(st.generation_tokens <= then + 22, "a step or two after the cancel "
       "nobody computes for them: %llu tokens",
       (unsigned long long) (st.generation_tokens - then));

    rig_close(&rig);
}


/* a stream goes on beside a prompt of 5,000 tokens, and the prompt too */

static void
test_long_prompt(void)
{
    int32_t             ids[5000];
    uint32_t            i;
    uint64_t            steps, then, end;
    llm_buf_t           b;
    rig_answer_t       *a;
    llm_model_stats_t   before, after;

    open_rig(6000, 4, 0, 0, 8);
    a = rig.answers[0];

    rig_req(&b, 0);
    rig_text(&b, "Count: one, two,");
    rig_msg(&b)->max_tokens = 5000;
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
    send_or_die(0, &b);
    (void) rig_wait_text(&rig, 0, 0, 5000 * SLOW);

    for (i = 0; i < 5000; i++) {
        ids[i] = (int32_t) (100 + i * 7919 % 900);
    }

    rig_req(&b, 1);
    rig_ids(&b, ids, SLOW > 1 ? 1000 : 5000);
    rig_msg(&b)->max_tokens = 1;
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
    before = stats();
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 1, 120000 * SLOW);
    after = stats();

    /* the prompt's own token comes on top */

    steps = after.steps - before.steps;
    is_int(a[1].status, 0, "a long prompt is done in %llu steps",
           (unsigned long long) steps);
    ok(a[0].over || steps >= 24, "each of them has a small share of it");
    ok(a[0].over || after.generation_tokens - before.generation_tokens
                    >= steps - 2,
       "and a token of the stream beside it: %llu",
       (unsigned long long) (after.generation_tokens
                             - before.generation_tokens));

    llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, 0, a[0].ticket);

    rig_close(&rig);

    /* in the middle of such a prompt its client goes away */

    open_rig(6000, 1, 0, 0, 8);
    a = rig.answers[0];

    rig_req(&b, 1);
    rig_ids(&b, ids, 5000);
    rig_msg(&b)->max_tokens = 1;
    send_or_die(0, &b);
    make(&b, 2, 0, 0);
    send_or_die(0, &b);

    end = llm_now_us() + 60000000;

    while (!a[1].started && llm_now_us() < end) {
        rig_poll(&rig, 0, 1);
    }

    ok(a[1].started, "a long prompt is being read");
    llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, 1, a[1].ticket);
    then = stats().prompt_computed;
    (void) rig_wait(&rig, 0, 2, 60000 * SLOW);
    after = stats();
    ok(after.prompt_computed - then <= 2048 + a[2].prompt_tokens,
       "a step after the cancel nobody reads on: %llu tokens",
       (unsigned long long) (after.prompt_computed - then));

    rig_close(&rig);
}


static void
test_queue(void)
{
    int                 order;
    uint32_t            i, refused, retry;
    uint64_t            after;
    llm_err_t           err;
    llm_buf_t           b;

    open_rig(4096, 1, 0, 0, 4);
    refused = 0;
    retry = 0;

    for (i = 0; i < 8; i++) {
        make(&b, i, i, 0);
        rig_msg(&b)->max_tokens = i ? 20 : 1000 / SLOW;

        if (rig_send(&rig, 0, &b, &err) != LLM_OK) {
            refused += err.status == 429;
            retry += rig.answers[0][i].retry_after > 0;
        }

        /* two requests at once are prepared in either order */

        if (i == 0) {
            (void) rig_wait_text(&rig, 0, 0, 5000 * SLOW);
        }
    }

    is_int(refused, 3, "one runs, four wait, three are refused");
    is_int(retry, 3, "with Retry-After");
    is_int(llm_client_admits(rig.clients[0], 0, 0, &err), LLM_ERROR,
           "admits() says so before a body is read");

    for (i = 0, order = 1; i < 5; i++) {
        (void) rig_wait(&rig, 0, i, 20000 * SLOW);
        order &= i == 0 || rig.answers[0][i].first_us
                           >= rig.answers[0][i - 1].over_us;
    }

    ok(order, "one after the other, in order of arrival");
    is_int(llm_client_admits(rig.clients[0], 0, 0, &err), LLM_OK,
           "then there is room again");

    /* deadlines */

    make(&b, 0, 1, 0);
    rig_msg(&b)->max_tokens = 3900;
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
    send_or_die(0, &b);
    make(&b, 1, 2, 0);
    rig_msg(&b)->queue_deadline_us = llm_now_us() + 200000 * SLOW;
    send_or_die(0, &b);
    make(&b, 2, 6, 0);
    rig_msg(&b)->deadline_us = llm_now_us() + 300000 * SLOW;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 1, 60000 * SLOW);
    (void) rig_wait(&rig, 0, 2, 60000 * SLOW);

    if (rig.answers[0][0].over) {
        skip("the machine is too fast for this");

    } else {
        is_int(rig.answers[0][1].status, 503, "too long in the queue: 503");
    }

    if (rig.answers[0][2].status == 0 && rig.answers[0][0].over) {
        skip("the machine is too fast for this");

    } else {
        is_int(rig.answers[0][2].status, 504, "too long in all: 504");
        is_str(rig.answers[0][2].code, "timeout", "with its code");
    }

    llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, 0,
                    rig.answers[0][0].ticket);

    /* a deadline that lets it begin and not end */

    for (after = 150000; after < 60000000; after *= 2) {
        make(&b, 3, 5, 0);
        rig_msg(&b)->max_tokens = 3900;
        rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
        rig_msg(&b)->deadline_us = llm_now_us() + after;
        send_or_die(0, &b);
        (void) rig_wait(&rig, 0, 3, 120000);

        if (rig.answers[0][3].first_us) {
            break;
        }
    }

    if (rig.answers[0][3].status == 0) {
        skip("the machine is too fast for this");

    } else {
        is_int(rig.answers[0][3].status, 504, "504 in mid-stream, behind %u "
               "tokens", rig.answers[0][3].n_ids[0]);
    }

    rig_close(&rig);
}


/* START tells when a request was prepared, and ERROR if it failed then or
   later */

static int
was_prepared(const rig_answer_t *a, uint64_t from)
{
    return a->over && a->when.us > 0
           && from + a->when.at_us + a->when.us <= a->over_us;
}


static void
test_prepared(void)
{
    uint64_t       from;
    llm_buf_t      b;
    rig_answer_t  *a;

    open_rig(512, 1, 0, 0, 8);
    a = rig.answers[0];

    make(&b, 0, 0, 0);
    from = rig_msg(&b)->arrival_us;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 0, 10000 * SLOW);
    ok(from && was_prepared(&a[0], from), "an answer: prepared in %u us",
       a[0].when.us);

    make(&b, 1, 4, 0);
    rig_msg(&b)->arrival_us -= 5000000;
    from = rig_msg(&b)->arrival_us;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 1, 10000 * SLOW);
    ok(was_prepared(&a[1], from) && a[1].when.at_us >= 5000000,
       "after a wait of 5 s");

    make(&b, 2, 0, 0);
    rig_msg(&b)->max_tokens = 1 << 20;
    rig_msg(&b)->n = 0;
    from = rig_msg(&b)->arrival_us;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 2, 10000 * SLOW);
    ok(a[2].status == 400 && was_prepared(&a[2], from), "a refusal, too");

    rig_close(&rig);
}


static void
test_answers(void)
{
    int             same;
    uint32_t        i;
    llm_buf_t       b;
    const char     *stops[] = { "4.", "zzz" };
    rig_answer_t   *a = rig.answers[0], *one, *two;

    open_rig(512, 4, 0, 0, 8);
    a = rig.answers[0];

    /* three choices with dice: different, and each as before */

    for (i = 0; i < 2; i++) {
        rig_req(&b, i);
        rig_chat(&b, "Tell me something about nginx.");
        rig_msg(&b)->n = 3;
        rig_msg(&b)->max_tokens = 24;
        rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
        rig_msg(&b)->sampling.temperature = 1.5f;
        rig_msg(&b)->sampling.has_seed = 1;
        rig_msg(&b)->sampling.seed = 5;
        send_or_die(0, &b);
        (void) rig_wait(&rig, 0, i, 10000 * SLOW);
    }

    one = &a[0];
    two = &a[1];
    ok(memcmp(one->ids[0], one->ids[1], 24 * 4)
       && memcmp(one->ids[1], one->ids[2], 24 * 4), "three choices differ");

    for (i = 0, same = 1; i < 3; i++) {
        same &= memcmp(one->ids[i], two->ids[i], 24 * 4) == 0;
    }

    ok(same, "the same seed gives the same three");
    is_int(one->n_finished, 3, "each has an end");
    is_int(one->completion_tokens, 72, "the tokens of all count");
    ok(two->cached_tokens >= 16, "%u tokens of the prompt were cached",
       two->cached_tokens);

    /* stop strings, logprobs, limits */

    rig_req(&b, 2);
    rig_chat(&b, "What is 2 + 2?");
    rig_stops(&b, stops, 2);
    rig_msg(&b)->sampling.n_logprobs = 2;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 2, 10000 * SLOW);
    ok(a[2].text[0].len && a[2].text[0].data, "an answer: %s",
       a[2].text[0].len ? a[2].text[0].data : "");
    ok(a[2].text[0].data && strstr(a[2].text[0].data, "4.") == NULL,
       "without the stop string");
    ok(a[2].reason[0] == LLM_FINISH_STOP, "ended by a stop");

    for (i = 0, same = 1; i < a[2].n_probs[0]; i++) {
        same &= a[2].probs[0][i] <= 0;
    }

    ok(same && a[2].n_probs[0] && a[2].n_probs[0] <= a[2].completion_tokens,
       "%u logprobs", a[2].n_probs[0]);

    rig_req(&b, 3);
    rig_text(&b, "Count: one, two,");
    rig_msg(&b)->max_tokens = 5;
    rig_msg(&b)->flags |= LLM_REQ_ECHO|LLM_REQ_IGNORE_EOS;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 3, 10000 * SLOW);
    ok(a[3].text[0].data
       && strncmp(a[3].text[0].data, "Count: one, two,", 16) == 0,
       "echo comes first");
    is_int(a[3].usage[0], 5, "max_tokens");
    is_int(a[3].reason[0], LLM_FINISH_LENGTH, "ended by length");

    rig_req(&b, 4);
    rig_text(&b, "Count: one, two,");
    rig_msg(&b)->max_tokens = 0;
    rig_msg(&b)->flags |= LLM_REQ_ECHO;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 4, 10000 * SLOW);
    is_str(a[4].text[0].data, "Count: one, two,", "echo alone");
    is_int(a[4].completion_tokens, 0, "no token for max_tokens 0");

    /* min_tokens keeps the end away */

    rig_req(&b, 5);
    rig_chat(&b, "What is 2 + 2?");
    rig_msg(&b)->min_tokens = 60;
    rig_msg(&b)->max_tokens = 100;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 5, 10000 * SLOW);
    ok(a[5].usage[0] >= 60, "min_tokens: %u tokens", a[5].usage[0]);

    /* not streamed: the same text in few events, the first token by itself */

    rig_req(&b, 6);
    rig_text(&b, "Count: one, two,");
    rig_msg(&b)->max_tokens = 60;
    rig_msg(&b)->flags = LLM_REQ_IGNORE_EOS|LLM_REQ_TOKEN_IDS;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 6, 10000 * SLOW);
    ok(a[6].n_events[0] <= 2 + 60 / 16, "an answer that is not streamed comes "
       "in %u events", a[6].n_events[0]);
    is_int(a[6].n_tokens[0], 60, "which tell of each token");
    is_int(a[6].n_ids[0], 60, "with all tokens");
    is_int(a[6].n_prompt_ids[0], a[6].prompt_tokens, "and those of the prompt");
    ok(memcmp(a[6].ids[0], a[3].ids[0], 5 * 4) == 0, "the same tokens");

    for (i = 0, same = 0; i < 7; i++) {
        same += a[i].wrong;
    }

    is_int(same, 0, "all events came in order");

    rig_close(&rig);
}


static void
test_refused(void)
{
    char               text[8192];
    int32_t            ids[2] = { 5, 100000000 };
    uint32_t           i;
    llm_buf_t          b;
    rig_answer_t      *a;
    llm_prompt_ref_t  *p;

    open_rig(256, 2, 0, 0, 8);
    a = rig.answers[0];

    for (i = 0; i < 1000; i++) {
        memcpy(text + i * 6, "word, ", 7);
    }

    rig_req(&b, 0);
    rig_text(&b, text);
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 0, 5000 * SLOW);
    is_int(a[0].status, 400, "a prompt that is too long: 400");
    is_str(a[0].code, "context_length_exceeded", "with its code");
    ok(strstr(a[0].msg, "256 tokens") != NULL
       && strstr(a[0].msg, "more than 512 tokens") != NULL,
       "and the numbers: %s", a[0].msg);
    ok(!a[0].started, "before any other event");

    text[6 * 200] = '\0';
    rig_req(&b, 0);
    rig_text(&b, text);
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 0, 5000 * SLOW);
    ok(strstr(a[0].msg, "resulted in 4") != NULL, "not so long: %s",
       a[0].msg);

    /* a prompt is never cut, an answer is */

    for (i = 1; i < 3; i++) {
        rig_req(&b, i);
        rig_chat(&b, "hello");
        rig_msg(&b)->max_tokens = i == 1 ? 256 : -1;
        rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
        send_or_die(0, &b);
        (void) rig_wait(&rig, 0, i, 20000 * SLOW);
        ok(a[i].status == 0 && a[i].reason[0] == LLM_FINISH_LENGTH
           && a[i].prompt_tokens + a[i].completion_tokens == 256,
           "%s is cut to what is left: %u + %u", i == 1 ? "256" : "-1",
           a[i].prompt_tokens, a[i].completion_tokens);
    }

    rig_req(&b, 3);
    rig_ids(&b, ids, 2);
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 3, 5000 * SLOW);
    is_int(a[3].status, 400, "a token that is none: 400");

    rig_req(&b, 4);
    rig_text(&b, "x");
    rig_msg(&b)->prompts.off = 0x7fffffff;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 4, 5000 * SLOW);
    is_int(a[4].status, 500, "a reference that points nowhere");

    rig_req(&b, 5);
    rig_text(&b, "x");
    rig_msg(&b)->n = 500;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 5, 5000 * SLOW);
    is_int(a[5].status, 400, "too many choices");

    for (i = 6; i < 8; i++) {
        rig_req(&b, i);
        rig_message(&b, "system", "", 0);
        rig_msg(&b)->flags |= i == 7 ? LLM_REQ_NO_CACHE : 0;
        send_or_die(0, &b);
        (void) rig_wait(&rig, 0, i, 5000 * SLOW);
        is_int(a[i].status, 400, "a chat that is nothing: 400");
        is_str(a[i].msg, "the prompt is empty", "and why");
    }

    rig_req(&b, 8);
    rig_text(&b, "");
    rig_msg(&b)->max_tokens = 2;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 8, 5000 * SLOW);
    is_int(a[8].status, 0, "a completion of nothing has a beginning");
    is_int(a[8].prompt_tokens, 1, "of one token");

    rig_req(&b, 9);
    rig_text(&b, "x");
    rig_msg(&b)->task = LLM_TASK_SCORE;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 9, 5000 * SLOW);
    is_int(a[9].status, 400, "a task that this model has not: 400");
    is_str(a[9].code, "unsupported_model", "with its code");
    ok(strncmp(a[9].msg, "This model does not rank: ", 26) == 0, "and why");
    ok(!a[9].started, "before any other event");

    rig_req(&b, 10);
    rig_text(&b, "x");
    rig_msg(&b)->task = LLM_TASK_EMBED;
    rig_msg(&b)->dimensions = 100000;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 10, 5000 * SLOW);
    is_int(a[10].status, 400, "more dimensions than the model has: 400");

    rig_req(&b, 11);
    rig_text(&b, "x");
    rig_msg(&b)->task = LLM_TASK_PROPS + 1;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 11, 5000 * SLOW);
    is_int(a[11].status, 500, "a task that there is not: a malformed "
           "message");

    /* a prompt of parts: one that is itself such a prompt, parts that are not
       there */

    for (i = 12; i < 14; i++) {
        rig_req(&b, i);
        rig_text(&b, "x");
        p = (llm_prompt_ref_t *) (b.data + rig_msg(&b)->prompts.off);
        p->is_ids = LLM_PROMPT_PARTS;
        p->ref = rig_msg(&b)->prompts;
        p->ref.len = i == 12 ? 1 : 1u << 24;
        send_or_die(0, &b);
        (void) rig_wait(&rig, 0, i, 5000 * SLOW);
        is_int(a[i].status, 500, "a malformed prompt of parts");
    }

    is_int(llm_engine_live(rig.engine), 0, "none is left");

    rig_close(&rig);
}


int
main(void)
{
    test_prepared();
    test_answers();
    test_refused();
    test_cancel();
    test_long_prompt();
    test_queue();

    return done_testing();
}
