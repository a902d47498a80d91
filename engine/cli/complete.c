/*
 * The command complete: the text that a model generates after a prompt.
 *
 * With --speculate tokens are drafted, those that stood in the prompt or in the
 * text before, or those of a head: their rows are computed in one step, and the
 * tokens are drawn from them as always, so the text is the same
 * (engine/sched/speculate.c does the same for the server).
 */

#include "engine/cli/head.h"
#include "engine/sched/lookup.h"

#include <stdio.h>
#include <time.h>

/* most tokens that are drafted in a step, and how probable each must be */
#define LLM_CLI_DRAFT_MOST   16
#define LLM_CLI_DRAFT_LEAST  0.3

/* slots of recurrent state: of the sequence, and of the copy before a step with
   drafted tokens */
#define LLM_CLI_SLOT         0
#define LLM_CLI_SLOT_COPY    1


/* owns all that a completion uses; see llm_cli_complete_free() */
typedef struct {
    llm_cli_seq_t           seq;
    llm_vocab_t            *vocab;
    llm_detok_t             detok;
    llm_ids_t               ids;        /* prompt and text */
    uint32_t                n_prompt;
    uint32_t                max;        /* tokens of both */
    llm_sampler_t          *sampler;
    llm_sampler_scratch_t  *scratch;

    int                     drafts;     /* 1: tokens are drafted */
    llm_cli_kinds_t         kinds;
    llm_cli_head_t          head;
    llm_lookup_t            lookup;
    int32_t                 drafted[LLM_CLI_DRAFT_MOST];
    uint32_t                n_drafted;  /* rows of the last step, the last
                                           ones */
    uint32_t                base;       /* positions computed before it */
} llm_cli_complete_t;


static void
llm_cli_complete_free(llm_cli_complete_t *k)
{
    llm_cli_head_close(&k->head);
    free(k->kinds.path);

    if (k->sampler) {
        llm_sampler_free(k->sampler);
    }

    if (k->scratch) {
        llm_sampler_scratch_free(k->scratch);
    }

    if (k->vocab) {
        llm_detok_free(&k->detok);
        llm_vocab_free(k->vocab);
    }

    llm_lookup_free(&k->lookup);
    free(k->ids.data);
    llm_cli_seq_close(&k->seq);
}


int
llm_cli_prompt(const llm_vocab_t *v, int flags, llm_ids_t *ids,
    llm_err_t *err)
{
    int        rc;
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    rc = llm_cli_read(&b, err);

    if (rc == LLM_OK) {
        rc = llm_vocab_tokenize(v, b.data, b.len, NULL, 0, flags, 0, ids,
                                err);
    }

    llm_buf_free(&b);

    if (rc == LLM_OK && ids->len == 0) {
        return llm_fail(err, "standard input: no text");
    }

    return rc;
}


static int
llm_cli_sampler(const llm_cli_t *c, llm_cli_complete_t *k, llm_err_t *err)
{
    size_t           i;
    uint32_t         n_vocab;
    llm_sampling_t   sampling;
    struct timespec  ts;

    sampling = c->sampling;

    if (!sampling.has_seed) {
        clock_gettime(CLOCK_REALTIME, &ts);
        sampling.has_seed = 1;
        sampling.seed = (uint64_t) ts.tv_sec * 1000000007 + ts.tv_nsec;
    }

    n_vocab = llm_model_hparams(k->seq.model)->n_vocab;
    k->sampler = llm_sampler_create(&sampling, 0, NULL, 0, n_vocab);
    k->scratch = llm_sampler_scratch_create(n_vocab);

    if (k->sampler == NULL || k->scratch == NULL) {
        return llm_fail(err, "no memory for the sampler");
    }

    for (i = 0; i < k->ids.len; i++) {
        llm_sampler_see_prompt(k->sampler, k->ids.data[i]);
    }

    return LLM_OK;
}


/* makes room for the text after the prompt */

