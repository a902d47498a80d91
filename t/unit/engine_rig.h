/*
 * What the tests of the engine as a whole share: the demo model, requests
 * numbered by what they ask for, and how slow a build may be.
 */

#ifndef LLM_ENGINE_RIG_H
#define LLM_ENGINE_RIG_H

#include "t/unit/rig.h"

#define MODEL   "models/demo.gguf"

/* different requests, and how much slower a sanitizer makes the model */
#if defined(__SANITIZE_THREAD__)
#define N       5
#define SLOW    8
#elif defined(__SANITIZE_ADDRESS__)
#define N       12
#define SLOW    3
#else
#define N       12
#define SLOW    1
#endif

#define GEN(i)  ((30 + (i) % 4 * 20) / (SLOW > 3 ? 3 : 1))

static rig_t  rig;


/* request i of the set: texts that share beginnings, some with dice */

static inline void
make(llm_buf_t *b, uint32_t slot, uint32_t i, uint32_t flags)
{
    char      text[2048];
    size_t    len;
    uint32_t  k;

    len = 0;

    for (k = 0; k < 3 + i % 5 * 4; k++) {
        len += (size_t) snprintf(text + len, sizeof(text) - len, "Line %u of "
                                 "the list says %u. ", k,
                                 i < N / 2 ? k * 3 : k * i);
    }

    rig_req(b, slot);
    rig_msg(b)->flags |= LLM_REQ_IGNORE_EOS | flags;
    rig_msg(b)->max_tokens = (int32_t) GEN(i);

    if (i % 3 == 0) {
        rig_msg(b)->sampling.temperature = 0.9f;
        rig_msg(b)->sampling.top_p = 0.95f;
        rig_msg(b)->sampling.has_seed = 1;
        rig_msg(b)->sampling.seed = 1000 + i;
    }

    rig_text(b, text);
}


static inline void
send_or_die(uint32_t w, llm_buf_t *b)
{
    llm_err_t  err;

    if (rig_send(&rig, w, b, &err) != LLM_OK) {
        printf("# refused: %d %s\n", err.status, err.msg);
    }
}


/* until no request is left */

static inline int
all_gone(void)
{
    uint32_t  i;

    for (i = 0; i < 3000 && llm_engine_live(rig.engine); i++) {
        usleep(10000);
    }

    return llm_engine_live(rig.engine) == 0;
}


static inline void
open_rig(uint32_t ctx, uint32_t parallel, uint32_t batch, size_t kv,
    uint32_t queue)
{
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, ctx, parallel);
    rig.models[0].batch = batch;
    rig.models[0].kv_cache = kv;
    rig_open(&rig, 2, 1 << 20, queue);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, 30000) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }
}


static inline llm_model_stats_t
stats(void)
{
    llm_model_stats_t  st;

    llm_zone_model_stats(rig.zone, NULL, 0, &st);

    return st;
}


/* a request of worker 0 for so many tokens */

static inline void
stream(uint32_t slot, int32_t tokens)
{
    llm_buf_t  b;

    make(&b, slot, 1, 0);
    rig_msg(&b)->max_tokens = tokens;
    send_or_die(0, &b);
}


#endif /* LLM_ENGINE_RIG_H */
