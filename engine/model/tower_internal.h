/*
 * Shared by the files of towers.  A tower is a row of towers.def: an
 * llm_tower_kind_t, which says what is different in a family; what all have in
 * common is in tower_fields.c, tower_file.c (tensors), tower_layers.c (the
 * layers of the encoder; conformers: tower_conformer.c), tower_shape.c (patches
 * and cells), tower_pass.c (the operations; tower_usm.c), and tower_job.c,
 * tower_batch.c and tower_encode.c (jobs).
 *
 * The tower owns all that its struct points to, but for ops and devices that
 * its model has.
 */

#ifndef LLM_MODEL_TOWER_INTERNAL_H
#define LLM_MODEL_TOWER_INTERNAL_H

#include "engine/model/arch.h"
#include "engine/model/backend.h"
#include "engine/model/tower.h"

#define LLM_TOWER_PATCHES  16384        /* of an entry, by default */
#define LLM_TOWER_BATCH    512          /* rows of a step, by default */
#define LLM_TOWER_WIDE     4096         /* the same on a GPU */
#define LLM_TOWER_PARTS    4            /* parts of a row that the model is
                                           given */
#define LLM_TOWER_LINEARS  5            /* matrices of a merger */
#define LLM_TOWER_LAYERS   256
#define LLM_TOWER_MELS     256          /* bands of a spectrogram */
#define LLM_TOWER_CONVS    3            /* convolutions of one, before
                                           `embed` */
#define LLM_TOWER_AROUND   9            /* numbers of a channel that one of
                                           slices sees */
#define LLM_TOWER_NEAR     12           /* rows that a row of a conformer sees,
                                           its own included */
#define LLM_TOWER_EXTRA    16           /* elements of a conformer's head before
                                           its own */
#define LLM_TOWER_KERNEL   5            /* rows that a conformer's convolution
                                           sees */

typedef struct llm_tower_kind_s  llm_tower_kind_t;

/* a matrix with what belongs to it */
typedef struct {
    llm_weight_t  *w;                   /* NULL: the file does not have it */
    llm_vec_t     *bias;                /* or NULL */
    int            clamped;             /* x and the product are clamped */
    uint32_t       n_in;                /* columns of x, if clamped */
    llm_act_fn_t   before;
    llm_act_fn_t   after;
} llm_tower_linear_t;

typedef struct {
    llm_vec_t     *w;                   /* NULL: the file does not have it */
    llm_vec_t     *bias;                /* or NULL */
} llm_tower_norm_t;

typedef struct {
    llm_tower_norm_t    ln1;
    llm_tower_norm_t    ln2;
    llm_tower_norm_t    attn_post;      /* of a result before it is added, like
                                           ffn_post; often none */
    llm_tower_norm_t    ffn_post;
    llm_vec_t          *q_norm;         /* of each head; or NULL */
    llm_vec_t          *k_norm;
    llm_tower_linear_t  q;
    llm_tower_linear_t  k;
    llm_tower_linear_t  v;
    llm_tower_linear_t  out;
    llm_tower_linear_t  gate;           /* none: up is activated */
    llm_tower_linear_t  up;
    llm_tower_linear_t  down;
    uint32_t            n_ff;
    int                 keeps;          /* its result is a part of the rows
                                           (deepstack) */
    int                 windowed;       /* rows see those of their window */
} llm_tower_layer_t;

/* a network of a conformer, half of whose result is added */
typedef struct {
    llm_tower_norm_t    norm;
    llm_tower_linear_t  up;
    llm_tower_linear_t  down;
    llm_tower_norm_t    post;           /* weights halved */
    uint32_t            n_ff;
} llm_tower_half_t;

