/*
 * Preparation: from a request's message to what the scheduler can run, prompts
 * as tokens and the grammars of their answers.  The chat template is rendered,
 * texts become tokens, schemas and tools become grammars, a query and a
 * document become a prompt; requests that need no model get their whole answer.
 *
 * All that preparation needs to know about a model is in its environment, which
 * belongs to the caller that loaded the model.  Any number of threads may
 * prepare requests of one environment at once, because they only read it.  The
 * results belong to the request (llm_prepared_t in engine/sched/request.h).
 *
 * A message comes through shared memory, so each reference in it is checked
 * before it is followed.
 */

#ifndef LLM_PREPARE_H
#define LLM_PREPARE_H

#include "engine/media/rule.h"
#include "engine/media/sound.h"
#include "engine/model/model.h"
#include "engine/sched/sched.h"
#include "engine/text/chat/chat.h"


/* the prompt of a pair to be ranked, as text with the places {query} and
   {document}: from the file of a converted Qwen3-Reranker, or made for an
   encoder */
typedef struct {
    char                *text;          /* owned; NULL: none */
    size_t               len;
} llm_rank_text_t;

/* a model, as preparation sees it */
typedef struct {
    const char          *name;          /* in the configuration */
    const llm_model_t   *model;         /* NULL: a synthetic one */
    const llm_runner_t  *runner;        /* its sizes and abilities */
    llm_vocab_t         *vocab;
    llm_gram_cache_t    *grams;         /* compiled grammars */
    int                  speculates;    /* 1: tokens are drafted */
    uint32_t             takes;         /* LLM_MEDIUM_..., kinds of media that
                                           the loaded model takes */
    const llm_image_rule_t  *rule;      /* of images, if it takes them */
    llm_media_pool_t        *pool;      /* decodes them */
    const int32_t       *eog;           /* [n_eog] tokens that end an answer */
    uint32_t             n_eog;

    const llm_speech_rules_t  *speech;  /* of a model that transcribes speech
                                           and does nothing else, or NULL */

    llm_chat_t          *chat;          /* NULL: none, chat_err says why */
    llm_err_t            chat_err;
    llm_buf_t            template;      /* text of the chat template */
    llm_rank_text_t      rank;
    llm_sampling_t       advised;       /* the file's sampling parameters, for
                                           requests that do not set them */

    size_t               max_bytes;     /* limit for the memory of all
                                           requests */
    llm_log_pt           log;           /* NULL: nothing is logged */
    void                *log_data;
    /* remedies for the template that have been logged, as bits; preparation
       threads read and set them, relaxed */
    _Atomic uint64_t    *mended;
} llm_prep_env_t;

/* what a preparation thread may spend its time on */
typedef struct {
    int                  never;         /* 1: compile no grammar, return
                                           LLM_LATER instead */
    int                  large;         /* 1: decode a large image or sound,
                                           too; 0: LLM_LATER instead */
    int                (*pause)(void *data);    /* as for llm_gram_pause();
                                                   NULL: none */
    /* called before (1) and after (0) it waits for another process; NULL:
       none */
    void               (*rest)(void *data, int begins);
    void                *data;
} llm_prep_how_t;


/* request.c: prepares all that the scheduler needs for a request; in any
   thread.  LLM_LATER: the same call must be made again, for what is in
   r->prep.next: of several images and sounds, each call decodes one.  how:
   NULL: no limits */
int llm_prep_request(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);

/* has the model to run for the request?  If not, preparation makes the whole
   answer */
static inline int
llm_prep_needs_model(const llm_request_t *msg)
{
    return msg->task < LLM_TASK_TOKENIZE || msg->task > LLM_TASK_PROPS;
}

/* task.c: can the model do the request's task?  If not, err says why */
int llm_prep_task(const llm_prep_env_t *env, const llm_request_t *msg,
    llm_err_t *err);

/* LLM_MEDIUM_...: what the loaded model takes, a model of speech, too */
static inline uint32_t
llm_prep_takes(const llm_prep_env_t *env)
{
    return env->takes | (env->speech ? LLM_MEDIUM_SPEECH : 0);
}

/* media.c: checks the message's media, and that the model takes them */
int llm_prep_media(const llm_prep_env_t *env, const llm_req_t *r,
    llm_err_t *err);
/* does the prompt refer to media of the message alone? */
int llm_prep_media_order(const llm_req_t *r, const llm_prompt_t *prompt,
    llm_err_t *err);

/* image.c: makes the prompt of a chat with images or sound, of up to `most`
   rows (0: no bound), more of them are "context_length_exceeded"; takes the
   bytes of the message's media, and the prompt.  LLM_LATER: as
   llm_prep_request(); then r->prep.begun is the prompt, and is NULL again
   after the last call */
int llm_prep_images(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_prompt_t *prompt, uint32_t most,
    llm_prompt_ids_t *p, llm_err_t *err);

/* sound.c: decodes the message's media of this index, of up to so many seconds;
   what is wrong with it is about `param`; LLM_LATER: it is large */
int llm_prep_sound_decode(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, uint32_t index, uint32_t seconds,
    const char *param, llm_sound_t *sound, llm_err_t *err);
