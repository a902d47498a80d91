/*
 * Records of a transcript: what is packed is unpacked, and bytes that are
 * wrong are refused.
 */

#include "engine/base/transcript.h"

#include "t/unit/tap.h"

static const int32_t  ids[] = { 50364, 2425, 50464 };
static const float    logprobs[] = { -1, -0.5f, -2 };

static const llm_transcript_word_t  words[] = {
    { { 6, " Hello" }, 0, 0.5 },
    { { 3, " \"x" }, 0.5, 1.255 }
};

static const llm_transcript_segment_t  segment = {
    { 9, " Hello \"x" }, 0.5, 1.999, 300, ids, logprobs, 3, 2, words, 0.2f,
    -0.25f, 1.5f, 0.0009765625f
};


static llm_str_t
piece(void *ctx, int32_t id)
{
    llm_str_t  s = { 0, NULL };

    return ctx && id < 50000 ? llm_str(" Hello") : s;
}


static void
test_whole(const llm_transcript_t *t, int pieces)
{
    uint32_t                  n_words, n_pieces;
    llm_buf_t                 out;
    llm_transcript_t          back;
    llm_transcript_word_t     w[2];
    llm_transcript_piece_t    p[3];
    llm_transcript_segment_t  s;

    llm_buf_init(&out, 0);
    is_int(llm_transcript_pack(&out, t, 0, pieces), LLM_OK, "it is packed");
    is_int(out.len % 8, 0, "to whole words");
    is_int(llm_transcript_peek(out.data, out.len, &back, &n_words, &n_pieces),
           LLM_OK, "it is read");
    is_str(back.language, "german", "the language");
    ok(back.duration == 12.5 && back.translated == 1 && back.words == 1,
       "what is known of the whole");
    is_int(n_words, 2, "words");
    is_int(n_pieces, pieces ? 3 : 0, "pieces");

    is_int(llm_transcript_unpack(out.data, &s, w, p), 1, "a segment");
    ok(s.text.len == 9 && memcmp(s.text.data, " Hello \"x", 9) == 0,
       "its text");
    ok(s.start == 0.5 && s.end == 1.999 && s.seek == 300 && s.n_tokens == 3
       && memcmp(s.tokens, ids, sizeof(ids)) == 0
       && memcmp(s.logprobs, logprobs, sizeof(logprobs)) == 0,
       "its times and tokens");
    ok(s.temperature == 0.2f && s.avg_logprob == -0.25f
       && s.compression_ratio == 1.5f && s.no_speech_prob == 0.0009765625f,
       "its figures");
    ok(s.n_words == 2 && s.words == w && w[1].end == 1.255
       && w[1].text.len == 3 && memcmp(w[1].text.data, " \"x", 3) == 0,
       "its words");

    if (pieces) {
        ok(p[1].id == 2425 && p[1].bytes.len == 6
           && memcmp(p[1].bytes.data, " Hello", 6) == 0 && p[0].bytes.len == 0,
           "the bytes of its tokens");
    }

    llm_buf_free(&out);
}


/* each byte is changed, and each length is tried, in a block of its own, where
   a sanitizer sees what is read beyond it */

static void
test_wrong(const llm_transcript_t *t)
{
    char                     *copy;
    size_t                    i, len;
    uint32_t                  n_words, n_pieces, read, short_ones;
    llm_buf_t                 out;
    llm_transcript_t          back;
    llm_transcript_word_t    *w;
    llm_transcript_piece_t   *p;
    llm_transcript_segment_t  s;

    llm_buf_init(&out, 0);
    (void) llm_transcript_pack(&out, t, 0, 1);
    read = 0;
    short_ones = 0;

    for (len = 1; len <= out.len; len++) {
        copy = malloc(len);
        memcpy(copy, out.data, len);
        short_ones += llm_transcript_peek(copy, len, &back, &n_words,
                                          &n_pieces) == LLM_OK;
        free(copy);
    }

    for (i = 0; i < out.len * 2; i++) {
        copy = malloc(out.len);
        memcpy(copy, out.data, out.len);
        copy[i / 2] = i % 2 ? '\xff' : copy[i / 2] + 1;

        if (llm_transcript_peek(copy, out.len, &back, &n_words, &n_pieces)
            == LLM_OK)
        {
            w = calloc(n_words + 1, sizeof(*w));
            p = calloc(n_pieces + 1, sizeof(*p));
            (void) llm_transcript_unpack(copy, &s, w, p);
            read++;
            free(w);
            free(p);
        }

        free(copy);
    }

    is_int(short_ones, 1, "no part of it is a record");
    ok(read > 0 && read < out.len * 2, "wrong bytes: %u of %zu were read", read,
       out.len * 2);
    llm_buf_free(&out);
}


int
main(void)
{
    uint32_t                  n_words, n_pieces;
    llm_buf_t                 out;
    llm_transcript_t          t, back;
    llm_transcript_segment_t  s;

    memset(&t, 0, sizeof(t));
    t.translated = 1;
    t.language = "german";
    t.duration = 12.5;
    t.words = 1;
    t.n_segments = 1;
    t.segments = &segment;
    t.piece = piece;
    t.ctx = &t;

    test_whole(&t, 0);
    test_whole(&t, 1);
    test_wrong(&t);

    t.language = NULL;
    llm_buf_init(&out, 0);
    ok(llm_transcript_pack(&out, &t, 1, 1) == LLM_OK
       && llm_transcript_peek(out.data, out.len, &back, &n_words, &n_pieces)
          == LLM_OK
       && llm_transcript_unpack(out.data, &s, NULL, NULL) == 0
       && back.language == NULL && back.duration == 12.5,
       "a record without a segment");
    llm_buf_free(&out);

    llm_buf_init(&out, 16);
    is_int(llm_transcript_pack(&out, &t, 0, 0), LLM_ERROR, "no room");
    llm_buf_free(&out);

    return done_testing();
}
