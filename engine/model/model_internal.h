/*
 * Shared by the files that load a model (model.c, memory.c, weights.c, acts.c,
 * caches.c ...) and those that run it (forward.c and the blocks).  The model
 * owns all that its struct points to, but for ops, logits and states, and for
 * devices unless `alone` is set.
 */

#ifndef LLM_MODEL_INTERNAL_H
#define LLM_MODEL_INTERNAL_H

#include "engine/model/arch.h"
#include "engine/model/backend.h"
#include "engine/gguf/map.h"

#include <pthread.h>
#include <stdatomic.h>

/* buffers of activations, the rows of tensors.def; their rows are tokens */
typedef enum {
#define LLM_BUFFER(ID, kind, rows)  LLM_MA_##ID,
#include "engine/model/tensors.def"
    LLM_MA_N
} llm_model_act_t;

/* width of a buffer in a layer; a list ends with LLM_MA_N */
typedef struct {
    llm_model_act_t    buffer;
    llm_dim_t          cols;            /* a value of 0: the layer does not use
                                           the buffer */
} llm_buffer_want_t;

/* a layer's tensors: w for a matrix, v for a vector; both are NULL if the file
   lacks the tensor */
typedef struct {
    llm_weight_t      *w[LLM_LT_N];
    llm_vec_t         *v[LLM_LT_N];
    float              out_scale;       /* LLM_LT_OUT_SCALE */
    float             *k_b;             /* rows of K_B, made from KV_B; or
                                           NULL */
    char              *mixed;           /* rows of DELTA_MIXED, those of
                                           DELTA_QKV first; or NULL */
} llm_model_layer_t;

/* rank.c: the head, on the host; a pointer is NULL without its tensor */
typedef struct {
    float      *cls;                    /* [n_embd][n_embd] */
    float      *cls_bias;
    float      *cls_norm;
    float      *out;                    /* [n_out][n_embd] NULL: no head */
    float      *out_bias;
    float      *row;                    /* [n_embd] of one call */
    uint32_t    n_out;                  /* 1 or 2 */
    uint32_t    yes;                    /* the row whose probability is the
                                           score */
} llm_rank_t;

/*
 * What a model has on one of its devices: adjacent layers, and what the
 * operations of these need there.  The first part also has the embeddings, the
 * last one the head.
 */
typedef struct {
    llm_exec_t         *exec;
    char                name[LLM_BACKEND_NAME];     /* "cuda:1" */
    uint32_t            first;          /* its layers are first ... end - 1 */
    uint32_t            end;
    llm_vec_t          *slopes;         /* [n_heads] ALiBi's */
    llm_vec_t          *inv_freq[LLM_MAX_ROPES];
    llm_act_t          *act[LLM_MA_N];
    llm_kv_t           *kv[LLM_KV_KINDS];
    llm_kv_t           *cross;          /* LLM_KV_CROSS, or NULL */
    llm_kv_layer_t     *kv_layers[LLM_KV_KINDS];    /* [n_layers] as in the
                                           model, those of other parts empty;
                                           NULL: there is one part */
    llm_state_t        *state;          /* recurrent states, or NULL */
    llm_state_layer_t  *states;         /* [n_layers] the same for states */
    llm_choice_t       *choice;         /* choice of experts, or NULL */
} llm_model_part_t;

/* a device of a team */
typedef struct {
    llm_exec_t         *exec;
    char                name[LLM_BACKEND_NAME];     /* "cuda:1" */
} llm_member_t;

typedef struct llm_shared_device_s  llm_shared_device_t;
typedef struct llm_ear_s          llm_ear_t;    /* ear.h */

struct llm_devices_s {
    pthread_mutex_t       lock;         /* for the next two */
    llm_shared_device_t  *open;
    llm_model_t          *promised;     /* list of the models that were promised
                                           memory of the machine: promise.c */
};

/* the machine's memory that a model was promised; see promise.c */
typedef struct {
    llm_model_t        *next;           /* the fields up to kv: under the lock
                                           of the model's devices */
    int                 listed;         /* in the list: memory was promised;
                                           the model's owner may read this
                                           without the lock */
    int                 loaded;         /* the model has its caches */

    size_t              weights;        /* bytes; 0 once loaded */
    size_t              tower;          /* of its encoder, as well */
    size_t              draft;          /* of what drafts for it */
    size_t              kv;             /* bytes of kv_cache=, or 0 */

    /* bytes of the file that were loaded: the loading thread adds, others read
       (relaxed, so the number may be slightly old) */
    _Atomic size_t      taken;
} llm_promise_t;

