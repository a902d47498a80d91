/*
 * The prompt of a chat with images or sound: each is decoded, made as the
 * model's own processor makes it, and laid out where the template has its
 * placeholder.
 *
 * The bytes of images are in memory that a broken worker can change meanwhile.
 * Only processes that decode them read them; all else here is of the pixels
 * that one gave.
 *
 * An image is planned by the size in its header, before its pixels are decoded.
 * A call decodes one image or sound; a large one is left to a call that takes
 * them (how->large).  What is laid out so far is in r->prep.begun meanwhile.
 */

#include "engine/prepare/place.h"
#include "engine/prepare/prepare.h"

#include <stdio.h>

/* tokens of an image of detail "low", as far as its family can: with cells of
   32 pixels they are OpenAI's 512 x 512 */
#define LLM_PREP_LOW  256

/* pixels of an image that is not large, and milliseconds that it may take */
#define LLM_PREP_LIGHT  (4096u * 4096)
#define LLM_PREP_SHORT  3000

/* the part of llm_queue's memory= that the rows of a request's images may take
   which are encoded before their turn */
#define LLM_PREP_AHEAD  16

/* a prompt that is being laid out */
typedef struct {
    llm_prompt_t           prompt;
    llm_layout_t           layout;
    llm_place_t           *places;
} llm_prep_begun_t;

/* one call */
typedef struct {
    const llm_prep_env_t  *env;
    llm_req_t             *r;
    const llm_prep_how_t  *how;
    const uint32_t        *order;       /* of the prompt's media */
    uint32_t               n;           /* media that it has laid out */
} llm_prep_images_t;

/* the image that is decoded */
typedef struct {
    const llm_prep_env_t  *env;
    const llm_layout_t    *layout;
    llm_image_rule_t       rule;
    int                    refused;     /* 1: the model cannot take its size */
} llm_prep_sized_t;


/* says in err which part of the request it is about */

static int
llm_prep_image_at(const llm_req_t *r, uint32_t index, llm_err_t *err)
{
    size_t                  n;
    const llm_media_ref_t  *m;

    m = (const llm_media_ref_t *) llm_ref_data(r->msg, r->msg->media) + index;

    n = llm_min(m->place.len, sizeof(err->param) - 1);
    memcpy(err->param, llm_ref_data(r->msg, m->place), n);
    err->param[n] = '\0';

    return LLM_ERROR;
}


/* an error of this machine: the log says which, and clients must not */

static int
llm_prep_image_failed(const llm_prep_env_t *env, llm_err_t *err)
{
    char  msg[sizeof(err->msg) + 256];

    snprintf(msg, sizeof(msg), "model \"%s\": an image is not decoded: %s",
             env->name, err->msg);

    if (env->log) {
        env->log(env->log_data, LLM_LOG_ERR, msg);
    }

    return llm_fail_with(err, 503, NULL, NULL, "Images cannot be decoded by "
                         "this server now. Its log says why.");
}


/* in a model whose rows see each other in an image, they are in one step */

static int
llm_prep_image_step(const llm_prep_env_t *env, const llm_image_plan_t *plan,
    llm_err_t *err)
{
    uint32_t             most;
    const llm_runner_t  *run = env->runner;

    most = run->batch > run->max_seqs ? run->batch - run->max_seqs : 0;

    if (!run->spans || plan->n_rows <= most) {
        return LLM_OK;
    }

    return llm_fail_with(err, 400, "image_too_large", NULL, "The image takes "
                         "%u tokens, which the model must compute in one step, "
                         "and a step takes %u (llm_model batch=). Please send "
                         "a smaller image.", plan->n_rows, most);
}


/* may an image of this size be in the prompt? */

static int
llm_prep_image_sized(void *ctx, uint32_t width, uint32_t height, llm_err_t *err)
{
    llm_image_plan_t   plan;
    llm_prep_sized_t  *s = ctx;

    s->refused = llm_layout_plan(s->layout, &s->rule, width, height, &plan,
                                 err) != LLM_OK
                 || llm_prep_image_step(s->env, &plan, err) != LLM_OK;

    return s->refused ? LLM_ERROR : LLM_OK;
}


