/*
 * safetensors: 8 bytes with the length of a header, the header in JSON, {name:
 * {dtype, shape, data_offsets}}, and the bytes of the tensors, whose offsets
 * count from the header's end.  Tensors lie in any order, and not aligned.
 */

#include "engine/file/internal.h"

#include <stdio.h>
#include <unistd.h>

/* most bytes of a header, as safetensors' own reader has it */
#define LLM_ST_HEADER  ((uint64_t) 100000000)

/* most dimensions of a tensor that a model here has */
#define LLM_ST_DIMS    4

typedef struct {
    char          dtype[16];
    uint64_t      shape[LLM_ST_DIMS];
    uint32_t      n_dims;
    uint64_t      from;
    uint64_t      to;
    int           seen;                 /* members, a bit each */
} llm_st_entry_t;

typedef struct {
    llm_gguf_make_t    *mk;
    llm_gguf_source_t  *src;
    llm_json_reader_t   r;
    size_t              start;          /* where the tensors' bytes begin */
    size_t              n;              /* tensors so far */
} llm_st_t;

static const struct {
    const char  *name;
    uint32_t     type;
    uint32_t     bytes;
} llm_st_types[] = {
    { "F32", LLM_TYPE_F32, 4 },
    { "F16", LLM_TYPE_F16, 2 },
    { "BF16", LLM_TYPE_BF16, 2 }
};


static int
llm_st_shape(llm_st_t *t, llm_st_entry_t *e)
{
    int  rc;

    if (llm_json_enter(&t->r, '[') != LLM_OK) {
        return LLM_ERROR;
    }

    for (e->n_dims = 0; (rc = llm_json_item(&t->r)) == LLM_OK; e->n_dims++) {
        if (e->n_dims == LLM_ST_DIMS) {
            return llm_json_wrong(&t->r, "more than 4 dimensions");
        }

        if (llm_json_uint(&t->r, &e->shape[e->n_dims]) != LLM_OK) {
            return LLM_ERROR;
        }

        if (e->shape[e->n_dims] == 0 || e->shape[e->n_dims] > UINT32_MAX) {
            return llm_json_wrong(&t->r, "a dimension of 0, or too large");
        }
    }

    return rc == LLM_END ? LLM_OK : LLM_ERROR;
}


static int
llm_st_offsets(llm_st_t *t, llm_st_entry_t *e)
{
    if (llm_json_enter(&t->r, '[') != LLM_OK
        || llm_json_item(&t->r) != LLM_OK
        || llm_json_uint(&t->r, &e->from) != LLM_OK
        || llm_json_item(&t->r) != LLM_OK
        || llm_json_uint(&t->r, &e->to) != LLM_OK
        || llm_json_item(&t->r) != LLM_END)
    {
        return llm_json_wrong(&t->r, "data_offsets: not two numbers");
    }

    return LLM_OK;
}


