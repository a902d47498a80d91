/*
 * Logits of a prompt with images: among the ids the word "image" stands for the
 * next image, with the texts that its family's processor puts around it and
 * between its tiles.
 *
 * The prompt's rows are laid out before the model is loaded, which then gets
 * the context that they need.
 */

#include "engine/cli/cli.h"
#include "engine/prepare/layout.h"

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

    llm_layout_t        layout;
    uint32_t            n_images;       /* that are laid out */
    llm_cli_row_t      *rows;           /* [n] */
    uint32_t            n;
    uint32_t            longest;        /* rows that must be in one step */

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

static int
llm_cli_prompt_image(llm_cli_prompt_t *p)
{
    int                rc;
    llm_image_t        image;
    llm_image_plan_t   plan;

    if (p->n_images == p->c->images.n) {
        return llm_fail(p->err, "standard input: more images than --image "
                        "names, %u", p->c->images.n);
    }

    if (llm_cli_decode(p->c->images.v[p->n_images++], &image, p->err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = llm_layout_image(&p->layout, &p->rule, &image, &plan, p->err);
    llm_image_free(&image);

    return rc;
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
             ? llm_cli_prompt_image(p)
             : llm_layout_ids(&p->layout, &ids.data[i], 1, p->err);
    }

    if (rc == LLM_OK && p->n_images < p->c->images.n) {
        rc = llm_fail(p->err, "standard input: %u images, where --image names "
                      "%u", p->n_images, p->c->images.n);
    }

    free(ids.data);

    return rc;
}


/* ---- the rows ---- */

/* a row of an image; returns the position after it */

static uint32_t
llm_cli_prompt_given(llm_cli_prompt_t *p, const llm_media_t *m, uint32_t i,
    uint32_t turn)
{
    llm_cli_row_t      *row;
    llm_tower_shape_t   s;

    memset(&s, 0, sizeof(s));
    s.rows = m->lines;
    s.cols = m->cols;
    s.n_rows = m->n;

    row = &p->rows[i];
    row->given = p->n_given++;
    row->sees = p->hp.spans ? m->first + m->n : i + 1;
    llm_tower_turns(&p->hp, &s, turn, i - m->first, row->turns);

    return i + 1 == m->first + m->n ? turn + llm_tower_length(&p->hp, &s)
                                    : turn;
}


static int
llm_cli_prompt_rows(llm_cli_prompt_t *p)
{
    uint32_t            i, k, turn;
    llm_cli_row_t      *row;
    const llm_media_t  *m, *end;

    p->n = (uint32_t) p->layout.ids.len;
    p->rows = calloc(llm_max(p->n, 1u), sizeof(llm_cli_row_t));

    if (p->rows == NULL) {
        return llm_fail(p->err, "no memory for the prompt");
    }

    m = p->layout.media;
    end = m + p->layout.n_media;
    p->longest = 1;

    for (i = 0, turn = 0; i < p->n; i++) {
        row = &p->rows[i];
        row->token = p->layout.ids.data[i];

        if (m < end && i == m->first + m->n) {
            m++;
        }

        if (m < end && i >= m->first) {
            p->longest = llm_max(p->longest, p->hp.spans ? m->n : 1);
            turn = llm_cli_prompt_given(p, m, i, turn);
            continue;
        }

        row->given = LLM_NOT_GIVEN;
        row->sees = i + 1;

        for (k = 0; k < LLM_TURNS; k++) {
            row->turns[k] = turn;
        }

        turn++;
    }

    return LLM_OK;
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
    p->layout.vocab = p->vocab;

    return p->vocab ? LLM_OK : LLM_ERROR;
}


/* ---- the rows of images ---- */

static int
llm_cli_prompt_encode(llm_cli_prompt_t *p, llm_model_t *model)
{
    int                 rc;
    float              *to;
    uint32_t            i;
    llm_tower_t        *t;
    llm_tower_entry_t   e;
    const llm_media_t  *m;

    if (!llm_model_takes_rows(model)) {
        return llm_fail(p->err, "the device takes no images");
    }

    t = llm_cli_tower(p->c, model, 0, p->err);

    if (t == NULL) {
        return LLM_ERROR;
    }

    rc = LLM_OK;
    to = malloc((size_t) llm_max(p->n_given, 1u) * p->cols * sizeof(float));
    p->given = to;

    if (to == NULL) {
        rc = llm_fail(p->err, "no memory for the rows of images");
    }

    for (i = 0; rc == LLM_OK && i < p->layout.n_media; i++) {
        m = &p->layout.media[i];
        e = (llm_tower_entry_t) { m->w, m->h, m->rgb, m->samples, m->own };
        rc = llm_cli_encode(t, &e, 1, m->n, to, NULL, p->err);
        to += (size_t) m->n * p->cols;
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
    int               rc;
    llm_cli_prompt_t  p;

    memset(&p, 0, sizeof(p));
    p.c = c;
    p.err = err;

    rc = llm_cli_prompt_open(&p);

    if (rc == LLM_OK) {
        rc = llm_cli_prompt_read(&p);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_prompt_rows(&p);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_prompt_run(&p);
    }

    llm_layout_free(&p.layout);
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
