/*
 * Reads the fields of a file's architecture, "ARCH.name", into a description,
 * and records which were read: a field that was not read and may change the
 * result is refused by its name.
 *
 * llm_desc_read() creates and frees the reader.  Unless noted, functions return
 * LLM_OK, LLM_ABSENT (*v keeps its default) or LLM_ERROR with a message.
 */

#ifndef LLM_MODEL_READER_H
#define LLM_MODEL_READER_H

#include "engine/model/arch.h"

struct llm_reader_s {
    const llm_gguf_t  *g;
    llm_desc_t        *d;
    uint8_t           *used;            /* [fields of the file] was read */
    llm_err_t         *err;
};

int llm_read_u32(llm_reader_t *r, const char *name, uint32_t *v);
/* an error if the number is not finite */
int llm_read_f32(llm_reader_t *r, const char *name, float *v);
int llm_read_bool(llm_reader_t *r, const char *name, int *v);
int llm_read_str(llm_reader_t *r, const char *name, llm_str_t *v);

/* LLM_ERROR if the field's value v is not within min and max */
int llm_read_within(llm_reader_t *r, const char *name, uint32_t v,
    uint32_t min, uint32_t max);
/* a value within 1 and max; if the default in *v is 0 the field must exist.
   LLM_OK or LLM_ERROR */
int llm_read_size(llm_reader_t *r, const char *name, uint32_t max,
    uint32_t *v);

/* item `layer` of an array, or one number for all layers */
int llm_read_layer(llm_reader_t *r, const char *name, uint32_t layer,
    uint32_t *v);
/* item i of an array of numbers, or one number; `key` is the whole key, not
   "ARCH.name" */
int llm_read_item(llm_reader_t *r, const char *key, uint32_t i, float *v);

/* marks the field with this whole key as read and returns it, or NULL */
const llm_gguf_kv_t *llm_read_key(llm_reader_t *r, const char *key);

/* mark a field, or all that begin with `prefix`, as read: they change nothing
   here */
void llm_read_ignore(llm_reader_t *r, const char *name);
void llm_read_ignore_all(llm_reader_t *r, const char *prefix);

/* arch_encoder.c: what all models without a causal mask have in common */
int llm_read_encoder(llm_reader_t *r);

/* changes what the layer wants by the list; NULL: no change */
void llm_layer_want(llm_layer_desc_t *l, const llm_tensor_want_t *w);

/* LLM_ERROR if a field was not read that may change the result */
int llm_read_rest(llm_reader_t *r);

/* LLM_ERROR: the field is missing */
int llm_read_missing(llm_reader_t *r, const char *name);

/* sets the bound of Q, K and V in all layers, from attention.clamp_kqv */
int llm_read_bound(llm_reader_t *r);

/* arch_common.c: lists of tensors that several architectures have */
extern const llm_tensor_want_t  llm_want_qk_norms[];
extern const llm_tensor_want_t  llm_want_post_norms[];
extern const llm_tensor_want_t  llm_want_qk_post_norms[];
extern const llm_tensor_want_t  llm_want_no_gate[];
/* what a layer for multi-token prediction has beside those of any layer */
extern const llm_tensor_want_t  llm_want_nextn[];

/* changes to all layers of a description: */
void llm_desc_want(llm_desc_t *d, llm_layer_tensor_t t, llm_want_t want);
/* Q and K have norms, with weights for each head */
void llm_desc_head_norms(llm_desc_t *d, llm_want_t want);
/* Q and K are normalised as whole rows */
void llm_desc_row_norms(llm_desc_t *d);
/* the norm before the feed-forward network has, in files, the name that is
   usually that of a norm after attention */
void llm_desc_rename_ffn_norm(llm_desc_t *d);
/* the feed-forward network reads the input that attention reads */
void llm_desc_parallel(llm_desc_t *d);

/* sets the layer's chain to these n blocks, fewer if there is a NULL, and adds
   their tensors to those that the layer wants */
void llm_desc_chain(llm_layer_desc_t *l, const llm_block_t *const *blocks,
    uint32_t n);

/*
 * windows.c: sets each layer's window, from attention.sliding_window and
 * attention.sliding_window_pattern; without the latter, the last of every
 * `period` layers has none (0: all have one).  Layers with windows use the
 * model's rope number `rope`.  LLM_ABSENT: there are no windows.
 */
int llm_read_windows(llm_reader_t *r, uint32_t period, uint32_t rope);
/* the same, but the first of every `period` layers has none */
int llm_read_windows_behind(llm_reader_t *r, uint32_t period, uint32_t rope);

/* adds a rope for layers with windows, *rope: as the first one, but without
   scaling, and with the base rope.freq_base_swa, or `base` if the file lacks
   it */
int llm_read_window_rope(llm_reader_t *r, float base, uint32_t *rope);
/* reads windows and gives layers with windows a RoPE that is not scaled.
   LLM_OK, also without windows, or LLM_ERROR */
int llm_read_unscaled_windows(llm_reader_t *r, uint32_t period);
/* layers without windows have no RoPE */
void llm_desc_rope_in_windows(llm_desc_t *d);

/* rope.c: a base, which must be above 1; the number of rotated elements, even
   and at most max.  *v is the default.  LLM_OK or LLM_ERROR */
int llm_read_rope_base(llm_reader_t *r, const char *name, float *v);
int llm_read_rot(llm_reader_t *r, const char *name, uint32_t max,
    uint32_t *v);

/* RoPE may have two sets of factors, one for contexts longer than the original
   training's, in the tensors of llm_long_rope */
extern const llm_tensor_want_t  llm_long_rope[];
int llm_read_long_rope(llm_reader_t *r);

/* rope.c: rope.dimension_sections, the pairs that each part of a position
   rotates; mixed: as in llm_rope_t.  *has: the file has them.  LLM_OK or
   LLM_ERROR */
int llm_read_sections(llm_reader_t *r, uint32_t mixed, int *has);

/* arch_llama.c: factors on embeddings, residuals and logits; the description
   has the defaults */
int llm_read_granite(llm_reader_t *r);
/* sets these to the values of all MiniCPM models, for files without them */
void llm_minicpm_scales(llm_desc_t *d);

#endif /* LLM_MODEL_READER_H */
