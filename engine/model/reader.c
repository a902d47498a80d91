/*
 * Fields of an architecture, and which of them were read; see reader.h.
 *
 * Names of the fields: github.com/ggml-org/ggml, docs/gguf.md.
 */

#include "engine/model/reader.h"

#include <math.h>
#include <stdio.h>


/* fields that change no result, or add nothing to those that are read; "x.*":
   all that begin with "x." */
static const char  *const llm_read_harmless[] = {
    "vocab_size", "tensor_data_layout", "rope.scaling.*",
    "rope.scale_linear", "classifier.output_labels", "pooling_type"
};


/*
 * Why a field is refused that its architecture does not use.  It is accepted
 * with a value that changes nothing: 0 or `neutral`.
 */
static const struct {
    const char  *name;
    double       neutral;
    const char  *what;
} llm_read_reasons[] = {
    { "expert_count", 0, "the architecture has no experts" },
    { "logit_scale", 1, "scaled logits are not supported" },
    { "residual_scale", 1, "scaled residuals are not supported" },
    { "embedding_scale", 1, "scaled embeddings are not supported" },
    { "attn_logit_softcapping", 0, "soft-capping is not supported" },
    { "final_logit_softcapping", 0, "soft-capping is not supported" },
    { "attention.max_alibi_bias", 0, "ALiBi is not supported" },
    { "attention.clamp_kqv", 0, "clamped K, Q and V are not supported" }
};


const llm_gguf_kv_t *
llm_read_key(llm_reader_t *r, const char *key)
{
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(r->g, key);

    if (kv) {
        r->used[kv - llm_gguf_kv(r->g, 0)] = 1;
    }

    return kv;
}


static const char *
llm_read_name(llm_reader_t *r, llm_gguf_key_t *key, const char *name)
{
    llm_gguf_key(key, r->d->hp.arch, name);
    (void) llm_read_key(r, key->text);

    return key->text;
}


int
llm_read_u32(llm_reader_t *r, const char *name, uint32_t *v)
{
    llm_gguf_key_t  key;

    return llm_gguf_get_u32(r->g, llm_read_name(r, &key, name), v, r->err);
}


int
llm_read_bool(llm_reader_t *r, const char *name, int *v)
{
    llm_gguf_key_t  key;

    return llm_gguf_get_bool(r->g, llm_read_name(r, &key, name), v, r->err);
}


int
llm_read_str(llm_reader_t *r, const char *name, llm_str_t *v)
{
    llm_gguf_key_t  key;

    return llm_gguf_get_str(r->g, llm_read_name(r, &key, name), v, r->err);
}


int
llm_read_f32(llm_reader_t *r, const char *name, float *v)
{
    int             rc;
    llm_gguf_key_t  key;

    rc = llm_gguf_get_f32(r->g, llm_read_name(r, &key, name), v, r->err);

    if (rc == LLM_OK && !isfinite(*v)) {
        return llm_fail(r->err, "%s: %s: not a finite number",
                        llm_gguf_name(r->g), key.text);
    }

    return rc;
}


void
llm_read_ignore(llm_reader_t *r, const char *name)
{
    llm_gguf_key_t  key;

    (void) llm_read_name(r, &key, name);
}


void
llm_read_ignore_all(llm_reader_t *r, const char *prefix)
{
    size_t          i, len;
    llm_str_t       key;
    llm_gguf_key_t  begin;

    llm_gguf_key(&begin, r->d->hp.arch, prefix);
    len = strlen(begin.text);

    for (i = 0; i < llm_gguf_n_kv(r->g); i++) {
        key = llm_gguf_kv(r->g, i)->key;

        if (key.len >= len && memcmp(key.data, begin.text, len) == 0) {
            r->used[i] = 1;
        }
    }
}


int
llm_read_missing(llm_reader_t *r, const char *name)
{
    return llm_fail(r->err, "%s: %s.%s: it is missing", llm_gguf_name(r->g),
                    r->d->hp.arch, name);
}


int
llm_read_within(llm_reader_t *r, const char *name, uint32_t v, uint32_t min,
    uint32_t max)
{
    if (v < min || v > max) {
        return llm_fail(r->err, "%s: %s.%s: %u is not within %u and %u",
                        llm_gguf_name(r->g), r->d->hp.arch, name, v, min,
                        max);
    }

    return LLM_OK;
}


int
llm_read_size(llm_reader_t *r, const char *name, uint32_t max, uint32_t *v)
{
    int  rc;

    rc = llm_read_u32(r, name, v);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_ABSENT && *v == 0) {
        return llm_read_missing(r, name);
    }

    return llm_read_within(r, name, *v, 1, max);
}


