/*
 * Content parts of all dialects; see parts.h.
 *
 * A type with its text in one member is a row of a table.  A document or the
 * result of a search becomes the text inside it.  Images and sound are read in
 * media.c, if the model takes them.  The rest are other media, and types that
 * are newer than this server.
 */

#include "engine/api/parts.h"

/* longer names of types are not shown */
#define LLM_API_MAX_TYPE  64

/* types of an assistant's reasoning */
static const char *const  llm_api_thoughts[] = {
    "thinking", "reasoning", "reasoning_text", "summary_text",
    "reasoning_content", NULL
};

/* types that only the server that wrote them can read, and calls, which a chat
   has in another member */
static const char *const  llm_api_sealed[] = {
    "redacted_thinking", "redacted_reasoning", "encrypted_content",
    "fallback", "mcp_tool_listing", "tool_use", "tool_call", "function_call",
    NULL
};

/* types that change the request's tools */
static const char *const  llm_api_changes[] = {
    "tool_addition", "tool_removal", NULL
};


void
llm_api_part_init(llm_api_part_t *p)
{
    memset(p, 0, sizeof(llm_api_part_t));
    llm_buf_init(&p->made, 0);
}


void
llm_api_part_free(llm_api_part_t *p)
{
    llm_buf_free(&p->made);
}


/* adds a line to the text that is being made */

static void
llm_api_part_line(llm_api_part_t *p, const llm_flat_t *v)
{
    llm_str_t  s;

    if (v == NULL || v->type != LLM_FLAT_STRING || v->count == 0) {
        return;
    }

    if (p->made.len) {
        (void) llm_buf_addc(&p->made, '\n');
    }

    s = llm_flat_str(v);
    (void) llm_buf_add(&p->made, s.data, s.len);
}


static int
llm_api_part_made(llm_api_part_t *p, llm_err_t *err)
{
    if (p->made.failed) {
        return llm_fail(err, "no memory for the request");
    }

    p->kind = LLM_API_PART_TEXT;
    p->text.data = p->made.len ? p->made.data : "";
    p->text.len = p->made.len;

    return LLM_OK;
}


/* adds the texts of a list, or a string; 0: the list has something else */

static int
llm_api_part_texts(llm_api_part_t *p, const llm_flat_t *v)
{
    const llm_flat_t  *item, *text;

    if (v == NULL || v->type == LLM_FLAT_STRING) {
        llm_api_part_line(p, v);
        return v != NULL;
    }

    if (v->type != LLM_FLAT_ARRAY) {
        return 0;
    }

    for (item = llm_flat_first(v); item; item = llm_flat_next(v, item)) {
        text = item->type == LLM_FLAT_OBJECT ? llm_api_member(item, "text")
                                             : NULL;

        if (text == NULL || text->type != LLM_FLAT_STRING) {
            return 0;
        }

        llm_api_part_line(p, text);
    }

    return 1;
}


/* adds thinking: a string, or a list of texts as Mistral has it; if it is
   hidden, its summary or text */

static int
llm_api_part_thinking(llm_api_part_t *p, const llm_flat_t *part,
    llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *v;

    static const char *const  members[] = {
        "thinking", "reasoning", "text", "content", "summary"
    };

    for (i = 0; i < llm_nelems(members) && p->made.len == 0; i++) {
        v = llm_api_member(part, members[i]);

        if (v && !llm_api_part_texts(p, v)) {
            p->made.len = 0;
        }
    }

    if (llm_api_part_made(p, err) != LLM_OK) {
        return LLM_ERROR;
    }

    p->kind = p->made.len ? LLM_API_PART_REASONING : LLM_API_PART_NOTHING;

    return LLM_OK;
}


/* {"title", "context", "source": {"type": "text", "data"}}, or a source with
   blocks; 0: it has no text that can be read */

static int
llm_api_part_document(llm_api_part_t *p, const llm_flat_t *part)
{
    const llm_flat_t  *source, *type;

    source = llm_api_member(part, "source");

    if (source == NULL || source->type != LLM_FLAT_OBJECT) {
        return 0;
    }

    type = llm_api_member(source, "type");

    llm_api_part_line(p, llm_api_member(part, "title"));
    llm_api_part_line(p, llm_api_member(part, "context"));

    if (llm_api_str_is(type, "text")) {
        return llm_api_part_texts(p, llm_api_member(source, "data"));
    }

    return llm_api_str_is(type, "content")
           && llm_api_part_texts(p, llm_api_member(source, "content"));
}


/* {"title", "source", "content": [texts]} */

static int
llm_api_part_found(llm_api_part_t *p, const llm_flat_t *part)
{
    llm_api_part_line(p, llm_api_member(part, "title"));
    llm_api_part_line(p, llm_api_member(part, "source"));

    return llm_api_part_texts(p, llm_api_member(part, "content"));
}


/* a reference to a tool that a search has found; the request has the tool */

