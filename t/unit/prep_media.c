/*
 * Prompts with images, of all families of the shared fixtures (LLM_FIXTURES/
 * vision): decoded, resized and laid out, they are those of the families' own
 * processors, token by token and pixel by pixel.  And what is a place: only a
 * template's text.
 */

#include "engine/media/mel.h"
#include "engine/prepare/place.h"
#include "t/unit/tap.h"
#include "t/unit/tower_spec.h"

typedef struct {
    char               dir[1024];
    cJSON             *spec;
    llm_vocab_t       *vocab;
    llm_image_rule_t   rule;
    llm_media_pool_t  *pool;
    const cJSON       *prompt;
    unsigned           waits;
} family_t;


/* lays out the k-th image of a prompt, or the first one of none */

static int
add(void *data, uint32_t k, llm_layout_t *l, llm_err_t *err)
{
    int                  rc;
    char                *bytes;
    size_t               len;
    llm_image_t          image;
    llm_image_plan_t     plan;
    llm_media_limits_t   limits;
    llm_media_source_t   source = { .fd = -1 };
    const cJSON         *images, *of;
    family_t            *f = data;

    /* each is asked for twice: the layout goes on where it was */

    if (f->waits++ % 2 == 0) {
        return LLM_LATER;
    }

    images = cJSON_GetObjectItem(f->spec, "images");
    of = cJSON_GetObjectItem(f->prompt, "images");
    images = cJSON_GetArrayItem(images, spec_int(of, (int) k));
    bytes = spec_read(f->dir,
                      cJSON_GetObjectItem(images, "file")->valuestring, &len);

    if (bytes == NULL) {
        return llm_fail(err, "no file");
    }

    llm_media_limits_default(&limits);
    source.data = bytes;
    source.len = len;
    source.fd = -1;

    rc = llm_media_image(f->pool, &source, &limits, NULL, &image, err);
    free(bytes);

    if (rc == LLM_OK) {
        rc = llm_layout_image(l, &f->rule, &image, &plan, err);
        llm_image_free(&image);
    }

    return rc;
}


/* the prompt's text as a template would write it */

static void
write_text(const family_t *f, llm_buf_t *b)
{
    size_t       n;
    const char  *s, *at, *outside;

    static const char  mark[] = "<__media__>";

    s = cJSON_GetObjectItem(f->prompt, "text")->valuestring;
    outside = f->rule.words.outside ? f->rule.words.outside : "";
    n = strlen(outside);

    while ((at = strstr(s, mark)) != NULL) {
        /* the fixture's text has what the processor adds */
        (void) llm_buf_add(b, s, (size_t) (at - s) - n);
        (void) llm_buf_adds(b, f->rule.words.places[0]);
        s = at + sizeof(mark) - 1 + n;
    }

    (void) llm_buf_adds(b, s);
}


static int
same_pixels(const family_t *f, const llm_media_t *m, int image, uint32_t entry)
{
    int          same;
    char         name[64], *want;
    size_t       size, n;

    snprintf(name, sizeof(name), "img%d.u8", image);
    n = (size_t) m->w * m->h * 3;
    want = spec_read(f->dir, name, &size);

    if (want == NULL || size < (entry + 1) * n) {
        free(want);
        return 0;
    }

    /* a JPEG's decoder may differ by a step */
    same = 1;

    for (size = 0; size < n && same; size++) {
        same = abs((int) m->rgb[size]
                   - (int) (uint8_t) want[entry * n + size]) <= (image == 2
                                                                 ? 4 : 0);
    }

    free(want);

    return same;
}


/* compares with ["text", ids] and ["image", image, entry, rows] */

static int
same_rows(const family_t *f, const llm_layout_t *l)
{
    int                 i, k;
    size_t              at;
    uint32_t            media;
    const cJSON        *segments, *s;
    const llm_media_t  *m;

    segments = cJSON_GetObjectItem(f->prompt, "segments");
    at = 0;
    media = 0;

    for (i = 0; i < cJSON_GetArraySize(segments); i++) {
        s = cJSON_GetArrayItem(segments, i);

        if (strcmp(cJSON_GetArrayItem(s, 0)->valuestring, "text") == 0) {
            s = cJSON_GetArrayItem(s, 1);

            for (k = 0; k < cJSON_GetArraySize(s); k++, at++) {
                if (at >= l->ids.len || l->ids.data[at] != spec_int(s, k)) {
                    printf("# row %zu is %d instead of %d\n", at,
                           at < l->ids.len ? l->ids.data[at] : -1,
                           spec_int(s, k));
                    return 0;
                }
            }

            continue;
        }

        m = &l->media[media];

        if (media++ == l->n_media || m->first != at
            || (int) m->n != spec_int(s, 3) || m->digest == 0
            || !same_pixels(f, m, spec_int(s, 1), (uint32_t) spec_int(s, 2)))
        {
            printf("# entry %u at %zu differs\n", media - 1, at);
            return 0;
        }

        at += m->n;
    }

    return at == l->ids.len && media == l->n_media;
}


