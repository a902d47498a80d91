/*
 * GGUF files that are not language models: adapters, encoders of pictures and
 * sound, importance matrices, models of other kinds.  The error says what the
 * file is, so they are checked before the fields of a language model are.
 */

#include "engine/model/arch.h"

typedef struct {
    const char  *name;
    const char  *what;
} llm_other_t;

static const char  llm_other_mmproj[] =
    "the encoder of pictures or sound of a multimodal model (mmproj): name "
    "the file of the model itself, which runs without it";

static const char  llm_other_imatrix[] =
    "an importance matrix, which is for making quantised models: name the "
    "model's own file";

static const char  llm_other_adapter[] =
    "an adapter (LoRA), not a model: merge it into its model with "
    "llama-export-lora of llama.cpp, and name the result";

static const char  llm_other_picture[] =
    "a model of pictures or films; only text models are supported";

static const char  llm_other_speech[] =
    "a model of speech; only text models are supported";

/* general.type */
static const llm_other_t  llm_other_types[] = {
    { "adapter", llm_other_adapter },
    { "mmproj", llm_other_mmproj },
    { "imatrix", llm_other_imatrix }
};

/* keys that only these files have, whatever general.type is */
static const llm_other_t  llm_other_keys[] = {
    { "adapter.type", llm_other_adapter },
    { "adapter.lora.alpha", llm_other_adapter },
    { "imatrix.chunk_count", llm_other_imatrix }
};

/* general.architecture */
static const llm_other_t  llm_other_archs[] = {
    { "clip", llm_other_mmproj },
    { "imatrix", llm_other_imatrix },
    { "controlvector", "a control vector, not a model: name the model's own "
                       "file" },
    { "aura", llm_other_picture },
    { "cosmos", llm_other_picture },
    { "flux", llm_other_picture },
    { "hidream", llm_other_picture },
    { "hyvid", llm_other_picture },
    { "ltxv", llm_other_picture },
    { "lumina2", llm_other_picture },
    { "pig", llm_other_picture },
    { "qwen_image", llm_other_picture },
    { "sd1", llm_other_picture },
    { "sd3", llm_other_picture },
    { "sdxl", llm_other_picture },
    { "wan", llm_other_picture },
    { "wavtokenizer-dec", llm_other_speech }
};


static int
llm_other_named(const llm_gguf_t *g, const char *key,
    const llm_other_t *list, size_t n, llm_err_t *err)
{
    size_t     i;
    llm_str_t  s;

    if (llm_gguf_get_str(g, key, &s, NULL) != LLM_OK) {
        return LLM_OK;
    }

    for (i = 0; i < n; i++) {
        if (llm_str_is(s, list[i].name)) {
            return llm_fail(err, "%s: %s: \"%s\": this is %s",
                            llm_gguf_name(g), key, list[i].name,
                            list[i].what);
        }
    }

    return LLM_OK;
}


int
llm_other_check(const llm_gguf_t *g, llm_err_t *err)
{
    size_t              i;
    const llm_other_t  *k;

    if (llm_other_named(g, "general.type", llm_other_types,
                        llm_nelems(llm_other_types), err) != LLM_OK
        || llm_other_named(g, "general.architecture", llm_other_archs,
                           llm_nelems(llm_other_archs), err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < llm_nelems(llm_other_keys); i++) {
        k = &llm_other_keys[i];

        if (llm_gguf_find(g, k->name)) {
            return llm_fail(err, "%s: %s: this is %s", llm_gguf_name(g),
                            k->name, k->what);
        }
    }

    return LLM_OK;
}
