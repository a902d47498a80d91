/*
 * Prompts of a query and a document, and what is left of pairs that are too
 * long, if the request wants that: of the tokens of both texts the longer one
 * loses some until it is as long as the other, then both lose as many, from
 * their ends or from their beginnings, as in Hugging Face's tokenizers
 * ("longest first").  What stands around them in the prompt stays.
 *
 * Which tokens are a text's is found by comparison with the prompt without it.
 *
 * https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/utils/truncation.rs
 */

#include "engine/prepare/prepare.h"

/* bytes of a text that are looked at for a token that may be kept, at first */
#define LLM_PAIR_BYTES  16

typedef enum {
    LLM_PAIR_ALL,
    LLM_PAIR_BEFORE,
    LLM_PAIR_AFTER
} llm_pair_of_t;

/* two texts, in this order, and their tokens in ids */
typedef struct {
    llm_str_t    side[2];               /* query, document */
    llm_ids_t    ids;
    uint32_t     first[2];
    uint32_t     n[2];
    uint32_t     keep[2];
} llm_sides_t;


/* tokenizes the prompt of these texts, or what it has before or after text k,
   into ids, which are written anew */

static int
llm_pair_tokenize(const llm_prep_env_t *env, const llm_str_t *side,
    llm_pair_of_t of, uint32_t k, llm_buf_t *text, llm_ids_t *ids,
    llm_err_t *err)
{
    size_t      from, to, at[2];
    uint32_t    i, n, m;
    llm_span_t  spans[LLM_RANK_SPANS];

    text->len = 0;
    n = llm_rank_write(&env->rank, side[0], side[1], text, spans, at);

    if (text->failed) {
        return llm_fail(err, "no memory for the request");
    }

    from = of == LLM_PAIR_AFTER ? at[k] + side[k].len : 0;
    to = of == LLM_PAIR_BEFORE ? at[k] : text->len;

    for (i = 0, m = 0; i < n; i++) {
        if (spans[i].start >= from && spans[i].end <= to) {
            spans[m].start = spans[i].start - from;
            spans[m++].end = spans[i].end - from;
        }
    }

    ids->len = 0;

    return llm_vocab_tokenize(env->vocab, text->data + from, to - from, spans,
                              m, LLM_TOKENIZE_TRUSTED, 0, ids, err);
}


/* tokens that both begin with, and that both end with */

static size_t
llm_pair_begin(const llm_ids_t *x, const llm_ids_t *y)
{
    size_t  n;

    for (n = 0; n < llm_min(x->len, y->len); n++) {
        if (x->data[n] != y->data[n]) {
            break;
        }
    }

    return n;
}


static size_t
llm_pair_end(const llm_ids_t *x, const llm_ids_t *y)
{
    size_t  n;

    for (n = 0; n < llm_min(x->len, y->len); n++) {
        if (x->data[x->len - 1 - n] != y->data[y->len - 1 - n]) {
            break;
        }
    }

    return n;
}


/*
 * Finds the tokens of side k: those between what is before it and after it.
 * Both are looked for twice: in the prompt where the side is empty, in which
 * they may join into one token, and alone, where a tokenizer may begin or end
 * them otherwise.  The longer match counts, but no more tokens than a part has
 * alone: the side may begin as what follows it.
 */

static int
llm_pair_find(const llm_prep_env_t *env, llm_sides_t *p, uint32_t k,
    llm_buf_t *text, llm_err_t *err)
{
    int        rc;
    size_t     a, b;
    llm_str_t  side[2];
    llm_ids_t  ids;

    memset(&ids, 0, sizeof(ids));
    a = 0;
    b = 0;
    side[k] = (llm_str_t) { 0, "" };
    side[!k] = p->side[!k];

    rc = llm_pair_tokenize(env, side, LLM_PAIR_ALL, k, text, &ids, err);

    if (rc == LLM_OK) {
        a = llm_pair_begin(&p->ids, &ids);
        b = llm_pair_end(&p->ids, &ids);
        rc = llm_pair_tokenize(env, side, LLM_PAIR_BEFORE, k, text, &ids, err);
    }

    if (rc == LLM_OK) {
        a = llm_min(llm_max(a, llm_pair_begin(&p->ids, &ids)), ids.len);
        rc = llm_pair_tokenize(env, side, LLM_PAIR_AFTER, k, text, &ids, err);
    }

    if (rc == LLM_OK) {
        b = llm_min(llm_max(b, llm_pair_end(&p->ids, &ids)), ids.len);
        b = llm_min(b, p->ids.len - a);
    }

    p->first[k] = (uint32_t) a;
    p->n[k] = (uint32_t) (p->ids.len - a - b);
    free(ids.data);

    return rc;
}


