/*
 * The GGUF reader; see gguf.h.  How a file is opened: gguf_file.c.
 *
 * One pass with a cursor that can't leave the bytes: header, metadata,
 * table of tensors.  Counts are compared with the bytes that are left before
 * anything is allocated for them, so memory is bounded by the file's size.
 * Keys and names are then sorted, which finds the double ones and serves
 * look-ups.
 */

#include "engine/gguf/gguf_internal.h"

#include <stdio.h>

#define LLM_GGUF_ALIGNMENT    32
#define LLM_GGUF_MAX_ALIGN    (1u << 20)

/* the fewest bytes that a key with its value or a tensor's entry takes */
#define LLM_GGUF_KV_MIN       (8 + 1 + 4 + 1)
#define LLM_GGUF_TENSOR_MIN   (8 + 1 + 4 + 4 + 8)


typedef struct {
    llm_gguf_t                *g;
    size_t                     pos;
    int                        more;    /* bytes are wanted behind g->head */
    llm_err_t                 *err;
} llm_gguf_reader_t;


/* are n bytes, which the file has, in memory? */

static int
llm_gguf_here(llm_gguf_reader_t *r, size_t n)
{
    if (r->pos + n <= r->g->head) {
        return LLM_OK;
    }

    r->more = 1;

    return llm_fail(r->err, "%s: its header was not read whole", r->g->name);
}


static int
llm_gguf_truncated(llm_gguf_reader_t *r, const char *field)
{
    return llm_fail(r->err, "%s: %s: the file ends at byte %zu, inside it",
                    r->g->name, field, r->g->len);
}


static int
llm_gguf_read(llm_gguf_reader_t *r, void *out, size_t n, const char *field)
{
    if (n > r->g->len - r->pos) {
        return llm_gguf_truncated(r, field);
    }

    if (llm_gguf_here(r, n) != LLM_OK) {
        return LLM_ERROR;
    }

    memcpy(out, r->g->data + r->pos, n);
    r->pos += n;

    return LLM_OK;
}


static int
llm_gguf_read_str(llm_gguf_reader_t *r, llm_str_t *s, const char *field)
{
    uint64_t  n;

    n = 0;

    if (llm_gguf_read(r, &n, sizeof(n), field) != LLM_OK) {
        return LLM_ERROR;
    }

    if (n > r->g->len - r->pos) {
        return llm_fail(r->err, "%s: %s: a string of %llu bytes, and only "
                        "%zu bytes are left", r->g->name, field,
                        (unsigned long long) n, r->g->len - r->pos);
    }

    s->len = (size_t) n;
    s->data = r->g->data + r->pos;

    if (llm_gguf_here(r, s->len) != LLM_OK) {
        return LLM_ERROR;
    }

    r->pos += s->len;

    return LLM_OK;
}


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
                        "%zu bytes are left", r->g->name, field,
                        (unsigned long long) count, left);
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


/* types that files have and nothing here computes with, by their names */

static int
llm_gguf_bad_type(llm_gguf_reader_t *r, const char *field, uint32_t type)
{
    static const char *const  names[] = {
        [9] = "Q8_1", [10] = "Q2_K", [11] = "Q3_K", [15] = "Q8_K",
        [16] = "IQ2_XXS", [17] = "IQ2_XS", [18] = "IQ3_XXS", [19] = "IQ1_S",
        [20] = "IQ4_NL", [21] = "IQ3_S", [22] = "IQ2_S", [23] = "IQ4_XS",
        [24] = "I8", [25] = "I16", [26] = "I32", [27] = "I64", [28] = "F64",
        [29] = "IQ1_M", [34] = "TQ1_0", [35] = "TQ2_0", [39] = "MXFP4"
    };

    if (type < llm_nelems(names) && names[type]) {
        return llm_fail(r->err, "%s: %s: tensors of type %s are not "
                        "supported", r->g->name, field, names[type]);
    }

    return llm_fail(r->err, "%s: %s: tensors of type %u are not supported",
                    r->g->name, field, type);
}


