/*
 * Preparation: from a request's message to what a scheduler can run, rows of
 * tokens and the rules of their answers.  The chat template is rendered, texts
 * become tokens, schemas and tools become grammars, a pair to be ranked becomes
 * a prompt; requests that need no model get their whole answer.
 *
 * Everything a preparation needs to know of a model is in its environment,
 * which belongs to whoever loaded the model.  Any number of threads may prepare
 * requests of one environment at once: they only read it.  What is made belongs
 * to the request (llm_prepared_t in engine/sched/request.h).
 *
 * A message came through shared memory: each reference in it is checked before
 * it is followed.
 */

#ifndef LLM_PREPARE_H
#define LLM_PREPARE_H

#include "engine/model/model.h"
#include "engine/sched/sched.h"
#include "engine/text/chat/chat.h"


/* the prompt of a pair, as a converted Qwen3-Reranker or an encoder has it:
   text with the places {query} and {document} */
typedef struct {
    char                *text;          /* owned; NULL: there is none */
    size_t               len;
} llm_rank_text_t;

/* a model, as preparation sees it */
typedef struct {
    const char          *name;          /* in the configuration */
    const llm_model_t   *model;         /* NULL: a synthetic one */
    const llm_runner_t  *runner;        /* its sizes and abilities */
    llm_vocab_t         *vocab;
    llm_gram_cache_t    *grams;
    const int32_t       *eog;           /* [n_eog] tokens that end an answer */
    uint32_t             n_eog;

    llm_chat_t          *chat;          /* NULL: see chat_err */
    llm_err_t            chat_err;
    llm_buf_t            template;      /* its text */
    llm_rank_text_t      rank;
    llm_sampling_t       advised;       /* the file's values for requests that
                                           have none */

    size_t               max_bytes;     /* memory of all requests */
    llm_log_pt           log;           /* NULL: nothing is logged */
    void                *log_data;
    /* remedies for the template that the log has named; preparation threads
       read and set it, relaxed */
    _Atomic uint64_t    *mended;
} llm_prep_env_t;

/* how a thread may use its time */
typedef struct {
    int                  never;         /* it compiles no grammar: LLM_LATER */
    int                (*pause)(void *data);    /* llm_gram_pause() */
    void                *data;
} llm_prep_how_t;


/* request.c: everything that the scheduler needs of a request; in any thread.
   LLM_LATER: another thread is to go on, by the same call.  how: NULL: nothing
   is put aside */
int llm_prep_request(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);

/* is the model to run for it, or does preparation make the answer? */
static inline int
llm_prep_needs_model(const llm_request_t *msg)
{
    return msg->task < LLM_TASK_TOKENIZE || msg->task > LLM_TASK_PROPS;
}

/* task.c: does the model do the request's task?  If not, err says why */
int llm_prep_task(const llm_prep_env_t *env, const llm_request_t *msg,
    llm_err_t *err);

/* rank.c: reads the text for pairs, if the file has one, or makes an encoder's;
   after the model and the vocabulary.  LLM_ERROR: no memory */
int llm_rank_load(llm_prep_env_t *env, const llm_gguf_t *g, llm_err_t *err);
void llm_rank_free(llm_rank_text_t *t);


/* ---- between the files of this folder ---- */

/* prompt.c */
/* a chat's text */
int llm_prep_render(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prep_how_t *how, llm_prompt_t *prompt, llm_err_t *err);
/* the only prompt of a chat; all prompts of a completion, or inputs to be
   embedded; all pairs */
int llm_prep_chat(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);
int llm_prep_completion(const llm_prep_env_t *env, llm_req_t *r,
    llm_err_t *err);
int llm_prep_pairs(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err);
/* a prompt without a token gets one, or is refused */
int llm_prep_empty(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p, llm_err_t *err);
/* how many tokens may be generated after the prompt */
int llm_prep_room(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prompt_ids_t *p, uint32_t *max_gen, llm_err_t *err);
/* LLM_ERROR: no memory */
int llm_prep_echo(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p);

/* filter.c: allowed tokens, bad words, sequence breakers */
int llm_prep_filter(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err);

/* answers.c: the answer of a task that needs no model */
int llm_prep_answer(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);

/* describe.c */
void llm_describe_tokenizer(const llm_prep_env_t *env, llm_buf_t *out);
void llm_describe_props(const llm_prep_env_t *env, llm_buf_t *out);

/* infill.c: the tokens of a text before a gap, then what follows the gap */
int llm_prep_infill(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p, llm_err_t *err);

/* grammar.c: what the choices must look like, if they must; after the prompts
   are made.  LLM_LATER: as llm_prep_request() */
int llm_prep_grammar(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);

/* calls.c */
/* what a chat's grammar is made from */
typedef struct {
    const llm_request_t  *msg;
    const llm_tools_t    *tools;
    const llm_format_t   *format;       /* NULL: not a chat */
    int                   open;         /* as in llm_prepared_t */
    const llm_toktree_t  *tree;
    int                   begun;        /* the grammar is that of a call that
                                           has begun */
    int                   loose;        /* any object for arguments */
    const llm_prep_how_t *how;
    int                   later;        /* it was not compiled, because of
                                           `how` */
    int                   stopped;      /* it was given up: nobody needs it */
} llm_rule_ctx_t;

/* the form of calls that a grammar can write, or NULL */
const llm_form_t *llm_calls_form(const llm_format_t *f);
/* one call or more, as the request allows; and what follows the beginning of
   one */
int llm_calls_node(const llm_rule_ctx_t *ctx, llm_gram_build_t *b,
    llm_gn_t *node, llm_err_t *err);
int llm_calls_begun(const llm_rule_ctx_t *ctx, llm_gram_build_t *b,
    llm_gn_t *node, llm_err_t *err);
/* calls_tool.c: a mark; any: see llm_form_t */
llm_gn_t llm_calls_mark(llm_gram_build_t *b, const llm_toktree_t *tree,
    llm_str_t mark, llm_str_t any);

/* rank.c */
/* can the model rank?  If not, err says what its file lacks */
int llm_rank_check(const llm_prep_env_t *env, llm_err_t *err);
/* appends the prompt of a pair to out; spans, LLM_RANK_SPANS at most, are the
   parts that are the template's; returns their number */
#define LLM_RANK_SPANS  8
uint32_t llm_rank_write(const llm_rank_text_t *t, llm_str_t query,
    llm_str_t document, llm_buf_t *out, llm_span_t *spans);

/* task.c */
/* must its prompts be computed in one step each? */
int llm_prep_whole(const llm_prep_env_t *env);
/* which states of a prompt of n tokens become its vector */
void llm_prep_pool(const llm_prep_env_t *env, llm_pooled_t *pool, uint32_t n);

#endif /* LLM_PREPARE_H */
