/*
 * Transcripts as bodies; see transcript.h.
 */

#include "engine/api/transcript.h"

#include "engine/api/json.h"
#include "engine/base/language.h"

#include <math.h>

static const struct {
    const char  *name;
    const char  *type;
} llm_transcript_formats[] = {
    { "json", "application/json" },
    { "text", "text/plain; charset=utf-8" },
    { "srt", "application/x-subrip; charset=utf-8" },
    { "verbose_json", "application/json" },
    { "vtt", "text/vtt; charset=utf-8" }
};


int
llm_transcript_format(llm_str_t name, llm_transcript_format_t *format)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_transcript_formats); i++) {
        if (llm_str_is(name, llm_transcript_formats[i].name)) {
            *format = (llm_transcript_format_t) i;
            return LLM_OK;
        }
    }

    return LLM_ERROR;
}


const char *
llm_transcript_type(llm_transcript_format_t format)
{
    return llm_transcript_formats[format].type;
}


int
llm_transcript_language(llm_str_t text, int *language, llm_err_t *err)
{
    *language = llm_language_find(text.data, text.len);

    if (*language < 0) {
        return llm_fail_with(err, 400, NULL, "language", "the language "
                             "\"%.*s\" is not known: give its code, such as "
                             "\"en\", or its English name",
                             (int) llm_min(text.len, 40), text.data);
    }

    return LLM_OK;
}


static int
llm_transcript_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}


static llm_str_t
llm_transcript_strip(llm_str_t s)
{
    while (s.len && llm_transcript_space(s.data[0])) {
        s.data++;
        s.len--;
    }

    while (s.len && llm_transcript_space(s.data[s.len - 1])) {
        s.len--;
    }

    return s;
}


/* adds the whole text, without white space at both ends; json: as a string */

static void
llm_transcript_text(llm_buf_t *out, const llm_transcript_t *t, int json)
{
    uint32_t   i;
    llm_buf_t  all;
    llm_str_t  text;

    llm_buf_init(&all, 0);

    for (i = 0; i < t->n_segments; i++) {
        (void) llm_buf_add(&all, t->segments[i].text.data,
                           t->segments[i].text.len);
    }

    text = llm_transcript_strip((llm_str_t) { all.len, all.data });
    out->failed |= all.failed;

    if (json) {
        (void) llm_json_add_string(out, text.data, text.len);

    } else {
        (void) llm_buf_add(out, text.data, text.len);
    }

    llm_buf_free(&all);
}


/* "text":"..." */

static void
llm_transcript_member(llm_buf_t *out, const llm_transcript_t *t)
{
    (void) llm_buf_adds(out, "\"text\":");
    llm_transcript_text(out, t, 1);
}


/* ,"logprobs":[...] of the tokens of segments first, ..., last - 1; of times
   there are none */

static void
llm_transcript_logprobs(llm_buf_t *out, const llm_transcript_t *t,
    uint32_t first, uint32_t last)
{
    size_t                           b;
    uint32_t                         i, k, n;
    llm_str_t                        piece;
    const llm_transcript_segment_t  *s;

    (void) llm_buf_adds(out, ",\"logprobs\":[");

    for (i = first, n = 0; i < last && t->piece; i++) {
        s = &t->segments[i];

        for (k = 0; k < s->n_tokens; k++) {
            piece = t->piece(t->ctx, s->tokens[k]);

            if (piece.len == 0) {
                continue;
            }

            (void) llm_buf_adds(out, n++ ? ",{\"token\":" : "{\"token\":");
            (void) llm_json_add_string(out, piece.data, piece.len);
            (void) llm_buf_addf(out, ",\"logprob\":%.6f,\"bytes\":[",
                                s->logprobs[k]);

            for (b = 0; b < piece.len; b++) {
                (void) llm_buf_addf(out, "%s%u", b ? "," : "",
                                    (unsigned char) piece.data[b]);
            }

            (void) llm_buf_adds(out, "]}");
        }
    }

    (void) llm_buf_addc(out, ']');
}


