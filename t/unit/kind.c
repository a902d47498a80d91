/*
 * What files are, by their first bytes: base/kind.c.
 */

#include "engine/base/kind.h"
#include "t/unit/tap.h"

#include <stdio.h>

#define BYTES(s)  s, sizeof(s) - 1

typedef struct {
    const char  *bytes;
    size_t       len;
    const char  *what;                  /* in what it is */
    const char  *advice;                /* in what to do */
} case_t;

static const case_t  cases[] = {

    { BYTES(""), "an empty file", "download it again" },
    { BYTES("version https://git-lfs.github.com/spec/v1\n"
            "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca"
            "24d17e2393\nsize 4683073184\n"),
      "a Git LFS pointer, which stands for a file of 4683073184 bytes",
      "git lfs pull" },
    { BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:4d\n"
            "size 99999999999999999999999999999999\n"),
      "a Git LFS pointer", "git lfs pull" },
    { BYTES("version https://git-lfs.github.com/spec/v1"),
      "a Git LFS pointer, which stands for a file of 0 bytes",
      "git lfs pull" },
    { BYTES("# xet version 0\nfilesize = 1\n"), "Xet", "download it again" },
    { BYTES("/annex/objects/SHA256E-s12--ab.gguf\n"), "a git-annex pointer",
      "git annex get" },

    { BYTES("<!DOCTYPE html>\n<html><head>"), "an HTML page", "/resolve/" },
    { BYTES("\xef\xbb\xbf\r\n\t <HTML>"), "an HTML page", "/resolve/" },
    { BYTES("<!-- a comment -->\n<html>"), "an HTML page", "/resolve/" },
    { BYTES("<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>"),
      "an XML document", "in place of the file" },
    { BYTES("{\"error\":\"Repository not found\"}"),
      "JSON, which begins with '{\"error\":\"Repository not found\"}'",
      "download the file again" },
    { BYTES("{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ]"),
      "a JSON file of a Hugging Face model", "convert_hf_to_gguf.py" },
    { BYTES("{\"metadata\": {}, \"weight_map\": {}}"),
      "a JSON file of a Hugging Face model", "convert_hf_to_gguf.py" },
    { BYTES("Invalid username or password.\n"),
      "text, which begins with 'Invalid username or password.'",
      "download the file again" },
    { BYTES("Entr\xc3\xa9\x65 introuvable"), "text, which begins with 'Entr",
      "download the file again" },
    { BYTES(" \n\n"), "white space", "download it again" },
    { BYTES("a\nb"), "text, which begins with 'a'", "again" },

    { BYTES("\x40\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\"}}"),
      "a safetensors file that was cut", "download it again" },
    { BYTES("\x02\0\0\0\0\0\0\0{}"), "a safetensors file",
      "convert_hf_to_gguf.py" },
    { BYTES("\x2c\0\0\0\0\0\0\0{\"base_model.model.x.lora_A.weight\":{}}    "
            "     "), "a LoRA adapter in safetensors", "merge it" },
    { BYTES("PK\3\4\0\0\0\0\0\0archive/data.pkl"), "a PyTorch checkpoint",
      "convert_hf_to_gguf.py" },
    { BYTES("PK\3\4\0\0\0\0\0\0model.gguf"), "a ZIP archive", "unpack it" },
    { BYTES("PK\3\4\0\0\0\0\0\0a.npy"), "NumPy", "download a GGUF" },
    { BYTES("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"),
      "a PyTorch checkpoint", "convert_hf_to_gguf.py" },
    { BYTES("\x80\x04\x95\x10\0\0\0"), "a Python pickle",
      "convert_hf_to_gguf.py" },
    { BYTES("lmgg\0\x7d\0\0\0\x10\0\0"), "a GGML file, the format before GGUF",
      "download a GGUF" },
    { BYTES("lmgg\xc2\xca\0\0\xdc\x05\0\0\x80\1\0\0\6\0\0\0\4\0\0\0\xc0\1\0\0"
            "\x80\1\0\0\6\0\0\0\4\0\0\0\x50\0\0\0\1\0\0\0"),
      "a speech model of whisper.cpp", "name the model's .gguf file" },
    { BYTES("tjgg\3\0\0\0"), "a GGJT file", "download a GGUF" },
    { BYTES("fmgg\1\0\0\0"), "a GGMF file", "download a GGUF" },
    { BYTES("algg\1\0\0\0"), "a LoRA adapter in GGLA", "name the model" },
    { BYTES("FUGG\0\0\0\3"), "big-endian", "gguf_convert_endian.py" },
    { BYTES("\2\0\0\0\x13\0\0\0blk.0.ffn_up.weight\1\0\0\0"),
      "an importance matrix", "name the model" },
    { BYTES("\x08\x07\x12\x07pytorch\x1a\x05" "2.1.0\x3a\xff"),
      "an ONNX model", "download a GGUF" },
    { BYTES("\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\2\x0a\x0c"),
      "a SentencePiece tokenizer", "name the model" },
    { BYTES("\x89HDF\r\n\x1a\n\0\0"), "HDF5", "download a GGUF" },
    { BYTES("\x93NUMPY\1\0"), "NumPy", "download a GGUF" },
    { BYTES("\x1c\0\0\0TFL3"), "TensorFlow Lite", "download a GGUF" },

    { BYTES("\x1f\x8b\x08\0"), "a gzip file", "unpack it" },
    { BYTES("BZh91AY"), "a bzip2 file", "unpack it" },
    { BYTES("\xfd" "7zXZ\0\0"), "an xz file", "unpack it" },
    { BYTES("\x28\xb5\x2f\xfd\4"), "a Zstandard file", "unpack it" },
    { BYTES("7z\xbc\xaf\x27\x1c\0"), "a 7-Zip archive", "unpack it" },
    { BYTES("Rar!\x1a\x07\1\0"), "a RAR archive", "unpack it" },

    { BYTES("MZqFpD='\n"), "a llamafile", "unzip" },
    { BYTES("\x7f" "ELF\2\1\1"), "a program or library of Linux", ".gguf" },
    { BYTES("MZ\x90\0\3\0"), "of Windows", ".gguf" },
    { BYTES("\xcf\xfa\xed\xfe\x0c\0\0\1"), "of macOS", ".gguf" },
    { BYTES("\xca\xfe\xba\xbe\0\0\0\2"), "of macOS", ".gguf" },
    { BYTES("#!/bin/sh\n"), "a script", ".gguf" },
    { BYTES("%PDF-1.7\n"), "a PDF document", ".gguf" },
    { BYTES("\x89PNG\r\n"), "a PNG picture", ".gguf" },
    { BYTES("RIFF\x24\0\0\0WAVEfmt "), "a sound file", ".gguf" },

    { BYTES("\0\0\0\0\0\0\0\0\0\0"), "a file of zeros", "download it again" },
    { BYTES("\1\2\xff\4\5\6\7\x08\x09"),
      "which begins with the bytes 01 02 ff 04 05 06 07 08", ".gguf" },
    { BYTES("\xff"), "which begins with the bytes ff", ".gguf" },
    { BYTES("a\1b\x1b[31mred"), "which begins with the bytes", ".gguf" }
};