/* the dimensions: none of them 0, their product and the bytes below 2^63 */

static int
llm_gguf_shape(llm_gguf_reader_t *r, llm_gguf_tensor_t *t, const char *field)
{
    size_t    blocks, block;
    int64_t   n;
    uint32_t  i;

    n = 1;

    for (i = 0; i < 4; i++) {
        t->ne[i] = 1;

        if (i < t->n_dims
            && llm_gguf_read(r, &t->ne[i], sizeof(t->ne[i]), field) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (t->ne[i] == 0) {
            return llm_fail(r->err, "%s: %s: dimension %u is 0", r->g->name,
                            field, i);
        }

        if (t->ne[i] > INT64_MAX
            || __builtin_mul_overflow(n, (int64_t) t->ne[i], &n))
        {
            return llm_fail(r->err, "%s: %s: its dimensions overflow",
                            r->g->name, field);
        }
    }

    if (llm_gguf_read(r, &i, sizeof(i), field) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_type_name(i) == NULL) {
        return llm_gguf_bad_type(r, field, i);
    }

    t->type = (llm_type_t) i;
    block = llm_type_block(i);

    if (t->ne[0] % block) {
        return llm_fail(r->err, "%s: %s: a row of %llu elements is no whole "
                        "number of %s blocks of %zu", r->g->name, field,
                        (unsigned long long) t->ne[0], llm_type_name(i),
                        block);
    }

    blocks = (size_t) n / block;

    if (llm_mul_overflow(blocks, llm_type_block_size(i), &t->size)) {
        return llm_fail(r->err, "%s: %s: its dimensions overflow",
                        r->g->name, field);
    }

    return LLM_OK;
}


/* leaves the tensor's offset in *offset: where the data begin is not known */

static int
llm_gguf_read_tensor(llm_gguf_reader_t *r, llm_gguf_tensor_t *t,
    uint64_t *offset)
{
    const char        *field;
    llm_gguf_label_t   label;

    if (llm_gguf_read_str(r, &t->name, "a tensor's name") != LLM_OK) {
        return LLM_ERROR;
    }

    if (t->name.len == 0) {
        return llm_fail(r->err, "%s: a tensor's name: it is empty",
                        r->g->name);
    }

    field = llm_gguf_label(&label, t->name);

    if (llm_gguf_read(r, &t->n_dims, sizeof(t->n_dims), field) != LLM_OK) {
        return LLM_ERROR;
    }

    if (t->n_dims > 4) {
        return llm_fail(r->err, "%s: %s: %u dimensions, 4 are the most",
                        r->g->name, field, t->n_dims);
    }

    if (llm_gguf_shape(r, t, field) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_gguf_read(r, offset, sizeof(*offset), field) != LLM_OK) {
        return LLM_ERROR;
    }

    if (*offset % r->g->alignment) {
        return llm_fail(r->err, "%s: %s: its offset %llu is no multiple of "
                        "the alignment %u", r->g->name, field,
                        (unsigned long long) *offset, r->g->alignment);
    }

    return LLM_OK;
}


/* the data begin at the first aligned byte behind the table */

static int
llm_gguf_place_tensors(llm_gguf_reader_t *r, const uint64_t *offsets)
{
    size_t              i, start, room;
    llm_gguf_t         *g;
    llm_gguf_label_t    label;
    llm_gguf_tensor_t  *t;

    g = r->g;
    start = llm_align(r->pos, g->alignment);
    room = start < g->len ? g->len - start : 0;

    for (i = 0; i < g->n_tensors; i++) {
        t = &g->tensors[i];

        if (offsets[i] > room || t->size > room - (size_t) offsets[i]) {
            return llm_fail(r->err, "%s: %s: %zu bytes at offset %llu, and "
                            "the file has only %zu bytes of tensor data",
                            g->name, llm_gguf_label(&label, t->name),
                            t->size, (unsigned long long) offsets[i], room);
        }

        /* of a header alone there are no data */

        if (g->owned == NULL) {
            t->data = g->data + start + (size_t) offsets[i];
        }
    }

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
llm_gguf_sort_tensors(llm_gguf_t *g, llm_err_t *err)
{
    size_t                     i, n;
    llm_gguf_label_t           label;
    const llm_gguf_tensor_t  **t;

    n = g->n_tensors;

    g->tensors_sorted = t = calloc(n + 1, sizeof(*t));
    if (t == NULL) {
        return llm_fail(err, "%s: no memory for its tensors", g->name);
    }

    for (i = 0; i < n; i++) {
        t[i] = &g->tensors[i];
    }

    qsort(t, n, sizeof(*t), llm_gguf_tensor_cmp);

    for (i = 1; i < n; i++) {
        if (llm_gguf_tensor_cmp(&t[i - 1], &t[i]) == 0) {
            return llm_fail(err, "%s: %s: the tensor is there twice",
                            g->name, llm_gguf_label(&label, t[i]->name));
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

    g = r->g;

    if (g->len < 4 || memcmp(g->data, "GGUF", 4) != 0) {
        return llm_fail(r->err, "%s: magic: this is not a GGUF file",
                        g->name);
    }

    r->pos = 4;

    if (llm_gguf_read(r, &g->version, sizeof(g->version), "version")
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (g->version && (g->version & 0xffff) == 0) {
        return llm_fail(r->err, "%s: version: the file is big-endian, only "
                        "little-endian files are supported", g->name);
    }

    if (g->version != 2 && g->version != 3) {
        return llm_fail(r->err, "%s: version: GGUF version %u is not "
                        "supported, 2 and 3 are", g->name, g->version);
    }

    if (llm_gguf_read(r, &n_tensors, 8, "tensor count") != LLM_OK
        || llm_gguf_read(r, &n_kv, 8, "metadata count") != LLM_OK)
    {
        return LLM_ERROR;
    }

    left = g->len - r->pos;

    if (n_kv > left / LLM_GGUF_KV_MIN) {
        return llm_fail(r->err, "%s: metadata count: %llu keys can't be in "
                        "a file of %zu bytes", g->name,
                        (unsigned long long) n_kv, g->len);
    }

    if (n_tensors > left / LLM_GGUF_TENSOR_MIN) {
        return llm_fail(r->err, "%s: tensor count: %llu tensors can't be in "
                        "a file of %zu bytes", g->name,
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


static int
llm_gguf_read_tensors(llm_gguf_reader_t *r)
{
    int          rc;
    size_t       i;
    uint64_t    *offsets;
    llm_gguf_t  *g;

    g = r->g;

    g->tensors = calloc(g->n_tensors + 1, sizeof(llm_gguf_tensor_t));
    offsets = calloc(g->n_tensors + 1, sizeof(uint64_t));

    if (g->tensors == NULL || offsets == NULL) {
        free(offsets);
        return llm_fail(r->err, "%s: no memory for its tensors", g->name);
    }

    rc = LLM_OK;

    for (i = 0; i < g->n_tensors && rc == LLM_OK; i++) {
        rc = llm_gguf_read_tensor(r, &g->tensors[i], &offsets[i]);
    }

    if (rc == LLM_OK) {
        rc = llm_gguf_place_tensors(r, offsets);
    }

    free(offsets);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_gguf_sort_tensors(g, r->err);
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

    return r.more ? LLM_AGAIN : LLM_ERROR;
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

    g->kv = NULL;
    g->kv_sorted = NULL;
    g->tensors = NULL;
    g->tensors_sorted = NULL;
    g->alignment = LLM_GGUF_ALIGNMENT;
}


void
llm_gguf_close(llm_gguf_t *g)
{
    if (g == NULL) {
        return;
    }

    llm_gguf_forget(g);

    if (g->mapping) {
        llm_map_close(g->mapping);
    }

    free(g->owned);
    free(g->name);
    free(g);
}