static void
llm_transcript_usage(llm_buf_t *out, const llm_transcript_t *t)
{
    (void) llm_buf_addf(out, ",\"usage\":{\"type\":\"duration\","
                        "\"seconds\":%.0f}}", ceil(t->duration));
}


static void
llm_transcript_word(llm_buf_t *out, const llm_transcript_word_t *w, int strip)
{
    llm_str_t  text;

    text = strip ? llm_transcript_strip(w->text) : w->text;

    (void) llm_buf_adds(out, "{\"word\":");
    (void) llm_json_add_string(out, text.data, text.len);
    (void) llm_buf_addf(out, ",\"start\":%.2f,\"end\":%.2f}", w->start,
                        w->end);
}


static void
llm_transcript_segment(llm_buf_t *out, const llm_transcript_segment_t *s,
    uint32_t id, unsigned has)
{
    uint32_t  i;

    (void) llm_buf_addf(out, "{\"id\":%u,\"seek\":%u,\"start\":%.2f,"
                        "\"end\":%.2f,\"text\":", id, s->seek, s->start,
                        s->end);
    (void) llm_json_add_string(out, s->text.data, s->text.len);
    (void) llm_buf_adds(out, ",\"tokens\":[");

    for (i = 0; i < s->n_tokens; i++) {
        (void) llm_buf_addf(out, "%s%d", i ? "," : "", s->tokens[i]);
    }

    (void) llm_buf_addf(out, "],\"temperature\":%.1f,\"avg_logprob\":%.6f,"
                        "\"compression_ratio\":%.6f,\"no_speech_prob\":%.6g",
                        s->temperature, s->avg_logprob, s->compression_ratio,
                        s->no_speech_prob);

    if (has & LLM_TRANSCRIPT_INNER) {
        (void) llm_buf_adds(out, ",\"words\":[");

        for (i = 0; i < s->n_words; i++) {
            (void) llm_buf_adds(out, i ? "," : "");
            llm_transcript_word(out, &s->words[i], 0);
        }

        (void) llm_buf_addc(out, ']');
    }

    (void) llm_buf_addc(out, '}');
}


static void
llm_transcript_verbose(llm_buf_t *out, const llm_transcript_t *t, unsigned has)
{
    uint32_t  i, k, n;

    (void) llm_buf_addf(out, "{\"task\":\"%s\",\"language\":\"%s\","
                        "\"duration\":%.2f,",
                        t->translated ? "translate" : "transcribe",
                        t->language, t->duration);
    llm_transcript_member(out, t);

    if (has & LLM_TRANSCRIPT_SEGMENTS) {
        (void) llm_buf_adds(out, ",\"segments\":[");

        for (i = 0; i < t->n_segments; i++) {
            (void) llm_buf_adds(out, i ? "," : "");
            llm_transcript_segment(out, &t->segments[i], i, has);
        }

        (void) llm_buf_addc(out, ']');
    }

    if (has & LLM_TRANSCRIPT_WORDS) {
        (void) llm_buf_adds(out, ",\"words\":[");

        for (i = 0, n = 0; i < t->n_segments; i++) {
            for (k = 0; k < t->segments[i].n_words; k++) {
                (void) llm_buf_adds(out, n++ ? "," : "");
                llm_transcript_word(out, &t->segments[i].words[k], 1);
            }
        }

        (void) llm_buf_addc(out, ']');
    }

    llm_transcript_usage(out, t);
}


static void
llm_transcript_time(llm_buf_t *out, double seconds, char point)
{
    uint64_t  ms;

    ms = (uint64_t) rint(llm_max(seconds, 0) * 1000);

    (void) llm_buf_addf(out, "%02llu:%02u:%02u%c%03u",
                        (unsigned long long) (ms / 3600000),
                        (unsigned) (ms / 60000 % 60),
                        (unsigned) (ms / 1000 % 60), point,
                        (unsigned) (ms % 1000));
}


