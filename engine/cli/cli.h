/*
 * objs/llm, the engine on the command line, for users and tests: a table of
 * commands (main.c), a file for each group of commands, and what they share.
 * Results go to standard output, everything else to standard error; the exit
 * status is 0 or 1.
 *
 * A process runs one command, in one thread, with at most one model.  A
 * command frees what it allocates.  Nothing here is part of the library.
 */

#ifndef LLM_CLI_H
#define LLM_CLI_H

#include "engine/media/rule.h"
#include "engine/media/sound.h"
#include "engine/model/tower.h"
#include "engine/sample/sampler.h"
#include "engine/text/chat/chat.h"
#include "engine/text/vocab/vocab.h"

/* groups of options that a command takes: bits of llm_cli_cmd_t.options */
#define LLM_CLI_RUN       1             /* --device --split --threads --isa
                                           --ctx --weights --kv --products
                                           --packed */
#define LLM_CLI_SPECIAL   2
#define LLM_CLI_ALL       4
#define LLM_CLI_BATCH     8
#define LLM_CLI_SAMPLE   16             /* --max-tokens --temp ... */
#define LLM_CLI_BENCH    32             /* --pp --tg --depth --reps --clips */
#define LLM_CLI_STREAM   64             /* --stream */
#define LLM_CLI_POOLING  128
#define LLM_CLI_KEY      256             /* --id --tenant --models ... */
#define LLM_CLI_NO_FILE  512
#define LLM_CLI_DRAFT    1024            /* --speculate */
#define LLM_CLI_IMAGE    2048            /* --pixels --model */
#define LLM_CLI_MMPROJ   4096            /* --mmproj --image-tokens */
#define LLM_CLI_IMAGES   8192            /* --image */
#define LLM_CLI_AUDIO    16384           /* --audio */
#define LLM_CLI_SPEECH   32768           /* a file of sound, --language ... */
#define LLM_CLI_HEAD     65536           /* a head, --hidden --chain */
#define LLM_CLI_ROWS     131072          /* --rows */

#define LLM_CLI_BATCH_SIZE  512         /* tokens of a step by default */

#define LLM_CLI_LIST       64           /* values of an option that is given
                                           several times */

typedef struct {
    const char      *v[LLM_CLI_LIST];
    uint32_t         n;
} llm_cli_list_t;

/* the parsed command line; strings are those of argv; NULL or 0: not given */
typedef struct {
    const char      *file;
    const char      *device;
    const char      *split;             /* "layers", "rows" or NULL */
    const char      *isa;
    const char      *weights;           /* "fp8" or NULL */
    const char      *kv;                /* "fp8", "q8_0" or NULL */
    const char      *products;          /* a word of products.h, or NULL */
    const char      *packed;
    const char      *pooling;
    const char      *speculate;
    const char      *mmproj;
    const char      *model;
    llm_cli_list_t   images;
    const char      *audio;             /* a file of sound */
    const char      *head;              /* a file of a head that drafts */
    const char      *hidden;
    const char      *id;                /* this and the next 5: of a new API
                                           key */
    const char      *tenant;
    const char      *models;
    const char      *scopes;
    const char      *not_before;
    const char      *expires;
    const char      *language;
    const char      *prompt;
    const char      *format;
    const char      *thresholds;        /* "off", "on" or NULL */
    float            temperature;       /* -1: not given */
    int              translate;
    int              words;
    int              no_timestamps;
    int              no_condition;
    uint32_t         threads;
    uint32_t         ctx;
    uint32_t         batch;
    uint32_t         max_tokens;
    uint32_t         image_tokens;
    uint32_t         pp;
    uint32_t         tg;
    uint32_t         depth;
    uint32_t         reps;
    uint32_t         chain;
    uint32_t         clips;
    uint32_t         n_seqs;            /* bench --rows; 0: not given */
    int              special;
    int              all;
    int              stream;
    int              verbose;
    int              pixels;
    int              rows;
    llm_sampling_t   sampling;
} llm_cli_t;

typedef struct {
    const char  *name;
    const char  *usage;                 /* arguments after the name */
    const char  *what;
    unsigned     options;
    /* LLM_OK; LLM_ERROR and *err */
    int        (*run)(const llm_cli_t *c, llm_err_t *err);
} llm_cli_cmd_t;

/* text.c */
int llm_cli_tokenize(const llm_cli_t *c, llm_err_t *err);
int llm_cli_detokenize(const llm_cli_t *c, llm_err_t *err);
int llm_cli_render(const llm_cli_t *c, llm_err_t *err);
/* loads the chat template of a GGUF file, or a template file; NULL and *err:
   failed */
