/*
 * Commands for the models of an engine's rig, and a second file for them: the
 * demo model with the halves of its vocabulary exchanged, which says other
 * things.
 */

#ifndef LLM_T_ORDER_H
#define LLM_T_ORDER_H

#include "engine/gguf/gguf.h"
#include "engine/ipc/zone.h"
#include "t/unit/engine_rig.h"

#define ORDER_WAIT_MS  (60000 * SLOW)


/* gives a command; its number, or 0 and err */

static inline uint64_t
order(uint32_t worker, llm_command_kind_t kind, const char *file,
    uint32_t timeout_ms, llm_err_t *err)
{
    uint64_t       number;
    llm_command_t  cmd;

    memset(&cmd, 0, sizeof(cmd));
    memset(err, 0, sizeof(*err));
    cmd.kind = kind;
    cmd.file = file;
    cmd.timeout_ms = timeout_ms;

    return llm_client_command(rig.clients[worker], &cmd, &number, err)
           == LLM_OK ? number : 0;
}


static inline uint64_t
order_or_die(llm_command_kind_t kind, const char *file, uint32_t timeout_ms)
{
    uint64_t   number;
    llm_err_t  err;

    number = order(0, kind, file, timeout_ms, &err);

    if (number == 0) {
        printf("Bail out! a command is refused: %d %s\n", err.status,
               err.msg);
        exit(1);
    }

    return number;
}


/* until the engine has it */

static inline void
order_taken(uint64_t number)
{
    llm_command_status_t  st;

    do {
        usleep(50);
        llm_zone_command(rig.zone, 0, &st);
    } while (st.number == number && st.state == LLM_COMMAND_SENT);
}


/* until it has ended, while events are read; its state */

static inline llm_command_state_t
order_wait(uint64_t number, llm_command_status_t *st)
{
    uint32_t  w;
    uint64_t  end;

    end = llm_now_us() + (uint64_t) ORDER_WAIT_MS * 1000;

    do {
        for (w = 0; w < rig.n_workers; w++) {
            rig_poll(&rig, w, 2);
        }

        llm_zone_command(rig.zone, 0, st);
    } while (st->number == number && st->state < LLM_COMMAND_DONE
             && llm_now_us() < end);

    if (st->number != number) {
        printf("# command %u has followed %u\n", (unsigned) st->number,
               (unsigned) number);
        return 0;
    }

    if (st->state == LLM_COMMAND_FAILED) {
        printf("# command %u: %u %s: %s\n", (unsigned) number, st->status,
               st->code, st->reason);
    }

    return st->state;
}


static inline llm_command_state_t
order_now(llm_command_kind_t kind, const char *file, uint32_t timeout_ms)
{
    llm_command_status_t  st;

    return order_wait(order_or_die(kind, file, timeout_ms), &st);
}


static inline llm_model_status_t
status(void)
{
    llm_model_status_t  st;

    llm_zone_status(rig.zone, 0, &st);

    return st;
}


static inline int
reaches(llm_model_state_t want)
{
    int  i;

    for (i = 0; i < 6000 && status().state != want; i++) {
        rig_poll(&rig, 0, 10);
    }

    return status().state == want;
}


/* in a new file, whose name ends with XXXXXX: the model with the halves of a
   tensor exchanged */

static inline void
order_other(char *path)
{
    int                       fd;
    char                     *data, *tensor;
    FILE                     *f;
    size_t                    size, half;
    llm_err_t                 err;
    llm_gguf_t               *g;
    const llm_gguf_tensor_t  *t;

    f = fopen(MODEL, "rb");
    g = llm_gguf_open(MODEL, &err);
    t = g ? llm_gguf_find_tensor(g, "token_embd.weight") : NULL;

    if (f == NULL || t == NULL || fseek(f, 0, SEEK_END) == -1) {
        printf("Bail out! there is no %s\n", MODEL);
        exit(1);
    }

    size = (size_t) ftell(f);
    rewind(f);
    data = malloc(size);
    half = t->size / 2;
    tensor = fread(data, 1, size, f) == size
             ? memmem(data, size, t->data, t->size) : NULL;
    fclose(f);

    if (tensor == NULL || half % 34) {
        printf("Bail out! the tensor is not found\n");
        exit(1);
    }

    memcpy(tensor, (const char *) t->data + half, half);
    memcpy(tensor + half, t->data, half);
    llm_gguf_close(g);

    fd = mkstemp(path);
    f = fd == -1 ? NULL : fdopen(fd, "wb");

    if (f == NULL || fwrite(data, 1, size, f) != size || fclose(f)) {
        printf("Bail out! %s cannot be written\n", path);
        exit(1);
    }

    free(data);
}


#endif /* LLM_T_ORDER_H */
