/*
 * Writes the header of a GGUF file in memory and opens it; see gguf_make.h.
 * Little-endian, as the machines that this runs on.
 */

#include "engine/gguf/gguf_internal.h"
#include "engine/gguf/gguf_make.h"

/* most bytes of the keys: no tokenizer has as many */
#define LLM_MAKE_LIMIT  ((size_t) 256 << 20)

/* a length that no tensor of a header exceeds */
#define LLM_MAKE_LEN    (SIZE_MAX >> 1)


void
llm_gguf_source_free(llm_gguf_source_t *f)
{
    if (f->map) {
        llm_map_close(f->map);
    }

    free(f->name);
    memset(f, 0, sizeof(*f));
}


void
llm_gguf_make(llm_gguf_make_t *mk)
{
    memset(mk, 0, sizeof(*mk));
    llm_buf_init(&mk->kv, LLM_MAKE_LIMIT);
    llm_buf_init(&mk->table, LLM_MAKE_LIMIT);
    llm_buf_init(&mk->data, LLM_MAKE_LIMIT);
}


void
llm_gguf_unmake(llm_gguf_make_t *mk)
{
    llm_buf_free(&mk->kv);
    llm_buf_free(&mk->table);
    llm_buf_free(&mk->data);
}


static void
llm_make_number(llm_buf_t *b, uint64_t v, size_t size)
{
    (void) llm_buf_add(b, &v, size);
}


static void
llm_make_text(llm_buf_t *b, llm_str_t s)
{
    llm_make_number(b, s.len, sizeof(uint64_t));
    (void) llm_buf_add(b, s.data, s.len);
}


static void
llm_make_key(llm_gguf_make_t *mk, const char *key, llm_gguf_type_t type)
{
    llm_make_text(&mk->kv, (llm_str_t) { strlen(key), key });
    llm_make_number(&mk->kv, (uint64_t) type, sizeof(uint32_t));
    mk->n_kv++;
}


void
llm_gguf_make_u32(llm_gguf_make_t *mk, const char *key, uint32_t v)
{
    llm_make_key(mk, key, LLM_GGUF_U32);
    llm_make_number(&mk->kv, v, sizeof(v));
}


void
llm_gguf_make_f32(llm_gguf_make_t *mk, const char *key, float v)
{
    llm_make_key(mk, key, LLM_GGUF_F32);
    (void) llm_buf_add(&mk->kv, &v, sizeof(v));
}


void
llm_gguf_make_bool(llm_gguf_make_t *mk, const char *key, int v)
{
    llm_make_key(mk, key, LLM_GGUF_BOOL);
    llm_make_number(&mk->kv, v != 0, 1);
}


void
llm_gguf_make_str(llm_gguf_make_t *mk, const char *key, llm_str_t s)
{
    llm_make_key(mk, key, LLM_GGUF_STR);
    llm_make_text(&mk->kv, s);
}


void
llm_gguf_make_array(llm_gguf_make_t *mk, const char *key,
    llm_gguf_type_t item)
{
    llm_make_key(mk, key, LLM_GGUF_ARRAY);
    llm_make_number(&mk->kv, (uint64_t) item, sizeof(uint32_t));
    mk->count_at = mk->kv.len;
    mk->count = 0;
    llm_make_number(&mk->kv, 0, sizeof(uint64_t));
}


void
llm_gguf_make_item(llm_gguf_make_t *mk, uint32_t v)
{
    llm_make_number(&mk->kv, v, sizeof(v));
    mk->count++;
}


void
llm_gguf_make_item_str(llm_gguf_make_t *mk, llm_str_t s)
{
    llm_make_text(&mk->kv, s);
    mk->count++;
}


void
llm_gguf_make_end(llm_gguf_make_t *mk)
{
    if (!mk->kv.failed) {
        memcpy(mk->kv.data + mk->count_at, &mk->count, sizeof(mk->count));
    }
}


void
llm_gguf_make_tensor(llm_gguf_make_t *mk, llm_str_t name, uint32_t n_dims,
    const uint64_t *ne, uint32_t type, const void *data)
{
    llm_make_text(&mk->table, name);
    llm_make_number(&mk->table, n_dims, sizeof(n_dims));
    (void) llm_buf_add(&mk->table, ne, n_dims * sizeof(*ne));
    llm_make_number(&mk->table, type, sizeof(type));
    llm_make_number(&mk->table, 0, sizeof(uint64_t));
    (void) llm_buf_add(&mk->data, &data, sizeof(data));
    mk->n_tensors++;
}


/* the bytes of the header; NULL: no memory */

static char *
llm_make_header(const llm_gguf_make_t *mk, size_t *len)
{
    llm_buf_t  b;

    if (mk->kv.failed || mk->table.failed || mk->data.failed) {
        return NULL;
    }

    llm_buf_init(&b, 3 * LLM_MAKE_LIMIT);
    (void) llm_buf_add(&b, "GGUF\3\0\0", 8);
    llm_make_number(&b, mk->n_tensors, sizeof(uint64_t));
    llm_make_number(&b, mk->n_kv, sizeof(uint64_t));
    (void) llm_buf_add(&b, mk->kv.data, mk->kv.len);
    (void) llm_buf_add(&b, mk->table.data, mk->table.len);

    if (b.failed) {
        llm_buf_free(&b);
        return NULL;
    }

    *len = b.len;

    return b.data;
}


/* gives g the files; the first one is its own, the others are its parts */

static int
llm_make_files(llm_gguf_t *g, llm_gguf_source_t *files, size_t n,
    llm_err_t *err)
{
    size_t       i;
    llm_gguf_t  *part;

    g->len = files[0].len;
    g->changed = files[0].changed;
    g->mapping = files[0].map;
    files[0].map = NULL;
    g->n_own = g->n_tensors;

    if (n == 1) {
        return LLM_OK;
    }

    g->parts = calloc(n - 1, sizeof(*g->parts));
    if (g->parts == NULL) {
        return llm_fail(err, "%s: no memory for its parts", g->name);
    }

    for (i = 1; i < n; i++) {
        part = llm_gguf_create(files[i].name, err);
        if (part == NULL) {
            return LLM_ERROR;
        }

        g->parts[g->n_parts++] = part;
        part->len = files[i].len;
        part->changed = files[i].changed;
        part->mapping = files[i].map;
        files[i].map = NULL;
    }

    return LLM_OK;
}


llm_gguf_t *
llm_gguf_made(llm_gguf_make_t *mk, const char *name, const char *format,
    llm_gguf_source_t *files, size_t n, llm_err_t *err)
{
    int                  rc;
    size_t               i;
    llm_gguf_t          *g;
    const void *const   *data;

    rc = LLM_ERROR;
    g = llm_gguf_create(name, err);

    if (g) {
        g->format = format;
        g->owned = llm_make_header(mk, &g->head);
        g->data = g->owned;
        g->len = LLM_MAKE_LEN;
        rc = g->owned ? llm_gguf_parse(g, err)
                      : llm_fail(err, "%s: no memory for its header", name);
    }

    if (rc == LLM_OK) {
        rc = llm_make_files(g, files, n, err);
    }

    data = (const void *const *) (const void *) mk->data.data;

    for (i = 0; rc == LLM_OK && i < g->n_tensors; i++) {
        g->tensors[i].data = g->tensors[i].size ? data[i] : NULL;
    }

    for (i = 0; i < n; i++) {
        llm_gguf_source_free(&files[i]);
    }

    if (rc != LLM_OK) {
        llm_gguf_close(g);
        return NULL;
    }

    return g;
}
