/*
 * The vocabulary of a folder of Hugging Face's: of tokenizer.json, which newer
 * folders have alone, or of vocab.json and merges.txt.  The ordinary tokens and
 * their merges are read; Whisper's special tokens follow from the size of the
 * vocabulary.
 */

#include "engine/base/file.h"
#include "engine/file/internal.h"

#include <sys/stat.h>

/* most bytes of a tokenizer, of a token's text, of a merge */
#define LLM_HUB_FILE   ((size_t) 64 << 20)
#define LLM_HUB_TOKEN  1024
#define LLM_HUB_MERGES 1000000

typedef struct {
    llm_str_t     *texts;               /* [n_text] */
    uint32_t       n_text;
    uint32_t       n_seen;
    llm_arena_t    arena;               /* owns the texts */
    llm_buf_t      merges;              /* "a b" NUL ... */
    uint32_t       n_merges;
    llm_err_t     *err;
} llm_hub_t;


/* {text: id} */

static int
llm_hub_tokens(llm_hub_t *h, llm_json_reader_t *r)
{
    int        rc;
    uint64_t   id;
    llm_str_t  s;

    rc = llm_json_enter(r, '{');

    while (rc == LLM_OK && (rc = llm_json_member(r, &s)) == LLM_OK) {

        if (llm_json_uint(r, &id) != LLM_OK) {
            return LLM_ERROR;
        }

        if (id >= h->n_text) {
            continue;                   /* a special token */
        }

        if (h->texts[id].data) {
            return llm_json_wrong(r, "two tokens have the same id");
        }

        h->texts[id].len = s.len;
        h->texts[id].data = llm_arena_dup(&h->arena, s.data, s.len);

        if (h->texts[id].data == NULL) {
            return llm_json_wrong(r, "the vocabulary is too large");
        }

        h->n_seen++;
    }

    return rc == LLM_END ? LLM_OK : LLM_ERROR;
}


static int
llm_hub_merge_add(llm_hub_t *h, llm_str_t s)
{
    if (h->n_merges++ == LLM_HUB_MERGES || memchr(s.data, '\0', s.len)) {
        return LLM_ERROR;
    }

    return llm_buf_add(&h->merges, s.data, s.len) == LLM_OK
           ? llm_buf_addc(&h->merges, '\0') : LLM_ERROR;
}


/* ["a", "b"] */

static int
llm_hub_pair(llm_hub_t *h, llm_json_reader_t *r)
{
    int        i;
    char       text[2 * LLM_HUB_TOKEN + 1];
    llm_str_t  s, all = { 0, text };

    if (llm_json_enter(r, '[') != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < 2; i++) {
        if (llm_json_item(r) != LLM_OK || llm_json_string(r, &s) != LLM_OK) {
            return llm_json_wrong(r, "merges: no pair");
        }

        if (s.len > LLM_HUB_TOKEN) {
            return llm_json_wrong(r, "merges: a token is too long");
        }

        if (i) {
            text[all.len++] = ' ';
        }

        memcpy(text + all.len, s.data, s.len);
        all.len += s.len;
    }

    if (llm_json_item(r) != LLM_END || llm_hub_merge_add(h, all) != LLM_OK) {
        return llm_json_wrong(r, "merges: no pair");
    }

    return LLM_OK;
}


/* ["a b", ...] or [["a", "b"], ...] */

static int
llm_hub_merges(llm_hub_t *h, llm_json_reader_t *r)
{
    int        rc;
    llm_str_t  s;

    rc = llm_json_enter(r, '[');

    while (rc == LLM_OK && (rc = llm_json_item(r)) == LLM_OK) {

        if (llm_json_next(r) == '[') {
            rc = llm_hub_pair(h, r);
            continue;
        }

        rc = llm_json_string(r, &s);

        if (rc == LLM_OK && llm_hub_merge_add(h, s) != LLM_OK) {
            rc = llm_json_wrong(r, "merges: too many, or no texts");
        }
    }

    return rc == LLM_END ? LLM_OK : LLM_ERROR;
}


/* tokenizer.json: {"model": {"vocab": ..., "merges": ...}} */

static int
llm_hub_tokenizer(llm_hub_t *h, llm_json_reader_t *r)
{
    int        rc;
    llm_str_t  key;

    rc = llm_json_enter(r, '{');

    while (rc == LLM_OK && (rc = llm_json_member(r, &key)) == LLM_OK) {

        if (!llm_str_is(key, "model")) {
            rc = llm_json_skip(r);
            continue;
        }

        rc = llm_json_enter(r, '{');

        while (rc == LLM_OK && (rc = llm_json_member(r, &key)) == LLM_OK) {
            rc = llm_str_is(key, "vocab") ? llm_hub_tokens(h, r)
                 : llm_str_is(key, "merges") ? llm_hub_merges(h, r)
                                             : llm_json_skip(r);
        }

        rc = rc == LLM_END ? LLM_OK : rc;
    }

    return rc == LLM_END ? llm_json_done(r) : LLM_ERROR;
}


