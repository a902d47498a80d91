/*
 * Reads a file's mixtures of experts into the description (arch.h): the number
 * of experts, which layers have them, how they are chosen.
 *
 * Invariant: after llm_read_experts(), what kernels.h requires of an
 * llm_route_t holds for every layer, whatever is in the file.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <stdio.h>

/* numbers of expert_gating_func in files; UNSAID: the file has no such field */
enum { GATING_UNSAID = 0, GATING_SOFTMAX, GATING_SIGMOID, GATING_CHOSEN };


/* dense layers are the first ones, or alternate with mixtures */

static int
llm_experts_has(llm_reader_t *r, uint32_t layer, int *has)
{
    uint32_t  dense, step, every;

    dense = 0;
    step = 1;
    every = 0;

    if (llm_read_u32(r, "leading_dense_block_count", &dense) == LLM_ERROR
        || llm_read_u32(r, "interleave_moe_layer_step", &step) == LLM_ERROR
        || llm_read_u32(r, "moe_every_n_layers", &every) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    *has = layer >= dense && step && (layer + 1) % step == 0
           && (every == 0 || layer % every == 1);

    return LLM_OK;
}


/* how the router's logit becomes a weight */

static int
llm_experts_weights(llm_reader_t *r, uint32_t layer, llm_route_t *route)
{
    char      bias[64];
    uint32_t  gating;

    gating = GATING_UNSAID;

    if (llm_read_u32(r, "expert_gating_func", &gating) == LLM_ERROR
        || llm_read_bool(r, "expert_weights_norm", &route->normalize)
           == LLM_ERROR
        || llm_read_f32(r, "expert_weights_scale", &route->scale)
           == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    /* 0 in files means no scale */
    route->scale = route->scale == 0 ? 1 : route->scale;

    switch (gating) {

    case GATING_UNSAID:
        snprintf(bias, sizeof(bias), "blk.%u.%s", layer,
                 r->d->facts[LLM_LT_PROBS_BIAS].name);

        if (r->d->arch->experts->biased_sigmoid
            && llm_gguf_find_tensor(r->g, bias))
        {
            route->score = LLM_ROUTE_SIGMOID;
        }

        break;

    case GATING_SOFTMAX:
        route->score = LLM_ROUTE_SOFTMAX;
        break;

    case GATING_SIGMOID:
        route->score = LLM_ROUTE_SIGMOID;
        break;

    case GATING_CHOSEN:
        route->score = LLM_ROUTE_CHOSEN;
        break;

    default:
        return llm_fail(r->err, "%s: %s.expert_gating_func: %u is not "
                        "supported (%u to %u are)", llm_gguf_name(r->g),
                        r->d->hp.arch, gating, GATING_SOFTMAX,
                        GATING_CHOSEN);
    }

    return LLM_OK;
}


/* a single group means no groups */

static int
llm_experts_groups(llm_reader_t *r, llm_route_t *route)
{
    uint32_t  n, used, of_group;

    n = 1;
    used = 1;

    if (llm_read_size(r, "expert_group_count", route->n_experts, &n)
        != LLM_OK
        || (n > 1
            && llm_read_size(r, "expert_group_used_count", n, &used)
               != LLM_OK))
    {
        return LLM_ERROR;
    }

    llm_read_ignore(r, "expert_group_used_count");

    if (n == 1) {
        return LLM_OK;
    }

    of_group = route->n_experts / n;
    route->n_groups = n;
    route->n_groups_used = used;
    route->group_pairs = route->score == LLM_ROUTE_SIGMOID;

    if (route->n_experts % n || (route->group_pairs && of_group < 2)) {
        return llm_fail(r->err, "%s: %s.expert_group_count: %u experts in %u "
                        "groups are not supported", llm_gguf_name(r->g),
                        r->d->hp.arch, route->n_experts, n);
    }

    if (used * of_group < route->n_used) {
        return llm_fail(r->err, "%s: %s.expert_group_used_count: %u groups "
                        "have fewer than the %u experts that are used",
                        llm_gguf_name(r->g), r->d->hp.arch, used,
                        route->n_used);
    }

    return LLM_OK;
}


/* a width without a field: that of the last matrix's rows */

static void
llm_experts_found(llm_reader_t *r, uint32_t layer, llm_layer_tensor_t down,
    uint32_t *width)
{
    char                      name[64];
    const llm_gguf_tensor_t  *t;

    snprintf(name, sizeof(name), "blk.%u.%s", layer, r->d->facts[down].name);
    t = llm_gguf_find_tensor(r->g, name);

    if (t && t->ne[0] <= LLM_MAX_WIDTH) {
        *width = (uint32_t) t->ne[0];
    }
}


/* widths of an expert, and of the shared experts, which are one network */

static int
llm_experts_widths(llm_reader_t *r, uint32_t layer)
{
    int                         rc;
    uint32_t                    n;
    uint64_t                    width;
    llm_layer_desc_t           *l;
    const llm_arch_experts_t   *a;

    l = &r->d->layers[layer];
    a = r->d->arch->experts;
    l->n_ff_expert = l->n_ff;
    rc = llm_read_layer(r, "expert_feed_forward_length", layer,
                        &l->n_ff_expert);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_ABSENT) {
        llm_experts_found(r, layer, LLM_LT_DOWN_EXPS, &l->n_ff_expert);
    }

    if (llm_read_within(r, "expert_feed_forward_length", l->n_ff_expert, 1,
                        LLM_MAX_WIDTH) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (a->shared == LLM_WANT_NONE) {
        return LLM_OK;
    }

    n = a->shared == LLM_WANT_REQUIRED;
    rc = llm_read_u32(r, "expert_shared_count", &n);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    width = (uint64_t) n * l->n_ff_expert;
    n = (uint32_t) llm_min(width, UINT32_MAX);

    if (rc == LLM_ABSENT && n) {
        llm_experts_found(r, layer, LLM_LT_DOWN_SHARED, &n);
    }

    if (llm_read_u32(r, "expert_shared_feed_forward_length", &n)
        == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (n > LLM_MAX_WIDTH) {
        return llm_fail(r->err, "%s: %s.expert_shared_count: the shared "
                        "experts are %u wide, at most %u are supported",
                        llm_gguf_name(r->g), r->d->hp.arch, n,
                        LLM_MAX_WIDTH);
    }

    l->n_ff_shared = n;

    return LLM_OK;
}


int
llm_read_experts(llm_reader_t *r, uint32_t layer)
{
    int                         has;
    uint32_t                    n;
    llm_route_t                *route;
    const llm_arch_experts_t   *a;

    a = r->d->arch->experts;
    route = &r->d->layers[layer].route;
    n = 0;

    if (a == NULL) {
        return LLM_OK;
    }

    if (llm_read_u32(r, "expert_count", &n) == LLM_ERROR
        || llm_experts_has(r, layer, &has) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (n == 0) {
        llm_read_ignore(r, "expert_used_count");
        return LLM_OK;
    }

    if (llm_read_within(r, "expert_count", n, 0, LLM_MAX_EXPERTS) != LLM_OK) {
        return LLM_ERROR;
    }

    route->score = a->score;
    route->normalize = a->normalize;
    route->n_experts = n;
    route->floor = 1e-20f;
    route->scale = 1;

    if (llm_read_size(r, "expert_used_count", n, &route->n_used) != LLM_OK
        || llm_experts_weights(r, layer, route) != LLM_OK
        || llm_experts_groups(r, route) != LLM_OK
        || llm_experts_widths(r, layer) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (!has) {
        memset(route, 0, sizeof(llm_route_t));
        r->d->layers[layer].n_ff_expert = 0;
        r->d->layers[layer].n_ff_shared = 0;
    }

    return LLM_OK;
}
