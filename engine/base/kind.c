/*
 * Formats of files by their first bytes; see kind.h.
 *
 * A format with a fixed signature is a row of a table, each other format has a
 * function.  The order matters: certain formats come before likely ones, and
 * plain text is last.
 */

#include "engine/base/kind.h"
#include "engine/base/utf8.h"

#include <stdio.h>
#include <strings.h>

#define LLM_KIND_HEAD   ((size_t) 64 << 10)
#define LLM_KIND_SHORT  4096            /* most bytes of a file that may be an
                                           error message of a server */

static const char  llm_advice_again[] = "download it again";

static const char  llm_advice_convert[] =
    "convert its folder to GGUF with convert_hf_to_gguf.py of llama.cpp, or "
    "download a GGUF of the model";

static const char  llm_advice_gguf[] =
    "download a GGUF of the model";

static const char  llm_advice_unpack[] =
    "unpack it and name the .gguf file in it, if there is one";

static const char  llm_advice_file[] =
    "name the model's .gguf file";

static const char  llm_advice_page[] =
    "it was sent in place of the file: download the file itself (from Hugging "
    "Face by the address with /resolve/, not /blob/)";

static const char  llm_advice_sent[] =
    "a server may have sent it in place of the file: download the file again";

static const char  llm_advice_adapter[] =
    "merge it into its model with llama-export-lora of llama.cpp, and name "
    "the result";


typedef struct {
    uint16_t     at;
    uint16_t     len;
    const char  *mark;
    const char  *what;
    const char  *advice;
} llm_kind_mark_t;

#define llm_mark(at, s, what, advice)  { at, sizeof(s) - 1, s, what, advice }

