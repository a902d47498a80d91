/*
 * The command embed: the final hidden states of a sequence of ids, or their
 * pooled vector; not normalised.
 */

#include "engine/cli/cli.h"

#define LLM_CLI_EMBED_BATCH  512


/* sets *pooling by the command line, or else by the file; unchanged if neither
   has one */

static int
llm_cli_pooling(const llm_cli_t *c, const llm_model_t *m,
    llm_pooling_t *pooling, llm_err_t *err)
{
    size_t  i;

    static const struct {
        const char     *name;
        llm_pooling_t   pooling;
    } known[] = {
        { "none", LLM_POOLING_NONE }, { "mean", LLM_POOLING_MEAN },
        { "cls", LLM_POOLING_CLS }, { "last", LLM_POOLING_LAST }
    };

    if (c->pooling == NULL) {
        if (llm_model_hparams(m)->pooling < LLM_POOLING_RANK) {
            *pooling = llm_model_hparams(m)->pooling;
        }

        return LLM_OK;
    }

    for (i = 0; i < llm_nelems(known); i++) {
        if (strcmp(c->pooling, known[i].name) == 0) {
            *pooling = known[i].pooling;
            return LLM_OK;
        }
    }

    return llm_fail(err, "--pooling: \"%s\" is unknown (none, mean, cls and "
                    "last are known)", c->pooling);
}


/* writes the states of positions [at, at + n), or adds those that the pooling
   takes to sum[n_embd]; all: length of the sequence */

static int
llm_cli_embed_states(llm_cli_seq_t *s, uint32_t at, uint32_t n, uint32_t all,
    llm_pooling_t pooling, double *sum, llm_err_t *err)
{
    uint32_t      i, k, n_embd;
    const float  *state;

    n_embd = llm_model_hparams(s->model)->n_embd;

    for (i = 0; i < n; i++) {
        state = llm_model_hidden(s->model, i);

        if (pooling == LLM_POOLING_NONE) {
            if (llm_cli_write(state, n_embd * sizeof(float), err) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        if ((pooling == LLM_POOLING_CLS && at + i != 0)
            || (pooling == LLM_POOLING_LAST && at + i != all - 1))
        {
            continue;
        }

        for (k = 0; k < n_embd; k++) {
            sum[k] += state[k];
        }
    }

    return LLM_OK;
}


static int
llm_cli_embed_ids(llm_cli_seq_t *s, const llm_ids_t *ids, uint32_t batch,
    llm_pooling_t pooling, llm_err_t *err)
{
    int        rc;
    float     *vec;
    double    *sum;
    uint32_t   i, take, n, n_embd;

    n = (uint32_t) ids->len;
    n_embd = llm_model_hparams(s->model)->n_embd;
    s->gives = LLM_GIVES_HIDDEN;

    sum = calloc(n_embd, sizeof(*sum));
    vec = malloc(n_embd * sizeof(*vec));

    if (sum == NULL || vec == NULL) {
        free(sum);
        free(vec);
        return llm_fail(err, "no memory for a vector");
    }

    /* an encoder needs all rows in one step */
    batch = llm_model_hparams(s->model)->encoder ? n : batch;

    rc = LLM_OK;

    for (i = 0; rc == LLM_OK && i < n; i += take) {
        take = llm_min(batch, n - i);
        rc = llm_cli_seq_step(s, ids->data + i, take, take, err);

        if (rc == LLM_OK) {
            rc = llm_cli_embed_states(s, i, take, n, pooling, sum, err);
        }
    }

    if (rc == LLM_OK && pooling != LLM_POOLING_NONE) {
        for (i = 0; i < n_embd; i++) {
            vec[i] = (float) (sum[i] / (pooling == LLM_POOLING_MEAN ? n : 1));
        }

        (void) llm_model_project(s->model, vec);
        rc = llm_cli_write(vec, n_embd * sizeof(*vec), err);
    }

    free(vec);
    free(sum);

    return rc;
}


int
llm_cli_embed(const llm_cli_t *c, llm_err_t *err)
{
    int             rc;
    uint32_t        n_vocab, batch;
    llm_ids_t       ids = { NULL, 0, 0 };
    llm_cli_seq_t   s;
    llm_pooling_t   pooling;

    if (c->audio) {
        return llm_cli_hear_states(c, err);
    }

    pooling = LLM_POOLING_LAST;
    batch = c->batch ? c->batch : LLM_CLI_EMBED_BATCH;
    rc = llm_cli_n_vocab(c->file, &n_vocab, err);

    if (rc == LLM_OK) {
        rc = llm_cli_read_ids(n_vocab, 0, &ids, err);
    }

    if (rc == LLM_OK && (ids.len == 0 || ids.len > INT32_MAX)) {
        rc = llm_fail(err, "standard input: %s ids",
                      ids.len ? "too many" : "no");
    }

    if (rc == LLM_OK) {
        batch = (uint32_t) llm_min(batch, ids.len);
        rc = llm_cli_seq_open(&s, c,
                              c->ctx ? c->ctx : (uint32_t) ids.len, batch,
                              batch, err);

        if (rc == LLM_OK) {
            rc = llm_cli_pooling(c, s.model, &pooling, err);

            if (rc == LLM_OK) {
                rc = llm_cli_embed_ids(&s, &ids, batch, pooling, err);
            }

            llm_cli_seq_close(&s);
        }
    }

    free(ids.data);

    return rc;
}