/* what a conformer has besides, in the order of its parts */
typedef struct {
    llm_tower_half_t    half[2];        /* before attention; after the
                                           convolution */
    llm_weight_t       *near;           /* [heads] makes a query of what
                                           attention takes */
    llm_tower_norm_t    conv_pre;
    llm_tower_linear_t  value;          /* value * sigmoid(gate) is convolved */
    llm_tower_linear_t  gate;
    llm_vec_t          *conv;           /* [LLM_TOWER_KERNEL][width] */
    llm_tower_norm_t    conv_post;
    llm_tower_linear_t  conv_out;
    llm_tower_norm_t    last;
} llm_tower_conformer_t;

/* one merger of patches to rows; several with deepstack */
typedef struct {
    llm_tower_norm_t    norm;
    llm_tower_linear_t  linear[LLM_TOWER_LINEARS];
} llm_tower_merger_t;

/* how the patches of a cell become a row, which the host does */
typedef enum {
    LLM_TOWER_JOIN = 0,                 /* side by side: dy, dx, channel */
    LLM_TOWER_UNFOLD,                   /* channel, dy, dx */
    LLM_TOWER_AVERAGE
} llm_tower_merge_t;

/* buffers of activations */
typedef enum {
    LLM_TA_X = 0,                       /* residual stream */
    LLM_TA_H,
    LLM_TA_CLAMPED,                     /* input of a product with clamps */
    LLM_TA_Q,
    LLM_TA_K,
    LLM_TA_WIDE,                        /* of a conformer: Q or K with what
                                           depends on distances */
    LLM_TA_V,
    LLM_TA_ATTN,
    LLM_TA_OUT,                         /* a result before its norm */
    LLM_TA_GATE,
    LLM_TA_UP,
    LLM_TA_GLU,
    LLM_TA_PATCH,                       /* or what the second one sees */
    LLM_TA_CELL,                        /* of the projector: its rows; a norm
                                           of these; a product; its
                                           activation; another product */
    LLM_TA_CELL_H,
    LLM_TA_MID,
    LLM_TA_MID_H,
    LLM_TA_MID_2,
    LLM_TA_FRAME,                       /* of sound; or what a convolution of
                                           `conv` sees */
    LLM_TA_PART,                        /* parts of a row for the model */
    LLM_TA_N = LLM_TA_PART + LLM_TOWER_PARTS
} llm_tower_act_t;

struct llm_tower_s {
    llm_tower_info_t         info;
    const llm_tower_kind_t  *kind;
    llm_gguf_t              *gguf;
    llm_devices_t           *devices;   /* registry with the device */
    int                      alone;     /* the tower owns the registry */
    char                     part;      /* with which its tensors' names begin:
                                           'v'; or 'a': an encoder of
                                           sound */
    const llm_ops_t         *ops;
    llm_exec_t              *exec;
    char                     device[LLM_BACKEND_NAME];

    /* the encoder; kind->read() may change what the file does not say */
    uint32_t                 width;
    uint32_t                 n_heads;
    uint32_t                 head_dim;
    uint32_t                 key_dim;   /* of a head's key in the cache */
    uint32_t                 n_ff;      /* maximum of all layers */
    float                    eps;
    float                    scale;     /* of scores */
    llm_glu_t                act;
    int                      norm_v;    /* heads of V are normalised, without
                                           weights */
    uint32_t                 window;    /* cells of a side of a window, or rows
                                           of a sound; 0: none */
    uint32_t                 n_values;  /* of a patch */
    uint32_t                 n_deepstack;
    uint32_t                 table_side;    /* positions of a side of the table,
                                           as kind->position() takes it */
    uint32_t                 max_side;  /* patches of an entry's side, at most;
                                           0: any */
    llm_tower_layer_t       *layers;    /* [info.n_layers] */
    llm_tower_linear_t       conv[LLM_TOWER_CONVS];     /* of a spectrogram; the
                                           host keeps what they give */
    llm_tower_norm_t         conv_norm[LLM_TOWER_CONVS];    /* of what they
                                           give; often none */
    uint32_t                 n_convs;   /* 0: images */
    uint32_t                 channels[LLM_TOWER_CONVS];     /* of the same */
    uint32_t                 conv_cols; /* the most that a row of one sees */
    llm_tower_linear_t       embed;     /* of patches; or the last convolution,
                                           or what comes after the slices' */
    llm_tower_norm_t         pre;       /* after it */
    llm_tower_norm_t         placed;    /* after the positions are added */
    llm_tower_norm_t         post;      /* after the last layer */
    llm_tower_norm_t         merged;    /* of the rows that are merged; it has
                                           merge_eps */
    llm_rope_t               rope;      /* n_dims 0: none */
    float                   *table;     /* embeddings of positions; or NULL */
    float                   *pixel_norm;    /* [2][values of a patch] weights
                                           and biases of the norm of a patch's
                                           values, which the host does; or
                                           NULL */
    float                   *class_row; /* [kind->n_class][width]; or NULL */
    float                   *break_row; /* [n_embd] after each row of cells but
                                           the last; NULL: none */
    float                   *shift;     /* [width] (x + shift) * factor of what
                                           is merged by average; or NULL */
    float                   *factor;
    float                    lut[3][256];

