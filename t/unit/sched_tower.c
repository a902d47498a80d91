/*
 * The scheduler over models with images and their towers (the shared fixtures,
 * LLM_FIXTURES/vision): answers are those of the model alone, whatever else
 * runs, and an image is encoded once.
 */

#include "t/unit/sched_rig.h"
#include "engine/serve/engine.h"
#include "t/unit/tower_spec.h"

#define ANSWER  12

static llm_instance_t  instance;
static uint32_t        n_pieces;
static uint32_t        n_encoded;
static uint32_t        n_together;      /* jobs of several entries */


static int
count_encode(void *encoder, llm_media_t *const *m, uint32_t n, llm_err_t *err)
{
    int  rc;

    rc = instance.runner.encode(encoder, m, n, err);
    n_pieces++;
    n_encoded += rc == LLM_OK ? n : 0;
    n_together += rc == LLM_OK && n > 1;

    return rc;
}


/* open_all() for a real model */

static int
open_real(uint32_t max_seqs)
{
    llm_err_t         err;
    llm_zone_model_t  m = { .parallel = max_seqs };
    llm_sched_conf_t  conf;

    memset(asks, 0, sizeof(asks));
    memset(&conf, 0, sizeof(conf));
    n_over = 0;
    mem_size = llm_zone_size(1, 1, 1 << 17);
    mem = mmap(NULL, mem_size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    zone = llm_zone_init(mem, 1, &m, 1, 1 << 17, 1000);
    llm_port_open(&port, zone, NULL, 0, -1);
    llm_ring_consumer(&up, llm_zone_at(zone, port.worker->up));

    conf.runner = instance.runner;
    conf.runner.encode = count_encode;
    conf.runner.max_seqs = max_seqs;
    conf.runner.chunk = 64;
    conf.vocab = tiny.vocab;
    conf.zone = zone;
    conf.ended = ended;
    conf.masked = masked;
    sched = llm_sched_create(&conf, &err);

    if (!ok(sched != NULL, "a scheduler")) {
        printf("# %s\n", err.msg);
    }

    return sched != NULL;
}


/* ids of the likeliest tokens after the prompt, by the model alone; position:
   of the token after the prompt in rotary embeddings */

static void
answer_alone(llm_model_t *m, const spec_prompt_t *p, int32_t *ids)
{
    float          *logits, *row;
    uint32_t        i, k, n_vocab = llm_model_hparams(m)->n_vocab;
    spec_prompt_t  *all;

    all = malloc(sizeof(spec_prompt_t));
    *all = *p;
    logits = malloc((size_t) SPEC_ROWS * n_vocab * sizeof(float));

    for (i = 0; i < ANSWER; i++) {
        (void) spec_run(m, all, 64, 0, logits);
        row = logits + (size_t) (all->n_out - 1) * n_vocab;

        for (k = 1, ids[i] = 0; k < n_vocab; k++) {
            ids[i] = row[k] > row[ids[i]] ? (int32_t) k : ids[i];
        }

        all->tokens[all->n] = ids[i];
        all->pos[all->n] = all->n;
        all->given[all->n] = LLM_NOT_GIVEN;
        all->sees[all->n][0] = 0;
        all->sees[all->n][1] = all->n + 1;
        all->whole[all->n] = all->n + 1;

        for (k = 0; k < LLM_TURNS; k++) {
            all->turns[all->n][k] = all->turns[all->n - 1][0] + 1;
        }

        all->out[all->n_out++] = all->n;
        all->n++;
    }

    free(logits);
    free(all);
}


/* a prompt's request, with the pixels of its images */

static void
ask_spec(uint32_t slot, const cJSON *prompt, const spec_prompt_t *p,
    const spec_image_t *images)
{
    int                        i, n;
    ask_t                     *a;
    size_t                     size;
    uint32_t                   at;
    llm_media_t               *m;
    const cJSON               *s, *segments;
    llm_prompt_ids_t          *ids;
    const spec_image_t        *im;
    const llm_tower_entry_t   *e;
    const llm_tower_shape_t   *shape;

    a = ask(slot, p->tokens, p->n, 1, ANSWER, 0);
    segments = cJSON_GetObjectItem(prompt, "segments");
    n = cJSON_GetArraySize(segments);
    ids = &a->req->prep.prompts[0];
    ids->media = calloc((size_t) n, sizeof(llm_media_t));

    for (i = 0, at = 0; i < n; i++) {
        s = cJSON_GetArrayItem(segments, i);

        if (strcmp(cJSON_GetArrayItem(s, 0)->valuestring, "text") == 0) {
            at += (uint32_t) cJSON_GetArraySize(cJSON_GetArrayItem(s, 1));
            continue;
        }

        im = &images[spec_int(s, 1)];
        e = &im->entries[spec_int(s, 2)];
        shape = &im->shapes[spec_int(s, 2)];
        size = (size_t) e->w * e->h * 3;
        m = &ids->media[ids->n_media++];
        m->first = at;
        m->n = shape->n_rows;
        m->cols = shape->cols;
        m->lines = shape->rows;
        m->digest = (uint64_t) spec_int(s, 1) * 100
                    + (uint64_t) spec_int(s, 2) + 1;
        m->w = e->w;
        m->h = e->h;
        m->rgb = malloc(size);
        memcpy(m->rgb, e->rgb, size);
        at += m->n;
    }

    ids->media_bytes = llm_media_most(ids, 1, &instance.runner, 1 << 20);

    add(a);
}


/* all prompts at once, and once more */

static void
check(const char *what, const cJSON *spec, llm_model_t *m,
    const spec_image_t *images)
{
    int             i, k, n, good;
    int32_t         want[4][ANSWER];
    uint32_t        once;
    const cJSON    *prompts;
    spec_prompt_t  *p;

    prompts = cJSON_GetObjectItem(spec, "prompts");
    n = llm_min(cJSON_GetArraySize(prompts), 4);
    p = calloc(4, sizeof(spec_prompt_t));

    for (i = 0; i < n; i++) {
        (void) spec_prompt(cJSON_GetArrayItem(prompts, i),
                           llm_model_hparams(m), images, &p[i]);
        answer_alone(m, &p[i], want[i]);
    }

    if (!open_real(3)) {
        return;
    }

    n_encoded = 0;

    for (k = 0, once = 0; k < 2; k++) {
        for (i = 0; i < n; i++) {
            ask_spec((uint32_t) (k * n + i), cJSON_GetArrayItem(prompts, i),
                     &p[i], images);
        }

        ok(run() == LLM_OK, "%s: all end", what);

        for (i = 0, good = 0; i < n; i++) {
            good += asks[k * n + i].n_ids[0] == ANSWER
                    && memcmp(asks[k * n + i].ids[0], want[i],
                              sizeof(want[i])) == 0;
        }

        is_int(good, n, "%s: answers as the model gives alone", what);
        once = k ? once : n_encoded;
    }

    ok(once > 0, "%s: %u entries were encoded, in %u pieces", what, once,
       n_pieces);
    is_int(n_encoded, once, "%s: and not again", what);
    close_all();

    for (i = 0; i < n; i++) {
        free(p[i].rows);
    }

    free(p);
}


static void
test(const char *dir, const char *name)
{
    int                i, n;
    char               path[2048], mmproj[2048], *text;
    cJSON             *spec;
    size_t             size;
    llm_err_t          err;
    llm_tower_t       *t;
    spec_image_t       images[SPEC_IMAGES];
    llm_model_opts_t   o;
    llm_tower_opts_t   to = { .model = &o };

    text = spec_read(dir, "spec.json", &size);
    spec = text ? cJSON_Parse(text) : NULL;
    free(text);

    if (!ok(spec != NULL, "%s: spec.json", name)) {
        return;
    }

    memset(&o, 0, sizeof(o));
    o.device = "cpu";
    o.threads = 2;
    o.ctx = SPEC_ROWS;
    o.batch = 512;
    o.max_seqs = 3;
    o.max_out = 128;
    snprintf(path, sizeof(path), "%s/text.gguf", dir);
    snprintf(mmproj, sizeof(mmproj), "%s/mmproj.gguf", dir);

    memset(&instance, 0, sizeof(instance));
    instance.conf.mmproj = mmproj;
    instance.model = llm_model_load(path, &o, &err);

    if (!ok(instance.model != NULL, "%s: loads", name)) {
        printf("# %s\n", err.msg);
        cJSON_Delete(spec);
        return;
    }

    tiny.vocab = llm_vocab_load(llm_model_gguf(instance.model), &err);
    llm_instance_runner_of(instance.model, &instance.runner);
    t = llm_tower_load(mmproj, instance.model, &to, &err);

    if (ok(llm_instance_encoder(&instance, &o, &err) == LLM_OK && t
           && tiny.vocab, "%s: and its encoder", name))
    {
        n = cJSON_GetArraySize(cJSON_GetObjectItem(spec, "images"));
        n = llm_min(n, SPEC_IMAGES);

        for (i = 0; i < n; i++) {
            (void) spec_image(dir, spec, i, t, &images[i]);
            (void) spec_encode(t, &images[i], 0, images[i].n,
                               images[i].rows);
        }

        check(name, spec, instance.model, images);

        for (i = 0; i < n; i++) {
            spec_image_free(&images[i]);
        }
    }

    llm_tower_free(t);
    llm_instance_close_encoder(&instance);
    llm_vocab_free(tiny.vocab);
    llm_model_free(instance.model);
    cJSON_Delete(spec);
}


int
main(void)
{
    char         dir[1024];
    size_t       i;
    const char  *fixtures = getenv("LLM_FIXTURES");

    static const char  *const names[] = {
        "qwen3vl", "qwen35", "gemma4", "gemma4e", "qwen25vl", "gemma3",
        "mistral3", "smolvlm", "internvl", "glm4v"
    };

    for (i = 0; fixtures && i < llm_nelems(names); i++) {
        snprintf(dir, sizeof(dir), "%s/vision/%s", fixtures, names[i]);
        test(dir, names[i]);
    }

    if (fixtures) {
        ok(n_together > 0, "%u times entries were encoded together",
           n_together);
    }

    if (fixtures == NULL) {
        skip("LLM_FIXTURES is not set: no fixtures of images");
    }

    return done_testing();
}
