/*
 * Towers: encoders that turn images into rows which a model reads in place of
 * tokens.  A tower is the model's second file (mmproj.gguf, whose architecture
 * is "clip"): layers of its own, on the same device as the model, and a
 * projector to the width of the model.
 *
 * An image's pixels come as the family's processor makes them: decoded, resized
 * and cut into entries, which are what the tower encodes (a tile, or the whole
 * image).  Everything after that is here.
 *
 * A tower belongs to its creator, who frees it before its model.  One thread at
 * a time uses a tower and its jobs.  Entries and results are the caller's and
 * must live as long as the job.
 *
 * Invariant: an entry's rows have the same bits whatever else is encoded with
 * it, and in however many steps.
 */

#ifndef LLM_MODEL_TOWER_H
#define LLM_MODEL_TOWER_H

#include "engine/model/model.h"

/* entries of a job, at most */
#define LLM_TOWER_ENTRIES  16

typedef struct {
    char         projector[32];         /* clip.projector_type */
    uint32_t     n_embd;                /* width of the model */
    uint32_t     n_cols;                /* of a row that the model is given:
                                           n_embd * (1 + n_deepstack); those of
                                           a sound are 0 after n_embd */
    uint32_t     patch;                 /* pixels of a side of a patch */
    uint32_t     merge;                 /* patches of a side of a cell, which
                                           becomes a row */
    uint32_t     side;                  /* pixels of a side, if all entries are
                                           squares of this size; 0: they are
                                           not */
    uint32_t     max_patches;           /* of an entry */
    uint32_t     together;              /* patches that fit into a step,
                                           whatever number of entries they are
                                           of */
    float        mean[3];               /* of red, green, blue, as the next: a
                                           pixel's value is
                                           (byte / 255 - mean) / std */
    float        std[3];
    uint32_t     frame;                 /* samples of a row of sound; 0: the
                                           tower takes none */
    uint32_t     n_mels;                /* bands of a spectrogram; 0: the tower
                                           takes none */
    uint32_t     max_frames;            /* of a spectrogram */
    uint32_t     n_layers;
    uint64_t     n_bytes;               /* of all tensors */
} llm_tower_info_t;

typedef struct {
    const llm_model_opts_t  *model;     /* device, isa, threads ...: as the
                                           model's; NULL: defaults */
    uint32_t                 max_patches;   /* of an entry; 0: 16384 */
    uint32_t                 batch;     /* rows of a step; 0: 512, on a GPU
                                           4096 */
    int                      sound;     /* the file's encoder of spectrograms;
                                           0: that of images */
} llm_tower_opts_t;

/* an entry's size in patches and in rows for the model */
typedef struct {
    uint32_t     patch_rows;
    uint32_t     patch_cols;
    uint32_t     rows;                  /* of cells, as the next */
    uint32_t     cols;
    uint32_t     n_rows;                /* rows of the result: the cells, row by
                                           row, and in some families more after
                                           each row of cells */
} llm_tower_shape_t;

/* pixels [h][w][3]; or of a sound h frames of w samples, a row each; or its
   spectrogram of w bands and h frames, [w][h] */
typedef struct {
    uint32_t        w;
    uint32_t        h;
    const uint8_t  *rgb;
    const float    *samples;            /* NULL: pixels */
    uint32_t        own;                /* of a spectrogram: frames that have
                                           rows; only convolutions see those
                                           after them */
} llm_tower_entry_t;

typedef struct llm_tower_s      llm_tower_t;
typedef struct llm_tower_job_s  llm_tower_job_t;

/* reads the header only: an error if the file has no tower of a known family,
   or one of images that is not known */
int llm_tower_check(const char *path, llm_err_t *err);

/*
 * Loads a tower for m, which it must fit, onto m's first device.  m NULL: for
 * any model, onto the device of opts.  NULL and *err on any error.  Once all of
 * m's are loaded, llm_model_towers_loaded().
 */
llm_tower_t *llm_tower_load(const char *path, llm_model_t *m,
    const llm_tower_opts_t *opts, llm_err_t *err);
void llm_tower_free(llm_tower_t *t);
const llm_tower_info_t *llm_tower_info(const llm_tower_t *t);

/* an error if the tower takes no entries of this size */
int llm_tower_shape(const llm_tower_t *t, uint32_t w, uint32_t h,
    llm_tower_shape_t *s, llm_err_t *err);

/* rows of a spectrogram's own frames */
uint32_t llm_tower_heard(const llm_tower_t *t, uint32_t own);

/*
 * Positions of an entry's rows in a model (batch.turns) if its first row is at
 * `at`: of row i, and how far the rows advance the position of what follows,
 * which is less than n_rows in models with turns.
 */
void llm_tower_turns(const llm_hparams_t *hp, const llm_tower_shape_t *s,
    uint32_t at, uint32_t i, uint32_t turns[LLM_TURNS]);
uint32_t llm_tower_length(const llm_hparams_t *hp,
    const llm_tower_shape_t *s);

/*
 * A job encodes n entries, at most LLM_TOWER_ENTRIES and together not more than
 * max_patches; or one sound, of any number of frames; or one spectrogram, of at
 * most max_frames.  A tower has one job at a time.  out gets the rows of all
 * entries, [n_rows][n_cols].  step() runs one piece, about as long as a step of
 * a prompt: LLM_MORE: there are more; LLM_OK: out is complete; LLM_ERROR: the
 * job failed.  begin() returns NULL and *err on any error.
 */
llm_tower_job_t *llm_tower_begin(llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t n, float *out, llm_err_t *err);
int llm_tower_step(llm_tower_job_t *job, llm_err_t *err);
void llm_tower_end(llm_tower_job_t *job);

#endif /* LLM_MODEL_TOWER_H */
