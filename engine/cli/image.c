/*
 * The command image: what the encoder of a model makes of an image file, as one
 * JSON object, or the pixels that it gets.
 */

#include "engine/api/json.h"
#include "engine/cli/cli.h"

typedef struct {
    llm_image_rule_t   rule;
    llm_image_plan_t   plan;
    llm_image_t        image;
} llm_cli_image_t;


static int
llm_cli_image_text(void *ctx, const char *text, size_t len)
{
    llm_buf_t  *b = ctx;

    (void) llm_buf_adds(b, b->data[b->len - 1] == '[' ? "[\"t\", "
                                                      : ", [\"t\", ");
    (void) llm_json_add_string(b, text, len);

    return llm_buf_addc(b, ']');
}


static int
llm_cli_image_entry(void *ctx, uint32_t entry)
{
    llm_buf_t  *b = ctx;

    return llm_buf_addf(b, "%s[\"e\", %u]",
                        b->data[b->len - 1] == '[' ? "" : ", ",
                        (unsigned) entry);
}


static void
llm_cli_image_colors(llm_buf_t *b, const char *name, const float v[3])
{
    (void) llm_buf_addf(b, ", \"%s\": [%.9g, %.9g, %.9g]", name, v[0], v[1],
                        v[2]);
}


/* the grid is that of the family's processor: of patches; of cells if there are
   breaks between their rows; none where all entries are squares of one size */

static void
llm_cli_image_sizes(llm_buf_t *b, const llm_cli_image_t *i)
{
    uint32_t                 k, unit;
    const llm_image_plan_t  *p;

    p = &i->plan;
    (void) llm_buf_addf(b, ", \"size\": [%u, %u], \"entries\": [",
                        (unsigned) i->image.width, (unsigned) i->image.height);

    for (k = 0; k < p->n_entries; k++) {
        (void) llm_buf_addf(b, "%s[%u, %u]", k ? ", " : "",
                            (unsigned) p->width, (unsigned) p->height);
    }

    (void) llm_buf_adds(b, "]");

    switch (i->rule.sizing) {

    case LLM_SIZING_SQUARE:
    case LLM_SIZING_MIDDLE:
        break;

    case LLM_SIZING_SPLIT:
    case LLM_SIZING_GRID:
        (void) llm_buf_addf(b, ", \"tiles\": [%u, %u]",
                            (unsigned) p->tile_rows, (unsigned) p->tile_cols);
        break;

    default:
        unit = i->rule.breaks ? 1 : i->rule.merge;
        (void) llm_buf_addf(b, ", \"grid\": [1, %u, %u]",
                            (unsigned) (p->rows * unit),
                            (unsigned) (p->cols * unit));
        break;
    }

    (void) llm_buf_adds(b, ", \"rows\": [");

    for (k = 0; k < p->n_entries; k++) {
        (void) llm_buf_addf(b, "%s%u", k ? ", " : "", (unsigned) p->n_rows);
    }

    (void) llm_buf_addf(b, "], \"tokens\": %u", (unsigned) p->n_tokens);
}


static int
llm_cli_image_show(const llm_cli_t *c, const llm_cli_image_t *i,
    llm_err_t *err)
{
    int                 rc;
    llm_buf_t           b;
    llm_image_layout_t  to = { &b, llm_cli_image_text, llm_cli_image_entry };

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"file\": ");
    (void) llm_json_add_string(&b, c->file, strlen(c->file));
    (void) llm_buf_addf(&b, ", \"projector\": \"%s\"", i->rule.projector);
    llm_cli_image_sizes(&b, i);
    (void) llm_buf_adds(&b, ", \"layout\": [");

    /* the buffer has bytes, which the callbacks look at, unless it failed */
    if (!b.failed) {
        (void) llm_image_layout(&i->rule, &i->plan, &to);
    }

    (void) llm_buf_adds(&b, "]");
    llm_cli_image_colors(&b, "mean", i->rule.mean);
    llm_cli_image_colors(&b, "std", i->rule.std);
    (void) llm_buf_adds(&b, "}\n");

    rc = b.failed ? llm_fail(err, "no memory for the output")
                  : llm_cli_write(b.data, b.len, err);

    llm_buf_free(&b);

    return rc;
}


static int
llm_cli_image_encode(llm_tower_t *t, const llm_cli_picture_t *p,
    llm_err_t *err)
{
    int                      rc;
    float                   *rows;
    size_t                   size, n;
    uint32_t                 i;
    llm_tower_entry_t       *e;
    const llm_image_plan_t  *plan = &p->plan;

    n = (size_t) plan->n_tokens * llm_tower_info(t)->n_cols;
    rows = malloc(n * sizeof(float));
    e = calloc(plan->n_entries, sizeof(llm_tower_entry_t));

    if (rows == NULL || e == NULL) {
        free(rows);
        free(e);
        return llm_fail(err, "no memory for the rows of an image");
    }

    size = (size_t) plan->width * plan->height * 3;

    for (i = 0; i < plan->n_entries; i++) {
        e[i].w = plan->width;
        e[i].h = plan->height;
        e[i].rgb = p->pixels + i * size;
    }

    rc = llm_cli_encode(t, e, plan->n_entries, plan->n_rows, rows, NULL, err);

    if (rc == LLM_OK) {
        rc = llm_cli_write(rows, n * sizeof(float), err);
    }

    free(rows);
    free(e);

    return rc;
}


/* the rows that the tower gives, which also fits --model, if it is given */

static int
llm_cli_image_rows(const llm_cli_t *c, const llm_cli_picture_t *p,
    llm_err_t *err)
{
    int                rc;
    llm_model_t       *m;
    llm_tower_t       *t;
    llm_model_opts_t   o;

    m = NULL;
    t = NULL;
    rc = llm_cli_model_opts(c, &o, err);

    if (rc == LLM_OK && c->model) {
        o.ctx = o.ctx ? o.ctx : 16;
        m = llm_model_load(c->model, &o, err);
        rc = m ? LLM_OK : LLM_ERROR;
    }

    if (rc == LLM_OK) {
        t = llm_cli_tower(c, m, 0, err);
        rc = t ? llm_cli_image_encode(t, p, err) : LLM_ERROR;
    }

    llm_tower_free(t);
    llm_model_free(m);

    return rc;
}


/* the bytes that the tower gets, or the rows that it gives */

static int
llm_cli_image_numbers(const llm_cli_t *c, const llm_image_rule_t *rule,
    llm_err_t *err)
{
    int                rc;
    llm_cli_picture_t  p;

    rc = llm_cli_picture(c->file, rule, &p, err);

    if (rc == LLM_OK) {
        rc = c->rows ? llm_cli_image_rows(c, &p, err)
                     : llm_cli_write(p.pixels, llm_image_plan_size(&p.plan),
                                     err);
    }

    llm_cli_picture_free(&p);

    return rc;
}


int
llm_cli_image(const llm_cli_t *c, llm_err_t *err)
{
    int              rc;
    llm_cli_image_t  i;

    memset(&i, 0, sizeof(i));

    if (c->mmproj == NULL) {
        return llm_fail(err, "image: --mmproj FILE is missing: the encoder "
                        "that came with the model");
    }

    if (llm_cli_rule(c, &i.rule, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (c->pixels || c->rows) {
        return llm_cli_image_numbers(c, &i.rule, err);
    }

    if (llm_cli_decode(c->file, &i.image, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = llm_image_plan(&i.rule, i.image.width, i.image.height, &i.plan, err);

    if (rc == LLM_OK) {
        rc = llm_cli_image_show(c, &i, err);
    }

    llm_image_free(&i.image);

    return rc;
}
