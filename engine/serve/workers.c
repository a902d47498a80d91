/*
 * Reads the workers' messages, cancels the requests of workers that died or
 * were replaced, and clears the admission counts that those have left.
 */

#include "engine/ipc/media.h"
#include "engine/serve/requests.h"

#define LLM_ENGINE_TAKE       256       /* messages of a worker in one round */


static void
llm_engine_cancel_peer(llm_engine_t *e, llm_peer_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->n_slots && p->n_live; i++) {
        if (p->slots[i]) {
            llm_engine_cancel(e, p->slots[i]);
        }
    }

    if (p->refusal.pending) {
        p->refusal.pending = 0;         /* the client is gone */
        llm_zone_release(e->zone, p->refusal.model, e->epoch,
                         p->refusal.priority);
    }
}


/* if another client has taken the worker's place, cancels the requests of the
   old one */

static void
llm_engine_new_client(llm_engine_t *e, llm_peer_t *p)
{
    uint32_t  generation;

    generation = atomic_load(&p->port.worker->generation);

    if (generation != p->port.generation) {
        llm_engine_cancel_peer(e, p);
        p->port.generation = generation;
        llm_media_sweep(e->zone, 0);
    }
}


/* handles all messages but REQUEST and COMMAND */

static void
llm_engine_control(llm_engine_t *e, llm_peer_t *p, const llm_msg_t *msg)
{
    llm_req_t  *r;

    if (msg->slot >= p->n_slots) {
        return;
    }

    r = p->slots[msg->slot];

    if (r == NULL || r->out.to.ticket != msg->ticket) {
        return;
    }

    switch (msg->type) {

    case LLM_MSG_CANCEL:
        llm_engine_cancel(e, r);
        break;

    case LLM_MSG_PAUSE:
        r->out.paused = 1;
        break;

    case LLM_MSG_RESUME:
        r->out.paused = 0;
        break;

    case LLM_MSG_GRANT:
        if (r->state == LLM_REQ_ASKING) {
            llm_engine_admit(e, r);
        }

        break;

    default:
        break;
    }
}


/* accepts a request, unless it was sent to an older engine or by a client that
   was replaced; head: a copy of its fixed part, whose size was checked */

static void
llm_engine_request(llm_engine_t *e, llm_peer_t *p, llm_request_t *head,
    const void *rec)
{
    if (head->model >= e->n_models) {
        goto ignored;
    }

    if (llm_generation(head->head.ticket) != p->port.generation) {
        llm_engine_new_client(e, p);
    }

    if (head->head.epoch != e->epoch) {
        goto ignored;                   /* the client itself reports the
                                           failure */
    }

    if (llm_generation(head->head.ticket) != p->port.generation) {
        llm_zone_release(e->zone, head->model, e->epoch, head->priority);
        goto ignored;
    }

    llm_engine_accept(e, p, head, rec);

    return;

ignored:

    llm_media_abandon(e->zone, head, rec, head->head.size);
}


/*
 * Handles a message.  Its worker may change it in the ring meanwhile, so its
 * fixed part is copied before it is read.
 */

static void
llm_engine_message(llm_engine_t *e, llm_peer_t *p, const void *rec,
    uint32_t size)
{
    union {
        llm_msg_t            msg;
        llm_request_t        request;
        llm_command_msg_t    command;
    } u;

    memcpy(&u, rec, llm_min((size_t) size, sizeof(u)));

    if (size < sizeof(u.msg)) {
        return;
    }

    u.msg.size = size;

    switch (u.msg.type) {

    case LLM_MSG_COMMAND:
        if (size >= sizeof(u.command)) {
            llm_engine_command(e, &u.command, rec);
        }

        return;

    case LLM_MSG_REQUEST:
        if (size >= sizeof(u.request)) {
            llm_engine_request(e, p, &u.request, rec);
        }

        return;

    default:
        if (llm_generation(u.msg.ticket) != p->port.generation) {
            llm_engine_new_client(e, p);
        }

        llm_engine_control(e, p, &u.msg);
        return;
    }
}


void
llm_engine_messages(llm_engine_t *e)
{
    uint32_t             i, n;
    llm_peer_t          *p;
    const llm_record_t  *rec;

    for (i = 0; i < e->n_peers; i++) {
        p = &e->peers[i];

        if (llm_engine_send_refusal(e, p)) {
            continue;
        }

        for (n = 0; n < LLM_ENGINE_TAKE && !p->refusal.pending; n++) {
            rec = llm_ring_next(&p->down);
            if (rec == NULL) {
                break;
            }

            llm_engine_message(e, p, rec, p->down.taken);
        }

        llm_ring_release(&p->down);
    }
}


void
llm_engine_check_peers(llm_engine_t *e)
{
    uint32_t            i, pid;
    uint64_t            born;
    llm_peer_t         *p;
    llm_zone_worker_t  *w;

    e->n_checks++;

    for (i = 0; i < e->n_peers; i++) {
        p = &e->peers[i];
        w = p->port.worker;

        llm_engine_new_client(e, p);

        if (p->n_live == 0 && !p->refusal.pending) {
            continue;
        }

        pid = atomic_load(&w->pid);

        /* a process's start time must be read from a file, so that of only one
           worker is checked in a call */

        born = i == e->n_checks % e->n_peers ? atomic_load(&w->born) : 0;

        if (llm_process_lives((int32_t) pid, born)) {
            continue;
        }

        if (pid && atomic_exchange(&w->intent, 0)) {
            atomic_store(&e->zone->suspect, 1);
        }

        llm_engine_log(e, LLM_LOG_INFO, "worker %u is gone: %u requests "
                       "cancelled", i, p->n_live);
        llm_engine_cancel_peer(e, p);
    }
}


/*
 * A worker that is killed between counting a request and publishing it leaves
 * its count.  When no request is in the engine or in a ring, and no worker is
 * about to publish one, all counts are left by dead workers and are cleared.
 */

void
llm_engine_audit(llm_engine_t *e)
{
    uint32_t            i;
    llm_zone_worker_t  *w;

    if (e->n_live || !atomic_load(&e->zone->suspect)) {
        return;
    }

    llm_zone_counts(e->zone, &e->seen);

    for (i = 0; i < e->n_peers; i++) {
        w = e->peers[i].port.worker;

        if (atomic_load(&w->intent) || !llm_ring_empty(&e->peers[i].down)
            || e->peers[i].refusal.pending)
        {
            return;
        }
    }

    if (llm_zone_clear_counts(e->zone, &e->seen) == LLM_OK) {
        atomic_store(&e->zone->suspect, 0);
    }
}
