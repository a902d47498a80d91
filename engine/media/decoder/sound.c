/*
 * Sound by libsndfile: FLAC, Ogg (Vorbis, Opus, FLAC), MP3, AIFF, AU, CAF, and
 * WAV with codecs that wav.c has not; to float32 samples of one channel, the
 * mean of all.  See decode.h.
 *
 * What a header promises is not believed: samples are counted as they come, and
 * the job ends where the limit is.  But a file that promises more than is
 * allowed is refused at once, as it would be damaged if it had less; that of an
 * MP3 is a guess.  A file that is cut off is refused before (whole.c), as
 * libsndfile counts what is there of it.
 */

#include "engine/media/decoder/decode.h"
#include "engine/media/wav.h"

#include <math.h>
#include <stdio.h>

#if __has_include(<sndfile.h>)

#include <sndfile.h>
#define LLM_SNDFILE  1

#else
#define LLM_SNDFILE  0
#endif

#define LLM_SOUND_BLOCK  4096           /* frames that are read at once */

typedef struct {
    const char  *name;
    size_t       at;                    /* of the magic bytes */
    size_t       len;
    const char  *magic;
    int          read;                  /* libsndfile reads it */
} llm_sound_format_t;

/* the first that fits; an MP3 file may begin with a tag or with a frame, whose
   first 11 bits are set */
static const llm_sound_format_t  llm_sounds[] = {
    { "WAV", 8, 4, "WAVE", 1 },
    { "FLAC", 0, 4, "fLaC", 1 },
    { "Ogg", 0, 4, "OggS", 1 },
    { "MP3", 0, 3, "ID3", 1 },
    { "AIFF", 8, 3, "AIF", 1 },
    { "AU", 0, 4, ".snd", 1 },
    { "CAF", 0, 4, "caff", 1 },
    { "MP3", 0, 2, "\xff\xfb", 1 },
    { "MP3", 0, 2, "\xff\xfa", 1 },
    { "MP3", 0, 2, "\xff\xf3", 1 },
    { "MP3", 0, 2, "\xff\xf2", 1 },
    { "MP3", 0, 2, "\xff\xe3", 1 },
    { "MP3", 0, 2, "\xff\xe2", 1 },
    { "AMR", 0, 5, "#!AMR", 0 },
    { "Windows Media", 0, 4, "\x30\x26\xb2\x75", 0 },
    { "Monkey's Audio", 0, 4, "MAC ", 0 },
    { "MIDI", 0, 4, "MThd", 0 },
    { "AVI", 8, 3, "AVI", 0 },
    { "AC-3", 0, 2, "\x0b\x77", 0 }
};


static const llm_sound_format_t *
llm_sound_find(const llm_decode_t *d)
{
    size_t                     i;
    const llm_sound_format_t  *f;

    for (i = 0; i < llm_nelems(llm_sounds); i++) {
        f = &llm_sounds[i];

        if (d->len >= f->at + f->len
            && memcmp(d->data + f->at, f->magic, f->len) == 0)
        {
            return f;
        }
    }

    return NULL;
}


void
llm_sound_formats(void)
{
    size_t  i;

    /* WAV is read without a library, by the engine itself */

    for (i = 1; i < llm_nelems(llm_sounds); i++) {
        if (llm_sounds[i].read && llm_sounds[i].at + llm_sounds[i].len > 2) {
            printf("%s %s\n", llm_sounds[i].name, LLM_SNDFILE ? "yes" : "no");
        }
    }
}


#if LLM_SNDFILE

/*
 * Of a file whose header does not tell its length, libsndfile may read less
 * than there is: as many frames of an MP3 file as it guesses from the first
 * one, nothing of an AU file.  It reads a label that tells it instead.
 */
typedef struct {
    llm_sound_label_t  label;
    const uint8_t     *data;
    sf_count_t         len;             /* of the file with the label */
    sf_count_t         pos;
} llm_sound_file_t;


static sf_count_t
llm_sound_size(void *data)
{
    return ((llm_sound_file_t *) data)->len;
}


static sf_count_t
llm_sound_seek(sf_count_t offset, int whence, void *data)
{
    sf_count_t         pos;
    llm_sound_file_t  *f = data;

    pos = (whence == SEEK_CUR) ? f->pos : (whence == SEEK_END) ? f->len : 0;

    if (__builtin_add_overflow(pos, offset, &pos) || pos < 0) {
        return -1;
    }

    f->pos = llm_min(pos, f->len);

    return f->pos;
}


