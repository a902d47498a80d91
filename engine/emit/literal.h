/*
 * Values as models write them: JSON, and what slips in from Python (single
 * quotes, True, False, None, raw line ends in strings).  What comes out is
 * JSON; text that is JSON already comes out as it is, byte by byte, but for
 * escapes of what no text may contain.
 *
 * A reader owns nothing; the depth is bounded.
 */

#ifndef LLM_LITERAL_H
#define LLM_LITERAL_H

#include "engine/base/base.h"

#define LLM_LIT_DEPTH  64

typedef struct {
    const char  *p;                     /* where it is */
    const char  *end;
    llm_str_t    quote;                 /* what strings stand in, keys in
                                           nothing; "": as in JSON */
    llm_buf_t   *out;                   /* NULL: the value is only checked */
    unsigned     depth;
} llm_lit_t;

void llm_lit_init(llm_lit_t *r, llm_str_t text, llm_str_t quote,
    llm_buf_t *out);

/* one value, the white space around it too: LLM_OK, or LLM_ERROR when it is
   none (or, with out->failed, for want of memory) */
int llm_lit_value(llm_lit_t *r);
/* a member of an object whose brace has been read: the key without quotes,
   as it is written, and the value; LLM_END at the closing brace */
int llm_lit_member(llm_lit_t *r, llm_str_t *key, llm_str_t *value);
/* an item of an array whose bracket has been read */
int llm_lit_item(llm_lit_t *r, llm_str_t *value);

void llm_lit_space(llm_lit_t *r);

/* what a JSON string without its quotes says, appended to out; U+0000 and half
   of a surrogate pair, which no text may contain, are U+FFFD, as in all that
   is written here */
int llm_lit_unescape(llm_str_t s, llm_buf_t *out);
/* one byte of a JSON string, escaped if it must be */
void llm_lit_char(llm_buf_t *out, char c);
/* text as a JSON string, with quotes */
int llm_lit_quote(llm_str_t s, llm_buf_t *out);
/* JSON text as it stands, but for such escapes; returns how many of its bytes
   were taken: an escape whose end may still come waits, unless this is the
   last of the text */
size_t llm_lit_pass(llm_str_t s, int last, llm_buf_t *out);


/*
 * Finds where a value in brackets ends, while its text still comes.  pos is
 * the first byte that was not looked at.
 */
typedef struct {
    uint32_t     depth;
    char         inside;                /* the quote of the string that it is
                                           in; 1: quote.data */
    size_t       pos;
    llm_str_t    quote;
} llm_lit_scan_t;

/* text is the same as before, or longer: LLM_OK: the value ends before
   s->pos; LLM_MORE: not yet; LLM_ERROR: this is no value */
int llm_lit_scan(llm_lit_scan_t *s, llm_str_t text);

#endif /* LLM_LITERAL_H */
