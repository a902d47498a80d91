/*
 * Byte-level BPE (Sennrich et al. 2016, Radford et al. 2019): a pre-tokenizer
 * cuts the text into pieces.  Inside each piece pairs of neighbours are
 * merged, in the order in which the pairs were learnt.
 *
 * Symbols are numbers in v->map.  Files write bytes in GPT-2's alphabet of 256
 * printable characters; merges are read in that spelling, and one table leads
 * from a byte of text to its symbol.
 */

#include "engine/text/vocab/bpe_merge.h"
#include "engine/text/vocab/pretok.h"
#include "engine/base/alphabet.h"
#include "engine/base/utf8.h"

#define LLM_BPE_BLOCK  64


/* merges that are being loaded: left, right, joined */

typedef struct {
    llm_str_t         part[3];
    uint32_t          hash[3];
    uint32_t          sym[3];
} llm_bpe_pending_t;


typedef struct {
    llm_vocab_t        *vocab;
    const char         *file;
    llm_err_t          *err;
    llm_buf_t           joined;         /* joined texts of one block */
    uint32_t            rank;           /* rank of the block's first merge */
    llm_bpe_pending_t   pending[LLM_BPE_BLOCK];
} llm_bpe_load_t;


static uint64_t
llm_bpe_hash(const llm_vocab_t *v, uint32_t left, uint32_t right)
{
    return llm_hash_mix(((uint64_t) left << 32 | right) ^ v->seed,
                        0x9e3779b97f4a7c15u);
}


static llm_bpe_merge_t *
llm_bpe_slot(const llm_vocab_t *v, uint32_t left, uint32_t right)
{
    uint64_t          k, key;
    llm_bpe_merge_t  *m;

    key = (uint64_t) left << 32 | right;
    k = llm_bpe_hash(v, left, right);

    for ( ;; ) {
        k &= v->merge_mask;
        m = &v->merges[k];

        if (m->key == key || m->rank == LLM_NO_RANK) {
            return m;
        }

        k++;
    }
}


/* the number of a string; adds it if only merges produce it */

static uint32_t
llm_bpe_intern(llm_vocab_t *v, llm_str_t s, uint32_t hash)
{
    uint32_t   id;

    id = llm_strmap_find_hash(&v->map, s.data, s.len, hash);
    if (id != LLM_STRMAP_NONE) {
        return id;
    }

    s.data = llm_arena_dup(&v->arena, s.data, s.len);

    return s.data ? llm_strmap_add(&v->map, s) : LLM_STRMAP_NONE;
}


/* reads "left right"; the first character of left may itself be a space */

static int
llm_bpe_parse(llm_bpe_load_t *l, llm_str_t s, uint32_t i)
{
    char               *joined;
    llm_str_t          *part;
    const char         *space;

    space = s.len > 2 ? memchr(s.data + 1, ' ', s.len - 2) : NULL;

    if (space == NULL) {
        return llm_fail(l->err, "%s: tokenizer.ggml.merges: merge %u is no "
                        "pair", l->file, l->rank + i);
    }

    part = l->pending[i].part;

    part[0].data = s.data;
    part[0].len = (size_t) (space - s.data);
    part[1].data = space + 1;
    part[1].len = s.len - part[0].len - 1;

    /* the buffer was made large enough for the block, so it does not move */

    joined = l->joined.data + l->joined.len;
    memcpy(joined, part[0].data, part[0].len);
    memcpy(joined + part[0].len, part[1].data, part[1].len);
    l->joined.len += s.len - 1;

    part[2].data = joined;
    part[2].len = s.len - 1;

    return LLM_OK;
}


/* gives the n parsed merges of a block their symbols, then enters them into
   the table */

static int
llm_bpe_insert(llm_bpe_load_t *l, uint32_t n)
{
    int                 step;
    uint32_t            i, k;
    llm_vocab_t        *v;
    llm_bpe_merge_t    *m;
    llm_bpe_pending_t  *p;

    v = l->vocab;

    for (i = 0; i < n; i++) {
        for (k = 0, p = &l->pending[i]; k < 3; k++) {
            p->hash[k] = llm_strmap_hash(&v->map, p->part[k].data,
                                         p->part[k].len);
        }
    }

    for (step = 0; step < 3; step++) {
        for (i = 0; i < n; i++) {
            for (k = 0; k < 3; k++) {
                llm_strmap_prefetch(&v->map, l->pending[i].hash[k], step);
            }
        }
    }

    for (i = 0; i < n; i++) {
        for (k = 0, p = &l->pending[i]; k < 3; k++) {

            p->sym[k] = llm_bpe_intern(v, p->part[k], p->hash[k]);

            if (p->sym[k] == LLM_STRMAP_NONE) {
                return llm_fail(l->err, "%s: no memory for its merges",
                                l->file);
            }
        }

        __builtin_prefetch(&v->merges[llm_bpe_hash(v, p->sym[0], p->sym[1])
                                      & v->merge_mask]);
    }

    for (i = 0; i < n; i++) {
        p = &l->pending[i];
        m = llm_bpe_slot(v, p->sym[0], p->sym[1]);

        /* of equal pairs the first one counts */

        if (m->rank == LLM_NO_RANK) {
            m->key = (uint64_t) p->sym[0] << 32 | p->sym[1];
            m->rank = l->rank + i;
            m->sym = p->sym[2];
        }
    }

    return LLM_OK;
}


