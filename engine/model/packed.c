/*
 * A model's packed weights in a file of the folder that `packed` names, mapped
 * instead of packing them again: the next load takes as long as reading, and
 * processes that have the same model share the pages.
 *
 * The first page of such a file has a text, its key: what the weights were
 * packed from, and for which layout.  A file with another key is replaced.  The
 * rest is the device's (packed_write() of ops.def).
 *
 * A thread of the model writes the file once the model is loaded, under another
 * name until it is complete.  It owns `packed` of the model until it is joined,
 * but for cancel.
 */

#define _GNU_SOURCE

#include "engine/model/model_internal.h"
#include "engine/base/file.h"
#include "engine/base/thread.h"
#include "engine/base/version.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LLM_PACKED_PAGE  4096           /* bytes before the device's */


/* FNV-1a, 64 bits */

static uint64_t
llm_packed_hash(const char *s)
{
    uint64_t  h;

    for (h = 0xcbf29ce484222325; *s; s++) {
        h = (h ^ (uint8_t) *s) * 0x100000001b3;
    }

    return h;
}


/* the file's path in the folder: the model's name, for people, and a hash of
   its path, as models in other folders may have the same name */

static char *
llm_packed_path(const char *dir, const char *model)
{
    char        *path;
    char         real[PATH_MAX];
    const char  *name;

    if (realpath(model, real) == NULL) {
        snprintf(real, sizeof(real), "%s", model);
    }

    name = strrchr(real, '/');
    name = name ? name + 1 : real;

    if (asprintf(&path, "%s/%.100s-%016llx.packed", dir, name,
                 (unsigned long long) llm_packed_hash(real)) == -1)
    {
        return NULL;
    }

    return path;
}


static void
llm_packed_key(const llm_model_t *m, char *key, size_t size)
{
    char  layout[128];

    m->ops->packed_key(m->exec, layout, sizeof(layout));
    snprintf(key, size, "nginx-llm " LLM_VERSION ": packed weights\n"
             "files: %zu, %zu bytes, changed %llu\n%s\n",
             llm_gguf_n_files(m->gguf), llm_gguf_size(m->gguf),
             (unsigned long long) llm_gguf_changed(m->gguf), layout);
}


/* LLM_ABSENT: there is no file, or it is of another key; it is to be written */

static int
llm_packed_map(llm_model_t *m, llm_err_t *err)
{
    int            fd;
    const char    *data;
    struct stat    st;
    llm_packed_t  *p = &m->packed;

    if (access(p->path, F_OK) == -1 && errno == ENOENT) {
        return LLM_ABSENT;
    }

    fd = llm_file_open(p->path, err);
    if (fd == -1) {
        return LLM_ERROR;
    }

    if (fstat(fd, &st) == -1 || st.st_size <= LLM_PACKED_PAGE) {
        (void) close(fd);
        return LLM_ABSENT;
    }

    p->map = llm_map_open(fd, (size_t) st.st_size, p->path, err);
    (void) close(fd);

    if (p->map == NULL) {
        return LLM_ERROR;
    }

    data = llm_map_data(p->map);

    if (memcmp(data, p->key, sizeof(p->key)) == 0
        && m->ops->packed_use(m->exec, data + LLM_PACKED_PAGE,
                              (size_t) st.st_size - LLM_PACKED_PAGE) == LLM_OK)
    {
        return LLM_OK;
    }

    llm_map_close(p->map);
    p->map = NULL;

    return LLM_ABSENT;
}


int
llm_packed_open(llm_load_t *l)
{
    int            rc;
    llm_err_t      err;
    llm_model_t   *m = l->m;
    llm_packed_t  *p = &m->packed;

    if (l->opts->packed == NULL) {
        return LLM_OK;
    }

    if (m->ops->packed_key == NULL) {
        llm_load_log(l, LLM_LOG_NOTICE, "%s: packed=%s is not used: the "
                     "device %s packs no weights", llm_gguf_name(m->gguf),
                     l->opts->packed, m->ops->name);
        return LLM_OK;
    }

    p->path = llm_packed_path(l->opts->packed, llm_gguf_name(m->gguf));

    if (p->path == NULL) {
        return llm_fail(l->err, "%s: no memory for a path",
                        llm_gguf_name(m->gguf));
    }

    p->log = l->opts->log;
    p->log_data = l->opts->log_data;
    llm_packed_key(m, p->key, sizeof(p->key));
    memset(&err, 0, sizeof(err));

    rc = llm_packed_map(m, &err);

    if (rc == LLM_ERROR) {
        llm_load_log(l, LLM_LOG_WARN, "packed weights are not used: %s",
                     err.msg);
    }

    p->wanted = rc == LLM_ABSENT;

    return LLM_OK;
}


