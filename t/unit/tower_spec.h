/*
 * Families of the shared fixtures of images: a model, its tower, images as the
 * bytes that the tower gets, and prompts; and running them.
 */

#ifndef LLM_T_TOWER_SPEC_H
#define LLM_T_TOWER_SPEC_H

#include "engine/model/tower.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

#define SPEC_IMAGES   4
#define SPEC_ENTRIES  LLM_TOWER_ENTRIES
#define SPEC_ROWS     1024              /* of a prompt */

typedef struct {
    uint32_t           n;               /* entries */
    llm_tower_entry_t  entries[SPEC_ENTRIES];
    llm_tower_shape_t  shapes[SPEC_ENTRIES];
    uint32_t           first[SPEC_ENTRIES + 1];     /* row of each entry */
    uint8_t           *bytes;
    float             *want;            /* [rows][cols] */
    float             *rows;            /* what the tower gave */
    uint32_t           cols;
} spec_image_t;

/* a prompt's rows */
typedef struct {
    uint32_t           n;
    int32_t            tokens[SPEC_ROWS];
    uint32_t           pos[SPEC_ROWS];
    uint32_t           given[SPEC_ROWS];
    uint32_t           turns[SPEC_ROWS][LLM_TURNS];
    uint32_t           sees[SPEC_ROWS][2];
    uint32_t           whole[SPEC_ROWS];    /* end of the rows that are in one
                                               step with this one */
    uint32_t           out[SPEC_ROWS];  /* text rows */
    uint32_t           n_out;
    float             *rows;            /* given rows */
    uint32_t           n_given;
    uint32_t           cols;
} spec_prompt_t;


static inline char *
spec_read(const char *dir, const char *name, size_t *size)
{
    long   n;
    char   path[2048], *data;
    FILE  *in;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    in = fopen(path, "rb");

    if (in == NULL) {
        return NULL;
    }

    fseek(in, 0, SEEK_END);
    n = ftell(in);
    rewind(in);
    data = calloc(1, (size_t) n + 1);

    if (data && fread(data, 1, (size_t) n, in) != (size_t) n) {
        free(data);
        data = NULL;
    }

    fclose(in);
    *size = (size_t) n;

    return data;
}


static inline int
spec_int(const cJSON *array, int i)
{
    return cJSON_GetArrayItem(array, i)->valueint;
}


/* root mean square of the differences over the spread of what is wanted */

static inline double
spec_error(const float *x, const float *want, size_t n)
{
    size_t  i;
    double  mean, sum, spread, d;

    for (i = 0, mean = 0; i < n; i++) {
        mean += want[i];
    }

    mean /= (double) n;

    for (i = 0, sum = 0, spread = 0; i < n; i++) {
        d = (double) x[i] - want[i];
        sum += d * d;
        spread += (want[i] - mean) * (want[i] - mean);
    }

    return n ? sqrt(sum / spread) : 0;
}


static inline int
spec_image(const char *dir, const cJSON *spec, int i, llm_tower_t *t,
    spec_image_t *im)
{
    int           k;
    char          name[64];
    size_t        size, at;
    llm_err_t     err;
    const cJSON  *image, *list;

    memset(im, 0, sizeof(spec_image_t));
    image = cJSON_GetArrayItem(cJSON_GetObjectItem(spec, "images"), i);
    list = cJSON_GetObjectItem(image, "entries");
    im->cols = (uint32_t) cJSON_GetObjectItem(image, "width")->valueint;
    im->n = (uint32_t) cJSON_GetArraySize(list);

    snprintf(name, sizeof(name), "img%d.u8", i);
    im->bytes = (uint8_t *) spec_read(dir, name, &size);
    snprintf(name, sizeof(name), "img%d.embd", i);
    im->want = (float *) (void *) spec_read(dir, name, &size);

    if (im->n > SPEC_ENTRIES || im->bytes == NULL || im->want == NULL) {
        return 0;
    }

    for (k = 0, at = 0; k < (int) im->n; k++) {
        im->entries[k].w = (uint32_t) spec_int(cJSON_GetArrayItem(list, k), 0);
        im->entries[k].h = (uint32_t) spec_int(cJSON_GetArrayItem(list, k), 1);
        im->entries[k].rgb = im->bytes + at;
        im->entries[k].samples = NULL;
        im->entries[k].own = 0;
        at += (size_t) im->entries[k].w * im->entries[k].h * 3;

        if (llm_tower_shape(t, im->entries[k].w, im->entries[k].h,
                            &im->shapes[k], &err) != LLM_OK)
        {
            printf("# %s\n", err.msg);
            return 0;
        }

        im->first[k + 1] = im->first[k] + im->shapes[k].n_rows;
    }

    im->rows = calloc((size_t) im->first[im->n] * im->cols, sizeof(float));

    return im->cols == llm_tower_info(t)->n_cols
           && size == (size_t) im->first[im->n] * im->cols * sizeof(float);
}


static inline void
spec_image_free(spec_image_t *im)
{
    free(im->bytes);
    free(im->want);
    free(im->rows);
}


/* encodes entries first ... end - 1 in one job; returns the number of its
   pieces, 0: it failed */

static inline uint32_t
spec_encode(llm_tower_t *t, const spec_image_t *im, uint32_t first,
    uint32_t end, float *out)
{
    int               rc;
    uint32_t          n;
    llm_err_t         err;
    llm_tower_job_t  *job;

    job = llm_tower_begin(t, im->entries + first, end - first, out, &err);

    if (job == NULL) {
        printf("# %s\n", err.msg);
        return 0;
    }

    for (n = 1; (rc = llm_tower_step(job, &err)) == LLM_MORE; n++) {
        /* void */
    }

    if (rc != LLM_OK) {
        printf("# %s\n", err.msg);
        n = 0;
    }

    llm_tower_end(job);

    return n;
}


