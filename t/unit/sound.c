/*
 * Files of sound to samples at one rate: WAV here, others by llm-media, which
 * is looked for in LLM_OBJS.
 */

#include "engine/media/sound.h"

#include "t/unit/tap.h"

#include <math.h>

#if __has_include(<sndfile.h>)
#define LIBRARY  1
#else
#define LIBRARY  0
#endif

static llm_media_pool_t    *pool;
static llm_media_limits_t   limits;
static char                 file[400000];
static size_t               len;


static void
put(uint32_t v, uint32_t bytes, int big)
{
    uint32_t  i;

    for (i = 0; i < bytes; i++) {
        file[len++] = (char) (v >> 8 * (big ? bytes - 1 - i : i));
    }
}


static void
tag(const char *name)
{
    memcpy(file + len, name, 4);
    len += 4;
}


/* a second of a tone of 440 Hz in two channels, of which the second one is half
   as loud; au: as a file of Sun's, which has the other order of bytes */

static void
tone(uint32_t rate, int au)
{
    int32_t   v;
    uint32_t  i;

    len = 0;

    if (au) {
        tag(".snd");
        put(24, 4, 1);
        put(rate * 4, 4, 1);
        put(3, 4, 1);
        put(rate, 4, 1);
        put(2, 4, 1);

    } else {
        tag("RIFF");
        put(36 + rate * 4, 4, 0);
        tag("WAVE");
        tag("fmt ");
        put(16, 4, 0);
        put(1, 2, 0);
        put(2, 2, 0);
        put(rate, 4, 0);
        put(rate * 4, 4, 0);
        put(4, 2, 0);
        put(16, 2, 0);
        tag("data");
        put(rate * 4, 4, 0);
    }

    for (i = 0; i < rate; i++) {
        v = (int32_t) rint(16384 * sin(2 * M_PI * 440 * i / rate));
        put((uint32_t) v, 2, au);
        put((uint32_t) (v / 2), 2, au);
    }
}


static int
read_sound(const void *data, size_t len, llm_sound_t *s, llm_err_t *err)
{
    llm_media_source_t  source = { data, len, -1, NULL };

    return llm_media_sound(pool, &source, &limits, 16000, s, err);
}


static void
test_tone(const char *name)
{
    size_t       i;
    double       worst;
    llm_err_t    err;
    llm_sound_t  s;

    if (!ok(read_sound(file, len, &s, &err)
            == LLM_OK, "%s is read", name))
    {
        printf("# %s\n", err.msg);
        return;
    }

    worst = 0;

    for (i = 1000; i < 15000 && i < s.n; i++) {
        worst = fmax(worst, fabs(s.samples[i]
                                 - 0.375 * sin(2 * M_PI * 440 * (double) i
                                               / 16000)));
    }

    ok(s.n == 16000 && s.rate == 16000 && s.seconds == 1,
       "%s: a second: %zu", name, s.n);
    ok(worst < 5e-5, "%s: the mean of its channels, off by %g", name, worst);
    llm_sound_free(&s);
}


/* of a second at 44100 Hz a bound is a sample too low, and just right */

static void
test_light(const char *name, int au)
{
    llm_err_t    err;
    llm_sound_t  s;

    tone(44100, au);
    limits.light = 44099;
    is_int(read_sound(file, len, &s, &err), LLM_LATER,
           "%s: more samples than are decoded now", name);
    ok(s.samples == NULL, "%s: nothing is left", name);
    limits.light = 44100;
    test_tone(name);
    limits.light = 0;
}


static void
refused(const char *message, int status, const char *what)
{
    llm_err_t    err;
    llm_sound_t  s;

    memset(&err, 0, sizeof(err));

    if (ok(read_sound(file, len, &s, &err)
           == LLM_ERROR, "%s: refused", what))
    {
        ok(err.status == status && strstr(err.msg, message), "%s: %d: %s",
           what, err.status, err.msg);
    }

    ok(s.samples == NULL, "%s: nothing is left", what);
}


static void
test_flac(const char *dir)
{
    char          path[2048];
    FILE         *f;
    char         *flac;
    size_t        size;
    llm_err_t     err;
    llm_sound_t   s;

    snprintf(path, sizeof(path), "%s/audio/real/long_dev.flac", dir);
    f = fopen(path, "rb");

    if (!ok(f != NULL, "there is a FLAC file")) {
        return;
    }

    flac = malloc(1 << 20);
    size = fread(flac, 1, 1 << 20, f);
    fclose(f);

    is_int(read_sound(flac, size, &s, &err), LLM_OK,
           "it is read");
    ok(s.seconds > 30 && s.seconds < 120 && s.n == (size_t) rint(s.seconds
                                                               * 16000),
       "%.2f seconds", s.seconds);
    llm_sound_free(&s);

    memcpy(file, flac, 100000);
    len = 100000;
    refused("seconds", 400, "a FLAC file that is cut off");

    limits.seconds = 10;
    memset(&err, 0, sizeof(err));
    is_int(read_sound(flac, size, &s, &err),
           LLM_ERROR, "it is too long for ten seconds");
    ok(strstr(err.msg, "at most 10 are") && err.status == 400
       && strcmp(err.code, "audio_too_long") == 0, "%s", err.msg);
    refused("at most 10 are", 400, "its header is enough to know that");
    limits.seconds = 3600;

    limits.light = 16000 * 10;
    is_int(read_sound(flac, size, &s, &err), LLM_LATER,
           "it is more than is decoded now");
    ok(s.samples == NULL, "nothing is left");
    limits.light = 0;
    free(flac);
}


int
main(void)
{
    const char  *objs, *dir;

    llm_media_limits_default(&limits);

    tone(16000, 0);
    test_tone("a WAV file without a pool");
    tone(44100, 0);
    test_tone("a WAV file of 44,100 Hz");

    limits.seconds = 1;
    test_tone("a WAV file of just as many seconds as are allowed");
    put(0, 4, 0);
    file[40] += 4;
    refused("is 1.01 seconds long; at most 1 are", 400, "one more sample");
    limits.seconds = 3600;

    test_light("a WAV file", 0);

    limits.bytes = 1000;
    refused("1000", 413, "too large a file");
    limits.bytes = 1 << 20;

    len = 0;
    refused("no WAV file", 400, "nothing");
    tone(16000, 0);
    len -= 7;
    refused("cut off", 400, "a WAV file that is cut off");

    objs = getenv("LLM_OBJS");
    pool = llm_media_pool_create(objs ? objs : "objs", 2);

    memcpy(file, "#!AMR-WB\n", 9);
    len = 9;
    refused("AMR", 400, "another format");
    memcpy(file, "hello, this is no sound", 23);
    len = 23;
    refused("WAV", 400, "a text");

    if (!LIBRARY) {
        skip("libsndfile is not installed");

    } else {
        tone(16000, 1);
        test_tone("an AU file");
        tone(44100, 1);
        test_tone("an AU file of 44,100 Hz");
        test_light("an AU file", 1);
        len = 20;
        refused("AU", 400, "an AU file without a header");
        memcpy(file, "fLaC\0\0\0\x22\0\0\0\0", 12);
        refused("FLAC", 400, "a broken FLAC file");
        memcpy(file, "OggS\0\2\0\0\0\0\0\0", 12);
        refused("Ogg", 400, "a broken Ogg file");
        dir = tap_fixtures();

        if (dir) {
            test_flac(dir);
        } else {
            skip("there are no shared fixtures");
        }
    }

    llm_media_pool_free(pool);

    return done_testing();
}
