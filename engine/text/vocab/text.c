/*
 * From text to ids: finds the added tokens (control and user-defined ones), at
 * the leftmost position the longest one, and has the text between them
 * tokenised.
 *
 * Added tokens are sorted; while the text is read, the range of those that
 * still agree with it narrows.
 */

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/text/vocab/pretok.h"


/* most bytes that merging one piece may take */
#define LLM_NODES_MAX  ((size_t) 8 << 30)


/* which added tokens a call may match */

typedef struct {
    int                 flags;
    const llm_span_t   *span;           /* the next trusted span */
    const llm_span_t   *last;
} llm_added_scan_t;


static int
llm_added_is(const llm_vocab_t *v, uint32_t id)
{
    return v->map.str[id].len > 0
           && (v->type[id] == LLM_TOKEN_CONTROL
               || v->type[id] == LLM_TOKEN_UNKNOWN
               || v->type[id] == LLM_TOKEN_USER_DEFINED);
}


/* by text; among equal texts the first token comes first */

static int
llm_added_cmp(const void *one, const void *two)
{
    int                 rc;
    const llm_added_t  *a = one, *b = two;

    rc = memcmp(a->text.data, b->text.data,
                llm_min(a->text.len, b->text.len));
    if (rc) {
        return rc;
    }

    if (a->text.len != b->text.len) {
        return a->text.len < b->text.len ? -1 : 1;
    }

    return a->id < b->id ? -1 : 1;
}


/*
 * Some models add words of a language, runs of spaces, or letters that their
 * merges lack.  An added token that consists of letters and white space, or of
 * one character, cannot be mistaken for a special one.
 */

static int
llm_added_is_harmless(llm_str_t s)
{
    size_t    i, len;
    uint32_t  cp;

    for (i = 0; i < s.len; i += len) {

        len = llm_utf8_decode(s.data + i, s.len - i, &cp);

        if (len == 0) {
            return 0;
        }

        if (len < s.len && cp != LLM_SPACE_MARK_CP
            && !llm_unicode_is_word(cp) && !llm_unicode_is_space(cp))
        {
            return 0;
        }
    }

    return 1;
}


int
llm_added_load(llm_vocab_t *v, llm_err_t *err)
{
    int        c;
    uint32_t   i, n;
    llm_str_t  s;

    for (i = 0, n = 0; i < v->n; i++) {
        n += llm_added_is(v, i) != 0;
    }

    v->added = calloc(n + 1, sizeof(llm_added_t));
    if (v->added == NULL) {
        return llm_fail(err, "no memory for the added tokens");
    }

    for (i = 0, n = 0; i < v->n; i++) {

        if (!llm_added_is(v, i)) {
            continue;
        }

        s = v->map.str[i];
        v->added[n].text = s;
        v->added[n++].id = (int32_t) i;

        if (v->type[i] == LLM_TOKEN_USER_DEFINED
            && llm_added_is_harmless(s))
        {
            v->flags[i] |= LLM_TOKEN_HARMLESS;
        }
    }

    qsort(v->added, n, sizeof(llm_added_t), llm_added_cmp);

    for (c = 0, i = 0; c < 256; c++) {
        v->first[c] = i;

        while (i < n && (unsigned char) v->added[i].text.data[0] == c) {
            i++;
        }
    }

    v->first[256] = n;

    return LLM_OK;
}


/* the first index in added[low..high) whose byte at depth is at least c */

