/*
 * A vocabulary and its tokenizer, from GGUF metadata: byte-level BPE with
 * a named pre-tokenizer ("gpt2"), SentencePiece with scores and byte
 * fallback ("llama"), SentencePiece's unigram model ("t5"), WordPiece
 * ("bert").
 *
 * Invariant: after llm_vocab_load() a vocabulary is read-only and may be
 * used by any number of threads at once.  It copies what it needs: the GGUF
 * may be closed.
 */

#ifndef LLM_VOCAB_H
#define LLM_VOCAB_H

#include "engine/base/base.h"
#include "engine/gguf/gguf.h"

typedef enum {
    LLM_TOKEN_NORMAL = 1,
    LLM_TOKEN_UNKNOWN = 2,
    LLM_TOKEN_CONTROL = 3,              /* special: never shown as text */
    LLM_TOKEN_USER_DEFINED = 4,         /* added, but ordinary text */
    LLM_TOKEN_UNUSED = 5,
    LLM_TOKEN_BYTE = 6
} llm_token_type_t;

/* a run of bytes of the text; runs are in order and do not overlap */
typedef struct {
    size_t       start;
    size_t       end;
} llm_span_t;

/* token ids, grown as needed; the caller frees data with free() */
typedef struct {
    int32_t     *data;
    size_t       len;
    size_t       cap;
} llm_ids_t;

/* added tokens that are looked for in the text */
#define LLM_TOKENIZE_PLAIN    0         /* user-defined ones everywhere */
#define LLM_TOKENIZE_SPECIAL  1         /* also control tokens, everywhere */
#define LLM_TOKENIZE_TRUSTED  2         /* all of them, but only inside trusted
                                           spans; elsewhere none, not even
                                           user-defined ones (those that are
                                           words, white space or one character
                                           count as plain text) */
/* or-ed: BOS before and EOS after the text, if the model's flags say so */
#define LLM_TOKENIZE_ADD      16

/* tokens around a text with a gap, for code models; -1: none */
typedef struct {
    int32_t      prefix;                /* precedes the text before the gap */
    int32_t      suffix;                /* precedes the text after the gap */
    int32_t      middle;                /* precedes the text that fills the
                                           gap */
    int32_t      repo;                  /* precedes the name of a repository */
    int32_t      file;                  /* precedes the name of a file in it
                                           and the file's text */
} llm_fim_t;

typedef struct llm_vocab_s  llm_vocab_t;

llm_vocab_t *llm_vocab_load(const llm_gguf_t *g, llm_err_t *err);
void llm_vocab_free(llm_vocab_t *v);

uint32_t llm_vocab_size(const llm_vocab_t *v);
/* -1: the model has none */
int32_t llm_vocab_bos(const llm_vocab_t *v);
int32_t llm_vocab_eos(const llm_vocab_t *v);
int32_t llm_vocab_unk(const llm_vocab_t *v);
int32_t llm_vocab_pad(const llm_vocab_t *v);
/* "bpe", "spm", "wordpiece" or "unigram" */
const char *llm_vocab_kind(const llm_vocab_t *v);
int llm_vocab_add_bos(const llm_vocab_t *v);
int llm_vocab_add_eos(const llm_vocab_t *v);
/* does the token end an answer: EOS, EOT, <|im_end|>, <|eot_id|>,
   <end_of_turn> and similar, found by metadata and by well-known names? */
int llm_vocab_is_eog(const llm_vocab_t *v, int32_t id);
llm_token_type_t llm_vocab_type(const llm_vocab_t *v, int32_t id);
/* the id of exactly this token text (as the file writes it), or -1 */
int32_t llm_vocab_find(const llm_vocab_t *v, const char *s, size_t len);
/* the bytes that a token stands for (decoded: "Ġthe" gives " the"; control
   tokens give their own text); empty for ids out of range */
llm_str_t llm_vocab_bytes(const llm_vocab_t *v, int32_t id);
const llm_fim_t *llm_vocab_fim(const llm_vocab_t *v);
/* a message for the log, such as an unknown pre-tokenizer's name, or NULL */
const char *llm_vocab_warning(const llm_vocab_t *v);

/*
 * Appends the ids of text to *out.  Text that is not UTF-8 is tokenised as
 * bytes, nothing is lost where the vocabulary has all bytes.  trusted is read
 * with LLM_TOKENIZE_TRUSTED only.  Time is linear in len (a merge queue inside
 * one pre-token).  LLM_ERROR and *err if out of memory, or, with
 * "context_length_exceeded", if there would be more than max_ids (0: no
 * limit): the rest of the text is not looked at then.
 */
int llm_vocab_tokenize(const llm_vocab_t *v, const char *text, size_t len,
    const llm_span_t *trusted, size_t n_trusted, int flags, size_t max_ids,
    llm_ids_t *out, llm_err_t *err);

/*
 * Incremental detokenising.  push() adds a token and returns the bytes that
 * are now whole UTF-8 (the pointer is valid until the next call); a tail that
 * may still become a character is held back.  flush() returns the tail; bytes
 * that never became a character are U+FFFD if replace is set, otherwise
 * unchanged.  Control tokens give no text unless special is set.
 */
typedef struct {
    const llm_vocab_t  *vocab;
    int                 special;        /* 1: control tokens are text, too */
    int                 started;        /* SentencePiece: 1: the first space of
                                           a whole text has been dropped */
    size_t              len;
    char                tail[8];
    char               *out;
    size_t              cap;
    int                 raw;            /* to be set after init; 1: bytes that
                                           are not UTF-8 are passed unchanged,
                                           0: push() gives U+FFFD for them */
    int                 failed;         /* 1: out of memory, so text is
                                           missing */
} llm_detok_t;

/* strip: drop SentencePiece's leading space of the first token */
void llm_detok_init(llm_detok_t *d, const llm_vocab_t *v, int special,
    int strip);
llm_str_t llm_detok_push(llm_detok_t *d, int32_t id);
llm_str_t llm_detok_flush(llm_detok_t *d, int replace);
void llm_detok_free(llm_detok_t *d);

#endif /* LLM_VOCAB_H */