    /* the projector */
    llm_tower_merge_t        merge;
    float                    merge_scale;   /* of averages */
    float                    merge_eps;
    uint32_t                 group;     /* rows of a sound that are a cell */
    uint32_t                 cell;      /* width of a row of cells */
    uint32_t                 clamped;   /* widest input of a product with
                                           clamps; 0: there is none */
    uint32_t                 mid;       /* width of LLM_TA_MID */
    uint32_t                 mid_ff;    /* of a gated network there */
    uint32_t                 n_parts;
    llm_tower_merger_t       mergers[LLM_TOWER_PARTS];
    llm_tower_linear_t       sound;     /* of frames; w NULL: none */
    float                    sound_eps;

    /* of conformers */
    llm_tower_conformer_t   *conformers;    /* [info.n_layers]; or NULL */
    llm_weight_t            *wide;      /* [heads] makes a key of what attention
                                           takes */
    llm_vec_t               *placed_key;    /* what is added there: the place
                                           of position 0 */
    llm_state_t             *state;     /* the last rows that convolutions
                                           saw */

    llm_act_t               *act_of[LLM_TA_N];
    llm_kv_t                *kv;
    uint32_t                 batch;
    double                   row_us;    /* time of a row in a layer, measured;
                                           0: not known */
    uint32_t                 max_pages; /* of one entry */
    uint32_t                 n_pages;

    uint8_t                 *used;      /* [tensors of the file] */
    void                   **copies;    /* rows that the weights point to */
    size_t                   n_copies;
};

/* a family of towers; functions return LLM_OK, or LLM_ERROR and *err */
typedef struct {
    llm_tower_t  *t;
    llm_model_t  *m;                    /* or NULL */
    llm_err_t    *err;
    int           sound;                /* the encoder of spectrograms */
} llm_tower_load_t;

struct llm_tower_kind_s {
    const char       *projector;
    const char       *other;            /* another name of it; or NULL */
    int               sound;            /* takes spectrograms */
    uint32_t          group;            /* of these, rows that become one */
    int               stacks;           /* side by side, stack_factor of them;
                                           else they are averaged */
    uint32_t          window;           /* frames that see each other; 0:
                                           all */
    int               sliced;           /* its convolutions have two dimensions,
                                           slice by slice */
    int               usm;              /* as of llm_sound_rule_t; the layers
                                           are conformers */
    uint32_t          needs;            /* LLM_CAN_ bits of the device */
    llm_norm_kind_t   norm;
    llm_glu_t         act;
    uint32_t          merge;            /* default of info.merge */
    uint32_t          n_class;          /* rows before those of the patches */
    int               fixed;            /* entries are squares of image_size */
    int               signed_pixels;    /* values are 2x - 1 */
    int               post_norm;        /* v.post_ln is required */
    int               bare;             /* no layers */
    int               joined;           /* a patch is a cell: its side is
                                           patch_size * merge */
    int               any_width;        /* the file's projection_dim is not the
                                           width of the rows: read() sets it */
    /* fields and tensors of the family, before the layers are loaded; sets the
       sizes of the projector */
    int             (*read)(llm_tower_load_t *l);
    /* row of the embedding of a patch's position, in an entry of this shape;
       NULL: none is added */
    void            (*position)(const llm_tower_t *t,
                        const llm_tower_shape_t *s, uint32_t y, uint32_t x,
                        float *row);
    int               x_first;          /* RoPE's first part is the column */
    int               halves;           /* its pairs lie within halves of a
                                           head */
    /* as llm_tower_keys() and llm_tower_layer(); NULL: those are */
    void            (*keys)(const llm_tower_t *t, uint32_t layer);
    void            (*layer)(const llm_tower_t *t, uint32_t layer);
    /* makes the parts of the rows from the given rows of cells */
    void            (*project)(const llm_tower_t *t);
};

