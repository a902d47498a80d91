/*
 * The GGUF reader: what it says of good files, and that it refuses bad ones
 * with the file's name, the field and the reason.
 */

#include "t/unit/gguf_build.h"
#include "t/unit/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>


/* two keys, two tensors: 8 floats, and a row of 64 as Q8_0 */

static void
good_file(llm_buf_t *b, uint32_t version, uint32_t alignment)
{
    int       i;
    float     f;
    uint64_t  ne[2];

    gguf_begin(b, version, 2, alignment ? 3 : 2);

    if (alignment) {
        gguf_kv_u32(b, "general.alignment", alignment);
    }

    gguf_kv_str(b, "general.architecture", "llama");
    gguf_kv_array(b, "tokens", LLM_GGUF_STR, 3);
    gguf_str(b, "a", 1);
    gguf_str(b, "", 0);
    gguf_str(b, "bcd", 3);

    ne[0] = 4;
    ne[1] = 2;
    gguf_tensor(b, "one", 2, ne, LLM_TYPE_F32, 0);
    ne[0] = 64;
    gguf_tensor(b, "two", 1, ne, LLM_TYPE_Q8_0, llm_max(alignment, 32));

    gguf_pad(b, alignment ? alignment : 32);

    for (i = 0; i < 8; i++) {
        f = (float) i;
        (void) llm_buf_add(b, &f, sizeof(f));
    }

    gguf_pad(b, alignment ? alignment : 32);

    for (i = 0; i < 68; i++) {
        (void) llm_buf_addc(b, (char) i);
    }
}


static void
test_good(uint32_t version, uint32_t alignment)
{
    float                     f;
    llm_buf_t                 b;
    llm_err_t                 err;
    llm_str_t                 s;
    llm_gguf_t               *g;
    const char               *p;
    const llm_gguf_kv_t      *kv;
    const llm_gguf_tensor_t  *t;

    err.msg[0] = '\0';
    good_file(&b, version, alignment);
    g = llm_gguf_open_memory(b.data, b.len, "x.gguf", &err);

    if (!ok(g != NULL, "version %u, alignment %u", version, alignment)) {
        printf("# %s\n", err.msg);
        llm_buf_free(&b);
        return;
    }

    is_str(llm_gguf_name(g), "x.gguf", "name");
    is_int(llm_gguf_version(g), version, "version");
    is_int(llm_gguf_size(g), b.len, "size");
    is_int(llm_gguf_n_kv(g), alignment ? 3 : 2, "keys");
    is_int(llm_gguf_n_tensors(g), 2, "tensors");

    is_int(llm_gguf_get_str(g, "general.architecture", &s, &err), LLM_OK,
           "a string");
    ok(s.len == 5 && memcmp(s.data, "llama", 5) == 0, "its value");

    kv = llm_gguf_find(g, "tokens");
    ok(kv && kv->type == LLM_GGUF_ARRAY && kv->item == LLM_GGUF_STR
       && kv->count == 3, "an array of strings");

    p = kv->data;
    s = llm_gguf_next_str(&p);
    ok(s.len == 1 && s.data[0] == 'a', "the first item");
    is_int(llm_gguf_next_str(&p).len, 0, "an empty item");
    s = llm_gguf_next_str(&p);
    ok(s.len == 3 && memcmp(s.data, "bcd", 3) == 0, "the last item");

    ok(llm_gguf_find(g, "token") == NULL
       && llm_gguf_find(g, "tokens2") == NULL, "keys that are not there");

    t = llm_gguf_find_tensor(g, "one");
    ok(t && t->n_dims == 2 && t->ne[0] == 4 && t->ne[1] == 2
       && t->ne[2] == 1 && t->ne[3] == 1, "dimensions, 1 where not given");
    is_int(t->size, 32, "bytes of 8 floats");
    memcpy(&f, (const char *) t->data + 28, sizeof(f));
    ok(f == 7.0f, "the last float");

    t = llm_gguf_find_tensor(g, "two");
    ok(t && t->type == LLM_TYPE_Q8_0 && t->size == 68, "two blocks of Q8_0");
    ok(((const char *) t->data)[67] == 67, "their last byte");
    ok(llm_gguf_tensor(g, 1) == t, "tensors by number");
    ok(llm_gguf_find_tensor(g, "three") == NULL, "a tensor that is not there");

    llm_gguf_close(g);
    llm_buf_free(&b);
}


