/*
 * What is kept of a transcription: segments, texts, tokens and words, as
 * offsets into buffers that grow, and as the plain data that they are for
 * others; see state.h.
 */

#include "engine/speech/state.h"

#include "engine/base/language.h"
#include "engine/speech/text.h"

/* bytes of any of the buffers: more than 24 hours of speech have */
#define LLM_SPEECH_LIMIT  ((size_t) 256 << 20)


void
llm_speech_kept_init(llm_speech_kept_t *k)
{
    memset(k, 0, sizeof(*k));
    llm_buf_init(&k->text, LLM_SPEECH_LIMIT);
    llm_buf_init(&k->tokens, LLM_SPEECH_LIMIT);
    llm_buf_init(&k->logprobs, LLM_SPEECH_LIMIT);
    llm_buf_init(&k->segments, LLM_SPEECH_LIMIT);
    llm_buf_init(&k->words, LLM_SPEECH_LIMIT);
}


void
llm_speech_kept_free(llm_speech_kept_t *k)
{
    llm_buf_free(&k->text);
    llm_buf_free(&k->tokens);
    llm_buf_free(&k->logprobs);
    llm_buf_free(&k->segments);
    llm_buf_free(&k->words);
    free(k->out);
    free(k->out_words);
}


/* the last two arrays are about as long as what they are made from */

size_t
llm_speech_kept_bytes(const llm_speech_kept_t *k)
{
    return k->text.cap + k->tokens.cap + k->logprobs.cap
           + 2 * (k->segments.cap + k->words.cap);
}


static void
llm_speech_keep_words(llm_speech_kept_t *k, const llm_speech_words_t *w,
    const llm_speech_fit_t *fit, llm_speech_segment_t *seg)
{
    size_t                    i;
    llm_speech_kept_word_t    kept;
    const llm_speech_word_t  *word;

    for (i = fit->first; i < fit->first + fit->n; i++) {
        word = &w->data[i];

        if (word->to == word->from) {
            continue;
        }

        kept.text = k->text.len;
        kept.text_len = word->to - word->from;
        kept.start = word->start;
        kept.end = word->end;

        (void) llm_buf_add(&k->text, w->text.data + word->from, kept.text_len);
        (void) llm_buf_add(&k->words, &kept, sizeof(kept));
        seg->n_words++;
    }
}


static void
llm_speech_keep_piece(llm_speech_t *s, const llm_speech_piece_t *p,
    const llm_speech_words_t *w)
{
    size_t                n;
    llm_str_t             text;
    llm_speech_kept_t    *k;
    llm_speech_segment_t  seg;

    k = &s->kept;
    n = p->to - p->from;

    memset(&seg, 0, sizeof(seg));
    seg.text = k->text.len;
    seg.token = k->tokens.len / sizeof(int32_t);
    seg.word = k->words.len / sizeof(llm_speech_kept_word_t);
    seg.start = p->fit.start;
    seg.end = p->fit.end;
    seg.seek = (uint32_t) s->seek;
    seg.temperature = (float) llm_speech_temperature(s);
    seg.avg_logprob = (float) (s->sum / (s->len - s->begin + 1));
    seg.ratio = s->ratio;
    seg.silence = (float) s->silence;

    (void) llm_speech_text(&k->text, s->o.vocab, s->o.rules->info.eot,
                           s->seq + s->begin + p->from, n);

    text.len = k->text.len - seg.text;
    text.data = k->text.len ? k->text.data + seg.text : NULL;

    /* without a text or a duration there is nothing that anybody said */

    if (seg.start == seg.end || llm_speech_strip(text).len == 0) {
        k->text.len = seg.text;

    } else {
        seg.text_len = text.len;
        seg.n_tokens = n;
        (void) llm_buf_add(&k->tokens, s->seq + s->begin + p->from,
                           n * sizeof(int32_t));
        (void) llm_buf_add(&k->logprobs, s->logprobs + s->begin + p->from,
                           n * sizeof(float));

        if (w) {
            llm_speech_keep_words(k, w, &p->fit, &seg);
        }
    }

    (void) llm_buf_add(&k->segments, &seg, sizeof(seg));
}


int
llm_speech_keep(llm_speech_t *s, const llm_speech_words_t *w, llm_err_t *err)
{
    size_t              i;
    llm_speech_kept_t  *k;

    k = &s->kept;

    for (i = 0; i < s->n_pieces; i++) {
        llm_speech_keep_piece(s, &s->pieces[i], w);
    }

    if (!s->o.condition || llm_speech_temperature(s) > 0.5) {
        k->prompt = k->tokens.len / sizeof(int32_t);
    }

    if (k->text.failed || k->tokens.failed || k->logprobs.failed
        || k->segments.failed || k->words.failed)
    {
        return llm_fail(err, "no memory for a transcript");
    }

    return LLM_OK;
}


static void
llm_speech_segment(const llm_speech_kept_t *k, const llm_speech_segment_t *in,
    llm_transcript_segment_t *out)
{
    out->text.len = in->text_len;
    out->text.data = k->text.data + in->text;
    out->start = in->start;
    out->end = in->end;
    out->seek = in->seek;
    out->tokens = (const int32_t *) k->tokens.data + in->token;
    out->logprobs = (const float *) k->logprobs.data + in->token;
    out->n_tokens = (uint32_t) in->n_tokens;
    out->n_words = (uint32_t) in->n_words;
    out->words = k->out_words + in->word;
    out->temperature = in->temperature;
    out->avg_logprob = in->avg_logprob;
    out->compression_ratio = in->ratio;
    out->no_speech_prob = in->silence;
}


static llm_str_t
llm_speech_piece_of(void *ctx, int32_t id)
{
    llm_speech_t *s = ctx;

    return id < s->o.rules->info.eot ? llm_vocab_bytes(s->o.vocab, id)
                                     : (llm_str_t) { 0, NULL };
}


int
llm_speech_transcript(llm_speech_t *s, llm_transcript_t *t, llm_err_t *err)
{
    size_t                         i, n, n_words;
    llm_speech_kept_t             *k;
    const llm_speech_segment_t    *seg;
    const llm_speech_kept_word_t  *word;

    k = &s->kept;
    n = k->segments.len / sizeof(llm_speech_segment_t);
    n_words = k->words.len / sizeof(llm_speech_kept_word_t);
    seg = (const llm_speech_segment_t *) k->segments.data;
    word = (const llm_speech_kept_word_t *) k->words.data;

    free(k->out);
    free(k->out_words);
    k->out = malloc((n + 1) * sizeof(llm_transcript_segment_t));
    k->out_words = malloc((n_words + 1) * sizeof(llm_transcript_word_t));

    if (k->out == NULL || k->out_words == NULL) {
        return llm_fail(err, "no memory for a transcript");
    }

    for (i = 0; i < n_words; i++) {
        k->out_words[i].text.len = word[i].text_len;
        k->out_words[i].text.data = k->text.data + word[i].text;
        k->out_words[i].start = word[i].start;
        k->out_words[i].end = word[i].end;
    }

    for (i = 0; i < n; i++) {
        llm_speech_segment(k, &seg[i], &k->out[i]);
    }

    t->translated = s->o.translate;
    t->language = s->language < 0
                  ? "" : llm_language((size_t) s->language)->name;
    t->duration = (double) s->frames / 100;
    t->words = s->o.words;
    t->n_segments = (uint32_t) n;
    t->segments = k->out;
    t->piece = llm_speech_piece_of;
    t->ctx = s;

    return LLM_OK;
}