/* rows of a matrix, and how they are changed on their way to the device */
typedef struct {
    const llm_gguf_tensor_t  *t;
    uint32_t                  first;    /* first row */
    uint32_t                  n;        /* rows */
    uint32_t                  n_in;
    const float              *factors;  /* [n] of rows; or NULL */
    const llm_gguf_tensor_t  *plus;     /* added; or NULL */
    int                       transposed;   /* the file has [n_in][n] */
    uint32_t                  halves;   /* elements of a head, whose rotated
                                           pairs lie within halves of it: its
                                           second and third quarters change
                                           places; 0: they do not */
} llm_tower_matrix_t;

/* ---- tower_fields.c ---- */

/* finds the family; an error if it is not known */
int llm_tower_kind(llm_tower_load_t *l);
/* has the file an encoder of spectrograms that is known? */
int llm_tower_listens(const llm_gguf_t *g);
/* the same of images; what has no known encoder of sound counts as one */
int llm_tower_sees(const llm_gguf_t *g);
int llm_tower_fields(llm_tower_load_t *l);

/* ---- tower_file.c ---- */

/* clip.vision.NAME, or clip.audio.NAME; *v keeps its default if the file lacks
   it, but a default of 0 means that it must have it */
int llm_tower_u32(llm_tower_load_t *l, const char *name, uint32_t min,
    uint32_t max, uint32_t *v);
/* marks a tensor as used; NULL: there is none */
const llm_gguf_tensor_t *llm_tower_find(llm_tower_load_t *l,
    const char *fmt, ...) llm_printf_like(2, 3);
int llm_tower_missing(llm_tower_load_t *l, const char *what);
/* a copy of n numbers that the tower owns; n 0: as many as there are */
float *llm_tower_floats(llm_tower_load_t *l, const llm_gguf_tensor_t *t,
    size_t n);
/* memory that the tower owns */
void *llm_tower_keep(llm_tower_load_t *l, size_t n, size_t size);
/* *v NULL: the file lacks it */
int llm_tower_read_vec(llm_tower_load_t *l, llm_vec_t **v, uint32_t n,
    const char *fmt, ...) llm_printf_like(4, 5);
llm_weight_t *llm_tower_matrix(llm_tower_load_t *l,
    const llm_tower_matrix_t *x);
/* says that the tensor has other elements; returns LLM_ERROR */
int llm_tower_shape_error(llm_tower_load_t *l, const llm_gguf_tensor_t *t,
    uint64_t n_in, uint64_t n_out);
/* part i of a matrix of so many, of n rows each, with the encoder's width */
int llm_tower_part(llm_tower_load_t *l, llm_tower_linear_t *x,
    const llm_gguf_tensor_t *t, uint32_t parts, uint32_t i, uint32_t n);
/* PREFIX.weight [n_out][n_in], PREFIX.bias and clamps; n_out 0: any, *n_out
   becomes it */
