/*
 * A model: a GGUF file's weights on a device, and the forward pass of one
 * step over them.
 *
 * The file's metadata is read into a description (arch.h), with a chain of
 * blocks for each layer.  The forward pass reads the description and never the
 * architecture's name.
 *
 * A model owns its weights, KV pages and the mapping of its file; its device
 * may be shared with other models (devices.h).  It may be on several devices,
 * some of its layers on each (parts.c).  One thread at a time drives it.
 */

#ifndef LLM_MODEL_H
#define LLM_MODEL_H

#include "engine/gguf/gguf.h"
#include "engine/model/devices.h"
#include "kernels/kernels.h"

/* how the final states of a prompt become one vector, with the numbers of
   ARCH.pooling_type in files */
typedef enum {
    LLM_POOLING_NONE = 0,               /* states are not pooled */
    LLM_POOLING_MEAN,
    LLM_POOLING_CLS,                    /* state of the first token */
    LLM_POOLING_LAST,
    LLM_POOLING_RANK,                   /* as in rank_from; the vector then
                                           becomes a score */
    LLM_POOLING_UNSAID                  /* the file has no such field: its
                                           model generates text */
} llm_pooling_t;

typedef struct {
    char         arch[32];
    char         name[128];             /* general.name, or the file's name */
    uint32_t     n_layers;
    uint32_t     n_embd;
    uint32_t     n_ff;                  /* maximum of all layers, as are the
                                           heads, experts and widths below; 0:
                                           all layers are mixtures */
    uint32_t     n_recurrent;           /* layers that keep a state */
    uint32_t     n_experts;             /* 0: no mixtures */
    uint32_t     n_experts_used;
    uint32_t     n_ff_expert;
    uint32_t     n_heads;
    uint32_t     n_kv_heads;
    uint32_t     head_dim_k;
    uint32_t     head_dim_v;
    uint32_t     n_vocab;
    uint32_t     n_ctx_train;
    uint32_t     n_ctx_orig;            /* longest training sequence:
                                           n_ctx_train, or rope.scaling.
                                           original_context_length if longer */
    llm_pooling_t  pooling;             /* of encoders without the field:
                                           MEAN */
    llm_pooling_t  rank_from;           /* with RANK: MEAN, CLS or LAST */
    int          encoder;               /* rows see later rows: the model
                                           generates no text, and computes a
                                           sequence in one step */
    int          turns;                 /* positions of rotary embeddings have
                                           three parts (batch.turns) */
    int          spans;                 /* rows of an image see each other
                                           (batch.sees), so all are in one
                                           step */
    uint32_t     n_deepstack;           /* first layers after which a part of a
                                           given row is added: such a row is
                                           n_embd * (1 + n_deepstack) wide */
    int          listens;               /* rows read what an encoder makes of
                                           sound: only whisper.h runs it */
    float        norm_eps;
    uint64_t     n_params;
    uint64_t     n_bytes;               /* bytes of all tensors */
    uint64_t     n_bytes_step;          /* bytes of these that a step of one
                                           token reads */
    uint64_t     n_bytes_state;         /* bytes of a sequence's recurrent
                                           state */
} llm_hparams_t;

/* what steps keep of all their rows, for a head that drafts (head.h) */
typedef struct {
    int          states;                /* the state after the last norm */
    uint32_t     n_layers;              /* or the inputs of these layers */
    uint32_t     layers[3];
} llm_keep_t;

