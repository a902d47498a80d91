/*
 * Transcripts as bodies.
 */

#include "engine/api/transcript.h"

#include "t/unit/tap.h"

#include <cjson/cJSON.h>

static const int32_t  ids[] = { 50364, 2425, 50464 };
static const float    logprobs[] = { -1, -0.5f, -2 };

static const llm_transcript_word_t  words[] = {
    { { 6, " Hello" }, 0, 0.5 },
    { { 3, " \"x" }, 0.5, 1.255 }
};

static const llm_transcript_segment_t  segments[] = {
    { { 9, " Hello \"x" }, 0, 1.999, 0, ids, logprobs, 3, 2, words, 0.2f,
      -0.25f, 1.5f, 0.0009765625f },
    { { 0, NULL }, 2, 2, 0, ids, NULL, 0, 0, words, 0, 0, 0, 0 },
    { { 13, " a --> b\n\nc\xc3\xa4" }, 3599.9996, 3725.5, 300, ids, NULL, 0, 0,
      words + 2, 0, 0, 0, 1 }
};


static const char *
body(llm_buf_t *out, const llm_transcript_t *t, llm_transcript_format_t format,
    unsigned has)
{
    llm_buf_free(out);
    llm_buf_init(out, 0);

    if (llm_transcript_write(out, t, format, has) != LLM_OK) {
        return "failed";
    }

    return out->len ? out->data : "";
}


static void
test_verbose(llm_buf_t *out, const llm_transcript_t *t)
{
    const char   *text;
    cJSON        *o;
    const cJSON  *s, *w;

    text = body(out, t, LLM_TRANSCRIPT_VERBOSE,
                LLM_TRANSCRIPT_SEGMENTS | LLM_TRANSCRIPT_WORDS);
    o = cJSON_Parse(text);
    s = cJSON_GetArrayItem(cJSON_GetObjectItem(o, "segments"), 0);
    w = cJSON_GetArrayItem(cJSON_GetObjectItem(o, "words"), 1);

    is_str(cJSON_GetStringValue(cJSON_GetObjectItem(o, "task")), "transcribe",
           "the task");
    is_str(cJSON_GetStringValue(cJSON_GetObjectItem(o, "language")), "german",
           "the language's name");
    ok(cJSON_GetObjectItem(o, "duration")->valuedouble == 3725.51,
       "the duration");
    is_str(cJSON_GetStringValue(cJSON_GetObjectItem(s, "text")),
           " Hello \"x", "a segment's text, as it is");
    ok(cJSON_GetObjectItem(s, "avg_logprob")->valuedouble == -0.25
       && cJSON_GetObjectItem(s, "compression_ratio")->valuedouble == 1.5
       && cJSON_GetObjectItem(s, "temperature")->valuedouble == 0.2
       && cJSON_GetObjectItem(s, "no_speech_prob")->valuedouble > 0.00097
       && cJSON_GetObjectItem(s, "end")->valuedouble == 2
       && cJSON_GetObjectItem(s, "seek")->valueint == 0
       && cJSON_GetArraySize(cJSON_GetObjectItem(s, "tokens")) == 3,
       "its numbers");
    ok(cJSON_GetObjectItem(s, "words") == NULL, "its words are elsewhere");
    is_int(cJSON_GetArraySize(cJSON_GetObjectItem(o, "segments")), 3,
           "all segments");
    is_int(cJSON_GetArraySize(cJSON_GetObjectItem(o, "words")), 2, "all words");
    is_str(cJSON_GetStringValue(cJSON_GetObjectItem(w, "word")), "\"x",
           "a word, without its space");
    ok(cJSON_GetObjectItem(w, "start")->valuedouble == 0.5, "its time");
    cJSON_Delete(o);

    text = body(out, t, LLM_TRANSCRIPT_VERBOSE, LLM_TRANSCRIPT_WORDS);
    ok(strstr(text, "segments") == NULL && strstr(text, "\"words\":[{"),
       "words without segments");

    text = body(out, t, LLM_TRANSCRIPT_VERBOSE,
                LLM_TRANSCRIPT_SEGMENTS | LLM_TRANSCRIPT_INNER);
    ok(strstr(text, "{\"word\":\" Hello\",\"start\":0.00,\"end\":0.50}")
       != NULL, "words inside of segments, as they are");
}


static llm_str_t
piece(void *ctx, int32_t id)
{
    return id == 2425 ? *(llm_str_t *) ctx : (llm_str_t) { 0, NULL };
}


