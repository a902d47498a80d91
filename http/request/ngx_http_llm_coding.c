/*
 * The bytes of request bodies: those in nginx's temporary file, and those that
 * are compressed (Content-Encoding: gzip), which are decompressed by the thread
 * that parses them, never by the event loop.  client_max_body_size limits the
 * body before and after decompression.
 */

#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"

#include <zlib.h>


#define NGX_HTTP_LLM_GUNZIP_CHUNK  16384

/* most bytes of a llm_buf_t */
#define NGX_HTTP_LLM_GUNZIP_MOST   (1024 * 1024 * 1024)

/* a gzip header, not one of zlib, and the largest window */
#define NGX_HTTP_LLM_GUNZIP_BITS   (16 + MAX_WBITS)


static ngx_int_t ngx_http_llm_coding_add(ngx_str_t *value, ngx_str_t *coding);
static ngx_int_t ngx_http_llm_coding_large(size_t max, llm_err_t *err);
static ngx_int_t ngx_http_llm_inflate(z_stream *zs, size_t max, llm_buf_t *out,
    llm_err_t *err);


ngx_int_t
ngx_http_llm_coding(ngx_http_request_t *r, ngx_uint_t *gzip, llm_err_t *err)
{
    ngx_str_t         coding;
    ngx_uint_t        i, n;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_str_null(&coding);
    *gzip = 0;
    n = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {

            if (h[i].key.len == sizeof("Content-Encoding") - 1
                && ngx_strncasecmp(h[i].key.data,
                                   (u_char *) "Content-Encoding",
                                   h[i].key.len)
                   == 0)
            {
                n += ngx_http_llm_coding_add(&h[i].value, &coding);
            }
        }
    }

    if (n == 0) {
        return NGX_OK;
    }

    if (n == 1
        && ((coding.len == 4
             && ngx_strncasecmp(coding.data, (u_char *) "gzip", 4) == 0)
            || (coding.len == 6
                && ngx_strncasecmp(coding.data, (u_char *) "x-gzip", 6)
                   == 0)))
    {
        *gzip = 1;
        return NGX_OK;
    }

    if (ngx_http_llm_add_header(r, "Accept-Encoding", "gzip", 4) != NGX_OK) {
        return llm_fail(err, "No memory is left for this request.");
    }

    return llm_fail_with(err, 415, "unsupported_content_encoding", NULL,
                         "The request's body has a Content-Encoding that is "
                         "not supported, '%.*s'%s: compress it with gzip, or "
                         "not at all.", (int) ngx_min(coding.len, 64),
                         coding.data, n > 1 ? " among others" : "");
}


/* returns the number of codings in a header, without "identity"; *coding gets
   the last one */

static ngx_int_t
ngx_http_llm_coding_add(ngx_str_t *value, ngx_str_t *coding)
{
    size_t      len;
    u_char     *p, *last, *end;
    ngx_int_t   n;

    n = 0;
    p = value->data;
    last = p + value->len;

    while (p < last) {

        while (p < last && (*p == ' ' || *p == '\t' || *p == ',')) {
            p++;
        }

        for (end = p; end < last && *end != ','; end++) { /* void */ }

        len = end - p;

        while (len && (p[len - 1] == ' ' || p[len - 1] == '\t')) {
            len--;
        }

        if (len && !(len == 8
                     && ngx_strncasecmp(p, (u_char *) "identity", 8) == 0))
        {
            coding->data = p;
            coding->len = len;
            n++;
        }

        p = end;
    }

    return n;
}


size_t
ngx_http_llm_unpacked(ngx_http_llm_ctx_t *ctx)
{
    size_t                     max;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(ctx->request, ngx_http_core_module);

    /* without a limit: as many bytes as all queued requests may have */

    max = clcf->client_max_body_size ? (size_t) clcf->client_max_body_size
                                     : ctx->main->queue_memory;

    return ngx_min(max, NGX_HTTP_LLM_GUNZIP_MOST);
}


/* runs in any thread */

ngx_int_t
ngx_http_llm_gunzip(u_char *p, size_t size, size_t max, llm_buf_t *out,
    llm_err_t *err)
{
    z_stream   zs;
    ngx_int_t  rc;

    if (size > max) {
        return ngx_http_llm_coding_large(max, err);
    }

    ngx_memzero(&zs, sizeof(z_stream));

    if (inflateInit2(&zs, NGX_HTTP_LLM_GUNZIP_BITS) != Z_OK) {
        return llm_fail(err, "No memory is left for this request.");
    }

    zs.next_in = p;
    zs.avail_in = size;

    rc = ngx_http_llm_inflate(&zs, max, out, err);

    (void) inflateEnd(&zs);

    return rc;
}


static ngx_int_t
ngx_http_llm_coding_large(size_t max, llm_err_t *err)
{
    return llm_fail_with(err, 413, "request_too_large", NULL,
                         "The request's body is too large: this server takes "
                         "at most %zu bytes after decompression.", max);
}


/* decompresses all members of the gzip file */

static ngx_int_t
ngx_http_llm_inflate(z_stream *zs, size_t max, llm_buf_t *out, llm_err_t *err)
{
    int     rc;
    size_t  n;
    u_char  chunk[NGX_HTTP_LLM_GUNZIP_CHUNK];

    do {
        zs->next_out = chunk;
        zs->avail_out = sizeof(chunk);

        rc = inflate(zs, Z_NO_FLUSH);

        n = sizeof(chunk) - zs->avail_out;

        if (n > max - out->len) {
            return ngx_http_llm_coding_large(max, err);
        }

        if (llm_buf_add(out, chunk, n) != LLM_OK) {
            return llm_fail(err, "No memory is left for this request.");
        }

        if (rc == Z_STREAM_END && zs->avail_in) {
            rc = inflateReset(zs);
        }

    } while (rc == Z_OK);

    if (rc == Z_STREAM_END) {
        return NGX_OK;
    }

    if (rc == Z_MEM_ERROR) {
        return llm_fail(err, "No memory is left for this request.");
    }

    return llm_fail_with(err, 400, "invalid_encoding", NULL,
                         "The request's body is not valid gzip, although its "
                         "Content-Encoding is gzip: %s.",
                         zs->msg ? zs->msg : "it ends too early");
}


/* not ngx_read_file(): it would change the file's state */

ngx_int_t
ngx_http_llm_read_part(ngx_buf_t *b, off_t at, size_t size, u_char *p,
    ngx_log_t *log)
{
    ssize_t  n;

    while (size) {
        n = pread(b->file->fd, p, size, at);

        if (n == -1 && ngx_errno == NGX_EINTR) {
            continue;
        }

        if (n <= 0) {
            ngx_log_error(NGX_LOG_CRIT, log, n ? ngx_errno : 0,
                          "pread() of a request body in \"%V\" ended %O "
                          "bytes early", &b->file->name, b->file_last - at);
            return NGX_ERROR;
        }

        p += n;
        at += n;
        size -= n;
    }

    return NGX_OK;
}
