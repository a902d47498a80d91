/*
 * Removes marks of channels from an assistant's text, in the form of gpt-oss:
 * a server that does not read them has sent them to the client, which sends
 * them back, and the model's own template refuses them.  Text in the channel
 * "analysis" becomes reasoning, other text content.
 */

#include "engine/text/chat/internal.h"

#define S(lit)  { sizeof(lit) - 1, lit }

/* most bytes between the marks of a channel and of its message, or of a role */
#define LLM_CM_HEADER  256

static const llm_str_t  llm_cm_channel = S("<|channel|>");
static const llm_str_t  llm_cm_message = S("<|message|>");
static const llm_str_t  llm_cm_start = S("<|start|>");
static const llm_str_t  llm_cm_analysis = S("analysis");
static const llm_str_t  llm_cm_constrain = S("<|constrain|>");

static const llm_str_t  llm_cm_ends[] = {
    S("<|end|>"), S("<|return|>"), S("<|call|>")
};

typedef struct {
    llm_buf_t   content;
    llm_buf_t   reasoning;
    llm_buf_t  *to;                     /* content or reasoning, whichever the
                                           next text goes to */
    int         fresh;                  /* 1: its next text is another
                                           message */
} llm_cm_t;


static int
llm_cm_at(llm_str_t s, llm_str_t mark)
{
    return s.len >= mark.len && memcmp(s.data, mark.data, mark.len) == 0;
}


/* bytes from the first mark to the end of the second, with at most the mark of
   a constraint between them; 0: s begins no such header */

static size_t
llm_cm_header(llm_str_t s, llm_str_t from, llm_str_t to)
{
    llm_str_t    rest;
    const char  *p;

    if (!llm_cm_at(s, from)) {
        return 0;
    }

    rest.data = s.data + from.len;
    rest.len = llm_min(s.len, LLM_CM_HEADER + from.len) - from.len;

    for ( ;; ) {
        p = memmem(rest.data, rest.len, "<|", 2);

        if (p == NULL) {
            return 0;
        }

        rest.len = s.len - (size_t) (p - s.data);
        rest.data = p;

        if (llm_cm_at(rest, to)) {
            return (size_t) (p - s.data) + to.len;
        }

        if (!llm_cm_at(rest, llm_cm_constrain)) {
            return 0;
        }

        rest.data += llm_cm_constrain.len;
        rest.len = llm_min(rest.len - llm_cm_constrain.len, LLM_CM_HEADER);
    }
}


static void
llm_cm_add(llm_cm_t *m, const char *p, size_t n)
{
    if (n && m->fresh && m->to->len) {
        (void) llm_buf_addc(m->to, '\n');
    }

    m->fresh = n ? 0 : m->fresh;
    (void) llm_buf_add(m->to, p, n);
}


/* length of the marks at s, and the target of the text after them; 0: there
   are none */

static size_t
llm_cm_marks(llm_cm_t *m, llm_str_t s, llm_buf_t **to)
{
    size_t     i, n;
    llm_str_t  rest;

    *to = m->to;

    for (i = 0; i < llm_nelems(llm_cm_ends); i++) {
        if (llm_cm_at(s, llm_cm_ends[i])) {
            return llm_cm_ends[i].len;
        }
    }

    n = llm_cm_header(s, llm_cm_channel, llm_cm_message);

    if (n) {
        rest = (llm_str_t) { s.len - llm_cm_channel.len,
                             s.data + llm_cm_channel.len };
        *to = llm_cm_at(rest, llm_cm_analysis) ? &m->reasoning : &m->content;

        return n;
    }

    /* a role, after which its channel is read */

    n = llm_cm_header(s, llm_cm_start, llm_cm_channel);

    if (n) {
        return n - llm_cm_channel.len;
    }

    n = llm_cm_header(s, llm_cm_start, llm_cm_message);
    *to = n ? &m->content : m->to;

    return n;
}


static void
llm_cm_read(llm_cm_t *m, llm_str_t s)
{
    size_t       n;
    llm_buf_t   *to;
    const char  *p, *from;

    m->to = &m->content;
    m->fresh = 1;
    from = s.data;

    while ((p = memmem(s.data, s.len, "<|", 2)) != NULL) {
        s.len -= (size_t) (p - s.data);
        s.data = p;
        n = llm_cm_marks(m, s, &to);

        if (n) {
            llm_cm_add(m, from, (size_t) (p - from));
            m->to = to;
            m->fresh = 1;
            from = p + n;
        }

        n = n ? n : 2;
        s.data += n;
        s.len -= n;
    }

    llm_cm_add(m, from, (size_t) (s.data + s.len - from));
}


