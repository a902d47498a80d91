/*
 * Words and their times; see words.h.
 */

#include "engine/speech/words.h"

#include "engine/base/utf8.h"
#include "engine/speech/rules.h"
#include "engine/speech/text.h"

#include <math.h>

#define LLM_WORD_LONG  0.7              /* s: of a usual word */

/* marks that a sentence ends with, that belong to the next word, and to the
   word before them */
#define LLM_WORD_ENDS    ".\u3002!\uff01?\uff1f"
#define LLM_WORD_OPENS   "\"'\u201c\u00bf([{-"
#define LLM_WORD_CLOSES  "\"'.\u3002,\uff0c!\uff01?\uff1f:\uff1a\u201d)]}"     \
                         "\u3001"
#define LLM_WORD_PUNCT   "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


/* s is a part of the set, as nothing is */

static int
llm_speech_among(llm_str_t s, const char *set)
{
    return s.len == 0 || memmem(set, strlen(set), s.data, s.len) != NULL;
}


static llm_str_t
llm_speech_word(const llm_speech_words_t *w, size_t i)
{
    return (llm_str_t) { w->data[i].to - w->data[i].from,
                         w->text.data + w->data[i].from };
}


/* bytes of p before the first U+FFFD, be it in the text or in the place of
   other bytes; n: there is none.  *chars: their characters */

static size_t
llm_speech_sound(const char *p, size_t n, size_t *chars)
{
    size_t    i, k;
    uint32_t  cp;

    *chars = 0;

    for (i = 0; i < n; i += k) {
        k = llm_utf8_decode(p + i, n - i, &cp);

        if (k == 0 || cp == 0xfffd) {
            break;
        }

        ++*chars;
    }

    return i;
}


/* is character number `at` of a text U+FFFD? */

static int
llm_speech_lost(const llm_buf_t *text, size_t at)
{
    size_t    i;
    uint32_t  cp;

    for (i = 0; i < text->len; at--) {
        i += llm_utf8_decode(text->data + i, text->len - i, &cp);

        if (at == 0) {
            return cp == 0xfffd;
        }
    }

    return 0;
}


static size_t
llm_speech_count(const char *p, size_t n)
{
    size_t  i, chars;

    for (i = 0, chars = 0; i < n; i++) {
        chars += ((unsigned char) p[i] & 0xc0) != 0x80;
    }

    return chars;
}


/* adds a piece, of whole characters, to the last word or as a new one */

static void
llm_speech_piece(llm_speech_words_t *w, size_t from, uint32_t n_tokens,
    int spaces)
{
    llm_str_t           piece;
    llm_speech_word_t  *last;

    piece.data = w->text.data + from;
    piece.len = w->text.len - from;

    if (w->n && spaces && !(piece.len && piece.data[0] == ' ')
        && !llm_speech_among(llm_speech_strip(piece), LLM_WORD_PUNCT))
    {
        last = &w->data[w->n - 1];
        last->n_tokens += n_tokens;

    } else {
        last = &w->data[w->n++];
        last->from = from;
        last->n_tokens = n_tokens;
    }

    last->to = w->text.len;
}


int
llm_speech_words_split(llm_speech_words_t *w, const llm_vocab_t *v,
    const int32_t *tokens, size_t n, int spaces, llm_err_t *err)
{
    size_t     i, from, chars, done;
    uint32_t   waiting;
    llm_buf_t  all, part;
    llm_str_t  bytes;

    memset(w, 0, sizeof(*w));
    llm_buf_init(&w->text, 0);
    llm_buf_init(&all, 0);
    llm_buf_init(&part, 0);

    w->data = calloc(n + 1, sizeof(llm_speech_word_t));
    (void) llm_speech_text(&all, v, INT32_MAX, tokens, n);

    done = 0;                           /* characters of `all` */
    waiting = 0;                        /* tokens of `part` */

    for (i = 0; i < n && w->data; i++) {
        bytes = llm_vocab_bytes(v, tokens[i]);
        (void) llm_buf_add(&part, bytes.data, bytes.len);
        waiting++;

        /* a character may take several tokens; what never becomes one is
           U+FFFD in the whole text, too */

        if (llm_speech_sound(part.data, part.len, &chars) < part.len
            && !llm_speech_lost(&all, done + chars))
        {
            continue;
        }

        from = w->text.len;
        (void) llm_speech_utf8(&w->text, part.data, part.len);

        if (w->text.failed) {
            break;
        }

        done += llm_speech_count(w->text.data + from, w->text.len - from);
        llm_speech_piece(w, from, waiting, spaces);
        waiting = 0;
        part.len = 0;
    }

    i = w->data == NULL || w->text.failed || all.failed || part.failed;
    llm_buf_free(&all);
    llm_buf_free(&part);

    return i ? llm_fail(err, "no memory for words") : LLM_OK;
}


void
llm_speech_words_free(llm_speech_words_t *w)
{
    free(w->data);
    llm_buf_free(&w->text);
    memset(w, 0, sizeof(*w));
}


static int
llm_speech_order(const void *a, const void *b)
{
    double  x, y;

    x = *(const double *) a;
    y = *(const double *) b;

    return (x > y) - (x < y);
}


/* the median of those durations that are not 0, LLM_WORD_LONG at most; 0: there
   is none */

