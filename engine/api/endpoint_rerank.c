/*
 * POST /rerank: a query and documents in, the documents' places and scores
 * out, best first; or, as Text Embeddings Inference has it, a query and
 * "texts" in, a plain array out (llm_api_tei_rerank).  POST /score: pairs of
 * texts in, their scores out, in the order of the pairs.  A score is the
 * probability that a document answers the query; TEI's raw scores are its log
 * odds.
 */

#include "engine/api/tei.h"

#define AT(f)  offsetof(llm_api_rerank_t, f)

/* most bytes of a document's text that are written at once */
#define LLM_API_SLICE  1024

typedef struct {
    llm_api_body_t     body;

    const llm_flat_t  *query;
    const llm_flat_t  *documents;
    const llm_flat_t  *texts;
    const llm_flat_t  *first;           /* of /score */
    const llm_flat_t  *second;
    int64_t            top_n;           /* most results; 0: all */
    int                return_documents;    /* or texts */
    int                raw_scores;
    int                truncate;
    llm_str_t          truncation_direction;
} llm_api_rerank_t;

/* a document and its score */
typedef struct {
    float              score;
    uint32_t           index;
    llm_ref_t          text;            /* in the writer's own memory, if the
                                           text is to be returned */
} llm_api_ranked_t;

/* what the body's writer needs of a request; the texts follow the struct */
typedef struct {
    uint32_t           n;               /* results to write */
    uint32_t           sorted;
    uint32_t           texts;           /* 1: results have the documents'
                                           texts */
    uint32_t           plain;           /* 1: the body is an array, not an
                                           object with a list */
    llm_api_ranked_t   ranked[];        /* of all documents */
} llm_api_rerank_own_t;


