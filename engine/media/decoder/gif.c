/*
 * The first picture of a GIF, by giflib, on its screen; what the picture leaves
 * free, and its transparent colour, are transparent.
 */

#include "engine/media/decoder/decode.h"

#if __has_include(<gif_lib.h>)

#include <gif_lib.h>

#define LLM_GIF_GCB      0xf9           /* graphics control extension */
#define LLM_GIF_RECORDS  10000          /* before the first picture */

typedef struct {
    llm_decode_t  *d;
    size_t         at;
} llm_gif_file_t;


static int
llm_gif_bytes(GifFileType *gif, GifByteType *to, int n)
{
    size_t           take;
    llm_gif_file_t  *f;

    f = gif->UserData;
    take = llm_min((size_t) llm_max(n, 0), f->d->len - f->at);

    memcpy(to, f->d->data + f->at, take);
    f->at += take;

    return (int) take;
}


static int
llm_gif_broken(llm_decode_t *d, const char *what)
{
    return llm_decode_fail(d, LLM_MEDIA_BROKEN,
                           "the GIF file is damaged: %s", what);
}


/* reads an extension's blocks; *transparent: the colour, if it is one that says
   so */

static int
llm_gif_extension(GifFileType *gif, int *transparent)
{
    int           code;
    GifByteType  *block;

    if (DGifGetExtension(gif, &code, &block) != GIF_OK) {
        return LLM_ERROR;
    }

    while (block) {
        if (code == LLM_GIF_GCB && block[0] == 4) {
            *transparent = block[1] & 1 ? block[4] : -1;
        }

        if (DGifGetExtensionNext(gif, &block) != GIF_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* goes to the first picture and reads its head */

static int
llm_gif_find(GifFileType *gif, int *transparent)
{
    int            n;
    GifRecordType  type;

    for (n = 0; n < LLM_GIF_RECORDS; n++) {
        if (DGifGetRecordType(gif, &type) != GIF_OK) {
            return LLM_ERROR;
        }

        if (type == IMAGE_DESC_RECORD_TYPE) {
            return DGifGetImageDesc(gif) == GIF_OK ? LLM_OK : LLM_ERROR;
        }

        if (type != EXTENSION_RECORD_TYPE
            || llm_gif_extension(gif, transparent) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_ERROR;
}


static void
llm_gif_row(const GifFileType *gif, const ColorMapObject *map, int transparent,
    const uint8_t *line, uint8_t *to)
{
    int          x, c;
    GifColorType  color = { 0, 0, 0 };

    for (x = 0; x < gif->Image.Width; x++, to += 4) {
        c = line[x];

        if (c == transparent) {
            continue;
        }

        if (c < map->ColorCount) {
            color = map->Colors[c];

        } else {
            color = (GifColorType) { 0, 0, 0 };
        }

        to[0] = color.Red;
        to[1] = color.Green;
        to[2] = color.Blue;
        to[3] = 255;
    }
}


static int
llm_gif_rows(llm_decode_t *d, GifFileType *gif, llm_picture_t *p,
    int transparent)
{
    int              pass, passes, y, rc;
    uint8_t         *line, *to;
    ColorMapObject  *map;

    static const struct { int first, step; }  weave[] = {
        { 0, 8 }, { 4, 8 }, { 2, 4 }, { 1, 2 }
    };

    map = gif->Image.ColorMap ? gif->Image.ColorMap : gif->SColorMap;

    if (map == NULL) {
        return llm_gif_broken(d, "it has no colours");
    }

    line = malloc((size_t) gif->Image.Width);

    if (line == NULL) {
        return llm_decode_fail(d, LLM_MEDIA_NO_MEMORY, "no memory for a row");
    }

    rc = LLM_OK;
    passes = gif->Image.Interlace ? 4 : 1;

    for (pass = 0; rc == LLM_OK && pass < passes; pass++) {
        y = passes == 1 ? 0 : weave[pass].first;

        while (y < gif->Image.Height) {
            if (DGifGetLine(gif, line, gif->Image.Width) != GIF_OK) {
                rc = llm_gif_broken(d, "it ends early");
                break;
            }

            to = p->pixels + ((size_t) (gif->Image.Top + y) * p->width
                              + (size_t) gif->Image.Left) * 4;
            llm_gif_row(gif, map, transparent, line, to);
            y += passes == 1 ? 1 : weave[pass].step;
        }
    }

    free(line);

    return rc;
}


static int
llm_gif_read(llm_decode_t *d, GifFileType *gif, llm_picture_t *p)
{
    int       transparent;
    uint64_t  width, height;

    transparent = -1;

    if (llm_gif_find(gif, &transparent) != LLM_OK) {
        return llm_gif_broken(d, "it has no picture");
    }

    if (gif->Image.Left < 0 || gif->Image.Top < 0 || gif->Image.Width <= 0
        || gif->Image.Height <= 0)
    {
        return llm_gif_broken(d, "its picture has no pixels");
    }

    /* a picture may be larger than the screen */
    width = (uint64_t) llm_max(gif->SWidth,
                               gif->Image.Left + gif->Image.Width);
    height = (uint64_t) llm_max(gif->SHeight,
                                gif->Image.Top + gif->Image.Height);

    if (llm_picture_start(d, p, width, height, 4) != LLM_OK) {
        return LLM_ERROR;
    }

    p->alpha = 1;

    return llm_gif_rows(d, gif, p, transparent);
}


int
llm_decode_gif(llm_decode_t *d, llm_picture_t *p)
{
    int              rc, code;
    GifFileType     *gif;
    llm_gif_file_t   f = { d, 0 };

    gif = DGifOpen(&f, llm_gif_bytes, &code);

    if (gif == NULL) {
        return llm_gif_broken(d, "its head cannot be read");
    }

    rc = llm_gif_read(d, gif, p);
    (void) DGifCloseFile(gif, &code);

    return rc;
}

#endif
