/*
 * Output to a client: bytes are gathered in blocks, all blocks are handed to
 * nginx at once, and each is freed as soon as nginx has sent its bytes.
 *
 * - ctx->blocks is the oldest block.  Blocks before ctx->gather were handed to
 *   nginx; the others gather output.
 * - A block is malloc()ed.  A filter or an HTTP/2 frame may point to its
 *   bytes until its buf is empty, so it is not freed before; blocks that are
 *   never emptied are freed with r->pool.  The bufs belong to the pool and are
 *   reused, because a filter may look at one after it is empty.
 * - A block has the size of the output it is made for, or an eighth of what is
 *   held if that is more, but at least 1 KB and at most 8 KB.  So blocks take
 *   little more memory than their output.
 * - The worker keeps free blocks of the least size, as many as are used between
 *   two rounds of sending: malloc() would touch their neighbours, too, which
 *   are in no cache of the CPU.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_request.h"


#define NGX_HTTP_LLM_BLOCK_MIN  1024
#define NGX_HTTP_LLM_BLOCK_MAX  8192


struct ngx_http_llm_block_s {
    ngx_http_llm_block_t  *next;
    ngx_chain_t           *link;        /* with its buf, from r->pool */
    size_t                 size;        /* bytes of the whole block */
    u_char                 data[];
};


static void
ngx_http_llm_count_held(ngx_http_llm_ctx_t *ctx, ngx_http_llm_block_t *b,
    ngx_int_t sign)
{
    ctx->held += sign * (ngx_int_t) b->size;
    ctx->main->worker->counters->unsent += sign * (ngx_int_t) b->size;
}


static ngx_chain_t *
ngx_http_llm_get_link(ngx_http_llm_ctx_t *ctx)
{
    ngx_chain_t  *cl;

    cl = ctx->free;

    if (cl) {
        ctx->free = cl->next;
        ngx_memzero(cl->buf, sizeof(ngx_buf_t));
        return cl;
    }

    cl = ngx_alloc_chain_link(ctx->request->pool);
    if (cl == NULL) {
        return NULL;
    }

    cl->buf = ngx_calloc_buf(ctx->request->pool);

    return cl->buf ? cl : NULL;
}


static ngx_http_llm_block_t *
ngx_http_llm_get_block(ngx_http_llm_ctx_t *ctx, size_t size)
{
    ngx_http_llm_worker_t  *w;

    w = ctx->main->worker;

    if (size == NGX_HTTP_LLM_BLOCK_MIN && w->nspare) {
        return w->spare[--w->nspare];
    }

    return ngx_alloc(sizeof(ngx_http_llm_block_t) + size,
                     ctx->request->connection->log);
}


static void
ngx_http_llm_free_block(ngx_http_llm_ctx_t *ctx, ngx_http_llm_block_t *b)
{
    ngx_http_llm_worker_t  *w;

    w = ctx->main->worker;

    ngx_http_llm_count_held(ctx, b, -1);

    if (b->size == sizeof(ngx_http_llm_block_t) + NGX_HTTP_LLM_BLOCK_MIN
        && w->nspare < NGX_HTTP_LLM_SENDS)
    {
        w->spare[w->nspare++] = b;
        return;
    }

    ngx_free(b);
}


static ngx_http_llm_block_t *
ngx_http_llm_add_block(ngx_http_llm_ctx_t *ctx, size_t len)
{
    size_t                 size;
    ngx_buf_t             *buf;
    ngx_chain_t           *cl;
    ngx_http_llm_block_t  *b;

    cl = ngx_http_llm_get_link(ctx);
    if (cl == NULL) {
        return NULL;
    }

    size = ngx_max(len, ctx->held / 8);
    size = ngx_max(size, NGX_HTTP_LLM_BLOCK_MIN);
    size = ngx_min(size, NGX_HTTP_LLM_BLOCK_MAX);

    b = ngx_http_llm_get_block(ctx, size);
    if (b == NULL) {
        cl->next = ctx->free;
        ctx->free = cl;
        return NULL;
    }

    b->next = NULL;
    b->link = cl;
    b->size = sizeof(ngx_http_llm_block_t) + size;

    buf = cl->buf;
    buf->start = b->data;
    buf->pos = b->data;
    buf->last = b->data;
    buf->end = b->data + size;
    buf->memory = 1;
    buf->tag = (ngx_buf_tag_t) &ngx_http_llm_module;

    cl->next = NULL;

    if (ctx->blocks) {
        ctx->newest->next = b;

    } else {
        ctx->blocks = b;
    }

    if (ctx->gather == NULL) {
        ctx->gather = b;

    } else {
        ctx->newest->link->next = cl;
    }

    ctx->newest = b;
    ngx_http_llm_count_held(ctx, b, 1);

    return b;
}


ngx_int_t
ngx_http_llm_gather(ngx_http_llm_ctx_t *ctx, const char *data, size_t len)
{
    size_t                 n;
    ngx_buf_t             *buf;
    ngx_http_llm_block_t  *b;

    while (len) {
        b = ctx->gather ? ctx->newest : NULL;

        if (b == NULL || b->link->buf->last == b->link->buf->end) {
            b = ngx_http_llm_add_block(ctx, len);
            if (b == NULL) {
                return NGX_ERROR;
            }
        }

        buf = b->link->buf;
        n = ngx_min(len, (size_t) (buf->end - buf->last));

        buf->last = ngx_cpymem(buf->last, data, n);
        data += n;
        len -= n;
    }

    return NGX_OK;
}


off_t
ngx_http_llm_gathered(ngx_http_llm_ctx_t *ctx)
{
    off_t         len;
    ngx_chain_t  *cl;

    len = 0;

    for (cl = ctx->gather ? ctx->gather->link : NULL; cl; cl = cl->next) {
        len += ngx_buf_size(cl->buf);
    }

    return len;
}


ngx_int_t
ngx_http_llm_hand_over(ngx_http_llm_ctx_t *ctx, ngx_uint_t last)
{
    ngx_int_t     rc;
    ngx_buf_t    *buf;
    ngx_chain_t  *cl;

    ctx->last_output = ngx_current_msec;
    (void) ngx_atomic_fetch_add(ctx->main->worker->writes, 1);

    if (ctx->gather == NULL) {
        return ngx_http_send_special(ctx->request,
                                     last ? NGX_HTTP_LAST : NGX_HTTP_FLUSH);
    }

    buf = ctx->newest->link->buf;
    buf->flush = !last;
    buf->last_buf = last;
    buf->last_in_chain = last;

    cl = ctx->gather->link;
    ctx->gather = NULL;

    rc = ngx_http_output_filter(ctx->request, cl);

    ngx_http_llm_free_sent(ctx);

    return rc;
}


void
ngx_http_llm_free_sent(ngx_http_llm_ctx_t *ctx)
{
    ngx_buf_t             *buf;
    ngx_http_llm_block_t  *b;

    while (ctx->blocks != ctx->gather) {
        b = ctx->blocks;
        buf = b->link->buf;

        if (buf->pos != buf->last) {
            return;
        }

        ctx->blocks = b->next;

        b->link->next = ctx->free;
        ctx->free = b->link;

        ngx_http_llm_free_block(ctx, b);
    }
}


void
ngx_http_llm_free_blocks(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_block_t  *b;

    while (ctx->blocks) {
        b = ctx->blocks;
        ctx->blocks = b->next;

        ngx_http_llm_free_block(ctx, b);
    }

    ctx->gather = NULL;
}
