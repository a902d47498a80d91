/*
 * Answers that are a list of items; see output.h.
 */

#include "engine/api/endpoint.h"
#include "engine/base/utf8.h"

/* bytes of a text's first piece; each next one is twice as long */
#define LLM_API_CHUNK_FIRST  128
#define LLM_API_CHUNK_MOST   8192


/* ---- keeping ---- */

/* the longest beginning of s that fits in room bytes and ends with a whole
   character */

static size_t
llm_api_whole(const char *s, size_t len, size_t room)
{
    size_t  n;

    if (len <= room) {
        return len;
    }

    n = room;

    while (n && room - n < LLM_UTF8_MAX
           && ((unsigned char) s[n] & 0xc0) == 0x80)
    {
        n--;
    }

    /* no UTF-8 character is that long: cut anywhere */

    return (room - n < LLM_UTF8_MAX) ? n : room;
}


int
llm_api_text_add(llm_api_t *a, llm_api_text_t *text, const char *s,
    size_t len, llm_err_t *err)
{
    size_t            n, cap;
    uint32_t          was;
    llm_api_text_t    before;
    llm_api_chunk_t  *c;

    c = text->last;
    before = *text;
    was = c ? c->len : 0;

    while (len) {
        n = c ? llm_api_whole(s, len, c->cap - c->len) : 0;

        if (n) {
            memcpy(c->data + c->len, s, n);
            c->len += (uint32_t) n;
            s += n;
            len -= n;
            continue;
        }

        cap = c ? llm_min(2 * (size_t) c->cap, (size_t) LLM_API_CHUNK_MOST)
                : LLM_API_CHUNK_FIRST;

        c = llm_api_keep(a, sizeof(llm_api_chunk_t) + cap, err);

        if (c == NULL) {
            *text = before;

            if (before.last) {
                before.last->next = NULL;
                before.last->len = was;
            }

            return LLM_ERROR;
        }

        c->next = NULL;
        c->len = 0;
        c->cap = (uint32_t) cap;

        *(text->last ? &text->last->next : &text->first) = c;
        text->last = c;
    }

    return LLM_OK;
}


llm_api_item_t *
llm_api_output_begin(llm_api_t *a, uint32_t part, llm_err_t *err)
{
    llm_api_item_t    *item;
    llm_api_output_t  *o;

    o = &a->output;

    item = llm_api_keep(a, sizeof(llm_api_item_t), err);
    if (item == NULL) {
        return NULL;
    }

    memset(item, 0, sizeof(llm_api_item_t));
    item->part = part;
    item->index = o->last ? o->last->index + 1 : 0;

    *(o->last ? &o->last->next : &o->first) = item;
    o->last = item;

    return item;
}


static int
llm_api_output_copy(llm_api_t *a, llm_str_t *to, const char *s, size_t len,
    llm_err_t *err)
{
    char  *p;

    p = llm_api_keep(a, len + 1, err);
    if (p == NULL) {
        return LLM_ERROR;
    }

    memcpy(p, s, len);
    to->data = p;
    to->len = len;

    return LLM_OK;
}