static void
test_types(void)
{
    int           flag;
    float         f;
    int8_t        i8 = -7;
    double        f64 = 0.1, huge = 1e300;
    int64_t       i64 = -5;
    uint8_t       u8 = 200;
    int16_t       i16 = -300;
    uint32_t      u;
    uint64_t      u64 = 1ull << 40, top = UINT64_MAX;
    llm_buf_t     b;
    llm_err_t     err;
    llm_str_t     s;
    llm_gguf_t   *g;

    gguf_begin(&b, 3, 0, 12);
    gguf_kv(&b, "u8", LLM_GGUF_U8, &u8, 1);
    gguf_kv(&b, "i8", LLM_GGUF_I8, &i8, 1);
    gguf_kv(&b, "i16", LLM_GGUF_I16, &i16, 2);
    gguf_kv_u32(&b, "u32", 4000000000u);
    gguf_kv(&b, "i64", LLM_GGUF_I64, &i64, 8);
    gguf_kv(&b, "u64", LLM_GGUF_U64, &u64, 8);
    gguf_kv(&b, "top", LLM_GGUF_U64, &top, 8);
    gguf_kv(&b, "f64", LLM_GGUF_F64, &f64, 8);
    gguf_kv(&b, "huge", LLM_GGUF_F64, &huge, 8);
    gguf_kv_bool(&b, "yes", 1);
    gguf_kv_str(&b, "str", "x");
    gguf_kv_array(&b, "list", LLM_GGUF_I16, 2);
    (void) llm_buf_add(&b, &i16, 2);
    (void) llm_buf_add(&b, &i16, 2);

    g = llm_gguf_open_memory(b.data, b.len, "t", &err);
    if (!ok(g != NULL, "a file with every type and no tensor")) {
        return;
    }

    u = 1;
    is_int(llm_gguf_get_u32(g, "none", &u, &err), LLM_ABSENT, "no such key");
    is_int(u, 1, "and the value is untouched");
    is_int(llm_gguf_get_u32(g, "u8", &u, &err), LLM_OK, "u8 as integer");
    is_int(u, 200, "its value");
    is_int(llm_gguf_get_u32(g, "u32", &u, &err), LLM_OK, "u32");
    is_int(u, 4000000000u, "its value");
    is_int(llm_gguf_get_u32(g, "u64", &u, &err), LLM_ERROR, "2^40 is too big");
    is_str(err.msg, "t: u64: the value is not within 0 and 4294967295",
           "and why");
    is_int(llm_gguf_get_u32(g, "top", &u, &err), LLM_ERROR, "so is 2^64 - 1");
    is_int(llm_gguf_get_u32(g, "i8", &u, &err), LLM_ERROR, "-7 is too small");
    is_int(llm_gguf_get_u32(g, "f64", &u, &err), LLM_ERROR,
           "a float is no integer");
    is_str(err.msg, "t: f64: its type is f64, not an integer", "and why");
    is_int(llm_gguf_get_u32(g, "list", &u, &err), LLM_ERROR,
           "nor is an array");

    is_int(llm_gguf_get_f32(g, "f64", &f, &err), LLM_OK, "f64 as float");
    ok(f == 0.1f, "its value");
    is_int(llm_gguf_get_f32(g, "i16", &f, &err), LLM_OK, "i16 as float");
    ok(f == -300.0f, "its value");
    is_int(llm_gguf_get_f32(g, "i64", &f, &err), LLM_OK, "i64 as float");
    ok(f == -5.0f, "its value");
    is_int(llm_gguf_get_f32(g, "huge", &f, &err), LLM_ERROR,
           "1e300 does not fit");
    is_int(llm_gguf_get_f32(g, "str", &f, &err), LLM_ERROR,
           "a string is no number");

    is_int(llm_gguf_get_bool(g, "yes", &flag, &err), LLM_OK, "bool");
    is_int(flag, 1, "its value");
    is_int(llm_gguf_get_bool(g, "u8", &flag, &err), LLM_ERROR,
           "u8 is no bool");
    is_int(llm_gguf_get_str(g, "yes", &s, &err), LLM_ERROR,
           "a bool is no string");

    is_int(llm_gguf_item_int(llm_gguf_find(g, "list"), 1), -300,
           "an item of an array");
    ok(llm_gguf_item_double(llm_gguf_find(g, "list"), 0) == -300.0,
       "as double");
    ok(llm_gguf_item_double(llm_gguf_find(g, "f64"), 0) == 0.1,
       "item 0 of a scalar is itself");
    is_str(llm_gguf_kv(g, 9)->key.data[0] == 'y' ? "y" : "", "y",
           "keys keep the file's order");

    llm_gguf_close(g);
    llm_buf_free(&b);
}


