/*
 * Towers against the shared fixtures (LLM_FIXTURES/vision): the rows that they
 * give of the images' pixels, and the logits of models that read these rows,
 * both against what transformers computes in float64; and the same bits in any
 * pieces, for entries alone and together, and for any steps of a prompt.
 */

#include "t/unit/tap.h"
#include "t/unit/model_run.h"
#include "t/unit/tower_spec.h"

#define ROWS_BOUND  0.002

/* sizes of steps in which a prompt is computed again: a slow device takes one,
   for the first prompt, as the others differ in what the host does for all
   devices alike */
#define STEPS  3

static const struct {
    const char  *name;
    double       bound;                 /* of logits */
} families[] = {
    { "qwen3vl", 0.0025 },
    { "qwen35", 0.004 },
    { "gemma4", 0.0025 },
    { "gemma4e", 0.0025 },
    { "qwen25vl", 0.0025 },
    { "gemma3", 0.0025 },
    { "mistral3", 0.0025 },
    { "smolvlm", 0.0025 },
    { "internvl", 0.0025 },
    { "glm4v", 0.0025 }
};

static const struct {
    const char  *device;
    const char  *isa;
    int          slow;
} devices[] = {
    { "reference", NULL, 1 },
    { "cpu", "avx2", 0 },
    { "cpu", "avx512", 0 },
    { "cpu", "amx", 0 },
    { "emu", NULL, 1 }
};


/* the same rows with small pieces, and entry by entry */

static void
check_pieces(llm_tower_t *t, const spec_image_t *im, const char *what)
{
    float     *rows;
    size_t     size;
    uint32_t   i, n;

    size = (size_t) im->first[im->n] * im->cols * sizeof(float);
    rows = malloc(size);
    n = 1;

    for (i = 0; i < im->n && n; i++) {
        n = spec_encode(t, im, i, i + 1,
                        rows + (size_t) im->first[i] * im->cols);
    }

    ok(n > 1 && memcmp(rows, im->rows, size) == 0,
       "%s: the same bits in %u pieces, entry by entry", what, n);
    free(rows);
}


static void
check_images(const char *dir, const cJSON *spec, llm_tower_t *t,
    llm_tower_t *small, spec_image_t *images, int n, int slow,
    const char *what)
{
    int     i;
    char    name[256];
    double  e;

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "%s: image %d", what, i);

        if (!ok(spec_image(dir, spec, i, t, &images[i]),
                "%s: shape and number of rows", name))
        {
            continue;
        }

        if (!ok(spec_encode(t, &images[i], 0, images[i].n, images[i].rows)
                > 0, "%s: is encoded", name))
        {
            continue;
        }

        e = spec_error(images[i].rows, images[i].want,
                       (size_t) images[i].first[images[i].n]
                       * images[i].cols);
        ok(e <= ROWS_BOUND, "%s: rows within %g: %.6f", name, ROWS_BOUND, e);

        if (i == 0 || !slow) {
            check_pieces(small, &images[i], name);
        }
    }
}


static void
check_prompt(const char *dir, const cJSON *prompt, llm_model_t *m,
    const spec_image_t *images, double bound, size_t n_steps, const char *what)
{
    char            file[128];
    float          *want, *got, *again;
    size_t          n, s, size = 0;
    double          e;
    const char     *name;
    spec_prompt_t  *p;

    static const uint32_t  steps[STEPS] = { 7, 1, 16 };

    p = malloc(sizeof(spec_prompt_t));
    name = cJSON_GetObjectItem(prompt, "name")->valuestring;
    snprintf(file, sizeof(file), "%s.logits", name);
    want = (float *) (void *) spec_read(dir, file, &size);

    if (!ok(want && spec_prompt(prompt, llm_model_hparams(m), images, p)
            && size == (size_t) p->n_out * llm_model_hparams(m)->n_vocab
                       * sizeof(float), "%s, %s: its rows", what, name))
    {
        free(want);
        free(p);
        return;
    }

    n = size / sizeof(float);
    got = malloc(size);
    again = malloc(size);

    if (ok(spec_run(m, p, SPEC_ROWS, 0, got), "%s, %s: runs", what, name)) {
        e = spec_error(got, want, n);
        ok(e <= bound, "%s, %s: logits within %g: %.6f", what, name, bound,
           e);
    }

    for (s = 0; s < n_steps; s++) {
        ok(spec_run(m, p, steps[s], SPEC_ROWS / LLM_KV_PAGE, again)
           && memcmp(got, again, size) == 0,
           "%s, %s: the same bits in steps of %u", what, name, steps[s]);
    }

    free(p->rows);
    free(p);
    free(want);
    free(got);
    free(again);
}


