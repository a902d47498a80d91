/*
 * Models in several files: the tensors of all are found by the first, what is
 * missing or differs is refused by name, and a page that is lost in any of
 * them is known.
 */

#include "t/unit/gguf_build.h"
#include "t/unit/tap.h"

#include <fcntl.h>
#include <unistd.h>

#define PARTS  3

/* what a part says; each one has two tensors of eight floats, a and b */
typedef struct {
    int          no, count, total;      /* -1: the key is left out */
    const char  *arch;                  /* NULL: likewise */
    const char  *a, *b;
    int          blocks;                /* of test.block_count; 0: left out */
    int          words;                 /* the value of test.words; likewise */
    size_t       keep;                  /* bytes of the file, 0: all */
    int          missing;
} part_t;

static char  dir[] = "/tmp/llm-parts-XXXXXX";


static const part_t  good[PARTS] = {
    { 0, 3, 6, "test", "a.0", "b.0", 4, 1, 0, 0 },
    { 1, 3, 6, NULL, "a.1", "b.1", 0, 0, 0, 0 },
    { 2, 3, 6, "test", "a.2", "b.2", 4, 1, 0, 0 }
};


/* without its files nothing can be tested */

static void
bail(const char *why)
{
    printf("Bail out! %s\n", why);
    exit(1);
}


static const char *
path_of(const char *name, uint32_t i, uint32_t count)
{
    static char  path[4][128];
    static int   next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof(path[next]), "%s/%s-%05u-of-%05u.gguf", dir,
             name, i + 1, count);

    return path[next];
}


static void
put_file(const char *path, const llm_buf_t *b, size_t len)
{
    int  fd;

    fd = open(path, O_WRONLY|O_CREAT|O_TRUNC, 0600);

    if (fd == -1 || write(fd, b->data, len) != (ssize_t) len) {
        bail("the file cannot be written");
    }

    close(fd);
}


/* writes part i as p says; its floats are 100 * i + 0 .. 15 */

static void
put_part(const char *path, uint32_t i, const part_t *p)
{
    float      f;
    uint64_t   ne[4] = { 8, 1, 1, 1 };
    uint32_t   k, n;
    llm_buf_t  b;

    (void) unlink(path);

    if (p->missing) {
        return;
    }

    n = (p->no >= 0) + (p->count >= 0) + (p->total >= 0) + (p->arch != NULL)
        + (p->blocks != 0) + (p->words != 0);

    gguf_begin(&b, 3, 2, n);

    if (p->arch) {
        gguf_kv_str(&b, "general.architecture", p->arch);
    }

    if (p->no >= 0) {
        gguf_kv_u32(&b, "split.no", (uint32_t) p->no);
    }

    if (p->count >= 0) {
        gguf_kv_u32(&b, "split.count", (uint32_t) p->count);
    }

    if (p->total >= 0) {
        gguf_kv_u32(&b, "split.tensors.count", (uint32_t) p->total);
    }

    if (p->blocks) {
        gguf_kv_u32(&b, "test.block_count", (uint32_t) p->blocks);
    }

    if (p->words) {
        gguf_kv_array(&b, "test.words", LLM_GGUF_STR, 2);
        gguf_str(&b, "one", 3);
        gguf_str(&b, p->words == 1 ? "two" : "six", 3);
    }

    gguf_tensor(&b, p->a, 1, ne, 0, 0);
    gguf_tensor(&b, p->b, 1, ne, 0, 32);
    gguf_pad(&b, 32);

    for (k = 0; k < 16; k++) {
        f = (float) (100 * i + k);
        (void) llm_buf_add(&b, &f, sizeof(f));
    }

    put_file(path, &b, p->keep ? p->keep : b.len);
    llm_buf_free(&b);
}


static void
put_good(const char *name)
{
    uint32_t  i;

    for (i = 0; i < PARTS; i++) {
        put_part(path_of(name, i, PARTS), i, &good[i]);
    }
}


static void
test_good(void)
{
    char                      name[8];
    float                     f;
    uint32_t                  i, right;
    llm_err_t                 err;
    llm_gguf_t               *g;
    const llm_gguf_tensor_t  *t;

    put_good("good");
    g = llm_gguf_open(path_of("good", 0, PARTS), &err);

    if (g == NULL) {
        bail(err.msg);
    }

    is_int(llm_gguf_n_files(g), PARTS, "a model in three files");
    is_int(llm_gguf_n_tensors(g), 6, "with the tensors of all");
    is_int(llm_gguf_n_kv(g), 6, "and the keys of the first");

    for (i = 0, right = 0; i < PARTS; i++) {
        snprintf(name, sizeof(name), "b.%u", i);
        t = llm_gguf_find_tensor(g, name);

        if (t) {
            memcpy(&f, t->data, sizeof(f));
            right += f == (float) (100 * i + 8);
        }
    }

    is_int(right, PARTS, "each tensor has its data");
    ok(llm_gguf_size(g) > 3 * 64 && llm_gguf_intact(g, &err) == LLM_OK,
       "they are intact, %zu bytes", llm_gguf_size(g));
    llm_gguf_close(g);

    g = llm_gguf_open_header(path_of("good", 0, PARTS), &err);
    ok(g && llm_gguf_n_tensors(g) == 6
       && llm_gguf_find_tensor(g, "a.2") != NULL
       && llm_gguf_find_tensor(g, "a.2")->data == NULL,
       "headers alone: all tensors, no data");
    llm_gguf_close(g);
}