#define DAMAGED  ": the file is damaged, or its download was cut"

/* the buffer is refused, and the message is exactly this */

static void
refused(llm_buf_t *b, const char *msg)
{
    llm_err_t    err;
    llm_gguf_t  *g;

    strcpy(err.msg, "no error");
    g = llm_gguf_open_memory(b->data, b->len, "f", &err);
    is_str(err.msg, msg, "%s", msg);
    ok(g == NULL, "refused");
    llm_gguf_close(g);
    llm_buf_free(b);
}


static void
test_bad_header(void)
{
    llm_buf_t  b;

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "GGML and so on, a longer text than a header");
    refused(&b, "f: this is text, which begins with 'GGML and so on, a longer "
            "text than a header', not a GGUF file: a server may have sent it "
            "in place of the file: download the file again");

    gguf_begin(&b, 1, 0, 0);
    refused(&b, "f: version: GGUF version 1 is not supported, 2 and 3 are: "
            "download a newer GGUF of the model");

    gguf_begin(&b, 0x03000000, 0, 0);
    refused(&b, "f: version: the file is big-endian, only little-endian "
            "files are supported: convert it with gguf_convert_endian.py of "
            "gguf-py");

    gguf_begin(&b, 3, 0, 0);
    b.len = 20;
    refused(&b, "f: metadata count: the file ends at byte 20, inside it" DAMAGED);

    gguf_begin(&b, 3, 1ull << 60, 0);
    gguf_pad(&b, 64);
    refused(&b, "f: tensor count: 1152921504606846976 tensors can't be in a "
            "file of 64 bytes" DAMAGED);

    gguf_begin(&b, 3, 0, UINT64_MAX);
    gguf_pad(&b, 64);
    refused(&b, "f: metadata count: 18446744073709551615 keys can't be in a "
            "file of 64 bytes" DAMAGED);
}


static void
test_bad_metadata(void)
{
    llm_buf_t  b;

    gguf_begin(&b, 3, 0, 1);
    gguf_u64(&b, UINT64_MAX - 3);
    gguf_pad(&b, 128);
    refused(&b, "f: a metadata key: a string of 18446744073709551612 bytes, "
            "and only 96 bytes are left" DAMAGED);

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_u32(&b, "", 1);
    refused(&b, "f: a metadata key: it is empty");

    gguf_begin(&b, 3, 0, 1);
    gguf_key(&b, "key", 13);
    gguf_u64(&b, 0);
    refused(&b, "f: key: the unknown value type 13");

    gguf_begin(&b, 3, 0, 1);
    gguf_key(&b, "a\nkey", LLM_GGUF_U64);
    gguf_u32(&b, 0);
    refused(&b, "f: a?key: the file ends at byte 45, inside it" DAMAGED);

    gguf_begin(&b, 3, 0, 1);
    gguf_key(&b, "key", LLM_GGUF_STR);
    gguf_u64(&b, 1000);
    refused(&b, "f: key: a string of 1000 bytes, and only 0 bytes are left"
            DAMAGED);

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_array(&b, "key", 99, 1);
    refused(&b, "f: key: an array of items of the unknown type 99");

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_array(&b, "key", LLM_GGUF_ARRAY, 1);
    gguf_u64(&b, 0);
    refused(&b, "f: key: arrays of arrays are not supported");

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_array(&b, "key", LLM_GGUF_U64, 1ull << 61);
    gguf_u64(&b, 0);
    refused(&b, "f: key: an array of 2305843009213693952 items, and only 8 "
            "bytes are left" DAMAGED);

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_array(&b, "key", LLM_GGUF_STR, 2);
    gguf_str(&b, "12345678", 8);
    refused(&b, "f: key: the file ends at byte 67, inside it" DAMAGED);

    gguf_begin(&b, 3, 0, 3);
    gguf_kv_u32(&b, "key", 1);
    gguf_kv_u32(&b, "kez", 1);
    gguf_kv_u32(&b, "key", 1);
    refused(&b, "f: key: the key is there twice");

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_u32(&b, "general.alignment", 48);
    refused(&b, "f: general.alignment: 48 is no power of two from 8 to "
            "1048576");

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_u32(&b, "general.alignment", 0);
    refused(&b, "f: general.alignment: 0 is no power of two from 8 to "
            "1048576");

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_str(&b, "general.alignment", "32");
    refused(&b, "f: general.alignment: its type is string, not an integer");
}