static uint32_t
llm_added_bound(const llm_vocab_t *v, uint32_t low, uint32_t high,
    size_t depth, int c)
{
    uint32_t  mid;

    while (low < high) {
        mid = low + (high - low) / 2;

        if ((unsigned char) v->added[mid].text.data[depth] < c) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return low;
}


/* may this token be matched in text that extends to end? */

static int
llm_added_allowed(const llm_vocab_t *v, const llm_added_scan_t *scan,
    int32_t id, size_t end, size_t trusted_end)
{
    if (scan->flags & LLM_TOKENIZE_TRUSTED) {
        return end <= trusted_end || (v->flags[id] & LLM_TOKEN_HARMLESS);
    }

    return (scan->flags & LLM_TOKENIZE_SPECIAL)
           || v->type[id] == LLM_TOKEN_USER_DEFINED;
}


/* the longest added token at pos, or -1 */

static int32_t
llm_added_match(const llm_vocab_t *v, llm_added_scan_t *scan,
    const char *text, size_t len, size_t pos)
{
    int        c;
    size_t     depth, trusted_end;
    int32_t    best;
    uint32_t   low, high;

    c = (unsigned char) text[pos];
    low = v->first[c];
    high = v->first[c + 1];

    if (low == high) {
        return -1;
    }

    while (scan->span < scan->last && scan->span->end <= pos) {
        scan->span++;
    }

    trusted_end = scan->span < scan->last && scan->span->start <= pos
                  ? scan->span->end : 0;
    best = -1;

    for (depth = 1; /* void */; depth++) {

        /* of equal texts the first one counts */

        if (v->added[low].text.len == depth
            && llm_added_allowed(v, scan, v->added[low].id, pos + depth,
                                 trusted_end))
        {
            best = v->added[low].id;
        }

        while (low < high && v->added[low].text.len == depth) {
            low++;
        }

        if (low == high || pos + depth == len) {
            return best;
        }

        c = (unsigned char) text[pos + depth];
        low = llm_added_bound(v, low, high, depth, c);
        high = llm_added_bound(v, low, high, depth, c + 1);

        if (low == high) {
            return best;
        }
    }
}


static int
llm_tok_plain(llm_tok_t *t, const char *p, size_t n)
{
    if (n == 0) {
        return LLM_OK;
    }

    switch (t->vocab->kind) {

    case LLM_VOCAB_BPE:
        return llm_bpe_tokenize(t, p, n);

    case LLM_VOCAB_SPM:
        return llm_spm_tokenize(t, p, n);

    case LLM_VOCAB_UNIGRAM:
        return llm_unigram_tokenize(t, p, n);

    default:
        return llm_wordpiece_tokenize(t, p, n);
    }
}


static int
llm_tok_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}


static int
llm_tok_text(llm_tok_t *t, llm_added_scan_t *scan, const char *text,
    size_t len)
{
    size_t               pos, done, end;
    int32_t              id;
    const llm_vocab_t   *v;

    v = t->vocab;
    done = 0;
    pos = 0;

    while (pos < len) {

        id = llm_added_match(v, scan, text, len, pos);
        if (id == -1) {
            pos++;
            continue;
        }

        end = pos;

        if (v->flags[id] & LLM_TOKEN_LSTRIP) {
            while (end > done && llm_tok_is_space(text[end - 1])) {
                end--;
            }
        }

        if (llm_tok_plain(t, text + done, end - done) != LLM_OK
            || llm_tok_push(t, id) != LLM_OK)
        {
            return LLM_ERROR;
        }

        pos += v->map.str[id].len;

        if (v->flags[id] & LLM_TOKEN_RSTRIP) {
            while (pos < len && llm_tok_is_space(text[pos])) {
                pos++;
            }
        }

        done = pos;
    }

    return llm_tok_plain(t, text + done, len - done);
}


int
llm_vocab_tokenize(const llm_vocab_t *v, const char *text, size_t len,
    const llm_span_t *trusted, size_t n_trusted, int flags, size_t max_ids,
    llm_ids_t *out, llm_err_t *err)
{
    int               rc;
    size_t            before;
    llm_tok_t         t;
    llm_added_scan_t  scan;

    if (len > LLM_TEXT_MAX) {
        return llm_fail_with(err, 400, NULL, NULL, "a text of %zu bytes is "
                             "too long, %zu are the most", len, LLM_TEXT_MAX);
    }

    before = out->len;

    memset(&t, 0, sizeof(t));
    t.vocab = v;
    t.out = out;
    t.max_ids = max_ids && max_ids < SIZE_MAX - before ? before + max_ids
                                                       : SIZE_MAX;
    t.err = err;

    llm_buf_init(&t.text, 0);
    llm_buf_init(&t.nodes, LLM_NODES_MAX);
    llm_buf_init(&t.heap, LLM_NODES_MAX);

    scan.flags = flags;
    scan.span = trusted;
    scan.last = n_trusted && flags & LLM_TOKENIZE_TRUSTED
                ? trusted + n_trusted : trusted;

    rc = LLM_OK;

    if ((flags & LLM_TOKENIZE_ADD) && v->add_bos && v->bos != -1) {
        rc = llm_tok_push(&t, v->bos);
    }

    if (rc == LLM_OK) {
        rc = llm_tok_text(&t, &scan, text, len);
    }

    if (rc == LLM_OK && (flags & LLM_TOKENIZE_ADD) && v->add_eos
        && v->eos != -1)
    {
        rc = llm_tok_push(&t, v->eos);
    }

    llm_buf_free(&t.text);
    llm_buf_free(&t.nodes);
    llm_buf_free(&t.heap);
    llm_pretok_done(&t);

    if (rc != LLM_OK) {
        out->len = before;
    }

    return rc;
}
