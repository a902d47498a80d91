/*
 * Lists that endpoints share, written to the message: token ids, prompts,
 * stop strings, stop tokens, logit biases, allowed tokens, bad words,
 * sequence breakers.
 */

#include "engine/api/endpoint.h"

#include <math.h>

#include <stdio.h>


/* also for a model that takes more in chats */
#define LLM_API_ONLY_TEXT                                                     \
    "this parameter takes text only; images and sound come with chats"


int
llm_api_write_ids(const llm_flat_t *list, const llm_api_at_t *at,
    llm_buf_t *msg, llm_ref_t *ref, llm_err_t *err)
{
    int32_t            id;
    uint32_t           i;
    const llm_flat_t  *v;

    ref->off = (uint32_t) msg->len;
    ref->len = list->count;

    v = llm_flat_first(list);

    for (i = 0; v; i++) {
        if (llm_api_check_int(err, llm_api_idx(at, i), v, 0, INT32_MAX)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        id = (int32_t) llm_flat_int(v);
        (void) llm_buf_add(msg, &id, sizeof(int32_t));

        v = llm_flat_next(list, v);
    }

    (void) llm_buf_pad(msg);

    return LLM_OK;
}


llm_ref_t
llm_api_write_string(llm_buf_t *msg, llm_str_t s)
{
    llm_ref_t  ref;

    ref.off = (uint32_t) msg->len;
    ref.len = (uint32_t) s.len;

    (void) llm_buf_add(msg, s.data, s.len);
    (void) llm_buf_pad(msg);

    return ref;
}


/* is it an array of strings and token ids, both of which it has? */

static int
llm_api_is_mixed(const llm_flat_t *v)
{
    int                ids, texts;
    const llm_flat_t  *item;

    ids = 0;
    texts = 0;

    for (item = v->type == LLM_FLAT_ARRAY ? llm_flat_first(v) : NULL; item;
         item = llm_flat_next(v, item))
    {
        ids |= llm_api_is_int(item);
        texts |= item->type == LLM_FLAT_STRING;

        if (!llm_api_is_int(item) && item->type != LLM_FLAT_STRING) {
            return 0;
        }
    }

    return ids && texts;
}


/* a prompt of several parts */

static int
llm_api_write_parts_of(const llm_flat_t *v, const llm_api_at_t *at,
    llm_buf_t *msg, llm_prompt_ref_t *p, llm_err_t *err)
{
    int32_t            id;
    uint32_t           i, n;
    llm_buf_t          refs;
    llm_prompt_ref_t   part;
    const llm_flat_t  *item;

    llm_buf_init(&refs, 0);
    n = 0;
    item = llm_flat_first(v);

    for (i = 0; item; i++, item = llm_flat_next(v, item)) {
        memset(&part, 0, sizeof(part));

        if (item->type == LLM_FLAT_STRING) {
            part.ref = llm_api_write_string(msg, llm_flat_str(item));

        } else {
            if (llm_api_check_int(err, llm_api_idx(at, i), item, 0, INT32_MAX)
                != LLM_OK)
            {
                llm_buf_free(&refs);
                return LLM_ERROR;
            }

            id = (int32_t) llm_flat_int(item);
            part.is_ids = LLM_PROMPT_IDS;
            part.ref.off = (uint32_t) msg->len;
            part.ref.len = 1;
            (void) llm_buf_add(msg, &id, sizeof(id));
            (void) llm_buf_pad(msg);
        }

        (void) llm_buf_add(&refs, &part, sizeof(part));
        n++;
    }

    p->is_ids = LLM_PROMPT_PARTS;
    p->ref.off = (uint32_t) msg->len;
    p->ref.len = n;
    (void) llm_buf_add(msg, refs.data, refs.len);
    (void) llm_buf_pad(msg);
    msg->failed |= refs.failed;
    llm_buf_free(&refs);

    return LLM_OK;
}


/* a text in an object: {"prompt_string": TEXT}, or {"content": [parts]}, whose
   texts are joined */

static int
llm_api_write_object(const llm_flat_t *v, const llm_api_at_t *at,
    llm_buf_t *msg, llm_prompt_ref_t *p, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *content, *part, *media;
    const llm_api_at_t  *in, *here;

    media = llm_api_member(v, "multimodal_data");

    if (media && media->count) {
        return llm_api_unsupported(err, llm_api_key(at, "multimodal_data"),
                                   LLM_API_ONLY_TEXT);
    }

    content = llm_api_member(v, "content");

    if (content == NULL) {
        v = llm_api_need(err, at, v, "prompt_string", LLM_FLAT_STRING);

        if (v == NULL) {
            return LLM_ERROR;
        }

        p->ref = llm_api_write_string(msg, llm_flat_str(v));

        return LLM_OK;
    }

    in = llm_api_key(at, "content");

    if (llm_api_check_type(err, in, content, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    p->ref.off = (uint32_t) msg->len;
    part = llm_flat_first(content);

    for (i = 0; part; i++) {
        here = llm_api_idx(in, i);

        if (llm_api_check_type(err, here, part, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        if (!llm_api_str_is(llm_api_member(part, "type"), "text")) {
            return llm_api_unsupported(err, llm_api_key(here, "type"),
                                       LLM_API_ONLY_TEXT);
        }

        v = llm_api_need(err, here, part, "text", LLM_FLAT_STRING);

        if (v == NULL) {
            return LLM_ERROR;
        }

        (void) llm_buf_add(msg, llm_flat_str(v).data, v->count);
        p->ref.len += v->count;
        part = llm_flat_next(content, part);
    }

    (void) llm_buf_pad(msg);

    return LLM_OK;
}


/* is it llama-server's object with a text, of a form that takes them? */

static int
llm_api_is_object(const llm_flat_t *v, unsigned forms)
{
    return v->type == LLM_FLAT_OBJECT
           && ((forms & LLM_API_MIXED)
               || ((forms & LLM_API_OBJECTS)
                   && (llm_api_member(v, "prompt_string")
                       || llm_api_member(v, "content"))));
}


static int
llm_api_write_prompt(const llm_flat_t *v, unsigned forms,
    const llm_api_at_t *at, llm_buf_t *msg, llm_prompt_ref_t *p,
    llm_err_t *err)
{
    memset(p, 0, sizeof(llm_prompt_ref_t));

    if ((forms & LLM_API_MIXED) && llm_api_is_mixed(v)) {
        return llm_api_write_parts_of(v, at, msg, p, err);
    }

    if (llm_api_is_object(v, forms)) {
        return llm_api_write_object(v, at, msg, p, err);
    }

    if (v->type == LLM_FLAT_ARRAY) {
        p->is_ids = LLM_PROMPT_IDS;

        return v->count ? llm_api_write_ids(v, at, msg, &p->ref, err)
                        : llm_api_empty(err, at);
    }

    if (v->type != LLM_FLAT_STRING) {
        return llm_api_bad_type(err, at, "a string or an array of token ids",
                                v);
    }

    p->ref = llm_api_write_string(msg, llm_flat_str(v));

    return LLM_OK;
}


int
llm_api_write_forms(const llm_flat_t *v, unsigned forms,
    const llm_api_at_t *at, uint32_t max, llm_buf_t *msg, llm_ref_t *ref,
    llm_err_t *err)
{
    int                one;
    int                rc;
    uint32_t           n;
    llm_buf_t          refs;
    const llm_flat_t  *item;
    llm_prompt_ref_t   p;

    item = (v->type == LLM_FLAT_ARRAY) ? llm_flat_first(v) : NULL;

    if (v->type == LLM_FLAT_ARRAY && item == NULL) {
        return llm_api_empty(err, at);
    }

    one = item == NULL || llm_api_is_int(item)
          || ((forms & LLM_API_MIXED) && llm_api_is_mixed(v));

    if (!one && v->count > max) {
        return llm_api_too_long(err, at, max, v);
    }

    llm_buf_init(&refs, 0);

    if (one) {
        n = 1;
        rc = llm_api_write_prompt(v, forms, at, msg, &p, err);
        (void) llm_buf_add(&refs, &p, sizeof(llm_prompt_ref_t));

    } else {
        n = 0;
        rc = LLM_OK;

        for ( /* void */ ; item && rc == LLM_OK;
             item = llm_flat_next(v, item))
        {
            rc = llm_api_write_prompt(item, forms, llm_api_idx(at, n++), msg,
                                      &p, err);
            (void) llm_buf_add(&refs, &p, sizeof(llm_prompt_ref_t));
        }
    }

    ref->off = (uint32_t) msg->len;
    ref->len = n;

    if (rc == LLM_OK && refs.failed) {
        rc = llm_fail(err, "no memory for the request");
    }

    if (rc == LLM_OK) {
        (void) llm_buf_add(msg, refs.data, refs.len);
        (void) llm_buf_pad(msg);
    }

    llm_buf_free(&refs);

    return rc;
}


int
llm_api_write_prompts(const llm_flat_t *v, const llm_api_at_t *at,
    uint32_t max, llm_buf_t *msg, llm_ref_t *ref, llm_err_t *err)
{
    return llm_api_write_forms(v, 0, at, max, msg, ref, err);
}


/* most strings in a list, most bytes of each */

typedef struct {
    uint32_t       strings;
    uint32_t       bytes;
} llm_api_most_t;

/* writes a string, or an array of strings; empty ones would never match and
   are left out */

static int
llm_api_write_strings(const llm_flat_t *list, const llm_api_at_t *at,
    llm_api_most_t most, llm_buf_t *msg, llm_ref_t *ref, llm_err_t *err)
{
    uint32_t             i, n;
    llm_str_t            s;
    llm_ref_t            refs[LLM_MAX_BAD_WORDS];
    const llm_flat_t    *v;
    const llm_api_at_t  *here;

    if (list->type != LLM_FLAT_STRING && list->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "a string or an array of strings",
                                list);
    }

    v = list;

    if (list->type == LLM_FLAT_ARRAY) {
        if (list->count > most.strings) {
            return llm_api_too_long(err, at, most.strings, list);
        }

        v = llm_flat_first(list);
    }

    n = 0;

    for (i = 0; v; i++) {
        here = (v == list) ? at : llm_api_idx(at, i);

        if (llm_api_check_type(err, here, v, LLM_FLAT_STRING) != LLM_OK) {
            return LLM_ERROR;
        }

        s = llm_flat_str(v);

        if (s.len > most.bytes) {
            return llm_api_too_long(err, here, most.bytes, v);
        }

        if (s.len) {
            refs[n].off = (uint32_t) msg->len;
            refs[n++].len = (uint32_t) s.len;
            (void) llm_buf_add(msg, s.data, s.len);
        }

        v = (v == list) ? NULL : llm_flat_next(list, v);
    }

    (void) llm_buf_pad(msg);

    ref->off = (uint32_t) msg->len;
    ref->len = n;

    (void) llm_buf_add(msg, refs, n * sizeof(llm_ref_t));
    (void) llm_buf_pad(msg);

    return LLM_OK;
}


static int
llm_api_write_stop_ids(const llm_api_body_t *b, llm_buf_t *msg,
    llm_ref_t *ref, llm_err_t *err)
{
    const llm_flat_t    *list;
    const llm_api_at_t  *at;

    at = llm_api_top("stop_token_ids");
    list = b->stop_token_ids;

    if (list == NULL) {
        return LLM_OK;
    }

    if (list->count > LLM_API_MAX_STOP_IDS) {
        return llm_api_too_long(err, at, LLM_API_MAX_STOP_IDS, list);
    }

    return llm_api_write_ids(list, at, msg, ref, err);
}


/* a key of logit_bias: digits of a token id, or -1 */

static int64_t
llm_api_bias_id(llm_str_t s)
{
    size_t   i;
    int64_t  id;

    id = 0;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9' || id > INT32_MAX) {
            return -1;
        }

        id = id * 10 + (s.data[i] - '0');
    }

    return (s.len && id <= INT32_MAX) ? id : -1;
}


/* writes the key as the client wrote it, cut to fit */

static void
llm_api_bias_name(const llm_flat_t *k, char *name, size_t size)
{
    llm_str_t  s;
    llm_buf_t  text;

    llm_buf_init(&text, 0);

    if (k->type == LLM_FLAT_STRING) {
        s = llm_flat_str(k);
        (void) llm_buf_add(&text, s.data, llm_min(s.len, size));

    } else {
        (void) llm_json_add_flat(&text, k);
    }

    snprintf(name, size, "%.*s", (int) llm_min(text.len, size),
             text.data ? text.data : "");
    llm_buf_free(&text);
}


/* writes a pair of logit_bias to one of two lists: of tokens, or of texts, whose
   bytes go to the message.  llama-server's value for "never" is false */

static int
llm_api_write_bias_of(const llm_api_body_t *b, const llm_flat_t *k,
    const llm_flat_t *value, llm_buf_t *msg, llm_buf_t lists[2],
    llm_err_t *err)
{
    int                  text;
    char                 name[48];
    float                of;
    int64_t              id;
    llm_logit_bias_t     bias;
    llm_text_bias_t      of_text;
    const llm_api_at_t  *at;

    at = llm_api_top("logit_bias");
    id = (k->type == LLM_FLAT_STRING) ? llm_api_bias_id(llm_flat_str(k))
         : llm_api_is_int(k) ? llm_flat_int(k) : -1;
    text = id < 0 && b->texts_biased && k->type == LLM_FLAT_STRING
           && llm_flat_str(k).len;
    llm_api_bias_name(k, name, sizeof(name));

    if ((id < 0 && !text) || id > INT32_MAX) {
        return llm_api_bad_value(err, at, "Invalid key in 'logit_bias': '%s' "
                                 "is not a token id.", name);
    }

    if (b->texts_biased && value->type == LLM_FLAT_BOOL
        && !llm_flat_int(value)) {
        of = -INFINITY;

    } else if (llm_api_check_number(err, llm_api_key(at, name), value, -100,
                                    100, 0)
               == LLM_OK)
    {
        of = (float) llm_flat_double(value);

    } else {
        snprintf(err->param, sizeof(err->param), "logit_bias");
        return LLM_ERROR;
    }

    if (text) {
        of_text.bias = of;
        of_text.text.off = (uint32_t) msg->len;
        of_text.text.len = (uint32_t) llm_flat_str(k).len;
        (void) llm_buf_add(msg, llm_flat_str(k).data, llm_flat_str(k).len);
        (void) llm_buf_add(&lists[1], &of_text, sizeof(of_text));

    } else {
        bias.bias = of;
        bias.id = (int32_t) id;
        (void) llm_buf_add(&lists[0], &bias, sizeof(bias));
    }

    return LLM_OK;
}


/* writes all pairs to the lists */

static int
llm_api_write_pairs(const llm_api_body_t *b, llm_buf_t *msg,
    llm_buf_t lists[2], llm_err_t *err)
{
    const llm_flat_t  *list, *v, *k, *value;

    list = b->logit_bias;

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {

        if (list->type == LLM_FLAT_OBJECT) {
            k = v;
            value = v = llm_flat_next(list, k);

        } else {
            if (v->type != LLM_FLAT_ARRAY || v->count != 2) {
                return llm_api_bad_value(err, llm_api_top("logit_bias"),
                                         "Invalid 'logit_bias': expected "
                                         "pairs of a token id and a bias.");
            }

            k = llm_flat_first(v);
            value = llm_flat_next(v, k);
        }

        if (llm_api_write_bias_of(b, k, value, msg, lists, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_api_write_bias(const llm_api_body_t *b, llm_buf_t *msg,
    llm_request_t *r, llm_err_t *err)
{
    int                  rc;
    uint32_t             i;
    llm_buf_t            lists[2];
    const llm_api_at_t  *at;

    llm_ref_t *const     refs[2] = { &r->logit_bias, &r->text_bias };
    static const size_t  sizes[2] = {
        sizeof(llm_logit_bias_t), sizeof(llm_text_bias_t)
    };

    at = llm_api_top("logit_bias");

    if (b->logit_bias == NULL) {
        return LLM_OK;
    }

    if (b->logit_bias->type != LLM_FLAT_OBJECT
        && b->logit_bias->type != LLM_FLAT_ARRAY)
    {
        return llm_api_bad_type(err, at, "an object", b->logit_bias);
    }

    if (b->logit_bias->count > LLM_API_MAX_BIAS) {
        return llm_api_too_long(err, at, LLM_API_MAX_BIAS, b->logit_bias);
    }

    llm_buf_init(&lists[0], 0);
    llm_buf_init(&lists[1], 0);
    rc = llm_api_write_pairs(b, msg, lists, err);

    for (i = 0; i < 2; i++) {
        (void) llm_buf_pad(msg);
        refs[i]->off = (uint32_t) msg->len;
        refs[i]->len = (uint32_t) (lists[i].len / sizes[i]);

        if (lists[i].len) {
            (void) llm_buf_add(msg, lists[i].data, lists[i].len);
        }

        msg->failed |= lists[i].failed;
        llm_buf_free(&lists[i]);
    }

    (void) llm_buf_pad(msg);

    return rc;
}


/* writes the tokens that alone may be drawn */

static int
llm_api_write_allowed(const llm_api_body_t *b, llm_buf_t *msg,
    llm_ref_t *ref, llm_err_t *err)
{
    const llm_api_at_t  *at;

    at = llm_api_top("allowed_token_ids");

    if (b->allowed_token_ids == NULL) {
        return LLM_OK;
    }

    return b->allowed_token_ids->count
           ? llm_api_write_ids(b->allowed_token_ids, at, msg, ref, err)
           : llm_api_empty(err, at);
}


/* writes DRY's sequence breakers, if DRY is on; the defaults are llama.cpp's */

static int
llm_api_write_breakers(const llm_api_body_t *b, llm_buf_t *msg,
    llm_ref_t *ref, llm_err_t *err)
{
    uint32_t   i;
    llm_ref_t  refs[4];

    static const char  usual[] = "\n:\"*";

    if (b->dry_sequence_breakers) {
        return llm_api_write_strings(b->dry_sequence_breakers,
                                     llm_api_top("dry_sequence_breakers"),
                                     (llm_api_most_t) { LLM_MAX_BREAKERS,
                                                        LLM_MAX_BREAKER_LEN },
                                     msg, ref, err);
    }

    if (b->sampling.dry_multiplier <= 0) {
        return LLM_OK;
    }

    for (i = 0; i < llm_nelems(refs); i++) {
        refs[i].off = (uint32_t) msg->len + i;
        refs[i].len = 1;
    }

    (void) llm_buf_add(msg, usual, llm_nelems(refs));
    (void) llm_buf_pad(msg);

    ref->off = (uint32_t) msg->len;
    ref->len = llm_nelems(refs);

    (void) llm_buf_add(msg, refs, sizeof(refs));

    return LLM_OK;
}


int
llm_api_write_lists(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err)
{
    llm_request_t  *r;

    static const llm_api_most_t  stops = {
        LLM_MAX_STOPS, LLM_API_MAX_STOP_LEN
    };
    static const llm_api_most_t  words = {
        LLM_MAX_BAD_WORDS, LLM_API_MAX_STOP_LEN
    };

    r = &rd->r;

    if ((b->stop
         && llm_api_write_strings(b->stop, llm_api_top("stop"), stops,
                                  rd->msg, &r->stops, err) != LLM_OK)
        || (b->bad_words
            && llm_api_write_strings(b->bad_words, llm_api_top("bad_words"),
                                     words, rd->msg, &r->bad_words, err)
               != LLM_OK)
        || llm_api_write_allowed(b, rd->msg, &r->allowed_ids, err) != LLM_OK
        || llm_api_write_breakers(b, rd->msg, &r->breakers, err) != LLM_OK
        || llm_api_write_stop_ids(b, rd->msg, &r->stop_ids, err) != LLM_OK
        || llm_api_write_bias(b, rd->msg, r, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}