/* one tensor named t, and 4096 bytes of data */

static void
bad_tensor(uint32_t n_dims, uint64_t ne0, uint64_t ne1, uint32_t type,
    uint64_t offset, const char *msg)
{
    uint64_t   ne[5] = { ne0, ne1, 1, 1, 1 };
    llm_buf_t  b;

    gguf_begin(&b, 3, 1, 0);
    gguf_tensor(&b, "t", n_dims, ne, type, offset);
    gguf_pad(&b, 32);
    (void) llm_buf_reserve(&b, 4096);
    memset(b.data + b.len, 0, 4096);
    b.len += 4096;

    refused(&b, msg);
}


/* such a file is opened: whether its tensors are of use others judge */

static void
unknown_type(uint32_t type, const char *msg)
{
    uint64_t                  ne = 32;
    llm_buf_t                 b;
    llm_err_t                 err;
    llm_gguf_t               *g;
    const llm_gguf_tensor_t  *t;

    gguf_begin(&b, 3, 1, 0);
    gguf_tensor(&b, "t", 1, &ne, type, 0);
    gguf_pad(&b, 32);

    strcpy(err.msg, "no error");
    g = llm_gguf_open_memory(b.data, b.len, "f", &err);
    t = g ? llm_gguf_find_tensor(g, "t") : NULL;

    ok(t && t->size == 0 && t->data == NULL, "a tensor without bytes");
    ok(g && llm_gguf_types_known(g, &err) == LLM_ERROR, "its type is not known");
    is_str(err.msg, msg, "%s", msg);

    llm_gguf_close(g);
    llm_buf_free(&b);
}


static void
test_bad_tensors(void)
{
    uint64_t   ne[1] = { 8 };
    llm_buf_t  b;

    bad_tensor(5, 1, 1, 0, 0, "f: t: 5 dimensions, at most 4 are "
               "supported");
    bad_tensor(2, 32, 0, 0, 0, "f: t: dimension 1 is 0");
    bad_tensor(2, 1ull << 62, 4, 0, 0, "f: t: its dimensions overflow");
    bad_tensor(1, UINT64_MAX, 1, 0, 0, "f: t: its dimensions overflow");
    bad_tensor(2, 1ull << 31, 1ull << 31, 0, 0,
               "f: t: its dimensions overflow");
    unknown_type(28, "f: t: tensors of type F64 are not supported");
    unknown_type(4, "f: t: tensors of type 4 are not supported");
    unknown_type(UINT32_MAX,
                 "f: t: tensors of type 4294967295 are not supported");
    bad_tensor(2, 33, 2, LLM_TYPE_Q8_0, 0, "f: t: a row of 33 elements is no "
               "whole number of Q8_0 blocks of 32");
    bad_tensor(2, 128, 2, LLM_TYPE_Q4_K, 0, "f: t: a row of 128 elements is "
               "no whole number of Q4_K blocks of 256");
    bad_tensor(1, 32, 1, 0, 16,
               "f: t: its offset 16 is no multiple of the alignment 32");
    bad_tensor(1, 1025, 1, 0, 0, "f: the file was cut: it has 4160 bytes, and "
               "its tensors need 4164 (t is the first incomplete one): "
               "download it again");
    bad_tensor(1, 32, 1, 0, 4096 - 96, "f: the file was cut: it has 4160 "
               "bytes, and its tensors need 4192 (t is the first incomplete "
               "one): download it again");
    bad_tensor(1, 32, 1, 0, UINT64_MAX - 31, "f: t: 128 bytes at offset "
               "18446744073709551584, and the file has only 4160 bytes"
               DAMAGED);

    gguf_begin(&b, 3, 2, 0);
    gguf_tensor(&b, "t", 1, ne, 0, 0);
    gguf_tensor(&b, "t", 1, ne, 0, 0);
    gguf_pad(&b, 32);
    gguf_pad(&b, 256);
    refused(&b, "f: t: the tensor is there twice");

    gguf_begin(&b, 3, 1, 0);
    gguf_tensor(&b, "", 1, ne, 0, 0);
    refused(&b, "f: a tensor's name: it is empty");

    gguf_begin(&b, 3, 1, 0);
    gguf_tensor(&b, "t", 1, ne, 0, 0);
    refused(&b, "f: the file was cut: it has 57 bytes, and its tensors need "
            "96 (t is the first incomplete one): download it again");
}