static int
llm_cli_room(const llm_cli_t *c, llm_cli_complete_t *k, llm_err_t *err)
{
    int32_t  *ids;

    k->n_prompt = (uint32_t) k->ids.len;
    k->max = llm_model_ctx(k->seq.model);

    if (k->n_prompt > k->max) {
        return llm_fail(err, "the prompt has %zu tokens, and ctx is %u",
                        k->ids.len, k->max);
    }

    if (c->max_tokens) {
        k->max = llm_min(k->max - k->n_prompt, c->max_tokens) + k->n_prompt;
    }

    ids = realloc(k->ids.data, k->max * sizeof(*ids));
    if (ids == NULL) {
        return llm_fail(err, "no memory for the text");
    }

    k->ids.data = ids;
    k->ids.cap = k->max;

    return LLM_OK;
}


/* draws the next token, from result i of the last step, and writes its text;
   LLM_STOPPED: it ends the text */

static int
llm_cli_next(llm_cli_complete_t *k, uint32_t i, llm_err_t *err)
{
    llm_str_t      text;
    llm_sampled_t  next;

    if (llm_sampler_sample(k->sampler, k->scratch,
                           llm_model_logits(k->seq.model, i), NULL, 0, NULL,
                           &next, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_vocab_is_eog(k->vocab, next.id)) {
        return LLM_STOPPED;
    }

    llm_sampler_accept(k->sampler, next.id);
    text = llm_detok_push(&k->detok, next.id);
    k->ids.data[k->ids.len++] = next.id;

    if (llm_cli_write(text.data, text.len, err) != LLM_OK
        || llm_cli_flush(err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return k->ids.len == k->max ? LLM_STOPPED : LLM_OK;
}


/* draws from the results of the last step, while the tokens are the drafted
   ones; takes back the rows of the others */

static int
llm_cli_draw(llm_cli_complete_t *k, llm_err_t *err)
{
    int       rc;
    uint32_t  i, known;

    known = k->seq.len - k->n_drafted;

    for (i = 0; /* void */ ; i++) {
        rc = llm_cli_next(k, i, err);

        if (rc != LLM_OK || i == k->n_drafted
            || k->ids.data[k->ids.len - 1] != k->drafted[i])
        {
            break;
        }
    }

    if (i < k->n_drafted) {
        k->seq.len = known + i;

        if (k->kinds.head) {
            llm_cli_head_drop(&k->head, known + i);
        }

        if (llm_model_n_slots(k->seq.model)) {
            llm_model_copy_slot(k->seq.model, LLM_CLI_SLOT_COPY,
                                LLM_CLI_SLOT);
            k->seq.len = k->base;
        }
    }

    return rc;
}


/* drafts at most `most` tokens that stood before; LLM_ERROR: no memory */

static int
llm_cli_look_up(llm_cli_complete_t *k, uint32_t most, llm_err_t *err)
{
    double              expected;
    uint32_t            n;
    llm_lookup_texts_t  t;

    n = (uint32_t) k->ids.len - k->n_prompt;
    t = (llm_lookup_texts_t) {
        { NULL, k->ids.data, k->ids.data + k->n_prompt },
        { 0, k->n_prompt, n }
    };

    if (llm_lookup_follow(&k->lookup, &t) != LLM_OK) {
        return llm_fail(err, "no memory for drafts");
    }

    k->n_drafted = llm_lookup_guess(&k->lookup, &t, k->drafted, most,
                                    LLM_CLI_DRAFT_LEAST, &expected);

    return LLM_OK;
}


/* drafts the next tokens */

static int
llm_cli_guess(llm_cli_complete_t *k, llm_err_t *err)
{
    uint32_t  most;

    k->base = k->seq.len;
    k->n_drafted = 0;

    /* nor before the state is that of all known tokens but the last */

    if (!k->drafts || k->ids.len - k->seq.len > 1) {
        return LLM_OK;
    }

    most = llm_min(k->max - (uint32_t) k->ids.len - 1, LLM_CLI_DRAFT_MOST);

    if (k->kinds.ngram && llm_cli_look_up(k, most, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (k->kinds.head && k->n_drafted == 0
        && llm_cli_head_guess(&k->head, &k->seq, &k->ids, most,
                              LLM_CLI_DRAFT_LEAST, k->drafted, &k->n_drafted,
                              err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (k->n_drafted && llm_model_n_slots(k->seq.model)) {
        llm_model_copy_slot(k->seq.model, LLM_CLI_SLOT, LLM_CLI_SLOT_COPY);
    }

    return LLM_OK;
}


/* a step of the tokens that are not computed yet, and of drafted ones */

static int
llm_cli_step(llm_cli_complete_t *k, llm_err_t *err)
{
    int32_t   rows[2 * LLM_CLI_DRAFT_MOST + 4];
    uint32_t  n;

    if (llm_cli_guess(k, err) != LLM_OK) {
        return LLM_ERROR;
    }

    n = (uint32_t) k->ids.len - k->seq.len;
    memcpy(rows, k->ids.data + k->seq.len, n * sizeof(*rows));
    memcpy(rows + n, k->drafted, k->n_drafted * sizeof(*rows));

    if (llm_cli_seq_step(&k->seq, rows, n + k->n_drafted, 1 + k->n_drafted,
                         err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    return k->kinds.head ? llm_cli_head_take(&k->head, &k->ids, k->base,
                                           n + k->n_drafted, err)
                       : LLM_OK;
}


/* the prompt, whose states the head takes */

static int
llm_cli_feed(llm_cli_complete_t *k, llm_err_t *err)
{
    uint32_t  i, n, take;

    n = (uint32_t) k->ids.len;

    if (!k->kinds.head) {
        return llm_cli_seq_feed(&k->seq, k->ids.data, n, err);
    }

    for (i = 0; i < n; i += take) {
        take = llm_min(n - i, llm_model_batch(k->seq.model));

        if (llm_cli_seq_step(&k->seq, k->ids.data + i, take, i + take == n,
                             err) != LLM_OK
            || llm_cli_head_take(&k->head, &k->ids, i, take, err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_cli_generate(llm_cli_complete_t *k, llm_err_t *err)
{
    int        rc;
    llm_str_t  text;

    rc = k->n_prompt < k->max ? LLM_OK : LLM_STOPPED;

    while (rc == LLM_OK) {
        rc = llm_cli_draw(k, err);

        if (rc == LLM_OK) {
            rc = llm_cli_step(k, err);
        }
    }

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    text = llm_detok_flush(&k->detok, 1);

    if (llm_cli_write(text.data, text.len, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return k->detok.failed ? llm_fail(err, "no memory for the text") : LLM_OK;
}


int
llm_cli_complete(const llm_cli_t *c, llm_err_t *err)
{
    int                 rc;
    uint32_t            batch;
    llm_keep_t          keep;
    llm_cli_complete_t  k;

    memset(&k, 0, sizeof(k));
    memset(&keep, 0, sizeof(keep));

    if (llm_cli_speculate(c, &k.kinds, err) != LLM_OK
        || (k.kinds.head && llm_head_keeps(k.kinds.path, &keep, err) != LLM_OK))
    {
        free(k.kinds.path);
        return LLM_ERROR;
    }

    k.drafts = k.kinds.ngram || k.kinds.head;
    batch = c->batch ? c->batch : LLM_CLI_BATCH_SIZE;

    if (k.drafts) {
        batch = llm_max(batch, LLM_CLI_DRAFT_MOST + 2);
    }

    if (llm_cli_seq_keeping(&k.seq, c, &keep, 0, batch,
                            k.drafts ? LLM_CLI_DRAFT_MOST + 1 : 1, err)
        != LLM_OK
        || (k.kinds.head && llm_cli_head_open(&k.head, c, &k.seq, k.kinds.path,
                                            err) != LLM_OK))
    {
        llm_cli_complete_free(&k);
        return LLM_ERROR;
    }

    /* without a slot for the copy nothing can be taken back */

    k.drafts &= llm_model_n_slots(k.seq.model) != LLM_CLI_SLOT_COPY;

    rc = LLM_ERROR;
    k.vocab = llm_vocab_load(llm_model_gguf(k.seq.model), err);

    if (k.vocab) {
        llm_detok_init(&k.detok, k.vocab, 0, 0);
        rc = llm_cli_prompt(k.vocab, LLM_TOKENIZE_ADD
                            | (c->special ? LLM_TOKENIZE_SPECIAL
                                          : LLM_TOKENIZE_PLAIN),
                            &k.ids, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_room(c, &k, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_sampler(c, &k, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_feed(&k, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_generate(&k, err);
    }

    llm_cli_complete_free(&k);

    return rc;
}