static int
llm_api_output_call(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    llm_str_t        name;
    llm_api_item_t  *item;

    if (llm_api_output_copy(a, &name, llm_ref_data(ev, ev->u.text.text),
                            ev->u.text.text.len, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    item = llm_api_output_begin(a, LLM_PART_TOOL_NAME, err);
    if (item == NULL) {
        return LLM_ERROR;
    }

    item->call = ev->u.text.call;
    item->name = name;

    return LLM_OK;
}


static int
llm_api_output_text(llm_api_t *a, const llm_event_t *ev, int text,
    llm_err_t *err)
{
    uint32_t         part;
    llm_api_item_t  *item;

    part = ev->u.text.part;
    item = a->output.last;

    if (part == LLM_PART_TOOL_NAME) {
        return llm_api_output_call(a, ev, err);
    }

    if (ev->u.text.text.len == 0) {
        return LLM_OK;
    }

    if (part == LLM_PART_TOOL_ARGS) {
        if (item == NULL || item->part != LLM_PART_TOOL_NAME) {
            return LLM_OK;
        }

    } else if (item == NULL || item->part != part) {
        item = llm_api_output_begin(a, part, err);
        if (item == NULL) {
            return LLM_ERROR;
        }
    }

    if (!text) {
        return LLM_OK;
    }

    return llm_api_text_add(a, &item->text, llm_ref_data(ev, ev->u.text.text),
                            ev->u.text.text.len, err);
}


int
llm_api_output_keep(llm_api_t *a, const llm_event_t *ev, int text,
    llm_err_t *err)
{
    if (ev->type == LLM_EV_TEXT) {
        return llm_api_output_text(a, ev, text, err);
    }

    if (ev->type == LLM_EV_FINISH && ev->u.finish.stop.len) {
        return llm_api_output_copy(a, &a->output.stop,
                                   llm_ref_data(ev, ev->u.finish.stop),
                                   ev->u.finish.stop.len, err);
    }

    return LLM_OK;
}


int
llm_api_output_logprobs(llm_api_t *a, const llm_event_t *ev,
    llm_api_logprob_pt write, llm_err_t *err)
{
    int                         rc;
    uint32_t                    i;
    llm_buf_t                   json;
    llm_api_item_t             *it;
    const llm_token_logprob_t  *t;

    it = a->output.last;

    if (a->n_logprobs < 0 || ev->u.text.logprobs.len == 0 || it == NULL
        || it->part != LLM_PART_CONTENT)
    {
        return LLM_OK;
    }

    t = llm_ref_data(ev, ev->u.text.logprobs);
    llm_buf_init(&json, 0);

    for (i = 0; i < ev->u.text.logprobs.len; i++) {
        if (i || it->logprobs.first) {
            (void) llm_buf_addc(&json, ',');
        }

        write(&json, a, NULL, ev, 0, &t[i]);
    }

    rc = json.failed ? llm_fail(err, "no memory for the answer")
         : llm_api_text_add(a, &it->logprobs, json.data, json.len, err);
    llm_buf_free(&json);

    return rc;
}


/* ---- writing ---- */

static void
llm_api_write_chunk(llm_base64_t *base64, const llm_api_chunk_t *c,
    llm_api_as_t as, llm_buf_t *out)
{
    switch (as) {

    case LLM_API_AS_STRING:
        (void) llm_json_add_text(out, c->data, c->len);
        break;

    case LLM_API_AS_IS:
        (void) llm_buf_add(out, c->data, c->len);
        break;

    case LLM_API_AS_SEALED:
        llm_base64_add(base64, out, c->data, c->len);
        break;
    }
}


/* one small step through an item: LLM_OK at its end */

static int
llm_api_write_step(const llm_api_t *a, llm_api_walk_t *w,
    llm_api_span_pt span, llm_buf_t *out)
{
    llm_api_span_t  s;

    if (w->chunk) {
        llm_api_write_chunk(&w->base64, w->chunk, w->as, out);
        w->chunk = w->chunk->next;
        return LLM_MORE;
    }

    if (w->in_text && w->as == LLM_API_AS_SEALED) {
        llm_base64_end(&w->base64, out);
    }

    w->in_text = 0;

    if (span(a, w->item, w->span++, &s, out) != LLM_MORE) {
        w->span = 0;
        return LLM_OK;
    }

    w->in_text = 1;
    w->as = s.as;
    w->chunk = s.text->first;

    if (s.as == LLM_API_AS_SEALED) {
        llm_base64_add(&w->base64, out, LLM_API_SEAL,
                       sizeof(LLM_API_SEAL) - 1);
    }

    return LLM_MORE;
}


void
llm_api_write_item(const llm_api_t *a, const llm_api_item_t *item,
    llm_api_span_pt span, llm_buf_t *out)
{
    llm_api_walk_t  w = { .item = item };

    while (llm_api_write_step(a, &w, span, out) == LLM_MORE) { /* void */ }
}


int
llm_api_write_items(llm_api_t *a, llm_api_span_pt span, size_t max,
    llm_buf_t *out)
{
    llm_api_walk_t  *w;

    w = &a->output.walk;

    if (!w->begun) {
        w->begun = 1;
        w->item = a->output.first;
    }

    while (w->item) {

        if (out->failed) {
            return LLM_ERROR;
        }

        if (out->len >= max) {
            return LLM_MORE;
        }

        if (llm_api_write_step(a, w, span, out) == LLM_OK) {
            w->item = w->item->next;

            if (w->item) {
                (void) llm_buf_addc(out, ',');
            }
        }
    }

    return LLM_OK;
}


void
llm_api_write_text_of(const llm_api_text_t *text, llm_api_as_t as,
    llm_buf_t *out)
{
    llm_base64_t            base64 = { 0 };
    const llm_api_chunk_t  *c;

    for (c = text->first; c; c = c->next) {
        llm_api_write_chunk(&base64, c, as, out);
    }

    llm_base64_end(&base64, out);
}


int
llm_api_unseal(llm_str_t sealed, llm_buf_t *out)
{
    size_t  start, len, text;

    len = sizeof(LLM_API_SEAL) - 1;
    start = out->len;

    if (llm_base64_decode(out, sealed.data, sealed.len) == LLM_OK
        && out->len - start >= len
        && memcmp(out->data + start, LLM_API_SEAL, len) == 0)
    {
        text = out->len - start - len;

        if (llm_utf8_valid(out->data + start + len, text) == text
            && memchr(out->data + start, '\0', len + text) == NULL)
        {
            memmove(out->data + start, out->data + start + len, text);
            out->len = start + text;
            out->data[out->len] = '\0';
            return LLM_OK;
        }
    }

    out->len = start;

    return LLM_ABSENT;
}
