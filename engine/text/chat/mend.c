/*
 * Mends conversations that a template refuses.  Templates do not report which
 * turn they refuse, and why, in a way that a program can read.  So remedies
 * are tried, one added to another, in order of how little they change.  Most
 * remedies change only turns of a certain kind.  Where calls have to become
 * text, the exchanges (a turn with calls, and the results after it) that need
 * it are found by bisection; all others keep the template's own form.
 * Remedies that turn out to be unnecessary are removed again.
 *
 * First each remedy is tried once; then follows the search for the fewest
 * remedies.  Each of these two phases has a budget of rendering steps.  When
 * the first phase has used up its budget, all remaining remedies are tried
 * together.  Between two renderings the caller may let other requests run.
 */

#include "engine/text/chat/internal.h"

#define LLM_MEND_STEPS  30000000u
/* steps that a rendering counts for, at least */
#define LLM_MEND_LEAST  500000u

static const struct {
    uint64_t     what;
    uint64_t     with;                  /* other remedies that this one needs */
    int          lenient;               /* only for lenient requests */
    const char  *text;                  /* what it does, for the log; NULL: it
                                           changes no turn */
} llm_mends[] = {
    { LLM_CN_NO_TOOLS, 0, 0, NULL },
    { LLM_CN_WHOLE_TOOLS, 0, 0, NULL },
    { LLM_CN_NULL, 0, 0, NULL },
    { LLM_CN_ARGS, 0, 0, NULL },
    { LLM_CN_IDS, 0, 0, NULL },
    { LLM_CN_JOIN, 0, 0, NULL },
    { LLM_CN_DEVELOPER, 0, 0, NULL },
    { LLM_CN_RESULT_NAMES, 0, 0, NULL },
    { LLM_CN_ONE_VOICE, 0, 0,
      "a turn with text, reasoning and calls is told without the text" },
    { LLM_CN_OBJECTS, LLM_CN_ARGS, 0,
      "a call whose arguments are no object is told with them in one" },
    { LLM_CN_ONE_CALL, 0, 0,
      "a turn with several calls is told as several turns" },
    { LLM_CN_EMPTY, 0, 0, "an assistant's turn that says nothing is left out" },
    { LLM_CN_SIDES, 0, 1,
      "messages of one side in a row are told as one, later system messages "
      "as the user's" },
    { LLM_CN_FILL, 0, 0,
      "a word is put between the result of a tool and what follows it" },
    { LLM_CN_FILL_ALL, 0, 1,
      "a word is put between the result of a tool and what the user says" },
    { LLM_CN_FIRST, 0, 1,
      "a word of the user is put before the first turn of the assistant" },
    { LLM_CN_NO_SYSTEM, 0, 1, "system messages are told as the user's" },
    { LLM_CN_TOOL_TEXT, 0, 0, "calls and their results are told as text" },
    { LLM_CN_TELL_TOOLS, 0, 1, "tools are told in the system message" }
};

typedef struct {
    const llm_chat_t        *c;
    const llm_flat_t        *request;
    llm_jinja_opts_t         opts;
    llm_prompt_t            *out;
    llm_err_t               *err;       /* error of the last rendering */
    uint64_t                 what;
    int                      lenient;
    llm_buf_t                last;      /* variables that the template refused
                                           last */
    llm_buf_t                taken;     /* variables that the template accepted
                                           last */
    int                      slow;      /* 1: the template took too many
                                           steps */
    int                      begun;     /* 1: there has been a rendering */
    int                      stopped;   /* 1: nobody needs the prompt any
                                           more */
    uint64_t                 left;      /* steps left */
    llm_chat_told_t          told;
    uint8_t                 *tells;     /* memory of told.v */
    uint32_t                *units;     /* index of the first message of each
                                           exchange, and of the end */
    uint32_t                 n_units;
} llm_mend_t;


static int
llm_mend_is(const llm_buf_t *vars, const llm_buf_t *other)
{
    return vars->len == other->len
           && memcmp(vars->data, other->data, vars->len) == 0;
}


/* called before each rendering except the first */

static int
llm_mend_pause(llm_mend_t *m)
{
    if (!m->stopped && m->begun && m->opts.pause
        && m->opts.pause(m->opts.data))
    {
        m->stopped = 1;
    }

    m->begun = 1;

    if (!m->stopped) {
        return LLM_OK;
    }

    m->left = 0;

    return llm_fail(m->err, "the request has ended");
}


/*
 * Renders once, replacing the last prompt; skips the rendering if the template
 * has just accepted or refused the same variables.
 */

