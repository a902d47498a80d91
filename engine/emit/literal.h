/*
 * Values as models write them: JSON, and what slips in from Python (single
 * quotes, True, False, None, raw line ends in strings).  The output is JSON.
 * Text that is JSON already is copied byte by byte, except for escapes of what
 * no text may contain.
 *
 * A reader owns nothing; the depth is bounded.
 */

#ifndef LLM_LITERAL_H
#define LLM_LITERAL_H

#include "engine/base/base.h"

#define LLM_LIT_DEPTH  64

typedef struct {
    const char  *p;                     /* read position */
    const char  *end;
    llm_str_t    quote;                 /* quotes of strings, and keys have
                                           none; "": as in JSON */
    llm_buf_t   *out;                   /* NULL: the value is only checked */
    unsigned     depth;
} llm_lit_t;

void llm_lit_init(llm_lit_t *r, llm_str_t text, llm_str_t quote,
    llm_buf_t *out);

/* reads one value and the white space around it: LLM_OK; LLM_ERROR: it is no
   value, or, with out->failed, there is no memory */
int llm_lit_value(llm_lit_t *r);
/* reads a member of an object whose brace has been read: the key without
   quotes, escapes unchanged, and the value; LLM_END at the closing brace */
int llm_lit_member(llm_lit_t *r, llm_str_t *key, llm_str_t *value);
/* the same for an item of an array whose bracket has been read */
int llm_lit_item(llm_lit_t *r, llm_str_t *value);

void llm_lit_space(llm_lit_t *r);

/* appends the text of a JSON string (s without its quotes) to out; U+0000 and
   half of a surrogate pair, which no text may contain, become U+FFFD, as in
   all output of this file */
int llm_lit_unescape(llm_str_t s, llm_buf_t *out);
/* appends one byte to a JSON string, escaped if necessary */
void llm_lit_char(llm_buf_t *out, char c);
/* appends text as a JSON string, with quotes */
int llm_lit_quote(llm_str_t s, llm_buf_t *out);
/* appends JSON text, with those escapes replaced; returns the number of bytes
   taken: an incomplete escape at the end is left, unless this is the last of
   the text */
size_t llm_lit_pass(llm_str_t s, int last, llm_buf_t *out);


/*
 * Finds the end of a value in brackets, while its text still comes.  pos is
 * the first byte that has not been looked at.
 */
typedef struct {
    uint32_t     depth;
    char         inside;                /* quote of the string that pos is in,
                                           or 0; 1: quote.data */
    size_t       pos;
    llm_str_t    quote;
} llm_lit_scan_t;

/* text is the same as before, or longer.  LLM_OK: the value ends before
   s->pos; LLM_MORE: not yet; LLM_ERROR: it is no value */
int llm_lit_scan(llm_lit_scan_t *s, llm_str_t text);

#endif /* LLM_LITERAL_H */
