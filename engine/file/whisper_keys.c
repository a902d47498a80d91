/*
 * What Whisper's files do not say, or not in GGUF's words: the keys of the
 * model and of its vocabulary, the ids of special tokens, which follow from the
 * size of the vocabulary, and the heads that look at the sound of a word.
 */

#include "engine/base/language.h"
#include "engine/file/internal.h"

#include <stdio.h>

#define LLM_WHISPER_EN      51864       /* n_vocab of English models */

/* upper limits of sizes */
#define LLM_WHISPER_WIDTH   16384
#define LLM_WHISPER_LAYERS  256
#define LLM_WHISPER_CTX     65536

typedef struct {
    uint32_t     n_vocab;
    uint32_t     n_text_state;
    uint32_t     n_text_layer;
    const char  *mark;                  /* in the file's name; NULL: any */
    const char  *heads;                 /* "layer:head ..." */
} llm_whisper_heads_t;

/* OpenAI's alignment heads, of tiny.en, tiny, base.en ... large-v3-turbo */
static const llm_whisper_heads_t  llm_whisper_known[] = {
    { 51864, 384, 4, NULL,
      "1:0 2:0 2:5 3:0 3:1 3:2 3:3 3:4" },
    { 51865, 384, 4, NULL,
      "2:2 3:0 3:2 3:3 3:4 3:5" },
    { 51864, 512, 6, NULL,
      "3:3 4:7 5:1 5:5 5:7" },
    { 51865, 512, 6, NULL,
      "3:1 4:2 4:3 4:7 5:1 5:2 5:4 5:6" },
    { 51864, 768, 12, NULL,
      "6:6 7:0 7:3 7:8 8:2 8:5 8:7 9:0 9:4 9:8 9:10 10:0 10:1 10:2 10:3 "
      "10:6 10:11 11:2 11:4" },
    { 51865, 768, 12, NULL,
      "5:3 5:9 8:0 8:4 8:7 8:8 9:0 9:7 9:9 10:5" },
    { 51864, 1024, 24, NULL,
      "11:4 14:1 14:12 14:14 15:4 16:0 16:4 16:9 17:12 17:14 18:7 18:10 "
      "18:15 20:0 20:3 20:9 20:14 21:12" },
    { 51865, 1024, 24, NULL,
      "13:15 15:4 15:15 16:1 20:0 23:4" },
    { 51865, 1280, 32, "large-v1",
      "9:19 11:2 11:4 11:17 22:7 22:11 22:17 23:2 23:15" },
    { 51865, 1280, 32, NULL,
      "10:12 13:17 16:11 16:12 16:13 17:15 17:16 18:4 18:11 18:19 19:11 "
      "21:2 21:3 22:3 22:9 22:12 23:5 23:7 23:13 25:5 26:1 26:12 27:15" },
    { 51866, 1280, 32, NULL,
      "7:0 10:17 12:18 13:12 16:1 17:14 19:11 21:4 24:1 25:6" },
    { 51866, 1280, 4, NULL,
      "2:4 2:11 3:3 3:6 3:11 3:14" }
};

/* names of the tokens after the languages */
static const char  *const llm_whisper_tasks[] = {
    "<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>",
    "<|nospeech|>", "<|notimestamps|>"
};


int
llm_whisper_is_vocab(uint32_t n_vocab)
{
    return n_vocab >= LLM_WHISPER_EN && n_vocab <= LLM_WHISPER_EN + 2;
}


uint32_t
llm_whisper_n_text(uint32_t n_vocab)
{
    return n_vocab == LLM_WHISPER_EN ? 50256 : 50257;
}


static int
llm_whisper_within(const char *file, const char *what, uint32_t v,
    uint32_t max, llm_err_t *err)
{
    return v && v <= max ? LLM_OK
           : llm_fail(err, "%s: %s: %u is not from 1 to %u", file, what, v,
                      max);
}


