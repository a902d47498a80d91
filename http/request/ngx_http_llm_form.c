/*
 * Parses a body that is a form with a sound.  The body is read in pieces, from
 * memory or from nginx's temporary file, so that no second copy of it is in
 * this process; the sound goes into the memory for media.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_stage.h"


/* bytes that are read from a file at a time */
#define NGX_HTTP_LLM_FORM_PIECE  65536


static llm_api_form_t *ngx_http_llm_form_begin(ngx_http_llm_body_t *body,
    size_t size);
static ngx_int_t ngx_http_llm_form_piece(ngx_http_llm_body_t *body,
    llm_api_form_t *form, u_char *p, size_t len);
static ngx_int_t ngx_http_llm_form_read(ngx_http_llm_body_t *body,
    llm_api_form_t *form);
static ngx_int_t ngx_http_llm_form_file(ngx_http_llm_body_t *body,
    llm_api_form_t *form, ngx_buf_t *b, u_char *piece);
static void ngx_http_llm_form_end(ngx_http_llm_body_t *body,
    llm_api_form_t *form, ngx_int_t rc);


void
ngx_http_llm_parse_form(ngx_http_llm_body_t *body)
{
    llm_api_form_t  *form;

    form = ngx_http_llm_form_begin(body, body->size);

    if (form) {
        ngx_http_llm_form_end(body, form, ngx_http_llm_form_read(body, form));
    }
}


void
ngx_http_llm_parse_form_of(ngx_http_llm_body_t *body, u_char *p, size_t len)
{
    llm_api_form_t  *form;

    form = ngx_http_llm_form_begin(body, len);

    if (form) {
        ngx_http_llm_form_end(body, form,
                              ngx_http_llm_form_piece(body, form, p, len));
    }
}


static llm_api_form_t *
ngx_http_llm_form_begin(ngx_http_llm_body_t *body, size_t size)
{
    llm_str_t         type;
    ngx_table_elt_t  *h;

    h = body->ctx->request->headers_in.content_type;
    type.len = h ? h->value.len : 0;
    type.data = h ? (char *) h->value.data : NULL;

    return llm_api_form_create(body->ctx->reply->endpoint, &body->conf, type,
                               size, &body->err);
}


static ngx_int_t
ngx_http_llm_form_piece(ngx_http_llm_body_t *body, llm_api_form_t *form,
    u_char *p, size_t len)
{
    ngx_http_llm_on_input(body, p, len);

    return llm_api_form_read(form, p, len, &body->err) == LLM_OK ? NGX_OK
                                                                 : NGX_ERROR;
}


static ngx_int_t
ngx_http_llm_form_read(ngx_http_llm_body_t *body, llm_api_form_t *form)
{
    u_char       *piece;
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    rc = NGX_OK;
    piece = NULL;

    for (cl = body->bufs; cl && rc == NGX_OK; cl = cl->next) {
        b = cl->buf;

        if (ngx_buf_in_memory(b)) {
            rc = ngx_http_llm_form_piece(body, form, b->pos, b->last - b->pos);
            continue;
        }

        if (piece == NULL) {
            piece = ngx_alloc(NGX_HTTP_LLM_FORM_PIECE,
                              body->ctx->main->cycle->log);
        }

        if (piece == NULL) {
            llm_fail(&body->err, "No memory is left for this request.");
            return NGX_ERROR;
        }

        rc = ngx_http_llm_form_file(body, form, b, piece);
    }

    if (piece) {
        ngx_free(piece);
    }

    return rc;
}


static ngx_int_t
ngx_http_llm_form_file(ngx_http_llm_body_t *body, llm_api_form_t *form,
    ngx_buf_t *b, u_char *piece)
{
    off_t   at;
    size_t  size;

    for (at = b->file_pos; at < b->file_last; at += size) {
        size = ngx_min(b->file_last - at, NGX_HTTP_LLM_FORM_PIECE);

        if (ngx_http_llm_read_part(b, at, size, piece,
                                   body->ctx->main->cycle->log)
            != NGX_OK)
        {
            llm_fail(&body->err, "The request's body could not be read.");
            return NGX_ERROR;
        }

        if (ngx_http_llm_form_piece(body, form, piece, size) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static void
ngx_http_llm_form_end(ngx_http_llm_body_t *body, llm_api_form_t *form,
    ngx_int_t rc)
{
    if (rc == NGX_OK) {
        body->api = llm_api_form_end(form, &body->msg, &body->err);
        body->media = body->api != NULL;
    }

    llm_api_form_free(form);
}
