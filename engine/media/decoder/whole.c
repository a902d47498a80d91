/*
 * Is a file of sound whole?  libsndfile reads what is there of one that is cut
 * off, and says no word of it, so the containers' own facts are looked at
 * before: sizes in headers, and marks of the end.  See decode.h.
 *
 * Nothing is believed but for this: a size is compared with what is there.
 * Headers that make no sense are left to libsndfile.
 *
 * A program that writes to a pipe leaves a size that it does not know yet.
 * Such a file ends where it ends; libsndfile is told so by a label if it would
 * take the size for another.
 */

#include "engine/media/decoder/decode.h"

/* sizes that programs write when they don't know one: zero, and those near the
   ends of signed and unsigned numbers (sox rounds 0x7f000000 down to whole
   frames) */
#define llm_whole_unknown(n)  ((n) == 0 || (n) >= 0x7e000000u)

#define LLM_AU_HEAD      12             /* bytes up to the sound's size */

#define LLM_OGG_HEAD     27             /* bytes of a page before its sizes */
#define LLM_OGG_FIRST    0x02           /* marks of a stream's pages */
#define LLM_OGG_LAST     0x04
#define LLM_OGG_STREAMS  16             /* that are followed */

typedef struct {
    const char  *name;
    int        (*whole)(llm_decode_t *d);
    void       (*label)(const llm_decode_t *d, llm_sound_label_t *label);
} llm_whole_t;

/* how a container has its chunks: each with a name of four bytes and a size */
typedef struct {
    size_t       first;                 /* where they begin */
    size_t       number;                /* bytes of a size */
    uint64_t     odd;                   /* 1: after an odd size comes a byte
                                           that it does not count */
    const char  *sound;                 /* name of the chunk of the sound */
} llm_chunks_t;

/* streams that have begun and not ended */
typedef struct {
    uint32_t     serial[LLM_OGG_STREAMS];
    size_t       n;
} llm_ogg_t;


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


/* where the bytes of the sound's chunk begin, and their size as it is said;
   LLM_ABSENT: there is no such chunk */

static int
llm_whole_chunk(const llm_decode_t *d, const llm_chunks_t *c, size_t *at,
    uint64_t *size)
{
    size_t          pos, head;
    uint64_t        n;
    const uint8_t  *p;

    head = 4 + c->number;

    for (pos = c->first; pos < d->len && d->len - pos >= head;
         pos += head + n)
    {
        p = d->data + pos;
        n = llm_decode_number(p + 4, c->number);

        if (memcmp(p, c->sound, 4) == 0) {
            *at = pos + head;
            *size = n;
            return LLM_OK;
        }

        if (n > d->len) {
            break;
        }

        n += n & c->odd;
    }

    return LLM_ABSENT;
}


/* after FORM, its size, and AIFF or AIFC */

static int
llm_whole_aiff(llm_decode_t *d)
{
    size_t    at;
    uint64_t  size;

    static const llm_chunks_t  chunks = { 12, 4, 1, "SSND" };

    return llm_whole_chunk(d, &chunks, &at, &size) != LLM_OK
           || llm_whole_unknown(size)
           ? LLM_OK : llm_whole_size(d, "AIFF", at, size);
}


/* ".snd", where the sound begins, and its size */

static int
llm_whole_au(llm_decode_t *d)
{
    uint64_t  at, size;

    if (d->len < LLM_AU_HEAD) {
        return LLM_OK;
    }

    at = llm_decode_number(d->data + 4, 4);
    size = llm_decode_number(d->data + 8, 4);

    return at > d->len || llm_whole_unknown(size)
           ? LLM_OK : llm_whole_size(d, "AU", at, size);
}


/* of unknown sizes libsndfile knows -1; others it believes */

static void
llm_au_label(const llm_decode_t *d, llm_sound_label_t *label)
{
    if (d->len >= LLM_AU_HEAD
        && llm_whole_unknown(llm_decode_number(d->data + 8, 4)))
    {
        label->at = 8;
        label->skip = 4;
        label->len = 4;
        memset(label->data, 0xff, 4);
    }
}


/* after "caff", a version and flags.  The size of the sound's chunk, if it is
   the last one, may be -1 */

static const llm_chunks_t  llm_caf_chunks = { 8, 8, 0, "data" };


static int
llm_whole_caf(llm_decode_t *d)
{
    size_t    at;
    uint64_t  size;

    return llm_whole_chunk(d, &llm_caf_chunks, &at, &size) != LLM_OK
           || size > INT64_MAX
           ? LLM_OK : llm_whole_size(d, "CAF", at, size);
}


/* libsndfile takes -1 for damage */

static void
llm_caf_label(const llm_decode_t *d, llm_sound_label_t *label)
{
    int       i;
    size_t    at;
    uint64_t  size;

    if (llm_whole_chunk(d, &llm_caf_chunks, &at, &size) != LLM_OK
        || size <= INT64_MAX)
    {
        return;
    }

    label->at = at - 8;
    label->skip = 8;
    label->len = 8;

    for (i = 0; i < 8; i++) {
        label->data[i] = (uint8_t) ((uint64_t) (d->len - at) >> (56 - 8 * i));
    }
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


static const llm_whole_t *
llm_whole_find(const char *name)
{
    size_t  i;

    static const llm_whole_t  formats[] = {
        { "Ogg", llm_whole_ogg, NULL },
        { "MP3", llm_mpeg_whole, llm_mpeg_label },
        { "AIFF", llm_whole_aiff, NULL },
        { "AU", llm_whole_au, llm_au_label },
        { "CAF", llm_whole_caf, llm_caf_label }
    };

    for (i = 0; i < llm_nelems(formats); i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return &formats[i];
        }
    }

    return NULL;
}


int
llm_sound_whole(llm_decode_t *d, const char *name)
{
    const llm_whole_t  *f;

    f = llm_whole_find(name);

    return f ? f->whole(d) : LLM_OK;
}


void
llm_sound_label(const llm_decode_t *d, const char *name,
    llm_sound_label_t *label)
{
    const llm_whole_t  *f;

    label->at = 0;
    label->skip = 0;
    label->len = 0;
    f = llm_whole_find(name);

    if (f && f->label) {
        f->label(d, label);
    }
}
