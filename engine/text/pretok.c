/*
 * Runs a pre-tokenizer; see pretok.h.
 *
 * A step keeps a list of the pieces' ends and writes the next one; a regular
 * expression sees one piece at a time, so that its look-arounds end where
 * the piece does.  Compiled code is shared by all threads, the match data
 * belong to one call.
 */

#define PCRE2_CODE_UNIT_WIDTH  8

#include "engine/text/pretok.h"
#include "engine/text/utf8.h"

#include <pcre2.h>

#define LLM_MATCH_LIMIT  100000000


struct llm_pretok_s {
    const llm_pretok_row_t  *row;
    size_t                   n;
    pcre2_code              *code[LLM_PRETOK_STEPS];
    int                      jit[LLM_PRETOK_STEPS];
};


typedef struct {
    pcre2_match_data        *data;
    pcre2_match_context     *context;
} llm_pretok_match_t;


static int
llm_pretok_compile(llm_pretok_t *pt, size_t i, llm_err_t *err)
{
    int           rc;
    size_t        size, offset;
    PCRE2_UCHAR   text[128];
    const char   *regex;

    regex = pt->row->steps[i].regex;

    pt->code[i] = pcre2_compile((PCRE2_SPTR) regex, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF|PCRE2_UCP|PCRE2_NO_UTF_CHECK, &rc,
                                &offset, NULL);

    if (pt->code[i] == NULL) {
        pcre2_get_error_message(rc, text, sizeof(text));
        return llm_fail(err, "the pre-tokenizer of \"%s\": %s at %zu",
                        pt->row->names, (char *) text, offset);
    }

    /* where the system forbids it, the interpreter does the same */

    (void) pcre2_jit_compile(pt->code[i], PCRE2_JIT_COMPLETE);

    pt->jit[i] = pcre2_pattern_info(pt->code[i], PCRE2_INFO_JITSIZE, &size)
                 == 0 && size > 0;

    return LLM_OK;
}


llm_pretok_t *
llm_pretok_create(const llm_pretok_row_t *row, llm_err_t *err)
{
    llm_pretok_t  *pt;

    pt = calloc(1, sizeof(llm_pretok_t));
    if (pt == NULL) {
        (void) llm_fail(err, "no memory for a pre-tokenizer");
        return NULL;
    }

    pt->row = row;

    for (pt->n = 0; row->steps[pt->n].regex; pt->n++) {
        if (llm_pretok_compile(pt, pt->n, err) != LLM_OK) {
            llm_pretok_free(pt);
            return NULL;
        }
    }

    return pt;
}


void
llm_pretok_free(llm_pretok_t *pt)
{
    size_t  i;

    if (pt == NULL) {
        return;
    }

    for (i = 0; i < LLM_PRETOK_STEPS; i++) {
        pcre2_code_free(pt->code[i]);
    }

    free(pt);
}


static llm_pretok_match_t *
llm_pretok_match(llm_tok_t *t)
{
    llm_pretok_match_t  *m;

    if (t->match) {
        return t->match;
    }

    m = calloc(1, sizeof(llm_pretok_match_t));
    if (m == NULL) {
        return NULL;
    }

    t->match = m;
    m->data = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);

    if (m->data == NULL || m->context == NULL) {
        return NULL;
    }

    (void) pcre2_set_match_limit(m->context, LLM_MATCH_LIMIT);

    return m;
}


void
llm_pretok_done(llm_tok_t *t)
{
    llm_pretok_match_t  *m;

    m = t->match;
    if (m == NULL) {
        return;
    }

    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    free(m);
    t->match = NULL;
}


/*
 * The next match within p[0..n) from start on: 1 and its place, 0 when there
 * is none, LLM_ERROR
 */

static int
llm_pretok_next(llm_tok_t *t, size_t step, const char *p, size_t n,
    size_t start, size_t *from, size_t *to)
{
    int                   rc;
    PCRE2_UCHAR           text[128];
    PCRE2_SIZE           *ov;
    const llm_pretok_t   *pt;
    llm_pretok_match_t   *m;

    m = t->match;
    pt = t->vocab->pretok;

    if (pt->jit[step]) {
        rc = pcre2_jit_match(pt->code[step], (PCRE2_SPTR) p, n, start, 0,
                             m->data, m->context);

    } else {
        rc = PCRE2_ERROR_JIT_STACKLIMIT;
    }

    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(pt->code[step], (PCRE2_SPTR) p, n, start,
                         PCRE2_NO_UTF_CHECK|PCRE2_NO_JIT, m->data,
                         m->context);
    }

    if (rc == PCRE2_ERROR_NOMATCH) {
        return 0;
    }

    if (rc < 0) {
        pcre2_get_error_message(rc, text, sizeof(text));
        return llm_fail(t->err, "the pre-tokenizer of \"%s\": %s",
                        pt->row->names, (char *) text);
    }

    ov = pcre2_get_ovector_pointer(m->data);
    *from = ov[0];
    *to = ov[1];

    return 1;
}


