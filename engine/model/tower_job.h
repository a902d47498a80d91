/*
 * A job of a tower, for tower_job.c, which makes it, tower_encode.c, which runs
 * it, and tower_batch.c, which makes the batches of its steps.
 */

#ifndef LLM_MODEL_TOWER_JOB_H
#define LLM_MODEL_TOWER_JOB_H

#include "engine/model/tower_internal.h"

/* how long a piece should take, in microseconds: as long as a step with rows of
   a prompt; rows of a phase's first piece, and of any at least */
#define LLM_TOWER_PIECE_US  60000
#define LLM_TOWER_FIRST     64u
#define LLM_TOWER_LEAST     16u

typedef enum {
    LLM_JOB_CONVOLVE = 0,               /* the convolutions of a spectrogram,
                                           slice by slice */
    LLM_JOB_EMBED,
    LLM_JOB_LAYER,
    LLM_JOB_FINISH,                     /* the norm after the last layer */
    LLM_JOB_PROJECT,
    LLM_JOB_DONE
} llm_job_phase_t;

struct llm_tower_job_s {
    llm_tower_t        *t;
    llm_tower_entry_t   entries[LLM_TOWER_ENTRIES];
    llm_tower_shape_t   shapes[LLM_TOWER_ENTRIES];
    uint32_t            n;
    int                 heard;          /* the only entry is a sound, whose
                                           frames are cells */
    float              *out;

    uint32_t            first[LLM_TOWER_ENTRIES + 1];   /* encoder row of each
                                           entry */
    uint32_t            cells[LLM_TOWER_ENTRIES + 1];   /* cell of each entry */
    uint32_t            n_rows;         /* of the encoder */
    uint32_t            n_kept;         /* layers kept so far */
    int                 whole;          /* the rows fit into a step, and into
                                           the time of a piece */

    llm_job_phase_t     phase;
    uint32_t            slice;
    uint32_t            conv;           /* of these, of the slice */
    uint32_t            layer;
    uint32_t            row;            /* the piece's first row, or cell, or
                                           frame */
    uint32_t            end;            /* after its last one */
    uint32_t            last;           /* rows of the piece before, of this
                                           phase; 0: there is none */
    double              row_us;         /* time of a row in this phase, in a
                                           layer, measured; 0: not yet */

    uint32_t           *patches;        /* [n_rows] in the entry; of a class row
                                           0 */
    uint32_t           *row_of;         /* [n_rows] of patch i of the entry,
                                           from the entry's first one; of a
                                           sound NULL */
    uint32_t           *windows;        /* [n_rows][2]; or NULL */
    uint32_t           *pages;          /* [LLM_TOWER_ENTRIES][max_pages] */
    float              *frames[LLM_TOWER_CONVS];    /* after each convolution,
                                           [rows][channels]: of the slice, of
                                           all slices after the last one */
    float              *x;              /* [n_parts][n_rows][width] what the
                                           encoder gave, then kept layers */
    float              *merged;         /* [batch][cell * n_parts] cells of a
                                           piece, or frames of a sound */

    /* of a step */
    uint32_t           *tokens;         /* [batch] 0, as int32_t */
    uint32_t           *pos;
    uint32_t           *given;          /* 0, 1 ... */
    uint32_t           *turns;          /* [batch][LLM_TURNS] */
    uint32_t           *sees;           /* [batch][2] */
    uint32_t            seq_rows[LLM_TOWER_ENTRIES + 1];
    uint32_t            kv_len[LLM_TOWER_ENTRIES];
    uint32_t            slots[LLM_TOWER_ENTRIES];   /* of states: 0, as a sound
                                           is alone */
    uint32_t           *step_pages;     /* as pages, of the step's entries */
    float              *rows;           /* [batch][llm_job_cols()] */
};

/* columns of a patch's row: its values, the embedding of its position; as many
   as a frame's, at least */
uint32_t llm_job_cols(const llm_tower_t *t);
/* columns of what a row of the piece's convolution sees */
uint32_t llm_job_conv_cols(const llm_tower_job_t *job);
/* columns of a row of cells, or of frames */
uint32_t llm_job_cell_cols(const llm_tower_job_t *job);
/* the batch of the piece's rows, from job->row to job->end */
void llm_job_batch(llm_tower_job_t *job, llm_batch_t *b);

#endif /* LLM_MODEL_TOWER_JOB_H */