/* a token where the two texts meet belongs to the one before */

static void
llm_pair_part(llm_sides_t *p)
{
    uint32_t  one, two, end;

    one = p->first[1] < p->first[0];
    two = !one;
    end = p->first[one] + p->n[one];

    if (p->first[two] < end) {
        p->n[two] -= llm_min(end - p->first[two], p->n[two]);
        p->first[two] = end;
    }
}


/* sets how many tokens of each side are kept */

static void
llm_pair_share(llm_sides_t *p, uint32_t most)
{
    uint32_t  around, n, small;

    around = (uint32_t) p->ids.len - p->n[0] - p->n[1];
    n = most > around ? most - around : 0;
    small = p->n[1] < p->n[0];

    p->keep[0] = p->n[0];
    p->keep[1] = p->n[1];

    if (p->n[0] + p->n[1] <= n) {
        return;
    }

    if (p->n[small] <= n / 2) {
        p->keep[!small] = n - p->n[small];
        return;
    }

    p->keep[small] = n / 2;
    p->keep[!small] = n - n / 2;
}


static void
llm_pair_cut(llm_sides_t *p, uint32_t k, int head)
{
    uint32_t  from, n;

    n = p->n[k] - p->keep[k];
    from = head ? p->first[k] : p->first[k] + p->keep[k];

    memmove(p->ids.data + from, p->ids.data + from + n,
            (p->ids.len - from - n) * sizeof(*p->ids.data));
    p->ids.len -= n;
}


/* a text's first or last bytes, at most n, and whole characters */

static llm_str_t
llm_pair_slice(llm_str_t s, size_t n, int head)
{
    size_t  at;

    if (s.len <= n) {
        return s;
    }

    at = head ? s.len - n : n;

    while (at > 0 && (s.data[at] & 0xc0) == 0x80) {
        at--;
    }

    return head ? (llm_str_t) { s.len - at, s.data + at }
                : (llm_str_t) { at, s.data };
}


/* tokenizes slices of n bytes; sets the shares.  LLM_MORE: more bytes are
   needed to know which tokens are kept */

