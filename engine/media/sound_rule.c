/*
 * What a family's own processor makes of a sound; see rule.h.
 *
 * An encoder of spectrograms takes some seconds at once, 30 in all published
 * ones: a longer sound is cut into entries of that length.  Qwen2-Audio's
 * processor would leave out what is longer, as Gemma 4's.  Qwen3's takes sounds
 * of any length: an entry is what sees each other.
 */

#include "engine/media/rule.h"

#include "engine/media/mel.h"

#define LLM_SOUND_WIDE  65536           /* samples of a row, at most */


static const struct {
    llm_sound_rule_t   rule;
    uint32_t           window;          /* frames that see each other; 0:
                                           all */
    int                stacks;          /* the file may have another group */
} llm_sounds[] = {

    /* the file says how long a frame is */
    { { .projector = "gemma4ua", .frame = 1,
        .words = { .places = { "<|audio|>" }, .begin = "<|audio>",
                   .end = "<audio|>" } }, 0, 0 },

    /* a frame at least */
    { { .projector = "gemma4a", .group = 1, .usm = 1, .chunk = LLM_SOUND_USM,
        .least = LLM_MEL_HOP + 1,
        .words = { .places = { "<|audio|>" }, .begin = "<|audio>",
                   .end = "<audio|>" } }, 0, 0 },

    { { .projector = "voxtral", .group = 4, .whole = 1,
        .words = { .places = { "[AUDIO]" }, .begin = "[BEGIN_AUDIO]" } },
      0, 1 },

    { { .projector = "qwen2a", .group = 2, .ahead = 1,
        .words = { .places = { "<|AUDIO|>" }, .begin = "<|audio_bos|>",
                   .end = "<|audio_eos|>" } }, 0, 0 },

    { { .projector = "qwen2.5o", .group = 2,
        .words = { .places = { "<|AUDIO|>", "<|audio_pad|>" },
                   .begin = "<|audio_bos|>", .end = "<|audio_eos|>" } },
      LLM_SOUND_OMNI, 0 },

    { { .projector = "qwen3a", .group = 1, .sliced = 1, .least = 8000,
        .words = { .places = { "<|audio_pad|>" }, .begin = "<|audio_start|>",
                   .end = "<|audio_end|>" } }, 0, 0 }
};


/* a matrix takes frames of samples */

static int
llm_sound_frame(llm_sound_rule_t *rule, const llm_gguf_t *g)
{
    const llm_gguf_tensor_t  *t;

    t = llm_gguf_find_tensor(g, "mm.a.input_projection.weight");
    rule->frame = t && t->ne[0] <= LLM_SOUND_WIDE ? (uint32_t) t->ne[0] : 0;

    return rule->frame != 0;
}


static int
llm_sound_mel(llm_sound_rule_t *rule, const llm_gguf_t *g, uint32_t window,
    int stacks)
{
    const llm_gguf_tensor_t  *t;

    if (stacks) {
        (void) llm_gguf_get_u32(g, "clip.audio.projector.stack_factor",
                                &rule->group, NULL);
    }

    if (llm_gguf_get_u32(g, "clip.audio.num_mel_bins", &rule->n_mels, NULL)
           != LLM_OK
        || rule->n_mels == 0 || rule->n_mels > LLM_MEL_MAX)
    {
        return 0;
    }

    if (rule->usm) {
        return 1;
    }

    t = llm_gguf_find_tensor(g, "a.position_embd.weight");

    if (t == NULL || t->ne[1] > LLM_SOUND_WIDE) {
        return 0;
    }

    rule->chunk = !rule->sliced
                  ? llm_sound_chunk((uint32_t) t->ne[1], window)
                  : t->ne[1] < llm_sound_sliced(LLM_SOUND_SLICE)
                  ? 0 : LLM_SOUND_SIGHT;

    return rule->group && rule->chunk
           && llm_sound_rows(rule, rule->chunk) != 0;
}


/* Qwen3-Omni, which sees, and Qwen3-ASR have the same encoder and different
   processors */

static void
llm_sound_omni(llm_sound_rule_t *rule, const llm_gguf_t *g)
{
    int  sees;

    if (llm_gguf_get_bool(g, "clip.has_vision_encoder", &sees, NULL) == LLM_OK
        && sees)
    {
        rule->least = LLM_MEL_HOP;
        rule->bare = 1;
    }
}


int
llm_sound_projector(const llm_gguf_t *g, llm_str_t *name)
{
    int  has;

    return llm_gguf_get_bool(g, "clip.has_audio_encoder", &has, NULL) == LLM_OK
           && has
           && (llm_gguf_get_str(g, "clip.audio.projector_type", name, NULL)
               == LLM_OK
               || llm_gguf_get_str(g, "clip.projector_type", name, NULL)
                  == LLM_OK);
}