static int
llm_api_part_reference(llm_api_part_t *p, const llm_flat_t *part,
    const llm_api_at_t *at, llm_err_t *err)
{
    llm_str_t          s;
    const llm_flat_t  *name;

    name = llm_api_need(err, at, part, "tool_name", LLM_FLAT_STRING);
    if (name == NULL) {
        return LLM_ERROR;
    }

    s = llm_flat_str(name);
    (void) llm_buf_adds(&p->made, "Tool found: ");
    (void) llm_buf_add(&p->made, s.data, s.len);

    return llm_api_part_made(p, err);
}


/* writes a placeholder for a part that the model cannot read */

static int
llm_api_part_placeholder(llm_api_part_t *p, const llm_flat_t *part,
    const llm_flat_t *type, llm_err_t *err)
{
    size_t             i;
    llm_str_t          s;
    const llm_flat_t  *name;

    const llm_api_media_row_t  *row;

    static const struct {
        const char  *type, *word;
    } others[] = {
        { "output_image", "image" }, { "output_audio", "audio" },
        { "video_url", "video" }, { "input_video", "video" },
        { "input_file", "file" }, { "container_upload", "file" }
    };

    p->made.len = 0;
    p->kind = LLM_API_PART_TEXT;
    s = llm_flat_str(type);
    row = llm_api_media_find(type);

    if (row) {
        s = llm_api_media_kind(row) == LLM_MEDIUM_IMAGE ? llm_str("image")
                                                       : llm_str("audio");
    }

    for (i = 0; i < llm_nelems(others); i++) {
        if (llm_str_is(s, others[i].type)) {
            s.data = others[i].word;
            s.len = strlen(s.data);
            break;
        }
    }

    s.len = llm_min(s.len, LLM_API_MAX_TYPE);
    (void) llm_buf_addc(&p->made, '[');
    (void) llm_buf_add(&p->made, s.data, s.len);

    name = llm_api_member(part, "file");
    name = llm_api_member(name && name->type == LLM_FLAT_OBJECT ? name : part,
                          "filename");
    name = name ? name : llm_api_member(part, "title");

    if (name && name->type == LLM_FLAT_STRING && name->count) {
        s = llm_flat_str(name);
        (void) llm_buf_adds(&p->made, ": ");
        (void) llm_buf_add(&p->made, s.data, s.len);
    }

    (void) llm_buf_addc(&p->made, ']');

    return llm_api_part_made(p, err);
}


/* refuses a document or a result that has no text */