static inline void
spec_text(spec_prompt_t *p, const cJSON *ids, uint32_t *turn)
{
    int       i;
    uint32_t  k;

    for (i = 0; i < cJSON_GetArraySize(ids); i++) {
        p->tokens[p->n] = spec_int(ids, i);
        p->pos[p->n] = p->n;
        p->given[p->n] = LLM_NOT_GIVEN;
        p->sees[p->n][0] = 0;
        p->sees[p->n][1] = p->n + 1;
        p->whole[p->n] = p->n + 1;
        p->out[p->n_out++] = p->n;

        for (k = 0; k < LLM_TURNS; k++) {
            p->turns[p->n][k] = *turn;
        }

        p->n++;
        (*turn)++;
    }
}


static inline void
spec_entry(spec_prompt_t *p, const llm_hparams_t *hp, const spec_image_t *im,
    uint32_t entry, uint32_t *turn)
{
    uint32_t                  i, first;
    const llm_tower_shape_t  *s = &im->shapes[entry];

    first = p->n;
    memcpy(p->rows + (size_t) p->n_given * p->cols,
           im->rows + (size_t) im->first[entry] * p->cols,
           (size_t) s->n_rows * p->cols * sizeof(float));

    for (i = 0; i < s->n_rows; i++) {
        p->tokens[p->n] = 0;
        p->pos[p->n] = p->n;
        p->given[p->n] = p->n_given++;
        p->sees[p->n][0] = 0;
        p->sees[p->n][1] = hp->spans ? first + s->n_rows : p->n + 1;
        p->whole[p->n] = p->sees[p->n][1];
        llm_tower_turns(hp, s, *turn, i, p->turns[p->n]);
        p->n++;
    }

    *turn += llm_tower_length(hp, s);
}


static inline int
spec_prompt(const cJSON *prompt, const llm_hparams_t *hp,
    const spec_image_t *images, spec_prompt_t *p)
{
    int           i;
    uint32_t      turn;
    const cJSON  *s, *segments;

    memset(p, 0, sizeof(spec_prompt_t));
    turn = 0;
    p->cols = hp->n_embd * (1 + hp->n_deepstack);
    p->rows = calloc((size_t) SPEC_ROWS * p->cols, sizeof(float));
    segments = cJSON_GetObjectItem(prompt, "segments");

    for (i = 0; i < cJSON_GetArraySize(segments); i++) {
        s = cJSON_GetArrayItem(segments, i);

        if (strcmp(cJSON_GetArrayItem(s, 0)->valuestring, "text") == 0) {
            spec_text(p, cJSON_GetArrayItem(s, 1), &turn);

        } else {
            spec_entry(p, hp, &images[spec_int(s, 1)],
                       (uint32_t) spec_int(s, 2), &turn);
        }
    }

    return p->rows != NULL;
}


/*
 * Runs the prompt in steps of at most n rows, or of a whole span, in slots and
 * pages from `page` on, and copies the logits of its text rows.
 */

static inline int
spec_run(llm_model_t *m, const spec_prompt_t *p, uint32_t n, uint32_t page,
    float *logits)
{
    uint32_t      i, k, from, end, kv_len, slot, n_out, out[SPEC_ROWS];
    uint32_t      rows[2], pages[LLM_KV_KINDS][SPEC_ROWS / LLM_KV_PAGE];
    uint32_t      vocab = llm_model_hparams(m)->n_vocab;
    llm_err_t     err;
    llm_batch_t   b;

    slot = page ? 1 : 0;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        for (i = 0; i < SPEC_ROWS / LLM_KV_PAGE; i++) {
            pages[k][i] = page + i;
        }
    }

    for (from = 0; from < p->n; from = end) {
        end = from;

        while (end < p->n && (end == from || p->whole[end] - from <= n)) {
            end = p->whole[end];
        }

        for (i = from, n_out = 0; i < end; i++) {
            if (p->given[i] == LLM_NOT_GIVEN) {
                out[n_out++] = i - from;
            }
        }

        memset(&b, 0, sizeof(b));
        rows[0] = 0;
        rows[1] = end - from;
        kv_len = end;
        b.n_tokens = end - from;
        b.n_seqs = 1;
        b.n_out = n_out;
        b.max_pages = SPEC_ROWS / LLM_KV_PAGE;
        b.tokens = p->tokens + from;
        b.pos = p->pos + from;
        b.seq_rows = rows;
        b.kv_len = &kv_len;
        b.out_rows = out;
        b.slots = &slot;
        b.given = p->given + from;
        b.rows = p->rows;
        b.n_given = p->n_given;
        b.given_cols = p->cols;
        b.turns = p->turns[from];
        b.sees = p->sees[from];

        for (k = 0; k < LLM_KV_KINDS; k++) {
            b.pages[k] = pages[k];
        }

        if (llm_model_forward(m, &b, &err) != LLM_OK) {
            printf("# %s\n", err.msg);
            return 0;
        }

        for (i = 0; i < n_out; i++) {
            memcpy(logits, llm_model_logits(m, i), vocab * sizeof(float));
            logits += vocab;
        }
    }

    return 1;
}

#endif /* LLM_T_TOWER_SPEC_H */
