/*
 * A tower's fields and tensors: looks them up in its file, checks their shapes
 * and gives them to the device; see tower_internal.h.
 *
 * Invariant: a tensor that was not looked up is refused in the end, so nothing
 * in a file is left out unseen.
 */

#include "engine/model/tower_internal.h"

#include <math.h>
#include <stdio.h>

#define LLM_TOWER_NAME  128


int
llm_tower_u32(llm_tower_load_t *l, const char *name, uint32_t min,
    uint32_t max, uint32_t *v)
{
    int         rc;
    char        key[LLM_TOWER_NAME];
    llm_gguf_t *g = l->t->gguf;

    snprintf(key, sizeof(key), "clip.%s.%s",
             l->t->kind->sound ? "audio" : "vision", name);
    rc = llm_gguf_get_u32(g, key, v, l->err);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_ABSENT && *v == 0 && min > 0) {
        return llm_fail(l->err, "%s: %s: it is missing", llm_gguf_name(g),
                        key);
    }

    if (*v < min || *v > max) {
        return llm_fail(l->err, "%s: %s: %u is not within %u and %u",
                        llm_gguf_name(g), key, *v, min, max);
    }

    return LLM_OK;
}


static const llm_gguf_tensor_t *
llm_tower_find_name(llm_tower_load_t *l, const char *name)
{
    size_t                    i;
    const llm_gguf_tensor_t  *t;

    t = llm_gguf_find_tensor(l->t->gguf, name);

    for (i = 0; t && i < llm_gguf_n_tensors(l->t->gguf); i++) {
        if (llm_gguf_tensor(l->t->gguf, i) == t) {
            l->t->used[i] = 1;
            break;
        }
    }

    return t;
}


const llm_gguf_tensor_t *
llm_tower_find(llm_tower_load_t *l, const char *fmt, ...)
{
    char     name[LLM_TOWER_NAME];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(name, sizeof(name), fmt, args);
    va_end(args);

    return llm_tower_find_name(l, name);
}


int
llm_tower_missing(llm_tower_load_t *l, const char *what)
{
    return llm_fail(l->err, "%s: %s: the tensor is missing",
                    llm_gguf_name(l->t->gguf), what);
}


int
llm_tower_shape_error(llm_tower_load_t *l, const llm_gguf_tensor_t *t,
    uint64_t n_in, uint64_t n_out)
{
    return llm_fail(l->err, "%s: %.*s: it has [%llu, %llu, %llu, %llu] "
                    "elements, where %llu by %llu fit",
                    llm_gguf_name(l->t->gguf), (int) t->name.len,
                    t->name.data, (unsigned long long) t->ne[0],
                    (unsigned long long) t->ne[1],
                    (unsigned long long) t->ne[2],
                    (unsigned long long) t->ne[3],
                    (unsigned long long) n_in, (unsigned long long) n_out);
}


static int
llm_tower_no_memory(llm_tower_load_t *l)
{
    return llm_fail(l->err, "%s: no memory for the tower",
                    llm_gguf_name(l->t->gguf));
}


void *
llm_tower_keep(llm_tower_load_t *l, size_t n, size_t size)
{
    void    *p, **copies;
    size_t   all;

    copies = realloc(l->t->copies, (l->t->n_copies + 1) * sizeof(void *));

    if (copies == NULL) {
        (void) llm_tower_no_memory(l);
        return NULL;
    }

    l->t->copies = copies;
    p = llm_mul_overflow(n, size, &all) ? NULL : calloc(1, all ? all : 1);

    if (p == NULL) {
        (void) llm_tower_no_memory(l);
        return NULL;
    }

    copies[l->t->n_copies++] = p;

    return p;
}


static uint64_t
llm_tower_elements(const llm_gguf_tensor_t *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}


float *
llm_tower_floats(llm_tower_load_t *l, const llm_gguf_tensor_t *t, size_t n)
{
    float  *f;

    n = n ? n : llm_tower_elements(t);

    if (llm_tower_elements(t) != n) {
        (void) llm_tower_shape_error(l, t, n, 1);
        return NULL;
    }

    f = llm_tower_keep(l, n, sizeof(float));

    if (f) {
        llm_dequantize(t->type, t->data, f, n);
    }

    return f;
}


