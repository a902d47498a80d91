/*
 * The architectures, which are the rows of archs.def, and the order in which
 * a description is read; see arch.h.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <stdio.h>


#define LLM_ARCH(ID)  extern const llm_arch_t  llm_arch_##ID;
#define LLM_HEAD(ID)  extern const llm_arch_t  llm_arch_##ID;
#include "engine/model/archs.def"

static const llm_arch_t  *const llm_archs[] = {
#define LLM_ARCH(ID)  &llm_arch_##ID,
#include "engine/model/archs.def"
};

static const llm_arch_t  *const llm_head_archs[] = {
#define LLM_HEAD(ID)  &llm_arch_##ID,
#include "engine/model/archs.def"
};


/* lists the supported architectures of the same family: those whose names
   begin with the lower-case letters that s begins with, at least three */

static void
llm_desc_arch_kin(llm_str_t s, char *out, size_t size)
{
    size_t  i, n, len;

    for (n = 0; n < s.len && s.data[n] >= 'a' && s.data[n] <= 'z'; n++) {
        /* void */
    }

    out[0] = '\0';

    for (i = 0; n > 2 && i < llm_nelems(llm_archs); i++) {
        if (strncmp(llm_archs[i]->name, s.data, n) != 0) {
            continue;
        }

        len = strlen(out);

        if (len + strlen(llm_archs[i]->name) + 3 < size) {
            snprintf(out + len, size - len, "%s%s", len ? ", " : "",
                     llm_archs[i]->name);
        }
    }
}


const char *
llm_desc_arch_name(size_t i)
{
    return i < llm_nelems(llm_archs) ? llm_archs[i]->name : NULL;
}


static int
llm_desc_arch_unknown(const llm_gguf_t *g, llm_str_t s, llm_err_t *err)
{
    char  name[64], kin[120];

    (void) llm_clean(name, sizeof(name), s.data, llm_min(s.len, 40));
    llm_desc_arch_kin(s, kin, sizeof(kin));

    return llm_fail(err, "%s: general.architecture: \"%s\" is not supported "
                    "(%s%s\"llm help\" lists all %zu that are)",
                    llm_gguf_name(g), name, kin,
                    kin[0] == '\0' ? "" : strchr(kin, ',') ? " are; " : " is; ",
                    llm_nelems(llm_archs));
}


/* the architecture of a head's file; NULL: it is another file */

static const llm_arch_t *
llm_desc_head_arch(const llm_gguf_t *g)
{
    size_t     i;
    llm_str_t  s;

    if (llm_gguf_get_str(g, "general.architecture", &s, NULL) != LLM_OK) {
        return NULL;
    }

    for (i = 0; i < llm_nelems(llm_head_archs); i++) {
        if (llm_str_is(s, llm_head_archs[i]->name)) {
            return llm_head_archs[i];
        }
    }

    return NULL;
}


llm_head_kind_t
llm_desc_head_kind(const llm_gguf_t *g)
{
    const llm_arch_t  *arch;

    arch = llm_desc_head_arch(g);

    return arch ? arch->head : LLM_HEAD_NONE;
}


