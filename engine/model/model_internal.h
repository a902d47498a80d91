/*
 * What the files that load a model (model.c, memory.c, weights.c, acts.c,
 * caches.c ...) and those that run it (forward.c and the blocks) share.
 */

#ifndef LLM_MODEL_INTERNAL_H
#define LLM_MODEL_INTERNAL_H

#include "engine/model/arch.h"

#include <pthread.h>
#include <stdatomic.h>

/* buffers of activations, the rows of tensors.def; their rows are tokens */
typedef enum {
#define LLM_BUFFER(ID, kind, rows)  LLM_MA_##ID,
#include "engine/model/tensors.def"
    LLM_MA_N
} llm_model_act_t;

/* how wide a buffer is in a layer; lists end with LLM_MA_N */
typedef struct {
    llm_model_act_t    buffer;
    llm_dim_t          cols;            /* 0: the layer does not use it */
} llm_buffer_want_t;

/* w for a matrix, v for a vector; both are NULL if the file does not have
   it */
typedef struct {
    llm_weight_t      *w[LLM_LT_N];
    llm_vec_t         *v[LLM_LT_N];
    float              out_scale;       /* LLM_LT_OUT_SCALE */
    float             *k_b;             /* K_B of files that have KV_B, or
                                           NULL */
    char              *mixed;           /* rows of DELTA_MIXED, those of
                                           DELTA_QKV first; or NULL */
} llm_model_layer_t;

/* rank.c: a head on the host; pointers are NULL where there is no tensor */
typedef struct {
    float      *cls;                    /* [n_embd][n_embd] */
    float      *cls_bias;
    float      *cls_norm;
    float      *out;                    /* [n_out][n_embd] NULL: no head */
    float      *out_bias;
    float      *row;                    /* [n_embd] of one call */
    uint32_t    n_out;                  /* 1 or 2 */
    uint32_t    yes;                    /* which row speaks for the
                                           document */
} llm_rank_t;

typedef struct llm_shared_device_s  llm_shared_device_t;

struct llm_devices_s {
    pthread_mutex_t       lock;         /* guards the next two */
    llm_shared_device_t  *open;
    llm_model_t          *promised;     /* the models that were promised some
                                           of the machine's memory; see
                                           promise.c */
};

/* what a model was promised of the machine's memory; see promise.c */
typedef struct {
    llm_model_t        *next;           /* these three under the lock of its
                                           devices */
    int                 listed;         /* its owner may read it without: it
                                           was promised some */
    int                 loaded;         /* it has its caches */

    size_t              weights;        /* bytes; likewise */
    size_t              kv;             /* of kv_cache=, or 0 */

    /* bytes of the file that were loaded: the thread that loads adds, others
       read, relaxed, as they were a moment ago */
    _Atomic size_t      taken;
} llm_promise_t;

struct llm_model_s {
    llm_gguf_t         *gguf;
    llm_desc_t          desc;

    llm_devices_t      *devices;        /* that its own is one of */
    int                 alone;          /* these are the model's to free */
    llm_dev_t          *dev;
    const llm_ops_t    *ops;

    llm_weight_t       *token_embd;
    llm_weight_t       *output;         /* token_embd, if it is tied */
    llm_vec_t          *output_norm;
    llm_vec_t          *output_norm_bias;
    llm_vec_t          *output_bias;
    llm_weight_t       *pos_embd;
    llm_vec_t          *token_type;     /* of all tokens */
    llm_vec_t          *embd_norm;      /* of the sum of a token's
                                           embeddings */
    llm_vec_t          *embd_norm_bias;
    llm_vec_t          *slopes;         /* ALiBi's, of the heads */
    llm_weight_t       *input_embd;     /* of the layers' own inputs */
    llm_weight_t       *input_proj;
    llm_vec_t          *input_norm;
    llm_vec_t          *inv_freq[LLM_MAX_ROPES];
    llm_rank_t          rank;
    float              *dense[2];       /* dense.c */
    float              *dense_row;      /* [n_dense] of one call */
    uint32_t            n_dense;        /* 0: there is no such layer */
    llm_model_layer_t  *layers;

    llm_act_t          *act[LLM_MA_N];
    uint32_t            n_kinds;        /* of caches */
    llm_kv_t           *kv[LLM_KV_KINDS];
    llm_kv_layer_t     *kv_layers[LLM_KV_KINDS];    /* what each layer keeps
                                           there; NULL: as the description
                                           says */
    llm_state_t        *state;          /* of recurrent layers, or NULL */
    llm_choice_t       *choice;         /* of experts, or NULL */

