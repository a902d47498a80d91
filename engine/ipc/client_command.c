/*
 * Sends a worker's commands for models through its ring; their results are in
 * the zone, see command.h.
 */

#include "engine/ipc/client.h"


/* LLM_ERROR and err: the command is useless, whichever command was before it */

static int
llm_client_check(llm_client_t *c, const llm_command_t *cmd, llm_err_t *err)
{
    llm_zone_t         *z;
    llm_model_state_t   state;

    z = c->zone;

    if (cmd->model >= z->n_models || cmd->kind < LLM_COMMAND_LOAD
        || cmd->kind > LLM_COMMAND_REMOVE)
    {
        return llm_fail(err, "malformed command to the engine");
    }

    if (cmd->file && strlen(cmd->file) >= LLM_MAX_FILE) {
        return llm_fail_with(err, 400, NULL, "file",
                             "the name of the file has %zu bytes, more than "
                             "%d", strlen(cmd->file), LLM_MAX_FILE - 1);
    }

    if (!llm_zone_engine_lives(z)) {
        return llm_client_no_engine(err);
    }

    state = atomic_load_explicit(&z->models[cmd->model].state,
                                 memory_order_acquire);

    if (cmd->kind == LLM_COMMAND_LOAD && state == LLM_MODEL_LOADING) {
        return llm_fail_with(err, 409, "model_loading", NULL,
                             "the model is being loaded");
    }

    if (cmd->kind == LLM_COMMAND_RESUME && state == LLM_MODEL_STOPPED) {
        return llm_fail_with(err, 409, "model_stopped", NULL,
                             "the model is unloaded: load it");
    }

    return LLM_OK;
}


static void
llm_client_write(llm_client_t *c, llm_command_msg_t *p, size_t size,
    const llm_command_t *cmd)
{
    memset(p, 0, size);

    p->head.size = (uint32_t) size;
    p->head.type = LLM_MSG_COMMAND;
    p->head.ticket = c->next_ticket++;
    p->head.epoch = atomic_load(&c->zone->epoch);
    p->model = cmd->model;
    p->kind = cmd->kind;
    p->timeout_ms = cmd->timeout_ms;
    p->naming = cmd->naming;
    p->file.off = sizeof(*p);

    if (cmd->file) {
        p->file.len = (uint32_t) strlen(cmd->file);
        memcpy(p + 1, cmd->file, p->file.len);
    }
}


/* room in the ring is reserved first, so a command that is claimed is sent */

int
llm_client_command(llm_client_t *c, const llm_command_t *cmd,
    uint64_t *number, llm_err_t *err)
{
    size_t              size;
    llm_command_msg_t  *p;

    if (llm_client_check(c, cmd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    size = llm_align(sizeof(*p) + (cmd->file ? strlen(cmd->file) : 0) + 1, 8);
    p = llm_ring_reserve(&c->down, size);

    if (p == NULL) {
        return llm_fail_with(err, 503, "queue_full", NULL,
                             "the ring to the engine is full");
    }

    llm_client_write(c, p, size, cmd);

    if (llm_command_claim(&c->zone->models[cmd->model].command, cmd->kind,
                          number, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    p->number = *number;

    llm_ring_push(&c->down, (llm_record_t *) p);
    (void) llm_ring_publish(&c->down);
    llm_client_wake(c);

    return LLM_OK;
}
