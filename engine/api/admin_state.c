/*
 * The state of llm_admin: aliases that it has set, and models that it has
 * added, stopped, told to drain, or given another file.  As a file (sealed.h):
 *
 *   {"state_of": "llm_admin"}
 *   {"alias": "chat", "model": "demo-2"}
 *   {"model": "demo", "file": "b.gguf", "stopped": false, "draining": true,
 *    "number": 7}
 *   {"model": "new", "file": "c.gguf", "stopped": false, "draining": false,
 *    "number": 1, "added": true}
 *   {"lines": 2, "sha256": "of all bytes before this line"}
 */

#include "engine/api/admin.h"
#include "engine/api/json.h"
#include "engine/api/sealed.h"
#include "engine/base/file.h"
#include "engine/base/utf8.h"

#include <strings.h>

/* JSON may write one byte as six */
#define LLM_ADMIN_LINE  (6 * (LLM_ADMIN_NAME + LLM_MAX_FILE) + 256)


/* ---- names ---- */

llm_str_t
llm_admin_str(const llm_admin_name_t *name)
{
    llm_str_t  s;

    s.data = name->data;
    s.len = name->len;

    return s;
}


void
llm_admin_copy_name(llm_admin_name_t *to, llm_str_t from)
{
    to->len = (uint32_t) from.len;
    memcpy(to->data, from.data, from.len);
}


/* as requests name models: without regard to case */

static int
llm_admin_same(const llm_admin_name_t *a, llm_str_t b)
{
    return a->len == b.len && strncasecmp(a->data, b.data, b.len) == 0;
}


int
llm_admin_check_name(llm_str_t name, llm_err_t *err)
{
    size_t  i;

    if (name.len == 0 || name.len > LLM_ADMIN_NAME) {
        return llm_fail_with(err, 400, "invalid_name", NULL,
                             "A name has up to %d bytes here.",
                             LLM_ADMIN_NAME);
    }

    for (i = 0; i < name.len; i++) {
        if ((unsigned char) name.data[i] < 0x20 || name.data[i] == 0x7f) {
            break;
        }
    }

    if (i < name.len || llm_utf8_valid(name.data, name.len) != name.len) {
        return llm_fail_with(err, 400, "invalid_name", NULL,
                             "A name is UTF-8 without control characters "
                             "here.");
    }

    return LLM_OK;
}


/* controls of two bytes, and marks that change the direction of the text */

static int
llm_admin_is_mark(uint32_t cp)
{
    return (cp >= 0x80 && cp <= 0x9f) || cp == 0x61c || cp == 0x200e
           || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e)
           || (cp >= 0x2066 && cp <= 0x2069);
}