static void
check_loaded(const char *dir, const cJSON *spec, llm_model_t *m,
    llm_tower_t *t, llm_tower_t *small, double bound, int slow,
    const char *what)
{
    int            i, n;
    spec_image_t   images[SPEC_IMAGES];
    const cJSON   *prompts;

    n = cJSON_GetArraySize(cJSON_GetObjectItem(spec, "images"));
    n = llm_min(n, SPEC_IMAGES);
    prompts = cJSON_GetObjectItem(spec, "prompts");

    check_images(dir, spec, t, small, images, n, slow, what);

    for (i = 0; i < cJSON_GetArraySize(prompts); i++) {
        check_prompt(dir, cJSON_GetArrayItem(prompts, i), m, images, bound,
                     !slow ? STEPS : i == 0, what);
    }

    for (i = 0; i < n; i++) {
        spec_image_free(&images[i]);
    }
}


static void
check_family(const char *dir, const cJSON *spec, const char *device,
    const char *isa, double bound, int slow, const char *what)
{
    char               path[2048];
    llm_err_t          err;
    llm_model_t       *m;
    llm_tower_t       *t, *small;
    llm_model_opts_t   o;
    llm_tower_opts_t   to = { .model = &o };

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    o.threads = 2;
    o.ctx = SPEC_ROWS;
    o.batch = SPEC_ROWS;
    o.max_seqs = 2;
    snprintf(path, sizeof(path), "%s/text.gguf", dir);
    m = llm_model_load(path, &o, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s: the model loads", what)) {
        printf("# %s\n", err.msg);
        return;
    }

    if (!llm_model_takes_rows(m)) {
        skip("the device takes no rows");
        llm_model_free(m);
        return;
    }

    snprintf(path, sizeof(path), "%s/mmproj.gguf", dir);
    t = llm_tower_load(path, m, &to, &err);

    if (!ok(t != NULL, "%s: the tower loads", what)) {
        printf("# %s\n", err.msg);
        llm_model_free(m);
        return;
    }

    to.batch = 13;
    small = llm_tower_load(path, m, &to, &err);

    if (ok(small != NULL, "%s: and once more, for small steps", what)) {
        check_loaded(dir, spec, m, t, small, bound, slow, what);
    }

    llm_tower_free(small);
    llm_tower_free(t);
    llm_model_free(m);
}


int
main(int argc, char **argv)
{
    char         dir[1024], what[128], *text;
    cJSON       *spec;
    size_t       i, k, size;
    const char  *fixtures = getenv("LLM_FIXTURES");

    for (i = 0; fixtures && i < llm_nelems(families); i++) {
        if (argc > 1 && strcmp(argv[1], families[i].name) != 0) {
            continue;
        }

        snprintf(dir, sizeof(dir), "%s/vision/%s", fixtures,
                 families[i].name);
        text = spec_read(dir, "spec.json", &size);
        spec = text ? cJSON_Parse(text) : NULL;
        free(text);

        if (!ok(spec != NULL, "%s: spec.json", families[i].name)) {
            continue;
        }

        for (k = 0; k < llm_nelems(devices); k++) {
            if (argc > 2 && strcmp(argv[2], devices[k].isa
                                            ? devices[k].isa
                                            : devices[k].device) != 0)
            {
                continue;
            }

            snprintf(what, sizeof(what), "%s, %s", families[i].name,
                     devices[k].isa ? devices[k].isa : devices[k].device);
            check_family(dir, spec, devices[k].device, devices[k].isa,
                         families[i].bound, devices[k].slow, what);
        }

        cJSON_Delete(spec);
    }

    if (fixtures == NULL) {
        skip("LLM_FIXTURES is not set: no fixtures of images");
    }

    return done_testing();
}
