/*
 * multipart/form-data; see multipart.h.
 *
 * A part's data end at CR, LF, two dashes and the boundary.  How much of that
 * has come is all that is kept between pieces: as CR is its first byte alone,
 * bytes that turn out to be data are those of the mark itself.
 */

#include "engine/api/multipart.h"

#include <strings.h>


static int
llm_multipart_space(char c)
{
    return c == ' ' || c == '\t';
}


static llm_str_t
llm_multipart_trim(llm_str_t s)
{
    while (s.len && llm_multipart_space(s.data[0])) {
        s.data++;
        s.len--;
    }

    while (s.len && llm_multipart_space(s.data[s.len - 1])) {
        s.len--;
    }

    return s;
}


static int
llm_multipart_is(llm_str_t s, const char *name)
{
    return s.len == strlen(name) && strncasecmp(s.data, name, s.len) == 0;
}


/*
 * Takes the next parameter, `; name=value` or `; name="value"`, from *s; 0:
 * there is none.  In a quoted value a backslash stands before a quote; it is
 * left in the text, as in names of Windows' files it is no escape.
 */

static int
llm_multipart_parameter(llm_str_t *s, llm_str_t *name, llm_str_t *value)
{
    size_t  i;

    for (i = 0; i < s->len && s->data[i] != ';'; i++) { /* void */ }

    if (i == s->len) {
        return 0;
    }

    s->data += i + 1;
    s->len -= i + 1;

    for (i = 0; i < s->len && s->data[i] != '=' && s->data[i] != ';'; i++) {
        /* void */
    }

    *name = llm_multipart_trim((llm_str_t) { i, s->data });
    *value = (llm_str_t) { 0, s->data + i };

    if (i == s->len || s->data[i] == ';') {
        s->data += i;
        s->len -= i;
        return 1;
    }

    s->data += i + 1;
    s->len -= i + 1;

    while (s->len && llm_multipart_space(s->data[0])) {
        s->data++;
        s->len--;
    }

    if (s->len && s->data[0] == '"') {
        for (i = 1; i < s->len && s->data[i] != '"'; i++) {
            if (s->data[i] == '\\' && i + 1 < s->len && s->data[i + 1] == '"')
            {
                i++;
            }
        }

        *value = (llm_str_t) { i - 1, s->data + 1 };
        i = llm_min(i + 1, s->len);

    } else {
        for (i = 0; i < s->len && s->data[i] != ';'; i++) { /* void */ }

        *value = llm_multipart_trim((llm_str_t) { i, s->data });
    }

    s->data += i;
    s->len -= i;

    return 1;
}


static int
llm_multipart_wrong(const llm_multipart_t *m, llm_err_t *err, const char *what)
{
    return llm_fail_with(err, 400, NULL, NULL, "the form is broken at byte "
                         "%llu of the body: %s",
                         (unsigned long long) m->pos, what);
}


int
llm_multipart_init(llm_multipart_t *m, llm_str_t content_type, llm_err_t *err)
{
    size_t     i;
    llm_str_t  rest, type, name, value, boundary;

    memset(m, 0, sizeof(*m));

    rest = content_type;
    for (i = 0; i < rest.len && rest.data[i] != ';'; i++) { /* void */ }

    type = llm_multipart_trim((llm_str_t) { i, rest.data });

    if (!llm_multipart_is(type, "multipart/form-data")) {
        return llm_fail_with(err, 415, NULL, NULL, "the body must be a form: "
                             "its Content-Type is \"%.*s\", not "
                             "multipart/form-data",
                             (int) llm_min(type.len, 80), type.data);
    }

    boundary = (llm_str_t) { 0, NULL };

    while (llm_multipart_parameter(&rest, &name, &value)) {
        if (llm_multipart_is(name, "boundary")) {
            boundary = value;
            break;
        }
    }

    if (boundary.len == 0 || boundary.len > LLM_MULTIPART_BOUNDARY) {
        return llm_fail_with(err, 400, NULL, NULL, "the Content-Type "
                             "multipart/form-data needs a boundary of 1 to %d "
                             "bytes", LLM_MULTIPART_BOUNDARY);
    }

    for (i = 0; i < boundary.len; i++) {
        if ((unsigned char) boundary.data[i] < ' ' || boundary.data[i] == 0x7f)
        {
            return llm_fail_with(err, 400, NULL, NULL, "the boundary of the "
                                 "Content-Type has a control character");
        }
    }

    memcpy(m->mark, "\r\n--", 4);
    memcpy(m->mark + 4, boundary.data, boundary.len);
    m->mark_len = (uint32_t) boundary.len + 4;

    /* the first one stands at the body's beginning, without a line's end */
    m->matched = 2;

    return LLM_OK;
}


