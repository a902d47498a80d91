/*
 * WAV files; see wav.h.
 */

#include "engine/media/wav.h"

#include <math.h>

#define LLM_WAV_PCM         0x0001
#define LLM_WAV_FLOAT       0x0003
#define LLM_WAV_A           0x0006
#define LLM_WAV_MU          0x0007
#define LLM_WAV_EXTENSIBLE  0xfffe

/* sizes that programs write when they don't know one: zero, and those near the
   ends of signed and unsigned numbers */
#define llm_wav_unknown(n)  ((n) == 0 || (n) >= 0xffffff00u                   \
                             || ((n) >= 0x7ffff000u && (n) <= 0x7fffffffu))

typedef struct {
    const unsigned char  *data;
    size_t                len;
    size_t                pos;          /* of the chunk */
    uint64_t              data64;       /* size of the data by ds64; 0: none */
    int                   rf64;
    int                   format;       /* the chunk fmt has been read */
    int                   other;        /* its samples are not read here */
} llm_wav_file_t;


static uint32_t
llm_wav_u16(const unsigned char *p)
{
    return (uint32_t) p[0] | (uint32_t) p[1] << 8;
}


static uint32_t
llm_wav_u32(const unsigned char *p)
{
    return llm_wav_u16(p) | llm_wav_u16(p + 2) << 16;
}


static uint64_t
llm_wav_u64(const unsigned char *p)
{
    return llm_wav_u32(p) | (uint64_t) llm_wav_u32(p + 4) << 32;
}


int
llm_wav_is(const void *data, size_t len)
{
    const char *p = data;

    return len >= 12
           && (memcmp(p, "RIFF", 4) == 0 || memcmp(p, "RF64", 4) == 0
               || memcmp(p, "BW64", 4) == 0)
           && memcmp(p + 8, "WAVE", 4) == 0;
}


static const char *
llm_wav_codec(uint32_t tag)
{
    size_t  i;

    static const struct {
        uint32_t     tag;
        const char  *name;
    } names[] = {
        { 0x0002, "Microsoft ADPCM" },
        { 0x0011, "IMA ADPCM" },
        { 0x0031, "GSM 6.10" },
        { 0x0050, "MPEG" },
        { 0x0055, "MP3" },
        { 0x00ff, "AAC" },
        { 0x0161, "Windows Media Audio" },
        { 0x674f, "Vorbis" }
    };

    for (i = 0; i < llm_nelems(names); i++) {
        if (names[i].tag == tag) {
            return names[i].name;
        }
    }

    return "an unknown codec";
}


static int
llm_wav_wrong(llm_err_t *err, size_t pos, const char *what)
{
    return llm_fail_with(err, 400, NULL, "file",
                         "the WAV file is broken at byte %zu: %s", pos, what);
}


/* the kind of samples by its tag and bits, -1: another one */

static int
llm_wav_code(uint32_t tag, uint32_t bits)
{
    size_t  i;

    static const struct {
        uint32_t        tag;
        uint32_t        bits;
        llm_wav_code_t  code;
    } codes[] = {
        { LLM_WAV_PCM, 8, LLM_WAV_U8 },
        { LLM_WAV_PCM, 16, LLM_WAV_S16 },
        { LLM_WAV_PCM, 24, LLM_WAV_S24 },
        { LLM_WAV_PCM, 32, LLM_WAV_S32 },
        { LLM_WAV_FLOAT, 32, LLM_WAV_F32 },
        { LLM_WAV_FLOAT, 64, LLM_WAV_F64 },
        { LLM_WAV_A, 8, LLM_WAV_ALAW },
        { LLM_WAV_MU, 8, LLM_WAV_ULAW }
    };

    for (i = 0; i < llm_nelems(codes); i++) {
        if (codes[i].tag == tag && codes[i].bits == bits) {
            return (int) codes[i].code;
        }
    }

    return -1;
}


/* p: size bytes of the chunk fmt */

static int
llm_wav_format(llm_wav_t *w, llm_wav_file_t *f, const unsigned char *p,
    size_t size, llm_err_t *err)
{
    int       code;
    uint32_t  tag, bits, align;

    if (size < 16) {
        return llm_wav_wrong(err, f->pos, "its format has fewer than 16 bytes");
    }

    tag = llm_wav_u16(p);
    w->channels = llm_wav_u16(p + 2);
    w->rate = llm_wav_u32(p + 4);
    align = llm_wav_u16(p + 12);
    bits = llm_wav_u16(p + 14);

    if (tag == LLM_WAV_EXTENSIBLE) {
        if (size < 40) {
            return llm_wav_wrong(err, f->pos, "its extended format has fewer "
                                 "than 40 bytes");
        }

        /* the first two bytes of the subformat's identifier */
        tag = llm_wav_u16(p + 24);
    }

    if (w->channels == 0 || w->channels > LLM_AUDIO_MAX_CHANNELS) {
        return llm_fail_with(err, 400, NULL, "file", "the WAV file has %u "
                             "channels; it may have 1 to %u", w->channels,
                             LLM_AUDIO_MAX_CHANNELS);
    }

    if (w->rate < LLM_AUDIO_MIN_RATE || w->rate > LLM_AUDIO_MAX_RATE) {
        return llm_fail_with(err, 400, NULL, "file", "the WAV file's sample "
                             "rate is %u Hz; it may be %u to %u", w->rate,
                             LLM_AUDIO_MIN_RATE, LLM_AUDIO_MAX_RATE);
    }

    /* 20 bits in 24 and the like: samples stand in the upper bits */
    if (tag == LLM_WAV_PCM && align % w->channels == 0 && bits > 0
        && bits <= align / w->channels * 8)
    {
        bits = align / w->channels * 8;
    }

    code = llm_wav_code(tag, bits);

    if (code < 0) {
        (void) llm_fail_with(err, 400, NULL, "file", "the WAV file's samples "
                             "(%s, code 0x%04x, of %u bits) are not supported; "
                             "use PCM, floating point, A-law or mu-law",
                             tag == LLM_WAV_PCM ? "PCM"
                             : tag == LLM_WAV_FLOAT ? "floating point"
                             : llm_wav_codec(tag), tag, bits);
        f->format = 1;
        f->other = 1;

        return LLM_OK;
    }

    w->code = (llm_wav_code_t) code;
    w->width = bits / 8;

    if (align != w->width * w->channels) {
        return llm_wav_wrong(err, f->pos, "the size of a frame is not that of "
                             "its samples");
    }

    f->format = 1;

    return LLM_OK;
}