static int
llm_cm_has(llm_str_t s)
{
    return s.len
           && memmem(s.data, s.len, llm_cm_channel.data, llm_cm_channel.len)
              != NULL;
}


/* adds the message's content and reasoning, as they were sent */

static void
llm_cm_texts(const llm_flat_t *msg, llm_buf_t *content, llm_str_t *thought)
{
    const llm_flat_t  *v;

    *thought = llm_str("");
    (void) llm_chat_add_text(content, llm_flat_get(msg, "content"));

    v = llm_flat_get(msg, "reasoning_content");
    v = v && v->type == LLM_FLAT_STRING ? v : llm_flat_get(msg, "thinking");

    if (v && v->type == LLM_FLAT_STRING) {
        *thought = llm_flat_str(v);
    }
}


static void
llm_cm_write(const llm_cm_t *m, const llm_flat_t *msg, llm_buf_t *out)
{
    size_t             handle;
    uint32_t           count;
    const llm_flat_t  *k, *v;

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    count = 1;

    for (k = llm_flat_first(msg); k; k = llm_flat_next(msg, v)) {
        v = llm_flat_next(msg, k);

        if (llm_chat_is(k, "content") || llm_chat_is(k, "reasoning_content")
            || llm_chat_is(k, "thinking"))
        {
            continue;
        }

        llm_flat_add_node(out, k);
        llm_flat_add_node(out, v);
        count++;
    }

    llm_flat_add_str(out, "content", 7);
    llm_flat_add_str(out, m->content.len ? m->content.data : "",
                     m->content.len);

    if (m->reasoning.len) {
        llm_flat_add_str(out, "thinking", 8);
        llm_flat_add_str(out, m->reasoning.data, m->reasoning.len);
        count++;
    }

    llm_flat_close(out, handle, count);
}


/* LLM_END: the message has no marks, and was copied */

static int
llm_cm_message_of(const llm_flat_t *msg, llm_buf_t *out)
{
    int        rc;
    size_t     apart;
    llm_cm_t   m;
    llm_str_t  thought;
    llm_buf_t  content;

    if (msg->type != LLM_FLAT_OBJECT
        || !llm_chat_is(llm_flat_get(msg, "role"), "assistant"))
    {
        llm_flat_add_node(out, msg);
        return LLM_END;
    }

    rc = LLM_END;
    llm_buf_init(&content, 0);
    llm_buf_init(&m.content, 0);
    llm_buf_init(&m.reasoning, 0);

    llm_cm_texts(msg, &content, &thought);

    if (!llm_cm_has((llm_str_t) { content.len, content.data })
        && !llm_cm_has(thought))
    {
        llm_flat_add_node(out, msg);
        goto done;
    }

    /* all texts of separate reasoning are reasoning, whatever their channel;
       reasoning in the content repeats them */

    if (thought.len) {
        llm_cm_read(&m, thought);
        m.to = &m.reasoning;
        m.fresh = 1;
        llm_cm_add(&m, m.content.data, m.content.len);
        m.content.len = 0;
    }

    apart = m.reasoning.len;
    llm_cm_read(&m, (llm_str_t) { content.len,
                                  content.len ? content.data : "" });
    m.reasoning.len = apart ? apart : m.reasoning.len;

    llm_cm_write(&m, msg, out);
    rc = LLM_OK;

done:

    out->failed |= content.failed | m.content.failed | m.reasoning.failed;

    llm_buf_free(&content);
    llm_buf_free(&m.content);
    llm_buf_free(&m.reasoning);

    return rc;
}


/* returns 1 if something has changed */

static int
llm_cm_messages(const llm_flat_t *messages, llm_buf_t *out)
{
    int                changed;
    size_t             handle;
    const llm_flat_t  *msg;

    changed = 0;
    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (msg = llm_flat_first(messages); msg;
         msg = llm_flat_next(messages, msg))
    {
        changed |= llm_cm_message_of(msg, out) == LLM_OK;
    }

    llm_flat_close(out, handle, messages->count);

    return changed;
}


const llm_flat_t *
llm_chat_unmark(const llm_flat_t *request, llm_buf_t *b)
{
    int                changed;
    size_t             handle;
    const llm_flat_t  *k, *v;

    changed = 0;
    handle = llm_flat_open(b, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(request); k; k = llm_flat_next(request, v)) {
        v = llm_flat_next(request, k);
        llm_flat_add_node(b, k);

        if (llm_chat_is(k, "messages") && v->type == LLM_FLAT_ARRAY) {
            changed |= llm_cm_messages(v, b);

        } else {
            llm_flat_add_node(b, v);
        }
    }

    llm_flat_close(b, handle, request->count);

    if (b->failed) {
        return NULL;
    }

    return changed ? (const llm_flat_t *) b->data : request;
}
