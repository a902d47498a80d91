/*
 * Records of a transcript; see transcript.h.  Behind the head come the words,
 * the tokens, their probabilities, the sizes of their bytes, and then the
 * texts: the segment's, the words', the tokens'.
 */

#include "engine/base/language.h"
#include "engine/base/transcript.h"

typedef struct {
    uint32_t  size;
    uint32_t  segment;                  /* 1: there is one */
    int32_t   language;                 /* number; -1: not known */
    uint32_t  translated;
    uint32_t  has_words;
    uint32_t  n_tokens;
    uint32_t  n_words;
    uint32_t  n_pieces;                 /* n_tokens, or 0 */
    uint32_t  text;                     /* bytes */
    uint32_t  seek;
    float     temperature;
    float     avg_logprob;
    float     compression_ratio;
    float     no_speech_prob;
    double    duration;
    double    start;
    double    end;
} llm_transcript_head_t;

typedef struct {
    double    start;
    double    end;
    uint32_t  text;                     /* bytes */
    uint32_t  unused;
} llm_transcript_said_t;


static void
llm_transcript_pack_words(llm_buf_t *out, const llm_transcript_segment_t *s)
{
    uint32_t               i;
    llm_transcript_said_t  said;

    memset(&said, 0, sizeof(said));

    for (i = 0; i < s->n_words; i++) {
        said.start = s->words[i].start;
        said.end = s->words[i].end;
        said.text = (uint32_t) s->words[i].text.len;
        (void) llm_buf_add(out, &said, sizeof(said));
    }
}


static void
llm_transcript_pack_pieces(llm_buf_t *out, const llm_transcript_t *t,
    const llm_transcript_segment_t *s, int sizes)
{
    uint32_t   i, len;
    llm_str_t  p;

    for (i = 0; i < s->n_tokens; i++) {
        p = t->piece(t->ctx, s->tokens[i]);
        len = (uint32_t) p.len;

        if (sizes) {
            (void) llm_buf_add(out, &len, sizeof(len));

        } else if (p.len) {
            (void) llm_buf_add(out, p.data, p.len);
        }
    }
}


static void
llm_transcript_pack_segment(llm_buf_t *out, const llm_transcript_t *t,
    const llm_transcript_segment_t *s, int pieces)
{
    uint32_t  i;

    llm_transcript_pack_words(out, s);

    if (s->n_tokens) {
        (void) llm_buf_add(out, s->tokens, s->n_tokens * sizeof(int32_t));
        (void) llm_buf_add(out, s->logprobs, s->n_tokens * sizeof(float));
    }

    if (pieces) {
        llm_transcript_pack_pieces(out, t, s, 1);
    }

    if (s->text.len) {
        (void) llm_buf_add(out, s->text.data, s->text.len);
    }

    for (i = 0; i < s->n_words; i++) {
        if (s->words[i].text.len) {
            (void) llm_buf_add(out, s->words[i].text.data,
                               s->words[i].text.len);
        }
    }

    if (pieces) {
        llm_transcript_pack_pieces(out, t, s, 0);
    }
}


static void
llm_transcript_pack_head(llm_transcript_head_t *h, const llm_transcript_t *t)
{
    memset(h, 0, sizeof(*h));
    h->language = t->language ? llm_language_find(t->language,
                                                  strlen(t->language)) : -1;
    h->translated = t->translated != 0;
    h->has_words = t->words != 0;
    h->duration = t->duration;
}


int
llm_transcript_pack(llm_buf_t *out, const llm_transcript_t *t, uint32_t i,
    int pieces)
{
    size_t                           at;
    llm_transcript_head_t            h;
    const llm_transcript_segment_t  *s;

    at = out->len;
    pieces = pieces && t->piece;
    llm_transcript_pack_head(&h, t);
    (void) llm_buf_add(out, &h, sizeof(h));

    if (i < t->n_segments) {
        s = &t->segments[i];
        h.segment = 1;
        h.n_tokens = s->n_tokens;
        h.n_words = s->n_words;
        h.n_pieces = pieces ? s->n_tokens : 0;
        h.text = (uint32_t) s->text.len;
        h.seek = s->seek;
        h.temperature = s->temperature;
        h.avg_logprob = s->avg_logprob;
        h.compression_ratio = s->compression_ratio;
        h.no_speech_prob = s->no_speech_prob;
        h.start = s->start;
        h.end = s->end;
        llm_transcript_pack_segment(out, t, s, pieces);
    }

    while (!out->failed && (out->len - at) % 8) {
        (void) llm_buf_addc(out, '\0');
    }

    if (out->failed || out->len - at > LLM_TRANSCRIPT_RECORD) {
        return LLM_ERROR;
    }

    h.size = (uint32_t) (out->len - at);
    memcpy(out->data + at, &h, sizeof(h));

    return LLM_OK;
}