static int
llm_st_entry(llm_st_t *t, llm_st_entry_t *e)
{
    int        rc;
    llm_str_t  key, s;

    memset(e, 0, sizeof(*e));

    if (llm_json_enter(&t->r, '{') != LLM_OK) {
        return LLM_ERROR;
    }

    while ((rc = llm_json_member(&t->r, &key)) == LLM_OK) {

        if (llm_str_is(key, "dtype")) {
            rc = llm_json_string(&t->r, &s);

            if (rc == LLM_OK) {
                snprintf(e->dtype, sizeof(e->dtype), "%.*s",
                         (int) llm_min(s.len, (size_t) 15), s.data);
                e->seen |= 1;
            }

        } else if (llm_str_is(key, "shape")) {
            rc = llm_st_shape(t, e);
            e->seen |= 2;

        } else if (llm_str_is(key, "data_offsets")) {
            rc = llm_st_offsets(t, e);
            e->seen |= 4;

        } else {
            rc = llm_json_skip(&t->r);
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (rc == LLM_END && e->seen != 7) {
        return llm_json_wrong(&t->r, "a tensor without dtype, shape or "
                              "data_offsets");
    }

    return rc == LLM_END ? LLM_OK : LLM_ERROR;
}


/* checks the bytes of a tensor and adds it; shapes have rows last */

static int
llm_st_add(llm_st_t *t, const char *name, const llm_st_entry_t *e)
{
    size_t      i, n, room;
    uint32_t    k;
    uint64_t    ne[LLM_ST_DIMS];
    llm_err_t  *err = t->r.err;

    for (i = 0; i < llm_nelems(llm_st_types); i++) {
        if (strcmp(e->dtype, llm_st_types[i].name) == 0) {
            break;
        }
    }

    if (i == llm_nelems(llm_st_types)) {
        return llm_fail(err, "%s: %s: dtype %s is not supported, F32, F16 and "
                        "BF16 are", t->r.name, name, e->dtype);
    }

    if (e->n_dims == 0 || e->n_dims > 3) {
        return llm_fail(err, "%s: %s: %u dimensions", t->r.name, name,
                        e->n_dims);
    }

    n = llm_st_types[i].bytes;

    for (k = 0; k < e->n_dims; k++) {
        ne[k] = e->shape[e->n_dims - 1 - k];

        if (llm_mul_overflow(n, (size_t) ne[k], &n)) {
            return llm_fail(err, "%s: %s: its dimensions overflow",
                            t->r.name, name);
        }
    }

    room = t->src->len - t->start;

    if (e->from > room || e->to > room || e->to < e->from
        || e->to - e->from != n)
    {
        return llm_fail(err, "%s: %s: %zu bytes by its shape, and its offsets "
                        "are %llu to %llu of %zu: " LLM_FILE_DAMAGED,
                        t->r.name, name, n, (unsigned long long) e->from,
                        (unsigned long long) e->to, room);
    }

    llm_whisper_tensor(t->mk, name, e->n_dims, ne, llm_st_types[i].type,
                       t->src->map ? llm_map_data(t->src->map) + t->start
                                     + (size_t) e->from : NULL);

    return LLM_OK;
}


static int
llm_st_header(llm_st_t *t)
{
    int             rc;
    char            ours[LLM_WHISPER_NAME], shown[200];
    llm_str_t       key;
    llm_st_entry_t  e;

    if (llm_json_enter(&t->r, '{') != LLM_OK) {
        return LLM_ERROR;
    }

    while ((rc = llm_json_member(&t->r, &key)) == LLM_OK) {

        if (llm_str_is(key, "__metadata__")) {
            if (llm_json_skip(&t->r) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        if (t->n++ == LLM_FILE_TENSORS) {
            return llm_json_wrong(&t->r, "too many tensors");
        }

        if (llm_whisper_name(key, 1, ours) != LLM_OK) {
            (void) llm_clean(shown, sizeof(shown), key.data, key.len);
            return llm_fail(t->r.err, "%s: %s: Whisper has no such tensor",
                            t->r.name, shown);
        }

        if (llm_st_entry(t, &e) != LLM_OK
            || llm_st_add(t, ours, &e) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return rc == LLM_END ? llm_json_done(&t->r) : LLM_ERROR;
}


/* reads the header's bytes; the caller frees *text */

static int
llm_st_text(llm_st_t *t, int fd, char **text, uint64_t *len, llm_err_t *err)
{
    int           rc;
    llm_bytes_t  *b;

    *text = NULL;
    b = calloc(1, sizeof(*b));

    if (b == NULL) {
        return llm_fail(err, "%s: no memory", t->src->name);
    }

    b->fd = fd;
    b->name = t->src->name;
    b->len = t->src->len;
    b->err = err;

    rc = llm_bytes_read(b, len, sizeof(*len), "header length");

    if (rc == LLM_OK && (*len > LLM_ST_HEADER || *len > b->len - b->pos)) {
        rc = llm_fail(err, "%s: a header of %llu bytes in a file of %zu: "
                      LLM_FILE_DAMAGED, b->name, (unsigned long long) *len,
                      b->len);
    }

    if (rc == LLM_OK) {
        *text = malloc((size_t) *len + 1);
        rc = *text ? llm_bytes_read(b, *text, (size_t) *len, "header")
                   : llm_fail(err, "%s: no memory for its header", b->name);
        t->start = b->pos;
    }

    free(b);

    return rc;
}


int
llm_safetensors_read(llm_gguf_make_t *mk, const char *path, int header,
    llm_files_t *files, llm_err_t *err)
{
    int         fd, rc;
    char       *text;
    uint64_t    len;
    llm_st_t    t;

    memset(&t, 0, sizeof(t));

    if (files->n == files->cap) {
        return llm_fail(err, "%s: too many files", path);
    }

    t.mk = mk;
    t.src = &files->files[files->n];

    if (llm_bytes_open(path, header, t.src, &fd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    files->n++;
    rc = llm_st_text(&t, fd, &text, &len, err);

    if (rc == LLM_OK) {
        llm_json_begin(&t.r, (llm_str_t) { (size_t) len, text },
                       t.src->name, 4096, err);
        rc = llm_st_header(&t);
        llm_json_close(&t.r);
    }

    free(text);
    (void) close(fd);

    return rc;
}


void
llm_files_free(llm_files_t *f)
{
    size_t  i;

    for (i = 0; i < f->n; i++) {
        llm_gguf_source_free(&f->files[i]);
    }

    free(f->files);
    memset(f, 0, sizeof(*f));
}
