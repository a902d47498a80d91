/*
 * What a family's own processor makes of an image: sizes and tiles, the pixels
 * that its encoder gets, and what stands around them in a prompt; and what
 * becomes of a sound, if the file has an encoder of sound that is known.
 *
 * A family is a row of the table in rule.c; numbers that the file of the
 * encoder has (clip.* of an mmproj GGUF) are taken from there.  Results are
 * those of transformers' processors with Pillow.
 */

#ifndef LLM_IMAGE_RULE_H
#define LLM_IMAGE_RULE_H

#include "engine/gguf/gguf.h"
#include "engine/media/resize.h"

/* how sizes follow from that of an image; in size.c */
typedef enum {
    LLM_SIZING_AREA = 0,    /* sides are multiples of a cell, the area is
                               between min_pixels and max_pixels */
    LLM_SIZING_SQUARE,      /* side x side */
    LLM_SIZING_FILL,        /* as many cells as fit into max_tokens */
    LLM_SIZING_EDGE,        /* no side longer than `longest` */
    LLM_SIZING_SPLIT,       /* the longer side becomes `longest`, then tiles
                               and the whole */
    LLM_SIZING_GRID,        /* the grid of tiles of the closest ratio, and the
                               whole */
    LLM_SIZING_MIDDLE,      /* side x side, which has the image in its middle,
                               and the mean colour around */
    LLM_SIZING_EXTEND       /* as it is, or smaller for max_tokens, and black
                               to the right and below, up to whole cells */
} llm_sizing_t;

#define LLM_IMAGE_PLACES  2

/* texts around the images of a prompt; NULL: none */
typedef struct {
    /* what templates write for an image, one of these; some write begin and
       end around it, too */
    const char  *places[LLM_IMAGE_PLACES];
    const char  *outside;               /* joined to the text before and after,
                                           and tokenised with it */
    const char  *begin;
    const char  *end;
    const char  *tile;                  /* before a tile: row, column, from 1 */
    const char  *row;                   /* after a row of tiles but the last */
    const char  *whole;                 /* before the whole if there are
                                           tiles */
    const char  *alone;                 /* if there are none */
} llm_image_words_t;

/* frames of a spectrogram that see each other in Qwen2.5-Omni: two seconds,
   which no file says */
#define LLM_SOUND_OMNI  200

/* the same of Qwen3's encoder, eight seconds; its convolutions see a second of
   them, a slice */
#define LLM_SOUND_SIGHT  800
#define LLM_SOUND_SLICE  100

/* frames of the longest sound that Gemma 4's processor takes, 30 seconds */
#define LLM_SOUND_USM  3000

/* what becomes of a sound of 16000 samples a second */
typedef struct {
    const char               *projector;    /* NULL: sound is not taken */
    llm_image_words_t         words;    /* around one; places, begin, end */
    uint32_t                  frame;    /* samples of a row; 0: the encoder
                                           takes spectrograms */
    uint32_t                  n_mels;   /* bands of these */
    uint32_t                  chunk;    /* frames of one, at most; a longer
                                           sound is cut into several */
    uint32_t                  group;    /* of every second frame's rows, those
                                           that become one */
    int                       whole;    /* silence fills each up to a chunk */
    int                       ahead;    /* there is silence after the sound;
                                           else nothing */
    int                       sliced;   /* a row is every eighth frame of a
                                           slice; chunk is LLM_SOUND_SIGHT */
    int                       usm;      /* a row is every fourth frame, of a
                                           Universal Speech Model (mel.h);
                                           chunk is LLM_SOUND_USM */
    uint32_t                  least;    /* samples of a sound that is sliced, or
                                           of USM: silence fills up a shorter
                                           one */
    int                       bare;     /* if it is one slice, that ends with
                                           it; else slices are filled up with
                                           zeros */
} llm_sound_rule_t;

typedef struct {
    const char               *projector;    /* clip.projector_type; NULL: images
                                           are not taken */
    const char               *other;    /* another name of it; or NULL */
    llm_sizing_t              sizing;
    llm_resample_t            filter;
    uint32_t                  patch;    /* pixels of a patch's side */
    uint32_t                  merge;    /* patches of a cell's side; a cell is a
                                           token */
    uint32_t                  side;     /* pixels of a tile's, or of the square
                                           image's side */
    uint32_t                  longest;
    uint32_t                  frames;   /* of which a still image has this many,
                                           for the bounds of its area */
    uint32_t                  min_tiles;
    uint32_t                  max_tiles;
    uint32_t                  max_tokens;   /* 0: no other bound */
    uint32_t                  most;     /* tokens of EXTEND with what is added;
                                           0: no bound */
    uint32_t                  max_side; /* patches on a side; 0: no bound */
    int                       joined;   /* a cell is one patch of the
                                           encoder's */
    int                       breaks;   /* a row of the encoder's output after
                                           each row of cells but the last */
    uint64_t                  min_pixels;
    uint64_t                  max_pixels;
    float                     mean[3];
    float                     std[3];
    llm_image_words_t         words;
    llm_sound_rule_t          sound;
} llm_image_rule_t;