static int
llm_wav_data(llm_wav_t *w, llm_wav_file_t *f, uint32_t size, llm_err_t *err)
{
    size_t    rest;
    uint64_t  n;

    if (!f->format) {
        return llm_wav_wrong(err, f->pos, "its data come before their format");
    }

    rest = f->len - f->pos - 8;
    n = size;

    if (f->rf64 && size == 0xffffffffu && f->data64) {
        n = f->data64;

    } else if (llm_wav_unknown(size)) {
        n = rest;
    }

    if (n > rest) {
        return llm_fail_with(err, 400, NULL, "file", "the WAV file is cut off: "
                             "its data begin at byte %zu and should have %llu "
                             "bytes, but the file ends after %zu of them",
                             f->pos + 8, (unsigned long long) n, rest);
    }

    if (f->other) {
        return LLM_ABSENT;
    }

    w->data = f->data + f->pos + 8;
    w->frames = n / (w->width * w->channels);

    return LLM_OK;
}


int
llm_wav_open(llm_wav_t *w, const void *data, size_t len, llm_err_t *err)
{
    int                   rc;
    uint32_t              size;
    llm_wav_file_t        f;
    const unsigned char  *p;

    memset(w, 0, sizeof(*w));
    memset(&f, 0, sizeof(f));
    f.data = data;
    f.len = len;

    if (!llm_wav_is(data, len)) {
        return llm_wav_wrong(err, 0, "it does not begin with RIFF and WAVE");
    }

    f.rf64 = f.data[1] != 'I';

    f.pos = 12;

    while (len - f.pos >= 8) {
        p = f.data + f.pos;
        size = llm_wav_u32(p + 4);

        if (memcmp(p, "data", 4) == 0) {
            return llm_wav_data(w, &f, size, err);
        }

        if (size > len - f.pos - 8) {
            return llm_wav_wrong(err, f.pos, "a chunk is longer than the file, "
                                 "and there are no data");
        }

        if (memcmp(p, "fmt ", 4) == 0) {
            rc = llm_wav_format(w, &f, p + 8, size, err);

            if (rc != LLM_OK) {
                return rc;
            }
        }

        if (memcmp(p, "ds64", 4) == 0 && size >= 16) {
            f.data64 = llm_wav_u64(p + 16);
        }

        f.pos = llm_min(f.pos + 8 + size + (size & 1), len);
    }

    return llm_wav_wrong(err, f.pos, "it ends, and there are no data");
}


static double
llm_wav_alaw(unsigned char c)
{
    int  e, m, v;

    c ^= 0x55;
    e = c >> 4 & 7;
    m = (c & 15) << 4;
    v = (e == 0) ? m + 8 : (m + 0x108) << (e - 1);

    return (c & 0x80 ? v : -v) / 32768.0;
}


static double
llm_wav_ulaw(unsigned char c)
{
    int  v;

    c = (unsigned char) ~c;
    v = ((((c & 15) << 3) + 0x84) << (c >> 4 & 7)) - 0x84;

    return (c & 0x80 ? -v : v) / 32768.0;
}


static double
llm_wav_sample(llm_wav_code_t code, const unsigned char *p)
{
    float     f;
    double    d;
    uint32_t  u;

    switch (code) {

    case LLM_WAV_U8:
        return (p[0] - 128) / 128.0;

    case LLM_WAV_S16:
        return (int16_t) llm_wav_u16(p) / 32768.0;

    case LLM_WAV_S24:
        u = (llm_wav_u16(p) | (uint32_t) p[2] << 16) << 8;
        return (int32_t) u / 2147483648.0;

    case LLM_WAV_S32:
        return (int32_t) llm_wav_u32(p) / 2147483648.0;

    case LLM_WAV_F32:
        memcpy(&f, p, sizeof(f));
        d = f;
        break;

    case LLM_WAV_F64:
        memcpy(&d, p, sizeof(d));
        break;

    case LLM_WAV_ALAW:
        return llm_wav_alaw(p[0]);

    default:
        return llm_wav_ulaw(p[0]);
    }

    return isfinite(d) ? llm_max(llm_min(d, LLM_AUDIO_LOUD), -LLM_AUDIO_LOUD)
                       : 0;
}


void
llm_wav_mono(const llm_wav_t *w, uint64_t first, size_t n, float *out)
{
    size_t                i;
    double                sum;
    uint32_t              c;
    const unsigned char  *p;

    p = w->data + first * w->channels * w->width;

    if (w->code == LLM_WAV_S16 && w->channels == 1) {
        for (i = 0; i < n; i++) {
            out[i] = (float) (int16_t) llm_wav_u16(p + 2 * i) / 32768.0f;
        }

        return;
    }

    for (i = 0; i < n; i++) {
        sum = 0;

        for (c = 0; c < w->channels; c++) {
            sum += llm_wav_sample(w->code, p);
            p += w->width;
        }

        out[i] = (float) (sum / w->channels);
    }
}