llm_chat_t *llm_cli_chat(const char *file, llm_err_t *err);
/* parse.c */
int llm_cli_parse(const llm_cli_t *c, llm_err_t *err);
/* text.c: loads the vocabulary of a GGUF file, and prints its warning to
   standard error; NULL and *err: failed */
llm_vocab_t *llm_cli_vocab(const char *file, llm_err_t *err);
/* match.c */
int llm_cli_match(const llm_cli_t *c, llm_err_t *err);
/* info.c */
int llm_cli_info(const llm_cli_t *c, llm_err_t *err);
/* run.c */
int llm_cli_logits(const llm_cli_t *c, llm_err_t *err);
int llm_cli_perplexity(const llm_cli_t *c, llm_err_t *err);
/* draft.c */
int llm_cli_draft(const llm_cli_t *c, llm_err_t *err);
/* complete.c */
int llm_cli_complete(const llm_cli_t *c, llm_err_t *err);
/* reads the text on standard input and tokenizes it; the caller frees
   ids->data */
int llm_cli_prompt(const llm_vocab_t *v, int flags, llm_ids_t *ids,
    llm_err_t *err);
/* embed.c */
int llm_cli_embed(const llm_cli_t *c, llm_err_t *err);
/* hear.c: the samples of a file, at the rate of spectrograms; the caller frees
   them */
int llm_cli_samples(const char *path, llm_sound_t *sound, llm_err_t *err);
/* embed and logits of a speech model, on the first window of
   c->audio */
int llm_cli_hear_states(const llm_cli_t *c, llm_err_t *err);
int llm_cli_hear_logits(const llm_cli_t *c, const llm_ids_t *ids,
    llm_err_t *err);
/* image.c */
int llm_cli_image(const llm_cli_t *c, llm_err_t *err);
int llm_cli_sound(const llm_cli_t *c, llm_err_t *err);
/* run_images.c: logits of a prompt with images */
int llm_cli_logits_images(const llm_cli_t *c, llm_err_t *err);
/* transcribe.c */
int llm_cli_transcribe(const llm_cli_t *c, llm_err_t *err);
/* key.c */
int llm_cli_key(const llm_cli_t *c, llm_err_t *err);
/* plan.c */
int llm_cli_plan(const llm_cli_t *c, llm_err_t *err);
/* bandwidth.c: a buffer for n threads, NULL: no memory; the seconds that
   reading it once takes, `ahead` with prefetches; the bandwidth in bytes per
   second, measured with a buffer of its own, 0: no memory */
#define LLM_CLI_MEMORY  ((size_t) 1 << 30)
typedef struct llm_cli_memory_s  llm_cli_memory_t;
llm_cli_memory_t *llm_cli_memory_create(uint32_t n);
void llm_cli_memory_free(llm_cli_memory_t *m);
double llm_cli_memory_read(llm_cli_memory_t *m, int ahead);
double llm_cli_bandwidth(uint32_t n);
/* bench.c */
int llm_cli_bench(const llm_cli_t *c, llm_err_t *err);
void llm_cli_sort(double *t, uint32_t n);
/* a line of the table: tokens per second of test "pp" or "tg" with n tokens; of
   n_seqs sequences, or 0: of the one that there always is */
void llm_cli_bench_row(const llm_cli_t *c, const llm_model_t *m,
    const char *test, uint32_t n, uint32_t n_seqs, double median,
    double spread);
/* how many of n tokens per second turn() computes: the median of the
   repetitions, and half of the difference of fastest and slowest */
typedef int (*llm_bench_turn_pt)(void *data, llm_err_t *err);
int llm_cli_bench_reps(const llm_cli_t *c, llm_bench_turn_pt turn, void *data,
    uint64_t n, double *median, double *spread, llm_err_t *err);
/* bench_media.c: c->file transcribes c->audio; encodes the first of
   c->images */
int llm_cli_bench_speech(const llm_cli_t *c, llm_err_t *err);
int llm_cli_bench_image(const llm_cli_t *c, llm_err_t *err);


/* ---- io.c ---- */

/* run.c: the number of tokens in the file's vocabulary, without loading the
   model */
