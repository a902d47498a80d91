/*
 * WAV files: every kind of samples, files that lie about themselves, and files
 * that are cut off anywhere.
 */

#include "engine/media/wav.h"

#include "t/unit/tap.h"

#include <math.h>

static unsigned char  file[4096];
static size_t         len;


static void
put(uint64_t v, uint32_t bytes)
{
    uint32_t  i;

    for (i = 0; i < bytes; i++) {
        file[len++] = i < 8 ? (unsigned char) (v >> (8 * i)) : 0;
    }
}


static void
tag(const char *name)
{
    memcpy(file + len, name, 4);
    len += 4;
}


static void
begin(void)
{
    len = 0;
    tag("RIFF");
    put(0, 4);
    tag("WAVE");
}


static void
format(uint32_t code, uint32_t channels, uint32_t rate, uint32_t bits)
{
    tag("fmt ");
    put(16, 4);
    put(code, 2);
    put(channels, 2);
    put(rate, 4);
    put((uint64_t) rate * channels * bits / 8, 4);
    put((uint64_t) channels * bits / 8, 2);
    put(bits, 2);
}


/* the bytes lie at the very end of a page, so that a sanitizer sees a read
   beyond them */

static int
opens(llm_wav_t *w, llm_err_t *err)
{
    int                    rc;
    static unsigned char  *copy;

    free(copy);
    copy = malloc(len ? len : 1);
    memcpy(copy, file, len);
    memset(err, 0, sizeof(*err));

    rc = llm_wav_open(w, copy, len, err);

    return rc;
}


static void
test_kinds(void)
{
    float      out[4], f;
    double     d;
    size_t     i, k;
    uint64_t   bits;
    llm_err_t  err;
    llm_wav_t  w;

    static const struct {
        const char  *name;
        uint32_t     code;
        uint32_t     bits;
        double       want[4];
        uint64_t     data[4];
    } kinds[] = {
        { "8 bits", 1, 8, { 0, 127 / 128.0, -1, 0.5 }, { 128, 255, 0, 192 } },
        { "16 bits", 1, 16, { 0, 32767 / 32768.0, -1, -1 / 32768.0 },
          { 0, 0x7fff, 0x8000, 0xffff } },
        { "24 bits", 1, 24, { 0, 8388607 / 8388608.0, -1, -1 / 8388608.0 },
          { 0, 0x7fffff, 0x800000, 0xffffff } },
        { "32 bits", 1, 32, { 0, 1, -1, -0.5 },
          { 0, 0x7fffffff, 0x80000000u, 0xc0000000u } },
        { "A-law", 6, 8, { 8 / 32768.0, -8 / 32768.0, 32256 / 32768.0,
          -32256 / 32768.0 }, { 0xd5, 0x55, 0xaa, 0x2a } },
        { "mu-law", 7, 8, { 0, 0, 32124 / 32768.0, -32124 / 32768.0 },
          { 0xff, 0x7f, 0x80, 0x00 } }
    };

    for (i = 0; i < llm_nelems(kinds); i++) {
        begin();
        format(kinds[i].code, 1, 8000, kinds[i].bits);
        tag("data");
        put(4 * kinds[i].bits / 8, 4);

        for (k = 0; k < 4; k++) {
            put(kinds[i].data[k], kinds[i].bits / 8);
        }

        is_int(opens(&w, &err), LLM_OK, "%s: opens", kinds[i].name);
        ok(w.frames == 4 && w.rate == 8000 && w.channels == 1,
           "%s: what it is", kinds[i].name);
        llm_wav_mono(&w, 0, 4, out);

        for (k = 0; k < 4; k++) {
            ok(out[k] == (float) kinds[i].want[k], "%s: sample %zu: %g",
               kinds[i].name, k, out[k]);
        }
    }

    begin();
    format(3, 2, 44100, 32);
    tag("data");
    put(16, 4);

    for (k = 0; k < 4; k++) {
        f = k == 3 ? NAN : 0.25f * (float) (k + 1);
        memcpy(&bits, &f, 4);
        put(bits & 0xffffffffu, 4);
    }

    is_int(opens(&w, &err), LLM_OK, "floating point, two channels");
    llm_wav_mono(&w, 0, 2, out);
    ok(out[0] == 0.375f && out[1] == 0.375f,
       "the mean of channels, and what is no number is silent");

    begin();
    format(3, 1, 44100, 64);
    tag("data");
    put(16, 4);

    for (k = 0; k < 2; k++) {
        d = k ? 1e300 : -0.125;
        memcpy(&bits, &d, 8);
        put(bits, 8);
    }

    is_int(opens(&w, &err), LLM_OK, "double precision");
    llm_wav_mono(&w, 1, 1, out);
    ok(out[0] == 1048576.0f, "too loud is bounded");
    llm_wav_mono(&w, 0, 1, out);
    ok(out[0] == -0.125f, "and the other as it is");
}


/* what stands around the samples in files of real programs */

