/*
 * JPEG by libjpeg (libjpeg-turbo), with its exact inverse transform and smooth
 * chroma, as Pillow decodes: baseline and progressive, grey, colour and CMYK.
 */

#include "engine/media/decoder/decode.h"

#if __has_include(<jpeglib.h>)

#include <setjmp.h>
#include <stdio.h>

/* these need stdio.h before them */
#include <jpeglib.h>
#include <jerror.h>

/* A progressive file refines its picture scan by scan; each one costs a pass
   over all of it, and encoders write about ten. */
#define LLM_JPEG_SCANS  200

typedef struct {
    struct jpeg_decompress_struct  jpeg;
    struct jpeg_error_mgr          error;
    struct jpeg_progress_mgr       progress;
    jmp_buf                        jump;
    llm_decode_t                  *d;
    uint8_t                       *row; /* of CMYK */
} llm_jpeg_t;


static void
llm_jpeg_exit(j_common_ptr jpeg)
{
    char         msg[JMSG_LENGTH_MAX];
    llm_jpeg_t  *s;

    s = jpeg->client_data;
    jpeg->err->format_message(jpeg, msg);

    (void) llm_decode_fail(s->d, jpeg->err->msg_code == JERR_OUT_OF_MEMORY
                                 ? LLM_MEDIA_NO_MEMORY : LLM_MEDIA_BROKEN,
                           "the JPEG file is damaged: %s", msg);
    longjmp(s->jump, 1);
}


/* warnings are for damage that does not end the picture, but one: the library
   makes up what is missing at the end */

static void
llm_jpeg_message(j_common_ptr jpeg, int level)
{
    llm_jpeg_t  *s;

    s = jpeg->client_data;

    if (level < 0 && jpeg->err->msg_code == JWRN_JPEG_EOF) {
        (void) llm_decode_fail(s->d, LLM_MEDIA_BROKEN,
                               "the JPEG file is damaged: it ends early");
        longjmp(s->jump, 1);
    }
}


static void
llm_jpeg_progress(j_common_ptr jpeg)
{
    llm_jpeg_t  *s;

    s = jpeg->client_data;

    if (s->jpeg.input_scan_number > LLM_JPEG_SCANS) {
        (void) llm_decode_fail(s->d, LLM_MEDIA_TOO_LARGE, "the JPEG file has "
                               "more than %d scans", LLM_JPEG_SCANS);
        longjmp(s->jump, 1);
    }
}


/* Four colours to three.  Adobe's files have their complements. */

static void
llm_jpeg_cmyk(const uint8_t *from, uint8_t *to, uint32_t width, int adobe)
{
    unsigned  c, k, i, t;

    for ( /* void */ ; width--; from += 4, to += 3) {
        k = adobe ? from[3] : 255u - from[3];

        for (i = 0; i < 3; i++) {
            c = adobe ? 255u - from[i] : from[i];
            t = c * k + 128;
            to[i] = (uint8_t) (k - ((t + (t >> 8)) >> 8));
        }
    }
}


static uint32_t
llm_jpeg_orientation(const struct jpeg_decompress_struct *jpeg)
{
    jpeg_saved_marker_ptr  m;

    for (m = jpeg->marker_list; m; m = m->next) {
        if (m->marker == JPEG_APP0 + 1 && m->data_length >= 6
            && memcmp(m->data, "Exif\0\0", 6) == 0)
        {
            return llm_exif_orientation(m->data, m->data_length);
        }
    }

    return 1;
}


static int
llm_jpeg_rows(llm_jpeg_t *s, llm_picture_t *p)
{
    JSAMPROW   row;
    uint8_t   *to;

    while (s->jpeg.output_scanline < s->jpeg.output_height) {
        to = p->pixels + (size_t) s->jpeg.output_scanline * p->width * 3;
        row = s->row ? s->row : to;

        if (jpeg_read_scanlines(&s->jpeg, &row, 1) != 1) {
            return llm_decode_fail(s->d, LLM_MEDIA_BROKEN,
                                   "the JPEG file is damaged: it ends early");
        }

        if (s->row) {
            llm_jpeg_cmyk(s->row, to, p->width, s->jpeg.saw_Adobe_marker);
        }
    }

    return LLM_OK;
}


static int
llm_jpeg_read(llm_jpeg_t *s, llm_picture_t *p)
{
    struct jpeg_decompress_struct  *jpeg = &s->jpeg;

    if (setjmp(s->jump)) {
        return LLM_ERROR;
    }

    jpeg_create_decompress(jpeg);
    jpeg->progress = &s->progress;
    jpeg_mem_src(jpeg, s->d->data, s->d->len);
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, 0xffff);
    (void) jpeg_read_header(jpeg, TRUE);

    p->orientation = llm_jpeg_orientation(jpeg);

    if (llm_picture_start(s->d, p, jpeg->image_width, jpeg->image_height, 3)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (jpeg->num_components == 4) {
        jpeg->out_color_space = JCS_CMYK;
        s->row = malloc((size_t) p->width * 4);

        if (s->row == NULL) {
            return llm_decode_fail(s->d, LLM_MEDIA_NO_MEMORY,
                                   "no memory for a row");
        }

    } else {
        jpeg->out_color_space = JCS_RGB;
    }

    (void) jpeg_start_decompress(jpeg);

    if (jpeg->output_width != p->width || jpeg->output_height != p->height
        || jpeg->output_components != (s->row ? 4 : 3))
    {
        return llm_decode_fail(s->d, LLM_MEDIA_BROKEN,
                               "the JPEG file has rows of another length");
    }

    return llm_jpeg_rows(s, p);
}


int
llm_decode_jpeg(llm_decode_t *d, llm_picture_t *p)
{
    int         rc;
    llm_jpeg_t  s;

    memset(&s, 0, sizeof(s));
    s.d = d;
    s.jpeg.err = jpeg_std_error(&s.error);
    s.jpeg.client_data = &s;
    s.error.error_exit = llm_jpeg_exit;
    s.error.emit_message = llm_jpeg_message;
    s.progress.progress_monitor = llm_jpeg_progress;

    rc = llm_jpeg_read(&s, p);

    jpeg_destroy_decompress(&s.jpeg);
    free(s.row);

    return rc;
}

#endif
