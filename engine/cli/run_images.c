/*
 * Logits of a prompt with images: among the ids the word "image" stands for the
 * next image, with the texts that its family's processor puts around it and
 * between its tiles.
 *
 * The prompt's rows are laid out before the model is loaded, which then gets
 * the context that they need.
 */

#include "engine/cli/cli.h"

/* one row of the prompt */
typedef struct {
    int32_t   token;
    uint32_t  given;                    /* or LLM_NOT_GIVEN */
    uint32_t  turns[LLM_TURNS];
    uint32_t  sees;                     /* end of what it sees */
} llm_cli_row_t;

typedef struct {
    const llm_cli_t    *c;
    llm_hparams_t       hp;
    llm_vocab_t        *vocab;
    llm_image_rule_t    rule;
    llm_err_t          *err;

    llm_cli_row_t      *rows;
    uint32_t            n;
    uint32_t            cap;
    uint32_t            turn;           /* position of the next row */
    uint32_t            longest;        /* rows that must be in one step */

    llm_cli_picture_t   pictures[LLM_CLI_LIST];
    uint32_t            n_pictures;
    float              *given;          /* [n_given][cols] rows of all images */
    uint32_t            n_given;
    uint32_t            cols;

    /* of a step */
    int32_t            *tokens;
    uint32_t           *given_at;
    uint32_t           *turns;
    uint32_t           *sees;
    uint32_t           *out;
} llm_cli_prompt_t;


/* ---- the layout ---- */

static llm_cli_row_t *
llm_cli_prompt_row(llm_cli_prompt_t *p)
{
    uint32_t        cap;
    llm_cli_row_t  *rows;

    if (p->n == p->cap) {
        cap = p->cap ? 2 * p->cap : 1024;
        rows = realloc(p->rows, cap * sizeof(llm_cli_row_t));

        if (rows == NULL) {
            (void) llm_fail(p->err, "no memory for the prompt");
            return NULL;
        }

        p->rows = rows;
        p->cap = cap;
    }

    rows = &p->rows[p->n++];
    rows->token = 0;
    rows->given = LLM_NOT_GIVEN;
    rows->sees = p->n;

    return rows;
}


static int
llm_cli_prompt_token(llm_cli_prompt_t *p, int32_t token)
{
    uint32_t        k;
    llm_cli_row_t  *row;

    row = llm_cli_prompt_row(p);

    if (row == NULL) {
        return LLM_ERROR;
    }

    row->token = token;

    for (k = 0; k < LLM_TURNS; k++) {
        row->turns[k] = p->turn;
    }

    p->turn++;
    p->longest = llm_max(p->longest, 1u);

    return LLM_OK;
}


static int
llm_cli_prompt_text(void *ctx, const char *text, size_t len)
{
    int                rc;
    size_t             i;
    llm_ids_t          ids = { NULL, 0, 0 };
    llm_cli_prompt_t  *p = ctx;

    rc = llm_vocab_tokenize(p->vocab, text, len, NULL, 0,
                            LLM_TOKENIZE_SPECIAL, 0, &ids, p->err);

    for (i = 0; rc == LLM_OK && i < ids.len; i++) {
        rc = llm_cli_prompt_token(p, ids.data[i]);
    }

    free(ids.data);

    return rc;
}


static int
llm_cli_prompt_entry(void *ctx, uint32_t entry)
{
    uint32_t                 i, end;
    llm_cli_row_t           *row;
    llm_cli_prompt_t        *p = ctx;
    llm_tower_shape_t        s;
    const llm_image_plan_t  *plan = &p->pictures[p->n_pictures - 1].plan;

    (void) entry;

    memset(&s, 0, sizeof(s));
    s.rows = plan->rows;
    s.cols = plan->cols;
    s.n_rows = plan->n_rows;
    end = p->n + s.n_rows;

    for (i = 0; i < s.n_rows; i++) {
        row = llm_cli_prompt_row(p);

        if (row == NULL) {
            return LLM_ERROR;
        }

        row->given = p->n_given++;
        row->sees = p->hp.spans ? end : p->n;
        llm_tower_turns(&p->hp, &s, p->turn, i, row->turns);
    }

    p->turn += llm_tower_length(&p->hp, &s);
    p->longest = llm_max(p->longest, p->hp.spans ? s.n_rows : 1);

    return LLM_OK;
}


