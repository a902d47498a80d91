/*
 * Loading and unloading of a model; see load.h.
 */

#include "engine/serve/check.h"
#include "engine/serve/engine.h"
#include "engine/base/file.h"
#include "engine/model/backend.h"
#include "engine/base/machine.h"

#include <limits.h>
#include <stdio.h>

#define LLM_DEFAULT_CHUNK 512           /* most prompt rows of a step, without
                                           batch= */
#define LLM_SCORE_ROWS    128           /* rows of a step that score echoed
                                           prompts */
#define LLM_RETRY_MAX     60u           /* longest pause before a load is tried
                                           again, in seconds, unless the first
                                           pause is longer */


void
llm_instance_permille(llm_instance_t *m, uint32_t permille)
{
    llm_zone_set(*m->permille[0], permille);

    if (m->permille[1]) {
        llm_zone_set(*m->permille[1], permille);
    }
}


static void
llm_instance_progress(void *data, int permille)
{
    llm_instance_permille(data, (uint32_t) permille);
}


const char *
llm_instance_path(const llm_instance_t *m)
{
    return m->file ? m->file : m->conf.path;
}


/* loads the chat template; without one the model still completes text, and
   chat_err says why there is none */

static void
llm_instance_template(llm_instance_t *m, const llm_gguf_t *g)
{
    int              rc;
    llm_str_t        src, bos, eos;
    llm_prep_env_t  *env;

    env = &m->env;

    llm_buf_init(&env->template, LLM_TEMPLATE_MAX);
    env->chat_err.status = 0;

    if (m->conf.template_path) {
        if (llm_file_read(m->conf.template_path, &env->template,
                          &env->chat_err)
            != LLM_OK)
        {
            llm_buf_free(&env->template);
            return;
        }

    } else {
        rc = llm_gguf_get_str(g, "tokenizer.chat_template", &src,
                              &env->chat_err);

        if (rc == LLM_ABSENT) {
            (void) llm_fail_with(&env->chat_err, 400, "no_chat_template",
                                 "model", "this model has no chat template; "
                                 "use completions");
        }

        if (rc != LLM_OK) {
            return;
        }

        if (llm_buf_add(&env->template, src.data, src.len) != LLM_OK) {
            (void) llm_fail(&env->chat_err, "the chat template has %zu bytes, "
                            "more than %d", src.len, LLM_TEMPLATE_MAX);
            llm_buf_free(&env->template);
            return;
        }
    }

    src.data = env->template.data;
    src.len = env->template.len;
    bos = llm_vocab_bytes(env->vocab, llm_vocab_bos(env->vocab));
    eos = llm_vocab_bytes(env->vocab, llm_vocab_eos(env->vocab));

    env->chat = llm_chat_create(src, bos, eos, &env->chat_err);
}


/* threads of the CPU device, 0: its default; not more than there are CPUs:
   others would only be waited for, in each operation */

static uint32_t
llm_instance_threads(const llm_instance_t *m)
{
    return m->conf.threads ? llm_min(m->conf.threads, llm_machine_cpus()) : 0;
}


void
llm_instance_sizes(const llm_engine_model_t *conf, uint32_t parallel,
    llm_model_opts_t *opts)
{
    opts->ctx = conf->ctx;
    opts->max_seqs = parallel;
    opts->kv_bytes = conf->kv_cache;

    /* a step always has room for all generating sequences and some rows of a
       prompt */

    opts->batch = llm_max(conf->batch ? conf->batch : LLM_DEFAULT_CHUNK,
                          parallel + LLM_KV_PAGE);

    opts->max_out = parallel + LLM_SCORE_ROWS;
}


void
llm_instance_beside(const llm_engine_model_t *conf, llm_model_opts_t *opts)
{
    opts->tower = conf->mmproj;
    opts->draft = conf->draft_path;
    opts->drafts = conf->draft_path != NULL
                   || llm_conf_drafts(conf, LLM_DRAFT_MTP);
}


static void
llm_instance_opts(llm_instance_t *m, llm_model_opts_t *opts)
{
    llm_engine_t  *e = m->engine;

    memset(opts, 0, sizeof(*opts));

    /* device=auto: a model that was on a GPU must not silently move to the
       CPU */
    opts->device = m->on_gpu ? "cuda" : m->conf.device;
    opts->backend_dir = e->backend_dir;
    opts->devices = e->devices;
    opts->threads = llm_instance_threads(m);
    opts->whole = m->crowded;
    opts->split_rows = m->conf.split_rows;
    opts->weights_fp8 = m->conf.weights_fp8;
    opts->kv_fp8 = m->conf.kv_fp8;
    opts->kv_q8 = m->conf.kv_q8;
    opts->products = m->conf.products;
    opts->packed = m->conf.packed;
    opts->log = e->log;
    opts->log_data = e->log_data;
    opts->progress = llm_instance_progress;
    opts->progress_data = m;
    opts->cancel = &m->cancel;

    llm_instance_sizes(&m->conf, m->parallel, opts);
}