int llm_tower_linear(llm_tower_load_t *l, llm_tower_linear_t *x,
    uint32_t n_in, uint32_t *n_out, const char *prefix);
/* PREFIX's clamps of x, with n_in columns, and of the product, if there are
   any */
int llm_tower_clamps(llm_tower_load_t *l, llm_tower_linear_t *x, uint32_t n_in,
    const char *prefix);
/* the n numbers of PREFIX.weight, which is required: a copy as of
   llm_tower_floats() */
float *llm_tower_weights_of(llm_tower_load_t *l, size_t n, const char *prefix);
int llm_tower_norm(llm_tower_load_t *l, llm_tower_norm_t *x, uint32_t n,
    int required, const char *fmt, ...) llm_printf_like(5, 6);
void llm_tower_free_linear(llm_tower_t *t, llm_tower_linear_t *l);
void llm_tower_free_norm(llm_tower_t *t, llm_tower_norm_t *n);
/* a table of positions [n][width]; n: how many */
int llm_tower_table(llm_tower_load_t *l, uint32_t *n);
/* the same for the patches of a square, after n_class others: of entries of a
   fixed size, or of any */
int llm_tower_square(llm_tower_load_t *l);
/* the class row with its position, the table's first one */
int llm_tower_class(llm_tower_load_t *l);
/* an error if a tensor of the tower is not used */
int llm_tower_rest(llm_tower_load_t *l);

/* ---- tower_layers.c ---- */

int llm_tower_layers(llm_tower_load_t *l);
/* how RoPE's pairs are shared out to rows and columns */
typedef enum {
    LLM_TOWER_ALIKE = 0,                /* first rows, then columns, of the same
                                           frequencies */
    LLM_TOWER_EVERY_SECOND,             /* of every second frequency, from the
                                           first and from the second on */
    LLM_TOWER_IN_TURN                   /* as ALIKE, pair by pair */
} llm_tower_rope_t;

int llm_tower_rope(llm_tower_load_t *l, float base, llm_rope_kind_t kind,
    llm_tower_rope_t shares);

/* ---- tower_conformer.c ---- */

/* the layers, and what they have in common */
int llm_tower_conformer_read(llm_tower_load_t *l);
void llm_tower_conformer_free(llm_tower_t *t);

/* ---- tower_sound.c ---- */

/* the encoder of sound, if the file has one that is known */
int llm_tower_sound(llm_tower_load_t *l);
/* `count` frames from number `first` on, as the encoder takes them */
void llm_tower_frames(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t first, uint32_t count, float *rows);
/* makes the rows of the given frames */
void llm_tower_hear(const llm_tower_t *t);

/* ---- tower_whisper.c ---- */

int llm_tower_convolutions(llm_tower_load_t *l);
/* rows of the encoder, before they are grouped */
uint32_t llm_tower_rows_of(const llm_tower_t *t, uint32_t frames);
/* rows of convolution k, of a slice if there are any */
uint32_t llm_tower_convolved(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k);
/* as llm_tower_shape(), of a spectrogram */
int llm_tower_listen(const llm_tower_t *t, const llm_tower_entry_t *e,
    llm_tower_shape_t *s, llm_err_t *err);
/* what the convolutions see for frame i of the entry, and for row i of what the
   first one made of all frames */
void llm_tower_mel(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t i, float *row);
void llm_tower_frame(const llm_tower_t *t, const llm_tower_entry_t *e,
    const float *frames, uint32_t i, float *row);
/* llm_tower_order() of n rows of a sound, llm_tower_cell() of n cells */
void llm_tower_spans(const llm_tower_t *t, uint32_t n, uint32_t *rows,
    uint32_t *windows);
void llm_tower_grouped(const llm_tower_t *t, uint32_t n, const float *rows,
    float *cells);

/* ---- tower_slices.c ---- */