int
llm_admin_check_new_name(llm_str_t name, llm_err_t *err)
{
    size_t    i, n;
    uint32_t  cp;

    if (llm_admin_check_name(name, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < name.len; i += n) {
        n = llm_utf8_decode(name.data + i, name.len - i, &cp);

        if (llm_admin_is_mark(cp)) {
            return llm_fail_with(err, 400, "invalid_name", NULL,
                                 "A name has no control characters and no "
                                 "marks of the text's direction here: this "
                                 "one has U+%04X.", cp);
        }
    }

    return LLM_OK;
}


/* ---- aliases ---- */

const llm_admin_alias_t *
llm_admin_find_alias(const llm_admin_state_t *st, llm_str_t name)
{
    uint32_t  i;

    for (i = 0; i < st->n_aliases; i++) {
        if (llm_admin_same(&st->aliases[i].name, name)) {
            return &st->aliases[i];
        }
    }

    return NULL;
}


int
llm_admin_set_alias(llm_admin_state_t *st, llm_str_t name, llm_str_t model,
    llm_err_t *err)
{
    uint32_t            i;
    llm_admin_alias_t  *a;

    for (i = 0; i < st->n_aliases; i++) {
        if (llm_admin_same(&st->aliases[i].name, name)) {
            break;
        }
    }

    a = &st->aliases[i];

    if (model.len == 0) {
        if (i < st->n_aliases) {
            memmove(a, a + 1, (st->n_aliases - i - 1) * sizeof(*a));
            st->n_aliases--;
        }

        return LLM_OK;
    }

    if (model.len > LLM_ADMIN_NAME || name.len > LLM_ADMIN_NAME) {
        return llm_fail_with(err, 400, "invalid_name", NULL,
                             "A name has up to %d bytes here.",
                             LLM_ADMIN_NAME);
    }

    if (i == LLM_ADMIN_ALIASES) {
        return llm_fail_with(err, 409, "too_many_aliases", NULL,
                             "There are %d aliases already: take one back.",
                             LLM_ADMIN_ALIASES);
    }

    if (i == st->n_aliases) {
        llm_admin_copy_name(&a->name, name);
        st->n_aliases++;
    }

    llm_admin_copy_name(&a->model, model);

    return LLM_OK;
}


/* ---- models ---- */

static int
llm_admin_is_usual(const llm_override_t *o)
{
    return o->file[0] == '\0' && !o->stopped && !o->draining
           && o->number == 0 && !o->added;
}


int
llm_admin_same_override(const llm_override_t *a, const llm_override_t *b)
{
    return strcmp(a->file, b->file) == 0 && !a->stopped == !b->stopped
           && !a->draining == !b->draining && a->number == b->number
           && !a->added == !b->added;
}


const llm_admin_model_t *
llm_admin_find_model(const llm_admin_state_t *st, llm_str_t name)
{
    uint32_t  i;

    for (i = 0; i < st->n_models; i++) {
        if (llm_str_eq(llm_admin_str(&st->models[i].name), name)) {
            return &st->models[i];
        }
    }

    return NULL;
}


int
llm_admin_is_news(const llm_admin_state_t *st, llm_str_t name,
    const llm_override_t *o)
{
    const llm_admin_model_t  *m;

    m = llm_admin_find_model(st, name);

    return name.len <= LLM_ADMIN_NAME
           && !(m ? llm_admin_same_override(&m->o, o)
                  : llm_admin_is_usual(o));
}


/* if there is no room: the first that the configuration has or had, of which
   there are more than it can have */

static uint32_t
llm_admin_oldest(const llm_admin_state_t *st)
{
    uint32_t  i;

    for (i = 0; i < st->n_models && st->models[i].o.added; i++) { /* void */ }

    return i < st->n_models ? i : 0;
}


void
llm_admin_forget_model(llm_admin_state_t *st, llm_str_t name)
{
    uint32_t            i;
    llm_admin_model_t  *m;

    for (i = 0; i < st->n_models; i++) {
        m = &st->models[i];

        if (llm_str_eq(llm_admin_str(&m->name), name)) {
            memmove(m, m + 1, (st->n_models - i - 1) * sizeof(*m));
            st->n_models--;
            return;
        }
    }
}


/* the one that was set last is the last */

void
llm_admin_set_model(llm_admin_state_t *st, llm_str_t name,
    const llm_override_t *o)
{
    llm_admin_name_t    gone;
    llm_admin_model_t  *m;

    llm_admin_forget_model(st, name);

    if (st->n_models == LLM_ADMIN_MODELS) {
        gone = st->models[llm_admin_oldest(st)].name;
        llm_admin_forget_model(st, llm_admin_str(&gone));
    }

    m = &st->models[st->n_models++];

    memset(m, 0, sizeof(*m));
    llm_admin_copy_name(&m->name, name);
    m->o = *o;
}


/* ---- merging states that share a file ---- */

static int
llm_admin_same_alias(const llm_admin_alias_t *a, const llm_admin_alias_t *b)
{
    return a == b || (a && b && llm_str_eq(llm_admin_str(&a->model),
                                           llm_admin_str(&b->model)));
}


static int
llm_admin_same_model(const llm_admin_model_t *a, const llm_admin_model_t *b)
{
    return a == b || (a && b && llm_admin_same_override(&a->o, &b->o));
}


int
llm_admin_same_state(const llm_admin_state_t *a, const llm_admin_state_t *b)
{
    uint32_t   i;
    llm_str_t  name;

    if (a->n_aliases != b->n_aliases || a->n_models != b->n_models) {
        return 0;
    }

    for (i = 0; i < a->n_aliases; i++) {
        name = llm_admin_str(&a->aliases[i].name);

        if (!llm_admin_same_alias(&a->aliases[i],
                                  llm_admin_find_alias(b, name)))
        {
            return 0;
        }
    }

    for (i = 0; i < a->n_models; i++) {
        name = llm_admin_str(&a->models[i].name);

        if (!llm_admin_same_model(&a->models[i],
                                  llm_admin_find_model(b, name)))
        {
            return 0;
        }
    }

    return 1;
}


/* takes their alias of this name, unless ours was changed, too */

static void
llm_admin_merge_alias(llm_admin_state_t *ours, const llm_admin_state_t *base,
    const llm_admin_state_t *theirs, llm_str_t name)
{
    llm_err_t                 err;
    const llm_admin_alias_t  *was, *is;

    was = llm_admin_find_alias(base, name);
    is = llm_admin_find_alias(theirs, name);

    if (!llm_admin_same_alias(was, is)
        && llm_admin_same_alias(was, llm_admin_find_alias(ours, name)))
    {
        (void) llm_admin_set_alias(ours, name,
                                   is ? llm_admin_str(&is->model)
                                      : llm_str(""), &err);
    }
}


/* removes a model that they have removed, unless ours was changed, too */

static void
llm_admin_merge_removed(llm_admin_state_t *ours,
    const llm_admin_state_t *base, const llm_admin_state_t *theirs)
{
    uint32_t   i;
    llm_str_t  name;

    for (i = 0; i < base->n_models; i++) {
        name = llm_admin_str(&base->models[i].name);

        if (base->models[i].o.added
            && llm_admin_find_model(theirs, name) == NULL
            && llm_admin_same_model(&base->models[i],
                                    llm_admin_find_model(ours, name)))
        {
            llm_admin_forget_model(ours, name);
        }
    }
}


void
llm_admin_merge(llm_admin_state_t *ours, const llm_admin_state_t *base,
    const llm_admin_state_t *theirs)
{
    uint32_t                  i;
    llm_str_t                 name;
    const llm_admin_model_t  *was;

    for (i = 0; i < base->n_aliases; i++) {
        llm_admin_merge_alias(ours, base, theirs,
                              llm_admin_str(&base->aliases[i].name));
    }

    for (i = 0; i < theirs->n_aliases; i++) {
        llm_admin_merge_alias(ours, base, theirs,
                              llm_admin_str(&theirs->aliases[i].name));
    }

    llm_admin_merge_removed(ours, base, theirs);

    for (i = 0; i < theirs->n_models; i++) {
        name = llm_admin_str(&theirs->models[i].name);
        was = llm_admin_find_model(base, name);

        if (!llm_admin_same_model(was, &theirs->models[i])
            && llm_admin_same_model(was, llm_admin_find_model(ours, name)))
        {
            llm_admin_set_model(ours, name, &theirs->models[i].o);
        }
    }
}


/* ---- writing ---- */

static void
llm_admin_add_name(llm_buf_t *out, const char *key, const char *s, size_t len)
{
    (void) llm_buf_addf(out, "\"%s\":", key);
    (void) llm_json_add_string(out, s, len);
}


int
llm_admin_write(const llm_admin_state_t *st, llm_buf_t *out)
{
    uint32_t                  i;
    const llm_admin_alias_t  *a;
    const llm_admin_model_t  *m;

    (void) llm_buf_adds(out, "{\"state_of\":\"llm_admin\"}\n");

    for (i = 0; i < st->n_aliases; i++) {
        a = &st->aliases[i];

        (void) llm_buf_addc(out, '{');
        llm_admin_add_name(out, "alias", a->name.data, a->name.len);
        (void) llm_buf_addc(out, ',');
        llm_admin_add_name(out, "model", a->model.data, a->model.len);
        (void) llm_buf_adds(out, "}\n");
    }

    for (i = 0; i < st->n_models; i++) {
        m = &st->models[i];

        (void) llm_buf_addc(out, '{');
        llm_admin_add_name(out, "model", m->name.data, m->name.len);
        (void) llm_buf_addc(out, ',');
        llm_admin_add_name(out, "file", m->o.file, strlen(m->o.file));
        (void) llm_buf_addf(out, ",\"stopped\":%s,\"draining\":%s,"
                            "\"number\":%llu%s}\n",
                            m->o.stopped ? "true" : "false",
                            m->o.draining ? "true" : "false",
                            (unsigned long long) m->o.number,
                            m->o.added ? ",\"added\":true" : "");
    }

    return llm_sealed_end(out, "lines", st->n_aliases + st->n_models);
}


/* ---- reading ---- */

static int
llm_admin_member(const llm_flat_t *line, const char *name, size_t most,
    llm_str_t *to)
{
    const llm_flat_t  *v;

    v = llm_flat_get(line, name);

    if (v == NULL || v->type != LLM_FLAT_STRING) {
        return LLM_ERROR;
    }

    *to = llm_flat_str(v);

    return to->len <= most ? LLM_OK : LLM_ERROR;
}


static int
llm_admin_bool(const llm_flat_t *line, const char *name, uint32_t *to)
{
    const llm_flat_t  *v;

    v = llm_flat_get(line, name);

    if (v == NULL || v->type != LLM_FLAT_BOOL) {
        return LLM_ERROR;
    }

    *to = llm_flat_int(v) != 0;

    return LLM_OK;
}


static int
llm_admin_read_line(llm_admin_state_t *st, const llm_flat_t *line)
{
    llm_err_t       err;
    llm_str_t       name, model, file;
    llm_override_t  o;

    if (llm_admin_member(line, "model", LLM_ADMIN_NAME, &model) != LLM_OK
        || model.len == 0)
    {
        return LLM_ERROR;
    }

    if (llm_flat_get(line, "alias")) {
        return llm_admin_member(line, "alias", LLM_ADMIN_NAME, &name)
               == LLM_OK
               && llm_admin_check_name(name, &err) == LLM_OK
               && llm_admin_find_alias(st, name) == NULL
               ? llm_admin_set_alias(st, name, model, &err) : LLM_ERROR;
    }

    memset(&o, 0, sizeof(o));

    /* files of older versions have no "added" */

    if (llm_flat_get(line, "added")
        && llm_admin_bool(line, "added", &o.added) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (o.added && llm_admin_check_name(model, &err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_admin_member(line, "file", LLM_MAX_FILE - 1, &file) != LLM_OK
        || llm_admin_bool(line, "stopped", &o.stopped) != LLM_OK
        || llm_admin_bool(line, "draining", &o.draining) != LLM_OK
        || llm_sealed_number(line, "number", &o.number) != LLM_OK
        || llm_admin_find_model(st, model) || st->n_models == LLM_ADMIN_MODELS)
    {
        return LLM_ERROR;
    }

    memcpy(o.file, file.data, file.len);
    llm_admin_set_model(st, model, &o);

    return LLM_OK;
}


static int
llm_admin_read_lines(llm_admin_state_t *st, llm_sealed_t *f, llm_err_t *err)
{
    uint64_t           i;
    llm_str_t          of;
    const llm_flat_t  *line;

    line = llm_sealed_line(f, err);

    if (line == NULL
        || llm_admin_member(line, "state_of", LLM_ADMIN_NAME, &of) != LLM_OK
        || !llm_str_is(of, "llm_admin"))
    {
        return llm_fail(err, "it is no state of \"llm_admin\"");
    }

    for (i = 0; i < f->n; i++) {
        line = llm_sealed_line(f, err);

        if (line == NULL || llm_admin_read_line(st, line) != LLM_OK) {
            return llm_fail(err, "line %llu is neither an alias's nor a "
                            "model's", (unsigned long long) i + 2);
        }
    }

    return LLM_OK;
}


int
llm_admin_read(llm_admin_state_t *st, const char *text, size_t len,
    llm_err_t *err)
{
    int           rc;
    llm_sealed_t  f;

    memset(st, 0, sizeof(llm_admin_state_t));

    if (llm_sealed_open(&f, text, len, LLM_ADMIN_LINE, "lines", err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = llm_admin_read_lines(st, &f, err);

    llm_sealed_close(&f);

    if (rc != LLM_OK) {
        memset(st, 0, sizeof(llm_admin_state_t));
    }

    return rc;
}


int
llm_admin_text(const char *path, llm_buf_t *text, llm_err_t *err)
{
    llm_buf_init(text, LLM_ADMIN_BYTES);

    return llm_file_read(path, text, err);
}


int
llm_admin_read_file(llm_admin_state_t *st, const char *path, llm_err_t *err)
{
    int        rc;
    llm_buf_t  text;

    memset(st, 0, sizeof(llm_admin_state_t));

    rc = llm_admin_text(path, &text, err);

    if (rc == LLM_OK) {
        rc = llm_admin_read(st, text.len ? text.data : "", text.len, err);
    }

    llm_buf_free(&text);

    return rc;
}