/* what is at this position, and in *len how much of it there is in one piece */

static const uint8_t *
llm_sound_piece(const llm_sound_file_t *f, size_t pos, size_t *len)
{
    const llm_sound_label_t  *l = &f->label;

    if (pos < l->at) {
        *len = l->at - pos;
        return f->data + pos;
    }

    if (pos < l->at + l->len) {
        *len = l->at + l->len - pos;
        return l->data + (pos - l->at);
    }

    *len = (size_t) f->len - pos;

    return f->data + (pos - l->len + l->skip);
}


static sf_count_t
llm_sound_read(void *out, sf_count_t n, void *data)
{
    char              *to = out;
    size_t             left, len;
    const uint8_t     *from;
    llm_sound_file_t  *f = data;

    n = llm_max(llm_min(n, f->len - f->pos), 0);

    for (left = (size_t) n; left; left -= len) {
        from = llm_sound_piece(f, (size_t) f->pos, &len);
        len = llm_min(len, left);
        memcpy(to, from, len);
        to += len;
        f->pos += (sf_count_t) len;
    }

    return n;
}


static sf_count_t
llm_sound_write(const void *in, sf_count_t n, void *data)
{
    (void) in;
    (void) n;
    (void) data;

    return 0;
}


static sf_count_t
llm_sound_tell(void *data)
{
    return ((llm_sound_file_t *) data)->pos;
}


/* what libsndfile says of its last error; where it names only itself, what is
   the case */

static const char *
llm_sound_reason(SNDFILE *sf)
{
    const char  *text = sf_strerror(sf);

    return strstr(text, "nternal") || strstr(text, "unknown error")
           || strstr(text, "No Error")
           ? "its contents are not what its header says" : text;
}


static int
llm_sound_check(llm_decode_t *d, const char *name, const SF_INFO *info)
{
    if (info->channels < 1 || info->channels > LLM_AUDIO_MAX_CHANNELS) {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the %s file has %d "
                               "channels; it may have 1 to %u", name,
                               info->channels, LLM_AUDIO_MAX_CHANNELS);
    }

    if (info->samplerate < LLM_AUDIO_MIN_RATE
        || info->samplerate > LLM_AUDIO_MAX_RATE)
    {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the %s file's sample rate "
                               "is %d Hz; it may be %u to %u", name,
                               info->samplerate, LLM_AUDIO_MIN_RATE,
                               LLM_AUDIO_MAX_RATE);
    }

    return LLM_OK;
}


/* n frames of this number of channels to one, in place */

static void
llm_sound_mono(float *x, size_t n, int channels)
{
    int           c;
    double        sum;
    size_t        i;
    const float  *from;

    from = x;

    for (i = 0; i < n; i++) {
        sum = 0;

        for (c = 0; c < channels; c++, from++) {
            sum += isfinite(*from) ? *from : 0;
        }

        sum = llm_max(llm_min(sum / channels, LLM_AUDIO_LOUD),
                      -LLM_AUDIO_LOUD);
        x[i] = (float) sum;
    }
}


static uint64_t
llm_sound_most(const llm_decode_t *d, const SF_INFO *info)
{
    return llm_min((uint64_t) info->samplerate * d->limits->seconds,
                   d->limits->samples);
}


/* frames that the header promises; 0: unknown */

static uint64_t
llm_sound_promise(const SF_INFO *info)
{
    return info->frames > 0 && info->frames < SF_COUNT_MAX
           ? (uint64_t) info->frames : 0;
}