static void
test_forms(void)
{
    float      out[3];
    llm_err_t  err;
    llm_wav_t  w;

    begin();
    tag("fmt ");
    put(40, 4);
    put(0xfffe, 2);
    put(3, 2);
    put(48000, 4);
    put(48000 * 12, 4);
    put(12, 2);
    put(32, 2);
    put(22, 2);
    put(24, 2);
    put(7, 4);
    put(1, 2);
    put(0x1000000000ull, 6);
    put(0x719b3800aa000080ull, 8);
    tag("LIST");
    put(3, 4);
    put(0, 4);
    tag("data");
    put(24, 4);
    put(0x40000000, 4);
    put(0x20000000, 4);
    put(0, 4);
    put(0, 4);
    put(0, 4);
    put(0xa0000000u, 4);

    is_int(opens(&w, &err), LLM_OK, "an extended format, and an odd chunk");
    llm_wav_mono(&w, 0, 2, out);
    ok(w.frames == 2 && out[0] == 0.25f && out[1] == -0.25f,
       "24 of 32 bits, three channels");

    begin();
    format(1, 1, 16000, 16);
    tag("data");
    put(0xffffffffu, 4);
    put(0x4000, 2);
    put(0xc000, 2);
    put(1, 1);
    is_int(opens(&w, &err), LLM_OK, "a file that was written to a pipe");
    is_int(w.frames, 2, "has what follows, in whole frames");

    begin();
    memcpy(file, "RF64", 4);
    tag("ds64");
    put(28, 4);
    put(0, 8);
    put(4, 8);
    put(0, 12);
    format(1, 1, 16000, 16);
    tag("data");
    put(0xffffffffu, 4);
    put(0, 8);
    is_int(opens(&w, &err), LLM_OK, "RF64");
    is_int(w.frames, 2, "its size is elsewhere");

    begin();
    format(1, 1, 16000, 16);
    tag("data");
    put(0, 4);
    is_int(opens(&w, &err), LLM_OK, "no samples at all");
    is_int(w.frames, 0, "are none");
}


static void
wrong(const char *message, const char *what)
{
    llm_err_t  err;
    llm_wav_t  w;

    ok(opens(&w, &err) != LLM_OK, "%s: refused", what);
    is_int(err.status, 400, "%s: as a bad request", what);
    ok(strstr(err.msg, message) != NULL, "%s: %s", what, err.msg);
}


static void
test_hostile(void)
{
    size_t     whole, cut;
    uint32_t   i, good, seed;
    float      out[64];
    llm_err_t  err;
    llm_wav_t  w;

    begin();
    format(1, 0, 16000, 16);
    wrong("0 channels", "no channels");

    begin();
    format(1, 33, 16000, 16);
    wrong("33 channels", "too many channels");

    begin();
    format(1, 1, 0, 16);
    wrong("0 Hz", "no rate");

    begin();
    format(1, 1, 4000000000u, 16);
    wrong("4000000000 Hz", "a rate of radio");

    begin();
    format(0x11, 1, 16000, 4);
    tag("data");
    put(8, 4);
    put(0, 8);
    wrong("IMA ADPCM", "another codec");
    is_int(opens(&w, &err), LLM_ABSENT, "which another may read");
    len--;
    wrong("should have 8 bytes, but the file ends after 7", "which is cut off");
    is_int(opens(&w, &err), LLM_ERROR, "and which no other reads");

    begin();
    format(1, 1, 16000, 64);
    tag("data");
    put(8, 4);
    put(0, 8);
    wrong("of 64 bits", "another width");

    begin();
    format(1, 2, 16000, 16);
    file[32] = 3;
    wrong("at byte 12", "a frame of three bytes");

    begin();
    tag("data");
    put(0, 4);
    wrong("before their format", "data first");

    begin();
    format(1, 1, 16000, 16);
    tag("data");
    put(1000, 4);
    put(0, 8);
    wrong("ends after 8", "cut off");

    begin();
    tag("LIST");
    put(0xfffffff8u, 4);
    put(0, 8);
    wrong("longer than the file", "an endless chunk");

    len = 0;
    wrong("at byte 0", "nothing");

    begin();
    memcpy(file, "RF64", 4);
    tag("ds64");
    put(28, 4);
    put(0, 8);
    put(~0ull, 8);
    put(0, 12);
    format(1, 1, 16000, 16);
    tag("data");
    put(0xffffffffu, 4);
    put(0, 8);
    wrong("18446744073709551615", "a size of all bits");

    begin();
    format(1, 2, 16000, 16);
    tag("data");
    put(128, 4);
    put(0, 64);
    len += 64;
    whole = len;
    good = 0;

    for (cut = 0; cut < whole; cut++) {
        len = cut;
        good += opens(&w, &err) == LLM_OK || err.msg[0] == '\0';
    }

    is_int(good, 0, "no beginning of a file is one");
    len = whole;
    seed = 7;
    good = 0;

    for (i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        cut = (seed >> 8) % 44;
        file[cut] ^= (unsigned char) (1 << (seed >> 29));

        if (opens(&w, &err) == LLM_OK) {
            good++;
            llm_wav_mono(&w, w.frames - llm_min(w.frames, 8),
                         (size_t) llm_min(w.frames, 8), out);
        }

        if (i % 3 == 2) {
            begin();
            format(1, 2, 16000, 16);
            tag("data");
            put(128, 4);
            len = whole;
        }
    }

    ok(good > 0, "%u of 20000 with wrong bits were read", good);
}


int
main(void)
{
    test_kinds();
    test_forms();
    test_hostile();

    return done_testing();
}