static int
llm_pair_try(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_str_t *side, size_t n, llm_sides_t *p, llm_buf_t *text,
    llm_err_t *err)
{
    int       head;
    uint32_t  k;

    head = r->msg->flags & LLM_REQ_CUT_HEAD;

    for (k = 0; k < 2; k++) {
        p->side[k] = llm_pair_slice(side[k], n, head);
    }

    if (llm_pair_tokenize(env, p->side, LLM_PAIR_ALL, 0, text, &p->ids, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (p->ids.len <= llm_prep_most(env, r)
        && p->side[0].len == side[0].len && p->side[1].len == side[1].len)
    {
        /* nothing is cut, whatever shorter slices had to */

        memset(p->first, 0, sizeof(p->first));
        memset(p->n, 0, sizeof(p->n));
        memset(p->keep, 0, sizeof(p->keep));
        return LLM_OK;
    }

    if (!llm_rank_once(&env->rank)) {
        return llm_fail_with(err, 400, NULL, "truncate", "Invalid 'truncate': "
                             "the prompt of this model has the query or the "
                             "document twice, so a pair cannot be truncated. "
                             "Please send shorter texts, or leave it out.");
    }

    if (llm_pair_find(env, p, 0, text, err) != LLM_OK
        || llm_pair_find(env, p, 1, text, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_pair_part(p);
    llm_pair_share(p, llm_prep_most(env, r));

    /* a slice may end within a word: its last tokens are not the text's */

    for (k = 0; k < 2; k++) {
        if (p->side[k].len < side[k].len && p->n[k] / 2 <= p->keep[k]) {
            return LLM_MORE;
        }
    }

    return LLM_OK;
}


static int
llm_pair_truncate(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_str_t *side, llm_buf_t *text, llm_prompt_ids_t *out,
    llm_err_t *err)
{
    int          rc, head;
    size_t       n;
    uint32_t     last;
    llm_sides_t  p;

    memset(&p, 0, sizeof(p));
    head = r->msg->flags & LLM_REQ_CUT_HEAD;
    n = (size_t) llm_prep_most(env, r) * LLM_PAIR_BYTES;

    while ((rc = llm_pair_try(env, r, side, n, &p, text, err)) == LLM_MORE) {
        n *= 4;
    }

    out->ids = p.ids.data;

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    last = p.first[1] > p.first[0];
    llm_pair_cut(&p, last, head);
    llm_pair_cut(&p, !last, head);
    out->n = (uint32_t) p.ids.len;

    return llm_prep_fits(env, r, out, err);
}


/* makes the prompt of a pair; `text` is a buffer for reuse */

static int
llm_prep_pair(const llm_prep_env_t *env, llm_req_t *r, uint32_t i,
    const llm_prompt_ref_t *ref, llm_buf_t *text, llm_err_t *err)
{
    size_t       at[2];
    uint32_t     k, n;
    llm_str_t    side[2];
    llm_span_t   spans[LLM_RANK_SPANS];

    if (ref[0].is_ids || ref[1].is_ids) {
        return llm_fail(err, "malformed request to the engine");
    }

    for (k = 0; k < 2; k++) {
        side[k].data = llm_ref_data(r->msg, ref[k].ref);
        side[k].len = ref[k].ref.len;
    }

    if (r->msg->truncate) {
        return llm_pair_truncate(env, r, side, text, &r->prep.prompts[i],
                                 err);
    }

    text->len = 0;
    n = llm_rank_write(&env->rank, side[0], side[1], text, spans, at);

    if (text->failed) {
        return llm_fail(err, "no memory for the request");
    }

    return llm_prep_tokenize(env, r, (llm_str_t) { text->len, text->data },
                             spans, n, LLM_TOKENIZE_TRUSTED,
                             &r->prep.prompts[i], err);
}


/*
 * The prompts of all pairs of a query and its documents may be far larger than
 * the message, which has the query only once, so their size is limited here.
 * And a query is tokenized with each document, so others have their turn in
 * between.
 */

int
llm_prep_pairs(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    int                      rc;
    size_t                   bytes;
    uint32_t                 i;
    llm_buf_t                text;
    const llm_prompt_ref_t  *ref;

    ref = llm_ref_data(r->msg, r->msg->prompts);
    llm_buf_init(&text, 0);
    bytes = 0;
    rc = LLM_OK;

    for (i = 0; i < r->prep.n_prompts && rc == LLM_OK; i++, ref += 2) {
        if (atomic_load_explicit(&r->cancelled, memory_order_relaxed)
            || (i && how && how->pause && how->pause(how->data)))
        {
            rc = llm_fail(err, "the request was cancelled");
            break;
        }

        rc = llm_prep_pair(env, r, i, ref, &text, err);
        bytes += r->prep.prompts[i].n * sizeof(int32_t);

        if (rc == LLM_OK && bytes > env->max_bytes) {
            rc = llm_fail_with(err, 400, "request_too_large", "documents",
                               "The query and %u of the %u documents take "
                               "%zu bytes as tokens; all requests together "
                               "may take %zu (llm_queue memory=). Please send "
                               "fewer documents, or a shorter query.", i + 1,
                               r->prep.n_prompts, bytes,
                               env->max_bytes);
        }
    }

    llm_buf_free(&text);

    return rc;
}