static int
llm_instance_model(llm_instance_t *m, llm_err_t *err)
{
    llm_model_opts_t  opts;

    llm_instance_opts(m, &opts);
    llm_instance_beside(&m->conf, &opts);

    if (llm_instance_keep(m, llm_instance_path(m), &opts.keep, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    m->model = llm_model_load(llm_instance_path(m), &opts, err);
    m->env.model = m->model;
    if (m->model == NULL) {
        return LLM_ERROR;
    }

    if (opts.threads < m->conf.threads && !llm_model_on_gpu(m->model)) {
        llm_engine_log(m->engine, LLM_LOG_WARN, "model \"%s\": threads=%u "
                       "is more than the CPUs of this process; it uses "
                       "%u", m->conf.name, m->conf.threads,
                       opts.threads);
    }

    m->on_gpu = (opts.device == NULL || strcmp(opts.device, "auto") == 0
                 || m->on_gpu)
                && llm_model_on_gpu(m->model);

    return LLM_OK;
}


static void
llm_instance_runner(llm_instance_t *m)
{
    llm_runner_t  *run = &m->runner;

    llm_instance_runner_of(m->model, run);
    run->chunk = llm_min(m->conf.batch ? m->conf.batch : LLM_DEFAULT_CHUNK,
                         run->batch);
    run->max_seqs = llm_min(m->parallel, run->max_seqs);
}


static int
llm_instance_read(llm_instance_t *m)
{
    int                rc;
    llm_err_t         *err = &m->load_err;
    const llm_gguf_t  *g;
    llm_model_opts_t   opts;

#ifdef LLM_TEST
    if (llm_synthetic_is(m->conf.device)) {
        if (llm_synthetic_open(m, err) != LLM_OK) {
            return LLM_ERROR;
        }

        llm_instance_template(m, llm_synthetic_gguf(m->synthetic));
        return LLM_OK;
    }
#endif

    rc = llm_instance_listens(llm_instance_path(m), err);
    m->parallel = llm_parallel(&m->conf, rc == LLM_OK);

    if (rc == LLM_OK) {
        llm_instance_opts(m, &opts);
        return llm_instance_hear(m, llm_instance_path(m), &opts, err);
    }

    if (rc == LLM_ERROR || llm_instance_model(m, err) != LLM_OK) {
        return LLM_ERROR;
    }

    g = llm_model_gguf(m->model);

    m->env.vocab = llm_vocab_load(g, err);
    if (m->env.vocab == NULL) {
        return LLM_ERROR;
    }

    if (llm_vocab_warning(m->env.vocab)) {
        llm_engine_log(m->engine, LLM_LOG_WARN, "model \"%s\": %s",
                       m->conf.name, llm_vocab_warning(m->env.vocab));
    }

    llm_instance_template(m, g);
    llm_instance_sampling(m, g);

    if (llm_rank_load(&m->env, g, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_instance_runner(m);

    if (m->conf.mmproj) {
        llm_instance_opts(m, &opts);

        if (llm_instance_encoder(m, &opts, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    llm_instance_opts(m, &opts);

    return llm_instance_draft(m, &opts, err);
}


static void *
llm_instance_load_main(void *data)
{
    const llm_model_t  *model;
    llm_instance_t     *m = data;

    (void) pthread_setname_np(pthread_self(), "llm-load");

    if (llm_instance_read(m) == LLM_OK) {
        m->load_err.status = 0;         /* what was tried on the way */

    } else if (m->load_err.status == 0) {
        (void) llm_fail(&m->load_err, "%s: could not be loaded",
                        llm_instance_path(m));
    }

    /* check the file once more, as the vocabulary was read from its mapping,
       too */

    model = m->model ? m->model
            : m->hearing ? llm_hearing_model(m->hearing) : NULL;

    if (model) {
        (void) llm_gguf_intact(llm_model_gguf(model), &m->load_err);
    }

    atomic_store(&m->loaded, 1);
    llm_engine_wake(m->engine);

    return NULL;
}


/* the log gets the whole message; clients must not see where files are */

void
llm_instance_hide(llm_instance_t *m, llm_err_t *err)
{
    char  lib[PATH_MAX + 1];

    llm_hide_folder(err->msg, llm_instance_path(m));
    llm_hide_folder(err->msg, m->conf.template_path);
    llm_hide_folder(err->msg, m->conf.draft_path);
    llm_hide_folder(err->msg, m->conf.mmproj);

    if (llm_backend_folder(m->engine->backend_dir, lib, PATH_MAX) == LLM_OK) {
        strcat(lib, "/");
        llm_hide_folder(err->msg, lib);
    }
}


/* an older engine is that of the time before a reload or a binary upgrade */

void
llm_instance_wait(llm_instance_t *m, llm_instance_wait_t what)
{
    m->waits = what;
    m->state = LLM_MODEL_LOADING;
    atomic_store(&m->loaded, 0);

    llm_engine_log(m->engine, LLM_LOG_WARN, what == LLM_WAITS_OLDER
                   ? "model \"%s\" waits for the engine of an older "
                     "configuration or binary to end: %s"
                   : "model \"%s\" waits for a model that can be unloaded to "
                     "have no request: %s", m->conf.name, m->load_err.msg);

    llm_zone_set_state(m->engine->zone, m->index, LLM_MODEL_LOADING);
}


/*
 * The reason is in load_err; each reason is logged once.  If the GPU's context
 * was lost, only another process can try again.  That process does not know of
 * earlier losses, so the zone counts them, for the pause.
 */

void
llm_instance_failed(llm_instance_t *m)
{
    uint32_t     n, most;
    llm_zone_t  *z;

    z = m->engine->zone;
    most = llm_max(m->conf.retry_s, LLM_RETRY_MAX);

    m->state = LLM_MODEL_FAILED;
    m->cramped = 0;
    m->retry_s = m->retry_s ? llm_min(m->retry_s * 2, most) : m->conf.retry_s;
    m->lacks_us = 0;
    m->made_room = 0;
    m->lost = strcmp(m->load_err.code, LLM_DEVICE_LOST) == 0;

    if (m->lost) {
        n = llm_min(llm_zone_get(z->models[m->index].losses), 6);
        llm_zone_set(z->models[m->index].losses, n + 1);
        m->retry_s = llm_min(m->conf.retry_s << n, most);
    }

    m->retry_us = llm_now_us() + (uint64_t) m->retry_s * 1000000;

    if (strcmp(m->logged, m->load_err.msg) != 0) {
        snprintf(m->logged, sizeof(m->logged), "%s", m->load_err.msg);
        llm_engine_log(m->engine, LLM_LOG_ERR, "model \"%s\": %s",
                       m->conf.name, m->load_err.msg);
    }

    llm_instance_hide(m, &m->load_err);

    llm_zone_set(z->models[m->index].retry_after, m->retry_s);
    llm_zone_set_text(z, m->index, m->load_err.msg, NULL);
    llm_zone_set_state(z, m->index, LLM_MODEL_FAILED);
}


int
llm_instance_begin(llm_instance_t *m)
{
    memset(&m->load_err, 0, sizeof(m->load_err));
    atomic_store(&m->loaded, 0);
    __atomic_store_n(&m->cancel, 0, __ATOMIC_RELAXED);
    m->n_older = llm_engines_older(m->engine->engines, m->engine->place);
    m->gives_way = 0;
    m->crowded = m->n_older != 0 || m->role == LLM_INSTANCE_BESIDE;
    m->waits = LLM_WAITS_NOT;
    m->cramped = 0;
    llm_instance_permille(m, 0);

    if (llm_thread_start(&m->loader, llm_instance_load_main, m) != 0) {
        return llm_fail(&m->load_err,
                        "no thread could be started to load the model");
    }

    m->loading = 1;
    m->state = LLM_MODEL_LOADING;

    return LLM_OK;
}


int
llm_instance_start(llm_instance_t *m)
{
    if (llm_instance_begin(m) != LLM_OK) {
        llm_instance_failed(m);
        return LLM_ERROR;
    }

    return LLM_OK;
}


int
llm_instance_load(llm_instance_t *m)
{
    llm_zone_t  *z;

    if (llm_instance_start(m) != LLM_OK) {
        return LLM_ERROR;
    }

    z = m->engine->zone;

    llm_zone_set(z->models[m->index].retry_after, 5);
    llm_zone_set_state(z, m->index, LLM_MODEL_LOADING);

    return LLM_OK;
}


void
llm_instance_count_memory(llm_instance_t *m, uint64_t weights, uint64_t kv)
{
    llm_zone_figures_t  *f;

    f = &m->engine->zone->models[m->index].figures;

    llm_zone_add(f->weight_bytes, weights - m->weight_bytes);
    llm_zone_add(f->kv_bytes, kv - m->kv_bytes);
    m->weight_bytes = weights;
    m->kv_bytes = kv;
}


void
llm_instance_close(llm_instance_t *m)
{
    /* not written when it is NULL: the scheduler's thread reads it while
       another thread frees the rest */

    if (m->sched) {
        llm_sched_free(m->sched);
        m->sched = NULL;
    }

    llm_buf_free(&m->env.template);

    if (m->env.chat) {
        llm_chat_free(m->env.chat);
        m->env.chat = NULL;
    }

    llm_gram_cache_free(m->env.grams);
    m->env.grams = NULL;
    llm_rank_free(&m->env.rank);

    if (m->env.vocab) {
        llm_vocab_free(m->env.vocab);
        m->env.vocab = NULL;
    }

    llm_instance_close_draft(m);
    llm_instance_close_encoder(m);
    llm_instance_close_hearing(m);

    if (m->model) {
        llm_model_free(m->model);
        m->model = NULL;
        m->env.model = NULL;
    }

#ifdef LLM_TEST
    if (m->synthetic) {
        llm_synthetic_close(m->synthetic);
        m->synthetic = NULL;
    }
#endif

    llm_instance_count_memory(m, 0, 0);
}