    uint32_t            ctx;
    uint32_t            batch;
    uint32_t            max_seqs;
    uint32_t            max_out;
    uint32_t            max_pages;      /* of one sequence, the length of its
                                           table */
    uint32_t            window;         /* llm_model_window() */
    uint32_t            n_pages[LLM_KV_KINDS];
    uint32_t            n_slots;        /* of state, 0: there is none */
    uint64_t            kv_bytes;       /* of pages and slots */
    int                 short_kv;       /* there was memory for fewer than
                                           configured */
    llm_promise_t       promise;

    uint32_t            n_out;          /* of the step that began last */
    llm_gives_t         gives;
    uint32_t            in_flight[2];   /* n_out of the steps submitted, oldest
                                           first */
    uint32_t            n_in_flight;
    uint32_t            n_results;      /* n_out of the step that ended last */
    const float        *logits;         /* of that step, once asked for */
    const float        *states;
};

/* of a load, for its lines in the log */
typedef struct {
    uint64_t                 began_us;  /* llm_now_us() */
    uint64_t                 said_us;   /* of the last line, or as above */
} llm_progress_t;

/* the state of one load */
typedef struct {
    llm_model_t             *m;
    const llm_model_opts_t  *opts;
    uint64_t                 done;      /* bytes of tensors loaded */
    llm_progress_t           progress;
    int                      memory;    /* a failure now is for lack of
                                           memory */
    size_t                   promised;  /* bytes of the machine's memory, to
                                           other models */
    llm_err_t               *err;
} llm_load_t;

/* memory.c: a size for a message, rounded up or down; its text has room for
   LLM_LOAD_SIZE */
#define LLM_LOAD_SIZE  32
const char *llm_load_size(char *text, size_t bytes, int up);

/* likewise: all but n_pages, of the cache of a kind */
void llm_load_kv_opts(const llm_load_t *l, uint32_t kind, llm_kv_opts_t *o);

/* likewise: pages there that one sequence of ctx needs; bytes of its
   states */
uint32_t llm_load_seq_pages(const llm_model_t *m, uint32_t kind);
size_t llm_load_slot_size(const llm_load_t *l);

/* forward.c: the buffers of the model itself, beside those of its blocks */
extern const llm_buffer_want_t  llm_forward_buffers[];

/* acts.c: buffers; the choice of experts, which all layers share */
int llm_load_acts(llm_load_t *l);
int llm_load_choice(llm_load_t *l);

/* caches.c: which kinds of caches there are, and which layers keep what in
   which; then, with a device, the caches and states */
int llm_load_kinds(llm_load_t *l);
int llm_load_caches(llm_load_t *l);

/* likewise: of the device's layout of all weights */
size_t llm_load_weight_bytes(const llm_model_t *m);

/*
 * promise.c: is there memory for it that nobody else was promised?  Then it is
 * promised; until the model has it, or is freed.  promised(): bytes that
 * models on these devices other than this one will still take.
 */
int llm_promise(llm_load_t *l);
void llm_promise_loaded(llm_model_t *m);
void llm_promise_end(llm_model_t *m);
size_t llm_promised(llm_devices_t *devices, const llm_model_t *but);

/*
 * Do weights and KV cache fit into the machine's memory, all_bytes of which
 * free_bytes may be had, but for l->promised?  l->memory: they would if it
 * were free.
 */
int llm_load_fits(llm_load_t *l, size_t free_bytes, size_t all_bytes);
/* would they if all of it were free? */
int llm_load_fits_at_all(llm_load_t *l, size_t all_bytes);

/* progress.c: a line in the log; how far a load is, LLM_OK and a line, or
   LLM_ABSENT; MiB a second */
void llm_load_log(llm_load_t *l, int level, const char *fmt, ...)
    llm_printf_like(3, 4);
double llm_progress_speed(const llm_progress_t *p, uint64_t now_us,
    uint64_t bytes);
int llm_progress_line(llm_progress_t *p, uint64_t now_us, uint64_t done,
    uint64_t total, char *buf, size_t size);

/* likewise: so many bytes more are loaded; LLM_ERROR: the load was given up */
int llm_load_progress(llm_load_t *l, uint64_t bytes);

/* host.c: a tensor's numbers, NULL: there is no memory; the same of a tensor
   that the file may lack, counted, and the caller frees *w after an error,
   too */
float *llm_load_floats(llm_load_t *l, const llm_gguf_tensor_t *t);
int llm_load_host(llm_load_t *l, llm_global_tensor_t id, float **w);
double llm_host_dot(const float *a, const float *b, uint32_t n);

/* weights.c: gives all tensors of the description to the device */
int llm_load_weights(llm_load_t *l);
/* rank.c: the head that ranks, if the file has one */
int llm_load_rank(llm_load_t *l);
void llm_rank_unload(llm_rank_t *r);
/* dense.c: what projects a pooled state, if the file has it */
int llm_load_dense(llm_load_t *l);

#endif /* LLM_MODEL_INTERNAL_H */
