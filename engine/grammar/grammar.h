/*
 * What an answer may look like, and which tokens may come next.
 *
 * A grammar is a graph of nodes: texts, regular expressions, strings of JSON,
 * sequences, alternatives, repetitions, objects and arrays of JSON, and
 * references, by which it may be recursive.  The readers (schema/, gbnf.c,
 * and the functions below for regexes and choices) build it; machine.c runs
 * it byte by byte; mask.c runs all tokens of a vocabulary through it at once.
 *
 * Invariant: after each byte that was allowed there is a way to the end, and a
 * byte is allowed only if there is one.
 *
 * Ownership: a builder is taken over by llm_gram_finish(); a grammar may be
 * used by several matchers in several threads (it has a lock; what is computed
 * for one matcher can be used by all) and is freed after them.  Texts are
 * copied.
 */

#ifndef LLM_GRAMMAR_H
#define LLM_GRAMMAR_H

#include "engine/base/flat.h"
#include "engine/grammar/regex/regex.h"
#include "engine/text/vocab/vocab.h"

/* ---- building ---- */

typedef struct llm_gram_build_s  llm_gram_build_t;

typedef uint32_t  llm_gn_t;             /* a node */

#define LLM_GN_NONE   0                 /* matches nothing */
#define LLM_GN_EMPTY  1                 /* matches the empty text */

#define LLM_GN_NO_MAX  UINT32_MAX

/* named properties, in the order in which they must come */
typedef struct {
    llm_str_t        key;               /* the text, not as JSON writes it */
    llm_gn_t         value;
    int              required;
} llm_gn_property_t;

/* other properties, by an expression for their keys.  The kinds of an object
   must not overlap, nor match the key of a named property, not even a
   forbidden one */
typedef struct {
    llm_rx_t         key;
    llm_gn_t         value;
} llm_gn_others_t;

/*
 * Objects and arrays may have white space where people and models put it, and
 * no more: after { [ and , and before } and ] nothing, one space, or a line
 * feed and up to 32 spaces or tabs; after : nothing or one space.
 *
 * Named properties come first, in their order; keys are never repeated.
 */
typedef struct {
    const llm_gn_property_t  *named;
    uint32_t                  n_named;
    const llm_gn_others_t    *others;
    uint32_t                  n_others;
    uint32_t                  min;      /* number of properties */
    uint32_t                  max;
} llm_gn_object_t;

typedef struct {
    const llm_gn_t  *prefix;
    uint32_t         n_prefix;
    llm_gn_t         items;             /* each item after the prefix */
    uint32_t         min;
    uint32_t         max;
    int              unique;            /* 1: no two items have the same
                                           value */
    llm_gn_t         contains;          /* items after the prefix that match
                                           both contains and `items`, as one
                                           node */
    uint32_t         min_contains;      /* required number of these; 0:
                                           contains has no effect */
} llm_gn_array_t;

llm_gram_build_t *llm_gram_build(void);
void llm_gram_build_free(llm_gram_build_t *b);
/* pool for the expressions of this grammar */
llm_rx_pool_t *llm_gram_pool(llm_gram_build_t *b);

/* has the node a way to its end, as far as is known before llm_gram_finish(),
   which also finds what is too large?  LLM_ABSENT and *err: no text matches
   it; LLM_ERROR and *err: undecided */
int llm_gn_alive(llm_gram_build_t *b, llm_gn_t node, llm_err_t *err);
/* is it certain that no text matches the node? */
int llm_gn_dead(llm_gram_build_t *b, llm_gn_t node);
/* a reference that may begin with itself; LLM_GN_NONE: there is none */
llm_gn_t llm_gn_left(llm_gram_build_t *b);
/* after llm_gn_alive(): an array inside the node whose items must be unique
   but cannot be compared; or LLM_GN_NONE */
llm_gn_t llm_gn_unknown(llm_gram_build_t *b, llm_gn_t node);

/* until the grammar is finished, pause() is called every few microseconds of
   work, and may wait.  If it returns nonzero, nobody needs the grammar any
   more: making it then fails soon, for any reason */
void llm_gram_pause(llm_gram_build_t *b, int (*pause)(void *data), void *data);

/* time that reading the grammar's schemas has taken so far, in microseconds;
   the reader counts it, and bounds the sum */
uint64_t *llm_gram_spent_us(llm_gram_build_t *b);

llm_gn_t llm_gn_text(llm_gram_build_t *b, const char *text, size_t len);
/* these bytes, unchanged */
llm_gn_t llm_gn_regex(llm_gram_build_t *b, llm_rx_t rx);
/* a string of JSON, in quotes, whose text (escapes decoded) matches */
llm_gn_t llm_gn_string(llm_gram_build_t *b, llm_rx_t rx);
llm_gn_t llm_gn_seq(llm_gram_build_t *b, const llm_gn_t *nodes, uint32_t n);
llm_gn_t llm_gn_alt(llm_gram_build_t *b, const llm_gn_t *nodes, uint32_t n);
llm_gn_t llm_gn_repeat(llm_gram_build_t *b, llm_gn_t node, uint32_t min,
    uint32_t max);
llm_gn_t llm_gn_object(llm_gram_build_t *b, const llm_gn_object_t *o);
llm_gn_t llm_gn_array(llm_gram_build_t *b, const llm_gn_array_t *a);
/* a node that is defined later, and may occur in its own definition */
llm_gn_t llm_gn_ref(llm_gram_build_t *b);
void llm_gn_define(llm_gram_build_t *b, llm_gn_t ref, llm_gn_t node);


/*
 * Readers of texts; LLM_ERROR and *err, a client's error, if they do not
 * support the text.
 */

/* schema/schema.c: err->param is the path of the unsupported keyword;
   LLM_ABSENT and *err: no text matches, because of the keyword at that path */
