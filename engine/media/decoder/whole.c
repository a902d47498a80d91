/*
 * Is a file of sound whole?  libsndfile reads what is there of one that is cut
 * off, and says no word of it, so the containers' own facts are looked at
 * before: sizes in headers, and marks of the end.  See decode.h.
 *
 * Nothing is believed but for this: a size is compared with what is there.
 * Headers that make no sense are left to libsndfile.
 */

#include "engine/media/decoder/decode.h"

/* sizes that programs write when they don't know one: zero, and those near the
   ends of signed and unsigned numbers (sox rounds 0x7f000000 down to whole
   frames) */
#define llm_whole_unknown(n)  ((n) == 0 || (n) >= 0x7e000000u)

#define LLM_OGG_HEAD     27             /* bytes of a page before its sizes */
#define LLM_OGG_FIRST    0x02           /* marks of a stream's pages */
#define LLM_OGG_LAST     0x04
#define LLM_OGG_STREAMS  16             /* that are followed */

typedef struct {
    const char  *name;
    int        (*whole)(llm_decode_t *d);
} llm_whole_t;

/* streams that have begun and not ended */
typedef struct {
    uint32_t     serial[LLM_OGG_STREAMS];
    size_t       n;
} llm_ogg_t;


/* a number of n bytes, the highest first */

static uint64_t
llm_whole_number(const uint8_t *p, size_t n)
{
    uint64_t  v;

    for (v = 0; n; n--) {
        v = v << 8 | *p++;
    }

    return v;
}


/* the sound's bytes begin at `at`, which is in the file or its end */

static int
llm_whole_size(llm_decode_t *d, const char *name, size_t at, uint64_t size)
{
    if (size <= d->len - at) {
        return LLM_OK;
    }

    return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the %s file is cut off: its "
                           "sound begins at byte %zu and should have %llu "
                           "bytes, but the file ends after %zu of them", name,
                           at, (unsigned long long) size, d->len - at);
}


/* FORM, its size, AIFF or AIFC; then chunks of an even length */

static int
llm_whole_aiff(llm_decode_t *d)
{
    size_t          pos;
    uint64_t        size;
    const uint8_t  *p;

    for (pos = 12; pos < d->len && d->len - pos >= 8; pos += 8 + size) {
        p = d->data + pos;
        size = llm_whole_number(p + 4, 4);

        if (memcmp(p, "SSND", 4) == 0) {
            return llm_whole_unknown(size)
                   ? LLM_OK : llm_whole_size(d, "AIFF", pos + 8, size);
        }

        size += size & 1;
    }

    return LLM_OK;
}


/* ".snd", where the sound begins, and its size */

static int
llm_whole_au(llm_decode_t *d)
{
    uint64_t  at, size;

    if (d->len < 12) {
        return LLM_OK;
    }

    at = llm_whole_number(d->data + 4, 4);
    size = llm_whole_number(d->data + 8, 4);

    return at > d->len || llm_whole_unknown(size)
           ? LLM_OK : llm_whole_size(d, "AU", at, size);
}


/* "caff", a version and flags; then chunks.  The size of the sound's, if it is
   the last one, may be -1 */

static int
llm_whole_caf(llm_decode_t *d)
{
    size_t          pos;
    uint64_t        size;
    const uint8_t  *p;

    for (pos = 8; pos < d->len && d->len - pos >= 12; pos += 12 + size) {
        p = d->data + pos;
        size = llm_whole_number(p + 4, 8);

        if (memcmp(p, "data", 4) == 0) {
            return size > INT64_MAX
                   ? LLM_OK : llm_whole_size(d, "CAF", pos + 12, size);
        }

        if (size > d->len) {
            break;
        }
    }

    return LLM_OK;
}


/* p: a page's header */

static void
llm_ogg_page(llm_ogg_t *o, const uint8_t *p)
{
    size_t    i;
    uint32_t  serial;

    memcpy(&serial, p + 14, sizeof(serial));

    for (i = 0; i < o->n && o->serial[i] != serial; i++) {
        /* void */
    }

    if (i < o->n) {
        if (p[5] & LLM_OGG_LAST) {
            o->serial[i] = o->serial[--o->n];
        }

    } else if ((p[5] & LLM_OGG_FIRST) && !(p[5] & LLM_OGG_LAST)
               && o->n < LLM_OGG_STREAMS)
    {
        o->serial[o->n++] = serial;
    }
}


/* all bytes of the page at the beginning of these, as far as they tell */

static size_t
llm_ogg_size(const uint8_t *p, size_t len)
{
    size_t  i, size;

    if (len < LLM_OGG_HEAD || len < LLM_OGG_HEAD + (size_t) p[26]) {
        return LLM_OGG_HEAD + (len < LLM_OGG_HEAD ? 0 : (size_t) p[26]);
    }

    size = LLM_OGG_HEAD + (size_t) p[26];

    for (i = 0; i < p[26]; i++) {
        size += p[LLM_OGG_HEAD + i];
    }

    return size;
}


/* pages; what lies between them is nobody's.  The last one of each stream has
   a mark */

static int
llm_whole_ogg(llm_decode_t *d)
{
    size_t          pos, size, rest;
    llm_ogg_t       o;
    const uint8_t  *p;

    o.n = 0;

    for (pos = 0; pos < d->len; pos += size) {
        p = memmem(d->data + pos, d->len - pos, "OggS", 4);

        if (p == NULL) {
            break;
        }

        pos = (size_t) (p - d->data);
        rest = d->len - pos;
        size = llm_ogg_size(p, rest);

        if (size > rest) {
            return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the Ogg file is cut "
                                   "off: its page at byte %zu should have "
                                   "%zu bytes or more, but the file ends after "
                                   "%zu of them", pos, size, rest);
        }

        llm_ogg_page(&o, p);
    }

    if (o.n) {
        return llm_decode_fail(d, LLM_MEDIA_BROKEN, "the Ogg file is cut off: "
                               "its last page is not marked as the end of a "
                               "stream, as that of a whole file is");
    }

    return LLM_OK;
}


int
llm_sound_whole(llm_decode_t *d, const char *name)
{
    size_t  i;

    static const llm_whole_t  formats[] = {
        { "Ogg", llm_whole_ogg },
        { "MP3", llm_mpeg_whole },
        { "AIFF", llm_whole_aiff },
        { "AU", llm_whole_au },
        { "CAF", llm_whole_caf }
    };

    for (i = 0; i < llm_nelems(formats); i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return formats[i].whole(d);
        }
    }

    return LLM_OK;
}