int llm_tower_slice_read(llm_tower_load_t *l);
uint32_t llm_tower_slices(const llm_tower_t *t, const llm_tower_entry_t *e);
/* rows of convolution k of a slice; the most that a slice of any entry has,
   which are those of the first one */
uint32_t llm_tower_slice_most(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k);
uint32_t llm_tower_slice_wide(const llm_tower_t *t);
/* numbers that convolution k gives and the host keeps */
size_t llm_tower_slice_room(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t k);
/* where its numbers begin in those that are kept: the last one's of all
   slices */
size_t llm_tower_slice_at(const llm_tower_t *t, uint32_t slice, uint32_t k);
/* what convolution k sees for row i of the slice, from what the one before gave
   of it; and what `embed` gets for row i of the entry */
void llm_tower_slice_gather(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k, const float *from, uint32_t i, float *row);
void llm_tower_slice_row(const llm_tower_t *t, const float *convolved,
    uint32_t i, float *row);

/* ---- tower_shape.c ---- */

/* the patches of an entry's encoder rows, in their order; the first row and the
   end of the window of each, if the tower has windows */
void llm_tower_order(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t *patches, uint32_t *windows);
/* makes a cell, [cell], of the encoder's rows of its patches: patch i of the
   entry is in row row_of[i] */
void llm_tower_cell(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t cell, const uint32_t *row_of, const float *rows, float *to);
/* position() of a table that has a row for each patch of an entry */
void llm_tower_raster(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t y, uint32_t x, float *row);
/* position() of a table that is stretched to the entry, with PyTorch's cubic
   interpolation */
void llm_tower_stretch(const llm_tower_t *t, const llm_tower_shape_t *s,
    uint32_t y, uint32_t x, float *row);
/* values of a patch, [3][patch][patch] */
void llm_tower_pixels(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t y, uint32_t x, float *row);

/* ---- tower_pass.c ---- */

void llm_tower_apply(const llm_tower_t *t, const llm_tower_linear_t *l,
    llm_act_t *x, llm_act_t *y, int add);
void llm_tower_normalize(const llm_tower_t *t, const llm_tower_norm_t *n,
    float eps, const llm_act_t *x, llm_act_t *y, int add);
void llm_tower_activate(const llm_tower_t *t, llm_glu_t kind,
    const llm_act_t *x, llm_act_t *y);
/* LLM_TA_OUT = what a convolution makes of x, so many columns; norm NULL, or
   without weights: it has none, and GELU comes after it, else max(x, 0) */
void llm_tower_convolve(const llm_tower_t *t, const llm_tower_linear_t *w,
    const llm_tower_norm_t *norm, llm_act_t *x, uint32_t cols);
/* x += norm(w h) of LLM_TA_X, without the norm if there is none */
void llm_tower_add(const llm_tower_t *t, const llm_tower_linear_t *w,
    const llm_tower_norm_t *norm, llm_act_t *h);
/* LLM_TA_X = the patches of the step's given rows, and their positions */
void llm_tower_embed(const llm_tower_t *t);
/* keys and values of a layer, from LLM_TA_X; then the rest of the layer */
void llm_tower_keys(const llm_tower_t *t, uint32_t layer);
void llm_tower_layer(const llm_tower_t *t, uint32_t layer);
/* y = x, in another buffer */
void llm_tower_copy(const llm_tower_t *t, const llm_act_t *x, llm_act_t *y);
/* RMS norm of LLM_TA_CELL to LLM_TA_CELL_H with merge_eps; w NULL: without
   weights */
void llm_tower_cell_rms(const llm_tower_t *t, const llm_vec_t *w);
/* linear, activation, linear: LLM_TA_CELL_H to the part */
void llm_tower_two(const llm_tower_t *t, const llm_tower_merger_t *m,
    uint32_t part);
/* sets the width of a buffer and returns it */
llm_act_t *llm_tower_buffer(const llm_tower_t *t, llm_tower_act_t a,
    uint32_t cols);

#endif /* LLM_MODEL_TOWER_INTERNAL_H */