static const llm_api_field_t  llm_api_rerank_rows[] = {
    { "cache_prompt", LLM_FIELD_BOOL, AT(body.cache_prompt), 0, 0 },
    { "documents", LLM_FIELD_ANY, AT(documents), 0, 0 },
    { "query", LLM_FIELD_REQUIRED, AT(query), 0, 0 },
    { "raw_scores", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "return_documents", LLM_FIELD_BOOL, AT(return_documents), 0, 0 },
    { "top_n", LLM_FIELD_INT, AT(top_n), 0, INT32_MAX },
    { "truncate", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "truncate_prompt_tokens", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
};

static const llm_api_fields_t  llm_api_rerank_fields = {
    llm_api_rerank_rows, llm_nelems(llm_api_rerank_rows)
};

static const llm_api_field_t  llm_api_tei_rerank_rows[] = {
    { "cache_prompt", LLM_FIELD_BOOL, AT(body.cache_prompt), 0, 0 },
    { "query", LLM_FIELD_REQUIRED, AT(query), 0, 0 },
    { "raw_scores", LLM_FIELD_BOOL, AT(raw_scores), 0, 0 },
    { "return_text", LLM_FIELD_BOOL, AT(return_documents), 0, 0 },
    { "texts", LLM_FIELD_REQUIRED, AT(texts), 0, 0 },
    { "top_n", LLM_FIELD_INT, AT(top_n), 0, INT32_MAX },
    { "truncate", LLM_FIELD_BOOL, AT(truncate), 0, 0 },
    { "truncate_prompt_tokens", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "truncation_direction", LLM_FIELD_STRING, AT(truncation_direction),
      0, 0 },
};

static const llm_api_fields_t  llm_api_tei_rerank_fields = {
    llm_api_tei_rerank_rows, llm_nelems(llm_api_tei_rerank_rows)
};

static const llm_api_name_t  llm_api_tei_rerank_names[] = {
    { "documents", "texts" },
    { NULL, NULL }
};

/* vLLM has had several names for either side of a pair */

static const llm_api_field_t  llm_api_score_rows[] = {
    { "cache_prompt", LLM_FIELD_BOOL, AT(body.cache_prompt), 0, 0 },
    { "data_1", LLM_FIELD_ANY, AT(first), 0, 0 },
    { "data_2", LLM_FIELD_ANY, AT(second), 0, 0 },
    { "documents", LLM_FIELD_ANY, AT(second), 0, 0 },
    { "items", LLM_FIELD_ANY, AT(second), 0, 0 },
    { "queries", LLM_FIELD_ANY, AT(first), 0, 0 },
    { "text_1", LLM_FIELD_ANY, AT(first), 0, 0 },
    { "text_2", LLM_FIELD_ANY, AT(second), 0, 0 },
    { "truncate_prompt_tokens", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
};

static const llm_api_fields_t  llm_api_score_fields = {
    llm_api_score_rows, llm_nelems(llm_api_score_rows)
};


/* ---- the readers ---- */

/* appends a text, or an object that has it as "text", to the message */

static int
llm_api_rerank_text(const llm_flat_t *v, const llm_api_at_t *at,
    llm_buf_t *msg, llm_prompt_ref_t *p, llm_err_t *err)
{
    llm_str_t  s;

    if (v->type == LLM_FLAT_OBJECT) {
        v = llm_api_need(err, at, v, "text", LLM_FLAT_STRING);
        if (v == NULL) {
            return LLM_ERROR;
        }
    }

    if (v->type != LLM_FLAT_STRING) {
        return llm_api_bad_type(err, at, "a string or an object with 'text'",
                                v);
    }

    s = llm_flat_str(v);

    memset(p, 0, sizeof(*p));
    p->ref.off = (uint32_t) msg->len;
    p->ref.len = (uint32_t) s.len;
    (void) llm_buf_add(msg, s.data, s.len);

    return LLM_OK;
}


/* reads one text or several; appends their references to refs */

static int
llm_api_rerank_texts(llm_api_reader_t *rd, const llm_flat_t *v,
    const llm_api_at_t *at, llm_buf_t *refs, llm_err_t *err)
{
    uint32_t           i;
    const llm_flat_t  *item;
    llm_prompt_ref_t   p;

    if (v->type != LLM_FLAT_ARRAY) {
        if (llm_api_rerank_text(v, at, rd->msg, &p, err) != LLM_OK) {
            return LLM_ERROR;
        }

        (void) llm_buf_add(refs, &p, sizeof(p));

        return LLM_OK;
    }

    if (v->count == 0) {
        return llm_api_empty(err, at);
    }

    if (v->count > LLM_MAX_INPUTS) {
        return llm_api_too_long(err, at, LLM_MAX_INPUTS, v);
    }

    item = llm_flat_first(v);

    for (i = 0; item; i++, item = llm_flat_next(v, item)) {
        if (llm_api_rerank_text(item, llm_api_idx(at, i), rd->msg, &p, err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        (void) llm_buf_add(refs, &p, sizeof(p));
    }

    return LLM_OK;
}


/* writes the message's pairs: each of the second texts with the first text of
   the same index, or with the only first text */

static int
llm_api_rerank_pairs(llm_api_reader_t *rd, const llm_buf_t *first,
    const llm_buf_t *second, const char *first_name, llm_err_t *err)
{
    uint32_t                 i, n, n_first;
    llm_request_t           *r;
    const llm_prompt_ref_t  *one, *two;

    if (first->failed || second->failed) {
        return llm_fail(err, "no memory for the request");
    }

    one = (const llm_prompt_ref_t *) first->data;
    two = (const llm_prompt_ref_t *) second->data;
    n_first = (uint32_t) (first->len / sizeof(*one));
    n = (uint32_t) (second->len / sizeof(*two));

    if (n_first != 1 && n_first != n) {
        return llm_api_bad_value(err, llm_api_top(first_name), "Invalid "
                                 "'%s': %u texts to be paired with %u; there "
                                 "must be one, or as many.", first_name,
                                 n_first, n);
    }

    r = &rd->r;
    (void) llm_buf_pad(rd->msg);
    r->prompts.off = (uint32_t) rd->msg->len;
    r->prompts.len = 2 * n;

    for (i = 0; i < n; i++) {
        (void) llm_buf_add(rd->msg, &one[n_first == 1 ? 0 : i],
                           sizeof(*one));
        (void) llm_buf_add(rd->msg, &two[i], sizeof(*two));
    }

    (void) llm_buf_pad(rd->msg);

    rd->n_choices = n;

    return LLM_OK;
}


/* keeps what the writer needs; two are the documents, in the message */

static void
llm_api_rerank_keep(llm_api_reader_t *rd, const llm_api_rerank_t *b,
    const llm_prompt_ref_t *two)
{
    size_t                 text;
    uint32_t               i, n;
    llm_api_ranked_t       k;
    llm_api_rerank_own_t   own;

    n = rd->n_choices;
    own.n = b->top_n ? (uint32_t) llm_min(b->top_n, (int64_t) n) : n;
    own.sorted = 0;
    own.plain = b->texts != NULL;
    own.texts = b->return_documents;
    (void) llm_buf_add(&rd->own, &own, sizeof(own));

    text = sizeof(own) + n * sizeof(k);

    for (i = 0; i < n; i++) {
        memset(&k, 0, sizeof(k));
        k.index = i;
        k.text.off = (uint32_t) text;
        k.text.len = two[i].ref.len;
        (void) llm_buf_add(&rd->own, &k, sizeof(k));
        text += k.text.len;
    }

    for (i = 0; own.texts && i < n && !rd->msg->failed; i++) {
        (void) llm_buf_add(&rd->own, rd->msg->data + two[i].ref.off,
                           two[i].ref.len);
    }
}


static int
llm_api_rerank_write(llm_api_reader_t *rd, const llm_api_rerank_t *b,
    const char *first_name, const char *second_name, llm_err_t *err)
{
    int        rc;
    llm_buf_t  first, second;

    llm_buf_init(&first, 0);
    llm_buf_init(&second, 0);

    rc = llm_api_rerank_texts(rd, b->first, llm_api_top(first_name), &first,
                              err);

    if (rc == LLM_OK) {
        rc = llm_api_rerank_texts(rd, b->second, llm_api_top(second_name),
                                  &second, err);
    }

    if (rc == LLM_OK) {
        rc = llm_api_rerank_pairs(rd, &first, &second, first_name, err);
    }

    if (rc == LLM_OK) {
        llm_api_rerank_keep(rd, b, (const llm_prompt_ref_t *) second.data);
    }

    llm_buf_free(&first);
    llm_buf_free(&second);

    return rc;
}


static int
llm_api_rerank_begin(llm_api_reader_t *rd, llm_api_rerank_t *b,
    llm_err_t *err)
{
    memset(b, 0, sizeof(llm_api_rerank_t));
    llm_api_defaults(&b->body);

    rd->r.kind = LLM_KIND_COMPLETION;

    if (llm_api_read_body(rd, &b->body, err) != LLM_OK
        || llm_api_read_priority(rd, &b->body, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.sampling = b->body.sampling;

    return LLM_OK;
}


/* reads the query and the documents, which have this name */

static int
llm_api_rerank_sides(llm_api_reader_t *rd, llm_api_rerank_t *b,
    const char *name, llm_err_t *err)
{
    const llm_api_at_t  *at;

    at = llm_api_top("query");

    if (b->query->type != LLM_FLAT_STRING
        && b->query->type != LLM_FLAT_OBJECT)
    {
        return llm_api_bad_type(err, at, "a string", b->query);
    }

    if (b->query->count == 0) {
        return llm_api_empty(err, at);
    }

    at = llm_api_top(name);

    b->first = b->query;
    b->second = b->texts ? b->texts : b->documents;

    if (b->second == NULL) {
        return llm_api_missing(err, at);
    }

    if (llm_api_check_type(err, at, b->second, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_api_rerank_write(rd, b, "query", name, err);
}


static int
llm_api_rerank_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_rerank_t  b;

    if (llm_api_rerank_begin(rd, &b, err) != LLM_OK
        || llm_api_rerank_sides(rd, &b, "documents", err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_api_write_list_head(rd, "rerank-", "results");

    return LLM_OK;
}


static int
llm_api_tei_rerank_read(llm_api_reader_t *rd, llm_err_t *err)
{
    int               left;
    llm_api_rerank_t  b;

    if (llm_api_rerank_begin(rd, &b, err) != LLM_OK
        || llm_api_tei_direction(b.truncation_direction, &left, err) != LLM_OK
        || llm_api_rerank_sides(rd, &b, "texts", err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.truncate = b.truncate ? -1 : 0;
    rd->r.flags |= (left ? LLM_REQ_CUT_HEAD : 0)
                   | (b.raw_scores ? LLM_REQ_RAW : 0);

    return llm_buf_addc(&rd->head, '[');
}


/* the name under which the body has this value; `otherwise` if it has none */

static const char *
llm_api_score_name(const llm_api_reader_t *rd, const llm_flat_t *v,
    const char *otherwise)
{
    uint32_t                i;
    const llm_api_field_t  *f;

    for (i = 0; i < llm_nelems(llm_api_score_rows); i++) {
        f = &llm_api_score_rows[i];

        if (v && llm_api_member(rd->root, f->name) == v) {
            return f->name;
        }
    }

    return otherwise;
}


static int
llm_api_score_read(llm_api_reader_t *rd, llm_err_t *err)
{
    const char        *first, *second;
    llm_api_rerank_t   b;

    if (llm_api_rerank_begin(rd, &b, err) != LLM_OK) {
        return LLM_ERROR;
    }

    first = llm_api_score_name(rd, b.first, "text_1");
    second = llm_api_score_name(rd, b.second, "text_2");

    if (b.first == NULL || b.second == NULL) {
        return llm_api_missing(err, llm_api_top(b.first ? second : first));
    }

    if (llm_api_rerank_write(rd, &b, first, second, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_write_list_head(rd, "score-", "data");

    return LLM_OK;
}


/* ---- the bodies ---- */

static int
llm_api_rerank_compare(const void *a, const void *b)
{
    const llm_api_ranked_t  *x = a, *y = b;

    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }

    return x->index < y->index ? -1 : 1;
}


static void
llm_api_rerank_scores(const llm_api_t *a, llm_api_rerank_own_t *own)
{
    uint32_t            i;
    const llm_event_t  *ev;

    for (i = 0; i < a->n_choices; i++) {
        if (a->choices[i].own.first) {
            ev = a->choices[i].own.first->ev;
            memcpy(&own->ranked[i].score,
                   llm_ref_data(ev, ev->u.vector.values), sizeof(float));
        }
    }
}


/* writes a slice of a document's text */

static int
llm_api_rerank_slice(llm_api_cursor_t *cur, const llm_api_ranked_t *k,
    const llm_api_rerank_own_t *own, llm_buf_t *out)
{
    size_t       len;
    const char  *s;

    s = (const char *) own + k->text.off + cur->at;
    len = k->text.len - cur->at;

    if (len > LLM_API_SLICE) {
        len = LLM_API_SLICE;

        while (len > 1 && (s[len] & 0xc0) == 0x80) {
            len--;
        }

        (void) llm_json_add_text(out, s, len);
        cur->at += (uint32_t) len;

        return LLM_MORE;
    }

    (void) llm_json_add_text(out, s, len);
    (void) llm_buf_adds(out, own->plain ? "\"}" : "\"}}");
    cur->opened = 0;

    return LLM_OK;
}


static int
llm_api_rerank_step(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    const llm_api_ranked_t  *k;
    llm_api_rerank_own_t    *own = a->own;

    if (!own->sorted) {
        llm_api_rerank_scores(a, own);
        qsort(own->ranked, a->n_choices, sizeof(llm_api_ranked_t),
              llm_api_rerank_compare);
        own->sorted = 1;
    }

    k = &own->ranked[cur->choice];

    if (!cur->opened) {
        (void) llm_buf_addf(out, "%s{\"index\":%u,\"%s\":",
                            cur->choice ? "," : "", k->index,
                            own->plain ? "score" : "relevance_score");
        llm_api_add_float(out, k->score);

        if (!own->texts) {
            (void) llm_buf_addc(out, '}');
            return LLM_OK;
        }

        (void) llm_buf_adds(out, own->plain
                                 ? ",\"text\":\""
                                 : ",\"document\":{\"text\":\"");
        cur->opened = 1;
        cur->at = 0;
    }

    return llm_api_rerank_slice(cur, k, own, out);
}


static int
llm_api_rerank_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    const llm_api_rerank_own_t  *own = a->own;

    return llm_api_write_list(a, own->n, llm_api_rerank_step, max, out);
}


static int
llm_api_tei_rerank_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int                          rc;
    const llm_api_rerank_own_t  *own = a->own;

    rc = llm_api_write_array(a, own->n, llm_api_rerank_step, max, out);

    return rc == LLM_OK ? llm_buf_addc(out, ']') : rc;
}


static int
llm_api_score_step(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    llm_api_rerank_own_t  *own = a->own;

    if (cur->choice == 0) {
        llm_api_rerank_scores(a, own);
    }

    (void) llm_buf_addf(out, "%s{\"index\":%u,\"object\":\"score\","
                        "\"score\":", cur->choice ? "," : "", cur->choice);
    llm_api_add_float(out, own->ranked[cur->choice].score);
    (void) llm_buf_addc(out, '}');

    return LLM_OK;
}


static int
llm_api_score_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    return llm_api_write_list(a, a->n_choices, llm_api_score_step, max, out);
}


/* a body with both is Jina's */

static const llm_api_other_t  llm_api_rerank_others[] = {
    { "documents", &llm_api_rerank },
    { "texts", &llm_api_tei_rerank },
    { NULL, NULL }
};

const llm_api_endpoint_t  llm_api_rerank = {
    .task = LLM_TASK_SCORE,
    .fields = &llm_api_rerank_fields,
    .shared = &llm_api_client_fields,
    .read = llm_api_rerank_read,
    .body = llm_api_rerank_body,
    .others = llm_api_rerank_others
};

const llm_api_endpoint_t  llm_api_tei_rerank = {
    .task = LLM_TASK_SCORE,
    .fields = &llm_api_tei_rerank_fields,
    .shared = &llm_api_client_fields,
    .names = llm_api_tei_rerank_names,
    .read = llm_api_tei_rerank_read,
    .body = llm_api_tei_rerank_body,
    .error = llm_api_tei_error
};

const llm_api_endpoint_t  llm_api_score = {
    .task = LLM_TASK_SCORE,
    .fields = &llm_api_score_fields,
    .shared = &llm_api_client_fields,
    .read = llm_api_score_read,
    .body = llm_api_score_body
};
