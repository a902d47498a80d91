/*
 * The GGUF reader; see gguf.h.  gguf_file.c opens a file, gguf_tensors.c reads
 * the table of tensors.
 *
 * One pass with a cursor (gguf_reader.c) that cannot leave the bytes: header,
 * metadata, table of tensors.  Before anything is allocated, counts are
 * compared with the number of bytes left, so memory is bounded by the file's
 * size.  Then keys and names are sorted, to find duplicates and for look-ups.
 */

#include "engine/base/kind.h"
#include "engine/gguf/gguf_internal.h"

#define LLM_GGUF_ALIGNMENT    32
#define LLM_GGUF_MAX_ALIGN    (1u << 20)

/* the fewest bytes of a key with its value; of a tensor's entry */
#define LLM_GGUF_KV_MIN       (8 + 1 + 4 + 1)
#define LLM_GGUF_TENSOR_MIN   (8 + 1 + 4 + 4 + 8)


static int
llm_gguf_read_array(llm_gguf_reader_t *r, llm_gguf_kv_t *kv,
    const char *field)
{
    size_t     size, left;
    uint32_t   item;
    uint64_t   count, i;
    llm_str_t  s;

    if (llm_gguf_read(r, &item, sizeof(item), field) != LLM_OK
        || llm_gguf_read(r, &count, sizeof(count), field) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (item >= LLM_GGUF_N_TYPES) {
        return llm_fail(r->err, "%s: %s: an array of items of the unknown "
                        "type %u", r->g->name, field, item);
    }

    if (item == LLM_GGUF_ARRAY) {
        return llm_fail(r->err, "%s: %s: arrays of arrays are not supported",
                        r->g->name, field);
    }

    size = item == LLM_GGUF_STR ? sizeof(uint64_t)
                                : llm_gguf_type_size(item);
    left = r->g->len - r->pos;

    if (count > left / size) {
        return llm_fail(r->err, "%s: %s: an array of %llu items, and only "
                        "%zu bytes are left: " LLM_GGUF_DAMAGED, r->g->name,
                        field, (unsigned long long) count, left);
    }

    kv->item = (llm_gguf_type_t) item;
    kv->count = count;
    kv->data = r->g->data + r->pos;

    if (item != LLM_GGUF_STR) {
        size *= (size_t) count;

        if (llm_gguf_here(r, size) != LLM_OK) {
            return LLM_ERROR;
        }

        r->pos += size;
        return LLM_OK;
    }

    for (i = 0; i < count; i++) {
        if (llm_gguf_read_str(r, &s, field) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_gguf_read_kv(llm_gguf_reader_t *r, llm_gguf_kv_t *kv)
{
    size_t             size;
    uint32_t           type;
    llm_str_t          s;
    const char        *field;
    llm_gguf_label_t   label;

    if (llm_gguf_read_str(r, &kv->key, "a metadata key") != LLM_OK) {
        return LLM_ERROR;
    }

    if (kv->key.len == 0) {
        return llm_fail(r->err, "%s: a metadata key: it is empty",
                        r->g->name);
    }

    field = llm_gguf_label(&label, kv->key);

    if (llm_gguf_read(r, &type, sizeof(type), field) != LLM_OK) {
        return LLM_ERROR;
    }

    if (type >= LLM_GGUF_N_TYPES) {
        return llm_fail(r->err, "%s: %s: the unknown value type %u",
                        r->g->name, field, type);
    }

    kv->type = (llm_gguf_type_t) type;
    kv->item = kv->type;
    kv->count = 1;
    kv->data = r->g->data + r->pos;

    if (type == LLM_GGUF_ARRAY) {
        return llm_gguf_read_array(r, kv, field);
    }

    if (type == LLM_GGUF_STR) {
        return llm_gguf_read_str(r, &s, field);
    }

    size = llm_gguf_type_size(type);

    if (size > r->g->len - r->pos) {
        return llm_gguf_truncated(r, field);
    }

    if (llm_gguf_here(r, size) != LLM_OK) {
        return LLM_ERROR;
    }

    r->pos += size;

    return LLM_OK;
}


static int
llm_gguf_sort_kv(llm_gguf_t *g, llm_err_t *err)
{
    size_t             i;
    llm_gguf_label_t   label;

    g->kv_sorted = calloc(g->n_kv + 1, sizeof(*g->kv_sorted));
    if (g->kv_sorted == NULL) {
        return llm_fail(err, "%s: no memory for its metadata", g->name);
    }

    for (i = 0; i < g->n_kv; i++) {
        g->kv_sorted[i] = &g->kv[i];
    }

    qsort(g->kv_sorted, g->n_kv, sizeof(*g->kv_sorted), llm_gguf_kv_cmp);

    for (i = 1; i < g->n_kv; i++) {
        if (llm_gguf_kv_cmp(&g->kv_sorted[i - 1], &g->kv_sorted[i]) == 0) {
            return llm_fail(err, "%s: %s: the key is there twice", g->name,
                            llm_gguf_label(&label, g->kv_sorted[i]->key));
        }
    }

    return LLM_OK;
}


static int
llm_gguf_read_alignment(llm_gguf_t *g, llm_err_t *err)
{
    uint32_t  a;

    a = LLM_GGUF_ALIGNMENT;

    if (llm_gguf_get_u32(g, "general.alignment", &a, err) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (a < 8 || a > LLM_GGUF_MAX_ALIGN || (a & (a - 1))) {
        return llm_fail(err, "%s: general.alignment: %u is no power of two "
                        "from 8 to %u", g->name, a, LLM_GGUF_MAX_ALIGN);
    }

    g->alignment = a;

    return LLM_OK;
}


static int
llm_gguf_read_header(llm_gguf_reader_t *r)
{
    size_t       left;
    uint64_t     n_tensors, n_kv;
    llm_gguf_t  *g;
    llm_file_kind_t   kind;

    g = r->g;

    if (g->len && g->len < 4 && memcmp(g->data, "GGUF", g->len) == 0) {
        return llm_gguf_truncated(r, "magic");
    }

    if (g->len < 4 || memcmp(g->data, "GGUF", 4) != 0) {
        llm_file_kind(g->data, g->head, g->len, &kind);

        return llm_fail(r->err, "%s: this is %s, not a GGUF file: %s",
                        g->name, kind.what, kind.advice);
    }

    r->pos = 4;

    if (llm_gguf_read(r, &g->version, sizeof(g->version), "version")
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (g->version && (g->version & 0xffff) == 0) {
        return llm_fail(r->err, "%s: version: the file is big-endian, only "
                        "little-endian files are supported: convert it with "
                        "gguf_convert_endian.py of gguf-py", g->name);
    }

    if (g->version != 2 && g->version != 3) {
        return llm_fail(r->err, "%s: version: GGUF version %u is not "
                        "supported, 2 and 3 are: %s", g->name, g->version,
                        g->version < 2
                        ? "download a newer GGUF of the model"
                        : "the file is damaged, or made for later programs");
    }

    if (llm_gguf_read(r, &n_tensors, 8, "tensor count") != LLM_OK
        || llm_gguf_read(r, &n_kv, 8, "metadata count") != LLM_OK)
    {
        return LLM_ERROR;
    }

    left = g->len - r->pos;

    if (n_kv > left / LLM_GGUF_KV_MIN) {
        return llm_fail(r->err, "%s: metadata count: %llu keys can't be in "
                        "a file of %zu bytes: " LLM_GGUF_DAMAGED, g->name,
                        (unsigned long long) n_kv, g->len);
    }

    if (n_tensors > left / LLM_GGUF_TENSOR_MIN) {
        return llm_fail(r->err, "%s: tensor count: %llu tensors can't be in "
                        "a file of %zu bytes: " LLM_GGUF_DAMAGED, g->name,
                        (unsigned long long) n_tensors, g->len);
    }

    g->n_kv = (size_t) n_kv;
    g->n_tensors = (size_t) n_tensors;

    return LLM_OK;
}


static int
llm_gguf_read_metadata(llm_gguf_reader_t *r)
{
    size_t       i;
    llm_gguf_t  *g;

    g = r->g;

    g->kv = calloc(g->n_kv + 1, sizeof(llm_gguf_kv_t));
    if (g->kv == NULL) {
        return llm_fail(r->err, "%s: no memory for its metadata", g->name);
    }

    for (i = 0; i < g->n_kv; i++) {
        if (llm_gguf_read_kv(r, &g->kv[i]) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_gguf_sort_kv(g, r->err);
}


int
llm_gguf_parse(llm_gguf_t *g, llm_err_t *err)
{
    llm_gguf_reader_t  r;

    r.g = g;
    r.pos = 0;
    r.more = 0;
    r.err = err;

    if (llm_gguf_read_header(&r) == LLM_OK
        && llm_gguf_read_metadata(&r) == LLM_OK
        && llm_gguf_read_alignment(g, err) == LLM_OK
        && llm_gguf_read_tensors(&r) == LLM_OK)
    {
        return LLM_OK;
    }

    return r.more ? LLM_SHORT : LLM_ERROR;
}


llm_gguf_t *
llm_gguf_create(const char *name, llm_err_t *err)
{
    llm_gguf_t  *g;

    g = calloc(1, sizeof(llm_gguf_t));

    if (g) {
        g->name = strdup(name);
    }

    if (g == NULL || g->name == NULL) {
        free(g);
        (void) llm_fail(err, "%s: no memory", name);
        return NULL;
    }

    g->alignment = LLM_GGUF_ALIGNMENT;

    return g;
}


llm_gguf_t *
llm_gguf_open_memory(const void *data, size_t len, const char *name,
    llm_err_t *err)
{
    llm_gguf_t  *g;

    g = llm_gguf_create(name, err);
    if (g == NULL) {
        return NULL;
    }

    g->data = data;
    g->len = len;
    g->head = len;

    if (llm_gguf_parse(g, err) != LLM_OK) {
        llm_gguf_close(g);
        return NULL;
    }

    return g;
}


void
llm_gguf_forget(llm_gguf_t *g)
{
    free(g->kv);
    free(g->kv_sorted);
    free(g->tensors);
    free(g->tensors_sorted);
    free(g->unknown);

    g->unknown = NULL;
    g->kv = NULL;
    g->kv_sorted = NULL;
    g->tensors = NULL;
    g->tensors_sorted = NULL;
    g->alignment = LLM_GGUF_ALIGNMENT;
}


void
llm_gguf_close(llm_gguf_t *g)
{
    size_t  i;

    if (g == NULL) {
        return;
    }

    llm_gguf_forget(g);

    for (i = 0; i < g->n_parts; i++) {
        llm_gguf_close(g->parts[i]);
    }

    free(g->parts);

    if (g->mapping) {
        llm_map_close(g->mapping);
    }

    free(g->owned);
    free(g->name);
    free(g);
}