int
llm_tower_read_vec(llm_tower_load_t *l, llm_vec_t **v, uint32_t n,
    const char *fmt, ...)
{
    char                      name[LLM_TOWER_NAME];
    float                    *f;
    va_list                   args;
    const llm_gguf_tensor_t  *t;

    va_start(args, fmt);
    vsnprintf(name, sizeof(name), fmt, args);
    va_end(args);

    t = llm_tower_find_name(l, name);

    if (t == NULL) {
        return LLM_OK;
    }

    f = llm_tower_floats(l, t, n);
    *v = f ? l->t->ops->vec_create(l->t->exec, f, n, l->err) : NULL;

    return *v ? LLM_OK : LLM_ERROR;
}


float *
llm_tower_weights_of(llm_tower_load_t *l, size_t n, const char *prefix)
{
    const llm_gguf_tensor_t  *t;

    t = llm_tower_find(l, "%s.weight", prefix);

    if (t == NULL) {
        (void) llm_tower_missing(l, prefix);
        return NULL;
    }

    return llm_tower_floats(l, t, n);
}


/* ---- matrices ---- */

/* the rows that a matrix has in the file: all dimensions but the last are one
   row, as in the kernels of a convolution */

static uint64_t
llm_tower_n_out(const llm_gguf_tensor_t *t)
{
    return t->n_dims > 1 ? t->ne[t->n_dims - 1] : 1;
}


/* the row of the file that is row i of a matrix whose heads are rotated in
   halves */

static uint32_t
llm_tower_half_row(uint32_t halves, uint32_t i)
{
    uint32_t  head, quarter, at;

    head = i / halves * halves;
    quarter = halves / 4;
    at = i % halves;

    if (at >= quarter && at < 2 * quarter) {
        return head + at + quarter;
    }

    return at >= 2 * quarter && at < 3 * quarter ? head + at - quarter
                                                 : head + at;
}


/* a copy of the rows, in the order of the halves */

static const void *
llm_tower_halved(llm_tower_load_t *l, const llm_tower_matrix_t *x,
    const char *src, size_t row)
{
    char      *copy;
    uint32_t   i;

    copy = llm_tower_keep(l, x->n, row);

    for (i = 0; copy && i < x->n; i++) {
        memcpy(copy + i * row, src + llm_tower_half_row(x->halves, i) * row,
               row);
    }

    return copy;
}


/* a copy as floats, for changes that need numbers */

static const void *
llm_tower_changed(llm_tower_load_t *l, const llm_tower_matrix_t *x,
    const char *src)
{
    float    *f, *other;
    size_t    i, n;
    uint32_t  r, c;

    n = (size_t) x->n * x->n_in;
    f = llm_tower_keep(l, n, sizeof(float));
    other = x->transposed || x->plus ? malloc(n * sizeof(float)) : NULL;

    if (f == NULL || (other == NULL && (x->transposed || x->plus))) {
        free(other);
        (void) llm_tower_no_memory(l);
        return NULL;
    }

    if (x->transposed) {
        llm_dequantize(x->t->type, src, other, n);

        for (r = 0; r < x->n; r++) {
            for (c = 0; c < x->n_in; c++) {
                f[(size_t) r * x->n_in + c] = other[(size_t) c * x->n + r];
            }
        }

    } else {
        llm_dequantize(x->t->type, src, f, n);
    }

    if (x->plus) {
        llm_dequantize(x->plus->type, x->plus->data, other, n);
    }

    for (i = 0; x->plus && i < n; i++) {
        f[i] += other[i];
    }

    for (i = 0; x->factors && i < n; i++) {
        f[i] *= x->factors[i / x->n_in];
    }

    free(other);

    return f;
}


llm_weight_t *
llm_tower_matrix(llm_tower_load_t *l, const llm_tower_matrix_t *x)
{
    size_t                    row;
    uint32_t                  type;
    const void               *src;
    const llm_gguf_tensor_t  *t = x->t;

    type = t->type;

    if (x->n_in % llm_type_block(type)) {
        (void) llm_tower_shape_error(l, t, x->n_in, x->n);
        return NULL;
    }

    row = llm_type_row_size(type, x->n_in);
    src = (const char *) t->data + x->first * row;

    if (x->halves) {
        src = llm_tower_halved(l, x, src, row);

    } else if (x->factors || x->plus || x->transposed) {
        src = llm_tower_changed(l, x, src);
        type = LLM_TYPE_F32;
    }

    return src ? l->t->ops->weight_create(l->t->exec, type, x->n, x->n_in,
                                          src, LLM_WEIGHT_LINEAR, l->err)
               : NULL;
}


