/*
 * Files of sound that are cut off, and whole ones, to the decoder without its
 * process.  libsndfile writes them; what other programs write otherwise is made
 * of those.
 */

#include "engine/media/decoder/decode.h"
#include "t/unit/tap.h"

#include <math.h>

#if __has_include(<sndfile.h>)
#include <sndfile.h>
#define LIBRARY  1
#else
#define LIBRARY  0
#endif

#if LIBRARY

#define RATE    16000
#define FRAMES  (3 * RATE)

/* numbers of sndfile.h, whose older versions have no names for them */
#define MP3     (0x230000 | 0x82)
#define OPUS    (0x200000 | 0x64)

static uint8_t   file[2000000];
static size_t    len;
static size_t    at;
static uint64_t  samples;
static char      said[500];


static sf_count_t
size_of(void *data)
{
    (void) data;

    return (sf_count_t) len;
}


static sf_count_t
seek_to(sf_count_t offset, int whence, void *data)
{
    (void) data;
    offset += whence == SEEK_CUR ? (sf_count_t) at
              : whence == SEEK_END ? (sf_count_t) len : 0;
    at = (size_t) offset;

    return offset;
}


static sf_count_t
read_some(void *out, sf_count_t n, void *data)
{
    (void) data;
    n = at < len ? llm_min(n, (sf_count_t) (len - at)) : 0;
    memcpy(out, file + at, (size_t) n);
    at += (size_t) n;

    return n;
}


static sf_count_t
write_some(const void *in, sf_count_t n, void *data)
{
    (void) data;

    if (at + (size_t) n > sizeof(file)) {
        return 0;
    }

    memcpy(file + at, in, (size_t) n);
    at += (size_t) n;
    len = llm_max(len, at);

    return n;
}


static sf_count_t
tell(void *data)
{
    (void) data;

    return (sf_count_t) at;
}


/* three seconds of a tone that rises, as a file of this format */

static int
make(int format, const char *name)
{
    int             i;
    short           x;
    SNDFILE        *sf;
    SF_INFO         info;
    SF_VIRTUAL_IO   io = { size_of, seek_to, read_some, write_some, tell };

    memset(&info, 0, sizeof(info));
    info.samplerate = RATE;
    info.channels = 1;
    info.format = format;
    len = 0;
    at = 0;

    sf = sf_format_check(&info) ? sf_open_virtual(&io, SFM_WRITE, &info, NULL)
                                : NULL;
    if (sf == NULL) {
        skip(name);
        return 0;
    }

    for (i = 0; i < FRAMES; i++) {
        x = (short) (8000 * sin(0.1 * i + 1e-5 * i * (i % 4000)));
        (void) sf_write_short(sf, &x, 1);
    }

    (void) sf_close(sf);

    return 1;
}


static int
put(void *ctx, uint32_t type, const void *data, size_t n)
{
    (void) ctx;

    if (type == LLM_MEDIA_DATA) {
        samples += n / sizeof(float);

    } else if (type == LLM_MEDIA_FAILED) {
        n = llm_min(n - sizeof(uint32_t), sizeof(said) - 1);
        memcpy(said, (const char *) data + sizeof(uint32_t), n);
        said[n] = '\0';
    }

    return LLM_OK;
}


/* the first n bytes of the file, which are copied so that a sanitizer sees what
   is read behind them */

static int
decode(size_t n)
{
    int                  rc;
    uint8_t             *copy;
    llm_decode_t         d;
    llm_media_limits_t   limits;

    memset(&limits, 0, sizeof(limits));
    limits.seconds = 60;
    limits.samples = UINT64_MAX / 4;

    copy = malloc(n + 1);

    if (copy == NULL) {
        return LLM_ERROR;
    }

    memcpy(copy, file, n);
    memset(&d, 0, sizeof(d));
    d.data = copy;
    d.len = n;
    d.limits = &limits;
    d.put = put;
    samples = 0;
    said[0] = '\0';
    rc = llm_decode_sound(&d);
    free(copy);

    return rc;
}


static void
passes(const char *what)
{
    if (!ok(decode(len) == LLM_OK, "%s: read", what)) {
        printf("# %s\n", said);
    }

    ok(samples > FRAMES - RATE / 10 && samples < FRAMES + RATE / 5,
       "%s: three seconds: %llu", what, (unsigned long long) samples);
}


static void
cut_off(size_t n, const char *how, const char *what)
{
    ok(decode(n) == LLM_ERROR && strstr(said, how), "%s: %zu of %zu bytes: %s",
       what, n, len, said);
}


/* a whole file, and what begins it; gaps: a cut may be one that nobody sees */

static void
test_cuts(const char *what, int gaps)
{
    size_t    n;
    unsigned  read;

    passes(what);

    cut_off(len / 2, "cut off", what);
    cut_off(len - 7, "cut off", what);
    cut_off(len - 1, "cut off", what);

    for (n = 1, read = 0; n < len; n += 1 + len / 150) {
        read += decode(n) == LLM_OK;
    }

    ok(read == 0 || gaps, "%s: no beginning of it is read: %u are", what, read);
}


