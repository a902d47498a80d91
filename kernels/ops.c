/*
 * Checks that a backend's table has all operations that its capabilities need;
 * see ops.def.
 */

#include "kernels/kernels.h"


static const struct {
    const char  *name;
    size_t       at;                    /* offset in the table, bytes */
    uint32_t     needs;
} llm_op_facts[] = {
#define LLM_OP(group, needs, result, name, parameters)                       \
    { #name " (" #group ")", offsetof(llm_ops_t, name), LLM_CAN_##needs },
#include "kernels/ops.def"
};


const char *
llm_ops_lacks(const llm_ops_t *ops)
{
    size_t  i;
    void  (*op)(void);

    for (i = 0; i < llm_nelems(llm_op_facts); i++) {
        memcpy(&op, (const char *) ops + llm_op_facts[i].at, sizeof(op));

        if (op == NULL
            && (llm_op_facts[i].needs & ops->can) == llm_op_facts[i].needs)
        {
            return llm_op_facts[i].name;
        }
    }

    return NULL;
}
