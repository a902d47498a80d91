/*
 * Whisper (arXiv:2212.04356): an encoder that turns a window of 30 seconds of
 * sound into states, and a decoder whose sequences read them.  This is the
 * model alone: which tokens may follow, texts and times are the caller's.
 *
 * A state is what one window leaves: the keys and values that all decoder
 * layers read.  A sequence is tokens on a state; several sequences may be on
 * one state (the choices of a window, its languages), and the sequences of a
 * step may be on different states (several clips).  Both are numbers below the
 * limits of llm_whisper_opts_t; who has which is up to the caller, as nothing
 * is allocated after loading.
 *
 * Invariant: a row's logits depend on its own sequence alone: the bits are the
 * same whatever else is in the step, and however tokens are cut into steps.
 *
 * llm_whisper_t owns the model, its pages, and the bytes that functions return
 * pointers to.  One thread at a time drives it.
 */

#ifndef LLM_WHISPER_H
#define LLM_WHISPER_H

#include "engine/model/model.h"

typedef struct llm_whisper_s  llm_whisper_t;

/* sizes of a model, and the ids of its special tokens */
typedef struct {
    uint32_t     n_mels;                /* 80 or 128 */
    uint32_t     n_frames;              /* of mel in a window: 3000 */
    uint32_t     n_audio_ctx;           /* rows of the encoder: 1500 */
    uint32_t     n_audio_state;         /* width of such a row */
    uint32_t     n_audio_layers;
    uint32_t     n_text_ctx;            /* most tokens of a sequence: 448 */
    uint32_t     n_text_state;
    uint32_t     n_text_layers;
    uint32_t     n_vocab;               /* logits of a row */
    uint32_t     n_align;               /* alignment heads */
    int          multilingual;

    int32_t      eot;                   /* <|endoftext|> */
    int32_t      sot;                   /* <|startoftranscript|> */
    int32_t      language;              /* of the first language: id language +
                                           i is that of llm_language(i) of
                                           base/language.h */
    uint32_t     n_languages;           /* 99 or 100; of an English model 1,
                                           whose id stands in no prompt */
    int32_t      translate;
    int32_t      transcribe;
    int32_t      sot_lm;                /* <|startoflm|> */
    int32_t      sot_prev;              /* <|startofprev|> */
    int32_t      no_speech;
    int32_t      no_timestamps;
    int32_t      timestamp;             /* <|0.00|>; the last ids are the 1501
                                           times of 0.02 s each */
} llm_whisper_info_t;

typedef struct {
    llm_model_opts_t  model;            /* max_seqs: sequences; ctx is ignored:
                                           n_text_ctx */
    uint32_t          n_states;         /* 0: 1 */
} llm_whisper_opts_t;

/* tokens of one sequence in a step */
typedef struct {
    uint32_t          seq;              /* below max_seqs; once in a step */
    uint32_t          state;            /* below n_states; encoded.  The same in
                                           all steps of a sequence */
    uint32_t          pos;              /* position of the first token: those
                                           before it were in earlier steps of
                                           this sequence (or of the one that
                                           it was forked from); later ones are
                                           forgotten */
    const int32_t    *tokens;
    uint32_t          n;                /* at least 1; pos + n <= n_text_ctx */
    uint32_t          n_out;            /* the last of these rows whose logits
                                           are wanted, 0 ... n */
} llm_whisper_rows_t;

/* reads and checks the header only; g as llm_gguf_open() or llm_file_open()
   gives it.  LLM_ABSENT: it is not a Whisper model */
int llm_whisper_check(const llm_gguf_t *g, llm_whisper_info_t *info,
    llm_err_t *err);

llm_whisper_t *llm_whisper_load(const char *path,
    const llm_whisper_opts_t *opts, llm_err_t *err);
void llm_whisper_free(llm_whisper_t *w);

const llm_whisper_info_t *llm_whisper_info(const llm_whisper_t *w);
/* the decoder: its file, device, sizes */
const llm_model_t *llm_whisper_model(const llm_whisper_t *w);

/*
 * Encodes a window, mel [n_mels][n_frames], into a state, in pieces: begin()
 * copies nothing, so mel must stay until the last piece; each encode() is one
 * step of the device, no longer than a step of prompt: LLM_MORE: there are more
 * pieces, LLM_OK: the state is complete.  One window at a time; steps of
 * sequences on other states may come between.  words: the state is for
 * llm_whisper_look(), too.
 */
void llm_whisper_begin(llm_whisper_t *w, uint32_t state, const float *mel,
    int words);
int llm_whisper_encode(llm_whisper_t *w, llm_err_t *err);
/* the encoder's rows of the window that was encoded last, [n_audio_ctx]
   [n_audio_state], until the next begin() */
const float *llm_whisper_states(llm_whisper_t *w);

/*
 * One step of the decoder: the rows of n sequences, together at most
 * llm_model_batch() tokens.  logits(i) is row i of those that were wanted, in
 * the order of `rows`, n_vocab floats, until the next step.
 */
int llm_whisper_step(llm_whisper_t *w, const llm_whisper_rows_t *rows,
    uint32_t n, llm_err_t *err);
const float *llm_whisper_logits(llm_whisper_t *w, uint32_t i);

/* sequence `to` becomes a copy of the first n positions of `from` */
void llm_whisper_fork(llm_whisper_t *w, uint32_t from, uint32_t to,
    uint32_t n);

/*
 * For the times of words: what the alignment heads look at while the tokens of
 * r are computed, from position r->pos on (r->n_out is ignored).  The state
 * must have been encoded with words.
 *
 * look() computes as many of the tokens as fit into a step, from *at on, which
 * it moves, and copies what the heads ask for to queries, of
 * llm_whisper_queries(w, r->n) floats: LLM_MORE: there are more tokens.  Steps
 * of other sequences may come between.  weigh(): with all of it, what a head
 * looks at: weights [r->n][n_audio_ctx], the sum of each row is 1 (softmax, no
 * filter); on the host, some milliseconds.
 */
size_t llm_whisper_queries(const llm_whisper_t *w, uint32_t n);
int llm_whisper_look(llm_whisper_t *w, const llm_whisper_rows_t *r,
    uint32_t *at, float *queries, llm_err_t *err);
void llm_whisper_weigh(const llm_whisper_t *w, const llm_whisper_rows_t *r,
    uint32_t head, const float *queries, float *weights);

#endif /* LLM_WHISPER_H */
