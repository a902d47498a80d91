/*
 * The pairs of a query and its documents, one prompt after another: others have
 * their turn between two of them, and a request that is not needed any more
 * ends there.  And pairs that are cut lose tokens of their texts alone.
 */

#include "t/unit/engine_rig.h"
#include "engine/prepare/prepare.h"

#define PAIRS  5

/* what a preparation thread is asked, and what it answers */
typedef struct {
    llm_req_t  *r;
    uint32_t    turns;                  /* so often others had theirs */
    uint32_t    made;                   /* prompts at the last of these */
    uint32_t    over;                   /* the turn after which the request is
                                           not needed; 0: none */
} turns_t;


static int
pause_job(void *data)
{
    turns_t  *t = data;

    t->made = 0;

    while (t->made < t->r->prep.n_prompts
           && t->r->prep.prompts[t->made].ids)
    {
        t->made++;
    }

    t->turns++;

    return t->turns == t->over;
}


/* a request of n such pairs, whose prompts are to be made */

static llm_req_t *
pair_of(const char *query, const char *document, uint32_t n)
{
    uint32_t          i;
    llm_buf_t         b;
    llm_ref_t         ref[2 * PAIRS];
    llm_req_t        *r;
    llm_prompt_ref_t  prompts[2 * PAIRS];

    rig_req(&b, 0);
    ref[0] = rig_put(&b, query, strlen(query), (uint32_t) strlen(query));
    ref[1] = rig_put(&b, document, strlen(document),
                     (uint32_t) strlen(document));
    memset(prompts, 0, sizeof(prompts));

    for (i = 0; i < 2 * n; i++) {
        prompts[i].ref = ref[i % 2];
    }

    ref[0] = rig_put(&b, prompts, 2 * n * sizeof(*prompts), 2 * n);
    rig_msg(&b)->prompts = ref[0];
    rig_msg(&b)->task = LLM_TASK_SCORE;
    rig_msg(&b)->head.size = (uint32_t) b.len;

    r = llm_req_create((llm_request_t *) b.data);
    r->prep.n_prompts = n;
    r->prep.prompts = calloc(n, sizeof(*r->prep.prompts));

    return r;
}


static llm_req_t *
pairs_of(uint32_t n)
{
    return pair_of("What colour is the sky?", "The sky is blue.", n);
}


static void
test_turns(const llm_prep_env_t *env, int32_t truncate)
{
    uint32_t        n;
    turns_t         t;
    llm_err_t       err;
    llm_prep_how_t  how;

    memset(&how, 0, sizeof(how));
    how.pause = pause_job;
    how.data = &t;

    for (n = 1; n <= PAIRS; n++) {
        memset(&t, 0, sizeof(t));
        memset(&err, 0, sizeof(err));
        t.r = pairs_of(n);
        t.r->msg->truncate = truncate;

        is_int(llm_prep_pairs(env, t.r, &how, &err), LLM_OK, "%u pairs: %s", n,
               err.msg);
        is_int(t.turns, n - 1, "others have their turn between each two");
        is_int(t.made, n - 1, "the last time before the last one");
        ok(t.r->prep.prompts[n - 1].n > 10, "which is made, too");
        llm_req_free(t.r);
    }

    memset(&t, 0, sizeof(t));
    memset(&err, 0, sizeof(err));
    t.r = pairs_of(PAIRS);
    t.over = 2;
    is_int(llm_prep_pairs(env, t.r, &how, &err), LLM_ERROR,
           "a request that is not needed any more");
    ok(t.turns == 2 && t.r->prep.prompts[1].ids
       && t.r->prep.prompts[2].ids == NULL, "ends there: %s", err.msg);
    llm_req_free(t.r);

    t.r = pairs_of(PAIRS);
    is_int(llm_prep_pairs(env, t.r, NULL, &err), LLM_OK,
           "nobody else is there");
    llm_req_free(t.r);
}


/* what is left of a query that is too long, and all of the prompt around it:
   the query may begin as what follows it, and what is around it may join where
   it is empty.  ":\n" is one token, of which the template has a part, so it
   stays */

static void
test_kept(llm_prep_env_t *env, uint32_t *ctx)
{
    size_t             i, len;
    llm_err_t          err;
    llm_ids_t          want;
    llm_req_t         *r;
    llm_span_t         spans[2];
    llm_prompt_ids_t  *p;

    static char        text[] = "Query:{query}\nDocument:{document}<|im_end|>";
    static const char  query[] = "\nsky sky sky sky sky sky sky sky sky sky";

    static const struct {
        uint32_t     flags;
        const char  *text;
    } rows[] = {
        { 0, "Query:\nsky sky sky\nDocument:The sky<|im_end|>" },
        { LLM_REQ_CUT_HEAD,
          "Query:\n sky sky sky\nDocument:The sky<|im_end|>" }
    };

    env->rank.text = text;
    env->rank.len = sizeof(text) - 1;

    for (i = 0; i < llm_nelems(rows); i++) {
        memset(&want, 0, sizeof(want));
        memset(&err, 0, sizeof(err));
        len = strlen(rows[i].text);
        spans[0] = (llm_span_t) { 0, 6 };
        spans[1] = (llm_span_t) { len - 10, len };
        (void) llm_vocab_tokenize(env->vocab, rows[i].text, len, spans, 2,
                                  LLM_TOKENIZE_TRUSTED, 0, &want, &err);

        *ctx = (uint32_t) want.len;
        r = pair_of(query, "The sky", 1);
        r->msg->truncate = -1;
        r->msg->flags |= rows[i].flags;
        is_int(llm_prep_pairs(env, r, NULL, &err), LLM_OK, "a query is cut: %s",
               err.msg);
        p = &r->prep.prompts[0];
        ok(p->n == want.len && p->n
           && memcmp(p->ids, want.data, p->n * sizeof(*p->ids)) == 0,
           "it has lost tokens of the query alone: %zu", i);
        llm_req_free(r);
        free(want.data);
    }
}


int
main(void)
{
    llm_err_t       err;
    llm_gguf_t     *g;
    llm_runner_t    run;
    llm_prep_env_t  env;

    static char  text[] = "Query: {query}\nDocument: {document}<|im_end|>";

    memset(&run, 0, sizeof(run));
    memset(&env, 0, sizeof(env));
    run.ctx = 1000;
    env.runner = &run;
    env.max_bytes = 1 << 20;
    env.rank.text = text;
    env.rank.len = sizeof(text) - 1;

    g = llm_gguf_open(MODEL, &err);
    env.vocab = g ? llm_vocab_load(g, &err) : NULL;

    if (!ok(env.vocab != NULL, "a vocabulary")) {
        return done_testing();
    }

    test_turns(&env, 0);
    test_turns(&env, -1);
    test_kept(&env, &run.ctx);

    llm_vocab_free(env.vocab);
    llm_gguf_close(g);

    return done_testing();
}