int llm_gn_schema(llm_gram_build_t *b, const llm_flat_t *schema,
    llm_gn_t *node, llm_err_t *err);
/* the same for a schema inside a document, to which its references may refer,
   and for a value that is followed by `end`. A string is then written without
   quotes and escapes, and does not contain `end`. end.len 0: ordinary JSON */
int llm_gn_schema_part(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, llm_gn_t *node, llm_err_t *err);
/* schema/near.c: the same without the keywords that are not supported or that
   nothing can match, if there are only a few.  Whatever the schema allows is
   allowed, and possibly more */
int llm_gn_schema_near(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, llm_gn_t *node, llm_err_t *err);
/* schema/close.c: writes a copy of a schema in which objects, or only the
   outermost one unless deep, allow no other properties than those that they
   name; LLM_ABSENT: the copy would be the same */
int llm_schema_close(const llm_flat_t *schema, int deep, llm_buf_t *out);
/* gbnf.c: reads a grammar of llama.cpp, from its rule "root" */
int llm_gn_gbnf(llm_gram_build_t *b, const char *text, size_t len,
    llm_gn_t *node, llm_err_t *err);
/* readers.c: any JSON object; a regular expression for the whole text; one of
   these texts */
int llm_gn_json_object(llm_gram_build_t *b, llm_gn_t *node, llm_err_t *err);
int llm_gn_pattern(llm_gram_build_t *b, const char *pattern, size_t len,
    llm_gn_t *node, llm_err_t *err);
llm_gn_t llm_gn_choice(llm_gram_build_t *b, const llm_str_t *texts,
    uint32_t n);


/* ---- a vocabulary's tokens as a tree of their bytes ---- */

typedef struct llm_toktree_s  llm_toktree_t;

/* made once per model; read-only, for any number of threads */
llm_toktree_t *llm_toktree_create(const llm_vocab_t *v, llm_err_t *err);
void llm_toktree_free(llm_toktree_t *t);

/* a text in which control tokens are recognised: they stand for the token, not
   for its letters.  A token that ends the answer ends the text */
llm_gn_t llm_gn_special(llm_gram_build_t *b, const llm_toktree_t *tree,
    llm_str_t text);


/* ---- a grammar ---- */

typedef struct llm_gram_s  llm_gram_t;

/*
 * Takes over the builder, also when it fails.  Nodes that have no way to an
 * end are removed.  Reasons for LLM_ERROR: nothing can match, left recursion,
 * too large.
 */
llm_gram_t *llm_gram_finish(llm_gram_build_t *b, llm_gn_t root,
    const llm_toktree_t *tree, llm_err_t *err);
void llm_gram_free(llm_gram_t *g);

/* memory of the grammar with all that it has computed; time of its last mask.
   Any thread may ask; the figures may be slightly old */
size_t llm_gram_bytes(const llm_gram_t *g);
uint32_t llm_gram_mask_us(const llm_gram_t *g);
/* bounds the memory of computed states: beyond it they are dropped, and
   computed again when needed; any thread */
void llm_gram_limit(llm_gram_t *g, size_t bytes);

/* grammars that consist of one rule */
llm_gram_t *llm_gram_schema(const llm_flat_t *schema,
    const llm_toktree_t *tree, llm_err_t *err);
llm_gram_t *llm_gram_json_object(const llm_toktree_t *tree, llm_err_t *err);
llm_gram_t *llm_gram_gbnf(const char *text, size_t len,
    const llm_toktree_t *tree, llm_err_t *err);
llm_gram_t *llm_gram_regex(const char *pattern, size_t len,
    const llm_toktree_t *tree, llm_err_t *err);
llm_gram_t *llm_gram_choice(const llm_str_t *texts, uint32_t n,
    const llm_toktree_t *tree, llm_err_t *err);


/* ---- one text ---- */

typedef struct llm_matcher_s  llm_matcher_t;

llm_matcher_t *llm_matcher_create(llm_gram_t *g, llm_err_t *err);
void llm_matcher_free(llm_matcher_t *m);
/* back to the beginning of the text */
void llm_matcher_restart(llm_matcher_t *m);

/*
 * Fills a bit for each token, llm_vocab_size() / 32 words, rounded up: the
 * tokens that are allowed next, and the tokens that end an answer if the text
 * may end here.  Other control tokens are never allowed.  LLM_ERROR: out of
 * memory or too ambiguous.
 */
int llm_matcher_mask(llm_matcher_t *m, uint32_t *mask, llm_err_t *err);
/* LLM_ERROR: the token was not allowed, and the matcher is unchanged */
int llm_matcher_accept(llm_matcher_t *m, int32_t token, llm_err_t *err);
/* text that is no token; LLM_ABSENT: it was not allowed; LLM_ERROR: out of
   memory; in both cases the matcher is unchanged */
int llm_matcher_push(llm_matcher_t *m, llm_str_t text, llm_err_t *err);
/* as llm_matcher_accept(), but never waits.  LLM_LATER, with nothing done:
   another thread uses the grammar, or its computed states have been or will be
   dropped.  *ends: 1 if only the end may follow */
int llm_matcher_accept_now(llm_matcher_t *m, int32_t token, int *ends,
    llm_err_t *err);
/* writes the tokens, at most n, of the text that must follow, each as long as
   the vocabulary has them; returns their number.  Never waits: 0 where
   llm_matcher_accept_now() would return LLM_LATER */
uint32_t llm_matcher_forced_now(llm_matcher_t *m, int32_t *ids, uint32_t n);
int llm_matcher_may_end(llm_matcher_t *m);
/* 1 if only the end may follow */
int llm_matcher_must_end(llm_matcher_t *m);

#endif /* LLM_GRAMMAR_H */
