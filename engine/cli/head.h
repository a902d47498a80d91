/*
 * A head that drafts for the sequence of a command; see head.c.
 */

#ifndef LLM_CLI_HEAD_H
#define LLM_CLI_HEAD_H

#include "engine/cli/cli.h"
#include "engine/model/head.h"

typedef struct {
    llm_head_t   *head;                 /* NULL: none drafts */
    float        *states;               /* [cap][width] */
    uint32_t      cap;                  /* states that there is room for */
    uint32_t      at;                   /* position of the first of these, and
                                           how many there are; the head has rows
                                           of all before */
    uint32_t      n;
} llm_cli_head_t;

/* --speculate, of commands that do without a server */
typedef struct {
    int           ngram;
    int           head;
    char         *path;                 /* of draft=, owned; NULL: the model's
                                           own layer for multi-token
                                           prediction */
} llm_cli_kinds_t;

/* path must be freed after an error, too */
int llm_cli_speculate(const llm_cli_t *c, llm_cli_kinds_t *k, llm_err_t *err);

/* path NULL: the model's own layer for multi-token prediction */
int llm_cli_head_open(llm_cli_head_t *h, const llm_cli_t *c,
    const llm_cli_seq_t *s, const char *path, llm_err_t *err);
void llm_cli_head_close(llm_cli_head_t *h);

/* takes the states of the last step's n rows, from position `pos` on; ids: the
   known tokens, of which some rows may be no part */
int llm_cli_head_take(llm_cli_head_t *h, const llm_ids_t *ids, uint32_t pos,
    uint32_t n, llm_err_t *err);
/* states from this position on are wrong */
void llm_cli_head_drop(llm_cli_head_t *h, uint32_t pos);
/* drafts at most n tokens after the known ones while they come true with a
   probability of `least`; *got: how many */
int llm_cli_head_guess(llm_cli_head_t *h, const llm_cli_seq_t *s,
    const llm_ids_t *ids, uint32_t n, double least, int32_t *drafts,
    uint32_t *got, llm_err_t *err);

/* bench_head.c: prints how fast n_tg tokens are generated after n ids with the
   head's drafts */
int llm_bench_head(const llm_cli_t *c, const char *path, const int32_t *ids,
    uint32_t n, uint32_t n_tg, llm_err_t *err);

#endif /* LLM_CLI_HEAD_H */
