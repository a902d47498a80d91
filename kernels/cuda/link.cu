/*
 * A model on several GPUs: rows of activations, and drawn tokens, that one
 * receives from another.
 *
 * The receiver's stream copies them after the sender's step, and the sender's
 * next step waits for that copy, so the buffers on both sides exist once.
 * Copies are between steps, never part of a captured one.  A failed call is
 * reported by the receiver's begin() or end().
 */

#include "kernels/cuda/internal.h"

#include <stdio.h>


void
llm_cuda_enter(llm_exec_t *exec)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    (void) cudaSetDevice(d->gpu->index);
}


int
llm_cuda_peer(const llm_cuda_t *d, const llm_cuda_t *from)
{
    int          can;
    cudaError_t  e;

    llm_cuda_enter((llm_exec_t *) &d->exec);

    can = 0;
    e = cudaDeviceCanAccessPeer(&can, d->gpu->index, from->gpu->index);

    if (e == cudaSuccess && can) {
        e = cudaDeviceEnablePeerAccess(from->gpu->index, 0);
        can = (e == cudaSuccess || e == cudaErrorPeerAccessAlreadyEnabled);
    }

    (void) cudaGetLastError();          /* or the next launch would report e */

    return can;
}


int
llm_cuda_receives(llm_cuda_t *d, const llm_cuda_t *from, int draws,
    llm_err_t *err)
{
    size_t  size;

    llm_cuda_enter(&d->exec);

    if (cudaEventCreateWithFlags(&d->received, cudaEventDisableTiming)
        != cudaSuccess)
    {
        d->received = NULL;
        (void) cudaGetLastError();
        return llm_fail(err, "CUDA: no memory for an event of device %d",
                        d->gpu->index);
    }

    d->peers |= (uint64_t) 1 << from->gpu->index;
    size = d->opts.max_out * sizeof(llm_cuda_drawn_t);

    return draws ? llm_cuda_alloc((void **) &d->followed, size, "draws", err)
                 : LLM_OK;
}


int
llm_cuda_link(llm_exec_t *exec, llm_exec_t *sender, llm_err_t *err)
{
    char         msg[192];
    llm_cuda_t  *d = (llm_cuda_t *) exec;
    llm_cuda_t  *from = (llm_cuda_t *) sender;

    if (!llm_cuda_peer(d, from) && d->opts.log) {
        snprintf(msg, sizeof(msg), "CUDA: device %d cannot read the memory of "
                 "device %d directly: rows are copied through the machine's "
                 "memory", d->gpu->index, from->gpu->index);
        d->opts.log(d->opts.log_data, LLM_LOG_NOTICE, msg);
    }

    return llm_cuda_receives(d, from, from->logits != NULL, err);
}


/* copies after the sender's last step and before its next one */

static void
llm_cuda_pull(llm_cuda_t *d, llm_cuda_t *from, void *to, const void *data,
    size_t size)
{
    static const char  what[] = "copy from another GPU";

    if (!llm_cuda_alive(d->gpu) || !llm_cuda_alive(from->gpu)) {
        return;                         /* begin() says so */
    }

    llm_cuda_enter(&d->exec);

    (void) (llm_cuda_check(d, cudaStreamWaitEvent(d->stream, from->host->done,
                                                  0), what)
            || llm_cuda_check(d, cudaMemcpyPeerAsync(to, d->gpu->index, data,
                                                     from->gpu->index, size,
                                                     d->stream), what)
            || llm_cuda_check(d, cudaEventRecord(d->received, d->stream), what)
            || llm_cuda_check(d, cudaStreamWaitEvent(from->stream, d->received,
                                                     0), what));
}


/* the bucket's rows beyond those of the step, too, as operations compute
   them */

void
llm_cuda_receive(llm_exec_t *exec, llm_exec_t *sender, const llm_act_t *x,
    llm_act_t *y)
{
    llm_cuda_t  *from = (llm_cuda_t *) sender;

    llm_cuda_pull((llm_cuda_t *) exec, from, y->data, x->data,
                  (size_t) from->rows * x->cols
                  * (x->is16 ? sizeof(uint16_t) : sizeof(float)));
}


void
llm_cuda_receive_drawn(llm_exec_t *exec, llm_exec_t *sender)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;
    llm_cuda_t  *from = (llm_cuda_t *) sender;

    if (from->host && from->host->n_out) {
        llm_cuda_pull(d, from, d->followed, from->draws.drawn,
                      from->host->n_out * sizeof(llm_cuda_drawn_t));
    }
}