static int
llm_prep_decode(const llm_prep_images_t *t, uint32_t index,
    llm_prep_sized_t *sized, llm_image_t *image, llm_err_t *err)
{
    int                  rc;
    size_t               len;
    llm_req_t           *r = t->r;
    llm_image_check_t    check = { sized, llm_prep_image_sized };
    llm_media_limits_t   limits;
    llm_media_source_t   source;

    source.data = llm_claim_data(&r->media, index, &len);
    source.len = len;
    source.fd = -1;
    source.cancelled = &r->cancelled;

    if (source.data == NULL) {
        return llm_fail(err, "malformed request to the engine");
    }

    llm_media_limits_default(&limits);
    limits.bytes = llm_max(len, (size_t) 1);

    if (r->msg->max_pixels) {
        limits.pixels = r->msg->max_pixels;
    }

    if (t->how && !t->how->large) {
        limits.light = LLM_PREP_LIGHT;
        limits.timeout = LLM_PREP_SHORT;
    }

    if (t->how && t->how->rest) {
        t->how->rest(t->how->data, 1);
    }

    rc = llm_media_image(t->env->pool, &source, &limits, &check, image, err);

    if (t->how && t->how->rest) {
        t->how->rest(t->how->data, 0);
    }

    if (rc == LLM_LATER) {
        r->prep.next = LLM_NEXT_LARGE;
        return LLM_LATER;
    }

    llm_claim_drop(&r->media, index);

    if (rc == LLM_OK || sized->refused || llm_media_is_cancelled(&source)) {
        return rc;
    }

    return err->status == 400 ? llm_prep_image_at(r, index, err)
                              : llm_prep_image_failed(t->env, err);
}


/* a sound that has more rows than the prompt may have is not decoded to its
   end; *rows: they are the bound, and not the configuration's seconds */

static uint32_t
llm_prep_seconds(const llm_prep_images_t *t, const llm_layout_t *l, int *rows)
{
    uint32_t  most, fit;

    most = t->r->msg->max_seconds ? t->r->msg->max_seconds : UINT32_MAX;

    if (l->most == 0) {
        *rows = 0;
        return most;
    }

    fit = llm_sound_seconds(&t->env->rule->sound, l->most);
    fit = fit < UINT32_MAX ? fit + 1 : fit;
    *rows = fit < most;

    return llm_min(fit, most);
}


static int
llm_prep_heard(const llm_prep_images_t *t, uint32_t index, llm_layout_t *l,
    llm_err_t *err)
{
    int          rc, rows;
    uint32_t     seconds;
    llm_sound_t  sound;

    seconds = llm_prep_seconds(t, l, &rows);
    rc = llm_prep_sound_decode(t->env, t->r, t->how, index, seconds, "messages",
                               &sound, err);

    if (rc == LLM_LATER) {
        return LLM_LATER;
    }

    if (rc != LLM_OK && rows && strcmp(err->code, "audio_too_long") == 0) {
        return llm_layout_too_long(l, err);
    }

    if (rc != LLM_OK) {
        return err->status == 400 ? llm_prep_image_at(t->r, index, err)
                                  : LLM_ERROR;
    }

    if (sound.n == 0) {
        rc = llm_fail_with(err, 400, "invalid_value", NULL, "The file has no "
                           "sound: it is empty.");
        (void) llm_prep_image_at(t->r, index, err);

    } else {
        rc = llm_layout_sound(l, &t->env->rule->sound, sound.samples, sound.n,
                              err);
        seconds = llm_seconds_up(sound.seconds);
        t->r->prep.audio_s += llm_min(seconds, UINT32_MAX
                                               - t->r->prep.audio_s);
    }

    llm_sound_free(&sound);

    return rc;
}


static int
llm_prep_seen(const llm_prep_images_t *t, uint32_t index, uint32_t detail,
    llm_layout_t *l, llm_err_t *err)
{
    int               rc;
    llm_image_t       image;
    llm_image_plan_t  plan;
    llm_prep_sized_t  s = { t->env, l, *t->env->rule, 0 };

    if (detail == LLM_DETAIL_LOW) {
        llm_image_rule_limit(&s.rule, LLM_PREP_LOW);
    }

    rc = llm_prep_decode(t, index, &s, &image, err);

    if (rc == LLM_OK) {
        rc = llm_layout_image(l, &s.rule, &image, &plan, err);
        s.refused = rc != LLM_OK;
        llm_image_free(&image);
    }

    if (!s.refused || err->status != 400
        || strcmp(err->code, "context_length_exceeded") == 0)
    {
        return rc;
    }

    return llm_prep_image_at(t->r, index, err);
}


static int
llm_prep_image(void *data, uint32_t k, llm_layout_t *l, llm_err_t *err)
{
    int                     rc;
    uint32_t                index;
    llm_prep_images_t      *t = data;
    const llm_media_ref_t  *m;

    if (t->how && t->how->pause && t->how->pause(t->how->data)) {
        return llm_fail(err, "the request was cancelled");
    }

    if (t->how && t->n) {
        t->r->prep.next = LLM_NEXT_MEDIUM;
        return LLM_LATER;
    }

    index = t->order[k];
    m = (const llm_media_ref_t *) llm_ref_data(t->r->msg, t->r->msg->media)
        + index;

    rc = m->kind == LLM_MEDIUM_AUDIO
         ? llm_prep_heard(t, index, l, err)
         : llm_prep_seen(t, index, m->detail, l, err);

    t->n += rc == LLM_OK;

    return rc;
}


