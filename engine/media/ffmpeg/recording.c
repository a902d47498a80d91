/*
 * A recording's stream of sound, packet by packet; see recording.h.
 *
 * What a header promises is not believed: samples are counted as they come.
 * The rate is the first frame's, as the one in the header may be half of it
 * (HE-AAC).
 */

#include "engine/media/ffmpeg/recording.h"
#include "engine/media/recording.h"

#include <stdio.h>

static const struct {
    llm_recording_t   what;
    const char       *name;
    const char       *demuxer;          /* FFmpeg's name of it */
} llm_recordings[] = {
    { LLM_RECORDING_WEBM, "WebM or Matroska", "matroska" },
    { LLM_RECORDING_MP4, "MP4 or M4A", "mov" },
    { LLM_RECORDING_AAC, "AAC", "aac" }
};


void
llm_recording_formats(void)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_recordings); i++) {
        printf("%s %s\n", llm_recordings[i].name, LLM_FFMPEG ? "yes" : "no");
    }
}


#if LLM_FFMPEG

#include "engine/media/ffmpeg/mono.h"
#include "engine/media/wav.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/mem.h>
#include <math.h>

#define LLM_AV_BUFFER   32768           /* bytes that FFmpeg reads at once */
#define LLM_AV_STREAMS  64              /* most streams of a file */

typedef struct {
    llm_decode_t      *d;
    const char        *name;            /* of the format */
    size_t             pos;             /* in d->data */
    AVIOContext       *io;
    AVFormatContext   *file;
    AVCodecContext    *codec;
    AVPacket          *packet;
    AVFrame           *frame;
    int                stream;
    float             *x;               /* a frame's samples */
    size_t             cap;             /* of x */
    uint32_t           rate;            /* 0: no frame has come */
    uint64_t           done;            /* samples */
} llm_av_t;

/* what decodes each codec: FFmpeg may have several for one */
static const struct {
    enum AVCodecID   id;
    const char      *decoder;
} llm_av_codecs[] = {
    { AV_CODEC_ID_OPUS, "opus" },
    { AV_CODEC_ID_AAC, "aac" },
    { AV_CODEC_ID_VORBIS, "vorbis" },
    { AV_CODEC_ID_MP3, "mp3float" },
    { AV_CODEC_ID_ALAC, "alac" },
    { AV_CODEC_ID_FLAC, "flac" },
    { AV_CODEC_ID_PCM_S16LE, "pcm_s16le" },
    { AV_CODEC_ID_PCM_S16BE, "pcm_s16be" },
    { AV_CODEC_ID_PCM_S24LE, "pcm_s24le" },
    { AV_CODEC_ID_PCM_S24BE, "pcm_s24be" },
    { AV_CODEC_ID_PCM_F32LE, "pcm_f32le" }
};


static int
llm_av_read(void *ctx, uint8_t *buf, int size)
{
    size_t     n;
    llm_av_t  *a = ctx;

    n = llm_min(a->d->len - a->pos, (size_t) size);

    if (n == 0) {
        return AVERROR_EOF;
    }

    memcpy(buf, a->d->data + a->pos, n);
    a->pos += n;

    return (int) n;
}


/* beyond the end there is nothing: a header that points there is wrong */

static int64_t
llm_av_seek(void *ctx, int64_t offset, int whence)
{
    int64_t    from;
    llm_av_t  *a = ctx;

    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE:  return (int64_t) a->d->len;
    case SEEK_SET:     from = 0;                      break;
    case SEEK_CUR:     from = (int64_t) a->pos;       break;
    case SEEK_END:     from = (int64_t) a->d->len;    break;
    default:           return AVERROR(EINVAL);
    }

    if (__builtin_add_overflow(from, offset, &from) || from < 0
        || from > (int64_t) a->d->len)
    {
        return AVERROR(EINVAL);
    }

    a->pos = (size_t) from;

    return from;
}


/* a file that names others is not followed */

static int
llm_av_no_file(AVFormatContext *file, AVIOContext **io, const char *url,
    int flags, AVDictionary **options)
{
    (void) file;
    (void) io;
    (void) url;
    (void) flags;
    (void) options;

    return AVERROR(EPERM);
}


static int
llm_av_broken(llm_av_t *a, int rc)
{
    char  why[AV_ERROR_MAX_STRING_SIZE];

    if (rc == AVERROR(ENOMEM)) {
        return llm_decode_fail(a->d, LLM_MEDIA_NO_MEMORY, "the %s file takes "
                               "too much memory", a->name);
    }

    if (av_strerror(rc, why, sizeof(why)) != 0 || rc == AVERROR_EOF) {
        strcpy(why, "it ends early");
    }

    return llm_decode_fail(a->d, LLM_MEDIA_BROKEN, "the %s file is damaged "
                           "after %.2f seconds: %s", a->name,
                           a->rate ? (double) a->done / a->rate : 0.0, why);
}


