/*
 * Files that nginx's workers write: whoever reads one finds the old text or
 * the new one, also after a power failure.
 */

#include "http/ngx_http_llm_module.h"


static int ngx_http_llm_write_file(const char *path, llm_buf_t *text);


/* in any thread, in one at a time for a path */

int
ngx_http_llm_replace_file(const char *what, ngx_str_t *path, llm_buf_t *text,
    llm_err_t *err)
{
    int   rc;
    char  temp[NGX_MAX_PATH];

    (void) ngx_snprintf((u_char *) temp, sizeof(temp), "%V.%P%Z", path,
                        ngx_pid);

    rc = ngx_http_llm_write_file(temp, text);

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


/* 0, or errno */

static int
ngx_http_llm_write_file(const char *path, llm_buf_t *text)
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

    if (rc == 0 && fsync(fd) == -1) {
        rc = errno;
    }

    if (close(fd) == -1 && rc == 0) {
        rc = errno;
    }

    return rc;
}