/* a placeholder of its kind for each image and sound */

static int
llm_prep_image_count(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prompt_t *prompt, llm_err_t *err)
{
    uint32_t                i, n, *kinds;
    const llm_media_ref_t  *m;

    kinds = calloc(prompt->n_media, sizeof(uint32_t));

    if (kinds == NULL) {
        return llm_fail(err, "no memory for the prompt");
    }

    n = llm_place_count(prompt, env->rule, kinds, (uint32_t) prompt->n_media);
    m = (const llm_media_ref_t *) llm_ref_data(r->msg, r->msg->media);

    for (i = 0; n == prompt->n_media && i < n; i++) {
        if (m[prompt->media[i]].kind != kinds[i]) {
            n = i;
        }
    }

    free(kinds);

    if (n == prompt->n_media) {
        return LLM_OK;
    }

    return llm_fail_with(err, 400, "invalid_value", "messages", "The model's "
                         "chat template has places for %u of the %zu images of "
                         "these messages: it does not take them where they "
                         "are.", n, prompt->n_media);
}


/* what the encoder's rows will take counts from now on */

static int
llm_prep_image_rows(const llm_prep_env_t *env, const llm_req_t *r,
    llm_layout_t *l, llm_prompt_ids_t *p, llm_err_t *err)
{
    p->media = l->media;
    p->n_media = l->n_media;
    p->media_bytes = llm_media_most(p, r->msg->n, env->runner,
                                    env->max_bytes / LLM_PREP_AHEAD);

    return l->counts ? LLM_OK : llm_layout_bytes(l, p->media_bytes, err);
}


static void
llm_prep_begun_free(void *data)
{
    llm_prep_begun_t  *b = data;

    llm_place_free(b->places);
    llm_layout_free(&b->layout);
    llm_prompt_free(&b->prompt);
    free(b);
}


/* takes the prompt over */

static llm_prep_begun_t *
llm_prep_images_begin(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_t *prompt, uint32_t most)
{
    llm_prep_begun_t  *b;

    b = calloc(1, sizeof(*b));

    if (b == NULL) {
        return NULL;
    }

    b->prompt = *prompt;
    memset(prompt, 0, sizeof(*prompt));
    b->layout.vocab = env->vocab;
    b->layout.most = most;
    b->layout.max_bytes = env->max_bytes;
    b->layout.counts = !llm_prep_needs_model(r->msg);
    b->places = llm_place_create(&b->prompt, env->rule);

    if (b->places == NULL) {
        llm_prep_begun_free(b);
        return NULL;
    }

    return b;
}


/* gives the rows of a prompt that is laid out to p */

static int
llm_prep_images_end(const llm_prep_env_t *env, const llm_req_t *r,
    llm_layout_t *l, llm_prompt_ids_t *p, llm_err_t *err)
{
    int  rc;

    if (l->media[l->n_media - 1].first + l->media[l->n_media - 1].n
        == l->ids.len)
    {
        return llm_fail_with(err, 400, "invalid_value", "messages", "The "
                             "prompt ends with an image: nothing follows it "
                             "that could be answered.");
    }

    rc = llm_prep_image_rows(env, r, l, p, err);

    if (rc != LLM_OK) {
        p->n_media = 0;
        p->media = NULL;
        return rc;
    }

    p->ids = l->ids.data;
    p->n = (uint32_t) l->ids.len;
    l->media = NULL;
    l->n_media = 0;
    memset(&l->ids, 0, sizeof(l->ids));

    return LLM_OK;
}


int
llm_prep_images(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_prompt_t *prompt, uint32_t most,
    llm_prompt_ids_t *p, llm_err_t *err)
{
    int                  rc;
    llm_prep_begun_t    *b;
    llm_prep_images_t    t = { env, r, how, NULL, 0 };
    llm_place_images_t   images = { &t, llm_prep_image };

    b = r->prep.begun;

    if (b == NULL) {
        if (llm_prep_image_count(env, r, prompt, err) != LLM_OK) {
            return LLM_ERROR;
        }

        b = llm_prep_images_begin(env, r, prompt, most);

        if (b == NULL) {
            return llm_fail(err, "no memory for the prompt");
        }
    }

    r->prep.begun = b;
    r->prep.begun_free = llm_prep_begun_free;
    t.order = b->prompt.media;
    rc = llm_place_images(b->places, &images, &b->layout, err);
    r->prep.begun_bytes = b->layout.bytes;

    if (rc == LLM_LATER) {
        return LLM_LATER;
    }

    if (rc == LLM_OK) {
        rc = llm_prep_images_end(env, r, &b->layout, p, err);
    }

    r->prep.begun = NULL;
    r->prep.begun_bytes = 0;
    llm_prep_begun_free(b);

    return rc;
}
