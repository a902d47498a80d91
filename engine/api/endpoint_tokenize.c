/*
 * POST /tokenize and /detokenize, in llama.cpp's form ("content", "tokens",
 * "with_pieces") and in vLLM's ("prompt" or "messages", "count",
 * "max_model_len", "token_strs"): every answer has the members of both forms.
 */

#include "engine/api/chat.h"
#include "engine/base/utf8.h"

#define AT(f)    offsetof(llm_api_tokenize_t, f)
#define CHAT(f)  offsetof(llm_api_tokenize_t, chat.f)

/* options of an answer */
#define LLM_API_PIECES  1               /* each token is {"id", "piece"} */
#define LLM_API_STRS    2               /* the answer has "token_strs" */


typedef struct {
    llm_api_chat_t     chat;            /* "messages" and the fields of a
                                           chat */
    const llm_flat_t  *content;
    const llm_flat_t  *prompt;
    const llm_flat_t  *tokens;

    int                add_special;             /* llama.cpp's name */
    int                add_special_tokens;      /* vLLM's name; -1: not given */
    int                parse_special;
    int                with_pieces;
    int                return_token_strs;
} llm_api_tokenize_t;


static const llm_api_field_t  llm_api_tokenize_rows[] = {
    { "add_generation_prompt", LLM_FIELD_BOOL, CHAT(add_generation_prompt),
      0, 0 },
    { "add_special", LLM_FIELD_BOOL, AT(add_special), 0, 0 },
    { "add_special_tokens", LLM_FIELD_BOOL, AT(add_special_tokens), 0, 0 },
    { "chat_template", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "chat_template_kwargs", LLM_FIELD_OBJECT, CHAT(chat_template_kwargs),
      0, 0 },
    { "content", LLM_FIELD_ANY, AT(content), 0, 0 },
    { "continue_final_message", LLM_FIELD_BOOL, CHAT(continue_final_message),
      0, 0 },
    { "documents", LLM_FIELD_ARRAY, CHAT(documents), 0, 0 },
    { "enable_thinking", LLM_FIELD_BOOL, CHAT(enable_thinking), 0, 0 },
    { "messages", LLM_FIELD_ANY, CHAT(messages), 0, 0 },
    { "model", LLM_FIELD_STRING, CHAT(body.model), 0, 0 },
    { "parse_special", LLM_FIELD_BOOL, AT(parse_special), 0, 0 },
    { "prompt", LLM_FIELD_ANY, AT(prompt), 0, 0 },
    { "reasoning", LLM_FIELD_OBJECT, CHAT(reasoning), 0, 0 },
    { "reasoning_effort", LLM_FIELD_STRING, CHAT(reasoning_effort), 0, 0 },
    { "return_token_strs", LLM_FIELD_BOOL, AT(return_token_strs), 0, 0 },
    { "thinking", LLM_FIELD_ANY, CHAT(thinking), 0, 0 },
    { "tools", LLM_FIELD_ARRAY, CHAT(tools), 0, 0 },
    { "with_pieces", LLM_FIELD_BOOL, AT(with_pieces), 0, 0 },
};

static const llm_api_fields_t  llm_api_tokenize_fields = {
    llm_api_tokenize_rows, llm_nelems(llm_api_tokenize_rows)
};

static const llm_api_field_t  llm_api_detokenize_rows[] = {
    { "model", LLM_FIELD_STRING, CHAT(body.model), 0, 0 },
    { "tokens", LLM_FIELD_REQUIRED, AT(tokens), 0, 0 },
};

static const llm_api_fields_t  llm_api_detokenize_fields = {
    llm_api_detokenize_rows, llm_nelems(llm_api_detokenize_rows)
};


/* ---- the readers ---- */

static int
llm_api_tokenize_body(llm_api_reader_t *rd, llm_api_tokenize_t *b,
    llm_err_t *err)
{
    memset(b, 0, sizeof(llm_api_tokenize_t));
    llm_api_chat_defaults(&b->chat);
    b->add_special_tokens = -1;
    b->parse_special = 1;
    rd->n_choices = 1;

    return llm_api_read_plain(rd, b, &b->chat.body.model, err);
}