static int
llm_cli_prompt_image(llm_cli_prompt_t *p)
{
    llm_cli_picture_t   *picture;
    llm_image_layout_t   to = { p, llm_cli_prompt_text,
                                llm_cli_prompt_entry };

    if (p->n_pictures == p->c->images.n) {
        return llm_fail(p->err, "standard input: more images than --image "
                        "names, %u", p->c->images.n);
    }

    picture = &p->pictures[p->n_pictures++];

    if (llm_cli_picture(p->c->images.v[p->n_pictures - 1], &p->rule, picture,
                        p->err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_image_layout(&p->rule, &picture->plan, &to);
}


static int
llm_cli_prompt_read(llm_cli_prompt_t *p)
{
    int        rc;
    size_t     i;
    llm_ids_t  ids = { NULL, 0, 0 };

    rc = llm_cli_read_ids(p->hp.n_vocab, 1, &ids, p->err);

    if (rc == LLM_OK && ids.len == 0) {
        rc = llm_fail(p->err, "standard input: no ids");
    }

    for (i = 0; rc == LLM_OK && i < ids.len; i++) {
        rc = ids.data[i] == LLM_CLI_HERE
             ? llm_cli_prompt_image(p) : llm_cli_prompt_token(p, ids.data[i]);
    }

    if (rc == LLM_OK && p->n_pictures < p->c->images.n) {
        rc = llm_fail(p->err, "standard input: %u images, where --image names "
                      "%u", p->n_pictures, p->c->images.n);
    }

    free(ids.data);

    return rc;
}


static int
llm_cli_prompt_open(llm_cli_prompt_t *p)
{
    int          rc;
    llm_gguf_t  *g;

    g = llm_gguf_open(p->c->file, p->err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_model_check(g, &p->hp, p->err);
    llm_gguf_close(g);

    if (rc != LLM_OK || llm_cli_rule(p->c, &p->rule, p->err) != LLM_OK) {
        return LLM_ERROR;
    }

    p->cols = p->hp.n_embd * (1 + p->hp.n_deepstack);
    p->vocab = llm_cli_vocab(p->c->file, p->err);

    return p->vocab ? LLM_OK : LLM_ERROR;
}


/* ---- the rows of images ---- */

static int
llm_cli_prompt_encode(llm_cli_prompt_t *p, llm_model_t *m)
{
    int                 rc;
    size_t              size;
    float              *to;
    uint32_t            i;
    llm_tower_t        *t;
    llm_cli_picture_t  *picture;

    if (!llm_model_takes_rows(m)) {
        return llm_fail(p->err, "the device takes no images");
    }

    t = llm_cli_tower(p->c, m, p->err);

    if (t == NULL) {
        return LLM_ERROR;
    }

    rc = LLM_OK;
    to = malloc((size_t) llm_max(p->n_given, 1u) * p->cols * sizeof(float));
    p->given = to;

    if (to == NULL) {
        rc = llm_fail(p->err, "no memory for the rows of images");
    }

    for (i = 0; rc == LLM_OK && i < p->n_pictures; i++) {
        picture = &p->pictures[i];
        rc = llm_cli_encode(t, picture, p->err);

        if (rc == LLM_OK) {
            size = (size_t) picture->plan.n_tokens * p->cols;
            memcpy(to, picture->rows, size * sizeof(float));
            to += size;
        }
    }

    llm_tower_free(t);

    return rc;
}


/* ---- the steps ---- */

static int
llm_cli_prompt_arrays(llm_cli_prompt_t *p, uint32_t batch)
{
    p->tokens = malloc(batch * sizeof(int32_t));
    p->given_at = malloc(batch * sizeof(uint32_t));
    p->turns = malloc(batch * LLM_TURNS * sizeof(uint32_t));
    p->sees = malloc(batch * 2 * sizeof(uint32_t));
    p->out = malloc(batch * sizeof(uint32_t));

    return p->tokens && p->given_at && p->turns && p->sees && p->out
           ? LLM_OK : llm_fail(p->err, "no memory for a step");
}


/* end of a step from row `from` on: at most n rows, or a span */

static uint32_t
llm_cli_prompt_end(const llm_cli_prompt_t *p, uint32_t from, uint32_t n)
{
    uint32_t  end;

    end = p->rows[from].sees;

    while (end < p->n && p->rows[end].sees - from <= n) {
        end = p->rows[end].sees;
    }

    return end;
}


/* results are of rows of text, or of the last one */

static int
llm_cli_prompt_step(llm_cli_prompt_t *p, llm_cli_seq_t *s, uint32_t from,
    uint32_t end)
{
    uint32_t              i, k, n_vocab;
    llm_batch_t           b;
    const llm_cli_row_t  *row;

    memset(&b, 0, sizeof(b));

    for (i = from; i < end; i++) {
        row = &p->rows[i];
        k = i - from;
        p->tokens[k] = row->token;
        p->given_at[k] = row->given;
        memcpy(p->turns + k * LLM_TURNS, row->turns, sizeof(row->turns));
        p->sees[2 * k] = 0;
        p->sees[2 * k + 1] = row->sees;

        if (p->c->all ? row->given == LLM_NOT_GIVEN : i + 1 == p->n) {
            p->out[b.n_out++] = k;
        }
    }

    b.n_tokens = end - from;
    b.tokens = p->tokens;
    b.out_rows = p->out;
    b.given = p->given_at;
    b.rows = p->given;
    b.n_given = p->n_given;
    b.given_cols = p->cols;
    b.turns = p->turns;
    b.sees = p->sees;

    if (llm_cli_seq_run(s, &b, p->err) != LLM_OK) {
        return LLM_ERROR;
    }

    n_vocab = p->hp.n_vocab;

    for (i = 0; i < b.n_out; i++) {
        if (llm_cli_write(llm_model_logits(s->model, i),
                          n_vocab * sizeof(float), p->err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_cli_prompt_run(llm_cli_prompt_t *p)
{
    int            rc;
    uint32_t       from, end, n, batch, ctx;
    llm_cli_seq_t  s;

    n = llm_min(p->c->batch ? p->c->batch : LLM_CLI_BATCH_SIZE, p->n);
    batch = llm_max(n, p->longest);
    ctx = p->c->ctx ? p->c->ctx : p->n;

    if (llm_cli_seq_open(&s, p->c, ctx, batch, p->c->all ? batch : 1, p->err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = llm_cli_prompt_encode(p, s.model);

    if (rc == LLM_OK) {
        rc = llm_cli_prompt_arrays(p, batch);
    }

    for (from = 0; rc == LLM_OK && from < p->n; from = end) {
        end = llm_cli_prompt_end(p, from, n);
        rc = llm_cli_prompt_step(p, &s, from, end);
    }

    llm_cli_seq_close(&s);

    return rc;
}


int
llm_cli_logits_images(const llm_cli_t *c, llm_err_t *err)
{
    int                rc;
    uint32_t           i;
    llm_cli_prompt_t   p;

    memset(&p, 0, sizeof(p));
    p.c = c;
    p.err = err;

    rc = llm_cli_prompt_open(&p);

    if (rc == LLM_OK) {
        rc = llm_cli_prompt_read(&p);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_prompt_run(&p);
    }

    for (i = 0; i < p.n_pictures; i++) {
        llm_cli_picture_free(&p.pictures[i]);
    }

    llm_vocab_free(p.vocab);
    free(p.rows);
    free(p.given);
    free(p.tokens);
    free(p.given_at);
    free(p.turns);
    free(p.sees);
    free(p.out);

    return rc;
}
