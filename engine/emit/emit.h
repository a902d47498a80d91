/*
 * From the tokens of one choice to its TEXT events: incremental
 * detokenising, stop strings across token borders, token ids and logprobs.
 *
 * Invariant: text = what may be sent (the first `ready` bytes) + what may
 * still be the beginning of a stop string.  Text of a stop string is never
 * sent.  Of several stop strings the one that is complete first cuts, the
 * longest if two are complete at the same byte, so the result does not
 * depend on how the text falls into tokens.
 *
 * A llm_emit_t owns its buffers; stops, vocabulary and the prompt's echo are
 * shared and outlive it.  The text that waits is bounded by the caller: a
 * choice that cannot send gets no further tokens.
 */

#ifndef LLM_EMIT_H
#define LLM_EMIT_H

#include "engine/ipc/event.h"
#include "engine/sample/sampler.h"
#include "engine/text/vocab/vocab.h"

/* one stop string with the table of Knuth, Morris and Pratt (1977) */
typedef struct {
    uint32_t             len;
    const char          *data;
    const uint32_t      *fail;          /* [len] longest border of the first
                                           i + 1 bytes */
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
#define LLM_EMIT_STREAM  4              /* events as soon as there is text */

typedef struct {
    const llm_vocab_t   *vocab;
    const llm_stops_t   *stops;
    uint32_t             flags;
    int32_t              hit;           /* index of the stop string, or -1 */

    llm_detok_t          detok;
    llm_buf_t            text;          /* not yet sent */
    size_t               ready;
    size_t               max_text;      /* of one event */
    uint32_t             sent;          /* bytes sent before text.data, the
                                           echo among them */
    uint32_t             n_tokens;      /* pushed since the last event */
    uint32_t             told;          /* there was an event */

    llm_buf_t            probs;         /* llm_emit_prob_t, candidates */
    llm_buf_t            ids;           /* int32_t */

    /* what of the prompt is to go out first: a place in bytes that belong to
       the prompt and are whole, see llm_emit_echo() */
    llm_str_t            echo;
    const llm_buf_t     *echo_probs;    /* NULL: none */
    size_t               echo_text;     /* bytes sent of echo */
    size_t               echo_prob;     /* and of echo_probs */

    uint32_t             state[LLM_MAX_STOPS];  /* bytes matched */
} llm_emit_t;

/* special, strip: as in llm_detok_init() */
void llm_emit_init(llm_emit_t *e, const llm_vocab_t *vocab,
    const llm_stops_t *stops, uint32_t flags, int special, int strip);
void llm_emit_free(llm_emit_t *e);

/*
 * One more token; with check, stop strings are looked for in its text.
 * LLM_OK; LLM_STOPPED when a stop string has matched (e->hit) and the choice
 * is over; LLM_ERROR: no memory.
 */
int llm_emit_push(llm_emit_t *e, const llm_sampled_t *token, int check);
/*
 * The echo of a prompt, before the first token; probs, of
 * llm_emit_add_prob(), are those of its tokens, and may be empty.  Neither is
 * copied: both are whole and outlive e.  Without tell another choice of the
 * prompt says it, and the text of this one only begins behind it.
 */
void llm_emit_echo(llm_emit_t *e, llm_str_t text, const llm_buf_t *probs,
    int tell);
/* a token's place in the text of its choice, its probability and rivals */
int llm_emit_add_prob(llm_buf_t *probs, const llm_sampled_t *token,
    uint32_t start, uint32_t end);
/* nothing will follow: all text may go */
int llm_emit_end(llm_emit_t *e);

/* is there anything an event could carry?  last: the choice has ended */
int llm_emit_pending(const llm_emit_t *e, int last);
/* writes TEXT events; LLM_FULL when the ring was full before the end, or
   the reader has its window full */
int llm_emit_write(llm_emit_t *e, llm_to_t *to, uint32_t index,
    int last);

#endif /* LLM_EMIT_H */
