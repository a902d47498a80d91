/*
 * Lays out prompts with images and sound; see layout.h.
 */

#include "engine/base/sha256.h"
#include "engine/prepare/layout.h"


static size_t
llm_layout_most(const llm_layout_t *l)
{
    return l->most ? l->most : INT32_MAX;
}


int
llm_layout_too_long(const llm_layout_t *l, llm_err_t *err)
{
    return llm_fail_with(err, 400, "context_length_exceeded", NULL,
                         "the prompt has more than %zu tokens",
                         llm_layout_most(l));
}


static int
llm_layout_fits(const llm_layout_t *l, size_t n, llm_err_t *err)
{
    size_t  most;

    most = llm_layout_most(l);

    return l->ids.len > most || n > most - l->ids.len
           ? llm_layout_too_long(l, err) : LLM_OK;
}


/* room for n more ids */

static int
llm_layout_room(llm_layout_t *l, size_t n, llm_err_t *err)
{
    size_t    cap;
    int32_t  *ids;

    if (llm_layout_fits(l, n, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (n <= l->ids.cap - l->ids.len) {
        return LLM_OK;
    }

    cap = llm_max(2 * l->ids.cap, l->ids.len + n);
    ids = realloc(l->ids.data, cap * sizeof(int32_t));

    if (ids == NULL) {
        return llm_fail(err, "no memory for a prompt of %zu tokens", cap);
    }

    l->ids.data = ids;
    l->ids.cap = cap;

    return LLM_OK;
}


int
llm_layout_ids(llm_layout_t *l, const int32_t *ids, size_t n, llm_err_t *err)
{
    if (n == 0) {
        return LLM_OK;
    }

    if (llm_layout_room(l, n, err) != LLM_OK) {
        return LLM_ERROR;
    }

    memcpy(l->ids.data + l->ids.len, ids, n * sizeof(int32_t));
    l->ids.len += n;

    return LLM_OK;
}


int
llm_layout_text(llm_layout_t *l, llm_str_t text, const llm_span_t *trusted,
    size_t n_trusted, int flags, llm_err_t *err)
{
    int        rc;
    llm_ids_t  ids;

    if (text.len == 0) {
        return LLM_OK;
    }

    memset(&ids, 0, sizeof(ids));

    rc = llm_vocab_tokenize(l->vocab, text.data, text.len, trusted, n_trusted,
                            flags, l->most, &ids, err);

    if (rc == LLM_OK) {
        rc = llm_layout_ids(l, ids.data, ids.len, err);
    }

    free(ids.data);

    return rc;
}


/* ---- an image ---- */

/* text that the family's processor writes */

static int
llm_layout_word(void *ctx, const char *text, size_t len)
{
    llm_layout_t  *l = ctx;

    return llm_layout_text(l, (llm_str_t) { len, (char *) text }, NULL, 0,
                           LLM_TOKENIZE_SPECIAL, l->err);
}


/* 64 bits of SHA-256 of the sizes and the SHA-256 of the pixels or samples; a
   sound has one size more */

static int
llm_layout_digest(llm_media_t *m, const void *data, size_t size,
    llm_err_t *err)
{
    size_t         n;
    uint32_t       sides[3] = { m->w, m->h, m->own };
    unsigned char  both[LLM_SHA256_LEN + sizeof(sides)];
    unsigned char  sum[LLM_SHA256_LEN];

    n = LLM_SHA256_LEN + (m->heard ? 3 : 2) * sizeof(uint32_t);
    memcpy(both + LLM_SHA256_LEN, sides, sizeof(sides));

    if (llm_sha256(data, size, both) != LLM_OK
        || llm_sha256(both, n, sum) != LLM_OK)
    {
        return llm_fail(err, "no SHA-256 of an image or a sound");
    }

    memcpy(&m->digest, sum, sizeof(m->digest));

    return LLM_OK;
}


static int
llm_layout_pixels(const llm_layout_t *l, uint32_t entry, llm_media_t *m,
    llm_err_t *err)
{
    size_t  size;

    if (l->counts) {
        return LLM_OK;
    }

    size = (size_t) m->w * m->h * 3;
    m->rgb = malloc(size);

    if (m->rgb == NULL) {
        return llm_fail(err, "no memory for the pixels of an image");
    }

    memcpy(m->rgb, l->pixels + entry * size, size);

    return llm_layout_digest(m, m->rgb, size, err);
}


/* adds an entry of n rows; NULL and *err: there is no room */

static llm_media_t *
llm_layout_add(llm_layout_t *l, uint32_t n, llm_err_t *err)
{
    uint32_t      cap;
    llm_media_t  *m;

    if (llm_layout_room(l, n, err) != LLM_OK) {
        return NULL;
    }

    if (l->n_media == l->cap) {
        cap = l->cap ? 2 * l->cap : 4;
        m = realloc(l->media, cap * sizeof(llm_media_t));

        if (m == NULL) {
            (void) llm_fail(err, "no memory for the images of a prompt");
            return NULL;
        }

        l->media = m;
        l->cap = cap;
    }

    m = &l->media[l->n_media++];
    memset(m, 0, sizeof(llm_media_t));

    m->first = (uint32_t) l->ids.len;
    m->n = n;
    memset(l->ids.data + l->ids.len, 0, n * sizeof(int32_t));
    l->ids.len += n;

    return m;
}


static int
llm_layout_entry(void *ctx, uint32_t entry)
{
    llm_media_t   *m;
    llm_layout_t  *l = ctx;

    m = llm_layout_add(l, l->plan->n_rows, l->err);

    if (m == NULL) {
        return LLM_ERROR;
    }

    m->cols = l->plan->cols;
    m->lines = l->plan->rows;
    m->w = l->plan->width;
    m->h = l->plan->height;

    return llm_layout_pixels(l, entry, m, l->err);
}


int
llm_layout_bytes(llm_layout_t *l, size_t size, llm_err_t *err)
{
    if (l->max_bytes && size > l->max_bytes - l->bytes) {
        return llm_fail_with(err, 400, "request_too_large", NULL,
                             "The images and sounds take more than the %zu "
                             "bytes that all requests together may take "
                             "(llm_queue memory=). Please send fewer, or "
                             "smaller ones.",
                             l->max_bytes);
    }

    l->bytes += size;

    return LLM_OK;
}


/* the pixels that the encoder gets; *pixels is the caller's */

static int
llm_layout_prepare(llm_layout_t *l, const llm_image_rule_t *rule,
    const llm_image_t *image, const llm_image_plan_t *plan, uint8_t **pixels,
    llm_err_t *err)
{
    size_t  size;

    size = llm_image_plan_size(plan);

    if (llm_layout_bytes(l, size, err) != LLM_OK) {
        return LLM_ERROR;
    }

    *pixels = malloc(size);

    if (*pixels == NULL) {
        return llm_fail(err, "no memory for the pixels of an image");
    }

    return llm_image_prepare(rule, plan, image, *pixels, err);
}


int
llm_layout_plan(const llm_layout_t *l, const llm_image_rule_t *rule,
    uint32_t width, uint32_t height, llm_image_plan_t *plan, llm_err_t *err)
{
    return llm_image_plan(rule, width, height, plan, err) == LLM_OK
           ? llm_layout_fits(l, plan->n_tokens, err) : LLM_ERROR;
}


int
llm_layout_image(llm_layout_t *l, const llm_image_rule_t *rule,
    const llm_image_t *image, llm_image_plan_t *plan, llm_err_t *err)
{
    int                  rc;
    uint8_t             *pixels;
    llm_image_layout_t   to = { l, llm_layout_word, llm_layout_entry };

    if (llm_layout_plan(l, rule, image->width, image->height, plan, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    pixels = NULL;
    rc = LLM_OK;

    if (!l->counts) {
        rc = llm_layout_prepare(l, rule, image, plan, &pixels, err);
    }

    if (rc == LLM_OK) {
        l->plan = plan;
        l->pixels = pixels;
        l->err = err;
        rc = llm_image_layout(rule, plan, &to);
    }

    free(pixels);
    l->plan = NULL;
    l->pixels = NULL;

    return rc;
}


/* the rows of a sound's frames, and its samples */

static int
llm_layout_frames(llm_layout_t *l, uint32_t frame, const float *samples,
    size_t n, llm_err_t *err)
{
    size_t        rows, size;
    llm_media_t  *m;

    rows = (n + frame - 1) / frame;

    if (llm_layout_fits(l, rows, err) != LLM_OK) {
        return LLM_ERROR;
    }

    m = llm_layout_add(l, (uint32_t) rows, err);

    if (m == NULL) {
        return LLM_ERROR;
    }

    m->heard = 1;
    m->cols = 1;
    m->lines = m->n;
    m->w = frame;
    m->h = m->n;
    size = rows * frame * sizeof(float);

    if (l->counts) {
        return LLM_OK;
    }

    if (llm_layout_bytes(l, size, err) != LLM_OK) {
        return LLM_ERROR;
    }

    m->samples = calloc(1, size);

    if (m->samples == NULL) {
        return llm_fail(err, "no memory for the samples of a sound");
    }

    memcpy(m->samples, samples, n * sizeof(float));

    return llm_layout_digest(m, m->samples, size, err);
}


/* the rows of a spectrogram's entry; s NULL: they are only counted */

static int
llm_layout_mel(llm_layout_t *l, const llm_sound_rule_t *rule,
    const llm_speech_sound_t *s, const llm_sound_plan_t *plan, uint32_t entry,
    llm_err_t *err)
{
    int           last;
    size_t        size;
    uint32_t      own;
    llm_media_t  *m;

    last = entry + 1 == plan->n_entries;
    own = last ? plan->last : plan->frames;
    m = llm_layout_add(l, llm_sound_rows(rule, own), err);

    if (m == NULL) {
        return LLM_ERROR;
    }

    m->heard = 1;
    m->cols = 1;
    m->lines = m->n;
    m->w = rule->n_mels;
    m->h = last ? plan->seen : plan->frames;
    m->own = own;
    size = (size_t) m->w * m->h * sizeof(float);

    if (s == NULL) {
        return LLM_OK;
    }

    m->samples = malloc(size);

    if (m->samples == NULL) {
        return llm_fail(err, "no memory for the spectrogram of a sound");
    }

    llm_speech_sound_window(s, (size_t) entry * plan->frames, m->h,
                            m->samples);

    return llm_layout_digest(m, m->samples, size, err);
}


/* all bytes are counted before any is computed */

static int
llm_layout_mels(llm_layout_t *l, const llm_sound_rule_t *rule,
    const float *samples, size_t n, llm_err_t *err)
{
    int                 rc;
    size_t              frames;
    uint32_t            i;
    llm_sound_plan_t    plan;
    llm_speech_sound_t  s;

    llm_sound_plan(rule, n, &plan);
    frames = (size_t) (plan.n_entries - 1) * plan.frames + plan.seen;

    if (llm_layout_fits(l, plan.n_tokens, err) != LLM_OK
        || (!l->counts
            && (llm_layout_bytes(l, frames * rule->n_mels * sizeof(float),
                                 err) != LLM_OK
                || llm_speech_sound_of(&s, rule, samples, n, err)
                   != LLM_OK)))
    {
        return LLM_ERROR;
    }

    for (i = 0, rc = LLM_OK; rc == LLM_OK && i < plan.n_entries; i++) {
        rc = llm_layout_mel(l, rule, l->counts ? NULL : &s, &plan, i, err);
    }

    if (!l->counts) {
        llm_speech_sound_free(&s);
    }

    return rc;
}


/* a word around a sound; NULL: there is none */

static int
llm_layout_mark(llm_layout_t *l, const char *word)
{
    return word ? llm_layout_word(l, word, strlen(word)) : LLM_OK;
}


int
llm_layout_sound(llm_layout_t *l, const llm_sound_rule_t *rule,
    const float *samples, size_t n, llm_err_t *err)
{
    int  rc;

    l->err = err;
    rc = llm_layout_mark(l, rule->words.begin);

    if (rc == LLM_OK) {
        rc = rule->frame ? llm_layout_frames(l, rule->frame, samples, n, err)
                         : llm_layout_mels(l, rule, samples, n, err);
    }

    return rc == LLM_OK ? llm_layout_mark(l, rule->words.end) : rc;
}


void
llm_layout_free(llm_layout_t *l)
{
    uint32_t  i;

    for (i = 0; i < l->n_media; i++) {
        free(l->media[i].rgb);
        free(l->media[i].samples);
    }

    free(l->media);
    free(l->ids.data);
    l->media = NULL;
    l->n_media = 0;
    memset(&l->ids, 0, sizeof(l->ids));
}
