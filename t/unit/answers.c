/*
 * Requests that need no model (tokenize, detokenize, render, describe), with
 * the engine as a whole on the demo model: their answers, malformed messages,
 * answers that are larger than the ring, and clients that go away.
 */

#include "t/unit/engine_rig.h"


/* a request of this task, with a text as its prompt */

static void
ask(llm_buf_t *b, uint32_t slot, llm_task_t task, const char *text)
{
    rig_req(b, slot);
    rig_msg(b)->task = task;
    rig_text(b, text);
}


static void
test_answers(void)
{
    uint32_t       i;
    int32_t        ids[64];
    llm_buf_t      b;
    rig_answer_t  *a;

    static const char  text[] = "Hello <|im_end|> na\xc3\xafve world";

    a = rig.answers[0];

    ask(&b, 0, LLM_TASK_TOKENIZE, text);
    send_or_die(0, &b);
    is_int(rig_wait(&rig, 0, 0, 5000 * SLOW), LLM_OK, "tokenize");
    ok(a[0].n_ids[0] > 3 && a[0].n_ids[0] == a[0].prompt_tokens,
       "%u ids, counted", a[0].n_ids[0]);
    is_int(a[0].completion_tokens, 0, "nothing was generated");

    for (i = 0; i < a[0].n_ids[0]; i++) {
        ids[i] = a[0].ids[0][i];
    }

    rig_req(&b, 1);
    rig_msg(&b)->task = LLM_TASK_DETOKENIZE;
    rig_ids(&b, ids, i);
    send_or_die(0, &b);
    is_int(rig_wait(&rig, 0, 1, 5000 * SLOW), LLM_OK, "detokenize");
    ok(a[1].text[0].len == strlen(text)
       && memcmp(a[1].text[0].data, text, strlen(text)) == 0,
       "the same text");

    ask(&b, 2, LLM_TASK_TOKENIZE, text);
    rig_msg(&b)->flags |= LLM_REQ_PLAIN;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 2, 5000 * SLOW);
    ok(a[2].n_ids[0] > a[0].n_ids[0], "more ids without control tokens");

    ask(&b, 3, LLM_TASK_TOKENIZE, text);
    rig_msg(&b)->flags |= LLM_REQ_PIECES;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 3, 5000 * SLOW);
    is_int(a[3].n_probs[0], a[0].n_ids[0], "as many with their bytes");

    rig_req(&b, 4);
    rig_chat(&b, "Hi");
    rig_msg(&b)->task = LLM_TASK_RENDER;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 4, 5000 * SLOW);
    ok(a[4].text[0].len && memmem(a[4].text[0].data, a[4].text[0].len,
                                  "user\nHi", 7), "render");

    rig_req(&b, 5);
    rig_msg(&b)->kind = LLM_KIND_NONE;
    rig_msg(&b)->task = LLM_TASK_DESCRIBE;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 5, 5000 * SLOW);
    ok(a[5].text[0].len
       && llm_flat_check(a[5].text[0].data, a[5].text[0].len) == LLM_OK
       && llm_flat_get((const llm_flat_t *) a[5].text[0].data,
                       "chat_template"), "describe: a flat object");

    for (i = 0; i < 6; i++) {
        is_int(a[i].wrong, 0, "events in their order, %u", i);
    }
}


static void
test_malformed(void)
{
    uint32_t        i;
    llm_buf_t       b;
    llm_request_t  *r;

    static const char *const  names[] = {
        "a task that there is not", "a render without a chat",
        "nothing to tokenize", "no kind, to tokenize",
        "a prompt beyond the message", "two prompts that are one"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        ask(&b, i, LLM_TASK_TOKENIZE, "abc");
        r = rig_msg(&b);

        switch (i) {
        case 0:
            r->task = LLM_TASK_PROPS + 1;
            break;
        case 1:
            r->task = LLM_TASK_RENDER;
            break;
        case 2:
            r->prompts.len = 0;
            break;
        case 3:
            r->kind = LLM_KIND_NONE;
            break;
        case 4:
            r->prompts.off = UINT32_MAX - 7;
            break;
        case 5:
            r->infill.off = r->prompts.off + 1;
            r->infill.len = 1;
            break;
        }

        send_or_die(0, &b);
        (void) rig_wait(&rig, 0, i, 5000 * SLOW);
        ok(rig.answers[0][i].status >= 400, "%s: %s", names[i],
           rig.answers[0][i].msg);
    }
}


/* megabytes of answers through a ring of 512 KB; half of the clients leave */

static void
test_large(void)
{
    char          *text;
    uint32_t       i, n;
    llm_buf_t      b;
    rig_answer_t  *a;

    a = rig.answers[0];
    n = 60000 / SLOW;
    text = malloc(n + 1);
    memset(text, '\n', n);
    text[n] = '\0';

    for (i = 0; i < n; i += 2) {
        text[i] = 'q';
    }

    for (i = 0; i < 8; i++) {
        ask(&b, i, LLM_TASK_TOKENIZE, text);
        rig_msg(&b)->flags |= LLM_REQ_PIECES;
        send_or_die(0, &b);
    }

    for (i = 1; i < 8; i += 2) {
        usleep(5000);
        llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, i, a[i].ticket);
    }

    for (i = 0; i < 8; i += 2) {
        is_int(rig_wait(&rig, 0, i, 60000 * SLOW), LLM_OK, "answer %u", i);
        is_int(a[i].n_probs[0], llm_min(a[i].prompt_tokens, RIG_IDS),
               "all tokens");
        ok(a[i].n_events[0] > a[i].prompt_tokens / 1024
           && a[i].wrong == 0, "in %u events", a[i].n_events[0]);
    }

    ok(all_gone(), "no request is left");
    free(text);
}


/* what waits for its model, and a deadline that passes meanwhile */

static void
test_lazy(void)
{
    llm_buf_t      b;
    rig_answer_t  *a;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 256, 1);
    rig.models[0].lazy = 1;
    rig_open(&rig, 1, 1 << 20, 8);
    a = rig.answers[0];

    if (!rig_engine(&rig)) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }

    ask(&b, 0, LLM_TASK_TOKENIZE, "abc");
    rig_msg(&b)->deadline_us = 1;
    send_or_die(0, &b);
    ask(&b, 1, LLM_TASK_TOKENIZE, "abc");
    send_or_die(0, &b);

    (void) rig_wait(&rig, 0, 0, 30000 * SLOW);
    is_int(rig.answers[0][0].status, 504, "too late");
    is_int(rig_wait(&rig, 0, 1, 30000 * SLOW), LLM_OK, "the model is loaded");
    ok(a[1].n_ids[0] > 0, "for a request that needs only its vocabulary");
    ok(all_gone(), "no request is left");

    rig_close(&rig);
}


int
main(void)
{
    open_rig(256, 1, 0, 0, 16);

    test_answers();
    test_malformed();
    test_large();

    rig_close(&rig);

    test_lazy();

    return done_testing();
}