/* a text that the format of subtitles could not take for anything else: without
   its arrow and without empty lines, with which a subtitle ends */

static void
llm_transcript_line(llm_buf_t *out, llm_str_t text)
{
    size_t  i;

    text = llm_transcript_strip(text);

    for (i = 0; i < text.len; i++) {
        if (text.len - i >= 3 && memcmp(text.data + i, "-->", 3) == 0) {
            (void) llm_buf_adds(out, "->");
            i += 2;

        } else if (text.data[i] == '\r' || text.data[i] == '\n') {
            (void) llm_buf_addc(out, ' ');

        } else {
            (void) llm_buf_addc(out, text.data[i]);
        }
    }
}


static void
llm_transcript_subtitles(llm_buf_t *out, const llm_transcript_t *t, int srt)
{
    uint32_t                         i, n;
    const llm_transcript_segment_t  *s;

    (void) llm_buf_adds(out, srt ? "" : "WEBVTT\n\n");

    for (i = 0, n = 0; i < t->n_segments; i++) {
        s = &t->segments[i];

        if (s->text.len == 0) {
            continue;
        }

        if (srt) {
            (void) llm_buf_addf(out, "%u\n", ++n);
        }

        llm_transcript_time(out, s->start, srt ? ',' : '.');
        (void) llm_buf_adds(out, " --> ");
        llm_transcript_time(out, s->end, srt ? ',' : '.');
        (void) llm_buf_addc(out, '\n');
        llm_transcript_line(out, s->text);
        (void) llm_buf_adds(out, "\n\n");
    }
}


int
llm_transcript_write(llm_buf_t *out, const llm_transcript_t *t,
    llm_transcript_format_t format, unsigned has)
{
    switch (format) {

    case LLM_TRANSCRIPT_TEXT:
        llm_transcript_text(out, t, 0);
        (void) llm_buf_addc(out, '\n');
        break;

    case LLM_TRANSCRIPT_SRT:
    case LLM_TRANSCRIPT_VTT:
        llm_transcript_subtitles(out, t, format == LLM_TRANSCRIPT_SRT);
        break;

    case LLM_TRANSCRIPT_VERBOSE:
        llm_transcript_verbose(out, t, has);
        break;

    default:
        (void) llm_buf_addc(out, '{');
        llm_transcript_member(out, t);

        if (has & LLM_TRANSCRIPT_LOGPROBS) {
            llm_transcript_logprobs(out, t, 0, t->n_segments);
        }

        llm_transcript_usage(out, t);
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_transcript_deltas(llm_buf_t *out, const llm_transcript_t *t, int *begun,
    unsigned has)
{
    llm_str_t  text;
    uint32_t   i;

    for (i = 0; i < t->n_segments; i++) {
        text = t->segments[i].text;

        if (text.len == 0) {
            continue;
        }

        /* the whole text has no space at its beginning */

        while (!*begun && text.len && llm_transcript_space(text.data[0])) {
            text.data++;
            text.len--;
        }

        *begun = 1;

        (void) llm_buf_adds(out, "data: {\"type\":\"transcript.text.delta\","
                            "\"delta\":");
        (void) llm_json_add_string(out, text.data, text.len);

        if (has & LLM_TRANSCRIPT_LOGPROBS) {
            llm_transcript_logprobs(out, t, i, i + 1);
        }

        (void) llm_buf_adds(out, "}\n\n");
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_transcript_done(llm_buf_t *out, const llm_transcript_t *t, unsigned has)
{
    (void) llm_buf_adds(out, "data: {\"type\":\"transcript.text.done\",");
    llm_transcript_member(out, t);

    if (has & LLM_TRANSCRIPT_LOGPROBS) {
        llm_transcript_logprobs(out, t, 0, t->n_segments);
    }

    llm_transcript_usage(out, t);

    return llm_buf_adds(out, "\n\n");
}