typedef struct {
    const char  *device;                /* "auto", "cpu", "cuda", "cuda:1",
                                           "cuda:0,1", "emu", "emu:0,1",
                                           "reference"; NULL: auto */
    const char  *isa;                   /* as in llm_exec_opts_t */
    const char  *backend_dir;           /* folder of llm_cuda.so and
                                           llm_emu.so; NULL: that of this
                                           library */
    llm_devices_t  *devices;            /* registry of devices shared with other
                                           models, and of their memory; NULL:
                                           no other model counts */
    int          split_rows;            /* several devices share each layer,
                                           not the model's layers */
    uint32_t     threads;
    uint32_t     ctx;                   /* longest sequence, tokens; 0: as
                                           trained */
    uint32_t     batch;                 /* rows of a step; 0: 512 */
    uint32_t     max_seqs;              /* sequences of a step; 0: 16 */
    uint32_t     max_out;               /* rows of a step that need results; 0:
                                           batch */
    uint32_t     n_windows;             /* windows of sound whose states are
                                           kept, for a model that has an encoder
                                           of sound; 0: 1 */
    llm_keep_t   keep;
    int          whole;                 /* if memory is short, fail rather than
                                           use a smaller ctx */
    size_t       kv_bytes;              /* memory for pages and recurrent
                                           states; 0: for max_seqs sequences of
                                           ctx (of llm_model_window() tokens
                                           where that suffices), or as much as
                                           the device has */
    const char  *tower;                 /* file of the encoder that is loaded
                                           after the model, on its first device:
                                           memory is left for it; or NULL */
    int          drafts;                /* a head or a small model is loaded
                                           after the model, with its ctx and
                                           max_seqs: memory is left for it */
    const char  *draft;                 /* its file; NULL: the head is the
                                           model's own */
    int          weights_fp8;           /* as in llm_exec_opts_t */
    int          kv_fp8;
    int          kv_q8;
    const char  *products;
    const char  *packed;                /* folder for a file of packed weights
                                           (packed.c), or NULL */
    llm_log_pt   log;
    void        *log_data;
    /* progress of a load in thousandths; may be NULL */
    void       (*progress)(void *data, int permille);
    void        *progress_data;
    const int   *cancel;                /* the load ends when *cancel != 0;
                                           atomic, may be NULL */
} llm_model_opts_t;

typedef struct llm_model_s  llm_model_t;

/* reads and checks the header only: architecture, fields, shapes of tensors */
int llm_model_check(const llm_gguf_t *g, llm_hparams_t *hp, llm_err_t *err);

/* err.code of a load that failed because memory was short */
#define LLM_MEMORY_ERROR  "no_memory"

/*
 * An error if a model with this header cannot be loaded on a CPU with this
 * machine's memory, even if all of it were free.  Memory that is in use does
 * not count: a model that does not fit now may fit later.
 */
int llm_model_fits(const llm_gguf_t *g, const llm_model_opts_t *opts,
    llm_err_t *err);

/* what a model takes on a device */
typedef struct {
    char         device[128];           /* as llm_model_device() */
    int          on_gpu;
    size_t       weights;               /* bytes */
    size_t       kv;                    /* bytes of the pages and recurrent
                                           states of max_seqs sequences of
                                           ctx */
    size_t       free_bytes;            /* of the device, without the model */
    uint32_t     ctx;
} llm_model_plan_t;

/* opens the device, but loads nothing (plan.c) */
int llm_model_plan(const char *path, const llm_model_opts_t *opts,
    llm_model_plan_t *plan, llm_err_t *err);

llm_model_t *llm_model_load(const char *path, const llm_model_opts_t *opts,
    llm_err_t *err);
void llm_model_free(llm_model_t *m);
/* the load of the small model of opts->draft begins: the memory that was left
   for it is its own now */
void llm_model_draft_begins(llm_model_t *m);
/* the encoders of opts->tower are loaded: the same of their memory */
void llm_model_towers_loaded(llm_model_t *m);
/* waits until the model's file of packed weights is written, if it is being
   written; free() stops the writing */
void llm_model_wait_packed(llm_model_t *m);

/* a head that drafts for a model, which outlives it: that of the file at path,
   or NULL: of the model's own file.  head.h runs it */
llm_model_t *llm_model_load_head(llm_model_t *of, const char *path,
    const llm_model_opts_t *opts, llm_err_t *err);

const llm_hparams_t *llm_model_hparams(const llm_model_t *m);
const llm_gguf_t *llm_model_gguf(const llm_model_t *m);
uint32_t llm_model_ctx(const llm_model_t *m);
uint32_t llm_model_batch(const llm_model_t *m);
uint32_t llm_model_max_seqs(const llm_model_t *m);
uint32_t llm_model_max_out(const llm_model_t *m);
/* pages of the cache of this kind (llm_kv_kind_t), the numbers below this in
   batch.pages[kind]; 0: there is no such cache */
