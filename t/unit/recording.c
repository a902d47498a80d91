/*
 * Recordings of browsers and phones by llm-media-ffmpeg: a tone comes back as
 * it was, in its place; files that are cut off or damaged, are films, or ask
 * for much; and a server without the program.  The files are the seeds of the
 * fuzz target, made by FFmpeg 9: a second of 440 Hz, 0.5 in one channel and
 * 0.25 in the other.
 */

#include "engine/media/sound.h"

#include "t/unit/tap.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static llm_media_pool_t    *pool;
static llm_media_limits_t   limits;
static char                 file[40000];
static size_t               len;


static const char *
objs(void)
{
    const char  *dir;

    dir = getenv("LLM_OBJS");

    return dir ? dir : "objs";
}


static int
load(const char *name)
{
    char         path[1024];
    FILE        *f;
    const char  *root;

    root = getenv("LLM_ROOT");
    snprintf(path, sizeof(path), "%s/t/fuzz/corpus/recording/%s",
             root ? root : ".", name);
    f = fopen(path, "rb");

    if (f == NULL) {
        ok(0, "%s is there", path);
        return LLM_ERROR;
    }

    len = fread(file, 1, sizeof(file), f);
    fclose(f);

    return LLM_OK;
}


static int
hear(llm_sound_t *s, llm_err_t *err)
{
    llm_media_source_t  source = { file, len, -1, NULL };

    memset(err, 0, sizeof(*err));

    return llm_media_sound(pool, &source, &limits, 16000, s, err);
}


/* most: the difference from the tone, whose effective value is 0.265; late: by
   how many samples of 48 kHz it is, as nothing in the file says what an encoder
   has put before it */

static void
test_tone(const char *name, size_t late, double most)
{
    size_t       i;
    double       off, d, t;
    llm_err_t    err;
    llm_sound_t  s;

    if (load(name) != LLM_OK) {
        return;
    }

    if (!ok(hear(&s, &err) == LLM_OK, "%s is read", name)) {
        printf("# %s\n", err.msg);
        return;
    }

    off = 0;

    for (i = 3000; i < 13000 && i < s.n; i++) {
        t = (double) i / 16000 - (double) late / 48000;
        d = s.samples[i] - 0.375 * sin(2 * M_PI * 440 * t);
        off += d * d;
    }

    off = sqrt(off / 10000);
    ok(s.n >= 15900 && s.n <= 16700, "%s: about a second: %zu", name, s.n);
    ok(off < most, "%s: the mean of its channels, off by %.5f", name, off);
    llm_sound_free(&s);
}


static void
refused(const char *message, const char *what)
{
    llm_err_t    err;
    llm_sound_t  s;

    if (ok(hear(&s, &err) == LLM_ERROR, "%s: refused", what)) {
        ok(err.status == 400 && strstr(err.msg, message), "%s: %d: %s", what,
           err.status, err.msg);

    } else {
        llm_sound_free(&s);
    }
}


/* A part of a file is refused, unless it ends between two packets, as one does
   whose recorder was stopped.  Of WebM, where a recorder does not know how long
   the file will be, FFmpeg reads all packets that are whole. */

static void
test_cut(const char *name, size_t least, int allowed)
{
    int          good;
    size_t       whole, at;
    llm_err_t    err;
    llm_sound_t  s;

    if (load(name) != LLM_OK) {
        return;
    }

    whole = len;
    good = 0;

    for (at = 1; at <= 16; at++) {
        len = whole * at / 17;

        if (hear(&s, &err) == LLM_OK) {
            good++;
            llm_sound_free(&s);

        } else if (err.status != 400) {
            ok(0, "%s, %zu bytes: %d: %s", name, len, err.status, err.msg);
        }
    }

    ok(good <= allowed, "%s: %d of 16 parts are read", name, good);
    len = least;
    refused("", name);
}


/* damaged bytes: an answer or a refusal, and the next file is read */

static void
test_damage(const char *name)
{
    int          i, bad;
    size_t       k;
    llm_err_t    err;
    uint32_t     seed;
    llm_sound_t  s;

    bad = 0;
    seed = 7;

    for (i = 0; i < 12; i++) {
        if (load(name) != LLM_OK) {
            return;
        }

        for (k = 0; k < 1 + len / 200; k++) {
            seed = seed * 1664525 + 1013904223;
            file[12 + (seed >> 8) % (len - 12)] = (char) (seed >> 3);
        }

        if (hear(&s, &err) == LLM_OK) {
            bad += s.n > 3600 * 16000;
            llm_sound_free(&s);

        } else {
            bad += err.status != 400;
        }
    }

    is_int(bad, 0, "%s: damaged", name);
}