static int
llm_mend_try(llm_mend_t *m, uint64_t what)
{
    int           rc;
    uint64_t      before, used;
    llm_buf_t     vars, *same;
    llm_prompt_t  prompt;

    llm_buf_init(&vars, 0);

    rc = llm_chat_vars(m->c, m->request, what, m->told.v ? &m->told : NULL,
                       m->opts.now, &vars, m->err);

    if (rc == LLM_OK
        && (llm_mend_is(&vars, &m->last) || llm_mend_is(&vars, &m->taken)))
    {
        rc = llm_mend_is(&vars, &m->taken) ? LLM_OK : LLM_ERROR;
        llm_buf_free(&vars);

        return rc;
    }

    rc = rc == LLM_OK ? llm_mend_pause(m) : rc;

    if (rc == LLM_OK) {
        before = m->left;
        rc = llm_chat_render_vars(m->c, &vars, &m->opts, &prompt, m->err);
        used = before - m->left;

        if (rc != LLM_OK && m->left
            && strcmp(m->err->code, LLM_JINJA_LIMIT) == 0)
        {
            m->slow = 1;
        }

        if (used < LLM_MEND_LEAST) {
            m->left -= llm_min(LLM_MEND_LEAST - used, m->left);
        }
    }

    if (rc == LLM_OK) {
        llm_prompt_free(m->out);
        *m->out = prompt;
    }

    same = rc == LLM_OK ? &m->taken : &m->last;
    llm_buf_free(same);
    *same = vars;

    return rc;
}


/* ---- exchanges ---- */

static int
llm_mend_calls(const llm_flat_t *msg)
{
    const llm_flat_t  *calls;

    calls = msg->type == LLM_FLAT_OBJECT ? llm_flat_get(msg, "tool_calls")
                                         : NULL;

    return calls && calls->type == LLM_FLAT_ARRAY && calls->count;
}


static int
llm_mend_results(const llm_flat_t *msg)
{
    return msg->type == LLM_FLAT_OBJECT
           && llm_chat_is(llm_flat_get(msg, "role"), "tool");
}


/* finds the exchanges; a result that follows no call is one, too */

static int
llm_mend_find_units(llm_mend_t *m)
{
    uint32_t           i, n;
    const llm_flat_t  *messages, *msg;

    messages = llm_flat_get(m->request, "messages");
    n = messages->count;

    m->tells = calloc((size_t) n + 1, 1);
    m->units = calloc((size_t) n + 1, sizeof(uint32_t));

    if (m->tells == NULL || m->units == NULL) {
        return LLM_ERROR;
    }

    for (msg = llm_flat_first(messages), i = 0; msg;
         msg = llm_flat_next(messages, msg), i++)
    {
        if (llm_mend_calls(msg)
            || (llm_mend_results(msg) && (i == 0 || !m->tells[i - 1])))
        {
            m->units[m->n_units++] = i;
        }

        m->tells[i] = llm_mend_calls(msg) || llm_mend_results(msg);
    }

    m->units[m->n_units] = n;
    m->told.v = m->tells;
    m->told.n = n;

    return LLM_OK;
}


/* switches exchanges [from, to) to text, or to the template's own form */

static void
llm_mend_tell(llm_mend_t *m, uint32_t from, uint32_t to, uint8_t tell)
{
    uint32_t           i, unit;
    const llm_flat_t  *messages, *msg;

    messages = llm_flat_get(m->request, "messages");

    for (msg = llm_flat_first(messages), i = 0, unit = from;
         msg && i < m->units[to];
         msg = llm_flat_next(messages, msg), i++)
    {
        if (i >= m->units[unit]
            && (llm_mend_calls(msg) || llm_mend_results(msg)))
        {
            m->tells[i] = tell;
        }
    }
}


/*
 * Finds out which of the exchanges [from, to), all of which are text, have to
 * be text; bad: at least one is known to.  Returns the number that remain
 * text.
 */

static uint32_t
llm_mend_narrow(llm_mend_t *m, uint32_t from, uint32_t to, int bad)
{
    uint32_t  n, middle;

    if (from == to || m->left == 0) {
        return to - from;
    }

    if (!bad) {
        llm_mend_tell(m, from, to, 0);

        if (llm_mend_try(m, m->what) == LLM_OK) {
            return 0;
        }

        llm_mend_tell(m, from, to, 1);
    }

    if (to - from == 1) {
        return 1;
    }

    middle = from + (to - from) / 2;

    /* the later half first: the model depends most on the latest exchanges */

    n = llm_mend_narrow(m, middle, to, 0);

    return n + llm_mend_narrow(m, from, middle, n == 0);
}