static size_t
find(const char *word)
{
    uint8_t  *p;

    p = memmem(file, len, word, strlen(word));

    return p ? (size_t) (p - file) : 0;
}


static void
set(size_t pos, uint64_t v, size_t n)
{
    while (n) {
        file[pos + --n] = (uint8_t) v;
        v >>= 8;
    }
}


/* a size that its program did not know: the file is read as far as it goes */

static void
test_unknown(const char *what, size_t pos, uint64_t size, size_t n)
{
    set(pos, size, n);
    passes(what);
    is_int(decode(len - 8), LLM_OK, "%s: any end may be its end", what);
}


static void
test_chunks(void)
{
    if (make(SF_FORMAT_AIFF | SF_FORMAT_PCM_16, "AIFF")) {
        test_cuts("AIFF", 0);
        test_unknown("AIFF of sox to a pipe", find("SSND") + 4, 0x7f000008, 4);
        test_unknown("AIFF of a size of 0", find("SSND") + 4, 0, 4);
    }

    if (make(SF_FORMAT_AIFF | SF_FORMAT_ULAW, "AIFF of mu-law")) {
        test_cuts("AIFF of mu-law", 0);
    }

    if (make(SF_FORMAT_AU | SF_FORMAT_PCM_16, "AU")) {
        test_cuts("AU", 0);
        test_unknown("AU of a pipe", 8, 0xffffffff, 4);
        test_unknown("AU of a size of 0", 8, 0, 4);
        test_unknown("AU of the largest signed size", 8, 0x7fffffff, 4);
    }

    if (make(SF_FORMAT_CAF | SF_FORMAT_PCM_16, "CAF")) {
        test_cuts("CAF", 0);
        test_unknown("CAF of a pipe", find("data") + 4, UINT64_MAX, 8);
    }

    if (make(SF_FORMAT_FLAC | SF_FORMAT_PCM_16, "FLAC")) {
        passes("FLAC");
        cut_off(len / 2, "ends early", "FLAC");
    }
}


static void
test_ogg(int format, const char *what)
{
    size_t  pos, last;

    if (!make(format, what)) {
        return;
    }

    test_cuts(what, 0);

    /* a tag that does not belong there */
    memcpy(file + len, "TAG of another format", 21);
    len += 21;
    passes("Ogg with something behind it");
    len -= 21;

    /* without the mark of the end, as of a recorder that was killed: what a
       cut between two pages leaves */
    for (last = 0, pos = 0; pos + 4 <= len; pos++) {
        last = memcmp(file + pos, "OggS", 4) == 0 ? pos : last;
    }

    cut_off(last, "cut off: its last page is not marked", what);
    file[last + 5] &= (uint8_t) ~4;
    cut_off(len, "cut off: its last page is not marked", what);
}


static void
insert(size_t pos, const void *data, size_t n)
{
    memmove(file + pos + n, file + pos, len - pos);
    memcpy(file + pos, data, n);
    len += n;
}


static void
test_mp3(void)
{
    size_t   info, first;
    uint8_t  tag[300];

    if (!make(MP3, "MP3")) {
        return;
    }

    test_cuts("MP3", 0);
    info = find("Info") ? find("Info") : find("Xing");

    if (!ok(info > 0, "it begins with what is in it")) {
        return;
    }

    /* tags of both kinds */
    memset(tag, 'x', sizeof(tag));
    memcpy(tag, "TAG", 3);
    memcpy(file + len, tag, 128);
    len += 128;
    passes("MP3 with a tag at its end");
    memcpy(tag, "ID3\4\0\0\0\0\2\x22", 10);
    insert(0, tag, sizeof(tag));
    info += sizeof(tag);
    passes("MP3 with tags at both ends");
    cut_off(len / 2, "cut off: its header says 8", "MP3 with a tag");
    len -= 128;
    cut_off(len - 7, "cut off: its header says 8", "MP3 with a tag");

    /* one that says its bytes alone, as of another program */
    set(info + 4, 2, 4);
    set(info + 8, len - sizeof(tag), 4);
    passes("MP3 that says its bytes");
    cut_off(len - 7, "bytes, but the file ends after", "MP3 with bytes");

    /* and in Fraunhofer's words */
    first = sizeof(tag);
    memset(file + info, 0, 30);
    memcpy(file + first + 36, "VBRI\0\1\0\0\0\0", 10);
    set(first + 46, len - first, 4);
    set(first + 50, 84, 4);
    passes("MP3 with VBRI");
    cut_off(len / 2, "cut off: its header says 84", "MP3 with VBRI");

    /* and that says nothing, as from a pipe */
    memset(file + first + 36, 0, 18);
    test_cuts("MP3 without a header", 1);
    cut_off(len - 7, "last frame, at byte", "MP3 without a header");
    memset(file + len, 0, 50);
    len += 50;
    passes("MP3 with zeros behind it");
}

#endif


int
main(void)
{
#if LIBRARY
    test_chunks();
    test_ogg(SF_FORMAT_OGG | SF_FORMAT_VORBIS, "Ogg Vorbis");
    test_ogg(OPUS, "Ogg Opus");
    test_mp3();
#else
    skip("libsndfile is not installed");
#endif

    return done_testing();
}
