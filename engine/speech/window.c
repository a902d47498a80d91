/*
 * The text of a window becomes segments; see speech.h and state.h.
 *
 * Where two times follow one another, one segment ends and the next one
 * begins.  What comes after the last pair is decoded again with the next
 * window, which begins there.  A window whose text ends in a single time has
 * nothing after it, and one without pairs is a single segment.
 */

#include "engine/speech/state.h"

#include "engine/base/language.h"

#include <math.h>

#define LLM_FRAMES  100                 /* of mel, per second */


static double
llm_speech_seconds(const llm_speech_t *s, int32_t token)
{
    return (double) s->seek / LLM_FRAMES
           + (double) (token - s->o.rules->info.timestamp) / LLM_SPEECH_TICKS;
}


/* when the text begins whose first token this is: where no rules are for times,
   it may be no time, and the text begins where the one before it ended */

static double
llm_speech_start(const llm_speech_t *s, int32_t token)
{
    if (token >= s->o.rules->info.timestamp) {
        return llm_speech_seconds(s, token);
    }

    return s->n_pieces ? s->pieces[s->n_pieces - 1].fit.end
                       : (double) s->seek / LLM_FRAMES;
}


static void
llm_speech_piece(llm_speech_t *s, size_t from, size_t to, double start,
    double end)
{
    llm_speech_piece_t  *p;

    p = &s->pieces[s->n_pieces++];
    memset(p, 0, sizeof(*p));
    p->from = from;
    p->to = to;
    p->fit.start = start;
    p->fit.end = end;
}


static void
llm_speech_whole(llm_speech_t *s, const int32_t *tokens, size_t n)
{
    size_t   i;
    double   offset, end;
    int32_t  begin;

    begin = s->o.rules->info.timestamp;
    offset = (double) s->seek / LLM_FRAMES;
    end = offset + (double) s->size / LLM_FRAMES;

    for (i = n; i > 0; i--) {
        if (tokens[i - 1] >= begin) {
            if (tokens[i - 1] > begin) {
                end = llm_speech_seconds(s, tokens[i - 1]);
            }

            break;
        }
    }

    llm_speech_piece(s, 0, n, offset, end);
}


size_t
llm_speech_cut(llm_speech_t *s, const int32_t *tokens, size_t n)
{
    size_t                     i, last, next;
    int32_t                    begin;
    const llm_whisper_info_t  *info;

    info = &s->o.rules->info;
    begin = info->timestamp;
    s->n_pieces = 0;
    s->open = n > 1 && tokens[n - 1] >= begin && tokens[n - 2] < begin;
    last = 0;

    for (i = 1; i < n; i++) {
        if (tokens[i] >= begin && tokens[i - 1] >= begin) {
            llm_speech_piece(s, last, i, llm_speech_start(s, tokens[last]),
                             llm_speech_seconds(s, tokens[i - 1]));
            last = i;
        }
    }

    if (last == 0) {
        llm_speech_whole(s, tokens, n);
        return s->seek + s->size;
    }

    if (s->open) {
        llm_speech_piece(s, last, n, llm_speech_start(s, tokens[last]),
                         llm_speech_seconds(s, tokens[n - 1]));
        return s->seek + s->size;
    }

    next = s->seek + (size_t) (tokens[last - 1] - begin)
                     * (info->n_frames / info->n_audio_ctx);

    /* a pair at 0.00 s, where no rules are for times, would be found again */
    return next > s->seek ? next : s->seek + s->size;
}


/* has the language spaces between words? */

static int
llm_speech_spaces(int language)
{
    size_t       i;
    const char  *code;

    static const char *const  without[] = {
        "zh", "ja", "th", "lo", "my", "yue"
    };

    code = language < 0 ? "" : llm_language((size_t) language)->code;

    for (i = 0; i < llm_nelems(without); i++) {
        if (strcmp(code, without[i]) == 0) {
            return 0;
        }
    }

    return 1;
}


/* when the last word ended; where there is none, the last segment */

static double
llm_speech_end(const llm_speech_t *s, const llm_speech_words_t *w)
{
    size_t                    i, k;
    const llm_speech_word_t  *word;
    const llm_speech_fit_t   *fit;

    for (i = s->n_pieces; i-- > 0; ) {
        fit = &s->pieces[i].fit;

        for (k = fit->n; k-- > 0; ) {
            word = &w->data[fit->first + k];

            if (word->to > word->from) {
                return word->end;
            }
        }
    }

    return s->pieces[s->n_pieces - 1].fit.end;
}


int
llm_speech_pieces_words(llm_speech_t *s, llm_speech_words_t *w,
    const uint32_t *frames, size_t *next, llm_err_t *err)
{
    size_t               i, k, at, n;
    double               end, offset;
    llm_speech_piece_t  *p;

    offset = (double) s->seek / LLM_FRAMES;

    /* in s->forced the text is followed by its end */
    if (llm_speech_words_split(w, s->o.vocab,
                               s->forced + s->n_forced - 1 - s->n_text,
                               s->n_text, llm_speech_spaces(s->language), err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_speech_words_time(w, frames);

    for (i = 0, at = 0; i < s->n_pieces; i++) {
        p = &s->pieces[i];
        n = 0;

        for (k = p->from; k < p->to; k++) {
            n += s->seq[s->begin + k] < s->o.rules->info.eot;
        }

        llm_speech_words_fit(w, &at, n, offset, &s->spoken, &p->fit);
    }

    end = llm_speech_end(s, w);

    if (!s->open && end > offset) {
        *next = llm_max((size_t) rint(end * LLM_FRAMES), s->seek + 1);
    }

    s->spoken = end;

    return LLM_OK;
}
