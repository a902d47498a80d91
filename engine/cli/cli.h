/*
 * objs/llm, the engine on the command line, for people and for checks: a
 * table of commands (main.c), one file for each group of them, and what
 * they share.  Results go to standard output, everything else to standard
 * error; the exit status is 0 or 1.
 *
 * One thread, one model, one process: a command frees what it allocates, and
 * nothing here is part of the library.
 */

#ifndef LLM_CLI_H
#define LLM_CLI_H

#include "engine/model/model.h"
#include "engine/sample/sampler.h"
#include "engine/text/chat/chat.h"
#include "engine/text/vocab/vocab.h"

/* options that a command takes (or-ed in llm_cli_cmd_t) */
#define LLM_CLI_RUN       1             /* --device --threads --isa --ctx
                                           --weights --kv */
#define LLM_CLI_SPECIAL   2
#define LLM_CLI_ALL       4
#define LLM_CLI_BATCH     8
#define LLM_CLI_SAMPLE   16             /* --max-tokens --temp ... */
#define LLM_CLI_BENCH    32             /* --pp --tg --reps */
#define LLM_CLI_STREAM   64             /* --stream */
#define LLM_CLI_POOLING  128
#define LLM_CLI_KEY      256             /* --id --tenant --models ... */
#define LLM_CLI_NO_FILE  512

/* the command line, read */
typedef struct {
    const char      *file;
    const char      *device;
    const char      *isa;
    const char      *weights;           /* "fp8" or NULL */
    const char      *kv;
    const char      *pooling;
    const char      *id;                /* of a key, as all below */
    const char      *tenant;
    const char      *models;
    const char      *scopes;
    const char      *not_before;
    const char      *expires;
    uint32_t         threads;
    uint32_t         ctx;
    uint32_t         batch;
    uint32_t         max_tokens;
    uint32_t         pp;
    uint32_t         tg;
    uint32_t         reps;
    int              special;
    int              all;
    int              stream;
    int              verbose;
    llm_sampling_t   sampling;
} llm_cli_t;

typedef struct {
    const char  *name;
    const char  *usage;                 /* what follows the name */
    const char  *what;
    unsigned     options;
    /* LLM_OK, or LLM_ERROR with the reason in err */
    int        (*run)(const llm_cli_t *c, llm_err_t *err);
} llm_cli_cmd_t;

/* text.c */
int llm_cli_tokenize(const llm_cli_t *c, llm_err_t *err);
int llm_cli_detokenize(const llm_cli_t *c, llm_err_t *err);
int llm_cli_render(const llm_cli_t *c, llm_err_t *err);
/* the chat template of a GGUF file, or of a file with a template */
llm_chat_t *llm_cli_chat(const char *file, llm_err_t *err);
/* parse.c */
int llm_cli_parse(const llm_cli_t *c, llm_err_t *err);
/* a file's vocabulary, its warning on standard error; NULL and *err */
llm_vocab_t *llm_cli_vocab(const char *file, llm_err_t *err);
/* match.c */
int llm_cli_match(const llm_cli_t *c, llm_err_t *err);
/* info.c */
int llm_cli_info(const llm_cli_t *c, llm_err_t *err);
/* run.c */
int llm_cli_logits(const llm_cli_t *c, llm_err_t *err);
int llm_cli_complete(const llm_cli_t *c, llm_err_t *err);
int llm_cli_perplexity(const llm_cli_t *c, llm_err_t *err);
/* embed.c */
int llm_cli_embed(const llm_cli_t *c, llm_err_t *err);
/* key.c */
int llm_cli_key(const llm_cli_t *c, llm_err_t *err);
/* bench.c */
int llm_cli_bench(const llm_cli_t *c, llm_err_t *err);


/* ---- io.c ---- */

/* the vocabulary's size, before the model is loaded */
int llm_cli_n_vocab(const char *file, uint32_t *n_vocab, llm_err_t *err);
/* all of standard input */
int llm_cli_read(llm_buf_t *b, llm_err_t *err);
/* the ids on standard input, each below n_vocab, separated by white space */
int llm_cli_read_ids(uint32_t n_vocab, llm_ids_t *ids, llm_err_t *err);
int llm_cli_write(const void *data, size_t len, llm_err_t *err);
int llm_cli_flush(llm_err_t *err);


/* ---- seq.c: a model and one sequence in it ---- */

typedef struct {
    llm_model_t  *model;
    llm_gives_t   gives;                /* what a step gives; logits unless
                                           changed */
    uint32_t      len;                  /* positions in the cache */
    uint32_t      max_pages;
    uint32_t     *pages[LLM_KV_KINDS];  /* [max_pages] */
    uint32_t     *pos;                  /* [batch] */
    uint32_t     *out;                  /* [batch] */
} llm_cli_seq_t;

/*
 * Loads c->file for sequences of ctx (0: the model's, or --ctx) and steps
 * of at most batch rows, max_out of which give logits.
 */
int llm_cli_seq_open(llm_cli_seq_t *s, const llm_cli_t *c, uint32_t ctx,
    uint32_t batch, uint32_t max_out, llm_err_t *err);
void llm_cli_seq_close(llm_cli_seq_t *s);

/* one step of n ids; logits for the last n_out of its rows, or states */
int llm_cli_seq_step(llm_cli_seq_t *s, const int32_t *ids, uint32_t n,
    uint32_t n_out, llm_err_t *err);
/* as many steps as it takes; logits for the last row */
int llm_cli_seq_feed(llm_cli_seq_t *s, const int32_t *ids, size_t n,
    llm_err_t *err);

#endif /* LLM_CLI_H */
