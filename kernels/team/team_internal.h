/*
 * A team's objects, each of which stands for one on every device, or for none
 * (NULL) where it is not needed; shared by the files of kernels/team.
 *
 * A device's part of n columns begins at column n * i / n_devices, where i is
 * the device's number in the team.  The types of kernels.h are those of the
 * devices' own objects; the model has ours in their place.
 */

#ifndef LLM_TEAM_INTERNAL_H
#define LLM_TEAM_INTERNAL_H

#include "kernels/team.h"

#include <assert.h>
#include <stdlib.h>

/* where the rows of a buffer are (or-ed) */
#define LLM_TEAM_PART   1               /* each device has its columns */
#define LLM_TEAM_WHOLE  2               /* each has all columns; the first one's
                                           are here, too */
#define LLM_TEAM_FIRST  4               /* the first device has all columns */

typedef struct llm_team_s  llm_team_t;

typedef struct {
    llm_team_t      *team;
    llm_act_kind_t   kind;
    uint32_t         cols;
    int              forms;             /* those that the step has written */
    uint64_t         read;              /* number of the collection in which
                                           another device read it last */
    llm_act_t       *part[LLM_MAX_DEVICES];
    llm_act_t       *whole[LLM_MAX_DEVICES];    /* of logits and states only the
                                                   first */
} llm_team_act_t;

typedef struct {
    uint32_t         n;
    llm_vec_t       *whole[LLM_MAX_DEVICES];
    llm_vec_t       *part[LLM_MAX_DEVICES];     /* NULL: it is too short */
} llm_team_vec_t;

typedef struct {
    uint32_t         n_out;
    uint32_t         n_heads;           /* matrices of which each device has
                                           some; 0: each has rows of all */
    llm_weight_t    *part[LLM_MAX_DEVICES];     /* some rows, for linear(); all
                                                   rows if there are fewer than
                                                   devices */
    llm_weight_t    *whole;             /* on the first, for embed() */
} llm_team_weight_t;

typedef struct {
    llm_kv_t        *part[LLM_MAX_DEVICES];
    llm_kv_layer_t  *layers;            /* a device's; or NULL */
} llm_team_kv_t;

struct llm_team_s {
    llm_exec_t       exec;              /* first */
    const llm_ops_t *ops;               /* of the devices */
    llm_exec_t      *of[LLM_MAX_DEVICES];
    uint32_t         n;
    uint64_t         n_collected;       /* collections so far */
    llm_team_act_t  *logits;            /* or NULL */
};

#define LLM_OP(group, needs, result, name, parameters)                       \
    result llm_team_##name parameters;
#include "kernels/ops.def"

/* first column of device i, of n; i may be the number of devices */
static inline uint32_t
llm_team_first(const llm_team_t *t, uint32_t n, uint32_t i)
{
    return (uint32_t) ((uint64_t) n * i / t->n);
}


static inline uint32_t
llm_team_width(const llm_team_t *t, uint32_t n, uint32_t i)
{
    return llm_team_first(t, n, i + 1) - llm_team_first(t, n, i);
}


/* the next calls are about device i; returns it */
static inline llm_exec_t *
llm_team_device(const llm_team_t *t, uint32_t i)
{
    if (t->ops->enter) {
        t->ops->enter(t->of[i]);
    }

    return t->of[i];
}

/* runs an operation of the devices that have the form; e: the device, i: its
   number */
#define llm_team_run(t, form, call)                                          \
    do {                                                                     \
        uint32_t     i;                                                      \
        llm_exec_t  *e;                                                      \
                                                                             \
        for (i = 0; i < ((form) == LLM_TEAM_FIRST ? 1 : (t)->n); i++) {      \
            e = llm_team_device(t, i);                                        \
            (t)->ops->call;                                                  \
        }                                                                    \
    } while (0)

/* frees with the operation `op` what the devices have of an object; NULL: a
   device has none */
#define llm_team_drop(t, op, of)                                             \
    do {                                                                     \
        uint32_t  i;                                                         \
                                                                             \
        for (i = 0; i < (t)->n; i++) {                                       \
            if ((of)[i]) {                                                   \
                (t)->ops->op(llm_team_device(t, i), (of)[i]);                \
            }                                                                \
        }                                                                    \
    } while (0)

/* a device's buffer or vector of the form; NULL if there is none */
#define llm_team_at(a, form, i)                                              \
    ((a) == NULL ? NULL : (form) == LLM_TEAM_PART ? (a)->part[i]             \
                                                  : (a)->whole[i])

/* forms.c: makes sure that the buffer has this form, besides those it has */
void llm_team_need(llm_team_t *t, llm_rows_t rows, llm_team_act_t *a,
    int form);
/* forms.c: called before a buffer is written: others that read it have done so;
   it has this form alone from then on */
void llm_team_writes(llm_team_t *t, llm_team_act_t *a, int form);
/* forms.c: the form in which an operation on single values reads both buffers,
   which now have it; y may be x */
int llm_team_alike(llm_team_t *t, llm_rows_t rows, llm_team_act_t *x,
    llm_team_act_t *y);

#endif /* LLM_TEAM_INTERNAL_H */