int
llm_read_layer(llm_reader_t *r, const char *name, uint32_t layer,
    uint32_t *v)
{
    int64_t               i;
    llm_gguf_key_t        key;
    const llm_gguf_kv_t  *kv;

    kv = llm_read_key(r, llm_gguf_key(&key, r->d->hp.arch, name));

    if (kv == NULL || kv->type != LLM_GGUF_ARRAY) {
        return kv ? llm_gguf_get_u32(r->g, key.text, v, r->err) : LLM_ABSENT;
    }

    if (kv->item == LLM_GGUF_STR || kv->item == LLM_GGUF_ARRAY
        || kv->item == LLM_GGUF_F32 || kv->item == LLM_GGUF_F64)
    {
        return llm_fail(r->err, "%s: %s: its items are not integers",
                        llm_gguf_name(r->g), key.text);
    }

    if (layer >= kv->count) {
        return llm_fail(r->err, "%s: %s: %llu items for %u layers",
                        llm_gguf_name(r->g), key.text,
                        (unsigned long long) kv->count, r->d->hp.n_layers);
    }

    i = llm_gguf_item_int(kv, layer);

    if (i < 0 || i > UINT32_MAX) {
        return llm_fail(r->err, "%s: %s: item %u is not within 0 and %u",
                        llm_gguf_name(r->g), key.text, layer, UINT32_MAX);
    }

    *v = (uint32_t) i;

    return LLM_OK;
}


int
llm_read_item(llm_reader_t *r, const char *name, uint32_t i, float *v)
{
    const llm_gguf_kv_t  *kv;

    kv = llm_read_key(r, name);

    if (kv == NULL) {
        return LLM_ABSENT;
    }

    if (kv->type == LLM_GGUF_STR
        || (kv->type == LLM_GGUF_ARRAY
            && (kv->item == LLM_GGUF_STR || kv->item == LLM_GGUF_ARRAY))
        || (kv->type == LLM_GGUF_ARRAY && i >= kv->count))
    {
        return llm_fail(r->err, "%s: %s: no number for layer %u",
                        llm_gguf_name(r->g), name, i);
    }

    *v = (float) llm_gguf_item_double(kv, kv->type == LLM_GGUF_ARRAY ? i : 0);

    if (!isfinite(*v)) {
        return llm_fail(r->err, "%s: %s: not a finite number",
                        llm_gguf_name(r->g), name);
    }

    return LLM_OK;
}


static int
llm_read_is_harmless(llm_str_t name)
{
    size_t  i, len;

    for (i = 0; i < llm_nelems(llm_read_harmless); i++) {
        len = strlen(llm_read_harmless[i]);

        if (llm_str_is(name, llm_read_harmless[i])
            || (llm_read_harmless[i][len - 1] == '*' && name.len >= len - 1
                && memcmp(name.data, llm_read_harmless[i], len - 1) == 0))
        {
            return 1;
        }
    }

    return 0;
}


static int
llm_read_refuse(llm_reader_t *r, const llm_gguf_kv_t *kv, llm_str_t name)
{
    size_t       i;
    double       v, neutral;
    const char  *what;

    what = "the architecture has no such field";
    neutral = 0;

    for (i = 0; i < llm_nelems(llm_read_reasons); i++) {
        if (llm_str_is(name, llm_read_reasons[i].name)) {
            what = llm_read_reasons[i].what;
            neutral = llm_read_reasons[i].neutral;
        }
    }

    if (kv->type == LLM_GGUF_STR || kv->type == LLM_GGUF_ARRAY) {
        return kv->count == 0 ? LLM_OK
               : llm_fail(r->err, "%s: %.*s: %s", llm_gguf_name(r->g),
                          (int) llm_min(kv->key.len, 80), kv->key.data, what);
    }

    v = llm_gguf_item_double(kv, 0);

    if (v == 0 || v == neutral) {
        return LLM_OK;
    }

    return llm_fail(r->err, "%s: %.*s: %g: %s", llm_gguf_name(r->g),
                    (int) llm_min(kv->key.len, 80), kv->key.data, v, what);
}


int
llm_read_rest(llm_reader_t *r)
{
    size_t                i, len;
    llm_str_t             name;
    const llm_gguf_kv_t  *kv;

    len = strlen(r->d->hp.arch);

    for (i = 0; i < llm_gguf_n_kv(r->g); i++) {
        kv = llm_gguf_kv(r->g, i);

        if (r->used[i] || kv->key.len <= len + 1
            || memcmp(kv->key.data, r->d->hp.arch, len) != 0
            || kv->key.data[len] != '.')
        {
            continue;
        }

        name.data = kv->key.data + len + 1;
        name.len = kv->key.len - len - 1;

        if (!llm_read_is_harmless(name)
            && llm_read_refuse(r, kv, name) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_read_bound(llm_reader_t *r)
{
    float     bound;
    uint32_t  i;

    bound = 0;

    if (llm_read_f32(r, "attention.clamp_kqv", &bound) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (bound < 0) {
        return llm_fail(r->err, "%s: %s.attention.clamp_kqv: %g is below 0",
                        llm_gguf_name(r->g), r->d->hp.arch, bound);
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].bound = bound;
    }

    return LLM_OK;
}
