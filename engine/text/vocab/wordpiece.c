/*
 * WordPiece (Devlin et al. 2018): the text is cleaned, cut at white space,
 * punctuation and ideographs.  From its beginning each word is covered with
 * the longest tokens possible; if that fails, the whole word is unknown.
 *
 * Accents are stripped as in llama.cpp, for which GGUF files are made: a
 * character becomes what its canonical decomposition begins with, and every
 * mark is left out.  For Latin, Greek and Cyrillic that is BERT's own rule; of
 * Hangul only the first consonant is left.
 *
 * In a GGUF file a token that begins a word has U+2581 before it, and a token
 * that continues a word has nothing.  If a file writes "##" before the latter,
 * as BERT's own files do, load.c converts it to this form.
 */

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/text/vocab/internal.h"


/* a longer word is unknown, whatever it consists of: BERT's own rule, which
   files do not mention */
#define LLM_WORDPIECE_WORD  100


static int
llm_wordpiece_unknown(llm_tok_t *t)
{
    if (t->vocab->unk == -1) {
        return llm_fail_with(t->err, 400, NULL, NULL, "the model has no token "
                             "for unknown words");
    }

    return llm_tok_push(t, t->vocab->unk);
}


/* does the word in t->text, after its mark, have too many characters? */

static int
llm_wordpiece_is_long(const llm_tok_t *t)
{
    size_t  i, n;

    for (i = LLM_SPACE_MARK_LEN, n = 0; i < t->text.len; i++) {
        n += ((unsigned char) t->text.data[i] & 0xc0) != 0x80;
    }

    return n > LLM_WORDPIECE_WORD;
}


/* covers the word in t->text, which begins with U+2581, with tokens, and
   empties t->text */

static int
llm_wordpiece_word(llm_tok_t *t)
{
    size_t               pos, len, before;
    uint32_t             id;
    const char          *p;
    const llm_vocab_t   *v;

    v = t->vocab;
    p = t->text.data;
    before = t->out->len;
    pos = 0;

    if (t->text.len <= LLM_SPACE_MARK_LEN) {
        return LLM_OK;
    }

    if (llm_wordpiece_is_long(t)) {
        t->text.len = LLM_SPACE_MARK_LEN;
        return llm_wordpiece_unknown(t);
    }

    while (pos < t->text.len) {
        len = llm_min(t->text.len - pos, v->max_len);

        for ( /* void */ ; len; len--) {
            id = llm_strmap_find(&v->map, p + pos, len);

            if (id != LLM_STRMAP_NONE && llm_vocab_is_plain(v, id)) {
                break;
            }
        }

        if (len == 0) {
            t->out->len = before;

            if (llm_wordpiece_unknown(t) != LLM_OK) {
                return LLM_ERROR;
            }

            break;
        }

        if (llm_tok_push(t, (int32_t) id) != LLM_OK) {
            return LLM_ERROR;
        }

        pos += len;
    }

    t->text.len = LLM_SPACE_MARK_LEN;

    return LLM_OK;
}


static int
llm_wordpiece_add(llm_tok_t *t, uint32_t cp)
{
    char  c[LLM_UTF8_MAX];

    return llm_buf_add(&t->text, c, llm_utf8_encode(c, cp)) == LLM_OK
           ? LLM_OK : llm_tok_no_memory(t);
}


/* adds a character: to the word that is being gathered, or as a word of its
   own */

static int
llm_wordpiece_char(llm_tok_t *t, uint32_t cp)
{
    if (llm_unicode_is_punct(cp) || llm_unicode_is_han(cp)
        || (cp > 0x20 && cp < 0x7f && strchr("$+<=>^`|~", (int) cp)))
    {
        if (llm_wordpiece_word(t) != LLM_OK
            || llm_wordpiece_add(t, cp) != LLM_OK)
        {
            return LLM_ERROR;
        }

        return llm_wordpiece_word(t);
    }

    return llm_wordpiece_add(t, t->vocab->lowercase ? llm_unicode_lower(cp)
                                                    : cp);
}


int
llm_wordpiece_tokenize(llm_tok_t *t, const char *p, size_t n)
{
    int       rc;
    size_t    i, len;
    uint32_t  cp;

    t->text.len = 0;

    if (llm_buf_add(&t->text, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN) != LLM_OK) {
        return llm_tok_no_memory(t);
    }

    for (i = 0; i < n; i += len) {
        len = llm_utf8_decode(p + i, n - i, &cp);

        if (len == 0) {
            len = 1;
            cp = 0xfffd;
        }

        if (t->vocab->strip_accents) {
            cp = llm_unicode_base(cp);
        }

        if (llm_unicode_is_space(cp)) {
            rc = llm_wordpiece_word(t);

        } else if (cp == 0xfffd || llm_unicode_is_control(cp)
                   || (t->vocab->strip_accents && llm_unicode_is_mark(cp)))
        {
            rc = LLM_OK;

        } else {
            rc = llm_wordpiece_char(t, cp);
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_wordpiece_word(t);
}