/* decodes the sound of a transcription and makes what runs it; LLM_LATER: as
   llm_prep_request() */
int llm_prep_sound(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);

/* rank.c: sets env->rank from the file, or to an encoder's usual prompt; to be
   called after the model and the vocabulary are loaded.  LLM_ERROR: no
   memory */
int llm_rank_load(llm_prep_env_t *env, const llm_gguf_t *g, llm_err_t *err);
void llm_rank_free(llm_rank_text_t *t);


/* ---- between the files of this folder ---- */

/* prompt.c */
/* renders a chat; the caller frees the prompt after LLM_OK */
int llm_prep_render(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prep_how_t *how, llm_prompt_t *prompt, llm_err_t *err);
/* make the only prompt of a chat (LLM_LATER: as llm_prep_request()); all
   prompts of a completion, or inputs to be embedded */
int llm_prep_chat(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);
int llm_prep_completion(const llm_prep_env_t *env, llm_req_t *r,
    llm_err_t *err);
/* makes the tokens of the client's prediction, if tokens are drafted and there
   is memory */
void llm_prep_predicted(const llm_prep_env_t *env, llm_req_t *r);
/* most tokens that a prompt may have */
uint32_t llm_prep_most(const llm_prep_env_t *env, const llm_req_t *r);
/* refuses a prompt that does not fit, or that leaves no room for a token of the
   answer if one is wanted; for tasks that need no model there is no limit */
int llm_prep_fits(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prompt_ids_t *p, llm_err_t *err);
/* makes a prompt of a text, as llm_vocab_tokenize() reads it, which fits */
int llm_prep_tokenize(const llm_prep_env_t *env, const llm_req_t *r,
    llm_str_t text, const llm_span_t *trusted, size_t n_trusted, int flags,
    llm_prompt_ids_t *out, llm_err_t *err);
/* gives a prompt without tokens its first one, or refuses it */
int llm_prep_empty(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p, llm_err_t *err);
/* sets *max_gen: the tokens that may be generated after the prompt */
int llm_prep_room(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prompt_ids_t *p, uint32_t *max_gen, llm_err_t *err);
/* makes the text of a prompt that is echoed or shown and, for logprobs, the
   offsets at which its tokens end; LLM_ERROR: no memory */
int llm_prep_echo(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p);

/* pairs.c: makes the prompts of all pairs of a query and a document */
int llm_prep_pairs(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);

/* filter.c: allowed tokens, bad words, biases of texts, sequence breakers */
int llm_prep_filter(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err);

/* answers.c: makes the answer of a task that needs no model */
int llm_prep_answer(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err);

/* describe.c: append a flat object; out.failed: no memory */
void llm_describe_tokenizer(const llm_prep_env_t *env, llm_buf_t *out);
void llm_describe_props(const llm_prep_env_t *env, llm_buf_t *out);

/* infill.c: replaces the tokens of p, the text before a gap, by the whole
   prompt */
int llm_prep_infill(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p, llm_err_t *err);

/* grammar.c: makes the grammar of the choices, if they are constrained; to be
   called after the prompts are made.  LLM_LATER: as llm_prep_request() */
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
    int                   begun;        /* 1: the grammar is for a call that
                                           has begun */
    int                   loose;        /* 1: arguments may be any object */
    const llm_prep_how_t *how;
    int                   later;        /* 1: not compiled, because of
                                           how->never */
    int                   stopped;      /* 1: given up, because the request is
                                           over */
} llm_rule_env_t;

/* the first form of calls that a grammar can write; NULL: there is none */
const llm_form_t *llm_calls_form(const llm_format_t *f);
/* one call or more, as the request allows; and the rest of a call that has
   begun, with what may follow it */
int llm_calls_node(const llm_rule_env_t *ctx, llm_gram_build_t *b,
    llm_gn_t *node, llm_err_t *err);
int llm_calls_begun(const llm_rule_env_t *ctx, llm_gram_build_t *b,
    llm_gn_t *node, llm_err_t *err);
/* calls_tool.c: the node of a mark; any: see llm_form_t */
llm_gn_t llm_calls_mark(llm_gram_build_t *b, const llm_toktree_t *tree,
    llm_str_t mark, llm_str_t any);

/* rank.c */
/* can the model rank?  If not, err says what its file lacks */
int llm_rank_check(const llm_prep_env_t *env, llm_err_t *err);
/* has the prompt each of the two texts once? */
int llm_rank_once(const llm_rank_text_t *t);
/* appends the prompt of a pair to out; sets spans, LLM_RANK_SPANS at most, to
   the parts that come from the template, and returns their number; places:
   where the query, and where the document, begins in out, each the last time */
#define LLM_RANK_SPANS  8
uint32_t llm_rank_write(const llm_rank_text_t *t, llm_str_t query,
    llm_str_t document, llm_buf_t *out, llm_span_t *spans, size_t *places);

/* task.c */
/* must each prompt be computed in a single step? */
int llm_prep_whole(const llm_prep_env_t *env);
/* sets which states of a prompt of n tokens are pooled to its vector */
void llm_prep_pool(const llm_prep_env_t *env, llm_pooled_t *pool, uint32_t n);

#endif /* LLM_PREPARE_H */
