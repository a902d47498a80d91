/*
 * Where the rows of a team's buffers are, and how they get where they are
 * needed: by collections, which are all that devices wait for each other for.
 *
 * Invariant: after collection n a device has read what the others had then.  So
 * the others may write that again once it has begun a later one, as all of them
 * wait there for each other.
 */

#include "kernels/team/team_internal.h"


/* x[i] side by side to y[i], or to those of y that are not NULL */

static void
llm_team_collect_to(llm_team_t *t, llm_rows_t rows, llm_act_t *const *x,
    llm_act_t *const *y)
{
    t->n_collected++;
    t->ops->collect(t->of, t->n, rows, (const llm_act_t *const *) x, y);
}


/* all devices, or the first one alone, get all columns of the parts */

static void
llm_team_join_parts(llm_team_t *t, llm_rows_t rows, llm_team_act_t *a,
    int form)
{
    llm_act_t  *first[LLM_MAX_DEVICES] = { a->whole[0] };

    llm_team_collect_to(t, rows, a->part, form == LLM_TEAM_FIRST ? first
                                                                 : a->whole);
    a->read = t->n_collected;
    a->forms |= form == LLM_TEAM_FIRST ? form
                                       : LLM_TEAM_WHOLE | LLM_TEAM_FIRST;
}


/* the other devices get what the first one has */

static void
llm_team_spread(llm_team_t *t, llm_rows_t rows, llm_team_act_t *a)
{
    uint32_t    i;
    llm_act_t  *x[LLM_MAX_DEVICES] = { a->whole[0] };
    llm_act_t  *y[LLM_MAX_DEVICES] = { NULL };

    for (i = 1; i < t->n; i++) {
        y[i] = a->whole[i];
    }

    llm_team_collect_to(t, rows, x, y);
    a->read = t->n_collected;
    a->forms |= LLM_TEAM_WHOLE;
}


/* each device takes its columns of what it has; only of float buffers, of which
   columns() is */

static void
llm_team_cut(llm_team_t *t, llm_rows_t rows, llm_team_act_t *a)
{
    uint32_t  i;

    assert(a->kind != LLM_ACT_VALUE);

    for (i = 0; i < t->n; i++) {
        t->ops->columns(llm_team_device(t, i), rows, a->whole[i],
                        llm_team_first(t, a->cols, i), a->part[i]);
    }

    a->forms |= LLM_TEAM_PART;
}


void
llm_team_need(llm_team_t *t, llm_rows_t rows, llm_team_act_t *a, int form)
{
    assert(a->forms);

    if (a->forms & form) {
        return;
    }

    if (a->forms & LLM_TEAM_PART) {
        llm_team_join_parts(t, rows, a, form);
        return;
    }

    if (!(a->forms & LLM_TEAM_WHOLE)) {
        llm_team_spread(t, rows, a);
    }

    if (form == LLM_TEAM_PART) {
        llm_team_cut(t, rows, a);
    }
}


void
llm_team_writes(llm_team_t *t, llm_team_act_t *a, int form)
{
    llm_act_t  *none[LLM_MAX_DEVICES] = { NULL };

    if (a->read && a->read == t->n_collected) {
        llm_team_collect_to(t, LLM_ROWS_ALL, none, none);
    }

    a->forms = form == LLM_TEAM_WHOLE ? LLM_TEAM_WHOLE | LLM_TEAM_FIRST : form;
}


int
llm_team_alike(llm_team_t *t, llm_rows_t rows, llm_team_act_t *x,
    llm_team_act_t *y)
{
    int  form, both;

    both = x->forms & y->forms;
    form = both & LLM_TEAM_WHOLE ? LLM_TEAM_WHOLE
           : both ? both & -both
           : (x->forms | y->forms) & LLM_TEAM_PART ? LLM_TEAM_PART
                                                   : LLM_TEAM_WHOLE;

    llm_team_need(t, rows, x, form);
    llm_team_need(t, rows, y, form);

    return form;
}