static void
test_kinds(void)
{
    size_t         i;
    llm_file_kind_t     k;
    const case_t  *c;

    for (i = 0; i < llm_nelems(cases); i++) {
        c = &cases[i];

        llm_file_kind(c->bytes, c->len, c->len, &k);
        ok(strstr(k.what, c->what) != NULL, "%s", k.what);
        ok(strstr(k.advice, c->advice) != NULL, "%s", k.advice);
    }
}


/* no byte behind the end is looked at, whatever the length: of memory of its
   exact size, for a sanitizer */

static void
test_short(void)
{
    char          *copy;
    size_t         i, n, silent;
    llm_file_kind_t     k;

    for (i = 0, silent = 0; i < llm_nelems(cases); i++) {
        for (n = 0; n <= cases[i].len; n++) {
            copy = malloc(n ? n : 1);
            memcpy(copy, cases[i].bytes, n);
            llm_file_kind(copy, n, n, &k);
            silent += k.what[0] == '\0' || k.advice == NULL;
            (void) llm_file_kind_object(copy, n, n, &k);
            free(copy);
        }
    }

    is_int(silent, 0, "the beginnings of all of them are something, too");
}


static void
test_tar(void)
{
    char        tar[512];
    llm_file_kind_t  k;

    memset(tar, 0, sizeof(tar));
    strcpy(tar, "model.gguf");
    strcpy(tar + 257, "ustar");

    llm_file_kind(tar, sizeof(tar), sizeof(tar), &k);
    is_str(k.what, "a tar archive", "a tar archive");
}


/* what a message shows of a file cannot break its line */

static void
test_clean(void)
{
    llm_file_kind_t  k;

    static const char  text[] = "one\xe2\x80\xa8two\xe2\x80\xaethree\nfour";

    llm_file_kind(text, sizeof(text) - 1, sizeof(text) - 1, &k);
    ok(strstr(k.what, "one") && strstr(k.what, "\xe2\x80\xa8") == NULL
       && strstr(k.what, "\xe2\x80\xae") == NULL
       && strchr(k.what, '\n') == NULL, "%s", k.what);
}


static void
test_objects(void)
{
    FILE        *f;
    char         head[64];
    size_t       n;
    llm_file_kind_t   k;

    f = fopen("/proc/self/exe", "r");
    n = f ? fread(head, 1, sizeof(head), f) : 0;

    if (f) {
        fclose(f);
    }

    ok(llm_file_kind_object(head, n, n, &k) == LLM_ABSENT,
       "an object of this machine");

    head[18] = 20;
    head[19] = 0;
    ok(llm_file_kind_object(head, n, n, &k) == LLM_OK
       && strncmp(k.what, "a library for PowerPC, and this machine is ", 43)
          == 0, "%s", k.what);
    ok(strstr(k.advice, "build.sh build") != NULL, "%s", k.advice);

    head[5] = 2;
    head[18] = 0;
    head[19] = 22;
    ok(llm_file_kind_object(head, n, n, &k) == LLM_OK
       && strstr(k.what, "s390x"), "%s", k.what);

    ok(llm_file_kind_object(BYTES("\xcf\xfa\xed\xfe\x0c\0\0\1"), 8, &k)
       == LLM_OK
       && strstr(k.what, "macOS") && strstr(k.advice, "build.sh build"),
       "%s", k.what);
    ok(llm_file_kind_object("", 0, 0, &k) == LLM_OK
       && strstr(k.what, "an empty file"), "%s", k.what);
}


int
main(void)
{
    test_kinds();
    test_short();
    test_tar();
    test_clean();
    test_objects();

    return done_testing();
}
