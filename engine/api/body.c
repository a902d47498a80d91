/*
 * An answer that is not streamed.  Events are kept as they came, choice by
 * choice, the echo of a prompt once for all of its choices; when the request
 * has ended the JSON is written from them piece by piece, as the client
 * reads.
 *
 * What is kept is bounded as a whole (llm_api_conf_t's max_answer).  The
 * place of the writer is a llm_api_cursor_t: a choice, a member of it, an
 * event and what of the event was written already, so no piece is much
 * larger than it was asked to be and the whole JSON never exists.
 */

#include "engine/api/api_internal.h"
#include "engine/base/utf8.h"

/* text that is written at once */
#define LLM_API_SLICE  1024

/* members of a choice, in their order */
enum {
    BODY_INDEX = 0,
    BODY_CONTENT,
    BODY_REASONING,
    BODY_CALLS,
    BODY_LOGPROBS,
    BODY_FINISH,
    BODY_IDS,
    BODY_END
};


int
llm_api_gather(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    size_t             size;
    uint32_t           echo;
    llm_api_list_t    *list;
    llm_api_piece_t   *piece;
    llm_api_choice_t  *c;

    if (ev->u.text.text.len == 0 && ev->u.text.logprobs.len == 0
        && ev->u.text.ids.len == 0 && ev->u.text.part != LLM_PART_TOOL_NAME)
    {
        return LLM_OK;
    }

    size = sizeof(*piece) + ev->size;

    if (size > a->max_answer - a->gathered) {
        return llm_fail_with(err, 400, "answer_too_large", NULL,
                             "The answer is larger than %zu bytes; ask for "
                             "fewer choices or fewer logprobs, or stream it.",
                             a->max_answer);
    }

    piece = llm_arena_alloc(&a->kept, size);
    if (piece == NULL) {
        return llm_fail(err, "no memory for the answer");
    }

    a->gathered += size;
    piece->next = NULL;
    memcpy(piece->ev, ev, ev->size);

    c = &a->choices[ev->index];
    echo = ev->u.text.echo;
    list = echo ? &a->choices[ev->index / a->n * a->n].echo : &c->own;

    *(list->first ? &list->last->next : &list->first) = piece;
    list->last = piece;

    switch (ev->u.text.part) {

    case LLM_PART_CONTENT:
        c->has_content |= ev->u.text.text.len != 0;
        break;

    case LLM_PART_REASONING:
        c->has_reasoning |= ev->u.text.text.len != 0;
        break;

    default:
        c->n_calls += ev->u.text.part == LLM_PART_TOOL_NAME;
    }

    return LLM_OK;
}


static void
llm_api_first_piece(const llm_api_t *a, llm_api_cursor_t *cur)
{
    cur->at = 0;
    cur->some = 0;
    cur->place.bytes = 0;
    cur->place.chars = 0;
    cur->piece = a->choices[cur->choice / a->n * a->n].echo.first;
    cur->in_echo = cur->piece != NULL;

    if (!cur->in_echo) {
        cur->piece = a->choices[cur->choice].own.first;
    }
}


static void
llm_api_next_piece(const llm_api_t *a, llm_api_cursor_t *cur)
{
    cur->at = 0;
    cur->piece = cur->piece->next;

    if (cur->piece == NULL && cur->in_echo) {
        cur->in_echo = 0;
        cur->piece = a->choices[cur->choice].own.first;
    }
}


/* one slice of the text of this part; LLM_OK: that was all */

static int
llm_api_write_text(const llm_api_t *a, llm_api_cursor_t *cur, uint32_t part,
    llm_buf_t *out)
{
    size_t              len;
    const char         *s;
    const llm_event_t  *ev;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (ev->u.text.part == part) {
        s = (const char *) llm_ref_data(ev, ev->u.text.text) + cur->at;
        len = ev->u.text.text.len - cur->at;

        if (len > LLM_API_SLICE) {
            len = LLM_API_SLICE;

            while (len > 1 && (s[len] & 0xc0) == 0x80) {
                len--;
            }

            (void) llm_json_add_text(out, s, len);
            cur->at += (uint32_t) len;

            return LLM_AGAIN;
        }

        (void) llm_json_add_text(out, s, len);
    }

    llm_api_next_piece(a, cur);

    return LLM_AGAIN;
}


/* one event of the tool calls; the last call is left open */

static int
llm_api_write_call(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    const llm_event_t  *ev;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (ev->u.text.part == LLM_PART_TOOL_NAME) {
        (void) llm_buf_adds(out, cur->some ? "\"}},{" : "{");
        llm_api_add_call(out, a, ev);
        cur->some = 1;

    } else if (ev->u.text.part == LLM_PART_TOOL_ARGS && cur->some) {
        llm_api_add_event_text(out, ev);
    }

    llm_api_next_piece(a, cur);

    return LLM_AGAIN;
}


/* one token of one array */

static int
llm_api_write_logprob(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    const llm_event_t  *ev;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (cur->at < ev->u.text.logprobs.len) {
        if (cur->some) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_logprob_item(out, a, &cur->place, ev, cur->array,
                                 cur->at++);
        cur->some = 1;

        return LLM_AGAIN;
    }

    if (llm_api_counts_chars(a, cur->array)) {
        llm_api_count_text(&cur->place, ev);
    }

    llm_api_next_piece(a, cur);

    return LLM_AGAIN;
}