/* the model's file of packed weights: packed.c */
typedef struct {
    char               *path;           /* NULL: packed is off */
    char                key[256];       /* padded with zeros */
    llm_map_t          *map;            /* NULL: the weights were packed */
    llm_log_pt          log;
    void               *log_data;
    int                 wanted;         /* the file is to be written */
    int                 writing;        /* `writer` was started and not joined
                                           yet; it reads the fields above */
    pthread_t           writer;
    int                 cancel;         /* atomic, relaxed: the owner sets it,
                                           the writer reads it */
} llm_packed_t;

struct llm_model_s {
    llm_gguf_t         *gguf;
    llm_packed_t        packed;
    llm_desc_t          desc;

    llm_devices_t      *devices;        /* registry with the model's devices */
    int                 alone;          /* the model owns the registry */
    const llm_ops_t    *ops;            /* of all its devices */
    llm_model_part_t   *parts;          /* [n_parts] in the order of layers */
    uint32_t            n_parts;

    /* the devices of split=rows, whose team the only part is on */
    llm_member_t        members[LLM_MAX_DEVICES];
    uint32_t            n_members;      /* 0: there is no team */

    /* the part that a load or a step is at, and what all blocks use of it
       (llm_part_enter()) */
    llm_model_part_t   *at;
    llm_exec_t         *exec;
    llm_act_t         **act;            /* [LLM_MA_N] */

    llm_weight_t       *token_embd;
    llm_weight_t       *output;         /* token_embd if it is tied */
    llm_vec_t          *output_norm;
    llm_vec_t          *output_norm_bias;
    llm_vec_t          *output_bias;
    llm_weight_t       *pos_embd;
    llm_vec_t          *token_type;     /* of all tokens */
    llm_vec_t          *embd_norm;      /* of the sum of a token's
                                           embeddings */
    llm_vec_t          *embd_norm_bias;
    llm_weight_t       *input_embd;     /* of the layers' own inputs, as the
                                           next two */
    llm_weight_t       *input_proj;
    llm_vec_t          *input_norm;
    llm_rank_t          rank;
    float              *dense[2];       /* dense_2 and dense_3: dense.c */
    float              *dense_row;      /* [n_dense] scratch of one call */
    uint32_t            n_dense;        /* rows of dense_2; 0: there are no
                                           dense layers */
    llm_model_layer_t  *layers;         /* [n_layers] */
    llm_ear_t          *ear;            /* encoder of sound, or NULL */
    llm_keep_t          keep;           /* what steps keep of all rows */
    uint32_t            n_kept;         /* rows of the step that ended last */

    /* of a head that drafts (head.h) */
    llm_model_t        *of;             /* the model; NULL: this is no head */
    llm_weight_t       *makes;          /* what makes a row of PAIR or TAPS */
    llm_weight_t       *after;          /* of a state of the assistant */
    int                 borrows;        /* `output` is the model's */
    llm_kv_t           *outside[LLM_KV_KINDS];  /* the model's */

    uint32_t            n_kinds;        /* kinds of caches */
    llm_kv_layer_t     *kv_layers[LLM_KV_KINDS];    /* [n_layers] what each
                                           layer keeps in that cache; NULL:
                                           desc.kv */

    uint32_t            ctx;
    uint32_t            batch;
    uint32_t            max_seqs;
    uint32_t            max_out;
    uint32_t            max_pages;      /* pages of one sequence, the length of
                                           its table */
    uint32_t            window;         /* llm_model_window() */
    uint32_t            n_pages[LLM_KV_KINDS];
    uint32_t            n_slots;        /* of state; 0: there is none */
    size_t              slot_bytes;     /* bytes of a slot */
    uint64_t            kv_bytes;       /* bytes of pages and slots */
    int                 short_kv;       /* llm_model_short_kv() */
    llm_promise_t       promise;

    uint32_t            n_out;          /* of the step that began last */
    uint32_t            n_rows;         /* of that step */
    int                 all_out;        /* all of these give results, once
                                           each */
    llm_gives_t         gives;          /* of that step */
    int                 given;          /* some rows of that step are given */
    uint32_t            in_flight[2];   /* n_out of the steps submitted, oldest
                                           first */
    uint32_t            n_in_flight;
    uint32_t            n_results;      /* n_out of the step that ended last */
    const float        *logits;         /* of that step, once mapped; or NULL */
    const float        *hidden;
};

/* times of a load, for its log lines */
typedef struct {
    uint64_t                 began_us;  /* llm_now_us() at the beginning */
    uint64_t                 said_us;   /* of the last line, or began_us */
} llm_progress_t;

/* memory of what is loaded after the model: beside.c */
typedef struct {
    size_t                   tower;     /* bytes of the encoder, on the first
                                           device */
    size_t                   draft;     /* of weights and buffers of what
                                           drafts */
    size_t                   page;      /* of a page of its KV cache; 0: it has
                                           none */
    size_t                   pages;     /* that it has a use for */
    size_t                   least;     /* bytes of those of one sequence */
    int                      head;      /* a head drafts, on the last device */
    int                      gpu;       /* the memory is that of GPUs */
} llm_beside_t;

