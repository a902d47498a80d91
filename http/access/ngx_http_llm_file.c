/*
 * Files that workers write, and that several nginx may share.  A reader finds
 * the old text or the new one, also after a power failure; a writer has locked
 * the file's folder.
 */

#include "http/access/ngx_http_llm_file.h"

#include <sys/file.h>


static ngx_int_t ngx_http_llm_flock(int fd, ngx_uint_t ms);
static int ngx_http_llm_write_file(const char *path, llm_buf_t *text,
    ngx_uint_t flush);


int
ngx_http_llm_open_folder(ngx_str_t *path)
{
    char  folder[NGX_MAX_PATH], *slash;

    if (path->len >= sizeof(folder)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    ngx_memcpy(folder, path->data, path->len);
    folder[path->len] = '\0';

    slash = strrchr(folder, '/');
    slash[slash == folder] = '\0';

    return open(folder, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
}


/* Locks the folder; waits up to ms milliseconds for another process, because
   one that is no nginx may hold the lock for long.  The kernel releases the
   lock of a process that dies.  NGX_BUSY: the folder is still locked.  NGX_OK
   also where the file system has no locks. */

static ngx_int_t
ngx_http_llm_flock(int fd, ngx_uint_t ms)
{
    ngx_uint_t  n;

    for (n = 0; /* void */ ; n++) {

        if (flock(fd, LOCK_EX|LOCK_NB) == 0
            || (errno != EWOULDBLOCK && errno != EINTR))
        {
            return NGX_OK;
        }

        if (n >= ms) {
            return NGX_BUSY;
        }

        ngx_msleep(1);
    }
}


int
ngx_http_llm_lock_folder(const char *what, ngx_str_t *path, ngx_uint_t ms,
    llm_err_t *err)
{
    int          fd;
    const char  *why;

    fd = ngx_http_llm_open_folder(path);

    if (fd != -1 && ngx_http_llm_flock(fd, ms) == NGX_OK) {
        return fd;
    }

    why = (fd == -1) ? strerror(errno) : "the folder is locked";

    if (fd != -1) {
        (void) close(fd);
    }

    (void) llm_fail(err, "%s cannot be written to \"%s\": %s", what,
                    (char *) path->data, why);

    return -1;
}


void
ngx_http_llm_keep_bad(ngx_str_t *path)
{
    char  bad[NGX_MAX_PATH];

    (void) ngx_snprintf((u_char *) bad, sizeof(bad), "%V.bad%Z", path);
    (void) rename((char *) path->data, bad);
}


/* in any thread, but only one at a time for a path */

int
ngx_http_llm_replace_file(const char *what, ngx_str_t *path, llm_buf_t *text,
    ngx_uint_t flush, llm_err_t *err)
{
    int   rc;
    char  temp[NGX_MAX_PATH];

    (void) ngx_snprintf((u_char *) temp, sizeof(temp), "%V.%P%Z", path,
                        ngx_pid);

    rc = ngx_http_llm_write_file(temp, text, flush);

    if (rc == 0 && rename(temp, (char *) path->data) == -1) {
        rc = errno;
    }

    if (rc == 0) {
        return LLM_OK;
    }

    (void) unlink(temp);

    return llm_fail(err, "%s cannot be written to \"%s\": %s", what,
                    (char *) path->data, strerror(rc));
}


/* returns 0 or errno */

static int
ngx_http_llm_write_file(const char *path, llm_buf_t *text, ngx_uint_t flush)
{
    int      fd, rc;
    size_t   done;
    ssize_t  n;

    fd = open(path, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0600);

    if (fd == -1) {
        return errno;
    }

    rc = 0;

    for (done = 0; rc == 0 && done < text->len; done += (size_t) n) {
        n = write(fd, text->data + done, text->len - done);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            rc = errno;
        }
    }

    if (rc == 0 && flush && fsync(fd) == -1) {
        rc = errno;
    }

    if (close(fd) == -1 && rc == 0) {
        rc = errno;
    }

    return rc;
}