static int
llm_api_write_ids(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    const llm_event_t  *ev;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (ev->u.text.ids.len) {
        if (cur->some) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_ids(out, ev);
        cur->some = 1;
    }

    llm_api_next_piece(a, cur);

    return LLM_AGAIN;
}


/* what stands before a member; LLM_AGAIN: its items follow, LLM_OK: none */

static int
llm_api_open_member(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    const llm_api_choice_t  *c;

    c = &a->choices[cur->choice];
    llm_api_first_piece(a, cur);

    switch (cur->member) {

    case BODY_INDEX:
        if (cur->choice == 0) {
            (void) llm_buf_add(out, a->head.data, a->head.len);

        } else {
            (void) llm_buf_adds(out, ",{\"index\":");
        }

        llm_api_add_uint(out, cur->choice);
        return LLM_OK;

    case BODY_CONTENT:
        if (!a->is_chat) {
            (void) llm_buf_adds(out, ",\"text\":\"");
            return LLM_AGAIN;
        }

        (void) llm_buf_adds(out, ",\"message\":{\"role\":\"assistant\","
                            "\"content\":");

        if (!c->has_content && c->n_calls) {
            (void) llm_buf_adds(out, "null,\"refusal\":null");
            return LLM_OK;
        }

        (void) llm_buf_addc(out, '"');
        return LLM_AGAIN;

    case BODY_REASONING:
        if (!a->is_chat || !c->has_reasoning) {
            return LLM_OK;
        }

        (void) llm_buf_adds(out, ",\"reasoning_content\":\"");
        return LLM_AGAIN;

    case BODY_CALLS:
        if (!a->is_chat || c->n_calls == 0) {
            return LLM_OK;
        }

        (void) llm_buf_adds(out, ",\"tool_calls\":[");
        return LLM_AGAIN;

    case BODY_LOGPROBS:
        if (cur->array == 0) {
            (void) llm_buf_adds(out, a->is_chat ? "},\"logprobs\":"
                                                : ",\"logprobs\":");
        }

        if (a->n_logprobs < 0) {
            (void) llm_buf_adds(out, "null");
            return LLM_OK;
        }

        llm_api_open_logprobs(out, a, cur->array);
        return LLM_AGAIN;

    case BODY_FINISH:
        (void) llm_buf_adds(out, ",\"finish_reason\":\"");
        (void) llm_buf_adds(out, llm_api_finish_name(c->finish));
        (void) llm_buf_addc(out, '"');
        return LLM_OK;

    default: /* BODY_IDS */
        if (!a->token_ids) {
            return LLM_OK;
        }

        (void) llm_buf_adds(out, ",\"token_ids\":[");
        return LLM_AGAIN;
    }
}


static int
llm_api_write_item(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    switch (cur->member) {

    case BODY_CONTENT:
        return llm_api_write_text(a, cur, LLM_PART_CONTENT, out);

    case BODY_REASONING:
        return llm_api_write_text(a, cur, LLM_PART_REASONING, out);

    case BODY_CALLS:
        return llm_api_write_call(a, cur, out);

    case BODY_LOGPROBS:
        return llm_api_write_logprob(a, cur, out);

    default:
        return llm_api_write_ids(a, cur, out);
    }
}


/* what stands behind a member whose items are written */

static void
llm_api_close_member(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    switch (cur->member) {

    case BODY_CONTENT:
        (void) llm_buf_adds(out, a->is_chat ? "\",\"refusal\":null" : "\"");
        break;

    case BODY_REASONING:
        (void) llm_buf_addc(out, '"');
        break;

    case BODY_CALLS:
        (void) llm_buf_adds(out, "\"}}]");
        break;

    case BODY_LOGPROBS:
        if (cur->array + 1 < llm_api_logprob_arrays(a)) {
            cur->array++;
            cur->member--;              /* once more, with the next array */

        } else {
            llm_api_close_logprobs(out, a);
            cur->array = 0;
        }

        break;

    default:
        (void) llm_buf_addc(out, ']');
    }
}


/* one small step of the cursor */

static void
llm_api_write_step(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    if (!cur->opened) {
        if (llm_api_open_member(a, cur, out) == LLM_AGAIN) {
            cur->opened = 1;
            return;
        }

    } else {
        if (llm_api_write_item(a, cur, out) == LLM_AGAIN) {
            return;
        }

        cur->opened = 0;
        llm_api_close_member(a, cur, out);
    }

    if (++cur->member == BODY_END) {
        (void) llm_buf_addc(out, '}');
        cur->member = BODY_INDEX;
        cur->choice++;
    }
}


int
llm_api_body_next(llm_api_t *a, size_t max, llm_buf_t *out)
{
    llm_api_cursor_t  *cur;

    cur = &a->cursor;

    while (cur->choice < a->n_choices) {
        if (out->len >= max) {
            return out->failed ? LLM_ERROR : LLM_AGAIN;
        }

        llm_api_write_step(a, cur, out);

        if (out->failed) {
            return LLM_ERROR;
        }
    }

    (void) llm_buf_adds(out, "],\"usage\":");
    llm_api_add_usage(out, a);
    (void) llm_buf_addc(out, '}');

    return out->failed ? LLM_ERROR : LLM_OK;
}
