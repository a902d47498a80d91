/*
 * From the tokens of one choice to its TEXT events: incremental detokenising,
 * what the text means (answer.h), stop strings across token borders, token ids
 * and logprobs.
 *
 * Invariant: the first `ready` bytes of `text` may be sent; the rest may be
 * the beginning of a stop string. `runs` tell which part of the answer each
 * byte of `text` belongs to; without runs all of it is content.  Stop strings
 * are looked for in content only, in each run separately.  Text of a stop
 * string is never sent.  The stop string that is complete first ends the text;
 * if two are complete at the same byte, the longest.  So the result does not
 * depend on how the text is cut into tokens.
 *
 * A llm_emit_t owns its buffers; stops, vocabulary and the prompt's echo are
 * shared and outlive it.  The caller bounds the unsent text: a choice that
 * cannot send gets no further tokens.
 */

#ifndef LLM_EMIT_H
#define LLM_EMIT_H

#include "engine/emit/answer.h"
#include "engine/ipc/event.h"
#include "engine/sample/sampler.h"
#include "engine/text/vocab/vocab.h"

/* one stop string with the table of Knuth, Morris and Pratt (1977) */
typedef struct {
    uint32_t             len;
    const char          *data;
    const uint32_t      *fail;          /* [len] longest border of the first i
                                           + 1 bytes */
} llm_stop_t;

typedef struct {
    uint32_t             n;
    llm_stop_t           stop[LLM_MAX_STOPS];
    void                *mem;
} llm_stops_t;

/* empty strings are left out; LLM_ERROR: no memory */
int llm_stops_init(llm_stops_t *s, const llm_str_t *strings, uint32_t n);
void llm_stops_free(llm_stops_t *s);

#define LLM_EMIT_PROBS   1
#define LLM_EMIT_IDS     2
#define LLM_EMIT_STREAM  4              /* send events as soon as there is
                                           text */
#define LLM_EMIT_COUNT   8              /* send the number of tokens at once,
                                           even without text */

/* bytes of text that belong to one part */
typedef struct {
    uint32_t             part;          /* llm_part_t */
    uint32_t             call;
    size_t               len;
} llm_emit_run_t;

typedef struct {
    const llm_vocab_t   *vocab;
    const llm_stops_t   *stops;
    uint32_t             flags;
    int32_t              hit;           /* index of the stop string that has
                                           matched, or -1 */

    llm_answer_t        *answer;        /* created with the first token, so
                                           that waiting choices are small;
                                           NULL: all text is content */
    llm_answer_opts_t    reads;
    int                  special;       /* 1: control tokens are text */
    int                  check;         /* 1: look for stop strings */
    uint32_t             n_reasoning;   /* tokens of reasoning */
    uint32_t             told;          /* tokens of reasoning that events have
                                           reported */

    llm_detok_t          detok;
    llm_buf_t            text;          /* text not yet sent */
    llm_buf_t            runs;          /* parts of text, llm_emit_run_t */
    size_t               ready;
    size_t               max_text;      /* most bytes of text of one event */
    uint32_t             sent;          /* bytes sent before text.data,
                                           including the echo */
    uint32_t             n_tokens;      /* tokens pushed since the last
                                           event */
    uint32_t             has_sent;      /* 1: an event has been sent */

    llm_buf_t            probs;         /* unsent probabilities:
                                           llm_emit_prob_t, each followed by
                                           its candidates */
    size_t               settled;       /* bytes of probs whose tokens are
                                           known to be content; later tokens
                                           are undecided, others have been
                                           dropped */
    size_t               fed;           /* bytes given to the answer */
    int                  said;          /* 1: the last settled token has given
                                           content */
    llm_buf_t            ids;           /* unsent token ids, int32_t */

    /* the prompt's tokens, if they are to be sent first: see
       llm_emit_prompt() */
    const int32_t       *prompt;
    uint32_t             n_prompt;      /* ids of the prompt not yet sent */

    /* the prompt's text, if it is to be sent first: see llm_emit_echo() */
    llm_str_t            echo;
    const llm_buf_t     *echo_probs;    /* probabilities of the echo; NULL:
                                           none */
    size_t               echo_text;     /* bytes of echo sent */
    size_t               echo_prob;     /* bytes of echo_probs sent */

    uint32_t             state[LLM_MAX_STOPS];  /* bytes matched of each stop
                                                   string */
} llm_emit_t;

/* special, strip: as in llm_detok_init() */
void llm_emit_init(llm_emit_t *e, const llm_vocab_t *vocab,
    const llm_stops_t *stops, uint32_t flags, int special, int strip);
void llm_emit_free(llm_emit_t *e);
/* reads the text as an answer; called before the first token.  e must not be
   moved afterwards */
void llm_emit_read(llm_emit_t *e, const llm_answer_opts_t *reads);
/* has a call begun after the last token?  See llm_answer_begun() */
llm_begun_t llm_emit_begun(llm_emit_t *e, llm_str_t *rest);
/* from now on a grammar constrains calls */
void llm_emit_sure(llm_emit_t *e);
/* memory of its buffers */
size_t llm_emit_bytes(const llm_emit_t *e);
/* number of tool calls so far */
uint32_t llm_emit_calls(const llm_emit_t *e);

/*
 * Adds a token; with check, its text is searched for stop strings.  LLM_OK;
 * LLM_STOPPED: a stop string has matched (e->hit) and the choice is over;
 * LLM_ERROR: no memory.
 */
int llm_emit_push(llm_emit_t *e, const llm_sampled_t *token, int check);
/* adds a token that ends the choice and has no text: it counts, so it has an
   id and a probability */
int llm_emit_push_end(llm_emit_t *e, const llm_sampled_t *token);
/*
 * Sets the echo of a prompt, before the first token; probs holds the
 * probabilities of its tokens, added by llm_emit_add_prob(), and may be empty.
 * Neither is copied: both are complete and outlive e.  If send is 0, another
 * choice of the prompt sends the echo, and offsets of this choice's text begin
 * after it.
 */
void llm_emit_echo(llm_emit_t *e, llm_str_t text, const llm_buf_t *probs,
    int send);
/* sends the ids of the prompt before all else; they are not copied */
void llm_emit_prompt(llm_emit_t *e, const int32_t *ids, uint32_t n);
/* adds a token: its place in the text of its choice, its probability and those
   of the most likely tokens */
int llm_emit_add_prob(llm_buf_t *probs, const llm_sampled_t *token,
    uint32_t start, uint32_t end);
/* no token will follow, so all text may be sent; cut: the model has not ended
   the answer itself */
int llm_emit_end(llm_emit_t *e, int cut);

/* is there anything to send?  last: the choice has ended */
int llm_emit_pending(const llm_emit_t *e, int last);
/* writes TEXT events; LLM_FULL: some did not fit in the ring or in the
   client's window */
int llm_emit_write(llm_emit_t *e, llm_to_t *to, uint32_t index,
    int last);

#endif /* LLM_EMIT_H */
