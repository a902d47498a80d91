/*
 * Reads the table of tensors of a GGUF file: names, shapes, types, and where
 * the data are.  llm_gguf_forget() frees what is filled here, even after an
 * error.
 */

#include "engine/gguf/gguf_internal.h"

#include <stdio.h>

/* GGUF's number of the type of LLM_GGUF_WORDS */
#define LLM_GGUF_T_I64    27

/* more bytes than a file can have */
#define LLM_GGUF_MAX_LEN  ((uint64_t) 1 << 60)


/*
 * Files may have types that are not supported.  They are opened nevertheless,
 * and the error is kept for later: the metadata may show that these tensors
 * are not used, or that the architecture is not supported either.
 */

static int
llm_gguf_unknown_type(llm_gguf_reader_t *r, const char *field, uint32_t type)
{
    char         number[16], msg[512];
    const char  *name;

    static const char *const  names[] = {
        [9] = "Q8_1", [15] = "Q8_K", [24] = "I8", [25] = "I16",
        [26] = "I32", [27] = "I64", [28] = "F64", [41] = "Q1_0",
        [42] = "Q2_0"
    };

    if (r->g->unknown) {
        return LLM_OK;
    }

    snprintf(number, sizeof(number), "%u", type);
    name = type < llm_nelems(names) && names[type] ? names[type] : number;

    snprintf(msg, sizeof(msg), "%s: %s: tensors of type %s are not supported",
             r->g->name, field, name);

    r->g->unknown = strdup(msg);

    return r->g->unknown ? LLM_OK
           : llm_fail(r->err, "%s: no memory for its tensors", r->g->name);
}


/* reads the dimensions and the type; no dimension may be 0, their product must
   be below 2^63 and the bytes must fit in a size_t */

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

    t->type = (llm_type_t) i;

    if (i == LLM_GGUF_T_I64 && llm_str_is(t->name, LLM_GGUF_WORDS)) {
        return llm_mul_overflow((size_t) n, sizeof(int64_t), &t->size)
               ? llm_fail(r->err, "%s: %s: its dimensions overflow",
                          r->g->name, field)
               : LLM_OK;
    }

    if (llm_type_name(i) == NULL) {
        return llm_gguf_unknown_type(r, field, i);
    }

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


/* *offset: where the tensor is in the data, whose beginning is not known yet */

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
        return llm_fail(r->err, "%s: %s: %u dimensions, at most 4 are "
                        "supported", r->g->name, field, t->n_dims);
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


/* makes the error for a tensor that ends after the end of the file, with the
   size that the file should have by its table of tensors */

static int
llm_gguf_cut(llm_gguf_reader_t *r, size_t start, const uint64_t *offsets,
    const llm_gguf_tensor_t *first)
{
    size_t              i;
    uint64_t            end, most;
    llm_gguf_t         *g;
    llm_gguf_label_t    label;
    llm_gguf_tensor_t  *t;

    g = r->g;
    most = 0;

    for (i = 0; i < g->n_tensors; i++) {
        t = &g->tensors[i];

        if (__builtin_add_overflow(offsets[i], t->size, &end)
            || __builtin_add_overflow(end, start, &end)
            || end > LLM_GGUF_MAX_LEN)
        {
            return llm_fail(r->err, "%s: %s: %zu bytes at offset %llu, and "
                            "the file has only %zu bytes: " LLM_GGUF_DAMAGED,
                            g->name, llm_gguf_label(&label, t->name),
                            t->size, (unsigned long long) offsets[i],
                            g->len);
        }

        most = llm_max(most, end);
    }

    return llm_fail(r->err, "%s: the file was cut: it has %zu bytes, and its "
                    "tensors need %llu (%s is the first incomplete one): "
                    "download it again", g->name, g->len,
                    (unsigned long long) most,
                    llm_gguf_label(&label, first->name));
}


/* the data begin at the first aligned byte after the table */

static int
llm_gguf_place_tensors(llm_gguf_reader_t *r, const uint64_t *offsets)
{
    size_t              i, start, room;
    llm_gguf_t         *g;
    llm_gguf_tensor_t  *t;

    g = r->g;
    start = llm_align(r->pos, g->alignment);
    room = start < g->len ? g->len - start : 0;

    for (i = 0; i < g->n_tensors; i++) {
        t = &g->tensors[i];

        if (t->size == 0) {
            continue;                   /* of an unknown type */
        }

        if (offsets[i] > room || t->size > room - (size_t) offsets[i]) {
            return llm_gguf_cut(r, start, offsets, t);
        }

        /* tensors have no data if only the header was read */

        if (g->owned == NULL) {
            t->data = g->data + start + (size_t) offsets[i];
        }
    }

    return LLM_OK;
}


/* the name of the file that has the tensor */

static const char *
llm_gguf_file_of(const llm_gguf_t *g, const llm_gguf_tensor_t *t)
{
    size_t  i, n;

    n = (size_t) (t - g->tensors);

    if (g->n_parts == 0 || n < g->n_own) {
        return g->name;
    }

    n -= g->n_own;

    for (i = 0; n >= g->parts[i]->n_own; i++) {
        n -= g->parts[i]->n_own;
    }

    return g->parts[i]->name;
}


int
llm_gguf_sort_tensors(llm_gguf_t *g, llm_err_t *err)
{
    size_t                     i, n;
    const char                *one, *two;
    llm_gguf_label_t           label;
    const llm_gguf_tensor_t  **t;

    n = g->n_tensors;

    free(g->tensors_sorted);
    g->tensors_sorted = t = calloc(n + 1, sizeof(*t));
    if (t == NULL) {
        return llm_fail(err, "%s: no memory for its tensors", g->name);
    }

    for (i = 0; i < n; i++) {
        t[i] = &g->tensors[i];
    }

    qsort(t, n, sizeof(*t), llm_gguf_tensor_cmp);

    for (i = 1; i < n; i++) {
        if (llm_gguf_tensor_cmp(&t[i - 1], &t[i]) != 0) {
            continue;
        }

        (void) llm_gguf_label(&label, t[i]->name);
        one = llm_gguf_file_of(g, llm_min(t[i - 1], t[i]));
        two = llm_gguf_file_of(g, llm_max(t[i - 1], t[i]));

        if (one == two) {
            return llm_fail(err, "%s: %s: the tensor is there twice", one,
                            label.text);
        }

        return llm_fail(err, "%s: %s: the tensor is in %s, too", two,
                        label.text, one);
    }

    return LLM_OK;
}


int
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