/* a message as one wants it, with the folder left out */

static void
refused(const char *path, const char *want, const char *what)
{
    int          i;
    char         seen[2][512];
    llm_err_t    err;
    llm_gguf_t  *g;

    for (i = 0; i < 2; i++) {
        err.msg[0] = '\0';
        g = i ? llm_gguf_open_header(path, &err) : llm_gguf_open(path, &err);

        if (g) {
            llm_gguf_close(g);
            ok(0, "%s: refused", what);
            return;
        }

        llm_hide_folder(err.msg, path);
        snprintf(seen[i], sizeof(seen[i]), "%s", err.msg);
    }

    is_str(seen[0], want, "%s: refused", what);
    is_str(seen[1], want, "%s: its header, too", what);
}


static void
test_bad(void)
{
    size_t       i, k;
    part_t       p;
    const char  *path;

    static const struct {
        const char  *what;
        uint32_t     which;
        part_t       part;
        const char  *want;
    } cases[] = {
        { "a part that is missing", 1,
          { 1, 3, 6, NULL, "a.1", "b.1", 0, 0, 0, 1 },
          "m-00002-of-00003.gguf: No such file or directory: the model is in "
          "3 files, all of which must be in its folder" },
        { "a part that is cut off", 2,
          { 2, 3, 6, "test", "a.2", "b.2", 4, 1, 30, 0 },
          "m-00003-of-00003.gguf: metadata count: 6 keys can't be in a file "
          "of 30 bytes: the file is damaged, or its download was cut" },
        { "a part of three bytes", 1,
          { 1, 3, 6, NULL, "a.1", "b.1", 0, 0, 3, 0 },
          "m-00002-of-00003.gguf: magic: the file ends at byte 3, inside it: "
          "the file is damaged, or its download was cut" },
        { "another count", 1,
          { 1, 4, 6, NULL, "a.1", "b.1", 0, 0, 0, 0 },
          "m-00002-of-00003.gguf: split.no: it is part 2 of 4, not 2 of 3" },
        { "another number", 1,
          { 2, 3, 6, NULL, "a.1", "b.1", 0, 0, 0, 0 },
          "m-00002-of-00003.gguf: split.no: it is part 3 of 3, not 2 of 3" },
        { "no part at all", 2,
          { -1, -1, -1, NULL, "a.2", "b.2", 0, 0, 0, 0 },
          "m-00003-of-00003.gguf: split.count: it is not a part of a model, "
          "but m-00001-of-00003.gguf has 3 parts" },
        { "of a model of other size", 1,
          { 1, 3, 7, NULL, "a.1", "b.1", 0, 0, 0, 0 },
          "m-00002-of-00003.gguf: split.tensors.count: its model has 7 "
          "tensors, but that of m-00001-of-00003.gguf has 6" },
        { "another architecture", 1,
          { 1, 3, 6, "best", "a.1", "b.1", 0, 0, 0, 0 },
          "m-00002-of-00003.gguf: general.architecture: "
          "m-00001-of-00003.gguf, the first part, has another value" },
        { "another value", 2,
          { 2, 3, 6, NULL, "a.2", "b.2", 5, 0, 0, 0 },
          "m-00003-of-00003.gguf: test.block_count: m-00001-of-00003.gguf, "
          "the first part, has another value" },
        { "another word", 2,
          { 2, 3, 6, NULL, "a.2", "b.2", 4, 2, 0, 0 },
          "m-00003-of-00003.gguf: test.words: m-00001-of-00003.gguf, "
          "the first part, has another value" },
        { "a key that the first does not have", 0,
          { 0, 3, 6, "test", "a.0", "b.0", 0, 1, 0, 0 },
          "m-00003-of-00003.gguf: test.block_count: m-00001-of-00003.gguf, "
          "the first part, does not have the key" },
        { "a tensor that another part has", 2,
          { 2, 3, 6, NULL, "b.1", "b.2", 0, 0, 0, 0 },
          "m-00003-of-00003.gguf: b.1: the tensor is in "
          "m-00002-of-00003.gguf, too" },
        { "a tensor that the part has twice", 1,
          { 1, 3, 6, NULL, "a.1", "a.1", 0, 0, 0, 0 },
          "m-00002-of-00003.gguf: a.1: the tensor is there twice" },
        { "no part 3", 0,
          { 3, 3, 6, "test", "a.0", "b.0", 4, 1, 0, 0 },
          "m-00001-of-00003.gguf: split.no: part 3 (from 0) of 3 parts" },
        { "too many parts", 0,
          { 0, 60000, 6, "test", "a.0", "b.0", 4, 1, 0, 0 },
          "m-00001-of-00003.gguf: split.count: 60000 parts, at most 512 are "
          "supported" },
        { "a name of another count", 0,
          { 0, 2, 6, "test", "a.0", "b.0", 4, 1, 0, 0 },
          "m-00001-of-00003.gguf: split.no: it is part 1 of 2, and its name "
          "does not end in \"-00001-of-00002.gguf\", which is needed to find "
          "the other parts" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        put_good("m");
        put_part(path_of("m", cases[i].which, PARTS), cases[i].which,
                 &cases[i].part);
        refused(path_of("m", 0, PARTS), cases[i].want, cases[i].what);
    }

    /* all agree on a number of tensors that they do not have */

    for (k = 0; k < PARTS; k++) {
        p = good[k];
        p.total = 9;
        put_part(path_of("m", k, PARTS), k, &p);
    }

    refused(path_of("m", 0, PARTS), "m-00001-of-00003.gguf: "
            "split.tensors.count: 9 tensors, and its 3 parts have 6",
            "tensors that no part has");

    put_good("m");
    refused(path_of("m", 1, PARTS), "m-00002-of-00003.gguf: split.no: it is "
            "part 2 of 3; the model is named by its first part, "
            "m-00001-of-00003.gguf", "the second part");

    path = path_of("m", 0, 1);
    put_part(path, 0, &good[1]);
    refused(path, "m-00001-of-00001.gguf: split.no: it is part 2 of 3, and "
            "its name does not end in \"-00002-of-00003.gguf\", which is "
            "needed to find the other parts", "a part by another name");
}


static void
test_one(void)
{
    char         path[128];
    size_t       i;
    llm_err_t    err;
    llm_gguf_t  *g;

    static const part_t  whole[] = {
        { 0, 1, 2, "test", "a.0", "b.0", 4, 1, 0, 0 },
        { 0, 0, 9, "test", "a.0", "b.0", 4, 1, 0, 0 },
        { -1, -1, -1, "test", "a.0", "b.0", 4, 1, 0, 0 }
    };

    snprintf(path, sizeof(path), "%s/whole.gguf", dir);

    for (i = 0; i < llm_nelems(whole); i++) {
        put_part(path, 0, &whole[i]);
        g = llm_gguf_open(path, &err);
        ok(g && llm_gguf_n_files(g) == 1, "split.count %d: one file",
           whole[i].count);
        llm_gguf_close(g);
    }
}


/* a part in the middle loses its pages */

static void
test_lost_pages(void)
{
    float                     f;
    uint64_t                  ne[4] = { 1 << 18, 1, 1, 1 };
    llm_buf_t                 b;
    llm_err_t                 err;
    llm_gguf_t               *g;
    const char               *path;
    const llm_gguf_tensor_t  *t;

    put_good("lost");
    path = path_of("lost", 1, PARTS);

    gguf_begin(&b, 3, 2, 3);
    gguf_kv_u32(&b, "split.no", 1);
    gguf_kv_u32(&b, "split.count", PARTS);
    gguf_kv_u32(&b, "split.tensors.count", 6);
    gguf_tensor(&b, "a.1", 1, ne, 0, 0);
    gguf_tensor(&b, "b.1", 1, ne, 0, 0);
    gguf_pad(&b, 32);
    put_file(path, &b, b.len);

    if (truncate(path, (off_t) b.len + (1 << 20)) != 0) {
        bail("the file cannot be extended");
    }

    g = llm_gguf_open(path_of("lost", 0, PARTS), &err);

    if (g == NULL) {
        bail(err.msg);
    }

    ok(llm_gguf_intact(g, &err) == LLM_OK, "three files, all intact");

    ok(truncate(path, 4096) == 0, "the second is truncated");
    t = llm_gguf_find_tensor(g, "a.1");
    memcpy(&f, (const char *) t->data + (1 << 19), sizeof(f));
    ok(f == 0, "what is lost reads as zeros");
    ok(llm_gguf_intact(g, &err) == LLM_ERROR, "and is known");
    is_str(err.code, LLM_FILE_ERROR, "with its code");
    llm_hide_folder(err.msg, path);
    is_str(err.msg, "lost-00002-of-00003.gguf: a page could not be read (the "
           "file was truncated or its disk failed)", "and the part's name");

    llm_gguf_close(g);
    llm_buf_free(&b);
}


static void
remove_all(void)
{
    size_t                    i, k;
    char                      path[128];
    static const char *const  names[] = { "good", "m", "lost" };

    for (i = 0; i < llm_nelems(names); i++) {
        for (k = 0; k < PARTS; k++) {
            (void) unlink(path_of(names[i], k, PARTS));
        }
    }

    (void) unlink(path_of("m", 0, 1));
    snprintf(path, sizeof(path), "%s/whole.gguf", dir);
    (void) unlink(path);
    (void) rmdir(dir);
}


int
main(void)
{
    if (mkdtemp(dir) == NULL) {
        bail("no folder for the files");
    }

    test_good();
    test_bad();
    test_one();
    test_lost_pages();
    remove_all();

    return done_testing();
}