/* writes the file under the name `temp`, then gives it its own name */

static int
llm_packed_write(llm_model_t *m, int fd, const char *temp, llm_err_t *err)
{
    char           page[LLM_PACKED_PAGE] = { 0 };
    llm_packed_t  *p = &m->packed;

    memcpy(page, p->key, sizeof(p->key));

    if (ftruncate(fd, 0) == -1
        || write(fd, page, sizeof(page)) != (ssize_t) sizeof(page))
    {
        return llm_fail(err, "write: %s", strerror(errno));
    }

    if (m->ops->packed_write(m->exec, fd, &p->cancel, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (fsync(fd) == -1 || rename(temp, p->path) == -1) {
        return llm_fail(err, "%s", strerror(errno));
    }

    return LLM_OK;
}


static void
llm_packed_say(const llm_packed_t *p, int level, const char *fmt, ...)
{
    char     msg[PATH_MAX + 512];
    va_list  args;

    if (p->log) {
        va_start(args, fmt);
        vsnprintf(msg, sizeof(msg), fmt, args);
        va_end(args);

        p->log(p->log_data, level, msg);
    }
}


/* a lock, which ends with the process, keeps two from writing the same file.
   Another writer may have given it its own name between open() and the lock: it
   is complete then, and others have it mapped */

static int
llm_packed_lock(int fd, const char *temp)
{
    struct stat  own, named;

    return flock(fd, LOCK_EX|LOCK_NB) == 0 && fstat(fd, &own) == 0
           && lstat(temp, &named) == 0 && own.st_dev == named.st_dev
           && own.st_ino == named.st_ino ? LLM_OK : LLM_ERROR;
}


static void *
llm_packed_main(void *data)
{
    int            fd, rc;
    char           temp[PATH_MAX];
    llm_err_t      err;
    llm_model_t   *m = data;
    llm_packed_t  *p = &m->packed;

    snprintf(temp, sizeof(temp), "%s.new", p->path);
    fd = open(temp, O_RDWR|O_CREAT|O_CLOEXEC|O_NOFOLLOW, 0600);

    if (fd == -1) {
        llm_packed_say(p, LLM_LOG_WARN, "packed weights are not kept: %s: %s",
                       temp, strerror(errno));
        return NULL;
    }

    if (llm_packed_lock(fd, temp) == LLM_OK) {
        memset(&err, 0, sizeof(err));
        rc = llm_packed_write(m, fd, temp, &err);

        if (rc != LLM_OK) {
            (void) unlink(temp);
        }

        if (rc == LLM_OK) {
            llm_packed_say(p, LLM_LOG_NOTICE, "packed weights are kept in %s",
                           p->path);

        } else if (!__atomic_load_n(&p->cancel, __ATOMIC_RELAXED)) {
            llm_packed_say(p, LLM_LOG_WARN, "packed weights are not kept: "
                           "%s: %s", temp, err.msg);
        }
    }

    (void) close(fd);

    return NULL;
}


void
llm_packed_keep(llm_model_t *m)
{
    llm_packed_t  *p = &m->packed;

    if (p->wanted
        && llm_thread_start(&p->writer, llm_packed_main, m) == 0)
    {
        p->writing = 1;
    }
}


void
llm_model_wait_packed(llm_model_t *m)
{
    if (m->packed.writing) {
        (void) pthread_join(m->packed.writer, NULL);
        m->packed.writing = 0;
    }
}


void
llm_packed_stop(llm_model_t *m)
{
    __atomic_store_n(&m->packed.cancel, 1, __ATOMIC_RELAXED);
    llm_model_wait_packed(m);
}


void
llm_packed_close(llm_model_t *m)
{
    if (m->packed.map) {
        llm_map_close(m->packed.map);
    }

    free(m->packed.path);
}


int
llm_packed_intact(const llm_model_t *m, llm_err_t *err)
{
    const llm_packed_t  *p = &m->packed;

    if (p->map == NULL || llm_map_intact(p->map)) {
        return LLM_OK;
    }

    return llm_fail_with(err, 503, LLM_FILE_ERROR, NULL, "%s: a page could not "
                         "be read (the file was truncated or its disk failed)",
                         strrchr(p->path, '/') + 1);
}
