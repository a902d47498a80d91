/*
 * The encoder of sound beside that of images, in the same file: that of Gemma 4
 * without encoders (unified), which takes frames of samples as they are.  A
 * frame is normalised, which the host does, and one matrix makes a row of it.
 */

#include "engine/model/tower_internal.h"

#include <math.h>


int
llm_tower_sound(llm_tower_load_t *l)
{
    int                       has;
    uint32_t                  out;
    llm_str_t                 name;
    llm_tower_t              *t = l->t;
    const llm_gguf_tensor_t  *w;

    static const char  prefix[] = "mm.a.input_projection";

    if (llm_gguf_get_bool(t->gguf, "clip.has_audio_encoder", &has, NULL)
        != LLM_OK || !has
        || llm_gguf_get_str(t->gguf, "clip.audio.projector_type", &name, NULL)
           != LLM_OK || !llm_str_is(name, "gemma4ua") || t->n_parts > 1)
    {
        return LLM_OK;
    }

    w = llm_tower_find(l, "%s.weight", prefix);

    if (w == NULL) {
        return llm_tower_missing(l, prefix);
    }

    if (w->ne[0] > LLM_MAX_WIDTH) {
        return llm_fail(l->err, "%s: %s.weight: frames of %llu samples are too "
                        "long", llm_gguf_name(t->gguf), prefix,
                        (unsigned long long) w->ne[0]);
    }

    out = t->info.n_embd;
    t->info.frame = (uint32_t) w->ne[0];
    t->sound_eps = 1e-6f;

    if (llm_gguf_get_f32(t->gguf, "clip.audio.attention.layer_norm_epsilon",
                         &t->sound_eps, l->err) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    return llm_tower_linear(l, &t->sound, t->info.frame, &out, prefix);
}


void
llm_tower_frames(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t first, uint32_t count, float *rows)
{
    double        sum;
    uint32_t      i, k, n = t->info.frame;
    const float  *from;

    for (i = first; i < first + count; i++, rows += n) {
        from = e->samples + (size_t) i * n;

        for (k = 0, sum = 0; k < n; k++) {
            sum += (double) from[k] * from[k];
        }

        sum = 1 / sqrt(sum / n + t->sound_eps);

        for (k = 0; k < n; k++) {
            rows[k] = (float) (from[k] * sum);
        }
    }
}


void
llm_tower_hear(const llm_tower_t *t)
{
    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_FRAME]);
    llm_tower_apply(t, &t->sound, t->act_of[LLM_TA_FRAME],
                    t->act_of[LLM_TA_PART], 0);
}