/* ---- the search ---- */

static int
llm_mend_may(const llm_mend_t *m, size_t i)
{
    if ((m->what | llm_mends[i].what) == m->what
        || (llm_mends[i].lenient && !m->lenient)
        || ((llm_mends[i].what | llm_mends[i].with) & m->c->never))
    {
        return 0;
    }

    /* a template that takes too long is not tried again and again: only once
       more without the tools, if there are any */

    return !m->slow || (llm_mends[i].what == LLM_CN_TELL_TOOLS
                        && llm_flat_get(m->request, "tools"));
}


/* added: what each remedy has added; *last: the remedy that helped */

static int
llm_mend_search(llm_mend_t *m, uint64_t *added, size_t *last)
{
    int       rc;
    size_t    i;
    uint64_t  what;

    rc = LLM_ERROR;

    for (i = 0; i < llm_nelems(llm_mends) && rc != LLM_OK; i++) {
        if (!llm_mend_may(m, i)) {
            continue;
        }

        what = m->what | llm_mends[i].what | llm_mends[i].with;
        added[i] = what & ~m->what;
        m->what = what;
        *last = i;

        if (m->left) {
            rc = llm_mend_try(m, what);
        }
    }

    if (rc != LLM_OK && m->left == 0 && !m->stopped) {
        llm_buf_free(&m->last);
        m->left = LLM_MEND_STEPS;
        rc = llm_mend_try(m, m->what);
    }

    return rc;
}


static void
llm_mend_take_back(llm_mend_t *m, uint64_t *added, size_t last)
{
    size_t  i;

    for (i = last; i-- > 0 && m->left; /* void */ ) {
        if (added[i] && llm_mend_try(m, m->what & ~added[i]) == LLM_OK) {
            m->what &= ~added[i];
            added[i] = 0;
        }
    }
}


static int
llm_mend_begin(llm_mend_t *m)
{
    int        rc;
    size_t     last;
    uint32_t   n;
    uint64_t   before, added[llm_nelems(llm_mends)];
    llm_err_t  err;

    memset(added, 0, sizeof(added));
    memset(&err, 0, sizeof(err));
    last = 0;
    before = m->what;
    m->left = LLM_MEND_STEPS;

    /* a failure from here on is one that has occurred before */

    err = *m->err;
    m->err = &err;

    rc = llm_mend_search(m, added, &last);

    if (rc != LLM_OK) {
        return rc;
    }

    m->left = LLM_MEND_STEPS;

    if ((m->what & ~before & LLM_CN_TOOL_TEXT) && m->c->calls
        && llm_mend_find_units(m) == LLM_OK)
    {
        n = llm_mend_narrow(m, 0, m->n_units, 1);

        /* a remedy that did not help may do harm */

        if (n == m->n_units) {
            llm_mend_take_back(m, added, last);
            (void) llm_mend_narrow(m, 0, m->n_units, 1);
        }
    }

    llm_mend_take_back(m, added, last);

    return LLM_OK;
}


int
llm_chat_mend(const llm_chat_t *c, const llm_flat_t *request, uint64_t what,
    const llm_jinja_opts_t *opts, llm_prompt_t *out, uint64_t *mended,
    llm_err_t *err)
{
    int         rc;
    llm_mend_t  m;

    memset(&m, 0, sizeof(m));
    m.c = c;
    m.request = request;
    m.opts = opts ? *opts : m.opts;
    m.opts.left = &m.left;
    m.left = UINT64_MAX;
    m.out = out;
    m.err = err;
    m.what = what;
    m.lenient = llm_chat_flag(request, "lenient");
    llm_buf_init(&m.last, 0);
    llm_buf_init(&m.taken, 0);

    rc = llm_mend_try(&m, what);

    if (rc != LLM_OK) {
        rc = llm_mend_begin(&m);
    }

    *mended = rc == LLM_OK ? m.what & ~what : 0;

    llm_buf_free(&m.last);
    llm_buf_free(&m.taken);
    free(m.tells);
    free(m.units);

    return rc;
}


const char *
llm_chat_mended(uint64_t *mended)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_mends); i++) {
        if (llm_mends[i].text && (*mended & llm_mends[i].what)) {
            *mended &= ~llm_mends[i].what;
            return llm_mends[i].text;
        }
    }

    *mended = 0;

    return NULL;
}