int
llm_tower_part(llm_tower_load_t *l, llm_tower_linear_t *x,
    const llm_gguf_tensor_t *t, uint32_t parts, uint32_t i, uint32_t n)
{
    uint32_t            width = l->t->width;
    llm_tower_matrix_t  m;

    if (t->ne[0] != width || t->ne[1] != parts * (uint64_t) n
        || t->ne[2] * t->ne[3] != 1)
    {
        return llm_tower_shape_error(l, t, width, parts * n);
    }

    memset(&m, 0, sizeof(m));
    m.t = t;
    m.first = i * n;
    m.n = n;
    m.n_in = width;
    x->w = llm_tower_matrix(l, &m);

    return x->w ? LLM_OK : LLM_ERROR;
}


/* a clamp's bounds; *has: the file has it */

static int
llm_tower_clamp(llm_tower_load_t *l, const char *prefix, const char *end,
    llm_act_fn_t *fn, int *has)
{
    float                     *of[2] = { &fn->least, &fn->bound };
    uint32_t                   i;
    const llm_gguf_tensor_t   *t;

    static const char  *const ends[] = { "min", "max" };

    fn->kind = LLM_GLU_BOUND;
    fn->least = -INFINITY;
    fn->bound = INFINITY;

    for (i = 0; i < 2; i++) {
        t = llm_tower_find(l, "%s.%s_%s", prefix, end, ends[i]);

        if (t == NULL) {
            continue;
        }

        if (llm_tower_elements(t) != 1) {
            return llm_tower_shape_error(l, t, 1, 1);
        }

        llm_dequantize(t->type, t->data, of[i], 1);
        *has = 1;
    }

    return LLM_OK;
}