static void
test_hostile(void)
{
    char  *p;

    p = load("tone.m4a") == LLM_OK ? memmem(file, len, "stsz", 4) : NULL;

    if (ok(p != NULL, "MP4: a table of sizes")) {
        memcpy(p + 12, "\x3f\xff\xff\xff", 4);
        refused("", "MP4: a table of a billion sizes");
    }

    len = 4096;
    memset(file, 0xff, len);
    memcpy(file, "\x1a\x45\xdf\xa3", 4);
    refused("WebM", "WebM: an element beyond the end");

    memset(file, 0, len);
    memcpy(file, "\0\0\0\x18" "ftypM4A ", 12);
    refused("MP4", "MP4: nothing but a name");

    memset(file, 0, len);
    memcpy(file, "\xff\xf1\x50\x80\x02\x1f\xfc", 7);
    refused("AAC", "AAC: one frame of nothing");
}


static void
test_absent(void)
{
    llm_err_t          err;
    llm_sound_t        s;
    llm_media_pool_t  *with;

    with = pool;
    pool = llm_media_pool_create("/nowhere", 1);

    if (load("tone.webm") == LLM_OK) {
        is_int(hear(&s, &err), LLM_ERROR, "without the program");
        is_int(err.status, 400, "a recording is refused");
        ok(strstr(err.msg, "libavformat") != NULL, "%s", err.msg);
    }

    llm_media_pool_free(pool);
    pool = with;
}


/* a program that the dynamic linker refuses, as its libraries are not there; or
   another one */

static void
test_other_program(const char *script, int status, const char *part,
    const char *what)
{
    char               dir[] = "/tmp/llm_recording_XXXXXX", path[64];
    FILE              *f;
    llm_err_t          err;
    llm_sound_t        s;
    llm_media_pool_t  *with;

    if (!ok(mkdtemp(dir) != NULL, "a folder")) {
        return;
    }

    snprintf(path, sizeof(path), "%s/llm-media-ffmpeg", dir);
    f = fopen(path, "w");
    fprintf(f, "#!/bin/sh\n%s\n", script);
    fchmod(fileno(f), 0755);
    fclose(f);

    with = pool;
    pool = llm_media_pool_create(dir, 1);

    if (load("tone.webm") == LLM_OK) {
        is_int(hear(&s, &err), LLM_ERROR, "%s", what);
        is_int(err.status, status, "a recording is refused");
        ok(strstr(err.msg, part) != NULL, "%s", err.msg);
    }

    llm_media_pool_free(pool);
    pool = with;
    (void) unlink(path);
    (void) rmdir(dir);
}


static int
built(void)
{
    char   cmd[1024], line[64];
    FILE  *f;
    int    yes;

    snprintf(cmd, sizeof(cmd), "%s/llm-media-ffmpeg --formats", objs());
    f = popen(cmd, "r");
    yes = f && fgets(line, sizeof(line), f) && strstr(line, " yes");

    if (f) {
        pclose(f);
    }

    return yes;
}


int
main(void)
{
    size_t  i;

    static const struct {
        const char  *name;
        int          allowed;           /* parts that may be read, of 16 */
    } cut[] = {
        { "tone.webm", 15 }, { "tone.m4a", 0 }, { "frag.mp4", 1 },
        { "tone.aac", 1 }, { "film.mkv", 15 }, { "film.mp4", 0 },
        { "alac.mov", 0 }
    };

    llm_media_limits_default(&limits);
    limits.timeout = 600000;
    pool = llm_media_pool_create(objs(), 2);

    test_absent();
    test_other_program("exit 127", 400, "libavformat",
                       "a program that does not start");
    test_other_program("echo noise >&0; cat", 400, "libavformat",
                       "one that says something else");
    test_other_program("kill -9 $$", 503, "signal 9 as it started",
                       "one that is killed");

    if (!built()) {
        if (load("tone.webm") == LLM_OK) {
            refused("no FFmpeg", "a build without FFmpeg");
        }

        skip("FFmpeg's headers are not installed");

    } else {
        test_tone("tone.webm", 0, 0.03);
        test_tone("tone.m4a", 0, 0.001);
        test_tone("frag.mp4", 1024, 0.001);
        test_tone("tone.aac", 1024, 0.001);
        test_tone("film.mkv", 0, 0.005);
        test_tone("film.mp4", 0, 0.001);
        test_tone("alac.mov", 0, 0.0001);

        for (i = 0; i < llm_nelems(cut); i++) {
            test_cut(cut[i].name, 40, cut[i].allowed);
            test_damage(cut[i].name);
        }

        test_hostile();

        limits.seconds = 0;

        if (load("tone.webm") == LLM_OK) {
            refused("longer than 0 seconds", "a bound of time");
        }
    }

    llm_media_pool_free(pool);

    return done_testing();
}
