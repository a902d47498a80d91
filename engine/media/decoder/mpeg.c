/*
 * Is an MP3 file whole?  See decode.h.
 *
 * It is a row of frames, each with a header that tells its length, between tags
 * of any kind.  The first frame may hold no sound but how many frames follow
 * (Xing, Info, VBRI); a file without it is whole if its last frame is, and a
 * cut between two of its frames cannot be seen.
 *
 * Frames of a free bit rate tell no length: their file counts as whole.
 */

#include "engine/media/decoder/decode.h"

typedef struct {
    const uint8_t  *first;              /* header of the first frame; NULL: not
                                           known yet */
    const uint8_t  *last;               /* a frame that is cut off, or NULL */
    uint64_t        n;                  /* whole ones */
} llm_mpeg_t;

/* what the first frame says of the file; 0: nothing */
typedef struct {
    uint64_t        frames;
    uint64_t        bytes;              /* from the first frame on */
} llm_mpeg_says_t;


/* bytes of the frame whose header is p[4]; 0: it is none, or tells no length */

static size_t
llm_mpeg_length(const uint8_t *p)
{
    size_t    bits, hertz, pad;
    unsigned  version, layer, row;

    static const uint16_t  kbits[5][15] = {
        { 0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416,
          448 },
        { 0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384 },
        { 0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320 },
        { 0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256 },
        { 0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160 }
    };

    static const uint16_t  rates[3] = { 44100, 48000, 32000 };

    version = p[1] >> 3 & 3;            /* 3: 1, 2: 2, 0: 2.5 */
    layer = 4 - (p[1] >> 1 & 3);        /* 4: there is none */

    if (p[0] != 0xff || (p[1] & 0xe0) != 0xe0 || version == 1 || layer == 4
        || (p[2] >> 4) == 15 || (p[2] >> 2 & 3) == 3)
    {
        return 0;
    }

    row = version == 3 ? layer - 1 : layer == 1 ? 3 : 4;
    bits = kbits[row][p[2] >> 4] * (size_t) 1000;
    hertz = (size_t) rates[p[2] >> 2 & 3] >> (version == 3 ? 0
                                              : version == 2 ? 1 : 2);
    pad = p[2] >> 1 & 1;

    if (bits == 0) {
        return 0;
    }

    return layer == 1 ? (12 * bits / hertz + pad) * 4
           : (layer == 3 && version != 3 ? 72 : 144) * bits / hertz + pad;
}


/* bytes of the frame at pos, which has the version, layer and rate of the
   first; 0: there is none */

static size_t
llm_mpeg_frame(const llm_decode_t *d, const llm_mpeg_t *m, size_t pos)
{
    const uint8_t  *p;

    if (pos > d->len || d->len - pos < 4) {
        return 0;
    }

    p = d->data + pos;

    if (m->first && (((m->first[1] ^ p[1]) & 0x1e)
                     || ((m->first[2] ^ p[2]) & 0x0c)))
    {
        return 0;
    }

    return llm_mpeg_length(p);
}


/* from pos on, the first frame behind which there is another or the end; the
   file's length: there is none */

static size_t
llm_mpeg_find(const llm_decode_t *d, const llm_mpeg_t *m, size_t pos)
{
    size_t      size;
    llm_mpeg_t  like;

    for ( /* void */ ; pos < d->len; pos++) {
        size = llm_mpeg_frame(d, m, pos);

        if (size == 0 || size > d->len - pos) {
            continue;
        }

        like.first = d->data + pos;

        if (size == d->len - pos || llm_mpeg_frame(d, &like, pos + size)) {
            return pos;
        }
    }

    return d->len;
}


/* behind the tags that a file begins with */

static size_t
llm_mpeg_start(const llm_decode_t *d)
{
    size_t          pos, size;
    const uint8_t  *p;

    for (pos = 0; d->len - pos >= 10; pos += size) {
        p = d->data + pos;

        if (memcmp(p, "ID3", 3) != 0) {
            break;
        }

        /* 7 bits of each byte; a tag may have its header again at its end */
        size = (size_t) (p[6] & 0x7f) << 21 | (size_t) (p[7] & 0x7f) << 14
               | (size_t) (p[8] & 0x7f) << 7 | (p[9] & 0x7f);
        size += p[5] & 0x10 ? 20 : 10;

        if (size > d->len - pos) {
            return d->len;
        }
    }

    return pos;
}


/* counts the frames from pos on, where there is one */

static void
llm_mpeg_count(const llm_decode_t *d, llm_mpeg_t *m, size_t pos)
{
    size_t  size;

    for (m->first = d->data + pos; pos < d->len; pos += size) {
        size = llm_mpeg_frame(d, m, pos);

        if (size > d->len - pos
            || (d->len - pos < 4 && d->data[pos] == 0xff))
        {
            m->last = d->data + pos;
            return;
        }

        if (size == 0) {
            /* a tag, or what has been damaged */
            size = llm_mpeg_find(d, m, pos + 1) - pos;

        } else {
            m->n++;
        }
    }
}