/* the part's header is complete */

static int
llm_multipart_begin(llm_multipart_t *m, const llm_multipart_sink_t *sink,
    llm_err_t *err)
{
    char                  *p, *end, *line;
    llm_str_t              key, rest, name, value;
    llm_multipart_part_t   part;

    memset(&part, 0, sizeof(part));
    end = m->header + m->header_len;

    for (line = m->header; line < end; line = p + 2) {
        p = memmem(line, (size_t) (end - line), "\r\n", 2);

        if (p == NULL) {
            break;
        }

        rest.data = memchr(line, ':', (size_t) (p - line));

        if (rest.data == NULL) {
            if (p == line) {
                continue;
            }

            return llm_multipart_wrong(m, err, "a line of a part's header has "
                                       "no colon");
        }

        key = llm_multipart_trim((llm_str_t) { (size_t) (rest.data - line),
                                               line });
        rest.data++;
        rest.len = (size_t) (p - rest.data);

        if (llm_multipart_is(key, "Content-Type")) {
            part.type = llm_multipart_trim(rest);
        }

        if (!llm_multipart_is(key, "Content-Disposition")) {
            continue;
        }

        while (llm_multipart_parameter(&rest, &name, &value)) {
            if (llm_multipart_is(name, "name")) {
                part.name = value;

            } else if (llm_multipart_is(name, "filename")) {
                part.filename = value;
            }
        }
    }

    if (part.name.data == NULL) {
        return llm_multipart_wrong(m, err, "a part has no name, which its "
                                   "Content-Disposition should say");
    }

    if (m->n_parts++ == LLM_MULTIPART_PARTS) {
        return llm_fail_with(err, 400, NULL, NULL, "the form has more than %d "
                             "parts", LLM_MULTIPART_PARTS);
    }

    m->state = LLM_MULTIPART_DATA;

    return sink->begin(sink->ctx, &part, err);
}


/* a byte of a part's header */

static int
llm_multipart_line(llm_multipart_t *m, const llm_multipart_sink_t *sink,
    char c, llm_err_t *err)
{
    if (m->header_len == LLM_MULTIPART_HEADER) {
        return llm_multipart_wrong(m, err, "a part's header is too long");
    }

    m->header[m->header_len++] = c;

    if (c == '\n' && ((m->header_len == 2 && m->header[0] == '\r')
                      || (m->header_len >= 4
                          && memcmp(m->header + m->header_len - 4,
                                    "\r\n\r\n", 4) == 0)))
    {
        return llm_multipart_begin(m, sink, err);
    }

    return LLM_OK;
}


/* a byte after a boundary, or of a header */