int
llm_sound_rule_read(llm_sound_rule_t *rule, const llm_gguf_t *g)
{
    size_t     i;
    llm_str_t  name;

    memset(rule, 0, sizeof(llm_sound_rule_t));

    if (!llm_sound_projector(g, &name)) {
        return 0;
    }

    for (i = 0; i < llm_nelems(llm_sounds); i++) {
        if (!llm_str_is(name, llm_sounds[i].rule.projector)) {
            continue;
        }

        *rule = llm_sounds[i].rule;

        if (rule->sliced) {
            llm_sound_omni(rule, g);
        }

        if (rule->frame ? llm_sound_frame(rule, g)
                        : llm_sound_mel(rule, g, llm_sounds[i].window,
                                        llm_sounds[i].stacks))
        {
            return 1;
        }
    }

    memset(rule, 0, sizeof(llm_sound_rule_t));

    return 0;
}


uint32_t
llm_sound_rows(const llm_sound_rule_t *rule, uint32_t frames)
{
    return rule->usm ? llm_sound_quartered(frames)
           : rule->sliced ? llm_sound_sliced(frames)
                          : llm_sound_halved(frames) / rule->group;
}


static void
llm_sound_plan_sliced(const llm_sound_rule_t *rule, size_t n,
    llm_sound_plan_t *plan)
{
    size_t  frames;

    frames = llm_max(n, (size_t) rule->least) / LLM_MEL_HOP;
    plan->n_entries = (uint32_t) ((frames - 1) / rule->chunk + 1);
    plan->frames = rule->chunk;
    plan->last = (uint32_t) ((frames - 1) % rule->chunk + 1);
    plan->seen = rule->bare && frames < LLM_SOUND_SLICE
                 ? plan->last
                 : (plan->last + LLM_SOUND_SLICE - 1) / LLM_SOUND_SLICE
                   * LLM_SOUND_SLICE;
}


static void
llm_sound_plan_usm(const llm_sound_rule_t *rule, size_t n,
    llm_sound_plan_t *plan)
{
    size_t  frames;

    frames = llm_mel_usm_frames(llm_max(n, (size_t) rule->least));
    plan->n_entries = (uint32_t) ((frames - 1) / rule->chunk + 1);
    plan->frames = rule->chunk;
    plan->last = (uint32_t) ((frames - 1) % rule->chunk + 1);
    plan->seen = plan->last;
}


static void
llm_sound_plan_halved(const llm_sound_rule_t *rule, size_t frames,
    llm_sound_plan_t *plan)
{
    /* a sound has at least a row */

    frames = llm_max(frames, (size_t) 2 * rule->group);
    plan->n_entries = (uint32_t) ((frames - 1) / rule->chunk + 1);
    plan->frames = rule->chunk;
    plan->last = (uint32_t) ((frames - 1) % rule->chunk + 1);

    /* nor has its last part none */

    if (rule->whole || llm_sound_rows(rule, plan->last) == 0) {
        plan->last = rule->whole ? rule->chunk : 2 * rule->group;
    }

    plan->seen = llm_min(plan->last + (rule->ahead ? 2 : 0), rule->chunk);
}


void
llm_sound_plan(const llm_sound_rule_t *rule, size_t n, llm_sound_plan_t *plan)
{
    size_t    frames;
    uint32_t  hop;

    hop = rule->frame ? rule->frame : LLM_MEL_HOP;
    frames = n / hop + (n % hop != 0);

    if (rule->frame) {
        plan->n_entries = 1;
        plan->n_tokens = frames;
        plan->frames = plan->last = (uint32_t) llm_min(frames,
                                                       (size_t) UINT32_MAX);
        plan->seen = plan->last;
        return;
    }

    if (rule->usm) {
        llm_sound_plan_usm(rule, n, plan);

    } else if (rule->sliced) {
        llm_sound_plan_sliced(rule, n, plan);

    } else {
        llm_sound_plan_halved(rule, frames, plan);
    }

    plan->n_tokens = (uint64_t) (plan->n_entries - 1)
                     * llm_sound_rows(rule, plan->frames)
                     + llm_sound_rows(rule, plan->last);
}


uint32_t
llm_sound_seconds(const llm_sound_rule_t *rule, uint64_t rows)
{
    uint64_t  chunk, samples;

    if (rule->frame) {
        samples = rows * rule->frame;

    } else if (rule->usm) {
        samples = rows * 4 * LLM_MEL_HOP;

    } else if (rule->sliced) {
        chunk = llm_sound_sliced(LLM_SOUND_SLICE);
        samples = (rows / chunk * LLM_SOUND_SLICE + rows % chunk * 8)
                  * LLM_MEL_HOP;

    } else {
        chunk = llm_sound_rows(rule, rule->chunk);
        samples = rows / chunk * rule->chunk * LLM_MEL_HOP;
        samples += rule->whole ? 0 : rows % chunk * 2 * rule->group
                                     * LLM_MEL_HOP;
    }

    return (uint32_t) llm_min(samples / LLM_MEL_RATE, (uint64_t) UINT32_MAX);
}
