/*
 * Names of models that are added and removed; see llm.h.
 *
 * A name's number, `naming`, is written last and cleared first: a reader that
 * finds the same number before and after it has read the name has all of it.
 * The zone's `names` grows before and after a name is given, and after one is
 * taken back: a reader that reads `names` first, and then the names, sees it
 * change again if it has read a name too early.
 */

#include "engine/ipc/zone.h"

#include <stdio.h>
#include <time.h>

#define LLM_NAMING_READS  1000


/* the number of a new name, never 0 */

static uint32_t
llm_zone_next_naming(llm_zone_t *z)
{
    uint32_t  n;

    do {
        n = atomic_fetch_add(&z->names, 1) + 1;
    } while (n == 0);

    return n;
}


void
llm_zone_give_name(llm_zone_t *z, uint32_t model, const char *name,
    const char *file)
{
    char                     text[LLM_NAME_TEXT];
    uint32_t                 naming;
    llm_zone_model_state_t  *m;

    m = &z->models[model];
    naming = llm_zone_next_naming(z);

    memset(text, 0, sizeof(text));
    snprintf(text, sizeof(text), "%s", name);

    llm_words_set(&m->name, text);
    llm_command_set_file(&m->command, file);
    atomic_store(&m->command.stopped, 1);
    atomic_store(&m->command.refuse_us, 0);
    memset((void *) &m->own, 0, sizeof(m->own));
    llm_zone_set(m->named, (int64_t) time(NULL));

    atomic_store(&m->naming, naming);
    atomic_fetch_add(&z->names, 1);
}


void
llm_zone_take_name(llm_zone_t *z, uint32_t model)
{
    atomic_store(&z->models[model].naming, 0);
    atomic_fetch_add(&z->names, 1);
}


void
llm_zone_name(llm_zone_t *z, uint32_t model, llm_naming_t *n)
{
    int                      i;
    llm_zone_model_state_t  *m;

    m = &z->models[model];

    for (i = 0; i < LLM_NAMING_READS; i++) {
        n->naming = atomic_load(&m->naming);

        if (n->naming == 0) {
            break;
        }

        llm_words_get(&m->name, n->name);
        n->since = llm_zone_get(m->named);

        if (atomic_load(&m->naming) == n->naming) {
            return;
        }
    }

    memset(n, 0, sizeof(*n));
}


uint32_t
llm_zone_naming(llm_zone_t *z, uint32_t model)
{
    return atomic_load(&z->models[model].naming);
}


uint32_t
llm_zone_names(llm_zone_t *z)
{
    return atomic_load(&z->names);
}
