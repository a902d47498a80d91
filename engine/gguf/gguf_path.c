/*
 * Opens the file at a path, or says what is there instead: nothing, because
 * the path is a URL or the name of a model elsewhere; a folder, and what is in
 * it; a file that this process may not read.
 */

#include "engine/base/file.h"
#include "engine/gguf/gguf_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define LLM_GGUF_MAX_NAMES  4096        /* names that are read of a folder */


/* what is in a folder, among the names that were read */
typedef struct {
    char  gguf[NAME_MAX + 1];           /* the first of its GGUF files, in
                                           alphabetic order; empty: none */
    int   adapter;                      /* a LoRA adapter's configuration */
    int   model;                        /* files of a Hugging Face model */
} llm_gguf_folder_t;


static int
llm_gguf_ends(const char *name, const char *end)
{
    size_t  n, len;

    n = strlen(name);
    len = strlen(end);

    return n > len && strcasecmp(name + n - len, end) == 0;
}


static void
llm_gguf_folder_name(llm_gguf_folder_t *f, const char *name)
{
    if (llm_gguf_ends(name, ".gguf") && strncmp(name, "mmproj", 6) != 0
        && (f->gguf[0] == '\0' || strcmp(name, f->gguf) < 0))
    {
        snprintf(f->gguf, sizeof(f->gguf), "%s", name);
    }

    f->adapter |= strcmp(name, "adapter_config.json") == 0;
    f->model |= strcmp(name, "config.json") == 0
                || llm_gguf_ends(name, ".safetensors")
                || strncmp(name, "pytorch_model", 13) == 0;
}


static void
llm_gguf_read_folder(const char *path, llm_gguf_folder_t *f)
{
    DIR            *dir;
    uint32_t        n;
    struct dirent  *e;

    memset(f, 0, sizeof(llm_gguf_folder_t));

    dir = opendir(path);
    if (dir == NULL) {
        return;
    }

    for (n = 0; n < LLM_GGUF_MAX_NAMES && (e = readdir(dir)) != NULL; n++) {
        llm_gguf_folder_name(f, e->d_name);
    }

    (void) closedir(dir);
}


static int
llm_gguf_is_folder(const char *path, llm_err_t *err)
{
    llm_str_t          s;
    llm_gguf_label_t   label;
    llm_gguf_folder_t  f;

    llm_gguf_read_folder(path, &f);

    if (f.gguf[0]) {
        s.data = f.gguf;
        s.len = strlen(f.gguf);

        return llm_fail(err, "%s: a folder, not a regular file: name the "
                        "model's file in it, such as %s", path,
                        llm_gguf_label(&label, s));
    }

    if (f.adapter) {
        return llm_fail(err, "%s: a folder with a LoRA adapter, not a regular "
                        "file: merge it into its model, convert the result "
                        "to GGUF with convert_hf_to_gguf.py of llama.cpp, and "
                        "name that file", path);
    }

    if (f.model) {
        return llm_fail(err, "%s: a folder with a Hugging Face model, not a "
                        "regular file: such folders are not read; convert it "
                        "to GGUF with convert_hf_to_gguf.py of llama.cpp, or "
                        "download a GGUF of the model, and name that file",
                        path);
    }

    return llm_fail(err, "%s: a folder, not a regular file, and there is no "
                    "GGUF file in it: name the model's .gguf file", path);
}


/* where a URL begins in the path, which may have a prefix (the folder of the
   configuration); NULL: there is none */

static const char *
llm_gguf_address(const char *path)
{
    size_t       i;
    const char  *p;

    static const char  *const hosts[] = {
        "hf.co/", "huggingface.co/", "www.huggingface.co/", "ollama.com/",
        "modelscope.cn/", "www.modelscope.cn/"
    };

    p = strstr(path, "://");

    if (p) {
        while (p > path
               && ((p[-1] >= 'a' && p[-1] <= 'z')
                   || (p[-1] >= 'A' && p[-1] <= 'Z')
                   || (p[-1] >= '0' && p[-1] <= '9')))
        {
            p--;
        }

        return *p == ':' ? NULL : p;
    }

    for (i = 0; i < llm_nelems(hosts); i++) {
        p = strstr(path, hosts[i]);

        if (p && (p == path || p[-1] == '/')) {
            return p;
        }
    }

    return NULL;
}


static int
llm_gguf_is_missing(const char *path, llm_err_t *err)
{
    const char  *p, *why;

    why = strerror(errno);
    p = llm_gguf_address(path);

    if (p) {
        return llm_fail(err, "%s: %s: this is a URL, and models are read from "
                        "files of this machine: download it (curl -LO %.150s) "
                        "and name the file", path, why, p);
    }

    if (!llm_gguf_ends(path, ".gguf")) {
        return llm_fail(err, "%s: %s: a model is named by the path of its "
                        ".gguf file (names of Hugging Face or Ollama are not "
                        "looked up)", path, why);
    }

    return llm_fail(err, "%s: %s", path, why);
}


static int
llm_gguf_is_closed(const char *path, llm_err_t *err)
{
    struct stat  st;

    if (stat(path, &st) == -1) {
        return llm_fail(err, "%s: Permission denied: this process runs as "
                        "user %u, which may not enter a folder of the path",
                        path, (unsigned) geteuid());
    }

    return llm_fail(err, "%s: Permission denied: it belongs to user %u with "
                    "mode %04o, and this process runs as user %u: allow that "
                    "user to read it", path, (unsigned) st.st_uid,
                    (unsigned) (st.st_mode & 07777), (unsigned) geteuid());
}


/* replaces *err, a short reason why the path could not be opened, by a longer
   one if more is known */

static void
llm_gguf_explain(const char *path, llm_err_t *err)
{
    int          fd;
    struct stat  st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        (void) llm_gguf_is_folder(path, err);
        return;
    }

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NONBLOCK|O_NOCTTY);

    if (fd != -1) {
        (void) close(fd);

    } else if (errno == ENOENT || errno == ENOTDIR) {
        (void) llm_gguf_is_missing(path, err);

    } else if (errno == EACCES) {
        (void) llm_gguf_is_closed(path, err);
    }
}


int
llm_gguf_open_path(const char *path, llm_gguf_stat_t *stat, llm_err_t *err)
{
    int          fd;
    struct stat  st;

    fd = llm_file_open(path, err);

    if (fd == -1) {
        llm_gguf_explain(path, err);
        return -1;
    }

    if (fstat(fd, &st) == -1) {
        (void) llm_fail(err, "%s: %s", path, strerror(errno));
        (void) close(fd);
        return -1;
    }

    stat->len = (size_t) st.st_size;
    stat->changed = (uint64_t) st.st_mtim.tv_sec * 1000000000
                    + (uint64_t) st.st_mtim.tv_nsec;

    return fd;
}
