/*
 * "context" of /api/generate; see ollama.h.
 *
 * A request's context begins with the messages that were before, and ends with
 * the answer: rd->own has the former as JSON text, without the end of the
 * array.
 */

#include "engine/api/ollama.h"

/* bytes of a number; JavaScript's numbers are exact up to 53 bits */
#define LLM_API_OL_PACKED  6

/* what the text begins with */
#define LLM_API_OL_MARK    "ngxllm"

typedef struct {
    uint32_t           len;
    char               text[];          /* [len] */
} llm_api_ol_own_t;


/* ---- reading ---- */

static int
llm_api_ol_foreign(llm_err_t *err)
{
    return llm_api_bad_value(err, llm_api_top("context"), "Invalid 'context': "
                             "it is not one that this server has sent.");
}


/* the text of a context */

static int
llm_api_ol_unpack(const llm_flat_t *context, llm_buf_t *text, llm_err_t *err)
{
    int                shift;
    int64_t            n;
    const llm_flat_t  *v;

    for (v = llm_flat_first(context); v; v = llm_flat_next(context, v)) {
        n = llm_api_is_int(v) ? llm_flat_int(v) : -1;

        if (n < 0 || n >> 8 * LLM_API_OL_PACKED) {
            return llm_api_ol_foreign(err);
        }

        for (shift = 8 * (LLM_API_OL_PACKED - 1); shift >= 0; shift -= 8) {
            (void) llm_buf_addc(text, (char) (n >> shift & 0xff));
        }
    }

    if (text->failed) {
        return llm_fail(err, "no memory for the request");
    }

    return text->len < LLM_API_OL_PACKED
           || memcmp(text->data, LLM_API_OL_MARK, LLM_API_OL_PACKED) != 0
           ? llm_api_ol_foreign(err) : LLM_OK;
}


/* adds a message as JSON to a context's text */

static void
llm_api_ol_add(llm_buf_t *own, const char *role, llm_str_t text)
{
    (void) llm_buf_addf(own, "%s{\"role\":\"%s\",\"content\":",
                        own->data[own->len - 1] == '[' ? "" : ",", role);
    (void) llm_json_add_string(own, text.data, text.len);
    (void) llm_buf_addc(own, '}');
}


/* the request's own images and text; the context keeps the text alone */