int
llm_tower_clamps(llm_tower_load_t *l, llm_tower_linear_t *x, uint32_t n_in,
    const char *prefix)
{
    if (llm_tower_clamp(l, prefix, "input", &x->before, &x->clamped) != LLM_OK
        || llm_tower_clamp(l, prefix, "output", &x->after, &x->clamped)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (x->clamped) {
        x->n_in = n_in;
        l->t->clamped = llm_max(l->t->clamped, n_in);
    }

    return LLM_OK;
}


int
llm_tower_linear(llm_tower_load_t *l, llm_tower_linear_t *x, uint32_t n_in,
    uint32_t *n_out, const char *prefix)
{
    uint64_t                  rows;
    llm_tower_matrix_t        m;
    const llm_gguf_tensor_t  *t;

    t = llm_tower_find(l, "%s.weight", prefix);

    if (t == NULL) {
        return llm_tower_missing(l, prefix);
    }

    rows = llm_tower_n_out(t);

    if (rows == 0 || rows > LLM_MAX_WIDTH || (*n_out && *n_out != rows)
        || llm_tower_elements(t) != rows * n_in)
    {
        return llm_tower_shape_error(l, t, n_in, *n_out);
    }

    *n_out = (uint32_t) rows;
    memset(&m, 0, sizeof(m));
    m.t = t;
    m.n = *n_out;
    m.n_in = n_in;
    x->w = llm_tower_matrix(l, &m);

    if (x->w == NULL
        || llm_tower_read_vec(l, &x->bias, *n_out, "%s.bias", prefix)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_tower_clamps(l, x, n_in, prefix);
}


void
llm_tower_free_linear(llm_tower_t *t, llm_tower_linear_t *l)
{
    if (l->w) {
        t->ops->weight_free(t->exec, l->w);
    }

    if (l->bias) {
        t->ops->vec_free(t->exec, l->bias);
    }
}


void
llm_tower_free_norm(llm_tower_t *t, llm_tower_norm_t *n)
{
    if (n->w) {
        t->ops->vec_free(t->exec, n->w);
    }

    if (n->bias) {
        t->ops->vec_free(t->exec, n->bias);
    }
}


int
llm_tower_norm(llm_tower_load_t *l, llm_tower_norm_t *x, uint32_t n,
    int required, const char *fmt, ...)
{
    char     name[LLM_TOWER_NAME];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(name, sizeof(name), fmt, args);
    va_end(args);

    if (llm_tower_read_vec(l, &x->w, n, "%s.weight", name) != LLM_OK
        || llm_tower_read_vec(l, &x->bias, n, "%s.bias", name) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return x->w == NULL && required ? llm_tower_missing(l, name) : LLM_OK;
}


int
llm_tower_table(llm_tower_load_t *l, uint32_t *n)
{
    uint64_t                  all;
    const llm_gguf_tensor_t  *t;

    t = llm_tower_find(l, "%c.position_embd.weight", l->t->part);

    if (t == NULL) {
        return llm_tower_missing(l, l->t->kind->sound
                                    ? "a.position_embd.weight"
                                    : "v.position_embd.weight");
    }

    all = llm_tower_elements(t);

    if (t->ne[0] != l->t->width || all / t->ne[0] > LLM_MAX_WIDTH) {
        return llm_tower_shape_error(l, t, l->t->width, 1);
    }

    *n = (uint32_t) (all / t->ne[0]);
    l->t->table = llm_tower_floats(l, t, 0);

    return l->t->table ? LLM_OK : LLM_ERROR;
}


int
llm_tower_square(llm_tower_load_t *l)
{
    uint32_t      n;
    llm_tower_t  *t = l->t;

    if (llm_tower_table(l, &n) != LLM_OK) {
        return LLM_ERROR;
    }

    n = n > t->kind->n_class ? n - t->kind->n_class : 0;
    t->table_side = (uint32_t) (sqrt(n) + 0.5);

    if (n == 0 || t->table_side * t->table_side != n
        || (t->info.side && t->table_side * t->info.patch != t->info.side))
    {
        return llm_fail(l->err, "%s: v.position_embd.weight: %u positions are "
                        "not those of the patches of a square%s",
                        llm_gguf_name(t->gguf), n,
                        t->info.side ? " of image_size" : "");
    }

    return LLM_OK;
}


/* the class row with its position, which is the table's first; the product of a
   patch's values, which are 0 here, adds its bias */

int
llm_tower_class(llm_tower_load_t *l)
{
    float                    *b;
    uint32_t                  c;
    llm_tower_t              *t = l->t;
    const llm_gguf_tensor_t  *row, *bias;

    row = llm_tower_find(l, "v.class_embd");
    bias = llm_tower_find(l, "v.patch_embd.bias");

    if (row == NULL) {
        return llm_tower_missing(l, "v.class_embd");
    }

    t->class_row = llm_tower_floats(l, row, t->width);
    b = bias ? llm_tower_floats(l, bias, t->width) : NULL;

    if (t->class_row == NULL || (bias && b == NULL)) {
        return LLM_ERROR;
    }

    for (c = 0; c < t->width; c++) {
        t->class_row[c] += t->table[c] - (b ? b[c] : 0);
    }

    return LLM_OK;
}


/* is it a tensor of an encoder of sound? */

static int
llm_tower_of_sound(const llm_gguf_tensor_t *t)
{
    return (t->name.len > 2 && memcmp(t->name.data, "a.", 2) == 0)
           || (t->name.len > 5 && memcmp(t->name.data, "mm.a.", 5) == 0);
}


/* tensors of the other encoder in the same file are not the tower's */

int
llm_tower_rest(llm_tower_load_t *l)
{
    size_t                    i;
    const llm_gguf_tensor_t  *t;

    for (i = 0; i < llm_gguf_n_tensors(l->t->gguf); i++) {
        t = llm_gguf_tensor(l->t->gguf, i);

        if (!l->t->used[i]
            && llm_tower_of_sound(t) == l->t->kind->sound)
        {
            return llm_fail(l->err, "%s: %.*s: a tensor that towers with the "
                            "projector %s do not have",
                            llm_gguf_name(l->t->gguf), (int) t->name.len,
                            t->name.data, l->t->info.projector);
        }
    }

    return LLM_OK;
}