/* the state of one load */
typedef struct {
    llm_model_t             *m;
    const llm_model_opts_t  *opts;
    uint64_t                 done;      /* bytes of tensors loaded */
    llm_progress_t           progress;
    int                      memory;    /* if the load fails now, it is for
                                           lack of memory */
    size_t                   promised;  /* bytes of the machine's memory that
                                           other models were promised */
    llm_beside_t             beside;
    llm_err_t               *err;
} llm_load_t;

/* load.c: begins a load; what follows once the file is described */
void llm_load_begin(llm_load_t *l, llm_model_t *m,
    const llm_model_opts_t *opts, llm_err_t *err);
/* the error's code is LLM_MEMORY_ERROR if the load had come to where it takes
   memory, but for faults of the device and of files */
void llm_load_failed(const llm_load_t *l);
int llm_load_described(llm_load_t *l);
/* model.c: an empty model with its registry of devices, NULL: no memory; what a
   load does once the file is described: the longest sequence, sizes of a step,
   the devices */
llm_model_t *llm_model_create(const llm_model_opts_t *opts);
int llm_load_ctx(llm_load_t *l);
int llm_load_sizes(llm_load_t *l);
int llm_load_device(llm_load_t *l);

/* beside.c: sets l->beside, when the device is open */
int llm_beside_read(llm_load_t *l);

/* of what drafts with the least of its KV cache, of which the machine's memory
   must have twice as much, as for any model */
static inline size_t
llm_beside_draft_bytes(const llm_beside_t *b)
{
    return b->draft + 2 * b->least;
}

/* room.c: bytes that the caches of part i leave, of `room` that are free; page:
   of the model's own KV cache there */
size_t llm_beside_part(const llm_beside_t *b, const llm_model_t *m, uint32_t i,
    size_t room, size_t page);

/* tower_memory.c: about the bytes that a tower takes once it is loaded, and
   works; errors in its file are left to its load */
size_t llm_tower_memory(const llm_gguf_t *g, int gpu);

/* memory.c: writes "12 MiB" (KiB or bytes if less than one), rounded up or
   down, into text, which has room for LLM_LOAD_SIZE; returns text */
#define LLM_LOAD_SIZE  32
const char *llm_load_size(char *text, size_t bytes, int up);

/* parts.c: makes a part for each device, which the caller opens.  divide():
   divides the layers, once all devices are open; link(): links the devices,
   once they have their buffers; enter(): operations are about part i from now
   on; last(): the part with the head */
int llm_parts_create(llm_load_t *l, uint32_t n);
int llm_parts_divide(llm_load_t *l);
int llm_parts_link(llm_load_t *l);
void llm_parts_free(llm_model_t *m);
void llm_part_enter(llm_model_t *m, uint32_t i);
llm_model_part_t *llm_part_last(const llm_model_t *m);
/* the part of a layer */
uint32_t llm_part_of(const llm_model_t *m, uint32_t layer);

/* split.c: opens the devices of the list as the team of the only part; closes
   them, after what is on them was freed */
int llm_split_open(llm_load_t *l, const llm_backend_list_t *list,
    const llm_exec_opts_t *o);
void llm_split_close(llm_model_t *m);

/* memory.c: options of the cache of a kind in the part that the load is at, all
   but n_pages; of the states, all but n_slots */
void llm_load_kv_opts(const llm_load_t *l, uint32_t kind, llm_kv_opts_t *o);
void llm_load_state_opts(const llm_load_t *l, llm_state_opts_t *o);

/* memory.c: pages of the cache of a kind that one sequence of ctx needs; bytes
   of a slot in that part, 0: the model has no states */
uint32_t llm_load_seq_pages(const llm_model_t *m, uint32_t kind);
size_t llm_load_slot_size(const llm_load_t *l);

/* forward.c: the buffers of the model itself; blocks have lists of theirs */
extern const llm_buffer_want_t  llm_forward_buffers[];

/* keep.c: what a step keeps of all its rows.  check(): an error if the layers
   are not there; acts(): the buffers of the part that the load is at */
int llm_keep_check(llm_load_t *l);
int llm_keep_acts(llm_load_t *l);

/* head_load.c: an error if the head cannot draft for m->of; what it has instead
   of a model's embeddings, output and caches */
int llm_head_fits(llm_model_t *m, llm_err_t *err);
/* LLM_ERROR, and *err: the head was made for a model of another width */
int llm_head_wrong_width(const llm_gguf_t *head, const llm_desc_t *d,
    const llm_gguf_t *model, uint32_t n_embd, llm_err_t *err);