uint32_t llm_model_n_pages(const llm_model_t *m, uint32_t kind);
/*
 * Slots for recurrent states (batch.slots of kernels.h); 0: the model has no
 * recurrent layers.  They share their memory with the pages: one slot for each
 * of max_seqs running sequences, and others for snapshots, which take at most a
 * third of the memory.  There is at least one snapshot, and there are at most
 * as many as pages of LLM_KV_FULL.
 */
uint32_t llm_model_n_slots(const llm_model_t *m);
/*
 * The most positions that a row sees, its own and those before it, in the
 * layers with windows; 0: all.  It is not 0 if all layers have windows, or if
 * those that do have a cache of their own.  Earlier pages are not read, so a
 * sequence of ctx needs only pages for a window and the rows of two steps, and
 * there may be fewer of these pages than ctx fills.
 */
uint32_t llm_model_window(const llm_model_t *m);
/* bytes of pages and slots */
uint64_t llm_model_kv_bytes(const llm_model_t *m);
/* whether memory was too short for the pages of max_seqs sequences of ctx */
int llm_model_short_kv(const llm_model_t *m);
/* "AVX-512 VNNI, 2 threads": the device, for the log and for info */
void llm_model_device(const llm_model_t *m, char *buf, size_t size);
int llm_model_on_gpu(const llm_model_t *m);

/*
 * Whether rows of a step may be given (batch.given), such as those of an image.
 * They are n_embd * (1 + n_deepstack) wide, and their tokens are 0.
 */
int llm_model_takes_rows(const llm_model_t *m);

/*
 * One step (kernels.h).  n_tokens <= batch, n_seqs <= max_seqs, n_out <=
 * max_out, every kv_len <= ctx, and slots below n_slots if the model has
 * slots; asserted.  Then llm_model_logits(m, i) is the row of out_rows[i],
 * n_vocab floats, valid until the next step.
 */
int llm_model_forward(llm_model_t *m, const llm_batch_t *b, llm_err_t *err);
const float *llm_model_logits(llm_model_t *m, uint32_t i);
/* the row's final state, n_embd floats, if batch.gives asks for states; valid
   until the next step */
const float *llm_model_hidden(llm_model_t *m, uint32_t i);

/*
 * Of a model with `keep`: rows [row, row + n) of the step that ended last,
 * n_embd floats each, of the final states (i = 0) or of the inputs of layer
 * keep.layers[i]; valid until the next call, or the next step.
 */
const float *llm_model_kept(llm_model_t *m, uint32_t i, uint32_t row,
    uint32_t n);

/*
 * llm_model_forward() in two calls.  wait() waits for the oldest submitted
 * step; its results are valid until the next submit(), wait() or forward().
 * If llm_model_overlaps(), a step whose tokens are all drawn by the device may
 * be followed by another submit() before its wait(), see batch.follows.  After
 * an error no step is in flight.
 */
int llm_model_overlaps(const llm_model_t *m);
int llm_model_submit(llm_model_t *m, const llm_batch_t *b, llm_err_t *err);
int llm_model_wait(llm_model_t *m, llm_err_t *err);

/* whether the device draws tokens; if so, llm_model_drawn() gives the token of
   draw i in batch.draws (kernels.h), until the next submit(), wait() or
   forward() */
int llm_model_draws(const llm_model_t *m);
void llm_model_drawn(llm_model_t *m, uint32_t i, llm_drawn_t *out);

/* dense.c: turns a pooled state, n_embd floats, into the model's embedding, in
   place; 0: v is unchanged, because the file has no matrices for this */
int llm_model_project(const llm_model_t *m, float *v);

/*
 * rank.c: the probability that a document answers a query, from the pooled
 * state of the pair; raw: its log odds.  can_rank(): LLM_ERROR if the model
 * cannot, err says what its file lacks.
 */
int llm_model_can_rank(const llm_model_t *m, llm_err_t *err);
double llm_model_rank(const llm_model_t *m, const float *state, int raw);

/* copies one page of the cache of this kind to another, in all layers, after
   the steps submitted so far */
void llm_model_copy_page(llm_model_t *m, uint32_t kind, uint32_t src,
    uint32_t dst);
/* copies one slot to another, after the steps submitted so far; the model must
   have slots */
void llm_model_copy_slot(llm_model_t *m, uint32_t src, uint32_t dst);

#endif /* LLM_MODEL_H */
