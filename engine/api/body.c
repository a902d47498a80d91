/*
 * The body of an answer with choices that is not streamed.  Events are kept as
 * they came: a list for each choice, and one list for a prompt's echo, which
 * its choices share.  When the request has ended, the JSON is written from
 * them piece by piece, as the client reads.
 *
 * The sum of what is kept is bounded (max_answer of llm_api_conf_t).  How far
 * the body is written is a llm_api_cursor_t: a choice, a member of it (the
 * endpoint has a table of them), an event and a position in the event.  So no
 * piece is much larger than asked for, and the whole JSON never exists.
 */

#include "engine/api/llama.h"

/* most bytes of text that are written at once */
#define LLM_API_SLICE  1024

static const char  llm_api_fewer[] = "ask for fewer choices or fewer "
                                     "logprobs, or stream it";


static int
llm_api_too_large(size_t max, const char *what_to_do, llm_err_t *err)
{
    return llm_fail_with(err, 400, "answer_too_large", NULL, "The answer is "
                         "larger than %zu bytes; %s.", max, what_to_do);
}


/* memory for kept data; max: bound of all that is kept */

static void *
llm_api_room(llm_api_t *a, size_t size, size_t max, const char *what_to_do,
    llm_err_t *err)
{
    void  *p;

    if (size > max - a->gathered) {
        (void) llm_api_too_large(max, what_to_do, err);
        return NULL;
    }

    p = llm_arena_alloc(&a->kept, size);
    if (p == NULL) {
        (void) llm_fail(err, "no memory for the answer");
        return NULL;
    }

    a->gathered += size;

    return p;
}


void *
llm_api_keep(llm_api_t *a, size_t size, llm_err_t *err)
{
    return llm_api_room(a, size, a->max_answer, llm_api_fewer, err);
}


/* adds a copy of the event to a choice's list; max: bound of all that is
   kept */

static int
llm_api_keep_event(llm_api_t *a, const llm_event_t *ev, llm_api_list_t *list,
    size_t max, const char *what_to_do, llm_err_t *err)
{
    llm_api_piece_t  *piece;

    piece = llm_api_room(a, sizeof(*piece) + ev->size, max, what_to_do, err);
    if (piece == NULL) {
        return LLM_ERROR;
    }

    piece->next = NULL;
    memcpy(piece->ev, ev, ev->size);

    *(list->first ? &list->last->next : &list->first) = piece;
    list->last = piece;

    return LLM_OK;
}


int
llm_api_gather_shown(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    return llm_api_keep_event(a, ev, &a->choices[ev->index].shown,
                              a->max_answer, llm_api_fewer, err);
}


int
llm_api_gather(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    uint32_t           echo;
    llm_api_list_t    *list;
    llm_api_choice_t  *c;

    if (ev->u.text.text.len == 0 && ev->u.text.logprobs.len == 0
        && ev->u.text.ids.len == 0 && ev->u.text.part != LLM_PART_TOOL_NAME)
    {
        return LLM_OK;
    }

    c = &a->choices[ev->index];
    echo = ev->u.text.echo;
    list = echo ? &a->choices[ev->index / a->n * a->n].echo : &c->own;

    if (llm_api_keep_event(a, ev, list, a->max_answer, llm_api_fewer, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

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


/* from the first part on, the size of the whole answer is known */

int
llm_api_gather_vector(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    size_t  max, all;

    static const char  what_to_do[] = "ask for fewer inputs, or fewer "
                                      "dimensions";

    max = a->max_answer * LLM_API_VECTORS;
    all = (size_t) ev->u.vector.total * sizeof(float) * a->n_choices;

    if (all > max) {
        return llm_api_too_large(max, what_to_do, err);
    }

    return llm_api_keep_event(a, ev, &a->choices[ev->index].own, max,
                              what_to_do, err);
}


static void
llm_api_first_piece(const llm_api_t *a, llm_api_cursor_t *cur)
{
    uint32_t  choice;

    cur->at = 0;
    cur->some = 0;
    cur->place.bytes = 0;
    cur->place.chars = 0;

    /* after the last choice, the first choice's prompt stands for the whole
       answer */

    choice = cur->choice < a->n_choices ? cur->choice : 0;
    cur->piece = a->choices[choice / a->n * a->n].echo.first;
    cur->in_echo = cur->piece != NULL;

    if (!cur->in_echo) {
        cur->piece = a->choices[choice].own.first;
    }
}


void
llm_api_next_piece(const llm_api_t *a, llm_api_cursor_t *cur)
{
    cur->at = 0;
    cur->piece = cur->piece->next;

    if (cur->piece == NULL && cur->in_echo) {
        cur->in_echo = 0;
        cur->piece = a->choices[cur->choice < a->n_choices ? cur->choice
                                                           : 0].own.first;
    }
}


int
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

            return LLM_MORE;
        }

        (void) llm_json_add_text(out, s, len);
    }

    llm_api_next_piece(a, cur);

    return LLM_MORE;
}