int llm_load_head_globals(llm_load_t *l);
int llm_load_head_caches(llm_load_t *l);

/* acts.c: buffers; the choice of experts, which all layers share */
int llm_load_acts(llm_load_t *l);
int llm_load_choice(llm_load_t *l);

/* caches.c: kinds() finds the kinds of caches and what each layer keeps in
   which; caches() creates the caches and states, once there is a device */
int llm_load_kinds(llm_load_t *l);
int llm_load_caches(llm_load_t *l);

/*
 * packed.c: open(): maps the file of packed weights, if there is one, once the
 * device is open; keep(): begins to write it otherwise, when the model is
 * loaded; stop(): gives the writing up, as the weights are freed next; close():
 * after the weights; intact(): an error if a page could not be read.
 */
int llm_packed_open(llm_load_t *l);
void llm_packed_keep(llm_model_t *m);
void llm_packed_stop(llm_model_t *m);
void llm_packed_close(llm_model_t *m);
int llm_packed_intact(const llm_model_t *m, llm_err_t *err);

/* memory.c: bytes of the machine's memory that the device's own layout of all
   weights takes; of the pages and states of n sequences of ctx; SIZE_MAX: they
   overflow */
size_t llm_load_weight_bytes(const llm_model_t *m);
size_t llm_load_seqs_bytes(const llm_load_t *l, uint32_t n);

/*
 * promise.c: promises the model the memory that it needs, until the model has
 * it or is freed; an error if there is not enough that was not promised to
 * others.  promised(): bytes that models on these devices other than `but` will
 * still take.
 */
int llm_promise(llm_load_t *l);
void llm_promise_loaded(llm_model_t *m);
/* its encoder is loaded; the load of what drafts begins */
void llm_promise_end(llm_model_t *m);
size_t llm_promised(llm_devices_t *devices, const llm_model_t *but);

/*
 * memory.c: an error if weights and KV cache do not fit into the machine's
 * memory: all_bytes, of which free_bytes are free, less l->promised.  Sets
 * l->memory if they would fit into all_bytes.
 */
int llm_load_fits(llm_load_t *l, size_t free_bytes, size_t all_bytes);
/* bytes of the states of an encoder's windows */
size_t llm_load_cross_bytes(const llm_load_t *l);
/* on a CPU: an error if kv_cache= is too small for one sequence of ctx= */
int llm_load_kv_fits(llm_load_t *l);
/* an error if they do not fit even into all_bytes */
int llm_load_fits_at_all(llm_load_t *l, size_t all_bytes);

/* progress.c: log() writes a line to the log; speed() is in MiB/s; line()
   writes how far a load is into buf, or returns LLM_ABSENT if the last line is
   less than ten seconds old */
void llm_load_log(llm_load_t *l, int level, const char *fmt, ...)
    llm_printf_like(3, 4);
double llm_progress_speed(const llm_progress_t *p, uint64_t now_us,
    uint64_t bytes);
int llm_progress_line(llm_progress_t *p, uint64_t now_us, uint64_t done,
    uint64_t total, char *buf, size_t size);

/* progress.c: adds to the bytes that were loaded; LLM_ERROR: the caller has
   cancelled the load */
int llm_load_progress(llm_load_t *l, uint64_t bytes);

/* host.c: a tensor as floats, which the caller frees; NULL: no memory.
   llm_load_host() is for a global tensor: *w is not changed if the file lacks
   it, its bytes count as loaded, and *w is to be freed even after an error */
float *llm_load_floats(llm_load_t *l, const llm_gguf_tensor_t *t);
int llm_load_host(llm_load_t *l, llm_global_tensor_t id, float **w);
double llm_host_dot(const float *a, const float *b, uint32_t n);

/* weights.c: gives the layers' tensors to their devices; to the device that the
   load is at, a whole matrix, and a vector or the first row of a matrix; sets
   the factors on products with w: none if t or w is NULL */
int llm_load_weights(llm_load_t *l);
llm_weight_t *llm_load_weight(llm_load_t *l, const llm_gguf_tensor_t *t,
    int usage);
llm_vec_t *llm_load_vec(llm_load_t *l, const llm_gguf_tensor_t *t);
int llm_load_scale(llm_load_t *l, const llm_gguf_tensor_t *t,
    llm_weight_t *w);
/* globals.c: the same for the tensors of the whole model, and the heads that
   run on the host */
int llm_load_globals(llm_load_t *l);
/* rank.c: the ranking head, if the file has one */
int llm_load_rank(llm_load_t *l);
void llm_rank_unload(llm_rank_t *r);
/* dense.c: the matrices that project a pooled state, if the file has them */
int llm_load_dense(llm_load_t *l);

#endif /* LLM_MODEL_INTERNAL_H */