/* merges.txt: "a b" on each line, after a line "#version" */

static int
llm_hub_merges_txt(llm_hub_t *h, llm_str_t text, const char *name)
{
    llm_str_t    s;
    const char  *p, *end, *stop;

    stop = text.data + text.len;

    for (p = text.data; p < stop; p = end + 1) {
        end = memchr(p, '\n', (size_t) (stop - p));
        end = end ? end : stop;

        s.data = p;
        s.len = (size_t) (end - p);
        s.len -= s.len && p[s.len - 1] == '\r';

        if (s.len == 0 || (p == text.data && s.len > 8
                           && memcmp(p, "#version", 8) == 0))
        {
            continue;
        }

        if (llm_hub_merge_add(h, s) != LLM_OK) {
            return llm_fail(h->err, "%s: too many merges, or no text", name);
        }
    }

    return LLM_OK;
}


/* reads a file and lets read() have it; LLM_ABSENT: it is not there */

static int
llm_hub_file(llm_hub_t *h, const char *path, const char *name,
    int (*read)(llm_hub_t *h, llm_json_reader_t *r))
{
    int                rc;
    char               full[LLM_FOLDER_PATH];
    llm_buf_t          b;
    llm_str_t          text;
    struct stat        st;
    llm_json_reader_t  r;

    if (llm_folder_path(full, path, name) == NULL || stat(full, &st) == -1) {
        return LLM_ABSENT;
    }

    llm_buf_init(&b, LLM_HUB_FILE);
    rc = llm_file_read(full, &b, h->err);
    text.len = b.len;
    text.data = b.len ? b.data : "";

    if (rc == LLM_OK && read) {
        llm_json_begin(&r, text, full, (size_t) 1 << 20, h->err);
        rc = read(h, &r);
        llm_json_close(&r);

    } else if (rc == LLM_OK) {
        rc = llm_hub_merges_txt(h, text, full);
    }

    llm_buf_free(&b);

    return rc;
}


static int
llm_hub_read(llm_hub_t *h, const char *path)
{
    int  rc;

    rc = llm_hub_file(h, path, "tokenizer.json", llm_hub_tokenizer);

    if (rc != LLM_ABSENT) {
        return rc;
    }

    rc = llm_hub_file(h, path, "vocab.json", llm_hub_tokens);

    if (rc == LLM_OK) {
        rc = llm_hub_file(h, path, "merges.txt", NULL);
    }

    return rc != LLM_ABSENT ? rc
           : llm_fail(h->err, "%s: no tokenizer.json, nor vocab.json and "
                      "merges.txt: download all files of the model", path);
}


static void
llm_hub_add_merges(llm_gguf_make_t *mk, const llm_hub_t *h)
{
    uint32_t     i;
    const char  *p;
    llm_str_t    s;

    llm_gguf_make_array(mk, "tokenizer.ggml.merges", LLM_GGUF_STR);

    for (i = 0, p = h->merges.data; i < h->n_merges; i++, p += s.len + 1) {
        s.data = p;
        s.len = strlen(p);
        llm_gguf_make_item_str(mk, s);
    }

    llm_gguf_make_end(mk);
}


int
llm_hub_vocab(llm_gguf_make_t *mk, const llm_whisper_dims_t *d,
    const char *path, llm_err_t *err)
{
    int        rc;
    llm_hub_t  h;

    memset(&h, 0, sizeof(h));
    h.err = err;
    h.n_text = llm_whisper_n_text(d->n_vocab);
    h.texts = calloc(h.n_text, sizeof(*h.texts));
    llm_arena_init(&h.arena, LLM_HUB_FILE);
    llm_buf_init(&h.merges, LLM_HUB_FILE);

    rc = h.texts ? llm_hub_read(&h, path)
                 : llm_fail(err, "%s: no memory for its vocabulary", path);

    if (rc == LLM_OK && h.n_seen != h.n_text) {
        rc = llm_fail(err, "%s: its tokenizer has %u of the %u tokens of "
                      "Whisper's vocabulary", path, h.n_seen, h.n_text);
    }

    if (rc == LLM_OK) {
        llm_whisper_tokens(mk, d, h.texts);
        llm_hub_add_merges(mk, &h);
    }

    free(h.texts);
    llm_arena_free(&h.arena);
    llm_buf_free(&h.merges);

    return rc;
}