static void
test_stream(llm_buf_t *out, llm_transcript_t *t)
{
    int        begun;
    llm_str_t  hello;

    hello = llm_str(" H\xc3");
    t->piece = piece;
    t->ctx = &hello;

    ok(strstr(body(out, t, LLM_TRANSCRIPT_JSON, LLM_TRANSCRIPT_LOGPROBS),
              ",\"logprobs\":[{\"token\":\" H\xef\xbf\xbd\","
              "\"logprob\":-0.500000,\"bytes\":[32,72,195]}],\"usage\"")
       != NULL, "log probabilities of text");

    llm_buf_free(out);
    llm_buf_init(out, 0);
    t->n_segments = 1;
    begun = 0;
    is_int(llm_transcript_deltas(out, t, &begun, 0), LLM_OK, "a frame");
    is_str(out->data, "data: {\"type\":\"transcript.text.delta\","
           "\"delta\":\"Hello \\\"x\"}\n\n", "of the first segment");

    out->len = 0;
    t->segments = segments + 1;
    t->n_segments = 2;
    is_int(llm_transcript_deltas(out, t, &begun, LLM_TRANSCRIPT_LOGPROBS),
           LLM_OK, "one of the next two");
    is_str(out->data, "data: {\"type\":\"transcript.text.delta\",\"delta\":"
           "\" a --> b\\n\\nc\xc3\xa4\",\"logprobs\":[]}\n\n",
           "of which the first has no text");

    out->len = 0;
    t->segments = segments;
    t->n_segments = 3;
    is_int(llm_transcript_done(out, t, 0), LLM_OK, "the last frame");
    is_str(out->data, "data: {\"type\":\"transcript.text.done\","
           "\"text\":\"Hello \\\"x a --> b\\n\\nc\xc3\xa4\","
           "\"usage\":{\"type\":\"duration\",\"seconds\":3726}}\n\n",
           "has all of it");
}


int
main(void)
{
    int                       language;
    llm_buf_t                 out;
    llm_err_t                 err;
    llm_transcript_t          t = { 0, "german", 3725.51, 1, 3, segments,
                                    NULL, NULL };
    llm_transcript_format_t   f;

    llm_buf_init(&out, 0);

    is_str(body(&out, &t, LLM_TRANSCRIPT_TEXT, 0),
           "Hello \"x a --> b\n\nc\xc3\xa4\n", "text");
    is_str(body(&out, &t, LLM_TRANSCRIPT_JSON, 0),
           "{\"text\":\"Hello \\\"x a --> b\\n\\nc\xc3\xa4\","
           "\"usage\":{\"type\":\"duration\",\"seconds\":3726}}", "json");
    is_str(body(&out, &t, LLM_TRANSCRIPT_SRT, 0),
           "1\n00:00:00,000 --> 00:00:01,999\nHello \"x\n\n"
           "2\n01:00:00,000 --> 01:02:05,500\na -> b  c\xc3\xa4\n\n", "srt");
    is_str(body(&out, &t, LLM_TRANSCRIPT_VTT, 0),
           "WEBVTT\n\n00:00:00.000 --> 00:00:01.999\nHello \"x\n\n"
           "01:00:00.000 --> 01:02:05.500\na -> b  c\xc3\xa4\n\n", "vtt");
    test_verbose(&out, &t);

    test_stream(&out, &t);

    t.n_segments = 0;
    is_str(body(&out, &t, LLM_TRANSCRIPT_TEXT, 0), "\n", "no text");
    is_str(body(&out, &t, LLM_TRANSCRIPT_SRT, 0), "", "no subtitles");
    t.translated = 1;
    ok(strstr(body(&out, &t, LLM_TRANSCRIPT_VERBOSE, 0), "\"translate\"")
       != NULL, "the other task");

    llm_buf_free(&out);
    llm_buf_init(&out, 4);
    is_int(llm_transcript_write(&out, &t, LLM_TRANSCRIPT_JSON, 0), LLM_ERROR,
           "no room");
    llm_buf_free(&out);

    ok(llm_transcript_format(llm_str("verbose_json"), &f) == LLM_OK
       && f == LLM_TRANSCRIPT_VERBOSE, "a format's name");
    is_str(llm_transcript_type(LLM_TRANSCRIPT_VTT), "text/vtt; charset=utf-8",
           "and type");
    is_int(llm_transcript_format(llm_str("diarized_json"), &f), LLM_ERROR,
           "one that is not written");
    ok(llm_transcript_language(llm_str("De"), &language, &err) == LLM_OK
       && language == 2, "a language's code");
    ok(llm_transcript_language(llm_str("german"), &language, &err) == LLM_OK
       && language == 2, "and name");
    ok(llm_transcript_language(llm_str("klingon"), &language, &err) == LLM_ERROR
       && err.status == 400 && strstr(err.msg, "klingon"), "%s", err.msg);

    return done_testing();
}