/* where a frame of layer 3 has what it says of the file: behind its header and
   what tells how its sound is packed */

static size_t
llm_mpeg_side(const uint8_t *p)
{
    int  mono, old;

    old = (p[1] >> 3 & 3) == 3;
    mono = (p[3] >> 6) == 3;

    return 4 + (old ? (mono ? 17 : 32) : (mono ? 9 : 17));
}


static void
llm_mpeg_read(const uint8_t *p, size_t size, llm_mpeg_says_t *says)
{
    size_t    at;
    uint32_t  flags;

    memset(says, 0, sizeof(*says));
    at = llm_mpeg_side(p);

    if (size >= at + 16 && (memcmp(p + at, "Xing", 4) == 0
                            || memcmp(p + at, "Info", 4) == 0))
    {
        flags = (uint32_t) llm_decode_number(p + at + 4, 4);
        at += 8;

        if (flags & 1) {
            says->frames = llm_decode_number(p + at, 4);
            at += 4;
        }

        if (flags & 2) {
            says->bytes = llm_decode_number(p + at, 4);
        }

    } else if (size >= 54 && memcmp(p + 36, "VBRI", 4) == 0) {
        says->bytes = llm_decode_number(p + 46, 4);
        says->frames = llm_decode_number(p + 50, 4);
    }
}


/* some programs count the first frame, which has no sound */

static int
llm_mpeg_has_all(const llm_decode_t *d, const llm_mpeg_t *m,
    const llm_mpeg_says_t *says)
{
    if (says->frames) {
        return m->n > says->frames
               || (m->n == says->frames && m->last == NULL);
    }

    return says->bytes ? says->bytes <= d->len - (size_t) (m->first - d->data)
                       : m->last == NULL;
}


/* counts all frames, and reads what the first one says of them; LLM_ABSENT:
   they cannot be counted */

static int
llm_mpeg_look(const llm_decode_t *d, llm_mpeg_t *m, llm_mpeg_says_t *says)
{
    size_t  pos;

    memset(m, 0, sizeof(*m));
    pos = llm_mpeg_start(d);

    if (llm_mpeg_frame(d, m, pos) == 0) {
        if (d->len - pos >= 4 && d->data[pos] == 0xff) {
            return LLM_ABSENT;
        }

        pos = llm_mpeg_find(d, m, pos);
    }

    if (pos == d->len) {
        return LLM_ABSENT;
    }

    llm_mpeg_count(d, m, pos);
    llm_mpeg_read(m->first, llm_min(llm_mpeg_length(m->first), d->len - pos),
                  says);

    return LLM_OK;
}


int
llm_mpeg_whole(llm_decode_t *d)
{
    size_t            there;
    llm_mpeg_t        m;
    llm_mpeg_says_t   says;

    if (llm_mpeg_look(d, &m, &says) != LLM_OK
        || llm_mpeg_has_all(d, &m, &says))
    {
        return LLM_OK;
    }

    there = d->len - (size_t) (m.first - d->data);

    if (says.frames) {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the MP3 file is cut off: "
                               "its header says %llu frames, but the file ends "
                               "after %llu of them",
                               (unsigned long long) says.frames,
                               (unsigned long long) (m.n ? m.n - 1 : 0));
    }

    if (says.bytes) {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the MP3 file is cut off: "
                               "its header says %llu bytes, but the file ends "
                               "after %zu of them",
                               (unsigned long long) says.bytes, there);
    }

    return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the MP3 file is cut off: its "
                           "last frame, at byte %zu, is not whole",
                           (size_t) (m.last - d->data));
}


void
llm_mpeg_label(const llm_decode_t *d, llm_sound_label_t *label)
{
    int               i;
    size_t            at;
    uint8_t          *p;
    llm_mpeg_t        m;
    llm_mpeg_says_t   says;

    if (llm_mpeg_look(d, &m, &says) != LLM_OK || (m.first[1] & 6) != 2
        || m.n <= says.frames + (says.frames ? 1 : 0) || m.n > UINT32_MAX)
    {
        return;
    }

    /* the header, of a frame that is long enough and without a checksum; no
       sound; a mark, what follows, and that */

    p = label->data;
    memset(p, 0, sizeof(label->data));
    memcpy(p, m.first, 4);
    p[1] |= 1;
    p[2] = (uint8_t) (0x80 | (p[2] & 0x0c));
    at = llm_mpeg_side(p);
    memcpy(p + at, "Info\0\0\0\1", 8);

    for (i = 0; i < 4; i++) {
        p[at + 8 + i] = (uint8_t) (m.n >> (24 - 8 * i));
    }

    label->skip = (size_t) (m.first - d->data);
    label->len = llm_mpeg_length(p);
}