static int
llm_api_ol_ask(llm_api_draft_t *d, llm_buf_t *own, const llm_api_ollama_t *b,
    llm_err_t *err)
{
    llm_api_draft_end_message(d);
    llm_api_draft_open(d, "user");

    if (llm_api_ollama_images(d, b->images, 0, llm_api_top("images"), err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (b->prompt.len) {
        llm_api_draft_text(d, b->prompt);
    }

    llm_api_ol_add(own, "user", b->prompt);

    return LLM_OK;
}


static void
llm_api_ol_say(llm_api_draft_t *d, llm_buf_t *own, const char *role,
    llm_str_t text)
{
    llm_api_draft_end_message(d);
    llm_api_draft_open(d, role);

    if (text.len) {
        llm_api_draft_text(d, text);
    }

    llm_api_ol_add(own, role, text);
}


/* adds a message of a context; a new system prompt replaces an old one */

static int
llm_api_ol_again(llm_api_draft_t *d, llm_buf_t *own, const llm_flat_t *msg,
    llm_str_t system, llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *role, *content;

    static const char *const  roles[] = { "system", "user", "assistant" };

    role = llm_api_member(msg, "role");
    content = llm_api_member(msg, "content");

    if (role == NULL || content == NULL || content->type != LLM_FLAT_STRING) {
        return llm_api_ol_foreign(err);
    }

    for (i = 0; i < llm_nelems(roles); i++) {
        if (llm_api_str_is(role, roles[i])) {
            if (i || system.len == 0) {
                llm_api_ol_say(d, own, roles[i], llm_flat_str(content));
            }

            return LLM_OK;
        }
    }

    return llm_api_ol_foreign(err);
}


static int
llm_api_ol_messages(llm_api_reader_t *rd, const llm_api_ollama_t *b,
    const llm_buf_t *text, llm_api_draft_t *d, llm_buf_t *own, llm_err_t *err)
{
    int                rc;
    llm_buf_t          flat;
    llm_err_t          why;
    const llm_flat_t  *root, *msg;

    llm_buf_init(&flat, 0);
    rc = llm_json_to_flat(text->data + LLM_API_OL_PACKED,
                          text->len - LLM_API_OL_PACKED, &rd->limits, &flat,
                          &why);
    root = (const llm_flat_t *) flat.data;

    if (rc != LLM_OK || root->type != LLM_FLAT_ARRAY) {
        rc = llm_api_ol_foreign(err);

    } else {
        for (msg = llm_flat_first(root); msg && rc == LLM_OK;
             msg = llm_flat_next(root, msg))
        {
            rc = llm_api_ol_again(d, own, msg, b->system, err);
        }
    }

    llm_buf_free(&flat);

    return rc;
}


int
llm_api_ollama_recall(llm_api_reader_t *rd, const llm_api_ollama_t *b,
    llm_api_draft_t *d, llm_err_t *err)
{
    int         rc;
    llm_buf_t   text, *own;
    uint32_t    len;

    rc = LLM_OK;
    own = &rd->own;
    llm_buf_init(&text, 0);

    (void) llm_buf_add(own, &(llm_api_ol_own_t) { 0 },
                       sizeof(llm_api_ol_own_t));
    (void) llm_buf_adds(own, LLM_API_OL_MARK "[");
    llm_api_draft_messages(d);

    if (b->system.len && !own->failed) {
        llm_api_ol_say(d, own, "system", b->system);
    }

    if (b->context && b->context->count) {
        rc = llm_api_ol_unpack(b->context, &text, err);

        if (rc == LLM_OK && !own->failed) {
            rc = llm_api_ol_messages(rd, b, &text, d, own, err);
        }
    }

    llm_buf_free(&text);

    if (rc != LLM_OK
        || (!own->failed && llm_api_ol_ask(d, own, b, err) != LLM_OK))
    {
        return LLM_ERROR;
    }

    llm_api_draft_messages_end(d);

    if (own->failed) {
        return llm_fail(err, "no memory for the request");
    }

    len = (uint32_t) (own->len - sizeof(llm_api_ol_own_t));
    memcpy(own->data + offsetof(llm_api_ol_own_t, len), &len, sizeof(len));

    return LLM_OK;
}


/* ---- writing ---- */

/* bytes that wait for a number to be complete */
typedef struct {
    uint64_t           number;
    uint32_t           n;
    uint32_t           some;            /* there is a number already */
} llm_api_ol_pack_t;


static void
llm_api_ol_pack(llm_api_ol_pack_t *p, const char *s, size_t len,
    llm_buf_t *out)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        p->number = p->number << 8 | (unsigned char) s[i];

        if (++p->n == LLM_API_OL_PACKED) {
            if (p->some) {
                (void) llm_buf_addc(out, ',');
            }

            llm_api_add_uint(out, p->number);
            p->number = 0;
            p->n = 0;
            p->some = 1;
        }
    }
}


void
llm_api_ollama_remember(const llm_api_t *a, llm_buf_t *out)
{
    llm_buf_t                json;
    llm_api_ol_pack_t        p;
    const llm_api_item_t    *it;
    const llm_api_chunk_t   *c;
    const llm_api_ol_own_t  *own = a->own;

    static const char  before[] = ",{\"role\":\"assistant\",\"content\":\"";
    static const char  after[] = "\"}]";
    static const char  spaces[] = "      ";

    memset(&p, 0, sizeof(p));
    llm_buf_init(&json, 0);

    llm_api_ol_pack(&p, own->text, own->len, out);
    llm_api_ol_pack(&p, before, sizeof(before) - 1, out);

    for (it = a->output.first; it; it = it->next) {
        for (c = it->text.first; c && it->part == LLM_PART_CONTENT;
             c = c->next)
        {
            json.len = 0;
            (void) llm_json_add_text(&json, c->data, c->len);
            llm_api_ol_pack(&p, json.data, json.len, out);
        }
    }

    llm_api_ol_pack(&p, after, sizeof(after) - 1, out);

    if (p.n) {
        llm_api_ol_pack(&p, spaces, LLM_API_OL_PACKED - p.n, out);
    }

    out->failed |= json.failed;
    llm_buf_free(&json);
}
