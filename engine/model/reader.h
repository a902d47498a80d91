/*
 * Reads the fields of a file's architecture, "ARCH.name", into a
 * description, and keeps which were read: a field that nobody reads and that
 * may change the result is refused by its name.
 *
 * llm_desc_read() makes and frees a reader.  Functions give LLM_OK, LLM_ABSENT
 * (the value keeps its default) or LLM_ERROR with a message.
 */

#ifndef LLM_MODEL_READER_H
#define LLM_MODEL_READER_H

#include "engine/model/arch.h"

struct llm_reader_s {
    const llm_gguf_t  *g;
    llm_desc_t        *d;
    uint8_t           *used;            /* [fields of the file] */
    llm_err_t         *err;
};

int llm_read_u32(llm_reader_t *r, const char *name, uint32_t *v);
/* finite */
int llm_read_f32(llm_reader_t *r, const char *name, float *v);
int llm_read_bool(llm_reader_t *r, const char *name, int *v);
int llm_read_str(llm_reader_t *r, const char *name, llm_str_t *v);

/* refuses a value of the field that is not within min and max */
int llm_read_within(llm_reader_t *r, const char *name, uint32_t v,
    uint32_t min, uint32_t max);
/* within 1 and max; a default of 0: the field must be there.  LLM_OK or
   LLM_ERROR */
int llm_read_size(llm_reader_t *r, const char *name, uint32_t max,
    uint32_t *v);

/* item `layer` of an array, or the number that is there for all layers */
int llm_read_layer(llm_reader_t *r, const char *name, uint32_t layer,
    uint32_t *v);
/* item i of an array of numbers with a name of its own, not "ARCH.name" */
int llm_read_item(llm_reader_t *r, const char *key, uint32_t i, float *v);

/* the field with this whole key, or NULL; it counts as read from now on */
const llm_gguf_kv_t *llm_read_key(llm_reader_t *r, const char *key);

/* the field changes nothing here; all fields that begin with `prefix` */
void llm_read_ignore(llm_reader_t *r, const char *name);
void llm_read_ignore_all(llm_reader_t *r, const char *prefix);

/* arch_encoder.c: what all models without a causal mask have in common */
int llm_read_encoder(llm_reader_t *r);

void llm_layer_want(llm_layer_desc_t *l, const llm_tensor_want_t *w);

/* refuses what was not read */
int llm_read_rest(llm_reader_t *r);

int llm_read_missing(llm_reader_t *r, const char *name);

/* gives all layers attention.clamp_kqv as the bound of Q, K and V */
int llm_read_bound(llm_reader_t *r);

/* arch_common.c: lists of tensors that several architectures have */
extern const llm_tensor_want_t  llm_want_qk_norms[];
extern const llm_tensor_want_t  llm_want_post_norms[];
extern const llm_tensor_want_t  llm_want_qk_post_norms[];
extern const llm_tensor_want_t  llm_want_no_gate[];

/* what readers of architectures do to all layers */
void llm_desc_want(llm_desc_t *d, llm_layer_tensor_t t, llm_want_t want);
/* Q and K have norms with weights for each head */
void llm_desc_head_norms(llm_desc_t *d, llm_want_t want);
/* Q and K are normalised as whole rows */
void llm_desc_row_norms(llm_desc_t *d);
/* the norm before the feed-forward network has the name of one behind
   attention */
void llm_desc_rename_ffn_norm(llm_desc_t *d);
/* the feed-forward network reads what attention reads */
void llm_desc_parallel(llm_desc_t *d);
/* the layer's chain becomes these n blocks, and it wants their tensors, with
   those that it wanted before */
void llm_desc_chain(llm_layer_desc_t *l, const llm_block_t *const *blocks,
    uint32_t n);

/*
 * windows.c: gives each layer its window, from attention.sliding_window and
 * attention.sliding_window_pattern; without the latter the last of every
 * `period` layers has none.  Layers with windows take the rope `rope`.
 * LLM_ABSENT: there are no windows.
 */
int llm_read_windows(llm_reader_t *r, uint32_t period, uint32_t rope);
/* the same, but the first of every `period` layers has none */
int llm_read_windows_behind(llm_reader_t *r, uint32_t period, uint32_t rope);

/* adds a rope, that of layers with windows: as the first, but without its
   scaling, and of the base rope.freq_base_swa if the file has it, else of
   `base` */
int llm_read_window_rope(llm_reader_t *r, float base, uint32_t *rope);
/* windows whose RoPE is not scaled, if the file has windows.  LLM_OK or
   LLM_ERROR */
int llm_read_unscaled_windows(llm_reader_t *r, uint32_t period);
/* layers without windows have no RoPE */
void llm_desc_rope_in_windows(llm_desc_t *d);

/* rope.c: a base, which is above 1; the elements that are turned, an even
   number of at most max.  LLM_OK or LLM_ERROR, and *v is the default */
int llm_read_rope_base(llm_reader_t *r, const char *name, float *v);
int llm_read_rot(llm_reader_t *r, const char *name, uint32_t max,
    uint32_t *v);

/* RoPE may have factors for contexts beyond the first training's, in
   tensors that llm_long_rope wants */
extern const llm_tensor_want_t  llm_long_rope[];
int llm_read_long_rope(llm_reader_t *r);

/* arch_llama.c: factors on embeddings, residuals and logits; a description
   has what is not said */
int llm_read_granite(llm_reader_t *r);
/* those of all MiniCPM models, for files that do not say them */
void llm_minicpm_scales(llm_desc_t *d);

#endif /* LLM_MODEL_READER_H */
