/*
 * What the tokenizer's files share: load.c loads a vocabulary, vocab.c answers
 * questions about it, text.c finds added tokens in a text and passes the text
 * between them to bpe.c, spm.c, unigram.c or wordpiece.c, whose ids go through
 * tokens.c.
 *
 * llm_vocab_load() writes all of it; afterwards it is read-only.  The state of
 * a call is an llm_tok_t on the stack.
 */

#ifndef LLM_VOCAB_INTERNAL_H
#define LLM_VOCAB_INTERNAL_H

#include "engine/text/vocab/strmap.h"
#include "engine/text/vocab/trie.h"
#include "engine/text/vocab/vocab.h"

#define LLM_SPACE_MARK       "\xe2\x96\x81"     /* U+2581, SentencePiece's */
#define LLM_SPACE_MARK_LEN   3
#define LLM_SPACE_MARK_CP    0x2581

/* positions and counts inside one text are 32 bits */
#define LLM_TEXT_MAX         ((size_t) 1 << 30)

/* most bytes of a token: an event has room for a token and its likeliest
   alternatives */
#define LLM_TOKEN_MAX        1024

/* token flags */
#define LLM_TOKEN_EOG        1          /* ends an answer */
#define LLM_TOKEN_LSTRIP     2          /* removes white space before it */
#define LLM_TOKEN_RSTRIP     4          /* removes white space after it */
#define LLM_TOKEN_HARMLESS   8          /* added, but ordinary text */

typedef enum {
    LLM_VOCAB_BPE = 0,
    LLM_VOCAB_SPM,
    LLM_VOCAB_WORDPIECE,
    LLM_VOCAB_UNIGRAM
} llm_vocab_kind_t;

typedef struct llm_pretok_s  llm_pretok_t;

/* a pair of symbols that is merged; see bpe.c */
typedef struct {
    uint64_t             key;           /* left << 32 | right */
    uint32_t             rank;          /* LLM_NO_RANK: the slot is free */
    uint32_t             sym;           /* symbol that the two become */
} llm_bpe_merge_t;

/* an added token */
typedef struct {
    llm_str_t            text;
    int32_t              id;
} llm_added_t;

/* charsmap.c; n_units 0: nothing is replaced */
typedef struct {
    const uint32_t      *units;         /* the double array */
    const char          *texts;         /* each ends with a zero */
    size_t               n_units;
    size_t               n_texts;       /* bytes of texts */
} llm_charsmap_t;

#define LLM_NO_RANK          UINT32_MAX
#define LLM_NO_SYM           UINT32_MAX

struct llm_vocab_s {
    llm_vocab_kind_t     kind;
    uint64_t             seed;          /* seed of all hashes */
    uint32_t             n;             /* number of tokens */

    /*
     * Symbols: first the tokens' texts as the file writes them, then strings
     * that only merges produce; map.str[id] is the text of a token.
     */
    llm_strmap_t         map;
    llm_str_t           *bytes;         /* what each token stands for */
    float               *score;         /* scores of SentencePiece, or NULL */
    uint8_t             *type;          /* llm_token_type_t */
    uint8_t             *flags;
    size_t               max_len;       /* bytes of the longest token's text */
    llm_arena_t          arena;         /* owns the bytes of all texts */

    int32_t              bos;
    int32_t              eos;
    int32_t              unk;
    int32_t              pad;
    llm_fim_t            fim;
    int                  add_bos;
    int                  add_eos;
    int                  space_prefix;  /* 1: a space is put before the text */
    int                  escape_space;  /* " " becomes U+2581 */
    int                  lowercase;     /* WordPiece */
    int                  strip_accents;
    int                  mark_begins;   /* 1: no token has U+2581 after other
                                           text */
    int                  merge_spaces;  /* unigram: 1: several spaces become
                                           one, and spaces at the ends are
                                           removed */
    llm_charsmap_t       charsmap;      /* used by unigram, as are the next
                                           two */
    llm_trie_t           trie;
    double               unk_score;
    int32_t              byte_id[256];  /* token of each byte alone, or -1 */
    int                  leaves_out;    /* 1: bytes without a token are left
                                           out */