/* no shorter file passes, whatever its length, and none is read beyond */

static void
test_truncated(void)
{
    char        *copy;
    size_t       n, passed;
    llm_buf_t    b;
    llm_err_t    err;
    llm_gguf_t  *g;

    good_file(&b, 3, 0);

    for (n = 0, passed = 0; n < b.len; n++) {

        /* of its exact size, so that a sanitizer sees any byte too many */

        copy = malloc(n + 1);
        memcpy(copy + 1, b.data, n);
        err.msg[0] = '\0';

        g = llm_gguf_open_memory(copy + 1, n, "f", &err);
        passed += g != NULL || strncmp(err.msg, "f: ", 3) != 0;
        llm_gguf_close(g);
        free(copy);
    }

    is_int(passed, 0, "each of %zu shorter files is refused", b.len);
    llm_buf_free(&b);
}


static void
test_files(void)
{
    int          fd;
    char         path[] = "/tmp/llm-gguf-XXXXXX";
    char         msg[600];
    llm_buf_t    b;
    llm_err_t    err;
    llm_gguf_t  *g;

    ok(llm_gguf_open("no/such/file", &err) == NULL, "no file");
    is_str(err.msg, "no/such/file: No such file or directory: a model is "
           "named by the path of its .gguf file (names of Hugging Face or "
           "Ollama are not looked up)",
           "and why");

    ok(llm_gguf_open("t", &err) == NULL, "a folder");
    is_str(err.msg, "t: a folder, not a regular file, and there is no GGUF "
           "file in it: name the model's .gguf file", "and why");

    fd = mkstemp(path);
    ok(fd != -1 && llm_gguf_open(path, &err) == NULL, "an empty file");
    snprintf(msg, sizeof(msg), "%s: this is an empty file, not a GGUF file: "
             "download it again", path);
    is_str(err.msg, msg, "and why");

    good_file(&b, 3, 64);
    ok(write(fd, b.data, b.len) == (ssize_t) b.len, "a file is written");
    close(fd);

    g = llm_gguf_open(path, &err);
    ok(g && llm_gguf_size(g) == b.len
       && llm_gguf_find_tensor(g, "two")->size == 68, "and mapped");

    llm_gguf_close(g);
    unlink(path);
    llm_buf_free(&b);

    ok(mkfifo(path, 0600) == 0 && llm_gguf_open(path, &err) == NULL,
       "a FIFO does not hold us up");
    unlink(path);
}


/* headers longer than what is read at once; nothing of the file is mapped */

