/*
 * "llm bench --speculate mtp" or draft=HEAD: the speed of greedy generation
 * with the drafts of a head, and how many of these were drawn.
 *
 * How many come true depends on the text.  A bench has none, so the model goes
 * on from tokens of no meaning, which says little of real text; but the time of
 * a draft is what it is there.
 */

#include "engine/cli/head.h"
#include "engine/llm.h"
#include "engine/sample/rows.h"

#include <stdio.h>

/* as "llm complete" does it */
#define LLM_BENCH_DRAFT_MOST   16
#define LLM_BENCH_DRAFT_LEAST  0.3


typedef struct {
    llm_cli_seq_t    seq;
    llm_cli_head_t   head;
    llm_ids_t        ids;
    uint32_t         drafted;
    uint32_t         drawn;             /* of these */
    uint64_t         draft_us;          /* time of drafts */
} llm_bench_head_t;


static int32_t
llm_bench_best(const llm_bench_head_t *b, uint32_t i)
{
    return (int32_t) llm_row_best(llm_model_logits(b->seq.model, i),
                                  llm_model_hparams(b->seq.model)->n_vocab);
}


/* a step of the known tokens that are not computed yet, and of drafts; adds the
   tokens that it gives */

static int
llm_bench_head_step(llm_bench_head_t *b, llm_err_t *err)
{
    int32_t    ids[2 * LLM_BENCH_DRAFT_MOST + 4];
    int32_t    drafts[LLM_BENCH_DRAFT_MOST];
    uint32_t   i, n, base, most, n_drafts;
    uint64_t   begin;

    base = b->seq.len;
    n = (uint32_t) b->ids.len - base;
    n_drafts = 0;
    begin = llm_now_us();

    most = (uint32_t) (b->ids.cap - b->ids.len);

    if (n == 1 && most > 1
        && llm_cli_head_guess(&b->head, &b->seq, &b->ids,
                              llm_min(most - 1,
                                      (uint32_t) LLM_BENCH_DRAFT_MOST),
                              LLM_BENCH_DRAFT_LEAST, drafts, &n_drafts, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    b->draft_us += llm_now_us() - begin;

    if (n_drafts && llm_model_n_slots(b->seq.model)) {
        llm_model_copy_slot(b->seq.model, 0, 1);
    }

    memcpy(ids, b->ids.data + base, n * sizeof(*ids));
    memcpy(ids + n, drafts, n_drafts * sizeof(*ids));

    if (llm_cli_seq_step(&b->seq, ids, n + n_drafts, 1 + n_drafts, err)
        != LLM_OK
        || llm_cli_head_take(&b->head, &b->ids, base, n + n_drafts, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; /* void */ ; i++) {
        b->ids.data[b->ids.len++] = llm_bench_best(b, i);

        if (i == n_drafts || b->ids.data[b->ids.len - 1] != drafts[i]) {
            break;
        }
    }

    b->drafted += n_drafts;
    b->drawn += i;

    if (i == n_drafts) {
        return LLM_OK;
    }

    b->seq.len = base + n + i;
    llm_cli_head_drop(&b->head, b->seq.len);

    if (llm_model_n_slots(b->seq.model)) {
        llm_model_copy_slot(b->seq.model, 1, 0);
        b->seq.len = base;
    }

    return LLM_OK;
}


/* the ids that are there, then tokens until there is no room for more */

static int
llm_bench_head_run(llm_bench_head_t *b, double *seconds, llm_err_t *err)
{
    size_t    n;
    uint32_t  i, take;
    uint64_t  begin;

    n = b->ids.len;

    for (i = 0; i < n; i += take) {
        take = (uint32_t) llm_min(n - i, llm_model_batch(b->seq.model));

        if (llm_cli_seq_step(&b->seq, b->ids.data + i, take, i + take == n,
                             err) != LLM_OK
            || llm_cli_head_take(&b->head, &b->ids, i, take, err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    begin = llm_now_us();
    b->ids.data[b->ids.len++] = llm_bench_best(b, 0);

    while (b->ids.len < b->ids.cap) {
        if (llm_bench_head_step(b, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    *seconds = (double) (llm_now_us() - begin) * 1e-6;

    return LLM_OK;
}


int
llm_bench_head(const llm_cli_t *c, const char *path, const int32_t *ids,
    uint32_t n, uint32_t n_tg, llm_err_t *err)
{
    int                rc;
    double             seconds;
    llm_keep_t         keep;
    llm_bench_head_t   b;

    memset(&b, 0, sizeof(b));
    b.ids.cap = n + n_tg;
    b.ids.data = malloc((n + n_tg) * sizeof(*b.ids.data));

    if (b.ids.data == NULL) {
        return llm_fail(err, "no memory for %u ids", n + n_tg);
    }

    memcpy(b.ids.data, ids, n * sizeof(*ids));
    b.ids.len = n;

    rc = llm_head_keeps(path, &keep, err);

    if (rc == LLM_OK) {
        rc = llm_cli_seq_keeping(&b.seq, c, &keep, n + n_tg,
                                 LLM_CLI_BATCH_SIZE,
                                 LLM_BENCH_DRAFT_MOST + 1, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_head_open(&b.head, c, &b.seq, path, err);
    }

    if (rc == LLM_OK) {
        rc = llm_bench_head_run(&b, &seconds, err);
    }

    if (rc == LLM_OK) {
        printf("\ntg%u with drafts of %s: %.2f tokens/s, %u of %u drafted "
               "tokens were drawn, %.3f ms a draft\n", n_tg,
               path ? "the head" : "mtp", n_tg / seconds, b.drawn, b.drafted,
               b.drafted ? (double) b.draft_us / 1e3 / b.drafted : 0);
    }

    llm_cli_head_close(&b.head);
    llm_cli_seq_close(&b.seq);
    free(b.ids.data);

    return rc;
}