static int
llm_desc_arch(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    int        rc;
    size_t     i;
    llm_str_t  s;

    if (d->arch) {
        snprintf(d->hp.arch, sizeof(d->hp.arch), "%s", d->arch->name);
        return llm_gguf_types_known(g, err);
    }

    if (llm_other_check(g, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_desc_head_arch(g)) {
        return llm_fail(err, "%s: general.architecture: \"%s\": this is a "
                        "head that drafts tokens for another model: name that "
                        "model's file, and this one in speculate=draft=FILE",
                        llm_gguf_name(g), llm_desc_head_arch(g)->name);
    }

    rc = llm_gguf_get_str(g, "general.architecture", &s, err);

    if (rc != LLM_OK) {
        return rc == LLM_ERROR ? rc
               : llm_fail(err, "%s: general.architecture: it is missing",
                          llm_gguf_name(g));
    }

    for (i = 0; i < llm_nelems(llm_archs); i++) {
        if (llm_str_is(s, llm_archs[i]->name)) {
            d->arch = llm_archs[i];
            break;
        }
    }

    if (d->arch == NULL) {
        return llm_desc_arch_unknown(g, s, err);
    }

    snprintf(d->hp.arch, sizeof(d->hp.arch), "%s", d->arch->name);

    /* after the architecture: if that is not supported, the types of tensors
       do not matter */

    return llm_gguf_types_known(g, err);
}


/* the model's name: general.name, or else the name of the file */

static void
llm_desc_name(const llm_gguf_t *g, llm_hparams_t *hp)
{
    llm_str_t    s;
    const char  *p;

    if (llm_gguf_get_str(g, "general.name", &s, NULL) == LLM_OK && s.len) {
        snprintf(hp->name, sizeof(hp->name), "%.*s",
                 (int) llm_min(s.len, sizeof(hp->name) - 1), s.data);
        return;
    }

    p = strrchr(llm_gguf_name(g), '/');
    snprintf(hp->name, sizeof(hp->name), "%s", p ? p + 1 : llm_gguf_name(g));
}


static void
llm_desc_facts(llm_desc_t *d)
{
    static const llm_tensor_fact_t  facts[LLM_LT_N] = {
#define LLM_TENSOR(ID, name, in, out)                                        \
    { name, LLM_DIM_##in, LLM_DIM_##out, LLM_DIM_NONE },
#define LLM_EXPERTS(ID, name, in, out)                                       \
    { name, LLM_DIM_##in, LLM_DIM_##out, LLM_DIM_N_EXPERTS },
#define LLM_HEADS(ID, name, in, out)                                         \
    { name, LLM_DIM_##in, LLM_DIM_##out, LLM_DIM_N_HEADS },
#include "engine/model/tensors.def"
    };

    memcpy(d->facts, facts, sizeof(facts));
}


/* bytes of a layer's state in float32; the limits in ssm.c rule out an
   overflow */

static uint64_t
llm_desc_state_bytes(const llm_state_layer_t *s)
{
    uint64_t  n;

    n = (uint64_t) s->n_heads * s->n_rows * s->n_cols;

    if (s->conv_width) {
        n += (uint64_t) (s->conv_width - 1) * s->conv_channels;
    }

    return n * sizeof(float);
}


/* leaves the first layer for multi-token prediction, as the only one */

static int
llm_desc_predicts(llm_reader_t *r)
{
    uint32_t     block;
    llm_desc_t  *d;

    d = r->d;

    if (d->head.kind != LLM_HEAD_MTP) {
        return LLM_OK;
    }

    block = d->head.block;

    if (!d->arch->predicts || d->layers[block].n_kv_heads == 0
        || d->layers[block].latent)
    {
        return llm_fail(r->err, "%s: drafts of the layers for multi-token "
                        "prediction of %s are not supported",
                        llm_gguf_name(r->g), d->hp.arch);
    }

    d->layers[0] = d->layers[block];
    d->layers[0].kv_layer = 0;
    d->layers[0].window = 0;
    d->hp.n_layers = 1;
    d->hp.turns = 0;
    d->hp.n_deepstack = 0;
    d->head.n_target = d->hp.n_embd;
    d->head.n_in = 2 * d->hp.n_embd;
    llm_layer_want(&d->layers[0], llm_want_nextn);

    return LLM_OK;
}


/* what each layer keeps of a token and of a sequence, and the sums and maxima
   of llm_hparams_t */

static int
llm_desc_summary(llm_reader_t *r)
{
    uint32_t           i;
    llm_desc_t        *d;
    llm_kv_layer_t    *kv;
    llm_layer_desc_t  *l;

    d = r->d;

    for (i = 0; i < d->hp.n_layers; i++) {
        l = &d->layers[i];
        kv = &d->kv[i];
        l->rope = d->n_ropes || l->n_kv_heads == 0 ? l->rope : LLM_NO_ROPE;

        if (l->kv_layer == i && (i == 0 || !d->hp.encoder) && !l->outside) {
            kv->n_kv_heads = l->n_kv_heads;
            kv->head_dim_k = l->head_dim_k;
            kv->head_dim_v = l->head_dim_v;
            kv->latent = l->latent;
        }

        d->kv_differs |= kv->latent
                         || memcmp(kv, &d->kv[0], sizeof(*kv)) != 0;
        d->states[i] = l->state;
        d->hp.n_recurrent += l->state.conv_width != 0;
        d->hp.n_bytes_state += llm_desc_state_bytes(&l->state);
        d->hp.n_ff = llm_max(d->hp.n_ff, l->n_ff);
        d->hp.n_experts = llm_max(d->hp.n_experts, l->route.n_experts);
        d->hp.n_experts_used = llm_max(d->hp.n_experts_used,
                                       l->route.n_used);
        d->hp.n_ff_expert = llm_max(d->hp.n_ff_expert, l->n_ff_expert);
        d->hp.n_heads = llm_max(d->hp.n_heads, l->n_heads);
        d->hp.n_kv_heads = llm_max(d->hp.n_kv_heads, l->n_kv_heads);
        d->hp.head_dim_k = llm_max(d->hp.head_dim_k, l->head_dim_k);
        d->hp.head_dim_v = llm_max(d->hp.head_dim_v, l->head_dim_v);

        if (l->n_kv_heads && l->rope != LLM_NO_ROPE
            && d->ropes[l->rope].n_rot > l->head_dim_k)
        {
            return llm_fail(r->err, "%s: %s.rope.dimension_count: %u is more "
                            "than the heads of layer %u have",
                            llm_gguf_name(r->g), d->hp.arch,
                            d->ropes[l->rope].n_rot, i);
        }
    }

    return LLM_OK;
}


static int
llm_desc_fields(llm_reader_t *r)
{
    r->used = calloc(llm_gguf_n_kv(r->g) + 1, 1);

    if (r->used == NULL) {
        return llm_fail(r->err, "%s: no memory for its fields",
                        llm_gguf_name(r->g));
    }

    if (llm_desc_sizes(r) != LLM_OK
        || (r->d->arch->read && r->d->arch->read(r) != LLM_OK)
        || (r->d->hp.encoder && llm_read_encoder(r) != LLM_OK)
        || llm_desc_predicts(r) != LLM_OK
        || llm_desc_summary(r) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_read_rest(r);
}


/* reads what d is of: a model, or a head of this kind */

static int
llm_desc_read_as(const llm_gguf_t *g, llm_head_kind_t kind,
    const llm_arch_t *arch, llm_desc_t *d, llm_err_t *err)
{
    int           rc;
    llm_reader_t  r = { .g = g, .d = d, .err = err };

    memset(d, 0, sizeof(llm_desc_t));
    llm_desc_facts(d);
    d->arch = arch;
    d->head.kind = kind;

    if (llm_desc_arch(g, d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = llm_desc_fields(&r);
    free(r.used);

    if (rc == LLM_OK) {
        llm_desc_name(g, &d->hp);
        rc = llm_desc_tensors(g, d, err);
    }

    if (rc == LLM_OK) {
        rc = llm_desc_ear(g, d, err);
    }

    if (rc != LLM_OK) {
        llm_desc_free(d);
    }

    return rc;
}


int
llm_desc_read(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    return llm_desc_read_as(g, LLM_HEAD_NONE, NULL, d, err);
}


int
llm_desc_read_head(const llm_gguf_t *g, llm_head_kind_t kind, llm_desc_t *d,
    llm_err_t *err)
{
    const llm_arch_t  *arch;

    if (kind != LLM_HEAD_NONE) {
        return llm_desc_read_as(g, kind, NULL, d, err);
    }

    arch = llm_desc_head_arch(g);

    if (arch == NULL) {
        return llm_fail(err, "%s: it is no head that drafts for a model",
                        llm_gguf_name(g));
    }

    return llm_desc_read_as(g, arch->head, arch, d, err);
}


void
llm_desc_free(llm_desc_t *d)
{
    free(d->layers);
    free(d->kv);
    free(d->states);
    free(d->ear.layers);
    free(d->ear.align);
    d->ear.layers = NULL;
    d->ear.align = NULL;
    d->layers = NULL;
    d->kv = NULL;
    d->states = NULL;
}


static uint32_t
llm_layer_needs(const llm_desc_t *d, const llm_layer_desc_t *l,
    uint32_t layer, uint32_t ctx)
{
    int       whole;
    uint32_t  i, needs;

    whole = l->tensors[LLM_LT_Q_NORM].t
            && d->facts[LLM_LT_Q_NORM].in == LLM_DIM_Q;
    needs = 0;

    if (whole || l->norm_v || l->norm_qk || l->tensors[LLM_LT_ATTN_POST].t
        || l->tensors[LLM_LT_FFN_POST].t)
    {
        needs |= LLM_CAN_NORMS;
    }

    if ((l->want[LLM_LT_UP] && l->want[LLM_LT_GATE] == LLM_WANT_NONE)
        || l->act.kind > LLM_GLU_GELU || l->bound > 0)
    {
        needs |= LLM_CAN_ACTS;
    }

    if (l->window && (l->window < ctx || d->hp.encoder)) {
        needs |= LLM_CAN_WINDOWS;
    }

    if (l->softcap > 0 || l->tensors[LLM_LT_SINKS].t || l->temp_scale != 0) {
        needs |= LLM_CAN_SCORES;
    }

    if (l->rope == LLM_NO_ROPE || l->norm_last || l->kv_layer != layer
        || l->outside)
    {
        needs |= LLM_CAN_ROPE;
    }

    if (l->residual_scale != 1 || l->want[LLM_LT_ATTN_NORM] == LLM_WANT_NONE
        || l->tensors[LLM_LT_OUT_SCALE].t)
    {
        needs |= LLM_CAN_SCALE;
    }

    if (l->gated || l->tensors[LLM_LT_ATTN_GATE].t) {
        needs |= LLM_CAN_STATE | LLM_CAN_NORMS;
    }

    for (i = 0; l->blocks[i]; i++) {
        needs |= l->blocks[i]->needs;
    }

    for (i = 0; i < LLM_LT_N; i++) {
        needs |= l->tensors[i].scale ? LLM_CAN_FACTORS : 0;
    }

    return needs | (l->n_ff && l->n_ff != d->hp.n_ff ? LLM_CAN_KV : 0);
}


uint32_t
llm_desc_needs(const llm_desc_t *d, uint32_t ctx)
{
    uint32_t  i, needs;

    needs = d->arch->norm == LLM_NORM_RMS ? 0 : LLM_CAN_NORMS;
    needs |= d->kv_differs ? LLM_CAN_KV : 0;
    needs |= d->output_scale ? LLM_CAN_FACTORS : 0;
    needs |= d->hp.encoder ? LLM_CAN_ENCODE | LLM_CAN_SCALE : 0;
    needs |= d->head.kind ? LLM_CAN_MEDIA | LLM_CAN_SCALE : 0;

    if (d->ear.n_layers) {
        needs |= LLM_CAN_CROSS | LLM_CAN_ENCODE | LLM_CAN_NORMS | LLM_CAN_ACTS
                 | LLM_CAN_ROPE | LLM_CAN_SCALE | LLM_CAN_EMBED;
    }

    if (d->embd_scale != 1 || d->logit_scale != 1 || d->logit_cap > 0) {
        needs |= LLM_CAN_SCALE;
    }

    if (d->global[LLM_GT_POS_EMBD] || d->n_input) {
        needs |= LLM_CAN_EMBED | LLM_CAN_SCALE;
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        needs |= llm_layer_needs(d, &d->layers[i], i, ctx);
    }

    return needs;
}


static int
llm_layer_attends(const llm_layer_desc_t *l)
{
    return l->n_kv_heads != 0;
}


uint32_t
llm_desc_window(llm_desc_t *d, uint32_t ctx, int *mixed)
{
    uint32_t           i, window;
    llm_layer_desc_t  *l;

    window = 0;
    *mixed = 0;

    if (d->hp.encoder) {
        return 0;                       /* windows on both sides */
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        d->layers[i].leaves = llm_layer_attends(&d->layers[i]);
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        l = &d->layers[i];

        if (llm_layer_attends(l) && (l->window == 0 || l->window >= ctx)) {
            d->layers[l->kv_layer].leaves = 0;
            *mixed = 1;
        }
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        l = &d->layers[i];

        if (llm_layer_attends(l) && d->layers[l->kv_layer].leaves) {
            window = llm_max(window, l->window);
        }
    }

    *mixed = *mixed && window;

    return window;
}