/* reads the next n merges of the file, from *p on */

static int
llm_bpe_read_block(llm_bpe_load_t *l, const char **p, uint32_t n)
{
    size_t       size;
    uint32_t     i;
    const char  *q;

    for (i = 0, size = 0, q = *p; i < n; i++) {
        size += llm_gguf_next_str(&q).len;
    }

    l->joined.len = 0;

    if (llm_buf_reserve(&l->joined, size) == NULL) {
        return llm_fail(l->err, "%s: no memory for its merges", l->file);
    }

    for (i = 0; i < n; i++) {
        if (llm_bpe_parse(l, llm_gguf_next_str(p), i) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_bpe_insert(l, n);
}


/* an empty table for n merges */

static int
llm_bpe_table(llm_vocab_t *v, uint64_t n, const char *name, llm_err_t *err)
{
    size_t  size;

    for (size = 16; size < n + n / 2; size *= 2) { /* void */ }

    v->merges = malloc(size * sizeof(llm_bpe_merge_t));
    if (v->merges == NULL) {
        return llm_fail(err, "%s: no memory for its merges", name);
    }

    memset(v->merges, 0xff, size * sizeof(llm_bpe_merge_t));
    v->merge_mask = size - 1;

    return LLM_OK;
}


static int
llm_bpe_load_merges(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int                   rc;
    uint32_t              n;
    const char           *p;
    llm_bpe_load_t        l;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, "tokenizer.ggml.merges");

    if (kv == NULL || kv->type != LLM_GGUF_ARRAY || kv->item != LLM_GGUF_STR
        || kv->count > INT32_MAX)
    {
        return llm_fail(err, "%s: tokenizer.ggml.merges: %s",
                        llm_gguf_name(g), kv ? "not an array of strings"
                                             : "the file has none");
    }

    if (llm_bpe_table(v, kv->count, llm_gguf_name(g), err) != LLM_OK) {
        return LLM_ERROR;
    }

    l.vocab = v;
    l.file = llm_gguf_name(g);
    l.err = err;
    llm_buf_init(&l.joined, 0);

    p = kv->data;
    rc = LLM_OK;

    for (l.rank = 0; l.rank < kv->count && rc == LLM_OK; l.rank += n) {
        n = (uint32_t) llm_min(kv->count - l.rank, (uint64_t) LLM_BPE_BLOCK);
        rc = llm_bpe_read_block(&l, &p, n);
    }

    llm_buf_free(&l.joined);

    return rc;
}


/*
 * Vocabularies without merges, whose ids are ranks (tiktoken): two symbols
 * become the token that their texts together are.  Counts the ways to make this
 * token of two, and enters them once there is a table.
 */

static size_t
llm_bpe_rank_token(llm_vocab_t *v, uint32_t id)
{
    size_t            i, n, len;
    uint32_t          left, right;
    llm_str_t         s;
    llm_bpe_merge_t  *m;

    s = v->map.str[id];
    n = 0;

    for (i = 0; i < s.len; i += len) {

        len = llm_utf8_decode(s.data + i, s.len - i, NULL);
        if (len == 0) {
            return n;
        }

        if (i == 0) {
            continue;
        }

        left = llm_strmap_find(&v->map, s.data, i);
        right = llm_strmap_find(&v->map, s.data + i, s.len - i);

        if (left == LLM_STRMAP_NONE || right == LLM_STRMAP_NONE
            || !llm_vocab_is_plain(v, left) || !llm_vocab_is_plain(v, right))
        {
            continue;
        }

        if (v->merges) {
            m = llm_bpe_slot(v, left, right);
            m->key = (uint64_t) left << 32 | right;
            m->rank = llm_min(m->rank, id);
            m->sym = m->rank;
        }

        n++;
    }

    return n;
}


static int
llm_bpe_load_ranks(llm_vocab_t *v, const char *name, llm_err_t *err)
{
    uint32_t  i;
    uint64_t  n;

    for (i = 0, n = 0; i < v->n; i++) {
        n += llm_vocab_is_plain(v, i) ? llm_bpe_rank_token(v, i) : 0;
    }

    if (llm_bpe_table(v, n, name, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < v->n; i++) {
        if (llm_vocab_is_plain(v, i)) {
            (void) llm_bpe_rank_token(v, i);
        }
    }

    return LLM_OK;
}


static int
llm_bpe_load_bytes(llm_vocab_t *v, const char *name, llm_err_t *err)
{
    int         i;
    char        c[LLM_UTF8_MAX];
    uint32_t    sym;
    llm_str_t   s;

    s.data = c;

    for (i = 0; i < 256; i++) {
        s.len = llm_byte_char(c, (unsigned char) i);

        sym = llm_bpe_intern(v, s, llm_strmap_hash(&v->map, c, s.len));
        if (sym == LLM_STRMAP_NONE) {
            return llm_fail(err, "%s: no memory for its tokens", name);
        }

        v->byte_sym[i] = sym;
        v->byte_id[i] = llm_vocab_is_plain(v, sym) ? (int32_t) sym : -1;
    }

    return LLM_OK;
}


int
llm_bpe_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    if (v->byte_level
        && llm_bpe_load_bytes(v, llm_gguf_name(g), err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_gguf_find(g, "tokenizer.ggml.merges") == NULL
        && llm_gguf_find(g, LLM_GGUF_RANKED))
    {
        return llm_bpe_load_ranks(v, llm_gguf_name(g), err);
    }

    return llm_bpe_load_merges(v, g, err);
}


static uint32_t
llm_bpe_rank(const llm_vocab_t *v, const char *text,
    const llm_merge_node_t *left, const llm_merge_node_t *right,
    uint32_t *result)
{
    const llm_bpe_merge_t  *m;

    (void) text;

    if (left->sym == LLM_NO_SYM || right->sym == LLM_NO_SYM) {
        return LLM_NO_RANK;
    }

    m = llm_bpe_slot(v, left->sym, right->sym);
    *result = m->sym;

    return m->rank;
}


/* the token that the whole piece is, or none */

static uint32_t
llm_bpe_whole(llm_tok_t *t, const char *p, size_t n)
{
    char        *out;
    size_t       i, len;
    uint32_t     id;
    const char  *text;

    text = p;
    len = n;

    if (t->vocab->byte_level) {

        if (n > t->vocab->max_len) {
            return LLM_NO_SYM;
        }

        t->text.len = 0;
        out = llm_buf_reserve(&t->text, 2 * n);
        if (out == NULL) {
            return LLM_NO_SYM;
        }

        for (i = 0, len = 0; i < n; i++) {
            len += llm_byte_char(out + len, (unsigned char) p[i]);
        }

        text = out;
    }

    id = llm_strmap_find(&t->vocab->map, text, len);

    return id != LLM_STRMAP_NONE && llm_vocab_is_plain(t->vocab, id)
           ? id : LLM_NO_SYM;
}


/* makes the nodes: a symbol for each byte, or for each character */

static size_t
llm_bpe_symbols(const llm_vocab_t *v, llm_merge_node_t *nodes, const char *p,
    size_t n)
{
    size_t  i, k, len;

    for (i = 0, k = 0; i < n; i += len, k++) {

        if (v->byte_level) {
            len = 1;
            nodes[k].sym = v->byte_sym[(unsigned char) p[i]];

        } else {
            len = llm_utf8_decode(p + i, n - i, NULL);
            len = len ? len : 1;
            nodes[k].sym = llm_strmap_find(&v->map, p + i, len);
        }

        nodes[k].start = (uint32_t) i;
        nodes[k].end = (uint32_t) (i + len);
    }

    return k;
}


static int
llm_bpe_piece(llm_tok_t *t, const char *p, size_t n)
{
    int                  rc;
    uint32_t             i, id;
    llm_merge_node_t    *nodes;
    const llm_vocab_t   *v;

    v = t->vocab;

    if (v->ignore_merges) {
        id = llm_bpe_whole(t, p, n);

        if (id != LLM_NO_SYM) {
            return llm_tok_push(t, (int32_t) id);
        }
    }

    nodes = llm_merge_nodes(t, n);
    if (nodes == NULL) {
        return llm_tok_no_memory(t);
    }

    if (llm_merge(t, p, llm_bpe_symbols(v, nodes, p, n), llm_bpe_rank)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i != LLM_MERGE_END; i = nodes[i].next) {
        id = nodes[i].sym;

        rc = id != LLM_NO_SYM && llm_vocab_is_plain(v, id)
             ? llm_tok_push(t, (int32_t) id)
             : llm_tok_push_bytes(t, p + nodes[i].start,
                                  nodes[i].end - nodes[i].start);

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_bpe_tokenize(llm_tok_t *t, const char *p, size_t n)
{
    if (t->vocab->escape_space && llm_tok_escape(t, &p, &n) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_tok_fits(t, n) == LLM_OK
           ? llm_pretok_split(t, p, n, llm_bpe_piece) : LLM_ERROR;
}
