/*
 * Headers of messages in the harmony format; see harmony.c.
 */

#include "engine/emit/harmony.h"

/* a longer text is no header */
#define LLM_HARMONY_HEADER  512
/* the same for a header without a mark before it */
#define LLM_HARMONY_WORDS   96

const llm_str_t  llm_harmony_marks[] = {
    { 9, "<|start|>" }, { 11, "<|channel|>" }, { 13, "<|constrain|>" },
    { 11, "<|message|>" }, { 7, "<|end|>" }, { 8, "<|call|>" },
    { 10, "<|return|>" }
};


llm_harmony_mark_t
llm_harmony_mark(const char *p, size_t n)
{
    size_t     i;
    llm_str_t  s;

    for (i = 0; i < LLM_HARMONY_NONE; i++) {
        s = llm_harmony_marks[i];

        if (n && memcmp(p, s.data, llm_min(n, s.len)) == 0) {
            return n >= s.len ? (llm_harmony_mark_t) i : LLM_HARMONY_PART;
        }
    }

    return LLM_HARMONY_NONE;
}


int
llm_harmony_channel(llm_str_t s)
{
    if (memmem(s.data, s.len, "analysis", 8)) {
        return 2;
    }

    return memmem(s.data, s.len, "commentary", 10)
           || memmem(s.data, s.len, "final", 5);
}


static int
llm_harmony_is_role(llm_str_t word)
{
    return llm_str_is(word, "assistant") || llm_str_is(word, "user")
           || llm_str_is(word, "system") || llm_str_is(word, "developer")
           || llm_str_is(word, "tool")
           || (word.len > 10 && memcmp(word.data, "functions.", 10) == 0);
}


/* reads a word of a header */

static void
llm_harmony_word(llm_harmony_header_t *h, llm_str_t word, int is_role)
{
    int          channel;
    const char  *to;

    /* a message of another role is not for the user */

    if (is_role && llm_harmony_is_role(word)) {
        h->analysis |= !llm_str_is(word, "assistant");
        return;
    }

    to = memmem(word.data, word.len, "to=", 3);

    if (to && h->to.len == 0) {
        h->to.data = to + 3;
        h->to.len = word.len - (size_t) (to + 3 - word.data);
        word.len = (size_t) (to - word.data);

    } else if (word.len > 10 && h->to.len == 0
               && memcmp(word.data, "functions.", 10) == 0)
    {
        h->to = word;
        return;
    }

    channel = llm_harmony_channel(word);
    h->channel |= channel != 0;
    h->analysis |= channel == 2;
}


static void
llm_harmony_words(llm_harmony_header_t *h, const char *p, size_t n,
    int is_role)
{
    size_t     i;
    llm_str_t  word;

    for (i = 0; i < n; is_role = 0) {
        for ( /* void */ ; i < n && llm_mark_is_space(p[i]); i++) {
            /* void */
        }

        word.data = p + i;

        for ( /* void */ ; i < n && !llm_mark_is_space(p[i]); i++) {
            /* void */
        }

        word.len = (size_t) (p + i - word.data);
        llm_harmony_word(h, word, is_role);
    }
}


int
llm_harmony_read(llm_str_t s, llm_harmony_header_t *h)
{
    int                 role;
    size_t              i, n, most;
    const char         *p;
    llm_harmony_mark_t  mark;

    role = 0;
    memset(h, 0, sizeof(*h));
    most = s.len && s.data[0] == '<' ? LLM_HARMONY_HEADER : LLM_HARMONY_WORDS;

    for (i = 0; i < s.len && i < most; i += n) {
        p = memchr(s.data + i, '<', s.len - i);
        n = p ? (size_t) (p - s.data) - i : s.len - i;

        if (n) {
            llm_harmony_words(h, s.data + i, llm_min(n, most), role);
            role = 0;
            h->len = i + n;
            continue;
        }

        mark = llm_harmony_mark(p, s.len - i);

        if (mark == LLM_HARMONY_PART) {
            return LLM_MORE;
        }

        if (mark > LLM_HARMONY_MESSAGE
            || (mark == LLM_HARMONY_START && i > 0))
        {
            return LLM_ERROR;
        }

        n = llm_harmony_marks[mark].len;
        role = mark == LLM_HARMONY_START;
        most = LLM_HARMONY_HEADER;
        h->len = i + n;

        if (mark == LLM_HARMONY_MESSAGE) {
            return LLM_OK;
        }
    }

    return i < most ? LLM_MORE : LLM_ERROR;
}


int
llm_harmony_begins(llm_str_t s)
{
    size_t  i, n;

    static const char *const  words[] = {
        "assistant", "to=", "analysis", "commentary", "final"
    };

    while (s.len && llm_mark_is_space(s.data[0])) {
        s.data++;
        s.len--;
    }

    for (i = 0; i < llm_nelems(words); i++) {
        n = strlen(words[i]);

        if (memcmp(s.data, words[i], llm_min(n, s.len)) == 0) {
            return s.len >= n ? memchr(s.data, '\n', llm_min(s.len, 64u))
                                == NULL
                              : -1;
        }
    }

    return 0;
}


int
llm_harmony_plain_header(llm_str_t s)
{
    size_t              i, k, n;
    llm_str_t           word;
    llm_harmony_mark_t  mark;

    static const char *const  words[] = {
        "assistant", "analysis", "commentary", "final", "json", "code"
    };

    for (i = 0; i < s.len; i += n) {
        mark = llm_harmony_mark(s.data + i, s.len - i);

        if (mark != LLM_HARMONY_NONE) {
            n = mark == LLM_HARMONY_PART ? s.len - i
                                         : llm_harmony_marks[mark].len;
            continue;
        }

        if (llm_mark_is_space(s.data[i])) {
            n = 1;
            continue;
        }

        word.data = s.data + i;

        for (n = 0; i + n < s.len && !llm_mark_is_space(word.data[n])
             && word.data[n] != '<'; n++)
        {
            /* void */
        }

        word.len = n;

        if (n == 0 || memcmp(word.data, "to=", llm_min(n, (size_t) 3)) == 0) {
            n += n == 0;
            continue;
        }

        for (k = 0; k < llm_nelems(words); k++) {
            if (llm_str_is(word, words[k])
                || (i + n == s.len && strncmp(words[k], word.data, n) == 0))
            {
                break;
            }
        }

        if (k == llm_nelems(words)) {
            return 0;
        }
    }

    return 1;
}