static double
llm_speech_words_median(const llm_speech_words_t *w)
{
    double   *d, median;
    size_t    i, n;

    d = malloc((w->n + 1) * sizeof(double));

    if (d == NULL) {
        return 0;
    }

    for (i = 0, n = 0; i < w->n; i++) {
        d[n] = w->data[i].end - w->data[i].start;
        n += d[n] != 0;
    }

    qsort(d, n, sizeof(double), llm_speech_order);
    median = n ? (d[n / 2] + d[(n - 1) / 2]) / 2 : 0;
    free(d);

    return llm_min(median, LLM_WORD_LONG);
}


/* after the end of a sentence there may be a pause, which the end itself or the
   first word of the next one would have */

static void
llm_speech_words_pauses(llm_speech_words_t *w)
{
    size_t              i;
    double              longest;
    llm_speech_word_t  *word;

    longest = 2 * w->median;

    for (i = 1; i < w->n && longest > 0; i++) {
        word = &w->data[i];

        if (word->end - word->start <= longest) {
            continue;
        }

        if (llm_speech_among(llm_speech_word(w, i), LLM_WORD_ENDS)) {
            word->end = word->start + longest;

        } else if (llm_speech_among(llm_speech_word(w, i - 1), LLM_WORD_ENDS)) {
            word->start = word->end - longest;
        }
    }
}


static void
llm_speech_words_merge(llm_speech_words_t *w)
{
    size_t              i, j;
    llm_str_t           s;
    llm_speech_word_t  *a, *b;

    /* to the next one, from the last on; j is the next that is not empty */

    for (i = w->n, j = w->n; i-- > 0; ) {
        s = llm_speech_word(w, i);
        a = &w->data[i];

        if (j < w->n && s.len && s.data[0] == ' '
            && llm_speech_among(llm_speech_strip(s), LLM_WORD_OPENS))
        {
            b = &w->data[j];
            b->from = a->from;
            b->n_tokens += a->n_tokens;
            a->to = a->from;
            a->n_tokens = 0;

        } else {
            j = i;
        }
    }

    for (i = 0, j = 1; j < w->n; j++) {
        s = llm_speech_word(w, i);
        a = &w->data[i];
        b = &w->data[j];

        if ((s.len == 0 || s.data[s.len - 1] != ' ')
            && llm_speech_among(llm_speech_word(w, j), LLM_WORD_CLOSES))
        {
            /* an empty one does not lie after its neighbour */
            a->to = (b->to > b->from) ? b->to : a->to;
            a->n_tokens += b->n_tokens;
            b->from = b->to;
            b->n_tokens = 0;

        } else {
            i = j;
        }
    }
}


void
llm_speech_words_time(llm_speech_words_t *w, const uint32_t *frames)
{
    size_t  i, at;

    for (i = 0, at = 0; i < w->n; i++) {
        w->data[i].start = (double) frames[at] / LLM_SPEECH_TICKS;
        at += w->data[i].n_tokens;
        w->data[i].end = (double) frames[at] / LLM_SPEECH_TICKS;
    }

    w->median = llm_speech_words_median(w);

    llm_speech_words_pauses(w);
    llm_speech_words_merge(w);
}


static double
llm_speech_round(double t)
{
    return rint(t * 100) / 100;
}


/* the first and the last word of a segment; b: the second one, NULL: none */

static void
llm_speech_words_edges(llm_speech_word_t *a, llm_speech_word_t *b,
    llm_speech_word_t *z, double median, double spoken, llm_speech_fit_t *f)
{
    double  longest;

    longest = 2 * median;

    /* after a pause the first word, or the first two, are not long */

    if (a->end - spoken > 4 * median
        && (a->end - a->start > longest
            || (b && b->end - a->start > 2 * longest)))
    {
        if (b && b->end - b->start > longest) {
            a->end = llm_max(b->end / 2, b->end - longest);
            b->start = a->end;
        }

        a->start = llm_max(0, a->end - longest);
    }

    if (f->start < a->end && f->start - 0.5 > a->start) {
        a->start = llm_max(0, llm_min(a->end - median, f->start));
    } else {
        f->start = a->start;
    }

    if (f->end > z->start && f->end + 0.5 < z->end) {
        z->end = llm_max(z->start + median, f->end);
    } else {
        f->end = z->end;
    }
}


void
llm_speech_words_fit(llm_speech_words_t *w, size_t *next, size_t n_tokens,
    double offset, double *spoken, llm_speech_fit_t *f)
{
    size_t              taken;
    llm_speech_word_t  *word, *a, *b, *z;

    f->first = *next;
    taken = 0;
    a = NULL;
    b = NULL;
    z = NULL;

    while (*next < w->n && taken < n_tokens) {
        word = &w->data[(*next)++];
        taken += word->n_tokens;

        if (word->to == word->from) {
            continue;
        }

        word->start = llm_speech_round(offset + word->start);
        word->end = llm_speech_round(offset + word->end);

        if (a == NULL) {
            a = word;
        } else if (b == NULL) {
            b = word;
        }

        z = word;
    }

    f->n = *next - f->first;

    if (a) {
        llm_speech_words_edges(a, b, z, w->median, *spoken, f);
        *spoken = f->end;
    }
}