int llm_cli_n_vocab(const char *file, uint32_t *n_vocab, llm_err_t *err);
/* adds all of standard input to b */
int llm_cli_read(llm_buf_t *b, llm_err_t *err);
/* reads token ids from standard input, separated by white space; an id must be
   less than n_vocab; with `images` the word "image" is LLM_CLI_HERE.  The
   caller frees ids->data */
#define LLM_CLI_HERE  (-1)
int llm_cli_read_ids(uint32_t n_vocab, int images, llm_ids_t *ids,
    llm_err_t *err);
int llm_cli_write(const void *data, size_t len, llm_err_t *err);
int llm_cli_flush(llm_err_t *err);


/* ---- seq.c: a model with one sequence ---- */

typedef struct {
    llm_model_t  *model;
    llm_gives_t   gives;                /* output of a step; the default is
                                           logits */
    uint32_t      len;                  /* positions in the KV cache */
    uint32_t      max_pages;
    uint32_t     *pages[LLM_KV_KINDS];  /* [max_pages] */
    uint32_t     *pos;                  /* [batch] */
    uint32_t     *out;                  /* [batch] */
} llm_cli_seq_t;

/* for opts.log, data the llm_cli_t: standard error, if --verbose is given */
void llm_cli_log(void *data, int level, const char *msg);
/* the options of a model that the command line has; the rest is zeros */
int llm_cli_model_opts(const llm_cli_t *c, llm_model_opts_t *o,
    llm_err_t *err);

/*
 * Loads c->file for a sequence of at most ctx tokens (0: --ctx, or the model's
 * context length) and steps of at most batch rows, with output for at most
 * max_out rows.
 */
int llm_cli_seq_open(llm_cli_seq_t *s, const llm_cli_t *c, uint32_t ctx,
    uint32_t batch, uint32_t max_out, llm_err_t *err);
/* the same, and steps keep what a head reads; keep NULL: nothing */
int llm_cli_seq_keeping(llm_cli_seq_t *s, const llm_cli_t *c,
    const llm_keep_t *keep, uint32_t ctx, uint32_t batch, uint32_t max_out,
    llm_err_t *err);
void llm_cli_seq_close(llm_cli_seq_t *s);

/* runs a step of the sequence's next rows, whose n_tokens, n_out, out_rows and
   tokens are set in b, as is what rows that are not tokens need */
int llm_cli_seq_run(llm_cli_seq_t *s, llm_batch_t *b, llm_err_t *err);
/* runs one step of n ids; the output (logits or states) is of its last n_out
   rows */
int llm_cli_seq_step(llm_cli_seq_t *s, const int32_t *ids, uint32_t n,
    uint32_t n_out, llm_err_t *err);
/* runs n ids in as many steps as needed; the output is of the last row */
int llm_cli_seq_feed(llm_cli_seq_t *s, const int32_t *ids, size_t n,
    llm_err_t *err);

/* bench_rows.c: generation of c->n_seqs sequences at once, with the model of s,
   whose sequence is lost */
int llm_cli_bench_rows(const llm_cli_t *c, llm_cli_seq_t *s,
    const int32_t *ids, uint32_t n, llm_err_t *err);


/* ---- picture.c: images as a tower gets them ---- */

typedef struct {
    llm_image_plan_t  plan;
    uint8_t          *pixels;           /* [n_entries][height][width][3] */
} llm_cli_picture_t;

/* the rule of --mmproj, within --image-tokens */
int llm_cli_rule(const llm_cli_t *c, llm_image_rule_t *rule, llm_err_t *err);
int llm_cli_decode(const char *path, llm_image_t *image, llm_err_t *err);
/* decodes and resizes an image file; free() after an error, too */
int llm_cli_picture(const char *path, const llm_image_rule_t *rule,
    llm_cli_picture_t *p, llm_err_t *err);
void llm_cli_picture_free(llm_cli_picture_t *p);
/* loads the tower of --mmproj, that of images or of spectrograms; m NULL: for
   any model */
llm_tower_t *llm_cli_tower(const llm_cli_t *c, llm_model_t *m, int sound,
    llm_err_t *err);
/* encodes n entries in one job; *longest, unless it is NULL, becomes the
   microseconds of the longest piece if that is more */
int llm_cli_encode_some(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    float *rows, uint64_t *longest, llm_err_t *err);
/* encodes n entries of one size; rows gets [n][n_rows][n_cols] */
int llm_cli_encode(llm_tower_t *t, const llm_tower_entry_t *e, uint32_t n,
    uint32_t n_rows, float *rows, uint64_t *longest, llm_err_t *err);

#endif /* LLM_CLI_H */