static int
llm_api_part_no_texts(const llm_flat_t *object, const char *key,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *v, *item, *type;
    const llm_api_at_t  *here;

    v = llm_api_member(object, key);
    at = llm_api_key(at, key);

    if (v == NULL) {
        return llm_api_missing(err, at);
    }

    if (v->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "a string or an array of objects", v);
    }

    for (item = llm_flat_first(v), i = 0; item;
         item = llm_flat_next(v, item), i++)
    {
        here = llm_api_idx(at, i);

        if (llm_api_check_type(err, here, item, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        type = llm_api_member(item, "type");

        if (type && type->type == LLM_FLAT_STRING
            && !llm_api_str_is(type, "text"))
        {
            return llm_api_bad_word(err, llm_api_key(here, "type"),
                                    llm_flat_str(type), "Only blocks of the "
                                    "type 'text' can be read here.");
        }

        if (llm_api_need(err, here, item, "text", LLM_FLAT_STRING) == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_api_part_no_document(const llm_flat_t *part, const llm_api_at_t *at,
    llm_err_t *err)
{
    const llm_flat_t  *source, *type;

    source = llm_api_need(err, at, part, "source", LLM_FLAT_OBJECT);
    at = llm_api_key(at, "source");
    type = source ? llm_api_need(err, at, source, "type", LLM_FLAT_STRING)
                  : NULL;

    if (type == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(type, "text")) {
        return llm_api_part_no_texts(source, "data", at, err);
    }

    if (llm_api_str_is(type, "content")) {
        return llm_api_part_no_texts(source, "content", at, err);
    }

    return llm_api_bad_word(err, llm_api_key(at, "type"), llm_flat_str(type),
                            "Of a document the server takes text only: a "
                            "source of the type 'text' or 'content'.");
}


/* what a model that takes more than text takes */

static const char *
llm_api_part_known(const llm_api_part_at_t *where)
{
    switch (where->goes_on ? 0 : where->rules.takes) {

    case LLM_MEDIUM_IMAGE:
        return "This model takes text and images.";

    case LLM_MEDIUM_AUDIO:
        return "This model takes text and audio.";

    case LLM_MEDIUM_IMAGE|LLM_MEDIUM_AUDIO:
        return "This model takes text, images and audio.";

    default:
        return where->known;
    }
}


/* refuses a part that cannot become text, where it may not be left out */

static int
llm_api_part_refused(const llm_flat_t *part, const llm_flat_t *type,
    const llm_api_part_at_t *where, const llm_api_at_t *at, llm_err_t *err)
{
    if (llm_api_str_is(type, "document")) {
        return llm_api_part_no_document(part, at, err);
    }

    if (llm_api_str_is(type, "search_result")) {
        return llm_api_part_no_texts(part, "content", at, err);
    }

    return llm_api_bad_word(err, llm_api_key(at, "type"), llm_flat_str(type),
                            llm_api_part_known(where));
}


/*
 * Reads an image or sound.  One that was answered and cannot be read becomes a
 * placeholder, as it does if the model takes none.  LLM_END: it is none, or
 * the model does not take it.
 */

static int
llm_api_part_media(llm_api_part_t *p, const llm_flat_t *part,
    const llm_flat_t *type, const llm_api_part_at_t *where,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_api_media_row_t  *row;

    row = where->assistant ? NULL : llm_api_media_find(type);

    if (row == NULL) {
        return LLM_END;
    }

    if (!(where->rules.takes & llm_api_media_kind(row))) {
        return llm_api_media_kind(row) == LLM_MEDIUM_IMAGE
               && where->rules.conf && where->rules.conf->media.skip
               && !where->goes_on
               ? llm_api_part_placeholder(p, part, type, err) : LLM_END;
    }

    if (llm_api_media_read(row, part, &where->rules, at, &p->media, err)
        != LLM_OK)
    {
        return where->old ? llm_api_part_placeholder(p, part, type, err)
                          : LLM_ERROR;
    }

    p->kind = LLM_API_PART_MEDIA;

    return LLM_OK;
}


static int
llm_api_part_among(const llm_flat_t *type, const char *const *list)
{
    for ( /* void */ ; *list; list++) {
        if (llm_api_str_is(type, *list)) {
            return 1;
        }
    }

    return 0;
}


/* reads types that are no row of the table */

static int
llm_api_part_other(llm_api_part_t *p, const llm_flat_t *part,
    const llm_flat_t *type, const llm_api_part_at_t *where,
    const llm_api_at_t *at, llm_err_t *err)
{
    int                rc;
    const llm_flat_t  *text;

    rc = llm_api_part_media(p, part, type, where, at, err);

    if (rc != LLM_END) {
        return rc;
    }

    if (where->assistant && llm_api_part_among(type, llm_api_thoughts)) {
        return llm_api_part_thinking(p, part, err);
    }

    if (where->assistant && llm_api_part_among(type, llm_api_sealed)) {
        return LLM_OK;
    }

    if (llm_api_part_among(type, llm_api_changes)) {
        return LLM_OK;
    }

    if (llm_api_str_is(type, "tool_reference")) {
        return llm_api_part_reference(p, part, at, err);
    }

    if (llm_api_str_is(type, "browser_state")) {
        (void) llm_json_add_flat(&p->made, part);
        return llm_api_part_made(p, err);
    }

    if ((llm_api_str_is(type, "document") && llm_api_part_document(p, part))
        || (llm_api_str_is(type, "search_result")
            && llm_api_part_found(p, part)))
    {
        return llm_api_part_made(p, err);
    }

    if (!where->old && !where->assistant) {
        return llm_api_part_refused(part, type, where, at, err);
    }

    text = llm_api_member(part, "text");

    if (text && text->type == LLM_FLAT_STRING) {
        p->kind = LLM_API_PART_TEXT;
        p->text = llm_flat_str(text);
        return LLM_OK;
    }

    return where->goes_on ? llm_api_part_refused(part, type, where, at, err)
                          : llm_api_part_placeholder(p, part, type, err);
}


int
llm_api_part_read(llm_api_part_t *p, const llm_flat_t *part,
    const llm_api_part_at_t *where, const llm_api_at_t *at, llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *type, *text;

    static const char *const  texts[][2] = {
        { "text", "text" }, { "input_text", "text" },
        { "output_text", "text" }, { "refusal", "refusal" }
    };

    p->kind = LLM_API_PART_NOTHING;
    p->text = llm_str("");
    p->made.len = 0;

    if (llm_api_check_type(err, at, part, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    type = llm_api_need(err, at, part, "type", LLM_FLAT_STRING);
    if (type == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < llm_nelems(texts); i++) {
        if (llm_api_str_is(type, texts[i][0])) {
            text = llm_api_need(err, at, part, texts[i][1], LLM_FLAT_STRING);
            if (text == NULL) {
                return LLM_ERROR;
            }

            p->kind = LLM_API_PART_TEXT;
            p->text = llm_flat_str(text);

            return LLM_OK;
        }
    }

    return llm_api_part_other(p, part, type, where, at, err);
}


uint32_t
llm_api_old_turns(const llm_flat_t *list, llm_api_is_said_pt said)
{
    int                is;
    uint32_t           i, last, old;
    const llm_flat_t  *item;

    if (list->type != LLM_FLAT_ARRAY) {
        return 0;
    }

    last = 0;
    old = 0;
    item = llm_flat_first(list);

    for (i = 0; item; i++) {
        is = said(item);
        last = is ? i : last;
        old = is ? old : last;
        item = llm_flat_next(list, item);
    }

    return old;
}


static int
llm_api_is_answer(const llm_flat_t *msg)
{
    return msg->type == LLM_FLAT_OBJECT
           && llm_api_str_is(llm_api_member(msg, "role"), "assistant");
}


uint32_t
llm_api_old_messages(const llm_flat_t *messages)
{
    return llm_api_old_turns(messages, llm_api_is_answer);
}