static int
llm_sound_samples(llm_decode_t *d, const char *name, SNDFILE *sf,
    const SF_INFO *info)
{
    float       *x;
    uint64_t     done, most;
    sf_count_t   n;

    x = malloc(LLM_SOUND_BLOCK * (size_t) info->channels * sizeof(float));

    if (x == NULL) {
        return llm_decode_fail(d, LLM_MEDIA_NO_MEMORY, "no memory for sound");
    }

    most = llm_sound_most(d, info);

    for (done = 0; /* void */ ; done += (uint64_t) n) {
        n = sf_readf_float(sf, x, LLM_SOUND_BLOCK);

        if (n <= 0) {
            break;
        }

        if (done + (uint64_t) n > most) {
            free(x);
            return llm_decode_fail(d, LLM_MEDIA_TOO_LONG, "the sound is "
                                   "longer than %u seconds, the most that is "
                                   "allowed", (unsigned)
                                   (most / (unsigned) info->samplerate));
        }

        llm_sound_mono(x, (size_t) n, info->channels);

        if (llm_decode_bytes(d, x, (size_t) n * sizeof(float)) != LLM_OK) {
            free(x);
            return LLM_ERROR;
        }
    }

    free(x);

    /* of a file that is cut off or damaged, what came before is no answer */

    if (sf_error(sf) != SF_ERR_NO_ERROR
        || (done < llm_sound_promise(info) && strcmp(name, "MP3") != 0))
    {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the %s file is damaged, "
                               "or ends early, after %.2f seconds%s%s", name,
                               (double) done / info->samplerate,
                               sf_error(sf) ? ": " : "",
                               sf_error(sf) ? llm_sound_reason(sf) : "");
    }

    return LLM_OK;
}


static void
llm_sound_open(const llm_decode_t *d, const char *name, llm_sound_file_t *f)
{
    llm_sound_label(d, name, &f->label);

    f->data = d->data;
    f->len = (sf_count_t) (d->len - f->label.skip + f->label.len);
    f->pos = 0;
}


static int
llm_sound_length(llm_decode_t *d, const char *name, const SF_INFO *info)
{
    uint64_t  most, frames;

    most = llm_sound_most(d, info);
    frames = llm_sound_promise(info);

    if (frames <= most || strcmp(name, "MP3") == 0) {
        return LLM_OK;
    }

    return llm_decode_fail(d, LLM_MEDIA_TOO_LONG, "the sound is %.2f seconds "
                           "long; at most %.0f are allowed",
                           ceil((double) frames * 100 / info->samplerate) / 100,
                           (double) most / info->samplerate);
}


static int
llm_sound_decode(llm_decode_t *d, const char *name)
{
    int               rc;
    SNDFILE          *sf;
    SF_INFO           info;
    SF_VIRTUAL_IO     io = { llm_sound_size, llm_sound_seek, llm_sound_read,
                             llm_sound_write, llm_sound_tell };
    llm_sound_file_t  file;
    llm_media_info_t  out;

    llm_sound_open(d, name, &file);
    memset(&info, 0, sizeof(info));
    sf = sf_open_virtual(&io, SFM_READ, &info, &file);

    if (sf == NULL) {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the %s file cannot be "
                               "read from byte %lld on: %s", name,
                               (long long) file.pos, llm_sound_reason(NULL));
    }

    memset(&out, 0, sizeof(out));
    rc = llm_sound_check(d, name, &info);

    if (rc == LLM_OK) {
        rc = llm_sound_length(d, name, &info);
    }

    if (rc == LLM_OK) {
        out.rate = (uint32_t) info.samplerate;
        out.channels = (uint32_t) info.channels;
        out.frames = llm_sound_promise(&info);

        rc = llm_decode_info(d, &out);
    }

    if (rc == LLM_OK) {
        rc = llm_sound_samples(d, name, sf, &info);
    }

    (void) sf_close(sf);

    return rc;
}

#else

static int
llm_sound_decode(llm_decode_t *d, const char *name)
{
    return llm_decode_fail(d, LLM_MEDIA_UNKNOWN, "%s files are not read by "
                           "this build, which has no libsndfile; WAV files are",
                           name);
}

#endif


int
llm_decode_sound(llm_decode_t *d)
{
    const llm_sound_format_t  *f;

    f = llm_sound_find(d);

    if (f && f->read) {
        return llm_sound_whole(d, f->name) == LLM_OK
               ? llm_sound_decode(d, f->name) : LLM_ERROR;
    }

    return llm_decode_fail(d, LLM_MEDIA_UNKNOWN, "the file is %s%s; WAV%s "
                           "are read", f ? "no sound that can be read, but "
                                         : "no sound that is known here",
                           f ? f->name : "",
                           LLM_SNDFILE ? ", FLAC, MP3, Ogg (Vorbis, Opus), "
                                         "AIFF, AU and CAF" : " files");
}
