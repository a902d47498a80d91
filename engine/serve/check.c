/*
 * Checks files, and a configuration against the machine, before an engine
 * runs; see check.h.  No check touches a GPU, so nginx's master may call them.
 */

#include "engine/file/source.h"
#include "engine/serve/check.h"
#include "engine/base/file.h"
#include "engine/base/kind.h"
#include "engine/model/backend.h"
#include "engine/media/rule.h"
#include "engine/model/head.h"
#include "engine/model/tower.h"
#include "engine/text/vocab/vocab.h"
#include "engine/base/machine.h"


int
llm_file_usable(const llm_gguf_t *g, llm_hparams_t *hp, llm_err_t *err)
{
    llm_vocab_t  *v;

    if (llm_model_check(g, hp, err) != LLM_OK) {
        return LLM_ERROR;
    }

    v = llm_vocab_load(g, err);
    if (v == NULL) {
        return LLM_ERROR;
    }

    llm_vocab_free(v);

    return LLM_OK;
}


int
llm_model_file_check(const char *path, uint32_t *media, llm_err_t *err)
{
    int            rc;
    llm_gguf_t    *g;
    llm_hparams_t  hp;

    g = llm_source_open_header(path, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_file_usable(g, &hp, err);
    llm_gguf_close(g);
    *media = rc == LLM_OK && hp.listens ? LLM_MEDIUM_SPEECH : 0;

    return rc;
}


int
llm_draft_file_check(const llm_engine_model_t *conf, llm_err_t *err)
{
    int       rc;
    uint32_t  media;

    if (conf->draft_path) {
        rc = llm_head_is(conf->draft_path, err);

        if (rc != LLM_ABSENT) {
            return rc == LLM_OK
                   ? llm_head_check(conf->path, conf->draft_path, err) : rc;
        }

        rc = llm_model_file_check(conf->draft_path, &media, err);

        return rc == LLM_OK && media
               ? llm_fail(err, "%s: a model of speech cannot draft",
                          conf->draft_path) : rc;
    }

    return llm_conf_drafts(conf, LLM_DRAFT_MTP)
           ? llm_head_check(conf->path, NULL, err) : LLM_OK;
}


int
llm_mmproj_file_check(const char *path, uint32_t *media, llm_err_t *err)
{
    int                rc;
    llm_gguf_t        *g;
    llm_image_rule_t   rule;

    *media = 0;

    if (llm_tower_check(path, err) != LLM_OK) {
        return LLM_ERROR;
    }

    g = llm_gguf_open_header(path, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_image_rule_read(&rule, g, err);
    llm_gguf_close(g);

    if (rc == LLM_OK) {
        *media = (rule.projector ? LLM_MEDIUM_IMAGE : 0)
                 | (rule.sound.projector ? LLM_MEDIUM_AUDIO : 0);
    }

    return rc;
}


int
llm_template_file_check(const char *path, llm_err_t *err)
{
    int         rc;
    llm_buf_t   text;
    llm_file_kind_t  kind;

    llm_buf_init(&text, LLM_TEMPLATE_MAX);
    rc = llm_file_read(path, &text, err);

    if (rc == LLM_OK && text.len) {
        llm_file_kind(text.data, text.len, text.len, &kind);

        if (!kind.text) {
            rc = llm_fail(err, "%s: this is %s, not a template", path,
                          kind.what);
        }
    }

    llm_buf_free(&text);

    return rc;
}


int
llm_device_name_check(const char *device, llm_err_t *err)
{
    llm_backend_list_t  list;

    return llm_backend_list(device, &list, err);
}


int
llm_device_check(const char *device, llm_err_t *err)
{
    return llm_backend_check(device, NULL, err);
}


int
llm_kv_cache_check(const char *device, size_t kv_cache, llm_err_t *err)
{
    size_t  memory;

    memory = llm_machine_memory("");

    if (kv_cache <= memory || !llm_backend_is_cpu(device, NULL)) {
        return LLM_OK;
    }

    return llm_fail(err, "kv_cache is %zu MiB, and this machine has %zu MiB "
                    "of memory", kv_cache >> 20, memory >> 20);
}


int
llm_machine_check(const llm_engine_model_t *conf, llm_err_t *err)
{
    int               rc;
    llm_err_t         why;
    llm_gguf_t       *g;
    llm_hparams_t     hp;
    llm_model_opts_t  opts;

    if (llm_backend_gpu_check(conf->device, "", err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (!llm_backend_is_cpu(conf->device, NULL)
        && (strcmp(conf->device, "auto") != 0
            || llm_backend_gpu_check("cuda", "", &why) == LLM_OK))
    {
        return LLM_OK;
    }

    g = llm_source_open_header(conf->path, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    memset(&opts, 0, sizeof(opts));
    rc = llm_model_check(g, &hp, err);

    if (rc == LLM_OK) {
        llm_instance_sizes(conf, llm_parallel(conf, hp.listens), &opts);
        llm_instance_beside(conf, &opts);
        opts.n_windows = hp.listens ? opts.max_seqs : 0;
        rc = llm_model_fits(g, &opts, err);
    }

    llm_gguf_close(g);

    return rc;
}