static int
llm_multipart_other(llm_multipart_t *m, const llm_multipart_sink_t *sink,
    char c, llm_err_t *err)
{
    switch (m->state) {

    case LLM_MULTIPART_AFTER:
        if (c == '-') {
            m->state = LLM_MULTIPART_DASH;
            return LLM_OK;
        }

        m->state = LLM_MULTIPART_PADDING;

        /* fall through */

    case LLM_MULTIPART_PADDING:
        if (c == '\r') {
            m->state = LLM_MULTIPART_NEWLINE;
            return LLM_OK;
        }

        return llm_multipart_space(c)
               ? LLM_OK : llm_multipart_wrong(m, err, "a boundary is followed "
                                              "by other text");

    case LLM_MULTIPART_NEWLINE:
        if (c != '\n') {
            return llm_multipart_wrong(m, err, "a boundary is followed by a "
                                       "CR without an LF");
        }

        m->state = LLM_MULTIPART_LINES;
        m->header_len = 0;
        return LLM_OK;

    case LLM_MULTIPART_LINES:
        return llm_multipart_line(m, sink, c, err);

    case LLM_MULTIPART_DASH:
        if (c != '-') {
            return llm_multipart_wrong(m, err, "a boundary is followed by a "
                                       "single dash");
        }

        m->state = LLM_MULTIPART_EPILOGUE;
        return LLM_OK;

    default:
        return LLM_OK;
    }
}


static int
llm_multipart_give(llm_multipart_t *m, const llm_multipart_sink_t *sink,
    const char *p, size_t n, llm_err_t *err)
{
    if (n == 0 || m->state != LLM_MULTIPART_DATA) {
        return LLM_OK;
    }

    return sink->data(sink->ctx, p, n, err);
}


/*
 * Data, or what stands before the first part: looks for the mark in p[0] ...
 * p[len - 1], and hands on what is none.  Returns the number of bytes that
 * were read; *rc: LLM_ERROR if that failed.
 */

static size_t
llm_multipart_data(llm_multipart_t *m, const llm_multipart_sink_t *sink,
    const char *p, size_t len, int *rc, llm_err_t *err)
{
    size_t       i;
    uint32_t     held;
    const char  *cr;

    held = m->matched;                  /* bytes before p that may be data */

    for (i = 0; i < len; i++) {
        if (p[i] == m->mark[m->matched]) {
            m->matched++;

            if (m->matched == m->mark_len) {
                if (held == 0) {
                    *rc = llm_multipart_give(m, sink, p, i + 1 - m->mark_len,
                                             err);
                }

                if (*rc == LLM_OK && m->state == LLM_MULTIPART_DATA) {
                    *rc = sink->end(sink->ctx, err);
                }

                m->state = LLM_MULTIPART_AFTER;
                m->matched = 0;
                return i + 1;
            }

            continue;
        }

        if (held) {
            *rc = llm_multipart_give(m, sink, m->mark, held, err);
            held = 0;

            if (*rc != LLM_OK) {
                return i;
            }
        }

        m->matched = p[i] == '\r';

        if (!m->matched) {
            cr = memchr(p + i, '\r', len - i);
            i = cr ? (size_t) (cr - p) - 1 : len - 1;
        }
    }

    *rc = llm_multipart_give(m, sink, p, len - (m->matched - held), err);

    return len;
}


int
llm_multipart_read(llm_multipart_t *m, const llm_multipart_sink_t *sink,
    const void *data, size_t len, llm_err_t *err)
{
    int          rc;
    size_t       n;
    const char  *p;

    p = data;
    rc = LLM_OK;

    for ( /* void */ ; len && rc == LLM_OK; p += n, len -= n, m->pos += n) {
        n = 1;

        if (m->state == LLM_MULTIPART_EPILOGUE) {
            n = len;

        } else if (m->state == LLM_MULTIPART_DATA
                   || m->state == LLM_MULTIPART_PREAMBLE)
        {
            n = llm_multipart_data(m, sink, p, len, &rc, err);

        } else {
            rc = llm_multipart_other(m, sink, *p, err);
        }
    }

    return rc;
}


int
llm_multipart_end(const llm_multipart_t *m, llm_err_t *err)
{
    if (m->state == LLM_MULTIPART_EPILOGUE) {
        return LLM_OK;
    }

    return llm_multipart_wrong(m, err, m->state == LLM_MULTIPART_PREAMBLE
                               ? "it ends, and its boundary has not come"
                               : "it ends before its last boundary");
}