static int
llm_av_open(llm_av_t *a, const char *demuxer)
{
    int                    rc;
    uint8_t               *buf;
    const AVInputFormat   *format;

    buf = av_malloc(LLM_AV_BUFFER);
    a->io = buf ? avio_alloc_context(buf, LLM_AV_BUFFER, 0, a, llm_av_read,
                                     NULL, llm_av_seek)
                : NULL;

    if (a->io == NULL) {
        av_free(buf);
        return AVERROR(ENOMEM);
    }

    a->file = avformat_alloc_context();
    a->packet = av_packet_alloc();
    a->frame = av_frame_alloc();

    if (a->file == NULL || a->packet == NULL || a->frame == NULL) {
        return AVERROR(ENOMEM);
    }

    a->file->pb = a->io;
    a->file->flags |= AVFMT_FLAG_CUSTOM_IO;
    a->file->io_open = llm_av_no_file;
    a->file->max_streams = LLM_AV_STREAMS;

    format = av_find_input_format(demuxer);

    if (format == NULL) {
        return AVERROR_DEMUXER_NOT_FOUND;
    }

    /* frees a->file if it fails */
    rc = avformat_open_input(&a->file, NULL, format, NULL);

    return rc < 0 ? rc : 0;
}


static const AVCodec *
llm_av_decoder(enum AVCodecID id)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_av_codecs); i++) {
        if (llm_av_codecs[i].id == id) {
            return avcodec_find_decoder_by_name(llm_av_codecs[i].decoder);
        }
    }

    return NULL;
}


/* the first audio stream, or the first one that is marked as the default; not
   by av_find_best_stream(), for which a stream without a rate, as ADTS has them
   before its first packet, is none */

static int
llm_av_stream(const AVFormatContext *file)
{
    int              found;
    unsigned         i;
    const AVStream  *s;

    found = -1;

    for (i = 0; i < file->nb_streams; i++) {
        s = file->streams[i];

        if (s->codecpar->codec_type == AVMEDIA_TYPE_AUDIO
            && (found < 0
                || (s->disposition & ~file->streams[found]->disposition
                    & AV_DISPOSITION_DEFAULT)))
        {
            found = (int) i;
        }
    }

    return found;
}


/* finds the sound and its decoder; others' packets are not even read */

static int
llm_av_choose(llm_av_t *a)
{
    int                       rc;
    unsigned                  i;
    const AVCodec            *decoder;
    const AVCodecParameters  *p;

    a->stream = llm_av_stream(a->file);

    if (a->stream < 0) {
        return llm_decode_fail(a->d, LLM_MEDIA_BROKEN, "the %s file has no "
                               "sound", a->name);
    }

    for (i = 0; i < a->file->nb_streams; i++) {
        a->file->streams[i]->discard = (int) i == a->stream ? AVDISCARD_DEFAULT
                                                            : AVDISCARD_ALL;
    }

    p = a->file->streams[a->stream]->codecpar;
    decoder = llm_av_decoder(p->codec_id);

    if (decoder == NULL) {
        return llm_decode_fail(a->d, LLM_MEDIA_UNKNOWN, "the sound in the %s "
                               "file is %s; Opus, AAC, Vorbis, MP3, ALAC, FLAC "
                               "and PCM are read", a->name,
                               avcodec_get_name(p->codec_id));
    }

    a->codec = avcodec_alloc_context3(decoder);

    if (a->codec == NULL) {
        return llm_av_broken(a, AVERROR(ENOMEM));
    }

    rc = avcodec_parameters_to_context(a->codec, p);

    if (rc >= 0) {
        a->codec->thread_count = 1;
        a->codec->pkt_timebase = a->file->streams[a->stream]->time_base;
        rc = avcodec_open2(a->codec, decoder, NULL);
    }

    return rc < 0 ? llm_av_broken(a, rc) : LLM_OK;
}


static int
llm_av_first(llm_av_t *a, uint32_t channels)
{
    int               rate;
    llm_media_info_t  info;

    rate = a->frame->sample_rate;

    if (rate < LLM_AUDIO_MIN_RATE || rate > LLM_AUDIO_MAX_RATE) {
        return llm_decode_fail(a->d, LLM_MEDIA_BROKEN, "the %s file's sample "
                               "rate is %d Hz; it may be %u to %u", a->name,
                               rate, LLM_AUDIO_MIN_RATE, LLM_AUDIO_MAX_RATE);
    }

    memset(&info, 0, sizeof(info));
    info.rate = a->rate = (uint32_t) rate;
    info.channels = channels;

    return llm_decode_info(a->d, &info);
}