int
llm_whisper_dims(const llm_whisper_dims_t *d, const char *name,
    llm_err_t *err)
{
    size_t  i;

    const struct {
        const char  *what;
        uint32_t     v;
        uint32_t     max;
    } sizes[] = {
        { "n_audio_ctx", d->n_audio_ctx, LLM_WHISPER_CTX },
        { "n_audio_state", d->n_audio_state, LLM_WHISPER_WIDTH },
        { "n_audio_head", d->n_audio_head, d->n_audio_state },
        { "n_audio_layer", d->n_audio_layer, LLM_WHISPER_LAYERS },
        { "n_audio_ff", d->n_audio_ff, 16 * LLM_WHISPER_WIDTH },
        { "n_text_ctx", d->n_text_ctx, LLM_WHISPER_CTX },
        { "n_text_state", d->n_text_state, LLM_WHISPER_WIDTH },
        { "n_text_head", d->n_text_head, d->n_text_state },
        { "n_text_layer", d->n_text_layer, LLM_WHISPER_LAYERS },
        { "n_text_ff", d->n_text_ff, 16 * LLM_WHISPER_WIDTH },
        { "n_mels", d->n_mels, 1024 }
    };

    if (!llm_whisper_is_vocab(d->n_vocab)) {
        return llm_fail(err, "%s: n_vocab: %u tokens, and Whisper's "
                        "vocabularies have 51864 to 51866", name,
                        d->n_vocab);
    }

    for (i = 0; i < llm_nelems(sizes); i++) {
        if (llm_whisper_within(name, sizes[i].what, sizes[i].v, sizes[i].max,
                               err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (d->n_audio_state != d->n_text_state) {
        return llm_fail(err, "%s: n_audio_state: %u, and n_text_state is %u",
                        name, d->n_audio_state, d->n_text_state);
    }

    if (d->n_audio_state % d->n_audio_head
        || d->n_text_state % d->n_text_head)
    {
        return llm_fail(err, "%s: %s: a width of %u is not divided by %u "
                        "heads", name, d->n_audio_state % d->n_audio_head
                                       ? "n_audio_head" : "n_text_head",
                        d->n_audio_state,
                        d->n_audio_state % d->n_audio_head ? d->n_audio_head
                                                           : d->n_text_head);
    }

    return LLM_OK;
}


void
llm_whisper_keys(llm_gguf_make_t *mk, const llm_whisper_dims_t *d)
{
    llm_gguf_make_str(mk, "general.architecture", llm_str("whisper"));
    llm_gguf_make_u32(mk, "whisper.block_count", d->n_text_layer);
    llm_gguf_make_u32(mk, "whisper.context_length", d->n_text_ctx);
    llm_gguf_make_u32(mk, "whisper.embedding_length", d->n_text_state);
    llm_gguf_make_u32(mk, "whisper.feed_forward_length", d->n_text_ff);
    llm_gguf_make_u32(mk, "whisper.attention.head_count", d->n_text_head);
    llm_gguf_make_f32(mk, "whisper.attention.layer_norm_epsilon", 1e-5f);
    llm_gguf_make_u32(mk, "whisper.audio.block_count", d->n_audio_layer);
    llm_gguf_make_u32(mk, "whisper.audio.context_length", d->n_audio_ctx);
    llm_gguf_make_u32(mk, "whisper.audio.embedding_length",
                      d->n_audio_state);
    llm_gguf_make_u32(mk, "whisper.audio.feed_forward_length",
                      d->n_audio_ff);
    llm_gguf_make_u32(mk, "whisper.audio.attention.head_count",
                      d->n_audio_head);
    llm_gguf_make_u32(mk, "whisper.audio.num_mel_bins", d->n_mels);
}


void
llm_whisper_heads(llm_gguf_make_t *mk, const llm_whisper_dims_t *d,
    const char *path)
{
    size_t                      i;
    unsigned                    layer, head;
    int                         n;
    const char                 *p;
    const llm_whisper_heads_t  *k;

    for (i = 0; i < llm_nelems(llm_whisper_known); i++) {
        k = &llm_whisper_known[i];

        if (k->n_vocab == d->n_vocab && k->n_text_state == d->n_text_state
            && k->n_text_layer == d->n_text_layer
            && (k->mark == NULL || strstr(path, k->mark)))
        {
            break;
        }
    }

    if (i == llm_nelems(llm_whisper_known)) {
        return;
    }

    llm_gguf_make_array(mk, "whisper.alignment_heads", LLM_GGUF_U32);

    for (p = k->heads; sscanf(p, "%u:%u%n", &layer, &head, &n) == 2; p += n) {
        llm_gguf_make_item(mk, layer);
        llm_gguf_make_item(mk, head);
    }

    llm_gguf_make_end(mk);
}


/* the text of a special token */

static const char *
llm_whisper_special(uint32_t n_vocab, uint32_t id, char *out, size_t size)
{
    uint32_t  langs, eot;

    eot = llm_whisper_n_text(n_vocab);
    langs = n_vocab == LLM_WHISPER_EN ? 99 : n_vocab - 51766;
    id -= eot;

    if (id == 0) {
        return "<|endoftext|>";
    }

    if (id == 1) {
        return "<|startoftranscript|>";
    }

    id -= 2;

    if (id < langs) {
        snprintf(out, size, "<|%s|>", llm_language(id)->code);
        return out;
    }

    id -= langs;

    if (id < llm_nelems(llm_whisper_tasks)) {
        return llm_whisper_tasks[id];
    }

    id -= (uint32_t) llm_nelems(llm_whisper_tasks);
    snprintf(out, size, "<|%u.%02u|>", id / 50, id % 50 * 2);

    return out;
}


void
llm_whisper_tokens(llm_gguf_make_t *mk, const llm_whisper_dims_t *d,
    const llm_str_t *texts)
{
    char         text[32];
    uint32_t     i, n;
    const char  *s;

    n = llm_whisper_n_text(d->n_vocab);

    llm_gguf_make_str(mk, "tokenizer.ggml.model", llm_str("gpt2"));
    llm_gguf_make_str(mk, "tokenizer.ggml.pre", llm_str("gpt-2"));
    llm_gguf_make_u32(mk, "tokenizer.ggml.eos_token_id", n);
    llm_gguf_make_array(mk, "tokenizer.ggml.tokens", LLM_GGUF_STR);

    for (i = 0; i < d->n_vocab; i++) {
        if (i < n) {
            llm_gguf_make_item_str(mk, texts[i]);
            continue;
        }

        s = llm_whisper_special(d->n_vocab, i, text, sizeof(text));
        llm_gguf_make_item_str(mk, (llm_str_t) { strlen(s), s });
    }

    llm_gguf_make_end(mk);

    /* the types of llm_token_type_t: 1 ordinary, 3 control */

    llm_gguf_make_array(mk, "tokenizer.ggml.token_type", LLM_GGUF_U32);

    for (i = 0; i < d->n_vocab; i++) {
        llm_gguf_make_item(mk, i < n ? 1 : 3);
    }

    llm_gguf_make_end(mk);
}
