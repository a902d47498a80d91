/*
 * Filters of tokens, from a request's message to the sampler's form: the only
 * tokens that may be drawn, words that may not be written, biases of texts,
 * DRY's sequence breakers.
 *
 * The lists belong to the request and are freed with it, whether the functions
 * here fail or not.
 */

#include "engine/prepare/prepare.h"


/* bad words as tokens; as `ids` may move until all words are in it, the tokens
   of words[i] are given by their offset, at[i] */

typedef struct {
    llm_ids_t        ids;
    llm_bad_word_t   words[2 * LLM_MAX_BAD_WORDS];
    size_t           at[2 * LLM_MAX_BAD_WORDS];
    uint32_t         n;
} llm_words_t;


static int
llm_filter_allowed(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    size_t          words;
    uint32_t        i, n, *allowed;
    const int32_t  *ids;

    n = r->msg->allowed_ids.len;
    ids = llm_ref_data(r->msg, r->msg->allowed_ids);

    if (n == 0) {
        return LLM_OK;
    }

    words = env->runner->n_vocab / 32 + 1;

    allowed = calloc(words, sizeof(uint32_t));
    if (allowed == NULL) {
        return llm_fail(err, "no memory for the allowed tokens");
    }

    r->prep.filter.allowed = allowed;
    r->prep.filter_bytes += words * sizeof(uint32_t);

    for (i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t) ids[i] >= env->runner->n_vocab) {
            return llm_fail_with(err, 400, NULL, "allowed_token_ids",
                                 "token id %d is not in the model's "
                                 "vocabulary of %u", ids[i],
                                 env->runner->n_vocab);
        }

        allowed[ids[i] / 32] |= 1u << ids[i] % 32;
    }

    return LLM_OK;
}


/* appends the tokens of a word, which may begin with a space */