static int
llm_av_frame(llm_av_t *a)
{
    int        channels;
    float     *x;
    size_t     n;
    uint64_t   most;

    channels = a->frame->ch_layout.nb_channels;

    if (a->frame->nb_samples <= 0) {
        return LLM_OK;
    }

    if (channels < 1 || channels > LLM_AUDIO_MAX_CHANNELS) {
        return llm_decode_fail(a->d, LLM_MEDIA_BROKEN, "the %s file has %d "
                               "channels; it may have 1 to %u", a->name,
                               channels, LLM_AUDIO_MAX_CHANNELS);
    }

    if (a->rate == 0 && llm_av_first(a, (uint32_t) channels) != LLM_OK) {
        return LLM_ERROR;
    }

    if ((int64_t) a->rate != a->frame->sample_rate) {
        return llm_decode_fail(a->d, LLM_MEDIA_BROKEN, "the %s file's sample "
                               "rate changes from %u to %d Hz", a->name,
                               (unsigned) a->rate, a->frame->sample_rate);
    }

    n = (size_t) a->frame->nb_samples;
    most = llm_min((uint64_t) a->rate * a->d->limits->seconds,
                   a->d->limits->samples);

    if (a->done + n > most) {
        return llm_decode_fail(a->d, LLM_MEDIA_TOO_LONG, "the sound is longer "
                               "than %u seconds, the most that is allowed",
                               (unsigned) (most / a->rate));
    }

    if (n > a->cap) {
        x = realloc(a->x, n * sizeof(float));

        if (x == NULL) {
            return llm_av_broken(a, AVERROR(ENOMEM));
        }

        a->x = x;
        a->cap = n;
    }

    if (llm_mono(a->frame, (uint32_t) channels, a->x) != LLM_OK) {
        return llm_av_broken(a, AVERROR_PATCHWELCOME);
    }

    a->done += n;

    return llm_decode_bytes(a->d, a->x, n * sizeof(float));
}


/* a packet to the decoder, NULL at the end, and the frames that it has then */

static int
llm_av_decode(llm_av_t *a, const AVPacket *packet)
{
    int  rc;

    rc = avcodec_send_packet(a->codec, packet);

    if (rc < 0) {
        return llm_av_broken(a, rc);
    }

    for ( ;; ) {
        rc = avcodec_receive_frame(a->codec, a->frame);

        if (rc == AVERROR(EAGAIN) || rc == AVERROR_EOF) {
            return LLM_OK;
        }

        if (rc < 0) {
            return llm_av_broken(a, rc);
        }

        rc = llm_av_frame(a);
        av_frame_unref(a->frame);

        if (rc != LLM_OK) {
            return rc;
        }
    }
}


/* of a file that is cut off or damaged, what came before is no answer */

static int
llm_av_packets(llm_av_t *a)
{
    int  rc;

    for ( ;; ) {
        rc = av_read_frame(a->file, a->packet);

        if (rc == AVERROR_EOF) {
            rc = llm_av_decode(a, NULL);
            break;
        }

        if (rc < 0 || a->packet->flags & AV_PKT_FLAG_CORRUPT) {
            return llm_av_broken(a, rc < 0 ? rc : AVERROR_EOF);
        }

        rc = a->packet->stream_index == a->stream
             ? llm_av_decode(a, a->packet) : LLM_OK;
        av_packet_unref(a->packet);

        if (rc != LLM_OK) {
            return rc;
        }
    }

    return rc == LLM_OK && a->done == 0 ? llm_av_broken(a, AVERROR_EOF) : rc;
}


static void
llm_av_close(llm_av_t *a)
{
    avcodec_free_context(&a->codec);
    avformat_close_input(&a->file);
    av_packet_free(&a->packet);
    av_frame_free(&a->frame);

    if (a->io) {
        av_freep(&a->io->buffer);
        avio_context_free(&a->io);
    }

    free(a->x);
}


static int
llm_recording_decode(llm_decode_t *d, const char *name, const char *demuxer)
{
    int       rc;
    llm_av_t  a;

    av_log_set_level(AV_LOG_QUIET);

    memset(&a, 0, sizeof(a));
    a.d = d;
    a.name = name;

    rc = llm_av_open(&a, demuxer);
    rc = rc < 0 ? llm_av_broken(&a, rc) : llm_av_choose(&a);

    if (rc == LLM_OK) {
        rc = llm_av_packets(&a);
    }

    llm_av_close(&a);

    return rc;
}

#else

static int
llm_recording_decode(llm_decode_t *d, const char *name, const char *demuxer)
{
    (void) demuxer;

    return llm_decode_fail(d, LLM_MEDIA_UNKNOWN, "%s files are not read by "
                           "this build, which has no FFmpeg (libavformat)",
                           name);
}

#endif


int
llm_decode_recording(llm_decode_t *d)
{
    size_t           i;
    llm_recording_t  what;

    what = llm_recording_find(d->data, d->len);

    for (i = 0; i < llm_nelems(llm_recordings); i++) {
        if (llm_recordings[i].what == what) {
            return llm_recording_decode(d, llm_recordings[i].name,
                                        llm_recordings[i].demuxer);
        }
    }

    return llm_decode_fail(d, LLM_MEDIA_UNKNOWN, "the file is no recording "
                           "that is known here");
}