static const llm_kind_mark_t  llm_kind_marks[] = {

    llm_mark(0, "GGUF", "a GGUF file", llm_advice_file),
    llm_mark(0, "FUGG", "a GGUF file of a big-endian machine",
             "convert it with gguf_convert_endian.py of gguf-py, or download "
             "a little-endian one"),

    /* archives */

    llm_mark(0, "\x1f\x8b", "a gzip file", llm_advice_unpack),
    llm_mark(0, "BZh", "a bzip2 file", llm_advice_unpack),
    llm_mark(0, "\xfd" "7zXZ\0", "an xz file", llm_advice_unpack),
    llm_mark(0, "\x28\xb5\x2f\xfd", "a Zstandard file", llm_advice_unpack),
    llm_mark(0, "\x04\x22\x4d\x18", "an LZ4 file", llm_advice_unpack),
    llm_mark(0, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", llm_advice_unpack),
    llm_mark(0, "Rar!\x1a\x07", "a RAR archive", llm_advice_unpack),
    llm_mark(257, "ustar", "a tar archive", llm_advice_unpack),
    llm_mark(0, "!<arch>\n", "an ar archive", llm_advice_unpack),

    /* models of other programs */

    llm_mark(0, "fmgg", "a GGMF file, a format before GGUF", llm_advice_gguf),
    llm_mark(0, "tjgg", "a GGJT file, a format before GGUF", llm_advice_gguf),
    llm_mark(0, "algg", "a LoRA adapter in GGLA, a format before GGUF",
             llm_advice_file),
    llm_mark(0, "nsgg", "a saved session of llama.cpp", llm_advice_file),
    llm_mark(0, "qsgg", "a saved sequence of llama.cpp", llm_advice_file),
    llm_mark(0, "ggml", "a GGML file of a big-endian machine",
             llm_advice_gguf),
    llm_mark(0, "ggjt", "a GGJT file of a big-endian machine",
             llm_advice_gguf),
    llm_mark(0, "\x89HDF\r\n\x1a\n", "an HDF5 file (Keras weights)",
             llm_advice_gguf),
    llm_mark(0, "\x93NUMPY", "a NumPy array", llm_advice_gguf),
    llm_mark(4, "TFL3", "a TensorFlow Lite model", llm_advice_gguf),

    /* programs */

    llm_mark(0, "MZqFpD", "a llamafile, a program with a model in it",
             "take the .gguf file out of it with unzip, and name that"),
    llm_mark(0, "\x7f" "ELF", "a program or library of Linux or another Unix",
             llm_advice_file),
    llm_mark(0, "MZ", "a program or library of Windows", llm_advice_file),
    llm_mark(0, "\xcf\xfa\xed\xfe", "a program or library of macOS",
             llm_advice_file),
    llm_mark(0, "\xce\xfa\xed\xfe", "a program or library of macOS",
             llm_advice_file),
    llm_mark(0, "\xca\xfe\xba\xbe", "a program or library of macOS, or a Java "
             "class", llm_advice_file),
    llm_mark(0, "#!", "a script", llm_advice_file),

    /* other things */

    llm_mark(0, "%PDF-", "a PDF document", llm_advice_file),
    llm_mark(0, "\x89PNG", "a PNG picture", llm_advice_file),
    llm_mark(0, "\xff\xd8\xff", "a JPEG picture", llm_advice_file),
    llm_mark(0, "GIF8", "a GIF picture", llm_advice_file),
    llm_mark(8, "WEBP", "a WebP picture", llm_advice_file),
    llm_mark(8, "WAVE", "a sound file (WAV)", llm_advice_file),
    llm_mark(0, "fLaC", "a sound file (FLAC)", llm_advice_file),
    llm_mark(0, "ID3", "a sound file (MP3)", llm_advice_file),
    llm_mark(0, "OggS", "a sound file (Ogg)", llm_advice_file),
    llm_mark(4, "ftyp", "an MP4 file", llm_advice_file),
    llm_mark(0, "PAR1", "a Parquet table", llm_advice_file),
    llm_mark(0, "SQLite format 3", "an SQLite database", llm_advice_file)
};


static int
llm_kind_is(llm_file_kind_t *k, const char *advice, const char *fmt, ...)
    llm_printf_like(3, 4);

static int
llm_kind_is(llm_file_kind_t *k, const char *advice, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vsnprintf(k->what, sizeof(k->what), fmt, args);
    va_end(args);

    k->advice = advice;

    return 1;
}


static int
llm_kind_begins(llm_str_t s, const char *text)
{
    size_t  len;

    len = strlen(text);

    return s.len >= len && strncasecmp(s.data, text, len) == 0;
}


static int
llm_kind_has(llm_str_t s, const char *text)
{
    return memmem(s.data, s.len, text, strlen(text)) != NULL;
}


static uint32_t
llm_kind_u32(llm_str_t s, size_t at)
{
    uint32_t  v;

    v = 0;

    if (s.len >= at + sizeof(v)) {
        memcpy(&v, s.data + at, sizeof(v));
    }

    return v;
}


/* removes a byte order mark and white space at the beginning */

static llm_str_t
llm_kind_trim(llm_str_t s)
{
    if (s.len >= 3 && memcmp(s.data, "\xef\xbb\xbf", 3) == 0) {
        s.data += 3;
        s.len -= 3;
    }

    while (s.len && memchr(" \t\r\n", s.data[0], 4)) {
        s.data++;
        s.len--;
    }

    return s;
}


/* the beginning of the first line, safe for a message */

static void
llm_kind_line(llm_str_t s, char *out, size_t size)
{
    size_t  len;

    for (len = 0; len < s.len && s.data[len] != '\n' && s.data[len] != '\r';
         len++) { /* void */ }

    (void) llm_clean(out, size, s.data, len);
}


/* ---- pointer files: Git LFS, Xet, git-annex ---- */

static int
llm_kind_pointer(llm_str_t s, llm_file_kind_t *k)
{
    const char          *size;
    unsigned long long   n;

    if (llm_kind_begins(s, "version https://git-lfs.github.com/spec/")
        || llm_kind_begins(s, "version https://hawser.github.com/spec/"))
    {
        size = memmem(s.data, s.len, "\nsize ", 6);
        n = 0;

        for (size = size ? size + 6 : NULL;
             size && size < s.data + s.len && *size >= '0' && *size <= '9'
             && n < UINT64_MAX / 100;
             size++)
        {
            n = n * 10 + (unsigned long long) (*size - '0');
        }

        return llm_kind_is(k, "run \"git lfs pull\" in its repository, or "
                           "download the file itself", "a Git LFS pointer, "
                           "which stands for a file of %llu bytes", n);
    }

    if (llm_kind_begins(s, "# xet version")) {
        return llm_kind_is(k, llm_advice_again, "a pointer of Hugging Face's "
                           "Xet storage, which stands for the file");
    }

    if (s.len < LLM_KIND_SHORT && llm_kind_has(s, "/annex/objects/")) {
        return llm_kind_is(k, "run \"git annex get\" in its repository",
                           "a git-annex pointer, which stands for the file");
    }

    return 0;
}


/* ---- models of other programs ---- */

/* ZIP files; PyTorch checkpoints are ZIP files, too */

static int
llm_kind_zip(llm_str_t s, llm_file_kind_t *k)
{
    if (s.len < 4 || memcmp(s.data, "PK", 2) != 0
        || (memcmp(s.data + 2, "\3\4", 2) != 0
            && memcmp(s.data + 2, "\5\6", 2) != 0))
    {
        return 0;
    }

    if (llm_kind_has(s, "data.pkl") || llm_kind_has(s, "/byteorder")
        || llm_kind_has(s, "/.format_version"))
    {
        return llm_kind_is(k, llm_advice_convert, "a PyTorch checkpoint");
    }

    if (llm_kind_has(s, ".npy")) {
        return llm_kind_is(k, llm_advice_gguf, "an archive of NumPy arrays");
    }

    return llm_kind_is(k, llm_advice_unpack, "a ZIP archive");
}


/* safetensors: 8 bytes with the length of a header, then the header in JSON */

static int
llm_kind_safetensors(llm_str_t s, uint64_t len, llm_file_kind_t *k)
{
    uint64_t  n;

    if (s.len < 10 || s.data[8] != '{') {
        return 0;
    }

    memcpy(&n, s.data, sizeof(n));

    if (n < 2 || n > ((uint64_t) 1 << 32)
        || (s.data[9] != '"' && s.data[9] != '}' && s.data[9] != ' '))
    {
        return 0;
    }

    if (llm_kind_has(s, ".lora_A.") || llm_kind_has(s, ".lora_B.")) {
        return llm_kind_is(k, llm_advice_adapter, "a LoRA adapter in "
                           "safetensors");
    }

    return llm_kind_is(k, n > len - 8 ? llm_advice_again : llm_advice_convert,
                       "a safetensors file%s", n > len - 8 ? " that was cut"
                                                           : "");
}


static int
llm_kind_pickle(llm_str_t s, llm_file_kind_t *k)
{
    if (s.len < 4 || s.data[0] != '\x80' || s.data[1] < 2 || s.data[1] > 5) {
        return 0;
    }

    if (memcmp(s.data + 2, "\x8a\x0a", 2) == 0 || llm_kind_has(s, "torch")) {
        return llm_kind_is(k, llm_advice_convert, "a PyTorch checkpoint (a "
                           "Python pickle)");
    }

    return llm_kind_is(k, llm_advice_convert, "a Python pickle");
}


/* GGML, the format before GGUF; models of whisper.cpp have the same signature,
   and the number of mel bands as the tenth 32-bit number after it */

static int
llm_kind_ggml(llm_str_t s, llm_file_kind_t *k)
{
    uint32_t  mels;

    if (s.len < 4 || memcmp(s.data, "lmgg", 4) != 0) {
        return 0;
    }

    mels = llm_kind_u32(s, 4 + 9 * 4);

    if (mels == 80 || mels == 128) {
        return llm_kind_is(k, llm_advice_file, "a speech model of "
                           "whisper.cpp");
    }

    return llm_kind_is(k, llm_advice_gguf, "a GGML file, the format before "
                       "GGUF");
}


/* an importance matrix of llama.cpp in its format before GGUF: the number of
   entries, the length of the first tensor's name, the name */

static int
llm_kind_imatrix(llm_str_t s, llm_file_kind_t *k)
{
    uint32_t   n, len;
    llm_str_t  name;

    n = llm_kind_u32(s, 0);
    len = llm_kind_u32(s, 4);

    if (s.len < 16 || n == 0 || n > 100000 || len < 5 || len > 128
        || len > s.len - 8)
    {
        return 0;
    }

    name.data = s.data + 8;
    name.len = len;

    return (llm_kind_begins(name, "blk.") || llm_kind_begins(name, "output"))
           && llm_kind_is(k, "name the model that was made with it",
                          "an importance matrix, which is for making "
                          "quantised models");
}


/* protocol buffers: tags and values, so that the format is likely, not
   certain */

static int
llm_kind_protobuf(llm_str_t s, llm_file_kind_t *k)
{
    llm_str_t  head;

    head = s;
    head.len = llm_min(head.len, 64);

    if (s.len < 16) {
        return 0;
    }

    if (s.data[0] == 0x0a && llm_kind_has(head, "<unk>")) {
        return llm_kind_is(k, llm_advice_file, "a SentencePiece tokenizer, "
                           "which has no weights");
    }

    if (s.data[0] == 0x08 && s.data[1] > 0 && s.data[1] < 32
        && (s.data[2] == 0x12 || s.data[2] == 0x1a || s.data[2] == 0x3a
            || llm_kind_has(head, "onnx")))
    {
        return llm_kind_is(k, llm_advice_gguf, "an ONNX model");
    }

    return 0;
}


/* ---- text ---- */

static int
llm_kind_markup(llm_str_t s, llm_file_kind_t *k)
{
    size_t  i;

    static const char  *const html[] = {
        "<!doctype html", "<html", "<head", "<body", "<meta", "<title",
        "<script", "<!--"
    };

    s = llm_kind_trim(s);

    for (i = 0; i < llm_nelems(html); i++) {
        if (llm_kind_begins(s, html[i])) {
            k->text &= i != 0;
            return llm_kind_is(k, llm_advice_page, "an HTML page");
        }
    }

    return llm_kind_begins(s, "<?xml")
           && llm_kind_is(k, llm_advice_page, "an XML document");
}


static int
llm_kind_json(llm_str_t s, uint64_t len, llm_file_kind_t *k)
{
    char       line[60];
    size_t     i;
    llm_str_t  rest;

    static const char  *const members[] = {
        "\"model_type\"", "\"architectures\"", "\"weight_map\"",
        "\"added_tokens\"", "\"tokenizer_class\"", "\"auto_map\"",
        "\"transformers_version\"", "\"peft_type\"", "\"_class_name\""
    };

    s = llm_kind_trim(s);

    if (s.len < 2 || (s.data[0] != '{' && s.data[0] != '[')) {
        return 0;
    }

    rest.data = s.data + 1;
    rest.len = s.len - 1;
    rest = llm_kind_trim(rest);

    if (rest.len == 0 || memchr("\"{[]}0123456789", rest.data[0], 15) == NULL
        || (s.data[0] == '{' && memchr("\"}", rest.data[0], 2) == NULL))
    {
        return 0;
    }

    for (i = 0; i < llm_nelems(members); i++) {
        if (llm_kind_has(s, members[i])) {
            return llm_kind_is(k, llm_advice_convert, "a JSON file of a "
                               "Hugging Face model");
        }
    }

    llm_kind_line(s, line, sizeof(line));

    return llm_kind_is(k, len <= LLM_KIND_SHORT ? llm_advice_sent
                                                : llm_advice_file,
                       "JSON, which begins with '%s'", line);
}


/* are the first bytes, up to the last whole character, plain text? */

static int
llm_kind_is_text(llm_str_t s)
{
    size_t    i, n, bytes;
    uint32_t  c;

    n = llm_min(s.len, 512);

    for (i = 0; i < n; i += bytes) {
        c = 0;
        bytes = llm_utf8_decode(s.data + i, s.len - i, &c);

        if (bytes == 0) {
            return i > 0 && s.len - i < 4;
        }

        if (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f') {
            return 0;
        }
    }

    return n != 0;
}


static int
llm_kind_plain(llm_str_t s, uint64_t len, llm_file_kind_t *k)
{
    char       line[100];
    llm_str_t  t;

    if (!llm_kind_is_text(s)) {
        return 0;
    }

    t = llm_kind_trim(s);

    if (t.len == 0) {
        return llm_kind_is(k, llm_advice_again, "white space alone");
    }

    llm_kind_line(t, line, sizeof(line));

    return llm_kind_is(k, len <= LLM_KIND_SHORT ? llm_advice_sent
                                                : llm_advice_file,
                       "text, which begins with '%s'", line);
}


/* ---- the rest ---- */

static int
llm_kind_zeros(llm_str_t s, llm_file_kind_t *k)
{
    size_t  i;

    for (i = 0; i < s.len && s.data[i] == '\0'; i++) { /* void */ }

    if (i < s.len) {
        return 0;
    }

    return llm_kind_is(k, llm_advice_again, "a file of zeros, perhaps an "
                       "unfinished download");
}


static int
llm_kind_marked(llm_str_t s, llm_file_kind_t *k)
{
    size_t                  i;
    const llm_kind_mark_t  *m;

    for (i = 0; i < llm_nelems(llm_kind_marks); i++) {
        m = &llm_kind_marks[i];

        if (s.len >= (size_t) m->at + m->len
            && memcmp(s.data + m->at, m->mark, m->len) == 0)
        {
            return llm_kind_is(k, m->advice, "%s", m->what);
        }
    }

    return 0;
}


static void
llm_kind_bytes(llm_str_t s, llm_file_kind_t *k)
{
    size_t     i;
    char       hex[3 * 8 + 1];

    for (i = 0; i < llm_min(s.len, 8); i++) {
        snprintf(hex + 3 * i, sizeof(hex) - 3 * i, " %02x",
                 (unsigned char) s.data[i]);
    }

    (void) llm_kind_is(k, llm_advice_file, "a file of an unknown format, "
                       "which begins with the bytes%s", hex);
}


void
llm_file_kind(const char *data, size_t n, uint64_t len,
    llm_file_kind_t *k)
{
    llm_str_t  s;

    memset(k, 0, sizeof(llm_file_kind_t));
    s.data = data;
    s.len = llm_min(n, LLM_KIND_HEAD);

    if (len == 0 || s.len == 0) {
        (void) llm_kind_is(k, llm_advice_again, "an empty file");
        return;
    }

    if (llm_kind_pointer(s, k)) {
        return;
    }

    /* the version after "GGUF" is binary; a file that was cut before the
       version would pass for text */

    k->text = llm_kind_is_text(s) && (s.len < 4 || memcmp(s.data, "GGUF", 4));

    if (llm_kind_zip(s, k)
        || llm_kind_safetensors(s, len, k)
        || llm_kind_pickle(s, k)
        || llm_kind_ggml(s, k)
        || llm_kind_marked(s, k)
        || llm_kind_imatrix(s, k)
        || llm_kind_protobuf(s, k)
        || llm_kind_zeros(s, k)
        || llm_kind_markup(s, k)
        || llm_kind_json(s, len, k)
        || llm_kind_plain(s, len, k))
    {
        return;
    }

    llm_kind_bytes(s, k);
    k->text = 1;
}