/*
 * Reads the rule of an open mmproj file.  LLM_ERROR and *err: no encoder, a
 * projector that is not known (by name), a key that is missing or out of range.
 * Points to nothing of the file.
 */
int llm_image_rule_read(llm_image_rule_t *rule, const llm_gguf_t *g,
    llm_err_t *err);
/* lowers the most tokens of an image, as far as the family can: tiles and
   squares have a least size; 0: as the family has it */
void llm_image_rule_limit(llm_image_rule_t *rule, uint32_t tokens);
/* the same of sound, in sound_rule.c; 0: the file has no encoder of sound that
   is known, and its models take none */
int llm_sound_rule_read(llm_sound_rule_t *rule, const llm_gguf_t *g);
/* the projector of an encoder of sound: files with several encoders have a key
   for each kind, or a name for both; 0: there is no such encoder */
int llm_sound_projector(const llm_gguf_t *g, llm_str_t *name);
/* what a file says of the values of pixels; LLM_ERROR and *err: it does not, or
   they cannot be */
int llm_image_colors(const llm_gguf_t *g, float mean[3], float std[3],
    llm_err_t *err);
/* the value that the encoder gets for each byte of each channel, as
   transformers computes it */
void llm_image_lut(const float mean[3], const float std[3],
    float lut[3][256]);


/* frames of a sound that an encoder with so many positions takes at once, whole
   windows of them; window 0: there are none */
static inline uint32_t
llm_sound_chunk(uint32_t positions, uint32_t window)
{
    return 2 * positions - (window ? 2 * positions % window : 0);
}


/* rows of an encoder, before they are grouped: every second frame's */
static inline uint32_t
llm_sound_halved(uint32_t frames)
{
    return frames / 2 + frames % 2;
}


/* the same of frames in slices */
static inline uint32_t
llm_sound_sliced(uint32_t frames)
{
    return frames / LLM_SOUND_SLICE * ((LLM_SOUND_SLICE + 7) / 8)
           + (frames % LLM_SOUND_SLICE + 7) / 8;
}


/* every fourth frame's */
static inline uint32_t
llm_sound_quartered(uint32_t frames)
{
    return frames / 4 + (frames % 4 != 0);
}


/* what becomes of an image; all entries have the same size */
typedef struct {
    uint32_t  width;                    /* pixels of an entry */
    uint32_t  height;
    uint32_t  n_entries;                /* tiles row by row, the whole last */
    uint32_t  tile_rows;                /* 1 if there are no tiles */
    uint32_t  tile_cols;
    int       whole;                    /* the last entry is the whole, beside
                                           tiles */
    uint32_t  cols;                     /* cells of an entry */
    uint32_t  rows;
    uint32_t  n_rows;                   /* of the encoder's output, an entry;
                                           with breaks */
    uint32_t  n_tokens;                 /* n_rows of all entries */
    uint32_t  first_width;              /* resized to this before; 0: not */
    uint32_t  first_height;
    int       extended;                 /* what is beyond that is black */
} llm_image_plan_t;

/* sizes for an image of width x height; LLM_ERROR and *err (400): its sides are
   of a ratio that the model cannot take */
int llm_image_plan(const llm_image_rule_t *rule, uint32_t width,
    uint32_t height, llm_image_plan_t *plan, llm_err_t *err);

/* bytes of what llm_image_prepare() writes */
size_t llm_image_plan_size(const llm_image_plan_t *plan);
/* out: [n_entries][height][width][3]; the plan is that of the image's size;
   LLM_ERROR and *err: no memory */
int llm_image_prepare(const llm_image_rule_t *rule,
    const llm_image_plan_t *plan, const llm_image_t *image, uint8_t *out,
    llm_err_t *err);


/*
 * What stands in the prompt for an image, in order: calls text() for each text
 * and entry() for each entry.  `outside` is not among it.
 */
typedef struct {
    void   *ctx;
    int   (*text)(void *ctx, const char *text, size_t len);
    int   (*entry)(void *ctx, uint32_t entry);
} llm_image_layout_t;

/* LLM_OK, or what a call returned */
int llm_image_layout(const llm_image_rule_t *rule,
    const llm_image_plan_t *plan, const llm_image_layout_t *to);


/* what becomes of a sound: entries, of which all but the last have as many rows
   as the first */
typedef struct {
    uint32_t  n_entries;
    uint64_t  n_tokens;                 /* rows of all */
    uint32_t  frames;                   /* of an entry but the last */
    uint32_t  last;                     /* frames of the last one */
    uint32_t  seen;                     /* the same with those that its last
                                           row sees after its own */
} llm_sound_plan_t;

/* of n samples, more than 0; in sound_rule.c */
void llm_sound_plan(const llm_sound_rule_t *rule, size_t n,
    llm_sound_plan_t *plan);
/* rows of an entry of so many frames */
uint32_t llm_sound_rows(const llm_sound_rule_t *rule, uint32_t frames);
/* the most whole seconds of sound that are no more than so many rows */
uint32_t llm_sound_seconds(const llm_sound_rule_t *rule, uint64_t rows);

#endif /* LLM_IMAGE_RULE_H */