static int
lay(family_t *f, const llm_prompt_t *p, llm_layout_t *l, llm_err_t *err)
{
    int                 rc;
    int32_t             bos;
    llm_place_t        *t;
    llm_place_images_t  images = { f, add };

    l->vocab = f->vocab;
    bos = llm_vocab_bos(f->vocab);

    if (llm_vocab_add_bos(f->vocab)
        && llm_layout_ids(l, &bos, 1, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    t = llm_place_create(p, &f->rule);

    do {
        rc = llm_place_images(t, &images, l, err);
    } while (rc == LLM_LATER);

    llm_place_free(t);

    return rc;
}


static void
prompts(family_t *f, const char *name)
{
    int            rc, n;
    llm_buf_t      b;
    llm_err_t      err;
    llm_span_t     all;
    llm_layout_t   l;
    llm_prompt_t   p;
    const cJSON   *list;

    list = cJSON_GetObjectItem(f->spec, "prompts");

    cJSON_ArrayForEach(f->prompt, list) {
        llm_buf_init(&b, 0);
        write_text(f, &b);
        memset(&err, 0, sizeof(err));
        memset(&l, 0, sizeof(l));
        memset(&p, 0, sizeof(p));
        all.start = 0;
        all.end = b.len;
        p.text = b.data;
        p.len = b.len;
        p.trusted = &all;
        p.n_trusted = 1;

        n = cJSON_GetArraySize(cJSON_GetObjectItem(f->prompt, "images"));
        is_int(llm_place_count(&p, &f->rule, NULL, 0), n, "%s: places", name);

        rc = lay(f, &p, &l, &err);
        ok(rc == LLM_OK && same_rows(f, &l), "%s, %s: the processor's rows: %s",
           name, cJSON_GetObjectItem(f->prompt, "name")->valuestring,
           rc == LLM_OK ? "laid out" : err.msg);

        llm_layout_free(&l);
        llm_buf_free(&b);
    }
}


/* ---- places ---- */

typedef struct {
    const char  *text;
    const char  *marks;                 /* 't' where the template has written */
    int          n;
} place_case_t;


static void
places(const family_t *f)
{
    size_t        i, k;
    llm_span_t    spans[64];
    llm_prompt_t  p;

    static const place_case_t  cases[] = {
        { "a<|image_pad|>b", "ttttttttttttttt", 1 },
        { "a<|image_pad|>b", "               ", 0 },
        { "a<|image_pad|>b", "ttttttttt tttttt", 0 },
        { "<|image_pad|><|image_pad|>", "tttttttttttttttttttttttttt", 2 },
        { "<|image_pad|><|image_pad|>", "             ttttttttttttt", 1 },
        { "<|image_pad|><|image_pad|>", "ttttttttttttt             ", 1 },
        { "<|image_pad|", "tttttttttttt", 0 },
        { "", "", 0 }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        memset(&p, 0, sizeof(p));
        p.text = (char *) cases[i].text;
        p.len = strlen(p.text);
        p.trusted = spans;

        /* a span for each byte: those that touch are one text */
        for (k = 0; k < p.len; k++) {
            if (cases[i].marks[k] == 't') {
                spans[p.n_trusted].start = k;
                spans[p.n_trusted++].end = k + 1;
            }
        }

        is_int(llm_place_count(&p, &f->rule, NULL, 0), cases[i].n,
               "places of \"%s\" where the template wrote \"%s\"",
               cases[i].text, cases[i].marks);
    }
}


/* places of both kinds, and the rows of a sound */

static void
sounds(const family_t *f)
{
    float              samples[10];
    size_t             i;
    uint32_t           kinds[2];
    llm_err_t          err;
    llm_span_t         all = { 0, 0 };
    llm_layout_t       l;
    llm_prompt_t       p;
    llm_image_rule_t   rule = f->rule;

    static char  text[] = "a<|audio|>b<|image_pad|>c";

    rule.sound.frame = 4;
    rule.sound.words.places[0] = "<|audio|>";
    rule.sound.words.begin = "<|audio>";
    rule.sound.words.end = "<audio|>";
    memset(&p, 0, sizeof(p));
    p.text = text;
    p.len = all.end = sizeof(text) - 1;
    p.trusted = &all;
    p.n_trusted = 1;

    is_int(llm_place_count(&p, &rule, kinds, 2), 2, "two places");
    is_int(kinds[0], LLM_MEDIUM_AUDIO, "one of a sound");
    is_int(kinds[1], LLM_MEDIUM_IMAGE, "one of an image");
    is_int(llm_place_count(&p, &f->rule, NULL, 0), 1,
           "an encoder of images alone has one");

    for (i = 0; i < llm_nelems(samples); i++) {
        samples[i] = 1 + (float) i;
    }

    memset(&l, 0, sizeof(l));
    l.vocab = f->vocab;

    if (ok(llm_layout_sound(&l, &rule.sound, samples, 10, &err) == LLM_OK
           && l.n_media == 1, "a sound"))
    {
        is_int(l.media[0].n, 3, "its rows");
        ok(l.media[0].first > 0
           && l.media[0].first + 3 < l.ids.len, "with its marks around");
        ok(l.media[0].heard && l.media[0].w == 4 && l.media[0].h == 3
           && l.media[0].samples[9] == 10 && l.media[0].samples[10] == 0
           && l.media[0].samples[11] == 0, "its frames, and 0 after them");
        ok(l.media[0].digest != 0, "its digest");
    }

    llm_layout_free(&l);
    memset(&l, 0, sizeof(l));
    l.vocab = f->vocab;
    l.counts = 1;
    ok(llm_layout_sound(&l, &rule.sound, samples, 10, &err) == LLM_OK
       && l.media[0].samples == NULL && l.media[0].n == 3,
       "counting takes no samples");
    l.most = (uint32_t) l.ids.len + 2;
    is_int(llm_layout_sound(&l, &rule.sound, samples, 10, &err), LLM_ERROR,
           "more rows than are allowed");
    is_str(err.code, "context_length_exceeded", "its code");
    llm_layout_free(&l);
}


#define VOXTRAL     { .group = 4, .whole = 1, .chunk = 3000 }
#define QWEN2       { .group = 2, .ahead = 1, .chunk = 3000 }
#define QWEN3       { .group = 1, .sliced = 1, .chunk = 800, .least = 8000 }
#define QWEN3_OMNI  { .group = 1, .sliced = 1, .chunk = 800, .least = 160, \
                      .bare = 1 }
#define GEMMA4      { .group = 1, .usm = 1, .chunk = 3000, .least = 161 }

/* how sounds are cut for an encoder of spectrograms */

static void
plans(void)
{
    size_t            i;
    llm_sound_plan_t  p;

    static const struct {
        llm_sound_rule_t  rule;
        size_t            samples;
        uint32_t          entries;
        uint32_t          tokens;
        uint32_t          last;
        uint32_t          seen;
    } cases[] = {
        { { .frame = 640 }, 641, 1, 2, 2, 2 },
        { VOXTRAL, 1, 1, 375, 3000, 3000 },
        { VOXTRAL, 480000, 1, 375, 3000, 3000 },
        { VOXTRAL, 480001, 2, 750, 3000, 3000 },
        { QWEN2, 16000, 1, 25, 100, 102 },
        { QWEN2, 16001, 1, 25, 101, 103 },
        { QWEN2, 1, 1, 1, 4, 6 },
        { QWEN2, 480000, 1, 750, 3000, 3000 },
        { QWEN2, 480001, 2, 751, 4, 6 },
        { QWEN3, 1, 1, 7, 50, 100 },
        { QWEN3, 8160, 1, 7, 51, 100 },
        { QWEN3, 16159, 1, 13, 100, 100 },
        { QWEN3, 16160, 1, 14, 101, 200 },
        { QWEN3, 128159, 1, 104, 800, 800 },
        { QWEN3, 128160, 2, 105, 1, 100 },
        { QWEN3, 560000, 5, 455, 300, 300 },
        { QWEN3_OMNI, 1, 1, 1, 1, 1 },
        { QWEN3_OMNI, 15999, 1, 13, 99, 99 },
        { QWEN3_OMNI, 16160, 1, 14, 101, 200 },
        { QWEN3_OMNI, 136000, 2, 111, 50, 100 },
        { GEMMA4, 1, 1, 1, 1, 1 },
        { GEMMA4, 800, 1, 1, 4, 4 },
        { GEMMA4, 801, 1, 2, 5, 5 },
        { GEMMA4, 16000, 1, 25, 99, 99 },
        { GEMMA4, 16200, 1, 26, 101, 101 },
        { GEMMA4, 480000, 1, 750, 2999, 2999 },
        { GEMMA4, 480160, 1, 750, 3000, 3000 },
        { GEMMA4, 480161, 2, 751, 1, 1 },
        { GEMMA4, 960000, 2, 1500, 2999, 2999 }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        llm_sound_plan(&cases[i].rule, cases[i].samples, &p);
        ok(p.n_entries == cases[i].entries && p.n_tokens == cases[i].tokens
           && p.last == cases[i].last && p.seen == cases[i].seen,
           "%zu samples: %u entries, %llu tokens, %u frames in the last, which "
           "sees %u", cases[i].samples, p.n_entries,
           (unsigned long long) p.n_tokens, p.last, p.seen);
    }

    is_int(llm_sound_seconds(&cases[0].rule, 512), 20, "seconds of 512 frames");
    is_int(llm_sound_seconds(&cases[1].rule, 749), 30, "of a chunk, and more");
    is_int(llm_sound_seconds(&cases[1].rule, 374), 0, "of less than a chunk");
    is_int(llm_sound_seconds(&cases[4].rule, 512), 20, "of 512 pairs of rows");
    is_int(llm_sound_seconds(&cases[9].rule, 519), 39,
           "of less than 40 slices");
    is_int(llm_sound_seconds(&cases[9].rule, 520), 40, "of 40 slices");
    is_int(llm_sound_seconds(&cases[20].rule, 749), 29, "of 749 rows");
    is_int(llm_sound_seconds(&cases[20].rule, 750), 30, "of 750");
}


/* a sound in spectrograms: what the encoder gets of its first 80 ms, and of the
   rest */

static void
spectrograms(const family_t *f)
{
    float               samples[2400];
    size_t              i;
    uint32_t            k;
    llm_err_t           err;
    llm_mel_t          *mel;
    llm_layout_t        l;
    const llm_media_t  *m;
    float               rows[16 * 5], max, want;

    static const llm_sound_rule_t  rule = {
        .projector = "qwen2a", .n_mels = 5, .chunk = 8, .group = 2,
        .ahead = 1, .words = { .begin = "<|vision_start|>" }
    };

    for (i = 0; i < llm_nelems(samples); i++) {
        samples[i] = sinf((float) i * 0.1f);
    }

    mel = llm_mel_create(5, NULL, &err);
    memset(&l, 0, sizeof(l));
    l.vocab = f->vocab;

    if (!ok(mel && llm_layout_sound(&l, &rule, samples, 2400, &err) == LLM_OK
            && l.n_media == 2, "a sound of 15 frames in two entries"))
    {
        return;
    }

    is_int(l.media[0].first, 1, "after a mark of one token");
    is_int((long long) l.ids.len, 1 + 2 + 2, "and their rows, nothing after");

    llm_mel_log(mel, samples, 2400, 0, 16, rows);
    max = llm_mel_max(rows, 16 * 5);

    for (k = 0; k < 2; k++) {
        m = &l.media[k];
        ok(m->heard && m->n == 2 && m->w == 5 && m->h == 8
           && m->own == (k ? 7 : 8), "entry %u: %u frames, %u with rows", k,
           m->h, m->own);

        for (i = 0, want = 0; i < 5 * 8; i++) {
            want = fmaxf(want, fabsf(m->samples[i]
                         - (fmaxf(rows[(8 * k + i % 8) * 5 + i / 8], max - 8)
                            + 4) / 4));
        }

        ok(want == 0, "its spectrogram, %g", want);
    }

    ok(l.media[0].digest != l.media[1].digest, "digests differ");
    llm_layout_free(&l);
    memset(&l, 0, sizeof(l));
    l.vocab = f->vocab;
    l.counts = 1;
    ok(llm_layout_sound(&l, &rule, samples, 2400, &err) == LLM_OK
       && l.ids.len == 5 && l.media[1].samples == NULL, "counting is the same");
    l.most = 8;
    is_int(llm_layout_sound(&l, &rule, samples, 2400, &err), LLM_ERROR,
           "more rows than are allowed");
    is_str(err.code, "context_length_exceeded", "its code");
    llm_layout_free(&l);
    llm_mel_free(mel);
}


/* a sound of 15 whole frames in a slice: the last one sees the mirror image of
   the end; of the rest of the slice the encoder gets zeros */

static void
slices(const family_t *f)
{
    int                 same;
    float               samples[2405 + 200], rows[15 * 5], max, want;
    size_t              i;
    uint32_t            k;
    llm_err_t           err;
    llm_mel_t          *mel;
    llm_layout_t        l;

    static const llm_sound_rule_t  rule = {
        .projector = "qwen3a", .n_mels = 5, .group = 1, .sliced = 1,
        .chunk = 800, .least = 2405
    };

    for (i = 0; i < llm_nelems(samples); i++) {
        samples[i] = i < 2404 ? sinf((float) i * 0.1f)
                     : i == 2404 ? 0 : samples[2 * 2404 - i];
    }

    mel = llm_mel_create(5, NULL, &err);
    memset(&l, 0, sizeof(l));
    l.vocab = f->vocab;

    /* a sample less than the least */

    if (!ok(mel && llm_layout_sound(&l, &rule, samples, 2404, &err) == LLM_OK
            && l.n_media == 1 && l.media[0].n == 2 && l.media[0].own == 15
            && l.media[0].h == 100, "a sound of 15 frames in a slice"))
    {
        return;
    }

    llm_mel_log(mel, samples, llm_nelems(samples), 0, 15, rows);
    max = llm_mel_max(rows, 15 * 5);

    for (k = 0, same = 1; k < 5; k++) {
        for (i = 0; i < 100; i++) {
            want = i < 15 ? (fmaxf(rows[i * 5 + k], max - 8) + 4) / 4 : 0;
            same &= l.media[0].samples[k * 100 + i] == want;
        }
    }

    ok(same, "its spectrogram");
    llm_layout_free(&l);
    llm_mel_free(mel);
}


/* a sound of 16 frames for a Universal Speech Model, in two entries of 12 at
   most */

static void
universal(const family_t *f)
{
    int            same;
    float          samples[2720], rows[16 * 5];
    size_t         i;
    uint32_t       k, e, n;
    llm_err_t      err;
    llm_mel_t     *mel;
    llm_layout_t   l;

    static const llm_sound_rule_t  rule = {
        .projector = "gemma4a", .n_mels = 5, .group = 1, .usm = 1,
        .chunk = 12, .least = 161
    };

    for (i = 0; i < llm_nelems(samples); i++) {
        samples[i] = sinf((float) i * 0.1f);
    }

    mel = llm_mel_create_usm(5, &err);
    memset(&l, 0, sizeof(l));
    l.vocab = f->vocab;

    if (!ok(mel && llm_layout_sound(&l, &rule, samples, 2720, &err) == LLM_OK
            && l.n_media == 2 && l.media[0].n == 3 && l.media[1].n == 1,
            "a sound of 16 frames in two entries"))
    {
        return;
    }

    llm_mel_log(mel, samples, 2720, 0, 16, rows);

    for (e = 0; e < 2; e++) {
        n = e ? 4 : 12;
        same = l.media[e].h == n && l.media[e].own == n;

        for (k = 0; k < 5; k++) {
            for (i = 0; same && i < n; i++) {
                same &= l.media[e].samples[k * n + i]
                        == rows[(12 * e + i) * 5 + k];
            }
        }

        ok(same, "spectrogram %u", e);
    }

    llm_layout_free(&l);

    /* shorter than a frame: silence fills it up */

    memset(&l, 0, sizeof(l));
    l.vocab = f->vocab;
    ok(llm_layout_sound(&l, &rule, samples, 40, &err) == LLM_OK
       && l.n_media == 1 && l.media[0].n == 1 && l.media[0].h == 1,
       "a frame at least");
    llm_mel_log(mel, samples, 40, 0, 1, rows);

    for (k = 0, same = 1; k < 5; k++) {
        same &= l.media[0].samples[k] == rows[k];
    }

    ok(same, "its spectrogram");
    llm_layout_free(&l);
    llm_mel_free(mel);
}


/* bounds of rows and of pixels; counting takes no pixels */

static void
bounds(family_t *f)
{
    size_t         n;
    llm_err_t      err;
    llm_span_t     all;
    llm_layout_t   l;
    llm_prompt_t   p;
    llm_ids_t      whole;

    static char  text[] = "<|vision_start|><|image_pad|><|vision_end|>what";

    f->prompt = cJSON_GetArrayItem(cJSON_GetObjectItem(f->spec, "prompts"), 0);
    memset(&p, 0, sizeof(p));
    p.text = text;
    p.len = sizeof(text) - 1;
    all.start = 0;
    all.end = p.len;
    p.trusted = &all;
    p.n_trusted = 1;

    memset(&l, 0, sizeof(l));
    memset(&err, 0, sizeof(err));
    is_int(lay(f, &p, &l, &err), LLM_OK, "without a bound: %s", err.msg);
    whole = l.ids;
    l.ids.data = NULL;
    n = l.bytes;
    llm_layout_free(&l);

    memset(&l, 0, sizeof(l));
    l.counts = 1;
    is_int(lay(f, &p, &l, &err), LLM_OK, "counted");
    ok(l.ids.len == whole.len && l.media[0].rgb == NULL && l.bytes == 0,
       "without pixels");
    llm_layout_free(&l);

    memset(&l, 0, sizeof(l));
    l.most = (uint32_t) whole.len;
    l.max_bytes = n;
    is_int(lay(f, &p, &l, &err), LLM_OK, "just enough room");
    llm_layout_free(&l);

    memset(&l, 0, sizeof(l));
    l.most = (uint32_t) whole.len - 1;
    is_int(lay(f, &p, &l, &err), LLM_ERROR, "a row too many");
    is_str(err.code, "context_length_exceeded", "is said");
    llm_layout_free(&l);

    memset(&l, 0, sizeof(l));
    l.max_bytes = n - 1;
    is_int(lay(f, &p, &l, &err), LLM_ERROR, "a byte too many");
    is_str(err.code, "request_too_large", "is said");
    llm_layout_free(&l);

    free(whole.data);
}


static void
test(const char *fixtures, const char *name)
{
    char          path[2048], *json;
    size_t        size;
    family_t      f;
    llm_err_t     err;
    llm_gguf_t   *g;

    memset(&f, 0, sizeof(f));
    snprintf(f.dir, sizeof(f.dir), "%s/vision/%s", fixtures, name);
    json = spec_read(f.dir, "spec.json", &size);
    f.spec = json ? cJSON_Parse(json) : NULL;
    free(json);

    snprintf(path, sizeof(path), "%s/text.gguf", f.dir);
    g = llm_gguf_open(path, &err);
    f.vocab = g ? llm_vocab_load(g, &err) : NULL;
    llm_gguf_close(g);

    snprintf(path, sizeof(path), "%s/mmproj.gguf", f.dir);
    g = llm_gguf_open(path, &err);
    f.pool = llm_media_pool_create(getenv("LLM_OBJS") ? getenv("LLM_OBJS")
                                                      : "objs", 1);

    if (f.spec && f.vocab && f.pool && g
        && llm_image_rule_read(&f.rule, g, &err) == LLM_OK)
    {
        prompts(&f, name);

        if (strcmp(name, "qwen3vl") == 0) {
            places(&f);
            sounds(&f);
            slices(&f);
            universal(&f);
            spectrograms(&f);
    bounds(&f);
        }

    } else {
        ok(0, "%s: %s", name, err.msg);
    }

    llm_gguf_close(g);
    llm_media_pool_free(f.pool);
    llm_vocab_free(f.vocab);
    cJSON_Delete(f.spec);
}


int
main(void)
{
    size_t       i;
    const char  *fixtures = getenv("LLM_FIXTURES");

    static const char  *const names[] = {
        "qwen3vl", "qwen35", "gemma4", "gemma4e", "qwen25vl", "gemma3",
        "mistral3", "smolvlm", "internvl", "glm4v"
    };

    plans();

    for (i = 0; fixtures && i < llm_nelems(names); i++) {
        test(fixtures, names[i]);
    }

    if (fixtures == NULL) {
        skip("LLM_FIXTURES is not set: no fixtures of images");
    }

    return done_testing();
}