static int
llm_api_tokenize_chat(llm_api_reader_t *rd, llm_api_chat_t *b,
    llm_err_t *err)
{
    size_t  start;

    start = rd->msg->len;
    rd->r.kind = LLM_KIND_CHAT;

    if (llm_api_check_messages(rd, b->messages, err) != LLM_OK
        || llm_api_check_tools(b, err) != LLM_OK
        || llm_api_chat_thinking(b, err) != LLM_OK
        || llm_api_write_chat(rd, b, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.chat.off = (uint32_t) start;
    rd->r.chat.len = (uint32_t) (rd->msg->len - start);

    return LLM_OK;
}


/* writes the only prompt: text, or ids */

static void
llm_api_tokenize_prompt(llm_api_reader_t *rd, llm_ref_t ref, int is_ids)
{
    llm_prompt_ref_t  p;

    memset(&p, 0, sizeof(p));
    p.is_ids = (uint32_t) is_ids;
    p.ref = ref;

    rd->r.kind = LLM_KIND_COMPLETION;
    rd->r.prompts.off = (uint32_t) rd->msg->len;
    rd->r.prompts.len = 1;

    (void) llm_buf_add(rd->msg, &p, sizeof(p));
    (void) llm_buf_pad(rd->msg);
}


static int
llm_api_tokenize_text(llm_api_reader_t *rd, const llm_api_tokenize_t *b,
    llm_err_t *err)
{
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    v = b->content ? b->content : b->prompt;
    at = llm_api_top(b->content ? "content" : "prompt");

    if (v == NULL) {
        return llm_api_missing(err, at);
    }

    if (llm_api_check_type(err, at, v, LLM_FLAT_STRING) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_tokenize_prompt(rd, llm_api_write_string(rd->msg,
                                                     llm_flat_str(v)), 0);

    return LLM_OK;
}


/* vLLM adds BOS to a prompt unless it is told not to; llama.cpp adds it to a
   content only if it is told to */

static int
llm_api_tokenize_read(llm_api_reader_t *rd, llm_err_t *err)
{
    int                 add;
    llm_api_tokenize_t  b;

    if (llm_api_tokenize_body(rd, &b, err) != LLM_OK) {
        return LLM_ERROR;
    }

    add = b.add_special_tokens == -1 ? b.add_special || b.content == NULL
                                     : b.add_special_tokens;

    rd->options = (b.with_pieces ? LLM_API_PIECES : 0)
                  | (b.return_token_strs ? LLM_API_STRS : 0);
    rd->r.flags = (add ? LLM_REQ_ADD : 0)
                  | (b.parse_special ? 0 : LLM_REQ_PLAIN)
                  | (rd->options ? LLM_REQ_PIECES : 0);

    return b.chat.messages && b.content == NULL && b.prompt == NULL
           ? llm_api_tokenize_chat(rd, &b.chat, err)
           : llm_api_tokenize_text(rd, &b, err);
}


static int
llm_api_detokenize_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_ref_t            ref;
    llm_api_tokenize_t   b;
    const llm_api_at_t  *at;

    at = llm_api_top("tokens");

    if (llm_api_tokenize_body(rd, &b, err) != LLM_OK
        || llm_api_check_type(err, at, b.tokens, LLM_FLAT_ARRAY) != LLM_OK
        || llm_api_write_ids(b.tokens, at, rd->msg, &ref, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_api_tokenize_prompt(rd, ref, 1);

    return LLM_OK;
}


/* ---- the bodies ---- */

/* adds a token's text; as a list of bytes if it is not UTF-8 or has a NUL */

static void
llm_api_add_piece(llm_buf_t *out, const char *s, size_t len)
{
    size_t  i;

    if (llm_utf8_valid(s, len) == len && memchr(s, '\0', len) == NULL) {
        (void) llm_json_add_string(out, s, len);
        return;
    }

    for (i = 0; i < len; i++) {
        (void) llm_buf_addc(out, i ? ',' : '[');
        llm_api_add_uint(out, (unsigned char) s[i]);
    }

    (void) llm_buf_addc(out, ']');
}


static void
llm_api_add_token(llm_buf_t *out, const llm_api_t *a, const llm_event_t *ev,
    const llm_token_logprob_t *t)
{
    if (a->cursor.member) {
        (void) llm_json_add_string(out, llm_ref_data(ev, t->bytes),
                                   t->bytes.len);

    } else if (a->options & LLM_API_PIECES) {
        (void) llm_buf_adds(out, "{\"id\":");
        llm_api_add_uint(out, (uint64_t) t->id);
        (void) llm_buf_adds(out, ",\"piece\":");
        llm_api_add_piece(out, llm_ref_data(ev, t->bytes), t->bytes.len);
        (void) llm_buf_addc(out, '}');

    } else {
        llm_api_add_uint(out, (uint64_t) t->id);
    }
}


static void
llm_api_add_tokens(llm_api_t *a, llm_buf_t *out)
{
    uint32_t                    i;
    const llm_event_t          *ev;
    const llm_token_logprob_t  *t;

    ev = a->cursor.piece->ev;
    t = llm_ref_data(ev, ev->u.text.logprobs);

    if (ev->u.text.logprobs.len + ev->u.text.ids.len == 0) {
        return;
    }

    if (a->cursor.some) {
        (void) llm_buf_addc(out, ',');
    }

    for (i = 0; i < ev->u.text.logprobs.len; i++) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_token(out, a, ev, &t[i]);
    }

    llm_api_add_ids(out, ev);
    a->cursor.some = 1;
}


/* writes member 0, the tokens, or member 1, their texts */

static int
llm_api_tokenize_write(llm_api_t *a, size_t max, llm_buf_t *out)
{
    llm_api_cursor_t  *cur;

    cur = &a->cursor;

    if (!cur->opened) {
        (void) llm_buf_addf(out, "{\"count\":%u,\"max_model_len\":%u,"
                            "\"tokens\":[", a->usage.prompt_tokens, a->ctx);
        cur->opened = 1;
        cur->piece = a->choices[0].own.first;
    }

    for ( ;; ) {

        while (cur->piece) {
            if (out->len >= max) {
                return out->failed ? LLM_ERROR : LLM_MORE;
            }

            llm_api_add_tokens(a, out);
            cur->piece = cur->piece->next;
        }

        if (cur->member || !(a->options & LLM_API_STRS)) {
            break;
        }

        (void) llm_buf_adds(out, "],\"token_strs\":[");
        cur->member = 1;
        cur->some = 0;
        cur->piece = a->choices[0].own.first;
    }

    (void) llm_buf_adds(out, cur->member ? "]}" : "],\"token_strs\":null}");

    return out->failed ? LLM_ERROR : LLM_OK;
}


/* writes the text under both names */

static int
llm_api_detokenize_write(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int                rc;
    llm_api_cursor_t  *cur;

    static const char *const  before[] = {
        "{\"content\":\"", "\",\"prompt\":\"", "\"}"
    };

    cur = &a->cursor;

    for ( ;; ) {

        if (!cur->opened) {
            (void) llm_buf_adds(out, before[cur->member]);
            cur->opened = 1;
            cur->at = 0;
            cur->piece = a->choices[0].own.first;
        }

        if (cur->member == 2) {
            return out->failed ? LLM_ERROR : LLM_OK;
        }

        rc = llm_api_write_kept(a, max, out);
        if (rc != LLM_OK) {
            return rc;
        }

        cur->member++;
        cur->opened = 0;
    }
}


const llm_api_endpoint_t  llm_api_tokenize = {
    .task = LLM_TASK_TOKENIZE,
    .fields = &llm_api_tokenize_fields,
    .read = llm_api_tokenize_read,
    .body = llm_api_tokenize_write
};

const llm_api_endpoint_t  llm_api_detokenize = {
    .task = LLM_TASK_DETOKENIZE,
    .fields = &llm_api_detokenize_fields,
    .read = llm_api_detokenize_read,
    .body = llm_api_detokenize_write
};