int
llm_api_write_kept(llm_api_t *a, size_t max, llm_buf_t *out)
{
    while (a->cursor.piece) {

        if (out->len >= max) {
            return out->failed ? LLM_ERROR : LLM_MORE;
        }

        (void) llm_api_write_text(a, &a->cursor, LLM_PART_CONTENT, out);
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_api_kept_flat(const llm_api_t *a, llm_buf_t *flat)
{
    const llm_event_t      *ev;
    const llm_api_piece_t  *piece;

    llm_buf_init(flat, 0);

    for (piece = a->choices[0].own.first; piece; piece = piece->next) {
        ev = piece->ev;
        (void) llm_buf_add(flat, llm_ref_data(ev, ev->u.text.text),
                           ev->u.text.text.len);
    }

    if (flat->failed || flat->len == 0
        || llm_flat_check(flat->data, flat->len) != LLM_OK)
    {
        llm_buf_free(flat);
        return LLM_ERROR;
    }

    return LLM_OK;
}


int
llm_api_open_logprobs(const llm_api_t *a, const llm_api_logprobs_t *format,
    llm_buf_t *out)
{
    if (a->n_logprobs < 0) {
        (void) llm_buf_adds(out, "null");
        return LLM_OK;
    }

    (void) llm_buf_adds(out, format->before[0]);

    return LLM_MORE;
}


/* writes one token of one array; the arrays follow one another */

int
llm_api_write_logprob(const llm_api_t *a, const llm_api_logprobs_t *format,
    llm_api_cursor_t *cur, llm_buf_t *out)
{
    const llm_event_t          *ev;
    const llm_token_logprob_t  *t;

    if (cur->piece == NULL) {
        if (++cur->array < format->n_arrays) {
            llm_api_first_piece(a, cur);
            (void) llm_buf_adds(out, format->before[cur->array]);
            return LLM_MORE;
        }

        (void) llm_buf_adds(out, format->after);
        cur->array = 0;

        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (cur->at < ev->u.text.logprobs.len) {
        if (cur->some) {
            (void) llm_buf_addc(out, ',');
        }

        t = llm_ref_data(ev, ev->u.text.logprobs);
        format->item(out, a, &cur->place, ev, cur->array, &t[cur->at++]);
        cur->some = 1;

        return LLM_MORE;
    }

    if ((int32_t) cur->array == format->offsets) {
        llm_api_count_text(&cur->place, ev);
    }

    llm_api_next_piece(a, cur);

    return LLM_MORE;
}


int
llm_api_open_finish(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    (void) llm_buf_adds(out, ",\"finish_reason\":\"");
    (void) llm_buf_adds(out,
                        llm_api_finish_name(a->choices[cur->choice].finish));
    (void) llm_buf_addc(out, '"');

    return LLM_OK;
}


int
llm_api_open_ids(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    (void) cur;

    if (!a->token_ids) {
        return LLM_OK;
    }

    (void) llm_buf_adds(out, ",\"token_ids\":[");

    return LLM_MORE;
}


/* writes the ids of one event: the prompt's, or the answer's */

static int
llm_api_write_ids_of(const llm_api_t *a, llm_api_cursor_t *cur, int prompt,
    llm_buf_t *out)
{
    const llm_event_t  *ev;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (ev->u.text.ids.len && llm_api_is_prompt(ev) == prompt) {
        if (cur->some) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_ids(out, ev);
        cur->some = 1;
    }

    llm_api_next_piece(a, cur);

    return LLM_MORE;
}


int
llm_api_write_id(const llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    return llm_api_write_ids_of(a, cur, 0, out);
}


int
llm_api_open_prompt_ids(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    (void) cur;

    if (!a->token_ids) {
        return LLM_OK;
    }

    (void) llm_buf_adds(out, ",\"prompt_token_ids\":[");

    return LLM_MORE;
}


int
llm_api_write_prompt_id(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_write_ids_of(a, cur, 1, out);
}


/* the beginning of a choice */

static void
llm_api_open_choice(const llm_api_t *a, uint32_t choice, llm_buf_t *out)
{
    if (choice == 0) {
        (void) llm_buf_add(out, a->head.data, a->head.len);

    } else {
        (void) llm_buf_adds(out, ",{\"index\":");
    }

    llm_api_add_uint(out, choice);
}


/* moves the cursor one small step through a member */

static void
llm_api_write_step(const llm_api_t *a, llm_api_cursor_t *cur,
    const llm_api_member_t *m, llm_buf_t *out)
{
    if (!cur->opened) {
        llm_api_first_piece(a, cur);

        if (m->open(a, cur, out) == LLM_MORE) {
            cur->opened = 1;
            return;
        }

    } else {
        if (m->item(a, cur, out) == LLM_MORE) {
            return;
        }

        cur->opened = 0;
        (void) llm_buf_adds(out, m->behind);
    }

    cur->member++;
}


int
llm_api_write_choices(llm_api_t *a, const llm_api_member_t *members,
    uint32_t n_members, const llm_api_member_t *prompt, size_t max,
    llm_buf_t *out)
{
    llm_api_cursor_t  *cur;

    cur = &a->cursor;

    while (cur->choice < a->n_choices) {
        if (out->len >= max) {
            return out->failed ? LLM_ERROR : LLM_MORE;
        }

        if (cur->member == 0 && !cur->opened) {
            llm_api_open_choice(a, cur->choice, out);
        }

        llm_api_write_step(a, cur, &members[cur->member], out);

        if (cur->member == n_members) {
            (void) llm_buf_adds(out, cur->choice + 1 < a->n_choices ? "}"
                                                                    : "}]");
            cur->member = 0;
            cur->choice++;
        }

        if (out->failed) {
            return LLM_ERROR;
        }
    }

    while (prompt && cur->member == 0) {
        if (out->len >= max) {
            return out->failed ? LLM_ERROR : LLM_MORE;
        }

        llm_api_write_step(a, cur, prompt, out);
    }

    (void) llm_buf_adds(out, ",\"usage\":");
    llm_api_add_usage(out, a);
    llm_api_add_timings(out, a);

    if (a->options & LLM_API_VERBOSE) {
        llm_api_llama_verbose(out, a);
    }

    (void) llm_buf_addc(out, '}');

    return out->failed ? LLM_ERROR : LLM_OK;
}
