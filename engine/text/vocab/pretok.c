/*
 * Runs a pre-tokenizer; see pretok.h.
 *
 * A step passes each piece to the next step before it looks for another, so
 * that a text of which enough was seen costs no more.  A regular expression
 * sees one piece at a time: its look-arounds end at the piece's ends.  All
 * threads share the compiled code; the match data belong to one call.
 */

#define PCRE2_CODE_UNIT_WIDTH  8

#include "engine/text/vocab/pretok.h"
#include "engine/base/utf8.h"

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

    /* if the system forbids JIT, PCRE2's interpreter gives the same results */

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
 * Finds the next match in p[0..n) from start on: 1 and its position; 0 if
 * there is none; LLM_ERROR.
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
    t->n_matches++;

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


static int llm_pretok_walk(llm_tok_t *t, size_t step, const char *p,
    size_t n, llm_piece_pt piece);


/* runs the next step over a match cut into groups of three characters, counted
   from its end */

static int
llm_pretok_thirds(llm_tok_t *t, size_t step, const char *p, size_t n,
    llm_piece_pt piece)
{
    size_t  i, left, begin;

    left = 0;

    for (i = 0; i < n; i++) {
        left += ((unsigned char) p[i] & 0xc0) != 0x80;
    }

    begin = 0;

    for (i = 0; i < n; left--) {

        if (i > begin && left % 3 == 0) {
            if (llm_pretok_walk(t, step, p + begin, i - begin, piece)
                != LLM_OK)
            {
                return LLM_ERROR;
            }

            begin = i;
        }

        i += llm_utf8_decode(p + i, n - i, NULL);
    }

    return llm_pretok_walk(t, step, p + begin, n - begin, piece);
}


/* runs this step and the next ones over well-formed text */

static int
llm_pretok_walk(llm_tok_t *t, size_t step, const char *p, size_t n,
    llm_piece_pt piece)
{
    int                  rc, thirds;
    size_t               done, from, to;
    const llm_pretok_t  *pt;

    pt = t->vocab->pretok;

    if (step == pt->n) {
        return piece(t, p, n);
    }

    thirds = pt->row->steps[step].thirds;
    from = 0;
    to = 0;

    for (done = 0; done < n; done = to) {
        rc = llm_pretok_next(t, step, p, n, done, &from, &to);

        if (rc < 0) {
            return LLM_ERROR;
        }

        if (rc == 0) {
            return llm_pretok_walk(t, step + 1, p + done, n - done, piece);
        }

        if (from > done
            && llm_pretok_walk(t, step + 1, p + done, from - done, piece)
               != LLM_OK)
        {
            return LLM_ERROR;
        }

        rc = thirds
             ? llm_pretok_thirds(t, step + 1, p + from, to - from, piece)
             : llm_pretok_walk(t, step + 1, p + from, to - from, piece);

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_pretok_split(llm_tok_t *t, const char *p, size_t n, llm_piece_pt piece)
{
    size_t  pos, len;

    if (llm_pretok_match(t) == NULL) {
        return llm_tok_no_memory(t);
    }

    for (pos = 0; pos < n; pos += len) {
        len = llm_utf8_valid(p + pos, n - pos);

        if (len == 0) {
            len = 1;                    /* a byte that is not UTF-8 */

            if (piece(t, p + pos, len) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (llm_pretok_walk(t, 0, p + pos, len, piece) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