static void
test_header(void)
{
    int          fd, missing;
    char        *big;
    char         path[] = "/tmp/llm-gguf-XXXXXX";
    uint64_t     ne[4] = { 8, 1, 1, 1 };
    uint32_t     i;
    llm_str_t    s;
    llm_buf_t    b;
    llm_err_t    err;
    llm_gguf_t  *g;
    size_t       len = 3 << 20;

    fd = mkstemp(path);
    big = malloc(len);
    memset(big, 'x', len);

    gguf_begin(&b, 3, 1, 3);
    gguf_kv_u32(&b, "first", 7);
    gguf_key(&b, "long", LLM_GGUF_STR);
    gguf_str(&b, big, len);
    gguf_kv_array(&b, "words", LLM_GGUF_STR, 200000);

    for (i = 0; i < 200000; i++) {
        gguf_str(&b, "word", 4);
    }

    gguf_tensor(&b, "t", 1, ne, 0, 0);
    gguf_pad(&b, 32);
    ok(write(fd, b.data, b.len) == (ssize_t) b.len
       && ftruncate(fd, (off_t) b.len + 32) == 0, "a file is written");

    memset(&err, 0, sizeof(err));
    g = llm_gguf_open_header(path, &err);
    ok(g != NULL, "its header is read");
    is_int(err.status, 0, "in several parts, which is no error");
    ok(g && llm_gguf_size(g) == b.len + 32, "with the file's size");
    ok(g && llm_gguf_get_str(g, "long", &s, &err) == LLM_OK && s.len == len
       && memcmp(s.data, big, len) == 0, "a long string");
    ok(g && llm_gguf_find(g, "words")->count == 200000, "an array");
    ok(g && llm_gguf_find_tensor(g, "t")->size == 32
       && llm_gguf_find_tensor(g, "t")->data == NULL, "no data");
    llm_gguf_close(g);

    /* whatever is cut off is told, as it is of a mapped file */

    for (i = 40, missing = 0; i-- > 0; ) {
        missing += ftruncate(fd, (off_t) (b.len * (size_t) i / 40)) != 0;
        err.msg[0] = '\0';
        g = llm_gguf_open_header(path, &err);
        missing += g != NULL || strncmp(err.msg, path, strlen(path)) != 0;
        llm_gguf_close(g);
    }

    is_int(missing, 0, "a header that is cut off is refused");

    close(fd);
    unlink(path);
    free(big);
    llm_buf_free(&b);
}


/* a mapped file whose pages go away */

static void
test_lost_pages(void)
{
    int          fd;
    char         path[] = "/tmp/llm-gguf-XXXXXX", msg[600];
    uint64_t     ne[4] = { 1 << 18, 1, 1, 1 };
    const char  *p;
    llm_buf_t    b;
    llm_err_t    err;
    llm_gguf_t  *g, *other;

    gguf_begin(&b, 3, 1, 0);
    gguf_tensor(&b, "t", 1, ne, 0, 0);
    gguf_pad(&b, 32);

    fd = mkstemp(path);
    ok(write(fd, b.data, b.len) == (ssize_t) b.len
       && ftruncate(fd, (off_t) b.len + (1 << 20)) == 0, "a file is written");

    other = llm_gguf_open("models/demo.gguf", &err);
    g = llm_gguf_open(path, &err);
    ok(g && llm_gguf_intact(g, &err) == LLM_OK, "it is intact");

    ok(ftruncate(fd, 8192) == 0, "it is truncated");
    p = llm_gguf_find_tensor(g, "t")->data;
    is_int(p[(1 << 20) - 1], 0, "what is lost reads as zeros");
    is_int(p[(1 << 20) - 2] + p[1 << 19], 0, "another page, too");
    ok(llm_gguf_intact(g, &err) == LLM_ERROR, "and is known");
    snprintf(msg, sizeof(msg), "%s: a page could not be read (the file was "
             "truncated or its disk failed)", strrchr(path, '/') + 1);
    is_str(err.msg, msg, "a message says it, by the file's own name");
    is_str(err.code, LLM_FILE_ERROR, "with its code");
    ok(other && llm_gguf_intact(other, &err) == LLM_OK,
       "another file is intact");

    llm_gguf_close(g);
    llm_gguf_close(other);

    ok(ftruncate(fd, (off_t) b.len + (1 << 20)) == 0, "it is whole again");
    g = llm_gguf_open(path, &err);
    ok(g && llm_gguf_intact(g, &err) == LLM_OK, "and opened: intact");
    llm_gguf_close(g);

    close(fd);
    unlink(path);
    llm_buf_free(&b);
}


int
main(void)
{
    test_good(3, 0);
    test_good(2, 0);
    test_good(3, 8);
    test_good(3, 4096);
    test_types();
    test_bad_header();
    test_bad_metadata();
    test_bad_tensors();
    test_truncated();
    test_files();
    test_header();
    test_lost_pages();

    return done_testing();
}