    /* added tokens, sorted by text; those with first byte b are from first[b]
       to before first[b + 1] */
    llm_added_t         *added;
    uint32_t             first[257];

    /* BPE */
    llm_pretok_t        *pretok;
    int                  ignore_merges; /* 1: a whole piece that is a token is
                                           not merged */
    int                  byte_level;    /* 1: symbols are bytes, 0:
                                           characters */
    uint32_t             byte_sym[256];
    llm_bpe_merge_t     *merges;
    uint64_t             merge_mask;

    char                 warning[320];  /* empty: none */
};


/* one call of llm_vocab_tokenize() */

typedef struct {
    const llm_vocab_t   *vocab;
    llm_ids_t           *out;
    size_t               max_ids;       /* bound of out->len, not 0 */
    llm_err_t           *err;
    llm_buf_t            text;          /* rewritten text */
    llm_buf_t            nodes;         /* memory for bpe_merge.c */
    llm_buf_t            heap;
    void                *match;         /* pretok.c's state, or NULL */
    size_t               n_matches;     /* number of matches searched: a
                                           measure of its work */
} llm_tok_t;

/* tokens.c */

int llm_tok_push(llm_tok_t *t, int32_t id);
/*
 * Adds the ids of a character that is no token: byte tokens, or else the
 * unknown token.  BPE leaves out a byte that no token stands for, as the
 * reference implementations do: a few vocabularies lack bytes that UTF-8 never
 * has, or control characters.
 */
int llm_tok_push_bytes(llm_tok_t *t, const char *p, size_t n);
int llm_tok_no_memory(llm_tok_t *t);
/* can n bytes of text, none of which is left out, become as few tokens as
   there is room for? */
int llm_tok_fits(llm_tok_t *t, size_t n);
/* *p becomes a copy of the text in t->text, with U+2581 for spaces, and one
   before it if the model wants that */
int llm_tok_escape(llm_tok_t *t, const char **p, size_t *n);

/* bytes.c: needs map, type, byte_level */
int llm_vocab_bytes_load(llm_vocab_t *v, const llm_gguf_t *g,
    llm_err_t *err);

/* vocab.c: sets the message; returns LLM_ERROR */
int llm_vocab_no_memory(const llm_gguf_t *g, llm_err_t *err);
/* adds a message for the log, after earlier ones */
void llm_vocab_warn(llm_vocab_t *v, const char *fmt, ...)
    llm_printf_like(2, 3);

/* may ordinary text become this token? */
int llm_vocab_is_plain(const llm_vocab_t *v, uint32_t id);

/* the ids of a text without added tokens */
int llm_bpe_tokenize(llm_tok_t *t, const char *p, size_t n);
int llm_spm_tokenize(llm_tok_t *t, const char *p, size_t n);
int llm_wordpiece_tokenize(llm_tok_t *t, const char *p, size_t n);
int llm_unigram_tokenize(llm_tok_t *t, const char *p, size_t n);

/* spm.c: the end of the first part of the text that cannot form a token with
   what follows */
size_t llm_spm_word(const llm_vocab_t *v, const char *p, size_t n);

/* unigram.c: needs scores, types and flags */
int llm_unigram_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err);

/* charsmap.c: copies the file's map, if it has one, to the arena */
int llm_charsmap_load(llm_charsmap_t *m, llm_arena_t *arena,
    const llm_gguf_t *g, llm_err_t *err);
/* the replacement of the next bytes of a text; returns their number, at least
   1 */
size_t llm_charsmap_next(const llm_charsmap_t *m, const char *p, size_t n,
    llm_str_t *out);

/* bpe.c: reads the merges; needs map, byte_level and the pre-tokenizer */
int llm_bpe_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err);

/* text.c: sorts the added tokens; needs type and flags */
int llm_added_load(llm_vocab_t *v, llm_err_t *err);

/* special.c: finds BOS, EOS, the tokens that end an answer, and the flags */
int llm_special_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err);

#endif /* LLM_VOCAB_INTERNAL_H */