static int
llm_filter_word(const llm_prep_env_t *env, llm_str_t s, llm_words_t *w,
    llm_err_t *err)
{
    size_t  from;

    from = w->ids.len;

    if (llm_vocab_tokenize(env->vocab, s.data, s.len, NULL, 0,
                           LLM_TOKENIZE_SPECIAL, 0, &w->ids, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (w->ids.len > from) {
        w->at[w->n] = from;
        w->words[w->n++].n = (uint32_t) (w->ids.len - from);
    }

    return LLM_OK;
}


/* does the second word end with the tokens of the first, so that it is never
   completed anyway? */

static int
llm_filter_covered(const llm_words_t *w, uint32_t one, uint32_t two)
{
    uint32_t  n;

    n = w->words[one].n;

    return w->words[two].n > n
           && memcmp(w->ids.data + w->at[two] + w->words[two].n - n,
                     w->ids.data + w->at[one], n * sizeof(int32_t)) == 0;
}


/* adds a word in two forms: as it begins a line, and as it follows a space */

static int
llm_filter_both(const llm_prep_env_t *env, llm_str_t s, llm_words_t *w,
    llm_err_t *err)
{
    int        rc;
    uint32_t   one;
    llm_buf_t  spaced;

    while (s.len && *s.data == ' ') {
        s.data++;
        s.len--;
    }

    if (s.len == 0) {
        return LLM_OK;
    }

    one = w->n;

    if (llm_filter_word(env, s, w, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_buf_init(&spaced, 0);
    (void) llm_buf_addc(&spaced, ' ');
    (void) llm_buf_add(&spaced, s.data, s.len);

    rc = spaced.failed ? llm_fail(err, "no memory for the bad words")
                       : llm_filter_word(env, (llm_str_t) { spaced.len,
                                                         spaced.data },
                                        w, err);

    llm_buf_free(&spaced);

    if (rc == LLM_OK && w->n == one + 2 && llm_filter_covered(w, one, one + 1))
    {
        w->n--;
        w->ids.len = w->at[one + 1];
    }

    return rc;
}


/* copies words and ids to one block, which the request owns */

static int
llm_filter_keep(llm_req_t *r, const llm_words_t *w, llm_err_t *err)
{
    size_t           size;
    int32_t         *ids;
    uint32_t         i;
    llm_bad_word_t  *bad;

    if (w->n == 0) {
        return LLM_OK;
    }

    size = w->n * sizeof(llm_bad_word_t) + w->ids.len * sizeof(int32_t);

    bad = malloc(size);
    if (bad == NULL) {
        return llm_fail(err, "no memory for the bad words");
    }

    ids = (int32_t *) (bad + w->n);
    memcpy(ids, w->ids.data, w->ids.len * sizeof(int32_t));

    for (i = 0; i < w->n; i++) {
        bad[i].n = w->words[i].n;
        bad[i].ids = ids + w->at[i];
    }

    r->prep.filter.bad = bad;
    r->prep.filter.n_bad = w->n;
    r->prep.filter_bytes += size;

    return LLM_OK;
}


static int
llm_filter_bad_words(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    int               rc;
    uint32_t          i;
    llm_str_t         s;
    llm_words_t       w;
    const llm_ref_t  *refs;

    memset(&w.ids, 0, sizeof(w.ids));
    w.n = 0;
    rc = LLM_OK;
    refs = llm_ref_data(r->msg, r->msg->bad_words);

    for (i = 0; i < r->msg->bad_words.len && rc == LLM_OK; i++) {
        s.data = llm_ref_data(r->msg, refs[i]);
        s.len = refs[i].len;
        rc = llm_filter_both(env, s, &w, err);
    }

    if (rc == LLM_OK) {
        rc = llm_filter_keep(r, &w, err);
    }

    free(w.ids.data);

    return rc;
}


/* a text's bias is that of each of its tokens, as llama-server has it */

static int
llm_filter_text_bias(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    int                     rc;
    size_t                  k, from;
    uint32_t                i;
    llm_ids_t               ids;
    llm_logit_bias_t       *bias, *more;
    const llm_text_bias_t  *b;

    memset(&ids, 0, sizeof(ids));
    b = llm_ref_data(r->msg, r->msg->text_bias);
    bias = NULL;
    rc = LLM_OK;

    for (i = 0; i < r->msg->text_bias.len && rc == LLM_OK; i++) {
        from = ids.len;
        rc = llm_vocab_tokenize(env->vocab, llm_ref_data(r->msg, b[i].text),
                                b[i].text.len, NULL, 0, LLM_TOKENIZE_SPECIAL,
                                0, &ids, err);

        more = rc == LLM_OK && ids.len > from
               ? realloc(bias, ids.len * sizeof(llm_logit_bias_t)) : bias;

        if (more == NULL && ids.len > from) {
            rc = llm_fail(err, "no memory for the biases");
            break;
        }

        bias = more;

        for (k = from; rc == LLM_OK && k < ids.len; k++) {
            bias[k].id = ids.data[k];
            bias[k].bias = b[i].bias;
        }
    }

    r->prep.filter.bias = bias;
    r->prep.filter.n_bias = rc == LLM_OK ? (uint32_t) ids.len : 0;
    r->prep.filter_bytes += ids.len * sizeof(llm_logit_bias_t);
    free(ids.data);

    return rc;
}


static llm_str_t
llm_filter_bytes(const void *vocab, int32_t id)
{
    return llm_vocab_bytes(vocab, id);
}


/* the strings stay in the message */

static int
llm_filter_breakers(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    uint32_t          i, n;
    llm_str_t        *s;
    const llm_ref_t  *refs;

    n = r->msg->breakers.len;
    refs = llm_ref_data(r->msg, r->msg->breakers);

    if (n == 0) {
        return LLM_OK;
    }

    s = malloc(n * sizeof(llm_str_t));
    if (s == NULL) {
        return llm_fail(err, "no memory for the sequence breakers");
    }

    r->prep.filter.breakers = s;
    r->prep.filter.n_breakers = n;
    r->prep.filter.bytes = llm_filter_bytes;
    r->prep.filter.vocab = env->vocab;
    r->prep.filter_bytes += n * sizeof(llm_str_t);

    for (i = 0; i < n; i++) {
        s[i].data = llm_ref_data(r->msg, refs[i]);
        s[i].len = llm_min(refs[i].len, (uint32_t) LLM_MAX_BREAKER_LEN);
    }

    return LLM_OK;
}


int
llm_prep_filter(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    if (llm_filter_allowed(env, r, err) != LLM_OK
        || llm_filter_bad_words(env, r, err) != LLM_OK
        || llm_filter_text_bias(env, r, err) != LLM_OK
        || llm_filter_breakers(env, r, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}
