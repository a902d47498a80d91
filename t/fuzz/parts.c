/*
 * Models in several files, of which some are missing, cut off or say
 * something else than the others: joined, with every tensor inside its file,
 * or refused with a message that names a file.
 *
 * The first byte of the input says how many parts are made, every four more
 * change one: which, what, and two bytes of how.
 */

#include "engine/gguf/gguf_internal.h"
#include "t/unit/gguf_build.h"

#define FUZZ_PARTS  4

typedef struct {
    uint32_t   no, count, tensors, blocks;
    uint8_t    keys;                    /* which of them are there */
    char       names[2][8];
    uint64_t   ne;
    size_t     keep;                    /* bytes */
    int        missing;
    char      *bytes;                   /* of the file, exactly */
} fuzz_part_t;

static fuzz_part_t  fuzz_parts[FUZZ_PARTS];


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void
fuzz_change(fuzz_part_t *p, const uint8_t *c)
{
    static const uint32_t  numbers[] = {
        0, 1, 2, 3, 4, 5, 6, 8, 511, 512, 513, 65535, 65536, 0xffffffff
    };

    switch (c[1] % 9) {
    case 0:  p->no = numbers[c[2] % llm_nelems(numbers)];       break;
    case 1:  p->count = numbers[c[2] % llm_nelems(numbers)];    break;
    case 2:  p->tensors = numbers[c[2] % llm_nelems(numbers)];  break;
    case 3:  p->blocks = c[2];                                  break;
    case 4:  p->keys = c[2];                                    break;
    case 5:  p->names[c[2] & 1][1] = (char) ('0' + c[3] % 8);   break;
    case 6:  p->ne = c[2];                                      break;
    case 7:  p->keep = c[2] | (size_t) c[3] << 8;               break;
    default: p->missing = 1;
    }
}


static void
fuzz_build(const fuzz_part_t *p, llm_buf_t *b)
{
    uint32_t  i, n;
    uint64_t  ne[4] = { p->ne, 1, 1, 1 };

    n = (uint32_t) __builtin_popcount(p->keys & 31);
    gguf_begin(b, 3, 2, n);

    if (p->keys & 1) {
        gguf_kv_u32(b, "split.no", p->no);
    }

    if (p->keys & 2) {
        gguf_kv_u32(b, "split.count", p->count);
    }

    if (p->keys & 4) {
        gguf_kv_u32(b, "split.tensors.count", p->tensors);
    }

    if (p->keys & 8) {
        gguf_kv_u32(b, "x.block_count", p->blocks);
    }

    if (p->keys & 16) {
        gguf_kv_array(b, "x.words", LLM_GGUF_STR, 2);
        gguf_str(b, "ab", 2);
        gguf_str(b, "cd", p->keys & 32 ? 1 : 2);
    }

    for (i = 0; i < 2; i++) {
        gguf_tensor(b, p->names[i], 1, ne, 0, 64 * i);
    }

    gguf_pad(b, 32);

    for (i = 0; i < 128; i++) {
        (void) llm_buf_addc(b, (char) i);
    }
}


/* x-0000N-of-0000M.gguf: part N, if there is one */

static llm_gguf_t *
fuzz_open(const char *path, llm_err_t *err)
{
    unsigned      n;
    size_t        len;
    llm_buf_t     b;
    llm_gguf_t   *g;
    fuzz_part_t  *p;

    if (sscanf(path, "x-%u", &n) != 1 || n < 1 || n > FUZZ_PARTS
        || fuzz_parts[n - 1].missing || fuzz_parts[n - 1].bytes)
    {
        (void) llm_fail(err, "%s: open: No such file or directory", path);
        return NULL;
    }

    p = &fuzz_parts[n - 1];
    fuzz_build(p, &b);
    len = llm_min(p->keep, b.len);

    /* of exactly its size, so that no read beyond goes unseen */

    p->bytes = malloc(len ? len : 1);

    if (p->bytes == NULL) {
        abort();
    }

    memcpy(p->bytes, b.data, len);
    llm_buf_free(&b);
    g = llm_gguf_open_memory(p->bytes, len, path, err);

    return g;
}


/* every tensor can be read, and found by its name */

static void
fuzz_read(const llm_gguf_t *g)
{
    size_t                    i, k, sum;
    char                      name[16];
    const llm_gguf_tensor_t  *t;

    for (i = 0, sum = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);

        for (k = 0; k < t->size; k++) {
            sum += ((const uint8_t *) t->data)[k];
        }

        snprintf(name, sizeof(name), "%.*s", (int) t->name.len, t->name.data);

        if (llm_gguf_find_tensor(g, name) != t) {
            abort();
        }
    }

    if (sum > 255 * 128 * FUZZ_PARTS || llm_gguf_size(g) == 0) {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char          path[64];
    size_t        i;
    uint32_t      n;
    llm_err_t     err;
    llm_gguf_t   *g;
    fuzz_part_t  *p;

    if (size == 0) {
        return 0;
    }

    n = data[0] % FUZZ_PARTS + 1;

    for (i = 0; i < FUZZ_PARTS; i++) {
        p = &fuzz_parts[i];
        *p = (fuzz_part_t) { (uint32_t) i, n, 2 * n, 1, i ? 7 : 15,
                             { "a0", "b0" }, 8, SIZE_MAX, i >= n, NULL };
        p->names[0][1] = p->names[1][1] = (char) ('0' + i);
    }

    for (i = 1; i + 4 <= size; i += 4) {
        fuzz_change(&fuzz_parts[data[i] % FUZZ_PARTS], data + i);
    }

    snprintf(path, sizeof(path), "x-%05u-of-%05u.gguf", 1,
             data[0] & 128 ? fuzz_parts[0].count % 100000 : n);

    err.msg[0] = '\0';
    g = fuzz_open(path, &err);

    if (g && llm_gguf_join(g, fuzz_open, &err) == LLM_OK) {
        fuzz_read(g);

    } else if (strncmp(err.msg, "x-", 2) != 0) {
        abort();
    }

    llm_gguf_close(g);

    for (i = 0; i < FUZZ_PARTS; i++) {
        free(fuzz_parts[i].bytes);
    }

    return 0;
}