static int
llm_pretok_end(llm_tok_t *t, size_t end)
{
    uint32_t  e;

    e = (uint32_t) end;

    return llm_buf_add(&t->spare, &e, sizeof(e)) == LLM_OK
           ? LLM_OK : llm_tok_no_memory(t);
}


/* the ends of p[from..to) in threes of characters, counted from its end */

static int
llm_pretok_thirds(llm_tok_t *t, const char *p, size_t from, size_t to,
    size_t base)
{
    size_t  i, left;

    left = 0;

    for (i = from; i < to; i++) {
        left += ((unsigned char) p[i] & 0xc0) != 0x80;
    }

    for (i = from; i < to; left--) {

        if (i > from && left % 3 == 0
            && llm_pretok_end(t, base + i) != LLM_OK)
        {
            return LLM_ERROR;
        }

        i += llm_utf8_decode(p + i, to - i, NULL);
    }

    return llm_pretok_end(t, base + to);
}


/* one step over one piece, which lies at base of the text */

static int
llm_pretok_piece(llm_tok_t *t, size_t step, const char *p, size_t n,
    size_t base)
{
    int     rc, thirds;
    size_t  pos, done, from, to;

    thirds = t->vocab->pretok->row->steps[step].thirds;
    done = 0;
    pos = 0;
    from = 0;
    to = 0;

    while (pos < n) {
        rc = llm_pretok_next(t, step, p, n, pos, &from, &to);

        if (rc <= 0) {
            if (rc < 0) {
                return LLM_ERROR;
            }

            break;
        }

        if (from > done && llm_pretok_end(t, base + from) != LLM_OK) {
            return LLM_ERROR;
        }

        rc = thirds ? llm_pretok_thirds(t, p, from, to, base)
                    : llm_pretok_end(t, base + to);
        if (rc != LLM_OK) {
            return LLM_ERROR;
        }

        pos = done = to;
    }

    return done < n ? llm_pretok_end(t, base + n) : LLM_OK;
}


/* all steps over well-formed text at base; the ends are left in t->spare */

static int
llm_pretok_run(llm_tok_t *t, const char *p, size_t n, size_t base,
    llm_buf_t *list)
{
    size_t      i, k, begin, kept;
    uint32_t    end;
    llm_buf_t   old;

    /* what t->spare holds already belongs to text before base */

    kept = t->spare.len;

    if (llm_pretok_end(t, base + n) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < t->vocab->pretok->n; i++) {

        list->len = 0;

        if (llm_buf_add(list, t->spare.data + kept, t->spare.len - kept)
            != LLM_OK)
        {
            return llm_tok_no_memory(t);
        }

        old = *list;
        t->spare.len = kept;
        begin = base;

        for (k = 0; k < old.len; k += sizeof(end)) {
            memcpy(&end, old.data + k, sizeof(end));

            if (llm_pretok_piece(t, i, p + (begin - base), end - begin,
                                 begin)
                != LLM_OK)
            {
                return LLM_ERROR;
            }

            begin = end;
        }
    }

    return LLM_OK;
}


int
llm_pretok_split(llm_tok_t *t, const char *p, size_t n)
{
    size_t      pos, len;
    llm_buf_t   swap;

    if (llm_pretok_match(t) == NULL) {
        return llm_tok_no_memory(t);
    }

    t->spare.len = 0;
    pos = 0;

    while (pos < n) {
        len = llm_utf8_valid(p + pos, n - pos);

        if (len && llm_pretok_run(t, p + pos, len, pos, &t->pieces)
                   != LLM_OK)
        {
            return LLM_ERROR;
        }

        pos += len;

        /* a byte that is no UTF-8 */

        if (pos < n && llm_pretok_end(t, ++pos) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    swap = t->pieces;
    t->pieces = t->spare;
    t->spare = swap;

    return LLM_OK;
}
