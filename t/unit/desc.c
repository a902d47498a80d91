/*
 * Descriptions of files (arch.h), where the logits of a short text cannot tell
 * one from another: windows and temperatures of far positions, numbers that
 * matter in large models alone.
 */

#include "engine/model/arch.h"
#include "t/unit/tiny_model.h"

#include <math.h>


/* the description of a tiny model, changed; the caller's to free */

static int
described(const tiny_t *t, const tiny_change_t *change, llm_desc_t *d,
    llm_gguf_t **g)
{
    llm_err_t  err;

    *g = write_model(t, change) ? llm_gguf_open(path, &err) : NULL;

    return ok(*g && llm_desc_read(*g, d, &err) == LLM_OK, "%s is described",
              t->name);
}


/* of a model without RoPE a file may say anything about it; of one whose file
   says so, too */

static void
test_no_rope(void)
{
    size_t        i;
    uint32_t      k, rotates;
    llm_desc_t    d;
    llm_gguf_t   *g;

    static const struct {
        const char     *model;
        tiny_change_t   change;
    } cases[] = {
        { "nemotron_h", { .u32_key = "nemotron_h.rope.dimension_count",
                          .u32 = 4096 } },
        { "nemotron_h", { .u32_key = "nemotron_h.rope.dimension_count",
                          .u32 = 0 } },
        { "nemotron_h", { .u32_key = "nemotron_h.rope.dimension_count",
                          .u32 = 7 } },
        { "nemotron_h", { .str_key = "nemotron_h.rope.scaling.type",
                          .str = "longrope" } },
        { "nemotron_h", { .u32_key = "nemotron_h.rope.dimension_sections",
                          .u32 = 3 } },
        { "gpt2", { .f32_key = "gpt2.rope.freq_base", .f32 = 0 } },
        { "gpt2", { .u32_key = "gpt2.rope.dimension_count", .u32 = 4096 } },
        { "starcoder", { .u32_key = "starcoder.rope.dimension_count",
                         .u32 = 4096 } }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        if (!described(tiny_named(cases[i].model), &cases[i].change, &d, &g)) {
            llm_gguf_close(g);
            continue;
        }

        for (k = 0, rotates = 0; k < d.hp.n_layers; k++) {
            rotates += d.layers[k].n_kv_heads
                       && d.layers[k].rope != LLM_NO_ROPE;
        }

        is_int(rotates, 0, "no layer of it rotates");
        llm_desc_free(&d);
        llm_gguf_close(g);
    }
}


/* Gemma 2's first files do not say their window, which is longer than the tiny
   model's context */

static void
test_unsaid_window(void)
{
    llm_desc_t   d;
    llm_gguf_t  *g;

    if (described(tiny_named("gemma2, of the first files"), NULL, &d, &g)) {
        ok(d.layers[0].window == 4096 && d.layers[1].window == 0,
           "the first of two layers has a window of 4096");
        llm_desc_free(&d);
    }

    llm_gguf_close(g);
}


/* Llama 4: chunks of 8192 if nothing is said of them, none if it is 0, and
   then no layer is without RoPE or has sharper queries */

static void
test_chunks(void)
{
    int                      none, sharp;
    size_t                   i;
    llm_desc_t               d;
    llm_gguf_t              *g;
    tiny_change_t            change;
    const llm_layer_desc_t  *first, *fourth;

    static const char  key[] = "llama4.attention.sliding_window";

    static const struct {
        const char  *what;
        uint32_t     said;
        uint32_t     window;
    } cases[] = {
        { "nothing", UINT32_MAX, 8192 }, { "4", 4, 4 }, { "0", 0, 0 }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        change = cases[i].said == UINT32_MAX
                 ? change(.drop_key = key)
                 : change(.u32_key = key, .u32 = cases[i].said);

        if (described(tiny_named("llama4"), &change, &d, &g)) {
            first = &d.layers[0];
            fourth = &d.layers[3];
            none = cases[i].window == 0;
            sharp = fourth->temp_scale == 0.1f && fourth->temp_floor == 8192
                    && fourth->temp_offset == 1;

            ok(first->window == cases[i].window && first->norm_qk
               && first->rope == 0 && first->temp_scale == 0
               && fourth->window == 0, "%s said of chunks: windows of %u",
               cases[i].what, first->window);
            ok(none ? fourth->rope == 0 && fourth->norm_qk
                      && fourth->temp_scale == 0
                    : fourth->rope == LLM_NO_ROPE && !fourth->norm_qk
                      && sharp,
               "and the fourth layer %s", none ? "is as the others"
               : "has neither chunks nor RoPE, and sharper queries");
            llm_desc_free(&d);
        }

        llm_gguf_close(g);
    }
}


/* the 27B models of Gemma are known by their layers */

static void
test_largest_gemma(void)
{
    float        want;
    size_t       i;
    tiny_t       t;
    llm_desc_t   d;
    llm_gguf_t  *g;

    static const struct {
        const char  *name;
        uint32_t     layers;
        int          largest;
    } cases[] = {
        { "gemma2", 45, 0 }, { "gemma2", 46, 1 }, { "gemma3", 46, 0 },
        { "gemma3", 62, 1 }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        t = *tiny_named(cases[i].name);
        t.layers = cases[i].layers;
        t.head_k = 12;
        t.head_v = 12;
        want = 1 / sqrtf(cases[i].largest ? (float) (t.embd / t.heads) : 12);

        if (described(&t, NULL, &d, &g)) {
            ok(fabsf(d.layers[0].scale - want) < 1e-6f
               && fabsf(d.layers[t.layers - 1].scale - want) < 1e-6f,
               "%s of %u layers: scores are times %g", t.name, t.layers,
               d.layers[0].scale);
            llm_desc_free(&d);
        }

        llm_gguf_close(g);
    }
}


/* the shortest step of time, which no file says */

static void
test_shortest_step(void)
{
    llm_desc_t   d;
    llm_gguf_t  *g;

    if (described(tiny_named("nemotron_h"), NULL, &d, &g)) {
        ok(d.layers[0].dt_min == 0.001f, "Nemotron-H: no step below 0.001");
        llm_desc_free(&d);
    }

    llm_gguf_close(g);

    if (described(tiny_named("granitehybrid"), NULL, &d, &g)) {
        ok(d.layers[0].dt_min == 0, "others have no such bound");
        llm_desc_free(&d);
    }

    llm_gguf_close(g);
}


int
main(void)
{
    if (tiny_begin()) {
        test_unsaid_window();
        test_chunks();
        test_largest_gemma();
        test_shortest_step();
        tiny_end();
    }
    test_no_rope();

    return done_testing();
}