/* the bytes that a record must have at least; UINT64_MAX: too many */

static uint64_t
llm_transcript_need(const llm_transcript_head_t *h)
{
    uint32_t                      i;
    uint64_t                      n;
    const uint32_t               *sizes;
    const llm_transcript_said_t  *said;

    if (h->n_pieces && h->n_pieces != h->n_tokens) {
        return UINT64_MAX;
    }

    n = sizeof(*h) + (uint64_t) h->n_words * sizeof(*said)
        + (uint64_t) h->n_tokens * 8 + (uint64_t) h->n_pieces * 4 + h->text;

    if (n > h->size) {
        return UINT64_MAX;
    }

    said = (const llm_transcript_said_t *) (h + 1);
    sizes = (const uint32_t *) (said + h->n_words) + 2 * (size_t) h->n_tokens;

    for (i = 0; i < h->n_words; i++) {
        n += said[i].text;
    }

    for (i = 0; i < h->n_pieces; i++) {
        n += sizes[i];
    }

    return n;
}


int
llm_transcript_peek(const void *rec, size_t size, llm_transcript_t *t,
    uint32_t *n_words, uint32_t *n_pieces)
{
    const llm_transcript_head_t *h = rec;

    if (size < sizeof(*h) || h->size != size
        || llm_transcript_need(h) > size
        || h->language < -1 || h->language >= LLM_LANGUAGES)
    {
        return LLM_ERROR;
    }

    memset(t, 0, sizeof(*t));
    t->translated = (int) h->translated;
    t->words = (int) h->has_words;
    t->language = h->language < 0
                  ? NULL : llm_language((size_t) h->language)->name;
    t->duration = h->duration;
    *n_words = h->n_words;
    *n_pieces = h->n_pieces;

    return LLM_OK;
}


/* a text of a record; moves past it */

static llm_str_t
llm_transcript_text(const char **p, uint32_t len)
{
    llm_str_t  s = { len, *p };

    *p += len;

    return s;
}


uint32_t
llm_transcript_unpack(const void *rec, llm_transcript_segment_t *s,
    llm_transcript_word_t *words, llm_transcript_piece_t *pieces)
{
    uint32_t                      i;
    const char                   *p;
    const uint32_t               *sizes;
    const llm_transcript_head_t  *h = rec;
    const llm_transcript_said_t  *said;

    said = (const llm_transcript_said_t *) (h + 1);
    memset(s, 0, sizeof(*s));
    s->start = h->start;
    s->end = h->end;
    s->seek = h->seek;
    s->temperature = h->temperature;
    s->avg_logprob = h->avg_logprob;
    s->compression_ratio = h->compression_ratio;
    s->no_speech_prob = h->no_speech_prob;
    s->n_tokens = h->n_tokens;
    s->n_words = h->n_words;
    s->words = words;
    s->tokens = (const int32_t *) (said + h->n_words);
    s->logprobs = (const float *) (s->tokens + h->n_tokens);

    sizes = (const uint32_t *) (s->logprobs + h->n_tokens);
    p = (const char *) (sizes + h->n_pieces);
    s->text = llm_transcript_text(&p, h->text);

    for (i = 0; i < h->n_words; i++) {
        words[i].start = said[i].start;
        words[i].end = said[i].end;
        words[i].text = llm_transcript_text(&p, said[i].text);
    }

    for (i = 0; i < h->n_pieces; i++) {
        pieces[i].id = s->tokens[i];
        pieces[i].bytes = llm_transcript_text(&p, sizes[i]);
    }

    return h->segment;
}
