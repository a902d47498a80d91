/*
 * Checks the file of mmproj=: what it projects, by its header alone.
 *
 * A file has one projector, or one for images and one for sound, each with a
 * type of its own.  The names are those that files have; which of them a model
 * can be loaded with is decided when it is loaded.
 */

#include "engine/gguf/gguf.h"
#include "engine/llm.h"

/* longer names are not shown */
#define LLM_MMPROJ_SHOWN  64

static const struct {
    const char  *type;
    uint32_t     media;                 /* LLM_MEDIUM_... */
} llm_projectors[] = {
    { "gemma3", LLM_MEDIUM_IMAGE },
    { "gemma4a", LLM_MEDIUM_AUDIO },
    { "gemma4uv", LLM_MEDIUM_IMAGE },
    { "gemma4v", LLM_MEDIUM_IMAGE },
    { "glm4v", LLM_MEDIUM_IMAGE },
    { "idefics3", LLM_MEDIUM_IMAGE },
    { "internvl", LLM_MEDIUM_IMAGE },
    { "kimivl", LLM_MEDIUM_IMAGE },
    { "mlp", LLM_MEDIUM_IMAGE },
    { "pixtral", LLM_MEDIUM_IMAGE },
    { "qwen2.5vl_merger", LLM_MEDIUM_IMAGE },
    { "qwen2a", LLM_MEDIUM_AUDIO },
    { "qwen3a", LLM_MEDIUM_AUDIO },
    { "qwen3vl_merger", LLM_MEDIUM_IMAGE },
    { "voxtral", LLM_MEDIUM_AUDIO }
};


static int
llm_mmproj_type(const llm_gguf_t *g, llm_str_t type, uint32_t *media,
    llm_err_t *err)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_projectors); i++) {
        if (llm_str_is(type, llm_projectors[i].type)) {
            *media |= llm_projectors[i].media;
            return LLM_OK;
        }
    }

    return llm_fail(err, "%s: clip.projector_type: the projector \"%.*s\" is "
                    "not known", llm_gguf_name(g),
                    (int) llm_min(type.len, (size_t) LLM_MMPROJ_SHOWN),
                    type.data);
}


/* a key that is a string; len 0: there is none */

static int
llm_mmproj_str(const llm_gguf_t *g, const char *key, llm_str_t *s,
    llm_err_t *err)
{
    *s = llm_str("");

    return llm_gguf_find(g, key) ? llm_gguf_get_str(g, key, s, err) : LLM_OK;
}


static int
llm_mmproj_read(const llm_gguf_t *g, uint32_t *media, llm_err_t *err)
{
    size_t     i;
    llm_str_t  type, arch;

    static const char *const  keys[] = {
        "clip.projector_type", "clip.vision.projector_type",
        "clip.audio.projector_type"
    };

    *media = 0;

    if (llm_mmproj_str(g, "general.type", &type, err) != LLM_OK
        || llm_mmproj_str(g, "general.architecture", &arch, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    /* old files have no type */

    if (!llm_str_is(type, "mmproj")
        && !(type.len == 0 && llm_str_is(arch, "clip")))
    {
        return llm_fail(err, "%s: general.type: it is \"%.*s\", not "
                        "\"mmproj\": this file has no projector",
                        llm_gguf_name(g),
                        (int) llm_min(type.len, (size_t) LLM_MMPROJ_SHOWN),
                        type.data);
    }

    for (i = 0; i < llm_nelems(keys); i++) {
        if (llm_mmproj_str(g, keys[i], &type, err) != LLM_OK
            || (type.len && llm_mmproj_type(g, type, media, err) != LLM_OK))
        {
            return LLM_ERROR;
        }

        if (i == 0 && type.len) {
            break;                      /* the file has one projector */
        }
    }

    return *media ? LLM_OK
           : llm_fail(err, "%s: clip.projector_type: there is none",
                      llm_gguf_name(g));
}


int
llm_mmproj_file_check(const char *path, uint32_t *media, llm_err_t *err)
{
    int          rc;
    llm_gguf_t  *g;

    g = llm_gguf_open_header(path, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_mmproj_read(g, media, err);
    llm_gguf_close(g);

    return rc;
}
